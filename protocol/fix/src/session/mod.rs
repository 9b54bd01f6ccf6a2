//! One end of a FIX session, on one connection: the acceptor's.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::Version;
use crate::dictionary::Dictionaries;
use crate::frame::{Frame, Framer};
use crate::message::Message;
use crate::validate::Rules;

mod inbound;
mod lasting;
mod outbound;
mod record;

pub use lasting::{Lasting, LastingStart, NUMBERS_FROM, Unknown, Unplaced, next_lasting};
pub use outbound::AppMessage;
pub use record::Record;

/// Limits and habits of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// SenderCompID(49) of what this end sends.
    pub comp_id: String,
    /// Its further names. A client chooses one by the TargetCompID(56) of its logon.
    pub other_comp_ids: Vec<String>,
    /// Numbers begin with 1 at each logon, whether or not the logon says so.
    pub resets_on_logon: bool,
    /// SendingTime(52) may differ from the clock by so much.
    pub sending_time_error_ns_max: u64,
    /// A connection that has not logged on by then ends.
    pub logon_timeout_ns: u64,
    /// How long this end waits for the answer to its logout.
    pub logout_timeout_ns: u64,
    /// Minimum and maximum of HeartBtInt(108); 0 means no heartbeats.
    pub heart_bt_secs: (u64, u64),
    /// How many messages a ResendRequest asks for at a time; `None`: all that are missing.
    pub resend_chunk: Option<u64>,
    /// Maximum bytes of a received message.
    pub message_bytes_max: usize,
    /// Maximum number of messages that wait for missing ones, and of their bytes.
    pub early_max: (usize, usize),
    /// Maximum number of sent messages that are kept, and of their bytes.
    pub sent_max: (usize, usize),
    /// A connection with more unwritten output ends.
    pub output_bytes_max: usize,
}

impl Settings {
    /// Numbers that go on; 120 s of clock error, 10 s for the logon, 2 s for the logout, heartbeats of 1 s to 10 min, resends of
    /// 1,000 at a time; messages of 16 KiB, 1,024 of them and 1 MiB early, 8,192 and 1 MiB kept, 4 MiB of output.
    #[must_use]
    pub fn of(comp_id: &str) -> Self {
        Self {
            comp_id: comp_id.to_owned(),
            other_comp_ids: Vec::new(),
            resets_on_logon: false,
            sending_time_error_ns_max: 120_000_000_000,
            logon_timeout_ns: 10_000_000_000,
            logout_timeout_ns: 2_000_000_000,
            heart_bt_secs: (1, 600),
            resend_chunk: Some(1_000),
            message_bytes_max: 16 << 10,
            early_max: (1_024, 1 << 20),
            sent_max: (8_192, 1 << 20),
            output_bytes_max: 4 << 20,
        }
    }
}

/// What the host must act on. It answers before it asks for the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A logon with a right form and time: [`Session::accept`] or [`Session::refuse`] it. Until then nothing else is read.
    Logon(LogonRequest),
    /// An application message, checked against its dictionary, in its order and once.
    App(Message),
}

/// A logon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogonRequest {
    /// The version of its session.
    pub version: Version,
    /// SenderCompID(49).
    pub comp_id: String,
    /// TargetCompID(56): which name of this end it uses.
    pub target: String,
    /// ResetSeqNumFlag(141): both ends' numbers begin with 1.
    pub resets: bool,
    /// MsgSeqNum(34).
    pub seq: u64,
    /// NextExpectedMsgSeqNum(789): all messages before it were received.
    pub next_expected: Option<u64>,
    /// All of it.
    pub message: Message,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What came first was no logon, or one with a wrong form, CompID or time; nothing was answered.
    NoLogon,
    /// The host refused the logon.
    Refused,
    /// Either end logged out.
    LoggedOut,
    /// Nothing came for too long.
    Silent,
    /// What was to be sent was not read fast enough.
    SlowReader,
    /// The rules were broken, as the logout says.
    RulesBroken,
    /// A message was longer than allowed.
    TooLong,
    /// The connection was lost.
    Lost,
}

/// One connection, and the session on it once it has logged on.
#[derive(Debug)]
pub struct Session {
    settings: Arc<Settings>,
    dictionaries: Dictionaries,
    framer: Framer,
    state: State,
    output: Vec<u8>,
    written: usize,
    end: Option<End>,
}

#[derive(Debug)]
enum State {
    /// Waits for a logon, from this time on.
    Fresh(u64),
    /// The host judges this logon.
    Judged(Box<LogonRequest>),
    Open(Box<Open>),
}

/// A session that is logged on.
#[derive(Debug)]
struct Open {
    version: Version,
    peer: Box<[u8]>,
    /// The name of this end that the other one uses.
    own: Box<[u8]>,
    /// How numbers are given, where they say which lasting message comes next.
    lasting: Option<Lasting>,
    /// What the other end may lack, until it asks.
    unknown: Option<Box<Unknown>>,
    rules: Rules,
    record: Record,
    heart_bt_ns: u64,
    sent_ns: u64,
    heard_ns: u64,
    /// Test requests since something was heard.
    test_requests: u64,
    logout_sent_ns: Option<u64>,
    /// Messages that came before missing ones.
    early: BTreeMap<u64, Message>,
    early_bytes: usize,
    /// Numbers that were asked for again.
    missing: Option<Missing>,
    /// Numbers that are being sent again.
    resending: Option<Resending>,
    events: VecDeque<Event>,
}

/// Messages that were asked for again.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// The first and the last of this request; the last is `u64::MAX` where it asks for all.
    from: u64,
    to: u64,
    /// The last that is known to be missing.
    last: u64,
}

/// Messages that the other end asked for.
#[derive(Clone, Copy, Debug)]
struct Resending {
    next: u64,
    to: u64,
}

/// Resends pause while more output than this waits to be written.
const RESEND_OUTPUT_MAX: usize = 256 << 10;

impl Session {
    /// A new connection.
    #[must_use]
    pub fn new(settings: Arc<Settings>, dictionaries: Dictionaries, now_ns: u64) -> Self {
        Self {
            settings,
            dictionaries,
            framer: Framer::default(),
            state: State::Fresh(now_ns),
            output: Vec::new(),
            written: 0,
            end: None,
        }
    }

    /// Takes received bytes, cut anywhere. Afterwards ask for events, until there is none.
    pub fn on_bytes(&mut self, bytes: &[u8]) {
        if self.end.is_some() {
            return;
        }
        self.framer.push(bytes);
        // While the host judges, little is kept: a client waits for the answer to its logon.
        if matches!(self.state, State::Judged(_)) && self.framer.len() > self.settings.message_bytes_max * 4 {
            self.finish(End::TooLong);
        }
    }

    /// The next thing that the host must act on; call it until there is none, after each input and after each write: a resend waits
    /// for room.
    pub fn poll(&mut self, now_ns: u64) -> Option<Event> {
        while self.end.is_none() {
            if let State::Open(open) = &mut self.state {
                if let Some(event) = open.events.pop_front() {
                    return Some(event);
                }
                if self.go_on_resending(now_ns) {
                    continue;
                }
                if let Some(message) = self.take_early(now_ns) {
                    self.on_message(now_ns, message);
                    continue;
                }
            }
            if matches!(self.state, State::Judged(_)) {
                return None;
            }
            let message = match self.framer.next(self.settings.message_bytes_max)? {
                Frame::Whole(range) => self.dictionaries.read(self.framer.bytes(range)),
                Frame::Garbled => None,
                Frame::TooLong => {
                    self.finish(End::TooLong);
                    return None;
                }
            };
            let is_open = matches!(self.state, State::Open(_));
            match message {
                Some(message) if is_open => self.on_message(now_ns, message),
                Some(message) => return self.on_first(now_ns, message),
                // What is garbled is ignored, so its number will be missed; before a logon there is nothing to wait for.
                None if is_open => {}
                None => self.finish(End::NoLogon),
            }
        }
        None
    }

    /// Accepts the logon. `record` is the session's as its last connection left it.
    pub fn accept(&mut self, now_ns: u64, record: Record, rules: Rules) {
        if let Some(logon) = self.begin(now_ns, record, rules) {
            self.on_accepted(now_ns, &logon);
        }
    }

    fn begin(&mut self, now_ns: u64, record: Record, rules: Rules) -> Option<Box<LogonRequest>> {
        let State::Judged(logon) = &self.state else { return None };
        let logon = logon.clone();
        let open = Open {
            version: logon.version,
            peer: logon.comp_id.as_bytes().into(),
            own: logon.target.as_bytes().into(),
            lasting: None,
            unknown: None,
            rules,
            record,
            heart_bt_ns: 0,
            sent_ns: now_ns,
            heard_ns: now_ns,
            test_requests: 0,
            logout_sent_ns: None,
            early: BTreeMap::new(),
            early_bytes: 0,
            missing: None,
            resending: None,
            events: VecDeque::new(),
        };
        self.state = State::Open(Box::new(open));
        Some(logon)
    }

    /// Refuses the logon: with a logout that gives a text, or silently. Of a session of lasting messages see
    /// [`refuse_lasting`](Self::refuse_lasting).
    pub fn refuse(&mut self, now_ns: u64, text: Option<&str>) {
        let State::Judged(logon) = &self.state else { return };
        let logon = logon.clone();
        if let Some(text) = text {
            // An engine reads no text of a number that it does not expect.
            let number = logon.next_expected.unwrap_or(1).max(1);
            self.write_refusal(now_ns, &logon, Some(number), text);
        }
        self.finish(End::Refused);
    }

    /// Logs out with a reason and ends the connection, without waiting for the answer.
    pub fn log_out_now(&mut self, now_ns: u64, text: &str) {
        match &self.state {
            State::Open(_) if self.end.is_none() => {
                self.send_logout(now_ns, text);
                self.finish(End::LoggedOut);
            }
            State::Open(_) => {}
            State::Judged(_) => self.refuse(now_ns, Some(text)),
            State::Fresh(_) => self.finish(End::Refused),
        }
    }

    /// Goes on with a resend that waited for room.
    pub fn go_on(&mut self, now_ns: u64) {
        while self.end.is_none() && matches!(self.state, State::Open(_)) && self.go_on_resending(now_ns) {}
    }

    /// The other end's CompID, once it is logged on.
    #[must_use]
    pub fn peer(&self) -> Option<&str> {
        match &self.state {
            State::Open(open) => std::str::from_utf8(&open.peer).ok(),
            State::Fresh(_) | State::Judged(_) => None,
        }
    }

    /// Number of the next message from the other end, once it is logged on.
    #[must_use]
    pub fn next_in(&self) -> Option<u64> {
        match &self.state {
            State::Open(open) => Some(open.record.next_in),
            State::Fresh(_) | State::Judged(_) => None,
        }
    }

    /// Received bytes that were not looked at yet.
    #[must_use]
    pub fn unread_bytes(&self) -> usize {
        self.framer.len()
    }

    /// Number of the next message that is sent, once it is logged on.
    #[must_use]
    pub fn next_out(&self) -> Option<u64> {
        match &self.state {
            State::Open(open) => Some(open.record.next_out),
            State::Fresh(_) | State::Judged(_) => None,
        }
    }

    /// The connection was lost.
    pub fn on_disconnected(&mut self) {
        self.finish(End::Lost);
        self.output = Vec::new();
        self.written = 0;
    }

    fn finish(&mut self, end: End) {
        self.end.get_or_insert(end);
        self.framer = Framer::default();
    }

    /// Lets time pass: heartbeats, test requests, timeouts. Call it at the latest at [`Session::deadline_ns`].
    pub fn on_time(&mut self, now_ns: u64) {
        if self.end.is_some() {
            return;
        }
        match &self.state {
            State::Fresh(since_ns) if now_ns >= since_ns.saturating_add(self.settings.logon_timeout_ns) => {
                self.finish(End::NoLogon)
            }
            State::Fresh(_) | State::Judged(_) => {}
            State::Open(open) => match open.due(now_ns, self.settings.logout_timeout_ns) {
                Due::Nothing => {}
                Due::LogoutTimeout => self.finish(End::LoggedOut),
                Due::Silence => self.finish(End::Silent),
                Due::TestRequest => self.send_test_request(now_ns),
                Due::Heartbeat => self.send_heartbeat(now_ns, None),
            },
        }
    }

    /// When time must pass, if nothing comes before.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        match &self.state {
            _ if self.end.is_some() => u64::MAX,
            State::Fresh(since_ns) => since_ns.saturating_add(self.settings.logon_timeout_ns),
            State::Judged(_) => u64::MAX,
            State::Open(open) => open.deadline_ns(self.settings.logout_timeout_ns),
        }
    }

    /// Bytes to write.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output[self.written..]
    }

    /// So many of them were written.
    pub fn consume(&mut self, len: usize) {
        self.written = (self.written + len).min(self.output.len());
        if self.written == self.output.len() {
            if self.output.capacity() > (64 << 10) {
                self.output = Vec::new();
            }
            self.output.clear();
            self.written = 0;
        } else if self.written > self.output.len() / 2 {
            self.output.drain(..self.written);
            self.written = 0;
        }
    }

    /// Whether and why the connection ended. What is unwritten should still be written.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// The version of the session, from its logon on.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        match &self.state {
            State::Open(open) => Some(open.version),
            State::Fresh(_) | State::Judged(_) => None,
        }
    }

    /// The session's numbers and messages, for its next connection; `None` if it never logged on, or if the other end has not said yet
    /// what it lacks. It can no longer be used here.
    pub fn take_record(&mut self) -> Option<Record> {
        self.finish(End::Lost);
        match &mut self.state {
            State::Open(open) => open.unknown.is_none().then(|| std::mem::take(&mut open.record)),
            State::Fresh(_) | State::Judged(_) => None,
        }
    }

    fn open(&mut self) -> &mut Open {
        match &mut self.state {
            State::Open(open) => open,
            State::Fresh(_) | State::Judged(_) => unreachable!("only a session that is logged on takes or sends messages"),
        }
    }
}

/// What an open session must do by now.
enum Due {
    Nothing,
    LogoutTimeout,
    Silence,
    TestRequest,
    Heartbeat,
}

impl Open {
    /// After 1.2 heartbeat intervals of silence a test request is due, after 2.4 the end, as engines do among themselves.
    fn due(&self, now_ns: u64, logout_timeout_ns: u64) -> Due {
        if self.logout_sent_ns.is_some_and(|sent_ns| now_ns >= sent_ns.saturating_add(logout_timeout_ns)) {
            return Due::LogoutTimeout;
        }
        if self.heart_bt_ns == 0 {
            return Due::Nothing;
        }
        if now_ns >= self.silence_ns() {
            Due::Silence
        } else if now_ns >= self.test_request_ns() {
            Due::TestRequest
        } else if now_ns >= self.heartbeat_ns() {
            Due::Heartbeat
        } else {
            Due::Nothing
        }
    }

    fn deadline_ns(&self, logout_timeout_ns: u64) -> u64 {
        let logout_ns = self.logout_sent_ns.map_or(u64::MAX, |sent_ns| sent_ns.saturating_add(logout_timeout_ns));
        if self.heart_bt_ns == 0 {
            return logout_ns;
        }
        logout_ns.min(self.silence_ns()).min(self.test_request_ns()).min(self.heartbeat_ns())
    }

    fn silence_ns(&self) -> u64 {
        self.heard_ns.saturating_add(self.heart_bt_ns / 5 * 12)
    }

    fn test_request_ns(&self) -> u64 {
        self.heard_ns.saturating_add((self.heart_bt_ns / 5 * 6).saturating_mul(self.test_requests + 1))
    }

    /// None are sent while a test request waits for its answer.
    fn heartbeat_ns(&self) -> u64 {
        if self.test_requests > 0 { u64::MAX } else { self.sent_ns.saturating_add(self.heart_bt_ns) }
    }

    fn is_expected(&self, message: &Message) -> bool {
        message.seq() == Some(self.record.next_in)
    }
}
