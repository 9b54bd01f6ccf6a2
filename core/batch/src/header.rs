//! What a block says, in full and as what its hash is of.
//!
//! A block's hash is that of a [`LightHeader`], of one size whatever the market's: prices, trades and outcomes are in it by their
//! roots. So a reader of one price, one trade or one outcome needs the light header and a proof, and not the rest.

use walras_clearing::{OfferKey, Pair, PairTrade, Pairs};
use walras_merkle::{ASSET_KEY_BYTES, PAIR_KEY_BYTES, Trie};
use walras_types::{BatchMarketId, BatchPrice};

use crate::closed::ClosedBatch;
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
    /// The pairs of the market, which has an asset for each price.
    pub pairs: Pairs,
    /// The valuation of each asset.
    pub prices: Vec<Option<BatchPrice>>,
    /// What traded, with the last offer that did, by pair.
    pub trades: Vec<(PairTrade, OfferKey)>,
    /// The root of what each transaction and each offer came to: [`crate::Outcomes::root`].
    pub outcomes: [u8; 32],
}

/// What a block's hash is of: the header, with roots in place of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LightHeader {
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
    /// The hash of the market's rules.
    pub rules: [u8; 32],
    /// How good the clearing is.
    pub quality: Quality,
    /// The hash of the evidence.
    pub certificate: [u8; 32],
    /// How many assets the market has, and which of them are pairs.
    pub pairs: Pairs,
    /// The root of the trie over the prices of those that have one, by [`ASSET_KEY_BYTES`].
    pub prices: [u8; 32],
    /// The root of the trie over the trades, by [`PAIR_KEY_BYTES`]: [`Pairs::number`].
    pub trades: [u8; 32],
    /// The root of the trie over the outcomes.
    pub outcomes: [u8; 32],
}

/// Where a block comes in its market's chain, and by which rules.
pub(crate) struct ChainPlace<'b> {
    pub(crate) settings: &'b BatchSettings,
    pub(crate) number: u64,
    pub(crate) parent: [u8; 32],
}

/// Keeps a header's hash apart from all others.
const DOMAIN: &[u8; 32] = b"walras batch 3 block header     ";

/// The first byte of both forms, and the second of each.
pub(crate) const VERSION: u8 = 1;
pub(crate) const LIGHT_HEADER: u8 = 10;
pub(crate) const FULL_HEADER: u8 = 11;

/// Bytes of what both forms begin with.
const PLACE_BYTES: usize = 2 + 2 + 8 + 32 + 32 + 4 + 32 + 4 + 4 + 2 + 32;

/// Bytes of every light header.
pub const LIGHT_HEADER_BYTES: usize = PLACE_BYTES + 4 + 3 * 32;

/// Bytes of a full header without assets and trades.
pub(crate) const HEADER_BYTES_LEAST: usize = PLACE_BYTES + 32 + 4 + 4;

impl BlockHeader {
    /// The header of a clearing that was verified, but for the outcomes.
    pub(crate) fn new(at: &ChainPlace<'_>, closed: &ClosedBatch, block: &ProposedClearing, quality: Quality) -> Self {
        let mut marginal = block.marginal.iter().peekable();
        let key_of = |pair: Pair| marginal.next_if(|(of, _)| *of == pair).map(|(_, key)| *key);
        // Pairs that are named and trade nothing are no part of the block.
        let mut key_of = key_of;
        let trades = block.proposal.trades.iter().filter_map(|trade| Some((*trade, key_of(trade.pair)?))).collect();
        Self {
            market: at.settings.market,
            number: at.number,
            parent: at.parent,
            batch_hash: closed.batch_hash,
            transaction_count: closed.kept_count,
            rules: BatchSettings { account_fee: closed.account_fee, ..at.settings.clone() }.hash(),
            quality,
            certificate: block.certificate.hash(),
            pairs: at.settings.pairs().expect("a market has been made of the settings"),
            prices: block.proposal.prices.clone(),
            trades,
            outcomes: [0; 32],
        }
    }

    /// All that the block says, little endian:
    ///
    /// `version u8 | kind u8 | market u16 | number u64 | parent 32 | batch hash 32 | transactions u32 | rules 32 | gap u32 |
    /// unserved u32 | set aside u16 | certificate 32 | outcomes 32 | assets u16 | currencies u16, 0 where all are | prices u64, 0
    /// for none | trades u32`, then for each `sell u16 | buy u16 | sold u64 | marginal offer: limit u64, tie u64, id u64`.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES_LEAST + self.prices.len() * 8 + self.trades.len() * 36);
        self.with_roots([0; 32], [0; 32]).put_place(FULL_HEADER, &mut bytes);
        bytes.extend_from_slice(&self.outcomes);
        bytes.extend_from_slice(&self.pairs.bits().to_le_bytes());
        for price in &self.prices {
            bytes.extend_from_slice(&price.map_or(0, BatchPrice::bits).to_le_bytes());
        }
        bytes.extend_from_slice(&(self.trades.len() as u32).to_le_bytes());
        for trade in &self.trades {
            bytes.extend_from_slice(&trade.0.pair.sell.0.to_le_bytes());
            bytes.extend_from_slice(&trade.0.pair.buy.0.to_le_bytes());
            bytes.extend_from_slice(&trade_value(trade));
        }
        bytes
    }

    /// What the block's hash is of: O(assets + trades).
    #[must_use]
    pub fn light(&self) -> LightHeader {
        self.with_roots(Trie::build(&self.price_entries()[..]).root().0, Trie::build(&self.trade_entries()[..]).root().0)
    }

    /// The hash of that.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        self.light().hash()
    }

    fn with_roots(&self, prices: [u8; 32], trades: [u8; 32]) -> LightHeader {
        let Self { market, number, parent, batch_hash, transaction_count, rules, quality, certificate, pairs, outcomes, .. } =
            *self;
        LightHeader {
            market,
            number,
            parent,
            batch_hash,
            transaction_count,
            rules,
            quality,
            certificate,
            pairs,
            prices,
            trades,
            outcomes,
        }
    }

    /// The prices of assets that have one, as the trie has them.
    pub(crate) fn price_entries(&self) -> Vec<([u8; ASSET_KEY_BYTES], [u8; 8])> {
        let priced = (0_u16..).zip(&self.prices).filter_map(|(asset, price)| Some((asset, (*price)?)));
        priced.map(|(asset, price)| (asset.to_be_bytes(), price.bits().to_le_bytes())).collect()
    }

    /// The trades, as the trie has them.
    pub(crate) fn trade_entries(&self) -> Vec<([u8; PAIR_KEY_BYTES], [u8; TRADE_BYTES])> {
        let number = |pair: Pair| self.pairs.number(pair).unwrap_or(NO_PAIR);
        let entry = |trade: &(PairTrade, OfferKey)| (number(trade.0.pair).to_be_bytes(), trade_value(trade));
        let mut entries: Vec<_> = self.trades.iter().map(entry).collect();
        // They are in order and of pairs but for a header that no block has, which hashes to something else then.
        entries.sort_by_key(|(key, _)| *key);
        entries.dedup_by_key(|(key, _)| *key);
        entries
    }
}

impl LightHeader {
    /// The bytes that are hashed, little endian, [`LIGHT_HEADER_BYTES`] of them: as [`BlockHeader::bytes`] up to the certificate,
    /// with another kind, then `assets u16 | currencies u16, 0 where all are | root of the prices 32 | root of the trades 32 | root
    /// of the outcomes 32`.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LIGHT_HEADER_BYTES);
        self.put_place(LIGHT_HEADER, &mut bytes);
        bytes.extend_from_slice(&self.pairs.bits().to_le_bytes());
        [self.prices, self.trades, self.outcomes].iter().for_each(|root| bytes.extend_from_slice(root));
        bytes
    }

    /// The hash of those bytes.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        *blake3::keyed_hash(DOMAIN, &self.bytes()).as_bytes()
    }

    fn put_place(&self, kind: u8, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&[VERSION, kind]);
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
    }
}

/// Bytes of a trade without its pair.
pub(crate) const TRADE_BYTES: usize = 32;

/// The number of what is no pair.
const NO_PAIR: u32 = u32::MAX;

/// `sold u64 | marginal offer: limit u64, tie u64, id u64`.
fn trade_value((trade, marginal): &(PairTrade, OfferKey)) -> [u8; TRADE_BYTES] {
    let mut value = [0; TRADE_BYTES];
    let numbers = [trade.sold.get(), marginal.limit.bits(), marginal.tie, marginal.id.0];
    value.copy_from_slice(numbers.map(u64::to_le_bytes).as_flattened());
    value
}
