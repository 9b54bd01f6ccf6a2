//! The market-data feed: its messages, and a reader of any packets.

use walras_feed::channel::{ChannelId, View};
use walras_feed::control::Control;
use walras_feed::message::Message;
use walras_feed::publisher::Publisher;
use walras_feed::reader::MarketReader;
use walras_relay::keeping::Keeping;
use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::reader::ReaderSettings;
use walras_types::InstrumentId;

const KEY: [u8; 32] = [5; 32];
const SETTINGS: ReaderSettings = ReaderSettings { held_max: 32, gap_wait_ns: 10, retry_ns: 20, request_max: 16 };

/// Messages, each after its length, in packets of any channel: what decodes encodes to the same bytes, and no reader minds any of them.
pub fn messages(bytes: &[u8]) {
    let [mut by_order, mut by_level, mut top] =
        View::BOOKS.map(|view| MarketReader::joining(ChannelId::instrument(view, InstrumentId(0)), SETTINGS));
    let mut from_the_start = MarketReader::from_the_start(ChannelId::instrument(View::Orders, InstrumentId(0)), SETTINGS);
    let (mut rest, mut now_ns, mut packet_bytes) = (bytes, 0, Vec::new());
    // A packet: channel, number of the first message and number of messages, then the messages.
    while let Some((&[channel, first, count], after)) = rest.split_first_chunk::<3>() {
        rest = after;
        let mut writer = PacketWriter::default();
        for _ in 0..count % 8 {
            let Some(message) = take_message(&mut rest) else { break };
            if let Ok((head, decoded)) = Message::decode(message) {
                let mut again = Vec::new();
                decoded.encode(&head, &mut again);
                assert_eq!(again, message, "one message has one encoding: {decoded:?}");
            }
            between_nodes(message);
            let _ = writer.push(message);
        }
        let view = View::BOOKS[usize::from((channel & 0x7f) % 3)];
        let channel = if channel < 128 { ChannelId::instrument(view, InstrumentId(0)) } else { ChannelId::snapshots(view) };
        let kind = if writer.count() == 0 { Kind::Heartbeat } else { Kind::Data };
        let first = u64::from(first) + 1;
        let header = Header { kind, count: 0, channel: channel.get(), tree: 1, packet: 1, first, sent_ns: 0, release_ns: 0 };
        packet_bytes.clear();
        writer.finish(&header, &TreeKey::new(KEY), &mut packet_bytes);
        let packet = Packet::decode(&packet_bytes, &TreeKey::new(KEY)).expect("it was just made");
        now_ns += 7;
        for reader in [&mut by_order, &mut by_level, &mut top, &mut from_the_start] {
            reader.packet(now_ns, &packet, |_, _| {});
            if let Some(request) = reader.request(now_ns) {
                assert!(request.count > 0 && request.count <= SETTINGS.request_max, "{request:?}");
                if request.first % 5 == 0 {
                    reader.gone_before(request.channel, request.first + 1);
                }
            }
        }
    }
}

/// Reads the bytes as a message between nodes of a tree: if it decodes, it encodes to the same bytes.
fn between_nodes(message: &[u8]) {
    let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
    if !writer.push(message) {
        return;
    }
    let header = Header { kind: Kind::Data, count: 1, channel: 0, tree: 1, packet: 0, first: 1, sent_ns: 0, release_ns: 0 };
    writer.finish(&header, &TreeKey::new(KEY), &mut bytes);
    let packet = Packet::decode(&bytes, &TreeKey::new(KEY)).expect("it was just made");
    let keeping = Keeping::decode(&packet);
    assert!(keeping.is_none() || Control::decode(&packet).is_none(), "no message is both");
    if let Some(keeping) = keeping {
        let mut again = Vec::new();
        keeping.encode(1, 0, &TreeKey::new(KEY), &mut again);
        assert_eq!(again, bytes, "one message has one encoding: {keeping:?}");
    }
}

/// A message of up to 255 bytes after its length.
fn take_message<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (&length, after) = rest.split_first()?;
    let (message, after) = after.split_at_checked(length.into())?;
    *rest = after;
    Some(message)
}

/// The saved state of a publisher: what restores saves to the same bytes.
pub fn restore(bytes: &[u8]) {
    if let Ok(publisher) = Publisher::restore(bytes) {
        let mut again = Vec::new();
        publisher.save(&mut again);
        assert_eq!(again, bytes);
    }
}
