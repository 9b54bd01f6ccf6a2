//! Proofs of what a trie has under a key.

use crate::arena::Subtree;
use crate::digest::{DIGEST_BYTES, Digest};
use crate::nibble::{digit, digits};
use crate::proof::{Claim, ProofError, Reader, VERSION, must};
use crate::trie::{Entries, Trie, VALUE_BYTES_MAX, node_hash, put_entry, put_head, root};

/// The kind of proof, after the version.
const KIND: u8 = 1;

/// The way from the top of a trie down to where a key is or would be.
///
/// Bytes: version (1) | kind (1) | bytes of a key (1) | count of entries (4) | what is found at the end (1): 0 the claimed entry, 1 nothing, 2
/// another entry | that other entry | count of nodes (1) | for each node from the top: depth (1) | digit of the way (1) | mask of children (2)
/// | mask of those that are nodes (2) | what is hashed for each child but the one of the way. As in [`Trie`], which says what is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrieProof<const KEY: usize> {
    count: u32,
    end: End,
    way: Vec<Step>,
}

/// What the way leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// The entry of the key.
    Entry,
    /// A node that has no child of the key's digit; or the trie is empty.
    Nothing,
    /// An entry of another key; its bytes.
    Other(Vec<u8>),
}

/// A node on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    depth: u8,
    digit: u8,
    children: u16,
    inner: u16,
    /// What is hashed for the children of lower digits than that of the way, and of higher ones.
    before: Vec<u8>,
    after: Vec<u8>,
}

impl<const KEY: usize> Trie<KEY> {
    /// A proof of what is under a key, or that nothing is. `entries` are those that the trie was last built of or updated to.
    #[must_use]
    pub fn prove<E: Entries<KEY> + ?Sized>(&self, entries: &E, key: &[u8; KEY]) -> TrieProof<KEY> {
        let count = u32::try_from(self.entry_count()).expect("a trie has fewer than 2^32 entries");
        let mut proof = TrieProof { count, end: End::Nothing, way: Vec::new() };
        let Some(mut at) = self.top().copied() else { return proof };
        let mut place = 0;
        while let Subtree::Inner(node) = at {
            let way = digit(key, usize::from(node.depth));
            let (children, inner, depth) = (node.children, node.inner, node.depth);
            let mut step = Step { depth, digit: way, children, inner, before: Vec::new(), after: Vec::new() };
            let mut next = None;
            let mut child_place = place;
            for (digit, child) in self.arena().children(&node) {
                let siblings = if digit < way { &mut step.before } else { &mut step.after };
                match child {
                    _ if digit == way => next = Some((child, child_place)),
                    Subtree::Leaf => put_entry(entries, child_place, siblings),
                    Subtree::Inner(node) => siblings.extend_from_slice(&node.hash),
                }
                child_place += child.leaf_count();
            }
            proof.way.push(step);
            let Some(next) = next else { return proof };
            (at, place) = next;
        }
        proof.end = if entries.key(place) == *key {
            End::Entry
        } else {
            let mut other = Vec::new();
            put_entry(entries, place, &mut other);
            End::Other(other)
        };
        proof
    }
}

impl<const KEY: usize> TrieProof<KEY> {
    /// How many entries the trie has; true of the root that the proof leads to.
    #[must_use]
    pub const fn entry_count(&self) -> u32 {
        self.count
    }

    /// The root of the trie in which a claim about a key holds, by this proof.
    ///
    /// # Errors
    /// [`ProofError::Mismatch`] when it is no proof of such a claim about this key.
    pub fn root(&self, key: &[u8; KEY], claim: Claim<'_>) -> Result<Digest, ProofError> {
        let mut below = match (&self.end, claim) {
            (End::Entry, Claim::Is(value)) => entry(key, value)?,
            (End::Nothing, Claim::Absent) => Vec::new(),
            (End::Other(other), Claim::Absent) if !other.starts_with(key) => other.clone(),
            _ => return Err(ProofError::Mismatch),
        };
        let mut input = Vec::new();
        for step in self.way.iter().rev() {
            if digit(key, usize::from(step.depth)) != step.digit {
                return Err(ProofError::Mismatch);
            }
            input.clear();
            put_head(&mut input, KEY, step.depth, step.children, step.inner);
            for part in [&step.before, &below, &step.after] {
                input.extend_from_slice(part);
            }
            below.clear();
            below.extend_from_slice(&node_hash(&input));
        }
        Ok(root(&mut input, KEY, self.count, |input| input.extend_from_slice(&below)))
    }

    /// As bytes, see [`TrieProof`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, KIND, KEY as u8];
        bytes.extend_from_slice(&self.count.to_le_bytes());
        match &self.end {
            End::Entry => bytes.push(0),
            End::Nothing => bytes.push(1),
            End::Other(other) => {
                bytes.push(2);
                bytes.extend_from_slice(other);
            }
        }
        bytes.push(u8::try_from(self.way.len()).expect("a way has a node for each digit at most"));
        for step in &self.way {
            bytes.extend_from_slice(&[step.depth, step.digit]);
            bytes.extend_from_slice(&step.children.to_le_bytes());
            bytes.extend_from_slice(&step.inner.to_le_bytes());
            bytes.extend_from_slice(&step.before);
            bytes.extend_from_slice(&step.after);
        }
        bytes
    }

    /// Of bytes. What it returns need not be true: see [`verify_entry`].
    ///
    /// # Errors
    /// [`ProofError::UnknownVersion`], [`ProofError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ProofError> {
        let mut reader = Reader::of(bytes, KIND)?;
        must(usize::from(reader.byte()?) == KEY)?;
        let count = reader.u32()?;
        let end = match reader.byte()? {
            0 => End::Entry,
            1 => End::Nothing,
            2 => End::Other(read_entry::<KEY>(&mut reader)?.to_vec()),
            _ => return Err(ProofError::Malformed),
        };
        let step_count = reader.byte()?;
        let mut way: Vec<Step> = Vec::new();
        for left in (0..step_count).rev() {
            let step = read_step::<KEY>(&mut reader)?;
            must(way.last().is_none_or(|above| above.depth < step.depth))?;
            let (is_child, is_inner) = (step.children >> step.digit & 1 == 1, step.inner >> step.digit & 1 == 1);
            must(match (left, &end) {
                (0, End::Nothing) => !is_child,
                (0, _) => is_child && !is_inner,
                _ => is_inner,
            })?;
            way.push(step);
        }
        must(match (count, &end) {
            (0, end) => way.is_empty() && *end == End::Nothing,
            (1, end) => way.is_empty() && *end != End::Nothing,
            _ => !way.is_empty(),
        })?;
        reader.end()?;
        Ok(Self { count, end, way })
    }
}

/// The bytes of an entry.
fn entry<const KEY: usize>(key: &[u8; KEY], value: &[u8]) -> Result<Vec<u8>, ProofError> {
    let length = u8::try_from(value.len()).map_err(|_| ProofError::Mismatch)?;
    Ok([&key[..], &[length], value].concat())
}

fn read_entry<'a, const KEY: usize>(reader: &mut Reader<'a>) -> Result<&'a [u8], ProofError> {
    let ahead = reader.peek(KEY + 1)?;
    reader.take(KEY + 1 + usize::from(ahead[KEY]))
}

fn read_step<const KEY: usize>(reader: &mut Reader<'_>) -> Result<Step, ProofError> {
    let (depth, way) = (reader.byte()?, reader.byte()?);
    let (children, inner) = (reader.u16()?, reader.u16()?);
    must(usize::from(depth) < 2 * KEY && way < 16 && children.count_ones() >= 2 && inner & !children == 0)?;
    let mut step = Step { depth, digit: way, children, inner, before: Vec::new(), after: Vec::new() };
    for child in digits(children & !(1 << way)) {
        let sibling = if inner >> child & 1 == 1 { reader.take(DIGEST_BYTES)? } else { read_entry::<KEY>(reader)? };
        if child < way { &mut step.before } else { &mut step.after }.extend_from_slice(sibling);
    }
    Ok(step)
}

/// Checks an encoded proof of a claim about a key, against the root of a [`Trie`].
///
/// # Errors
/// See [`ProofError`].
pub fn verify_entry<const KEY: usize>(root: &Digest, key: &[u8; KEY], claim: Claim<'_>, proof: &[u8]) -> Result<(), ProofError> {
    let found = TrieProof::decode(proof)?.root(key, claim)?;
    if found == *root { Ok(()) } else { Err(ProofError::Mismatch) }
}

/// The most bytes that an encoded proof can have, by the bytes of a key.
#[must_use]
pub const fn trie_proof_bytes_max(key_bytes: usize) -> usize {
    let entry = key_bytes + 1 + VALUE_BYTES_MAX;
    9 + entry + 2 * key_bytes * (6 + 16 * entry)
}
