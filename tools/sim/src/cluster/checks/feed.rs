//! The binary feed: every replica gives each message of a channel the same number and the same bytes, without a gap; a reader of them
//! has the engine's book after each entry; and nothing may be released before the time that the log gives it.

use std::collections::BTreeMap;

use walras_consensus::ReplicaId;
use walras_engine::Engine;
use walras_feed::book::{Book, Content};
use walras_feed::channel::{ChannelId, View};
use walras_feed::message::Message;
use walras_replica::FeedPiece;
use walras_types::{InstrumentId, Side};

use crate::common::checks::{Checked, Violation};

const CHECK: &str = "feed";

/// Who reads all channels from their first message on.
#[derive(Debug, Default)]
pub(super) struct Feed {
    channels: BTreeMap<ChannelId, Read>,
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

fn compare(channel: ChannelId, book: &Book, engine: &Engine) -> Result<(), String> {
    if channel.view() == View::Batches {
        return Ok(());
    }
    let instrument = InstrumentId(channel.get() & 0xff_ffff);
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
    use walras_feed::message::{Head, LevelChanged, Place};
    use walras_replica::{FeedPart, FeedRun};
    use walras_types::{LogIndex, PriceTicks, SizeLots};

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
}
