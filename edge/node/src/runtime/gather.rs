//! Lets input gather before a round, where so much comes that each piece alone would cost a wake-up and a system call of its own.

use std::time::Duration;

/// Messages that a window must be expected to bring, so that waiting for them pays.
const MESSAGES_MIN: u64 = 8;
/// The rate is that of the last whole slot of so long.
const SLOT_NS: u64 = 2_000_000;

/// When the next round may begin.
#[derive(Debug)]
pub(super) struct Gather {
    window_ns: u64,
    /// When the last round began.
    began_ns: u64,
    /// The slot that is being counted, and messages in it.
    slot: u64,
    count: u64,
    /// Messages of the slot before it.
    count_before: u64,
}

impl Gather {
    /// Rounds are so far apart under load; zero: never.
    pub(super) fn new(window: Duration) -> Self {
        let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        Self { window_ns, began_ns: 0, slot: 0, count: 0, count_before: 0 }
    }

    /// A round that began then has taken so many messages.
    pub(super) fn took(&mut self, began_ns: u64, messages: u64) {
        self.began_ns = began_ns;
        self.count_at(began_ns);
        self.count += messages;
    }

    fn count_at(&mut self, now_ns: u64) {
        let slot = now_ns / SLOT_NS;
        if slot != self.slot {
            self.count_before = if slot == self.slot + 1 { self.count } else { 0 };
            (self.slot, self.count) = (slot, 0);
        }
    }

    /// How long to wait before the next round; `None`: not at all.
    pub(super) fn pause(&mut self, now_ns: u64) -> Option<Duration> {
        self.count_at(now_ns);
        let until_ns = self.began_ns.saturating_add(self.window_ns);
        let is_much = self.count_before.saturating_mul(self.window_ns) >= MESSAGES_MIN * SLOT_NS;
        (is_much && now_ns < until_ns).then(|| Duration::from_nanos(until_ns - now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_NS: u64 = 200_000;

    /// How much of a second is waited, where so many messages come in each round and a round takes so long.
    fn paused_ns(window_ns: u64, messages: u64, round_ns: u64) -> u64 {
        let mut gather = Gather::new(Duration::from_nanos(window_ns));
        let (mut now_ns, mut paused_ns) = (0, 0);
        while now_ns < 1_000_000_000 {
            if let Some(pause) = gather.pause(now_ns) {
                let pause_ns = u64::try_from(pause.as_nanos()).unwrap();
                assert!(pause_ns <= window_ns);
                now_ns += pause_ns;
                paused_ns += pause_ns;
            }
            gather.took(now_ns, messages);
            now_ns += round_ns;
        }
        paused_ns
    }

    #[test]
    fn only_where_much_comes_is_it_waited_for() {
        assert_eq!(paused_ns(WINDOW_NS, 3, 2_000_000), 0, "500 orders a second are passed on at once");
        assert_eq!(paused_ns(0, 100, 20_000), 0, "switched off");
        assert!(paused_ns(WINDOW_NS, 30, 50_000) > 700_000_000, "150 us of 200");
        assert_eq!(paused_ns(WINDOW_NS, 30, 250_000), 0, "a round that takes longer than the window is followed at once");
    }

    #[test]
    fn after_a_burst_nothing_waits() {
        let mut gather = Gather::new(Duration::from_nanos(WINDOW_NS));
        (0..100).for_each(|at| gather.took(at * 50_000, 20));
        assert!(gather.pause(100 * 50_000).is_some());
        gather.took(100 * 50_000 + 2 * SLOT_NS, 1);
        assert_eq!(gather.pause(100 * 50_000 + 2 * SLOT_NS), None);
    }
}
