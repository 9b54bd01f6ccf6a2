//! The book over each price index and the naive model do the same, whatever comes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use walras_order_book::{Amended, Art, Band, Entry, Fate, Ladder, OrderBook, OwnerId, Placed, Refusal};
use walras_types::{Allocation, ClientOrderId, OrderId, PriceTicks, Side, SizeLots};

use crate::driver::{Answer, Book, Name, Phase, Venue};
use crate::generate::{Op, op};
use crate::naive::NaiveBook;
use crate::tape::{Event, Tape};

const ALLOCATIONS: [Allocation; 8] = [
    Allocation::PriceTime,
    Allocation::ProRata { min_lots: SizeLots::new(1) },
    Allocation::ProRata { min_lots: SizeLots::new(3) },
    Allocation::TopProRata { top_lots_max: SizeLots::new(4), min_lots: SizeLots::new(2) },
    Allocation::TopProRata { top_lots_max: SizeLots::new(u64::MAX), min_lots: SizeLots::new(1) },
    Allocation::Split { fifo_percent: 40, min_lots: SizeLots::new(2) },
    Allocation::Split { fifo_percent: 0, min_lots: SizeLots::new(1) },
    Allocation::Split { fifo_percent: 100, min_lots: SizeLots::new(1) },
];

/// How often the books check themselves from inside.
#[derive(Clone, Copy)]
enum Checks {
    Always,
    OnceIn(u64),
}

/// The three books, fed alike.
struct Trio {
    ladder: Venue<OrderBook<Ladder>>,
    art: Venue<OrderBook<Art>>,
    naive: Venue<NaiveBook>,
    checks: Checks,
    steps: u64,
    seen: BTreeMap<&'static str, u64>,
}

impl Trio {
    fn new(allocation: Allocation, checks: Checks) -> Self {
        Self {
            ladder: Venue::new(OrderBook::new(allocation)),
            art: Venue::new(OrderBook::with_hash_seed(allocation, 7)),
            naive: Venue::new(NaiveBook::new(allocation)),
            checks,
            steps: 0,
            seen: BTreeMap::new(),
        }
    }

    fn step(&mut self, op: &Op) {
        self.steps += 1;
        let expected = self.naive.apply(op);
        self.note(&expected);
        let view = self.naive.book.view();
        follow(&mut self.ladder, op, &self.naive, &expected, &view);
        follow(&mut self.art, op, &self.naive, &expected, &view);
        if let [Some(bid), Some(ask)] = view.best {
            assert!(bid < ask || self.naive.phase == Phase::Collecting, "the book is crossed");
        }
        let is_time = match self.checks {
            Checks::Always => true,
            Checks::OnceIn(steps) => self.steps.is_multiple_of(steps),
        };
        if is_time {
            self.naive.book.check_invariants();
            self.ladder.book.check_invariants();
            self.art.book.check_invariants();
            for order in &view.orders {
                assert_eq!(Book::find(&self.ladder.book, (order.owner, order.client_order_id)), Some(*order));
            }
        }
    }

    /// Counts what happened, so that a test can say that everything did.
    fn note(&mut self, answer: &Answer) {
        let events = self.naive.tape.0.iter().map(|event| match event {
            Event::Traded(fill) if fill.taker_side == Side::Buy => "bought",
            Event::Traded(_) => "sold",
            Event::Uncrossed { .. } => "uncrossed",
            Event::Removed { .. } => "removed",
            Event::Reduced { .. } => "reduced",
            Event::TakerReduced { .. } => "taker reduced",
            Event::Replenished { .. } => "replenished",
        });
        let trailed = match answer {
            Answer::Triggered(entered) if entered.iter().any(|(taken, _)| taken.trailed_to.is_some()) => Some("trailed"),
            _ => None,
        };
        for name in events.chain([name_of(answer)]).chain(trailed) {
            *self.seen.entry(name).or_default() += 1;
        }
    }
}

fn follow<B: Book>(venue: &mut Venue<B>, op: &Op, naive: &Venue<NaiveBook>, expected: &Answer, view: &crate::driver::View) {
    let answer = venue.apply(op);
    assert_eq!(venue.tape, naive.tape, "events (left: the book, right: the model)");
    assert_eq!(answer, *expected, "the answer (left: the book, right: the model)");
    assert_eq!(venue.book.view(), *view, "the book (left) and the model (right)");
}

fn name_of(answer: &Answer) -> &'static str {
    let of_placed = |placed: &Result<Placed, Refusal>| match placed {
        Ok(Placed { fate: Fate::Rested { .. }, .. }) => "rested",
        Ok(Placed { fate: Fate::Parked, .. }) => "parked",
        Ok(Placed { fate: Fate::Filled, .. }) => "filled",
        Ok(Placed { fate: Fate::Unfilled { .. }, .. }) => "unfilled",
        Ok(Placed { fate: Fate::SelfTraded { .. }, .. }) => "self-traded",
        Ok(Placed { fate: Fate::Banded { .. }, .. }) => "banded",
        Ok(Placed { fate: Fate::Paused { .. }, .. }) => "paused",
        Err(Refusal::DuplicateClientOrderId) => "duplicate",
        Err(Refusal::PostOnlyWouldTrade) => "post-only",
        Err(Refusal::FillOrKillUnfillable) => "unfillable",
        Err(Refusal::MinSizeUnfillable) => "minimum unfillable",
        Err(Refusal::FillCheckTooDeep) => "too deep",
        Err(Refusal::BookFull) => "full",
    };
    match answer {
        Answer::Nothing => "nothing",
        Answer::Entered(placed) => of_placed(placed),
        Answer::Amended(None) | Answer::Cancelled(None) => "unknown",
        Answer::Amended(Some(Ok(Amended::Kept { .. }))) => "kept",
        Answer::Amended(Some(Ok(Amended::Requeued { placed }))) => match placed.fate {
            Fate::Rested { .. } => "requeued, rested",
            Fate::Filled => "requeued, filled",
            Fate::SelfTraded { .. } => "requeued, self-traded",
            Fate::Banded { .. } => "requeued, banded",
            Fate::Parked | Fate::Paused { .. } | Fate::Unfilled { .. } => "requeued, impossible",
        },
        Answer::Amended(Some(Err(_))) => "amendment refused",
        Answer::Cancelled(Some(_)) => "cancelled",
        Answer::Retriggered(None) => "waits for nothing",
        Answer::Retriggered(Some(_)) => "retriggered",
        Answer::Triggered(entered) if entered.len() > 1 => "cascade",
        Answer::Triggered(entered) => entered.first().map_or("no trigger", |_| "triggered"),
        Answer::Uncrossed(None) => "no uncross",
        Answer::Uncrossed(Some(uncross)) if uncross.imbalance_lots == 0 => "uncross, balanced",
        Answer::Uncrossed(Some(_)) => "uncross, imbalance",
    }
}

proptest! {
    #![proptest_config(Config { cases: 256, max_shrink_iters: 20_000, ..Config::default() })]

    #[test]
    fn the_books_agree_after_every_operation(
        allocation in prop::sample::select(&ALLOCATIONS[..]),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut trio = Trio::new(allocation, Checks::Always);
        for op in &ops {
            trio.step(op);
        }
    }
}

/// A few hundred thousand operations from fixed seeds: books grow older than a property test lets them, and every outcome occurs.
#[test]
fn the_books_agree_for_long() {
    let mut seen = BTreeMap::new();
    for (seed, allocation) in ALLOCATIONS.into_iter().enumerate() {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed as u8 + 1; 32]);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let ops = op();
        let mut trio = Trio::new(allocation, Checks::OnceIn(64));
        for _ in 0..40_000 {
            let op = ops.new_tree(&mut runner).unwrap().current();
            trio.step(&op);
        }
        for (name, count) in trio.seen {
            *seen.entry(name).or_insert(0) += count;
        }
    }
    let expected = [
        "amendment refused",
        "banded",
        "bought",
        "cancelled",
        "cascade",
        "duplicate",
        "filled",
        "kept",
        "minimum unfillable",
        "no trigger",
        "no uncross",
        "nothing",
        "parked",
        "post-only",
        "reduced",
        "removed",
        "replenished",
        "requeued, banded",
        "requeued, filled",
        "requeued, rested",
        "requeued, self-traded",
        "rested",
        "retriggered",
        "self-traded",
        "sold",
        "taker reduced",
        "trailed",
        "triggered",
        "uncross, balanced",
        "uncross, imbalance",
        "uncrossed",
        "unfillable",
        "unfilled",
        "unknown",
        "waits for nothing",
    ];
    assert!(seen.values().all(|count| *count >= 25), "too seldom to mean much: {seen:?}");
    assert!(seen.keys().eq(expected.iter()), "what occurred is not what can occur: {seen:?}");
}

proptest! {
    #![proptest_config(Config { cases: 16, ..Config::default() })]

    /// Thousands of names at once, of few owners and crowded numbers, so that places in the index of names run into each other.
    #[test]
    fn every_name_leads_to_its_order(
        hash_seed in any::<u64>(),
        stride in prop::sample::select(&[1u64, 64, 1 << 20, 1 << 32, 1 << 52][..]),
        names in prop::collection::vec((0u32..3, 0u64..2000), 2000..6000),
    ) {
        let mut book: OrderBook<Ladder> = OrderBook::with_hash_seed(Allocation::PriceTime, hash_seed);
        let mut known: BTreeMap<(u32, u64), OrderId> = BTreeMap::new();
        for (index, (owner, number)) in names.into_iter().enumerate() {
            let name = (OwnerId(owner), ClientOrderId(number * stride));
            let order_id = OrderId(index as u64 + 1);
            match known.remove(&(owner, number)) {
                Some(expected) => prop_assert_eq!(Book::cancel(&mut book, name).map(|order| order.order_id), Some(expected)),
                None => {
                    prop_assert_eq!(Book::find(&book, name), None);
                    let entry = Entry { order_id, ..bid(name) };
                    prop_assert!(book.submit(&entry, Band::OPEN, &mut Tape::default()).is_ok());
                    prop_assert_eq!(book.submit(&entry, Band::OPEN, &mut Tape::default()), Err(Refusal::DuplicateClientOrderId));
                    known.insert((owner, number), order_id);
                }
            }
        }
        book.check_invariants();
        for ((owner, number), order_id) in known {
            let found = Book::find(&book, (OwnerId(owner), ClientOrderId(number * stride)));
            prop_assert_eq!(found.map(|order| order.order_id), Some(order_id));
        }
    }
}

fn bid(name: Name) -> Entry {
    let price = PriceTicks::saturating(1 + name.1.0 as i64 % 7);
    Entry::limit(OrderId(0), name, Side::Buy, price, SizeLots::new(1))
}
