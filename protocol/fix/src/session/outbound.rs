//! What goes out.

use super::record::{Content, SentMessage};
use super::{End, Resending, Session, State};
use crate::encode::{Body, HeaderField, Outgoing};
use crate::message::Message;
use crate::{Fault, RejectReason, Version, tags};

/// The fields that say for whom a message is passed on, and those that say it on the way back.
const ROUTES: [(i32, i32); 6] = [
    (tags::DELIVER_TO_COMP_ID, tags::ON_BEHALF_OF_COMP_ID),
    (tags::DELIVER_TO_SUB_ID, tags::ON_BEHALF_OF_SUB_ID),
    (tags::ON_BEHALF_OF_COMP_ID, tags::DELIVER_TO_COMP_ID),
    (tags::ON_BEHALF_OF_SUB_ID, tags::DELIVER_TO_SUB_ID),
    (tags::DELIVER_TO_LOCATION_ID, tags::ON_BEHALF_OF_LOCATION_ID),
    (tags::ON_BEHALF_OF_LOCATION_ID, tags::DELIVER_TO_LOCATION_ID),
];

/// The application message that a session sends.
#[derive(Clone, Copy, Debug)]
pub struct AppMessage<'a> {
    /// MsgType(35).
    pub msg_type: &'a str,
    /// Header fields besides the usual ones, in the order of their tags, each above that of TargetCompID(56).
    pub header: &'a [HeaderField<'a>],
    /// The rest.
    pub body: &'a Body,
}

impl Session {
    /// Sends an application message; nothing happens where the session is not logged on.
    pub fn send(&mut self, now_ns: u64, message: AppMessage<'_>) {
        if self.end.is_some() || !matches!(self.state, State::Open(_)) {
            return;
        }
        let seq = self.write_next(now_ns, message.msg_type.as_bytes(), message.header, message.body.as_bytes());
        self.keep(now_ns, seq, message);
    }

    pub(super) fn keep(&mut self, now_ns: u64, seq: u64, message: AppMessage<'_>) {
        let (messages_max, bytes_max) = self.settings.sent_max;
        let content = Content {
            msg_type: message.msg_type.as_bytes().into(),
            extra: message.header.iter().map(|(tag, value)| (*tag, Box::from(*value))).collect(),
            body: message.body.as_bytes().into(),
        };
        self.open().record.keep(SentMessage { seq, time_ns: now_ns, content }, messages_max, bytes_max);
    }

    /// Rejects an application message at the session's level, where the version has no other way.
    pub fn reject(&mut self, now_ns: u64, message: &Message, text: &str) {
        if self.end.is_none() && matches!(self.state, State::Open(_)) {
            let mut body = Body::new();
            body.number(tags::REF_SEQ_NUM, message.seq().unwrap_or(0)).text(tags::TEXT, text);
            self.write_next(now_ns, b"3", &[], body.as_bytes());
        }
    }

    /// Sends the next of the messages that were asked for; whether there was one.
    pub(super) fn go_on_resending(&mut self, now_ns: u64) -> bool {
        let has_room = self.output.len() - self.written < super::RESEND_OUTPUT_MAX;
        let open = self.open();
        let Some(Resending { next, to }) = open.resending else { return false };
        if !has_room {
            return false;
        }
        let Some(kept) = open.record.kept_from(next).filter(|kept| kept.seq <= to).cloned() else {
            open.resending = None;
            self.write_gap_fill(now_ns, next, to + 1, Some(now_ns));
            return true;
        };
        if kept.seq > next {
            open.resending = Some(Resending { next: kept.seq, to });
            self.write_gap_fill(now_ns, next, kept.seq, Some(now_ns));
            return true;
        }
        let Content { msg_type, extra, body } = kept.content;
        open.resending = (next < to).then_some(Resending { next: next + 1, to });
        let extra: Vec<HeaderField<'_>> = extra.iter().map(|(tag, value)| (*tag, &**value)).collect();
        self.write(now_ns, next, Some(kept.time_ns), &msg_type, &extra, &body);
        true
    }

    pub(super) fn send_logon(&mut self, now_ns: u64, heart_bt_secs: u64, resets: bool, says_next_expected: bool) {
        let open = self.open();
        let mut body = Body::new();
        body.text(tags::ENCRYPT_METHOD, "0").number(tags::HEART_BT_INT, heart_bt_secs);
        if resets {
            body.flag(tags::RESET_SEQ_NUM_FLAG, true);
        }
        if says_next_expected {
            body.number(tags::NEXT_EXPECTED_MSG_SEQ_NUM, open.record.next_in);
        }
        match open.version {
            Version::Fix50 => {
                body.text(tags::DEFAULT_APPL_VER_ID, "7");
            }
            Version::Fix50Sp1 => {
                body.text(tags::DEFAULT_APPL_VER_ID, "8");
            }
            Version::Fix50Sp2 => {
                body.text(tags::DEFAULT_APPL_VER_ID, "9");
            }
            Version::Fix40 | Version::Fix41 | Version::Fix42 | Version::Fix43 | Version::Fix44 => {}
        }
        self.write_next(now_ns, b"A", &[], body.as_bytes());
    }

    pub(super) fn send_heartbeat(&mut self, now_ns: u64, test_req_id: Option<&[u8]>) {
        let mut body = Body::new();
        if let Some(test_req_id) = test_req_id {
            body.bytes(tags::TEST_REQ_ID, test_req_id);
        }
        self.write_next(now_ns, b"0", &[], body.as_bytes());
    }

    pub(super) fn send_test_request(&mut self, now_ns: u64) {
        let mut body = Body::new();
        body.text(tags::TEST_REQ_ID, "TEST");
        self.write_next(now_ns, b"1", &[], body.as_bytes());
        self.open().test_requests += 1;
    }

    /// Asks for messages from `from` to `to` again; `u64::MAX` stands for all.
    pub(super) fn send_resend_request(&mut self, now_ns: u64, from: u64, to: u64) {
        let to = match (to, self.open().version) {
            (u64::MAX, Version::Fix40 | Version::Fix41) => 999_999,
            (u64::MAX, _) => 0,
            (to, _) => to,
        };
        let mut body = Body::new();
        body.number(tags::BEGIN_SEQ_NO, from).number(tags::END_SEQ_NO, to);
        self.write_next(now_ns, b"2", &[], body.as_bytes());
    }

    pub(super) fn send_logout(&mut self, now_ns: u64, text: &str) {
        let mut body = Body::new();
        if !text.is_empty() {
            body.text(tags::TEXT, text);
        }
        self.write_next(now_ns, b"5", &[], body.as_bytes());
        self.open().logout_sent_ns.get_or_insert(now_ns);
    }

    /// Logs out with a reason and ends the connection at once.
    pub(super) fn break_off(&mut self, now_ns: u64, text: &str) {
        self.send_logout(now_ns, text);
        self.finish(End::RulesBroken);
    }

    /// Rejects a message, whose number counts as received if it is the next one.
    pub(super) fn send_reject(&mut self, now_ns: u64, message: &Message, fault: Fault) {
        let version = self.open().version;
        let mut body = Body::new();
        if let Some(seq) = message.get(tags::MSG_SEQ_NUM) {
            body.bytes(tags::REF_SEQ_NUM, seq);
        }
        let text = fault.reason.text();
        match fault.tag {
            Some(tag) if !version.rejects_with_fields() => body.text(tags::TEXT, &format!("{text} ({tag})")),
            _ => body.text(tags::TEXT, text),
        };
        if version.rejects_with_fields() {
            if let Some(tag) = fault.tag {
                body.text(tags::REF_TAG_ID, &tag.to_string());
            }
            body.bytes(tags::REF_MSG_TYPE, message.msg_type());
            if version > Version::Fix42 || fault.reason as u8 <= RejectReason::LAST_OF_FIX42 as u8 {
                body.number(tags::SESSION_REJECT_REASON, fault.reason as u64);
            }
        }
        if self.open().is_expected(message) && !matches!(message.msg_type(), b"A" | b"4") {
            let next_in = self.open().record.next_in + 1;
            self.advance_to(now_ns, next_in);
        }
        let header = self.dictionaries.of_session(version).header();
        let mut route: Vec<HeaderField<'_>> = Vec::new();
        for (to, from) in ROUTES {
            if let Some(value) = message.get(from).filter(|value| !value.is_empty() && header.has(to)) {
                route.push((to, value));
            }
        }
        route.sort_by_key(|(tag, _)| *tag);
        self.write_next(now_ns, b"3", &route, body.as_bytes());
    }

    /// `first_sent_ns` is of what is filled, where that was sent before.
    pub(super) fn write_gap_fill(&mut self, now_ns: u64, from: u64, new: u64, first_sent_ns: Option<u64>) {
        let mut body = Body::new();
        body.number(tags::NEW_SEQ_NO, new).flag(tags::GAP_FILL_FLAG, true);
        self.write(now_ns, from, first_sent_ns, b"4", &[], body.as_bytes());
    }

    /// Writes a message with the next number, and returns it. It is none that lasts.
    fn write_next(&mut self, now_ns: u64, msg_type: &[u8], extra: &[HeaderField<'_>], body: &[u8]) -> u64 {
        self.align_before_passing(now_ns);
        self.write_numbered(now_ns, msg_type, extra, body)
    }

    pub(super) fn write_numbered(&mut self, now_ns: u64, msg_type: &[u8], extra: &[HeaderField<'_>], body: &[u8]) -> u64 {
        let open = self.open();
        let seq = open.record.next_out;
        open.record.next_out += 1;
        self.write(now_ns, seq, None, msg_type, extra, body);
        seq
    }

    fn write(
        &mut self,
        now_ns: u64,
        seq: u64,
        first_sent_ns: Option<u64>,
        msg_type: &[u8],
        extra: &[HeaderField<'_>],
        body: &[u8],
    ) {
        let State::Open(open) = &mut self.state else { return };
        open.sent_ns = open.sent_ns.max(now_ns);
        let outgoing = Outgoing {
            version: open.version,
            msg_type,
            seq,
            sender: &open.own,
            target: &open.peer,
            time_ns: now_ns,
            first_sent_ns,
            extra,
            body,
        };
        outgoing.encode(&mut self.output);
        if self.output.len() - self.written > self.settings.output_bytes_max {
            self.finish(End::SlowReader);
        }
    }
}
