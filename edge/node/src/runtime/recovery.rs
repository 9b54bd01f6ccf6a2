//! Start and stop of a venue: newest snapshot, then the log's entries after it, then the threads.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use tokio::sync::oneshot;
use tracing::{error, info, warn};
use walras_access::Clock;
use walras_config::Config;
use walras_engine::Engine;
use walras_log_store::{Disk, LetGo, LogError, LogOptions, LogWriter, RealDisk, Snapshot, SnapshotStore};
use walras_market_data::{Fills, MarketData};
use walras_ports::{
    Asker, Doorbell, Feed, HoldStatus, KeyRing, Queues, ReleaseSource, SharedCatalog, Signatures, Stages, Status, VenueHandle,
    VenueParts,
};
use walras_replica::{Derived, FrozenState, split_part, split_parts};
use walras_sequencer::{EntryError, LogGap, Sequencer, decode_entry};
use walras_terminal::progress::{Slow, while_waiting};
use walras_types::{LogIndex, RejectReason, TimeNs};

use super::archive;
use super::batches::{Declared, Solver};
use super::engine_thread::{Core, EngineThread, Pace};
use super::log_thread::LogThread;

/// Reads and subscriptions that may wait for the engine's thread.
pub(super) const REQUESTS_MAX: usize = 4096;

/// How a venue is started.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// Where its log and snapshots are.
    pub data: PathBuf,
    /// What time it is.
    pub clock: Clock,
    /// Everything else.
    pub config: Config,
}

/// Why a venue did not start.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The log or a snapshot could not be read.
    #[error(transparent)]
    Store(#[from] LogError),
    /// An entry of the log is not one.
    #[error("log entry {index}: {source}; see `walras log verify`, and restore the folder from a backup")]
    Entry {
        /// Which.
        index: LogIndex,
        /// Why.
        source: EntryError,
    },
    /// Entries are missing.
    #[error(transparent)]
    Gap(#[from] LogGap),
    /// The newest snapshot does not restore.
    #[error("the snapshot of entry {index} does not restore: {detail}; move it away to start from the one before and the log")]
    Snapshot {
        /// Which.
        index: LogIndex,
        /// Why.
        detail: String,
    },
    /// A replica's log, snapshots or links are not as they must be.
    #[error("{0}")]
    Replica(String),
    /// A thread could not be started.
    #[error("could not start a thread: {0}; raise the limit on threads of this user")]
    Thread(std::io::Error),
}

/// What recovery found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Last entry that the snapshot held; 0 without one.
    pub snapshot_index: LogIndex,
    /// Entries replayed from the log after it.
    pub entries_replayed: u64,
    /// Last entry of all.
    pub log_index: LogIndex,
    /// Its time: the venue was running then, whatever the clock shows now.
    pub log_time: TimeNs,
    /// Hash of the state.
    pub state_hash: [u8; 32],
}

/// A running venue. Dropping it without [`Venue::stop`] leaves the threads to end by themselves.
#[derive(Debug)]
pub struct Venue {
    handle: VenueHandle,
    recovered: Recovered,
    engine: JoinHandle<()>,
    log: JoinHandle<()>,
    snapshots: JoinHandle<()>,
    archive: Option<walras_archive::Service>,
}

/// A state to be written.
pub(super) struct SnapshotJob {
    pub(super) index: LogIndex,
    pub(super) state: FrozenState,
    pub(super) reply: Option<oneshot::Sender<Result<LogIndex, RejectReason>>>,
}

/// The engine's state in a snapshot, of a venue of one machine or of a replica: it is the first part of either.
pub(crate) fn engine_of_snapshot(bytes: &[u8]) -> Result<Engine, String> {
    let (engine, _) = split_part(bytes)?;
    Engine::restore(engine).map_err(|e| e.to_string())
}

/// Restores a venue's snapshot and saves it again. A snapshot that restores gives its own bytes: one state has one encoding.
pub fn snapshot_again(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (engine, market, fills) = decode_snapshot(bytes)?;
    Ok(FrozenState::new(&engine, &market, vec![Box::new(move |out| fills.snapshot(out))]).encode())
}

fn decode_snapshot(bytes: &[u8]) -> Result<(Engine, MarketData, Fills), String> {
    let [engine, market, fills] = split_parts(bytes)?;
    let engine = Engine::restore(engine).map_err(|e| e.to_string())?;
    let market = MarketData::restore(market).map_err(|e| e.to_string())?;
    let fills = Fills::restore(fills).map_err(|e| e.to_string())?;
    Ok((engine, market, fills))
}

/// How the log of a venue is laid out.
#[must_use]
pub fn log_options(config: &Config) -> LogOptions {
    let let_go = if config.log.keep_mib > 0 { LetGo::Keep } else { LetGo::Reuse };
    LogOptions { segment_bytes: config.log.segment_bytes, let_go, ..LogOptions::default() }
}

impl Venue {
    /// Recovers from the data folder, or begins a new log in it, and starts the threads.
    pub fn start(options: &StartOptions) -> Result<Self, RecoveryError> {
        Self::start_on(RealDisk, options)
    }

    /// The same on any disk.
    pub fn start_on<D: Disk>(disk: D, options: &StartOptions) -> Result<Self, RecoveryError> {
        let StartOptions { data, clock, config } = options;
        if data.join("replica").exists() {
            return Err(RecoveryError::Replica(format!(
                "{} holds a replica of a cluster: set cluster.replica to its id, or give another folder (venue.data)",
                data.display()
            )));
        }
        let (log_dir, snapshot_dir) = (data.join("log"), data.join("snapshots"));
        let begun = Instant::now();
        let snapshot_store = SnapshotStore::open(disk.clone(), &snapshot_dir, LogOptions::default().owner_id)?;
        let (snapshot, damaged) = while_waiting("reading the newest snapshot", || snapshot_store.load_newest())?;
        damaged.iter().for_each(|found| warn!("{found}"));
        let (snapshot_index, (mut engine, market, fills)) = match snapshot {
            None => (LogIndex(0), (Engine::new(), MarketData::new(), Fills::default())),
            Some(Snapshot { log_index: index, bytes }) => {
                let parts = while_waiting("restoring the newest snapshot", || decode_snapshot(&bytes));
                (index, parts.map_err(|detail| RecoveryError::Snapshot { index, detail })?)
            }
        };
        let durable_floor = (snapshot_index.0 > 0).then_some(snapshot_index);
        let log_options = LogOptions { durable_floor, ..log_options(config) };
        let refill = archive::refill_of_log(disk.clone(), data);
        let (mut log, found) = while_waiting("opening the log", || LogWriter::open(disk, &log_dir, log_options))?;
        // Not before the folder is ours alone: whatever a venue before this one took, it took before this moment.
        let status = Status::new(&config.venue.name, clock.now());
        if let Some(torn) = &found.torn_tail {
            info!("the log ended in {torn}; it was cut");
        }
        let threads = config.engine.threads();
        engine.set_threads(threads);
        let archive = archive::open(config, refill);
        let recorder = archive.service.as_ref().map(|service| {
            while_waiting("bringing the archive up to date", || archive::recorder_of_log(service, &engine, &log, &snapshot_store))
        });
        let (keys, key_changes) = KeyRing::new();
        let mut core = Core::new(&engine, Derived { market, fills }, keys);
        core.listeners.archive = recorder.transpose()?;
        let mut sequencer = Sequencer::new(engine, config.log.queue_entries);
        let entries_replayed = replay(&log, snapshot_index, &mut sequencer, &mut core)?;
        if let Some(recorder) = &mut core.listeners.archive {
            recorder.go_live();
        }
        archive::compare(archive.service.as_ref(), sequencer.engine());
        while_waiting("preparing the batch markets", || sequencer.prepare_batches());
        if let Some(chores) = log.maintenance() {
            chores.run()?;
        }
        let engine = sequencer.engine();
        let recovered = Recovered {
            snapshot_index,
            entries_replayed,
            log_index: engine.last_applied(),
            log_time: engine.time(),
            state_hash: while_waiting("hashing the state", || engine.state_hash()),
        };
        let hash: String = recovered.state_hash.iter().map(|b| format!("{b:02x}")).collect();
        if recovered.log_index == LogIndex(0) {
            info!("new venue in {}", data.display());
        } else {
            info!(
                "recovered to log entry {} in {:?}: snapshot of entry {snapshot_index}, {entries_replayed} entries replayed, state {hash}",
                recovered.log_index,
                begun.elapsed()
            );
        }

        let shared_catalog = SharedCatalog::default();
        shared_catalog.set(core.listeners.catalog.clone());
        let (commands_in, commands) = bounded(config.log.queue_entries);
        let (requests_in, requests) = bounded(REQUESTS_MAX);
        let log_thread = LogThread::new(log);
        let (log_jobs_in, log_jobs) = bounded(4);
        let (log_done_in, log_done) = bounded(4);
        let (snapshots_in, snapshot_jobs) = bounded(1);
        let (snapshots_done_in, snapshots_done) = bounded(16);
        let stages = Stages::default();
        let held = HoldStatus::new(ReleaseSource::new(clock.clone(), None), stages.clone());
        let mut feed = Feed::new(status.clone(), held).map_err(RecoveryError::Thread)?;
        feed.prime(&core.derived.market);
        let thread = EngineThread {
            sequencer,
            core,
            feed,
            queues: Queues { commands, requests },
            log: log_jobs_in,
            log_done,
            snapshots: snapshots_in,
            snapshots_done,
            shared_catalog: shared_catalog.clone(),
            clock: clock.clone(),
            begun,
            status: status.clone(),
            pace: Pace {
                flush_every: Duration::from_micros(1_000_000 / config.websocket.updates_per_second),
                tick_every: Duration::from_millis(config.log.tick_interval_ms),
                snapshot_every: config.log.snapshot_every_entries,
                snapshot_every_time: Duration::from_secs(config.log.snapshot_every_seconds),
                snapshot_at: Instant::now(),
                snapshot_index,
            },
            commands_max: config.log.queue_entries,
            in_log: 0,
            stages: stages.clone(),
            given: begun,
            durable: begun,
            solver: Solver::start(data, Doorbell::default()).map_err(RecoveryError::Thread)?,
            declared: Declared::new(&config.batch),
            jobs: Vec::new(),
        };
        thread.publish_status();
        let log = spawn("log", move || log_thread.run(&log_jobs, &log_done_in))?;
        let snapshots = spawn("snapshot", move || write_snapshots(snapshot_store, &snapshot_jobs, &snapshots_done_in))?;
        let engine = spawn("engine", move || thread.run())?;
        let handle = VenueHandle::new(VenueParts {
            commands: commands_in,
            requests: requests_in,
            catalog: shared_catalog,
            clock: clock.clone(),
            status,
            doorbell: Doorbell::default(),
            cluster: None,
            held: None,
            stages,
            archive: archive.status,
            signatures: Signatures::start(key_changes, threads).map_err(RecoveryError::Thread)?,
        });
        Ok(Self { handle, recovered, engine, log, snapshots, archive: archive.service })
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

    /// Takes no more, finishes what was taken, writes a snapshot, ends the threads.
    pub fn stop(self) {
        self.handle.stop();
        while_waiting("finishing what was taken, and writing a snapshot of it", || {
            for thread in [self.engine, self.log, self.snapshots] {
                if thread.join().is_err() {
                    error!("a thread of the venue panicked; the log holds everything that was acknowledged");
                }
            }
            archive::stop(self.archive);
        });
    }
}

/// Applies the log's entries after the snapshot; how many there were.
fn replay<D: Disk>(
    log: &LogWriter<D>,
    snapshot_index: LogIndex,
    sequencer: &mut Sequencer<Option<Asker>>,
    core: &mut Core,
) -> Result<u64, RecoveryError> {
    let end = log.next_index();
    if end <= snapshot_index.next() {
        return Ok(0);
    }
    let mut reader = log.reader(snapshot_index.next())?;
    let mut progress = Slow::new("replaying the log", Some(end.0 - snapshot_index.0 - 1));
    let mut count = 0;
    while let Some(stored) = reader.next()? {
        let entry =
            decode_entry(stored.index, stored.payload).map_err(|source| RecoveryError::Entry { index: stored.index, source })?;
        let (engine, events) = sequencer.replay(&entry)?;
        core.on_events(&entry, engine, events, None);
        count += 1;
        progress.set(count);
    }
    progress.finish();
    Ok(count)
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, RecoveryError> {
    std::thread::Builder::new().name(format!("walras-{name}")).spawn(run).map_err(RecoveryError::Thread)
}

/// The snapshots' thread. The log may let go only of what two durable snapshots hold.
fn write_snapshots<D: Disk>(mut store: SnapshotStore<D>, jobs: &Receiver<SnapshotJob>, done: &Sender<Option<LogIndex>>) {
    for SnapshotJob { index, state, reply } in jobs {
        let begun = Instant::now();
        let bytes = state.encode();
        let written = if store.indices().last() == Some(&index) { Ok(()) } else { store.write(index, &bytes) };
        let answer = match written {
            Ok(()) => {
                info!("snapshot of entry {index}: {} bytes in {:?}", bytes.len(), begun.elapsed());
                // When the engine's thread has stopped there is nobody to drop segments; the next start's snapshot does.
                let _ = done.send(store.spare_up_to());
                Ok(index)
            }
            Err(e) => {
                error!("the snapshot of entry {index} was not written: {e}; the log keeps what it would have replaced");
                Err(if e.is_retryable() { RejectReason::Overloaded } else { RejectReason::StorageFull })
            }
        };
        if let Some(reply) = reply {
            let _ = reply.send(answer);
        }
    }
}
