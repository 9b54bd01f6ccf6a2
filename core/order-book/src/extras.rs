//! Attributes that few orders have, stored outside the arena so that a plain order fits one cache line.

use std::collections::BTreeMap;

use walras_types::{Display, OrderId, Side, SizeLots, TimeInForce, TimeNs};

use crate::api::Trigger;
use crate::arena::Lifetime;
use crate::price_index::Rank;
use crate::slot::Slot;

/// The terms of an order that is not plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extras {
    pub(crate) display: Display,
    pub(crate) time_in_force: TimeInForce,
    pub(crate) min_size: Option<SizeLots>,
    pub(crate) stop: Option<Stop>,
}

impl Extras {
    /// The extras of a plain order.
    #[inline]
    pub(crate) fn of_plain(lifetime: Lifetime) -> Self {
        let time_in_force = if lifetime == Lifetime::Day { TimeInForce::Day } else { TimeInForce::GoodTillCancel };
        Self { display: Display::Full, time_in_force, min_size: None, stop: None }
    }

    /// When the order expires.
    pub(crate) fn expires(&self) -> Option<TimeNs> {
        match self.time_in_force {
            TimeInForce::GoodTill(time) => Some(time),
            TimeInForce::GoodTillCancel | TimeInForce::Day | TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill => None,
        }
    }
}

/// A trigger and the order in which stops of one trigger wait. Of a trailing stop, the trigger with which it came, and its turn among those
/// of its side: [`crate::stops::Stops::current`] knows where the trigger is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) trigger: Trigger,
    pub(crate) turn: u64,
}

/// Extras by place, the times at which orders expire, and what icebergs hide behind their slices.
#[derive(Default)]
pub(crate) struct ExtrasTable {
    by_slot: BTreeMap<Slot, Extras>,
    expiries: BTreeMap<(TimeNs, OrderId), Slot>,
    /// Lots by side and price that no level counts: of orders in displayed queues, the open lots less the slices. None is zero.
    reserves: BTreeMap<(Side, Rank), u64>,
}

impl ExtrasTable {
    pub(crate) fn insert(&mut self, slot: Slot, order_id: OrderId, extras: Extras) {
        if let Some(time) = extras.expires() {
            self.expiries.insert((time, order_id), slot);
        }
        self.by_slot.insert(slot, extras);
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn remove(&mut self, slot: Slot, order_id: OrderId) {
        let extras = self.by_slot.remove(&slot).expect("an order that is not plain has extras");
        if let Some(time) = extras.expires() {
            self.expiries.remove(&(time, order_id));
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn get(&self, slot: Slot) -> Extras {
        *self.by_slot.get(&slot).expect("an order that is not plain has extras")
    }

    /// Those of all orders that have some, by place.
    pub(crate) fn by_slot(&self) -> &BTreeMap<Slot, Extras> {
        &self.by_slot
    }

    /// Gives a stop another trigger.
    pub(crate) fn set_stop(&mut self, slot: Slot, stop: Stop) {
        self.by_slot.get_mut(&slot).expect("an order that is not plain has extras").stop = Some(stop);
    }

    /// A copy of them all, with the triggers of trailing stops as they are now.
    pub(crate) fn with_triggers(
        &self,
        trailing: impl Iterator<Item = Slot>,
        now: impl Fn(Slot, Stop) -> Trigger,
    ) -> BTreeMap<Slot, Extras> {
        let mut by_slot = self.by_slot.clone();
        for slot in trailing {
            if let Some(Extras { stop: Some(stop), .. }) = by_slot.get_mut(&slot) {
                stop.trigger = now(slot, *stop);
            }
        }
        by_slot
    }

    /// Keeps the minimum of an order that shrank within what is left of it.
    pub(crate) fn lower_min_size(&mut self, slot: Slot, open: SizeLots) {
        let extras = self.by_slot.get_mut(&slot).expect("an order that is not plain has extras");
        extras.min_size = extras.min_size.map(|min_size| min_size.min(open));
    }

    /// When the next order expires.
    #[inline]
    pub(crate) fn next_expiry(&self) -> Option<TimeNs> {
        self.expiries.first_key_value().map(|((time, _), _)| *time)
    }

    /// The first order that expires at or before `now`.
    pub(crate) fn first_due(&self, now: TimeNs) -> Option<Slot> {
        let ((time, _), slot) = self.expiries.first_key_value()?;
        (*time <= now).then_some(*slot)
    }

    /// The lots that icebergs of a price hide behind their slices.
    #[inline]
    pub(crate) fn reserve(&self, side: Side, rank: Rank) -> u64 {
        if self.reserves.is_empty() { 0 } else { self.reserves.get(&(side, rank)).copied().unwrap_or(0) }
    }

    /// An order of a displayed queue hides `lots` there from now on.
    pub(crate) fn add_reserve(&mut self, side: Side, rank: Rank, lots: SizeLots) {
        if !lots.is_zero() {
            *self.reserves.entry((side, rank)).or_default() += lots.get();
        }
    }

    /// `lots` of what [`Self::add_reserve`] added are hidden no more.
    pub(crate) fn take_reserve(&mut self, side: Side, rank: Rank, lots: SizeLots) {
        if lots.is_zero() {
            return;
        }
        let reserve = self.reserves.get_mut(&(side, rank)).expect("what leaves the reserve of a price was in it");
        *reserve -= lots.get();
        if *reserve == 0 {
            self.reserves.remove(&(side, rank));
        }
    }

    pub(crate) fn reserves(&self) -> &BTreeMap<(Side, Rank), u64> {
        &self.reserves
    }

    pub(crate) fn len(&self) -> usize {
        self.by_slot.len()
    }

    pub(crate) fn expiry_count(&self) -> usize {
        self.expiries.len()
    }
}
