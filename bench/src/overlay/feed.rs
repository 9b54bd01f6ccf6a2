//! What the feed costs for each event of the engine: encoding it in all views, packets with seals, and a reader's copy of the book.

use std::time::Instant;

use anyhow::ensure;
use walras_engine::Engine;
use walras_feed::book::Content;
use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::publisher::{Publisher, Views};
use walras_feed::reader::MarketReader;
use walras_feed::sender::{Packets, Sender, SenderSettings};
use walras_random::Random;
use walras_relay::packet::{PACKET_BYTES_MAX, Packet, TreeKey};
use walras_relay::reader::ReaderSettings;
use walras_types::{
    AccountId, Allocation, Amount, AssetId, ClientOrderId, Display, FeeSchedule, InstrumentId, InstrumentSpec, LogIndex,
    OrderTerms, OrderType, PostOnly, PriceTicks, RiskLimits, SelfTrade, Side, SizeLots, Symbol, TimeInForce, TimeNs, TradingPhase,
    TransferId,
};
use walras_wire::{
    AccountCommand, AssetSpec, CancelOrder, Command, Event, InstrumentCommand, NewOrder, OrderCommand, SetTradingPhase, Transfer,
    VenueCommand,
};

use super::Config;
use crate::report::{Figure, Report, Unit};

const INSTRUMENT: InstrumentId = InstrumentId(0);
const ACCOUNTS: u32 = 16;
const SEED: u64 = 21;
const KEY: [u8; 32] = [4; 32];
/// Entries that one publication has, as a busy leader's rounds do.
const ENTRIES_PER_PUBLICATION: usize = 8;
const READER: ReaderSettings = ReaderSettings { held_max: 64, gap_wait_ns: 1, retry_ns: 1, request_max: 64 };

/// A venue's past: the events of each entry, and the engine after the last one.
struct Past {
    engine: Engine,
    entries: Vec<Vec<Event>>,
    event_count: usize,
}

impl Past {
    /// A market around a price that wanders: six of ten commands are new orders near it, three cancels, one takes.
    fn of(commands: usize) -> Self {
        let mut past = Self { engine: Engine::new(), entries: Vec::new(), event_count: 0 };
        opening().iter().for_each(|command| past.apply(command));
        let (draw, mut price, mut names, mut open) = (&mut Random::new(SEED), 100_000_i64, 0, Vec::new());
        for _ in 0..commands {
            let account = AccountId(draw.below(ACCOUNTS.into()) as u32);
            let side = Side::BOTH[draw.below(2) as usize];
            price += draw.below(3) as i64 - 1;
            let command = match draw.below(10) {
                0..6 => {
                    let away = 1 + draw.below(40) as i64;
                    names += 1;
                    open.push((account, ClientOrderId(names)));
                    let limit = if side == Side::Buy { price - away } else { price + away };
                    new_order(account, ClientOrderId(names), side, limit, 1 + draw.below(50), TimeInForce::GoodTillCancel)
                }
                6..9 if !open.is_empty() => {
                    let (account, client_order_id) = open.swap_remove(draw.below(open.len() as u64) as usize);
                    Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument: INSTRUMENT, client_order_id }))
                }
                _ => {
                    names += 1;
                    let limit = if side == Side::Buy { price + 20 } else { price - 20 };
                    new_order(account, ClientOrderId(names), side, limit, 1 + draw.below(80), TimeInForce::ImmediateOrCancel)
                }
            };
            past.apply(&command);
        }
        past
    }

    fn apply(&mut self, command: &Command) {
        let mut events = Vec::new();
        self.engine.apply(self.engine.last_applied().next(), TimeNs(self.entries.len() as u64), command, &mut events);
        self.event_count += events.len();
        self.entries.push(events);
    }
}

fn opening() -> Vec<Command> {
    let symbol = |text| Symbol::new(text).expect("a sound symbol");
    let asset = |asset, name| {
        Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: AssetId(asset), symbol: symbol(name), decimals: 2 }))
    };
    let mut commands = vec![asset(0, "BTC"), asset(1, "USD")];
    commands.push(Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
        instrument: INSTRUMENT,
        symbol: symbol("BTC/USD"),
        base: AssetId(0),
        quote: AssetId(1),
        lot_units: 1,
        tick_value_units: 1,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
        collar_ppm: 1_000_000,
        band_ppm: 1_000_000,
        reference_price: PriceTicks::saturating(100_000),
        default_limits: RiskLimits::NONE,
    })));
    for account in (0..ACCOUNTS).map(AccountId) {
        commands.push(Command::Account(AccountCommand::Create(account)));
        for asset in [AssetId(0), AssetId(1)] {
            let (amount, transfer_id) = (Amount::new(1 << 50).unwrap_or(Amount::MAX), TransferId(u64::from(asset.0) + 1));
            commands.push(Command::Account(AccountCommand::Deposit(Transfer { account, asset, amount, transfer_id })));
        }
    }
    let phase = TradingPhase::Continuous;
    commands.push(Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument: INSTRUMENT, phase })));
    commands
}

fn new_order(
    account: AccountId,
    client_order_id: ClientOrderId,
    side: Side,
    limit: i64,
    lots: u64,
    time_in_force: TimeInForce,
) -> Command {
    let order_type = OrderType::Limit { price: PriceTicks::saturating(limit), post_only: PostOnly::Off };
    let (size, display, self_trade) = (SizeLots::new(lots), Display::Full, SelfTrade::Allow);
    let terms = OrderTerms { side, size, order_type, time_in_force, display, min_size: None, self_trade };
    Command::Order(OrderCommand::New(NewOrder { account, instrument: INSTRUMENT, client_order_id, terms }))
}

/// All packets of a past, one round: nanoseconds for each event of publishing alone, and with packets and seals.
fn encode(past: &Past, views: Views) -> anyhow::Result<([f64; 2], Packets)> {
    let began = Instant::now();
    let mut publisher = Publisher::new(views);
    let mut encoded = 0;
    publish(past, &mut publisher, |publisher| publisher.take(|run| encoded += run.messages().count()))?;
    let alone = began.elapsed();
    ensure!(encoded > past.entries.len() / 2, "most entries have a message, {encoded} were encoded");
    let (mut publisher, mut packets) = (Publisher::new(views), Packets::default());
    let mut sender = Sender::new(SenderSettings {
        tree: 1,
        trees: Trees::ONE,
        epoch: 0,
        first_number: 1,
        key: TreeKey::new(KEY),
        packet_bytes: PACKET_BYTES_MAX,
        rewind_bytes_max: 1 << 22,
        rewind_total_bytes_max: 1 << 30,
        heartbeat_ns: u64::MAX,
        snapshot_bytes_per_s: 1,
        rotation_ns_min: u64::MAX,
    });
    let began = Instant::now();
    publish(past, &mut publisher, |publisher| sender.publish(publisher, 1, 1, &mut packets))?;
    let sealed = began.elapsed();
    Ok(([alone, sealed].map(|time| time.as_nanos() as f64 / past.event_count as f64), packets))
}

fn publish(past: &Past, publisher: &mut Publisher, mut take: impl FnMut(&mut Publisher)) -> anyhow::Result<()> {
    for (at, events) in past.entries.iter().enumerate() {
        publisher.begin(LogIndex(at as u64 + 1), TimeNs(at as u64))?;
        for event in events {
            publisher.on_event(event)?;
        }
        publisher.end();
        if at % ENTRIES_PER_PUBLICATION == 0 {
            take(publisher);
        }
    }
    take(publisher);
    Ok(())
}

/// A reader by order takes all packets: nanoseconds for each event, without the check of seals. Its book must be the engine's.
fn apply(past: &Past, packets: &Packets) -> anyhow::Result<f64> {
    let key = TreeKey::new(KEY);
    let mut sound = Vec::new();
    for (_, bytes) in packets.iter() {
        sound.push(Packet::decode(bytes, &key)?);
    }
    let mut reader = MarketReader::from_the_start(ChannelId::instrument(View::Orders, INSTRUMENT), READER);
    let began = Instant::now();
    sound.iter().for_each(|packet| reader.packet(1, packet, |_, _| {}));
    let took = began.elapsed();
    ensure!(reader.error().is_none(), "the reader gave up: {:?}", reader.error());
    let book = reader.book().map(|book| book.content());
    let Some(Content::Orders(orders)) = book else { anyhow::bail!("the reader has no book") };
    for side in Side::BOTH {
        let mut depth = Vec::new();
        past.engine.depth(INSTRUMENT, side, usize::MAX, &mut depth);
        let theirs = depth.iter().map(|level| (level.price, level.shown, level.order_count));
        let ours = orders.levels().levels(side).map(|level| (level.price, level.shown, level.order_count));
        ensure!(ours.eq(theirs), "the reader's {side:?} levels are not the engine's");
    }
    Ok(took.as_nanos() as f64 / past.event_count as f64)
}

pub(super) fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let past = Past::of(config.commands);
    let mut samples: [Vec<f64>; 3] = [const { Vec::new() }; 3];
    for _ in 0..config.rounds {
        let ([alone, _], _) = encode(&past, Views::ALL)?;
        let ([_, sealed], packets) = encode(&past, Views::of(&[View::Orders]))?;
        for (samples, sample) in samples.iter_mut().zip([alone, sealed, apply(&past, &packets)?]) {
            samples.push(sample);
        }
    }
    report.check(format!("a reader's book is the engine's after {} events of {} commands", past.event_count, config.commands));
    let names = ["feed_ns_per_event_encode", "feed_ns_per_event_sealed_by_order", "feed_ns_per_event_apply"];
    for (name, samples) in names.into_iter().zip(samples) {
        let median = report.samples(name, samples);
        report.figure(Figure::new(name, median, Unit::Ns));
    }
    report.note(
        "encode: the views by order, by level and of the top together; sealed_by_order: one view with packets, seals and what a \
         rewinder keeps; apply: a reader by order, whose packets were checked before",
    );
    Ok(())
}
