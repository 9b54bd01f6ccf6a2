//! The venue's assets and instruments, as the replicas above name them: FIX writes symbols and decimals, which neither commands nor
//! reports have.

use std::collections::BTreeMap;
use std::sync::Arc;

use walras_fix_orders::Catalog;
use walras_types::{AssetId, EngineVersion, InstrumentId, InstrumentSpec};
use walras_wire::AssetSpec;

/// All assets and instruments of a venue that a leaf knows. None is ever taken away.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// By id.
    pub assets: Vec<AssetSpec>,
    /// The instruments, as FIX names them and writes their numbers.
    pub catalog: Arc<Catalog>,
}

/// What was named so far.
#[derive(Debug, Default)]
pub(super) struct Listed {
    assets: BTreeMap<AssetId, AssetSpec>,
    instruments: BTreeMap<InstrumentId, InstrumentSpec>,
    /// Of the engine, as far as it is known: an earlier program above does not say it.
    version: EngineVersion,
    /// All that there were have been named, by the replica above or an earlier one.
    is_whole: bool,
    /// Something was named since the listing was made.
    is_new: bool,
    listing: Arc<Listing>,
}

impl Listed {
    pub(super) fn asset(&mut self, spec: AssetSpec) {
        self.is_new |= self.assets.insert(spec.asset, spec) != Some(spec);
    }

    pub(super) fn instrument(&mut self, spec: InstrumentSpec) {
        self.is_new |= self.instruments.insert(spec.instrument, spec) != Some(spec);
    }

    /// This version of the engine is in force: versions do not go back.
    pub(super) fn under(&mut self, version: EngineVersion) {
        self.is_new |= version > self.version;
        self.version = self.version.max(version);
    }

    /// All that there were have been named.
    pub(super) fn whole(&mut self) {
        self.is_new |= !std::mem::replace(&mut self.is_whole, true);
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// As far as [`Self::follow`] has made it.
    pub(super) fn listing(&self) -> &Arc<Listing> {
        &self.listing
    }

    /// Makes the listing again where something was named since; `None` where it is as before, and before it is whole.
    pub(super) fn follow(&mut self) -> Option<&Arc<Listing>> {
        if !(self.is_whole && std::mem::take(&mut self.is_new)) {
            return None;
        }
        let assets: Vec<AssetSpec> = self.assets.values().copied().collect();
        let catalog = Arc::new(Catalog::of(self.instruments.values().copied(), &assets).under(self.version));
        self.listing = Arc::new(Listing { assets, catalog });
        Some(&self.listing)
    }
}

#[cfg(test)]
mod tests {
    use walras_types::Symbol;

    use super::*;
    use crate::leaf::tests::spec;

    fn asset(id: u32, symbol: &str) -> AssetSpec {
        AssetSpec { asset: AssetId(id), symbol: Symbol::new(symbol).unwrap(), decimals: 6 }
    }

    #[test]
    fn a_listing_is_made_once_all_is_named_and_again_for_what_is_new() {
        let mut listed = Listed::default();
        listed.asset(asset(0, "BTC"));
        listed.instrument(spec(0, "BTC/USD", 1));
        assert!(listed.follow().is_none() && !listed.is_whole(), "its quote asset may follow");
        listed.asset(asset(1, "USD"));
        listed.whole();
        let first = Arc::clone(listed.follow().unwrap());
        assert!(first.catalog.find("BTC/USD").is_some() && first.assets.len() == 2);
        // Another replica above names them again.
        listed.asset(asset(0, "BTC"));
        listed.instrument(spec(0, "BTC/USD", 1));
        listed.whole();
        assert!(listed.follow().is_none() && Arc::ptr_eq(listed.listing(), &first));
        listed.instrument(spec(1, "BTC/EUR", 1));
        assert!(listed.follow().unwrap().catalog.find("BTC/EUR").is_some());
        listed.under(EngineVersion(13));
        assert_eq!(listed.follow().map(|listing| listing.catalog.version()), Some(EngineVersion(13)));
        listed.under(EngineVersion(12));
        assert!(listed.follow().is_none(), "another replica above is behind");
    }
}
