//! What comes in.

use super::{End, Event, LogonRequest, Missing, Resending, Session, State};
use crate::message::Message;
use crate::validate::{Checks, Rules, check, names_both_ends};
use crate::{Fault, RejectReason, Version, tags};

/// Which numbers a message may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The next one only.
    Next,
    /// Any: it says itself where the numbers go on, or does not depend on those before it.
    Any,
}

impl Session {
    /// The first message of a connection.
    pub(super) fn on_first(&mut self, now_ns: u64, message: Message) -> Option<Event> {
        match self.logon_of(now_ns, message) {
            Some(logon) => {
                self.state = State::Judged(Box::new(logon.clone()));
                Some(Event::Logon(logon))
            }
            None => {
                self.finish(End::NoLogon);
                None
            }
        }
    }

    /// The logon that a message is, if it may be answered at all.
    fn logon_of(&self, now_ns: u64, message: Message) -> Option<LogonRequest> {
        let version = Version::of_session(message.get(tags::BEGIN_STRING)?, message.get(tags::DEFAULT_APPL_VER_ID))?;
        let target = message.text(tags::TARGET_COMP_ID)?;
        let is_for_us = target == self.settings.comp_id || self.settings.other_comp_ids.iter().any(|name| name == target);
        let session = self.dictionaries.of_session(version);
        let is_sound = check(Checks { session, body: session, rules: Rules::default() }, &message).is_ok();
        if message.msg_type() != b"A" || !is_for_us || !is_sound || !self.is_timely(now_ns, &message) {
            return None;
        }
        Some(LogonRequest {
            version,
            comp_id: message.text(tags::SENDER_COMP_ID)?.to_owned(),
            target: target.to_owned(),
            resets: message.flag(tags::RESET_SEQ_NUM_FLAG),
            seq: message.seq()?,
            next_expected: message.count(tags::NEXT_EXPECTED_MSG_SEQ_NUM),
            message,
        })
    }

    /// Follows up on a logon that the host has accepted.
    pub(super) fn on_accepted(&mut self, now_ns: u64, logon: &LogonRequest) {
        let secs = logon.message.count(tags::HEART_BT_INT).unwrap_or(0);
        let resets = logon.resets || self.settings.resets_on_logon;
        let open = self.open();
        if resets && !open.record.is_new() {
            open.record = super::Record::default();
        }
        open.heart_bt_ns = secs.saturating_mul(1_000_000_000);
        let (expected, next_out) = (open.record.next_in, open.record.next_out);
        if let Some(text) = self.heart_bt_fault(secs) {
            return self.break_off_at_logon(now_ns, logon, &text);
        }
        if logon.resets && logon.seq != 1 {
            return self.break_off_at_logon(now_ns, logon, "MsgSeqNum(34) must be 1 with ResetSeqNumFlag(141)=Y");
        }
        if logon.seq < expected {
            return self.break_off_at_logon(now_ns, logon, &too_low(expected, logon.seq));
        }
        if let Some(next_expected) = logon.next_expected.filter(|next_expected| *next_expected > next_out) {
            let text = format!("NextExpectedMsgSeqNum(789) is {next_expected}, but the next message here is {next_out}");
            return self.break_off_at_logon(now_ns, logon, &text);
        }
        let in_order = logon.seq == expected;
        if in_order {
            self.open().record.next_in = expected + 1;
        }
        self.send_logon(now_ns, secs, logon.resets, logon.next_expected.is_some());
        match logon.next_expected {
            Some(next_expected) if next_expected < next_out => self.resend_range(next_expected, next_out - 1),
            // The other end learns from our 789 what is missing here, and sends it unasked.
            Some(_) if !in_order => self.open().missing = Some(Missing { from: expected, to: u64::MAX, last: logon.seq - 1 }),
            Some(_) => {}
            None if !in_order => self.request_missing(now_ns, logon.seq),
            None => {}
        }
        if !in_order {
            self.keep_early(logon.seq, logon.message.clone());
        }
    }

    /// What is wrong with a HeartBtInt(108).
    fn heart_bt_fault(&self, secs: u64) -> Option<String> {
        let (secs_min, secs_max) = self.settings.heart_bt_secs;
        let is_right = (secs_min..=secs_max).contains(&secs);
        (!is_right).then(|| format!("HeartBtInt(108) must be {secs_min} to {secs_max} seconds"))
    }

    /// A message of a session that is logged on.
    pub(super) fn on_message(&mut self, now_ns: u64, message: Message) {
        let version = self.open().version;
        let verdict = names_both_ends(&message);
        if verdict.is_ok() && message.get(tags::BEGIN_STRING) != Some(version.begin_string().as_bytes()) {
            return self.on_wrong_begin_string(now_ns, &message);
        }
        if let Err(fault) = verdict.and_then(|()| self.check(&message)) {
            if message.seq().is_none() {
                return self.break_off(now_ns, "MsgSeqNum(34) is missing or not a number");
            }
            self.send_reject(now_ns, &message, fault);
            return;
        }
        match message.msg_type() {
            b"0" | b"3" => {
                if self.verify(now_ns, &message, Order::Next) {
                    self.advance(now_ns);
                }
            }
            b"1" => {
                if self.verify(now_ns, &message, Order::Next) {
                    self.send_heartbeat(now_ns, message.get(tags::TEST_REQ_ID));
                    self.advance(now_ns);
                }
            }
            b"2" => self.on_resend_request(now_ns, &message),
            b"4" => self.on_sequence_reset(now_ns, &message),
            b"5" => self.on_logout(now_ns, &message),
            b"A" => self.on_logon_again(now_ns, &message),
            _ => {
                if self.verify(now_ns, &message, Order::Next) {
                    self.advance(now_ns);
                    self.open().events.push_back(Event::App(message));
                }
            }
        }
    }

    fn check(&self, message: &Message) -> Result<(), Fault> {
        let State::Open(open) = &self.state else { return Ok(()) };
        self.dictionaries.check(open.version, message, open.rules)
    }

    fn is_timely(&self, now_ns: u64, message: &Message) -> bool {
        message
            .time_ns(tags::SENDING_TIME)
            .is_some_and(|time_ns| time_ns.abs_diff(now_ns) <= self.settings.sending_time_error_ns_max)
    }

    /// Whether a message may be acted on: its time, its ends, its number. Says what is wrong if not.
    fn verify(&mut self, now_ns: u64, message: &Message, order: Order) -> bool {
        if !self.is_timely(now_ns, message) {
            self.send_reject(now_ns, message, Fault::alone(RejectReason::SendingTimeAccuracy));
            self.send_logout(now_ns, "");
            return false;
        }
        let open = self.open();
        let is_ours = message.get(tags::TARGET_COMP_ID) == Some(&*open.own);
        if !is_ours || message.get(tags::SENDER_COMP_ID) != Some(&*open.peer) {
            self.send_reject(now_ns, message, Fault::alone(RejectReason::CompIdProblem));
            self.send_logout(now_ns, "");
            return false;
        }
        let (seq, expected) = (message.seq().unwrap_or(0), open.record.next_in);
        if order == Order::Next && seq > expected {
            self.on_too_high(now_ns, seq, message);
            return false;
        }
        if order == Order::Next && seq < expected {
            self.on_too_low(now_ns, seq, expected, message);
            return false;
        }
        let open = self.open();
        open.heard_ns = open.heard_ns.max(now_ns);
        open.test_requests = 0;
        true
    }

    /// Goes on to the next number.
    fn advance(&mut self, now_ns: u64) {
        let open = self.open();
        let next_in = open.record.next_in.saturating_add(1);
        self.advance_to(now_ns, next_in);
    }

    pub(super) fn advance_to(&mut self, now_ns: u64, next_in: u64) {
        let open = self.open();
        open.record.next_in = next_in;
        while let Some(entry) = open.early.first_entry() {
            if *entry.key() >= next_in {
                break;
            }
            open.early_bytes -= entry.remove().bytes().len();
        }
        let Some(missing) = open.missing else { return };
        if next_in > missing.last {
            open.missing = None;
        } else if next_in > missing.to {
            self.request_missing(now_ns, missing.last + 1);
        }
    }

    fn on_too_high(&mut self, now_ns: u64, seq: u64, message: &Message) {
        self.keep_early(seq, message.clone());
        let open = self.open();
        match &mut open.missing {
            Some(missing) if seq >= missing.from => {
                // With a request for all there is nothing to add; with one for a part the next part goes on to here.
                if missing.to != u64::MAX {
                    missing.last = missing.last.max(seq - 1);
                }
            }
            _ => self.request_missing(now_ns, seq),
        }
    }

    /// Asks for what is missing before `seq`.
    fn request_missing(&mut self, now_ns: u64, seq: u64) {
        let chunk = self.settings.resend_chunk;
        let open = self.open();
        let (from, last) = (open.record.next_in, seq - 1);
        let to = match chunk {
            Some(chunk) if last - from >= chunk => from + chunk - 1,
            Some(_) | None => u64::MAX,
        };
        open.missing = Some(Missing { from, to, last });
        self.send_resend_request(now_ns, from, to);
    }

    fn keep_early(&mut self, seq: u64, message: Message) {
        let (messages_max, bytes_max) = self.settings.early_max;
        let open = self.open();
        let bytes = message.bytes().len();
        // What finds no room is missed, and asked for, when its number comes.
        if open.early.len() < messages_max && open.early_bytes + bytes <= bytes_max {
            open.early_bytes += bytes;
            if let Some(before) = open.early.insert(seq, message) {
                open.early_bytes -= before.bytes().len();
            }
        }
    }

    /// A message that came early and whose turn it is.
    pub(super) fn take_early(&mut self, now_ns: u64) -> Option<Message> {
        loop {
            let open = self.open();
            let message = open.early.remove(&open.record.next_in)?;
            open.early_bytes -= message.bytes().len();
            // Both were acted on when they came.
            if matches!(message.msg_type(), b"A" | b"2") {
                let next_in = open.record.next_in + 1;
                self.advance_to(now_ns, next_in);
            } else {
                return Some(message);
            }
        }
    }

    fn on_too_low(&mut self, now_ns: u64, seq: u64, expected: u64, message: &Message) {
        if !message.flag(tags::POSS_DUP_FLAG) {
            return self.break_off(now_ns, &too_low(expected, seq));
        }
        if message.msg_type() == b"4" {
            return;
        }
        match message.time_ns(tags::ORIG_SENDING_TIME) {
            None => {
                self.send_reject(now_ns, message, Fault::of(RejectReason::RequiredTagMissing, tags::ORIG_SENDING_TIME));
            }
            first_ns if first_ns > message.time_ns(tags::SENDING_TIME) => {
                self.send_reject(now_ns, message, Fault::alone(RejectReason::SendingTimeAccuracy));
                self.send_logout(now_ns, "");
            }
            // It was received before.
            Some(_) => {}
        }
    }

    fn on_resend_request(&mut self, now_ns: u64, message: &Message) {
        if !self.verify(now_ns, message, Order::Any) {
            return;
        }
        let open = self.open();
        let sent = open.record.next_out - 1;
        let from = message.count(tags::BEGIN_SEQ_NO).unwrap_or(1).max(1);
        let asks_for_all = |to: u64| to == 0 || (to == 999_999 && open.version <= Version::Fix42);
        let to = message.count(tags::END_SEQ_NO).filter(|to| !asks_for_all(*to)).map_or(sent, |to| to.min(sent));
        if open.is_expected(message) {
            self.advance(now_ns);
        }
        if from > sent {
            let fault = Fault::of(RejectReason::ValueIncorrect, tags::BEGIN_SEQ_NO);
            return self.send_reject(now_ns, message, fault);
        }
        self.place_unknown(from);
        self.resend_range(from, to);
    }

    /// Sends messages again, together with those that are still to be sent again.
    fn resend_range(&mut self, from: u64, to: u64) {
        let open = self.open();
        open.resending = match open.resending {
            None => (from <= to).then_some(Resending { next: from, to }),
            Some(current) => Some(Resending { next: current.next.min(from), to: current.to.max(to) }),
        };
    }

    fn on_sequence_reset(&mut self, now_ns: u64, message: &Message) {
        let order = if message.flag(tags::GAP_FILL_FLAG) { Order::Next } else { Order::Any };
        if !self.verify(now_ns, message, order) {
            return;
        }
        let next_in = self.open().record.next_in;
        match message.count(tags::NEW_SEQ_NO) {
            Some(new) if new > next_in => self.advance_to(now_ns, new),
            Some(new) if new == next_in => {}
            _ => self.send_reject(now_ns, message, Fault::alone(RejectReason::ValueIncorrect)),
        }
    }

    fn on_logout(&mut self, now_ns: u64, message: &Message) {
        if !self.verify(now_ns, message, Order::Any) {
            return;
        }
        let open = self.open();
        if open.logout_sent_ns.is_none() {
            self.send_logout(now_ns, "");
        }
        let open = self.open();
        if open.is_expected(message) {
            open.record.next_in += 1;
        }
        self.finish(End::LoggedOut);
    }

    fn on_wrong_begin_string(&mut self, now_ns: u64, message: &Message) {
        if message.msg_type() == b"5" {
            return self.on_logout(now_ns, message);
        }
        self.send_logout(now_ns, "Incorrect BeginString");
        self.open().record.next_in += 1;
    }

    /// A logon in a session that is logged on may only begin its numbers again.
    fn on_logon_again(&mut self, now_ns: u64, message: &Message) {
        if !message.flag(tags::RESET_SEQ_NUM_FLAG) || message.seq() != Some(1) {
            return self.break_off(now_ns, "a logon in a session must have MsgSeqNum(34)=1 and ResetSeqNumFlag(141)=Y");
        }
        if self.open().lasting.is_some() {
            return self.break_off(
                now_ns,
                "Numbers begin again with a connection: log out, connect, then log on with ResetSeqNumFlag(141)=Y",
            );
        }
        if !self.verify(now_ns, message, Order::Any) {
            return;
        }
        let secs = message.count(tags::HEART_BT_INT).unwrap_or(0);
        if let Some(text) = self.heart_bt_fault(secs) {
            return self.break_off(now_ns, &text);
        }
        let open = self.open();
        open.heart_bt_ns = secs.saturating_mul(1_000_000_000);
        open.record = super::Record::at(2, 1);
        open.early.clear();
        open.early_bytes = 0;
        open.missing = None;
        open.resending = None;
        self.send_logon(now_ns, secs, true, message.count(tags::NEXT_EXPECTED_MSG_SEQ_NUM).is_some());
    }
}

fn too_low(expected: u64, received: u64) -> String {
    format!("MsgSeqNum too low, expecting {expected} but received {received}")
}
