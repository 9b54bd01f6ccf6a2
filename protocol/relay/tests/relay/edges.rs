//! Numbers at the edge of 64 bits: a packet or message that has the greatest number is passed on and read like any other, and whatever
//! numbers come, nothing panics and nothing grows.

use std::collections::BTreeSet;

use proptest::prelude::*;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Tracking};
use walras_relay::deadline::{Deadlines, Gather, Maximum, ReceiverDelays, Report, ReportSettings, Rule};
use walras_relay::live::{Live, Views, split};
use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::reader::{Message, Reader, ReaderSettings, Request};
use walras_relay::relay::{Arrival, Relay, RelaySettings};
use walras_relay::rewinder::Rewinder;
use walras_relay::tree::Tree;

const TREE: u32 = 1;
const CHANNEL: u32 = 2;
const HEDGE: u32 = 1;
const READER: ReaderSettings = ReaderSettings { held_max: 16, gap_wait_ns: 10, retry_ns: 10, request_max: 8 };
const BOUNDS: DelayBounds = DelayBounds { min_ns: 1_000, max_ns: 5_000_000, start_ns: 400_000 };

fn key() -> TreeKey {
    TreeKey::new([9; 32])
}

fn tree() -> Tree {
    Tree::of_layers(vec![3, 5, 11]).expect("layers that grow")
}

fn relay(channels_max: usize) -> Relay {
    Relay::new(tree(), RelaySettings { layer: 0, place: 1, tree: TREE, hedge: HEDGE, packets_remembered: 8, channels_max })
}

/// A packet whose messages each say their number.
fn packet(header: Header) -> Vec<u8> {
    let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
    for at in 0..header.count {
        assert!(writer.push(&header.first.wrapping_add(at.into()).to_le_bytes()));
    }
    writer.finish(&header, &key(), &mut bytes);
    bytes
}

fn data(number: u64, first: u64, count: u16) -> Header {
    Header { kind: Kind::Data, count, channel: CHANNEL, tree: TREE, packet: number, first, sent_ns: 5, release_ns: 0 }
}

#[test]
fn the_last_packets_reach_every_node_and_the_last_messages_are_read() {
    let (live, mut first_relay) = (Live::all(&tree()), relay(4));
    let mut reader = Reader::new(CHANNEL, u64::MAX - 6, READER);
    let mut read = Vec::new();
    // The greatest number is the packet's alone: a message would have a next one.
    for number in u64::MAX - 6..=u64::MAX {
        let count = u16::from(number < u64::MAX);
        let kind = if count == 0 { Kind::Heartbeat } else { Kind::Data };
        let bytes = packet(Header { kind, ..data(number, number, count) });
        let packet = Packet::decode(&bytes, &key()).expect("it was made just now");
        assert_eq!(first_relay.arrives(packet.header()), Arrival::First);
        assert_eq!(first_relay.arrives(packet.header()), Arrival::Copy);
        let mut got: Vec<u32> = Vec::new();
        for from in std::iter::once(None).chain((0..8).map(Some)) {
            live.children(from, number, HEDGE, &mut got);
        }
        let nodes: BTreeSet<u32> = got.iter().copied().collect();
        assert!(nodes.iter().copied().eq(0..3 + 5 + 11), "packet {number}: {nodes:?}");
        // One copy of the first layer's, whose parent is the sender alone, and two of each other.
        assert_eq!(got.len(), 3 + 2 * (5 + 11));
        reader.packet(7, &packet, |message| read.push(message.number));
    }
    assert_eq!((read, reader.next()), ((u64::MAX - 6..u64::MAX).collect(), u64::MAX));
    let beyond = packet(data(1, u64::MAX, 1));
    assert!(Packet::decode(&beyond, &key()).is_err(), "nothing follows the last message");
}

/// What a channel skips was lost. Not so where another sender takes over, whose numbers begin far above.
#[test]
fn numbers_that_a_sender_who_takes_over_leaves_out_are_not_lost() {
    let mut relay = relay(4);
    let pass = |relay: &mut Relay, numbers: std::ops::RangeInclusive<u64>| {
        numbers.for_each(|number| assert_eq!(relay.arrives(&data(number, 1, 1)), Arrival::First));
        relay.lost()
    };
    assert_eq!(pass(&mut relay, 1..=8), 0);
    assert_eq!(pass(&mut relay, 25..=32), 16);
    assert_eq!(pass(&mut relay, (1 << 40) + 1..=(1 << 40) + 8), 16);
    assert_eq!(pass(&mut relay, u64::MAX - 7..=u64::MAX), 16);
}

/// A number at an edge more often than not.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![3 => (0_u64..20).prop_map(|below| u64::MAX - below), 2 => 0_u64..20, 1 => any::<u64>()]
}

fn header() -> impl Strategy<Value = Header> {
    let kind = prop_oneof![4 => Just(Kind::Data), 1 => Just(Kind::Heartbeat), 1 => Just(Kind::End), 2 => Just(Kind::Again)];
    let rest = (number(), number(), number(), number());
    (kind, 0_u16..4, 0_u32..4, prop_oneof![Just(TREE), any::<u32>()], rest).prop_map(
        |(kind, count, channel, tree, (packet, first, sent_ns, release_ns))| Header {
            kind,
            count: if matches!(kind, Kind::Data | Kind::Again) { count + 1 } else { 0 },
            channel,
            tree,
            packet,
            first,
            sent_ns,
            release_ns,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_number_makes_anything_panic_or_grow(
        headers in prop::collection::vec((header(), number(), number()), 1..60), begins in number(), joins in any::<bool>(),
    ) {
        let (mut relay, views, mut children) = (relay(3), Views::new(&tree()), Vec::new());
        let mut reader = if joins { Reader::joining(CHANNEL, READER) } else { Reader::new(CHANNEL, begins.max(1), READER) };
        let mut rewinder = Rewinder::new(CHANNEL, begins.max(1), 1_000);
        let (mut delays, mut gather) = (ReceiverDelays::new(ReportSettings::PUBLISHED), Gather::new(ReportSettings::PUBLISHED, 2));
        let tracking = Tracking { bounds: BOUNDS, target: Ppm(50_000), step_ns: 1_000, level_window: 15 };
        let steered = Rule::Steered(DelaySettings::Tracking(tracking));
        let mut deadlines = [steered, Rule::MaximumOfQuantiles(BOUNDS)].map(|rule| Deadlines::new(rule, ReportSettings::PUBLISHED, 1));
        let mut last = 0;
        for (header, now_ns, other) in headers {
            let bytes = packet(header);
            let Ok(packet) = Packet::decode(&bytes, &key()) else { continue };
            let (number, epoch) = split(header.tree);
            relay.arrives(&Header { tree: number, ..header });
            let _ = relay.lost();
            children.clear();
            views.of(epoch).children(Some(1), header.packet, HEDGE, &mut children);
            prop_assert!(children.len() <= 5);
            let _ = views.of(epoch).own_parent(4, header.packet, HEDGE);
            // Nothing is handed out twice, not even after a snapshot.
            let mut read = Vec::new();
            reader.packet(now_ns, &packet, |message| read.push(message.number));
            match (reader.request(other), reader.needs_snapshot()) {
                (Some(request), _) => {
                    prop_assert!(request.count > 0 && request.first == reader.next());
                    reader.gone_before(other);
                }
                (None, true) => reader.join(now_ns, other, |message| read.push(message.number)),
                (None, false) => {}
            }
            for number in read {
                prop_assert!(number > last, "{number} after {last}");
                last = number;
            }
            prop_assert!(reader.held_count() <= READER.held_max);
            if rewinder.next() < u64::MAX {
                rewinder.push(&Message { number: rewinder.next(), sent_ns: now_ns, release_ns: other, bytes: &[1; 200] });
            }
            let mut answer = Vec::new();
            rewinder.answer(&Request { channel: CHANNEL, first: other, count: u16::MAX }, header.tree, &key(), &mut answer);
            prop_assert!(answer.len() <= 16);
            delays.packet(now_ns, &header);
            let mut report = delays.report();
            report.maxima.push(Maximum { packet: other, delay_ns: now_ns as i64 });
            gather.report(now_ns, 0, &report).expect("its child");
            let passed_on = gather.take(other);
            for deadlines in &mut deadlines {
                let _ = deadlines.release_ns(now_ns, header.packet);
                let report = Report { quantile_ns: Some(other as i64), ..passed_on.clone() };
                deadlines.report(now_ns, 0, &report).expect("its child");
                deadlines.on_interval(other);
                prop_assert!((BOUNDS.min_ns..=BOUNDS.max_ns).contains(&deadlines.delay_ns()));
            }
        }
    }
}
