//! Multicast latency: figures 4, 7, 8, 9, 10 and table 7. The overall latency of a message is that of its last receiver; its
//! window is the time from its first receiver to its last.

use walras_random::Random;
use walras_relay::tree::Tree;

use crate::Extent;
use crate::multicast::{Flight, Hosts, Setup, World};
use crate::network::Network;
use crate::rows::{Check, Curve, Findings, Row};
use crate::stats::{Samples, Sorted, quantile};

/// The first message leaves then.
pub const BEGIN_NS: u64 = 1_000_000_000;
/// Messages a second, where nothing else is said (section 8).
pub const RATE: f64 = 5_000.0;

/// Sends messages at a steady rate; message by message, which plane each takes.
pub fn steady(setup: Setup<'_>, per_s: f64, messages: u64, plane: impl Fn(u64) -> usize, mut see: impl FnMut(&Flight)) {
    let mut world = World::new(setup);
    for number in 0..messages {
        let at_ns = BEGIN_NS + (number as f64 * 1e9 / per_s) as u64;
        while let Some((_, flight)) = world.delivered_before(at_ns) {
            see(flight);
        }
        world.send(at_ns, plane(number), 0);
    }
    while let Some((_, flight)) = world.delivered_before(u64::MAX) {
        see(flight);
    }
}

/// Latencies and windows of all messages.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Overall latency.
    pub overall: Sorted,
    /// Window.
    pub window: Sorted,
    /// Medians of the overall latency of so many messages each, in us.
    pub medians_us: Vec<f64>,
}

/// Messages of a tumbling median (section 8.2).
const TUMBLING: usize = 5_000;

/// Runs messages over a tree.
#[must_use]
pub fn delivery(setup: Setup<'_>, messages: u64) -> Delivery {
    let (mut overall, mut window, mut tumbling, mut medians_us) =
        (Samples::default(), Samples::default(), Samples::default(), Vec::new());
    steady(
        setup,
        RATE,
        messages,
        |_| 0,
        |flight| {
            let Some((last_ns, first_ns)) = flight.last_and_first_ns() else { return };
            overall.push(last_ns.into());
            window.push((last_ns - first_ns).into());
            tumbling.push(last_ns.into());
            if tumbling.len() == TUMBLING {
                medians_us.push(std::mem::take(&mut tumbling).sorted().us(0.5));
            }
        },
    );
    Delivery { overall: overall.sorted(), window: window.sorted(), medians_us }
}

/// Each receiver's delays, by plane.
pub(crate) fn by_receiver(setup: Setup<'_>, messages: u64) -> Vec<Vec<Sorted>> {
    let planes = setup.hedges.len();
    let receivers = setup.tree.layers()[setup.tree.depth() - 1] as usize;
    let mut samples = vec![vec![Samples::default(); receivers]; planes];
    steady(
        setup,
        RATE,
        messages,
        |number| number as usize % planes,
        |flight| {
            samples[flight.plane].iter_mut().zip(&flight.after_ns).for_each(|(samples, ns)| samples.push((*ns).into()));
        },
    );
    samples.into_iter().map(|plane| plane.into_iter().map(Samples::sorted).collect()).collect()
}

pub(crate) fn tree(depth: u32, fan_out: u32, receivers: u32) -> Tree {
    Tree::new(depth, fan_out, receivers).expect("the paper's trees are possible")
}

/// The sender alone, with all receivers below it.
#[must_use]
pub fn unicast(receivers: u32) -> Tree {
    tree(1, 1, receivers)
}

/// The tree by the paper's rule.
#[must_use]
pub fn heuristic(receivers: u32) -> Tree {
    Tree::by_heuristic(receivers).expect("so many receivers are possible")
}

/// The direct unicast of figures 4 and 7.
fn direct(network: &Network, receivers: u32) -> Setup<'_> {
    Setup { hosts: Hosts::PUBLISHED_UNICAST, ..Setup::published(network, unicast(receivers), 0, 44) }
}

/// Figure 4: the 95th percentile of each receiver's delay.
#[must_use]
pub fn fig_4(network: &Network, extent: Extent) -> Findings {
    let messages = extent.of(50_000, 2_000);
    let of = |setup: Setup<'_>| -> Vec<f64> { by_receiver(setup, messages)[0].iter().map(|delays| delays.us(0.95)).collect() };
    let unicast_us = of(direct(network, 100));
    let tree_us = of(Setup::published(network, heuristic(100), 1, 4));
    let product_us = of(Setup::product(network, heuristic(100), 1, 4));
    let (slope_us, at_0_us) = line(&unicast_us);
    let rows = vec![
        Row::new("J2", "direct unicast: us more for each receiver", 2.4, slope_us, "us", Check::around(2.4, 0.15)),
        Row::new("J2", "direct unicast: last receiver", 310.0, at_0_us + 99.0 * slope_us, "us", Check::around(310.0, 0.15)),
        Row::new("J2", "tree: median receiver", 109.0, quantile(&tree_us, 0.5), "us", Check::around(109.0, 0.15)),
        Row::new("J2", "tree: 5th percentile of receivers", 76.0, quantile(&tree_us, 0.05), "us", Check::around(76.0, 0.15)),
        Row::new("J2", "tree: 95th percentile of receivers", 143.0, quantile(&tree_us, 0.95), "us", Check::around(143.0, 0.15)),
        Row::own("J2", "sprayed tree: median receiver", quantile(&product_us, 0.5), "us", Check::Shown),
        Row::own(
            "J2",
            "sprayed tree: spread of receivers, 5th to 95th",
            quantile(&product_us, 0.95) - quantile(&product_us, 0.05),
            "us",
            Check::Shown,
        ),
    ];
    let points = |us: &[f64]| us.iter().enumerate().map(|(at, us)| (at as f64, *us)).collect();
    let curves = vec![
        Curve::ours("direct unicast", points(&unicast_us)),
        Curve::ours("tree, H = 1", points(&tree_us)),
        Curve::ours("sprayed tree, H = 1", points(&product_us)),
        Curve { name: "direct unicast".to_owned(), is_published: true, points: vec![(0.0, 70.0), (99.0, 310.0)] },
    ];
    Findings { name: "fig-4", title: "95th percentile of each receiver's delay", axes: ("receiver", "us"), rows, curves }
}

/// The line of least squares through values at 0, 1, 2, ...: its slope, and its value at 0.
fn line(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let (mut up, mut across) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let from_middle = at as f64 - middle;
        up += from_middle * (value - mean);
        across += from_middle * from_middle;
    }
    (up / across, mean - up / across * middle)
}

/// Figure 7: the tree against direct unicasts.
#[must_use]
pub fn fig_7(network: &Network, measured: Option<&Network>, extent: Extent) -> Findings {
    let messages = extent.of(100_000, 1_500);
    let unicast = delivery(direct(network, 100), messages).overall;
    let ours = delivery(Setup::published(network, heuristic(100), 1, 7), messages).overall;
    let product = delivery(Setup::product(network, heuristic(100), 1, 7), messages).overall;
    let mut rows = Vec::new();
    for (share, tree_us, unicast_us, tolerance) in [(0.5, 129.0, 254.0, 0.08), (0.99, 199.0, 466.0, 0.15)] {
        let name = format!("p{:.0}", share * 100.0);
        rows.push(Row::new("J3", format!("tree: {name}"), tree_us, ours.us(share), "us", Check::Shown));
        rows.push(Row::new("J3", format!("direct unicast: {name}"), unicast_us, unicast.us(share), "us", Check::Shown));
        let published = tree_us / unicast_us;
        let ratio = ours.us(share) / unicast.us(share);
        rows.push(Row::new(
            "J3",
            format!("tree over direct unicast: {name}"),
            published,
            ratio,
            "ratio",
            Check::near(published, tolerance),
        ));
        let check = if share < 0.9 { Check::AtMost(0.51) } else { Check::Shown };
        let ratio = product.us(share) / unicast.us(share);
        rows.push(Row::new("J3", format!("sprayed tree over direct unicast: {name}"), published, ratio, "ratio", check));
    }
    rows.extend(over_the_clouds_multicast(&product));
    if let Some(measured) = measured {
        let unicast = delivery(direct(measured, 100), messages).overall;
        let product = delivery(Setup::product(measured, heuristic(100), 1, 7), messages).overall;
        for (share, published, check) in [(0.5, 129.0 / 254.0, Check::AtMost(0.51)), (0.99, 199.0 / 466.0, Check::Shown)] {
            let what = format!("measured links: sprayed tree over direct unicast: p{:.0}", share * 100.0);
            rows.push(Row::new("J3", what, published, product.us(share) / unicast.us(share), "ratio", check));
        }
    }
    let curves = vec![
        Curve::ours("tree, H = 1", ours.curve()),
        Curve::ours("sprayed tree, H = 1", product.curve()),
        Curve::ours("direct unicast", unicast.curve()),
        published_curve(
            "tree",
            &[(117.0, 3.0), (120.0, 9.0), (124.0, 30.0), (129.0, 50.0), (134.0, 70.0), (146.0, 90.0), (156.0, 95.0), (199.0, 99.0)],
        ),
        published_curve(
            "direct unicast",
            &[
                (224.0, 5.0),
                (234.0, 20.0),
                (244.0, 40.0),
                (267.0, 60.0),
                (305.0, 80.0),
                (331.0, 90.0),
                (348.0, 95.0),
                (466.0, 99.0),
            ],
        ),
    ];
    Findings { name: "fig-7", title: "overall multicast latency, 100 receivers", axes: ("us", "percent of messages"), rows, curves }
}

/// The tree over the cloud's own multicast (a transit gateway), which nobody can run here: over its published latency.
fn over_the_clouds_multicast(product: &Sorted) -> [Row; 2] {
    let of = |name: &str, share: f64, tree_us: f64, gateway_us: f64, check: Check| {
        let what = format!("sprayed tree over the cloud's multicast as published: {name}");
        Row::new("J3", what, tree_us / gateway_us, product.us(share) / gateway_us, "ratio", check)
    };
    [of("p50", 0.5, 129.0, 228.0, Check::AtMost(0.57)), of("p99", 0.99, 199.0, 501.0, Check::Shown)]
}

fn published_curve(name: &str, points: &[(f64, f64)]) -> Curve {
    Curve { name: name.to_owned(), is_published: true, points: points.to_vec() }
}

/// Messages of figure 8 by each hedging factor.
fn messages_of_fig_8(extent: Extent) -> u64 {
    extent.of(400_000, 2_000)
}

/// Figure 8: overall latency, its tumbling median, and windows, by hedging factor.
#[must_use]
pub fn fig_8(network: &Network, measured: Option<&Network>, extent: Extent) -> Findings {
    let messages = messages_of_fig_8(extent);
    // By hedge: p50, p90 and p99 of the overall latency; p50 and p99 of the window; p5 and p95 of the tumbling median.
    let published = [
        ([147.0, 213.0, 401.0], [103.0, 357.0], [142.0, 152.0]),
        ([135.0, 154.0, 199.0], [91.0, 154.0], [134.0, 137.0]),
        ([133.0, 149.0, 191.0], [72.0, 129.0], [130.0, 136.0]),
    ];
    let ours: Vec<Delivery> = (0..3).map(|hedge| delivery(Setup::published(network, heuristic(100), hedge, 8), messages)).collect();
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    for (hedge, (ours, (overall, window, medians))) in ours.iter().zip(published).enumerate() {
        for (share, us, tolerance) in [(0.5, overall[0], 0.10), (0.9, overall[1], 0.15), (0.99, overall[2], 0.25)] {
            let what = format!("H = {hedge}: overall latency, p{:.0}", share * 100.0);
            rows.push(Row::new("J6", what, us, ours.overall.us(share), "us", Check::around(us, tolerance)));
        }
        for (share, us, check) in [(0.5, window[0], Check::around(window[0], 0.20)), (0.99, window[1], Check::Shown)] {
            let what = format!("H = {hedge}: window, p{:.0}", share * 100.0);
            rows.push(Row::new("J8", what, us, ours.window.us(share), "us", check));
        }
        for (share, us) in [(0.05, medians[0]), (0.95, medians[1])] {
            let what = format!("H = {hedge}: median of {TUMBLING} messages, p{:.0}", share * 100.0);
            rows.push(Row::new("J7", what, us, quantile(&ours.medians_us, share), "us", Check::Shown));
        }
        curves.push(Curve::ours(format!("H = {hedge}"), ours.overall.curve()));
    }
    let p99 = |hedge: usize| ours[hedge].overall.us(0.99);
    let window = |hedge: usize| ours[hedge].window.us(0.99);
    let spread = |hedge: usize| quantile(&ours[hedge].medians_us, 0.95) - quantile(&ours[hedge].medians_us, 0.05);
    rows.push(Row::new(
        "J6",
        "H = 1 over H = 0: overall latency, p99",
        199.0 / 401.0,
        p99(1) / p99(0),
        "ratio",
        Check::AtMost(0.60),
    ));
    rows.push(Row::new("J8", "H = 1 over H = 0: window, p99", 0.43, window(1) / window(0), "ratio", Check::near(0.43, 0.15)));
    rows.push(Row::new(
        "J7",
        "H = 1 over H = 0: spread of the tumbling median",
        0.3,
        spread(1) / spread(0),
        "ratio",
        Check::AtMost(0.5),
    ));
    let (of_one_copy, hedged) = one_more_copy(network, "", messages);
    rows.extend(of_one_copy);
    if let Some(measured) = measured {
        rows.extend(one_more_copy(measured, "measured links: ", extent.of(100_000, 2_000)).0);
    }
    curves.push(Curve::ours("H = 1, sprayed", hedged.overall.curve()));
    let points = |us: [f64; 3]| vec![(us[0], 50.0), (us[1], 90.0), (us[2], 99.0)];
    curves.extend(
        published.iter().enumerate().map(|(hedge, (overall, ..))| published_curve(&format!("H = {hedge}"), &points(*overall))),
    );
    Findings {
        name: "fig-8",
        title: "overall multicast latency by hedging factor",
        axes: ("us", "percent of messages"),
        rows,
        curves,
    }
}

/// What one more copy makes of the product's tree; and the delivery with it.
fn one_more_copy(network: &Network, on: &str, messages: u64) -> (Vec<Row>, Delivery) {
    let [alone, hedged] = [0, 1].map(|hedge| delivery(Setup::product(network, heuristic(100), hedge, 8), messages));
    let overall = hedged.overall.us(0.99) / alone.overall.us(0.99);
    let window = hedged.window.us(0.99) / alone.window.us(0.99);
    let what = |of: &str| format!("{on}sprayed, {of}");
    let (most, published) = (Check::AtMost(0.50), 199.0 / 401.0);
    let rows = vec![
        Row::own("J6", what("H = 1: overall latency, p50"), hedged.overall.us(0.5), "us", Check::Shown),
        Row::own("J6", what("H = 1: overall latency, p99"), hedged.overall.us(0.99), "us", Check::Shown),
        Row::new("J6", what("H = 1 over H = 0: overall latency, p99"), published, overall, "ratio", most),
        Row::new("J8", what("H = 1 over H = 0: window, p99"), 0.43, window, "ratio", Check::AtMost(0.43)),
    ];
    (rows, hedged)
}

/// One more copy on the product's tree over none, as in figure 8: the 99th percentiles of the overall latency, and of the window.
#[must_use]
pub fn hedging_ratios(network: &Network, extent: Extent) -> (f64, f64) {
    let (rows, _) = one_more_copy(network, "", messages_of_fig_8(extent));
    let fig_8 = Findings::table("fig-8", "one more copy", rows);
    (fig_8.figure("sprayed, H = 1 over H = 0: overall latency, p99"), fig_8.figure("sprayed, H = 1 over H = 0: window, p99"))
}

/// Figure 9: each receiver's delay, of messages that are hedged and not in turn.
#[must_use]
pub fn fig_9(network: &Network, extent: Extent) -> Findings {
    let messages = extent.of(400_000, 8_000);
    let setup = Setup { hedges: vec![0, 2], ..Setup::published(network, heuristic(100), 0, 9) };
    let delays = by_receiver(setup, messages);
    let of = |plane: usize, share: f64| -> Vec<f64> { delays[plane].iter().map(|delays| delays.us(share)).collect() };
    let [plain_50, hedged_50, plain_99, hedged_99] = [of(0, 0.5), of(1, 0.5), of(0, 0.99), of(1, 0.99)];
    let rows = [
        ("H = 0: median receiver's p50", 88.0, &plain_50, 0.5),
        ("H = 2: median receiver's p50", 88.0, &hedged_50, 0.5),
        ("H = 0: median receiver's p99", 162.0, &plain_99, 0.5),
        ("H = 2: median receiver's p99", 124.0, &hedged_99, 0.5),
        ("H = 0: 95th percentile of receivers' p99", 249.0, &plain_99, 0.95),
        ("H = 2: 95th percentile of receivers' p99", 144.0, &hedged_99, 0.95),
    ];
    let rows = rows.map(|(what, us, ours, share)| Row::new("J9", what, us, quantile(ours, share), "us", Check::around(us, 0.20)));
    let points = |us: &[f64]| us.iter().enumerate().map(|(at, us)| (at as f64, *us)).collect();
    let curves = vec![
        Curve::ours("p99, H = 0", points(&plain_99)),
        Curve::ours("p99, H = 2", points(&hedged_99)),
        Curve::ours("p50, H = 0", points(&plain_50)),
        Curve::ours("p50, H = 2", points(&hedged_50)),
    ];
    Findings { name: "fig-9", title: "each receiver's delay, hedged and not", axes: ("receiver", "us"), rows: rows.into(), curves }
}

/// Figure 10: by number of receivers.
#[must_use]
pub fn fig_10(network: &Network, measured: Option<&Network>, extent: Extent) -> Findings {
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    let mut medians = Vec::new();
    let sizes = [
        (100, extent.of(200_000, 1_000), Some((129.0, 199.0))),
        (1_000, extent.of(30_000, 100), Some((214.0, 377.0))),
        (5_800, extent.of(5_000, 20), Some((315.0, 541.0))),
        (10_000, extent.of(5_000, 10), None),
    ];
    for (receivers, messages, published) in sizes {
        let fixed = delivery(Setup::published(network, heuristic(receivers), 1, 10), messages).overall;
        let sprayed = delivery(Setup::product(network, heuristic(receivers), 1, 10), messages).overall;
        for (share, us, tolerance) in [(0.5, published.map(|us| us.0), 0.15), (0.99, published.map(|us| us.1), 0.25)] {
            let what = format!("N = {receivers}: overall latency, p{:.0}", share * 100.0);
            let check = us.map_or(Check::Shown, |us| Check::around(us, tolerance));
            rows.push(Row { claim: "J15", what, published: us, ours: fixed.us(share), unit: "us", check });
        }
        rows.push(Row::own("J15", format!("N = {receivers}, sprayed: overall latency, p50"), sprayed.us(0.5), "us", Check::Shown));
        medians.push((fixed.us(0.5), sprayed.us(0.5)));
        curves.push(Curve::ours(format!("N = {receivers}"), fixed.curve()));
    }
    let published = 214.0 / 129.0;
    rows.push(Row::new("J15", "N = 1000 over N = 100: p50", published, medians[1].0 / medians[0].0, "ratio", Check::AtMost(1.7)));
    rows.push(Row::new(
        "J15",
        "N = 1000 over N = 100, sprayed: p50",
        published,
        medians[1].1 / medians[0].1,
        "ratio",
        Check::AtMost(1.7),
    ));
    if let Some(measured) = measured {
        let median_us = |receivers: u32, messages: u64| {
            delivery(Setup::product(measured, heuristic(receivers), 1, 10), messages).overall.us(0.5)
        };
        let ratio = median_us(1_000, extent.of(10_000, 50)) / median_us(100, extent.of(50_000, 200));
        let what = "measured links: N = 1000 over N = 100, sprayed: p50";
        rows.push(Row::new("J15", what, published, ratio, "ratio", Check::AtMost(1.7)));
    }
    for (receivers, p50, p90, p99) in [(100, 129.0, 146.0, 199.0), (1_000, 214.0, 244.0, 377.0), (5_800, 315.0, 355.0, 541.0)] {
        curves.push(published_curve(&format!("N = {receivers}"), &[(p50, 50.0), (p90, 90.0), (p99, 99.0)]));
    }
    Findings { name: "fig-10", title: "overall multicast latency by receivers", axes: ("us", "percent of messages"), rows, curves }
}

/// The product's multicast latency over that of direct unicasts, at the median, and that of 1,000 receivers over that of 100.
#[must_use]
pub fn ratios(fig_7: &Findings, fig_10: &Findings) -> (f64, f64) {
    (fig_7.figure("sprayed tree over direct unicast: p50"), fig_10.figure("N = 1000 over N = 100, sprayed: p50"))
}

/// The committed results of the bench of the overlay; null if there is no file.
pub(crate) fn recorded() -> serde_json::Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results/overlay.json");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// A figure of the bench's results, if it is there.
pub(crate) fn figure(bench: &serde_json::Value, metric: &str) -> Option<f64> {
    let figures = bench["figures"].as_array().map_or(&[][..], Vec::as_slice);
    figures.iter().find(|figure| figure["metric"] == metric)?["value"].as_f64()
}

/// What is asked of model 1, in us, where about 1 of latency and less than 1 of jitter are published.
const INSIDE_US_MAX: f64 = 0.2;
const INSIDE_JITTER_US_MAX: f64 = 0.1;

/// Model 1: from the release of a message of 466 bytes until a strategy on a spinning thread has been called with it. There is no row if
/// the bench did not measure it.
fn inside(bench: &serde_json::Value) -> Vec<Row> {
    let us = |metric: &str| figure(bench, metric).map(|ns| ns / 1e3);
    let [Some(p50_us), Some(p90_us)] = ["wasm_release_ns", "wasm_release_ns_p90"].map(us) else { return Vec::new() };
    let what = |of: &str| format!("model 1, a strategy inside on a spinning thread, measured: {of}");
    vec![
        Row::new("J23", what("latency"), 1.0, p50_us, "us", Check::AtMost(INSIDE_US_MAX)),
        Row::new("J23", what("jitter"), 1.0, p90_us - p50_us, "us", Check::AtMost(INSIDE_JITTER_US_MAX)),
    ]
}

/// Model 2 as far as sockets go: from the release of a message of 466 bytes at a leaf gateway until a participant's program on the same
/// machine, which sleeps until something comes, has read it. There is no row if the bench did not measure it.
fn behind_a_socket(bench: &serde_json::Value) -> Vec<Row> {
    let metrics = ["socket_model_2_read_p50_us", "socket_model_2_read_jitter_us"];
    let [Some(p50_us), Some(jitter_us)] = metrics.map(|metric| figure(bench, metric)) else { return Vec::new() };
    let what = |of: &str| format!("model 2, a socket of one machine, measured: {of}");
    vec![
        Row::new("J23", what("latency"), 50.0, p50_us, "us", Check::Shown),
        Row::new("J23", what("jitter"), 10.0, jitter_us, "us", Check::Shown),
    ]
}

/// Model 3: the participant's program in an enclave of the gateway's machine. The throughput is that of model 2 less this share.
fn in_an_enclave() -> [Row; 3] {
    [("latency", 50.0, "us"), ("jitter", 10.0, "us"), ("throughput less", 70.0, "percent")].map(|(of, published, unit)| {
        let why = "needs an enclave; see docs/strategies.md";
        Row::not_measured("J23", format!("model 3, a program in an enclave: {of}"), published, unit, why)
    })
}

/// Table 7: strategies in the venue's process (model 1) and participants behind a socket (model 2), both as the bench recorded them on the
/// machine that it names; as far as links go, gateways on machines of their own, one hop from a participant's (model 2); and what is
/// published of programs in enclaves (model 3). Jitter is p90 less p50.
#[must_use]
pub fn table_7(network: &Network, measured: Option<&Network>, extent: Extent) -> Findings {
    let bench = recorded();
    let mut rows = inside(&bench);
    rows.extend(behind_a_socket(&bench));
    for network in [Some(network), measured].into_iter().flatten() {
        // One link is as good as its luck: the median of a hundred.
        let (mut medians, mut jitters) = (Vec::new(), Vec::new());
        for seed in 0..extent.of(100, 10) {
            let mut samples = Samples::default();
            let random = &mut Random::new(70 + seed);
            let link = network.link(0, 0, seed as u32);
            for number in 0..extent.of(20_000_u64, 500) {
                samples.push(network.delay_ns(link, BEGIN_NS + number * 125_000, random));
            }
            let delays = samples.sorted();
            medians.push(delays.us(0.5));
            jitters.push(delays.us(0.9) - delays.us(0.5));
        }
        let what = |of: &str| format!("model 2, {} links: {of}", network.name);
        rows.push(Row::new("J23", what("latency"), 50.0, quantile(&medians, 0.5), "us", Check::Shown));
        rows.push(Row::new("J23", what("jitter"), 10.0, quantile(&jitters, 0.5), "us", Check::Shown));
    }
    rows.extend(in_an_enclave());
    Findings::table("table-7", "the last hop by trust model", rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strategies_inside_have_a_row_where_the_bench_measured_them() {
        let figure = |metric: &str, value: f64| json!({"metric": metric, "value": value});
        let bench = |p50_ns: f64, p90_ns: f64| {
            let (p50, p90) = (figure("wasm_release_ns", p50_ns), figure("wasm_release_ns_p90", p90_ns));
            json!({"figures": [p50, figure("other", 1.0), p90]})
        };
        let rows = inside(&bench(180.0, 260.0));
        let [latency, jitter] = &rows[..] else { panic!("{} rows", rows.len()) };
        assert!((latency.ours - 0.18).abs() < 1e-9 && (jitter.ours - 0.08).abs() < 1e-9, "{} {}", latency.ours, jitter.ours);
        assert_eq!((latency.is_met(), jitter.is_met()), (Some(true), Some(true)));
        assert!(inside(&bench(300.0, 420.0)).iter().all(|row| row.is_met() == Some(false)));
        assert!(inside(&serde_json::Value::Null).is_empty() && inside(&json!({"figures": []})).is_empty());
    }

    #[test]
    fn a_participant_behind_a_socket_has_a_row_where_the_bench_measured_it() {
        let figure = |metric: &str, value: f64| json!({"metric": metric, "value": value});
        let bench = json!({"figures": [figure("socket_model_2_read_jitter_us", 8.0), figure("socket_model_2_read_p50_us", 35.0)]});
        let rows = behind_a_socket(&bench);
        let [latency, jitter] = &rows[..] else { panic!("{} rows", rows.len()) };
        assert_eq!((latency.ours, jitter.ours), (35.0, 8.0));
        assert!(behind_a_socket(&json!({"figures": [figure("socket_model_2_read_p50_us", 35.0)]})).is_empty());
    }
}
