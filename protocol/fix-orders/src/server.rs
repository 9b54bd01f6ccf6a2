//! The venue's side of one FIX connection.

use std::sync::Arc;

use walras_fix::{
    AppMessage, Dictionaries, End, Event, Lasting, LastingStart, Leniency, LogonRequest, Message, NUMBERS_FROM, Record, Rules,
    Session, Settings, Unknown, Unplaced, next_lasting,
};
use walras_gateway::session::{Ended, Host, LogonRequest as EntryLogon, SessionStart};
use walras_gateway::{Allowance, Permission, Principal, Refusal};
use walras_types::limits::SESSION_WINDOW;
use walras_types::{
    AccountId, Answer, ClientOrderName, ContentDigest, LogIndex, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs,
};
use walras_wire::order_entry::{
    ByeReason, Copies, LogonTerms, OnDisconnect, Report, ReportsWanted, Role as EntryRole, decode_report_event,
};
use walras_wire::{CloseSession, Command, InvalidCommand, SessionCommand, encode_command};

use crate::catalog::Catalog;
use crate::logon::{Proof, Secrecy, proof_of};
use crate::orders::{Orders, REMEMBERED_BYTES_MAX};
use crate::request::{Asked, Requests};
use crate::say::{Of, Speaker, business_reject, refusal_text};
use crate::tags;
use crate::unanswered::{Numbered, Turn, Unanswered};

/// The modulus of [`Lasting`] numbers. A client that lacks more reports than half of it does not learn which.
pub const REPORT_MODULUS: u64 = 1 << 14;

/// A signed logon is good for so long, and once.
const SIGNED_LOGON_NS_MAX: u64 = 5_000_000_000;

/// Requests that may wait behind those on their way.
const WAITING_MAX: usize = 4_096;

/// Bytes of the questions among them, which are kept as they came.
const QUESTION_BYTES_MAX: usize = 1 << 20;

/// The most messages that the venue sends unasked, or in answer, for one of a client: a client that is silent for 2.4 heartbeats ends.
const PASSING_PER_MESSAGE_MAX: u64 = 7;

/// Where a session whose numbers are not known may go on at most.
const UNKNOWN_FROM_MAX: u64 = 15 << 27;

/// Numbers that a client may leave to other messages, besides one before each command: so many at once, and one more each time that
/// [`FILLED_NS`] passes. Each becomes an entry of the log, and is not charged.
const FILLED_MAX: u64 = 16_384;
const FILLED_NS: u64 = 10_000_000;

/// A client that sends more orders than this beyond its rate, without one within it, is logged out.
const THROTTLED_MAX: u32 = 256;

/// What the log does not take is sent again after this time.
const AGAIN_NS: u64 = 20_000_000;

/// A question waits so long for the reports of what was answered before it.
const REPORTS_NS: u64 = 20_000_000;

/// What all FIX connections share.
#[derive(Clone, Debug)]
pub struct FixSettings {
    /// Of sessions; its names of this end are those of the roles.
    pub session: Arc<Settings>,
    /// What messages may hold.
    pub dictionaries: Dictionaries,
}

impl FixSettings {
    /// The venue calls itself so, and `NAME-DROP` where clients only listen.
    #[must_use]
    pub fn of(comp_id: &str) -> Self {
        let other_comp_ids = vec![format!("{comp_id}-DROP")];
        let session = Settings { other_comp_ids, early_max: (1_024, 1 << 20), ..Settings::of(comp_id) };
        Self { session: Arc::new(session), dictionaries: Dictionaries::new() }
    }
}

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Orders, and the reports of the account.
    Orders,
    /// The reports alone.
    DropCopy,
}

/// What a replica remembers of a session between its connections. Without it a client says in NextExpectedMsgSeqNum(789) where to go on.
#[derive(Clone, Debug)]
pub struct Memory {
    record: Record,
    report_next: u64,
    /// `None` where there were too many: reports tell of them again.
    orders: Option<Orders>,
    /// When its last logon was sent, as it says: no earlier one is taken.
    logon_ns: u64,
}

impl Memory {
    /// Whether the session was nowhere else since: a logon there would have taken a number.
    fn is_latest(&self, logon: &LogonRequest) -> bool {
        logon.seq == self.record.next_in
    }
}

/// A client that logs on.
#[derive(Clone, Debug)]
struct Client {
    logon: LogonRequest,
    role: Role,
    token: u64,
    logon_ns: u64,
    principal: Option<Principal>,
    account: Option<AccountId>,
    /// With ResetSeqNumFlag(141) its old session is closed first.
    reset: Reset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    /// Nothing is to be closed (any more).
    Done,
    /// The old session is to be found.
    Wanted,
    /// This close is to be sent.
    Closes(Ordinal),
    /// This close is on its way.
    Closing(Ordinal),
    /// The new session is to be opened.
    Reopens,
}

#[derive(Debug)]
enum State {
    Fresh,
    /// Since when.
    Authenticating(Box<Client>, u64),
    Opening(Box<Client>, u64),
    /// Reports from before the logon come.
    Loading(Box<Loading>),
    Open(Box<Open>),
    Over,
}

#[derive(Debug)]
struct Loading {
    client: Client,
    /// Since when.
    since_ns: u64,
    start: SessionStart,
    begin: Begin,
    orders: Orders,
    unsent: Vec<Unplaced>,
    /// The first report that is for the client; `None` while none is known.
    next: Option<u64>,
    /// Reports before this one are in `orders`.
    orders_from: u64,
    /// The report that comes next, and the entry of the last one.
    report_next: u64,
    reported: LogIndex,
    record: Option<Box<Record>>,
}

/// Which reports a client has not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// All since its session began.
    New,
    /// All from this one on.
    From(u64),
    /// It asks for them. The venue's numbers have all been below this one.
    Unknown(u64),
}

#[derive(Debug)]
struct Open {
    client: Client,
    account: AccountId,
    principal: Principal,
    session: SessionId,
    orders: Orders,
    unanswered: Unanswered,
    /// Number of the next command that goes to the log.
    submit_next: u64,
    /// The number after that of the last command that came.
    asked_next: u64,
    /// When the numbers that were left out are made up for.
    filled_ns: u64,
    report_next: u64,
    throttled: u32,
    /// When what was refused is sent again.
    again_ns: Option<u64>,
    questions: u64,
}

/// The venue's side of one FIX connection. Its calls are those of [`walras_gateway::session::SessionServer`].
#[derive(Debug)]
pub struct FixServer {
    settings: FixSettings,
    session: Session,
    secrecy: Secrecy,
    catalog: Arc<Catalog>,
    state: State,
    ended: Option<Ended>,
    memory: Option<(AccountId, u64, Memory)>,
    /// The process's time and the time of day, at the last input.
    clock: (u64, u64),
}

impl FixServer {
    /// A new connection. `now_ns` is the process's time, `day_ns` the time of day.
    #[must_use]
    pub fn new(settings: FixSettings, secrecy: Secrecy, catalog: Arc<Catalog>, now_ns: u64, day_ns: u64) -> Self {
        let session = Session::new(Arc::clone(&settings.session), settings.dictionaries.clone(), day_ns);
        Self { settings, session, secrecy, catalog, state: State::Fresh, ended: None, memory: None, clock: (now_ns, day_ns) }
    }

    /// The instruments are these now.
    pub fn set_catalog(&mut self, catalog: Arc<Catalog>) {
        self.catalog = catalog;
    }

    fn day_ns(&self, now_ns: u64) -> u64 {
        self.clock.1.saturating_add(now_ns.saturating_sub(self.clock.0))
    }

    /// Takes received bytes, cut anywhere.
    pub fn on_bytes(&mut self, now_ns: u64, day_ns: u64, bytes: &[u8], host: &mut impl Host) {
        self.clock = (now_ns, day_ns.max(self.day_ns(now_ns)));
        self.session.on_bytes(bytes);
        self.go_on(now_ns, host);
    }

    /// Goes on with what has come, what waits for the log, and what was asked for again.
    pub fn go_on(&mut self, now_ns: u64, host: &mut impl Host) {
        let day_ns = self.day_ns(now_ns);
        // What is refused now is sent again after a pause from now on.
        self.clock = (now_ns, day_ns);
        self.reset(host);
        while let Some(event) = self.session.poll(day_ns) {
            match event {
                Event::Logon(logon) => self.on_logon(now_ns, logon, host),
                Event::App(message) => self.on_app(now_ns, message, host),
            }
        }
        self.submit(now_ns, host);
        self.end_with_session();
    }

    fn on_logon(&mut self, now_ns: u64, logon: LogonRequest, host: &mut impl Host) {
        let Proof { key_id, signed, signature, is_signed } = match proof_of(&logon, self.secrecy) {
            Ok(proof) => proof,
            Err(text) => return self.refuse(now_ns, ByeReason::Rejected(RejectReason::Unauthenticated), text),
        };
        let day_ns = self.day_ns(now_ns);
        let logon_ns = logon.message.time_ns(tags::SENDING_TIME).unwrap_or(0);
        if is_signed && logon_ns.abs_diff(day_ns) > SIGNED_LOGON_NS_MAX {
            let text =
                "SendingTime(52) of a signed logon must be within 5 s of the venue's clock: synchronise the clock, and sign again";
            return self.refuse(now_ns, ByeReason::Rejected(RejectReason::TimestampStale), text);
        }
        let role = if logon.target == self.settings.session.comp_id { Role::Orders } else { Role::DropCopy };
        // Sessions of one account differ in the names of both ends.
        let token = ContentDigest::of_bytes(format!("FIX\n{}\n{}", logon.comp_id, logon.target).as_bytes()).0;
        let terms = LogonTerms {
            on_disconnect: OnDisconnect::Keep,
            role: EntryRole::Account,
            token,
            reports: ReportsWanted::After(0),
            copies: Copies::One,
            logon_seq: logon_ns,
        };
        let permission = match role {
            Role::Orders => Permission::Trade,
            Role::DropCopy => Permission::Read,
        };
        let reset = if logon.resets { Reset::Wanted } else { Reset::Done };
        let client = Client { logon, role, token, logon_ns, principal: None, account: None, reset };
        self.state = State::Authenticating(Box::new(client), now_ns);
        host.authenticate(EntryLogon { terms, permission, key_id, signed, signature, is_once: is_signed });
    }

    /// The result of the authorization of the logon.
    pub fn authenticated(&mut self, verdict: Result<Principal, Refusal>, host: &mut impl Host) {
        let now_ns = self.clock.0;
        let State::Authenticating(client, since_ns) = &mut self.state else { return };
        match verdict {
            Ok(principal) => {
                let may_read = principal.permissions().allow(Permission::Read);
                let Some(account) = principal.account().filter(|_| may_read) else {
                    let text = "FIX needs a key of an account with the permission \"read\": use one";
                    return self.refuse(now_ns, ByeReason::Rejected(RejectReason::Forbidden), text);
                };
                (client.principal, client.account) = (Some(principal), Some(account));
                let token = client.token;
                self.state = State::Opening(client.clone(), *since_ns);
                host.open(Some(account), token, ReportsWanted::After(0));
            }
            Err(refusal) => {
                let text = refusal_text(
                    refusal.reason,
                    refusal.detail.as_deref().filter(|_| refusal.reason != RejectReason::SignatureInvalid),
                );
                self.refuse(now_ns, ByeReason::Rejected(refusal.reason), &text);
            }
        }
    }

    /// A logon's session is open in the log. `memory` is what this replica remembers of it.
    pub fn opened(&mut self, now_ns: u64, start: SessionStart, memory: Option<Memory>) {
        let State::Opening(client, since_ns) = &mut self.state else { return };
        if let Some(memory) = memory.as_ref().filter(|memory| memory.logon_ns >= client.logon_ns) {
            let text = format!(
                "SendingTime(52) must be after that of the session's last logon, {}: a logon is good once, so make a new one",
                memory.logon_ns
            );
            return self.refuse(now_ns, ByeReason::Rejected(RejectReason::NonceReused), &text);
        }
        if client.reset == Reset::Wanted {
            client.reset = Reset::Closes(Ordinal { session: start.session, session_seq: start.next });
            *since_ns = now_ns;
            return;
        }
        let client = client.clone();
        let memory = memory.filter(|_| !client.logon.resets);
        let expected = client.logon.next_expected;
        let begin = if client.logon.resets || expected.is_some_and(|expected| expected < NUMBERS_FROM) {
            Begin::New
        } else if let Some(expected) = expected {
            match next_lasting(REPORT_MODULUS, expected, start.report_seq) {
                Some(next) => Begin::From(next),
                None => {
                    let text = "NextExpectedMsgSeqNum(789) is no number that this venue gave: log on with ResetSeqNumFlag(141)=Y";
                    return self.refuse(now_ns, ByeReason::Malformed, text);
                }
            }
        } else if let Some(memory) = memory.as_ref().filter(|memory| memory.is_latest(&client.logon)) {
            Begin::From(memory.report_next)
        } else if client.logon.seq == 1 && start.next == SessionSeq(1) {
            Begin::New
        } else {
            // Each passing message takes as many numbers as two rows of reports.
            let passing = client.logon.seq.saturating_mul(PASSING_PER_MESSAGE_MAX).saturating_add(64);
            let above = passing.saturating_add(start.report_seq / REPORT_MODULUS).saturating_mul(2 * REPORT_MODULUS);
            if above > UNKNOWN_FROM_MAX {
                let text = "This replica does not know what the client has received: log on with NextExpectedMsgSeqNum(789), or with ResetSeqNumFlag(141)=Y";
                return self.refuse(now_ns, ByeReason::Malformed, text);
            }
            Begin::Unknown(above)
        };
        // A client that says what it has received may have less than was sent: then its reports are told again, from the orders' begin.
        let (orders, orders_from, record) = match (memory, expected) {
            (None, _) => (Orders::default(), 0, None),
            (Some(memory), None) if memory.is_latest(&client.logon) => {
                let orders_from = if memory.orders.is_some() { memory.report_next } else { 0 };
                (memory.orders.unwrap_or_default(), orders_from, Some(Box::new(memory.record)))
            }
            (Some(memory), _) => (memory.orders.map(Orders::again).unwrap_or_default(), 0, None),
        };
        let (unsent, report_next, reported) = (Vec::new(), start.reports_from, LogIndex(0));
        let loading = Loading {
            client: *client,
            since_ns: now_ns,
            start,
            begin,
            orders,
            orders_from,
            report_next,
            reported,
            unsent,
            next: None,
            record,
        };
        self.state = State::Loading(Box::new(loading));
        if start.reports_from > start.report_seq {
            self.begin(now_ns);
        }
    }

    /// This report from before the logon has come, perhaps the last one.
    fn begin_at(&mut self, report_seq: u64) {
        if matches!(&self.state, State::Loading(loading) if loading.start.report_seq == report_seq) {
            self.begin(self.clock.0);
        }
    }

    /// All reports from before the logon have come.
    fn begin(&mut self, now_ns: u64) {
        let State::Loading(loading) = std::mem::replace(&mut self.state, State::Over) else { return };
        let Loading { client, start, begin, orders, mut unsent, next, record, reported, .. } = *loading;
        let (Some(account), Some(principal)) = (client.account, client.principal) else { return };
        let next = next.unwrap_or(start.report_seq + 1);
        let mut lasting = Lasting { modulus: REPORT_MODULUS, next };
        let from = match (begin, client.logon.next_expected, record) {
            // It has the logon of a session that is new, or refusals from before it, and nothing else.
            (Begin::New, Some(expected), _) if expected > 1 && !client.logon.resets => LastingStart::Expected(expected),
            (Begin::New, ..) | (Begin::From(_), None, None) => LastingStart::New,
            (Begin::From(_), Some(expected), _) => LastingStart::Expected(expected),
            (Begin::From(_), None, Some(record)) => LastingStart::Record(record),
            (Begin::Unknown(above), ..) => {
                let (first, last, messages) = (next, start.report_seq, std::mem::take(&mut unsent));
                lasting.next = start.report_seq + 1;
                LastingStart::Unknown(Box::new(Unknown { above, first, last, messages }))
            }
        };
        let day_ns = self.day_ns(now_ns);
        let rules = Rules { user_tags: Leniency::Allowed, empty_values: Leniency::Rejected };
        self.session.accept_lasting(day_ns, start.next.0, from, lasting, rules);
        if let Some(end) = self.session.end() {
            // The logon breaks a rule. Nothing was sent that could be remembered.
            return self.finish(reason_of(end));
        }
        for Unplaced { number, msg_type, body, .. } in unsent {
            self.session.send_lasting(day_ns, number, AppMessage { msg_type, header: &[], body: &body });
        }
        self.session.skip_lasting(start.report_seq);
        let mut unanswered = Unanswered::default();
        unanswered.reported(reported);
        self.state = State::Open(Box::new(Open {
            client,
            account,
            principal,
            session: start.session,
            orders,
            unanswered,
            submit_next: start.next.0,
            asked_next: start.next.0,
            filled_ns: now_ns,
            report_next: start.report_seq + 1,
            throttled: 0,
            again_ns: None,
            questions: 0,
        }));
        self.end_with_session();
    }

    /// Closes the session before the one that begins anew, step by step.
    fn reset(&mut self, host: &mut impl Host) {
        let State::Opening(client, _) = &mut self.state else { return };
        match client.reset {
            Reset::Closes(ordinal) => {
                client.reset = Reset::Closing(ordinal);
                let command = Command::Session(SessionCommand::Close(CloseSession { session: ordinal.session }));
                let mut bytes = Vec::new();
                encode_command(&command, &mut bytes);
                host.submit(ordinal, &command, &bytes);
            }
            Reset::Reopens => {
                client.reset = Reset::Done;
                let (account, token) = (client.account, client.token);
                host.open(account, token, ReportsWanted::After(0));
            }
            Reset::Done | Reset::Wanted | Reset::Closing(_) => {}
        }
    }

    fn on_app(&mut self, now_ns: u64, message: Message, host: &mut impl Host) {
        let State::Open(open) = &mut self.state else { return };
        let seq = message.seq().unwrap_or(0);
        let question_bytes = open.unanswered.question_bytes() + message.bytes().len();
        if open.unanswered.len() >= WAITING_MAX + SESSION_WINDOW || question_bytes > QUESTION_BYTES_MAX {
            return self.bye(ByeReason::WindowExceeded, "More requests wait than may: wait for their reports");
        }
        let is_resend = message.flag(tags::POSS_RESEND);
        let cl_ord_id = message.text(tags::CL_ORD_ID).unwrap_or_default();
        let is_known = || open.orders.find(cl_ord_id, None).is_some() || open.unanswered.has_new(cl_ord_id);
        match message.msg_type() {
            b"H" => open.unanswered.push(Turn::Question(message)),
            // It came before, under another number: its sender asks what became of it.
            b"D" if is_resend && is_known() => open.unanswered.push(Turn::Question(message)),
            b"D" | b"F" | b"G" | b"q" if open.client.role == Role::Orders && seq >= open.submit_next => {
                self.on_command(now_ns, seq, &message, host);
            }
            b"D" | b"F" | b"G" | b"q" if open.client.role == Role::Orders => {}
            b"D" | b"F" | b"G" | b"q" => {
                let text = format!("This session only listens: send orders to TargetCompID(56) {}", self.settings.session.comp_id);
                self.reject(now_ns, &message, 6, &text);
            }
            _ => self.reject(now_ns, &message, 3, "The venue takes D, F, G, q and H here: see docs/fix.md"),
        }
    }

    fn on_command(&mut self, now_ns: u64, seq: u64, message: &Message, host: &mut impl Host) {
        let State::Open(open) = &mut self.state else { return };
        let filled = seq.saturating_sub(open.asked_next).saturating_sub(1);
        let filled_ns = open.filled_ns.max(now_ns).saturating_add(filled.saturating_mul(FILLED_NS));
        if filled_ns - now_ns > FILLED_MAX * FILLED_NS {
            let text = format!(
                "More numbers were left out than may be ({FILLED_MAX}, and 100 a second): log on with ResetSeqNumFlag(141)=Y"
            );
            return self.bye(ByeReason::SessionSeqGap, &text);
        }
        (open.asked_next, open.filled_ns) = (seq + 1, filled_ns);
        let requests = Requests { account: open.account, catalog: &self.catalog, orders: &open.orders };
        let Some(request) = requests.read(message) else { return };
        let mut numbered = Numbered { seq, command: request.command, asked: request.asked, text: request.text };
        match host.charge(now_ns, &open.principal, Permission::Trade, Allowance::of(&numbered.command)) {
            Ok(()) => open.throttled = 0,
            Err(refusal) if refusal.reason == RejectReason::Throttled && open.throttled < THROTTLED_MAX => {
                open.throttled += 1;
                numbered.refuse(RejectReason::Throttled, self.catalog.version());
            }
            Err(refusal) => {
                let text = refusal_text(refusal.reason, refusal.detail.as_deref());
                return self.bye(ByeReason::Rejected(refusal.reason), &text);
            }
        }
        open.orders.expect(&numbered.asked);
        open.unanswered.push(Turn::Command(numbered));
    }

    /// Passes on what waits, as far as there is room.
    fn submit(&mut self, now_ns: u64, host: &mut impl Host) {
        let State::Open(open) = &mut self.state else { return };
        if open.again_ns.is_some_and(|again_ns| now_ns < again_ns) || self.session.end().is_some() {
            return;
        }
        open.again_ns = None;
        let mut questions = Vec::new();
        loop {
            let is_full = open.unanswered.on_their_way() >= SESSION_WINDOW;
            let next = match open.unanswered.front() {
                None => break,
                Some(Turn::Question(_)) if open.unanswered.is_settled(now_ns) => {
                    if let Some(Turn::Question(question)) = open.unanswered.pop() {
                        questions.push(question);
                    }
                    continue;
                }
                Some(Turn::Question(_)) => break,
                Some(_) if is_full => break,
                Some(Turn::Command(numbered)) if numbered.seq > open.submit_next => filler(open.account, open.submit_next),
                Some(Turn::Command(_)) => match open.unanswered.pop() {
                    Some(Turn::Command(numbered)) => numbered,
                    _ => break,
                },
            };
            let mut bytes = Vec::new();
            encode_command(&next.command, &mut bytes);
            let (command, ordinal) = (next.command, Ordinal { session: open.session, session_seq: SessionSeq(next.seq) });
            open.submit_next = next.seq + 1;
            open.unanswered.is_sent(next);
            host.submit(ordinal, &command, &bytes);
        }
        for question in questions {
            self.answer_question(now_ns, &question);
        }
    }

    /// OrderStatusRequest, or an order that may have come before.
    fn answer_question(&mut self, now_ns: u64, message: &Message) {
        let day_ns = self.day_ns(now_ns);
        let Self { state: State::Open(open), session, catalog, .. } = self else { return };
        let Some(version) = session.version() else { return };
        let text = |tag: i32| message.text(tag).unwrap_or_default();
        let speaker = Speaker { version, account: open.account, catalog };
        open.questions += 1;
        let exec_id = format!("S{}-{}", message.seq().unwrap_or(0), open.questions);
        let of = Of { exec_id: &exec_id, time: TimeNs(day_ns), detail: None };
        let body = match open.orders.find(text(tags::CL_ORD_ID), message.text(tags::ORDER_ID)) {
            Some(order) => speaker.say(&Orders::status(order), of).1,
            None => speaker.no_such_order(text(tags::CL_ORD_ID), text(tags::SYMBOL), text(tags::SIDE), of),
        };
        session.send(day_ns, AppMessage { msg_type: "8", header: &[], body: &body });
    }

    fn reject(&mut self, now_ns: u64, message: &Message, reason: u64, text: &str) {
        let day_ns = self.day_ns(now_ns);
        if self.session.version().is_some_and(|version| version < walras_fix::Version::Fix42) {
            return self.session.reject(day_ns, message, text);
        }
        let ref_id = message.text(tags::CL_ORD_ID);
        let body = business_reject(message.seq().unwrap_or(0), message.msg_type(), reason, ref_id, text);
        self.session.send(day_ns, AppMessage { msg_type: "j", header: &[], body: &body });
    }

    /// The result of a command.
    pub fn answer(&mut self, ordinal: Ordinal, answer: Answer, time: Option<TimeNs>) {
        if let State::Opening(client, _) = &mut self.state
            && client.reset == Reset::Closing(ordinal)
        {
            client.reset = Reset::Reopens;
            return;
        }
        let (now_ns, day_ns) = (self.clock.0, self.day_ns(self.clock.0));
        let Self { state: State::Open(open), session, catalog, .. } = self else { return };
        if ordinal.session != open.session {
            return;
        }
        let asked = open.unanswered.answered(ordinal.session_seq.0, Some(answer.log_index));
        if matches!(asked, Some(Asked::New(_) | Asked::Change(_) | Asked::Filler)) {
            open.unanswered.await_reports(answer.log_index, now_ns.saturating_add(REPORTS_NS));
        }
        // Its orders' reports say what it did, but none says that it is done.
        if let (Some(Asked::Mass(cl_ord_id, kind)), None, Some(version)) = (asked, answer.rejected, session.version()) {
            let speaker = Speaker { version, account: open.account, catalog };
            let id = answer.log_index.0.to_string();
            let of = Of { exec_id: &id, time: time.unwrap_or(TimeNs(day_ns)), detail: None };
            let body = speaker.mass_cancel(&cl_ord_id, kind, Ok(()), of);
            session.send(day_ns, AppMessage { msg_type: "r", header: &[], body: &body });
        }
        self.end_with_session();
    }

    /// A command is not in the log, and none after it.
    pub fn refused(&mut self, ordinal: Ordinal, reason: RejectReason, _retry_after_ns: Option<u64>) {
        if let State::Opening(client, _) = &self.state
            && client.reset == Reset::Closing(ordinal)
        {
            let text = format!("The session's numbers could not begin again: log on again. {reason}");
            return self.bye(ByeReason::Rejected(reason), &text);
        }
        let (now_ns, version) = (self.clock.0, self.catalog.version());
        let State::Open(open) = &mut self.state else { return };
        if ordinal.session != open.session {
            return;
        }
        let seq = ordinal.session_seq.0;
        match reason {
            RejectReason::Throttled
            | RejectReason::Overloaded
            | RejectReason::VenueNotReady
            | RejectReason::StorageFull
            | RejectReason::NeedsLaterVersion => {
                if let Some(seq) = open.unanswered.set_back(seq, reason, version) {
                    open.submit_next = seq;
                    open.again_ns = Some(now_ns.saturating_add(AGAIN_NS));
                }
            }
            // An earlier command was refused, and both go again.
            RejectReason::SessionSeqGap => {}
            // Its number has another command, which came by another connection: that one counts, and reports tell of it.
            RejectReason::SessionSeqReused | RejectReason::SessionSeqTooOld => {
                if let Some(asked) = open.unanswered.answered(seq, None) {
                    open.orders.expect_no_more(&asked);
                }
            }
            _ => self.bye(ByeReason::Rejected(reason), &reason.to_string()),
        }
    }

    /// A report of the account: of an order perhaps, which the log has under this name.
    pub fn report(&mut self, report: &Report<'_>, name: Option<ClientOrderName>) {
        let day_ns = self.day_ns(self.clock.0);
        let Ok(event) = decode_report_event(report.event) else { return };
        let exec_id = report.report_seq.to_string();
        match &mut self.state {
            State::Loading(loading) => {
                // Where the replica above a gateway was lost meanwhile, another one may say some again.
                if report.report_seq > loading.start.report_seq || report.report_seq != loading.report_next {
                    return;
                }
                loading.report_next += 1;
                loading.reported = report.log_index;
                if report.report_seq < loading.orders_from {
                    return self.begin_at(report.report_seq);
                }
                let is_unseen = match loading.begin {
                    Begin::New => report.log_index.0 > loading.start.session.0,
                    Begin::From(next) => report.report_seq >= next,
                    Begin::Unknown(_) => true,
                };
                let is_of_session = report.log_index.0 > loading.start.session.0 || matches!(loading.begin, Begin::From(_));
                if is_unseen && is_of_session {
                    loading.next.get_or_insert(report.report_seq);
                }
                let said = loading.orders.on_event(&event, None, name);
                if let (Some(said), Some(account), true) = (said, loading.client.account, is_unseen) {
                    let speaker = Speaker { version: loading.client.logon.version, account, catalog: &self.catalog };
                    let (msg_type, body) = speaker.say(&said, Of { exec_id: &exec_id, time: report.time, detail: None });
                    let (number, time_ns) = (report.report_seq, report.time.0);
                    loading.unsent.push(Unplaced { number, time_ns, msg_type, body });
                }
                self.begin_at(report.report_seq);
            }
            State::Open(open) => {
                if report.report_seq != open.report_next {
                    return;
                }
                open.report_next += 1;
                open.unanswered.reported(report.log_index);
                let recent = open.unanswered.asked_at(report.log_index);
                let (asked, detail) = (recent.map(|recent| &recent.asked), recent.and_then(|recent| recent.text.as_deref()));
                let Some(said) = open.orders.on_event(&event, asked, name) else {
                    return self.session.skip_lasting(report.report_seq);
                };
                let speaker = Speaker { version: open.client.logon.version, account: open.account, catalog: &self.catalog };
                let (msg_type, body) = speaker.say(&said, Of { exec_id: &exec_id, time: report.time, detail });
                self.session.send_lasting(day_ns, report.report_seq, AppMessage { msg_type, header: &[], body: &body });
                self.end_with_session();
            }
            State::Fresh | State::Authenticating(..) | State::Opening(..) | State::Over => {}
        }
    }

    /// Number of the last report that was passed to [`FixServer::report`], or of the one before the first; `None` before its session is
    /// open.
    #[must_use]
    pub fn reports_had(&self) -> Option<u64> {
        match &self.state {
            State::Loading(loading) => Some(loading.report_next - 1),
            State::Open(open) => Some(open.report_next - 1),
            State::Fresh | State::Authenticating(..) | State::Opening(..) | State::Over => None,
        }
    }

    /// Another replica leads.
    pub fn not_leader(&mut self, leader: &str) {
        let text = match leader {
            "" => "Another replica leads: log on there".to_owned(),
            leader => format!("Another replica leads: log on there; it takes binary orders at {leader}"),
        };
        self.log_out(&text, None);
    }

    /// Whether its old session is closed before it begins: until then it takes no reports.
    #[must_use]
    pub fn closes_first(&self) -> bool {
        matches!(&self.state, State::Opening(client, _) if client.reset == Reset::Wanted)
    }

    /// The session was closed in the log.
    pub fn closed(&mut self) {
        match &mut self.state {
            // By this connection, which may not hear of its command any more, or by another one: what it waits for is done.
            State::Opening(client, _) => {
                if matches!(client.reset, Reset::Closes(_) | Reset::Closing(_)) {
                    client.reset = Reset::Reopens;
                }
            }
            _ => self.bye(
                ByeReason::Rejected(RejectReason::UnknownSession),
                "The session was closed: log on with ResetSeqNumFlag(141)=Y",
            ),
        }
    }

    /// Gives the client the reason why its connection ends.
    pub fn bye(&mut self, reason: ByeReason, text: &str) {
        let text = if text.is_empty() { reason.to_string() } else { text.to_owned() };
        self.log_out(&text, Some(reason));
    }

    fn refuse(&mut self, now_ns: u64, reason: ByeReason, text: &str) {
        let day_ns = self.day_ns(now_ns);
        self.session.refuse_lasting(day_ns, text);
        self.finish(Some(reason));
    }

    fn log_out(&mut self, text: &str, reason: Option<ByeReason>) {
        let day_ns = self.day_ns(self.clock.0);
        match self.state {
            State::Authenticating(..) | State::Opening(..) | State::Loading(_) => self.session.refuse_lasting(day_ns, text),
            State::Fresh | State::Open(_) => self.session.log_out_now(day_ns, text),
            State::Over => return,
        }
        self.finish(reason);
    }

    /// The client closed the connection, or it broke.
    pub fn on_disconnect(&mut self) {
        if !self.is_over() {
            self.session.on_disconnected();
            self.finish(None);
        }
    }

    fn end_with_session(&mut self) {
        let Some(end) = self.session.end().filter(|_| !self.is_over()) else { return };
        self.finish(reason_of(end));
    }

    fn finish(&mut self, reason: Option<ByeReason>) {
        let session = match std::mem::replace(&mut self.state, State::Over) {
            State::Open(open) => {
                let Open { client, account, session, orders, report_next, .. } = *open;
                if let Some(record) = self.session.take_record() {
                    let orders = orders.within(REMEMBERED_BYTES_MAX);
                    let memory = Memory { record, report_next, orders, logon_ns: client.logon_ns };
                    self.memory = Some((account, client.token, memory));
                }
                Some(session)
            }
            State::Fresh | State::Authenticating(..) | State::Opening(..) | State::Loading(_) | State::Over => None,
        };
        self.ended = Some(Ended { session, cancel: None, reason });
    }

    /// Whether [`FixServer::go_on`] has something to do that nothing else will bring about.
    #[must_use]
    pub fn has_turn(&self) -> bool {
        match &self.state {
            State::Open(open) => open.again_ns.is_none() && open.unanswered.has_turn(self.clock.0),
            _ => false,
        }
    }

    /// Returns how the connection ended, once.
    pub fn take_ended(&mut self) -> Option<Ended> {
        self.ended.take()
    }

    /// What a replica remembers of the session, once its connection is over: whose it is, under which token.
    pub fn take_memory(&mut self) -> Option<(AccountId, u64, Memory)> {
        self.memory.take()
    }

    /// Under which token a session is remembered.
    #[must_use]
    pub fn remembered_as(&self) -> Option<(AccountId, u64)> {
        match &self.state {
            State::Opening(client, _) => Some((client.account?, client.token)),
            _ => None,
        }
    }

    /// Since when a logon waits for the venue. At a gateway reports from before it may be lost on their way.
    fn waits_since_ns(&self) -> Option<u64> {
        match &self.state {
            State::Authenticating(_, since_ns) | State::Opening(_, since_ns) => Some(*since_ns),
            State::Loading(loading) => Some(loading.since_ns),
            State::Fresh | State::Open(_) | State::Over => None,
        }
    }

    /// Handles timeouts.
    pub fn on_timer(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.waits_since_ns() {
            if now_ns >= since_ns.saturating_add(self.settings.session.logon_timeout_ns) {
                self.bye(ByeReason::Rejected(RejectReason::VenueNotReady), "");
            }
        } else if !self.is_over() {
            let day_ns = self.day_ns(now_ns);
            self.session.on_time(day_ns);
            self.end_with_session();
        }
    }

    /// When to call [`FixServer::on_timer`], and then [`FixServer::go_on`]; `None` once the connection is over.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        let timeout_ns = self.settings.session.logon_timeout_ns;
        let session_ns = || {
            let day_ns = self.session.deadline_ns();
            if day_ns == u64::MAX { u64::MAX } else { self.clock.0.saturating_add(day_ns.saturating_sub(self.clock.1)) }
        };
        if let Some(since_ns) = self.waits_since_ns() {
            return Some(since_ns.saturating_add(timeout_ns));
        }
        match &self.state {
            State::Fresh => Some(session_ns()),
            State::Open(open) => Some(session_ns().min(open.again_ns.unwrap_or(u64::MAX)).min(open.unanswered.question_ns())),
            State::Authenticating(..) | State::Opening(..) | State::Loading(_) | State::Over => None,
        }
    }

    /// Whether the connection is over: what is unwritten should still be written.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Bytes to write.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.session.output()
    }

    /// So many of them were written.
    pub fn consume(&mut self, len: usize) {
        self.session.consume(len);
    }
}

/// What the log of the process says of an end.
const fn reason_of(end: End) -> Option<ByeReason> {
    match end {
        End::NoLogon => Some(ByeReason::LogonExpected),
        End::LoggedOut => Some(ByeReason::LoggedOut),
        End::Silent => Some(ByeReason::Idle),
        End::SlowReader => Some(ByeReason::SlowReader),
        End::Refused | End::RulesBroken | End::TooLong => Some(ByeReason::Malformed),
        End::Lost => None,
    }
}

/// A command that does nothing, in the place of a message that is none.
fn filler(account: AccountId, seq: u64) -> Numbered {
    let invalid = InvalidCommand {
        account: Some(account),
        instrument: None,
        client_order_id: None,
        reason: RejectReason::Malformed,
        content: ContentDigest(0),
        name: None,
    };
    Numbered { seq, command: Command::Invalid(invalid), asked: Asked::Filler, text: None }
}
