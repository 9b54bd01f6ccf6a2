//! What a clearing is worth: the measures of SPEEDEX (2023), section 6.2, and what there was to do.
//!
//! Values are amounts times valuations, in the unit of the proposal's prices. Only their ratios mean something, and only among assets that
//! trade with each other, directly or through others: components have unrelated units.

use std::time::Duration;

use walras_clearing::{AssetIndex, Edition, Pair, PairBook, Rules, Stands, Verified};
use walras_price_solver::solve::Outcome;
use walras_trade_amounts::{Proposed, Relaxed};
use walras_types::{Amount, NetRate};

use crate::clear::Priced;
use crate::index::{self, float};

/// How long each phase took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Sorting the offers into the solver's index.
    pub index: Duration,
    /// Finding prices.
    pub prices: Duration,
    /// Finding amounts in whole units.
    pub amounts: Duration,
    /// The core's check.
    pub verify: Duration,
    /// Walking the fills for this report.
    pub report: Duration,
}

impl Times {
    /// All phases together.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.index + self.prices + self.amounts + self.verify + self.report
    }
}

/// What became of the lower bounds: the amounts that offers clearly in the money sell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Pairs that sell less than they should.
    pub pairs_below: usize,
    /// The first of them, and the units missing there.
    pub first_below: Option<(Pair, Amount)>,
    /// Parts of the market where some lower bounds had to be lowered for amounts to exist, as in Appendix D.
    pub parts_lowered: usize,
    /// By how much in value, together.
    pub lowered_value: f64,
    /// Parts of the market where all lower bounds were dropped.
    pub parts_dropped: usize,
    /// Assets that were left out because they could not be balanced in whole units.
    pub assets_removed: Vec<AssetIndex>,
    /// Pairs with offers that have no rate, since one of their assets has no price.
    pub unpriced_pair_count: usize,
}

/// What a clearing is worth, and what it took to find.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How well smoothed demand and supply agree at the prices, the worst of any part of the market. Amounts are exact all the same.
    pub outcome: Outcome,
    /// Demand queries of the price search, or as much other work.
    pub queries: u64,
    /// The largest share of an asset's smoothed demand that its supply does not cover.
    pub worst_excess: f64,
    /// Parts that were priced on their own.
    pub block_count: usize,
    /// Groups of priced assets between which there are no offers.
    pub component_count: usize,
    /// The group of each asset, by the number of its first asset; none without a price.
    pub components: Vec<Option<usize>>,
    /// Assets without a price: what they bring never comes back to them, so nothing of theirs can trade.
    pub unpriced: Vec<AssetIndex>,
    /// Pairs whose buy offers took part in the search of prices: all, or those in which an asset had no price without them.
    pub buying_pair_count: usize,
    /// Searches of prices in which they took part, each at the rates of the one before.
    pub buy_round_count: usize,
    /// Whether the last of these kept its rates, so that buy offers count for what they need; also if none took part.
    pub are_buy_rates_settled: bool,
    /// Offers of both kinds.
    pub offer_count: usize,
    /// Offers whose limit holds at the net rate.
    pub in_the_money_count: usize,
    /// Offers that trade.
    pub fill_count: usize,
    /// Offers that trade in part.
    pub partial_count: usize,
    /// Pairs in which offers trade.
    pub pair_count: usize,
    /// Pools that trade.
    pub pool_count: usize,
    /// Value sold by offers and pools.
    pub volume: f64,
    /// What fills of sell offers gain against their limits, in value. Market orders name no price and are left out here and below.
    pub realised_utility: f64,
    /// What sell offers in the money would gain had all of them traded in full, less what is realised.
    pub unrealised_utility: f64,
    /// The same of buy offers, which no bound protects: what fills gain.
    pub buy_realised_utility: f64,
    /// What buy offers in the money would gain, less that.
    pub buy_unrealised_utility: f64,
    /// The least mu for which every sell offer with a limit more than mu below the rate (before commission) trades in full.
    pub mu_achieved: f64,
    /// Units of each asset that stay with the venue: commission and what rounding leaves.
    pub kept: Vec<Amount>,
    /// Their value.
    pub kept_value: f64,
    /// What became of the lower bounds.
    pub bounds: Bounds,
    /// How long it took.
    pub times: Times,
}

impl Report {
    /// The share of all utility in reach of sell offers that is not realised, from 0 to 1.
    #[must_use]
    pub fn unrealised_share(&self) -> f64 {
        let all = self.realised_utility + self.unrealised_utility;
        if all > 0.0 { self.unrealised_utility / all } else { 0.0 }
    }
}

pub(crate) fn report(priced: &Priced, proposed: &Proposed, verified: &Verified<'_>, rules: &Rules) -> Report {
    let Rules { edition, commission, .. } = *rules;
    let (market, prices) = (verified.market(), &priced.prices);
    let mut tally = Tally { kept: index::kept(commission), ..Tally::default() };
    let mut clearings = verified.pairs().iter().peekable();
    for book in market.books() {
        let clearing = clearings.next_if(|clearing| clearing.pair == book.pair());
        tally.offer_count += book.sells().as_slice().len() + book.buys().as_slice().len();
        let (Some(sell), Some(buy)) = (prices[book.pair().sell.index()], prices[book.pair().buy.index()]) else { continue };
        let Some(rate) = NetRate::new(sell, buy, commission) else { continue };
        let (sold, bought) = clearing.map_or((Amount::ZERO, Amount::ZERO), |trade| (trade.sold, trade.bought_by_buy_offers));
        tally.sells(book, sold, (&rate, edition), (float(sell), float(buy)));
        tally.buys(book, bought, (&rate, edition), (float(sell), float(buy)));
        tally.volume += sold.get() as f64 * float(sell);
        if let Some(clearing) = clearing {
            tally.volume += verified.fills(clearing).buys().map(|fill| fill.sold.get() as f64).sum::<f64>() * float(sell);
        }
    }
    let value = |amount: Amount, asset: usize| prices[asset].map_or(0.0, |price| amount.get() as f64 * float(price));
    let of_pools =
        |fill: &walras_clearing::PoolFill| value(fill.sold, market.pools()[fill.pool.0 as usize].pair(fill.side).sell.index());
    let kept = verified.surplus();
    let is_priced = |asset: usize| prices[asset].is_some();
    let groups = index::components(market, is_priced);
    Report {
        outcome: priced.solution.outcome,
        queries: priced.solution.queries,
        worst_excess: priced.solution.worst_excess,
        block_count: priced.solution.blocks,
        component_count: groups.iter().enumerate().filter(|&(asset, &group)| group == Some(asset)).count(),
        components: groups,
        unpriced: (0..).zip(prices).filter(|(_, price)| price.is_none()).map(|(asset, _)| AssetIndex(asset)).collect(),
        buying_pair_count: priced.buying_pair_count,
        buy_round_count: priced.buy_round_count,
        are_buy_rates_settled: priced.are_buy_rates_settled,
        offer_count: tally.offer_count,
        in_the_money_count: tally.in_the_money_count,
        fill_count: tally.fill_count,
        partial_count: tally.partial_count,
        pair_count: verified.pairs().len(),
        pool_count: verified.pools().len(),
        volume: tally.volume + verified.pools().iter().map(of_pools).sum::<f64>(),
        realised_utility: tally.realised,
        unrealised_utility: tally.unrealised,
        buy_realised_utility: tally.buy_realised,
        buy_unrealised_utility: tally.buy_unrealised,
        mu_achieved: tally.mu_achieved,
        kept_value: kept.iter().enumerate().map(|(asset, &units)| value(units, asset)).sum(),
        kept,
        bounds: bounds(proposed, verified),
        times: Times::default(),
    }
}

fn bounds(proposed: &Proposed, verified: &Verified<'_>) -> Bounds {
    let shortfall = verified.shortfall();
    let mut bounds = Bounds {
        pairs_below: shortfall.pair_count,
        first_below: shortfall.first,
        unpriced_pair_count: shortfall.unpriced_pair_count,
        ..Bounds::default()
    };
    for part in &proposed.amounts.parts {
        match &part.relaxed {
            Relaxed::No => {}
            Relaxed::Lowered { by, .. } => {
                bounds.parts_lowered += 1;
                bounds.lowered_value += *by as f64 * f64::from(part.value_unit.exponent()).exp2();
            }
            Relaxed::Dropped { .. } | Relaxed::TooManyAssets | Relaxed::OutOfTime => bounds.parts_dropped += 1,
        }
        // Assets of a market are fewer than 2^16.
        bounds.assets_removed.extend(part.assets_removed.iter().map(|&asset| AssetIndex(asset as u16)));
    }
    bounds.assets_removed.sort_unstable();
    bounds.assets_removed.dedup();
    bounds
}

#[derive(Default)]
struct Tally {
    /// What the commission leaves of a unit.
    kept: f64,
    offer_count: usize,
    in_the_money_count: usize,
    fill_count: usize,
    partial_count: usize,
    volume: f64,
    realised: f64,
    unrealised: f64,
    buy_realised: f64,
    buy_unrealised: f64,
    mu_achieved: f64,
}

impl Tally {
    fn sells(&mut self, book: &PairBook, sold: Amount, (rate, edition): (&NetRate, Edition), (sell, buy): (f64, f64)) {
        let sells = book.sells();
        let in_the_money = &sells.as_slice()[..sells.count_holding(rate, edition, Amount::MAX)];
        let split = sells.split(sold).expect("verified: no more is sold than offered");
        self.count(in_the_money.len(), split);
        for (place, offer) in in_the_money.iter().enumerate() {
            let limit = float(offer.key().limit);
            let all = offer.amount().get() as f64;
            let traded = match place.cmp(&split.full_count) {
                std::cmp::Ordering::Less => all,
                std::cmp::Ordering::Equal => split.part.get() as f64,
                std::cmp::Ordering::Greater => 0.0,
            };
            if limit > 0.0 {
                let gain = (sell * self.kept - limit * buy).max(0.0);
                self.realised += traded * gain;
                self.unrealised += (all - traded) * gain;
            }
        }
        if let Some(first) = in_the_money.get(split.full_count) {
            let share = 1.0 - float(first.key().limit) * (buy / sell);
            self.mu_achieved = self.mu_achieved.max(share);
        }
    }

    fn buys(&mut self, book: &PairBook, bought: Amount, (rate, edition): (&NetRate, Edition), (sell, buy): (f64, f64)) {
        let buys = book.buys();
        let in_the_money = &buys.as_slice()[..buys.count_holding(rate, edition, Amount::MAX)];
        let split = buys.split(bought).expect("verified: no more is bought than wanted");
        self.count(in_the_money.len(), split);
        for (place, offer) in in_the_money.iter().enumerate() {
            let all = offer.units().get() as f64;
            let traded = match place.cmp(&split.full_count) {
                std::cmp::Ordering::Less => all,
                std::cmp::Ordering::Equal => split.part.get() as f64,
                std::cmp::Ordering::Greater => 0.0,
            };
            // What a unit bought would cost at the limit, less what it costs; the effective limit of a buy offer is above zero.
            let gain = (sell / float(offer.key().limit) - buy / self.kept).max(0.0);
            self.buy_realised += traded * gain;
            self.buy_unrealised += (all - traded) * gain;
        }
    }

    fn count(&mut self, in_the_money: usize, split: walras_clearing::Split) {
        let in_part = usize::from(!split.part.is_zero());
        self.in_the_money_count += in_the_money;
        self.fill_count += split.full_count + in_part;
        self.partial_count += in_part;
    }
}
