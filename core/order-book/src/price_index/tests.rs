//! Compares every index with a sorted map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use walras_types::limits::PRICE_TICKS_MAX;

use super::{Level, PriceIndex, Rank};
use crate::slot::Slot;
use crate::{Art, Ladder};

#[derive(Default)]
struct Pair<I> {
    index: I,
    map: BTreeMap<Rank, Level>,
}

/// What a level of one order looks like.
fn level(lots: u64) -> Level {
    Level { head: Slot::new(1), tail: Slot::new(1), lots, order_count: 1 }
}

impl<I: PriceIndex> Pair<I> {
    fn set(&mut self, rank: Rank, lots: u64) {
        *self.index.get_or_insert(rank) = level(lots);
        self.map.insert(rank, level(lots));
    }

    fn remove(&mut self, rank: Rank) {
        if self.map.remove(&rank).is_some() {
            self.index.remove(rank);
        }
    }

    /// Cancels the second of two orders, so that `lots` are left; if that is none, the only order.
    fn take_out(&mut self, rank: Rank, lots: u64) {
        let Some(known) = self.map.get_mut(&rank) else { return };
        if lots == 0 {
            self.index.take_out(rank, known.lots, None, None);
            self.map.remove(&rank);
        } else {
            *known = level(lots);
            *self.index.level_mut(rank) = Level { tail: Slot::new(2), lots: lots + 7, order_count: 2, ..*known };
            self.index.take_out(rank, 7, known.head, None);
        }
    }

    /// A level that is there, at `rank` or the next better one.
    fn at_or_above(&self, rank: Rank) -> Rank {
        self.map.range(rank..).next().map_or(rank, |(rank, _)| *rank)
    }

    /// Everything, from the best on.
    fn check(&self) {
        self.index.check_invariants();
        assert_eq!(self.index.level_count(), self.map.len());
        let mut rank = self.index.best();
        for (expected, level) in self.map.iter().rev() {
            assert_eq!((rank, self.index.get(rank)), (*expected, Some(level)));
            rank = self.index.next_worse(rank);
        }
        assert_eq!(rank, Rank::BOTTOM);
    }

    fn check_near(&mut self, rank: Rank) {
        assert_eq!(self.index.best(), self.map.last_key_value().map_or(Rank::BOTTOM, |(rank, _)| *rank));
        assert_eq!(self.index.get(rank), self.map.get(&rank), "{rank:?}");
        if let Some(level) = self.map.get(&rank) {
            assert_eq!(self.index.level_mut(rank), level);
        }
        for than in [Rank(rank.0 - 1), rank, Rank(rank.0 + 1)] {
            let expected = self.map.range(..than).next_back().map_or(Rank::BOTTOM, |(rank, _)| *rank);
            assert_eq!(self.index.next_worse(than), expected, "{than:?}");
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Set(u64),
    Remove,
    TakeOut(u64),
    /// Takes out the best level, as an order that clears it does.
    RemoveBest,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1u64..100).prop_map(Op::Set),
        2 => Just(Op::Remove),
        2 => (0u64..3).prop_map(Op::TakeOut),
        2 => Just(Op::RemoveBest),
    ]
}

/// Dense prices, prices some thousand ticks apart, powers of two and their neighbours, and the highest there are; both sides'
/// ranks.
fn ranks() -> impl Strategy<Value = Vec<(Rank, Op)>> {
    let ticks = prop_oneof![
        8 => 1i64..300,
        4 => 1i64..20_000,
        2 => (2u32..40, -2i64..=2).prop_map(|(bit, near)| (1i64 << bit) + near),
        1 => PRICE_TICKS_MAX - 300..=PRICE_TICKS_MAX,
        1 => 1i64..=PRICE_TICKS_MAX,
    ];
    let sign = prop_oneof![Just(1i64), Just(-1i64)];
    (sign, prop::collection::vec((ticks, op()), 1..600))
        .prop_map(|(sign, ops)| ops.into_iter().map(|(ticks, op)| (Rank(sign * ticks), op)).collect())
}

fn check_against_a_map<I: PriceIndex>(ops: &[(Rank, Op)]) {
    let mut pair: Pair<I> = Pair { index: I::default(), map: BTreeMap::new() };
    for (step, (rank, op)) in ops.iter().enumerate() {
        match op {
            Op::Set(lots) => pair.set(*rank, *lots),
            Op::Remove => pair.remove(pair.at_or_above(*rank)),
            Op::TakeOut(lots) => pair.take_out(pair.at_or_above(*rank), *lots),
            Op::RemoveBest => pair.remove(pair.index.best()),
        }
        pair.check_near(*rank);
        if step.is_multiple_of(32) {
            pair.check();
        }
    }
    pair.check();
    while pair.index.best() != Rank::BOTTOM {
        pair.remove(pair.index.best());
    }
    pair.check();
}

/// The market trends by thousands of ticks, comes back, and leaves orders behind.
fn check_a_trend<I: PriceIndex>() {
    let mut pair: Pair<I> = Pair { index: I::default(), map: BTreeMap::new() };
    let path = (20..40_000i64).step_by(7).chain((0..30_000).step_by(11).map(|back| 40_000 - back));
    for (step, ticks) in path.enumerate() {
        while pair.index.best() > Rank(ticks) {
            pair.remove(pair.index.best());
        }
        (0..4).for_each(|behind| pair.set(Rank(ticks - behind * 3), 1 + behind as u64));
        pair.check_near(Rank(ticks));
        // A few stay for ever, the others follow.
        if step % 50 != 0 {
            pair.remove(Rank(ticks - 9));
        }
        if step.is_multiple_of(500) {
            pair.check();
        }
    }
    assert!(pair.map.len() > 1000, "too few levels were left behind");
    pair.check();
}

proptest! {
    #[test]
    fn the_ladder_does_what_a_sorted_map_does(ops in ranks()) {
        check_against_a_map::<Ladder>(&ops);
    }

    #[test]
    fn the_tree_does_what_a_sorted_map_does(ops in ranks()) {
        check_against_a_map::<Art>(&ops);
    }
}

#[test]
fn the_ladder_follows_a_trend() {
    check_a_trend::<Ladder>();
}

#[test]
fn the_tree_follows_a_trend() {
    check_a_trend::<Art>();
}
