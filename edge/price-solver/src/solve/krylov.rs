//! The Newton step of a large block by iteration: generalised minimal residuals (Saad, Schultz, SIAM J. Sci. Stat. Comput. 7, 1986).
//!
//! Elimination takes time by the cube of the number of assets, a product of the matrix with a vector by its square. Where many assets
//! trade with each other, ten to forty products leave a residual of 10^-10. Each equation is divided by its diagonal first, so that an
//! asset of which little trades is solved as well as the others. Where the residual does not fall fast enough, as in a market of
//! scales that differ by many powers of ten, [`super::markov`] eliminates.

use super::markov::Stopped;
use crate::node;

/// Below so many assets elimination is as fast.
pub(super) const ASSETS_MIN: usize = 256;
/// Products with vectors at most: so many take less time than elimination of as few assets as that.
const STEPS_MAX: usize = 60;
/// The residual is to be at most this share of the first one.
const RESIDUAL: f64 = 1e-10;
/// A residual of this share of the solution is rounding alone.
const ROUNDING: f64 = 1e-14;
/// After so many steps, the residual must be on its way to be small enough in [`STEPS_MAX`].
const STEPS_OF_HOPE: usize = 20;
/// Sums are kept apart for so many neighbours, so that vectors of any width give the same result.
const LANES: usize = 8;
/// Rows that are multiplied at once, so that the vector is fetched once for all of them.
const ROWS: usize = 4;

/// Whether the iteration found a solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Iterated {
    Solved,
    /// Its residual does not fall, or prices would not be positive: eliminate.
    Failed,
}

/// Solves `(M + diag(anchor)) q = right` of `super::markov` by iteration. Sets the diagonal of `slopes` to zero and changes nothing
/// else of it.
pub(super) fn solve(
    slopes: &mut [f64],
    anchor: &[f64],
    right: &[f64],
    q: &mut [f64],
    is_over: &dyn Fn() -> bool,
) -> Result<Iterated, Stopped> {
    let n = anchor.len();
    (0..n).for_each(|asset| slopes[asset * n + asset] = 0.0);
    let mut leaving = anchor.to_vec();
    for row in slopes.chunks_exact(n) {
        leaving.iter_mut().zip(row).for_each(|(leaving, slope)| *leaving += slope);
    }
    let per_leaving: Vec<f64> = leaving.iter().map(|&leaving| if leaving > 0.0 { 1.0 / leaving } else { 0.0 }).collect();
    let system = System { slopes, per_leaving: &per_leaving };
    // Ratios of prices are near one. Steps of their logarithms are near zero, and add up to none.
    let are_ratios = right.iter().all(|&right| right >= 0.0);
    let first = if are_ratios { right.iter().sum::<f64>() / anchor.iter().sum::<f64>() } else { 0.0 };
    if !first.is_finite() {
        return Ok(Iterated::Failed);
    }
    q.fill(first);
    let mut residual = vec![0.0; n];
    let begun = system.residual(right, q, &mut residual);
    let enough = |q: &[f64]| {
        let most = q.iter().fold(0.0_f64, |most, q| most.max(q.abs()));
        (RESIDUAL * begun).max(ROUNDING * most * (n as f64).sqrt())
    };
    if begun > enough(q) {
        let Some(step) = system.step(&residual, begun, enough(q), is_over)? else { return Ok(Iterated::Failed) };
        q.iter_mut().zip(step).for_each(|(q, step)| *q += step);
        let left = system.residual(right, q, &mut residual);
        // The recurrence's own residual may be smaller than the true one by rounding.
        if left.is_nan() || left > 10.0 * enough(q) {
            return Ok(Iterated::Failed);
        }
    }
    let is_sound = q.iter().all(|q| q.is_finite() && (!are_ratios || *q > 0.0));
    Ok(if is_sound { Iterated::Solved } else { Iterated::Failed })
}

/// The equations, each divided by its diagonal: `q_i - sum_j slopes_ij q_j / leaving_i = right_i / leaving_i`.
struct System<'a> {
    slopes: &'a [f64],
    per_leaving: &'a [f64],
}

impl System<'_> {
    fn apply(&self, vector: &[f64], into: &mut [f64]) {
        node::with_fastest(Product { slopes: self.slopes, vector, into });
        for ((into, vector), per_leaving) in into.iter_mut().zip(vector).zip(self.per_leaving) {
            *into = vector - *into * per_leaving;
        }
    }

    /// What is missing at `q`, and its length.
    fn residual(&self, right: &[f64], q: &[f64], into: &mut [f64]) -> f64 {
        self.apply(q, into);
        for ((into, right), per_leaving) in into.iter_mut().zip(right).zip(self.per_leaving) {
            *into = right * per_leaving - *into;
        }
        dot(into, into).sqrt()
    }

    /// What to add so that of this residual no more than `enough` is left; `None` where the steps do not get there.
    fn step(&self, residual: &[f64], length: f64, enough: f64, is_over: &dyn Fn() -> bool) -> Result<Option<Vec<f64>>, Stopped> {
        let mut basis = vec![residual.iter().map(|value| value / length).collect::<Vec<f64>>()];
        // Columns of the triangle, rotations that make it one, and the rotated right side.
        let mut triangle: Vec<Vec<f64>> = Vec::new();
        let (mut rotations, mut turned) = (Vec::new(), vec![length]);
        loop {
            let at = triangle.len();
            let left = turned[at].abs();
            if left <= enough {
                break;
            }
            let is_hopeless = at == STEPS_OF_HOPE && (left / length).powf(STEPS_MAX as f64 / at as f64) * length > enough;
            if at == STEPS_MAX || is_hopeless || !left.is_finite() {
                return Ok(None);
            }
            if is_over() {
                return Err(Stopped);
            }
            let mut next = vec![0.0; residual.len()];
            self.apply(&basis[at], &mut next);
            let mut column: Vec<f64> = Vec::with_capacity(at + 2);
            for vector in &basis {
                let along = dot(&next, vector);
                next.iter_mut().zip(vector).for_each(|(next, vector)| *next -= along * vector);
                column.push(along);
            }
            let rest = dot(&next, &next).sqrt();
            for (place, &(cosine, sine)) in rotations.iter().enumerate() {
                let (upper, lower) = (column[place], column[place + 1]);
                (column[place], column[place + 1]) = (cosine * upper + sine * lower, cosine * lower - sine * upper);
            }
            let diagonal = column[at].hypot(rest);
            if diagonal == 0.0 {
                return Ok(None);
            }
            let (cosine, sine) = (column[at] / diagonal, rest / diagonal);
            column[at] = diagonal;
            rotations.push((cosine, sine));
            triangle.push(column);
            turned.push(-sine * turned[at]);
            turned[at] *= cosine;
            if rest > 0.0 {
                next.iter_mut().for_each(|value| *value /= rest);
            }
            basis.push(next);
        }
        let steps = triangle.len();
        let mut shares = vec![0.0; steps];
        for row in (0..steps).rev() {
            let known: f64 = (row + 1..steps).map(|column| triangle[column][row] * shares[column]).sum();
            shares[row] = (turned[row] - known) / triangle[row][row];
        }
        let mut step = vec![0.0; residual.len()];
        for (share, vector) in shares.iter().zip(&basis) {
            step.iter_mut().zip(vector).for_each(|(step, vector)| *step += share * vector);
        }
        Ok(Some(step))
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// The matrix times a vector.
struct Product<'a> {
    slopes: &'a [f64],
    vector: &'a [f64],
    into: &'a mut [f64],
}

impl node::Search for Product<'_> {
    #[inline(always)]
    fn run<C: node::Counting>(self) {
        let Self { slopes, vector, into } = self;
        let n = vector.len();
        let (chunks, rest) = vector.as_chunks::<LANES>();
        let whole = n - rest.len();
        for (rows, into) in slopes.chunks(ROWS * n).zip(into.chunks_mut(ROWS)) {
            let mut lanes = [[0.0; LANES]; ROWS];
            if into.len() == ROWS {
                let row = |at: usize| rows[at * n..][..whole].as_chunks::<LANES>().0;
                let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
                for ((((v, r0), r1), r2), r3) in chunks.iter().zip(r0).zip(r1).zip(r2).zip(r3) {
                    for lane in 0..LANES {
                        lanes[0][lane] += r0[lane] * v[lane];
                        lanes[1][lane] += r1[lane] * v[lane];
                        lanes[2][lane] += r2[lane] * v[lane];
                        lanes[3][lane] += r3[lane] * v[lane];
                    }
                }
            } else {
                for (row, lanes) in rows.chunks_exact(n).zip(&mut lanes) {
                    for (v, row) in chunks.iter().zip(row[..whole].as_chunks::<LANES>().0) {
                        (0..LANES).for_each(|lane| lanes[lane] += row[lane] * v[lane]);
                    }
                }
            }
            for ((into, lanes), row) in into.iter_mut().zip(&lanes).zip(rows.chunks_exact(n)) {
                *into = lanes.iter().sum::<f64>() + row[whole..].iter().zip(rest).map(|(slope, value)| slope * value).sum::<f64>();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::random::Random;
    use crate::solve::markov;

    const N: usize = 301;

    /// Slopes between all assets, over so many powers of e.
    fn slopes(random: &mut Random, spread: f64) -> Vec<f64> {
        (0..N * N).map(|_| random.uniform(-spread, spread).exp()).collect()
    }

    fn eliminated(slopes: &[f64], anchor: &[f64], right: &[f64]) -> Vec<f64> {
        let mut q = vec![0.0; N];
        let (mut slopes, mut anchor, mut right) = (slopes.to_vec(), anchor.to_vec(), right.to_vec());
        markov::eliminate(&Layout::Rows(N), &mut slopes, &mut anchor, &mut right, &mut q, &|| false).unwrap();
        q
    }

    #[test]
    fn ratios_and_steps_are_those_of_elimination() {
        let mut random = Random::new(1);
        for spread in [0.1, 2.0, 6.0] {
            let slopes = slopes(&mut random, spread);
            let anchor: Vec<f64> = (0..N).map(|_| 1e-3 * random.uniform(0.5, 2.0)).collect();
            let mut q = vec![0.0; N];
            assert_eq!(solve(&mut slopes.clone(), &anchor, &anchor, &mut q, &|| false), Ok(Iterated::Solved), "{spread}");
            let expected = eliminated(&slopes, &anchor, &anchor);
            // The common scale is free.
            let scale = q[0] / expected[0];
            assert!(q.iter().zip(&expected).all(|(q, expected)| (q / (expected * scale) - 1.0).abs() < 1e-6), "{spread}");

            let mut right: Vec<f64> = (0..N).map(|_| random.uniform(-1.0, 1.0)).collect();
            right[0] -= right.iter().sum::<f64>();
            assert_eq!(solve(&mut slopes.clone(), &anchor, &right, &mut q, &|| false), Ok(Iterated::Solved), "{spread}");
            let expected = eliminated(&slopes, &anchor, &right);
            let (shift, most) = (q[0] - expected[0], expected.iter().fold(0.0_f64, |most, q| most.max((q - expected[0]).abs())));
            let worst =
                q.iter().zip(&expected).fold(0.0_f64, |worst, (q, expected)| worst.max((q - shift - expected).abs() / most));
            assert!(worst < 1e-5, "{spread}: {worst}");
        }
    }

    #[test]
    fn what_does_not_converge_is_left_to_elimination() {
        // A ring of assets: what one asset lacks reaches those on the other side after half as many steps as there are assets.
        let mut slopes = vec![0.0; N * N];
        let mut random = Random::new(2);
        for asset in 0..N {
            let next = (asset + 1) % N;
            slopes[asset * N + next] = random.uniform(-20.0, 20.0).exp();
            slopes[next * N + asset] = slopes[asset * N + next];
        }
        let mut right: Vec<f64> = (0..N).map(|_| random.uniform(-1.0, 1.0)).collect();
        right[0] -= right.iter().sum::<f64>();
        let mut q = vec![0.0; N];
        assert_eq!(solve(&mut slopes, &[1e-9; N], &right, &mut q, &|| false), Ok(Iterated::Failed));
    }

    #[test]
    fn it_ends_when_asked() {
        let mut random = Random::new(3);
        let (mut slopes, mut right) = (slopes(&mut random, 3.0), vec![1.0; N]);
        right[0] = 1.0 - N as f64;
        assert_eq!(solve(&mut slopes, &[1e-9; N], &right, &mut vec![0.0; N], &|| true), Err(Stopped));
    }
}
