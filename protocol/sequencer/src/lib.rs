//! Puts commands in order, has them decided and logged, applies what is decided.
//!
//! A command gets its time when the leader takes it and its log index when the consensus places it. It reaches the engine only once
//! the consensus has decided it. So nothing that anybody sees, an answer, an event or a query, can be lost by a crash. While the
//! log makes one pack durable the next one collects, and while the engine applies one the log writes the next: group commit without
//! a timer.
//!
//! [`ReplicatedSequencer`] stands on the consensus, which it drives: every replica has one, the leader's orders and stamps.
//! Commands that belong to a session are applied exactly once however often they are sent. A venue on one machine is a cluster of
//! one.
//!
//! Fair access switched on, orders reach the sequencer through an [`Intake`] at the leader, which holds them and puts them in the
//! order in which they reached the venue's edge; every replica takes orders from participants then, and passes them on
//! ([`FairAccess`]).
//!
//! Batch markets are driven from here too ([`BatchDriver`]): who takes commands closes their batches in time and has them solved.
//!
//! *Deliberately absent*: the search for prices (a [`SolveJob`] goes out, a [`Solved`] comes back); clocks, threads, sockets and
//! disks. `now` is an argument; a replica's sockets, disk and participants are a [`Host`]. What a session remembers is the
//! engine's.
//!
//! *Invariants*
//! - Log indexes are dense and times never decrease, over restarts and changes of the leader too.
//! - The engine has applied exactly the decided prefix; entries are applied once and in order.
//! - A command that was not taken is handed back to its sender and leaves no trace.
//! - An answer that says what a command did is given after a majority holds the command, and every replica answers alike.
//! - A session's commands leave the intake in the order of their places, each once.
//! - A replica whose state differs from that of the others stops.
//!
//! *Start reading* at [`entry`] for what stands in the log, then [`ReplicatedSequencer`] and [`Host`]; for fair access
//! [`FairAccess`], then [`Intake`].
//!
//! *Sources*: Ongaro, "Consensus: Bridging Theory and Practice", 2014, section 6.3 (linearizable semantics by sessions); Ghalayini
//! et al. (CloudEx), `HotOS` 2021, sections 2 and 3 (the hold, replicated order submission).
#![deny(clippy::float_arithmetic)]

mod audit;
mod batches;
pub mod entry;
mod gateway;
mod intake;
mod replicated;

pub use audit::{AuditError, Auditor};
pub use walras_batch::BlockJob;

pub use batches::{BatchDriver, BatchStep, SolveJob, Solved};
pub use entry::{
    Content, Entry, EntryError, KeyName, LogGap, SignedBy, decode_entry, encode_clearing, encode_entry, encode_signed,
};
pub use gateway::{
    ArrivalCounts, Arrivals, FairAccess, ForwardCounts, ForwardSettings, Forwarded, Forwards, GatewayHost, GatewayMessage,
    GatewayTime, Pack, Promise, RemoteOpening, SessionUse, WAITED_NS_MAX, behind_fingerprint, behind_nonce, logon_nonce,
    open_session,
};
pub use intake::{
    Arrives, GatewayFigures, Intake, IntakeCounts, IntakeFigures, IntakeSettings, Notice, Place, TIMED_ONE_OF, Timed, is_timed,
};
pub use replicated::{
    AppliedEntry, BadStart, DiskId, Halt, Host, Introductions, LeaderTime, NotTaken, OtherDisk, OtherGenesis, ReceiverCounts,
    ReceiverSample, ReleaseCounts, ReleaseRules, ReleaseSteering, ReplicatedSequencer, ReplicatedSettings, StartHalt, Unresolved,
    VersionRefused, is_of_consensus,
};

/// Beyond a limit on waiting commands, an eighth as many cancels may still wait: an overloaded venue lets participants cancel their
/// orders.
const CANCEL_ROOM: usize = 8;

/// Of that room, amends of a size alone may take half. A participant of an overloaded venue reduces its orders with them, but their bytes
/// do not say whether they reduce, so the other half stays free for cancels.
const AMEND_ROOM: usize = 2 * CANCEL_ROOM;

/// How many commands may wait before this one is refused.
fn with_kept_room(max: usize, command: &walras_wire::Command) -> usize {
    let kept = if command.is_cancel() {
        max / CANCEL_ROOM
    } else if command.is_size_amend() {
        max / AMEND_ROOM
    } else {
        0
    };
    max.saturating_add(kept)
}
