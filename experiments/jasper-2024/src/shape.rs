//! The shape of the tree: tables 2 and 8.

use walras_relay::tree::{Costs, Tree};

use crate::Extent;
use crate::latency::{by_receiver, delivery, heuristic, tree};
use crate::multicast::{Hosts, Setup};
use crate::network::{Common, Network};
use crate::rows::{Check, Findings, Row};

/// Table 2: relays, and what they cost.
#[must_use]
pub fn table_2() -> Findings {
    const DOLLARS_PER_HOUR: f64 = 0.34;
    let mut rows = Vec::new();
    for (receivers, relays) in [(100, Some(10.0)), (200, Some(14.0)), (1_000, None)] {
        let ours = f64::from(heuristic(receivers).relays());
        let what = format!("N = {receivers}: relays of a tree");
        rows.push(match relays {
            Some(relays) => Row::new("J10", what, relays, ours, "", Check::Within(relays, relays)),
            None => Row::own("J10", what, ours, "", Check::Shown),
        });
        for hedge in 0..3 {
            let what = format!("N = {receivers}, H = {hedge}: an hour of as many trees as make up for hedging");
            rows.push(Row::own("J10", what, ours * f64::from(hedge + 1) * DOLLARS_PER_HOUR, "dollars", Check::Shown));
        }
    }
    Findings::table("table-2", "relays and what they cost", rows)
}

/// Receivers, depth, fan-out, published median; the best of each number of receivers is its first.
const SHAPES: [(u32, u32, u32, f64); 8] = [
    (10, 1, 10, 66.0),
    (10, 2, 4, 88.0),
    (100, 2, 10, 139.0),
    (100, 3, 5, 141.0),
    (100, 1, 100, 351.0),
    (1_000, 3, 10, 217.0),
    (1_000, 4, 6, 226.0),
    (1_000, 2, 32, 282.0),
];

/// Table 8: depth and fan-out.
#[must_use]
pub fn table_8(network: &Network, extent: Extent) -> Findings {
    let mut rows = Vec::new();
    let mut of_receivers: Vec<(u32, u32, f64)> = Vec::new();
    for (receivers, depth, fan_out, published) in SHAPES {
        let messages = if receivers < 1_000 { extent.of(50_000, 1_000) } else { extent.of(10_000, 150) };
        let fan_out = if depth == 1 { 1 } else { fan_out };
        let ours = delivery(Setup::published(network, tree(depth, fan_out, receivers), 1, 80), messages).overall.us(0.5);
        let what = format!("N = {receivers}, D = {depth}: overall latency, p50");
        rows.push(Row::new("J4", what, published, ours, "us", Check::around(published, 0.20)));
        of_receivers.push((receivers, depth, ours));
    }
    for (receivers, best) in [(10, 1.0), (100, 2.0), (1_000, 3.0)] {
        let of = of_receivers.iter().filter(|of| of.0 == receivers);
        let depth = of.min_by(|a, b| a.2.total_cmp(&b.2)).map_or(f64::NAN, |of| f64::from(of.1));
        rows.push(Row::new(
            "J4",
            format!("N = {receivers}: depth with the least latency"),
            best,
            depth,
            "",
            Check::Within(best, best),
        ));
    }
    rows.extend(increments(extent));
    rows.extend(planners(network, extent));
    Findings::table("table-8", "depth and fan-out", rows)
}

/// What another layer, and another child, costs: of machines as published, and of ours.
fn increments(extent: Extent) -> Vec<Row> {
    let messages = extent.of(30_000, 500);
    // Links that are alike: a difference of links is none of shapes.
    let network = &Network::fitted_with(5, Common { link_ns: 0.0, ..Common::FITTED });
    let mean_us = |depth: u32, fan_out: u32, receivers: u32, hosts: Hosts| {
        let setup = Setup { hosts, ..Setup::published(network, tree(depth, fan_out, receivers), 0, 5) };
        let delays = by_receiver(setup, messages);
        delays[0].last().map_or(f64::NAN, |delays| delays.us(0.5))
    };
    // A layer more of one relay each, and the last of so many children more of one sender.
    let of_layer = (mean_us(4, 1, 1, Hosts::PUBLISHED) - mean_us(1, 1, 1, Hosts::PUBLISHED)) / 3.0;
    let of_child = |hosts: Hosts| (mean_us(1, 1, 101, hosts) - mean_us(1, 1, 1, hosts)) / 100.0;
    vec![
        Row::new("J5", "a layer more", 30.0, of_layer, "us", Check::near(30.0, 10.0)),
        Row::new("J5", "a child more", 2.7, of_child(Hosts::PUBLISHED), "us", Check::near(2.7, 0.9)),
        Row::new("J5", "a child more, ours, a call for each copy", 2.7, of_child(Hosts::SENDTO), "us", Check::AtMost(2.7)),
        Row::new("J5", "a child more, ours, segmented", 2.7, of_child(Hosts::SEGMENTED), "us", Check::AtMost(2.7)),
    ]
}

/// What one packet of ten takes longer than the median over a link of the fitted network, as in table 7.
const JITTER_NS: u64 = 15_790;

/// The tree by the rule and the one by measured costs, over the best of all depths, each on machines of these costs.
fn planners(network: &Network, extent: Extent) -> Vec<Row> {
    let hosts = [("as published", Hosts::PUBLISHED), ("a call for each copy", Hosts::SENDTO), ("segmented", Hosts::SEGMENTED)];
    let sizes =
        [(30, extent.of(20_000, 300)), (100, extent.of(20_000, 300)), (300, extent.of(10_000, 100)), (1_000, extent.of(5_000, 50))];
    let mut rows = Vec::new();
    for (name, hosts) in hosts {
        for (receivers, messages) in sizes {
            // A hop as the network takes it at the median, and the machine's work on what it receives.
            let costs = Costs { hop: 30_000 + hosts.receive_ns, jitter: JITTER_NS, copy: hosts.copy_ns };
            let planned = Tree::by_cost(receivers, 1, costs).expect("so many receivers are possible");
            let median_us =
                |tree: Tree| delivery(Setup { hosts, ..Setup::product(network, tree, 1, 88) }, messages).overall.us(0.5);
            let best_us = shapes(receivers).map(median_us).fold(f64::INFINITY, f64::min);
            let what =
                |tree: &Tree, whose: &str| format!("N = {receivers}, {name}: tree {:?} {whose} over the best", tree.layers());
            let ruled = heuristic(receivers);
            let (by_rule, by_costs) = (what(&ruled, "by the rule"), what(&planned, "by costs"));
            let (ruled, planned) = (median_us(ruled) / best_us, median_us(planned) / best_us);
            rows.push(Row::own("J4", by_rule, ruled, "ratio", Check::Shown));
            // The same tree is simulated alike, so the two are equal then.
            rows.push(Row::own("J4", by_costs, planned, "ratio", Check::AtMost(ruled)));
        }
    }
    rows
}

/// Trees of one to five layers with the fan-out that fits.
fn shapes(receivers: u32) -> impl Iterator<Item = Tree> {
    (1..=5).filter_map(move |depth| {
        let fan_out = f64::from(receivers).powf(1.0 / f64::from(depth)).round() as u32;
        Tree::new(depth, fan_out, receivers).ok()
    })
}
