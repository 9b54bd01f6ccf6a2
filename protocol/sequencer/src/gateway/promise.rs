//! A gateway's watermarks: up to which stamp it has sent all of its orders, and when it says so.
//!
//! Its host says up to when it has read all that came ([`Promise::taken_in`]). A watermark goes behind each batch of orders, and by
//! itself every [`ForwardSettings::watermark_ns`](super::ForwardSettings) while orders come somewhere in the venue. When they come
//! more rarely, watermarks do: four in the time since the last order. So a venue that is busy pays for few messages next to its orders,
//! and a quiet one for next to none: an order that comes after a pause waits for its delay.
//!
//! *Invariant*: no stamp that is made after a watermark was sent is earlier, but for a clock that is set back ([`Promise::keep`]).

use walras_fair_access::resequence::Stamp;

use super::{GatewayTime, WAITED_NS_MAX};

/// So long after the last order no more watermarks are sent.
const QUIET_NS: u64 = 100_000_000;
/// Watermarks in the time since the last order.
const PER_PAUSE: u64 = 4;
/// Where the watermark behind a round's orders is not past the last of them, the next one follows after this part of the usual time
/// between two.
const SOON_PART: u64 = 8;

/// What a gateway may promise, and has promised.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// From one to the next; 0 for never.
    every_ns: u64,
    /// Up to here everything is read, and passed on with the next round.
    until: Option<Stamp>,
    /// The last one that was sent.
    said_ns: u64,
    /// The latest stamp of the orders that were passed on here since the last watermark.
    stamped_ns: u64,
    /// When an order came last, somewhere in the venue, by this process.
    order_ns: u64,
    next_ns: u64,
}

impl Promise {
    /// Nothing is promised.
    #[must_use]
    pub fn new(every_ns: u64) -> Self {
        Self { every_ns, until: None, said_ns: 0, stamped_ns: 0, order_ns: 0, next_ns: u64::MAX }
    }

    /// All that reached the edge here up to this time has been taken in; or nothing is stamped here now.
    pub fn taken_in(&mut self, until: Stamp) {
        self.until = Some(until);
    }

    /// An order with this stamp is passed on here.
    pub fn on_stamped(&mut self, at: GatewayTime) {
        self.stamped_ns = self.stamped_ns.max(at.time_ns);
        self.on_order(at.now_ns);
    }

    /// An order came somewhere in the venue: watermarks are of use.
    pub fn on_order(&mut self, now_ns: u64) {
        if self.every_ns > 0 {
            self.order_ns = now_ns;
            self.next_ns = self.next_ns.min(now_ns.saturating_add(self.every_ns));
        }
    }

    /// The watermark to send now, if any, behind the orders of this round. `has_sent`: there were some.
    pub fn due(&mut self, now_ns: u64, has_sent: bool) -> Option<Stamp> {
        if self.every_ns == 0 || !(has_sent || now_ns >= self.next_ns) {
            return None;
        }
        let quiet_ns = now_ns.saturating_sub(self.order_ns);
        let stamped_ns = std::mem::take(&mut self.stamped_ns);
        let is_owed = matches!(self.until, Some(Stamp::Gateway(until_ns)) if until_ns < stamped_ns);
        let pause_ns = if is_owed { self.every_ns / SOON_PART } else { self.every_ns.max(quiet_ns / PER_PAUSE) };
        self.next_ns = if quiet_ns > QUIET_NS { u64::MAX } else { now_ns.saturating_add(pause_ns) };
        self.now()
    }

    /// The watermark that holds now. A gateway that is also the leader takes it at any time, since it sends nothing.
    #[must_use]
    pub fn now(&mut self) -> Option<Stamp> {
        if self.every_ns == 0 {
            return None;
        }
        if let Some(Stamp::Gateway(until_ns)) = self.until {
            self.said_ns = until_ns;
        }
        self.until
    }

    /// How long ago the last order came; `None` where that is so long that watermarks are of no use, or none are sent.
    #[must_use]
    pub fn quiet_ns(&self, now_ns: u64) -> Option<u64> {
        let quiet_ns = now_ns.saturating_sub(self.order_ns);
        (self.order_ns > 0 && quiet_ns <= QUIET_NS).then_some(quiet_ns)
    }

    /// Whether the host says what it has taken in.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.every_ns > 0 && self.until.is_some()
    }

    /// When [`Promise::due`] has one to send, if no order comes before.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The time at which what is read now counts as having come: later than what was promised. It is raised where bytes could be read only
    /// microseconds after the kernel's stamp, or where one participant sent so much at once that others had a turn in between. A time that
    /// is earlier by more than bytes ever wait stays as it is: the clock was set back.
    #[must_use]
    pub fn keep(&self, at: GatewayTime) -> GatewayTime {
        let early_ns = self.said_ns.saturating_add(1).saturating_sub(at.time_ns);
        if early_ns <= WAITED_NS_MAX { GatewayTime { time_ns: at.time_ns + early_ns, ..at } } else { at }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_fair_access::clock::ClockStatus;
    use walras_types::TimeNs;

    use super::*;

    fn at(time_ns: u64) -> GatewayTime {
        GatewayTime { now_ns: 1, now: TimeNs(2), time_ns, status: ClockStatus::Good }
    }

    #[test]
    fn watermarks_come_with_orders_and_ever_more_rarely_after_them() {
        let mut promise = Promise::new(100);
        promise.taken_in(Stamp::Gateway(7));
        assert_eq!((promise.next_ns(), promise.due(50, false)), (u64::MAX, None), "nothing was ordered yet");
        promise.on_order(1_000);
        assert_eq!((promise.next_ns(), promise.due(1_099, false)), (1_100, None));
        assert_eq!(promise.due(1_000, true), Some(Stamp::Gateway(7)), "behind orders at once");
        assert_eq!(promise.due(1_100, false), Some(Stamp::Gateway(7)));
        assert_eq!(promise.next_ns(), 1_200);
        let mut sent = 0;
        while promise.next_ns() < u64::MAX {
            sent += usize::from(promise.due(promise.next_ns(), false).is_some());
        }
        assert!((40..100).contains(&sent), "{sent} in the time in which {} would fit", QUIET_NS / 100);
        promise.on_order(QUIET_NS * 3);
        assert_eq!(promise.next_ns(), QUIET_NS * 3 + 100);
        promise.taken_in(Stamp::OnArrival);
        assert_eq!(promise.due(QUIET_NS * 3 + 100, false), Some(Stamp::OnArrival));
    }

    #[test]
    fn an_order_that_the_watermark_behind_it_is_not_past_has_another_one_soon() {
        let mut promise = Promise::new(800);
        promise.taken_in(Stamp::Gateway(5_000));
        promise.on_stamped(GatewayTime { now_ns: 9_000, ..at(5_010) });
        assert_eq!((promise.due(9_000, true), promise.next_ns()), (Some(Stamp::Gateway(5_000)), 9_100));
        promise.taken_in(Stamp::Gateway(5_100));
        assert_eq!((promise.due(9_100, false), promise.next_ns()), (Some(Stamp::Gateway(5_100)), 9_900));
        // A leaf that says nothing holds it back: the short pause does not repeat.
        promise.on_stamped(GatewayTime { now_ns: 10_000, ..at(6_010) });
        let mut count = 0;
        while promise.next_ns() < 12_000 {
            count += usize::from(promise.due(promise.next_ns(), false).is_some());
        }
        assert!((3..6).contains(&count), "{count}");
    }

    #[test]
    fn without_watermarks_nothing_is_promised() {
        let mut promise = Promise::new(0);
        promise.taken_in(Stamp::Gateway(7));
        promise.on_order(1);
        assert_eq!((promise.next_ns(), promise.due(5, true), promise.now()), (u64::MAX, None, None));
        assert_eq!(promise.keep(at(3)).time_ns, 3);
    }

    proptest! {
        /// No stamp is at or below a watermark that was sent, whenever the host reads, unless the clock was set back.
        #[test]
        fn what_is_promised_is_kept(steps in prop::collection::vec((0_u64..3, 0_u64..1_000), 1..60)) {
            let mut promise = Promise::new(10);
            let (mut now_ns, mut said_ns) = (1_000_000_000, 0);
            for (step, by_ns) in steps {
                now_ns += by_ns;
                match step {
                    0 => promise.taken_in(Stamp::Gateway(now_ns)),
                    1 => {
                        if let Some(Stamp::Gateway(until_ns)) = promise.due(now_ns, true) {
                            said_ns = until_ns;
                        }
                    }
                    _ => prop_assert!(promise.keep(at(now_ns.saturating_sub(by_ns))).time_ns > said_ns),
                }
            }
            let back_ns = said_ns.saturating_sub(WAITED_NS_MAX + 1);
            prop_assert!(said_ns <= WAITED_NS_MAX || promise.keep(at(back_ns)).time_ns == back_ns);
        }
    }
}
