//! Who there is, and what they send each other.

use walras_gateway::AuthFields;
use walras_types::{LogIndex, RejectReason, TimeNs};
use walras_wire::{Command, Event};

/// A machine that runs the venue, or a replica of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) usize);

/// A client, or the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) usize);

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    Node(NodeId),
    Client(ClientId),
}

/// One sending of a command: a retry is another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AttemptId(pub(crate) u64);

/// How a copy of a request came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    /// The client sent it.
    Original,
    /// Somebody recorded it and sends it again; the answer goes to them.
    Replayed,
}

/// A signed command.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) attempt: AttemptId,
    pub(crate) copy: Copy,
    pub(crate) from: ClientId,
    pub(crate) fields: AuthFields,
    /// The command's bytes.
    pub(crate) body: Vec<u8>,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is durable, and this is what it did.
    Done(Done),
    /// It was not taken.
    Refused(RejectReason),
    /// It was being written, and nobody knows whether it will be found in the log.
    InDoubt,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) log_index: LogIndex,
    pub(crate) time: TimeNs,
    pub(crate) command: Command,
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) attempt: AttemptId,
    pub(crate) answer: Answer,
}

#[derive(Clone, Debug)]
pub(crate) enum Message {
    Request(Request),
    Reply(Reply),
}

/// The method and path that every request signs: the API's own are the node's, and mean nothing here.
pub(crate) const METHOD: &str = "POST";
pub(crate) const PATH: &str = "/commands";
