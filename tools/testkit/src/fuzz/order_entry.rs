//! Order entry: frames, both ends of a connection, and what accounts are told.

use std::collections::BTreeMap;
use std::sync::Arc;

use walras_engine::Engine;
use walras_gateway::session::{
    ClientSettings, FrameOutcome, Host, LogonRequest, ReportSettings, Reports, Resend, ServerSettings, SessionClient,
    SessionServer, SessionStart, TransactionFrame, VenueKeys, signed_logon,
};
use walras_gateway::{
    Algorithm, Allowance, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Principal, Refusal, SourceId,
};
use walras_market_data::PublicBooks;
use walras_types::{AccountId, Answer, LogIndex, Ordinal, SessionId, SessionSeq, TimeNs};
use walras_wire::order_entry::{
    ClientMessage, Copies, FrameSizes, LoggedOn, LogonTerms, OnDisconnect, ReportsWanted, Role, Sealing, VenueMessage,
    decode_client, decode_report_event, decode_venue, encode_client, encode_report_event, encode_venue, split_frame_of,
};
use walras_wire::{
    AccountCommand, AccountEvent, Command, Event, OrderEvent, SessionEvent, content_digest, decode_command, decode_submitted,
    encode_command,
};

use crate::Choices;
use crate::commands::{self, Range};

const NOW_NS: u64 = 1_000_000_000_000;
const COMMANDS_MAX: usize = 200;

/// A stream of frames, or the place where it stops being one: for the codec, for a venue's end that somebody has logged on to, and for a
/// client's end. Cut anywhere, it means the same.
pub fn stream(bytes: &[u8]) {
    let Some((&cut, stream)) = bytes.split_first() else { return };
    let mut rest = stream;
    while let Ok(Some((frame, after))) = split_frame_of(rest, FrameSizes::Transactions) {
        let whole = &rest[..rest.len() - after.len()];
        let mut again = Vec::new();
        if let Ok(message) = decode_client(frame) {
            encode_client(&message, &mut again);
            assert_eq!(again, whole, "one message has one encoding: {message:?}");
            if let ClientMessage::Submit { command, .. } = message {
                submitted(command);
            }
        }
        again.clear();
        if let Ok(message) = decode_venue(frame) {
            encode_venue(&message, &mut again);
            assert_eq!(again, whole, "one message has one encoding: {message:?}");
        }
        again.clear();
        if let Ok(event) = decode_report_event(frame) {
            encode_report_event(&event, &mut again);
            assert_eq!(again, frame, "one report has one encoding: {event:?}");
        }
        rest = after;
    }
    let cut = usize::from(cut).clamp(1, stream.len().max(1));
    for sealing in [Sealing::Off, Sealing::Required] {
        let whole = venue_hears(stream, stream.len().max(1), sealing);
        assert_eq!(whole, venue_hears(stream, cut, sealing), "a stream means the same however it is cut");
        assert!(whole.0.is_empty() || sealing == Sealing::Off, "nobody guesses a seal");
    }
    assert_eq!(client_hears(stream, stream.len().max(1)), client_hears(stream, cut));
}

/// Bytes that stand where a command stands are one: that of the bytes, or one that is rejected in its place.
fn submitted(bytes: &[u8]) {
    let (account, mut again) = (Some(AccountId(3)), Vec::new());
    let command = decode_submitted(bytes, account);
    encode_command(&command, &mut again);
    assert_eq!(decode_command(&again), Ok(command));
    match command {
        Command::Invalid(invalid) => assert_eq!(invalid.account, account),
        _ => assert_eq!(again, bytes, "one command has one encoding: {command:?}"),
    }
}

#[derive(Default)]
struct Notes(Vec<(Ordinal, Command)>, Option<LogonRequest>, Vec<TransactionFrame>);

impl Host for Notes {
    fn authenticate(&mut self, logon: LogonRequest) {
        self.1 = Some(logon);
    }
    fn open(&mut self, _account: Option<AccountId>, _token: u64, _reports: ReportsWanted) {}
    fn charge(&mut self, _now_ns: u64, _principal: &Principal, _permission: Permission, _from: Allowance) -> Result<(), Refusal> {
        Ok(())
    }
    fn submit(&mut self, ordinal: Ordinal, command: &Command, _bytes: &[u8]) {
        self.0.push((ordinal, *command));
    }
    fn transactions(&mut self, frame: TransactionFrame) {
        self.2.push(frame);
    }
}

fn key() -> ClientKey {
    ClientKey::generate(Algorithm::HmacSha256, &[7; ClientKey::ENTROPY_LEN])
}

/// What a venue's end makes of a stream after a good logon: commands and output.
fn venue_hears(stream: &[u8], cut: usize, sealing: Sealing) -> (Vec<(Ordinal, Command)>, Vec<u8>) {
    let mut gateway = Gateway::new(GatewayConfig::new(NOW_NS));
    let permissions = Permissions::from_iter([Permission::Trade, Permission::Read]);
    gateway.add_key(key().record(Some(AccountId(0)), permissions).expect("a sound record")).expect("there is room");
    let (role, copies, reports) = (Role::Account, Copies::One, ReportsWanted::New);
    let terms = LogonTerms { on_disconnect: OnDisconnect::Keep, role, token: 1, reports, copies, logon_seq: NOW_NS };
    let greeting = Arc::new(VenueKeys::new(&[7; VenueKeys::ENTROPY_LEN])).greeting(1);
    let (welcome, client_key, mut logon) = (greeting.welcome(Sealing::Required), [8; 32], Vec::new());
    let signature = key().sign_bytes(&signed_logon(&welcome.challenge, &welcome.venue_key, &client_key, &terms));
    let key_id = key().key_id();
    let message = walras_wire::order_entry::Logon { terms, client_key, key_id: key_id.as_str(), signature: &signature };
    encode_client(&ClientMessage::Logon(message), &mut logon);
    let mut server = SessionServer::new(ServerSettings { window: 8, sealing, ..ServerSettings::default() }, greeting, NOW_NS);
    let mut host = Notes::default();
    server.on_bytes(NOW_NS, &logon, &mut host);
    let source = SourceId::of(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
    let principal = host.1.take().expect("a logon came").authorize(&mut gateway, NOW_NS, source);
    server.authenticated(principal, &mut host);
    server.opened(NOW_NS, SessionStart { session: SessionId(1), next: SessionSeq(3), report_seq: 0, reports_from: 1 });
    for piece in stream.chunks(cut) {
        server.on_bytes(NOW_NS, piece, &mut host);
        assert!(server.unanswered_count() <= 8);
    }
    for frame in &host.2 {
        let results = frame.transactions.iter().map(|one| one.as_ref().err().copied()).collect();
        let retry_after_ns = frame.retry_after_ns;
        server.transactions_done(&FrameOutcome { number: frame.number, results, blocks: None, retry_after_ns });
    }
    for (ordinal, command) in &host.0 {
        let content = content_digest(command, &mut Vec::new());
        server.answer(*ordinal, Answer { log_index: LogIndex(ordinal.session_seq.0), rejected: None, content }, None);
    }
    (host.0, server.output().to_vec())
}

/// What a client's end makes of a stream after it was logged on: how many things its user is told, and its output.
fn client_hears(stream: &[u8], cut: usize) -> (usize, Vec<u8>) {
    let mut client = SessionClient::new(ClientSettings::new(vec!["a".to_owned()], 1), key(), NOW_NS).expect("there is an address");
    client.on_connected(NOW_NS, &[8; 32]);
    let mut welcome = Vec::new();
    let greeting = Arc::new(VenueKeys::new(&[7; VenueKeys::ENTROPY_LEN])).greeting(1);
    encode_venue(&VenueMessage::Welcome(greeting.welcome(Sealing::Off)), &mut welcome);
    client.on_bytes(NOW_NS, &welcome, &mut |_| ());
    let on = LoggedOn {
        session: SessionId(1),
        next: SessionSeq(1),
        report_seq: 0,
        reports_from: 1,
        window: 8,
        idle_timeout_ns: 1_000_000_000,
    };
    let (mut bytes, mut told) = (Vec::new(), 0);
    encode_venue(&VenueMessage::LoggedOn(on), &mut bytes);
    client.on_bytes(NOW_NS, &bytes, &mut |_| ());
    client.submit(NOW_NS, &Command::Account(AccountCommand::Create(AccountId(0)))).expect("the window is open");
    for piece in stream.chunks(cut) {
        client.on_bytes(NOW_NS, piece, &mut |_| told += 1);
    }
    (told, client.output().to_vec())
}

/// Commands made of the bytes: whoever an event concerns is told of it, in numbers without gaps, and told the same again; a replica that
/// goes on from a snapshot tells the same.
pub fn reports(bytes: &[u8]) {
    let c = &mut Choices::of_bytes(bytes);
    let settings = ReportSettings { per_account_max: 60, bytes_max: 30_000 };
    let (mut engine, mut books, mut reports) = (Engine::new(), PublicBooks::new(), Reports::new(settings));
    let mut all: BTreeMap<AccountId, Vec<Vec<u8>>> = BTreeMap::new();
    let mut time = TimeNs(1_000);
    let mut queue = commands::opening(c, Range::Near);
    queue.reverse();
    for _ in 0..COMMANDS_MAX {
        if c.is_spent() && queue.is_empty() {
            break;
        }
        time = TimeNs(time.0 + c.below(4));
        let command = queue.pop().unwrap_or_else(|| commands::command(c, Range::Near, time));
        let (log_index, mut events) = (engine.last_applied().next(), Vec::new());
        engine.apply(log_index, time, &command, &mut events);
        for event in &events {
            books.on_event(log_index, event).expect("a reader follows the engine");
            let expected = whom(&books, event, |account| all.contains_key(&account));
            let mut told = Vec::new();
            reports.on_event(log_index, time, event, |account, report| {
                told.push(account);
                let of_account = all.entry(account).or_default();
                of_account.push(report.event.to_vec());
                assert_eq!(report.report_seq, of_account.len() as u64, "numbers without gaps");
            });
            assert_eq!(told, expected, "{event:?}");
        }
        if c.one_in(16) {
            reports = through_snapshot(&reports, settings);
        }
    }
    for (&account, told) in &all {
        let first_kept = reports.first_kept(account);
        let Resend::Found(found) = reports.resend(account, first_kept - 1) else { panic!("what is kept is found") };
        let kept = usize::try_from(first_kept - 1).expect("few reports");
        assert!(found.map(|report| report.event.to_vec()).eq(told[kept..].iter().cloned()), "told again as before");
    }
}

/// Whom an event concerns as a reader of all events sees it.
fn whom(books: &PublicBooks, event: &Event, exists: impl Fn(AccountId) -> bool) -> Vec<AccountId> {
    match event {
        Event::Session(SessionEvent::Opened(_)) => Vec::new(),
        Event::Account(AccountEvent::Created(account)) => vec![*account],
        Event::Order(OrderEvent::Replenished(e)) => {
            books.book(e.instrument).and_then(|book| book.owner(e.order_id)).into_iter().collect()
        }
        Event::Order(OrderEvent::Traded(e)) => vec![e.maker.account, e.taker.account],
        other => other.accounts().into_iter().flatten().filter(|&account| exists(account)).collect(),
    }
}

fn through_snapshot(reports: &Reports, settings: ReportSettings) -> Reports {
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    reports.snapshot(&mut bytes);
    let restored = Reports::restore(&bytes, settings).expect("what was saved restores");
    restored.snapshot(&mut again);
    assert!(bytes == again, "one state has one encoding");
    restored
}

/// Any bytes as a snapshot of reports: refused, or a state with these bytes.
pub fn reports_restore(bytes: &[u8]) {
    let settings = ReportSettings::default();
    let Ok(mut reports) = Reports::restore(bytes, settings) else { return };
    let mut again = Vec::new();
    reports.snapshot(&mut again);
    assert!(again == bytes, "one state has one encoding");
    reports.on_event(LogIndex(u64::MAX), TimeNs(1), &Event::Account(AccountEvent::Created(AccountId(0))), |_, _| ());
    let _ = through_snapshot(&reports, settings);
}
