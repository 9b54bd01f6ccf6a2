//! The demand index: all offers of a batch, laid out so that supply, demand and their slopes at any prices cost two searches per book.
//!
//! An offer's answer to prices is smoothed by a [`Window`] around the rate of its pair: full below the window, none above it, linear
//! in the limit between. So the value that a book sells is `pA * a - pB * b`, where `a` and `b` come from prefix sums of amounts and of
//! amounts times limits and stay the same as long as no limit enters or leaves the window: **linear in the prices**. The two terms
//! are also the slopes, `d value / d ln pA = pA * a` and `d value / d ln pB = -pB * b`, so a Jacobian costs nothing beside a demand.
//!
//! A book's limits are the leaves of a search tree whose nodes are two cache lines of 16 limits, searched by counting (no branches to
//! mispredict); prefix sums lie apart and are fetched at the found places alone.

use std::ops::Range;

use thiserror::Error;

use crate::node::{Counting, FANOUT, Node, Portable};
use crate::pool::{Pool, PoolSide};
use crate::synthetic::Offer;

const FANOUT_BITS: u32 = FANOUT.trailing_zeros();

/// Most offers in one book.
pub const BOOK_OFFERS_MAX: usize = 1 << 28;
/// Most offers that [`DemandIndex::from_offers`] takes.
pub const OFFERS_MAX: usize = u32::MAX as usize;
/// Most assets in one market.
pub const ASSETS_MAX: usize = 1 << 16;

/// Why offers could not be indexed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum IndexError {
    /// An asset is not below the number of assets.
    #[error("offer {offer} names asset {asset}, but the market has {asset_count}: number the assets from 0")]
    UnknownAsset {
        /// Position of the offer in the input.
        offer: usize,
        /// The asset.
        asset: usize,
        /// Assets in the market.
        asset_count: usize,
    },
    /// An offer sells what it buys.
    #[error("offer {offer} sells and buys asset {asset}: an offer trades two different assets")]
    SameAsset {
        /// Position of the offer in the input.
        offer: usize,
        /// The asset.
        asset: usize,
    },
    /// A limit is negative, infinite or not a number.
    #[error("offer {offer} has the limit {limit}: a limit is a finite number from 0 up")]
    Limit {
        /// Position of the offer in the input.
        offer: usize,
        /// The limit.
        limit: f64,
    },
    /// An amount is not above zero, or infinite, or not a number.
    #[error("offer {offer} has the amount {amount}: an amount is a finite number above 0")]
    Amount {
        /// Position of the offer in the input.
        offer: usize,
        /// The amount.
        amount: f64,
    },
    /// Too many assets or offers.
    #[error("{what} are more than {count_max}: split the market")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many fit.
        count_max: usize,
    },
    /// A pool's assets, reserves or fee cannot be.
    #[error("pool {pool}: {reason}")]
    Pool {
        /// Position of the pool in the input.
        pool: usize,
        /// What is wrong with it and what would be right.
        reason: &'static str,
    },
}

/// How offers near the rate are smoothed: offers whose limit is at most `low` times the rate sell all, those above `high` times the
/// rate nothing, those between the share `(high * rate - limit) / ((high - low) * rate)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    low: f64,
    high: f64,
}

impl Window {
    /// SPEEDEX's smoothing (2023, Appendix C.2): from `1 - mu` to 1. `mu` is taken as at least 2^-40.
    pub fn of_mu(mu: f64) -> Self {
        Self { low: 1.0 - mu.clamp(MU_MIN, 1.0), high: 1.0 }
    }

    /// The window of `mu`, widened by a factor `e^width` on both sides: what continuation begins with.
    pub fn widened(mu: f64, width: f64) -> Self {
        let factor = width.clamp(0.0, 300.0).exp();
        Self { low: (1.0 - mu.clamp(MU_MIN, 1.0)) / factor, high: factor }
    }

    /// The lower end, as a factor of the rate.
    pub fn low(self) -> f64 {
        self.low
    }

    /// The upper end, as a factor of the rate.
    pub fn high(self) -> f64 {
        self.high
    }
}

/// The narrowest smoothing: below it, rounding of the prices is no longer small beside it.
const MU_MIN: f64 = 1.0 / (1u64 << 40) as f64;

/// Offers of one ordered pair: where they lie in the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Book {
    /// The asset sold; in a block, its place in the block.
    pub(crate) sell: u32,
    /// The asset bought.
    pub(crate) buy: u32,
    first_node: u32,
    first_sum: u32,
    pub(crate) offer_count: u32,
    /// Inner levels above the leaves.
    depth: u32,
}

impl Book {
    /// Inner levels above the leaves.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// The same offers under other numbers of their assets.
    pub(crate) fn renamed(self, sell: u32, buy: u32) -> Self {
        Self { sell, buy, ..self }
    }
}

/// A number of nodes and of sums.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    nodes: u32,
    sums: u32,
}

impl Room {
    fn of(offer_count: usize) -> Self {
        Self { nodes: node_count(offer_count, depth_of(offer_count)) as u32, sums: offer_count as u32 + 1 }
    }

    fn holds(self, other: Self) -> bool {
        other.nodes <= self.nodes && other.sums <= self.sums
    }

    /// With some to grow.
    fn beyond(offer_count: usize) -> Self {
        Self::of(offer_count + offer_count / 8 + 4)
    }
}

/// Two searches in one book, on their way from the root to the leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Search {
    keys: [f64; 2],
    /// Node within its level; at the end, how many limits are at most the key.
    pub(crate) at: [usize; 2],
    /// First node of the level.
    base: usize,
    level: u32,
}

impl Search {
    #[inline(always)]
    pub(crate) fn new(book: &Book, low: f64, high: f64) -> Self {
        Self { keys: [low, high], at: [0; 2], base: book.first_node as usize, level: book.depth }
    }
}

/// All offers and pools of a market, ready for demand queries.
#[derive(Clone, Debug, Default)]
pub struct DemandIndex {
    pub(crate) asset_count: usize,
    nodes: Vec<Node>,
    /// Per book, `offer_count + 1` running sums from the lowest limit up: amount, and amount times limit.
    sums: Vec<[f64; 2]>,
    pub(crate) books: Vec<Book>,
    /// Beside each book: how many nodes and sums it may come to where it lies.
    rooms: Vec<Room>,
    /// Nodes and sums that no book uses any more.
    garbage: Room,
    pub(crate) pools: Vec<Pool>,
    /// Both sides of each pool, in turn.
    pub(crate) pool_sides: Vec<PoolSide>,
    offer_count: usize,
}

impl DemandIndex {
    /// The index of offers in any order. Offers of one pair and limit count as one.
    pub fn from_offers(asset_count: usize, offers: &[Offer], pools: Vec<Pool>) -> Result<Self, IndexError> {
        check_offers(asset_count, offers)?;
        let mut index = Self::empty(asset_count, pools)?;
        if offers.len() > OFFERS_MAX {
            return Err(IndexError::TooMany { what: "offers", count_max: OFFERS_MAX });
        }
        // Two passes of counting sort bring a pair's offers together, then each pair is sorted by limit and amount: positive floats are in
        // the order of their bits.
        let mut keys: Vec<u64> =
            (0..).zip(offers).map(|(place, offer)| (offer.sell as u64) << 48 | (offer.buy as u64) << 32 | place).collect();
        let mut by_buy = vec![0; keys.len()];
        counting_sort(asset_count, &keys, &mut by_buy, |key| (key >> 32) as u16);
        counting_sort(asset_count, &by_buy, &mut keys, |key| (key >> 48) as u16);
        let is_one_book = |a: &u64, b: &u64| a >> 32 == b >> 32;
        index.reserve(keys.chunk_by(is_one_book).count(), offers.len());
        let (mut sorted, mut levels): (Vec<u128>, Vec<(f64, f64)>) = (Vec::new(), Vec::new());
        for book in keys.chunk_by(is_one_book) {
            let offers_of = book.iter().map(|&key| &offers[key as u32 as usize]);
            sorted.clear();
            // Minus zero becomes zero.
            sorted.extend(
                offers_of.map(|offer| u128::from((offer.limit + 0.0).to_bits()) << 64 | u128::from(offer.amount.to_bits())),
            );
            sorted.sort_unstable();
            levels.clear();
            for offer in &sorted {
                let (limit, amount) = (f64::from_bits((offer >> 64) as u64), f64::from_bits(*offer as u64));
                match levels.last_mut() {
                    Some((last, sum)) if *last == limit => *sum += amount,
                    _ => levels.push((limit, amount)),
                }
            }
            let offer = &offers[book[0] as u32 as usize];
            index.check_room(levels.len())?;
            index.add_book(index.books.len(), offer.sell, offer.buy, &levels, Room::of(levels.len()));
        }
        Ok(index)
    }

    /// An index without offers.
    pub fn empty(asset_count: usize, pools: Vec<Pool>) -> Result<Self, IndexError> {
        if asset_count > ASSETS_MAX {
            return Err(IndexError::TooMany { what: "assets", count_max: ASSETS_MAX });
        }
        let mut index = Self { asset_count, ..Self::default() };
        index.set_pools(pools)?;
        Ok(index)
    }

    /// Puts these pools in place of all. After an error the pools are as they were.
    pub fn set_pools(&mut self, pools: Vec<Pool>) -> Result<(), IndexError> {
        for (pool, spec) in pools.iter().enumerate() {
            spec.check(self.asset_count).map_err(|reason| IndexError::Pool { pool, reason })?;
        }
        self.pool_sides = pools.iter().enumerate().flat_map(|(pool, spec)| spec.sides(pool as u32)).collect();
        self.pools = pools;
        Ok(())
    }

    /// Adds the offers of one ordered pair as `(limit, amount)`, limits strictly ascending, finite, from 0 up; amounts finite and above
    /// zero. A pair may be added once. An empty list adds nothing.
    pub fn push_book(&mut self, sell: usize, buy: usize, offers: &[(f64, f64)]) -> Result<(), IndexError> {
        self.check_room(offers.len())?;
        self.check_book(sell, buy, offers)?;
        if !offers.is_empty() {
            self.add_book(self.books.len(), sell, buy, offers, Room::of(offers.len()));
        }
        Ok(())
    }

    /// Puts these offers, which are as [`Self::push_book`] takes them, in place of those of an ordered pair; an empty list takes the pair
    /// out. For an index whose pairs were added in ascending order: they stay so, and it answers as one to which the pairs were added as
    /// they are now, to the last bit. O(offers of the pair), and O(pairs) where a pair comes or goes.
    ///
    /// What a book outgrows is left unused, so an index that is changed for long is to be made again now and then: see
    /// [`Self::is_mostly_unused`].
    pub fn set_book(&mut self, sell: usize, buy: usize, offers: &[(f64, f64)]) -> Result<(), IndexError> {
        self.check_room(offers.len())?;
        self.check_book(sell, buy, offers)?;
        let at = match self.books.binary_search_by_key(&(sell as u32, buy as u32), |book| (book.sell, book.buy)) {
            Ok(at) if !offers.is_empty() && self.rooms[at].holds(Room::of(offers.len())) => {
                self.write_book(at, offers);
                return Ok(());
            }
            Ok(at) => {
                self.remove_book(at);
                at
            }
            Err(at) => at,
        };
        if !offers.is_empty() {
            self.add_book(at, sell, buy, offers, Room::beyond(offers.len()));
        }
        Ok(())
    }

    /// Whether books have outgrown more places than are used: make the index again.
    pub fn is_mostly_unused(&self) -> bool {
        2 * self.garbage.nodes as usize > self.nodes.len() || 2 * self.garbage.sums as usize > self.sums.len()
    }

    /// Makes room, so that adding so many offers in so many books moves nothing.
    pub fn reserve(&mut self, book_count: usize, offer_count: usize) {
        self.books.reserve(book_count);
        self.rooms.reserve(book_count);
        self.sums.reserve(offer_count + book_count);
        // Each book's nodes are at most one more per level than full ones would be; two levels are usual.
        self.nodes.reserve(offer_count / (FANOUT - 1) + 2 * book_count);
    }

    /// Lays a book down behind all others, with so much room. Among the books it gets this place.
    fn add_book(&mut self, at: usize, sell: usize, buy: usize, offers: &[(f64, f64)], room: Room) {
        let (depth, first_node, first_sum) = (depth_of(offers.len()), self.nodes.len(), self.sums.len());
        self.nodes.extend(nodes_of(offers, depth));
        self.nodes.resize(first_node + room.nodes as usize, Node([f64::INFINITY; FANOUT]));
        self.sums.extend(sums_of(offers));
        self.sums.resize(first_sum + room.sums as usize, [0.0; 2]);
        let book = Book {
            sell: sell as u32,
            buy: buy as u32,
            first_node: first_node as u32,
            first_sum: first_sum as u32,
            offer_count: offers.len() as u32,
            depth: depth as u32,
        };
        self.books.insert(at, book);
        self.rooms.insert(at, room);
        self.offer_count += offers.len();
    }

    /// Writes a book where the one at this place among the books lies.
    fn write_book(&mut self, at: usize, offers: &[(f64, f64)]) {
        let (old, depth) = (self.books[at], depth_of(offers.len()));
        let nodes = &mut self.nodes[old.first_node as usize..];
        nodes.iter_mut().zip(nodes_of(offers, depth)).for_each(|(place, node)| *place = node);
        let sums = &mut self.sums[old.first_sum as usize..];
        sums.iter_mut().zip(sums_of(offers)).for_each(|(place, sum)| *place = sum);
        self.offer_count = self.offer_count - old.offer_count as usize + offers.len();
        self.books[at] = Book { offer_count: offers.len() as u32, depth: depth as u32, ..old };
    }

    fn remove_book(&mut self, at: usize) {
        let (book, room) = (self.books.remove(at), self.rooms.remove(at));
        self.offer_count -= book.offer_count as usize;
        self.garbage.nodes += room.nodes;
        self.garbage.sums += room.sums;
    }

    /// Whether both have the same offers, laid out alike to the last bit, wherever their books lie.
    pub fn has_same_books(&self, other: &Self) -> bool {
        let of_book = |index: &Self, book: &Book| {
            let nodes = &index.nodes[book.first_node as usize..][..node_count(book.offer_count as usize, book.depth as usize)];
            let limits: Vec<_> = nodes.iter().map(|node| node.0.map(f64::to_bits)).collect();
            let sums = &index.sums[book.first_sum as usize..][..=book.offer_count as usize];
            let sums: Vec<_> = sums.iter().map(|sum| sum.map(f64::to_bits)).collect();
            (book.sell, book.buy, book.offer_count, book.depth, limits, sums)
        };
        let books = |index: &Self| index.books.iter().map(|book| of_book(index, book)).collect::<Vec<_>>();
        (self.asset_count, self.offer_count) == (other.asset_count, other.offer_count) && books(self) == books(other)
    }

    fn check_room(&self, offer_count: usize) -> Result<(), IndexError> {
        let room = (u32::MAX as usize).saturating_sub(self.sums.len() + offer_count);
        if offer_count > BOOK_OFFERS_MAX || room < 1 << 20 {
            return Err(IndexError::TooMany { what: "offers", count_max: BOOK_OFFERS_MAX });
        }
        Ok(())
    }

    /// Looks at all offers at once, and at each only where something is wrong.
    fn check_book(&self, sell: usize, buy: usize, offers: &[(f64, f64)]) -> Result<(), IndexError> {
        let is_pair = sell != buy && sell.max(buy) < self.asset_count;
        if is_pair && is_book(offers) {
            return Ok(());
        }
        let first = self.offer_count;
        for (place, &(limit, amount)) in offers.iter().enumerate() {
            check_offer(self.asset_count, first + place, &Offer { sell, buy, limit, amount })?;
            if place > 0 && offers[place - 1].0 >= limit {
                return Err(IndexError::Limit { offer: first + place, limit });
            }
        }
        Ok(())
    }

    /// Assets in the market.
    pub fn asset_count(&self) -> usize {
        self.asset_count
    }

    /// Distinct limits over all pairs.
    pub fn offer_count(&self) -> usize {
        self.offer_count
    }

    /// Ordered pairs that have an offer.
    pub fn book_count(&self) -> usize {
        self.books.len()
    }

    /// How many of the book's limits are at most `key`.
    pub(crate) fn rank(&self, book: &Book, key: f64) -> usize {
        let mut search = Search::new(book, key, key);
        (0..book.depth).for_each(|_| self.descend::<Portable>(book, &mut search));
        self.finish::<Portable>(book, &mut search);
        search.at[0]
    }

    /// One level down, if the search is not at a leaf.
    #[inline(always)]
    pub(crate) fn descend<C: Counting>(&self, book: &Book, search: &mut Search) {
        if search.level == 0 {
            return;
        }
        for (at, &key) in search.at.iter_mut().zip(&search.keys) {
            *at = *at << FANOUT_BITS | C::count(&self.nodes[search.base.wrapping_add(*at)], key);
        }
        let is_root = search.level == book.depth;
        let nodes = if is_root { 1 } else { (book.offer_count as usize).div_ceil(FANOUT << (FANOUT_BITS * search.level)) };
        search.base = search.base.wrapping_add(nodes);
        search.level -= 1;
    }

    /// From the leaves to the ranks.
    #[inline(always)]
    pub(crate) fn finish<C: Counting>(&self, book: &Book, search: &mut Search) {
        for (at, &key) in search.at.iter_mut().zip(&search.keys) {
            let within = C::count(&self.nodes[search.base.wrapping_add(*at)], key);
            *at = (*at << FANOUT_BITS).wrapping_add(within).min(book.offer_count as usize);
        }
    }

    /// Amount, and amount times limit, of the `rank` lowest limits.
    #[inline(always)]
    pub(crate) fn sums_at(&self, book: &Book, rank: usize) -> [f64; 2] {
        self.sums[book.first_sum as usize + rank]
    }

    /// The limit at a place in the book.
    pub(crate) fn limit(&self, book: &Book, place: usize) -> f64 {
        self.leaves(book)[place / FANOUT].0[place % FANOUT]
    }

    /// Limits and amounts at these places of the book.
    pub(crate) fn levels(&self, book: &Book, places: Range<usize>) -> impl Iterator<Item = (f64, f64)> {
        let (leaves, first) = (self.leaves(book), book.first_sum as usize);
        let sums = &self.sums[first + places.start..=first + places.end];
        places.zip(sums.windows(2)).map(|(place, sums)| (leaves[place / FANOUT].0[place % FANOUT], sums[1][0] - sums[0][0]))
    }

    fn leaves(&self, book: &Book) -> &[Node] {
        let next = book.first_node as usize + node_count(book.offer_count as usize, book.depth as usize);
        &self.nodes[next - (book.offer_count as usize).div_ceil(FANOUT)..next]
    }
}

/// Inner levels above the leaves of a book of so many offers.
fn depth_of(offer_count: usize) -> usize {
    let mut depth = 0;
    while offer_count.div_ceil(FANOUT << (FANOUT_BITS as usize * depth)) > 1 {
        depth += 1;
    }
    depth
}

fn node_count(offer_count: usize, depth: usize) -> usize {
    (0..=depth).map(|level| offer_count.div_ceil(FANOUT << (FANOUT_BITS as usize * level))).sum()
}

/// The nodes of a book, from the root down.
fn nodes_of(offers: &[(f64, f64)], depth: usize) -> impl Iterator<Item = Node> {
    let inner = (1..=depth).rev().flat_map(move |level| {
        // A node's key c is the first limit below its child c + 1, `FANOUT^level` limits apart.
        let apart = 1 << (FANOUT_BITS as usize * level);
        (0..offers.len()).step_by(apart * FANOUT).map(move |first| {
            let children = (1..FANOUT).map(move |child| first + child * apart).take_while(|at| *at < offers.len());
            node(children.map(|at| offers[at].0))
        })
    });
    inner.chain(offers.chunks(FANOUT).map(|leaf| node(leaf.iter().map(|&(limit, _)| limit))))
}

/// The running sums of a book.
fn sums_of(offers: &[(f64, f64)]) -> impl Iterator<Item = [f64; 2]> {
    let (mut amounts, mut values) = (Compensated::default(), Compensated::default());
    let sums = offers.iter().map(move |&(limit, amount)| {
        amounts.add(amount);
        values.add(amount * limit);
        [amounts.get(), values.get()]
    });
    std::iter::once([0.0; 2]).chain(sums)
}

/// Sorts by a digit below `digits` into another place, stable.
fn counting_sort(digits: usize, keys: &[u64], sorted: &mut [u64], digit: impl Fn(u64) -> u16) {
    let mut next = vec![0; digits];
    keys.iter().for_each(|&key| next[usize::from(digit(key))] += 1);
    let mut start = 0;
    for place in &mut next {
        start += std::mem::replace(place, start);
    }
    for &key in keys {
        let place = &mut next[usize::from(digit(key))];
        sorted[*place] = key;
        *place += 1;
    }
}

fn node(limits: impl Iterator<Item = f64>) -> Node {
    let mut node = Node([f64::INFINITY; FANOUT]);
    node.0.iter_mut().zip(limits).for_each(|(place, limit)| *place = limit);
    node
}

fn check_offers(asset_count: usize, offers: &[Offer]) -> Result<(), IndexError> {
    offers.iter().enumerate().try_for_each(|(place, offer)| check_offer(asset_count, place, offer))
}

fn check_offer(asset_count: usize, place: usize, offer: &Offer) -> Result<(), IndexError> {
    if let Some(&asset) = [offer.sell, offer.buy].iter().find(|&&asset| asset >= asset_count) {
        return Err(IndexError::UnknownAsset { offer: place, asset, asset_count });
    }
    if offer.sell == offer.buy {
        return Err(IndexError::SameAsset { offer: place, asset: offer.sell });
    }
    if !(offer.limit >= 0.0 && offer.limit.is_finite()) {
        return Err(IndexError::Limit { offer: place, limit: offer.limit });
    }
    if !(offer.amount > 0.0 && offer.amount.is_finite()) {
        return Err(IndexError::Amount { offer: place, amount: offer.amount });
    }
    Ok(())
}

/// Whether limits ascend strictly from 0 up, and all numbers are finite, amounts above zero. Without a branch for each, since nearly
/// always all is well.
fn is_book(offers: &[(f64, f64)]) -> bool {
    let are_amounts = offers.iter().fold(true, |all, &(_, amount)| all & (amount > 0.0) & (amount < f64::INFINITY));
    // None of those that ascend is less than the first or more than the last, and none is no number.
    let ascend = offers.iter().zip(offers.iter().skip(1)).fold(true, |all, (lower, higher)| all & (lower.0 < higher.0));
    let is_low = offers.first().is_none_or(|(least, _)| *least >= 0.0);
    let is_high = offers.last().is_none_or(|(most, _)| *most < f64::INFINITY);
    are_amounts & ascend & is_low & is_high
}

/// A running sum whose rounding errors are summed apart (Neumaier 1974).
#[derive(Default)]
struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
    }

    fn get(&self) -> f64 {
        self.sum + self.lost
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What [`DemandIndex::check_book`] finds, one offer after the other.
    fn is_each_an_offer(offers: &[(f64, f64)]) -> bool {
        let is_offer = |&(limit, amount): &(f64, f64)| check_offer(2, 0, &Offer { sell: 0, buy: 1, limit, amount }).is_ok();
        offers.iter().all(is_offer) && (1..offers.len()).all(|place| offers[place - 1].0 < offers[place].0)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_book_is_one_where_each_offer_is(
            mut limits in prop::collection::vec(0.0_f64..4.0, 0..20),
            odd in prop::option::of((0_usize..20, any::<bool>(), prop::sample::select(vec![
                f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::MAX, f64::MIN_POSITIVE,
            ]))),
        ) {
            limits.sort_by(f64::total_cmp);
            let mut offers: Vec<(f64, f64)> = limits.into_iter().map(|limit| (limit, 1.0 + limit)).collect();
            if let Some((place, is_limit, value)) = odd
                && let Some(offer) = offers.get_mut(place)
            {
                *(if is_limit { &mut offer.0 } else { &mut offer.1 }) = value;
            }
            prop_assert_eq!(is_book(&offers), is_each_an_offer(&offers));
            let index = DemandIndex::empty(2, Vec::new()).unwrap();
            prop_assert_eq!(index.check_book(0, 1, &offers).is_ok(), is_each_an_offer(&offers));
            prop_assert!(offers.is_empty() || index.check_book(1, 1, &offers).is_err() && index.check_book(0, 2, &offers).is_err());
        }
    }
}
