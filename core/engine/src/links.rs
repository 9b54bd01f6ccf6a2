//! Orders that are linked in pairs, so that one cancels the other (OCO).
//!
//! - The two are of one account, market, side and size. At least one waits for its trigger: that is the pair's *second*. The first
//!   rests, or waits for a trigger of its own. So neither is ever the order that comes in, and only the first can trade in an auction.
//! - When one trades (any part of it), triggers, shrinks or leaves, the other is cancelled. A second whose trigger is touched enters
//!   after the first is gone.
//! - The pair has reserved the larger of what its orders would, once. The first has reserved as any order does, so its trades settle
//!   without a look at links. The second has reserved the *excess*: what it would need beyond that. Its lots do not count beside the
//!   first's, since only one of the two can trade.
//! - Linked orders keep their terms ([`RejectReason::LinkedOrderFixed`]).
//!
//! Exits of an order to come are a matter of their own ([`crate::brackets`]). Once they stand for something, two of them are a pair.
//!
//! The partners of orders that traded are found in the events of the step in which they did. So the paths of orders only ask
//! whether a market has any pair or bracket, and a step cancels at most two orders for each that it met.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use walras_ledger::Ledger;
use walras_order_book::{Becomes, Entry, OpenOrder, OwnerId, PriceIndex};
use walras_types::limits::LOOKS_PER_MEETING;
use walras_types::{AccountId, Amount, ClientOrderId, OrderId, OrderType, PostOnly, RejectReason, SizeLots, TimeNs};
use walras_wire::codec::{DecodeError, Reader, Wire, Writer};
use walras_wire::{CancelReason, Event, NewOrder, OrderEvent};

use crate::brackets::{Brackets, EntryName};
use crate::changing::Changing;
use crate::market::{Market, MarketState};
use crate::settle::Settler;

/// An order of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    pub(crate) order_id: OrderId,
    pub(crate) name: ClientOrderId,
}

/// Two orders of which one cancels the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) owner: OwnerId,
    pub(crate) first: Leg,
    pub(crate) second: Leg,
    /// What is reserved for the second beyond the first's reserve.
    pub(crate) excess: Amount,
}

/// The pairs of a market, and the exits of its entries.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Each under both of its orders.
    pairs: BTreeMap<OrderId, Pair>,
    pub(crate) brackets: Brackets,
}

/// Brackets that are to follow their entries, the first that was concerned first, each once.
#[derive(Default)]
struct Concerned {
    queue: VecDeque<EntryName>,
    in_queue: BTreeSet<EntryName>,
}

impl Concerned {
    fn add(&mut self, name: EntryName) {
        if self.in_queue.insert(name) {
            self.queue.push_back(name);
        }
    }

    fn next(&mut self) -> Option<EntryName> {
        let name = self.queue.pop_front()?;
        self.in_queue.remove(&name);
        Some(name)
    }
}

impl Pair {
    /// The order that is linked with that of this id.
    pub(crate) fn other(&self, order_id: OrderId) -> Leg {
        if self.first.order_id == order_id { self.second } else { self.first }
    }
}

/// What it costs to take an order out with what is linked with it, in units of what an entry may do: see [`MarketState::trade_cost`].
pub(crate) const LINKED_MEETINGS: u32 = 4;

/// What a trade costs where exits may follow it: two orders are resized and move in their queues, and their funds are reserved.
const BRACKET_MEETINGS: u32 = 16;

impl Links {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.brackets.is_empty()
    }

    /// Whether no order cancels another.
    pub(crate) fn has_pairs(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// The pair that an order belongs to.
    pub(crate) fn of(&self, order_id: OrderId) -> Option<&Pair> {
        self.pairs.get(&order_id)
    }

    /// The pair of which an order is the second.
    pub(crate) fn of_second(&self, order_id: OrderId) -> Option<&Pair> {
        self.of(order_id).filter(|pair| pair.second.order_id == order_id)
    }

    /// By the id of the first.
    fn iter(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|(order_id, pair)| pair.first.order_id == **order_id).map(|(_, pair)| pair)
    }

    pub(crate) fn insert(&mut self, pair: Pair) {
        self.pairs.insert(pair.first.order_id, pair);
        self.pairs.insert(pair.second.order_id, pair);
    }

    fn remove(&mut self, pair: &Pair) {
        self.pairs.remove(&pair.first.order_id);
        self.pairs.remove(&pair.second.order_id);
    }

    /// Appends the pairs, each as the ids of its orders: all else follows from these.
    pub(crate) fn encode(&self, w: &mut Writer<'_>) {
        w.u32(u32::try_from(self.iter().count()).expect("a book's orders have a limit below 2^32"));
        for pair in self.iter() {
            pair.first.order_id.put(w);
            pair.second.order_id.put(w);
        }
    }
}

/// Reads what [`Links::encode`] wrote: the ids of the firsts and the seconds.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Vec<[OrderId; 2]>, DecodeError> {
    (0..r.u32()?).map(|_| Ok([Wire::get(r)?, Wire::get(r)?])).collect()
}

impl<I: PriceIndex> Market<I> {
    /// The open order with which a new one is to be linked, if it may.
    pub(crate) fn linkable(&self, order: &NewOrder, name: ClientOrderId) -> Result<OpenOrder, RejectReason> {
        let handle = self.book.find(OwnerId(order.account.0), name).ok_or(RejectReason::LinkInvalid)?;
        let other = self.book.view(handle);
        let terms = &order.terms;
        let links = &self.state.links;
        let is_free = links.of(other.order_id).is_none() && links.brackets.of(other.order_id).is_none();
        let is_awaited = links.brackets.awaiting((other.owner, order.client_order_id)).is_some();
        let is_alike = terms.side == other.side && terms.size == other.open && is_free && !is_awaited;
        let waits = match terms.order_type {
            // It takes nothing, so it is whole when it is linked.
            OrderType::Limit { post_only: PostOnly::Reject | PostOnly::Reprice, .. } => other.trigger.is_some(),
            OrderType::Limit { post_only: PostOnly::Off, .. } | OrderType::Market => false,
            OrderType::Stop { .. }
            | OrderType::StopLimit { .. }
            | OrderType::TakeProfit { .. }
            | OrderType::TakeProfitLimit { .. }
            | OrderType::TrailingStop { .. }
            | OrderType::TrailingStopLimit { .. } => true,
        };
        if is_alike && waits { Ok(other) } else { Err(RejectReason::LinkInvalid) }
    }

    /// Links an order that has just entered with another one, for which nothing is reserved now.
    pub(crate) fn link(&mut self, ledger: &mut Ledger, other: &OpenOrder, name: ClientOrderId) {
        let handle = self.book.find(other.owner, name).expect("it waits, or took nothing and rests");
        let new = self.book.view(handle);
        assert_eq!(new.open, other.open, "it came whole to where it stands");
        let [first, second] = if new.trigger.is_some() { [other, &new] } else { [&new, other] };
        let pair = self.state.pair(first, second).expect("both fitted amounts when they entered");
        let state = &mut self.state;
        let needs = |order: &OpenOrder| state.reserved(order.side, order.price, order.open);
        let (has, both) = (needs(&new), needs(first).max(needs(second)));
        // What the other one had covers it: it was released before the new one reserved.
        let (account, asset) = (AccountId(new.owner.0), state.reserve_asset(new.side));
        ledger.adjust_reserve(account, asset, has, both).expect("one of the two had reserved as much");
        state.links.insert(pair);
        self.bound_steps();
    }

    /// Lets an order meet as many others in an entry as their links allow.
    pub(crate) fn bound_steps(&mut self) {
        self.book.set_step_max((self.state.meetings_max / self.state.trade_cost()).max(1));
    }

    /// Cancels the partner of the order that has just left.
    #[inline]
    pub(crate) fn settle_last(&mut self, ledger: &mut Ledger, events: &mut Vec<Event>) {
        if !self.state.links.is_empty() {
            self.settle_links(ledger, events.len() - 1, events);
        }
    }

    /// Cancels good-till-time orders that are due, at most `max`, and with each what is linked with it. Returns their number.
    #[cold]
    #[inline(never)]
    pub(crate) fn expire_linked(&mut self, ledger: &mut Ledger, now: TimeNs, max: u32, events: &mut Vec<Event>) -> u32 {
        let (mut count, cost) = (0, self.state.removal_cost());
        while count < max && self.book.expire(now, 1, &mut Settler::new(ledger, &mut self.state, events)) > 0 {
            self.settle_last(ledger, events);
            count += cost;
        }
        count.min(max)
    }

    /// Goes on with the end of a day as [`walras_order_book::OrderBook::end_day_from`], and cancels with each order what is linked with it.
    /// What is left of it is in the state.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_day_linked(&mut self, ledger: &mut Ledger, looks: &mut u64, events: &mut Vec<Event>) {
        let removal = u64::from(LOOKS_PER_MEETING) * u64::from(self.state.removal_cost());
        while *looks > 0
            && let Some(Changing::EndingDay { from }) = self.state.changing
        {
            let handle = from.map(|(owner, name)| self.book.find(owner, name).expect("it goes on at an open order"));
            let before = events.len();
            // One order.
            let from = self.book.end_day_from(handle, &mut 1, &mut Settler::new(ledger, &mut self.state, events));
            self.state.changing = from.map(|from| Changing::EndingDay { from: Some(from) });
            let has_left = events.len() > before;
            if has_left {
                self.settle_last(ledger, events);
            }
            *looks = looks.saturating_sub(if has_left { removal } else { 1 });
        }
    }

    /// Cancels the partners of the orders that traded, shrank or left, by the events from `from` on, and lets exits follow their entries.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle_links(&mut self, ledger: &mut Ledger, from: usize, events: &mut Vec<Event>) {
        let mut at = from;
        let mut brackets = Concerned::default();
        loop {
            while let Some(event) = events.get(at).copied() {
                self.settle_event(ledger, &event, &mut brackets, events);
                at += 1;
            }
            let Some(of) = brackets.next() else { break };
            self.settle_bracket(ledger, of, events);
        }
        self.bound_steps();
    }

    /// Does so for one event, and notes the bracket that it concerns.
    fn settle_event(&mut self, ledger: &mut Ledger, event: &Event, brackets: &mut Concerned, events: &mut Vec<Event>) {
        let links = &mut self.state.links;
        let (parted, concerned) = match event {
            Event::Order(OrderEvent::Accepted(e)) => {
                links.brackets.entered((OwnerId(e.account.0), e.client_order_id), e.order_id);
                ([None, None], [None, None])
            }
            Event::Order(OrderEvent::Traded(e)) => {
                let parties = [e.maker.order_id, e.taker.order_id];
                (parties.map(Some), parties.map(|order_id| links.brackets.traded(order_id, e.size)))
            }
            Event::Order(OrderEvent::Cancelled(e)) => {
                ([Some(e.order_id), None], [links.brackets.of(e.order_id).map(|(name, _)| name), None])
            }
            Event::Order(OrderEvent::Reduced(e)) => ([Some(e.order_id), None], [None, None]),
            _ => ([None, None], [None, None]),
        };
        for name in concerned.into_iter().flatten() {
            brackets.add(name);
        }
        for order_id in parted.into_iter().flatten() {
            if let Some(pair) = self.state.links.of(order_id).copied() {
                self.cancel_partner(ledger, &pair, order_id, events);
            }
        }
    }

    /// Takes apart the pair of an order whose trigger was touched and that is out of the book already.
    #[cold]
    #[inline(never)]
    pub(crate) fn unlink_triggered(&mut self, ledger: &mut Ledger, entry: &Entry, events: &mut Vec<Event>) {
        self.part_pair(ledger, entry, events);
        self.part_triggered(ledger, entry.order_id, events);
        self.bound_steps();
    }

    fn part_pair(&mut self, ledger: &mut Ledger, entry: &Entry, events: &mut Vec<Event>) {
        let Some(pair) = self.state.links.of(entry.order_id).copied() else { return };
        self.cancel_partner(ledger, &pair, entry.order_id, events);
        if pair.second.order_id == entry.order_id {
            // From now on it stands for itself.
            let needs = self.state.reserved(entry.side, entry.price, entry.size);
            let (account, asset) = (AccountId(entry.owner.0), self.state.reserve_asset(entry.side));
            ledger.adjust_reserve(account, asset, pair.excess, needs).expect("the first released what the second had not reserved");
            self.state.exposure_of(entry.owner).resized(entry.side, SizeLots::ZERO, entry.size);
        }
    }

    /// Cancels what is linked with an order, if it is still there; they are a pair no more.
    fn cancel_partner(&mut self, ledger: &mut Ledger, pair: &Pair, order_id: OrderId, events: &mut Vec<Event>) {
        self.cancel_leg(ledger, pair.owner, pair.other(order_id), CancelReason::Linked, events);
        self.state.links.remove(pair);
    }

    /// Cancels an order for another one's sake, if it is still there.
    pub(crate) fn cancel_leg(
        &mut self,
        ledger: &mut Ledger,
        owner: OwnerId,
        leg: Leg,
        reason: CancelReason,
        events: &mut Vec<Event>,
    ) {
        let found = self.book.find(owner, leg.name).filter(|handle| self.book.order_id(*handle) == leg.order_id);
        if let Some(handle) = found {
            // The end of a day does not go on at an order that is gone.
            if self.state.changing == Some(Changing::EndingDay { from: Some((owner, leg.name)) }) {
                self.state.changing = self.book.next_order(handle).map(|next| Changing::EndingDay { from: Some(next) });
            }
            let order = self.book.cancel(handle);
            Settler::new(ledger, &mut self.state, events).gone(&order, reason);
        }
    }

    /// Links the orders of a restored book as a snapshot says.
    pub(crate) fn restore_links(&mut self, orders: &BTreeMap<OrderId, OpenOrder>, pairs: &[[OrderId; 2]]) -> Option<()> {
        for ids in pairs {
            let [first, second] = [orders.get(&ids[0])?, orders.get(&ids[1])?];
            let is_alike = (first.owner, first.side, first.open) == (second.owner, second.side, second.open);
            let is_linked = ids.iter().any(|order_id| self.state.links.of(*order_id).is_some());
            let goes_on = |order: &OpenOrder| order.trigger.is_some_and(|trigger| trigger.becomes == Becomes::Rest);
            let is_held = [first, second].iter().any(|order| order.trigger.is_some_and(|trigger| trigger.is_held));
            let waits = second.trigger.is_some() && !goes_on(first) && !goes_on(second) && !is_held;
            if first.order_id == second.order_id || !is_alike || is_linked || !waits {
                return None;
            }
            let pair = self.state.pair(first, second)?;
            self.state.links.insert(pair);
            self.state.exposure_of(second.owner).resized(second.side, second.open, SizeLots::ZERO);
        }
        Some(())
    }
}

impl MarketState {
    /// What a trade costs here, in units of the orders that an entry may meet: more where it concerns linked orders, so that an entry takes
    /// no longer.
    #[inline]
    pub(crate) fn trade_cost(&self) -> u32 {
        // An engine whose entries meet all, in tests, counts nothing.
        match (self.links.is_empty() || self.meetings_max == u32::MAX, self.links.brackets.is_empty()) {
            (true, _) => 1,
            (false, true) => LINKED_MEETINGS,
            (false, false) => BRACKET_MEETINGS,
        }
    }

    /// What it costs here to take out an order that does not trade.
    #[inline]
    pub(crate) fn removal_cost(&self) -> u32 {
        self.trade_cost().min(LINKED_MEETINGS)
    }

    /// Two orders as a pair. `None` where a reserve is no amount.
    pub(crate) fn pair(&self, first: &OpenOrder, second: &OpenOrder) -> Option<Pair> {
        let [of_first, of_second] =
            [self.reserve(first.side, first.price, first.open)?, self.reserve(second.side, second.price, second.open)?];
        Some(Pair {
            owner: first.owner,
            first: Leg { order_id: first.order_id, name: first.client_order_id },
            second: Leg { order_id: second.order_id, name: second.client_order_id },
            excess: of_second.checked_sub(of_first).unwrap_or(Amount::ZERO),
        })
    }

    /// What an open order has reserved, and its part in its account's open lots. `None` where the reserve is no amount.
    pub(crate) fn counted(&self, order: &OpenOrder) -> Option<(Amount, SizeLots)> {
        match self.links.of_second(order.order_id) {
            Some(pair) => Some((pair.excess, SizeLots::ZERO)),
            None if self.links.brackets.is_held(order.order_id) => Some((Amount::ZERO, SizeLots::ZERO)),
            None => Some((self.reserve(order.side, order.price, order.open)?, order.open)),
        }
    }

    /// Accounts for an order that leaves and has not reserved for itself alone: the second of a pair, or an exit that is held.
    /// Whether it is one.
    #[cold]
    #[inline(never)]
    pub(crate) fn linked_is_gone(&mut self, ledger: &mut Ledger, order: &OpenOrder) -> bool {
        if self.held_is_gone(order) {
            return true;
        }
        let Some(&Pair { excess, .. }) = self.links.of_second(order.order_id) else { return false };
        let (account, asset) = (AccountId(order.owner.0), self.reserve_asset(order.side));
        ledger.adjust_reserve(account, asset, excess, Amount::ZERO).expect("a pair reserved the excess of its second");
        self.exposure_of(order.owner).shrunk(order.side, SizeLots::ZERO, SizeLots::ZERO);
        self.names.remove(account, order.order_id);
        true
    }
}
