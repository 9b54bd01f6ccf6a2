//! The rules of a batch in fractions of big integers, offer by offer, with no sums, no searches and none of the code under test's
//! arithmetic: what `verify` must agree with.

use std::collections::BTreeSet;

use num_bigint::BigInt;
use num_rational::Ratio;
use walras_clearing::{
    BuyOffer, Edition, Fill, LowerBounds, Offer, OfferKey, Pair, Pool, PoolFill, PoolRule, PoolSide, PoolTrade, Proposal, Rules,
};
use walras_types::{Amount, BatchPrice, Commission, NetRate, limits::AMOUNT_MAX};

use super::naive_pools;

pub(crate) type Fraction = Ratio<BigInt>;

/// An offer as its owner stated it, and as it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stated<T> {
    pub pair: Pair,
    pub limit: BatchPrice,
    pub offer: T,
}

/// Everything that stands, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub asset_count: usize,
    pub sells: Vec<Stated<Offer>>,
    pub buys: Vec<Stated<BuyOffer>>,
    pub pools: Vec<Pool>,
}

/// What a right proposal comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Fills of each pair that trades, in ascending order: of sell offers, of buy offers.
    pub fills: Vec<(Pair, Vec<Fill>, Vec<Fill>)>,
    pub pools: Vec<PoolFill>,
    pub surplus: Vec<Amount>,
    /// Pairs that should sell more.
    pub short: Vec<Pair>,
}

pub(crate) fn whole(units: u64) -> Fraction {
    Fraction::from_integer(BigInt::from(units))
}

pub(crate) fn value(price: BatchPrice) -> Fraction {
    let (m, e) = price.parts();
    let power = Fraction::from_integer(BigInt::from(1) << e.unsigned_abs());
    if e < 0 { whole(m) / power } else { whole(m) * power }
}

/// `1 - 2^-k`.
fn less_share(k: u8) -> Fraction {
    whole(1) - Fraction::new(1.into(), BigInt::from(1) << k)
}

pub(crate) fn net_rate(sell: BatchPrice, buy: BatchPrice, commission: Commission) -> Fraction {
    value(sell) / value(buy) * commission.exponent().map_or(whole(1), less_share)
}

fn amount(units: &BigInt) -> Option<Amount> {
    u64::try_from(units.clone()).ok().and_then(Amount::new)
}

fn floor(units: &Fraction) -> Option<Amount> {
    amount(&units.floor().to_integer())
}

fn ceil(units: &Fraction) -> Option<Amount> {
    amount(&units.ceil().to_integer())
}

/// One offer as the walk needs it.
struct Standing {
    key: OfferKey,
    units: u64,
    stated: BatchPrice,
    /// Its effective limit before it is rounded up to the key's.
    exact: Fraction,
}

impl Standing {
    fn limit(&self, edition: Edition) -> Fraction {
        match edition {
            Edition::First => value(self.key.limit),
            Edition::Second => self.exact.clone(),
        }
    }
}

/// Units of the first offers up to the first whose limit does not hold.
fn holding(standing: &[Standing], rate: &Fraction, edition: Edition) -> BigInt {
    total(standing.iter().take_while(|offer| offer.limit(edition) <= *rate))
}

/// Takes units from the offers in the order of their keys: `(offer, taken)`.
fn take(standing: &[Standing], units: Amount) -> Vec<(&Standing, u64)> {
    let mut left = units.get();
    let mut taken = Vec::new();
    for offer in standing {
        let part = offer.units.min(left);
        if part > 0 {
            taken.push((offer, part));
        }
        left -= part;
    }
    taken
}

fn total<'a>(standing: impl Iterator<Item = &'a Standing>) -> BigInt {
    standing.map(|offer| BigInt::from(offer.units)).sum()
}

impl Parts {
    fn sells_of(&self, pair: Pair) -> Vec<Standing> {
        let of_pair = self.sells.iter().filter(|stated| stated.pair == pair);
        let mut standing: Vec<_> = of_pair
            .map(|stated| {
                let units = stated.offer.amount().get();
                let exact = (value(stated.limit) * whole(units)).ceil() / whole(units);
                Standing { key: stated.offer.key(), units, stated: stated.limit, exact }
            })
            .collect();
        standing.sort_by_key(|offer| offer.key);
        standing
    }

    fn buys_of(&self, pair: Pair) -> Vec<Standing> {
        let of_pair = self.buys.iter().filter(|stated| stated.pair == pair);
        let mut standing: Vec<_> = of_pair
            .map(|stated| {
                let units = stated.offer.bought().get();
                let most = whole(stated.offer.sold_max().get());
                let limit = value(stated.limit);
                let most = if stated.limit.is_zero() { most } else { most.min((whole(units) / limit).floor()) };
                Standing { key: stated.offer.key(), units, stated: stated.limit, exact: whole(units) / most }
            })
            .collect();
        standing.sort_by_key(|offer| offer.key);
        standing
    }

    /// The outcome, or the numbers of all rules that the proposal breaks (a deficit only where nothing else is wrong).
    pub(crate) fn judge(&self, proposal: &Proposal, rules: &Rules) -> Result<Outcome, BTreeSet<u16>> {
        if proposal.prices.len() != self.asset_count {
            return Err([1].into());
        }
        let mut judge = Judge {
            parts: self,
            proposal,
            rules,
            broken: BTreeSet::new(),
            outcome: Outcome::default(),
            sold: vec![BigInt::from(0); self.asset_count],
            bought: vec![BigInt::from(0); self.asset_count],
            left: vec![BigInt::from(0); self.asset_count],
        };
        judge.run();
        if !judge.broken.is_empty() {
            return Err(judge.broken);
        }
        if judge.sold.iter().zip(&judge.bought).any(|(sold, bought)| sold < bought) {
            return Err([18].into());
        }
        judge.outcome.surplus = judge.left.iter().map(|left| amount(left).expect("conserved")).collect();
        Ok(judge.outcome)
    }
}

struct Judge<'a> {
    parts: &'a Parts,
    proposal: &'a Proposal,
    rules: &'a Rules,
    broken: BTreeSet<u16>,
    outcome: Outcome,
    /// What pairs sell at least and buy at most, by their totals.
    sold: Vec<BigInt>,
    bought: Vec<BigInt>,
    /// What fills leave, one by one.
    left: Vec<BigInt>,
}

impl Judge<'_> {
    fn breaks(&mut self, rule: u16, is_broken: bool) -> bool {
        if is_broken {
            self.broken.insert(rule);
        }
        is_broken
    }

    fn run(&mut self) {
        if self.breaks(2, self.proposal.prices.contains(&Some(BatchPrice::ZERO))) {
            return;
        }
        let trades = &self.proposal.trades;
        self.breaks(3, trades.windows(2).any(|two| two[0].pair >= two[1].pair));
        let is_known = |pair: Pair| pair.sell.index() < self.parts.asset_count && pair.buy.index() < self.parts.asset_count;
        self.breaks(4, trades.iter().any(|trade| !is_known(trade.pair)));
        self.breaks(5, trades.iter().any(|trade| trade.pair.sell == trade.pair.buy));
        let known: Vec<Pair> =
            trades.iter().map(|trade| trade.pair).filter(|&pair| is_known(pair) && pair.sell != pair.buy).collect();
        let standing = self.parts.sells.iter().map(|s| s.pair).chain(self.parts.buys.iter().map(|s| s.pair));
        let pairs: BTreeSet<Pair> = known.into_iter().chain(standing).collect();
        for pair in pairs {
            self.pair(pair);
        }
        self.pools();
    }

    fn pair(&mut self, pair: Pair) {
        let trade = self.proposal.trades.iter().find(|trade| trade.pair == pair);
        let (sold, bought) = trade.map_or((Amount::ZERO, Amount::ZERO), |trade| (trade.sold, trade.bought_by_buy_offers));
        let price = |asset: walras_clearing::AssetIndex| self.proposal.prices[asset.index()];
        let (Some(sell), Some(buy)) = (price(pair.sell), price(pair.buy)) else {
            self.breaks(6, !sold.is_zero() || !bought.is_zero());
            return;
        };
        let rate = net_rate(sell, buy, self.rules.commission);
        let less_mu = value(sell) / value(buy) * less_share(self.rules.mu.exponent());
        let sells = self.parts.sells_of(pair);
        let buys = self.parts.buys_of(pair);
        let edition = self.rules.edition;
        let most = holding(&sells, &rate, edition);
        let least = total(sells.iter().filter(|offer| value(offer.key.limit) <= rate && value(offer.key.limit) <= less_mu));
        let most_bought = holding(&buys, &rate, edition);
        let too_much = self.breaks(7, BigInt::from(sold.get()) > most);
        let too_much_bought = self.breaks(10, BigInt::from(bought.get()) > most_bought);
        if BigInt::from(sold.get()) < least {
            self.breaks(8, self.rules.lower_bounds == LowerBounds::Required);
            self.outcome.short.push(pair);
        }
        let (paid, asked) = (floor(&(whole(sold.get()) * &rate)), ceil(&(whole(bought.get()) / &rate)));
        self.breaks(12, paid.is_none() || asked.is_none());
        if sold.is_zero() && bought.is_zero() {
            return;
        }
        let sold_in_reach = if too_much { Amount::ZERO } else { sold };
        let bought_in_reach = if too_much_bought { Amount::ZERO } else { bought };
        let mut fills = (pair, Vec::new(), Vec::new());
        for (offer, part) in take(&sells, sold_in_reach) {
            let got = (whole(part) * &rate).floor();
            // A full fill keeps the stated limit, which the judge knows and `verify` does not; a part keeps the effective one too.
            assert!(part < offer.units || value(offer.stated) * whole(part) <= got, "{:?} sells all for {got}", offer.key);
            if part < offer.units && self.breaks(9, offer.limit(edition) * whole(part) > got) {
                continue;
            }
            fills.1.extend(fill(offer, part, &whole(part), &got));
        }
        for (offer, part) in take(&buys, bought_in_reach) {
            let cost = (whole(part) / &rate).ceil();
            assert!(part < offer.units || value(offer.stated) * &cost <= whole(part), "{:?} buys all for {cost}", offer.key);
            if part < offer.units && self.breaks(11, offer.limit(edition) * &cost > whole(part)) {
                continue;
            }
            fills.2.extend(fill(offer, part, &cost, &whole(part)));
        }
        for fill in fills.1.iter().chain(&fills.2) {
            self.left[pair.sell.index()] += fill.sold.get();
            self.left[pair.buy.index()] -= fill.bought.get();
        }
        self.outcome.fills.push(fills);
        let units = |amount: Option<Amount>| amount.map_or(0, Amount::get);
        self.sold[pair.sell.index()] += sold.get() + units(asked);
        self.bought[pair.buy.index()] += units(paid) + bought.get();
    }

    /// Whether the code under test refuses what is this near to its bound.
    fn is_refused(&self, pool: &Pool, trade: &PoolTrade, left: &Fraction, after: &Fraction) -> bool {
        let pair = pool.pair(trade.side);
        let price = |asset: walras_clearing::AssetIndex| self.proposal.prices[asset.index()].expect("it has a price");
        let rate = NetRate::new(price(pair.sell), price(pair.buy), self.rules.commission).expect("prices above zero");
        let (x, y) = pool.reserves_of(trade.side);
        debug_assert_eq!(whole(x.get() - trade.sold.get()), *left);
        // More than an amount can be breaks rule 17 already.
        let bought = floor(&(after - whole(y.get())));
        bought.is_some_and(|bought| !pool.accepts(trade.side, &rate, trade.sold, bought))
    }

    fn pools(&mut self) {
        let trades = &self.proposal.pools;
        self.breaks(13, trades.windows(2).any(|two| two[0].pool >= two[1].pool));
        for trade in trades {
            let pool = self.parts.pools.get(trade.pool.0 as usize).copied();
            if self.breaks(14, pool.is_none()) || trade.sold.is_zero() {
                continue;
            }
            let pool = pool.expect("known");
            let pair = pool.pair(trade.side);
            let price = |asset: walras_clearing::AssetIndex| self.proposal.prices[asset.index()];
            let (Some(sell), Some(buy)) = (price(pair.sell), price(pair.buy)) else {
                self.breaks(15, true);
                continue;
            };
            let rate = net_rate(sell, buy, self.rules.commission);
            let [x, y] = match trade.side {
                PoolSide::First => pool.reserves,
                PoolSide::Second => [pool.reserves[1], pool.reserves[0]],
            };
            let bought = (whole(trade.sold.get()) * &rate).ceil();
            let after = whole(y.get()) + &bought;
            self.breaks(17, after > whole(AMOUNT_MAX));
            if self.breaks(16, trade.sold >= x) {
                continue;
            }
            let left = whole(x.get() - trade.sold.get());
            let kept = whole(1) - Fraction::new(pool.fee_ppm.into(), 1_000_000.into());
            let (x, y) = (whole(x.get()), whole(y.get()));
            let gets = &rate * &kept;
            let asks = naive_pools::last_price(&pool, trade.side, [&x, &y], [&left, &after]);
            // Where `verify` rounds, it does so by less than this, and against who trades with the pool.
            let is_near = asks.as_ref().is_some_and(|asks| asks > &(&gets - rounding(&pool, &gets, [&x, &y, &left, &after])));
            let is_refused = asks.is_none_or(|asks| asks > gets) || is_near && self.is_refused(&pool, trade, &left, &after);
            if self.breaks(16, is_refused) || after > whole(AMOUNT_MAX) {
                continue;
            }
            // What the pool's owners were promised.
            naive_pools::check_value(&pool, in_order(trade.side, &x, &y), in_order(trade.side, &left, &after));
            if pool.rule == PoolRule::ConstantProduct {
                // Nor does its product fall if only what is left of the fee counts.
                assert!(&left * (&y + &bought * &kept) >= &x * &y, "{pool:?} {trade:?}");
            }
            assert!(bought >= whole(trade.sold.get()) * &rate, "a pool gets at least the rate");
            let bought = floor(&bought).expect("below the maximum");
            self.sold[pair.sell.index()] += trade.sold.get();
            self.bought[pair.buy.index()] += bought.get();
            self.left[pair.sell.index()] += trade.sold.get();
            self.left[pair.buy.index()] -= bought.get();
            self.outcome.pools.push(PoolFill { pool: trade.pool, side: trade.side, sold: trade.sold, bought });
        }
    }
}

/// The most by which the code under test may think a price higher than it is. Of a stable swap it has 62 bits of the largest reserve.
fn rounding(pool: &Pool, gets: &Fraction, reserves: [&Fraction; 4]) -> Fraction {
    match pool.rule {
        PoolRule::StableSwap { .. } => {
            let (least, most) = (reserves.iter().min().expect("four"), reserves.iter().max().expect("four"));
            gets * (*most / *least) / Fraction::from_integer(BigInt::from(1) << 56)
        }
        PoolRule::ConstantProduct | PoolRule::Weighted { .. } => whole(0),
    }
}

/// What is sold and bought as first and second.
fn in_order<'f>(side: PoolSide, sold: &'f Fraction, bought: &'f Fraction) -> [&'f Fraction; 2] {
    match side {
        PoolSide::First => [sold, bought],
        PoolSide::Second => [bought, sold],
    }
}

/// `None` where an amount is too large for one: a reason for a rejection, found above.
fn fill(offer: &Standing, part: u64, sold: &Fraction, bought: &Fraction) -> Option<Fill> {
    let remaining = Amount::new(offer.units - part)?;
    Some(Fill { id: offer.key.id, sold: floor(sold)?, bought: floor(bought)?, remaining })
}
