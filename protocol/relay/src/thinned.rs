//! Delays of a while, in bounded memory.

/// Delays that are kept. Of more, every second is kept, then every fourth.
const KEPT_MAX: usize = 1_024;

/// Delays of a while, for their quantiles.
#[derive(Clone, Debug)]
pub(crate) struct Thinned {
    delays_ns: Vec<i64>,
    /// Of so many one is kept.
    one_of: u64,
    seen: u64,
}

impl Thinned {
    pub(crate) const fn new() -> Self {
        Self { delays_ns: Vec::new(), one_of: 1, seen: 0 }
    }

    pub(crate) fn push(&mut self, delay_ns: i64) {
        if self.seen.is_multiple_of(self.one_of) {
            if self.delays_ns.len() == KEPT_MAX {
                let mut at = 0;
                self.delays_ns.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.one_of *= 2;
            }
            self.delays_ns.push(delay_ns);
        }
        self.seen += 1;
    }

    /// The delay that this share of all, in millionths, does not exceed; `None` if there was none. All are forgotten.
    pub(crate) fn take_quantile(&mut self, ppm: u32) -> Option<i64> {
        let rank = self.delays_ns.len() as u64 * u64::from(ppm) / 1_000_000;
        let rank = (rank as usize).min(self.delays_ns.len().checked_sub(1)?);
        let (_, quantile_ns, _) = self.delays_ns.select_nth_unstable(rank);
        let quantile_ns = *quantile_ns;
        (self.one_of, self.seen) = (1, 0);
        self.delays_ns.clear();
        Some(quantile_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_stay_when_many_are_thinned() {
        let mut thinned = Thinned::new();
        assert_eq!(thinned.take_quantile(500_000), None);
        (0..100).for_each(|delay_ns| thinned.push(delay_ns));
        assert_eq!(thinned.take_quantile(950_000), Some(95));
        assert_eq!(thinned.take_quantile(950_000), None, "all are forgotten");
        for delay_ns in 0..1_000_000 {
            thinned.push(delay_ns % 1_000);
            assert!(thinned.delays_ns.len() <= KEPT_MAX);
        }
        let median = thinned.take_quantile(500_000).unwrap();
        assert!((450..550).contains(&median), "{median}");
        thinned.push(-7);
        assert_eq!(thinned.take_quantile(1_000_000), Some(-7), "the last is the greatest quantile");
    }
}
