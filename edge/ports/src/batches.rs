//! Batch markets as they are looked at, between two commands.

use std::sync::Arc;

use walras_clearing::{BatchMarket, Offer, Pair, PairOffers};
use walras_engine::{BatchMarketView, Engine, FeeInForce};
use walras_market_data::{BatchBlock, BatchFeed, MarketData, TradedOffers, TransactionOutcome};
use walras_types::{AccountId, Amount, AssetId, BatchMarketId, BatchPhase, BatchPrice, DropReason, TransactionSeq};
use walras_wire::BatchMarketSpec;

use crate::catalog::AssetScale;

/// A batch market as it stands, copied out of the state.
#[derive(Clone, Debug)]
pub struct BatchLook {
    /// Its definition.
    pub spec: BatchMarketSpec,
    /// Whether it takes transactions.
    pub phase: BatchPhase,
    /// Its assets.
    pub assets: Vec<AssetId>,
    /// How many of them are currencies, from the first on.
    pub currencies: usize,
    /// What each account costs that a transaction opens.
    pub account_fee: FeeInForce,
    /// Transactions of the batch that collects.
    pub collected: usize,
    /// The block that it becomes.
    pub collecting_block: u64,
    /// The block that is closed and waits to be cleared.
    pub closed_block: Option<u64>,
    /// Offers that stand.
    pub standing_offers: u64,
    /// The last block.
    pub last: Option<Arc<BatchBlock>>,
    /// The last blocks in a row in which nothing traded and something was set aside that could have.
    pub idle_blocks: usize,
    /// The last blocks in a row in which something was set aside that could have traded, whether anything else traded or not.
    pub aside_blocks: usize,
}

/// A batch market, or what is new in it.
#[derive(Clone, Debug)]
pub struct BatchPush {
    /// Which.
    pub market: BatchMarketId,
    /// Whether the blocks are the last ones, and not those since the last message.
    pub snapshot: bool,
    /// Whether it takes transactions.
    pub phase: BatchPhase,
    /// From one close to the next, in ns.
    pub interval_ns: u64,
    /// Transactions of the batch that collects.
    pub collected: usize,
    /// The block that is closed and waits to be cleared.
    pub closed_block: Option<u64>,
    /// Its assets.
    pub assets: Vec<AssetId>,
    /// Oldest first.
    pub blocks: Vec<Arc<BatchBlock>>,
}

/// Blocks in a snapshot of a market's feed, and prices in all of them: of 1,000 assets it has 10 blocks.
const SNAPSHOT_BLOCKS: usize = 100;
const SNAPSHOT_PRICES: usize = 10_000;

/// A market with its last block.
pub fn batch_look(view: &BatchMarketView<'_>, market: &MarketData) -> BatchLook {
    let feed = market.batch(view.spec.market);
    BatchLook {
        spec: *view.spec,
        phase: view.phase,
        assets: view.assets.to_vec(),
        currencies: view.currencies.map_or(view.assets.len(), |currencies| view.assets.len().min(currencies.into())),
        account_fee: view.account_fee,
        collected: view.collected,
        collecting_block: view.collecting_block(),
        closed_block: view.is_under_way.then_some(view.next_block),
        standing_offers: feed.map_or(0, BatchFeed::standing_offers),
        last: feed.and_then(|feed| feed.blocks().next_back().cloned()),
        idle_blocks: last_in_a_row(feed, |block| block.pairs_traded == 0 && block.set_aside > 0),
        aside_blocks: last_in_a_row(feed, |block| block.set_aside > 0),
    }
}

/// How many blocks in a row, up to the last one, are like this.
fn last_in_a_row(feed: Option<&BatchFeed>, is_so: impl Fn(&BatchBlock) -> bool) -> usize {
    feed.map_or(0, |feed| feed.blocks().rev().take_while(|block| is_so(block)).count())
}

/// What a market's readers get: all there is, or what came after a block.
pub(crate) fn batch_push(engine: &Engine, feed: &BatchFeed, after: Option<u64>) -> Option<BatchPush> {
    let view = engine.batch_market(feed.market())?;
    let blocks = match after {
        Some(block) => feed.blocks_after(block).cloned().collect(),
        None => {
            let count = (SNAPSHOT_PRICES / view.assets.len().max(1)).clamp(1, SNAPSHOT_BLOCKS);
            feed.blocks().skip(feed.blocks().len().saturating_sub(count)).cloned().collect()
        }
    };
    Some(BatchPush {
        market: feed.market(),
        snapshot: after.is_none(),
        phase: view.phase,
        interval_ns: view.spec.interval_ns,
        collected: view.collected,
        closed_block: view.is_under_way.then_some(view.next_block),
        assets: view.assets.to_vec(),
        blocks,
    })
}

/// How far a transaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStage {
    /// Its batch collects.
    Collected,
    /// Its batch is closed, and keeps it.
    Kept,
    /// Its batch was closed, and left it out.
    Dropped(DropReason),
    /// Its block is final.
    Cleared,
}

impl TransactionStage {
    /// Its name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Collected => "collected",
            Self::Kept => "kept",
            Self::Dropped(_) => "dropped",
            Self::Cleared => "cleared",
        }
    }
}

fn with_stage(engine: &Engine, outcome: TransactionOutcome) -> (TransactionStage, TransactionOutcome) {
    let stage = match (outcome.dropped, engine.batch_market(outcome.market)) {
        (Some(reason), _) => TransactionStage::Dropped(reason),
        (None, Some(view)) if outcome.block > view.next_block => TransactionStage::Collected,
        (None, Some(view)) if outcome.block == view.next_block && view.is_judged => TransactionStage::Kept,
        (None, Some(view)) if outcome.block == view.next_block => TransactionStage::Collected,
        (None, _) => TransactionStage::Cleared,
    };
    (stage, outcome)
}

/// What came of an account's last transactions, the one collected last first.
pub fn transaction_outcomes(
    engine: &Engine,
    market: &MarketData,
    account: AccountId,
) -> Vec<(TransactionStage, TransactionOutcome)> {
    market.offers().outcomes_newest_first(account).map(|outcome| with_stage(engine, outcome)).collect()
}

/// What came of one of an account's transactions, as far as it is remembered: of its last ones and of older ones whose offers stand, or
/// ended last.
pub fn transaction_outcome(
    engine: &Engine,
    market: &MarketData,
    account: AccountId,
    sequence: TransactionSeq,
) -> Option<(TransactionStage, TransactionOutcome)> {
    market.offers().outcome(account, sequence).map(|outcome| with_stage(engine, outcome))
}

/// Supply and demand of a pair, in the batch that is closed or else in the last block: what stands, and what traded there. `None`
/// where there is no such pair in the market.
pub fn demand_curve(
    engine: &Engine,
    market: &MarketData,
    batch: BatchMarketId,
    (sell, buy): (AssetId, AssetId),
    span_ppm: u32,
) -> Option<DemandCurve> {
    let pair = engine.batch_pair(batch, sell, buy).filter(|_| sell != buy)?;
    let offers = engine.batch_market(batch)?.market?;
    let feed = market.batch(batch);
    let price = feed.and_then(|feed| last_rate(feed.blocks().rev(), pair));
    let traded =
        [(sell, buy), (buy, sell)].map(|(sell, buy)| feed.map_or_else(TradedOffers::default, |feed| feed.traded(sell, buy)));
    Some(DemandCurve::new(offers, traded, pair, (sell, buy), price, span_ppm))
}

/// Points of a demand curve on each side of the price in its middle.
const POINTS_PER_SIDE: i32 = 20;

/// Supply and demand of one pair around a price. In smallest units.
#[derive(Clone, Debug, PartialEq)]
pub struct DemandCurve {
    /// What is sold.
    pub sell: AssetId,
    /// What for.
    pub buy: AssetId,
    /// Units of `buy` for one of `sell` in the middle; `None` where neither a block nor an offer says any.
    pub price: Option<f64>,
    /// Price, units of `sell` offered at it or better, units of `sell` wanted at it.
    pub points: Vec<(f64, Amount, Amount)>,
}

impl DemandCurve {
    /// Looks at 41 prices within `span_ppm` of `price`, or of the best offers' price if that is not known: O(log offers) each.
    /// `traded` is what traded in addition to what stands, of the pair and of the opposite pair.
    #[must_use]
    pub fn new(
        market: &BatchMarket,
        traded: [TradedOffers<'_>; 2],
        pair: Pair,
        (sell, buy): (AssetId, AssetId),
        price: Option<f64>,
        span_ppm: u32,
    ) -> Self {
        let back = Pair { sell: pair.buy, buy: pair.sell };
        let (supply, demand) = (market.book(pair).map(|book| book.sells()), market.book(back).map(|book| book.sells()));
        let best = |offers: Option<&PairOffers<Offer>>| {
            offers.and_then(|offers| offers.as_slice().first()).map(|offer| float(offer.key().limit)).filter(|limit| *limit > 0.0)
        };
        let price = price.or_else(|| match (best(supply), best(demand).map(f64::recip)) {
            (Some(ask), Some(bid)) => Some((ask * bid).sqrt()),
            (one, other) => one.or(other),
        });
        let Some(middle) = price else { return Self { sell, buy, price: None, points: Vec::new() } };
        let step = f64::from(span_ppm) / 1e6 / f64::from(POINTS_PER_SIDE);
        let at = |offers: Option<&PairOffers<Offer>>, traded: TradedOffers<'_>, limit: f64| {
            let Ok(limit) = BatchPrice::from_bits(limit.to_bits()) else { return Amount::ZERO };
            let standing = offers.map_or(Amount::ZERO, |offers| offers.units_at_or_below(limit));
            standing.checked_add(traded.at_or_below(limit)).unwrap_or(Amount::MAX)
        };
        let point = |number: i32| {
            let price = middle * (1.0 + step * f64::from(number));
            #[expect(clippy::cast_precision_loss, reason = "a curve is shown, not settled")]
            let wanted = at(demand, traded[1], price.recip()).get() as f64 / price;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
            let wanted = Amount::new(wanted as u64).unwrap_or(Amount::MAX);
            (price, at(supply, traded[0], price), wanted)
        };
        Self { sell, buy, price: Some(middle), points: (-POINTS_PER_SIDE..=POINTS_PER_SIDE).map(point).collect() }
    }
}

/// Units of `buy` for one of `sell` at the last of these blocks that priced both; places are those in the market.
fn last_rate<'a>(newest_first: impl Iterator<Item = &'a Arc<BatchBlock>>, pair: Pair) -> Option<f64> {
    let rate = |block: &Arc<BatchBlock>| {
        let price = |place: usize| block.prices.get(place).copied().flatten().map(float);
        Some(price(pair.sell.index())? / price(pair.buy.index())?)
    };
    newest_first.filter_map(rate).next()
}

/// Significant digits of a price that is shown.
pub const PRICE_DIGITS: i32 = 8;

/// A positive number with so many significant digits, without an exponent and without zeros that say nothing.
#[must_use]
pub fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() || value <= 0.0 {
        return "0".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a finite number is small")]
    let magnitude = value.log10().floor() as i32;
    let decimals = usize::try_from((digits - 1 - magnitude).clamp(0, 60)).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// What a ratio of smallest units is in whole units: of so many of `per` for each of `of`.
#[must_use]
pub fn whole(ratio: f64, of: &AssetScale, per: &AssetScale) -> f64 {
    ratio * 10_f64.powi(i32::from(of.spec.decimals) - i32::from(per.spec.decimals))
}

/// A price as a number, to be shown.
#[must_use]
pub fn float(price: BatchPrice) -> f64 {
    f64::from_bits(price.bits())
}
