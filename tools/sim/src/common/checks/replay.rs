//! Events and state are those of a replay of the whole log from scratch, by an engine that never stopped.

use walras_engine::{Engine, Numbered};
use walras_sequencer::Entry;
use walras_types::{LogIndex, TimeNs};
use walras_wire::Event;

use super::{Checked, Violation};

/// What a replay of an entry gave.
pub(crate) struct Replayed {
    pub(crate) entry: Entry,
    /// What it was to its session.
    pub(crate) numbered: Option<Numbered>,
    pub(crate) events: Vec<Event>,
    /// The hash of the state after it, where it was taken.
    pub(crate) hash: Option<[u8; 32]>,
}

pub(crate) struct Replay {
    engine: Engine,
    entries: Vec<Replayed>,
    /// A hash is taken after each so many entries.
    hash_every: u64,
    asked: u64,
}

const CHECK: &str = "replay";

/// A hash of the node's state costs as much as everything else, so it is taken now and then.
const TRIED_EVERY: u64 = 8;

impl Replay {
    pub(crate) fn new(hash_every: u64) -> Self {
        Self { engine: Engine::new(), entries: Vec::new(), hash_every, asked: 0 }
    }

    pub(crate) fn on_entry(&mut self, entry: &Entry) {
        let mut events = Vec::new();
        let numbered = entry.apply(&mut self.engine, &mut events);
        let hash = self.hashes(entry.log_index).then(|| self.engine.state_hash());
        self.entries.push(Replayed { entry: entry.clone(), numbered, events, hash });
    }

    /// The events of the last entry, for whoever plants a fault in them.
    pub(crate) fn last_events_mut(&mut self) -> Option<&mut Vec<Event>> {
        self.entries.last_mut().map(|replayed| &mut replayed.events)
    }

    /// Whether the hash of the state after this entry is taken.
    pub(crate) fn hashes(&self, index: LogIndex) -> bool {
        index.0.is_multiple_of(self.hash_every)
    }

    /// How many entries there were.
    pub(crate) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The state after the last entry.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What the replay of an entry gave; `None` for one that was not there yet.
    pub(crate) fn get(&self, index: LogIndex) -> Option<&Replayed> {
        self.entries.get(usize::try_from(index.0.checked_sub(1)?).ok()?)
    }

    /// The events of an entry.
    pub(crate) fn events(&self, index: LogIndex) -> &[Event] {
        &self.entries[index.0 as usize - 1].events
    }

    pub(crate) fn check_released(&self, log_index: LogIndex, time: TimeNs, events: &[Event]) -> Checked {
        let Replayed { entry, events: replayed, .. } = &self.entries[log_index.0 as usize - 1];
        if (entry.time, replayed.as_slice()) == (time, events) {
            return Ok(());
        }
        let detail = format!("entry {log_index} was released at {time} as {events:?}; a replay gives {entry:?} {replayed:?}");
        Err(Violation::new(CHECK, detail))
    }

    pub(crate) fn check_state_sometimes(&mut self, engine: &Engine) -> Checked {
        self.asked += 1;
        if self.asked.is_multiple_of(TRIED_EVERY) { self.check_state(engine) } else { Ok(()) }
    }

    pub(crate) fn check_state(&self, engine: &Engine) -> Checked {
        let applied = engine.last_applied();
        if applied.0 == 0 {
            return Ok(());
        }
        let Some(Replayed { hash, .. }) = self.entries.get(applied.0 as usize - 1) else {
            let known = self.entries.len();
            return Err(Violation::new(CHECK, format!("the state is that of entry {applied}, of which the log holds {known}")));
        };
        if hash.is_none_or(|hash| hash == engine.state_hash()) {
            Ok(())
        } else {
            Err(Violation::new(CHECK, format!("after entry {applied} the state is not that of a replay")))
        }
    }
}
