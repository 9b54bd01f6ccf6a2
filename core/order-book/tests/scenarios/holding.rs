//! Orders that are held: no price touches them before they are released.

use walras_order_book::{Band, Becomes, Condition, Entry, Fate, Ladder, OrderBook, OwnerId, Trigger};
use walras_types::{Allocation, ClientOrderId, OrderId, PriceTicks, Side, SizeLots, TimeInForce};

use crate::tape::Tape;

fn entry(id: u64, side: Side, price: i64, trigger: Option<Trigger>) -> Entry {
    let (name, price) = ((OwnerId(id as u32), ClientOrderId(id)), PriceTicks::saturating(price));
    Entry { trigger, ..Entry::limit(OrderId(id), name, side, price, SizeLots::new(5)) }
}

fn stop(price: i64) -> Trigger {
    Trigger::fixed(PriceTicks::saturating(price), Condition::Stop, Becomes::Limit)
}

fn trade(book: &mut OrderBook, id: u64, price: i64) {
    let tape = &mut Tape::default();
    for (id, side) in [(id, Side::Buy), (id + 1, Side::Sell)] {
        let fate = book.submit(&entry(id, side, price, None), Band::OPEN, tape);
        assert!(fate.is_ok(), "{fate:?}");
    }
    assert_eq!(tape.0.len(), 1);
}

#[test]
fn what_is_held_waits_to_be_released_and_then_for_its_trigger() {
    let mut book = OrderBook::<Ladder>::new(Allocation::PriceTime);
    let parked = book.collect(&entry(1, Side::Sell, 80, Some(stop(90).held()))).unwrap();
    assert_eq!(parked.fate, Fate::Parked);
    book.collect(&entry(2, Side::Sell, 80, Some(stop(90)))).unwrap();
    book.collect(&entry(3, Side::Buy, 120, Some(stop(110).held()))).unwrap();
    trade(&mut book, 10, 100);
    book.check_invariants();
    // The one that waits triggers, and those that are held do not.
    trade(&mut book, 20, 90);
    assert_eq!(book.take_triggered().map(|one| one.entry.order_id), Some(OrderId(2)));
    assert_eq!(book.take_triggered(), None);
    // They come last in the book's order, by arrival, and a restored book has them so.
    let mut listed = Vec::new();
    book.for_each_order(|order| listed.push(*order));
    assert_eq!(listed.iter().map(|order| order.order_id.0).collect::<Vec<_>>(), [1, 3]);
    let restored = OrderBook::<Ladder>::restore(Allocation::PriceTime, 0, book.last_price(), listed.iter().copied()).unwrap();
    restored.check_invariants();
    let mut again = Vec::new();
    restored.for_each_order(|order| again.push(*order));
    assert_eq!(again, listed);

    let handle = book.find(OwnerId(1), ClientOrderId(1)).unwrap();
    let released = book.release(handle, SizeLots::new(3));
    assert_eq!((released.open, released.trigger), (SizeLots::new(3), Some(stop(90))));
    book.check_invariants();
    let handle = book.find(OwnerId(1), ClientOrderId(1)).unwrap();
    assert_eq!(book.resize_waiting(handle, SizeLots::new(4)).open, SizeLots::new(4));
    // The last trade touches it already.
    let entry = book.take_triggered().unwrap().entry;
    assert_eq!((entry.order_id, entry.size, entry.trigger), (OrderId(1), SizeLots::new(4), None));
    // One that is held leaves as any order does.
    let handle = book.find(OwnerId(3), ClientOrderId(3)).unwrap();
    assert!(book.cancel(handle).trigger.is_some_and(|trigger| trigger.is_held));
    book.check_invariants();
    assert_eq!(book.order_count(), 0);
}

#[test]
fn the_end_of_a_day_finds_what_is_held() {
    let mut book = OrderBook::<Ladder>::new(Allocation::PriceTime);
    let day = |id, trigger| Entry { time_in_force: TimeInForce::Day, ..entry(id, Side::Sell, 80, Some(trigger)) };
    for (id, trigger) in [(1, stop(90).held()), (2, stop(91)), (3, stop(95).held())] {
        book.collect(&day(id, trigger)).unwrap();
    }
    let (mut looks, tape) = (u64::MAX, &mut Tape::default());
    assert_eq!(book.end_day_from(None, &mut looks, tape), None);
    assert_eq!((tape.0.len(), book.order_count()), (3, 0));
    book.check_invariants();
}
