//! Medians and percentiles of samples.

/// The median; of an even number of samples the mean of the middle two. There must be one.
#[must_use]
pub fn median(samples: &[f64]) -> f64 {
    assert!(!samples.is_empty(), "a median of nothing");
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// The shape of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half are at most this.
    pub p50: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
    /// 999 of 1,000 are at most this.
    pub p999: f64,
    /// All are at most this.
    pub max: f64,
}

impl Percentiles {
    /// Of every sample, exactly. `None` if there is none.
    #[must_use]
    pub fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let max = *samples.last()?;
        // The smallest sample that at least `permille` of a thousand do not exceed.
        let rank = |permille: usize| samples[(samples.len() * permille).div_ceil(1_000).max(1) - 1];
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        Some(Self { mean, p50: rank(500), p99: rank(990), p999: rank(999), max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_distributions() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let samples = (1..=1_000).rev().map(f64::from).collect();
        let wanted = Percentiles { mean: 500.5, p50: 500.0, p99: 990.0, p999: 999.0, max: 1_000.0 };
        assert_eq!(Percentiles::of(samples), Some(wanted));
        assert_eq!(Percentiles::of(vec![7.0]).map(|one| (one.p50, one.p999)), Some((7.0, 7.0)));
        assert_eq!(Percentiles::of(Vec::new()), None);
    }
}
