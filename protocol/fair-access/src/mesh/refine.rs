//! A line moved from the edges of two clouds to their densest parts.
//!
//! The line of largest margin hangs on three stamps, the luckiest of hundreds, and so on their noise. Where most probes met no
//! queue, their stamps lie in a narrow band above the envelope (below, for lower bounds), and the middle of the band is known far
//! better.
#![allow(clippy::float_arithmetic, reason = "an estimator: nothing of it is replicated")]

use super::line::{Line, Point};

/// A band narrower than this share of points is looked for.
const BAND_SHARE: f64 = 0.25;
/// Half of one side of a normal distribution lies within so many deviations.
const QUARTILE_DEVIATIONS: f64 = 0.6745;
/// Points per direction below which a band is chance.
const POINTS_MIN: usize = 32;
/// Points so many deviations from the middle of the band are left out.
const REACH_DEVIATIONS: f64 = 2.5;

/// Returns the line halfway between the bands of `upper` and `lower`, starting from `line`, the one of largest margin. Returns
/// `line` itself if a direction has no band that looks like noise of at most `deviation_ns_max`. A noise band has its middle some
/// deviations away from its edge; queues, which only add delay, do not.
pub(super) fn refine(line: Line, upper: &[Point], lower: &[Point], deviation_ns_max: f64) -> Line {
    let mut line = line;
    for _ in 0..3 {
        let (Some(above), Some(below)) =
            (Band::find(&line, upper, 1.0, deviation_ns_max), Band::find(&line, lower, -1.0, deviation_ns_max))
        else {
            return line;
        };
        // One rate for both, each with its own height.
        let (over, under) = (above.moments(&line, upper), below.moments(&line, lower));
        let spread = over.time_square + under.time_square;
        if spread <= 0.0 {
            return line;
        }
        let rate = (over.product + under.product) / spread;
        let over_ns = over.off_ns - rate * over.at_ns;
        let under_ns = under.off_ns - rate * under.at_ns;
        line.rate += rate;
        line.offset_ns += (over_ns + under_ns) / 2.0;
        line.gap_ns = over_ns - under_ns;
    }
    line
}

/// Where a direction's points are densest, relative to a line.
#[derive(Clone, Copy, Debug)]
struct Band {
    middle_ns: f64,
    reach_ns: f64,
}

/// Of the points in a band: means, and sums of squares and products about them.
#[derive(Clone, Copy, Debug)]
struct Moments {
    at_ns: f64,
    off_ns: f64,
    time_square: f64,
    product: f64,
}

fn off_ns(line: &Line, point: &Point) -> f64 {
    point.offset_ns - line.offset_ns - line.rate * point.at_ns
}

impl Band {
    /// `sign` is the direction in which queues push points away from the line.
    fn find(line: &Line, points: &[Point], sign: f64, deviation_ns_max: f64) -> Option<Self> {
        if points.len() < POINTS_MIN {
            return None;
        }
        let mut off: Vec<f64> = points.iter().map(|point| sign * off_ns(line, point)).collect();
        off.sort_unstable_by(f64::total_cmp);
        let count = (off.len() as f64 * BAND_SHARE) as usize;
        let start = (0..off.len() - count).min_by(|&a, &b| (off[a + count] - off[a]).total_cmp(&(off[b + count] - off[b])))?;
        let middle_ns = (off[start] + off[start + count]) / 2.0;
        // Queues only add: the half of the band that lies before its middle is noise alone.
        let below = off.partition_point(|&off| off < middle_ns);
        let deviation_ns = (middle_ns - off[below / 2]) / QUARTILE_DEVIATIONS;
        let is_noise = deviation_ns > 0.0 && deviation_ns <= deviation_ns_max;
        let has_a_lower_side = middle_ns - off[0] >= 1.7 * deviation_ns;
        (is_noise && has_a_lower_side).then_some(Self { middle_ns: sign * middle_ns, reach_ns: REACH_DEVIATIONS * deviation_ns })
    }

    fn moments(&self, line: &Line, points: &[Point]) -> Moments {
        let inside = || {
            let all = points.iter().map(|point| (point.at_ns, off_ns(line, point)));
            all.filter(|(_, off)| (off - self.middle_ns).abs() <= self.reach_ns)
        };
        let (count, at_sum, off_sum) = inside().fold((0.0, 0.0, 0.0), |(n, at, off), point| (n + 1.0, at + point.0, off + point.1));
        let (at_ns, off_ns) = (at_sum / f64::max(count, 1.0), off_sum / f64::max(count, 1.0));
        let (time_square, product) =
            inside().fold((0.0, 0.0), |(t, p), (at, off)| (t + (at - at_ns).powi(2), p + (at - at_ns) * (off - off_ns)));
        Moments { at_ns, off_ns, time_square, product }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::line::fit;
    use walras_random::Random;

    /// Two clouds around a line of 1,000 ns and 1e-6, 40 us apart, with noise of about 40 ns; a share of each meets queues.
    fn clouds(seed: u64, queued: [f64; 2]) -> [Vec<Point>; 2] {
        let mut random = Random::new(seed);
        let mut unit = move || ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        [(1.0, queued[0]), (-1.0, queued[1])].map(|(sign, queued)| {
            (0..800)
                .map(|step| {
                    let at_ns = -1e9 + f64::from(step) * 2.5e6;
                    let noise: f64 = (0..12).map(|_| unit() - 0.5).sum::<f64>() * 40.0;
                    let queue = if unit() < queued { -3_000.0 * unit().ln() } else { 0.0 };
                    Point { at_ns, offset_ns: 1_000.0 + 1e-6 * at_ns + sign * (20_000.0 + queue) + noise }
                })
                .collect()
        })
    }

    fn errors(queued: [f64; 2], refined: bool) -> (f64, f64) {
        let lines: Vec<Line> = (0..40)
            .map(|seed| {
                let [upper, lower] = clouds(seed, queued);
                let line = fit(&upper, &lower).unwrap();
                if refined { refine(line, &upper, &lower, 150.0) } else { line }
            })
            .collect();
        let worst = |error: fn(&Line) -> f64| lines.iter().map(error).fold(0.0, f64::max);
        (worst(|line| (line.offset_ns - 1_000.0).abs()), worst(|line| (line.rate - 1e-6).abs() * 1e9))
    }

    #[test]
    fn the_middle_of_the_bands_is_better_than_their_edges_also_where_one_direction_queues_more() {
        for queued in [[0.0, 0.0], [0.3, 0.3], [0.6, 0.1]] {
            let (offset_ns, rate_ns_per_s) = errors(queued, true);
            let (edge_offset_ns, edge_rate_ns_per_s) = errors(queued, false);
            assert!(offset_ns < 10.0 && offset_ns < edge_offset_ns, "{queued:?}: {offset_ns} {edge_offset_ns}");
            assert!(rate_ns_per_s < 15.0 && rate_ns_per_s < edge_rate_ns_per_s, "{queued:?}: {rate_ns_per_s} {edge_rate_ns_per_s}");
        }
    }

    #[test]
    fn where_all_probes_queue_the_edge_counts() {
        let [upper, lower] = clouds(1, [1.0, 0.2]);
        let line = fit(&upper, &lower).unwrap();
        assert_eq!(refine(line, &upper, &lower, 150.0), line);
        assert_eq!(refine(line, &upper[..20], &lower, 1e9), line, "too few");
    }
}
