//! FIX: the venue's end of a connection, a client who has logged on to it, and an engine behind it.

use std::sync::Arc;

use walras_engine::{Engine, Numbered};
use walras_fix_orders::{Catalog, FixServer, FixSettings, Secrecy};
use walras_gateway::session::{Host, LogonRequest, OrderNames, ReportSettings, Reports, Resend, SessionStart, TransactionFrame};
use walras_gateway::{
    Algorithm, Allowance, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Principal, Refusal, SourceId,
};
use walras_types::{
    AccountId, Allocation, Amount, AssetId, FeeSchedule, InstrumentId, InstrumentSpec, Ordinal, PriceTicks, RiskLimits, SessionId,
    Symbol, TimeNs, TradingPhase, TransferId,
};
use walras_wire::order_entry::ReportsWanted;
use walras_wire::{
    AccountCommand, AssetSpec, Command, Event, InstrumentCommand, OpenSession, OrderEvent, SessionCommand, SessionEvent,
    SetTradingPhase, Transfer, VenueCommand, decode_command,
};

/// The first day of 2026: SendingTime(52) of the seeds.
const DAY_NS: u64 = 1_767_225_600_000_000_000;
const ACCOUNT: AccountId = AccountId(0);

thread_local! {
    /// Its dictionaries are read once in each thread.
    static SETTINGS: FixSettings = FixSettings::of("WALRAS");
}

/// What a client sends: a message in each line. A line that begins with MsgType(35) is the rest of a message, with `|` for the
/// separator, and gets its BeginString(8), length and checksum; any other line goes as it is. The stream is sent without a logon
/// and after one. Checked: without a logon no command comes of it, the commands do not depend on how the stream is cut, the engine
/// stays sound, and all answers are whole messages.
pub fn orders(bytes: &[u8]) {
    let Some((&cut, lines)) = bytes.split_first() else { return };
    let stream = messages(lines);
    let cut = usize::from(cut).clamp(1, stream.len().max(1));
    let (nothing, answered) = venue_hears(&stream, cut, None);
    assert!(nothing.is_empty(), "nobody guesses a secret");
    check_messages(&answered);
    let (all_at_once, answered) = venue_hears(&stream, stream.len().max(1), Some(logon()));
    check_messages(&answered);
    let (cut_up, answered) = venue_hears(&stream, cut, Some(logon()));
    check_messages(&answered);
    let differs = all_at_once.iter().zip(&cut_up).find(|(one, other)| one != other);
    assert_eq!(differs, None, "a stream asks for the same however it is cut");
}

/// The bytes of the lines.
fn messages(lines: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let fields: Vec<u8> = line.iter().map(|byte| if *byte == b'|' { 1 } else { *byte }).collect();
        if line.starts_with(b"35=") { stream.extend(whole(&fields)) } else { stream.extend(fields) }
    }
    stream
}

fn whole(fields: &[u8]) -> Vec<u8> {
    let mut message = format!("8=FIX.4.4\u{1}9={}\u{1}", fields.len()).into_bytes();
    message.extend_from_slice(fields);
    let sum = message.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    message.extend(format!("10={sum:03}\u{1}").into_bytes());
    message
}

/// The venue sends only messages, each with its length and checksum.
fn check_messages(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let mut fields = bytes.split(|byte| *byte == 1);
        let begin = fields.next().expect("a field");
        let length = fields.next().and_then(|field| field.strip_prefix(b"9=")).expect("the length comes second");
        let length: usize = std::str::from_utf8(length).ok().and_then(|text| text.parse().ok()).expect("a number");
        let body_at = begin.len() + 1 + 2 + length.to_string().len() + 1;
        let (before, rest) = bytes.split_at(body_at + length);
        let sum = before.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        let trailer = format!("10={sum:03}\u{1}");
        bytes = rest.strip_prefix(trailer.as_bytes()).expect("the checksum is right");
    }
}

fn key() -> ClientKey {
    ClientKey::generate(Algorithm::HmacSha256, &[7; ClientKey::ENTROPY_LEN])
}

fn logon() -> Vec<u8> {
    let token = key().to_token();
    let (id, secret) = token.split_once('.').expect("an id and a secret");
    let text = format!("35=A|34=1|49=FUZZ|52=20260101-00:00:00.000|56=WALRAS|98=0|108=30|141=N|553={id}|554={secret}|");
    whole(text.replace('|', "\u{1}").as_bytes())
}

#[derive(Default)]
struct Notes {
    submitted: Vec<(Ordinal, Command)>,
    logons: Vec<LogonRequest>,
    opens: Vec<(Option<AccountId>, u64)>,
}

impl Host for Notes {
    fn authenticate(&mut self, logon: LogonRequest) {
        self.logons.push(logon);
    }
    fn open(&mut self, account: Option<AccountId>, token: u64, _reports: ReportsWanted) {
        self.opens.push((account, token));
    }
    fn charge(&mut self, _now_ns: u64, _principal: &Principal, _permission: Permission, _from: Allowance) -> Result<(), Refusal> {
        Ok(())
    }
    fn submit(&mut self, ordinal: Ordinal, command: &Command, bytes: &[u8]) {
        assert_eq!(decode_command(bytes).as_ref(), Ok(command));
        self.submitted.push((ordinal, *command));
    }
    fn transactions(&mut self, _frame: TransactionFrame) {
        unreachable!("FIX has no message for it");
    }
}

/// The venue behind the connection.
struct Venue {
    engine: Engine,
    reports: Reports,
}

impl Venue {
    fn new() -> Self {
        let mut venue = Self { engine: Engine::new(), reports: Reports::new(ReportSettings::default()) };
        let symbol = |name| Symbol::new(name).expect("a symbol");
        venue.apply(&Command::Venue(VenueCommand::SetEngineVersion(walras_engine::versions::NEWEST)));
        for (asset, name) in [(0, "BTC"), (1, "USD")].map(|(id, name)| (AssetId(id), name)) {
            venue.apply(&Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset, symbol: symbol(name), decimals: 2 })));
        }
        venue.apply(&Command::Account(AccountCommand::Create(ACCOUNT)));
        for asset in [AssetId(0), AssetId(1)] {
            let (amount, transfer_id) = (Amount::new(1 << 40).expect("it is small"), TransferId(u64::from(asset.0)));
            venue.apply(&Command::Account(AccountCommand::Deposit(Transfer { account: ACCOUNT, asset, amount, transfer_id })));
        }
        let instrument = InstrumentId(0);
        venue.apply(&Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
            instrument,
            symbol: symbol("BTC/USD"),
            base: AssetId(0),
            quote: AssetId(1),
            lot_units: 1,
            tick_value_units: 1,
            allocation: Allocation::PriceTime,
            fees: FeeSchedule { maker_ppm: 0, taker_ppm: 1_000 },
            collar_ppm: 0,
            band_ppm: 0,
            reference_price: PriceTicks::MIN,
            default_limits: RiskLimits::NONE,
        })));
        let phase = TradingPhase::Continuous;
        venue.apply(&Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase })));
        venue
    }

    fn apply(&mut self, command: &Command) -> Vec<Event> {
        let (log_index, mut events) = (self.engine.last_applied().next(), Vec::new());
        self.engine.apply(log_index, TimeNs(DAY_NS), command, &mut events);
        events.iter().for_each(|event| self.reports.on_event(log_index, TimeNs(DAY_NS), event, |_, _| ()));
        events
    }

    /// Opens a session, and gives the server the outcome.
    fn open(&mut self, account: Option<AccountId>, token: u64, server: &mut FixServer) {
        let events = self.apply(&Command::Session(SessionCommand::Open(OpenSession { account, token })));
        let opened = events.iter().find_map(|event| match event {
            Event::Session(SessionEvent::Opened(opened)) => Some(opened.session),
            _ => None,
        });
        let session = opened.expect("the account may open sessions");
        let next = self.engine.session(session).expect("it is open").next;
        let start = SessionStart::new(session, next, account, ReportsWanted::After(0), &self.reports);
        server.opened(0, start, None);
        if let Resend::Found(reports) = self.reports.resend_named(ACCOUNT, start.reports_from - 1) {
            reports.for_each(|(report, name)| server.report(&report, name));
        }
    }

    /// Carries a command out, and gives the server the outcome.
    fn carry_out(&mut self, ordinal: Ordinal, command: &Command, server: &mut FixServer) {
        let (log_index, mut events) = (self.engine.last_applied().next(), Vec::new());
        let time = TimeNs(DAY_NS);
        match self.engine.apply_numbered(log_index, time, ordinal, command, &mut events) {
            Numbered::Done(answer) => server.answer(ordinal, answer, Some(time)),
            Numbered::Repeated(answer) => server.answer(ordinal, answer, None),
            Numbered::Refused(reason) => server.refused(ordinal, reason, None),
        }
        for event in &events {
            let names = match event {
                Event::Order(OrderEvent::Accepted(_)) | Event::Rejected(_) => [command.name(), None],
                Event::Order(OrderEvent::Amended(_)) => match command {
                    Command::Order(order) => [order.replacement_name(), None],
                    _ => OrderNames::default(),
                },
                _ => OrderNames::default(),
            };
            self.reports.on_named_event(log_index, time, event, names, |account, report, name| {
                assert_eq!(account, ACCOUNT);
                server.report(report, name);
            });
            if let Event::Session(SessionEvent::Closed(_)) = event {
                server.closed();
            }
        }
        self.engine.check_invariants();
    }
}

/// The commands and the output that a stream leads to, after a logon or without one.
fn venue_hears(stream: &[u8], cut: usize, logon: Option<Vec<u8>>) -> (Vec<(SessionId, Ordinal, Command)>, Vec<u8>) {
    let mut gateway = Gateway::new(GatewayConfig::new(DAY_NS));
    let permissions = Permissions::from_iter([Permission::Trade, Permission::Read]);
    gateway.add_key(key().record(Some(ACCOUNT), permissions).expect("a sound record")).expect("there is room");
    let mut venue = Venue::new();
    let catalog = Catalog::of(venue.engine.instruments().map(|view| view.spec), venue.engine.assets());
    let catalog = catalog.under(venue.engine.version());
    let mut server = FixServer::new(SETTINGS.with(Clone::clone), Secrecy::Private, Arc::new(catalog), 0, DAY_NS);
    let (mut host, mut done, mut output) = (Notes::default(), Vec::new(), Vec::new());
    if let Some(logon) = logon {
        server.on_bytes(0, DAY_NS, &logon, &mut host);
        serve(&mut server, &mut host, &mut gateway, &mut venue);
    }
    // Answers come after everything was read, so the commands do not depend on them.
    for piece in stream.chunks(cut) {
        server.on_bytes(0, DAY_NS, piece, &mut host);
        output.extend_from_slice(server.output());
        server.consume(server.output().len());
    }
    for _ in 0..64 {
        for (ordinal, command) in std::mem::take(&mut host.submitted) {
            done.push((ordinal.session, ordinal, command));
            venue.carry_out(ordinal, &command, &mut server);
        }
        serve(&mut server, &mut host, &mut gateway, &mut venue);
        output.extend_from_slice(server.output());
        server.consume(server.output().len());
        if host.submitted.is_empty() {
            break;
        }
    }
    (done, output)
}

/// Answers logons, and opens the sessions that they ask for.
fn serve(server: &mut FixServer, host: &mut Notes, gateway: &mut Gateway, venue: &mut Venue) {
    let source = SourceId::of(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
    for logon in std::mem::take(&mut host.logons) {
        server.authenticated(logon.authorize(gateway, DAY_NS, source), host);
    }
    for (account, token) in std::mem::take(&mut host.opens) {
        venue.open(account, token, server);
    }
    server.go_on(0, host);
}
