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
}

/// A sender that takes over goes on with a number that is greater by more: nothing between was ever sent. So it is with the packets of all
/// channels, and with the messages of snapshots.
pub const TAKE_OVER: u64 = 1 << 32;

/// Which packets of one channel were here. In constant time and memory: for each of the last numbers, modulo the size, the
/// number itself (Jasper, appendix A).
#[derive(Clone, Debug)]
struct Seen {
    last: Box<[u64]>,
    /// Packets that did not come before later ones took their places.
    lost: u64,
}

impl Seen {
    fn of(packets: usize) -> Self {
        Self { last: vec![0; packets].into(), lost: 0 }
    }

    fn arrives(&mut self, packet: u64) -> Arrival {
        let size = self.last.len() as u64;
        let at = (packet % size) as usize;
        let last = self.last[at];
        self.last[at] = packet.max(last);
        if last > 0 && packet > last && packet - last > size && packet - last < TAKE_OVER {
            // Those between had this place.
            self.lost += (packet - last) / size - 1;
        }
        match packet.cmp(&last) {
            std::cmp::Ordering::Greater => Arrival::First,
            std::cmp::Ordering::Equal => Arrival::Copy,
            std::cmp::Ordering::Less => Arrival::TooOld,
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
        Self { tree, settings, seen: BTreeMap::new() }
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
        self.seen.values().fold(0, |lost, seen| lost.saturating_add(seen.lost))
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
        if header.tree != self.settings.tree || header.kind == Kind::Again || header.packet == 0 {
            return Arrival::NotOurs;
        }
        let count = self.seen.len();
        match self.seen.entry(header.channel) {
            Entry::Occupied(mut seen) => seen.get_mut().arrives(header.packet),
            Entry::Vacant(_) if count >= self.settings.channels_max => Arrival::NotOurs,
            Entry::Vacant(new) => new.insert(Seen::of(self.settings.packets_remembered)).arrives(header.packet),
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
            (header(2, 5), Arrival::NotOurs),
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

    /// Of packets in any order, none goes on twice, and all do that come within as many packets as are remembered.
    #[test]
    fn nothing_goes_on_twice() {
        let draw = &mut Random::new(11);
        for size in [1_usize, 4, 64] {
            let (mut seen, mut first, mut newest) = (Seen::of(size), BTreeSet::new(), 0_u64);
            for _ in 0..20_000 {
                let back = (newest + 2).saturating_sub(draw.below(2 * size as u64 + 2)).max(1);
                // Now and then so many are lost that their places are another's.
                let packet = if draw.below(200) == 0 { newest + 3 * size as u64 } else { back };
                newest = newest.max(packet);
                match seen.arrives(packet) {
                    Arrival::First => assert!(first.insert(packet), "{packet} twice"),
                    Arrival::Copy => assert!(first.contains(&packet)),
                    _ => assert!(newest - packet >= size as u64, "{packet} is not so old"),
                }
            }
            // Of the numbers that share a place, those between two that came first.
            let size = size as u64;
            let of_place = |place: u64| first.iter().copied().filter(move |packet| packet % size == place);
            let between = |place: u64| of_place(place).zip(of_place(place).skip(1)).map(|(one, next)| (next - one) / size - 1);
            let lost: u64 = (0..size).flat_map(between).sum();
            assert!(lost > 0 && seen.lost == lost, "{} lost, not {lost}", seen.lost);
        }
    }
}
