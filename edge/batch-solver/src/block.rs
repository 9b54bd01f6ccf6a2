//! The second half of a block, as whoever leads a venue sends it: prices and amounts, the marginal offers, the certificate.

use walras_batch::{BlockPlace, Certificate};
use walras_clearing::{BatchMarket, LowerBounds, OfferKey, PoolSide, Proposal, Rules, Verified, verify};
use walras_price_solver::solve::Budget;
use walras_types::{BatchMarketId, BatchPrice};
use walras_wire::batch::{BlockProposal, Certificate as CertificateWire, OfferKeyWire, PairTradeWire, PoolSideWire, PoolTradeWire};

use crate::clear::{ClearError, Settings, clear};

/// A batch that is closed: what is to be cleared, and by which rules.
#[derive(Clone, Copy, Debug)]
pub struct ClosedBatch<'a> {
    /// Of which market.
    pub market: BatchMarketId,
    /// Which block it is to become.
    pub place: BlockPlace,
    /// What stands in the market.
    pub offers: &'a BatchMarket,
    /// What the clearing is measured by.
    pub rules: Rules,
}

impl ClosedBatch<'_> {
    /// Searches prices and amounts. It says nothing of the hashes of the state afterwards, which who proposes does not know yet. `start` as in
    /// [`Settings`].
    ///
    /// # Errors
    /// See [`ClearError`].
    pub fn propose(&self, start: Option<&[Option<BatchPrice>]>, budget: Budget<'_>) -> Result<BlockProposal, ClearError> {
        let Rules { commission, mu, lower_bounds } = self.rules;
        let found = clear(self.offers, &Settings { start, budget, lower_bounds, ..Settings::new(commission, mu) })?;
        Ok(self.proposal(&found.proposal, &found.verified))
    }

    /// The clearing in which nothing trades: payments and what else is in the batch take effect, and offers go on standing. `None` where the
    /// rules demand that some of them trade.
    #[must_use]
    pub fn propose_nothing(&self) -> Option<BlockProposal> {
        let proposal = Proposal { prices: vec![None; self.offers.asset_count()], ..Proposal::default() };
        debug_assert!(self.rules.lower_bounds == LowerBounds::Required || verify(self.offers, &proposal, &self.rules).is_ok());
        let verified = verify(self.offers, &proposal, &self.rules).ok()?;
        Some(self.proposal(&proposal, &verified))
    }

    fn proposal(&self, proposal: &Proposal, verified: &Verified<'_>) -> BlockProposal {
        let Certificate { gap_ppb, potentials } = Certificate::find(self.offers, proposal, &self.rules);
        let BlockPlace { number, parent, batch_hash } = self.place;
        let of_key = |OfferKey { limit, tie, id }: OfferKey| OfferKeyWire { limit, tie, id: id.0 };
        let trades = verified.pairs().iter().map(|clearing| PairTradeWire {
            sell: clearing.pair.sell.0,
            buy: clearing.pair.buy.0,
            sold: clearing.sold,
            bought_by_buy_offers: clearing.bought_by_buy_offers,
            marginal: verified.fills(clearing).marginal_sell().map(of_key),
        });
        let side = |side| match side {
            PoolSide::First => PoolSideWire::First,
            PoolSide::Second => PoolSideWire::Second,
        };
        let pools = proposal.pools.iter().filter(|trade| !trade.sold.is_zero());
        let pools = pools.map(|trade| PoolTradeWire { pool: trade.pool.0, side: side(trade.side), sold: trade.sold });
        BlockProposal {
            market: self.market,
            number,
            parent,
            batch_hash,
            prices: proposal.prices.clone(),
            trades: trades.filter(|trade| !trade.sold.is_zero() || !trade.bought_by_buy_offers.is_zero()).collect(),
            pools: pools.collect(),
            certificate: Some(CertificateWire { gap_ppb, potentials }),
            roots: None,
        }
    }
}
