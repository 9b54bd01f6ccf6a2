//! FIX 4.4: messages as attackers and the well-behaved client write them, and a session of the latter.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, bail, ensure};
use walras_fix::{Body, Version};
use walras_gateway::ClientKey;

use crate::limits::DIALECTS_SOURCE;
use crate::wire::dial;

/// TargetCompID(56) of orders, of drop copies, and of market data.
pub(crate) const ORDERS: &str = "WALRAS";
pub(crate) const DROP_COPY: &str = "WALRAS-DROP";
pub(crate) const DATA: &str = "WALRAS-MD";

/// HeartBtInt(108) of the well-behaved client, in seconds: longer than a campaign's attack.
const HEARTBEAT_S: u64 = 600;

/// A time, given in nanoseconds since the Unix epoch, as FIX writes it.
pub(crate) fn stamp_of(time_ns: u64) -> String {
    let mut time = Body::new();
    time.time(52, time_ns, Version::Fix44);
    String::from_utf8_lossy(time.as_bytes()).trim_end_matches('\u{1}').trim_start_matches("52=").to_owned()
}

/// The time of day, as FIX writes it.
pub(crate) fn stamp() -> String {
    stamp_of(walras_access::now().0)
}

/// A message with the time of day; `|` in its body separates fields.
pub(crate) fn message(target: &str, name: &str, kind: (&str, u64), body: &str) -> Vec<u8> {
    message_at(&stamp(), (target, name), kind, body)
}

pub(crate) fn message_at(time: &str, (target, name): (&str, &str), (msg_type, seq): (&str, u64), body: &str) -> Vec<u8> {
    framed(&format!("35={msg_type}|34={seq}|49={name}|52={time}|56={target}|{body}"))
}

fn framed(fields: &str) -> Vec<u8> {
    let text = format!("8=FIX.4.4|9={}|{fields}", fields.len()).replace('|', "\u{1}");
    let sum = text.bytes().fold(0_u8, u8::wrapping_add);
    format!("{text}10={sum:03}\u{1}").into_bytes()
}

/// A signed logon with the time of day. It is good once: a second connection with it is refused.
pub(crate) fn logon(key: &ClientKey, target: &str, name: &str, heartbeat: u64) -> Vec<u8> {
    logon_at(&stamp(), key, (target, name), heartbeat)
}

/// The same with another time.
pub(crate) fn logon_at(time: &str, key: &ClientKey, (target, name): (&str, &str), heartbeat: u64) -> Vec<u8> {
    let signed = format!("walras-v1\nLOGON\n/fix\nFIX.4.4\n{name}\n{target}\n1\n{time}\n{heartbeat}\nY\n");
    let (signature, id) = (key.sign_bytes(signed.as_bytes()), key.key_id());
    let body = format!("98=0|108={heartbeat}|141=Y|95={}|96={signature}|553={id}|", signature.len());
    message_at(time, (target, name), ("A", 1), &body)
}

/// A logon with a key that no venue has.
pub(crate) fn unknown_logon() -> Vec<u8> {
    let (id, secret) = ("hm_000000000000000000000000", "A".repeat(43));
    message(ORDERS, "NOBODY", ("A", 1), &format!("98=0|108=30|553={id}|554={secret}|"))
}

/// Connects with such a logon, and waits until it is refused.
pub(crate) fn be_refused(address: &str) -> anyhow::Result<()> {
    let address: SocketAddr = address.parse().with_context(|| format!("{address} is no address"))?;
    let mut stream = dial(&address, None)?;
    stream.write_all(&unknown_logon())?;
    let heard = stream.read(&mut [0; 512]).context("no answer by FIX")?;
    ensure!(heard > 0, "the venue closed the connection");
    Ok(())
}

/// A message of the venue.
#[derive(Debug)]
pub(crate) struct Heard(String);

impl Heard {
    /// The first field of this tag.
    pub(crate) fn value(&self, tag: u32) -> Option<&str> {
        let begin = format!("{tag}=");
        self.0.split('\u{1}').find_map(|field| field.strip_prefix(begin.as_str()))
    }

    fn is_refusal(&self) -> bool {
        match self.value(35) {
            // A report that an order was rejected.
            Some("8") => self.value(150) == Some("8"),
            // Rejects of all kinds, and the end of the session.
            Some("3" | "5" | "9" | "j" | "Y") => true,
            _ => false,
        }
    }
}

/// A session of a client that behaves well.
#[derive(Debug)]
pub(crate) struct Session {
    stream: TcpStream,
    target: &'static str,
    name: &'static str,
    seq: u64,
    read: Vec<u8>,
}

impl Session {
    /// Connects, and logs on; the session's numbers begin with 1.
    pub(crate) fn log_on(address: &str, key: &ClientKey, target: &'static str, name: &'static str) -> anyhow::Result<Self> {
        let address: SocketAddr = address.parse().with_context(|| format!("{address} is no address"))?;
        let mut session = Self { stream: dial(&address, Some(DIALECTS_SOURCE))?, target, name, seq: 1, read: Vec::new() };
        session.stream.write_all(&logon(key, target, name, HEARTBEAT_S))?;
        session.hear(|heard| heard.value(35) == Some("A")).context("a logon by FIX")?;
        Ok(session)
    }

    /// Sends a message.
    pub(crate) fn say(&mut self, msg_type: &str, body: &str) -> anyhow::Result<()> {
        self.seq += 1;
        Ok(self.stream.write_all(&message(self.target, self.name, (msg_type, self.seq), body))?)
    }

    /// Waits for a message. Heartbeats, gap fills and reports of other orders are passed over.
    pub(crate) fn hear(&mut self, is_answer: impl Fn(&Heard) -> bool) -> anyhow::Result<Heard> {
        loop {
            while let Some(heard) = self.take() {
                ensure!(!heard.is_refusal(), "refused: {}", heard.0.replace('\u{1}', "|"));
                if is_answer(&heard) {
                    return Ok(heard);
                }
            }
            let mut piece = [0; 16 << 10];
            match self.stream.read(&mut piece).context("no answer by FIX")? {
                0 => bail!("the venue closed the connection"),
                len => self.read.extend_from_slice(&piece[..len]),
            }
        }
    }

    /// The next message that is there as a whole: up to its checksum, which has three digits.
    fn take(&mut self) -> Option<Heard> {
        let end = self.read.windows(4).position(|four| four == b"\x0110=")? + 8;
        let whole = (self.read.len() >= end).then(|| self.read.drain(..end).collect::<Vec<u8>>())?;
        Some(Heard(String::from_utf8_lossy(&whole).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_its_length_and_its_sum() {
        let text = String::from_utf8(message_at("20260101-00:00:00.000", ("B", "A"), ("0", 7), "112=x|")).unwrap();
        assert_eq!(text.replace('\u{1}', "|"), "8=FIX.4.4|9=51|35=0|34=7|49=A|52=20260101-00:00:00.000|56=B|112=x|10=129|");
    }

    #[test]
    fn what_is_heard_is_read_by_tag() {
        let heard = |text: &str| Heard(text.replace('|', "\u{1}"));
        let report = heard("8=FIX.4.4|9=5|35=8|11=7|150=0|58=a 11=8|");
        assert_eq!((report.value(11), report.value(150), report.value(1)), (Some("7"), Some("0"), None));
        assert!(!report.is_refusal() && heard("35=8|150=8|").is_refusal() && heard("35=j|").is_refusal());
    }
}
