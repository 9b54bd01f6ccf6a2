//! What readers and those who keep the latest messages say to each other: requests for messages that are missing, and that they are
//! kept no more; and what relays are asked of themselves. Each is a packet of its own in channel 0, with the seal of the tree, which no
//! relay passes on.

use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::reader::Request;

use crate::recall::RecallCounts;

/// The channel of these packets; no market has it.
const CHANNEL: u32 = 0;
const ASK: u8 = 1;
const GONE: u8 = 2;
const LOOK: u8 = 3;
const FIGURES: u8 = 4;
/// Numbers of [`RelayFigures`].
const FIGURES_COUNT: usize = 15;
/// The fewest numbers that a relay ever said. Programs have said more since; those that one does not say are 0, and those that another
/// one does not know are passed over.
const FIGURES_MIN: usize = 10;

/// What came to a relay since it began, and how long its packets were under way lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayFigures {
    /// First copies of packets, which were passed on.
    pub first: u64,
    /// Of these, those that came by a hedge: the copy of the relay's own parent came later, or never.
    pub hedged: u64,
    /// Further copies.
    pub copies: u64,
    /// Packets of which no copy came, as far as later ones show.
    pub lost: u64,
    /// Packets of other trees, and such as no relay passes on.
    pub others: u64,
    /// Datagrams without the tree's seal.
    pub forged: u64,
    /// Datagrams that are no packet.
    pub malformed: u64,
    /// Datagrams that the system did not take when they were to go on.
    pub not_taken: u64,
    /// From the sender to here, by the clocks of both machines: the median of the last first copies.
    pub transit_ns_p50: u64,
    /// The same, percentile 99.
    pub transit_ns_p99: u64,
    /// At a receiver that holds market data: packets that came after their release time.
    pub late: u64,
    /// At a leaf gateway, of all its trees: what it asked the replicas for ([`crate::recall`]).
    pub recalls: RecallCounts,
}

impl RelayFigures {
    fn as_array(&self) -> [u64; FIGURES_COUNT] {
        let Self { first, hedged, copies, lost, others, forged, malformed, not_taken, .. } = *self;
        let Self { transit_ns_p50, transit_ns_p99, late, recalls: RecallCounts { asked, answered, back, given_up }, .. } = *self;
        [
            first,
            hedged,
            copies,
            lost,
            others,
            forged,
            malformed,
            not_taken,
            transit_ns_p50,
            transit_ns_p99,
            late,
            asked,
            answered,
            back,
            given_up,
        ]
    }

    fn of(numbers: [u64; FIGURES_COUNT]) -> Self {
        let [first, hedged, copies, lost, others, forged, malformed, not_taken, transit_ns_p50, transit_ns_p99, late, recalls @ ..] =
            numbers;
        let [asked, answered, back, given_up] = recalls;
        let recalls = RecallCounts { asked, answered, back, given_up };
        Self { first, hedged, copies, lost, others, forged, malformed, not_taken, transit_ns_p50, transit_ns_p99, late, recalls }
    }
}

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
    /// A relay is to say what came to it.
    Look {
        /// Comes back with the answer.
        question: u64,
    },
    /// What came to a relay.
    Figures {
        /// As it was asked.
        question: u64,
        /// The figures.
        figures: RelayFigures,
    },
}

impl Control {
    /// Appends its packet.
    pub fn encode(&self, tree: u32, sent_ns: u64, key: &TreeKey, out: &mut Vec<u8>) {
        let mut message = [0_u8; 13 + 8 * FIGURES_COUNT];
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
            Self::Look { question } => {
                message[0] = LOOK;
                message[5..13].copy_from_slice(&question.to_le_bytes());
                13
            }
            Self::Figures { question, figures } => {
                message[0] = FIGURES;
                message[5..13].copy_from_slice(&question.to_le_bytes());
                for (place, number) in message[13..].chunks_exact_mut(8).zip(figures.as_array()) {
                    place.copy_from_slice(&number.to_le_bytes());
                }
                13 + 8 * FIGURES_COUNT
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
            (LOOK, []) if channel == 0 => Some(Self::Look { question: number }),
            (FIGURES, numbers) if channel == 0 && numbers.len() >= 8 * FIGURES_MIN && numbers.len().is_multiple_of(8) => {
                let mut figures = [0; FIGURES_COUNT];
                for (figure, bytes) in figures.iter_mut().zip(numbers.chunks_exact(8)) {
                    *figure = u64::from_le_bytes(*bytes.first_chunk()?);
                }
                Some(Self::Figures { question: number, figures: RelayFigures::of(figures) })
            }
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
            Control::Look { question: u64::MAX },
            Control::Figures { question: 5, figures: RelayFigures::of(std::array::from_fn(|at| at as u64 + 1)) },
        ];
        for control in said {
            let mut bytes = Vec::new();
            control.encode(3, 99, &key, &mut bytes);
            let packet = Packet::decode(&bytes, &key).unwrap();
            assert_eq!(Control::decode(&packet), Some(control));
            assert!(Packet::decode(&bytes, &TreeKey::new([1; 32])).is_err());
        }
    }

    const HEADER: Header =
        Header { kind: Kind::Data, count: 1, channel: 0, tree: 1, packet: 0, first: 1, sent_ns: 0, release_ns: 0 };

    fn decode(header: Header, messages: &[&[u8]]) -> Option<Control> {
        let (key, mut writer, mut bytes) = (TreeKey::new([2; 32]), PacketWriter::default(), Vec::new());
        messages.iter().for_each(|message| assert!(writer.push(message)));
        writer.finish(&header, &key, &mut bytes);
        Control::decode(&Packet::decode(&bytes, &key).unwrap())
    }

    /// Relays of a tree are not all upgraded in one moment.
    #[test]
    fn figures_of_earlier_and_later_programs_are_read() {
        let says = |count: u64| {
            let mut message = [&[FIGURES, 0, 0, 0, 0][..], &5_u64.to_le_bytes()].concat();
            (1..=count).for_each(|number| message.extend(number.to_le_bytes()));
            message
        };
        for count in [10, 11, 15, 20] {
            let figures = RelayFigures::of(std::array::from_fn(|at| if (at as u64) < count { at as u64 + 1 } else { 0 }));
            assert_eq!(decode(HEADER, &[&says(count)]), Some(Control::Figures { question: 5, figures }), "{count} numbers");
        }
        assert_eq!(decode(HEADER, &[&says(9)]), None);
        assert_eq!(decode(HEADER, &[&says(15)[..100]]), None, "it is cut");
    }

    #[test]
    fn other_packets_are_no_controls() {
        let header = HEADER;
        let gone: &[u8] = &[GONE, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(decode(header, &[gone]), Some(Control::GoneBefore { channel: 1, number: 9 }));
        assert_eq!(decode(Header { channel: 1, ..header }, &[gone]), None);
        assert_eq!(decode(Header { packet: 1, ..header }, &[gone]), None);
        assert_eq!(decode(header, &[gone, gone]), None);
        assert_eq!(decode(header, &[&gone[..12]]), None);
        assert_eq!(decode(header, &[&[gone, &[0]].concat()]), None);
        assert_eq!(decode(header, &[&[3, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]]), None);
        assert_eq!(decode(header, &[&[5, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]]), None);
        assert_eq!(decode(header, &[&[4, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]]), None, "no figures");
        assert_eq!(decode(header, &[&[]]), None);
    }
}
