//! Where market data leaves a leaf gateway: packets of the venue's tree come in, wait for their release time, and go out as packets of a
//! tree of the gateway's own, whose key its participants have. So nobody outside the venue needs the key by which packets travel
//! before they may be known.
//!
//! *Deliberately absent*: a copy of any market: what the gateway missed its participants miss too, and get from a snapshot.
//!
//! *Invariants*
//! - No message leaves before its release time, neither by itself nor as an answer to a reader.
//! - The first copy of a packet leaves, once, under the number that it came with.

use std::collections::BTreeMap;

use walras_fair_access::release::{Hold, HoldCounts, HoldSettings, Refused};
use walras_relay::live::split;
use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::reader::{Message, Request};
use walras_relay::relay::{Arrival, Relay, RelaySettings};
use walras_relay::rewinder::{Answer, Rewinder};
use walras_relay::tree::Tree;

use crate::channel::Trees;
use crate::sender::Packets;

/// What a gateway's outlet is set to.
#[derive(Clone, Debug)]
pub struct OutletSettings {
    /// The first of the venue's trees, by which packets come; the others have the next numbers.
    pub tree: u32,
    /// How many of them there are.
    pub trees: Trees,
    /// The gateway's own, by which they go on.
    pub own_tree: u32,
    /// Seals what goes on.
    pub key: TreeKey,
    /// Packets of each channel that are remembered, so that further copies end.
    pub packets_remembered: usize,
    /// Channels at most.
    pub channels_max: usize,
    /// How much is held, and for how long.
    pub hold: HoldSettings,
    /// Bytes of the latest messages of each channel that are kept for readers that ask.
    pub rewind_bytes_max: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Outlet {
    settings: OutletSettings,
    seen: Relay,
    hold: Hold<Held>,
    /// By channel: what was released.
    released: BTreeMap<u32, Rewinder>,
    writer: PacketWriter,
    /// Empty.
    children: Vec<u32>,
}

#[derive(Debug)]
struct Held {
    header: Header,
    messages: Vec<Box<[u8]>>,
}

impl Outlet {
    /// One to which nothing came.
    ///
    /// # Panics
    /// Where nothing would be remembered.
    #[must_use]
    pub fn new(settings: OutletSettings) -> Self {
        let one = Tree::of_layers(vec![1, 1]).expect("a tree of one relay and one receiver");
        let OutletSettings { tree, packets_remembered, channels_max, .. } = settings;
        let of_relay = RelaySettings { layer: 0, place: 0, tree, hedge: 0, packets_remembered, channels_max };
        let hold = Hold::new(settings.hold);
        let (released, writer, children) = (BTreeMap::new(), PacketWriter::default(), Vec::new());
        Self { settings, seen: Relay::new(one, of_relay), hold, released, writer, children }
    }

    /// A packet arrives. Then call [`Outlet::release`].
    ///
    /// # Errors
    /// It is not held, and never released: readers have a gap.
    pub fn packet(&mut self, now_ns: u64, packet: &Packet<'_>) -> Result<Arrival, Refused> {
        let header = *packet.header();
        // Each channel travels by one of the trees, so a packet's number says all the same which it is.
        let (number, _) = split(header.tree);
        let is_by_ours = number.wrapping_sub(self.settings.tree) < self.settings.trees.count();
        let tree = if is_by_ours { self.settings.tree } else { number };
        let arrival = self.seen.packet(&Header { tree, ..header }, &mut self.children);
        if arrival == Arrival::First {
            let messages = packet.messages().map(|(_, bytes)| bytes.into()).collect();
            self.hold.push(now_ns, header.release_ns, Held { header, messages })?;
        }
        Ok(arrival)
    }

    /// Appends the packets whose time has come.
    pub fn release(&mut self, now_ns: u64, packets: &mut Packets) {
        while let Some(due) = self.hold.release_due(now_ns) {
            let Held { header, messages } = due.data;
            for message in &messages {
                // They came in a packet, so they have room in one.
                let _ = self.writer.push(message);
            }
            packets.push(&Header { tree: self.settings.own_tree, ..header }, &mut self.writer, &self.settings.key);
            match header.kind {
                Kind::Data => self.keep(&header, &messages),
                Kind::Heartbeat => self.miss(&header),
                Kind::End | Kind::Again => {}
            }
        }
    }

    /// Notes how far a channel is: earlier messages that did not come are not here, and a reader that asks for them hears so.
    fn miss(&mut self, header: &Header) {
        let Header { channel, first, .. } = *header;
        let new = || Rewinder::new(channel, first, self.settings.rewind_bytes_max);
        let rewinder = self.released.entry(channel).or_insert_with(new);
        if first > rewinder.next() {
            *rewinder = new();
        }
    }

    fn keep(&mut self, header: &Header, messages: &[Box<[u8]>]) {
        let Header { channel, first, sent_ns, release_ns, .. } = *header;
        let new = || Rewinder::new(channel, first, self.settings.rewind_bytes_max);
        let rewinder = self.released.entry(channel).or_insert_with(new);
        // What is older than the latest was missed, or comes late: it is not kept in its place.
        if first < rewinder.next() {
            return;
        }
        if first > rewinder.next() {
            *rewinder = Rewinder::new(channel, first, self.settings.rewind_bytes_max);
        }
        for (number, bytes) in (first..).zip(messages) {
            rewinder.push(&Message { number, sent_ns, release_ns, bytes });
        }
    }

    /// When [`Outlet::release`] has something to append; it may lie in the past.
    #[must_use]
    pub fn wake_ns(&self) -> Option<u64> {
        self.hold.next_release_ns()
    }

    /// Answers a reader: appends packets that have what it asked for.
    pub fn answer(&self, request: &Request, answer: &mut Vec<Vec<u8>>) -> Answer {
        let Some(rewinder) = self.released.get(&request.channel) else { return Answer::Unknown };
        rewinder.answer(request, self.settings.own_tree, &self.settings.key, answer)
    }

    /// Packets that wait for their time: never more than the settings allow.
    #[must_use]
    pub fn held_count(&self) -> usize {
        self.hold.len()
    }

    /// What was held.
    #[must_use]
    pub fn counts(&self) -> &HoldCounts {
        self.hold.counts()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TREE: u32 = 3;
    const OWN: u32 = 9;

    fn keys() -> [TreeKey; 2] {
        [TreeKey::new([1; 32]), TreeKey::new([2; 32])]
    }

    fn outlet() -> Outlet {
        Outlet::new(OutletSettings {
            tree: TREE,
            trees: Trees::ONE,
            own_tree: OWN,
            key: keys()[1].clone(),
            packets_remembered: 64,
            channels_max: 4,
            hold: HoldSettings { held_max: 100, wait_max_ns: 1_000 },
            rewind_bytes_max: 1 << 16,
        })
    }

    /// A packet of one message, whose number is the packet's.
    fn packet(number: u64, release_ns: u64) -> Vec<u8> {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        assert!(writer.push(&number.to_le_bytes()));
        let header =
            Header { kind: Kind::Data, count: 1, channel: 5, tree: TREE, packet: number, first: number, sent_ns: 1, release_ns };
        writer.finish(&header, &keys()[0], &mut bytes);
        bytes
    }

    fn take(outlet: &mut Outlet, now_ns: u64, bytes: &[u8]) -> Result<Arrival, Refused> {
        outlet.packet(now_ns, &Packet::decode(bytes, &keys()[0]).unwrap())
    }

    fn released(outlet: &mut Outlet, now_ns: u64) -> Vec<u64> {
        let mut packets = Packets::default();
        outlet.release(now_ns, &mut packets);
        let number = |bytes: &[u8]| {
            assert!(Packet::decode(bytes, &keys()[0]).is_err(), "it is sealed anew");
            let packet = Packet::decode(bytes, &keys()[1]).unwrap();
            assert_eq!(packet.header().tree, OWN);
            let (number, message) = packet.messages().next().unwrap();
            assert_eq!(message, number.to_le_bytes());
            number
        };
        packets.iter().map(|(_, bytes)| number(bytes)).collect()
    }

    #[test]
    fn packets_leave_once_at_their_time_and_whoever_asks_hears_of_those_alone() {
        let mut outlet = outlet();
        assert_eq!(take(&mut outlet, 10, &packet(1, 100)), Ok(Arrival::First));
        assert_eq!(take(&mut outlet, 11, &packet(1, 100)), Ok(Arrival::Copy));
        assert_eq!(take(&mut outlet, 12, &packet(2, 200)), Ok(Arrival::First));
        let request = Request { channel: 5, first: 1, count: 9 };
        assert_eq!(outlet.answer(&request, &mut Vec::new()), Answer::Unknown);
        assert_eq!((released(&mut outlet, 99), outlet.wake_ns()), (vec![], Some(100)));
        assert_eq!((released(&mut outlet, 100), outlet.wake_ns()), (vec![1], Some(200)));
        let mut answer = Vec::new();
        assert_eq!((outlet.answer(&request, &mut answer), answer.len()), (Answer::Sent, 1));
        assert_eq!(Packet::decode(&answer[0], &keys()[1]).unwrap().header().count, 1, "the second one is not released");
        assert_eq!(take(&mut outlet, 300, &packet(4, 5_000)), Err(Refused::TooFarAhead));
        assert_eq!(take(&mut outlet, 300, &packet(5, 250)), Ok(Arrival::First), "late: it leaves at once");
        assert_eq!((released(&mut outlet, 300), outlet.counts().late), (vec![2, 5], 1));
        assert_eq!(outlet.answer(&request, &mut Vec::new()), Answer::GoneBefore(5), "there is a gap");
    }

    /// An outlet that began after the last messages of a quiet channel has none of them, and says so once a heartbeat came.
    #[test]
    fn one_that_begins_late_says_what_it_does_not_have() {
        let mut outlet = outlet();
        let heartbeat = |number, first| {
            let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
            let header = Header {
                kind: Kind::Heartbeat,
                count: 0,
                channel: 5,
                tree: TREE,
                packet: number,
                first,
                sent_ns: 1,
                release_ns: 20,
            };
            writer.finish(&header, &keys()[0], &mut bytes);
            bytes
        };
        let request = Request { channel: 5, first: 2, count: 9 };
        assert_eq!(outlet.answer(&request, &mut Vec::new()), Answer::Unknown);
        take(&mut outlet, 10, &heartbeat(8, 8)).unwrap();
        outlet.release(19, &mut Packets::default());
        assert_eq!(outlet.answer(&request, &mut Vec::new()), Answer::Unknown, "it may not be known yet");
        outlet.release(20, &mut Packets::default());
        assert_eq!(outlet.answer(&request, &mut Vec::new()), Answer::GoneBefore(8));
        // What it has it keeps.
        take(&mut outlet, 21, &packet(9, 21)).unwrap();
        outlet.release(21, &mut Packets::default());
        take(&mut outlet, 22, &heartbeat(10, 10)).unwrap();
        outlet.release(22, &mut Packets::default());
        let (request, mut answer) = (Request { channel: 5, first: 9, count: 9 }, Vec::new());
        assert_eq!((outlet.answer(&request, &mut answer), answer.len()), (Answer::Sent, 1));
    }

    proptest! {
        #[test]
        fn none_leaves_before_its_time_whatever_comes_when(
            arrivals in prop::collection::vec((1_u64..40, 0_u64..60, 0_u64..400), 1..200),
        ) {
            let (mut outlet, mut now_ns, mut left, mut times) = (outlet(), 0, Vec::new(), BTreeMap::new());
            for (number, later_ns, ahead_ns) in arrivals {
                now_ns += later_ns;
                let release_ns = *times.entry(number).or_insert(now_ns + ahead_ns);
                let _ = take(&mut outlet, now_ns, &packet(number, release_ns));
                for number in released(&mut outlet, now_ns) {
                    prop_assert!(times[&number] <= now_ns, "{} left early", number);
                    prop_assert!(!left.contains(&number), "{} left twice", number);
                    left.push(number);
                }
            }
            left.extend(released(&mut outlet, u64::MAX));
            left.sort_unstable();
            prop_assert_eq!(left, times.into_keys().collect::<Vec<_>>());
        }
    }
}
