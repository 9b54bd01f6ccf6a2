//! Events and state are those of a replay of the whole log from scratch, by an engine that never stopped.

use std::collections::VecDeque;

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
    /// The hash of the state after it, where it was kept.
    pub(crate) hash: Option<[u8; 32]>,
}

pub(crate) struct Replay {
    engine: Engine,
    entries: Vec<Replayed>,
    /// The state is kept after each so many entries.
    kept_every: u64,
    /// The states that were kept last, each with its hash behind it: whoever has just applied these entries is held against their bytes,
    /// which costs a fraction of a hash.
    kept: VecDeque<(LogIndex, Vec<u8>)>,
    asked: u64,
}

const CHECK: &str = "replay";

/// A look at the whole of the node's state costs as much as everything else, so it is taken now and then.
const TRIED_EVERY: u64 = 8;

/// States that are kept whole.
const KEPT_MAX: usize = 64;
const HASH_LEN: usize = 32;

impl Replay {
    pub(crate) fn new(kept_every: u64) -> Self {
        Self { engine: Engine::new(), entries: Vec::new(), kept_every, kept: VecDeque::new(), asked: 0 }
    }

    pub(crate) fn on_entry(&mut self, entry: &Entry) {
        let mut events = Vec::new();
        let numbered = entry.apply(&mut self.engine, &mut events);
        let hash = self.keeps(entry.log_index).then(|| self.keep(entry.log_index));
        self.entries.push(Replayed { entry: entry.clone(), numbered, events, hash });
    }

    /// Keeps the state after this entry; its hash.
    fn keep(&mut self, index: LogIndex) -> [u8; HASH_LEN] {
        let oldest = if self.kept.len() < KEPT_MAX { None } else { self.kept.pop_front() };
        let mut bytes = oldest.map_or_else(Vec::new, |(_, bytes)| bytes);
        bytes.clear();
        self.engine.snapshot(&mut bytes);
        let hash = *bytes.last_chunk().expect("a snapshot ends with its hash");
        self.kept.push_back((index, bytes));
        hash
    }

    /// The events of the last entry, for whoever plants a fault in them.
    pub(crate) fn last_events_mut(&mut self) -> Option<&mut Vec<Event>> {
        self.entries.last_mut().map(|replayed| &mut replayed.events)
    }

    /// Whether the state after this entry is kept.
    pub(crate) fn keeps(&self, index: LogIndex) -> bool {
        index.0.is_multiple_of(self.kept_every)
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
        if hash.is_none_or(|hash| self.is_state(engine, hash)) {
            Ok(())
        } else {
            Err(Violation::new(CHECK, format!("after entry {applied} the state is not that of a replay")))
        }
    }

    /// Whether an engine's state is the one that had this hash.
    pub(crate) fn is_state(&self, engine: &Engine, hash: [u8; HASH_LEN]) -> bool {
        let applied = engine.last_applied();
        match self.kept.binary_search_by_key(&applied, |(index, _)| *index) {
            Ok(at) => has_bytes(engine, &self.kept[at].1),
            Err(_) => engine.state_hash() == hash,
        }
    }
}

/// Whether an engine's snapshot is this one, but for the hash at its end.
fn has_bytes(engine: &Engine, snapshot: &[u8]) -> bool {
    let mut left = &snapshot[..snapshot.len() - HASH_LEN];
    let mut is_same = true;
    engine.encode_state(&mut |piece| match left.strip_prefix(piece) {
        Some(rest) => left = rest,
        None => is_same = false,
    });
    is_same && left.is_empty()
}

#[cfg(test)]
mod tests {
    use walras_testkit::Choices;
    use walras_testkit::commands::{self, Range};

    use super::*;

    /// Whether the last state is kept whole or only by its hash, every difference is found.
    #[test]
    fn states_are_told_apart_by_bytes_as_by_hashes() {
        let mut replay = Replay::new(1);
        let mut engines: Vec<Engine> = (0..3).map(|_| Engine::new()).collect();
        for command in commands::opening(&mut Choices::of_seed(3), Range::Near) {
            let log_index = LogIndex(replay.len() + 1);
            let entry = Entry { log_index, time: TimeNs(1), ordinal: None, content: command.into() };
            replay.on_entry(&entry);
            let hash = replay.get(log_index).unwrap().hash.unwrap();
            assert_eq!(hash, replay.engine().state_hash());
            for (engine, time) in engines.iter_mut().zip([1, 1, 2]) {
                engine.apply(log_index, TimeNs(time), &command, &mut Vec::new());
            }
            for engine in &engines {
                assert_eq!(replay.is_state(engine, hash), engine.state_hash() == hash);
            }
            assert!(replay.check_state(&engines[0]).is_ok() && replay.check_state(&engines[2]).is_err());
        }
        // By its hash alone.
        replay.kept.pop_back();
        assert!(replay.check_state(&engines[0]).is_ok() && replay.check_state(&engines[2]).is_err());
    }
}
