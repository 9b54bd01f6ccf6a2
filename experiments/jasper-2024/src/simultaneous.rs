//! Hold and release: figure 11, tables 4 and 6, and who profits (table 2 of the paper's first version).
//!
//! A message is delivered to all at the same time if its window is at most 1 us.

use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Stepped, Tracking};
use walras_random::Random;
use walras_relay::deadline::Rule;

use crate::Extent;
use crate::held::{Released, held};
use crate::latency::{heuristic, unicast};
use crate::multicast::{Hosts, NEVER, Setup};
use crate::network::{Network, unit};
use crate::rows::{Check, Curve, Findings, Row};
use crate::stats::{Samples, Sorted};

/// Where a delay begins, and how far it may go.
const BOUNDS: DelayBounds = DelayBounds { min_ns: 0, max_ns: 20_000_000, start_ns: 400_000 };
/// The published rule.
const PUBLISHED_RULE: Rule = Rule::MaximumOfQuantiles(BOUNDS);
/// Messages before deadlines have found their level, which do not count: 10 s.
const SETTLING: u64 = 50_000;
/// A window that counts as none.
const TOGETHER_NS: u32 = 1_000;

/// Ours: the greatest delays of sampled packets steer to this share of late messages.
fn steered(target: Ppm) -> Rule {
    Rule::Steered(DelaySettings::Tracking(Tracking { bounds: BOUNDS, target, step_ns: 4_000, level_window: 127 }))
}

/// `CloudEx`'s rule, on what the sender hears of sampled messages.
fn cloudex(target: Ppm) -> Rule {
    let (window, step_ns) = (Stepped::CLOUDEX_WINDOW, Stepped::CLOUDEX_STEP_NS);
    Rule::Steered(DelaySettings::Stepped(Stepped { bounds: BOUNDS, target, window, step_ns, samples_per_step: 30 }))
}

/// What was released.
#[derive(Clone, Debug)]
struct Release {
    /// Overall latency, of the last receiver's release.
    overall: Sorted,
    window: Sorted,
    held: Sorted,
}

impl Release {
    fn together_percent(&self) -> f64 {
        self.window.percent_within(TOGETHER_NS)
    }
}

/// Participants of so many receivers each; each participant has a message with the first of its receivers.
fn release(setup: Setup<'_>, rule: Rule, messages: u64, receivers_each: usize, settling: u64) -> Release {
    let (mut overall, mut window, mut hold) = (Samples::default(), Samples::default(), Samples::default());
    held(setup, rule, messages + settling, |released| {
        if released.number <= settling {
            return;
        }
        // The receivers of a participant stand far from each other in the tree.
        let participants = released.after_ns.len() / receivers_each;
        let (mut last_ns, mut first_ns) = (0, NEVER);
        for participant in 0..participants {
            let of = (0..receivers_each).map(|copy| released.after_ns[copy * participants + participant]);
            let after_ns = of.min().unwrap_or(NEVER);
            (last_ns, first_ns) = (after_ns.max(last_ns), after_ns.min(first_ns));
        }
        overall.push(last_ns.into());
        window.push((last_ns - first_ns).into());
        if released.number.is_multiple_of(16) {
            released.held_ns.iter().for_each(|ns| hold.push((*ns).into()));
        }
    });
    Release { overall: overall.sorted(), window: window.sorted(), held: hold.sorted() }
}

/// Figure 11: with and without hedging, and as `CloudEx` does it.
#[must_use]
pub fn fig_11(network: &Network, extent: Extent) -> Findings {
    let (messages, settling) = (extent.of(100_000, 2_000), extent.of(SETTLING, 3_000));
    let tree = |hedge: u32| Setup::published(network, heuristic(100), hedge, 11);
    let with = release(tree(2), PUBLISHED_RULE, messages, 1, settling);
    let without = release(tree(0), PUBLISHED_RULE, messages, 1, settling);
    // As many late as published for the tree, so that both are compared at the same fairness.
    let target = Ppm(80_000);
    let direct = || Setup { hosts: Hosts::PUBLISHED_ROOT, ..Setup::published(network, unicast(100), 0, 11) };
    let cloudex = release(direct(), cloudex(target), messages, 1, settling);
    let ours = |hedge: u32| release(Setup::product(network, heuristic(100), hedge, 11), steered(target), messages, 1, settling);
    let (ours, ours_2) = (ours(1), ours(2));
    let of = [
        ("H = 2", &with, Some((139.0, 53.0, 35.0))),
        ("H = 0", &without, Some((205.0, 103.0, 1_161.0))),
        ("CloudEx", &cloudex, Some((406.0, 211.0, 240.0))),
        ("ours, H = 1", &ours, None),
        ("ours, H = 2", &ours_2, None),
    ];
    let mut rows = Vec::new();
    for (name, release, published) in of {
        let figures = [
            ("overall latency, p50, us", release.overall.us(0.5), published.map(|us| us.0)),
            ("holding, p50, us", release.held.us(0.5), published.map(|us| us.1)),
            ("window, p99, us", release.window.us(0.99), published.map(|us| us.2)),
        ];
        for (what, ours, published) in figures {
            rows.push(Row { claim: "J13", what: format!("{name}: {what}"), published, ours, unit: "us", check: Check::Shown });
        }
        let percent = if name == "H = 2" { Some(92.0) } else { None };
        let what = format!("{name}: messages within 1 us");
        rows.push(Row {
            claim: "J13",
            what,
            published: percent,
            ours: release.together_percent(),
            unit: "percent",
            check: Check::Shown,
        });
    }
    let ratio = |of: fn(&Release) -> &Sorted, a: &Release| of(a).us(0.5) / of(&cloudex).us(0.5);
    let (latency, holding) = (ratio(|of| &of.overall, &with), ratio(|of| &of.held, &with));
    rows.push(Row::new("J13", "H = 2 over CloudEx: overall latency, p50", 0.34, latency, "ratio", Check::near(0.34, 0.08)));
    rows.push(Row::new("J13", "H = 2 over CloudEx: holding, p50", 0.25, holding, "ratio", Check::near(0.25, 0.08)));
    for (name, ours) in [("ours, H = 1", &ours), ("ours, H = 2", &ours_2)] {
        let (latency, holding) = (ratio(|of| &of.overall, ours), ratio(|of| &of.held, ours));
        rows.push(Row::new(
            "J13",
            format!("{name}, over CloudEx: overall latency, p50"),
            0.34,
            latency,
            "ratio",
            Check::AtMost(0.34),
        ));
        rows.push(Row::new("J13", format!("{name}, over CloudEx: holding, p50"), 0.25, holding, "ratio", Check::AtMost(0.25)));
    }
    let curves = of.iter().map(|(name, release, _)| Curve::ours(*name, release.overall.curve())).collect();
    Findings {
        name: "fig-11",
        title: "overall latency with hold and release, 100 receivers",
        axes: ("us", "percent of messages"),
        rows,
        curves,
    }
}

/// Table 6: messages that all receivers have within 1 us.
#[must_use]
pub fn table_6(network: &Network, extent: Extent) -> Findings {
    let mut rows = Vec::new();
    let sizes = [
        (100, extent.of(150_000, 3_000), 92.0, 175.0, 95.0, Ppm(30_000)),
        (1_000, extent.of(40_000, 200), 84.0, 238.0, 90.0, Ppm(60_000)),
    ];
    let settling = extent.of(SETTLING, 1_500);
    for (receivers, messages, percent, latency_us, goal_percent, target) in sizes {
        let fixed = release(Setup::published(network, heuristic(receivers), 1, 6), PUBLISHED_RULE, messages, 1, settling);
        let sprayed = |rule: Rule| release(Setup::product(network, heuristic(receivers), 1, 6), rule, messages, 1, settling);
        let (published_rule, ours) = (sprayed(PUBLISHED_RULE), sprayed(steered(target)));
        let named = [
            ("published rule, not sprayed", &fixed, Check::Shown, Check::Shown),
            ("published rule, sprayed", &published_rule, Check::Shown, Check::Shown),
            ("ours", &ours, Check::AtLeast(goal_percent), Check::AtMost(latency_us)),
        ];
        for (name, release, percent_check, latency_check) in named {
            let what = format!("N = {receivers}, {name}: within 1 us");
            rows.push(Row::new("J14", what, percent, release.together_percent(), "percent", percent_check));
            let what = format!("N = {receivers}, {name}: overall latency, p50");
            rows.push(Row::new("J14", what, latency_us, release.overall.us(0.5), "us", latency_check));
        }
    }
    Findings::table("table-6", "messages that all receivers have within 1 us", rows)
}

/// Table 4: two receivers for each participant.
#[must_use]
pub fn table_4(network: &Network, extent: Extent) -> Findings {
    let (messages, settling) = (extent.of(150_000, 3_000), extent.of(SETTLING, 1_500));
    // The tree for twice as many receivers has 14 relays.
    let two = || Setup::product(network, heuristic(200), 1, 12);
    let none = Rule::Steered(DelaySettings::Static { delay_ns: 0 });
    let one = || Setup::product(network, heuristic(100), 1, 12);
    let (alone, hedged) = (release(one(), none, messages, 1, 0), release(two(), none, messages, 2, 0));
    let together = release(two(), steered(Ppm(30_000)), messages, 2, settling);
    let p99 = |release: &Release| release.overall.us(0.99);
    let rows = vec![
        Row::own("J12", "one receiver each: overall latency, p50", alone.overall.us(0.5), "us", Check::Shown),
        Row::own(
            "J12",
            "two receivers each: overall latency, p50",
            hedged.overall.us(0.5),
            "us",
            Check::AtMost(alone.overall.us(0.5)),
        ),
        Row::own("J12", "one receiver each: overall latency, p99", p99(&alone), "us", Check::Shown),
        Row::own("J12", "two receivers each: overall latency, p99", p99(&hedged), "us", Check::AtMost(p99(&alone))),
        Row::new(
            "J12",
            "two receivers each, held: within 1 us",
            99.9,
            together.together_percent(),
            "percent",
            Check::AtLeast(99.9),
        ),
        Row::own("J12", "two receivers each, held: overall latency, p50", together.overall.us(0.5), "us", Check::Shown),
    ];
    Findings::table("table-4", "two receivers for each participant", rows)
}

/// How long a strategy takes to answer a message: up to this, all alike.
const REACTION_NS: f64 = 20_000.0;

/// Table 2 of the first version: of 100 participants four race for every message. Who orders first by true time wins it.
#[must_use]
pub fn profit(network: &Network, extent: Extent) -> Findings {
    const ACTIVE: [usize; 4] = [0, 1, 80, 90];
    let (messages, settling) = (extent.of(5_000, 2_000), extent.of(SETTLING, 1_500));
    let won = |setup: Setup<'_>, rule: Rule, settling: u64| -> [f64; 4] {
        let (random, mut won) = (&mut Random::new(25), [0.0; 4]);
        held(setup, rule, messages + settling, |released| {
            let reaction_ns = [(); 4].map(|()| unit(random.next_u64()) * REACTION_NS);
            if released.number > settling {
                won[winner(released, ACTIVE, reaction_ns)] += 100.0 / messages as f64;
            }
        });
        won
    };
    let none = Rule::Steered(DelaySettings::Static { delay_ns: 0 });
    let direct = won(Setup::published(network, unicast(100), 0, 25), none, 0);
    let tree = won(Setup::published(network, heuristic(100), 0, 25), none, 0);
    let ours = won(Setup::product(network, heuristic(100), 1, 25), steered(Ppm(30_000)), settling);
    let mut rows = Vec::new();
    for (name, won, published, check) in [
        ("direct unicast", direct, [49.8, 50.2, 0.0, 0.0], Check::Shown),
        ("tree", tree, [57.0, 42.0, 0.4, 0.3], Check::Shown),
        ("ours", ours, [25.0, 24.97, 24.66, 25.36], Check::near(25.0, 1.5)),
    ] {
        for (at, (percent, published)) in won.into_iter().zip(published).enumerate() {
            rows.push(Row::new("J25", format!("{name}: participant {}", at + 1), published, percent, "percent", check));
        }
    }
    Findings::table("profit", "who is first to answer", rows)
}

fn winner(released: &Released<'_>, active: [usize; 4], reaction_ns: [f64; 4]) -> usize {
    let ordered_ns = |at: usize| f64::from(released.after_ns[active[at]]) + reaction_ns[at];
    (0..4).min_by(|a, b| ordered_ns(*a).total_cmp(&ordered_ns(*b))).unwrap_or(0)
}

/// The product's share of messages within 1 us, for 100 receivers and for 1,000.
#[must_use]
pub fn within_1us_percent(table_6: &Findings) -> (f64, f64) {
    (table_6.figure("N = 100, ours: within 1 us"), table_6.figure("N = 1000, ours: within 1 us"))
}
