//! Potentials of nodes from differences along edges: weighted least squares on a graph.
#![allow(clippy::float_arithmetic, reason = "an estimator: nothing of it is replicated")]

/// `potential[to] - potential[from]` was measured as `difference`, with a weight of one over its variance. A weight of 0 is no edge.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Difference {
    /// The node that is taken away.
    pub from: usize,
    /// The node that it is taken from.
    pub to: usize,
    /// What was measured.
    pub difference: f64,
    /// How much it counts.
    pub weight: f64,
}

/// Rounds of the conjugate gradient at most: far more than an expander needs, enough for any graph of a few hundred nodes.
const ROUNDS_MAX: usize = 500;

/// The potentials that make `sum of weight * (potential[to] - potential[from] - difference)^2` least, with `potential[fixed] = 0`, to
/// a relative error of about `tolerance`. A node that no edges join to `fixed` gets some number.
///
/// Conjugate gradient with Jacobi's preconditioner on the graph's Laplacian. That is singular, but the right side is in its range, and
/// whatever the result is shifted by is taken off with the fixed node's potential.
pub fn solve(node_count: usize, fixed: usize, edges: &[Difference], tolerance: f64) -> Vec<f64> {
    let mut diagonal = vec![0.0; node_count];
    let mut residual = vec![0.0; node_count];
    for edge in edges {
        diagonal[edge.from] += edge.weight;
        diagonal[edge.to] += edge.weight;
        residual[edge.to] += edge.weight * edge.difference;
        residual[edge.from] -= edge.weight * edge.difference;
    }
    let scale: Vec<f64> = diagonal.iter().map(|&sum| if sum > 0.0 { 1.0 / sum } else { 0.0 }).collect();
    let mut potential = vec![0.0; node_count];
    let mut direction: Vec<f64> = residual.iter().zip(&scale).map(|(r, s)| r * s).collect();
    let mut energy = dot(&residual, &direction);
    let enough = energy * tolerance * tolerance;
    let mut image = vec![0.0; node_count];
    for _ in 0..ROUNDS_MAX {
        if energy <= enough || energy <= f64::MIN_POSITIVE {
            break;
        }
        apply(&diagonal, edges, &direction, &mut image);
        let curvature = dot(&direction, &image);
        if curvature <= 0.0 {
            break;
        }
        let step = energy / curvature;
        for index in 0..node_count {
            potential[index] += step * direction[index];
            residual[index] -= step * image[index];
        }
        let energy_next = residual.iter().zip(&scale).map(|(r, s)| r * r * s).sum::<f64>();
        let keep = energy_next / energy;
        for index in 0..node_count {
            direction[index] = residual[index] * scale[index] + keep * direction[index];
        }
        energy = energy_next;
    }
    let zero = potential[fixed];
    potential.iter_mut().for_each(|value| *value -= zero);
    potential
}

fn apply(diagonal: &[f64], edges: &[Difference], vector: &[f64], image: &mut [f64]) {
    for (index, value) in image.iter_mut().enumerate() {
        *value = diagonal[index] * vector[index];
    }
    for edge in edges {
        image[edge.from] -= edge.weight * vector[edge.to];
        image[edge.to] -= edge.weight * vector[edge.from];
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What an edge leaves open.
pub fn residual(edge: &Difference, potential: &[f64]) -> f64 {
    edge.difference - (potential[edge.to] - potential[edge.from])
}

/// A robust solution.
#[derive(Clone, Debug)]
pub struct Robust {
    /// The potentials.
    pub potential: Vec<f64>,
    /// For each edge whether it is so far off that it was left out.
    pub is_outlier: Vec<bool>,
    /// The standard deviation of an edge of weight 1, from the edges that count; 0 where no loop says anything.
    pub sigma: f64,
    /// How many more edges count than the tree that a solution needs.
    pub freedom: usize,
}

/// Least squares that a few false edges do not bend: edges beyond three deviations count less and less (Huber), and at last those beyond
/// six deviations and `outlier_min` are left out. `weight * difference^2` is in units of the deviation that is found.
pub fn solve_robustly(node_count: usize, fixed: usize, edges: &[Difference], outlier_min: f64) -> Robust {
    const TOLERANCE: f64 = 1e-7;
    let mut counted: Vec<Difference> = edges.to_vec();
    let mut potential = solve(node_count, fixed, &counted, TOLERANCE);
    for round in 0..12 {
        let deviation = median_deviation(edges, &potential);
        let mut changed = false;
        for (edge, whole) in counted.iter_mut().zip(edges) {
            let off = residual(whole, &potential).abs() * whole.weight.sqrt();
            // Early rounds weigh by the inverse of the distance, which no number of far edges can bend; later ones refine.
            let limit = if round < 3 { deviation } else { 3.0 * deviation };
            // Where all but the false edges agree exactly, noise of rounding must not be weighed.
            let limit = limit.max(0.05 * outlier_min);
            let weight = if off > limit && limit > 0.0 { whole.weight * limit / off } else { whole.weight };
            changed |= (weight - edge.weight).abs() > 0.01 * edge.weight;
            edge.weight = weight;
        }
        if !changed && round >= 3 {
            break;
        }
        potential = solve(node_count, fixed, &counted, TOLERANCE);
    }
    let cut = 6.0 * median_deviation(edges, &potential);
    let is_outlier: Vec<bool> = edges
        .iter()
        .map(|edge| {
            let off = residual(edge, &potential).abs();
            edge.weight > 0.0 && off > outlier_min && off * edge.weight.sqrt() > cut
        })
        .collect();
    for ((edge, whole), &out) in counted.iter_mut().zip(edges).zip(&is_outlier) {
        edge.weight = if out { 0.0 } else { whole.weight };
    }
    let potential = solve(node_count, fixed, &counted, TOLERANCE);
    let (mut squares, mut count) = (0.0, 0);
    for edge in counted.iter().filter(|edge| edge.weight > 0.0) {
        squares += edge.weight * residual(edge, &potential).powi(2);
        count += 1;
    }
    let mut touched = vec![false; node_count];
    counted.iter().filter(|edge| edge.weight > 0.0).for_each(|edge| (touched[edge.from], touched[edge.to]) = (true, true));
    let tree = touched.iter().filter(|&&is| is).count().saturating_sub(1);
    let freedom = count - tree.min(count);
    let sigma = if freedom > 0 { (squares / freedom as f64).sqrt() } else { 0.0 };
    Robust { potential, is_outlier, sigma, freedom }
}

/// The median of the weighted residuals, as the standard deviation that a normal distribution with it has.
fn median_deviation(edges: &[Difference], potential: &[f64]) -> f64 {
    let mut off: Vec<f64> =
        edges.iter().filter(|e| e.weight > 0.0).map(|edge| residual(edge, potential).abs() * edge.weight.sqrt()).collect();
    if off.is_empty() {
        return 0.0;
    }
    let middle = off.len() / 2;
    let (_, median, _) = off.select_nth_unstable_by(middle, f64::total_cmp);
    1.4826 * *median
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use walras_random::Random;

    /// The naive model: the normal equations with the fixed node left out, by elimination.
    fn eliminate(node_count: usize, fixed: usize, edges: &[Difference]) -> Vec<f64> {
        let mut matrix = vec![vec![0.0; node_count + 1]; node_count];
        for edge in edges {
            let (i, j, w) = (edge.from, edge.to, edge.weight);
            matrix[i][i] += w;
            matrix[j][j] += w;
            matrix[i][j] -= w;
            matrix[j][i] -= w;
            matrix[j][node_count] += w * edge.difference;
            matrix[i][node_count] -= w * edge.difference;
        }
        matrix[fixed] = vec![0.0; node_count + 1];
        matrix[fixed][fixed] = 1.0;
        for pivot in 0..node_count {
            let best = (pivot..node_count).max_by(|&a, &b| matrix[a][pivot].abs().total_cmp(&matrix[b][pivot].abs())).unwrap();
            matrix.swap(pivot, best);
            for row in 0..node_count {
                if row != pivot {
                    let factor = matrix[row][pivot] / matrix[pivot][pivot];
                    #[allow(clippy::needless_range_loop, reason = "two rows of one matrix")]
                    for column in pivot..=node_count {
                        matrix[row][column] -= factor * matrix[pivot][column];
                    }
                }
            }
        }
        (0..node_count).map(|row| matrix[row][node_count] / matrix[row][row]).collect()
    }

    proptest! {
        #[test]
        fn the_gradient_finds_what_elimination_finds(seed: u64, node_count in 2usize..12, more in 0usize..30, fixed in 0usize..12) {
            let fixed = fixed % node_count;
            let mut random = Random::new(seed);
            let mut number = |end: u64| random.next_u64() % end;
            let mut edges = Vec::new();
            for at in 0..node_count - 1 + more {
                // A path first, so that the graph hangs together.
                let (from, to) = if at + 1 < node_count { (at, at + 1) } else { (number(node_count as u64) as usize, number(node_count as u64) as usize) };
                if from != to {
                    edges.push(Difference { from, to, difference: number(2_000) as f64 - 1_000.0, weight: 0.1 + number(100) as f64 / 10.0 });
                }
            }
            let found = solve(node_count, fixed, &edges, 1e-12);
            for (a, b) in found.iter().zip(eliminate(node_count, fixed, &edges)) {
                prop_assert!((a - b).abs() < 1e-4, "{a} {b}");
            }
        }
    }

    #[test]
    fn false_edges_are_left_out_and_do_not_bend_the_rest() {
        let mut random = Random::new(3);
        let truth: Vec<f64> = (0..20).map(|node| f64::from(node) * 1_000.0).collect();
        let mut edges = Vec::new();
        for from in 0..20 {
            for to in from + 1..20 {
                let noise = (random.next_u64() % 101) as f64 - 50.0;
                edges.push(Difference { from, to, difference: truth[to] - truth[from] + noise, weight: 1.0 });
            }
        }
        let honest = solve_robustly(20, 0, &edges, 1.0);
        assert!(honest.is_outlier.iter().all(|&out| !out));
        // Node 7 lies to all, each time differently.
        for (at, edge) in edges.iter_mut().enumerate().filter(|(_, edge)| edge.from == 7 || edge.to == 7) {
            edge.difference += 1e6 + 1e5 * at as f64;
        }
        let bent = solve_robustly(20, 0, &edges, 1.0);
        for node in (0..20).filter(|&node| node != 7) {
            assert!((bent.potential[node] - honest.potential[node]).abs() < 15.0, "node {node}");
        }
        let named = edges.iter().zip(&bent.is_outlier).filter(|(edge, out)| **out && (edge.from == 7 || edge.to == 7)).count();
        assert!(named >= 18, "{named}");
        assert!(edges.iter().zip(&bent.is_outlier).all(|(edge, out)| !*out || edge.from == 7 || edge.to == 7));
    }
}
