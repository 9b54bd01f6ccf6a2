//! Datagrams on their way: they are lost, doubled, late and overtaken, and none passes between machines whose path is cut. In some venues
//! nodes of the tree take one after the other, and their sockets have little room.

use std::collections::BTreeMap;
use std::rc::Rc;

use walras_testkit::Choices;

/// Sockets that send and receive datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Address {
    /// The socket of a keeper at a replica's machine; each keeper has one of its own.
    Keeper(usize, u64),
    /// The socket at which a replica is asked for messages.
    Requests(usize),
    /// A node of the tree: a relay or a receiver.
    Node(u32),
    /// The socket at which a leaf gateway, by its place among the receivers, is asked for messages. Only its participants ask
    /// there.
    LeafRequests(u32),
    /// A reader below a leaf gateway, to which no path is cut.
    Participant(u32, usize),
}

impl Address {
    /// Its machine. A path between two machines may be cut.
    fn machine(self) -> Self {
        match self {
            Self::Keeper(at, _) => Self::Requests(at),
            other => other,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) from: Address,
    pub(super) to: Address,
    pub(super) bytes: Rc<[u8]>,
}

/// How well datagrams are delivered at present.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quality {
    loss_permille: u64,
    doubled_permille: u64,
    delay_ns_max: u64,
}

impl Quality {
    pub(super) const GOOD: Self = Self { loss_permille: 0, doubled_permille: 0, delay_ns_max: 200_000 };

    pub(super) fn draw(c: &mut Choices<'_>) -> Self {
        Self {
            loss_permille: c.pick(&[0, 5, 50, 300]),
            doubled_permille: c.pick(&[0, 20, 200]),
            delay_ns_max: c.pick(&[200_000, 2_000_000, 40_000_000]),
        }
    }
}

const DELAY_NS_MIN: u64 = 20_000;

/// Where rooms are limited: datagrams that wait in the socket of a node, and how long the node takes for each.
const ROOM: u64 = 24;
const TAKES_NS: u64 = 20_000;

/// A datagram that has not arrived.
struct UnderWay {
    datagram: Datagram,
    /// It lies in the socket, and is taken then.
    is_waiting: bool,
}

/// See the module's documentation.
pub(super) struct Links {
    pub(super) quality: Quality,
    /// Pairs of machines, the lesser first, and how long nothing passes between them.
    cuts: Vec<(Address, Address, u64)>,
    /// By time, then by number.
    under_way: BTreeMap<(u64, u64), UnderWay>,
    sent: u64,
    pub(super) lost_or_doubled: u64,
    /// Where rooms are limited: up to when each node has something to take.
    busy_until_ns: Option<BTreeMap<Address, u64>>,
    /// Datagrams for which a socket had no room.
    pub(super) overflowed: u64,
}

impl Links {
    pub(super) fn new() -> Self {
        let (quality, cuts, under_way) = (Quality::GOOD, Vec::new(), BTreeMap::new());
        Self { quality, cuts, under_way, sent: 0, lost_or_doubled: 0, busy_until_ns: None, overflowed: 0 }
    }

    /// Sockets of nodes have little room from now on.
    pub(super) fn limit(&mut self) {
        self.busy_until_ns = Some(BTreeMap::new());
    }

    pub(super) fn cut(&mut self, a: Address, b: Address, until_ns: u64) {
        self.cuts.push((a.min(b), a.max(b), until_ns));
    }

    /// All is well from now on.
    pub(super) fn heal(&mut self) {
        self.cuts.clear();
        self.quality = Quality::GOOD;
        self.busy_until_ns = None;
    }

    pub(super) fn send(&mut self, c: &mut Choices<'_>, now_ns: u64, datagram: Datagram) {
        let Quality { loss_permille, doubled_permille, delay_ns_max } = self.quality;
        self.cuts.retain(|(_, _, until_ns)| *until_ns > now_ns);
        let [from, to] = [datagram.from.machine(), datagram.to.machine()];
        let is_cut = self.cuts.iter().any(|(a, b, _)| (*a, *b) == (from.min(to), from.max(to)));
        if is_cut || c.below(1_000) < loss_permille {
            self.lost_or_doubled += 1;
            return;
        }
        let copies = if c.below(1_000) < doubled_permille { 2 } else { 1 };
        self.lost_or_doubled += copies - 1;
        for _ in 0..copies {
            self.at(now_ns + DELAY_NS_MIN + c.below(delay_ns_max), datagram.clone());
        }
    }

    /// A datagram arrives then.
    pub(super) fn at(&mut self, at_ns: u64, datagram: Datagram) {
        self.put(at_ns, UnderWay { datagram, is_waiting: false });
    }

    fn put(&mut self, at_ns: u64, under_way: UnderWay) {
        self.sent += 1;
        self.under_way.insert((at_ns, self.sent), under_way);
    }

    /// When the next one arrives.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.under_way.first_key_value().map(|((at_ns, _), _)| *at_ns)
    }

    /// The next one that has arrived, and is taken.
    pub(super) fn arrived(&mut self, now_ns: u64) -> Option<Datagram> {
        loop {
            let first = self.under_way.first_entry().filter(|first| first.key().0 <= now_ns)?;
            let ((at_ns, _), UnderWay { datagram, is_waiting }) = first.remove_entry();
            if is_waiting {
                return Some(datagram);
            }
            match self.taken_ns(at_ns, datagram.to) {
                Some(taken_ns) if taken_ns == at_ns => return Some(datagram),
                Some(taken_ns) => self.put(taken_ns, UnderWay { datagram, is_waiting: true }),
                None => self.overflowed += 1,
            }
        }
    }

    /// When a datagram that arrives is taken; `None` where its socket has no room.
    fn taken_ns(&mut self, at_ns: u64, to: Address) -> Option<u64> {
        let (Some(nodes), Address::Node(_)) = (&mut self.busy_until_ns, to) else { return Some(at_ns) };
        let busy_until_ns = nodes.entry(to).or_insert(0);
        let taken_ns = at_ns.max(*busy_until_ns);
        if taken_ns - at_ns > ROOM * TAKES_NS {
            return None;
        }
        *busy_until_ns = taken_ns + TAKES_NS;
        Some(taken_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst of a hundred datagrams to a node, and one to a port that is none of the tree's.
    #[test]
    fn a_node_takes_one_after_the_other_and_has_room_for_few() {
        let datagram = |to| Datagram { from: Address::Requests(0), to, bytes: Rc::from([]) };
        let [node, other] = [Address::Node(3), Address::LeafRequests(3)];
        for is_limited in [false, true] {
            let mut links = Links::new();
            if is_limited {
                links.limit();
            }
            (0..100).for_each(|_| links.at(1_000, datagram(node)));
            links.at(1_001, datagram(other));
            let (mut taken, mut now_ns) = (Vec::new(), 0);
            while let Some(next_ns) = links.next_ns() {
                now_ns = next_ns.max(now_ns);
                taken.extend(std::iter::from_fn(|| links.arrived(now_ns)).map(|datagram| (now_ns, datagram.to)));
            }
            assert!(taken.contains(&(1_001, other)));
            let of_node: Vec<u64> = taken.iter().filter(|(_, to)| *to == node).map(|(at_ns, _)| *at_ns).collect();
            if is_limited {
                assert_eq!(of_node, (0..=ROOM).map(|at| 1_000 + at * TAKES_NS).collect::<Vec<_>>());
                assert_eq!(links.overflowed, 99 - ROOM);
            } else {
                assert_eq!((of_node, links.overflowed), (vec![1_000; 100], 0));
            }
        }
    }
}
