//! The process: what comes in, and what the sequencer and its surroundings make of it.

use bytes::Bytes;
use walras_consensus::{Durability, MemberChange, Members, ReadToken, ReplicaId, Role, RoleChange, SlotEntry};
use walras_engine::{BatchMarketView, Engine};
use walras_gateway::Gateway;
use walras_replica::{Backend, OrderEntry, Origin, WaiterId};
use walras_replica_log::{Incoming, IncomingId, SnapshotInfo};
use walras_sequencer::{GatewayMessage, Halt, ReplicatedSequencer};
use walras_testkit::Listener;
use walras_types::{Answer, LogIndex, RejectReason, TimeNs};
use walras_wire::{Command, VenueCommand, decode_command};

use super::fair::{self, People};
use super::releases::Releases;
use super::streams::{Taken, Watch};
use super::surroundings::Surroundings;
use super::{StreamId, batches};
use crate::cluster::mutation::Mutation;
use crate::cluster::tempo::Density;
use crate::common::batches::solve;
use crate::common::disk::VenueDisk;

/// When something happens to a process, by its own machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// What its clock has counted.
    pub(crate) now_ns: u64,
    /// The time of day as it has it.
    pub(crate) clock_ns: u64,
    /// How many times longer its disk takes.
    pub(crate) slow: u64,
    /// Faults have stopped, and nobody sends transactions of batch markets any more.
    pub(crate) is_quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaTimer {
    /// Something is due by [`Process::deadline_ns`].
    Deadline,
    /// Where memory counts, the log's thread has written.
    Written,
    /// The log's thread has synced, or failed to.
    Synced,
    /// The snapshots' thread has written a state, or failed to.
    SnapshotWritten,
    /// A segment is prepared.
    Upkeep,
    /// Time is told where nothing else is.
    Tick,
    /// Somebody sends transactions of a batch market.
    Batch,
    /// A closed batch is solved.
    Solved,
}

/// What a process wants to happen.
#[derive(Debug)]
pub(crate) enum Out {
    Send {
        to: ReplicaId,
        bytes: Vec<u8>,
    },
    SendSnapshot {
        to: ReplicaId,
        info: SnapshotInfo,
        state: Vec<u8>,
        message: Vec<u8>,
    },
    Timer {
        after_ns: u64,
        timer: ReplicaTimer,
    },
    Stream {
        stream: StreamId,
        bytes: Vec<u8>,
        ends: bool,
    },
    Role(RoleChange),
    /// It writes down that it votes for somebody else: a moment at which a crash is of interest.
    Voted,
    Members(Members),
    ReadReady(ReadToken),
    /// Whoever waits under this number is told.
    Told(u64, Fate),
}

/// What came of a command that somebody of one of several shards has submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The log has it. Why it was refused, if it was.
    Done(Option<RejectReason>),
    /// Nobody knows.
    Unknown,
}

/// Why a process ended by itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    #[error("the disk failed: {0}")]
    Disk(String),
    #[error(transparent)]
    Halt(#[from] Halt),
}

impl Stop {
    pub(super) fn disk(error: impl std::fmt::Display) -> Self {
        Self::Disk(error.to_string())
    }
}

const SYNC_NS: u64 = 200_000;
/// Where memory counts: until something is written, and the longest that something lies unsynced.
const WRITE_NS: u64 = 20_000;
const MEMORY_SYNC_NS: u64 = 20_000_000;
const SNAPSHOT_NS: u64 = 2_000_000;
const UPKEEP_NS: u64 = 1_000_000;
const TICK_NS: u64 = 500_000_000;
const SOLVE_NS: u64 = 4_000_000;

pub(crate) struct Process {
    pub(super) sequencer: ReplicatedSequencer<Origin>,
    pub(super) around: Surroundings,
    /// Snapshots that come.
    incoming: Incoming<VenueDisk>,
    density: Density,
}

type Done = Result<(), Stop>;

impl Process {
    pub(super) fn new(sequencer: ReplicatedSequencer<Origin>, around: Surroundings, density: Density) -> Self {
        Self { sequencer, around, incoming: Incoming::new(), density }
    }

    /// The first things that it does.
    pub(crate) fn begin(&mut self, at: Moment) -> Done {
        self.around.out.push(Out::Timer { after_ns: TICK_NS, timer: ReplicaTimer::Tick });
        self.around.out.push(Out::Timer { after_ns: self.density.batch_pause_ns, timer: ReplicaTimer::Batch });
        self.settle(at)
    }

    /// Before anything happens.
    pub(crate) fn at(&mut self, at: Moment) {
        (self.around.now_ns, self.around.clock_ns) = (at.now_ns, at.clock_ns);
        self.around.sync_ns = SYNC_NS * at.slow;
        self.around.snapshot_ns = SNAPSHOT_NS * at.slow;
        self.around.solve_ns = SOLVE_NS * at.slow;
    }

    pub(crate) fn on_message(&mut self, at: Moment, from: ReplicaId, bytes: Bytes) -> Done {
        let Self { sequencer, around: Surroundings { fair, entry, out, reports, now_ns, me, checks, mutation, .. }, .. } = self;
        if let Some(fair) = fair
            && GatewayMessage::is_one(&bytes)
        {
            // Who does not lead drops orders.
            let at = fair::time(at.now_ns, at.clock_ns);
            let heard = if sequencer.is_leading() { fair::heard(bytes, *me, at, checks, *mutation) } else { Some(bytes) };
            if let Some(bytes) = heard {
                let mut people = People { me: *me, checks, entry, out, reports, now_ns: *now_ns };
                fair.on_message(at, from, &bytes, sequencer, &mut people);
            }
            return Ok(());
        }
        self.on_sequencers_message(at, from, bytes)
    }

    fn on_sequencers_message(&mut self, at: Moment, from: ReplicaId, bytes: Bytes) -> Done {
        Ok(self.sequencer.on_message(at.now_ns, from, bytes, &mut self.around)?)
    }

    pub(crate) fn on_linked(&mut self, at: Moment, peer: ReplicaId) -> Done {
        self.sequencer.on_linked(at.now_ns, peer);
        Ok(())
    }

    pub(crate) fn on_unreachable(&mut self, peer: ReplicaId) -> Done {
        Ok(self.sequencer.on_unreachable(peer, &mut self.around)?)
    }

    pub(crate) fn on_link_lost(&mut self, at: Moment, peer: ReplicaId) -> Done {
        Ok(self.sequencer.on_link_lost(at.now_ns, peer, &mut self.around)?)
    }

    pub(crate) fn on_timer(&mut self, at: Moment, timer: ReplicaTimer) -> Done {
        let Self { sequencer, around, density, .. } = self;
        match timer {
            ReplicaTimer::Deadline => {
                sequencer.on_timer(at.now_ns, around)?;
                around.entry.on_timer(at.now_ns);
            }
            ReplicaTimer::Written => {
                around.storage.is_writing = false;
                if let Some(ticket) = around.storage.hand_over()? {
                    sequencer.on_persisted(ticket, around)?;
                    if around.storage.syncing.replace(ticket).is_none() {
                        around.out.push(Out::Timer { after_ns: MEMORY_SYNC_NS * at.slow, timer: ReplicaTimer::Synced });
                    }
                }
            }
            ReplicaTimer::Synced => {
                let ticket = around.storage.end_sync(at.now_ns)?;
                if around.storage.upkeep.is_some() {
                    around.out.push(Out::Timer { after_ns: UPKEEP_NS * at.slow, timer: ReplicaTimer::Upkeep });
                }
                if let Some(ticket) = ticket.filter(|_| around.mutation != Some(Mutation::PersistedBeforeSync)) {
                    sequencer.on_persisted(ticket, around)?;
                }
                around.storage.remove_old();
            }
            ReplicaTimer::SnapshotWritten => {
                if let Some((at, hash)) = around.storage.hash_state() {
                    sequencer.on_state_hashed(at, hash, around)?;
                }
                if let Some(meta) = around.storage.write_state() {
                    sequencer.on_snapshot_durable(&meta, around)?;
                }
            }
            ReplicaTimer::Upkeep => around.storage.keep_up(),
            ReplicaTimer::Batch => {
                around.out.push(Out::Timer { after_ns: density.batch_pause_ns, timer: ReplicaTimer::Batch });
                if sequencer.is_leading() {
                    for command in batches::commands(sequencer.engine(), at, density.batch_interval_ns) {
                        // What is not taken is not missed.
                        let _ = sequencer.submit(TimeNs(at.clock_ns), None, &command, None);
                    }
                }
            }
            ReplicaTimer::Solved => {
                if let Some(job) = around.solving.pop_front() {
                    sequencer.on_solved(at.now_ns, TimeNs(at.clock_ns), solve(&job));
                }
            }
            ReplicaTimer::Tick => {
                around.out.push(Out::Timer { after_ns: TICK_NS, timer: ReplicaTimer::Tick });
                if sequencer.is_leading() && sequencer.waiting() == 0 {
                    // Where it is not taken, another replica leads by now.
                    let _ = sequencer.submit(TimeNs(at.clock_ns), None, &Command::Venue(VenueCommand::Tick), None);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn accept(&mut self, stream: StreamId, client: usize) {
        let Surroundings { streams, entry, now_ns, .. } = &mut self.around;
        entry.accept(streams.accept(stream, client), *now_ns);
    }

    pub(crate) fn on_bytes(&mut self, at: Moment, stream: StreamId, bytes: &[u8]) {
        let Some((id, source)) = self.around.streams.of(stream) else { return };
        let clock_ns = at.clock_ns;
        let taken = self.with_entry(at, |entry, gateway, backend| {
            let charge = &mut |principal: &_, permission| gateway.charge(clock_ns, principal, permission, 1);
            entry.on_bytes(id, bytes, charge, backend);
            while let Some((id, logon)) = entry.next_logon() {
                entry.on_authenticated(id, logon.authorize(gateway, clock_ns, source), backend);
            }
            std::mem::take(&mut backend.probe.taken)
        });
        self.plant(at, taken);
    }

    pub(crate) fn on_stream_end(&mut self, at: Moment, stream: StreamId) {
        if let Some((id, _)) = self.around.streams.of(stream) {
            self.with_entry(at, |entry, _, backend| entry.on_lost(id, backend));
            self.around.streams.remove(stream);
        }
    }

    fn with_entry<R>(
        &mut self,
        at: Moment,
        act: impl FnOnce(&mut OrderEntry, &mut Gateway, &mut Backend<'_, Watch<'_>>) -> R,
    ) -> R {
        let Self { sequencer, around, .. } = self;
        let Surroundings { entry, gateway, fair, leader_address: leader, me, checks, mutation, .. } = around;
        let probe = &mut Watch { me: *me, checks, mutation: *mutation, taken: Vec::new() };
        let at = fair::time(at.now_ns, at.clock_ns);
        let done = act(entry, gateway, &mut Backend { sequencer, fair: fair.as_deref_mut(), at, leader, probe });
        // Why a connection ended is of no interest here.
        while entry.next_end().is_some() {}
        done
    }

    /// What planted faults do with commands that came in just now.
    fn plant(&mut self, at: Moment, taken: Vec<Taken>) {
        let Self { sequencer, around, .. } = self;
        let last = made(sequencer);
        let count = taken.len() as u64;
        for (behind, one) in (1..=count).rev().zip(taken) {
            match one {
                Taken::Early(ordinal, content) => {
                    let log_index = LogIndex(last.0 + 1 - behind);
                    around.entry.answer(ordinal, Answer { log_index, rejected: None, content }, None);
                }
                Taken::Unnumbered(bytes) => {
                    let command = decode_command(&bytes).expect("it was decoded before");
                    let _ = sequencer.submit(TimeNs(at.clock_ns), None, &command, None);
                }
            }
        }
    }

    /// A snapshot begins to come.
    pub(crate) fn begin_snapshot(&mut self, id: IncomingId, info: &SnapshotInfo) {
        let writer = match self.around.mutation {
            // Whatever comes of it counts as all of it.
            Some(Mutation::TakeHalfASnapshot) => self.around.storage.snapshots.begin(info.meta.clone()),
            _ => self.around.storage.snapshots.receive(info.clone()),
        };
        if let Ok(writer) = writer {
            // One whose place it takes is found not to have arrived when its end comes.
            self.incoming.begin(id, writer);
        }
    }

    pub(crate) fn take_piece(&mut self, id: IncomingId, piece: &[u8]) {
        // A failure shows at the end: nothing is there then.
        let _ = self.incoming.append(id, piece);
    }

    /// The rest of it will not come.
    pub(crate) fn give_up_snapshot(&mut self, at: Moment, id: IncomingId, message: Bytes) -> Done {
        if self.around.mutation == Some(Mutation::TakeHalfASnapshot) {
            return self.end_snapshot(at, id, message).map(drop);
        }
        self.incoming.give_up(id);
        Ok(())
    }

    /// All of it came, and the message that announces it; whether it was taken.
    pub(crate) fn end_snapshot(&mut self, at: Moment, id: IncomingId, message: Bytes) -> Result<bool, Stop> {
        if self.incoming.finish(id).is_err() {
            return Ok(false);
        }
        self.on_sequencers_message(at, id.from, message)?;
        Ok(true)
    }

    pub(crate) fn snapshot_sent(&mut self, to: ReplicaId, arrived: bool) -> Done {
        if self.around.mutation == Some(Mutation::ForgetSnapshotSent) {
            return Ok(());
        }
        let arrived = if arrived { Ok(()) } else { Err(()) };
        Ok(self.sequencer.on_snapshot_sent(to, arrived, &mut self.around)?)
    }

    /// Hands leadership over; whether that was begun.
    pub(crate) fn transfer_to(&mut self, at: Moment, to: ReplicaId) -> Result<bool, Stop> {
        Ok(self.sequencer.transfer_to(at.now_ns, to, &mut self.around)?.is_ok())
    }

    /// Changes the members, by a joint configuration where there are several changes; whether that was begun.
    pub(crate) fn change_members(&mut self, changes: &[MemberChange]) -> Result<bool, Stop> {
        Ok(self.sequencer.change_members(changes, &mut self.around)?.is_ok())
    }

    /// Asks to read; whether it was taken.
    pub(crate) fn read(&mut self, token: ReadToken) -> Result<bool, Stop> {
        if self.around.mutation == Some(Mutation::ReadAtOnce) {
            self.around.out.push(Out::ReadReady(token));
            return Ok(true);
        }
        Ok(self.sequencer.read(token, &mut self.around)?.is_ok())
    }

    /// Submits a command of no session; whether it was taken. [`Out::Told`] says what came of it.
    pub(crate) fn submit(&mut self, at: Moment, command: &Command, number: u64) -> bool {
        self.sequencer.submit(TimeNs(at.clock_ns), None, command, Some(Origin::Waiter(WaiterId(number)))).is_ok()
    }

    /// What the rest of a round does, whatever came in: propose, begin to write, send.
    pub(crate) fn settle(&mut self, at: Moment) -> Done {
        self.settle_fairness(at);
        self.sequencer.drive_batches(at.now_ns, TimeNs(at.clock_ns), &mut self.around);
        self.sequencer.propose(at.now_ns, &mut self.around)?;
        if self.sequencer.is_leading() {
            self.around.checks.borrow_mut().on_made(self.around.me, made(&self.sequencer));
        }
        self.write(at)?;
        while let Some(to) = self.around.not_sent.pop() {
            self.sequencer.on_snapshot_sent(to, Err(()), &mut self.around)?;
        }
        if at.now_ns >= self.sequencer.next_deadline_ns() {
            self.sequencer.on_timer(at.now_ns, &mut self.around)?;
        }
        self.write(at)?;
        self.flush(at);
        Ok(())
    }

    /// Writes to clients what there is.
    fn flush(&mut self, at: Moment) {
        if !self.around.entry.is_dirty() {
            return;
        }
        let outs = self.with_entry(at, |entry, _, backend| {
            let mut outs = Vec::new();
            while let Some(id) = entry.next_dirty(backend) {
                let (bytes, ends) = (entry.output(id).to_vec(), entry.is_over(id));
                entry.consume(id, bytes.len());
                if ends {
                    entry.remove(id);
                }
                outs.push((StreamId(id.serial), bytes, ends));
            }
            outs
        });
        for (stream, bytes, ends) in outs {
            if ends {
                self.around.streams.remove(stream);
            }
            if ends || !bytes.is_empty() {
                self.around.out.push(Out::Stream { stream, bytes, ends });
            }
        }
    }

    fn settle_fairness(&mut self, at: Moment) {
        let Self { sequencer, around, .. } = self;
        if let Surroundings { fair: Some(fair), entry, out, reports, now_ns, me, checks, .. } = around {
            let before = made(sequencer);
            let mut people = People { me: *me, checks, entry, out, reports, now_ns: *now_ns };
            let at = fair::time(at.now_ns, at.clock_ns);
            fair.settle(at, sequencer, &mut people);
            if sequencer.is_leading() {
                checks.borrow_mut().on_let_go(*me, at, before, made(sequencer));
            }
        }
        let published = around.releases.as_mut().map_or_else(Vec::new, Releases::take_published);
        for (log_index, held_ns, transit_ns) in published {
            sequencer.published(log_index, held_ns, Some(transit_ns), around);
        }
        if let Surroundings { fair: Some(fair), releases: Some(releases), me, checks, mutation, .. } = around {
            sequencer.steer_release(at.now_ns, TimeNs(at.clock_ns), fair.delay_ns());
            releases.release(*me, at.clock_ns, &mut checks.borrow_mut(), *mutation);
        }
    }

    fn write(&mut self, at: Moment) -> Done {
        let Self { sequencer, around, .. } = self;
        if around.storage.durability == Durability::Memory {
            if !around.storage.jobs.is_empty() && !std::mem::replace(&mut around.storage.is_writing, true) {
                around.out.push(Out::Timer { after_ns: WRITE_NS * at.slow, timer: ReplicaTimer::Written });
            }
            return Ok(());
        }
        if around.storage.syncing.is_some() {
            return Ok(());
        }
        if let Some(ticket) = around.storage.hand_over()? {
            around.storage.syncing = Some(ticket);
            around.out.push(Out::Timer { after_ns: SYNC_NS * at.slow, timer: ReplicaTimer::Synced });
            if around.mutation == Some(Mutation::PersistedBeforeSync) {
                sequencer.on_persisted(ticket, around)?;
            }
        }
        Ok(())
    }

    /// Ends in good order.
    pub(crate) fn stop(self) -> Result<(), String> {
        let Self { around, incoming, .. } = self;
        drop(incoming);
        around.storage.close()
    }

    /// When [`ReplicaTimer::Deadline`] has something to do.
    pub(crate) fn deadline_ns(&self) -> u64 {
        let Surroundings { entry, fair, releases, now_ns, clock_ns, .. } = &self.around;
        let held_ns = fair.as_ref().and_then(|fair| fair.wait_ns(fair::time(*now_ns, *clock_ns)));
        let released_ns = releases.as_ref().and_then(|releases| releases.wait_ns(*clock_ns));
        let wait_ns = held_ns.into_iter().chain(released_ns).min();
        let fair_ns = wait_ns.map_or(u64::MAX, |wait_ns| now_ns.saturating_add(wait_ns));
        self.sequencer.next_deadline_ns().min(entry.deadline_ns()).min(fair_ns)
    }

    /// What it wants to happen, into an empty list.
    pub(crate) fn take_out(&mut self, outs: &mut Vec<Out>) {
        std::mem::swap(&mut self.around.out, outs);
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.sequencer.engine()
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.around.listener
    }

    pub(crate) fn members(&self) -> &Members {
        self.sequencer.members()
    }

    /// A batch that is closed and not cleared, or collects.
    pub(crate) fn unfinished_batch(&self) -> Option<BatchMarketView<'_>> {
        self.engine().batch_markets().find(|view| view.closed.is_some() || view.collected > 0)
    }

    /// The same in words.
    pub(crate) fn describe_batch(&self) -> Option<String> {
        let unfinished = self.unfinished_batch()?;
        let how = if unfinished.closed.is_some() { "is closed and not cleared" } else { "is not closed" };
        Some(format!("block {} of batch market {} {how}", unfinished.next_block, unfinished.spec.market))
    }

    /// Whether it takes part in the cluster.
    pub(crate) fn is_settled(&self) -> bool {
        self.sequencer.is_settled()
    }

    pub(crate) fn is_leading(&self) -> bool {
        self.sequencer.is_leading()
    }

    pub(crate) fn is_following_or_leading(&self) -> bool {
        self.sequencer.leader().is_some()
    }

    /// What its log holds in slots that are decided.
    pub(crate) fn decided_slots(&self) -> Result<Vec<SlotEntry>, String> {
        let held = self.around.storage.log.slots();
        let end = held.end.min(self.sequencer.status().committed.next());
        let mut entries = Vec::new();
        // What waits to be written may replace what is there.
        if held.start >= end || !self.around.storage.jobs.is_empty() {
            return Ok(entries);
        }
        let mut reader = self.around.storage.log.read_slots(held.start..end).map_err(|e| e.to_string())?;
        while let Some(entry) = reader.next().map_err(|e| e.to_string())? {
            entries.push(entry);
        }
        Ok(entries)
    }

    pub(crate) fn describe(&self) -> String {
        let status = self.sequencer.status();
        let role = match status.role {
            Role::Leader => "leads".to_owned(),
            Role::Candidate => "stands".to_owned(),
            Role::Follower { leader } => format!("follows {leader:?}"),
        };
        let fair = self.around.fair.as_ref().map_or_else(String::new, |fair| {
            let (sequenced, leader) = (fair.sequenced(), fair.leader());
            format!(
                ", {} passed on to {leader:?} and unanswered, {} held, {} early, d_s {} ns",
                fair.unanswered(),
                sequenced.held,
                sequenced.early,
                sequenced.delay_ns
            )
        });
        format!(
            "{role} (taking: {}) in term {}, last slot {}, committed {}, applied entry {}, {} commands wait, members {:?}{fair}",
            self.is_leading(),
            status.term,
            status.last,
            status.committed,
            self.engine().last_applied(),
            self.sequencer.waiting(),
            self.members()
        )
    }

    /// Snapshots written, and gone on from.
    pub(crate) fn snapshot_counts(&self) -> (u64, u64) {
        (self.around.storage.written_count, self.around.installed_count)
    }
}

/// The last entry that a leader has made, decided or not.
fn made(sequencer: &ReplicatedSequencer<Origin>) -> LogIndex {
    LogIndex(sequencer.engine().last_applied().0 + sequencer.waiting() as u64)
}
