//! Who serves the connections of order entry.

use walras_gateway::session::LogonRequest;
use walras_gateway::{Principal, Refusal};
use walras_sequencer::GatewayTime;
use walras_wire::order_entry::ByeReason;

use crate::StreamId;
use crate::leaf::Leaf;
use crate::order_entry::{Charge, ConnectionEnd, EntryProtocol, OrderEntry};
use crate::probe::Probe;
use crate::replica::{Replica, ReplicaDisk};

/// Connections, as sockets see them.
pub trait EntryConnections {
    /// A logon whose signature is to be checked; then say [`EntryHost::on_authenticated`].
    fn next_logon(&mut self) -> Option<(StreamId, LogonRequest)>;
    /// The next connection that ended, for the log of the process.
    fn next_end(&mut self) -> Option<ConnectionEnd>;
    /// The connection has something to write, or can be written again.
    fn mark_dirty(&mut self, stream: StreamId);
    /// Bytes to write.
    fn output(&self, stream: StreamId) -> &[u8];
    /// So many of them were written.
    fn consume(&mut self, stream: StreamId, len: usize);
    /// Whether a connection is over: once its output is written, or not waited for any more, remove it.
    fn is_over(&self, stream: StreamId) -> bool;
    /// A connection is gone.
    fn remove(&mut self, stream: StreamId);
    /// Gives a client the reason why its connection is over.
    fn bye(&mut self, stream: StreamId, reason: ByeReason, text: &str);
}

impl EntryConnections for OrderEntry {
    fn next_logon(&mut self) -> Option<(StreamId, LogonRequest)> {
        Self::next_logon(self)
    }

    fn next_end(&mut self) -> Option<ConnectionEnd> {
        Self::next_end(self)
    }

    fn mark_dirty(&mut self, stream: StreamId) {
        Self::mark_dirty(self, stream);
    }

    fn output(&self, stream: StreamId) -> &[u8] {
        Self::output(self, stream)
    }

    fn consume(&mut self, stream: StreamId, len: usize) {
        Self::consume(self, stream, len);
    }

    fn is_over(&self, stream: StreamId) -> bool {
        Self::is_over(self, stream)
    }

    fn remove(&mut self, stream: StreamId) {
        Self::remove(self, stream);
    }

    fn bye(&mut self, stream: StreamId, reason: ByeReason, text: &str) {
        Self::bye(self, stream, reason, text);
    }
}

/// A replica, a leaf gateway below one, or a server of market data: what their sockets need of them.
pub trait EntryHost {
    /// Its connections.
    type Connections: EntryConnections;
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
    fn entry(&self) -> &Self::Connections;
    /// The same, to write what they have to say.
    fn entry_mut(&mut self) -> &mut Self::Connections;
}

impl<P: Probe, D: ReplicaDisk> EntryHost for Replica<P, D> {
    type Connections = OrderEntry;

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
    type Connections = OrderEntry;

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
