//! Fair access: market data is published at the same entries and released at the same instants at all replicas, by what the log
//! says of both: at t_M + d_h, and not before what came earlier; and at none before its clock shows that. A replica that begins
//! from a state, which does not say how long what led there is held, may release later until the greatest delay is over; never
//! sooner.

use std::collections::BTreeMap;

use walras_consensus::ReplicaId;
use walras_types::LogIndex;
use walras_wire::{Event, VenueEvent};

use crate::cluster::replica::releases::{DELAY_NS_MAX, PUBLISH_EVERY_NS};
use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

const CHECK: &str = "release";

/// What the log says of an entry.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// When the state after it may be known.
    known_from_ns: u64,
    /// Whether it is the first of its interval.
    publishes: bool,
}

/// When what each entry publishes may be known.
#[derive(Debug, Default)]
pub(super) struct Releases {
    /// d_h after the last entry.
    delay_ns: u64,
    last_time_ns: u64,
    said: Vec<Said>,
    /// Of replicas the time of the state that they went on from last.
    begun_ns: BTreeMap<ReplicaId, u64>,
    released: u64,
}

impl Releases {
    /// Publications that were held until their time.
    pub(super) fn count(&self) -> u64 {
        self.released
    }

    /// One more was, which this does not judge.
    pub(super) fn count_released(&mut self) {
        self.released += 1;
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) {
        for event in &replayed.events {
            if let Event::Venue(VenueEvent::AccessDelaysChanged(delays)) = event {
                self.delay_ns = delays.release_ns;
            }
        }
        let time_ns = replayed.entry.time.0;
        let before_ns = self.said.last().map_or(0, |said| said.known_from_ns);
        let publishes = self.said.is_empty() || time_ns / PUBLISH_EVERY_NS > self.last_time_ns / PUBLISH_EVERY_NS;
        self.said.push(Said { known_from_ns: before_ns.max(time_ns.saturating_add(self.delay_ns)), publishes });
        self.last_time_ns = time_ns;
    }

    fn said(&self, log_index: LogIndex) -> Option<Said> {
        self.said.get(usize::try_from(log_index.0.checked_sub(1)?).ok()?).copied()
    }

    /// When the state after an entry may be known.
    pub(super) fn known_from_ns(&self, log_index: LogIndex) -> Option<u64> {
        self.said(log_index).map(|said| said.known_from_ns)
    }

    /// A replica goes on from a state of this time.
    pub(super) fn on_begin_from(&mut self, replica: ReplicaId, time_ns: u64) {
        self.begun_ns.insert(replica, time_ns);
    }

    /// A replica publishes what an entry changed.
    pub(super) fn on_published(&self, replica: ReplicaId, log_index: LogIndex, release_ns: Option<u64>) -> Checked {
        let Some(Said { known_from_ns, publishes }) = self.said(log_index) else { return Ok(()) };
        if !publishes {
            return Err(Violation::new(CHECK, format!("replica {replica} publishes at entry {log_index}, others do not")));
        }
        // Where it depends on clocks too, `instants.rs` judges when it is released.
        let Some(release_ns) = release_ns else { return Ok(()) };
        let begun_ns = self.begun_ns.get(&replica).map_or(0, |begun_ns| begun_ns.saturating_add(DELAY_NS_MAX));
        let instant_ns = known_from_ns.max(begun_ns);
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
        match self.said(log_index) {
            Some(Said { known_from_ns, .. }) if clock_ns < known_from_ns => {
                let early_ns = known_from_ns - clock_ns;
                Err(Violation::new(CHECK, format!("replica {replica} releases entry {log_index} {early_ns} ns before its time")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_wire::{AccessDelays, Command, VenueCommand};

    use super::*;

    /// Entries in intervals of their own, and one in the last one's.
    #[test]
    fn other_entries_other_instants_and_early_releases_are_found() {
        const EVERY: u64 = PUBLISH_EVERY_NS;
        let mut releases = Releases::default();
        for (index, time_ns, delay_ns) in
            [(1, EVERY, None), (2, 2 * EVERY, Some(EVERY)), (3, 3 * EVERY - 1, Some(0)), (4, 3 * EVERY, None)]
        {
            let events = delay_ns
                .map(|release_ns| Event::Venue(VenueEvent::AccessDelaysChanged(AccessDelays { sequencing_ns: 9, release_ns })));
            let tick = Command::Venue(VenueCommand::Tick);
            releases.on_entry(&Replayed::plain(index, time_ns, tick, events.into_iter().collect()));
        }
        let (replica, begun) = (ReplicaId::new(2).unwrap(), ReplicaId::new(3).unwrap());
        for (index, instant_ns) in [(1, EVERY), (2, 3 * EVERY), (4, 3 * EVERY)] {
            releases.on_published(replica, LogIndex(index), Some(instant_ns)).unwrap();
            assert!(releases.on_published(replica, LogIndex(index), Some(instant_ns + 1)).is_err());
            releases.on_released(replica, LogIndex(index), instant_ns).unwrap();
            assert!(releases.on_released(replica, LogIndex(index), instant_ns - 1).is_err());
        }
        assert!(releases.on_published(replica, LogIndex(3), Some(3 * EVERY)).is_err(), "it is not the first of its interval");
        releases.on_begin_from(begun, 3 * EVERY - 1);
        assert!(
            releases.on_published(begun, LogIndex(4), Some(3 * EVERY)).is_err(),
            "it cannot know that nothing is held for longer"
        );
        releases.on_published(begun, LogIndex(4), Some(3 * EVERY - 1 + DELAY_NS_MAX)).unwrap();
        assert_eq!(releases.count(), 6);
    }
}
