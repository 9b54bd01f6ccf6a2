//! An interior-point finish for books that are nearly steps.
use super::{Accuracy, Budget, markov};
use crate::block::Block;

/// An offer near the money.
struct Near {
    /// Log of its limit.
    log_limit: f64,
    amount: f64,
    /// Share executed.
    y: f64,
    /// Price of the bound `y <= 1`.
    above: f64,
    /// Price of the bound `y >= 0`.
    below: f64,
}

struct NearBook {
    sell: usize,
    buy: usize,
    /// Amount of the offers that sell in any case.
    full: f64,
    first: usize,
    end: usize,
}

pub(crate) struct Interior<'a, 'i> {
    block: &'a Block<'i>,
    offers: Vec<Near>,
    books: Vec<NearBook>,
    /// Width of the ramp in log price.
    ramp: f64,
    pub(crate) iterations: u64,
    trace: bool,
}

impl<'a, 'i> Interior<'a, 'i> {
    /// `reach`: offers whose limit is further from the rate than a factor `e^reach` stay as they are.
    pub(crate) fn new(block: &'a Block<'i>, accuracy: Accuracy, prices: &[f64], reach: f64, tau: f64) -> Self {
        let ramp = -(-accuracy.mu).ln_1p();
        let mut this = Self { block, offers: Vec::new(), books: Vec::new(), ramp, iterations: 0, trace: std::env::var_os("TRACE").is_some() };
        let factor = reach.min(600.0).exp();
        for book in &block.books {
            let (sell, buy) = (book.sell as usize, book.buy as usize);
            let rate = prices[sell] / prices[buy];
            let low = block.index.rank(book, (rate / factor).max(0.0));
            let high = block.index.rank(book, (rate * factor).min(f64::MAX));
            let first = this.offers.len();
            let log_rate = rate.ln();
            for place in low..high {
                let amount = block.index.sums_at(book, place + 1)[0] - block.index.sums_at(book, place)[0];
                let log_limit = block.index.limit(book, place).ln();
                let (y, above, below) = central(log_rate - log_limit, ramp, tau);
                this.offers.push(Near { log_limit, amount, y, above, below });
            }
            this.books.push(NearBook { sell, buy, full: block.index.sums_at(book, low)[0], first, end: this.offers.len() });
        }
        this
    }

    pub(crate) fn near_count(&self) -> usize {
        self.offers.len()
    }

    /// Follows the path down to `tau_end`.
    pub(crate) fn run(&mut self, prices: &mut [f64], tau_start: f64, tau_end: f64, budget: Budget<'_>) -> f64 {
        let n = prices.len();
        let mut x: Vec<f64> = prices.iter().map(|p| p.ln()).collect();
        let (mut slopes, mut anchor, mut right, mut dx) = (vec![0.0; n * n], vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut tau = tau_start;
        for _ in 0..100 {
            if budget.is_spent(self.iterations) { break; }
            self.iterations += 1;
            slopes.fill(0.0);
            right.fill(0.0);
            for book in &self.books {
                let (a, b) = (book.sell, book.buy);
                let p = x[a].exp();
                let l = x[a] - x[b];
                let (mut sold, mut conduct, mut constant) = (book.full, 0.0, 0.0);
                for o in &self.offers[book.first..book.end] {
                    let k = self.ramp + o.above / (1.0 - o.y) + o.below / o.y;
                    let h = l - o.log_limit - self.ramp * o.y - tau / (1.0 - o.y) + tau / o.y;
                    let c = o.amount / k;
                    sold += o.amount * o.y;
                    conduct += c;
                    constant += c * h;
                }
                slopes[a * n + b] += p * conduct;
                slopes[b * n + a] += p * (sold + conduct);
                let flow = p * (sold + constant);
                right[a] -= flow;
                right[b] += flow;
            }
            for side in &self.block.pools {
                let (a, b) = (side.sell as usize, side.buy as usize);
                let supply = self.block.index.pools[side.pool as usize].supply(side.side, (x[a] - x[b]).exp());
                let p = x[a].exp();
                slopes[a * n + b] += p * supply.slope;
                slopes[b * n + a] += p * (supply.amount + supply.slope);
                right[a] -= p * supply.amount;
                right[b] += p * supply.amount;
            }
            anchor.fill(0.0);
            for row in 0..n { for column in 0..n { anchor[column] += slopes[row * n + column]; } }
            let max = anchor.iter().fold(0.0f64, |m, &v| m.max(v)).max(f64::MIN_POSITIVE);
            anchor.iter_mut().for_each(|v| *v = 1e-12 * v.max(1e-9 * max));
            markov::solve(&mut slopes, &mut anchor, &mut right, &mut dx);
            // scale is free
            let mean = dx.iter().sum::<f64>() / n as f64;
            dx.iter_mut().for_each(|d| *d -= mean);
            let step = dx.iter().fold(0.0f64, |m, d| m.max(d.abs()));
            // Step length.
            let mut alpha = (1.0f64).min(2.0 / step.max(1e-300));
            for book in &self.books {
                let l = x[book.sell] - x[book.buy];
                let dl = dx[book.sell] - dx[book.buy];
                for o in &self.offers[book.first..book.end] {
                    let (dy, da, db) = o.step(l, dl, self.ramp, tau);
                    if dy < 0.0 { alpha = alpha.min(-0.99 * o.y / dy); } else if dy > 0.0 { alpha = alpha.min(0.99 * (1.0 - o.y) / dy); }
                    if da < 0.0 { alpha = alpha.min(-0.99 * o.above / da); }
                    if db < 0.0 { alpha = alpha.min(-0.99 * o.below / db); }
                }
            }
            let mut gap = 0.0;
            for book in &self.books {
                let l = x[book.sell] - x[book.buy];
                let dl = dx[book.sell] - dx[book.buy];
                for o in &mut self.offers[book.first..book.end] {
                    let (dy, da, db) = o.step(l, dl, self.ramp, tau);
                    o.y = (o.y + alpha * dy).clamp(1e-18, 1.0 - 1e-16);
                    o.above += alpha * da;
                    o.below += alpha * db;
                    gap += o.above * (1.0 - o.y) + o.below * o.y;
                }
            }
            x.iter_mut().zip(&dx).for_each(|(x, d)| *x += alpha * d);
            gap /= 2.0 * self.offers.len().max(1) as f64;
            if self.trace { eprintln!("  ip tau {tau:.3e} gap {gap:.3e} alpha {alpha:.3} step {step:.3e}"); }
            if tau <= tau_end && alpha > 0.9 && step < 0.1 * self.ramp { break; }
            tau = (if alpha > 0.9 { 0.1 } else if alpha > 0.5 { 0.3 } else { 0.7 } * gap).max(tau_end);
        }
        prices.iter_mut().zip(&x).for_each(|(p, x)| *p = x.exp());
        tau
    }
}

impl Near {
    #[inline(always)]
    fn step(&self, l: f64, dl: f64, ramp: f64, tau: f64) -> (f64, f64, f64) {
        let k = ramp + self.above / (1.0 - self.y) + self.below / self.y;
        let h = l - self.log_limit - ramp * self.y - tau / (1.0 - self.y) + tau / self.y;
        let dy = (dl + h) / k;
        let da = (tau + self.above * dy) / (1.0 - self.y) - self.above;
        let db = (tau - self.below * dy) / self.y - self.below;
        (dy, da, db)
    }
}

/// The point on the central path for a surplus `s`: `s - ramp y = tau / (1 - y) - tau / y`.
fn central(s: f64, ramp: f64, tau: f64) -> (f64, f64, f64) {
    let (mut low, mut high) = (0.0f64, 1.0f64);
    for _ in 0..60 {
        let y = 0.5 * (low + high);
        if s - ramp * y > tau / (1.0 - y) - tau / y { low = y } else { high = y }
    }
    let y = (0.5 * (low + high)).clamp(1e-12, 1.0 - 1e-12);
    (y, tau / (1.0 - y), tau / y)
}
