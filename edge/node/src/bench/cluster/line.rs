//! A session of the load and its connection.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use walras_gateway::generate_nonce;
use walras_gateway::session::{ClientEvent, SessionClient, SubmitError, Wish};
use walras_wire::Command;

use crate::bench::Latencies;

/// A session and its connection.
pub(super) struct Line {
    pub(super) client: SessionClient,
    pub(super) stream: Option<TcpStream>,
    /// When the unanswered were due, the oldest first.
    pub(super) due: VecDeque<u64>,
    /// What the session's window had no room for.
    pub(super) waiting: VecDeque<(u64, Command)>,
    pub(super) is_blocked: bool,
}

/// What answers came to.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) latencies: Latencies,
    pub(super) sum_ns: u128,
    pub(super) acknowledged: u64,
    pub(super) rejected: u64,
    pub(super) reconnects: u64,
    /// Answers to commands due before do not count.
    pub(super) from_ns: u64,
    pub(super) unanswered: usize,
    pub(super) failed: Option<String>,
}

impl Line {
    pub(super) fn send_waiting(&mut self, now_ns: u64) {
        while let Some((due_ns, command)) = self.waiting.front() {
            match self.client.submit(now_ns, command) {
                Ok(_) => self.due.push_back(*due_ns),
                Err(SubmitError::WindowFull(_) | SubmitError::NotLoggedOnYet | SubmitError::Ended) => return,
            }
            self.waiting.pop_front();
        }
    }

    pub(super) fn on_timer(&mut self, now_ns: u64, tally: &mut Tally) {
        let Self { client, due, .. } = self;
        client.on_timer(now_ns, &mut |event| tally.on(now_ns, due, &event));
        match self.client.wish(now_ns) {
            Wish::Wait => {}
            Wish::Connect(address) => {
                let stream = connect(address);
                self.client.on_connecting();
                match stream {
                    Ok(stream) => {
                        let entropy = std::array::from_fn(|_| crate::access::random_u64() as u8);
                        self.client.on_connected(now_ns, &generate_nonce(&entropy));
                        self.stream = Some(stream);
                    }
                    Err(_) => self.client.on_disconnected(now_ns),
                }
            }
            Wish::Close => self.lose(now_ns, tally),
        }
    }

    fn lose(&mut self, now_ns: u64, tally: &mut Tally) {
        tally.reconnects += 1;
        (self.stream, self.is_blocked) = (None, false);
        self.client.on_disconnected(now_ns);
    }

    pub(super) fn write(&mut self, now_ns: u64, tally: &mut Tally) {
        while !self.is_blocked
            && !self.client.output().is_empty()
            && let Some(stream) = &mut self.stream
        {
            match stream.write(self.client.output()) {
                Ok(len) => self.client.consume(len),
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.is_blocked = true,
                Err(_) => self.lose(now_ns, tally),
            }
        }
    }

    pub(super) fn read(&mut self, now_ns: u64, buffer: &mut [u8], tally: &mut Tally) {
        while let Some(stream) = &mut self.stream {
            match stream.read(buffer) {
                Ok(0) => self.lose(now_ns, tally),
                Ok(len) => {
                    let Self { client, due, .. } = self;
                    client.on_bytes(now_ns, &buffer[..len], &mut |event| tally.on(now_ns, due, &event));
                    if len < buffer.len() {
                        break;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.lose(now_ns, tally),
            }
        }
        if matches!(self.client.wish(now_ns), Wish::Close) {
            self.lose(now_ns, tally);
        }
        self.send_waiting(now_ns);
    }
}

impl Tally {
    fn on(&mut self, now_ns: u64, due: &mut VecDeque<u64>, event: &ClientEvent) {
        match event {
            ClientEvent::Answer { rejected, .. } => {
                self.unanswered = self.unanswered.saturating_sub(1);
                let Some(due_ns) = due.pop_front() else { return };
                if due_ns >= self.from_ns {
                    let took_ns = now_ns.saturating_sub(due_ns);
                    self.latencies.record(Duration::from_nanos(took_ns));
                    self.sum_ns += u128::from(took_ns);
                    self.acknowledged += 1;
                }
                self.rejected += u64::from(rejected.is_some());
            }
            ClientEvent::Ended(error) => self.failed = Some(error.to_string()),
            ClientEvent::LoggedOn { .. }
            | ClientEvent::Report { .. }
            | ClientEvent::ReportsMissing { .. }
            | ClientEvent::Late { .. }
            | ClientEvent::Disconnected { .. } => {}
        }
    }
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.to_socket_addrs()?.next().ok_or(ErrorKind::NotFound)?;
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}
