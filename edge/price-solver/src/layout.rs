//! Where the entries of a block's Jacobian lie, and in which order its assets are eliminated.
//!
//! Small blocks, and those in which most pairs trade, keep all entries in rows. In a large block of few books most entries are zero
//! and stay so: assets with few neighbours are eliminated first (minimum degree: Tinney, Walker 1967), each touching its neighbours
//! alone, until the assets left are nearly all neighbours of each other. These are the *core*, which is kept in rows.

use crate::demand::Book;
use crate::pool::PoolSide;

/// Blocks of at most so many assets are kept in rows: elimination of so few takes less time than looking for their neighbours.
const ROWS_ASSETS_MAX: usize = 96;
/// So are blocks in which so large a share of the entries is not zero.
const ROWS_SHARE: f64 = 0.25;
/// An asset is eliminated on its own while at most this share of those left are its neighbours.
const CORE_SHARE: f64 = 0.6;
/// Entries merged between two looks at the clock, at least: about a millisecond of work.
const LOOK_EVERY: usize = 200_000;

/// The place of the entries of a Jacobian in one list.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// By rows, all of them: the number of assets.
    Rows(usize),
    /// Few entries.
    Sparse(Box<Sparse>),
    /// The deadline passed before there was an order: one place for all entries, and no step is taken any more.
    Unordered,
}

/// The places of a Jacobian with few entries: of each eliminated asset its row, then of each its column, then the core by rows.
#[derive(Clone, Debug)]
pub(crate) struct Sparse {
    /// Assets in the order in which they are eliminated.
    pub(crate) eliminated: Vec<u32>,
    /// Place in the order, or of the assets of the core that of the last plus the place in the core.
    pub(crate) rank: Vec<u32>,
    /// Of each eliminated asset, in their order, the first of its neighbours; and one more.
    pub(crate) first: Vec<u32>,
    /// Neighbours that are eliminated later or in the core, by their ranks, ascending.
    pub(crate) later: Vec<u32>,
    /// Assets of the core.
    pub(crate) core: Vec<u32>,
    /// Of each book, then of each side of a pool: the places of its two entries, (sell, buy) and (buy, sell).
    slots: Vec<[u32; 2]>,
    book_count: usize,
}

impl Layout {
    /// The layout for these books and pools, under the block's numbers, unless `is_over` says on the way that the search has ended.
    pub(crate) fn of(asset_count: usize, books: &[Book], pools: &[PoolSide], is_over: &dyn Fn() -> bool) -> Self {
        let entries = 2 * (books.len() + pools.len());
        if asset_count <= ROWS_ASSETS_MAX || entries as f64 > ROWS_SHARE * (asset_count as f64).powi(2) {
            return Self::Rows(asset_count);
        }
        let pairs: Vec<(u32, u32)> =
            books.iter().map(|book| (book.sell, book.buy)).chain(pools.iter().map(|side| (side.sell, side.buy))).collect();
        let sparse = Sparse::new(asset_count, &pairs, books.len(), is_over);
        sparse.map_or(Self::Unordered, |sparse| Self::Sparse(Box::new(sparse)))
    }

    /// How many entries there are room for.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Rows(asset_count) => asset_count * asset_count,
            Self::Sparse(sparse) => 2 * sparse.later.len() + sparse.core.len() * sparse.core.len(),
            Self::Unordered => 1,
        }
    }

    /// The places of a book's entries, of the block's books those of this number: (sell, buy) and (buy, sell).
    #[inline(always)]
    pub(crate) fn book_slots(&self, number: usize, sell: usize, buy: usize) -> [usize; 2] {
        match self {
            Self::Rows(n) => [sell.wrapping_mul(*n).wrapping_add(buy), buy.wrapping_mul(*n).wrapping_add(sell)],
            Self::Sparse(sparse) => sparse.slots[number].map(|slot| slot as usize),
            Self::Unordered => [0, 0],
        }
    }

    /// The same of a side of a pool.
    pub(crate) fn pool_slots(&self, number: usize, sell: usize, buy: usize) -> [usize; 2] {
        match self {
            Self::Rows(n) => [sell * n + buy, buy * n + sell],
            Self::Sparse(sparse) => sparse.slots[sparse.book_count + number].map(|slot| slot as usize),
            Self::Unordered => [0, 0],
        }
    }

    /// Adds up each column.
    pub(crate) fn column_sums(&self, slopes: &[f64], sums: &mut [f64]) {
        sums.fill(0.0);
        match self {
            Self::Rows(n) => {
                for row in slopes.chunks_exact(*n) {
                    sums.iter_mut().zip(row).for_each(|(sum, &slope)| *sum += slope);
                }
            }
            Self::Sparse(sparse) => sparse.column_sums(slopes, sums),
            Self::Unordered => {}
        }
    }
}

impl Sparse {
    /// `None` where `is_over` says so on the way.
    fn new(asset_count: usize, pairs: &[(u32, u32)], book_count: usize, is_over: &dyn Fn() -> bool) -> Option<Self> {
        let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); asset_count];
        for &(a, b) in pairs {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        let (mut eliminated, mut laters) = (Vec::new(), Vec::new());
        let mut is_left = vec![true; asset_count];
        // Assets by their number of neighbours; an entry that is out of date is passed over.
        let mut by_degree: std::collections::BTreeSet<(usize, u32)> =
            neighbours.iter().zip(0..).map(|(list, asset)| (list.len(), asset)).collect();
        let (mut merged, mut entries_unseen) = (Vec::new(), 0);
        while let Some((degree, asset)) = by_degree.pop_first() {
            let left = by_degree.len() + 1;
            if degree as f64 > CORE_SHARE * left as f64 {
                by_degree.insert((degree, asset));
                break;
            }
            entries_unseen += degree * degree;
            if entries_unseen >= LOOK_EVERY {
                entries_unseen = 0;
                if is_over() {
                    return None;
                }
            }
            is_left[asset as usize] = false;
            let own = std::mem::take(&mut neighbours[asset as usize]);
            for &other in &own {
                let list = &mut neighbours[other as usize];
                by_degree.remove(&(list.len(), other));
                merge(list, &own, &mut merged, |entry| entry != asset && entry != other);
                std::mem::swap(list, &mut merged);
                by_degree.insert((list.len(), other));
            }
            eliminated.push(asset);
            laters.push(own);
        }
        let core: Vec<u32> = (0..asset_count as u32).filter(|&asset| is_left[asset as usize]).collect();
        let mut rank = vec![0; asset_count];
        eliminated.iter().chain(&core).zip(0..).for_each(|(&asset, place)| rank[asset as usize] = place);
        let (mut first, mut later) = (vec![0], Vec::new());
        for list in laters {
            let begun = later.len();
            later.extend(list.iter().map(|&asset| rank[asset as usize]));
            later[begun..].sort_unstable();
            first.push(later.len() as u32);
        }
        let mut sparse = Self { eliminated, rank, first, later, core, slots: Vec::new(), book_count };
        if is_over() {
            return None;
        }
        sparse.slots = pairs.iter().map(|&(a, b)| [sparse.slot(a, b) as u32, sparse.slot(b, a) as u32]).collect();
        Some(sparse)
    }

    /// Where the entry of two assets lies, by their block's numbers. They are neighbours, or both are in the core.
    pub(crate) fn slot(&self, row: u32, column: u32) -> usize {
        self.slot_of_ranks(self.rank[row as usize], self.rank[column as usize])
    }

    fn slot_of_ranks(&self, row: u32, column: u32) -> usize {
        let (eliminated, entries) = (self.eliminated.len() as u32, self.later.len());
        let sooner = row.min(column);
        if sooner >= eliminated {
            let core = self.core.len();
            return 2 * entries + (row - eliminated) as usize * core + (column - eliminated) as usize;
        }
        let range = self.first[sooner as usize] as usize..self.first[sooner as usize + 1] as usize;
        let place = self.later[range.clone()].binary_search(&row.max(column)).expect("an entry lies between neighbours");
        if row == sooner { range.start + place } else { entries + range.start + place }
    }

    fn column_sums(&self, slopes: &[f64], sums: &mut [f64]) {
        let (entries, eliminated) = (self.later.len(), self.eliminated.len());
        let asset_of =
            |rank: u32| self.eliminated.get(rank as usize).copied().unwrap_or_else(|| self.core[rank as usize - eliminated]);
        for (place, &asset) in self.eliminated.iter().enumerate() {
            for at in self.first[place] as usize..self.first[place + 1] as usize {
                sums[asset_of(self.later[at]) as usize] += slopes[at];
                sums[asset as usize] += slopes[entries + at];
            }
        }
        if self.core.is_empty() {
            return;
        }
        for row in slopes[2 * entries..].chunks_exact(self.core.len()) {
            self.core.iter().zip(row).for_each(|(&asset, &slope)| sums[asset as usize] += slope);
        }
    }
}

/// Both lists, ascending and each entry once, into the third, as far as they are to be kept.
fn merge(a: &[u32], b: &[u32], into: &mut Vec<u32>, keep: impl Fn(u32) -> bool) {
    into.clear();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let next = match (a.get(i), b.get(j)) {
            (Some(&x), Some(&y)) => x.min(y),
            (Some(&x), None) | (None, Some(&x)) => x,
            (None, None) => break,
        };
        i += usize::from(a.get(i) == Some(&next));
        j += usize::from(b.get(j) == Some(&next));
        if keep(next) {
            into.push(next);
        }
    }
}
