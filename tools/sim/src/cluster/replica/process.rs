//! The process: the product's replica, and in place of its driver's threads, sockets and links a few timers and queues.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZero;

use bytes::Bytes;
use walras_consensus::{
    Durability, MemberChange, Members, ReadToken, ReplicaId, Role, RoleChange, Slot, SlotEntry, SnapshotMeta, Term, Ticket,
};
use walras_engine::{BatchMarketView, Engine};
use walras_feed::publisher::Publisher;
use walras_gateway::{AuthFields, Gateway, KeyId, KeyRecord, Permission, Request, SourceId};
use walras_market_data::MarketData;
use walras_replica::{Effect, FeedPiece, NoOutcome, Number, Replica, ReplicaDisk, WaiterAnswer, WaiterId};
use walras_replica_log::{Attempt, Incoming, IncomingId, Note, SnapshotInfo, SnapshotReader, Snapshots, Trouble};
use walras_sequencer::{Arrivals, BlockJob, GatewayMessage, GatewayTime, Halt, ReceiverSample, SignedBy, SolveJob, WAITED_NS_MAX};
use walras_testkit::Readers;
use walras_types::{AccountId, Answer, EngineVersion, LogIndex, RejectReason};
use walras_wire::order_entry::ByeReason;
use walras_wire::{Command, VenueCommand, decode_command};

use super::moment::Moment;
use super::storage::{LogJob, Storage};
use super::streams::Streams;
use super::watch::{Taken, Watch};
use super::{REQUESTS_FROM, SIGNED_FROM, StreamId, batches, fair, protocol_of};
use crate::cluster::fix::planted::without_resent_reports;
use crate::cluster::frames;
use crate::cluster::mutation::Mutation;
use crate::cluster::signed_order::{METHOD, PATH, Signed};
use crate::cluster::tempo::Density;
use crate::common::batches::solve;
use crate::common::disk::VenueDisk;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicaTimer {
    /// Something is due by [`Process::deadline_ns`].
    Deadline,
    /// Where memory counts, the log's thread has written.
    Written,
    /// The log's thread has synced, or failed to.
    Synced,
    /// After a failure the log's thread tries again.
    LogAgain,
    /// The snapshots' thread has written a state, or failed to.
    SnapshotWritten,
    /// A segment is prepared.
    Upkeep,
    /// Somebody sends transactions of a batch market.
    Batch,
    /// A closed batch is solved.
    Solved,
    /// A thread is done with a block's work.
    Worked,
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
    /// What came of the command that was submitted under this number.
    CommandDone(u64, Disposition),
    /// A request of the program that has no connection is answered.
    Requested(u64, WaiterAnswer),
    /// A leader whose clock is far off most others' hands over.
    HandsOver(ReplicaId),
    /// An entry of the binary feed.
    Feed(Box<FeedPiece>),
    /// Later entries of the binary feed follow this state.
    FeedBegins(Box<Publisher>),
}

/// What came of a command that somebody of one of several shards has submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
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
const SOLVE_NS: u64 = 4_000_000;

/// How long a thread takes for a block's work: about as long as the log takes for some entries, so that entries come to need what
/// is not done yet.
const BLOCK_WORK_NS: u64 = 1_000_000;

pub(crate) struct Process {
    replica: Replica<Watch, Disk>,
    pub(super) storage: Storage,
    /// Checks logons, and how often a key sends.
    gateway: Gateway,
    /// Checks requests that are signed by themselves.
    signed_gateway: Gateway,
    /// For [`Mutation::ReplayTwice`]: the last such order in the log that it began from.
    pub(super) last_signed: Option<Command>,
    /// For [`Mutation::StaleState`]: the last state that was to be written.
    last_state: Vec<u8>,
    streams: Streams,
    arrivals: Arrivals,
    /// The stamp of what each connection sent last.
    arrived_last_ns: BTreeMap<StreamId, u64>,
    /// Snapshots that come.
    incoming: Incoming<VenueDisk>,
    /// Closed batches that a solver is at, oldest first.
    solving: VecDeque<SolveJob>,
    /// What another thread does of blocks, oldest first.
    working: VecDeque<BlockJob>,
    /// The last vote that it wrote down.
    vote: Option<(Term, ReplicaId)>,
    /// Attempts to write the log that failed, and failures that passed.
    disk_failed_count: u64,
    disk_recovered_count: u64,
    me: ReplicaId,
    density: Density,
    /// Whether orders are merged by watermarks.
    merges: bool,
    mutation: Option<Mutation>,
    /// With relays of the binary feed: how many states of others were taken over when its feed began last.
    feed_begun: Option<u64>,
    now: GatewayTime,
    effects: Vec<Effect>,
    out: Vec<Out>,
}

type Done = Result<(), Stop>;

/// What a replica reads and writes at once.
pub(super) struct Disk {
    pub(super) snapshots: Snapshots<VenueDisk>,
    pub(super) note: Note<VenueDisk>,
}

impl ReplicaDisk for Disk {
    fn read_snapshot(&mut self, meta: &SnapshotMeta) -> Result<Vec<u8>, String> {
        self.snapshots.read(meta.slot).and_then(SnapshotReader::read_all).map_err(|e| e.to_string())
    }

    fn keep_introductions(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.note.write(bytes).map_err(|e| e.to_string())
    }
}

impl Process {
    pub(super) fn new(
        (me, at): (ReplicaId, Moment),
        replica: Replica<Watch, Disk>,
        (storage, [gateway, signed_gateway]): (Storage, [Gateway; 2]),
        density: Density,
        merges: bool,
        mutation: Option<Mutation>,
    ) -> Self {
        Self {
            replica,
            storage,
            gateway,
            signed_gateway,
            last_signed: None,
            last_state: Vec::new(),
            streams: Streams::default(),
            arrivals: Arrivals::default(),
            arrived_last_ns: BTreeMap::new(),
            incoming: Incoming::new(),
            solving: VecDeque::new(),
            working: VecDeque::new(),
            vote: None,
            disk_failed_count: 0,
            disk_recovered_count: 0,
            me,
            density,
            merges,
            mutation,
            feed_begun: None,
            now: at.time(),
            effects: Vec::new(),
            out: Vec::new(),
        }
    }

    /// The first things that it does.
    pub(crate) fn begin(&mut self, at: Moment) -> Done {
        self.out.push(Out::Timer { after_ns: self.density.batch_pause_ns, timer: ReplicaTimer::Batch });
        self.settle(at)
    }

    /// From now on it gives out what it publishes in the binary feed.
    pub(crate) fn gives_feed(&mut self) {
        let (watch, _, derived) = self.replica.observe();
        self.feed_begun = Some(watch.installed_count);
        self.out.extend(derived.feed.clone().map(|publisher| Out::FeedBegins(Box::new(publisher))));
    }

    /// If it went on from another replica's state, its feed does, too.
    fn follow_state(&mut self) {
        let (watch, _, derived) = self.replica.observe();
        if self.feed_begun.is_some_and(|begun| begun != watch.installed_count) {
            self.feed_begun = Some(watch.installed_count);
            self.out.extend(derived.feed.clone().map(|publisher| Out::FeedBegins(Box::new(publisher))));
        }
    }

    /// Before anything happens.
    pub(crate) fn at(&mut self, at: Moment) {
        self.now = at.time();
        let watch = self.replica.observe().0;
        watch.at = at;
        if self.merges {
            watch.checks.borrow_mut().on_input(self.me);
        }
    }

    pub(crate) fn on_message(&mut self, at: Moment, from: ReplicaId, bytes: Bytes) -> Done {
        // A replica that does not lead drops orders.
        let heard = if self.replica.fair().is_some() && self.is_leading() && GatewayMessage::is_one(&bytes) {
            fair::heard(bytes, (self.me, from), at.time(), &self.replica.probe().checks, self.mutation)
        } else {
            Some(bytes)
        };
        heard.map_or(Ok(()), |bytes| Ok(self.replica.on_message(at.time(), from, bytes)?))
    }

    /// A message of a leaf gateway.
    pub(crate) fn on_leaf_message(&mut self, at: Moment, from: ReplicaId, bytes: Bytes) -> Done {
        if self.merges {
            self.replica.probe().checks.borrow_mut().on_leaf_message(self.me, from, &bytes);
        }
        Ok(self.replica.on_message(at.time(), from, bytes)?)
    }

    pub(crate) fn on_linked(&mut self, at: Moment, peer: ReplicaId) -> Done {
        self.replica.on_linked(at.time(), peer);
        Ok(())
    }

    pub(crate) fn on_unreachable(&mut self, peer: ReplicaId) -> Done {
        Ok(self.replica.on_unreachable(self.now, peer)?)
    }

    pub(crate) fn on_link_lost(&mut self, at: Moment, peer: ReplicaId) -> Done {
        self.replica.probe().checks.borrow_mut().on_leaf_lost(self.me, peer);
        Ok(self.replica.on_link_lost(at.time(), peer)?)
    }

    /// Receivers of the relay tree say how late market data came to them.
    pub(crate) fn on_receivers(&mut self, at: Moment, samples: &[ReceiverSample]) {
        self.replica.on_receivers(at.time().now_ns, samples);
    }

    pub(crate) fn on_timer(&mut self, at: Moment, timer: ReplicaTimer) -> Done {
        let Self { replica, storage, density, out, .. } = self;
        let now = at.time();
        match timer {
            // What is due is done in the round.
            ReplicaTimer::Deadline => {}
            ReplicaTimer::Written => {
                storage.is_writing = false;
                let attempt = storage.hand_over(at.now_ns);
                if let Some(ticket) = self.on_attempt(at, attempt)? {
                    self.replica.on_persisted(now, ticket)?;
                    if self.storage.syncing.replace(ticket).is_none() {
                        self.out.push(Out::Timer { after_ns: MEMORY_SYNC_NS * at.slow, timer: ReplicaTimer::Synced });
                    }
                }
            }
            ReplicaTimer::Synced => {
                let attempt = storage.end_sync(at.now_ns);
                if storage.upkeep.is_some() {
                    out.push(Out::Timer { after_ns: UPKEEP_NS * at.slow, timer: ReplicaTimer::Upkeep });
                }
                let ticket = self.on_attempt(at, attempt)?;
                if let Some(ticket) = ticket.filter(|_| self.mutation != Some(Mutation::PersistedBeforeSync)) {
                    self.replica.on_persisted(now, ticket)?;
                }
                self.storage.remove_old();
            }
            // What there is to write is written in the round.
            ReplicaTimer::LogAgain => storage.is_retrying = false,
            ReplicaTimer::SnapshotWritten => {
                if let Some((log_index, hash)) = storage.hash_state() {
                    replica.on_state_hashed(now, log_index, hash)?;
                }
                let written = storage.write_state();
                replica.on_snapshot_written(now, written.as_ref())?;
            }
            ReplicaTimer::Upkeep => storage.keep_up(),
            ReplicaTimer::Batch => {
                out.push(Out::Timer { after_ns: density.batch_pause_ns, timer: ReplicaTimer::Batch });
                if replica.sequencer().is_leading() {
                    let framed = self.mutation.is_none_or(Mutation::is_of_wide_repertoires).then_some(frames::ACCOUNT);
                    for command in batches::commands(replica.engine(), at, density.batch_interval_ns, framed) {
                        // What is not taken is not missed.
                        replica.submit(now, command, SignedBy::NOBODY, None);
                    }
                }
            }
            ReplicaTimer::Worked => {
                if let Some(job) = self.working.pop_front() {
                    job.run(NonZero::<usize>::MIN);
                }
            }
            ReplicaTimer::Solved => {
                if let Some(job) = self.solving.pop_front() {
                    replica.on_solved(now, solve(&job));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn accept(&mut self, stream: StreamId, client: usize) {
        let id = self.streams.accept(stream, client);
        self.replica.on_connected(self.now, id, protocol_of(client));
    }

    /// Bytes of a client are read that have lain in the socket for so long.
    pub(crate) fn on_bytes(&mut self, at: Moment, stream: StreamId, waited_ns: u64, bytes: &[u8]) {
        let Some((id, source)) = self.streams.of(stream) else { return };
        let now = self.arrived(at, stream, waited_ns);
        let Self { replica, gateway, .. } = self;
        let clock_ns = at.clock_ns;
        replica
            .on_bytes(now, id, bytes, &mut |principal, permission, from| gateway.charge(clock_ns, principal, permission, from, 1));
        while let Some((id, logon)) = replica.entry_mut().next_logon() {
            let verdict = logon.authorize(gateway, clock_ns, source);
            replica.on_authenticated(now, id, verdict);
        }
        self.replica.observe().0.arrived_ns = u64::MAX;
        self.plant(now);
    }

    /// When what is read now counts as having come. The kernel stamps it where orders are in the order of stamps.
    fn arrived(&mut self, at: Moment, stream: StreamId, waited_ns: u64) -> GatewayTime {
        let now = at.time();
        if self.replica.fair().is_none() {
            return now;
        }
        let stamped_ns = now.time_ns.saturating_sub(waited_ns) / at.grain_ns * at.grain_ns;
        let last_ns = self.arrived_last_ns.entry(stream).or_default();
        let arrived_ns = stamped_ns.max(*last_ns).max(now.time_ns.saturating_sub(WAITED_NS_MAX));
        // If the clock was set back, what comes counts as later than what was promised.
        let came = GatewayTime { time_ns: arrived_ns, ..now };
        let arrived_ns = self.replica.fair().map_or(arrived_ns, |fair| fair.promise().keep(came).time_ns);
        self.replica.observe().0.arrived_ns = arrived_ns;
        let waited_ns = (self.mutation != Some(Mutation::StampWhenRead)).then(|| now.time_ns - stamped_ns);
        self.arrivals.at(now, waited_ns, last_ns)
    }

    /// The last entry that it has made, if it leads.
    fn made(&self) -> LogIndex {
        let sequencer = self.replica.sequencer();
        LogIndex(sequencer.engine().last_applied().0 + sequencer.waiting() as u64)
    }

    /// What planted faults do with commands that came in just now.
    fn plant(&mut self, now: GatewayTime) {
        let taken = std::mem::take(&mut self.replica.observe().0.taken);
        let made = self.made().0;
        let count = taken.len() as u64;
        for (behind, one) in (1..=count).rev().zip(taken) {
            match one {
                Taken::Early(ordinal, content) => {
                    let log_index = LogIndex(made + 1 - behind);
                    self.replica.entry_mut().answer(ordinal, Answer { log_index, rejected: None, content }, None);
                }
                Taken::Unnumbered(bytes) => {
                    let command = decode_command(&bytes).expect("it was decoded before");
                    self.replica.submit(now, command, SignedBy::NOBODY, None);
                }
            }
        }
    }

    /// A connection ends; `cancels` names the account whose open orders the client, who was logged on, wanted cancelled then.
    pub(crate) fn on_stream_end(&mut self, at: Moment, stream: StreamId, cancels: Option<AccountId>) {
        if let Some((id, _)) = self.streams.of(stream) {
            let is_open = !self.replica.entry().is_over(id);
            if let Some(account) = cancels.filter(|_| self.is_leading() && is_open) {
                self.replica.probe().checks.borrow_mut().on_lost(self.me, account, self.made());
            }
            if self.mutation == Some(Mutation::KeepOnDisconnect) {
                self.replica.entry_mut().bye(id, ByeReason::ShuttingDown, "");
            }
            self.replica.on_disconnected(at.time(), id);
            self.arrived_last_ns.remove(&stream);
            self.streams.remove(stream);
        }
    }

    /// A snapshot begins to come.
    pub(crate) fn begin_snapshot(&mut self, id: IncomingId, info: &SnapshotInfo) {
        let writer = match self.mutation {
            // Whatever comes of it counts as all of it.
            Some(Mutation::TakeHalfASnapshot) => self.storage.snapshots.begin(info.meta.clone()),
            _ => self.storage.snapshots.receive(info.clone()),
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
        if self.mutation == Some(Mutation::TakeHalfASnapshot) {
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
        self.replica.on_snapshot_received(at.time(), id.from, message)?;
        Ok(true)
    }

    pub(crate) fn snapshot_sent(&mut self, to: ReplicaId, arrived: bool) -> Done {
        if self.mutation == Some(Mutation::ForgetSnapshotSent) {
            return Ok(());
        }
        let arrived = if arrived { Ok(()) } else { Err(()) };
        Ok(self.replica.on_snapshot_sent(self.now, to, arrived)?)
    }

    /// Hands leadership over; whether that was begun.
    pub(crate) fn transfer_to(&mut self, at: Moment, to: ReplicaId) -> Result<bool, Stop> {
        Ok(self.replica.transfer_to(at.time(), to)?.is_ok())
    }

    /// Changes the members, by a joint configuration where there are several changes; whether that was begun.
    pub(crate) fn change_members(&mut self, changes: &[MemberChange]) -> Result<bool, Stop> {
        Ok(self.replica.change_members(self.now, changes)?.is_ok())
    }

    /// Goes to a later version of the engine where it leads, with programs that know it everywhere; whether that was begun.
    pub(crate) fn go_to_version(
        &mut self,
        at: Moment,
        version: EngineVersion,
        programs: &[(ReplicaId, Option<EngineVersion>)],
    ) -> bool {
        programs.iter().for_each(|(peer, newest)| self.replica.note_program(*peer, *newest));
        if !self.is_leading() || self.replica.sequencer().check_engine_version(version).is_err() {
            return false;
        }
        let command = Command::Venue(VenueCommand::SetEngineVersion(version));
        self.replica.submit(at.time(), command, SignedBy::NOBODY, None);
        true
    }

    /// Asks to read. [`Out::ReadReady`] says when the state has come far enough.
    pub(crate) fn read(&mut self, token: ReadToken) {
        if self.mutation == Some(Mutation::ReadAtOnce) {
            self.out.push(Out::ReadReady(token));
        } else {
            self.replica.read(WaiterId(token.0));
        }
    }

    /// Submits a command of no session; whether it was taken. [`Out::CommandDone`] says what came of it.
    pub(crate) fn submit(&mut self, at: Moment, command: &Command, number: u64) -> bool {
        let is_leading = self.is_leading();
        if is_leading {
            self.replica.submit(at.time(), *command, SignedBy::NOBODY, Some(WaiterId(number)));
        }
        is_leading
    }

    /// Submits a session's command that came over no connection. [`Out::Requested`] says what came of it.
    pub(crate) fn submit_numbered(&mut self, at: Moment, number: Number, command: &Command, request: u64) {
        self.replica.submit_numbered(at.time(), number, command, WaiterId(request));
    }

    /// An order that is signed by itself, as over HTTP. [`Out::Requested`] says what came of it, where that is waited for.
    pub(crate) fn submit_signed(&mut self, at: Moment, signed: &Signed, request: Option<u64>) {
        let now = at.time();
        match self.admit_signed(at, signed) {
            Ok((command, by)) => {
                if self.mutation == Some(Mutation::SubmitTwice) {
                    self.replica.submit(now, command, SignedBy::NOBODY, None);
                }
                self.replica.submit(now, command, by, request.map(WaiterId));
            }
            Err(reason) => {
                let answer = WaiterAnswer::Command(Err(NoOutcome::Refused(reason)));
                self.out.extend(request.map(|request| Out::Requested(request, answer)));
            }
        }
    }

    /// The process learns a key.
    pub(crate) fn add_key(&mut self, record: KeyRecord) {
        self.gateway.add_key(record).expect("a key has an id of its own");
    }

    /// A key was revoked.
    pub(crate) fn remove_key(&mut self, key_id: KeyId) {
        self.gateway.remove_key(key_id);
    }

    /// Whether the key of a request is known; `None` where it is refused for something else.
    pub(crate) fn try_key(&mut self, at: Moment, request: &Request<'_>, fields: &AuthFields) -> Option<bool> {
        let source = SourceId::of([127, 0, 0, 2].into());
        match self.gateway.authorize(at.clock_ns, source, request, Some(fields), Permission::Trade) {
            Ok(_) => Some(true),
            Err(refusal) if refusal.reason == RejectReason::UnknownKey => Some(false),
            Err(_) => None,
        }
    }

    fn admit_signed(&mut self, at: Moment, Signed { fields, body }: &Signed) -> Result<(Command, SignedBy), RejectReason> {
        let command = decode_command(body).map_err(|_| RejectReason::Malformed)?;
        let source = SourceId::of([127, 0, 0, 1].into());
        let signed = Request { method: METHOD, path: PATH, body };
        let admitted = self.signed_gateway.authorize_command(at.clock_ns, source, &signed, Some(fields), Permission::Trade);
        let (principal, mut nonce) = admitted.map_err(|refusal| refusal.reason)?;
        if command.account() != principal.account() {
            return Err(RejectReason::Forbidden);
        }
        let by = match self.mutation {
            Some(Mutation::ForgetNonces | Mutation::TakeStampsFromStart) => SignedBy::NOBODY,
            mutation => {
                if mutation == Some(Mutation::NoncesOfOneTerm) {
                    let term = self.replica.sequencer().status().term;
                    nonce.fingerprint.0[0] ^= term.0.to_le_bytes()[0];
                }
                SignedBy { key: None, nonce: Some(Box::new(nonce)) }
            }
        };
        Ok((command, by))
    }

    /// What the rest of a round does, whatever came in: the replica's round, then what follows from it.
    pub(crate) fn settle(&mut self, at: Moment) -> Done {
        self.carry_out(at)?;
        if self.mutation == Some(Mutation::ReplayTwice)
            && self.is_leading()
            && let Some(command) = self.last_signed.take()
        {
            self.replica.submit(at.time(), command, SignedBy::NOBODY, None);
        }
        let mutation = self.mutation;
        if self.merges {
            self.replica.taken_in(at.time(), fair::taken_in_ns(at));
        }
        self.replica.round(at.time(), || at.leader_time(mutation))?;
        self.carry_out(at)?;
        self.write(at)?;
        self.carry_out(at)?;
        let Watch { releases, checks, .. } = self.replica.observe().0;
        if let Some(releases) = releases {
            releases.release(at, &mut checks.borrow_mut());
        }
        self.flush(at);
        // What was written to nobody any more may have ended a session.
        self.carry_out(at)?;
        self.follow_state();
        Ok(())
    }

    /// Does what the replica wants to happen, as far as it is done here.
    fn carry_out(&mut self, at: Moment) -> Done {
        loop {
            let mut effects = std::mem::take(&mut self.effects);
            self.replica.take_effects(&mut effects);
            if effects.is_empty() {
                self.effects = effects;
                return Ok(());
            }
            for effect in effects.drain(..) {
                self.carry_out_one(at, effect)?;
            }
            self.effects = effects;
        }
    }

    fn carry_out_one(&mut self, at: Moment, effect: Effect) -> Done {
        match effect {
            Effect::Send { to, bytes } => {
                let checks = &self.replica.probe().checks;
                let bytes = if self.merges { fair::sent(bytes, (self.me, to), at, checks, self.mutation) } else { bytes };
                self.out.push(Out::Send { to, bytes });
            }
            Effect::Persist(mut write) => {
                let vote = write.hard_state.vote.map(|vote| (write.hard_state.term, vote));
                if vote != self.vote && vote.is_some_and(|(_, vote)| vote != self.me) {
                    self.out.push(Out::Voted);
                }
                self.vote = vote;
                if self.mutation == Some(Mutation::CommitNotPersisted) {
                    write.hard_state.commit = Slot(0);
                }
                self.storage.jobs.push_back(LogJob::Write(write));
            }
            Effect::Snapshot { meta, state } => {
                let mut bytes = state.encode();
                if self.mutation == Some(Mutation::StaleState) {
                    let stale = std::mem::replace(&mut self.last_state, bytes.clone());
                    bytes = if stale.is_empty() { bytes } else { stale };
                }
                self.storage.take_state(meta, bytes);
                self.out.push(Out::Timer { after_ns: SNAPSHOT_NS * at.slow, timer: ReplicaTimer::SnapshotWritten });
            }
            Effect::LetGo(meta) => self.storage.jobs.push_back(LogJob::LetGo(meta)),
            Effect::SendSnapshot { to, meta, message } => {
                let info = self.storage.snapshots.list().into_iter().find(|info| info.meta == meta);
                match (info, self.storage.read(meta.slot)) {
                    (Some(info), Ok(state)) => self.out.push(Out::SendSnapshot { to, info, state, message }),
                    _ => self.replica.on_snapshot_sent(at.time(), to, Err(()))?,
                }
            }
            // Signatures are no part of the simulation.
            Effect::Verify(job) => {
                let verdicts = vec![Ok(()); job.transactions.len()];
                self.replica.on_verified(at.time(), job, &verdicts);
            }
            Effect::Run(job) => {
                self.working.push_back(job);
                self.out.push(Out::Timer { after_ns: BLOCK_WORK_NS * at.slow, timer: ReplicaTimer::Worked });
            }
            Effect::Solve(job) => {
                self.solving.push_back(job);
                self.out.push(Out::Timer { after_ns: SOLVE_NS * at.slow, timer: ReplicaTimer::Solved });
            }
            Effect::Answer { waiter: WaiterId(request), answer: WaiterAnswer::Command(Err(NoOutcome::InDoubt(reason))) }
                if request >= SIGNED_FROM && self.mutation == Some(Mutation::RefuseInDoubt) =>
            {
                self.out.push(Out::Requested(request, WaiterAnswer::Command(Err(NoOutcome::Refused(reason)))));
            }
            Effect::Answer { waiter: WaiterId(request), answer } if request >= REQUESTS_FROM => {
                self.out.push(Out::Requested(request, answer));
            }
            Effect::Answer { waiter: WaiterId(number), answer } => match answer {
                WaiterAnswer::Command(Ok(outcome)) => {
                    self.out.push(Out::CommandDone(number, Disposition::Done(outcome.rejected())))
                }
                WaiterAnswer::Command(Err(_)) => self.out.push(Out::CommandDone(number, Disposition::Unknown)),
                WaiterAnswer::Read => self.out.push(Out::ReadReady(ReadToken(number))),
                WaiterAnswer::Numbered(_) => unreachable!("no command has a number without a session"),
            },
            Effect::Role(change) => self.out.push(Out::Role(change)),
            Effect::Members(members) => self.out.push(Out::Members(members)),
            // By FIX, replicas may turn one message into different commands: a replace depends on what has traded by then.
            Effect::CopiesDiffer { gateway, ordinal } => {
                let is_of_fix = self.replica.probe().checks.borrow().is_of_fix(ordinal.session);
                assert!(is_of_fix, "clients send the same again, and {ordinal:?} came by {gateway} with something else");
            }
            Effect::HandsOver { to, .. } => self.out.push(Out::HandsOver(to)),
            Effect::Publish(piece) => self.out.extend(self.feed_begun.map(|_| Out::Feed(Box::new(piece)))),
            Effect::Leading(_) => {}
        }
        Ok(())
    }

    /// Writes to clients what there is.
    fn flush(&mut self, at: Moment) {
        let Self { replica, streams, out, .. } = self;
        while let Some(id) = replica.next_dirty(at.time()) {
            let entry = replica.entry_mut();
            let (mut bytes, ends) = (entry.output(id).to_vec(), entry.is_over(id));
            entry.consume(id, bytes.len());
            if self.mutation == Some(Mutation::FixSkipsResent) && bytes.starts_with(b"8=FIX") {
                bytes = without_resent_reports(&bytes);
            }
            let stream = StreamId(id.serial);
            if ends {
                entry.remove(id);
                streams.remove(stream);
            }
            if ends || !bytes.is_empty() {
                out.push(Out::Stream { stream, bytes, ends });
            }
        }
        // Why a connection ended is of no interest here.
        while replica.entry_mut().next_end().is_some() {}
        replica.reported(at.time());
    }

    fn write(&mut self, at: Moment) -> Done {
        let Self { storage, out, .. } = self;
        if storage.is_retrying {
            return Ok(());
        }
        if storage.durability == Durability::Memory {
            let waits = !storage.jobs.is_empty() || storage.log.next_attempt_ns().is_some() && storage.syncing.is_none();
            if waits && !std::mem::replace(&mut storage.is_writing, true) {
                out.push(Out::Timer { after_ns: WRITE_NS * at.slow, timer: ReplicaTimer::Written });
            }
            return Ok(());
        }
        if storage.syncing.is_some() || !storage.has_work() {
            return Ok(());
        }
        let attempt = storage.hand_over(at.now_ns);
        let Some(ticket) = self.on_attempt(at, attempt)? else { return Ok(()) };
        self.storage.syncing = Some(ticket);
        self.out.push(Out::Timer { after_ns: SYNC_NS * at.slow, timer: ReplicaTimer::Synced });
        if self.mutation == Some(Mutation::PersistedBeforeSync) {
            self.replica.on_persisted(at.time(), ticket)?;
        }
        Ok(())
    }

    /// What came of an attempt to write the log; the last ticket of what was written.
    fn on_attempt(&mut self, at: Moment, attempt: Attempt) -> Result<Option<Ticket>, Stop> {
        let Self { replica, storage, out, .. } = self;
        match attempt {
            Attempt::Done { ticket, was_failing } => {
                if was_failing {
                    self.disk_recovered_count += 1;
                    replica.on_storage(at.time(), walras_replica::Storage::Ok);
                }
                return Ok(Some(ticket));
            }
            Attempt::Paused => {}
            Attempt::Failed(failure) => {
                self.disk_failed_count += 1;
                match self.mutation {
                    Some(Mutation::IgnoreFailedSync) => return Ok(Some(storage.log.taken())),
                    Some(Mutation::NeverReopen) => {
                        storage.is_retrying = true;
                        return Ok(None);
                    }
                    _ => {}
                }
                let trouble = match failure.trouble() {
                    Trouble::Disk => walras_replica::Storage::Full,
                    Trouble::Descriptors => walras_replica::Storage::NoDescriptors,
                };
                replica.on_storage(at.time(), trouble);
            }
            Attempt::Lost(error) => return Err(Stop::disk(error)),
        }
        if let Some(again_ns) = storage.log.next_attempt_ns()
            && !std::mem::replace(&mut storage.is_retrying, true)
        {
            let after_ns = again_ns.saturating_sub(at.now_ns).max(1);
            out.push(Out::Timer { after_ns, timer: ReplicaTimer::LogAgain });
        }
        Ok(None)
    }

    /// Ends in good order.
    pub(crate) fn stop(self) -> Result<(), String> {
        let Self { storage, incoming, .. } = self;
        drop(incoming);
        storage.close()
    }

    /// When [`ReplicaTimer::Deadline`] has something to do.
    pub(crate) fn deadline_ns(&self) -> u64 {
        let Watch { releases, at, .. } = self.replica.probe();
        let released_ns = releases.as_ref().and_then(|releases| releases.wait_ns(*at));
        let released_ns = released_ns.map_or(u64::MAX, |wait_ns| self.now.now_ns.saturating_add(wait_ns));
        self.replica.deadline_ns(self.now).min(released_ns)
    }

    /// What it wants to happen, into an empty list.
    pub(crate) fn take_out(&mut self, outs: &mut Vec<Out>) {
        std::mem::swap(&mut self.out, outs);
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.replica.engine()
    }

    /// Its market data, and who reads it.
    pub(crate) fn market(&self) -> (&MarketData, Option<&Readers>) {
        (self.replica.market(), self.replica.probe().readers.as_ref())
    }

    pub(crate) fn members(&self) -> &Members {
        self.replica.sequencer().members()
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
        self.replica.sequencer().is_settled()
    }

    pub(crate) fn is_leading(&self) -> bool {
        self.replica.sequencer().is_leading()
    }

    pub(crate) fn is_following_or_leading(&self) -> bool {
        self.replica.sequencer().leader().is_some()
    }

    /// What its log holds in slots that are decided.
    pub(crate) fn decided_slots(&self) -> Result<Vec<SlotEntry>, String> {
        let Some(log) = self.storage.log.log() else { return Ok(Vec::new()) };
        let held = log.slots();
        let end = held.end.min(self.replica.sequencer().status().committed.next());
        let mut entries = Vec::new();
        // What waits to be written may replace what is there.
        if held.start >= end || self.storage.has_work() {
            return Ok(entries);
        }
        let mut reader = log.read_slots(held.start..end).map_err(|e| e.to_string())?;
        while let Some(entry) = reader.next().map_err(|e| e.to_string())? {
            entries.push(entry);
        }
        Ok(entries)
    }

    pub(crate) fn describe(&self) -> String {
        let status = self.replica.sequencer().status();
        let role = match status.role {
            Role::Leader => "leads".to_owned(),
            Role::Candidate => "stands".to_owned(),
            Role::Follower { leader } => format!("follows {leader:?}"),
        };
        let fair = self.replica.fair().map_or_else(String::new, |fair| {
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
            self.replica.sequencer().waiting(),
            self.members()
        )
    }

    /// Attempts to write the log that failed, and failures that passed while it ran.
    pub(crate) fn disk_counts(&self) -> (u64, u64) {
        (self.disk_failed_count, self.disk_recovered_count)
    }

    /// Snapshots written, and gone on from.
    pub(crate) fn snapshot_counts(&self) -> (u64, u64) {
        (self.storage.written_count, self.replica.probe().installed_count)
    }
}
