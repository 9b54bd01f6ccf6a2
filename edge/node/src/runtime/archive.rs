//! The archive beside the engine: opened before the replay, told every entry, ended after the last. What its queue had no room for
//! meanwhile it reads from the files of the log, beside the thread that writes them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{error, info, warn};
use walras_archive::{Again, Files, Recorder, Refill, Service, Status};
use walras_config::Config;
use walras_engine::Engine;
use walras_log_store::Disk;
use walras_replica_log::{Dump, ReplicaLog, SnapshotReader, Snapshots};
use walras_sequencer::{EntryError, decode_entry};
use walras_types::LogIndex;
use walras_wire::Event;

use super::recovery::{RecoveryError, engine_of_snapshot};

/// The archive that the configuration asks for. One that can not be opened does not keep a venue from starting.
pub(super) struct Opened {
    /// It runs.
    pub(super) service: Option<Service>,
    /// What it says of itself; `None` where none is asked for.
    pub(super) status: Option<Status>,
}

pub(super) fn open(config: &Config, refill: Refill) -> Opened {
    let Some(settings) = config.archive.settings() else { return Opened { service: None, status: None } };
    match Service::start(settings.clone(), Files::default(), Some(refill)) {
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

/// A recorder that goes on from `engine`, which was restored from a snapshot. Where the archive has less than the snapshot holds,
/// the entries between are taken from the log, as far as it has them.
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

/// How often the log is looked at again where it did not have what is missing yet, or was just being written, and after how long.
const LOOKS: u32 = 50;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Why entries could not be read again.
type Unread = String;

/// What came of a look at the log.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    /// As far as the log went, or the archive ends.
    Read,
    /// It has let go of what is missing.
    TooLate,
}

/// Reads the log in a replica's folder again.
pub(super) fn refill_of_replica<D: Disk>(disk: D, dir: PathBuf) -> Refill {
    Box::new(move |again: &mut Again<'_>| look_until_read(again, |again| look_at_replica(&disk, &dir, again)))
}

/// What was applied is in the log, or a moment away from it; and what is being written may look like damage.
fn look_until_read(again: &mut Again<'_>, mut look: impl FnMut(&mut Again<'_>) -> Result<Look, Unread>) -> Result<(), Unread> {
    let mut unread = Ok(());
    for _ in 0..LOOKS {
        unread = match look(again) {
            Ok(Look::TooLate) => return Err("the log was let go of before the archive had it".to_owned()),
            Ok(Look::Read) if again.seen() >= again.until() => return Ok(()),
            Ok(Look::Read) => Err("the log does not have them".to_owned()),
            Err(why) => Err(why),
        };
        if !again.wait(LOOK_AGAIN) {
            return Ok(());
        }
    }
    unread
}

fn look_at_replica<D: Disk>(disk: &D, dir: &Path, again: &mut Again<'_>) -> Result<Look, Unread> {
    let dump = Dump::open_beside(disk, dir).map_err(|e| e.to_string())?;
    let Some(mut decided) = dump.decided().map_err(|e| e.to_string())? else { return Ok(Look::TooLate) };
    let mut next = decided.next().map_err(|e| e.to_string())?;
    let Some(first) = next.as_ref().map(|committed| committed.first) else { return Ok(Look::Read) };
    let indices: Vec<LogIndex> = dump.snapshots.iter().map(|info| info.meta.log_index).collect();
    let Some(from) = states(&indices, again).into_iter().find(|from| first <= from.next()) else { return Ok(Look::TooLate) };
    let engine = match dump.snapshots.iter().find(|info| info.meta.log_index == from) {
        Some(info) => engine_of_snapshot(&dump.state(info).map_err(|e| e.to_string())?)?,
        None => Engine::new(),
    };
    let Some(mut late) = Late::again(again, engine) else { return Ok(Look::TooLate) };
    while let Some(committed) = next {
        for (log_index, bytes) in (committed.first.0..).map(LogIndex).zip(committed.pack.entries()) {
            if log_index >= late.next() {
                late.apply(log_index, bytes).map_err(|e| e.to_string())?;
            }
        }
        if !again.take() {
            return Ok(Look::Read);
        }
        next = decided.next().map_err(|e| e.to_string())?;
    }
    late.recorder.flush();
    again.take();
    Ok(Look::Read)
}

/// The states from which entries that are missing may be read, best first: the newest that is not later than what the archive has,
/// then the earliest of those after it. The one before the first entry always is one.
fn states(snapshots: &[LogIndex], again: &Again<'_>) -> Vec<LogIndex> {
    let (seen, until) = (again.seen(), again.until());
    order_states(snapshots, seen, until)
}

fn order_states(snapshots: &[LogIndex], seen: LogIndex, until: LogIndex) -> Vec<LogIndex> {
    let newest = snapshots.iter().copied().filter(|index| *index <= seen).max().unwrap_or(LogIndex(0));
    let mut later: Vec<LogIndex> = snapshots.iter().copied().filter(|index| *index > seen && *index < until).collect();
    later.sort_unstable();
    std::iter::once(newest).chain(later).collect()
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

    /// While the venue runs; `None` where nothing that is missing comes after that state.
    fn again(again: &Again<'_>, engine: Engine) -> Option<Self> {
        Some(Self { recorder: again.recorder(&engine)?, engine, events: Vec::new() })
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

#[cfg(test)]
mod tests {
    use walras_archive::{History, Settings, TradesQuery};
    use walras_log_store::RealDisk;
    use walras_testkit::plain;
    use walras_types::{InstrumentId, Side, TimeNs};
    use walras_wait::until;
    use walras_wire::{Command, VenueCommand};

    use super::*;
    use crate::node::Node;

    const TRADES: u64 = 40;

    /// A market in which one account buys what the other sells, so often.
    fn commands() -> Vec<Command> {
        let sold = |id| [(0, Side::Sell), (1, Side::Buy)].map(|(account, side)| plain::order(account, id, side, 201, id));
        plain::opening().into_iter().chain((1..=TRADES).flat_map(sold)).collect()
    }

    /// An archive that had no room for anything until a venue had traded reads all of it from the log that this one has open.
    fn reads_beside(config: &Config) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let node = Node::start(&data, config).unwrap();
        let venue = node.venue();
        until("it takes commands", || venue.takes_commands());
        for (at, command) in commands().into_iter().enumerate() {
            assert_eq!(venue.command_blocking(command).unwrap().rejected(), None, "{command:?}");
            // Too late to be of use: the archive has nothing from before.
            if at == 30 {
                venue.snapshot_blocking().unwrap();
            }
        }
        let state = venue.read_blocking(|v| {
            let mut bytes = Vec::new();
            v.engine.snapshot(&mut bytes);
            bytes
        });
        let state = state.unwrap();
        let mut engine = Engine::restore(&state).unwrap();
        let archive = folder.path().join("beside");
        let settings =
            Settings { folder: archive.clone(), depth: 5, snapshot_every_ns: 1, parquet: false, dbn: false, keep_days: 0 };
        let service = Service::start(settings, Files::default(), Some(refill_of_replica(RealDisk, data.join("replica")))).unwrap();
        let mut recorder = service.recorder(&engine);
        recorder.go_live();
        let (before, mut events) = (engine.last_applied(), Vec::new());
        let (next, time) = (before.next(), engine.time());
        engine.apply(next, time, &Command::Venue(VenueCommand::Tick), &mut events);
        recorder.on_entry(next, time, &events, &engine);
        recorder.flush();
        let status = service.status();
        until("it is durable", || status.view().durable >= next);
        let view = status.view();
        assert_eq!((view.missing, view.trouble), (0, None));
        assert!(view.refilled >= before.0, "{} of {before}", view.refilled);
        drop(recorder);
        service.stop();
        let query = TradesQuery { instrument: InstrumentId(0), from: TimeNs(0), to: TimeNs(u64::MAX), limit: 1_000, after: None };
        let sizes: Vec<u64> = History::new(&archive).trades(&query).unwrap().trades.iter().map(|trade| trade.size.get()).collect();
        assert_eq!(sizes, (1..=TRADES).collect::<Vec<_>>());
        assert_eq!(node.stop(), None);
    }

    fn config() -> Config {
        let mut config = Config::default();
        config.http.listen = "127.0.0.1:0".to_owned();
        config.order_entry.listen = "127.0.0.1:0".to_owned();
        config.log.segment_bytes = 1 << 20;
        config
    }

    #[test]
    fn a_log_is_read_beside_the_venue_that_writes_it() {
        reads_beside(&config());
    }

    #[test]
    fn where_snapshots_come_often_too() {
        let mut config = config();
        config.log.snapshot_every_entries = 16;
        reads_beside(&config);
    }

    #[test]
    fn the_log_is_read_from_the_state_that_costs_least_and_loses_nothing() {
        let order = |snapshots: &[u64], seen, until| {
            let snapshots: Vec<LogIndex> = snapshots.iter().copied().map(LogIndex).collect();
            order_states(&snapshots, LogIndex(seen), LogIndex(until)).into_iter().map(|index| index.0).collect::<Vec<_>>()
        };
        assert_eq!(order(&[10, 20, 30], 25, 40), [20, 30]);
        assert_eq!(order(&[10, 20, 30], 20, 22), [20]);
        assert_eq!(order(&[30, 10, 20], 5, 25), [0, 10, 20]);
        assert_eq!(order(&[], 5, 25), [0]);
    }
}
