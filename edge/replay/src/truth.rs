//! After the book and the record disagreed, the record counts: the book is rebuilt as the record has it, so that one mismatch does not
//! cause the next.

use walras_order_book::{Fill, OpenOrder, OrderBook, Seniority};
use walras_types::{Allocation, ClientOrderId, Display, OrderId, PostOnly, PriceTicks, SelfTrade, Side, SizeLots, TimeInForce};

use crate::apply::OWNER;
use crate::plan::RecordedFill;

/// The orders of a book in the order in which [`OrderBook::for_each_order`] names them: bids from the best on, then asks.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    sides: [Vec<OpenOrder>; 2],
    last_price: Option<PriceTicks>,
}

impl Queues {
    pub(crate) fn of(book: &OrderBook) -> Self {
        let mut sides = [Vec::new(), Vec::new()];
        book.for_each_order(|order| sides[order.side as usize].push(*order));
        Self { sides, last_price: book.last_price() }
    }

    /// As they stood before an incoming order, named `taker` if it may rest, made these fills. It takes from the front of the other side only, so the
    /// orders that it used up stood there, in the order of the fills.
    pub(crate) fn before(book: &OrderBook, taker: Option<u64>, fills: &[Fill]) -> Self {
        let mut queues = Self::of(book);
        for side in &mut queues.sides {
            side.retain(|order| Some(order.client_order_id.0) != taker);
        }
        for fill in fills.iter().rev() {
            let side = fill.taker_side.opposite();
            let queue = &mut queues.sides[side as usize];
            if fill.maker.open.is_zero() {
                let order_id = fill.maker.order_id.0;
                queue.insert(0, resting(order_id, fill.maker.client_order_id.0, side, fill.maker.limit, fill.size));
            } else {
                let maker = queue.iter_mut().find(|order| order.order_id == fill.maker.order_id);
                let maker = maker.expect("an order with something left stands in the book");
                maker.open += fill.size;
                maker.shown += fill.size;
            }
        }
        queues
    }

    pub(crate) fn book(&self) -> OrderBook {
        let orders = self.sides.iter().flatten().copied();
        OrderBook::restore(Allocation::PriceTime, 0, self.last_price, orders)
            .expect("plain orders in the book's own order make a book")
    }

    /// The order of that number.
    pub(crate) fn find(&self, order_ref: u64) -> Option<&OpenOrder> {
        self.sides.iter().flatten().find(|order| order.client_order_id.0 == order_ref)
    }

    /// Orders ahead of this one at its price.
    pub(crate) fn ahead<'a>(&'a self, order: &'a OpenOrder) -> impl Iterator<Item = &'a OpenOrder> {
        let queue = &self.sides[order.side as usize];
        let at_price = queue.iter().filter(|other| other.price == order.price);
        at_price.take_while(|other| other.client_order_id != order.client_order_id)
    }

    /// The best price of a side.
    pub(crate) fn best(&self, side: Side) -> Option<PriceTicks> {
        self.sides[side as usize].first().map(|order| order.price)
    }

    /// Does what the record says; `false` if it names an order that is not there, or takes more than it has.
    pub(crate) fn execute(&mut self, fill: &RecordedFill) -> bool {
        self.last_price = Some(fill.price);
        self.shrink(fill.maker, fill.size)
    }

    /// Takes `by` off an order, all of it if it has less; `false` if it has less, or is not there.
    pub(crate) fn shrink(&mut self, order_ref: u64, by: SizeLots) -> bool {
        for side in &mut self.sides {
            let Some(at) = side.iter().position(|order| order.client_order_id.0 == order_ref) else { continue };
            let order = &mut side[at];
            let enough = by <= order.open;
            order.open = order.open.saturating_sub(by);
            order.shown = order.open;
            if order.open.is_zero() {
                side.remove(at);
            }
            return enough;
        }
        false
    }

    /// Puts an order at the back of its price; not if one of its number stands already.
    pub(crate) fn rest(&mut self, order_id: u64, order_ref: u64, side: Side, price: PriceTicks, size: SizeLots) {
        if self.find(order_ref).is_some() {
            return;
        }
        let queue = &mut self.sides[side as usize];
        let at = queue.partition_point(|other| !side.is_better(price, other.price));
        queue.insert(at, resting(order_id, order_ref, side, price, size));
    }
}

fn resting(order_id: u64, order_ref: u64, side: Side, price: PriceTicks, size: SizeLots) -> OpenOrder {
    OpenOrder {
        order_id: OrderId(order_id),
        client_order_id: ClientOrderId(order_ref),
        owner: OWNER,
        side,
        price,
        open: size,
        shown: size,
        time_in_force: TimeInForce::GoodTillCancel,
        display: Display::Full,
        trigger: None,
        post_only: PostOnly::Off,
        min_size: None,
        self_trade: SelfTrade::Allow,
        seniority: Seniority::Joined,
    }
}
