//! The binary feed: every replica gives each message of a channel the same number and the same bytes, without a gap; a reader of them
//! has the engine's books, the blocks of its batch markets and what its auctions would trade after each entry; and nothing may be
//! released before the time that the log gives it.

use std::collections::BTreeMap;

use walras_consensus::ReplicaId;
use walras_engine::Engine;
use walras_feed::book::{Book, Content};
use walras_feed::channel::{ChannelId, View};
use walras_feed::message::Message;
use walras_replica::FeedPiece;
use walras_testkit::published::{BatchExpected, indicated};
use walras_types::{BatchMarketId, InstrumentId, LogIndex, Side, TradingPhase};

use crate::common::checks::{Checked, Violation};

const CHECK: &str = "feed";
/// Of books with fewer open orders the venue says after each entry what their auctions would trade.
const INDICATED_ORDERS_MAX: usize = 1_024;

/// Who reads all channels from their first message on.
#[derive(Debug, Default)]
pub(super) struct Feed {
    channels: BTreeMap<ChannelId, Read>,
    /// The last entry of which any replica published something.
    newest: LogIndex,
}

/// One channel.
#[derive(Debug)]
struct Read {
    book: Book,
    /// From the first one on.
    messages: Vec<Box<[u8]>>,
}

impl Feed {
    /// Messages of all channels.
    pub(super) fn count(&self) -> u64 {
        self.channels.values().map(|read| read.messages.len() as u64).sum()
    }

    /// The messages of a channel, from the first one on.
    pub(super) fn messages(&self, channel: ChannelId) -> &[Box<[u8]>] {
        self.channels.get(&channel).map_or(&[], |read| &read.messages)
    }

    /// A replica publishes what an entry did; `engine`, where it is known, has its state after the entry. `known_from_ns` is what the log says of when it
    /// may be known, if that alone says it.
    pub(super) fn on_piece(
        &mut self,
        replica: ReplicaId,
        piece: &FeedPiece,
        engine: Option<&Engine>,
        known_from_ns: Option<u64>,
    ) -> Checked {
        let log_index = piece.log_index;
        if let (Some(release), Some(known_from_ns)) = (piece.release, known_from_ns)
            && release.ahead_ns.is_none()
            && release.log_ns < known_from_ns
        {
            let early_ns = known_from_ns - release.log_ns;
            return Err(Violation::new(CHECK, format!("replica {replica} means to release entry {log_index} {early_ns} ns early")));
        }
        for run in &piece.runs {
            let new = || Read { book: Book::new(run.channel), messages: Vec::new() };
            let read = self.channels.entry(run.channel).or_insert_with(new);
            for (number, bytes) in (run.first..).zip(run.as_run().messages()) {
                let says =
                    |what: String| Violation::new(CHECK, format!("replica {replica}: {number} of {:?}: {what}", run.channel));
                read.take(number, bytes).map_err(says)?;
            }
            let book = &read.book;
            if let Some(engine) = engine.filter(|_| book.head().log_index == log_index.0 && book.is_whole()) {
                let says = |what: String| Violation::new(CHECK, format!("{:?} after entry {log_index}: {what}", run.channel));
                compare(run.channel, book, engine).map_err(says)?;
            }
        }
        self.newest = self.newest.max(log_index);
        match engine.filter(|_| self.newest == log_index) {
            Some(engine) => self.compare_all(log_index, engine),
            None => Ok(()),
        }
    }

    /// What no entry may change without a message: the blocks of batch markets, and what auctions would trade.
    fn compare_all(&self, log_index: LogIndex, engine: &Engine) -> Checked {
        for (channel, read) in self.channels.iter().filter(|(_, read)| read.book.is_whole()) {
            let compared = match read.book.content() {
                Content::Batches(_) => compare_batches(*channel, &read.book, engine),
                Content::Orders(_) | Content::Levels(_) | Content::Top(_) => compare_indicated(*channel, &read.book, engine),
            };
            compared.map_err(|what| Violation::new(CHECK, format!("{channel:?} at entry {log_index}: {what}")))?;
        }
        Ok(())
    }
}

impl Read {
    /// The message of this number.
    fn take(&mut self, number: u64, bytes: &[u8]) -> Result<(), String> {
        let known = usize::try_from(number - 1).ok().and_then(|at| self.messages.get(at));
        if let Some(known) = known {
            return if **known == *bytes { Ok(()) } else { Err("another replica gave other bytes this number".into()) };
        }
        if number != self.messages.len() as u64 + 1 {
            return Err(format!("there are {} messages before it", self.messages.len()));
        }
        let (head, message) = Message::decode(bytes).map_err(|error| error.to_string())?;
        self.book.apply(&head, &message).map_err(|error| error.to_string())?;
        self.messages.push(bytes.into());
        Ok(())
    }
}

/// Compares a batch market's definition, phase, assets and last block, with prices and volumes.
fn compare_batches(channel: ChannelId, book: &Book, engine: &Engine) -> Result<(), String> {
    let Content::Batches(state) = book.content() else { return Err("it is no batch market's".into()) };
    let market = u16::try_from(channel.market()).ok().and_then(|market| BatchExpected::of(engine, BatchMarketId(market)));
    market.ok_or("the engine has no such batch market")?.check(state)
}

/// Compares what an auction would trade.
fn compare_indicated(channel: ChannelId, book: &Book, engine: &Engine) -> Result<(), String> {
    let instrument = InstrumentId(channel.market());
    let Some(view) = engine.instrument(instrument) else { return Err("the engine has no such instrument".into()) };
    if view.phase != TradingPhase::Continuous && engine.open_order_count(instrument) >= INDICATED_ORDERS_MAX {
        return Ok(());
    }
    let (ours, theirs) = (book.market().indicated, indicated(engine, instrument));
    if ours == theirs { Ok(()) } else { Err(format!("readers have that the auction would trade {ours:?}, the engine {theirs:?}")) }
}

/// Compares what a channel shows of an instrument's book.
fn compare(channel: ChannelId, book: &Book, engine: &Engine) -> Result<(), String> {
    if channel.view() == View::Batches {
        return compare_batches(channel, book, engine);
    }
    let instrument = InstrumentId(channel.market());
    let Some(view) = engine.instrument(instrument) else { return Err("the engine has no such instrument".into()) };
    let phase = book.market().phase.map(|changed| changed.phase);
    if phase != Some(view.phase) {
        return Err(format!("the phase is {phase:?}, the engine's {:?}", view.phase));
    }
    for side in Side::BOTH {
        let mut depth = Vec::new();
        engine.depth(instrument, side, usize::MAX, &mut depth);
        let theirs: Vec<_> = depth.iter().map(|level| (level.price, level.shown, level.order_count)).collect();
        let ours: Vec<_> = match (book.levels(), book.content()) {
            (Some(levels), _) => levels.levels(side).map(|level| (level.price, level.shown, level.order_count)).collect(),
            (None, Content::Top(top)) => {
                let best = top.and_then(|top| match side {
                    Side::Buy => top.bid.map(|price| (price, top.bid_shown, top.bid_order_count)),
                    Side::Sell => top.ask.map(|price| (price, top.ask_shown, top.ask_order_count)),
                });
                best.into_iter().collect()
            }
            (None, Content::Orders(_) | Content::Levels(_) | Content::Batches(_)) => Vec::new(),
        };
        let theirs = if channel.view() == View::Top { theirs.into_iter().take(1).collect() } else { theirs };
        if ours != theirs {
            return Err(format!("{side:?}: readers have {ours:?}, the engine {theirs:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use walras_consensus::Term;
    use walras_fair_access::publications::ReleaseTime;
    use walras_feed::message::{AuctionIndicated, BatchAssetAdded, Head, LevelChanged, Place};
    use walras_replica::{FeedPart, FeedRun};
    use walras_testkit::commands::{self, Range};
    use walras_testkit::{Choices, batch_commands};
    use walras_types::{PriceTicks, SizeLots, TimeNs};

    use super::*;

    fn piece(channel: ChannelId, first: u64, shown: u64, release_ns: u64) -> FeedPiece {
        let changed = LevelChanged { side: Side::Buy, price: PriceTicks::MIN, shown: SizeLots::new(shown), order_count: 1 };
        let mut message = Vec::new();
        Message::from(changed).encode(&Head { place: Place::Last, log_index: first, time_ns: 1 }, &mut message);
        let bytes = [&(message.len() as u16).to_le_bytes()[..], &message].concat();
        FeedPiece {
            log_index: LogIndex(first),
            term: Term(1),
            release: Some(ReleaseTime { log_ns: release_ns, ahead_ns: None }),
            held_ns: 0,
            part: FeedPart::Sends,
            runs: vec![FeedRun { channel, first, bytes }],
        }
    }

    #[test]
    fn other_bytes_gaps_other_books_and_early_releases_are_found() {
        let [a, b] = [1, 2].map(|id| ReplicaId::new(id).unwrap());
        let levels = ChannelId::instrument(View::Levels, InstrumentId(0));
        let mut feed = Feed::default();
        feed.on_piece(a, &piece(levels, 1, 5, 9), None, Some(9)).unwrap();
        feed.on_piece(b, &piece(levels, 1, 5, 10), None, Some(9)).unwrap();
        assert_eq!(feed.count(), 1);
        for (piece, known_from_ns, says) in [
            (piece(levels, 1, 6, 9), Some(9), "other bytes"),
            (piece(levels, 3, 5, 9), Some(9), "1 messages before"),
            (piece(levels, 2, 5, 8), Some(9), "1 ns early"),
            (piece(ChannelId::instrument(View::Top, InstrumentId(0)), 1, 5, 9), Some(9), "does not belong"),
        ] {
            let violation = feed.on_piece(b, &piece, None, known_from_ns).unwrap_err();
            assert!(violation.detail.contains(says), "{}", violation.detail);
        }
        let violation = feed.on_piece(a, &piece(levels, 2, 5, 9), Some(&Engine::new()), None).unwrap_err();
        assert!(violation.detail.contains("no such instrument"), "{}", violation.detail);
    }

    /// Messages that do not say what the engine has of a batch market and of an auction.
    #[test]
    fn other_blocks_and_other_auctions_are_found() {
        let mut engine = Engine::new();
        let mut choices = Choices::of_seed(1);
        let opening = commands::opening(&mut choices, Range::Near).into_iter().chain(batch_commands::opening(&mut choices));
        let (mut time_ns, mut events) = (0, Vec::new());
        for command in opening {
            time_ns += 1;
            events.clear();
            engine.apply(engine.last_applied().next(), TimeNs(time_ns), &command, &mut events);
        }
        let market = BatchMarketId(0);
        let expected = BatchExpected::of(&engine, market).unwrap();
        let channel = ChannelId::batches(market);
        let mut messages: Vec<Message> = expected.state.defined.map(Message::from).into_iter().collect();
        messages.extend(expected.state.phase.map(Message::from));
        let added = |(place, &asset)| Message::from(BatchAssetAdded { place, asset });
        messages.extend((0..).zip(&expected.state.assets).map(added));
        let book = |messages: &[Message]| {
            let (mut book, head) = (Book::new(channel), Head { place: Place::Last, log_index: 1, time_ns: 1 });
            messages.iter().for_each(|message| book.apply(&head, message).unwrap());
            book
        };
        assert_eq!(compare_batches(channel, &book(&messages), &engine), Ok(()));
        messages.pop();
        assert!(compare_batches(channel, &book(&messages), &engine).unwrap_err().contains("the engine"));
        let levels = ChannelId::instrument(View::Levels, InstrumentId(1));
        let mut book = Book::new(levels);
        assert_eq!(compare_indicated(levels, &book, &engine), Ok(()));
        let indicated = AuctionIndicated { price: None, volume: SizeLots::new(1), imbalance_lots: 0 };
        book.apply(&Head { place: Place::Last, log_index: 1, time_ns: 1 }, &indicated.into()).unwrap();
        assert!(compare_indicated(levels, &book, &engine).unwrap_err().contains("would trade"));
    }
}
