//! The messages that strategies in Rust read (`sdk/strategies/sdk`) are those of the feed: the same kinds, and of the test vectors the same
//! values.

#[path = "../../../../sdk/strategies/sdk/src/feed.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is the module of a crate that is built for another machine")]
mod sdk;

use std::collections::BTreeSet;

use sdk::{Head, Message};
use walras_feed::channel::{ChannelId, TREES_MAX, Trees, View};
use walras_feed::message::MESSAGES;
use walras_types::InstrumentId;
use walras_types::limits::INSTRUMENTS_MAX;

const VECTORS: &str = include_str!("../../../../docs/market-data-feed.tsv");

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// A field of a test vector as the value of the sdk's struct is written for debugging.
fn written(message: &str, field: &str, value: &str) -> String {
    let choice = |names: &[&str]| names[value.parse::<usize>().unwrap()].to_owned();
    match (message, field) {
        (_, "symbol") => format!("Symbol({value:?})"),
        (_, "allocation") => allocation(value),
        (_, "state_root") => format!("{:?}", bytes_of(value)),
        (_, "side") => choice(&["Buy", "Sell"]),
        (_, "taker_side") => choice(&["Some(Buy)", "Some(Sell)", "None"]),
        ("PhaseChanged", "phase") => choice(&["Closed", "PreOpen", "OpeningAuction", "Continuous", "Halt", "ClosingAuction"]),
        ("PhaseChanged", "cause") => choice(&["Operator", "PriceBand"]),
        ("BatchPhaseChanged", "phase") => choice(&["Closed", "Open"]),
        _ => match value.split_once(' ') {
            None => value.to_owned(),
            Some(("0", _)) => "None".to_owned(),
            Some((_, number)) => match number.strip_prefix("0x") {
                Some(bits) => format!("Some(BatchPrice({}))", u64::from_str_radix(bits, 16).unwrap()),
                None => format!("Some({number})"),
            },
        },
    }
}

/// Its rule, then the numbers of all rules: the least share, the most of the first order, the part by time.
fn allocation(value: &str) -> String {
    let numbers: Vec<&str> = value.split(' ').collect();
    let [rule, min_lots, top_lots_max, fifo_percent] = numbers[..] else { panic!("{value}") };
    match rule {
        "0" => "PriceTime".to_owned(),
        "1" => format!("ProRata {{ min_lots: {min_lots} }}"),
        "2" => format!("TopProRata {{ top_lots_max: {top_lots_max}, min_lots: {min_lots} }}"),
        _ => format!("Split {{ fifo_percent: {fifo_percent}, min_lots: {min_lots} }}"),
    }
}

#[test]
fn the_kinds_are_those_of_the_schema() {
    let of_feed: Vec<(u8, &str, usize)> = MESSAGES.iter().map(|schema| (schema.kind, schema.name, schema.bytes)).collect();
    assert_eq!(sdk::MESSAGES, of_feed);
}

#[test]
fn the_channels_of_snapshots_are_those_of_the_feed() {
    for trees in (1..=TREES_MAX).map(|count| Trees::new(count).unwrap()) {
        for channel in (0..TREES_MAX).map(|at| ChannelId::instrument(View::Top, InstrumentId(at))) {
            assert!(sdk::is_of_snapshots(channel.snapshots_of(trees).get()) && !sdk::is_of_snapshots(channel.get()));
        }
    }
    assert!(!sdk::is_of_snapshots(ChannelId::instrument(View::Top, InstrumentId(INSTRUMENTS_MAX - 1)).get()));
}

#[test]
fn every_test_vector_has_its_values() {
    let mut seen = BTreeSet::new();
    for line in VECTORS.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, hex, log_index, time_ns, last, fields] = cells[..] else { panic!("{line}") };
        let bytes = bytes_of(hex);
        let (head, message) = Message::decode(&bytes).unwrap_or_else(|| panic!("{line}"));
        let expected = Head { is_last: last == "1", log_index: log_index.parse().unwrap(), time_ns: time_ns.parse().unwrap() };
        assert_eq!(head, expected, "{line}");
        let fields: Vec<String> = fields
            .split("; ")
            .map(|field| {
                let (field, value) = field.split_once('=').unwrap();
                format!("{field}: {}", written(name, field, value))
            })
            .collect();
        assert_eq!(format!("{message:?}"), format!("{name}({name} {{ {} }})", fields.join(", ")), "{line}");
        seen.insert(name);
    }
    assert!(sdk::MESSAGES.iter().all(|(_, name, _)| seen.contains(name)), "{seen:?}");
}

#[test]
fn what_is_no_message_gives_none() {
    for line in VECTORS.lines().skip(1) {
        let bytes = bytes_of(line.split('\t').nth(1).unwrap());
        for cut in 0..bytes.len() {
            assert_eq!(Message::decode(&bytes[..cut]), None, "{cut} bytes of {line}");
        }
        assert_eq!(Message::decode(&[&bytes[..], &[0]].concat()), None, "a byte too many: {line}");
        // The version, the kind, a flag that is not known.
        for (at, byte) in [(0, 2), (1, 99), (2, 2)] {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            assert_eq!(Message::decode(&bytes), None, "byte {at} of {line}");
        }
    }
    assert_eq!(sdk::market_of(0x0300_0007), 7);
}
