//! After the book and the record disagreed, the record counts: the price levels that they disagree about are set to what the record has,
//! so that one mismatch does not cause the next. Other levels are not touched, and no copy of the book is made.

use std::collections::BTreeMap;

use walras_market_history::Lasting;
use walras_order_book::{Band, Fill, Handle, OrderBook};
use walras_types::{ClientOrderId, OrderId, PriceTicks, Side, SizeLots};

use crate::apply::{OWNER, Tally, entry};

/// A price level of one side, asks with 1.
pub(crate) type LevelName = (u8, PriceTicks);

pub(crate) fn level_name(side: Side, price: PriceTicks) -> LevelName {
    (side as u8, price)
}

/// An order of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) order_id: OrderId,
    pub(crate) order_ref: u64,
    pub(crate) open: SizeLots,
}

/// Levels with their orders in the order of their queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    levels: BTreeMap<LevelName, Vec<Standing>>,
}

fn side_of(name: LevelName) -> Side {
    if name.0 == Side::Buy as u8 { Side::Buy } else { Side::Sell }
}

pub(crate) fn find(book: &OrderBook, order_ref: u64) -> Option<Handle> {
    book.find(OWNER, ClientOrderId(order_ref))
}

impl Levels {
    /// These levels as the book has them.
    pub(crate) fn of(book: &OrderBook, names: impl IntoIterator<Item = LevelName>) -> Self {
        let mut levels: BTreeMap<LevelName, Vec<Standing>> = names.into_iter().map(|name| (name, Vec::new())).collect();
        book.for_each_order(|order| {
            if let Some(queue) = levels.get_mut(&level_name(order.side, order.price)) {
                queue.push(Standing { order_id: order.order_id, order_ref: order.client_order_id.0, open: order.open });
            }
        });
        Self { levels }
    }

    /// All levels of the book.
    pub(crate) fn all(book: &OrderBook) -> Self {
        let mut names = Vec::new();
        book.for_each_order(|order| names.push(level_name(order.side, order.price)));
        Self::of(book, names)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = LevelName> {
        self.levels.keys().copied()
    }

    /// Orders in all of them.
    pub(crate) fn order_count(&self) -> usize {
        self.levels.values().map(Vec::len).sum()
    }

    pub(crate) fn queue(&mut self, name: LevelName) -> &mut Vec<Standing> {
        self.levels.entry(name).or_default()
    }

    /// Takes `by` off an order, all of it if it has less; `false` if it has less, or is not there.
    pub(crate) fn shrink(&mut self, order_ref: u64, by: SizeLots) -> bool {
        for queue in self.levels.values_mut() {
            let Some(at) = queue.iter().position(|order| order.order_ref == order_ref) else { continue };
            let order = &mut queue[at];
            let enough = by <= order.open;
            order.open = order.open.saturating_sub(by);
            if order.open.is_zero() {
                queue.remove(at);
            }
            return enough;
        }
        false
    }

    /// Sets the book's levels to these: what stands there is taken out, and these orders enter in their order. One that would trade
    /// stays out, since a book does not stand crossed.
    pub(crate) fn set(&self, book: &mut OrderBook) {
        let now = Levels::of(book, self.names());
        for order in now.levels.values().flatten() {
            take_out(book, order.order_ref);
        }
        for (&name, queue) in &self.levels {
            for order in queue {
                enter(book, order, side_of(name), name.1);
            }
        }
    }
}

/// Enters an order that rests; nothing if it would trade.
pub(crate) fn enter(book: &mut OrderBook, order: &Standing, side: Side, price: PriceTicks) -> bool {
    if book.best(side.opposite()).is_some_and(|best| side.accepts(price, best)) {
        return false;
    }
    let entry = entry(order.order_id.0, order.order_ref, side, price, order.open, Lasting::GoodTillCancel);
    book.submit(&entry, Band::OPEN, &mut Tally::default()).is_ok()
}

/// Takes an order out; the level where it stood.
pub(crate) fn take_out(book: &mut OrderBook, order_ref: u64) -> Option<LevelName> {
    let order = book.cancel(find(book, order_ref)?);
    Some(level_name(order.side, order.price))
}

/// Takes `by` off an order, all of it if it has less; the level where it stood.
pub(crate) fn shrink(book: &mut OrderBook, order_ref: u64, by: SizeLots) -> Option<LevelName> {
    let handle = find(book, order_ref)?;
    let order = book.view(handle);
    let left = order.open.saturating_sub(by);
    if left.is_zero() || book.amend(handle, None, Some(left), Band::OPEN, &mut Tally::default()).is_err() {
        book.cancel(handle);
    }
    Some(level_name(order.side, order.price))
}

/// Puts back what an incoming order, named `taker` if it may rest, took. It took from the front of the levels that it met, so the orders
/// that it used up stood there, in the order of the fills. Returns those levels, and the one where it rested.
pub(crate) fn undo(book: &mut OrderBook, taker: Option<u64>, fills: &[Fill]) -> Vec<LevelName> {
    let mut touched: Vec<LevelName> = taker.and_then(|taker| take_out(book, taker)).into_iter().collect();
    let met = fills.iter().map(|fill| level_name(fill.taker_side.opposite(), fill.maker.limit));
    let mut levels = Levels::of(book, met);
    for fill in fills.iter().rev() {
        let queue = levels.queue(level_name(fill.taker_side.opposite(), fill.maker.limit));
        // By its own number: orders that are made up for one message share that of the message.
        let order_ref = fill.maker.client_order_id.0;
        match queue.iter_mut().find(|order| order.order_ref == order_ref) {
            Some(maker) => maker.open += fill.size,
            None => {
                queue.insert(0, Standing { order_id: fill.maker.order_id, order_ref, open: fill.size });
            }
        }
    }
    levels.set(book);
    touched.extend(levels.names());
    touched
}
