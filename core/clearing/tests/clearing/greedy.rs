//! A simple proposer for any prices: everything in the money trades, then what is bought too much of trades less, until nothing is.
//! Right, seldom best: it leaves lower bounds to luck.

use walras_clearing::{
    AssetIndex, BatchMarket, Edition, LowerBounds, Pair, PairBook, PairTrade, PartLimit, PoolIndex, PoolSide, PoolTrade, Proposal,
    Rules, Split, honourable_bought, honourable_sold,
};
use walras_types::{Amount, BatchPrice, NetRate};

/// Rounds in which trades shrink by what is missing; after that one pair a round stops trading.
const ROUNDS: usize = 40;

struct Flow<'m> {
    book: &'m PairBook,
    rate: NetRate,
    edition: Edition,
    sold: Amount,
    bought: Amount,
}

impl Flow<'_> {
    /// What sell offers get and what buy offers pay, as `verify` counts.
    fn totals(&self) -> (u128, u128) {
        let wide = |amount: Option<Amount>| u128::from(amount.map_or(u64::MAX, Amount::get));
        (wide(self.rate.bought_down(self.sold)), wide(self.rate.sold_up(self.bought)))
    }

    /// Buys `missing` less, if it can.
    fn shrink(&mut self, missing: u128) {
        let less = Amount::from_wide(missing).unwrap_or(Amount::MAX);
        let paid = self.rate.bought_down(self.sold).unwrap_or(Amount::MAX);
        let target = paid.checked_sub(less).unwrap_or(Amount::ZERO);
        let mut sold = self.rate.sold_up(target).unwrap_or(Amount::ZERO).min(self.sold);
        if self.rate.bought_down(sold).is_none_or(|bought| bought > target) {
            sold = sold.checked_sub(amount(1)).unwrap_or(Amount::ZERO);
        }
        self.sold = honoured_sold(self.book, &self.rate, self.edition, sold);
        if u128::from(paid.get()) < missing {
            let still = Amount::from_wide(missing - u128::from(paid.get())).unwrap_or(Amount::MAX);
            let bought = self.bought.checked_sub(still).unwrap_or(Amount::ZERO);
            self.bought = honoured_bought(self.book, &self.rate, self.edition, bought);
        }
    }
}

fn amount(units: u64) -> Amount {
    Amount::new(units).expect("small")
}

fn without_part(total: Amount, split: Split, part: Amount) -> Amount {
    let whole = total.checked_sub(split.part).expect("a part is in the total");
    whole.checked_add(part).expect("no more than before")
}

/// At most so much sold that the part keeps its limit.
pub(crate) fn honoured_sold(book: &PairBook, rate: &NetRate, edition: Edition, sold: Amount) -> Amount {
    let split = book.sells().split(sold).expect("at most what stands");
    let next = book.sells().as_slice().get(split.full_count);
    let part = next.map_or(Amount::ZERO, |offer| honourable_sold(PartLimit::of(offer, edition), rate, split.part));
    without_part(sold, split, part)
}

/// At most so much bought that the part keeps its limit.
pub(crate) fn honoured_bought(book: &PairBook, rate: &NetRate, edition: Edition, bought: Amount) -> Amount {
    let split = book.buys().split(bought).expect("at most what stands");
    let next = book.buys().as_slice().get(split.full_count);
    let part = next.map_or(Amount::ZERO, |offer| honourable_bought(PartLimit::of(offer, edition), rate, split.part));
    without_part(bought, split, part)
}

/// A proposal at these prices that `verify` accepts, with [`LowerBounds::BestEffort`].
pub(crate) fn propose(market: &BatchMarket, prices: &[Option<BatchPrice>], rules: &Rules) -> Proposal {
    let rate_of = |pair: Pair| NetRate::new(prices[pair.sell.index()]?, prices[pair.buy.index()]?, rules.commission);
    let mut flows: Vec<Flow<'_>> = Vec::new();
    for book in market.books() {
        let Some(rate) = rate_of(book.pair()) else { continue };
        let edition = rules.edition;
        let sold = book.sells().units_holding(&rate, edition, Amount::MAX);
        let bought = book.buys().units_holding(&rate, edition, Amount::MAX);
        // Buy offers together may want more than they can pay for in one amount.
        let bought = if rate.sold_up(bought).is_none() { Amount::ZERO } else { bought };
        flows.push(Flow { book, rate, edition, sold, bought });
    }
    let mut pools: Vec<(PoolTrade, Pair, Amount)> = Vec::new();
    for (number, pool) in (0..).zip(market.pools()) {
        for side in [PoolSide::First, PoolSide::Second] {
            let pair = pool.pair(side);
            let Some(rate) = rate_of(pair) else { continue };
            let sold = pool.sold_most(side, &rate);
            let (_, has) = pool.reserves_of(side);
            let Some(bought) = rate.bought_up(sold).filter(|&bought| has.checked_add(bought).is_some()) else { continue };
            if !sold.is_zero() && pools.last().is_none_or(|(last, _, _)| last.pool < PoolIndex(number)) {
                pools.push((PoolTrade { pool: PoolIndex(number), side, sold }, pair, bought));
            }
        }
    }
    for round in 0.. {
        let mut balance = vec![0_i128; market.asset_count()];
        let mut add = |pair: Pair, sold: u128, bought: u128| {
            balance[pair.sell.index()] += sold as i128;
            balance[pair.buy.index()] -= bought as i128;
        };
        for flow in &flows {
            let (paid, asked) = flow.totals();
            add(flow.book.pair(), u128::from(flow.sold.get()) + asked, paid + u128::from(flow.bought.get()));
        }
        pools.iter().for_each(|(trade, pair, bought)| add(*pair, trade.sold.get().into(), bought.get().into()));
        let Some(short) = balance.iter().position(|&left| left < 0) else { break };
        let asset = AssetIndex(short as u16);
        let mut missing = balance[short].unsigned_abs();
        pools.retain(|(_, pair, bought)| {
            let stays = pair.buy != asset || missing == 0;
            missing = if stays { missing } else { missing.saturating_sub(bought.get().into()) };
            stays
        });
        for flow in flows.iter_mut().filter(|flow| flow.book.pair().buy == asset) {
            if missing == 0 {
                break;
            }
            let before = flow.totals().0 + u128::from(flow.bought.get());
            if round < ROUNDS {
                flow.shrink(missing);
            } else {
                (flow.sold, flow.bought) = (Amount::ZERO, Amount::ZERO);
            }
            missing = missing.saturating_sub(before - flow.totals().0 - u128::from(flow.bought.get()));
        }
    }
    let trades = flows.iter().filter(|flow| !flow.sold.is_zero() || !flow.bought.is_zero());
    let trades =
        trades.map(|flow| PairTrade { pair: flow.book.pair(), sold: flow.sold, bought_by_buy_offers: flow.bought }).collect();
    Proposal { prices: prices.to_vec(), trades, pools: pools.into_iter().map(|(trade, _, _)| trade).collect() }
}

/// The same rules, with lower bounds only counted.
pub(crate) fn best_effort(rules: &Rules) -> Rules {
    Rules { lower_bounds: LowerBounds::BestEffort, ..*rules }
}
