//! Many inputs hashed side by side.
//!
//! One BLAKE3 hash of some hundred bytes is a chain of blocks, each of which waits for the one before; a processor has room for eight such
//! chains. Accounts are many and of much the same length, so those of as many blocks are hashed together, but for the last block of each.
//! The library does this with the chunks of one long input and offers it for inputs of whole blocks as an interface that it calls unstable:
//! so it is used here alone, and a test compares it with the stable one.

use blake3::IncrementCounter;
use blake3::platform::{Platform, le_bytes_from_words_32, words_from_le_bytes_32};

use crate::digest::{DIGEST_BYTES, Domain};

const BLOCK: usize = 64;
/// Most bytes of an input that is one chunk.
const CHUNK: usize = 1_024;
/// Inputs that are hashed together at most: so many that few are left over of each number of blocks, and that they stay in the cache.
const GROUP: usize = 256;

const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 1 << 1;
const ROOT: u8 = 1 << 3;
const KEYED_HASH: u8 = 1 << 4;

/// Inputs of one domain, hashed when there are enough of them.
pub(crate) struct Many {
    domain: Domain,
    platform: Platform,
    key: [u32; 8],
    bytes: Vec<u8>,
    /// Where each ends in `bytes`, and who gets its hash.
    inputs: Vec<(usize, u32)>,
}

impl Many {
    pub(crate) fn new(domain: Domain) -> Self {
        let key = words_from_le_bytes_32(domain.key());
        Self { domain, platform: Platform::detect(), key, bytes: Vec::new(), inputs: Vec::with_capacity(GROUP) }
    }

    /// Takes the input that `put` appends, for whoever is named so. `give` gets the hashes, now or later.
    pub(crate) fn push(&mut self, name: u32, put: impl FnOnce(&mut Vec<u8>), give: &mut impl FnMut(u32, [u8; DIGEST_BYTES])) {
        put(&mut self.bytes);
        self.inputs.push((self.bytes.len(), name));
        if self.inputs.len() == GROUP {
            self.finish(give);
        }
    }

    /// Hashes what is left.
    pub(crate) fn finish(&mut self, give: &mut impl FnMut(u32, [u8; DIGEST_BYTES])) {
        let mut start = 0;
        let mut by_blocks: [([u16; GROUP], usize); CHUNK / BLOCK] = [([0; GROUP], 0); CHUNK / BLOCK];
        let mut starts = [0; GROUP];
        for (place, &(end, name)) in self.inputs.iter().enumerate() {
            starts[place] = start;
            // The last block is hashed apart, even if it is a whole one: of an empty input it is the only one.
            let whole = (end - start).saturating_sub(1) / BLOCK;
            match by_blocks.get_mut(whole) {
                Some((places, count)) => {
                    places[*count] = place as u16;
                    *count += 1;
                }
                None => give(name, self.domain.hash(&self.bytes[start..end])),
            }
            start = end;
        }
        for (whole, (places, count)) in by_blocks.iter().enumerate() {
            let mut group = Group { starts: [0; GROUP], chains: [0; GROUP * DIGEST_BYTES], count: *count };
            group.starts.iter_mut().zip(&places[..*count]).for_each(|(at, place)| *at = starts[usize::from(*place)]);
            self.hash_whole(whole, &mut group);
            for (number, &place) in places[..*count].iter().enumerate() {
                let (end, name) = self.inputs[usize::from(place)];
                let rest = &self.bytes[group.starts[number] + whole * BLOCK..end];
                let mut block = [0; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                let flags = KEYED_HASH | CHUNK_END | ROOT;
                let (mut chain, flags) = match whole {
                    0 => (self.key, flags | CHUNK_START),
                    _ => (words_from_le_bytes_32(group.chain(number)), flags),
                };
                self.platform.compress_in_place(&mut chain, &block, rest.len() as u8, 0, flags);
                give(name, le_bytes_from_words_32(&chain));
            }
        }
        self.bytes.clear();
        self.inputs.clear();
    }

    /// The chains of inputs of so many whole blocks, but for what follows these.
    fn hash_whole(&self, whole: usize, group: &mut Group) {
        match whole {
            1 => self.hash_bytes::<64>(group),
            2 => self.hash_bytes::<128>(group),
            3 => self.hash_bytes::<192>(group),
            4 => self.hash_bytes::<256>(group),
            5 => self.hash_bytes::<320>(group),
            6 => self.hash_bytes::<384>(group),
            7 => self.hash_bytes::<448>(group),
            8 => self.hash_bytes::<512>(group),
            9 => self.hash_bytes::<576>(group),
            10 => self.hash_bytes::<640>(group),
            11 => self.hash_bytes::<704>(group),
            12 => self.hash_bytes::<768>(group),
            13 => self.hash_bytes::<832>(group),
            14 => self.hash_bytes::<896>(group),
            15 => self.hash_bytes::<960>(group),
            _ => {}
        }
    }

    fn hash_bytes<const N: usize>(&self, group: &mut Group) {
        let Group { starts, chains, count } = group;
        let mut inputs: [&[u8; N]; GROUP] = [&[0; N]; GROUP];
        for (input, start) in inputs.iter_mut().zip(&starts[..*count]) {
            *input = self.bytes[*start..].first_chunk().expect("an input has its whole blocks");
        }
        let (inputs, chains) = (&inputs[..*count], &mut chains[..*count * DIGEST_BYTES]);
        self.platform.hash_many(inputs, &self.key, 0, IncrementCounter::No, KEYED_HASH, CHUNK_START, 0, chains);
    }
}

/// Inputs of as many whole blocks.
struct Group {
    /// Where each begins.
    starts: [usize; GROUP],
    /// What their whole blocks come to, one after the other.
    chains: [u8; GROUP * DIGEST_BYTES],
    count: usize,
}

impl Group {
    fn chain(&self, number: usize) -> &[u8; DIGEST_BYTES] {
        self.chains[number * DIGEST_BYTES..].first_chunk().expect("a chain for each input")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths around every boundary, alone and among others.
    #[test]
    fn side_by_side_they_are_what_each_is_alone() {
        let lengths =
            (0..=CHUNK).filter(|len| len % BLOCK < 2 || len % BLOCK == BLOCK - 1 || len % 7 == 0).chain([1_025, 2_048, 5_000]);
        let inputs: Vec<Vec<u8>> = lengths.map(|len| (0..len).map(|at| (at * 31 + len * 7 + (at >> 6)) as u8).collect()).collect();
        for step in [1, 5, 83] {
            for domain in [Domain::AccountLeaf, Domain::AccountNode] {
                let mut many = Many::new(domain);
                let mut found = vec![None; inputs.len()];
                let mut give = |name: u32, hash| assert_eq!(found[name as usize].replace(hash), None);
                for at in 0..inputs.len() {
                    // In another order, too.
                    let name = at * step % inputs.len();
                    many.push(name as u32, |bytes| bytes.extend_from_slice(&inputs[name]), &mut give);
                }
                many.finish(&mut give);
                many.finish(&mut give);
                for (input, hash) in inputs.iter().zip(found) {
                    assert_eq!(hash, Some(domain.hash(input)), "{} bytes", input.len());
                }
            }
        }
    }
}
