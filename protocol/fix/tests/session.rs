//! A session's rules beyond the acceptance definitions: numbers across connections, 789, chunks of resends, bounds.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::sync::Arc;

use proptest::prelude::*;
use walras_fix::{
    AppMessage, Body, Dictionaries, End, Event, Lasting, LastingStart, Leniency, Record, Rules, Session, Settings, Unknown,
    Unplaced, Version,
};
use walras_random::Random;

const NOW_NS: u64 = 1_767_225_600_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A session, and the client's end of it.
struct Pair {
    session: Session,
    now_ns: u64,
    /// Application messages that the session handed out, by their ClOrdIDs.
    taken: Vec<String>,
}

fn settings() -> Settings {
    Settings::of("VENUE")
}

fn sealed(body: &str) -> Vec<u8> {
    let body = body.replace('|', "\x01");
    let mut bytes = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    bytes
}

impl Pair {
    fn new(settings: Settings) -> Self {
        let session = Session::new(Arc::new(settings), Dictionaries::new(), NOW_NS);
        Self { session, now_ns: NOW_NS, taken: Vec::new() }
    }

    fn logged_on(settings: Settings, record: Record, seq: u64, more: &str) -> Self {
        let mut pair = Self::new(settings);
        pair.session.on_bytes(&sealed(&format!("{}98=0|108=30|{more}", header("A", seq))));
        assert!(matches!(pair.session.poll(NOW_NS), Some(Event::Logon(_))));
        pair.session.accept(NOW_NS, record, Rules::default());
        pair.listen();
        pair
    }

    fn hear(&mut self, body: &str) {
        self.session.on_bytes(&sealed(body));
        self.listen();
    }

    fn listen(&mut self) {
        while let Some(event) = self.session.poll(self.now_ns) {
            let Event::App(message) = event else { panic!("it is logged on") };
            self.taken.push(message.text(11).unwrap().to_owned());
        }
    }

    fn order(&mut self, seq: u64, name: &str, more: &str) {
        self.hear(&format!("{}{more}11={name}|21=1|40=1|54=1|55=X|60=20260101-00:00:00|38=1|", header("D", seq)));
    }

    fn send(&mut self, name: &str) {
        let mut body = Body::new();
        body.text(11, name);
        self.session.send(self.now_ns, AppMessage { msg_type: "8", header: &[], body: &body });
    }

    /// What was said since the last call, each message without its frame and its times.
    fn said(&mut self) -> Vec<String> {
        let text = String::from_utf8(self.session.output().to_vec()).unwrap();
        let len = text.len();
        self.session.consume(len);
        let mut said = Vec::new();
        let mut fields = Vec::new();
        for field in text.split_terminator('\x01') {
            let tag = field.split('=').next().unwrap();
            match tag {
                "8" | "9" | "49" | "52" | "56" | "122" => {}
                "10" => said.push(std::mem::take(&mut fields).join("|")),
                _ => fields.push(field.to_owned()),
            }
        }
        said
    }
}

fn header(msg_type: &str, seq: u64) -> String {
    format!("35={msg_type}|34={seq}|49=CLIENT|52=20260101-00:00:00|56=VENUE|")
}

#[test]
fn numbers_and_messages_go_on_over_connections() {
    let mut first = Pair::logged_on(settings(), Record::default(), 1, "");
    first.order(2, "A", "");
    first.send("one");
    first.send("two");
    first.session.on_disconnected();
    let record = first.session.take_record().unwrap();
    assert_eq!((record.next_in, record.next_out), (3, 4));

    let mut second = Pair::logged_on(settings(), record, 3, "");
    assert_eq!(second.said(), ["35=A|34=4|98=0|108=30"]);
    second.hear(&format!("{}7=2|16=0|", header("2", 4)));
    assert_eq!(second.said(), ["35=8|34=2|43=Y|11=one", "35=8|34=3|43=Y|11=two", "35=4|34=4|43=Y|36=5|123=Y"]);
    assert_eq!(second.session.end(), None);
}

#[test]
fn a_logon_with_789_gets_what_it_misses_unasked() {
    let mut first = Pair::logged_on(settings(), Record::default(), 1, "");
    first.send("one");
    first.send("two");
    let record = first.session.take_record().unwrap();
    let mut second = Pair::logged_on(settings(), record.clone(), 2, "789=3|");
    assert_eq!(second.said(), ["35=A|34=4|98=0|108=30|789=3", "35=8|34=3|43=Y|11=two"]);

    let mut ahead = Pair::logged_on(settings(), record.clone(), 2, "789=9|");
    assert!(ahead.said()[0].starts_with("35=5|34=4|58=NextExpectedMsgSeqNum(789) is 9"));
    assert_eq!(ahead.session.end(), Some(End::RulesBroken));

    // The client sends what we miss by our 789, so nothing is asked for; until it comes, what is later waits.
    let mut behind = Pair::logged_on(settings(), record, 5, "789=4|");
    assert_eq!(behind.said(), ["35=A|34=4|98=0|108=30|789=2"]);
    behind.order(6, "C", "");
    behind.hear(&format!("{}43=Y|122=20260101-00:00:00|36=4|123=Y|", header("4", 2)));
    behind.order(4, "B", "43=Y|122=20260101-00:00:00|");
    assert_eq!(behind.taken, ["B", "C"]);
    assert_eq!(behind.said(), Vec::<String>::new());
}

#[test]
fn resends_are_asked_for_in_chunks() {
    let settings = Settings { resend_chunk: Some(2), ..settings() };
    let mut pair = Pair::logged_on(settings, Record::default(), 1, "");
    pair.said();
    pair.order(7, "G", "");
    assert_eq!(pair.said(), ["35=2|34=2|7=2|16=3"]);
    pair.order(2, "B", "43=Y|122=20260101-00:00:00|");
    assert_eq!(pair.said(), Vec::<String>::new());
    pair.order(3, "C", "43=Y|122=20260101-00:00:00|");
    assert_eq!(pair.said(), ["35=2|34=3|7=4|16=5"]);
    pair.order(8, "H", "");
    pair.hear(&format!("{}43=Y|122=20260101-00:00:00|36=6|123=Y|", header("4", 4)));
    assert_eq!(pair.said(), ["35=2|34=4|7=6|16=0"]);
    pair.order(6, "F", "43=Y|122=20260101-00:00:00|");
    assert_eq!(pair.taken, ["B", "C", "F", "G", "H"]);
    assert_eq!(pair.said(), Vec::<String>::new());
}

#[test]
fn what_is_kept_of_sent_messages_is_bounded_and_the_rest_becomes_a_gap() {
    let settings = Settings { sent_max: (2, 1 << 20), ..settings() };
    let mut pair = Pair::logged_on(settings, Record::default(), 1, "");
    ["one", "two", "three"].into_iter().for_each(|name| pair.send(name));
    pair.said();
    pair.hear(&format!("{}7=1|16=3|", header("2", 2)));
    assert_eq!(pair.said(), ["35=4|34=1|43=Y|36=3|123=Y", "35=8|34=3|43=Y|11=two"]);
}

#[test]
fn a_long_resend_goes_out_as_it_is_read() {
    let settings = Settings { output_bytes_max: 400 << 10, ..settings() };
    let mut pair = Pair::logged_on(settings, Record::default(), 1, "");
    let long = "x".repeat(500);
    for _ in 0..1_000 {
        pair.send(&long);
        pair.said();
    }
    pair.hear(&format!("{}7=1|16=0|", header("2", 2)));
    let mut resent = 0;
    loop {
        assert!(pair.session.output().len() < 300 << 10);
        let said = pair.said();
        if said.is_empty() {
            break;
        }
        resent += said.iter().filter(|message| message.starts_with("35=8")).count();
        pair.session.go_on(NOW_NS);
    }
    assert_eq!((resent, pair.session.end()), (1_000, None));
    (0..1_000).for_each(|_| pair.send(&long));
    assert_eq!(pair.session.end(), Some(End::SlowReader));
}

#[test]
fn early_messages_are_bounded_and_asked_for_again() {
    let settings = Settings { early_max: (2, 1 << 20), ..settings() };
    let mut pair = Pair::logged_on(settings, Record::default(), 1, "");
    for (seq, name) in [(3, "C"), (4, "D"), (5, "E")] {
        pair.order(seq, name, "");
    }
    assert_eq!(pair.said()[1..], ["35=2|34=2|7=2|16=0"]);
    pair.order(2, "B", "43=Y|122=20260101-00:00:00|");
    assert_eq!(pair.taken, ["B", "C", "D"]);
    pair.order(6, "F", "");
    assert_eq!(pair.said(), ["35=2|34=3|7=5|16=0"]);
    pair.order(5, "E", "43=Y|122=20260101-00:00:00|");
    assert_eq!(pair.taken, ["B", "C", "D", "E", "F"]);
}

#[test]
fn a_logon_is_refused_with_a_reason_where_it_may_be_answered() {
    let mut refused = Pair::new(settings());
    refused.session.on_bytes(&sealed(&format!("{}98=0|108=30|", header("A", 1))));
    let Some(Event::Logon(logon)) = refused.session.poll(NOW_NS) else { panic!("it is a logon") };
    assert_eq!((logon.version, logon.comp_id.as_str(), logon.seq, logon.resets), (Version::Fix44, "CLIENT", 1, false));
    refused.session.refuse(NOW_NS, Some("no such key"));
    assert_eq!((refused.said(), refused.session.end()), (vec!["35=5|34=1|58=no such key".to_owned()], Some(End::Refused)));

    for (seq, more, text) in [
        (1, "108=0|", "HeartBtInt(108) must be 1 to 600 seconds"),
        (2, "108=30|141=Y|", "MsgSeqNum(34) must be 1 with ResetSeqNumFlag(141)=Y"),
        (3, "108=30|", "MsgSeqNum too low, expecting 4 but received 3"),
    ] {
        let mut pair = Pair::new(settings());
        pair.session.on_bytes(&sealed(&format!("{}98=0|{more}", header("A", seq))));
        assert!(matches!(pair.session.poll(NOW_NS), Some(Event::Logon(_))));
        pair.session.accept(NOW_NS, Record::at(4, 9), Rules::default());
        let said = pair.said();
        assert!(said.len() == 1 && said[0].starts_with("35=5|") && said[0].ends_with(text), "{said:?}");
        assert_eq!(pair.session.end(), Some(End::RulesBroken));
    }
}

/// A connection whose logon the host has been asked about.
fn judged(seq: u64, more: &str) -> Pair {
    let mut pair = Pair::new(settings());
    pair.session.on_bytes(&sealed(&format!("{}98=0|108=30|{more}", header("A", seq))));
    assert!(matches!(pair.session.poll(NOW_NS), Some(Event::Logon(_))));
    pair
}

/// Engines count a logout that answers their logon, some of them whatever its number is. So it comes only while nothing was received.
#[test]
fn a_refused_logon_takes_no_number_of_a_session_in_use() {
    let rejected = "35=3|34=1|43=Y|45=7|58=no";
    for (seq, more, said) in [
        (1, "", "35=5|34=1|58=no"),
        (1, "789=1|", "35=5|34=1|58=no"),
        (1, "141=Y|789=40000|", "35=5|34=1|58=no"),
        (7, "789=4|", "35=5|34=4|58=no"),
        (7, "789=1022|", "35=5|34=1022|58=no"),
        // After another logout it would no longer be a number of the beginning.
        (7, "789=1023|", rejected),
        (7, "789=40000|", rejected),
        (7, "", rejected),
    ] {
        let mut pair = judged(seq, more);
        pair.session.refuse_lasting(NOW_NS, "no");
        assert_eq!((pair.said(), pair.session.end()), (vec![said.to_owned()], Some(End::Refused)), "{seq} {more}");
    }
    // The same holds where the logon itself breaks a rule.
    let mut early = judged(7, "789=40000|");
    let lasting = Lasting { modulus: 1 << 14, next: 5 };
    early.session.accept_lasting(NOW_NS, 9, LastingStart::Expected(40_000), lasting, Rules::default());
    assert_eq!(early.said(), ["35=3|34=1|43=Y|45=7|58=MsgSeqNum too low, expecting 9 but received 7"]);
    assert_eq!(early.session.end(), Some(End::RulesBroken));
}

/// Three logons were refused, and the client has counted the logouts.
#[test]
fn a_session_begins_after_refused_logons() {
    let lasting = Lasting { modulus: 1 << 14, next: 5 };
    let mut says = judged(7, "789=4|");
    says.session.accept_lasting(NOW_NS, 1, LastingStart::Expected(4), lasting, Rules::default());
    says.listen();
    assert_eq!(says.said(), ["35=A|34=16394|98=0|108=30|789=1", "35=4|34=4|43=Y|36=16394|123=Y"]);
    let mut body = Body::new();
    body.text(11, "five");
    says.session.send_lasting(NOW_NS, 5, AppMessage { msg_type: "8", header: &[], body: &body });
    // Right behind the logon, whose two numbers say that report 5 comes next.
    assert_eq!(says.said(), ["35=8|34=16395|11=five"]);

    // Without 789 it asks. There are reports of other sessions, but number 4 stands for none of them.
    let mut asks = judged(7, "");
    let message = |number| Unplaced { number, time_ns: NOW_NS, msg_type: "8", body: body.clone() };
    let unknown = Unknown { above: 100_000, first: 5, last: 6, messages: (1..=6).map(message).collect() };
    let lasting = Lasting { modulus: 1 << 14, next: 7 };
    asks.session.accept_lasting(NOW_NS, 1, LastingStart::Unknown(Box::new(unknown)), lasting, Rules::default());
    asks.said();
    asks.hear(&format!("{}7=4|16=0|", header("2", 8)));
    let reports: Vec<String> = asks.said().into_iter().filter(|said| said.starts_with("35=8")).collect();
    assert_eq!(reports, ["35=8|34=32773|43=Y|11=five", "35=8|34=32774|43=Y|11=five"]);
}

#[test]
fn nobody_stays_without_a_logon_or_with_a_long_message() {
    let mut silent = Pair::new(settings());
    assert_eq!(silent.session.deadline_ns(), NOW_NS + 10 * SECOND_NS);
    silent.session.on_time(NOW_NS + 10 * SECOND_NS);
    assert_eq!(silent.session.end(), Some(End::NoLogon));

    let mut long = Pair::logged_on(settings(), Record::default(), 1, "");
    long.session.on_bytes(b"8=FIX.4.4\x019=100000\x01");
    long.listen();
    assert_eq!(long.session.end(), Some(End::TooLong));
}

#[test]
fn heartbeats_a_test_request_and_then_the_end() {
    let mut pair = Pair::logged_on(settings(), Record::default(), 1, "");
    pair.said();
    let mut said = Vec::new();
    while pair.session.end().is_none() {
        pair.now_ns = pair.session.deadline_ns();
        pair.session.on_time(pair.now_ns);
        said.extend(pair.said().into_iter().map(|message| ((pair.now_ns - NOW_NS) / SECOND_NS, message)));
    }
    assert_eq!(said, [(30, "35=0|34=2".to_owned()), (36, "35=1|34=3|112=TEST".to_owned())]);
    assert_eq!(((pair.now_ns - NOW_NS) / SECOND_NS, pair.session.end()), (72, Some(End::Silent)));
}

#[test]
fn a_logon_that_begins_the_numbers_again_may_set_another_heartbeat() {
    let mut pair = Pair::logged_on(settings(), Record::default(), 1, "");
    pair.said();
    pair.hear(&format!("{}98=0|108=5|141=Y|", header("A", 1)));
    assert_eq!(pair.said(), ["35=A|34=1|98=0|108=5|141=Y"]);
    pair.session.on_time(NOW_NS + 5 * SECOND_NS);
    assert_eq!(pair.said(), ["35=0|34=2"]);
    pair.hear(&format!("{}98=0|108=0|141=Y|", header("A", 1)));
    assert_eq!(pair.session.end(), Some(End::RulesBroken));
}

#[test]
fn rules_may_be_eased() {
    for (user_tags, empty_values, body, is_taken) in [
        (Leniency::Rejected, Leniency::Allowed, "6000=x|", false),
        (Leniency::Allowed, Leniency::Rejected, "6000=x|", true),
        (Leniency::Allowed, Leniency::Rejected, "58=|", false),
        (Leniency::Rejected, Leniency::Allowed, "58=|", true),
        (Leniency::Allowed, Leniency::Allowed, "4999=x|", false),
    ] {
        let mut pair = Pair::new(settings());
        pair.session.on_bytes(&sealed(&format!("{}98=0|108=30|", header("A", 1))));
        assert!(matches!(pair.session.poll(NOW_NS), Some(Event::Logon(_))));
        pair.session.accept(NOW_NS, Record::default(), Rules { user_tags, empty_values });
        pair.hear(&format!("{}11=A|21=1|40=1|54=1|55=X|60=20260101-00:00:00|38=1|{body}", header("D", 2)));
        assert_eq!(pair.taken.len(), usize::from(is_taken), "{body}");
    }
}

#[test]
fn repeating_groups_are_checked_to_the_last_entry() {
    for (group, fault) in [
        ("453=2|448=A|447=D|452=1|448=B|447=D|452=1|", None),
        ("453=1|448=A|447=D|452=1|802=2|523=x|803=1|523=y|803=2|", None),
        ("453=2|448=A|447=D|452=1|", Some("371=453|372=D|373=16")),
        ("453=1|447=D|448=A|452=1|", Some("371=453|372=D|373=16")),
        ("453=1|448=A|447=D|452=x|", Some("371=452|372=D|373=6")),
        ("453=1|448=A|447=D|452=1|802=1|523=x|803=|", Some("371=803|372=D|373=4")),
        ("448=A|", Some("371=448|372=D|373=2")),
    ] {
        let mut pair = Pair::logged_on(settings(), Record::default(), 1, "");
        pair.said();
        pair.hear(&format!("{}11=A|21=1|40=1|54=1|55=X|60=20260101-00:00:00|38=1|{group}", header("D", 2)));
        let said = pair.said();
        match fault {
            None => assert_eq!((said, pair.taken.len()), (vec![], 1), "{group}"),
            Some(fault) => assert!(said.len() == 1 && said[0].contains(fault), "{group}: {said:?}"),
        }
    }
}

proptest! {
    /// Whatever order messages come in, each is handed out once and in order, as long as the client sends again what is asked for.
    #[test]
    fn messages_are_handed_out_once_and_in_order(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let mut pair = Pair::logged_on(Settings { resend_chunk: Some(3), ..settings() }, Record::default(), 1, "");
        let last = 2 + random.below(30);
        let mut next = 2;
        while next <= last {
            // Some messages are lost, as by a gateway that died.
            if random.below(3) > 0 {
                pair.order(next, &next.to_string(), "");
            }
            next += 1;
            for message in pair.said() {
                let asked = |tag: &str| message.split('|').find_map(|field| field.strip_prefix(tag)?.parse::<u64>().ok());
                if let (true, Some(from), Some(to)) = (message.starts_with("35=2"), asked("7="), asked("16=")) {
                    let to = if to == 0 { next - 1 } else { to };
                    (from..=to).for_each(|seq| pair.order(seq, &seq.to_string(), "43=Y|122=20260101-00:00:00|"));
                }
            }
        }
        let expected: Vec<String> = (2..2 + pair.taken.len() as u64).map(|seq| seq.to_string()).collect();
        prop_assert_eq!(&pair.taken, &expected);
        prop_assert_eq!(pair.session.end(), None);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(prop_oneof![Just(1_u8), Just(b'='), b'0'..=b'9', any::<u8>()], 0..400)) {
        let mut pair = Pair::logged_on(settings(), Record::default(), 1, "");
        pair.session.on_bytes(&bytes);
        let body = String::from_utf8_lossy(&bytes).into_owned();
        pair.session.on_bytes(&sealed(&format!("{}{body}", header("D", 2))));
        while let Some(Event::App(_)) = pair.session.poll(NOW_NS) {}
    }
}
