//! The replicated state machine: any commands, any snapshot.

use std::num::NonZero;

use walras_engine::versions::REHEARSAL;
use walras_engine::{Engine, Numbered};
use walras_market_data::{MarketData, PublicBooks};
use walras_order_book::Art;
use walras_types::{EngineVersion, LogIndex, Ordinal, RejectReason, TimeNs};
use walras_wire::batch::BlockProposal;
use walras_wire::{BatchEvent, Command, Event, SessionCommand, VenueCommand, content_digest};

use crate::commands::{self, Range};
use crate::{Choices, Listener};
use crate::{batch_commands, shard_commands};

/// Most commands of one input: state grows with each, and checking it all after each is quadratic.
const COMMANDS_MAX: usize = 400;

/// Of one of the two engines; the other has one.
const THREADS: NonZero<usize> = NonZero::new(2).expect("two");

/// Commands made of the bytes, applied to an engine over each price index; market data and readers listen. Everything is checked after each.
pub fn apply(bytes: &[u8]) {
    apply_under(bytes, None);
}

/// The same under rules by which every block of a batch market goes on in small steps.
pub fn apply_in_steps(bytes: &[u8]) {
    apply_under(bytes, Some(REHEARSAL));
}

fn apply_under(bytes: &[u8], version: Option<EngineVersion>) {
    let c = &mut Choices::of_bytes(bytes);
    let range = c.pick(&[Range::Near, Range::Near, Range::Near, Range::Wild]);
    let mut venue = Venue::new(Engine::new(), Engine::with_hash_seed(c.any()));
    if let Some(version) = version {
        venue.apply(&Command::Venue(VenueCommand::SetEngineVersion(version)));
    }
    let has_shards = c.below(3) == 0;
    if has_shards {
        venue.apply(&shard_commands::opening(c));
    }
    if c.below(8) < 7 {
        for command in commands::opening(c, range) {
            venue.apply(&command);
        }
    }
    let has_batches = c.below(2) == 0 || version.is_some();
    if has_batches {
        for command in batch_commands::opening(c) {
            venue.apply(&command);
        }
    }
    for _ in 0..COMMANDS_MAX {
        if c.is_spent() {
            break;
        }
        match c.weighted(&[40, 12, 2, 1]) {
            0 => {}
            1 => venue.advance(c.within(1, 20)),
            2 => venue.advance(1 << c.below(50)),
            _ => venue.restart(c.any()),
        }
        let mut command = commands::command(c, range, venue.ladder.time());
        if has_batches && c.below(3) > 0 {
            match if c.below(8) == 0 { batch_commands::clearing(c, &venue.ladder) } else { None } {
                Some(block) => {
                    venue.apply_clearing(&block);
                    continue;
                }
                None => command = batch_commands::command(c, &venue.ladder),
            }
        }
        if has_shards && c.below(3) == 0 {
            command = shard_commands::command(c, &venue.ladder);
        }
        let ordinal = if c.below(3) == 0 { commands::ordinal(c, &venue.ladder) } else { None };
        if let (Command::Session(SessionCommand::Close(close)), Some(ordinal)) = (&mut command, ordinal) {
            close.session = ordinal.session;
        }
        match ordinal {
            Some(ordinal) => venue.apply_numbered(ordinal, &command),
            None => venue.apply(&command),
        }
    }
    venue.restart(1);
}

/// A snapshot: the bytes as they are, and again with the hash that makes them whole, so that what lies behind the hash is reached.
pub fn restore(bytes: &[u8]) {
    restore_whole(bytes);
    let mut whole = bytes.to_vec();
    whole.extend_from_slice(blake3::hash(bytes).as_bytes());
    restore_whole(&whole);
}

fn restore_whole(bytes: &[u8]) {
    let Ok(ladder) = Engine::restore(bytes) else { return };
    ladder.check_invariants();
    let mut again = Vec::new();
    ladder.snapshot(&mut again);
    assert!(again == bytes, "one state has one encoding");
    let art = Engine::<Art>::restore_with_hash_seed(bytes, 3).expect("what restores over one index restores over the other");
    let mut venue = Venue::unheard(ladder, art);
    // Whatever restores must go on: a few commands that touch most of it.
    let c = &mut Choices::of_seed(u64::from(bytes.len() as u32));
    for _ in 0..24 {
        venue.advance(c.below(50));
        let command = commands::command(c, Range::Near, venue.ladder.time());
        match commands::ordinal(c, &venue.ladder) {
            Some(ordinal) => venue.apply_numbered(ordinal, &command),
            None => venue.apply(&command),
        }
    }
}

/// A snapshot of market data, or of a reader's books.
pub fn market_data_restore(bytes: &[u8]) {
    let mut again = Vec::new();
    if let Ok(market) = MarketData::restore(bytes) {
        market.check_invariants();
        market.snapshot(&mut again);
    } else if let Ok(books) = PublicBooks::restore(bytes) {
        books.check_invariants();
        books.snapshot(&mut again);
    } else {
        return;
    }
    // What the version before wrote is written as this one's.
    if again.first_chunk::<8>() == bytes.first_chunk() {
        assert!(again == bytes, "one state has one encoding");
    } else {
        market_data_restore(&again);
    }
}

/// Two engines that must not differ, and who listens to them.
struct Venue {
    ladder: Engine,
    art: Engine<Art>,
    listener: Option<Listener>,
    time: TimeNs,
    events: Vec<Event>,
    events_of_art: Vec<Event>,
    /// The snapshot after the last entry.
    state: Vec<u8>,
}

impl Venue {
    fn new(ladder: Engine, art: Engine<Art>) -> Self {
        Self { listener: Some(Listener::default()), ..Self::unheard(ladder, art) }
    }

    fn unheard(ladder: Engine, mut art: Engine<Art>) -> Self {
        art.set_threads(THREADS);
        let time = ladder.time();
        let mut state = Vec::new();
        ladder.snapshot(&mut state);
        Self { ladder, art, listener: None, time, events: Vec::new(), events_of_art: Vec::new(), state }
    }

    fn advance(&mut self, by_ns: u64) {
        self.time = TimeNs(self.time.0.saturating_add(by_ns));
    }

    fn apply(&mut self, command: &Command) {
        let log_index = self.ladder.last_applied().next();
        let before = std::mem::take(&mut self.state);
        self.events.clear();
        self.events_of_art.clear();
        self.ladder.apply(log_index, self.time, command, &mut self.events);
        self.art.apply(log_index, self.time, command, &mut self.events_of_art);
        assert_eq!(self.events, self.events_of_art, "what {command:?} does depends on the price index");
        self.ladder.check_invariants();
        self.art.check_invariants();
        self.ladder.snapshot(&mut self.state);
        if let [Event::Rejected(_)] = self.events[..] {
            assert!(lasting(&before) == lasting(&self.state), "{command:?} was rejected and changed something");
        }
        self.listen(log_index, command);
    }

    fn apply_clearing(&mut self, block: &BlockProposal) {
        let log_index = self.ladder.last_applied().next();
        let before = std::mem::take(&mut self.state);
        self.events.clear();
        self.events_of_art.clear();
        self.ladder.apply_clearing(log_index, self.time, block, &mut self.events);
        self.art.apply_clearing(log_index, self.time, block, &mut self.events_of_art);
        assert_eq!(self.events, self.events_of_art, "what {block:?} does depends on the price index, or on threads");
        self.ladder.check_invariants();
        self.art.check_invariants();
        self.ladder.snapshot(&mut self.state);
        if let [Event::Rejected(_) | Event::Batch(BatchEvent::ClearingRejected(_))] = self.events[..] {
            assert!(lasting(&before) == lasting(&self.state), "{block:?} was rejected and changed something");
        }
        self.listen(log_index, &Command::Venue(VenueCommand::Tick));
    }

    fn apply_numbered(&mut self, ordinal: Ordinal, command: &Command) {
        let log_index = self.ladder.last_applied().next();
        let (known, remembered) = (self.ladder.session(ordinal.session), self.ladder.answer(ordinal));
        let before = std::mem::take(&mut self.state);
        self.events.clear();
        self.events_of_art.clear();
        let became = self.ladder.apply_numbered(log_index, self.time, ordinal, command, &mut self.events);
        let of_art = self.art.apply_numbered(log_index, self.time, ordinal, command, &mut self.events_of_art);
        assert_eq!((became, &self.events), (of_art, &self.events_of_art), "what {command:?} does depends on the price index");
        self.ladder.check_invariants();
        self.art.check_invariants();
        self.ladder.snapshot(&mut self.state);
        let is_next = known.is_some_and(|session| session.next == ordinal.session_seq);
        match became {
            Numbered::Done(answer) => {
                assert!(is_next && answer.log_index == log_index, "{ordinal:?} was applied out of turn");
                let open = self.ladder.session(ordinal.session).is_some();
                assert_eq!(self.ladder.answer(ordinal), open.then_some(answer), "{ordinal:?} is remembered otherwise");
                let told = self.events.iter().find_map(|event| if let Event::Rejected(e) = event { Some(e.reason) } else { None });
                assert_eq!(answer.rejected, told, "{ordinal:?} is answered otherwise than told");
            }
            Numbered::Repeated(answer) => assert_eq!((remembered, is_next), (Some(answer), false), "{ordinal:?}"),
            Numbered::Refused(RejectReason::SessionSeqReused) => {
                let content = content_digest(command, &mut Vec::new());
                assert!(remembered.is_some_and(|answer| answer.content != content) && !is_next, "{ordinal:?}");
            }
            Numbered::Refused(_) => assert_eq!((remembered, is_next), (None, false), "{ordinal:?}"),
        }
        if !matches!(became, Numbered::Done(_)) && self.events.is_empty() {
            assert!(lasting(&before) == lasting(&self.state), "{ordinal:?} was not applied and changed something");
        }
        self.listen(log_index, command);
    }

    fn listen(&mut self, log_index: LogIndex, command: &Command) {
        assert!(self.ladder.changed_levels().eq(self.art.changed_levels()), "what changed depends on the price index");
        let Some(listener) = &mut self.listener else { return };
        if let Err(error) = listener.on_applied(&self.ladder, log_index, self.time, &self.events) {
            panic!("{error}: {command:?} gave {:?}", self.events);
        }
        listener.check_invariants();
        if let Err(difference) = listener.check(&self.ladder) {
            panic!("{difference} after {command:?}");
        }
    }

    /// Saves everything, forgets it and restores it: each engine from the other one's bytes, or only one.
    fn restart(&mut self, hash_seed: u64) {
        let (mut ladder, mut art) = (Vec::new(), Vec::new());
        self.ladder.snapshot(&mut ladder);
        self.art.snapshot(&mut art);
        assert!(ladder == art, "the snapshot depends on the price index");
        // Sometimes one goes on: what it knows beside its state may not matter.
        if hash_seed % 2 == 1 {
            self.ladder = Engine::restore_with_hash_seed(&art, hash_seed).expect("a saved state restores");
        }
        self.art = Engine::restore_with_hash_seed(&ladder, !hash_seed).expect("a saved state restores");
        self.art.set_threads(THREADS);
        if let Some(listener) = &mut self.listener {
            let mut bytes = Vec::new();
            listener.snapshot(&mut bytes);
            *listener = Listener::restore(&bytes).expect("what was saved restores");
        }
    }
}

/// What of a snapshot does not move with every entry: without magic, versions, index and time, and without the hash of it all.
fn lasting(snapshot: &[u8]) -> &[u8] {
    const HEADER_BYTES: usize = 8 + 2 + 2 + 8 + 8;
    const HASH_BYTES: usize = 32;
    &snapshot[HEADER_BYTES..snapshot.len() - HASH_BYTES]
}
