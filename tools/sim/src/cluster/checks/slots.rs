//! Logs are equal slot by slot, as far as they are decided.

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
}

#[cfg(test)]
mod tests {
    use super::*;

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
