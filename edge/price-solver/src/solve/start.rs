//! Where to begin without prices: the log prices that fit the books' median limits best.
//!
//! Half of a book's amount would sell at its median limit, so the log ratio of its assets is near that limit's logarithm. Weighted
//! least squares over all books is a Laplacian system; a few rounds of reweighting by the residuals (Huber 1964) keep books that no
//! price can please from spoiling it. No price goes in, so the start is the same whatever units assets are counted in.

use super::markov;
use crate::block::Block;

const ROUNDS: usize = 4;
/// Residuals below this count as equal: limits this near each other do not contradict.
const RESIDUAL_FLOOR: f64 = 1e-3;
/// Ties an asset that nothing else ties to log price zero, relative to the mean weight.
const RIDGE: f64 = 1e-9;

struct Tie {
    sell: usize,
    buy: usize,
    slots: [usize; 2],
    log_ratio: f64,
    weight: f64,
}

/// Start prices of a block.
pub(super) fn from_medians(block: &Block<'_>, is_over: &dyn Fn() -> bool) -> Vec<f64> {
    let n = block.asset_count();
    let mut ties: Vec<Tie> = block.books.iter().enumerate().filter_map(|(number, book)| tie(block, number, book)).collect();
    for (number, side) in block.pools.iter().enumerate() {
        // A pool that sells neither asset at a rate is content with it.
        if let Some(log_ratio) = block.index.pools[side.pool as usize].resting_log_rate(side.side) {
            let (sell, buy) = (side.sell as usize, side.buy as usize);
            ties.push(Tie { sell, buy, slots: block.layout.pool_slots(number, sell, buy), log_ratio, weight: 1.0 });
        }
    }
    let mut logs = vec![0.0; n];
    let (mut matrix, mut anchor, mut right) = (vec![0.0; block.layout.len()], vec![0.0; n], vec![0.0; n]);
    for round in 0..ROUNDS {
        matrix.fill(0.0);
        let mut total = 0.0;
        right.fill(0.0);
        for tie in &ties {
            let residual = (logs[tie.sell] - logs[tie.buy] - tie.log_ratio).abs();
            let weight = if round == 0 { tie.weight } else { tie.weight / residual.max(RESIDUAL_FLOOR) };
            tie.slots.iter().for_each(|&slot| matrix[slot] += weight);
            total += 2.0 * weight;
            right[tie.sell] += weight * tie.log_ratio;
            right[tie.buy] -= weight * tie.log_ratio;
        }
        anchor.fill((RIDGE * total / n as f64).max(f64::MIN_POSITIVE));
        // A Laplacian is the matrix of a market in which every slope goes both ways.
        if markov::solve(&block.layout, &mut matrix, &mut anchor, &mut right, &mut logs, is_over).is_err() {
            break;
        }
    }
    logs.iter().map(|log| log.clamp(-LOG_PRICE_MAX, LOG_PRICE_MAX).exp()).collect()
}

/// Prices stay within `e^300` of each other's mean, so that products of three do not overflow.
const LOG_PRICE_MAX: f64 = 200.0;

fn tie(block: &Block<'_>, number: usize, book: &crate::demand::Book) -> Option<Tie> {
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
        slots: block.layout.book_slots(number, book.sell as usize, book.buy as usize),
        log_ratio: limit.ln(),
        weight: (count as f64).sqrt(),
    })
}
