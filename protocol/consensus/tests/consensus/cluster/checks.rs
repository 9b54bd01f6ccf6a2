//! What must hold, whatever happens. The first thing that does not is kept.

use super::log::Log;
use std::collections::{BTreeMap, BTreeSet};
use walras_consensus::{Body, Committed, Durability, Members, ReplicaId, Role, RoleChange, Slot, Term};

#[derive(Default)]
pub(crate) struct Checks {
    leaders: BTreeMap<Term, ReplicaId>,
    decided: BTreeMap<Slot, (Term, Vec<u8>)>,
    /// All commands decided, by log index.
    pub(crate) history: Vec<u64>,
    pub(crate) violation: Option<String>,
}

/// The commands in a committed pack.
pub(crate) fn commands(committed: &Committed) -> Vec<u64> {
    committed.pack.entries().map(|entry| u64::from_le_bytes(entry.try_into().unwrap())).collect()
}

impl Checks {
    pub(crate) fn violate(&mut self, text: String) {
        self.violation.get_or_insert(text);
    }

    /// Election safety.
    pub(crate) fn role(&mut self, id: ReplicaId, change: RoleChange) {
        if change.role == Role::Leader {
            let leader = *self.leaders.entry(change.term).or_insert(id);
            if leader != id {
                self.violate(format!("replicas {leader} and {id} both lead term {}", change.term));
            }
        }
    }

    /// State machine safety; and what is handed out is held by a majority.
    pub(crate) fn committed<'a>(
        &mut self,
        id: ReplicaId,
        committed: &Committed,
        members: &[Members; 2],
        durability: Durability,
        logs: impl Iterator<Item = (ReplicaId, &'a Log)>,
    ) {
        let Committed { slot, term, first, pack } = committed;
        let mine = (*term, pack.bytes().to_vec());
        if let Some(known) = self.decided.get(slot) {
            if *known != mine {
                self.violate(format!(
                    "replica {id} hands out slot {slot} of term {term}, others of term {}, or other bytes",
                    known.0
                ));
            }
        } else {
            self.decided.insert(*slot, mine);
            self.history.extend(commands(committed));
            let holders: BTreeSet<ReplicaId> = logs
                .filter(|(_, log)| log.snapshot().slot >= *slot || log.term_at(*slot) == Some(*term))
                .map(|(id, _)| id)
                .collect();
            if durability == Durability::Disk && !members.iter().any(|members| members.is_majority(&holders)) {
                self.violate(format!("replica {id} hands out slot {slot}, which only {holders:?} have on disk, of {members:?}"));
            }
        }
        let at = first.0 as usize - 1;
        if self.history.get(at..at + pack.len()) != Some(&commands(committed)[..]) {
            self.violate(format!(
                "replica {id} gives slot {slot} the log indexes from {first:?}, where others have something else"
            ));
        }
    }

    /// Log matching: where two logs have a slot of the same term, they have the same slots before it.
    pub(crate) fn log_matching(&mut self, logs: &[(ReplicaId, &Log)]) {
        for (at, (a, log_a)) in logs.iter().enumerate() {
            for (b, log_b) in &logs[at + 1..] {
                let by_slot: BTreeMap<Slot, (Term, &Body)> = log_b.entries().map(|e| (e.slot, (e.term, &e.body))).collect();
                let mut must_match = false;
                for entry in log_a.entries().rev() {
                    let Some((term, body)) = by_slot.get(&entry.slot) else { continue };
                    must_match |= *term == entry.term;
                    if must_match && (*term != entry.term || **body != entry.body) {
                        self.violate(format!("the logs of {a} and {b} agree later and differ at slot {}", entry.slot));
                    }
                }
            }
        }
    }
}
