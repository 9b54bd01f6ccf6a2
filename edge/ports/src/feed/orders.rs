//! Books by order: the first displayed orders of each side, for those who read them as they change.
//!
//! Nothing is noted for a command. A publication looks at each book that somebody reads by order, if anything happened in it since it
//! was looked at last. What one publication looks at is bounded over all books: where more is read, the others are published later, in
//! turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use walras_engine::{DisplayedOrder, Engine};
use walras_market_data::limits::BOOK_ORDERS_MAX;
use walras_market_data::{InstrumentFeed, MarketData, PublicOrder};
use walras_types::{InstrumentId, LogIndex, Side};

/// Displayed orders that a publication looks at, and those of one more book. Each is a step along a queue, so they cost some 0.5 ms
/// where none of them is in the processor's cache.
const ORDERS_PER_PUBLICATION: usize = 4_096;

/// The first displayed orders of each side of a book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownOrders {
    /// The entry after which they stood so.
    pub log_index: LogIndex,
    /// Bids: best price first, at each price the first in the queue first.
    pub bids: Vec<PublicOrder>,
    /// Asks likewise.
    pub asks: Vec<PublicOrder>,
    /// Whether there are bids behind these.
    pub has_more_bids: bool,
    /// Whether there are asks behind these.
    pub has_more_asks: bool,
}

impl ShownOrders {
    fn has_same_orders(&self, other: &Self) -> bool {
        let more = |shown: &Self| (shown.has_more_bids, shown.has_more_asks);
        more(self) == more(other) && self.bids == other.bids && self.asks == other.asks
    }
}

/// Looks at up to `count` displayed orders of each side. Costs O(`count`).
#[must_use]
pub fn shown_orders(engine: &Engine, instrument: InstrumentId, log_index: LogIndex, count: usize) -> ShownOrders {
    let [(bids, has_more_bids), (asks, has_more_asks)] = Side::BOTH.map(|side| {
        let mut displayed = Vec::new();
        let has_more = engine.displayed_orders(instrument, side, count, &mut displayed);
        let public = |DisplayedOrder { order_id, price, shown }| PublicOrder { order_id, side, price, shown };
        (displayed.into_iter().map(public).collect(), has_more)
    });
    ShownOrders { log_index, bids, asks, has_more_bids, has_more_asks }
}

/// A book by order, and what its readers had of it before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrdersPush {
    /// Which.
    pub instrument: InstrumentId,
    /// Its orders, as they stand.
    pub now: Arc<ShownOrders>,
    /// Those of the message before; `None` in a snapshot.
    pub before: Option<Arc<ShownOrders>>,
}

/// A book that somebody reads by order.
#[derive(Debug)]
struct ReadBook {
    readers: usize,
    /// The revision of the instrument that was looked at.
    revision: LogIndex,
    /// What readers were given last.
    shown: Arc<ShownOrders>,
}

/// All books that somebody reads by order.
#[derive(Debug, Default)]
pub(super) struct OrderBooks {
    books: BTreeMap<InstrumentId, ReadBook>,
    /// Which one the next publication begins with; the first one where the last publication came to its end.
    next: Option<InstrumentId>,
}

impl OrderBooks {
    /// What a reader begins with: what the others were given, or what stands now. Say [`Self::add_reader`] for a new one.
    pub(super) fn snapshot(&mut self, engine: &Engine, feed: &InstrumentFeed) -> OrdersPush {
        let (instrument, revision) = (feed.spec().instrument, feed.revision());
        let book = self.books.entry(instrument).or_insert_with(|| {
            let shown = Arc::new(shown_orders(engine, instrument, revision, BOOK_ORDERS_MAX));
            ReadBook { readers: 0, revision, shown }
        });
        OrdersPush { instrument, now: Arc::clone(&book.shown), before: None }
    }

    /// One more reads it.
    pub(super) fn add_reader(&mut self, instrument: InstrumentId) {
        if let Some(book) = self.books.get_mut(&instrument) {
            book.readers += 1;
        }
    }

    /// One less does.
    pub(super) fn remove_reader(&mut self, instrument: InstrumentId) {
        let Some(book) = self.books.get_mut(&instrument) else { return };
        book.readers = book.readers.saturating_sub(1);
        if book.readers == 0 {
            self.books.remove(&instrument);
        }
    }

    /// Publishes what changed.
    pub(super) fn publish(&mut self, engine: &Engine, market: &MarketData, mut say: impl FnMut(OrdersPush)) {
        if self.books.is_empty() {
            return;
        }
        let from = self.next.take().unwrap_or(InstrumentId(0));
        let turn: Vec<InstrumentId> = self.books.range(from..).chain(self.books.range(..from)).map(|(id, _)| *id).collect();
        let mut looks = 0;
        for instrument in turn {
            let Some((book, feed)) = self.books.get_mut(&instrument).zip(market.instrument(instrument)) else { continue };
            if book.revision == feed.revision() {
                continue;
            }
            if looks >= ORDERS_PER_PUBLICATION {
                self.next = Some(instrument);
                return;
            }
            book.revision = feed.revision();
            let now = shown_orders(engine, instrument, book.revision, BOOK_ORDERS_MAX);
            looks += now.bids.len() + now.asks.len();
            if now.has_same_orders(&book.shown) {
                continue;
            }
            let now = Arc::new(now);
            let before = Some(std::mem::replace(&mut book.shown, Arc::clone(&now)));
            say(OrdersPush { instrument, now, before });
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_market_data::{OrderChangeKind, order_changes};

    use super::*;
    use crate::feed::trial::Trial;

    fn ids(orders: &[PublicOrder]) -> Vec<u64> {
        orders.iter().map(|order| order.order_id.0).collect()
    }

    fn published(books: &mut OrderBooks, trial: &Trial) -> Vec<OrdersPush> {
        let mut said = Vec::new();
        books.publish(&trial.engine, &trial.market, |push| said.push(push));
        said
    }

    fn begin(books: &mut OrderBooks, trial: &Trial, at: u32) -> OrdersPush {
        let push = books.snapshot(&trial.engine, trial.market.instrument(InstrumentId(at)).unwrap());
        books.add_reader(InstrumentId(at));
        push
    }

    #[test]
    fn every_reader_has_the_orders_of_the_message_before_and_the_changes_make_the_next() {
        let (mut trial, mut books) = (Trial::collecting(1), OrderBooks::default());
        let first = trial.order(0, 1, Side::Buy, 100);
        let mut copy = begin(&mut books, &trial, 0);
        assert_eq!((ids(&copy.now.bids), copy.now.log_index, copy.before.is_none()), (vec![first], LogIndex(first), true));
        assert!(published(&mut books, &trial).is_empty(), "nothing happened");
        for id in 2..40 {
            let side = if id % 3 == 0 { Side::Sell } else { Side::Buy };
            trial.order(0, id, side, 95 + i64::try_from(id % 7).unwrap());
            if id % 4 == 0 {
                trial.cancel(0, id - 1);
            }
            // One who begins between two publications has what the others have.
            assert_eq!(begin(&mut books, &trial, 0).now, copy.now);
            if id % 5 != 0 {
                continue;
            }
            let mut said = published(&mut books, &trial);
            let push = said.remove(0);
            assert_eq!((said.len(), &push.before), (0, &Some(Arc::clone(&copy.now))));
            let engine = shown_orders(&trial.engine, InstrumentId(0), push.now.log_index, usize::MAX);
            assert_eq!((&*push.now, push.now.log_index), (&engine, trial.engine.last_applied()));
            let mut changes = Vec::new();
            order_changes(Side::Buy, &copy.now.bids, &push.now.bids, &mut changes);
            assert!(changes.iter().any(|change| change.kind == OrderChangeKind::Added));
            copy = push;
        }
    }

    #[test]
    fn a_look_has_the_first_orders_of_each_side_and_says_that_there_are_more() {
        let mut trial = Trial::collecting(1);
        let bids: Vec<u64> = (0..5).map(|id| trial.order(0, id, Side::Buy, 100 - i64::try_from(id).unwrap())).collect();
        let ask = trial.order(0, 9, Side::Sell, 150);
        let shown = shown_orders(&trial.engine, InstrumentId(0), LogIndex(1), 3);
        assert_eq!((ids(&shown.bids), ids(&shown.asks)), (bids[..3].to_vec(), vec![ask]));
        assert_eq!((shown.has_more_bids, shown.has_more_asks), (true, false));
        assert!(shown.bids.iter().all(|bid| bid.side == Side::Buy && bid.shown.get() == 1));
    }

    #[test]
    fn what_is_behind_the_first_orders_is_no_news() {
        let (mut trial, mut books) = (Trial::collecting(1), OrderBooks::default());
        let count = BOOK_ORDERS_MAX as u64;
        let all: Vec<u64> = (0..count).map(|id| trial.order(0, id, Side::Buy, 100)).collect();
        assert_eq!(ids(&begin(&mut books, &trial, 0).now.bids), all);
        trial.order(0, count, Side::Buy, 100);
        let said = published(&mut books, &trial);
        assert_eq!((said.len(), said[0].now.has_more_bids), (1, true), "that there are more is");
        trial.order(0, count + 1, Side::Buy, 99);
        assert!(published(&mut books, &trial).is_empty());
        let better = trial.order(0, count + 2, Side::Buy, 101);
        let said = published(&mut books, &trial);
        assert_eq!(ids(&said[0].now.bids), [&[better], &all[..all.len() - 1]].concat());
    }

    #[test]
    fn where_more_is_read_than_a_publication_looks_at_every_book_has_its_turn() {
        const BOOKS: u32 = 12;
        let (mut trial, mut books) = (Trial::collecting(BOOKS), OrderBooks::default());
        let count = BOOK_ORDERS_MAX as u64;
        for at in 0..BOOKS {
            for id in 0..count {
                trial.order(at, id, Side::Buy, 100);
            }
            begin(&mut books, &trial, at);
        }
        // Each publication looks at eight whole books and one that ends it.
        let per_publication = ORDERS_PER_PUBLICATION.div_ceil(BOOK_ORDERS_MAX);
        let mut published_of = BTreeMap::<u32, usize>::new();
        for round in 0..12_u64 {
            for at in 0..BOOKS {
                trial.order(at, count + round, Side::Buy, 101 + i64::try_from(round).unwrap());
            }
            let said = published(&mut books, &trial);
            assert_eq!(said.len(), per_publication);
            for push in said {
                *published_of.entry(push.instrument.0).or_default() += 1;
            }
        }
        assert_eq!(published_of.len(), BOOKS as usize);
        assert!(published_of.values().all(|count| *count == 12 * per_publication / BOOKS as usize), "{published_of:?}");
        // Where nothing new happens the rest follows, and then nothing.
        let rest = published(&mut books, &trial).len();
        assert!((1..BOOKS as usize).contains(&rest), "{rest}");
        assert!(published(&mut books, &trial).is_empty());
    }

    #[test]
    fn a_book_that_nobody_reads_any_more_is_not_looked_at() {
        let (mut trial, mut books) = (Trial::collecting(1), OrderBooks::default());
        for _ in 0..2 {
            begin(&mut books, &trial, 0);
        }
        books.remove_reader(InstrumentId(0));
        trial.order(0, 1, Side::Sell, 100);
        assert_eq!(published(&mut books, &trial).len(), 1);
        books.remove_reader(InstrumentId(0));
        let last = trial.order(0, 2, Side::Sell, 100);
        assert!(published(&mut books, &trial).is_empty());
        assert_eq!(begin(&mut books, &trial, 0).now.log_index, LogIndex(last), "the next reader begins with what stands");
    }
}
