//! The clock of one venue.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use walras_types::TimeNs;

/// A clock that never goes back while the process lives, even if the computer's clock does. All parts of a venue read the same one,
/// so a later reading is never smaller. For example, a command's log time is never before the time at which the gateway admitted
/// it. Clones are cheap.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> TimeNs + Send + Sync>,
    latest_ns: Arc<AtomicU64>,
}

impl Clock {
    /// The computer's.
    #[must_use]
    pub fn system() -> Self {
        Self::new(now)
    }

    /// Any other.
    #[must_use]
    pub fn new(read: impl Fn() -> TimeNs + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), latest_ns: Arc::default() }
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> TimeNs {
        let read = (self.read)();
        TimeNs(self.latest_ns.fetch_max(read.0, Relaxed)).max(read)
    }
}

/// The time of day by this computer. Whatever belongs to a venue reads that venue's [`Clock`].
#[must_use]
pub fn now() -> TimeNs {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    TimeNs(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("latest_ns", &self.latest_ns).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_still_where_the_computers_goes_back() {
        let shown = Arc::new(AtomicU64::new(10));
        let clock = Clock::new({
            let shown = Arc::clone(&shown);
            move || TimeNs(shown.load(Relaxed))
        });
        let same = clock.clone();
        let mut read = Vec::new();
        for at in [10, 12, 7, 11, 13] {
            shown.store(at, Relaxed);
            read.push((clock.now().0, same.now().0));
        }
        assert_eq!(read, [(10, 10), (12, 12), (12, 12), (12, 12), (13, 13)]);
    }
}
