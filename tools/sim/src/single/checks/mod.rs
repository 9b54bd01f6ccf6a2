//! The checkers: one file for each thing that must hold, fed from outside the node.
//!
//! | file | what must hold |
//! | --- | --- |
//! | `archive.rs` | what was durable once stays, with its bytes, at its place |
//! | `acknowledged.rs` | an answer says what the log says, and is never lost |
//! | `applied_once.rs` | nothing is in the log that was not asked for, nor more often than it was asked, nor after a refusal |
//! | `durable_first.rs` | no event is released before its entry would survive a power failure |
//! | `replay.rs` | events and state are those of a replay of the whole log from scratch |
//! | `conservation.rs` | of every asset there is what was deposited and not withdrawn |
//! | `depth.rs` | readers of events and of market data hold the engine's books |
//! | `log_time.rs` | time in the log never goes back |
//! | `progress.rs` | once faults stop everybody is answered, and what batch markets collected is cleared |

mod acknowledged;
mod applied_once;
mod archive;
mod durable_first;
mod progress;

use walras_log_store::sim_disk::SimDisk;
use walras_types::LogIndex;

use crate::common::checks::{Checked, Violation, conservation, depth, log_time, replay};
use crate::single::client::Client;
use crate::single::messages::{Answer, AttemptId};
use crate::single::node::{Process, Released};
use crate::single::traffic::Traffic;

/// Everything that is checked.
pub(crate) struct Checks {
    archive: archive::Archive,
    acknowledged: acknowledged::Acknowledged,
    applied_once: applied_once::AppliedOnce,
    durable_first: durable_first::DurableFirst,
    replay: replay::Replay,
    conservation: conservation::Conservation,
    log_time: log_time::LogTime,
}

impl Checks {
    pub(crate) fn new() -> Self {
        Self {
            archive: archive::Archive::default(),
            acknowledged: acknowledged::Acknowledged::default(),
            applied_once: applied_once::AppliedOnce::default(),
            durable_first: durable_first::DurableFirst::default(),
            replay: replay::Replay::new(1),
            conservation: conservation::Conservation::default(),
            log_time: log_time::LogTime::default(),
        }
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.archive.end().0 - 1
    }

    /// A batch may have become durable: reads what is new.
    pub(crate) fn on_log_written(&mut self, process: &Process, traffic: &Traffic) -> Checked {
        self.read_log(process, self.archive.end(), traffic)
    }

    /// A node has recovered: reads its whole log again.
    pub(crate) fn on_recovered(&mut self, process: &Process, snapshot_index: LogIndex, traffic: &Traffic) -> Checked {
        let known_end = self.archive.end();
        self.read_log(process, LogIndex(1), traffic)?;
        self.archive.check_recovered(process, known_end, snapshot_index)?;
        self.acknowledged.check_recovered(process, snapshot_index)?;
        self.replay.check_state(process.engine())?;
        self.conservation.check(process.engine(), &self.replay)?;
        depth::check(process.engine(), depth::of(process.listener()))
    }

    fn read_log(&mut self, process: &Process, from: LogIndex, traffic: &Traffic) -> Checked {
        let Some(read) = process.log_entries_from(from) else { return Ok(()) };
        let entries = match read {
            Ok(entries) => entries,
            Err(error) => return Err(Violation::new("archive", format!("the open log does not read: {error}"))),
        };
        for (index, bytes) in entries {
            if let Some(entry) = self.archive.hold(index, bytes)? {
                self.log_time.on_entry(&entry)?;
                self.applied_once.on_entry(&entry, traffic)?;
                self.replay.on_entry(&entry);
            }
        }
        Ok(())
    }

    /// The node releases events to everybody.
    pub(crate) fn on_released(&mut self, released: &Released, disk: &SimDisk) -> Checked {
        self.durable_first.on_released(released, self.archive.end(), disk)?;
        self.replay.check_released(released.log_index, released.time, &released.events)
    }

    /// The node answers an attempt; `before` is what it answered earlier.
    pub(crate) fn on_answer(&mut self, attempt: AttemptId, answer: &Answer, before: Option<&Answer>, traffic: &Traffic) -> Checked {
        let body = &traffic.attempt(attempt).body;
        self.acknowledged.on_answer(attempt, body, answer, before, self.archive.end())?;
        self.applied_once.check(body, traffic)
    }

    /// The node has applied entries.
    pub(crate) fn on_applied(&mut self, process: &Process) -> Checked {
        self.conservation.check(process.engine(), &self.replay)?;
        depth::check(process.engine(), depth::of(process.listener()))?;
        self.replay.check_state_sometimes(process.engine())
    }

    /// Time is up for what was asked.
    pub(crate) fn check_progress(&self, clients: &[Client], process: Option<&Process>) -> Checked {
        progress::check(clients, process)
    }

    /// The run is over: everything once more, from nothing.
    pub(crate) fn on_end(&mut self, process: &Process) -> Checked {
        process.engine().check_invariants();
        process.listener().check_invariants();
        self.replay.check_state(process.engine())?;
        self.archive.replay_from_scratch(process.engine())
    }
}
