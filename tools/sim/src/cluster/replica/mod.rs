//! A replica: the product's state machines, and in place of its threads, sockets and links a few timers and queues.

mod batches;
pub(super) mod fair;
mod feed;
mod moment;
mod process;
pub(crate) mod releases;
mod start;
mod storage;
mod streams;
mod watch;
mod wrong;

pub(crate) use moment::{Moment, VENUE_BOUND_NS};
pub(crate) use process::{Disposition, Out, Process, ReplicaTimer, Stop};
pub(crate) use start::{StartError, StartFrom, Started, fix_settings, holds, report_settings};
pub(crate) use streams::Streams;

use walras_fix_orders::Secrecy;
use walras_replica::EntryProtocol;

use crate::common::clock::EPOCH_NS;

/// A connection of a client. Never the same twice in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamId(pub(crate) u64);

/// Requests of the program that has no connection have numbers from here on: a number is one request's, however often the same
/// command is sent.
pub(crate) const REQUESTS_FROM: u64 = 1 << 48;

/// The same for requests of the program that signs each order by itself.
pub(crate) const SIGNED_FROM: u64 = 1 << 49;

/// Connections of FIX clients are those of clients from this number on.
pub(crate) const FIX_FROM: usize = 2_000;

/// What a client speaks.
pub(crate) fn protocol_of(client: usize) -> EntryProtocol {
    if client >= FIX_FROM { EntryProtocol::Fix(Secrecy::Private) } else { EntryProtocol::Binary }
}

/// Replicas' ids are below it.
const GATEWAYS: u16 = 16;

/// The name under which clients know a replica.
pub(crate) fn address(replica: walras_consensus::ReplicaId) -> String {
    format!("replica-{replica}")
}

/// No clock shows an earlier time.
pub(crate) const STAMPS_FROM_NS: u64 = EPOCH_NS / 2;
