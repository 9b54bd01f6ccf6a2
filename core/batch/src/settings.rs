//! What a batch market is: its assets and its rules.

use walras_clearing::{AssetIndex, Pair, Rules};
use walras_types::limits::{ASSETS_MAX, BATCH_ASSETS_MAX};
use walras_types::{AccountFee, AssetId, BatchMarketId, LowerBounds, QualityMax};

/// A batch market as the operator declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchSettings {
    /// Which one.
    pub market: BatchMarketId,
    /// Its assets, by [`AssetIndex`]: at least two, none twice, all on the ledger before offers name them.
    pub assets: Vec<AssetId>,
    /// What proposed clearings are measured by.
    pub rules: Rules,
    /// How much they may leave undone.
    pub quality: QualityMax,
    /// What each account costs that a transaction of the next batch to be closed opens. The only one that changes: [`crate::Batch::set_account_fee`].
    pub account_fee: Option<AccountFee>,
}

impl BatchSettings {
    /// What [`crate::BlockHeader::rules`] has: the hash of `commission u8, 0 for none | mu u8 | lower bounds u8: 0 required, 1 best effort | gap u32 |
    /// unserved u32 | assets u32 | each u32`, and where opening accounts costs something `its asset u32 | amount u64`, little endian.
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

    /// All but the market's number and the account fee.
    pub(crate) fn put(&self, sink: &mut impl FnMut(&[u8])) {
        let Self { market: _, assets, rules, quality, account_fee: _ } = self;
        let lower_bounds = match rules.lower_bounds {
            LowerBounds::Required => 0,
            LowerBounds::BestEffort => 1,
        };
        sink(&[rules.commission.exponent().unwrap_or(0), rules.mu.exponent(), lower_bounds]);
        sink(&quality.gap_ppb.to_le_bytes());
        sink(&quality.unserved_ppb.to_le_bytes());
        // At most BATCH_ASSETS_MAX.
        sink(&(assets.len() as u32).to_le_bytes());
        assets.iter().for_each(|asset| sink(&asset.0.to_le_bytes()));
    }
}

/// Why settings make no market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Too few or too many assets.
    #[error("{0} assets: a batch market has 2 to {BATCH_ASSETS_MAX}")]
    AssetCount(usize),
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
    /// By [`AssetId`]: one more than the index in the market, or zero.
    places: Vec<u16>,
    asset_count: u32,
}

impl AssetTable {
    pub(crate) fn new(assets: &[AssetId]) -> Result<Self, SettingsError> {
        if !(2..=BATCH_ASSETS_MAX).contains(&assets.len()) {
            return Err(SettingsError::AssetCount(assets.len()));
        }
        if let Some(&beyond) = assets.iter().find(|asset| asset.0 >= ASSETS_MAX) {
            return Err(SettingsError::Asset(beyond));
        }
        let most = assets.iter().map(|asset| asset.0 as usize).max().unwrap_or(0);
        let mut places = vec![0; most + 1];
        for (place, asset) in (1..).zip(assets) {
            if std::mem::replace(&mut places[asset.0 as usize], place) != 0 {
                return Err(SettingsError::Asset(*asset));
            }
        }
        Ok(Self { places, asset_count: assets.len() as u32 })
    }

    #[inline]
    pub(crate) fn index(&self, asset: AssetId) -> Option<AssetIndex> {
        let place = *self.places.get(asset.0 as usize)?;
        place.checked_sub(1).map(AssetIndex)
    }

    /// How many numbers pairs have.
    pub(crate) fn pair_count(&self) -> u32 {
        self.asset_count * self.asset_count
    }

    /// A pair's number; numbers order as pairs do.
    #[inline]
    pub(crate) fn number(&self, pair: Pair) -> u32 {
        u32::from(pair.sell.0) * self.asset_count + u32::from(pair.buy.0)
    }

    /// The pair of a number.
    pub(crate) fn pair(&self, number: u32) -> Pair {
        // Both are below the number of assets.
        let index = |number: u32| AssetIndex(number as u16);
        Pair { sell: index(number / self.asset_count), buy: index(number % self.asset_count) }
    }
}
