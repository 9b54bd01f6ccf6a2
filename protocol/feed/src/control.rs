//! What readers and those who keep the latest messages say to each other: requests for messages that are missing, and that they are
//! kept no more. Each is a packet of its own in channel 0, with the seal of the tree, which no relay passes on.

use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::reader::Request;

/// The channel of these packets; no market has it.
const CHANNEL: u32 = 0;
const ASK: u8 = 1;
const GONE: u8 = 2;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A reader misses these messages.
    Ask(Request),
    /// Messages of a channel before this number are kept no more: the reader needs a snapshot.
    GoneBefore {
        /// The channel.
        channel: u32,
        /// The first number that is kept.
        number: u64,
    },
}

impl Control {
    /// Appends its packet.
    pub fn encode(&self, tree: u32, sent_ns: u64, key: &TreeKey, out: &mut Vec<u8>) {
        let mut message = [0_u8; 15];
        let length = match *self {
            Self::Ask(Request { channel, first, count }) => {
                message[0] = ASK;
                message[1..5].copy_from_slice(&channel.to_le_bytes());
                message[5..13].copy_from_slice(&first.to_le_bytes());
                message[13..15].copy_from_slice(&count.to_le_bytes());
                15
            }
            Self::GoneBefore { channel, number } => {
                message[0] = GONE;
                message[1..5].copy_from_slice(&channel.to_le_bytes());
                message[5..13].copy_from_slice(&number.to_le_bytes());
                13
            }
        };
        let mut writer = PacketWriter::default();
        let has_room = writer.push(&message[..length]);
        assert!(has_room, "the packet is empty");
        let header = Header { kind: Kind::Data, count: 1, channel: CHANNEL, tree, packet: 0, first: 1, sent_ns, release_ns: 0 };
        writer.finish(&header, key, out);
    }

    /// Out of a packet; `None` where it is another one.
    #[must_use]
    pub fn decode(packet: &Packet<'_>) -> Option<Self> {
        let header = packet.header();
        if (header.channel, header.packet, header.kind) != (CHANNEL, 0, Kind::Data) {
            return None;
        }
        let mut messages = packet.messages();
        let (Some((_, message)), None) = (messages.next(), messages.next()) else { return None };
        let (&kind, rest) = message.split_first()?;
        let (channel, rest) = rest.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (channel, number) = (u32::from_le_bytes(*channel), u64::from_le_bytes(*number));
        match (kind, rest) {
            (ASK, &[low, high]) => Some(Self::Ask(Request { channel, first: number, count: u16::from_le_bytes([low, high]) })),
            (GONE, []) => Some(Self::GoneBefore { channel, number }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let key = TreeKey::new([2; 32]);
        let said = [
            Control::Ask(Request { channel: 0x0100_0005, first: u64::MAX - 1, count: 300 }),
            Control::GoneBefore { channel: 7, number: 12 },
        ];
        for control in said {
            let mut bytes = Vec::new();
            control.encode(3, 99, &key, &mut bytes);
            let packet = Packet::decode(&bytes, &key).unwrap();
            assert_eq!(Control::decode(&packet), Some(control));
            assert!(Packet::decode(&bytes, &TreeKey::new([1; 32])).is_err());
        }
    }

    #[test]
    fn other_packets_are_no_controls() {
        let key = TreeKey::new([2; 32]);
        let header = Header { kind: Kind::Data, count: 1, channel: 0, tree: 1, packet: 0, first: 1, sent_ns: 0, release_ns: 0 };
        let decode = |header: Header, messages: &[&[u8]]| {
            let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
            messages.iter().for_each(|message| assert!(writer.push(message)));
            writer.finish(&header, &key, &mut bytes);
            Control::decode(&Packet::decode(&bytes, &key).unwrap())
        };
        let gone: &[u8] = &[GONE, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(decode(header, &[gone]), Some(Control::GoneBefore { channel: 1, number: 9 }));
        assert_eq!(decode(Header { channel: 1, ..header }, &[gone]), None);
        assert_eq!(decode(Header { packet: 1, ..header }, &[gone]), None);
        assert_eq!(decode(header, &[gone, gone]), None);
        assert_eq!(decode(header, &[&gone[..12]]), None);
        assert_eq!(decode(header, &[&[gone, &[0]].concat()]), None);
        assert_eq!(decode(header, &[&[3, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]]), None);
        assert_eq!(decode(header, &[&[]]), None);
    }
}
