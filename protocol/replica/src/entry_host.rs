//! Who serves the connections of order entry.

use walras_gateway::{Principal, Refusal};
use walras_sequencer::GatewayTime;

use crate::StreamId;
use crate::leaf::Leaf;
use crate::order_entry::{Charge, EntryProtocol, OrderEntry};
use crate::probe::Probe;
use crate::replica::{Replica, ReplicaDisk};

/// A replica, or a leaf gateway below one: what their sockets need of them.
pub trait EntryHost {
    /// Whether orders are stamped by when they came.
    fn stamps(&self) -> bool;
    /// A client has connected. Its place must be free.
    fn on_connected(&mut self, at: GatewayTime, stream: StreamId, protocol: EntryProtocol);
    /// Bytes of a client came, cut anywhere: the stamps of commands that come at once are the same.
    fn on_bytes(&mut self, at: GatewayTime, stream: StreamId, bytes: &[u8], charge: &mut Charge<'_>);
    /// The verdict on a logon.
    fn on_authenticated(&mut self, at: GatewayTime, stream: StreamId, verdict: Result<Principal, Refusal>);
    /// A client closed its connection, or it broke: the connection is gone.
    fn on_disconnected(&mut self, at: GatewayTime, stream: StreamId);
    /// The next connection that has something to write or is over, each once.
    fn next_dirty(&mut self, at: GatewayTime) -> Option<StreamId>;
    /// The connections.
    fn entry(&self) -> &OrderEntry;
    /// The same, to write what they have to say.
    fn entry_mut(&mut self) -> &mut OrderEntry;
}

impl<P: Probe, D: ReplicaDisk> EntryHost for Replica<P, D> {
    fn stamps(&self) -> bool {
        self.fair().is_some()
    }

    fn on_connected(&mut self, at: GatewayTime, stream: StreamId, protocol: EntryProtocol) {
        Self::on_connected(self, at, stream, protocol);
    }

    fn on_bytes(&mut self, at: GatewayTime, stream: StreamId, bytes: &[u8], charge: &mut Charge<'_>) {
        Self::on_bytes(self, at, stream, bytes, charge);
    }

    fn on_authenticated(&mut self, at: GatewayTime, stream: StreamId, verdict: Result<Principal, Refusal>) {
        Self::on_authenticated(self, at, stream, verdict);
    }

    fn on_disconnected(&mut self, at: GatewayTime, stream: StreamId) {
        Self::on_disconnected(self, at, stream);
    }

    fn next_dirty(&mut self, at: GatewayTime) -> Option<StreamId> {
        Self::next_dirty(self, at)
    }

    fn entry(&self) -> &OrderEntry {
        Self::entry(self)
    }

    fn entry_mut(&mut self) -> &mut OrderEntry {
        Self::entry_mut(self)
    }
}

impl EntryHost for Leaf {
    fn stamps(&self) -> bool {
        true
    }

    fn on_connected(&mut self, at: GatewayTime, stream: StreamId, protocol: EntryProtocol) {
        Self::on_connected(self, at, stream, protocol);
    }

    fn on_bytes(&mut self, at: GatewayTime, stream: StreamId, bytes: &[u8], charge: &mut Charge<'_>) {
        Self::on_bytes(self, at, stream, bytes, charge);
    }

    fn on_authenticated(&mut self, at: GatewayTime, stream: StreamId, verdict: Result<Principal, Refusal>) {
        Self::on_authenticated(self, at, stream, verdict);
    }

    fn on_disconnected(&mut self, at: GatewayTime, stream: StreamId) {
        Self::on_disconnected(self, at, stream);
    }

    fn next_dirty(&mut self, at: GatewayTime) -> Option<StreamId> {
        Self::next_dirty(self, at)
    }

    fn entry(&self) -> &OrderEntry {
        Self::entry(self)
    }

    fn entry_mut(&mut self) -> &mut OrderEntry {
        Self::entry_mut(self)
    }
}
