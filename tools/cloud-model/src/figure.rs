//! Figures 4 and 5: all delay policies, in both directions, on the same orders.

use std::path::Path;

use walras_fair_access::delay::{DelaySettings, Ppm};

use crate::frontier::Frontier;
use crate::inbound;
use crate::network::{Network, Source};
use crate::outbound;
use crate::policy::{Outcome, stepped, tracking};
use crate::workload::{Disturbance, Workload};

/// Target shares of unfairness.
pub const TARGETS: [Ppm; 6] = [Ppm(5_000), Ppm(10_000), Ppm(20_000), Ppm(30_000), Ppm(40_000), Ppm(50_000)];

/// Samples between two steps of `CloudEx`'s rule, which the paper does not give. The plots show the second one.
pub const CADENCES: [u32; 4] = [30, 100, 300, 1_000];

/// The one of these that is nearest to the published points of figure 5; it is plotted.
pub const CADENCE_DRAWN: u32 = 100;

/// The step of our tracking delay.
pub const STEP_NS: u64 = 2_000;
/// The level window of our tracking delay: 6 ms of orders at 22,000/s.
pub const LEVEL_WINDOW: usize = 127;

/// The direction of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Stamped at gateways, held at the sequencer.
    Inbound,
    /// Made at the engine, held at gateways.
    Outbound,
}

/// A policy for the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Fixed, in microseconds.
    Static(u64),
    /// `CloudEx`'s rule, with target and samples between two steps.
    Stepped(Ppm, u32),
    /// Our tracking delay, with target.
    Tracking(Ppm),
}

impl Way {
    fn settings(self) -> DelaySettings {
        match self {
            Self::Static(delay_us) => DelaySettings::Static { delay_ns: delay_us * 1_000 },
            Self::Stepped(target, samples_per_step) => stepped(target, samples_per_step),
            Self::Tracking(target) => tracking(target, STEP_NS, LEVEL_WINDOW),
        }
    }
}

/// One direction of a figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The direction.
    pub direction: Direction,
    /// Every policy and its outcome.
    pub ways: Vec<(Way, Outcome)>,
    /// The frontier of the static policies.
    pub frontier: Frontier,
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The disturbance of the network.
    pub disturbance: Disturbance,
    /// The source of its delays.
    pub source: Source,
    /// Orders in order of arrival, without resequencing.
    pub without_resequencing: Outcome,
    /// Inbound, outbound.
    pub panels: [Panel; 2],
}

/// The extent of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All cadences, static delays in steps of 25 us.
    Full,
    /// Only the plotted cadence, static delays in steps of 100 us.
    Small,
}

fn ways(direction: Direction, extent: Extent) -> Vec<Way> {
    let (from_us, to_us) = match direction {
        Direction::Inbound => (0, 1_000),
        Direction::Outbound => (300, 2_400),
    };
    let (apart_us, cadences) = match extent {
        Extent::Full => (25, &CADENCES[..]),
        Extent::Small => (100, &[CADENCE_DRAWN][..]),
    };
    let statics = (from_us..=to_us).step_by(apart_us).map(Way::Static);
    let dynamic = TARGETS
        .iter()
        .flat_map(|target| cadences.iter().map(|cadence| Way::Stepped(*target, *cadence)).chain([Way::Tracking(*target)]));
    statics.chain(dynamic).collect()
}

/// Runs both directions.
///
/// # Errors
/// If the shared data are there but cannot be parsed.
pub fn run(workload: &Workload, data: &Path, disturbance: Disturbance, extent: Extent) -> anyhow::Result<Figure> {
    let network_in = Network::load(data, workload.seed, 1)?;
    let network_out = Network::load(data, workload.seed, 2)?;
    let (without_resequencing, panel_in) = run_inbound(workload, &network_in, disturbance, extent);
    let ways_out = ways(Direction::Outbound, extent);
    let settings: Vec<DelaySettings> = ways_out.iter().map(|way| way.settings()).collect();
    let out_outcomes = outbound::released(&network_out, disturbance, &settings, workload);
    Ok(Figure {
        disturbance,
        source: network_in.source,
        without_resequencing,
        panels: [panel_in, panel(Direction::Outbound, ways_out, out_outcomes)],
    })
}

/// Runs orders to the engine: in order of arrival without resequencing, and all policies.
#[must_use]
pub fn run_inbound(workload: &Workload, network: &Network, disturbance: Disturbance, extent: Extent) -> (Outcome, Panel) {
    let orders = inbound::orders(workload, network, disturbance);
    let ways = ways(Direction::Inbound, extent);
    let outcomes = ways.iter().map(|way| inbound::resequenced(&orders, way.settings(), workload)).collect();
    (inbound::without_resequencing(&orders), panel(Direction::Inbound, ways, outcomes))
}

/// The greatest relative deviation of our delays from their targets, over both directions, with and without disturbance, and all
/// [`TARGETS`]; and the source of the network's delays.
///
/// # Errors
/// If the shared data are there but cannot be parsed.
pub fn worst_error_of_ours(workload: &Workload, data: &Path) -> anyhow::Result<(f64, Source)> {
    let (network_in, network_out) = (Network::load(data, workload.seed, 1)?, Network::load(data, workload.seed, 2)?);
    let settings: Vec<DelaySettings> = TARGETS.iter().map(|target| Way::Tracking(*target).settings()).collect();
    let mut worst = 0.0_f64;
    for disturbance in [Disturbance::None, Disturbance::Steps] {
        let orders = inbound::orders(workload, &network_in, disturbance);
        let mut outcomes: Vec<Outcome> =
            settings.iter().map(|settings| inbound::resequenced(&orders, *settings, workload)).collect();
        outcomes.extend(outbound::released(&network_out, disturbance, &settings, workload));
        for (target, outcome) in TARGETS.iter().cycle().zip(&outcomes) {
            worst = worst.max((outcome.unfair_percent() * 10_000.0 / f64::from(target.0) - 1.0).abs());
        }
    }
    Ok((worst, network_in.source))
}

fn panel(direction: Direction, ways: Vec<Way>, outcomes: Vec<Outcome>) -> Panel {
    let ways: Vec<(Way, Outcome)> = ways.into_iter().zip(outcomes).collect();
    let statics: Vec<Outcome> = ways.iter().filter(|(way, _)| matches!(way, Way::Static(_))).map(|(_, outcome)| *outcome).collect();
    Panel { direction, ways, frontier: Frontier::of(&statics) }
}

impl Panel {
    /// The outcome of one policy.
    #[must_use]
    pub fn outcome(&self, wanted: Way) -> Option<&Outcome> {
        self.ways.iter().find(|(way, _)| *way == wanted).map(|(_, outcome)| outcome)
    }

    /// The mean delay that our policy needs for an unfairness: interpolated linearly between its targets, which overestimates it;
    /// beyond them, that of the nearest target. `None` below the fairest.
    #[must_use]
    pub fn ours_us(&self, unfair_percent: f64) -> Option<f64> {
        let ours: Vec<Outcome> = TARGETS.iter().filter_map(|target| self.outcome(Way::Tracking(*target)).copied()).collect();
        Frontier::of(&ours).delay_us(unfair_percent)
    }

    /// The greatest relative deviation of a dynamic policy from its target, over all targets.
    #[must_use]
    pub fn worst_relative_error(&self, way: impl Fn(Ppm) -> Way) -> f64 {
        let error = |target: &Ppm| {
            let achieved = self.outcome(way(*target)).map_or(f64::NAN, Outcome::unfair_percent);
            (achieved * 10_000.0 / f64::from(target.0) - 1.0).abs()
        };
        TARGETS.iter().map(error).fold(0.0, f64::max)
    }

    /// Largest ratio of the mean delay to that of the static frontier at the same unfairness, over all targets.
    #[must_use]
    pub fn worst_ratio_to_static(&self, way: impl Fn(Ppm) -> Way) -> f64 {
        let ratio = |target: &Ppm| {
            let outcome = self.outcome(way(*target))?;
            Some(outcome.delay_us() / self.frontier.delay_us(outcome.unfair_percent())?)
        };
        TARGETS.iter().map(|target| ratio(target).unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
    }
}
