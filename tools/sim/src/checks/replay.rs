//! Events and state are those of a replay of the whole log from scratch, by an engine that never stopped.

use walras_engine::Engine;
use walras_sequencer::Entry;
use walras_types::LogIndex;
use walras_wire::Event;

use super::{Checked, Violation};
use crate::node::Released;

pub(super) struct Replay {
    engine: Engine,
    /// By entry: its events, and the hash of the state after it.
    entries: Vec<(Entry, Vec<Event>, [u8; 32])>,
    asked: u64,
}

const CHECK: &str = "replay";

/// A hash of the node's state costs as much as everything else, so it is taken now and then.
const TRIED_EVERY: u64 = 8;

impl Replay {
    pub(super) fn new() -> Self {
        Self { engine: Engine::new(), entries: Vec::new(), asked: 0 }
    }

    pub(super) fn on_entry(&mut self, entry: &Entry) {
        let mut events = Vec::new();
        self.engine.apply(entry.log_index, entry.time, &entry.command, &mut events);
        self.entries.push((*entry, events, self.engine.state_hash()));
    }

    /// The events of an entry.
    pub(super) fn events(&self, index: LogIndex) -> &[Event] {
        &self.entries[index.0 as usize - 1].1
    }

    pub(super) fn check_released(&self, released: &Released) -> Checked {
        let (entry, events, _) = &self.entries[released.log_index.0 as usize - 1];
        if (entry.time, events) == (released.time, &released.events) {
            return Ok(());
        }
        let detail = format!("entry {} was released as {released:?}; a replay gives {entry:?} {events:?}", released.log_index);
        Err(Violation::new(CHECK, detail))
    }

    pub(super) fn check_state_sometimes(&mut self, engine: &Engine) -> Checked {
        self.asked += 1;
        if self.asked.is_multiple_of(TRIED_EVERY) { self.check_state(engine) } else { Ok(()) }
    }

    pub(super) fn check_state(&self, engine: &Engine) -> Checked {
        let applied = engine.last_applied();
        if applied.0 == 0 {
            return Ok(());
        }
        let Some((_, _, hash)) = self.entries.get(applied.0 as usize - 1) else {
            let known = self.entries.len();
            return Err(Violation::new(CHECK, format!("the state is that of entry {applied}, of which the log holds {known}")));
        };
        if *hash == engine.state_hash() {
            Ok(())
        } else {
            Err(Violation::new(CHECK, format!("after entry {applied} the state is not that of a replay")))
        }
    }
}
