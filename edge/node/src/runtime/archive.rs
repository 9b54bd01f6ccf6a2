//! The archive beside the engine: opened before the replay, told every entry, ended after the last.

use tracing::{error, info, warn};
use walras_archive::{Files, Recorder, Service, Status};
use walras_engine::Engine;
use walras_log_store::{Disk, LogWriter, SnapshotStore};
use walras_replica_log::{ReplicaLog, SnapshotReader, Snapshots};
use walras_sequencer::{EntryError, decode_entry};
use walras_types::LogIndex;
use walras_wire::Event;

use super::recovery::{RecoveryError, engine_of_snapshot};
use crate::config::Config;

/// The archive that the configuration asks for. One that can not be opened does not keep a venue from starting.
pub(super) struct Opened {
    /// It runs.
    pub(super) service: Option<Service>,
    /// What it says of itself; `None` where none is asked for.
    pub(super) status: Option<Status>,
}

pub(super) fn open(config: &Config) -> Opened {
    let Some(settings) = config.archive.settings() else { return Opened { service: None, status: None } };
    match Service::start(settings.clone(), Files::default()) {
        Ok(service) => {
            info!("the archive in {} has the log to entry {}", settings.folder.display(), service.durable());
            Opened { status: Some(service.status()), service: Some(service) }
        }
        Err(e) => {
            error!("the venue runs without its archive: {e}");
            Opened { service: None, status: Some(Status::of_trouble(&settings.folder, &e)) }
        }
    }
}

/// Says so where an archive has more than the log, which it can not have of this log.
pub(super) fn compare(service: Option<&Service>, engine: &Engine) {
    let (Some(durable), last) = (service.map(Service::durable), engine.last_applied()) else { return };
    if durable > last {
        error!(
            "the archive has entries to {durable}, and the log ends with {last}: what comes until then is not archived; if the log was restored from \
             a backup, give the archive another folder"
        );
    }
}

/// Ends it, once nobody records any more.
pub(super) fn stop(service: Option<Service>) {
    if let Some(service) = service {
        service.stop();
    }
}

/// A recorder that goes on from `engine`, which was restored from a snapshot. Where the archive has less than the snapshot holds, the entries between
/// are taken from the log, as far as it has them.
pub(super) fn recorder_of_log<D: Disk>(
    service: &Service,
    engine: &Engine,
    log: &LogWriter<D>,
    snapshots: &SnapshotStore<D>,
) -> Result<Recorder, RecoveryError> {
    let up_to = engine.last_applied();
    if service.durable() >= up_to {
        return Ok(service.recorder(engine));
    }
    let before = snapshots.indices().iter().rev().find(|index| **index <= service.durable() && log.first_index() <= index.next());
    let state = match before {
        Some(index) => snapshots.load(*index)?.ok().map(|found| restore(*index, &found.bytes)).transpose()?,
        None => (log.first_index() <= LogIndex(1)).then(Engine::new),
    };
    let Some(state) = state else { return Ok(too_late(service, engine)) };
    let mut late = Late::new(service, state);
    let mut reader = log.reader(late.next())?;
    while let Some(stored) = reader.next()?.filter(|stored| stored.index <= up_to) {
        late.apply(stored.index, stored.payload)?;
    }
    Ok(late.recorder)
}

/// The same of a replica.
pub(super) fn recorder_of_replica<D: Disk>(
    service: &Service,
    engine: &Engine,
    log: &ReplicaLog<D>,
    decided: walras_consensus::Slot,
    snapshots: &Snapshots<D>,
) -> Result<Recorder, RecoveryError> {
    let up_to = engine.last_applied();
    if service.durable() >= up_to {
        return Ok(service.recorder(engine));
    }
    let before = snapshots.list().into_iter().rev().find(|info| info.meta.log_index <= service.durable());
    let state = match before {
        Some(info) => {
            let index = info.meta.log_index;
            let bytes = snapshots.read(info.meta.slot).and_then(SnapshotReader::read_all).map_err(|e| e.to_string());
            restore(index, &bytes.map_err(|detail| RecoveryError::Snapshot { index, detail })?)?
        }
        None => Engine::new(),
    };
    let mut late = Late::new(service, state);
    let Ok(mut reader) = log.decided(late.next(), decided) else { return Ok(too_late(service, engine)) };
    let refused = |e: walras_replica_log::ReplicaLogError| RecoveryError::Replica(e.to_string());
    while let Some(committed) = reader.next().map_err(refused)? {
        for (log_index, bytes) in (committed.first.0..).map(LogIndex).zip(committed.pack.entries()) {
            if log_index >= late.next() && log_index <= up_to {
                late.apply(log_index, bytes)?;
            }
        }
    }
    Ok(late.recorder)
}

fn restore(index: LogIndex, bytes: &[u8]) -> Result<Engine, RecoveryError> {
    engine_of_snapshot(bytes).map_err(|detail| RecoveryError::Snapshot { index, detail })
}

fn too_late(service: &Service, engine: &Engine) -> Recorder {
    let (durable, last) = (service.durable(), engine.last_applied());
    warn!("the log was let go of before the archive had it: it goes on from entry {last}, and those after {durable} are missing");
    service.recorder(engine)
}

/// Entries that the archive has yet to see, and the state that they are applied to.
struct Late {
    engine: Engine,
    recorder: Recorder,
    events: Vec<Event>,
}

impl Late {
    fn new(service: &Service, engine: Engine) -> Self {
        info!("the archive reads the log from entry {} on", engine.last_applied().next());
        let recorder = service.recorder(&engine);
        Self { engine, recorder, events: Vec::new() }
    }

    fn next(&self) -> LogIndex {
        self.engine.last_applied().next()
    }

    fn apply(&mut self, index: LogIndex, bytes: &[u8]) -> Result<(), RecoveryError> {
        let entry = decode_entry(index, bytes).map_err(|source: EntryError| RecoveryError::Entry { index, source })?;
        self.events.clear();
        entry.apply(&mut self.engine, &mut self.events);
        self.recorder.on_entry(index, entry.time, &self.events, &self.engine);
        Ok(())
    }
}
