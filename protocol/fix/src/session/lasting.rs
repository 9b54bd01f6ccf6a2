//! Numbers from which another host of the session can go on.
//!
//! Some messages *last*: their host numbers them itself, without gaps, and every other host of the session has the same under the
//! same numbers (a venue's execution reports). All other messages *pass*: heartbeats, logons, rejects. A host that takes the session
//! over knows neither how many passing messages went out nor when. So the number that the other end expects next always says which
//! lasting message that end lacks. MsgSeqNum(34) by 2 M, with a modulus M, is
//!
//! - from 0 to M - 1: that of lasting message n is n by M; who expects it lacks that message;
//! - from M on: M + 2 (n by M/2) is that of a passing message before lasting message n. Who expects this number or the one after it
//!   lacks message n.
//!
//! A gap fill leads from one kind to the other, and from one passing message to the next. In a row of lasting messages there is none,
//! but for every Mth. Right behind a passing message a lasting one has the next number, and so has the passing message behind that: who
//! expects it lacks the lasting message after. So the two kinds in turn take a number each. A passing message behind another one, or in a
//! row of lasting messages, costs up to 2 M numbers: a number says which lasting message comes next, and not how many passed before it.
//!
//! Numbers below [`NUMBERS_FROM`] are those of an other end that has received nothing but a logon, if that, and logouts that refused its
//! logons before: the first gap fill leads beyond them.
//!
//! Engines differ in how they count a logout that refuses a logon: if its number is the next one, whatever its number is, or not at all.
//! In a session in use one number more would say that a lasting message was received. So there a refusal is a reject with the number 1
//! and PossDupFlag(43), which no engine counts ([`Session::refuse_lasting`]).

use super::record::{Content, SentMessage};
use super::{AppMessage, End, LogonRequest, Record, Session, State};
use crate::encode::{Body, Outgoing};
use crate::tags;
use crate::validate::Rules;

/// How numbers are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting {
    /// The modulus, an even number. Half of it is above the number of lasting messages that the other end may lack.
    pub modulus: u64,
    /// Number of the next lasting message.
    pub next: u64,
}

/// Where a session's numbers go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastingStart {
    /// It is new, and begins with 1.
    New,
    /// The other end expects this number next.
    Expected(u64),
    /// What the last connection of this host left.
    Record(Box<Record>),
    /// Nobody says what the other end has: it asks for what it lacks.
    Unknown(Box<Unknown>),
}

/// What there may be to send again to an end that has not said yet what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// A MsgSeqNum(34) above all that were sent.
    pub above: u64,
    /// The first lasting message that is for an end that has received nothing.
    pub first: u64,
    /// The last lasting message that there is.
    pub last: u64,
    /// Those that are kept, in order.
    pub messages: Vec<Unplaced>,
}

/// A lasting message without a MsgSeqNum(34).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// Its number.
    pub number: u64,
    /// When it was sent first, or could have been.
    pub time_ns: u64,
    /// MsgType(35).
    pub msg_type: &'static str,
    /// The rest.
    pub body: Body,
}

/// Numbers stay below, since many engines keep them in 31 bits.
const NUMBER_MAX: u64 = (1 << 31) - 1;

/// Numbers say from here on which lasting message comes next. An other end that expects one below has received none: so many logouts may
/// refuse its logons before the first one that is accepted.
pub const NUMBERS_FROM: u64 = 1_024;

/// The lasting message that comes next for an other end that expects this MsgSeqNum, where `last` is the last one that there is. `None`
/// for one that has received nothing, and for a number that this end never gave.
#[must_use]
pub fn next_lasting(modulus: u64, expected: u64, last: u64) -> Option<u64> {
    let (half, rest) = (modulus / 2, expected % (2 * modulus));
    let (period, residue) = if rest < modulus { (modulus, rest) } else { (half, (rest - modulus) / 2) };
    let next = (last + 1).checked_sub((last + 1 + period - residue % period) % period)?;
    ((NUMBERS_FROM..=NUMBER_MAX).contains(&expected) && next > 0).then_some(next)
}

/// The number of a logout that refuses this logon; `None` where the other end may be in a session in use, or would be taken for one after
/// another logout.
fn logout_number(logon: &LogonRequest) -> Option<u64> {
    match logon.next_expected {
        _ if logon.resets => Some(1),
        Some(expected) => (expected < NUMBERS_FROM - 1).then_some(expected.max(1)),
        None => (logon.seq == 1).then_some(1),
    }
}

/// The first number from `from` on that is congruent to `to`.
fn congruent_from(modulus: u64, from: u64, to: u64) -> u64 {
    from + (to % modulus + modulus - from % modulus) % modulus
}

impl Lasting {
    /// The first number from `from` on for a lasting message, for which no gap fill is needed right behind a passing one.
    fn number_of(self, message: u64, from: u64) -> u64 {
        if self.is_behind_passing(message, from) { from } else { congruent_from(2 * self.modulus, from, message % self.modulus) }
    }

    /// Whether a number is the second of those of a passing message before this lasting one. Who expects the number after it lacks the next
    /// lasting message, but for the last two numbers of a row.
    fn is_behind_passing(self, message: u64, number: u64) -> bool {
        let (half, place) = (self.modulus / 2, message % (self.modulus / 2));
        place + 1 < half && number % (2 * self.modulus) == self.modulus + 2 * place + 1
    }

    /// The first number from `from` on for a passing message before the next lasting one.
    fn number_of_passing(self, from: u64) -> u64 {
        congruent_from(2 * self.modulus, from, self.modulus + 2 * (self.next % (self.modulus / 2)))
    }
}

impl Session {
    /// Accepts the logon to a session whose numbers say which lasting message comes next. `next_in` is the number of the next message
    /// from the other end.
    pub fn accept_lasting(&mut self, now_ns: u64, next_in: u64, start: LastingStart, lasting: Lasting, rules: Rules) {
        let mut unknown = None;
        let (record, is_new) = match start {
            LastingStart::New => (Record::at(next_in, 1), true),
            LastingStart::Expected(expected) => (Record::at(next_in, lasting.number_of_passing(expected.max(NUMBERS_FROM))), false),
            LastingStart::Record(record) => {
                let next_out = lasting.number_of_passing(record.next_out.max(NUMBERS_FROM));
                (record.going_on(next_in, next_out), false)
            }
            LastingStart::Unknown(of) => {
                let next_out = lasting.number_of_passing(of.above.max(NUMBERS_FROM));
                unknown = Some(of);
                (Record::at(next_in, next_out), false)
            }
        };
        let Some(logon) = self.begin(now_ns, record, rules) else { return };
        self.open().unknown = unknown;
        if !is_new {
            self.open().lasting = Some(lasting);
        }
        self.on_accepted(now_ns, &logon);
        if is_new && self.end.is_none() {
            let open = self.open();
            open.lasting = Some(lasting);
            let from = open.record.next_out;
            self.fill_to(now_ns, lasting.number_of(lasting.next, from.max(NUMBERS_FROM)));
        }
    }

    /// Refuses the logon to a session of lasting messages. The text reaches the other end in a logout where that has received nothing yet,
    /// and in a reject where the session may be in use: either way the number that it expects next still says what it lacks.
    pub fn refuse_lasting(&mut self, now_ns: u64, text: &str) {
        let State::Judged(logon) = &self.state else { return };
        let logon = logon.clone();
        self.write_refusal(now_ns, &logon, logout_number(&logon), text);
        self.finish(End::Refused);
    }

    /// A logon that was accepted breaks the rules itself.
    pub(super) fn break_off_at_logon(&mut self, now_ns: u64, logon: &LogonRequest, text: &str) {
        if self.open().lasting.is_none() {
            // Its numbers are plain ones, or the session is new and its first number comes next.
            return self.break_off(now_ns, text);
        }
        self.write_refusal(now_ns, logon, logout_number(logon), text);
        self.finish(End::RulesBroken);
    }

    /// Writes why a logon is refused: as a logout with this number or, without one, as a reject that the other end does not count.
    pub(super) fn write_refusal(&mut self, now_ns: u64, logon: &LogonRequest, logout_number: Option<u64>, text: &str) {
        let mut body = Body::new();
        if logout_number.is_none() {
            body.number(tags::REF_SEQ_NUM, logon.seq);
        }
        body.text(tags::TEXT, text);
        let outgoing = Outgoing {
            version: logon.version,
            msg_type: if logout_number.is_some() { b"5" } else { b"3" },
            seq: logout_number.unwrap_or(1),
            sender: logon.target.as_bytes(),
            target: logon.comp_id.as_bytes(),
            time_ns: now_ns,
            first_sent_ns: logout_number.is_none().then_some(now_ns),
            extra: &[],
            body: body.as_bytes(),
        };
        outgoing.encode(&mut self.output);
    }

    /// Sends a lasting message with its number.
    pub fn send_lasting(&mut self, now_ns: u64, number: u64, message: AppMessage<'_>) {
        self.skip_lasting(number.saturating_sub(1));
        if self.end.is_some() {
            return;
        }
        let State::Open(open) = &self.state else { return };
        let Some(lasting) = open.lasting else { return };
        let seq = lasting.number_of(number, open.record.next_out);
        self.fill_to(now_ns, seq);
        if self.end.is_some() {
            return;
        }
        self.write_numbered(now_ns, message.msg_type.as_bytes(), message.header, message.body.as_bytes());
        self.keep(now_ns, seq, message);
        self.skip_lasting(number);
    }

    /// Goes on after this lasting message, which is not for the other end.
    pub fn skip_lasting(&mut self, number: u64) {
        if let State::Open(open) = &mut self.state
            && let Some(lasting) = &mut open.lasting
        {
            lasting.next = lasting.next.max(number + 1);
        }
    }

    /// The other end asks for messages from this number on. If that says what it lacks, that gets its numbers.
    pub(super) fn place_unknown(&mut self, from: u64) {
        let open = self.open();
        let (Some(unknown), Some(lasting)) = (open.unknown.take(), open.lasting) else { return };
        let next = next_lasting(lasting.modulus, from, unknown.last).unwrap_or(unknown.first);
        let mut seq = from.max(NUMBERS_FROM);
        let lacking = unknown.messages.into_iter().filter(|message| message.number >= next);
        let placed: Vec<SentMessage> = lacking
            .map(|Unplaced { number, time_ns, msg_type, body }| {
                let at = lasting.number_of(number, seq);
                seq = at + 1;
                let content = Content { msg_type: msg_type.as_bytes().into(), extra: Box::default(), body: body.as_bytes().into() };
                SentMessage { seq: at, time_ns, content }
            })
            .collect();
        // The logon's number is above those of all that was ever sent, so it is above these.
        open.record.keep_before(placed);
    }

    /// Before a passing message: its number says which lasting message comes next.
    pub(super) fn align_before_passing(&mut self, now_ns: u64) {
        let open = self.open();
        if let Some(lasting) = open.lasting {
            let seq = lasting.number_of_passing(open.record.next_out);
            self.fill_to(now_ns, seq);
        }
    }

    fn fill_to(&mut self, now_ns: u64, seq: u64) {
        let open = self.open();
        let from = open.record.next_out;
        if seq > NUMBER_MAX {
            open.lasting = None;
            return self.break_off(now_ns, "The numbers of this session are used up: log on with ResetSeqNumFlag(141)=Y");
        }
        if seq > from {
            open.record.next_out = seq;
            self.write_gap_fill(now_ns, from, seq, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_that_is_expected_always_says_what_is_lacking() {
        const MODULUS: u64 = 16;
        let mut random = walras_random::Random::new(7);
        for _ in 0..2_000 {
            let mut lasting = Lasting { modulus: MODULUS, next: 1 + random.below(100) };
            let mut next_out = lasting.number_of(lasting.next, NUMBERS_FROM + random.below(500));
            for _ in 0..40 {
                // What is expected after each message, gap fills among them.
                let mut expected = vec![next_out];
                if random.below(2) == 0 {
                    next_out = lasting.number_of(lasting.next, next_out);
                    expected.push(next_out);
                    lasting.next += 1;
                } else {
                    next_out = lasting.number_of_passing(next_out);
                    expected.push(next_out);
                }
                next_out += 1;
                let sent = lasting.next;
                for expected in expected.into_iter().filter(|expected| *expected < next_out) {
                    let lacks = next_lasting(MODULUS, expected, sent + random.below(MODULUS / 2 - 2));
                    assert!(lacks == Some(sent) || lacks == Some(sent - 1), "{expected} at {lasting:?}: {lacks:?}");
                }
                for later in [0, 1, MODULUS / 2 - 2] {
                    assert_eq!(next_lasting(MODULUS, next_out, sent - 1 + later), Some(sent), "{next_out} at {lasting:?}");
                }
            }
        }
        for expected in [1, 2, 9, NUMBERS_FROM - 1, NUMBER_MAX + 1, u64::MAX] {
            assert_eq!(next_lasting(MODULUS, expected, 100), None);
        }
        assert_eq!(next_lasting(MODULUS, NUMBERS_FROM + 9, 3), None, "there is no ninth");
    }

    #[test]
    fn passing_and_lasting_messages_in_turn_take_a_number_each() {
        let mut lasting = Lasting { modulus: 16, next: 1 };
        let mut next_out = lasting.number_of_passing(NUMBERS_FROM);
        for _ in 0..6 {
            assert_eq!(lasting.number_of_passing(next_out), next_out);
            assert_eq!(lasting.number_of(lasting.next, next_out + 1), next_out + 1);
            (next_out, lasting.next) = (next_out + 2, lasting.next + 1);
            assert_eq!(next_lasting(lasting.modulus, next_out, lasting.next), Some(lasting.next));
        }
        // The number after the last one of a row says too little. Two of a kind need a gap fill between them, or a whole row of numbers.
        assert!(lasting.number_of(7, next_out + 1) > next_out + 1);
        assert_eq!(lasting.number_of_passing(next_out + 1), next_out + 32);
        assert!(lasting.number_of(lasting.next, next_out) > next_out);
    }

    #[test]
    fn the_next_congruent_number_is_the_first() {
        for from in 1..40 {
            for to in 0..40 {
                let found = congruent_from(7, from, to);
                assert!(found >= from && found < from + 7 && found % 7 == to % 7);
            }
        }
    }
}
