//! Many pairs changed at once, in parallel: what a block does to a market.

use std::num::NonZero;
use std::sync::Arc;

use walras_types::{Amount, NetRate};

use crate::fork_join::{cuts, fork_join};
use crate::market::{BatchMarket, MarketError, PairBook, change_of, changed_amount, check_pair};
use crate::offer::{Offer, OfferKey, Pair};
use crate::pair_offers::{Places, Split};
use crate::verified::{PairClearing, PoolFill, Verified};

/// Sell offers that go and come in a pair, in any order.
#[derive(Debug)]
pub struct SellChange<'c> {
    /// The pair.
    pub pair: Pair,
    /// Keys of those that go.
    pub removed: &'c mut [OfferKey],
    /// Those that come.
    pub added: &'c mut [Offer],
}

/// What is to be traded in a pair: a part of a [`Verified`] that no longer borrows its market.
#[derive(Clone, Debug)]
pub struct TradePlan(PairClearing);

/// What the sell offers of a pair traded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairTraded {
    /// The pair.
    pub pair: Pair,
    /// What a unit bought.
    pub rate: NetRate,
    /// Units sold.
    pub sold: Amount,
    /// The offers that traded, as they stood before: all in full, unless `part` says otherwise of the last.
    pub offers: Vec<Offer>,
    /// What came of the last, if it traded in part.
    pub part: Option<PartTraded>,
}

/// What came of an offer that traded in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartTraded {
    /// Units sold, fewer than it offered.
    pub sold: Amount,
    /// What stands of it, for the same stated limit; nothing when no units can honour that.
    pub left: Option<Offer>,
}

impl PairTraded {
    /// What each offer sold, in the order of their keys.
    pub fn sold_each(&self) -> impl Iterator<Item = (&Offer, Amount)> {
        let (full, last) = self.offers.split_at(self.offers.len() - usize::from(self.part.is_some()));
        let part = last.iter().zip(self.part).map(|(offer, part)| (offer, part.sold));
        full.iter().map(|offer| (offer, offer.amount())).chain(part)
    }

    /// What each offer sold and bought, in the order of their keys.
    pub fn fills(&self) -> impl Iterator<Item = (&Offer, Amount, Amount)> {
        self.sold_each().map(|(offer, sold)| {
            // Never more than what all of them get, which `verify` found to be an amount.
            (offer, sold, self.rate.bought_down(sold).expect("at most what the pair gets"))
        })
    }

    /// The last offer that traded, as it stood.
    #[must_use]
    pub fn marginal(&self) -> Option<OfferKey> {
        self.offers.last().map(Offer::key)
    }
}

impl Verified<'_> {
    /// What is to be traded, once the market is free to change: by sell offers ([`BatchMarket::trade`]), and by pools
    /// ([`BatchMarket::trade_pools`]).
    ///
    /// # Panics
    /// When buy offers trade.
    #[must_use]
    pub fn into_plans(self) -> (Vec<TradePlan>, Vec<PoolFill>) {
        assert!(self.pairs.iter().all(|pair| pair.buys == Split::default()), "buy offers are not traded with plans of sell offers");
        (self.pairs.into_iter().map(TradePlan).collect(), self.pools)
    }
}

impl BatchMarket {
    /// Changes sell offers of many pairs, given in ascending order: all or nothing. O(changes log offers), and a move of memory in
    /// the pairs that change. The number of threads changes nothing but the time.
    ///
    /// # Errors
    /// See [`MarketError`]; the market is then as it was.
    pub fn change_sells(&mut self, mut changes: Vec<SellChange<'_>>, threads: NonZero<usize>) -> Result<(), MarketError> {
        let mut last = None;
        for change in &changes {
            check_pair(change.pair, self.asset_count())?;
            if last.replace(change.pair).is_some_and(|last| last >= change.pair) {
                return Err(MarketError::PairsOutOfOrder(change.pair));
            }
        }
        let places = self.locate(&mut changes, threads)?;
        let mut for_sale = self.for_sale.clone();
        for (change, (_, units)) in changes.iter().zip(&places) {
            let amount = &mut for_sale[change.pair.sell.index()];
            *amount = changed_amount(change.pair.sell, *amount, *units)?;
        }
        self.for_sale = for_sale;
        self.add_books(changes.iter().map(|change| change.pair));
        let work = changes.into_iter().zip(places);
        let weight = |book: &PairBook| book.sells.as_slice().len() as u64 + 8;
        self.on_books(
            work.collect(),
            |(change, _)| change.pair,
            weight,
            threads,
            |book, (change, (places, _))| {
                book.sells.change(&places, change.added);
            },
        );
        self.books.retain(|book| !book.is_empty());
        Ok(())
    }

    /// Trades what [`crate::verify`] found right of this market: offers that trade in full go, what a part leaves stands under the same
    /// stated limit.
    ///
    /// # Panics
    /// When the market has changed since.
    pub fn trade(&mut self, plans: Vec<TradePlan>, threads: NonZero<usize>) -> Vec<PairTraded> {
        let weight = |book: &PairBook| book.sells.as_slice().len() as u64 + 8;
        let traded = self.on_books(plans, |plan| plan.0.pair, weight, threads, |book, plan| trade_pair(book, &plan.0));
        for pair in &traded {
            let closed = pair.part.filter(|part| part.left.is_none());
            let rest = closed.and_then(|part| pair.offers.last()?.amount().checked_sub(part.sold)).unwrap_or(Amount::ZERO);
            let amount = &mut self.for_sale[pair.pair.sell.index()];
            let left = amount.checked_sub(pair.sold).and_then(|left| left.checked_sub(rest));
            *amount = left.expect("what traded was for sale");
        }
        self.books.retain(|book| !book.is_empty());
        traded
    }

    /// Undoes [`BatchMarket::trade`], of which this is the result.
    ///
    /// # Panics
    /// When the market has changed since.
    pub fn untrade(&mut self, mut traded: Vec<PairTraded>, threads: NonZero<usize>) {
        let mut rests: Vec<Option<OfferKey>> = traded.iter().map(|pair| Some(pair.part?.left?.key())).collect();
        let changes = traded.iter_mut().zip(&mut rests);
        let changes =
            changes.map(|(pair, rest)| SellChange { pair: pair.pair, removed: rest.as_mut_slice(), added: &mut pair.offers });
        self.change_sells(changes.collect(), threads).expect("what stood can stand again");
    }

    /// Bytes of memory that the offers take, room to grow included.
    #[must_use]
    pub fn offer_bytes(&self) -> usize {
        self.books.iter().map(|book| book.sells.bytes() + book.buys.bytes()).sum()
    }

    /// Where changes go, and how much more they put up for sale.
    fn locate(&self, changes: &mut [SellChange<'_>], threads: NonZero<usize>) -> Result<Vec<(Places, i128)>, MarketError> {
        let weights = changes.iter().map(|change| (change.removed.len() + change.added.len()) as u64 + 1);
        let ends = cuts(weights, threads.get());
        let mut rest = changes;
        let mut from = 0;
        let mut work = Vec::with_capacity(ends.len());
        for end in ends {
            let (piece, later) = std::mem::take(&mut rest).split_at_mut(end - from);
            work.push(piece);
            (rest, from) = (later, end);
        }
        let located = fork_join(work, |piece| {
            let locate = |change: &mut SellChange<'_>| match self.book(change.pair) {
                Some(book) => located(book, change),
                None => located(&PairBook::empty(change.pair), change),
            };
            piece.iter_mut().map(locate).collect::<Result<Vec<_>, _>>()
        });
        // The first error in the order of the pairs, whatever the number of threads.
        Ok(located.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Makes place for pairs in which nothing stands yet; both are in ascending order.
    fn add_books(&mut self, pairs: impl Iterator<Item = Pair> + Clone) {
        let is_absent = |pair: &Pair| self.books.binary_search_by_key(pair, |book| book.pair).is_err();
        let mut absent = pairs.filter(is_absent).collect::<Vec<_>>().into_iter().peekable();
        if absent.len() == 0 {
            return;
        }
        let mut books = Vec::with_capacity(self.books.len() + absent.len());
        for book in std::mem::take(&mut self.books) {
            while let Some(pair) = absent.next_if(|pair| *pair < book.pair) {
                books.push(Arc::new(PairBook::empty(pair)));
            }
            books.push(book);
        }
        books.extend(absent.map(|pair| Arc::new(PairBook::empty(pair))));
        self.books = books;
    }

    /// Acts on the books of pieces of work, which are in ascending order of their pairs, in parallel.
    fn on_books<W: Send, R: Send>(
        &mut self,
        work: Vec<W>,
        pair: impl Fn(&W) -> Pair,
        weight: impl Fn(&PairBook) -> u64,
        threads: NonZero<usize>,
        act: impl Fn(&mut PairBook, W) -> R + Sync,
    ) -> Vec<R> {
        let mut books = self.books.iter_mut();
        let found: Vec<(&mut Arc<PairBook>, W)> = work
            .into_iter()
            .map(|work| {
                let pair = pair(&work);
                (books.find(|book| book.pair == pair).expect("the pair's book is there"), work)
            })
            .collect();
        let ends = cuts(found.iter().map(|(book, _)| weight(book)), threads.get());
        let mut found = found.into_iter();
        let mut from = 0;
        let pieces = ends.into_iter().map(|end| {
            let piece: Vec<_> = found.by_ref().take(end - from).collect();
            from = end;
            piece
        });
        let results = fork_join(pieces.collect(), |piece| {
            // Whoever else has a book goes on with the one that was.
            piece.into_iter().map(|(book, work)| act(Arc::make_mut(book), work)).collect::<Vec<R>>()
        });
        results.into_iter().flatten().collect()
    }
}

fn located(book: &PairBook, change: &mut SellChange<'_>) -> Result<(Places, i128), MarketError> {
    let places = book.sells.locate(change.removed, change.added)?;
    let units = change_of(&book.sells, &places, change.added);
    Ok((places, units))
}

fn trade_pair(book: &mut PairBook, plan: &PairClearing) -> PairTraded {
    let Split { full_count, part } = plan.sells;
    let PairClearing { pair, rate, sold, .. } = *plan;
    if part.is_zero() {
        let offers = book.sells.take_traded(full_count, None);
        return PairTraded { pair, rate, sold, offers, part: None };
    }
    let left = book.sells.as_slice()[full_count].after(part).ok();
    let offers = book.sells.take_traded(full_count + 1, left);
    PairTraded { pair, rate, sold, offers, part: Some(PartTraded { sold: part, left }) }
}
