//! An interior-point finish: exact smoothing of books that are nearly steps.
//!
//! At a narrow smoothing an offer's answer is all but a step, and Newton's method on it converges only from within a step's width.
//! Here an offer's executed share `y` is an unknown beside the prices, bound to its surplus `s`, the log of rate over limit, by
//!
//! ```text
//! s + ln(1 - mu y) = a - b,      a (1 - y) = tau,      b y = tau,      0 < y < 1,  a, b > 0
//! ```
//!
//! which at `tau = 0` is precisely the linear ramp of [`crate::demand::Window::of_mu`]: `y` is `(1 - e^-s) / mu`, cut at 0 and 1. Newton's
//! method on these equations and conservation of value, with `tau` falling towards zero, is a primal-dual interior-point method
//! (Mehrotra 1992). With the shares eliminated a step is the same N x N system as everywhere in this crate, so an iteration costs one pass
//! over the offers near the money and one solve, and 15 to 30 iterations suffice whatever the steps look like. That it converges is
//! no accident: the market's equilibrium is the minimum of a convex program (Devanur, Garg, Vegh, ACM TEAC 4, 2016).

use super::{Accuracy, Found, Outcome, Task, markov};
use crate::block::{Demand, Block};

/// Iterations at most; a run that needs more has failed.
const ITERATIONS_MAX: u32 = 120;
/// How much of the way to the nearest bound a step may go.
const TO_BOUND: f64 = 0.995;
/// Farthest an asset may move in one step, in log price.
const LOG_STEP_MAX: f64 = 4.0;
const TAU_MIN: f64 = 1e-18;
/// Below this `tau`, relative to `mu`, prices are tried against the stopping rule.
const TRY_BELOW: f64 = 0.05;

struct NearBook {
    sell: usize,
    buy: usize,
    /// Amount of the offers that sell in any case.
    full: f64,
    first: usize,
    end: usize,
}

/// Offers near the money, one entry each.
#[derive(Default)]
struct Near {
    log_limit: Vec<f64>,
    amount: Vec<f64>,
    /// Share executed, and the rest: kept apart because the smaller of the two needs its own precision.
    y: Vec<f64>,
    rest: Vec<f64>,
    /// Prices of the bounds `y <= 1` and `y >= 0`.
    above: Vec<f64>,
    below: Vec<f64>,
    /// Of the present iteration: how much the share grows per log price, and the log price it lacks.
    give: Vec<f64>,
    lack: Vec<f64>,
}

pub(super) struct Interior<'a, 'i> {
    block: &'a Block<'i>,
    accuracy: Accuracy,
    near: Near,
    books: Vec<NearBook>,
    x: Vec<f64>,
    dx: Vec<f64>,
    anchor: Vec<f64>,
    right: Vec<f64>,
    tau: f64,
    priced_offer_count: usize,
}

impl<'a, 'i> Interior<'a, 'i> {
    /// Starts at prices, with the offers whose limit is within a factor `e^reach` of the rate as unknowns; those beyond do what they do.
    pub(super) fn new(block: &'a Block<'i>, accuracy: Accuracy, prices: &[f64], reach: f64, tau: f64) -> Self {
        let n = prices.len();
        let x = prices.iter().map(|price| price.ln()).collect();
        let (near, books) = (Near::default(), Vec::with_capacity(block.books.len()));
        let mut this = Self { block, accuracy, near, books, x, dx: vec![0.0; n], anchor: vec![0.0; n], right: vec![0.0; n], tau, priced_offer_count: 0 };
        let factor = reach.min(600.0).exp();
        for book in &block.books {
            let (sell, buy) = (book.sell as usize, book.buy as usize);
            let rate = prices[sell] / prices[buy];
            // A limit of zero has no logarithm: market orders are never near the money.
            let market_orders = block.index.rank(book, 0.0);
            this.priced_offer_count += book.offer_count as usize - market_orders;
            let low = block.index.rank(book, rate / factor).max(market_orders);
            let high = block.index.rank(book, (rate * factor).min(f64::MAX)).max(low);
            let first = this.near.y.len();
            let full = block.index.sums_at(book, low)[0];
            let (log_rate, mut before) = (rate.ln(), full);
            for place in low..high {
                let after = block.index.sums_at(book, place + 1)[0];
                this.near.push(block.index.limit(book, place).ln(), after - before, log_rate, accuracy.mu, tau);
                before = after;
            }
            this.books.push(NearBook { sell, buy, full, first, end: this.near.y.len() });
        }
        this
    }

    /// Whether every offer that has a limit is an unknown.
    pub(super) fn holds_all_offers(&self) -> bool {
        self.near.y.len() == self.priced_offer_count
    }

    /// Follows the path until the prices clear the market, or as far as it leads.
    pub(super) fn run(&mut self, task: &mut Task<'_, '_>) -> Found {
        let mu = self.accuracy.mu;
        let mut best: Option<Found> = None;
        for _ in 0..ITERATIONS_MAX {
            if task.is_spent() {
                break;
            }
            task.queries += 1;
            self.linearise(&mut task.answer);
            self.solve(&mut task.answer);
            let (alpha, gap) = self.advance();
            if !gap.is_finite() {
                break;
            }
            if gap < TRY_BELOW * mu {
                let found = task.judge(&self.prices());
                best = Some(match best {
                    Some(best) => best.or_better(found),
                    None => found,
                });
                let done = best.as_ref().is_some_and(|best| best.outcome < Outcome::Approximate);
                if done || (self.tau <= TAU_MIN && alpha > 0.9) {
                    break;
                }
            }
            self.tau = (gap * centering(alpha)).max(TAU_MIN);
        }
        best.unwrap_or_else(|| task.judge(&self.prices()))
    }

    fn prices(&self) -> Vec<f64> {
        self.x.iter().map(|x| x.clamp(-600.0, 600.0).exp()).collect()
    }

    /// The linear system of a step, shares eliminated: slopes into `answer`, the right side into `right`.
    fn linearise(&mut self, answer: &mut Demand) {
        let (n, tau, mu) = (self.x.len(), self.tau, self.accuracy.mu);
        answer.slopes.fill(0.0);
        self.right.fill(0.0);
        for book in &self.books {
            let (a, b) = (book.sell, book.buy);
            let (price, log_rate) = (self.x[a].exp(), self.x[a] - self.x[b]);
            let near = &mut self.near;
            let range = book.first..book.end;
            let shares = near.y[range.clone()].iter().zip(&near.rest[range.clone()]);
            let bounds = near.above[range.clone()].iter().zip(&near.below[range.clone()]);
            let offers = near.log_limit[range.clone()].iter().zip(&near.amount[range.clone()]);
            let out = near.give[range.clone()].iter_mut().zip(&mut near.lack[range]);
            let (mut sold, mut give_sum, mut lack_sum) = (book.full, 0.0, 0.0);
            for ((((&y, &rest), (&above, &below)), (&log_limit, &amount)), (give, lack)) in shares.zip(bounds).zip(offers).zip(out) {
                let (per_y, per_rest) = (1.0 / y, 1.0 / rest);
                let (log, slope) = log_of_ramp(mu * y);
                *give = 1.0 / (mu * slope + above * per_rest + below * per_y);
                *lack = log_rate - log_limit + log + tau * (per_y - per_rest);
                sold += amount * y;
                give_sum += amount * *give;
                lack_sum += amount * *give * *lack;
            }
            answer.slopes[a * n + b] += price * give_sum;
            answer.slopes[b * n + a] += price * (sold + give_sum);
            let flow = price * (sold + lack_sum);
            self.right[a] -= flow;
            self.right[b] += flow;
        }
        for side in &self.block.pools {
            let (a, b) = (side.sell as usize, side.buy as usize);
            let supply = self.block.index.pools[side.pool as usize].supply(side.side, (self.x[a] - self.x[b]).exp());
            let price = self.x[a].exp();
            answer.slopes[a * n + b] += price * supply.slope;
            answer.slopes[b * n + a] += price * (supply.amount + supply.slope);
            self.right[a] -= price * supply.amount;
            self.right[b] += price * supply.amount;
        }
    }

    fn solve(&mut self, answer: &mut Demand) {
        let n = self.x.len();
        self.anchor.fill(0.0);
        for row in answer.slopes.chunks_exact(n) {
            self.anchor.iter_mut().zip(row).for_each(|(sum, &slope)| *sum += slope);
        }
        let max = self.anchor.iter().fold(f64::MIN_POSITIVE, |max, &sum| max.max(sum));
        self.anchor.iter_mut().for_each(|sum| *sum = ANCHOR * sum.max(ANCHOR * max));
        markov::solve(&mut answer.slopes, &mut self.anchor, &mut self.right, &mut self.dx);
        // The common scale is free: keep it.
        let mean = self.dx.iter().sum::<f64>() / n as f64;
        self.dx.iter_mut().for_each(|step| *step -= mean);
    }

    /// Steps as far as the bounds allow; the share of the step taken, and the mean complementarity after it.
    fn advance(&mut self) -> (f64, f64) {
        let tau = self.tau;
        let farthest = self.dx.iter().fold(0.0f64, |farthest, step| farthest.max(step.abs()));
        let mut worst = (farthest / LOG_STEP_MAX).max(TO_BOUND);
        let near = &mut self.near;
        for book in &self.books {
            let log_step = self.dx[book.sell] - self.dx[book.buy];
            for at in book.first..book.end {
                let dy = (log_step + near.lack[at]) * near.give[at];
                near.lack[at] = dy;
                let (y, rest, above, below) = (near.y[at], near.rest[at], near.above[at], near.below[at]);
                let (by_rest, by_y) = (dy / rest, dy / y);
                let shares = by_rest.max(-by_y);
                let bounds = (1.0 - tau / (above * rest) - by_rest).max(1.0 - tau / (below * y) + by_y);
                worst = worst.max(shares.max(bounds));
            }
        }
        let alpha = TO_BOUND / worst;
        let mut gap = 0.0;
        for at in 0..near.y.len() {
            let (dy, y, rest, above, below) = (near.lack[at], near.y[at], near.rest[at], near.above[at], near.below[at]);
            near.above[at] += alpha * ((tau + above * dy) / rest - above);
            near.below[at] += alpha * ((tau - below * dy) / y - below);
            near.y[at] += alpha * dy;
            near.rest[at] -= alpha * dy;
            gap += near.above[at] * near.rest[at] + near.below[at] * near.y[at];
        }
        self.x.iter_mut().zip(&self.dx).for_each(|(x, step)| *x += alpha * step);
        (alpha, gap / (2 * near.y.len()).max(1) as f64)
    }
}

const ANCHOR: f64 = 1e-12;

impl Near {
    fn push(&mut self, log_limit: f64, amount: f64, log_rate: f64, mu: f64, tau: f64) {
        let (y, rest) = central(log_rate - log_limit, mu, tau);
        self.log_limit.push(log_limit);
        self.amount.push(amount);
        self.y.push(y);
        self.rest.push(rest);
        self.above.push(tau / rest);
        self.below.push(tau / y);
        self.give.push(0.0);
        self.lack.push(0.0);
    }
}

/// `ln(1 - z)` and minus its derivative.
#[inline(always)]
fn log_of_ramp(z: f64) -> (f64, f64) {
    let slope = 1.0 / (1.0 - z).max(1e-3);
    if z < 4e-3 {
        (-z * (1.0 + z * (0.5 + z * (1.0 / 3.0 + z * (0.25 + z * 0.2)))), slope)
    } else {
        ((-z.min(0.999)).ln_1p(), slope)
    }
}

/// How far below the present complementarity the next one aims.
fn centering(alpha: f64) -> f64 {
    if alpha > 0.95 {
        0.05
    } else if alpha > 0.6 {
        0.2
    } else {
        0.7
    }
}

/// Share and rest on the path for a surplus: `s - mu y = tau / (1 - y) - tau / y`, by Newton's method on a convex and a concave half.
fn central(s: f64, mu: f64, tau: f64) -> (f64, f64) {
    // By symmetry about the middle of the ramp, solve for the smaller of share and rest.
    let middle = s - 0.5 * mu;
    let (mut low, mut high) = (0.0f64, 0.5f64);
    let target = -middle.abs();
    for _ in 0..40 {
        let z = 0.5 * (low + high);
        if target - mu * (z - 0.5) > tau / (1.0 - z) - tau / z { low = z } else { high = z }
    }
    let small = (0.5 * (low + high)).max(1e-12);
    if middle < 0.0 { (small, 1.0 - small) } else { (1.0 - small, small) }
}
