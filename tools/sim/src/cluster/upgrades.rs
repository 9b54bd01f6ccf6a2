//! An upgrade under way: processes that begin run the program of this release or of the next one, there and back, until somebody
//! goes to the rules of the next one. From then on all of them run that. One of two venues with an upgrade, and some without, begin
//! under earlier rules than this release's newest.

use walras_consensus::ReplicaId;
use walras_engine::versions::{NEWEST, OLDEST, REHEARSAL};
use walras_testkit::Choices;
use walras_types::EngineVersion;

use super::event::{Event, Phase};
use super::mutation::Mutation;
use super::places::replica_id;
use super::world::World;
use crate::common::checks::Violation;

/// How often somebody asks for the rules of the next release.
pub(super) const ASK_EVERY_NS: u64 = 700_000_000;

/// What those do who upgrade the replicas.
pub(super) struct Upgrade {
    choices: Choices<'static>,
    /// The newest rules that the former program knows, and the next one.
    former: EngineVersion,
    next: EngineVersion,
    /// A leader took the command: no process begins with the former program again.
    was_taken: bool,
}

impl Upgrade {
    /// From the rules under which the venue begins to the next ones.
    pub(super) fn new(choices: Choices<'static>, former: EngineVersion) -> Self {
        let next = if former < NEWEST { NEWEST } else { REHEARSAL };
        Self { choices, former, next, was_taken: false }
    }
}

/// The rules under which a venue begins.
pub(super) fn first_rules(c: &mut Choices<'_>, has_upgrade: bool, mutation: Option<Mutation>) -> EngineVersion {
    match mutation {
        None if c.one_in(if has_upgrade { 2 } else { 6 }) => {
            let version = c.within(OLDEST.0.into(), u64::from(NEWEST.0) - 1);
            EngineVersion(u16::try_from(version).expect("it is between two versions"))
        }
        Some(Mutation::PoolsTooEarly) => OLDEST,
        Some(Mutation::LastStepAtAnotherPrice) => REHEARSAL,
        // Changes of phase take several entries then.
        None if !has_upgrade && c.one_in(3) => REHEARSAL,
        _ => NEWEST,
    }
}

impl World {
    /// Which program the next process of a replica runs.
    pub(super) fn choose_program(&mut self, replica: usize) {
        let Some(upgrade) = &mut self.upgrade else { return };
        let is_next = upgrade.was_taken || !upgrade.choices.one_in(3);
        self.machines[replica].engine_newest = if is_next { upgrade.next } else { upgrade.former };
    }

    /// Somebody asks the leader, who knows what the linked replicas run.
    pub(super) fn ask_for_next_rules(&mut self) -> Result<(), Violation> {
        let Some(upgrade) = &mut self.upgrade else { return Ok(()) };
        if self.phase != Phase::Safety {
            return Ok(());
        }
        let after_ns = upgrade.choices.within(ASK_EVERY_NS / 2, ASK_EVERY_NS * 2);
        let next = upgrade.next;
        self.schedule.at(self.now_ns + after_ns, Event::AskForNextRules);
        let Some(leader) = self.leader() else { return Ok(()) };
        let is_unchecked = self.settings.mutation == Some(Mutation::VersionUnchecked);
        let machines = self.machines.iter().enumerate().filter(|(at, _)| *at != leader);
        let programs: Vec<(ReplicaId, Option<EngineVersion>)> = machines
            .map(|(at, machine)| {
                let known = if is_unchecked { next } else { machine.engine_newest };
                (replica_id(at), (is_unchecked || machine.process.is_some()).then_some(known))
            })
            .collect();
        let mut was_taken = false;
        self.with_process(leader, |process, at| {
            was_taken = process.go_to_version(at, next, &programs);
            Ok(())
        })?;
        self.trace.line(self.now_ns, || format!("the rules of the next release: {}", if was_taken { "taken" } else { "not now" }));
        if was_taken && let Some(upgrade) = &mut self.upgrade {
            upgrade.was_taken = true;
            self.report.upgrades += 1;
            self.upgrade_the_others(next);
        }
        Ok(())
    }

    /// Those who are no members may become some.
    fn upgrade_the_others(&mut self, next: EngineVersion) {
        if self.settings.mutation == Some(Mutation::VersionUnchecked) {
            return;
        }
        for at in 0..self.machines.len() {
            if self.machines[at].process.is_some() && self.machines[at].engine_newest < next {
                // In good order: where promises are in memory, one that is killed would be lost.
                self.stop_in_order(at);
            }
        }
    }
}
