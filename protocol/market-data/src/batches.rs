//! Market data of batch markets: the last blocks, their headers, and the state of the collecting batch.

use std::collections::VecDeque;
use std::sync::Arc;

use walras_batch::{BlockHeader, Outcomes, Roots};
use walras_types::{Amount, AssetId, AssetPlaces, BatchMarketId, BatchPrice, LogIndex, TimeNs, effective_limit};

use crate::limits::{BLOCKS_MAX, HEADER_BYTES_MAX, OUTCOME_BYTES_MAX, blocks_max};

/// The public data of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchBlock {
    /// Its number, from 1.
    pub block: u64,
    /// When it was cleared.
    pub time: TimeNs,
    /// The entry that cleared it.
    pub log_index: LogIndex,
    /// Transactions in it.
    pub transactions: u32,
    /// Transactions that were collected for it and left out.
    pub dropped: u32,
    /// Offers that traded, in full or in part.
    pub offers_traded: u64,
    /// Pairs in which something traded.
    pub pairs_traded: u32,
    /// Upper bound on the share of possible trades at these prices that did not happen, in parts per billion.
    pub gap_ppb: u32,
    /// Share of the offers clearly in the money that did not trade, for the worst asset, in parts per billion.
    pub unserved_ppb: u32,
    /// Assets that could have traded with others and were left without a price.
    pub set_aside: u16,
    /// The hash of the state after it, which is the block's own.
    pub state_root: [u8; 32],
    /// Valuation of each asset of the market; those without one did not trade.
    pub prices: Vec<Option<BatchPrice>>,
    /// Units of each asset of the market that offers sold.
    pub sold: Vec<Amount>,
}

/// The bytes of a block's header, and what the state hashed to after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockProof {
    /// The block's number.
    pub block: u64,
    /// All that the block says: [`BlockHeader::bytes`].
    pub header: Vec<u8>,
    /// Of the accounts, the offers, everything.
    pub roots: Roots,
    /// Of the accounts that the block touched.
    pub touched: [u8; 32],
}

/// The batch that is closed, or was last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closing {
    pub(crate) kept: u32,
    pub(crate) dropped: u32,
    pub(crate) sold: Vec<u64>,
}

/// Offers that traded in one block, with their state before: 24 bytes each. Not part of snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traded {
    /// Pairs that traded, and where the offers of each begin.
    pairs: Vec<(AssetId, AssetId, usize)>,
    /// Of each pair in ascending order of the limits that whole units can honour.
    offers: Vec<TradedOffer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TradedOffer {
    stated: BatchPrice,
    amount: Amount,
    /// Units that traded of this one and those before it in its pair.
    through: u64,
}

impl Traded {
    fn push(&mut self, pair: (AssetId, AssetId), (stated, amount): (BatchPrice, Amount), sold: Amount) {
        if self.pairs.last().is_none_or(|(sell, buy, _)| (*sell, *buy) != pair) {
            self.pairs.push((pair.0, pair.1, self.offers.len()));
        }
        let begin = self.pairs.last().map_or(0, |(_, _, begin)| *begin);
        let before = self.offers[begin..].last().map_or(0, |last| last.through);
        self.offers.push(TradedOffer { stated, amount, through: before.saturating_add(sold.get()) });
    }

    fn of(&self, pair: (AssetId, AssetId)) -> TradedOffers<'_> {
        let Some(at) = self.pairs.iter().position(|(sell, buy, _)| (*sell, *buy) == pair) else { return TradedOffers::default() };
        let end = self.pairs.get(at + 1).map_or(self.offers.len(), |(_, _, begin)| *begin);
        TradedOffers(&self.offers[self.pairs[at].2..end])
    }
}

/// The offers of one pair that traded in a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct TradedOffers<'f>(&'f [TradedOffer]);

impl TradedOffers<'_> {
    /// Units that those with this limit or a lower one traded: O(log offers).
    #[must_use]
    pub fn at_or_below(&self, limit: BatchPrice) -> Amount {
        let is_within = |offer: &TradedOffer| effective_limit(offer.stated, offer.amount).is_some_and(|own| own <= limit);
        let count = self.0.partition_point(is_within);
        let units = count.checked_sub(1).map_or(0, |last| self.0[last].through);
        Amount::new(units).unwrap_or(Amount::MAX)
    }
}

/// What came of the last blocks. No part of snapshots, so it makes no difference between two feeds.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptOutcomes {
    blocks: VecDeque<(u64, Arc<Outcomes>)>,
    bytes: usize,
}

impl PartialEq for KeptOutcomes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for KeptOutcomes {}

impl KeptOutcomes {
    pub(crate) fn keep(&mut self, block: u64, outcomes: &Arc<Outcomes>) {
        self.bytes += outcomes.heap_bytes();
        self.blocks.push_back((block, Arc::clone(outcomes)));
        while self.blocks.len() > BLOCKS_MAX || (self.bytes > OUTCOME_BYTES_MAX && self.blocks.len() > 1) {
            let (_, gone) = self.blocks.pop_front().expect("there is more than one");
            self.bytes -= gone.heap_bytes();
        }
    }
}

/// One batch market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchFeed {
    pub(crate) market: BatchMarketId,
    pub(crate) assets: Vec<AssetId>,
    /// Follows from them.
    pub(crate) places: AssetPlaces,
    /// Oldest first.
    pub(crate) blocks: VecDeque<Arc<BatchBlock>>,
    pub(crate) proofs: VecDeque<Arc<BlockProof>>,
    /// Bytes of all headers kept.
    pub(crate) header_bytes: usize,
    pub(crate) outcomes: KeptOutcomes,
    /// Number of the block that the collecting or closed batch will become.
    pub(crate) next_block: u64,
    pub(crate) closing: Closing,
    /// Of the last block; none while a batch is closed and waits.
    pub(crate) traded: Arc<Traded>,
    pub(crate) standing: u64,
    pub(crate) revision: LogIndex,
}

impl BatchFeed {
    pub(crate) fn new(market: BatchMarketId) -> Self {
        Self {
            market,
            assets: Vec::new(),
            places: AssetPlaces::default(),
            blocks: VecDeque::new(),
            proofs: VecDeque::new(),
            header_bytes: 0,
            outcomes: KeptOutcomes::default(),
            next_block: 1,
            closing: Closing::default(),
            traded: Arc::default(),
            standing: 0,
            revision: LogIndex(0),
        }
    }

    /// The market.
    #[must_use]
    pub fn market(&self) -> BatchMarketId {
        self.market
    }

    /// Its assets, in its own order.
    #[must_use]
    pub fn assets(&self) -> &[AssetId] {
        &self.assets
    }

    /// The last blocks, oldest first: as many as [`blocks_max`] says.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = &Arc<BatchBlock>> + ExactSizeIterator {
        self.blocks.iter()
    }

    /// Those after a block, oldest first.
    pub fn blocks_after(&self, block: u64) -> impl Iterator<Item = &Arc<BatchBlock>> {
        let skip = self.blocks.partition_point(|known| known.block <= block);
        self.blocks.iter().skip(skip)
    }

    /// The header of one of the last blocks: as many as there are, up to [`HEADER_BYTES_MAX`] in all.
    #[must_use]
    pub fn proof(&self, block: u64) -> Option<&BlockProof> {
        let at = self.proofs.binary_search_by_key(&block, |proof| proof.block).ok()?;
        self.proofs.get(at).map(Arc::as_ref)
    }

    /// What came to transactions and offers in the last blocks, oldest first: of as many as [`OUTCOME_BYTES_MAX`] hold, and of none
    /// cleared before the snapshot that the venue was started from.
    #[must_use]
    pub fn outcomes(&self) -> &VecDeque<(u64, Arc<Outcomes>)> {
        &self.outcomes.blocks
    }

    /// Offers that stand.
    #[must_use]
    pub fn standing_offers(&self) -> u64 {
        self.standing
    }

    /// The offers of a pair that traded in the last block. Together with the standing ones, they are the offers at the close of the
    /// batch. Empty from the close of the next batch on, and after a restart until a block is cleared.
    #[must_use]
    pub fn traded(&self, sell: AssetId, buy: AssetId) -> TradedOffers<'_> {
        self.traded.of((sell, buy))
    }

    /// The latest log entry that changed it.
    #[must_use]
    pub fn revision(&self) -> LogIndex {
        self.revision
    }

    /// It has one more asset.
    pub(crate) fn add_asset(&mut self, asset: AssetId) {
        self.places.push(asset);
        self.assets.push(asset);
    }

    pub(crate) fn closed(&mut self, block: u64, kept: u32, dropped: u32) {
        self.next_block = block;
        self.closing = Closing { kept, dropped, sold: vec![0; self.assets.len()] };
        self.traded = Arc::default();
    }

    /// An offer traded; `stood` is its limit and amount before.
    pub(crate) fn sold(&mut self, (sell, buy): (AssetId, AssetId), stood: Option<(BatchPrice, Amount)>, sold: Amount) {
        if let Some(stood) = stood {
            Arc::make_mut(&mut self.traded).push((sell, buy), stood, sold);
        }
        let place = self.places.place(sell);
        if let Some(sum) = place.and_then(|place| self.closing.sold.get_mut(usize::from(place))) {
            // No more is sold of an asset than there is.
            *sum = sum.saturating_add(sold.get());
        }
    }

    pub(crate) fn cleared(&mut self, mut block: BatchBlock) {
        let Closing { kept, dropped, sold } = std::mem::take(&mut self.closing);
        debug_assert_eq!(block.transactions, kept, "what is kept is in the block");
        block.dropped = dropped;
        block.sold = sold.into_iter().map(|units| Amount::new(units).unwrap_or(Amount::MAX)).collect();
        self.next_block = block.block + 1;
        while self.blocks.len() >= blocks_max(self.assets.len()) {
            self.blocks.pop_front();
        }
        self.blocks.push_back(Arc::new(block));
    }

    /// Adds the header and hashes of the last block, which its event does not hold.
    pub(crate) fn complete(&mut self, header: &BlockHeader, roots: Roots, touched: [u8; 32]) {
        let Some(last) = self.blocks.back_mut().filter(|last| last.block == header.number) else { return };
        Arc::make_mut(last).prices.clone_from(&header.prices);
        let header_bytes = header.bytes();
        self.header_bytes += header_bytes.len();
        self.proofs.push_back(Arc::new(BlockProof { block: header.number, header: header_bytes, roots, touched }));
        while self.proofs.len() > BLOCKS_MAX || (self.header_bytes > HEADER_BYTES_MAX && self.proofs.len() > 1) {
            let gone = self.proofs.pop_front().expect("there is more than one");
            self.header_bytes -= gone.header.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_batch::{Pairs, Quality};
    use walras_types::Rounding;

    use super::*;

    fn amount(units: u64) -> Amount {
        Amount::new(units).unwrap()
    }

    fn block(number: u64) -> BatchBlock {
        BatchBlock {
            block: number,
            time: TimeNs(number),
            log_index: LogIndex(number),
            transactions: 3,
            dropped: 0,
            offers_traded: 1,
            pairs_traded: 1,
            gap_ppb: 0,
            unserved_ppb: 0,
            set_aside: 0,
            state_root: [1; 32],
            prices: Vec::new(),
            sold: Vec::new(),
        }
    }

    #[test]
    fn the_last_blocks_are_kept_with_what_was_sold_and_their_headers() {
        let mut feed = BatchFeed::new(BatchMarketId(0));
        [7, 2].into_iter().for_each(|asset| feed.add_asset(AssetId(asset)));
        let blocks = BLOCKS_MAX as u64 + 2;
        for number in 1..=blocks {
            feed.closed(number, 3, 2);
            let stood = |limit: u64, units| Some((BatchPrice::from_ratio(limit.into(), 4, Rounding::Up).unwrap(), amount(units)));
            feed.sold((AssetId(2), AssetId(7)), stood(4, 5), amount(5));
            feed.sold((AssetId(2), AssetId(7)), stood(8, 9), amount(6));
            feed.sold((AssetId(7), AssetId(2)), stood(1, 40), amount(40));
            feed.cleared(block(number));
            let header = BlockHeader {
                market: BatchMarketId(0),
                number,
                parent: [0; 32],
                batch_hash: [0; 32],
                transaction_count: 3,
                rules: [0; 32],
                quality: Quality::default(),
                certificate: [0; 32],
                pairs: Pairs::all(2).unwrap(),
                prices: vec![Some(BatchPrice::ONE), None],
                trades: Vec::new(),
                outcomes: [0; 32],
            };
            feed.outcomes.keep(number, &Arc::default());
            feed.complete(&header, Roots::default(), [4; 32]);
        }
        assert_eq!((feed.blocks().len(), feed.next_block), (BLOCKS_MAX, blocks + 1));
        let last = feed.blocks().next_back().unwrap();
        assert_eq!((last.block, last.dropped, last.prices[0]), (blocks, 2, Some(BatchPrice::ONE)));
        assert_eq!(last.sold, [amount(40), amount(11)]);
        let at = |sell, buy, limit: u64| {
            let limit = BatchPrice::from_ratio(limit.into(), 4, Rounding::Down).unwrap();
            feed.traded(AssetId(sell), AssetId(buy)).at_or_below(limit).get()
        };
        assert_eq!([3, 4, 7, 8, 80].map(|limit| at(2, 7, limit)), [0, 5, 5, 11, 11]);
        assert_eq!((at(7, 2, 1), at(2, 3, 80)), (40, 0));
        assert_eq!(feed.blocks_after(blocks - 2).count(), 2);
        assert!(feed.proof(2).is_none());
        assert_eq!((feed.outcomes().len(), feed.outcomes().back().unwrap().0), (BLOCKS_MAX, blocks));
        let proof = feed.proof(blocks).unwrap();
        assert_eq!((proof.block, proof.touched), (blocks, [4; 32]));
        assert_eq!(feed.header_bytes, feed.proofs.iter().map(|proof| proof.header.len()).sum());
        feed.closed(blocks + 1, 3, 2);
        let any = BatchPrice::MAX;
        assert_eq!(feed.traded(AssetId(2), AssetId(7)).at_or_below(any), Amount::ZERO, "another batch is closed");
    }

    #[test]
    fn a_market_of_many_assets_remembers_fewer_blocks() {
        assert_eq!([0, 100, 101, 1_000, 4_096].map(blocks_max), [1_000, 1_000, 990, 100, 24]);
        let mut feed = BatchFeed::new(BatchMarketId(0));
        (0..1_000).for_each(|asset| feed.add_asset(AssetId(asset)));
        for number in 1..=102 {
            feed.closed(number, block(number).transactions, 2);
            feed.sold((AssetId(999), AssetId(0)), None, amount(5));
            feed.cleared(block(number));
        }
        let last = feed.blocks().next_back().unwrap();
        assert_eq!((feed.blocks().len(), last.block, last.sold[999]), (100, 102, amount(5)));
    }
}
