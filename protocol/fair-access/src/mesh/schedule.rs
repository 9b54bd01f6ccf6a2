//! The schedule of probes: a function of the configuration and the window, so that all nodes know it without communication.

use walras_random::Random;

use super::{NODES_MAX, NodeId};

/// The probe graph of every window.
///
/// The nodes are in a circle, in an order drawn from the seed, and each probes the nodes at K different strides ahead. So each has
/// exactly 2 K edges, no pair has two, and with random strides the graph is a good expander. The strides of a window are K
/// successive ones of all strides, in a drawn order. Each window drops one stride and adds one, so an edge lasts K windows. After
/// all strides have been used, every pair has been probed (with an even number of nodes, all but opposite ones).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule {
    node_count: usize,
    stride_count: usize,
    seed: u64,
    rotates: bool,
}

impl Schedule {
    /// A schedule whose strides change one by one; K is `stride_count`. `node_count` is clamped to `NODES_MAX`, and there is at
    /// least one stride.
    pub fn rotating(node_count: usize, stride_count: usize, seed: u64) -> Self {
        Self { node_count: node_count.min(NODES_MAX), stride_count: stride_count.max(1), seed, rotates: true }
    }

    /// A schedule with the same graph in every window, as in the paper.
    pub fn fixed(node_count: usize, stride_count: usize, seed: u64) -> Self {
        Self { rotates: false, ..Self::rotating(node_count, stride_count, seed) }
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.node_count
    }

    /// The edges of a window as (probing node, answering node), each pair of nodes once, sorted.
    pub fn edges(&self, window: u64) -> Vec<(NodeId, NodeId)> {
        let mut edges = Vec::new();
        if self.is_complete() {
            for from in 0..self.node_count {
                // Half of the others each, so that the work is even.
                edges.extend((1..=(self.node_count - 1) / 2).map(|stride| (from, (from + stride) % self.node_count)));
            }
            if self.node_count.is_multiple_of(2) {
                let half = self.node_count / 2;
                edges.extend((0..half).map(|from| (from, from + half)));
            }
        } else {
            let mut random = Random::new(self.seed);
            let order = shuffled(&mut random, self.node_count);
            let strides = shuffled(&mut random, (self.node_count - 1) / 2);
            let first = if self.rotates { (window % strides.len() as u64) as usize } else { 0 };
            for stride in (first..first + self.stride_count).map(|at| strides[at % strides.len()] + 1) {
                edges.extend((0..order.len()).map(|at| (order[at], order[(at + stride) % order.len()])));
            }
        }
        let mut edges: Vec<_> = edges.into_iter().map(|(from, to)| (NodeId::of(from), NodeId::of(to))).collect();
        edges.sort_unstable();
        edges
    }

    /// Whether the strides cover all pairs.
    fn is_complete(&self) -> bool {
        self.node_count <= 2 * self.stride_count + 2
    }
}

/// The numbers below `end` in some order.
fn shuffled(random: &mut Random, end: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..end).collect();
    for last in (1..end).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn degrees(node_count: usize, edges: &[(NodeId, NodeId)]) -> Vec<usize> {
        let mut degrees = vec![0; node_count];
        for (from, to) in edges {
            degrees[from.index()] += 1;
            degrees[to.index()] += 1;
        }
        degrees
    }

    #[test]
    fn every_node_has_twice_k_edges_and_no_pair_comes_twice() {
        for window in 0..60 {
            let edges = Schedule::rotating(50, 10, 7).edges(window);
            let pairs: BTreeSet<_> = edges.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
            assert_eq!(pairs.len(), edges.len());
            assert!(edges.iter().all(|(a, b)| a != b));
            assert!(degrees(50, &edges).iter().all(|&degree| degree == 20));
        }
    }

    #[test]
    fn a_window_changes_one_stride_and_in_time_all_pairs_are_probed() {
        let schedule = Schedule::rotating(51, 10, 7);
        let mut seen = BTreeSet::new();
        for window in 0..25 {
            let before: BTreeSet<_> = schedule.edges(window).into_iter().collect();
            let after: BTreeSet<_> = schedule.edges(window + 1).into_iter().collect();
            assert_eq!(after.difference(&before).count(), 51);
            seen.extend(after.into_iter().map(|(a, b)| (a.min(b), a.max(b))));
        }
        assert_eq!(seen.len(), 51 * 50 / 2);
        let fixed = Schedule::fixed(50, 10, 7);
        assert_eq!(fixed.edges(0), fixed.edges(9));
    }

    #[test]
    fn few_nodes_probe_each_other_all() {
        for node_count in 0..=21 {
            let edges = Schedule::rotating(node_count, 10, 1).edges(3);
            assert_eq!(edges.len(), node_count * node_count.saturating_sub(1) / 2, "{node_count}");
        }
    }
}
