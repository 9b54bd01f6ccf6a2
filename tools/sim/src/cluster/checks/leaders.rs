//! One leader a term.

use std::collections::BTreeMap;

use walras_consensus::{ReplicaId, Role, RoleChange, Term};

use crate::common::checks::{Checked, Violation};

#[derive(Debug, Default)]
pub(super) struct Leaders {
    by_term: BTreeMap<Term, ReplicaId>,
}

impl Leaders {
    pub(super) fn on_role(&mut self, replica: ReplicaId, RoleChange { term, role }: RoleChange) -> Checked {
        if role != Role::Leader {
            return Ok(());
        }
        let leader = *self.by_term.entry(term).or_insert(replica);
        if leader == replica {
            return Ok(());
        }
        Err(Violation::new("leaders", format!("replicas {leader} and {replica} both lead term {term}")))
    }

    pub(super) fn count(&self) -> u64 {
        self.by_term.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_leaders_of_one_term_are_found() {
        let mut leaders = Leaders::default();
        let [one, two] = [1, 2].map(|id| ReplicaId::new(id).unwrap());
        let leads = |term| RoleChange { term: Term(term), role: Role::Leader };
        leaders.on_role(one, leads(3)).unwrap();
        leaders.on_role(two, leads(4)).unwrap();
        leaders.on_role(two, RoleChange { term: Term(3), role: Role::Candidate }).unwrap();
        assert!(leaders.on_role(two, leads(3)).is_err());
    }
}
