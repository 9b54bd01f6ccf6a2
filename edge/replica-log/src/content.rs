//! The state that the records build up: the replica's promises, and the record of each current slot.

use crate::record::{Head, REPLICA_LOG_VERSION, Record, decode, peek_slot};
use std::collections::VecDeque;
use walras_consensus::{HardState, Slot, SnapshotMeta, Term};
use walras_log_store::{DiskFile, LogError, LogReader};
use walras_types::LogIndex;

/// A current slot: its term, and the index of its record in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) term: Term,
    pub(crate) record: LogIndex,
}

/// The state after a number of records. Takes 16 bytes per slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub(crate) hard_state: HardState,
    /// The last installed snapshot, and its record: the log continued after it.
    pub(crate) installed: Option<(SnapshotMeta, LogIndex)>,
    /// The slot of the first element of `places`.
    first_slot: u64,
    /// The current slots. A slot's record overrides earlier records of that slot and all later slots, so records ascend with slots.
    places: VecDeque<Place>,
    /// The last head.
    pub(crate) head: Option<Head>,
    /// Whether the last record marks an orderly close.
    pub(crate) is_closed: bool,
}

/// A record that contradicts earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) record: LogIndex,
    pub(crate) detail: String,
}

pub(crate) enum ScanError {
    Store(LogError),
    Misfit(Misfit),
}

impl Content {
    /// Reads all records. Stops at a head of another version or one that `is_ours` rejects, because what follows may mean anything.
    pub(crate) fn scan<F: DiskFile>(mut reader: LogReader<F>, is_ours: impl Fn(&Head) -> bool) -> Result<Self, ScanError> {
        let mut content = Self::default();
        while let Some(entry) = reader.next().map_err(ScanError::Store)? {
            content.is_closed = false;
            if let Some((slot, term)) = peek_slot(entry.payload) {
                content.note_slot(entry.index, slot, term).map_err(ScanError::Misfit)?;
                continue;
            }
            match decode(entry.payload) {
                Some(Record::Head(head)) => {
                    content.head = Some(head);
                    if head.version != REPLICA_LOG_VERSION || !is_ours(&head) {
                        return Ok(content);
                    }
                }
                Some(Record::State(state)) => content.hard_state = state,
                Some(Record::Installed(meta)) => content.note_installed(entry.index, meta),
                Some(Record::Closed) => content.is_closed = true,
                Some(Record::Slot(_)) | None => {
                    return Err(ScanError::Misfit(Misfit { record: entry.index, detail: "it does not decode".to_owned() }));
                }
            }
        }
        Ok(content)
    }

    pub(crate) fn note_installed(&mut self, record: LogIndex, meta: SnapshotMeta) {
        self.places.clear();
        self.first_slot = meta.slot.0 + 1;
        self.installed = Some((meta, record));
    }

    pub(crate) fn note_slot(&mut self, record: LogIndex, slot: Slot, term: Term) -> Result<(), Misfit> {
        let misfit = |detail: String| Err(Misfit { record, detail });
        if let Some((installed, _)) = &self.installed
            && slot <= installed.slot
        {
            return misfit(format!("slot {slot} comes after a snapshot of slot {} was installed", installed.slot));
        }
        let next = match (self.last_slot(), &self.installed) {
            (Some(last), _) => Some(last.next()),
            (None, Some((installed, _))) => Some(installed.slot.next()),
            // Earlier slots were dropped.
            (None, None) => None,
        };
        if let Some(next) = next
            && slot > next
        {
            return misfit(format!("slot {slot} comes where slot {next} or an earlier one must"));
        }
        match slot.0.checked_sub(self.first_slot) {
            Some(kept) if !self.places.is_empty() => {
                self.places.truncate(usize::try_from(kept).expect("it is at most the number of places"));
            }
            _ => {
                self.places.clear();
                self.first_slot = slot.0;
            }
        }
        self.places.push_back(Place { term, record });
        Ok(())
    }

    /// The first slot held.
    pub(crate) fn first_slot(&self) -> Option<Slot> {
        (!self.places.is_empty()).then_some(Slot(self.first_slot))
    }

    /// The last slot held.
    pub(crate) fn last_slot(&self) -> Option<Slot> {
        (!self.places.is_empty()).then(|| Slot(self.first_slot + self.places.len() as u64 - 1))
    }

    /// The slot after the last one whose record comes before this one.
    pub(crate) fn end_before(&self, record: LogIndex) -> Slot {
        Slot(self.first_slot + self.places.partition_point(|place| place.record < record) as u64)
    }

    pub(crate) fn place(&self, slot: Slot) -> Option<Place> {
        self.places.get(usize::try_from(slot.0.checked_sub(self.first_slot)?).ok()?).copied()
    }

    /// The records of the slots in a range; all of them must be held.
    pub(crate) fn records(&self, slots: std::ops::Range<Slot>) -> VecDeque<LogIndex> {
        let at = |slot: Slot| usize::try_from(slot.0 - self.first_slot).expect("the caller asks for slots that are held");
        self.places.range(at(slots.start)..at(slots.end)).map(|place| place.record).collect()
    }

    /// Whether the log continues from this snapshot.
    pub(crate) fn reaches(&self, meta: &SnapshotMeta) -> bool {
        match (self.place(meta.slot), &self.installed) {
            (Some(place), _) => place.term == meta.term,
            (None, Some((installed, _))) => installed.slot == meta.slot && installed.term == meta.term,
            (None, None) => false,
        }
    }

    /// The first record that is needed to continue from the state at `slot`.
    pub(crate) fn record_at(&self, slot: Slot) -> Option<LogIndex> {
        let installed = self.installed.as_ref().filter(|(meta, _)| meta.slot == slot).map(|(_, record)| *record);
        self.place(slot).map(|place| place.record).or(installed)
    }

    /// Drops slots whose records come before this one, in constant time.
    pub(crate) fn forget_before(&mut self, record: LogIndex) {
        let gone = self.places.partition_point(|place| place.record < record);
        self.places.drain(..gone);
        self.first_slot += gone as u64;
        if self.installed.as_ref().is_some_and(|(_, at)| *at < record) {
            self.installed = None;
        }
    }
}
