//! What surrounds the sequencer of a replica: links, disk threads, participants, market data.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::num::NonZero;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crossbeam_channel::Sender;
use tracing::{error, info, warn};
use walras_config::Addresses;
use walras_consensus::{Members, ReadToken, ReplicaId, Role, RoleChange, SnapshotMeta, Term, Write};
use walras_engine::{Engine, Numbered};
use walras_gateway::session::{ReportSettings, Reports};
use walras_log_store::Disk;
use walras_market_data::{Fills, MarketData};
use walras_peer_link::{Links, SnapshotId};
use walras_ports::{ClusterStatus, Feed, KeyRing, NoOutcome, Outcome, ReleaseSource, SharedCatalog, Status};
use walras_replica::{OrderEntry, Origin, StreamId};
use walras_replica_log::{Note, SnapshotInfo, SnapshotReader, Snapshots};
use walras_sequencer::{AppliedEntry, Host, SolveJob, Unresolved};
use walras_types::{LogIndex, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::{Event, SessionEvent};

use super::barriers::Barriers;
use super::entry_sockets::EntrySockets;
use super::fair::Fair;
use super::storage::{LogJob, SnapshotJob};
use super::traces::Traces;
use super::waiters::Waiters;
use crate::runtime::batches::Solver;
use crate::runtime::engine_thread::Core;
use crate::runtime::frozen::{FrozenState, split_parts};
use crate::runtime::numbered::NumberedWaits;

/// Snapshots that may wait to be written.
const SNAPSHOTS_MAX: usize = 2;

pub(super) struct Surroundings<D: Disk> {
    pub(super) core: Core,
    pub(super) feed: Feed,
    /// Entries at which it published, where that is held; for how long, and how long after their making.
    pub(super) published: Vec<(LogIndex, u64, i64)>,
    pub(super) traces: Traces,
    /// By which market data is released.
    pub(super) release_source: ReleaseSource,
    pub(super) reports: Reports,
    pub(super) links: Links,
    pub(super) entry: OrderEntry,
    /// Where connections come in; `None` for nowhere.
    pub(super) sockets: Option<EntrySockets>,
    /// Those who sent a command over HTTP under no number.
    pub(super) waiters: Waiters,
    /// Those who sent a session's command over HTTP.
    pub(super) numbered: NumberedWaits,
    pub(super) log: Sender<LogJob>,
    pub(super) snapshots: Sender<SnapshotJob>,
    pub(super) store: Snapshots<D>,
    /// What it knows of the cluster's disks.
    pub(super) note: Note<D>,
    /// Snapshots of ours that are being written.
    pub(super) writing: usize,
    /// Snapshots on their way to peers.
    pub(super) sending: BTreeMap<(ReplicaId, SnapshotId), ()>,
    /// Peers to whom a snapshot could not be sent: to be told to the consensus.
    pub(super) not_sent: Vec<ReplicaId>,
    /// Where each replica takes orders over HTTP, for those who ask the wrong one.
    pub(super) addresses: BTreeMap<ReplicaId, Addresses>,
    pub(super) leader: Option<ReplicaId>,
    /// Where the leader takes binary orders, as far as it is known.
    pub(super) leader_entry: Arc<str>,
    pub(super) now_ns: u64,
    pub(super) applied_count: u64,
    pub(super) shared_catalog: SharedCatalog,
    pub(super) status: Status,
    pub(super) cluster: ClusterStatus,
    /// The feeds of those who read along are of another state than is there now: they have to connect anew.
    pub(super) replaced: bool,
    pub(super) solver: Solver,
    /// What participants here send, and where this replica leads what all gateways send, if that is put in the order of stamps.
    pub(super) fair: Option<Fair>,
    pub(super) barriers: Barriers,
    /// That share the work of a block.
    pub(super) threads: NonZero<usize>,
}

/// A state to be written as a snapshot.
fn freeze(engine: &Engine, core: &Core, reports: &Reports) -> FrozenState {
    let (fills, reports) = (core.fills.clone(), reports.clone());
    FrozenState::new(
        engine,
        &core.market,
        vec![Box::new(move |out| fills.snapshot(out)), Box::new(move |out| reports.snapshot(out))],
    )
}

/// Everything that follows from the log, as a snapshot holds it.
pub(super) struct State {
    pub(super) engine: Engine,
    pub(super) core: Core,
    pub(super) reports: Reports,
}

impl State {
    pub(super) fn genesis(settings: ReportSettings, keys: KeyRing) -> Self {
        let engine = Engine::new();
        let core = Core::new(&engine, MarketData::new(), Fills::default(), keys);
        Self { engine, core, reports: Reports::new(settings) }
    }

    pub(super) fn decode(bytes: &[u8], settings: ReportSettings, keys: KeyRing) -> Result<Self, String> {
        let [engine, market, fills, reports] = split_parts(bytes)?;
        let engine = Engine::restore(engine).map_err(|e| e.to_string())?;
        let market = MarketData::restore(market).map_err(|e| e.to_string())?;
        let fills = Fills::restore(fills).map_err(|e| e.to_string())?;
        let reports = Reports::restore(reports, settings).map_err(|e| e.to_string())?;
        let core = Core::new(&engine, market, fills, keys);
        Ok(Self { engine, core, reports })
    }
}

impl<D: Disk> Surroundings<D> {
    fn answer(&mut self, origin: Option<Origin>, engine: &Engine, applied: &AppliedEntry<'_, Origin>) {
        let entry = applied.entry;
        match origin {
            None => {}
            Some(Origin::Waiter(waiter)) => self.waiters.answer(waiter, Ok(outcome(applied))),
            Some(Origin::Opens(stream)) => self.opened(stream, engine, applied.events),
            Some(Origin::OpensElsewhere(opening)) => {
                if let Some(fair) = &mut self.fair {
                    let outcome = open_outcome(engine, applied.events).map(|(session, _)| session);
                    fair.access.on_opened(opening, entry.log_index, outcome);
                }
            }
        }
    }

    /// What a gateway has passed on and the log now holds.
    fn tell_gateway(&mut self, applied: &AppliedEntry<'_, Origin>) {
        if let Some(fair) = &mut self.fair {
            fair.access.on_applied(applied);
        }
    }

    fn opened(&mut self, stream: StreamId, engine: &Engine, events: &[Event]) {
        let Self { entry, reports, now_ns, .. } = self;
        match open_outcome(engine, events) {
            Ok((session, next)) => entry.opened(stream, *now_ns, session, next, reports),
            Err(reason) => entry.not_opened(stream, reason),
        }
    }

    fn tell_session(&mut self, applied: &AppliedEntry<'_, Origin>) {
        let (Some(ordinal), Some(numbered)) = (applied.entry.ordinal, applied.numbered) else { return };
        self.numbered.applied(ordinal, numbered, || outcome(applied));
        match numbered {
            Numbered::Done(answer) => self.entry.answer(ordinal, answer, Some(applied.entry.time)),
            Numbered::Repeated(answer) => self.entry.answer(ordinal, answer, None),
            Numbered::Refused(reason) => self.entry.refused(ordinal, reason),
        }
    }

    fn report(&mut self, log_index: LogIndex, time: TimeNs, events: &[Event]) {
        let Self { reports, entry, .. } = self;
        for event in events {
            reports.on_event(log_index, time, event, |account, report| entry.report(account, report));
            if let Event::Session(SessionEvent::Closed(closed)) = event {
                entry.closed(closed.session);
            }
        }
    }
}

fn outcome(applied: &AppliedEntry<'_, Origin>) -> Outcome {
    Outcome { log_index: applied.entry.log_index, time: applied.entry.time, events: applied.events.to_vec() }
}

/// Which session was opened, and what it begins with; or why none was.
fn open_outcome(engine: &Engine, events: &[Event]) -> Result<(SessionId, SessionSeq), RejectReason> {
    let opened =
        events.iter().find_map(|event| if let Event::Session(SessionEvent::Opened(opened)) = event { Some(opened) } else { None });
    let start = opened.and_then(|opened| engine.session(opened.session).map(|view| (opened.session, view.next)));
    start.ok_or_else(|| {
        let reason = events.iter().find_map(|event| if let Event::Rejected(r) = event { Some(r.reason) } else { None });
        reason.unwrap_or(RejectReason::VenueNotReady)
    })
}

impl<D: Disk> Host<Origin> for Surroundings<D> {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        // The consensus sends again what is lost.
        let _ = self.links.send(to, bytes);
    }

    fn persist(&mut self, write: Write) {
        // A log that is gone shows on its other channel.
        let _ = self.log.send(LogJob::Write(write));
    }

    fn decided(&mut self) {
        self.traces.decided();
    }

    fn applied(&mut self, engine: &Engine, mut applied: AppliedEntry<'_, Origin>) {
        self.traces.applied(applied.entry.ordinal);
        self.applied_count += 1;
        let (log_index, time) = (applied.entry.log_index, applied.entry.time);
        if self.core.on_events(applied.entry, engine, applied.events, engine.changed_levels(), Some(&mut self.feed)) {
            self.shared_catalog.set(self.core.catalog.clone());
        }
        self.tell_session(&applied);
        self.report(log_index, time, applied.events);
        self.tell_gateway(&applied);
        let origin = applied.origin.take();
        self.answer(origin, engine, &applied);
        if let Some(held_ns) = self.feed.on_entry(engine, &mut self.core.market, applied.ahead_ns) {
            self.published.push((log_index, held_ns, self.release_source.ago_ns(time, applied.ahead_ns)));
        }
    }

    fn solve(&mut self, job: SolveJob) {
        self.solver.solve(job);
    }

    fn unresolved(&mut self, origin: Origin, why: Unresolved) {
        match (origin, why) {
            (Origin::Waiter(waiter), Unresolved::Lost { .. }) => {
                self.waiters.answer(waiter, Err(NoOutcome::Refused(RejectReason::NotLeader)));
            }
            (Origin::Waiter(waiter), Unresolved::InDoubt) => {
                self.waiters.answer(waiter, Err(NoOutcome::InDoubt(RejectReason::NotLeader)));
            }
            (Origin::Opens(stream), _) => self.entry.sent_away(stream, &self.leader_entry),
            // Its gateway asks again.
            (Origin::OpensElsewhere(_), _) => {}
        }
    }

    fn snapshot(&mut self, engine: &Engine, meta: SnapshotMeta) {
        if self.writing >= SNAPSHOTS_MAX {
            return;
        }
        self.writing += 1;
        let begun = Instant::now();
        let state = Box::new(freeze(engine, &self.core, &self.reports));
        let _ = self.snapshots.send(SnapshotJob::Write { meta, state, kept_in: begun.elapsed() });
    }

    fn let_go(&mut self, meta: SnapshotMeta) {
        let _ = self.log.send(LogJob::LetGo(meta));
    }

    fn send_snapshot(&mut self, to: ReplicaId, meta: SnapshotMeta, bytes: Vec<u8>) {
        let sent = self.store.read(meta.slot).map_err(|e| e.to_string()).and_then(|reader| {
            let (announcement, total) = (announce(reader.info(), &bytes), reader.info().state_bytes);
            let source = Source { reader, piece: Vec::new(), at: 0 };
            self.links.send_snapshot(to, announcement, total, Box::new(source)).map_err(|e| e.to_string())
        });
        match sent {
            Ok(id) => {
                info!("sending the snapshot of entry {} to replica {to}", meta.log_index);
                self.sending.insert((to, id), ());
            }
            Err(why) => {
                warn!("the snapshot of entry {} could not be sent to replica {to}: {why}", meta.log_index);
                self.not_sent.push(to);
            }
        }
    }

    fn install(&mut self, meta: &SnapshotMeta) -> Result<Engine, String> {
        let bytes = self.store.read(meta.slot).and_then(SnapshotReader::read_all).map_err(|e| e.to_string())?;
        let State { engine, core, reports } = State::decode(&bytes, self.reports.settings(), self.core.keys.clone())?;
        let mut engine = engine;
        engine.set_threads(self.threads);
        info!("going on from the snapshot of entry {}", meta.log_index);
        let archive = self.core.archive.take();
        (self.core, self.reports) = (core, reports);
        self.core.archive = archive;
        if let Some(archive) = &mut self.core.archive {
            archive.start_over(&engine);
        }
        self.shared_catalog.set(self.core.catalog.clone());
        self.feed.begin_from(&engine);
        self.replaced = true;
        self.numbered.lose_all();
        if let Some(fair) = &mut self.fair {
            fair.access.on_installed(&engine);
            self.entry.fail_all();
        }
        Ok(engine)
    }

    fn role(&mut self, change: RoleChange) {
        let was = self.leader;
        self.leader = match change.role {
            Role::Leader => Some(self.cluster.me()),
            Role::Follower { leader } => leader,
            Role::Candidate => None,
        };
        let address = self.leader.and_then(|leader| self.addresses.get(&leader)).map_or("", |known| &known.order_entry);
        self.leader_entry = address.into();
        match change.role {
            Role::Leader => info!("term {}: this replica leads", change.term),
            Role::Follower { leader: Some(leader) } => info!("term {}: replica {leader} leads", change.term),
            Role::Follower { leader: None } => info!("term {}: this replica follows, and knows of no leader yet", change.term),
            Role::Candidate => info!("term {}: this replica stands for election", change.term),
        }
        self.cluster.set_role(change);
        if change.role != Role::Leader {
            self.numbered.lose_all();
        }
        if let Some(fair) = &mut self.fair {
            fair.on_role(change.term, &mut self.waiters);
        } else if was != self.leader && self.leader != Some(self.cluster.me()) {
            self.entry.not_leader(&self.leader_entry);
        }
    }

    fn leading(&mut self, term: Term) {
        info!("term {term}: this replica takes commands");
        self.cluster.set_taking(true);
        if let Some(fair) = &mut self.fair {
            fair.access.on_leading(self.now_ns, term);
        }
    }

    fn members(&mut self, members: &Members) {
        self.cluster.set_members(members.clone());
    }

    fn keep_introductions(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.note.write(bytes).map_err(|e| e.to_string())
    }

    fn read_ready(&mut self, token: ReadToken) {
        self.barriers.reached(token);
    }
}

/// What goes before a snapshot's bytes: what it is, and the message of the consensus that announces it.
fn announce(info: &SnapshotInfo, message: &[u8]) -> Vec<u8> {
    let info = info.encode();
    let mut bytes = u32::try_from(info.len()).expect("an announcement is short").to_le_bytes().to_vec();
    bytes.extend_from_slice(&info);
    bytes.extend_from_slice(message);
    bytes
}

/// Such bytes, taken apart.
pub(super) fn announced(bytes: &bytes::Bytes) -> Option<(SnapshotInfo, bytes::Bytes)> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (info, _) = rest.split_at_checked(len)?;
    Some((SnapshotInfo::decode(info).ok()?, bytes.slice(4 + len..)))
}

/// A snapshot's bytes for a link.
struct Source<F> {
    reader: SnapshotReader<F>,
    piece: Vec<u8>,
    at: usize,
}

impl<F: walras_log_store::DiskFile> Read for Source<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            self.piece.clear();
            self.at = 0;
            if !self.reader.next(&mut self.piece).map_err(io::Error::other)? {
                return Ok(0);
            }
        }
        let len = buffer.len().min(self.piece.len() - self.at);
        buffer[..len].copy_from_slice(&self.piece[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

/// The keys, once they are read.
pub(super) type SharedAccess = Arc<OnceLock<Arc<walras_access::Access>>>;

/// Says that a replica stops, and why.
pub(super) fn tell_halt(why: &str) {
    error!("this replica stops: {why}");
}
