//! A replica's requests to its host, and its errors.

use crate::durable::{SnapshotMeta, Write};
use crate::ids::{ReadToken, ReplicaId, Slot, Term};
use crate::members::{MEMBERS_MAX, Members};
use crate::pack::Packed;
use crate::settings::BadSettings;
use crate::wire::BadMessage;
use walras_types::LogIndex;

/// An action for the host. Effects must be started in this order, but none waits for an earlier one to finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a message. Messages may be lost, duplicated and reordered.
    Send {
        /// The receiver.
        to: ReplicaId,
        /// The encoded message.
        bytes: Vec<u8>,
    },
    /// Make this durable after all earlier writes, then call [`crate::Replica::on_persisted`].
    Persist(Write),
    /// These entries are decided: apply them.
    Committed(Committed),
    /// The members have changed: connect to these.
    MembersChanged {
        /// The slot of the change.
        slot: Slot,
        /// All members from this slot on.
        members: Members,
    },
    /// Term, role or leader have changed.
    Role(RoleChange),
    /// This replica leads, and everything committed before its term has been delivered above: it may accept commands.
    Leading {
        /// The term that it leads.
        term: Term,
    },
    /// Everything committed when the read was requested has been delivered above: answer it from the resulting state.
    ReadReady {
        /// The read.
        token: ReadToken,
    },
    /// A member lacks slots that are no longer retained: take a snapshot, make it durable, then call
    /// [`crate::Replica::on_snapshot_produced`]. Once all effects above are applied, the state is that of `slot`, even if the last
    /// entry is in an earlier slot. A snapshot of an earlier slot may not be enough, because the member joined later.
    SnapshotWanted {
        /// The last decided slot.
        slot: Slot,
    },
    /// Transfer the state of this snapshot. Once the receiver has made it durable, send it `bytes` as a message. Then report the
    /// result with [`crate::Replica::on_snapshot_sent`].
    SendSnapshot {
        /// The receiver.
        to: ReplicaId,
        /// The snapshot.
        snapshot: SnapshotMeta,
        /// The message for the receiver.
        bytes: Vec<u8>,
    },
    /// Replace the state by that of this snapshot, which the current message announced.
    Install(SnapshotMeta),
}

/// Committed entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Their slot.
    pub slot: Slot,
    /// The term of the leader that proposed them. Slot and term together identify a proposal.
    pub term: Term,
    /// Index of the first entry; the next ones follow without a gap.
    pub first: LogIndex,
    /// The entries.
    pub pack: Packed,
}

/// The role of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A follower, which may not know the leader.
    Follower {
        /// The leader of this term, if known.
        leader: Option<ReplicaId>,
    },
    /// A candidate, or a pre-candidate.
    Candidate,
    /// The leader.
    Leader,
}

/// A role in a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// The term.
    pub term: Term,
    /// The role.
    pub role: Role,
}

/// Why a replica refused a request. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Only the leader can do this.
    #[error("replica is not the leader; ask replica {}", .leader.map_or_else(|| "again after the election".to_owned(), |id| id.to_string()))]
    NotLeader {
        /// The leader, if known.
        leader: Option<ReplicaId>,
    },
    /// The leader has just been elected and does not know yet what is committed.
    #[error("the leader was elected a moment ago; try again when it is leading")]
    NotYetLeading,
    /// The pack is empty.
    #[error("a pack without entries; propose at least one")]
    Empty,
    /// The pack is too large.
    #[error("a pack of {bytes} bytes, and {bytes_max} at most; propose it in parts")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Too many entries are uncommitted, or leadership is being transferred.
    #[error("too much waits to be committed, or leadership is being handed over; try again in a moment")]
    Busy,
    /// Another change of members is in progress.
    #[error("another change of members is under way; try again when it is complete")]
    MembersChanging,
    /// The change would leave no voter, is empty, names a replica twice, or makes too many members.
    #[error(
        "the change of members names nobody, names a replica twice, leaves no voter, or makes more than {MEMBERS_MAX}; correct it"
    )]
    BadChange,
    /// After the change, too few voters would be reachable.
    #[error(
        "after this change too few of its voters would keep up with the leader for anything to be decided: replica {id} was not heard just now, or \
         needs a snapshot; start it, add it as a learner first, and try again when `walras cluster status` shows that it has caught up"
    )]
    OutOfReach {
        /// A voter that does not keep up.
        id: ReplicaId,
    },
    /// The chosen replica cannot lead.
    #[error("replica {to} does not vote in this cluster; choose a voter")]
    NoVoter {
        /// The chosen replica.
        to: ReplicaId,
    },
}

/// A fault outside this replica, with which it must not continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The message is for another replica or malformed. It was dropped; the replica continues.
    #[error(transparent)]
    Message(#[from] BadMessage),
    /// The replica lacks slots that it acknowledged: its disk lost or changed them.
    #[error(
        "the leader of term {term} counts on slot {slot}, which this replica acknowledged and holds no more or holds otherwise: its \
         disk lost durable data, or an old backup was restored; stop it, remove it from the cluster and add it again under a new id"
    )]
    LostSlots {
        /// The leader's term.
        term: Term,
        /// The slot.
        slot: Slot,
    },
    /// Another replica leads in the term that this replica leads.
    #[error(
        "replica {other} says that it leads term {term}, in which this replica leads: two replicas share an id, or one forgot \
         its vote; stop both and find out which before anything else"
    )]
    TwoLeaders {
        /// The term.
        term: Term,
        /// The other leader.
        other: ReplicaId,
    },
}

/// Why a replica cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The settings make no sense.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// The recovered log is inconsistent.
    #[error(
        "the recovered log is inconsistent at slot {slot} ({detail}); restore it from a backup, or add the replica again under a new id"
    )]
    Log {
        /// The slot of the fault.
        slot: Slot,
        /// The fault.
        detail: &'static str,
    },
}
