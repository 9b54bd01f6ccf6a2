//! The entries of the id index.

use crate::slot::Slot;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) tag: u32,
    /// `None` marks an empty place.
    pub(super) slot: Option<Slot>,
}

/// Entries by the highest bits of their hash. Each lies at its home or behind it, with no empty place in between. Behind the last home
/// there are as many places as those need that were driven out: searches never go round.
pub(super) struct Table {
    pub(super) entries: Vec<Entry>,
    /// From a hash to its home.
    shift: u32,
}

/// Places behind the last home for which memory is there from the start: in an eighth of full places a run of this length does not
/// happen. If it does, the memory grows.
const BEHIND: usize = 64;

impl Table {
    /// One with `capacity` homes, a power of two, all of them empty.
    pub(super) fn empty(capacity: usize) -> Self {
        let mut table = Self::to_fill(capacity);
        table.lengthen(capacity);
        table
    }

    /// One that will have `capacity` homes, a power of two.
    pub(super) fn to_fill(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity + BEHIND), shift: 32 - capacity.ilog2() }
    }

    /// How many homes it has when it is filled.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        1 << (32 - self.shift)
    }

    /// Where the search for a hash begins: its highest bits, as many as it takes to count the homes.
    #[inline]
    pub(super) fn home(&self, tag: u32) -> usize {
        tag.wrapping_shr(self.shift) as usize
    }

    /// Adds empty places until there are `len`.
    pub(super) fn lengthen(&mut self, len: usize) {
        self.entries.resize(len.max(self.entries.len()), Entry::default());
    }

    /// The first empty place from the home of a hash on, or the end.
    pub(super) fn first_empty(&self, tag: u32) -> usize {
        let home = self.home(tag);
        let ahead = self.entries[home..].iter().position(|entry| entry.slot.is_none());
        ahead.map_or(self.entries.len(), |ahead| home + ahead)
    }

    /// Puts an entry at an empty place, or at the end.
    pub(super) fn put(&mut self, place: usize, added: Entry) {
        match self.entries.get_mut(place) {
            Some(entry) => *entry = added,
            None => self.entries.push(added),
        }
    }

    /// Adds an entry, unless it is empty.
    #[inline]
    pub(super) fn add(&mut self, added: Entry) {
        if added.slot.is_some() {
            self.put(self.first_empty(added.tag), added);
        }
    }

    /// Moves back the entries that had made way for the one that was at `hole`, which is empty now.
    #[inline(never)]
    pub(super) fn move_back(&mut self, mut hole: usize) {
        let mut place = hole + 1;
        while let Some(&entry) = self.entries.get(place)
            && entry.slot.is_some()
        {
            // The entry may move into the hole unless its home lies behind the hole.
            if self.home(entry.tag) <= hole {
                self.entries[hole] = entry;
                self.entries[place].slot = None;
                hole = place;
            }
            place += 1;
        }
    }

    /// Panics if an entry lies before its home or behind an empty place after it.
    pub(super) fn check_invariants(&self) {
        let mut first = 0;
        for (place, entry) in self.entries.iter().enumerate() {
            match entry.slot {
                None => first = place + 1,
                Some(_) => {
                    let home = self.home(entry.tag);
                    assert!((first..=place).contains(&home), "an entry at {place} whose home is {home}; the run begins at {first}");
                }
            }
        }
    }
}
