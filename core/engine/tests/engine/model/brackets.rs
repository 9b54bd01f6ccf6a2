//! The naive engine's exits: orders that wait for an entry to fill, and stand for what it has filled.

use walras_types::*;
use walras_wire::*;

use super::{Market, Model, Order, Outcomes, ensure};

/// An entry that is open or to come, and its exits.
#[derive(Clone, Debug)]
pub struct Bracket {
    pub account: AccountId,
    /// What the entry is called.
    pub name: ClientOrderId,
    pub entry: Option<OrderId>,
    pub side: Side,
    pub size: u64,
    pub filled: u64,
    /// How much of it the exits stand for: they are held while it is nothing.
    pub covered: u64,
    pub exits: Vec<OrderId>,
}

impl Market {
    fn bracket_of(&self, id: OrderId) -> Option<usize> {
        self.brackets.iter().position(|b| b.entry == Some(id) || b.exits.contains(&id))
    }

    fn awaiting(&self, account: AccountId, name: ClientOrderId) -> Option<&Bracket> {
        self.brackets.iter().find(|b| (b.account, b.name, b.entry) == (account, name, None))
    }

    pub fn in_bracket(&self, id: OrderId) -> bool {
        self.bracket_of(id).is_some()
    }

    pub fn is_awaited(&self, account: AccountId, name: ClientOrderId) -> bool {
        self.awaiting(account, name).is_some()
    }

    /// The entry of an exit, as long as that is open or to come.
    pub fn exit_of(&self, id: OrderId) -> Option<ClientOrderId> {
        self.brackets.iter().find(|b| b.exits.contains(&id)).map(|b| b.name)
    }

    pub fn check_entry(&self, c: &NewOrder) -> Outcomes {
        let fits = |b: &Bracket| b.side != c.terms.side && b.size == c.terms.size.get();
        ensure(self.awaiting(c.account, c.client_order_id).is_none_or(fits), RejectReason::LinkInvalid)
    }

    pub fn may_amend(&self, id: OrderId, resizes: bool) -> bool {
        self.bracket_of(id).is_none_or(|b| self.brackets[b].entry == Some(id) && !resizes)
    }

    fn is_open(&self, id: OrderId) -> bool {
        self.orders.iter().any(|o| o.id == id)
    }
}

impl Model {
    pub(super) fn new_exit(
        &mut self,
        m: usize,
        c: &NewOrder,
        entry: ClientOrderId,
        id: OrderId,
        events: &mut Vec<Event>,
    ) -> Outcomes {
        let market = &self.markets[m];
        let (side, size) = (c.terms.side, c.terms.size.get());
        let waits = matches!(
            c.terms.order_type,
            OrderType::Stop { .. } | OrderType::StopLimit { .. } | OrderType::TakeProfit { .. } | OrderType::TakeProfitLimit { .. }
        );
        ensure(waits && entry != c.client_order_id, RejectReason::LinkInvalid)?;
        ensure(market.named(c.account, entry).is_none(), RejectReason::LinkInvalid)?;
        let fits = |b: &Bracket| b.side == side && b.size == size && b.exits.len() == 1;
        ensure(market.awaiting(c.account, entry).is_none_or(fits), RejectReason::LinkInvalid)?;
        ensure(!market.is_awaited(c.account, c.client_order_id), RejectReason::LinkInvalid)?;
        // What it waits for may be on either side of the last price.
        let nothing_traded = Market { last: None, ..market.clone() };
        let order = Order { is_held: true, counts: false, ..nothing_traded.order(c, id, self.now, self.version)? };
        market.check_limits(&order)?;
        ensure(market.named(c.account, c.client_order_id).is_none(), RejectReason::DuplicateClientOrderId)?;
        let market = &mut self.markets[m];
        market.stand(order);
        events.push(Event::Order(OrderEvent::Accepted(OrderAccepted {
            instrument: c.instrument,
            account: c.account,
            client_order_id: c.client_order_id,
            order_id: id,
            side,
            size: c.terms.size,
            price: None,
            resting: market.resting(id),
        })));
        match market.brackets.iter_mut().find(|b| (b.account, b.name) == (c.account, entry)) {
            Some(bracket) => bracket.exits.push(id),
            None => {
                let exits = vec![id];
                market.brackets.push(Bracket {
                    account: c.account,
                    name: entry,
                    entry: None,
                    side,
                    size,
                    filled: 0,
                    covered: 0,
                    exits,
                });
            }
        }
        Ok(())
    }

    /// Notes what an event does to entries and exits; the entry whose exits are to follow.
    pub(super) fn note(&mut self, m: usize, event: &Event, concerned: &mut Vec<(AccountId, ClientOrderId)>) {
        let market = &mut self.markets[m];
        let mut met = Vec::new();
        match event {
            Event::Order(OrderEvent::Accepted(e)) => {
                let waits = |b: &&mut Bracket| (b.account, b.name, b.entry) == (e.account, e.client_order_id, None);
                if let Some(bracket) = market.brackets.iter_mut().find(waits) {
                    bracket.entry = Some(e.order_id);
                }
            }
            Event::Order(OrderEvent::Traded(e)) => {
                for id in [e.maker.order_id, e.taker.order_id] {
                    if let Some(bracket) = market.brackets.iter_mut().find(|b| b.entry == Some(id)) {
                        bracket.filled += e.size.get();
                        met.push((bracket.account, bracket.name));
                    }
                }
            }
            Event::Order(OrderEvent::Cancelled(e)) => {
                met.extend(market.bracket_of(e.order_id).map(|b| (market.brackets[b].account, market.brackets[b].name)));
            }
            _ => {}
        }
        for name in met {
            if !concerned.contains(&name) {
                concerned.push(name);
            }
        }
    }

    /// Lets the exits of an entry follow it.
    pub(super) fn settle_bracket(&mut self, m: usize, (account, name): (AccountId, ClientOrderId), events: &mut Vec<Event>) {
        let market = &self.markets[m];
        let Some(at) = market.brackets.iter().position(|b| (b.account, b.name) == (account, name)) else { return };
        let Bracket { entry, filled, exits, .. } = market.brackets[at].clone();
        if !exits.iter().all(|id| market.is_open(*id)) {
            for id in exits.into_iter().chain(entry) {
                if self.markets[m].is_open(id) {
                    self.cancel(m, id, CancelReason::Linked, events);
                }
            }
            self.markets[m].brackets.remove(at);
            return;
        }
        self.cover(m, at, events);
        let market = &mut self.markets[m];
        if entry.is_none_or(|id| market.is_open(id)) {
            return;
        }
        let Bracket { covered, .. } = market.brackets.remove(at);
        if covered == 0 {
            let reason = if filled == 0 { CancelReason::Linked } else { CancelReason::Unfunded };
            for id in exits {
                self.cancel(m, id, reason, events);
            }
        }
    }

    /// Lets exits stand for all that is filled, if the funds are there.
    fn cover(&mut self, m: usize, at: usize, events: &mut Vec<Event>) {
        let market = &self.markets[m];
        let Bracket { account, side, filled, covered, exits, .. } = market.brackets[at].clone();
        if filled == covered {
            return;
        }
        let needs = |lots: u64| {
            let mine = market.orders.iter().filter(|o| exits.contains(&o.id));
            mine.map(|o| market.reserve(side, o.price, lots)).max().unwrap()
        };
        if needs(filled) - needs(covered) > self.available(account, market.reserve_asset(side)) {
            return;
        }
        let market = &mut self.markets[m];
        for id in &exits {
            let turn = market.turns + 1;
            let order = market.orders.iter_mut().find(|o| o.id == *id).unwrap();
            if order.is_held {
                (order.is_held, order.counts, order.turn) = (false, true, turn);
                market.turns = turn;
            }
            order.open = filled;
            order.min_size = order.min_size.map(|min| min.min(SizeLots::new(filled)));
            let order = *order;
            events.push(Event::Order(OrderEvent::Amended(OrderAmended {
                instrument: market.spec.instrument,
                account,
                client_order_id: order.name,
                order_id: *id,
                side,
                price: None,
                priority: Priority::Kept,
                resting: market.resting(*id),
            })));
        }
        if covered == 0
            && let [first, second] = exits[..]
        {
            market.pairs.push([first, second]);
        }
        market.brackets[at].covered = filled;
    }

    /// Takes the rest of an entry out, of which an exit has triggered.
    pub(super) fn part_triggered(&mut self, m: usize, id: OrderId, events: &mut Vec<Event>) {
        let market = &mut self.markets[m];
        let Some(at) = market.brackets.iter().position(|b| b.exits.contains(&id)) else { return };
        let Bracket { entry, .. } = market.brackets.remove(at);
        if let Some(entry) = entry.filter(|id| market.is_open(*id)) {
            self.cancel(m, entry, CancelReason::Linked, events);
        }
    }
}
