//! The venue: its shards, what is between them, and the order in which everything happens.

use std::collections::BTreeMap;

use walras_consensus::Durability;
use walras_event_queue::EventQueue;
use walras_testkit::{Choices, Random};
use walras_types::ClientTransferId;
use walras_wire::{Command, ShardCommand, ShardPlace, TransferOut};

use super::checks::{self, Checks, IN_TRANSIT, shard_id};
use super::faults::{self, Fault, Ways};
use super::handlers::{Incoming, RelayRequest, Reply};
use super::mutation::Mutation;
use super::relays::{RelayId, RunningRelay};
use super::report::{Report, Settings};
use super::set_back::{Copied, SetBackRun};
use crate::cluster;
use crate::cluster::shard_place::{NUMBERS_FROM, Notice, OfShards};
use crate::cluster::{HEALING_NS, World};
use crate::common::checks::Violation;
use crate::common::faults::pause_ns;
use crate::common::network::NetworkQuality;
use crate::common::panics;
use crate::common::trace::Trace;

/// Runs a venue of several shards from a seed: the safety phase, the healing phase, and perhaps a shard that is set back. A panic
/// of the product counts as a violation.
pub fn simulate(seed: u64, settings: &Settings, trace: &Trace) -> Result<Report, Violation> {
    panics::as_violations(|| Venue::new(seed, settings, trace.clone()).run())
}

/// What happens between shards.
pub(super) enum Event {
    /// A transfer relay's next round.
    Wake(RelayId, u64),
    /// A request of a transfer relay arrives.
    RelayRequest(RelayRequest),
    /// An answer to it arrives.
    Reply(RelayId, u64, usize, Reply),
    /// A transfer relay has waited long enough for one.
    OutOfPatience(RelayId, u64, usize),
    Fault,
    WaysHeal,
    /// Somebody copies the disks of a whole shard.
    BackUp,
    /// Somebody looks how it stands with the shard that was set back.
    Probe,
}

/// Who waits for something at a shard.
pub(super) enum Waits {
    Command(RelayId, u64),
    Directory(RelayRequest),
    /// One of those that were delivered together.
    Transfer(u64),
    /// The sender of transfers from a shard that was set back; whether it had been found by then.
    Probe(bool),
    /// Nobody: a transfer that is sent twice.
    Again,
}

/// What a run is at.
pub(super) enum Stage {
    Safety,
    Healing {
        since_ns: u64,
    },
    /// A shard is set back.
    SetBack(Box<SetBackRun>),
    /// It has its own state again.
    Restored {
        since_ns: u64,
        shard: usize,
    },
}

pub(super) struct Venue {
    pub(super) settings: Settings,
    pub(super) now_ns: u64,
    pub(super) schedule: EventQueue<Event>,
    pub(super) shards: Vec<World>,
    /// How often processes had begun and ended when transfer relays were looked after.
    pub(super) generations: Vec<u64>,
    pub(super) relays: BTreeMap<RelayId, RunningRelay>,
    pub(super) waits: BTreeMap<u64, Waits>,
    pub(super) incoming: BTreeMap<u64, Incoming>,
    next_number: u64,
    pub(super) ways: Ways,
    pub(super) choices: Choices<'static>,
    faults: Choices<'static>,
    pub(super) stage: Stage,
    /// Which shard is to be set back, and what was copied of it.
    pub(super) to_set_back: Option<usize>,
    pub(super) copied: Option<Copied>,
    pub(super) checks: Checks,
    pub(super) trace: Trace,
    pub(super) report: Report,
}

impl Venue {
    fn new(seed: u64, settings: &Settings, trace: Trace) -> Self {
        let random = Random::new(seed);
        let mut choices = Choices::of_random(random.fork(1));
        let drawn = choices.pick(&[2, 2, 2, 3, 4]);
        let count = settings.count.unwrap_or(drawn);
        let drawn = choices.one_in(2);
        let sets_back = settings.sets_back.unwrap_or(drawn);
        let victim = choices.below(count as u64) as usize;
        let cluster = cluster::Settings {
            replicas: settings.replicas,
            tempo: Some(cluster::Tempo::Storm),
            safety_ns: Some(settings.safety_ns),
            // Who counts on memory has no backups, and no replica comes back from a disk that was lost.
            durability: sets_back.then_some(Durability::Disk),
            loses_disks: sets_back.then_some(false),
            is_fair: Some(false),
            has_copies: Some(false),
            has_forks: Some(false),
            ..cluster::Settings::default()
        };
        let shard = |at: usize| {
            let of_shards = OfShards { place: ShardPlace { own: shard_id(at), count: shard_id(count).0 }, setup: random.fork(2) };
            World::of_shard(random.fork(100 + at as u64).next_u64(), &cluster, trace.clone(), &of_shards)
        };
        Self {
            settings: *settings,
            now_ns: 0,
            schedule: EventQueue::new(),
            shards: (0..count).map(shard).collect(),
            generations: vec![0; count],
            relays: BTreeMap::new(),
            waits: BTreeMap::new(),
            incoming: BTreeMap::new(),
            next_number: NUMBERS_FROM,
            ways: Ways::new(Choices::of_random(random.fork(3))),
            choices,
            faults: Choices::of_random(random.fork(4)),
            stage: Stage::Safety,
            to_set_back: sets_back.then_some(victim),
            copied: None,
            checks: Checks::new(count),
            trace,
            report: Report::default(),
        }
    }

    /// A number that was not given before.
    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn run(mut self) -> Result<Report, Violation> {
        let first_ns = pause_ns(&mut self.faults);
        self.schedule.at(first_ns, Event::Fault);
        if self.to_set_back.is_some() {
            let at_ns = self.choices.within(self.settings.safety_ns / 8, self.settings.safety_ns / 3);
            self.schedule.at(at_ns, Event::BackUp);
        }
        loop {
            self.step()?;
            self.hear()?;
            self.look_after_relays();
            self.check()?;
            if self.turn()? {
                return self.finish();
            }
        }
    }

    /// The next thing happens, in a shard or between them.
    fn step(&mut self) -> Result<(), Violation> {
        let of_shard = |shard: usize| (self.shards[shard].next_ns(), shard);
        let (shard_ns, shard) = (0..self.shards.len()).map(of_shard).min().expect("there are shards");
        if self.schedule.next_ns().is_none_or(|between_ns| shard_ns < between_ns) {
            self.now_ns = self.now_ns.max(shard_ns);
            return self.shards[shard].go_on();
        }
        let Some((time_ns, event)) = self.schedule.pop() else { return Ok(()) };
        self.now_ns = self.now_ns.max(time_ns);
        self.report.events += 1;
        self.happen(event)
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        if let Some(until_ns) = self.paused_until(&event) {
            self.schedule.at(until_ns, event);
            return Ok(());
        }
        match event {
            Event::Wake(relay_id, task) => self.wake(relay_id, task),
            Event::RelayRequest(request) => self.on_request(request),
            Event::Reply(relay_id, task, attempt, reply) => self.on_reply(relay_id, task, attempt, reply),
            Event::OutOfPatience(relay_id, task, attempt) => self.out_of_patience(relay_id, task, attempt),
            Event::Fault => {
                self.strike();
                Ok(())
            }
            Event::WaysHeal => {
                self.ways.heal();
                Ok(())
            }
            Event::BackUp => {
                self.back_up();
                Ok(())
            }
            Event::Probe => self.probe(),
        }
    }

    /// For events at a process that does nothing now.
    fn paused_until(&self, event: &Event) -> Option<u64> {
        let (shard, replica) = match event {
            Event::Wake(relay_id, _) | Event::Reply(relay_id, ..) | Event::OutOfPatience(relay_id, ..) => {
                (relay_id.shard, relay_id.replica)
            }
            Event::RelayRequest(request) => (request.from.to, request.replica),
            Event::Fault | Event::WaysHeal | Event::BackUp | Event::Probe => return None,
        };
        let until_ns = self.shards[shard].stands_still_until(replica);
        (until_ns > self.now_ns).then_some(until_ns)
    }

    fn strike(&mut self) {
        if !matches!(self.stage, Stage::Safety) {
            return;
        }
        let after_ns = pause_ns(&mut self.faults);
        self.schedule.at(self.now_ns + after_ns, Event::Fault);
        let fault = faults::draw(&mut self.faults, self.shards.len());
        self.trace.line(self.now_ns, || format!("fault between shards: {fault:?}"));
        self.report.faults += 1;
        match fault {
            Fault::Network(quality) => self.ways.quality = quality,
            Fault::Cut { from, to, both, for_ns } => {
                self.ways.cut(from, to);
                if both {
                    self.ways.cut(to, from);
                }
                self.schedule.at(self.now_ns + for_ns, Event::WaysHeal);
            }
            Fault::Alone { shard, for_ns } => {
                self.ways.part(shard, self.shards.len());
                self.schedule.at(self.now_ns + for_ns, Event::WaysHeal);
            }
            Fault::RelaysLost { shard } => self.lose_relays(shard),
        }
    }

    /// Answers those who wait at a shard.
    fn hear(&mut self) -> Result<(), Violation> {
        let mut has_heard = true;
        while has_heard {
            has_heard = false;
            for shard in 0..self.shards.len() {
                for (_, heard) in self.shards[shard].take_notices() {
                    has_heard = true;
                    match heard {
                        Notice::Read(number) => {
                            if let Some(Waits::Directory(request)) = self.waits.remove(&number) {
                                self.send_directory(&request);
                            }
                        }
                        Notice::Command(number, disposition) => {
                            if let Some(waits) = self.waits.remove(&number) {
                                self.on_disposition(waits, disposition)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Violation> {
        let set_back = self.who_is_set_back();
        let sent = self.checks.on_progress(&self.shards, set_back)?;
        if self.settings.mutation == Some(Mutation::SendsTwice) {
            for (shard, transfer) in sent {
                self.send_again(shard, transfer)?;
            }
        }
        Ok(())
    }

    fn send_again(&mut self, shard: usize, transfer: TransferOut) -> Result<(), Violation> {
        let Some(leader) = self.shards[shard].leading() else { return Ok(()) };
        let client_transfer_id = ClientTransferId(transfer.client_transfer_id.0 + 1);
        let number = self.number();
        self.waits.insert(number, Waits::Again);
        let again = Command::Shard(ShardCommand::TransferOut(TransferOut { client_transfer_id, ..transfer }));
        self.submit(shard, leader, &again, number).map(drop)
    }

    fn who_is_set_back(&self) -> Option<usize> {
        match &self.stage {
            Stage::SetBack(run) => Some(run.shard),
            Stage::Restored { shard, .. } => Some(*shard),
            Stage::Safety | Stage::Healing { .. } => None,
        }
    }

    /// Goes on to the next stage when it is time; whether the run is over.
    fn turn(&mut self) -> Result<bool, Violation> {
        match self.stage {
            Stage::Safety if self.now_ns >= self.settings.safety_ns => {
                self.ways.quality = NetworkQuality::GOOD;
                self.ways.heal();
                for shard in &mut self.shards {
                    shard.is_now(self.now_ns);
                    shard.heal();
                }
                self.stage = Stage::Healing { since_ns: self.now_ns };
                Ok(false)
            }
            Stage::Safety => Ok(false),
            Stage::Healing { since_ns } => {
                let has_healed = self.has_healed(since_ns)?;
                if has_healed {
                    self.report.healing_ns = self.now_ns - since_ns;
                }
                Ok(has_healed && !self.begin_set_back())
            }
            Stage::SetBack(_) => {
                self.watch_set_back()?;
                Ok(false)
            }
            Stage::Restored { since_ns, .. } => self.has_healed(since_ns),
        }
    }

    /// Whether everybody is answered and nothing is in transit.
    fn has_healed(&self, since_ns: u64) -> Result<bool, Violation> {
        if self.shards.iter().all(World::is_content) && checks::is_settled(&self.shards) {
            return Ok(true);
        }
        if self.now_ns <= since_ns + HEALING_NS {
            return Ok(false);
        }
        let mut waiting = checks::describe_unsettled(&self.shards);
        for (at, shard) in self.shards.iter().enumerate() {
            waiting.extend(shard.describe_waits().into_iter().map(|what| format!("shard {at}: {what}")));
        }
        Err(Violation::new(IN_TRANSIT, format!("long after faults stopped: {}", waiting.join("; "))))
    }

    fn finish(mut self) -> Result<Report, Violation> {
        self.checks.check_end()?;
        (self.report.sent, self.report.taken, self.report.returned) = self.checks.transfer_counts();
        self.report.comparisons = self.checks.counts.comparisons;
        // With those that a shard refused which was set back.
        self.report.stopped += self.checks.counts.stopped;
        self.report.simulated_ns = self.now_ns;
        self.report.lost_or_doubled = self.ways.lost_or_doubled;
        self.report.faults += self.ways.lost_or_doubled;
        for shard in self.shards {
            self.report.add_shard(&shard.end()?);
        }
        Ok(self.report)
    }
}
