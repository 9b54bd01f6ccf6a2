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

/// Of fewer inputs each is hashed alone: sorting them by length would take longer.
const FEW: usize = 4;

/// Of these the library gets so many at a time: a multiple of its lanes.
const PIECE: usize = 32;

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
    /// Made when it is needed first: a trie of a few entries needs none.
    room: Option<Box<Room>>,
}

/// Room for what is used again for each group: to clear it every time would take longer than to hash few inputs.
struct Room {
    /// By their number of whole blocks: inputs of the group, as many as are counted.
    places: [[u16; GROUP]; CHUNK / BLOCK],
    counts: [usize; CHUNK / BLOCK],
    /// Where each input begins.
    starts: [usize; GROUP],
    group: Group,
}

impl Many {
    pub(crate) fn new(domain: Domain) -> Self {
        let key = words_from_le_bytes_32(domain.key());
        Self { domain, platform: Platform::detect(), key, bytes: Vec::new(), inputs: Vec::new(), room: None }
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
        if self.inputs.len() < FEW {
            for &(end, name) in &self.inputs {
                give(name, self.domain.hash(&self.bytes[start..end]));
                start = end;
            }
            self.bytes.clear();
            self.inputs.clear();
            return;
        }
        let Self { domain, platform, key, bytes, inputs, room } = self;
        let Room { places, counts, starts, group } = &mut **room.get_or_insert_with(Room::new);
        counts.fill(0);
        for (place, &(end, name)) in inputs.iter().enumerate() {
            starts[place] = start;
            // The last block is hashed apart, even if it is a whole one: of an empty input it is the only one.
            let whole = (end - start).saturating_sub(1) / BLOCK;
            match counts.get_mut(whole) {
                Some(count) => {
                    places[whole][*count] = place as u16;
                    *count += 1;
                }
                None => give(name, domain.hash(&bytes[start..end])),
            }
            start = end;
        }
        for (whole, (places, &count)) in places.iter().zip(&*counts).enumerate().filter(|(_, (_, count))| **count > 0) {
            group.count = count;
            group.starts.iter_mut().zip(&places[..count]).for_each(|(at, place)| *at = starts[usize::from(*place)]);
            group.hash_whole(whole, *platform, key, bytes);
            for (number, &place) in places[..count].iter().enumerate() {
                let (end, name) = inputs[usize::from(place)];
                let rest = &bytes[group.starts[number] + whole * BLOCK..end];
                let mut block = [0; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                let flags = KEYED_HASH | CHUNK_END | ROOT;
                let (mut chain, flags) = match whole {
                    0 => (*key, flags | CHUNK_START),
                    _ => (words_from_le_bytes_32(group.chain(number)), flags),
                };
                platform.compress_in_place(&mut chain, &block, rest.len() as u8, 0, flags);
                give(name, le_bytes_from_words_32(&chain));
            }
        }
        bytes.clear();
        inputs.clear();
    }
}

impl Room {
    fn new() -> Box<Self> {
        let group = Group { starts: [0; GROUP], chains: [0; GROUP * DIGEST_BYTES], count: 0 };
        Box::new(Self { places: [[0; GROUP]; _], counts: [0; _], starts: [0; GROUP], group })
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
    /// The chains of inputs of so many whole blocks, but for what follows these.
    fn hash_whole(&mut self, whole: usize, platform: Platform, key: &[u32; 8], bytes: &[u8]) {
        match whole {
            1 => self.hash_bytes::<64>(platform, key, bytes),
            2 => self.hash_bytes::<128>(platform, key, bytes),
            3 => self.hash_bytes::<192>(platform, key, bytes),
            4 => self.hash_bytes::<256>(platform, key, bytes),
            5 => self.hash_bytes::<320>(platform, key, bytes),
            6 => self.hash_bytes::<384>(platform, key, bytes),
            7 => self.hash_bytes::<448>(platform, key, bytes),
            8 => self.hash_bytes::<512>(platform, key, bytes),
            9 => self.hash_bytes::<576>(platform, key, bytes),
            10 => self.hash_bytes::<640>(platform, key, bytes),
            11 => self.hash_bytes::<704>(platform, key, bytes),
            12 => self.hash_bytes::<768>(platform, key, bytes),
            13 => self.hash_bytes::<832>(platform, key, bytes),
            14 => self.hash_bytes::<896>(platform, key, bytes),
            15 => self.hash_bytes::<960>(platform, key, bytes),
            _ => {}
        }
    }

    fn hash_bytes<const N: usize>(&mut self, platform: Platform, key: &[u32; 8], bytes: &[u8]) {
        let starts = self.starts[..self.count].chunks(PIECE);
        for (starts, chains) in starts.zip(self.chains.chunks_mut(PIECE * DIGEST_BYTES)) {
            let mut inputs: [&[u8; N]; PIECE] = [&[0; N]; PIECE];
            for (input, start) in inputs.iter_mut().zip(starts) {
                *input = bytes[*start..].first_chunk().expect("an input has its whole blocks");
            }
            let (inputs, chains) = (&inputs[..starts.len()], &mut chains[..starts.len() * DIGEST_BYTES]);
            platform.hash_many(inputs, key, 0, IncrementCounter::No, KEYED_HASH, CHUNK_START, 0, chains);
        }
    }

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
