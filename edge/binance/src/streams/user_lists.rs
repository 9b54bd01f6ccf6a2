//! The order lists of an account's stream: pairs of linked orders, from the moment at which both are known until both have ended.

use std::collections::HashMap;

use walras_gateway::ClientOrder;
use walras_types::{InstrumentId, OrderId};

use crate::report;

/// An order of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    pub(crate) order_id: OrderId,
    pub(crate) called: String,
}

impl Leg {
    pub(crate) fn of(order_id: OrderId, called: &ClientOrder) -> Self {
        Self { order_id, called: called.to_string() }
    }
}

/// A list's instrument, number and orders, the earlier one first.
pub(crate) type Known = (InstrumentId, u64, [Leg; 2]);

#[derive(Debug)]
struct List {
    instrument: InstrumentId,
    /// The earlier order first.
    legs: [Leg; 2],
    has_ended: [bool; 2],
}

/// The lists of which an order is open.
#[derive(Debug, Default)]
pub(crate) struct OrderLists {
    /// By their numbers.
    lists: HashMap<u64, List>,
    /// The list of each order.
    of: HashMap<OrderId, u64>,
}

impl OrderLists {
    /// Two orders are linked. Gives their list if it was not known.
    pub(crate) fn begin(&mut self, instrument: InstrumentId, one: Leg, other: Leg) -> Option<Known> {
        let id = report::list_id(one.order_id, other.order_id);
        if self.of.contains_key(&one.order_id) || self.of.contains_key(&other.order_id) {
            return None;
        }
        let legs = if one.order_id < other.order_id { [one, other] } else { [other, one] };
        self.of.extend(legs.iter().map(|leg| (leg.order_id, id)));
        self.lists.insert(id, List { instrument, legs: legs.clone(), has_ended: [false; 2] });
        Some((instrument, id, legs))
    }

    /// An order has ended. Gives its list if both of its orders have.
    pub(crate) fn end(&mut self, order_id: OrderId) -> Option<Known> {
        let id = self.of.remove(&order_id)?;
        let list = self.lists.get_mut(&id)?;
        for (leg, has_ended) in list.legs.iter().zip(&mut list.has_ended) {
            *has_ended |= leg.order_id == order_id;
        }
        if list.has_ended != [true; 2] {
            return None;
        }
        let List { instrument, legs, .. } = self.lists.remove(&id)?;
        Some((instrument, id, legs))
    }
}

#[cfg(test)]
mod tests {
    use walras_types::ClientOrderId;

    use super::*;

    fn leg(id: u64) -> Leg {
        Leg::of(OrderId(id), &ClientOrder::of(ClientOrderId(id + 100), None))
    }

    #[test]
    fn a_list_begins_once_and_is_done_when_both_of_its_orders_are() {
        let mut lists = OrderLists::default();
        let known = (InstrumentId(3), 9, [leg(7), leg(9)]);
        assert_eq!(lists.begin(InstrumentId(3), leg(9), leg(7)), Some(known.clone()));
        assert_eq!(lists.begin(InstrumentId(3), leg(7), leg(9)), None);
        assert_eq!(lists.end(OrderId(8)), None);
        assert_eq!(lists.end(OrderId(7)), None);
        assert_eq!(lists.end(OrderId(7)), None, "an order ends once");
        assert_eq!(lists.end(OrderId(9)), Some(known));
        assert!(lists.of.is_empty() && lists.lists.is_empty());
    }
}
