//! How long a transfer relay waits between two rounds.

/// How often it looks, and how long it waits after failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between two looks for transfers, unless it is woken earlier.
    pub poll_ns: u64,
    /// Longest wait after a failure; it begins with the time of a look and doubles.
    pub retry_ns_max: u64,
}

/// The wait before the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// None: there may be more to deliver.
    None,
    /// Nanoseconds, or until it is woken.
    UntilRung(u64),
    /// Nanoseconds, in any case.
    Whole(u64),
}

/// The wait after the next failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    pace: Pace,
    next_ns: u64,
}

impl Retry {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { pace, next_ns: pace.poll_ns }
    }

    /// Nothing failed.
    pub(crate) fn rest(&mut self) -> Pause {
        self.next_ns = self.pace.poll_ns;
        Pause::UntilRung(self.pace.poll_ns)
    }

    /// Something failed. The wait varies by half, up or down, so that relays that failed together do not come back together.
    pub(crate) fn wait(&mut self, random: u32) -> Pause {
        let spread = u128::from(self.next_ns) * u128::from(random) / u128::from(u32::MAX);
        let wait_ns = self.next_ns / 2 + u64::try_from(spread).unwrap_or(u64::MAX);
        self.next_ns = self.next_ns.saturating_mul(2).min(self.pace.retry_ns_max).max(self.pace.poll_ns);
        Pause::Whole(wait_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound_and_vary_by_a_half() {
        let mut retry = Retry::new(Pace { poll_ns: 100, retry_ns_max: 350 });
        let waits = [0, u32::MAX, u32::MAX / 2, 0].map(|random| retry.wait(random));
        assert_eq!(waits, [Pause::Whole(50), Pause::Whole(300), Pause::Whole(349), Pause::Whole(175)]);
        assert_eq!(retry.rest(), Pause::UntilRung(100));
        assert_eq!(retry.wait(0), Pause::Whole(50), "from the beginning");
    }
}
