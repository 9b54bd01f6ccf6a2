//! From (owner, client order id) to the order's place: open addressing, eight bytes an entry, no tombstones.
//!
//! An entry holds the order's place and 32 bits of the hash; the name itself is compared in the order, which the caller needs anyway.
//! Ids come from participants, who may choose them to collide, so the hash is keyed. The key may differ between replicas: nothing that
//! the book reports depends on where an entry lies.

use walras_types::{ClientOrderId, prefetch};

use crate::api::OwnerId;
use crate::arena::{Arena, Slot};

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Entry {
    tag: u32,
    /// `None` marks an empty place.
    slot: Option<Slot>,
}

/// See the module's documentation.
pub(crate) struct IdIndex {
    /// A power of two, at most a quarter full: three searches in four end at the first place.
    entries: Vec<Entry>,
    /// From a tag to the place where its search begins.
    shift: u32,
    count: usize,
    key: [u64; 2],
}

const CAPACITY_MIN: usize = 256;
const SPREAD: usize = 8;

impl IdIndex {
    pub(crate) fn new(hash_seed: u64) -> Self {
        // Two constants spread whatever seed the venue chose.
        let key = [hash_seed ^ 0x9E37_79B9_7F4A_7C15, hash_seed.rotate_left(32) ^ 0xD1B5_4A32_D192_ED03];
        let mut index = Self { entries: Vec::new(), shift: 0, count: 0, key };
        index.resize(CAPACITY_MIN);
        index
    }

    /// Makes room for `orders` in all.
    pub(crate) fn reserve(&mut self, orders: usize) {
        let capacity = (orders * SPREAD).next_power_of_two();
        if capacity > self.entries.len() {
            self.resize(capacity);
        }
    }

    /// The hash of a name, by which the other operations know it. An order keeps its own.
    #[inline]
    pub(crate) fn tag_of(&self, owner: OwnerId, client_order_id: ClientOrderId) -> u32 {
        let product = u128::from(client_order_id.0 ^ self.key[0]) * u128::from(u64::from(owner.0) ^ self.key[1]);
        ((product as u64) ^ ((product >> 64) as u64)).wrapping_shr(32) as u32
    }

    /// Where the search for a tag begins: its highest bits.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        tag.wrapping_shr(self.shift) as usize
    }

    #[inline]
    fn mask(&self) -> usize {
        self.entries.len().wrapping_sub(1)
    }

    /// Where the order of that name lies, whose hash is `tag`.
    #[inline]
    pub(crate) fn get(&self, arena: &Arena, tag: u32, owner: OwnerId, client_order_id: ClientOrderId) -> Option<Slot> {
        let mut place = self.home(tag);
        loop {
            let entry = self.entries[place & self.mask()];
            let slot = entry.slot?;
            if entry.tag == tag && arena.is_named(slot, owner, client_order_id) {
                return Some(slot);
            }
            place += 1;
        }
    }

    /// Adds a name that is not there.
    #[inline]
    pub(crate) fn insert(&mut self, tag: u32, slot: Slot) {
        if (self.count + 1) * SPREAD > self.entries.len() {
            self.resize(self.entries.len() * 2);
        }
        self.place(Entry { tag, slot: Some(slot) });
        self.count += 1;
    }

    #[inline]
    fn place(&mut self, entry: Entry) {
        let mask = self.mask();
        let mut place = self.home(entry.tag) & mask;
        while self.entries[place].slot.is_some() {
            place = (place + 1) & mask;
        }
        self.entries[place] = entry;
    }

    /// Takes out the name of the order at `slot`, and moves back the entries that had made way for it.
    #[inline]
    pub(crate) fn remove(&mut self, tag: u32, slot: Slot) {
        let mask = self.mask();
        let mut hole = self.home(tag) & mask;
        while self.entries[hole].slot != Some(slot) {
            assert!(self.entries[hole].slot.is_some(), "an open order has an index entry");
            hole = (hole + 1) & mask;
        }
        self.count -= 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let entry = self.entries[place];
            if entry.slot.is_none() {
                break;
            }
            // The entry may move into the hole unless its home lies after the hole.
            let home = self.home(entry.tag) & mask;
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = place;
            }
        }
        self.entries[hole].slot = None;
    }

    #[cold]
    #[inline(never)]
    fn resize(&mut self, capacity: usize) {
        let old = std::mem::replace(&mut self.entries, vec![Entry::default(); capacity]);
        self.shift = 32 - capacity.ilog2();
        for entry in old.into_iter().filter(|entry| entry.slot.is_some()) {
            self.place(entry);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Asks the processor for the first place where a name is looked for. The hash is for [`IdIndex::guess`].
    #[inline]
    pub(crate) fn prefetch(&self, owner: OwnerId, client_order_id: ClientOrderId) -> u32 {
        let tag = self.tag_of(owner, client_order_id);
        self.prefetch_tag(tag);
        tag
    }

    /// As [`IdIndex::prefetch`], of a hash.
    #[inline]
    pub(crate) fn prefetch_tag(&self, tag: u32) {
        prefetch(&self.entries[self.home(tag) & self.mask()]);
    }

    /// The order at the first place where a name of that hash is looked for; most often the one meant.
    #[inline]
    pub(crate) fn guess(&self, tag: u32) -> Option<Slot> {
        self.entries[self.home(tag) & self.mask()].slot
    }
}
