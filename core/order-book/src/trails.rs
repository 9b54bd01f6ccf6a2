//! Trailing stops of one side, in the order of their arrival. Each has a *best* price, the best of the market since it came, and a
//! trigger at a distance from that.
//!
//! A new extreme of the market is the new best of every order whose own is worse. These are the orders that came last: an order's best is
//! the best of a suffix of the prices, and a later order has a shorter one. So the orders lie in a radix tree by arrival, and a new extreme
//! is written once at each of the few nodes that hold that suffix, not at the orders. A node knows what a common best would make of the
//! orders below it: the nearest trigger is then that of the smallest distance. Every operation costs O(height * [`WIDTH`]), whatever waits.
//! ADR 32 has the alternatives.
//!
//! Here a best price and a trigger are *heights*: prices of a sell, negated prices of a buy. So heights of best prices only rise, and the
//! highest trigger is touched first.

use walras_types::{PriceTicks, Side, Trail};

use crate::slot::Slot;

/// Children of a node, and orders of a leaf.
const WIDTH: usize = 8;
const WIDTH_BITS: u32 = WIDTH.trailing_zeros();

/// The trailing stops of a side.
pub(crate) struct Trails {
    side: Side,
    root: Option<Box<Node>>,
    /// The root covers the turns below `WIDTH^(levels + 1)`.
    levels: u32,
    /// The turn of the next order.
    next_turn: u64,
}

/// Orders of consecutive turns.
struct Node {
    below: Summary,
    /// The best height of all orders below, which is not written there yet. It counts before those that stand further below.
    raised: Option<i64>,
    parts: Parts,
}

enum Parts {
    Inner([Option<Box<Node>>; WIDTH]),
    Leaf([Option<Trailer>; WIDTH]),
}

/// An order that trails.
#[derive(Clone, Copy)]
struct Trailer {
    slot: Slot,
    by: Trail,
    /// The height of its best price.
    best: i64,
}

/// What is known of some orders together.
#[derive(Clone, Copy)]
struct Summary {
    /// The highest and the lowest best height.
    highest: i64,
    lowest: i64,
    /// The order that is touched first.
    first: First,
    /// Those of the smallest distance, in ticks and in millionths: one of the two is touched first where all have the same best.
    closest: [Option<Closest>; 2],
}

/// The smallest distance, then the earliest turn.
type Closest = (Trail, u64, Slot);

/// What is touched first is the least: by the trigger, then the smaller distance, ticks before millionths, then the earlier turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct First {
    /// The negated height of its trigger.
    depth: i64,
    by: Trail,
    turn: u64,
    slot: Slot,
}

/// The height of a price.
fn height(side: Side, price: PriceTicks) -> i64 {
    match side {
        Side::Buy => -price.get(),
        Side::Sell => price.get(),
    }
}

/// The height of the trigger of an order whose best has this height.
fn trigger_height(side: Side, by: Trail, best: i64) -> i64 {
    height(side, trigger_of(side, by, price_at(best)))
}

/// The price of a height.
fn price_at(height: i64) -> PriceTicks {
    PriceTicks::saturating(height.abs())
}

/// The trigger at its distance from the best price, or the price that is nearest to there.
pub(crate) fn trigger_of(side: Side, by: Trail, best: PriceTicks) -> PriceTicks {
    by.trigger(side, best).unwrap_or(match side {
        Side::Buy => PriceTicks::MAX,
        Side::Sell => PriceTicks::MIN,
    })
}

impl Summary {
    fn of_one(side: Side, turn: u64, order: &Trailer) -> Self {
        let closest = Some((order.by, turn, order.slot));
        let closest = match order.by {
            Trail::Ticks(_) => [closest, None],
            Trail::Ppm(_) => [None, closest],
        };
        Self { highest: order.best, lowest: order.best, first: First::of(side, (order.by, turn, order.slot), order.best), closest }
    }

    fn and(self, other: Self) -> Self {
        let least = |index: usize| match (self.closest[index], other.closest[index]) {
            (Some(one), Some(another)) => Some(one.min(another)),
            (one, another) => one.or(another),
        };
        Self {
            highest: self.highest.max(other.highest),
            lowest: self.lowest.min(other.lowest),
            first: self.first.min(other.first),
            closest: [least(0), least(1)],
        }
    }

    /// The same orders with a common best.
    fn raised(self, side: Side, best: i64) -> Self {
        let first = self.closest.iter().flatten().map(|closest| First::of(side, *closest, best)).min();
        Self { highest: best, lowest: best, first: first.expect("some order is below"), ..self }
    }
}

impl First {
    fn of(side: Side, (by, turn, slot): Closest, best: i64) -> Self {
        Self { depth: -trigger_height(side, by, best), by, turn, slot }
    }
}

impl Node {
    /// Where a turn leads from a node of this level.
    fn index(turn: u64, level: u32) -> usize {
        (turn >> (level * WIDTH_BITS)) as usize % WIDTH
    }

    /// Gives all orders below a best that is better than theirs.
    fn raise_all(&mut self, side: Side, best: i64) {
        self.below = self.below.raised(side, best);
        self.raised = Some(best);
    }

    /// Writes down what is not yet.
    fn push_down(&mut self, side: Side) {
        let Some(best) = self.raised.take() else { return };
        match &mut self.parts {
            Parts::Inner(nodes) => nodes.iter_mut().flatten().for_each(|node| node.raise_all(side, best)),
            Parts::Leaf(orders) => orders.iter_mut().flatten().for_each(|order| order.best = best),
        }
    }

    /// What follows from the parts; `None` of no order. Of a leaf, `turn` is any of its turns.
    fn sum(&self, side: Side, turn: u64) -> Option<Summary> {
        match &self.parts {
            Parts::Inner(nodes) => nodes.iter().flatten().map(|node| node.below).reduce(Summary::and),
            Parts::Leaf(orders) => {
                let first = turn - turn % WIDTH as u64;
                let of_one = |(turn, order): (u64, &Option<Trailer>)| Some(Summary::of_one(side, turn, order.as_ref()?));
                (first..).zip(orders).filter_map(of_one).reduce(Summary::and)
            }
        }
    }

    /// Adds an order.
    fn insert(place: &mut Option<Box<Node>>, side: Side, level: u32, turn: u64, order: Trailer) {
        let node = place.get_or_insert_with(|| {
            let parts = if level == 0 { Parts::Leaf([None; WIDTH]) } else { Parts::Inner(Default::default()) };
            Box::new(Self { below: Summary::of_one(side, turn, &order), raised: None, parts })
        });
        node.push_down(side);
        match &mut node.parts {
            Parts::Inner(nodes) => Self::insert(&mut nodes[Self::index(turn, level)], side, level - 1, turn, order),
            Parts::Leaf(orders) => orders[Self::index(turn, 0)] = Some(order),
        }
        node.below = node.sum(side, turn).expect("an order was added");
    }

    /// Takes an order out, and all nodes that are empty then.
    fn remove(place: &mut Option<Box<Node>>, side: Side, level: u32, turn: u64) {
        let node = place.as_mut().expect("the order trails");
        node.push_down(side);
        match &mut node.parts {
            Parts::Inner(nodes) => Self::remove(&mut nodes[Self::index(turn, level)], side, level - 1, turn),
            Parts::Leaf(orders) => orders[Self::index(turn, 0)] = None,
        }
        match node.sum(side, turn) {
            Some(below) => node.below = below,
            None => *place = None,
        }
    }

    /// Raises the best of all orders to at least this. Of the nodes on a level, at most one has orders of both kinds, for the earlier
    /// orders have the better ones. `first` is the first turn below.
    fn raise(&mut self, side: Side, level: u32, first: u64, best: i64) {
        if self.below.lowest >= best {
            return;
        }
        if self.below.highest <= best {
            return self.raise_all(side, best);
        }
        self.push_down(side);
        match &mut self.parts {
            Parts::Inner(nodes) => {
                let firsts = (first..).step_by(1 << (level * WIDTH_BITS));
                firsts.zip(nodes).for_each(|(first, node)| {
                    node.iter_mut().for_each(|node| node.raise(side, level - 1, first, best));
                });
            }
            Parts::Leaf(orders) => orders.iter_mut().flatten().for_each(|order| order.best = order.best.max(best)),
        }
        self.below = self.sum(side, first).expect("none was taken out");
    }

    /// The first order of this turn or a later one.
    fn from(&self, level: u32, turn: u64) -> Option<(u64, Slot)> {
        let first = Self::index(turn, level);
        (first..WIDTH).find_map(|index| match &self.parts {
            Parts::Inner(nodes) => {
                // In a node behind that of the turn, every order is later.
                let turn = if index == first { turn } else { 0 };
                let below = (1 << (level * WIDTH_BITS)) - 1;
                let (turn, slot) = nodes[index].as_ref()?.from(level - 1, turn)?;
                Some((((index as u64) << (level * WIDTH_BITS)) | (turn & below), slot))
            }
            Parts::Leaf(orders) => orders[index].map(|order| (index as u64, order.slot)),
        })
    }
}

impl Trails {
    pub(crate) fn new(side: Side) -> Self {
        Self { side, root: None, levels: 0, next_turn: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Adds an order. Its turn, by which it is found.
    pub(crate) fn push(&mut self, slot: Slot, by: Trail, best: PriceTicks) -> u64 {
        let turn = self.next_turn;
        self.next_turn += 1;
        while turn >> ((self.levels + 1) * WIDTH_BITS) != 0 {
            self.levels += 1;
            if let Some(old) = self.root.take() {
                let below = old.below;
                let mut nodes: [Option<Box<Node>>; WIDTH] = Default::default();
                nodes[0] = Some(old);
                self.root = Some(Box::new(Node { below, raised: None, parts: Parts::Inner(nodes) }));
            }
        }
        let order = Trailer { slot, by, best: height(self.side, best) };
        Node::insert(&mut self.root, self.side, self.levels, turn, order);
        turn
    }

    pub(crate) fn remove(&mut self, turn: u64) {
        Node::remove(&mut self.root, self.side, self.levels, turn);
    }

    /// The market traded at `last`. Whether any trigger may have moved.
    pub(crate) fn follow(&mut self, last: PriceTicks) -> bool {
        let (side, levels, best) = (self.side, self.levels, height(self.side, last));
        let Some(root) = self.root.as_mut().filter(|root| root.below.lowest < best) else { return false };
        root.raise(side, levels, 0, best);
        true
    }

    /// The best price of the order of this turn.
    pub(crate) fn best(&self, turn: u64) -> PriceTicks {
        let (mut node, mut level) = (self.root.as_deref(), self.levels);
        loop {
            let here = node.expect("the order trails");
            if let Some(best) = here.raised {
                return price_at(best);
            }
            match &here.parts {
                Parts::Inner(nodes) => node = nodes[Node::index(turn, level)].as_deref(),
                Parts::Leaf(orders) => return price_at(orders[Node::index(turn, 0)].expect("the order trails").best),
            }
            level -= 1;
        }
    }

    /// The order that is touched first, and its trigger.
    pub(crate) fn first(&self) -> Option<(PriceTicks, Slot)> {
        let first = self.root.as_ref()?.below.first;
        Some((price_at(first.depth), first.slot))
    }

    /// The first order of this turn or a later one.
    pub(crate) fn from(&self, turn: u64) -> Option<(u64, Slot)> {
        if turn >= self.next_turn {
            return None;
        }
        self.root.as_ref()?.from(self.levels, turn)
    }

    /// All of them, in the order of their arrival.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        std::iter::successors(self.from(0), |(turn, _)| self.from(turn + 1)).map(|(_, slot)| slot)
    }

    /// Whether an order has a worse best price than the market has now.
    pub(crate) fn lags(&self, last: PriceTicks) -> bool {
        self.root.as_ref().is_some_and(|root| root.below.lowest < height(self.side, last))
    }
}

#[cfg(test)]
mod tests;
