//! An index that is kept from block to block.
//!
//! Of a market of many pairs few change from one block to the next, and of those that do most offers stay. So the index of all offers is
//! kept, and of each book whether it is still the one that was indexed: a market shares what does not change
//! ([`walras_clearing::BatchMarket`]), so a book at another place is another one, and one at the same place, to which we hold a
//! [`Weak`], is the same. Only books that changed are indexed again, where they lay before as long as they fit.

use std::sync::{Arc, Weak};

use walras_clearing::{BatchMarket, Pair, PairBook};
use walras_price_solver::demand::{DemandIndex, IndexError};

use crate::index;

/// The index of the last market that a search looked at as a whole, so that the next search is spared most of the work. What is found does
/// not depend on it: it answers as one that was made anew.
#[derive(Clone, Debug, Default)]
pub struct KeptIndex {
    kept: Option<Kept>,
}

#[derive(Clone, Debug)]
struct Kept {
    /// What limits are divided by.
    divisor: f64,
    index: DemandIndex,
    /// What was indexed, in the order of the pairs.
    books: Vec<(Pair, Weak<PairBook>)>,
}

/// Where more than one pair in so many comes or goes, all is made anew: each moves all pairs that follow.
const COMING_SHARE: usize = 8;

impl KeptIndex {
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_none()
    }

    /// The index of this market, limits divided by this share. O(offers of the pairs that changed + pairs), if the last one was of the
    /// same share and most pairs are still there; else O(offers). `None` when it is over before: nothing is kept then.
    ///
    /// # Errors
    /// As [`index::demand_index`]; nothing is kept then.
    pub(crate) fn of(
        &mut self,
        market: &BatchMarket,
        divisor: f64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<&DemandIndex>, IndexError> {
        let (kept, is_complete) = match self.kept.take().filter(|kept| kept.can_become(market, divisor)) {
            Some(mut kept) => {
                let is_complete = kept.follow(market, is_over)?;
                (kept, is_complete)
            }
            None => {
                let mut kept = Kept::new(market, divisor)?;
                let is_complete = kept.follow_books(market, is_over)?;
                (kept, is_complete)
            }
        };
        Ok(is_complete.then(|| &self.kept.insert(kept).index))
    }
}

impl Kept {
    /// Without offers.
    fn new(market: &BatchMarket, divisor: f64) -> Result<Self, IndexError> {
        let mut kept = Self { divisor, index: index::without_offers(market, divisor)?, books: Vec::new() };
        let levels: usize = market.books().iter().map(|book| book.sells().as_slice().len()).sum();
        kept.index.reserve(market.books().len(), levels + levels / 8);
        Ok(kept)
    }

    fn can_become(&self, market: &BatchMarket, divisor: f64) -> bool {
        let is_alike = self.divisor == divisor && self.index.asset_count() == market.asset_count();
        is_alike && !self.index.is_mostly_unused() && {
            let (mut gone, mut come) = (0, 0);
            merge(&self.books, market.books(), |step| match step {
                Step::Both(..) => {}
                Step::Gone(_) => gone += 1,
                Step::New(_) => come += 1,
            });
            (gone + come) * COMING_SHARE <= market.books().len()
        }
    }

    fn follow(&mut self, market: &BatchMarket, is_over: &dyn Fn() -> bool) -> Result<bool, IndexError> {
        self.index.set_pools(index::pools_of(market, self.divisor))?;
        self.follow_books(market, is_over)
    }

    /// Says whether all books were gone through before it was over.
    fn follow_books(&mut self, market: &BatchMarket, is_over: &dyn Fn() -> bool) -> Result<bool, IndexError> {
        let mut is_complete = true;
        let (index, mut levels, mut result) = (&mut self.index, Vec::new(), Ok(()));
        let mut set = |pair: Pair, levels: &[(f64, f64)]| {
            if result.is_ok() {
                result = index.set_book(pair.sell.index(), pair.buy.index(), levels);
            }
        };
        merge(&self.books, market.books(), |step| match step {
            Step::Both(weak, book) if std::ptr::eq(weak.as_ptr(), Arc::as_ptr(book)) => {}
            Step::Both(_, book) | Step::New(book) => {
                is_complete = is_complete && !is_over();
                if !is_complete {
                    return;
                }
                index::collect(book, self.divisor, None, &mut levels);
                set(book.pair(), &levels);
            }
            Step::Gone(pair) => set(pair, &[]),
        });
        self.books = market.books().iter().map(|book| (book.pair(), Arc::downgrade(book))).collect();
        result.map(|()| is_complete)
    }
}

enum Step<'a> {
    Both(&'a Weak<PairBook>, &'a Arc<PairBook>),
    New(&'a Arc<PairBook>),
    Gone(Pair),
}

/// Goes through both in the order of the pairs.
fn merge<'a>(old: &'a [(Pair, Weak<PairBook>)], new: &'a [Arc<PairBook>], mut step: impl FnMut(Step<'a>)) {
    let mut old = old.iter().peekable();
    for book in new {
        while let Some((pair, _)) = old.next_if(|(pair, _)| *pair < book.pair()) {
            step(Step::Gone(*pair));
        }
        step(match old.next_if(|(pair, _)| *pair == book.pair()) {
            Some((_, weak)) => Step::Both(weak, book),
            None => Step::New(book),
        });
    }
    old.for_each(|(pair, _)| step(Step::Gone(*pair)));
}

#[cfg(test)]
mod tests;
