//! The members of a cluster.

use crate::ids::ReplicaId;
use protobuf::Message as _;
use raft::eraftpb::{ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState};
use std::collections::BTreeSet;

/// Maximum number of members of a cluster, of all kinds.
pub const MEMBERS_MAX: usize = 64;

/// The members of a cluster. While a change of several members at once is under way it needs a majority of both sets of voters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The voters, whose majority decides.
    pub voters: BTreeSet<ReplicaId>,
    /// Members that get the log but do not vote.
    pub learners: BTreeSet<ReplicaId>,
    /// The voters before the change that is under way; empty when none is.
    pub outgoing: BTreeSet<ReplicaId>,
    /// Outgoing voters that will be learners when the change is complete.
    pub next_learners: BTreeSet<ReplicaId>,
}

/// One change of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// Adds a voter, or makes a learner a voter.
    AddVoter(ReplicaId),
    /// Adds a learner, or makes a voter a learner.
    AddLearner(ReplicaId),
    /// Removes a member.
    Remove(ReplicaId),
}

impl Members {
    /// Only these voters.
    pub fn of_voters(voters: impl IntoIterator<Item = ReplicaId>) -> Self {
        Self { voters: voters.into_iter().collect(), ..Self::default() }
    }

    /// Whether it is one of them, in any role.
    #[must_use]
    pub fn contains(&self, id: ReplicaId) -> bool {
        [&self.voters, &self.learners, &self.outgoing, &self.next_learners].iter().any(|set| set.contains(&id))
    }

    /// Whether there is only one member: nobody else needs its log.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.all().len() <= 1
    }

    /// Whether a change of several members at once is under way.
    #[must_use]
    pub fn is_joint(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether `ids` holds a majority of the voters, and of the outgoing ones while there are any.
    pub fn is_majority(&self, ids: &BTreeSet<ReplicaId>) -> bool {
        let holds = |voters: &BTreeSet<ReplicaId>| voters.is_empty() || voters.intersection(ids).count() * 2 > voters.len();
        holds(&self.voters) && holds(&self.outgoing)
    }

    /// All members, in any role.
    pub(crate) fn all(&self) -> BTreeSet<ReplicaId> {
        [&self.voters, &self.learners, &self.outgoing, &self.next_learners].into_iter().flatten().copied().collect()
    }

    /// Whether the members are consistent: at least one voter, not too many members, no voter that is also a learner, and all next
    /// learners are outgoing voters.
    pub(crate) fn is_sound(&self) -> bool {
        let Self { voters, learners, outgoing, next_learners } = self;
        !voters.is_empty()
            && self.all().len() <= MEMBERS_MAX
            && learners.is_disjoint(voters)
            && learners.is_disjoint(outgoing)
            && next_learners.is_subset(outgoing)
            && next_learners.is_disjoint(voters)
    }

    pub(crate) fn from_raft(state: &ConfState) -> Option<Self> {
        let set = |ids: &[u64]| ids.iter().map(|id| ReplicaId::new(*id)).collect::<Option<BTreeSet<_>>>();
        Some(Self {
            voters: set(&state.voters)?,
            learners: set(&state.learners)?,
            outgoing: set(&state.voters_outgoing)?,
            next_learners: set(&state.learners_next)?,
        })
    }

    pub(crate) fn to_raft(&self) -> ConfState {
        let list = |set: &BTreeSet<ReplicaId>| set.iter().map(|id| id.get()).collect::<Vec<u64>>();
        let mut state = ConfState::default();
        state.set_voters(list(&self.voters));
        state.set_learners(list(&self.learners));
        state.set_voters_outgoing(list(&self.outgoing));
        state.set_learners_next(list(&self.next_learners));
        // Every joint configuration that this crate proposes ends automatically.
        state.set_auto_leave(self.is_joint());
        state
    }
}

const ADD_VOTER: u8 = 0;
const ADD_LEARNER: u8 = 1;
const REMOVE: u8 = 2;
const CHANGE_BYTES: usize = 9;

/// Each change as its kind and the id, little-endian. None at all ends a joint configuration.
pub(crate) fn encode_changes(changes: &[MemberChange]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(changes.len() * CHANGE_BYTES);
    for change in changes {
        let (kind, id) = match *change {
            MemberChange::AddVoter(id) => (ADD_VOTER, id),
            MemberChange::AddLearner(id) => (ADD_LEARNER, id),
            MemberChange::Remove(id) => (REMOVE, id),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&id.get().to_le_bytes());
    }
    bytes
}

pub(crate) fn decode_changes(bytes: &[u8]) -> Option<Vec<MemberChange>> {
    let (chunks, rest) = bytes.as_chunks::<CHANGE_BYTES>();
    let decode = |chunk: &[u8; CHANGE_BYTES]| {
        let id = ReplicaId::new(u64::from_le_bytes(*chunk[1..].first_chunk()?))?;
        match chunk[0] {
            ADD_VOTER => Some(MemberChange::AddVoter(id)),
            ADD_LEARNER => Some(MemberChange::AddLearner(id)),
            REMOVE => Some(MemberChange::Remove(id)),
            _ => None,
        }
    };
    if rest.is_empty() { chunks.iter().map(decode).collect() } else { None }
}

pub(crate) fn changes_to_raft(changes: &[MemberChange]) -> ConfChangeV2 {
    let singles = changes.iter().map(|change| {
        let (change_type, id) = match *change {
            MemberChange::AddVoter(id) => (ConfChangeType::AddNode, id),
            MemberChange::AddLearner(id) => (ConfChangeType::AddLearnerNode, id),
            MemberChange::Remove(id) => (ConfChangeType::RemoveNode, id),
        };
        let mut single = ConfChangeSingle::default();
        single.set_change_type(change_type);
        single.node_id = id.get();
        single
    });
    // The default transition: joint if there is more than one change, and it ends automatically.
    let mut change = ConfChangeV2::default();
    change.set_changes(singles.collect());
    change
}

/// Decodes the changes in a slot that the library wrote.
pub(crate) fn changes_from_raft(bytes: &[u8]) -> Vec<MemberChange> {
    let mut raft = ConfChangeV2::default();
    raft.merge_from_bytes(bytes).expect("the library or this crate encoded it a moment ago");
    let change = |single: &ConfChangeSingle| {
        let id = ReplicaId::new(single.node_id).expect("a member has an id");
        match single.change_type {
            ConfChangeType::AddNode => MemberChange::AddVoter(id),
            ConfChangeType::AddLearnerNode => MemberChange::AddLearner(id),
            ConfChangeType::RemoveNode => MemberChange::Remove(id),
        }
    };
    raft.changes.iter().map(change).collect()
}
