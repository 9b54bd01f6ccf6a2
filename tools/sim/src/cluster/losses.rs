//! Replicas that are lost for good, and what an operator does about them: another one, under a new id and on an empty disk, takes
//! the place of each.
//!
//! A replica is lost with its disk. Where what is in a majority's memory counts ([`Durability::Memory`]) it is also lost when its
//! process ends other than in good order, since it may have forgotten what it promised; it finds that out when it starts, as the
//! product's does. `docs/cluster.md` promises that the loss of a minority loses nothing: so as many are lost at a time, and no
//! more, and all other checkers hold the venue to it.

use std::collections::BTreeSet;

use walras_consensus::{Durability, MemberChange, Members, ReplicaId};
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};

use super::event::{Event, Phase};
use super::faults::Fault;
use super::machine::Fortune;
use super::mutation::Mutation;
use super::places::replica_id;
use super::replica::Process;
use super::under_way::Replacement;
use super::world::World;
use crate::common::checks::Violation;
use crate::common::disk::VenueDisk;
use crate::common::faults::downtime_ns;

/// A new replica that lacks no more entries than this has caught up.
const CAUGHT_UP: u64 = 32;

impl World {
    /// What a fault comes to where it would be more than the venue promises to survive.
    pub(super) fn within_the_promise(&mut self, fault: Fault, replica: usize) -> Fault {
        if self.durability == Durability::Disk {
            return fault;
        }
        match fault {
            // Somebody asks nicely, one time of two.
            Fault::PowerFailure | Fault::Kill if self.losses.one_in(2) || !self.may_end_badly(replica) => Fault::Stop,
            Fault::PowerFailsEverywhere => Fault::StopEverywhere,
            Fault::Disk(faults) if faults == SimFaults::default() => fault,
            Fault::Disk(_) | Fault::DiskGone { .. } | Fault::DiskFull { .. } if !self.may_end_badly(replica) => Fault::None,
            fault => fault,
        }
    }

    /// Whether a process may end other than in good order; if so, that counts as begun.
    pub(super) fn may_end_badly(&mut self, replica: usize) -> bool {
        if self.durability == Durability::Disk {
            return true;
        }
        let may = self.may_lose(replica);
        let machine = &mut self.machines[replica];
        if may && machine.fortune == Fortune::Sound {
            machine.fortune = Fortune::Doomed;
        }
        may
    }

    /// What threatened a process has passed.
    pub(super) fn reprieve(&mut self, replica: usize) {
        let machine = &mut self.machines[replica];
        if machine.fortune == Fortune::Doomed && machine.process.is_some() {
            machine.disk.device.set_faults(SimFaults::default());
            machine.disk.device.set_capacity(u64::MAX);
            (machine.fortune, machine.is_full) = (Fortune::Sound, false);
        }
    }

    /// Whether a replica may be lost now: a majority is left of whichever members count, and somebody is there to take its place.
    fn may_lose(&self, replica: usize) -> bool {
        let machine = &self.machines[replica];
        if machine.fortune != Fortune::Sound {
            return machine.is_in_use();
        }
        // Before all founders have met the cluster has not begun: nothing can be lost, and without one of them nothing goes on
        // either.
        if !self.is_set_up {
            return false;
        }
        let count = |fortunes: &[Fortune]| self.machines.iter().filter(|machine| fortunes.contains(&machine.fortune)).count();
        if count(&[Fortune::Unused]) <= count(&[Fortune::Doomed, Fortune::Lost, Fortune::Emptied]) {
            return false;
        }
        let mut lost: BTreeSet<ReplicaId> =
            (0..self.machines.len()).filter(|at| self.machines[*at].is_at_risk()).map(replica_id).collect();
        lost.insert(replica_id(replica));
        let of_replicas = self.machines.iter().filter_map(|machine| machine.process.as_ref()).map(Process::members);
        self.members.iter().chain(of_replicas).all(|members| self.survives(members, &lost))
    }

    /// Whether these members, and those that a change on its way may make of them, have a majority without `lost`.
    fn survives(&self, members: &Members, lost: &BTreeSet<ReplicaId>) -> bool {
        let Members { voters, learners, outgoing, .. } = members;
        // One that learned may be about to vote.
        let with_learners: BTreeSet<ReplicaId> = learners.intersection(lost).chain(voters).copied().collect();
        let left = |voters: &BTreeSet<ReplicaId>| voters.difference(lost).count();
        let keeps = |voters: &BTreeSet<ReplicaId>| voters.is_empty() || left(voters) * 2 > voters.len();
        // One too many may be leaving.
        let one_leaves = voters.len() > self.genesis.voters.len();
        [voters, &with_learners, outgoing].into_iter().all(keeps)
            && (!one_leaves || left(voters).saturating_sub(1) * 2 > voters.len() - 1)
    }

    /// How it stands with a replica whose process ended other than in good order.
    pub(super) fn fortune_of_the_fallen(&self) -> Fortune {
        if self.durability == Durability::Memory { Fortune::Lost } else { Fortune::Sound }
    }

    /// The process is asked to stop, does so, and starts again after a while.
    pub(super) fn stop_in_order(&mut self, replica: usize) {
        let Some(process) = self.take_process(replica) else { return };
        self.close_links(replica);
        let closed = process.stop();
        self.trace.line(self.now_ns, || format!("replica {}: is asked to stop: {closed:?}", replica_id(replica)));
        let device = &self.machines[replica].disk.device;
        if device.is_off() {
            device.crash();
        } else {
            device.kill();
        }
        if closed.is_err() {
            let fallen = self.fortune_of_the_fallen();
            self.machines[replica].falls(fallen);
        }
        self.report.orderly_stops += u64::from(closed.is_ok());
        self.start_later(replica);
    }

    /// The clock was far off and is right again: the process starts again.
    pub(super) fn end_for_the_clock(&mut self, replica: usize) {
        match self.durability {
            Durability::Disk => self.kill(replica),
            Durability::Memory => self.stop_in_order(replica),
        }
    }

    pub(super) fn plan_loss(&mut self) {
        let after_ns = self.losses.within(300_000_000, 5_000_000_000) * self.density.rarer;
        self.schedule.at(self.now_ns + after_ns, Event::LoseDisk);
    }

    /// A disk is lost, with all that was on it.
    pub(super) fn lose_disk(&mut self) {
        if self.phase != Phase::Safety {
            return;
        }
        self.plan_loss();
        let candidates: Vec<usize> = (0..self.machines.len()).filter(|at| self.machines[*at].fortune == Fortune::Sound).collect();
        let Some(replica) = (!candidates.is_empty()).then(|| self.losses.pick(&candidates)) else { return };
        if !self.may_lose(replica) {
            return;
        }
        if self.has_damage && self.losses.one_in(2) {
            return self.damage(replica);
        }
        self.trace.line(self.now_ns, || format!("replica {}: its disk is lost", replica_id(replica)));
        self.report.faults += 1;
        self.report.lost_disks += 1;
        self.report.crashes += u64::from(self.take_process(replica).is_some());
        // What is still to happen on the old one happens to nobody.
        let config = SimDiskConfig { page_bytes: 512, ..SimDiskConfig::default() };
        self.machines[replica].disk = VenueDisk::new(SimDisk::new(self.losses.any(), config), None);
        if self.settings.mutation == Some(Mutation::RejoinWithEmptyDisk) {
            self.start_later(replica);
        } else if self.losses.one_in(2) {
            // The operator does not know better.
            self.machines[replica].fortune = Fortune::Emptied;
            self.start_later(replica);
        } else {
            self.replace(replica);
        }
    }

    /// The others stopped one with an emptied disk: the operator reads the message, and does what it says.
    pub(super) fn told_of_its_disk(&mut self, replica: usize) {
        self.take_process(replica);
        self.machines[replica].disk.device.kill();
        self.report.emptied_found += 1;
        self.replace(replica);
    }

    /// A replica is no more: another one begins, under an id that nobody had.
    pub(super) fn replace(&mut self, lost: usize) {
        self.machines[lost].fortune = Fortune::Gone;
        let new = self.machines.iter().position(|machine| machine.fortune == Fortune::Unused);
        let new = new.expect("none is lost where none could take its place");
        self.trace.line(self.now_ns, || format!("replica {} takes the place of {}", replica_id(new), replica_id(lost)));
        self.machines[new].fortune = Fortune::Sound;
        // The lost one may itself have come for another.
        self.replacements.iter_mut().filter(|earlier| earlier.new == lost).for_each(|earlier| earlier.new = new);
        self.replacements.push(Replacement { lost, new });
        self.report.replaced += 1;
        let after_ns = downtime_ns(&mut self.losses);
        self.start_at(self.now_ns + after_ns, new);
        if self.replacements.len() == 1 {
            self.schedule.at(self.now_ns + after_ns, Event::Repair);
        }
    }

    /// What the operator does next for each that is lost: the new one learns, votes, and the lost one leaves; or it votes and the
    /// other leaves in one change.
    pub(super) fn repair(&mut self) -> Result<(), Violation> {
        // For ever: one that is lost may yet become a member, by a change that was on its way.
        let after_ns = self.losses.within(10_000_000, 150_000_000);
        self.schedule.at(self.now_ns + after_ns, Event::Repair);
        let Some(members) = self.leaders_members() else { return Ok(()) };
        let is_in = |replacement: &&Replacement| members.contains(replica_id(replacement.lost));
        let Some(&Replacement { lost, new }) = self.replacements.iter().find(is_in) else { return Ok(()) };
        let (lost, new_id) = (replica_id(lost), replica_id(new));
        let changes = if !members.voters.contains(&lost) || members.voters.contains(&new_id) {
            vec![MemberChange::Remove(lost)]
        } else if !members.contains(new_id) {
            vec![MemberChange::AddLearner(new_id)]
        } else if self.has_caught_up(new) && self.machines[new].fortune == Fortune::Sound {
            let votes = MemberChange::AddVoter(new_id);
            if self.losses.one_in(2) { vec![votes, MemberChange::Remove(lost)] } else { vec![votes] }
        } else {
            return Ok(());
        };
        let leader = self.leader().expect("its members were asked for");
        let mut begun = false;
        self.with_process(leader, |process, _| {
            begun = process.change_members(&changes)?;
            Ok(())
        })?;
        self.report.joint_changes += u64::from(begun && changes.len() > 1);
        Ok(())
    }

    fn has_caught_up(&self, at: usize) -> bool {
        let entries = self.checks.borrow().entry_count();
        self.machines[at].process.as_ref().is_some_and(|process| process.engine().last_applied().0 + CAUGHT_UP >= entries)
    }
}
