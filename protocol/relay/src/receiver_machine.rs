//! What a receiver says to the tree: how late market data comes to it, and which relays above it bring nothing. Receivers on sockets and
//! those of simulations are hosts of this one state machine.
//!
//! Both are said to the relay of the receiver's block; while that is silent to another one of its layer, then to one further up. While no
//! relay is in, the sender asks, and is told how late market data comes.
//!
//! *Deliberately absent*: what is read and held; sockets and clocks.
//!
//! *Invariants*
//! - What is remembered is bounded, and nothing is allocated for a packet.

use std::collections::BTreeMap;

use crate::copies::{Copies, CopiesSettings};
use crate::deadline::ReportSettings;
use crate::keeping::Keeping;
use crate::lateness::Lateness;
use crate::live::{Views, split};
use crate::packet::Header;
use crate::relay::TAKE_OVER;
use crate::tree::Tree;

/// A relay that was silent for so long gets no reports.
const SILENT_NS: u64 = 1_000_000_000;
/// The sender asks once a second. After so long without a question it is not there.
const SENDER_SILENT_NS: u64 = 3 * SILENT_NS;

/// See the module's documentation. `A` is an address.
#[derive(Debug)]
pub struct ReceiverMachine<A> {
    /// The tree's number.
    tree: u32,
    hedge: u32,
    /// The receiver's number in the tree.
    me: u32,
    /// The relays, by number, and when a packet of each came.
    relays: Vec<(A, Option<u64>)>,
    /// Their numbers, by address.
    numbers: BTreeMap<A, u32>,
    /// Those to which it reports, the first of them that is heard: that of its block, the others of its layer, those above.
    order: Vec<u32>,
    /// Where the sender asks, while no relay is in, and when it did.
    sender: Option<(A, u64)>,
    views: Views,
    copies: Copies,
    lateness: Lateness,
    next_ns: u64,
    /// Empty.
    mute: Vec<u32>,
}

impl<A: Copy + Ord> ReceiverMachine<A> {
    /// At this place of the last layer of a tree with this number and hedge, whose relays have these addresses, by number.
    ///
    /// # Panics
    /// Where there are fewer addresses than relays: the caller has both from one configuration.
    #[must_use]
    pub fn new(tree: &Tree, (number, hedge): (u32, u32), place: u32, relays: &[A], copies: CopiesSettings) -> Self {
        let relays = &relays[..tree.relays() as usize];
        let me = tree.relays().saturating_add(place);
        Self {
            tree: number,
            hedge,
            me,
            numbers: relays.iter().copied().zip(0..).collect(),
            relays: relays.iter().map(|address| (*address, None)).collect(),
            order: order(tree, place),
            sender: None,
            views: Views::new(tree),
            copies: Copies::new(me, tree.relays(), copies),
            lateness: Lateness::default(),
            next_ns: 0,
            mute: Vec::new(),
        }
    }

    /// The tree's number.
    #[must_use]
    pub fn tree_number(&self) -> u32 {
        self.tree
    }

    /// A message about the tree of its packet comes from an address, where that is known.
    pub fn on_keeping(&mut self, now_ns: u64, from: Option<A>, header: &Header, keeping: &Keeping) {
        if split(header.tree).0 != self.tree {
            return;
        }
        match keeping {
            // The sender says that it is there.
            Keeping::Ping { .. } => self.sender = from.map(|from| (from, now_ns)).or(self.sender),
            Keeping::View { version, epoch, out } => {
                if self.views.take(*version, *epoch, out) {
                    self.copies.set_view(self.views.newest());
                }
            }
            Keeping::Pong { .. } | Keeping::Taken { .. } | Keeping::Silent { .. } | Keeping::Mute { .. } | Keeping::Late { .. } => {
            }
        }
    }

    /// A copy of a packet came, the first one or another; before it so many of its channel are missing.
    pub fn on_packet(&mut self, now_ns: u64, from: A, header: &Header, is_first: bool, skipped: u64) {
        let Self { hedge, relays, numbers, views, copies, .. } = self;
        let number = numbers.get(&from).copied();
        if let Some((_, heard_ns)) = number.and_then(|number| relays.get_mut(number as usize)) {
            *heard_ns = Some(now_ns);
        }
        let (tree, epoch) = split(header.tree);
        if tree != self.tree || header.packet == 0 {
            return;
        }
        let Some(live) = views.known(epoch) else { return };
        let packet = (header.packet, *hedge);
        copies.arrives(now_ns, live, packet, is_first, |relay| number == Some(relay));
        copies.skipped(now_ns, live, packet, skipped);
    }

    /// The first copy of a packet came that is held until `release_ns`, by the clock by which it is released.
    pub fn on_held(&mut self, clock_ns: u64, release_ns: u64) {
        self.lateness.packet(clock_ns, release_ns);
    }

    /// Packets that came after their release time.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.lateness.late()
    }

    /// Appends what it is time to say, with the address to which it goes. `clock_ns` is the time by which packets are released, where that
    /// is known.
    pub fn on_timer(&mut self, now_ns: u64, clock_ns: Option<u64>, says: &mut Vec<(A, Keeping)>) {
        if let Some(clock_ns) = clock_ns.filter(|_| now_ns >= self.next_ns) {
            self.next_ns = now_ns.saturating_add(ReportSettings::ROBUST.interval_ns);
            // Taken even if there is no one to report to: the next report is about what comes from now on.
            let samples = self.lateness.report(clock_ns);
            says.extend(self.to(now_ns).map(|to| (to, Keeping::Late { node: self.me, samples })));
        }
        self.copies.on_timer(now_ns, &mut self.mute);
        let (by, version) = (self.me, self.views.version());
        let to = if self.mute.is_empty() { None } else { self.to(now_ns) };
        for node in self.mute.drain(..) {
            // A relay passes it on to the sender.
            says.extend(to.map(|to| (to, Keeping::Mute { node, by, version })));
        }
    }

    /// Where it reports.
    fn to(&self, now_ns: u64) -> Option<A> {
        let since = |at_ns: u64| now_ns.saturating_sub(at_ns);
        let mut in_order = self.order.iter().filter_map(|number| self.relays.get(*number as usize));
        let is_heard = |heard_ns: Option<u64>| heard_ns.is_some_and(|at_ns| since(at_ns) <= SILENT_NS);
        let relay = in_order.find(|(_, heard_ns)| is_heard(*heard_ns)).map(|(relay, _)| *relay);
        relay.or_else(|| self.sender.filter(|(_, at_ns)| since(*at_ns) <= SENDER_SILENT_NS).map(|(sender, _)| sender))
    }
}

/// The relays to which a receiver reports, by number: that of its block, the next ones of its layer, then those of the layers above.
fn order(tree: &Tree, place: u32) -> Vec<u32> {
    let last = tree.depth() - 1;
    let mut layers: Vec<Vec<u32>> = Vec::new();
    let mut first = 0;
    for width in &tree.layers()[..last] {
        layers.push((first..first + width).collect());
        first += width;
    }
    let Some(mut above) = layers.pop() else { return Vec::new() };
    let own = tree.block_of(last, place) as usize % above.len();
    above.rotate_left(own);
    above.extend(layers.into_iter().rev().flatten());
    above
}

/// The newest packet of each channel that came to a receiver.
#[derive(Debug)]
pub struct Newest {
    by_channel: BTreeMap<u32, u64>,
    channels_max: usize,
}

impl Newest {
    /// Of so many channels at most.
    #[must_use]
    pub fn new(channels_max: usize) -> Self {
        Self { by_channel: BTreeMap::new(), channels_max }
    }

    /// A packet came. Where it is newer than all before in its channel: how many numbers it leaves out.
    pub fn skips(&mut self, header: &Header) -> Option<u64> {
        let has_room = self.by_channel.len() < self.channels_max || self.by_channel.contains_key(&header.channel);
        if header.packet == 0 || !has_room {
            return None;
        }
        let last = self.by_channel.entry(header.channel).or_insert(0);
        let before = *last;
        *last = before.max(header.packet);
        let ahead = header.packet.checked_sub(before).filter(|ahead| *ahead > 0)?;
        // The first one of a channel, and of a sender that takes over, leave nothing out.
        Some(if before == 0 || ahead >= TAKE_OVER { 0 } else { ahead - 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::Maximum;
    use crate::live::{Live, join};
    use crate::packet::Kind;

    const MS: u64 = 1_000_000;
    const BEGIN_NS: u64 = 1_700_000_000_000_000_000;
    const TREE: u32 = 7;

    fn tree() -> Tree {
        Tree::of_layers(vec![2, 3, 6]).unwrap()
    }

    /// Two relays with the addresses 10 and 11, above three from 20 on, above six receivers.
    fn machine(place: u32) -> ReceiverMachine<u32> {
        ReceiverMachine::new(&tree(), (TREE, 1), place, &[10, 11, 20, 21, 22], CopiesSettings::default())
    }

    fn header(tree: u32, packet: u64) -> Header {
        Header { kind: Kind::Data, count: 1, channel: 1, tree, packet, first: 1, sent_ns: 1, release_ns: 0 }
    }

    fn says(machine: &mut ReceiverMachine<u32>, now_ns: u64, clock_ns: Option<u64>) -> Vec<(u32, Keeping)> {
        let mut says = Vec::new();
        machine.on_timer(now_ns, clock_ns, &mut says);
        says
    }

    fn reports_to(machine: &mut ReceiverMachine<u32>, now_ns: u64) -> Option<u32> {
        says(machine, now_ns, Some(now_ns)).pop().map(|(to, keeping)| {
            assert!(matches!(keeping, Keeping::Late { node: 8, .. }), "{keeping:?}");
            to
        })
    }

    fn at(ms: u64) -> u64 {
        BEGIN_NS + ms * MS
    }

    #[test]
    fn reports_go_to_the_own_relay_and_to_another_one_while_that_is_silent() {
        assert_eq!([0, 3, 5].map(|place| order(&tree(), place)), [[2, 3, 4, 0, 1], [3, 4, 2, 0, 1], [4, 2, 3, 0, 1]]);
        assert_eq!(order(&Tree::of_layers(vec![6]).unwrap(), 3), []);
        let mut machine = machine(3);
        assert_eq!(reports_to(&mut machine, BEGIN_NS), None, "nobody is there");
        for relay in [10, 20, 22, 99] {
            machine.on_packet(at(100), relay, &header(TREE, 1), true, 0);
        }
        assert_eq!(reports_to(&mut machine, at(100)), Some(22), "the next of its layer after its own, 21");
        machine.on_packet(at(110), 21, &header(TREE, 2), true, 0);
        assert_eq!((reports_to(&mut machine, at(199)), reports_to(&mut machine, at(200))), (None, Some(21)), "one in an interval");
        machine.on_packet(at(1_500), 10, &header(TREE, 3), true, 0);
        assert_eq!(reports_to(&mut machine, at(1_500)), Some(10), "all others were silent for a second");
        machine.on_keeping(at(4_000), Some(5), &header(TREE, 0), &Keeping::Ping { question: 0 });
        machine.on_keeping(at(4_000), Some(6), &header(TREE + 1, 0), &Keeping::Ping { question: 0 });
        assert_eq!((reports_to(&mut machine, at(4_100)), reports_to(&mut machine, at(9_000))), (Some(5), None));
        machine.on_packet(at(9_100), 20, &header(TREE, 4), true, 0);
        assert_eq!(says(&mut machine, at(9_200), None), [], "what time it is is not known");
        assert_eq!(reports_to(&mut machine, at(9_300)), Some(20));
    }

    /// The receiver's relay answers, and brings nothing. It says so to another one.
    #[test]
    fn a_relay_that_brings_nothing_is_named_to_one_that_does() {
        let (mut machine, out) = (machine(3), std::collections::BTreeSet::new());
        machine.on_keeping(BEGIN_NS, None, &header(TREE, 0), &Keeping::View { version: 9, epoch: 4, out: out.clone() });
        machine.on_keeping(BEGIN_NS, None, &header(TREE + 1, 0), &Keeping::View { version: 10, epoch: 5, out: [2].into() });
        let live = Live::without(&tree(), 4, &out);
        for packet in 1..=300 {
            let mut parents = Vec::new();
            live.parents(8, packet, 1, &mut parents);
            // Relays 2, 3 and 4 have the addresses from 20 on; 3 is mute.
            for (place, relay) in parents.into_iter().filter(|relay| *relay != 3).enumerate() {
                machine.on_packet(at(packet), 18 + relay, &header(join(TREE, 4), packet), place == 0, 0);
            }
        }
        let mute = (22, Keeping::Mute { node: 3, by: 8, version: 9 });
        assert_eq!(says(&mut machine, at(300), None), std::slice::from_ref(&mute));
        assert_eq!(says(&mut machine, at(301), None), [], "not again at once");
        // Of another tree, by an unknown view and without a number nothing follows.
        for header in [header(8, 5), header(join(TREE, 5), 5), header(TREE, 0)] {
            machine.on_packet(at(302), 21, &header, false, 0);
        }
        // It has been heard meanwhile.
        let (_, said) = mute;
        assert_eq!(says(&mut machine, at(400), None), [(21, said)]);
    }

    #[test]
    fn what_came_late_is_counted_and_reported() {
        let mut machine = machine(3);
        machine.on_held(BEGIN_NS + 5, BEGIN_NS);
        machine.on_held(BEGIN_NS, at(400));
        machine.on_packet(at(60), 21, &header(TREE, 1), true, 0);
        let late = Keeping::Late { node: 8, samples: vec![Maximum { packet: BEGIN_NS, delay_ns: 5 }] };
        assert_eq!(says(&mut machine, at(60), Some(at(60))), [(21, late)]);
        assert_eq!(machine.late(), 1);
    }

    #[test]
    fn the_newest_packet_of_a_channel_says_what_it_leaves_out() {
        let mut newest = Newest::new(2);
        let mut skips = |channel, packet| newest.skips(&Header { channel, ..header(1, packet) });
        assert_eq!([5, 6, 9, 8, 9, 0].map(|packet| skips(1, packet)), [Some(0), Some(0), Some(2), None, None, None]);
        assert_eq!((skips(2, 7), skips(1, 1 << 40), skips(1, (1 << 40) + 2)), (Some(0), Some(0), Some(1)));
        assert_eq!((skips(3, 7), skips(2, 9)), (None, Some(1)), "there is room for two channels");
    }
}
