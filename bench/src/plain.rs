//! What a right book does, in the plainest words: two sorted maps, a match loop, a rule of shares. Shares no code with the book under
//! test, and is the judge of what that one reports.

use std::collections::{BTreeMap, HashMap};

use walras_market_history::workload_file::level_hash;
use walras_types::{Allocation, SelfTrade, Side};

use crate::driver::{Answer, FillDigest};
use crate::records::{Op, Record};

struct Resting {
    order_id: u64,
    name: (u32, i64),
    open: u64,
}

/// Best first: a bid's price is negated. Then by arrival.
type Key = (i64, u64);

#[derive(Default)]
struct Plain {
    queues: [BTreeMap<Key, Resting>; 2],
    places: HashMap<(u32, i64), (Side, Key)>,
    arrivals: u64,
    answer: Answer,
    digest: FillDigest,
}

fn ranked(side: Side, price: i64) -> i64 {
    match side {
        Side::Buy => -price,
        Side::Sell => price,
    }
}

/// Whether self-trade prevention ended the order.
#[derive(PartialEq)]
enum End {
    SelfTraded,
    Matched,
}

impl Plain {
    /// Trades what crosses, and says how matching ended. `taker.open` is what is left.
    fn take(&mut self, side: Side, price: i64, taker: &mut Resting, self_trade: SelfTrade) -> End {
        while taker.open > 0 {
            let Some(mut best) = self.queues[side.opposite() as usize].first_entry() else { break };
            let maker_price = ranked(side.opposite(), best.key().0);
            let crosses = match side {
                Side::Buy => maker_price <= price,
                Side::Sell => maker_price >= price,
            };
            if !crosses {
                break;
            }
            let maker = best.get_mut();
            if self_trade == SelfTrade::CancelNewest && maker.name.0 == taker.name.0 {
                return End::SelfTraded;
            }
            let size = maker.open.min(taker.open);
            maker.open -= size;
            taker.open -= size;
            self.answer.trades += 1;
            self.answer.volume += size;
            self.digest.add(maker.order_id, taker.order_id, maker_price, size);
            if maker.open == 0 {
                self.places.remove(&best.remove().name);
            }
        }
        End::Matched
    }

    fn rest(&mut self, side: Side, price: i64, order: Resting) {
        self.arrivals += 1;
        let key = (ranked(side, price), self.arrivals);
        self.places.insert(order.name, (side, key));
        self.queues[side as usize].insert(key, order);
    }

    fn remove(&mut self, name: (u32, i64)) -> Option<(Side, Resting)> {
        let (side, key) = self.places.remove(&name)?;
        Some((side, self.queues[side as usize].remove(&key).expect("a known order stands in its queue")))
    }

    /// Matches an order and rests what is left. False if self-trade prevention ended it.
    fn enter(&mut self, side: Side, price: i64, mut order: Resting, self_trade: SelfTrade) {
        if self.take(side, price, &mut order, self_trade) == End::Matched && order.open > 0 {
            self.rest(side, price, order);
        }
    }

    fn apply(&mut self, number: u64, record: &Record, self_trade: SelfTrade) {
        let name = (record.user, record.id);
        let size = record.size.cast_unsigned();
        match record.op {
            Op::Gtc | Op::Ioc if self.places.contains_key(&name) => self.answer.refused += 1,
            Op::Gtc => self.enter(record.side(), record.price, Resting { order_id: number, name, open: size }, self_trade),
            Op::Ioc => {
                let mut order = Resting { order_id: number, name, open: size };
                self.take(record.side(), record.price, &mut order, self_trade);
            }
            Op::Cancel => self.answer.refused += u64::from(self.remove(name).is_none()),
            Op::Move => match self.remove(name) {
                Some((side, order)) => self.enter(side, record.price, order, self_trade),
                None => self.answer.refused += 1,
            },
            Op::Reduce => match self.places.get(&name) {
                Some((side, key)) => {
                    let order = self.queues[*side as usize].get_mut(key).expect("a known order stands in its queue");
                    order.open = order.open.saturating_sub(size);
                    if order.open == 0 {
                        self.remove(name);
                    }
                }
                None => self.answer.refused += 1,
            },
        }
    }

    fn levels(&self, side: Side) -> Vec<(i64, u64)> {
        let mut levels: Vec<(i64, u64)> = Vec::new();
        for ((rank, _), order) in &self.queues[side as usize] {
            let price = ranked(side, *rank);
            match levels.last_mut() {
                Some((last, lots)) if *last == price => *lots += order.open,
                _ => levels.push((price, order.open)),
            }
        }
        levels
    }
}

/// What a price-time book makes of `records`. Knows of self-trade prevention only [`SelfTrade::Allow`] and [`SelfTrade::CancelNewest`].
#[must_use]
pub fn solve(records: &[Record], self_trade: SelfTrade) -> (Answer, FillDigest) {
    assert!(matches!(self_trade, SelfTrade::Allow | SelfTrade::CancelNewest), "the plain book knows no other rule");
    let mut plain = Plain::default();
    for (at, record) in records.iter().enumerate() {
        plain.apply(at as u64 + 1, record, self_trade);
    }
    let (asks, bids) = (plain.levels(Side::Sell), plain.levels(Side::Buy));
    let answer = Answer {
        ask_levels: asks.len() as u64,
        bid_levels: bids.len() as u64,
        orders: plain.places.len() as u64,
        level_hash: level_hash(asks.into_iter(), bids.into_iter()),
        ..plain.answer
    };
    (answer, plain.digest)
}

/// What each order of a level gets of an incoming `quantity` below their sum. The first order has set the price.
#[must_use]
pub fn shares(allocation: Allocation, sizes: &[u64], quantity: u64) -> Vec<u64> {
    let mut shares = vec![0; sizes.len()];
    let mut left = quantity;
    let give_in_turn = |shares: &mut [u64], mut lots: u64| {
        for (share, size) in shares.iter_mut().zip(sizes) {
            let more = lots.min(size - *share);
            *share += more;
            lots -= more;
        }
    };
    let min_lots = match allocation {
        Allocation::PriceTime => {
            give_in_turn(&mut shares, quantity);
            return shares;
        }
        Allocation::ProRata { min_lots } => min_lots,
        Allocation::TopProRata { top_lots_max, min_lots } => {
            shares[0] = sizes[0].min(top_lots_max.get()).min(quantity);
            left -= shares[0];
            min_lots
        }
        Allocation::Split { fifo_percent, min_lots } => {
            let first = quantity * u64::from(fifo_percent) / 100;
            give_in_turn(&mut shares, first);
            left -= first;
            min_lots
        }
    };
    let open: Vec<u64> = sizes.iter().zip(&shares).map(|(size, share)| size - share).collect();
    let total: u64 = open.iter().sum();
    let mut remainder = left;
    for (share, open) in shares.iter_mut().zip(open) {
        let proportional = u64::try_from(u128::from(open) * u128::from(left) / u128::from(total)).expect("at most `left`");
        if proportional >= min_lots.get() {
            *share += proportional;
            remainder -= proportional;
        }
    }
    give_in_turn(&mut shares, remainder);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use walras_types::SizeLots;

    fn order(op: Op, side: Side, user: u32, id: i64, price: i64, size: i64) -> Record {
        Record { op, side: u8::from(side == Side::Buy), user, id, price, size }
    }

    #[test]
    fn worked_out_by_hand() {
        let records = [
            order(Op::Gtc, Side::Sell, 1, 1, 101, 5),
            order(Op::Gtc, Side::Sell, 2, 2, 101, 3),
            order(Op::Gtc, Side::Buy, 2, 3, 101, 7),
        ];
        let (allowed, _) = solve(&records, SelfTrade::Allow);
        assert_eq!((allowed.trades, allowed.volume, allowed.orders), (2, 7, 1));
        // The second trade would be with its own owner: the rest of the bid ends.
        let (prevented, _) = solve(&records, SelfTrade::CancelNewest);
        assert_eq!((prevented.trades, prevented.volume, prevented.orders), (1, 5, 1));
    }

    #[test]
    fn shares_worked_out_by_hand() {
        let lots = SizeLots::new;
        let sizes = [50, 30, 20];
        // 16.5, 9.9, 6.6 of 33, rounded down; the 2 left go to the first.
        assert_eq!(shares(Allocation::ProRata { min_lots: lots(1) }, &sizes, 33), [18, 9, 6]);
        assert_eq!(shares(Allocation::ProRata { min_lots: lots(7) }, &sizes, 33), [24, 9, 0]);
        // 10 ahead, then 23 in proportion to 40, 30, 20: 10.2, 7.6, 5.1.
        assert_eq!(shares(Allocation::TopProRata { top_lots_max: lots(10), min_lots: lots(1) }, &sizes, 33), [21, 7, 5]);
        // 13 first in, first out, then 20 in proportion to 37, 30, 20: 8.5, 6.8, 4.5.
        assert_eq!(shares(Allocation::Split { fifo_percent: 40, min_lots: lots(1) }, &sizes, 33), [23, 6, 4]);
        assert_eq!(shares(Allocation::PriceTime, &sizes, 33), [33, 0, 0]);
    }
}
