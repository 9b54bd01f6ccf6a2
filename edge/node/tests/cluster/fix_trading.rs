//! FIX at every replica of a cluster: a session that goes on where another replica leads, market data at replicas that follow, and both
//! over TLS.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use walras_access::now;
use walras_client::local_cluster::LocalReplica;
use walras_client::{EntryStream, EntryTrust, Trust};
use walras_fix::{Body, Version};
use walras_gateway::ClientKey;

use super::{Cluster, PATIENCE, Shape, until};

/// Where a process takes orders by FIX.
pub(super) fn fix_of(process: &LocalReplica) -> String {
    process.fix.clone().unwrap()
}

/// Where it gives out market data by FIX.
pub(super) fn fix_data_of(process: &LocalReplica) -> String {
    process.fix_market_data.clone().unwrap()
}

/// Three replicas that all speak FIX.
fn cluster(more: Vec<(&'static str, &'static str, toml::Value)>) -> Cluster {
    Cluster::of(Shape { fix: true, more, ..Shape::default() })
}

pub(super) fn fair() -> Vec<(&'static str, &'static str, toml::Value)> {
    vec![("fair_access", "sequencing", "500us".into()), ("fair_access", "bound_us", toml::Value::Integer(10))]
}

/// A client's session. Its numbers and messages outlive connections.
pub(super) struct Session {
    target: &'static str,
    key: ClientKey,
    says_next: bool,
    next_out: u64,
    next_in: u64,
    sent: BTreeMap<u64, (&'static str, String)>,
    stream: Option<EntryStream>,
    unread: Vec<u8>,
}

pub(super) type Message = BTreeMap<u32, String>;

/// The time of day, as FIX writes it.
fn stamp() -> String {
    let mut time = Body::new();
    time.time(52, now().0, Version::Fix44);
    let time = String::from_utf8(time.as_bytes().to_vec()).unwrap();
    time.trim_end_matches('\u{1}').trim_start_matches("52=").to_owned()
}

impl Session {
    pub(super) fn new(key: &ClientKey, target: &'static str) -> Self {
        Self {
            target,
            key: key.clone(),
            says_next: target != "WALRAS-MD",
            next_out: 1,
            next_in: 1,
            sent: BTreeMap::new(),
            stream: None,
            unread: Vec::new(),
        }
    }

    /// Writes a message; `again` where it was sent before, or stands for such ones.
    fn write(&mut self, msg_type: &str, seq: u64, again: bool, body: &str) {
        self.write_at(&stamp(), msg_type, seq, again, body);
    }

    fn write_at(&mut self, time: &str, msg_type: &str, seq: u64, again: bool, body: &str) {
        let again = if again { format!("43=Y|122={time}|") } else { String::new() };
        let rest = format!("35={msg_type}|34={seq}|49=DESK|52={time}|56={}|{again}{}", self.target, body.replace("NOW", time));
        let rest = rest.replace('|', "\u{1}");
        let text = format!("8=FIX.4.4\u{1}9={}\u{1}{rest}", rest.len());
        let sum = text.bytes().fold(0_u8, u8::wrapping_add);
        let bytes = format!("{text}10={sum:03}\u{1}").into_bytes();
        // A connection that broke shows when it is read.
        let Some(stream) = &mut self.stream else { return };
        let (begun, mut rest) = (Instant::now(), &bytes[..]);
        while !rest.is_empty() && begun.elapsed() < PATIENCE {
            match stream.write(rest) {
                Ok(len) => rest = &rest[len..],
                // A handshake that goes on takes nothing yet.
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    walras_wait::pause(Duration::from_millis(1));
                }
                Err(_) => return,
            }
        }
        let _ = stream.flush();
    }

    pub(super) fn send(&mut self, msg_type: &'static str, body: &str) {
        let seq = self.next_out;
        self.next_out += 1;
        self.write(msg_type, seq, false, body);
        self.sent.insert(seq, (msg_type, body.to_owned()));
    }

    pub(super) fn order(&mut self, name: &str, price: &str) {
        self.send("D", &format!("11={name}|55=BTC/USD|54=1|60=NOW|38=0.01|40=2|44={price}|59=1|"));
    }

    /// Tries once: the answer to the logon, or `None` where the connection broke. A logout that refuses it counts, as engines count it.
    fn log_on(&mut self, address: &str, trust: Option<&EntryTrust>) -> Option<Message> {
        self.unread.clear();
        self.stream = EntryStream::connect(address, trust).ok();
        self.stream.as_ref()?;
        if !self.says_next {
            // Numbers of market data begin again with each logon.
            (self.next_out, self.next_in) = (1, 1);
            self.sent.clear();
        }
        let (reset, next) = if self.says_next { ("N", self.next_in.to_string()) } else { ("Y", String::new()) };
        let rest = if self.says_next { format!("141=N|789={next}|") } else { "141=Y|".to_owned() };
        let (seq, time) = (self.next_out, stamp());
        self.next_out += 1;
        let signed = format!("walras-v1\nLOGON\n/fix\nFIX.4.4\nDESK\n{}\n{seq}\n{time}\n30\n{reset}\n{next}", self.target);
        let (signature, id) = (self.key.sign_bytes(signed.as_bytes()), self.key.key_id());
        let body = format!("98=0|108=30|{rest}95={}|96={signature}|553={id}|", signature.len());
        self.write_at(&time, "A", seq, false, &body);
        let answer = self.hear()?;
        if let Some(next) = answer.get(&789).and_then(|next| next.parse().ok()) {
            self.resend(next);
        }
        Some(answer)
    }

    /// Sends its messages again from this number on, with gap fills for its logons.
    fn resend(&mut self, from: u64) {
        let mut next = from;
        let again: Vec<_> = self.sent.range(from..).map(|(seq, sent)| (*seq, sent.clone())).collect();
        for (seq, (msg_type, body)) in again {
            if seq > next {
                self.write("4", next, true, &format!("123=Y|36={seq}|"));
            }
            self.write(msg_type, seq, true, &body);
            next = seq + 1;
        }
        if next < self.next_out {
            self.write("4", next, true, &format!("123=Y|36={}|", self.next_out));
        }
    }

    /// The next message; `None` once the connection is over.
    fn hear(&mut self) -> Option<Message> {
        let begun = Instant::now();
        loop {
            if let Some(message) = self.take() {
                return Some(message);
            }
            assert!(begun.elapsed() < PATIENCE, "nothing comes");
            let (mut bytes, stream) = ([0; 8_192], self.stream.as_mut()?);
            let _ = stream.flush();
            match stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(len) => self.unread.extend_from_slice(&bytes[..len]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                    walras_wait::pause(Duration::from_millis(1));
                }
                Err(_) => return None,
            }
        }
    }

    /// A message that is there.
    fn take(&mut self) -> Option<Message> {
        let at = self.unread.windows(4).position(|window| window == b"\x0110=")?;
        if self.unread.len() < at + 8 {
            return None;
        }
        let text = String::from_utf8(self.unread.drain(..at + 8).collect()).unwrap();
        let fields = text.split_terminator('\u{1}').filter_map(|field| field.split_once('='));
        let message: Message = fields.map(|(tag, value)| (tag.parse().unwrap(), value.to_owned())).collect();
        let seq: u64 = message[&34].parse().unwrap();
        match message[&35].as_str() {
            "4" => self.next_in = message[&36].parse().unwrap(),
            _ if seq == self.next_in => self.next_in = seq + 1,
            _ => {}
        }
        Some(message)
    }

    /// The next message of one of these types.
    pub(super) fn hear_of(&mut self, types: &[&str]) -> Message {
        loop {
            let message = self.hear().expect("the connection lasts");
            if types.contains(&message[&35].as_str()) {
                return message;
            }
        }
    }
}

/// Logs on at one of these addresses, however long that takes.
pub(super) fn log_on_anywhere(session: &mut Session, addresses: &[String], trust: Option<&EntryTrust>) {
    let mut at = 0;
    until("a replica takes the session", || {
        at += 1;
        let answer = session.log_on(&addresses[at % addresses.len()], trust);
        answer.is_some_and(|answer| answer[&35] == "A")
    });
}

pub(super) fn is_accepted(message: &Message, name: &str) -> bool {
    (message[&11].as_str(), message[&150].as_str()) == (name, "0")
}

/// Its leader is killed while reports are on their way that the client has not read, and orders that the venue may not have.
#[test]
fn a_session_goes_on_where_another_replica_leads() {
    let mut cluster = cluster(fair());
    let (_, key) = cluster.market(1).remove(0);
    let mut session = Session::new(&key, "WALRAS");
    let mut names = Vec::new();
    // Two leaders die, one after the other; the first one is back before the second one goes.
    for round in 0..2 {
        let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
        let at_leader = fix_of(&cluster.local.replicas[leader as usize - 1]);
        log_on_anywhere(&mut session, &[at_leader], None);
        for what in ["read", "unread", "lost"] {
            let name = format!("{what}-{round}");
            session.order(&name, "29000");
            names.push(name);
            if what == "read" {
                loop {
                    let report = session.hear_of(&["8"]);
                    if is_accepted(&report, &names[names.len() - 1]) {
                        break;
                    }
                }
            }
        }
        let replica = &mut cluster.local.replicas[leader as usize - 1];
        replica.signal(Signal::KILL).unwrap();
        replica.wait().unwrap();
        session.order(&format!("after-{round}"), "29000");
        names.push(format!("after-{round}"));
        let others: Vec<String> = cluster.local.replicas.iter().filter(|other| other.id != leader).map(fix_of).collect();
        log_on_anywhere(&mut session, &others, None);
        // What is unread comes, each once and in order, and then what was asked last.
        let mut heard: Vec<(u64, String)> = Vec::new();
        while heard.last().is_none_or(|(_, name)| *name != names[names.len() - 1]) {
            let report = session.hear_of(&["8"]);
            assert_eq!(report[&150], "0", "{report:?}");
            heard.push((report[&17].parse().unwrap(), report[&11].clone()));
        }
        assert!(heard.is_sorted(), "{heard:?}");
        let heard: Vec<&str> = heard.iter().map(|(_, name)| name.as_str()).collect();
        let wanted: Vec<&String> = names[names.len() - 3..].iter().collect();
        assert_eq!(heard, wanted, "in round {round}");
        cluster.local.start(leader).unwrap();
    }
    // Each is open once: a mass cancel ends as many.
    session.send("q", "11=all|530=7|60=NOW|");
    let mut ended = Vec::new();
    while ended.len() < names.len() {
        let report = session.hear_of(&["8"]);
        assert_eq!(report[&150], "4", "{report:?}");
        ended.push(report[&11].clone());
    }
    ended.sort();
    names.sort();
    assert_eq!(ended, names);
}

/// Waits until a reader of market data sees this best bid.
pub(super) fn reads_bid(address: &str, key: &ClientKey, trust: Option<&EntryTrust>, wanted: &str) {
    let mut reader = Session::new(key, "WALRAS-MD");
    log_on_anywhere(&mut reader, &[address.to_owned()], trust);
    reader.send("V", "262=book|263=1|264=1|265=0|267=1|269=0|146=1|55=BTC/USD|");
    loop {
        let message = reader.hear_of(&["W", "Y", "5"]);
        assert_eq!(message[&35], "W", "{message:?}");
        if message.get(&270).is_some_and(|price| price == wanted) {
            return;
        }
    }
}

#[test]
fn market_data_is_there_at_replicas_that_follow() {
    let cluster = cluster(Vec::new());
    let replicas = &cluster.local.replicas;
    let (_, key) = cluster.market(1).remove(0);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let mut session = Session::new(&key, "WALRAS");
    // Without fair access the leader alone takes orders; the others say so.
    let refused = session.log_on(&fix_of(&replicas[leader as usize % 3]), None);
    if let Some(refused) = refused.filter(|answer| answer[&35] == "5") {
        assert!(refused[&58].contains("Another replica leads"), "{refused:?}");
    }
    log_on_anywhere(&mut session, &replicas.iter().map(fix_of).collect::<Vec<_>>(), None);
    session.order("bid", "29000.25");
    assert!(is_accepted(&session.hear_of(&["8"]), "bid"));
    for data in replicas.iter().map(fix_data_of) {
        reads_bid(&data, &key, None, "29000.25");
    }
}

#[test]
fn both_ports_speak_tls() {
    let mut more = fair();
    more.push(("fix", "tls", "on".into()));
    let cluster = cluster(more);
    let (_, key) = cluster.market(1).remove(0);
    let certificate = cluster.local.replicas[0].data().join("order-entry.crt");
    let trust = EntryTrust::new(&Trust::read(&certificate).unwrap()).unwrap();
    let mut session = Session::new(&key, "WALRAS");
    let replica = &cluster.local.replicas[0];
    log_on_anywhere(&mut session, &[fix_of(replica)], Some(&trust));
    session.order("sealed", "28000.25");
    assert!(is_accepted(&session.hear_of(&["8"]), "sealed"));
    reads_bid(&fix_data_of(replica), &key, Some(&trust), "28000.25");
    // Without TLS no logon is taken: its secret would be readable.
    let mut plain = Session::new(&key, "WALRAS");
    assert!(plain.log_on(&fix_of(replica), None).is_none());
}
