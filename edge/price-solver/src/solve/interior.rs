//! An interior-point finish: exact smoothing of books that are nearly steps.
//!
//! At a narrow smoothing an offer's answer is all but a step, and Newton's method on it converges only from within a step's width.
//! Here an offer's executed share `y` is an unknown beside the prices, bound to its surplus `s`, the log of rate over limit, by
//!
//! ```text
//! s + ln(1 - mu y) = a - b,      a (1 - y) = tau,      b y = tau,      0 < y < 1,  a, b > 0
//! ```
//!
//! which at `tau = 0` is precisely the linear ramp of [`crate::demand::Window::of_mu`]: `y` is `(1 - e^-s) / mu`, cut at 0 and 1.
//! Newton's method on these equations and conservation of value, with `tau` falling towards zero, is a primal-dual interior-point
//! method (Mehrotra 1992). With the shares eliminated a step is the same N x N system as everywhere in this crate, so an iteration
//! costs one pass over the offers near the money and one solve, and 15 to 30 iterations suffice whatever the steps look like. That
//! it converges is no accident: the market's equilibrium is the minimum of a convex program (Devanur, Garg, Vegh, ACM TEAC 4,
//! 2016).
//!
//! `tau` is a *barrier* in value over the offer's value, as in that program, and at most what the start asks for. The same `tau`
//! for all offers would weigh each by its value: what an offer of a million times the others sells while it is out of the money,
//! `tau` over its distance, floods the market until `tau` is a millionth of what all others need, and the path bends around it.

use super::markov::{SILENT, Stopped};
use super::unknowns::{Unknown, Unknowns};
use super::{Accuracy, Found, Outcome, Task, markov};
use crate::block::{Block, Demand};
use crate::node;

/// Iterations at most, with some offers and with all; a run that needs more has failed.
const ITERATIONS_MAX: u32 = 120;
const ITERATIONS_MAX_WHOLE: u32 = 400;
/// How much of the way to the nearest bound a step may go.
const TO_BOUND: f64 = 0.995;
/// Farthest an asset may move in one step, in log price.
const LOG_STEP_MAX: f64 = 4.0;
/// A reach that leaves out no offer that matters.
const REACH_MAX: f64 = 600.0;
/// After so many steps in a row shorter than this share, the offers beyond reach are to blame, if there are any.
const CRAWLS_MAX: u32 = 5;
const CRAWL: f64 = 0.05;
/// So few offers are followed to the end, all of them: an iteration over them takes no longer than the solve in it. What stands
/// after many small batches barely touches; there assets that nobody sells are short of all that is wanted until the path's last
/// steps, and no trial looks better than the one before.
const FEW_OFFERS: usize = 30_000;
/// Of more, if they are not put together, after so many trials in a row without a better one, the offers left out are to blame.
const FUTILE_MAX: u32 = 6;
/// Of more, offers are taken for decided after steps of at least this share, when farther away than so many last steps and so many
/// gaps.
const SETTLE_ALPHA: f64 = 0.5;
const SETTLE_STEPS: f64 = 12.0;
const SETTLE_GAPS: f64 = 40.0;
/// Ties every asset to its price by this share of its slope: keeps apart what does not trade at the moment.
const ANCHOR: f64 = 1e-12;
const TAU_MIN: f64 = 1e-60;
/// A step is shortened by this factor until every complementarity is at least this share of the mean: a bound that is nearer stops
/// the next steps.
const SHORTER: f64 = 0.7;
const NEAR_PATH: f64 = 1e-5;
const ALPHA_MIN: f64 = 1e-6;
/// While an asset is out of balance by more than this share after a step, the barrier falls by no more than this factor.
const UNBALANCED: f64 = 0.5;
const CENTERING_UNBALANCED: f64 = 0.9;
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
    /// Of the present iteration: the surplus or its change, how much the share grows per log price, and the log price that it lacks
    /// or the share's step.
    surplus: Vec<f64>,
    give: Vec<f64>,
    lack: Vec<f64>,
    per_y: Vec<f64>,
    per_rest: Vec<f64>,
    /// What the offer is worth, and the complementarity that the next step aims at: the less the larger the offer.
    value: Vec<f64>,
    tau: Vec<f64>,
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
    /// The complementarity aimed at, in value, and the most of it that an offer has per value.
    barrier: f64,
    tau_max: f64,
    value_middle: f64,
    /// Offers that have a limit; those of them that are unknowns, alone or in lumps.
    priced_offer_count: usize,
    offer_count: usize,
    is_lumped: bool,
}

impl<'a, 'i> Interior<'a, 'i> {
    /// Starts at prices, with the offers whose limit is within a factor `e^reach` of the ramp as unknowns, put together where they are
    /// more than `unknowns_max`; those beyond do what they do.
    pub(super) fn new(
        block: &'a Block<'i>,
        accuracy: Accuracy,
        prices: &[f64],
        (reach, tau): (f64, f64),
        unknowns_max: usize,
    ) -> Self {
        let n = prices.len();
        let x = prices.iter().map(|price| price.ln()).collect();
        let (near, books) = (Near::default(), Vec::with_capacity(block.books.len()));
        let mut this = Self {
            block,
            accuracy,
            near,
            books,
            x,
            dx: vec![0.0; n],
            anchor: vec![0.0; n],
            right: vec![0.0; n],
            barrier: 0.0,
            tau_max: tau,
            value_middle: 1.0,
            priced_offer_count: 0,
            offer_count: 0,
            is_lumped: false,
        };
        let factor = reach.min(REACH_MAX).exp();
        let near = block.books.iter().map(|book| {
            let rate = prices[book.sell as usize] / prices[book.buy as usize];
            // A limit of zero has no logarithm: market orders are never near the money.
            let market_orders = block.index.rank(book, 0.0);
            this.priced_offer_count += book.offer_count as usize - market_orders;
            let low = block.index.rank(book, rate * (1.0 - accuracy.mu) / factor).max(market_orders);
            (low, block.index.rank(book, (rate * factor).min(f64::MAX)).max(low), rate)
        });
        let unknowns = Unknowns::new(block, accuracy.mu, near.collect(), unknowns_max);
        (this.offer_count, this.is_lumped) = (unknowns.offer_count(), unknowns.is_lumped());
        for (number, book) in block.books.iter().enumerate() {
            let (sell, buy) = (book.sell as usize, book.buy as usize);
            let (low, log_rate, first) = (unknowns.low(number), (prices[sell] / prices[buy]).ln(), this.near.amount.len());
            unknowns.of_book(number, |Unknown { limit, amount }| {
                let log_limit = limit.ln();
                this.near.log_limit.push(log_limit);
                this.near.surplus.push(log_rate - log_limit);
                this.near.amount.push(amount);
                this.near.value.push(prices[sell] * amount);
            });
            let full = block.index.sums_at(book, low)[0];
            this.books.push(NearBook { sell, buy, full, first, end: this.near.amount.len() });
        }
        let count = this.near.amount.len();
        this.near.arrays().into_iter().for_each(|array| array.resize(count, 0.0));
        let mut values = this.near.value.clone();
        let most = values.iter().fold(f64::MIN_POSITIVE, |most, &value| value.max(most));
        if count > 0 {
            let (_, &mut middle, _) = values.select_nth_unstable_by(count / 2, f64::total_cmp);
            this.value_middle = middle.max(f64::MIN_POSITIVE);
        }
        let barrier = tau * most;
        this.aim(barrier);
        node::with_fastest(Centre { near: &mut this.near, mu: accuracy.mu });
        this
    }

    /// Whether every offer that has a limit is an unknown, or in one.
    pub(super) fn holds_all_offers(&self) -> bool {
        self.offer_count == self.priced_offer_count
    }

    #[cfg(test)]
    pub(super) fn unknown_count(&self) -> usize {
        self.near.y.len()
    }

    /// Follows the path until the prices clear the market, or as far as it leads. With `may_settle`, offers that prices move away
    /// from are taken for decided on the way: faster, and wrong in rare cases, which then do not clear.
    pub(super) fn run(&mut self, task: &mut Task<'_, '_>, may_settle: bool) -> Found {
        let mu = self.accuracy.mu;
        let mut best: Option<Found> = None;
        let (mut crawls, mut futile) = (0, 0);
        let is_whole = self.holds_all_offers();
        let mut settled_at = f64::INFINITY;
        for _ in 0..if is_whole { ITERATIONS_MAX_WHOLE } else { ITERATIONS_MAX } {
            if task.is_spent() {
                break;
            }
            task.queries += 1;
            self.linearise(&mut task.answer);
            if self.solve(task).is_err() {
                break;
            }
            let imbalance = task.answer.worst_imbalance();
            let (alpha, gap) = self.advance();
            crawls = if alpha < CRAWL { crawls + 1 } else { 0 };
            if !gap.is_finite() || (crawls == CRAWLS_MAX && !is_whole) {
                break;
            }
            if gap < TRY_BELOW * mu * self.value_middle {
                let found = self.judge(task);
                let is_better = best.as_ref().is_none_or(|best| found.worst_excess < best.worst_excess);
                futile = if is_better { 0 } else { futile + 1 };
                best = Some(match best {
                    Some(best) => best.or_better(found),
                    None => found,
                });
                let done = best.as_ref().is_some_and(|best| best.outcome < Outcome::Approximate);
                if done
                    || (self.barrier <= TAU_MIN * self.value_middle && alpha > 0.9)
                    || (futile >= FUTILE_MAX && self.near.y.len() > FEW_OFFERS && !self.holds_all_offers() && !self.is_lumped)
                {
                    break;
                }
            }
            let sigma = if imbalance * (1.0 - alpha) > UNBALANCED { CENTERING_UNBALANCED } else { centering(alpha) };
            self.aim((gap * sigma).max(TAU_MIN * self.value_middle));
            if may_settle && self.near.y.len() > FEW_OFFERS && alpha > SETTLE_ALPHA && gap < 0.25 * settled_at {
                settled_at = gap;
                self.settle_far(gap);
            }
        }
        let best = best.unwrap_or_else(|| self.judge(task));
        if best.outcome < Outcome::Approximate {
            return best;
        }
        // Where books barely touch, what smoothed demand lacks says nothing of how good prices are: the path's end is the best guess.
        let prices = self.prices();
        let best = task.judge_flow(best);
        if !prices.iter().all(|price| price.is_normal()) {
            return best;
        }
        let last = Found { prices, values: None, outcome: Outcome::Approximate, ..best.clone() };
        best.or_better(task.judge_flow(last))
    }

    /// Aims at this complementarity in value: the same for each offer but those so small that it would be too much per value.
    fn aim(&mut self, barrier: f64) {
        self.barrier = barrier;
        let tau_max = self.tau_max;
        self.near.tau.iter_mut().zip(&self.near.value).for_each(|(tau, value)| *tau = (barrier / value).min(tau_max).max(TAU_MIN));
    }

    /// What the prices are worth, by smoothed demand or by the amounts that the path came with.
    fn judge(&self, task: &mut Task<'_, '_>) -> Found {
        let prices = self.prices();
        let found = task.judge(&prices);
        if found.outcome < Outcome::Approximate {
            return found;
        }
        let values: Vec<f64> = self.books.iter().map(|book| self.x[book.sell].exp() * self.sold(book)).collect();
        task.judge_amounts(found, &values)
    }

    /// Amount of a book that is sold.
    fn sold(&self, book: &NearBook) -> f64 {
        let range = book.first..book.end;
        book.full + self.near.amount[range.clone()].iter().zip(&self.near.y[range]).map(|(amount, y)| amount * y).sum::<f64>()
    }

    /// Takes the offers for decided whose limit is farther from the ramp than the last step and the path's width can reach.
    fn settle_far(&mut self, gap: f64) {
        let (mut kept, mu) = (0, self.accuracy.mu);
        for book in &mut self.books {
            let log_rate = self.x[book.sell] - self.x[book.buy];
            let step = SETTLE_STEPS * (self.dx[book.sell] - self.dx[book.buy]).abs();
            let first = kept;
            for at in book.first..book.end {
                let surplus = log_rate - self.near.log_limit[at];
                let far = step + SETTLE_GAPS * (gap / self.near.value[at]).min(self.tau_max);
                if surplus > mu + far {
                    book.full += self.near.amount[at];
                } else if surplus > -far {
                    self.near.keep(at, kept);
                    kept += 1;
                }
            }
            (book.first, book.end) = (first, kept);
        }
        // What is decided is no unknown any more.
        self.offer_count -= self.near.y.len() - kept;
        self.near.truncate(kept);
    }

    fn prices(&self) -> Vec<f64> {
        self.x.iter().map(|x| x.clamp(-600.0, 600.0).exp()).collect()
    }

    /// The linear system of a step, shares eliminated: slopes into `answer`, the right side into `right`.
    fn linearise(&mut self, answer: &mut Demand) {
        for book in &self.books {
            let log_rate = self.x[book.sell] - self.x[book.buy];
            let limits = &self.near.log_limit[book.first..book.end];
            self.near.surplus[book.first..book.end].iter_mut().zip(limits).for_each(|(surplus, limit)| *surplus = log_rate - limit);
        }
        node::with_fastest(Respond { near: &mut self.near, mu: self.accuracy.mu });
        answer.slopes.fill(0.0);
        answer.sold.fill(0.0);
        answer.bought.fill(0.0);
        self.right.fill(0.0);
        for (number, book) in self.books.iter().enumerate() {
            let (a, b) = (book.sell, book.buy);
            let price = self.x[a].exp();
            let (mut sold, mut give_sum, mut lack_sum) = (book.full, 0.0, 0.0);
            for at in book.first..book.end {
                let give = self.near.amount[at] * self.near.give[at];
                sold += self.near.amount[at] * self.near.y[at];
                give_sum += give;
                lack_sum += give * self.near.lack[at];
            }
            let [of_buy, of_sell] = self.block.layout.book_slots(number, a, b);
            answer.slopes[of_buy] += price * give_sum;
            answer.slopes[of_sell] += price * (sold + give_sum);
            answer.sold[a] += price * sold;
            answer.bought[b] += price * sold;
            let flow = price * (sold + lack_sum);
            self.right[a] -= flow;
            self.right[b] += flow;
        }
        for (number, side) in self.block.pools.iter().enumerate() {
            let (a, b) = (side.sell as usize, side.buy as usize);
            let supply = self.block.index.pools[side.pool as usize].supply(side.side, (self.x[a] - self.x[b]).exp());
            let price = self.x[a].exp();
            let [of_buy, of_sell] = self.block.layout.pool_slots(number, a, b);
            answer.slopes[of_buy] += price * supply.slope;
            answer.slopes[of_sell] += price * (supply.amount + supply.slope);
            answer.sold[a] += price * supply.amount;
            answer.bought[b] += price * supply.amount;
            self.right[a] -= price * supply.amount;
            self.right[b] += price * supply.amount;
        }
    }

    fn solve(&mut self, task: &mut Task<'_, '_>) -> Result<(), Stopped> {
        let (n, layout, budget) = (self.x.len(), &self.block.layout, task.budget);
        let answer = &mut task.answer;
        layout.column_sums(&answer.slopes, &mut self.anchor);
        let max = self.anchor.iter().fold(f64::MIN_POSITIVE, |max, &sum| max.max(sum));
        self.anchor.iter_mut().for_each(|sum| *sum = ANCHOR * sum.max(SILENT * max));
        markov::solve(layout, &mut answer.slopes, &mut self.anchor, &mut self.right, &mut self.dx, &|| budget.is_over())?;
        // The common scale is free: keep it.
        let mean = self.dx.iter().sum::<f64>() / n as f64;
        self.dx.iter_mut().for_each(|step| *step -= mean);
        Ok(())
    }

    /// Steps as far as the bounds allow; the share of the step taken, and the mean complementarity after it.
    fn advance(&mut self) -> (f64, f64) {
        let farthest = self.dx.iter().fold(0.0f64, |farthest, step| farthest.max(step.abs()));
        for book in &self.books {
            let log_step = self.dx[book.sell] - self.dx[book.buy];
            self.near.surplus[book.first..book.end].fill(log_step);
        }
        let (mut alpha, mut gap) = (TO_BOUND / (farthest / LOG_STEP_MAX).max(TO_BOUND), 0.0);
        let least = self.barrier / self.tau_max;
        node::with_fastest(Advance { near: &mut self.near, least, alpha: &mut alpha, gap: &mut gap });
        self.x.iter_mut().zip(&self.dx).for_each(|(x, step)| *x += alpha * step);
        (alpha, gap)
    }
}

impl Near {
    fn arrays(&mut self) -> [&mut Vec<f64>; 13] {
        let Self { log_limit, amount, y, rest, above, below, surplus, give, lack, per_y, per_rest, value, tau } = self;
        [log_limit, amount, y, rest, above, below, surplus, give, lack, per_y, per_rest, value, tau]
    }

    /// Moves an offer to an earlier place.
    fn keep(&mut self, at: usize, to: usize) {
        let kept = [
            &mut self.log_limit,
            &mut self.amount,
            &mut self.y,
            &mut self.rest,
            &mut self.above,
            &mut self.below,
            &mut self.value,
            &mut self.tau,
        ];
        for array in kept {
            array[to] = array[at];
        }
    }

    fn truncate(&mut self, count: usize) {
        self.arrays().into_iter().for_each(|array| array.truncate(count));
    }
}

/// The path's point at the offers' surplus: shares and the prices of their bounds.
struct Centre<'a> {
    near: &'a mut Near,
    mu: f64,
}

impl node::Search for Centre<'_> {
    #[inline(always)]
    fn run<C: node::Counting>(self) {
        let Self { near, mu } = self;
        let count = near.amount.len();
        let (surplus, tau) = (&near.surplus[..count], &near.tau[..count]);
        let (y, rest, above, below) =
            (&mut near.y[..count], &mut near.rest[..count], &mut near.above[..count], &mut near.below[..count]);
        for at in 0..count {
            (y[at], rest[at]) = central(surplus[at], mu, tau[at]);
            (above[at], below[at]) = (tau[at] / rest[at], tau[at] / y[at]);
        }
    }
}

/// The offers' answers to the present prices, one after another without regard to books.
struct Respond<'a> {
    near: &'a mut Near,
    mu: f64,
}

impl node::Search for Respond<'_> {
    #[inline(always)]
    fn run<C: node::Counting>(self) {
        let Self { near, mu } = self;
        let count = near.y.len();
        let (y, rest, above, below) = (&near.y[..count], &near.rest[..count], &near.above[..count], &near.below[..count]);
        let (surplus, give, lack) = (&near.surplus[..count], &mut near.give[..count], &mut near.lack[..count]);
        let (out_y, out_rest, tau) = (&mut near.per_y[..count], &mut near.per_rest[..count], &near.tau[..count]);
        // ln(1 - z) by its series; beyond, mu is so wide that the ramp may as well be linear in the logarithm, which `judge` then
        // mends.
        for at in 0..count {
            let (per_y, per_rest) = (1.0 / y[at], 1.0 / rest[at]);
            (out_y[at], out_rest[at]) = (per_y, per_rest);
            let z = mu * y[at];
            let log = -z * (1.0 + z * (0.5 + z * (1.0 / 3.0 + z * (0.25 + z * (0.2 + z * (1.0 / 6.0))))));
            let slope = 1.0 + z * (1.0 + z * (1.0 + z * (1.0 + z * (1.0 + z))));
            give[at] = 1.0 / (mu * slope + above[at] * per_rest + below[at] * per_y);
            lack[at] = surplus[at] + log + tau[at] * (per_y - per_rest);
        }
    }
}

/// A step of all offers.
struct Advance<'a> {
    near: &'a mut Near,
    /// Offers worth less have the most complementarity per value that there is.
    least: f64,
    /// The longest share of the step that prices allow; shortened to what the bounds allow.
    alpha: &'a mut f64,
    /// Mean complementarity after the step.
    gap: &'a mut f64,
}

impl node::Search for Advance<'_> {
    #[inline(always)]
    fn run<C: node::Counting>(self) {
        let Self { near, least, alpha: alpha_out, gap } = self;
        let count = near.y.len();
        let (y, rest, above, below) =
            (&mut near.y[..count], &mut near.rest[..count], &mut near.above[..count], &mut near.below[..count]);
        let (log_step, give, lack) = (&near.surplus[..count], &mut near.give[..count], &mut near.lack[..count]);
        let (per_y, per_rest) = (&mut near.per_y[..count], &near.per_rest[..count]);
        let (value, tau) = (&near.value[..count], &near.tau[..count]);
        for at in 0..count {
            let dy = (log_step[at] + lack[at]) * give[at];
            lack[at] = dy;
            let (by_rest, by_y) = (dy * per_rest[at], dy * per_y[at]);
            let tau = tau[at];
            let above_falls = 1.0 - tau * per_rest[at] / above[at] - by_rest;
            let below_falls = 1.0 - tau * per_y[at] / below[at] + by_y;
            give[at] = larger(larger(by_rest, -by_y), larger(above_falls, below_falls));
        }
        let mut alpha = TO_BOUND / folded(give, TO_BOUND / *alpha_out, larger);
        while alpha > ALPHA_MIN {
            let (mut is_near, mut sum, mut number, mut smallest) = (true, 0.0, 0.0f64, f64::INFINITY);
            for at in 0..count {
                let (dy, tau) = (lack[at], tau[at]);
                let above = above[at] + alpha * ((tau + above[at] * dy) * per_rest[at] - above[at]);
                let below = below[at] + alpha * ((tau - below[at] * dy) * per_y[at] - below[at]);
                let (of_rest, of_y) = (above * (rest[at] - alpha * dy), below * (y[at] + alpha * dy));
                if value[at] >= least {
                    sum += (of_rest + of_y) * value[at];
                    number += 2.0;
                    smallest = smallest.min(of_rest.min(of_y) * value[at]);
                } else {
                    is_near &= of_rest.min(of_y) >= NEAR_PATH * tau;
                }
            }
            if is_near && (number == 0.0 || smallest >= NEAR_PATH * sum / number) {
                break;
            }
            alpha *= SHORTER;
        }
        for at in 0..count {
            let dy = lack[at];
            let tau = tau[at];
            above[at] += alpha * ((tau + above[at] * dy) * per_rest[at] - above[at]);
            below[at] += alpha * ((tau - below[at] * dy) * per_y[at] - below[at]);
            y[at] += alpha * dy;
            rest[at] -= alpha * dy;
            let counts = if value[at] >= least { 1.0 } else { 0.0 };
            give[at] = (above[at] * rest[at] + below[at] * y[at]) * value[at] * counts;
            per_y[at] = counts;
        }
        *alpha_out = alpha;
        let sum = |values: &[f64]| folded(values, 0.0, |sum, value| sum + value);
        *gap = sum(give) / (2.0 * sum(per_y)).max(1.0);
    }
}

/// A maximum that vectors have; the second of two without order.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Sums and maxima are kept apart for so many neighbours, so that vectors of any width give the same result.
const LANES: usize = 8;

#[inline(always)]
fn folded(values: &[f64], first: f64, fold: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [first; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for chunk in whole {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = fold(*lane, value);
        }
    }
    lanes.iter().chain(rest).copied().fold(first, fold)
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

/// Share and rest on the path for a surplus: `s - mu y = tau / (1 - y) - tau / y`.
#[inline(always)]
fn central(s: f64, mu: f64, tau: f64) -> (f64, f64) {
    // By symmetry about the middle of the ramp, solve for the smaller of share and rest, `z`, at a surplus below the middle.
    let middle = s - 0.5 * mu;
    let below = -middle.abs();
    // Without the ramp the equation is quadratic; its root lies below the one sought, and from below Newton's method climbs to it.
    let k = below / tau;
    let mut z = 2.0 / (2.0 - k + (k * k + 4.0).sqrt());
    for _ in 0..4 {
        let rest = 1.0 - z;
        let lacking = below - mu * (z - 0.5) - tau / rest + tau / z;
        z = (z + lacking / (mu + tau / (rest * rest) + tau / (z * z))).min(0.5);
    }
    let z = z.max(1e-300);
    if middle < 0.0 { (z, 1.0 - z) } else { (1.0 - z, z) }
}
