//! How many connections the system's limit of open files leaves room for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::info;
use walras_log_store::hold_descriptors;

/// Descriptors reserved for the log's next files and the snapshots.
const LOG_RESERVE: usize = 16;
/// Descriptors for everything except clients: segments, snapshots, the archive, files, peers, transfer relays.
const OWN_DESCRIPTORS: usize = 64;
/// Maximum number of displaced connections that are not closed yet.
pub const CLOSING_MAX: usize = 32;
/// One of this many descriptors is for what grows with the venue: the log's segments.
const GROWTH_SHARE: usize = 8;
/// Minimum number of client connections, even if that exceeds the limit of open files.
pub const CLIENTS_MIN: usize = 16;
/// Assumed number of open files at the start, if the system does not report it.
const OPEN_AT_START: usize = 32;

/// The limit of open files, and what it leaves for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Files and connections that this process may have open; `None` for no limit.
    pub limit: Option<usize>,
    /// Connections of clients, on all ports together.
    pub clients: usize,
}

impl Budget {
    /// As it is now, with what is open now.
    pub fn now() -> Self {
        let limit = getrlimit(Resource::Nofile).current.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Self::of(limit, open_now())
    }

    fn of(limit: Option<usize>, open: usize) -> Self {
        let clients = match limit {
            None => usize::MAX,
            Some(limit) => {
                let own = open.saturating_add(OWN_DESCRIPTORS + CLOSING_MAX + limit / GROWTH_SHARE);
                limit.saturating_sub(own).max(CLIENTS_MIN)
            }
        };
        Self { limit, clients }
    }
}

fn open_now() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(OPEN_AT_START, |open| open.count().saturating_sub(1))
}

/// Raises this process's limit of open files to the maximum, and reserves some descriptors for the log. To be called once, at the
/// start.
pub fn prepare_descriptors() {
    let before = getrlimit(Resource::Nofile);
    // If that is refused, the venue serves as many clients as the limit allows.
    if setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum }).is_ok()
        && before.current != before.maximum
    {
        let shown = |limit: Option<u64>| limit.map_or_else(|| "without limit".to_owned(), |limit| limit.to_string());
        info!("raised the limit of open files from {} to {}", shown(before.current), shown(before.maximum));
    }
    hold_descriptors(LOG_RESERVE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_leaves_the_venue_its_own_and_never_nothing() {
        assert_eq!(Budget::of(Some(256), 30).clients, 256 - 30 - 64 - 32 - 32);
        assert_eq!(Budget::of(Some(1024), 30).clients, 1024 - 30 - 64 - 32 - 128);
        assert_eq!(Budget::of(Some(64), 30).clients, CLIENTS_MIN);
        assert_eq!(Budget::of(None, 30), Budget { limit: None, clients: usize::MAX });
    }

    #[test]
    fn what_is_open_is_counted() {
        let before = open_now();
        let more: Vec<_> = (0..40).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open and close files meanwhile, but not so many.
        assert!(open_now() + 30 > before + more.len());
    }
}
