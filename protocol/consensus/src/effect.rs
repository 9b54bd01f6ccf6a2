//! What a replica asks of its host, and how it says no.

use crate::durable::{SnapshotMeta, Write};
use crate::ids::{ReadToken, ReplicaId, Slot, Term};
use crate::members::{MEMBERS_MAX, Members};
use crate::pack::Packed;
use crate::settings::BadSettings;
use crate::wire::BadMessage;
use walras_types::LogIndex;

/// Something for the host to do. Effects stand in the order in which they must be begun; none waits for an earlier one to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send these bytes. They may be lost, doubled and overtaken.
    Send {
        /// To whom.
        to: ReplicaId,
        /// A message.
        bytes: Vec<u8>,
    },
    /// Make this durable, after the writes before it, and then say so: [`crate::Replica::on_persisted`].
    Persist(Write),
    /// These entries are decided for ever: apply them.
    Committed(Committed),
    /// These are the members from here on. Whoever connects replicas goes by it.
    MembersChanged {
        /// Where in the log.
        slot: Slot,
        /// All of them.
        members: Members,
    },
    /// Term, role or leader are other than before.
    Role(RoleChange),
    /// This replica leads, and all that was committed before it did has been handed out above: it may take commands.
    Leading {
        /// The term that it leads.
        term: Term,
    },
    /// Everything committed when the read was asked for has been handed out above: answer it from the state as it is then.
    ReadReady {
        /// The read.
        token: ReadToken,
    },
    /// A member lacks slots that are no longer kept: take a snapshot, make it durable, and say so:
    /// [`crate::Replica::on_snapshot_produced`]. With everything above applied, the state is that of `slot`, although the last entries
    /// may stand in an earlier one; one of an earlier slot may not do, because the member came later.
    SnapshotWanted {
        /// The last slot decided.
        slot: Slot,
    },
    /// Send the state of this snapshot, and when its receiver has it durably, these bytes as a message. Then say how it went:
    /// [`crate::Replica::on_snapshot_sent`].
    SendSnapshot {
        /// To whom.
        to: ReplicaId,
        /// Which snapshot.
        snapshot: SnapshotMeta,
        /// The message for its receiver.
        bytes: Vec<u8>,
    },
    /// Go on from the state of this snapshot, which came with the message just stepped, instead of the one at hand.
    Install(SnapshotMeta),
}

/// Entries that a majority holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Where they stand, all of them.
    pub slot: Slot,
    /// The term of the leader who proposed them. With the slot it tells a proposer that they are the ones that it proposed.
    pub term: Term,
    /// Index of the first entry; the next ones follow without a gap.
    pub first: LogIndex,
    /// The entries.
    pub pack: Packed,
}

/// What a replica is to its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Follows, perhaps without knowing whom.
    Follower {
        /// The leader it last heard of in this term.
        leader: Option<ReplicaId>,
    },
    /// Stands for election, or asks whether it should.
    Candidate,
    /// Leads.
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

/// Why a replica does not do what its host asks. Nothing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Only the leader can.
    #[error("replica is not the leader; ask replica {}", .leader.map_or_else(|| "again after the election".to_owned(), |id| id.to_string()))]
    NotLeader {
        /// Who is, as far as it knows.
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
    /// Too much waits to be committed, or leadership is being handed over.
    #[error("too much waits to be committed, or leadership is being handed over; try again in a moment")]
    Busy,
    /// One change of members at a time.
    #[error("another change of members is under way; try again when it is complete")]
    MembersChanging,
    /// The change would leave no voter, names nobody, names somebody twice, or makes too many.
    #[error(
        "the change of members names nobody, names a replica twice, leaves no voter, or makes more than {MEMBERS_MAX}; correct it"
    )]
    BadChange,
    /// After the change too few of the voters would be in reach.
    #[error(
        "after this change too few of its voters would keep up with the leader for anything to be decided: replica {id} was not heard just now, or \
         needs a snapshot; start it, add it as a learner first, and try again when `walras cluster status` shows that it has caught up"
    )]
    OutOfReach {
        /// One of those that do not keep up.
        id: ReplicaId,
    },
    /// The replica can not lead.
    #[error("replica {to} does not vote in this cluster; choose a voter")]
    NoVoter {
        /// Who should have led.
        to: ReplicaId,
    },
}

/// Something that this replica did not bring about and must not go on with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The message is not for it, or not well-formed. It was dropped; the replica goes on.
    #[error(transparent)]
    Message(#[from] BadMessage),
    /// It promised to hold slots that it does not have: its disk lost or changed them.
    #[error(
        "the leader of term {term} counts on slot {slot}, which this replica acknowledged and holds no more or holds otherwise: its \
         disk lost durable data, or an old backup was restored; stop it, remove it from the cluster and add it anew under a new id"
    )]
    LostSlots {
        /// The leader's term.
        term: Term,
        /// The slot.
        slot: Slot,
    },
    /// Somebody else leads in a term that this replica leads.
    #[error(
        "replica {other} says that it leads term {term}, in which this replica leads: two replicas share an id, or one forgot \
         its vote; stop both and find out which before anything else"
    )]
    TwoLeaders {
        /// The term.
        term: Term,
        /// Who says so.
        other: ReplicaId,
    },
}

/// A replica that can not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The settings make no sense.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// What was recovered does not hold together.
    #[error(
        "the recovered log does not hold together at slot {slot} ({detail}); restore it from a backup, or add the replica anew under a new id"
    )]
    Log {
        /// Where.
        slot: Slot,
        /// What is wrong.
        detail: &'static str,
    },
}
