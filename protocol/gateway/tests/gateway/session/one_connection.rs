//! The course of one connection, case by case.

use std::collections::BTreeMap;

use walras_gateway::Gateway;
use walras_gateway::session::{
    ClientError, ClientEvent, ClientSettings, Ended, FrameOutcome, Greeting, ServerSettings, SessionClient, SessionServer,
    SessionStart, SubmitError, Wish, signed_logon,
};
use walras_types::{
    AccountId, Amendment, Amount, AssetId, BatchMarketId, BatchOperation, BatchTransaction, ClientOrderId, ClientTransferId,
    ContentDigest, Display, InstrumentId, LogIndex, OrderType, Ordinal, Payment, PriceTicks, RejectReason, SessionId, SessionSeq,
    ShardId, Side, SizeLots, TimeInForce, TimeNs, TransactionSeq,
};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction, encode_signed_transaction};
use walras_wire::order_entry::{
    Answer, ByeReason, ClientMessage, Copies, LoggedOn, Logon, LogonTerms, OnDisconnect, Refused, Report, ReportsWanted, Role,
    SIGNED_TRANSACTION_BYTES_MAX, Sealing, SignedTransactions, TRANSACTIONS_PER_FRAME_MAX, TransactionResults, VenueMessage,
    decode_venue, encode_client, encode_venue, push_result, push_signed_bytes, split_frame,
};
use walras_wire::{
    AccountCommand, AccountEvent, AmendOrder, CancelOrder, Command, Event, MassCancel, OrderCommand, ShardCommand, TransferOut,
    VenueCommand, content_digest, encode_command, encode_event,
};

use super::setup::{Asked, Notes, SECOND, START, entropy, gate, greeting, key, order, source};

const TERMS: LogonTerms = LogonTerms {
    on_disconnect: OnDisconnect::Cancel,
    role: Role::Account,
    token: 7,
    reports: ReportsWanted::New,
    copies: Copies::One,
    logon_seq: START,
};

/// As behind TLS: what a client says here is written by hand. `sealed.rs` has the seals.
const PLAIN: ServerSettings = ServerSettings {
    window: 1_024,
    idle_timeout_ns: 15_000_000_000,
    logon_timeout_ns: 10_000_000_000,
    output_bytes_max: 4 << 20,
    sealing: Sealing::Off,
    resends: ServerSettings::RESENDS,
};
const SESSION: SessionId = SessionId(40);

struct Line {
    gateway: Gateway,
    server: SessionServer,
    asked: Vec<Asked>,
    throttled: bool,
    /// Digest of the first command submitted under each number.
    contents: BTreeMap<u64, ContentDigest>,
    now_ns: u64,
}

impl Line {
    fn new(settings: ServerSettings) -> Self {
        let (gateway, server) = (gate(1), SessionServer::new(settings, greeting(1), START));
        let mut line = Self { gateway, server, asked: Vec::new(), throttled: false, contents: BTreeMap::new(), now_ns: START };
        assert_eq!(line.hear(), ["Welcome"]);
        line
    }

    fn open(settings: ServerSettings, next: u64) -> Self {
        Self::open_with(settings, next, &TERMS)
    }

    fn open_with(settings: ServerSettings, next: u64, terms: &LogonTerms) -> Self {
        let mut line = Self::new(settings);
        line.send(&logon_bytes(terms));
        line.authenticate();
        assert!(matches!(line.asked.pop(), Some(Asked::Open(Some(AccountId(0)), 7, ReportsWanted::New))));
        let start = SessionStart { session: SESSION, next: SessionSeq(next), report_seq: 3, reports_from: 4 };
        line.server.opened(START, start);
        assert_eq!(line.hear(), ["LoggedOn"]);
        line
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut host = Notes { gateway: &mut self.gateway, throttled: self.throttled, asked: Vec::new() };
        self.server.on_bytes(self.now_ns, bytes, &mut host);
        for asked in &host.asked {
            if let Asked::Submit(ordinal, command) = asked {
                let content = content_digest(command, &mut Vec::new());
                self.contents.entry(ordinal.session_seq.0).or_insert(content);
            }
        }
        self.asked.append(&mut host.asked);
    }

    fn authenticate(&mut self) {
        let Some(Asked::Authenticate(logon)) = self.asked.pop() else { panic!("nothing to authenticate") };
        let verdict = logon.authorize(&mut self.gateway, self.now_ns, source());
        let mut host = Notes { gateway: &mut self.gateway, throttled: false, asked: Vec::new() };
        self.server.authenticated(verdict, &mut host);
        self.asked.append(&mut host.asked);
    }

    fn submit(&mut self, session_seq: u64) {
        self.send(&submit_bytes(session_seq, &order(AccountId(0), session_seq)));
    }

    fn answer(&mut self, session_seq: u64) {
        let ordinal = Ordinal { session: SESSION, session_seq: SessionSeq(session_seq) };
        let content = self.contents.get(&session_seq).copied().unwrap_or(ContentDigest(0));
        let answer = walras_types::Answer { log_index: LogIndex(100 + session_seq), rejected: None, content };
        self.server.answer(ordinal, answer, Some(TimeNs(START)));
    }

    /// The messages sent to the client, abbreviated.
    fn hear(&mut self) -> Vec<String> {
        let bytes = self.server.output().to_vec();
        self.server.consume(bytes.len());
        let (mut rest, mut heard) = (&bytes[..], Vec::new());
        while let Some((frame, after)) = split_frame(rest).unwrap() {
            rest = after;
            heard.push(match decode_venue(frame).unwrap() {
                VenueMessage::Welcome(_) => "Welcome".to_owned(),
                VenueMessage::LoggedOn(_) => "LoggedOn".to_owned(),
                VenueMessage::Answer(m) => format!("Answer {}", m.session_seq),
                VenueMessage::Report(m) => format!("Report {}", m.report_seq),
                VenueMessage::NotLeader { leader } => format!("NotLeader {leader}"),
                VenueMessage::Refused(m) => format!("Refused {} {:?}", m.session_seq, m.reason),
                VenueMessage::Late(m) => format!("Late {} {}", m.session_seq, m.late_ns),
                VenueMessage::Pong(number) => format!("Pong {number}"),
                VenueMessage::Transactions(m) => format!("Transactions {} {:?}", m.number, m.iter().collect::<Vec<_>>()),
                VenueMessage::Bye { reason, .. } => format!("Bye {reason:?}"),
            });
        }
        heard
    }

    fn submitted(&mut self) -> Vec<u64> {
        let seq = |asked: Asked| match asked {
            Asked::Submit(ordinal, _) => ordinal.session_seq.0,
            other => panic!("{other:?} is no command"),
        };
        self.asked.drain(..).map(seq).collect()
    }

    fn cancels(&mut self) -> Option<AccountId> {
        let ended: Ended = self.server.take_ended().expect("the connection is over");
        assert_eq!(self.server.take_ended(), None);
        ended.cancel
    }
}

fn logon_bytes(terms: &LogonTerms) -> Vec<u8> {
    logon_to(&greeting(1), terms)
}

fn logon_to(greeting: &Greeting, terms: &LogonTerms) -> Vec<u8> {
    let (welcome, client_key, mut bytes) = (greeting.welcome(Sealing::Off), [5; 32], Vec::new());
    let signature = key(0).sign_bytes(&signed_logon(&welcome.challenge, &welcome.venue_key, &client_key, terms));
    let key_id = key(0).key_id();
    let logon = Logon { terms: *terms, client_key, key_id: key_id.as_str(), signature: &signature };
    encode_client(&ClientMessage::Logon(logon), &mut bytes);
    bytes
}

fn submit_bytes(session_seq: u64, command: &Command) -> Vec<u8> {
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    encode_command(command, &mut body);
    encode_client(&ClientMessage::Submit { session_seq: SessionSeq(session_seq), command: &body }, &mut bytes);
    bytes
}

fn client_bytes(message: &ClientMessage<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_client(message, &mut bytes);
    bytes
}

fn event_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_event(&Event::Account(AccountEvent::Created(AccountId(0))), &mut bytes);
    bytes
}

fn report(report_seq: u64, event: &[u8]) -> Report<'_> {
    Report { report_seq, log_index: LogIndex(report_seq), time: TimeNs(START), event }
}

#[test]
fn a_connection_begins_with_a_logon_that_its_key_has_signed() {
    let mut line = Line::new(PLAIN);
    line.submit(1);
    assert_eq!(line.hear(), ["Bye LogonExpected"]);
    // Before the logon is answered, the client may send nothing else.
    let mut line = Line::new(PLAIN);
    line.send(&logon_bytes(&TERMS));
    line.submit(1);
    assert_eq!(line.hear(), ["Bye LogonExpected"]);
    // The signature covers each part of the terms.
    for changed in [
        LogonTerms { token: 8, ..TERMS },
        LogonTerms { on_disconnect: OnDisconnect::Keep, ..TERMS },
        LogonTerms { reports: ReportsWanted::After(0), ..TERMS },
    ] {
        let mut line = Line::new(PLAIN);
        let (signed, mut other) = (logon_bytes(&TERMS), logon_bytes(&changed));
        let signature = signed.len() - 43;
        let other_signature = other.len() - 43;
        other[other_signature..].copy_from_slice(&signed[signature..]);
        line.send(&other);
        line.authenticate();
        assert_eq!(line.hear(), ["Bye Rejected(SignatureInvalid)"], "{changed:?}");
    }
    // A logon is good for one connection only.
    let mut line = Line::open(PLAIN, 1);
    line.server = SessionServer::new(PLAIN, greeting(2), START);
    line.send(&logon_bytes(&TERMS));
    line.authenticate();
    assert_eq!(line.hear(), ["Welcome", "Bye Rejected(SignatureInvalid)"]);
    // An account's key cannot open an operator's session.
    let mut line = Line::new(PLAIN);
    line.send(&logon_bytes(&LogonTerms { role: Role::Operator, ..TERMS }));
    line.authenticate();
    assert_eq!(line.hear(), ["Bye Rejected(Forbidden)"]);
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let mut line = Line::open(PLAIN, 1);
    let bytes: Vec<u8> = (1..=20).flat_map(|seq| submit_bytes(seq, &order(AccountId(0), seq))).collect();
    bytes.iter().for_each(|&byte| line.send(&[byte]));
    assert_eq!(line.submitted(), (1..=20).collect::<Vec<_>>());
}

#[test]
fn numbers_go_without_gaps_from_where_the_log_or_the_client_is() {
    let mut line = Line::open(PLAIN, 5);
    line.submit(6);
    assert_eq!(line.hear(), ["Bye SessionSeqGap"]);
    let mut line = Line::open(PLAIN, 5);
    [3, 4, 5, 6, 4, 5].into_iter().for_each(|seq| line.submit(seq));
    assert_eq!(line.submitted(), [3, 4, 5, 6], "commands in flight are not submitted twice");
    line.submit(8);
    assert_eq!(line.hear(), ["Bye SessionSeqGap"]);
}

#[test]
fn a_client_is_notified_of_late_orders() {
    let mut line = Line::open(PLAIN, 1);
    line.submit(1);
    for (session, session_seq) in [(SESSION, 1), (SESSION, 2), (SessionId(SESSION.0 + 1), 1)] {
        line.server.late(Ordinal { session, session_seq: SessionSeq(session_seq) }, 500);
    }
    line.answer(1);
    assert_eq!(line.hear(), ["Late 1 500", "Answer 1"]);
}

#[test]
fn one_of_several_connections_may_be_lost_without_the_orders() {
    let several = LogonTerms { copies: Copies::Several, ..TERMS };
    let mut line = Line::new(PLAIN);
    line.send(&logon_bytes(&several));
    assert_eq!(line.hear(), ["Bye Rejected(Malformed)"], "it would cancel them");
    Line::open_with(PLAIN, 1, &LogonTerms { on_disconnect: OnDisconnect::Keep, ..several });
}

#[test]
fn answers_go_out_in_order_and_once() {
    let mut line = Line::open(PLAIN, 3);
    (1..=4).for_each(|seq| line.submit(seq));
    [3, 2, 2, 9].into_iter().for_each(|seq| line.answer(seq));
    assert!(line.hear().is_empty());
    line.answer(1);
    assert_eq!(line.hear(), ["Answer 1", "Answer 2", "Answer 3"]);
    [1, 2, 3, 4, 4].into_iter().for_each(|seq| line.answer(seq));
    assert_eq!(line.hear(), ["Answer 4"]);
    let other = Ordinal { session: SessionId(1), session_seq: SessionSeq(5) };
    line.submit(5);
    let answer = walras_types::Answer { log_index: LogIndex(1), rejected: None, content: ContentDigest(0) };
    line.server.answer(other, answer, None);
    assert!(line.hear().is_empty(), "an answer of another session");
}

/// A different command under a used number ends the connection, whether the first one is in flight, answered, or came over another
/// connection of the session. The same command again does not.
#[test]
fn another_command_under_a_number_that_was_used_is_refused() {
    let other = |seq: u64| submit_bytes(seq, &order(AccountId(0), 1_000 + seq));
    let refused = ["Bye Rejected(SessionSeqReused)"];
    let invalid = |seq, price: i64| {
        let mut bytes = command_bytes(&order(AccountId(0), seq));
        bytes.splice(27..35, price.to_le_bytes());
        let mut frame = Vec::new();
        encode_client(&ClientMessage::Submit { session_seq: SessionSeq(seq), command: &bytes }, &mut frame);
        frame
    };
    let opened = || {
        let mut line = Line::open(PLAIN, 1);
        (1..=4).for_each(|seq| line.submit(seq));
        line.send(&invalid(5, 0));
        (1..=2).for_each(|seq| line.answer(seq));
        (1..=4).for_each(|seq| line.submit(seq));
        line.send(&invalid(5, 0));
        assert_eq!((line.hear(), line.submitted()), (vec!["Answer 1".to_owned(), "Answer 2".to_owned()], vec![1, 2, 3, 4, 5]));
        line
    };
    for seq in 1..=5 {
        let mut line = opened();
        line.send(&other(seq));
        assert_eq!((line.hear(), line.submitted()), (refused.map(str::to_owned).to_vec(), vec![]));
        assert_eq!(line.cancels(), Some(AccountId(0)));
    }
    let mut line = opened();
    line.send(&invalid(5, -1));
    assert_eq!(line.hear(), refused, "two prices out of range are two commands");
    // A refused command was never logged, so its number may be used for another command.
    let mut line = opened();
    line.server.refused(Ordinal { session: SESSION, session_seq: SessionSeq(4) }, RejectReason::Overloaded, None);
    line.send(&other(4));
    assert_eq!((line.hear(), line.submitted()), (vec!["Refused 4 Overloaded".to_owned()], vec![4]));
    // The log holds a different command under the number, from the session's previous connection or from another gateway.
    let mut line = opened();
    line.contents.insert(3, ContentDigest(7));
    line.answer(3);
    assert_eq!(line.hear(), refused);
    // The digests of commands more than a window ago are not retained.
    let mut line = Line::open(PLAIN, 1);
    for seq in 1..=1_025 {
        line.submit(seq);
        line.answer(seq);
    }
    line.hear();
    line.send(&other(1));
    assert_eq!(line.hear(), [] as [&str; 0]);
    line.send(&other(2));
    assert_eq!(line.hear(), refused);
}

#[test]
fn more_than_the_window_is_too_many() {
    let mut line = Line::open(ServerSettings { window: 3, ..PLAIN }, 1);
    (1..=3).for_each(|seq| line.submit(seq));
    line.answer(1);
    line.submit(4);
    assert_eq!((line.submitted(), line.hear()), (vec![1, 2, 3, 4], vec!["Answer 1".to_owned()]));
    line.submit(5);
    assert_eq!(line.hear(), ["Bye WindowExceeded"]);
}

#[test]
fn a_throttled_session_takes_its_orders_out() {
    let mut line = Line::open(PLAIN, 1);
    line.submit(1);
    line.throttled = true;
    line.submit(2);
    assert_eq!((line.submitted(), line.hear()), (vec![1], vec!["Refused 2 Throttled".to_owned()]));
    // The number was not used: the client may use it for a cancel.
    let (account, instrument) = (AccountId(0), InstrumentId(0));
    let one = CancelOrder { account, instrument, client_order_id: ClientOrderId(1) };
    line.send(&submit_bytes(2, &Command::Order(OrderCommand::Cancel(one))));
    line.send(&submit_bytes(3, &Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument: None, side: None }))));
    assert_eq!((line.submitted(), line.hear()), (vec![2, 3], vec![]));
    line.submit(4);
    assert_eq!((line.submitted(), line.hear()), (vec![], vec!["Refused 4 Throttled".to_owned()]));
}

#[test]
fn what_is_refused_comes_again_with_all_that_follows() {
    let mut line = Line::open(PLAIN, 1);
    line.submit(1);
    line.throttled = true;
    (2..=4).for_each(|seq| line.submit(seq));
    assert_eq!((line.submitted(), line.hear()), (vec![1], vec!["Refused 2 Throttled".to_owned()]));
    line.throttled = false;
    (2..=4).for_each(|seq| line.submit(seq));
    assert_eq!(line.submitted(), [2, 3, 4]);
    let refused = |line: &mut Line, seq, reason| {
        line.server.refused(Ordinal { session: SESSION, session_seq: SessionSeq(seq) }, reason, None);
    };
    line.answer(4);
    refused(&mut line, 3, RejectReason::Overloaded);
    refused(&mut line, 4, RejectReason::Overloaded);
    assert_eq!(line.hear(), ["Refused 3 Overloaded"]);
    [1, 2, 3, 4].into_iter().for_each(|seq| line.answer(seq));
    assert_eq!(line.hear(), ["Answer 1", "Answer 2"], "what will be sent again is answered then");
    (3..=4).for_each(|seq| line.submit(seq));
    (3..=4).for_each(|seq| line.answer(seq));
    assert_eq!(line.hear(), ["Answer 3", "Answer 4"]);
    line.submit(5);
    refused(&mut line, 5, RejectReason::SessionSeqGap);
    assert!(line.hear().is_empty(), "it is on its way again, or will be");
    refused(&mut line, 5, RejectReason::Forbidden);
    assert_eq!(line.hear(), ["Bye Rejected(Forbidden)"], "sending it again would not help");
}

/// Submits these bytes under the next number; returns the command that is logged. The connection must stay open.
fn in_the_log(line: &mut Line, session_seq: u64, bytes: &[u8]) -> Command {
    let mut frame = Vec::new();
    encode_client(&ClientMessage::Submit { session_seq: SessionSeq(session_seq), command: bytes }, &mut frame);
    line.send(&frame);
    assert_eq!(line.hear(), [] as [&str; 0], "{bytes:?}");
    let Some(Asked::Submit(ordinal, command)) = line.asked.pop() else { panic!("{bytes:?} takes no place") };
    assert_eq!(ordinal.session_seq, SessionSeq(session_seq));
    line.answer(session_seq);
    assert_eq!(line.hear(), [format!("Answer {session_seq}")]);
    command
}

fn command_bytes(command: &Command) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(command, &mut bytes);
    bytes
}

/// Sets every field of every command of an account's session out of its range: the command is rejected with the right reason, and
/// the connection stays open. Fields that only the state can judge are logged unchanged.
#[test]
fn a_value_out_of_range_is_rejected_and_the_connection_goes_on() {
    use RejectReason::{AmountOutOfRange, DisplayInvalid, Malformed, PriceOutOfRange, TimeInForceInvalid};
    let number = |value: i64| value.to_le_bytes().to_vec();
    let id = |value: u32| value.to_le_bytes().to_vec();
    let limit = command_bytes(&order(AccountId(0), 77));
    let stop_limit = {
        let Command::Order(OrderCommand::New(mut stop)) = order(AccountId(0), 77) else { panic!("an order") };
        let (trigger, price) = (PriceTicks::saturating(90), PriceTicks::saturating(91));
        stop.terms.order_type = OrderType::StopLimit { trigger, price };
        stop.terms.display = Display::Iceberg { peak: SizeLots::new(1) };
        stop.terms.time_in_force = TimeInForce::GoodTill(TimeNs(START));
        stop.terms.min_size = Some(SizeLots::new(1));
        command_bytes(&Command::Order(OrderCommand::New(stop)))
    };
    let (account, instrument) = (AccountId(0), InstrumentId(0));
    let amendment = Amendment {
        client_order_id: ClientOrderId(77),
        price: Some(PriceTicks::MIN),
        trigger: Some(PriceTicks::MIN),
        size: Some(SizeLots::new(1)),
    };
    let amend = command_bytes(&Command::Order(OrderCommand::Amend(AmendOrder { account, instrument, amendment })));
    let mass = command_bytes(&Command::Order(OrderCommand::MassCancel(MassCancel {
        account,
        instrument: Some(instrument),
        side: Some(Side::Buy),
    })));
    let out = command_bytes(&Command::Shard(ShardCommand::TransferOut(TransferOut {
        account,
        asset: AssetId(0),
        amount: Amount::MAX,
        to_shard: ShardId(1),
        client_transfer_id: ClientTransferId(1),
    })));
    // Name, command, offset and replacement of the bytes, and the reject reason; `None` if the state decides.
    type Replaced<'a> = (&'a str, &'a [u8], usize, Vec<u8>, Option<RejectReason>);
    let table: Vec<Replaced<'_>> = vec![
        ("order: account", &limit, 1, id(u32::MAX), None),
        ("order: instrument", &limit, 5, id(u32::MAX), None),
        ("order: client_order_id", &limit, 9, number(-1), None),
        ("order: side", &limit, 17, vec![2], Some(Malformed)),
        ("order: size 0", &limit, 18, number(0), None),
        ("order: size beyond all", &limit, 18, number(-1), None),
        ("order: type", &limit, 26, vec![4], Some(Malformed)),
        ("order: price 0", &limit, 27, number(0), Some(PriceOutOfRange)),
        ("order: price below 0", &limit, 27, number(-1), Some(PriceOutOfRange)),
        ("order: price beyond all", &limit, 27, number(1 << 40), Some(PriceOutOfRange)),
        ("order: post_only", &limit, 35, vec![3], Some(Malformed)),
        ("order: time in force", &limit, 36, vec![5], Some(TimeInForceInvalid)),
        ("order: display", &limit, 37, vec![3], Some(DisplayInvalid)),
        ("order: whether min_size", &limit, 38, vec![2], Some(Malformed)),
        ("order: self_trade", &limit, 39, vec![5], Some(Malformed)),
        ("stop: trigger 0", &stop_limit, 27, number(0), Some(PriceOutOfRange)),
        ("stop: price 0", &stop_limit, 35, number(0), Some(PriceOutOfRange)),
        ("stop: a time long ago", &stop_limit, 44, number(0), None),
        ("stop: peak above the size", &stop_limit, 53, number(99), None),
        ("stop: min_size 0", &stop_limit, 62, number(0), None),
        ("cancel: cut off", &limit[..16], 0, vec![2], Some(Malformed)),
        ("amend: whether a price", &amend, 17, vec![7], Some(Malformed)),
        ("amend: price 0", &amend, 18, number(0), Some(PriceOutOfRange)),
        ("amend: trigger 0", &amend, 27, number(0), Some(PriceOutOfRange)),
        ("amend: size 0", &amend, 36, number(0), None),
        ("mass cancel: whether an instrument", &mass, 5, vec![2], Some(Malformed)),
        ("mass cancel: side", &mass, 11, vec![2], Some(Malformed)),
        ("transfer: amount", &out, 10, number(-1), Some(AmountOutOfRange)),
        ("transfer: which of the shards' commands", &out, 1, vec![9], Some(Malformed)),
        ("no command", &limit, 0, vec![99], Some(Malformed)),
        ("the venue's own in the place of one", &limit, 0, vec![12], Some(Malformed)),
    ];
    let mut line = Line::open(PLAIN, 1);
    for (session_seq, (what, sound, at, bytes, expected)) in (1..).zip(table) {
        let mut changed = sound.to_vec();
        changed.splice(at..at + bytes.len(), bytes);
        match (in_the_log(&mut line, session_seq, &changed), expected) {
            (Command::Invalid(invalid), Some(expected)) => {
                let names_an_order = (1..=3).contains(&changed[0]) && changed.len() >= 17;
                let named = names_an_order.then_some((instrument, ClientOrderId(77))).unzip();
                assert_eq!((invalid.reason, invalid.account), (expected, Some(AccountId(0))), "{what}");
                assert_eq!((invalid.instrument, invalid.client_order_id), named, "{what}");
            }
            (command, None) => assert_eq!(command_bytes(&command), changed, "{what}"),
            (command, Some(expected)) => panic!("{what} is {command:?}, and no rejection for {expected:?}"),
        }
    }
    assert_eq!(line.server.take_ended(), None);
}

#[test]
fn what_a_session_may_not_send_is_rejected_and_the_connection_goes_on() {
    let mut line = Line::open(PLAIN, 1);
    for (session_seq, command) in
        [(1, Command::Venue(VenueCommand::Tick)), (2, Command::Account(AccountCommand::Create(AccountId(1))))]
    {
        let Command::Invalid(invalid) = in_the_log(&mut line, session_seq, &command_bytes(&command)) else {
            panic!("{command:?} goes to the log")
        };
        assert_eq!((invalid.reason, invalid.account), (RejectReason::Forbidden, Some(AccountId(0))), "{command:?}");
    }
}

#[test]
fn what_is_no_message_ends_the_connection() {
    for garbage in [
        &[0, 0, 0, 0][..],
        &[255, 255, 255, 255],
        &[1, 0, 0, 0, 77],
        &[9, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0],
        &[10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 5],
    ] {
        let mut line = Line::open(PLAIN, 1);
        line.send(garbage);
        line.submit(1);
        assert_eq!((line.hear(), line.asked.len()), (vec!["Bye Malformed".to_owned()], 0), "{garbage:?}");
    }
    // After a key is removed, the next command on each of its connections ends the connection.
    let mut line = Line::open(PLAIN, 1);
    line.gateway.remove_key(key(0).key_id());
    line.submit(1);
    assert_eq!(line.hear(), ["Bye Rejected(UnknownKey)"]);
}

#[test]
fn silence_ends_a_connection_and_a_ping_is_no_silence() {
    let mut line = Line::new(PLAIN);
    line.server.on_timer(START + 10 * SECOND - 1);
    assert!(line.hear().is_empty());
    line.server.on_timer(START + 10 * SECOND);
    assert_eq!((line.hear(), line.cancels()), (vec!["Bye LogonExpected".to_owned()], None));
    let mut line = Line::open(PLAIN, 1);
    line.now_ns = START + 14 * SECOND;
    line.send(&client_bytes(&ClientMessage::Ping(9)));
    line.server.on_timer(START + 28 * SECOND);
    assert_eq!(line.hear(), ["Pong 9"]);
    assert_eq!(line.server.deadline_ns(), Some(START + 29 * SECOND));
    line.server.on_timer(START + 29 * SECOND);
    assert_eq!((line.hear(), line.cancels()), (vec!["Bye Idle".to_owned()], Some(AccountId(0))));
}

#[test]
fn orders_are_cancelled_when_the_connection_is_lost_and_only_then() {
    let open = || Line::open(PLAIN, 1);
    let mut line = open();
    line.server.on_disconnect();
    line.server.on_disconnect();
    assert_eq!(line.cancels(), Some(AccountId(0)));
    for (end, expected) in [
        ((|server| server.replaced()) as fn(&mut SessionServer), "Bye Replaced"),
        (|server| server.not_leader("b:1"), "NotLeader b:1"),
        (|server| server.bye(ByeReason::ShuttingDown, ""), "Bye ShuttingDown"),
    ] {
        let mut line = open();
        end(&mut line.server);
        line.server.on_disconnect();
        assert_eq!((line.hear(), line.cancels()), (vec![expected.to_owned()], None));
    }
    let mut line = open();
    line.send(&client_bytes(&ClientMessage::Logout));
    assert_eq!((line.hear(), line.cancels()), (vec!["Bye LoggedOut".to_owned()], None));
}

#[test]
fn who_does_not_read_is_sent_away_with_bounded_output() {
    let mut line = Line::open(ServerSettings { output_bytes_max: 1_000, ..PLAIN }, 1);
    let event = event_bytes();
    for report_seq in 4..1_000 {
        line.server.report(&report(report_seq, &event)).unwrap();
    }
    assert!(line.server.output().len() < 1_000 + 200);
    let heard = line.hear();
    assert_eq!((heard[0].as_str(), heard.last().unwrap().as_str()), ("Report 4", "Bye SlowReader"));
}

#[test]
fn reports_go_out_without_gaps() {
    let mut line = Line::open(PLAIN, 1);
    let event = event_bytes();
    line.server.report(&report(3, &event)).unwrap();
    assert_eq!(line.server.report(&report(5, &event)).unwrap_err().expected, 4);
    line.server.report(&report(4, &event)).unwrap();
    line.server.report(&report(5, &event)).unwrap();
    assert_eq!(line.hear(), ["Report 4", "Report 5"]);
}

fn signed_bytes(sequence: u64) -> Vec<u8> {
    let payment = Payment { to: AccountId(1), asset: AssetId(0), amount: Amount::new(5).unwrap() };
    let operation = BatchOperation::Payment(payment);
    let transaction = BatchTransaction::new(AccountId(0), TransactionSeq(sequence), operation);
    let mut bytes = Vec::new();
    encode_signed_transaction(&SignedTransaction { transaction, signature: [9; SIGNATURE_BYTES] }, &mut bytes);
    bytes
}

fn items(signed: &[&[u8]]) -> Vec<u8> {
    let mut items = Vec::new();
    assert!(signed.iter().all(|bytes| push_signed_bytes(bytes, &mut items)));
    items
}

fn transactions_bytes(number: u64, items: &[u8]) -> Vec<u8> {
    client_bytes(&ClientMessage::Transactions(SignedTransactions::new(number, BatchMarketId(2), items).unwrap()))
}

#[test]
fn a_frame_of_transactions_is_read_and_answered_with_a_result_for_each() {
    let mut line = Line::open(PLAIN, 1);
    let (good, mut long) = (signed_bytes(8), signed_bytes(9));
    long.push(0);
    line.send(&transactions_bytes(3, &items(&[&good, &good[..good.len() - 1], &long, &[7], &signed_bytes(u64::MAX)])));
    let Some(Asked::Transactions(frame)) = line.asked.pop() else { panic!("no transactions came") };
    assert_eq!((frame.number, frame.market, frame.retry_after_ns), (3, BatchMarketId(2), None));
    assert_eq!(frame.transactions[0].unwrap().transaction.sequence, TransactionSeq(8));
    assert_eq!(frame.transactions[1..], [Err(RejectReason::Malformed); 4], "each spoils itself only");
    let outcome =
        FrameOutcome { number: 3, results: vec![None, Some(RejectReason::Malformed)], blocks: None, retry_after_ns: None };
    line.server.transactions_done(&outcome);
    assert_eq!(line.hear(), ["Transactions 3 [None, Some(Malformed)]"]);
    // What is throttled is not looked at.
    line.throttled = true;
    line.send(&transactions_bytes(4, &items(&[&good, &[7]])));
    let Some(Asked::Transactions(frame)) = line.asked.pop() else { panic!("no transactions came") };
    assert_eq!(frame.transactions, [Err(RejectReason::Throttled); 2]);
    assert_eq!(frame.retry_after_ns, Some(1_000_000));
    // The orders of the same connection go on.
    line.throttled = false;
    line.submit(1);
    assert_eq!(line.submitted(), [1]);
    assert_eq!(line.hear(), [""; 0]);
}

#[test]
fn a_frame_that_is_none_ends_the_connection_and_takes_nothing() {
    let good = transactions_bytes(3, &items(&[&signed_bytes(8), &signed_bytes(9)]));
    // The count, then the length of the first transaction.
    for (at, wrong) in [(15, 0), (15, 1), (15, 3), (16, 1), (16, 255), (17, 0), (17, 255), (17, good[17] - 1)] {
        let mut line = Line::open(PLAIN, 1);
        let mut bytes = good.clone();
        bytes[at] = wrong;
        line.send(&bytes);
        assert_eq!((line.hear(), line.asked.len()), (vec!["Bye Malformed".to_owned()], 0), "byte {at} is {wrong}");
    }
    for longer in [30_222_u32, 1 << 20, u32::MAX] {
        let mut line = Line::open(PLAIN, 1);
        line.send(&longer.to_le_bytes());
        assert_eq!(line.hear(), ["Bye Malformed"], "{longer}");
    }
    // A part of a frame waits for the rest.
    let mut line = Line::open(PLAIN, 1);
    line.send(&good[..good.len() - 1]);
    assert_eq!((line.hear(), line.asked.len()), (vec![], 0));
    line.send(&good[good.len() - 1..]);
    assert!(matches!(line.asked.pop(), Some(Asked::Transactions(_))));
    // Who has not logged on is lent no room for a long one.
    let mut line = Line::new(PLAIN);
    line.send(&1_025_u32.to_le_bytes());
    assert_eq!(line.hear(), ["Bye Malformed"]);
    let mut line = Line::new(PLAIN);
    line.send(&good);
    assert_eq!(line.hear(), ["Bye LogonExpected"]);
}

#[test]
fn a_connection_has_so_many_transactions_without_results() {
    let mut line = Line::open(PLAIN, 1);
    let full = items(&[&[7; SIGNED_TRANSACTION_BYTES_MAX][..]; TRANSACTIONS_PER_FRAME_MAX]);
    for number in 0..32 {
        line.send(&transactions_bytes(number, &full));
    }
    assert_eq!((line.hear(), line.asked.len()), (vec![], 32));
    let results = vec![Some(RejectReason::Malformed); TRANSACTIONS_PER_FRAME_MAX];
    line.server.transactions_done(&FrameOutcome { number: 0, results, blocks: None, retry_after_ns: None });
    assert_eq!(line.hear().len(), 1);
    line.send(&transactions_bytes(32, &full));
    assert_eq!((line.hear(), line.asked.len()), (vec![], 33));
    line.send(&transactions_bytes(33, &items(&[&[7]])));
    assert_eq!(line.hear(), ["Bye WindowExceeded"]);
}

#[test]
fn a_client_sends_frames_again_until_it_has_their_results() {
    let mut user = User::new();
    let (one, two) = (items(&[&signed_bytes(8)]), items(&[&signed_bytes(9), &signed_bytes(10)]));
    assert!(matches!(user.end.submit_transactions(START, BatchMarketId(2), Vec::new()), Err(SubmitError::NoTransactions(_))));
    // It may be given some before its logon.
    assert_eq!(user.end.submit_transactions(START, BatchMarketId(2), one.clone()), Ok(1));
    user.log_on(4, 11, 0);
    assert_eq!(user.end.submit_transactions(START, BatchMarketId(2), two.clone()), Ok(2));
    assert!(user.end.output().ends_with(&[transactions_bytes(1, &one), transactions_bytes(2, &two)].concat()));
    let mut results = Vec::new();
    push_result(None, &mut results);
    push_result(Some(RejectReason::BatchFull), &mut results);
    let told = TransactionResults::new(2, Some((5, 5)), None, &results).unwrap();
    user.hear(&VenueMessage::Transactions(told));
    let outcome = user.end.next_transactions().unwrap();
    assert_eq!((outcome.number, outcome.blocks), (2, Some((5, 5))));
    assert_eq!((outcome.results, user.end.unanswered_transactions()), (vec![None, Some(RejectReason::BatchFull)], 1));
    user.lose(START);
    user.log_on(4, 11, 0);
    assert!(user.end.output().ends_with(&transactions_bytes(1, &one)), "what has no result");
    assert_eq!(user.end.next_transactions(), None);
    // A silent venue is left.
    let deadline_ns = user.end.deadline_ns().unwrap();
    assert!(deadline_ns <= START + 10 * SECOND, "{deadline_ns}");
    user.hear(&VenueMessage::Transactions(told));
    assert_eq!(user.end.wish(START), Wish::Close, "results of what was answered before");
}

struct User {
    end: SessionClient,
    events: Vec<ClientEvent>,
}

impl User {
    fn new() -> Self {
        let replicas = vec!["a:1".to_owned(), "b:1".to_owned()];
        Self { end: SessionClient::new(ClientSettings::new(replicas, 7), key(0), START).unwrap(), events: Vec::new() }
    }

    fn hear(&mut self, message: &VenueMessage<'_>) {
        self.hear_at(START, message);
    }

    fn hear_at(&mut self, now_ns: u64, message: &VenueMessage<'_>) {
        let mut bytes = Vec::new();
        encode_venue(message, &mut bytes);
        self.end.on_bytes(now_ns, &bytes, &mut |event| self.events.push(event));
    }

    fn connect(&mut self, now_ns: u64) {
        self.end.on_connected(now_ns, &entropy(1));
        self.hear(&VenueMessage::Welcome(greeting(1).welcome(Sealing::Off)));
    }

    fn log_on(&mut self, session: u64, next: u64, report_seq: u64) {
        self.connect(START);
        self.hear(&VenueMessage::LoggedOn(LoggedOn {
            session: SessionId(session),
            next: SessionSeq(next),
            report_seq,
            reports_from: report_seq + 1,
            window: 2,
            idle_timeout_ns: 9 * SECOND,
        }));
    }

    fn written(&mut self) {
        let len = self.end.output().len();
        self.end.consume(len);
    }

    fn last(&self) -> &ClientEvent {
        self.events.last().expect("an event was reported")
    }

    fn lose(&mut self, now_ns: u64) {
        self.end.on_disconnected(now_ns);
    }
}

fn answered(session_seq: u64) -> VenueMessage<'static> {
    VenueMessage::Answer(Answer { session_seq: SessionSeq(session_seq), log_index: LogIndex(1), time: None, rejected: None })
}

#[test]
fn a_client_follows_hints_and_else_goes_round() {
    let mut user = User::new();
    assert_eq!(user.end.wish(START), Wish::Connect("a:1"));
    user.lose(START);
    assert_eq!((user.end.wish(START), user.end.deadline_ns()), (Wish::Wait, Some(START + SECOND / 10)));
    let mut now_ns = START + SECOND / 10;
    assert_eq!(user.end.wish(now_ns), Wish::Connect("b:1"));
    user.connect(now_ns);
    user.hear(&VenueMessage::NotLeader { leader: "c:1" });
    assert_eq!(user.end.wish(now_ns), Wish::Close);
    user.lose(now_ns);
    assert_eq!(user.end.wish(now_ns), Wish::Connect("c:1"), "at once");
    user.connect(now_ns);
    user.hear(&VenueMessage::NotLeader { leader: "b:1" });
    user.lose(now_ns);
    assert_eq!(user.end.wish(now_ns), Wish::Wait, "not in a circle");
    now_ns += SECOND / 10;
    assert_eq!(user.end.wish(now_ns), Wish::Connect("a:1"));
}

#[test]
fn a_client_keeps_to_the_window_and_sends_again_what_is_unanswered() {
    let mut user = User::new();
    assert_eq!(user.end.submit(START, &order(AccountId(0), 1)), Err(SubmitError::NotLoggedOnYet));
    user.log_on(4, 11, 0);
    let submit = |user: &mut User, name| user.end.submit(START, &order(AccountId(0), name));
    assert_eq!(submit(&mut user, 1), Ok(SessionSeq(11)));
    assert_eq!(submit(&mut user, 2), Ok(SessionSeq(12)));
    assert_eq!(submit(&mut user, 3), Err(SubmitError::WindowFull(2)));
    let sent: Vec<u8> =
        [(11, 1), (12, 2)].into_iter().flat_map(|(seq, name)| submit_bytes(seq, &order(AccountId(0), name))).collect();
    assert!(user.end.output().ends_with(&sent));
    user.lose(START);
    user.log_on(4, 12, 0);
    assert!(user.end.output().ends_with(&sent));
    user.written();
    user.hear(&answered(11));
    user.hear(&answered(11));
    let answers = |user: &User| user.events.iter().filter(|event| matches!(event, ClientEvent::Answer { .. })).count();
    assert_eq!(answers(&user), 1);
    // After a refusal the command is sent again, not before the given wait.
    let refused = Refused { session_seq: SessionSeq(12), reason: RejectReason::Throttled, retry_after_ns: Some(50) };
    user.hear(&VenueMessage::Refused(refused));
    assert_eq!((user.end.output().len(), user.end.deadline_ns()), (0, Some(START + 50)));
    user.end.on_timer(START + 50, &mut |_| ());
    assert_eq!(user.end.output(), submit_bytes(12, &order(AccountId(0), 2)));
    user.hear(&answered(13));
    assert_eq!(user.end.wish(START), Wish::Close, "an answer to what was never asked");
}

#[test]
fn a_client_reports_when_its_session_cannot_continue() {
    let lost = |session, next, report_seq| {
        let mut user = User::new();
        user.log_on(4, 1, 5);
        user.end.submit(START, &order(AccountId(0), 1)).unwrap();
        user.lose(START);
        user.log_on(session, next, report_seq);
        user.last().clone()
    };
    let from = SessionSeq(1);
    assert_eq!(lost(4, 1, 5), ClientEvent::LoggedOn { session: SessionId(4) });
    assert_eq!(lost(9, 1, 5), ClientEvent::Ended(ClientError::SessionLost { was: SessionId(4), unanswered_from: from }));
    let other = ClientError::OtherNumbers { expected: SessionSeq(3), from, next: SessionSeq(2) };
    assert_eq!(lost(4, 3, 5), ClientEvent::Ended(other));
    assert_eq!(lost(4, 1, 4), ClientEvent::Ended(ClientError::ReportsWentBack { known: 4, sent: 5 }));
    assert_eq!(lost(4, 1, 7), ClientEvent::ReportsMissing { from: 6, next: 8 });
    let mut user = User::new();
    user.log_on(4, 1, 0);
    user.hear(&VenueMessage::Bye { reason: ByeReason::Replaced, text: "" });
    assert_eq!(user.last(), &ClientEvent::Ended(ClientError::Bye(ByeReason::Replaced)));
    assert_eq!(user.end.submit(START, &order(AccountId(0), 1)), Err(SubmitError::Ended));
    user.lose(START);
    assert_eq!((user.end.wish(u64::MAX), user.end.deadline_ns()), (Wish::Wait, None));
    let mut user = User::new();
    user.log_on(4, 1, 0);
    user.end.on_bytes(START, &[1, 0, 0, 0, 9], &mut |event| user.events.push(event));
    assert!(matches!(user.last(), ClientEvent::Ended(ClientError::Malformed(_))));
}

#[test]
fn a_client_pings_and_gives_up_a_silent_venue() {
    let mut user = User::new();
    user.log_on(4, 1, 0);
    user.written();
    user.end.on_timer(START + 3 * SECOND, &mut |_| ());
    assert_eq!(user.end.output(), client_bytes(&ClientMessage::Ping(START + 3 * SECOND)));
    user.end.on_timer(START + 9 * SECOND, &mut |_| ());
    assert_eq!(user.end.wish(START), Wish::Close);
    let mut user = User::new();
    user.log_on(4, 1, 0);
    user.end.submit(START, &order(AccountId(0), 1)).unwrap();
    for second in 1..10 {
        let mut bytes = Vec::new();
        encode_venue(&VenueMessage::Pong(1), &mut bytes);
        user.end.on_bytes(START + second * SECOND, &bytes, &mut |_| ());
        user.end.on_timer(START + second * SECOND, &mut |_| ());
        assert_eq!(user.end.wish(START), Wish::Wait);
    }
    user.end.on_timer(START + 10 * SECOND, &mut |_| ());
    assert_eq!(user.end.wish(START), Wish::Close, "an answer was due");
}

#[test]
fn a_client_leaves_a_silent_replica_alone_though_others_name_it_as_the_leader() {
    let mut user = User::new();
    user.log_on(4, 1, 0);
    let timeout_ns = 9 * SECOND;
    let mut now_ns = START + timeout_ns;
    user.end.on_timer(now_ns, &mut |_| ());
    assert_eq!(user.end.wish(now_ns), Wish::Close);
    user.lose(now_ns);
    let silent_until_ns = now_ns + 4 * timeout_ns;
    while now_ns < silent_until_ns {
        now_ns = user.end.deadline_ns().unwrap();
        assert_eq!(user.end.wish(now_ns), Wish::Connect("b:1"), "{} ns after the start", now_ns - START);
        user.connect(now_ns);
        user.hear_at(now_ns, &VenueMessage::NotLeader { leader: "a:1" });
        user.lose(now_ns);
    }
    now_ns = user.end.deadline_ns().unwrap();
    assert_eq!(user.end.wish(now_ns), Wish::Connect("a:1"), "it may be back");
}

#[test]
fn a_client_whose_replicas_are_all_silent_tries_each_in_turn() {
    let mut user = User::new();
    let mut now_ns = START;
    for address in ["a:1", "b:1", "a:1", "b:1"] {
        assert_eq!(user.end.wish(now_ns), Wish::Connect(address));
        user.end.on_connected(now_ns, &entropy(1));
        now_ns = user.end.deadline_ns().unwrap();
        user.end.on_timer(now_ns, &mut |_| ());
        user.lose(now_ns);
        now_ns = user.end.deadline_ns().unwrap();
    }
}

#[test]
fn two_programs_with_one_token_do_not_fight() {
    let (mut older, mut newer) = (User::new(), User::new());
    let mut line = Line::open(PLAIN, 1);
    older.log_on(SESSION.0, 1, 0);
    newer.log_on(SESSION.0, 1, 0);
    line.server.replaced();
    let bytes = line.server.output().to_vec();
    older.end.on_bytes(START, &bytes, &mut |event| older.events.push(event));
    assert_eq!(older.last(), &ClientEvent::Ended(ClientError::Bye(ByeReason::Replaced)));
    assert!(newer.end.is_logged_on());
}
