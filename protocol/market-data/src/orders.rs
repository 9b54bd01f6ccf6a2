//! What changed between two looks at a book by order, for those who keep a copy of it.

use walras_types::Side;

use crate::book::PublicOrder;

/// What became of a displayed order. A reader applies the changes in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderChangeKind {
    /// It is not there any more.
    Removed,
    /// It shows another size, and keeps its place.
    Resized,
    /// It stands behind all others of its price.
    Added,
}

/// A change of a displayed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderChange {
    /// What it is.
    pub kind: OrderChangeKind,
    /// The order as it stands now; one that was removed as it stood before.
    pub order: PublicOrder,
    /// Its place on its side, from 1; of one that was removed, where it stood before.
    pub position: usize,
}

/// Appends what makes `now` of `before`, both of one side: best price first, at each price the first in the queue first. Each may be the
/// first part of a longer list. An order that lost its place, or has another price, is removed and added. Costs O(the lengths).
pub fn order_changes(side: Side, before: &[PublicOrder], now: &[PublicOrder], out: &mut Vec<OrderChange>) {
    let begin = out.len();
    let (mut old, mut new) = (0, 0);
    loop {
        let price = match (before.get(old), now.get(new)) {
            (None, None) => break,
            (Some(one), None) | (None, Some(one)) => one.price,
            (Some(was), Some(is)) => match side {
                Side::Buy => was.price.max(is.price),
                Side::Sell => was.price.min(is.price),
            },
        };
        let queue = |orders: &[PublicOrder]| orders.iter().take_while(|order| order.price == price).count();
        let (was, is) = (&before[old..][..queue(&before[old..])], &now[new..][..queue(&now[new..])]);
        queue_changes((old, was), (new, is), out);
        (old, new) = (old + was.len(), new + is.len());
    }
    out[begin..].sort_by_key(|change| change.kind);
}

/// The same of one price, whose queues begin behind so many orders of the side.
fn queue_changes((old, was): (usize, &[PublicOrder]), (new, is): (usize, &[PublicOrder]), out: &mut Vec<OrderChange>) {
    let removed = |at: usize| OrderChange { kind: OrderChangeKind::Removed, order: was[at], position: old + at + 1 };
    // Up to here the queue before is compared. Orders keep their places as long as they come in the order that they had.
    let (mut compared, mut keep_places) = (0, true);
    for (order, position) in is.iter().zip(new + 1..) {
        let place = || was[compared..].iter().position(|other| other.order_id == order.order_id);
        match keep_places.then(place).flatten() {
            Some(skipped) => {
                let at = compared + skipped;
                out.extend((compared..at).map(removed));
                if was[at].shown != order.shown {
                    out.push(OrderChange { kind: OrderChangeKind::Resized, order: *order, position });
                }
                compared = at + 1;
            }
            None => {
                keep_places = false;
                out.push(OrderChange { kind: OrderChangeKind::Added, order: *order, position });
            }
        }
    }
    out.extend((compared..was.len()).map(removed));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::{OrderId, PriceTicks, SizeLots};

    use super::*;

    fn order(side: Side, id: u64, price: i64, shown: u64) -> PublicOrder {
        PublicOrder { order_id: OrderId(id), side, price: PriceTicks::new(price).unwrap(), shown: SizeLots::new(shown) }
    }

    fn is_ahead(one: &PublicOrder, other: &PublicOrder) -> bool {
        match one.side {
            Side::Buy => one.price > other.price,
            Side::Sell => one.price < other.price,
        }
    }

    /// As a reader applies it, who knows orders by their ids.
    fn apply(copy: &mut Vec<PublicOrder>, change: &OrderChange) {
        let at = copy.iter().position(|known| known.order_id == change.order.order_id);
        match change.kind {
            OrderChangeKind::Removed => drop(copy.remove(at.expect("it is there"))),
            OrderChangeKind::Resized => copy[at.expect("it is there")] = change.order,
            OrderChangeKind::Added => {
                assert_eq!(at, None, "{change:?} is there already");
                let behind = copy.iter().position(|known| is_ahead(&change.order, known)).unwrap_or(copy.len());
                copy.insert(behind, change.order);
            }
        }
    }

    fn check(side: Side, before: &[PublicOrder], now: &[PublicOrder]) -> Vec<OrderChange> {
        let mut changes = Vec::new();
        order_changes(side, before, now, &mut changes);
        let mut copy = before.to_vec();
        for change in &changes {
            if change.kind == OrderChangeKind::Removed {
                assert_eq!(before[change.position - 1], change.order, "where it stood");
            } else {
                assert_eq!(now[change.position - 1], change.order, "where it stands");
            }
            apply(&mut copy, change);
        }
        assert_eq!(copy, now, "{changes:?}");
        changes
    }

    /// A side of a book: orders of few ids at few prices, so that they leave, come back, move and change places.
    fn side_of(side: Side) -> impl Strategy<Value = Vec<PublicOrder>> {
        prop::collection::vec((0u64..12, 1i64..5, 1u64..3), 0..14).prop_map(move |drawn| {
            let mut orders: Vec<PublicOrder> = Vec::new();
            for (id, price, shown) in drawn {
                if orders.iter().all(|known| known.order_id != OrderId(id)) {
                    orders.push(order(side, id, price, shown));
                }
            }
            orders.sort_by_key(|order| if side == Side::Buy { -order.price.get() } else { order.price.get() });
            orders
        })
    }

    proptest! {
        #[test]
        fn changes_make_any_list_of_any_other(
            (side, before, now) in prop::sample::select(&Side::BOTH[..])
                .prop_flat_map(|side| (Just(side), side_of(side), side_of(side))),
        ) {
            let changes = check(side, &before, &now);
            prop_assert_eq!(changes.is_empty(), before == now);
            prop_assert!(changes.is_sorted_by_key(|change| change.kind));
        }
    }

    #[test]
    fn an_order_that_keeps_its_place_is_named_only_when_it_shows_something_else() {
        use OrderChangeKind::{Added, Removed, Resized};
        let ask = |id, price, shown| order(Side::Sell, id, price, shown);
        let before = [ask(1, 10, 5), ask(2, 10, 5), ask(3, 10, 5), ask(4, 11, 5)];
        let kinds = |now: &[PublicOrder]| -> Vec<(OrderChangeKind, u64)> {
            check(Side::Sell, &before, now).iter().map(|change| (change.kind, change.order.order_id.0)).collect()
        };
        assert!(kinds(&before).is_empty());
        // The first one trades in part, then in full.
        assert_eq!(kinds(&[ask(1, 10, 2), ask(2, 10, 5), ask(3, 10, 5), ask(4, 11, 5)]), [(Resized, 1)]);
        assert_eq!(kinds(&[ask(2, 10, 5), ask(3, 10, 5), ask(4, 11, 5)]), [(Removed, 1)]);
        // An iceberg's next slice stands behind the others; so does an order that moved to another price.
        assert_eq!(kinds(&[ask(2, 10, 5), ask(3, 10, 5), ask(1, 10, 5), ask(4, 11, 5)]), [(Removed, 1), (Added, 1)]);
        assert_eq!(kinds(&[ask(1, 10, 5), ask(3, 10, 5), ask(4, 11, 5), ask(2, 11, 5)]), [(Removed, 2), (Added, 2)]);
        assert_eq!(kinds(&[]), [(Removed, 1), (Removed, 2), (Removed, 3), (Removed, 4)]);
    }
}
