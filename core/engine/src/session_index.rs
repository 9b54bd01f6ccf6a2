//! From a session's id to its slot: open addressing, no tombstones, four bytes an entry. The id itself is compared in the slot.
//!
//! The hash has no key. A participant who would have ids collide must open sessions at log indexes of his choice, and one account keeps
//! no more than [`walras_types::limits::SESSIONS_PER_ACCOUNT_MAX`]. No order that anybody sees depends on where an entry lies.

use walras_types::SessionId;

/// A place for a session, dense; given again when the session is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) u32);

/// See the module's documentation.
pub(crate) struct SessionIndex {
    /// A power of two of places, at most a quarter taken, so that most searches end at the first.
    entries: Vec<Option<std::num::NonZeroU32>>,
    count: usize,
}

const CAPACITY_MIN: usize = 64;
const SPREAD: usize = 4;

impl SessionIndex {
    pub(crate) fn new() -> Self {
        Self { entries: vec![None; CAPACITY_MIN], count: 0 }
    }

    /// How many sessions it knows.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Where the search for a session begins: the highest bits of a product with 2^64 over the golden ratio, which parts numbers that
    /// follow each other.
    #[inline]
    fn home(&self, session: SessionId) -> usize {
        let bits = self.entries.len().trailing_zeros();
        (session.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize
    }

    #[inline]
    fn slot_at(&self, place: usize) -> Option<Slot> {
        self.entries[place].map(|entry| Slot(entry.get() - 1))
    }

    /// The slot of a session; `holds` says whether a slot is that session's.
    #[inline]
    pub(crate) fn find(&self, session: SessionId, holds: impl Fn(Slot) -> bool) -> Option<Slot> {
        let mask = self.entries.len() - 1;
        let mut place = self.home(session);
        loop {
            let slot = self.slot_at(place)?;
            if holds(slot) {
                return Some(slot);
            }
            place = (place + 1) & mask;
        }
    }

    /// Adds a session that is not there; `id_of` gives the session of any slot that was added.
    pub(crate) fn insert(&mut self, session: SessionId, slot: Slot, id_of: impl Fn(Slot) -> SessionId) {
        if (self.count + 1) * SPREAD > self.entries.len() {
            let doubled = vec![None; 2 * self.entries.len()];
            let old = std::mem::replace(&mut self.entries, doubled);
            for entry in old.into_iter().flatten() {
                let slot = Slot(entry.get() - 1);
                self.place(id_of(slot), slot);
            }
        }
        self.place(session, slot);
        self.count += 1;
    }

    fn place(&mut self, session: SessionId, slot: Slot) {
        let mask = self.entries.len() - 1;
        let mut place = self.home(session);
        while self.entries[place].is_some() {
            place = (place + 1) & mask;
        }
        self.entries[place] = std::num::NonZeroU32::new(slot.0 + 1);
    }

    /// Takes out a session that is there, and moves back the entries that had made way for it.
    pub(crate) fn remove(&mut self, session: SessionId, slot: Slot, id_of: impl Fn(Slot) -> SessionId) {
        let mask = self.entries.len() - 1;
        let mut hole = self.home(session);
        while let at = self.slot_at(hole)
            && at != Some(slot)
        {
            assert!(at.is_some(), "an open session has an index entry");
            hole = (hole + 1) & mask;
        }
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let Some(other) = self.slot_at(place) else { break };
            // The entry may move into the hole unless its home lies after the hole.
            let home = self.home(id_of(other));
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(hole) & mask) {
                self.entries[hole] = self.entries[place];
                hole = place;
            }
        }
        self.entries[hole] = None;
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Ids far apart in steps that the hash sends to few places, so that searches are long and entries wrap round the end.
        #[test]
        fn equals_a_map(steps in prop::collection::vec((0..3_u8, 0..120_u64, 0..3_usize), 0..400)) {
            // 2^64 over the golden ratio times this is 1, so multiples of it have homes next to each other.
            let mut inverse = 1_u64;
            for _ in 0..6 {
                inverse = inverse.wrapping_mul(2_u64.wrapping_sub(inverse.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            }
            let mut index = SessionIndex::new();
            let (mut slots, mut free) = (Vec::<SessionId>::new(), Vec::new());
            let mut map = BTreeMap::new();
            for (kind, number, close) in steps {
                // At the last places, at the first, and anywhere.
                let id = match close {
                    0 => inverse.wrapping_mul(u64::MAX - number / 2),
                    1 => inverse.wrapping_mul(number / 2),
                    _ => number,
                };
                let session = SessionId(id);
                match (kind, map.get(&session)) {
                    (0, Some(&slot)) => {
                        index.remove(session, slot, |slot| slots[slot.0 as usize]);
                        map.remove(&session);
                        free.push(slot);
                    }
                    (1.., None) => {
                        let slot = free.pop().unwrap_or(Slot(slots.len() as u32));
                        slots.resize(slots.len().max(slot.0 as usize + 1), session);
                        slots[slot.0 as usize] = session;
                        index.insert(session, slot, |slot| slots[slot.0 as usize]);
                        map.insert(session, slot);
                    }
                    _ => {}
                }
                prop_assert_eq!(index.len(), map.len());
                prop_assert_eq!(index.find(session, |slot| slots[slot.0 as usize] == session), map.get(&session).copied());
                for (session, slot) in &map {
                    prop_assert_eq!(index.find(*session, |slot| slots[slot.0 as usize] == *session), Some(*slot));
                }
            }
        }
    }
}
