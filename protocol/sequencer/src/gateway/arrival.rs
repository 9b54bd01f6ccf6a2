//! When an order reached the venue's edge: by the kernel's stamp of its bytes, where there is one, and not when a busy thread came
//! to read them.

use super::GatewayTime;

/// Bytes that lay in a socket for longer count as having lain there for this time, and are counted.
pub const WAITED_NS_MAX: u64 = 50_000_000;

/// What the stamps of orders here are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalCounts {
    /// Reads stamped by the kernel's receive time.
    pub kernel: u64,
    /// Reads stamped by the time of reading, because the kernel gave none.
    pub reading: u64,
    /// Of those by the kernel's, stamped later than the kernel says: the bytes lay unread for longer than [`WAITED_NS_MAX`].
    pub raised: u64,
}

/// Stamps reads, and counts.
#[derive(Debug, Default)]
pub struct Arrivals {
    counts: ArrivalCounts,
}

impl Arrivals {
    /// The time at which what was read just now counts as having come. `at` is now; `waited_ns` says how long the bytes lay in the
    /// socket, by two readings of the clock that stamped them; `last_ns` is the stamp of what the same connection sent before, 0 for
    /// nothing.
    ///
    /// It is never later than now, nor earlier than `last_ns`, which becomes it.
    pub fn at(&mut self, at: GatewayTime, waited_ns: Option<u64>, last_ns: &mut u64) -> GatewayTime {
        let waited_ns = match waited_ns {
            None => {
                self.counts.reading += 1;
                0
            }
            Some(waited_ns) => {
                self.counts.kernel += 1;
                self.counts.raised += u64::from(waited_ns > WAITED_NS_MAX);
                waited_ns.min(WAITED_NS_MAX)
            }
        };
        // A clock that another source has replaced may be behind the last stamp.
        *last_ns = at.time_ns.saturating_sub(waited_ns).max(*last_ns).min(at.time_ns);
        GatewayTime { time_ns: *last_ns, ..at }
    }

    /// What the stamps were made of.
    #[must_use]
    pub fn counts(&self) -> ArrivalCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_fair_access::clock::ClockStatus;
    use walras_types::TimeNs;

    use super::*;

    fn now(time_ns: u64) -> GatewayTime {
        GatewayTime { now_ns: 7, now: TimeNs(9), time_ns, status: ClockStatus::Good }
    }

    #[test]
    fn what_lay_in_a_socket_is_stamped_by_when_it_came() {
        let (mut arrivals, mut last_ns) = (Arrivals::default(), 0);
        let mut at = |time_ns, waited_ns| arrivals.at(now(time_ns), waited_ns, &mut last_ns).time_ns;
        assert_eq!(at(1_000_000_000, Some(3_000_000)), 997_000_000);
        assert_eq!(at(1_000_000_500, Some(4_000_000)), 997_000_000, "not before what the connection sent before");
        assert_eq!(at(1_100_000_000, Some(99_000_000)), 1_050_000_000, "longer than anybody believes");
        assert_eq!(at(1_200_000_000, None), 1_200_000_000);
        assert_eq!(at(1_100_000_000, Some(0)), 1_100_000_000, "another clock, which is behind: never later than now");
        assert_eq!(arrivals.counts(), ArrivalCounts { kernel: 4, reading: 1, raised: 1 });
    }

    proptest! {
        #[test]
        fn stamps_of_a_connection_keep_their_order_and_are_never_later_than_now(
            reads in prop::collection::vec((0..200_000_000_u64, prop::option::of(any::<u64>())), 1..50),
        ) {
            let (mut arrivals, mut last_ns, mut time_ns) = (Arrivals::default(), 0, 1_000_000_000);
            for (later_ns, waited_ns) in &reads {
                time_ns += later_ns;
                let before_ns = last_ns;
                let stamped = arrivals.at(now(time_ns), *waited_ns, &mut last_ns);
                prop_assert!(stamped.time_ns >= before_ns && stamped.time_ns <= time_ns);
                prop_assert!(stamped.time_ns >= time_ns.saturating_sub(WAITED_NS_MAX));
                prop_assert_eq!(GatewayTime { time_ns, ..stamped }, now(time_ns));
            }
            let counts = arrivals.counts();
            prop_assert_eq!(counts.kernel + counts.reading, reads.len() as u64);
        }
    }
}
