//! The integer circulation against brute force, against the linear program, and against its own proofs.
#![allow(clippy::unwrap_used)] // Helpers of tests are not recognised as tests.

use proptest::prelude::*;
use walras_trade_amounts::limits::{NODE_COUNT_MAX, VALUE_MAX};
use walras_trade_amounts::synthetic::{Dice, bounds_near_equilibrium};
use walras_trade_amounts::{Answer, CirculationSolver, LinearError, Network, NetworkError, ValueArc, solve_linear_program};

/// Solves, and checks the proof that comes with either answer. The best value, if there is one.
fn best_value(arcs: &[ValueArc], surplus_min: &[i64]) -> Option<i128> {
    let network = Network::new(arcs, surplus_min).unwrap();
    match CirculationSolver::new().solve(&network) {
        Answer::Best(best) => {
            assert!(best.check(&network), "{best:?} does not prove itself on {arcs:?} {surplus_min:?}");
            assert!(best.round_count as usize <= surplus_min.len(), "{} rounds", best.round_count);
            Some(best.value)
        }
        Answer::Infeasible(cut) => {
            assert!(cut.check(&network), "{cut:?} proves nothing about {arcs:?} {surplus_min:?}");
            None
        }
    }
}

/// The best value by trying every flow.
fn brute_force(arcs: &[ValueArc], surplus_min: &[i64]) -> Option<i128> {
    fn visit(arcs: &[ValueArc], spare: &mut [i64], value: i128, best: &mut Option<i128>) {
        let Some((arc, rest)) = arcs.split_first() else {
            if spare.iter().all(|&spare| spare >= 0) {
                *best = (*best).max(Some(value));
            }
            return;
        };
        for flow in arc.lower..=arc.upper {
            spare[arc.from as usize] += flow;
            spare[arc.to as usize] -= flow;
            visit(rest, spare, value + i128::from(flow), best);
            spare[arc.from as usize] -= flow;
            spare[arc.to as usize] += flow;
        }
    }
    let mut best = None;
    let mut spare: Vec<i64> = surplus_min.iter().map(|surplus| -surplus).collect();
    visit(arcs, &mut spare, 0, &mut best);
    best
}

/// Arcs among up to `node_count_max` assets, each pair at most once, with bounds that `bound` scales.
fn networks(node_count_max: u32, arc_count_max: usize, bound: i64) -> impl Strategy<Value = (Vec<ValueArc>, Vec<i64>)> {
    (2..=node_count_max).prop_flat_map(move |node_count| {
        let arc = (0..node_count, 1..node_count, 0..=bound, 0..=bound, 0..4_u8);
        let surplus = prop_oneof![4 => Just(0), 1 => -bound..=0, 1 => -bound / 4..=bound / 4];
        let surpluses = prop_oneof![
            2 => Just(vec![0; node_count as usize]),
            1 => prop::collection::vec(surplus, node_count as usize),
        ];
        (prop::collection::vec(arc, 0..=arc_count_max), surpluses).prop_map(move |(raw, surpluses)| {
            let mut arcs: Vec<ValueArc> = Vec::new();
            for (from, step, a, b, shape) in raw {
                let to = (from + step) % node_count;
                let (lower, upper) = match shape {
                    0 => (a, a),
                    1 => (a.min(b), a.max(b)),
                    _ => (0, a),
                };
                if arcs.iter().all(|arc| (arc.from, arc.to) != (from, to)) {
                    arcs.push(ValueArc { from, to, lower, upper });
                }
            }
            (arcs, surpluses)
        })
    })
}

proptest! {
    #[test]
    fn equals_brute_force((arcs, surplus_min) in networks(4, 6, 4)) {
        prop_assert_eq!(best_value(&arcs, &surplus_min), brute_force(&arcs, &surplus_min));
    }

    #[test]
    fn equals_the_linear_program((arcs, surplus_min) in networks(9, 60, 1_000_000)) {
        let network = Network::new(&arcs, &surplus_min).unwrap();
        match (best_value(&arcs, &surplus_min), solve_linear_program(&network, 0.0)) {
            (Some(value), Ok(linear)) => prop_assert!((linear.value - value as f64).abs() <= 1.0, "{} {value}", linear.value),
            (None, Err(LinearError::Infeasible)) => {}
            (ours, theirs) => prop_assert!(false, "{ours:?} {theirs:?}"),
        }
    }

    #[test]
    fn a_commission_never_costs_value((arcs, _) in networks(9, 60, 1_000_000), exponent in 1..20) {
        let zeros = vec![0; 9];
        let network = Network::new(&arcs, &zeros).unwrap();
        if let Some(value) = best_value(&arcs, &zeros) {
            let linear = solve_linear_program(&network, 0.5_f64.powi(exponent)).unwrap();
            prop_assert!(linear.value >= value as f64 - 1.0, "{} {value}", linear.value);
        }
    }

    #[test]
    fn proves_itself_at_any_size((arcs, surplus_min) in networks(130, 2_000, VALUE_MAX)) {
        best_value(&arcs, &surplus_min);
    }

    #[test]
    fn names_and_order_do_not_matter((arcs, surplus_min) in networks(12, 80, 1 << 40), seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let node_count = surplus_min.len();
        let name = shuffled(node_count, &mut dice);
        let mut renamed_surplus = vec![0; node_count];
        for (node, &surplus) in surplus_min.iter().enumerate() {
            renamed_surplus[name[node]] = surplus;
        }
        let rename = |node: u32| name[node as usize] as u32;
        let renamed: Vec<ValueArc> = shuffled(arcs.len(), &mut dice)
            .into_iter()
            .map(|index| ValueArc { from: rename(arcs[index].from), to: rename(arcs[index].to), ..arcs[index] })
            .collect();
        prop_assert_eq!(best_value(&arcs, &surplus_min), best_value(&renamed, &renamed_surplus));
    }

    #[test]
    fn what_the_solver_did_before_does_not_matter(
        (arcs, surplus_min) in networks(70, 300, 1 << 30), (before, before_surplus) in networks(130, 300, 1 << 30)
    ) {
        let network = Network::new(&arcs, &surplus_min).unwrap();
        let mut used = CirculationSolver::new();
        used.solve(&Network::new(&before, &before_surplus).unwrap());
        prop_assert_eq!(used.solve(&network), CirculationSolver::new().solve(&network));
    }
}

fn shuffled(count: usize, dice: &mut Dice) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        places.swap(last, dice.below(last as u64 + 1) as usize);
    }
    places
}

fn arc(from: u32, to: u32, lower: i64, upper: i64) -> ValueArc {
    ValueArc { from, to, lower, upper }
}

#[test]
fn a_batch_near_its_equilibrium_equals_the_linear_program() {
    for (node_count, mu_exponent) in [(8, 10), (20, 10), (20, 15)] {
        let arcs = bounds_near_equilibrium(node_count, 100_000, mu_exponent, 7);
        let zeros = vec![0; node_count as usize];
        let linear = solve_linear_program(&Network::new(&arcs, &zeros).unwrap(), 0.0).unwrap();
        let value = best_value(&arcs, &zeros).unwrap() as f64;
        assert!((linear.value - value).abs() <= 1e-9 * value, "{} {value}", linear.value);
    }
}

#[test]
fn markets_of_nothing() {
    assert_eq!(best_value(&[], &[]), Some(0));
    assert_eq!(best_value(&[], &[0, 0, 0]), Some(0));
    assert_eq!(best_value(&[arc(0, 1, 0, 0)], &[0, 0]), Some(0));
    // Sold by one, wanted back by nobody.
    assert_eq!(best_value(&[arc(0, 1, 0, VALUE_MAX)], &[0, 0]), Some(0));
}

#[test]
fn the_largest_bounds_do_not_overflow() {
    let all_pairs = |node_count: u32| {
        let pairs = (0..node_count).flat_map(move |from| (0..node_count).map(move |to| (from, to)));
        pairs.filter(|(from, to)| from != to).map(|(from, to)| arc(from, to, 0, VALUE_MAX)).collect::<Vec<_>>()
    };
    let arcs = all_pairs(70);
    assert_eq!(best_value(&arcs, &[0; 70]), Some(i128::from(VALUE_MAX) * 70 * 69));
    // Every asset short of all that can be: only the first is sold.
    let only_first: Vec<ValueArc> =
        arcs.iter().map(|&a| if a.from == 0 { ValueArc { lower: VALUE_MAX, ..a } } else { ValueArc { upper: 0, ..a } }).collect();
    assert_eq!(best_value(&only_first, &[0; 70]), None);
    assert_eq!(best_value(&arcs, &[-VALUE_MAX; 70]), Some(i128::from(VALUE_MAX) * 70 * 69));
    assert_eq!(best_value(&arcs, &[VALUE_MAX; 70]), None);
}

/// A ring through all assets whose only slack is at the far end: the way back is as long as it can be.
#[test]
fn the_longest_way_back() {
    let node_count = 300;
    let mut arcs: Vec<ValueArc> = (0..node_count - 1).map(|node| arc(node, node + 1, 0, 10)).collect();
    arcs.push(arc(node_count - 1, 0, 0, 7));
    assert_eq!(best_value(&arcs, &vec![0; node_count as usize]), Some(7 * i128::from(node_count)));
    arcs[0].lower = 8;
    assert_eq!(best_value(&arcs, &vec![0; node_count as usize]), None);
}

#[test]
fn lower_bounds_that_cannot_hold_name_the_assets() {
    // Asset 2 must be bought for 5 from asset 0, and is sold for 3 at most.
    let arcs = [arc(0, 2, 5, 9), arc(2, 1, 0, 3), arc(1, 0, 0, 100), arc(0, 1, 0, 100)];
    let network = Network::new(&arcs, &[0; 3]).unwrap();
    let Answer::Infeasible(cut) = CirculationSolver::new().solve(&network) else { panic!("3 is less than 5") };
    assert!(cut.check(&network));
    assert_eq!((cut.assets.as_slice(), cut.lower_in, cut.upper_out), (&[2][..], 5, 3));
    // With two let off it can be done.
    assert_eq!(best_value(&arcs, &[0, 0, -2]), Some(5 + 3 + 97 + 100));
}

#[test]
fn what_is_no_network_is_refused() {
    let new = |arcs: &[ValueArc], surplus_min: &[i64]| Network::new(arcs, surplus_min).map(|_| ());
    assert_eq!(new(&[arc(0, 2, 0, 1)], &[0; 2]), Err(NetworkError::UnknownAsset { arc: 0 }));
    assert_eq!(new(&[arc(1, 1, 0, 1)], &[0; 2]), Err(NetworkError::Loop { arc: 0 }));
    assert_eq!(new(&[arc(0, 1, 0, 1), arc(0, 1, 0, 1)], &[0; 2]), Err(NetworkError::Repeated { arc: 1 }));
    assert_eq!(new(&[arc(0, 1, 2, 1)], &[0; 2]), Err(NetworkError::Bounds { arc: 0, lower: 2, upper: 1 }));
    assert_eq!(new(&[arc(0, 1, -1, 1)], &[0; 2]), Err(NetworkError::Bounds { arc: 0, lower: -1, upper: 1 }));
    let above = VALUE_MAX + 1;
    assert_eq!(new(&[arc(0, 1, 0, above)], &[0; 2]), Err(NetworkError::Bounds { arc: 0, lower: 0, upper: above }));
    assert_eq!(new(&[], &[0, i64::MIN]), Err(NetworkError::Surplus { node: 1, surplus: i64::MIN }));
    let node_count = NODE_COUNT_MAX + 1;
    assert_eq!(new(&[], &vec![0; node_count]), Err(NetworkError::TooManyAssets { node_count }));
}

/// A proof that proves nothing is not accepted: the checks can fail.
#[test]
fn wrong_proofs_are_found() {
    let arcs = [arc(0, 1, 0, 5), arc(1, 0, 1, 3)];
    let network = Network::new(&arcs, &[0; 2]).unwrap();
    let Answer::Best(best) = CirculationSolver::new().solve(&network) else { panic!("3 each way") };
    assert_eq!(best.flows, [3, 3]);
    let mut less = best.clone();
    (less.flows, less.value) = (vec![2, 2], 4);
    let mut unbalanced = best.clone();
    (unbalanced.flows, unbalanced.value) = (vec![5, 3], 8);
    let mut beyond = best.clone();
    (beyond.flows, beyond.value) = (vec![4, 4], 8);
    let mut miscounted = best;
    miscounted.value += 1;
    for wrong in [less, unbalanced, beyond, miscounted] {
        assert!(!wrong.check(&network), "{wrong:?}");
    }
}
