//! Books as their readers were sent them, kept by the thread that gives pushes out: so one more reader's snapshot costs the thread that
//! applies commands nothing, however many levels the book has.
//!
//! A view begins with the first reader's snapshot, which the engine made, and takes every update from then on. It is what has been given
//! out, at its release time: so a snapshot of it is never ahead of anybody, and the next update follows it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use walras_engine::Uncross;
use walras_market_data::BookLevel;
use walras_types::{InstrumentId, LogIndex, PriceTicks};

use super::publication::{Publication, Shared};
use super::{BookPush, Push};

/// Of which books there is a view. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownBooks(Arc<Mutex<BTreeSet<InstrumentId>>>);

impl KnownBooks {
    fn known(&self) -> MutexGuard<'_, BTreeSet<InstrumentId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a view of a book: it may be forgotten before it is asked.
    pub(super) fn has(&self, instrument: InstrumentId) -> bool {
        self.known().contains(&instrument)
    }
}

#[derive(Debug)]
struct BookView {
    log_index: LogIndex,
    bids: BTreeMap<PriceTicks, BookLevel>,
    asks: BTreeMap<PriceTicks, BookLevel>,
    indicative: Option<Uncross>,
    /// Made for an earlier reader, as long as nothing changed.
    snapshot: Option<Shared>,
}

/// The views.
#[derive(Debug, Default)]
pub(super) struct BookViews {
    views: HashMap<InstrumentId, BookView>,
    known: KnownBooks,
}

impl BookViews {
    /// None yet; `known` says which there are.
    pub(super) fn new(known: KnownBooks) -> Self {
        Self { views: HashMap::new(), known }
    }

    /// A publication is given out.
    pub(super) fn take(&mut self, publication: &Shared) {
        let Push::Book(book) = publication.push() else { return };
        if book.snapshot {
            let levels = |levels: &[BookLevel]| levels.iter().map(|level| (level.price, *level)).collect();
            let (bids, asks) = (levels(&book.bids), levels(&book.asks));
            let view = BookView {
                log_index: book.log_index,
                bids,
                asks,
                indicative: book.indicative,
                snapshot: Some(Arc::clone(publication)),
            };
            self.views.insert(book.instrument, view);
            self.known.known().insert(book.instrument);
        } else if let Some(view) = self.views.get_mut(&book.instrument) {
            (view.log_index, view.indicative, view.snapshot) = (book.log_index, book.indicative, None);
            for (side, changed) in [(&mut view.bids, &book.bids), (&mut view.asks, &book.asks)] {
                for level in changed {
                    if level.shown.is_zero() {
                        side.remove(&level.price);
                    } else {
                        side.insert(level.price, *level);
                    }
                }
            }
        }
    }

    /// The book as it was given out; `None` where there is no view.
    pub(super) fn snapshot(&mut self, instrument: InstrumentId) -> Option<Shared> {
        let view = self.views.get_mut(&instrument)?;
        let BookView { log_index, bids, asks, indicative, snapshot } = view;
        let made = snapshot.get_or_insert_with(|| {
            let bids = bids.values().rev().copied().collect();
            let asks = asks.values().copied().collect();
            Publication::new(Push::Book(Arc::new(BookPush::whole(instrument, *log_index, bids, asks, *indicative))))
        });
        Some(Arc::clone(made))
    }

    /// Something was not given out that should have been, or the state is another.
    pub(super) fn clear(&mut self) {
        self.known.known().clear();
        self.views.clear();
    }
}

#[cfg(test)]
mod tests {
    use walras_types::SizeLots;

    use super::*;

    fn level(price: i64, shown: u64) -> BookLevel {
        BookLevel { price: PriceTicks::saturating(price), shown: SizeLots::new(shown), order_count: u32::from(shown > 0) }
    }

    fn push(snapshot: bool, log_index: u64, bids: &[(i64, u64)], asks: &[(i64, u64)]) -> Shared {
        let levels = |levels: &[(i64, u64)]| levels.iter().map(|(price, shown)| level(*price, *shown)).collect();
        let (instrument, log_index) = (InstrumentId(3), LogIndex(log_index));
        let (bids, asks) = (levels(bids), levels(asks));
        Publication::new(Push::Book(Arc::new(BookPush { snapshot, ..BookPush::whole(instrument, log_index, bids, asks, None) })))
    }

    #[test]
    fn a_snapshot_is_the_first_readers_with_all_updates_since() {
        let known = KnownBooks::default();
        let mut views = BookViews::new(known.clone());
        let instrument = InstrumentId(3);
        views.take(&push(false, 1, &[(9, 1)], &[]));
        assert!(views.snapshot(instrument).is_none() && !known.has(instrument), "what came before is not known");
        let first = push(true, 4, &[(10, 5), (8, 2)], &[(11, 1)]);
        views.take(&first);
        assert!(Arc::ptr_eq(&views.snapshot(instrument).unwrap(), &first), "as long as nothing changed");
        views.take(&push(false, 6, &[(10, 0), (9, 7)], &[(12, 3), (11, 4)]));
        let shown = |views: &mut BookViews| match views.snapshot(instrument).unwrap().push() {
            Push::Book(book) => BookPush::clone(book),
            other => panic!("{other:?}"),
        };
        let expected = push(true, 6, &[(9, 7), (8, 2)], &[(11, 4), (12, 3)]);
        assert!(known.has(instrument) && matches!(expected.push(), Push::Book(book) if **book == shown(&mut views)), "best first");
        let [one, other] = [(); 2].map(|()| views.snapshot(instrument).unwrap());
        assert!(Arc::ptr_eq(&one, &other), "made and encoded once");
        views.take(&push(false, 7, &[(8, 0)], &[]));
        assert_eq!((shown(&mut views).log_index, shown(&mut views).bids), (LogIndex(7), vec![level(9, 7)]));
        views.clear();
        assert!(views.snapshot(instrument).is_none() && !known.has(instrument));
    }
}
