//! A running venue: requests in, answers and events out. The log's thread, the engine's and the snapshots' are timers here.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use walras_engine::Engine;
use walras_gateway::{Gateway, Permission, Request, SourceId};
use walras_log_store::{SnapshotStore, Written};
use walras_sequencer::{Applied, Batch, Entry, Refused, Sequencer, SolveJob, decode_entry, encode_entry};
use walras_testkit::Listener;
use walras_types::{Amount, LogIndex, RejectReason, TimeNs};
use walras_wire::{AccountCommand, BatchEvent, Command, Event, OrderCommand, Transfer, VenueCommand, decode_command};

use super::keeper::{Keeper, LogEntries};
use super::start::FrozenState;
use crate::common::batches::solve;
use crate::common::disk::VenueDisk;
use crate::single::messages::{self, Address, Answer, AttemptId, ClientId, Copy, Done, METHOD, Message, PATH, Reply};
use crate::single::mutation::Mutation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeTimer {
    /// The log's thread has written its batch, or failed to.
    BatchWritten,
    /// The engine's thread applies what is durable.
    Apply,
    /// The snapshots' thread has written a snapshot, or failed to.
    SnapshotWritten,
    /// Nothing came for a while.
    Tick,
    /// The next segment is prepared.
    Maintain,
    /// A batch is due to be closed, or solved again.
    Drive,
    /// A solver is done with a closed batch.
    Solved,
}

/// When something happens to a process, and how fast its machine is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Time that never goes back: the simulation's own.
    pub(crate) now_ns: u64,
    /// The time of day as the machine has it.
    pub(crate) clock_ns: u64,
    /// How many times longer its disk takes.
    pub(crate) slow: u64,
}

/// Who is to be answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    attempt: AttemptId,
    from: ClientId,
    copy: Copy,
}

/// What everybody may see of one entry.
#[derive(Clone, Debug)]
pub(crate) struct Released {
    pub(crate) log_index: LogIndex,
    pub(crate) time: TimeNs,
    pub(crate) events: Vec<Event>,
}

#[derive(Debug)]
pub(crate) enum Effect {
    Send(Address, Message),
    Timer(u64, NodeTimer),
    Release(Released),
}

pub(crate) struct Process {
    gateway: Gateway,
    sequencer: Sequencer<Option<Origin>>,
    listener: Listener,
    keeper: Keeper,
    snapshots: SnapshotStore<VenueDisk>,
    /// What the log's thread is writing, and since when.
    in_flight: Option<(u64, Batch)>,
    apply_is_due: bool,
    /// What the snapshots' thread is writing.
    snapshot_job: Option<(LogIndex, FrozenState)>,
    snapshot_index: LogIndex,
    pub(crate) snapshots_written: u64,
    /// Blocks of the batch market that this process saw cleared.
    pub(crate) blocks_cleared: u64,
    /// Closed batches that a solver is at, oldest first.
    solving: VecDeque<SolveJob>,
    /// When batches are looked at again.
    drive_at_ns: Option<u64>,
    mutation: Option<Mutation>,
    /// What a mutation writes to the log in place of what is applied.
    in_log: BTreeMap<LogIndex, (TimeNs, Command)>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Process(last applied {})", self.engine().last_applied())
    }
}

const SNAPSHOT_EVERY: u64 = 50;
const WRITE_NS: u64 = 200_000;
const APPLY_NS: u64 = 10_000;
const SNAPSHOT_NS: u64 = 2_000_000;
const SOLVE_NS: u64 = 4_000_000;
const TICK_NS: u64 = 250_000_000;

impl Process {
    pub(super) fn new(
        gateway: Gateway,
        sequencer: Sequencer<Option<Origin>>,
        listener: Listener,
        keeper: Keeper,
        snapshots: SnapshotStore<VenueDisk>,
        snapshot_index: LogIndex,
        mutation: Option<Mutation>,
    ) -> Self {
        Self {
            gateway,
            sequencer,
            listener,
            keeper,
            snapshots,
            in_flight: None,
            apply_is_due: false,
            snapshot_job: None,
            snapshot_index,
            snapshots_written: 0,
            blocks_cleared: 0,
            solving: VecDeque::new(),
            drive_at_ns: None,
            mutation,
            in_log: BTreeMap::new(),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.sequencer.engine()
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Durable entries as the disk has them; `None` while the log is not open.
    pub(crate) fn log_entries_from(&self, from: LogIndex) -> Option<LogEntries> {
        self.keeper.entries_from(from)
    }

    /// The first timers of a process.
    pub(crate) fn begin(&mut self, at: Moment, effects: &mut Vec<Effect>) {
        effects.push(Effect::Timer(TICK_NS, NodeTimer::Tick));
        self.drive_batches(at, effects);
        self.write_next(at, effects);
    }

    /// Closes what is due, has closed batches solved, and sees that it is asked again in time.
    fn drive_batches(&mut self, at: Moment, effects: &mut Vec<Effect>) {
        let mut jobs = Vec::new();
        self.sequencer.drive_batches(at.now_ns, TimeNs(at.clock_ns), &mut jobs);
        for job in jobs {
            self.solving.push_back(job);
            effects.push(Effect::Timer(SOLVE_NS * at.slow, NodeTimer::Solved));
        }
        let due_ns = self.sequencer.next_batch_ns().max(at.now_ns + 1);
        if due_ns < u64::MAX && self.drive_at_ns.is_none_or(|planned_ns| due_ns < planned_ns) {
            self.drive_at_ns = Some(due_ns);
            effects.push(Effect::Timer(due_ns - at.now_ns, NodeTimer::Drive));
        }
    }

    /// A batch that is closed and not cleared, or collects.
    pub(crate) fn unfinished_batch(&self) -> Option<String> {
        let unfinished = self.engine().batch_markets().find(|view| view.closed.is_some() || view.collected > 0)?;
        let how = if unfinished.closed.is_some() { "is closed and not cleared" } else { "is not closed" };
        Some(format!("block {} of batch market {} {how}", unfinished.next_block, unfinished.spec.market))
    }

    pub(crate) fn on_request(&mut self, at: Moment, request: &messages::Request, effects: &mut Vec<Effect>) {
        let origin = Origin { attempt: request.attempt, from: request.from, copy: request.copy };
        match self.admit(at.clock_ns, request) {
            Ok(command) => {
                if self.mutation == Some(Mutation::SubmitTwice) {
                    self.submit(at.clock_ns, command, None);
                }
                if let Some(Refused(back)) = self.submit(at.clock_ns, command, Some(origin)) {
                    reply(back, Answer::Refused(RejectReason::Overloaded), effects);
                }
                self.write_next(at, effects);
            }
            Err(reason) => reply(Some(origin), Answer::Refused(reason), effects),
        }
    }

    fn admit(&mut self, clock_ns: u64, request: &messages::Request) -> Result<Command, RejectReason> {
        let source = SourceId::of(IpAddr::V4(Ipv4Addr::from_bits(request.from.0 as u32)));
        let command = decode_command(&request.body).map_err(|_| RejectReason::Malformed)?;
        let account = command.account();
        let permission = if account.is_some() { Permission::Trade } else { Permission::Operator };
        let signed = Request { method: METHOD, path: PATH, body: &request.body };
        let principal = self.gateway.authorize(clock_ns, source, &signed, Some(&request.fields), permission);
        let principal = principal.map_err(|refusal| refusal.reason)?;
        if account.is_some() && account != principal.account() { Err(RejectReason::Forbidden) } else { Ok(command) }
    }

    /// As [`Mutation::ReplayTwice`] has it.
    pub(super) fn submit_again(&mut self, clock_ns: u64, command: Command) {
        self.submit(clock_ns, command, None);
    }

    fn submit(&mut self, clock_ns: u64, command: Command, origin: Option<Origin>) -> Option<Refused<Option<Origin>>> {
        let applied = match (self.mutation, command) {
            (Some(Mutation::ForgetCancel), Command::Order(OrderCommand::Cancel(_))) => Command::Venue(VenueCommand::Tick),
            (Some(Mutation::CreditTwice), Command::Account(AccountCommand::Deposit(transfer))) => {
                let amount = Amount::new(transfer.amount.get().saturating_mul(2)).unwrap_or(transfer.amount);
                Command::Account(AccountCommand::Deposit(Transfer { amount, ..transfer }))
            }
            _ => command,
        };
        let submitted = self.sequencer.submit(TimeNs(clock_ns), applied, origin);
        match (submitted, self.mutation) {
            (Ok(index), Some(Mutation::StampBackwards)) => {
                self.in_log.insert(index, (TimeNs(clock_ns), command));
            }
            (Ok(index), Some(_)) if applied != command => {
                self.in_log.insert(index, (TimeNs(clock_ns), command));
            }
            (Ok(_), _) => {}
            (Err(refused), _) => return Some(refused),
        }
        None
    }

    /// Gives the log its next batch, if it is free.
    fn write_next(&mut self, at: Moment, effects: &mut Vec<Effect>) {
        if self.in_flight.is_none()
            && let Some(batch) = self.sequencer.next_batch(Batch::default())
        {
            self.in_flight = Some((at.now_ns, self.as_logged(batch)));
            effects.push(Effect::Timer(WRITE_NS * at.slow, NodeTimer::BatchWritten));
            if self.mutation == Some(Mutation::ReleaseEventsEarly) {
                self.sequencer.on_durable();
                self.apply(effects);
            }
        }
    }

    /// The batch, but for what a mutation changes.
    fn as_logged(&mut self, batch: Batch) -> Batch {
        if self.in_log.is_empty() {
            return batch;
        }
        let mut changed = Batch { first: batch.first, ..Batch::default() };
        for (index, bytes) in (batch.first.0..).map(LogIndex).zip(batch.entries()) {
            let entry = decode_entry(index, bytes).expect("the sequencer encoded it");
            match self.in_log.remove(&index) {
                Some((time, command)) if self.mutation == Some(Mutation::StampBackwards) => {
                    encode_entry(time, None, &command, &mut changed.bytes);
                }
                Some((_, command)) => encode_entry(entry.time, None, &command, &mut changed.bytes),
                None => changed.bytes.extend_from_slice(bytes),
            }
            changed.ends.push(changed.bytes.len());
        }
        changed
    }

    pub(crate) fn on_timer(&mut self, at: Moment, timer: NodeTimer, effects: &mut Vec<Effect>) {
        match timer {
            NodeTimer::BatchWritten => self.batch_written(at, effects),
            NodeTimer::Apply => {
                self.apply_is_due = false;
                self.apply(effects);
                self.drive_batches(at, effects);
                self.write_next(at, effects);
                self.snapshot_if_due(at.slow, effects);
            }
            NodeTimer::Drive => {
                self.drive_at_ns = None;
                self.drive_batches(at, effects);
                self.write_next(at, effects);
            }
            NodeTimer::Solved => {
                if let Some(job) = self.solving.pop_front() {
                    self.sequencer.on_solved(at.now_ns, TimeNs(at.clock_ns), solve(&job));
                    self.write_next(at, effects);
                }
            }
            NodeTimer::SnapshotWritten => self.snapshot_written(),
            NodeTimer::Maintain => {
                if let Some(upkeep) = self.keeper.upkeep(at.now_ns) {
                    // A failure costs nothing yet.
                    let _ = upkeep.run();
                }
            }
            NodeTimer::Tick => {
                effects.push(Effect::Timer(TICK_NS, NodeTimer::Tick));
                if self.sequencer.waiting() == 0 {
                    self.keeper.seal();
                    self.submit(at.clock_ns, Command::Venue(VenueCommand::Tick), None);
                    self.write_next(at, effects);
                }
            }
        }
    }

    fn batch_written(&mut self, at: Moment, effects: &mut Vec<Effect>) {
        let Some((begun_ns, batch)) = self.in_flight.take() else { return };
        let released_early = self.mutation == Some(Mutation::ReleaseEventsEarly);
        match self.keeper.write(begun_ns, at.now_ns, &batch) {
            Written::Durable { .. } => {
                effects.push(Effect::Timer(SNAPSHOT_NS, NodeTimer::Maintain));
                if !released_early {
                    self.sequencer.on_durable();
                }
                // The log gets its next batch before this one is applied, so that both work at once.
                self.write_next(at, effects);
                if !self.apply_is_due {
                    self.apply_is_due = true;
                    effects.push(Effect::Timer(APPLY_NS, NodeTimer::Apply));
                }
            }
            Written::Undone(_) => self.log_failed(0, effects),
            Written::InDoubt { .. } => self.log_failed(batch.ends.len(), effects),
        }
    }

    /// Answers everybody whose command is not durable. The first `in_doubt`, the batch that was with the log, may be in it all the same;
    /// those behind were never written.
    fn log_failed(&mut self, in_doubt: usize, effects: &mut Vec<Effect>) {
        self.in_log.clear();
        let mut left = in_doubt;
        self.sequencer.on_log_failed(|origin| {
            let answer = if left > 0 { Answer::InDoubt } else { Answer::Refused(RejectReason::StorageFull) };
            left = left.saturating_sub(1);
            reply(origin, answer, effects);
        });
    }

    fn apply(&mut self, effects: &mut Vec<Effect>) {
        let Self { sequencer, listener, mutation, blocks_cleared, .. } = self;
        sequencer.apply_durable(|engine, Applied { entry, origin, events, .. }| {
            let Entry { log_index, time, .. } = *entry;
            *blocks_cleared += events.iter().filter(|event| matches!(event, Event::Batch(BatchEvent::Cleared(_)))).count() as u64;
            let heard = match mutation {
                Some(Mutation::LoseLastEvent) => events.len().saturating_sub(1),
                _ => events.len(),
            };
            // Whether it could follow is for the checkers to see.
            let _ = listener.on_applied(engine, log_index, time, &events[..heard]);
            effects.push(Effect::Release(Released { log_index, time, events: events.to_vec() }));
            // Nobody asked for a clearing.
            if let Some(&command) = entry.content.command() {
                reply(origin, Answer::Done(Done { log_index, time, command, events: events.to_vec() }), effects);
            }
        });
    }

    fn snapshot_if_due(&mut self, slow: u64, effects: &mut Vec<Effect>) {
        let last = self.engine().last_applied();
        if last.0 - self.snapshot_index.0 >= SNAPSHOT_EVERY && self.snapshot_job.is_none() {
            self.snapshot_job = Some((last, FrozenState::new(self.engine(), &self.listener)));
            self.snapshot_index = last;
            effects.push(Effect::Timer(SNAPSHOT_NS * slow, NodeTimer::SnapshotWritten));
        }
    }

    fn snapshot_written(&mut self) {
        let Some((index, state)) = self.snapshot_job.take() else { return };
        if self.mutation == Some(Mutation::LetGoBeforeSnapshot) {
            self.keeper.let_go(index);
        }
        if self.snapshots.write(index, &state.encode()).is_ok() {
            self.snapshots_written += 1;
            if let Some(up_to) = self.snapshots.spare_up_to() {
                self.keeper.let_go(up_to);
            }
        }
    }
}

fn reply(origin: Option<Origin>, answer: Answer, effects: &mut Vec<Effect>) {
    if let Some(Origin { attempt, from, copy: Copy::Original }) = origin {
        effects.push(Effect::Send(Address::Client(from), Message::Reply(Reply { attempt, answer })));
    }
}
