//! What is written of the schema: the tables of the document, the dissector's table, and test vectors.

use std::fmt::Write;

use walras_feed::Primitive;
use walras_feed::message::*;
use walras_types::{
    Allocation, AssetId, BatchMarketId, BatchPhase, BatchPrice, InstrumentId, OrderId, PriceTicks, Side, SizeLots, Symbol, TradeId,
    TradingPhase,
};
use walras_wire::PhaseCause;

/// The tables of `docs/market-data-feed.md`.
pub(crate) fn tables() -> String {
    let mut out = String::from("\n| bytes | field | type | what |\n| --- | --- | --- | --- |\n");
    let mut at = 0;
    HEAD.iter().for_each(|field| at = rows(field, at, &mut out));
    for message in MESSAGES {
        write!(out, "\n### {} {}\n\n{}\n\n", message.kind, message.name, wrapped(message.docs)).unwrap();
        out.push_str("| bytes | field | type | what |\n| --- | --- | --- | --- |\n");
        let mut at = HEAD_BYTES;
        message.fields.iter().for_each(|field| at = rows(field, at, &mut out));
        assert_eq!(at, message.bytes);
    }
    out.push('\n');
    out
}

fn wrapped(docs: &[&str]) -> String {
    docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n")
}

fn rows(field: &FieldSchema, mut at: usize, out: &mut String) -> usize {
    let docs = field.docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    for (name, primitive, values) in field.parts() {
        let listed: Vec<String> = values.iter().map(|(number, meaning)| format!("{number}: {meaning}")).collect();
        let what = if name == field.name { docs.as_str() } else { "" };
        let what = [what, &listed.join("; ")].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
        writeln!(out, "| {at} | `{name}` | {} | {what} |", primitive.name()).unwrap();
        at += primitive.bytes();
    }
    at
}

/// The table of `sdk/wireshark/walras.lua`.
pub(crate) fn dissector_table() -> String {
    let mut out = String::from("\nlocal messages = {\n");
    for message in MESSAGES {
        writeln!(out, "  [{}] = {{ name = \"{}\", fields = {{", message.kind, message.name).unwrap();
        for (name, primitive, values) in message.fields.iter().flat_map(FieldSchema::parts) {
            let (kind, bytes) = match primitive {
                Primitive::U8 => ("uint8", 1),
                Primitive::U16 => ("uint16", 2),
                Primitive::U32 => ("uint32", 4),
                Primitive::U64 => ("uint64", 8),
                Primitive::I32 => ("int32", 4),
                Primitive::I64 => ("int64", 8),
                Primitive::Binary64 => ("double", 8),
                Primitive::Text(bytes) => ("stringz", bytes),
                Primitive::Bytes(bytes) => ("bytes", bytes),
            };
            write!(out, "    {{ \"{name}\", \"{kind}\", {bytes}").unwrap();
            if !values.is_empty() {
                let listed: Vec<String> = values.iter().map(|(number, meaning)| format!("[{number}] = \"{meaning}\"")).collect();
                write!(out, ", {{ {} }}", listed.join(", ")).unwrap();
            }
            out.push_str(" },\n");
        }
        out.push_str("  } },\n");
    }
    out.push_str("}\n");
    out
}

/// `docs/market-data-feed.tsv`.
pub(crate) fn vectors() -> String {
    let mut out = String::from("message\tbytes\tlog_index\ttime_ns\tlast\tfields\n");
    for (head, message) in samples() {
        let (mut bytes, name) = (Vec::new(), message.schema().name);
        message.encode(&head, &mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let fields: Vec<String> = message.fields().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let Head { log_index, time_ns, place } = head;
        let last = u8::from(place == Place::Last);
        writeln!(out, "{name}\t{hex}\t{log_index}\t{time_ns}\t{last}\t{}", fields.join("; ")).unwrap();
    }
    out
}

fn ticks(ticks: i64) -> PriceTicks {
    PriceTicks::new(ticks).unwrap()
}

fn lots(lots: u64) -> SizeLots {
    SizeLots::new(lots)
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text).unwrap()
}

/// At least one of each kind.
pub(crate) fn samples() -> Vec<(Head, Message)> {
    let messages: Vec<Message> = [books(), batches(), snapshots()].into_iter().flatten().collect();
    let places = [Place::Inner, Place::Last];
    let head = |number: u64| Head {
        place: places[number as usize % 2],
        log_index: 0x0102_0304_0506 + number,
        time_ns: 1_700_000_000_000_000_000 + number,
    };
    (0..).zip(messages).map(|(number, message)| (head(number), message)).collect()
}

fn books() -> Vec<Message> {
    let (order_id, trade_id) = (OrderId(0x0102_0304_0506_0708), TradeId(77));
    let defined = InstrumentDefined {
        instrument: InstrumentId(3),
        symbol: symbol("BTC/USD"),
        base: AssetId(0),
        quote: AssetId(1),
        lot_units: 100,
        tick_value_units: 5,
        allocation: Allocation::Split { fifo_percent: 40, min_lots: lots(2) },
        maker_ppm: -100,
        taker_ppm: 300,
        collar_ppm: 100_000,
        band_ppm: 50_000,
        reference_price: ticks(4_200_000),
    };
    let top_rule = Allocation::TopProRata { top_lots_max: lots(9), min_lots: lots(2) };
    let top = TopChanged {
        bid: Some(ticks(99)),
        bid_shown: lots(12),
        bid_order_count: 3,
        ask: None,
        ask_shown: lots(0),
        ask_order_count: 0,
    };
    vec![
        defined.into(),
        InstrumentDefined { symbol: symbol("A-LONG.SYMBOL_1"), allocation: top_rule, ..defined }.into(),
        PhaseChanged { phase: TradingPhase::Halt, cause: PhaseCause::PriceBand }.into(),
        Traded { trade_id, price: ticks(100), size: lots(5), taker_side: Some(Side::Sell) }.into(),
        Traded { trade_id, price: PriceTicks::MAX, size: lots(u64::MAX), taker_side: None }.into(),
        AuctionIndicated { price: Some(ticks(101)), volume: lots(50), imbalance_lots: -7 }.into(),
        AuctionIndicated { price: None, volume: lots(0), imbalance_lots: 0 }.into(),
        AuctionUncrossed { price: Some(ticks(101)), volume: lots(50), imbalance_lots: i64::MIN }.into(),
        OrderAdded { order_id, side: Side::Sell, price: ticks(1), shown: lots(9) }.into(),
        OrderExecuted { order_id, trade_id, shown: lots(4) }.into(),
        OrderReduced { order_id, shown: lots(3) }.into(),
        OrderCancelled { order_id }.into(),
        OrderReplaced { order_id, price: ticks(102), shown: lots(8) }.into(),
        LevelChanged { side: Side::Buy, price: ticks(99), shown: lots(12), order_count: 3 }.into(),
        top.into(),
    ]
}

fn batches() -> Vec<Message> {
    let price = Some(BatchPrice::ONE);
    let cleared = BatchCleared {
        block: 12,
        transactions: 1_000,
        pairs: 6,
        offers_traded: 700,
        gap_ppb: 13,
        unserved_ppb: 14,
        set_aside: 1,
        state_root: std::array::from_fn(|at| at as u8),
    };
    vec![
        BatchMarketDefined { market: BatchMarketId(1), symbol: symbol("FX"), interval_ns: 500_000_000, transactions_max: 10_000 }
            .into(),
        BatchAssetAdded { place: 2, asset: AssetId(5) }.into(),
        BatchPhaseChanged { phase: BatchPhase::Open }.into(),
        BatchIntervalChanged { interval_ns: 250_000_000 }.into(),
        BatchClosed { block: 12, kept: 1_000, dropped: 5 }.into(),
        cleared.into(),
        AssetCleared { block: 12, asset: AssetId(5), price, sold: 123_456_789 }.into(),
        AssetCleared { block: 12, asset: AssetId(6), price: None, sold: 0 }.into(),
    ]
}

fn snapshots() -> Vec<Message> {
    vec![
        SnapshotBegan { channel: 0x0100_0003, next: 1_001, messages: 42 }.into(),
        SnapshotEnded { channel: 0x0100_0003, next: 1_001 }.into(),
    ]
}
