//! How fast a new segment is filled: slowly beside a log that writes, and no later than the log needs it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What the writer of the log and who fills its next segment tell each other. No memory depends on it, hence no ordering.
#[derive(Debug, Default)]
pub struct Pace {
    in_a_hurry: AtomicBool,
    filled_bytes: AtomicU64,
}

impl Pace {
    /// For somebody who waits for it.
    #[must_use]
    pub fn hurried() -> Self {
        Self { in_a_hurry: AtomicBool::new(true), filled_bytes: AtomicU64::new(0) }
    }

    /// Whether nobody waits for it yet, so that whoever else uses the disk comes first.
    #[must_use]
    pub fn has_time(&self) -> bool {
        !self.in_a_hurry.load(Ordering::Relaxed)
    }

    /// Notes how far it is.
    pub fn note_filled(&self, bytes: u64) {
        self.filled_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Somebody waits for it.
    pub(crate) fn hurry(&self) {
        self.in_a_hurry.store(true, Ordering::Relaxed);
    }

    /// The log has used `used_bytes` of the `active_bytes` before it comes to this segment of `coming_bytes`. In proportion, filling it must be
    /// twice as far: who only keeps up is late, because something comes between again and again.
    pub(crate) fn keep_ahead_of(&self, used_bytes: u64, active_bytes: u64, coming_bytes: u64) {
        let filled_bytes = self.filled_bytes.load(Ordering::Relaxed);
        let is_behind = filled_bytes < coming_bytes
            && u128::from(filled_bytes) * u128::from(active_bytes) < 2 * u128::from(used_bytes) * u128::from(coming_bytes);
        self.in_a_hurry.store(is_behind, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_hurries_only_when_the_log_is_further_or_somebody_waits() {
        let pace = Pace::default();
        assert!(pace.has_time());
        pace.keep_ahead_of(1, 100, 400);
        assert!(!pace.has_time(), "nothing is filled and something is used");
        for (filled, used, has_time) in [(8, 1, true), (200, 25, true), (199, 25, false), (199, 24, true), (399, 60, false)] {
            pace.note_filled(filled);
            pace.keep_ahead_of(used, 100, 400);
            assert_eq!(pace.has_time(), has_time, "{filled} of 400 filled, {used} of 100 used");
        }
        pace.keep_ahead_of(0, 100, 400);
        pace.hurry();
        assert!(!pace.has_time());
        assert!(!Pace::hurried().has_time());
    }
}
