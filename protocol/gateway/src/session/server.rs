//! The venue's end of one connection.

use std::collections::VecDeque;

use walras_types::{AccountId, ContentDigest, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::{
    Answer, ByeReason, ClientMessage, EntryVersion, LOGON_METHOD, LOGON_PATH, Late, LoggedOn, Logon, LogonTerms, OnDisconnect,
    Refused, Report, ReportsWanted, Role, VenueMessage, decode_client, encode_venue,
};
use walras_wire::{Command, InvalidCommand, decode_submitted, encode_command};

use super::UNANSWERED_MAX;
use super::reports::Reports;
use super::stream::{Output, Partial};
use crate::{Allowance, AuthFields, Gateway, Permission, Principal, Refusal, Request, SourceId};

/// What a connection is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Unanswered commands, at most [`UNANSWERED_MAX`].
    pub window: u32,
    /// A logged-on connection on which nothing came for so long ends.
    pub idle_timeout_ns: u64,
    /// A connection that is not logged on after so long ends.
    pub logon_timeout_ns: u64,
    /// A connection whose output waits to be written beyond this many bytes ends.
    pub output_bytes_max: usize,
}

impl Default for ServerSettings {
    /// As many unanswered as can be, 15 s idle, 10 s to log on, 4 MiB of output.
    fn default() -> Self {
        Self {
            window: UNANSWERED_MAX,
            idle_timeout_ns: 15_000_000_000,
            logon_timeout_ns: 10_000_000_000,
            output_bytes_max: 4 << 20,
        }
    }
}

/// What a connection needs of its surroundings. [`Host::charge`] answers at once; the others only start what is answered later.
pub trait Host {
    /// Check this logon ([`LogonRequest::authorize`]), then call [`SessionServer::authenticated`].
    fn authenticate(&mut self, logon: LogonRequest);
    /// Open this session in the log, then call [`SessionServer::opened`], [`SessionServer::not_leader`] or [`SessionServer::bye`].
    fn open(&mut self, account: Option<AccountId>, token: u64, reports: ReportsWanted);
    /// May this key send one more command now? [`Gateway::charge`].
    fn charge(&mut self, now_ns: u64, principal: &Principal, permission: Permission, from: Allowance) -> Result<(), Refusal>;
    /// Bring this command into the log, then call [`SessionServer::answer`], [`SessionServer::refused`] or
    /// [`SessionServer::not_leader`]. `bytes` are the command's. Its result goes to the connection that serves the session by then:
    /// the sequencer does not forward a command twice that is on its way, though another connection may wait for it.
    fn submit(&mut self, ordinal: Ordinal, command: &Command, bytes: &[u8]);
}

/// A logon whose signature is to be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogonRequest {
    /// What it asks for.
    pub terms: LogonTerms,
    /// Who says so.
    pub fields: AuthFields,
}

impl LogonRequest {
    fn new(logon: &Logon<'_>) -> Self {
        let fields = AuthFields {
            key: logon.key_id.to_owned(),
            timestamp: logon.stamp_ns.to_string(),
            nonce: logon.nonce.to_owned(),
            signature: logon.signature.to_owned(),
        };
        Self { terms: logon.terms, fields }
    }

    /// Asks the gate: method `LOGON`, path `/v1/entry`, the terms' bytes as the body.
    pub fn authorize(&self, gateway: &mut Gateway, now_ns: u64, source: SourceId) -> Result<Principal, Refusal> {
        let mut body = Vec::new();
        self.terms.encode(&mut body);
        let request = Request { method: LOGON_METHOD, path: LOGON_PATH, body: &body };
        gateway.authorize(now_ns, source, &request, Some(&self.fields), permission_of(self.terms.role))
    }
}

const fn permission_of(role: Role) -> Permission {
    match role {
        Role::Account => Permission::Trade,
        Role::Operator => Permission::Operator,
    }
}

/// What a session begins with on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionStart {
    /// Which.
    pub session: SessionId,
    /// The number of the next new command.
    pub next: SessionSeq,
    /// The account's latest report.
    pub report_seq: u64,
    /// The first report that will be given to [`SessionServer::report`].
    pub reports_from: u64,
}

impl SessionStart {
    /// How it begins where these are the reports. Those from `reports_from` on are to be given to [`SessionServer::report`] at
    /// once, before any later one: [`Reports::resend`] after `reports_from - 1`.
    #[must_use]
    pub fn new(session: SessionId, next: SessionSeq, account: Option<AccountId>, wanted: ReportsWanted, reports: &Reports) -> Self {
        let report_seq = account.map_or(0, |account| reports.report_seq(account));
        let reports_from = match (account, wanted) {
            (Some(account), ReportsWanted::After(after)) => (after.min(report_seq) + 1).max(reports.first_kept(account)),
            (_, ReportsWanted::None | ReportsWanted::New) | (None, ReportsWanted::After(_)) => report_seq + 1,
        };
        Self { session, next, report_seq, reports_from }
    }
}

/// A report was left out: [`Reports::resend`] has those from `expected` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("report {expected} comes next: give the reports from there on again")]
pub struct ReportGap {
    /// The one that comes next.
    pub expected: u64,
}

/// The connection is over for the venue: what is left is to write the output and to close it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The session that it served.
    pub session: Option<SessionId>,
    /// Whose open orders are to be cancelled.
    pub cancel: Option<AccountId>,
    /// The reason that the client got; `None` if the connection was lost or another replica leads.
    pub reason: Option<ByeReason>,
}

/// The venue's end of one connection.
#[derive(Debug)]
pub struct SessionServer {
    settings: ServerSettings,
    state: State,
    partial: Partial,
    joined: Vec<u8>,
    output: Output,
    /// When bytes came last, or the connection began.
    heard_ns: u64,
    ended: Option<Ended>,
}

#[derive(Debug)]
enum State {
    Fresh,
    Authenticating(LogonTerms),
    Opening(Client),
    Open(Box<Open>),
    Over,
}

/// Who is there.
#[derive(Clone, Copy, Debug)]
struct Client {
    terms: LogonTerms,
    principal: Principal,
    account: Option<AccountId>,
}

#[derive(Debug)]
struct Open {
    client: Client,
    session: SessionId,
    /// What the log expected when the session was opened: the first command on this connection has this number or a lower one.
    next: SessionSeq,
    /// Commands from `unanswered` to before `expected` are on their way; `None` before the first one.
    asked: Option<Asked>,
    /// The next report.
    report_next: u64,
}

#[derive(Debug)]
struct Asked {
    unanswered: SessionSeq,
    expected: SessionSeq,
    /// The client has to go back to `expected`: what it already sent after that is dropped.
    is_set_back: bool,
    /// What the last commands of this connection said, up to the one before `expected`.
    contents: VecDeque<ContentDigest>,
    /// Answers that came before an earlier one: from `unanswered` on, which itself is none.
    early: VecDeque<Option<Answer>>,
}

/// So many commands are compared with what comes again under their numbers: all that are unanswered, and as many before them as
/// there is room for.
const CONTENTS_MAX: usize = UNANSWERED_MAX as usize;

impl Asked {
    /// What a command said, if it came by this connection lately.
    fn content(&self, session_seq: SessionSeq) -> Option<ContentDigest> {
        let back = usize::try_from(self.expected.0.checked_sub(session_seq.0)?).ok()?;
        self.contents.get(self.contents.len().checked_sub(back)?).copied()
    }
}

impl SessionServer {
    /// The venue's end of a connection that was made now.
    #[must_use]
    pub fn new(settings: ServerSettings, now_ns: u64) -> Self {
        let settings = ServerSettings { window: settings.window.clamp(1, UNANSWERED_MAX), ..settings };
        Self {
            settings,
            state: State::Fresh,
            partial: Partial::default(),
            joined: Vec::new(),
            output: Output::default(),
            heard_ns: now_ns,
            ended: None,
        }
    }

    /// Bytes came, cut anywhere.
    pub fn on_bytes(&mut self, now_ns: u64, bytes: &[u8], host: &mut impl Host) {
        if matches!(self.state, State::Open(_)) {
            self.heard_ns = self.heard_ns.max(now_ns);
        }
        let mut joined = std::mem::take(&mut self.joined);
        let mut rest = bytes;
        while !self.is_over() {
            match self.partial.next_frame(rest, &mut joined) {
                Ok((Some(frame), after)) => {
                    rest = after;
                    self.on_frame(now_ns, frame, host);
                }
                Ok((None, _)) => break,
                Err(error) => self.bye(ByeReason::Malformed, &error.to_string()),
            }
        }
        self.joined = joined;
    }

    fn on_frame(&mut self, now_ns: u64, frame: &[u8], host: &mut impl Host) {
        let message = match decode_client(frame) {
            Ok(message) => message,
            Err(error) => return self.bye(ByeReason::Malformed, &error.to_string()),
        };
        match (message, &mut self.state) {
            (_, State::Over) => {}
            (ClientMessage::Logon(logon), State::Fresh) => {
                if logon.terms.version.has_copies() && logon.terms.on_disconnect == OnDisconnect::Cancel {
                    let text = "A session with copies keeps its orders: the loss of one of its connections means nothing. Log on with on_disconnect 0.";
                    return self.bye(ByeReason::Rejected(RejectReason::Malformed), text);
                }
                self.state = State::Authenticating(logon.terms);
                host.authenticate(LogonRequest::new(&logon));
            }
            (ClientMessage::Logon(_), State::Authenticating(_) | State::Opening(_) | State::Open(_)) => {
                self.bye(ByeReason::Malformed, "A connection logs on once: open another one.");
            }
            (ClientMessage::Submit { session_seq, command }, State::Open(_)) => self.on_submit(now_ns, session_seq, command, host),
            (ClientMessage::Ping(number), State::Open(_)) => self.put(&VenueMessage::Pong(number)),
            (ClientMessage::Logout, _) => self.bye(ByeReason::LoggedOut, ""),
            (
                ClientMessage::Submit { .. } | ClientMessage::Ping(_),
                State::Fresh | State::Authenticating(_) | State::Opening(_),
            ) => self.bye(ByeReason::LogonExpected, ""),
        }
    }

    fn on_submit(&mut self, now_ns: u64, session_seq: SessionSeq, bytes: &[u8], host: &mut impl Host) {
        let State::Open(open) = &mut self.state else { return };
        if open.asked.is_none() && session_seq <= open.next {
            let early = VecDeque::new();
            open.asked = Some(Asked {
                unanswered: session_seq,
                expected: session_seq,
                is_set_back: false,
                contents: VecDeque::new(),
                early,
            });
        }
        let Some(asked) = &mut open.asked else {
            let text = format!("The venue expects {}, or one that it had before.", open.next);
            return self.bye(ByeReason::SessionSeqGap, &text);
        };
        if session_seq > asked.expected && asked.is_set_back {
            // It was sent before the client knew that it must go back.
            return;
        }
        if session_seq > asked.expected {
            let expected = asked.expected;
            return self.bye(ByeReason::SessionSeqGap, &format!("The venue expects {expected}."));
        }
        let Client { terms, account, .. } = open.client;
        let permission = permission_of(terms.role);
        let mut command = decode_submitted(bytes, account);
        if !command.may_be_submitted_by(terms.role) {
            command = Command::Invalid(InvalidCommand::new(account, bytes, RejectReason::Forbidden));
        }
        let mut in_its_place = Vec::new();
        let bytes = match command {
            Command::Invalid(_) => {
                encode_command(&command, &mut in_its_place);
                &in_its_place
            }
            _ => bytes,
        };
        let content = ContentDigest::of_bytes(bytes);
        if session_seq < asked.expected {
            // It is on its way, or answered.
            return match asked.content(session_seq) {
                Some(before) if before != content => self.reused(session_seq),
                Some(_) | None => {}
            };
        }
        if asked.expected.0 - asked.unanswered.0 >= u64::from(self.settings.window) {
            return self.bye(ByeReason::WindowExceeded, "");
        }
        if let Err(refusal) = host.charge(now_ns, &open.client.principal, permission, Allowance::of(&command)) {
            return match refusal.reason {
                RejectReason::Throttled => self.set_back(session_seq, refusal.reason, refusal.retry_after_ns),
                reason => self.bye(ByeReason::Rejected(reason), refusal.detail.as_deref().unwrap_or_default()),
            };
        }
        asked.expected = session_seq.next();
        asked.is_set_back = false;
        if asked.contents.len() >= CONTENTS_MAX {
            asked.contents.pop_front();
        }
        asked.contents.push_back(content);
        host.submit(Ordinal { session: open.session, session_seq }, &command, bytes);
    }

    /// A number was used for two commands. The venue cannot know which of them the sender expects an answer for.
    fn reused(&mut self, session_seq: SessionSeq) {
        let text = format!("Command {session_seq} differs from the one that had this number before, which counts.");
        self.bye(ByeReason::Rejected(RejectReason::SessionSeqReused), &text);
    }

    /// The gate's verdict on the logon.
    pub fn authenticated(&mut self, verdict: Result<Principal, Refusal>, host: &mut impl Host) {
        let State::Authenticating(terms) = self.state else { return };
        match verdict {
            Ok(principal) => {
                let may_read = principal.permissions().allow(Permission::Read);
                let account = match terms.role {
                    Role::Account => principal.account(),
                    Role::Operator => None,
                };
                if account.is_some() && terms.reports != ReportsWanted::None && !may_read {
                    let text = "Reports need a key with the permission \"read\": use one, or log on without reports.";
                    return self.bye(ByeReason::Rejected(RejectReason::Forbidden), text);
                }
                self.state = State::Opening(Client { terms, principal, account });
                host.open(account, terms.token, terms.reports);
            }
            Err(refusal) => self.bye(ByeReason::Rejected(refusal.reason), refusal.detail.as_deref().unwrap_or_default()),
        }
    }

    /// The session is open in the log.
    pub fn opened(&mut self, now_ns: u64, start: SessionStart) {
        let State::Opening(client) = self.state else { return };
        self.heard_ns = self.heard_ns.max(now_ns);
        self.state = State::Open(Box::new(Open {
            client,
            session: start.session,
            next: start.next,
            asked: None,
            report_next: start.reports_from,
        }));
        self.put(&VenueMessage::LoggedOn(LoggedOn {
            session: start.session,
            next: start.next,
            report_seq: start.report_seq,
            reports_from: start.reports_from,
            window: self.settings.window,
            idle_timeout_ns: self.settings.idle_timeout_ns,
        }));
    }

    /// The result of a command, with the log's time of it if known. Results that this connection does not wait for do no harm: a
    /// connection may be given all answers of its session.
    pub fn answer(&mut self, ordinal: Ordinal, answer: walras_types::Answer, time: Option<TimeNs>) {
        let State::Open(open) = &mut self.state else { return };
        let Some(asked) = open.asked.as_mut().filter(|_| ordinal.session == open.session) else { return };
        let session_seq = ordinal.session_seq;
        if session_seq < asked.unanswered || session_seq >= asked.expected {
            return;
        }
        if asked.content(session_seq).is_some_and(|content| answer.content != content) {
            return self.reused(session_seq);
        }
        let mut answer = Answer { session_seq, log_index: answer.log_index, time, rejected: answer.rejected };
        if session_seq > asked.unanswered {
            // A retry on this connection and the same command of the one before it may pass each other.
            let place = usize::try_from(session_seq.0 - asked.unanswered.0).expect("within the window");
            if asked.early.len() <= place {
                asked.early.resize(place + 1, None);
            }
            asked.early[place] = Some(answer);
            return;
        }
        loop {
            asked.unanswered = asked.unanswered.next();
            asked.early.pop_front();
            encode_venue(&VenueMessage::Answer(answer), self.output.end());
            match asked.early.front() {
                Some(Some(early)) => answer = *early,
                Some(None) | None => break,
            }
        }
        self.check_output();
    }

    /// A command did not get into the log. If sending it again can help, the client is asked to; else the connection ends. For a
    /// command that the sequencer lost while it still leads, give [`RejectReason::VenueNotReady`].
    pub fn refused(&mut self, ordinal: Ordinal, reason: RejectReason, retry_after_ns: Option<u64>) {
        let State::Open(open) = &mut self.state else { return };
        let Some(asked) = open.asked.as_mut().filter(|_| ordinal.session == open.session) else { return };
        let session_seq = ordinal.session_seq;
        if session_seq < asked.unanswered || session_seq >= asked.expected {
            // It was answered; or an earlier one was refused, and both will come again.
            return;
        }
        match reason {
            RejectReason::Throttled | RejectReason::Overloaded | RejectReason::VenueNotReady | RejectReason::StorageFull => {
                self.set_back(session_seq, reason, retry_after_ns);
            }
            // One before it was refused and comes again: either this one too, or it has come again already and is on its way behind
            // that.
            RejectReason::SessionSeqGap => {}
            _ => self.bye(ByeReason::Rejected(reason), &format!("Command {session_seq}.")),
        }
    }

    /// The sequencer got a command too late to put it in the order of stamps. A client of the first version is not notified.
    pub fn late(&mut self, ordinal: Ordinal, late_ns: u64) {
        let State::Open(open) = &self.state else { return };
        let is_told = matches!(open.client.terms.version, EntryVersion::Two { .. }) && ordinal.session == open.session;
        if is_told && open.asked.as_ref().is_some_and(|asked| ordinal.session_seq < asked.expected) {
            self.put(&VenueMessage::Late(Late { session_seq: ordinal.session_seq, late_ns }));
        }
    }

    fn set_back(&mut self, session_seq: SessionSeq, reason: RejectReason, retry_after_ns: Option<u64>) {
        let State::Open(open) = &mut self.state else { return };
        let Some(asked) = &mut open.asked else { return };
        let taken_back = usize::try_from(asked.expected.0 - session_seq.0).expect("within the window");
        asked.contents.truncate(asked.contents.len().saturating_sub(taken_back));
        asked.expected = session_seq;
        asked.is_set_back = true;
        asked.early.truncate(usize::try_from(session_seq.0 - asked.unanswered.0).expect("within the window"));
        self.put(&VenueMessage::Refused(Refused { session_seq, reason, retry_after_ns }));
    }

    /// Something that concerns the session's account. An earlier one than the next is no harm; a later one is refused.
    pub fn report(&mut self, report: &Report<'_>) -> Result<(), ReportGap> {
        let State::Open(open) = &mut self.state else { return Ok(()) };
        if open.client.account.is_none() || open.client.terms.reports == ReportsWanted::None || report.report_seq < open.report_next
        {
            return Ok(());
        }
        if report.report_seq > open.report_next {
            return Err(ReportGap { expected: open.report_next });
        }
        open.report_next += 1;
        self.put(&VenueMessage::Report(*report));
        Ok(())
    }

    /// Another replica leads. Open orders stay: the client is expected there.
    pub fn not_leader(&mut self, leader: &str) {
        if !self.is_over() {
            encode_venue(&VenueMessage::NotLeader { leader }, self.output.end());
            self.end(None, OnDisconnect::Keep);
        }
    }

    /// A newer connection has the session. Open orders stay: they are that one's.
    pub fn replaced(&mut self) {
        self.bye(ByeReason::Replaced, "");
    }

    /// The connection is lost, or the host closed it.
    pub fn on_disconnect(&mut self) {
        if !self.is_over() {
            self.end(None, OnDisconnect::Cancel);
        }
    }

    /// Time passed: see [`SessionServer::deadline_ns`].
    pub fn on_timer(&mut self, now_ns: u64) {
        if now_ns < self.deadline_ns().unwrap_or(u64::MAX) {
            return;
        }
        match self.state {
            State::Fresh => self.bye(ByeReason::LogonExpected, "None came in time."),
            State::Authenticating(_) | State::Opening(_) => self.bye(ByeReason::Rejected(RejectReason::VenueNotReady), ""),
            State::Open(_) => self.bye(ByeReason::Idle, ""),
            State::Over => {}
        }
    }

    /// When [`SessionServer::on_timer`] has something to do; `None` when the connection is over.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        match self.state {
            State::Fresh | State::Authenticating(_) | State::Opening(_) => {
                Some(self.heard_ns.saturating_add(self.settings.logon_timeout_ns))
            }
            State::Open(_) => Some(self.heard_ns.saturating_add(self.settings.idle_timeout_ns)),
            State::Over => None,
        }
    }

    /// Tells the client why, and ends the connection.
    pub fn bye(&mut self, reason: ByeReason, text: &str) {
        if self.is_over() {
            return;
        }
        encode_venue(&VenueMessage::Bye { reason, text }, self.output.end());
        let on_disconnect = match reason {
            ByeReason::LoggedOut | ByeReason::Replaced | ByeReason::VenueFault | ByeReason::ShuttingDown => OnDisconnect::Keep,
            ByeReason::Idle
            | ByeReason::SlowReader
            | ByeReason::LogonExpected
            | ByeReason::SessionSeqGap
            | ByeReason::WindowExceeded
            | ByeReason::Malformed
            | ByeReason::Rejected(_) => OnDisconnect::Cancel,
        };
        self.end(Some(reason), on_disconnect);
    }

    fn end(&mut self, reason: Option<ByeReason>, loss: OnDisconnect) {
        let (session, client) = match &self.state {
            State::Open(open) => (Some(open.session), Some(open.client)),
            State::Fresh | State::Authenticating(_) | State::Opening(_) | State::Over => (None, None),
        };
        let cancels = |client: &Client| loss == OnDisconnect::Cancel && client.terms.on_disconnect == OnDisconnect::Cancel;
        let cancel = client.filter(cancels).and_then(|client| client.account);
        self.ended = Some(Ended { session, cancel, reason });
        self.state = State::Over;
        self.partial.clear();
    }

    /// Once, when the connection has ended: what became of it.
    pub fn take_ended(&mut self) -> Option<Ended> {
        self.ended.take()
    }

    /// Whether the connection is over: write the output as far as it goes, then close.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The session, once it is open and while the connection lasts.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        match &self.state {
            State::Open(open) => Some(open.session),
            State::Fresh | State::Authenticating(_) | State::Opening(_) | State::Over => None,
        }
    }

    /// Commands on their way.
    #[must_use]
    pub fn unanswered_count(&self) -> u64 {
        match &self.state {
            State::Open(open) => open.asked.as_ref().map_or(0, |asked| asked.expected.0 - asked.unanswered.0),
            State::Fresh | State::Authenticating(_) | State::Opening(_) | State::Over => 0,
        }
    }

    /// Bytes to write.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.unwritten()
    }

    /// So many of them were written.
    pub fn consume(&mut self, len: usize) {
        self.output.consume(len);
    }

    fn put(&mut self, message: &VenueMessage<'_>) {
        encode_venue(message, self.output.end());
        self.check_output();
    }

    fn check_output(&mut self) {
        if self.output.unwritten().len() > self.settings.output_bytes_max {
            self.bye(ByeReason::SlowReader, "");
        }
    }
}
