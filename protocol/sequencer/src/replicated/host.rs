//! The interface to the host of a replica: its calls, in the order in which things happen.

use walras_batch::BlockJob;
use walras_consensus::{Members, ReadToken, ReplicaId, RoleChange, SnapshotMeta, Term, Write};
use walras_engine::{Engine, Numbered};
use walras_types::{EngineVersion, LogIndex, RejectReason};
use walras_wire::Event;

use crate::batches::SolveJob;
use crate::entry::Entry;

/// Sockets, disk and participants of a replica. `O` says who sent a command; it is only carried.
///
/// Nothing here waits. What takes long is begun, and its end is reported to the [`super::ReplicatedSequencer`] by the method that
/// each call names.
pub trait Host<O> {
    /// Send these bytes. They may be lost, doubled and overtaken.
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>);

    /// Make this durable after the writes before it, then say `on_persisted`.
    fn persist(&mut self, write: Write);

    /// The entries of a pack are decided, and are applied next. Of use to a host that measures.
    fn decided(&mut self) {}

    /// An entry was applied. `origin` is who sent it to this very replica, if anybody did.
    fn applied(&mut self, engine: &Engine, applied: AppliedEntry<'_, O>);

    /// Find prices and amounts for a closed batch, then say `on_solved`. Asked of the leader only.
    fn solve(&mut self, job: SolveJob);

    /// Run this on another thread, on every replica: the entry that needs it waits for it, or runs it itself. Call
    /// [`drive_batches`](super::ReplicatedSequencer::drive_batches) when it is done.
    fn run(&mut self, job: BlockJob);

    /// A command that was taken will not be applied under this name here; the reason says what its sender can do.
    fn unresolved(&mut self, origin: O, why: Unresolved);

    /// Take the state as it is now. In the background, make its bytes and say `on_state_hashed`; then make it durable under this
    /// name and say `on_snapshot_durable`. Where earlier ones are still being written it may be left out.
    fn snapshot(&mut self, engine: &mut Engine, meta: SnapshotMeta);

    /// The log before this snapshot, which is durable, is needed no more.
    fn let_go(&mut self, meta: SnapshotMeta);

    /// Send the state of this snapshot, then these bytes as a message; then say `on_snapshot_sent`.
    fn send_snapshot(&mut self, to: ReplicaId, meta: SnapshotMeta, bytes: Vec<u8>);

    /// Go on from this snapshot, which is durable here: everything that the host derived from entries is to be replaced too.
    fn install(&mut self, meta: &SnapshotMeta) -> Result<Engine, String>;

    /// Another term, role or leader.
    fn role(&mut self, change: RoleChange);

    /// This replica leads, and takes commands from now on.
    fn leading(&mut self, term: Term);

    /// Others belong to the cluster from here on.
    fn members(&mut self, members: &Members);

    /// Make this durable now, in the place of what was kept before, next to the log; it goes into
    /// [`super::Introductions::decode`] at the next start. Asked a few times in a replica's life, and again after an error.
    fn keep_introductions(&mut self, bytes: &[u8]) -> Result<(), String>;

    /// Everything committed when the read was asked for has been applied.
    fn read_ready(&mut self, token: ReadToken);
}

/// What came of an entry.
#[derive(Debug)]
pub struct AppliedEntry<'a, O> {
    /// The command, where and when.
    pub entry: &'a Entry,
    /// For a session's command: what it was to its session. For others: [`Numbered::Refused`] where the state refused the nonce, else
    /// `None`.
    pub numbered: Option<Numbered>,
    /// Who sent it to this replica.
    pub origin: Option<O>,
    /// What happened.
    pub events: &'a [Event],
    /// How far the clock that stamped it was ahead of the venue's time, as its leader reported
    /// ([`super::ReplicatedSequencer::report_clock`]). The same on all replicas that heard it.
    pub ahead_ns: Option<i64>,
}

/// Why the outcome of a command that was taken is not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// It is not in the log and never will be: send it again, to `leader` if that is known.
    Lost {
        /// Who leads, as far as it is known.
        leader: Option<ReplicaId>,
    },
    /// This replica's log cannot be written now, for this reason: it may be in the log, and may yet be applied.
    Unwritten(RejectReason),
    /// A snapshot took its place: it may have been applied. A sender with an ordinal asks again under the same one.
    InDoubt,
}

/// Why a command was not taken, or need not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Only the leader takes commands.
    NotLeader {
        /// Who leads, as far as it is known.
        leader: Option<ReplicaId>,
    },
    /// It was applied before.
    Repeated(walras_types::Answer),
    /// The same ordinal is on its way: its answer comes with the entry that holds it.
    OnItsWay,
    /// It cannot be taken, and leaves no trace.
    Refused(RejectReason),
}

/// Why a replica must stop. Nothing that was acknowledged is lost with it, as long as a majority goes on.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The disk lost what it promised, or two replicas share a name.
    #[error(transparent)]
    Consensus(#[from] walras_consensus::StepError),
    /// Another disk took part under this replica's id.
    #[error(transparent)]
    OtherDisk(#[from] super::OtherDisk),
    /// Another replica says otherwise how the cluster began.
    #[error(transparent)]
    OtherGenesis(#[from] super::OtherGenesis),
    /// Another process runs under this replica's id, and this one is the one that has to stop.
    #[error("{0}; this process is the one that stops")]
    TwoProcesses(String),
    /// The disk does not take what must be durable.
    #[error(
        "the log can not be written: {0}; the other replicas go on: free space or replace the disk, then start this replica again, or add \
         it anew under a new id if its disk is lost"
    )]
    Disk(String),
    /// An entry of the log is not one.
    #[error("log entry {log_index}: {source}; the replicas run different versions: run the same on all of them")]
    Entry {
        /// Which.
        log_index: LogIndex,
        /// Why.
        source: crate::entry::EntryError,
    },
    /// The log goes on under rules that this program does not know.
    #[error(
        "log entry {log_index} is under engine version {version}, and this program knows none later than {newest}: start this replica with the \
         program of the others, which is newer; its data folder is as good as theirs"
    )]
    EngineVersion {
        /// Which entry.
        log_index: LogIndex,
        /// Its version.
        version: EngineVersion,
        /// The newest that this program knows.
        newest: EngineVersion,
    },
    /// An entry does not follow the one before it.
    #[error(transparent)]
    Gap(#[from] crate::entry::LogGap),
    /// A snapshot from the leader does not restore.
    #[error(
        "the snapshot at log entry {log_index} that was received does not restore ({detail}); run the same version on all replicas"
    )]
    Install {
        /// The last entry in it.
        log_index: LogIndex,
        /// Why.
        detail: String,
    },
    /// This replica's state is not that of the others.
    #[error(
        "the state after log entry {log_index} differs from that of {others} of {voters} replicas, and agreed after entry {agreed}: \
         this machine computes or remembers wrongly, or runs another version; keep its data folder for analysis, test the machine's memory, and \
         add it anew under a new id"
    )]
    Diverged {
        /// The last point at which the states were equal; 0 when none is known.
        agreed: LogIndex,
        /// Where they differed.
        log_index: LogIndex,
        /// Replicas with another state.
        others: usize,
        /// Replicas that vote.
        voters: usize,
    },
}
