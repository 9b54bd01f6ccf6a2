//! Fig-4.2: one crossing pair among 1,000 orders a side.
//!
//! The other orders never trade, and the pair's sizes are equal, so that the pair leaves nothing: the next pair on the same book meets
//! what the one before it met. An iteration draws one book. Its first pair is timed by itself, because nothing of matching is in the
//! processor's caches then; the mean of the pairs after it is the iteration's latency.

use walras_order_book::{Art, Ladder, OrderBook};
use walras_types::Side;

use crate::answers::{Answer, agreed};
use crate::baseline::Baseline;
use crate::books::{Book, Contender, LimitOrder, Trade};
use crate::draw::{Draw, limit_order};
use crate::measure::Stopwatch;

/// What is compared.
pub const CONTENDERS: [Contender; 4] = [Contender::BaselineCheck, Contender::Baseline, Contender::Ladder, Contender::Art];

const EXPERIMENT: u64 = 42;
const SIZES: (u64, u64) = (1, 20);
/// Where the one pair crosses, between the other bids and the other offers.
const PAIR_PRICE: u64 = 1_000;
const OTHER_BIDS: (u64, u64) = (900, 999);
const OTHER_ASKS: (u64, u64) = (1_001, 1_100);

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Orders on each side, the pair included.
    pub orders_per_side: u64,
    /// Books, and values of the distribution.
    pub iterations: u64,
    /// Pairs behind each value, besides the first.
    pub pairs_per_iteration: u64,
}

impl Setup {
    /// As published; the number of operations behind each mean is not published.
    pub const FULL: Self = Self { orders_per_side: 1_000, iterations: 100, pairs_per_iteration: 100 };
    /// For tests.
    pub const SMALL: Self = Self { orders_per_side: 50, iterations: 5, pairs_per_iteration: 4 };
}

/// Latencies of one contender by iteration, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Of the first pair of a new book.
    pub first_ns: Vec<f64>,
    /// Means of the pairs after it.
    pub means_ns: Vec<f64>,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// By contender.
    pub latencies: [Latencies; CONTENDERS.len()],
    /// Trades of each pair: one, or the run fails.
    pub fills: usize,
}

/// One book's orders.
pub struct Orders {
    /// Those that never trade.
    pub resting: Vec<LimitOrder>,
    /// Bid and offer, the offer last.
    pub pairs: Vec<[LimitOrder; 2]>,
}

/// Latency of every pair on one book, by contender.
pub type PairLatencies = Vec<(Contender, Vec<f64>)>;

/// Runs it, and fails when two books disagree.
pub fn run(setup: &Setup, seed: u64, stopwatch: &Stopwatch) -> anyhow::Result<Outcome> {
    let mut latencies = CONTENDERS.map(|_| Latencies::default());
    for iteration in 0..setup.iterations {
        let (every_pair_ns, _) = every_pair(&orders_of(setup, seed, iteration), stopwatch)?;
        for (contender, times_ns) in every_pair_ns {
            let index = CONTENDERS.iter().position(|one| *one == contender).expect("only contenders are timed");
            let following = &times_ns[1..];
            latencies[index].first_ns.push(times_ns[0]);
            latencies[index].means_ns.push(following.iter().sum::<f64>() / following.len() as f64);
        }
    }
    Ok(Outcome { latencies, fills: 1 })
}

/// The orders of an iteration.
#[must_use]
pub fn orders_of(setup: &Setup, seed: u64, iteration: u64) -> Orders {
    orders(setup, &mut Draw::new(seed, EXPERIMENT, iteration))
}

/// Times every pair on every contender's book, and fails when two disagree.
pub fn every_pair(orders: &Orders, stopwatch: &Stopwatch) -> anyhow::Result<(PairLatencies, Answer)> {
    let (mut latencies_ns, mut answers) = (Vec::new(), Vec::new());
    // Who goes first changes with the draw, so that nobody always finds the caches as one other left them.
    let first = orders.resting.first().map_or(0, |order| order.size.get() as usize);
    for turn in 0..CONTENDERS.len() {
        let contender = CONTENDERS[(turn + first) % CONTENDERS.len()];
        let (times_ns, answer) = match contender {
            Contender::BaselineCheck => check_alone(orders, stopwatch),
            Contender::Baseline => enter::<Baseline>(orders, stopwatch),
            Contender::Ladder => enter::<OrderBook<Ladder>>(orders, stopwatch),
            Contender::Art => enter::<OrderBook<Art>>(orders, stopwatch),
        };
        latencies_ns.push((contender, times_ns));
        answers.push((contender, answer));
    }
    let answer = agreed(&answers)?.clone();
    let (trades, pairs) = (answer.trades.len(), orders.pairs.len());
    anyhow::ensure!(trades == pairs, "{trades} trades where {pairs} pairs cross");
    Ok((latencies_ns, answer))
}

/// A book's orders, sides alternating, then the pairs.
fn orders(setup: &Setup, draw: &mut Draw) -> Orders {
    let mut ids = 1..;
    let mut id = || ids.next().expect("ids do not run out");
    let mut resting = Vec::new();
    for _ in 1..setup.orders_per_side {
        resting.push(draw.order(id(), Side::Buy, OTHER_BIDS, SIZES));
        resting.push(draw.order(id(), Side::Sell, OTHER_ASKS, SIZES));
    }
    let mut pair = || {
        let size = draw.between(SIZES.0, SIZES.1);
        Side::BOTH.map(|side| limit_order(id(), side, PAIR_PRICE, size))
    };
    let pairs = (0..=setup.pairs_per_iteration).map(|_| pair()).collect();
    Orders { resting, pairs }
}

/// The baseline has added both orders of a pair when its check for trades begins.
fn check_alone(orders: &Orders, stopwatch: &Stopwatch) -> (Vec<f64>, Answer) {
    each_pair(orders, |book: &mut Baseline, bid, ask, trades| {
        book.apply(bid);
        book.apply(ask);
        stopwatch.time_on(book, trades, Baseline::check_for_trades)
    })
}

/// The bid stands in the book when the offer enters.
fn enter<B: Book>(orders: &Orders, stopwatch: &Stopwatch) -> (Vec<f64>, Answer) {
    each_pair(orders, |book: &mut B, bid, ask, trades| {
        book.add(bid);
        stopwatch.time_on(book, trades, |book, trades| book.submit(ask, trades))
    })
}

/// Builds a book and times each pair on it.
fn each_pair<B: Book>(
    orders: &Orders,
    mut timed: impl FnMut(&mut B, &LimitOrder, &LimitOrder, &mut Vec<Trade>) -> f64,
) -> (Vec<f64>, Answer) {
    let mut book = B::with_room(orders.resting.len() + 2);
    for order in &orders.resting {
        book.add(order);
    }
    let (mut trades, mut trades_of_pair) = (Vec::with_capacity(orders.pairs.len()), Vec::with_capacity(4));
    let mut times_ns = Vec::with_capacity(orders.pairs.len());
    for [bid, ask] in &orders.pairs {
        times_ns.push(timed(&mut book, bid, ask, &mut trades_of_pair));
        trades.append(&mut trades_of_pair);
    }
    (times_ns, Answer { lots_cleared: 0, trades, left: book.listing() })
}
