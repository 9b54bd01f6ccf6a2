//! A replica of the venue, alone or one of several: one thread that does everything that is in a hurry, and threads that wait for
//! the disk.
//!
//! ```text
//!  peers (TLS) ----------+
//!  order entry (binary) -+--> [replica thread: one poll] --writes--> [log thread: write, sync]
//!  handlers, via queues -+     sequencer, engine, market data,  <--tickets--
//!    and a doorbell            feeds, reports, sessions          --states--> [snapshot thread]
//! ```
//!
//! A round of the thread: wait in the poll; give all that came to the replica ([`walras_replica::Replica`]), which decides what
//! follows; carry that out; write to every peer and participant once. It never waits for a peer, and waits for the disk
//! only where it is alone, has little to do, and the disk is fast ([`log_seat`]).

mod alarm;
mod fair;
mod feed_sender;
mod feeds;
mod keys;
mod log_host;
mod log_seat;
mod peer_links;
mod reload;
mod snapshot_transfer;
mod snapshots;
mod start;
mod times;
mod traces;
mod verifying;
mod waiters;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use mio::{Events, Poll, Token};
use tokio::sync::oneshot;
use tracing::{error, info, warn};
use walras_access::connections::log_shortage;
use walras_consensus::{Members, ReplicaId, Role, SnapshotMeta, Ticket};
use walras_entry_port::{EntryClock, EntryPort, EntrySockets};
use walras_log_store::Disk;
use walras_peer_link::{LinkError, LinkEvent, SendError, SnapshotId};
use walras_ports::{
    Asker, ClusterRequest, ClusterStatus, CommandOrLook, Doorbell, Inbound, Progress, Queues, ReleaseSource, Request,
    RoundOfVisits, Status, Storage, View,
};
use walras_replica::{Derived, Effect, HandoverReason, KeptState, NoOutcome, Replica, clock_trouble};
use walras_replica_log::Snapshots;
use walras_sequencer::{GatewayTime, Halt, SignedBy, SolveJob};
use walras_types::{EngineVersion, LogIndex, RejectReason};

use super::batches::{BlockThread, Declared, Solver};
pub(in crate::runtime) use alarm::Alarm;
use feed_sender::FeedSender;
use feeds::{Feeds, Freezing};
pub(in crate::runtime) use keys::KeyShare;
use log_host::{LogJob, LogReport};
use log_seat::{LogSeat, ThreadGone, Writer};
use peer_links::PeerLinks;
pub use reload::ReloadError;
use snapshot_transfer::{ReplicaFiles, Source, announce, announced};
use snapshots::{SnapshotDone, SnapshotJob, oldest_needed};
pub use start::{AcceptedLoss, ReplicaVenue, accept_loss};
pub(in crate::runtime) use times::Times;
use verifying::Verifying;
use waiters::{Waiter, Waiters};

const LINK_TOKENS: std::ops::Range<usize> = 1..1_000;
const ENTRY_TOKENS: std::ops::Range<usize> = 1_000..70_000;
const DOORBELL: Token = Token(0);
/// Only wakes.
const ALARM: Token = Token(ENTRY_TOKENS.end);
/// Longer waits are left to the poll, which counts in milliseconds.
const ALARM_BELOW: Duration = Duration::from_millis(3);

/// Longest that a leader that is asked to stop waits until another one leads.
const HAND_OVER_MAX: Duration = Duration::from_millis(500);

/// Longest that a venue that is alone and asked to stop finishes what it took.
const FINISH_MAX: Duration = Duration::from_secs(5);

/// How often figures are brought up to date where something happens, and where nothing does.
const STATUS_EVERY: Duration = Duration::from_millis(20);
const IDLE_STATUS_EVERY: Duration = Duration::from_secs(1);

/// Commands taken from the queue before everything else has its turn.
const BURST_MAX: usize = 1024;

/// How far the thread is with stopping.
#[derive(Clone, Copy, Debug)]
enum Stopping {
    /// It goes on.
    No,
    /// It stops as soon as another replica leads, and at this moment at the latest.
    HandsOver(Instant),
    /// It is alone, and finishes what it took, until this moment at the latest.
    Finishes(Instant),
    /// It is alone, and the state after this entry is being written. If more was logged meanwhile, it finishes that too, until this
    /// moment at the latest.
    Writes(LogIndex, Instant),
    /// It stops now.
    Now,
}

/// Who asked for a snapshot.
type SnapshotReply = oneshot::Sender<Result<LogIndex, RejectReason>>;

pub(super) struct ReplicaThread<D: Disk> {
    replica: Replica<Feeds, ReplicaFiles<D>>,
    times: Times,
    /// The clock by which market data is released.
    release_source: ReleaseSource,
    links: PeerLinks,
    /// Where connections of order entry come in; `None` for nowhere.
    sockets: Option<EntrySockets>,
    waiters: Waiters,
    log: LogSeat<D>,
    snapshots: Sender<SnapshotJob>,
    store: Snapshots<D>,
    /// Who waits for a snapshot that has the state after an entry.
    snapshot_waiters: Vec<(LogIndex, SnapshotReply)>,
    /// Snapshots on their way to peers.
    sending: BTreeSet<(ReplicaId, SnapshotId)>,
    status: Status,
    cluster: ClusterStatus,
    solver: Solver,
    blocks: BlockThread,
    verifying: Verifying,
    poll: Poll,
    alarm: Alarm,
    doorbell: Doorbell,
    queues: Queues,
    snapshots_done: Receiver<SnapshotDone>,
    begun: Instant,
    /// When this round began.
    now_ns: u64,
    flush_every: Duration,
    flushed: Instant,
    published: Instant,
    /// Something came since figures were brought up to date.
    is_stirred: bool,
    /// Notified once, when it first takes commands.
    leads: Option<Sender<()>>,
    link_events: Vec<LinkEvent>,
    /// Empty.
    effects: Vec<Effect>,
    stopping: Stopping,
    /// Snapshots that come, and the messages that announce them.
    receiving: BTreeMap<(ReplicaId, SnapshotId), bytes::Bytes>,
    declared: Declared,
    /// Entries were applied since the state was compared with the configuration's batch markets.
    is_unlooked: bool,
    keys: keys::KeyShare,
    /// Sends the binary feed, where it is published.
    feed_sender: Option<FeedSender>,
    /// Those below that the cluster's view shows.
    leaf_changes: u64,
}

impl<D: Disk> ReplicaThread<D> {
    /// Runs until asked to stop, or until it must not go on; then says why.
    pub(super) fn run(mut self) -> Option<Halt> {
        let halt = self.serve_all().err();
        if let Some(halt) = &halt {
            error!("this replica stops: {halt}");
            self.cluster.set_halted(&halt.to_string());
        }
        self.status.set_ready(false);
        for asker in self.queues.commands.try_iter().filter_map(|inbound| inbound.asker) {
            asker.refuse(NoOutcome::Refused(RejectReason::VenueNotReady));
        }
        info!("stopped at log entry {}", self.replica.engine().last_applied());
        halt
    }

    fn serve_all(&mut self) -> Result<(), Halt> {
        let mut events = Events::with_capacity(1024);
        self.status.set_ready(true);
        // What it began with may have something to write.
        self.carry_out()?;
        loop {
            let wait = self.until_due().min(self.until_deadline());
            let result = self.poll.poll(&mut events, Some(wait));
            let has_polled = result.is_ok();
            if let Err(e) = result
                && e.kind() != std::io::ErrorKind::Interrupted
            {
                warn!("waiting for sockets failed: {e}");
            }
            self.is_stirred |= !events.is_empty();
            self.doorbell.heard();
            self.now_ns = self.elapsed_ns();
            let polled = if has_polled { self.polled(&events) } else { None };
            self.replica.observe().0.traces.begin_round();
            self.hear_log()?;
            self.carry_out()?;
            // The links first: what they brought was stamped before the sockets of participants are read here, so what is released
            // in this round overtakes nothing that lies in these.
            for event in events.iter().filter(|event| LINK_TOKENS.contains(&event.token().0)) {
                self.on_ready(event);
            }
            self.read_on();
            for event in events.iter().filter(|event| !LINK_TOKENS.contains(&event.token().0)) {
                self.on_ready(event);
            }
            self.on_link_events()?;
            self.hear_snapshots()?;
            self.take_commands();
            self.take_requests()?;
            self.take_verified();
            self.carry_out()?;
            if self.has_finished() {
                self.flush();
                self.carry_out()?;
                return self.send_all();
            }
            self.take_batches();
            let at = self.at();
            self.take_in(at, polled);
            let Self { replica, release_source, .. } = self;
            replica.round(at, || release_source.leader_time())?;
            self.carry_out()?;
            if self.until_due().is_zero() {
                self.show();
            }
            self.send_all()?;
            if !self.log.write() {
                // Where replicas, logs and clients share processors, the process that waits for this one's answer runs now, and not
                // at the kernel's next tick, milliseconds later. On a processor of its own this costs less than a microsecond a
                // round.
                std::thread::yield_now(); // pause: for the processes that share its processor
            }
        }
    }

    /// The venue's time, up to which the poll has reported all that came; `None` where orders are not stamped, or not all is reported.
    fn polled(&mut self, events: &Events) -> Option<u64> {
        let is_all = events.iter().count() < events.capacity();
        (self.replica.fair().is_some() && is_all).then(|| self.at().time_ns)
    }

    /// Everything was read that came until then.
    fn take_in(&mut self, at: GatewayTime, polled_ns: Option<u64>) {
        let Some(polled_ns) = polled_ns else { return };
        let until_ns = self.sockets.as_mut().map_or(Some(polled_ns), |sockets| sockets.end_round(polled_ns));
        if let Some(until_ns) = until_ns {
            self.replica.taken_in(at, until_ns);
        }
    }

    /// How long until readers are sent something, or figures are brought up to date. Where nothing happens that is rare: each
    /// wake-up costs as much as an order.
    fn until_due(&self) -> Duration {
        let publish_at = self.published + if self.is_stirred { STATUS_EVERY } else { IDLE_STATUS_EVERY };
        let flush_at = self.replica.probe().is_unsent.then(|| self.flushed + self.flush_every);
        let is_looked_for = self.is_unlooked && self.replica.sequencer().is_leading();
        let look_at = if is_looked_for { self.declared.next_look() } else { None };
        let due = [flush_at, look_at].into_iter().flatten().fold(publish_at, Instant::min);
        due.saturating_duration_since(Instant::now())
    }

    /// Sends readers what changed, and brings figures up to date, where that is due.
    fn show(&mut self) {
        let now = Instant::now();
        if self.replica.probe().is_unsent && now >= self.flushed + self.flush_every {
            self.flush();
            self.flushed = now;
        }
        if now >= self.published + if self.is_stirred { STATUS_EVERY } else { IDLE_STATUS_EVERY } {
            self.publish();
            (self.published, self.is_stirred) = (now, false);
        }
    }

    /// Whether it was asked to stop, and is done with what comes before.
    fn has_finished(&mut self) -> bool {
        let now = Instant::now();
        match self.stopping {
            Stopping::No | Stopping::Writes(..) => false,
            Stopping::Now => true,
            Stopping::HandsOver(until) => !self.replica.sequencer().is_leading() || now >= until,
            Stopping::Finishes(until) => {
                if self.status.storage() != Storage::Ok {
                    // What is not written yet has no outcome, and no snapshot would be written.
                    return true;
                }
                let is_done = self.replica.sequencer().waiting() == 0 && self.queues.commands.is_empty();
                if !is_done && now < until {
                    return false;
                }
                let at = self.at();
                match self.replica.keep_state(at) {
                    KeptState::Begun(log_index) => {
                        self.stopping = Stopping::Writes(log_index, until);
                        false
                    }
                    KeptState::Known(_) => true,
                    KeptState::Busy => now >= until,
                }
            }
        }
    }

    /// The time now, by all clocks; what this process counts is that of the round's beginning.
    fn at(&mut self) -> GatewayTime {
        self.times.at(self.now_ns)
    }

    fn until_deadline(&mut self) -> Duration {
        if self.sockets.as_ref().is_some_and(EntrySockets::has_unread) {
            return Duration::ZERO;
        }
        let now_ns = self.elapsed_ns();
        let next_look_ns = self.sockets.as_ref().and_then(EntrySockets::look_at_ns).unwrap_or(u64::MAX);
        let at = self.times.at(now_ns);
        let next_ns = self.replica.deadline_ns(at).min(self.links.next_deadline_ns()).min(next_look_ns);
        let wait = Duration::from_nanos(next_ns.saturating_sub(now_ns)).min(self.log.wait());
        if !wait.is_zero() && wait < ALARM_BELOW {
            // Without it the poll wakes a millisecond later, and so late would what collects leave, and what is held be released.
            let _ = self.alarm.set(wait);
        }
        wait
    }

    /// Carries out what the replica wants to happen.
    fn carry_out(&mut self) -> Result<(), Halt> {
        if self.replica.probe().is_unshown {
            self.show_progress();
        }
        loop {
            let mut effects = std::mem::take(&mut self.effects);
            self.replica.take_effects(&mut effects);
            let is_done = effects.is_empty();
            for effect in effects.drain(..) {
                self.carry_out_one(effect)?;
            }
            self.effects = effects;
            if is_done {
                self.begin_feed_again();
                return Ok(());
            }
        }
    }

    /// Status must not lag behind the answers that follow.
    fn show_progress(&mut self) {
        let (Feeds { feed, is_unshown, .. }, engine, derived) = self.replica.observe();
        *is_unshown = false;
        self.is_unlooked = true;
        if !feed.is_holding() {
            self.status.show(Progress::of(engine, &derived.market));
        }
    }

    fn carry_out_one(&mut self, effect: Effect) -> Result<(), Halt> {
        match effect {
            Effect::Send { to, bytes } => self.send(to, bytes),
            Effect::Persist(write) => self.log.take(LogJob::Write(write)),
            Effect::LetGo(meta) => self.log.take(LogJob::LetGo(meta)),
            Effect::Snapshot { meta, state } => {
                let kept_in = match self.replica.probe().freezing {
                    Freezing::Took(time) => time,
                    Freezing::Since(begun) => begun.elapsed(),
                };
                let _ = self.snapshots.send(SnapshotJob::Write { meta, state, kept_in });
            }
            Effect::SendSnapshot { to, meta, message } => self.send_snapshot(to, &meta, &message)?,
            Effect::Solve(job) => {
                self.keep_wanted_jobs();
                self.solver.solve(job);
            }
            Effect::Run(job) => self.blocks.run(job),
            Effect::Verify(job) => self.verifying.start(job),
            Effect::Answer { waiter, answer } => self.waiters.answer(waiter, answer),
            Effect::Role(change) => {
                match change.role {
                    Role::Leader => info!("term {}: this replica leads", change.term),
                    Role::Follower { leader: Some(leader) } => info!("term {}: replica {leader} leads", change.term),
                    Role::Follower { leader: None } => {
                        info!("term {}: this replica follows, and knows of no leader yet", change.term);
                    }
                    Role::Candidate => info!("term {}: this replica stands for election", change.term),
                }
                self.cluster.set_role(change);
            }
            Effect::Leading(term) => {
                info!("term {term}: this replica takes commands");
                self.cluster.set_taking(true);
                if let Some(leads) = self.leads.take() {
                    // The start may no longer wait for it.
                    let _ = leads.send(());
                }
            }
            Effect::Members(members) => {
                self.log.set_writer(writer_of(&members));
                self.cluster.set_members(members);
            }
            Effect::HandsOver { to, why: HandoverReason::Clock { error_ns } } => {
                warn!("{}: handing over to replica {to}", clock_trouble(error_ns));
            }
            Effect::HandsOver { to, why: HandoverReason::Storage } => {
                warn!("this leader's log can not be written: handing over to replica {to}");
            }
            Effect::HandsOver { to, why: HandoverReason::IdleMarket(market) } => {
                error!("every block of batch market {market} was set aside as a whole in this term: handing over to replica {to}");
            }
            Effect::Publish(piece) => {
                if let Some(sender) = &mut self.feed_sender {
                    sender.take(piece);
                }
            }
            Effect::CopiesDiffer { gateway, ordinal } => warn!(
                "gateway {gateway}: command {} of session {} came with other content than its first copy, which counts",
                ordinal.session_seq, ordinal.session
            ),
        }
        Ok(())
    }

    /// The consensus sends again what is lost. Reports for a gateway are lost with its link alone: where one does not fit, the link
    /// ends, and the gateway asks for what it lacks.
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        if matches!(self.links.send(to, bytes), Err(SendError::QueueFull(_))) && self.replica.is_leaf(to) {
            self.links.cut(to, &mut self.link_events);
        }
    }

    /// Gives the binary feed the state where it lost entries. By now it was given all entries of that state: earlier, snapshots would have
    /// what is not released yet.
    fn begin_feed_again(&mut self) {
        let Some(sender) = self.feed_sender.as_mut().filter(|sender| sender.has_room_again()) else { return };
        if let Some(publisher) = &self.replica.observe().2.feed {
            sender.begin_again(publisher);
        }
    }

    fn send_snapshot(&mut self, to: ReplicaId, meta: &SnapshotMeta, message: &[u8]) -> Result<(), Halt> {
        let sent = self.store.read(meta.slot).map_err(|e| e.to_string()).and_then(|reader| {
            let (announcement, total) = (announce(reader.info(), message), reader.info().state_bytes);
            self.links.send_snapshot(to, announcement, total, Box::new(Source::new(reader))).map_err(|e| e.to_string())
        });
        match sent {
            Ok(id) => {
                info!("sending the snapshot of entry {} to replica {to}", meta.log_index);
                self.sending.insert((to, id));
                Ok(())
            }
            Err(why) => {
                warn!("the snapshot of entry {} could not be sent to replica {to}: {why}", meta.log_index);
                let at = self.at();
                self.replica.on_snapshot_sent(at, to, Err(()))
            }
        }
    }

    /// What was solved, and the markets that the configuration names, where this replica leads.
    fn take_batches(&mut self) {
        while let Ok(solved) = self.solver.done().try_recv() {
            let at = self.at();
            self.replica.on_solved(at, solved);
            self.keep_wanted_jobs();
        }
        if !self.replica.sequencer().is_leading() {
            return;
        }
        let (engine, catalog) = (self.replica.engine(), &self.replica.probe().listeners.catalog);
        let now = Instant::now();
        self.is_unlooked &= self.declared.next_look().is_some_and(|at| now < at);
        if let Some(command) = self.declared.step(now, engine, catalog) {
            // Where it is not taken, the state is looked at again.
            let at = self.at();
            self.replica.submit(at, command, SignedBy::NOBODY, None);
        }
    }

    /// Has batches solved only that this replica, as the leader, still waits for.
    fn keep_wanted_jobs(&self) {
        let (engine, is_leading) = (self.replica.engine(), self.replica.sequencer().is_leading());
        let is_place = |job: &SolveJob| engine.batch_to_clear(job.market).is_some_and(|(place, ..)| place == job.place);
        self.solver.keep(|job| is_leading && is_place(job));
    }

    /// Transactions whose signatures were checked.
    fn take_verified(&mut self) {
        for (job, verdicts) in self.verifying.take() {
            let at = self.at();
            self.replica.on_verified(at, job, &verdicts);
        }
    }

    /// Sends readers what changed, where that is not held.
    fn flush(&mut self) {
        let (Feeds { listeners, feed, is_unsent, .. }, engine, derived) = self.replica.observe();
        *is_unsent = false;
        listeners.flush_archive();
        if !feed.is_holding() {
            feed.flush(engine, &mut derived.market);
        }
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn on_ready(&mut self, event: &mio::event::Event) {
        let Self { replica, times, links, sockets, link_events, now_ns, stopping, .. } = self;
        if links.owns(event.token()) {
            links.on_ready(event, *now_ns, link_events);
        } else if let Some(sockets) = sockets.as_mut().filter(|sockets| sockets.owns(event.token()))
            && matches!(stopping, Stopping::No | Stopping::HandsOver(_))
        {
            sockets.on_ready(event, &mut EntryPort { replica, times, now_ns: *now_ns });
        }
    }

    fn read_on(&mut self) {
        let Self { replica, times, sockets: Some(sockets), now_ns, .. } = self else { return };
        sockets.read_on(&mut EntryPort { replica, times, now_ns: *now_ns });
    }

    fn hear_log(&mut self) -> Result<(), Halt> {
        let mut last = None;
        loop {
            match self.log.hear() {
                Ok(Some(LogReport::Persisted(ticket))) => last = Some(ticket),
                Ok(Some(LogReport::Storage(storage))) => {
                    // What was written before it could not be, or when it could be again, comes first.
                    self.on_persisted(last.take())?;
                    let at = self.at();
                    self.replica.on_storage(at, storage);
                    self.status.set_storage(storage);
                }
                Ok(Some(LogReport::Lost(why))) => return Err(Halt::Disk(why)),
                Ok(None) => return self.on_persisted(last),
                Err(ThreadGone) => return Err(Halt::Disk("the log's thread is gone".to_owned())),
            }
        }
    }

    fn on_persisted(&mut self, ticket: Option<Ticket>) -> Result<(), Halt> {
        let Some(ticket) = ticket else { return Ok(()) };
        let at = self.at();
        self.replica.on_persisted(at, ticket)
    }

    fn hear_snapshots(&mut self) -> Result<(), Halt> {
        while let Ok(done) = self.snapshots_done.try_recv() {
            let at = self.at();
            match done {
                SnapshotDone::Hashed(log_index, hash) => self.replica.on_state_hashed(at, log_index, hash)?,
                SnapshotDone::Written(meta) => {
                    self.status.add_snapshots(1);
                    self.replica.on_snapshot_written(at, Some(&meta))?;
                    self.answer_snapshots(meta.log_index, Ok(meta.log_index));
                    if let Some(oldest) = oldest_needed(&self.store.list(), meta.slot) {
                        let _ = self.snapshots.send(SnapshotJob::RemoveBefore(oldest));
                    }
                }
                SnapshotDone::NotWritten(why) => {
                    warn!("a snapshot was not written: {why}; the log keeps what it would have replaced");
                    self.replica.on_snapshot_written(at, None)?;
                    self.answer_snapshots(self.replica.engine().last_applied(), Err(RejectReason::StorageFull));
                }
                SnapshotDone::Taken { from, id, bytes } => self.links.snapshot_taken(from, id, bytes),
                SnapshotDone::Received { from, id, message: Ok(message) } => {
                    self.links.answer_snapshot(from, id, Ok(()));
                    self.replica.on_snapshot_received(at, from, message)?;
                }
                SnapshotDone::Received { from, id, message: Err(why) } => {
                    warn!("a snapshot from replica {from} was not taken: {why}");
                    self.receiving.remove(&(from, id));
                    self.links.answer_snapshot(from, id, Err(why.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Those who wait for a state up to this entry hear that it is durable, or that it will not be.
    fn answer_snapshots(&mut self, up_to: LogIndex, outcome: Result<LogIndex, RejectReason>) {
        for (_, reply) in self.snapshot_waiters.extract_if(.., |(log_index, _)| *log_index <= up_to) {
            // Its client may have gone away.
            let _ = reply.send(outcome);
        }
        if let Stopping::Writes(log_index, until) = self.stopping
            && log_index <= up_to
        {
            self.stopping = if outcome.is_ok() { Stopping::Finishes(until) } else { Stopping::Now };
        }
    }

    fn on_snapshot_request(&mut self, reply: SnapshotReply) {
        let at = self.at();
        match self.replica.keep_state(at) {
            KeptState::Begun(log_index) => self.snapshot_waiters.push((log_index, reply)),
            // Its client may have gone away.
            KeptState::Known(log_index) => drop(reply.send(Ok(log_index))),
            KeptState::Busy => drop(reply.send(Err(RejectReason::Overloaded))),
        }
    }

    fn on_link_events(&mut self) -> Result<(), Halt> {
        let mut events = std::mem::take(&mut self.link_events);
        for event in events.drain(..) {
            self.on_link_event(event)?;
        }
        self.link_events = events;
        Ok(())
    }

    fn on_link_event(&mut self, event: LinkEvent) -> Result<(), Halt> {
        match event {
            LinkEvent::Lost { why: LinkError::Dismissed(why), .. } | LinkEvent::Refused { why: LinkError::Dismissed(why), .. } => {
                return Err(Halt::TwoProcesses(why));
            }
            // Gateways know keys, and make none.
            LinkEvent::Message { from, bytes } if !self.replica.is_leaf(from) && self.keys.take(&bytes) => {}
            LinkEvent::Message { from, bytes } => {
                let at = self.at();
                self.replica.on_message(at, from, bytes)?;
            }
            LinkEvent::Connected { id, versions } if self.replica.is_leaf(id) => {
                info!("gateway {id} is linked, software {}", versions.software);
                self.cluster.with_leaf(id, |leaf| (leaf.software, leaf.trouble) = (Some(versions.software.clone()), None));
                let at = self.at();
                self.replica.on_linked(at, id);
                self.keys.on_connected(id);
            }
            LinkEvent::Lost { id, why } if self.replica.is_leaf(id) => {
                warn!("the link to gateway {id} is lost: {why}");
                self.cluster.with_leaf(id, |leaf| (leaf.software, leaf.trouble) = (None, Some(why.to_string())));
                self.keys.on_lost(id);
                let at = self.at();
                self.replica.on_link_lost(at, id)?;
            }
            LinkEvent::Connected { id, versions } => {
                info!("replica {id} is linked, software {}", versions.software);
                let at = self.at();
                let engine_newest = EngineVersion(versions.engine);
                self.replica.note_program(id, Some(engine_newest));
                self.replica.on_linked(at, id);
                self.keys.on_connected(id);
                self.cluster.with_peer(id, |peer| {
                    peer.software = Some(versions.software.clone());
                    peer.engine_newest = Some(engine_newest);
                    peer.is_compatible = Some(true);
                    peer.trouble = None;
                });
            }
            LinkEvent::Lost { id, why } => {
                warn!("the link to replica {id} is lost: {why}");
                self.keys.on_lost(id);
                self.cluster.with_peer(id, |peer| {
                    (peer.software, peer.engine_newest, peer.is_compatible) = (None, None, None);
                    peer.trouble = Some(why.to_string());
                });
                self.replica.note_program(id, None);
                let at = self.at();
                match why {
                    // Its process ended, or something between the two did: others than silence and our own doing.
                    LinkError::Closed | LinkError::Broken(_) => self.replica.on_link_lost(at, id)?,
                    _ => self.replica.on_unreachable(at, id)?,
                }
            }
            LinkEvent::Refused { id, remote, why } => {
                warn!("no link with {}: {why}", remote.map_or_else(|| "a peer".to_owned(), |remote| remote.to_string()));
                if let Some(id) = id.filter(|id| !self.replica.is_leaf(*id)) {
                    self.cluster.with_peer(id, |peer| peer.trouble = Some(why.to_string()));
                }
            }
            LinkEvent::Shortage(news) => log_shortage("links between replicas", news),
            LinkEvent::SnapshotBegin { from, id, meta, .. } => match announced(&meta) {
                Some((info, message)) => {
                    info!("replica {from} sends the snapshot of entry {}", info.meta.log_index);
                    self.receiving.insert((from, id), message);
                    let _ = self.snapshots.send(SnapshotJob::Begin { from, id, info });
                }
                None => self.links.answer_snapshot(from, id, Err("its announcement does not decode".to_owned())),
            },
            LinkEvent::SnapshotChunk { from, id, bytes, .. } => {
                let _ = self.snapshots.send(SnapshotJob::Chunk { from, id, bytes });
            }
            LinkEvent::SnapshotEnd { from, id, .. } => {
                if let Some(message) = self.receiving.remove(&(from, id)) {
                    let _ = self.snapshots.send(SnapshotJob::End { from, id, message });
                }
            }
            LinkEvent::SnapshotBroken { from, id, why } => {
                warn!("a snapshot from replica {from} did not come: {why}");
                self.receiving.remove(&(from, id));
                let _ = self.snapshots.send(SnapshotJob::GiveUp { from, id });
            }
            LinkEvent::SnapshotDelivered { to, id } => {
                if self.sending.remove(&(to, id)) {
                    let at = self.at();
                    self.replica.on_snapshot_sent(at, to, Ok(()))?;
                }
            }
            LinkEvent::SnapshotFailed { to, id, why } => {
                warn!("a snapshot did not reach replica {to}: {why}");
                if self.sending.remove(&(to, id)) {
                    let at = self.at();
                    self.replica.on_snapshot_sent(at, to, Err(()))?;
                }
            }
        }
        Ok(())
    }

    fn take_commands(&mut self) {
        for _ in 0..BURST_MAX {
            // What there is no room for waits in the queue, and its senders with it.
            if !self.replica.sequencer().has_room() {
                return;
            }
            let Ok(Inbound { command, asker, signed }) = self.queues.commands.try_recv() else { return };
            let command = match command {
                CommandOrLook::Command(command) => command,
                CommandOrLook::Look(look) => match self.look(look) {
                    Some(command) => command,
                    None => continue,
                },
            };
            let at = self.times.at(self.now_ns);
            match asker {
                Some(Asker::Numbered(number, reply)) => {
                    let waiter = self.waiters.add(Waiter::Numbered(reply));
                    self.replica.submit_numbered(at, number, &command, waiter);
                }
                Some(Asker::Reply(reply)) => {
                    let waiter = self.waiters.add(Waiter::Command(reply));
                    self.replica.observe().0.traces.requested(waiter);
                    self.replica.submit(at, command, signed, Some(waiter));
                }
                None => self.replica.submit(at, command, signed, None),
            }
        }
        if !self.queues.commands.is_empty() {
            self.doorbell.ring();
        }
    }

    /// Shows somebody the state.
    fn look<R>(&mut self, look: impl FnOnce(&View<'_>) -> R) -> R {
        let (Feeds { feed, .. }, engine, derived, reports, waits) = self.replica.observe_all();
        let Derived { market, fills, histories, ended, .. } = derived;
        look(&View { engine, market, fills, histories, ended, reports, waits, indicatives: feed.indicatives() })
    }

    /// Requests, of which few may look at the state in a round: so readers, however many, keep no order waiting for longer.
    fn take_requests(&mut self) -> Result<(), Halt> {
        let mut visits = RoundOfVisits::default();
        while let Some(request) = visits.take(&self.queues.requests) {
            let (Feeds { feed, .. }, engine, derived) = self.replica.observe();
            match request {
                Request::Stop => return self.begin_to_stop(),
                Request::Read(question) => self.look(question),
                Request::Connect { connection, queue } => feed.connect(connection, queue),
                Request::Subscribe { connection, subscription } => {
                    feed.subscribe(connection, subscription, engine, derived);
                }
                Request::GoOn { connection } => feed.go_on(connection, engine, derived),
                Request::Unsubscribe { connection, subscription } => feed.unsubscribe(connection, subscription),
                Request::Disconnect { connection } => feed.disconnect(connection),
                Request::CancelBehind { account, session } => {
                    let at = self.at();
                    self.replica.cancel_behind(at, session, account);
                }
                Request::Snapshot(reply) => self.on_snapshot_request(reply),
                Request::Barrier(reply) => {
                    let waiter = self.waiters.add(Waiter::Read(reply));
                    self.replica.read(waiter);
                }
                Request::Cluster(asked, reply) => {
                    let answer = self.on_cluster_request(asked)?;
                    let _ = reply.send(answer);
                }
            }
        }
        if !self.queues.requests.is_empty() {
            self.doorbell.ring();
        }
        Ok(())
    }

    /// What was taken is finished, and a leader that is not alone makes another one lead, so that nobody has to wait for an
    /// election.
    fn begin_to_stop(&mut self) -> Result<(), Halt> {
        if !matches!(self.stopping, Stopping::No) {
            return Ok(());
        }
        self.status.set_ready(false);
        let sequencer = self.replica.sequencer();
        let members = sequencer.members();
        if sequencer.is_leading() && members.voters.len() == 1 && members.learners.is_empty() {
            self.stopping = Stopping::Finishes(Instant::now() + FINISH_MAX);
            return Ok(());
        }
        self.hand_over()
    }

    fn hand_over(&mut self) -> Result<(), Halt> {
        let view = self.cluster.view();
        let is_there = |id: &&ReplicaId| view.peers.get(id).is_some_and(|peer| peer.software.is_some());
        let heir = view.members.voters.iter().filter(|id| **id != view.me).find(is_there);
        let (now, at) = (Instant::now(), self.at());
        self.stopping = Stopping::HandsOver(now);
        if let Some(heir) = heir.filter(|_| self.replica.sequencer().is_leading())
            && self.replica.transfer_to(at, *heir)?.is_ok()
        {
            info!("handing over to replica {heir}");
            self.stopping = Stopping::HandsOver(now + HAND_OVER_MAX);
        }
        Ok(())
    }

    fn on_cluster_request(&mut self, asked: ClusterRequest) -> Result<Result<(), String>, Halt> {
        let at = self.at();
        Ok(match asked {
            ClusterRequest::Transfer(to) => self.replica.transfer_to(at, to)?.map_err(|e| e.to_string()),
            ClusterRequest::Change(change) => self.replica.change_members(at, &[change])?.map_err(|e| e.to_string()),
            ClusterRequest::CheckEngineVersion(version) => {
                self.replica.sequencer().check_engine_version(version).map_err(|e| e.to_string())
            }
            ClusterRequest::Peers(addresses, links) => self.set_peers(addresses, links),
            ClusterRequest::Faults(peer, faults) => self.links.set_faults(peer, faults).map_err(|e| e.to_string()),
        })
    }

    fn publish(&mut self) {
        let Self { replica, times, links, sockets, waiters, status, cluster, keys, feed_sender, leaf_changes, now_ns, .. } = self;
        if replica.sequencer().is_settled() {
            keys.share(links);
        }
        let gone = waiters.take_gone();
        if !gone.is_empty() {
            replica.give_up(&gone);
        }
        if let Some(sockets) = sockets {
            sockets.on_timer(*now_ns, replica.entry_mut());
        }
        if std::mem::replace(leaf_changes, replica.leaf_changes()) != replica.leaf_changes() {
            cluster.set_below(&replica.leaves_below());
        }
        if let Some(samples) = feed_sender.as_ref().and_then(FeedSender::heard) {
            replica.on_receivers(*now_ns, &samples);
        }
        let sequencer = replica.sequencer();
        cluster.set_progress(&sequencer.status(), sequencer.waiting());
        cluster.set_engine_version(sequencer.engine().version());
        if let (Some(access), Some(clock)) = (replica.fair(), &mut times.fair) {
            let arrivals = sockets.as_ref().map(EntrySockets::arrivals).unwrap_or_default();
            cluster.set_fair_access(fair::view(access, clock, arrivals));
        }
        cluster.set_release(sequencer.release_counts());
        cluster.set_trees(feed_sender.as_ref().map(FeedSender::views).unwrap_or_default());
        cluster.set_clock_trouble(replica.clock_error_ns().map(clock_trouble));
        let leader_bound_ns = sequencer.leader_clock_bound_ns();
        let (feeds, engine, derived) = replica.observe();
        let Feeds { listeners, feed, release_source, applied_count, is_replaced, .. } = feeds;
        status.add_commands(std::mem::take(applied_count));
        status.add_rejects(listeners.take_rejects());
        status.set_accounts(listeners.accounts());
        let delays = engine.access_delays();
        status.set_release_delay_ns(if feed.is_holding() { delays.release_ns } else { 0 });
        let bounds = release_source.bound_ns().zip(leader_bound_ns);
        status.set_release_bound_ns(bounds.map_or(0, |(here_ns, leader_ns)| here_ns.saturating_add(leader_ns)));
        if std::mem::take(is_replaced) {
            feed.start_over(engine, &derived.market);
            if let (Some(sender), Some(publisher)) = (feed_sender, &derived.feed) {
                sender.begin(publisher);
            }
        }
    }

    /// Everything that was queued in this round leaves.
    fn send_all(&mut self) -> Result<(), Halt> {
        let now_ns = self.elapsed_ns();
        self.links.flush(now_ns, &mut self.link_events);
        let Self { replica, times, sockets, .. } = self;
        if let Some(sockets) = sockets {
            sockets.flush(&mut EntryPort { replica, times, now_ns });
            replica.observe().0.traces.answered();
        }
        if replica.has_unreported() {
            replica.reported(times.at(now_ns));
        }
        self.on_link_events()
    }
}

/// Alone, a replica may wait for its disk.
fn writer_of(members: &Members) -> Writer {
    if members.is_one() { Writer::Either } else { Writer::Thread }
}
