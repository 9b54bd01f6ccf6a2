//! The shape of a tree, and who sends which packet to whom.
//!
//! The sender stands above layer 0. All layers but the last are relays, the last are the receivers. The nodes of a layer are dealt
//! into as many blocks as the layer above has nodes. Packet m reaches a block b by the parent (b - m - j) mod P, for each copy j
//! from 0 to the hedge.

use std::ops::Range;

/// Receivers of one tree at most.
pub const RECEIVERS_MAX: u32 = 1 << 20;
/// Layers below the sender at most.
pub const DEPTH_MAX: u32 = 8;
/// Additional copies at most.
pub const HEDGE_MAX: u32 = 8;

/// Why there is no such tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Too few or too many.
    #[error("a tree has 1 to {RECEIVERS_MAX} receivers, not {0}: split them over several trees")]
    Receivers(u32),
    /// No layer, or too many.
    #[error("a tree has 1 to {DEPTH_MAX} layers below its sender, not {0}")]
    Depth(u32),
    /// A layer without nodes, or one that is narrower than the one above it.
    #[error(
        "each layer of a tree has at least as many nodes as the one above it, and the first has one: list the layers from the sender on"
    )]
    Layers,
    /// A node would have no child.
    #[error(
        "a tree of {layers} layers in which each node has {fan_out} children has more relays in a layer than its {receivers} receivers: choose less"
    )]
    TooWide {
        /// Layers below the sender.
        layers: u32,
        /// Children of each node.
        fan_out: u32,
        /// Nodes of the last layer.
        receivers: u32,
    },
}

/// What sending costs, for [`Tree::by_cost`]. In any one unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// From a node's first byte sent to its child's first byte received, at the median.
    pub hop: u64,
    /// By how much longer that takes for one packet of ten. With 0 all hops take the same.
    pub jitter: u64,
    /// One more copy of a packet at the same node.
    pub copy: u64,
}

/// A tree's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Nodes of each layer below the sender. The last are the receivers.
    layers: Vec<u32>,
}

impl Tree {
    /// A tree of so many layers, each relay with `fan_out` relays below it, and the receivers dealt evenly to the last relays.
    pub fn new(depth: u32, fan_out: u32, receivers: u32) -> Result<Self, TreeError> {
        if !(1..=RECEIVERS_MAX).contains(&receivers) {
            return Err(TreeError::Receivers(receivers));
        }
        if !(1..=DEPTH_MAX).contains(&depth) {
            return Err(TreeError::Depth(depth));
        }
        let too_wide = TreeError::TooWide { layers: depth, fan_out, receivers };
        let mut layers = Vec::new();
        let mut width = 1_u32;
        for _ in 1..depth {
            width = width.checked_mul(fan_out).filter(|width| (1..=receivers).contains(width)).ok_or(too_wide)?;
            layers.push(width);
        }
        layers.push(receivers);
        Ok(Self { layers })
    }

    /// A tree of these layers: relays, and last the receivers. No layer is narrower than the one above it.
    pub fn of_layers(layers: Vec<u32>) -> Result<Self, TreeError> {
        let depth = u32::try_from(layers.len()).unwrap_or(u32::MAX);
        if !(1..=DEPTH_MAX).contains(&depth) {
            return Err(TreeError::Depth(depth));
        }
        let receivers = layers.last().copied().unwrap_or_default();
        if !(1..=RECEIVERS_MAX).contains(&receivers) {
            return Err(TreeError::Receivers(receivers));
        }
        if layers[0] == 0 || !layers.is_sorted() {
            return Err(TreeError::Layers);
        }
        Ok(Self { layers })
    }

    /// A tree of layers that have a node each, whatever their widths. Where a layer is narrower than the one above it, some nodes
    /// above have no child of their own for a packet.
    pub(crate) fn of_widths(layers: Vec<u32>) -> Self {
        Self { layers }
    }

    /// The heuristic of Jasper (section 4.1): about ten children each, so as many layers as the number of receivers has digits,
    /// rounded.
    pub fn by_heuristic(receivers: u32) -> Result<Self, TreeError> {
        // The logarithm to the base 10 rounds up from the square root of 10 on: 10^d <= n^2 / 10 < 10^(d + 1), in squares.
        let square = u64::from(receivers) * u64::from(receivers);
        let depth = (1..DEPTH_MAX).find(|depth| square < 10_u64.pow(2 * depth + 1)).unwrap_or(DEPTH_MAX);
        Self::new(depth, root(receivers, depth), receivers)
    }

    /// The tree whose slowest receiver has a packet soonest, if all hops are alike: of all depths, with the fan-out that fits. With
    /// a hedge each node sends so many times more copies, and fewer receivers are late.
    pub fn by_cost(receivers: u32, hedge: u32, costs: Costs) -> Result<Self, TreeError> {
        let trees = (1..=DEPTH_MAX).filter_map(|depth| Self::new(depth, root(receivers, depth), receivers).ok());
        trees.min_by_key(|tree| tree.longest(hedge, costs)).ok_or(TreeError::Receivers(receivers))
    }

    /// When the slowest receiver has a packet, in the unit of `costs`: the last of all copies at each node of its way, and how far the
    /// slowest of so many receivers is behind others.
    #[must_use]
    pub fn longest(&self, hedge: u32, costs: Costs) -> u64 {
        let layers = (0..self.depth()).map(|layer| {
            let parents = self.parents_of(layer);
            let copies = u64::from(self.layers[layer].div_ceil(parents)) * u64::from(copies(hedge, parents));
            costs.hop + copies * costs.copy
        });
        layers.sum::<u64>() + self.behind(hedge, costs.jitter)
    }

    /// How far the slowest receiver is behind the median one. A receiver is late where all its copies are, which come by different
    /// relays: with c copies each, the slowest of n stands for a chance of n^(-1/c). Delays are taken to have an exponential tail, of
    /// which each halving of the chance takes as long, and to differ from hop to hop, so that they grow with the root of the depth.
    fn behind(&self, hedge: u32, jitter: u64) -> u64 {
        let last = self.depth() - 1;
        let copies = u64::from(copies(hedge, self.parents_of(last)));
        // Halvings, in sixths: the sixth power of the greatest number of receivers has 121 bits.
        let sixths = u64::from(u128::from(self.layers[last]).pow(6).ilog2());
        // The first halving is the median. One packet of ten is log2(5) = 2.322 halvings further, and later by the jitter.
        let beyond = sixths.saturating_sub(6 * copies);
        let root_in_thousandths = (1_000_000 * self.depth() as u64).isqrt();
        jitter * beyond * root_in_thousandths / (copies * 6 * 2_322)
    }

    /// Layers below the sender.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.layers.len()
    }

    /// Nodes of each layer below the sender; the last are the receivers.
    #[must_use]
    pub fn layers(&self) -> &[u32] {
        &self.layers
    }

    /// All relays.
    #[must_use]
    pub fn relays(&self) -> u32 {
        self.layers[..self.depth() - 1].iter().sum()
    }

    /// Nodes of the layer above.
    fn parents_of(&self, layer: usize) -> u32 {
        if layer == 0 { 1 } else { self.layers[layer - 1] }
    }

    /// The nodes of a layer in its block number `block`.
    #[must_use]
    pub fn block(&self, layer: usize, block: u32) -> Range<u32> {
        let (nodes, blocks) = (u64::from(self.layers[layer]), u64::from(self.parents_of(layer)));
        let start = |block: u64| (block * nodes).div_ceil(blocks) as u32;
        start(block.into())..start(u64::from(block) + 1)
    }

    /// The block of a layer that a node is in.
    #[must_use]
    pub fn block_of(&self, layer: usize, node: u32) -> u32 {
        (u64::from(node) * u64::from(self.parents_of(layer)) / u64::from(self.layers[layer])) as u32
    }

    /// The nodes of a layer to which node `parent` of the layer above sends a packet, in the order of sending: the packet's own
    /// block, then one for each further copy. The first of a block is another one for each packet, so nobody is always last.
    pub fn children(&self, layer: usize, parent: u32, packet: u64, hedge: u32) -> impl Iterator<Item = u32> + '_ {
        let parents = self.parents_of(layer);
        (0..copies(hedge, parents)).flat_map(move |copy| {
            let block = (u64::from(parent) + packet % u64::from(parents) + u64::from(copy)) % u64::from(parents);
            let block = self.block(layer, block as u32);
            let count = u64::from(block.end - block.start);
            (0..count).map(move |at| block.start + ((at + packet % count) % count) as u32)
        })
    }

    /// The nodes of the layer above that send a packet to a node, the parent of its own block first.
    pub fn parents(&self, layer: usize, node: u32, packet: u64, hedge: u32) -> impl Iterator<Item = u32> + use<> {
        let (parents, block) = (self.parents_of(layer), self.block_of(layer, node));
        let (own, count) = (packet % u64::from(parents), u64::from(parents));
        (0..copies(hedge, parents)).map(move |copy| ((u64::from(block) + 2 * count - own - u64::from(copy)) % count) as u32)
    }
}

/// Copies that a node gets: one more than the hedge, by different parents, as far as there are so many.
const fn copies(hedge: u32, parents: u32) -> u32 {
    let wanted = (if hedge < HEDGE_MAX { hedge } else { HEDGE_MAX }) + 1;
    if wanted < parents { wanted } else { parents }
}

/// The root of this degree, rounded.
fn root(of: u32, degree: u32) -> u32 {
    // x rounds to r where (2r - 1)^d <= 2^d x < (2r + 1)^d.
    let scaled = u128::from(of) << degree;
    let is_below = |candidate: u32| u128::from(2 * candidate + 1).checked_pow(degree).is_none_or(|power| scaled < power);
    let (mut low, mut high) = (0, of);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_below(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low.max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_heuristic_makes_the_published_trees() {
        let layers = |receivers| Tree::by_heuristic(receivers).unwrap().layers().to_vec();
        assert_eq!(layers(1), [1]);
        assert_eq!(layers(10), [10]);
        assert_eq!(layers(31), [31]);
        assert_eq!(layers(32), [6, 32]);
        assert_eq!(layers(100), [10, 100]);
        assert_eq!(layers(200), [14, 200], "14 relays for 200 receivers, as section 8.4 says");
        assert_eq!(layers(1_000), [10, 100, 1_000]);
        assert_eq!(layers(10_000), [10, 100, 1_000, 10_000]);
        assert_eq!(Tree::by_heuristic(1_000).unwrap().relays(), 110);
        assert_eq!(Tree::by_heuristic(0), Err(TreeError::Receivers(0)));
        assert_eq!(Tree::by_heuristic(RECEIVERS_MAX + 1), Err(TreeError::Receivers(RECEIVERS_MAX + 1)));
    }

    /// With the costs that Jasper measured on AWS (section 4.1: 30 us a layer, 2.7 us a copy).
    #[test]
    fn the_cheapest_tree_is_no_worse_than_the_heuristic() {
        let costs = Costs { hop: 30_000, jitter: 0, copy: 2_700 };
        for receivers in (1..400).chain([1_000, 5_800, 10_000, RECEIVERS_MAX]) {
            for hedge in 0..3 {
                let [best, known] = [Tree::by_cost(receivers, hedge, costs), Tree::by_heuristic(receivers)].map(Result::unwrap);
                assert!(best.longest(hedge, costs) <= known.longest(hedge, costs), "{receivers} receivers: {best:?}, {known:?}");
                assert_eq!(best.layers().last(), Some(&receivers));
            }
        }
        // Where a copy costs as much as a hop, deep trees win; where it costs nothing, no tree at all.
        assert_eq!(Tree::by_cost(1_000, 0, Costs { hop: 1, jitter: 0, copy: 1 }).unwrap().layers(), [4, 16, 64, 256, 1_000]);
        assert_eq!(Tree::by_cost(1_000, 0, Costs { hop: 1, jitter: 0, copy: 0 }).unwrap().depth(), 1);
    }

    /// The trees that are the best of all depths in the simulated cloud of `experiments/jasper-2024` (table 8), by the sizes there.
    #[test]
    fn the_cheapest_tree_is_the_best_of_a_simulated_cloud() {
        let hosts: [(u64, u64, [&[u32]; 4]); 3] = [
            (0, 2_700, [&[5, 30], &[10, 100], &[7, 49, 300], &[10, 100, 1_000]]),
            (570, 1_300, [&[30], &[10, 100], &[17, 300], &[10, 100, 1_000]]),
            (570, 350, [&[30], &[10, 100], &[17, 300], &[32, 1_000]]),
        ];
        for (receive, copy, best) in hosts {
            let costs = Costs { hop: 30_000 + receive, jitter: 15_790, copy };
            for (receivers, best) in [30, 100, 300, 1_000].into_iter().zip(best) {
                assert_eq!(Tree::by_cost(receivers, 1, costs).unwrap().layers(), best, "{copy} ns a copy");
            }
        }
    }

    #[test]
    fn a_second_path_is_worth_a_hop_where_hops_differ() {
        let planned = |hedge: u32, jitter: u64| {
            let tree = Tree::by_cost(100, hedge, Costs { hop: 30_570, jitter, copy: 350 }).unwrap();
            tree.layers().to_vec()
        };
        assert_eq!((planned(1, 0), planned(1, 15_790)), (vec![100], vec![10, 100]));
        // Without a hedge a relay brings no second path.
        assert_eq!(planned(0, 15_790), [100]);
        let costs = |jitter: u64| Costs { hop: 5, jitter, copy: 1 };
        let alone = Tree::new(1, 1, 1).unwrap();
        assert_eq!(alone.longest(0, costs(0)), alone.longest(0, costs(1_000)), "of one receiver the slowest is the median one");
        let tree = Tree::new(2, 10, 100).unwrap();
        assert!(tree.longest(1, costs(100)) < tree.longest(0, costs(100)), "a hedge cuts the tail");
    }

    #[test]
    fn shapes_that_cannot_be_are_refused() {
        assert_eq!(Tree::new(0, 10, 10), Err(TreeError::Depth(0)));
        assert_eq!(Tree::of_layers(vec![3, 9, 27]), Tree::new(3, 3, 27));
        assert_eq!(Tree::of_layers(vec![]), Err(TreeError::Depth(0)));
        assert_eq!(Tree::of_layers(vec![1; 9]), Err(TreeError::Depth(9)));
        assert_eq!(Tree::of_layers(vec![2, 1]), Err(TreeError::Layers));
        assert_eq!(Tree::of_layers(vec![0, 1]), Err(TreeError::Layers));
        assert_eq!(Tree::of_layers(vec![1, 0]), Err(TreeError::Receivers(0)));
        assert_eq!(Tree::new(9, 1, 10), Err(TreeError::Depth(9)));
        assert_eq!(Tree::new(3, 4, 15), Err(TreeError::TooWide { layers: 3, fan_out: 4, receivers: 15 }));
        assert_eq!(Tree::new(8, u32::MAX, 10), Err(TreeError::TooWide { layers: 8, fan_out: u32::MAX, receivers: 10 }));
        assert_eq!(Tree::new(2, 0, 10), Err(TreeError::TooWide { layers: 2, fan_out: 0, receivers: 10 }));
    }

    #[test]
    fn roots_are_rounded() {
        for of in 1..2_000_u32 {
            let naive = |degree: u32| {
                (1..=of).min_by_key(|r| (2_u64.pow(degree) * u64::from(of)).abs_diff((2 * u64::from(*r)).pow(degree)))
            };
            assert_eq!(root(of, 1), of);
            // The nearest power and the nearest root differ where the root is near a half: both neighbours are right by one.
            assert!(root(of, 2).abs_diff(naive(2).unwrap()) <= 1);
            let root = u64::from(root(of, 3));
            assert!((2 * root - 1).pow(3) <= 8 * u64::from(of) && 8 * u64::from(of) < (2 * root + 1).pow(3));
        }
        assert_eq!(root(RECEIVERS_MAX, 8), 6);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// What parents send is what children expect, each child gets its copies by different parents, and work is even.
        #[test]
        fn every_node_gets_its_copies(depth in 1_u32..5, fan_out in 1_u32..6, receivers in 1_u32..300, packet: u64, hedge in 0_u32..4) {
            prop_assume!(Tree::new(depth, fan_out, receivers).is_ok());
            let tree = Tree::new(depth, fan_out, receivers).unwrap();
            for layer in 0..tree.depth() {
                let parents = tree.parents_of(layer);
                let mut got: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                for parent in 0..parents {
                    for child in tree.children(layer, parent, packet, hedge) {
                        got.entry(child).or_default().push(parent);
                    }
                }
                prop_assert!(got.keys().copied().eq(0..tree.layers()[layer]), "nobody is left out");
                for (child, mut by) in got {
                    let mut expected: Vec<u32> = tree.parents(layer, child, packet, hedge).collect();
                    prop_assert_eq!(expected.len() as u32, (hedge + 1).min(parents));
                    by.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(&by, &expected);
                    by.dedup();
                    prop_assert_eq!(by.len(), expected.len(), "by different parents");
                    prop_assert!(tree.block(layer, tree.block_of(layer, child)).contains(&child));
                }
                let sizes: Vec<u32> = (0..parents).map(|block| tree.block(layer, block).len() as u32).collect();
                prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "dealt evenly");
            }
        }

        /// Spraying: over as many packets as there are parents, a node hears of each parent equally often.
        #[test]
        fn no_path_is_always_the_same(receivers in 20_u32..200, first in 0..u64::MAX / 2, node in 0_u32..20) {
            let tree = Tree::new(2, 7, receivers).unwrap();
            let mut by: Vec<u32> = (first..first + 7).map(|packet| tree.parents(1, node, packet, 0).next().unwrap()).collect();
            by.sort_unstable();
            prop_assert!(by.into_iter().eq(0..7));
        }
    }
}
