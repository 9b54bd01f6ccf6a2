//! `walras log audit`: does the log make the states that the venue had?
//!
//! The log is read twice: once for the hashes of states that leaders put into it, once to replay it. The snapshots beside it are states to
//! compare with too. Where the log was let go of up to some entry, the replay begins with the oldest snapshot that it goes on from. On the way
//! signatures of batch transactions are checked.

use std::path::Path;

use serde_json::json;
use walras_engine::Engine;
use walras_log_store::{RealDisk, open_whole};
use walras_replica_log::Dump;
use walras_sequencer::{Auditor, Entry, decode_entry};
use walras_terminal::progress::{Slow, while_waiting};
use walras_types::LogIndex;
use walras_wire::Checkpoint;

use super::audit_signatures::SignatureAudit;
use super::log::{REPLICA, each_decided, is_replica};
use super::{CliError, print};
use crate::runtime::engine_of_snapshot;

pub(super) fn run(dir: &Path, is_json: bool) -> Result<(), CliError> {
    let Read { first, last, mut expected } = read(dir)?;
    let states = while_waiting("reading the snapshots", || states_beside(dir))?;
    expected.extend(states.iter().map(|(known, _)| *known));
    let mut before = states.into_iter().map(|(_, engine)| engine).filter(|engine| engine.last_applied().next() >= first);
    let start = match first {
        LogIndex(0 | 1) => Engine::new(),
        _ => before.next().ok_or_else(|| {
            CliError::Damaged(format!(
                "the log begins with entry {first}, and no snapshot beside it holds the state before that: restore the snapshots, or audit the \
                 folder of another replica"
            ))
        })?,
    };
    let from = start.last_applied();
    let mut signatures = SignatureAudit::from_state(&start)?;
    let mut auditor = Auditor::from_state(start, expected);
    let mut progress = Slow::new("replaying the log", Some(last.0.saturating_sub(from.0)));
    each_entry(dir, |entry| {
        // The venue may go on meanwhile.
        if entry.log_index > from && entry.log_index <= last {
            auditor.apply(&entry).map_err(|e| CliError::Damaged(e.to_string()))?;
            signatures.on_entry(&entry, auditor.events())?;
            progress.set(entry.log_index.0 - from.0);
        }
        Ok(())
    })?;
    progress.finish();
    let signatures = while_waiting("checking the last signatures", || signatures.finish())?;
    tell(&auditor, from, signatures, is_json)
}

fn tell(auditor: &Auditor, from: LogIndex, signatures: u64, is_json: bool) -> Result<(), CliError> {
    let (compared, agreed, last) = (auditor.compared(), auditor.agreed(), auditor.engine().last_applied());
    let hash: String = auditor.engine().state_hash().iter().map(|byte| format!("{byte:02x}")).collect();
    if is_json {
        let json = json!({
            "sound": true, "from_snapshot": from.to_string(), "last_index": last.to_string(), "entries": last.0 - from.0,
            "states_compared": compared, "agreed_index": agreed.to_string(), "state_hash": hash,
            "signatures_checked": signatures,
        });
        return print(&format!("{json}\n"));
    }
    let begun = if from.0 == 0 { String::new() } else { format!(", from the snapshot of entry {from} on") };
    let compared = match compared {
        0 => "no state to compare with: neither a hash in the log nor a snapshot after its beginning".to_owned(),
        count => format!("{count} states compared and equal, the last after entry {agreed}"),
    };
    let signed = match signatures {
        0 => String::new(),
        count => format!("; {count} signatures of transactions checked"),
    };
    print(&format!(
        "sound: {} entries replayed (to {last}){begun}; {compared}{signed}\nstate after entry {last}: {hash}\n",
        last.0 - from.0
    ))
}

/// What the first reading finds.
struct Read {
    first: LogIndex,
    last: LogIndex,
    expected: Vec<Checkpoint>,
}

fn read(dir: &Path) -> Result<Read, CliError> {
    let mut found = Read { first: LogIndex(0), last: LogIndex(0), expected: Vec::new() };
    let (mut progress, mut count) = (Slow::new("reading the log", None), 0);
    each_entry(dir, |entry| {
        if count == 0 {
            found.first = entry.log_index;
        }
        count += 1;
        found.last = entry.log_index;
        found.expected.extend(Auditor::checkpoint(&entry));
        progress.set(count);
        Ok(())
    })?;
    progress.finish();
    Ok(found)
}

/// Calls `each` with every entry, of a replica's log those that it knew to be decided.
fn each_entry(dir: &Path, mut each: impl FnMut(Entry) -> Result<(), CliError>) -> Result<(), CliError> {
    let mut each_bytes = |log_index: LogIndex, bytes: &[u8]| {
        let entry = decode_entry(log_index, bytes).map_err(|e| CliError::Damaged(format!("entry {log_index}: {e}")))?;
        each(entry)
    };
    if is_replica(dir) {
        return each_decided(&dir.join(REPLICA), |log_index, bytes| each_bytes(log_index, bytes).map(|()| true));
    }
    let (mut reader, _lock) = while_waiting("opening the log", || open_whole(&RealDisk, &dir.join("log"), None))?;
    while let Some(stored) = reader.next()? {
        each_bytes(stored.index, stored.payload)?;
    }
    Ok(())
}

/// How often the snapshots of a venue that runs are looked at: it may remove one under the reader's hands.
const LOOKS_MAX: usize = 4;

fn states_beside(dir: &Path) -> Result<Vec<(Checkpoint, Engine)>, CliError> {
    let mut looks = 1;
    loop {
        match states(dir) {
            Err(_) if looks < LOOKS_MAX => looks += 1,
            read => return read,
        }
    }
}

/// The states in the snapshots, oldest first.
fn states(dir: &Path) -> Result<Vec<(Checkpoint, Engine)>, CliError> {
    let mut states = Vec::new();
    let mut keep = |log_index: LogIndex, bytes: &[u8]| {
        let damaged = |detail| CliError::Damaged(format!("the snapshot of entry {log_index} does not restore: {detail}"));
        let engine = engine_of_snapshot(bytes).map_err(damaged)?;
        states.push((Checkpoint { log_index, state_hash: engine.state_hash() }, engine));
        Ok::<(), CliError>(())
    };
    if is_replica(dir) {
        let dump = Dump::open_whole(&RealDisk, &dir.join(REPLICA)).map_err(|e| CliError::Damaged(e.to_string()))?;
        for info in &dump.snapshots {
            let bytes = dump.state(info).map_err(|e| CliError::Damaged(e.to_string()))?;
            keep(info.meta.log_index, &bytes)?;
        }
    }
    Ok(states)
}
