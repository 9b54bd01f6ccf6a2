//! The naive engine's linked orders: two of which one cancels the other.

use walras_types::*;
use walras_wire::*;

use super::{Market, Model, Order, Outcomes, ensure};

impl Market {
    pub fn pair_of(&self, id: OrderId) -> Option<[OrderId; 2]> {
        self.pairs.iter().find(|pair| pair.contains(&id)).copied()
    }

    pub fn is_second(&self, id: OrderId) -> bool {
        self.pairs.iter().any(|pair| pair[1] == id)
    }

    /// What an order has reserved. Of a pair the first has reserved the larger of both, and the second nothing.
    pub fn reserved_by(&self, order: &Order) -> i128 {
        let alone = |o: &Order| self.reserve(o.side, o.price, o.open);
        match self.pair_of(order.id) {
            _ if !order.counts => 0,
            None => alone(order),
            Some([_, second]) if second == order.id => 0,
            Some([_, second]) => self.orders.iter().find(|o| o.id == second).map_or(0, alone).max(alone(order)),
        }
    }
}

impl Model {
    pub(super) fn new_linked(&mut self, c: &LinkedOrder, id: OrderId, events: &mut Vec<Event>) -> Outcomes {
        ensure(self.version >= 13, RejectReason::NeedsLaterVersion)?;
        let order = c.order();
        self.active(order.account)?;
        let m = self.market(order.instrument)?;
        if c.link() == Link::Exit {
            return self.new_exit(m, &order, c.other(), id, events);
        }
        let other = *self.markets[m].named(order.account, c.other()).ok_or(RejectReason::LinkInvalid)?;
        let OrderTerms { side, size, order_type, .. } = order.terms;
        let waits = order_type.trigger().is_some() || order_type.trail().is_some();
        let takes_nothing = matches!(order_type, OrderType::Limit { post_only: PostOnly::Reject | PostOnly::Reprice, .. });
        let market = &self.markets[m];
        let is_free = market.pair_of(other.id).is_none() && !market.in_bracket(other.id);
        let is_awaited = market.is_awaited(order.account, order.client_order_id);
        let may_be = side == other.side && size.get() == other.open && is_free && !is_awaited;
        ensure(may_be && (waits || (takes_nothing && other.trigger.is_some())), RejectReason::LinkInvalid)?;
        self.set_counts(m, other.id, false);
        self.new_order(&order, id, events)?;
        self.set_counts(m, other.id, true);
        self.markets[m].pairs.push(if waits { [other.id, id] } else { [id, other.id] });
        Ok(())
    }

    fn set_counts(&mut self, m: usize, id: OrderId, counts: bool) {
        self.markets[m].orders.iter_mut().find(|o| o.id == id).unwrap().counts = counts;
    }

    /// Cancels what is linked with the orders that traded, shrank or left, by the events from `from` on, and lets exits follow entries.
    pub(super) fn settle_links(&mut self, m: usize, from: usize, events: &mut Vec<Event>) {
        let (mut at, mut concerned) = (from, Vec::new());
        loop {
            if at == events.len() {
                if concerned.is_empty() {
                    return;
                }
                let next = concerned.remove(0);
                self.settle_bracket(m, next, events);
                continue;
            }
            let event = events[at];
            self.note(m, &event, &mut concerned);
            let parted = match &events[at] {
                Event::Order(OrderEvent::Traded(e)) => vec![e.maker.order_id, e.taker.order_id],
                Event::Order(OrderEvent::Cancelled(e)) => vec![e.order_id],
                Event::Order(OrderEvent::Reduced(e)) => vec![e.order_id],
                _ => Vec::new(),
            };
            for id in parted {
                self.cancel_partner(m, id, events);
            }
            at += 1;
        }
    }

    pub(super) fn cancel_partner(&mut self, m: usize, id: OrderId, events: &mut Vec<Event>) {
        let Some(pair) = self.markets[m].pair_of(id) else { return };
        let other = if pair[0] == id { pair[1] } else { pair[0] };
        if self.markets[m].orders.iter().any(|o| o.id == other) {
            self.cancel(m, other, CancelReason::Linked, events);
        }
        self.markets[m].pairs.retain(|one| *one != pair);
    }
}
