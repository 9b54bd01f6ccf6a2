//! Replays a log from its beginning, or from a state that is trusted, and compares the states on the way with those that the venue
//! had: a checkpoint in the log holds the hash of the leader's state after an earlier entry, and snapshots beside it are such
//! states. So the log is read twice, first for its checkpoints.

use std::collections::BTreeSet;

use walras_engine::Engine;
use walras_types::LogIndex;
use walras_wire::{Checkpoint, Command, Event, VenueCommand};

use crate::entry::{Content, Entry, LogGap};

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
    expected: BTreeSet<(LogIndex, [u8; 32])>,
    agreed: LogIndex,
    compared: u64,
    events: Vec<Event>,
}

impl Auditor {
    /// From the beginning, with the checkpoints that the log holds anywhere.
    #[must_use]
    pub fn new(checkpoints: impl IntoIterator<Item = Checkpoint>) -> Self {
        Self::from_state(Engine::new(), checkpoints)
    }

    /// From this state on: of what came before nothing is said.
    #[must_use]
    pub fn from_state(mut engine: Engine, checkpoints: impl IntoIterator<Item = Checkpoint>) -> Self {
        engine.stop_telling_levels();
        let all = checkpoints.into_iter().map(|Checkpoint { log_index, state_hash }| (log_index, state_hash));
        let expected = all.filter(|(log_index, _)| *log_index > engine.last_applied()).collect();
        Self { agreed: engine.last_applied(), engine, expected, compared: 0, events: Vec::new() }
    }

    /// The checkpoint that an entry is, if it is one.
    #[must_use]
    pub fn checkpoint(entry: &Entry) -> Option<Checkpoint> {
        if let Content::Command(Command::Venue(VenueCommand::Checkpoint(checkpoint))) = entry.content {
            Some(checkpoint)
        } else {
            None
        }
    }

    /// Replays the next entry.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), AuditError> {
        let last = self.engine.last_applied();
        if entry.log_index != last.next() || entry.time < self.engine.time() {
            return Err(LogGap { last, found: entry.log_index }.into());
        }
        self.events.clear();
        entry.apply(&mut self.engine, &mut self.events);
        if self.expected.first().is_none_or(|(next, _)| *next != entry.log_index) {
            return Ok(());
        }
        let hash = self.engine.state_hash();
        while let Some((_, expected)) = self.expected.first().filter(|(next, _)| *next == entry.log_index) {
            if hash != *expected {
                return Err(AuditError::Differs { agreed: self.agreed, log_index: entry.log_index });
            }
            self.expected.pop_first();
            self.compared += 1;
        }
        self.agreed = entry.log_index;
        Ok(())
    }

    /// The last entry after which a state was compared and equal; before any, the one that it began after.
    #[must_use]
    pub fn agreed(&self) -> LogIndex {
        self.agreed
    }

    /// States that were compared and equal.
    #[must_use]
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// What the last entry did.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The state so far.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}
