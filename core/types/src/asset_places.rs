//! Where the assets of the ledger are in a market.

use crate::AssetId;
use crate::limits::ASSETS_MAX;

/// The place of each asset in a market's own order, found in O(1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssetPlaces {
    /// By [`AssetId`]: one more than the place in the market, or zero.
    places: Vec<u16>,
    count: u16,
}

impl AssetPlaces {
    /// The places of these assets, or the first that is not new: see [`Self::push`].
    ///
    /// # Errors
    /// That asset.
    pub fn of(assets: &[AssetId]) -> Result<Self, AssetId> {
        let mut places = Self::default();
        assets.iter().try_for_each(|asset| if places.push(*asset) { Ok(()) } else { Err(*asset) })?;
        Ok(places)
    }

    /// Gives an asset the next place; whether it had none, and may be on a ledger.
    pub fn push(&mut self, asset: AssetId) -> bool {
        let at = asset.0 as usize;
        if asset.0 >= ASSETS_MAX || self.places.get(at).is_some_and(|place| *place != 0) {
            return false;
        }
        if self.places.len() <= at {
            self.places.resize(at + 1, 0);
        }
        // At most ASSETS_MAX, as each asset comes once.
        self.count += 1;
        self.places[at] = self.count;
        true
    }

    /// The place of an asset; `None` where the market does not have it.
    #[must_use]
    #[inline]
    pub fn place(&self, asset: AssetId) -> Option<u16> {
        self.places.get(asset.0 as usize)?.checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_has_the_place_at_which_it_came_first() {
        let places = AssetPlaces::of(&[7, 0, 4_095].map(AssetId)).unwrap();
        let found = [0, 1, 7, 4_095, 4_096].map(|asset| places.place(AssetId(asset)));
        assert_eq!(found, [Some(1), None, Some(0), Some(2), None]);
        assert_eq!(AssetPlaces::of(&[7, 0, 7].map(AssetId)), Err(AssetId(7)));
        assert_eq!(AssetPlaces::of(&[AssetId(4_096)]), Err(AssetId(4_096)));
    }
}
