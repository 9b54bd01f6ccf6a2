//! Fair access where every machine knows the venue's time: no replica releases market data before t_M + d_h by the true time,
//! however wrong the clock of the leader is that stamped the entry. Judged where that clock was not moved while it led: a leader
//! reports of its clock from time to time, so that a jump shows a moment later.

use std::collections::BTreeMap;

use walras_consensus::ReplicaId;
use walras_types::LogIndex;
use walras_wire::{Event, VenueEvent};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// What was so when a leader proposed entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proposal {
    pub(crate) leader: ReplicaId,
    /// What its clock showed.
    pub(crate) clock_ns: u64,
    pub(crate) true_ns: u64,
    /// Its clock was not moved while it led, nor shortly before.
    pub(crate) is_steady: bool,
}

/// Proposals, and from when on the state after each entry may be known.
#[derive(Debug, Default)]
pub(super) struct Instants {
    /// By the last entry of each.
    proposals: BTreeMap<LogIndex, Proposal>,
    /// d_h after the last entry.
    delay_ns: u64,
    due_ns: BTreeMap<LogIndex, u64>,
    checked: u64,
}

const CHECK: &str = "release";

/// Both the leader and the replica that releases may be wrong about the venue's time, and clocks drift from one report to the next.
const SLACK_NS: u64 = 300_000;
/// An entry that was stamped longer before it was proposed is not judged.
const COLLECTED_NS_MAX: u64 = 500_000_000;

impl Instants {
    /// A leader that has applied the entries up to `applied` proposes those up to `made`. What others proposed for their places is
    /// lost.
    pub(super) fn on_proposed(&mut self, made: LogIndex, applied: LogIndex, proposal: Proposal) {
        self.proposals.retain(|last, earlier| *last <= applied || earlier.leader == proposal.leader);
        self.proposals.insert(made, proposal);
    }

    /// What was so when an entry was proposed.
    pub(super) fn proposal_of(&self, log_index: LogIndex) -> Option<Proposal> {
        self.proposals.range(log_index..).next().map(|(_, proposal)| *proposal)
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) {
        for event in &replayed.events {
            if let Event::Venue(VenueEvent::AccessDelaysChanged(delays)) = event {
                self.delay_ns = delays.release_ns;
            }
        }
        let (log_index, time_ns) = (replayed.entry.log_index, replayed.entry.time.0);
        if let Some(Proposal { clock_ns, true_ns, is_steady: true, .. }) = self.proposal_of(log_index)
            // One that is stamped later than the clock shows is stamped by the log.
            && let Some(collected_ns) = clock_ns.checked_sub(time_ns)
            && collected_ns < COLLECTED_NS_MAX
        {
            self.due_ns.insert(log_index, true_ns - collected_ns + self.delay_ns);
        }
    }

    /// A replica that knows how far the leader's clock was ahead releases what an entry published.
    pub(super) fn on_released(&mut self, replica: ReplicaId, log_index: LogIndex, true_ns: u64) -> Checked {
        let Some(due_ns) = self.due_ns.get(&log_index) else { return Ok(()) };
        self.checked += 1;
        if true_ns + SLACK_NS >= *due_ns {
            return Ok(());
        }
        let early_ns = due_ns - true_ns;
        let detail = format!("replica {replica} releases entry {log_index} {early_ns} ns before t_M + d_h by the true time");
        Err(Violation::new(CHECK, detail))
    }

    /// Releases that were judged.
    pub(super) fn count(&self) -> u64 {
        self.checked
    }
}

#[cfg(test)]
mod tests {
    use walras_wire::{Command, VenueCommand};

    use super::*;

    /// The leader's clock is an hour ahead.
    #[test]
    fn what_is_released_before_its_true_time_is_found() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let (one, two) = (ReplicaId::new(1).unwrap(), ReplicaId::new(2).unwrap());
        let proposal = |leader, is_steady| Proposal { leader, clock_ns: 2 * HOUR_NS + 500, true_ns: HOUR_NS + 500, is_steady };
        let mut instants = Instants { delay_ns: 1_000_000, ..Instants::default() };
        instants.on_proposed(LogIndex(9), LogIndex(0), proposal(one, false));
        instants.on_proposed(LogIndex(2), LogIndex(0), proposal(two, true));
        for (index, time_ns) in [(1, 2 * HOUR_NS), (2, 2 * HOUR_NS + 600)] {
            instants.on_entry(&Replayed::plain(index, time_ns, Command::Venue(VenueCommand::Tick), Vec::new()));
        }
        let due_ns = HOUR_NS + 1_000_000;
        assert!(instants.on_released(one, LogIndex(1), due_ns - SLACK_NS).is_ok());
        assert!(instants.on_released(one, LogIndex(1), due_ns - SLACK_NS - 1).is_err());
        assert!(instants.on_released(one, LogIndex(2), 0).is_ok(), "it was stamped by the log");
        assert_eq!(instants.count(), 2);
        assert!(instants.proposal_of(LogIndex(3)).is_none(), "another leader proposed for those places");
    }
}
