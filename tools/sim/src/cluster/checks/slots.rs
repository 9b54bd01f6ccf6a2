//! Logs are equal slot by slot, as far as they are decided; and of the changes of members in a log that a replica starts from, all
//! but the last are known there to be decided, or it would not know who has to agree.

use std::collections::BTreeMap;

use walras_consensus::{Body, ReplicaId, Slot, SlotEntry, Term};

use crate::common::checks::{Checked, Violation};

/// What the first replica that was looked at had in each slot.
#[derive(Debug, Default)]
pub(super) struct Slots {
    known: BTreeMap<Slot, (Term, Body, ReplicaId)>,
}

impl Slots {
    /// A replica's log holds this in slots that are decided.
    pub(super) fn on_decided(&mut self, replica: ReplicaId, entries: &[SlotEntry]) -> Checked {
        for SlotEntry { slot, term, body } in entries {
            let known = self.known.entry(*slot).or_insert_with(|| (*term, body.clone(), replica));
            if (known.0, &known.1) != (*term, body) {
                let detail = format!(
                    "replica {replica} has {body:?} of term {term} in slot {slot}, replica {} had {:?} of term {}",
                    known.2, known.1, known.0
                );
                return Err(Violation::new("log equality", detail));
            }
        }
        Ok(())
    }

    /// A replica starts from these, and knows that those up to `commit` are decided.
    pub(super) fn on_recovered(replica: ReplicaId, commit: Slot, entries: &[SlotEntry]) -> Checked {
        let is_undecided = |entry: &&SlotEntry| entry.slot > commit && matches!(entry.body, Body::Members(_));
        let undecided: Vec<Slot> = entries.iter().filter(is_undecided).map(|entry| entry.slot).collect();
        if undecided.len() < 2 {
            return Ok(());
        }
        let detail = format!(
            "replica {replica} starts with changes of members in slots {undecided:?}, and knows of none after {commit} that it is decided"
        );
        Err(Violation::new("commit", detail))
    }
}

#[cfg(test)]
mod tests {
    use walras_consensus::MemberChange;

    use super::*;

    #[test]
    fn two_changes_of_members_of_which_neither_is_decided_are_found() {
        let one = ReplicaId::new(1).unwrap();
        let change = |slot| SlotEntry { slot: Slot(slot), term: Term(1), body: Body::Members(vec![MemberChange::AddVoter(one)]) };
        let entries = [change(3), change(5)];
        Slots::on_recovered(one, Slot(3), &entries).unwrap();
        assert!(Slots::on_recovered(one, Slot(2), &entries).is_err());
    }

    #[test]
    fn another_slot_is_found() {
        let mut slots = Slots::default();
        let [one, two] = [1, 2].map(|id| ReplicaId::new(id).unwrap());
        let entry = |slot, term| SlotEntry { slot: Slot(slot), term: Term(term), body: Body::Empty };
        slots.on_decided(one, &[entry(1, 1), entry(2, 1)]).unwrap();
        slots.on_decided(two, &[entry(2, 1), entry(3, 2)]).unwrap();
        assert!(slots.on_decided(one, &[entry(3, 3)]).is_err());
    }
}
