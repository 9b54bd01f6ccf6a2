//! Batch markets as they are looked at, between two commands.

use std::sync::Arc;

use walras_engine::{BatchMarketView, Engine};
use walras_market_data::{BatchBlock, BatchFeed, MarketData, TradedOffers};
use walras_types::{AssetId, BatchMarketId};

use crate::json::batches::{BatchLook, DemandCurve, last_rate};

/// A batch market, or what is new in it.
#[derive(Clone, Debug)]
pub struct BatchPush {
    /// Which.
    pub market: BatchMarketId,
    /// Whether the blocks are the last ones, and not those since the last message.
    pub snapshot: bool,
    /// Transactions of the batch that collects.
    pub collected: usize,
    /// The block that is closed and waits to be cleared.
    pub closed_block: Option<u64>,
    /// Its assets.
    pub assets: Vec<AssetId>,
    /// Oldest first.
    pub blocks: Vec<Arc<BatchBlock>>,
}

/// Blocks in a snapshot of a market's feed.
const SNAPSHOT_BLOCKS: usize = 100;

/// A market with its last block.
pub(crate) fn batch_look(view: &BatchMarketView<'_>, market: &MarketData) -> BatchLook {
    let feed = market.batch(view.spec.market);
    BatchLook {
        spec: *view.spec,
        phase: view.phase,
        assets: view.assets.to_vec(),
        account_fee: view.account_fee,
        collected: view.collected,
        closed_block: view.closed.map(|place| place.number),
        standing_offers: feed.map_or(0, BatchFeed::standing_offers),
        last: feed.and_then(|feed| feed.blocks().next_back().cloned()),
    }
}

/// What a market's readers get: all there is, or what came after a block.
pub(in crate::runtime) fn batch_push(engine: &Engine, feed: &BatchFeed, after: Option<u64>) -> Option<BatchPush> {
    let view = engine.batch_market(feed.market())?;
    let blocks = match after {
        Some(block) => feed.blocks_after(block).cloned().collect(),
        None => feed.blocks().skip(feed.blocks().len().saturating_sub(SNAPSHOT_BLOCKS)).cloned().collect(),
    };
    Some(BatchPush {
        market: feed.market(),
        snapshot: after.is_none(),
        collected: view.collected,
        closed_block: view.closed.map(|place| place.number),
        assets: view.assets.to_vec(),
        blocks,
    })
}

/// Supply and demand of a pair, in the batch that is closed or else in the last block: what stands, and what traded there. `None` where there is no such pair in the market.
pub(crate) fn demand_curve(
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
