//! Quantiles of many times.

/// Times in ns, as they come.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    ns: Vec<u32>,
}

impl Samples {
    /// Adds one; more than 4.2 s counts as that.
    pub fn push(&mut self, ns: u64) {
        self.ns.push(u32::try_from(ns).unwrap_or(u32::MAX));
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ns.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }

    /// In order.
    #[must_use]
    pub fn sorted(mut self) -> Sorted {
        self.ns.sort_unstable();
        Sorted { ns: self.ns }
    }
}

/// Times in order.
#[derive(Clone, Debug)]
pub struct Sorted {
    ns: Vec<u32>,
}

impl Sorted {
    /// The least time that at least this share does not exceed, in us; not a number where there is none.
    #[must_use]
    pub fn us(&self, share: f64) -> f64 {
        let rank = (self.ns.len() as f64 * share).ceil().max(1.0) as usize;
        self.ns.get(rank.min(self.ns.len()).wrapping_sub(1)).map_or(f64::NAN, |ns| f64::from(*ns) / 1_000.0)
    }

    /// The share of times that are no longer, in percent.
    #[must_use]
    pub fn percent_within(&self, ns: u32) -> f64 {
        100.0 * self.ns.partition_point(|other| *other <= ns) as f64 / self.ns.len().max(1) as f64
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ns.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }

    /// The cumulative distribution as points of us and percent, for a plot.
    #[must_use]
    pub fn curve(&self) -> Vec<(f64, f64)> {
        (1..=199).map(|half| (self.us(f64::from(half) / 200.0), f64::from(half) / 2.0)).collect()
    }
}

/// The quantile of numbers that need not be in order; not a number where there is none.
#[must_use]
pub fn quantile(numbers: &[f64], share: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * share).ceil().max(1.0) as usize;
    sorted.get(rank.min(sorted.len()).wrapping_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let mut samples = Samples::default();
        [4_000, 1_000, 3_000, 2_000].into_iter().for_each(|ns| samples.push(ns));
        let sorted = samples.sorted();
        assert_eq!([0.0, 0.25, 0.5, 0.51, 1.0].map(|share| sorted.us(share)), [1.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!((sorted.percent_within(999), sorted.percent_within(2_000)), (0.0, 50.0));
        assert!(Samples::default().sorted().us(0.5).is_nan() && quantile(&[], 0.5).is_nan());
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
    }
}
