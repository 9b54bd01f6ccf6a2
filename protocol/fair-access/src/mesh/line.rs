//! The line of largest margin between two clouds of bounds.
#![allow(clippy::float_arithmetic, reason = "an estimator: nothing of it is replicated")]

/// A bound on the offset of two clocks at a time; both relative to something near, so that floats are exact enough.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// When, by the clock of the edge's first node.
    pub at_ns: f64,
    /// The bound on the offset.
    pub offset_ns: f64,
}

/// `offset(at) = offset_ns + rate * at_ns`, as far from the nearest upper bound above it as from the nearest lower bound below.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// The offset at 0.
    pub offset_ns: f64,
    /// How fast it grows.
    pub rate: f64,
    /// The distance between the bounds along the line: the shortest round trip. Not above 0 where no line separates them.
    pub gap_ns: f64,
}

/// The steepest line that is looked for: 1,000 us/s.
const RATE_MAX: f64 = 1e-3;

/// The line with the largest gap between `upper` and `lower`, which are sorted by time; exact, in time linear in the points.
///
/// The gap as a function of the rate is concave; its largest value is the smallest vertical distance between the convex hulls of the
/// two clouds, and the line's rate is a slope that both hulls have there. None where the clouds have no time in common.
pub fn fit(upper: &[Point], lower: &[Point]) -> Option<Line> {
    let above = hull(upper, |point| point.offset_ns);
    let below = hull(lower, |point| -point.offset_ns);
    let start = above.first()?.at_ns.max(below.first()?.at_ns);
    let end = above.last()?.at_ns.min(below.last()?.at_ns);
    if start > end {
        return None;
    }
    let (mut above_at, mut below_at) = (Cursor::new(&above), Cursor::new(&below));
    let mut best: Option<(f64, Place, Place)> = None;
    let mut at_ns = start;
    loop {
        let (over, under) = (above_at.place(at_ns), below_at.place(at_ns));
        let distance = over.offset_ns - under.offset_ns;
        // The distance is convex: once it grows, the smallest was before.
        if best.is_some_and(|(smallest, ..)| distance > smallest) {
            break;
        }
        best = Some((distance, over, under));
        let next = above_at.next_at(at_ns).min(below_at.next_at(at_ns));
        if at_ns >= end || next > end {
            break;
        }
        at_ns = next;
    }
    let (gap_ns, over, under) = best?;
    let steepest = over.slope_after.min(under.slope_before_or(f64::INFINITY)).min(RATE_MAX);
    let flattest = over.slope_before.max(under.slope_after_or(f64::NEG_INFINITY)).max(-RATE_MAX);
    let rate = (steepest + flattest) / 2.0;
    Some(Line { offset_ns: (over.offset_ns + under.offset_ns) / 2.0 - rate * over.at_ns, rate, gap_ns })
}

/// The lower hull of the points by `height`, left to right.
fn hull(points: &[Point], height: impl Fn(&Point) -> f64) -> Vec<Point> {
    let mut hull: Vec<Point> = Vec::with_capacity(32);
    for &point in points {
        // Of points at one time only the lowest counts.
        if let Some(&last) = hull.last().filter(|last| last.at_ns == point.at_ns) {
            if height(&last) <= height(&point) {
                continue;
            }
            hull.pop();
        }
        while let [.., a, b] = hull[..] {
            let turn = (b.at_ns - a.at_ns) * (height(&point) - height(&a)) - (height(&b) - height(&a)) * (point.at_ns - a.at_ns);
            if turn > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// A place on a hull: its height, and the slopes on both sides. Beyond an end the slope is without limit, in the sense of a lower hull.
#[derive(Clone, Copy)]
struct Place {
    at_ns: f64,
    offset_ns: f64,
    slope_before: f64,
    slope_after: f64,
}

impl Place {
    /// An upper hull's slopes fall where a lower hull's rise: beyond its ends they have the other sign.
    fn slope_before_or(&self, beyond: f64) -> f64 {
        if self.slope_before.is_finite() { self.slope_before } else { beyond }
    }

    fn slope_after_or(&self, beyond: f64) -> f64 {
        if self.slope_after.is_finite() { self.slope_after } else { beyond }
    }
}

/// A walk along a hull from left to right.
struct Cursor<'a> {
    hull: &'a [Point],
    /// The last vertex at or before the place asked for.
    index: usize,
}

impl<'a> Cursor<'a> {
    fn new(hull: &'a [Point]) -> Self {
        Self { hull, index: 0 }
    }

    fn slope(&self, index: usize) -> f64 {
        let (a, b) = (self.hull[index], self.hull[index + 1]);
        (b.offset_ns - a.offset_ns) / (b.at_ns - a.at_ns)
    }

    /// `at_ns` is within the hull and not before an earlier call's.
    fn place(&mut self, at_ns: f64) -> Place {
        while self.hull.get(self.index + 1).is_some_and(|next| next.at_ns <= at_ns) {
            self.index += 1;
        }
        let vertex = self.hull[self.index];
        let slope_after = if self.index + 1 < self.hull.len() { self.slope(self.index) } else { f64::INFINITY };
        if vertex.at_ns < at_ns {
            let offset_ns = vertex.offset_ns + slope_after * (at_ns - vertex.at_ns);
            return Place { at_ns, offset_ns, slope_before: slope_after, slope_after };
        }
        let slope_before = if self.index > 0 { self.slope(self.index - 1) } else { f64::NEG_INFINITY };
        Place { at_ns, offset_ns: vertex.offset_ns, slope_before, slope_after }
    }

    fn next_at(&self, at_ns: f64) -> f64 {
        self.hull[self.index..].iter().map(|point| point.at_ns).find(|&vertex| vertex > at_ns).unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The gap of a rate, from all points.
    fn gap(upper: &[Point], lower: &[Point], rate: f64) -> f64 {
        let least = upper.iter().map(|p| p.offset_ns - rate * p.at_ns).fold(f64::INFINITY, f64::min);
        let most = lower.iter().map(|p| p.offset_ns - rate * p.at_ns).fold(f64::NEG_INFINITY, f64::max);
        least - most
    }

    /// The naive model: halves of what is left, since the gap is concave in the rate.
    fn search(upper: &[Point], lower: &[Point]) -> f64 {
        let (mut low, mut high) = (-RATE_MAX, RATE_MAX);
        for _ in 0..200 {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if gap(upper, lower, a) < gap(upper, lower, b) { low = a } else { high = b }
        }
        gap(upper, lower, (low + high) / 2.0)
    }

    fn cloud() -> impl Strategy<Value = Vec<Point>> {
        prop::collection::vec((0i32..1_000, -300i32..300), 1..60).prop_map(|mut points| {
            points.sort_unstable();
            points
                .into_iter()
                .map(|(at, offset)| Point { at_ns: f64::from(at) * 1e6, offset_ns: f64::from(offset) * 10.0 })
                .collect()
        })
    }

    #[test]
    fn a_line_lies_between_its_bounds() {
        let at = |at_ns: f64, offset_ns: f64| Point { at_ns, offset_ns };
        let upper = [at(-1e9, 40_000.0), at(0.0, 60_000.0), at(1e9, 60_000.0)];
        let lower = [at(-1e9, 0.0), at(0.0, -20_000.0), at(1e9, 20_000.0)];
        let line = fit(&upper, &lower).unwrap();
        assert_eq!(line, Line { offset_ns: 30_000.0, rate: 1e-5, gap_ns: 40_000.0 });
        assert_eq!(fit(&upper[..1], &lower[1..]), None, "nothing in common");
        assert_eq!(fit(&[], &lower), None);
    }

    proptest! {
        /// The hulls find what a search over all points finds.
        #[test]
        fn the_gap_is_the_largest(upper in cloud(), lower in cloud(), lift in 0i32..2_000) {
            let upper: Vec<_> = upper.iter().map(|p| Point { offset_ns: p.offset_ns + f64::from(lift), ..*p }).collect();
            if let Some(line) = fit(&upper, &lower) {
                let real = gap(&upper, &lower, line.rate);
                let searched = search(&upper, &lower);
                // Where no rate within the limit is best, the best one at the limit is taken.
                prop_assert!(real >= searched - 1e-3, "{real} {searched} {line:?}");
                let middle = upper.iter().map(|p| p.offset_ns - line.rate * p.at_ns).fold(f64::INFINITY, f64::min) - real / 2.0;
                if line.rate.abs() < RATE_MAX * 0.999 {
                    prop_assert!((real - line.gap_ns).abs() < 1e-3, "{real} {line:?}");
                    prop_assert!((middle - line.offset_ns).abs() < 1e-3, "{middle} {line:?}");
                }
            }
        }
    }
}
