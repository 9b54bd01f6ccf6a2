//! What happens in a cluster, and how far a run is.

use super::faults::Lasting;
use super::net::Direction;
use super::replica::{ReplicaTimer, StreamId};
use super::signed_order::Signed;
use super::under_way::{ForkEvent, KeyNews};

pub(super) enum Event {
    Message {
        from: usize,
        to: usize,
        bytes: Vec<u8>,
    },
    /// For the process of that generation; a later one has its own.
    Timer {
        replica: usize,
        generation: u64,
        timer: ReplicaTimer,
    },
    Stream(StreamId, Direction),
    Connect {
        client: usize,
        line: usize,
        replica: usize,
    },
    Connected {
        client: usize,
        line: usize,
        stream: StreamId,
    },
    NotConnected {
        client: usize,
        line: usize,
    },
    Client(usize),
    /// The next piece of a snapshot arrives.
    Piece(u64),
    /// The sender of a snapshot hears what became of it.
    TransferEnded {
        from: usize,
        generation: u64,
        to: usize,
        arrived: bool,
    },
    Start(usize),
    Fault,
    /// What a fault left behind passes.
    Passes(Lasting),
    /// A process is killed and comes back at once.
    Blink(usize),
    NetworkHeals,
    DiskHasRoom(usize),
    DiskIsBack(usize),
    /// A replica hears that its link to another one was closed or broke.
    LinkLost {
        at: usize,
        generation: u64,
        peer: usize,
    },
    /// A link between two replicas breaks.
    LinkBreaks,
    /// A disk is lost.
    LoseDisk,
    /// The operator looks after replicas that are lost.
    Repair,
    /// A leaf gateway starts.
    LeafStarts(usize),
    /// A leaf gateway is killed.
    LeafDies(usize),
    /// A leaf gateway makes a link.
    LeafLinks {
        leaf: usize,
        replica: usize,
    },
    /// Something is due in the relay tree.
    Overlay,
    /// Something is due at a leaf gateway.
    LeafWakes {
        leaf: usize,
        generation: u64,
    },
    Read,
    /// The members are changed, and soon again.
    Restless,
    /// Somebody asks for the rules of the next release.
    AskForNextRules,
    /// A FIX client looks for something to do.
    FixWakes(usize),
    /// The program without a connection sends something.
    Request,
    /// The program that signs each order by itself sends something.
    Sign,
    /// Somebody sends a recorded request of that again.
    Replay {
        replica: usize,
        signed: Signed,
    },
    Fork(ForkEvent),
    /// Replicas look for keys to share.
    ShareKeys,
    /// A replica hears of keys, if its process is still that one.
    KeyNews {
        to: usize,
        generation: u64,
        news: KeyNews,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Safety,
    Healing { since_ns: u64 },
}

/// What the end of a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// A client is not logged on, or lacks answers.
    Client(usize),
    NoLeader,
    /// A batch of the market at this leader is not closed, or not cleared.
    Batch(usize),
    /// Members do not have all entries.
    Lagging,
    /// A client has not heard all reports.
    Reports,
    /// The program without a connection lacks an answer.
    Requester,
    /// The program that signs each order by itself lacks one.
    Signer,
    /// A FIX client is not logged on, or lacks something.
    Fix(usize),
    /// A reader below the relay tree lacks something.
    Reader,
    /// A replica does not know which keys there are.
    Keys(usize),
}
