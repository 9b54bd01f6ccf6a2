//! Reads an acceptance definition and runs it against an [`Acceptor`], in virtual time.

use std::collections::{BTreeMap, VecDeque};

use crate::matching::difference;
pub use crate::matching::{RULES, Rule};
use crate::numbers::Numbers;
use crate::{Acceptor, Numbering};

/// How long an expected message, or the end of a connection, is waited for.
const MESSAGE_WAIT_NS: u64 = 12_000_000_000;
const END_WAIT_NS: u64 = 10_000_000_000;
/// The clock at the start: 2026-01-01.
const START_NS: u64 = 1_767_225_600_000_000_000;

/// What came of a definition: by rule, what went wrong first.
pub type Outcome = [Option<String>; 3];

/// A client's end of the connections of a definition.
struct Run {
    acceptor: Acceptor,
    now_ns: u64,
    /// By the number in the definition: the connection's id.
    connections: BTreeMap<u64, u64>,
    id_last: u64,
    numbering: Numbering,
    /// By connection.
    numbers: BTreeMap<u64, Numbers>,
    /// Messages that no line has expected yet, by connection.
    heard: BTreeMap<u64, VecDeque<Vec<u8>>>,
    outcome: Outcome,
}

/// Runs a definition.
#[must_use]
pub fn run(text: &[u8]) -> Outcome {
    run_numbered(text, Numbering::Plain)
}

/// The same where the acceptor numbers its messages so. A definition sees numbers one by one in any case.
#[must_use]
pub fn run_numbered(text: &[u8], numbering: Numbering) -> Outcome {
    let mut run = Run {
        acceptor: Acceptor::new(numbering),
        now_ns: START_NS,
        connections: BTreeMap::new(),
        id_last: 0,
        numbering,
        numbers: BTreeMap::new(),
        heard: BTreeMap::new(),
        outcome: [None, None, None],
    };
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Err(what) = run.line(line) {
            for outcome in &mut run.outcome {
                outcome.get_or_insert_with(|| format!("line {}: {what}", at + 1));
            }
            break;
        }
    }
    run.outcome
}

impl Run {
    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let Some((kind, rest)) = line.split_first() else { return Ok(()) };
        let (number, rest) = connection_number(rest);
        match kind {
            b'i' if rest == b"CONNECT" => {
                self.id_last += 1;
                self.connections.insert(number, self.id_last);
                self.acceptor.on_connected(self.id_last, self.now_ns);
            }
            b'i' if rest == b"DISCONNECT" => {
                let id = self.connections.remove(&number).ok_or("this connection is not open")?;
                self.acceptor.remove(id);
            }
            b'e' if rest == b"DISCONNECT" => self.expect_end(number)?,
            b'I' => {
                let id = *self.connections.get(&number).ok_or("this connection is not open")?;
                let mut line = with_times(rest, self.now_ns);
                if self.numbering == Numbering::Lasting {
                    self.hear(id);
                    line = self.numbers.entry(id).or_default().asked(&line);
                }
                self.acceptor.on_bytes(id, self.now_ns, &completed(&line));
            }
            b'E' => self.expect(number, &completed(&with_times(rest, self.now_ns)))?,
            b'#' | b' ' | b'\t' => {}
            _ => return Err(format!("{} is no line of a definition", String::from_utf8_lossy(line))),
        }
        Ok(())
    }

    /// Lets time pass until something happens; `false` once `until_ns` is reached.
    fn wait(&mut self, until_ns: u64) -> bool {
        let next_ns = self.acceptor.deadline_ns();
        let is_soon = next_ns <= until_ns;
        self.now_ns = self.now_ns.max(next_ns.min(until_ns));
        self.acceptor.on_time(self.now_ns);
        is_soon
    }

    /// Takes what the acceptor has said on a connection.
    fn hear(&mut self, id: u64) {
        while let Some(message) = first_message(self.acceptor.output(id)).map(<[u8]>::to_vec) {
            self.acceptor.consume(id, self.now_ns, message.len());
            let heard = match self.numbering {
                Numbering::Plain => Some(message),
                Numbering::Lasting => self.numbers.entry(id).or_default().heard(&message),
            };
            self.heard.entry(id).or_default().extend(heard);
        }
    }

    fn expect(&mut self, number: u64, expected: &[u8]) -> Result<(), String> {
        let id = *self.connections.get(&number).ok_or("this connection is not open")?;
        let until_ns = self.now_ns + MESSAGE_WAIT_NS;
        let actual = loop {
            self.hear(id);
            if let Some(message) = self.heard.get_mut(&id).and_then(VecDeque::pop_front) {
                break message;
            }
            if self.acceptor.is_over(id) {
                return Err("the connection ended, a message was expected".to_owned());
            }
            if !self.wait(until_ns) {
                return Err("no message came".to_owned());
            }
        };
        for (rule, outcome) in RULES.into_iter().zip(&mut self.outcome) {
            if outcome.is_none() {
                *outcome = difference(rule, expected, &actual);
            }
        }
        // A message that differs even on the wire means that the two ends no longer speak of the same.
        self.outcome[2].clone().map_or(Ok(()), Err)
    }

    fn expect_end(&mut self, number: u64) -> Result<(), String> {
        let id = *self.connections.get(&number).ok_or("this connection is not open")?;
        let until_ns = self.now_ns + END_WAIT_NS;
        loop {
            self.hear(id);
            let heard = self.heard.get(&id).and_then(VecDeque::front).map_or(self.acceptor.output(id), Vec::as_slice);
            if !heard.is_empty() {
                return Err(format!("the end was expected, not {}", String::from_utf8_lossy(heard)));
            }
            if self.acceptor.is_over(id) {
                self.acceptor.remove(id);
                return Ok(());
            }
            if !self.wait(until_ns) {
                return Err("the connection stays open".to_owned());
            }
        }
    }
}

/// `2,CONNECT` is of connection 2; without a number it is connection 1.
fn connection_number(rest: &[u8]) -> (u64, &[u8]) {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok()) {
        Some(number) if rest.get(digits) == Some(&b',') => (number, &rest[digits + 1..]),
        _ => (1, rest),
    }
}

/// Replaces `<TIME>`, `<TIME+n>` and `<TIME-n>` by the clock, n seconds later or earlier.
fn with_times(line: &[u8], now_ns: u64) -> Vec<u8> {
    const BEGIN: &[u8] = b"<TIME";
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.windows(BEGIN.len()).position(|window| window == BEGIN) {
        let Some(len) = rest[at..].iter().position(|byte| *byte == b'>') else { break };
        let offset = String::from_utf8_lossy(&rest[at + BEGIN.len()..at + len]).parse::<i64>().unwrap_or(0);
        out.extend_from_slice(&rest[..at]);
        let time_ns = now_ns.saturating_add_signed(offset * 1_000_000_000);
        let mut body = walras_fix::Body::new();
        body.time(0, time_ns, walras_fix::Version::Fix41);
        let written = body.as_bytes();
        out.extend_from_slice(&written[b"0=".len()..written.len() - 1]);
        rest = &rest[at + len + 1..];
    }
    out.extend_from_slice(rest);
    out
}

/// Adds the length and the checksum that a line leaves out.
pub(crate) fn completed(message: &[u8]) -> Vec<u8> {
    let Some(head_len) = message.iter().position(|byte| *byte == 1).filter(|_| message.starts_with(b"8=")) else {
        return message.to_vec();
    };
    let (head, rest) = message.split_at(head_len + 1);
    let trailer = rest.windows(4).rposition(|window| window == b"\x0110=").map(|at| at + 1);
    let trailer = trailer.filter(|at| rest[*at..].iter().position(|byte| *byte == 1) == Some(rest.len() - at - 1));
    let (body, trailer) = rest.split_at(trailer.unwrap_or(rest.len()));
    let mut out = head.to_vec();
    if !message.windows(3).any(|window| window == b"\x019=") {
        out.extend_from_slice(format!("9={}\x01", body.len()).as_bytes());
    }
    out.extend_from_slice(body);
    if trailer.is_empty() {
        let sum = out.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        out.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    } else {
        out.extend_from_slice(trailer);
    }
    out
}

/// The first whole message in bytes.
fn first_message(bytes: &[u8]) -> Option<&[u8]> {
    let trailer = bytes.windows(4).position(|window| window == b"\x0110=")?;
    let end = bytes[trailer + 1..].iter().position(|byte| *byte == 1)?;
    Some(&bytes[..trailer + 1 + end + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lines: &str) -> Outcome {
        run(lines.replace('|', "\x01").as_bytes())
    }

    const LOGON: &str = "iCONNECT\nI8=FIX.4.4|35=A|34=1|49=TW|52=<TIME>|56=ISLD|98=0|108=30|\n\
        E8=FIX.4.4|9=61|35=A|34=1|49=ISLD|52=00000000-00:00:00.000|56=TW|98=0|108=30|10=0|\n";

    #[test]
    fn a_right_session_passes_by_every_rule() {
        let logout = "I8=FIX.4.4|35=5|34=2|49=TW|52=<TIME>|56=ISLD|\n\
            E8=FIX.4.4|9=49|35=5|34=2|49=ISLD|52=00000000-00:00:00.000|56=TW|10=0|\neDISCONNECT\n";
        assert_eq!(outcome(&format!("{LOGON}{logout}")), [None, None, None]);
        let leaping = run_numbered(format!("{LOGON}{logout}").replace('|', "\x01").as_bytes(), Numbering::Lasting);
        assert_eq!(leaping, [None, None, None]);
    }

    #[test]
    fn a_session_that_goes_another_way_fails() {
        for wrong in [
            "E8=FIX.4.4|35=1|34=2|49=ISLD|56=TW|112=TEST|\n",
            "eDISCONNECT\n",
            "I8=FIX.4.4|35=0|34=1|49=TW|52=<TIME>|56=ISLD|\neDISCONNECT\n",
            "i2,CONNECT\nI2,8=FIX.4.4|35=A|34=1|49=TW2|52=<TIME-200>|56=ISLD|98=0|108=30|\nE2,8=FIX.4.4|35=A|34=1|\n",
        ] {
            assert!(outcome(&format!("{LOGON}{wrong}")).iter().all(Option::is_some), "{wrong}");
        }
    }
}
