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

/// Where a search for a name ended. Good until the index next changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// At the entry that has it.
    Order(Named),
    /// At an empty entry, where it would go.
    Nothing(Vacancy),
}

/// An order's place, and that of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) slot: Slot,
    entry: u32,
}

/// An empty entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vacancy(u32);

/// See the module's documentation.
pub(crate) struct IdIndex {
    /// A power of two, at most an eighth full: seven searches in eight end at the first place.
    entries: Vec<Entry>,
    /// From a tag to the place where its search begins.
    shift: u32,
    /// Names that may be added before the entries are too full; never zero between operations.
    room: usize,
    key: [u64; 2],
}

const CAPACITY_MIN: usize = 256;
const SPREAD: usize = 8;

impl IdIndex {
    pub(crate) fn new(hash_seed: u64) -> Self {
        // Two constants spread whatever seed the venue chose.
        let key = [hash_seed ^ 0x9E37_79B9_7F4A_7C15, hash_seed.rotate_left(32) ^ 0xD1B5_4A32_D192_ED03];
        let mut index = Self { entries: Vec::new(), shift: 0, room: 0, key };
        index.resize(CAPACITY_MIN);
        index
    }

    /// Makes room for `orders` in all.
    pub(crate) fn reserve(&mut self, orders: usize) {
        let capacity = ((orders + 1) * SPREAD).next_power_of_two();
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

    /// Where the search for a tag begins: its highest bits, as many as it takes to count the entries.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        tag.wrapping_shr(self.shift) as usize
    }

    #[inline]
    fn mask(&self) -> usize {
        self.entries.len().wrapping_sub(1)
    }

    /// Looks for the order of that name, whose hash is `tag`.
    #[inline]
    pub(crate) fn search(&self, arena: &Arena, tag: u32, owner: OwnerId, client_order_id: ClientOrderId) -> Found {
        let mut place = self.home(tag);
        loop {
            let entry = self.entries[place];
            let Some(slot) = entry.slot else { return Found::Nothing(Vacancy(place as u32)) };
            if entry.tag == tag && arena.is_named(slot, owner, client_order_id) {
                return Found::Order(Named { slot, entry: place as u32 });
            }
            place = place.wrapping_add(1) & self.mask();
        }
    }

    /// Where the order at `slot`, whose name's hash is `tag`, has its entry.
    #[inline]
    pub(crate) fn entry_of(&self, tag: u32, slot: Slot) -> Named {
        let mut place = self.home(tag);
        while self.entries[place].slot != Some(slot) {
            assert!(self.entries[place].slot.is_some(), "an open order has an index entry");
            place = place.wrapping_add(1) & self.mask();
        }
        Named { slot, entry: place as u32 }
    }

    /// Where a name goes that is not there, whose hash is `tag`.
    #[inline]
    pub(crate) fn vacancy(&self, tag: u32) -> Vacancy {
        let mut place = self.home(tag);
        while self.entries[place].slot.is_some() {
            place = place.wrapping_add(1) & self.mask();
        }
        Vacancy(place as u32)
    }

    /// Adds a name where the search for it ended.
    #[inline]
    pub(crate) fn insert(&mut self, vacancy: Vacancy, tag: u32, slot: Slot) {
        self.entries[vacancy.0 as usize] = Entry { tag, slot: Some(slot) };
        self.room -= 1;
        if self.room == 0 {
            self.resize(self.entries.len() * 2);
        }
    }

    /// Takes out a name, and moves back the entries that had made way for it.
    #[inline]
    pub(crate) fn remove(&mut self, named: Named) {
        let hole = named.entry as usize;
        assert!(self.entries[hole].slot == Some(named.slot), "a name is taken out where it is");
        self.entries[hole].slot = None;
        self.room += 1;
        if self.entries[hole.wrapping_add(1) & self.mask()].slot.is_some() {
            self.move_back(hole);
        }
    }

    #[inline(never)]
    fn move_back(&mut self, mut hole: usize) {
        let mask = self.mask();
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let entry = self.entries[place];
            if entry.slot.is_none() {
                return;
            }
            // The entry may move into the hole unless its home lies after the hole.
            let home = self.home(entry.tag);
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                self.entries[place].slot = None;
                hole = place;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn resize(&mut self, capacity: usize) {
        let count = self.len();
        let old = std::mem::replace(&mut self.entries, vec![Entry::default(); capacity]);
        self.shift = 32 - capacity.ilog2();
        self.room = capacity / SPREAD - count;
        for entry in old.into_iter().filter(|entry| entry.slot.is_some()) {
            let Vacancy(place) = self.vacancy(entry.tag);
            self.entries[place as usize] = entry;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() / SPREAD - self.room
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
        prefetch(&self.entries[self.home(tag)]);
    }

    /// The order at the first place where a name of that hash is looked for; most often the one meant.
    #[inline]
    pub(crate) fn guess(&self, tag: u32) -> Option<Slot> {
        self.entries[self.home(tag)].slot
    }
}
