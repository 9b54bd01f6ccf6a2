//! The transfer relays: one at each process of a shard for each other shard, driven by the product's state machine.

use walras_engine::TransferOutcome;
use walras_transfer_relay::{Directory, Ended, Look, Pace, Pause, Reported, Step, TransferRelay, carried};
use walras_types::{AccountId, Amount, TransferSeq};
use walras_wire::{Command, ShardPlace, TransferIn};

use super::checks::shard_id;
use super::desk::{Body, Letter, Reply};
use super::mutation::Mutation;
use super::venue::{Event, Venue, Waits};
use crate::cluster::Fate;
use crate::common::checks::Violation;

/// Where a transfer relay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Office {
    pub(super) shard: usize,
    pub(super) replica: usize,
    pub(super) to: usize,
}

/// A transfer relay at work.
pub(super) struct Post {
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
                let running = self.shards[shard].generation(replica);
                for to in (0..self.shards.len()).filter(|to| *to != shard) {
                    let office = Office { shard, replica, to };
                    let there = self.posts.get(&office).map(|post| post.generation);
                    match running {
                        Some(generation) if there != Some(generation) => self.hire(office, generation),
                        Some(_) => {}
                        None => drop(self.posts.remove(&office)),
                    }
                }
            }
        }
    }

    /// All transfer relays of a shard are lost; others begin in their place, with what the states say.
    pub(super) fn lose_relays(&mut self, shard: usize) {
        let offices: Vec<(Office, u64)> = self
            .posts
            .iter()
            .filter(|(office, _)| office.shard == shard)
            .map(|(office, post)| (*office, post.generation))
            .collect();
        offices.into_iter().for_each(|(office, generation)| self.hire(office, generation));
    }

    fn hire(&mut self, office: Office, generation: u64) {
        let place = ShardPlace { own: shard_id(office.shard), count: shard_id(self.shards.len()).0 };
        let task = self.number();
        let relay = TransferRelay::new(place, shard_id(office.to), PACE);
        let post = Post { generation, relay, task, asks: None, at: office.replica, has_given_up: false };
        self.posts.insert(office, post);
        self.report.relays += 1;
        let after_ns = 1 + self.choices.below(PACE.poll_ns);
        self.schedule.at(self.now_ns + after_ns, Event::Wake(office, task));
    }

    /// The post that waits for this task.
    fn post_at(&mut self, office: Office, task: u64) -> Option<&mut Post> {
        self.posts.get_mut(&office).filter(|post| post.task == task)
    }

    /// It waits for something new.
    fn begin_task(&mut self, office: Office) -> u64 {
        let task = self.number();
        if let Some(post) = self.posts.get_mut(&office) {
            post.task = task;
        }
        task
    }

    /// A transfer relay's round begins.
    pub(super) fn wake(&mut self, office: Office, task: u64) -> Result<(), Violation> {
        let Some(post) = self.post_at(office, task) else { return Ok(()) };
        let step = post.relay.begin();
        self.act(office, step)
    }

    /// What came of its command.
    pub(super) fn command_done(&mut self, office: Office, task: u64, fate: Fate) -> Result<(), Violation> {
        let Some(post) = self.post_at(office, task) else { return Ok(()) };
        match fate {
            Fate::Done(rejected) => {
                let step = post.relay.on_done(rejected);
                self.act(office, step)
            }
            Fate::Unknown => {
                self.undone(office);
                Ok(())
            }
        }
    }

    /// An answer of the other shard, to the relay's last request or an earlier one.
    pub(super) fn on_reply(&mut self, office: Office, task: u64, attempt: usize, reply: Reply) -> Result<(), Violation> {
        let post = self.post_at(office, task);
        if post.is_none_or(|post| post.asks.as_ref().is_none_or(|(_, tried)| *tried != attempt)) {
            return Ok(());
        }
        match reply {
            Reply::Refused => self.try_next(office),
            Reply::Directory(directory) => {
                let Some(post) = self.posts.get_mut(&office) else { return Ok(()) };
                post.asks = None;
                let step = post.relay.on_directory(directory);
                self.act(office, step)
            }
            Reply::Outcomes(told) => self.outcomes(office, told),
        }
    }

    fn outcomes(&mut self, office: Office, mut told: Vec<Reported>) -> Result<(), Violation> {
        let is_unlucky = self.settings.mutation == Some(Mutation::TakenIsRefused) && self.choices.one_in(10);
        for (_, outcome) in &mut told {
            match self.settings.mutation {
                Some(Mutation::RefusedIsTaken) => *outcome = TransferOutcome::Taken,
                _ if is_unlucky => *outcome = TransferOutcome::Refused,
                _ => {}
            }
        }
        let Some(post) = self.posts.get_mut(&office) else { return Ok(()) };
        post.asks = None;
        let step = post.relay.on_outcomes(told);
        self.act(office, step)
    }

    /// Nothing was heard for long.
    pub(super) fn out_of_patience(&mut self, office: Office, task: u64, attempt: usize) -> Result<(), Violation> {
        let mutation = self.settings.mutation;
        let Some(post) = self.post_at(office, task) else { return Ok(()) };
        let Some((body, tried)) = &post.asks else { return Ok(()) };
        if *tried != attempt {
            return Ok(());
        }
        if let (Some(Mutation::SilenceIsTaken), Body::Transfers(transfers)) = (mutation, body) {
            let told = transfers.iter().map(|transfer| (transfer.transfer_seq, TransferOutcome::Taken)).collect();
            return self.outcomes(office, told);
        }
        self.try_next(office)
    }

    /// Asks the next replica there, if one is left.
    fn try_next(&mut self, office: Office) -> Result<(), Violation> {
        let there = self.shards[office.to].replicas().len();
        let Some(post) = self.posts.get_mut(&office) else { return Ok(()) };
        post.at += 1;
        let Some((_, tried)) = &mut post.asks else { return Ok(()) };
        *tried += 1;
        if *tried < there {
            self.send_letter(office);
        } else {
            self.undone(office);
        }
        Ok(())
    }

    fn send_letter(&mut self, office: Office) {
        let replicas = self.shards[office.to].replicas();
        let Some(post) = self.posts.get(&office) else { return };
        let Some((body, attempt)) = post.asks.clone() else { return };
        let (task, replica) = (post.task, replicas[post.at % replicas.len()]);
        let letter = Letter { from: office, task, attempt, replica, body };
        let passage = self.ways.pass(self.now_ns, office.shard, office.to);
        for at_ns in [passage.original_ns, passage.replay_ns].into_iter().flatten() {
            self.schedule.at(at_ns, Event::Letter(letter.clone()));
        }
        self.schedule.at(self.now_ns + PATIENCE_NS, Event::OutOfPatience(office, task, attempt));
    }

    fn ask(&mut self, office: Office, body: Body) {
        self.begin_task(office);
        if let Some(post) = self.posts.get_mut(&office) {
            post.asks = Some((body, 0));
        }
        self.send_letter(office);
    }

    /// Does one step after the other, until one takes time.
    fn act(&mut self, office: Office, first: Step) -> Result<(), Violation> {
        let mut step = first;
        loop {
            let Some(post) = self.posts.get_mut(&office) else { return Ok(()) };
            step = match step {
                Step::Look => {
                    let engine = self.shards[office.shard].leading_engine(office.replica);
                    post.relay.on_look(engine.map(|engine| Look::at(engine, shard_id(office.to), TRANSFERS_AT_ONCE)))
                }
                Step::Ask if self.settings.mutation == Some(Mutation::NeverAsks) => {
                    let directory = self.made_up(office);
                    let Some(post) = self.posts.get_mut(&office) else { return Ok(()) };
                    post.relay.on_directory(directory)
                }
                Step::Command(command) => return self.submit_for(office, &command),
                Step::Ask => {
                    self.ask(office, Body::Directory);
                    return Ok(());
                }
                Step::Deliver(waiting) => {
                    let own = shard_id(office.shard);
                    let transfers = waiting.iter().map(|waits| self.spoilt(carried(own, waits))).collect();
                    self.ask(office, Body::Transfers(transfers));
                    return Ok(());
                }
                Step::Over(ended) => {
                    self.end_round(office, &ended);
                    return Ok(());
                }
            };
        }
    }

    fn submit_for(&mut self, office: Office, command: &Command) -> Result<(), Violation> {
        let task = self.begin_task(office);
        let number = self.number();
        self.waits.insert(number, Waits::Command(office, task));
        if !self.submit(office.shard, office.replica, command, number)? {
            self.undone(office);
        }
        Ok(())
    }

    /// A step could not be done, or nobody knows whether it was.
    fn undone(&mut self, office: Office) {
        if let Some(post) = self.posts.get_mut(&office) {
            post.relay.on_failed();
            post.has_given_up |= self.settings.mutation == Some(Mutation::GivesUp);
        }
        self.report.failed_rounds += 1;
        self.rest(office);
    }

    fn end_round(&mut self, office: Office, ended: &Ended) {
        if let Ended::Failed(trouble) = ended {
            self.report.failed_rounds += 1;
            self.trace.line(self.now_ns, || format!("{office:?}: {trouble}"));
            if let Some(post) = self.posts.get_mut(&office) {
                post.at += 1;
                post.has_given_up |= self.settings.mutation == Some(Mutation::GivesUp);
            }
        }
        self.rest(office);
    }

    fn rest(&mut self, office: Office) {
        let random = self.choices.any() as u32;
        let task = self.begin_task(office);
        let Some(post) = self.posts.get_mut(&office) else { return };
        post.asks = None;
        if post.has_given_up {
            return;
        }
        let after_ns = match post.relay.pause(random) {
            Pause::None => ROUND_NS,
            Pause::UntilRung(ns) | Pause::Whole(ns) => ns.max(ROUND_NS),
        };
        self.schedule.at(self.now_ns + after_ns, Event::Wake(office, task));
    }

    /// What nothing contradicts.
    fn made_up(&self, office: Office) -> Directory {
        let own = shard_id(office.to);
        let engine = self.shards[office.shard].engine(office.replica);
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
