//! A log in memory that loses unsynced writes in a crash, for tests and simulation.

use crate::durable::{DurableLog, HardState, Recovered, SlotEntry, SnapshotMeta, Write};
use crate::ids::{Slot, Term, Ticket};
use crate::members::Members;
use std::collections::VecDeque;
use std::convert::Infallible;

/// One replica's durable state, and its unsynced writes.
#[derive(Clone, Debug)]
pub struct MemoryLog {
    hard_state: HardState,
    snapshot: SnapshotMeta,
    /// Those after the snapshot.
    entries: VecDeque<SlotEntry>,
    durable: Ticket,
    unsynced: VecDeque<Write>,
}

impl MemoryLog {
    /// A new member of the cluster that these members began.
    #[must_use]
    pub fn new(genesis: Members) -> Self {
        Self {
            hard_state: HardState::default(),
            snapshot: SnapshotMeta::genesis(genesis),
            entries: VecDeque::new(),
            durable: Ticket(0),
            unsynced: VecDeque::new(),
        }
    }

    /// Simulates a crash: the first `survivors` of the unsynced writes remain, the others are lost.
    pub fn crash(&mut self, survivors: usize) {
        for write in self.unsynced.drain(..).take(survivors).collect::<Vec<_>>() {
            self.apply(write);
        }
        self.durable = Ticket(0);
    }

    /// Writes that are not synced.
    #[must_use]
    pub fn unsynced_count(&self) -> usize {
        self.unsynced.len()
    }

    /// Syncs the writes up to a ticket.
    pub fn sync_up_to(&mut self, ticket: Ticket) {
        while self.unsynced.front().is_some_and(|write| write.ticket <= ticket)
            && let Some(write) = self.unsynced.pop_front()
        {
            self.apply(write);
        }
    }

    /// The durable term of a slot; `None` for one that is not durable, or was let go.
    #[must_use]
    pub fn term_at(&self, slot: Slot) -> Option<Term> {
        if slot == self.snapshot.slot {
            return Some(self.snapshot.term);
        }
        self.entries.get(usize::try_from(slot.0.checked_sub(self.snapshot.slot.0 + 1)?).ok()?).map(|entry| entry.term)
    }

    /// The newest snapshot that it knows.
    #[must_use]
    pub fn snapshot(&self) -> &SnapshotMeta {
        &self.snapshot
    }

    /// The durable entries after the snapshot.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &SlotEntry> {
        self.entries.iter()
    }

    /// For planted faults: changes what is durable.
    pub fn hard_state_mut(&mut self) -> &mut HardState {
        &mut self.hard_state
    }

    fn apply(&mut self, write: Write) {
        let Write { ticket, hard_state, installed, entries } = write;
        self.durable = ticket;
        self.hard_state = hard_state;
        if let Some(snapshot) = installed {
            self.entries.clear();
            self.snapshot = snapshot;
        }
        // A snapshot may have been taken of what was committed and not yet durable here.
        let mut rest = entries.into_iter().skip_while(|entry| entry.slot <= self.snapshot.slot).peekable();
        if let Some(first) = rest.peek() {
            let kept = usize::try_from(first.slot.0 - self.snapshot.slot.0 - 1).expect("a log fits in memory");
            assert!(kept <= self.entries.len(), "slots are written without gaps");
            self.entries.truncate(kept);
        }
        self.entries.extend(rest);
    }
}

impl DurableLog for MemoryLog {
    type Error = Infallible;

    fn write(&mut self, write: Write) -> Result<(), Infallible> {
        self.unsynced.push_back(write);
        Ok(())
    }

    fn sync(&mut self) -> Result<Ticket, Infallible> {
        self.sync_up_to(Ticket(u64::MAX));
        Ok(self.durable)
    }

    fn let_go(&mut self, snapshot: SnapshotMeta) -> Result<(), Infallible> {
        if snapshot.slot > self.snapshot.slot {
            let count =
                usize::try_from(snapshot.slot.0 - self.snapshot.slot.0).map_or(self.entries.len(), |n| n.min(self.entries.len()));
            self.entries.drain(..count);
            self.snapshot = snapshot;
        }
        Ok(())
    }

    fn recover(&self) -> Result<Recovered, Infallible> {
        let entries = self.entries.iter().cloned().collect();
        Ok(Recovered { hard_state: self.hard_state, snapshot: self.snapshot.clone(), entries })
    }
}
