//! Fig-4.5 and fig-4.6: a sell of 1,000 at 1,000 into books of many sizes.
//!
//! N bids and N offers, prices uniform in [1000, 1100], sizes uniform in [1, 20], all added before any is matched; then what
//! crosses trades. Supply and demand meet near 1050, so about half of either side is left: bids in about [1000, 1050], offers
//! above. The sell's limit is the lowest bid there can be, so it takes every bid it needs: about 1,000 / 10.5 = 95 of them, from
//! the best price down. Of N = 100 only some 50 bids of some 500 lots are left: the sell takes all of them and what is left of it
//! rests.
//!
//! For each iteration a new book is drawn, built and cleared. Just before the timed sell, another book of the same kind makes a
//! rehearsal sell, so that the matching code is in the processor's caches and predictors, as in a running market. The timed book's
//! memory is as the clearing left it. Afterwards a control is timed: one more sell, with a limit too high to trade.

use anyhow::ensure;
use walras_order_book::{Art, Ladder, OrderBook};
use walras_types::Side;

use crate::answers::{Answer, agreed};
use crate::baseline::Baseline;
use crate::books::{Book, Contender, LimitOrder, Trade};
use crate::draw::{Draw, limit_order};
use crate::measure::Stopwatch;

/// What is compared.
pub const CONTENDERS: [Contender; 3] = [Contender::Baseline, Contender::Ladder, Contender::Art];

const EXPERIMENT: u64 = 45;
const REHEARSAL: u64 = 450;
const PRICES: (u64, u64) = (1_000, 1_100);
const SIZES: (u64, u64) = (1, 20);
const SELL_PRICE: u64 = 1_000;
/// No bid is left this high by clearing.
const CONTROL_PRICE: u64 = 1_100;
const REHEARSAL_ORDERS_PER_SIDE: u64 = 500;
/// Lots of the sell: also the most trades that it can make.
pub const SELL_LOTS: u64 = 1_000;

/// How often. The published number is 100.
pub const ITERATIONS: u64 = 100;
/// How often in tests.
pub const ITERATIONS_SMALL: u64 = 3;

/// Orders a side, before clearing: the published range in steps of 1, 2, 5.
pub const SIZES_FULL: [u64; 10] = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];
/// For tests.
pub const SIZES_SMALL: [u64; 3] = [100, 300, 1_000];
/// Fig-4.6 has about 100,000 orders in the book: what clearing leaves of twice as many.
pub const SIZE_DETAIL: u64 = 100_000;

/// The conditions of one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// Bids in the book before the sell.
    pub bids: usize,
    /// Offers in the book before the sell.
    pub asks: usize,
    /// Bids that it traded with.
    pub fills: usize,
    /// Lots that it traded.
    pub lots: u64,
}

/// One size of book.
#[derive(Debug)]
pub struct Outcome {
    /// Orders a side, before clearing.
    pub orders_per_side: u64,
    /// By contender, then iteration, in nanoseconds.
    pub latencies_ns: [Vec<f64>; CONTENDERS.len()],
    /// The same of a sell that trades with nothing and rests.
    pub controls_ns: [Vec<f64>; CONTENDERS.len()],
    /// By iteration; equal for all contenders, or the run fails.
    pub met: Vec<Met>,
}

/// Runs one size, and fails when two books disagree.
pub fn run(orders_per_side: u64, iterations: u64, seed: u64, stopwatch: &Stopwatch) -> anyhow::Result<Outcome> {
    let mut latencies_ns = CONTENDERS.map(|_| Vec::new());
    let mut controls_ns = CONTENDERS.map(|_| Vec::new());
    let mut met = Vec::new();
    for iteration in 0..iterations {
        let rehearsal = orders(REHEARSAL_ORDERS_PER_SIDE, &mut Draw::new(seed, REHEARSAL, iteration));
        let orders = orders(orders_per_side, &mut Draw::new(seed, EXPERIMENT + (orders_per_side << 8), iteration));
        let mut answers = Vec::new();
        for turn in 0..CONTENDERS.len() {
            // The order of the books rotates, so that none always runs after the same other one.
            let index = (turn + iteration as usize) % CONTENDERS.len();
            let (times_ns, answer) = match CONTENDERS[index] {
                Contender::Baseline | Contender::BaselineCheck => sell::<Baseline>(&rehearsal, &orders, stopwatch),
                Contender::Ladder => sell::<OrderBook<Ladder>>(&rehearsal, &orders, stopwatch),
                Contender::Art => sell::<OrderBook<Art>>(&rehearsal, &orders, stopwatch),
            };
            latencies_ns[index].push(times_ns.sell);
            controls_ns[index].push(times_ns.control);
            answers.push((CONTENDERS[index], answer));
        }
        met.push(what_it_met(agreed(&answers)?)?);
    }
    Ok(Outcome { orders_per_side, latencies_ns, controls_ns, met })
}

fn orders(orders_per_side: u64, draw: &mut Draw) -> Vec<LimitOrder> {
    let side = |index| if index % 2 == 0 { Side::Buy } else { Side::Sell };
    (0..2 * orders_per_side).map(|index| draw.order(index + 1, side(index), PRICES, SIZES)).collect()
}

struct TimesNs {
    sell: f64,
    control: f64,
}

fn sell<B: Book>(rehearsal: &[LimitOrder], orders: &[LimitOrder], stopwatch: &Stopwatch) -> (TimesNs, Answer) {
    let (mut rehearsal_book, _) = cleared::<B>(rehearsal);
    let (mut book, lots_cleared) = cleared::<B>(orders);
    sell_twice(&mut rehearsal_book, rehearsal.len(), stopwatch);
    let (times_ns, trades) = sell_twice(&mut book, orders.len(), stopwatch);
    (times_ns, Answer { lots_cleared, trades, left: book.listing() })
}

fn cleared<B: Book>(orders: &[LimitOrder]) -> (B, u64) {
    let mut book = B::with_room(orders.len() + 2);
    for order in orders {
        book.add(order);
    }
    let lots = book.clear();
    (book, lots)
}

/// The sell and the control, into a book whose ids end at `id_last`.
fn sell_twice<B: Book>(book: &mut B, id_last: usize, stopwatch: &Stopwatch) -> (TimesNs, Vec<Trade>) {
    let mut trades = Vec::with_capacity(SELL_LOTS as usize);
    let mut time = |id: usize, price| {
        let order = limit_order(id as u64, Side::Sell, price, SELL_LOTS);
        stopwatch.time_on(book, &mut trades, |book, trades| book.submit(&order, trades))
    };
    let times_ns = TimesNs { sell: time(id_last + 1, SELL_PRICE), control: time(id_last + 2, CONTROL_PRICE) };
    (times_ns, trades)
}

/// Counts the book before the sell from the book after it, and checks the sums of the sell and of the control.
fn what_it_met(answer: &Answer) -> anyhow::Result<Met> {
    let left = |side: Side| answer.left.iter().filter(move |order| order.side == side);
    let (fills, lots) = (answer.trades.len(), answer.lots_traded());
    let sells_resting = 1 + usize::from(lots < SELL_LOTS);
    let first = answer.trades.first().map(|trade| trade.sell_id);
    ensure!(answer.trades.iter().all(|trade| Some(trade.sell_id) == first), "the control traded: it should be too dear");
    ensure!(lots <= SELL_LOTS, "the sell of {SELL_LOTS} lots traded {lots}");
    let best_bid = left(Side::Buy).next();
    ensure!(lots == SELL_LOTS || best_bid.is_none(), "the sell rests although there are bids that it could have taken");
    // The last bid may have traded in part and stand in both lists.
    let twice = usize::from(best_bid.map(|bid| bid.id) == answer.trades.last().map(|trade| trade.buy_id) && best_bid.is_some());
    Ok(Met { bids: left(Side::Buy).count() + fills - twice, asks: left(Side::Sell).count() - sells_resting, fills, lots })
}
