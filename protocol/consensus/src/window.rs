//! The slots in memory that the library reads: those after the newest snapshot, and some before it.

use crate::durable::{Body, HardState, Recovered, SlotEntry, SnapshotMeta};
use crate::ids::{ReplicaId, Slot, Term};
use crate::members::{Members, changes_from_raft, changes_to_raft};
use protobuf::Message as _;
use raft::eraftpb::{ConfState, Entry, EntryType, HardState as RaftHardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use walras_types::LogIndex;

/// Bytes of an entry in a message, in addition to its data.
const ENTRY_OVERHEAD_BYTES: u64 = 24;

pub(crate) struct Window {
    hard_state: RaftHardState,
    members_at_start: ConfState,
    /// Position and term of the slot before the first entry.
    base: (u64, u64),
    entries: VecDeque<Entry>,
    snapshot: SnapshotMeta,
    /// Members that need a newer snapshot than there is.
    wanting: RefCell<BTreeSet<ReplicaId>>,
}

impl Window {
    pub(crate) fn new(recovered: &Recovered) -> Self {
        let Recovered { hard_state, snapshot, entries } = recovered;
        Self {
            hard_state: hard_state_to_raft(hard_state),
            members_at_start: snapshot.members.to_raft(),
            base: (snapshot.slot.0, snapshot.term.0),
            entries: entries.iter().map(entry_to_raft).collect(),
            snapshot: snapshot.clone(),
            wanting: RefCell::default(),
        }
    }

    pub(crate) fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        let kept = first.index.checked_sub(self.base.0 + 1).expect("committed slots are not written again");
        self.entries.truncate(usize::try_from(kept).expect("a log fits in memory"));
        self.entries.extend(entries.iter().cloned());
    }

    pub(crate) fn install(&mut self, snapshot: SnapshotMeta) {
        self.base = (snapshot.slot.0, snapshot.term.0);
        self.entries.clear();
        self.snapshot = snapshot;
    }

    /// Notes a newer snapshot and forgets the slots before it, but for the last `retained`.
    pub(crate) fn let_go(&mut self, snapshot: SnapshotMeta, retained: u64) {
        let base = snapshot.slot.0.saturating_sub(retained);
        while self.base.0 < base
            && let Some(entry) = self.entries.pop_front()
        {
            self.base = (entry.index, entry.term);
        }
        self.snapshot = snapshot;
    }

    pub(crate) fn snapshot_meta(&self) -> &SnapshotMeta {
        &self.snapshot
    }

    pub(crate) fn take_wanting(&mut self) -> BTreeSet<ReplicaId> {
        std::mem::take(self.wanting.get_mut())
    }

    fn last(&self) -> u64 {
        self.base.0 + self.entries.len() as u64
    }

    /// Index in `entries` of a slot above the base.
    fn at(&self, slot: u64) -> usize {
        usize::try_from(slot - self.base.0 - 1).expect("a log fits in memory")
    }
}

impl Storage for Window {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.clone(), self.members_at_start.clone()))
    }

    fn entries(&self, low: u64, high: u64, max_size: impl Into<Option<u64>>, _: GetEntriesContext) -> raft::Result<Vec<Entry>> {
        if low <= self.base.0 {
            return Err(StorageError::Compacted.into());
        }
        let mut room = max_size.into().unwrap_or(u64::MAX);
        let mut slice = Vec::new();
        for entry in self.entries.range(self.at(low)..self.at(high)) {
            let bytes = entry.data.len() as u64 + ENTRY_OVERHEAD_BYTES;
            if bytes > room && !slice.is_empty() {
                break;
            }
            room = room.saturating_sub(bytes);
            slice.push(entry.clone());
        }
        Ok(slice)
    }

    fn term(&self, slot: u64) -> raft::Result<u64> {
        match slot {
            slot if slot == self.base.0 => Ok(self.base.1),
            slot if slot < self.base.0 => Err(StorageError::Compacted.into()),
            slot if slot > self.last() => Err(StorageError::Unavailable.into()),
            slot => Ok(self.entries[self.at(slot)].term),
        }
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base.0 + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        let to = ReplicaId::new(to).expect("a member has an id");
        // A receiver ignores a snapshot that does not list it as a member.
        let serves = self.snapshot.slot.0 >= request_index.max(1).max(self.base.0) && self.snapshot.members.contains(to);
        if serves {
            return Ok(snapshot_to_raft(&self.snapshot));
        }
        self.wanting.borrow_mut().insert(to);
        Err(StorageError::SnapshotTemporarilyUnavailable.into())
    }
}

pub(crate) fn hard_state_to_raft(state: &HardState) -> RaftHardState {
    let vote = state.vote.map_or(0, ReplicaId::get);
    RaftHardState { term: state.term.0, vote, commit: state.commit.0, ..RaftHardState::default() }
}

pub(crate) fn hard_state_from_raft(raft: &RaftHardState) -> HardState {
    HardState { term: Term(raft.term), vote: ReplicaId::new(raft.vote), commit: Slot(raft.commit) }
}

pub(crate) fn entry_to_raft(entry: &SlotEntry) -> Entry {
    let mut raft = Entry { index: entry.slot.0, term: entry.term.0, ..Entry::default() };
    match &entry.body {
        Body::Empty => {}
        Body::Pack(bytes) => raft.data = bytes.clone(),
        Body::Members(changes) => {
            raft.set_entry_type(EntryType::EntryConfChangeV2);
            let bytes = changes_to_raft(changes).write_to_bytes().expect("writing to memory");
            raft.data = bytes.into();
        }
    }
    raft
}

pub(crate) fn entry_from_raft(raft: &Entry) -> SlotEntry {
    let body = match raft.get_entry_type() {
        EntryType::EntryNormal if raft.data.is_empty() => Body::Empty,
        EntryType::EntryNormal => Body::Pack(raft.data.clone()),
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => Body::Members(changes_from_raft(&raft.data)),
    };
    SlotEntry { slot: Slot(raft.index), term: Term(raft.term), body }
}

pub(crate) fn snapshot_to_raft(meta: &SnapshotMeta) -> Snapshot {
    let mut raft = Snapshot::default();
    raft.set_data(meta.log_index.0.to_le_bytes().to_vec().into());
    let inner = raft.mut_metadata();
    inner.index = meta.slot.0;
    inner.term = meta.term.0;
    inner.set_conf_state(meta.members.to_raft());
    raft
}

/// `None` for a snapshot that [`snapshot_to_raft`] did not make.
pub(crate) fn snapshot_from_raft(raft: &Snapshot) -> Option<SnapshotMeta> {
    let inner = raft.get_metadata();
    Some(SnapshotMeta {
        slot: Slot(inner.index),
        term: Term(inner.term),
        log_index: LogIndex(u64::from_le_bytes(*raft.get_data().first_chunk()?)),
        members: Members::from_raft(inner.get_conf_state())?,
    })
}
