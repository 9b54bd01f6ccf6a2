//! The client side of a session, over one connection at a time or over several at once, for programs that let their users choose.

use walras_types::SessionSeq;
use walras_wire::Command;

use super::client::SessionClient;
use super::client_settings::{ClientEvent, SubmitError, Wish};
use super::copied_client::CopiedClient;
use super::seal::ClientAgreement;

/// Either kind of client. The only stream of [`AnyClient::One`] is stream 0. Each method is documented at the two clients.
#[derive(Debug)]
pub enum AnyClient {
    /// One connection at a time.
    One(Box<SessionClient>),
    /// Several at once.
    Several(Box<CopiedClient>),
}

impl AnyClient {
    /// Number of streams.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Several(client) => client.stream_count(),
        }
    }

    /// Whether at least one stream is logged on.
    #[must_use]
    pub fn is_logged_on(&self) -> bool {
        match self {
            Self::One(client) => client.is_logged_on(),
            Self::Several(client) => client.is_logged_on(),
        }
    }

    /// Number of unanswered commands.
    #[must_use]
    pub fn unanswered_count(&self) -> usize {
        match self {
            Self::One(client) => client.unanswered_count(),
            Self::Several(client) => client.unanswered_count(),
        }
    }

    /// Numbers a command and sends it over all streams.
    ///
    /// # Errors
    /// Before the first logon, when too many are unanswered, and after the end.
    pub fn submit(&mut self, now_ns: u64, command: &Command) -> Result<SessionSeq, SubmitError> {
        match self {
            Self::One(client) => client.submit(now_ns, command),
            Self::Several(client) => client.submit(now_ns, command),
        }
    }

    /// What the host must do for a stream now.
    #[must_use]
    pub fn wish(&self, stream: usize, now_ns: u64) -> Wish<'_> {
        match self {
            Self::One(client) => client.wish(now_ns),
            Self::Several(client) => client.wish(stream, now_ns),
        }
    }

    /// The host has started to connect a stream, as [`AnyClient::wish`] asked.
    pub fn on_connecting(&mut self, stream: usize) {
        match self {
            Self::One(client) => client.on_connecting(),
            Self::Several(client) => client.on_connecting(stream),
        }
    }

    /// A stream's connection is established: logs on.
    pub fn on_connected(&mut self, stream: usize, now_ns: u64, entropy: &[u8; ClientAgreement::ENTROPY_LEN]) {
        match self {
            Self::One(client) => client.on_connected(now_ns, entropy),
            Self::Several(client) => client.on_connected(stream, now_ns, entropy),
        }
    }

    /// A stream's connection was lost or closed, or the attempt failed.
    pub fn on_disconnected(&mut self, stream: usize, now_ns: u64) {
        match self {
            Self::One(client) => client.on_disconnected(now_ns),
            Self::Several(client) => client.on_disconnected(stream, now_ns),
        }
    }

    /// Takes bytes received over a stream.
    pub fn on_bytes(&mut self, stream: usize, now_ns: u64, bytes: &[u8], emit: &mut impl FnMut(ClientEvent)) {
        match self {
            Self::One(client) => client.on_bytes(now_ns, bytes, emit),
            Self::Several(client) => client.on_bytes(stream, now_ns, bytes, emit),
        }
    }

    /// Handles timeouts and heartbeats.
    pub fn on_timer(&mut self, now_ns: u64, emit: &mut impl FnMut(ClientEvent)) {
        match self {
            Self::One(client) => client.on_timer(now_ns, emit),
            Self::Several(client) => client.on_timer(now_ns, emit),
        }
    }

    /// When to call [`AnyClient::on_timer`] or [`AnyClient::wish`] next.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        match self {
            Self::One(client) => client.deadline_ns(),
            Self::Several(client) => client.deadline_ns(),
        }
    }

    /// Bytes to write to a stream.
    #[must_use]
    pub fn output(&mut self, stream: usize) -> &[u8] {
        match self {
            Self::One(client) => client.output(),
            Self::Several(client) => client.output(stream),
        }
    }

    /// Removes `len` bytes that were written.
    pub fn consume(&mut self, stream: usize, len: usize) {
        match self {
            Self::One(client) => client.consume(len),
            Self::Several(client) => client.consume(stream, len),
        }
    }
}
