//! From (owner, client order id) to the order's place: open addressing, eight bytes an entry, no tombstones.
//!
//! An entry holds the order's place and 32 bits of the hash; the name itself is compared in the order, which the caller needs anyway.
//! Ids come from participants, who may choose them to collide, so the hash is keyed. The key may differ between replicas: nothing that
//! the book reports depends on where an entry lies.
//!
//! The index grows a few entries at a time, so that no command waits for all of them to move. A search begins at the highest bits of
//! the hash, so a table of twice the size has all entries in the same order, and the new table is filled from its first place on. It
//! is as long as what was moved. A search that begins beyond its end belongs to the old table. The bounds check that each access has
//! anyway decides between the two: an index that does not grow pays nothing for this.

mod table;
#[cfg(test)]
mod tests;

use walras_types::{ClientOrderId, prefetch};

use crate::api::OwnerId;
use crate::arena::Arena;
use crate::slot::Slot;
use table::{Entry, Table};

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

/// An empty entry, or the end of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vacancy(u32);

/// Marks an entry's number as one of the old table. No table has that many entries.
const IN_OLD: u32 = 1 << 31;

/// See the module's documentation.
pub(crate) struct IdIndex {
    /// At most an eighth full: seven searches in eight end at the first place.
    table: Table,
    /// Names that may be added before the index has to grow, or to go on growing; never zero between operations.
    room: usize,
    key: [u64; 2],
    growing: Option<Box<Growing>>,
}

/// What is left to move.
struct Growing {
    /// The table before, of half the capacity. It may become a quarter full.
    old: Table,
    /// Places of `old` whose entries were moved. The one before this is empty, so no entry beyond has its home among them.
    moved: usize,
    /// Names that may be added beyond [`IdIndex::room`].
    spare: usize,
}

const CAPACITY_MIN: usize = 256;
const SPREAD: usize = 8;

/// Names that are added between two moves, and how many places a move empties, up to the next empty one. Moving twice as fast as
/// necessary, the index has grown when half of its new room is used.
const NAMES_PER_MOVE: usize = 16;
const PLACES_PER_MOVE: usize = 2 * SPREAD * NAMES_PER_MOVE;

impl IdIndex {
    pub(crate) fn new(hash_seed: u64) -> Self {
        // Two constants spread whatever seed the venue chose.
        let key = [hash_seed ^ 0x9E37_79B9_7F4A_7C15, hash_seed.rotate_left(32) ^ 0xD1B5_4A32_D192_ED03];
        Self { table: Table::empty(CAPACITY_MIN), room: CAPACITY_MIN / SPREAD, key, growing: None }
    }

    /// Makes room for `orders` in all.
    pub(crate) fn reserve(&mut self, orders: usize) {
        let capacity = ((orders + 1) * SPREAD).next_power_of_two();
        if capacity <= self.table.capacity() {
            return;
        }
        let count = self.len();
        let old = self.growing.take().map(|growing| growing.old.entries.into_iter().skip(growing.moved));
        let entries = std::mem::replace(&mut self.table, Table::empty(capacity)).entries;
        entries.into_iter().chain(old.into_iter().flatten()).for_each(|entry| self.table.add(entry));
        self.room = capacity / SPREAD - count;
    }

    /// The hash of a name, by which the other operations know it. An order keeps its own.
    #[inline]
    pub(crate) fn tag_of(&self, owner: OwnerId, client_order_id: ClientOrderId) -> u32 {
        let product = u128::from(client_order_id.0 ^ self.key[0]) * u128::from(u64::from(owner.0) ^ self.key[1]);
        ((product as u64) ^ ((product >> 64) as u64)).wrapping_shr(32) as u32
    }

    /// Looks for the order of that name, whose hash is `tag`.
    #[inline]
    pub(crate) fn search(&self, arena: &Arena, tag: u32, owner: OwnerId, client_order_id: ClientOrderId) -> Found {
        let mut place = self.table.home(tag);
        while let Some(entry) = self.table.entries.get(place) {
            let Some(slot) = entry.slot else { return Found::Nothing(Vacancy(place as u32)) };
            if entry.tag == tag && arena.is_named(slot, owner, client_order_id) {
                return Found::Order(Named { slot, entry: place as u32 });
            }
            place = place.wrapping_add(1);
        }
        self.search_beyond(arena, tag, owner, client_order_id)
    }

    #[cold]
    #[inline(never)]
    fn search_beyond(&self, arena: &Arena, tag: u32, owner: OwnerId, client_order_id: ClientOrderId) -> Found {
        let Some(old) = self.old_table_of(tag) else { return Found::Nothing(Vacancy(self.table.entries.len() as u32)) };
        let mut place = old.home(tag);
        while let Some(entry) = old.entries.get(place)
            && let Some(slot) = entry.slot
        {
            if entry.tag == tag && arena.is_named(slot, owner, client_order_id) {
                return Found::Order(Named { slot, entry: place as u32 | IN_OLD });
            }
            place += 1;
        }
        Found::Nothing(Vacancy(place as u32 | IN_OLD))
    }

    /// The old table if names of this hash are there still.
    fn old_table_of(&self, tag: u32) -> Option<&Table> {
        if self.table.home(tag) < self.table.entries.len() {
            return None;
        }
        Some(&self.growing.as_deref().expect("the table has all homes unless the index grows").old)
    }

    /// Where the order at `slot`, whose name's hash is `tag`, has its entry.
    #[inline]
    pub(crate) fn entry_of(&self, tag: u32, slot: Slot) -> Named {
        let mut place = self.table.home(tag);
        while let Some(entry) = self.table.entries.get(place) {
            if entry.slot == Some(slot) {
                return Named { slot, entry: place as u32 };
            }
            assert!(entry.slot.is_some(), "an open order has an index entry");
            place = place.wrapping_add(1);
        }
        self.old_entry_of(tag, slot)
    }

    #[cold]
    #[inline(never)]
    fn old_entry_of(&self, tag: u32, slot: Slot) -> Named {
        let old = self.old_table_of(tag).expect("an open order has an index entry");
        let mut place = old.home(tag);
        while old.entries[place].slot != Some(slot) {
            assert!(old.entries[place].slot.is_some(), "an open order has an index entry");
            place += 1;
        }
        Named { slot, entry: place as u32 | IN_OLD }
    }

    /// Where a name goes that is not there, whose hash is `tag`.
    #[inline]
    pub(crate) fn vacancy(&self, tag: u32) -> Vacancy {
        let mut place = self.table.home(tag);
        while let Some(entry) = self.table.entries.get(place) {
            if entry.slot.is_none() {
                return Vacancy(place as u32);
            }
            place = place.wrapping_add(1);
        }
        self.vacancy_beyond(tag)
    }

    #[cold]
    #[inline(never)]
    fn vacancy_beyond(&self, tag: u32) -> Vacancy {
        match self.old_table_of(tag) {
            Some(old) => Vacancy(old.first_empty(tag) as u32 | IN_OLD),
            None => Vacancy(self.table.entries.len() as u32),
        }
    }

    /// Adds a name where the search for it ended.
    #[inline]
    pub(crate) fn insert(&mut self, vacancy: Vacancy, tag: u32, slot: Slot) {
        let added = Entry { tag, slot: Some(slot) };
        match self.table.entries.get_mut(vacancy.0 as usize) {
            Some(entry) => *entry = added,
            None => self.insert_beyond(vacancy, added),
        }
        self.room -= 1;
        if self.room == 0 {
            self.make_room();
        }
    }

    /// Adds a name to the old table, or behind the last entry of the new one.
    #[cold]
    #[inline(never)]
    fn insert_beyond(&mut self, vacancy: Vacancy, added: Entry) {
        match &mut self.growing {
            Some(growing) if vacancy.0 & IN_OLD != 0 => {
                growing.old.put((vacancy.0 & !IN_OLD) as usize, added);
                self.move_some();
            }
            _ => {
                // Behind the entries that were moved there is room for more only once those that belong there were moved too.
                while self.growing.is_some() && self.table.first_empty(added.tag) == self.table.entries.len() {
                    self.move_some();
                }
                self.table.add(added);
            }
        }
    }

    /// Takes out a name, and moves back the entries that had made way for it.
    #[inline]
    pub(crate) fn remove(&mut self, named: Named) {
        let hole = named.entry as usize;
        let Some(entry) = self.table.entries.get_mut(hole) else { return self.remove_old(named) };
        assert!(entry.slot == Some(named.slot), "a name is taken out where it is");
        entry.slot = None;
        self.room += 1;
        if self.table.entries.get(hole.wrapping_add(1)).is_some_and(|next| next.slot.is_some()) {
            self.table.move_back(hole);
        }
    }

    #[cold]
    #[inline(never)]
    fn remove_old(&mut self, named: Named) {
        let hole = (named.entry & !IN_OLD) as usize;
        let old = &mut self.growing.as_deref_mut().expect("a name is taken out where it is").old;
        assert!(old.entries[hole].slot == Some(named.slot), "a name is taken out where it is");
        old.entries[hole].slot = None;
        old.move_back(hole);
        self.room += 1;
    }

    /// Begins to grow, or goes on.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        while self.room == 0 {
            if self.growing.is_none() {
                let capacity = 2 * self.table.capacity();
                let old = std::mem::replace(&mut self.table, Table::to_fill(capacity));
                self.growing = Some(Box::new(Growing { old, moved: 0, spare: capacity / SPREAD / 2 }));
            }
            self.move_some();
            if let Some(growing) = &mut self.growing {
                self.room = growing.spare.min(NAMES_PER_MOVE);
                growing.spare -= self.room;
            }
        }
    }

    /// Moves the entries of some more places to the new table, up to an empty place.
    ///
    /// The entries moved by one call find room before the new table's end. Say the old places from `a` to before the empty place `b`
    /// are moved. At most `b - x` entries have their old home at `x` or after. So at most `b - y/2` (`y/2` rounded down) have their new
    /// home at `y` or after, and a run of entries that begins at `y`, below `2b`, ends at or before `2b`. The table then has `2b + 2`.
    fn move_some(&mut self) {
        let Some(growing) = self.growing.as_deref_mut() else { return };
        let old = &growing.old.entries;
        let least = growing.moved + PLACES_PER_MOVE;
        let ahead = old.get(least..).and_then(|rest| rest.iter().position(|entry| entry.slot.is_none()));
        let to = ahead.map_or(old.len(), |ahead| least + ahead + 1);
        let is_last = to == old.len();
        let len = if is_last { self.table.capacity() } else { 2 * to };
        self.table.lengthen(len);
        old[growing.moved..to].iter().for_each(|entry| self.table.add(*entry));
        growing.moved = to;
        if is_last {
            self.room += growing.spare;
            self.growing = None;
        }
    }

    pub(crate) fn len(&self) -> usize {
        let spare = self.growing.as_deref().map_or(0, |growing| growing.spare);
        self.table.capacity() / SPREAD - self.room - spare
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
        if let Some(entry) = self.table.entries.get(self.table.home(tag)) {
            prefetch(entry);
        }
    }

    /// The order at the first place where a name of that hash is looked for; most often the one meant.
    #[inline]
    pub(crate) fn guess(&self, tag: u32) -> Option<Slot> {
        self.table.entries.get(self.table.home(tag))?.slot
    }

    /// Panics if an entry lies where a search does not find it, or is miscounted.
    pub(crate) fn check_invariants(&self) {
        self.table.check_invariants();
        let mut count = self.table.entries.iter().filter(|entry| entry.slot.is_some()).count();
        match self.growing.as_deref() {
            None => assert!(self.table.entries.len() >= self.table.capacity(), "a name has no home"),
            Some(Growing { old, moved, .. }) => {
                old.check_invariants();
                assert_eq!(self.table.entries.len(), 2 * moved, "what was moved and where it went differ");
                assert!(*moved == 0 || old.entries[moved - 1].slot.is_none(), "a run of entries was cut");
                let left = old.entries[*moved..].iter().filter(|entry| entry.slot.is_some());
                count += left.inspect(|entry| assert!(old.home(entry.tag) >= *moved, "an entry was left behind")).count();
            }
        }
        assert_eq!(count, self.len(), "names are miscounted");
    }
}
