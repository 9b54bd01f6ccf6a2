//! What the engine does not keep of an open order: what was asked first, when it entered, and what it has traded since. From this
//! and the events of an entry come the records of its fills and of the orders that end with it.
//!
//! In parts by id. Copies share each part until either changes it: so a snapshot's copy takes little time, and an event costs
//! O(log orders) and at most the copying of one part, however many orders are open.

use std::collections::BTreeMap;
use std::sync::Arc;

use walras_types::{
    AccountId, ClientOrderId, ClientOrderName, InstrumentId, LogIndex, OrderId, OrderTerms, PriceTicks, Side, SizeLots, TimeNs,
};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::{CancelReason, Command, DecodeError, Event, NewOrder, OrderEvent, Resting, Traded};

use crate::private::Fill;
use crate::records::{AccountRecord, EndedOrder, OrderEnd, RecordId, Recorded, get_u128, put_u128};

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
    /// What its record holds once it ends; `None` of one that entered before such records were kept.
    pub about: Option<OrderAbout>,
}

/// Who entered an order, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderAbout {
    /// Whose.
    pub account: AccountId,
    /// Where.
    pub instrument: InstrumentId,
    /// The participant's name for it.
    pub client_order_id: ClientOrderId,
    /// The same as text, if it was one.
    pub name: Option<ClientOrderName>,
    /// Buy or sell.
    pub side: Side,
    /// The limit in force; `None` for a stop that waits.
    pub price: Option<PriceTicks>,
    /// What it said, with its amendments; `None` for an order that the venue made itself.
    pub terms: Option<OrderTerms>,
    /// What its trades paid in quote; negative for rebates.
    pub fee: i64,
    /// When it entered, was changed or triggered, or traded last.
    pub changed: TimeNs,
}

/// The histories of all open orders: under 280 bytes for each.
#[derive(Clone, Debug, Default)]
pub struct OrderHistories {
    /// Each part with the id of its first order when it was made: the ids in it are that or above, and below the next part's.
    parts: BTreeMap<OrderId, Arc<Vec<Kept>>>,
    /// Orders that the present entry let in and of which nothing will stand.
    passing: Vec<OrderId>,
}

type Kept = (OrderId, OrderHistory);

/// Orders in a part.
const PART_MAX: usize = 32;

/// A part with fewer takes in the next one, if both have no more than twice as many.
const PART_MIN: usize = PART_MAX / 4;

/// The entry whose events come.
struct Entry<'a> {
    id: RecordId,
    time: TimeNs,
    command: Option<&'a Command>,
    /// The order that it let in last.
    incoming: Option<OrderId>,
    records: &'a mut Vec<Recorded>,
}

impl Entry<'_> {
    fn record(&mut self, account: AccountId, record: AccountRecord) {
        self.records.push(Recorded { id: self.id, account, record });
        self.id.number = self.id.number.saturating_add(1);
    }
}

impl OrderHistories {
    /// Takes the events of an entry, which may hold a command. Appends what they record of accounts.
    pub fn on_entry(
        &mut self,
        log_index: LogIndex,
        time: TimeNs,
        command: Option<&Command>,
        events: &[Event],
        records: &mut Vec<Recorded>,
    ) {
        let entry = &mut Entry { id: RecordId { log_index, number: 0 }, time, command, incoming: None, records };
        for event in events {
            if let Event::Order(event) = event {
                self.on_order(entry, event);
            }
        }
        // An order of which nothing stands is gone, whatever the events said of it.
        while let Some(order_id) = self.passing.pop() {
            self.end(entry, order_id, SizeLots::ZERO, OrderEnd::Cancelled(CancelReason::SelfTrade));
        }
    }

    fn on_order(&mut self, entry: &mut Entry<'_>, event: &OrderEvent) {
        entry.incoming = event.comes_in().or(entry.incoming);
        match event {
            OrderEvent::Accepted(e) => {
                let is_it = |new: &NewOrder| {
                    (new.account, new.instrument, new.client_order_id) == (e.account, e.instrument, e.client_order_id)
                };
                let (terms, name) = match entry.command {
                    Some(Command::Order(order)) => (order.entered().filter(is_it).map(|new| new.terms), order.name()),
                    _ => (None, None),
                };
                let name = name.filter(|_| terms.is_some());
                let about = OrderAbout {
                    account: e.account,
                    instrument: e.instrument,
                    client_order_id: e.client_order_id,
                    side: e.side,
                    price: e.price,
                    name,
                    terms,
                    fee: 0,
                    changed: entry.time,
                };
                let about = Some(about);
                let history =
                    OrderHistory { size: e.size, entered: entry.time, filled: SizeLots::ZERO, filled_tick_lots: 0, about };
                self.push(e.order_id, history);
                self.enters(e.order_id, e.price, e.resting);
            }
            OrderEvent::Amended(e) => {
                self.enters(e.order_id, e.price, e.resting);
                let Some(about) = self.about_mut(e.order_id) else { return };
                (about.price, about.changed) = (e.price, entry.time);
                if let Some(Command::Order(order)) = entry.command
                    && let Some(amend) = order.amended()
                    && (amend.account, amend.instrument) == (e.account, e.instrument)
                    && amend.amendment.client_order_id == e.client_order_id
                {
                    about.terms = about.terms.map(|terms| terms.amended(&amend.amendment));
                }
            }
            OrderEvent::Triggered(e) => {
                self.enters(e.order_id, Some(e.price), e.resting);
                if let Some(about) = self.about_mut(e.order_id) {
                    (about.price, about.changed) = (Some(e.price), entry.time);
                }
            }
            OrderEvent::Traded(e) => self.on_trade(entry, e),
            OrderEvent::Cancelled(e) => self.end(entry, e.order_id, e.open, OrderEnd::Cancelled(e.reason)),
            // What is left of the one that came in is cancelled with the next event.
            OrderEvent::Reduced(e) if e.resting.open.is_zero() && entry.incoming != Some(e.order_id) => {
                self.end(entry, e.order_id, SizeLots::ZERO, OrderEnd::Cancelled(CancelReason::SelfTrade));
            }
            OrderEvent::Reduced(_) | OrderEvent::Replenished(_) => {}
        }
    }

    fn enters(&mut self, order_id: OrderId, price: Option<PriceTicks>, resting: Resting) {
        if price.is_some() && resting.open.is_zero() {
            self.passing.push(order_id);
        }
    }

    fn on_trade(&mut self, entry: &mut Entry<'_>, e: &Traded) {
        let taker_side = (entry.incoming == Some(e.taker.order_id)).then_some(e.taker_side);
        for (account, mut fill) in Fill::both(e, entry.time, taker_side) {
            fill.name = self.get(fill.order_id).and_then(|history| history.about?.name);
            entry.record(account, AccountRecord::Fill(fill));
            if let Some(history) = self.get_mut(fill.order_id) {
                history.filled = SizeLots::new(history.filled.get().saturating_add(e.size.get()));
                let value = u128::from(e.price.get().unsigned_abs()) * u128::from(e.size.get());
                history.filled_tick_lots = history.filled_tick_lots.saturating_add(value);
                if let Some(about) = &mut history.about {
                    about.fee = about.fee.saturating_add(fill.fee);
                    about.changed = entry.time;
                }
            }
            if fill.open.is_zero() {
                self.end(entry, fill.order_id, SizeLots::ZERO, OrderEnd::Filled);
            }
        }
    }

    /// An order ends: its history becomes a record.
    fn end(&mut self, entry: &mut Entry<'_>, order_id: OrderId, open: SizeLots, end: OrderEnd) {
        let Some(OrderHistory { size, entered, filled, filled_tick_lots, about: Some(about) }) = self.remove(order_id) else {
            return;
        };
        let OrderAbout { account, instrument, client_order_id, name, side, price, terms, fee, changed: _ } = about;
        let ended = EndedOrder {
            order_id,
            client_order_id,
            name,
            instrument,
            side,
            price,
            terms,
            size,
            open,
            filled,
            filled_tick_lots,
            fee,
            entered,
            ended: entry.time,
            end,
        };
        entry.record(account, AccountRecord::Ended(ended));
    }

    fn get_mut(&mut self, order_id: OrderId) -> Option<&mut OrderHistory> {
        let (_, part) = self.parts.range_mut(..=order_id).next_back()?;
        let place = place(part, order_id)?;
        Some(&mut Arc::make_mut(part)[place].1)
    }

    fn about_mut(&mut self, order_id: OrderId) -> Option<&mut OrderAbout> {
        self.get_mut(order_id)?.about.as_mut()
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

    fn remove(&mut self, order_id: OrderId) -> Option<OrderHistory> {
        let (&key, part) = self.parts.range_mut(..=order_id).next_back()?;
        let place = place(part, order_id)?;
        let part = Arc::make_mut(part);
        let (_, history) = part.remove(place);
        if part.is_empty() {
            self.parts.remove(&key);
        } else if part.len() < PART_MIN {
            let before = self.parts.range(..key).next_back().map(|(key, _)| *key);
            self.join(key);
            before.into_iter().for_each(|before| self.join(before));
        }
        Some(history)
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
        for (order_id, OrderHistory { size, entered, filled, filled_tick_lots, about }) in self.iter() {
            w.u64(order_id.0);
            w.u64(size.get());
            w.u64(entered.0);
            w.u64(filled.get());
            put_u128(*filled_tick_lots, w);
            about.put(w);
        }
    }

    /// Reads what [`OrderHistories::snapshot`] wrote, and nothing else: ids ascend, and what was filled has a value.
    ///
    /// # Errors
    /// It is something else.
    pub fn restore(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, Wire::get)
    }

    /// Reads the histories of a snapshot of the version before, which did not keep what the orders say.
    ///
    /// # Errors
    /// It is something else.
    pub fn restore_without_terms(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, |_| Ok(None))
    }

    fn read(bytes: &[u8], about: impl Fn(&mut Reader<'_>) -> Result<Option<OrderAbout>, DecodeError>) -> Result<Self, DecodeError> {
        let r = &mut Reader::new(bytes);
        let (mut all, mut last) = (Self::default(), None);
        for _ in 0..r.u64()? {
            let order_id = OrderId(r.u64()?);
            if last.replace(order_id).is_some_and(|last| order_id <= last) {
                return Err(r.expected("an order above the one before"));
            }
            let (size, entered, filled) = (SizeLots::new(r.u64()?), TimeNs(r.u64()?), SizeLots::new(r.u64()?));
            let filled_tick_lots = get_u128(r)?;
            // Prices are one tick at least.
            if size.is_zero() || filled_tick_lots < u128::from(filled.get()) || filled.is_zero() != (filled_tick_lots == 0) {
                return Err(r.expected("an order's size, and trades that have a value"));
            }
            let about = about(r)?;
            all.push(order_id, OrderHistory { size, entered, filled, filled_tick_lots, about });
        }
        r.clone().finish()?;
        Ok(all)
    }
}

impl Wire for OrderAbout {
    fn put(&self, w: &mut Writer<'_>) {
        let Self { account, instrument, client_order_id, name, side, price, terms, fee, changed } = self;
        account.put(w);
        instrument.put(w);
        client_order_id.put(w);
        name.put(w);
        side.put(w);
        price.put(w);
        terms.put(w);
        w.i64(*fee);
        changed.put(w);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            account: Wire::get(r)?,
            instrument: Wire::get(r)?,
            client_order_id: Wire::get(r)?,
            name: Wire::get(r)?,
            side: Wire::get(r)?,
            price: Wire::get(r)?,
            terms: Wire::get(r)?,
            fee: r.i64()?,
            changed: Wire::get(r)?,
        })
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
        let about = OrderAbout {
            account: AccountId(3),
            instrument: InstrumentId(0),
            client_order_id: ClientOrderId(size),
            name: ClientOrderName::new("a-7"),
            side: Side::Buy,
            price: Some(PriceTicks::MIN),
            terms: Some(OrderTerms::limit(Side::Buy, PriceTicks::MIN, SizeLots::new(size))),
            fee: -7,
            changed: TimeNs(size),
        };
        let about = size.is_multiple_of(2).then_some(about);
        OrderHistory { size: SizeLots::new(size), entered: TimeNs(size), filled: SizeLots::ZERO, filled_tick_lots: 0, about }
    }

    fn trade(history: &mut OrderHistory, size: u64) {
        history.filled += SizeLots::new(size);
        history.filled_tick_lots += u128::from(size);
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
                        histories.get_mut(id).into_iter().chain(map.get_mut(&id)).for_each(|history| trade(history, size));
                    }
                    _ => prop_assert_eq!(histories.remove(id), map.remove(&id)),
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
        (1..=count).filter(|id| id % 64 != 0).for_each(|id| assert!(histories.remove(OrderId(id)).is_some()));
        let left = histories.iter().count();
        assert_eq!(left, PART_MAX);
        assert!(histories.parts.len() <= left / PART_MIN * 2, "{} parts", histories.parts.len());
    }

    #[test]
    fn what_is_never_written_is_not_read() {
        let mut histories = OrderHistories::default();
        histories.push(OrderId(7), history(3));
        histories.push(OrderId(9), history(4));
        trade(histories.get_mut(OrderId(9)).unwrap(), 1);
        let whole = bytes_of(&histories);
        assert_eq!(OrderHistories::restore(&whole), Ok(histories.clone()));
        assert!(OrderHistories::restore(&whole[..whole.len() - 1]).is_err());
        histories.get_mut(OrderId(9)).unwrap().about = None;
        // Without the flags of what the version before did not keep.
        let mut bytes = bytes_of(&histories);
        assert_eq!(OrderHistories::restore(&bytes), Ok(histories.clone()));
        bytes.remove(8 + 6 * 8);
        bytes.pop();
        assert_eq!(OrderHistories::restore_without_terms(&bytes), Ok(histories));
        let with = |place: usize, number: u64| {
            let mut bytes = bytes.clone();
            bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
            OrderHistories::restore_without_terms(&bytes)
        };
        const ORDER: usize = 6 * 8;
        assert!(OrderHistories::restore_without_terms(&bytes[..bytes.len() - 1]).is_err());
        assert!(with(8 + ORDER, 7).is_err() && with(8 + ORDER, 8).is_ok(), "ids ascend");
        assert!(with(8 + 8, 0).is_err(), "an order of nothing");
        assert!(with(8 + 3 * 8, 1).is_err(), "filled for nothing");
        assert!(with(8 + ORDER + 3 * 8, 0).is_err(), "a value of no trade");
        assert!(with(0, 1).is_err() && with(0, 3).is_err(), "their count");
    }
}
