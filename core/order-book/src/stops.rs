//! Pending stops, which wait for a trade to touch their trigger.

use std::collections::BTreeMap;
use std::ops::Bound;

use walras_types::{PriceTicks, Side};

use crate::api::{Becomes, Trigger};
use crate::extras::Stop;
use crate::slot::Slot;

/// Per side, in the order in which a moving price touches the triggers, then in order of arrival.
#[derive(Default)]
pub(crate) struct Stops {
    waiting: [BTreeMap<(i64, u64), Slot>; 2],
    next_turn: u64,
    /// The rest of a paused order, which continues before all stops.
    paused: Option<(Side, Slot)>,
}

/// Buys trigger as the price rises, sells as it falls: negate to have the first to trigger first on both sides.
fn key(side: Side, price: PriceTicks) -> i64 {
    match side {
        Side::Buy => price.get(),
        Side::Sell => -price.get(),
    }
}

impl Stops {
    /// Whether a trade at `last` touches `trigger`.
    pub(crate) fn is_touched(side: Side, trigger: PriceTicks, last: PriceTicks) -> bool {
        key(side, trigger) <= key(side, last)
    }

    pub(crate) fn park(&mut self, side: Side, trigger: Trigger, slot: Slot) -> Stop {
        if trigger.becomes == Becomes::Rest {
            assert!(self.paused.is_none(), "nothing enters a book before the rest of the order that did last");
            self.paused = Some((side, slot));
            return Stop { trigger, turn: 0 };
        }
        let turn = self.next_turn;
        self.next_turn += 1;
        self.waiting[side as usize].insert((key(side, trigger.price), turn), slot);
        Stop { trigger, turn }
    }

    pub(crate) fn remove(&mut self, side: Side, stop: Stop) {
        if stop.trigger.becomes == Becomes::Rest {
            self.paused = None;
            return;
        }
        self.waiting[side as usize].remove(&(key(side, stop.trigger.price), stop.turn));
    }

    /// The rest of a paused order, or the next stop that a trade at `last` touches: buys before sells.
    #[inline]
    pub(crate) fn first_touched(&self, last: Option<PriceTicks>) -> Option<Slot> {
        if let Some((_, slot)) = self.paused {
            return Some(slot);
        }
        let last = last?;
        Side::BOTH.into_iter().find_map(|side| {
            let ((first, _), slot) = self.waiting[side as usize].first_key_value()?;
            (*first <= key(side, last)).then_some(*slot)
        })
    }

    /// Whether the rest of a paused order must continue before anything else enters.
    #[inline]
    pub(crate) fn has_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// The stop of a side that enters next after this one.
    pub(crate) fn after(&self, side: Side, stop: Stop) -> Option<Slot> {
        let from = match stop.trigger.becomes {
            Becomes::Rest => Bound::Unbounded,
            Becomes::Market | Becomes::Limit => Bound::Excluded((key(side, stop.trigger.price), stop.turn)),
        };
        self.waiting[side as usize].range((from, Bound::Unbounded)).next().map(|(_, slot)| *slot)
    }

    /// All pending stops of a side, the first to enter first.
    pub(crate) fn iter(&self, side: Side) -> impl Iterator<Item = Slot> {
        let paused = self.paused.filter(|(of, _)| *of == side).map(|(_, slot)| slot);
        paused.into_iter().chain(self.waiting[side as usize].values().copied())
    }
}
