//! Operations on a book, over each price index, beside the naive book.

use walras_order_book::{Art, Becomes, Condition, Ladder, OrderBook, OwnerId};
use walras_types::limits::{PRICE_TICKS_MAX, SIZE_LOTS_MAX};
use walras_types::{Allocation, ClientOrderId, Display, PostOnly, SelfTrade, Side, SizeLots, TimeInForce, TimeNs, Trail};

use crate::Choices;
use crate::driver::{Answer, Book, Name, Venue, View};
use crate::generate::{Asked, Op, Price, WaitsFor};
use crate::naive::NaiveBook;

/// Most operations of one input: the naive book is quadratic.
const OPS_MAX: usize = 250;

/// The books do the same as the model, and look the same, after every operation.
pub fn order_book(bytes: &[u8]) {
    let c = &mut Choices::of_bytes(bytes);
    let allocation = allocation(c);
    let mut naive = Venue::new(NaiveBook::new(allocation));
    let mut ladder = Venue::new(OrderBook::<Ladder>::new(allocation));
    let mut art = Venue::new(OrderBook::<Art>::with_hash_seed(allocation, c.any()));
    for _ in 0..OPS_MAX {
        if c.is_spent() {
            break;
        }
        let op = op(c);
        let expected = naive.apply(&op);
        let view = naive.book.view();
        follow(&mut ladder, &op, &naive, &expected, &view);
        follow(&mut art, &op, &naive, &expected, &view);
    }
}

fn follow<B: Book>(venue: &mut Venue<B>, op: &Op, naive: &Venue<NaiveBook>, expected: &Answer, view: &View) {
    let answer = venue.apply(op);
    assert_eq!(venue.tape, naive.tape, "events of {op:?} (left: the book, right: the model)");
    assert_eq!(answer, *expected, "the answer to {op:?} (left: the book, right: the model)");
    assert_eq!(venue.book.view(), *view, "the book (left) and the model (right) after {op:?}");
    venue.book.check_invariants();
}

fn allocation(c: &mut Choices<'_>) -> Allocation {
    let lots = |c: &mut Choices<'_>| SizeLots::new(c.within(1, 6));
    match c.below(4) {
        0 => Allocation::PriceTime,
        1 => Allocation::ProRata { min_lots: lots(c) },
        2 => Allocation::TopProRata { top_lots_max: lots(c), min_lots: lots(c) },
        _ => Allocation::Split { fifo_percent: c.within(0, 100) as u8, min_lots: lots(c) },
    }
}

fn name(c: &mut Choices<'_>) -> Name {
    let both = c.byte();
    (OwnerId(u32::from(both & 3)), ClientOrderId(u64::from(both >> 2 & 15)))
}

fn price(c: &mut Choices<'_>) -> Price {
    match c.weighted(&[30, 4, 1, 1]) {
        0 => Price::Near(c.within(0, 10) as i64 - 5),
        1 => Price::Near(c.within(0, 10_000) as i64 - 5_000),
        2 => Price::At(c.within(1, 3) as i64),
        _ => Price::At(PRICE_TICKS_MAX - c.below(3) as i64),
    }
}

fn side(c: &mut Choices<'_>) -> Side {
    c.pick(&Side::BOTH)
}

fn small_size(c: &mut Choices<'_>) -> u64 {
    if c.weighted(&[20, 4]) == 0 { c.within(1, 12) } else { c.within(1, 100) }
}

fn band(c: &mut Choices<'_>) -> Option<i64> {
    (c.weighted(&[4, 1]) == 1).then(|| c.below(6) as i64)
}

fn asked(c: &mut Choices<'_>) -> Asked {
    let (name, side, price) = (name(c), side(c), price(c));
    let size = if c.weighted(&[24, 1]) == 0 { small_size(c) } else { SIZE_LOTS_MAX - c.below(2) };
    let time_in_force = match c.weighted(&[4, 1, 2, 2, 2]) {
        0 => TimeInForce::GoodTillCancel,
        1 => TimeInForce::Day,
        2 => TimeInForce::GoodTill(TimeNs(c.below(40))),
        3 => TimeInForce::ImmediateOrCancel,
        _ => TimeInForce::FillOrKill,
    };
    let trigger = (c.weighted(&[4, 1]) == 1).then(|| {
        let waits_for = match c.weighted(&[2, 1]) {
            0 => WaitsFor::Price(self::price(c), c.pick(&[Condition::Stop, Condition::TakeProfit])),
            _ if c.one_in(2) => WaitsFor::Trail(Trail::Ticks(c.within(1, 8) as u32)),
            _ => WaitsFor::Trail(Trail::Ppm(c.within(1, 60_000) as u32)),
        };
        (waits_for, c.pick(&[Becomes::Limit, Becomes::Market]))
    });
    let is_immediate = matches!(time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill)
        || matches!(trigger, Some((_, Becomes::Market)));
    let post_only = [PostOnly::Off, PostOnly::Reject, PostOnly::Reprice][c.weighted(&[6, 1, 1])];
    let post_only = if is_immediate { PostOnly::Off } else { post_only };
    let display = match c.weighted(&[3, 2, 1]) {
        _ if is_immediate => Display::Full,
        0 => Display::Full,
        1 => {
            // Two huge orders that meet trade once a slice: keep the number of slices small.
            let peak = c.within(1, 7).max(size / 100);
            if peak < size { Display::Iceberg { peak: SizeLots::new(peak) } } else { Display::Full }
        }
        _ => Display::Hidden,
    };
    let may_have_minimum = post_only == PostOnly::Off && time_in_force != TimeInForce::FillOrKill;
    let min_size = (c.weighted(&[6, 1]) == 1 && may_have_minimum).then(|| SizeLots::new(c.within(1, 12).min(size)));
    let self_trade = c.pick(&[
        SelfTrade::CancelNewest,
        SelfTrade::CancelOldest,
        SelfTrade::CancelBoth,
        SelfTrade::Decrement,
        SelfTrade::Allow,
        SelfTrade::Allow,
    ]);
    Asked { name, side, price, size, time_in_force, post_only, display, min_size, self_trade, trigger }
}

fn op(c: &mut Choices<'_>) -> Op {
    match c.weighted(&[120, 24, 32, 2, 2, 1, 20, 2, 5, 3, 2, 6, 2, 8]) {
        0 => Op::Enter(asked(c), band(c)),
        1 => Op::Cancel(name(c)),
        2 => Op::Amend {
            name: name(c),
            price: (c.below(2) == 1).then(|| price(c)),
            size: (c.below(2) == 1).then(|| small_size(c)),
            band: band(c),
        },
        3 => Op::CancelAll(OwnerId(c.below(4) as u32), (c.below(2) == 1).then(|| side(c))),
        4 => Op::Expire(TimeNs(c.below(40))),
        5 if c.one_in(2) => Op::EndDayInSteps(c.within(1, 40)),
        5 => Op::EndDay,
        6 => Op::Trigger(band(c)),
        7 => Op::Collect,
        8 => Op::Uncross(price(c)),
        9 => Op::Restart(c.any()),
        10 => Op::MoveTo(match c.below(4) {
            0 => PRICE_TICKS_MAX - c.below(5_000) as i64,
            1 => 1 << 39,
            2 => c.within(1, 20_000) as i64,
            _ => 100,
        }),
        11 => Op::MoveBy(c.within(0, 12) as i64 - 6),
        12 => Op::MoveBy(c.within(0, 8_400) as i64 - 4_200),
        _ => Op::Retrigger { name: name(c), trigger: price(c), price: price(c), size: small_size(c) },
    }
}
