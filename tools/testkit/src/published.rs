//! What readers of the binary feed have to have of a market, made of the engine's state alone.

use walras_engine::Engine;
use walras_feed::book::BatchState;
use walras_feed::message::{AssetCleared, AuctionIndicated, BatchCleared, BatchMarketDefined, BatchPhaseChanged};
use walras_types::{AssetId, BatchMarketId, InstrumentId, TradingPhase};

/// A batch market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchExpected {
    /// What a reader has.
    pub state: BatchState,
    /// Whether the engine knows what each asset's offers and pools sold in the last block: it does not after a restore.
    pub knows_sold: bool,
}

impl BatchExpected {
    /// Of a market, if there is one.
    #[must_use]
    pub fn of(engine: &Engine, market: BatchMarketId) -> Option<Self> {
        let view = engine.batch_market(market)?;
        let outcomes = view.outcomes.map(|outcomes| outcomes.all().filter_map(|(_, outcome)| outcome.traded).collect::<Vec<_>>());
        let sold = |asset: AssetId| {
            let of_asset = outcomes.iter().flatten().filter(|traded| traded.sell == asset);
            of_asset.fold(0_u64, |sum, traded| sum.saturating_add(traded.sold.get()))
        };
        let mut state = BatchState {
            defined: Some(BatchMarketDefined {
                market: view.spec.market,
                symbol: view.spec.symbol,
                interval_ns: view.spec.interval_ns,
                transactions_max: view.spec.transactions_max,
            }),
            phase: Some(BatchPhaseChanged { phase: view.phase }),
            assets: view.assets.to_vec(),
            cleared: None,
            prices: Vec::new(),
        };
        if let Some(last) = view.last {
            let (header, block) = (&last.header, last.header.number);
            state.cleared = Some(BatchCleared {
                block,
                transactions: header.transaction_count,
                pairs: header.trades.len() as u32,
                offers_traded: last.offers_traded,
                gap_ppb: header.quality.gap_ppb,
                unserved_ppb: header.quality.unserved_ppb,
                set_aside: header.quality.set_aside,
                state_root: last.roots.state,
            });
            let of_asset = |(&asset, &price)| AssetCleared { block, asset, price, sold: sold(asset) };
            state.prices = view.assets.iter().zip(&header.prices).map(of_asset).collect();
        }
        Some(Self { state, knows_sold: view.last.is_none() || view.outcomes.is_some() })
    }

    /// Compares it with what a reader has.
    ///
    /// # Errors
    /// What differs.
    pub fn check(&self, read: &BatchState) -> Result<(), String> {
        let mut read = read.clone();
        if !self.knows_sold {
            read.prices.iter_mut().for_each(|price| price.sold = 0);
        }
        let expected = &self.state;
        if read == *expected { Ok(()) } else { Err(format!("readers have {read:?}, the engine {expected:?}")) }
    }
}

/// What an instrument's auction would trade now, as the feed says it; `None` where nothing would, and while it trades continuously.
#[must_use]
pub fn indicated(engine: &Engine, instrument: InstrumentId) -> Option<AuctionIndicated> {
    let collects = engine.instrument(instrument)?.phase != TradingPhase::Continuous;
    let uncross = engine.indicative(instrument).filter(|_| collects)?;
    Some(AuctionIndicated { price: Some(uncross.price), volume: uncross.volume, imbalance_lots: uncross.imbalance_lots })
}

#[cfg(test)]
mod tests {
    use walras_types::{BatchPrice, Rounding, Symbol};

    use super::*;

    #[test]
    fn another_price_volume_or_block_is_found() {
        let price = BatchPrice::from_decimal("1.5", Rounding::Up).ok();
        let cleared = BatchCleared {
            block: 3,
            transactions: 5,
            pairs: 2,
            offers_traded: 4,
            gap_ppb: 0,
            unserved_ppb: 0,
            set_aside: 0,
            state_root: [1; 32],
        };
        let state = BatchState {
            defined: Some(BatchMarketDefined {
                market: BatchMarketId(0),
                symbol: Symbol::new("MAIN").expect("a symbol"),
                interval_ns: 1,
                transactions_max: 9,
            }),
            phase: None,
            assets: vec![AssetId(0)],
            cleared: Some(cleared),
            prices: vec![AssetCleared { block: 3, asset: AssetId(0), price, sold: 7 }],
        };
        let expected = BatchExpected { state: state.clone(), knows_sold: true };
        assert_eq!(expected.check(&state), Ok(()));
        let changed = |change: &dyn Fn(&mut BatchState)| {
            let mut read = state.clone();
            change(&mut read);
            expected.check(&read).is_err()
        };
        assert!(changed(&|read| read.prices[0].sold = 8));
        assert!(changed(&|read| read.prices[0].price = None));
        assert!(changed(&|read| read.cleared = Some(BatchCleared { block: 2, ..cleared })));
        assert!(changed(&|read| read.prices.clear()));
        // What was sold is not known after a restore; all else is.
        let mut unknown = BatchExpected { state: state.clone(), knows_sold: false };
        unknown.state.prices[0].sold = 0;
        assert_eq!(unknown.check(&state), Ok(()));
        assert!(unknown.check(&BatchState { cleared: None, ..state }).is_err());
    }
}
