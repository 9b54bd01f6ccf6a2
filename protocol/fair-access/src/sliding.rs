//! A sliding window of samples, sorted by size.

use std::collections::VecDeque;

/// The exact quantiles of the last samples.
#[derive(Clone, Debug)]
pub struct Sliding {
    samples_max: usize,
    by_age: VecDeque<i64>,
    by_size: Vec<i64>,
}

impl Sliding {
    /// A window of `samples_max` samples, at least one.
    ///
    /// # Panics
    /// If `samples_max` is 0.
    #[must_use]
    pub fn new(samples_max: usize) -> Self {
        assert!(samples_max > 0, "a window without room has no quantile");
        Self { samples_max, by_age: VecDeque::with_capacity(samples_max), by_size: Vec::with_capacity(samples_max) }
    }

    /// Adds a sample; a full window drops the oldest. O(window), with one move of memory.
    pub fn push(&mut self, sample: i64) {
        if self.by_age.len() < self.samples_max {
            let place = self.by_size.partition_point(|other| *other < sample);
            self.by_size.insert(place, sample);
        } else if let Some(oldest) = self.by_age.pop_front() {
            let left = self.by_size.partition_point(|other| *other < oldest);
            let place = self.by_size.partition_point(|other| *other < sample);
            // Moves the gap from the oldest sample's place to the new one's.
            if place > left {
                self.by_size.copy_within(left + 1..place, left);
                self.by_size[place - 1] = sample;
            } else {
                self.by_size.copy_within(place..left, place + 1);
                self.by_size[place] = sample;
            }
        }
        self.by_age.push_back(sample);
    }

    /// Number of samples in the window.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// Whether the window is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.by_age.len() == self.samples_max
    }

    /// The median; of two middle samples the greater. `None` before the first sample.
    #[must_use]
    pub fn median(&self) -> Option<i64> {
        self.by_size.get(self.by_size.len() / 2).copied()
    }

    /// The smallest sample that at least this share of all, in millionths, does not exceed. `None` before the first sample.
    #[must_use]
    pub fn quantile_ppm(&self, ppm: u32) -> Option<i64> {
        let samples = self.by_size.len() as u64;
        let rank = (samples * u64::from(ppm)).div_ceil(1_000_000).clamp(1, samples.max(1));
        self.by_size.get(usize::try_from(rank - 1).ok()?).copied()
    }

    /// Drops all samples.
    pub fn clear(&mut self) {
        self.by_age.clear();
        self.by_size.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_sorted_window(samples_max in 1_usize..20, samples in prop::collection::vec(-9_i64..9, 0..80)) {
            let mut sliding = Sliding::new(samples_max);
            for (count, sample) in samples.iter().enumerate() {
                sliding.push(*sample);
                let mut naive = samples[(count + 1).saturating_sub(samples_max)..=count].to_vec();
                naive.sort_unstable();
                prop_assert_eq!(&sliding.by_size, &naive);
                prop_assert_eq!(sliding.median(), Some(naive[naive.len() / 2]));
                let within = |most: i64| naive.iter().filter(|sample| **sample <= most).count() * 100 >= naive.len() * 75;
                prop_assert_eq!(sliding.quantile_ppm(750_000), naive.iter().copied().find(|most| within(*most)));
                prop_assert_eq!(sliding.is_full(), count + 1 >= samples_max);
            }
        }
    }
}
