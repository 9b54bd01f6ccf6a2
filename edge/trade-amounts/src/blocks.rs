//! The blocks of a market: parts that share at most one asset with each other.
//!
//! In graph words the biconnected components, by one depth-first search (Hopcroft and Tarjan 1973). What flows round in a market flows round
//! within its blocks, so each can be planned alone: a thousand stocks that trade in one currency are a thousand blocks of two assets. It is the
//! structure of appendix E of SPEEDEX (2023), found without being told.

/// How far the search is with an asset.
struct Visit {
    node: usize,
    /// The lane by which the search came here.
    lane: Option<usize>,
    /// Its next neighbour.
    next: usize,
}

/// The lanes of each block, in ascending order, of the lanes that trade.
pub(crate) fn blocks(node_count: usize, lanes: &[(u32, u32)], is_trading: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let (starts, neighbours) = neighbours(node_count, lanes, &is_trading);
    let mut depth = vec![0_u32; node_count];
    // The least depth that can be reached from what was found below an asset, by one lane up.
    let mut low = vec![0_u32; node_count];
    let mut is_open = vec![true; lanes.len()];
    let mut open_lanes = Vec::new();
    let mut visits: Vec<Visit> = Vec::new();
    let mut found = Vec::new();
    for root in 0..node_count {
        if depth[root] == 0 {
            (depth[root], low[root]) = (1, 1);
            visits.push(Visit { node: root, lane: None, next: starts[root] });
        }
        while let Some(visit) = visits.last_mut() {
            let node = visit.node;
            if visit.next < starts[node + 1] {
                let (lane, to) = neighbours[visit.next];
                visit.next += 1;
                if !std::mem::replace(&mut is_open[lane], false) {
                    continue;
                }
                open_lanes.push(lane);
                if depth[to] > 0 {
                    low[node] = low[node].min(depth[to]);
                } else {
                    (depth[to], low[to]) = (depth[node] + 1, depth[node] + 1);
                    visits.push(Visit { node: to, lane: Some(lane), next: starts[to] });
                }
                continue;
            }
            let came_by = visit.lane;
            visits.pop();
            let Some((came_by, above)) = came_by.zip(visits.last().map(|visit| visit.node)) else { continue };
            low[above] = low[above].min(low[node]);
            if low[node] >= depth[above] {
                // Nothing below leads past the asset above: what was found since is a block.
                let start =
                    open_lanes.iter().rposition(|&lane| lane == came_by).expect("the lane was opened and is in no block yet");
                let mut block = open_lanes.split_off(start);
                block.sort_unstable();
                found.push(block);
            }
        }
    }
    found
}

/// The lanes at each asset and where they lead, those of asset `a` from `starts[a]` to `starts[a + 1]`.
fn neighbours(node_count: usize, lanes: &[(u32, u32)], is_trading: &impl Fn(usize) -> bool) -> (Vec<usize>, Vec<(usize, usize)>) {
    let trading = || lanes.iter().enumerate().filter(|(lane, _)| is_trading(*lane));
    let mut starts = vec![0; node_count + 1];
    for (_, &(a, b)) in trading() {
        starts[a as usize + 1] += 1;
        starts[b as usize + 1] += 1;
    }
    for node in 0..node_count {
        starts[node + 1] += starts[node];
    }
    let mut places = starts.clone();
    let mut neighbours = vec![(0, 0); starts[node_count]];
    for (lane, &(a, b)) in trading() {
        for (node, to) in [(a, b), (b, a)] {
            neighbours[places[node as usize]] = (lane, to as usize);
            places[node as usize] += 1;
        }
    }
    (starts, neighbours)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_currency_joins_its_stocks() {
        // A triangle 0 1 2, both ways between 0 and 3, a way that does not trade, a way out of 3 to 4 that nothing leads back from.
        let lanes = [(0, 1), (1, 2), (2, 0), (0, 3), (3, 0), (3, 1), (3, 4)];
        let mut found = blocks(6, &lanes, |lane| lane != 5);
        found.sort();
        assert_eq!(found, [vec![0, 1, 2], vec![3, 4], vec![6]]);
        assert_eq!(blocks(0, &[], |_| true), Vec::<Vec<usize>>::new());
    }

    /// Whether two lanes share a block, by the definition: they are one, or no asset's absence parts them.
    fn same_block(node_count: u32, lanes: &[(u32, u32)], a: usize, b: usize) -> bool {
        let reach = |without: u32| {
            let mut group: Vec<u32> = (0..node_count).collect();
            for _ in 0..node_count {
                for &(x, y) in lanes.iter().filter(|(x, y)| *x != without && *y != without) {
                    let least = group[x as usize].min(group[y as usize]);
                    (group[x as usize], group[y as usize]) = (least, least);
                }
            }
            group
        };
        let end_without = |lane: usize, without: u32| if lanes[lane].0 == without { lanes[lane].1 } else { lanes[lane].0 };
        let ends = |lane: usize| (lanes[lane].0.min(lanes[lane].1), lanes[lane].0.max(lanes[lane].1));
        ends(a) == ends(b)
            || (0..=node_count).all(|without| {
                let group = reach(without);
                group[end_without(a, without) as usize] == group[end_without(b, without) as usize]
            })
    }

    proptest! {
        #[test]
        fn equals_the_definition(raw in prop::collection::vec((0..7_u32, 1..7_u32), 0..14)) {
            let lanes: Vec<(u32, u32)> = raw.into_iter().map(|(from, step)| (from, (from + step) % 7)).collect();
            let found = blocks(7, &lanes, |_| true);
            let mut block_of = vec![usize::MAX; lanes.len()];
            for (place, block) in found.iter().enumerate() {
                for &lane in block {
                    prop_assert_eq!(std::mem::replace(&mut block_of[lane], place), usize::MAX);
                }
            }
            for a in 0..lanes.len() {
                for b in 0..a {
                    prop_assert_eq!(block_of[a] == block_of[b], same_block(7, &lanes, a, b), "{} {} of {:?}", a, b, lanes);
                }
            }
        }
    }
}
