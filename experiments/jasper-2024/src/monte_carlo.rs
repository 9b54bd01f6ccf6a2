//! Figure 14 (appendix C): the latency of one receiver where all links take independent uniform times from 0 to 1, by depth and by
//! hedging: by the paper's recursion, and on the product's tree without spraying, where siblings share what their parents in common
//! took.

use std::collections::BTreeMap;

use walras_random::Random;
use walras_relay::tree::Tree;

use crate::Extent;
use crate::network::unit;
use crate::rows::{Check, Curve, Findings, Row};

/// Children of each relay. The paper does not say; with ten the means differ by less than 0.01.
const FAN_OUT: u32 = 5;

/// Depth, hedge, mean and standard deviation, as printed in the figure's legends.
const PUBLISHED: [(u32, u32, f64, f64); 13] = [
    (1, 0, 0.5, 0.3),
    (2, 0, 1.0, 0.4),
    (3, 0, 1.5, 0.5),
    (4, 0, 2.0, 0.6),
    (5, 0, 2.5, 0.6),
    (1, 4, 0.5, 0.3),
    (2, 4, 0.5, 0.2),
    (3, 4, 0.6, 0.2),
    (4, 4, 0.7, 0.2),
    (5, 4, 0.7, 0.2),
    (4, 1, 1.3, 0.4),
    (4, 2, 0.9, 0.3),
    (4, 3, 0.8, 0.2),
];

/// One receiver's latencies, in rounds.
struct Receiver {
    tree: Tree,
    hedge: u32,
    /// Of each layer the nodes that the receiver's copies pass through, with their parents as places in the layer above.
    layers: Vec<Vec<Vec<usize>>>,
}

impl Receiver {
    fn new(tree: Tree, hedge: u32, place: u32) -> Self {
        let mut receiver = Self { hedge, layers: Vec::new(), tree };
        let mut nodes = vec![place];
        for layer in (0..receiver.tree.depth()).rev() {
            let parents = |node: u32| receiver.tree.parents(layer, node, 0, receiver.hedge);
            let mut above: Vec<u32> = nodes.iter().flat_map(|node| parents(*node)).collect();
            above.sort_unstable();
            above.dedup();
            let places: BTreeMap<u32, usize> = above.iter().enumerate().map(|(at, node)| (*node, at)).collect();
            let own = nodes.iter().map(|node| parents(*node).map(|parent| places[&parent]).collect()).collect();
            receiver.layers.push(own);
            nodes = above;
        }
        receiver.layers.reverse();
        receiver
    }

    fn latency(&self, random: &mut Random) -> f64 {
        // The sender has it at once.
        let mut above = vec![0.0];
        for layer in &self.layers {
            let first = |parents: &Vec<usize>| {
                let copies = parents.iter().map(|parent| above[*parent] + unit(random.next_u64()));
                copies.fold(f64::INFINITY, f64::min)
            };
            above = layer.iter().map(first).collect();
        }
        above[0]
    }
}

fn latencies(depth: u32, hedge: u32, rounds: u32) -> Vec<f64> {
    let random = &mut Random::new(14).fork(u64::from(depth * 16 + hedge));
    let tree = Tree::new(depth, FAN_OUT, FAN_OUT.pow(depth)).expect("the figure's trees are possible");
    let receivers = FAN_OUT.pow(depth);
    // Receivers are alike but for where their blocks begin: another one each thousand rounds.
    let mut receiver = Receiver::new(tree.clone(), hedge, receivers / 2);
    (0..rounds)
        .map(|round| {
            if round % 1_000 == 999 {
                receiver = Receiver::new(tree.clone(), hedge, random.below(receivers.into()) as u32);
            }
            receiver.latency(random)
        })
        .collect()
}

/// The same where each branch of the recursion is drawn again, as it is printed: siblings that have a parent in common take it at
/// different times.
fn branch(depth: u32, hedge: u32, random: &mut Random) -> f64 {
    if depth == 1 {
        return unit(random.next_u64());
    }
    let copies = (0..=hedge).map(|_| branch(depth - 1, hedge, random) + unit(random.next_u64()));
    copies.fold(f64::INFINITY, f64::min)
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count).sqrt())
}

/// Figure 14.
#[must_use]
pub fn fig_14(extent: Extent) -> Findings {
    let rounds = extent.of(100_000, 20_000);
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    for (depth, hedge, mean, deviation) in PUBLISHED {
        let name = format!("D = {depth}, H = {hedge}");
        let random = &mut Random::new(41).fork(u64::from(depth * 16 + hedge));
        let drawn: Vec<f64> = (0..rounds).map(|_| branch(depth, hedge, random)).collect();
        let values = latencies(depth, hedge, rounds);
        // Half of the last printed digit, and three standard errors of a mean.
        let tolerance = 0.05 + 3.0 * deviation / f64::from(rounds).sqrt();
        let ((drawn_mean, drawn_deviation), (our_mean, our_deviation)) = (mean_and_deviation(&drawn), mean_and_deviation(&values));
        let figures = [("mean", mean, drawn_mean, our_mean), ("deviation", deviation, drawn_deviation, our_deviation)];
        for (what, published, drawn, ours) in figures {
            rows.push(Row::new("J24", format!("{name}: {what}"), published, drawn, "", Check::near(published, tolerance)));
            rows.push(Row::own("J24", format!("{name}, on the tree: {what}"), ours, "", Check::Shown));
        }
        if depth == 4 {
            let points = (1..100).map(|percent| (crate::stats::quantile(&values, f64::from(percent) / 100.0), f64::from(percent)));
            curves.push(Curve::ours(name, points.collect()));
        }
    }
    let title = "latency over links that take uniform times";
    Findings { name: "fig-14", title, axes: ("latency, in the longest time of a link", "percent of messages"), rows, curves }
}
