//! A venue of several replicas: one thread that does everything that is in a hurry, and threads that wait for the disk.
//!
//! ```text
//!  peers (TLS) ----------+
//!  order entry (binary) -+--> [replica thread: one poll] --writes--> [log thread: write, sync]
//!  handlers, via queues -+     sequencer, engine, market data,  <--tickets--
//!    and a doorbell            feeds, reports, sessions          --states--> [snapshot thread]
//! ```
//!
//! A round of the thread: wait in the poll; read all that is ready; step the consensus; take commands; propose what has collected;
//! apply what is decided; write to every peer and participant once. It never waits for a disk and never for a peer.

mod alarm;
mod barriers;
mod clocks;
mod entry_sockets;
mod fair;
mod keys;
mod read_turns;
mod start;
mod storage;
mod surroundings;
mod traces;
mod waiters;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use mio::{Events, Poll, Token};
use tracing::{info, warn};
use walras_access::Clock;
use walras_access::connections::tell_shortage;
use walras_consensus::ReplicaId;
use walras_log_store::Disk;
use walras_peer_link::{LinkError, LinkEvent, SnapshotId};
use walras_ports::{
    Asker, ClusterRequest, Doorbell, Inbound, NoOutcome, Number, NumberedOutcome, NumberedReply, Progress, Queues, Request, View,
};
use walras_replica::Origin;
use walras_sequencer::{GatewayMessage, Halt, NotTaken, ReplicatedSequencer};
use walras_types::{RejectReason, TimeNs};
use walras_wire::{Command, VenueCommand, encode_command};

use super::batches::Declared;
use super::engine_thread::{BURST_MAX, Pace};
use alarm::Alarm;
use entry_sockets::{EntryPort, EntrySockets};
use fair::People;
pub use start::{AcceptedLoss, ReplicaVenue, accept_loss};
use storage::{LogDone, SnapshotDone, SnapshotJob};
use surroundings::{Surroundings, announced, tell_halt};

const LINK_TOKENS: std::ops::Range<usize> = 1..1_000;
const ENTRY_TOKENS: std::ops::Range<usize> = 1_000..70_000;
const DOORBELL: Token = Token(0);
/// Only wakes.
const ALARM: Token = Token(ENTRY_TOKENS.end);
/// Longer waits are left to the poll, which counts in milliseconds.
const ALARM_BELOW: Duration = Duration::from_millis(3);

/// Longest that a leader that is asked to stop waits until another one leads.
const HAND_OVER_MAX: Duration = Duration::from_millis(500);

/// How often figures are brought up to date.
const STATUS_EVERY: Duration = Duration::from_millis(20);

pub(super) struct ReplicaThread<D: Disk> {
    sequencer: ReplicatedSequencer<Origin>,
    around: Surroundings<D>,
    poll: Poll,
    alarm: Alarm,
    doorbell: Doorbell,
    queues: Queues,
    log_done: Receiver<LogDone>,
    snapshots_done: Receiver<SnapshotDone>,
    clock: Clock,
    begun: Instant,
    pace: Pace,
    link_events: Vec<LinkEvent>,
    /// Asked to stop: at the latest then, without having handed leadership over.
    stopping: Option<Instant>,
    /// Snapshots that come, and the messages that announce them.
    receiving: BTreeMap<(ReplicaId, SnapshotId), bytes::Bytes>,
    declared: Declared,
    keys: keys::KeyShare,
    clocks: clocks::Clocks,
}

impl<D: Disk> ReplicaThread<D> {
    /// Runs until asked to stop, or until it must not go on; then says why.
    pub(super) fn run(mut self) -> Option<Halt> {
        let halt = self.serve_all().err();
        if let Some(halt) = &halt {
            tell_halt(&halt.to_string());
            self.around.cluster.set_halted(&halt.to_string());
        }
        self.around.status.set_ready(false);
        for asker in self.queues.commands.try_iter().filter_map(|inbound| inbound.asker) {
            asker.refuse(NoOutcome::Refused(RejectReason::VenueNotReady));
        }
        info!("stopped at log entry {}", self.sequencer.engine().last_applied());
        halt
    }

    fn serve_all(&mut self) -> Result<(), Halt> {
        let mut events = Events::with_capacity(1024);
        let mut next_flush = Instant::now();
        let mut next_tick = Instant::now() + self.pace.tick_every;
        let mut next_status = Instant::now();
        self.around.status.set_ready(true);
        loop {
            let due = next_flush.min(next_tick).min(next_status).saturating_duration_since(Instant::now());
            let wait = due.min(self.until_deadline());
            if let Err(e) = self.poll.poll(&mut events, Some(wait))
                && e.kind() != std::io::ErrorKind::Interrupted
            {
                warn!("waiting for sockets failed: {e}");
            }
            self.doorbell.heard();
            self.around.now_ns = self.now_ns();
            self.around.traces.begin_round();
            self.hear_log()?;
            self.read_on();
            for event in &events {
                self.on_ready(event);
            }
            self.on_link_events()?;
            self.hear_snapshots()?;
            self.take_commands();
            self.take_requests()?;
            if self.stopping.is_some_and(|until| !self.sequencer.is_leading() || Instant::now() >= until) {
                return self.send_all();
            }
            self.sequence();
            self.drive_batches();
            self.steer_release();
            self.sequencer.propose(self.around.now_ns, &mut self.around)?;
            let now_ns = self.around.now_ns;
            if now_ns >= self.sequencer.next_deadline_ns() {
                self.sequencer.on_timer(now_ns, &mut self.around)?;
            }
            let instant = Instant::now();
            if instant >= next_flush {
                self.flush();
                next_flush = instant + self.pace.flush_every;
            }
            if instant >= next_tick {
                next_tick = instant + self.pace.tick_every;
                if self.sequencer.is_leading() && self.sequencer.waiting() == 0 {
                    // Where it is not taken, another replica leads by now.
                    let _ = self.sequencer.submit(self.clock.now(), None, &Command::Venue(VenueCommand::Tick), None);
                    self.sequencer.propose(self.around.now_ns, &mut self.around)?;
                }
            }
            if instant >= next_status {
                next_status = instant + STATUS_EVERY;
                self.publish();
                self.look_at_clocks()?;
            }
            self.send_all()?;
            // Where replicas, logs and clients share processors, whoever waits for this one's answer runs now and not at the next tick of
            // the kernel, milliseconds later. On a processor of its own it costs less than a microsecond a round.
            std::thread::yield_now();
        }
    }

    fn until_deadline(&mut self) -> Duration {
        if self.around.sockets.as_ref().is_some_and(EntrySockets::has_unread) {
            return Duration::ZERO;
        }
        let now_ns = self.now_ns();
        let next_look_ns = self.around.sockets.as_ref().and_then(EntrySockets::look_at_ns).unwrap_or(u64::MAX);
        let next_ns = self.sequencer.next_deadline_ns().min(self.around.links.next_deadline_ns()).min(next_look_ns);
        let mut wait = Duration::from_nanos(next_ns.saturating_sub(now_ns));
        if let Some(fair) = &mut self.around.fair {
            wait = wait.min(fair.wait(now_ns));
        }
        if !wait.is_zero() && wait < ALARM_BELOW {
            // Without it the poll wakes a millisecond later, and so late would what collects leave, and what is held be released.
            let _ = self.alarm.set(wait);
        }
        wait
    }

    /// Fair access: passes on what came here, takes what is due into the log, tells the gateways.
    fn sequence(&mut self) {
        let Self { sequencer, around, .. } = self;
        let Surroundings { fair: Some(fair), entry, numbered, links, reports, traces, waiters, now_ns, .. } = around else {
            return;
        };
        fair.settle(*now_ns, sequencer, &mut People { links, entry, numbered, reports, traces, waiters, now_ns: *now_ns });
    }

    /// Closes batches in time, has them solved, makes the markets that the configuration names: where this replica leads.
    fn drive_batches(&mut self) {
        let Self { sequencer, around, clock, declared, .. } = self;
        while let Ok(solved) = around.solver.done().try_recv() {
            sequencer.on_solved(around.now_ns, clock.now(), solved);
        }
        if !sequencer.is_leading() {
            return;
        }
        if let Some(command) = declared.step(Instant::now(), sequencer.engine(), &around.core.catalog) {
            // Where it is not taken, the state is looked at again.
            let _ = sequencer.submit(clock.now(), None, &command, None);
        }
        sequencer.drive_batches(around.now_ns, clock.now(), around);
    }

    /// Sends readers what changed. Where that is held it goes by the log's time, and a leader sees to it that this goes on after the last change.
    fn flush(&mut self) {
        let Self { sequencer, around, clock, .. } = self;
        around.core.flush_archive();
        if !around.feed.is_holding() {
            around.feed.flush(sequencer.engine(), &mut around.core.market);
        } else if sequencer.is_leading() && sequencer.waiting() == 0 && around.feed.is_behind(sequencer.engine()) {
            // Where it is not taken, another replica leads by now.
            let _ = sequencer.submit(clock.now(), None, &Command::Venue(VenueCommand::Tick), None);
        }
    }

    /// Tells the leader how long what was published was on its way, and as the leader goes by what others tell.
    fn steer_release(&mut self) {
        let Self { sequencer, around, clock, .. } = self;
        for (at, held_ns, transit_ns) in std::mem::take(&mut around.published) {
            around.traces.published(transit_ns);
            sequencer.published(at, held_ns, Some(transit_ns), around);
        }
        if sequencer.is_clock_wanted(around.now_ns) {
            let time = around.release_source.leader_time();
            sequencer.tell_clock(around.now_ns, time, around);
        }
        let sequencing_ns = around.fair.as_ref().map_or(0, |fair| fair.access.delay_ns());
        sequencer.steer_release(around.now_ns, clock.now(), sequencing_ns);
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn on_ready(&mut self, event: &mio::event::Event) {
        let Self { sequencer, around, clock, link_events, .. } = self;
        let now_ns = around.now_ns;
        if around.links.owns(event.token()) {
            around.links.on_ready(event, now_ns, link_events);
            return;
        }
        let Surroundings { sockets: Some(sockets), entry, fair, traces, leader_entry: leader, .. } = around else { return };
        if sockets.owns(event.token()) {
            let fair = fair.as_mut();
            sockets.on_ready(event, &mut EntryPort { entry, sequencer, clock, now_ns, leader, fair, traces });
        }
    }

    fn read_on(&mut self) {
        let Self { sequencer, around, clock, .. } = self;
        let Surroundings { sockets: Some(sockets), entry, fair, traces, leader_entry: leader, now_ns, .. } = around else { return };
        let (fair, now_ns) = (fair.as_mut(), *now_ns);
        sockets.read_on(&mut EntryPort { entry, sequencer, clock, now_ns, leader, fair, traces });
    }

    fn hear_log(&mut self) -> Result<(), Halt> {
        let mut last = None;
        loop {
            match self.log_done.try_recv() {
                Ok(LogDone::Persisted(ticket)) => last = Some(ticket),
                Ok(LogDone::Failed(why)) => return Err(Halt::Disk(why)),
                Err(crossbeam_channel::TryRecvError::Empty) => break,
                Err(crossbeam_channel::TryRecvError::Disconnected) => {
                    return Err(Halt::Disk("the log's thread is gone".to_owned()));
                }
            }
        }
        match last {
            Some(ticket) => self.sequencer.on_persisted(ticket, &mut self.around),
            None => Ok(()),
        }
    }

    fn hear_snapshots(&mut self) -> Result<(), Halt> {
        while let Ok(done) = self.snapshots_done.try_recv() {
            match done {
                SnapshotDone::Hashed(at, hash) => self.sequencer.on_state_hashed(at, hash, &mut self.around)?,
                SnapshotDone::Written(meta) => {
                    self.around.writing -= 1;
                    self.around.status.add_snapshots(1);
                    self.sequencer.on_snapshot_durable(&meta, &mut self.around)?;
                    let kept = self.around.store.list().len().saturating_sub(2);
                    if let Some(oldest) = self.around.store.list().get(kept) {
                        let _ = self.around.snapshots.send(SnapshotJob::RemoveBefore(oldest.meta.slot));
                    }
                }
                SnapshotDone::NotWritten(why) => {
                    self.around.writing -= 1;
                    warn!("a snapshot was not written: {why}; the log keeps what it would have replaced");
                }
                SnapshotDone::Taken { from, id, bytes } => self.around.links.snapshot_taken(from, id, bytes),
                SnapshotDone::Received { from, id, message: Ok(message) } => {
                    self.around.links.answer_snapshot(from, id, Ok(()));
                    self.sequencer.on_message(self.around.now_ns, from, message, &mut self.around)?;
                }
                SnapshotDone::Received { from, id, message: Err(why) } => {
                    warn!("a snapshot from replica {from} was not taken: {why}");
                    self.receiving.remove(&(from, id));
                    self.around.links.answer_snapshot(from, id, Err(why.to_string()));
                }
            }
        }
        Ok(())
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
        let now_ns = self.around.now_ns;
        match event {
            LinkEvent::Lost { why: LinkError::Dismissed(why), .. } | LinkEvent::Refused { why: LinkError::Dismissed(why), .. } => {
                return Err(Halt::TwoProcesses(why));
            }
            LinkEvent::Message { from: _, bytes } if self.keys.take(&bytes) => {}
            LinkEvent::Message { from, bytes } if clocks::Clocks::is_about_clocks(&bytes) => {
                // Its own time: what waited for this thread is not the network's.
                if let Some(answer) = self.clocks.take(from, &bytes, self.now_ns(), self.clock.now()) {
                    let _ = self.around.links.send(from, answer);
                }
            }
            LinkEvent::Message { from, bytes } => {
                if GatewayMessage::is_one(&bytes) {
                    let Self { sequencer, around, .. } = self;
                    let Surroundings { fair, entry, numbered, links, reports, traces, waiters, .. } = around;
                    if let Some(fair) = fair {
                        let people = &mut People { links, entry, numbered, reports, traces, waiters, now_ns };
                        fair.on_message(now_ns, from, &bytes, sequencer, people);
                    }
                    return Ok(());
                }
                // One that announces a snapshot comes with it, never alone.
                if self.sequencer.announced_snapshot(&bytes).is_none() {
                    self.sequencer.on_message(now_ns, from, bytes, &mut self.around)?;
                }
            }
            LinkEvent::Connected { id, versions } => {
                info!("replica {id} is linked, software {}", versions.software);
                self.sequencer.on_linked(now_ns, id);
                self.keys.on_connected(id);
                self.around.cluster.with_peer(id, |peer| {
                    peer.software = Some(versions.software.clone());
                    peer.is_compatible = Some(true);
                    peer.trouble = None;
                });
                if let Some(fair) = &mut self.around.fair {
                    fair.access.on_linked();
                }
            }
            LinkEvent::Lost { id, why } => {
                warn!("the link to replica {id} is lost: {why}");
                self.keys.on_lost(id);
                self.around.cluster.with_peer(id, |peer| {
                    (peer.software, peer.is_compatible, peer.trouble) = (None, None, Some(why.to_string()));
                });
                if let Some(fair) = &mut self.around.fair {
                    fair.access.on_link_lost(id);
                }
                match why {
                    // Its process ended, or something between the two did: others than silence and our own doing.
                    LinkError::Closed | LinkError::Broken(_) => self.sequencer.on_link_lost(now_ns, id, &mut self.around)?,
                    _ => self.sequencer.on_unreachable(id, &mut self.around)?,
                }
            }
            LinkEvent::Refused { id, remote, why } => {
                warn!("no link with {}: {why}", remote.map_or_else(|| "a peer".to_owned(), |remote| remote.to_string()));
                if let Some(id) = id {
                    self.around.cluster.with_peer(id, |peer| peer.trouble = Some(why.to_string()));
                }
            }
            LinkEvent::Shortage(news) => tell_shortage("links between replicas", news),
            LinkEvent::SnapshotBegin { from, id, meta, .. } => match announced(&meta) {
                Some((info, message)) => {
                    info!("replica {from} sends the snapshot of entry {}", info.meta.log_index);
                    self.receiving.insert((from, id), message);
                    let _ = self.around.snapshots.send(SnapshotJob::Begin { from, id, info });
                }
                None => self.around.links.answer_snapshot(from, id, Err("its announcement does not decode".to_owned())),
            },
            LinkEvent::SnapshotChunk { from, id, bytes, .. } => {
                let _ = self.around.snapshots.send(SnapshotJob::Chunk { from, id, bytes });
            }
            LinkEvent::SnapshotEnd { from, id, .. } => {
                if let Some(message) = self.receiving.remove(&(from, id)) {
                    let _ = self.around.snapshots.send(SnapshotJob::End { from, id, message });
                }
            }
            LinkEvent::SnapshotBroken { from, id, why } => {
                warn!("a snapshot from replica {from} did not come: {why}");
                self.receiving.remove(&(from, id));
                let _ = self.around.snapshots.send(SnapshotJob::GiveUp { from, id });
            }
            LinkEvent::SnapshotDelivered { to, id } => {
                if self.around.sending.remove(&(to, id)).is_some() {
                    self.sequencer.on_snapshot_sent(to, Ok(()), &mut self.around)?;
                }
            }
            LinkEvent::SnapshotFailed { to, id, why } => {
                warn!("a snapshot did not reach replica {to}: {why}");
                if self.around.sending.remove(&(to, id)).is_some() {
                    self.sequencer.on_snapshot_sent(to, Err(()), &mut self.around)?;
                }
            }
        }
        Ok(())
    }

    fn take_commands(&mut self) {
        for Inbound { command, asker, key } in self.queues.commands.try_iter().take(BURST_MAX) {
            let origin = match asker {
                Some(Asker::Numbered(number, reply)) => {
                    take_numbered(&mut self.sequencer, &mut self.around, self.clock.now(), (number, &command), reply);
                    continue;
                }
                Some(Asker::Reply(reply)) => Some(Origin::Waiter(self.around.waiters.add(reply))),
                None => None,
            };
            if let Some(fair) = &mut self.around.fair
                && command.is_order()
                && self.sequencer.is_leading()
            {
                fair.submit_alone(self.around.now_ns, command, origin);
                continue;
            }
            let now = self.clock.now();
            let taken = match key {
                None => self.sequencer.submit(now, None, &command, origin),
                Some(key) => self.sequencer.submit_keyed(now, key, &command, origin),
            };
            if let Err((why, Some(Origin::Waiter(waiter)))) = taken {
                let reason = match why {
                    NotTaken::NotLeader { .. } => RejectReason::NotLeader,
                    NotTaken::Refused(reason) => reason,
                    NotTaken::Repeated(_) | NotTaken::OnItsWay => unreachable!("it has no ordinal"),
                };
                self.around.waiters.answer(waiter, Err(NoOutcome::Refused(reason)));
            }
        }
        if !self.queues.commands.is_empty() {
            self.doorbell.ring();
        }
    }

    fn take_requests(&mut self) -> Result<(), Halt> {
        while let Ok(request) = self.queues.requests.try_recv() {
            let Self { sequencer, around, .. } = self;
            let engine = sequencer.engine();
            match request {
                Request::Stop => self.hand_over()?,
                Request::Read(question) => {
                    let (market, fills, indicatives) = (&around.core.market, &around.core.fills, around.feed.indicatives());
                    question(&View { engine, market, fills, indicatives });
                }
                Request::Connect { connection, queue } => around.feed.connect(connection, queue),
                Request::Subscribe { connection, subscription } => {
                    around.feed.subscribe(connection, subscription, engine, &around.core.market, &around.core.fills);
                }
                Request::Unsubscribe { connection, subscription } => around.feed.unsubscribe(connection, subscription),
                Request::Disconnect { connection } => around.feed.disconnect(connection),
                // They are taken at the same entry on every replica, so that states can be compared.
                Request::Snapshot(reply) => {
                    let _ = reply.send(Err(RejectReason::NotInACluster));
                }
                Request::Barrier(reply) => around.barriers.wait(reply),
                Request::Cluster(asked, reply) => {
                    let answer = self.on_cluster_request(&asked)?;
                    let _ = reply.send(answer);
                }
            }
        }
        if let Some(token) = self.around.barriers.next(self.around.now_ns) {
            // Where nobody leads it is asked again.
            let _ = self.sequencer.read(token, &mut self.around)?;
        }
        Ok(())
    }

    /// Before it stops, a leader makes another one lead, so that nobody has to wait for an election.
    fn hand_over(&mut self) -> Result<(), Halt> {
        let Self { sequencer, around, stopping, .. } = self;
        let view = around.cluster.view();
        let is_there = |id: &&ReplicaId| view.peers.get(id).is_some_and(|peer| peer.software.is_some());
        let heir = view.members.voters.iter().filter(|id| **id != view.me).find(is_there);
        let now = Instant::now();
        *stopping = Some(now);
        if let Some(heir) = heir.filter(|_| sequencer.is_leading())
            && sequencer.transfer_to(around.now_ns, *heir, around)?.is_ok()
        {
            info!("handing over to replica {heir}");
            *stopping = Some(now + HAND_OVER_MAX);
        }
        Ok(())
    }

    fn on_cluster_request(&mut self, asked: &ClusterRequest) -> Result<Result<(), String>, Halt> {
        let Self { sequencer, around, .. } = self;
        let now_ns = around.now_ns;
        Ok(match asked {
            ClusterRequest::Transfer(to) => sequencer.transfer_to(now_ns, *to, around)?.map_err(|e| e.to_string()),
            ClusterRequest::Change(change) => sequencer.change_members(&[*change], around)?.map_err(|e| e.to_string()),
            ClusterRequest::Weather(peer, weather) => around.links.set_weather(*peer, *weather).map_err(|e| e.to_string()),
        })
    }

    fn publish(&mut self) {
        let Self { sequencer, around, keys, .. } = self;
        if sequencer.is_settled() {
            keys.share(&mut around.links);
        }
        around.barriers.forget_the_impatient();
        let engine = sequencer.engine();
        around.status.add_commands(std::mem::take(&mut around.applied_count));
        around.status.add_rejects(around.core.take_rejects());
        if !around.feed.is_holding() {
            around.status.show(Progress::of(engine, &around.core.market));
        }
        around.status.set_accounts(around.core.accounts());
        let delays = engine.access_delays();
        around.status.set_release_delay_ns(if around.feed.is_holding() { delays.release_ns } else { 0 });
        let bounds = around.release_source.bound_ns().zip(sequencer.leader_clock_bound_ns());
        around.status.set_release_bound_ns(bounds.map_or(0, |(here_ns, leader_ns)| here_ns.saturating_add(leader_ns)));
        around.cluster.set_progress(&sequencer.status(), sequencer.waiting());
        if let Some(fair) = &mut around.fair {
            around.cluster.set_fair_access(fair.view());
        }
        around.cluster.set_release(sequencer.release_counts());
        if std::mem::take(&mut around.replaced) {
            around.feed.start_over(engine, &around.core.market);
        }
        if let Some(sockets) = &mut around.sockets {
            sockets.on_timer(around.now_ns, &mut around.entry);
        }
    }

    /// A leader whose clock most others find far off does not stamp commands any longer than it must.
    fn look_at_clocks(&mut self) -> Result<(), Halt> {
        let now_ns = self.now_ns();
        let Self { sequencer, around, clocks, .. } = self;
        if let Some(question) = clocks.ask(now_ns) {
            let peers: Vec<ReplicaId> = around.addresses.keys().copied().filter(|id| *id != around.cluster.me()).collect();
            for id in peers {
                // Those who are not linked are not asked.
                let _ = around.links.send(id, question.clone());
            }
        }
        let voters = sequencer.members().voters.clone();
        let error_ns = clocks.error_ns(voters.iter(), now_ns);
        around.cluster.set_clock_trouble(error_ns.map(clocks::trouble));
        if let Some(error_ns) = error_ns
            && sequencer.is_leading()
            && let Some(heir) = clocks.heir(voters.iter(), error_ns, now_ns)
        {
            warn!("{}", clocks::trouble(error_ns));
            // Where it is refused it is tried again.
            let _ = sequencer.transfer_to(now_ns, heir, around)?;
        }
        Ok(())
    }

    /// Everything that was queued in this round leaves.
    fn send_all(&mut self) -> Result<(), Halt> {
        while let Some(to) = self.around.not_sent.pop() {
            self.sequencer.on_snapshot_sent(to, Err(()), &mut self.around)?;
        }
        let now_ns = self.now_ns();
        if now_ns >= self.around.links.next_deadline_ns() {
            self.around.links.on_timer(now_ns, &mut self.link_events);
        }
        self.around.links.flush(now_ns, &mut self.link_events);
        let Self { sequencer, around, clock, .. } = self;
        if let Surroundings { sockets: Some(sockets), entry, fair, traces, leader_entry: leader, .. } = around {
            let fair = fair.as_mut();
            sockets.flush(&mut EntryPort { entry, sequencer, clock, now_ns, leader, fair, traces });
            around.traces.answered();
        }
        self.on_link_events()
    }
}

/// A session's command that came over HTTP: only the leader takes it, which knows whose sessions there are.
fn take_numbered<D: Disk>(
    sequencer: &mut ReplicatedSequencer<Origin>,
    around: &mut Surroundings<D>,
    now: TimeNs,
    (number, command): (Number, &Command),
    reply: NumberedReply,
) {
    let ordinal = number.ordinal;
    let known = if sequencer.is_leading() { number.known(sequencer.engine()) } else { Err(RejectReason::NotLeader) };
    let taken = match (known, &mut around.fair) {
        (Err(reason), _) => Err(NotTaken::Refused(reason)),
        (Ok(Some(answer)), _) => Err(NotTaken::Repeated(answer)),
        (Ok(None), Some(fair)) => {
            let mut content = Vec::new();
            encode_command(command, &mut content);
            let at = fair.at(around.now_ns);
            fair.access.submit(at, sequencer.engine(), ordinal, &content)
        }
        (Ok(None), None) => sequencer.submit(now, Some(ordinal), command, None).map_err(|(why, _)| why),
    };
    let told = match taken {
        Ok(()) | Err(NotTaken::OnItsWay) => return around.numbered.wait(number, reply),
        Err(NotTaken::Repeated(answer)) => answer.to(number.content).map(NumberedOutcome::Repeated).map_err(NoOutcome::Refused),
        Err(NotTaken::NotLeader { .. }) => Err(NoOutcome::Refused(RejectReason::NotLeader)),
        Err(NotTaken::Refused(reason)) => Err(NoOutcome::Refused(reason)),
    };
    // Whoever asked may have gone away.
    let _ = reply.send(told);
}
