//! Times in a histogram of three significant digits.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest time that is recorded exactly; longer ones count as this.
const NS_MAX: u64 = 3_600_000_000_000;

/// A histogram of times.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// A summary of times. A percentile is the time below which that share of the samples lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LatencyReport {
    /// Number of samples.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90 of 100.
    pub p90_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1,000.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, NS_MAX, 3).expect("the bounds above are in order and three digits are few"))
    }
}

impl Latencies {
    /// Counts one; longer ones than an hour count as one.
    pub fn record(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).clamp(1, NS_MAX));
    }

    /// Counts what another counted.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// At a glance.
    #[must_use]
    pub fn report(&self) -> LatencyReport {
        let at = |quantile| self.0.value_at_quantile(quantile);
        LatencyReport {
            count: self.0.len(),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: self.0.max(),
        }
    }
}

impl std::fmt::Display for LatencyReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [p50, p99, p999, max] = [self.p50_ns, self.p99_ns, self.p999_ns, self.max_ns].map(|ns| ns as f64 / 1e3);
        write!(f, "p50 {p50:.0} us, p99 {p99:.0} us, p99.9 {p999:.0} us, max {max:.0} us")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_that_was_counted() {
        let [mut low, mut high] = [Latencies::default(), Latencies::default()];
        assert_eq!(low.report(), LatencyReport::default());
        (1..=500).for_each(|us| low.record(Duration::from_micros(us)));
        (501..=1_000).for_each(|us| high.record(Duration::from_micros(us)));
        low.add(&high);
        let report = low.report();
        let near = |ns: u64, us: u64| ns.abs_diff(us * 1_000) * 1_000 <= us * 1_000;
        assert_eq!(report.count, 1_000);
        assert!(near(report.p50_ns, 500) && near(report.p99_ns, 990) && near(report.max_ns, 1_000), "{report}");
        low.record(Duration::from_secs(100_000));
        assert!(low.report().max_ns >= NS_MAX, "too long is the longest, not lost");
    }
}
