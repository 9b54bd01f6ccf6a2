//! A clearing that was found right, and what each offer gets of it.

use walras_types::{Amount, NetRate};

use crate::market::{BatchMarket, PairBook};
use crate::offer::{AssetIndex, OfferId, OfferKey, Pair, PoolIndex, PoolSide};
use crate::pair_offers::{PairOffers, Split, Stands};

/// What one offer trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The offer.
    pub id: OfferId,
    /// Units that it sells. At least 1.
    pub sold: Amount,
    /// Units that it gets. Zero only for a market order whose amount is worth less than a unit.
    pub bought: Amount,
    /// Units that still stand: to be sold, of an offer; to be bought, of a buy offer.
    pub remaining: Amount,
}

/// What one pool trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFill {
    /// The pool.
    pub pool: PoolIndex,
    /// What it sells.
    pub side: PoolSide,
    /// Units that it sells. At least 1.
    pub sold: Amount,
    /// Units that it gets.
    pub bought: Amount,
}

/// What one pool traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolTraded {
    /// The pool.
    pub pool: PoolIndex,
    /// What it sold and what it bought.
    pub pair: Pair,
    /// Units that it sold. At least 1.
    pub sold: Amount,
    /// Units that it got.
    pub bought: Amount,
}

/// What did not trade and should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// Pairs that sell less than their offers clearly in the money want to.
    pub pair_count: usize,
    /// The first of them, and how many units are missing there.
    pub first: Option<(Pair, Amount)>,
    /// Pairs with offers that have no rate, since an asset has no price: nothing is known about how far in the money those are.
    pub unpriced_pair_count: usize,
}

impl Shortfall {
    pub(crate) fn add(&mut self, pair: Pair, missing: Amount) {
        self.pair_count += 1;
        self.first.get_or_insert((pair, missing));
    }
}

/// What trades in one pair. It and the market are all that settling the pair needs: pairs can settle in parallel.
#[derive(Clone, Debug)]
pub struct PairClearing {
    /// The pair.
    pub pair: Pair,
    /// What a unit buys.
    pub rate: NetRate,
    /// Units sold by sell offers.
    pub sold: Amount,
    /// Units bought by buy offers.
    pub bought_by_buy_offers: Amount,
    pub(crate) place: usize,
    pub(crate) sells: Split,
    pub(crate) buys: Split,
}

/// A proposal that clears its market; made by [`crate::verify`] alone.
#[derive(Clone, Debug)]
pub struct Verified<'m> {
    pub(crate) market: &'m BatchMarket,
    pub(crate) pairs: Vec<PairClearing>,
    pub(crate) pools: Vec<PoolFill>,
    pub(crate) surplus_least: Vec<Amount>,
    pub(crate) shortfall: Shortfall,
}

impl<'m> Verified<'m> {
    /// The market that it clears.
    #[must_use]
    pub const fn market(&self) -> &'m BatchMarket {
        self.market
    }

    /// The pairs that trade, in ascending order.
    #[must_use]
    pub fn pairs(&self) -> &[PairClearing] {
        &self.pairs
    }

    /// What each pool trades, in ascending order; pools that do not trade are left out.
    #[must_use]
    pub fn pools(&self) -> &[PoolFill] {
        &self.pools
    }

    /// What should have traded and does not.
    #[must_use]
    pub const fn shortfall(&self) -> Shortfall {
        self.shortfall
    }

    /// The fills of a pair, one of [`Verified::pairs`].
    #[must_use]
    pub fn fills(&self, clearing: &PairClearing) -> PairFills<'m> {
        PairFills { book: &self.market.books()[clearing.place], rate: clearing.rate, sells: clearing.sells, buys: clearing.buys }
    }

    /// Units of an asset that stay with the venue at least: commission, and what rounding whole pairs leaves. Known without a
    /// walk over fills.
    ///
    /// # Panics
    /// When the asset is not one of the market's.
    #[must_use]
    pub fn surplus_least(&self, asset: AssetIndex) -> Amount {
        self.surplus_least[asset.index()]
    }

    /// Units of each asset that stay with the venue, exactly: what fills sell less what fills buy. Walks every fill.
    #[must_use]
    pub fn surplus(&self) -> Vec<Amount> {
        let mut surplus = vec![0_i128; self.market.asset_count()];
        let mut add = |pair: Pair, sold: Amount, bought: Amount| {
            surplus[pair.sell.index()] += i128::from(sold.get());
            surplus[pair.buy.index()] -= i128::from(bought.get());
        };
        for clearing in &self.pairs {
            let fills = self.fills(clearing);
            fills.sells().chain(fills.buys()).for_each(|fill| add(clearing.pair, fill.sold, fill.bought));
        }
        for fill in &self.pools {
            add(self.market.pools()[fill.pool.0 as usize].pair(fill.side), fill.sold, fill.bought);
        }
        let amount = |units: i128| u128::try_from(units).ok().and_then(Amount::from_wide);
        surplus
            .into_iter()
            .map(|units| amount(units).expect("verified: at least surplus_least, at most what is for sale"))
            .collect()
    }
}

/// What the offers of one pair trade.
#[derive(Clone, Copy, Debug)]
pub struct PairFills<'m> {
    book: &'m PairBook,
    rate: NetRate,
    sells: Split,
    buys: Split,
}

impl<'m> PairFills<'m> {
    /// What sell offers trade, in the order of their keys; only the last may be filled in part.
    pub fn sells(&self) -> impl Iterator<Item = Fill> + use<'m> {
        let rate = self.rate;
        traded(self.book.sells(), self.sells).map(move |(offer, sold)| Fill {
            id: offer.key().id,
            sold,
            // Never more than what all of them get, which `verify` found to be an amount.
            bought: rate.bought_down(sold).expect("at most what the pair gets"),
            remaining: less(offer.units(), sold),
        })
    }

    /// What buy offers trade, in the order of their keys; only the last may be filled in part.
    pub fn buys(&self) -> impl Iterator<Item = Fill> + use<'m> {
        let rate = self.rate;
        traded(self.book.buys(), self.buys).map(move |(offer, bought)| Fill {
            id: offer.key().id,
            // In full: at most sold_max, since the effective limit holds. In part: `verify` found it to honour the limit.
            sold: rate.sold_up(bought).expect("at most what the offer reserved"),
            bought,
            remaining: less(offer.units(), bought),
        })
    }

    /// The key of the last sell offer that trades, in whole or in part: all before it trade in full, none after it trades.
    #[must_use]
    pub fn marginal_sell(&self) -> Option<OfferKey> {
        marginal(self.book.sells(), self.sells)
    }

    /// The key of the last buy offer that trades.
    #[must_use]
    pub fn marginal_buy(&self) -> Option<OfferKey> {
        marginal(self.book.buys(), self.buys)
    }
}

/// The offers that trade, with the units that they fix.
fn traded<T: Stands>(offers: &PairOffers<T>, split: Split) -> impl Iterator<Item = (&T, Amount)> {
    let (full, rest) = offers.as_slice().split_at(split.full_count);
    let part = rest.first().filter(|_| !split.part.is_zero()).map(|offer| (offer, split.part));
    full.iter().map(|offer| (offer, offer.units())).chain(part)
}

fn marginal<T: Stands>(offers: &PairOffers<T>, split: Split) -> Option<OfferKey> {
    let traded_count = split.full_count + usize::from(!split.part.is_zero());
    Some(offers.as_slice()[traded_count.checked_sub(1)?].key())
}

fn less(whole: Amount, part: Amount) -> Amount {
    whole.checked_sub(part).expect("a part is at most the whole")
}
