//! The check of a proposed clearing: O(pairs * log offers), in integers, whoever found it and however.

use walras_types::{Amount, BatchPrice, LowerBounds, NetRate};

use crate::honour::PartLimit;
use crate::market::{BatchMarket, PairBook};
use crate::offer::{AssetIndex, Pair};
use crate::pair_offers::Split;
use crate::proposal::{Edition, PairTrade, PoolTrade, Proposal, Rules};
use crate::rejected::Rejected;
use crate::verified::{PairClearing, PoolFill, Shortfall, Verified};

/// Checks that a proposal clears a market within the rules:
///
/// 1. it is well formed: a price or none for each asset, pairs and pools in strict order, none unknown or unpriced;
/// 2. each pair sells at most what offers sell whose limits hold at the net rate, which is before commission the ratio of prices;
/// 3. each pair sells at least what offers sell whose limits hold at the rate less mu, and at the net rate (unless
///    [`LowerBounds::BestEffort`]: then what is missing is reported);
/// 4. the part that the last offer of a pair trades gets its limit in whole units;
/// 5. buy offers trade at most what those want whose limits hold, and no lower bound protects them;
/// 6. each pool trades within its own price;
/// 7. of each asset at least as much is sold as bought, whatever the rounding of single fills.
///
/// # Errors
/// The first thing found wrong; see [`Rejected`].
pub fn verify<'m>(market: &'m BatchMarket, proposal: &Proposal, rules: &Rules) -> Result<Verified<'m>, Rejected> {
    let prices = Prices::of(market, proposal)?;
    let mut balance = Balance { sold: vec![0; market.asset_count()], bought: vec![0; market.asset_count()] };
    let mut shortfall = Shortfall::default();
    let mut pairs = Vec::with_capacity(proposal.trades.len());
    check_form(&proposal.trades, &prices)?;
    let mut trades = Trades { rest: &proposal.trades };
    for (place, book) in market.books().iter().enumerate() {
        let pair = book.pair();
        let trade = trades.up_to(pair)?.unwrap_or(PairTrade { pair, sold: Amount::ZERO, bought_by_buy_offers: Amount::ZERO });
        let Some((sell, buy)) = prices.of_pair(pair) else {
            shortfall.unpriced_pair_count += 1;
            continue;
        };
        // `prices` holds no zero.
        let rate = NetRate::new(sell, buy, rules.commission).ok_or(Rejected::Unpriced(pair))?;
        let least = check_least(book, &trade, &rate, NetRate::less_mu(sell, buy, rules.mu), rules.edition)?;
        if let Some(missing) = least.checked_sub(trade.sold).filter(|missing| !missing.is_zero()) {
            match rules.lower_bounds {
                LowerBounds::Required => return Err(Rejected::SoldTooLittle { pair, sold: trade.sold, least }),
                LowerBounds::BestEffort => shortfall.add(pair, missing),
            }
        }
        if !trade.sold.is_zero() || !trade.bought_by_buy_offers.is_zero() {
            pairs.push(check_trade(place, book, &trade, rate, rules.edition, &mut balance)?);
        }
    }
    trades.rest.iter().try_for_each(check_absent)?;
    let pools = check_pools(market, proposal, rules, &prices, &mut balance)?;
    let surplus_least = balance.surplus()?;
    Ok(Verified { market, pairs, pools, surplus_least, shortfall })
}

/// Valuations, none of them zero.
struct Prices<'p>(&'p [Option<BatchPrice>]);

impl<'p> Prices<'p> {
    fn of(market: &BatchMarket, proposal: &'p Proposal) -> Result<Self, Rejected> {
        let (expected, found) = (market.asset_count(), proposal.prices.len());
        if expected != found {
            return Err(Rejected::PriceCount { expected, found });
        }
        match (0..).zip(&proposal.prices).find(|(_, price)| price.is_some_and(BatchPrice::is_zero)) {
            Some((asset, _)) => Err(Rejected::ZeroPrice(AssetIndex(asset))),
            None => Ok(Self(&proposal.prices)),
        }
    }

    fn of_pair(&self, pair: Pair) -> Option<(BatchPrice, BatchPrice)> {
        Some((self.0[pair.sell.index()]?, self.0[pair.buy.index()]?))
    }
}

/// Checks that the trades are well formed, whatever stands in their pairs.
fn check_form(trades: &[PairTrade], prices: &Prices<'_>) -> Result<(), Rejected> {
    let asset_count = prices.0.len();
    let mut last = None;
    for trade in trades {
        let pair = trade.pair;
        if last.replace(pair).is_some_and(|last| last >= pair) {
            return Err(Rejected::TradesOutOfOrder(pair));
        }
        if pair.sell.index() >= asset_count || pair.buy.index() >= asset_count {
            return Err(Rejected::UnknownAsset(pair));
        }
        if pair.sell == pair.buy {
            return Err(Rejected::EqualAssets(pair));
        }
        let trades = !trade.sold.is_zero() || !trade.bought_by_buy_offers.is_zero();
        if trades && prices.of_pair(pair).is_none() {
            return Err(Rejected::Unpriced(pair));
        }
    }
    Ok(())
}

/// Walks the proposal's trades, in ascending order, beside the market's pairs.
struct Trades<'p> {
    rest: &'p [PairTrade],
}

impl Trades<'_> {
    /// The trade of a pair, if it has one; those before it are of pairs in which nothing stands.
    fn up_to(&mut self, pair: Pair) -> Result<Option<PairTrade>, Rejected> {
        while let Some((trade, rest)) = self.rest.split_first().filter(|(trade, _)| trade.pair <= pair) {
            self.rest = rest;
            if trade.pair == pair {
                return Ok(Some(*trade));
            }
            check_absent(trade)?;
        }
        Ok(None)
    }
}

/// Nothing stands in the pair, so nothing may trade.
fn check_absent(trade: &PairTrade) -> Result<(), Rejected> {
    let PairTrade { pair, sold, bought_by_buy_offers: bought } = *trade;
    if !sold.is_zero() {
        return Err(Rejected::SoldTooMuch { pair, sold, most: Amount::ZERO });
    }
    if !bought.is_zero() {
        return Err(Rejected::BoughtTooMuch { pair, bought, most: Amount::ZERO });
    }
    Ok(())
}

/// Units sold and bought of each asset. Sums of fewer than 2^64 amounts fit 128 bits.
struct Balance {
    /// At least so many.
    sold: Vec<u128>,
    /// At most so many.
    bought: Vec<u128>,
}

impl Balance {
    fn add(&mut self, pair: Pair, sold: Amount, bought: Amount) {
        self.sold[pair.sell.index()] += u128::from(sold.get());
        self.bought[pair.buy.index()] += u128::from(bought.get());
    }

    /// What is left of each asset, at least.
    fn surplus(&self) -> Result<Vec<Amount>, Rejected> {
        let assets = (0..).zip(self.sold.iter().zip(&self.bought));
        assets
            .map(|(asset, (&sold, &bought))| {
                let left = sold.checked_sub(bought).ok_or(Rejected::Deficit { asset: AssetIndex(asset), sold, bought })?;
                // What is sold is for sale, and that is an amount.
                Ok(Amount::from_wide(left).expect("no more is sold than is for sale"))
            })
            .collect()
    }
}

/// The least that a pair must sell; checks that it does not sell more than it may.
fn check_least(
    book: &PairBook,
    trade: &PairTrade,
    rate: &NetRate,
    less_mu: Option<NetRate>,
    edition: Edition,
) -> Result<Amount, Rejected> {
    let (sells, pair) = (book.sells(), book.pair());
    let highest = rate.highest_limit();
    let most = sells.units_holding(rate, edition, trade.sold);
    if trade.sold > most {
        return Err(Rejected::SoldTooMuch { pair, sold: trade.sold, most });
    }
    if trade.sold == most {
        return Ok(most);
    }
    let clear = less_mu.map_or(BatchPrice::ZERO, |rate| rate.highest_limit());
    Ok(sells.units_at_or_below(clear.min(highest)))
}

/// Checks the parts, and counts what a pair sells and buys.
fn check_trade(
    place: usize,
    book: &PairBook,
    trade: &PairTrade,
    rate: NetRate,
    edition: Edition,
    balance: &mut Balance,
) -> Result<PairClearing, Rejected> {
    let PairTrade { pair, sold, bought_by_buy_offers: bought } = *trade;
    // Sell offers. Each gets the floor of its own product, and the floors of parts are together at most the floor of the whole: so this
    // is the most that all of them get.
    let paid = rate.bought_down(sold).ok_or(Rejected::AmountOverflow(pair))?;
    balance.add(pair, sold, paid);
    let sells = book.sells().split(sold).ok_or(Rejected::SoldTooMuch { pair, sold, most: Amount::ZERO })?;
    if !sells.part.is_zero() {
        let offer = &book.sells().as_slice()[sells.full_count];
        let got = rate.bought_down(sells.part).ok_or(Rejected::AmountOverflow(pair))?;
        if !PartLimit::of(offer, edition).is_honoured_by(sells.part, got) {
            return Err(Rejected::PartBreaksLimit { pair, offer: offer.key().id, sold: sells.part, bought: got });
        }
    }
    let buys = check_buys(book, bought, &rate, edition)?;
    // Buy offers. Each sells the ceiling of its own quotient, and the ceilings of parts are together at least that of the whole.
    let asked = rate.sold_up(bought).ok_or(Rejected::AmountOverflow(pair))?;
    balance.add(pair, asked, bought);
    Ok(PairClearing { pair, rate, sold, bought_by_buy_offers: bought, place, sells, buys })
}

fn check_buys(book: &PairBook, bought: Amount, rate: &NetRate, edition: Edition) -> Result<Split, Rejected> {
    let pair = book.pair();
    let most = book.buys().units_holding(rate, edition, bought);
    let split = book.buys().split(bought).filter(|_| bought <= most).ok_or(Rejected::BoughtTooMuch { pair, bought, most })?;
    if !split.part.is_zero() {
        let offer = &book.buys().as_slice()[split.full_count];
        let sold = rate.sold_up(split.part).ok_or(Rejected::AmountOverflow(pair))?;
        if !PartLimit::of(offer, edition).is_honoured_by(sold, split.part) {
            return Err(Rejected::BuyPartBreaksLimit { pair, offer: offer.key().id, sold, bought: split.part });
        }
    }
    Ok(split)
}

fn check_pools(
    market: &BatchMarket,
    proposal: &Proposal,
    rules: &Rules,
    prices: &Prices<'_>,
    balance: &mut Balance,
) -> Result<Vec<PoolFill>, Rejected> {
    let mut last = None;
    let mut fills = Vec::with_capacity(proposal.pools.len());
    for &PoolTrade { pool: index, side, sold } in &proposal.pools {
        if last.replace(index).is_some_and(|last| last >= index) {
            return Err(Rejected::PoolsOutOfOrder(index));
        }
        let pool = market.pools().get(index.0 as usize).ok_or(Rejected::UnknownPool(index))?;
        if sold.is_zero() {
            continue;
        }
        let (sell, buy) = prices.of_pair(pool.pair(side)).ok_or(Rejected::PoolUnpriced(index))?;
        let rate = NetRate::new(sell, buy, rules.commission).ok_or(Rejected::PoolUnpriced(index))?;
        let bought = rate.bought_up(sold).ok_or(Rejected::PoolOverflow(index))?;
        let (_, has) = pool.reserves_of(side);
        has.checked_add(bought).ok_or(Rejected::PoolOverflow(index))?;
        if !pool.accepts(side, &rate, sold, bought) {
            return Err(Rejected::PoolSoldTooMuch { pool: index, sold, most: pool.sold_most(side, &rate) });
        }
        balance.add(pool.pair(side), sold, bought);
        fills.push(PoolFill { pool: index, side, sold, bought });
    }
    Ok(fills)
}
