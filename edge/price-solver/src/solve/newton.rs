//! Newton's method with continuation.

use super::{Accuracy, Budget, markov};
use crate::block::{Answer, Block};
use crate::demand::Window;

/// What became of a block.
#[derive(Clone, Debug)]
pub(crate) struct BlockResult {
    pub(crate) prices: Vec<f64>,
    pub(crate) cleared: bool,
    pub(crate) queries: u64,
    pub(crate) worst_excess: f64,
}

pub(crate) struct Newton<'a, 'i> {
    block: &'a Block<'i>,
    accuracy: Accuracy,
    budget: Budget<'a>,
    pub(crate) queries: u64,
    answer: Answer,
    trial: Answer,
    matrix: Vec<f64>,
    anchor: Vec<f64>,
    work: Vec<f64>,
    q: Vec<f64>,
    prices: Vec<f64>,
    trial_prices: Vec<f64>,
    pub(crate) trace: bool,
}

impl<'a, 'i> Newton<'a, 'i> {
    pub(crate) fn new(block: &'a Block<'i>, accuracy: Accuracy, budget: Budget<'a>) -> Self {
        let n = block.asset_count();
        Self {
            block,
            accuracy,
            budget,
            queries: 0,
            answer: Answer::new(n),
            trial: Answer::new(n),
            matrix: vec![0.0; n * n],
            anchor: vec![0.0; n],
            work: vec![0.0; n],
            q: vec![1.0; n],
            prices: vec![1.0; n],
            trial_prices: vec![1.0; n],
            trace: std::env::var_os("TRACE").is_some(),
        }
    }

    fn window(&self, width: f64) -> Window {
        Window::widened(self.accuracy.mu, width)
    }

    pub(crate) fn solve(mut self, start: &[f64], first_width: f64) -> BlockResult {
        let mu = self.accuracy.mu;
        self.prices.copy_from_slice(start);
        let mut width = first_width;
        let mut good = (start.to_vec(), first_width * 64.0);
        loop {
            let outcome = self.level(width);
            if self.trace {
                eprintln!("width {width:.3e} {outcome:?} queries {}", self.queries);
            }
            match outcome {
                Level::Cleared => break,
                Level::Spent => break,
                Level::Solved(step) => {
                    good.0.copy_from_slice(&self.prices);
                    good.1 = width;
                    width = (4.0 * step).clamp(width / 16.0, width / 2.0);
                    if width < mu / 4.0 {
                        width = 0.0;
                    }
                }
                Level::Stalled if width > 0.0 || true => break,
                Level::Stalled => {
                    self.prices.copy_from_slice(&good.0);
                    let floor = width.max(mu / 8.0);
                    width = (floor * good.1).sqrt();
                    if width > good.1 * 0.98 {
                        break;
                    }
                }
            }
        }
        self.block.query(&self.prices, Window::of_mu(mu), &mut self.answer);
        if !self.answer.clears(self.accuracy.eps) {
            let mut w = good.1.min(0.1);
            for attempt in 0..4 {
                self.prices.copy_from_slice(&good.0);
                let reach = if w >= 0.1 { 600.0 } else { 8.0 * w + 8.0 * mu };
                let mut ip = super::interior::Interior::new(self.block, self.accuracy, &self.prices, reach, w * 0.1);
                let ended = ip.run(&mut self.prices, &mut self.answer, &mut self.queries, &self.budget, |_| false);
                if self.trace { eprintln!("interior: attempt {attempt} w {w:.3e} {ended:?} excess {:.3e}", self.answer.worst_excess()); }
                if ended == super::interior::Ended::Cleared { break; }
                w *= 8.0;
            }
            self.block.query(&self.prices, Window::of_mu(mu), &mut self.answer);
        }
        BlockResult {
            cleared: self.answer.clears(self.accuracy.eps),
            worst_excess: self.answer.worst_excess(),
            prices: self.prices,
            queries: self.queries,
        }
    }

    /// Newton steps at one width.
    fn level(&mut self, width: f64) -> Level {
        let window = self.window(width);
        let iterations_max = if width == 0.0 { 12 } else { 6 };
        self.queries += 1;
        self.block.query(&self.prices, window, &mut self.answer);
        let trust = (4.0 * (width + self.accuracy.mu)).clamp(0.02, 8.0).exp();
        for _ in 0..iterations_max {
            if width == 0.0 && self.answer.clears(self.accuracy.eps) {
                return Level::Cleared;
            }
            if self.budget.is_spent(self.queries) {
                return Level::Spent;
            }
            self.direction();
            let step = self.q.iter().fold(0.0f64, |step, q| step.max(q.ln().abs()));
            let merit = self.merit();
            let mut t = 1.0;
            let accepted = loop {
                for ((trial, price), q) in self.trial_prices.iter_mut().zip(&self.prices).zip(&self.q) {
                    *trial = price * (1.0 + t * (q.clamp(1.0 / trust, trust) - 1.0));
                }
                self.queries += 1;
                self.block.query(&self.trial_prices, window, &mut self.trial);
                let trial_merit = self.trial_merit();
                if self.trace {
                    eprintln!("   step {step:.3e} t {t} merit {merit:.3e} -> {trial_merit:.3e}");
                }
                if trial_merit <= merit * (1.0 - 0.1 * t) || merit < 1e-24 {
                    break true;
                }
                t *= 0.35;
                if t < 0.1 {
                    break false;
                }
            };
            if !accepted {
                return Level::Stalled;
            }
            std::mem::swap(&mut self.prices, &mut self.trial_prices);
            std::mem::swap(&mut self.answer, &mut self.trial);
            if width > 0.0 && t == 1.0 && step <= 0.3 * (width + self.accuracy.mu) {
                return Level::Solved(step);
            }
        }
        Level::Stalled
    }

    fn direction(&mut self) {
        let n = self.prices.len();
        self.matrix.copy_from_slice(&self.answer.slopes);
        self.anchor.fill(0.0);
        for row in 0..n {
            for column in 0..n {
                let slope = self.matrix[row * n + column];
                self.anchor[column] += slope;
            }
        }
        let max = self.anchor.iter().fold(0.0f64, |max, &value| max.max(value)).max(f64::MIN_POSITIVE);
        self.anchor.iter_mut().for_each(|value| *value = 1e-9 * value.max(1e-9 * max));
        self.work.copy_from_slice(&self.anchor);
        markov::solve(&mut self.matrix, &mut self.anchor, &mut self.work, &mut self.q);
    }

    fn scale(&self, asset: usize, total: f64) -> f64 {
        self.answer.sold[asset] + self.answer.bought[asset] + 1e-9 * total
    }

    fn merit(&self) -> f64 {
        let total: f64 = self.answer.sold.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        (0..self.prices.len())
            .map(|asset| ((self.answer.bought[asset] - self.answer.sold[asset]) / self.scale(asset, total)).powi(2))
            .sum()
    }

    fn trial_merit(&self) -> f64 {
        let total: f64 = self.answer.sold.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        (0..self.prices.len())
            .map(|asset| ((self.trial.bought[asset] - self.trial.sold[asset]) / self.scale(asset, total)).powi(2))
            .sum()
    }
}

#[derive(Clone, Copy, Debug)]
enum Level {
    Cleared,
    Solved(f64),
    Stalled,
    Spent,
}
