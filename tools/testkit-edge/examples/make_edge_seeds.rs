//! Writes the seeds that follow from others: snapshots of a node, of the parts that `make_seeds` of `walras-testkit` wrote; the
//! journals of an archive; and markets that are hard to price. Run that first, then `cargo run -p walras-testkit-edge --example
//! make_edge_seeds`. The other seeds of the edge are texts and short messages, written by hand.
#![allow(clippy::unwrap_used, reason = "a tool for developers: it stops where it cannot write")]

use std::path::Path;

use walras_archive::{DbnForm, Files, Keeper, Settings};
use walras_engine::Engine;
use walras_gateway::session::{ReportSettings, Reports};
use walras_market_data::{AccountRecord, EndedOrders, Fill, FillRole, Fills, OrderHistories, RecordId, Recorded};
use walras_price_solver::families::Family;
use walras_testkit::Choices;
use walras_testkit::commands::{self, Range};
use walras_testkit::smoke::seed_folder;
use walras_testkit_edge::archive;
use walras_testkit_edge::batches::{Grain, Sell, encode, of_family};
use walras_types::{AccountId, ClientOrderId, InstrumentId, LogIndex, OrderId, PriceTicks, Side, SizeLots, TimeNs, TradeId};
use walras_wire::{Event, OrderAccepted, OrderEvent, Resting, TradeParty, Traded};

fn fill(number: u64, side: Side, role: FillRole) -> Fill {
    Fill {
        instrument: InstrumentId(0),
        trade_id: TradeId(number),
        order_id: OrderId(number + 7),
        client_order_id: ClientOrderId(3),
        name: None,
        time: TimeNs(number * 2),
        side,
        price: PriceTicks::saturating(30_000),
        size: SizeLots::new(5),
        fee: -4,
        open: SizeLots::ZERO,
        role,
    }
}

/// Of two orders, one of which has traded in part; and a third one that has ended.
fn orders() -> (OrderHistories, EndedOrders) {
    let (mut histories, mut ended, mut records) = (OrderHistories::default(), EndedOrders::default(), Vec::new());
    let (instrument, lots) = (InstrumentId(0), SizeLots::new);
    for id in [8, 12, 13] {
        let accepted = Event::Order(OrderEvent::Accepted(OrderAccepted {
            instrument,
            account: AccountId(0),
            client_order_id: ClientOrderId(id),
            order_id: OrderId(id),
            side: Side::Buy,
            size: lots(9),
            price: Some(PriceTicks::saturating(30_000)),
            resting: Resting { open: lots(9), shown: lots(9) },
        }));
        histories.on_entry(LogIndex(id), TimeNs(id), None, &[accepted], &mut Vec::new());
    }
    let party = |id, open| TradeParty {
        account: AccountId(0),
        client_order_id: ClientOrderId(id),
        order_id: OrderId(id),
        open: lots(open),
        fee: 0,
    };
    let (price, size) = (PriceTicks::saturating(30_000), lots(4));
    let (trade_id, maker, taker) = (TradeId(1), party(8, 5), party(13, 0));
    let traded = Traded { instrument, trade_id, price, size, taker_side: Side::Sell, maker, taker };
    histories.on_entry(LogIndex(13), TimeNs(13), None, &[Event::Order(OrderEvent::Traded(traded))], &mut records);
    for Recorded { id, account, record } in records {
        if let AccountRecord::Ended(order) = record {
            ended.push(account, id, order);
        }
    }
    (histories, ended)
}

fn main() {
    let mut fills = Fills::default();
    let place = |log_index| RecordId { log_index: LogIndex(log_index), number: 0 };
    fills.push(AccountId(0), place(1), fill(1, Side::Buy, FillRole::Maker));
    fills.push(AccountId(0), place(2), fill(2, Side::Sell, FillRole::Taker));
    fills.push(AccountId(4), place(3), fill(3, Side::Buy, FillRole::Auction));
    for (name, fills) in [("after-0", Fills::default()), ("after-40", fills.clone()), ("after-90", fills)] {
        let part = |target: &str| std::fs::read(seed_folder(target).join(name)).unwrap();
        let mut of_fills = Vec::new();
        fills.snapshot(&mut of_fills);
        let (mut bytes, mut of_reports) = (Vec::new(), Vec::new());
        Reports::new(ReportSettings::default()).snapshot(&mut of_reports);
        let (mut of_histories, mut of_ended) = (Vec::new(), Vec::new());
        let (histories, ended) = if fills == Fills::default() { Default::default() } else { orders() };
        histories.snapshot(&mut of_histories);
        ended.snapshot(&mut of_ended);
        let of_feed = Vec::new();
        let parts = [
            part("engine_restore"),
            part("market_data_restore"),
            of_fills,
            of_reports,
            of_histories,
            of_feed,
            of_ended,
            vec![0; 4],
        ];
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&part);
        }
        std::fs::write(seed_folder("node_snapshot").join(name), bytes).unwrap();
    }
    write_journals();
    write_markets();
}

/// Begins at ten in the evening of the seeds' day.
const BEGIN_NS: u64 = 1_795_212_000_000_000_000;
/// Between two pictures. A seed is to stay below what a fuzzer takes, 4096 bytes.
const EVERY_NS: u64 = 200_000_000;

/// The journals of a small market, made durable after so many entries and again after the last: a day that grows.
fn journals(folder: &Path, entries: u64, depth: u32, lost: std::ops::Range<u64>) -> Vec<u8> {
    let settings = Settings {
        folder: folder.to_path_buf(),
        depth,
        snapshot_every_ns: EVERY_NS,
        parquet: false,
        dbn: false,
        dbn_form: DbnForm::default(),
        orders: false,
        keep_days: 0,
    };
    let mut keeper = Keeper::open(settings, Files::default()).unwrap();
    let (sender, batches) = crossbeam_channel::unbounded();
    let mut engine = Engine::new();
    let mut recorder = walras_archive::Recorder::new(sender, depth as usize, EVERY_NS, LogIndex(1), &engine);
    let c = &mut Choices::of_seed(7);
    let mut opening = commands::opening(c, Range::Near).into_iter();
    for at in 1..=entries {
        let time = TimeNs(BEGIN_NS + at * 9_000_000);
        let command = opening.next().unwrap_or_else(|| commands::command(c, Range::Near, time));
        let mut events = Vec::new();
        engine.apply(LogIndex(at), time, &command, &mut events);
        recorder.on_entry(LogIndex(at), time, &events, &[], &engine);
        recorder.flush();
        batches.try_iter().filter(|_| !lost.contains(&at)).for_each(|batch| keeper.take(batch));
        if at == entries / 2 {
            keeper.commit().unwrap();
        }
    }
    keeper.commit().unwrap();
    let dir = folder.join(format!("{}.partial", archive::DAY));
    archive::join(&std::fs::read(dir.join("trades.journal")).unwrap(), &std::fs::read(dir.join("books.journal")).unwrap())
}

fn write_journals() {
    let target = seed_folder("archive_journals");
    std::fs::create_dir_all(&target).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(target.join(name), bytes).unwrap();
    let made = |entries, depth, lost| journals(tempfile::tempdir().unwrap().path(), entries, depth, lost);
    let whole = made(160, 1, 0..0);
    write("whole", &whole);
    write("deep", &made(110, 4, 0..0));
    write("missing", &made(160, 1, 110..125));
    write("headers", &made(1, 1, 0..0));
    write("cut", &whole[..whole.len() - 17]);
    let mut flipped = whole.clone();
    flipped[200] ^= 4;
    write("flipped", &flipped);
    let mut oversized = whole;
    // A header that speaks of pictures as large as can be.
    let length = usize::from(u16::from_le_bytes([oversized[0], oversized[1]]));
    oversized[2 + length + 12..][..4].copy_from_slice(&1_000_u32.to_le_bytes());
    write("oversized", &oversized);
}

/// Markets that `make break` once found hard: as they are, and read as offers for which whole units are fine enough. And one of each family
/// of hard markets.
fn write_markets() {
    let target = seed_folder("clear_market");
    std::fs::create_dir_all(&target).unwrap();
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../edge/price-solver/tests/found");
    for entry in std::fs::read_dir(found).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let offers: Vec<Sell> = text.lines().filter(|line| !line.starts_with('#')).skip(1).map(sell_of).collect();
        let asset_count = offers.iter().map(|offer| offer.sell.max(offer.buy) + 1).max().unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        for (name, grain) in [(name.to_owned(), Grain::Any), (format!("{name}-fine"), Grain::Fine)] {
            std::fs::write(target.join(name), encode(asset_count, grain, &offers)).unwrap();
        }
    }
    for family in Family::ALL {
        let name = format!("family-{family:?}").to_lowercase();
        std::fs::write(target.join(name), of_family(family, 1, Grain::Any)).unwrap();
    }
}

fn sell_of(line: &str) -> Sell {
    let fields: Vec<&str> = line.split(',').collect();
    // Some amounts are written with a power of ten.
    let units: f64 = fields[3].parse().unwrap();
    let units = format!("{units:.0}").parse().unwrap();
    Sell { sell: fields[0].parse().unwrap(), buy: fields[1].parse().unwrap(), limit: fields[2].parse().unwrap(), units }
}
