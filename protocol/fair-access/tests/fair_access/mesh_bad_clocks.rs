//! Bad clocks are found, named and excluded, and the others do not suffer.

#![allow(clippy::float_arithmetic, reason = "a simulation")]

use walras_fair_access::mesh::{Fault, Verdict};
use walras_mesh_sim::{Misdeed, Simulation, World, node, quantile};

const NODES: usize = 24;
const WARM: usize = 4;
const AFTER: usize = 6;

/// Twelve exchanges in a second would do for most; this keeps 24 nodes quick.
fn world(seed: u64) -> World {
    World { interval_ns: 10_000_000, ..World::new(NODES, seed) }
}

/// Runs a mesh with misdeeds that begin after `WARM` windows and returns it; checks that exactly the culprits are excluded, soon, that
/// their clocks cannot be read, and that the others are as close as they are without them.
fn expose(seed: u64, misdeeds: &[(usize, Misdeed)]) -> Simulation {
    let is_good = |node: usize| misdeeds.iter().all(|(bad, _)| *bad != node);
    let mut honest = Simulation::rotating(world(seed));
    honest.steps(WARM + AFTER);
    let mut simulation = Simulation::rotating(world(seed));
    for &(node, misdeed) in misdeeds {
        simulation.misbehave(node, misdeed);
    }
    simulation.steps(WARM);
    assert!(simulation.outcomes.iter().all(|outcome| outcome.newly_excluded.is_empty()), "nobody is bad yet");
    simulation.steps(AFTER);
    let mut named: Vec<_> =
        simulation.outcomes[..WARM + 3].iter().flat_map(|o| &o.newly_excluded).map(|(node, _)| node.0 as usize).collect();
    named.sort_unstable();
    let mut bad: Vec<_> = misdeeds.iter().map(|(node, _)| *node).collect();
    bad.sort_unstable();
    assert_eq!(named, bad, "{:?}", simulation.outcomes.iter().map(|o| &o.newly_excluded).collect::<Vec<_>>());
    let named_late = simulation.outcomes[WARM + 3..].iter().any(|outcome| !outcome.newly_excluded.is_empty());
    assert!(!named_late, "nobody else is excluded later");
    let last = simulation.outcomes.last().unwrap();
    for &node in &bad {
        assert!(matches!(last.verdicts[node], Verdict::Excluded(_)));
        assert!(simulation.looks.last().unwrap().iter().all(|look| look.node != node), "its clock cannot be read");
    }
    let from = 4 * (WARM + 1);
    let (with, without) = (simulation.pair_errors_ns(from, is_good), honest.pair_errors_ns(from, is_good));
    for permille in [500, 900, 990] {
        let (with, without) = (quantile(&with, permille), quantile(&without, permille));
        assert!(with <= without * 1.25 + 5.0, "at {permille}: {with} ns with bad nodes, {without} ns without");
    }
    simulation
}

fn start_s() -> f64 {
    WARM as f64
}

#[test]
fn a_clock_that_jumps_within_a_window() {
    for (seed, by_ns) in [(1, 1e6), (2, -50e6), (3, 20e3)] {
        expose(seed, &[(5, Misdeed::Jump { at_s: start_s() + 0.5, by_ns })]);
    }
}

#[test]
fn a_clock_that_jumps_between_windows_is_named_as_such_with_the_distance() {
    for by_ns in [1e6, -5e3] {
        let simulation = expose(4, &[(5, Misdeed::Jump { at_s: start_s(), by_ns })]);
        let (named, fault) = simulation.outcomes.iter().flat_map(|outcome| &outcome.newly_excluded).next().unwrap();
        assert_eq!(*named, node(5));
        let Fault::Jumped { by_ns: found_ns } = *fault else { panic!("{fault:?}") };
        assert!((found_ns as f64 - by_ns).abs() < 100.0, "{found_ns}");
    }
}

#[test]
fn a_clock_that_drifts_beyond_the_limit() {
    let simulation = expose(5, &[(7, Misdeed::Drift { from_s: start_s(), rate: 120e-6 })]);
    let (_, fault) = simulation.outcomes.iter().flat_map(|outcome| &outcome.newly_excluded).next().unwrap();
    assert!(matches!(fault, Fault::Drifts { rate_ppt } if *rate_ppt > 60_000_000), "{fault:?}");
    expose(6, &[(7, Misdeed::Drift { from_s: start_s() + 0.3, rate: -300e-6 })]);
}

#[test]
fn a_node_that_tells_each_peer_another_time() {
    for (seed, up_to_ns) in [(7, 1e9), (8, 1e6), (9, 50e3)] {
        expose(seed, &[(11, Misdeed::Lie { from_s: start_s(), up_to_ns })]);
    }
}

#[test]
fn the_reference_itself() {
    let jumps = expose(10, &[(0, Misdeed::Jump { at_s: start_s(), by_ns: 30e3 })]);
    assert_eq!(jumps.outcomes.last().unwrap().reference, node(1), "the next one carries on");
    expose(11, &[(0, Misdeed::Drift { from_s: start_s(), rate: 200e-6 })]);
    expose(12, &[(0, Misdeed::Lie { from_s: start_s(), up_to_ns: 1e6 })]);
}

#[test]
fn several_at_once() {
    expose(
        13,
        &[
            (2, Misdeed::Lie { from_s: start_s(), up_to_ns: 1e6 }),
            (3, Misdeed::Lie { from_s: start_s(), up_to_ns: 1e6 }),
            (8, Misdeed::Jump { at_s: start_s() + 0.5, by_ns: -2e6 }),
            (9, Misdeed::Drift { from_s: start_s(), rate: 150e-6 }),
        ],
    );
}

#[test]
fn a_clock_that_jumped_once_comes_back_after_its_probation_and_a_liar_does_not() {
    let mut simulation =
        expose(14, &[(5, Misdeed::Jump { at_s: start_s(), by_ns: 1e6 }), (6, Misdeed::Lie { from_s: start_s(), up_to_ns: 1e6 })]);
    simulation.steps(10);
    let readmitted: Vec<_> = simulation.outcomes.iter().flat_map(|outcome| &outcome.readmitted).copied().collect();
    assert_eq!(readmitted, [node(5)]);
    let last = simulation.outcomes.last().unwrap();
    assert!(matches!(last.verdicts[5], Verdict::Synced(_)), "{:?}", last.verdicts[5]);
    assert!(matches!(last.verdicts[6], Verdict::Excluded(_)));
    let looks = simulation.looks.last().unwrap();
    let back = looks.iter().find(|look| look.node == 5).unwrap();
    assert!(back.error_ns.abs() <= back.reading.bound_ns as f64, "{} {:?}", back.error_ns, back.reading);
}
