//! A cluster as one of several shards: what the venue around it (`crate::shards`) may do with it, and learns from it.

use std::cell::{Ref, RefCell};
use std::rc::Rc;

use walras_consensus::{Durability, ReadToken};
use walras_engine::Engine;
use walras_log_store::sim_disk::{SimDisk, SimFaults};
use walras_wire::Command;

use super::checks::{Checks, Options};
use super::event::Event;
use super::machine::Fortune;
use super::replica::Process;
use super::report::{Report, Settings};
use super::shard_place::{Notice, OfShards};
use super::strikes::SHORT_RESTART_NS;
use super::world::World;
use crate::common::checks::Violation;
use crate::common::checks::replay::Replay;
use crate::common::disk::VenueDisk;
use crate::common::trace::Trace;

/// The disks of all replicas at one moment.
pub(crate) struct Backup(Vec<VenueDisk>);

/// Whose state replicas begin from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The one that their clients know.
    Own,
    /// An older one.
    Old,
}

/// Longer than any message is on its way: none from before reaches a replica that was set back, as no connection outlives its
/// process.
const QUIET_NS: u64 = 3_000_000_000;

impl World {
    pub(crate) fn of_shard(seed: u64, settings: &Settings, trace: Trace, of_shards: &OfShards) -> Self {
        let mut world = Self::new(seed, settings, trace, Some(of_shards));
        world.begin();
        world
    }

    /// When something happens here next.
    pub(crate) fn next_ns(&self) -> u64 {
        self.schedule.next_ns().unwrap_or(u64::MAX)
    }

    /// The next thing happens.
    pub(crate) fn go_on(&mut self) -> Result<(), Violation> {
        self.step().map(drop)
    }

    /// So late it is at least: somebody acts who is none of the cluster's.
    pub(crate) fn is_now(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    pub(crate) fn heal(&mut self) {
        self.begin_healing();
    }

    pub(crate) fn is_content(&self) -> bool {
        self.first_wait().is_none()
    }

    /// Who waits for what, and how it stands with the replicas.
    pub(crate) fn describe_waits(&self) -> Vec<String> {
        let mut all = self.waiting();
        all.extend(self.describe_all());
        all
    }

    /// A replay of the log that clients know.
    pub(crate) fn replay(&self) -> Ref<'_, Replay> {
        Ref::map(self.log_checks.borrow(), Checks::replay)
    }

    pub(crate) fn take_notices(&mut self) -> Vec<(usize, Notice)> {
        std::mem::take(&mut self.notices)
    }

    /// Places of replicas.
    pub(crate) fn replicas(&self) -> Vec<usize> {
        (0..self.machines.len()).filter(|at| self.machines[*at].is_in_use()).collect()
    }

    /// Grows whenever a process begins or ends.
    pub(crate) fn generations(&self) -> u64 {
        self.machines.iter().map(|machine| machine.generation).sum()
    }

    /// Of its process, while one runs.
    pub(crate) fn generation(&self, replica: usize) -> Option<u64> {
        let machine = self.machines.get(replica)?;
        machine.process.as_ref().map(|_| machine.generation)
    }

    /// Nothing happens there before.
    pub(crate) fn stands_still_until(&self, replica: usize) -> u64 {
        self.machines.get(replica).map_or(0, |machine| machine.paused_until_ns)
    }

    /// The state of a replica that takes commands.
    pub(crate) fn leading_engine(&self, replica: usize) -> Option<&Engine> {
        self.machines.get(replica)?.process.as_ref().filter(|process| process.is_leading()).map(Process::engine)
    }

    pub(crate) fn engine(&self, replica: usize) -> Option<&Engine> {
        self.machines.get(replica)?.process.as_ref().map(Process::engine)
    }

    pub(crate) fn leading(&self) -> Option<usize> {
        self.leader()
    }

    /// Submits a command of no session at a replica; whether it was taken.
    pub(crate) fn submit(&mut self, replica: usize, command: &Command, number: u64) -> Result<bool, Violation> {
        let mut taken = false;
        self.with_process(replica, |process, at| {
            taken = process.submit(at, command, number);
            Ok(())
        })?;
        Ok(taken)
    }

    /// Asks a replica for a state that has all that was acknowledged; whether one runs there.
    pub(crate) fn read(&mut self, replica: usize, number: u64) -> Result<bool, Violation> {
        let mut runs = false;
        self.with_process(replica, |process, _| {
            process.read(ReadToken(number));
            runs = true;
            Ok(())
        })?;
        Ok(runs)
    }

    /// Each trader asks for one thing more.
    pub(crate) fn ask_more(&mut self) {
        if !self.clients_rest {
            for client in 1..self.clients.len() {
                if self.clients[client].end.is_logged_on() && self.clients[client].is_content() {
                    self.clients[client].ask(self.now_ns, &mut self.checks.borrow_mut());
                    self.client_acts(client);
                }
            }
        }
    }

    pub(crate) fn kill_leader(&mut self) {
        if let Some(leader) = self.leader() {
            self.kill(leader);
        }
    }

    /// What is on the disks now, as power failing everywhere would leave it.
    pub(crate) fn back_up(&self) -> Backup {
        let copy = |device: &SimDisk| {
            let copy = device.fork();
            copy.crash();
            copy.set_faults(SimFaults::default());
            copy.set_capacity(u64::MAX);
            VenueDisk::new(copy, None)
        };
        Backup(self.machines.iter().map(|machine| copy(&machine.disk.device)).collect())
    }

    /// All replicas stop, and begin again after a while on other disks; those that they had are given back. With an older state
    /// clients rest: what they were answered is not so there.
    pub(crate) fn begin_from(&mut self, backup: Backup, state: State) -> Backup {
        assert!(self.durability == Durability::Disk, "who counts on memory does not begin from an older disk");
        self.trace.line(self.now_ns, || format!("all replicas stop, and begin again from their {state:?} state"));
        let mut had = Vec::new();
        for (at, disk) in backup.0.into_iter().enumerate() {
            drop(self.take_process(at));
            let machine = &mut self.machines[at];
            machine.disk.device.kill();
            had.push(std::mem::replace(&mut machine.disk, disk));
        }
        self.clients_rest = state == State::Old;
        self.checks = match state {
            State::Own => Rc::clone(&self.log_checks),
            State::Old => {
                let (clients, reports_kept, has_outliers) = (self.clients.len() + 1, self.reports_kept, self.has_outliers);
                let options = Options {
                    clients,
                    unwatched: None,
                    reports_kept,
                    has_threads: false,
                    has_outliers,
                    has_mesh: false,
                    merges: false,
                    mutation: None,
                };
                Rc::new(RefCell::new(Checks::of_the_set_back(options)))
            }
        };
        for at in 0..self.machines.len() {
            if self.machines[at].fortune == Fortune::Sound {
                self.start_at(self.now_ns + QUIET_NS, at);
            }
        }
        if state == State::Own {
            for client in 0..self.clients.len() {
                let at_ns = self.now_ns + QUIET_NS + SHORT_RESTART_NS;
                self.clients[client].wake_ns = Some(at_ns);
                self.schedule.at(at_ns, Event::Client(client));
            }
        }
        Backup(had)
    }

    /// What the run saw, once it has healed.
    pub(crate) fn end(self) -> Result<Report, Violation> {
        self.finish()
    }
}
