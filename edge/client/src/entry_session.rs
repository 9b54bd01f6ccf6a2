//! A session of order entry for programs that wait: it connects, goes to the next replica where a connection is lost, and hands out what
//! happens.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use walras_access::{now, random_bytes};
use walras_gateway::ClientKey;
use walras_gateway::session::{ClientError, ClientEvent, ClientSettings, SessionClient, SubmitError, Wish};
use walras_types::SessionSeq;
use walras_wire::Command;

use crate::entry_stream::{EntryStream, EntryTrust};

/// Longest wait without a look at the clock.
const LOOK_NS: u64 = 100_000_000;
/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// A session, on the connection that it has now. A thread that has one waits for it alone.
pub struct EntrySession {
    client: SessionClient,
    trust: Option<EntryTrust>,
    stream: Option<EntryStream>,
    events: VecDeque<ClientEvent>,
    ended: Option<ClientError>,
    begun: Instant,
    /// Since the Unix epoch, when it began.
    epoch_ns: u64,
    buffer: Box<[u8]>,
}

impl EntrySession {
    /// A session that connects once it is waited for: with TLS where `trust` is given. `None` if `settings` has no address.
    #[must_use]
    pub fn new(settings: ClientSettings, key: ClientKey, trust: Option<EntryTrust>) -> Option<Self> {
        let epoch_ns = now().0;
        let client = SessionClient::new(settings, key, epoch_ns)?;
        let (events, buffer) = (VecDeque::new(), vec![0; BUFFER_BYTES].into_boxed_slice());
        Some(Self { client, trust, stream: None, events, ended: None, begun: Instant::now(), epoch_ns, buffer })
    }

    /// Nanoseconds since the Unix epoch by a clock that does not jump.
    fn now_ns(&self) -> u64 {
        self.epoch_ns.saturating_add(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Numbers a command and sends it, again where a connection is lost, until it is answered. The first one waits for
    /// [`ClientEvent::LoggedOn`].
    ///
    /// # Errors
    /// There was no logon yet, as many commands as may be are unanswered, or the session has ended.
    pub fn submit(&mut self, command: &Command) -> Result<SessionSeq, SubmitError> {
        let session_seq = self.client.submit(self.now_ns(), command)?;
        self.write();
        Ok(session_seq)
    }

    /// Waits for what happens next.
    ///
    /// # Errors
    /// The session cannot continue.
    pub fn wait(&mut self) -> Result<ClientEvent, ClientError> {
        loop {
            match (self.events.pop_front(), self.ended) {
                (Some(ClientEvent::Ended(why)), _) => self.ended = Some(why),
                (Some(event), _) => return Ok(event),
                (None, Some(why)) => {
                    self.stream = None;
                    return Err(why);
                }
                (None, None) => self.turn(),
            }
        }
    }

    fn turn(&mut self) {
        let now_ns = self.now_ns();
        let Self { client, events, .. } = self;
        client.on_timer(now_ns, &mut |event| events.push_back(event));
        match self.client.wish(now_ns) {
            Wish::Wait => {}
            Wish::Close => self.lose(),
            Wish::Connect(address) => {
                let stream = EntryStream::connect(address, self.trust.as_ref());
                self.client.on_connecting();
                match stream {
                    Ok(stream) => {
                        self.client.on_connected(now_ns, &random_bytes());
                        self.stream = Some(stream);
                    }
                    Err(_) => self.client.on_disconnected(now_ns),
                }
            }
        }
        self.write();
        if self.events.is_empty() {
            self.wait_for_socket(now_ns);
            self.read();
        }
    }

    /// Waits until the socket has something, or time has.
    fn wait_for_socket(&mut self, now_ns: u64) {
        let wait_ns = self.client.deadline_ns().unwrap_or(u64::MAX).saturating_sub(now_ns).clamp(1, LOOK_NS);
        let has_output = !self.client.output().is_empty() || self.stream.as_ref().is_some_and(EntryStream::has_output);
        let wanted = if has_output { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut sockets: Vec<PollFd<'_>> = self.stream.iter().map(|stream| PollFd::new(stream, wanted)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait_ns.cast_signed() };
        // Where it cannot be waited for, it is looked at again and again.
        let _ = poll(&mut sockets, Some(&timeout));
    }

    fn lose(&mut self) {
        self.stream = None;
        self.client.on_disconnected(self.now_ns());
    }

    fn write(&mut self) {
        while let Some(stream) = &mut self.stream {
            let output = self.client.output();
            let written = match (output.is_empty(), stream.has_output()) {
                (true, false) => return,
                (true, true) => stream.flush().map(|()| 0),
                (false, _) => stream.write(output),
            };
            match written {
                Ok(len) => self.client.consume(len),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.lose(),
            }
        }
    }

    fn read(&mut self) {
        while let Some(stream) = &mut self.stream {
            match stream.read(&mut self.buffer) {
                Ok(len) if len > 0 => {
                    let now_ns = self.now_ns();
                    let Self { client, buffer, events, .. } = self;
                    client.on_bytes(now_ns, &buffer[..len], &mut |event| events.push_back(event));
                    if matches!(self.client.wish(now_ns), Wish::Close) {
                        self.lose();
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => self.lose(),
            }
        }
    }
}
