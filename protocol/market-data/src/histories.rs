//! What the engine does not keep of an open order: what was asked first, when it entered, and what it has traded since.
//!
//! In parts by id. Copies share each part until either changes it: so a snapshot's copy takes little time, and an event costs
//! O(log orders) and at most the copying of one part, however many orders are open.

use std::collections::BTreeMap;
use std::sync::Arc;

use walras_types::{OrderId, PriceTicks, SizeLots, TimeNs};
use walras_wire::codec::{Reader, Writer};
use walras_wire::{DecodeError, Event, OrderEvent};

/// The past of an open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderHistory {
    /// How much was asked when it entered. Amendments change what is open, and not this.
    pub size: SizeLots,
    /// When it entered.
    pub entered: TimeNs,
    /// How much it has traded.
    pub filled: SizeLots,
    /// The sum over its trades of price in ticks times size in lots: divided by `filled` it is the average price.
    pub filled_tick_lots: u128,
}

/// The histories of all open orders: under 80 bytes for each.
#[derive(Clone, Debug, Default)]
pub struct OrderHistories {
    /// Each part with the id of its first order when it was made: the ids in it are that or above, and below the next part's.
    parts: BTreeMap<OrderId, Arc<Vec<Kept>>>,
}

type Kept = (OrderId, OrderHistory);

/// Orders in a part.
const PART_MAX: usize = 128;

/// A part with fewer takes in the next one, if both have no more than twice as many.
const PART_MIN: usize = PART_MAX / 4;

impl OrderHistories {
    /// Takes the next event of the log.
    pub fn on_event(&mut self, time: TimeNs, event: &Event) {
        let Event::Order(event) = event else { return };
        match event {
            OrderEvent::Accepted(e) if !e.resting.open.is_zero() => {
                let history = OrderHistory { size: e.size, entered: time, filled: SizeLots::ZERO, filled_tick_lots: 0 };
                self.push(e.order_id, history);
            }
            OrderEvent::Traded(e) => {
                for party in [&e.maker, &e.taker] {
                    self.traded(party.order_id, e.price, e.size, party.open);
                }
            }
            OrderEvent::Cancelled(e) => self.remove(e.order_id),
            OrderEvent::Reduced(e) if e.resting.open.is_zero() => self.remove(e.order_id),
            OrderEvent::Accepted(_)
            | OrderEvent::Amended(_)
            | OrderEvent::Triggered(_)
            | OrderEvent::Reduced(_)
            | OrderEvent::Replenished(_) => {}
        }
    }

    /// The history of an open order. `None` also of one that entered before histories were kept.
    #[must_use]
    pub fn get(&self, order_id: OrderId) -> Option<&OrderHistory> {
        let (_, part) = self.parts.range(..=order_id).next_back()?;
        Some(&part[place(part, order_id)?].1)
    }

    /// All open orders by id.
    pub fn iter(&self) -> impl Iterator<Item = &(OrderId, OrderHistory)> {
        self.parts.values().flat_map(|part| part.iter())
    }

    /// Adds an order, if its id is above all that are there, as that of an order is which enters.
    fn push(&mut self, order_id: OrderId, history: OrderHistory) {
        if let Some(mut last) = self.parts.last_entry() {
            let part = last.get_mut();
            if part.last().is_some_and(|(last, _)| *last >= order_id) {
                return;
            }
            if part.len() < PART_MAX {
                Arc::make_mut(part).push((order_id, history));
                return;
            }
        }
        self.parts.insert(order_id, Arc::new(vec![(order_id, history)]));
    }

    fn traded(&mut self, order_id: OrderId, price: PriceTicks, size: SizeLots, open: SizeLots) {
        if open.is_zero() {
            return self.remove(order_id);
        }
        let Some((_, part)) = self.parts.range_mut(..=order_id).next_back() else { return };
        let Some(place) = place(part, order_id) else { return };
        let history = &mut Arc::make_mut(part)[place].1;
        history.filled = SizeLots::new(history.filled.get().saturating_add(size.get()));
        let value = u128::from(price.get().unsigned_abs()) * u128::from(size.get());
        history.filled_tick_lots = history.filled_tick_lots.saturating_add(value);
    }

    fn remove(&mut self, order_id: OrderId) {
        let Some((&key, part)) = self.parts.range_mut(..=order_id).next_back() else { return };
        let Some(place) = place(part, order_id) else { return };
        let part = Arc::make_mut(part);
        part.remove(place);
        if part.is_empty() {
            self.parts.remove(&key);
        } else if part.len() < PART_MIN {
            let before = self.parts.range(..key).next_back().map(|(key, _)| *key);
            self.join(key);
            before.into_iter().for_each(|before| self.join(before));
        }
    }

    /// Puts the part after this one into it, if there is one and both are short.
    #[cold]
    fn join(&mut self, key: OrderId) {
        let mut from_here = self.parts.range(key..);
        let (Some((_, this)), Some((&next_key, next))) = (from_here.next(), from_here.next()) else { return };
        if this.len() + next.len() > PART_MAX / 2 {
            return;
        }
        let next = Arc::clone(next);
        self.parts.remove(&next_key);
        if let Some(this) = self.parts.get_mut(&key) {
            Arc::make_mut(this).extend_from_slice(&next);
        }
    }

    /// Appends all of it to a snapshot.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        let w = &mut Writer(out);
        w.u64(self.parts.values().map(|part| part.len() as u64).sum());
        for (order_id, OrderHistory { size, entered, filled, filled_tick_lots }) in self.iter() {
            w.u64(order_id.0);
            w.u64(size.get());
            w.u64(entered.0);
            w.u64(filled.get());
            w.u64((filled_tick_lots >> 64) as u64);
            w.u64(*filled_tick_lots as u64);
        }
    }

    /// Reads what [`OrderHistories::snapshot`] wrote, and nothing else: ids ascend, and what was filled has a value.
    pub fn restore(bytes: &[u8]) -> Result<Self, DecodeError> {
        let r = &mut Reader::new(bytes);
        let (mut all, mut last) = (Self::default(), None);
        for _ in 0..r.u64()? {
            let order_id = OrderId(r.u64()?);
            if last.replace(order_id).is_some_and(|last| order_id <= last) {
                return Err(r.expected("an order above the one before"));
            }
            let (size, entered, filled) = (SizeLots::new(r.u64()?), TimeNs(r.u64()?), SizeLots::new(r.u64()?));
            let filled_tick_lots = u128::from(r.u64()?) << 64 | u128::from(r.u64()?);
            // Prices are one tick at least.
            if size.is_zero() || filled_tick_lots < u128::from(filled.get()) || filled.is_zero() != (filled_tick_lots == 0) {
                return Err(r.expected("an order's size, and trades that have a value"));
            }
            all.push(order_id, OrderHistory { size, entered, filled, filled_tick_lots });
        }
        r.clone().finish()?;
        Ok(all)
    }
}

/// However they lie in parts.
impl PartialEq for OrderHistories {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for OrderHistories {}

/// Where an order is in its part.
fn place(part: &[Kept], order_id: OrderId) -> Option<usize> {
    part.binary_search_by_key(&order_id, |(order_id, _)| *order_id).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn history(size: u64) -> OrderHistory {
        OrderHistory { size: SizeLots::new(size), entered: TimeNs(size), filled: SizeLots::ZERO, filled_tick_lots: 0 }
    }

    fn bytes_of(histories: &OrderHistories) -> Vec<u8> {
        let mut bytes = Vec::new();
        histories.snapshot(&mut bytes);
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Orders enter by ascending ids, with gaps; any of them trades, is gone or is asked for. The naive model is a map.
        #[test]
        fn equals_a_map(steps in prop::collection::vec((0_u8..10, 0_u64..1_000, 1_u64..50), 0..3_000)) {
            let (mut histories, mut map, mut next) = (OrderHistories::default(), BTreeMap::new(), 0);
            let mut kept: Option<(OrderHistories, Vec<u8>)> = None;
            for (count, (kind, at, size)) in steps.into_iter().enumerate() {
                // One of those there, or one that is not.
                let id = map.keys().nth(at as usize % (map.len() + 1)).copied().unwrap_or(OrderId(at));
                match kind {
                    0..=5 => {
                        next += size;
                        histories.push(OrderId(next), history(size));
                        map.insert(OrderId(next), history(size));
                    }
                    6 => {
                        histories.traded(id, PriceTicks::MIN, SizeLots::new(size), SizeLots::new(1));
                        if let Some(history) = map.get_mut(&id) {
                            history.filled += SizeLots::new(size);
                            history.filled_tick_lots += u128::from(PriceTicks::MIN.get().unsigned_abs()) * u128::from(size);
                        }
                    }
                    7..=8 => {
                        histories.remove(id);
                        map.remove(&id);
                    }
                    _ => {
                        histories.traded(id, PriceTicks::MIN, SizeLots::new(size), SizeLots::ZERO);
                        map.remove(&id);
                    }
                }
                prop_assert_eq!(histories.get(id), map.get(&id));
                prop_assert!(histories.parts.values().all(|part| (1..=PART_MAX).contains(&part.len())));
                if count % 500 == 250 {
                    if let Some((kept, bytes)) = kept {
                        prop_assert!(bytes_of(&kept) == bytes, "a clone stays what it was");
                    }
                    kept = Some((histories.clone(), bytes_of(&histories)));
                }
            }
            prop_assert!(histories.iter().copied().eq(map));
            let restored = OrderHistories::restore(&bytes_of(&histories));
            prop_assert_eq!(restored, Ok(histories));
        }
    }

    #[test]
    fn few_orders_of_many_are_not_left_in_a_part_each() {
        let mut histories = OrderHistories::default();
        let count = 64 * PART_MAX as u64;
        (1..=count).for_each(|id| histories.push(OrderId(id), history(1)));
        (1..=count).filter(|id| id % 64 != 0).for_each(|id| histories.remove(OrderId(id)));
        let left = histories.iter().count();
        assert_eq!(left, PART_MAX);
        assert!(histories.parts.len() <= left / PART_MIN * 2, "{} parts", histories.parts.len());
    }

    #[test]
    fn what_is_never_written_is_not_read() {
        let mut histories = OrderHistories::default();
        histories.push(OrderId(7), history(3));
        histories.push(OrderId(9), history(4));
        histories.traded(OrderId(9), PriceTicks::MAX, SizeLots::new(1), SizeLots::new(3));
        let bytes = bytes_of(&histories);
        assert_eq!(OrderHistories::restore(&bytes), Ok(histories));
        let with = |place: usize, number: u64| {
            let mut bytes = bytes.clone();
            bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
            OrderHistories::restore(&bytes)
        };
        const ORDER: usize = 6 * 8;
        assert!(OrderHistories::restore(&bytes[..bytes.len() - 1]).is_err());
        assert!(with(8 + ORDER, 7).is_err() && with(8 + ORDER, 8).is_ok(), "ids ascend");
        assert!(with(8 + 8, 0).is_err(), "an order of nothing");
        assert!(with(8 + 3 * 8, 1).is_err(), "filled for nothing");
        assert!(with(8 + ORDER + 3 * 8, 0).is_err(), "a value of no trade");
        assert!(with(0, 1).is_err() && with(0, 3).is_err(), "their count");
    }
}
