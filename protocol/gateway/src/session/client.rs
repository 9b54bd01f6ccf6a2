//! The client side of an order-entry session. It reconnects, to the same replica or another, and resends unanswered commands.

use std::collections::VecDeque;

use walras_types::{BatchMarketId, RejectReason, SessionId, SessionSeq};
use walras_wire::order_entry::{
    Answer, ByeReason, ClientMessage, FRAME_HEADER_BYTES, FrameSizes, LoggedOn, Logon, LogonTerms, ORDER_ENTRY_VERSION, Refused,
    Report, ReportsWanted, Role, Sealing, VenueMessage, Welcome, decode_report_event, decode_venue, encode_client,
};
use walras_wire::{Command, DecodeError, encode_command};

use super::UNANSWERED_MAX;
use super::client_settings::{ClientError, ClientEvent, ClientSettings, SubmitError, Wish};
use super::seal::{ClientAgreement, LogonHash, Outbox, Seals, signed_logon};
use super::sent_transactions::SentTransactions;
use super::stream::Partial;
use super::transactions::FrameOutcome;
use crate::ClientKey;

/// A replica that fell silent is tried only after all others for this many times the timeout by which it was left.
const SILENT_TIMES: u64 = 4;

/// The client side of a session. The host connects where [`SessionClient::wish`] says, carries bytes, and calls
/// [`SessionClient::on_timer`] at the deadline.
#[derive(Debug)]
pub struct SessionClient {
    settings: ClientSettings,
    key: ClientKey,
    link: Link,
    handshake: Handshake,
    partial: Partial,
    joined: Vec<u8>,
    output: Outbox,
    /// Encoding buffer, reused for each command.
    scratch: Vec<u8>,
    /// Index of the replica to try; the address that a replica named as the leader; whether to try that address next.
    replica: usize,
    hint: Option<String>,
    is_named: bool,
    /// Addresses that fell silent lately, and until when each is tried only if no other is left.
    silent: Vec<(String, u64)>,
    session: Option<Numbers>,
    transactions: SentTransactions,
    /// Results that the user has not taken yet.
    transactions_done: VecDeque<FrameOutcome>,
    /// For a stream of a session with copies: commands before this number were answered by another stream. They are dropped if the
    /// venue expects a later number.
    answered_before: Option<SessionSeq>,
    /// Number of the latest report delivered to the user; `None` until the first number is known.
    last_report: Option<u64>,
    /// Time of the last input; of the last output; and since when the oldest unanswered command has been waiting.
    heard_ns: u64,
    sent_ns: u64,
    progress_ns: u64,
}

/// How far the logon of this connection is.
#[derive(Debug)]
enum Handshake {
    None,
    /// The venue is to speak first.
    AwaitsWelcome {
        agreement: ClientAgreement,
        logon_seq: u64,
    },
    /// The logon was sent; what comes after it is sealed with these, where it is sealed.
    Sent(Option<Seals>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down {
        retry_ns: u64,
    },
    Connecting,
    LoggingOn {
        since_ns: u64,
    },
    Up {
        idle_timeout_ns: u64,
    },
    /// To be closed; the client then connects again.
    Broken,
    /// The session is over. The connection is to be closed if it is still open.
    Ended {
        is_connected: bool,
    },
}

/// The sequence numbers of a session. They outlive its connections.
#[derive(Debug)]
struct Numbers {
    session: SessionId,
    /// Unanswered commands, numbered from `first`.
    unanswered: VecDeque<Command>,
    first: SessionSeq,
    /// How many of `unanswered` were sent on this connection.
    sent: usize,
    /// Number of unanswered commands that the venue allows.
    window: u32,
    /// Nothing is sent before this time.
    hold_until_ns: u64,
}

impl Numbers {
    fn next(&self) -> SessionSeq {
        SessionSeq(self.first.0 + self.unanswered.len() as u64)
    }

    /// How many unanswered commands fit the venue's window.
    fn sendable(&self) -> usize {
        self.unanswered.len().min(self.window as usize)
    }
}

impl SessionClient {
    /// Creates a session that is not connected yet. `None` if `settings` has no replica's address.
    #[must_use]
    pub fn new(settings: ClientSettings, key: ClientKey, now_ns: u64) -> Option<Self> {
        let last_report = match settings.reports {
            ReportsWanted::After(after) => Some(after),
            ReportsWanted::None | ReportsWanted::New => None,
        };
        let settings = ClientSettings { window: settings.window.clamp(1, UNANSWERED_MAX), ..settings };
        (!settings.replicas.is_empty()).then(|| Self {
            settings,
            key,
            link: Link::Down { retry_ns: now_ns },
            partial: Partial::default(),
            joined: Vec::new(),
            output: Outbox::default(),
            handshake: Handshake::None,
            scratch: Vec::new(),
            replica: 0,
            hint: None,
            is_named: false,
            silent: Vec::new(),
            session: None,
            transactions: SentTransactions::default(),
            transactions_done: VecDeque::new(),
            answered_before: None,
            last_report,
            heard_ns: now_ns,
            sent_ns: now_ns,
            progress_ns: now_ns,
        })
    }

    /// Numbers a command and sends it as soon as possible, repeatedly if connections are lost.
    pub fn submit(&mut self, now_ns: u64, command: &Command) -> Result<SessionSeq, SubmitError> {
        if matches!(self.link, Link::Ended { .. }) {
            return Err(SubmitError::Ended);
        }
        let numbers = self.session.as_mut().ok_or(SubmitError::NotLoggedOnYet)?;
        let window = self.settings.window.min(numbers.window);
        if numbers.unanswered.len() >= window as usize {
            return Err(SubmitError::WindowFull(window));
        }
        let session_seq = numbers.next();
        self.push(now_ns, command);
        Ok(session_seq)
    }

    /// Sends a frame of signed transactions as soon as possible, repeatedly if connections are lost. `items` is made by
    /// [`walras_wire::order_entry::push_signed_bytes`]. Returns the frame's number, which its results repeat
    /// ([`SessionClient::next_transactions`]).
    ///
    /// # Errors
    /// These are no items, too many transactions are unanswered, or the session has ended.
    pub fn submit_transactions(&mut self, now_ns: u64, market: BatchMarketId, items: Vec<u8>) -> Result<u64, SubmitError> {
        if matches!(self.link, Link::Ended { .. }) {
            return Err(SubmitError::Ended);
        }
        let is_first = self.transactions.count() == 0;
        let number = self.transactions.push(market, items)?;
        if is_first && self.unanswered_count() == 0 {
            self.progress_ns = now_ns;
        }
        self.send_transactions(now_ns);
        Ok(number)
    }

    /// What came of a frame of transactions: of each frame once, in any order. A frame that was sent by two connections may have been taken
    /// by the first: then its transactions were collected once, and come back as duplicates (12), or as out of the window (32).
    pub fn next_transactions(&mut self) -> Option<FrameOutcome> {
        self.transactions_done.pop_front()
    }

    /// Number of transactions without results.
    #[must_use]
    pub fn unanswered_transactions(&self) -> usize {
        self.transactions.count()
    }

    fn send_transactions(&mut self, now_ns: u64) {
        if !self.is_logged_on() {
            return;
        }
        while let Some(frame) = self.transactions.next_unsent() {
            self.output.put(&ClientMessage::Transactions(frame));
            self.sent_ns = now_ns;
        }
    }

    fn push(&mut self, now_ns: u64, command: &Command) {
        let Some(numbers) = &mut self.session else { return };
        if numbers.unanswered.is_empty() {
            self.progress_ns = now_ns;
        }
        numbers.unanswered.push_back(*command);
        self.send_unsent(now_ns);
    }

    /// Adds the next command of a session with several streams. `false` if this stream lags further behind than the venue
    /// remembers.
    pub(super) fn append(&mut self, now_ns: u64, command: &Command) -> bool {
        // Before the logon the queue also holds commands that other streams have had answered.
        let most = if self.is_logged_on() { UNANSWERED_MAX } else { 2 * UNANSWERED_MAX };
        let keeps_up = self.unanswered_count() < most as usize && !matches!(self.link, Link::Ended { .. });
        if keeps_up {
            self.push(now_ns, command);
        }
        keeps_up
    }

    /// Prepares one of several streams of a session for its logon. `unanswered` are the session's last commands, numbered from
    /// `first`; those before `answered_before` are answered. `last_report` is the number of the latest report delivered to the
    /// user.
    pub(super) fn join(
        &mut self,
        session: SessionId,
        first: SessionSeq,
        unanswered: VecDeque<Command>,
        answered_before: SessionSeq,
        last_report: Option<u64>,
    ) {
        let (sent, window, hold_until_ns) = (0, UNANSWERED_MAX, 0);
        self.session = Some(Numbers { session, unanswered, first, sent, window, hold_until_ns });
        self.answered_before = Some(answered_before);
        self.last_report = last_report;
    }

    /// Number of the next command; `None` before the first logon.
    pub(super) fn next(&self) -> Option<SessionSeq> {
        self.session.as_ref().map(Numbers::next)
    }

    /// Closes the connection and connects again, even if the session has ended.
    pub(super) fn give_up(&mut self) {
        self.link = match self.link {
            Link::Down { retry_ns } => Link::Down { retry_ns },
            Link::Connecting | Link::LoggingOn { .. } | Link::Up { .. } | Link::Broken | Link::Ended { .. } => Link::Broken,
        };
    }

    /// What the host must do now.
    #[must_use]
    pub fn wish(&self, now_ns: u64) -> Wish<'_> {
        match self.link {
            Link::Down { retry_ns } if now_ns >= retry_ns => Wish::Connect(self.target()),
            Link::Broken | Link::Ended { is_connected: true } => Wish::Close,
            Link::Down { .. } | Link::Connecting | Link::LoggingOn { .. } | Link::Up { .. } | Link::Ended { .. } => Wish::Wait,
        }
    }

    fn target(&self) -> &str {
        self.hint.as_deref().unwrap_or(&self.settings.replicas[self.replica])
    }

    /// The host has started to connect, as [`SessionClient::wish`] asked.
    pub fn on_connecting(&mut self) {
        if matches!(self.link, Link::Down { .. }) {
            self.link = Link::Connecting;
        }
    }

    /// The connection is established: logs on when the venue has spoken. `now_ns` is the time since the Unix epoch; of two logons the
    /// one with the later time keeps the session. `entropy` comes from a cryptographic source, new for each connection.
    pub fn on_connected(&mut self, now_ns: u64, entropy: &[u8; ClientAgreement::ENTROPY_LEN]) {
        if !matches!(self.link, Link::Down { .. } | Link::Connecting) {
            return;
        }
        self.partial.clear();
        self.output.clear();
        self.handshake = Handshake::AwaitsWelcome { agreement: ClientAgreement::new(entropy), logon_seq: now_ns };
        self.link = Link::LoggingOn { since_ns: now_ns };
        (self.heard_ns, self.sent_ns, self.progress_ns) = (now_ns, now_ns, now_ns);
    }

    fn on_welcome(&mut self, m: &Welcome, emit: &mut impl FnMut(ClientEvent)) {
        let Handshake::AwaitsWelcome { agreement, logon_seq } = std::mem::replace(&mut self.handshake, Handshake::None) else {
            return self.break_off(None, emit);
        };
        if !(m.versions.0..=m.versions.1).contains(&ORDER_ENTRY_VERSION) {
            return self.end(ClientError::OtherVersions { first: m.versions.0, last: m.versions.1 }, emit);
        }
        let reports = match (self.settings.reports, self.last_report) {
            (ReportsWanted::None, _) => ReportsWanted::None,
            (_, Some(last_report)) => ReportsWanted::After(last_report),
            (wanted, None) => wanted,
        };
        let ClientSettings { on_disconnect, role, token, copies, .. } = self.settings;
        let terms = LogonTerms { on_disconnect, role, token, reports, copies, logon_seq };
        let client_key = agreement.client_key();
        let signature = self.key.sign_bytes(&signed_logon(&m.challenge, &m.venue_key, &client_key, &terms));
        let key_id = self.key.key_id();
        let logon = ClientMessage::Logon(Logon { terms, client_key, key_id: key_id.as_str(), signature: &signature });
        self.scratch.clear();
        encode_client(&logon, &mut self.scratch);
        let seals = match m.sealing {
            Sealing::Off => None,
            Sealing::Required => {
                let seals = agreement.agree(m.venue_key, &LogonHash::of(&self.scratch[FRAME_HEADER_BYTES..]));
                if seals.is_none() {
                    return self.break_off(None, emit);
                }
                seals
            }
        };
        self.output.put(&logon);
        self.handshake = Handshake::Sent(seals);
    }

    /// The connection was lost or closed, or the attempt failed.
    pub fn on_disconnected(&mut self, now_ns: u64) {
        self.partial.clear();
        self.output.clear();
        self.transactions.resend();
        if let Some(numbers) = &mut self.session {
            numbers.sent = 0;
            numbers.hold_until_ns = 0;
        }
        match self.link {
            Link::Ended { .. } => self.link = Link::Ended { is_connected: false },
            Link::Down { .. } | Link::Connecting | Link::LoggingOn { .. } | Link::Up { .. } | Link::Broken => {
                self.try_another(now_ns);
            }
        }
    }

    /// Connects to the replica that was just named as the leader, at once; otherwise to the next in the list that did not fall silent
    /// lately, after a delay.
    fn try_another(&mut self, now_ns: u64) {
        let was_named = std::mem::take(&mut self.is_named);
        if !was_named {
            self.hint = None;
            let count = self.settings.replicas.len();
            let following = (1..=count).map(|step| (self.replica + step) % count);
            let next = following.clone().find(|&replica| !self.is_silent(now_ns, &self.settings.replicas[replica]));
            self.replica = next.unwrap_or((self.replica + 1) % count);
        }
        let delay_ns = if was_named { 0 } else { self.settings.retry_delay_ns };
        self.link = Link::Down { retry_ns: now_ns.saturating_add(delay_ns) };
    }

    fn is_silent(&self, now_ns: u64, address: &str) -> bool {
        self.silent.iter().any(|(silent, until_ns)| silent == address && now_ns < *until_ns)
    }

    /// Leaves a replica that said nothing for this time. The others may name it as the leader until they notice too.
    fn leave_silent(&mut self, now_ns: u64, timeout_ns: u64, emit: &mut impl FnMut(ClientEvent)) {
        let address = self.target().to_owned();
        self.silent.retain(|(silent, until_ns)| *silent != address && now_ns < *until_ns);
        self.silent.push((address, now_ns.saturating_add(timeout_ns.saturating_mul(SILENT_TIMES))));
        self.break_off(None, emit);
    }

    /// Takes received bytes, cut anywhere. Calls `emit` with each event that they complete, in order.
    pub fn on_bytes(&mut self, now_ns: u64, bytes: &[u8], emit: &mut impl FnMut(ClientEvent)) {
        self.heard_ns = self.heard_ns.max(now_ns);
        let mut joined = std::mem::take(&mut self.joined);
        let mut rest = bytes;
        while matches!(self.link, Link::LoggingOn { .. } | Link::Up { .. }) {
            let done = match self.partial.next_frame(rest, FrameSizes::Short, &mut joined) {
                Ok((Some(frame), after)) => {
                    rest = after;
                    decode_venue(frame).and_then(|message| self.on_message(now_ns, &message, emit))
                }
                Ok((None, _)) => break,
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                self.end(ClientError::Malformed(error), emit);
            }
        }
        self.joined = joined;
    }

    fn on_message(
        &mut self,
        now_ns: u64,
        message: &VenueMessage<'_>,
        emit: &mut impl FnMut(ClientEvent),
    ) -> Result<(), DecodeError> {
        match message {
            VenueMessage::Welcome(m) => self.on_welcome(m, emit),
            VenueMessage::LoggedOn(m) => self.on_logged_on(now_ns, m, emit),
            VenueMessage::Answer(m) => self.on_answer(now_ns, m, emit),
            VenueMessage::Report(m) => self.on_report(m, emit)?,
            VenueMessage::NotLeader { leader } => {
                let is_news = !leader.is_empty() && *leader != self.target() && !self.is_silent(now_ns, leader);
                // Two replicas that name each other as the leader must not make the client reconnect in a tight loop.
                self.hint = (is_news && self.hint.is_none()).then(|| (*leader).to_owned());
                self.is_named = self.hint.is_some();
                self.break_off(None, emit);
            }
            VenueMessage::Refused(m) => self.on_refused(now_ns, m),
            VenueMessage::Late(m) => emit(ClientEvent::Late { session_seq: m.session_seq, late_ns: m.late_ns }),
            VenueMessage::Pong(_) => {}
            VenueMessage::Transactions(m) => match self.transactions.take(m) {
                Some(outcome) => {
                    self.progress_ns = now_ns;
                    self.transactions_done.push_back(outcome);
                }
                // Results of a frame that was not sent here.
                None => self.break_off(None, emit),
            },
            VenueMessage::Bye { reason, .. } => self.on_bye(*reason, emit),
        }
        Ok(())
    }

    fn on_logged_on(&mut self, now_ns: u64, m: &LoggedOn, emit: &mut impl FnMut(ClientEvent)) {
        let Handshake::Sent(seals) = std::mem::replace(&mut self.handshake, Handshake::None) else {
            return self.break_off(None, emit);
        };
        self.output.set_seals(seals);
        if let (Some(answered_before), Some(numbers)) = (self.answered_before.take(), &mut self.session) {
            while numbers.first < answered_before.min(m.next) && numbers.unanswered.pop_front().is_some() {
                numbers.first = numbers.first.next();
            }
        }
        match &mut self.session {
            None => {
                self.session = Some(Numbers {
                    session: m.session,
                    unanswered: VecDeque::new(),
                    first: m.next,
                    sent: 0,
                    window: m.window.max(1),
                    hold_until_ns: 0,
                });
            }
            Some(numbers) if numbers.session != m.session => {
                let error = ClientError::SessionLost { was: numbers.session, unanswered_from: numbers.first };
                return self.end(error, emit);
            }
            Some(numbers) if m.next < numbers.first || m.next > numbers.next() => {
                let (from, next) = (numbers.first, numbers.next());
                return self.end(ClientError::OtherNumbers { expected: m.next, from, next }, emit);
            }
            Some(numbers) => {
                numbers.window = m.window.max(1);
                (numbers.sent, numbers.hold_until_ns) = (0, 0);
            }
        }
        self.link = Link::Up { idle_timeout_ns: m.idle_timeout_ns };
        self.hint = None;
        self.progress_ns = now_ns;
        emit(ClientEvent::LoggedOn { session: m.session });
        if self.settings.reports != ReportsWanted::None && self.settings.role == Role::Account {
            self.begin_reports(m, emit);
        }
        self.send_unsent(now_ns);
        self.send_transactions(now_ns);
    }

    fn begin_reports(&mut self, m: &LoggedOn, emit: &mut impl FnMut(ClientEvent)) {
        let next = m.reports_from.max(1);
        match self.last_report {
            None => self.last_report = Some(next - 1),
            Some(last_report) if m.report_seq < last_report => {
                self.end(ClientError::ReportsWentBack { known: m.report_seq, sent: last_report }, emit)
            }
            Some(last_report) => self.skip_reports(last_report, next, emit),
        }
    }

    fn skip_reports(&mut self, last_report: u64, next: u64, emit: &mut impl FnMut(ClientEvent)) {
        if next > last_report.saturating_add(1) {
            self.last_report = Some(next - 1);
            emit(ClientEvent::ReportsMissing { from: last_report + 1, next });
        }
    }

    fn on_answer(&mut self, now_ns: u64, m: &Answer, emit: &mut impl FnMut(ClientEvent)) {
        let Some(numbers) = &mut self.session else { return self.break_off(None, emit) };
        if m.session_seq < numbers.first {
            return;
        }
        if m.session_seq > numbers.first || numbers.unanswered.is_empty() {
            // Answers come in order, so one was lost or does not belong here. A new connection repeats them.
            return self.break_off(None, emit);
        }
        numbers.unanswered.pop_front();
        numbers.first = numbers.first.next();
        numbers.sent = numbers.sent.saturating_sub(1);
        self.progress_ns = now_ns;
        let Answer { session_seq, log_index, time, rejected } = *m;
        emit(ClientEvent::Answer { session_seq, log_index, time, rejected });
        self.send_unsent(now_ns);
    }

    fn on_report(&mut self, m: &Report<'_>, emit: &mut impl FnMut(ClientEvent)) -> Result<(), DecodeError> {
        let last_report = self.last_report.unwrap_or(m.report_seq.saturating_sub(1));
        if m.report_seq <= last_report {
            return Ok(());
        }
        let event = decode_report_event(m.event)?;
        self.skip_reports(last_report, m.report_seq, emit);
        self.last_report = Some(m.report_seq);
        let (report_seq, log_index, time) = (m.report_seq, m.log_index, m.time);
        emit(ClientEvent::Report { report_seq, log_index, time, event });
        Ok(())
    }

    fn on_refused(&mut self, now_ns: u64, m: &Refused) {
        let Some(numbers) = &mut self.session else { return };
        let place = m.session_seq.0.checked_sub(numbers.first.0).and_then(|place| usize::try_from(place).ok());
        if let Some(place) = place.filter(|&place| place < numbers.sent) {
            numbers.sent = place;
            let wait_ns = m.retry_after_ns.unwrap_or(self.settings.retry_delay_ns);
            numbers.hold_until_ns = now_ns.saturating_add(wait_ns);
            self.progress_ns = self.progress_ns.max(numbers.hold_until_ns);
        }
    }

    fn on_bye(&mut self, reason: ByeReason, emit: &mut impl FnMut(ClientEvent)) {
        match reason {
            ByeReason::Idle | ByeReason::SlowReader | ByeReason::VenueFault | ByeReason::ShuttingDown | ByeReason::SealInvalid => {
                self.break_off(Some(reason), emit);
            }
            ByeReason::Rejected(
                RejectReason::Throttled | RejectReason::VenueNotReady | RejectReason::StorageFull | RejectReason::Overloaded,
            ) => self.break_off(Some(reason), emit),
            ByeReason::LoggedOut => self.end(ClientError::LoggedOut, emit),
            ByeReason::Replaced
            | ByeReason::LogonExpected
            | ByeReason::SessionSeqGap
            | ByeReason::WindowExceeded
            | ByeReason::Malformed
            | ByeReason::Rejected(_) => self.end(ClientError::Bye(reason), emit),
        }
    }

    fn break_off(&mut self, reason: Option<ByeReason>, emit: &mut impl FnMut(ClientEvent)) {
        self.link = Link::Broken;
        emit(ClientEvent::Disconnected { reason });
    }

    fn end(&mut self, error: ClientError, emit: &mut impl FnMut(ClientEvent)) {
        self.link = Link::Ended { is_connected: true };
        emit(ClientEvent::Ended(error));
    }

    /// Sends the commands not yet sent on this connection, within the venue's window.
    fn send_unsent(&mut self, now_ns: u64) {
        let (Link::Up { .. }, Some(numbers)) = (self.link, &mut self.session) else { return };
        if now_ns < numbers.hold_until_ns {
            return;
        }
        while numbers.sent < numbers.sendable() {
            self.scratch.clear();
            encode_command(&numbers.unanswered[numbers.sent], &mut self.scratch);
            let session_seq = SessionSeq(numbers.first.0 + numbers.sent as u64);
            self.output.put(&ClientMessage::Submit { session_seq, command: &self.scratch });
            numbers.sent += 1;
            self.sent_ns = now_ns;
        }
    }

    /// Logs out. The session stays open at the venue, and unanswered commands may still be executed.
    pub fn log_out(&mut self, emit: &mut impl FnMut(ClientEvent)) {
        match self.link {
            Link::Up { .. } => self.output.put(&ClientMessage::Logout),
            Link::Ended { .. } => {}
            Link::LoggingOn { .. } | Link::Broken => self.end(ClientError::LoggedOut, emit),
            Link::Down { .. } | Link::Connecting => {
                let is_connected = self.link == Link::Connecting;
                self.end(ClientError::LoggedOut, emit);
                self.link = Link::Ended { is_connected };
            }
        }
    }

    /// Handles timeouts and heartbeats. To be called at [`SessionClient::deadline_ns`].
    pub fn on_timer(&mut self, now_ns: u64, emit: &mut impl FnMut(ClientEvent)) {
        match self.link {
            Link::LoggingOn { since_ns } if now_ns >= since_ns.saturating_add(self.settings.logon_timeout_ns) => {
                self.leave_silent(now_ns, self.settings.logon_timeout_ns, emit);
            }
            Link::Up { idle_timeout_ns } => {
                if now_ns >= self.heard_ns.saturating_add(idle_timeout_ns) {
                    return self.leave_silent(now_ns, idle_timeout_ns, emit);
                }
                if self.answer_deadline_ns().is_some_and(|deadline_ns| now_ns >= deadline_ns) {
                    return self.leave_silent(now_ns, self.settings.answer_timeout_ns, emit);
                }
                self.send_unsent(now_ns);
                if now_ns >= self.sent_ns.saturating_add(idle_timeout_ns / 3) {
                    self.sent_ns = now_ns;
                    self.output.put(&ClientMessage::Ping(now_ns));
                }
            }
            Link::LoggingOn { .. } | Link::Down { .. } | Link::Connecting | Link::Broken | Link::Ended { .. } => {}
        }
    }

    fn answer_deadline_ns(&self) -> Option<u64> {
        let waits = self.unanswered_count() > 0 || self.transactions.count() > 0;
        waits.then(|| self.progress_ns.saturating_add(self.settings.answer_timeout_ns))
    }

    /// When to call [`SessionClient::on_timer`] or [`SessionClient::wish`] next; `None` if only the host's input can change
    /// something.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        match self.link {
            Link::Down { retry_ns } => Some(retry_ns),
            Link::LoggingOn { since_ns } => Some(since_ns.saturating_add(self.settings.logon_timeout_ns)),
            Link::Up { idle_timeout_ns } => {
                let silent_ns = self.heard_ns.saturating_add(idle_timeout_ns);
                let ping_ns = self.sent_ns.saturating_add(idle_timeout_ns / 3);
                let held_ns = self.session.as_ref().filter(|n| n.sent < n.sendable()).map(|n| n.hold_until_ns);
                let later_ns = |at_ns: Option<u64>| at_ns.unwrap_or(u64::MAX);
                Some(silent_ns.min(ping_ns).min(later_ns(held_ns)).min(later_ns(self.answer_deadline_ns())))
            }
            Link::Connecting | Link::Broken | Link::Ended { .. } => None,
        }
    }

    /// Whether the client is logged on.
    #[must_use]
    pub const fn is_logged_on(&self) -> bool {
        matches!(self.link, Link::Up { .. })
    }

    /// Number of unanswered commands.
    #[must_use]
    pub fn unanswered_count(&self) -> usize {
        self.session.as_ref().map_or(0, |numbers| numbers.unanswered.len())
    }

    /// Bytes to write. What was not sealed yet is sealed together, so ask when it is to be written.
    #[must_use]
    pub fn output(&mut self) -> &[u8] {
        self.output.unwritten()
    }

    /// Removes `len` bytes that were written.
    pub fn consume(&mut self, len: usize) {
        self.output.consume(len);
    }
}
