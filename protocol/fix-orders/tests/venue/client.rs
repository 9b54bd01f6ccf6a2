//! A client's side, as engines have it: its numbers and messages outlive connections.

use std::collections::BTreeMap;

use walras_fix::{Dictionaries, Leniency, Rules, Version};

/// A received message.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) fields: Vec<(u32, String)>,
}

impl Received {
    pub(crate) fn get(&self, tag: u32) -> Option<&str> {
        self.fields.iter().find(|(found, _)| *found == tag).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self, tag: u32) -> &str {
        self.get(tag).unwrap_or_else(|| panic!("no {tag} in {self:?}"))
    }

    fn number(&self, tag: u32) -> u64 {
        self.text(tag).parse().unwrap()
    }

    fn of(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap();
        let fields = text.split_terminator('\x01').map(|field| {
            let (tag, value) = field.split_once('=').unwrap();
            (tag.parse().unwrap(), value.to_owned())
        });
        Self { fields: fields.collect() }
    }
}

pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) begin_string: String,
    pub(crate) credentials: String,
    pub(crate) heart_bt_secs: u64,
    /// Whether its logons say what it expects.
    pub(crate) says_next: bool,
    pub(crate) next_out: u64,
    pub(crate) next_in: u64,
    /// Application messages: type, fields.
    sent: BTreeMap<u64, (String, String)>,
    early: BTreeMap<u64, Received>,
    unread: Vec<u8>,
    pub(crate) output: Vec<u8>,
    pub(crate) is_logged_on: bool,
    /// Application messages, each once, in order.
    pub(crate) received: Vec<Received>,
    /// Texts of logouts, and of rejects that refuse a logon.
    pub(crate) logouts: Vec<String>,
    now_ns: u64,
    dictionaries: Dictionaries,
    /// Of its messages, where its logon says it.
    appl_ver_id: Option<String>,
}

impl Client {
    pub(crate) fn new(name: &str, target: &str, credentials: &str) -> Self {
        Self {
            name: name.to_owned(),
            target: target.to_owned(),
            begin_string: "FIX.4.4".to_owned(),
            credentials: credentials.to_owned(),
            heart_bt_secs: 30,
            says_next: true,
            next_out: 1,
            next_in: 1,
            sent: BTreeMap::new(),
            early: BTreeMap::new(),
            unread: Vec::new(),
            output: Vec::new(),
            is_logged_on: false,
            received: Vec::new(),
            logouts: Vec::new(),
            now_ns: 0,
            dictionaries: Dictionaries::new(),
            appl_ver_id: None,
        }
    }

    pub(crate) fn message(&self, msg_type: &str, seq: u64, header: &str, body: &str) -> Vec<u8> {
        let time = stamp(self.now_ns);
        let rest = format!("35={msg_type}|34={seq}|{header}49={}|52={time}|56={}|{body}", self.name, self.target);
        let text = format!("8={}|9={}|{rest}", self.begin_string, rest.len()).replace('|', "\x01");
        let sum = text.bytes().fold(0_u8, u8::wrapping_add);
        format!("{text}10={sum:03}\x01").into_bytes()
    }

    fn push(&mut self, msg_type: &str, body: &str) {
        let seq = self.next_out;
        self.next_out += 1;
        let bytes = self.message(msg_type, seq, "", body);
        self.output.extend(bytes);
    }

    /// Sends an application message, now or with the next logon.
    pub(crate) fn send(&mut self, now_ns: u64, msg_type: &str, body: &str) -> u64 {
        self.now_ns = now_ns;
        let seq = self.next_out;
        let time = if msg_type == "H" { String::new() } else { format!("60={}|", stamp(now_ns)) };
        self.sent.insert(seq, (msg_type.to_owned(), format!("{body}{time}")));
        let body = self.sent[&seq].1.clone();
        if self.is_logged_on {
            self.push(msg_type, &body);
        } else {
            self.next_out += 1;
        }
        seq
    }

    pub(crate) fn heartbeat(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.push("0", "");
    }

    /// On a new connection.
    pub(crate) fn log_on(&mut self, now_ns: u64, extra: &str) {
        self.now_ns = now_ns;
        self.unread.clear();
        self.output.clear();
        self.early.clear();
        self.is_logged_on = false;
        self.appl_ver_id = extra.split('|').find_map(|field| field.strip_prefix("1137=")).map(str::to_owned);
        let next = if self.says_next { format!("789={}|", self.next_in) } else { String::new() };
        let body = format!("98=0|108={}|{}{extra}{next}", self.heart_bt_secs, self.credentials);
        self.push("A", &body);
    }

    pub(crate) fn reset(&mut self) {
        (self.next_out, self.next_in) = (1, 1);
        self.sent.clear();
    }

    pub(crate) fn on_bytes(&mut self, now_ns: u64, bytes: &[u8]) {
        self.now_ns = now_ns;
        self.unread.extend_from_slice(bytes);
        while let Some(end) = end_of_message(&self.unread) {
            self.check(&self.unread[..end]);
            let message = Received::of(&self.unread[..end]);
            self.unread.drain(..end);
            self.on_message(message);
        }
    }

    /// Engines reject what the dictionary of the version does not have.
    fn check(&self, bytes: &[u8]) {
        let appl_ver_id = self.appl_ver_id.as_deref().map(str::as_bytes);
        let version = Version::of_session(self.begin_string.as_bytes(), appl_ver_id).unwrap();
        let message = self.dictionaries.read(bytes).unwrap();
        let rules = Rules { user_tags: Leniency::Rejected, empty_values: Leniency::Rejected };
        let verdict = self.dictionaries.check(version, &message, rules);
        assert_eq!(verdict, Ok(()), "{version:?}: {}", String::from_utf8_lossy(bytes));
    }

    fn on_message(&mut self, message: Received) {
        let (seq, msg_type) = (message.number(34), message.text(35).to_owned());
        assert_eq!((message.text(49), message.text(56)), (self.target.as_str(), self.name.as_str()));
        if matches!(msg_type.as_str(), "3" | "5") && !self.is_logged_on {
            return self.on_refused(&message);
        }
        if msg_type == "A" && !self.is_logged_on {
            self.is_logged_on = true;
            if message.get(141) == Some("Y") {
                self.next_in = 1;
            }
            if let Some(next) = message.get(789).map(|next| next.parse::<u64>().unwrap()) {
                self.resend(next, self.next_out - 1);
            }
            if seq > self.next_in {
                if !self.says_next {
                    let body = format!("7={}|16=0|", self.next_in);
                    self.push("2", &body);
                }
                self.early.insert(seq, message);
                return;
            }
        } else if msg_type == "2" {
            let (from, to) = (message.number(7), message.number(16));
            let last = self.next_out - 1;
            self.resend(from, if to == 0 { last } else { to.min(last) });
        }
        if seq < self.next_in {
            assert_eq!(message.get(43), Some("Y"), "MsgSeqNum too low, expecting {}: {message:?}", self.next_in);
            return;
        }
        if seq > self.next_in {
            assert!(!self.early.is_empty(), "a message is missing before {message:?}, expecting {}", self.next_in);
            self.early.insert(seq, message);
            return;
        }
        self.take(message);
        while let Some(early) = self.early.remove(&self.next_in) {
            self.take(early);
        }
        self.early.retain(|seq, _| *seq >= self.next_in);
    }

    /// A logout counts, and is answered with another one. A reject counts if its number is the next one.
    fn on_refused(&mut self, message: &Received) {
        self.logouts.push(message.text(58).to_owned());
        let seq = message.number(34);
        if message.text(35) == "5" {
            assert_eq!(seq, self.next_in, "{message:?}");
            self.push("5", "");
        } else if seq < self.next_in {
            assert_eq!(message.get(43), Some("Y"), "MsgSeqNum too low, expecting {}: {message:?}", self.next_in);
            return;
        }
        self.next_in = seq + 1;
    }

    fn take(&mut self, message: Received) {
        let seq = message.number(34);
        match message.text(35) {
            "4" => {
                assert_eq!(message.get(123), Some("Y"));
                self.next_in = message.number(36);
                assert!(self.next_in > seq);
                return;
            }
            "1" => {
                let body = format!("112={}|", message.text(112));
                self.push("0", &body);
            }
            "5" => self.logouts.push(message.get(58).unwrap_or_default().to_owned()),
            "3" => panic!("rejected: {message:?}"),
            "A" | "0" | "2" => {}
            _ => self.received.push(message),
        }
        self.next_in = seq + 1;
    }

    /// Sends its messages again, with gap fills for those of the session.
    fn resend(&mut self, from: u64, to: u64) {
        if from > to {
            return;
        }
        let mut next = from;
        let again: Vec<(u64, (String, String))> = self.sent.range(from..=to).map(|(seq, sent)| (*seq, sent.clone())).collect();
        for (seq, (msg_type, body)) in again {
            if seq > next {
                let fill = self.message("4", next, "43=Y|", &format!("122={}|123=Y|36={seq}|", stamp(self.now_ns)));
                self.output.extend(fill);
            }
            let bytes = self.message(&msg_type, seq, "43=Y|", &format!("122={}|{body}", stamp(self.now_ns)));
            self.output.extend(bytes);
            next = seq + 1;
        }
        if next <= to {
            let fill = self.message("4", next, "43=Y|", &format!("122={}|123=Y|36={}|", stamp(self.now_ns), to + 1));
            self.output.extend(fill);
        }
    }

    /// The last application message.
    pub(crate) fn last(&self) -> &Received {
        self.received.last().expect("something was received")
    }

    pub(crate) fn executions(&self) -> impl Iterator<Item = &Received> {
        self.received.iter().filter(|message| message.text(35) == "8")
    }
}

fn end_of_message(bytes: &[u8]) -> Option<usize> {
    let at = bytes.windows(4).position(|window| window == b"\x0110=")?;
    (bytes.len() >= at + 8).then_some(at + 8)
}

/// A time of day within the first day of 2026.
pub(crate) fn stamp(now_ns: u64) -> String {
    let ms = (now_ns - super::world::DAY_NS) / 1_000_000;
    let (s, ms) = (ms / 1_000, ms % 1_000);
    format!("20260101-{:02}:{:02}:{:02}.{ms:03}", s / 3_600, s / 60 % 60, s % 60)
}
