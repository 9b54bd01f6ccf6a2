//! From a batch market and prices to a proposal that the core accepts.

use walras_clearing::{
    BatchMarket, Edition, PairBook, PairTrade, PartLimit, Pool, PoolIndex, PoolSide, PoolTrade, Proposal, Rules, honourable_bought,
    honourable_sold,
};
use walras_types::{Amount, BatchPrice, NetRate};

use crate::amounts::{Amounts, AmountsFinder, Fills, Lane, LaneFill, LaneMarket};

/// A proposal, and how its amounts came about.
#[derive(Clone, Debug)]
pub struct Proposed {
    /// What [`walras_clearing::verify`] accepts; with lower bounds required, if `amounts.below_lower_count` is zero.
    pub proposal: Proposal,
    /// The amounts behind it, lane by lane.
    pub amounts: Amounts,
    /// The lanes that could trade, in the order of the amounts.
    pub lanes: Vec<Lane>,
}

/// Amounts for all pairs and pools of a market at these prices, one per asset; those without a price do not trade.
///
/// # Panics
/// When there is not exactly one price or `None` for each asset of the market.
pub fn propose(finder: &mut AmountsFinder, market: &BatchMarket, prices: &[Option<BatchPrice>], rules: &Rules) -> Proposed {
    propose_until(finder, market, prices, rules, &|| false)
}

/// The same until `is_over` says so: parts that have no amounts by then trade nothing.
///
/// # Panics
/// See [`propose`].
pub fn propose_until(
    finder: &mut AmountsFinder,
    market: &BatchMarket,
    prices: &[Option<BatchPrice>],
    rules: &Rules,
    is_over: &dyn Fn() -> bool,
) -> Proposed {
    assert_eq!(prices.len(), market.asset_count(), "give a price or none for each asset of the market");
    let prices: Vec<Option<BatchPrice>> = prices.iter().map(|price| price.filter(|price| !price.is_zero())).collect();
    let mut traders = traders(market, &prices, rules);
    traders.sort_by_key(|(lane, _)| (lane.sell, lane.buy));
    let lanes: Vec<Lane> = traders.iter().map(|(lane, _)| *lane).collect();
    let lane_market =
        LaneMarket::new(&prices, &lanes, rules.commission).expect("lanes are between different priced assets, and sorted");
    let behind = Behind(traders);
    let mut amounts = finder.find_until(&lane_market, &behind, is_over);
    // What proceeds would be more than an amount should trade too, and can not.
    let is_below = |((_, trader), fill): &(&(Lane, Trader<'_>), &LaneFill)| matches!(trader, Trader::Sells { least, .. } if fill.sold < *least);
    amounts.below_lower_count = behind.0.iter().zip(&amounts.fills).filter(is_below).count();
    let mut proposal = Proposal { prices, ..Proposal::default() };
    for ((_, trader), fill) in behind.0.iter().zip(&amounts.fills).filter(|(_, fill)| !fill.sold.is_zero()) {
        trader.add_to(&mut proposal, *fill);
    }
    proposal.pools.sort_by_key(|trade| trade.pool);
    Proposed { proposal, amounts, lanes }
}

/// Who trades in a lane.
#[derive(Clone, Copy)]
enum Trader<'m> {
    /// The sums of the offers that must and that may trade.
    Sells {
        book: &'m PairBook,
        rate: NetRate,
        edition: Edition,
        least: Amount,
        most: Amount,
    },
    Buys {
        book: &'m PairBook,
        rate: NetRate,
        edition: Edition,
        most: Amount,
    },
    Pool {
        index: PoolIndex,
        pool: &'m Pool,
        side: PoolSide,
        rate: NetRate,
    },
}

/// What a pool sells that is clearly in the money: it should trade, as such offers should.
fn pool_least(pool: &Pool, side: PoolSide, less_mu: &NetRate, most: Amount) -> Amount {
    if most.is_zero() { most } else { pool.sold_most(side, less_mu).min(most) }
}

/// All that can trade: of a pair the sell offers, then the buy offers, then the pools.
fn traders<'m>(market: &'m BatchMarket, prices: &[Option<BatchPrice>], rules: &Rules) -> Vec<(Lane, Trader<'m>)> {
    let mut traders = Vec::with_capacity(market.books().len());
    let mut add = |sell: usize, buy: usize, lower: Amount, upper: Amount, trader: Trader<'m>| {
        let is_due = matches!(trader, Trader::Sells { least, .. } if !least.is_zero());
        if is_due || !upper.is_zero() {
            traders.push((Lane { sell: sell as u32, buy: buy as u32, lower, upper }, trader));
        }
    };
    let rates = |sell: usize, buy: usize| {
        let (sell, buy) = (prices[sell]?, prices[buy]?);
        Some((NetRate::new(sell, buy, rules.commission)?, NetRate::less_mu(sell, buy, rules.mu)?))
    };
    for book in market.books() {
        let (sell, buy) = (book.pair().sell.index(), book.pair().buy.index());
        let Some((rate, less_mu)) = rates(sell, buy) else { continue };
        let highest = rate.highest_limit();
        let edition = rules.edition;
        let most = book.sells().units_holding(&rate, edition, Amount::MAX);
        let least = book.sells().units_at_or_below(less_mu.highest_limit().min(highest));
        add(sell, buy, payable(&rate, least), payable(&rate, most), Trader::Sells { book, rate, edition, least, most });
        let most = book.buys().units_holding(&rate, edition, Amount::MAX);
        add(sell, buy, Amount::ZERO, sold_for(&rate, most), Trader::Buys { book, rate, edition, most });
    }
    for (index, pool) in (0..).map(PoolIndex).zip(market.pools()) {
        for side in [PoolSide::First, PoolSide::Second] {
            let (sell, buy) = (pool.pair(side).sell.index(), pool.pair(side).buy.index());
            let Some((rate, less_mu)) = rates(sell, buy) else { continue };
            let most = pool.sold_most(side, &rate);
            add(sell, buy, pool_least(pool, side, &less_mu, most), most, Trader::Pool { index, pool, side, rate });
        }
    }
    traders
}

/// The most of `sold` whose proceeds are an amount.
fn payable(rate: &NetRate, sold: Amount) -> Amount {
    if rate.bought_down(sold).is_some() {
        return sold;
    }
    // Selling `sold` buys more than the maximum, so there is a least amount that buys at least that: one less buys less than the maximum.
    let reaching = rate.sold_up(Amount::MAX).unwrap_or(sold);
    if rate.bought_down(reaching).is_some() { reaching } else { less_one(reaching) }
}

fn less_one(amount: Amount) -> Amount {
    Amount::new(amount.get().saturating_sub(1)).unwrap_or(Amount::ZERO)
}

/// What must be sold to buy this, at most [`Amount::MAX`].
fn sold_for(rate: &NetRate, bought: Amount) -> Amount {
    rate.sold_up(bought).unwrap_or(Amount::MAX)
}

struct Behind<'m>(Vec<(Lane, Trader<'m>)>);

impl Fills for Behind<'_> {
    fn at_most(&self, lane: usize, sold_max: Amount) -> LaneFill {
        match self.0[lane].1 {
            // Whole offers need no search.
            Trader::Sells { rate, least, most, .. } if sold_max == most || sold_max == least => {
                rate.bought_down(sold_max).map_or_else(LaneFill::default, |bought| LaneFill { sold: sold_max, bought })
            }
            Trader::Sells { book, rate, edition, .. } => sells_at_most(book, &rate, edition, sold_max),
            Trader::Buys { book, rate, edition, most } => buys_at_most(book, &rate, edition, most, sold_max),
            Trader::Pool { pool, side, rate, .. } => pool_at_most(pool, side, &rate, sold_max),
        }
    }
}

fn sells_at_most(book: &PairBook, rate: &NetRate, edition: Edition, sold_max: Amount) -> LaneFill {
    let sells = book.sells();
    let Some(split) = sells.split(sold_max) else { return LaneFill::default() };
    let part = match sells.as_slice().get(split.full_count) {
        Some(offer) if !split.part.is_zero() => honourable_sold(PartLimit::of(offer, edition), rate, split.part),
        _ => Amount::ZERO,
    };
    let sold = sells.units_of_first(split.full_count).checked_add(part).unwrap_or(sold_max);
    rate.bought_down(sold).map_or_else(LaneFill::default, |bought| LaneFill { sold, bought })
}

fn buys_at_most(book: &PairBook, rate: &NetRate, edition: Edition, most: Amount, sold_max: Amount) -> LaneFill {
    let buys = book.buys();
    let wanted = rate.bought_down(sold_max).unwrap_or(Amount::MAX).min(most);
    let Some(split) = buys.split(wanted) else { return LaneFill::default() };
    let part = match buys.as_slice().get(split.full_count) {
        Some(offer) if !split.part.is_zero() => honourable_bought(PartLimit::of(offer, edition), rate, split.part),
        _ => Amount::ZERO,
    };
    let bought = buys.units_of_first(split.full_count).checked_add(part).unwrap_or(wanted);
    rate.sold_up(bought).map_or_else(LaneFill::default, |sold| LaneFill { sold, bought })
}

fn pool_at_most(pool: &Pool, side: PoolSide, rate: &NetRate, sold_max: Amount) -> LaneFill {
    match rate.bought_up(sold_max) {
        Some(bought) if pool.accepts(side, rate, sold_max, bought) => LaneFill { sold: sold_max, bought },
        _ => LaneFill::default(),
    }
}

impl Trader<'_> {
    fn add_to(&self, proposal: &mut Proposal, fill: LaneFill) {
        match *self {
            Trader::Sells { book, .. } => {
                proposal.trades.push(PairTrade { pair: book.pair(), sold: fill.sold, bought_by_buy_offers: Amount::ZERO });
            }
            Trader::Buys { book, .. } => match proposal.trades.last_mut().filter(|trade| trade.pair == book.pair()) {
                Some(trade) => trade.bought_by_buy_offers = fill.bought,
                None => {
                    proposal.trades.push(PairTrade { pair: book.pair(), sold: Amount::ZERO, bought_by_buy_offers: fill.bought });
                }
            },
            Trader::Pool { index, side, .. } => proposal.pools.push(PoolTrade { pool: index, side, sold: fill.sold }),
        }
    }
}
