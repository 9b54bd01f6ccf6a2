//! An upgrade under way: processes that begin run the program of this release or of the next one, there and back, until somebody goes
//! to the rules of the next one. From then on all of them run that.

use walras_consensus::ReplicaId;
use walras_engine::versions::{NEWEST, REHEARSAL};
use walras_testkit::Choices;
use walras_types::EngineVersion;

use super::event::{Event, Phase};
use super::machine::replica_id;
use super::mutation::Mutation;
use super::world::World;
use crate::common::checks::Violation;

/// How often somebody asks for the rules of the next release.
pub(super) const ASK_EVERY_NS: u64 = 700_000_000;

/// What those do who upgrade the replicas.
pub(super) struct Upgrade {
    choices: Choices<'static>,
    /// A leader took the command: no process begins with the former program again.
    was_taken: bool,
}

impl Upgrade {
    pub(super) fn new(choices: Choices<'static>) -> Self {
        Self { choices, was_taken: false }
    }
}

impl World {
    /// Which program the next process of a replica runs.
    pub(super) fn choose_program(&mut self, replica: usize) {
        let Some(upgrade) = &mut self.upgrade else { return };
        let is_next = upgrade.was_taken || !upgrade.choices.one_in(3);
        self.machines[replica].engine_newest = if is_next { REHEARSAL } else { NEWEST };
    }

    /// Somebody asks the leader, who knows what the linked replicas run.
    pub(super) fn ask_for_next_rules(&mut self) -> Result<(), Violation> {
        let Some(upgrade) = &mut self.upgrade else { return Ok(()) };
        if self.phase != Phase::Safety {
            return Ok(());
        }
        let after_ns = upgrade.choices.within(ASK_EVERY_NS / 2, ASK_EVERY_NS * 2);
        self.schedule.at(self.now_ns + after_ns, Event::AskForNextRules);
        let Some(leader) = self.leader() else { return Ok(()) };
        let is_unchecked = self.settings.mutation == Some(Mutation::VersionUnchecked);
        let machines = self.machines.iter().enumerate().filter(|(at, _)| *at != leader);
        let programs: Vec<(ReplicaId, Option<EngineVersion>)> = machines
            .map(|(at, machine)| {
                let known = if is_unchecked { REHEARSAL } else { machine.engine_newest };
                (replica_id(at), (is_unchecked || machine.process.is_some()).then_some(known))
            })
            .collect();
        let mut was_taken = false;
        self.with_process(leader, |process, at| {
            was_taken = process.go_to_version(at, REHEARSAL, &programs);
            Ok(())
        })?;
        self.trace.line(self.now_ns, || format!("the rules of the next release: {}", if was_taken { "taken" } else { "not now" }));
        if was_taken && let Some(upgrade) = &mut self.upgrade {
            upgrade.was_taken = true;
            self.report.upgrades += 1;
            self.upgrade_the_others();
        }
        Ok(())
    }

    /// Those who are no members may become some.
    fn upgrade_the_others(&mut self) {
        if self.settings.mutation == Some(Mutation::VersionUnchecked) {
            return;
        }
        for at in 0..self.machines.len() {
            if self.machines[at].process.is_some() && self.machines[at].engine_newest < REHEARSAL {
                // In good order: where promises are in memory, one that is killed would be lost.
                self.stop_in_order(at);
            }
        }
    }
}
