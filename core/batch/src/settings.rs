//! What a batch market is: its assets and its rules.

use walras_clearing::{AssetIndex, Pair, Pairs, Rules};
use walras_types::limits::{BATCH_ASSETS_MAX, BATCH_PAIRS_MAX};
use walras_types::{AccountFee, AssetId, AssetPlaces, BatchMarketId, DropReason, LowerBounds, QualityMax};

/// A batch market as the operator declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSettings {
    /// Which one.
    pub market: BatchMarketId,
    /// Its assets, by [`AssetIndex`]: at least two, none twice, all on the ledger before offers name them.
    pub assets: Vec<AssetId>,
    /// How many of them, from the first on, are currencies: two others are no pair. `None` where all are.
    pub currencies: Option<u16>,
    /// What proposed clearings are measured by.
    pub rules: Rules,
    /// How much they may leave undone.
    pub quality: QualityMax,
    /// What each account costs that a transaction of the next batch to be closed opens. The only one that changes: [`crate::Batch::set_account_fee`].
    pub account_fee: Option<AccountFee>,
}

impl BatchSettings {
    /// What [`crate::BlockHeader::rules`] has: the hash of `commission u8, 0 for none | mu u8 | lower bounds u8: 0 required, 1 best effort
    /// | gap u32 | unserved u32 | assets u16 | currencies u16, 0 where all are | each asset u32`, and where opening accounts costs
    /// something `its asset u32 | amount u64`, little endian.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        const DOMAIN: &[u8; 32] = b"walras batch 1 market rules     ";
        let mut hasher = blake3::Hasher::new_keyed(DOMAIN);
        self.put(&mut |bytes| _ = hasher.update(bytes));
        // The assets are counted, so no other settings have these bytes.
        if let Some(AccountFee { asset, amount }) = self.account_fee {
            hasher.update(&asset.0.to_le_bytes());
            hasher.update(&amount.get().to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// The pairs of the market; `None` of no market.
    #[must_use]
    pub fn pairs(&self) -> Option<Pairs> {
        let asset_count = self.assets.len();
        match self.currencies {
            None => Pairs::all(asset_count),
            Some(currencies) => Pairs::with_currencies(asset_count, currencies.into()),
        }
    }

    /// All but the market's number and the account fee.
    pub(crate) fn put(&self, sink: &mut impl FnMut(&[u8])) {
        let Self { market: _, assets, currencies: _, rules, quality, account_fee: _ } = self;
        let lower_bounds = match rules.lower_bounds {
            LowerBounds::Required => 0,
            LowerBounds::BestEffort => 1,
        };
        sink(&[rules.commission.exponent().unwrap_or(0), rules.mu.exponent(), lower_bounds]);
        sink(&quality.gap_ppb.to_le_bytes());
        sink(&quality.unserved_ppb.to_le_bytes());
        // What is no market is only hashed, as one of its assets. There are at most BATCH_ASSETS_MAX.
        let bits = self.pairs().map_or(assets.len() as u32, Pairs::bits);
        sink(&bits.to_le_bytes());
        assets.iter().for_each(|asset| sink(&asset.0.to_le_bytes()));
    }
}

/// Why settings make no market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Too few or too many assets.
    #[error("{0} assets: a batch market has 2 to {BATCH_ASSETS_MAX}")]
    AssetCount(usize),
    /// No currencies, or more than assets, or too many pairs.
    #[error(
        "a batch market has at least one currency, no more of them than assets, and at most {BATCH_PAIRS_MAX} pairs: name fewer"
    )]
    Pairs,
    /// An asset comes twice, or can not be on a ledger.
    #[error("asset {0} comes twice or is beyond the last that a venue may have: name each asset of the market once")]
    Asset(AssetId),
    /// More than everything may be left undone.
    #[error("gap and unserved are shares: give at most {} parts per billion", walras_types::PPB_ALL)]
    Quality,
}

/// Where the ledger's assets are in the market.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AssetTable {
    places: AssetPlaces,
    pairs: Pairs,
}

impl AssetTable {
    pub(crate) fn new(settings: &BatchSettings) -> Result<Self, SettingsError> {
        let assets = &settings.assets;
        if !(2..=BATCH_ASSETS_MAX).contains(&assets.len()) {
            return Err(SettingsError::AssetCount(assets.len()));
        }
        let pairs = settings.pairs().filter(|pairs| pairs.count() <= BATCH_PAIRS_MAX).ok_or(SettingsError::Pairs)?;
        let places = AssetPlaces::of(assets).map_err(SettingsError::Asset)?;
        Ok(Self { places, pairs })
    }

    #[inline]
    pub(crate) fn index(&self, asset: AssetId) -> Option<AssetIndex> {
        self.places.place(asset).map(AssetIndex)
    }

    /// The market's pairs.
    #[inline]
    pub(crate) const fn pairs(&self) -> Pairs {
        self.pairs
    }

    /// How many places tables of pairs have.
    pub(crate) const fn place_count(&self) -> u32 {
        // At most BATCH_PAIRS_MAX, and one for each asset.
        self.pairs.places() as u32
    }

    /// Whether the market has a pair of two of its assets.
    pub(crate) const fn check(&self, pair: Pair) -> Result<Pair, DropReason> {
        if pair.sell.0 == pair.buy.0 {
            Err(DropReason::EqualAssets)
        } else if self.pairs.has(pair) {
            Ok(pair)
        } else {
            Err(DropReason::NoSuchPair)
        }
    }

    /// The number of one of the market's pairs; numbers order as pairs do.
    #[inline]
    pub(crate) fn number(&self, pair: Pair) -> u32 {
        self.pairs.number(pair).expect("a pair of the market")
    }

    /// The pair of a number.
    pub(crate) fn pair(&self, number: u32) -> Pair {
        self.pairs.pair(number).expect("the number of a pair")
    }
}
