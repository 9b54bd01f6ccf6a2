//! What a block says, and its hash.

use walras_clearing::{OfferKey, Pair, PairTrade};
use walras_types::{BatchMarketId, BatchPrice};

use crate::batch::{Batch, ClosedBatch};
use crate::proposed::ProposedClearing;
use crate::quality::Quality;
use crate::settings::BatchSettings;

/// What a block says beside the roots: enough to check prices and fills against, in bytes in proportion to the pairs that traded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Of which market.
    pub market: BatchMarketId,
    /// Its number, from 1.
    pub number: u64,
    /// The hash of the block before; zeros for the first.
    pub parent: [u8; 32],
    /// The hash of its transactions.
    pub batch_hash: [u8; 32],
    /// How many there are.
    pub transaction_count: u32,
    /// The hash of the market's rules, with the account fee of this block: [`BatchSettings::hash`].
    pub rules: [u8; 32],
    /// How good the clearing is, as every validator found it.
    pub quality: Quality,
    /// The hash of the evidence: [`crate::Certificate::hash`].
    pub certificate: [u8; 32],
    /// The valuation of each asset.
    pub prices: Vec<Option<BatchPrice>>,
    /// What traded, with the last offer that did, by pair.
    pub trades: Vec<(PairTrade, OfferKey)>,
}

/// Keeps a header's hash apart from all others.
const DOMAIN: &[u8; 32] = b"walras batch 2 block header     ";

/// Bytes of a header without assets and trades.
pub(crate) const HEADER_BYTES_LEAST: usize = 160;

impl BlockHeader {
    /// The header of a clearing that was verified.
    pub(crate) fn new(batch: &Batch, closed: &ClosedBatch, block: &ProposedClearing, quality: Quality) -> Self {
        let mut marginal = block.marginal.iter().peekable();
        let key_of = |pair: Pair| marginal.next_if(|(of, _)| *of == pair).map(|(_, key)| *key);
        // Pairs that are named and trade nothing are no part of the block.
        let mut key_of = key_of;
        let trades = block.proposal.trades.iter().filter_map(|trade| Some((*trade, key_of(trade.pair)?))).collect();
        Self {
            market: batch.settings.market,
            number: batch.number,
            parent: batch.parent,
            batch_hash: closed.batch_hash,
            transaction_count: closed.kept_count,
            rules: BatchSettings { account_fee: closed.account_fee, ..batch.settings.clone() }.hash(),
            quality,
            certificate: block.certificate.hash(),
            prices: block.proposal.prices.clone(),
            trades,
        }
    }

    /// The bytes that are hashed, little endian:
    ///
    /// `market u16 | number u64 | parent 32 | batch hash 32 | transactions u32 | rules 32 | gap u32 | unserved u32 | set aside u16 |
    /// certificate 32 | assets u32 | prices u64, 0 for none | trades u32`, then for each `sell u16 | buy u16 | sold u64 | marginal offer: limit u64, tie u64, id u64`.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES_LEAST + self.prices.len() * 8 + self.trades.len() * 36);
        bytes.extend_from_slice(&self.market.0.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.parent);
        bytes.extend_from_slice(&self.batch_hash);
        bytes.extend_from_slice(&self.transaction_count.to_le_bytes());
        bytes.extend_from_slice(&self.rules);
        bytes.extend_from_slice(&self.quality.gap_ppb.to_le_bytes());
        bytes.extend_from_slice(&self.quality.unserved_ppb.to_le_bytes());
        bytes.extend_from_slice(&self.quality.set_aside.to_le_bytes());
        bytes.extend_from_slice(&self.certificate);
        bytes.extend_from_slice(&(self.prices.len() as u32).to_le_bytes());
        for price in &self.prices {
            bytes.extend_from_slice(&price.map_or(0, BatchPrice::bits).to_le_bytes());
        }
        bytes.extend_from_slice(&(self.trades.len() as u32).to_le_bytes());
        for (trade, marginal) in &self.trades {
            bytes.extend_from_slice(&trade.pair.sell.0.to_le_bytes());
            bytes.extend_from_slice(&trade.pair.buy.0.to_le_bytes());
            for number in [trade.sold.get(), marginal.limit.bits(), marginal.tie, marginal.id.0] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        bytes
    }

    /// The hash of those bytes.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        *blake3::keyed_hash(DOMAIN, &self.bytes()).as_bytes()
    }
}
