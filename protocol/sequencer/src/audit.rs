//! Replays a log from its beginning and compares the states on the way with those that the venue's leaders had: a checkpoint in the log
//! holds the hash of the state after an earlier entry. So the log is read twice, first for its checkpoints.

use std::collections::BTreeMap;

use walras_engine::Engine;
use walras_types::LogIndex;
use walras_wire::{Checkpoint, Command, Event};

use crate::entry::Entry;
use crate::sequencer::LogGap;

/// What speaks against a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// Entries do not follow each other.
    #[error(transparent)]
    Gap(#[from] LogGap),
    /// The state is another than the venue said it had.
    #[error(
        "after entry {log_index} the venue's state was another than the log makes of it, and it was the same after entry {agreed}: the log \
         was changed, the venue computed wrongly, or this program is of another version"
    )]
    Differs {
        /// The last entry after which they were equal; 0 for none.
        agreed: LogIndex,
        /// The entry.
        log_index: LogIndex,
    },
}

/// Replays a log and compares.
pub struct Auditor {
    engine: Engine,
    /// Hashes to come.
    expected: BTreeMap<LogIndex, [u8; 32]>,
    agreed: LogIndex,
    compared: u64,
    events: Vec<Event>,
}

impl Auditor {
    /// With the checkpoints that the log holds anywhere.
    #[must_use]
    pub fn new(checkpoints: impl IntoIterator<Item = Checkpoint>) -> Self {
        let expected = checkpoints.into_iter().map(|Checkpoint { log_index, state_hash }| (log_index, state_hash)).collect();
        let mut engine = Engine::new();
        engine.stop_telling_levels();
        Self { engine, expected, agreed: LogIndex(0), compared: 0, events: Vec::new() }
    }

    /// The checkpoint that an entry is, if it is one.
    #[must_use]
    pub fn checkpoint(entry: &Entry) -> Option<Checkpoint> {
        if let Command::Checkpoint(checkpoint) = entry.command { Some(checkpoint) } else { None }
    }

    /// Replays the next entry.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), AuditError> {
        let last = self.engine.last_applied();
        if entry.log_index != last.next() || entry.time < self.engine.time() {
            return Err(LogGap { last, found: entry.log_index }.into());
        }
        self.events.clear();
        entry.apply(&mut self.engine, &mut self.events);
        if let Some(hash) = self.expected.remove(&entry.log_index) {
            if self.engine.state_hash() != hash {
                return Err(AuditError::Differs { agreed: self.agreed, log_index: entry.log_index });
            }
            self.agreed = entry.log_index;
            self.compared += 1;
        }
        Ok(())
    }

    /// States that were compared and equal.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// The state so far.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}
