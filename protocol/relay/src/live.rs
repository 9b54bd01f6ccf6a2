//! A tree of which some relays are out: the others of their layers do their work.
//!
//! Nodes have numbers: the first layer's from 0 on by place, then those of the next layer, and so on. Each change of who is out is a
//! *view*, and each view has a number, its epoch, which packets have. So relays pass a packet on by the view of the moment in which it was
//! sent, whatever view came since. The view of epoch 0 has all nodes, and every node knows it.

use std::collections::BTreeSet;

use crate::tree::Tree;

/// Relays of a tree at most of which some can be out.
pub const RELAYS_MAX: u32 = 8_192;
/// Views that a relay remembers, beside that of epoch 0.
const VIEWS_MAX: usize = 8;
/// The lower bits of a packet's `tree` are the tree's number, the others the epoch.
const TREE_BITS: u32 = 16;
/// Greatest number of a tree.
pub const TREE_NUMBER_MAX: u32 = (1 << TREE_BITS) - 1;

/// What a packet's `tree` says: the tree's number and the epoch.
#[must_use]
pub const fn split(tree: u32) -> (u32, u16) {
    (tree & TREE_NUMBER_MAX, (tree >> TREE_BITS) as u16)
}

/// The other way round.
#[must_use]
pub const fn join(number: u32, epoch: u16) -> u32 {
    number & TREE_NUMBER_MAX | (epoch as u32) << TREE_BITS
}

/// A layer that has nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layer {
    /// The numbers of its nodes, in order.
    nodes: Vec<u32>,
}

/// A view: who is in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    epoch: u16,
    out: BTreeSet<u32>,
    /// Layers that have nodes; the last are the receivers.
    layers: Vec<Layer>,
    /// Their shape.
    tree: Tree,
    /// By number: layer and place there. Of relays alone, the others are receivers.
    places: Vec<Option<(usize, u32)>>,
    /// The number of the first receiver.
    receivers: u32,
}

impl Live {
    /// All nodes of a tree.
    #[must_use]
    pub fn all(tree: &Tree) -> Self {
        Self::without(tree, 0, &BTreeSet::new())
    }

    /// All but these relays. A layer that has none left is passed over. Receivers are always in.
    #[must_use]
    pub fn without(tree: &Tree, epoch: u16, out: &BTreeSet<u32>) -> Self {
        let receivers = tree.relays();
        let out: BTreeSet<u32> = out.iter().copied().filter(|node| *node < receivers).collect();
        let (mut layers, mut first) = (Vec::new(), 0);
        for width in tree.layers() {
            let nodes: Vec<u32> = (first..first + width).filter(|node| !out.contains(node)).collect();
            layers.extend((!nodes.is_empty()).then_some(Layer { nodes }));
            first += width;
        }
        let mut places = vec![None; receivers as usize];
        for (at, layer) in layers.iter().enumerate() {
            for (place, node) in (0..).zip(&layer.nodes) {
                if let Some(known) = places.get_mut(*node as usize) {
                    *known = Some((at, place));
                }
            }
        }
        let widths = layers.iter().map(|layer| layer.nodes.len() as u32).collect();
        Self { epoch, out, tree: Tree::of_widths(widths), layers, places, receivers }
    }

    /// Its number.
    #[must_use]
    pub fn epoch(&self) -> u16 {
        self.epoch
    }

    /// Relays that are out.
    #[must_use]
    pub fn out(&self) -> &BTreeSet<u32> {
        &self.out
    }

    /// Relays that are in, by number.
    pub fn relays(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.receivers).filter(|node| !self.out.contains(node))
    }

    /// Layer and place of a relay, among those that are in.
    fn place(&self, relay: u32) -> Option<(usize, u32)> {
        self.places.get(relay as usize).copied().flatten()
    }

    /// Appends the nodes to which a relay, or with `None` the sender, sends a packet, in order. A relay that is out sends to nobody.
    pub fn children(&self, relay: Option<u32>, packet: u64, hedge: u32, children: &mut Vec<u32>) {
        let Some((layer, place)) = relay.map_or(Some((0, 0)), |relay| self.place(relay).map(|(layer, place)| (layer + 1, place)))
        else {
            return;
        };
        let nodes = &self.layers[layer].nodes;
        children.extend(self.tree.children(layer, place, packet, hedge).map(|place| nodes[place as usize]));
    }

    /// The relay whose copy of a packet a relay has where nothing fails; `None` where that is the sender, or the relay is out.
    #[must_use]
    pub fn own_parent(&self, relay: u32, packet: u64, hedge: u32) -> Option<u32> {
        let (layer, place) = self.place(relay)?;
        let above = &self.layers[layer.checked_sub(1)?].nodes;
        let parent = self.tree.parents(layer, place, packet, hedge).next()?;
        above.get(parent as usize).copied()
    }

    /// Appends the relays that send a packet to a node, a relay or a receiver; none where that is the sender, or the node is out.
    pub fn parents(&self, node: u32, packet: u64, hedge: u32, parents: &mut Vec<u32>) {
        let of_receiver = || node.checked_sub(self.receivers).map(|place| (self.layers.len() - 1, place));
        let Some((layer, place)) = self.place(node).or_else(of_receiver) else { return };
        let Some(above) = layer.checked_sub(1).map(|above| &self.layers[above].nodes) else { return };
        if place < self.tree.layers()[layer] {
            parents.extend(self.tree.parents(layer, place, packet, hedge).filter_map(|parent| above.get(parent as usize)));
        }
    }

    /// The nodes of the layer below a relay, by number: all of them get packets of it. None where the relay is out.
    #[must_use]
    pub fn below(&self, relay: u32) -> &[u32] {
        self.place(relay).map_or(&[], |(layer, _)| &self.layers[layer + 1].nodes[..])
    }

    /// The nodes that report to a relay, by number: those of its block, which no spraying changes. None where the relay is out.
    #[must_use]
    pub fn reporters(&self, relay: u32) -> &[u32] {
        self.place(relay).map_or(&[], |(layer, place)| {
            let block = self.tree.block(layer + 1, place);
            &self.layers[layer + 1].nodes[block.start as usize..block.end as usize]
        })
    }

    /// Whether a relay has its packets from the sender itself.
    #[must_use]
    pub fn is_of_first_layer(&self, relay: u32) -> bool {
        self.place(relay).is_some_and(|(layer, _)| layer == 0)
    }

    /// Whether a node is a receiver.
    #[must_use]
    pub fn is_receiver(&self, node: u32) -> bool {
        node >= self.receivers
    }

    /// To whom a relay reports what receivers below it say: the parent of its block, which no spraying changes. `None` where that is the
    /// sender, or the relay is out.
    #[must_use]
    pub fn reports_to(&self, relay: u32) -> Option<u32> {
        let (layer, place) = self.place(relay)?;
        let above = &self.layers[layer.checked_sub(1)?].nodes;
        above.get(self.tree.block_of(layer, place) as usize).copied()
    }

    /// The sibling that a relay watches: the next one of its layer, after the last the first. `None` where there is no other.
    #[must_use]
    pub fn watched_by(&self, relay: u32) -> Option<u32> {
        let (layer, place) = self.place(relay)?;
        let nodes = &self.layers[layer].nodes;
        nodes.get((place as usize + 1) % nodes.len()).copied().filter(|next| *next != relay)
    }
}

/// The views that a relay knows.
#[derive(Debug)]
pub struct Views {
    tree: Tree,
    all: Live,
    /// Oldest first, each with the version that its sender gave it.
    known: Vec<(u64, Live)>,
}

impl Views {
    /// That of epoch 0 alone.
    #[must_use]
    pub fn new(tree: &Tree) -> Self {
        Self { tree: tree.clone(), all: Live::all(tree), known: Vec::new() }
    }

    /// Takes a view. Whether it is known now: one that is older than another of its epoch, or than all that are remembered, is not.
    pub fn take(&mut self, version: u64, epoch: u16, out: &BTreeSet<u32>) -> bool {
        if self.known.iter().any(|(known, live)| *known == version && live.epoch() == epoch) {
            return true;
        }
        let is_old = self.known.iter().any(|(known, live)| live.epoch() == epoch && *known > version)
            || (self.known.len() >= VIEWS_MAX && self.known[0].0 > version);
        if epoch == 0 || is_old {
            return false;
        }
        self.known.retain(|(_, live)| live.epoch() != epoch);
        self.known.push((version, Live::without(&self.tree, epoch, out)));
        self.known.sort_by_key(|(version, _)| *version);
        if self.known.len() > VIEWS_MAX {
            self.known.remove(0);
        }
        true
    }

    /// The newest view.
    #[must_use]
    pub fn newest(&self) -> &Live {
        self.known.last().map_or(&self.all, |(_, live)| live)
    }

    /// The version of the newest view; 0 where that is the one of epoch 0.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.known.last().map_or(0, |(version, _)| *version)
    }

    /// That of an epoch, where it is known.
    #[must_use]
    pub fn known(&self, epoch: u16) -> Option<&Live> {
        if epoch == 0 {
            return Some(&self.all);
        }
        self.known.iter().map(|(_, live)| live).find(|live| live.epoch() == epoch)
    }

    /// That of an epoch. Where it is not known, the newest: it differs by few relays, and hedges go by others.
    #[must_use]
    pub fn of(&self, epoch: u16) -> &Live {
        self.known(epoch).unwrap_or_else(|| self.newest())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn children(live: &Live, relay: Option<u32>, packet: u64, hedge: u32) -> Vec<u32> {
        let mut children = Vec::new();
        live.children(relay, packet, hedge, &mut children);
        children
    }

    #[test]
    fn with_all_nodes_it_is_the_tree() {
        let tree = Tree::new(3, 3, 20).unwrap();
        let live = Live::all(&tree);
        for packet in 0..40 {
            let places: Vec<u32> = tree.children(0, 0, packet, 1).collect();
            assert_eq!(children(&live, None, packet, 1), places);
            for (relay, first) in [(0, 3), (2, 3), (3, 12), (11, 12)] {
                let (layer, place) = if relay < 3 { (1, relay) } else { (2, relay - 3) };
                let places: Vec<u32> = tree.children(layer, place, packet, 1).map(|place| place + first).collect();
                assert_eq!(children(&live, Some(relay), packet, 1), places);
            }
            assert_eq!(live.own_parent(5, packet, 1), tree.parents(1, 2, packet, 1).next());
        }
        assert_eq!((live.watched_by(0), live.watched_by(2), live.watched_by(11)), (Some(1), Some(0), Some(3)));
        assert_eq!((live.own_parent(1, 4, 1), live.watched_by(12)), (None, None));
        let parents = [0, 2, 3, 5, 6, 11].map(|relay| live.reports_to(relay));
        assert_eq!(parents, [None, None, Some(0), Some(0), Some(1), Some(2)]);
        assert_eq!([0, 2, 3, 12, 99].map(|node| live.is_of_first_layer(node)), [true, true, false, false, false]);
        let without = Live::without(&tree, 1, &BTreeSet::from([0, 5]));
        assert_eq!([3, 5, 11].map(|relay| without.reports_to(relay)), [Some(1), None, Some(2)]);
    }

    #[test]
    fn a_layer_without_relays_is_passed_over() {
        let tree = Tree::of_layers(vec![2, 3, 6]).unwrap();
        let live = Live::without(&tree, 4, &BTreeSet::from([2, 3, 4, 9]));
        assert_eq!((live.epoch(), live.out().len()), (4, 3), "a receiver is never out");
        let mut got: Vec<u32> = [0, 1].iter().flat_map(|relay| children(&live, Some(*relay), 7, 0)).collect();
        got.sort_unstable();
        assert_eq!(got, [5, 6, 7, 8, 9, 10]);
        assert_eq!(children(&live, Some(3), 7, 1), [], "it is out");
        let alone = Live::without(&tree, 5, &BTreeSet::from([0, 1, 2, 3, 4]));
        assert_eq!(children(&alone, None, 0, 1), [5, 6, 7, 8, 9, 10], "the sender reaches all by itself");
        assert_eq!(Live::without(&tree, 5, &BTreeSet::from([0])).watched_by(1), None, "nobody is left to watch");
    }

    #[test]
    fn views_are_remembered_and_old_ones_do_not_count() {
        let tree = Tree::new(2, 3, 9).unwrap();
        let mut views = Views::new(&tree);
        let out = |relay| BTreeSet::from([relay]);
        assert!(views.take(10, 1, &out(0)) && views.take(10, 1, &out(0)) && views.take(11, 2, &out(1)));
        assert!(!views.take(9, 1, &out(2)) && !views.take(12, 0, &out(2)));
        assert_eq!([0, 1, 2].map(|epoch| views.of(epoch).out().first().copied()), [None, Some(0), Some(1)]);
        assert_eq!((views.known(2), views.known(77), views.version()), (Some(views.newest()), None, 11));
        assert_eq!(views.of(77).out(), &out(1), "an unknown one is as the newest");
        assert!(views.take(20, 1, &out(2)), "another sender's");
        assert_eq!(views.of(1).out(), &out(2));
        (3..12).for_each(|epoch| assert!(views.take(20 + u64::from(epoch), epoch, &out(0))));
        assert_eq!(views.known.len(), VIEWS_MAX);
        assert!(!views.take(19, 30, &out(0)), "older than all that are remembered");
    }

    #[test]
    fn a_packet_says_both() {
        assert_eq!(split(join(513, 0xffff)), (513, 0xffff));
        assert_eq!((split(7), join(7, 0)), ((7, 0), 7));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whichever relays are out: every relay that is in and every receiver gets its copies, by different nodes, and nobody
        /// that is out gets any.
        #[test]
        fn every_node_that_is_in_gets_its_copies(
            depth in 1_u32..5, fan_out in 1_u32..5, receivers in 1_u32..60, packet: u64, hedge in 0_u32..3, draws: u64,
        ) {
            prop_assume!(Tree::new(depth, fan_out, receivers).is_ok());
            let tree = Tree::new(depth, fan_out, receivers).unwrap();
            let out: BTreeSet<u32> = (0..tree.relays()).filter(|relay| draws >> (relay % 64) & 1 == 1).collect();
            let live = Live::without(&tree, 1, &out);
            let mut got: BTreeMap<u32, Vec<Option<u32>>> = BTreeMap::new();
            for from in std::iter::once(None).chain((0..tree.relays()).map(Some)) {
                for child in children(&live, from, packet, hedge) {
                    got.entry(child).or_default().push(from);
                }
            }
            let nodes = tree.relays() + receivers;
            prop_assert!(got.keys().copied().eq((0..nodes).filter(|node| !out.contains(node))));
            let mut reporting: Vec<u32> = live.relays().flat_map(|relay| live.reporters(relay)).copied().collect();
            reporting.sort_unstable();
            let first = got.keys().copied().filter(|node| !live.is_receiver(*node) && live.own_parent(*node, packet, hedge).is_none());
            let of_sender = if live.relays().next().is_none() { got.len() } else { first.count() };
            prop_assert_eq!(reporting.len() + of_sender, got.len(), "each node of a lower layer reports to one relay");
            prop_assert!(reporting.windows(2).all(|pair| pair[0] < pair[1]));
            for (node, mut by) in got {
                let expected = by.len();
                prop_assert!(by.iter().flatten().all(|relay| !out.contains(relay)));
                if node < tree.relays() {
                    prop_assert!(by.contains(&live.own_parent(node, packet, hedge)));
                }
                // Whom it expects to hear.
                let mut parents = Vec::new();
                live.parents(node, packet, hedge, &mut parents);
                parents.sort_unstable();
                let mut relays: Vec<u32> = by.iter().copied().flatten().collect();
                relays.sort_unstable();
                prop_assert_eq!(&parents, &relays);
                prop_assert!(parents.iter().all(|parent| live.below(*parent).contains(&node)));
                by.sort_unstable();
                by.dedup();
                prop_assert_eq!(by.len(), expected, "by different nodes");
            }
        }
    }
}
