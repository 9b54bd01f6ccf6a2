//! One Newton step without cancellation.
//!
//! With the slopes of [`crate::block::Demand`] the linearised market is `M q = 0`: `q` holds new prices over old ones, the diagonal of
//! `M` is the sum of its column, everything else is minus a slope. So `M` transposed generates a Markov chain whose stationary
//! distribution is `q`, and the elimination of Grassmann, Taksar and Heyman (Operations Research 33, 1985) factors it with additions,
//! products and quotients of non-negative numbers alone. Each ratio comes out to nearly full *relative* precision however ill-scaled
//! the market is, and positive: prices 10^30 apart or assets tied to the rest by a single small offer cost no digits.
//!
//! Where very many assets trade with each other, iteration comes first ([`super::krylov`]).
//!
//! An *anchor* ties each asset to its old price with a weight: it keeps the chain irreducible when parts of a market do not trade
//! with each other at the moment, fixes the common scale, and shortens the step when its weights are large.

use super::krylov::{self, Iterated};
use crate::layout::{Layout, Sparse};
use crate::node;

/// Slope of an asset that nothing trades, relative to the largest: small enough for values 2^200 apart to count.
pub(super) const SILENT: f64 = 1e-150;

/// So many assets are eliminated together: their rows stay in the nearest cache while all others take them in.
const PANEL: usize = 32;
/// So many rows take in a panel at once, and so many columns of them.
const ROWS_AT_ONCE: usize = 4;
const TILE: usize = 128;
/// Eliminations on their own between two looks at the clock.
const LOOK_EVERY: usize = 64;

/// The search was to end before the system was solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped;

/// Solves `(M + diag(anchor)) q = right`, destroying `slopes` (laid out as `layout` says, its diagonal is not read), `anchor` and
/// `right`. With `right = anchor` the solution holds ratios of prices, all positive. Large systems ask `is_over` on the way.
pub(super) fn solve(
    layout: &Layout,
    slopes: &mut [f64],
    anchor: &mut [f64],
    right: &mut [f64],
    q: &mut [f64],
    is_over: &dyn Fn() -> bool,
) -> Result<(), Stopped> {
    solve_with(layout, slopes, anchor, right, q, is_over, solve_core)
}

/// The same by elimination alone.
#[cfg(test)]
pub(super) fn eliminate(
    layout: &Layout,
    slopes: &mut [f64],
    anchor: &mut [f64],
    right: &mut [f64],
    q: &mut [f64],
    is_over: &dyn Fn() -> bool,
) -> Result<(), Stopped> {
    solve_with(layout, slopes, anchor, right, q, is_over, eliminate_core)
}

fn solve_with(
    layout: &Layout,
    slopes: &mut [f64],
    anchor: &mut [f64],
    right: &mut [f64],
    q: &mut [f64],
    is_over: &dyn Fn() -> bool,
    core: OfCore,
) -> Result<(), Stopped> {
    match layout {
        Layout::Rows(_) => core(slopes, anchor, right, q, is_over),
        Layout::Sparse(sparse) => solve_sparse(sparse, slopes, anchor, right, q, is_over, core),
        Layout::Unordered => Err(Stopped),
    }
}

/// How the assets are solved that are kept by rows.
type OfCore = fn(&mut [f64], &mut [f64], &mut [f64], &mut [f64], &dyn Fn() -> bool) -> Result<(), Stopped>;

/// By iteration where they are many and it converges, else by elimination.
fn solve_core(
    slopes: &mut [f64],
    anchor: &mut [f64],
    right: &mut [f64],
    q: &mut [f64],
    is_over: &dyn Fn() -> bool,
) -> Result<(), Stopped> {
    if anchor.len() >= krylov::ASSETS_MIN && krylov::solve(slopes, anchor, right, q, is_over)? == Iterated::Solved {
        return Ok(());
    }
    eliminate_core(slopes, anchor, right, q, is_over)
}

fn eliminate_core(
    slopes: &mut [f64],
    anchor: &mut [f64],
    right: &mut [f64],
    q: &mut [f64],
    is_over: &dyn Fn() -> bool,
) -> Result<(), Stopped> {
    solve_rows(slopes, anchor, right, q, PANEL, is_over)
}

fn solve_rows(
    slopes: &mut [f64],
    anchor: &mut [f64],
    right: &mut [f64],
    q: &mut [f64],
    panel: usize,
    is_over: &dyn Fn() -> bool,
) -> Result<(), Stopped> {
    let n = anchor.len();
    let mut end = n;
    while end > 1 {
        if end < n && is_over() {
            return Err(Stopped);
        }
        let start = if n <= 3 * panel { 0 } else { end.saturating_sub(panel) };
        node::with_fastest(Panel { slopes, anchor, right, n, start, end });
        end = start;
    }
    if n > 0 {
        q[0] = if anchor[0] > 0.0 { right[0] / anchor[0] } else { 0.0 };
    }
    for asset in 1..n {
        let (before, rest) = q.split_at_mut(asset);
        let mut sum = right[asset];
        for (&slope, &ratio) in slopes[asset * n..asset * n + asset].iter().zip(&*before) {
            sum += slope * ratio;
        }
        rest[0] = sum;
    }
    Ok(())
}

/// Eliminates the assets from `end - 1` down to `start`. No sums of products across vector lanes but those written so, hence the
/// same result at any vector width. Each entry takes in the eliminated assets in their order, hence the same at any size of panels.
struct Panel<'a> {
    slopes: &'a mut [f64],
    anchor: &'a mut [f64],
    right: &'a mut [f64],
    n: usize,
    start: usize,
    end: usize,
}

impl node::Search for Panel<'_> {
    #[inline(always)]
    fn run<C: node::Counting>(self) {
        let Self { slopes, anchor, right, n, start, end } = self;
        for last in (start.max(1)..end).rev() {
            let (above, row) = slopes.split_at_mut(last * n);
            let row = &mut row[..last];
            let mut leaving = anchor[last];
            for line in above.chunks_exact(n) {
                leaving += line[last];
            }
            let per_leaving = if leaving > 0.0 { 1.0 / leaving } else { 0.0 };
            for slope in row.iter_mut() {
                // Where it overflows, zero times it stays zero.
                *slope = (*slope * per_leaving).min(f64::MAX);
            }
            right[last] *= per_leaving;
            let (anchor_last, right_last) = (anchor[last], right[last]);
            for (place, &by) in anchor[..last].iter_mut().zip(&*row) {
                *place += anchor_last * by;
            }
            let (outside, inside) = above.split_at_mut(start * n);
            let (right_outside, right_inside) = right[..last].split_at_mut(start);
            // Rows of the panel take in all of the row, the others what lies in the panel's columns.
            for (line, right_other) in inside.chunks_exact_mut(n).zip(right_inside) {
                let factor = line[last];
                if factor > 0.0 {
                    *right_other += factor * right_last;
                    for (slope, &by) in line[..last].iter_mut().zip(&*row) {
                        *slope += factor * by;
                    }
                }
            }
            for (line, right_other) in outside.chunks_exact_mut(n).zip(right_outside) {
                let factor = line[last];
                if factor > 0.0 {
                    *right_other += factor * right_last;
                    for (slope, &by) in line[start..last].iter_mut().zip(&row[start..]) {
                        *slope += factor * by;
                    }
                }
            }
        }
        if start > 0 {
            take_in(slopes, n, start, end);
        }
    }
}

/// The rows and columns before a panel take in its rows, four at a time: each entry is then fetched and stored once for four.
#[inline(always)]
fn take_in(slopes: &mut [f64], n: usize, start: usize, end: usize) {
    let (above, panel) = slopes.split_at_mut(start * n);
    for first in (0..start).step_by(TILE) {
        let columns = first..(first + TILE).min(start);
        let row = |place: usize| &panel[place * n..][columns.clone()];
        for lines in above.chunks_mut(ROWS_AT_ONCE * n) {
            let mut place = end - start;
            while place >= 4 {
                let [r0, r1, r2, r3] = [row(place - 1), row(place - 2), row(place - 3), row(place - 4)];
                for line in lines.chunks_exact_mut(n) {
                    let [f3, f2, f1, f0]: [f64; 4] = std::array::from_fn(|at| line[start + place - 4 + at]);
                    if f0 + f1 + f2 + f3 > 0.0 {
                        for ((((slope, &a), &b), &c), &d) in line[columns.clone()].iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
                            *slope = (((*slope + f0 * a) + f1 * b) + f2 * c) + f3 * d;
                        }
                    }
                }
                place -= 4;
            }
            for place in (0..place).rev() {
                for line in lines.chunks_exact_mut(n) {
                    let factor = line[start + place];
                    line[columns.clone()].iter_mut().zip(row(place)).for_each(|(slope, &by)| *slope += factor * by);
                }
            }
        }
    }
}

/// Assets with few neighbours first, one by one, then the core by rows.
fn solve_sparse(
    sparse: &Sparse,
    slopes: &mut [f64],
    anchor: &mut [f64],
    right: &mut [f64],
    q: &mut [f64],
    is_over: &dyn Fn() -> bool,
    of_core: OfCore,
) -> Result<(), Stopped> {
    let (entries, eliminated) = (sparse.later.len(), sparse.eliminated.len());
    let core_count = sparse.core.len();
    let (lists, core) = slopes.split_at_mut(2 * entries);
    let (rows, columns) = lists.split_at_mut(entries);
    let asset_of = |rank: u32| {
        sparse.eliminated.get(rank as usize).copied().unwrap_or_else(|| sparse.core[rank as usize - eliminated]) as usize
    };
    let (mut row, mut column) = (Vec::new(), Vec::new());
    for (place, &asset) in sparse.eliminated.iter().enumerate() {
        if place % LOOK_EVERY == LOOK_EVERY - 1 && is_over() {
            return Err(Stopped);
        }
        let (asset, range) = (asset as usize, sparse.first[place] as usize..sparse.first[place + 1] as usize);
        let later = &sparse.later[range.clone()];
        let leaving = anchor[asset] + columns[range.clone()].iter().sum::<f64>();
        let per_leaving = if leaving > 0.0 { 1.0 / leaving } else { 0.0 };
        rows[range.clone()].iter_mut().for_each(|slope| *slope *= per_leaving);
        right[asset] *= per_leaving;
        row.clear();
        row.extend_from_slice(&rows[range.clone()]);
        column.clear();
        column.extend_from_slice(&columns[range]);
        for ((&other, &by), &factor) in later.iter().zip(&row).zip(&column) {
            let other = asset_of(other);
            anchor[other] += anchor[asset] * by;
            right[other] += factor * right[asset];
        }
        let in_core = later.partition_point(|&rank| (rank as usize) < eliminated);
        for (at, &other) in later[..in_core].iter().enumerate() {
            let begun = sparse.first[other as usize] as usize;
            let theirs = &sparse.later[begun..sparse.first[other as usize + 1] as usize];
            let mut entry = 0;
            for (next, &third) in later.iter().enumerate().skip(at + 1) {
                while theirs[entry] != third {
                    entry += 1;
                }
                rows[begun + entry] += column[at] * row[next];
                columns[begun + entry] += column[next] * row[at];
            }
        }
        let in_core = in_core..later.len();
        for at in in_core.clone() {
            let line = &mut core[(later[at] as usize - eliminated) * core_count..][..core_count];
            for next in in_core.clone() {
                line[later[next] as usize - eliminated] += column[at] * row[next];
            }
        }
    }
    let in_core = |values: &[f64]| sparse.core.iter().map(|&asset| values[asset as usize]).collect::<Vec<f64>>();
    let (mut core_anchor, mut core_right, mut core_q) = (in_core(anchor), in_core(right), vec![0.0; core_count]);
    of_core(core, &mut core_anchor, &mut core_right, &mut core_q, is_over)?;
    sparse.core.iter().zip(core_q).for_each(|(&asset, ratio)| q[asset as usize] = ratio);
    for (place, &asset) in sparse.eliminated.iter().enumerate().rev() {
        let range = sparse.first[place] as usize..sparse.first[place + 1] as usize;
        let terms = sparse.later[range.clone()].iter().zip(&rows[range]);
        q[asset as usize] = right[asset as usize] + terms.map(|(&other, slope)| slope * q[asset_of(other)]).sum::<f64>();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::DemandIndex;
    use crate::random::Random;
    use crate::synthetic::Offer;

    /// In panels or one by one, by rows or with neighbours first: the same ratios, to the last bit where the order is the same.
    #[test]
    fn large_systems_are_solved_as_small_ones_are() {
        let mut random = Random::new(2);
        for (n, share) in [(200, 1.0), (97, 0.3), (300, 0.01), (500, 0.004)] {
            let mut pairs: Vec<(usize, usize)> = (0..n).map(|asset| (asset, (asset + 1) % n)).collect();
            for a in 0..n {
                pairs.extend((0..n).filter(|&b| b != a && random.unit() < share).map(|b| (a, b)));
            }
            pairs.sort_unstable();
            pairs.dedup();
            let offers: Vec<Offer> = pairs.iter().map(|&(sell, buy)| Offer { sell, buy, limit: 1.0, amount: 1.0 }).collect();
            let index = DemandIndex::from_offers(n, &offers, Vec::new()).unwrap();
            let layout = Layout::of(n, &index.books, &[], &|| false);
            assert_eq!(matches!(layout, Layout::Sparse(_)), share < 0.1, "{n}");
            let (mut rows, mut places) = (vec![0.0; n * n], vec![0.0; layout.len()]);
            for (number, book) in index.books.iter().enumerate() {
                let (sell, buy) = (book.sell as usize, book.buy as usize);
                let slots = layout.book_slots(number, sell, buy);
                for (row, slot) in [sell * n + buy, buy * n + sell].into_iter().zip(slots) {
                    let slope = random.uniform(-40.0, 40.0).exp();
                    rows[row] += slope;
                    places[slot] += slope;
                }
            }
            let anchor: Vec<f64> = (0..n).map(|_| random.uniform(-3.0, 3.0).exp()).collect();
            let solved = |layout: &Layout, mut slopes: Vec<f64>, panel: usize| {
                let (mut anchor, mut right, mut q) = (anchor.clone(), anchor.clone(), vec![0.0; n]);
                match layout {
                    Layout::Rows(_) => solve_rows(&mut slopes, &mut anchor, &mut right, &mut q, panel, &|| false),
                    Layout::Sparse(_) | Layout::Unordered => {
                        eliminate(layout, &mut slopes, &mut anchor, &mut right, &mut q, &|| false)
                    }
                }
                .unwrap();
                q
            };
            let one_by_one = solved(&Layout::Rows(n), rows.clone(), n);
            assert_eq!(one_by_one, solved(&Layout::Rows(n), rows, PANEL), "{n}");
            for (one, other) in one_by_one.iter().zip(solved(&layout, places, PANEL)) {
                assert!((one / other - 1.0).abs() < 1e-12 * n as f64, "{n}: {one} {other}");
            }
        }
    }

    #[test]
    fn a_large_system_ends_when_asked() {
        let n = 400;
        let (mut slopes, mut anchor, mut right, mut q) = (vec![1.0; n * n], vec![1.0; n], vec![1.0; n], vec![0.0; n]);
        right[0] = 2.0;
        let solved = solve(&Layout::Rows(n), &mut slopes, &mut anchor, &mut right, &mut q, &|| true);
        assert_eq!(solved, Err(Stopped));
    }

    #[test]
    fn the_ratios_solve_the_system_at_any_scale() {
        let mut random = Random::new(1);
        for n in [1, 2, 3, 10, 33] {
            // Rates over sixty orders of magnitude, a third of them zero.
            let slopes: Vec<f64> =
                (0..n * n).map(|_| if random.below(3) == 0 { 0.0 } else { random.uniform(-70.0, 70.0).exp() }).collect();
            let anchor: Vec<f64> = (0..n).map(|_| random.uniform(-3.0, 3.0).exp()).collect();
            let (mut s, mut a, mut right, mut q) = (slopes.clone(), anchor.clone(), anchor.clone(), vec![0.0; n]);
            solve(&Layout::Rows(n), &mut s, &mut a, &mut right, &mut q, &|| false).unwrap();
            for row in 0..n {
                let off = |r: usize, c: usize| if r == c { 0.0 } else { slopes[r * n + c] };
                let leaving = anchor[row] + (0..n).map(|other| off(other, row)).sum::<f64>();
                let coming = anchor[row] + (0..n).map(|other| off(row, other) * q[other]).sum::<f64>();
                assert!((leaving * q[row] / coming - 1.0).abs() < 1e-13 * n as f64, "{n} {row}");
            }
        }
    }
}
