//! How late receivers of the relay tree say that market data comes: of no piece does the leader hear of a longer delay than some receiver
//! saw, unless a relay lies. Whatever anybody says, the delay in the log stays within its bounds.
//!
//! Known from outside: when packets arrived at receivers by their clocks, and the log.

use std::collections::BTreeMap;

use crate::cluster::replica::releases::DELAY_NS_MAX;
use crate::common::checks::{Checked, Violation};

const CHECK: &str = "lateness";

/// Pieces that are remembered.
const PIECES_MAX: usize = 8_192;

/// What receivers saw.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// By release time: the longest delay.
    late_ns: BTreeMap<u64, i64>,
    heard: u64,
}

impl Pieces {
    /// Samples that leaders heard.
    pub(super) fn heard_count(&self) -> u64 {
        self.heard
    }

    /// The first copy of a packet of a piece came to a receiver so late.
    pub(super) fn on_arrival(&mut self, release_ns: u64, late_ns: i64) {
        let known = self.late_ns.entry(release_ns).or_insert(late_ns);
        *known = late_ns.max(*known);
        if self.late_ns.len() > PIECES_MAX {
            self.late_ns.pop_first();
        }
    }

    /// A leader hears of a piece.
    pub(super) fn on_heard(&mut self, release_ns: u64, late_ns: i64, lies: bool) -> Checked {
        self.heard += 1;
        let known_ns = self.late_ns.get(&release_ns).copied();
        let is_forgotten = self.late_ns.first_key_value().is_none_or(|(first_ns, _)| release_ns < *first_ns);
        if lies || is_forgotten || known_ns.is_some_and(|known_ns| late_ns <= known_ns) {
            return Ok(());
        }
        let detail =
            format!("a leader hears that the piece of {release_ns} came {late_ns} ns late, and receivers saw {known_ns:?}");
        Err(Violation::new(CHECK, detail))
    }

    /// The log sets the time for which market data is held.
    pub(super) fn on_delay(release_ns: u64) -> Checked {
        if release_ns <= DELAY_NS_MAX {
            return Ok(());
        }
        Err(Violation::new(CHECK, format!("market data is to be held for {release_ns} ns, {DELAY_NS_MAX} at most")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_that_nobody_saw_or_that_is_out_of_bounds_is_found() {
        let mut pieces = Pieces::default();
        pieces.on_arrival(100, -5);
        pieces.on_arrival(100, 7);
        pieces.on_arrival(100, 3);
        pieces.on_heard(100, 7, false).unwrap();
        assert!(pieces.on_heard(100, 8, false).is_err() && pieces.on_heard(101, 0, false).is_err());
        pieces.on_heard(100, 8, true).expect("a relay lies");
        pieces.on_heard(99, 8, false).expect("nobody remembers it");
        assert_eq!(pieces.heard_count(), 5);
        Pieces::on_delay(DELAY_NS_MAX).unwrap();
        assert!(Pieces::on_delay(DELAY_NS_MAX + 1).is_err());
    }
}
