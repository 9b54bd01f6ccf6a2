//! The speed of filling a new segment: slowly, so as not to disturb the log's writes, but in time for the log to use it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// State shared by the log's writer and the thread that fills its next segment. It guards no other memory, so relaxed ordering is
/// enough.
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

    /// Whether nobody waits for the segment yet, so that other users of the disk have priority.
    #[must_use]
    pub fn has_time(&self) -> bool {
        !self.in_a_hurry.load(Ordering::Relaxed)
    }

    /// Records the progress.
    pub fn note_filled(&self, bytes: u64) {
        self.filled_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The writer waits for the segment.
    pub(crate) fn hurry(&self) {
        self.in_a_hurry.store(true, Ordering::Relaxed);
    }

    /// Sets the required progress: the log has used `used_bytes` of the `active_bytes` of its current segment, and the next one has
    /// `coming_bytes`. In proportion, filling must be twice as far, because other work delays it again and again.
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
