//! Transactions on pools are taken from the entry on that puts rules in force that know them, and refused before with the reason
//! that says so: from the log's commands and events alone.

use walras_types::{BatchOperation, EngineVersion, RejectReason};
use walras_wire::{BatchCommand, BatchEvent, Command, Event, Rejected, VenueEvent};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// The first version whose batch markets have pools.
const WITH_POOLS: EngineVersion = EngineVersion(12);

/// The version in force.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// `None` before the first entry that says one: the log is older than these.
    in_force: Option<EngineVersion>,
    refused: u64,
    taken: u64,
}

const CHECK: &str = "versions";

impl Versions {
    /// Transactions on pools that were refused for the version in force, and that were taken.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.refused, self.taken]
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        let command = replayed.entry.content.command();
        if self.in_force.is_some_and(|version| command.is_some_and(|command| command.since() > version)) {
            // The leader takes none, so none is in the log.
            let what = format!("entry {}, under {:?}: {command:?} is of a later version", replayed.entry.log_index, self.in_force);
            return Err(Violation::new(CHECK, what));
        }
        let is_of_pool = match command {
            Some(Command::Batch(BatchCommand::Submit(submitted))) => matches!(
                submitted.transaction().operation,
                BatchOperation::CreatePool(_) | BatchOperation::DepositToPool(_) | BatchOperation::WithdrawFromPool(_)
            ),
            _ => false,
        };
        let taken = replayed.events.iter().try_for_each(|event| self.take(event, is_of_pool));
        taken
            .map_err(|what| Violation::new(CHECK, format!("entry {}, under {:?}: {what}", replayed.entry.log_index, self.in_force)))
    }

    fn take(&mut self, event: &Event, is_of_pool: bool) -> Result<(), String> {
        let has_pools = self.in_force.is_some_and(|version| version >= WITH_POOLS);
        match event {
            Event::Venue(VenueEvent::EngineVersionSet(version)) => self.in_force = Some(*version),
            Event::Rejected(Rejected { reason: RejectReason::NeedsLaterVersion, .. }) => {
                self.refused += 1;
                if has_pools || !is_of_pool {
                    return Err("a transaction is refused that these rules know".to_owned());
                }
            }
            Event::Batch(BatchEvent::TransactionCollected(_)) if is_of_pool => {
                self.taken += 1;
                if !has_pools {
                    return Err("a transaction on a pool is taken, which these rules do not know".to_owned());
                }
            }
            Event::Batch(
                BatchEvent::PoolCreated(_)
                | BatchEvent::PoolDeposited(_)
                | BatchEvent::PoolWithdrawn(_)
                | BatchEvent::PoolClosed(_)
                | BatchEvent::PoolTraded(_),
            ) if !has_pools => return Err(format!("there is a pool: {event:?}")),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{AccountId, BatchMarketId, TransactionSeq};
    use walras_wire::TransactionCollected;

    use super::*;

    #[test]
    fn what_is_taken_too_early_or_refused_too_late_is_found() {
        let reason = RejectReason::NeedsLaterVersion;
        let refused = Event::Rejected(Rejected { account: None, instrument: None, client_order_id: None, reason });
        let (market, account, sequence) = (BatchMarketId(0), AccountId(0), TransactionSeq(1));
        let collected = TransactionCollected { market, account, sequence, block: 1 };
        let collected = Event::Batch(BatchEvent::TransactionCollected(collected));
        let mut versions = Versions::default();
        versions.take(&refused, true).unwrap();
        assert!(versions.take(&refused, false).is_err(), "it is no pool's");
        assert!(versions.take(&collected, true).is_err(), "too early");
        versions.take(&Event::Venue(VenueEvent::EngineVersionSet(WITH_POOLS)), false).unwrap();
        versions.take(&collected, true).unwrap();
        assert!(versions.take(&refused, true).is_err(), "too late");
        assert_eq!(versions.counts(), [3, 2]);
    }
}
