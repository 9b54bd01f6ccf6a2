//! The connections of clients to a process: their places at order entry, and what its checkers and planted faults see of them.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};

use walras_consensus::ReplicaId;
use walras_gateway::SourceId;
use walras_replica::{PassedOn, Probe, Route};
use walras_sequencer::GatewayTime;
use walras_types::{ContentDigest, Ordinal, SessionId};

use super::StreamId;
use crate::cluster::checks::Checks;
use crate::cluster::mutation::Mutation;

/// The connections of a process, by the place that each has while it lasts.
#[derive(Debug, Default)]
pub(super) struct Streams(Vec<Option<(StreamId, SourceId)>>);

impl Streams {
    /// A client has connected: it gets the first place that is free.
    pub(super) fn accept(&mut self, stream: StreamId, client: usize) -> walras_replica::StreamId {
        let address = Ipv4Addr::from_bits(u32::try_from(client).expect("there are few clients"));
        let place = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        if place == self.0.len() {
            self.0.push(None);
        }
        self.0[place] = Some((stream, SourceId::of(IpAddr::V4(address))));
        walras_replica::StreamId { place, serial: stream.0 }
    }

    /// The name of a connection at order entry, and where it comes from; `None` for one that is gone.
    pub(super) fn of(&self, stream: StreamId) -> Option<(walras_replica::StreamId, SourceId)> {
        let place = self.0.iter().position(|at| at.is_some_and(|(other, _)| other == stream))?;
        let (_, source) = self.0[place]?;
        Some((walras_replica::StreamId { place, serial: stream.0 }, source))
    }

    /// A connection is gone.
    pub(super) fn remove(&mut self, stream: StreamId) {
        self.0.iter_mut().filter(|at| at.is_some_and(|(other, _)| other == stream)).for_each(|at| *at = None);
    }
}

/// What is seen of order entry.
pub(super) struct Watch<'a> {
    pub(super) me: ReplicaId,
    pub(super) checks: &'a RefCell<Checks>,
    pub(super) mutation: Option<Mutation>,
    /// What planted faults do something to.
    pub(super) taken: Vec<Taken>,
}

/// A command that a planted fault does something to.
#[derive(Debug)]
pub(super) enum Taken {
    /// It is answered before it is in the log: see [`Mutation::AcknowledgeBeforeCommit`].
    Early(Ordinal, ContentDigest),
    /// It goes into the log a second time: see [`Mutation::CopiesUnnumbered`].
    Unnumbered(Vec<u8>),
}

impl Probe for Watch<'_> {
    fn passed_on(&mut self, passed: &PassedOn<'_>) {
        let PassedOn { at, ordinal, content, has_copies, route } = *passed;
        match route {
            Route::Stamped { leads } => {
                self.checks.borrow_mut().on_stamped(self.me, at, ordinal, leads);
                if has_copies && self.mutation == Some(Mutation::CopiesUnnumbered) {
                    self.taken.push(Taken::Unnumbered(content.to_vec()));
                }
            }
            Route::Sequencer if self.mutation == Some(Mutation::AcknowledgeBeforeCommit) => {
                self.taken.push(Taken::Early(ordinal, ContentDigest::of_bytes(content)));
            }
            Route::Sequencer => {}
        }
    }

    fn cancels_behind(&mut self, at: GatewayTime, session: SessionId) {
        self.checks.borrow_mut().on_behind(self.me, at, session);
    }
}
