//! Events and state are those of a replay of the whole log from scratch, by an engine that never stopped.

use std::collections::{BTreeMap, VecDeque};

use walras_engine::{Engine, Numbered};
use walras_order_book::Art;
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
}

#[cfg(test)]
impl Replayed {
    /// A command that nobody numbered or signed, and what happened.
    pub(crate) fn plain(index: u64, time_ns: u64, command: walras_wire::Command, events: Vec<Event>) -> Self {
        let (log_index, time) = (LogIndex(index), TimeNs(time_ns));
        let entry = Entry { log_index, time, ordinal: None, key: None, nonce: None, content: command.into() };
        Self { entry, numbered: None, events }
    }
}

pub(crate) struct Replay {
    engine: Engine,
    entries: Vec<Replayed>,
    /// The state is kept after each so many entries.
    kept_every: u64,
    /// The bytes of the states that were kept last: a replica that has just applied these entries is compared with them, which
    /// costs a fraction of a hash.
    kept: VecDeque<(LogIndex, Vec<u8>)>,
    kept_bytes: usize,
    /// The hashes of those before.
    hashes: BTreeMap<LogIndex, [u8; 32]>,
}

const CHECK: &str = "replay";

/// Bytes of the states that are kept whole.
const KEPT_BYTES_MAX: usize = 4 << 20;

impl Replay {
    pub(crate) fn new(kept_every: u64) -> Self {
        let (kept, hashes) = (VecDeque::new(), BTreeMap::new());
        Self { engine: Engine::new(), entries: Vec::new(), kept_every, kept, kept_bytes: 0, hashes }
    }

    pub(crate) fn on_entry(&mut self, entry: &Entry) {
        let mut events = Vec::new();
        let numbered = entry.apply(&mut self.engine, &mut events);
        if self.keeps(entry.log_index) {
            self.keep(entry.log_index);
        }
        self.entries.push(Replayed { entry: entry.clone(), numbered, events });
    }

    /// Keeps the state after this entry.
    fn keep(&mut self, index: LogIndex) {
        let mut bytes = Vec::new();
        while self.kept_bytes > KEPT_BYTES_MAX
            && let Some((index, oldest)) = self.kept.pop_front()
        {
            self.hashes.insert(index, *blake3::hash(&oldest).as_bytes());
            self.kept_bytes -= oldest.len();
            bytes = oldest;
        }
        bytes.clear();
        self.engine.state_bytes(&mut bytes);
        self.kept_bytes += bytes.len();
        self.kept.push_back((index, bytes));
    }

    /// The events of the last entry, to plant a fault in them.
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

    pub(crate) fn check_state(&self, engine: &Engine) -> Checked {
        let applied = engine.last_applied();
        if applied.0 == 0 {
            return Ok(());
        }
        if applied.0 > self.len() {
            let known = self.len();
            return Err(Violation::new(CHECK, format!("the state is that of entry {applied}, of which the log holds {known}")));
        }
        if self.is_state(engine) == Some(false) {
            return Err(Violation::new(CHECK, format!("after entry {applied} the state is not that of a replay")));
        }
        Ok(())
    }

    /// The whole log again, by an engine with the other price index and other hashes: it ends in the same state.
    pub(crate) fn check_by_other_engine(&self) -> Checked {
        let (mut engine, mut events) = (Engine::<Art>::with_hash_seed(0x5eed), Vec::new());
        for Replayed { entry, .. } in &self.entries {
            entry.apply(&mut engine, &mut events);
            events.clear();
        }
        if engine.state_hash() == self.engine.state_hash() {
            return Ok(());
        }
        Err(Violation::new(CHECK, "a replay of the whole log by an engine with the other price index ends in another state"))
    }

    /// Whether an engine's state is that of the replay after the same entry; `None` where that was not kept.
    pub(crate) fn is_state(&self, engine: &Engine) -> Option<bool> {
        let applied = engine.last_applied();
        match self.kept.binary_search_by_key(&applied, |(index, _)| *index) {
            Ok(at) => Some(engine.has_state_bytes(&self.kept[at].1)),
            Err(_) => self.hashes.get(&applied).map(|hash| engine.state_hash() == *hash),
        }
    }
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
            replay.on_entry(&Replayed::plain(log_index.0, 1, command, Vec::new()).entry);
            for (engine, time) in engines.iter_mut().zip([1, 1, 2]) {
                engine.apply(log_index, TimeNs(time), &command, &mut Vec::new());
            }
            for engine in &engines {
                assert_eq!(replay.is_state(engine), Some(engine.state_hash() == replay.engine().state_hash()));
            }
            assert!(replay.check_state(&engines[0]).is_ok() && replay.check_state(&engines[2]).is_err());
        }
        // By its hash alone.
        replay.kept_bytes += KEPT_BYTES_MAX;
        replay.keep(LogIndex(replay.len() + 1));
        assert_eq!(replay.kept.len(), 1);
        assert!(replay.check_state(&engines[0]).is_ok() && replay.check_state(&engines[2]).is_err());
        for index in 1..=2 {
            engines[0].apply(
                LogIndex(replay.len() + index),
                TimeNs(1),
                &walras_wire::Command::Venue(walras_wire::VenueCommand::Tick),
                &mut Vec::new(),
            );
        }
        assert_eq!(replay.is_state(&engines[0]), None, "nobody kept it");
    }

    #[test]
    fn another_end_by_the_other_engine_is_found() {
        let mut replay = Replay::new(1);
        for command in commands::opening(&mut Choices::of_seed(3), Range::Near) {
            let entry = Replayed::plain(replay.len() + 1, 1, command, Vec::new()).entry;
            replay.on_entry(&entry);
        }
        assert!(replay.check_by_other_engine().is_ok());
        replay.entries.last_mut().expect("there are some").entry.time = TimeNs(2);
        assert!(replay.check_by_other_engine().is_err());
    }
}
