//! What a replica must recover after a crash, and the interface to its storage.

use crate::ids::{ReplicaId, Slot, Term, Ticket};
use crate::members::{MemberChange, Members, decode_changes, encode_changes};
use crate::wire;
use bytes::Bytes;
use walras_types::LogIndex;

/// What a slot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing: a leader opens its term with it.
    Empty,
    /// The encoding of a [`crate::Pack`].
    Pack(Bytes),
    /// A change of members; without any, the end of a joint configuration.
    Members(Vec<MemberChange>),
}

impl Body {
    /// Appends its bytes to a buffer: a kind, then the pack or each change as a kind and an id.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Empty => bytes.push(0),
            Self::Pack(pack) => {
                bytes.push(1);
                bytes.extend_from_slice(pack);
            }
            Self::Members(changes) => {
                bytes.push(2);
                bytes.extend_from_slice(&encode_changes(changes));
            }
        }
    }

    /// Decodes a body; a pack's content is not checked.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (0, []) => Some(Self::Empty),
            (1, pack) if !pack.is_empty() => Some(Self::Pack(Bytes::copy_from_slice(pack))),
            (2, changes) => decode_changes(changes).map(Self::Members),
            _ => None,
        }
    }

    /// How many bytes [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        1 + match self {
            Self::Empty => 0,
            Self::Pack(pack) => pack.len(),
            Self::Members(changes) => encode_changes(changes).len(),
        }
    }
}

/// A slot with the term in which it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotEntry {
    /// Its position.
    pub slot: Slot,
    /// The term of the leader who wrote it.
    pub term: Term,
    /// What it holds.
    pub body: Body,
}

/// Promises of a replica; forgetting one may cost acknowledged entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    /// It takes part in no earlier term.
    pub term: Term,
    /// The candidate that it voted for in that term.
    pub vote: Option<ReplicaId>,
    /// It knew that this slot, and all before it, were committed.
    pub commit: Slot,
}

/// The place in the log where a snapshot of the state was taken. The state itself is the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotMeta {
    /// The last slot that is part of it; 0 before the first.
    pub slot: Slot,
    /// The term of that slot.
    pub term: Term,
    /// The last entry that is part of it.
    pub log_index: LogIndex,
    /// The members at that slot.
    pub members: Members,
}

impl SnapshotMeta {
    /// The beginning of a cluster: no entry, these members. The same for all who begin it, and for all who join it later.
    #[must_use]
    pub fn genesis(members: Members) -> Self {
        Self { slot: Slot(0), term: Term(0), log_index: LogIndex(0), members }
    }

    /// Appends its bytes to a buffer: slot, term, log index, and four lists of members, each a count (u32) and ids.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        wire::put_snapshot(bytes, self);
    }

    /// The place with exactly these bytes; `None` also for members that make no sense.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        wire::decode_snapshot(Bytes::copy_from_slice(bytes))
    }
}

/// An atomic write to the disk, never durable before the writes with lower tickets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Reported back when the write is durable.
    pub ticket: Ticket,
    /// Replaces the previous one. Every write carries it, so that its commit index is never older than its entries.
    pub hard_state: HardState,
    /// An installed snapshot: the log is now empty and continues after it.
    pub installed: Option<SnapshotMeta>,
    /// Entries to append, after truncating the log at the first entry's slot.
    pub entries: Vec<SlotEntry>,
}

impl Write {
    /// Merges `later` into this write, with the same result as both in order. The merged write may be written even if some of the
    /// merged writes are already on the disk. It takes no more memory than the log that results.
    ///
    /// # Panics
    /// If tickets or slots are not consecutive.
    pub fn absorb(&mut self, later: Self) {
        let Self { ticket, hard_state, installed, entries } = later;
        assert!(ticket > self.ticket, "tickets ascend");
        (self.ticket, self.hard_state) = (ticket, hard_state);
        if installed.is_some() {
            self.entries.clear();
            self.installed = installed;
        }
        let Some(cut) = entries.first().map(|entry| entry.slot) else { return };
        let first = self.entries.first().map_or(cut, |entry| entry.slot);
        let kept = usize::try_from(cut.0.saturating_sub(first.0)).expect("a log fits in memory");
        assert!(kept <= self.entries.len(), "slots are written without gaps");
        self.entries.truncate(kept);
        self.entries.extend(entries);
    }
}

/// The state recovered at a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last hard state written.
    pub hard_state: HardState,
    /// The newest snapshot whose state is available; [`SnapshotMeta::genesis`] if there is none.
    pub snapshot: SnapshotMeta,
    /// The slots after it, without a gap.
    pub entries: Vec<SlotEntry>,
}

impl Recovered {
    /// An empty log.
    #[must_use]
    pub fn genesis(members: Members) -> Self {
        Self { hard_state: HardState::default(), snapshot: SnapshotMeta::genesis(members), entries: Vec::new() }
    }
}

/// Stores writes: [`crate::MemoryLog`] in tests and simulation, segments on a disk in production.
///
/// After a crash a prefix of the writes remains, which includes at least all that [`sync`](Self::sync) reported.
pub trait DurableLog {
    /// Why an operation failed.
    type Error;

    /// Appends a write, which may be lost until synced.
    fn write(&mut self, write: Write) -> Result<(), Self::Error>;

    /// Makes all writes durable; returns the last ticket.
    fn sync(&mut self) -> Result<Ticket, Self::Error>;

    /// The state at `snapshot` is durable, so the slots up to it may be deleted.
    fn let_go(&mut self, snapshot: SnapshotMeta) -> Result<(), Self::Error>;

    /// Recovers the stored state.
    fn recover(&self) -> Result<Recovered, Self::Error>;
}
