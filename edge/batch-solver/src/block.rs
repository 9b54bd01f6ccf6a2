//! The second half of a block, as whoever leads a venue sends it: prices and amounts, the marginal offers, the certificate.

use walras_batch::{Assessed, BlockPlace, Certificate, ProposedClearing, assess};
use walras_clearing::{AssetIndex, BatchMarket, LowerBounds, OfferKey, PoolSide, Proposal, Rules, Verified, verify};
use walras_price_solver::solve::Budget;
use walras_trade_amounts::{AmountsFinder, propose};
use walras_types::{BatchMarketId, BatchPrice, QualityMax};
use walras_wire::batch::{BlockProposal, Certificate as CertificateWire, OfferKeyWire, PairTradeWire, PoolSideWire, PoolTradeWire};

use crate::clear::{ClearError, Settings, clear, search};
use crate::quality::Times;

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
    /// How much it may leave undone.
    pub quality: QualityMax,
}

impl ClosedBatch<'_> {
    /// Searches prices and amounts, and says how good they are. It says nothing of the hashes of the state afterwards, which who proposes does
    /// not know yet. `start` as in [`Settings`]. Parts of the market for which nothing good enough is found are set aside: a block of what
    /// is proposed is accepted.
    ///
    /// # Errors
    /// See [`ClearError`].
    pub fn propose(&self, start: Option<&[Option<BatchPrice>]>, budget: Budget<'_>) -> Result<BlockProposal, ClearError> {
        let mut found = self.search(start, budget)?;
        let mut assessed = self.assess(&found);
        if !assessed.beyond.is_empty() && start.is_some() {
            // Where the last prices lead nowhere, from the start may.
            let cold = self.search(None, budget)?;
            let of_cold = self.assess(&cold);
            if of_cold.beyond.len() < assessed.beyond.len() {
                (found, assessed) = (cold, of_cold);
            }
        }
        let best_effort = Rules { lower_bounds: LowerBounds::BestEffort, ..self.rules };
        let parts = self.offers.parts();
        // Each time a part less is priced.
        while !assessed.beyond.is_empty() {
            for asset in assessed.beyond.iter().flat_map(|part| parts.assets(*part)) {
                found.prices[asset.index()] = None;
            }
            found = propose(&mut AmountsFinder::new(), self.offers, &found.prices, &best_effort).proposal;
            assessed = self.assess(&found);
        }
        let verified = verify(self.offers, &found, &self.rules).map_err(ClearError::Rejected)?;
        Ok(self.proposal(&found, &verified, assessed.certificate))
    }

    fn search(&self, start: Option<&[Option<BatchPrice>]>, budget: Budget<'_>) -> Result<Proposal, ClearError> {
        let Rules { commission, mu, lower_bounds } = self.rules;
        let settings = Settings { start, budget, lower_bounds, ..Settings::new(commission, mu) };
        Ok(match lower_bounds {
            // Nobody reads a report, and what is proposed in the end is checked there.
            LowerBounds::BestEffort => search(self.offers, &settings, &mut Times::default())?.1.proposal,
            LowerBounds::Required => clear(self.offers, &settings)?.proposal,
        })
    }

    fn assess(&self, proposal: &Proposal) -> Assessed {
        assess(self.offers, proposal, &self.rules, &self.quality)
    }

    /// How many assets could have traded with others and have no price in a proposed block.
    #[must_use]
    pub fn set_aside(&self, block: &BlockProposal) -> usize {
        let parts = self.offers.parts();
        let prices = (0..).map(AssetIndex).zip(&block.prices);
        prices.filter(|(asset, price)| price.is_none() && parts.of(*asset).is_some()).count()
    }

    /// The clearing in which nothing trades: payments and what else is in the batch take effect, and offers go on standing. It is always valid.
    #[must_use]
    pub fn propose_nothing(&self) -> BlockProposal {
        let ProposedClearing { proposal, certificate, .. } = ProposedClearing::of_nothing(self.offers);
        let verified = verify(self.offers, &proposal, &self.rules).expect("what trades nothing at no prices breaks no rule");
        self.proposal(&proposal, &verified, certificate)
    }

    fn proposal(&self, proposal: &Proposal, verified: &Verified<'_>, certificate: Certificate) -> BlockProposal {
        let Certificate { gap_ppb, unserved_ppb, potentials } = certificate;
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
            certificate: CertificateWire { gap_ppb, unserved_ppb, potentials },
            roots: None,
        }
    }
}
