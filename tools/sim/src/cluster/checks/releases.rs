//! Fair access: market data is released at the same instant at all replicas, t_M + d_h, by what the log says of both; and at none before its
//! clock shows that.

use walras_consensus::ReplicaId;
use walras_types::LogIndex;
use walras_wire::Event;

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

const CHECK: &str = "release";

/// When what each entry publishes may be known.
#[derive(Debug, Default)]
pub(super) struct Releases {
    /// d_h after the last entry.
    delay_ns: u64,
    instants_ns: Vec<u64>,
    released: u64,
}

impl Releases {
    /// Pieces that were held until their time.
    pub(super) fn count(&self) -> u64 {
        self.released
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) {
        for event in &replayed.events {
            if let Event::AccessDelaysChanged(delays) = event {
                self.delay_ns = delays.release_ns;
            }
        }
        self.instants_ns.push(replayed.entry.time.0.saturating_add(self.delay_ns));
    }

    fn instant_ns(&self, log_index: LogIndex) -> Option<u64> {
        self.instants_ns.get(usize::try_from(log_index.0.checked_sub(1)?).ok()?).copied()
    }

    /// A replica publishes what an entry changed.
    pub(super) fn on_published(&self, replica: ReplicaId, log_index: LogIndex, release_ns: u64) -> Checked {
        let Some(instant_ns) = self.instant_ns(log_index) else { return Ok(()) };
        if instant_ns == release_ns {
            return Ok(());
        }
        let apart_ns = i128::from(release_ns) - i128::from(instant_ns);
        let detail =
            format!("replica {replica} means to release entry {log_index} {apart_ns} ns after the time that the log gives it");
        Err(Violation::new(CHECK, detail))
    }

    /// A replica lets go of it.
    pub(super) fn on_released(&mut self, replica: ReplicaId, log_index: LogIndex, clock_ns: u64) -> Checked {
        self.released += 1;
        match self.instant_ns(log_index) {
            Some(instant_ns) if clock_ns < instant_ns => {
                let early_ns = instant_ns - clock_ns;
                Err(Violation::new(CHECK, format!("replica {replica} releases entry {log_index} {early_ns} ns before its time")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_sequencer::Entry;
    use walras_types::TimeNs;
    use walras_wire::{AccessDelays, Command};

    use super::*;

    #[test]
    fn other_instants_and_early_releases_are_found() {
        let mut releases = Releases::default();
        for (index, delay_ns) in [(1, None), (2, Some(300)), (3, None)] {
            let events = delay_ns.map(|release_ns| Event::AccessDelaysChanged(AccessDelays { sequencing_ns: 9, release_ns }));
            let entry =
                Entry { log_index: LogIndex(index), time: TimeNs(1_000 * index), ordinal: None, content: Command::Tick.into() };
            releases.on_entry(&Replayed { entry, numbered: None, events: events.into_iter().collect(), hash: None });
        }
        let replica = ReplicaId::new(2).unwrap();
        for (index, instant_ns) in [(1, 1_000), (2, 2_300), (3, 3_300)] {
            releases.on_published(replica, LogIndex(index), instant_ns).unwrap();
            assert!(releases.on_published(replica, LogIndex(index), instant_ns + 1).is_err());
            releases.on_released(replica, LogIndex(index), instant_ns).unwrap();
            assert!(releases.on_released(replica, LogIndex(index), instant_ns - 1).is_err());
        }
        assert_eq!(releases.count(), 6);
    }
}
