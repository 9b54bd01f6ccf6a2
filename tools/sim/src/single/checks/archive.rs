//! What was durable once stays, with its bytes, at its place.

use walras_engine::Engine;
use walras_order_book::Art;
use walras_sequencer::{Entry, decode_entry};
use walras_types::LogIndex;

use crate::common::checks::{Checked, Violation};
use crate::single::node::Process;

/// Every entry that the log ever held durably, copied from the disk when it was new.
#[derive(Debug, Default)]
pub(super) struct Archive {
    entries: Vec<Vec<u8>>,
}

const CHECK: &str = "archive";

impl Archive {
    /// The position after the last entry.
    pub(super) fn end(&self) -> LogIndex {
        LogIndex(self.entries.len() as u64 + 1)
    }

    /// Takes an entry as the log shows it; gives it back decoded when it is new.
    pub(super) fn hold(&mut self, index: LogIndex, bytes: Vec<u8>) -> Result<Option<Entry>, Violation> {
        if index > self.end() {
            return Err(Violation::new(CHECK, format!("the log goes from {} to {index}", self.end())));
        }
        if let Some(known) = self.entries.get(index.0 as usize - 1) {
            let same = *known == bytes;
            return if same { Ok(None) } else { Err(Violation::new(CHECK, format!("entry {index} is another than it was"))) };
        }
        let entry = decode_entry(index, &bytes).map_err(|error| Violation::new(CHECK, format!("entry {index}: {error}")))?;
        self.entries.push(bytes);
        Ok(Some(entry))
    }

    /// Nothing that was durable before is missing after recovery.
    pub(super) fn check_recovered(&self, process: &Process, known_end: LogIndex, snapshot_index: LogIndex) -> Checked {
        let applied = process.engine().last_applied();
        if applied.next() < known_end {
            let detail = format!(
                "the log held entries before {known_end}; after recovery (snapshot {snapshot_index}) the last is {applied}"
            );
            return Err(Violation::new(CHECK, detail));
        }
        Ok(())
    }

    /// The whole log into a new engine with the other price index.
    pub(super) fn replay_from_scratch(&self, reached: &Engine) -> Checked {
        let mut engine = Engine::<Art>::with_hash_seed(0x5eed);
        let mut events = Vec::new();
        for (index, bytes) in (1..=reached.last_applied().0).map(LogIndex).zip(&self.entries) {
            let entry = decode_entry(index, bytes).expect("it was decoded when it was taken");
            entry.apply(&mut engine, &mut events);
            events.clear();
        }
        if engine.state_hash() == reached.state_hash() {
            Ok(())
        } else {
            Err(Violation::new("replay", "a replay of the whole log from scratch ends in another state"))
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_sequencer::encode_entry;
    use walras_types::TimeNs;
    use walras_wire::{Command, VenueCommand};

    use super::*;

    fn bytes(time: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_entry(TimeNs(time), None, &Command::Venue(VenueCommand::Tick), &mut bytes);
        bytes
    }

    #[test]
    fn gaps_and_changes_are_found() {
        let mut archive = Archive::default();
        assert!(archive.hold(LogIndex(1), bytes(5)).unwrap().is_some());
        assert!(archive.hold(LogIndex(1), bytes(5)).unwrap().is_none());
        assert!(archive.hold(LogIndex(1), bytes(6)).is_err(), "another entry at its place");
        assert!(archive.hold(LogIndex(3), bytes(6)).is_err(), "one is missing");
        assert!(archive.hold(LogIndex(2), vec![1, 2]).is_err(), "no entry at all");
    }

    #[test]
    fn another_state_than_a_replay_gives_is_found() {
        let mut archive = Archive::default();
        archive.hold(LogIndex(1), bytes(5)).unwrap();
        let mut engine = Engine::new();
        engine.apply(LogIndex(1), TimeNs(6), &Command::Venue(VenueCommand::Tick), &mut Vec::new());
        assert!(archive.replay_from_scratch(&engine).is_err());
    }
}
