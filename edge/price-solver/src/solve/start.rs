//! Where to begin without prices: the log prices that fit the books' median limits best.
//!
//! Half of a book's amount would sell at its median limit, so the log ratio of its assets is near that limit's logarithm. Weighted
//! least squares over all books is a Laplacian system; a few rounds of reweighting by the residuals (Huber 1964) keep books that no
//! price can please from spoiling it. No price goes in, so the start is the same whatever units assets are counted in.

use crate::block::Block;

const ROUNDS: usize = 6;
/// Residuals below this count as equal: limits this near each other do not contradict.
const RESIDUAL_FLOOR: f64 = 1e-3;
/// Ties an asset that nothing else ties to log price zero, relative to the mean weight.
const RIDGE: f64 = 1e-9;

struct Tie {
    sell: usize,
    buy: usize,
    log_ratio: f64,
    weight: f64,
}

/// Start prices of a block.
pub(super) fn from_medians(block: &Block<'_>) -> Vec<f64> {
    let n = block.asset_count();
    let mut ties: Vec<Tie> = block.books.iter().filter_map(|book| tie(block, book)).collect();
    for side in &block.pools {
        // A pool that sells neither asset at a rate is content with it.
        if let Some(log_ratio) = block.index.pools[side.pool as usize].resting_log_rate(side.side) {
            ties.push(Tie { sell: side.sell as usize, buy: side.buy as usize, log_ratio, weight: 1.0 });
        }
    }
    let mut logs = vec![0.0; n];
    let (mut matrix, mut right) = (vec![0.0; n * n], vec![0.0; n]);
    for round in 0..ROUNDS {
        matrix.fill(0.0);
        right.fill(0.0);
        for tie in &ties {
            let residual = (logs[tie.sell] - logs[tie.buy] - tie.log_ratio).abs();
            let weight = if round == 0 { tie.weight } else { tie.weight / residual.max(RESIDUAL_FLOOR) };
            let (a, b) = (tie.sell.min(tie.buy), tie.sell.max(tie.buy));
            matrix[a * n + a] += weight;
            matrix[b * n + b] += weight;
            matrix[b * n + a] -= weight;
            right[tie.sell] += weight * tie.log_ratio;
            right[tie.buy] -= weight * tie.log_ratio;
        }
        let ridge = RIDGE * (0..n).map(|asset| matrix[asset * n + asset]).sum::<f64>() / n as f64;
        (0..n).for_each(|asset| matrix[asset * n + asset] += ridge.max(f64::MIN_POSITIVE));
        cholesky_solve(&mut matrix, &mut right);
        logs.copy_from_slice(&right);
    }
    logs.iter().map(|log| log.clamp(-LOG_PRICE_MAX, LOG_PRICE_MAX).exp()).collect()
}

/// Prices stay within `e^300` of each other's mean, so that products of three do not overflow.
const LOG_PRICE_MAX: f64 = 200.0;

fn tie(block: &Block<'_>, book: &crate::demand::Book) -> Option<Tie> {
    let count = book.offer_count as usize;
    let half = block.index.sums_at(book, count)[0] * 0.5;
    let (mut low, mut high) = (0, count - 1);
    while low < high {
        let middle = (low + high) / 2;
        if block.index.sums_at(book, middle + 1)[0] < half { low = middle + 1 } else { high = middle }
    }
    let limit = block.index.limit(book, low);
    // A market order says nothing about a price.
    (limit > 0.0).then(|| Tie {
        sell: book.sell as usize,
        buy: book.buy as usize,
        log_ratio: limit.ln(),
        weight: (count as f64).sqrt(),
    })
}

/// Solves a symmetric positive definite system given by its lower triangle, in place. A pivot that rounding made useless is skipped.
fn cholesky_solve(matrix: &mut [f64], right: &mut [f64]) {
    let n = right.len();
    for row in 0..n {
        let (above, this) = matrix.split_at_mut(row * n);
        for column in 0..row {
            let other = &above[column * n..column * n + column + 1];
            let dot: f64 = this[..column].iter().zip(other).map(|(&a, &b)| a * b).sum();
            this[column] = (this[column] - dot) * other[column];
        }
        let dot: f64 = this[..row].iter().map(|&a| a * a).sum();
        let pivot = this[row] - dot;
        // The diagonal keeps the inverse of the root.
        this[row] = if pivot > 1e-14 * this[row] { 1.0 / pivot.sqrt() } else { 0.0 };
        let dot: f64 = this[..row].iter().zip(&*right).map(|(&a, &b)| a * b).sum();
        right[row] = (right[row] - dot) * this[row];
    }
    for row in (0..n).rev() {
        right[row] *= matrix[row * n + row];
        let value = right[row];
        for (place, &factor) in right[..row].iter_mut().zip(&matrix[row * n..row * n + row]) {
            *place -= factor * value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cholesky_solves() {
        let mut matrix = vec![4.0, 0.0, 0.0, 2.0, 5.0, 0.0, -1.0, 1.0, 6.0];
        let mut right = vec![4.0 + 4.0 - 3.0, 2.0 + 10.0 + 3.0, -1.0 + 2.0 + 18.0];
        cholesky_solve(&mut matrix, &mut right);
        for (value, expected) in right.iter().zip([1.0, 2.0, 3.0]) {
            assert!((value - expected).abs() < 1e-14, "{right:?}");
        }
    }
}
