//! Error bounds of a solution.
#![allow(clippy::float_arithmetic, reason = "an estimator: what leaves the coordinator is rounded to integers")]

use walras_random::Random;

use super::super::NodeId;
use super::super::laplacian::{Difference, solve};
use super::super::samples::REACH_SPANS;
use super::attempt::{Attempt, EdgeUse, Measured, NOISES, RATE_SHARE, Track, ways};
use super::judge::median;
use super::{Coordinator, Correction, Quality, Residual, Standing, Verdict, WindowOutcome};

/// Statistics of how well clocks are predicted and how tightly the graph connects them.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// The standard deviation of an edge around its loops.
    pub(super) sigma: f64,
    /// For each node, its mean squared prediction error and the number of windows in it.
    moved: Vec<(f64, u32)>,
    /// For each node, its variance relative to the reference, in units of an edge's variance.
    variance: Vec<Option<f64>>,
    /// For each node, the error of its rate caused by the noise of its edges.
    rate_noise_ppt: Vec<Option<f64>>,
    random: Random,
}

/// Number of standard deviations in a bound: 99.9 % of a normal distribution lie within 3.3, but asymmetries have longer tails.
const DEVIATIONS: f64 = 4.0;
/// With fewer edges than this beyond a spanning tree, loops say too little about asymmetry, and only round trips bound it.
const FREEDOM_MIN: usize = 8;
/// Number of windows after which a clock's measured wander is trusted.
const WANDER_WINDOWS: u32 = 8;
/// Number of windows without an edge after which a node counts as new.
const MISSED_MAX: u32 = 2;

impl Spread {
    pub(super) fn new(node_count: usize) -> Self {
        Self {
            sigma: 0.0,
            moved: vec![(0.0, 0); node_count],
            variance: vec![None; node_count],
            rate_noise_ppt: vec![None; node_count],
            random: Random::new(0x5eed),
        }
    }

    pub(super) fn forget_node(&mut self, node: usize) {
        self.moved[node] = (0.0, 0);
        self.variance[node] = None;
        self.rate_noise_ppt[node] = None;
    }

    /// The variances of the potentials relative to the reference, in units of an edge's variance.
    ///
    /// They are the graph's effective resistances. With random right-hand sides that have the edges' variances, the squared
    /// potentials have the resistances as their mean. A few solutions per window, averaged over windows, are enough for a bound.
    fn resistances(&mut self, reference: usize, edges: &[Difference]) -> Vec<f64> {
        let node_count = self.variance.len();
        let is_fresh = self.variance.iter().enumerate().any(|(node, known)| known.is_none() && node != reference);
        let rounds = if is_fresh { 48 } else { 12 };
        let mut sum = vec![0.0; node_count];
        let mut noise = edges.to_vec();
        for _ in 0..rounds {
            let mut bits = 0;
            for (index, edge) in noise.iter_mut().enumerate() {
                if index % 64 == 0 {
                    bits = self.random.next_u64();
                }
                let size = if edge.weight > 0.0 { edge.weight.sqrt().recip() } else { 0.0 };
                edge.difference = if bits >> (index % 64) & 1 == 1 { size } else { -size };
            }
            for (sum, potential) in sum.iter_mut().zip(solve(node_count, reference, &noise, 0.02)) {
                *sum += potential * potential;
            }
        }
        let mut weight = vec![0.0; node_count];
        for edge in edges {
            weight[edge.from] += edge.weight;
            weight[edge.to] += edge.weight;
        }
        (0..node_count)
            .map(|node| {
                let now = sum[node] / f64::from(rounds);
                let mean = self.variance[node].filter(|_| !is_fresh).map_or(now, |before| 0.875 * before + 0.125 * now);
                self.variance[node] = Some(mean);
                let at_least = if weight[node] > 0.0 { 1.0 / weight[node] + 1.0 / weight[reference].max(1e-9) } else { 0.0 };
                mean.max(at_least)
            })
            .collect()
    }
}

impl Coordinator {
    /// Adopts a solution as the new state and returns the window's outcome.
    pub(super) fn commit(&mut self, window: u64, middle_ns: u64, attempt: Attempt) -> WindowOutcome {
        let node_count = self.standings.len();
        let used: Vec<Difference> = (attempt.closing.iter().zip(&attempt.closed.is_outlier))
            .map(|(edge, &out)| Difference { weight: if out { 0.0 } else { edge.weight }, ..*edge })
            .collect();
        let good: Vec<&Measured> = (attempt.measured.iter().zip(&attempt.uses))
            .filter(|(_, edge_use)| **edge_use != EdgeUse::LeftOut)
            .map(|(edge, _)| edge)
            .collect();
        let mut degree = vec![0.0f64; node_count];
        for edge in &good {
            degree[edge.from] += 1.0;
            degree[edge.to] += 1.0;
        }
        self.spread.sigma = attempt.closed.sigma;
        let resistances = self.spread.resistances(self.reference, &used);
        let trip_ns = |edge: &&Measured| (edge.from, edge.to, edge.half_trip_ns + NOISES * edge.noise_ns);
        let trips_ns = ways(node_count, self.reference, good.iter().map(trip_ns));
        let mean_degree = 2.0 * good.len() as f64 / node_count as f64;
        if attempt.closed.sigma > 0.0 && mean_degree > 0.0 {
            let per_window = 2.0 * attempt.tracking_sigma.powi(2) / mean_degree;
            self.memory.aging = (per_window / attempt.closed.sigma.powi(2)).min(1.0);
        }
        for node in 0..node_count {
            self.follow(node, &attempt);
        }
        self.memory.commit(window, self.config.memory_windows, &attempt);

        let moved_middle = median(self.spread.moved.iter().filter(|(_, windows)| *windows > 0).map(|(square, _)| *square));
        let verdicts = (0..node_count)
            .map(|node| match (self.standings[node], attempt.tracks[node]) {
                (Standing::Excluded { fault, .. }, _) => Verdict::Excluded(fault),
                (_, None) => Verdict::Unreached,
                (_, Some(track)) if node == self.reference => {
                    Verdict::Synced(line(middle_ns, self.config.window_ns, &track, [1.0, 0.0, 0.0]))
                }
                (_, Some(track)) => {
                    let ties = 1.0 / degree[node].max(1.0) + 1.0 / degree[self.reference].max(1.0);
                    let bound = self.bound_ns(&attempt, resistances[node], ties, trips_ns[node]);
                    let growth_ppt = self.growth_ppt(node, &attempt, ties);
                    let wander_ppt_per_s = self.wander_ppt_per_s(node, moved_middle);
                    Verdict::Synced(line(middle_ns, self.config.window_ns, &track, [bound, growth_ppt, wander_ppt_per_s]))
                }
            })
            .collect();
        let quality = Quality {
            edges: attempt.measured.len() as u32,
            edges_remembered: attempt.closing.len() as u32,
            edges_left_out: attempt.edges_bad,
            loop_error_ns: attempt.closed.sigma.ceil() as u64,
            noise_ns: attempt.tracking_sigma.ceil() as u64,
        };
        let reference = NodeId::of(self.reference);
        let residual = |edge: &Measured| Residual {
            from: NodeId::of(edge.from),
            to: NodeId::of(edge.to),
            residual_ns: attempt.off_track_ns(edge).round() as i64,
        };
        let residuals = attempt.measured.iter().map(residual).collect();
        WindowOutcome { window, reference, verdicts, newly_excluded: Vec::new(), readmitted: Vec::new(), quality, residuals }
    }

    /// A node's standing after a window.
    fn follow(&mut self, node: usize, attempt: &Attempt) {
        if attempt.tracks[node].is_some() {
            let now_ppt = self.rate_noise_ppt(attempt.noise_ns[node]);
            let noise_ppt = &mut self.spread.rate_noise_ppt[node];
            *noise_ppt = Some(noise_ppt.map_or(now_ppt, |before_ppt| before_ppt + RATE_SHARE * (now_ppt - before_ppt)));
        }
        match (self.standings[node], attempt.tracks[node]) {
            (Standing::Excluded { .. }, _) | (Standing::New, None) => {}
            (Standing::New, Some(track)) => self.standings[node] = Standing::Tracked(Track { missed: 0, ..track }),
            (Standing::Tracked(_), Some(track)) => {
                self.standings[node] = Standing::Tracked(Track { missed: 0, ..track });
                let (square, windows) = &mut self.spread.moved[node];
                *windows = (*windows + 1).min(WANDER_WINDOWS);
                *square += (attempt.moved_ns[node].powi(2) - *square) / f64::from(*windows);
            }
            (Standing::Tracked(track), None) if track.missed < MISSED_MAX => {
                self.standings[node] = Standing::Tracked(Track { missed: track.missed + 1, ..track });
            }
            // The reference needs no edge: it defines the venue time.
            (Standing::Tracked(_), None) if node == self.reference => {}
            (Standing::Tracked(_), None) => {
                self.standings[node] = Standing::New;
                self.memory.forget_node(node);
                self.spread.forget_node(node);
            }
        }
    }

    /// Bound on the error of a node's offset in the middle of the window.
    fn bound_ns(&self, attempt: &Attempt, resistance: f64, ties: f64, trip_ns: Option<f64>) -> f64 {
        // Half of the round trips on the path to the reference: no asymmetry can be larger.
        let hard = trip_ns.unwrap_or(f64::INFINITY);
        let freedom = attempt.closed.freedom;
        if freedom < FREEDOM_MIN {
            return hard;
        }
        let variance = attempt.closed.sigma.powi(2) * resistance + attempt.tracking_sigma.powi(2) * ties;
        // With few loops the deviation itself is uncertain (Student's distribution).
        let statistical = DEVIATIONS * (1.0 + 4.5 / freedom as f64) * variance.sqrt();
        statistical.min(hard)
    }

    /// Bound on the growth of that error.
    fn growth_ppt(&self, node: usize, attempt: &Attempt, ties: f64) -> f64 {
        let of_edges = NOISES * self.spread.rate_noise_ppt[node].unwrap_or(0.0);
        if attempt.rate_freedom < FREEDOM_MIN {
            return of_edges;
        }
        let statistical = DEVIATIONS * (1.0 + 4.5 / attempt.rate_freedom as f64) * attempt.rate_sigma * ties.sqrt();
        statistical.min(of_edges)
    }

    /// Rate error of a line whose offset may be off by `noise_ns` when it is used.
    pub(super) fn rate_noise_ppt(&self, noise_ns: f64) -> f64 {
        noise_ns / (REACH_SPANS * self.config.window_ns as f64) * 1e12
    }

    /// Bound on the change of a node's rate: its prediction error over half the square of a window.
    fn wander_ppt_per_s(&self, node: usize, moved_middle: f64) -> f64 {
        let window_s = self.config.window_ns as f64 * 1e-9;
        let (square, windows) = self.spread.moved[node];
        let seen = DEVIATIONS * 2.0 * square.max(moved_middle).sqrt() / (window_s * window_s) * 1e3;
        if windows < WANDER_WINDOWS { seen.max(self.config.wander_ppt_per_s as f64) } else { seen }
    }
}

/// Converts a track into a correction with its bound, the bound's growth and the growth of that, all rounded up.
fn line(middle_ns: u64, window_ns: u64, track: &Track, [bound_ns, growth_ppt, wander_ppt_per_s]: [f64; 3]) -> Correction {
    let local_ns = track.local_ns(middle_ns);
    // The line is used from half a window to one and a half windows after its anchor; this slope is that of the chord over that
    // span.
    let rate = track.rate + track.bend * 0.625 * window_ns as f64;
    Correction {
        anchor_local_ns: u64::try_from(local_ns).unwrap_or(0),
        offset_ns: i64::try_from(local_ns - i128::from(middle_ns)).unwrap_or(i64::MAX),
        // Per unit of the node's own clock, which is slightly longer or shorter than the venue's.
        rate_ppt: (rate / (1.0 + rate) * 1e12).round() as i64,
        // Plus one, because the offset is rounded.
        bound_ns: (bound_ns.ceil() as u64).saturating_add(1),
        bound_growth_ppt: growth_ppt.ceil() as u64,
        bound_growth_ppt_per_s: wander_ppt_per_s.ceil() as u64,
    }
}
