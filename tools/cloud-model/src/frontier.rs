//! The delay that a static policy would need for the same unfairness.

use crate::policy::Outcome;

/// Unfairness in percent and mean delay in microseconds of static delays, from the least delay to the greatest.
#[derive(Clone, Debug)]
pub struct Frontier {
    points: Vec<(f64, f64)>,
}

impl Frontier {
    /// Computes the frontier of a sweep as its lower convex hull: alternating between two static delays reaches any point on the
    /// line between them, so a static delay above such a line is not on the frontier.
    #[must_use]
    pub fn of(outcomes: &[Outcome]) -> Self {
        let mut sorted: Vec<(f64, f64)> = outcomes.iter().map(|outcome| (outcome.unfair_percent(), outcome.delay_us())).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut points: Vec<(f64, f64)> = Vec::new();
        for point in sorted {
            while let [.., a, b] = points[..] {
                // `b` stays if it lies below the line from `a` to `point`.
                if (b.1 - a.1) * (point.0 - a.0) < (point.1 - a.1) * (b.0 - a.0) {
                    break;
                }
                points.pop();
            }
            points.push(point);
        }
        Self { points }
    }

    /// The smallest delay of static policies at an unfairness; `None` below the fairest of them.
    #[must_use]
    pub fn delay_us(&self, unfair_percent: f64) -> Option<f64> {
        let after = self.points.partition_point(|point| point.0 < unfair_percent);
        match (after.checked_sub(1).and_then(|at| self.points.get(at)), self.points.get(after)) {
            (None, first) => first.filter(|point| point.0 <= unfair_percent).map(|point| point.1),
            (Some(last), None) => Some(last.1),
            (Some(low), Some(high)) => {
                let share = (unfair_percent - low.0) / (high.0 - low.0);
                Some(low.1 + share * (high.1 - low.1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(unfair: u64, delay_us: f64) -> Outcome {
        let mut outcome = Outcome::default();
        for sample in 0..100 {
            outcome.add(sample < unfair, delay_us * 1_000.0);
        }
        outcome
    }

    #[test]
    fn it_lies_below_all_points_and_on_its_corners() {
        let frontier = Frontier::of(&[outcome(0, 800.0), outcome(2, 700.0), outcome(4, 200.0), outcome(10, 80.0)]);
        assert_eq!(frontier.delay_us(4.0), Some(200.0));
        assert_eq!(frontier.delay_us(7.0), Some(140.0));
        assert_eq!(frontier.delay_us(2.0), Some(500.0), "a straight line, below 700");
        assert_eq!(frontier.delay_us(50.0), Some(80.0));
        assert_eq!(Frontier::of(&[outcome(3, 1.0)]).delay_us(2.0), None);
    }
}
