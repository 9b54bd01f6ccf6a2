//! One connection: its socket, its output queue, and the state of the peer.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, SocketAddr};

use mio::net::TcpStream;
use walras_consensus::ReplicaId;

use crate::channel::Channel;
use crate::error::LinkError;
use crate::event::LinkEvent;
use crate::frame::{Decoder, Frame, HELLO_BYTES_MAX, Outgoing};
use crate::snapshot::{Coming, Leaving, Next, SnapshotFailure, SnapshotId};

/// Bytes encrypted at once: large enough for efficient system calls, small enough not to delay a snapshot's chunk.
const BATCH_BYTES: usize = 256 << 10;
const BATCH_FRAMES_MAX: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The system is connecting.
    Connecting,
    /// Waits for the greeting.
    Greeting,
    /// Linked.
    Up(ReplicaId),
    /// Refused or closed by this side: remaining output is being sent, and input is discarded.
    Closing,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// This many bytes, and there may be more.
    Bytes(usize),
    /// No more at present.
    Nothing,
    /// The other side has closed.
    End,
}

pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    pub(crate) remote: SocketAddr,
    pub(crate) channel: Channel,
    pub(crate) decoder: Decoder,
    /// The replica that this side called; `None` if the peer called.
    pub(crate) dialled: Option<ReplicaId>,
    pub(crate) phase: Phase,
    /// Deadline of the handshake, or of lingering.
    pub(crate) deadline_ns: u64,
    pub(crate) last_heard_ns: u64,
    pub(crate) pinged_ns: Option<u64>,
    queue: VecDeque<Outgoing>,
    queued_bytes: usize,
    /// At most one ping and one pong are queued, whatever the peer does.
    pub(crate) ping_due: bool,
    pub(crate) pong_due: bool,
    credit_due: Option<(SnapshotId, u32)>,
    answer_due: Option<Frame>,
    pub(crate) leaving: Option<Leaving>,
    pub(crate) coming: Option<Coming>,
    /// Whether injected faults hold back the outgoing snapshot.
    pub(crate) holds_snapshot: bool,
    /// Whether the socket must report that it is writable before the next write.
    pub(crate) is_blocked: bool,
    /// Whether unread bytes may be left in the socket.
    pub(crate) has_unread: bool,
    has_shut: bool,
}

impl Connection {
    pub(crate) fn new(
        socket: TcpStream,
        remote: SocketAddr,
        channel: Channel,
        dialled: Option<ReplicaId>,
        now_ns: u64,
        deadline_ns: u64,
    ) -> Self {
        Self {
            socket,
            remote,
            channel,
            decoder: Decoder::new(HELLO_BYTES_MAX),
            dialled,
            phase: if dialled.is_some() { Phase::Connecting } else { Phase::Greeting },
            deadline_ns,
            last_heard_ns: now_ns,
            pinged_ns: None,
            queue: VecDeque::new(),
            queued_bytes: 0,
            ping_due: false,
            pong_due: false,
            credit_due: None,
            answer_due: None,
            leaving: None,
            coming: None,
            holds_snapshot: false,
            is_blocked: false,
            has_unread: false,
            has_shut: false,
        }
    }

    /// Whether the system has connected by now.
    pub(crate) fn is_connected(&self) -> Result<bool, LinkError> {
        let unreachable = |e: std::io::Error| LinkError::Unreachable(e.to_string());
        if let Some(error) = self.socket.take_error().map_err(unreachable)? {
            return Err(unreachable(error));
        }
        match self.socket.peer_addr() {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotConnected => Ok(false),
            Err(e) => Err(unreachable(e)),
        }
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    pub(crate) fn push(&mut self, frame: Outgoing) {
        self.queued_bytes += frame.len();
        self.queue.push_back(frame);
    }

    pub(crate) fn credit(&mut self, id: SnapshotId, bytes: u32) {
        let before = self.credit_due.filter(|(due, _)| *due == id).map_or(0, |(_, bytes)| bytes);
        self.credit_due = Some((id, before + bytes));
    }

    pub(crate) fn answer(&mut self, id: SnapshotId, refused: Option<String>) {
        self.coming = None;
        self.credit_due = None;
        self.answer_due = Some(Frame::Answer { id, accepted: refused.is_none(), why: refused.unwrap_or_default() });
    }

    /// Puts a frame ahead of the queue. For greetings and refusals.
    pub(crate) fn put_first(&mut self, frame: Frame) {
        if let Err(e) = self.channel.put(&[frame.into_outgoing()]) {
            // Only a failed connection refuses frames; the next read returns the cause.
            debug_assert_eq!(e.kind(), ErrorKind::InvalidData);
        }
    }

    /// Reads once; the bytes go to the decoder.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> Result<Came, ReadError> {
        let read = loop {
            match self.socket.read(scratch) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(0) => Ok(Came::End),
            Ok(len) => {
                if self.phase != Phase::Closing {
                    self.channel.take(&scratch[..len], &mut self.decoder).map_err(ReadError::Tls)?;
                }
                Ok(Came::Bytes(len))
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(Came::Nothing),
            Err(e) => Err(ReadError::Broken(e.to_string())),
        }
    }

    /// Writes as much as the socket accepts.
    pub(crate) fn pump(&mut self, buffer: &mut Vec<u8>, events: &mut Vec<LinkEvent>) -> Result<(), LinkError> {
        if self.phase == Phase::Connecting {
            return Ok(());
        }
        let mut batch = Vec::new();
        while !self.is_blocked {
            if self.channel.wants_write() {
                match self.channel.write_to(&mut self.socket) {
                    Ok(()) => {}
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) if e.kind() == ErrorKind::WouldBlock => self.is_blocked = true,
                    Err(e) => return Err(LinkError::Broken(e.to_string())),
                }
                continue;
            }
            let Phase::Up(id) = self.phase else { break };
            batch.clear();
            self.fill(id, &mut batch, buffer, events);
            if batch.is_empty() {
                break;
            }
            self.channel.put(&batch).map_err(|e| LinkError::Tls(e.to_string()))?;
        }
        if self.phase == Phase::Closing && !self.has_shut && !self.channel.wants_write() {
            self.has_shut = true;
            self.socket.shutdown(Shutdown::Write).map_err(|e| LinkError::Broken(e.to_string()))?;
        }
        Ok(())
    }

    /// Collects the next output: short replies, messages and one chunk of a snapshot, so that neither starves the other.
    fn fill(&mut self, id: ReplicaId, batch: &mut Vec<Outgoing>, buffer: &mut Vec<u8>, events: &mut Vec<LinkEvent>) {
        if std::mem::take(&mut self.ping_due) {
            batch.push(Frame::Ping.into_outgoing());
        }
        if std::mem::take(&mut self.pong_due) {
            batch.push(Frame::Pong.into_outgoing());
        }
        if let Some((id, bytes)) = self.credit_due.take() {
            batch.push(Frame::Credit { id, bytes }.into_outgoing());
        }
        batch.extend(self.answer_due.take().map(Frame::into_outgoing));
        let mut bytes = 0;
        while bytes < BATCH_BYTES
            && batch.len() < BATCH_FRAMES_MAX
            && let Some(frame) = self.queue.pop_front()
        {
            bytes += frame.len();
            self.queued_bytes -= frame.len();
            batch.push(frame);
        }
        if self.holds_snapshot {
            return;
        }
        let Some(leaving) = &mut self.leaving else { return };
        match leaving.next(buffer) {
            Next::Send(frame) => batch.push(frame.into_outgoing()),
            Next::Wait => {}
            Next::Fail(why) => {
                let snapshot = leaving.id;
                self.leaving = None;
                batch.push(Frame::Aborted { id: snapshot, why: why.clone() }.into_outgoing());
                events.push(LinkEvent::SnapshotFailed { to: id, id: snapshot, why: SnapshotFailure::Source(why) });
            }
        }
    }

    /// Sends the reason, if there is one, and then closes.
    pub(crate) fn begin_closing(&mut self, why: Option<&LinkError>, deadline_ns: u64) {
        if let Some(why) = why {
            self.put_first(match why {
                LinkError::LaterOfTwo { .. } | LinkError::Outlived { .. } => Frame::Dismissed(why.to_string()),
                _ => Frame::Refused(why.to_string()),
            });
        }
        self.channel.close();
        self.phase = Phase::Closing;
        self.deadline_ns = deadline_ns;
        self.queue = VecDeque::new();
        self.queued_bytes = 0;
        (self.leaving, self.coming) = (None, None);
    }
}

/// What went wrong with a read.
pub(crate) enum ReadError {
    Broken(String),
    Tls(rustls::Error),
}
