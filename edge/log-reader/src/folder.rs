use std::path::Path;

use walras_engine::Engine;
use walras_log_store::{RealDisk, open_whole};
use walras_replica::split_part;
use walras_replica_log::Dump;
use walras_sequencer::{Entry, decode_entry};
use walras_terminal::progress::while_waiting;
use walras_types::LogIndex;
use walras_wire::Checkpoint;

use crate::LogReadError;

/// A replica's folder in its data folder.
pub const REPLICA: &str = "replica";

/// How often the snapshots of a running venue are read again: it may remove one while it is read.
const ATTEMPTS_MAX: usize = 4;

/// Whether a data folder is a replica's. If not, it holds the log of an earlier version.
#[must_use]
pub fn is_replica(dir: &Path) -> bool {
    dir.join(REPLICA).exists()
}

/// The engine's state in a snapshot: its first part.
///
/// # Errors
/// What in the bytes is not a state.
pub fn engine_of_snapshot(bytes: &[u8]) -> Result<Engine, String> {
    let (engine, _) = split_part(bytes)?;
    Engine::restore(engine).map_err(|e| e.to_string())
}

/// Calls `each` with number and bytes of every entry in a replica's folder that the replica knew to be decided, until `each` returns
/// false. Shows on the terminal that it works.
///
/// # Errors
/// Those of `each`, and what is wrong with the log.
pub fn decided_entries<E: From<LogReadError>>(
    dir: &Path,
    mut each: impl FnMut(LogIndex, &[u8]) -> Result<bool, E>,
) -> Result<(), E> {
    let dump = while_waiting("opening the log", || Dump::open_whole(&RealDisk, dir)).map_err(|e| LogReadError::damaged(&e))?;
    let Some(mut decided) = dump.decided().map_err(|e| LogReadError::damaged(&e))? else {
        let why = "no snapshot and nothing in the log says at which entry the log begins: a snapshot is missing; restore it from a backup";
        return Err(LogReadError::Damaged(why.to_owned()).into());
    };
    while let Some(committed) = decided.next().map_err(|e| LogReadError::damaged(&e))? {
        for (log_index, bytes) in (committed.first.0..).map(LogIndex).zip(committed.pack.entries()) {
            if !each(log_index, bytes)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Calls `each` with every entry of the log in a data folder: of a replica's log those that it knew to be decided.
///
/// # Errors
/// Those of `each`, and what is wrong with the log.
pub fn each_entry(dir: &Path, mut each: impl FnMut(Entry) -> Result<(), LogReadError>) -> Result<(), LogReadError> {
    let mut each_bytes = |index: LogIndex, bytes: &[u8]| {
        let entry = decode_entry(index, bytes).map_err(|e| LogReadError::Entry { index, detail: e.to_string() })?;
        each(entry)
    };
    if is_replica(dir) {
        return decided_entries(&dir.join(REPLICA), |index, bytes| each_bytes(index, bytes).map(|()| true));
    }
    let (mut reader, _lock) = while_waiting("opening the log", || open_whole(&RealDisk, &dir.join("log"), None))?;
    while let Some(stored) = reader.next()? {
        each_bytes(stored.index, stored.payload)?;
    }
    Ok(())
}

/// The states in a data folder's snapshots, oldest first.
pub(crate) fn states(dir: &Path) -> Result<Vec<(Checkpoint, Engine)>, LogReadError> {
    let mut attempts = 1;
    loop {
        match try_states(dir) {
            Err(_) if attempts < ATTEMPTS_MAX => attempts += 1,
            read => return read,
        }
    }
}

fn try_states(dir: &Path) -> Result<Vec<(Checkpoint, Engine)>, LogReadError> {
    let mut states = Vec::new();
    if is_replica(dir) {
        let dump = Dump::open_whole(&RealDisk, &dir.join(REPLICA)).map_err(|e| LogReadError::damaged(&e))?;
        for info in &dump.snapshots {
            let log_index = info.meta.log_index;
            let bytes = dump.state(info).map_err(|e| LogReadError::damaged(&e))?;
            let damaged = |detail| LogReadError::Damaged(format!("the snapshot of entry {log_index} does not restore: {detail}"));
            let engine = engine_of_snapshot(&bytes).map_err(damaged)?;
            states.push((Checkpoint { log_index, state_hash: engine.state_hash() }, engine));
        }
    }
    Ok(states)
}
