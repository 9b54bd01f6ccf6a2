//! Where market data leaves a leaf gateway: packets of the venue's tree come in, wait for their release time, and go out as packets of a
//! tree of the gateway's own, whose key its participants have. So nobody outside the venue needs the key by which packets travel
//! before they may be known.
//!
//! What the gateway missed, and what a participant asks for that it keeps no more, it asks the replicas for ([`crate::recall`]).
//!
//! *Deliberately absent*: a copy of any market: what no replica has any more participants get from a snapshot.
//!
//! *Invariants*
//! - No message leaves before its release time, neither by itself nor as an answer to a reader.
//! - The first copy of a packet leaves, once, under the number that it came with.
//! - What one participant asked for goes to no other one unasked.
//! - Once a channel has as many messages as are kept, its packets allocate nothing: those that wait lie in buffers that are used again.

use std::collections::BTreeMap;

use walras_fair_access::release::{Hold, HoldCounts, HoldSettings, Refused};
use walras_relay::kept::KeptTotal;
use walras_relay::live::split;
use walras_relay::packet::{Header, Kind, Packet, PacketWriter, TreeKey};
use walras_relay::reader::{Message, Request};
use walras_relay::relay::{Arrival, Relay, RelaySettings};
use walras_relay::rewinder::{Answer, Rewinder};
use walras_relay::tree::Tree;

use crate::channel::Trees;
use crate::control::Control;
use crate::publisher::Messages;
use crate::recall::{MissedBy, RecallCounts, RecallSettings, Recalled, Recalls};
use crate::sender::Packets;

/// Buffers that wait for packets. A burst leaves more of them, and those are given back.
const SPARE_MAX: usize = 1 << 12;

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
    /// Bytes of a packet at most in answers to readers. What the paths do not take whole the kernel sends in fragments, which costs more.
    pub packet_bytes: usize,
    /// Bytes of the latest messages of each channel that are kept for readers that ask.
    pub rewind_bytes_max: usize,
    /// The same of all channels together. Beyond it the channel to which nothing came for longest keeps nothing.
    pub rewind_total_bytes_max: usize,
    /// How the replicas are asked for what is missing; `None`: they are not.
    pub recall: Option<RecallSettings>,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Outlet {
    settings: OutletSettings,
    seen: Relay,
    hold: Hold<Held>,
    /// By channel: what was released.
    released: BTreeMap<u32, Rewinder>,
    kept: KeptTotal,
    recalls: Option<Recalls>,
    writer: PacketWriter,
    /// Empty.
    children: Vec<u32>,
    /// Empty ones, for packets to come.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Held {
    header: Header,
    /// Each message after its length.
    messages: Vec<u8>,
    /// Of an answer of a replica.
    missed_by: Option<MissedBy>,
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
        let (released, writer, children, spare) = (BTreeMap::new(), PacketWriter::default(), Vec::new(), Vec::new());
        let recalls = settings.recall.map(|recall| Recalls::new(recall).in_packets_of(settings.packet_bytes));
        let kept = KeptTotal::new(settings.rewind_total_bytes_max);
        Self { settings, seen: Relay::new(one, of_relay), hold, released, kept, recalls, writer, children, spare }
    }

    /// A packet arrives, by a tree or as the answer of a replica. Then call [`Outlet::release`].
    ///
    /// # Errors
    /// It is not held: readers have a gap, unless a replica sends it again.
    pub fn packet(&mut self, now_ns: u64, packet: &Packet<'_>) -> Result<Arrival, Refused> {
        let header = *packet.header();
        if header.packet == 0 {
            return self.answered(now_ns, packet).map(|()| Arrival::NotOurs);
        }
        // Each channel travels by one of the trees, so a packet's number says all the same which it is.
        let (number, _) = split(header.tree);
        let is_by_ours = number.wrapping_sub(self.settings.tree) < self.settings.trees.count();
        let tree = if is_by_ours { self.settings.tree } else { number };
        let arrival = self.seen.packet(&Header { tree, ..header }, &mut self.children);
        // A packet that is so late that all of its messages came back before has nothing new.
        let is_new = arrival == Arrival::First && self.recalls.as_ref().is_none_or(|recalls| !recalls.has_back(&header));
        if is_new {
            let Self { hold, spare, .. } = self;
            let held = || Held { header, messages: gathered(spare, packet.messages()), missed_by: None };
            hold.push_with(now_ns, header.release_ns, held)?;
            if let Some(recalls) = &mut self.recalls {
                recalls.arrived(now_ns, &header);
            }
        }
        Ok(arrival)
    }

    /// A packet that no relay passes on.
    fn answered(&mut self, now_ns: u64, packet: &Packet<'_>) -> Result<(), Refused> {
        let Self { recalls: Some(recalls), hold, spare, .. } = self else { return Ok(()) };
        let header = *packet.header();
        if header.kind != Kind::Again {
            if let Some(Control::GoneBefore { channel, number }) = Control::decode(packet) {
                recalls.gone_before(now_ns, channel, number);
            }
            return Ok(());
        }
        let mut is_held = Ok(());
        for recalled in recalls.came_back(now_ns, &header) {
            let Recalled { first, end, missed_by } = recalled;
            let missing = packet.messages().filter(|(number, _)| (first..end).contains(number));
            let header = Header { first, ..header };
            let held = || Held { header, messages: gathered(spare, missing), missed_by: Some(missed_by) };
            if let Err(refused) = hold.push_with(now_ns, header.release_ns, held) {
                recalls.not_held(now_ns, header.channel, recalled);
                is_held = Err(refused);
            }
        }
        is_held
    }

    /// What to ask a replica for now, if anything: the number of the replica, from 0, and the messages. Its answer is for
    /// [`Outlet::packet`].
    pub fn request(&mut self, now_ns: u64) -> Option<(usize, Request)> {
        self.recalls.as_mut()?.request(now_ns)
    }

    /// When [`Outlet::request`] may have something to ask; it may lie in the past.
    #[must_use]
    pub fn request_ns(&self) -> Option<u64> {
        self.recalls.as_ref()?.wake_ns()
    }

    /// Runs of messages that are missing, of which replicas are asked: never more than the settings allow.
    #[must_use]
    pub fn missing_count(&self) -> usize {
        self.recalls.as_ref().map_or(0, Recalls::missing_count)
    }

    /// What the replicas were asked for.
    #[must_use]
    pub fn recall_counts(&self) -> RecallCounts {
        self.recalls.as_ref().map(Recalls::counts).unwrap_or_default()
    }

    /// Appends the packets whose time has come.
    pub fn release(&mut self, now_ns: u64, packets: &mut Packets) {
        self.release_some(now_ns, usize::MAX, packets);
    }

    /// The same, but so many packets at most: what is left stays due. A host that sends many copies of each does so in parts, and looks
    /// in between for what else waits.
    pub fn release_some(&mut self, now_ns: u64, packets_max: usize, packets: &mut Packets) {
        let end = packets.count().saturating_add(packets_max);
        while packets.count() < end
            && let Some(due) = self.hold.release_due(now_ns)
        {
            let Held { header, messages, missed_by } = due.data;
            // What came back before anybody could miss it is released like any other.
            let is_in_time = header.kind == Kind::Again && self.next_of(header.channel) == Some(header.first);
            let kind = if is_in_time { Kind::Data } else { header.kind };
            if missed_by != Some(MissedBy::One) {
                for message in Messages::of(&messages) {
                    // They came in a packet, so they have room in one.
                    let _ = self.writer.push(message);
                }
                let tree = self.settings.own_tree;
                packets.push(&Header { kind, tree, ..header }, &mut self.writer, &self.settings.key);
            }
            match kind {
                Kind::Data => self.keep(&header, &messages),
                Kind::Heartbeat => self.miss(&header),
                Kind::Again => {
                    if let Some(recalls) = &mut self.recalls {
                        recalls.keep(header.channel, header.first, numbered(&header, &messages));
                    }
                }
                Kind::End => {}
            }
            self.give_back(messages);
        }
    }

    /// A buffer is used no more, or for the next packet.
    fn give_back(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// The number after the last message of a channel that was released.
    fn next_of(&self, channel: u32) -> Option<u64> {
        self.released.get(&channel).map(Rewinder::next)
    }

    /// Notes how far a channel is: earlier messages that did not come are not here, and a reader that asks for them hears so.
    fn miss(&mut self, header: &Header) {
        if self.next_of(header.channel).is_none_or(|next| next < header.first) {
            let bytes = self.reach(header.channel, header.first).bytes();
            self.keeps(header.channel, bytes);
        }
    }

    fn keep(&mut self, header: &Header, messages: &[u8]) {
        let rewinder = self.reach(header.channel, header.first);
        // What is older than the latest was missed, or comes late: it is not kept in its place.
        if header.first == rewinder.next() {
            numbered(header, messages).for_each(|message| rewinder.push(&message));
        }
        let bytes = rewinder.bytes();
        self.keeps(header.channel, bytes);
    }

    /// A channel keeps so many bytes now. Others give way, if all keep too much: what they had the replicas may have.
    fn keeps(&mut self, channel: u32, bytes: usize) {
        let Self { released, kept, .. } = self;
        kept.keeps(channel, bytes);
        while let Some(idle) = kept.gives_way() {
            if let Some(rewinder) = released.get_mut(&idle) {
                rewinder.forget();
            }
        }
    }

    /// The latest messages of a channel, which is as far as `first` at least. Those before a gap are kept apart.
    fn reach(&mut self, channel: u32, first: u64) -> &mut Rewinder {
        let Self { released, recalls, settings, .. } = self;
        let new = || Rewinder::new(channel, first, settings.rewind_bytes_max).in_packets_of(settings.packet_bytes);
        let rewinder = released.entry(channel).or_insert_with(new);
        if first > rewinder.next() {
            let before = std::mem::replace(rewinder, new());
            if let Some(recalls) = recalls {
                recalls.keep_run(before);
            }
        }
        rewinder
    }

    /// When [`Outlet::release`] has something to append; it may lie in the past.
    #[must_use]
    pub fn wake_ns(&self) -> Option<u64> {
        self.hold.next_release_ns()
    }

    /// Answers a reader: appends packets that have what it asked for. [`Answer::Unknown`] also where a replica is asked: the reader asks
    /// again later. Then call [`Outlet::request`].
    pub fn answer(&mut self, now_ns: u64, request: &Request, answer: &mut Vec<Vec<u8>>) -> Answer {
        let OutletSettings { own_tree, key, .. } = &self.settings;
        let Some(rewinder) = self.released.get(&request.channel) else { return Answer::Unknown };
        let answered = rewinder.answer(request, *own_tree, key, answer);
        let (Answer::GoneBefore(number), Some(recalls)) = (answered, &mut self.recalls) else { return answered };
        if recalls.answer(request, *own_tree, key, answer) {
            Answer::Sent
        } else if recalls.ask(now_ns, request, number) {
            Answer::Unknown
        } else {
            answered
        }
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

/// Messages in a buffer, each after its length.
fn gathered<'m>(spare: &mut Vec<Vec<u8>>, messages: impl Iterator<Item = (u64, &'m [u8])>) -> Vec<u8> {
    let mut buffer = spare.pop().unwrap_or_default();
    for (_, message) in messages {
        // It came in a packet, so its length has room in two bytes.
        buffer.extend_from_slice(&(message.len() as u16).to_le_bytes());
        buffer.extend_from_slice(message);
    }
    buffer
}

/// The messages of a packet with its times.
fn numbered<'m>(header: &Header, messages: &'m [u8]) -> impl Iterator<Item = Message<'m>> + use<'m> {
    let Header { first, sent_ns, release_ns, .. } = *header;
    (first..).zip(Messages::of(messages)).map(move |(number, bytes)| Message { number, sent_ns, release_ns, bytes })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::Range;

    use proptest::prelude::*;
    use walras_relay::packet::PACKET_BYTES_MAX;

    use super::*;

    const TREE: u32 = 3;
    const OWN: u32 = 9;

    fn keys() -> [TreeKey; 2] {
        [TreeKey::new([1; 32]), TreeKey::new([2; 32])]
    }

    const RECALL: RecallSettings = RecallSettings {
        replicas: 2,
        gap_wait_ns: 5,
        retry_ns: 50,
        tries_max: 3,
        runs_max: 16,
        run_messages_max: 64,
        per_s: 1_000_000,
        burst: 100,
        kept_bytes_max: 1 << 16,
    };

    fn outlet() -> Outlet {
        Outlet::new(settings(None))
    }

    fn settings(recall: Option<RecallSettings>) -> OutletSettings {
        OutletSettings {
            tree: TREE,
            trees: Trees::ONE,
            own_tree: OWN,
            key: keys()[1].clone(),
            packets_remembered: 64,
            channels_max: 4,
            hold: HoldSettings { held_max: 100, wait_max_ns: 1_000 },
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max: 1 << 16,
            rewind_total_bytes_max: 1 << 20,
            recall,
        }
    }

    /// A packet of one message, whose number is the packet's.
    fn packet(number: u64, release_ns: u64) -> Vec<u8> {
        packet_of(5, number, release_ns)
    }

    fn packet_of(channel: u32, number: u64, release_ns: u64) -> Vec<u8> {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        assert!(writer.push(&number.to_le_bytes()));
        let header =
            Header { kind: Kind::Data, count: 1, channel, tree: TREE, packet: number, first: number, sent_ns: 1, release_ns };
        writer.finish(&header, &keys()[0], &mut bytes);
        bytes
    }

    /// A heartbeat of channel 5, whose next message has this number.
    fn heartbeat(number: u64, first: u64) -> Vec<u8> {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        let (kind, packet) = (Kind::Heartbeat, number);
        let header = Header { kind, count: 0, channel: 5, tree: TREE, packet, first, sent_ns: 1, release_ns: 20 };
        writer.finish(&header, &keys()[0], &mut bytes);
        bytes
    }

    /// A replica's answer with messages that say their numbers.
    fn again(numbers: Range<u64>, release_ns: u64) -> Vec<u8> {
        let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
        numbers.clone().for_each(|number| assert!(writer.push(&number.to_le_bytes())));
        let (kind, count, first) = (Kind::Again, writer.count(), numbers.start);
        let header = Header { kind, count, channel: 5, tree: TREE, packet: 0, first, sent_ns: 1, release_ns };
        writer.finish(&header, &keys()[0], &mut bytes);
        bytes
    }

    /// Kinds and numbers of what leaves.
    fn leaving(outlet: &mut Outlet, now_ns: u64) -> Vec<(Kind, u64)> {
        let mut packets = Packets::default();
        outlet.release(now_ns, &mut packets);
        packets.iter().map(|(header, _)| (header.kind, header.first)).collect()
    }

    /// What a participant is answered: numbers of messages, or what it hears instead.
    fn answered(outlet: &mut Outlet, now_ns: u64, first: u64, count: u16) -> Result<Vec<u64>, Answer> {
        let mut packets = Vec::new();
        match outlet.answer(now_ns, &Request { channel: 5, first, count }, &mut packets) {
            Answer::Sent => {}
            other => return Err(other),
        }
        let messages = packets.iter().flat_map(|bytes| Packet::decode(bytes, &keys()[1]).unwrap().messages());
        Ok(messages.map(|(number, _)| number).collect())
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
        assert_eq!(outlet.answer(0, &request, &mut Vec::new()), Answer::Unknown);
        assert_eq!((released(&mut outlet, 99), outlet.wake_ns()), (vec![], Some(100)));
        assert_eq!((released(&mut outlet, 100), outlet.wake_ns()), (vec![1], Some(200)));
        let mut answer = Vec::new();
        assert_eq!((outlet.answer(0, &request, &mut answer), answer.len()), (Answer::Sent, 1));
        assert_eq!(Packet::decode(&answer[0], &keys()[1]).unwrap().header().count, 1, "the second one is not released");
        assert_eq!(take(&mut outlet, 300, &packet(4, 5_000)), Err(Refused::TooFarAhead));
        assert_eq!(take(&mut outlet, 300, &packet(5, 250)), Ok(Arrival::First), "late: it leaves at once");
        assert_eq!((released(&mut outlet, 300), outlet.counts().late), (vec![2, 5], 1));
        assert_eq!(outlet.answer(0, &request, &mut Vec::new()), Answer::GoneBefore(5), "there is a gap");
    }

    #[test]
    fn a_burst_leaves_in_parts_and_only_what_left_is_answered() {
        let mut outlet = outlet();
        (1..=5).for_each(|number| assert_eq!(take(&mut outlet, 10, &packet(number, 100)), Ok(Arrival::First)));
        let mut packets = Packets::default();
        outlet.release_some(100, 2, &mut packets);
        assert_eq!((packets.count(), outlet.wake_ns()), (2, Some(100)), "the others stay due");
        assert_eq!(answered(&mut outlet, 100, 1, 9), Ok(vec![1, 2]));
        outlet.release_some(100, 0, &mut packets);
        outlet.release_some(100, 2, &mut packets);
        assert_eq!(packets.iter().map(|(header, _)| header.first).collect::<Vec<_>>(), [1, 2, 3, 4], "behind what is there");
        packets.clear();
        outlet.release_some(100, 2, &mut packets);
        assert_eq!((packets.count(), outlet.wake_ns()), (1, None));
    }

    #[test]
    fn packets_of_more_channels_than_there_may_be_are_named_and_others_go_on() {
        let mut outlet = outlet();
        let mut arrives = |channel: u32, number: u64| {
            let (mut writer, mut bytes) = (PacketWriter::default(), Vec::new());
            assert!(writer.push(&[1]));
            let (kind, count, packet, first, sent_ns, release_ns) = (Kind::Data, 1, number, number, 1, 10);
            let header = Header { kind, count, channel, tree: TREE, packet, first, sent_ns, release_ns };
            writer.finish(&header, &keys()[0], &mut bytes);
            take(&mut outlet, 10, &bytes)
        };
        assert!((1..=4).all(|channel| arrives(channel, 1) == Ok(Arrival::First)));
        assert_eq!((arrives(5, 1), arrives(4, 2), arrives(5, 2)), (Ok(Arrival::NoRoom), Ok(Arrival::First), Ok(Arrival::NoRoom)));
        assert_eq!(outlet.held_count(), 5);
    }

    /// An outlet that began after the last messages of a quiet channel has none of them, and says so once a heartbeat came.
    #[test]
    fn one_that_begins_late_says_what_it_does_not_have() {
        let mut outlet = outlet();
        let request = Request { channel: 5, first: 2, count: 9 };
        assert_eq!(outlet.answer(0, &request, &mut Vec::new()), Answer::Unknown);
        take(&mut outlet, 10, &heartbeat(8, 8)).unwrap();
        outlet.release(19, &mut Packets::default());
        assert_eq!(outlet.answer(0, &request, &mut Vec::new()), Answer::Unknown, "it may not be known yet");
        outlet.release(20, &mut Packets::default());
        assert_eq!(outlet.answer(0, &request, &mut Vec::new()), Answer::GoneBefore(8));
        // What it has it keeps.
        take(&mut outlet, 21, &packet(9, 21)).unwrap();
        outlet.release(21, &mut Packets::default());
        take(&mut outlet, 22, &heartbeat(10, 10)).unwrap();
        outlet.release(22, &mut Packets::default());
        let (request, mut answer) = (Request { channel: 5, first: 9, count: 9 }, Vec::new());
        assert_eq!((outlet.answer(0, &request, &mut answer), answer.len()), (Answer::Sent, 1));
    }

    #[test]
    fn what_no_path_brought_comes_back_from_a_replica_before_anybody_misses_it() {
        let mut outlet = Outlet::new(settings(Some(RECALL)));
        take(&mut outlet, 10, &packet(1, 100)).unwrap();
        take(&mut outlet, 11, &packet(3, 300)).unwrap();
        assert_eq!((outlet.request_ns(), outlet.request(15)), (Some(16), None), "another order of arrival, perhaps");
        assert_eq!(outlet.request(16), Some((0, Request { channel: 5, first: 2, count: 1 })));
        for _ in 0..2 {
            assert_eq!(take(&mut outlet, 20, &again(1..3, 200)), Ok(Arrival::NotOurs));
        }
        assert_eq!(outlet.held_count(), 3, "one was there, and a copy of the other is none");
        assert_eq!(leaving(&mut outlet, 199), [(Kind::Data, 1)]);
        assert_eq!(answered(&mut outlet, 199, 2, 1), Err(Answer::Unknown), "it may not be known yet");
        // The packet itself is late, and everybody has what is in it.
        assert_eq!(take(&mut outlet, 250, &packet(2, 200)), Ok(Arrival::First));
        assert_eq!(leaving(&mut outlet, 300), [(Kind::Data, 2), (Kind::Data, 3)]);
        assert_eq!(answered(&mut outlet, 300, 1, 9), Ok(vec![1, 2, 3]));
        assert_eq!(outlet.recall_counts(), RecallCounts { asked: 1, answered: 1, back: 1, given_up: 0 });
    }

    #[test]
    fn what_comes_back_late_goes_to_all_and_is_kept_with_what_was_there_before_the_gap() {
        let mut outlet = Outlet::new(settings(Some(RECALL)));
        take(&mut outlet, 10, &packet(1, 10)).unwrap();
        take(&mut outlet, 11, &packet(3, 11)).unwrap();
        assert_eq!(leaving(&mut outlet, 11), [(Kind::Data, 1), (Kind::Data, 3)]);
        assert_eq!(answered(&mut outlet, 12, 2, 1), Err(Answer::Unknown), "a replica is asked");
        assert_eq!(answered(&mut outlet, 12, 1, 9), Ok(vec![1]));
        assert_eq!(outlet.request(16), Some((0, Request { channel: 5, first: 2, count: 1 })));
        take(&mut outlet, 20, &again(2..3, 10)).unwrap();
        assert_eq!(leaving(&mut outlet, 20), [(Kind::Again, 2)]);
        assert_eq!(answered(&mut outlet, 21, 1, 9), Ok(vec![1, 2]));
        assert_eq!(answered(&mut outlet, 21, 3, 9), Ok(vec![3]));
        assert_eq!(outlet.request(1_000), None);
    }

    #[test]
    fn who_asks_for_what_is_kept_no_more_gets_it_from_a_replica_and_nobody_else_does() {
        // Room for two messages.
        let mut outlet = Outlet::new(OutletSettings { rewind_bytes_max: 144, ..settings(Some(RECALL)) });
        for number in 1..10 {
            take(&mut outlet, 10, &packet(number, 10)).unwrap();
        }
        assert_eq!(leaving(&mut outlet, 10).len(), 9);
        assert_eq!(answered(&mut outlet, 20, 1, 3), Err(Answer::Unknown));
        assert_eq!(outlet.request(20), Some((0, Request { channel: 5, first: 1, count: 3 })));
        take(&mut outlet, 21, &again(1..4, 30)).unwrap();
        assert_eq!((leaving(&mut outlet, 29), outlet.held_count()), (vec![], 1), "not before its time");
        assert_eq!((leaving(&mut outlet, 30), outlet.held_count()), (vec![], 0));
        assert_eq!(answered(&mut outlet, 30, 1, 3), Ok(vec![1, 2, 3]));
        assert_eq!(answered(&mut outlet, 30, 8, 3), Ok(vec![8, 9]));
        // What no replica has any more takes a snapshot.
        assert_eq!(answered(&mut outlet, 40, 4, 2), Err(Answer::Unknown));
        let mut gone = Vec::new();
        Control::GoneBefore { channel: 5, number: 8 }.encode(TREE, 1, &keys()[0], &mut gone);
        for replica in [1, 0] {
            assert_eq!(outlet.request(40), Some((replica, Request { channel: 5, first: 4, count: 2 })));
            take(&mut outlet, 40, &gone).unwrap();
        }
        assert_eq!((outlet.request(10_000), answered(&mut outlet, 10_000, 4, 2)), (None, Err(Answer::GoneBefore(8))));
    }

    /// A reader's path need not take longer packets than the venue's paths do.
    #[test]
    fn answers_are_as_short_as_the_packets_of_the_venue() {
        let mut outlet = Outlet::new(OutletSettings { packet_bytes: 200, ..settings(Some(RECALL)) });
        for number in (1..=40).chain(60..=99) {
            take(&mut outlet, 10, &packet(number, 10)).unwrap();
        }
        assert_eq!(outlet.request(16), Some((0, Request { channel: 5, first: 41, count: 19 })));
        take(&mut outlet, 20, &again(41..60, 10)).unwrap();
        leaving(&mut outlet, 20);
        // From what it kept before the gap, what came back, and what it keeps.
        for (first, count) in [(1, 59), (41, 19), (60, 40)] {
            assert_eq!(answered(&mut outlet, 20, first, count), Ok((first..first + u64::from(count)).collect()));
            let mut packets = Vec::new();
            assert_eq!(outlet.answer(20, &Request { channel: 5, first, count }, &mut packets), Answer::Sent);
            assert!(packets.len() > 1 && packets.iter().all(|bytes| bytes.len() <= 200), "{first}: {packets:?}");
        }
    }

    /// All channels together have room for five messages.
    #[test]
    fn where_all_keep_too_much_the_channel_to_which_nothing_came_for_longest_is_asked_of_replicas() {
        let mut outlet = Outlet::new(OutletSettings { rewind_total_bytes_max: 5 * 72, ..settings(Some(RECALL)) });
        let of_other = Request { channel: 6, first: 1, count: 3 };
        for (channel, number) in [(5, 1), (5, 2), (5, 3), (6, 1), (6, 2)] {
            take(&mut outlet, 10, &packet_of(channel, number, 10)).unwrap();
        }
        leaving(&mut outlet, 10);
        assert_eq!(answered(&mut outlet, 20, 1, 3), Ok(vec![1, 2, 3]));
        // A heartbeat is nothing that a reader could miss.
        take(&mut outlet, 20, &heartbeat(10, 4)).unwrap();
        leaving(&mut outlet, 20);
        take(&mut outlet, 21, &packet_of(6, 3, 21)).unwrap();
        leaving(&mut outlet, 21);
        assert_eq!(outlet.answer(22, &of_other, &mut Vec::new()), Answer::Sent);
        assert_eq!(answered(&mut outlet, 22, 1, 3), Err(Answer::Unknown), "a replica is asked");
        assert_eq!(outlet.request(22), Some((0, Request { channel: 5, first: 1, count: 3 })));
        // It goes on with what comes next, in the place of the other one's.
        take(&mut outlet, 30, &packet(4, 30)).unwrap();
        take(&mut outlet, 30, &packet(5, 30)).unwrap();
        leaving(&mut outlet, 30);
        assert_eq!((answered(&mut outlet, 30, 4, 9), outlet.kept.gives_way()), (Ok(vec![4, 5]), None));
    }

    /// Fifteen times as much comes at once as there is room for. What is not held comes back from a replica as room gets free.
    #[test]
    fn of_a_burst_what_has_no_room_comes_back() {
        let room = 10;
        let hold = HoldSettings { held_max: room, wait_max_ns: 1_000 };
        let recall = RecallSettings { run_messages_max: 200, burst: 1_000, ..RECALL };
        let mut outlet = Outlet::new(OutletSettings { packets_remembered: 256, hold, ..settings(Some(recall)) });
        let burst = 15 * room as u64;
        let held = (1..=burst).filter(|number| take(&mut outlet, 10, &packet(*number, 100 + number)).is_ok()).count();
        assert_eq!((held, outlet.counts().refused_full), (room, burst - room as u64));
        let mut now_ns = 100 + burst;
        let mut left = released(&mut outlet, now_ns);
        assert_eq!(left, (1..=10).collect::<Vec<_>>());
        take(&mut outlet, now_ns, &packet(burst + 1, now_ns)).unwrap();
        while left.len() as u64 <= burst && now_ns < 10_000 {
            now_ns += 10;
            while let Some((_, Request { first, count, .. })) = outlet.request(now_ns) {
                // An answer has more packets than there is room for.
                for number in (first..first + u64::from(count)).take(16) {
                    let _ = take(&mut outlet, now_ns, &again(number..number + 1, 100 + number));
                }
                assert!(outlet.held_count() <= room);
            }
            left.extend(released(&mut outlet, now_ns));
        }
        left.sort_unstable();
        assert_eq!(left, (1..=burst + 1).collect::<Vec<_>>(), "each once");
        assert_eq!((outlet.recall_counts().back, outlet.recall_counts().given_up), (burst - room as u64, 0));
    }

    #[test]
    fn buffers_are_used_again_and_a_burst_leaves_few() {
        let burst = 2 * SPARE_MAX;
        let hold = HoldSettings { held_max: burst, wait_max_ns: 1_000 };
        let mut outlet = Outlet::new(OutletSettings { hold, ..settings(None) });
        for number in 1..=burst as u64 {
            take(&mut outlet, 10, &packet(number, 20)).unwrap();
        }
        assert_eq!((leaving(&mut outlet, 20).len(), outlet.spare.len()), (burst, SPARE_MAX));
        for number in 1..=100 {
            take(&mut outlet, 30, &packet(burst as u64 + number, 40)).unwrap();
        }
        assert_eq!(outlet.spare.len(), SPARE_MAX - 100);
        assert_eq!((leaving(&mut outlet, 40).len(), outlet.spare.len()), (100, SPARE_MAX));
        // What is refused takes none.
        assert_eq!(take(&mut outlet, 50, &packet(burst as u64 + 101, 5_000)), Err(Refused::TooFarAhead));
        assert_eq!(outlet.spare.len(), SPARE_MAX);
    }

    proptest! {
        /// Next to a set of missing numbers: what is lost comes back at any time, or late by itself.
        #[test]
        fn what_comes_back_leaves_once_and_not_before_its_time(
            arrivals in prop::collection::vec((1_u64..30, 0_u64..60, 0_u64..400, any::<bool>()), 1..200),
        ) {
            let (mut outlet, mut now_ns, mut left) = (Outlet::new(settings(Some(RECALL))), 0, Vec::new());
            let (mut came, mut missing) = (BTreeSet::<u64>::new(), BTreeSet::<u64>::new());
            let (mut times, mut known) = (BTreeMap::new(), None::<u64>);
            let mut taken = Vec::new();
            for (number, later_ns, ahead_ns, is_answer) in arrivals {
                now_ns += later_ns;
                let release_ns = *times.entry(number).or_insert(now_ns + ahead_ns);
                let bytes = if is_answer { again(number..number + 1, release_ns) } else { packet(number, release_ns) };
                take(&mut outlet, now_ns, &bytes).unwrap();
                let is_new = known.is_none_or(|known| number >= known);
                if !is_answer && is_new {
                    missing.extend(known.unwrap_or(number)..number);
                    known = Some(number + 1);
                }
                let was_missing = missing.remove(&number);
                if (was_missing || !is_answer && came.insert(number)) && !taken.contains(&number) {
                    taken.push(number);
                }
                for number in released(&mut outlet, now_ns) {
                    prop_assert!(times[&number] <= now_ns, "{} left early", number);
                    prop_assert!(!left.contains(&number), "{} left twice", number);
                    left.push(number);
                }
            }
            left.extend(released(&mut outlet, u64::MAX));
            left.sort_unstable();
            taken.sort_unstable();
            prop_assert_eq!(left, taken);
        }

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
