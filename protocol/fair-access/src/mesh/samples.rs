//! The samples of one edge in a window, and the estimate from them.
#![allow(clippy::float_arithmetic, reason = "an estimator: nothing of it is replicated")]

use thiserror::Error;

use super::line::{self, Line, Point};
use super::refine::refine;

/// Two probes that were sent one shortly after the other: a coded pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// When each left, by the sender's clock.
    pub tx_ns: [u64; 2],
    /// When each arrived, by the receiver's clock.
    pub rx_ns: [u64; 2],
}

/// The filter for pairs that met no queue: those whose spacing the network did not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodedFilter {
    /// Allowed change of the spacing: more than the noise of four stamps.
    pub spacing_error_ns_max: u64,
    /// Where fewer pairs than this share (in thousandths) or this number are left, the filter has taken the envelope away with the
    /// noise: all pairs are used.
    pub kept_permille_min: u32,
    /// See `kept_permille_min`.
    pub kept_min: u32,
    /// A line that would be farther off than this without some quarter of the window, where it is used, hangs on luck: the edge
    /// says nothing.
    pub noise_ns_max: u64,
}

impl Default for CodedFilter {
    /// 150 ns, for stamps with 30 ns of noise; at least 2 %, and 8 pairs. 3 us: stamps of processes that share a
    /// machine are 1 us off by the time their line is used.
    fn default() -> Self {
        Self { spacing_error_ns_max: 150, kept_permille_min: 20, kept_min: 8, noise_ns_max: NOISE_NS_MAX }
    }
}

impl CodedFilter {
    fn keeps(&self, pair: &Pair) -> bool {
        let sent = i128::from(pair.tx_ns[1]) - i128::from(pair.tx_ns[0]);
        let received = i128::from(pair.rx_ns[1]) - i128::from(pair.rx_ns[0]);
        (received - sent).unsigned_abs() <= u128::from(self.spacing_error_ns_max)
    }

    /// Whether the pairs that the filter keeps are enough to be used alone.
    fn suffices(&self, kept_count: usize, pair_count: usize) -> bool {
        kept_count >= self.kept_min as usize && kept_count * 1_000 >= pair_count * self.kept_permille_min as usize
    }
}

/// The pairs of a window in both directions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WindowSamples {
    /// From the node that probes to the one that answers.
    pub forward: Vec<Pair>,
    /// The answers.
    pub backward: Vec<Pair>,
}

/// An edge's estimate: the second node's clock minus the first's, as a line over the first's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgeEstimate {
    /// The first node's reading at the anchor, the middle of the window.
    pub anchor_local_ns: u64,
    /// The second node's clock minus the first's, at the anchor.
    pub offset_ns: i64,
    /// Growth of the offset per unit of the first node's clock.
    pub rate_ppt: i64,
    /// The shortest round trip. Only the assumption of symmetry places the true offset within it.
    pub round_trip_ns: u64,
    /// Possible error of the line by the time it is used, caused by a lack of probes that met no queue.
    pub noise_ns: u64,
}

/// Why an edge has no estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum EdgeFault {
    /// Too few probes came through, or too few without waiting.
    #[error(
        "too few probes came through in both directions without waiting: check the path and the peer, and whether a machine is busy"
    )]
    Silent,
    /// No line separates the bounds: a clock jumped within the window, or stamps are wrong.
    #[error("the stamps contradict each other by {by_ns} ns: one of the two clocks jumped or its node's stamps are wrong")]
    Contradiction {
        /// The overlap of the bounds.
        by_ns: u64,
    },
    /// The clocks drift apart implausibly fast.
    #[error("the two clocks drift apart by {rate_ppt} ppt: one of them is broken or being set")]
    Steep {
        /// The relative rate.
        rate_ppt: i64,
    },
}

/// A line is drawn again without each quarter of the window, to see what hangs on it: on a few lucky probes, or on ways that were
/// shorter then.
const QUARTERS: usize = 4;
/// From its anchor on it is used for so many times as long as it was looked at.
pub(super) const REACH_SPANS: f64 = 1.5;
/// A line that may be farther off by the time it is used says nothing, to the node that drew it and to the coordinator.
pub(super) const NOISE_NS_MAX: u64 = 3_000;
/// Minimum number of pairs per direction.
const PAIRS_MIN: usize = 4;
/// Maximum plausible relative rate of two clocks.
pub(super) const EDGE_RATE_PPT_MAX: i64 = 900_000_000;

impl WindowSamples {
    /// Drops all pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.forward.clear();
        self.backward.clear();
    }

    /// The line of largest margin around `anchor_local_ns`, the middle of the window by the first node's clock, moved to the middle
    /// of the stamps' noise where that can be seen.
    pub fn fit(&self, filter: &CodedFilter, anchor_local_ns: u64) -> Result<EdgeEstimate, EdgeFault> {
        let first = self.forward.first().ok_or(EdgeFault::Silent)?;
        if self.forward.len() < PAIRS_MIN || self.backward.len() < PAIRS_MIN {
            return Err(EdgeFault::Silent);
        }
        // Offsets are taken relative to the first one, which may be years; what is left fits a float exactly.
        let base_ns = i128::from(first.rx_ns[0]) - i128::from(first.tx_ns[0]);
        let line = self.line(filter, anchor_local_ns, base_ns, None)?;
        let span_ns = (i128::from(self.forward[self.forward.len() - 1].tx_ns[0]) - i128::from(first.tx_ns[0])) as f64;
        let mut noise_ns = 0.0;
        for quarter in 0..QUARTERS {
            let without = self.line(filter, anchor_local_ns, base_ns, Some(quarter))?;
            let off_ns = (without.offset_ns - line.offset_ns).abs() + (without.rate - line.rate).abs() * REACH_SPANS * span_ns;
            noise_ns = f64::max(noise_ns, off_ns);
        }
        if noise_ns > filter.noise_ns_max as f64 {
            return Err(EdgeFault::Silent);
        }
        let rate_ppt = (line.rate * 1e12).round() as i64;
        if rate_ppt.abs() > EDGE_RATE_PPT_MAX {
            return Err(EdgeFault::Steep { rate_ppt });
        }
        let offset_ns = base_ns + line.offset_ns.round() as i128;
        let offset_ns = i64::try_from(offset_ns).map_err(|_| EdgeFault::Contradiction { by_ns: u64::MAX })?;
        let (round_trip_ns, noise_ns) = (line.gap_ns.ceil() as u64, noise_ns.ceil() as u64);
        Ok(EdgeEstimate { anchor_local_ns, offset_ns, rate_ppt, round_trip_ns, noise_ns })
    }

    /// The line between all pairs, or all but those of a quarter of the window.
    fn line(&self, filter: &CodedFilter, anchor_local_ns: u64, base_ns: i128, left_out: Option<usize>) -> Result<Line, EdgeFault> {
        let some = |pairs: &[Pair]| -> Vec<Pair> {
            let used = pairs.iter().enumerate().filter(|(index, _)| Some(index * QUARTERS / pairs.len()) != left_out);
            used.map(|(_, pair)| *pair).collect()
        };
        let (forward, backward) = (some(&self.forward), some(&self.backward));
        let upper = points(&forward, filter, |pair, index| (pair.tx_ns[index], pair.rx_ns[index]), anchor_local_ns, base_ns);
        let lower = points(&backward, filter, |pair, index| (pair.rx_ns[index], pair.tx_ns[index]), anchor_local_ns, base_ns);
        let line = line::fit(&upper, &lower).ok_or(EdgeFault::Silent)?;
        if line.gap_ns <= 0.0 {
            return Err(EdgeFault::Contradiction { by_ns: (-line.gap_ns).ceil() as u64 });
        }
        Ok(refine(line, &upper, &lower, filter.spacing_error_ns_max as f64))
    }
}

/// The bounds that pairs give: `stamps` returns the first node's stamp and the second's.
fn points(
    pairs: &[Pair],
    filter: &CodedFilter,
    stamps: impl Fn(&Pair, usize) -> (u64, u64),
    anchor_local_ns: u64,
    base_ns: i128,
) -> Vec<Point> {
    let kept_count = pairs.iter().filter(|pair| filter.keeps(pair)).count();
    let all = !filter.suffices(kept_count, pairs.len());
    let mut points = Vec::with_capacity(2 * if all { pairs.len() } else { kept_count });
    for pair in pairs.iter().filter(|pair| all || filter.keeps(pair)) {
        for index in 0..2 {
            let (from_ns, to_ns) = stamps(pair, index);
            points.push(Point {
                at_ns: (i128::from(from_ns) - i128::from(anchor_local_ns)) as f64,
                offset_ns: (i128::from(to_ns) - i128::from(from_ns) - base_ns) as f64,
            });
        }
    }
    if !points.is_sorted_by(|a, b| a.at_ns <= b.at_ns) {
        points.sort_by(|a, b| a.at_ns.total_cmp(&b.at_ns));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const S: u64 = 1_000_000_000;

    /// An exchange every 10 ms for a second around `S`; the second clock is `ahead_ns` ahead, paths take 20 us, and every third
    /// pair meets a queue of 5 us between its probes.
    fn window(ahead_ns: u64) -> WindowSamples {
        let mut samples = WindowSamples::default();
        for step in 0..100u64 {
            let queue_ns = if step % 3 == 0 { 5 * US } else { 0 };
            let tx = S / 2 + step * 10_000 * US;
            let forward = Pair { tx_ns: [tx, tx + 30 * US], rx_ns: [tx + ahead_ns + 20 * US, tx + ahead_ns + 50 * US + queue_ns] };
            let back = forward.rx_ns;
            let backward = Pair { tx_ns: back, rx_ns: [back[0] - ahead_ns + 20 * US, back[1] - ahead_ns + 20 * US + queue_ns] };
            samples.forward.push(forward);
            samples.backward.push(backward);
        }
        samples
    }

    #[test]
    fn symmetric_paths_give_the_offset_however_large() {
        for ahead_ns in [0, 123, 10_000_000, 1_700_000_000_000_000_000] {
            let estimate = window(ahead_ns).fit(&CodedFilter::default(), S).unwrap();
            let (anchor_local_ns, offset_ns) = (S, ahead_ns as i64);
            let expected = EdgeEstimate { anchor_local_ns, offset_ns, rate_ppt: 0, round_trip_ns: 40 * US, noise_ns: 0 };
            assert_eq!(estimate, expected);
        }
    }

    #[test]
    fn pairs_that_the_network_stretched_are_dropped_unless_nearly_all_are() {
        let filter = CodedFilter::default();
        let mut samples = window(0);
        assert_eq!(samples.forward.iter().filter(|pair| filter.keeps(pair)).count(), 66);
        // A pair whose first probe queued and whose second did not would pull the envelope if it were the lowest: it is dropped.
        samples.forward[1].rx_ns[1] -= 10 * US;
        assert_eq!(samples.fit(&filter, S).unwrap().round_trip_ns, 40 * US);
        samples.forward[1].rx_ns[1] += 10 * US;
        for pair in samples.forward.iter_mut().skip(1) {
            pair.rx_ns[1] += 3 * US;
        }
        // One of a hundred left, or none: the envelope of all.
        assert!(samples.fit(&filter, S).is_ok());
    }

    #[test]
    fn a_line_that_hangs_on_a_few_lucky_probes_says_nothing() {
        let mut samples = window(0);
        // All wait, each another time, but for two in the first half.
        for (step, pair) in samples.forward.iter_mut().enumerate().filter(|(step, _)| ![8, 16].contains(step)) {
            let waits_ns = (step as u64 * 7_919 % 100) * US;
            pair.rx_ns = pair.rx_ns.map(|rx_ns| rx_ns + waits_ns + 30 * US);
        }
        assert_eq!(samples.fit(&CodedFilter::default(), S), Err(EdgeFault::Silent));
        let patient = CodedFilter { noise_ns_max: 1_000 * US, ..CodedFilter::default() };
        let estimate = samples.fit(&patient, S).unwrap();
        assert!(estimate.noise_ns > US, "{estimate:?}");
    }

    #[test]
    fn a_jump_in_the_window_is_a_contradiction_and_silence_is_silence() {
        let mut samples = window(0);
        for at in 50..100 {
            for index in 0..2 {
                samples.forward[at].rx_ns[index] += 2_000 * US;
                samples.backward[at].tx_ns[index] += 2_000 * US;
            }
        }
        assert!(matches!(samples.fit(&CodedFilter::default(), S), Err(EdgeFault::Contradiction { .. } | EdgeFault::Steep { .. })));
        samples.backward.truncate(3);
        assert_eq!(samples.fit(&CodedFilter::default(), S), Err(EdgeFault::Silent));
    }

    #[test]
    fn absurd_stamps_are_refused_and_do_not_overflow() {
        let far = Pair { tx_ns: [0, u64::MAX], rx_ns: [u64::MAX, 0] };
        let samples = WindowSamples { forward: vec![far; 8], backward: vec![far; 8] };
        assert!(samples.fit(&CodedFilter::default(), 0).is_err());
        let near = Pair { tx_ns: [0, 0], rx_ns: [u64::MAX, u64::MAX] };
        let samples = WindowSamples { forward: vec![near; 8], backward: vec![near; 8] };
        assert!(samples.fit(&CodedFilter::default(), u64::MAX).is_err());
    }
}
