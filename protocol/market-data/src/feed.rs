//! A book as messages to a reader, and back: [`BookFeed`] numbers what is sent, [`FeedBook`] holds what was received.
//!
//! A reader's book is right after a snapshot and every update since. Updates are absolute (a level's new content), so one that the
//! snapshot already held does no harm; numbers are contiguous, so a lost one is noticed at the next.

use std::collections::BTreeMap;

use walras_types::{InstrumentId, LogIndex, PriceTicks, Side};

use crate::levels::{BookLevel, LevelChange};
use crate::market::InstrumentFeed;

/// Whether a message replaces a book or changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookMessageKind {
    /// All levels of the book.
    Snapshot,
    /// The levels that changed, each with its new content; a level that shows nothing is gone.
    Update,
}

/// What a reader gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookMessage {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Whole or changes.
    pub kind: BookMessageKind,
    /// One more than the message before it to this reader about this instrument.
    pub feed_seq: u64,
    /// The entry after which the book looked so.
    pub log_index: LogIndex,
    /// Bids: best first in a snapshot, any order in an update.
    pub bids: Vec<BookLevel>,
    /// Asks: best first in a snapshot, any order in an update.
    pub asks: Vec<BookLevel>,
}

/// Numbers the messages about one instrument to one reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookFeed {
    feed_seq: u64,
}

impl BookFeed {
    /// The whole book, bids and asks, best first: the first message, and the one after [`crate::BookChanges::TooMany`].
    pub fn snapshot(&mut self, feed: &InstrumentFeed, [bids, asks]: [Vec<BookLevel>; 2]) -> BookMessage {
        self.message(feed, BookMessageKind::Snapshot, bids, asks)
    }

    /// A message with the result of [`crate::ChangedLevels::take`].
    pub fn update(&mut self, feed: &InstrumentFeed, changes: &[LevelChange]) -> BookMessage {
        let of = |side| changes.iter().filter(move |change| change.side == side).map(|change| change.level).collect();
        self.message(feed, BookMessageKind::Update, of(Side::Buy), of(Side::Sell))
    }

    fn message(&mut self, feed: &InstrumentFeed, kind: BookMessageKind, bids: Vec<BookLevel>, asks: Vec<BookLevel>) -> BookMessage {
        self.feed_seq += 1;
        let (instrument, log_index) = (feed.spec().instrument, feed.revision());
        BookMessage { instrument, kind, feed_seq: self.feed_seq, log_index, bids, asks }
    }
}

/// The result of applying a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The book is what it says.
    Snapshot,
    /// The book changed as it says.
    Update,
    /// It was taken before; nothing changed.
    Duplicate,
}

/// Why a message was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// Messages are missing. The book is empty until the next snapshot.
    #[error("message {got} came where {expected} was due: updates were lost, so ask for a snapshot")]
    Gap {
        /// The number that was due.
        expected: u64,
        /// The number that came.
        got: u64,
    },
    /// An update came before any snapshot, or after a gap.
    #[error("there is no snapshot to apply update {got} to: subscribe again to get one")]
    NoSnapshot {
        /// The update's number.
        got: u64,
    },
    /// It is about another instrument.
    #[error("the message is about instrument {got}: give it to that instrument's book")]
    OtherInstrument {
        /// The message's instrument.
        got: InstrumentId,
    },
}

/// A reader's copy of one instrument's book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedBook {
    instrument: InstrumentId,
    bids: BTreeMap<PriceTicks, BookLevel>,
    asks: BTreeMap<PriceTicks, BookLevel>,
    /// Number and entry of the latest message applied; `None` while there is no book.
    latest: Option<(u64, LogIndex)>,
}

impl FeedBook {
    /// An empty one that waits for a snapshot.
    #[must_use]
    pub fn new(instrument: InstrumentId) -> Self {
        Self { instrument, bids: BTreeMap::new(), asks: BTreeMap::new(), latest: None }
    }

    /// Takes a message.
    pub fn apply(&mut self, message: &BookMessage) -> Result<Applied, FeedError> {
        if message.instrument != self.instrument {
            return Err(FeedError::OtherInstrument { got: message.instrument });
        }
        let got = message.feed_seq;
        if self.latest.is_some_and(|(seq, _)| got <= seq) {
            return Ok(Applied::Duplicate);
        }
        let applied = match (message.kind, self.latest) {
            (BookMessageKind::Snapshot, _) => {
                self.bids.clear();
                self.asks.clear();
                Applied::Snapshot
            }
            (BookMessageKind::Update, None) => return Err(FeedError::NoSnapshot { got }),
            (BookMessageKind::Update, Some((seq, _))) if got != seq + 1 => {
                *self = Self::new(self.instrument);
                return Err(FeedError::Gap { expected: seq + 1, got });
            }
            (BookMessageKind::Update, Some(_)) => Applied::Update,
        };
        for (levels, changes) in [(&mut self.bids, &message.bids), (&mut self.asks, &message.asks)] {
            for level in changes {
                if level.shown.is_zero() {
                    levels.remove(&level.price);
                } else {
                    levels.insert(level.price, *level);
                }
            }
        }
        self.latest = Some((got, message.log_index));
        Ok(applied)
    }

    /// Levels of a side, best price first; none while there is no book.
    pub fn levels(&self, side: Side) -> impl Iterator<Item = BookLevel> + '_ {
        let (bids, asks) = match side {
            Side::Buy => (Some(self.bids.values().rev()), None),
            Side::Sell => (None, Some(self.asks.values())),
        };
        bids.into_iter().flatten().chain(asks.into_iter().flatten()).copied()
    }

    /// The entry after which the venue's book looked like this; `None` while there is no book.
    #[must_use]
    pub fn log_index(&self) -> Option<LogIndex> {
        self.latest.map(|(_, log_index)| log_index)
    }
}

#[cfg(test)]
mod tests {
    use walras_types::SizeLots;

    use super::*;

    fn message(kind: BookMessageKind, feed_seq: u64, bids: &[(i64, u64)]) -> BookMessage {
        let level = |&(price, shown): &(i64, u64)| BookLevel {
            price: PriceTicks::new(price).unwrap(),
            shown: SizeLots::new(shown),
            order_count: u32::from(shown > 0),
        };
        BookMessage {
            instrument: InstrumentId(3),
            kind,
            feed_seq,
            log_index: LogIndex(feed_seq * 10),
            bids: bids.iter().map(level).collect(),
            asks: Vec::new(),
        }
    }

    fn shown(book: &FeedBook) -> Vec<(i64, u64)> {
        book.levels(Side::Buy).map(|l| (l.price.get(), l.shown.get())).collect()
    }

    #[test]
    fn a_gap_empties_the_book_until_the_next_snapshot() {
        use BookMessageKind::{Snapshot, Update};
        let mut book = FeedBook::new(InstrumentId(3));
        assert_eq!(book.apply(&message(Update, 1, &[(5, 1)])), Err(FeedError::NoSnapshot { got: 1 }));
        assert_eq!(book.apply(&message(Snapshot, 2, &[(5, 1), (4, 2)])), Ok(Applied::Snapshot));
        assert_eq!(book.apply(&message(Update, 3, &[(5, 0), (7, 3), (9, 0)])), Ok(Applied::Update));
        assert_eq!(shown(&book), [(7, 3), (4, 2)]);
        assert_eq!(book.apply(&message(Update, 3, &[(1, 1)])), Ok(Applied::Duplicate));
        assert_eq!(book.log_index(), Some(LogIndex(30)));
        assert_eq!(book.apply(&message(Update, 5, &[(1, 1)])), Err(FeedError::Gap { expected: 4, got: 5 }));
        assert_eq!((shown(&book), book.log_index()), (vec![], None));
        assert_eq!(book.apply(&message(Update, 6, &[(1, 1)])), Err(FeedError::NoSnapshot { got: 6 }));
        assert_eq!(book.apply(&message(Snapshot, 7, &[(2, 2)])), Ok(Applied::Snapshot));
        assert_eq!(shown(&book), [(2, 2)]);
        assert_eq!(
            FeedBook::new(InstrumentId(4)).apply(&message(Snapshot, 8, &[])),
            Err(FeedError::OtherInstrument { got: InstrumentId(3) })
        );
    }
}
