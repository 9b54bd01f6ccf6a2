//! Do all replicas have the same state? Each sends the others the hash of its state at certain entries, and compares.
//!
//! A replica whose hash differs from one that a majority has stops itself: even where it leads. Where no majority can be found (a
//! machine is away, and the others differ), a follower that differs from its leader stops: no service is better than two states.

use std::collections::{BTreeMap, BTreeSet};

use walras_consensus::{Members, ReplicaId};
use walras_types::LogIndex;

/// The hash of a state.
pub(super) type StateHash = [u8; 32];

/// Points that are remembered: replicas that are further behind than that are not compared.
const POINTS_MAX: usize = 16;

/// What is known of the states at some entries.
#[derive(Debug)]
pub(super) struct Agreement {
    me: ReplicaId,
    points: BTreeMap<LogIndex, BTreeMap<ReplicaId, StateHash>>,
    /// The last point at which a majority had this replica's hash.
    agreed: LogIndex,
}

/// This replica has another state than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Differs {
    pub(super) agreed: LogIndex,
    pub(super) log_index: LogIndex,
    pub(super) others: usize,
    pub(super) voters: usize,
}

impl Agreement {
    pub(super) fn new(me: ReplicaId) -> Self {
        Self { me, points: BTreeMap::new(), agreed: LogIndex(0) }
    }

    /// A replica's hash, this one's included; `leader` is this one's leader.
    pub(super) fn on_hash(
        &mut self,
        from: ReplicaId,
        at: LogIndex,
        hash: StateHash,
        members: &Members,
        leader: Option<ReplicaId>,
    ) -> Result<(), Differs> {
        let oldest = self.points.first_key_value().map(|(at, _)| *at);
        if self.points.len() >= POINTS_MAX && oldest.is_some_and(|oldest| at < oldest) {
            return Ok(());
        }
        self.points.entry(at).or_default().insert(from, hash);
        while self.points.len() > POINTS_MAX {
            self.points.pop_first();
        }
        self.judge(at, members, leader)
    }

    fn judge(&mut self, at: LogIndex, members: &Members, leader: Option<ReplicaId>) -> Result<(), Differs> {
        let Some(hashes) = self.points.get(&at) else { return Ok(()) };
        let Some(mine) = hashes.get(&self.me) else { return Ok(()) };
        let with = |hash: &StateHash| hashes.iter().filter(|(_, h)| *h == hash).map(|(id, _)| *id).collect::<BTreeSet<_>>();
        if members.is_majority(&with(mine)) {
            self.agreed = self.agreed.max(at);
            return Ok(());
        }
        let others = hashes.iter().filter(|(_, hash)| *hash != mine);
        let majority = others.clone().find(|(_, hash)| members.is_majority(&with(hash)));
        let of_leader = leader.and_then(|leader| others.clone().find(|(id, _)| **id == leader));
        let Some((_, hash)) = majority.or(of_leader) else { return Ok(()) };
        Err(Differs { agreed: self.agreed, log_index: at, others: with(hash).len(), voters: members.voters.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> ReplicaId {
        ReplicaId::new(n).unwrap()
    }

    fn members() -> Members {
        Members::of_voters((1..=3).map(id))
    }

    const GOOD: StateHash = [1; 32];
    const BAD: StateHash = [2; 32];

    #[test]
    fn the_odd_one_stops_and_the_others_go_on() {
        let (mut odd, mut good) = (Agreement::new(id(1)), Agreement::new(id(2)));
        for agreement in [&mut odd, &mut good] {
            for n in 1..=3 {
                agreement.on_hash(id(n), LogIndex(10), GOOD, &members(), Some(id(1))).unwrap();
            }
        }
        for (n, hash) in [(1, BAD), (2, GOOD)] {
            odd.on_hash(id(n), LogIndex(20), hash, &members(), None).unwrap();
        }
        let found = odd.on_hash(id(3), LogIndex(20), GOOD, &members(), None);
        assert_eq!(
            found,
            Err(Differs { agreed: LogIndex(10), log_index: LogIndex(20), others: 2, voters: 3 }),
            "it leads, and is odd"
        );
        for (n, hash) in [(3, GOOD), (2, GOOD), (1, BAD)] {
            good.on_hash(id(n), LogIndex(20), hash, &members(), Some(id(1))).unwrap();
        }
    }

    #[test]
    fn without_a_majority_a_follower_that_differs_from_its_leader_stops() {
        let mut follower = Agreement::new(id(2));
        follower.on_hash(id(2), LogIndex(5), GOOD, &members(), Some(id(1))).unwrap();
        follower.on_hash(id(1), LogIndex(5), BAD, &members(), None).unwrap();
        assert!(follower.on_hash(id(1), LogIndex(5), BAD, &members(), Some(id(1))).is_err());
        let mut leader = Agreement::new(id(1));
        leader.on_hash(id(1), LogIndex(5), BAD, &members(), None).unwrap();
        leader.on_hash(id(2), LogIndex(5), GOOD, &members(), None).unwrap();
    }

    #[test]
    fn old_points_are_forgotten_and_not_remembered_again() {
        let mut agreement = Agreement::new(id(1));
        for at in 0..100 {
            agreement.on_hash(id(1), LogIndex(at), GOOD, &members(), None).unwrap();
        }
        agreement.on_hash(id(2), LogIndex(3), BAD, &members(), Some(id(2))).unwrap();
        assert_eq!(agreement.points.len(), POINTS_MAX);
    }
}
