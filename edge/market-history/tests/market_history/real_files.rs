//! Tests on real files, from `WALRAS_DATA` or from `../shared/data` next to the repository. Missing files are reported and skipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use walras_market_history::bitstamp::{BitstampAction, BitstampLogReader, BitstampMessage, BitstampOrdersReader};
use walras_market_history::itch::lobster_to_itch;
use walras_market_history::lobster::{LobsterMessage, LobsterReader, LobsterWriter};
use walras_market_history::sse::{SseMessage, SseOrderKind, SseReader, SseTradeKind};
use walras_market_history::workload::solve;
use walras_market_history::workload_file::{WorkloadReader, WorkloadResult};
use walras_market_history::*;

const LOBSTER: &str = "lobster/AAPL_2012-06-21_34200000_37800000_message_50.csv";
const SSE: &str = "sse/AX_sbe_sse_600519.zip";
const BITSTAMP_LOG: &str = "bitstamp/2015-05-01.log.xz";
const BITSTAMP_ORDERS: &str = "bitstamp/orders.csv.xz";
const WORKLOAD: &str = "ec-workload/ec_1k_3m.bin.xz";
const WORKLOAD_EXPECT: &str = "ec-workload/ec_1k_3m.bin.expect";

fn find(file: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("WALRAS_DATA") {
        Some(root) => PathBuf::from(root),
        None => {
            // A second worktree of the repository lies one folder deeper than the first.
            let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let next_to_it = ["../shared/data", "../../shared/data"].map(|data| repository.join(data));
            next_to_it.into_iter().find(|data| data.is_dir())?
        }
    };
    Some(root.join(file)).filter(|path| path.is_file())
}

macro_rules! file_or_skip {
    ($file:expr) => {
        match find($file) {
            Some(path) => path,
            None => {
                eprintln!("SKIPPED: {} is neither in WALRAS_DATA nor in ../shared/data", $file);
                return;
            }
        }
    };
}

fn count_kinds(path: &Path, scale: Option<TickScale>) -> Tally {
    let mut tally = Tally::new(scale);
    for event in History::open(path).unwrap() {
        tally.count(&event.unwrap());
    }
    tally
}

#[test]
fn the_aapl_hour_has_its_counts() {
    let path = file_or_skip!(LOBSTER);
    assert_eq!(detect(&path).unwrap(), Format::Lobster);
    let mut by_type = BTreeMap::new();
    for message in LobsterReader::new(open_bytes(&path).unwrap()) {
        *by_type.entry(message.unwrap().message_type as u8).or_insert(0u64) += 1;
    }
    let expected = [(1, 44_256), (2, 469), (3, 41_004), (4, 4_067), (5, 2_201)];
    assert_eq!(by_type, BTreeMap::from(expected));

    let cents = TickScale::new(100, 1);
    let tally = count_kinds(&path, cents);
    assert_eq!(tally.events, 91_997);
    assert_eq!((tally.adds, tally.reduces, tally.deletes, tally.executions, tally.trades), (44_256, 469, 41_004, 4_067, 2_201));
    // Hidden orders pegged to the middle trade between two cents; all else is in whole cents.
    assert_eq!((tally.off_tick, tally.off_lot, tally.back_in_time), (19, 0, 0));
    assert_eq!(tally.first_time_ns, Some(34_200_004_241_176));
    assert!(tally.last_time_ns.unwrap() < 37_800_000_000_000);
}

#[test]
fn the_aapl_hour_survives_being_written_as_lobster_and_as_itch() {
    let path = file_or_skip!(LOBSTER);
    let messages: Vec<LobsterMessage> = LobsterReader::new(open_bytes(&path).unwrap()).map(Result::unwrap).collect();

    let mut writer = LobsterWriter::new(Vec::new());
    for message in &messages {
        writer.write(message).unwrap();
    }
    let rewritten = writer.finish().unwrap();
    let reread: Vec<_> = LobsterReader::new(&rewritten[..]).map(Result::unwrap).collect();
    assert_eq!(reread, messages);

    let mut itch = Vec::new();
    let counts = lobster_to_itch(&rewritten[..], &mut itch, *b"AAPL    ").unwrap();
    assert_eq!((counts.messages_in, counts.messages_out), (91_997, 91_997 + 8));
    assert_eq!(detect_bytes(&itch[..4_096]), Some(Format::Itch));
    let mut history = History::new(&itch[..], Format::Itch);
    // What ITCH does not say of an event, LOBSTER does; without it they are equal.
    let mut expected = messages.iter();
    for event in history.by_ref() {
        let event = event.unwrap();
        if matches!(event.kind, HistoryKind::Phase(_) | HistoryKind::Directory { .. }) {
            continue;
        }
        assert_eq!(event.instrument, 1);
        let from = expected.next().unwrap().event(event.index);
        let kind = match from.kind {
            HistoryKind::Reduce { order_ref, size, .. } => HistoryKind::Reduce { order_ref, size, stated: None },
            HistoryKind::Delete { order_ref, .. } => HistoryKind::Delete { order_ref, open_size: None, stated: None },
            HistoryKind::Execute { order_ref, size, .. } => HistoryKind::Execute { order_ref, size, stated: None },
            HistoryKind::Trade { price, size, .. } => {
                HistoryKind::Trade { price, size, aggressor: None, buy_ref: None, sell_ref: None }
            }
            other => other,
        };
        assert_eq!((event.time_ns, event.kind), (from.time_ns, kind));
    }
    assert_eq!(expected.next(), None);
    // O and C, the first and last of the day, say nothing of a phase.
    assert_eq!(history.skipped(), 2);
}

#[test]
fn the_shanghai_day_has_its_counts() {
    let path = file_or_skip!(SSE);
    assert_eq!(detect(&path).unwrap(), Format::Sse);
    let mut reader = SseReader::new(open_bytes(&path).unwrap());
    let (mut adds, mut deletes, mut trades, mut auction_trades, mut snapshots) = (0, 0, 0, 0, 0);
    let (mut indicative, mut last_order, mut last_trade, mut auction_sizes) = (0, 0, 0, BTreeMap::new());
    let mut in_exchange_order = BTreeMap::new();
    let mut last_day = DayTotals::default();
    while let Some(message) = reader.next_message() {
        let (_, timed) = message.unwrap();
        assert_eq!(timed.security_id, 600_519);
        if let Some(place) = timed.biz_index {
            assert_eq!(in_exchange_order.insert(place, timed.time_ns), None);
        }
        match timed.message {
            SseMessage::Order { kind, sequence, .. } => {
                match kind {
                    SseOrderKind::Add => adds += 1,
                    SseOrderKind::Delete => deletes += 1,
                }
                assert!(sequence > last_order);
                last_order = sequence;
            }
            SseMessage::Trade { kind, sequence, price, size, .. } => {
                trades += 1;
                if kind == SseTradeKind::Auction {
                    auction_trades += 1;
                    *auction_sizes.entry((timed.time_ns, price.0)).or_insert(0) += size.0;
                }
                assert!(sequence > last_trade);
                last_trade = sequence;
            }
            SseMessage::Snapshot { .. } => {
                snapshots += 1;
                let snapshot = reader.snapshot();
                indicative += u64::from(snapshot.indicative.is_some());
                last_day = snapshot.day.unwrap();
                for side in [snapshot.bids, snapshot.asks] {
                    assert!(side.as_slice().iter().all(|level| level.price.0 > 0 && level.size.0 > 0));
                }
            }
        }
    }
    assert_eq!(in_exchange_order.len(), 45_764 + 18_685);
    assert!(in_exchange_order.values().is_sorted(), "sorted by their number, messages are in order of time");
    assert_eq!((adds, deletes, trades, auction_trades, snapshots), (31_612, 14_152, 18_685, 546, 5_146));
    // 42,718 shares at 1808.08 opened the day, 40,203 at 1797.00 closed it.
    let at = |hours: u64, minutes: u64, hundredths: u64| ((hours * 60 + minutes) * 6_000 + hundredths) * 10_000_000;
    let expected = [((at(9, 25, 8), 1_808_080), 42_718_000), ((at(15, 0, 5), 1_797_000), 40_203_000)];
    let sizes: Vec<_> = auction_sizes.into_iter().collect();
    assert_eq!(sizes.iter().map(|&((_, price), size)| (price, size)).collect::<Vec<_>>(), expected.map(|((_, p), s)| (p, s)));
    eprintln!("auction times {sizes:?}, {indicative} indicative snapshots, last day totals {last_day:?}");
    assert_eq!((last_day.trade_count, last_day.phase), (18_685, Some(MarketPhase::Closed)));

    let tally = count_kinds(&path, TickScale::new(10, 1_000));
    assert_eq!((tally.events, tally.off_tick, tally.off_lot), (69_595, 0, 0));
    assert_eq!(tally.traded_size, u128::from(last_day.traded_size.0));
}

#[test]
fn the_bitstamp_hours_have_their_counts() {
    let path = file_or_skip!(BITSTAMP_LOG);
    assert_eq!(detect(&path).unwrap(), Format::BitstampLog);
    let mut orders = Vec::new();
    let (mut trades, mut books) = (0, 0);
    let mut reader = BitstampLogReader::new(open_bytes(&path).unwrap());
    while let Some(message) = reader.next_message() {
        let (_, timed) = message.unwrap();
        match timed.message {
            BitstampMessage::Order { .. } => orders.push(timed),
            BitstampMessage::Trade { .. } => trades += 1,
            BitstampMessage::OrderBook => {
                books += 1;
                assert_eq!((reader.snapshot().bids.count(), reader.snapshot().asks.count()), (20, 20));
            }
        }
    }
    let count = |wanted| {
        orders.iter().filter(|timed| matches!(timed.message, BitstampMessage::Order { action, .. } if action == wanted)).count()
    };
    let actions = [BitstampAction::Created, BitstampAction::Deleted, BitstampAction::Changed].map(count);
    assert_eq!((actions, trades, books), ([24_894, 24_918, 602], 575, 5_011));

    // Another program parsed the same events: it must have seen what we see.
    let path = file_or_skip!(BITSTAMP_ORDERS);
    assert_eq!(detect(&path).unwrap(), Format::BitstampOrders);
    let parsed: Vec<_> = BitstampOrdersReader::new(open_bytes(&path).unwrap()).map(Result::unwrap).collect();
    assert_eq!(parsed.len(), 50_414);
    let mut a_satoshi_short = 0;
    for (mut theirs, ours) in parsed.into_iter().zip(orders) {
        // It cut off sizes that it held as floats.
        if let (BitstampMessage::Order { size: theirs, .. }, BitstampMessage::Order { size: ours, .. }) =
            (&mut theirs.message, ours.message)
            && theirs.0 + 1 == ours.0
        {
            *theirs = ours;
            a_satoshi_short += 1;
        }
        assert_eq!(theirs, ours);
    }
    assert_eq!(a_satoshi_short, 4_066);
}

#[test]
fn the_exchange_core_stream_has_its_mix_and_its_answer() {
    let path = file_or_skip!(WORKLOAD);
    let expect = file_or_skip!(WORKLOAD_EXPECT);
    assert_eq!(detect(&path).unwrap(), Format::Workload);
    let text = std::fs::read_to_string(expect).unwrap();
    let expected = WorkloadResult::parse(&text).unwrap();
    assert_eq!(expected.to_string(), text);
    assert_eq!((expected.mix.total(), expected.trades, expected.volume_lots), (3_001_000, 123_249, 1_041_584));
    let commands = WorkloadReader::new(open_bytes(&path).unwrap()).map(Result::unwrap);
    assert_eq!(solve(commands, expected.fill_commands), expected);
}
