//! The orders that rest according to the recorded file, and those that cannot.
//!
//! A LOBSTER file of `N` levels has no line for an order that is deleted while `N` levels are better. Such an order would stay in
//! the book forever and trade with later orders. Three facts prove that an order is gone:
//! - *An order is added and rests*: opposite orders that it reaches are gone; otherwise it would have traded.
//! - *An order is executed*: orders ahead of it, at a better price or earlier at its own, are gone; otherwise they would have been
//!   executed first. The book's own fills are compared before this conclusion.
//! - *A line exists*: fewer than `N` levels are better than its price.
//!
//! An order that the file names again is not gone. If it is in the way, one of two lines is wrong. One line against several is the
//! wrong one; of one against one, the older. The order of the wrong line is *set aside*: it leaves the book until the file names it
//! again, and then rests again unless that line deletes it. So a wrong line affects only its own order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use walras_types::{PriceTicks, Side, SizeLots};

use crate::plan::Origin;
use crate::survey::Lives;

/// An order by the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) side: Side,
    pub(crate) price: PriceTicks,
    pub(crate) open: SizeLots,
    pub(crate) origin: Origin,
    entered: u64,
}

/// The consequences of a line: orders that cannot rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Orders that the file never names again: presumed deleted.
    pub(crate) gone: Vec<u64>,
    /// An order that the file names again: set aside until then.
    pub(crate) aside: Option<u64>,
    /// Set if the line itself counts as wrong: the first of the orders that contradict it.
    pub(crate) untrue: Option<u64>,
}

/// See the module. A record that draws no conclusions only stores side and price of its orders.
#[derive(Debug)]
pub(crate) struct Record {
    orders: HashMap<u64, Named>,
    /// Orders by priority; `None` if the record draws no conclusions.
    queues: Option<[BTreeMap<(i64, u64), u64>; 2]>,
    aside: HashMap<u64, Named>,
    /// Orders that the file names after their end; their data is kept.
    named_again: HashSet<u64>,
    ended: HashMap<u64, Named>,
    entered: u64,
    lives: Arc<Lives>,
    /// Number of levels per side in the file, if known.
    levels: Option<usize>,
}

fn key(order: &Named) -> (i64, u64) {
    let price = match order.side {
        Side::Buy => -order.price.get(),
        Side::Sell => order.price.get(),
    };
    (price, order.entered)
}

impl Record {
    /// A record of whole lives, whose orders prove each other gone.
    pub(crate) fn followed(lives: Arc<Lives>, levels: Option<usize>) -> Self {
        Self { queues: Some(Default::default()), levels, ..Self::named(lives) }
    }

    /// A record of names.
    pub(crate) fn named(lives: Arc<Lives>) -> Self {
        Self {
            orders: HashMap::new(),
            queues: None,
            aside: HashMap::new(),
            named_again: HashSet::new(),
            ended: HashMap::new(),
            entered: 0,
            lives,
            levels: None,
        }
    }

    /// The order, if it rests, is set aside, or has ended and will be named again.
    pub(crate) fn find(&self, order_ref: u64) -> Option<&Named> {
        self.orders.get(&order_ref).or_else(|| self.aside.get(&order_ref)).or_else(|| self.ended.get(&order_ref))
    }

    /// Whether the record concludes that orders are gone.
    pub(crate) fn follows(&self) -> bool {
        self.queues.is_some()
    }

    /// Whether it is set aside.
    pub(crate) fn is_aside(&self, order_ref: u64) -> bool {
        self.aside.contains_key(&order_ref)
    }

    /// Whether it stands.
    pub(crate) fn stands(&self, order_ref: u64) -> bool {
        self.orders.contains_key(&order_ref)
    }

    /// The order's data must be kept when it ends.
    pub(crate) fn will_be_named_again(&mut self, order_ref: u64) {
        self.named_again.insert(order_ref);
    }

    /// An order rests. The consequences are already applied to the record. If the line is wrong, the order is set aside.
    pub(crate) fn rest(
        &mut self,
        order_ref: u64,
        (side, price, open): (Side, PriceTicks, SizeLots),
        origin: Origin,
        index: u64,
    ) -> Proof {
        // It may have rested elsewhere or been set aside.
        self.take_out(order_ref);
        self.aside.remove(&order_ref);
        self.entered += 1;
        let order = Named { side, price, open, origin, entered: self.entered };
        let proof = self.reached(side, price, index);
        self.conclude(&proof);
        if proof.untrue.is_some() {
            self.aside.insert(order_ref, order);
            return proof;
        }
        if let Some(queues) = &mut self.queues {
            queues[side as usize].insert(key(&order), order_ref);
        }
        self.orders.insert(order_ref, order);
        proof
    }

    /// What an order of this side and price proves about the orders that it would reach.
    fn reached(&self, side: Side, price: PriceTicks, index: u64) -> Proof {
        let Some(queues) = &self.queues else { return Proof::default() };
        let queue = &queues[side.opposite() as usize];
        let reached = queue.values().take_while(|order_ref| side.accepts(price, self.orders[order_ref].price)).copied();
        self.weigh(reached, index)
    }

    fn weigh(&self, in_the_way: impl Iterator<Item = u64>, index: u64) -> Proof {
        let (named, gone): (Vec<u64>, Vec<u64>) = in_the_way.partition(|order_ref| self.lives.is_named_after(*order_ref, index));
        match named[..] {
            [] => Proof { gone, aside: None, untrue: None },
            [only] => Proof { gone, aside: Some(only), untrue: None },
            [first, ..] => Proof { gone: Vec::new(), aside: None, untrue: Some(first) },
        }
    }

    fn conclude(&mut self, proof: &Proof) {
        for order_ref in &proof.gone {
            self.take_out(*order_ref);
        }
        if let Some(order_ref) = proof.aside
            && let Some(order) = self.take_out(order_ref)
        {
            self.aside.insert(order_ref, order);
        }
    }

    /// An order is about to be executed: what that proves about the orders ahead of it. Already applied to the record.
    pub(crate) fn executed(&mut self, order_ref: u64, index: u64) -> Proof {
        let (Some(queues), Some(order)) = (&self.queues, self.orders.get(&order_ref)) else { return Proof::default() };
        let ahead = queues[order.side as usize].range(..key(order)).map(|(_, ahead)| *ahead);
        // At its own price an exchange may skip an order, so only orders that are never named again are gone.
        let (same_price, better): (Vec<u64>, Vec<u64>) = ahead.partition(|ahead| self.orders[ahead].price == order.price);
        let mut proof = self.weigh(better.into_iter(), index);
        if proof.untrue.is_none() {
            proof.gone.extend(same_price.into_iter().filter(|ahead| !self.lives.is_named_after(*ahead, index)));
        }
        self.conclude(&proof);
        proof
    }

    /// The file has a line for an order of this side and price, so fewer levels are better than the file shows. If the record has
    /// more, the levels without any order that the file names again are gone, unless there are more of these than must be gone.
    /// Already applied to the record.
    pub(crate) fn shown(&mut self, side: Side, price: PriceTicks, index: u64) -> Vec<u64> {
        let (Some(queues), Some(levels)) = (&self.queues, self.levels) else { return Vec::new() };
        let mut better: Vec<(PriceTicks, Vec<u64>, bool)> = Vec::new();
        for order_ref in queues[side as usize].values() {
            let at = self.orders[order_ref].price;
            if !side.is_better(at, price) {
                break;
            }
            if better.last().is_none_or(|(last, ..)| *last != at) {
                better.push((at, Vec::new(), false));
            }
            if let Some((_, orders, is_named)) = better.last_mut() {
                match self.lives.is_named_after(*order_ref, index) {
                    true => *is_named = true,
                    false => orders.push(*order_ref),
                }
            }
        }
        let too_many = (better.len() + 1).saturating_sub(levels);
        better.retain(|(_, _, is_named)| levels == 1 || !is_named);
        if better.len() > too_many {
            return Vec::new();
        }
        let proof = Proof { gone: better.into_iter().flat_map(|(_, orders, _)| orders).collect(), ..Proof::default() };
        self.conclude(&proof);
        proof.gone
    }

    /// Takes `by` off an order; one with nothing left ends.
    pub(crate) fn shrink(&mut self, order_ref: u64, by: SizeLots) {
        let Some(order) = self.orders.get_mut(&order_ref).or_else(|| self.aside.get_mut(&order_ref)) else { return };
        order.open = order.open.saturating_sub(by);
        if order.open.is_zero() {
            self.end(order_ref);
        }
    }

    /// An order ends.
    pub(crate) fn end(&mut self, order_ref: u64) {
        if self.queues.is_none() {
            return;
        }
        if let Some(order) = self.take_out(order_ref).or_else(|| self.aside.remove(&order_ref))
            && self.named_again.contains(&order_ref)
        {
            self.ended.insert(order_ref, order);
        }
    }

    /// Takes an order that is set aside back, to rest once more.
    pub(crate) fn take_back(&mut self, order_ref: u64) -> Option<Named> {
        self.aside.remove(&order_ref)
    }

    /// Removes an order whose price differs from the file's.
    pub(crate) fn take_out(&mut self, order_ref: u64) -> Option<Named> {
        let order = self.orders.remove(&order_ref)?;
        if let Some(queues) = &mut self.queues {
            queues[order.side as usize].remove(&key(&order));
        }
        Some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        // None of these orders has a line after its own.
        Record::followed(Arc::new(Lives::never_named_again(1..20)), Some(2))
    }

    fn rest(record: &mut Record, order_ref: u64, side: Side, price: i64) -> Proof {
        let price = PriceTicks::new(price).unwrap();
        record.rest(order_ref, (side, price, SizeLots::new(10)), Origin::Added, order_ref)
    }

    #[test]
    fn an_order_that_rests_proves_those_it_reaches_gone() {
        let mut record = record();
        for (order_ref, price) in [(1, 100), (2, 101), (3, 102)] {
            assert_eq!(rest(&mut record, order_ref, Side::Sell, price), Proof::default());
        }
        assert_eq!(rest(&mut record, 4, Side::Buy, 101).gone, [1, 2]);
        assert!(record.stands(3) && record.stands(4) && !record.stands(1));
    }

    #[test]
    fn an_execution_proves_those_ahead_gone() {
        let mut record = record();
        for (order_ref, price) in [(1, 100), (2, 101), (3, 100), (4, 100), (5, 99)] {
            rest(&mut record, order_ref, Side::Buy, price);
        }
        assert_eq!(record.executed(3, 9).gone, [2, 1]);
        assert_eq!(record.executed(4, 9).gone, [3]);
        assert!(record.stands(5));
    }

    #[test]
    fn a_line_proves_that_no_more_levels_are_better_than_the_file_shows() {
        // Of two levels: one better level proves nothing; of two better ones, one must be gone, but it is not known which.
        let mut record = record();
        for (order_ref, price) in [(1, 102), (2, 101), (3, 100)] {
            rest(&mut record, order_ref, Side::Buy, price);
        }
        let price = |price| PriceTicks::new(price).unwrap();
        assert!(record.shown(Side::Buy, price(101), 9).is_empty() && record.shown(Side::Buy, price(100), 9).is_empty());
        // The file names an order of one of the two, so the other is gone.
        rest(&mut record, 40, Side::Buy, 102);
        assert_eq!(record.shown(Side::Buy, price(100), 9), [2]);
        record.levels = Some(1);
        assert_eq!(record.shown(Side::Buy, price(100), 9), [1]);
        assert!(record.stands(40) && record.stands(3));
    }

    #[test]
    fn one_line_against_several_is_the_untrue_one() {
        let mut record = Record::followed(Arc::new(Lives::default()), None);
        for (order_ref, price) in [(31, 100), (32, 101)] {
            rest(&mut record, order_ref, Side::Sell, price);
        }
        // Of one line against one, the older is wrong.
        assert_eq!(rest(&mut record, 33, Side::Buy, 100), Proof { aside: Some(31), ..Proof::default() });
        assert!(!record.stands(31) && record.stands(33) && record.find(31).is_some());
        record.end(33);
        let back = record.take_back(31).unwrap();
        rest(&mut record, 31, back.side, back.price.get());
        assert_eq!(rest(&mut record, 34, Side::Buy, 105).untrue, Some(31));
        assert!(record.stands(31) && record.stands(32) && !record.stands(34));
    }

    #[test]
    fn an_order_that_ends_is_forgotten_unless_it_is_named_again() {
        let mut record = record();
        for order_ref in [1, 2] {
            rest(&mut record, order_ref, Side::Buy, 100);
        }
        record.will_be_named_again(2);
        record.shrink(1, SizeLots::new(10));
        record.end(2);
        assert!(record.find(1).is_none() && record.find(2).is_some() && !record.stands(2));
    }
}
