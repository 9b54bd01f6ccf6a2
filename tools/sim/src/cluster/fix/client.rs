//! A FIX client's session: its numbers and messages outlive its connections.

use std::collections::BTreeMap;

use walras_gateway::ClientKey;

use super::message::{Received, Spoken, end_of_message, stamp, written_in};

/// Who a client is.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// SenderCompID(49).
    pub(super) own: String,
    /// TargetCompID(56).
    pub(super) venue: String,
    /// A key of its account.
    pub(super) key: ClientKey,
    /// Its version.
    pub(super) spoken: Spoken,
}

impl Names {
    /// The fields by which a logon of this number proves whose it is, and those that its version needs.
    fn credentials(&self, seq: u64, now_ns: u64) -> String {
        let Self { own, venue, key, spoken } = self;
        let password = || {
            let token = key.to_token();
            let (id, secret) = token.split_once('.').expect("a key has an id and a secret");
            format!("553={id}|554={secret}|")
        };
        match spoken {
            // It has no Username(553): the holder signs.
            Spoken::Fix42 => {
                let begin_string = spoken.begin_string();
                let time = stamp(now_ns);
                let text = format!("walras-v1\nLOGON\n/fix\n{begin_string}\n{own}\n{venue}\n{seq}\n{time}\n1\nN\n");
                let raw = format!("{}:{}", key.key_id(), key.sign_bytes(text.as_bytes()));
                format!("95={}|96={raw}|", raw.len())
            }
            Spoken::Fix44 => password(),
            Spoken::Fix50Sp2 => password() + "1137=9|",
        }
    }
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    LogsOn,
    LoggedOn,
    /// The venue has ended the session on this connection.
    LoggedOut,
}

/// An application message that was sent, or is to be with the next logon.
#[derive(Clone, Debug)]
struct Sent {
    msg_type: &'static str,
    body: String,
}

#[derive(Debug)]
pub(super) struct FixClient {
    names: Names,
    /// Whether its logons say which number it expects next.
    says_next: bool,
    pub(super) next_out: u64,
    next_in: u64,
    sent: BTreeMap<u64, Sent>,
    /// Messages that came before others that are missing.
    early: BTreeMap<u64, Received>,
    unread: Vec<u8>,
    output: Vec<u8>,
    stage: Stage,
    /// Application messages, each once, in order.
    taken: Vec<Received>,
    pub(super) last_logout: String,
    /// Messages that came a second time, or as ones that were sent before.
    pub(super) sent_again: u64,
    /// Times at which the two ends agreed on a logon.
    pub(super) logons: u64,
}

/// What no venue should send.
pub(super) type Broken = String;

impl FixClient {
    pub(super) fn new(names: Names, says_next: bool) -> Self {
        Self {
            names,
            says_next,
            next_out: 1,
            next_in: 1,
            sent: BTreeMap::new(),
            early: BTreeMap::new(),
            unread: Vec::new(),
            output: Vec::new(),
            stage: Stage::LoggedOut,
            taken: Vec::new(),
            last_logout: String::new(),
            sent_again: 0,
            logons: 0,
        }
    }

    pub(super) fn is_logged_on(&self) -> bool {
        self.stage == Stage::LoggedOn
    }

    pub(super) fn is_logged_out(&self) -> bool {
        self.stage == Stage::LoggedOut
    }

    fn message(&self, now_ns: u64, msg_type: &str, seq: u64, header: &str, body: &str) -> Vec<u8> {
        let Names { own, venue, spoken, .. } = &self.names;
        let fields = format!("35={msg_type}|34={seq}|{header}49={own}|52={}|56={venue}|{body}", stamp(now_ns));
        written_in(spoken.begin_string(), &fields)
    }

    fn push(&mut self, now_ns: u64, msg_type: &str, body: &str) {
        let bytes = self.message(now_ns, msg_type, self.next_out, "", body);
        self.next_out += 1;
        self.output.extend(bytes);
    }

    /// Begins a connection.
    pub(super) fn log_on(&mut self, now_ns: u64) {
        self.unread.clear();
        self.output.clear();
        self.early.clear();
        self.stage = Stage::LogsOn;
        let next = if self.says_next { format!("789={}|", self.next_in) } else { String::new() };
        let body = format!("98=0|108=1|{}{next}", self.names.credentials(self.next_out, now_ns));
        self.push(now_ns, "A", &body);
    }

    /// The connection is gone.
    pub(super) fn on_lost(&mut self) {
        self.stage = Stage::LoggedOut;
        self.output.clear();
    }

    /// Sends an application message, now or with the next logon: its number.
    pub(super) fn send(&mut self, now_ns: u64, msg_type: &'static str, body: String) -> u64 {
        let seq = self.next_out;
        if self.is_logged_on() {
            self.push(now_ns, msg_type, &body);
        } else {
            self.next_out += 1;
        }
        self.sent.insert(seq, Sent { msg_type, body });
        seq
    }

    /// For planted faults: the last message, if it is an application message that was sent and nothing after it.
    pub(super) fn forget_last(&mut self) -> bool {
        let is_last = self.sent.last_key_value().is_some_and(|(seq, _)| seq + 1 == self.next_out);
        if is_last {
            self.sent.pop_last();
            self.next_out -= 1;
        }
        is_last
    }

    pub(super) fn heartbeat(&mut self, now_ns: u64) {
        self.push(now_ns, "0", "");
    }

    pub(super) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    pub(super) fn take_received(&mut self) -> Vec<Received> {
        std::mem::take(&mut self.taken)
    }

    pub(super) fn on_bytes(&mut self, now_ns: u64, bytes: &[u8]) -> Result<(), Broken> {
        self.unread.extend_from_slice(bytes);
        while let Some(end) = end_of_message(&self.unread) {
            let message = Received::of(&self.unread[..end]);
            self.unread.drain(..end);
            self.on_message(now_ns, message.ok_or("bytes that are no message")?)?;
        }
        Ok(())
    }

    fn on_message(&mut self, now_ns: u64, message: Received) -> Result<(), Broken> {
        let seq = message.number(34).ok_or("a message without a number")?;
        if message.text(49) != self.names.venue || message.text(56) != self.names.own {
            return Err(format!("a message for somebody else: {message:?}"));
        }
        if message.spoken() != Some(self.names.spoken) {
            return Err(format!("a message of another version: {message:?}"));
        }
        match (message.text(35), self.stage) {
            (_, Stage::LoggedOut) => return Ok(()),
            ("3" | "5", Stage::LogsOn) => return self.on_refused(seq, &message),
            ("A", Stage::LogsOn) => return self.on_logon(now_ns, seq, message),
            (_, Stage::LogsOn) => return Err(format!("before the logon: {message:?}")),
            ("2", _) => {
                let (Some(from), Some(to)) = (message.number(7), message.number(16)) else {
                    return Err(format!("a resend request without numbers: {message:?}"));
                };
                let last = self.next_out - 1;
                self.resend(now_ns, from, if to == 0 { last } else { to.min(last) });
            }
            _ => {}
        }
        if seq < self.next_in {
            self.sent_again += 1;
            let why = || format!("MsgSeqNum(34) is too low, {} comes next: {message:?}", self.next_in);
            return if message.is_possible_duplicate() { Ok(()) } else { Err(why()) };
        }
        if seq > self.next_in {
            if self.early.is_empty() {
                return Err(format!("a number is left out, {} comes next: {message:?}", self.next_in));
            }
            self.early.insert(seq, message);
            return Ok(());
        }
        self.take(now_ns, message)?;
        self.take_early(now_ns)
    }

    fn take_early(&mut self, now_ns: u64) -> Result<(), Broken> {
        while let Some(early) = self.early.remove(&self.next_in) {
            self.take(now_ns, early)?;
        }
        self.early.retain(|seq, _| *seq >= self.next_in);
        Ok(())
    }

    /// The venue's answer to a logon: what each end lacks.
    fn on_logon(&mut self, now_ns: u64, seq: u64, message: Received) -> Result<(), Broken> {
        self.stage = Stage::LoggedOn;
        self.logons += 1;
        if let Some(next) = message.number(789) {
            if next > self.next_out {
                return Err(format!("it expects {next}, and there is none from {} on: {message:?}", self.next_out));
            }
            self.resend(now_ns, next, self.next_out - 1);
        }
        if seq < self.next_in {
            return Err(format!("a logon with a number that came before, {} comes next: {message:?}", self.next_in));
        }
        if seq > self.next_in {
            // Where a logon says what it expects, the rest comes by itself.
            if !self.says_next {
                let body = format!("7={}|16=0|", self.next_in);
                self.push(now_ns, "2", &body);
            }
            self.early.insert(seq, message);
            return Ok(());
        }
        self.take(now_ns, message)?;
        self.take_early(now_ns)
    }

    /// The venue refuses the logon. As engines do, it counts a logout, and anything else only if its number is the next one.
    fn on_refused(&mut self, seq: u64, message: &Received) -> Result<(), Broken> {
        let is_logout = message.text(35) == "5";
        if is_logout && seq != self.next_in {
            return Err(format!("a refusal that is counted as {seq}, and {} comes next: {message:?}", self.next_in));
        }
        if !is_logout && !message.is_possible_duplicate() {
            return Err(format!("a reject instead of a logon: {message:?}"));
        }
        if seq == self.next_in {
            self.next_in += 1;
        }
        self.logged_out(message);
        Ok(())
    }

    fn logged_out(&mut self, message: &Received) {
        self.stage = Stage::LoggedOut;
        self.last_logout = message.text(58).to_owned();
    }

    fn take(&mut self, now_ns: u64, message: Received) -> Result<(), Broken> {
        let seq = self.next_in;
        self.sent_again += u64::from(message.is_possible_duplicate());
        self.next_in = seq + 1;
        match message.text(35) {
            "4" => {
                let next = message.number(36).filter(|next| *next > seq && message.get(123) == Some("Y"));
                self.next_in = next.ok_or_else(|| format!("a gap fill that fills none: {message:?}"))?;
            }
            "1" => {
                let body = format!("112={}|", message.text(112));
                self.push(now_ns, "0", &body);
            }
            "5" => self.logged_out(&message),
            // The clocks of the two ends are apart: a logout follows.
            "3" if message.get(373) == Some("10") => {}
            "A" | "0" | "2" => {}
            "8" | "9" | "r" => self.taken.push(message),
            _ => return Err(format!("something that nothing asked for: {message:?}")),
        }
        Ok(())
    }

    /// Sends its messages again, with gap fills for those of the session.
    fn resend(&mut self, now_ns: u64, from: u64, to: u64) {
        let mut next = from;
        let fill = |this: &Self, from: u64, to: u64| {
            this.message(now_ns, "4", from, "43=Y|", &format!("122={}|123=Y|36={to}|", stamp(now_ns)))
        };
        let mut bytes = Vec::new();
        for (seq, Sent { msg_type, body }) in self.sent.range(from..to.max(from) + 1).filter(|(seq, _)| **seq <= to) {
            if *seq > next {
                bytes.extend(fill(self, next, *seq));
            }
            bytes.extend(self.message(now_ns, msg_type, *seq, "43=Y|", &format!("122={}|{body}", stamp(now_ns))));
            next = *seq + 1;
        }
        if next <= to {
            bytes.extend(fill(self, next, to + 1));
        }
        self.output.extend(bytes);
    }
}
