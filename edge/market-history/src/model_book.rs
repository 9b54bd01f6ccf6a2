//! What the generators must know of the book that their own orders make: who is live, at what price, how much, who trades next.
//!
//! Private, and no order book for others: two sorted maps, as plain as a textbook's, O(log n) for everything.

use std::collections::{BTreeMap, HashMap};

use walras_types::Side;

/// A live order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resting {
    pub(crate) side: Side,
    pub(crate) price_ticks: i64,
    pub(crate) size_lots: u64,
    /// When it came to its place, among all orders.
    arrival: u64,
}

/// A trade with a resting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) maker_id: u64,
    pub(crate) maker_side: Side,
    pub(crate) price_ticks: i64,
    pub(crate) size_lots: u64,
    /// Whether the resting order is gone.
    pub(crate) maker_done: bool,
}

/// Price-time priority. Keys sort best first: a bid's price is negated.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelBook {
    queues: [BTreeMap<(i64, u64), u64>; 2],
    open_lots: [u64; 2],
    orders: HashMap<u64, Resting>,
    arrivals: u64,
}

fn key_price(side: Side, price_ticks: i64) -> i64 {
    match side {
        Side::Buy => -price_ticks,
        Side::Sell => price_ticks,
    }
}

impl ModelBook {
    pub(crate) fn get(&self, id: u64) -> Option<&Resting> {
        self.orders.get(&id)
    }

    pub(crate) fn order_count(&self, side: Side) -> u64 {
        self.queues[side as usize].len() as u64
    }

    pub(crate) fn open_lots(&self, side: Side) -> u64 {
        self.open_lots[side as usize]
    }

    pub(crate) fn best_ticks(&self, side: Side) -> Option<i64> {
        let (&(key, _), _) = self.queues[side as usize].first_key_value()?;
        Some(key_price(side, key))
    }

    /// Price and lots of each level, best first.
    pub(crate) fn levels(&self, side: Side) -> Vec<(i64, u64)> {
        let mut levels: Vec<(i64, u64)> = Vec::new();
        for (&(key, _), id) in &self.queues[side as usize] {
            let price_ticks = key_price(side, key);
            let size_lots = self.orders[id].size_lots;
            match levels.last_mut() {
                Some((last, lots)) if *last == price_ticks => *lots += size_lots,
                _ => levels.push((price_ticks, size_lots)),
            }
        }
        levels
    }

    /// Trades what crosses; gives what is left. Does not rest it.
    pub(crate) fn take(&mut self, side: Side, limit_ticks: i64, mut size_lots: u64, mut on_fill: impl FnMut(Fill)) -> u64 {
        let maker_side = side.opposite();
        while size_lots > 0 {
            let Some(entry) = self.queues[maker_side as usize].first_entry() else { break };
            let price_ticks = key_price(maker_side, entry.key().0);
            let crosses = match side {
                Side::Buy => price_ticks <= limit_ticks,
                Side::Sell => price_ticks >= limit_ticks,
            };
            if !crosses {
                break;
            }
            let maker_id = *entry.get();
            let maker = self.orders.get_mut(&maker_id).expect("a queued order is live");
            let traded = size_lots.min(maker.size_lots);
            maker.size_lots -= traded;
            let maker_done = maker.size_lots == 0;
            if maker_done {
                entry.remove();
                self.orders.remove(&maker_id);
            }
            self.open_lots[maker_side as usize] -= traded;
            size_lots -= traded;
            on_fill(Fill { maker_id, maker_side, price_ticks, size_lots: traded, maker_done });
        }
        size_lots
    }

    /// Rests an order at the back of its level. It must not cross.
    pub(crate) fn rest(&mut self, id: u64, side: Side, price_ticks: i64, size_lots: u64) {
        self.arrivals += 1;
        let order = Resting { side, price_ticks, size_lots, arrival: self.arrivals };
        assert!(self.orders.insert(id, order).is_none(), "an order id is used once while it is live");
        self.queues[side as usize].insert((key_price(side, price_ticks), self.arrivals), id);
        self.open_lots[side as usize] += size_lots;
    }

    /// Takes an order out.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Resting> {
        let order = self.orders.remove(&id)?;
        self.queues[order.side as usize].remove(&(key_price(order.side, order.price_ticks), order.arrival));
        self.open_lots[order.side as usize] -= order.size_lots;
        Some(order)
    }

    /// Shrinks an order in its place; `true` if nothing is left and it is gone.
    pub(crate) fn reduce(&mut self, id: u64, size_lots: u64) -> Option<bool> {
        let order = self.orders.get_mut(&id)?;
        if order.size_lots <= size_lots {
            self.remove(id);
            return Some(true);
        }
        order.size_lots -= size_lots;
        self.open_lots[order.side as usize] -= size_lots;
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_then_time() {
        let mut book = ModelBook::default();
        book.rest(1, Side::Sell, 101, 5);
        book.rest(2, Side::Sell, 100, 5);
        book.rest(3, Side::Sell, 100, 5);
        assert_eq!(book.reduce(2, 2), Some(false));
        let mut fills = Vec::new();
        assert_eq!(book.take(Side::Buy, 100, 9, |fill| fills.push((fill.maker_id, fill.size_lots))), 1);
        assert_eq!(fills, [(2, 3), (3, 5)]);
        assert_eq!((book.best_ticks(Side::Sell), book.open_lots(Side::Sell)), (Some(101), 5));
        assert_eq!(book.reduce(1, 5), Some(true));
        assert_eq!((book.order_count(Side::Sell), book.remove(1)), (0, None));
        book.rest(4, Side::Buy, 99, 1);
        book.rest(5, Side::Buy, 100, 1);
        book.rest(6, Side::Buy, 99, 1);
        assert_eq!(book.levels(Side::Buy), [(100, 1), (99, 2)]);
    }
}
