//! The venue's side of one connection.

use std::collections::VecDeque;

use walras_types::{AccountId, ContentDigest, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::{
    AGREEMENT_KEY_BYTES, Answer, ByeReason, ClientMessage, FrameSizes, Late, LoggedOn, Logon, LogonTerms, OnDisconnect,
    RUN_BYTES_MAX, Refused, Report, ReportsWanted, Role, Sealing, SignedTransactions, TRANSACTIONS_UNANSWERED_MAX, VenueMessage,
    Welcome, decode_client, encode_venue, seal_of, split_frame_of,
};
use walras_wire::{Command, InvalidCommand, decode_submitted, encode_command};

use super::UNANSWERED_MAX;
use super::reports::Reports;
use super::seal::{Greeting, LogonHash, Seals, signed_logon};
use super::stream::{Output, Partial};
use super::transactions::{FrameOutcome, TransactionFrame};
use crate::{Allowance, Gateway, Permission, Principal, Rate, Refusal, SourceId};

/// Limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Maximum number of unanswered commands, up to [`UNANSWERED_MAX`].
    pub window: u32,
    /// A logged-on connection ends after this time without input.
    pub idle_timeout_ns: u64,
    /// A connection that has not logged on by then ends.
    pub logon_timeout_ns: u64,
    /// A connection with more unwritten output ends.
    pub output_bytes_max: usize,
    /// Whether a client must seal what it sends after its logon.
    pub sealing: Sealing,
    /// Past reports that the logons of one account are sent, on all connections of a replica and of the gateways below it.
    pub resends: Rate,
}

impl ServerSettings {
    /// Of past reports: all sessions of an account may lack all that are kept at once, and two of them each second.
    pub const RESENDS: Rate = Rate::new(8_192, 65_536).expect("neither is zero");
}

impl Default for ServerSettings {
    /// [`UNANSWERED_MAX`] commands, 15 s idle, 10 s for the logon, 4 MiB of output, sealed input, [`Self::RESENDS`].
    fn default() -> Self {
        Self {
            window: UNANSWERED_MAX,
            idle_timeout_ns: 15_000_000_000,
            logon_timeout_ns: 10_000_000_000,
            output_bytes_max: 4 << 20,
            sealing: Sealing::Required,
            resends: Self::RESENDS,
        }
    }
}

/// What a connection needs of its host. [`Host::charge`] answers at once; the other calls start work whose result comes later.
pub trait Host {
    /// Checks a logon ([`LogonRequest::authorize`]), then calls [`SessionServer::authenticated`].
    fn authenticate(&mut self, logon: LogonRequest);
    /// Opens a session in the log, then calls [`SessionServer::opened`], [`SessionServer::not_leader`] or [`SessionServer::bye`].
    fn open(&mut self, account: Option<AccountId>, token: u64, reports: ReportsWanted);
    /// Checks whether a key may send one more command now ([`Gateway::charge`]).
    fn charge(&mut self, now_ns: u64, principal: &Principal, permission: Permission, from: Allowance) -> Result<(), Refusal>;
    /// Submits a command to the log, then calls [`SessionServer::answer`], [`SessionServer::refused`] or
    /// [`SessionServer::not_leader`]. `bytes` is the encoded command. The result must go to the connection that serves the session
    /// by then: the sequencer does not submit a command again while it is in flight, even if another connection waits for it.
    fn submit(&mut self, ordinal: Ordinal, command: &Command, bytes: &[u8]);
    /// Has the signatures of transactions checked and submits those that hold, then calls [`SessionServer::transactions_done`] of this
    /// connection.
    fn transactions(&mut self, frame: TransactionFrame);
}

/// A logon whose signature must be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogonRequest {
    /// The terms that it requests.
    pub terms: LogonTerms,
    /// The permission that its key must have.
    pub permission: Permission,
    /// The API key's id.
    pub key_id: String,
    /// The bytes that its signature must cover.
    pub signed: Vec<u8>,
    /// In base64url without padding.
    pub signature: String,
    /// Whether no challenge binds the signature to its connection, so that the state must remember the logon by its number.
    pub is_once: bool,
}

impl LogonRequest {
    fn new(logon: &Logon<'_>, welcome: &Welcome) -> Self {
        let signed = signed_logon(&welcome.challenge, &welcome.venue_key, &logon.client_key, &logon.terms);
        let permission = permission_of(logon.terms.role);
        Self {
            terms: logon.terms,
            permission,
            key_id: logon.key_id.to_owned(),
            signed,
            signature: logon.signature.to_owned(),
            is_once: false,
        }
    }

    /// Authorizes the logon.
    pub fn authorize(&self, gateway: &mut Gateway, now_ns: u64, source: SourceId) -> Result<Principal, Refusal> {
        let logon = (self.key_id.as_str(), &self.signed[..], self.signature.as_str());
        gateway.authorize_logon(now_ns, source, logon, self.permission)
    }
}

const fn permission_of(role: Role) -> Permission {
    match role {
        Role::Account => Permission::Trade,
        Role::Operator => Permission::Operator,
    }
}

/// The state of a session when a connection opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionStart {
    /// The session's id.
    pub session: SessionId,
    /// Number of the next new command.
    pub next: SessionSeq,
    /// Number of the account's latest report.
    pub report_seq: u64,
    /// The first report that the host will pass to [`SessionServer::report`].
    pub reports_from: u64,
}

impl SessionStart {
    /// Computes the start of a session from the account's reports. The host must first pass the reports from `reports_from` on to
    /// [`SessionServer::report`], before any later one: see [`Reports::resend`] after `reports_from - 1`.
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

/// A report was skipped: [`Reports::resend`] returns the reports from `expected` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("report {expected} comes next: pass the reports from there on again")]
pub struct ReportGap {
    /// Number of the next report.
    pub expected: u64,
}

/// How a connection ended. The host still writes the output and closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The session that the connection served.
    pub session: Option<SessionId>,
    /// The account whose open orders must be cancelled, if any.
    pub cancel: Option<AccountId>,
    /// The reason sent to the client; `None` if the connection was lost or another replica leads.
    pub reason: Option<ByeReason>,
}

/// The venue's side of one connection.
#[derive(Debug)]
pub struct SessionServer {
    settings: ServerSettings,
    greeting: Greeting,
    state: State,
    partial: Partial,
    joined: Vec<u8>,
    runs: Runs,
    output: Output,
    /// Time of the last input, or of the start of the connection.
    heard_ns: u64,
    ended: Option<Ended>,
}

/// Frames that came since the last seal.
#[derive(Debug, Default)]
struct Runs {
    bytes: Vec<u8>,
    /// So many of them are whole frames.
    scanned: usize,
}

#[derive(Debug)]
enum State {
    Fresh,
    Authenticating(Handshake),
    Opening(Client, Option<Seals>),
    Open(Box<Open>),
    Over,
}

/// A logon whose signature is being checked.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    terms: LogonTerms,
    client_key: [u8; AGREEMENT_KEY_BYTES],
    hash: LogonHash,
}

/// The logged-on client.
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
    /// The number that the log expected when the session was opened. The first command on this connection has this number or a
    /// lower one.
    next: SessionSeq,
    /// The commands of this connection; `None` before the first one.
    asked: Option<Asked>,
    /// Number of the next report.
    report_next: u64,
    /// What comes is sealed with these; `None` where it is not sealed.
    seals: Option<Seals>,
    /// Transactions of this connection without results.
    transactions_unanswered: usize,
}

#[derive(Debug)]
struct Asked {
    unanswered: SessionSeq,
    expected: SessionSeq,
    /// The client must resend from `expected` on; later commands that it had already sent are dropped.
    is_set_back: bool,
    /// Digests of the last commands of this connection, up to the one before `expected`.
    contents: VecDeque<ContentDigest>,
    /// Answers that arrived before an earlier command's, indexed from `unanswered`; the first is always `None`.
    early: VecDeque<Option<Answer>>,
}

/// Most capacity that an empty buffer of runs keeps.
const RUN_BYTES_KEPT: usize = 4 << 10;

/// Number of commands whose digests are retained, to compare them with retries under the same numbers: all unanswered ones, then as
/// many earlier ones as fit.
const CONTENTS_MAX: usize = UNANSWERED_MAX as usize;

impl Asked {
    /// Digest of a command, if it arrived on this connection recently.
    fn content(&self, session_seq: SessionSeq) -> Option<ContentDigest> {
        let back = usize::try_from(self.expected.0.checked_sub(session_seq.0)?).ok()?;
        self.contents.get(self.contents.len().checked_sub(back)?).copied()
    }
}

impl SessionServer {
    /// Creates the venue's side of a new connection, with its welcome to write. `greeting` must be of this connection only.
    #[must_use]
    pub fn new(settings: ServerSettings, greeting: Greeting, now_ns: u64) -> Self {
        let settings = ServerSettings { window: settings.window.clamp(1, UNANSWERED_MAX), ..settings };
        let mut output = Output::default();
        encode_venue(&VenueMessage::Welcome(greeting.welcome(settings.sealing)), output.end());
        Self {
            settings,
            greeting,
            state: State::Fresh,
            partial: Partial::default(),
            joined: Vec::new(),
            runs: Runs::default(),
            output,
            heard_ns: now_ns,
            ended: None,
        }
    }

    /// Takes received bytes, cut anywhere.
    pub fn on_bytes(&mut self, now_ns: u64, bytes: &[u8], host: &mut impl Host) {
        if let State::Open(open) = &self.state {
            if open.seals.is_some() {
                return self.on_sealed_bytes(now_ns, bytes, host);
            }
            self.heard_ns = self.heard_ns.max(now_ns);
        }
        let mut joined = std::mem::take(&mut self.joined);
        let mut rest = bytes;
        while !self.is_over() {
            // Who has not logged on is lent no room for a long one.
            let sizes = if matches!(self.state, State::Open(_)) { FrameSizes::Transactions } else { FrameSizes::Short };
            match self.partial.next_frame(rest, sizes, &mut joined) {
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

    fn on_sealed_bytes(&mut self, now_ns: u64, bytes: &[u8], host: &mut impl Host) {
        let mut before = std::mem::take(&mut self.runs.bytes);
        if before.is_empty() {
            let taken = self.take_runs(now_ns, bytes, host);
            before.extend_from_slice(&bytes[taken..]);
        } else {
            before.extend_from_slice(bytes);
            let taken = self.take_runs(now_ns, &before, host);
            before.drain(..taken);
        }
        if self.is_over() || (before.is_empty() && before.capacity() > RUN_BYTES_KEPT) {
            before = Vec::new();
        }
        self.runs.bytes = before;
    }

    /// Takes the runs whose seals have come; returns their bytes.
    fn take_runs(&mut self, now_ns: u64, bytes: &[u8], host: &mut impl Host) -> usize {
        let (mut start, mut end) = (0, self.runs.scanned);
        while let State::Open(open) = &mut self.state {
            let (frame, rest) = match split_frame_of(&bytes[end..], FrameSizes::Transactions) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(error) => {
                    self.bye(ByeReason::Malformed, &error.to_string());
                    break;
                }
            };
            let frame_end = bytes.len() - rest.len();
            match seal_of(frame) {
                Ok(Some(seal)) if open.seals.as_mut().is_some_and(|seals| seals.checks(&bytes[start..end], &seal)) => {
                    self.heard_ns = self.heard_ns.max(now_ns);
                    self.on_run(now_ns, &bytes[start..end], host);
                    start = frame_end;
                }
                Ok(Some(_)) => self.bye(ByeReason::SealInvalid, ""),
                Ok(None) if frame_end - start > RUN_BYTES_MAX => {
                    self.bye(ByeReason::SealInvalid, "No seal came within 65,536 bytes.");
                }
                Ok(None) => {}
                Err(error) => self.bye(ByeReason::Malformed, &error.to_string()),
            }
            end = frame_end;
        }
        self.runs.scanned = end - start;
        start
    }

    /// Carries out frames whose seal was checked.
    fn on_run(&mut self, now_ns: u64, mut run: &[u8], host: &mut impl Host) {
        while let Ok(Some((frame, rest))) = split_frame_of(run, FrameSizes::Transactions) {
            if self.is_over() {
                return;
            }
            self.on_frame(now_ns, frame, host);
            run = rest;
        }
    }

    fn on_frame(&mut self, now_ns: u64, frame: &[u8], host: &mut impl Host) {
        let message = match decode_client(frame) {
            Ok(message) => message,
            Err(error) => return self.bye(ByeReason::Malformed, &error.to_string()),
        };
        match (message, &mut self.state) {
            (_, State::Over) => {}
            (ClientMessage::Logon(logon), State::Fresh) => {
                if logon.terms.has_copies() && logon.terms.on_disconnect == OnDisconnect::Cancel {
                    let text = "A session with copies keeps its orders: the loss of one of its connections means nothing. Log on with on_disconnect 0.";
                    return self.bye(ByeReason::Rejected(RejectReason::Malformed), text);
                }
                let Logon { terms, client_key, .. } = logon;
                self.state = State::Authenticating(Handshake { terms, client_key, hash: LogonHash::of(frame) });
                host.authenticate(LogonRequest::new(&logon, &self.greeting.welcome(self.settings.sealing)));
            }
            (ClientMessage::Logon(_), State::Authenticating(_) | State::Opening(..) | State::Open(_)) => {
                self.bye(ByeReason::Malformed, "A connection logs on once: open another one.");
            }
            (ClientMessage::Submit { session_seq, command }, State::Open(_)) => self.on_submit(now_ns, session_seq, command, host),
            (ClientMessage::Transactions(frame), State::Open(_)) => self.on_transactions(now_ns, &frame, host),
            (ClientMessage::Ping(number), State::Open(_)) => self.put(&VenueMessage::Pong(number)),
            (ClientMessage::Seal(_), State::Open(_)) => {
                self.bye(ByeReason::Malformed, "A seal on a connection that TLS protects.");
            }
            (ClientMessage::Logout, _) => self.bye(ByeReason::LoggedOut, ""),
            (
                ClientMessage::Submit { .. } | ClientMessage::Ping(_) | ClientMessage::Seal(_) | ClientMessage::Transactions(_),
                State::Fresh | State::Authenticating(_) | State::Opening(..),
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
            // Sent before the client learned that it must resend from an earlier number.
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
            // In flight or already answered.
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

    fn on_transactions(&mut self, now_ns: u64, frame: &SignedTransactions<'_>, host: &mut impl Host) {
        let State::Open(open) = &mut self.state else { return };
        let unanswered = open.transactions_unanswered + frame.count();
        if unanswered > TRANSACTIONS_UNANSWERED_MAX {
            return self.bye(ByeReason::WindowExceeded, "More than 8,192 transactions wait for their results.");
        }
        let Client { principal, terms, .. } = &open.client;
        let permission = permission_of(terms.role);
        match TransactionFrame::read(frame, || host.charge(now_ns, principal, permission, Allowance::Requests)) {
            Ok(frame) => {
                open.transactions_unanswered = unanswered;
                host.transactions(frame);
            }
            Err(refusal) => self.bye(ByeReason::Rejected(refusal.reason), refusal.detail.as_deref().unwrap_or_default()),
        }
    }

    /// What came of a frame of transactions of this connection.
    pub fn transactions_done(&mut self, outcome: &FrameOutcome) {
        let State::Open(open) = &mut self.state else { return };
        open.transactions_unanswered = open.transactions_unanswered.saturating_sub(outcome.results.len());
        outcome.encode(self.output.end());
        self.check_output();
    }

    /// Ends the connection because one number was used for two commands: the venue cannot know which of them the client means.
    fn reused(&mut self, session_seq: SessionSeq) {
        let text = format!("Command {session_seq} differs from the one that had this number before, which counts.");
        self.bye(ByeReason::Rejected(RejectReason::SessionSeqReused), &text);
    }

    /// The result of the authorization of the logon.
    pub fn authenticated(&mut self, verdict: Result<Principal, Refusal>, host: &mut impl Host) {
        let State::Authenticating(Handshake { terms, client_key, hash }) = self.state else { return };
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
                let seals = match self.settings.sealing {
                    Sealing::Off => None,
                    Sealing::Required => match self.greeting.agree(client_key, &hash) {
                        Some(seals) => Some(seals),
                        None => return self.bye(ByeReason::Malformed, "client_key is of low order: make a random one."),
                    },
                };
                self.state = State::Opening(Client { terms, principal, account }, seals);
                host.open(account, terms.token, terms.reports);
            }
            Err(refusal) => self.bye(ByeReason::Rejected(refusal.reason), refusal.detail.as_deref().unwrap_or_default()),
        }
    }

    /// The session was opened in the log.
    pub fn opened(&mut self, now_ns: u64, start: SessionStart) {
        let State::Opening(client, seals) = &mut self.state else { return };
        let (client, seals) = (*client, seals.take());
        if seals.is_some() {
            // The begin of a frame that came too early is not sealed by what follows it.
            self.runs.bytes = self.partial.take();
        }
        self.heard_ns = self.heard_ns.max(now_ns);
        self.state = State::Open(Box::new(Open {
            client,
            session: start.session,
            next: start.next,
            asked: None,
            report_next: start.reports_from,
            seals,
            transactions_unanswered: 0,
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

    /// The result of a command, with the time of its log entry if known. Results that this connection does not wait for are
    /// ignored, so a host may pass all answers of the session.
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
            // The command from the previous connection and its retry on this one may both be answered, in any order.
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

    /// A command was not logged. The client is asked to send it again if that can help; otherwise the connection ends. For a
    /// command that the sequencer lost while it still leads, pass [`RejectReason::VenueNotReady`].
    pub fn refused(&mut self, ordinal: Ordinal, reason: RejectReason, retry_after_ns: Option<u64>) {
        let State::Open(open) = &mut self.state else { return };
        let Some(asked) = open.asked.as_mut().filter(|_| ordinal.session == open.session) else { return };
        let session_seq = ordinal.session_seq;
        if session_seq < asked.unanswered || session_seq >= asked.expected {
            // Already answered; or an earlier command was refused too, and both will be sent again.
            return;
        }
        match reason {
            RejectReason::Throttled | RejectReason::Overloaded | RejectReason::VenueNotReady | RejectReason::StorageFull => {
                self.set_back(session_seq, reason, retry_after_ns);
            }
            // The gap is an earlier command that was refused. The client sends both again, or has already done so.
            RejectReason::SessionSeqGap => {}
            _ => self.bye(ByeReason::Rejected(reason), &format!("Command {session_seq}.")),
        }
    }

    /// The sequencer received a command too late to order it by its stamp.
    pub fn late(&mut self, ordinal: Ordinal, late_ns: u64) {
        let State::Open(open) = &self.state else { return };
        if ordinal.session == open.session && open.asked.as_ref().is_some_and(|asked| ordinal.session_seq < asked.expected) {
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

    /// Sends an execution report of the session's account. An earlier one than the next is ignored; a later one is refused.
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

    /// Number of the last report that was passed to [`SessionServer::report`], or of the one before the first; `None` for a client
    /// that wants none, and before its session is open.
    #[must_use]
    pub fn reports_had(&self) -> Option<u64> {
        let State::Open(open) = &self.state else { return None };
        let takes_some = open.client.account.is_some() && open.client.terms.reports != ReportsWanted::None;
        takes_some.then(|| open.report_next - 1)
    }

    /// Another replica leads. Open orders stay, because the client will continue there.
    pub fn not_leader(&mut self, leader: &str) {
        if !self.is_over() {
            encode_venue(&VenueMessage::NotLeader { leader }, self.output.end());
            self.end(None, OnDisconnect::Keep);
        }
    }

    /// A newer connection took over the session. Open orders stay, because the session continues there.
    pub fn replaced(&mut self) {
        self.bye(ByeReason::Replaced, "");
    }

    /// The connection was lost, or the host closed it.
    pub fn on_disconnect(&mut self) {
        if !self.is_over() {
            self.end(None, OnDisconnect::Cancel);
        }
    }

    /// Handles timeouts. To be called at [`SessionServer::deadline_ns`].
    pub fn on_timer(&mut self, now_ns: u64) {
        if now_ns < self.deadline_ns().unwrap_or(u64::MAX) {
            return;
        }
        match self.state {
            State::Fresh => self.bye(ByeReason::LogonExpected, "None came in time."),
            State::Authenticating(_) | State::Opening(..) => self.bye(ByeReason::Rejected(RejectReason::VenueNotReady), ""),
            State::Open(_) => self.bye(ByeReason::Idle, ""),
            State::Over => {}
        }
    }

    /// When to call [`SessionServer::on_timer`] next; `None` once the connection is over.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        match self.state {
            State::Fresh | State::Authenticating(_) | State::Opening(..) => {
                Some(self.heard_ns.saturating_add(self.settings.logon_timeout_ns))
            }
            State::Open(_) => Some(self.heard_ns.saturating_add(self.settings.idle_timeout_ns)),
            State::Over => None,
        }
    }

    /// Sends the client the reason and ends the connection.
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
            | ByeReason::SealInvalid
            | ByeReason::Rejected(_) => OnDisconnect::Cancel,
        };
        self.end(Some(reason), on_disconnect);
    }

    fn end(&mut self, reason: Option<ByeReason>, loss: OnDisconnect) {
        let (session, client) = match &self.state {
            State::Open(open) => (Some(open.session), Some(open.client)),
            State::Fresh | State::Authenticating(_) | State::Opening(..) | State::Over => (None, None),
        };
        let cancels = |client: &Client| loss == OnDisconnect::Cancel && client.terms.on_disconnect == OnDisconnect::Cancel;
        let cancel = client.filter(cancels).and_then(|client| client.account);
        self.ended = Some(Ended { session, cancel, reason });
        self.state = State::Over;
        self.partial.clear();
    }

    /// Returns how the connection ended, once.
    pub fn take_ended(&mut self) -> Option<Ended> {
        self.ended.take()
    }

    /// Whether the connection is over. The host then writes as much of the output as possible and closes.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The open session; `None` before it is open and once the connection is over.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        match &self.state {
            State::Open(open) => Some(open.session),
            State::Fresh | State::Authenticating(_) | State::Opening(..) | State::Over => None,
        }
    }

    /// Number of unanswered commands.
    #[must_use]
    pub fn unanswered_count(&self) -> u64 {
        match &self.state {
            State::Open(open) => open.asked.as_ref().map_or(0, |asked| asked.expected.0 - asked.unanswered.0),
            State::Fresh | State::Authenticating(_) | State::Opening(..) | State::Over => 0,
        }
    }

    /// Bytes to write.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.unwritten()
    }

    /// Removes `len` bytes that were written.
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
