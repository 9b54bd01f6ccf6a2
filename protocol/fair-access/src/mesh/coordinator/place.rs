//! First placement of unknown nodes: close enough for least squares, and out of a lying node's control.
#![allow(clippy::float_arithmetic, reason = "an estimator: nothing of it is replicated")]

use std::collections::VecDeque;

use super::super::EdgeEstimate;
use super::Coordinator;
use super::attempt::{Track, reached};

type Edge = (usize, usize, EdgeEstimate);

/// Rounds in which every new node moves to the median of its neighbours' estimates.
const ROUNDS: usize = 6;
/// Number of nodes tried as the start when nothing is known: the first one may lie.
const ROOTS_MAX: usize = 5;
/// An edge agrees with a placement within this distance.
const AGREES_NS: u128 = 10_000_000;

/// The tracks of all trusted nodes that edges connect to the reference; new nodes are placed.
pub(super) fn place(state: &Coordinator, middle_ns: u64, edges: &[Edge]) -> Vec<Option<Track>> {
    let node_count = state.standings.len();
    let known: Vec<Option<Track>> = (0..node_count).map(|node| state.track(node)).collect();
    let beginning = Track { base_ns: 0, offset_ns: 0.0, rate: 0.0, bend: 0.0, missed: 0 };
    let mut tracks = if known.iter().any(Option::is_some) {
        spread(middle_ns, known, edges).0
    } else {
        let others = (0..node_count).filter(|&node| node != state.reference && !state.is_excluded(node));
        let mut best: Option<(Vec<Option<Track>>, usize)> = None;
        for root in std::iter::once(state.reference).chain(others).take(ROOTS_MAX) {
            let mut start = known.clone();
            start[root] = Some(beginning);
            let placed = spread(middle_ns, start, edges);
            if best.as_ref().is_none_or(|(_, agreeing)| placed.1 > *agreeing) {
                best = Some(placed);
            }
            if best.as_ref().is_some_and(|(_, agreeing)| 2 * agreeing > edges.len()) {
                break;
            }
        }
        best.map_or(known, |(tracks, _)| tracks)
    };
    if state.track(state.reference).is_none() && !state.is_excluded(state.reference) {
        // The venue time is the reference's clock.
        let zero_ns = tracks[state.reference].map_or(0, |track| track.base_ns);
        tracks[state.reference] = Some(beginning);
        for (node, track) in tracks.iter_mut().enumerate().filter(|&(node, _)| node != state.reference) {
            if let Some(track) = track.as_mut().filter(|_| state.track(node).is_none()) {
                track.base_ns -= zero_ns;
            }
        }
    }
    let reached = reached(node_count, state.reference, edges.iter().map(|&(from, to, _)| (from, to)));
    tracks.into_iter().zip(reached).map(|(track, reached)| track.filter(|_| reached)).collect()
}

/// Places all nodes that edges connect to nodes with a track: first along shortest paths, then each at the median of its
/// neighbours' estimates. Also returns how many edges agree with the result.
fn spread(middle_ns: u64, mut tracks: Vec<Option<Track>>, edges: &[Edge]) -> (Vec<Option<Track>>, usize) {
    let mut edges_of = vec![Vec::new(); tracks.len()];
    for edge in edges {
        edges_of[edge.0].push(*edge);
        edges_of[edge.1].push(*edge);
    }
    let is_new: Vec<bool> = tracks.iter().map(Option::is_none).collect();
    let mut next: VecDeque<usize> = (0..tracks.len()).filter(|&node| !is_new[node]).collect();
    while let Some(node) = next.pop_front() {
        for edge in &edges_of[node] {
            let other = if edge.0 == node { edge.1 } else { edge.0 };
            if tracks[other].is_none() {
                tracks[other] = offset_by_edge(middle_ns, &tracks, edge, other).map(at);
                next.push_back(other);
            }
        }
    }
    for _ in 0..ROUNDS {
        for node in (0..tracks.len()).filter(|&node| is_new[node]) {
            let mut places: Vec<i128> =
                edges_of[node].iter().filter_map(|edge| offset_by_edge(middle_ns, &tracks, edge, node)).collect();
            if !places.is_empty() {
                let middle = places.len() / 2;
                tracks[node] = Some(at(*places.select_nth_unstable(middle).1));
            }
        }
    }
    let agrees = |edge: &&Edge| {
        let place = offset_by_edge(middle_ns, &tracks, edge, edge.1);
        let is = tracks[edge.1].map(|track| track.local_ns(middle_ns) - i128::from(middle_ns));
        place.zip(is).is_some_and(|(place, is)| (place - is).unsigned_abs() <= AGREES_NS)
    };
    let agreeing = edges.iter().filter(agrees).count();
    (tracks, agreeing)
}

fn at(base_ns: i128) -> Track {
    Track { base_ns, offset_ns: 0.0, rate: 0.0, bend: 0.0, missed: 0 }
}

/// By how much `node` is ahead of the venue time, according to an edge and the track of its other node.
fn offset_by_edge(middle_ns: u64, tracks: &[Option<Track>], &(from, to, estimate): &Edge, node: usize) -> Option<i128> {
    let drift = estimate.rate_ppt as f64 * 1e-12;
    let offset_at = |local_ns: i128| {
        let since_ns = (local_ns - i128::from(estimate.anchor_local_ns)) as f64;
        i128::from(estimate.offset_ns) + (drift * since_ns).round() as i128
    };
    let other_ns = tracks[if node == to { from } else { to }]?.local_ns(middle_ns);
    let offset_ns = if node == to { offset_at(other_ns) } else { -offset_at(other_ns - i128::from(estimate.offset_ns)) };
    Some(other_ns + offset_ns - i128::from(middle_ns))
}
