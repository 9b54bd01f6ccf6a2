//! How fast a node sends to its parent: slower while the link's one-way delay is above what it is at rest.
//!
//! *Source*: Jasper, section 5.1: of the delays of the last 50 ms the median; 20 us more between two sends for each 10 us above
//! the threshold, 10 us less for each 10 us below it.

/// The median is over so long.
const WINDOW_NS: u64 = 50_000_000;
/// Steps in which the delay counts.
const STEP_NS: u64 = 10_000;
/// More between two sends for each step above.
const SLOWER_NS: u64 = 20_000;
/// Less for each step below.
const FASTER_NS: u64 = 10_000;
/// Samples of a window. Of more, every second is kept, then every fourth.
const SAMPLES_MAX: usize = 1_024;

/// Paces one node's sends to its parent.
#[derive(Clone, Debug)]
pub struct Pacer {
    threshold_ns: u64,
    pause_ns_max: u64,
    pause_ns: u64,
    window_ns: Option<u64>,
    delays_ns: Vec<u64>,
    /// Of so many samples one is kept.
    one_of: u64,
    seen: u64,
    sent_ns: Option<u64>,
}

impl Pacer {
    /// Sends without a pause at first. `threshold_ns` is the link's delay at a rate that it carries, `pause_ns_max` the longest
    /// pause between two sends, whatever the delays.
    #[must_use]
    pub const fn new(threshold_ns: u64, pause_ns_max: u64) -> Self {
        Self { threshold_ns, pause_ns_max, pause_ns: 0, window_ns: None, delays_ns: Vec::new(), one_of: 1, seen: 0, sent_ns: None }
    }

    /// The pause between two sends now.
    #[must_use]
    pub const fn pause_ns(&self) -> u64 {
        self.pause_ns
    }

    /// What was sent took so long to the parent.
    pub fn on_delay(&mut self, now_ns: u64, delay_ns: u64) {
        let begun_ns = *self.window_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(begun_ns) >= WINDOW_NS {
            self.adjust();
            (self.window_ns, self.one_of, self.seen) = (Some(now_ns), 1, 0);
            self.delays_ns.clear();
        }
        if self.seen.is_multiple_of(self.one_of) {
            if self.delays_ns.len() == SAMPLES_MAX {
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

    fn adjust(&mut self) {
        let middle = self.delays_ns.len() / 2;
        let Some((_, median_ns, _)) = (!self.delays_ns.is_empty()).then(|| self.delays_ns.select_nth_unstable(middle)) else {
            return;
        };
        let above = median_ns.saturating_sub(self.threshold_ns) / STEP_NS;
        let below = self.threshold_ns.saturating_sub(*median_ns) / STEP_NS;
        let slower_ns = self.pause_ns.saturating_add(above.saturating_mul(SLOWER_NS));
        self.pause_ns = slower_ns.saturating_sub(below.saturating_mul(FASTER_NS)).min(self.pause_ns_max);
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
    use walras_random::Random;

    use super::*;

    /// A window of so many equal delays, from a time on.
    fn window(pacer: &mut Pacer, from_ns: u64, delay_ns: u64) {
        (0..50).for_each(|ms| pacer.on_delay(from_ns + ms * 1_000_000, delay_ns));
    }

    #[test]
    fn the_pause_follows_the_median_delay() {
        let mut pacer = Pacer::new(100_000, 1_000_000);
        assert_eq!((pacer.pause_ns(), pacer.next_ns()), (0, 0));
        let mut from_ns = 7;
        let mut pauses = Vec::new();
        for delay_us in [100, 109, 110, 135, 95, 60, 60, 20, 10_000, 10_000, 0] {
            window(&mut pacer, from_ns, delay_us * 1_000);
            from_ns += WINDOW_NS;
            pacer.on_delay(from_ns, delay_us * 1_000);
            pauses.push(pacer.pause_ns() / 1_000);
        }
        // One step above, then three; within a step nothing; four steps below, twice; never below nothing, nor above the most.
        assert_eq!(pauses, [0, 0, 20, 80, 80, 40, 0, 0, 1_000, 1_000, 900]);
        pacer.on_sent(5_000);
        assert_eq!(pacer.next_ns(), 905_000);
    }

    #[test]
    fn spikes_change_nothing_and_many_samples_cost_no_memory() {
        let (draw, mut pacer) = (&mut Random::new(3), Pacer::new(50_000, 1_000_000));
        for at in 0..200_000_u64 {
            let delay_ns = if draw.below(10) < 4 { draw.below(u64::MAX) } else { 50_000 };
            pacer.on_delay(at * 2_500, delay_ns);
            assert!(pacer.delays_ns.len() <= SAMPLES_MAX);
        }
        assert_eq!(pacer.pause_ns(), 0);
    }
}
