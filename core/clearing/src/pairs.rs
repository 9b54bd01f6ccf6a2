//! Which pairs a market has, and their numbers.

use walras_types::limits::ASSETS_MAX;

use crate::offer::{AssetIndex, Pair};

/// The pairs of a market of so many assets, the first of which are its currencies: two assets are a pair where one of them is a currency.
/// All assets are currencies, unless a market says otherwise: then all pairs exist.
///
/// Each pair has a number, its place in tables and in hash trees: with n assets and k currencies `sell * n + buy` where a currency is
/// sold, and `k * n + (sell - k) * k + buy` where another asset is. Numbers order as pairs do, and number 0 is that of no pair. Tables
/// have [`Self::places`] places, of which those of an asset with itself stay empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    assets: u16,
    currencies: u16,
}

impl Pairs {
    /// All pairs of so many assets; `None` of more than a venue may have.
    #[must_use]
    pub const fn all(assets: usize) -> Option<Self> {
        // Below 2^16.
        if assets <= ASSETS_MAX as usize { Some(Self { assets: assets as u16, currencies: assets as u16 }) } else { None }
    }

    /// The pairs of which at least one asset is among the first `currencies`; `None` where there is none of these, or fewer assets.
    #[must_use]
    pub const fn with_currencies(assets: usize, currencies: usize) -> Option<Self> {
        match Self::all(assets) {
            Some(all) if 1 <= currencies && currencies <= assets => Some(Self { currencies: currencies as u16, ..all }),
            _ => None,
        }
    }

    /// How many assets the market has.
    #[must_use]
    pub const fn asset_count(self) -> usize {
        self.assets as usize
    }

    /// How many of them are currencies.
    #[must_use]
    pub const fn currency_count(self) -> usize {
        self.currencies as usize
    }

    /// Whether all pairs exist.
    #[must_use]
    pub const fn are_all(self) -> bool {
        self.currencies == self.assets
    }

    /// How many pairs there are.
    #[must_use]
    pub const fn count(self) -> usize {
        // Those of an asset with itself have places only where it is a currency.
        self.places() - self.currencies as usize
    }

    /// How many places a table of the pairs has.
    #[must_use]
    pub const fn places(self) -> usize {
        let (assets, currencies) = (self.assets as usize, self.currencies as usize);
        currencies * assets + (assets - currencies) * currencies
    }

    /// Whether the market has an asset.
    #[must_use]
    pub const fn has_asset(self, asset: AssetIndex) -> bool {
        asset.0 < self.assets
    }

    /// Whether the market has a pair.
    #[must_use]
    pub const fn has(self, pair: Pair) -> bool {
        let Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) } = pair;
        sell != buy && sell < self.assets && buy < self.assets && (sell < self.currencies || buy < self.currencies)
    }

    /// The number of a pair; `None` where the market has no such pair.
    #[must_use]
    #[inline]
    pub const fn number(self, pair: Pair) -> Option<u32> {
        if self.has(pair) { Some(self.number_of(pair)) } else { None }
    }

    /// The number of one of the market's pairs.
    #[inline]
    const fn number_of(self, pair: Pair) -> u32 {
        let (sell, buy) = (pair.sell.0 as u32, pair.buy.0 as u32);
        let (assets, currencies) = (self.assets as u32, self.currencies as u32);
        // At most 2^24, as there are at most 2^12 assets.
        if sell < currencies { sell * assets + buy } else { currencies * assets + (sell - currencies) * currencies + buy }
    }

    /// The pair of a number; `None` where no pair has it.
    #[must_use]
    #[inline]
    pub const fn pair(self, number: u32) -> Option<Pair> {
        let (assets, currencies) = (self.assets as u32, self.currencies as u32);
        let of_currencies = currencies * assets;
        let (sell, buy) = if number < of_currencies {
            (number / assets, number % assets)
        } else if (number as usize) < self.places() {
            let rest = number - of_currencies;
            (currencies + rest / currencies, rest % currencies)
        } else {
            return None;
        };
        // Both are below the number of assets.
        if sell == buy { None } else { Some(Pair { sell: AssetIndex(sell as u16), buy: AssetIndex(buy as u16) }) }
    }

    /// As headers, rules and snapshots have it: the number of assets in the low half and that of the currencies in the high half, which
    /// is 0 where all are.
    #[must_use]
    pub const fn bits(self) -> u32 {
        let currencies = if self.are_all() { 0 } else { self.currencies as u32 };
        currencies << 16 | self.assets as u32
    }

    /// What [`Self::bits`] gave; no pairs have two forms.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        let (assets, currencies) = ((bits & 0xffff) as usize, (bits >> 16) as usize);
        match currencies {
            0 => Self::all(assets),
            _ if currencies < assets => Self::with_currencies(assets, currencies),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair(sell: usize, buy: usize) -> Pair {
        Pair { sell: AssetIndex(sell as u16), buy: AssetIndex(buy as u16) }
    }

    /// The pairs in their order, with the places of an asset with itself where it has one.
    fn naive(assets: usize, currencies: usize) -> Vec<Option<Pair>> {
        let mut places = Vec::new();
        for sell in 0..assets {
            for buy in 0..assets {
                if sell == buy && sell < currencies {
                    places.push(None);
                } else if sell != buy && (sell < currencies || buy < currencies) {
                    places.push(Some(pair(sell, buy)));
                }
            }
        }
        places
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn numbers_are_places_in_the_list_of_pairs(assets in 1_usize..40, currencies in 1_usize..40) {
            let currencies = currencies.min(assets);
            let pairs = Pairs::with_currencies(assets, currencies).unwrap();
            let places = naive(assets, currencies);
            prop_assert_eq!(pairs.places(), places.len());
            prop_assert_eq!(pairs.count(), places.iter().flatten().count());
            for (number, expected) in (0..).zip(&places) {
                prop_assert_eq!(pairs.pair(number), *expected);
            }
            for beyond in [places.len() as u32, places.len() as u32 + 1, u32::MAX] {
                prop_assert_eq!(pairs.pair(beyond), None);
            }
            for sell in 0..assets + 2 {
                for buy in 0..assets + 2 {
                    let at = places.iter().position(|place| *place == Some(pair(sell, buy)));
                    prop_assert_eq!(pairs.number(pair(sell, buy)), at.map(|at| at as u32));
                    prop_assert_eq!(pairs.has(pair(sell, buy)), at.is_some());
                }
            }
            prop_assert_eq!(Pairs::from_bits(pairs.bits()), Some(pairs));
        }
    }

    #[test]
    fn with_all_pairs_numbers_and_bits_are_those_of_a_square() {
        let pairs = Pairs::all(100).unwrap();
        assert_eq!((pairs.places(), pairs.count(), pairs.bits()), (10_000, 9_900, 100));
        assert_eq!(pairs.number(pair(7, 93)), Some(793));
        assert_eq!(Pairs::with_currencies(100, 100), Some(pairs));
    }

    #[test]
    fn bits_that_no_pairs_have_are_refused() {
        let large = Pairs::with_currencies(1_010, 10).unwrap();
        assert_eq!((large.places(), large.count(), large.bits()), (20_100, 20_090, 10 << 16 | 1_010));
        let most = Pairs::with_currencies(4_096, 2).unwrap();
        assert_eq!((most.places(), most.number(pair(4_095, 1))), (16_380, Some(16_379)));
        assert_eq!(Pairs::all(4_097), None);
        assert_eq!(Pairs::with_currencies(5, 0), None);
        assert_eq!(Pairs::with_currencies(5, 6), None);
        for bits in [4_097, 5 << 16 | 5, 6 << 16 | 5, 1 << 16 | 4_097, 1 << 16] {
            assert_eq!(Pairs::from_bits(bits), None, "{bits:#x}");
        }
        assert_eq!(Pairs::from_bits(0), Pairs::all(0));
    }
}
