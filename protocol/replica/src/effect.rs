//! What a replica wants to happen.

use walras_consensus::{Members, ReplicaId, RoleChange, SnapshotMeta, Term, Write};
use walras_fair_access::GatewayId;
use walras_sequencer::{BlockJob, SolveJob};
use walras_types::{BatchMarketId, Ordinal};

use crate::WaiterId;
use crate::feed::FeedPiece;
use crate::frozen::FrozenState;
use crate::outcome::{NoOutcome, NumberedOutcome, Outcome};
use crate::transactions::VerifyJob;

/// Something for the driver to do, in this order. Where it has an end that the replica must know, the input that reports it is
/// named.
pub enum Effect {
    /// Send these bytes to another replica. They may be lost.
    Send {
        /// Which.
        to: ReplicaId,
        /// What.
        bytes: Vec<u8>,
    },
    /// Make this durable after the writes before it: [`crate::Replica::on_persisted`]. A write is owed until that is so, whatever
    /// the disk does meanwhile: [`crate::Replica::on_storage`].
    Persist(Write),
    /// Make this state's bytes: [`crate::Replica::on_state_hashed`]; then make them durable:
    /// [`crate::Replica::on_snapshot_written`].
    Snapshot {
        /// Its name.
        meta: SnapshotMeta,
        /// The state.
        state: Box<FrozenState>,
    },
    /// The log before this snapshot, which is durable, is needed no more.
    LetGo(SnapshotMeta),
    /// Send the state of this snapshot, then these bytes as a message: [`crate::Replica::on_snapshot_sent`].
    SendSnapshot {
        /// To whom.
        to: ReplicaId,
        /// Which.
        meta: SnapshotMeta,
        /// The message.
        message: Vec<u8>,
    },
    /// Find prices and amounts for a closed batch: [`crate::Replica::on_solved`].
    Solve(SolveJob),
    /// Run this on another thread, then let the replica look at its deadlines: the entry that needs it would have to wait, or to
    /// run it itself.
    Run(BlockJob),
    /// Check the signatures of these transactions: [`crate::Replica::on_verified`].
    Verify(VerifyJob),
    /// Give this to the binary feed: it is sent, or kept, and released at its time.
    Publish(FeedPiece),
    /// A local request has its answer.
    Answer {
        /// Which.
        waiter: WaiterId,
        /// What.
        answer: WaiterAnswer,
    },
    /// Another term, role or leader.
    Role(RoleChange),
    /// This replica leads, and takes commands from now on.
    Leading(Term),
    /// Others belong to the cluster from here on.
    Members(Members),
    /// For the operator: this leader hands over.
    HandsOver {
        /// To whom.
        to: ReplicaId,
        /// Why.
        why: HandoverReason,
    },
    /// For the operator: two copies of a command differ, and the first one counts.
    CopiesDiffer {
        /// The gateway of the second one.
        gateway: GatewayId,
        /// The command.
        ordinal: Ordinal,
    },
}

/// Why a leader hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoverReason {
    /// Most other clocks are so many nanoseconds ahead of its own. See [`crate::clock_trouble`].
    Clock {
        /// How many.
        error_ns: i128,
    },
    /// Its log cannot be written.
    Storage,
    /// Every block of this batch market in its term was set aside as a whole.
    IdleMarket(BatchMarketId),
}

/// What a local request hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaiterAnswer {
    /// What came of a command.
    Command(Result<Outcome, NoOutcome>),
    /// What came of a session's command.
    Numbered(Result<NumberedOutcome, NoOutcome>),
    /// The state has all that was acknowledged anywhere before the read was asked for.
    Read,
}

impl std::fmt::Debug for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Send { to, bytes } => write!(f, "Send({to}, {} bytes)", bytes.len()),
            Self::Persist(write) => write!(f, "Persist({:?})", write.ticket),
            Self::Snapshot { meta, .. } => write!(f, "Snapshot({meta:?})"),
            Self::LetGo(meta) => write!(f, "LetGo({meta:?})"),
            Self::SendSnapshot { to, meta, .. } => write!(f, "SendSnapshot({to}, {meta:?})"),
            Self::Solve(_) => write!(f, "Solve"),
            Self::Run(job) => write!(f, "Run({job:?})"),
            Self::Verify(job) => write!(f, "Verify({}, {} transactions)", job.frame, job.transactions.len()),
            Self::Publish(piece) => write!(f, "Publish({}, {:?})", piece.log_index, piece.part),
            Self::Answer { waiter, answer } => write!(f, "Answer({waiter:?}, {answer:?})"),
            Self::Role(change) => write!(f, "Role({change:?})"),
            Self::Leading(term) => write!(f, "Leading({term})"),
            Self::Members(members) => write!(f, "Members({members:?})"),
            Self::HandsOver { to, why } => write!(f, "HandsOver({to}, {why:?})"),
            Self::CopiesDiffer { gateway, ordinal } => write!(f, "CopiesDiffer({gateway}, {ordinal:?})"),
        }
    }
}
