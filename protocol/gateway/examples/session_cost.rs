//! Measures the cost of an order on the venue's side of a connection: frames in, answers and reports out, separately and together.
//! `cargo run --release -p walras-gateway --example session_cost`. One thread, everything in memory: no sockets, no log, no engine.
//! It reports the median batch, which hides other load on the machine and rare costs such as page faults.
#![allow(clippy::unwrap_used, reason = "a measurement stops where something is wrong")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::sync::Arc;
use std::time::Instant;

use walras_gateway::session::{
    ClientAgreement, Host, LogonHash, LogonRequest, ReportSettings, Reports, Seals, ServerSettings, SessionServer, SessionStart,
    TransactionFrame, VenueKeys, signed_logon,
};
use walras_gateway::{
    Algorithm, Allowance, ClientKey, Gateway, GatewayConfig, Permission, Permissions, Principal, Rate, Refusal, SourceId,
};
use walras_types::{
    AccountId, ClientOrderId, InstrumentId, LogIndex, OrderId, OrderTerms, Ordinal, PriceTicks, SessionId, SessionSeq, Side,
    SizeLots, TimeNs, TradeId,
};
use walras_wire::order_entry::{
    ClientMessage, Copies, FRAME_HEADER_BYTES, Logon, LogonTerms, OnDisconnect, ReportsWanted, Role, Sealing, encode_client,
};
use walras_wire::{
    AccountEvent, Command, Event, NewOrder, OrderAccepted, OrderCommand, OrderEvent, Resting, TradeParty, Traded, content_digest,
    encode_command,
};

const NOW: u64 = 1_700_000_000_000_000_000;
const BATCH: u64 = 64;
const ORDERS: u64 = 4_000_000;

struct Venue {
    gateway: Gateway,
    logon: Option<LogonRequest>,
    ordinals: Vec<Ordinal>,
    is_charging: bool,
}

impl Host for Venue {
    fn authenticate(&mut self, logon: LogonRequest) {
        self.logon = Some(logon);
    }
    fn open(&mut self, _account: Option<AccountId>, _token: u64, _reports: ReportsWanted) {}
    fn charge(&mut self, now_ns: u64, principal: &Principal, permission: Permission, from: Allowance) -> Result<(), Refusal> {
        if self.is_charging { self.gateway.charge(now_ns, principal, permission, from, 1) } else { Ok(()) }
    }
    fn submit(&mut self, ordinal: Ordinal, command: &Command, _bytes: &[u8]) {
        assert!(matches!(command, Command::Order(OrderCommand::New(_))));
        self.ordinals.push(ordinal);
    }
    fn transactions(&mut self, _frame: TransactionFrame) {
        unreachable!("orders are sent");
    }
}

fn order(name: u64) -> Command {
    let terms = OrderTerms::limit(Side::Buy, PriceTicks::saturating(100), SizeLots::new(5));
    let client_order_id = ClientOrderId(name);
    Command::Order(OrderCommand::New(NewOrder { account: AccountId(0), instrument: InstrumentId(0), client_order_id, terms }))
}

fn accepted(log_index: u64) -> Event {
    Event::Order(OrderEvent::Accepted(OrderAccepted {
        instrument: InstrumentId(0),
        account: AccountId(0),
        client_order_id: ClientOrderId(log_index),
        order_id: OrderId(log_index),
        side: Side::Buy,
        size: SizeLots::new(5),
        price: Some(PriceTicks::saturating(100)),
        resting: Resting { open: SizeLots::new(5), shown: SizeLots::new(5) },
    }))
}

fn traded(log_index: u64) -> Event {
    let party = |account, order_id| TradeParty {
        account: AccountId(account),
        client_order_id: ClientOrderId(order_id),
        order_id: OrderId(order_id),
        open: SizeLots::new(0),
        fee: 3,
    };
    Event::Order(OrderEvent::Traded(Traded {
        instrument: InstrumentId(0),
        trade_id: TradeId(log_index),
        price: PriceTicks::saturating(100),
        size: SizeLots::new(5),
        taker_side: Side::Buy,
        maker: party((log_index % 1_000) as u32, log_index / 2),
        taker: party(0, log_index),
    }))
}

fn logged_on(venue: &mut Venue, sealing: Sealing) -> (SessionServer, Seals) {
    let key = ClientKey::generate(Algorithm::HmacSha256, &[1; ClientKey::ENTROPY_LEN]);
    let permissions = Permissions::from_iter([Permission::Trade, Permission::Read]);
    venue.gateway.add_key(key.record(Some(AccountId(0)), permissions).unwrap()).unwrap();
    let (role, copies, reports) = (Role::Account, Copies::One, ReportsWanted::New);
    let terms = LogonTerms { on_disconnect: OnDisconnect::Keep, role, token: 1, reports, copies, logon_seq: 1 };
    let (greeting, agreement) =
        (Arc::new(VenueKeys::new(&[1; VenueKeys::ENTROPY_LEN])).greeting(1), ClientAgreement::new(&[2; 32]));
    let (welcome, client_key, mut bytes) = (greeting.welcome(sealing), agreement.client_key(), Vec::new());
    let signature = key.sign_bytes(&signed_logon(&welcome.challenge, &welcome.venue_key, &client_key, &terms));
    let key_id = key.key_id();
    encode_client(&ClientMessage::Logon(Logon { terms, client_key, key_id: key_id.as_str(), signature: &signature }), &mut bytes);
    let seals = agreement.agree(welcome.venue_key, &LogonHash::of(&bytes[FRAME_HEADER_BYTES..])).unwrap();
    let mut server = SessionServer::new(ServerSettings { sealing, ..ServerSettings::default() }, greeting, NOW);
    server.on_bytes(NOW, &bytes, venue);
    let source = SourceId::of("10.0.0.1".parse().unwrap());
    let verdict = venue.logon.take().unwrap().authorize(&mut venue.gateway, NOW, source);
    server.authenticated(verdict, venue);
    server.opened(NOW, SessionStart { session: SessionId(1), next: SessionSeq(1), report_seq: 0, reports_from: 2 });
    server.consume(server.output().len());
    (server, seals)
}

/// Nanoseconds per order of: input, answers, reports made, reports sent. `run` is the number of orders that one seal covers; `None` where
/// nothing is sealed.
fn measure(is_charging: bool, run: Option<u64>) -> [f64; 4] {
    let rate = Rate::new(u32::MAX, u32::MAX).unwrap();
    let config = GatewayConfig { key_rate: rate, source_rate: rate, ..GatewayConfig::new(NOW) };
    let mut venue = Venue { gateway: Gateway::new(config), logon: None, ordinals: Vec::new(), is_charging };
    let sealing = if run.is_some() { Sealing::Required } else { Sealing::Off };
    let (mut server, mut seals) = logged_on(&mut venue, sealing);
    let mut reports = Reports::new(ReportSettings::default());
    (0..1_000).for_each(|account| {
        reports.on_event(LogIndex(1), TimeNs(NOW), &Event::Account(AccountEvent::Created(AccountId(account))), |_, _| ());
    });
    let (mut body, mut input, mut events) = (Vec::new(), Vec::new(), Vec::new());
    let (mut spent, mut report_count) = ([const { Vec::new() }; 4], 0_u64);
    // Reports of account 0 to be sent: their headers, and the encoded events end to end.
    let mut reported: Vec<(u64, LogIndex, usize)> = Vec::new();
    let mut reported_bytes: Vec<u8> = Vec::new();
    for batch in 0..ORDERS / BATCH {
        input.clear();
        let mut sealed_to = 0;
        events.clear();
        for number in batch * BATCH + 1..=(batch + 1) * BATCH {
            body.clear();
            encode_command(&order(number), &mut body);
            encode_client(&ClientMessage::Submit { session_seq: SessionSeq(number), command: &body }, &mut input);
            if run.is_some_and(|run| number % run == 0) {
                let seal = seals.seal(&input[sealed_to..]);
                encode_client(&ClientMessage::Seal(seal), &mut input);
                sealed_to = input.len();
            }
            events.push((LogIndex(number + 1), accepted(number + 1)));
            // Every second order trades, so there are two reports per order: one each, and two more for every second one.
            if number % 2 == 0 {
                events.push((LogIndex(number + 1), traded(number + 1)));
            }
        }
        let start = Instant::now();
        server.on_bytes(NOW + batch, &input, &mut venue);
        spent[0].push(start.elapsed().as_nanos());
        let start = Instant::now();
        let mut scratch = Vec::new();
        for ordinal in venue.ordinals.drain(..) {
            let content = content_digest(&order(ordinal.session_seq.0), &mut scratch);
            let answer = walras_types::Answer { log_index: LogIndex(ordinal.session_seq.0 + 1), rejected: None, content };
            server.answer(ordinal, answer, Some(TimeNs(NOW)));
        }
        spent[1].push(start.elapsed().as_nanos());
        let start = Instant::now();
        for (log_index, event) in &events {
            reports.on_event(*log_index, TimeNs(NOW), event, |account, report| {
                report_count += 1;
                if account == AccountId(0) {
                    reported_bytes.extend_from_slice(report.event);
                    reported.push((report.report_seq, report.log_index, report.event.len()));
                }
            });
        }
        spent[2].push(start.elapsed().as_nanos());
        let start = Instant::now();
        let mut rest = &reported_bytes[..];
        for (report_seq, log_index, len) in reported.drain(..) {
            let (event, after) = rest.split_at(len);
            rest = after;
            let report = walras_wire::order_entry::Report { report_seq, log_index, time: TimeNs(NOW), event };
            server.report(&report).unwrap();
        }
        spent[3].push(start.elapsed().as_nanos());
        reported_bytes.clear();
        server.consume(server.output().len());
    }
    assert!(!server.is_over() && server.unanswered_count() == 0, "every order was answered");
    assert_eq!(report_count, 2 * ORDERS, "two reports for each order");
    spent.map(|mut batches| {
        batches.sort_unstable();
        batches[batches.len() / 2] as f64 / BATCH as f64
    })
}

fn main() {
    println!("| ns per order, batches of {BATCH} | decode and check | answer | make 2 reports | send 1.5 reports | all |");
    let runs = [("not sealed", None), ("a seal for each order", Some(1)), ("a seal for 64 orders", Some(64))];
    for (throttle, is_charging) in [("without the key's throttle", false), ("with it", true)] {
        for (sealed, run) in runs {
            let [input, answer, make, send] = measure(is_charging, run);
            println!(
                "| {throttle}, {sealed} | {input:.0} | {answer:.0} | {make:.0} | {send:.0} | {:.0} |",
                input + answer + make + send
            );
        }
    }
}
