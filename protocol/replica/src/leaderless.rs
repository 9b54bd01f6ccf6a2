//! A replica that knows no leader for long: it was removed, is cut off, or nobody can be elected. With fair access it takes orders all the
//! same, for an election is soon over. Past that, participants should try elsewhere.

/// Longer than any election takes.
const PATIENCE_NS: u64 = 10_000_000_000;

/// When participants are to go elsewhere.
#[derive(Debug)]
pub(crate) struct Leaderless {
    /// Never while a leader is known.
    due_ns: u64,
}

impl Leaderless {
    pub(crate) const fn new() -> Self {
        Self { due_ns: u64::MAX }
    }

    /// Whether participants are to go elsewhere now: each time that no leader was known for so long.
    pub(crate) fn sends_away(&mut self, now_ns: u64, knows_leader: bool) -> bool {
        let is_due = !knows_leader && now_ns >= self.due_ns;
        if knows_leader {
            self.due_ns = u64::MAX;
        } else if is_due || self.due_ns == u64::MAX {
            self.due_ns = now_ns.saturating_add(PATIENCE_NS);
        }
        is_due
    }

    /// When [`sends_away`](Self::sends_away) may say yes.
    pub(crate) const fn deadline_ns(&self) -> u64 {
        self.due_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_begins_again_with_each_leader() {
        let mut leaderless = Leaderless::new();
        assert!(!leaderless.sends_away(u64::MAX, true) && leaderless.deadline_ns() == u64::MAX);
        assert!(!leaderless.sends_away(5, false) && leaderless.deadline_ns() == 5 + PATIENCE_NS);
        assert!(!leaderless.sends_away(4 + PATIENCE_NS, false));
        assert!(!leaderless.sends_away(5 + PATIENCE_NS, true), "one was elected in time");
        assert!(!leaderless.sends_away(6 + PATIENCE_NS, false));
        assert!(leaderless.sends_away(6 + 2 * PATIENCE_NS, false) && !leaderless.sends_away(7 + 2 * PATIENCE_NS, false));
        assert_eq!(leaderless.deadline_ns(), 6 + 3 * PATIENCE_NS, "others may have come meanwhile");
    }
}
