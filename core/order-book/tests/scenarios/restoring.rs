//! Restoring a book refuses states that no book can have.

use proptest::prelude::*;
use proptest::sample::Index;
use walras_order_book::{Becomes, Condition, Ladder, OpenOrder, OrderBook, OwnerId, Seniority, Trigger};
use walras_types::{
    Allocation, ClientOrderId, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce, TimeNs,
};

use crate::driver::{Book, Venue, kept};
use crate::generate::op;

fn order(id: u64) -> OpenOrder {
    OpenOrder {
        order_id: OrderId(id),
        client_order_id: ClientOrderId(id),
        owner: OwnerId(0),
        side: Side::Buy,
        price: PriceTicks::saturating(100),
        open: SizeLots::new(10),
        shown: SizeLots::new(10),
        time_in_force: TimeInForce::GoodTillCancel,
        display: Display::Full,
        trigger: None,
        post_only: PostOnly::Off,
        min_size: None,
        self_trade: SelfTrade::CancelNewest,
        seniority: Seniority::Joined,
    }
}

/// As many open orders as places, then a hundredth of it: copied, then listed.
#[test]
fn orders_that_are_kept_stay_as_they_were() {
    let trigger = Some(Trigger::fixed(PriceTicks::MAX, Condition::Stop, Becomes::Limit));
    let orders: Vec<OpenOrder> = (1..=300)
        .map(|id| match id {
            1..=100 => order(id),
            101..=150 => OpenOrder { display: Display::Iceberg { peak: SizeLots::new(4) }, shown: SizeLots::new(3), ..order(id) },
            151..=200 => OpenOrder { display: Display::Hidden, shown: SizeLots::ZERO, ..order(id) },
            _ => OpenOrder { trigger, shown: SizeLots::ZERO, ..order(id) },
        })
        .collect();
    let mut book =
        OrderBook::<Ladder>::restore(Allocation::PriceTime, 0, None, orders.into_iter()).expect("nothing is wrong with it");
    let (all, many) = (Book::view(&book).orders, book.freeze());
    for id in 1..=297 {
        let handle = book.find(OwnerId(0), ClientOrderId(id)).expect("it is open");
        book.cancel(handle);
    }
    let (left, few) = (Book::view(&book).orders, book.freeze());
    book.cancel(book.find(OwnerId(0), ClientOrderId(300)).expect("it is open"));
    assert_eq!((all.len(), left.len()), (300, 3));
    assert_eq!(kept(&many), all);
    assert_eq!(kept(&few), left);
}

#[test]
fn a_damaged_snapshot_is_refused_with_its_problem() {
    let lots = SizeLots::new;
    let trigger = Trigger::fixed(PriceTicks::MIN, Condition::Stop, Becomes::Limit);
    let stop = OpenOrder { trigger: Some(trigger), shown: lots(0), ..order(2) };
    let market = OpenOrder { trigger: Some(Trigger { becomes: Becomes::Market, ..trigger }), ..stop };
    let iceberg = OpenOrder { display: Display::Iceberg { peak: lots(4) }, shown: lots(3), ..order(2) };
    for good in [order(2), stop, market, iceberg] {
        let first = OpenOrder { seniority: Seniority::SetThePrice, ..order(1) };
        let book: OrderBook<Ladder> =
            OrderBook::restore(Allocation::PriceTime, 0, None, [first, good].into_iter()).expect("nothing is wrong with it");
        book.check_invariants();
        assert_eq!(Book::view(&book).orders, [first, good]);
    }
    let cases = [
        (OpenOrder { open: lots(0), ..order(2) }, "its size is out of range"),
        (OpenOrder { open: lots(1 << 36), ..order(2) }, "its size is out of range"),
        (OpenOrder { time_in_force: TimeInForce::ImmediateOrCancel, ..order(2) }, "it cannot rest"),
        (OpenOrder { time_in_force: TimeInForce::FillOrKill, ..order(2) }, "it cannot rest"),
        (OpenOrder { display: Display::Iceberg { peak: lots(0) }, ..order(2) }, "its peak is zero"),
        (OpenOrder { min_size: Some(lots(1)), ..order(2) }, "its minimum was met already, or exceeds its size"),
        (OpenOrder { min_size: Some(lots(11)), ..stop }, "its minimum was met already, or exceeds its size"),
        (OpenOrder { client_order_id: ClientOrderId(1), ..order(2) }, "its name is in use, or the book is full"),
        (OpenOrder { seniority: Seniority::SetThePrice, ..order(2) }, "it cannot have set its price"),
        (OpenOrder { seniority: Seniority::SetThePrice, ..stop }, "it cannot have set its price"),
        (OpenOrder { shown: lots(1), ..stop }, "it shows what none may see"),
        (OpenOrder { display: Display::Hidden, ..order(2) }, "it shows what none may see"),
        (OpenOrder { shown: lots(0), ..order(2) }, "it shows more than it may, or nothing"),
        (OpenOrder { shown: lots(5), ..iceberg }, "it shows more than it may, or nothing"),
        (OpenOrder { shown: lots(9), ..order(2) }, "it shows less than it has and is no iceberg"),
    ];
    for (bad, problem) in cases {
        let restored = OrderBook::<Ladder>::restore(Allocation::PriceTime, 0, None, [order(1), bad].into_iter());
        let error = restored.map(|_| ()).expect_err(problem);
        assert_eq!((error.order_index, error.problem), (1, problem), "{bad:?}");
        assert!(error.to_string().contains("the snapshot is damaged"), "{error}");
    }
}

/// What happens to one field.
const DAMAGES: [fn(&mut OpenOrder, u64); 9] = [
    |order, any| order.open = SizeLots::new(any % 20),
    |order, any| order.shown = SizeLots::new(any % 20),
    |order, any| order.display = Display::Iceberg { peak: SizeLots::new(any % 5) },
    |order, _| order.display = Display::Hidden,
    |order, any| {
        order.trigger = PriceTicks::new(any as i64 % 200).map(|price| Trigger::fixed(price, Condition::Stop, Becomes::Limit))
    },
    |order, any| order.min_size = Some(SizeLots::new(any % 20)),
    |order, _| order.seniority = Seniority::SetThePrice,
    |order, any| order.time_in_force = TimeInForce::GoodTill(TimeNs(any % 50)),
    |order, any| order.client_order_id = ClientOrderId(any % 16),
];

proptest! {
    #[test]
    fn a_restored_book_never_contradicts_itself(
        ops in prop::collection::vec(op(), 1..80),
        which in any::<Index>(),
        damage in prop::sample::select(&DAMAGES[..]),
        value in 0u64..1000,
    ) {
        let mut venue = Venue::new(OrderBook::<Ladder>::new(Allocation::PriceTime));
        for op in &ops {
            venue.apply(op);
        }
        let mut orders = Book::view(&venue.book).orders;
        if orders.is_empty() {
            return Ok(());
        }
        let index = which.index(orders.len());
        damage(&mut orders[index], value);
        if let Ok(book) = OrderBook::<Ladder>::restore(Allocation::PriceTime, 0, None, orders.into_iter()) {
            book.check_invariants();
        }
    }
}
