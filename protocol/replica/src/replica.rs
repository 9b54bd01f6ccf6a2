//! The replica: what comes in, what follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::sync::Arc;

use bytes::Bytes;
use walras_consensus::{MemberChange, Members, Recovered, Refused, ReplicaId, SnapshotMeta, Term, Ticket};
use walras_engine::Engine;
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::publications::Publications;
use walras_fair_access::resequence::Stamp;
use walras_feed::publisher::Views;
use walras_gateway::session::{Reports, ServerSettings, VenueKeys};
use walras_gateway::{Principal, Refusal};
use walras_market_data::MarketData;
use walras_sequencer::{
    FairAccess, ForwardSettings, GatewayMessage, GatewayTime, Halt, IntakeSettings, LeaderTime, NotTaken, ReceiverSample,
    ReplicatedSequencer, ReplicatedSettings, SignedBy, Solved, StartHalt,
};
use walras_types::{AccountId, BatchMarketId, DropReason, EngineVersion, LogIndex, RejectReason, SessionId, TimeNs};
use walras_wire::batch::SignedTransaction;
use walras_wire::{BatchCommand, Command, SubmitTransaction, VenueCommand, encode_command};

use crate::effect::{Effect, HandoverReason, WaiterAnswer};
use crate::entry_backend::Backend;
use crate::entry_names::EntryNames;
use crate::feed;
use crate::host::{Publishing, ReplicaHost, SNAPSHOTS_MAX, refuse};
use crate::leaderless::Leaderless;
use crate::leaves::Leaves;
use crate::numbered::NumberedWaiters;
use crate::order_entry::{Charge, EntryBackend, EntryProtocol, OrderEntry};
use crate::order_waits::OrderWaits;
use crate::outcome::{NoOutcome, Number, NumberedOutcome};
use crate::peer_clocks::PeerClocks;
use crate::pending_cancels::PendingCancels;
use crate::probe::Probe;
use crate::reads::{ReadBarriers, Reader};
use crate::state::{Derived, State};
use crate::storage::{Storage, StorageWatch};
use crate::transactions::{Begun, TransactionFrames, VerifyJob, refuse_torn};
use crate::{Origin, StreamId, WaiterId};

/// Connections that are silent are looked for no more often than this.
const ENTRY_LOOK_NS: u64 = 20_000_000;

/// Ticks that may wait for the log while a book goes on with what an earlier entry left: one is applied while the next is written.
const WORK_TICKS_AHEAD: usize = 2;

/// A tick that was not taken is tried again after this.
const WORK_RETRY_NS: u64 = 1_000_000;

/// What a replica is set to.
#[derive(Clone, Debug)]
pub struct ReplicaSettings {
    /// The log and the order of commands.
    pub sequencing: ReplicatedSettings,
    /// Binary order entry.
    pub entry: ServerSettings,
    /// Its keys, made new for each start.
    pub entry_keys: Arc<VenueKeys>,
    /// The gateway's and the leader's parts of fair access; `None` where it is switched off.
    pub fair: Option<(ForwardSettings, IntakeSettings)>,
    /// How market data is published where it is held; `None` where it is not.
    pub publish: Option<PublishSettings>,
    /// The views of the binary feed that are published; `None` where it is off. A venue whose log began without it has none.
    pub feed: Option<Views>,
    /// Gateways that may be linked below this replica. Their ids are no replica's.
    pub leaves: BTreeSet<ReplicaId>,
    /// Where replicas take binary orders.
    pub addresses: BTreeMap<ReplicaId, Arc<str>>,
    /// A leader whose clock differs by more from those of most voters hands over; 0 for never.
    pub clock_error_ns_max: u64,
    /// Where nothing else is logged, a leader logs the time this often.
    pub tick_every_ns: u64,
    /// Threads that share the work of a block.
    pub threads: NonZero<usize>,
    /// A state is kept as a snapshot this often, where anything was logged since; `None` for by the count of entries alone.
    pub snapshot_every_ns: Option<NonZero<u64>>,
}

/// What becomes of the wish for a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptState {
    /// The state after this entry is being written: [`Replica::on_snapshot_written`] follows.
    Begun(LogIndex),
    /// A snapshot that holds all entries up to this one, the last, is durable.
    Known(LogIndex),
    /// As many are being written as may be.
    Busy,
}

/// How market data is published where it is held. The same on all replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishSettings {
    /// From one publication to the next, by the log's time.
    pub every_ns: u64,
    /// The longest that it is held.
    pub delay_ns_max: u64,
}

/// What a replica needs of its disk at once. The rest of what it writes are effects.
pub trait ReplicaDisk {
    /// The state of a snapshot that is durable here.
    ///
    /// # Errors
    /// The disk's, in words.
    fn read_snapshot(&mut self, meta: &SnapshotMeta) -> Result<Vec<u8>, String>;

    /// Makes this durable now, in the place of what was kept before, next to the log. After an error it is called again.
    ///
    /// # Errors
    /// The disk's, in words.
    fn keep_introductions(&mut self, bytes: &[u8]) -> Result<(), String>;
}

/// One replica of a venue. After inputs, say [`round`](Self::round), then carry out what [`take_effects`](Self::take_effects) gives
/// and write what [`next_dirty`](Self::next_dirty) names.
pub struct Replica<P, D> {
    pub(crate) sequencer: ReplicatedSequencer<Origin>,
    pub(crate) host: ReplicaHost<P, D>,
    clocks: PeerClocks,
    /// A clock was read, or it is time to ask.
    clocks_changed: bool,
    clock_error_ns: Option<i128>,
    storage: StorageWatch,
    leaderless: Leaderless,
    peers: BTreeSet<ReplicaId>,
    entry_timeout_ns: u64,
    entry_look_ns: u64,
    tick_every_ns: u64,
    next_tick_ns: u64,
    publish_every_ns: u64,
    next_publish_ns: u64,
    /// No tick for a book that goes on is logged before this.
    next_work_ns: u64,
    snapshot_every_ns: Option<NonZero<u64>>,
    next_snapshot_ns: u64,
    scratch: Vec<u8>,
}

impl<P: Probe, D: ReplicaDisk> Replica<P, D> {
    /// Goes on from what was recovered: `state` is that of its snapshot. Entries that are known to be decided are applied at once.
    /// `seed` should differ from start to start. Say [`go_live`](Self::go_live) before the first input.
    ///
    /// # Errors
    /// What was recovered does not hold together.
    pub fn start(
        at: GatewayTime,
        settings: ReplicaSettings,
        recovered: Recovered,
        state: State,
        seed: u64,
        (probe, disk): (P, D),
    ) -> Result<Self, StartHalt> {
        let ReplicaSettings {
            sequencing,
            entry,
            entry_keys,
            fair,
            publish,
            feed,
            leaves,
            addresses,
            clock_error_ns_max,
            tick_every_ns,
            threads,
            snapshot_every_ns,
        } = settings;
        let (me, peers) = (sequencing.consensus.id, sequencing.peers.clone());
        let State { mut engine, mut derived, reports } = state;
        derived.feed = feed::begin(feed, derived.feed.take(), &engine);
        engine.set_threads(threads);
        let publishing = publish.map(|PublishSettings { every_ns, delay_ns_max }| {
            let publications = Publications::new(every_ns, delay_ns_max);
            let mut publishing = Publishing { publications, last: LogIndex(0), made: Vec::new() };
            publishing.begin_from(&engine);
            publishing
        });
        let mut host = ReplicaHost {
            me,
            probe,
            disk,
            effects: Vec::new(),
            derived,
            reports,
            entry: OrderEntry::new(entry, entry_keys),
            fair: fair.map(|(forwards, intake)| Box::new(FairAccess::new(me, forwards, intake))),
            numbered: NumberedWaiters::default(),
            waits: OrderWaits::default(),
            cancels: PendingCancels::default(),
            reads: ReadBarriers::default(),
            leaves: Leaves::new(leaves),
            publishing,
            feed,
            leader: None,
            term: Term(0),
            transactions: TransactionFrames::default(),
            addresses,
            leader_address: Arc::from(""),
            at,
            writing: 0,
            threads,
            deltas: Vec::new(),
            names: EntryNames::default(),
            is_live: false,
        };
        let known_from = host.publishing.as_ref().map(|publishing| publishing.publications.known_from());
        host.probe.begun(&engine, &host.derived, known_from);
        let sequencer = ReplicatedSequencer::start(at.now_ns, sequencing, recovered, engine, seed, &mut host)?;
        Ok(Self {
            sequencer,
            host,
            clocks: PeerClocks::new(clock_error_ns_max),
            clocks_changed: false,
            clock_error_ns: None,
            storage: StorageWatch::new(),
            leaderless: Leaderless::new(),
            peers,
            entry_timeout_ns: entry.logon_timeout_ns,
            entry_look_ns: u64::MAX,
            tick_every_ns,
            next_tick_ns: at.now_ns.saturating_add(tick_every_ns),
            publish_every_ns: publish.map_or(u64::MAX, |publish| publish.every_ns),
            next_publish_ns: 0,
            next_work_ns: 0,
            snapshot_every_ns,
            next_snapshot_ns: snapshot_every_ns.map_or(u64::MAX, |every_ns| at.now_ns.saturating_add(every_ns.get())),
            scratch: Vec::new(),
        })
    }

    /// What it begins with has been applied: from here on it publishes.
    pub fn go_live(&mut self) {
        self.host.is_live = true;
    }

    /// What follows from the inputs before, and from time: asks, sequences, proposes. `leader_time` reads how far this machine's
    /// clock is ahead of the venue's time, if it is asked to.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn round(&mut self, at: GatewayTime, leader_time: impl FnOnce() -> Option<LeaderTime>) -> Result<(), Halt> {
        self.host.at = at;
        if let Some(token) = self.host.reads.next(at.now_ns) {
            // Where no replica leads it is asked again.
            let _ = self.sequencer.read(token, &mut self.host)?;
        }
        self.host.cancels.round(at, &mut self.sequencer);
        self.release_held(at);
        self.sequencer.drive_batches(at.now_ns, at.now, &mut self.host);
        self.steer_release(at, leader_time);
        self.propose(at)?;
        if at.now_ns >= self.sequencer.next_deadline_ns() {
            self.sequencer.on_timer(at.now_ns, &mut self.host)?;
        }
        self.tick(at)?;
        self.compare_clocks(at)?;
        self.follow_storage(at)?;
        self.follow_leader(at);
        self.replace_idle_leader(at)?;
        if at.now_ns >= self.entry_look_ns.min(self.host.entry.fix_look_ns()) {
            self.host.entry.on_timer(at.now_ns);
            self.entry_look_ns = self.host.entry.deadline_ns().max(at.now_ns.saturating_add(ENTRY_LOOK_NS));
        }
        if let Some(every_ns) = self.snapshot_every_ns
            && at.now_ns >= self.next_snapshot_ns
        {
            self.next_snapshot_ns = at.now_ns.saturating_add(every_ns.get());
            // Where too many are being written, the next one is in time.
            let _ = self.keep_state(at);
        }
        Ok(())
    }

    /// Has the state as it is now written as a snapshot, unless as new a one is durable. What the log holds before two snapshots is
    /// not needed for a start.
    pub fn keep_state(&mut self, at: GatewayTime) -> KeptState {
        self.host.at = at;
        let before = self.host.writing;
        if before >= SNAPSHOTS_MAX {
            return KeptState::Busy;
        }
        self.sequencer.keep_state(&mut self.host);
        let log_index = self.sequencer.engine().last_applied();
        if self.host.writing > before { KeptState::Begun(log_index) } else { KeptState::Known(log_index) }
    }

    /// These are the other replicas from now on, members or not, and where each, this one too, takes binary orders.
    pub fn set_peers(&mut self, at: GatewayTime, peers: BTreeSet<ReplicaId>, addresses: BTreeMap<ReplicaId, Arc<str>>) {
        self.host.at = at;
        self.host.set_addresses(addresses);
        self.sequencer.set_peers(at.now_ns, peers.clone());
        self.peers = peers;
    }

    /// These gateways may be linked from now on; what is known of others is forgotten.
    pub fn set_leaves(&mut self, leaves: BTreeSet<ReplicaId>) {
        self.host.leaves.set_known(leaves);
    }

    /// Counts up whenever [`Replica::leaves_below`] changes.
    #[must_use]
    pub fn leaf_changes(&self) -> u64 {
        self.host.leaves.changes()
    }

    /// The gateways that stand below this replica, with how many sessions each has.
    #[must_use]
    pub fn leaves_below(&self) -> BTreeMap<ReplicaId, usize> {
        self.host.leaves.below()
    }

    /// Whether this is a gateway, and no replica.
    #[must_use]
    pub fn is_leaf(&self, id: ReplicaId) -> bool {
        self.host.leaves.is_one(id)
    }

    /// Receivers of the relay trees report how late market data came to them: the leader holds it longer for them.
    pub fn on_receivers(&mut self, now_ns: u64, samples: &[ReceiverSample]) {
        self.sequencer.on_receivers(now_ns, samples);
    }

    /// All that reached the edge here up to this time, by the venue's clock, has been taken in: what is read from now on counts as having
    /// come later. The host calls it before [`Replica::round`].
    pub fn taken_in(&mut self, at: GatewayTime, until_ns: u64) {
        if let Some(fair) = &mut self.host.fair {
            let own_ns = if at.status == ClockStatus::Good { until_ns } else { u64::MAX };
            // What leaves have stamped is passed on by this replica.
            let until_ns = own_ns.min(self.host.leaves.sent_until_ns());
            fair.taken_in(if until_ns == u64::MAX { Stamp::OnArrival } else { Stamp::Gateway(until_ns) });
        }
    }

    /// Fair access: passes on what came here, takes what is due into the log.
    fn release_held(&mut self, at: GatewayTime) {
        let Self { sequencer, host, .. } = self;
        if let Some(quiet_ns) = host.fair.as_ref().and_then(|fair| fair.promise().quiet_ns(at.now_ns)) {
            host.leaves.wake(at.now_ns, quiet_ns, &mut host.effects);
        }
        let before = made(sequencer);
        let settled = host.with_fair(|fair, participants| fair.settle(at, sequencer, participants));
        if settled.is_some() && sequencer.is_leading() {
            host.probe.released(at, before, made(sequencer));
        }
    }

    /// Reports to the leader how long each publication was on its way; as the leader, follows what others report.
    fn steer_release(&mut self, at: GatewayTime, leader_time: impl FnOnce() -> Option<LeaderTime>) {
        let Self { sequencer, host, .. } = self;
        let mut published = host.publishing.as_mut().map(|publishing| std::mem::take(&mut publishing.made)).unwrap_or_default();
        for (log_index, held_ns, transit_ns) in published.drain(..) {
            sequencer.published(log_index, held_ns, transit_ns, host);
        }
        if let Some(publishing) = &mut host.publishing {
            publishing.made = published;
        }
        if sequencer.is_clock_wanted(at.now_ns) {
            sequencer.report_clock(at.now_ns, leader_time(), host);
        }
        let sequencing_ns = host.fair.as_ref().map_or(0, |fair| fair.delay_ns());
        sequencer.steer_release(at.now_ns, at.now, sequencing_ns);
    }

    fn propose(&mut self, at: GatewayTime) -> Result<(), Halt> {
        self.sequencer.propose(at.now_ns, &mut self.host)?;
        if self.sequencer.is_leading() {
            self.host.probe.proposed(made(&self.sequencer));
        }
        Ok(())
    }

    /// Where nothing else is logged, the time is: so that it goes on, so that the last change of market data is published, and so
    /// that a command that is carried out in steps goes on.
    fn tick(&mut self, at: GatewayTime) -> Result<(), Halt> {
        let mut is_due = at.now_ns >= self.next_tick_ns;
        if is_due {
            self.next_tick_ns = at.now_ns.saturating_add(self.tick_every_ns);
        }
        if at.now_ns >= self.next_publish_ns && self.is_unpublished() {
            self.next_publish_ns = at.now_ns.saturating_add(self.publish_every_ns);
            is_due = true;
        }
        let is_idle = self.sequencer.is_leading() && self.sequencer.waiting() == 0;
        if (is_due && is_idle) || at.now_ns >= self.work_deadline_ns(at) {
            if self.sequencer.submit(at.now, None, &Command::Venue(VenueCommand::Tick), None).is_err() {
                // Another replica leads by now, or the log takes nothing at the moment.
                self.next_work_ns = at.now_ns.saturating_add(WORK_RETRY_NS);
            }
            self.propose(at)?;
        }
        Ok(())
    }

    /// When a tick is to be logged because a book goes on with what an earlier entry left, or a dead man's switch is due, and too few
    /// entries are on their way to it.
    fn work_deadline_ns(&self, at: GatewayTime) -> u64 {
        let sequencer = &self.sequencer;
        if !sequencer.is_leading() || sequencer.waiting() >= WORK_TICKS_AHEAD {
            return u64::MAX;
        }
        if sequencer.engine().has_work() {
            return self.next_work_ns;
        }
        let until = |due: TimeNs| at.now_ns.saturating_add(due.0.saturating_sub(at.now.0));
        sequencer.engine().next_switch().map_or(u64::MAX, |due| until(due).max(self.next_work_ns))
    }

    /// Whether an entry is to be published that no later one does.
    fn is_unpublished(&self) -> bool {
        self.sequencer.is_leading()
            && self.host.publishing.as_ref().is_some_and(|publishing| publishing.last < self.sequencer.engine().last_applied())
    }

    /// A leader whose clock most others find far off does not stamp commands any longer than it must.
    fn compare_clocks(&mut self, at: GatewayTime) -> Result<(), Halt> {
        let Self { sequencer, host, clocks, peers, .. } = self;
        // Alone there is nobody to ask.
        let question = if peers.is_empty() { None } else { clocks.ask(at.now_ns) };
        if let Some(question) = question {
            self.clocks_changed = true;
            host.effects.extend(peers.iter().map(|to| Effect::Send { to: *to, bytes: question.clone() }));
        }
        if !std::mem::take(&mut self.clocks_changed) {
            return Ok(());
        }
        let voters = sequencer.members().voters.clone();
        self.clock_error_ns = clocks.error_ns(voters.iter(), at.now_ns);
        if let Some(error_ns) = self.clock_error_ns
            && sequencer.is_leading()
            && let Some(heir) = clocks.heir(voters.iter(), error_ns, at.now_ns)
        {
            host.effects.push(Effect::HandsOver { to: heir, why: HandoverReason::Clock { error_ns } });
            // Where it is refused it is tried again.
            let _ = sequencer.transfer_to(at.now_ns, heir, host)?;
        }
        Ok(())
    }

    /// While the log cannot be written: no request waits for long, and a leader hands over to a replica that keeps up.
    fn follow_storage(&mut self, at: GatewayTime) -> Result<(), Halt> {
        let Self { sequencer, host, storage, .. } = self;
        if let Some(reason) = storage.gives_up(at.now_ns) {
            sequencer.give_up_waiting(reason, host);
            host.numbered.lose_all(reason, &mut host.effects);
            if host.fair.is_some() && !sequencer.is_leading() {
                // What participants pass on here may be in the log, and this replica cannot answer them.
                host.entry.refuse_all(reason);
                host.leaves.detach_all(None, &mut host.effects);
            }
        }
        if sequencer.is_leading()
            && storage.offers(at.now_ns)
            && let Some(to) = sequencer.heir()
        {
            host.effects.push(Effect::HandsOver { to, why: HandoverReason::Storage });
            // Where it is not taken it is offered again.
            let _ = sequencer.transfer_to(at.now_ns, to, host)?;
        }
        Ok(())
    }

    /// With fair access a replica takes orders whether it leads or not. Where it has known no leader for long, participants should try
    /// another one.
    fn follow_leader(&mut self, at: GatewayTime) {
        let Self { host, leaderless, .. } = self;
        if host.fair.is_some() && leaderless.sends_away(at.now_ns, host.leader.is_some()) {
            host.entry.refuse_all(RejectReason::VenueNotReady);
            host.leaves.detach_all(None, &mut host.effects);
        }
    }

    /// A leader that sets a whole batch market aside, block after block, lets another try.
    fn replace_idle_leader(&mut self, at: GatewayTime) -> Result<(), Halt> {
        let Self { sequencer, host, .. } = self;
        if sequencer.is_leading()
            && let Some(market) = sequencer.take_idle_market()
            && let Some(to) = sequencer.heir()
        {
            host.effects.push(Effect::HandsOver { to, why: HandoverReason::IdleMarket(market) });
            // Where it is refused it is tried again, after twice as many blocks.
            let _ = sequencer.transfer_to(at.now_ns, to, host)?;
        }
        Ok(())
    }

    /// When [`round`](Self::round) has something to do, if nothing comes in before.
    #[must_use]
    pub fn deadline_ns(&self, at: GatewayTime) -> u64 {
        let held_ns = self.host.fair.as_ref().and_then(|fair| fair.wait_ns(at));
        let held_ns = held_ns.map_or(u64::MAX, |wait_ns| at.now_ns.saturating_add(wait_ns));
        let publish_ns = if self.is_unpublished() { self.next_publish_ns } else { u64::MAX };
        let tick_ns = if self.sequencer.is_leading() { self.next_tick_ns } else { u64::MAX };
        let clocks_ns = if self.peers.is_empty() { u64::MAX } else { self.clocks.deadline_ns() };
        let term = self.sequencer.is_leading().then(|| self.sequencer.status().term);
        let due = [
            self.work_deadline_ns(at),
            self.sequencer.next_deadline_ns(),
            self.host.reads.deadline_ns(),
            self.host.cancels.deadline_ns(term),
            clocks_ns,
            self.entry_look_ns.min(self.host.entry.fix_look_ns()),
            self.next_snapshot_ns,
            held_ns,
            publish_ns,
            tick_ns,
            self.storage.deadline_ns(self.sequencer.is_leading()),
            self.leaderless.deadline_ns(),
        ];
        due.into_iter().min().unwrap_or(u64::MAX)
    }

    /// What is to be done, in this order. `effects` should be empty.
    pub fn take_effects(&mut self, effects: &mut Vec<Effect>) {
        std::mem::swap(&mut self.host.effects, effects);
    }

    /// A message of another replica, by its link. One that announces a snapshot comes with it:
    /// [`on_snapshot_received`](Self::on_snapshot_received).
    ///
    /// # Errors
    /// The replica must stop.
    pub fn on_message(&mut self, at: GatewayTime, from: ReplicaId, bytes: Bytes) -> Result<(), Halt> {
        self.host.at = at;
        if self.host.leaves.is_one(from) {
            self.on_leaf_message(at, from, &bytes);
            return Ok(());
        }
        let Self { sequencer, host, clocks, .. } = self;
        if PeerClocks::is_about_clocks(&bytes) {
            self.clocks_changed = true;
            if let Some(bytes) = clocks.take(from, &bytes, at.now_ns, at.now) {
                host.effects.push(Effect::Send { to: from, bytes });
            }
            if let (Some((from, round_trip_ns)), Some(fair)) = (clocks.take_round_trip(), &mut host.fair) {
                fair.on_round_trip(from, round_trip_ns);
            }
            return Ok(());
        }
        if GatewayMessage::is_one(&bytes) {
            host.with_fair(|fair, participants| fair.on_message(at, from, &bytes, sequencer, participants));
            return Ok(());
        }
        match sequencer.announced_snapshot(&bytes) {
            None => sequencer.on_message(at.now_ns, from, bytes, host),
            Some(_) => Ok(()),
        }
    }

    /// A snapshot came from another replica and is durable here; `message` announces it.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn on_snapshot_received(&mut self, at: GatewayTime, from: ReplicaId, message: Bytes) -> Result<(), Halt> {
        self.host.at = at;
        self.sequencer.on_message(at.now_ns, from, message, &mut self.host)
    }

    /// A link with another replica is up, again perhaps.
    pub fn on_linked(&mut self, at: GatewayTime, peer: ReplicaId) {
        self.host.at = at;
        if self.host.leaves.is_one(peer) {
            return self.host.leaves.forget(peer);
        }
        self.sequencer.on_linked(at.now_ns, peer);
        if let Some(fair) = &mut self.host.fair {
            fair.on_linked(peer);
        }
    }

    /// What a linked replica's program knows: the newest version of the engine; `None` once the link is gone.
    pub fn note_program(&mut self, peer: ReplicaId, newest: Option<EngineVersion>) {
        if !self.host.leaves.is_one(peer) {
            self.sequencer.note_program(peer, newest);
        }
    }

    /// A link was closed from its other end, or broke: the process there may have ended.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn on_link_lost(&mut self, at: GatewayTime, peer: ReplicaId) -> Result<(), Halt> {
        self.host.at = at;
        if self.host.leaves.is_one(peer) {
            self.host.leaves.forget(peer);
            return Ok(());
        }
        if let Some(fair) = &mut self.host.fair {
            fair.on_link_lost(peer);
        }
        self.sequencer.on_link_lost(at.now_ns, peer, &mut self.host)
    }

    /// Messages for a replica are not delivered, for whatever other reason.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn on_unreachable(&mut self, at: GatewayTime, peer: ReplicaId) -> Result<(), Halt> {
        self.host.at = at;
        if self.host.leaves.is_one(peer) {
            self.host.leaves.forget(peer);
            return Ok(());
        }
        if let Some(fair) = &mut self.host.fair {
            fair.on_link_lost(peer);
        }
        self.sequencer.on_unreachable(peer, &mut self.host)
    }

    /// The write with this ticket, and all before it, are durable.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn on_persisted(&mut self, at: GatewayTime, ticket: Ticket) -> Result<(), Halt> {
        self.host.at = at;
        self.sequencer.on_persisted(ticket, &mut self.host)
    }

    /// The log cannot be written now, or can be again: whenever that changes, after what it means for writes was reported. While it
    /// cannot, commands and logons are refused, and what waits is soon answered: its outcome is unknown.
    pub fn on_storage(&mut self, at: GatewayTime, storage: Storage) {
        self.host.at = at;
        self.storage.on_storage(at.now_ns, storage);
        self.sequencer.refuse(storage.refusal());
        if let Some(fair) = &mut self.host.fair {
            fair.refuse(storage.refusal());
        }
        if self.is_refusing() && !self.is_alone() {
            // Another replica may take what they send.
            self.host.leaves.detach_all(None, &mut self.host.effects);
        }
    }

    /// Whether its log cannot be written now.
    pub(crate) fn is_refusing(&self) -> bool {
        self.storage.is_refusing()
    }

    /// Whether there is no other replica.
    pub(crate) fn is_alone(&self) -> bool {
        self.peers.is_empty()
    }

    /// A state that was to be written has this hash.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn on_state_hashed(&mut self, at: GatewayTime, log_index: LogIndex, hash: [u8; 32]) -> Result<(), Halt> {
        self.host.at = at;
        self.sequencer.on_state_hashed(log_index, hash, &mut self.host)
    }

    /// A state that was to be written is durable under its name; or it is not, which costs only that the log keeps what it would
    /// have replaced.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn on_snapshot_written(&mut self, at: GatewayTime, written: Option<&SnapshotMeta>) -> Result<(), Halt> {
        self.host.at = at;
        self.host.writing = self.host.writing.saturating_sub(1);
        written.map_or(Ok(()), |meta| self.sequencer.on_snapshot_durable(meta, &mut self.host))
    }

    /// How sending a snapshot ended: whether it is durable there and its message was handed over.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn on_snapshot_sent(&mut self, at: GatewayTime, to: ReplicaId, arrived: Result<(), ()>) -> Result<(), Halt> {
        self.host.at = at;
        self.sequencer.on_snapshot_sent(to, arrived, &mut self.host)
    }

    /// What came of a batch that was to be solved.
    pub fn on_solved(&mut self, at: GatewayTime, solved: Solved) {
        self.sequencer.on_solved(at.now_ns, at.now, solved);
    }

    /// A command of no session. One that was signed by itself comes with its nonce, and an operator's with the name of its key. Where
    /// a waiter is named it is answered, once.
    pub fn submit(&mut self, at: GatewayTime, command: Command, signed: SignedBy, waiter: Option<WaiterId>) {
        self.host.at = at;
        let signed = signed.by_the_clocks(self.sequencer.engine().time(), at.now);
        let origin = waiter.map(Origin::Waiter);
        if let Some(fair) = &mut self.host.fair
            && command.is_order()
            && self.sequencer.is_leading()
        {
            if let Some(waiter) = waiter {
                self.host.waits.requested(waiter, at.time_ns);
            }
            return fair.submit_alone(at, signed, command, origin);
        }
        let taken = self.sequencer.submit_signed(at.now, &signed, &command, origin);
        if let Err((why, Some(origin))) = taken {
            let reason = match why {
                NotTaken::NotLeader { .. } => RejectReason::NotLeader,
                NotTaken::Refused(reason) => reason,
                NotTaken::Repeated(_) | NotTaken::OnItsWay => unreachable!("it has no ordinal"),
            };
            refuse(origin, reason, &mut self.host.effects);
        }
    }

    /// A session's command that came otherwise than over its connection: only the leader takes it, which knows whose sessions there
    /// are.
    pub fn submit_numbered(&mut self, at: GatewayTime, number: Number, command: &Command, waiter: WaiterId) {
        self.host.at = at;
        let Self { sequencer, host, scratch, .. } = self;
        let known = if sequencer.is_leading() { number.known(sequencer.engine()) } else { Err(RejectReason::NotLeader) };
        let taken = match (known, &mut host.fair) {
            (Err(reason), _) => Err(NotTaken::Refused(reason)),
            (Ok(Some(answer)), _) => Err(NotTaken::Repeated(answer)),
            (Ok(None), Some(fair)) => {
                scratch.clear();
                encode_command(command, scratch);
                fair.submit(at, sequencer.engine(), number.ordinal, scratch)
            }
            (Ok(None), None) => sequencer.submit(at.now, Some(number.ordinal), command, None).map_err(|(why, _)| why),
        };
        let outcome = match taken {
            Ok(()) | Err(NotTaken::OnItsWay) => return host.numbered.wait(number, waiter),
            Err(NotTaken::Repeated(answer)) => answer.to(number.content).map(NumberedOutcome::Repeated).map_err(NoOutcome::Refused),
            Err(NotTaken::NotLeader { .. }) => Err(NoOutcome::Refused(RejectReason::NotLeader)),
            Err(NotTaken::Refused(reason)) => Err(NoOutcome::Refused(reason)),
        };
        host.effects.push(Effect::Answer { waiter, answer: WaiterAnswer::Numbered(outcome) });
    }

    /// A client that is connected otherwise than over binary order entry is lost, and wanted the orders of its account cancelled then.
    /// The session is one that its account opens again before it orders again: that drops what still waits.
    pub fn cancel_behind(&mut self, at: GatewayTime, session: SessionId, account: AccountId) {
        self.with_entry(at, |_, backend| backend.cancel_behind(Some(session), account));
    }

    /// Answers a waiter once the state here has all that was acknowledged anywhere before now.
    pub fn read(&mut self, waiter: WaiterId) {
        self.host.reads.wait(Reader::Waiter(waiter));
    }

    /// These wait no more for a session's command or for a read.
    pub fn give_up(&mut self, gone: &BTreeSet<WaiterId>) {
        self.host.numbered.give_up(gone);
        self.host.reads.give_up(gone);
    }

    /// Hands leadership to another voter; whether that was begun.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn transfer_to(&mut self, at: GatewayTime, to: ReplicaId) -> Result<Result<(), Refused>, Halt> {
        self.host.at = at;
        self.sequencer.transfer_to(at.now_ns, to, &mut self.host)
    }

    /// Changes who belongs to the cluster; whether that was begun. [`Effect::Members`] says when it is done.
    ///
    /// # Errors
    /// The replica must stop.
    pub fn change_members(&mut self, at: GatewayTime, changes: &[MemberChange]) -> Result<Result<(), Refused>, Halt> {
        self.host.at = at;
        self.sequencer.change_members(changes, &mut self.host)
    }

    /// A client has connected to order entry. Its place must be free.
    pub fn on_connected(&mut self, at: GatewayTime, stream: StreamId, protocol: EntryProtocol) {
        self.host.entry.follow_instruments(self.sequencer.engine());
        self.host.entry.accept(stream, at, protocol);
        self.entry_look_ns = self.entry_look_ns.min(at.now_ns.saturating_add(self.entry_timeout_ns));
    }

    /// Bytes of a client came, cut anywhere: the stamps of commands that come at once are the same. `charge` says whether a key may
    /// send one more command. Afterwards ask order entry for logons ([`OrderEntry::next_logon`]).
    pub fn on_bytes(&mut self, at: GatewayTime, stream: StreamId, bytes: &[u8], charge: &mut Charge<'_>) {
        self.with_entry(at, |entry, backend| entry.on_bytes(stream, bytes, charge, backend));
        let Self { sequencer, host, .. } = self;
        while let Some((stream, frame)) = host.entry.next_transactions() {
            let refusal = (!sequencer.is_leading()).then_some(RejectReason::NotLeader);
            match host.transactions.begin(stream, frame, refusal) {
                Begun::Verify(job) => host.effects.push(Effect::Verify(job)),
                Begun::Done(outcome) => host.entry.transactions_done(stream, &outcome),
            }
        }
    }

    /// Which of these transactions are signed as they must be, and why the others are not.
    pub fn on_verified(&mut self, at: GatewayTime, job: VerifyJob, verdicts: &[Result<(), RejectReason>]) {
        self.host.at = at;
        let VerifyJob { frame, market, transactions, places } = job;
        let check = |(index, signed): (usize, &SignedTransaction)| {
            let verdict = verdicts.get(index).copied().unwrap_or(Err(RejectReason::VenueNotReady));
            verdict.and_then(|()| self.check_transaction(market, signed))
        };
        let mut checked: Vec<_> = transactions.iter().enumerate().map(check).collect();
        refuse_torn(&transactions, &mut checked);
        for ((place, signed), checked) in places.into_iter().zip(&transactions).zip(checked) {
            let taken = checked.and_then(|()| self.submit_transaction(at, market, signed, Origin::Transaction { frame, place }));
            if let Err(reason) = taken {
                self.host.settle_transaction(frame, place, Err(reason));
            }
        }
    }

    /// Whether a batch may keep a transaction, as far as it can be known before the batch is closed.
    fn check_transaction(&self, market: BatchMarketId, signed: &SignedTransaction) -> Result<(), RejectReason> {
        let engine = self.sequencer.engine();
        if !engine.knows_transaction(&signed.transaction) {
            return Err(RejectReason::NeedsLaterVersion);
        }
        engine.check_transaction(market, &signed.transaction).map_err(DropReason::refusal)?;
        self.host.derived.market.offers().admits(&signed.transaction)
    }

    fn submit_transaction(
        &mut self,
        at: GatewayTime,
        market: BatchMarketId,
        signed: &SignedTransaction,
        origin: Origin,
    ) -> Result<(), RejectReason> {
        let submit = SubmitTransaction::new(market, signed).map_err(|_| RejectReason::Malformed)?;
        let command = Command::Batch(BatchCommand::Submit(submit));
        let taken = self.sequencer.submit(at.now, None, &command, Some(origin));
        taken.map_err(|(why, _)| match why {
            NotTaken::Refused(reason) => reason,
            NotTaken::NotLeader { .. } | NotTaken::Repeated(_) | NotTaken::OnItsWay => RejectReason::NotLeader,
        })
    }

    /// The verdict on a logon.
    pub fn on_authenticated(&mut self, at: GatewayTime, stream: StreamId, verdict: Result<Principal, Refusal>) {
        self.with_entry(at, |entry, backend| entry.on_authenticated(stream, verdict, backend));
    }

    /// A client closed its connection, or it broke: the connection is gone.
    pub fn on_disconnected(&mut self, at: GatewayTime, stream: StreamId) {
        self.with_entry(at, |entry, backend| entry.on_lost(stream, backend));
    }

    /// The next connection that has something to write or is over, each once: see [`OrderEntry::output`] and
    /// [`OrderEntry::is_over`].
    pub fn next_dirty(&mut self, at: GatewayTime) -> Option<StreamId> {
        if !self.host.entry.is_dirty() {
            return None;
        }
        self.with_entry(at, |entry, backend| entry.next_dirty(backend))
    }

    fn with_entry<R>(&mut self, at: GatewayTime, act: impl FnOnce(&mut OrderEntry, &mut Backend<'_, P>) -> R) -> R {
        self.host.at = at;
        let Self { sequencer, host, .. } = self;
        let ReplicaHost { entry, fair, cancels, leader_address, probe, .. } = host;
        let at = fair.as_ref().map_or(at, |fair| fair.promise().keep(at));
        act(entry, &mut Backend { sequencer, fair: fair.as_deref_mut(), cancels, at, came: at, leader: leader_address, probe })
    }

    /// Whether [`reported`](Self::reported) has something to note.
    #[must_use]
    pub fn has_unreported(&self) -> bool {
        self.host.waits.has_unreported()
    }

    /// All answers and reports of what was applied before are on their way to participants.
    pub fn reported(&mut self, at: GatewayTime) {
        self.host.waits.reported(at.time_ns);
    }

    /// The connections of binary order entry.
    #[must_use]
    pub fn entry(&self) -> &OrderEntry {
        &self.host.entry
    }

    /// The same, to write what they have to say.
    pub fn entry_mut(&mut self) -> &mut OrderEntry {
        &mut self.host.entry
    }

    /// The observer.
    #[must_use]
    pub fn probe(&self) -> &P {
        &self.host.probe
    }

    /// The observer, and the state that it may look at; what changed since the last publication is taken from market data.
    pub fn observe(&mut self) -> (&mut P, &Engine, &mut Derived) {
        (&mut self.host.probe, self.sequencer.engine(), &mut self.host.derived)
    }

    /// The same, with each account's reports, and where the orders waited that came in here.
    pub fn observe_all(&mut self) -> (&mut P, &Engine, &mut Derived, &Reports, &OrderWaits) {
        let ReplicaHost { probe, derived, reports, waits, .. } = &mut self.host;
        (probe, self.sequencer.engine(), derived, reports, waits)
    }

    /// The state after the last entry applied.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        self.sequencer.engine()
    }

    /// What is published of it.
    #[must_use]
    pub fn market(&self) -> &MarketData {
        &self.host.derived.market
    }

    /// Each account's reports.
    #[must_use]
    pub fn reports(&self) -> &Reports {
        &self.host.reports
    }

    /// Where the orders waited that came in here.
    #[must_use]
    pub fn waits(&self) -> &OrderWaits {
        &self.host.waits
    }

    /// The sequencer, to look at.
    #[must_use]
    pub fn sequencer(&self) -> &ReplicatedSequencer<Origin> {
        &self.sequencer
    }

    /// Fair access, to look at; `None` where it is switched off.
    #[must_use]
    pub fn fair(&self) -> Option<&FairAccess<Origin>> {
        self.host.fair.as_deref()
    }

    /// How far the clocks of most voters are ahead of this machine's, if that is too far.
    #[must_use]
    pub fn clock_error_ns(&self) -> Option<i128> {
        self.clock_error_ns
    }

    /// Who belongs to the cluster.
    #[must_use]
    pub fn members(&self) -> &Members {
        self.sequencer.members()
    }
}

/// The last entry that a leader has made, decided or not.
fn made(sequencer: &ReplicatedSequencer<Origin>) -> LogIndex {
    LogIndex(sequencer.engine().last_applied().0 + sequencer.waiting() as u64)
}
