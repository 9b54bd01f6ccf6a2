//! Hold and release: figure 11, tables 4 and 6, and who profits (table 2 of the paper's first version).
//!
//! A message is delivered to all at the same time if its window is at most 1 us.
//!
//! "Ours" steers deadlines by the greatest delays of sampled packets ([`walras_relay::deadline::Deadlines`]), which is our rule next to the
//! published one with all else as in the paper. "The product's rule" is what a venue does: [`crate::product`].

use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Stepped, Tracking};
use walras_random::Random;
use walras_relay::deadline::Rule;

use crate::Extent;
use crate::held::held;
use crate::latency::{delivery, heuristic, unicast};
use crate::multicast::{Hosts, NEVER, Setup};
use crate::network::{Network, unit};
use crate::product::{held_by_product, rules};
use crate::released::Released;
use crate::rows::{Check, Curve, Findings, Row};
use crate::stats::{Samples, Sorted};

/// Where a delay begins, and how far it may go.
const BOUNDS: DelayBounds = DelayBounds { min_ns: 0, max_ns: 20_000_000, start_ns: 400_000 };
/// The published rule.
const PUBLISHED_RULE: Rule = Rule::MaximumOfQuantiles(BOUNDS);
/// Messages before deadlines have found their level, which do not count: 10 s.
const SETTLING: u64 = 50_000;
/// The same for the product, whose delay begins higher and moves with fewer samples: 30 s.
const PRODUCT_SETTLING: u64 = 150_000;
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
    gathered(receivers_each, settling, |see| held(setup, rule, messages + settling, see))
}

/// The same by the product's rule, steered to this share of late messages.
fn release_by_product(setup: Setup<'_>, target: Ppm, messages: u64, receivers_each: usize, settling: u64) -> Release {
    gathered(receivers_each, settling, |see| held_by_product(setup, rules(target), messages + settling, see))
}

/// What a run shows of the messages after the first ones.
fn gathered(receivers_each: usize, settling: u64, run: impl FnOnce(&mut dyn FnMut(&Released<'_>))) -> Release {
    let (mut overall, mut window, mut hold) = (Samples::default(), Samples::default(), Samples::default());
    run(&mut |released: &Released<'_>| {
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

/// `CloudEx` and our tree on the same links, with one further copy and with two, by our rule and, with one, by the product's. As many
/// late as published for the tree, so that all are compared at the same fairness.
struct Compared {
    cloudex: Release,
    ours: Release,
    ours_2: Release,
    product: Release,
}

impl Compared {
    fn on(network: &Network, messages: u64, [settling, product_settling]: [u64; 2]) -> Self {
        let target = Ppm(80_000);
        let direct = Setup { hosts: Hosts::PUBLISHED_ROOT, ..Setup::published(network, unicast(100), 0, 11) };
        let tree = |hedge: u32| Setup::product(network, heuristic(100), hedge, 11);
        let ours = |hedge: u32| release(tree(hedge), steered(target), messages, 1, settling);
        let cloudex = release(direct, cloudex(target), messages, 1, settling);
        let product = release_by_product(tree(1), target, messages, 1, product_settling);
        Self { cloudex, ours: ours(1), ours_2: ours(2), product }
    }

    fn rows(&self, on: &str) -> Vec<Row> {
        let mut rows = Vec::new();
        let named = [("ours, H = 1", &self.ours), ("ours, H = 2", &self.ours_2), ("product's rule, H = 1", &self.product)];
        for (name, ours) in named {
            let (latency, holding) = over(ours, &self.cloudex);
            let what = |of: &str| format!("{on}{name}, over CloudEx: {of}, p50");
            rows.push(Row::new("J13", what("overall latency"), 0.34, latency, "ratio", Check::AtMost(0.34)));
            rows.push(Row::new("J13", what("holding"), 0.25, holding, "ratio", Check::AtMost(0.25)));
        }
        rows
    }
}

/// Latency and holding of the first over those of the second, at the median.
fn over(release: &Release, other: &Release) -> (f64, f64) {
    let ratio = |of: fn(&Release) -> &Sorted| of(release).us(0.5) / of(other).us(0.5);
    (ratio(|of| &of.overall), ratio(|of| &of.held))
}

/// Messages of figure 11 that count, and those before them, which do not: by rules on sampled packets, and by the product's.
fn messages_of_fig_11(extent: Extent) -> (u64, [u64; 2]) {
    (extent.of(100_000, 2_000), [extent.of(SETTLING, 3_000), extent.of(PRODUCT_SETTLING, 3_000)])
}

/// Latency and holding of the tree with one further copy over `CloudEx`'s, as in figure 11: by our rule, and by the product's.
#[must_use]
pub fn over_cloudex(network: &Network, extent: Extent) -> [(f64, f64); 2] {
    let (messages, settling) = messages_of_fig_11(extent);
    let compared = Compared::on(network, messages, settling);
    [&compared.ours, &compared.product].map(|ours| over(ours, &compared.cloudex))
}

/// Figure 11: with and without hedging, and as `CloudEx` does it.
#[must_use]
pub fn fig_11(network: &Network, measured: Option<&Network>, extent: Extent) -> Findings {
    let (messages, both_settling) = messages_of_fig_11(extent);
    let settling = both_settling[0];
    let tree = |hedge: u32| Setup::published(network, heuristic(100), hedge, 11);
    let with = release(tree(2), PUBLISHED_RULE, messages, 1, settling);
    let without = release(tree(0), PUBLISHED_RULE, messages, 1, settling);
    let compared = Compared::on(network, messages, both_settling);
    let of = [
        ("H = 2", &with, Some((139.0, 53.0, 35.0))),
        ("H = 0", &without, Some((205.0, 103.0, 1_161.0))),
        ("CloudEx", &compared.cloudex, Some((406.0, 211.0, 240.0))),
        ("ours, H = 1", &compared.ours, None),
        ("ours, H = 2", &compared.ours_2, None),
        ("product's rule, H = 1", &compared.product, None),
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
    let (latency, holding) = over(&with, &compared.cloudex);
    rows.push(Row::new("J13", "H = 2 over CloudEx: overall latency, p50", 0.34, latency, "ratio", Check::near(0.34, 0.08)));
    rows.push(Row::new("J13", "H = 2 over CloudEx: holding, p50", 0.25, holding, "ratio", Check::near(0.25, 0.08)));
    rows.extend(compared.rows(""));
    if let Some(measured) = measured {
        rows.extend(Compared::on(measured, extent.of(50_000, 2_000), both_settling).rows("measured links: "));
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

/// A number of receivers of table 6: what is published of it, and what is asked.
struct Size {
    receivers: u32,
    messages: u64,
    published_percent: f64,
    published_us: f64,
    /// Without holding.
    published_unheld_us: f64,
    goal_percent: f64,
    /// The latency over that without holding, at most.
    goal_premium: f64,
    /// The shares of late messages to which ours steers, the product's setting first.
    targets: &'static [Ppm],
}

impl Size {
    /// Ours on these links, by target, and the product's rule with the first of them. `latency` is what is asked of the latency itself.
    fn ours(&self, (network, on): (&Network, &str), targets: &[Ppm], latency: Check, settling: [u64; 2]) -> Vec<Row> {
        let setup = || Setup::product(network, heuristic(self.receivers), 1, 6);
        let unheld_us = delivery(setup(), self.messages).overall.us(0.5);
        let (premium, most) = (self.published_us / self.published_unheld_us, Check::AtMost(self.goal_premium));
        let mut named = Vec::new();
        for (at, target) in targets.iter().enumerate() {
            let name = if at == 0 { "ours".to_owned() } else { format!("ours, {} % late", target.0 / 10_000) };
            named.push((name, release(setup(), steered(*target), self.messages, 1, settling[0])));
        }
        let product = release_by_product(setup(), targets[0], self.messages, 1, settling[1]);
        named.push(("product's rule".to_owned(), product));
        let mut rows = Vec::new();
        for (name, ours) in named {
            let what = |of: &str| format!("{on}N = {}, {name}: {of}", self.receivers);
            let (percent, latency_us) = (ours.together_percent(), ours.overall.us(0.5));
            let goal = Check::AtLeast(self.goal_percent);
            rows.push(Row::new("J14", what("within 1 us"), self.published_percent, percent, "percent", goal));
            rows.push(Row::new("J14", what("overall latency, p50"), self.published_us, latency_us, "us", latency));
            let ratio = latency_us / unheld_us;
            rows.push(Row::new("J14", what("overall latency over that without holding, p50"), premium, ratio, "ratio", most));
        }
        rows
    }
}

/// Table 6: messages that all receivers have within 1 us.
#[must_use]
pub fn table_6(network: &Network, measured: Option<&Network>, extent: Extent) -> Findings {
    let sizes = [
        Size {
            receivers: 100,
            messages: extent.of(150_000, 3_000),
            published_percent: 92.0,
            published_us: 175.0,
            published_unheld_us: 129.0,
            goal_percent: 95.0,
            goal_premium: 1.36,
            targets: &[Ppm(30_000)],
        },
        Size {
            receivers: 1_000,
            messages: extent.of(40_000, 200),
            published_percent: 84.0,
            published_us: 238.0,
            published_unheld_us: 214.0,
            goal_percent: 90.0,
            goal_premium: 1.11,
            targets: &[Ppm(60_000), Ppm(90_000)],
        },
    ];
    let settling = extent.of(SETTLING, 1_500);
    let both_settling = [settling, extent.of(PRODUCT_SETTLING, 1_500)];
    let mut rows = Vec::new();
    for size in sizes {
        let tree = heuristic(size.receivers);
        let by_rule = |setup: Setup<'_>| release(setup, PUBLISHED_RULE, size.messages, 1, settling);
        let named = [
            ("published rule, not sprayed", by_rule(Setup::published(network, tree.clone(), 1, 6))),
            ("published rule, sprayed", by_rule(Setup::product(network, tree, 1, 6))),
        ];
        for (name, release) in named {
            let what = |of: &str| format!("N = {}, {name}: {of}", size.receivers);
            let percent = release.together_percent();
            rows.push(Row::new("J14", what("within 1 us"), size.published_percent, percent, "percent", Check::Shown));
            let latency_us = release.overall.us(0.5);
            rows.push(Row::new("J14", what("overall latency, p50"), size.published_us, latency_us, "us", Check::Shown));
        }
        rows.extend(size.ours((network, ""), size.targets, Check::AtMost(size.published_us), both_settling));
        // What is published was measured in another cloud, whose links are shorter.
        if let Some(measured) = measured {
            rows.extend(size.ours((measured, "measured links: "), &size.targets[..1], Check::Shown, both_settling));
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
    // The same share of late messages, so that what is held is compared alike.
    let (late, product_settling) = (Ppm(30_000), extent.of(PRODUCT_SETTLING, 1_500));
    let by_product = |setup, receivers_each| release_by_product(setup, late, messages, receivers_each, product_settling);
    let held = [
        ("one receiver each, held", release(one(), steered(late), messages, 1, settling), Check::Shown),
        ("two receivers each, held", release(two(), steered(late), messages, 2, settling), Check::AtLeast(99.9)),
        ("one receiver each, held by the product's rule", by_product(one(), 1), Check::Shown),
        ("two receivers each, held by the product's rule", by_product(two(), 2), Check::AtLeast(99.9)),
    ];
    let p99 = |release: &Release| release.overall.us(0.99);
    let mut rows = vec![
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
    ];
    for (whose, held, check) in held {
        // What is published is of two receivers each.
        let published = (check != Check::Shown).then_some(99.9);
        let (what, ours) = (format!("{whose}: within 1 us"), held.together_percent());
        rows.push(Row { claim: "J12", what, published, ours, unit: "percent", check });
        rows.push(Row::own("J12", format!("{whose}: overall latency, p50"), held.overall.us(0.5), "us", Check::Shown));
    }
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

/// The share of messages within 1 us, for 100 receivers and for 1,000: by our rule next to the published one, and by the product's.
#[must_use]
pub fn within_1us_percent(table_6: &Findings) -> [(f64, f64); 2] {
    let of = |rule: &str| {
        let of_receivers = |receivers: u32| table_6.figure(&format!("N = {receivers}, {rule}: within 1 us"));
        (of_receivers(100), of_receivers(1_000))
    };
    ["ours", "product's rule"].map(of)
}
