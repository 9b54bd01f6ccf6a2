//! The second half of a block, as the leader of a venue sends it: prices and amounts, the marginal offers, the certificate.

use std::collections::BTreeSet;

use walras_batch::{Assessed, BlockPlace, Certificate, ProposedClearing, assess};
use walras_clearing::{
    AssetIndex, BatchMarket, LowerBounds, OfferKey, Pair, Parts, PoolSide, PoolTrade, Proposal, Rules, Verified, verify,
};
use walras_price_solver::solve::Budget;
use walras_trade_amounts::{AmountsFinder, propose_until};
use walras_types::{BatchMarketId, BatchPrice, Mu, QualityMax};
use walras_wire::batch::{BlockProposal, Certificate as CertificateWire, OfferKeyWire, PairTradeWire, PoolSideWire, PoolTradeWire};

use crate::clear::{ClearError, MARGINS, Margins, Settings, Sight, Solver, clear_by, search};
use crate::close_up::Lens;
use crate::few;
use crate::kept::KeptIndex;
use crate::quality::Times;

/// A way to search a clearing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// From the start prices, if there are any.
    Usual,
    /// From the start.
    Cold,
    /// With prices that leave large offers this share of mu.
    WithMargin(f64),
    /// Without close-ups.
    AllOffers,
    /// With offers that trade in full sooner than they must, so that prices that are a little off are still good enough.
    Narrow,
    /// As in the papers.
    Tatonnement,
}

/// By so many powers of two.
const NARROWER: u8 = 3;

/// The share of the time left after the usual way that the others may take: what comes after them needs the rest.
const WAYS_SHARE: f64 = 0.7;

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
    /// Searches prices and amounts, and says how good they are. It leaves out the hashes of the state afterwards: the proposer does
    /// not know them yet. `start` as in [`Settings`].
    ///
    /// Parts are markets of their own. Where a part's result is not good enough, other ways are tried, and each part keeps the
    /// first way that was good enough for it. A part without such a way is searched again without a few of its offers. A part that this
    /// does not mend is set aside, so a block of the proposal is accepted.
    ///
    /// # Errors
    /// See [`ClearError`].
    pub fn propose(&self, start: Option<&[Option<BatchPrice>]>, budget: Budget<'_>) -> Result<BlockProposal, ClearError> {
        self.propose_with(&mut KeptIndex::default(), start, budget)
    }

    /// [`Self::propose`], with the index that was kept of the market as it was before.
    ///
    /// # Errors
    /// See [`ClearError`].
    pub fn propose_with(
        &self,
        kept: &mut KeptIndex,
        start: Option<&[Option<BatchPrice>]>,
        budget: Budget<'_>,
    ) -> Result<BlockProposal, ClearError> {
        let (found, assessed) = self.by_ways(kept, start, budget)?;
        let (mut found, mut assessed) = self.without_few(found, assessed, budget);
        let parts = self.offers.parts();
        // Each time a part less is priced.
        while !assessed.beyond.is_empty() {
            for asset in assessed.beyond.iter().flat_map(|part| parts.assets(*part)) {
                found.prices[asset.index()] = None;
            }
            found = self.without_unpriced(found, budget);
            assessed = self.assess(&found);
        }
        let verified = verify(self.offers, &found, &self.rules).map_err(ClearError::Rejected)?;
        Ok(self.proposal(&found, &verified, assessed.certificate))
    }

    /// By the first way that is good enough for each part; parts without one are left as [`Assessed::beyond`].
    fn by_ways(
        &self,
        kept: &mut KeptIndex,
        start: Option<&[Option<BatchPrice>]>,
        budget: Budget<'_>,
    ) -> Result<(Proposal, Assessed), ClearError> {
        let mut found = self.search(Way::Usual, start, budget, kept)?;
        let mut assessed = self.assess(&found);
        let parts = self.offers.parts();
        let budget = Budget { deadline: budget.deadline.map(|at| at.sooner(WAYS_SHARE)), ..budget };
        let with_margins = MARGINS.map(Way::WithMargin);
        let ways = start.map(|_| Way::Cold).into_iter().chain(with_margins);
        // Without close-ups all offers are looked at anyway.
        let all_offers = Lens::is_for(self.offers).then_some(Way::AllOffers);
        let ways = ways.chain(all_offers).chain([Way::Narrow, Way::Tatonnement]);
        for way in ways {
            if assessed.beyond.is_empty() || budget.is_over() {
                break;
            }
            let Ok(other) = self.search(way, None, budget, kept) else { continue };
            let failed: BTreeSet<usize> = self.assess(&other).beyond.into_iter().collect();
            let mended: Vec<usize> = assessed.beyond.iter().copied().filter(|part| !failed.contains(part)).collect();
            if let Some(better) = self.with_prices_of(&found, &assessed, &other, &parts, &mended, budget) {
                (found, assessed) = better;
            }
        }
        Ok((found, assessed))
    }

    /// Parts that no way was good enough for, at prices that are found without a few of their offers. All offers trade at them and
    /// all are judged. It is tried only where lower bounds are met as far as they can be.
    fn without_few(&self, mut found: Proposal, mut assessed: Assessed, budget: Budget<'_>) -> (Proposal, Assessed) {
        if self.rules.lower_bounds == LowerBounds::Required {
            return (found, assessed);
        }
        let parts = self.offers.parts();
        for part in assessed.beyond.clone() {
            let sets = few::sets(self.offers, &parts, part, &found.prices, &|| budget.is_over());
            let Some(sets) = sets else { break };
            for left_out in sets {
                // Of a large part both the market without a few and the index with which a search begins take time.
                if budget.is_over() {
                    return (found, assessed);
                }
                let rest = few::without(self.offers, &parts, part, &left_out);
                if budget.is_over() {
                    return (found, assessed);
                }
                let batch = ClosedBatch { offers: &rest, ..*self };
                let Ok(other) = batch.search(Way::Cold, None, budget, &mut KeptIndex::default()) else { continue };
                if let Some(better) = self.with_prices_of(&found, &assessed, &other, &parts, &[part], budget) {
                    (found, assessed) = better;
                    break;
                }
            }
        }
        (found, assessed)
    }

    /// This clearing with the prices of another one for these parts, if fewer parts are beyond the rules then.
    fn with_prices_of(
        &self,
        found: &Proposal,
        assessed: &Assessed,
        other: &Proposal,
        parts: &Parts,
        of_other: &[usize],
        budget: Budget<'_>,
    ) -> Option<(Proposal, Assessed)> {
        let mut prices = found.prices.clone();
        // A part that the other has no prices of is not mended but set aside.
        let is_priced = |part: &&usize| parts.assets(**part).all(|asset| other.prices[asset.index()].is_some());
        for asset in of_other.iter().filter(is_priced).flat_map(|part| parts.assets(*part)) {
            prices[asset.index()] = other.prices[asset.index()];
        }
        if prices == found.prices {
            return None;
        }
        let joined = self.amounts_at(&prices, budget);
        let of_joined = self.assess(&joined);
        (of_joined.beyond.len() < assessed.beyond.len()).then_some((joined, of_joined))
    }

    /// The rest of a clearing when some assets lose their prices. What else trades is kept, unless an asset would be short without
    /// it. Then amounts are found once more, which takes no longer than the deadline allows.
    fn without_unpriced(&self, mut found: Proposal, budget: Budget<'_>) -> Proposal {
        let Proposal { prices, .. } = &found;
        let is_priced = |pair: Pair| [pair.sell, pair.buy].into_iter().all(|asset| prices[asset.index()].is_some());
        let pools = self.offers.pools();
        let pool_pair = |trade: &PoolTrade| pools[trade.pool.0 as usize].pair(trade.side);
        let trades = found.trades.iter().filter(|trade| is_priced(trade.pair)).copied().collect();
        let of_pools = found.pools.iter().filter(|trade| is_priced(pool_pair(trade))).copied().collect();
        (found.trades, found.pools) = (trades, of_pools);
        if verify(self.offers, &found, &self.best_effort()).is_ok() {
            return found;
        }
        self.amounts_at(&found.prices, budget)
    }

    fn amounts_at(&self, prices: &[Option<BatchPrice>], budget: Budget<'_>) -> Proposal {
        propose_until(&mut AmountsFinder::new(), self.offers, prices, &self.best_effort(), &|| budget.is_over()).proposal
    }

    fn best_effort(&self) -> Rules {
        Rules { lower_bounds: LowerBounds::BestEffort, ..self.rules }
    }

    fn search(
        &self,
        way: Way,
        start: Option<&[Option<BatchPrice>]>,
        budget: Budget<'_>,
        kept: &mut KeptIndex,
    ) -> Result<Proposal, ClearError> {
        let Rules { edition, commission, mu, lower_bounds } = self.rules;
        let usual = Settings { start, budget, edition, lower_bounds, ..Settings::new(commission, mu) };
        let settings = match way {
            Way::Usual | Way::Cold | Way::WithMargin(_) => usual,
            Way::AllOffers => Settings { sight: Sight::AllOffers, ..usual },
            Way::Narrow => Settings { mu: Mu::new(mu.exponent().saturating_add(NARROWER)).unwrap_or(mu), ..usual },
            Way::Tatonnement => Settings { solver: Solver::Tatonnement, ..usual },
        };
        let margins = if let Way::WithMargin(margin) = way { Margins::Only(margin) } else { Margins::WhereBelow };
        Ok(match lower_bounds {
            // Nobody reads a report, and what is proposed in the end is checked there.
            LowerBounds::BestEffort => search(self.offers, &settings, margins, kept, &mut Times::default())?.1.proposal,
            LowerBounds::Required => clear_by(margins, kept, self.offers, &settings)?.proposal,
        })
    }

    fn assess(&self, proposal: &Proposal) -> Assessed {
        assess(self.offers, proposal, &self.rules, &self.quality)
    }

    /// How many assets could have traded with others and have no price in a proposed block.
    #[must_use]
    pub fn set_aside(&self, block: &BlockProposal) -> usize {
        self.assets_set_aside(block).len()
    }

    /// Which those are.
    #[must_use]
    pub fn assets_set_aside(&self, block: &BlockProposal) -> Vec<AssetIndex> {
        let parts = self.offers.parts();
        let prices = (0..).map(AssetIndex).zip(&block.prices);
        prices.filter(|(asset, price)| price.is_none() && parts.of(*asset).is_some()).map(|(asset, _)| asset).collect()
    }

    /// The clearing in which nothing trades: payments and what else is in the batch take effect, and offers go on standing. It is
    /// always valid.
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

#[cfg(test)]
mod tests;
