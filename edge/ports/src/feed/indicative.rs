//! Indicative prices: what the uncross of an instrument that collects orders would trade now.
//!
//! One is computed when it is published, never for each command, by the code that uncrosses. Its cost grows with the book, so a
//! large book is computed in fewer publications: the work of one publication stays bounded for each instrument.

use walras_engine::{Engine, Uncross};
use walras_market_data::InstrumentFeed;
use walras_types::{InstrumentId, LogIndex, TradingPhase};

/// Open orders of one book that a publication may go through, averaged over publications. They cost some 0.5 ms at 20 publications
/// a second; a book of ten times as many is computed in every tenth publication.
const ORDERS_PER_PUBLICATION: i64 = 4_096;

/// What was published of an instrument.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The revision of the instrument for which it was computed; 0 before the first.
    revision: LogIndex,
    indicative: Option<Uncross>,
    /// A reader was shown something else since.
    is_outdated: bool,
    /// Orders that may be gone through; below zero after a large book.
    credit: i64,
}

const NOTHING: Known = Known { revision: LogIndex(0), indicative: None, is_outdated: false, credit: 0 };

/// The latest of each instrument.
#[derive(Debug, Default)]
pub struct Indicatives(Vec<Known>);

impl Indicatives {
    /// What a reader is shown between two publications: the latest state of a book that is not large, else what was published last.
    pub fn now(&self, engine: &Engine, instrument: InstrumentId) -> Option<Uncross> {
        if order_count(engine, instrument) <= ORDERS_PER_PUBLICATION {
            return engine.indicative(instrument);
        }
        let known = self.0.get(instrument.0 as usize).unwrap_or(&NOTHING);
        known.indicative.filter(|_| !is_continuous(engine, instrument))
    }

    /// As [`Self::now`], for a reader who takes the publications from here on.
    pub(super) fn begin(&mut self, engine: &Engine, instrument: InstrumentId) -> Option<Uncross> {
        let now = self.now(engine, instrument);
        let known = self.known_mut(instrument);
        known.is_outdated |= known.indicative != now;
        now
    }

    /// What a publication says of an instrument, and whether that is news to a reader of those before.
    pub(super) fn publish(&mut self, engine: &Engine, feed: &InstrumentFeed) -> (Option<Uncross>, News) {
        let (instrument, revision) = (feed.spec().instrument, feed.revision());
        let known = self.known_mut(instrument);
        if known.revision == revision {
            return (known.indicative, News::No);
        }
        known.credit = known.credit.saturating_add(ORDERS_PER_PUBLICATION).min(ORDERS_PER_PUBLICATION);
        if !is_continuous(engine, instrument) {
            if known.credit <= 0 {
                return (known.indicative, News::No);
            }
            known.credit = known.credit.saturating_sub(order_count(engine, instrument));
        }
        let indicative = engine.indicative(instrument);
        let news = if known.is_outdated || known.indicative != indicative { News::Yes } else { News::No };
        *known = Known { revision, indicative, is_outdated: false, credit: known.credit };
        (indicative, news)
    }

    /// Nothing is known any more: the state is another.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn known_mut(&mut self, instrument: InstrumentId) -> &mut Known {
        let index = instrument.0 as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, NOTHING);
        }
        &mut self.0[index]
    }
}

/// Whether readers get an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Yes,
    No,
}

fn order_count(engine: &Engine, instrument: InstrumentId) -> i64 {
    i64::try_from(engine.open_order_count(instrument)).unwrap_or(i64::MAX)
}

fn is_continuous(engine: &Engine, instrument: InstrumentId) -> bool {
    engine.instrument(instrument).is_none_or(|view| view.phase == TradingPhase::Continuous)
}

#[cfg(test)]
mod tests {
    use walras_types::Side;

    use super::*;
    use crate::feed::trial::Trial;

    const IT: InstrumentId = InstrumentId(0);

    struct Venue {
        trial: Trial,
        indicatives: Indicatives,
    }

    impl Venue {
        /// An instrument that collects orders.
        fn collecting() -> Self {
            Self { trial: Trial::collecting(1), indicatives: Indicatives::default() }
        }

        fn phase(&mut self, phase: TradingPhase) {
            self.trial.phase(0, phase);
        }

        fn order(&mut self, id: u64, side: Side, price: i64) {
            self.trial.order(0, id, side, price);
        }

        fn publish(&mut self) -> (Option<u64>, News) {
            let (indicative, news) = self.indicatives.publish(&self.trial.engine, self.trial.market.instrument(IT).unwrap());
            (indicative.map(|uncross| uncross.volume.get()), news)
        }

        fn now(&self) -> Option<u64> {
            self.indicatives.now(&self.trial.engine, IT).map(|uncross| uncross.volume.get())
        }
    }

    #[test]
    fn a_book_that_is_not_large_is_computed_in_each_publication_and_said_once() {
        let mut venue = Venue::collecting();
        assert_eq!(venue.publish(), (None, News::No));
        venue.order(1, Side::Buy, 101);
        venue.order(2, Side::Sell, 100);
        assert_eq!(venue.now(), Some(1), "before it is published");
        assert_eq!(venue.publish(), (Some(1), News::Yes));
        assert_eq!(venue.publish(), (Some(1), News::No));
        venue.order(3, Side::Sell, 105);
        assert_eq!(venue.publish(), (Some(1), News::No), "another level changed nothing");
        venue.phase(TradingPhase::OpeningAuction);
        venue.phase(TradingPhase::Continuous);
        assert_eq!(venue.publish(), (None, News::Yes));
    }

    #[test]
    fn a_reader_who_was_shown_what_passed_between_two_publications_is_corrected() {
        let mut venue = Venue::collecting();
        venue.order(1, Side::Buy, 101);
        venue.order(2, Side::Sell, 100);
        assert_eq!(venue.publish(), (Some(1), News::Yes));
        venue.trial.cancel(0, 2);
        assert_eq!(venue.indicatives.begin(&venue.trial.engine, IT), None);
        venue.order(3, Side::Sell, 100);
        assert_eq!(venue.publish(), (Some(1), News::Yes), "the same as before, though not to that reader");
        assert_eq!(venue.publish(), (Some(1), News::No));
    }

    #[test]
    fn a_large_book_is_computed_less_often_and_its_last_state_in_the_end() {
        let mut venue = Venue::collecting();
        let pairs = 3 * ORDERS_PER_PUBLICATION.unsigned_abs() / 2;
        for id in 0..pairs {
            venue.order(2 * id, Side::Buy, 101);
            venue.order(2 * id + 1, Side::Sell, 100);
        }
        assert_eq!(venue.publish(), (Some(pairs), News::Yes));
        assert_eq!(venue.now(), Some(pairs));
        venue.order(2 * pairs, Side::Buy, 101);
        venue.order(2 * pairs + 1, Side::Sell, 100);
        // It went through three publications' worth of orders.
        assert_eq!([venue.publish(), venue.publish()], [(Some(pairs), News::No); 2]);
        assert_eq!(venue.now(), Some(pairs), "questions between do not cost more");
        assert_eq!(venue.publish(), (Some(pairs + 1), News::Yes), "though nothing changed since");
        assert_eq!(venue.publish(), (Some(pairs + 1), News::No));
    }
}
