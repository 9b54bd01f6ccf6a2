//! The client side of a session over several connections at once, to several replicas. Each command goes over all of them, and the
//! first answer counts. The session goes on without interruption while one connection is left.
//!
//! The streams are [`SessionClient`]s that share the session's sequence numbers. A stream that loses its connection or lags too far
//! behind starts over with the last commands, answered ones included: its replica may not have received them.

use std::collections::VecDeque;

use walras_types::{RejectReason, SessionId, SessionSeq};
use walras_wire::Command;
use walras_wire::order_entry::{ByeReason, Copies, OnDisconnect, ReportsWanted};

use super::UNANSWERED_MAX;
use super::client::SessionClient;
use super::client_settings::{ClientError, ClientEvent, ClientSettings, SubmitError, Wish};
use super::seal::ClientAgreement;
use crate::ClientKey;

/// Maximum number of unanswered commands. The same number of answered ones is retained with them, and the venue remembers the
/// answers to no more than both together.
const WINDOW_MAX: u32 = UNANSWERED_MAX / 2;

/// The client side of a session over several connections.
#[derive(Debug)]
pub struct CopiedClient {
    window: usize,
    streams: Vec<Stream>,
    session: Option<SessionId>,
    /// The last commands, numbered from `first`.
    kept: VecDeque<Command>,
    first: SessionSeq,
    /// The first command whose answer was not delivered to the user.
    unanswered: SessionSeq,
    /// Number of the latest report delivered to the user.
    last_report: Option<u64>,
    is_over: bool,
}

#[derive(Debug)]
struct Stream {
    client: SessionClient,
    /// Whether its sequence numbers are in step with the session's.
    is_joined: bool,
    /// Its replica ended it for good. The other streams go on.
    is_dead: bool,
}

impl CopiedClient {
    /// Creates a session with a stream for each address in `gateways`, none connected yet. Orders stay open when a connection is
    /// lost. A stream whose own replica is away connects to one of `settings.replicas`. `None` if `gateways` is empty.
    #[must_use]
    pub fn new(settings: &ClientSettings, gateways: &[String], key: &ClientKey, now_ns: u64) -> Option<Self> {
        let stream = |gateway: &String| {
            let others = settings.replicas.iter().filter(|other| *other != gateway).cloned();
            let settings = ClientSettings {
                replicas: std::iter::once(gateway.clone()).chain(others).collect(),
                on_disconnect: OnDisconnect::Keep,
                copies: Copies::Several,
                ..settings.clone()
            };
            Some(Stream { client: SessionClient::new(settings, key.clone(), now_ns)?, is_joined: false, is_dead: false })
        };
        let streams: Vec<Stream> = gateways.iter().map(stream).collect::<Option<_>>()?;
        let last_report = if let ReportsWanted::After(after) = settings.reports { Some(after) } else { None };
        (!streams.is_empty()).then(|| Self {
            window: settings.window.clamp(1, WINDOW_MAX) as usize,
            streams,
            session: None,
            kept: VecDeque::new(),
            first: SessionSeq(1),
            unanswered: SessionSeq(1),
            last_report,
            is_over: false,
        })
    }

    /// Numbers a command and sends it over every stream as soon as possible.
    ///
    /// # Errors
    /// Before the first logon, when too many are unanswered, and after the end.
    pub fn submit(&mut self, now_ns: u64, command: &Command) -> Result<SessionSeq, SubmitError> {
        if self.is_over {
            return Err(SubmitError::Ended);
        }
        if self.session.is_none() {
            return Err(SubmitError::NotLoggedOnYet);
        }
        if self.unanswered_count() >= self.window {
            return Err(SubmitError::WindowFull(u32::try_from(self.window).unwrap_or(WINDOW_MAX)));
        }
        let session_seq = self.next();
        self.kept.push_back(*command);
        if self.kept.len() > 2 * self.window {
            self.kept.pop_front();
            self.first = self.first.next();
        }
        for stream in self.streams.iter_mut().filter(|stream| stream.is_joined) {
            if !stream.client.append(now_ns, command) {
                // The stream lags too far behind: it starts over.
                stream.is_joined = false;
                stream.client.give_up();
            }
        }
        Ok(session_seq)
    }

    fn next(&self) -> SessionSeq {
        SessionSeq(self.first.0 + self.kept.len() as u64)
    }

    /// Number of unanswered commands.
    #[must_use]
    pub fn unanswered_count(&self) -> usize {
        usize::try_from(self.next().0 - self.unanswered.0).unwrap_or(usize::MAX)
    }

    /// Number of streams.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Whether at least one stream is logged on.
    #[must_use]
    pub fn is_logged_on(&self) -> bool {
        self.streams.iter().any(|stream| stream.client.is_logged_on())
    }

    /// What the host must do for a stream now.
    #[must_use]
    pub fn wish(&self, stream: usize, now_ns: u64) -> Wish<'_> {
        self.streams[stream].client.wish(now_ns)
    }

    /// The host has started to connect a stream, as [`CopiedClient::wish`] asked.
    pub fn on_connecting(&mut self, stream: usize) {
        self.streams[stream].client.on_connecting();
    }

    /// A stream's connection is established: logs on. See [`SessionClient::on_connected`].
    pub fn on_connected(&mut self, stream: usize, now_ns: u64, entropy: &[u8; ClientAgreement::ENTROPY_LEN]) {
        if let Some(session) = self.session {
            let Stream { client, is_joined, .. } = &mut self.streams[stream];
            client.join(session, self.first, self.kept.iter().copied().collect(), self.unanswered, self.last_report);
            *is_joined = true;
        }
        self.streams[stream].client.on_connected(now_ns, entropy);
    }

    /// A stream's connection was lost or closed, or the attempt failed.
    pub fn on_disconnected(&mut self, stream: usize, now_ns: u64) {
        let Stream { client, is_joined, .. } = &mut self.streams[stream];
        *is_joined = false;
        client.on_disconnected(now_ns);
    }

    /// Takes bytes received over a stream. Calls `emit` with each answer and report of the session once, in order.
    pub fn on_bytes(&mut self, stream: usize, now_ns: u64, bytes: &[u8], emit: &mut impl FnMut(ClientEvent)) {
        let mut events = Vec::new();
        self.streams[stream].client.on_bytes(now_ns, bytes, &mut |event| events.push(event));
        self.take(stream, events, emit);
    }

    /// Handles timeouts and heartbeats. To be called at [`CopiedClient::deadline_ns`].
    pub fn on_timer(&mut self, now_ns: u64, emit: &mut impl FnMut(ClientEvent)) {
        for stream in 0..self.streams.len() {
            let mut events = Vec::new();
            self.streams[stream].client.on_timer(now_ns, &mut |event| events.push(event));
            self.take(stream, events, emit);
        }
    }

    fn take(&mut self, stream: usize, events: Vec<ClientEvent>, emit: &mut impl FnMut(ClientEvent)) {
        for event in events {
            match event {
                ClientEvent::LoggedOn { session } => self.on_logged_on(stream, session, emit),
                ClientEvent::Answer { session_seq, .. } if session_seq == self.unanswered => {
                    self.unanswered = session_seq.next();
                    emit(event);
                }
                ClientEvent::Answer { .. } => {}
                ClientEvent::Report { report_seq, .. } => {
                    if self.last_report.is_none_or(|last_report| report_seq > last_report) {
                        self.last_report = Some(report_seq);
                        emit(event);
                    }
                }
                ClientEvent::ReportsMissing { from, next } => {
                    let from = self.last_report.map_or(from, |last_report| from.max(last_report + 1));
                    if from < next {
                        self.last_report = Some(next - 1);
                        emit(ClientEvent::ReportsMissing { from, next });
                    }
                }
                ClientEvent::Late { session_seq, .. } => {
                    if session_seq >= self.unanswered {
                        emit(event);
                    }
                }
                ClientEvent::Disconnected { .. } => {
                    if !self.is_logged_on() {
                        emit(event);
                    }
                }
                ClientEvent::Ended(error) => self.on_ended(stream, error, emit),
            }
        }
    }

    fn on_logged_on(&mut self, stream: usize, session: SessionId, emit: &mut impl FnMut(ClientEvent)) {
        let Stream { client, is_joined, .. } = &mut self.streams[stream];
        match self.session {
            None => {
                self.session = Some(session);
                self.first = client.next().unwrap_or(SessionSeq(1));
                self.unanswered = self.first;
                *is_joined = true;
                emit(ClientEvent::LoggedOn { session });
            }
            Some(other) if other != session => {
                let error = ClientError::SessionLost { was: other, unanswered_from: self.unanswered };
                self.end(error, emit);
            }
            // This stream began its logon before the first stream finished. It joins if no command was numbered meanwhile;
            // otherwise it starts over.
            Some(_) if !*is_joined => {
                if client.next() == Some(SessionSeq(self.first.0 + self.kept.len() as u64)) && self.unanswered_count() == 0 {
                    self.streams[stream].is_joined = true;
                } else {
                    self.streams[stream].client.give_up();
                }
            }
            Some(_) => {}
        }
    }

    fn on_ended(&mut self, stream: usize, error: ClientError, emit: &mut impl FnMut(ClientEvent)) {
        self.streams[stream].is_joined = false;
        match error {
            // The replica is behind all retained commands: try again later.
            ClientError::OtherNumbers { expected, from, .. } if expected < from => self.streams[stream].client.give_up(),
            ClientError::ReportsWentBack { .. } => self.streams[stream].client.give_up(),
            ClientError::Bye(ByeReason::Rejected(RejectReason::SessionSeqTooOld)) => self.streams[stream].client.give_up(),
            ClientError::Bye(ByeReason::Replaced)
            | ClientError::SessionLost { .. }
            | ClientError::OtherNumbers { .. }
            | ClientError::LoggedOut => self.end(error, emit),
            ClientError::Bye(_) | ClientError::OtherVersions { .. } | ClientError::Malformed(_) => {
                self.streams[stream].is_dead = true;
                if self.streams.iter().all(|stream| stream.is_dead) {
                    self.end(error, emit);
                }
            }
        }
    }

    fn end(&mut self, error: ClientError, emit: &mut impl FnMut(ClientEvent)) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.streams.iter_mut().for_each(|stream| stream.client.log_out(&mut |_| ()));
            emit(ClientEvent::Ended(error));
        }
    }

    /// Logs out on every stream.
    pub fn log_out(&mut self, emit: &mut impl FnMut(ClientEvent)) {
        self.end(ClientError::LoggedOut, emit);
    }

    /// When to call [`CopiedClient::on_timer`] or [`CopiedClient::wish`] next.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.streams.iter().filter_map(|stream| stream.client.deadline_ns()).min()
    }

    /// Bytes to write to a stream's connection.
    #[must_use]
    pub fn output(&mut self, stream: usize) -> &[u8] {
        self.streams[stream].client.output()
    }

    /// Removes `len` bytes that were written.
    pub fn consume(&mut self, stream: usize, len: usize) {
        self.streams[stream].client.consume(len);
    }
}
