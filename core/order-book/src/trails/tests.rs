//! The tree against a list.

use proptest::prelude::*;

use super::*;

/// What the tree says it is: all orders in a list, and each looked at for each price.
#[derive(Default)]
struct Naive(Vec<(u64, Slot, Trail, PriceTicks)>);

impl Naive {
    fn follow(&mut self, side: Side, last: PriceTicks) {
        for (_, _, _, best) in &mut self.0 {
            *best = if side == Side::Sell { last.max(*best) } else { last.min(*best) };
        }
    }

    /// The trigger that a moving price meets first; the smaller distance; the first to come.
    fn first(&self, side: Side) -> Option<(PriceTicks, Slot)> {
        let triggers = self.0.iter().map(|(turn, slot, by, best)| {
            let distance = match by {
                Trail::Ticks(ticks) => i64::from(*ticks),
                Trail::Ppm(ppm) => (i128::from(best.get()) * i128::from(*ppm) + 999_999).div_euclid(1_000_000) as i64,
            };
            let trigger = if side == Side::Sell { best.get() - distance } else { best.get() + distance };
            let trigger = PriceTicks::saturating(trigger);
            let nearness = if side == Side::Sell { -trigger.get() } else { trigger.get() };
            ((nearness, matches!(by, Trail::Ppm(_)), *by, *turn), trigger, *slot)
        });
        triggers.min_by_key(|(order, _, _)| *order).map(|(_, trigger, slot)| (trigger, slot))
    }
}

#[derive(Clone, Debug)]
enum Op {
    Push(Trail),
    /// The order at this place of the list, counted round.
    Remove(usize),
    /// All but a few that are spread.
    RemoveMost(usize),
    Move(i64),
    MoveTo(i64),
}

fn op() -> impl Strategy<Value = Op> {
    let trail = prop_oneof![
        6 => (1u32..12).prop_map(Trail::Ticks),
        4 => (1u32..12).prop_map(|share| Trail::Ppm(share * 10_000)),
        1 => any::<u32>().prop_map(Trail::Ticks),
        1 => (1u32..1_000_000).prop_map(Trail::Ppm),
    ];
    prop_oneof![
        20 => trail.prop_map(Op::Push),
        6 => any::<usize>().prop_map(Op::Remove),
        1 => (2usize..30).prop_map(Op::RemoveMost),
        20 => (-9i64..=9).prop_map(Op::Move),
        1 => prop_oneof![Just(1i64), 1i64..2000, Just((1 << 40) - 1)].prop_map(Op::MoveTo),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_tree_and_the_list_agree(
        side in prop_oneof![Just(Side::Buy), Just(Side::Sell)],
        ops in prop::collection::vec(op(), 1..400),
    ) {
        let (mut trails, mut naive, mut last) = (Trails::new(side), Naive::default(), PriceTicks::saturating(500));
        let mut slots = (1u32..).filter_map(Slot::new);
        for op in ops {
            match op {
                Op::Push(by) => {
                    let slot = slots.next().expect("there are many");
                    naive.0.push((trails.push(slot, by, last), slot, by, last));
                }
                Op::Remove(at) if !naive.0.is_empty() => {
                    let at = at % naive.0.len();
                    trails.remove(naive.0.remove(at).0);
                }
                Op::Remove(_) => {}
                Op::RemoveMost(stays) => {
                    let all = std::mem::take(&mut naive.0);
                    for (index, order) in all.into_iter().enumerate() {
                        if index % stays == 0 { naive.0.push(order) } else { trails.remove(order.0) }
                    }
                }
                Op::Move(ticks) => last = PriceTicks::saturating(last.get() + ticks),
                Op::MoveTo(ticks) => last = PriceTicks::saturating(ticks),
            }
            trails.follow(last);
            naive.follow(side, last);
            prop_assert!(!trails.lags(last));
            prop_assert_eq!(trails.first(), naive.first(side));
            prop_assert_eq!(trails.is_empty(), naive.0.is_empty());
            prop_assert!(trails.iter().eq(naive.0.iter().map(|order| order.1)));
            for (turn, _, _, best) in &naive.0 {
                prop_assert_eq!(trails.best(*turn), *best);
            }
        }
    }
}

/// Nodes that one new extreme visits, of a tree that an adversary has filled: each order has a worse best price than the one before it.
#[test]
fn a_new_extreme_visits_few_nodes_whatever_waits() {
    fn written(node: &Node) -> usize {
        let below = match &node.parts {
            Parts::Inner(nodes) if node.raised.is_none() => nodes.iter().flatten().map(|node| written(node)).sum(),
            Parts::Inner(_) | Parts::Leaf(_) => 0,
        };
        usize::from(node.raised.is_some()) + below
    }
    let count = 100_000;
    let mut trails = Trails::new(Side::Sell);
    for (turn, slot) in (0..count).zip((1u32..).filter_map(Slot::new)) {
        trails.push(slot, Trail::Ticks(u32::try_from(count).expect("it is small")), PriceTicks::saturating(3 * count - turn));
    }
    let root = |trails: &Trails| written(trails.root.as_ref().expect("many wait"));
    assert_eq!(root(&trails), 0);
    // Better than the best of a third of them.
    trails.follow(PriceTicks::saturating(3 * count - 2 * count / 3));
    let levels = trails.levels as usize + 1;
    assert!((1..=levels * WIDTH).contains(&root(&trails)), "{} nodes were written", root(&trails));
    trails.follow(PriceTicks::saturating(4 * count));
    assert_eq!(root(&trails), 1);
    assert_eq!(trails.best(count as u64 - 1), PriceTicks::saturating(4 * count));
    assert_eq!(trails.first().map(|(trigger, _)| trigger), Some(PriceTicks::saturating(3 * count)));
}
