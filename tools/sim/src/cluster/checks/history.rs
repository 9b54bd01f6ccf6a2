//! All replicas apply the same log, in order, to the same events, answers and states as a replay of it.

use std::collections::BTreeMap;

use walras_consensus::ReplicaId;
use walras_engine::Engine;
use walras_replica::Origin;
use walras_sequencer::{AppliedEntry, Entry};
use walras_types::LogIndex;

use super::threads::Threads;
use crate::cluster::mutation::Mutation;
use crate::common::checks::conservation::Conservation;
use crate::common::checks::depth::{self, Market};
use crate::common::checks::log_time::LogTime;
use crate::common::checks::replay::Replay;
use crate::common::checks::{Checked, Violation};

/// The log as the first replica that applied each entry had it.
pub(super) struct History {
    replay: Replay,
    log_time: LogTime,
    conservation: Conservation,
    threads: Option<Threads>,
    mutation: Option<Mutation>,
    /// The entry that each replica applies next.
    next: BTreeMap<ReplicaId, LogIndex>,
}

/// A look at a whole state costs more than the rest, so it is taken now and then.
const KEPT_EVERY: u64 = 16;

impl History {
    /// `threads` also applies each entry, where that is asked for.
    pub(super) fn new(threads: Option<Threads>, mutation: Option<Mutation>) -> Self {
        Self {
            replay: Replay::new(KEPT_EVERY),
            log_time: LogTime::default(),
            conservation: Conservation::default(),
            threads,
            mutation,
            next: BTreeMap::new(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.replay.len()
    }

    /// The last entry that a replica has applied, as far as it was seen.
    pub(super) fn applied_by(&self, replica: ReplicaId) -> LogIndex {
        self.next.get(&replica).map_or(LogIndex(0), |next| LogIndex(next.0 - 1))
    }

    pub(super) fn replay(&self) -> &Replay {
        &self.replay
    }

    pub(super) fn on_start(&mut self, replica: ReplicaId, engine: &Engine, market: Market<'_>) -> Checked {
        self.next.insert(replica, engine.last_applied().next());
        depth::check(engine, market)?;
        self.replay.check_state(engine)
    }

    /// Whether it is new.
    pub(super) fn on_entry(&mut self, replica: ReplicaId, entry: &Entry) -> Result<bool, Violation> {
        let index = entry.log_index;
        if let Some(known) = self.replay.get(index) {
            if known.entry == *entry {
                return Ok(false);
            }
            let detail = format!("replica {replica} applies {entry:?}, another one applied {:?}", known.entry);
            return Err(Violation::new("log equality", detail));
        }
        if index.0 != self.replay.len() + 1 {
            let detail = format!("replica {replica} applies entry {index}, and nobody those from {} on", self.replay.len() + 1);
            return Err(Violation::new("log equality", detail));
        }
        self.log_time.on_entry(entry)?;
        self.replay.on_entry(entry);
        if let Some(threads) = &mut self.threads {
            threads.on_entry(&self.replay, self.replay.get(index).expect("it was replayed just now"))?;
        }
        if self.replay.keeps(index) {
            self.conservation.check(self.replay.engine(), &self.replay)?;
        }
        Ok(true)
    }

    /// From here on the last entry's events are those of a wrong engine.
    pub(super) fn spoil_last(&mut self, index: LogIndex) {
        if let (Some(mutation), Some(events)) = (self.mutation, self.replay.last_events_mut()) {
            mutation.spoil(index, events);
        }
    }

    pub(super) fn on_applied(
        &mut self,
        replica: ReplicaId,
        engine: &Engine,
        market: Market<'_>,
        applied: &AppliedEntry<'_, Origin>,
    ) -> Checked {
        let index = applied.entry.log_index;
        let next = self.next.insert(replica, index.next());
        // One that goes on from another's snapshot leaves some out.
        if next.is_some_and(|next| index < next) {
            let detail = format!("replica {replica} applies entry {index} again");
            return Err(Violation::new("applied once", detail));
        }
        let known = self.replay.get(index).expect("it was taken before");
        if known.numbered != applied.numbered {
            let detail = format!("to replica {replica} entry {index} is {:?}, to a replay {:?}", applied.numbered, known.numbered);
            return Err(Violation::new("replay", detail));
        }
        self.replay.check_released(index, applied.entry.time, applied.events)?;
        if self.replay.keeps(index) {
            depth::check(engine, market)?;
            self.replay.check_state(engine)?;
        }
        Ok(())
    }

    pub(super) fn on_end<'a>(&mut self, replicas: impl Iterator<Item = (ReplicaId, &'a Engine, Market<'a>)>) -> Checked {
        let head = self.replay.engine();
        head.check_invariants();
        let hash = head.state_hash();
        for (replica, engine, market) in replicas {
            engine.check_invariants();
            market.0.check_invariants();
            if let Some(readers) = market.1 {
                readers.check_invariants();
            }
            depth::check(engine, market)?;
            if engine.last_applied() == head.last_applied() && engine.state_hash() != hash {
                return Err(Violation::new("replay", format!("at the end the state of replica {replica} is not that of a replay")));
            }
        }
        self.replay.check_by_other_engine()?;
        self.conservation.check(head, &self.replay)
    }
}
