//! Both ends of a relay tree allocate at the start, and nothing per packet: a venue's station, which sends, and a leaf gateway's outlet,
//! which holds packets until their release time. What the thread of the test allocates is counted: those of the test runner allocate
//! when they like. A program of its own, because it has another allocator.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use walras_allocations::{Counting, allocations_of};
use walras_fair_access::release::HoldSettings;
use walras_feed::channel::{ChannelId, Trees, View};
use walras_feed::message::{Head, LevelChanged, Message, Place};
use walras_feed::outlet::{Outlet, OutletSettings};
use walras_feed::publisher::Run;
use walras_feed::recall::RecallSettings;
use walras_feed::sender::{Packets, SenderSettings};
use walras_feed::station::{Part, Station};
use walras_relay::packet::{Header, Kind, PACKET_BYTES_MAX, Packet, PacketWriter, TreeKey};
use walras_relay::relay::Arrival;
use walras_types::{InstrumentId, PriceTicks, Side, SizeLots};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TREE: u32 = 3;
const CHANNELS: u64 = 4;
/// Bytes of the latest messages of a channel: so few that each channel is full after some hundred packets.
const KEPT_BYTES: usize = 10_000;
/// Of all channels together: each keeps as much as it may.
const KEPT_TOTAL_BYTES: usize = 100_000;
/// Until a channel is full.
const WARM_UP: usize = 2_000;
const PACKETS: u64 = 10_000;

fn key() -> TreeKey {
    TreeKey::new([7; 32])
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations_of(|| drop(std::hint::black_box(Box::new(5)))), 1);
}

/// Packets of several channels, one after the other, each of three messages. One is sent every 10 ns, and may be released 200 ns later.
fn packets() -> Vec<Vec<u8>> {
    let mut writer = PacketWriter::default();
    let packet = |at: u64| {
        let (channel, number) = (1 + (at % CHANNELS) as u32, 1 + at / CHANNELS);
        (0..3_u64).for_each(|message| assert!(writer.push(&[message as u8; 40])));
        let (kind, count, sent_ns, release_ns) = (Kind::Data, 3, 10 * at, 10 * at + 200);
        let header = Header { kind, count, channel, tree: TREE, packet: number, first: 3 * number - 2, sent_ns, release_ns };
        let mut bytes = Vec::new();
        writer.finish(&header, &key(), &mut bytes);
        bytes
    };
    (0..PACKETS).map(packet).collect()
}

/// As a gateway does with what it received: two copies of each packet come, twenty packets wait for their time, and what is due is
/// sealed and kept for those who ask.
#[test]
fn an_outlet_allocates_nothing_per_packet() {
    let mut outlet = Outlet::new(OutletSettings {
        tree: TREE,
        trees: Trees::ONE,
        own_tree: 9,
        key: TreeKey::new([8; 32]),
        packets_remembered: 1 << 10,
        channels_max: 8,
        hold: HoldSettings { held_max: 64, wait_max_ns: 1_000 },
        packet_bytes: PACKET_BYTES_MAX,
        rewind_bytes_max: KEPT_BYTES,
        rewind_total_bytes_max: KEPT_TOTAL_BYTES,
        recall: Some(RecallSettings {
            replicas: 3,
            gap_wait_ns: 100,
            retry_ns: 100,
            tries_max: 4,
            runs_max: 16,
            run_messages_max: 100,
            per_s: 1_000,
            burst: 100,
            kept_bytes_max: KEPT_BYTES,
        }),
    });
    let (made, key, mut released, mut left) = (packets(), key(), Packets::default(), 0);
    let mut take = |now_ns: u64, bytes: &[u8]| {
        let packet = Packet::decode(bytes, &key).unwrap();
        for arrival in [Arrival::First, Arrival::Copy] {
            assert_eq!(outlet.packet(now_ns, &packet), Ok(arrival));
        }
        released.clear();
        outlet.release(now_ns, &mut released);
        assert!(outlet.request(now_ns).is_none());
        left += released.count();
    };
    let mut at = (0..).step_by(10).zip(&made);
    at.by_ref().take(WARM_UP).for_each(|(now_ns, bytes)| take(now_ns, bytes));
    let allocated = allocations_of(|| at.for_each(|(now_ns, bytes)| take(now_ns, bytes)));
    assert_eq!((allocated, left), (0, made.len() - 20));
}

/// As a replica that leads does with its entries, and one that follows: a level changes with each.
#[test]
fn a_station_allocates_nothing_per_packet() {
    let channel = ChannelId::instrument(View::Levels, InstrumentId(0));
    let entry = |number: u64| {
        let changed = LevelChanged { side: Side::Buy, price: PriceTicks::MIN, shown: SizeLots::new(number), order_count: 1 };
        let mut message = Vec::new();
        Message::from(changed).encode(&Head { place: Place::Last, log_index: number, time_ns: number }, &mut message);
        [&(message.len() as u16).to_le_bytes()[..], &message].concat()
    };
    let entries: Vec<Vec<u8>> = (1..=PACKETS).map(entry).collect();
    for part in [Part::Sends, Part::Keeps] {
        let mut station = Station::new(SenderSettings {
            tree: TREE,
            trees: Trees::ONE,
            epoch: 0,
            first_number: 1,
            key: key(),
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max: KEPT_BYTES,
            rewind_total_bytes_max: KEPT_TOTAL_BYTES,
            heartbeat_ns: 1_000_000_000,
            snapshot_bytes_per_s: 1_000_000,
            rotation_ns_min: 1_000_000_000,
        });
        let (mut packets, mut sent) = (Packets::default(), 0);
        let mut publish = |number: u64, bytes: &[u8]| {
            packets.clear();
            station.publish(Run::new(channel, number, bytes), part, (10 * number, 10 * number + 200), &mut packets);
            sent += packets.count();
        };
        let mut numbered = (1..).zip(&entries);
        numbered.by_ref().take(WARM_UP).for_each(|(number, bytes)| publish(number, bytes));
        let allocated = allocations_of(|| numbered.for_each(|(number, bytes)| publish(number, bytes)));
        let expected = if part == Part::Sends { entries.len() } else { 0 };
        assert_eq!((allocated, sent), (0, expected), "{part:?}");
    }
}
