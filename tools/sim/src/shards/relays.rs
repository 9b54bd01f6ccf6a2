//! The transfer relays: one at each process of a shard for each other shard, driven by the product's state machine.

use walras_engine::TransferOutcome;
use walras_transfer_relay::{Directory, Ended, Look, Pace, Pause, Reported, Step, TransferRelay, carried};
use walras_types::{AccountId, Amount, TransferSeq};
use walras_wire::{Command, ShardPlace, TransferIn};

use super::checks::shard_id;
use super::handlers::{Body, RelayRequest, Reply};
use super::mutation::Mutation;
use super::venue::{Event, Venue, Waits};
use crate::cluster::Disposition;
use crate::common::checks::Violation;

/// Where a transfer relay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RelayId {
    pub(super) shard: usize,
    pub(super) replica: usize,
    pub(super) to: usize,
}

/// A transfer relay at work.
pub(super) struct RunningRelay {
    /// Of its process.
    generation: u64,
    relay: TransferRelay,
    /// What it waits for. Results of other tasks come too late.
    task: u64,
    /// What it asks the other shard, and how many of its replicas it has tried.
    asks: Option<(Body, usize)>,
    /// Which of them answered last.
    at: usize,
    has_given_up: bool,
}

/// So that what happens to many happens to few.
const PACE: Pace = Pace { poll_ns: 10_000_000, retry_ns_max: 250_000_000 };
const TRANSFERS_AT_ONCE: usize = 8;
/// Longest wait for an answer.
const PATIENCE_NS: u64 = 600_000_000;
/// A thread is not at its next round at once.
const ROUND_NS: u64 = 50_000;

impl Venue {
    /// Processes begin and end, and their transfer relays with them.
    pub(super) fn look_after_relays(&mut self) {
        for shard in 0..self.shards.len() {
            let generations = self.shards[shard].generations();
            if std::mem::replace(&mut self.generations[shard], generations) == generations {
                continue;
            }
            for replica in self.shards[shard].replicas() {
                let generation_now = self.shards[shard].generation(replica);
                for to in (0..self.shards.len()).filter(|to| *to != shard) {
                    let relay_id = RelayId { shard, replica, to };
                    let there = self.relays.get(&relay_id).map(|running| running.generation);
                    match generation_now {
                        Some(generation) if there != Some(generation) => self.start_relay(relay_id, generation),
                        Some(_) => {}
                        None => drop(self.relays.remove(&relay_id)),
                    }
                }
            }
        }
    }

    /// All transfer relays of a shard are lost; others begin in their place, with what the states say.
    pub(super) fn lose_relays(&mut self, shard: usize) {
        let relay_ids: Vec<(RelayId, u64)> = self
            .relays
            .iter()
            .filter(|(relay_id, _)| relay_id.shard == shard)
            .map(|(relay_id, running)| (*relay_id, running.generation))
            .collect();
        relay_ids.into_iter().for_each(|(relay_id, generation)| self.start_relay(relay_id, generation));
    }

    fn start_relay(&mut self, relay_id: RelayId, generation: u64) {
        let place = ShardPlace { own: shard_id(relay_id.shard), count: shard_id(self.shards.len()).0 };
        let task = self.number();
        let relay = TransferRelay::new(place, shard_id(relay_id.to), PACE);
        let running = RunningRelay { generation, relay, task, asks: None, at: relay_id.replica, has_given_up: false };
        self.relays.insert(relay_id, running);
        self.report.relays += 1;
        let after_ns = 1 + self.choices.below(PACE.poll_ns);
        self.schedule.at(self.now_ns + after_ns, Event::Wake(relay_id, task));
    }

    /// The running that waits for this task.
    fn running_at(&mut self, relay_id: RelayId, task: u64) -> Option<&mut RunningRelay> {
        self.relays.get_mut(&relay_id).filter(|running| running.task == task)
    }

    /// It waits for something new.
    fn begin_task(&mut self, relay_id: RelayId) -> u64 {
        let task = self.number();
        if let Some(running) = self.relays.get_mut(&relay_id) {
            running.task = task;
        }
        task
    }

    /// A transfer relay's round begins.
    pub(super) fn wake(&mut self, relay_id: RelayId, task: u64) -> Result<(), Violation> {
        let Some(running) = self.running_at(relay_id, task) else { return Ok(()) };
        let step = running.relay.begin();
        self.act(relay_id, step)
    }

    /// What came of its command.
    pub(super) fn command_done(&mut self, relay_id: RelayId, task: u64, disposition: Disposition) -> Result<(), Violation> {
        let Some(running) = self.running_at(relay_id, task) else { return Ok(()) };
        match disposition {
            Disposition::Done(rejected) => {
                let step = running.relay.on_done(rejected);
                self.act(relay_id, step)
            }
            Disposition::Unknown => {
                self.undone(relay_id);
                Ok(())
            }
        }
    }

    /// An answer of the other shard, to the relay's last request or an earlier one.
    pub(super) fn on_reply(&mut self, relay_id: RelayId, task: u64, attempt: usize, reply: Reply) -> Result<(), Violation> {
        let running = self.running_at(relay_id, task);
        if running.is_none_or(|running| running.asks.as_ref().is_none_or(|(_, tried)| *tried != attempt)) {
            return Ok(());
        }
        match reply {
            Reply::Refused => self.try_next(relay_id),
            Reply::Directory(directory) => {
                let Some(running) = self.relays.get_mut(&relay_id) else { return Ok(()) };
                running.asks = None;
                let step = running.relay.on_directory(directory);
                self.act(relay_id, step)
            }
            Reply::Outcomes(reported) => self.outcomes(relay_id, reported),
        }
    }

    fn outcomes(&mut self, relay_id: RelayId, mut reported: Vec<Reported>) -> Result<(), Violation> {
        let is_unlucky = self.settings.mutation == Some(Mutation::TakenIsRefused) && self.choices.one_in(10);
        for (_, outcome) in &mut reported {
            match self.settings.mutation {
                Some(Mutation::RefusedIsTaken) => *outcome = TransferOutcome::Taken,
                _ if is_unlucky => *outcome = TransferOutcome::Refused,
                _ => {}
            }
        }
        let Some(running) = self.relays.get_mut(&relay_id) else { return Ok(()) };
        running.asks = None;
        let step = running.relay.on_outcomes(reported);
        self.act(relay_id, step)
    }

    /// Nothing was heard for long.
    pub(super) fn out_of_patience(&mut self, relay_id: RelayId, task: u64, attempt: usize) -> Result<(), Violation> {
        let mutation = self.settings.mutation;
        let Some(running) = self.running_at(relay_id, task) else { return Ok(()) };
        let Some((body, tried)) = &running.asks else { return Ok(()) };
        if *tried != attempt {
            return Ok(());
        }
        if let (Some(Mutation::SilenceIsTaken), Body::Transfers(transfers)) = (mutation, body) {
            let reported = transfers.iter().map(|transfer| (transfer.transfer_seq, TransferOutcome::Taken)).collect();
            return self.outcomes(relay_id, reported);
        }
        self.try_next(relay_id)
    }

    /// Asks the next replica there, if one is left.
    fn try_next(&mut self, relay_id: RelayId) -> Result<(), Violation> {
        let there = self.shards[relay_id.to].replicas().len();
        let Some(running) = self.relays.get_mut(&relay_id) else { return Ok(()) };
        running.at += 1;
        let Some((_, tried)) = &mut running.asks else { return Ok(()) };
        *tried += 1;
        if *tried < there {
            self.send_letter(relay_id);
        } else {
            self.undone(relay_id);
        }
        Ok(())
    }

    fn send_letter(&mut self, relay_id: RelayId) {
        let replicas = self.shards[relay_id.to].replicas();
        let Some(running) = self.relays.get(&relay_id) else { return };
        let Some((body, attempt)) = running.asks.clone() else { return };
        let (task, replica) = (running.task, replicas[running.at % replicas.len()]);
        let request = RelayRequest { from: relay_id, task, attempt, replica, body };
        let passage = self.ways.pass(self.now_ns, relay_id.shard, relay_id.to);
        for at_ns in [passage.original_ns, passage.replay_ns].into_iter().flatten() {
            self.schedule.at(at_ns, Event::RelayRequest(request.clone()));
        }
        self.schedule.at(self.now_ns + PATIENCE_NS, Event::OutOfPatience(relay_id, task, attempt));
    }

    fn ask(&mut self, relay_id: RelayId, body: Body) {
        self.begin_task(relay_id);
        if let Some(running) = self.relays.get_mut(&relay_id) {
            running.asks = Some((body, 0));
        }
        self.send_letter(relay_id);
    }

    /// Does one step after the other, until one takes time.
    fn act(&mut self, relay_id: RelayId, first: Step) -> Result<(), Violation> {
        let mut step = first;
        loop {
            let Some(running) = self.relays.get_mut(&relay_id) else { return Ok(()) };
            step = match step {
                Step::Look => {
                    let engine = self.shards[relay_id.shard].leading_engine(relay_id.replica);
                    running.relay.on_look(engine.map(|engine| Look::at(engine, shard_id(relay_id.to), TRANSFERS_AT_ONCE)))
                }
                Step::Ask if self.settings.mutation == Some(Mutation::NeverAsks) => {
                    let directory = self.made_up(relay_id);
                    let Some(running) = self.relays.get_mut(&relay_id) else { return Ok(()) };
                    running.relay.on_directory(directory)
                }
                Step::Command(command) => return self.submit_for(relay_id, &command),
                Step::Ask => {
                    self.ask(relay_id, Body::Directory);
                    return Ok(());
                }
                Step::Deliver(waiting) => {
                    let own = shard_id(relay_id.shard);
                    let transfers = waiting.iter().map(|waits| self.spoilt(carried(own, waits))).collect();
                    self.ask(relay_id, Body::Transfers(transfers));
                    return Ok(());
                }
                Step::Over(ended) => {
                    self.end_round(relay_id, &ended);
                    return Ok(());
                }
            };
        }
    }

    fn submit_for(&mut self, relay_id: RelayId, command: &Command) -> Result<(), Violation> {
        let task = self.begin_task(relay_id);
        let number = self.number();
        self.waits.insert(number, Waits::Command(relay_id, task));
        if !self.submit(relay_id.shard, relay_id.replica, command, number)? {
            self.undone(relay_id);
        }
        Ok(())
    }

    /// A step could not be done, or nobody knows whether it was.
    fn undone(&mut self, relay_id: RelayId) {
        if let Some(running) = self.relays.get_mut(&relay_id) {
            running.relay.on_failed();
            running.has_given_up |= self.settings.mutation == Some(Mutation::GivesUp);
        }
        self.report.failed_rounds += 1;
        self.rest(relay_id);
    }

    fn end_round(&mut self, relay_id: RelayId, ended: &Ended) {
        if let Ended::Failed(trouble) = ended {
            self.report.failed_rounds += 1;
            self.trace.line(self.now_ns, || format!("{relay_id:?}: {trouble}"));
            if let Some(running) = self.relays.get_mut(&relay_id) {
                running.at += 1;
                running.has_given_up |= self.settings.mutation == Some(Mutation::GivesUp);
            }
        }
        self.rest(relay_id);
    }

    fn rest(&mut self, relay_id: RelayId) {
        let random = self.choices.any() as u32;
        let task = self.begin_task(relay_id);
        let Some(running) = self.relays.get_mut(&relay_id) else { return };
        running.asks = None;
        if running.has_given_up {
            return;
        }
        let after_ns = match running.relay.pause(random) {
            Pause::None => ROUND_NS,
            Pause::UntilRung(ns) | Pause::Whole(ns) => ns.max(ROUND_NS),
        };
        self.schedule.at(self.now_ns + after_ns, Event::Wake(relay_id, task));
    }

    /// What nothing contradicts.
    fn made_up(&self, relay_id: RelayId) -> Directory {
        let own = shard_id(relay_id.to);
        let engine = self.shards[relay_id.shard].engine(relay_id.replica);
        let mut numbers = engine.and_then(|engine| engine.transfer_numbers(own));
        if let Some(numbers) = &mut numbers {
            (numbers.oldest_out, numbers.next_in) = (numbers.next_in, numbers.oldest_out);
            numbers.next_out = TransferSeq(u64::MAX);
        }
        Directory { own, numbers }
    }

    fn spoilt(&self, transfer: TransferIn) -> TransferIn {
        match self.settings.mutation {
            Some(Mutation::DeliversMore) => {
                let more = Amount::new(transfer.amount.get() + 1).unwrap_or(transfer.amount);
                TransferIn { amount: more, ..transfer }
            }
            Some(Mutation::DeliversToAnother) => TransferIn { account: AccountId((transfer.account.0 + 1) % 4), ..transfer },
            _ => transfer,
        }
    }
}
