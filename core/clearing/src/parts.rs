//! Which assets can trade with each other at all: the parts of a market.

use crate::market::BatchMarket;
use crate::offer::{AssetIndex, PoolSide};

/// The parts of a market: the largest sets of assets in which each leads to each other by offers, from the asset sold to the asset bought.
///
/// What offers buy of an asset others have to sell, so value moves in cycles, and a cycle stays within a part. An offer between two parts, or
/// of an asset that is in none, finds no counterpart at any prices. Each part is a market of its own: what an asset of one is worth in an
/// asset of another nothing that trades can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    of_asset: Vec<Option<u16>>,
    count: usize,
}

impl Parts {
    /// How many parts there are; an asset by itself is none.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The part of an asset, from 0 in the order of the first asset of each; `None` when it can not trade.
    ///
    /// # Panics
    /// When the asset is not one of the market's.
    #[must_use]
    pub fn of(&self, asset: AssetIndex) -> Option<usize> {
        self.of_asset[asset.index()].map(usize::from)
    }

    /// The part of both assets, if they are in one.
    #[must_use]
    pub fn of_both(&self, a: AssetIndex, b: AssetIndex) -> Option<usize> {
        self.of(a).filter(|part| self.of(b) == Some(*part))
    }

    /// The assets of a part, in ascending order.
    pub fn assets(&self, part: usize) -> impl Iterator<Item = AssetIndex> {
        (0..).map(AssetIndex).zip(&self.of_asset).filter(move |(_, of)| of.map(usize::from) == Some(part)).map(|(asset, _)| asset)
    }
}

impl BatchMarket {
    /// Its parts: O(assets + pairs). Pools lead both ways.
    #[must_use]
    pub fn parts(&self) -> Parts {
        let mut edges: Vec<(u16, u16)> = self.books().iter().map(|book| (book.pair().sell.0, book.pair().buy.0)).collect();
        if !self.pools().is_empty() {
            let sides = [PoolSide::First, PoolSide::Second];
            edges.extend(self.pools().iter().flat_map(|pool| sides.map(|side| (pool.pair(side).sell.0, pool.pair(side).buy.0))));
            edges.sort_unstable();
        }
        parts(self.asset_count(), &edges)
    }
}

/// Of edges in ascending order. Tarjan (1972), without recursion.
fn parts(asset_count: usize, edges: &[(u16, u16)]) -> Parts {
    let mut first = vec![0; asset_count + 1];
    for &(from, _) in edges {
        first[usize::from(from) + 1] += 1;
    }
    for asset in 0..asset_count {
        first[asset + 1] += first[asset];
    }
    // When an asset was reached, and the earliest of those still open that it leads to.
    let mut reached: Vec<Option<usize>> = vec![None; asset_count];
    let mut earliest = vec![0; asset_count];
    let mut is_done = vec![false; asset_count];
    // The first asset of the component, for those that are not alone in theirs.
    let mut leader: Vec<Option<usize>> = vec![None; asset_count];
    let (mut open, mut path) = (Vec::new(), Vec::new());
    let mut clock = 0;
    for start in 0..asset_count {
        if reached[start].is_none() {
            path.push((start, first[start]));
        }
        while let Some((asset, edge)) = path.last_mut() {
            let asset = *asset;
            if reached[asset].is_none() {
                (reached[asset], earliest[asset]) = (Some(clock), clock);
                clock += 1;
                open.push(asset);
            }
            if *edge < first[asset + 1] {
                let to = usize::from(edges[*edge].1);
                *edge += 1;
                match reached[to] {
                    None => path.push((to, first[to])),
                    Some(at) if !is_done[to] => earliest[asset] = earliest[asset].min(at),
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                earliest[*before] = earliest[*before].min(earliest[asset]);
            }
            if reached[asset] == Some(earliest[asset]) {
                let from = open.iter().rposition(|other| *other == asset).expect("an asset is open until its component is done");
                let component = open.split_off(from);
                let lowest = component.iter().min().copied();
                for &member in &component {
                    is_done[member] = true;
                    leader[member] = lowest.filter(|_| component.len() > 1);
                }
            }
        }
    }
    let mut number_of = vec![None; asset_count];
    let mut count = 0;
    let numbered = leader.iter().map(|leader| {
        let number = &mut number_of[(*leader)?];
        if number.is_none() {
            *number = Some(count);
            count += 1;
        }
        *number
    });
    let of_asset = numbered.collect();
    Parts { of_asset, count: usize::from(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What leads to what, by Warshall's closure.
    fn naive(asset_count: usize, edges: &[(u16, u16)]) -> Parts {
        let mut leads = vec![vec![false; asset_count]; asset_count];
        edges.iter().for_each(|&(from, to)| leads[usize::from(from)][usize::from(to)] = true);
        for via in 0..asset_count {
            for from in 0..asset_count {
                for to in 0..asset_count {
                    leads[from][to] |= leads[from][via] && leads[via][to];
                }
            }
        }
        let mut of_asset: Vec<Option<u16>> = vec![None; asset_count];
        let mut count = 0;
        for asset in 0..asset_count {
            let is_with = |other: &usize| leads[asset][*other] && leads[*other][asset];
            of_asset[asset] = match (0..asset).find(is_with) {
                Some(before) => of_asset[before],
                None if (asset + 1..asset_count).any(|other| is_with(&other)) => {
                    count += 1;
                    Some(count - 1)
                }
                None => None,
            };
        }
        Parts { of_asset, count: count.into() }
    }

    #[test]
    fn parts_are_those_of_the_closure() {
        let mut state = 1_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..4_000 {
            let asset_count = 1 + round % 9;
            let edge_count = below(2 * asset_count as u64 + 1);
            let mut edges: Vec<(u16, u16)> =
                (0..edge_count).map(|_| (below(asset_count as u64) as u16, below(asset_count as u64) as u16)).collect();
            edges.retain(|(from, to)| from != to);
            edges.sort_unstable();
            edges.dedup();
            let found = parts(asset_count, &edges);
            assert_eq!(found, naive(asset_count, &edges), "{edges:?}");
            let members: usize = (0..found.count()).map(|part| found.assets(part).count()).sum();
            assert_eq!(members, found.of_asset.iter().flatten().count());
            seen.insert(found.count());
        }
        assert!(seen.contains(&0) && seen.contains(&1) && seen.contains(&3), "{seen:?}");
    }
}
