//! All that stands in one batch market.

use std::sync::Arc;

use walras_types::{Amount, limits::ASSETS_MAX};

use crate::offer::{AssetIndex, BuyOffer, Offer, OfferKey, Pair, Pool, PoolIndex, PoolSide};
use crate::pair_offers::{PairOffers, Places, Stands};
use crate::verified::{PoolFill, PoolTraded};

/// Why a market can not be built or changed so. The market is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketError {
    /// More assets than a venue may have.
    TooManyAssets(usize),
    /// An asset is not below the number of assets.
    UnknownAsset(AssetIndex),
    /// An asset would be traded for itself.
    EqualAssets(AssetIndex),
    /// Two offers of one pair and kind have one key.
    DuplicateOffer(OfferKey),
    /// No offer of that pair and kind has this key.
    UnknownOffer(OfferKey),
    /// A pair comes after itself or after a later one.
    PairsOutOfOrder(Pair),
    /// What is for sale of an asset is more than an amount can be.
    TooMuchOffered(AssetIndex),
    /// A pool has an empty reserve, a fee of all or more, or a rule with a number out of range.
    InvalidPool(PoolIndex),
}

impl std::fmt::Display for MarketError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooManyAssets(count) => write!(f, "{count} assets: a batch market holds at most {ASSETS_MAX}; split it"),
            Self::UnknownAsset(asset) => write!(f, "no asset {asset}: number a market's assets densely from 0"),
            Self::EqualAssets(asset) => write!(f, "asset {asset} for itself: an offer needs two assets"),
            Self::DuplicateOffer(key) => write!(f, "two offers {} with one limit and tie-break: give each its own id", key.id.0),
            Self::UnknownOffer(key) => {
                write!(f, "no offer {} with that key: remove an offer by the key it has now, once", key.id.0)
            }
            Self::PairsOutOfOrder(pair) => write!(f, "pair {pair} is out of order: name each pair once, in ascending order"),
            Self::TooMuchOffered(asset) => {
                write!(f, "more of asset {asset} is for sale than an amount can be: offer only what the ledger has reserved")
            }
            Self::InvalidPool(pool) => {
                write!(
                    f,
                    "pool {}: it needs at least a unit of each asset, a fee below 1000000 ppm, and a rule within its ranges",
                    pool.0
                )
            }
        }
    }
}

impl std::error::Error for MarketError {}

/// What stands in one ordered pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairBook {
    pub(crate) pair: Pair,
    pub(crate) sells: PairOffers<Offer>,
    pub(crate) buys: PairOffers<BuyOffer>,
}

impl PairBook {
    pub(crate) fn empty(pair: Pair) -> Self {
        Self { pair, sells: PairOffers::default(), buys: PairOffers::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sells.is_empty() && self.buys.is_empty()
    }

    /// The pair.
    #[must_use]
    pub const fn pair(&self) -> Pair {
        self.pair
    }

    /// Offers to sell a fixed amount, market orders first.
    #[must_use]
    pub const fn sells(&self) -> &PairOffers<Offer> {
        &self.sells
    }

    /// Offers to buy a fixed amount.
    #[must_use]
    pub const fn buys(&self) -> &PairOffers<BuyOffer> {
        &self.buys
    }
}

/// Offers of one kind that go and come in a pair.
#[derive(Clone, Debug)]
pub struct Change<T> {
    /// Keys of those that go.
    pub removed: Vec<OfferKey>,
    /// Those that come.
    pub added: Vec<T>,
}

impl<T> Default for Change<T> {
    fn default() -> Self {
        Self { removed: Vec::new(), added: Vec::new() }
    }
}

/// All offers and pools of one batch market. Only pairs that have an offer take memory.
///
/// A clone shares the books with the original until either changes them, one by one. So who keeps a clone, as a snapshot does, costs the
/// market a copy of the books that change meanwhile; and who keeps a [`std::sync::Weak`] of a book knows by [`Arc::as_ptr`] whether it has
/// changed since.
///
/// What is for sale of an asset, in offers, at most by buy offers, and in pools, is an amount together: what the ledger reserved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchMarket {
    /// In the order of their pairs; none is empty.
    pub(crate) books: Vec<Arc<PairBook>>,
    pools: Vec<Pool>,
    /// Units for sale of each asset.
    pub(crate) for_sale: Vec<Amount>,
}

impl BatchMarket {
    /// A market of assets `0..asset_count` with these offers, in any order: O(n log n), mostly sorting within pairs.
    ///
    /// # Errors
    /// See [`MarketError`].
    pub fn build(
        asset_count: usize,
        offers: &[(Pair, Offer)],
        buy_offers: &[(Pair, BuyOffer)],
        pools: Vec<Pool>,
    ) -> Result<Self, MarketError> {
        if asset_count > ASSETS_MAX as usize {
            return Err(MarketError::TooManyAssets(asset_count));
        }
        let mut for_sale = vec![0_u128; asset_count];
        check_and_count(&mut for_sale, offers)?;
        check_and_count(&mut for_sale, buy_offers)?;
        check_pools(&pools, asset_count)?;
        for pool in &pools {
            for (asset, reserve) in pool.assets.iter().zip(pool.reserves) {
                for_sale[asset.index()] += u128::from(reserve.get());
            }
        }
        let for_sale =
            (0_u16..).zip(for_sale).map(|(asset, units)| amount_for_sale(AssetIndex(asset), units)).collect::<Result<_, _>>()?;
        let books = join(by_pair(asset_count, offers)?, by_pair(asset_count, buy_offers)?);
        Ok(Self { books, pools, for_sale })
    }

    /// Changes the offers of one pair: O(offers of the pair), and O(pairs) where a pair gets its first offer or loses its last.
    ///
    /// # Errors
    /// See [`MarketError`].
    pub fn change_pair(&mut self, pair: Pair, mut sells: Change<Offer>, mut buys: Change<BuyOffer>) -> Result<(), MarketError> {
        check_pair(pair, self.asset_count())?;
        let place = self.books.binary_search_by_key(&pair, |book| book.pair);
        let nothing = PairBook::empty(pair);
        let old = place.map_or(&nothing, |at| &*self.books[at]);
        let places = old.sells.locate(&mut sells.removed, &mut sells.added)?;
        let buy_places = old.buys.locate(&mut buys.removed, &mut buys.added)?;
        let change = change_of(&old.sells, &places, &sells.added) + change_of(&old.buys, &buy_places, &buys.added);
        self.for_sale[pair.sell.index()] = changed_amount(pair.sell, self.for_sale[pair.sell.index()], change)?;
        let at = place.unwrap_or_else(|at| {
            self.books.insert(at, Arc::new(nothing));
            at
        });
        let book = Arc::make_mut(&mut self.books[at]);
        book.sells.change(&places, &sells.added);
        book.buys.change(&buy_places, &buys.added);
        if book.is_empty() {
            self.books.remove(at);
        }
        Ok(())
    }

    /// Puts these pools in place of all: O(pools + assets).
    ///
    /// # Errors
    /// See [`MarketError`]; the market is then as it was.
    pub fn set_pools(&mut self, pools: Vec<Pool>) -> Result<(), MarketError> {
        check_pools(&pools, self.asset_count())?;
        let mut changes = vec![0_i128; self.asset_count()];
        for (pools, sign) in [(&self.pools, -1), (&pools, 1)] {
            for (asset, reserve) in pools.iter().flat_map(|pool| pool.assets.iter().zip(pool.reserves)) {
                changes[asset.index()] += sign * i128::from(reserve.get());
            }
        }
        let amounts = (0_u16..).map(AssetIndex).zip(self.for_sale.iter().zip(changes));
        self.for_sale =
            amounts.map(|(asset, (amount, change))| changed_amount(asset, *amount, change)).collect::<Result<_, _>>()?;
        self.pools = pools;
        Ok(())
    }

    /// Trades what [`crate::verify`] found right of this market's pools, and says what each of those that traded sold and bought.
    /// [`Self::set_pools`] with what they were undoes it.
    ///
    /// # Panics
    /// When the market has changed since, but for its offers.
    pub fn trade_pools(&mut self, fills: &[PoolFill]) -> Vec<PoolTraded> {
        if fills.is_empty() {
            return Vec::new();
        }
        let mut pools = self.pools.clone();
        let traded = fills.iter().map(|fill| {
            let pool = &mut pools[fill.pool.0 as usize];
            let (sold, bought) = match fill.side {
                PoolSide::First => (0, 1),
                PoolSide::Second => (1, 0),
            };
            let left = pool.reserves[sold].checked_sub(fill.sold);
            pool.reserves[sold] = left.expect("verified: a pool keeps some of what it sells");
            let more = pool.reserves[bought].checked_add(fill.bought);
            pool.reserves[bought] = more.expect("verified: what a pool has is an amount");
            PoolTraded { pool: fill.pool, pair: pool.pair(fill.side), sold: fill.sold, bought: fill.bought }
        });
        let traded = traded.collect();
        self.set_pools(pools).expect("verified: what is bought was sold, so no more is for sale than before");
        traded
    }

    /// What stands in some pairs, with the pools between their assets. Books are shared as a clone shares them: O(pairs + pools), and of
    /// buy offers O(offers).
    #[must_use]
    pub fn of_pairs(&self, is_of: impl Fn(Pair) -> bool) -> Self {
        let books: Vec<Arc<PairBook>> = self.books.iter().filter(|book| is_of(book.pair)).cloned().collect();
        let pools: Vec<Pool> = self.pools.iter().filter(|pool| is_of(pool.pair(PoolSide::First))).copied().collect();
        let mut for_sale = vec![0_u128; self.asset_count()];
        for PairBook { pair, sells, buys } in books.iter().map(|book| &**book) {
            let units = &mut for_sale[pair.sell.index()];
            *units += u128::from(sells.units_of_first(sells.as_slice().len()).get());
            *units += buys.as_slice().iter().map(|offer| u128::from(offer.sold_max().get())).sum::<u128>();
        }
        for (asset, reserve) in pools.iter().flat_map(|pool| pool.assets.iter().zip(pool.reserves)) {
            for_sale[asset.index()] += u128::from(reserve.get());
        }
        let amount = |units| Amount::from_wide(units).expect("no more than is for sale in all pairs");
        Self { books, pools, for_sale: for_sale.into_iter().map(amount).collect() }
    }

    /// A copy that shares nothing with the original.
    #[must_use]
    pub fn unshared(&self) -> Self {
        let books = self.books.iter().map(|book| Arc::new(PairBook::clone(book))).collect();
        Self { books, pools: self.pools.clone(), for_sale: self.for_sale.clone() }
    }

    /// How many assets there are.
    #[must_use]
    pub fn asset_count(&self) -> usize {
        self.for_sale.len()
    }

    /// The pairs that have an offer, in ascending order.
    #[must_use]
    pub fn books(&self) -> &[Arc<PairBook>] {
        &self.books
    }

    /// What stands in a pair, if anything: O(log pairs).
    #[must_use]
    pub fn book(&self, pair: Pair) -> Option<&PairBook> {
        self.books.binary_search_by_key(&pair, |book| book.pair).ok().map(|at| &*self.books[at])
    }

    /// The pools, by [`PoolIndex`].
    #[must_use]
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// Units for sale of an asset: by offers, at most by buy offers, and in pools.
    ///
    /// # Panics
    /// When the asset is not one of the market's.
    #[must_use]
    pub fn for_sale(&self, asset: AssetIndex) -> Amount {
        self.for_sale[asset.index()]
    }
}

pub(crate) fn check_pair(pair: Pair, asset_count: usize) -> Result<(), MarketError> {
    match [pair.sell, pair.buy].into_iter().find(|asset| asset.index() >= asset_count) {
        Some(asset) => Err(MarketError::UnknownAsset(asset)),
        None if pair.sell == pair.buy => Err(MarketError::EqualAssets(pair.sell)),
        None => Ok(()),
    }
}

fn check_pools(pools: &[Pool], asset_count: usize) -> Result<(), MarketError> {
    for (number, pool) in (0..).zip(pools) {
        check_pair(pool.pair(PoolSide::First), asset_count)?;
        let has_both = pool.reserves.iter().all(|reserve| !reserve.is_zero());
        if !has_both || pool.fee_ppm >= 1_000_000 || !pool.rule.is_possible() {
            return Err(MarketError::InvalidPool(PoolIndex(number)));
        }
    }
    Ok(())
}

fn amount_for_sale(asset: AssetIndex, units: u128) -> Result<Amount, MarketError> {
    Amount::from_wide(units).ok_or(MarketError::TooMuchOffered(asset))
}

/// How much more of an asset is for sale after a change. Fewer than 2^63 offers of less than 2^63 units fit 127 bits.
pub(crate) fn change_of<T: Stands>(offers: &PairOffers<T>, places: &Places, added: &[T]) -> i128 {
    let units = |offer: &T| i128::from(offer.sold_max().get());
    let gone: i128 = places.removed.iter().map(|&place| units(&offers.as_slice()[place])).sum();
    added.iter().map(units).sum::<i128>() - gone
}

pub(crate) fn changed_amount(asset: AssetIndex, amount: Amount, change: i128) -> Result<Amount, MarketError> {
    let units = u128::try_from(i128::from(amount.get()) + change).expect("what goes was for sale");
    amount_for_sale(asset, units)
}

/// Adds what is for sale; fewer than 2^64 offers of less than 2^63 units fit 128 bits.
fn check_and_count<T: Stands>(for_sale: &mut [u128], offers: &[(Pair, T)]) -> Result<(), MarketError> {
    for (pair, offer) in offers {
        check_pair(*pair, for_sale.len())?;
        for_sale[pair.sell.index()] += u128::from(offer.sold_max().get());
    }
    Ok(())
}

/// Of an offer, from the highest bit: what it sells, what it buys (12 bits each), its limit (64), its place in the input (40: more would
/// not fit in memory).
type SortKey = u128;

const _: () = assert!(ASSETS_MAX <= 1 << 12);
const PLACES: SortKey = (1 << 40) - 1;

fn sort_key<T: Stands>(place: SortKey, (pair, offer): &(Pair, T)) -> SortKey {
    let [sell, buy] = [pair.sell, pair.buy].map(|asset| SortKey::from(asset.0));
    sell << 116 | buy << 104 | SortKey::from(offer.key().limit.bits()) << 40 | place
}

/// Offers by pair in ascending order: two passes of counting sort bring a pair's offers together, then each pair is sorted; all that on
/// keys, so that each offer is moved once.
fn by_pair<T: Stands>(asset_count: usize, offers: &[(Pair, T)]) -> Result<Vec<(Pair, PairOffers<T>)>, MarketError> {
    let mut keys: Vec<SortKey> = (0..).zip(offers).map(|(place, offer)| sort_key(place, offer)).collect();
    let mut by_buy = vec![0; keys.len()];
    counting_sort(asset_count, &keys, &mut by_buy, |key| (key >> 104) as usize & 0xfff);
    counting_sort(asset_count, &by_buy, &mut keys, |key| (key >> 116) as usize);
    let of_key = |key: SortKey| offers[(key & PLACES) as usize];
    let pairs = keys.chunk_by_mut(|a, b| *a >> 104 == *b >> 104);
    pairs
        .map(|keys| {
            keys.sort_unstable();
            Ok((of_key(keys[0]).0, PairOffers::of_ascending(keys.iter().map(|&key| of_key(key).1).collect())?))
        })
        .collect()
}

/// Sorts by a digit below `digits` into another place, stable: O(n + digits).
fn counting_sort(digits: usize, keys: &[SortKey], sorted: &mut [SortKey], digit: impl Fn(SortKey) -> usize) {
    let mut next = vec![0; digits];
    for &key in keys {
        next[digit(key)] += 1;
    }
    let mut start = 0;
    for place in &mut next {
        start += std::mem::replace(place, start);
    }
    for &key in keys {
        let place = &mut next[digit(key)];
        sorted[*place] = key;
        *place += 1;
    }
}

/// Joins two ascending lists of pairs.
fn join(sells: Vec<(Pair, PairOffers<Offer>)>, buys: Vec<(Pair, PairOffers<BuyOffer>)>) -> Vec<Arc<PairBook>> {
    let mut books = Vec::with_capacity(sells.len().max(buys.len()));
    let (mut sells, mut buys) = (sells.into_iter().peekable(), buys.into_iter().peekable());
    while let Some(pair) = sells.peek().map(|(pair, _)| *pair).into_iter().chain(buys.peek().map(|(pair, _)| *pair)).min() {
        let sells = sells.next_if(|(of, _)| *of == pair).map_or_else(PairOffers::default, |(_, offers)| offers);
        let buys = buys.next_if(|(of, _)| *of == pair).map_or_else(PairOffers::default, |(_, offers)| offers);
        books.push(Arc::new(PairBook { pair, sells, buys }));
    }
    books
}
