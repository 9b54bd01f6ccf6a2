//! The state machine.

use std::collections::VecDeque;

use walras_engine::{Engine, Numbered};
use walras_types::{LogIndex, Ordinal, TimeNs};
use walras_wire::batch::BlockProposal;
use walras_wire::{BatchCommand, Command, Event, ShardCommand};

use crate::batches::{BatchDriver, BatchStep, SolveJob, Solved};
use crate::entry::{Content, Entry, KeyName, encode_clearing, encode_entry, encode_keyed};

/// A command that was not taken, handed back.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused<O>(pub O);

/// An entry whose index or time does not follow the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "log entry {found} does not follow {last}: the log and the snapshot do not belong together, or entries are missing; \
     restore both from the same backup"
)]
pub struct LogGap {
    /// Last entry applied.
    pub last: LogIndex,
    /// The one that came.
    pub found: LogIndex,
}

/// Entries for the log to make durable together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Index of the first entry.
    pub first: LogIndex,
    /// The entries' bytes, one after the other.
    pub bytes: Vec<u8>,
    /// Where each entry ends in `bytes`.
    pub ends: Vec<usize>,
}

impl Batch {
    /// The entries, in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|i| &self.bytes[if i == 0 { 0 } else { self.ends[i - 1] }..self.ends[i]])
    }

    /// Index of the last entry.
    #[must_use]
    pub fn last(&self) -> LogIndex {
        LogIndex(self.first.0 + self.ends.len() as u64 - 1)
    }
}

/// What came of one command, for whoever sent it and for everybody who watches.
#[derive(Debug)]
pub struct Applied<'a, O> {
    /// The command, where and when.
    pub entry: &'a Entry,
    /// Who sent it.
    pub origin: O,
    /// For a session's command: what it was to its session. `None` for others.
    pub numbered: Option<Numbered>,
    /// What happened.
    pub events: &'a [Event],
}

#[derive(Debug)]
struct Waiting<O> {
    entry: Entry,
    origin: O,
}

/// Orders, logs and applies commands. `O` says who sent a command; the sequencer only carries it.
pub struct Sequencer<O> {
    engine: Engine,
    waiting: VecDeque<Waiting<O>>,
    waiting_max: usize,
    next: LogIndex,
    time: TimeNs,
    /// The batch that collects.
    batch: Batch,
    /// Index after the last durable entry.
    durable_end: LogIndex,
    /// Index after the last entry handed to the log.
    in_log_end: LogIndex,
    events: Vec<Event>,
    driver: BatchDriver,
    /// By the clock that drives batches, as it was told last.
    now_ns: u64,
    steps: Vec<BatchStep>,
    /// Of one of several shards: where the log says that it began anew, which comes before anything else that is taken.
    mark: Option<LogIndex>,
}

impl<O> Sequencer<O> {
    /// Goes on from an engine that was restored or is new; at most `waiting_max` commands wait for the log at a time.
    #[must_use]
    pub fn new(engine: Engine, waiting_max: usize) -> Self {
        let next = engine.last_applied().next();
        let time = engine.time();
        Self {
            engine,
            waiting: VecDeque::new(),
            waiting_max,
            next,
            time,
            batch: Batch::default(),
            durable_end: next,
            in_log_end: next,
            events: Vec::new(),
            driver: BatchDriver::new(),
            now_ns: 0,
            steps: Vec::new(),
            mark: None,
        }
    }

    /// Recovery: applies an entry that the log already holds. Only before the first [`Sequencer::submit`].
    pub fn replay(&mut self, entry: &Entry) -> Result<(&Engine, &[Event]), LogGap> {
        assert!(self.waiting.is_empty(), "replay after the first command");
        if entry.log_index != self.next || entry.time < self.time {
            return Err(LogGap { last: self.engine.last_applied(), found: entry.log_index });
        }
        self.events.clear();
        entry.apply(&mut self.engine, &mut self.events);
        self.next = self.next.next();
        self.durable_end = self.next;
        self.in_log_end = self.next;
        self.time = entry.time;
        Ok((&self.engine, &self.events))
    }

    /// Takes a command: it now has an index and a time no earlier than any before it. Refused when too many wait.
    pub fn submit(&mut self, now: TimeNs, command: Command, origin: O) -> Result<LogIndex, Refused<O>>
    where
        O: Default,
    {
        self.submit_as(now, None, command, origin)
    }

    /// The same for one that may belong to a session: when it is applied the state says whether it is that session's turn.
    pub fn submit_as(&mut self, now: TimeNs, ordinal: Option<Ordinal>, command: Command, origin: O) -> Result<LogIndex, Refused<O>>
    where
        O: Default,
    {
        self.put(now, ordinal, None, command, origin)
    }

    /// The same for an operator's, which the log keeps with the API key that gave it.
    pub fn submit_keyed(&mut self, now: TimeNs, key: KeyName, command: Command, origin: O) -> Result<LogIndex, Refused<O>>
    where
        O: Default,
    {
        self.put(now, None, Some(key), command, origin)
    }

    fn put(
        &mut self,
        now: TimeNs,
        ordinal: Option<Ordinal>,
        key: Option<KeyName>,
        command: Command,
        origin: O,
    ) -> Result<LogIndex, Refused<O>>
    where
        O: Default,
    {
        if self.waiting.len() >= self.waiting_max {
            return Err(Refused(origin));
        }
        self.time = self.time.max(now);
        if self.mark.is_none() && self.engine.shard_place().count > 1 {
            let mark = Command::Shard(ShardCommand::DoubtTransfers);
            encode_entry(self.time, None, &mark, &mut self.batch.bytes);
            self.mark = Some(self.take(None, None, mark.into(), O::default()));
        }
        match key {
            None => encode_entry(self.time, ordinal, &command, &mut self.batch.bytes),
            Some(key) => encode_keyed(self.time, key, &command, &mut self.batch.bytes),
        }
        Ok(self.take(ordinal, key, command.into(), origin))
    }

    /// The bytes of an entry have been written: it gets the next place.
    fn take(&mut self, ordinal: Option<Ordinal>, key: Option<KeyName>, content: Content, origin: O) -> LogIndex {
        let log_index = self.next;
        self.next = log_index.next();
        if self.batch.ends.is_empty() {
            self.batch.first = log_index;
        }
        self.batch.ends.push(self.batch.bytes.len());
        self.waiting.push_back(Waiting { entry: Entry { log_index, time: self.time, ordinal, key, content }, origin });
        log_index
    }

    /// Hashes what batch markets commit to, which else the first block does.
    pub fn prepare_batches(&mut self) {
        self.engine.prepare_batches();
    }

    /// Closes batches whose time has come; those that are closed are for a solver. Call it after something was applied, and at
    /// [`Sequencer::next_batch_ns`]. `now_ns` is of any clock that goes on steadily, `now` the time of day, which may stand still.
    pub fn drive_batches(&mut self, now_ns: u64, now: TimeNs, jobs: &mut Vec<SolveJob>)
    where
        O: Default,
    {
        self.now_ns = now_ns;
        let mut steps = std::mem::take(&mut self.steps);
        self.driver.drive(now_ns, &self.engine, &mut steps);
        for step in steps.drain(..) {
            match step {
                // Where it is not taken, or the log does not take it, it is lost, and submitted again after a while.
                BatchStep::Close(close) => drop(self.submit(now, Command::Batch(BatchCommand::Close(close)), O::default())),
                BatchStep::Solve(job) => jobs.push(job),
            }
        }
        self.steps = steps;
    }

    /// When a batch is to be closed, or solved again, by the clock that goes on steadily.
    #[must_use]
    pub fn next_batch_ns(&self) -> u64 {
        self.driver.next_deadline_ns(&self.engine)
    }

    /// A solver is done: what it found is submitted, if it is still wanted.
    pub fn on_solved(&mut self, now_ns: u64, now: TimeNs, solved: Solved)
    where
        O: Default,
    {
        self.now_ns = now_ns;
        if let Some(block) = self.driver.on_solved(now_ns, solved, &self.engine) {
            self.submit_clearing(now, block, O::default());
        }
    }

    /// A clearing has to be taken even where many commands wait, or those would keep it out for ever; there is one of each market.
    fn submit_clearing(&mut self, now: TimeNs, block: Box<BlockProposal>, origin: O) {
        self.time = self.time.max(now);
        // One that has no bytes is none; the solver is asked again.
        if encode_clearing(self.time, &block, &mut self.batch.bytes).is_ok() {
            self.take(None, None, Content::Clearing(block), origin);
        }
    }

    /// What the log should make durable next: everything that has collected, or `None` while it is busy or there is nothing.
    /// `spare` is an emptied earlier batch, for its memory.
    pub fn next_batch(&mut self, spare: Batch) -> Option<Batch> {
        if self.log_is_busy() || self.batch.ends.is_empty() {
            return None;
        }
        let Batch { mut bytes, mut ends, .. } = spare;
        bytes.clear();
        ends.clear();
        self.in_log_end = self.next;
        Some(std::mem::replace(&mut self.batch, Batch { first: self.next, bytes, ends }))
    }

    /// Whether a batch is on its way.
    #[must_use]
    pub fn log_is_busy(&self) -> bool {
        self.durable_end < self.in_log_end
    }

    /// The batch is durable. Give the log its next one, then call [`Sequencer::apply_durable`]: so both work at once.
    pub fn on_durable(&mut self) {
        self.durable_end = self.in_log_end;
    }

    /// Applies the entries that are durable, in order.
    pub fn apply_durable(&mut self, mut emit: impl FnMut(&Engine, Applied<'_, O>)) {
        let now_ns = self.now_ns;
        while self.waiting.front().is_some_and(|w| w.entry.log_index < self.durable_end) {
            let Some(Waiting { entry, origin }) = self.waiting.pop_front() else { return };
            self.events.clear();
            let numbered = entry.apply(&mut self.engine, &mut self.events);
            if matches!(entry.content, Content::Clearing(_)) {
                self.driver.on_events(now_ns, &self.events);
            }
            emit(&self.engine, Applied { entry: &entry, origin, numbered, events: &self.events });
        }
    }

    /// The log could not take the batch and holds none of it. Every command that is not durable is handed back, and its index is free
    /// for another.
    pub fn on_log_failed(&mut self, mut hand_back: impl FnMut(O)) {
        let durable_count = self.waiting.partition_point(|w| w.entry.log_index < self.durable_end);
        for waiting in self.waiting.drain(durable_count..) {
            hand_back(waiting.origin);
        }
        self.next = self.durable_end;
        self.in_log_end = self.durable_end;
        self.mark = self.mark.filter(|mark| *mark < self.durable_end);
        self.batch.bytes.clear();
        self.batch.ends.clear();
    }

    /// The state after the last durable command.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Commands that wait for the log.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::{AccountId, Answer, AssetId, RejectReason, SessionId, SessionSeq, Symbol};
    use walras_wire::{AccountCommand, AssetSpec, OpenSession, SessionCommand, VenueCommand, content_digest};

    use super::*;
    use crate::entry::decode_entry;

    fn asset(id: u32) -> Command {
        let symbol = Symbol::new(&format!("A{id}")).unwrap();
        Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: AssetId(id), symbol, decimals: 2 }))
    }

    fn take(sequencer: &mut Sequencer<u32>) -> Option<Batch> {
        sequencer.next_batch(Batch::default())
    }

    fn applied(sequencer: &mut Sequencer<u32>) -> Vec<u32> {
        let mut origins = Vec::new();
        sequencer.apply_durable(|_, applied| origins.push(applied.origin));
        origins
    }

    #[test]
    fn nothing_is_applied_before_it_is_durable_and_the_log_is_never_given_two_batches() {
        let mut s = Sequencer::new(Engine::new(), 10);
        assert_eq!(s.submit(TimeNs(5), asset(0), 0), Ok(LogIndex(1)));
        let first = take(&mut s).unwrap();
        assert_eq!((first.first, first.last()), (LogIndex(1), LogIndex(1)));
        assert_eq!(s.submit(TimeNs(3), asset(1), 1), Ok(LogIndex(2)), "time goes back, the order does not");
        assert_eq!(take(&mut s), None, "the log is busy");
        assert_eq!(applied(&mut s), [0; 0]);
        s.on_durable();
        let second = take(&mut s).unwrap();
        assert_eq!(applied(&mut s), [0], "the second waits though it is with the log");
        assert_eq!(s.engine().last_applied(), LogIndex(1));
        s.on_durable();
        assert_eq!(applied(&mut s), [1]);
        let entry = decode_entry(LogIndex(2), second.entries().next().unwrap()).unwrap();
        assert_eq!((entry.time, entry.content), (TimeNs(5), asset(1).into()), "stamped no earlier than the entry before it");
    }

    /// One of several shards says that it begins anew before it takes anything: again, if the log does not take that.
    #[test]
    fn a_shard_marks_its_beginning_first() {
        let place = walras_wire::ShardPlace { own: walras_types::ShardId(0), count: 2 };
        let configure = Command::Shard(ShardCommand::Configure(place));
        let mut s = Sequencer::new(Engine::new(), 10);
        let mut contents = Vec::new();
        let mut step = |s: &mut Sequencer<u32>, command: Command, is_taken: bool| {
            s.submit(TimeNs(1), command, 1).unwrap();
            take(s).unwrap();
            if is_taken {
                s.on_durable();
                s.apply_durable(|_, applied| contents.push(applied.entry.content.clone()));
            } else {
                s.on_log_failed(|_| ());
            }
        };
        step(&mut s, asset(0), true);
        step(&mut s, configure, true);
        step(&mut s, asset(1), false);
        step(&mut s, asset(1), true);
        step(&mut s, asset(2), true);
        let mark = Command::Shard(ShardCommand::DoubtTransfers);
        let expected = [asset(0), configure, mark, asset(1), asset(2)].map(Content::from);
        assert_eq!(contents, expected);
    }

    #[test]
    fn what_the_log_refuses_is_handed_back_and_leaves_no_trace() {
        let mut s = Sequencer::new(Engine::new(), 3);
        for origin in 0..2 {
            s.submit(TimeNs(1), asset(origin), origin).unwrap();
            if origin == 0 {
                take(&mut s).unwrap();
                s.on_durable();
            }
        }
        take(&mut s).unwrap();
        s.submit(TimeNs(1), asset(2), 2).unwrap();
        assert_eq!(s.submit(TimeNs(1), asset(3), 3), Err(Refused(3)), "three wait");
        let mut back = Vec::new();
        s.on_log_failed(|origin| back.push(origin));
        back.sort_unstable();
        assert_eq!(back, [1, 2]);
        assert_eq!(applied(&mut s), [0], "what was durable before still counts");
        assert_eq!(s.submit(TimeNs(1), asset(1), 7), Ok(LogIndex(2)), "the index is free again");
        assert_eq!(take(&mut s).unwrap().entries().len(), 1);
    }

    #[test]
    fn recovery_refuses_a_gap() {
        let mut s: Sequencer<()> = Sequencer::new(Engine::new(), 3);
        let entry = |index, time| Entry {
            log_index: LogIndex(index),
            time: TimeNs(time),
            ordinal: None,
            key: None,
            content: Command::Account(AccountCommand::Create(AccountId(0))).into(),
        };
        s.replay(&entry(1, 5)).unwrap();
        assert_eq!(s.replay(&entry(3, 6)).map(drop), Err(LogGap { last: LogIndex(1), found: LogIndex(3) }));
        assert!(s.replay(&entry(2, 4)).is_err(), "time went back");
        s.replay(&entry(2, 5)).unwrap();
        assert_eq!(s.submit(TimeNs(1), Command::Venue(VenueCommand::Tick), ()), Ok(LogIndex(3)));
    }

    #[test]
    fn what_is_sent_again_under_its_number_is_done_once() {
        let mut s = Sequencer::new(Engine::new(), 10);
        let applied = |s: &mut Sequencer<u32>| {
            let log = take(s).unwrap();
            s.on_durable();
            let mut all = Vec::new();
            s.apply_durable(|_, applied| all.push((applied.entry.log_index, applied.entry.ordinal, applied.numbered)));
            assert_eq!(log.entries().len(), all.len());
            for ((log_index, ordinal, _), bytes) in all.iter().zip(log.entries()) {
                assert_eq!(decode_entry(*log_index, bytes).unwrap().ordinal, *ordinal, "the log has it too");
            }
            all.into_iter().map(|(_, _, numbered)| numbered).collect::<Vec<_>>()
        };
        s.submit(TimeNs(1), Command::Session(SessionCommand::Open(OpenSession { account: None, token: 5 })), 0).unwrap();
        assert_eq!(applied(&mut s), [None]);
        let ordinal = |n| Some(Ordinal { session: SessionId(1), session_seq: SessionSeq(n) });
        for (n, id) in [(1, 0), (1, 0), (3, 2), (2, 1), (1, 7)] {
            s.submit_as(TimeNs(1), ordinal(n), asset(id), 0).unwrap();
        }
        let content = |id| content_digest(&asset(id), &mut Vec::new());
        let one = Answer { log_index: LogIndex(2), rejected: None, content: content(0) };
        let four = Answer { log_index: LogIndex(5), rejected: None, content: content(1) };
        let [gap, reused] = [RejectReason::SessionSeqGap, RejectReason::SessionSeqReused].map(Numbered::Refused);
        assert_eq!(applied(&mut s), [Numbered::Done(one), Numbered::Repeated(one), gap, Numbered::Done(four), reused].map(Some));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Submit(u64),
        Take,
        Durable,
        Fail,
        Apply,
    }

    proptest! {
        /// Whatever the log does, what it holds in the end replays to the state the sequencer is in, and everybody who was answered
        /// is in it, in order, once.
        #[test]
        fn the_log_replays_to_the_same_state(steps in prop::collection::vec(prop_oneof![
            4 => (0_u64..9).prop_map(Step::Submit), 2 => Just(Step::Take), 3 => Just(Step::Durable), 1 => Just(Step::Fail),
            2 => Just(Step::Apply),
        ], 0..120)) {
            let mut s = Sequencer::new(Engine::new(), 7);
            let mut log: Vec<Vec<u8>> = Vec::new();
            let mut on_the_way: Option<Batch> = None;
            let (mut answered, mut sent) = (Vec::new(), 0_u32);
            for step in steps.into_iter().chain([Step::Durable, Step::Apply]) {
                match step {
                    Step::Submit(now) => {
                        sent += 1;
                        let _ = s.submit(TimeNs(now), Command::Account(AccountCommand::Create(AccountId(sent % 5))), sent);
                    }
                    Step::Take => if let Some(batch) = take(&mut s) {
                        prop_assert!(on_the_way.is_none());
                        on_the_way = Some(batch);
                    },
                    Step::Durable => if let Some(batch) = on_the_way.take() {
                        prop_assert_eq!(batch.first.0, log.len() as u64 + 1);
                        log.extend(batch.entries().map(<[u8]>::to_vec));
                        s.on_durable();
                    },
                    Step::Fail => if on_the_way.take().is_some() { s.on_log_failed(|_| ()); },
                    Step::Apply => answered.extend(applied(&mut s)),
                }
            }
            prop_assert_eq!(answered.len(), log.len());
            prop_assert!(answered.is_sorted_by(|a, b| a < b));
            let mut again: Sequencer<u32> = Sequencer::new(Engine::new(), 7);
            for (i, bytes) in log.iter().enumerate() {
                again.replay(&decode_entry(LogIndex(i as u64 + 1), bytes).unwrap()).unwrap();
            }
            prop_assert_eq!(again.engine().state_hash(), s.engine().state_hash());
        }
    }
}
