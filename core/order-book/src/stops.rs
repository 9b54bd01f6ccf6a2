//! Pending stops, take-profits and trailing stops, which wait for a trade to touch their trigger, and those that are held: they wait to be
//! released first.

use std::collections::BTreeMap;
use std::ops::Bound;

use walras_types::{PriceTicks, Side};

use crate::api::{Becomes, Condition, Trailing, Trigger};
use crate::extras::Stop;
use crate::slot::Slot;
use crate::trails::Trails;

/// The queues in the order in which they are looked at: stops before take-profits, buys before sells. Then come the trailing stops.
const QUEUES: [(Condition, Side); 4] = [
    (Condition::Stop, Side::Buy),
    (Condition::Stop, Side::Sell),
    (Condition::TakeProfit, Side::Buy),
    (Condition::TakeProfit, Side::Sell),
];

/// Per condition and side, in the order in which a moving price touches the triggers, then in order of arrival.
pub(crate) struct Stops {
    waiting: [BTreeMap<(i64, u64), Slot>; 4],
    /// Per side, those whose trigger follows the market.
    trails: [Trails; 2],
    /// Those that no price touches, in order of arrival.
    held: BTreeMap<u64, (Side, Slot)>,
    next_turn: u64,
    /// The rest of a paused order, which continues before all stops.
    paused: Option<(Side, Slot)>,
    /// The nearest triggers: no trade between them touches any. Follows from `waiting` and `trails`.
    falling: i64,
    rising: i64,
}

impl Default for Stops {
    fn default() -> Self {
        let trails = Side::BOTH.map(Trails::new);
        Self {
            waiting: Default::default(),
            trails,
            held: BTreeMap::new(),
            next_turn: 0,
            paused: None,
            falling: i64::MIN,
            rising: i64::MAX,
        }
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
        if trigger.is_held {
            let turn = self.take_turn();
            self.held.insert(turn, (side, slot));
            return Stop { trigger, turn };
        }
        if let Some(Trailing { by, best }) = trigger.trailing {
            let turn = self.trails[side as usize].push(slot, by, best);
            self.find_nearest();
            return Stop { trigger, turn };
        }
        let turn = self.take_turn();
        let Trigger { price, condition, .. } = trigger;
        self.waiting[queue_of(condition, side)].insert((key(condition, side, price), turn), slot);
        self.find_nearest();
        Stop { trigger, turn }
    }

    fn take_turn(&mut self) -> u64 {
        let turn = self.next_turn;
        self.next_turn += 1;
        turn
    }

    pub(crate) fn remove(&mut self, side: Side, stop: Stop) {
        let Trigger { price, condition, becomes, trailing, is_held } = stop.trigger;
        if becomes == Becomes::Rest {
            self.paused = None;
            return;
        }
        if is_held {
            self.held.remove(&stop.turn);
            return;
        }
        if trailing.is_some() {
            self.trails[side as usize].remove(stop.turn);
            return self.find_nearest();
        }
        self.waiting[queue_of(condition, side)].remove(&(key(condition, side, price), stop.turn));
        self.find_nearest();
    }

    /// Moves the triggers of trailing stops after `last`.
    #[inline]
    pub(crate) fn follow(&mut self, last: Option<PriceTicks>) {
        if self.trails.iter().any(|trails| !trails.is_empty()) {
            self.follow_trails(last);
        }
    }

    #[cold]
    #[inline(never)]
    fn follow_trails(&mut self, last: Option<PriceTicks>) {
        let Some(last) = last else { return };
        let moved = self.trails.each_mut().map(|trails| trails.follow(last));
        if moved.contains(&true) {
            self.find_nearest();
        }
    }

    /// The trigger of an order that waits as it is now.
    pub(crate) fn current(&self, side: Side, stop: Stop) -> Trigger {
        match stop.trigger.trailing {
            None => stop.trigger,
            Some(Trailing { by, .. }) => {
                let best = self.trails[side as usize].best(stop.turn);
                Trigger::trailing(side, by, best, stop.trigger.becomes)
            }
        }
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
        let [buy, sell] = self.trails.each_ref().map(Trails::first);
        self.rising = self.rising.min(buy.map_or(i64::MAX, |(trigger, _)| trigger.get()));
        self.falling = self.falling.max(sell.map_or(i64::MIN, |(trigger, _)| trigger.get()));
    }

    /// The rest of a paused order, or the next order that a trade at `last` touches: stops before take-profits before trailing stops, buys
    /// before sells.
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
        let fixed = QUEUES.into_iter().find_map(|(condition, side)| {
            let ((first, _), slot) = self.waiting[queue_of(condition, side)].first_key_value()?;
            (*first <= key(condition, side, last)).then_some(*slot)
        });
        fixed.or_else(|| {
            Side::BOTH.into_iter().find_map(|side| {
                let (trigger, slot) = self.trails[side as usize].first()?;
                Condition::Stop.is_touched(side, trigger, last).then_some(slot)
            })
        })
    }

    /// Whether the rest of a paused order must continue before anything else enters.
    #[inline]
    pub(crate) fn has_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// The order that follows this one in [`Self::iter`].
    pub(crate) fn after(&self, side: Side, stop: Stop) -> Option<Slot> {
        let Trigger { price, condition, becomes, trailing, is_held } = stop.trigger;
        if is_held {
            return self.held.range((Bound::Excluded(stop.turn), Bound::Unbounded)).next().map(|(_, (_, slot))| *slot);
        }
        let first_held = || self.held.values().next().map(|(_, slot)| *slot);
        if trailing.is_some() {
            let next = self.trails[side as usize].from(stop.turn + 1).map(|(_, slot)| slot);
            let next = next.or_else(|| match side {
                Side::Buy => self.trails[Side::Sell as usize].iter().next(),
                Side::Sell => None,
            });
            return next.or_else(first_held);
        }
        let from = match becomes {
            Becomes::Rest => Bound::Unbounded,
            Becomes::Market | Becomes::Limit => Bound::Excluded((key(condition, side, price), stop.turn)),
        };
        let queue = queue_of(condition, side);
        let next = self.waiting[queue].range((from, Bound::Unbounded)).next().map(|(_, slot)| *slot);
        let next = next.or_else(|| QUEUES[queue + 1..].iter().find_map(|queue| self.queue(*queue).next()));
        next.or_else(|| self.iter_trailing().next().map(|(_, slot)| slot)).or_else(first_held)
    }

    /// All of them, queue by queue, in each the first to enter first; the rest of a paused order before the stops of its side. Then the
    /// trailing stops, last those that are held, of both the first to come first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Side, Slot)> {
        let fixed = QUEUES.into_iter().flat_map(|queue| self.queue(queue).map(move |slot| (queue.1, slot)));
        fixed.chain(self.iter_trailing()).chain(self.held.values().copied())
    }

    /// The trailing stops, in the order of their arrival, buys before sells.
    pub(crate) fn iter_trailing(&self) -> impl Iterator<Item = (Side, Slot)> {
        Side::BOTH.into_iter().flat_map(|side| self.trails[side as usize].iter().map(move |slot| (side, slot)))
    }

    fn queue(&self, (condition, side): (Condition, Side)) -> impl Iterator<Item = Slot> {
        let paused = self.paused.filter(|(of, _)| condition == Condition::Stop && *of == side).map(|(_, slot)| slot);
        paused.into_iter().chain(self.waiting[queue_of(condition, side)].values().copied())
    }

    /// Whether a trailing stop is behind the market that has traded at `last`.
    pub(crate) fn lags(&self, last: Option<PriceTicks>) -> bool {
        last.is_some_and(|last| self.trails.iter().any(|trails| trails.lags(last)))
    }

    /// Panics if the nearest triggers are not, or a trailing stop has not followed the last trade.
    pub(crate) fn check_invariants(&self, last: Option<PriceTicks>) {
        let firsts = |rises| {
            let queues = QUEUES.into_iter().filter(move |(condition, side)| is_rising(*condition, *side) == rises);
            queues
                .filter_map(|(condition, side)| self.waiting[queue_of(condition, side)].first_key_value())
                .map(|((first, _), _)| *first)
        };
        let trail = |side: Side| self.trails[side as usize].first().map(|(trigger, _)| trigger.get());
        let rising = firsts(true).chain(trail(Side::Buy)).min().unwrap_or(i64::MAX);
        let falling = firsts(false).map(|first| -first).chain(trail(Side::Sell)).max().unwrap_or(i64::MIN);
        assert_eq!((self.falling, self.rising), (falling, rising), "the nearest triggers");
        // While an order goes on, what it trades at is not the price that they follow.
        assert!(self.paused.is_some() || !self.lags(last), "a trailing stop is behind the market");
    }
}
