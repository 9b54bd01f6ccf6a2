//! One replica of a venue as a state machine without I/O: it joins order entry, fair access, the sequencer, the engine and what is
//! derived from it. Inputs come in by the methods of [`Replica`], what is to be done goes out as [`Effect`]s.
//! `edge/node` runs it on real sockets, clocks and disks, `tools/sim` on simulated ones; both run this code.
//!
//! *Deliberately absent*: sockets, encryption, threads, clocks, files; the log (`walras-consensus`), the order of commands
//! (`walras-sequencer`), what a command does (`walras-engine`), the bytes of a session (`walras-gateway`).
//!
//! *Invariants*
//! - A connection hears of its own session and account only, and of each answer and report once.
//! - Several connections have one session only where all of them send copies; otherwise the latest logon has it.
//! - A session that a connection waits for is asked for until nobody waits for it any more.
//!
//! - A request that waits is answered once, unless it gives up; within a bounded time, whatever the log does.
//! - Whatever is not an input changes nothing: no clock, no entropy, no order of threads.
//!
//! *Start reading* at [`Replica::round`]; what it wants to happen is [`Effect`].

mod effect;
mod entry_backend;
mod entry_host;
mod entry_names;
mod entry_server;
mod feed;
mod from_leaves;
mod frozen;
mod host;
mod leaderless;
mod leaf;
mod leaves;
mod numbered;
mod order_entry;
mod order_waits;
mod outcome;
mod peer_clocks;
mod pending_cancels;
mod probe;
mod reads;
mod replica;
mod resends;
mod state;
mod storage;
mod transactions;

use walras_sequencer::RemoteOpening;

pub use effect::{Effect, HandoverReason, WaiterAnswer};
pub use entry_host::{EntryConnections, EntryHost};
pub use feed::{FeedPart, FeedPiece, FeedRun};
pub use frozen::{FrozenState, WritePart, engine_hash, split_part, split_parts};
pub use leaf::{LEAF, Leaf, LeafEffect, LeafMessage, LeafSession, LeafSettings, Listing, OwnedReport, PublicationMark};
pub use order_entry::{Charge, ConnectionEnd, EntryProtocol, Loss, OrderEntry};
pub use order_waits::{OrderWait, OrderWaits};
pub use outcome::{Kept, NoOutcome, Number, NumberedOutcome, Outcome};
pub use peer_clocks::clock_trouble;
pub use probe::{Applied, PassedOn, Probe, Publication, Route};
pub use replica::{KeptState, PublishSettings, Replica, ReplicaDisk, ReplicaSettings};
pub use state::{Derived, State};
pub use storage::Storage;
pub use transactions::{VerifyJob, refuse_torn};

/// A participant's connection. The driver chooses it: `place` is its place in a list of connections, which may be used again;
/// `serial` never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    /// Its place.
    pub place: usize,
    /// Different for each connection of a process.
    pub serial: u64,
}

/// A local request that waits for an outcome. The driver chooses it and knows who that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub u64);

/// Who sent a command to this replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A local request that waits for its outcome.
    Waiter(WaiterId),
    /// A connection that waits for its session.
    Opens(StreamId),
    /// A connection of a gateway, this one perhaps, that waits for its session.
    OpensElsewhere(RemoteOpening),
    /// A frame of transactions waits for what comes of one of them.
    Transaction {
        /// The frame's number at this replica.
        frame: u64,
        /// The transaction's place in it.
        place: u16,
    },
}
