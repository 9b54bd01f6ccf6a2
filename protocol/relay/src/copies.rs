//! Which relays above a node bring it packets. A relay that answers all questions and forwards nothing is known to those below it alone.
//!
//! A packet names the view by which it goes, so a node knows which relays send it a copy. A relay is *mute* for a node when it brought none
//! of a number of packets in a row that others brought, and that over some time. One node may be wrong, since a path may be cut: the
//! sender judges by what several say ([`crate::keeper`]).
//!
//! Without hedges nobody else brings what a mute relay does not. Then the numbers that are missing tell, but only of relays of the first
//! layer, which have all packets from the sender. What a relay further down does not bring may have been lost above it.
//!
//! *Deliberately absent*: a layer of one relay. When it is mute nothing comes, as when there is nothing to send.

use crate::live::Live;

/// When a relay is mute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopiesSettings {
    /// Packets in a row of which it brought no copy.
    pub packets: u32,
    /// For so long at least: a relay that stands still for a moment is not mute.
    pub silent_ns: u64,
    /// From one report to the next.
    pub report_ns: u64,
}

impl Default for CopiesSettings {
    /// 64 packets, 250 ms, and 100 ms.
    fn default() -> Self {
        Self { packets: 64, silent_ns: 250_000_000, report_ns: 100_000_000 }
    }
}

/// Packets that one packet can show to be missing: of a longer gap nobody knows by which views they went.
const SKIPPED_MAX: u64 = 16;

/// What a relay did not bring since it brought something.
#[derive(Clone, Copy, Debug, Default)]
struct Missed {
    packets: u32,
    /// When the first of them came from another one.
    since_ns: u64,
}

impl Missed {
    fn add(&mut self, now_ns: u64) {
        if self.packets == 0 {
            self.since_ns = now_ns;
        }
        self.packets = self.packets.saturating_add(1);
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Copies {
    me: u32,
    settings: CopiesSettings,
    /// The view by which relays are judged.
    epoch: u16,
    /// By the number of a relay.
    missed: Vec<Missed>,
    /// Empty.
    parents: Vec<u32>,
    report_at_ns: u64,
}

impl Copies {
    /// Of a node with this number, in a tree with so many relays.
    #[must_use]
    pub fn new(me: u32, relays: u32, settings: CopiesSettings) -> Self {
        Self { me, settings, epoch: 0, missed: vec![Missed::default(); relays as usize], parents: Vec::new(), report_at_ns: 0 }
    }

    /// The newest view. What was missed before it does not count: relays may be in that were out.
    pub fn set_view(&mut self, live: &Live) {
        if std::mem::replace(&mut self.epoch, live.epoch()) != live.epoch() {
            self.missed.fill(Missed::default());
        }
    }

    /// A copy of a packet came that goes by this view, the first one or another. `is_from` says whether it came from the address of a
    /// relay. A copy that comes from no address that is known counts for all relays that may have sent it.
    pub fn arrives(
        &mut self,
        now_ns: u64,
        live: &Live,
        (packet, hedge): (u64, u32),
        is_first: bool,
        is_from: impl Fn(u32) -> bool,
    ) {
        let Self { me, missed, parents, .. } = self;
        live.parents(*me, packet, hedge, parents);
        let by = parents.iter().copied().find(|parent| is_from(*parent));
        for parent in parents.drain(..) {
            let Some(missed) = missed.get_mut(parent as usize) else { continue };
            if by.is_none_or(|by| by == parent) {
                *missed = Missed::default();
            } else if is_first {
                missed.add(now_ns);
            }
        }
    }

    /// A packet came before so many others of its channel, which are missing: none of the relays that should have sent them did so yet. It
    /// counts against relays of the first layer.
    pub fn skipped(&mut self, now_ns: u64, live: &Live, (packet, hedge): (u64, u32), skipped: u64) {
        let Self { me, missed, parents, .. } = self;
        for before in 1..=skipped.min(SKIPPED_MAX) {
            live.parents(*me, packet.saturating_sub(before), hedge, parents);
            for parent in parents.drain(..).filter(|parent| live.is_of_first_layer(*parent)) {
                if let Some(missed) = missed.get_mut(parent as usize) {
                    missed.add(now_ns);
                }
            }
        }
    }

    /// Appends the numbers of relays that are mute, where it is time to report.
    pub fn on_timer(&mut self, now_ns: u64, mute: &mut Vec<u32>) {
        let CopiesSettings { packets, silent_ns, report_ns } = self.settings;
        if now_ns < self.report_at_ns {
            return;
        }
        self.report_at_ns = now_ns.saturating_add(report_ns);
        let is_mute = |missed: &Missed| missed.packets >= packets && now_ns.saturating_sub(missed.since_ns) >= silent_ns;
        mute.extend((0..).zip(&self.missed).filter(|&(_, missed)| is_mute(missed)).map(|(relay, _): (u32, _)| relay));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tree::Tree;

    const MS: u64 = 1_000_000;
    const HEDGE: u32 = 1;

    /// Three relays above four; the node is the first of these.
    fn of_node() -> (Live, Copies) {
        let tree = Tree::of_layers(vec![3, 4, 9]).unwrap();
        (Live::all(&tree), Copies::new(3, tree.relays(), CopiesSettings::default()))
    }

    fn parents(live: &Live, packet: u64, hedge: u32) -> Vec<u32> {
        let mut parents = Vec::new();
        live.parents(3, packet, hedge, &mut parents);
        parents
    }

    fn mute(copies: &mut Copies, now_ns: u64) -> Vec<u32> {
        let mut mute = Vec::new();
        copies.on_timer(now_ns, &mut mute);
        mute
    }

    /// A millisecond for each packet, of which these relays bring no copy.
    fn run(copies: &mut Copies, live: &Live, packets: std::ops::Range<u64>, silent: &[u32]) {
        for packet in packets {
            let bring = parents(live, packet, HEDGE).into_iter().filter(|parent| !silent.contains(parent));
            for (at, by) in bring.enumerate() {
                copies.arrives(packet * MS, live, (packet, HEDGE), at == 0, |parent| parent == by);
            }
        }
    }

    #[test]
    fn a_relay_that_brings_nothing_while_others_do_is_mute_until_it_brings_something() {
        let (live, mut copies) = of_node();
        run(&mut copies, &live, 1..400, &[]);
        assert_eq!(mute(&mut copies, 400 * MS), []);
        // Two of three packets should have come by it.
        run(&mut copies, &live, 400..480, &[1]);
        assert_eq!(mute(&mut copies, 700 * MS), [], "fewer than 64, however long it takes");
        run(&mut copies, &live, 480..500, &[1]);
        assert_eq!(mute(&mut copies, 750 * MS), [], "not at once again");
        assert_eq!(mute(&mut copies, 800 * MS), [1]);
        let by_it = (800..).find(|packet| parents(&live, *packet, HEDGE).contains(&1)).unwrap();
        copies.arrives(801 * MS, &live, (by_it, HEDGE), false, |parent| parent == 1);
        assert_eq!(mute(&mut copies, 950 * MS), []);
        // One of three packets goes by these two alone, and does not come.
        run(&mut copies, &live, 960..1_180, &[1, 2]);
        assert_eq!(mute(&mut copies, 1_190 * MS), [], "it is not long enough ago");
        assert_eq!(mute(&mut copies, 1_300 * MS), [1, 2]);
        // What was missed does not count in another view.
        copies.set_view(&live);
        assert_eq!(mute(&mut copies, 1_400 * MS), [1, 2], "it is the same one");
        let tree = Tree::of_layers(vec![3, 4, 9]).unwrap();
        let without = Live::without(&tree, 7, &BTreeSet::from([1]));
        copies.set_view(&without);
        assert_eq!(mute(&mut copies, 1_500 * MS), []);
        run(&mut copies, &without, 1_500..2_000, &[1]);
        assert_eq!(mute(&mut copies, 2_000 * MS), [], "it is out, and nobody expects anything of it");
    }

    /// Without hedges nobody else brings what a mute relay does not: it shows in the numbers.
    #[test]
    fn without_hedges_the_numbers_that_are_missing_tell() {
        let (live, mut copies) = of_node();
        let mut last = 0;
        for packet in 1..600 {
            let [by] = parents(&live, packet, 0)[..] else { panic!("one parent") };
            if by != 2 {
                copies.arrives(packet * MS, &live, (packet, 0), true, |parent| parent == by);
                copies.skipped(packet * MS, &live, (packet, 0), packet - last - 1);
                last = packet;
            }
        }
        assert_eq!(mute(&mut copies, 600 * MS), [2]);
        // A gap of any length is no more than some packets.
        copies.skipped(600 * MS, &live, (5, 0), u64::MAX);
        assert!(copies.missed.iter().all(|missed| missed.packets <= 600 / 3 + SKIPPED_MAX as u32), "{copies:?}");
    }

    /// What is lost in the first layer looks to those further down as if relays of the second one did not bring it.
    #[test]
    fn what_was_lost_further_up_is_nobodys_fault() {
        let tree = Tree::of_layers(vec![2, 4, 9]).unwrap();
        let (live, mut copies) = (Live::all(&tree), Copies::new(6, tree.relays(), CopiesSettings::default()));
        for packet in (1..2_000).step_by(2) {
            let mut parents = Vec::new();
            live.parents(6, packet, 0, &mut parents);
            copies.arrives(packet * MS, &live, (packet, 0), true, |parent| parent == parents[0]);
            copies.skipped(packet * MS, &live, (packet, 0), 1);
        }
        assert_eq!(mute(&mut copies, 2_000 * MS), []);
    }

    /// Behind address translation a relay's packets come from an address that no file has.
    #[test]
    fn copies_from_unknown_addresses_count_for_all_who_may_have_sent_them() {
        let (live, mut copies) = of_node();
        for packet in 1..1_000 {
            copies.arrives(packet * MS, &live, (packet, HEDGE), true, |_| false);
        }
        assert_eq!(mute(&mut copies, 1_000 * MS), []);
    }

    #[test]
    fn the_first_layer_and_strangers_have_nobody_to_judge() {
        let (live, _) = of_node();
        for me in [0, 400, u32::MAX] {
            let mut copies = Copies::new(me, 7, CopiesSettings::default());
            run(&mut copies, &live, 1..900, &[0, 1, 2]);
            copies.skipped(1, &live, (9, HEDGE), 3);
            assert_eq!(mute(&mut copies, 1_000 * MS), []);
        }
    }
}
