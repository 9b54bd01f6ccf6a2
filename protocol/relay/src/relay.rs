//! A relay: the first copy of a packet goes on, further ones end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::packet::{Header, Kind};
use crate::tree::Tree;

/// What a relay did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The first copy: it goes to the children.
    First,
    /// Another copy was here before.
    Copy,
    /// So many packets later than others of its channel that nobody knows any more whether it was here. It ends.
    TooOld,
    /// Relays do not pass it on: it is of another tree, or an answer to one reader.
    NotOurs,
    /// It is of one more channel than there may be. It is not passed on.
    NoRoom,
}

/// A sender that takes over goes on with a number that is greater by more: nothing between was ever sent. So it is with the packets of all
/// channels, and with the messages of snapshots.
pub const TAKE_OVER: u64 = 1 << 32;

const WORD_BITS: usize = u64::BITS as usize;

/// Which of one sender's packets were here: a bit for each of the last numbers, modulo the size. In constant time and memory, as an array
/// of numbers is (Jasper, appendix A), in a sixty-fourth of its room.
#[derive(Clone, Debug)]
struct Window {
    bits: Box<[u64]>,
    size: u64,
    /// The greatest number that was here.
    newest: u64,
    /// The first one that came: those before it may have gone by before this node began.
    first: u64,
}

impl Window {
    /// Of a sender whose first packet this is.
    fn of(packet: u64, packets: usize) -> Self {
        let bits = vec![0; packets.div_ceil(WORD_BITS)].into();
        let mut window = Self { bits, size: packets as u64, newest: packet, first: packet };
        window.restart(packet);
        window
    }

    /// The same for another sender.
    fn restart(&mut self, packet: u64) {
        self.bits.fill(0);
        (self.newest, self.first) = (packet, packet);
        let (word, bit) = self.place(packet);
        self.bits[word] = bit;
    }

    fn place(&self, packet: u64) -> (usize, u64) {
        let at = (packet % self.size) as usize;
        (at / WORD_BITS, 1 << (at % WORD_BITS))
    }

    /// A packet arrives. Those that did not come before later ones took their places are added to `lost`.
    fn arrives(&mut self, packet: u64, lost: &mut u64) -> Arrival {
        if packet > self.newest {
            *lost = lost.saturating_add(self.move_on(packet));
        } else if self.newest - packet >= self.size {
            return Arrival::TooOld;
        }
        let (word, bit) = self.place(packet);
        if self.bits[word] & bit != 0 {
            return Arrival::Copy;
        }
        self.bits[word] |= bit;
        Arrival::First
    }

    /// The greatest number is this one from now on. How many packets that did not come are older than any that is remembered.
    fn move_on(&mut self, newest: u64) -> u64 {
        let steps = newest - self.newest;
        let leaving = steps.min(self.size);
        // Of a greater step the numbers between were never in the window.
        let mut lost = steps - leaving;
        for number in self.newest + 1..=self.newest + leaving {
            let (word, bit) = self.place(number);
            let is_counted = number.checked_sub(self.size).is_some_and(|before| before >= self.first);
            lost += u64::from(is_counted && self.bits[word] & bit == 0);
            self.bits[word] &= !bit;
        }
        self.newest = newest;
        lost
    }
}

/// Which packets of one channel were here.
#[derive(Clone, Debug)]
struct Seen {
    now: Window,
    /// Of the sender before, whose last packets may still be under way.
    before: Option<Window>,
}

impl Seen {
    /// Of a channel whose first packet this is.
    fn of(packet: u64, packets: usize) -> Self {
        Self { now: Window::of(packet, packets), before: None }
    }

    fn arrives(&mut self, packet: u64, lost: &mut u64) -> Arrival {
        let Self { now, before } = self;
        if now.newest.abs_diff(packet) < TAKE_OVER {
            return now.arrives(packet, lost);
        }
        if packet > now.newest {
            // The memory of the last but one sender is of use again.
            let mut new = before.take().unwrap_or_else(|| Window::of(packet, now.size as usize));
            new.restart(packet);
            *before = Some(std::mem::replace(now, new));
            return Arrival::First;
        }
        match before {
            Some(before) if before.newest.abs_diff(packet) < TAKE_OVER => before.arrives(packet, lost),
            Some(before) if packet < before.newest => Arrival::TooOld,
            Some(before) => {
                before.restart(packet);
                Arrival::First
            }
            None => {
                *before = Some(Window::of(packet, now.size as usize));
                Arrival::First
            }
        }
    }
}

/// A relay's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelaySettings {
    /// The layer that it stands in, from 0.
    pub layer: usize,
    /// Its place in the layer, from 0.
    pub place: u32,
    /// Number of the tree, as in its packets.
    pub tree: u32,
    /// Additional copies of each packet.
    pub hedge: u32,
    /// Packets that are remembered, of each channel. A copy that comes later than so many packets of its channel ends.
    pub packets_remembered: usize,
    /// Channels at most; packets of further ones are not passed on.
    pub channels_max: usize,
}

/// One relay of a tree.
#[derive(Debug)]
pub struct Relay {
    tree: Tree,
    settings: RelaySettings,
    /// By channel.
    seen: BTreeMap<u32, Seen>,
    /// Packets that did not come before later ones took their places, in all channels.
    lost: u64,
    /// Numbers that the last packet left out.
    skipped: u64,
}

impl Relay {
    /// A relay at its place.
    ///
    /// # Panics
    /// Where the tree has no such relay, or nothing would be remembered: the caller has read both from its configuration.
    #[must_use]
    pub fn new(tree: Tree, settings: RelaySettings) -> Self {
        assert!(settings.layer + 1 < tree.depth() && settings.place < tree.layers()[settings.layer], "a place in the tree");
        assert!(settings.packets_remembered > 0, "something to remember");
        Self { tree, settings, seen: BTreeMap::new(), lost: 0, skipped: 0 }
    }

    /// The number of its tree.
    #[must_use]
    pub fn tree_number(&self) -> u32 {
        self.settings.tree
    }

    /// Its tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Its own number among all nodes.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.tree.layers()[..self.settings.layer].iter().sum::<u32>() + self.settings.place
    }

    /// Additional copies of each packet.
    #[must_use]
    pub fn hedge(&self) -> u32 {
        self.settings.hedge
    }

    /// Packets of which no copy came, in all channels: each is known once a packet came that is by so many later as are remembered.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// By how many numbers the last packet that arrived was ahead of the one expected in its channel; 0 where it was not, and where
    /// another sender took over.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The node of the layer above whose copy of a packet this relay has where nothing fails; `None` in the first layer, whose parent
    /// is the sender.
    #[must_use]
    pub fn own_parent(&self, packet: u64) -> Option<u32> {
        let RelaySettings { layer, place, hedge, .. } = self.settings;
        if layer == 0 { None } else { self.tree.parents(layer, place, packet, hedge).next() }
    }

    /// A packet arrives. Where it is the first copy, `children` are the nodes of the next layer to send it to, in order; else
    /// they are none.
    pub fn packet(&mut self, header: &Header, children: &mut Vec<u32>) -> Arrival {
        children.clear();
        let arrival = self.arrives(header);
        if arrival == Arrival::First {
            let RelaySettings { layer, place, hedge, .. } = self.settings;
            children.extend(self.tree.children(layer + 1, place, header.packet, hedge));
        }
        arrival
    }

    /// The same, for a host that knows by another view where first copies go.
    pub fn arrives(&mut self, header: &Header) -> Arrival {
        let Self { settings, seen, lost, skipped, .. } = self;
        *skipped = 0;
        if header.tree != settings.tree || header.kind == Kind::Again || header.packet == 0 {
            return Arrival::NotOurs;
        }
        let count = seen.len();
        match seen.entry(header.channel) {
            Entry::Occupied(mut of_channel) => {
                let of_channel = of_channel.get_mut();
                let ahead = header.packet.saturating_sub(of_channel.now.newest);
                *skipped = if ahead < TAKE_OVER { ahead.saturating_sub(1) } else { 0 };
                of_channel.arrives(header.packet, lost)
            }
            Entry::Vacant(_) if count >= settings.channels_max => Arrival::NoRoom,
            Entry::Vacant(new) => {
                new.insert(Seen::of(header.packet, settings.packets_remembered));
                Arrival::First
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use walras_random::Random;

    use super::*;

    const SETTINGS: RelaySettings = RelaySettings { layer: 0, place: 1, tree: 4, hedge: 1, packets_remembered: 8, channels_max: 2 };

    fn header(channel: u32, packet: u64) -> Header {
        Header { kind: Kind::Data, count: 1, channel, tree: 4, packet, first: 1, sent_ns: 0, release_ns: 0 }
    }

    #[test]
    fn the_first_copy_goes_on() {
        let tree = Tree::new(2, 3, 9).unwrap();
        let mut relay = Relay::new(tree.clone(), SETTINGS);
        let (mut children, expected): (Vec<u32>, Vec<u32>) = (vec![99], tree.children(1, 1, 5, 1).collect());
        assert_eq!(relay.packet(&header(0, 5), &mut children), Arrival::First);
        assert_eq!((children.len(), &children), (6, &expected));
        for (header, arrival) in [
            (header(0, 5), Arrival::Copy),
            (header(1, 5), Arrival::First),
            (header(2, 5), Arrival::NoRoom),
            (header(0, 0), Arrival::NotOurs),
            (Header { tree: 3, ..header(0, 6) }, Arrival::NotOurs),
            (Header { kind: Kind::Again, ..header(0, 6) }, Arrival::NotOurs),
            (Header { kind: Kind::Heartbeat, ..header(0, 6) }, Arrival::First),
            (header(0, 4), Arrival::First),
            (header(0, 12), Arrival::First),
            (header(0, 4), Arrival::TooOld),
        ] {
            assert_eq!(relay.packet(&header, &mut children), arrival, "{header:?}");
            assert_eq!(children.is_empty(), arrival != Arrival::First);
        }
    }

    #[test]
    #[should_panic(expected = "a place in the tree")]
    fn a_receiver_is_no_relay() {
        let _ = Relay::new(Tree::new(2, 3, 9).unwrap(), RelaySettings { layer: 1, ..SETTINGS });
    }

    #[test]
    fn a_channel_costs_little_memory() {
        let seen = Seen::of(7, 1 << 12);
        assert_eq!((size_of_val(&*seen.now.bits), seen.before.is_none()), (512, true));
    }

    #[test]
    fn it_says_how_many_numbers_a_packet_left_out() {
        let mut relay = Relay::new(Tree::new(2, 3, 9).unwrap(), SETTINGS);
        for (packet, skipped) in [(5, 0), (6, 0), (9, 2), (7, 0), (9, 0), (10, 0), (10 + TAKE_OVER, 0), (13 + TAKE_OVER, 2)] {
            relay.arrives(&header(0, packet));
            assert_eq!(relay.skipped(), skipped, "packet {packet}");
        }
    }

    /// Packets of three senders in any order: as long as there are not more than two of them, all go on, and none twice.
    #[test]
    fn the_last_packets_of_a_sender_before_go_on_once() {
        let draw = &mut Random::new(12);
        let (mut seen, mut first, mut lost) = (Seen::of(1, 64), BTreeSet::from([1]), 0);
        let begins = [1, 1 << 40, 1 << 41];
        for round in 0..3_000 {
            // The third one takes over when the first one is long gone.
            let sender = (round / 1_000 + draw.below(2)).min(2) as usize;
            let packet = begins[sender] + round % 1_000 / 20 + draw.below(10);
            match seen.arrives(packet, &mut lost) {
                Arrival::First => assert!(first.insert(packet), "{packet} twice"),
                Arrival::Copy => assert!(first.contains(&packet)),
                other => panic!("{packet} of round {round}: {other:?}"),
            }
        }
        assert_eq!(seen.arrives(70, &mut lost), Arrival::TooOld, "it is forgotten");
    }

    /// Of packets in any order, none goes on twice, and all do that come within as many packets as are remembered.
    #[test]
    fn nothing_goes_on_twice() {
        let draw = &mut Random::new(11);
        for size in [1_usize, 4, 64, 100] {
            let (mut seen, mut first, mut newest) = (Seen::of(1, size), BTreeSet::from([1]), 1_u64);
            let mut lost = 0;
            for _ in 0..20_000 {
                let back = (newest + 2).saturating_sub(draw.below(2 * size as u64 + 2)).max(1);
                // Now and then so many are lost that their places are another's.
                let packet = if draw.below(200) == 0 { newest + 3 * size as u64 } else { back };
                newest = newest.max(packet);
                match seen.arrives(packet, &mut lost) {
                    Arrival::First => assert!(first.insert(packet), "{packet} twice"),
                    Arrival::Copy => assert!(first.contains(&packet)),
                    _ => assert!(newest - packet >= size as u64, "{packet} is not so old"),
                }
            }
            let older = 1..=newest - size as u64;
            let missing = older.filter(|packet| !first.contains(packet)).count() as u64;
            assert!(lost > 0 && missing == lost, "{lost} lost, not {missing}");
        }
    }
}
