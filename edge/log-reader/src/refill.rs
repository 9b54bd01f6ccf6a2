//! What an archive missed, read from the log: entries that came while it did not run, and those that its queue had no room for, which
//! it reads from the files that the replica's log thread goes on writing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing::{info, warn};
use walras_archive::{Again, Recorder, Refill, Service};
use walras_engine::Engine;
use walras_log_store::Disk;
use walras_market_data::{OrderHistories, Recorded};
use walras_replica::State;
use walras_replica_log::{Dump, ReplicaLog, SnapshotReader, Snapshots};
use walras_sequencer::decode_entry;
use walras_types::LogIndex;
use walras_wire::Event;

use crate::LogReadError;

/// A recorder that goes on from `engine`, which was restored from a snapshot. Where the archive has less than the snapshot holds,
/// the entries between are taken from the log, as far as it has them.
///
/// # Errors
/// A snapshot or an entry that cannot be read.
pub fn recorder_of_replica<D: Disk>(
    service: &Service,
    engine: &Engine,
    log: &ReplicaLog<D>,
    decided: walras_consensus::Slot,
    snapshots: &Snapshots<D>,
) -> Result<Recorder, LogReadError> {
    let up_to = engine.last_applied();
    if service.durable() >= up_to {
        return Ok(service.recorder(engine));
    }
    let before = snapshots.list().into_iter().rev().find(|info| info.meta.log_index <= service.durable());
    let state = match before {
        Some(info) => {
            let index = info.meta.log_index;
            let bytes = snapshots.read(info.meta.slot).and_then(SnapshotReader::read_all).map_err(|e| e.to_string());
            restore(index, &bytes.map_err(|detail| not_restored(index, &detail))?)?
        }
        None => (Engine::new(), OrderHistories::default()),
    };
    let mut late = Late::new(service, state);
    let Ok(mut reader) = log.decided(late.next(), decided) else { return Ok(too_late(service, engine)) };
    while let Some(committed) = reader.next().map_err(|e| LogReadError::damaged(&e))? {
        for (log_index, bytes) in (committed.first.0..).map(LogIndex).zip(committed.pack.entries()) {
            if log_index >= late.next() && log_index <= up_to {
                late.apply(log_index, bytes)?;
            }
        }
    }
    Ok(late.recorder)
}

fn restore(index: LogIndex, bytes: &[u8]) -> Result<(Engine, OrderHistories), LogReadError> {
    State::decode_for_archive(bytes).map_err(|detail| not_restored(index, &detail))
}

fn not_restored(index: LogIndex, detail: &str) -> LogReadError {
    LogReadError::Damaged(format!(
        "the snapshot of entry {index} does not restore: {detail}; move it away to start from the one before and the log"
    ))
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
pub fn refill_of_replica<D: Disk>(disk: D, dir: PathBuf) -> Refill {
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
    let dump = Dump::open_live(disk, dir).map_err(|e| e.to_string())?;
    let Some(mut decided) = dump.decided().map_err(|e| e.to_string())? else { return Ok(Look::TooLate) };
    let mut next = decided.next().map_err(|e| e.to_string())?;
    let Some(first) = next.as_ref().map(|committed| committed.first) else { return Ok(Look::Read) };
    let indices: Vec<LogIndex> = dump.snapshots.iter().map(|info| info.meta.log_index).collect();
    let Some(from) = states(&indices, again).into_iter().find(|from| first <= from.next()) else { return Ok(Look::TooLate) };
    let state = match dump.snapshots.iter().find(|info| info.meta.log_index == from) {
        Some(info) => State::decode_for_archive(&dump.state(info).map_err(|e| e.to_string())?)?,
        None => (Engine::new(), OrderHistories::default()),
    };
    let Some(mut late) = Late::again(again, state) else { return Ok(Look::TooLate) };
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
    histories: OrderHistories,
    recorder: Recorder,
    events: Vec<Event>,
    records: Vec<Recorded>,
}

impl Late {
    fn new(service: &Service, (engine, histories): (Engine, OrderHistories)) -> Self {
        info!("the archive reads the log from entry {} on", engine.last_applied().next());
        let recorder = service.recorder(&engine);
        Self { engine, histories, recorder, events: Vec::new(), records: Vec::new() }
    }

    /// While the venue runs; `None` where nothing that is missing comes after that state.
    fn again(again: &Again<'_>, (engine, histories): (Engine, OrderHistories)) -> Option<Self> {
        let recorder = again.recorder(&engine)?;
        Some(Self { engine, histories, recorder, events: Vec::new(), records: Vec::new() })
    }

    fn next(&self) -> LogIndex {
        self.engine.last_applied().next()
    }

    fn apply(&mut self, index: LogIndex, bytes: &[u8]) -> Result<(), LogReadError> {
        let entry = decode_entry(index, bytes).map_err(|e| LogReadError::Entry { index, detail: e.to_string() })?;
        self.events.clear();
        entry.apply(&mut self.engine, &mut self.events);
        self.records.clear();
        self.histories.on_entry(index, entry.time, entry.content.command(), &self.events, &mut self.records);
        self.recorder.on_entry(index, entry.time, &self.events, &self.records, &self.engine);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
