//! Fill-or-kill orders and minimum sizes in deep books: exact up to a number of resting orders, refused beyond it.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use walras_order_book::{Art, Band, Entry, Fate, Ladder, OrderBook, OwnerId, Placed, Refusal};
use walras_types::limits::FILL_CHECK_ORDERS_MAX;
use walras_types::{Allocation, ClientOrderId, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce};

use crate::driver::Book;
use crate::naive::NaiveBook;
use crate::tape::Tape;

const TAKER: OwnerId = OwnerId(1);

fn entry(id: u64, side: Side, price: i64, lots: u64) -> Entry {
    Entry {
        order_id: OrderId(id),
        client_order_id: ClientOrderId(id),
        owner: OwnerId(2),
        side,
        price: PriceTicks::new(price).expect("a price"),
        size: SizeLots::new(lots),
        time_in_force: TimeInForce::GoodTillCancel,
        post_only: PostOnly::Off,
        display: Display::Full,
        min_size: None,
        self_trade: SelfTrade::CancelNewest,
        trigger: None,
    }
}

/// Enters `entry` into a copy of each kind of book that holds `resting`, and wants the same of all.
fn enter(allocation: Allocation, resting: &[Entry], entry: &Entry) -> Result<Placed, Refusal> {
    let expected = enter_into(NaiveBook::new(allocation), resting, entry);
    assert_eq!(enter_into(OrderBook::<Ladder>::new(allocation), resting, entry), expected, "the book over a ladder (left)");
    assert_eq!(enter_into(OrderBook::<Art>::new(allocation), resting, entry), expected, "the book over a radix tree (left)");
    expected.0
}

fn enter_into(mut book: impl Book, resting: &[Entry], entry: &Entry) -> (Result<Placed, Refusal>, usize) {
    let mut tape = Tape::default();
    for order in resting {
        book.submit(order, Band::OPEN, &mut tape).expect("it rests");
    }
    assert!(tape.0.is_empty(), "what rests did not trade");
    let placed = book.submit(entry, Band::OPEN, &mut tape);
    book.check_invariants();
    (placed, tape.0.len())
}

fn dust(count: u32) -> Vec<Entry> {
    (0..u64::from(count)).map(|id| entry(id + 1, Side::Sell, 100 + (id % 3) as i64, 1)).collect()
}

fn fill_or_kill(lots: u64) -> Entry {
    Entry { owner: TAKER, time_in_force: TimeInForce::FillOrKill, ..entry(1 << 40, Side::Buy, 110, lots) }
}

#[test]
fn a_fill_or_kill_order_may_meet_so_many_orders_and_no_more() {
    let max = u64::from(FILL_CHECK_ORDERS_MAX);
    let book = dust(FILL_CHECK_ORDERS_MAX + 1);
    let enter = |lots| enter(Allocation::PriceTime, &book, &fill_or_kill(lots));
    assert_eq!(enter(max).unwrap().fate, Fate::Filled);
    assert_eq!(enter(max + 1).unwrap_err(), Refusal::FillCheckTooDeep);
    // That the whole book does not hold as much is not known either.
    assert_eq!(enter(max + 2).unwrap_err(), Refusal::FillCheckTooDeep);
}

#[test]
fn a_book_with_few_orders_decides_exactly() {
    let max = u64::from(FILL_CHECK_ORDERS_MAX);
    let book = dust(FILL_CHECK_ORDERS_MAX);
    assert_eq!(enter(Allocation::PriceTime, &book, &fill_or_kill(max)).unwrap().fate, Fate::Filled);
    assert_eq!(enter(Allocation::PriceTime, &book, &fill_or_kill(max + 1)).unwrap_err(), Refusal::FillOrKillUnfillable);
}

#[test]
fn a_minimum_is_checked_as_deep_as_itself() {
    let max = u64::from(FILL_CHECK_ORDERS_MAX);
    let book = dust(2 * FILL_CHECK_ORDERS_MAX);
    let with_min =
        |min| Entry { min_size: Some(SizeLots::new(min)), time_in_force: TimeInForce::GoodTillCancel, ..fill_or_kill(2 * max) };
    assert_eq!(enter(Allocation::PriceTime, &book, &with_min(max)).unwrap().fate, Fate::Filled);
    assert_eq!(enter(Allocation::PriceTime, &book, &with_min(max + 1)).unwrap_err(), Refusal::FillCheckTooDeep);
}

fn resting() -> impl Strategy<Value = Entry> {
    let display = prop_oneof![
        8 => Just(Display::Full),
        1 => Just(Display::Hidden),
        1 => Just(Display::Iceberg { peak: SizeLots::new(1) }),
    ];
    // Seldom the taker's own, as most self-trade modes end the check there.
    let owner = prop_oneof![1_000 => Just(OwnerId(2)), 1 => Just(TAKER)];
    (0i64..3, 2u64..4, display, owner).prop_map(|(tick, lots, display, owner)| Entry {
        display,
        owner,
        ..entry(0, Side::Sell, 100 + tick, lots)
    })
}

fn taker() -> impl Strategy<Value = Entry> {
    let lots = 1_200u64..2_800;
    let self_trade = prop::sample::select(vec![
        SelfTrade::CancelNewest,
        SelfTrade::CancelOldest,
        SelfTrade::CancelBoth,
        SelfTrade::Decrement,
        SelfTrade::Allow,
    ]);
    (lots, 101i64..103, self_trade, any::<bool>()).prop_map(|(lots, price, self_trade, is_all)| {
        let taker = Entry { price: PriceTicks::new(price).expect("a price"), self_trade, ..fill_or_kill(lots) };
        match is_all {
            true => taker,
            false => Entry {
                time_in_force: TimeInForce::ImmediateOrCancel,
                min_size: Some(taker.size),
                size: SizeLots::new(4_000),
                ..taker
            },
        }
    })
}

const ALLOCATIONS: [Allocation; 3] = [
    Allocation::PriceTime,
    Allocation::ProRata { min_lots: SizeLots::new(1) },
    Allocation::Split { fifo_percent: 40, min_lots: SizeLots::new(2) },
];

/// Draws deep books and takers until every outcome was seen often, and wants the same of the books and the model.
#[test]
fn deep_books_decide_as_the_model() {
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let books = prop::collection::vec(resting(), 950..1_300);
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for round in 0..60 {
        let mut resting = books.new_tree(&mut runner).unwrap().current();
        for (id, order) in resting.iter_mut().enumerate() {
            order.order_id = OrderId(id as u64 + 1);
            order.client_order_id = ClientOrderId(id as u64 + 1);
        }
        let taker = taker().new_tree(&mut runner).unwrap().current();
        let outcome = match enter(ALLOCATIONS[round % 3], &resting, &taker) {
            Ok(_) => "taken",
            Err(Refusal::FillCheckTooDeep) => "too deep",
            Err(Refusal::FillOrKillUnfillable | Refusal::MinSizeUnfillable) => "unfillable",
            Err(refusal) => panic!("{refusal:?}"),
        };
        *seen.entry(outcome).or_default() += 1;
    }
    assert!(seen.len() == 3 && seen.values().all(|count| *count >= 4), "{seen:?}");
}
