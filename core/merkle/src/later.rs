//! Inputs of nodes that are hashed later, side by side.
//!
//! A trie's nodes are made from the lowest up, and each needs the hashes of those below. So a pass over a trie only writes what is to be
//! hashed, with holes for hashes that are not known yet. Then all inputs without holes are hashed together ([`Many`]), which fills holes of
//! others, and so on up. Several tries share this: one alone has few nodes of each height.

use crate::digest::{DIGEST_BYTES, Domain};
use crate::many::Many;

type Hash = [u8; DIGEST_BYTES];

/// So many bytes of inputs stay in a processor's own cache.
pub(crate) const BYTES_MAX: usize = 1 << 18;

/// What is known of neither a hole nor a place.
const NONE: u32 = u32::MAX;

/// The place of a trie's top node, which lies in no block.
pub(crate) const TOP: u32 = u32::MAX - 1;

/// Inputs of the nodes of some tries.
pub(crate) struct Later {
    pub(crate) bytes: Vec<u8>,
    bytes_max: usize,
    inputs: Vec<Input>,
    many: Many,
    /// By input, while they are hashed.
    hashes: Vec<Hash>,
    /// Inputs by height, while they are hashed.
    order: Vec<u32>,
    /// Of nodes whose hashes are known: trie, place, hash.
    pub(crate) done: Vec<(u32, u32, Hash)>,
}

/// What is hashed for one node.
#[derive(Clone, Copy)]
struct Input {
    start: u32,
    end: u32,
    /// Where its hash goes in the input of the node above.
    hole: u32,
    trie: u32,
    /// Where the node is in its trie.
    place: u32,
    /// One more than the highest of those below that are hashed later too.
    height: u32,
}

impl Later {
    /// Which are hashed when they have more bytes than this.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let many = Many::new(Domain::TrieNode);
        Self { bytes: Vec::new(), bytes_max, inputs: Vec::new(), many, hashes: Vec::new(), order: Vec::new(), done: Vec::new() }
    }

    /// Whether it is time to hash.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() > self.bytes_max
    }

    /// Leaves a hole for the hash of an input at the end of the bytes; how high the node is that the hole belongs to, at least.
    pub(crate) fn leave_hole(&mut self, input: u32) -> u32 {
        let of_input = &mut self.inputs[input as usize];
        of_input.hole = offset(self.bytes.len());
        self.bytes.extend_from_slice(&[0; DIGEST_BYTES]);
        of_input.height + 1
    }

    /// Makes an input of the bytes from `start` on.
    pub(crate) fn push(&mut self, start: usize, trie: u32, height: u32) -> u32 {
        let (start, end) = (offset(start), offset(self.bytes.len()));
        self.inputs.push(Input { start, end, hole: NONE, trie, place: NONE, height });
        offset(self.inputs.len() - 1)
    }

    /// Says where the node of an input is in its trie.
    pub(crate) fn set_place(&mut self, input: u32, place: u32) {
        self.inputs[input as usize].place = place;
    }

    /// Hashes all. Those without a place are given to `without_place`, which finds the hash of an input.
    pub(crate) fn hash_all(&mut self, without_place: impl FnOnce(&dyn Fn(u32) -> Hash)) {
        let Self { bytes, inputs, many, hashes, order, done, bytes_max: _ } = self;
        let heights = inputs.iter().map(|input| input.height as usize + 1).max().unwrap_or(0);
        // A counting sort: ends, then starts, of the inputs of each height.
        let mut ends = vec![0_u32; heights];
        inputs.iter().for_each(|input| ends[input.height as usize] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        order.clear();
        order.resize(inputs.len(), 0);
        for (number, input) in (0..).zip(&*inputs) {
            let next = &mut ends[input.height as usize];
            order[*next as usize] = number;
            *next += 1;
        }
        hashes.clear();
        hashes.resize(inputs.len(), [0; DIGEST_BYTES]);
        let mut from = 0;
        for end in ends {
            let of_height = &order[from as usize..end as usize];
            let mut give = |number: u32, hash| hashes[number as usize] = hash;
            for &number in of_height {
                let Input { start, end, .. } = inputs[number as usize];
                many.push(number, |input| input.extend_from_slice(&bytes[start as usize..end as usize]), &mut give);
            }
            many.finish(&mut give);
            for &number in of_height {
                let hole = inputs[number as usize].hole;
                if hole != NONE {
                    bytes[hole as usize..][..DIGEST_BYTES].copy_from_slice(&hashes[number as usize]);
                }
            }
            from = end;
        }
        let placed = inputs.iter().zip(&*hashes).filter(|(input, _)| input.place != NONE);
        done.extend(placed.map(|(input, hash)| (input.trie, input.place, *hash)));
        without_place(&|number| hashes[number as usize]);
        bytes.clear();
        inputs.clear();
    }
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("inputs are hashed before they are so many")
}
