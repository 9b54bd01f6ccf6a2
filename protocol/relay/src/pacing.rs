//! How fast a node sends to its parent: slower while the link's one-way delay is above what it is at rest.
//!
//! - [`Pacer::published`]: of the delays of the last 50 ms the median; 20 us more between two sends for each 10 us above the
//!   threshold, 10 us less for each 10 us below it. It knows nothing of the rate at which the parent takes: with packets 10 us apart
//!   and a delay of milliseconds it stops the node, and then lets it go at once.
//! - [`Pacer::draining`], ours: of the last 5 ms the median delay, and how many packets the parent took, which is the rate that it
//!   carries while it has a queue. Above the threshold the node sends at that rate, less what lets the queue drain in 20 ms; below it a
//!   sixteenth faster each time.
//!
//! *Source*: Jasper, section 5.1.

use crate::thinned::Thinned;

/// Steps in which the delay counts, as published.
const STEP_NS: u64 = 10_000;
/// More between two sends for each step above.
const SLOWER_NS: u64 = 20_000;
/// Less for each step below.
const FASTER_NS: u64 = 10_000;
/// Ours: what is above the threshold is gone after so long.
const DRAIN_NS: u64 = 20_000_000;
const MEDIAN_PPM: u32 = 500_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Published,
    Draining,
}

impl Rule {
    /// The median is over so long.
    const fn window_ns(self) -> u64 {
        match self {
            Self::Published => 50_000_000,
            Self::Draining => 5_000_000,
        }
    }
}

/// Paces one node's sends to its parent.
#[derive(Clone, Debug)]
pub struct Pacer {
    rule: Rule,
    threshold_ns: u64,
    pause_ns_max: u64,
    pause_ns: u64,
    window_ns: Option<u64>,
    delays_ns: Thinned,
    /// Packets of the window that the parent took.
    taken: u64,
    sent_ns: Option<u64>,
}

impl Pacer {
    /// The published rule. Sends without a pause at first. `threshold_ns` is the link's delay at a rate that it carries,
    /// `pause_ns_max` the longest pause between two sends, whatever the delays.
    #[must_use]
    pub const fn published(threshold_ns: u64, pause_ns_max: u64) -> Self {
        Self::new(Rule::Published, threshold_ns, pause_ns_max)
    }

    /// Our rule, with the same settings.
    #[must_use]
    pub const fn draining(threshold_ns: u64, pause_ns_max: u64) -> Self {
        Self::new(Rule::Draining, threshold_ns, pause_ns_max)
    }

    const fn new(rule: Rule, threshold_ns: u64, pause_ns_max: u64) -> Self {
        let delays_ns = Thinned::new();
        Self { rule, threshold_ns, pause_ns_max, pause_ns: 0, window_ns: None, delays_ns, taken: 0, sent_ns: None }
    }

    /// The pause between two sends now.
    #[must_use]
    pub const fn pause_ns(&self) -> u64 {
        self.pause_ns
    }

    /// What was sent took so long to the parent.
    pub fn on_delay(&mut self, now_ns: u64, delay_ns: u64) {
        let begun_ns = *self.window_ns.get_or_insert(now_ns);
        let passed_ns = now_ns.saturating_sub(begun_ns);
        if passed_ns >= self.rule.window_ns() {
            self.adjust(passed_ns);
            (self.window_ns, self.taken) = (Some(now_ns), 0);
        }
        self.delays_ns.push(i64::try_from(delay_ns).unwrap_or(i64::MAX));
        self.taken += 1;
    }

    fn adjust(&mut self, passed_ns: u64) {
        let Some(median_ns) = self.delays_ns.take_quantile(MEDIAN_PPM).map(|ns| u64::try_from(ns).unwrap_or(0)) else { return };
        let above_ns = median_ns.saturating_sub(self.threshold_ns);
        let below_ns = self.threshold_ns.saturating_sub(median_ns);
        self.pause_ns = match self.rule {
            Rule::Published => {
                let slower_ns = self.pause_ns.saturating_add((above_ns / STEP_NS).saturating_mul(SLOWER_NS));
                slower_ns.saturating_sub((below_ns / STEP_NS).saturating_mul(FASTER_NS))
            }
            Rule::Draining if above_ns > 0 => {
                // At most half as fast as the parent takes: then the queue drains anyway.
                let drained_ns = above_ns.min(DRAIN_NS / 2);
                let taken_apart_ns = u128::from(passed_ns / self.taken.max(1));
                u64::try_from(taken_apart_ns * u128::from(DRAIN_NS) / u128::from(DRAIN_NS - drained_ns)).unwrap_or(u64::MAX)
            }
            Rule::Draining => self.pause_ns / 16 * 15,
        }
        .min(self.pause_ns_max);
    }

    /// When the next order may be sent.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.sent_ns.map_or(0, |sent_ns| sent_ns.saturating_add(self.pause_ns))
    }

    /// An order is sent.
    pub const fn on_sent(&mut self, now_ns: u64) {
        self.sent_ns = Some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use walras_random::Random;

    use super::*;

    /// A window of so many equal delays, from a time on.
    fn window(pacer: &mut Pacer, from_ns: u64, delay_ns: u64) {
        (0..50).for_each(|ms| pacer.on_delay(from_ns + ms * 1_000_000, delay_ns));
    }

    #[test]
    fn the_published_pause_follows_the_median_delay() {
        let mut pacer = Pacer::published(100_000, 1_000_000);
        assert_eq!((pacer.pause_ns(), pacer.next_ns()), (0, 0));
        let mut from_ns = 7;
        let mut pauses = Vec::new();
        for delay_us in [100, 109, 110, 135, 95, 60, 60, 20, 10_000, 10_000, 0] {
            window(&mut pacer, from_ns, delay_us * 1_000);
            from_ns += Rule::Published.window_ns();
            pacer.on_delay(from_ns, delay_us * 1_000);
            pauses.push(pacer.pause_ns() / 1_000);
        }
        // One step above, then three; within a step nothing; four steps below, twice; never below nothing, nor above the most.
        assert_eq!(pauses, [0, 0, 20, 80, 80, 40, 0, 0, 1_000, 1_000, 900]);
        pacer.on_sent(5_000);
        assert_eq!(pacer.next_ns(), 905_000);
    }

    #[test]
    fn spikes_change_nothing() {
        for mut pacer in [Pacer::published(50_000, 1_000_000), Pacer::draining(50_000, 1_000_000)] {
            let draw = &mut Random::new(3);
            for at in 0..200_000_u64 {
                let delay_ns = if draw.below(10) < 4 { draw.below(u64::MAX) } else { 50_000 };
                pacer.on_delay(at * 2_500, delay_ns);
            }
            assert_eq!(pacer.pause_ns(), 0);
        }
    }

    /// A node with more to send than its parent takes, which has room for 1,024 packets. How many of these packets are lost, and how
    /// many are taken, in a second.
    fn backlogged(mut pacer: Pacer, taken_apart_ns: u64) -> (u64, u64) {
        const WAY_NS: u64 = 30_000;
        let (mut served_ns, mut lost, mut taken) = (VecDeque::<u64>::new(), 0, 0);
        // When the delays of packets are known, and what they are.
        let mut known: VecDeque<(u64, u64)> = VecDeque::new();
        let mut now_ns = 0;
        while now_ns < 1_000_000_000 {
            while known.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
                let (at_ns, delay_ns) = known.pop_front().unwrap();
                pacer.on_delay(at_ns, delay_ns);
            }
            let arrives_ns = now_ns + WAY_NS;
            while served_ns.front().is_some_and(|at_ns| *at_ns <= arrives_ns) {
                served_ns.pop_front();
            }
            if served_ns.len() < 1_024 {
                let at_ns = arrives_ns.max(served_ns.back().copied().unwrap_or(0)) + taken_apart_ns;
                served_ns.push_back(at_ns);
                known.push_back((at_ns + WAY_NS, at_ns - now_ns));
                taken += u64::from(at_ns < 1_000_000_000);
            } else {
                lost += 1;
            }
            pacer.on_sent(now_ns);
            now_ns = pacer.next_ns().max(now_ns + 2_000);
        }
        (lost, taken)
    }

    #[test]
    fn draining_neither_loses_nor_wastes_and_the_published_rule_does_one_of_both() {
        for taken_apart_ns in [5_000, 10_000, 40_000] {
            let most = 1_000_000_000 / taken_apart_ns;
            let (unpaced_lost, _) = backlogged(Pacer::draining(u64::MAX, 0), taken_apart_ns);
            let (lost, taken) = backlogged(Pacer::draining(200_000, 1_000_000), taken_apart_ns);
            assert!(
                lost * 20 < unpaced_lost && taken * 10 > most * 9,
                "{taken_apart_ns}: {lost} of {unpaced_lost} lost, {taken} of {most}"
            );
            let (lost, taken) = backlogged(Pacer::published(200_000, 1_000_000), taken_apart_ns);
            assert!(lost * 20 > unpaced_lost || taken * 10 < most * 9, "{taken_apart_ns}: {lost} lost, {taken} of {most}");
        }
    }
}
