//! Start and stop of a replica: its log and newest snapshot, then the threads.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{bounded, unbounded};
use mio::Poll;
use tokio::sync::watch;
use tracing::{info, warn};
use walras_access::Clock;
use walras_config::{ClusterOptions, Config, FeedOptions};
use walras_consensus::{Members, ReplicaId, Slot};
use walras_engine::versions::NEWEST;
use walras_entry_port::{EntryClock, EntryTls, PortKind, SharedAccess};
use walras_feed::publisher::{Publisher, Views};
use walras_fix_orders::FixSettings;
use walras_gateway::session::{ReportSettings, ServerSettings, VenueKeys};
use walras_log_reader::refill;
use walras_log_store::{Disk, RealDisk};
use walras_ports::{
    ClusterStatus, Doorbell, Feed, HoldStatus, KeyRing, Progress, Queues, ReleaseSource, Request, SharedCatalog, Signatures,
    Stages, Status, VenueHandle, VenueParts, WholeRequests,
};
use walras_replica::{PublishSettings, Replica, ReplicaSettings, State};
use walras_replica_log::{Identity, Note, Opened, Options, ReplicaLog, Stop};
use walras_sequencer::{DiskId, ForwardSettings, Halt, IntakeSettings, Introductions, ReplicatedSettings};
use walras_terminal::progress::while_waiting;

use super::alarm::Alarm;
use super::feed_sender::FeedSender;
use super::feeds::{Feeds, Freezing};
use super::keys::{self, KeyShare};
use super::log_host::LogHost;
use super::log_seat::LogSeat;
use super::peer_links::{LinkBasis, PeerLinks};
use super::reload::{order_entries, peer_views};
use super::snapshot_transfer::ReplicaFiles;
use super::snapshots::SnapshotThread;
use super::times::Times;
use super::traces::Traces;
use super::verifying::Verifying;
use super::waiters::Waiters;
use super::{ALARM, DOORBELL, ENTRY_TOKENS, LINK_TOKENS, ReplicaThread, Stopping};
use crate::program::engine_newest;
use crate::runtime::archive;
use crate::runtime::batches::{BlockThread, Declared, Solver};
use crate::runtime::entry_ports::{self, EntryPorts};
use crate::runtime::fair_clock::FairClock;
use crate::runtime::fix_market_data::{self, FixMarketData};
use crate::runtime::listeners::Listeners;
use crate::runtime::recovery::{Recovered, RecoveryError, log_options, spawn};

/// Longest that a start waits until a venue that is alone takes commands.
const LEADS_WITHIN: Duration = Duration::from_secs(2);

/// Reads and subscriptions that may wait for the replica's thread.
const REQUESTS_MAX: usize = 4096;

/// A replica that goes on from what its disk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedLoss {
    /// Which.
    pub replica: ReplicaId,
    /// The last slot that it holds.
    pub last_slot: Slot,
    /// Whether it had not stopped in good order.
    pub had_crashed: bool,
}

/// Lets a replica that did not stop in good order start again under durability "memory": closed in good order, its log promises
/// what it holds and no more. What was acknowledged and is on no disk is lost with it, so this is for the end of a majority, with
/// all replicas stopped.
///
/// # Errors
/// A log that can not be opened, or one that is no replica's.
pub fn accept_loss(config: &Config, cluster: ClusterOptions) -> Result<AcceptedLoss, RecoveryError> {
    let refused = RecoveryError::Replica;
    let dir = PathBuf::from(&config.venue.data).join("replica");
    if !dir.is_dir() {
        return Err(refused(format!("{} holds no replica: check venue.data, and call this where the replica ran", dir.display())));
    }
    let consensus = cluster.consensus;
    let identity = Identity { cluster_id: consensus.cluster_id, replica: consensus.id, genesis: cluster.genesis };
    let options = Options { log: log_options(config), ..Options::default() };
    let opened = ReplicaLog::open(RealDisk, &dir, identity, options).map_err(|e| refused(e.to_string()))?;
    let last_slot = Slot(opened.log.slots().end.0.saturating_sub(1));
    opened.log.close().map_err(|e| refused(e.to_string()))?;
    Ok(AcceptedLoss { replica: consensus.id, last_slot, had_crashed: opened.report.stop == Stop::Crash })
}

/// A log of a version that had another kind of log for a venue on one machine.
fn refuse_old_log(data: &Path, dir: &Path) -> Result<(), RecoveryError> {
    if dir.exists() || !data.join("log").exists() {
        return Ok(());
    }
    Err(RecoveryError::Replica(format!(
        "{0} holds a log of an earlier version of this program: `walras log import {0}` makes one of this version of it, and \
         keeps the old one; \
         or give another folder (venue.data)",
        data.display()
    )))
}

/// What the folder knows of the cluster's disks, before its log is opened or made.
fn introduce<D: Disk>(
    disk: &D,
    dir: &Path,
    me: ReplicaId,
    (genesis, has_peers): (&Members, bool),
) -> Result<(Note<D>, Introductions), RecoveryError> {
    let note = Note::of_log(disk.clone(), dir);
    let refused = |e: std::io::Error| {
        RecoveryError::Replica(format!(
            "what is kept in {}/note can not be read: {e}; restore the folder from a backup, or add the replica anew",
            dir.display()
        ))
    };
    let (kept, has_log) = (note.read().map_err(refused)?, note.has_log().map_err(refused)?);
    if kept.is_none() && !has_log && has_peers && genesis.voters.iter().eq([&me]) {
        // It would lead at once, and take orders while the others may hold the venue's log.
        return Err(RecoveryError::Replica(format!(
            "{} is empty, and the configuration lists other replicas of a cluster that replica {me} began alone: for a new venue \
             start without \
             cluster.peers, then add them and reload (SIGHUP); where the folder was lost, remove replica {me} from the cluster \
             (walras cluster \
             remove) and add one under a new id with an empty folder (walras cluster add)",
            dir.display()
        )));
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let place = format!("{}:{}", host.trim(), std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf()).display());
    let number = DiskId::of_random(walras_access::random_u64());
    let introductions = Introductions::at_start(kept.as_deref(), has_log, me, genesis.voters.clone(), number, &place)
        .map_err(|e| RecoveryError::Replica(e.to_string()))?;
    let bytes = introductions.encode();
    // The folder is not locked yet: what another process may have written since must not be undone.
    if kept.as_deref() != Some(&bytes[..]) {
        note.write(&bytes).map_err(|e| {
            RecoveryError::Replica(format!(
                "{}/note can not be written: {e}; check the folder's permissions and the disk",
                dir.display()
            ))
        })?;
    }
    Ok((note, introductions))
}

/// A running replica.
#[derive(Debug)]
pub struct ReplicaVenue {
    pub(in crate::runtime) handle: VenueHandle,
    pub(in crate::runtime) recovered: Recovered,
    /// With whom the cluster began.
    pub(super) genesis: Members,
    /// What order entry shows, if it speaks TLS.
    pub(super) entry_tls: Option<EntryTls>,
    pub(super) data: PathBuf,
    cluster: ClusterStatus,
    order_entry: Option<SocketAddr>,
    fix: Option<SocketAddr>,
    fix_market_data: Option<FixMarketData>,
    access: SharedAccess,
    thread: JoinHandle<Option<Halt>>,
    others: Vec<JoinHandle<()>>,
    archive: Option<walras_archive::Service>,
    /// Its sender goes with the thread.
    ended: watch::Receiver<()>,
}

impl ReplicaVenue {
    /// Recovers from the data folder, or begins anew, and starts the threads.
    pub fn start_on<D: Disk>(
        disk: D,
        data: &Path,
        clock: &Clock,
        config: &Config,
        cluster: ClusterOptions,
    ) -> Result<Self, RecoveryError> {
        let ClusterOptions {
            mut consensus,
            genesis,
            addresses,
            links,
            order_entry,
            fix,
            fix_market_data,
            fair_access,
            clock_source,
            doors,
            snapshot_every,
            release,
            clock_error_ns_max,
            faults_allowed,
        } = cluster;
        let begun = Instant::now();
        let (me, cluster_id, durability) = (consensus.id, consensus.cluster_id, consensus.durability);
        let identity = Identity { cluster_id, replica: me, genesis: genesis.clone() };
        let dir: PathBuf = data.join("replica");
        refuse_old_log(data, &dir)?;
        let others: BTreeSet<ReplicaId> = addresses.keys().copied().filter(|id| *id != me).collect();
        let options = Options { log: log_options(config), ..Options::default() };
        // What collects while the disk is busy may fill a pack, and a pack is one record of the log.
        consensus.pack_bytes_max = consensus.pack_bytes_max.min(options.pack_bytes_max());
        let (note, introductions) = introduce(&disk, &dir, me, (&genesis, !others.is_empty()))?;
        let refill = refill::refill_of_replica(disk.clone(), dir.clone());
        let opened = while_waiting("opening the log", || ReplicaLog::open(disk, &dir, identity, options));
        let Opened { log, snapshots: store, recovered, state, report } = opened?;
        report.damaged_snapshots.iter().for_each(|path| warn!("the snapshot {} is damaged", path.display()));
        // One that never took part has promised nothing.
        if introductions.is_settled() && !report.has_all_promises(durability) {
            return Err(RecoveryError::Replica(format!(
                "replica {me} did not stop in good order, and with durability \"memory\" it may have lost what it promised: \
                 remove it from the cluster (walras cluster remove), then add it again under a new id and with an empty folder \
                 (walras cluster add); if a majority died at once, see docs/cluster.md, \"When a majority died\""
            )));
        }
        // Not before the folder is ours alone: whatever a replica before this one took, it took before this moment.
        let status = Status::new(&config.venue.name, clock.now());
        let reports = ReportSettings::default();
        let fault = |detail: String| RecoveryError::Snapshot { index: recovered.snapshot.log_index, detail };
        let ((keys, key_changes), threads) = (KeyRing::new(), config.engine.threads());
        let mut state = match state {
            None => State::genesis(reports),
            Some(bytes) => while_waiting("restoring the newest snapshot", || State::decode(&bytes, reports).map_err(fault))?,
        };
        let mut listeners = Listeners::new(&state.engine, keys);
        state.engine.set_threads(threads);
        while_waiting("preparing the batch markets", || state.engine.prepare_batches());
        let snapshot_index = recovered.snapshot.log_index;
        let archive = archive::open(config, refill);
        if let Some(service) = &archive.service {
            let catch_up = || refill::recorder_of_replica(service, &state.engine, &log, recovered.snapshot.slot, &store);
            let recorder = while_waiting("bringing the archive up to date", catch_up)?;
            listeners.archive = Some(recorder);
        }

        let poll = Poll::new().map_err(RecoveryError::Thread)?;
        let doorbell = Doorbell::new(poll.registry(), DOORBELL).map_err(RecoveryError::Thread)?;
        let seed = walras_access::random_u64();
        let basis = LinkBasis { me, cluster_id, incarnation: clock.now().0, seed, faults_allowed };
        let registry = poll.registry().try_clone().map_err(RecoveryError::Thread)?;
        let peers = peer_views(&addresses, links.as_ref());
        let leaves = links.as_ref().map(|links| links.gateways.clone()).unwrap_or_default();
        let links = PeerLinks::new(basis, registry, LINK_TOKENS, links).map_err(|e| RecoveryError::Replica(e.to_string()))?;
        let access: SharedAccess = Arc::new(OnceLock::new());
        let (tokens, inside) = ((poll.registry(), ENTRY_TOKENS), (doors.clone(), doorbell.clone()));
        let EntryPorts { sockets, shown, sealing } =
            entry_ports::open(tokens, (order_entry.as_ref(), fix.as_ref()), data, Arc::clone(&access), inside)?;
        let market_data_port = match fix_market_data {
            None => None,
            Some(options) => {
                Some(fix_market_data::Port::open(&options, shown.as_ref(), data, (Arc::clone(&access), doors.clone()))?)
            }
        };
        let shown = shown.or_else(|| market_data_port.as_ref().and_then(fix_market_data::Port::tls));
        let alarm = Alarm::new(poll.registry(), ALARM).map_err(RecoveryError::Thread)?;
        let fair_clock = fair_access.map(|options| FairClock::new(options.clock, clock_source.clone(), clock.clone()));
        status.set_fair_access(fair_clock.is_some() || release.is_some());
        let (entry_address, fix_address) = (sockets.address(PortKind::Binary), sockets.address(PortKind::Fix));

        let cluster = ClusterStatus::new(cluster_id, me, recovered.snapshot.members.clone(), peers, engine_newest());
        cluster.set_leaves(&leaves);
        let shared_catalog = SharedCatalog::default();
        shared_catalog.set(listeners.catalog.clone());
        let flush_every = Duration::from_micros(1_000_000 / config.websocket.updates_per_second);
        let stages = Stages::default();
        // Market data is released by the clock that stamps orders, or would.
        let venue_clock = clock_source.filter(|_| config.fair_access.clock == "configured");
        let release_source = ReleaseSource::new(clock.clone(), venue_clock);
        let held = HoldStatus::new(release_source.clone(), stages.clone());
        let mut feed = match release {
            None => Feed::new(status.clone(), held.clone()).map_err(RecoveryError::Thread)?,
            Some(_) => Feed::holding(status.clone(), held.clone()).map_err(RecoveryError::Thread)?,
        };
        feed.prime(&state.derived.market);
        if !feed.is_holding() {
            status.show(Progress::of(&state.engine, &state.derived.market));
        }
        let (snapshots_in, snapshot_jobs) = unbounded();
        let (snapshots_done_in, snapshots_done) = unbounded();
        let (commands_in, commands) = bounded(config.log.queue_entries);
        let (requests_in, requests) = bounded(REQUESTS_MAX);
        let writer = super::writer_of(&recovered.snapshot.members);
        let (log, log_thread) = LogSeat::new(LogHost::new(log, durability), writer, doorbell.clone());
        let (store_of_thread, store_of_replica) = (store.clone(), store.clone());
        let snapshot_thread = SnapshotThread { store, jobs: snapshot_jobs, done: snapshots_done_in, doorbell: doorbell.clone() };
        // The log's thread first: what starts below may have something to write.
        let (news_in, news) = unbounded();
        let learns = Arc::clone(&access);
        let threads_beside = vec![
            spawn("log", move || log_thread.run())?,
            spawn("snapshot", move || snapshot_thread.run())?,
            spawn("keys", move || keys::learn(&learns, &news))?,
        ];
        let sequencing = ReplicatedSettings {
            waiting_max: config.log.queue_entries,
            checkpoint_every: snapshot_every,
            engine_newest: engine_newest(),
            engine_at_start: Some(NEWEST),
            release,
            introductions: Some(introductions),
            peers: others,
            ..ReplicatedSettings::new(consensus)
        };
        let digest_key = walras_access::random_u64();
        let fair = fair_access.map(|options| {
            let forwards = ForwardSettings { watermark_ns: options.watermark_ns, ..ForwardSettings::default() };
            (forwards, IntakeSettings { digest_key, ..options.intake })
        });
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let publish = release.map(|_| PublishSettings {
            every_ns: nanoseconds(flush_every),
            delay_ns_max: config.fair_access.release_max_us.saturating_mul(1_000),
        });
        let feed_options = config.feed_options().map_err(|e| RecoveryError::Replica(e.to_string()))?;
        let settings = ReplicaSettings {
            sequencing,
            entry: ServerSettings { sealing, ..ServerSettings::default() },
            entry_keys: Arc::new(VenueKeys::new(&walras_access::random_bytes())),
            fair,
            publish,
            feed: feed_options.as_ref().map(|_| Views::ALL),
            leaves,
            addresses: order_entries(&addresses),
            clock_error_ns_max,
            tick_every_ns: nanoseconds(Duration::from_millis(config.log.tick_interval_ms)),
            threads,
            snapshot_every_ns: NonZero::new(config.log.snapshot_every_seconds.saturating_mul(1_000_000_000)),
        };
        let feeds = Feeds {
            listeners,
            feed,
            traces: Traces::new(stages.clone()),
            release_source: release_source.clone(),
            shared_catalog: shared_catalog.clone(),
            applied_count: 0,
            is_unsent: false,
            is_unshown: false,
            is_replaced: false,
            freezing: Freezing::Took(Duration::ZERO),
        };
        let mut times = Times { host: clock.clone(), fair: fair_clock };
        let (at, files) = (times.at(0), ReplicaFiles { store: store_of_replica, note, is_note_failing: false });
        let start = || Replica::start(at, settings, recovered, state, seed, (feeds, files));
        let mut replica = while_waiting("replaying the log", start).map_err(|e| RecoveryError::Replica(e.to_string()))?;
        if let Some(fix) = &fix {
            replica.entry_mut().set_fix(FixSettings::of(&fix.comp_id));
        }
        replica.go_live();
        let (Feeds { listeners, feed, .. }, engine, derived) = replica.observe();
        let feed_sender = feed_options.map(|options| begin_feed(&options, derived.feed.as_ref())).transpose()?;
        feed.go_live(engine, &derived.market);
        if let Some(recorder) = &mut listeners.archive {
            recorder.go_live();
        }
        archive::compare(archive.service.as_ref(), engine);
        let recovered = Recovered {
            snapshot_index,
            entries_replayed: engine.last_applied().0 - snapshot_index.0,
            log_index: engine.last_applied(),
            log_time: engine.time(),
            state_hash: while_waiting("hashing the state", || engine.state_hash()),
        };
        let hash: String = recovered.state_hash.iter().map(|b| format!("{b:02x}")).collect();
        if recovered.log_index.0 == 0 {
            info!("replica {me} is new: there is no log in {} yet", data.display());
        } else {
            info!(
                "replica {me} recovered to log entry {} in {:?}: snapshot of entry {snapshot_index}, {} entries replayed, state \
                 {hash}",
                recovered.log_index,
                begun.elapsed(),
                recovered.entries_replayed
            );
        }
        let signatures = Signatures::start(key_changes, threads).map_err(RecoveryError::Thread)?;
        let (leads_in, leads) = bounded(1);
        let is_sole_voter = replica.members().voters.iter().eq([&me]);
        let thread = ReplicaThread {
            replica,
            times,
            release_source,
            links,
            sockets: Some(sockets),
            waiters: Waiters::default(),
            log,
            snapshots: snapshots_in,
            store: store_of_thread,
            snapshot_waiters: Vec::new(),
            sending: BTreeSet::new(),
            status: status.clone(),
            cluster: cluster.clone(),
            solver: Solver::start(data, doorbell.clone()).map_err(RecoveryError::Thread)?,
            blocks: BlockThread::start(threads, doorbell.clone()).map_err(RecoveryError::Thread)?,
            verifying: Verifying::new(signatures.clone(), doorbell.clone()),
            poll,
            alarm,
            doorbell: doorbell.clone(),
            queues: Queues { commands, requests },
            snapshots_done,
            begun: Instant::now(),
            now_ns: 0,
            flush_every,
            flushed: Instant::now(),
            published: begun,
            is_stirred: true,
            leads: Some(leads_in),
            link_events: Vec::new(),
            effects: Vec::new(),
            stopping: Stopping::No,
            receiving: BTreeMap::new(),
            declared: Declared::new(&config.batch),
            is_unlooked: true,
            keys: KeyShare::new(Arc::clone(&access), news_in),
            feed_sender,
            leaf_changes: 0,
        };
        let (alive, ended) = watch::channel(());
        let run = move || {
            let _alive = alive;
            thread.run()
        };
        let thread = std::thread::Builder::new().name("walras-replica".into()).spawn(run).map_err(RecoveryError::Thread)?;
        let handle = VenueHandle::new(VenueParts {
            commands: commands_in,
            requests: requests_in,
            catalog: shared_catalog,
            clock: clock.clone(),
            status,
            doorbell,
            cluster: cluster.clone(),
            held: release.map(|_| held),
            stages,
            archive: archive.status,
            signatures,
            whole: WholeRequests::default(),
        });
        let market_data_queue = config.websocket.queue_messages;
        let fix_market_data = market_data_port.map(|port| port.serve(handle.clone(), market_data_queue)).transpose()?;
        if is_sole_voter {
            // It elects itself, which takes two writes. Where the disk takes none it starts all the same, and says so when asked.
            let _ = leads.recv_timeout(LEADS_WITHIN);
        }
        Ok(Self {
            handle,
            recovered,
            genesis,
            entry_tls: shown,
            data: data.to_path_buf(),
            cluster,
            order_entry: entry_address,
            fix: fix_address,
            fix_market_data,
            access,
            thread,
            others: threads_beside,
            archive: archive.service,
            ended,
        })
    }

    /// Lets participants in, with these keys.
    pub fn open_order_entry(&self, access: &Arc<walras_access::Access>) {
        // It is called once.
        let _ = self.access.set(Arc::clone(access));
    }

    /// Where orders come in binary.
    #[must_use]
    pub fn order_entry_address(&self) -> Option<SocketAddr> {
        self.order_entry
    }

    /// Where FIX is spoken.
    #[must_use]
    pub fn fix_address(&self) -> Option<SocketAddr> {
        self.fix
    }

    /// Where FIX market data is read.
    #[must_use]
    pub fn fix_market_data_address(&self) -> Option<SocketAddr> {
        self.fix_market_data.as_ref().map(FixMarketData::address)
    }

    /// What it says of its cluster.
    #[must_use]
    pub fn cluster(&self) -> &ClusterStatus {
        &self.cluster
    }

    /// For everybody who uses the venue.
    #[must_use]
    pub fn handle(&self) -> VenueHandle {
        self.handle.clone()
    }

    /// What was found at the start.
    #[must_use]
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Waits until it has stopped by itself.
    pub async fn ended(&self) {
        // Nothing is ever sent: it ends with the thread.
        let _ = self.ended.clone().changed().await;
    }

    /// Ends the threads; why it had stopped before, if it had.
    pub fn stop(self) -> Option<Halt> {
        let _ = self.handle.request(Request::Stop);
        if let Some(fix_market_data) = self.fix_market_data {
            fix_market_data.stop();
        }
        while_waiting("finishing what was taken, and closing the log", || {
            let halt = self.thread.join().unwrap_or_else(|_| {
                tracing::error!("the replica's thread panicked; the other replicas hold everything that was acknowledged");
                None
            });
            for thread in self.others {
                if thread.join().is_err() {
                    tracing::error!("a thread of the replica panicked; what was acknowledged is on its disk");
                }
            }
            archive::stop(self.archive);
            halt
        })
    }
}

/// The way out of the binary feed, which begins with what the replica has.
fn begin_feed(options: &FeedOptions, publisher: Option<&Publisher>) -> Result<FeedSender, RecoveryError> {
    let mut sender = FeedSender::start(options)?;
    match publisher {
        Some(publisher) => sender.begin(publisher),
        None => {
            warn!("the binary feed is not published: this venue has logged entries without it, and the feed begins with the log")
        }
    }
    Ok(sender)
}
