//! Histories that our own book made: every execution must be found again. And histories that make no sense: nothing may panic.

use std::fmt::Write;

use proptest::prelude::*;
use walras_market_history::Format;
use walras_order_book::{Band, BookEvents, Entry, Fate, Fill, OpenOrder, OrderBook, OwnerId, Party, RemovalCause};
use walras_replay::venue::{VenueOptions, commands};
use walras_replay::{Loaded, Options, Report, run_loaded};
use walras_types::{Allocation, ClientOrderId, OrderId, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce};

/// Writes LOBSTER lines, as NASDAQ would report what the book does.
struct Reporter {
    text: String,
    time_ns: u64,
    executions: u64,
}

fn direction(side: Side) -> i32 {
    match side {
        Side::Buy => 1,
        Side::Sell => -1,
    }
}

impl Reporter {
    fn line(&mut self, kind: u8, order: u64, size: SizeLots, price: PriceTicks, side: Side) {
        let (time_ns, price) = (self.time_ns, price.get() * 100);
        writeln!(self.text, "0.{time_ns:09},{kind},{order},{size},{price},{}", direction(side)).unwrap();
    }
}

impl BookEvents for Reporter {
    fn traded(&mut self, fill: &Fill) {
        self.executions += 1;
        self.line(4, fill.maker.client_order_id.0, fill.size, fill.price, fill.taker_side.opposite());
    }
    fn uncrossed(&mut self, _: PriceTicks, _: SizeLots, _: &Party, _: &Party) {}
    fn removed(&mut self, _: &OpenOrder, _: RemovalCause) {}
    fn reduced(&mut self, _: &OpenOrder, _: SizeLots) {}
    fn taker_reduced(&mut self, _: SizeLots, _: SizeLots) {}
    fn replenished(&mut self, _: OrderId, _: SizeLots) {}
}

#[derive(Clone, Debug)]
enum Wish {
    Order {
        side: Side,
        price: i64,
        size: u64,
        rests: bool,
    },
    /// Of the how manieth order ever.
    Cancel(usize),
    Shrink(usize, u64),
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Buy), Just(Side::Sell)]
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        6 => (side(), 1..9i64, 1..30u64, any::<bool>())
            .prop_map(|(side, price, size, rests)| Wish::Order { side, price, size, rests }),
        1 => any::<prop::sample::Index>().prop_map(|index| Wish::Cancel(index.index(1 << 10))),
        1 => (any::<prop::sample::Index>(), 1..10u64).prop_map(|(index, by)| Wish::Shrink(index.index(1 << 10), by)),
    ]
}

fn make(wishes: &[Wish]) -> (Reporter, OrderBook) {
    let mut book: OrderBook = OrderBook::new(Allocation::PriceTime);
    let mut reporter = Reporter { text: String::new(), time_ns: 0, executions: 0 };
    for (number, wish) in (1u64..).zip(wishes) {
        reporter.time_ns = number * 10;
        match *wish {
            Wish::Order { side, price, size, rests } => {
                let price = PriceTicks::new(price).unwrap();
                let time_in_force = if rests { TimeInForce::GoodTillCancel } else { TimeInForce::ImmediateOrCancel };
                let name = (OwnerId(0), ClientOrderId(number));
                let entry = Entry::limit(OrderId(number), name, side, price, SizeLots::new(size));
                let entry = Entry { time_in_force, self_trade: SelfTrade::Allow, ..entry };
                let placed = book.submit(&entry, Band::OPEN, &mut reporter).unwrap();
                if let Fate::Rested { open, .. } = placed.fate {
                    reporter.line(1, number, open, price, side);
                }
            }
            Wish::Cancel(at) | Wish::Shrink(at, _) => {
                let number = (at as u64) % number;
                let Some(handle) = book.find(OwnerId(0), ClientOrderId(number)) else { continue };
                let order = book.view(handle);
                let left = match *wish {
                    Wish::Shrink(_, by) => order.open.saturating_sub(SizeLots::new(by)),
                    _ => SizeLots::ZERO,
                };
                if left.is_zero() {
                    book.cancel(handle);
                    reporter.line(3, number, order.open, order.price, order.side);
                } else {
                    book.amend(handle, None, Some(left), Band::OPEN, &mut reporter).unwrap();
                    reporter.line(2, number, order.open - left, order.price, order.side);
                }
            }
        }
    }
    (reporter, book)
}

fn replay(text: &str, format: Format) -> Report {
    let options = Options { timing_rounds: 1, ..Options::default() };
    let loaded = Loaded::read(text.as_bytes(), format, &options, &mut |_| {}).unwrap();
    assert!(commands(&loaded, &VenueOptions::new(format)).unwrap().is_sorted_by_key(|(time, _)| time));
    run_loaded(&loaded, &options, &mut |_| {}).unwrap()
}

proptest! {
    #[test]
    fn what_our_book_did_is_found_again(wishes in prop::collection::vec(wish(), 0..120)) {
        let (reporter, book) = make(&wishes);
        let report = replay(&reporter.text, Format::Lobster);
        let executions = report.executions.unwrap();
        prop_assert_eq!((executions.recorded, executions.at_best, executions.at_head), (reporter.executions, reporter.executions, reporter.executions));
        prop_assert_eq!((executions.aggressors_matched, executions.rests_matched), (executions.aggressors, executions.rests));
        prop_assert_eq!((report.book.trades, report.book.corrections, report.book.orders_missing), (reporter.executions, 0, 0));
        prop_assert_eq!((report.book.open_sizes_differing, report.book.adds_that_traded), (0, 0));
        prop_assert_eq!(report.book.resting_orders_end, book.order_count() as u64);
    }

    #[test]
    fn nonsense_is_counted_and_the_counts_agree(
        lines in prop::collection::vec((0..40u64, 1..=5u8, 1..12u64, 1..40u64, 1..6i64, side()), 0..80),
    ) {
        let mut text = String::new();
        for (time, kind, order, size, price, side) in lines {
            let order = if kind == 5 { 0 } else { order };
            writeln!(text, "0.{time:09},{kind},{order},{size},{},{}", price * 100, direction(side)).unwrap();
        }
        let report = replay(&text, Format::Lobster);
        let executions = report.executions.unwrap();
        prop_assert_eq!(executions.recorded, executions.of_known_orders + executions.of_made_up_orders + executions.of_unknown_orders);
        prop_assert!(executions.at_head <= executions.at_best && executions.at_best <= executions.of_known_orders);
        let causes = executions.causes;
        let misses = causes.entered_before_shown_after + causes.passed_over + causes.not_at_best + causes.order_gone;
        prop_assert_eq!(misses, executions.of_known_orders + executions.of_made_up_orders - executions.at_head - executions.made_up_at_head);
    }
}
