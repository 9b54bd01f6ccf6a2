//! What is written of the schema: the tables of the document, the dissector's table, and test vectors.

use std::fmt::Write;

use walras_feed::Primitive;
use walras_feed::control::{Control, RelayFigures};
use walras_feed::message::*;
use walras_relay::keeping::Keeping;
use walras_relay::packet::{HEADER_BYTES, Header, Kind, PacketWriter, TreeKey};
use walras_relay::reader::Request;
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

/// The key of the packets among the test vectors: the bytes 0 to 31.
pub(crate) fn key() -> TreeKey {
    TreeKey::new(std::array::from_fn(|at| at as u8))
}

/// What the reader of the packets among the test vectors asks for.
pub(crate) const ASKED: Request = Request { channel: 0x0100_0005, first: 41, count: 3 };

/// `docs/market-data-packets.tsv`.
pub(crate) fn packets() -> String {
    let mut out = String::from("packet\tbytes\twhat\n");
    for (name, bytes, what) in sealed() {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{name}\t{hex}\t{what}").unwrap();
    }
    out
}

/// The messages 41 to 43 of the document's example, the packets that have them, and a request for them with its answers.
pub(crate) fn sealed() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    const SENT_NS: u64 = 1_700_000_000_000_000_000;
    let messages: [Message; 3] = [
        Traded { trade_id: TradeId(9), price: ticks(101), size: lots(3), taker_side: Some(Side::Buy) }.into(),
        OrderExecuted { order_id: OrderId(700), trade_id: TradeId(9), shown: lots(0) }.into(),
        OrderAdded { order_id: OrderId(812), side: Side::Buy, price: ticks(101), shown: lots(2) }.into(),
    ];
    let packet = |header: &Header| {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        for (at, message) in (0..).zip(&messages).take(header.count.into()) {
            let place = if at == 2 { Place::Last } else { Place::Inner };
            let mut message_bytes = Vec::new();
            message.encode(&Head { place, log_index: 5_000, time_ns: SENT_NS - 1_000 }, &mut message_bytes);
            assert!(writer.push(&message_bytes));
        }
        writer.finish(header, &key(), &mut bytes);
        bytes
    };
    let control = |control: Control, sent_ns: u64| {
        let mut bytes = Vec::new();
        control.encode(1, sent_ns, &key(), &mut bytes);
        bytes
    };
    let Request { channel, first, .. } = ASKED;
    let (tree, sent_ns, release_ns) = (0x0002_0001, SENT_NS, SENT_NS + 400_000);
    let data = Header { kind: Kind::Data, count: 3, channel, tree, packet: 7, first, sent_ns, release_ns };
    let (later_ns, later_release_ns) = (sent_ns + 500_000_000, release_ns + 500_000_000);
    let heartbeat =
        Header { kind: Kind::Heartbeat, count: 0, packet: 8, first: 44, sent_ns: later_ns, release_ns: later_release_ns, ..data };
    let again = Header { kind: Kind::Again, tree: 1, packet: 0, ..data };
    vec![
        (
            "data",
            packet(&data),
            "kind 0 of channel 0x01000005 by tree 1 and its view 2, packet 7: the messages 41 to 43 of the example",
        ),
        ("heartbeat", packet(&heartbeat), "kind 1: the next message is 44"),
        (
            "request",
            control(Control::Ask(ASKED), SENT_NS + 600_000),
            "channel 0, packet 0: the messages 41 to 43 of channel 0x01000005 are missing",
        ),
        ("answer", packet(&again), "kind 3, packet 0: the same messages again"),
        (
            "gone before",
            control(Control::GoneBefore { channel, number: 44 }, SENT_NS + 700_000),
            "channel 0, packet 0: of channel 0x01000005 messages from 44 on are kept",
        ),
    ]
}

/// The names that `sdk/wireshark/walras.lua` has for the messages of channel 0.
pub(crate) fn dissector_controls() -> String {
    let (question, node, version) = (1, 1, 1);
    let controls = [
        (Control::Ask(ASKED), "Request"),
        (Control::GoneBefore { channel: 1, number: 1 }, "GoneBefore"),
        (Control::Look { question }, "Look"),
        (Control::Figures { question, figures: RelayFigures::default() }, "Figures"),
    ];
    let keeping = [
        (Keeping::Ping { question }, "Ping"),
        (Keeping::Pong { question }, "Pong"),
        (Keeping::View { version, epoch: 1, out: [].into() }, "View"),
        (Keeping::Taken { node, version }, "Taken"),
        (Keeping::Silent { node, version }, "Silent"),
        (Keeping::Late { node, samples: Vec::new() }, "Late"),
        (Keeping::Mute { node, by: 2, version }, "Mute"),
    ];
    let bytes = |encode: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        // The first byte of the only message, after its length.
        bytes[HEADER_BYTES + 2]
    };
    let controls = controls.iter().map(|(said, name)| (bytes(&|out: &mut Vec<u8>| said.encode(1, 1, &key(), out)), *name));
    let keeping = keeping.iter().map(|(said, name)| (bytes(&|out: &mut Vec<u8>| said.encode(1, 1, &key(), out)), *name));
    let mut out = String::from("\nlocal controls = {\n");
    for (kind, name) in controls.chain(keeping) {
        writeln!(out, "  [{kind}] = \"{name}\",").unwrap();
    }
    out.push_str("}\n");
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
