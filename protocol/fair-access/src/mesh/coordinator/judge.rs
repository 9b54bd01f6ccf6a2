//! Decides which clock is bad, and when an excluded clock has recovered.
#![allow(clippy::float_arithmetic, reason = "an estimator: nothing of it is replicated")]

use super::super::{EdgeEstimate, EdgeFault, NodeId};
use super::attempt::{Track, measure};
use super::{Coordinator, Fault, Standing};

/// Numbers of edges and of contradicting edges, by node.
#[derive(Clone, Debug)]
pub(super) struct BadEdges {
    edges: Vec<u32>,
    edges_bad: Vec<u32>,
}

/// With fewer edges than this, a node cannot be blamed for a bad edge.
const EDGES_MIN: u32 = 3;

impl BadEdges {
    pub(super) fn new(node_count: usize) -> Self {
        Self { edges: vec![0; node_count], edges_bad: vec![0; node_count] }
    }

    pub(super) fn count(&mut self, from: usize, to: usize) {
        self.edges[from] += 1;
        self.edges[to] += 1;
    }

    pub(super) fn count_bad(&mut self, from: usize, to: usize) {
        self.edges_bad[from] += 1;
        self.edges_bad[to] += 1;
    }

    pub(super) fn bad_count(&self) -> u32 {
        self.edges_bad.iter().sum::<u32>() / 2
    }

    /// The node with the largest share of bad edges, if that is more than half. A bad edge counts against both of its ends, but
    /// only a bad node has mostly bad edges. One node at a time, because a good node next to two bad ones may look bad until they
    /// are excluded.
    pub(super) fn culprit(&self) -> Option<(usize, Fault)> {
        let share = |node: usize| f64::from(self.edges_bad[node]) / f64::from(self.edges[node].max(1));
        let node = (0..self.edges.len())
            .filter(|&node| self.edges[node] >= EDGES_MIN && 2 * self.edges_bad[node] > self.edges[node])
            .max_by(|&a, &b| share(a).total_cmp(&share(b)).then(self.edges_bad[a].cmp(&self.edges_bad[b])).then(b.cmp(&a)))?;
        Some((node, Fault::Contradicts { edges_bad: self.edges_bad[node], edges: self.edges[node] }))
    }
}

/// The median; 0 if there are no values.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// The median of the nodes' deviations from the reference, which counts as 0. With an even number, the one of the two middle values
/// that is nearer to 0, so that the half with the reference wins a tie.
pub(super) fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let above = values.len() / 2;
    match (values.get(above), values.len().is_multiple_of(2)) {
        (None, _) => 0.0,
        (Some(&middle), false) => middle,
        (Some(&upper), true) => Some(values[above - 1]).filter(|lower| lower.abs() < upper.abs()).unwrap_or(upper),
    }
}

impl Coordinator {
    /// Checks the edges between excluded and tracked nodes. An excluded node becomes new again once most of its edges have agreed
    /// for long enough, at a plausible rate and without jumps.
    pub(super) fn judge_excluded(
        &mut self,
        middle_ns: u64,
        edges: &[(usize, usize, Result<EdgeEstimate, EdgeFault>)],
    ) -> Vec<NodeId> {
        let mut readmitted = Vec::new();
        let middle_rate = median((0..self.standings.len()).filter_map(|node| self.track(node)).map(|track| track.rate));
        for node in 0..self.standings.len() {
            let Standing::Excluded { fault, clean_windows, last } = self.standings[node] else { continue };
            let (found, is_clean) = self.look_at(node, middle_ns, middle_rate, last, edges);
            let clean_windows = if is_clean { clean_windows + 1 } else { 0 };
            self.standings[node] = if clean_windows > self.config.probation_windows {
                readmitted.push(NodeId::of(node));
                Standing::New
            } else {
                Standing::Excluded { fault, clean_windows, last: found }
            };
        }
        readmitted
    }

    /// Where most of its neighbours place a node, and whether that is plausible for a good clock.
    fn look_at(
        &self,
        node: usize,
        middle_ns: u64,
        middle_rate: f64,
        last: Option<Track>,
        edges: &[(usize, usize, Result<EdgeEstimate, EdgeFault>)],
    ) -> (Option<Track>, bool) {
        let other = |from: usize, to: usize| if from == node { to } else { from };
        let near: Vec<_> = (edges.iter())
            .filter(|&&(from, to, _)| (from == node || to == node) && self.track(other(from, to)).is_some())
            .filter(|(.., result)| *result != Err(EdgeFault::Silent))
            .collect();
        let measured_edges: Vec<_> = near.iter().filter_map(|&&(from, to, result)| Some((from, to, result.ok()?))).collect();
        let Some(&(from, to, first)) = measured_edges.first() else { return (None, false) };
        let sign = if to == node { 1 } else { -1 };
        let neighbour_ns = self.track(other(from, to)).map_or(0, |track| track.local_ns(middle_ns));
        let base_ns = neighbour_ns + sign * i128::from(first.offset_ns) - i128::from(middle_ns);
        let mut tracks: Vec<_> = (0..self.standings.len()).map(|node| self.track(node)).collect();
        tracks[node] = Some(Track { base_ns, offset_ns: 0.0, rate: 0.0, bend: 0.0, missed: 0 });
        let seen: Vec<(f64, f64)> = measure(middle_ns, &tracks, &measured_edges)
            .into_iter()
            .map(|edge| {
                let sign = if edge.to == node { 1.0 } else { -1.0 };
                let known = tracks[other(edge.from, edge.to)].map_or((0.0, 0.0), |track| (track.offset_ns, track.rate));
                (known.0 + sign * edge.offset_ns, known.1 + sign * edge.rate)
            })
            .collect();
        let offset_ns = median(seen.iter().map(|&(offset_ns, _)| offset_ns));
        let rate = median(seen.iter().map(|&(_, rate)| rate));
        let apart_ns = (6.0 * self.spread.sigma).max(self.config.disagreement_ns_min as f64);
        let agreeing = seen.iter().filter(|(offset, _)| (offset - offset_ns).abs() <= apart_ns).count();
        let found = Track { base_ns, offset_ns, rate, bend: 0.0, missed: 0 };
        let moved_ns = last.map_or(0.0, |last| (base_ns - last.base_ns) as f64 + offset_ns - last.offset_ns);
        let is_clean = 2 * agreeing > near.len()
            && (rate - middle_rate).abs() * 1e12 <= self.config.rate_ppt_max as f64
            && moved_ns.abs() <= self.config.jump_ns_max as f64;
        (Some(found), is_clean)
    }
}
