//! From (owner, client order id) to the order's place: open addressing, sixteen bytes an entry, no tombstones.
//!
//! Ids come from participants, who may choose them to collide, so the hash is keyed. The key may differ between replicas: nothing that
//! the book reports depends on where an entry lies.

use walras_types::ClientOrderId;

use crate::api::OwnerId;
use crate::arena::Slot;

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Entry {
    client_order_id: u64,
    owner: u32,
    /// `None` marks an empty place.
    slot: Option<Slot>,
}

/// See the module's documentation.
pub(crate) struct IdIndex {
    /// A power of two, at most half full.
    entries: Vec<Entry>,
    shift: u32,
    count: usize,
    key: [u64; 2],
}

const CAPACITY_MIN: usize = 64;

impl IdIndex {
    pub(crate) fn new(hash_seed: u64) -> Self {
        // Two odd constants spread whatever seed the venue chose.
        let key = [hash_seed ^ 0x9E37_79B9_7F4A_7C15, hash_seed.rotate_left(32) ^ 0xD1B5_4A32_D192_ED03];
        let mut index = Self { entries: Vec::new(), shift: 0, count: 0, key };
        index.resize(CAPACITY_MIN);
        index
    }

    /// Makes room for `orders` in all.
    pub(crate) fn reserve(&mut self, orders: usize) {
        let capacity = (orders * 2).next_power_of_two();
        if capacity > self.entries.len() {
            self.resize(capacity);
        }
    }

    #[inline]
    fn home(&self, owner: u32, client_order_id: u64) -> usize {
        let product = u128::from(client_order_id ^ self.key[0]) * u128::from((u64::from(owner) << 1 | 1) ^ self.key[1]);
        let folded = (product as u64) ^ ((product >> 64) as u64);
        // The fold's low bits depend on all of the input; the multiplication spreads them upward.
        (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline]
    fn find(&self, owner: u32, client_order_id: u64) -> (usize, Option<Slot>) {
        let mask = self.entries.len() - 1;
        let mut place = self.home(owner, client_order_id);
        loop {
            let entry = &self.entries[place & mask];
            if entry.slot.is_none() || (entry.client_order_id == client_order_id && entry.owner == owner) {
                return (place & mask, entry.slot);
            }
            place += 1;
        }
    }

    /// Where the order of that name lies.
    #[inline]
    pub(crate) fn get(&self, owner: OwnerId, client_order_id: ClientOrderId) -> Option<Slot> {
        self.find(owner.0, client_order_id.0).1
    }

    /// Adds a name that is not there.
    #[inline]
    pub(crate) fn insert(&mut self, owner: OwnerId, client_order_id: ClientOrderId, slot: Slot) {
        if (self.count + 1) * 2 > self.entries.len() {
            self.resize(self.entries.len() * 2);
        }
        let (place, present) = self.find(owner.0, client_order_id.0);
        debug_assert!(present.is_none(), "the name is in use");
        self.entries[place] = Entry { client_order_id: client_order_id.0, owner: owner.0, slot: Some(slot) };
        self.count += 1;
    }

    /// Takes out a name that is there, and moves back the entries that had made way for it.
    #[inline]
    pub(crate) fn remove(&mut self, owner: OwnerId, client_order_id: ClientOrderId) {
        let (mut hole, present) = self.find(owner.0, client_order_id.0);
        assert!(present.is_some(), "an open order has an index entry");
        self.count -= 1;
        let mask = self.entries.len() - 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let entry = self.entries[place];
            if entry.slot.is_none() {
                break;
            }
            let home = self.home(entry.owner, entry.client_order_id) & mask;
            // The entry may move into the hole unless its home lies after the hole.
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
        self.shift = 64 - capacity.ilog2();
        let mask = capacity - 1;
        for entry in old.into_iter().filter(|entry| entry.slot.is_some()) {
            let mut place = self.home(entry.owner, entry.client_order_id) & mask;
            while self.entries[place].slot.is_some() {
                place = (place + 1) & mask;
            }
            self.entries[place] = entry;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Asks the processor for the entry of a name that will be needed soon; returns its slot if the first place has it.
    #[inline]
    pub(crate) fn touch(&self, owner: OwnerId, client_order_id: ClientOrderId) -> Option<Slot> {
        let place = self.home(owner.0, client_order_id.0) & (self.entries.len() - 1);
        self.entries[place].slot
    }
}
