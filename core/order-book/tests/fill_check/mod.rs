//! Fill-or-kill orders and minimum sizes in deep books: exact up to a number of resting orders, refused beyond it.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use walras_order_book::{Art, Band, Entry, Fate, Ladder, OrderBook, OwnerId, Placed, Refusal};
use walras_types::limits::{FILL_CHECK_LEVELS_MAX, FILL_CHECK_ORDERS_MAX, SHARED_LEVEL_ORDERS_MAX};
use walras_types::{Allocation, ClientOrderId, Display, OrderId, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce};

use crate::driver::Book;
use crate::naive::NaiveBook;
use crate::tape::Tape;

const TAKER: OwnerId = OwnerId(1);

fn entry(id: u64, side: Side, price: i64, lots: u64) -> Entry {
    let (name, price) = ((OwnerId(2), ClientOrderId(id)), PriceTicks::new(price).expect("a price"));
    Entry::limit(OrderId(id), name, side, price, SizeLots::new(lots))
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
fn who_meets_nobody_of_its_own_is_decided_by_levels() {
    let book = dust(3 * FILL_CHECK_ORDERS_MAX);
    let all = u64::from(3 * FILL_CHECK_ORDERS_MAX);
    for allocation in ALLOCATIONS {
        let enter = |lots| enter(allocation, &book, &Entry { self_trade: SelfTrade::Allow, ..fill_or_kill(lots) });
        assert_eq!(enter(all).unwrap().fate, Fate::Filled);
        assert_eq!(enter(all + 1).unwrap_err(), Refusal::FillOrKillUnfillable);
    }
}

#[test]
fn so_many_prices_are_looked_at_and_no_more() {
    let levels = u64::from(FILL_CHECK_LEVELS_MAX);
    let book: Vec<_> = (1..=levels + 1).map(|id| entry(id, Side::Sell, 100 + id as i64, 1)).collect();
    let enter = |book: &[Entry], lots| {
        let taker = Entry { self_trade: SelfTrade::Allow, price: PriceTicks::new(100_000).expect("a price"), ..fill_or_kill(lots) };
        enter(Allocation::PriceTime, book, &taker)
    };
    assert_eq!(enter(&book, levels).unwrap().fate, Fate::Filled);
    assert_eq!(enter(&book, levels + 1).unwrap_err(), Refusal::FillCheckTooDeep);
    assert_eq!(enter(&book[..levels as usize - 1], levels).unwrap_err(), Refusal::FillOrKillUnfillable);
}

#[test]
fn icebergs_are_looked_at_where_they_are_few() {
    let icebergs = |count: u64| -> Vec<Entry> {
        let iceberg = |id| Entry { display: Display::Iceberg { peak: SizeLots::new(1) }, ..entry(id, Side::Sell, 100, 3) };
        (1..=count).map(iceberg).collect()
    };
    let max = u64::from(FILL_CHECK_ORDERS_MAX);
    let enter = |count: u64, lots| {
        enter(Allocation::PriceTime, &icebergs(count), &Entry { self_trade: SelfTrade::Allow, ..fill_or_kill(lots) })
    };
    assert_eq!(enter(max, 3 * max).unwrap().fate, Fate::Filled);
    assert_eq!(enter(max, 3 * max + 1).unwrap_err(), Refusal::FillOrKillUnfillable);
    assert_eq!(enter(max + 1, max + 1).unwrap().fate, Fate::Filled, "their slices are enough");
    assert_eq!(enter(max + 1, max + 2).unwrap_err(), Refusal::FillCheckTooDeep);
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

/// Enters an order into a book of some kind.
type Entering = Box<dyn FnMut(&Entry, &mut Tape)>;

#[test]
fn a_long_level_is_not_shared_until_it_is_shorter() {
    let makers: Vec<_> = (1..=u64::from(SHARED_LEVEL_ORDERS_MAX) + 40).map(|id| entry(id, Side::Sell, 100, 1 + id % 3)).collect();
    let tape = |mut book: Entering, lots: &[u64]| {
        let mut tape = Tape::default();
        makers.iter().for_each(|maker| book(maker, &mut tape));
        for (id, lots) in (1_000_000..).zip(lots) {
            book(&Entry { owner: TAKER, ..entry(id, Side::Buy, 100, *lots) }, &mut tape);
        }
        tape
    };
    fn entering(mut book: impl Book + 'static) -> Entering {
        Box::new(move |entry, tape| assert!(book.submit(entry, Band::OPEN, tape).is_ok()))
    }
    for allocation in ALLOCATIONS {
        for lots in [&[7, 60, 200][..], &[90, 5, 900], &[3_000]] {
            let expected = tape(entering(NaiveBook::new(allocation)), lots);
            assert_eq!(tape(entering(OrderBook::<Ladder>::new(allocation)), lots), expected, "{allocation:?} {lots:?}");
            assert_eq!(tape(entering(OrderBook::<Art>::new(allocation)), lots), expected, "{allocation:?} {lots:?}");
            // In steps the same trades come in the same order.
            if let [lots] = lots {
                let mut book = OrderBook::<Ladder>::new(allocation).with_step_max(7);
                let mut stepped = Tape::default();
                for maker in &makers {
                    book.submit(maker, Band::OPEN, &mut stepped).expect("it rests");
                }
                let mut next = Some(Entry { owner: TAKER, ..entry(1_000_000, Side::Buy, 100, *lots) });
                while let Some(entry) = next {
                    book.submit(&entry, Band::OPEN, &mut stepped).expect("it is taken");
                    book.check_invariants();
                    next = book.take_triggered().map(|taken| taken.entry);
                }
                assert_eq!(stepped, expected, "{allocation:?}");
            }
        }
    }
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
    let lots = 1_200u64..3_200;
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
    let books = prop::collection::vec(resting(), 1_000..1_400);
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for round in 0..90 {
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
