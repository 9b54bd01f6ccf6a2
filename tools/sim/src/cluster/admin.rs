//! What those who run the cluster do meanwhile: hand leadership over, change the members; and somebody who reads.

use walras_consensus::{MemberChange, ReadToken, ReplicaId};

use super::event::{Event, Phase};
use super::machine::Fortune;
use super::places::{place_of, replica_id};
use super::world::World;
use crate::common::checks::Violation;

impl World {
    pub(super) fn hand_over(&mut self) -> Result<(), Violation> {
        let Some(leader) = self.leader() else { return Ok(()) };
        let Some(process) = &self.machines[leader].process else { return Ok(()) };
        let voters: Vec<_> = process.members().voters.iter().copied().filter(|id| *id != replica_id(leader)).collect();
        if voters.is_empty() {
            return Ok(());
        }
        let to = self.faults.pick(&voters);
        let mut begun = false;
        self.with_process(leader, |process, at| {
            begun = process.transfer_to(at, to)?;
            Ok(())
        })?;
        self.report.handovers += u64::from(begun);
        Ok(())
    }

    /// Somebody who stands by joins; who learns votes, or leaves, or takes a voter's place in one change; who is one too many
    /// leaves. As many as began it stay.
    pub(super) fn change_members(&mut self) -> Result<(), Violation> {
        let Some(leader) = self.leader() else { return Ok(()) };
        let Some(process) = &self.machines[leader].process else { return Ok(()) };
        let members = process.members().clone();
        let is_at_risk = |id: &ReplicaId| self.machines[place_of(*id)].is_at_risk();
        if members.voters.iter().chain(&members.learners).any(is_at_risk) {
            // First those are replaced, lest too few are left. A learner that is about to be lost must not get a vote either.
            return Ok(());
        }
        let voters: Vec<_> = members.voters.iter().copied().collect();
        let in_use = (0..self.machines.len()).filter(|at| self.machines[*at].fortune == Fortune::Sound);
        let outside = in_use.map(replica_id).find(|id| !members.contains(*id));
        let learner = members.learners.first().copied();
        let change = match (learner, outside) {
            (Some(learner), _) if self.faults.one_in(4) => MemberChange::Remove(learner),
            (Some(learner), _) if voters.len() == self.genesis.voters.len() && self.losses.one_in(3) => {
                let leaves = self.losses.pick(&voters);
                return self.begin_change(leader, &[MemberChange::AddVoter(learner), MemberChange::Remove(leaves)]);
            }
            (Some(learner), _) => MemberChange::AddVoter(learner),
            (None, _) if voters.len() > self.genesis.voters.len() => {
                let which = self.faults.pick(&voters);
                if self.faults.one_in(3) { MemberChange::AddLearner(which) } else { MemberChange::Remove(which) }
            }
            (None, Some(outside)) => MemberChange::AddLearner(outside),
            (None, None) => return Ok(()),
        };
        self.begin_change(leader, &[change])
    }

    fn begin_change(&mut self, leader: usize, changes: &[MemberChange]) -> Result<(), Violation> {
        let mut begun = false;
        self.with_process(leader, |process, _| {
            begun = process.change_members(changes)?;
            Ok(())
        })?;
        self.trace.line(self.now_ns, || format!("{changes:?}: {}", if begun { "begun" } else { "not taken" }));
        self.report.member_changes += u64::from(begun);
        self.report.joint_changes += u64::from(begun && changes.len() > 1);
        Ok(())
    }

    /// Somebody asks a replica for the state.
    pub(super) fn ask_to_read(&mut self, every_ns: u64) -> Result<(), Violation> {
        if self.phase != Phase::Safety {
            return Ok(());
        }
        let after_ns = self.faults.within(every_ns / 2, every_ns + every_ns / 2);
        self.schedule.at(self.now_ns + after_ns, Event::Read);
        let replica = self.any_replica();
        if self.machines[replica].process.is_none() || self.machines[replica].paused_until_ns > self.now_ns {
            return Ok(());
        }
        let token = ReadToken(self.next_read);
        self.next_read += 1;
        let floor = self.checks.borrow().read_floor();
        self.reads.insert((replica, token), floor);
        self.with_process(replica, |process, _| {
            process.read(token);
            Ok(())
        })
    }

    pub(super) fn read_ready(&mut self, replica: usize, token: ReadToken) {
        let (Some(floor), Some(process)) = (self.reads.remove(&(replica, token)), &self.machines[replica].process) else { return };
        self.report.reads += 1;
        self.checks.borrow_mut().on_read(replica_id(replica), floor, process.engine());
    }
}
