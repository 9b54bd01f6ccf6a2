//! Where a venue's feed goes out: it takes what a publisher says elsewhere, run by run, keeps a copy of each market for snapshots, and
//! makes the packets. So the thread that applies the log neither seals nor copies books.

use std::collections::BTreeMap;

use walras_relay::reader::Request;
use walras_relay::rewinder::Answer;

use crate::book::Book;
use crate::channel::{ChannelId, Trees};
use crate::message::Message;
use crate::publisher::{Messages, Publisher, Run};
use crate::sender::{Packets, Sender, SenderSettings, SnapshotSource};

/// What to do with messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Send them.
    Sends,
    /// Keep them: another one sends.
    Keeps,
}

/// The copies of all markets.
#[derive(Debug, Default)]
struct Copies(BTreeMap<ChannelId, MarketCopy>);

/// A market as its channel's messages say.
#[derive(Debug)]
struct MarketCopy {
    book: Book,
    /// The number of the channel's next message.
    next: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Station {
    sender: Sender,
    copies: Copies,
    part: Part,
    /// Of parallel trees, the one that this is for, from 0.
    tree: (Trees, u32),
}

impl Station {
    /// One that has taken nothing. A channel that it then hears of from its first message on has a copy.
    #[must_use]
    pub fn new(settings: SenderSettings) -> Self {
        Self { sender: Sender::new(settings), copies: Copies::default(), part: Part::Keeps, tree: (Trees::ONE, 0) }
    }

    /// The same for one of the trees that the settings name, from 0: it gets the messages of that tree's markets alone.
    #[must_use]
    pub fn of_tree(settings: SenderSettings, tree: u32) -> Self {
        Self { tree: (settings.trees, tree), ..Self::new(settings) }
    }

    /// Later packets go by the view of this epoch.
    pub fn set_epoch(&mut self, epoch: u16) {
        self.sender.set_epoch(epoch);
    }

    /// Whether a channel's packets travel by the tree of this station.
    #[must_use]
    pub fn has(&self, channel: ChannelId) -> bool {
        let (trees, tree) = self.tree;
        trees.of(channel) == tree
    }

    /// Begins with the state of a publisher, in the place of what it had.
    pub fn begin(&mut self, publisher: &Publisher) {
        self.copies.0.clear();
        for channel in publisher.channels().into_iter().filter(|channel| self.has(*channel)).collect::<Vec<_>>() {
            let mut bytes = Vec::new();
            let copy = publisher.snapshot(channel, &mut bytes).and_then(|_| copy_of(channel, &bytes));
            if let Some(next) = publisher.next(channel) {
                self.sender.begin(channel, next);
            }
            self.copies.0.extend(copy.map(|copy| (channel, copy)));
        }
    }

    /// What to do from now on. An entry without messages for this station says it too: the leader sends heartbeats. `first_number` is
    /// greater than the numbers of packets that others have sent ([`Sender::take_over`]).
    pub fn set_part(&mut self, part: Part, first_number: u64) {
        if std::mem::replace(&mut self.part, part) == Part::Keeps && part == Part::Sends {
            self.sender.take_over(first_number);
        }
    }

    /// The state after the last entry may be released then: snapshots of it are not sooner.
    pub fn not_before(&mut self, release_ns: u64) {
        self.sender.not_before(release_ns);
    }

    /// Takes messages, and appends their packets where they are to be sent. A station that begins to send with this call numbers its
    /// packets from the time of sending on.
    pub fn publish(&mut self, run: Run<'_>, part: Part, (sent_ns, release_ns): (u64, u64), packets: &mut Packets) {
        self.copies.take(run);
        self.set_part(part, sent_ns);
        match part {
            Part::Sends => self.sender.publish_run(run, sent_ns, release_ns, packets),
            Part::Keeps => self.sender.keep_run(run, sent_ns, release_ns),
        }
    }

    /// Appends heartbeats and snapshots, where it sends and it is time for them. `times` are the elapsed time and the time of day, as in
    /// [`Sender::heartbeats`].
    pub fn on_timer(&mut self, times: (u64, u64), packets: &mut Packets) {
        if self.part == Part::Sends {
            self.sender.heartbeats(times, packets);
            self.sender.snapshots(&self.copies, times, packets);
        }
    }

    /// When [`Station::on_timer`] has something to send next, in elapsed time.
    #[must_use]
    pub fn wake_ns(&self) -> Option<u64> {
        (self.part == Part::Sends).then(|| self.sender.wake_ns())
    }

    /// Answers a reader: appends packets that have what it asked for.
    pub fn answer(&self, request: &Request, answer: &mut Vec<Vec<u8>>) -> Answer {
        self.sender.answer(request, answer)
    }
}

impl Copies {
    fn take(&mut self, run: Run<'_>) {
        let copy = match self.0.get_mut(&run.channel) {
            Some(copy) => copy,
            None if run.first == 1 => {
                self.0.entry(run.channel).or_insert_with(|| MarketCopy { book: Book::new(run.channel), next: 1 })
            }
            None => return,
        };
        // Those before are in the state with which the station began: a host may be ahead of the messages that it has given.
        let next = copy.next;
        for (number, bytes) in (run.first..).zip(run.messages()).filter(|(number, _)| *number >= next) {
            let applied =
                number == copy.next && Message::decode(bytes).is_ok_and(|(head, message)| copy.book.apply(&head, &message).is_ok());
            if !applied {
                // Messages were lost on the way here: no snapshot is better than a wrong one.
                self.0.remove(&run.channel);
                return;
            }
            copy.next += 1;
        }
    }
}

impl SnapshotSource for Copies {
    fn channels(&self) -> Vec<ChannelId> {
        self.0.keys().copied().collect()
    }

    fn snapshot(&self, channel: ChannelId, out: &mut Vec<u8>) -> Option<u64> {
        let MarketCopy { book, next } = self.0.get(&channel)?;
        Some(book.snapshot(channel, *next, out))
    }
}

/// A copy out of a whole snapshot.
fn copy_of(channel: ChannelId, bytes: &[u8]) -> Option<MarketCopy> {
    let (mut book, mut copy) = (Book::new(channel), None);
    for bytes in Messages::of(bytes) {
        let (head, message) = Message::decode(bytes).ok()?;
        match message {
            Message::SnapshotBegan(_) => {}
            Message::SnapshotEnded(ended) => {
                book.ends_with(&head);
                copy = Some(ended.next);
            }
            other => book.apply(&head, &other).ok()?,
        }
    }
    copy.map(|next| MarketCopy { book, next })
}

#[cfg(test)]
mod tests {
    use walras_relay::packet::{Kind, PACKET_BYTES_MAX, Packet, TreeKey};
    use walras_relay::reader::ReaderSettings;
    use walras_types::{InstrumentId, OrderId, PriceTicks, Side, SizeLots};

    use super::*;
    use crate::channel::View;
    use crate::message::{Head, OrderAdded, Place};
    use crate::reader::MarketReader;

    const READER: ReaderSettings = ReaderSettings { held_max: 64, gap_wait_ns: 0, retry_ns: 1, request_max: 64 };

    fn key() -> TreeKey {
        TreeKey::new([4; 32])
    }

    fn station() -> Station {
        Station::new(SenderSettings {
            tree: 1,
            trees: Trees::ONE,
            epoch: 0,
            first_number: 1,
            key: key(),
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max: 1 << 16,
            rewind_total_bytes_max: 1 << 20,
            heartbeat_ns: 1_000,
            snapshot_bytes_per_s: 1_000_000_000,
            rotation_ns_min: 1_000_000_000,
        })
    }

    fn channel() -> ChannelId {
        ChannelId::instrument(View::Orders, InstrumentId(0))
    }

    /// The message of this number, after its length.
    fn added(number: u64) -> Vec<u8> {
        let (order_id, price, shown) = (OrderId(number), PriceTicks::saturating(number as i64), SizeLots::new(1));
        let mut message = Vec::new();
        let head = Head { place: Place::Last, log_index: number, time_ns: number };
        Message::from(OrderAdded { order_id, side: Side::Buy, price, shown }).encode(&head, &mut message);
        [&(message.len() as u16).to_le_bytes()[..], &message].concat()
    }

    fn publish(station: &mut Station, number: u64, part: Part, packets: &mut Packets) {
        let bytes = added(number);
        station.publish(Run::new(channel(), number, &bytes), part, (number * 10, 0), packets);
    }

    fn read(reader: &mut MarketReader, packets: &Packets, now_ns: u64) {
        for (_, bytes) in packets.iter() {
            reader.packet(now_ns, &Packet::decode(bytes, &key()).unwrap(), |_, _| {});
        }
    }

    #[test]
    fn one_that_takes_over_goes_on_where_another_one_stopped() {
        let (mut first, mut second) = (station(), station());
        let mut reader = MarketReader::from_the_start(channel(), READER);
        let (mut sent, mut kept) = (Packets::default(), Packets::default());
        for number in 1..=5 {
            publish(&mut first, number, Part::Sends, &mut sent);
            publish(&mut second, number, Part::Keeps, &mut kept);
        }
        assert_eq!((kept.count(), second.wake_ns()), (0, None));
        second.on_timer((1_000_000, 1_000_000), &mut kept);
        assert_eq!(kept.count(), 0, "another one sends");
        // Both have the messages of all markets. Those of snapshots has the one that sends them, from its first number on.
        first.on_timer((1_000_000, 1_000_000), &mut Packets::default());
        let of_snapshots = Request { channel: ChannelId::snapshots(View::Orders).get(), first: 10, count: 1 };
        let answers = [&first, &second].map(|station| station.answer(&of_snapshots, &mut Vec::new()));
        assert_eq!(answers, [Answer::Sent, Answer::Unknown]);
        read(&mut reader, &sent, 1);
        // Of what the first one would have sent next nobody heard; the second one has it.
        publish(&mut second, 6, Part::Keeps, &mut kept);
        publish(&mut second, 7, Part::Sends, &mut kept);
        let (header, _) = kept.iter().next().unwrap();
        assert!(header.kind == Kind::Data && header.packet >= 70, "greater than what the first one gave: {header:?}");
        read(&mut reader, &kept, 2);
        let request = reader.request(3).unwrap();
        let mut answer = Vec::new();
        assert_eq!((request.first, second.answer(&request, &mut answer)), (6, Answer::Sent));
        reader.packet(4, &Packet::decode(&answer[0], &key()).unwrap(), |_, _| {});
        assert_eq!((reader.next(), reader.error()), (8, None));
        // Its snapshots are of its own copy.
        let (mut late, mut packets) = (MarketReader::joining(channel(), READER), Packets::default());
        second.on_timer((1_000_000, 1_000_000), &mut packets);
        read(&mut late, &packets, 5);
        assert_eq!(late.next(), 8);
        assert_eq!(late.book().unwrap().levels(), reader.book().unwrap().levels());
    }

    /// A clock that is set back an hour stops neither heartbeats nor snapshots, and the next sender goes on with greater numbers.
    #[test]
    fn a_clock_that_goes_back_stops_nothing() {
        const HOUR: u64 = 3_600_000_000_000;
        let (mut first, mut second) = (station(), station());
        let (mut sent, mut kept) = (Packets::default(), Packets::default());
        first.set_part(Part::Sends, 2 * HOUR);
        publish(&mut first, 1, Part::Sends, &mut sent);
        publish(&mut second, 1, Part::Keeps, &mut kept);
        for round in 0..4 {
            first.on_timer((5 + round * 2_000_000_000, HOUR), &mut sent);
        }
        let kinds = |kind| sent.iter().filter(|(header, _)| header.kind == kind && header.channel == channel().get()).count();
        assert_eq!((kinds(Kind::Data), kinds(Kind::Heartbeat)), (1, 3));
        assert_eq!(sent.iter().filter(|(header, _)| header.channel != channel().get()).count(), 4, "a snapshot each time");
        second.set_part(Part::Sends, 2 * HOUR + 500);
        publish(&mut second, 2, Part::Sends, &mut kept);
        let last = sent.iter().map(|(header, _)| header.packet).max().unwrap();
        assert!(kept.iter().all(|(header, _)| header.packet > last));
    }

    /// A station that begins with a state has heartbeats for markets in which nothing happens. So a reader that misses their last messages
    /// learns it, and gets a snapshot.
    #[test]
    fn a_station_that_begins_with_a_state_says_how_far_quiet_markets_are() {
        let mut reader = MarketReader::from_the_start(channel(), READER);
        let mut station = station();
        station.sender.begin(channel(), 6);
        station.copies.0.insert(channel(), MarketCopy { book: Book::new(channel()), next: 6 });
        station.set_part(Part::Sends, 100);
        station.not_before(5_000);
        let mut packets = Packets::default();
        (0..3).for_each(|round| station.on_timer((5 + round * 2_000_000_000, 7), &mut packets));
        for (_, bytes) in packets.iter().filter(|(header, _)| header.kind == Kind::Heartbeat) {
            reader.packet(1, &Packet::decode(bytes, &key()).unwrap(), |_, _| {});
        }
        assert!(packets.iter().all(|(header, _)| header.release_ns >= 5_000), "what is in the state is not known sooner");
        let request = reader.request(2).expect("it misses five messages");
        assert_eq!((request.first, station.answer(&request, &mut Vec::new())), (1, Answer::GoneBefore(6)));
        reader.gone_before(channel().get(), 6);
        read(&mut reader, &packets, 3);
        assert_eq!((reader.next(), reader.error()), (6, None));
    }

    #[test]
    fn no_packet_is_longer_than_the_venue_wants_it() {
        let settings = SenderSettings { packet_bytes: 512, ..station().sender.settings().clone() };
        let (mut station, mut sent) = (Station::new(settings), Packets::default());
        let bytes: Vec<u8> = (1..=40).flat_map(added).collect();
        station.publish(Run::new(channel(), 1, &bytes), Part::Sends, (10, 0), &mut sent);
        assert_eq!(sent.count(), 5, "nine orders each");
        station.on_timer((1_000_000, 1_000_000), &mut sent);
        assert!(sent.count() >= 5 + 5, "a snapshot has as many");
        assert!(sent.iter().all(|(_, bytes)| bytes.len() <= 512));
    }

    /// All markets together have room for eighteen orders.
    #[test]
    fn where_all_keep_too_much_the_market_in_which_nothing_happened_for_longest_keeps_nothing() {
        for part in [Part::Sends, Part::Keeps] {
            let settings = SenderSettings { rewind_total_bytes_max: 2_000, ..station().sender.settings().clone() };
            let mut station = Station::new(settings);
            let market = |at| ChannelId::instrument(View::Orders, InstrumentId(at));
            let publish = |station: &mut Station, at, number| {
                let bytes = added(number);
                station.publish(Run::new(market(at), number, &bytes), part, (number * 10, 0), &mut Packets::default());
            };
            let ask = |station: &Station, at, first| {
                station.answer(&Request { channel: market(at).get(), first, count: 1 }, &mut Vec::new())
            };
            for at in 0..3 {
                (1..=6).for_each(|number| publish(&mut station, at, number));
            }
            assert!((0..3).all(|at| ask(&station, at, 1) == Answer::Sent));
            publish(&mut station, 0, 7);
            assert_eq!([0, 1, 2].map(|at| ask(&station, at, 1)), [Answer::Sent, Answer::GoneBefore(7), Answer::Sent]);
            // It goes on, and has room as the others do.
            publish(&mut station, 1, 7);
            assert_eq!((ask(&station, 1, 7), ask(&station, 2, 1)), (Answer::Sent, Answer::Sent));
        }
    }

    #[test]
    fn one_that_missed_messages_has_no_snapshot_of_that_market() {
        let (mut station, mut packets) = (station(), Packets::default());
        for number in [1, 2, 4, 5] {
            publish(&mut station, number, Part::Sends, &mut packets);
        }
        assert!(station.copies.channels().is_empty());
        let request = Request { channel: channel().get(), first: 2, count: 1 };
        assert_eq!(station.answer(&request, &mut Vec::new()), Answer::GoneBefore(4));
    }

    /// The state that a station begins with again has messages that come to it afterwards.
    #[test]
    fn messages_that_the_state_has_are_sent_and_leave_its_copy_as_it_is() {
        let (mut ahead, mut late, mut packets) = (station(), station(), Packets::default());
        (1..=5).for_each(|number| publish(&mut ahead, number, Part::Sends, &mut Packets::default()));
        (1..=3).for_each(|number| publish(&mut late, number, Part::Sends, &mut packets));
        late.sender.begin(channel(), 6);
        late.copies = std::mem::take(&mut ahead.copies);
        (4..=6).for_each(|number| publish(&mut late, number, Part::Sends, &mut packets));
        let mut reader = MarketReader::from_the_start(channel(), READER);
        read(&mut reader, &packets, 1);
        assert_eq!((reader.next(), reader.error()), (7, None));
        let (mut joining, mut snapshots) = (MarketReader::joining(channel(), READER), Packets::default());
        late.on_timer((1_000_000, 1_000_000), &mut snapshots);
        read(&mut joining, &snapshots, 2);
        assert_eq!((joining.next(), joining.error()), (7, None));
        assert_eq!(joining.book().unwrap().levels(), reader.book().unwrap().levels());
    }

    /// Each of three trees carries the messages and the snapshots of its own markets, and one reader may be a receiver of all of them.
    #[test]
    fn parallel_trees_carry_their_own_markets() {
        let trees = Trees::new(3).unwrap();
        let settings = SenderSettings { trees, ..station().sender.settings().clone() };
        let mut stations = [0, 1, 2].map(|tree| Station::of_tree(settings.clone(), tree));
        let channels: Vec<ChannelId> = (0..6).map(|at| ChannelId::instrument(View::Orders, InstrumentId(at))).collect();
        let from_the_start = |channel: &ChannelId| MarketReader::from_the_start(*channel, READER).of_trees(trees);
        let mut readers: Vec<MarketReader> = channels.iter().map(from_the_start).collect();
        let mut late: Vec<MarketReader> =
            channels.iter().map(|channel| MarketReader::joining(*channel, READER).of_trees(trees)).collect();
        let mut sent = [(); 3].map(|()| Packets::default());
        for number in 1..=4 {
            for channel in &channels {
                let (tree, bytes) = (trees.of(*channel) as usize, added(number));
                assert!(stations.iter().enumerate().all(|(at, station)| station.has(*channel) == (at == tree)));
                stations[tree].publish(Run::new(*channel, number, &bytes), Part::Sends, (number * 10, 0), &mut sent[tree]);
            }
        }
        for (tree, packets) in (1..).zip(&sent) {
            assert!(packets.count() == 8 && packets.iter().all(|(header, _)| header.tree == tree), "two markets a tree");
        }
        // One tree is lost as a whole: the markets of the others are not concerned.
        [0, 2].iter().for_each(|tree| readers.iter_mut().for_each(|reader| read(reader, &sent[*tree], 1)));
        let next: Vec<u64> = readers.iter().map(MarketReader::next).collect();
        assert_eq!(next, [5, 1, 5, 5, 1, 5]);
        let mut snapshots = Packets::default();
        stations.iter_mut().for_each(|station| station.on_timer((1_000_000, 1_000_000), &mut snapshots));
        for reader in readers.iter_mut().filter(|reader| reader.next() == 1) {
            reader.await_snapshot();
            read(reader, &snapshots, 5);
        }
        late.iter_mut().for_each(|reader| read(reader, &snapshots, 5));
        for (reader, late) in readers.iter().zip(&late) {
            assert_eq!((reader.next(), late.next(), reader.error(), late.error()), (5, 5, None, None));
            assert_eq!(reader.book().unwrap().levels(), late.book().unwrap().levels());
        }
        // A state begins each tree with its own markets.
        let state = crate::publisher::Publisher::new(crate::publisher::Views::of(&[View::Orders]));
        stations[1].begin(&state);
        assert!(stations[1].copies.channels().is_empty());
    }
}
