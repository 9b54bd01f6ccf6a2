//! The uncross, price by price.

use walras_order_book::{BookEvents, Uncross};
use walras_types::{PriceTicks, Side, SizeLots};

use super::{NaiveBook, party, tradable};
use crate::tape::Tape;

impl NaiveBook {
    /// Judges every price at which anything changes, its neighbours and the reference: between them nothing does.
    pub(crate) fn auction(&self, reference: PriceTicks) -> Option<Uncross> {
        let limits = self.queue.iter().map(|order| order.price.get());
        let mut prices: Vec<i64> = limits.flat_map(|price| [price - 1, price, price + 1]).chain([reference.get()]).collect();
        prices.sort_unstable();
        prices.dedup();
        let judged: Vec<(PriceTicks, u64, i64)> = prices
            .into_iter()
            .filter_map(PriceTicks::new)
            .map(|price| {
                let (demand, supply) = (self.wanted(Side::Buy, price), self.wanted(Side::Sell, price));
                (price, demand.min(supply), demand as i64 - supply as i64)
            })
            .collect();
        let volume = judged.iter().map(|(_, volume, _)| *volume).max().filter(|volume| *volume > 0)?;
        let most = judged.iter().filter(|(_, other, _)| *other == volume);
        let least = most.clone().map(|(_, _, imbalance)| imbalance.unsigned_abs()).min()?;
        let best: Vec<_> = most.filter(|(_, _, imbalance)| imbalance.unsigned_abs() == least).collect();
        let chosen = if best.iter().all(|(_, _, imbalance)| *imbalance > 0) {
            best.last()
        } else if best.iter().all(|(_, _, imbalance)| *imbalance < 0) {
            best.first()
        } else {
            // min_by_key returns the first, that is the lowest, of equals.
            best.iter().min_by_key(|(price, _, _)| price.distance(reference))
        };
        chosen.map(|(price, volume, imbalance_lots)| Uncross {
            price: *price,
            volume: SizeLots::new(*volume),
            imbalance_lots: *imbalance_lots,
        })
    }

    fn wanted(&self, side: Side, price: PriceTicks) -> u64 {
        let willing = self.queue.iter().filter(|order| order.side == side && side.accepts(order.price, price));
        willing.map(|order| order.open.get()).sum()
    }

    pub(crate) fn uncross(&mut self, uncross: &Uncross, tape: &mut Tape) {
        let mut left = uncross.volume;
        while !left.is_zero() {
            let [buy, sell] = Side::BOTH.map(|side| self.first(side).expect("the volume stands on both sides"));
            let size = tradable(&buy).min(tradable(&sell)).min(left);
            left -= size;
            tape.uncrossed(uncross.price, size, &party(&buy, buy.open - size), &party(&sell, sell.open - size));
            self.consume(buy.order_id, size, tape);
            self.consume(sell.order_id, size, tape);
        }
        self.last_price = Some(uncross.price);
        self.follow();
    }
}
