//! One Newton step without cancellation.
//!
//! With the slopes of [`crate::block::Demand`] the linearised market is `M q = 0`: `q` holds new prices over old ones, the diagonal of
//! `M` is the sum of its column, everything else is minus a slope. So `M` transposed generates a Markov chain whose stationary
//! distribution is `q`, and the elimination of Grassmann, Taksar and Heyman (Operations Research 33, 1985) factors it with additions,
//! products and quotients of non-negative numbers alone. Each ratio comes out to nearly full *relative* precision however ill-scaled
//! the market is, and positive: prices 10^30 apart or assets tied to the rest by a single small offer cost no digits.
//!
//! An *anchor* ties each asset to its old price with a weight: it keeps the chain irreducible when parts of a market do not trade
//! with each other at the moment, fixes the common scale, and shortens the step when its weights are large.

use crate::node;

/// Solves `(M + diag(anchor)) q = right`, destroying `slopes` (`n * n`, by rows, its diagonal is not read), `anchor` and `right`.
/// With `right = anchor` the solution holds ratios of prices, all positive.
pub(super) fn solve(slopes: &mut [f64], anchor: &mut [f64], right: &mut [f64], q: &mut [f64]) {
    node::with_fastest(Elimination { slopes, anchor, right, q });
}

/// The work of [`solve`]: no sums of products across vector lanes but those written so, hence the same result at any vector width.
struct Elimination<'a> {
    slopes: &'a mut [f64],
    anchor: &'a mut [f64],
    right: &'a mut [f64],
    q: &'a mut [f64],
}

impl node::Search for Elimination<'_> {
    #[inline(always)]
    fn run<C: node::Counting>(self) {
        let Self { slopes, anchor, right, q } = self;
        let n = anchor.len();
        for last in (1..n).rev() {
            let (above, row) = slopes.split_at_mut(last * n);
            let row = &mut row[..last];
            let mut leaving = anchor[last];
            for line in above.chunks_exact(n) {
                leaving += line[last];
            }
            let per_leaving = if leaving > 0.0 { 1.0 / leaving } else { 0.0 };
            for slope in row.iter_mut() {
                *slope *= per_leaving;
            }
            right[last] *= per_leaving;
            let (anchor_last, right_last) = (anchor[last], right[last]);
            for (place, &by) in anchor[..last].iter_mut().zip(&*row) {
                *place += anchor_last * by;
            }
            for (line, right_other) in above.chunks_exact_mut(n).zip(&mut right[..last]) {
                let factor = line[last];
                if factor > 0.0 {
                    *right_other += factor * right_last;
                    for (slope, &by) in line[..last].iter_mut().zip(&*row) {
                        *slope += factor * by;
                    }
                }
            }
        }
        q[0] = if anchor[0] > 0.0 { right[0] / anchor[0] } else { 0.0 };
        for asset in 1..n {
            let (before, rest) = q.split_at_mut(asset);
            let mut sum = right[asset];
            for (&slope, &ratio) in slopes[asset * n..asset * n + asset].iter().zip(&*before) {
                sum += slope * ratio;
            }
            rest[0] = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_ratios_solve_the_system_at_any_scale() {
        let mut random = Random::new(1);
        for n in [1, 2, 3, 10, 33] {
            // Rates over sixty orders of magnitude, a third of them zero.
            let slopes: Vec<f64> =
                (0..n * n).map(|_| if random.below(3) == 0 { 0.0 } else { random.uniform(-70.0, 70.0).exp() }).collect();
            let anchor: Vec<f64> = (0..n).map(|_| random.uniform(-3.0, 3.0).exp()).collect();
            let (mut s, mut a, mut right, mut q) = (slopes.clone(), anchor.clone(), anchor.clone(), vec![0.0; n]);
            solve(&mut s, &mut a, &mut right, &mut q);
            for row in 0..n {
                let off = |r: usize, c: usize| if r == c { 0.0 } else { slopes[r * n + c] };
                let leaving = anchor[row] + (0..n).map(|other| off(other, row)).sum::<f64>();
                let coming = anchor[row] + (0..n).map(|other| off(row, other) * q[other]).sum::<f64>();
                assert!((leaving * q[row] / coming - 1.0).abs() < 1e-13 * n as f64, "{n} {row}");
            }
        }
    }
}
