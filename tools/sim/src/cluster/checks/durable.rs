//! What anybody applies would survive the power failing everywhere at once: a majority has it on disk.

use std::collections::BTreeSet;

use walras_consensus::{Members, ReplicaId};
use walras_sequencer::Entry;

use crate::common::checks::{Checked, Violation};

/// `holds` says of a replica whether it would have the entry; `members` are the latest ones, since an entry may have been decided
/// by those of a moment ago.
pub(crate) fn check(entry: &Entry, members: &[Members], holds: impl Fn(ReplicaId) -> bool) -> Checked {
    let everybody: BTreeSet<ReplicaId> =
        members.iter().flat_map(|members| members.voters.union(&members.outgoing)).copied().collect();
    let mut holders = BTreeSet::new();
    // Looking at a disk is dear: a majority is enough.
    for id in everybody.into_iter().filter(|id| holds(*id)) {
        holders.insert(id);
        if members.iter().any(|members| members.is_majority(&holders)) {
            return Ok(());
        }
    }
    let detail =
        format!("entry {} is applied, and only {holders:?} of {members:?} would have it after a power failure", entry.log_index);
    Err(Violation::new("durable first", detail))
}

#[cfg(test)]
mod tests {
    use walras_wire::{Command, VenueCommand};

    use super::*;
    use crate::common::checks::replay::Replayed;

    #[test]
    fn an_entry_on_too_few_disks_is_found() {
        let entry = Replayed::plain(1, 1, Command::Venue(VenueCommand::Tick), Vec::new()).entry;
        let members = [Members::of_voters((1..=3).filter_map(ReplicaId::new))];
        check(&entry, &members, |id| id.get() != 2).unwrap();
        assert!(check(&entry, &members, |id| id.get() == 2).is_err());
    }
}
