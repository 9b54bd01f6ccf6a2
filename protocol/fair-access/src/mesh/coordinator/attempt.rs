//! One attempt to solve a window, with the nodes that are currently trusted.
#![allow(clippy::float_arithmetic, reason = "an estimator: what leaves the coordinator is rounded to integers")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::super::laplacian::{Difference, Robust, solve_robustly};
use super::judge::{BadEdges, middle};
use super::place::place;
use super::{Coordinator, EdgeEstimate, EdgeFault, Fault};

/// The estimate of a clock: in the middle of a window, `clock - venue time = base_ns + offset_ns`, growing by `rate` per unit of
/// venue time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    /// Whole nanoseconds, so that clocks may be decades apart.
    pub(super) base_ns: i128,
    pub(super) offset_ns: f64,
    pub(super) rate: f64,
    /// Growth of the rate per ns, caused by temperature.
    pub(super) bend: f64,
    /// Windows since an edge last reached it.
    pub(super) missed: u32,
}

impl Track {
    pub(super) fn foretell(&mut self, elapsed_ns: u64) {
        let elapsed = elapsed_ns as f64;
        self.offset_ns += (self.rate + self.bend * elapsed / 2.0) * elapsed;
        self.rate += self.bend * elapsed;
    }

    /// Updates the rate from a measurement, `elapsed_ns` after the last one. Part of the prediction error is noise.
    fn follow_rate(&mut self, measured: f64, elapsed_ns: u64) {
        let news = measured - self.rate;
        self.rate += RATE_SHARE * news;
        if elapsed_ns > 0 {
            self.bend += BEND_SHARE * news / elapsed_ns as f64;
        }
    }

    /// The clock's reading at a venue time, to the nanosecond.
    pub(super) fn local_ns(&self, venue_ns: u64) -> i128 {
        i128::from(venue_ns) + self.base_ns + self.offset_ns.round() as i128
    }
}

/// Share of a rate's prediction error that corrects the rate; the next constant is the share that corrects its growth. Found by
/// trial on clocks whose rates swing over minutes.
pub(super) const RATE_SHARE: f64 = 0.5;
const BEND_SHARE: f64 = 0.1;

/// What is remembered about the pairs of nodes that were probed.
#[derive(Clone, Default, Debug)]
pub(super) struct Memory {
    levels: BTreeMap<(usize, usize), Level>,
    /// Variance that each window of age adds to a level, relative to a fresh level's.
    pub(super) aging: f64,
}

/// An edge's measured offset minus the one that its nodes' tracks predict. Since the tracks follow the clocks, what stays is path
/// asymmetry and noise.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// With the pair's lower node first.
    offset_ns: f64,
    windows: u32,
    window_last: u64,
}

/// A level averages at most this many windows, so that it follows a path that changes slowly.
const LEVEL_WINDOWS_MAX: u32 = 32;

impl Memory {
    pub(super) fn forget_node(&mut self, node: usize) {
        self.levels.retain(|&(a, b), _| a != node && b != node);
    }

    fn level_ns(&self, from: usize, to: usize) -> Option<f64> {
        let level = self.levels.get(&(from.min(to), from.max(to)))?;
        Some(if from < to { level.offset_ns } else { -level.offset_ns })
    }
}

/// A measured edge, at the middle of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Difference of the two clocks, after the bases of their tracks are subtracted.
    pub(super) offset_ns: f64,
    pub(super) rate: f64,
    pub(super) half_trip_ns: f64,
    pub(super) noise_ns: f64,
}

/// How an edge of this window is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EdgeUse {
    /// It agrees with its remembered level.
    Goes,
    /// Its path changed: its level starts over.
    Begins,
    /// It contradicts the other edges and is not used.
    LeftOut,
}

#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// A node that must be excluded before the window can be solved.
    pub(super) culprit: Option<(usize, Fault)>,
    /// The clocks' tracks; `None` for nodes that no edge reached or that are excluded.
    pub(super) tracks: Vec<Option<Track>>,
    /// By how much each clock deviated from its prediction.
    pub(super) moved_ns: Vec<f64>,
    pub(super) measured: Vec<Measured>,
    pub(super) uses: Vec<EdgeUse>,
    /// Edges that were bad in one of the steps.
    pub(super) edges_bad: u32,
    /// Fresh levels by measured edge, and whether the edge starts over.
    levels_ns: Vec<(f64, bool)>,
    /// The edges used to close loops, with their levels before that.
    pub(super) closing: Vec<Difference>,
    pub(super) closed: Robust,
    pub(super) tracking_sigma: f64,
    pub(super) rate_sigma: f64,
    /// Number of edges with rates beyond those of a spanning tree.
    pub(super) rate_freedom: usize,
    /// For each node, the noise along the best path to it from the reference.
    pub(super) noise_ns: Vec<f64>,
}

/// Deviation of a rate below which it never counts as an outlier: half a microsecond per second.
const RATE_OUTLIER_PPT_MIN: f64 = 500_000.0;

/// A deviation of up to this many times an edge's noise may be noise.
pub(super) const NOISES: f64 = 2.0;

/// An edge that is off its nodes' tracks by more than this (100 ms) is not weighed against others.
const ABSURD_NS: f64 = 1e8;

/// Reading a line of 1,000 us/s this far from its place gives an error of 10 ns.
const FAR_NS: f64 = 10_000.0;

pub(super) type ReportedEdge = (usize, usize, Result<EdgeEstimate, EdgeFault>);

impl Attempt {
    pub(super) fn solve(state: &Coordinator, window: u64, middle_ns: u64, edges: &[ReportedEdge]) -> Self {
        let node_count = state.standings.len();
        let mut bad = BadEdges::new(node_count);
        let mut measured_edges: Vec<(usize, usize, EdgeEstimate)> = Vec::with_capacity(edges.len());
        for &(from, to, result) in edges.iter().filter(|&&(from, to, _)| !state.is_excluded(from) && !state.is_excluded(to)) {
            match result {
                Ok(estimate) => measured_edges.push((from, to, estimate)),
                Err(EdgeFault::Silent) => continue,
                Err(EdgeFault::Contradiction { .. } | EdgeFault::Steep { .. }) => bad.count_bad(from, to),
            }
            bad.count(from, to);
        }
        let mut attempt = Self::empty(node_count);
        attempt.culprit = bad.culprit();
        if attempt.culprit.is_some() {
            return attempt;
        }
        attempt.tracks = place(state, middle_ns, &measured_edges);
        measured_edges.retain(|&(from, to, _)| attempt.tracks[from].is_some() && attempt.tracks[to].is_some());
        attempt.uses = vec![EdgeUse::Goes; measured_edges.len()];

        attempt.measured = measure(middle_ns, &attempt.tracks, &measured_edges);
        for index in 0..measured_edges.len() {
            let edge = attempt.measured[index];
            if attempt.off_track_ns(&edge).abs() > ABSURD_NS {
                bad.count_bad(edge.from, edge.to);
                attempt.uses[index] = EdgeUse::LeftOut;
            }
        }
        attempt.culprit = bad.culprit();
        if attempt.culprit.is_some() {
            return attempt;
        }

        let noises_ns = attempt.measured.iter().map(|edge| (edge.from, edge.to, edge.noise_ns));
        attempt.noise_ns =
            ways(node_count, state.reference, noises_ns).into_iter().map(|noise_ns| noise_ns.unwrap_or(0.0)).collect();
        attempt.culprit = attempt.solve_rates(state, &measured_edges, &mut bad);
        if attempt.culprit.is_some() {
            return attempt;
        }
        // A node's track decides at which of its times an edge's line is read, so nodes that were just placed need further passes.
        for look in 0..3 {
            attempt.measured = measure(middle_ns, &attempt.tracks, &measured_edges);
            if look == 0 {
                attempt.culprit = attempt.follow_clocks(state, &mut bad);
                if attempt.culprit.is_some() {
                    return attempt;
                }
            }
            attempt.close_loops(state, window);
            if look == 2 || !attempt.replace_new(state) {
                break;
            }
        }
        for (index, measured) in attempt.measured.iter().enumerate() {
            if attempt.closed.is_outlier[index] {
                if attempt.uses[index] == EdgeUse::Goes {
                    bad.count_bad(measured.from, measured.to);
                }
                attempt.uses[index] = EdgeUse::LeftOut;
            }
        }
        attempt.move_tracks(state.reference);
        attempt.edges_bad = bad.bad_count();
        attempt.culprit = bad.culprit();
        attempt
    }

    fn empty(node_count: usize) -> Self {
        let closed = Robust { potential: vec![0.0; node_count], is_outlier: Vec::new(), sigma: 0.0, freedom: 0 };
        Self {
            culprit: None,
            tracks: vec![None; node_count],
            moved_ns: vec![0.0; node_count],
            measured: Vec::new(),
            uses: Vec::new(),
            edges_bad: 0,
            levels_ns: Vec::new(),
            closing: Vec::new(),
            closed,
            tracking_sigma: 0.0,
            rate_sigma: 0.0,
            rate_freedom: 0,
            noise_ns: vec![0.0; node_count],
        }
    }

    /// Solves for all rates. The culprit is a node that is too fast or too slow compared with the median.
    fn solve_rates(
        &mut self,
        state: &Coordinator,
        measured_edges: &[(usize, usize, EdgeEstimate)],
        bad: &mut BadEdges,
    ) -> Option<(usize, Fault)> {
        let differences: Vec<_> = measured_edges
            .iter()
            .zip(&self.uses)
            .map(|(&(from, to, estimate), edge_use)| {
                let weight = if *edge_use == EdgeUse::LeftOut { 0.0 } else { 1.0 };
                // Ratios of rates multiply along a path, so their logarithms add.
                Difference { from, to, difference: (estimate.rate_ppt as f64 * 1e-12).ln_1p() * 1e12, weight }
            })
            .collect();
        let solved = solve_robustly(self.tracks.len(), state.reference, &differences, RATE_OUTLIER_PPT_MIN);
        for (index, edge) in differences.iter().enumerate().filter(|&(index, _)| solved.is_outlier[index]) {
            let off_ppt = edge.difference - (solved.potential[edge.to] - solved.potential[edge.from]);
            if off_ppt.abs() > NOISES * state.rate_noise_ppt(measured_edges[index].2.noise_ns as f64) {
                bad.count_bad(edge.from, edge.to);
            }
            self.uses[index] = EdgeUse::LeftOut;
        }
        if let Some(culprit) = bad.culprit() {
            return Some(culprit);
        }
        let reference_rate = self.tracks[state.reference].map_or(0.0, |track| track.rate);
        let seen: Vec<usize> = (0..self.tracks.len()).filter(|&node| self.tracks[node].is_some()).collect();
        // A node that no edge reached in this window keeps its rate.
        let known = |node: usize| state.track(node).map(|track| (track.rate.ln_1p() - reference_rate.ln_1p()) * 1e12);
        let rates = (0..self.tracks.len()).filter_map(|node| match self.tracks[node] {
            Some(_) => Some(solved.potential[node]),
            None => known(node),
        });
        let middle = middle(rates);
        let off = |node: usize| solved.potential[node] - middle;
        let farthest = seen.iter().max_by(|&&a, &&b| off(a).abs().total_cmp(&off(b).abs()));
        let limit_ppt = |node: usize| state.config.rate_ppt_max as f64 + NOISES * state.rate_noise_ppt(self.noise_ns[node]);
        if let Some(&worst) = farthest.filter(|&&node| off(node).abs() > limit_ppt(node)) {
            return Some((worst, Fault::Drifts { rate_ppt: off(worst).round() as i64 }));
        }
        for &node in seen.iter().filter(|&&node| node != state.reference) {
            if let Some(track) = &mut self.tracks[node] {
                let rate = (1.0 + reference_rate) * (solved.potential[node] * 1e-12).exp() - 1.0;
                match state.track(node) {
                    Some(_) => track.follow_rate(rate, state.elapsed_ns),
                    None => track.rate = rate,
                }
            }
        }
        (self.rate_sigma, self.rate_freedom) = (solved.sigma, solved.freedom);
        None
    }

    /// Moves the tracks by the changes of remembered edges: asymmetries are constant, so any change is the clocks'. The culprit is
    /// a node that moved far from the median.
    fn follow_clocks(&mut self, state: &Coordinator, bad: &mut BadEdges) -> Option<(usize, Fault)> {
        let known: Vec<(usize, Difference)> = (self.measured.iter().enumerate())
            .filter(|&(index, _)| self.uses[index] == EdgeUse::Goes)
            .filter_map(|(index, edge)| {
                let level_ns = state.memory.level_ns(edge.from, edge.to)?;
                let difference = self.off_track_ns(edge) - level_ns;
                Some((index, Difference { from: edge.from, to: edge.to, difference, weight: 1.0 }))
            })
            .collect();
        let differences: Vec<_> = known.iter().map(|&(_, difference)| difference).collect();
        let solved = solve_robustly(self.tracks.len(), state.reference, &differences, state.config.disagreement_ns_min as f64);
        let seen = reached(self.tracks.len(), state.reference, differences.iter().map(|edge| (edge.from, edge.to)));
        for ((index, edge), _) in known.iter().zip(&solved.is_outlier).filter(|&(_, &out)| out) {
            let off_ns = edge.difference - (solved.potential[edge.to] - solved.potential[edge.from]);
            if off_ns.abs() > NOISES * self.measured[*index].noise_ns {
                bad.count_bad(edge.from, edge.to);
            }
            self.uses[*index] = EdgeUse::Begins;
        }
        let seen: Vec<usize> = (0..self.tracks.len()).filter(|&node| seen[node]).collect();
        let middle = middle(seen.iter().map(|&node| solved.potential[node]));
        let off = |node: usize| solved.potential[node] - middle;
        let farthest = seen.iter().max_by(|&&a, &&b| off(a).abs().total_cmp(&off(b).abs()));
        let limit_ns = |node: usize| state.config.jump_ns_max as f64 + NOISES * self.noise_ns[node];
        if let Some(&worst) = farthest.filter(|&&node| off(node).abs() > limit_ns(node)) {
            return Some((worst, Fault::Jumped { by_ns: off(worst).round() as i64 }));
        }
        for &node in &seen {
            if let Some(track) = &mut self.tracks[node] {
                track.offset_ns += solved.potential[node];
                self.moved_ns[node] = solved.potential[node];
            }
        }
        self.tracking_sigma = solved.sigma;
        bad.culprit()
    }

    /// Makes all edges agree around loops: fresh ones, with this window's update of their levels, and remembered ones.
    fn close_loops(&mut self, state: &Coordinator, window: u64) {
        self.levels_ns.clear();
        self.closing.clear();
        let mut fresh = BTreeMap::new();
        for (index, edge) in self.measured.iter().enumerate() {
            let now_ns = self.off_track_ns(edge);
            let pair = (edge.from.min(edge.to), edge.from.max(edge.to));
            let known = state.memory.levels.get(&pair).filter(|_| self.uses[index] == EdgeUse::Goes);
            let before_ns = state.memory.level_ns(edge.from, edge.to).unwrap_or(0.0);
            let level_ns = known.map_or(now_ns, |level| before_ns + (now_ns - before_ns) / f64::from(level.windows + 1));
            self.levels_ns.push((level_ns, known.is_none()));
            let weight = if self.uses[index] == EdgeUse::LeftOut { 0.0 } else { 1.0 };
            self.closing.push(Difference { from: edge.from, to: edge.to, difference: level_ns, weight });
            fresh.insert(pair, ());
        }
        for (&(from, to), level) in &state.memory.levels {
            let gone = self.tracks[from].is_none() || self.tracks[to].is_none() || fresh.contains_key(&(from, to));
            let age = window - level.window_last;
            if !gone && age <= state.config.memory_windows {
                let weight = 1.0 / (1.0 + state.memory.aging * age as f64);
                self.closing.push(Difference { from, to, difference: level.offset_ns, weight });
            }
        }
        self.closed = solve_robustly(self.tracks.len(), state.reference, &self.closing, state.config.disagreement_ns_min as f64);
    }

    /// Moves new nodes to where the loops put them if that is far, because a line must be read at the right time of its clock.
    /// Their edges have no levels yet that this could invalidate.
    fn replace_new(&mut self, state: &Coordinator) -> bool {
        let mut far = false;
        for (node, track) in self.tracks.iter_mut().enumerate().filter(|&(node, _)| state.track(node).is_none()) {
            if let Some(track) = track.as_mut().filter(|_| self.closed.potential[node].abs() > FAR_NS) {
                track.offset_ns += self.closed.potential[node];
                far = true;
            }
        }
        far
    }

    /// Moves all nodes to where the loops put them. Nodes that only bad edges reach lose their tracks.
    fn move_tracks(&mut self, reference: usize) {
        let good = self.closing.iter().zip(&self.closed.is_outlier).filter(|(edge, out)| edge.weight > 0.0 && !**out);
        let reached = reached(self.tracks.len(), reference, good.map(|(edge, _)| (edge.from, edge.to)));
        for (node, place) in self.tracks.iter_mut().enumerate() {
            *place = place.filter(|_| reached[node]);
            match place {
                Some(track) => track.offset_ns += self.closed.potential[node],
                None => self.closed.potential[node] = 0.0,
            }
        }
    }

    /// An edge's measured offset minus the one that its nodes' tracks predict.
    pub(super) fn off_track_ns(&self, edge: &Measured) -> f64 {
        let offset_ns = |node: usize| self.tracks[node].map_or(0.0, |track| track.offset_ns);
        edge.offset_ns - (offset_ns(edge.to) - offset_ns(edge.from))
    }
}

impl Memory {
    /// Stores the levels of a solved window. They are relative to the tracks after loops were closed.
    pub(super) fn commit(&mut self, window: u64, memory_windows: u64, attempt: &Attempt) {
        let shift = |from: usize, to: usize| attempt.closed.potential[to] - attempt.closed.potential[from];
        self.levels.retain(|_, level| window - level.window_last <= memory_windows);
        for (&(from, to), level) in &mut self.levels {
            level.offset_ns -= shift(from, to);
        }
        for ((edge, &(level_ns, begins)), edge_use) in attempt.measured.iter().zip(&attempt.levels_ns).zip(&attempt.uses) {
            if *edge_use == EdgeUse::LeftOut {
                self.levels.remove(&(edge.from.min(edge.to), edge.from.max(edge.to)));
                continue;
            }
            let offset_ns = level_ns - shift(edge.from, edge.to);
            let pair = (edge.from.min(edge.to), edge.from.max(edge.to));
            let windows = self.levels.get(&pair).filter(|_| !begins).map_or(1, |level| (level.windows + 1).min(LEVEL_WINDOWS_MAX));
            let offset_ns = if edge.from < edge.to { offset_ns } else { -offset_ns };
            self.levels.insert(pair, Level { offset_ns, windows, window_last: window });
        }
    }
}

/// Evaluates the edges' lines at the venue time `middle_ns`.
pub(super) fn measure(middle_ns: u64, tracks: &[Option<Track>], measured_edges: &[(usize, usize, EdgeEstimate)]) -> Vec<Measured> {
    measured_edges
        .iter()
        .filter_map(|&(from, to, estimate)| {
            let (first, second) = (tracks[from]?, tracks[to]?);
            let rate = estimate.rate_ppt as f64 * 1e-12;
            let whole = first.local_ns(middle_ns) - i128::from(estimate.anchor_local_ns);
            let since_ns = whole as f64 + (first.offset_ns - first.offset_ns.round());
            let base_ns = i128::from(estimate.offset_ns) - (second.base_ns - first.base_ns);
            let half_trip_ns = estimate.round_trip_ns as f64 / 2.0;
            let (offset_ns, noise_ns) = (base_ns as f64 + rate * since_ns, estimate.noise_ns as f64);
            Some(Measured { from, to, offset_ns, rate, half_trip_ns, noise_ns })
        })
        .collect()
}

/// Which nodes are connected to `start`.
pub(super) fn reached(node_count: usize, start: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<bool> {
    let mut neighbours = vec![Vec::new(); node_count];
    for (a, b) in edges {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    let mut reached = vec![false; node_count];
    reached[start] = true;
    let mut next = vec![start];
    while let Some(node) = next.pop() {
        for &neighbour in &neighbours[node] {
            if !reached[neighbour] {
                reached[neighbour] = true;
                next.push(neighbour);
            }
        }
    }
    reached
}

/// For each node, the length of the shortest path from `start` (Dijkstra); `None` if there is no path.
pub(super) fn ways(node_count: usize, start: usize, edges: impl Iterator<Item = (usize, usize, f64)>) -> Vec<Option<f64>> {
    let mut neighbours = vec![Vec::new(); node_count];
    for (a, b, length) in edges {
        // Integers, because floats have no total order.
        let length = length.max(0.0).ceil() as u64;
        neighbours[a].push((b, length));
        neighbours[b].push((a, length));
    }
    let mut best = vec![None; node_count];
    let mut next = BinaryHeap::from([Reverse((0u64, start))]);
    while let Some(Reverse((sum, node))) = next.pop() {
        if best[node].is_none() {
            best[node] = Some(sum as f64);
            next.extend(neighbours[node].iter().map(|&(to, length)| Reverse((sum.saturating_add(length), to))));
        }
    }
    best
}
