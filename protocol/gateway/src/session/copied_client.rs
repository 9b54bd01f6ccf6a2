//! A program's end of a session over several connections at once, to several replicas: each command goes by all of them, what comes
//! first counts, and the loss of all but one of them costs nothing but that.
//!
//! The streams are [`SessionClient`]s whose numbers are those of the whole. A stream that has lost its connection, or that lags
//! behind what is kept, starts over with the last commands, answered ones too: its replica may not have received those.

use std::collections::VecDeque;

use walras_types::{RejectReason, SessionId, SessionSeq};
use walras_wire::Command;
use walras_wire::order_entry::{ByeReason, Copies, EntryVersion, OnDisconnect, ReportsWanted};

use super::UNANSWERED_MAX;
use super::client::SessionClient;
use super::client_settings::{ClientError, ClientEvent, ClientSettings, SubmitError, Wish};
use crate::ClientKey;

/// Unanswered commands, at most: as many answered ones are kept with them, and the venue remembers the answers of no more than
/// both.
const WINDOW_MAX: u32 = UNANSWERED_MAX / 2;

/// A program's end of a session that several connections have.
#[derive(Debug)]
pub struct CopiedClient {
    window: usize,
    streams: Vec<Stream>,
    session: Option<SessionId>,
    /// The last commands, from `first` on.
    kept: VecDeque<Command>,
    first: SessionSeq,
    /// The first whose answer the user has not got.
    unanswered: SessionSeq,
    /// Number of the latest report that the user got.
    told: Option<u64>,
    is_over: bool,
}

#[derive(Debug)]
struct Stream {
    client: SessionClient,
    /// Its numbers are the whole's.
    is_joined: bool,
    /// Its replica does not want it, whatever becomes of the others.
    is_dead: bool,
}

impl CopiedClient {
    /// A session with a stream for each of these addresses of replicas, none connected yet. Orders stay whatever connection is
    /// lost, and `settings.replicas` are where a stream goes when its own replica is away. `None` without addresses.
    #[must_use]
    pub fn new(settings: &ClientSettings, gateways: &[String], key: &ClientKey, now_ns: u64) -> Option<Self> {
        let stream = |gateway: &String| {
            let others = settings.replicas.iter().filter(|other| *other != gateway).cloned();
            let settings = ClientSettings {
                replicas: std::iter::once(gateway.clone()).chain(others).collect(),
                on_disconnect: OnDisconnect::Keep,
                version: EntryVersion::Two { copies: Copies::Several },
                ..settings.clone()
            };
            Some(Stream { client: SessionClient::new(settings, key.clone(), now_ns)?, is_joined: false, is_dead: false })
        };
        let streams: Vec<Stream> = gateways.iter().map(stream).collect::<Option<_>>()?;
        let told = if let ReportsWanted::After(after) = settings.reports { Some(after) } else { None };
        (!streams.is_empty()).then(|| Self {
            window: settings.window.clamp(1, WINDOW_MAX) as usize,
            streams,
            session: None,
            kept: VecDeque::new(),
            first: SessionSeq(1),
            unanswered: SessionSeq(1),
            told,
            is_over: false,
        })
    }

    /// Takes a command, numbers it, and sends it by every stream, now or as soon as that is possible.
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
                // It lags behind: it starts over when it can.
                stream.is_joined = false;
                stream.client.give_up();
            }
        }
        Ok(session_seq)
    }

    fn next(&self) -> SessionSeq {
        SessionSeq(self.first.0 + self.kept.len() as u64)
    }

    /// Commands that are not answered.
    #[must_use]
    pub fn unanswered_count(&self) -> usize {
        usize::try_from(self.next().0 - self.unanswered.0).unwrap_or(usize::MAX)
    }

    /// Streams.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Whether one stream at least is there now.
    #[must_use]
    pub fn is_logged_on(&self) -> bool {
        self.streams.iter().any(|stream| stream.client.is_logged_on())
    }

    /// What the host is to do for a stream.
    #[must_use]
    pub fn wish(&self, stream: usize, now_ns: u64) -> Wish<'_> {
        self.streams[stream].client.wish(now_ns)
    }

    /// The host begins to connect a stream as wished.
    pub fn on_connecting(&mut self, stream: usize) {
        self.streams[stream].client.on_connecting();
    }

    /// A stream's connection is there: logs on. As [`SessionClient::on_connected`].
    pub fn on_connected(&mut self, stream: usize, now_ns: u64, nonce: &str) {
        if let Some(session) = self.session {
            let Stream { client, is_joined, .. } = &mut self.streams[stream];
            client.join(session, self.first, self.kept.iter().copied().collect(), self.unanswered, self.told);
            *is_joined = true;
        }
        self.streams[stream].client.on_connected(now_ns, nonce);
    }

    /// A stream's connection is lost or closed, or could not be made.
    pub fn on_disconnected(&mut self, stream: usize, now_ns: u64) {
        let Stream { client, is_joined, .. } = &mut self.streams[stream];
        *is_joined = false;
        client.on_disconnected(now_ns);
    }

    /// Bytes came by a stream. `tell` gets what they mean for the whole, each answer and report once and in order.
    pub fn on_bytes(&mut self, stream: usize, now_ns: u64, bytes: &[u8], tell: &mut impl FnMut(ClientEvent)) {
        let mut events = Vec::new();
        self.streams[stream].client.on_bytes(now_ns, bytes, &mut |event| events.push(event));
        self.take(stream, events, tell);
    }

    /// Time passed: see [`CopiedClient::deadline_ns`].
    pub fn on_timer(&mut self, now_ns: u64, tell: &mut impl FnMut(ClientEvent)) {
        for stream in 0..self.streams.len() {
            let mut events = Vec::new();
            self.streams[stream].client.on_timer(now_ns, &mut |event| events.push(event));
            self.take(stream, events, tell);
        }
    }

    fn take(&mut self, stream: usize, events: Vec<ClientEvent>, tell: &mut impl FnMut(ClientEvent)) {
        for event in events {
            match event {
                ClientEvent::LoggedOn { session } => self.on_logged_on(stream, session, tell),
                ClientEvent::Answer { session_seq, .. } if session_seq == self.unanswered => {
                    self.unanswered = session_seq.next();
                    tell(event);
                }
                ClientEvent::Answer { .. } => {}
                ClientEvent::Report { report_seq, .. } => {
                    if self.told.is_none_or(|told| report_seq > told) {
                        self.told = Some(report_seq);
                        tell(event);
                    }
                }
                ClientEvent::ReportsMissing { from, next } => {
                    let from = self.told.map_or(from, |told| from.max(told + 1));
                    if from < next {
                        self.told = Some(next - 1);
                        tell(ClientEvent::ReportsMissing { from, next });
                    }
                }
                ClientEvent::Late { session_seq, .. } => {
                    if session_seq >= self.unanswered {
                        tell(event);
                    }
                }
                ClientEvent::Disconnected { .. } => {
                    if !self.is_logged_on() {
                        tell(event);
                    }
                }
                ClientEvent::Ended(error) => self.on_ended(stream, error, tell),
            }
        }
    }

    fn on_logged_on(&mut self, stream: usize, session: SessionId, tell: &mut impl FnMut(ClientEvent)) {
        let Stream { client, is_joined, .. } = &mut self.streams[stream];
        match self.session {
            None => {
                self.session = Some(session);
                self.first = client.next().unwrap_or(SessionSeq(1));
                self.unanswered = self.first;
                *is_joined = true;
                tell(ClientEvent::LoggedOn { session });
            }
            Some(other) if other != session => {
                let error = ClientError::SessionLost { was: other, unanswered_from: self.unanswered };
                self.end(error, tell);
            }
            // It began to log on before the first one had; nothing was numbered meanwhile, or it starts over.
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

    fn on_ended(&mut self, stream: usize, error: ClientError, tell: &mut impl FnMut(ClientEvent)) {
        self.streams[stream].is_joined = false;
        match error {
            // Its replica lags behind all that is kept: later.
            ClientError::OtherNumbers { expected, from, .. } if expected < from => self.streams[stream].client.give_up(),
            ClientError::ReportsWentBack { .. } => self.streams[stream].client.give_up(),
            ClientError::Bye(ByeReason::Rejected(RejectReason::SessionSeqTooOld)) => self.streams[stream].client.give_up(),
            ClientError::Bye(ByeReason::Replaced)
            | ClientError::SessionLost { .. }
            | ClientError::OtherNumbers { .. }
            | ClientError::LoggedOut => self.end(error, tell),
            ClientError::Bye(_) | ClientError::Malformed(_) => {
                self.streams[stream].is_dead = true;
                if self.streams.iter().all(|stream| stream.is_dead) {
                    self.end(error, tell);
                }
            }
        }
    }

    fn end(&mut self, error: ClientError, tell: &mut impl FnMut(ClientEvent)) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.streams.iter_mut().for_each(|stream| stream.client.log_out(&mut |_| ()));
            tell(ClientEvent::Ended(error));
        }
    }

    /// Says by every stream that nothing more is wanted.
    pub fn log_out(&mut self, tell: &mut impl FnMut(ClientEvent)) {
        self.end(ClientError::LoggedOut, tell);
    }

    /// When [`CopiedClient::on_timer`] or [`CopiedClient::wish`] has something new.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.streams.iter().filter_map(|stream| stream.client.deadline_ns()).min()
    }

    /// Bytes to write to a stream.
    #[must_use]
    pub fn output(&self, stream: usize) -> &[u8] {
        self.streams[stream].client.output()
    }

    /// So many of them were written.
    pub fn consume(&mut self, stream: usize, len: usize) {
        self.streams[stream].client.consume(len);
    }
}
