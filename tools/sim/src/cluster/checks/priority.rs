//! Orders trade in the order of the queue: the best price first, what is displayed before what is hidden, then who came first. From
//! the events alone, by a naive book that looks through all of its orders for each trade.
//!
//! Where an instrument's rule shares out what a price shows, each order that comes in looks at that queue, and again where icebergs
//! show more: who gets how much of it is worked out here, and the trades must be these. In an auction the queue counts, whatever
//! the rule.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use walras_types::{Allocation, InstrumentId, OrderId, PriceTicks, Side, SizeLots};
use walras_wire::{Event, InstrumentEvent, OrderEvent, Priority as Place, Resting, Traded};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

#[derive(Clone, Copy, Debug)]
struct Standing {
    side: Side,
    price: PriceTicks,
    open: SizeLots,
    shown: SizeLots,
    is_hidden: bool,
    place: u64,
    /// It was better than all that its side displayed when it came to its place.
    set_the_price: bool,
}

#[derive(Debug)]
struct Book {
    allocation: Allocation,
    orders: BTreeMap<OrderId, Standing>,
    next_place: u64,
    /// What an order that came in is still to trade with at a price that is shared out.
    look: Option<Look>,
}

/// Who looks at a queue, and what is to come: whom it trades with, and how much.
#[derive(Debug)]
struct Look {
    taker: OrderId,
    shares: VecDeque<(OrderId, SizeLots)>,
}

/// All books.
#[derive(Debug, Default)]
pub(super) struct Priority {
    books: BTreeMap<InstrumentId, Book>,
}

const CHECK: &str = "priority";

impl Priority {
    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        self.take(&replayed.events).map_err(|what| Violation::new(CHECK, format!("entry {}: {what}", replayed.entry.log_index)))
    }

    fn take(&mut self, events: &[Event]) -> Result<(), String> {
        // Those that came in with this entry: any other taker trades in an auction.
        let mut incoming = BTreeSet::new();
        for event in events {
            match event {
                Event::Instrument(InstrumentEvent::Created(spec)) => {
                    let book = Book { allocation: spec.allocation, orders: BTreeMap::new(), next_place: 0, look: None };
                    self.books.insert(spec.instrument, book);
                }
                Event::Order(OrderEvent::Accepted(e)) => {
                    incoming.insert(e.order_id);
                    self.book(e.instrument)?.put(e.order_id, e.side, e.price, Place::Lost, e.resting);
                }
                Event::Order(OrderEvent::Amended(e)) => {
                    incoming.insert(e.order_id);
                    self.book(e.instrument)?.put(e.order_id, e.side, e.price, e.priority, e.resting);
                }
                Event::Order(OrderEvent::Triggered(e)) => {
                    incoming.insert(e.order_id);
                    self.book(e.instrument)?.put(e.order_id, e.side, Some(e.price), Place::Lost, e.resting);
                }
                Event::Order(OrderEvent::Traded(e)) => self.book(e.instrument)?.trade(e, !incoming.contains(&e.taker.order_id))?,
                Event::Order(OrderEvent::Cancelled(e)) => {
                    self.book(e.instrument)?.orders.remove(&e.order_id);
                }
                Event::Order(OrderEvent::Reduced(e)) => {
                    if let Some(order) = self.book(e.instrument)?.orders.get_mut(&e.order_id) {
                        (order.open, order.shown) = (e.resting.open, e.resting.shown);
                    }
                }
                Event::Order(OrderEvent::Replenished(e)) => self.book(e.instrument)?.replenish(e.order_id, e.shown)?,
                _ => {}
            }
        }
        self.books.values().try_for_each(Book::check_nothing_is_to_come)
    }

    fn book(&mut self, instrument: InstrumentId) -> Result<&mut Book, String> {
        self.books.get_mut(&instrument).ok_or_else(|| format!("there is no instrument {instrument}"))
    }
}

impl Book {
    fn put(&mut self, order_id: OrderId, side: Side, price: Option<PriceTicks>, place: Place, resting: Resting) {
        let before = self.orders.remove(&order_id);
        // A stop that waits stands in no queue.
        let Some(price) = price.filter(|_| !resting.open.is_zero()) else { return };
        let Resting { open, shown } = resting;
        let is_hidden = shown.is_zero();
        let (place, set_the_price) = match before {
            Some(before) if place == Place::Kept => (before.place, before.set_the_price),
            _ => (self.take_place(), !is_hidden && self.is_best(side, price)),
        };
        self.orders.insert(order_id, Standing { side, price, open, shown, is_hidden, place, set_the_price });
    }

    /// Whether a price is better than all that a side displays.
    fn is_best(&self, side: Side, price: PriceTicks) -> bool {
        let displayed = self.orders.values().filter(|order| order.side == side && !order.is_hidden);
        let is_better = |than: PriceTicks| if side == Side::Buy { price > than } else { price < than };
        displayed.map(|order| order.price).all(is_better)
    }

    fn take_place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place
    }

    fn trade(&mut self, e: &Traded, is_auction: bool) -> Result<(), String> {
        if is_auction {
            self.check_turn(e, e.maker.order_id, Side::Buy, true)?;
            self.check_turn(e, e.taker.order_id, Side::Sell, true)?;
            self.fill(e.taker.order_id, e.size, e.taker.open);
        } else {
            let is_first_come = self.allocation == Allocation::PriceTime;
            let maker = self.check_turn(e, e.maker.order_id, e.taker_side.opposite(), is_first_come)?;
            if !is_first_come && !maker.is_hidden {
                self.check_share(e)?;
            }
            if maker.price != e.price {
                return Err(format!("{maker:?} has {e:?}"));
            }
        }
        self.fill(e.maker.order_id, e.size, e.maker.open);
        Ok(())
    }

    /// Whether it is this order's turn; `is_first_come` where orders that are displayed at a price have an order.
    fn check_turn(&self, e: &Traded, order_id: OrderId, side: Side, is_first_come: bool) -> Result<Standing, String> {
        let order = *self.orders.get(&order_id).ok_or_else(|| format!("order {order_id} does not stand, and has {e:?}"))?;
        let queue = |order: &Standing| {
            let ticks = order.price.get();
            let place = if is_first_come || order.is_hidden { order.place } else { 0 };
            (if side == Side::Buy { -ticks } else { ticks }, order.is_hidden, place)
        };
        let first = self.orders.iter().filter(|(_, order)| order.side == side).min_by_key(|(_, order)| queue(order));
        match first {
            Some((_, first)) if order.side == side && queue(first) == queue(&order) => Ok(order),
            first => Err(format!("it is the turn of {first:?}, and order {order_id}, {order:?}, has {e:?}")),
        }
    }

    fn fill(&mut self, order_id: OrderId, size: SizeLots, open: SizeLots) {
        let Some(order) = self.orders.get_mut(&order_id) else { return };
        (order.open, order.shown) = (open, order.shown.saturating_sub(size));
        if open.is_zero() {
            self.orders.remove(&order_id);
        }
    }

    fn replenish(&mut self, order_id: OrderId, shown: SizeLots) -> Result<(), String> {
        let place = self.take_place();
        let order = self.orders.get_mut(&order_id).ok_or_else(|| format!("order {order_id} shows {shown} and does not stand"))?;
        if !order.shown.is_zero() {
            return Err(format!("{order:?} shows {shown} more before what it showed has traded"));
        }
        (order.shown, order.place, order.set_the_price) = (shown, place, false);
        Ok(())
    }

    /// Whether a trade at a price that is shared out is the next one that the rule gives.
    fn check_share(&mut self, e: &Traded) -> Result<(), String> {
        let is_going_on = self.look.as_ref().is_some_and(|look| look.taker == e.taker.order_id);
        if !is_going_on {
            self.check_nothing_is_to_come()?;
            let shares = self.shares(e.taker_side.opposite(), e.price, e.taker.open.get() + e.size.get());
            self.look = Some(Look { taker: e.taker.order_id, shares });
        }
        let Some(look) = &mut self.look else { return Ok(()) };
        let next = look.shares.pop_front();
        if next != Some((e.maker.order_id, e.size)) {
            return Err(format!("{:?} gives {next:?} next, and then {:?}, and there is {e:?}", self.allocation, look.shares));
        }
        if look.shares.is_empty() {
            self.look = None;
        }
        Ok(())
    }

    fn check_nothing_is_to_come(&self) -> Result<(), String> {
        match &self.look {
            None => Ok(()),
            Some(look) => Err(format!("{:?} gives more than was traded: {look:?}", self.allocation)),
        }
    }

    /// What each order that is displayed at a price gets of so many lots, in the order of the queue.
    fn shares(&self, side: Side, price: PriceTicks, lots: u64) -> VecDeque<(OrderId, SizeLots)> {
        let at_price = self.orders.iter().filter(|(_, order)| (order.side, order.price, order.is_hidden) == (side, price, false));
        let mut queue: Vec<(OrderId, Standing)> = at_price.map(|(id, order)| (*id, *order)).collect();
        queue.sort_by_key(|(_, order)| order.place);
        let shown = |at: usize| u128::from(queue[at].1.shown.get());
        let total: u128 = (0..queue.len()).map(shown).sum();
        let mut left = u128::from(lots).min(total);
        let mut shares = vec![0; queue.len()];
        // First in, first out, up to so many, to the first so many.
        let in_turn = |shares: &mut [u128], mut lots: u128| {
            for (at, share) in shares.iter_mut().enumerate() {
                let more = lots.min(shown(at) - *share);
                (*share, lots) = (*share + more, lots - more);
            }
        };
        if left < total {
            let min_lots = match self.allocation {
                Allocation::PriceTime => 0,
                Allocation::ProRata { min_lots } => min_lots.get(),
                Allocation::TopProRata { top_lots_max, min_lots } => {
                    if queue.first().is_some_and(|(_, order)| order.set_the_price) {
                        in_turn(&mut shares[..1], left.min(u128::from(top_lots_max.get())));
                    }
                    min_lots.get()
                }
                Allocation::Split { fifo_percent, min_lots } => {
                    in_turn(&mut shares, left * u128::from(fifo_percent) / 100);
                    min_lots.get()
                }
            };
            let ahead: u128 = shares.iter().sum();
            left -= ahead;
            for (at, share) in shares.iter_mut().enumerate() {
                let part = left * (shown(at) - *share) / (total - ahead);
                *share += if part < u128::from(min_lots) { 0 } else { part };
            }
            left -= shares.iter().sum::<u128>() - ahead;
        }
        in_turn(&mut shares, left);
        let given = queue.iter().zip(shares).filter(|(_, share)| *share > 0);
        given.map(|((id, _), share)| (*id, SizeLots::new(u64::try_from(share).expect("a part of the lots")))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sell orders at one price, of these sizes; the first one set the price.
    fn book(allocation: Allocation, sizes: &[u64]) -> Book {
        let mut book = Book { allocation, orders: BTreeMap::new(), next_place: 0, look: None };
        for (id, size) in (1..).map(OrderId).zip(sizes) {
            let resting = Resting { open: SizeLots::new(*size), shown: SizeLots::new(*size) };
            book.put(id, Side::Sell, Some(PriceTicks::saturating(100)), Place::Lost, resting);
        }
        book
    }

    fn shares(allocation: Allocation, sizes: &[u64], lots: u64) -> Vec<(u64, u64)> {
        let shares = book(allocation, sizes).shares(Side::Sell, PriceTicks::saturating(100), lots);
        shares.into_iter().map(|(id, share)| (id.0, share.get())).collect()
    }

    /// As in docs/matching.md.
    #[test]
    fn shares_are_those_of_the_documents() {
        let lots = SizeLots::new;
        let pro_rata = Allocation::ProRata { min_lots: lots(1) };
        assert_eq!(shares(pro_rata, &[7, 5, 3], 10), [(1, 5), (2, 3), (3, 2)]);
        assert_eq!(shares(pro_rata, &[7, 5, 3], 15), [(1, 7), (2, 5), (3, 3)], "all that is shown");
        assert_eq!(shares(pro_rata, &[7, 5, 3], 99), [(1, 7), (2, 5), (3, 3)], "more than is shown");
        let top = Allocation::TopProRata { top_lots_max: lots(4), min_lots: lots(1) };
        assert_eq!(shares(top, &[7, 5, 3], 10), [(1, 7), (2, 2), (3, 1)]);
        let split = Allocation::Split { fifo_percent: 40, min_lots: lots(2) };
        assert_eq!(shares(split, &[7, 5, 3], 10), [(1, 7), (2, 3)]);
    }

    #[test]
    fn who_was_not_alone_at_the_best_price_did_not_set_it() {
        let mut book = book(Allocation::PriceTime, &[7, 5]);
        assert!(book.orders[&OrderId(1)].set_the_price && !book.orders[&OrderId(2)].set_the_price);
        let resting = Resting { open: SizeLots::new(1), shown: SizeLots::new(1) };
        book.put(OrderId(3), Side::Sell, Some(PriceTicks::saturating(99)), Place::Lost, resting);
        book.put(OrderId(2), Side::Sell, Some(PriceTicks::saturating(99)), Place::Lost, resting);
        assert!(book.orders[&OrderId(3)].set_the_price && !book.orders[&OrderId(2)].set_the_price);
    }
}
