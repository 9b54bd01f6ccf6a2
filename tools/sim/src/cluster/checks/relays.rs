//! Relays of market data: no relay passes a packet on twice in one life, nor by another view than the packet's, where it has said that it
//! knows that one. Once all nodes of a layer have passed a packet on, each node of the next layer has been sent as many copies as hedging
//! asks for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use walras_relay::live::split;
use walras_relay::packet::Header;

use crate::common::checks::{Checked, Violation};

const CHECK: &str = "relays";
/// Packets that are remembered.
const PACKETS_MAX: usize = 8_192;
/// Views of a life of a relay that are remembered, fewer than a relay remembers itself.
const VIEWS_MAX: usize = 4;

/// The nodes of a tree by one of its views.
#[derive(Debug)]
pub(crate) struct View {
    /// Relays that are out.
    pub(crate) out: BTreeSet<u32>,
    /// The other nodes, layer by layer, without empty layers; the last layer is the receivers.
    pub(crate) layers: Vec<Vec<u32>>,
}

/// Channel and number of a packet, and the tree with the view by which it goes.
type Name = (u32, u64, u32);

/// The packets that are on their way.
#[derive(Debug, Default)]
pub(super) struct Relays {
    packets: BTreeMap<Name, Passage>,
    order: VecDeque<Name>,
    /// By life of a relay: the views that it has said it knows, by version, each with its epoch and the relays that are out.
    known: BTreeMap<u64, BTreeMap<u64, (u16, BTreeSet<u32>)>>,
    /// Lives of relays that passed a packet on.
    passed: u64,
    judged: u64,
}

#[derive(Debug)]
struct Passage {
    view: Rc<View>,
    copies: u32,
    /// Which lives of relays passed it on.
    lives: BTreeSet<u64>,
    /// Which nodes did.
    passed: BTreeSet<u32>,
    /// How often it was sent to each node.
    sent: BTreeMap<u32, usize>,
    /// A relay passed it on by another view, since it does not know this one, or two senders used its name.
    is_odd: bool,
}

fn name(header: &Header) -> Name {
    (header.channel, header.packet, header.tree)
}

impl Relays {
    /// Packets passed on, and layers of a packet that were judged.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.passed, self.judged]
    }

    /// The sender sends a packet by a view.
    pub(super) fn on_sent(&mut self, header: &Header, view: &Rc<View>, hedge: u32) {
        let name = name(header);
        if let Some(known) = self.packets.get_mut(&name) {
            known.is_odd = true;
            return;
        }
        if self.order.len() == PACKETS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.packets.remove(&oldest);
        }
        self.order.push_back(name);
        let (lives, passed, sent) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        self.packets.insert(name, Passage { view: Rc::clone(view), copies: hedge + 1, lives, passed, sent, is_odd: false });
    }

    /// A relay says that it knows a view.
    pub(super) fn on_taken(&mut self, life: u64, version: u64, epoch: u16, out: &BTreeSet<u32>) {
        let known = self.known.entry(life).or_default();
        // A relay does not look at a view again that it knows.
        if known.get(&version).is_some_and(|(of, _)| *of == epoch) {
            return;
        }
        known.retain(|_, (of, _)| *of != epoch);
        known.insert(version, (epoch, out.clone()));
        if known.len() > VIEWS_MAX {
            known.pop_first();
        }
    }

    /// Whether a relay passes a packet on by another view than the packet's, which it knows. All know the one of epoch 0.
    fn is_by_another(&self, header: &Header, life: u64, out: &BTreeSet<u32>) -> bool {
        let (_, epoch) = split(header.tree);
        let known = || self.known.get(&life)?.values().find(|(of, _)| *of == epoch).map(|(_, known)| known);
        if epoch == 0 { !out.is_empty() } else { known().is_some_and(|known| known != out) }
    }

    /// A relay passes a packet on, by a view without the relays `out`.
    pub(super) fn on_passed(
        &mut self,
        header: &Header,
        (relay, life): (u32, u64),
        out: &BTreeSet<u32>,
        children: &[u32],
    ) -> Checked {
        let says = |what: String| {
            let detail = format!("packet {} of channel {} by tree {:#x}: {what}", header.packet, header.channel, header.tree);
            Err(Violation::new(CHECK, detail))
        };
        if self.is_by_another(header, life, out) {
            return says(format!("relay {relay} passes it on by a view without {out:?}, and knows another one for it"));
        }
        let Some(passage) = self.packets.get_mut(&name(header)) else { return Ok(()) };
        self.passed += 1;
        if !passage.lives.insert(life) {
            return says(format!("relay {relay} passes it on again"));
        }
        // A relay that started again meanwhile may pass it on twice.
        passage.is_odd |= !passage.passed.insert(relay) || *out != passage.view.out;
        children.iter().for_each(|child| *passage.sent.entry(*child).or_default() += 1);
        let Passage { view, copies, passed, sent, is_odd, .. } = passage;
        let layers = &view.layers;
        let Some(at) = layers.iter().position(|layer| layer.contains(&relay)) else { return Ok(()) };
        let Some(below) = layers.get(at + 1) else { return Ok(()) };
        if *is_odd || !layers[at].iter().all(|relay| passed.contains(relay)) {
            return Ok(());
        }
        self.judged += 1;
        let expected = (*copies as usize).min(layers[at].len());
        for node in below {
            let got = sent.get(node).copied().unwrap_or(0);
            if got != expected {
                return says(format!(
                    "node {node} was sent {got} copies by the {} relays above it, not {expected}",
                    layers[at].len()
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use walras_relay::live::join;
    use walras_relay::packet::Kind;

    use super::*;

    const EPOCH: u16 = 7;

    fn header(packet: u64) -> Header {
        Header { kind: Kind::Data, count: 1, channel: 1, tree: join(1, EPOCH), packet, first: 1, sent_ns: 0, release_ns: 0 }
    }

    #[test]
    fn a_relay_that_passes_a_packet_on_by_another_view_than_it_knows_for_it_is_found() {
        let (view, none, one) = (|out: u32| BTreeSet::from([out]), BTreeSet::new(), BTreeSet::from([1]));
        let mut relays = Relays::default();
        let pass = |relays: &mut Relays, header: &Header, life, out: &BTreeSet<u32>| {
            relays.on_passed(header, (0, life), out, &[3]).err().map_or_else(String::new, |violation| violation.detail)
        };
        assert_eq!(pass(&mut relays, &header(1), 10, &one), "", "it has not said that it knows the view");
        relays.on_taken(10, 100, EPOCH, &one);
        assert!(pass(&mut relays, &header(1), 10, &none).contains("relay 0 passes it on by a view without {}"));
        assert_eq!(pass(&mut relays, &header(1), 10, &one), "");
        assert_eq!(pass(&mut relays, &header(1), 11, &none), "", "another life");
        let of_all = Header { tree: 1, ..header(1) };
        assert_eq!(pass(&mut relays, &of_all, 11, &none), "");
        assert!(pass(&mut relays, &of_all, 11, &one).contains("passes it on"), "everybody knows that view");
        // Another sender has the same epoch; then the view is forgotten.
        relays.on_taken(10, 200, EPOCH, &view(2));
        assert_eq!(pass(&mut relays, &header(2), 10, &view(2)), "");
        (1..=4).for_each(|at| relays.on_taken(10, 200 + u64::from(at), EPOCH + at, &none));
        assert_eq!(pass(&mut relays, &header(2), 10, &none), "");
    }

    #[test]
    fn repeats_and_missing_hedges_are_found() {
        let view = Rc::new(View { out: BTreeSet::new(), layers: vec![vec![0, 1, 2], vec![3, 4, 5]] });
        let mut relays = Relays::default();
        (1..=3).for_each(|packet| relays.on_sent(&header(packet), &view, 1));
        let mut pass = |packet, relay, life, knows: bool, children: &[u32]| {
            let out = if knows { BTreeSet::new() } else { BTreeSet::from([9]) };
            relays
                .on_passed(&header(packet), (relay, life), &out, children)
                .err()
                .map_or_else(String::new, |violation| violation.detail)
        };
        assert_eq!((pass(1, 0, 10, true, &[3, 4]), pass(1, 1, 11, true, &[4, 5])), (String::new(), String::new()));
        assert!(pass(1, 1, 11, true, &[4, 5]).contains("again"));
        assert_eq!(pass(1, 2, 12, true, &[5, 3]), "");
        assert_eq!((pass(2, 0, 10, true, &[3, 4]), pass(2, 1, 11, true, &[4])), (String::new(), String::new()));
        assert!(pass(2, 2, 12, true, &[5, 3]).contains("node 5 was sent 1 copies by the 3 relays above it, not 2"));
        // A relay that does not know the view may leave copies out.
        assert_eq!((pass(3, 0, 10, true, &[3, 4]), pass(3, 1, 11, false, &[4])), (String::new(), String::new()));
        assert_eq!(pass(3, 2, 12, true, &[5, 3]), "");
        assert_eq!(relays.counts(), [10, 2]);
    }
}
