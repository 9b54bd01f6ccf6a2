//! The connections of clients to a process, and their places at order entry.

use std::net::{IpAddr, Ipv4Addr};

use walras_gateway::SourceId;

use super::StreamId;

/// The connections of a process, by the place that each has while it lasts.
#[derive(Debug, Default)]
pub(crate) struct Streams(Vec<Option<(StreamId, SourceId)>>);

impl Streams {
    /// A client has connected: it gets the first place that is free.
    pub(crate) fn accept(&mut self, stream: StreamId, client: usize) -> walras_replica::StreamId {
        let address = Ipv4Addr::from_bits(u32::try_from(client).expect("there are few clients"));
        let place = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        if place == self.0.len() {
            self.0.push(None);
        }
        self.0[place] = Some((stream, SourceId::of(IpAddr::V4(address))));
        walras_replica::StreamId { place, serial: stream.0 }
    }

    /// The name of a connection at order entry, and where it comes from; `None` for one that is gone.
    pub(crate) fn of(&self, stream: StreamId) -> Option<(walras_replica::StreamId, SourceId)> {
        let place = self.0.iter().position(|at| at.is_some_and(|(other, _)| other == stream))?;
        let (_, source) = self.0[place]?;
        Some((walras_replica::StreamId { place, serial: stream.0 }, source))
    }

    /// A connection is gone.
    pub(crate) fn remove(&mut self, stream: StreamId) {
        self.0.iter_mut().filter(|at| at.is_some_and(|(other, _)| other == stream)).for_each(|at| *at = None);
    }
}
