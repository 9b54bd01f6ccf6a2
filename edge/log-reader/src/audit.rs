//! Does the log make the states that the venue had?
//!
//! The log is read twice: once for the hashes of states that leaders recorded in it, once to replay it. The snapshots next to it are
//! further states to compare with. Where the log no longer begins with entry 1, the replay begins with the oldest snapshot that it
//! continues. The replay also checks the signatures of batch transactions.

use std::path::Path;

use walras_engine::Engine;
use walras_sequencer::Auditor;
use walras_terminal::progress::{Slow, while_waiting};
use walras_types::LogIndex;
use walras_wire::Checkpoint;

use crate::folder::states;
use crate::signatures::SignatureAudit;
use crate::{LogReadError, each_entry};

/// What an audit found: all is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// The entry after whose state the replay began; 0 for the beginning.
    pub from: LogIndex,
    /// The last entry replayed.
    pub last: LogIndex,
    /// States that were recorded, all equal to those of the replay.
    pub states_compared: u64,
    /// The entry after which the last of them was.
    pub agreed: LogIndex,
    /// Signatures of batch transactions that were checked.
    pub signatures_checked: u64,
    /// Hash of the last state.
    pub state_hash: [u8; 32],
}

/// Audits the log in a data folder. A venue may run there meanwhile: entries that come after the first reading are left out.
///
/// # Errors
/// The first entry or state that is not as it was, and which files cannot be read.
pub fn audit(dir: &Path) -> Result<AuditReport, LogReadError> {
    let Recorded { first, last, mut expected } = recorded(dir)?;
    let states = while_waiting("reading the snapshots", || states(dir))?;
    expected.extend(states.iter().map(|(known, _)| *known));
    let mut before = states.into_iter().map(|(_, engine)| engine).filter(|engine| engine.last_applied().next() >= first);
    let start = match first {
        LogIndex(0 | 1) => Engine::new(),
        _ => before.next().ok_or_else(|| {
            LogReadError::Damaged(format!(
                "the log begins with entry {first}, and no snapshot in the folder holds the state before that: restore the snapshots, \
                 or audit the folder of another replica"
            ))
        })?,
    };
    let from = start.last_applied();
    let mut signatures = SignatureAudit::from_state(&start)?;
    let mut auditor = Auditor::from_state(start, expected);
    let mut progress = Slow::new("replaying the log", Some(last.0.saturating_sub(from.0)));
    each_entry(dir, |entry| {
        if entry.log_index > from && entry.log_index <= last {
            auditor.apply(&entry).map_err(|e| LogReadError::damaged(&e))?;
            signatures.on_entry(&entry, auditor.events())?;
            progress.set(entry.log_index.0 - from.0);
        }
        Ok(())
    })?;
    progress.finish();
    let signatures_checked = while_waiting("checking the last signatures", || signatures.finish())?;
    Ok(AuditReport {
        from,
        last: auditor.engine().last_applied(),
        states_compared: auditor.compared(),
        agreed: auditor.agreed(),
        signatures_checked,
        state_hash: auditor.engine().state_hash(),
    })
}

/// What the first reading finds.
struct Recorded {
    first: LogIndex,
    last: LogIndex,
    expected: Vec<Checkpoint>,
}

fn recorded(dir: &Path) -> Result<Recorded, LogReadError> {
    let mut found = Recorded { first: LogIndex(0), last: LogIndex(0), expected: Vec::new() };
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
