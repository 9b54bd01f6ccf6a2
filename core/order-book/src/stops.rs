//! Pending stops and take-profits, which wait for a trade to touch their trigger.

use std::collections::BTreeMap;
use std::ops::Bound;

use walras_types::{PriceTicks, Side};

use crate::api::{Becomes, Condition, Trigger};
use crate::extras::Stop;
use crate::slot::Slot;

/// The queues in the order in which they are looked at: stops before take-profits, buys before sells.
const QUEUES: [(Condition, Side); 4] = [
    (Condition::Stop, Side::Buy),
    (Condition::Stop, Side::Sell),
    (Condition::TakeProfit, Side::Buy),
    (Condition::TakeProfit, Side::Sell),
];

/// Per condition and side, in the order in which a moving price touches the triggers, then in order of arrival.
pub(crate) struct Stops {
    waiting: [BTreeMap<(i64, u64), Slot>; 4],
    next_turn: u64,
    /// The rest of a paused order, which continues before all stops.
    paused: Option<(Side, Slot)>,
    /// The nearest triggers: no trade between them touches any. Follows from `waiting`.
    falling: i64,
    rising: i64,
}

impl Default for Stops {
    fn default() -> Self {
        Self { waiting: Default::default(), next_turn: 0, paused: None, falling: i64::MIN, rising: i64::MAX }
    }
}

fn queue_of(condition: Condition, side: Side) -> usize {
    condition as usize * 2 + side as usize
}

/// Whether a rising price touches the triggers of a queue, or a falling one.
fn is_rising(condition: Condition, side: Side) -> bool {
    matches!((condition, side), (Condition::Stop, Side::Buy) | (Condition::TakeProfit, Side::Sell))
}

/// Some trigger as the price rises, others as it falls: negate to have the first to trigger first in all queues.
fn key(condition: Condition, side: Side, price: PriceTicks) -> i64 {
    if is_rising(condition, side) { price.get() } else { -price.get() }
}

impl Stops {
    pub(crate) fn park(&mut self, side: Side, trigger: Trigger, slot: Slot) -> Stop {
        if trigger.becomes == Becomes::Rest {
            assert!(self.paused.is_none(), "nothing enters a book before the rest of the order that did last");
            self.paused = Some((side, slot));
            return Stop { trigger, turn: 0 };
        }
        let turn = self.next_turn;
        self.next_turn += 1;
        let Trigger { price, condition, .. } = trigger;
        self.waiting[queue_of(condition, side)].insert((key(condition, side, price), turn), slot);
        self.find_nearest();
        Stop { trigger, turn }
    }

    pub(crate) fn remove(&mut self, side: Side, stop: Stop) {
        let Trigger { price, condition, becomes } = stop.trigger;
        if becomes == Becomes::Rest {
            self.paused = None;
            return;
        }
        self.waiting[queue_of(condition, side)].remove(&(key(condition, side, price), stop.turn));
        self.find_nearest();
    }

    /// Looks for the nearest triggers again, so that a trade that touches none costs two comparisons.
    fn find_nearest(&mut self) {
        (self.falling, self.rising) = (i64::MIN, i64::MAX);
        for (condition, side) in QUEUES {
            if let Some(((first, _), _)) = self.waiting[queue_of(condition, side)].first_key_value() {
                match is_rising(condition, side) {
                    true => self.rising = self.rising.min(*first),
                    false => self.falling = self.falling.max(-*first),
                }
            }
        }
    }

    /// The rest of a paused order, or the next order that a trade at `last` touches: stops before take-profits, buys before sells.
    #[inline]
    pub(crate) fn first_touched(&self, last: Option<PriceTicks>) -> Option<Slot> {
        if let Some((_, slot)) = self.paused {
            return Some(slot);
        }
        let last = last?;
        if last.get() > self.falling && last.get() < self.rising {
            return None;
        }
        self.first_touched_of(last)
    }

    #[cold]
    #[inline(never)]
    fn first_touched_of(&self, last: PriceTicks) -> Option<Slot> {
        QUEUES.into_iter().find_map(|(condition, side)| {
            let ((first, _), slot) = self.waiting[queue_of(condition, side)].first_key_value()?;
            (*first <= key(condition, side, last)).then_some(*slot)
        })
    }

    /// Whether the rest of a paused order must continue before anything else enters.
    #[inline]
    pub(crate) fn has_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// The order that follows this one in [`Self::iter`].
    pub(crate) fn after(&self, side: Side, stop: Stop) -> Option<Slot> {
        let Trigger { price, condition, becomes } = stop.trigger;
        let from = match becomes {
            Becomes::Rest => Bound::Unbounded,
            Becomes::Market | Becomes::Limit => Bound::Excluded((key(condition, side, price), stop.turn)),
        };
        let queue = queue_of(condition, side);
        let next = self.waiting[queue].range((from, Bound::Unbounded)).next().map(|(_, slot)| *slot);
        next.or_else(|| QUEUES[queue + 1..].iter().find_map(|queue| self.queue(*queue).next()))
    }

    /// All of them, queue by queue, in each the first to enter first; the rest of a paused order before the stops of its side.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Side, Slot)> {
        QUEUES.into_iter().flat_map(|queue| self.queue(queue).map(move |slot| (queue.1, slot)))
    }

    fn queue(&self, (condition, side): (Condition, Side)) -> impl Iterator<Item = Slot> {
        let paused = self.paused.filter(|(of, _)| condition == Condition::Stop && *of == side).map(|(_, slot)| slot);
        paused.into_iter().chain(self.waiting[queue_of(condition, side)].values().copied())
    }

    /// Panics if the nearest triggers are not.
    pub(crate) fn check_invariants(&self) {
        let mut again = Self { waiting: self.waiting.clone(), ..Self::default() };
        again.find_nearest();
        assert_eq!((self.falling, self.rising), (again.falling, again.rising), "the nearest triggers");
    }
}
