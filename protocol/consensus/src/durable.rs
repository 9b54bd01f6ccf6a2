//! What a replica must find again after a crash, and the seam to whoever keeps it.

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

    /// The body with exactly these bytes; the content of a pack is not looked at.
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
    /// Whom it voted for in that term.
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

/// What shall become durable: all of it or nothing, and never before the writes with lower tickets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Say this when it is durable.
    pub ticket: Ticket,
    /// Replaces the one before. Every write carries it, so that its commit is never older than its entries.
    pub hard_state: HardState,
    /// A snapshot that was installed: the log is now empty and goes on after it.
    pub installed: Option<SnapshotMeta>,
    /// First cut the log at the slot of the first one, if it reaches that far, then append them.
    pub entries: Vec<SlotEntry>,
}

impl Write {
    /// Makes this write one that comes to the same as it and then `later`, whichever of the writes behind it are on the disk already:
    /// it may be written again, and takes no more memory than the log that they leave.
    ///
    /// # Panics
    /// When tickets or slots do not follow those before.
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

/// What was found after a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The last one written.
    pub hard_state: HardState,
    /// The newest snapshot whose state is there; [`SnapshotMeta::genesis`] when there is none.
    pub snapshot: SnapshotMeta,
    /// The slots after it, without a gap.
    pub entries: Vec<SlotEntry>,
}

impl Recovered {
    /// Nothing but the beginning.
    #[must_use]
    pub fn genesis(members: Members) -> Self {
        Self { hard_state: HardState::default(), snapshot: SnapshotMeta::genesis(members), entries: Vec::new() }
    }
}

/// Keeps writes: [`crate::MemoryLog`] in tests and simulation, segments on a disk in production.
///
/// After a crash a prefix of the writes is there that holds at least every one that [`sync`](Self::sync) reported.
pub trait DurableLog {
    /// Why it can not.
    type Error;

    /// Takes a write; it may be lost until synced.
    fn write(&mut self, write: Write) -> Result<(), Self::Error>;

    /// Makes all that was written durable; returns the last ticket.
    fn sync(&mut self) -> Result<Ticket, Self::Error>;

    /// The state at `snapshot` is durable, so the slots up to it may go.
    fn let_go(&mut self, snapshot: SnapshotMeta) -> Result<(), Self::Error>;

    /// What it holds.
    fn recover(&self) -> Result<Recovered, Self::Error>;
}
