//! Datagrams on their way: they are lost, doubled, late and overtaken, and none passes between machines whose path is cut.

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

/// See the module's documentation.
pub(super) struct Links {
    pub(super) quality: Quality,
    /// Pairs of machines, the lesser first, and how long nothing passes between them.
    cuts: Vec<(Address, Address, u64)>,
    /// By time, then by number.
    under_way: BTreeMap<(u64, u64), Datagram>,
    sent: u64,
    pub(super) lost_or_doubled: u64,
}

impl Links {
    pub(super) fn new() -> Self {
        Self { quality: Quality::GOOD, cuts: Vec::new(), under_way: BTreeMap::new(), sent: 0, lost_or_doubled: 0 }
    }

    pub(super) fn cut(&mut self, a: Address, b: Address, until_ns: u64) {
        self.cuts.push((a.min(b), a.max(b), until_ns));
    }

    /// All is well from now on.
    pub(super) fn heal(&mut self) {
        self.cuts.clear();
        self.quality = Quality::GOOD;
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
        self.sent += 1;
        self.under_way.insert((at_ns, self.sent), datagram);
    }

    /// When the next one arrives.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.under_way.first_key_value().map(|((at_ns, _), _)| *at_ns)
    }

    /// The next one that has arrived.
    pub(super) fn arrived(&mut self, now_ns: u64) -> Option<Datagram> {
        let first = self.under_way.first_entry().filter(|first| first.key().0 <= now_ns)?;
        Some(first.remove())
    }
}
