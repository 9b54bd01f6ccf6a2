//! What nodes say to each other to keep the tree whole: whether a node is there, which are out, which are silent, and which bring
//! nothing; and up the tree, how late market data comes to receivers. Each is a packet of its own in channel 0, with the seal of the tree,
//! which no relay passes on as it is. Relays of the last layer say to receivers which view there is.

use std::collections::BTreeSet;

use crate::deadline::{Maximum, SAMPLES_MAX};
use crate::live::RELAYS_MAX;
use crate::packet::{Header, Kind, Packet, PacketWriter, TreeKey};

/// The channel of these packets; no market has it.
const CHANNEL: u32 = 0;
// Other packets of this channel have the kinds 1 to 4.
const PING: u8 = 16;
const PONG: u8 = 17;
const VIEW: u8 = 18;
const TAKEN: u8 = 19;
const SILENT: u8 = 20;
const LATE: u8 = 21;
const MUTE: u8 = 22;
/// Bytes of one sample.
const SAMPLE_BYTES: usize = 16;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// Answer at once.
    Ping {
        /// Comes back.
        question: u64,
    },
    /// The answer.
    Pong {
        /// As it was asked.
        question: u64,
    },
    /// From the sender, and to receivers from the relay of their block: packets of this epoch go by this view.
    View {
        /// Greater for each view, and for those of a later sender.
        version: u64,
        /// The epoch.
        epoch: u16,
        /// Relays that are out, by number.
        out: BTreeSet<u32>,
    },
    /// To the sender: a relay knows a view.
    Taken {
        /// The relay's number.
        node: u32,
        /// The view's version.
        version: u64,
    },
    /// To the sender: a relay hears nothing of its sibling.
    Silent {
        /// The sibling's number.
        node: u32,
        /// The version of the view by which they are siblings.
        version: u64,
    },
    /// To the sender, by way of a relay where a receiver says it: a relay above brings nothing ([`crate::copies`]).
    Mute {
        /// The relay's number.
        node: u32,
        /// The number of the node that says so.
        by: u32,
        /// The version of the view by which it should bring something.
        version: u64,
    },
    /// To the parent: how late pieces came to the receivers below this node, [`crate::lateness`]. Without samples it says that there are
    /// receivers. At most [`SAMPLES_MAX`] samples are sent, the first.
    Late {
        /// The node's number.
        node: u32,
        /// The samples.
        samples: Vec<Maximum>,
    },
}

impl Keeping {
    /// Appends its packet. Of a view with relays that no tree has, those are left out.
    pub fn encode(&self, tree: u32, sent_ns: u64, key: &TreeKey, out: &mut Vec<u8>) {
        let mut message = Vec::with_capacity(32);
        match self {
            Self::Ping { question } | Self::Pong { question } => {
                message.push(if matches!(self, Self::Ping { .. }) { PING } else { PONG });
                message.extend_from_slice(&question.to_le_bytes());
            }
            Self::View { version, epoch, out } => {
                message.push(VIEW);
                message.extend_from_slice(&version.to_le_bytes());
                message.extend_from_slice(&epoch.to_le_bytes());
                let mut bits = Vec::new();
                for node in out.iter().copied().filter(|node| *node < RELAYS_MAX) {
                    bits.resize(bits.len().max(node as usize / 8 + 1), 0_u8);
                    bits[node as usize / 8] |= 1 << (node % 8);
                }
                message.extend_from_slice(&bits);
            }
            Self::Taken { node, version } | Self::Silent { node, version } => {
                message.push(if matches!(self, Self::Taken { .. }) { TAKEN } else { SILENT });
                message.extend_from_slice(&version.to_le_bytes());
                message.extend_from_slice(&node.to_le_bytes());
            }
            Self::Mute { node, by, version } => {
                message.push(MUTE);
                message.extend_from_slice(&version.to_le_bytes());
                message.extend_from_slice(&node.to_le_bytes());
                message.extend_from_slice(&by.to_le_bytes());
            }
            Self::Late { node, samples } => {
                message.push(LATE);
                message.extend_from_slice(&u64::from(*node).to_le_bytes());
                for Maximum { packet, delay_ns } in samples.iter().take(SAMPLES_MAX) {
                    message.extend_from_slice(&packet.to_le_bytes());
                    message.extend_from_slice(&delay_ns.to_le_bytes());
                }
            }
        }
        let mut writer = PacketWriter::default();
        let has_room = writer.push(&message);
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
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*number);
        match (kind, rest) {
            (PING, []) => Some(Self::Ping { question: number }),
            (PONG, []) => Some(Self::Pong { question: number }),
            (TAKEN, node) => Some(Self::Taken { node: u32::from_le_bytes(*whole(node)?), version: number }),
            (SILENT, node) => Some(Self::Silent { node: u32::from_le_bytes(*whole(node)?), version: number }),
            (MUTE, rest) => {
                let (node, by) = rest.split_first_chunk::<4>()?;
                let (node, by) = (u32::from_le_bytes(*node), u32::from_le_bytes(*whole(by)?));
                Some(Self::Mute { node, by, version: number })
            }
            (VIEW, rest) => {
                let (epoch, bits) = rest.split_first_chunk::<2>()?;
                // Each view has one encoding, and no more relays than a tree.
                if bits.last() == Some(&0) || bits.len() > RELAYS_MAX as usize / 8 {
                    return None;
                }
                let is_out = |node: &u32| bits[*node as usize / 8] >> (node % 8) & 1 == 1;
                let out = (0..bits.len() as u32 * 8).filter(is_out).collect();
                Some(Self::View { version: number, epoch: u16::from_le_bytes(*epoch), out })
            }
            (LATE, bytes) if bytes.len() <= SAMPLES_MAX * SAMPLE_BYTES => {
                let (samples, []) = bytes.as_chunks::<SAMPLE_BYTES>() else { return None };
                Some(Self::Late { node: u32::try_from(number).ok()?, samples: samples.iter().map(sample).collect() })
            }
            _ => None,
        }
    }
}

fn sample(bytes: &[u8; SAMPLE_BYTES]) -> Maximum {
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    Maximum { packet: number(0), delay_ns: number(8).cast_signed() }
}

fn whole<const N: usize>(bytes: &[u8]) -> Option<&[u8; N]> {
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> TreeKey {
        TreeKey::new([2; 32])
    }

    fn sealed(message: &[u8]) -> Vec<u8> {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        assert!(writer.push(message));
        let header = Header { kind: Kind::Data, count: 1, channel: 0, tree: 1, packet: 0, first: 1, sent_ns: 0, release_ns: 0 };
        writer.finish(&header, &key(), &mut bytes);
        bytes
    }

    fn view(out: &[u32]) -> Keeping {
        Keeping::View { version: 7, epoch: 9, out: out.iter().copied().collect() }
    }

    #[test]
    fn what_is_said_is_understood() {
        let (node, version, question) = (5, u64::MAX, 12);
        let said = [
            Keeping::Ping { question },
            Keeping::Pong { question },
            Keeping::Taken { node, version },
            Keeping::Silent { node, version },
            Keeping::Mute { node, by: u32::MAX, version },
            view(&[]),
            view(&[0, 7, 8, 1_000, RELAYS_MAX - 1]),
            Keeping::Late { node: u32::MAX, samples: vec![] },
            Keeping::Late { node, samples: vec![Maximum { packet: u64::MAX, delay_ns: i64::MIN }; SAMPLES_MAX] },
        ];
        for keeping in said {
            let mut bytes = Vec::new();
            keeping.encode(3, 99, &key(), &mut bytes);
            assert_eq!(Keeping::decode(&Packet::decode(&bytes, &key()).unwrap()), Some(keeping.clone()));
            assert!(Packet::decode(&bytes, &TreeKey::new([1; 32])).is_err());
        }
        let mut bytes = Vec::new();
        view(&[3, RELAYS_MAX]).encode(1, 1, &key(), &mut bytes);
        assert_eq!(Keeping::decode(&Packet::decode(&bytes, &key()).unwrap()), Some(view(&[3])));
        let samples = |count| vec![Maximum { packet: 1, delay_ns: -1 }; count];
        bytes.clear();
        Keeping::Late { node: 1, samples: samples(SAMPLES_MAX + 1) }.encode(1, 1, &key(), &mut bytes);
        let said = Keeping::decode(&Packet::decode(&bytes, &key()).unwrap());
        assert_eq!(said, Some(Keeping::Late { node: 1, samples: samples(SAMPLES_MAX) }), "no more than a report has");
        let too_long = sealed(&[&[LATE][..], &[0; 8], &[0; SAMPLE_BYTES * (SAMPLES_MAX + 1)]].concat());
        assert_eq!(Keeping::decode(&Packet::decode(&too_long, &key()).unwrap()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none(kind in 14_u8..23, bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let message = [&[kind][..], &bytes].concat();
            let packet = sealed(&message);
            if let Some(keeping) = Keeping::decode(&Packet::decode(&packet, &key()).unwrap()) {
                let mut again = Vec::new();
                keeping.encode(1, 0, &key(), &mut again);
                prop_assert_eq!(again, packet);
            }
        }
    }
}
