//! A session of the load and its connections.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use walras_gateway::session::{AnyClient, ClientEvent, Wish};
use walras_types::LogIndex;
use walras_wire::Command;

use super::entries::Entries;
use crate::entry_stream::{EntryStream, EntryTrust};
use crate::latency::Latencies;

/// A session and its connections.
pub(super) struct Line {
    pub(super) client: AnyClient,
    pub(super) wires: Vec<Wire>,
    /// Commands that did not fit the session's window.
    pub(super) waiting: VecDeque<(u64, Command)>,
    progress: Progress,
    /// `None` where order entry is spoken in plain.
    trust: Option<EntryTrust>,
}

/// A connection, if it is there.
#[derive(Default)]
pub(super) struct Wire {
    pub(super) stream: Option<EntryStream>,
    pub(super) is_blocked: bool,
}

/// A session's unanswered commands, and its last answer.
#[derive(Default)]
struct Progress {
    /// Due times of the unanswered commands, oldest first.
    due: VecDeque<u64>,
    last: LogIndex,
}

/// Totals of the answers.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) latencies: Latencies,
    pub(super) sum_ns: u128,
    pub(super) acknowledged: u64,
    pub(super) answered: u64,
    pub(super) rejected: u64,
    pub(super) late: u64,
    pub(super) reconnects: u64,
    /// Answers to commands due before do not count.
    pub(super) from_ns: u64,
    pub(super) unanswered: usize,
    pub(super) failed: Option<String>,
    /// The log entries named in answers.
    pub(super) entries: Entries,
}

impl Line {
    pub(super) fn new(client: AnyClient, trust: Option<EntryTrust>) -> Self {
        let wires = (0..client.stream_count()).map(|_| Wire::default()).collect();
        Self { client, wires, waiting: VecDeque::new(), progress: Progress::default(), trust }
    }

    pub(super) fn send_waiting(&mut self, now_ns: u64) {
        while let Some((due_ns, command)) = self.waiting.front() {
            match self.client.submit(now_ns, command) {
                Ok(_) => self.progress.due.push_back(*due_ns),
                Err(_) => return,
            }
            self.waiting.pop_front();
        }
    }

    pub(super) fn on_timer(&mut self, now_ns: u64, tally: &mut Tally) {
        let Self { client, progress, .. } = self;
        client.on_timer(now_ns, &mut |event| tally.on(now_ns, progress, &event));
        for at in 0..self.wires.len() {
            match self.client.wish(at, now_ns) {
                Wish::Wait => {}
                Wish::Connect(address) => {
                    let stream = EntryStream::connect(address, self.trust.as_ref());
                    self.client.on_connecting(at);
                    match stream {
                        Ok(stream) => {
                            self.client.on_connected(at, now_ns, &walras_access::random_bytes());
                            self.wires[at].stream = Some(stream);
                        }
                        Err(_) => self.client.on_disconnected(at, now_ns),
                    }
                }
                Wish::Close => self.lose(at, now_ns, tally),
            }
        }
    }

    fn lose(&mut self, at: usize, now_ns: u64, tally: &mut Tally) {
        tally.reconnects += 1;
        self.wires[at] = Wire::default();
        self.client.on_disconnected(at, now_ns);
    }

    pub(super) fn write(&mut self, now_ns: u64, tally: &mut Tally) {
        for at in 0..self.wires.len() {
            while let Wire { stream: Some(stream), is_blocked: is_blocked @ false } = &mut self.wires[at]
                && (stream.has_output() || !self.client.output(at).is_empty())
            {
                let output = self.client.output(at);
                let written = if output.is_empty() { stream.flush().map(|()| 0) } else { stream.write(output) };
                match written {
                    Ok(len) => self.client.consume(at, len),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => *is_blocked = true,
                    Err(_) => self.lose(at, now_ns, tally),
                }
            }
        }
    }

    pub(super) fn read(&mut self, at: usize, now_ns: u64, buffer: &mut [u8], tally: &mut Tally) {
        while let Some(stream) = &mut self.wires[at].stream {
            match stream.read(buffer) {
                Ok(0) => self.lose(at, now_ns, tally),
                Ok(len) => {
                    let Self { client, progress, .. } = self;
                    client.on_bytes(at, now_ns, &buffer[..len], &mut |event| tally.on(now_ns, progress, &event));
                    if len < buffer.len() {
                        break;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.lose(at, now_ns, tally),
            }
        }
        if matches!(self.client.wish(at, now_ns), Wish::Close) {
            self.lose(at, now_ns, tally);
        }
        self.send_waiting(now_ns);
    }
}

impl Tally {
    fn on(&mut self, now_ns: u64, progress: &mut Progress, event: &ClientEvent) {
        match event {
            ClientEvent::Answer { log_index, rejected, .. } => {
                self.unanswered = self.unanswered.saturating_sub(1);
                self.answered += 1;
                let before = std::mem::replace(&mut progress.last, *log_index);
                if before >= *log_index || !self.entries.insert(*log_index) {
                    self.failed = Some(format!(
                        "an answer names entry {log_index} of the log, after {before} in its session: it is another command's, or out of order"
                    ));
                }
                let Some(due_ns) = progress.due.pop_front() else { return };
                if due_ns >= self.from_ns {
                    let took_ns = now_ns.saturating_sub(due_ns);
                    self.latencies.record(Duration::from_nanos(took_ns));
                    self.sum_ns += u128::from(took_ns);
                    self.acknowledged += 1;
                }
                self.rejected += u64::from(rejected.is_some());
            }
            ClientEvent::Ended(error) => self.failed = Some(error.to_string()),
            ClientEvent::Late { .. } => self.late += 1,
            ClientEvent::LoggedOn { .. }
            | ClientEvent::Report { .. }
            | ClientEvent::ReportsMissing { .. }
            | ClientEvent::Disconnected { .. } => {}
        }
    }
}
