//! The data path allocates at the start, and nothing per packet: in what a relay decides, and at a reader that misses nothing. (The relay
//! itself, on its sockets: `edge/relay-link/tests/allocations.rs`.) What the thread of the test allocates is counted: those of the test
//! runner allocate when they like. A program of its own, because it has another allocator.

use walras_allocations::{Counting, allocations_of};
use walras_relay::copies::CopiesSettings;
use walras_relay::keeping::Keeping;
use walras_relay::live::join;
use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::reader::{Reader, ReaderSettings};
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::relay_machine::{Came, MachineSettings, RelayMachine};
use walras_relay::tree::Tree;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TREE: u32 = 3;
const EPOCH: u16 = 1;
const HEDGE: u32 = 1;
const CHANNELS: u32 = 4;

fn key() -> TreeKey {
    TreeKey::new([7; 32])
}

/// Packets of several channels, one after the other, each of three messages.
fn packets(first: u64, count: u64) -> Vec<Vec<u8>> {
    let mut writer = PacketWriter::default();
    let packet = |at: u64| {
        let (channel, number) = (1 + (at % u64::from(CHANNELS)) as u32, first + at / u64::from(CHANNELS));
        (0..3_u64).for_each(|message| assert!(writer.push(&[message as u8; 40])));
        let tree = join(TREE, EPOCH);
        let header =
            Header { kind: Kind::Data, count: 3, channel, tree, packet: number, first: 3 * number - 2, sent_ns: 9, release_ns: 0 };
        let mut bytes = Vec::new();
        writer.finish(&header, &key(), &mut bytes);
        bytes
    };
    (0..count).map(packet).collect()
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations_of(|| drop(std::hint::black_box(Box::new(5)))), 1);
}

/// First copies go on to their children by the view that they name, further ones and forged ones end.
#[test]
fn a_relay_allocates_nothing_per_packet() {
    let tree = Tree::of_layers(vec![10, 10, 100]).expect("layers that grow");
    let settings =
        RelaySettings { layer: 1, place: 3, tree: TREE, hedge: HEDGE, packets_remembered: 1 << 12, channels_max: 1 << 10 };
    let held_until = |header: &Header| Some(1 + 50_000 * header.packet);
    let of_machine = MachineSettings { copies: CopiesSettings::default(), held_until, seed: 1 };
    let (mut machine, key) = (RelayMachine::new(Relay::new(tree, settings), (0..120).collect(), of_machine), key());
    let (mut view, sender) = (Vec::new(), 200_u32);
    Keeping::View { version: 1, epoch: EPOCH, out: [5].into() }.encode(TREE, 9, &key, &mut view);
    let view = Packet::decode(&view, &key).expect("a view without one of them");
    assert_eq!(machine.on_packet(0, Some(sender), &view), Came::Kept);
    assert_eq!(machine.says().count(), 1 + 10, "the sender and ten receivers hear of the view");
    machine.on_timer(0);
    assert_eq!(machine.says().count(), 1, "its sibling is asked");
    let (mut passed_on, mut copies, mut forged) = (0_u64, 0_u64, 0_u64);
    let mut take = |bytes: &[u8]| {
        let Ok(packet) = Packet::decode(bytes, &key) else {
            forged += 1;
            return;
        };
        match machine.on_packet(0, Some(1), &packet) {
            Came::First { to, .. } => passed_on += to.len() as u64,
            Came::Copy | Came::TooOld => copies += 1,
            other => panic!("all are of this tree, and of its channels: {other:?}"),
        }
        machine.on_timer(0);
        assert_eq!(machine.says().count(), 0);
    };
    // Each channel's memory comes with its first packet.
    packets(1, CHANNELS.into()).iter().for_each(|bytes| take(bytes));
    let mut made = packets(2, 8_000);
    made[77][60] ^= 1;
    let allocated = allocations_of(|| {
        for bytes in &made {
            take(bytes);
            take(bytes);
        }
    });
    assert_eq!(allocated, 0, "for {} packets", 2 * made.len());
    assert!(passed_on >= 20 * 7_999 && (copies, forged) == (7_999, 2), "{passed_on}, {copies}, {forged}");
}

#[test]
fn a_reader_that_misses_nothing_allocates_nothing_per_packet() {
    let settings = ReaderSettings { held_max: 1_024, gap_wait_ns: 10, retry_ns: 10, request_max: 100 };
    let (mut reader, key, mut read) = (Reader::new(1, 1, settings), key(), 0_u64);
    let made = packets(1, 8_000);
    let allocated = allocations_of(|| {
        for (now_ns, bytes) in (0..).zip(&made) {
            let Ok(packet) = Packet::decode(bytes, &key) else { continue };
            reader.packet(now_ns, &packet, |message| read += message.bytes.len() as u64);
            assert_eq!(reader.request(now_ns), None);
        }
    });
    assert_eq!((allocated, read), (0, 2_000 * 3 * 40));
}
