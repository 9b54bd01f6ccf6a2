//! A proposed clearing as the wire has it, and back.

use walras_clearing::{
    AssetIndex, BatchMarket, OfferId, OfferKey, Pair, PairTrade, PoolIndex, PoolSide, PoolTrade, Proposal, Verified,
};
use walras_types::BatchMarketId;
use walras_wire::batch::{self as wire, BlockProposal, BlockRoots, OfferKeyWire, PairTradeWire, PoolSideWire, PoolTradeWire};

use crate::certificate::{Certificate, GAP_PPB_ALL};
use crate::proposed::{BlockPlace, ProposedClearing, Roots};

impl ProposedClearing {
    /// What a proposer says who found a clearing and had it verified: with the last offer of each pair that trades, and without roots.
    #[must_use]
    pub fn new(place: BlockPlace, proposal: Proposal, verified: &Verified<'_>, certificate: Certificate) -> Self {
        let key = |clearing| verified.fills(clearing).marginal_sell();
        let marginal = verified.pairs().iter().filter_map(|clearing| Some((clearing.pair, key(clearing)?))).collect();
        Self { place: Some(place), proposal, marginal, certificate, expected: None }
    }

    /// The clearing of whichever block is next in which nothing trades: payments and what else is in the batch take effect, and offers go on
    /// standing. It is always valid.
    #[must_use]
    pub fn of_nothing(market: &BatchMarket) -> Self {
        let asset_count = market.asset_count();
        // Nothing is priced, so neither number depends on potentials.
        let ppb = if market.parts().count() == 0 { 0 } else { GAP_PPB_ALL };
        let certificate = Certificate { gap_ppb: ppb, unserved_ppb: ppb, potentials: vec![0; asset_count] };
        let proposal = Proposal { prices: vec![None; asset_count], ..Proposal::default() };
        Self { proposal, certificate, ..Self::default() }
    }

    /// As it is sent to a market's replicas; `None` when it says not for which block.
    #[must_use]
    pub fn to_wire(&self, market: BatchMarketId) -> Option<BlockProposal> {
        let BlockPlace { number, parent, batch_hash } = self.place?;
        let mut marginal = self.marginal.iter().peekable();
        let mut trade = |trade: &PairTrade| PairTradeWire {
            sell: trade.pair.sell.0,
            buy: trade.pair.buy.0,
            sold: trade.sold,
            bought_by_buy_offers: trade.bought_by_buy_offers,
            marginal: marginal.next_if(|(pair, _)| *pair == trade.pair).map(|(_, key)| key_to_wire(key)),
        };
        let trades = self.proposal.trades.iter().map(&mut trade).collect();
        let pool = |trade: &PoolTrade| PoolTradeWire {
            pool: trade.pool.0,
            side: match trade.side {
                PoolSide::First => PoolSideWire::First,
                PoolSide::Second => PoolSideWire::Second,
            },
            sold: trade.sold,
        };
        let Certificate { gap_ppb, unserved_ppb, potentials } = &self.certificate;
        let certificate = wire::Certificate { gap_ppb: *gap_ppb, unserved_ppb: *unserved_ppb, potentials: potentials.clone() };
        Some(BlockProposal {
            market,
            number,
            parent,
            batch_hash,
            prices: self.proposal.prices.clone(),
            trades,
            pools: self.proposal.pools.iter().map(pool).collect(),
            certificate,
            roots: self.expected.map(|Roots { accounts, offers, state }| BlockRoots { accounts, offers, state }),
        })
    }
}

impl From<&BlockProposal> for ProposedClearing {
    fn from(block: &BlockProposal) -> Self {
        let BlockProposal { market: _, number, parent, batch_hash, prices, trades, pools, certificate, roots } = block;
        let pair = |trade: &PairTradeWire| Pair { sell: AssetIndex(trade.sell), buy: AssetIndex(trade.buy) };
        let pair_trade = |trade: &PairTradeWire| PairTrade {
            pair: pair(trade),
            sold: trade.sold,
            bought_by_buy_offers: trade.bought_by_buy_offers,
        };
        let pool_trade = |trade: &PoolTradeWire| PoolTrade {
            pool: PoolIndex(trade.pool),
            side: match trade.side {
                PoolSideWire::First => PoolSide::First,
                PoolSideWire::Second => PoolSide::Second,
            },
            sold: trade.sold,
        };
        let wire::Certificate { gap_ppb, unserved_ppb, potentials } = certificate;
        let certificate = Certificate { gap_ppb: *gap_ppb, unserved_ppb: *unserved_ppb, potentials: potentials.clone() };
        Self {
            place: Some(BlockPlace { number: *number, parent: *parent, batch_hash: *batch_hash }),
            proposal: Proposal {
                prices: prices.clone(),
                trades: trades.iter().map(pair_trade).collect(),
                pools: pools.iter().map(pool_trade).collect(),
            },
            marginal: trades.iter().filter_map(|trade| Some((pair(trade), key_of_wire(&trade.marginal?)))).collect(),
            certificate,
            expected: roots.map(|BlockRoots { accounts, offers, state }| Roots { accounts, offers, state }),
        }
    }
}

fn key_to_wire(key: &OfferKey) -> OfferKeyWire {
    OfferKeyWire { limit: key.limit, tie: key.tie, id: key.id.0 }
}

fn key_of_wire(key: &OfferKeyWire) -> OfferKey {
    OfferKey { limit: key.limit, tie: key.tie, id: OfferId(key.id) }
}
