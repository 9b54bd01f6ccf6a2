//! The thread that everything meets on: takes commands, has them logged, applies them, answers, feeds.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, never, select};
use tokio::sync::oneshot;
use tracing::{error, info};
use walras_access::Clock;
use walras_engine::Engine;
use walras_market_data::AccountDelta;
use walras_ports::{
    Asker, Feed, Inbound, KeyRing, NoOutcome, Outcome, Progress, Queues, Request, SharedCatalog, Stage, Stages, Status, Storage,
    View,
};
use walras_replica::{Derived, FrozenState};
use walras_sequencer::{Applied, Batch, Entry, KeyName, Sequencer, SolveJob};
use walras_types::{AccountId, LogIndex, RejectReason};
use walras_wire::{Command, Event, VenueCommand};

use super::batches::{Declared, Solver};
use super::listeners::Listeners;
use super::log_thread::{LogDone, LogJob};
use super::recovery::SnapshotJob;

/// Commands taken from the queue before reads and the log get their turn.
pub(super) const BURST_MAX: usize = 1024;

/// Everything that follows from the log: what recovery rebuilds and the thread then keeps.
pub(super) struct Core {
    pub(super) derived: Derived,
    pub(super) listeners: Listeners,
    deltas: Vec<(AccountId, AccountDelta)>,
}

impl Core {
    pub(super) fn new(engine: &Engine, derived: Derived, keys: KeyRing) -> Self {
        Self { derived, listeners: Listeners::new(engine, keys), deltas: Vec::new() }
    }

    /// Takes the events of one entry, of which no feed need hear in a replay; whether the catalog changed.
    pub(super) fn on_events(&mut self, entry: &Entry, engine: &Engine, events: &[Event], feed: Option<&mut Feed>) -> bool {
        let Self { derived, listeners, deltas } = self;
        if let Err(e) = derived.on_entry(engine, entry, events, deltas) {
            error!("market data: {e}");
        }
        listeners.on_events(entry, engine, events, deltas, feed)
    }
}

/// How the thread paces itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) flush_every: Duration,
    pub(super) tick_every: Duration,
    /// Entries between snapshots; 0 for none.
    pub(super) snapshot_every: u64,
    /// Time between snapshots, where anything was logged; zero for none.
    pub(super) snapshot_every_time: Duration,
    pub(super) snapshot_at: Instant,
    pub(super) snapshot_index: LogIndex,
}

impl Pace {
    fn wants_snapshot(&self, last: LogIndex, now: Instant) -> bool {
        let entries = last.0 - self.snapshot_index.0;
        let by_count = self.snapshot_every > 0 && entries >= self.snapshot_every;
        let is_due = || !self.snapshot_every_time.is_zero() && now.duration_since(self.snapshot_at) >= self.snapshot_every_time;
        by_count || (entries > 0 && is_due())
    }
}

pub(super) struct EngineThread {
    pub(super) sequencer: Sequencer<Option<Asker>>,
    pub(super) core: Core,
    pub(super) feed: Feed,
    pub(super) queues: Queues,
    pub(super) log: Sender<LogJob>,
    pub(super) log_done: Receiver<LogDone>,
    pub(super) snapshots: Sender<SnapshotJob>,
    pub(super) snapshots_done: Receiver<Option<LogIndex>>,
    pub(super) shared_catalog: SharedCatalog,
    pub(super) clock: Clock,
    pub(super) begun: Instant,
    pub(super) status: Status,
    pub(super) pace: Pace,
    pub(super) commands_max: usize,
    /// Commands in the batch last given to the log.
    pub(super) in_log: usize,
    pub(super) stages: Stages,
    /// When the log was given its batch.
    pub(super) given: Instant,
    /// When it was told that one is durable.
    pub(super) durable: Instant,
    pub(super) solver: Solver,
    pub(super) declared: Declared,
    pub(super) jobs: Vec<SolveJob>,
}

impl EngineThread {
    /// Runs until asked to stop and everything taken is durable and answered; then writes a last snapshot.
    pub(super) fn run(mut self) {
        let closed = never();
        let solved = self.solver.done().clone();
        let (mut next_flush, mut next_tick) = (Instant::now(), Instant::now() + self.pace.tick_every);
        let mut spare = Batch::default();
        let mut stopping = false;
        self.status.set_ready(true);
        while !stopping || self.sequencer.waiting() > 0 || !self.queues.commands.is_empty() {
            let room = self.sequencer.waiting() < self.commands_max;
            let wait = next_flush.min(next_tick).saturating_duration_since(Instant::now()).min(self.until_batch());
            select! {
                recv(self.log_done) -> done => match done {
                    Ok(LogDone::Durable(batch)) => {
                        self.durable = Instant::now();
                        let count = u32::try_from(self.in_log).unwrap_or(u32::MAX);
                        self.stages.record(Stage::Log, self.durable, self.durable.saturating_duration_since(self.given), count);
                        self.sequencer.on_durable();
                        self.status.set_storage(Storage::Ok);
                        // The log gets its next batch before this one is applied, so that both work at once.
                        self.give_log(batch);
                        self.apply_durable();
                        next_tick = Instant::now() + self.pace.tick_every;
                    }
                    Ok(LogDone::Undone(batch, trouble)) => {
                        self.log_failed(0, trouble.storage(), trouble.reason());
                        spare = batch;
                    }
                    Ok(LogDone::InDoubt(batch, trouble)) => {
                        self.log_failed(batch.ends.len(), trouble.storage(), trouble.reason());
                        spare = batch;
                    }
                    Err(_) => {
                        error!("the log's thread is gone: stopping");
                        self.log_failed(self.in_log, Storage::Full, RejectReason::VenueNotReady);
                        break;
                    }
                },
                recv(if room { &self.queues.commands } else { &closed }) -> inbound => {
                    let mut next = inbound.ok();
                    let mut left = BURST_MAX;
                    while let Some(Inbound { command, asker, key }) = next.take() {
                        self.submit(command, asker, key);
                        left -= 1;
                        if left > 0 && self.sequencer.waiting() < self.commands_max {
                            next = self.queues.commands.try_recv().ok();
                        }
                    }
                },
                recv(self.queues.requests) -> request => match request {
                    Ok(Request::Stop) | Err(_) => {
                        self.status.set_ready(false);
                        stopping = true;
                    }
                    Ok(request) => self.serve(request),
                },
                recv(self.snapshots_done) -> spare => if let Ok(spare) = spare {
                    self.status.add_snapshots(1);
                    if let Some(up_to) = spare {
                        let _ = self.log.send(LogJob::LetGo(up_to));
                    }
                },
                recv(solved) -> solved => if let Ok(solved) = solved {
                    self.sequencer.on_solved(self.elapsed_ns(), self.clock.now(), solved);
                },
                default(wait) => {},
            }
            let instant = Instant::now();
            if instant >= next_flush {
                self.feed.flush(self.sequencer.engine(), &mut self.core.derived.market);
                self.core.listeners.flush_archive();
                next_flush = instant + self.pace.flush_every;
            }
            if instant >= next_tick {
                next_tick = instant + self.pace.tick_every;
                if !stopping && self.sequencer.waiting() == 0 {
                    self.submit(Command::Venue(VenueCommand::Tick), None, None);
                }
            }
            if !stopping {
                self.drive_batches(instant);
            }
            if !self.sequencer.log_is_busy() {
                self.give_log(std::mem::take(&mut spare));
            }
            if self.pace.wants_snapshot(self.sequencer.engine().last_applied(), instant) {
                self.snapshot(None);
            }
        }
        self.feed.flush(self.sequencer.engine(), &mut self.core.derived.market);
        self.core.listeners.flush_archive();
        if self.pace.snapshot_index < self.sequencer.engine().last_applied() {
            self.snapshot_or_wait(None);
        }
        info!("stopped at log entry {}", self.sequencer.engine().last_applied());
    }

    /// How long until a batch is to be closed, or the configuration's markets are looked at.
    fn until_batch(&self) -> Duration {
        let batch = self.sequencer.next_batch_ns().saturating_sub(self.elapsed_ns());
        let look = self.declared.next_look().map(|at| at.saturating_duration_since(Instant::now()));
        Duration::from_nanos(batch).min(look.unwrap_or(Duration::MAX))
    }

    fn drive_batches(&mut self, instant: Instant) {
        if let Some(command) = self.declared.step(instant, self.sequencer.engine(), &self.core.listeners.catalog) {
            self.submit(command, None, None);
        }
        let mut jobs = std::mem::take(&mut self.jobs);
        self.sequencer.drive_batches(self.elapsed_ns(), self.clock.now(), &mut jobs);
        jobs.drain(..).for_each(|job| self.solver.solve(job));
        self.jobs = jobs;
    }

    /// Time that goes on whatever is done to the computer's clock: the time of day stands still where that was set back.
    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn submit(&mut self, command: Command, asker: Option<Asker>, key: Option<KeyName>) {
        let number = asker.as_ref().and_then(Asker::number);
        let asker = match (asker, number.map(|number| number.known(self.sequencer.engine()))) {
            (Some(asker), Some(Ok(Some(known)))) => return asker.repeat(known),
            (Some(asker), Some(Err(reason))) => return asker.refuse(NoOutcome::Refused(reason)),
            (asker, _) => asker,
        };
        let ordinal = number.map(|number| number.ordinal);
        let now = self.clock.now();
        let submitted = match key {
            None => self.sequencer.submit_as(now, ordinal, command, asker),
            Some(key) => self.sequencer.submit_keyed(now, key, command, asker),
        };
        if let Err(walras_sequencer::Refused(asker)) = submitted {
            refuse(asker, NoOutcome::Refused(RejectReason::Overloaded));
        }
    }

    fn give_log(&mut self, spare: Batch) {
        if let Some(batch) = self.sequencer.next_batch(spare) {
            (self.in_log, self.given) = (batch.ends.len(), Instant::now());
            // A log that is gone shows on its other channel.
            let _ = self.log.send(LogJob::Write(batch));
        }
    }

    /// Answers everybody whose command is not durable. The first `in_doubt`, the batch that was with the log, may be in it all the same;
    /// those behind were never written.
    fn log_failed(&mut self, in_doubt: usize, storage: Storage, reason: RejectReason) {
        self.status.set_storage(storage);
        let mut left = in_doubt;
        self.sequencer.on_log_failed(|asker| {
            let why = if left > 0 { NoOutcome::InDoubt(reason) } else { NoOutcome::Refused(reason) };
            left = left.saturating_sub(1);
            refuse(asker, why);
        });
    }

    fn apply_durable(&mut self) {
        let Self { sequencer, core, feed, status, shared_catalog, stages, durable, .. } = self;
        let mut applied_count = 0;
        sequencer.apply_durable(|engine, Applied { entry, origin, numbered, events }| {
            applied_count += 1;
            if core.on_events(entry, engine, events, Some(&mut *feed)) {
                shared_catalog.set(core.listeners.catalog.clone());
            }
            if let Some(asker) = origin {
                stages.ended(Stage::Apply, *durable);
                asker.answer(numbered, || Outcome { log_index: entry.log_index, time: entry.time, events: events.to_vec() });
            }
        });
        status.add_commands(applied_count);
        status.add_rejects(core.listeners.take_rejects());
        self.publish_status();
    }

    pub(super) fn publish_status(&self) {
        let engine = self.sequencer.engine();
        self.status.show(Progress::of(engine, &self.core.derived.market));
        self.status.set_accounts(self.core.listeners.accounts());
    }

    fn serve(&mut self, request: Request) {
        let engine = self.sequencer.engine();
        match request {
            Request::Read(question) => {
                let (market, fills, indicatives) = (&self.core.derived.market, &self.core.derived.fills, self.feed.indicatives());
                question(&View { engine, market, fills, indicatives });
            }
            Request::Connect { connection, queue } => self.feed.connect(connection, queue),
            Request::Subscribe { connection, subscription } => {
                self.feed.subscribe(connection, subscription, engine, &self.core.derived.market, &self.core.derived.fills);
            }
            Request::Unsubscribe { connection, subscription } => self.feed.unsubscribe(connection, subscription),
            Request::Disconnect { connection } => self.feed.disconnect(connection),
            Request::Snapshot(reply) => self.snapshot(Some(reply)),
            // What was acknowledged was applied before.
            Request::Barrier(reply) => drop(reply.send(())),
            Request::Cluster(_, reply) => {
                let _ = reply.send(Err("this venue runs on one machine: it has no cluster".to_owned()));
            }
            Request::Stop => unreachable!("the caller takes it"),
        }
    }

    /// Hands the state to the snapshot's thread, which makes its bytes and writes them. If that has not begun with the one before, a periodic snapshot waits for the next
    /// occasion, and one that was asked for is refused.
    fn snapshot(&mut self, reply: Option<oneshot::Sender<Result<LogIndex, RejectReason>>>) {
        if self.snapshots.is_full() {
            self.pace.snapshot_index = self.sequencer.engine().last_applied();
            self.pace.snapshot_at = Instant::now();
            if let Some(reply) = reply {
                let _ = reply.send(Err(RejectReason::Overloaded));
            }
            return;
        }
        self.snapshot_or_wait(reply);
    }

    fn snapshot_or_wait(&mut self, reply: Option<oneshot::Sender<Result<LogIndex, RejectReason>>>) {
        let engine = self.sequencer.engine();
        let index = engine.last_applied();
        self.pace.snapshot_index = index;
        self.pace.snapshot_at = Instant::now();
        let fills = self.core.derived.fills.clone();
        let state = FrozenState::new(engine, &self.core.derived.market, vec![Box::new(move |out| fills.snapshot(out))]);
        // The thread ends only after this one has.
        let _ = self.snapshots.send(SnapshotJob { index, state, reply });
    }
}

fn refuse(asker: Option<Asker>, why: NoOutcome) {
    if let Some(asker) = asker {
        asker.refuse(why);
    }
}
