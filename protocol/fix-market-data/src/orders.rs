//! One copy of each book that somebody reads by order.

use std::collections::BTreeMap;

use walras_market_data::{OrderChange, PublicOrder, order_changes};
use walras_types::Side;

use crate::market::News;
use crate::piece::OrdersPiece;

/// What the last update changed of the first orders of each side, for the readers of this depth.
#[derive(Debug, Default)]
struct View {
    readers: usize,
    changes: Vec<OrderChange>,
}

/// A book by order.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// The last update.
    pub(crate) update: u64,
    /// Bids, asks: best price first, at each price the first in the queue first.
    sides: [Vec<PublicOrder>; 2],
    is_known: bool,
    /// By depth.
    views: BTreeMap<usize, View>,
}

fn first(orders: &[PublicOrder], depth: usize) -> &[PublicOrder] {
    &orders[..depth.min(orders.len())]
}

impl Orders {
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    pub(crate) fn take(&mut self, piece: &OrdersPiece<'_>) -> News {
        let now = [piece.bids.to_vec(), piece.asks.to_vec()];
        let before = std::mem::replace(&mut self.sides, now);
        self.update = piece.log_index;
        for (depth, view) in &mut self.views {
            view.changes.clear();
            for (side, was, is) in [(Side::Buy, &before[0], &self.sides[0]), (Side::Sell, &before[1], &self.sides[1])] {
                order_changes(side, first(was, *depth), first(is, *depth), &mut view.changes);
            }
            // What is gone first: a client whose book is bounded has room for what is new.
            view.changes.sort_by_key(|change| change.kind);
        }
        if std::mem::replace(&mut self.is_known, true) { News::Changes } else { News::Whole }
    }

    /// What is known is of another state: all of it follows.
    pub(crate) fn forget(&mut self) {
        self.is_known = false;
    }

    /// One more reads the book in this depth.
    pub(crate) fn begin(&mut self, depth: usize) {
        self.views.entry(depth).or_default().readers += 1;
    }

    /// One less does.
    pub(crate) fn end(&mut self, depth: usize) {
        if let Some(view) = self.views.get_mut(&depth) {
            view.readers -= 1;
            if view.readers == 0 {
                self.views.remove(&depth);
            }
        }
    }

    /// The first orders of a side, as they stand.
    pub(crate) fn of(&self, depth: usize, side: Side) -> &[PublicOrder] {
        first(&self.sides[usize::from(side == Side::Sell)], depth)
    }

    /// What the last update changed of them: a reader that has the ones before has the new ones then.
    pub(crate) fn changes(&self, depth: usize) -> &[OrderChange] {
        self.views.get(&depth).map_or(&[], |view| &view.changes)
    }
}
