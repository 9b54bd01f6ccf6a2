//! Proofs of what an account tree has under an index.

use crate::account_tree::{AccountTree, FAN_OUT, leaf_hash, node_hash_of, root};
use crate::digest::{DIGEST_BYTES, Digest};
use crate::proof::{Claim, ProofError, Reader, VERSION, must};

/// The kind of proof, after the version.
const KIND: u8 = 2;

/// Siblings a proof can have: of 2^32 accounts, 8 levels.
const HASHES_MAX: usize = 8 * (FAN_OUT - 1);

/// The siblings on the way from an account's leaf up to the top; or, beyond the last account, only the top.
///
/// Bytes: version (1) | kind (1) | count of accounts (4) | the hashes. Of an account below the count: for each level from the leaves up, those of
/// its siblings in order, which are as many as the count says. Beyond it: that of the top node, nothing for no accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountProof {
    count: u32,
    hashes: Vec<[u8; DIGEST_BYTES]>,
}

impl AccountTree {
    /// A proof of an account's content, or that there is no such account.
    #[must_use]
    pub fn prove(&self, account: u32) -> AccountProof {
        let mut hashes = Vec::new();
        if account >= self.count() {
            hashes.extend(self.levels().last().map(|top| top[0]));
        } else {
            let mut at = account as usize;
            for level in self.levels() {
                let first = at / FAN_OUT * FAN_OUT;
                let siblings = (first..level.len().min(first + FAN_OUT)).filter(|&sibling| sibling != at);
                hashes.extend(siblings.map(|sibling| level[sibling]));
                at /= FAN_OUT;
            }
        }
        AccountProof { count: self.count(), hashes }
    }
}

impl AccountProof {
    /// How many accounts there are; true of the root that the proof leads to.
    #[must_use]
    pub const fn account_count(&self) -> u32 {
        self.count
    }

    /// The root of the tree in which a claim about an account holds, by this proof.
    ///
    /// # Errors
    /// [`ProofError::Mismatch`] when it is no proof of such a claim about this account.
    pub fn root(&self, account: u32, claim: Claim<'_>) -> Result<Digest, ProofError> {
        let top = match claim {
            Claim::Absent if account >= self.count && self.hashes.len() == usize::from(self.count > 0) => {
                self.hashes.first().copied()
            }
            Claim::Is(content) if account < self.count => Some(self.top(account as usize, leaf_hash(content))?),
            _ => return Err(ProofError::Mismatch),
        };
        Ok(root(self.count, top.as_ref()))
    }

    /// The hash of the top node, from that of a leaf.
    fn top(&self, leaf: usize, hash: [u8; DIGEST_BYTES]) -> Result<[u8; DIGEST_BYTES], ProofError> {
        let (mut hash, mut at, mut length) = (hash, leaf, self.count as usize);
        let mut hashes = self.hashes.as_slice();
        while length > 1 {
            let first = at / FAN_OUT * FAN_OUT;
            let child_count = FAN_OUT.min(length - first);
            let (siblings, rest) = hashes.split_at_checked(child_count - 1).ok_or(ProofError::Mismatch)?;
            let mut children = siblings.to_vec();
            children.insert(at - first, hash);
            hash = node_hash_of(&children);
            hashes = rest;
            at /= FAN_OUT;
            length = length.div_ceil(FAN_OUT);
        }
        if hashes.is_empty() { Ok(hash) } else { Err(ProofError::Mismatch) }
    }

    /// As bytes, see [`AccountProof`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, KIND];
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(self.hashes.as_flattened());
        bytes
    }

    /// Of bytes. What it returns need not be true: see [`verify_account`].
    ///
    /// # Errors
    /// [`ProofError::UnknownVersion`], [`ProofError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ProofError> {
        let mut reader = Reader::of(bytes, KIND)?;
        let count = reader.u32()?;
        let (hashes, rest) = reader.rest().as_chunks();
        must(rest.is_empty() && hashes.len() <= HASHES_MAX)?;
        Ok(Self { count, hashes: hashes.to_vec() })
    }
}

/// Checks an encoded proof of a claim about an account, against the root of an [`AccountTree`].
///
/// # Errors
/// See [`ProofError`].
pub fn verify_account(root: &Digest, account: u32, claim: Claim<'_>, proof: &[u8]) -> Result<(), ProofError> {
    let found = AccountProof::decode(proof)?.root(account, claim)?;
    if found == *root { Ok(()) } else { Err(ProofError::Mismatch) }
}
