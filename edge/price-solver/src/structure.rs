//! What can be priced together: the parts of a market that trade with each other, and the blocks that they fall into.
//!
//! Value that leaves an asset must come back to it, so trade happens only round cycles of the graph whose edges lead from the asset
//! sold to the asset bought. Its strongly connected components are the *parts*: an offer between two parts can never trade, an asset
//! alone in its part has no price. A part is glued from *blocks* (biconnected components) at single assets, without a cycle among them;
//! by SPEEDEX 2023, Theorem 5, block equilibria scaled to agree where they meet are an equilibrium of the part. Numeraires and their
//! stocks are the case in point: a market of thousands of assets clears as one small block per stock.
//!
//! Part prices are scaled, sellers' side last, so that every offer between two parts is out of the money.

use crate::block::Block;
use crate::demand::DemandIndex;
use crate::layout::Layout;
use crate::pool::PoolSide;

/// A market taken apart.
#[derive(Debug)]
pub(crate) struct Structure<'i> {
    /// In an order in which each block shares at most one asset with those before it in its part.
    pub(crate) blocks: Vec<Block<'i>>,
    /// Asset to part; parts are numbered so that books between two parts lead from the higher number to the lower.
    part_of: Vec<u32>,
    part_count: usize,
}

const NONE: u32 = u32::MAX;

/// Edges of a graph by their tails: `(head, edge)`.
struct Adjacency {
    first: Vec<u32>,
    edges: Vec<(u32, u32)>,
}

impl Adjacency {
    fn new(asset_count: usize, edges: &[(u32, u32)], both_ways: bool) -> Self {
        let mut first = vec![0u32; asset_count + 1];
        for &(tail, head) in edges {
            first[tail as usize + 1] += 1;
            first[head as usize + 1] += u32::from(both_ways);
        }
        (1..first.len()).for_each(|place| first[place] += first[place - 1]);
        let mut next = first.clone();
        let mut sorted = vec![(0, 0); first[asset_count] as usize];
        for (edge, &(tail, head)) in edges.iter().enumerate() {
            let mut put = |from: u32, to: u32| {
                sorted[next[from as usize] as usize] = (to, edge as u32);
                next[from as usize] += 1;
            };
            put(tail, head);
            if both_ways {
                put(head, tail);
            }
        }
        Self { first, edges: sorted }
    }

    fn of(&self, asset: u32) -> &[(u32, u32)] {
        &self.edges[self.first[asset as usize] as usize..self.first[asset as usize + 1] as usize]
    }
}

impl<'i> Structure<'i> {
    /// Blocks are not made ready for steps any more once `is_over` says so.
    pub(crate) fn of_until(index: &'i DemandIndex, is_over: &dyn Fn() -> bool) -> Self {
        let n = index.asset_count;
        let mut edges: Vec<(u32, u32)> = index.books.iter().map(|book| (book.sell, book.buy)).collect();
        edges.extend(index.pool_sides.iter().map(|side| (side.sell, side.buy)));
        let (part_of, part_count) = parts(n, &Adjacency::new(n, &edges, false));
        let inside: Vec<u32> = (0..edges.len() as u32)
            .filter(|&edge| {
                let (a, b) = edges[edge as usize];
                part_of[a as usize] == part_of[b as usize]
            })
            .collect();
        let inner: Vec<(u32, u32)> = inside.iter().map(|&edge| edges[edge as usize]).collect();
        let (block_of, block_count) = glued_blocks(n, &inner);
        let mut blocks: Vec<Block<'i>> = (0..block_count)
            .map(|_| Block { index, assets: Vec::new(), books: Vec::new(), pools: Vec::new(), layout: Layout::Rows(0) })
            .collect();
        let mut local = LocalNumbers { of: vec![(NONE, 0); n] };
        let mut by_block: Vec<Vec<u32>> = vec![Vec::new(); block_count];
        for (&edge, &block) in inside.iter().zip(&block_of) {
            by_block[block as usize].push(edge);
        }
        for (place, (block, edges_of)) in blocks.iter_mut().zip(&by_block).enumerate() {
            for &edge in edges_of {
                let (sell, buy) = edges[edge as usize];
                let sell = local.number(place as u32, sell, &mut block.assets);
                let buy = local.number(place as u32, buy, &mut block.assets);
                match (edge as usize).checked_sub(index.books.len()) {
                    None => block.books.push(index.books[edge as usize].renamed(sell, buy)),
                    Some(side) => block.pools.push(PoolSide { sell, buy, ..index.pool_sides[side] }),
                }
            }
        }
        for block in &mut blocks {
            block.layout = Layout::of(block.assets.len(), &block.books, &block.pools, is_over);
        }
        // The depth-first search closes a block before the one it hangs from.
        blocks.reverse();
        Self { blocks, part_of, part_count }
    }

    /// The whole market as one block, whatever it consists of.
    pub(crate) fn whole_until(index: &'i DemandIndex, is_over: &dyn Fn() -> bool) -> Self {
        let assets: Vec<u32> = (0..index.asset_count as u32).collect();
        let part_of = vec![0; assets.len()];
        Self {
            blocks: vec![Block {
                layout: Layout::of(assets.len(), &index.books, &index.pool_sides, is_over),
                index,
                assets,
                books: index.books.clone(),
                pools: index.pool_sides.clone(),
            }],
            part_of,
            part_count: 1,
        }
    }

    #[cfg(test)]
    pub(crate) fn of(index: &'i DemandIndex) -> Self {
        Self::of_until(index, &|| false)
    }

    #[cfg(test)]
    pub(crate) fn whole(index: &'i DemandIndex) -> Self {
        Self::whole_until(index, &|| false)
    }

    /// Prices of the whole market from those of its blocks, in the blocks' order. An asset of no block has none.
    pub(crate) fn combine(&self, index: &DemandIndex, block_prices: &[Vec<f64>]) -> Vec<Option<f64>> {
        let mut prices: Vec<Option<f64>> = vec![None; self.part_of.len()];
        for (block, own) in self.blocks.iter().zip(block_prices) {
            let shared = block.assets.iter().zip(own).find_map(|(&asset, &own)| prices[asset as usize].map(|price| price / own));
            for (&asset, &own) in block.assets.iter().zip(own) {
                prices[asset as usize].get_or_insert(own * shared.unwrap_or(1.0));
            }
        }
        self.scale_parts(index, &mut prices);
        prices
    }

    /// Scales each part below the lowest limit at which it sells to another.
    fn scale_parts(&self, index: &DemandIndex, prices: &mut [Option<f64>]) {
        if self.part_count < 2 {
            return;
        }
        // Parts sold to are numbered, and so scaled, first.
        let mut between: Vec<&crate::demand::Book> =
            index.books.iter().filter(|book| self.part_of[book.sell as usize] != self.part_of[book.buy as usize]).collect();
        between.sort_by_key(|book| self.part_of[book.sell as usize]);
        let mut scales = vec![1.0f64; self.part_count];
        for book in between {
            let (Some(sell), Some(buy)) = (prices[book.sell as usize], prices[book.buy as usize]) else { continue };
            let limit = index.limit(book, 0);
            let (part, other) = (self.part_of[book.sell as usize] as usize, self.part_of[book.buy as usize] as usize);
            // A market order accepts any scale: nothing can be out of its money, and nobody wants what it sells.
            if limit > 0.0 {
                scales[part] = scales[part].min(limit * 0.5 * scales[other] * (buy / sell));
            }
        }
        for (price, &part) in prices.iter_mut().zip(&self.part_of) {
            *price = price.map(|price| price * scales[part as usize]).filter(|price| price.is_normal());
        }
    }
}

/// Numbers of assets within the block at hand.
struct LocalNumbers {
    /// The block that last numbered the asset, and its number there.
    of: Vec<(u32, u32)>,
}

impl LocalNumbers {
    fn number(&mut self, block: u32, asset: u32, assets: &mut Vec<u32>) -> u32 {
        let entry = &mut self.of[asset as usize];
        if entry.0 != block {
            *entry = (block, assets.len() as u32);
            assets.push(asset);
        }
        entry.1
    }
}

/// Strongly connected components (Tarjan 1972, without recursion), numbered so that an edge between two leads to the lower number.
fn parts(asset_count: usize, adjacency: &Adjacency) -> (Vec<u32>, usize) {
    let mut part_of = vec![NONE; asset_count];
    let (mut entered, mut low) = (vec![NONE; asset_count], vec![0; asset_count]);
    let (mut open, mut path): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
    let (mut clock, mut part_count) = (0, 0);
    for root in 0..asset_count as u32 {
        if entered[root as usize] != NONE {
            continue;
        }
        path.push((root, 0));
        while let Some((asset, edge)) = path.last_mut() {
            let (asset, at) = (*asset, *edge);
            *edge += 1;
            let here = asset as usize;
            if at == 0 {
                (entered[here], low[here]) = (clock, clock);
                clock += 1;
                open.push(asset);
            }
            if let Some(&(head, _)) = adjacency.of(asset).get(at) {
                let there = head as usize;
                if entered[there] == NONE {
                    path.push((head, 0));
                } else if part_of[there] == NONE {
                    low[here] = low[here].min(entered[there]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent as usize] = low[parent as usize].min(low[here]);
            }
            if low[here] == entered[here] {
                while let Some(member) = open.pop() {
                    part_of[member as usize] = part_count;
                    if member == asset {
                        break;
                    }
                }
                part_count += 1;
            }
        }
    }
    (part_of, part_count as usize)
}

/// Biconnected components of the undirected graph (Hopcroft, Tarjan 1973, without recursion): each edge's component, numbered in the
/// order in which the search closes them.
fn glued_blocks(asset_count: usize, edges: &[(u32, u32)]) -> (Vec<u32>, usize) {
    let adjacency = Adjacency::new(asset_count, edges, true);
    let mut block_of = vec![NONE; edges.len()];
    let (mut entered, mut low) = (vec![NONE; asset_count], vec![0; asset_count]);
    // Edges seen and not yet in a block; the path holds (asset, asset it was reached from, next edge, edges open when reached).
    let mut open: Vec<u32> = Vec::new();
    let mut path: Vec<(u32, u32, usize, usize)> = Vec::new();
    let mut seen = vec![false; edges.len()];
    let (mut clock, mut block_count) = (0, 0);
    for root in 0..asset_count as u32 {
        if entered[root as usize] != NONE {
            continue;
        }
        path.push((root, NONE, 0, 0));
        while let Some((asset, parent, edge, opened)) = path.last_mut() {
            let (asset, parent, at, opened) = (*asset, *parent, *edge, *opened);
            *edge += 1;
            let here = asset as usize;
            if at == 0 {
                (entered[here], low[here]) = (clock, clock);
                clock += 1;
            }
            if let Some(&(head, edge)) = adjacency.of(asset).get(at) {
                let there = head as usize;
                if seen[edge as usize] {
                    continue;
                }
                seen[edge as usize] = true;
                if entered[there] == NONE {
                    path.push((head, asset, 0, open.len()));
                    open.push(edge);
                } else {
                    open.push(edge);
                    low[here] = low[here].min(entered[there]);
                }
                continue;
            }
            path.pop();
            if parent == NONE {
                continue;
            }
            let above = parent as usize;
            low[above] = low[above].min(low[here]);
            if low[here] >= entered[above] {
                open.drain(opened..).for_each(|edge| block_of[edge as usize] = block_count);
                block_count += 1;
            }
        }
    }
    (block_of, block_count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Offer;

    fn index(asset_count: usize, pairs: &[(usize, usize)]) -> DemandIndex {
        let offers: Vec<Offer> = pairs.iter().map(|&(sell, buy)| Offer { sell, buy, limit: 3.0, amount: 1.0 }).collect();
        DemandIndex::from_offers(asset_count, &offers, Vec::new()).unwrap()
    }

    fn assets_of(index: &DemandIndex) -> Vec<Vec<u32>> {
        let sorted = |block: &Block<'_>| {
            let mut assets = block.assets.clone();
            assets.sort();
            assets
        };
        Structure::of(index).blocks.iter().map(sorted).collect()
    }

    #[test]
    fn cycles_hold_together_and_single_assets_cut() {
        // A triangle 0 1 2, a pair 2 3, a pair 3 4, and an asset that only buys.
        let index = index(6, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 2), (3, 4), (4, 3), (5, 0)]);
        assert_eq!(assets_of(&index), [vec![0, 1, 2], vec![2, 3], vec![3, 4]]);
        let structure = Structure::of(&index);
        let prices = structure.combine(&index, &[vec![1.0, 2.0, 4.0], vec![1.0, 10.0], vec![5.0, 1.0]]);
        // Each block numbers its assets as its books come.
        assert_eq!(prices, [Some(1.0), Some(2.0), Some(4.0), Some(40.0), Some(8.0), None]);
    }

    #[test]
    fn parts_are_scaled_so_that_nothing_between_them_is_in_the_money() {
        // 0, 1 sell to 2, 3, and those to 4, 5; nobody sells back.
        let pairs = [(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4), (0, 2), (1, 3), (2, 4), (3, 5), (0, 5)];
        let index = index(6, &pairs);
        let structure = Structure::of(&index);
        assert_eq!(structure.part_count, 3);
        let prices = structure.combine(&index, &vec![vec![100.0, 1.0]; 3]);
        for &(sell, buy) in &pairs[6..] {
            assert!(prices[sell].unwrap() < 3.0 * prices[buy].unwrap(), "{prices:?}");
        }
        assert!((prices[2].unwrap() / prices[3].unwrap() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_priced_where_nothing_comes_back() {
        assert!(assets_of(&index(3, &[(0, 1), (1, 2)])).is_empty());
        assert!(assets_of(&index(0, &[])).is_empty());
    }
}
