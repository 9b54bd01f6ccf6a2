//! One incoming order shared among the 16 orders of a level.
//!
//! Before each repetition, untimed, the level is made again; the best, with 15 levels of 16 orders behind it. Then one order comes
//! that trades with all 16, for half of what they show: checked, matched, self-trades prevented, every fill and the answer written
//! out as events. (Sharing by percentage fills the first few in whole, the others fill all in part.)

use walras_order_book::{OrderBook, PriceIndex};
use walras_types::{Allocation, SelfTrade, Side, SizeLots};

use crate::clock::{Clock, ticks};
use crate::driver::{Ring, step};
use crate::plain::shares;
use crate::records::{Op, Record};

/// Orders of a level.
pub const ORDERS: u32 = 16;
const LEVELS: i64 = 16;
const BEST_TICKS: i64 = 10_000;
const TAKER: u32 = 1_000;

/// The allocations that share, by name.
#[must_use]
pub fn allocations() -> [(&'static str, Allocation); 3] {
    let min_lots = SizeLots::new(2);
    [
        ("pro_rata_16", Allocation::ProRata { min_lots }),
        ("top_pro_rata_16", Allocation::TopProRata { top_lots_max: SizeLots::new(50), min_lots }),
        ("split_16", Allocation::Split { fifo_percent: 40, min_lots }),
    ]
}

/// Sizes at the best level: different ones, so that shares leave remainders.
fn size_of(order: u32) -> i64 {
    i64::from(100 + 37 * (order % 5) + 11 * order)
}

fn maker(level: i64, order: u32) -> Record {
    let id = level * 100 + i64::from(order);
    Record { op: Op::Gtc, side: 0, user: order + 1, id, price: BEST_TICKS + level, size: size_of(order) }
}

/// Nanoseconds of each repetition. Fails if an order's share is wrong.
pub fn round<I: PriceIndex>(
    allocation: Allocation,
    repetitions: usize,
    clock: &Clock,
    self_trade: SelfTrade,
) -> anyhow::Result<Vec<f64>> {
    let mut book = OrderBook::<I>::new(allocation);
    let mut ring = Ring::default();
    let mut number = 0;
    let mut apply = |book: &mut OrderBook<I>, ring: &mut Ring, record: &Record| {
        number += 1;
        step(book, ring, number, record, self_trade)
    };
    let mut refused = 0;
    for level in (1..LEVELS).rev() {
        for order in 0..ORDERS {
            refused += apply(&mut book, &mut ring, &maker(level, order));
        }
    }
    let sizes: Vec<u64> = (0..ORDERS).map(|order| size_of(order).cast_unsigned()).collect();
    let quantity = sizes.iter().sum::<u64>() / 2;
    // Under price-time half of the orders would get nothing; every allocation here must reach all.
    let wanted = shares(allocation, &sizes, quantity);
    anyhow::ensure!(wanted.iter().all(|&share| share > 0), "{allocation:?} does not trade with all orders: {wanted:?}");
    let taker = |id| Record { op: Op::Ioc, side: 1, user: TAKER, id, price: BEST_TICKS, size: quantity.cast_signed() };
    let mut samples = Vec::with_capacity(repetitions);
    for repetition in 0..repetitions {
        for order in 0..ORDERS {
            refused += apply(&mut book, &mut ring, &maker(0, order));
        }
        let record = taker(1_000_000 + repetition as i64);
        let written = ring.written();
        let before = ticks();
        refused += apply(&mut book, &mut ring, &record);
        samples.push(clock.ns(ticks() - before));
        let got: Vec<u64> = ring.fills_since(written).map(|fill| fill.size).collect();
        anyhow::ensure!(got == wanted, "{allocation:?} gave {got:?} of {quantity} lots where {wanted:?} is right");
        let is_left = |order: &u32| wanted[*order as usize] < sizes[*order as usize];
        for order in (0..ORDERS).filter(is_left) {
            let cancel = Record { op: Op::Cancel, ..maker(0, order) };
            refused += apply(&mut book, &mut ring, &cancel);
        }
    }
    anyhow::ensure!(refused == 0, "{refused} commands of the sharing bench were refused; the book lost an order");
    anyhow::ensure!(book.best(Side::Sell).map(|price| price.get()) == Some(BEST_TICKS + 1), "the level behind did not stay");
    book.check_invariants();
    Ok(samples)
}
