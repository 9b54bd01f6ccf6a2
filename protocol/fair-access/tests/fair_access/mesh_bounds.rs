//! The bounds that the mesh publishes hold, its clocks never go back, and a bound that becomes wide stops stamping.

#![allow(clippy::float_arithmetic, reason = "a simulation")]

use walras_fair_access::clock::{ClockStatus, StampGate, StampLimits};
use walras_mesh_sim::{Simulation, World};

fn world(node_count: usize, seed: u64) -> World {
    World { interval_ns: 10_000_000, ..World::new(node_count, seed) }
}

#[test]
fn the_true_error_is_within_the_bound_999_times_in_1000() {
    let (mut within, mut all, mut widest_ns) = (0, 0, 0);
    for seed in 1..=8 {
        for asymmetry_ns in [0.0, 500.0, 2_000.0] {
            let mut simulation = Simulation::rotating(World { asymmetry_ns, ..world(24, seed) });
            simulation.steps(10);
            // From the very first line on; the reference is not counted, since its error is none.
            let covered = simulation.covered(0, |node| node != 0);
            within += covered.0;
            all += covered.1;
            if asymmetry_ns == 500.0 {
                widest_ns = widest_ns.max(simulation.looks.last().unwrap().iter().map(|look| look.reading.bound_ns).max().unwrap());
            }
        }
    }
    assert!(all > 20_000 && within * 1_000 >= all * 999, "{within} of {all}");
    assert!(widest_ns < 1_000, "and they are worth something: {widest_ns} ns at 0.5 us of asymmetry");
}

#[test]
fn a_mesh_too_small_for_loops_gives_the_bound_of_its_round_trips() {
    for node_count in [2, 3] {
        let mut simulation = Simulation::rotating(World { asymmetry_ns: 5_000.0, ..world(node_count, 3) });
        simulation.steps(8);
        let (within, all) = simulation.covered(0, |node| node != 0);
        assert_eq!(within, all);
        let looks = simulation.looks.last().unwrap();
        assert!(looks[1..].iter().all(|look| look.reading.bound_ns > 10_000), "half a trip is 20 us and more");
    }
}

/// Machines that are busy for ten windows of twenty: nearly all probes wait then, by 0.3 ms on average, and a line through them is luck.
#[test]
fn where_few_probes_come_through_at_once_bounds_hold_and_no_clock_is_blamed() {
    let (mut within, mut all, mut windows, mut blamed) = (0, 0, 0, 0);
    for node_count in [2, 3, 5] {
        for seed in 1..=40 {
            let world = World {
                delay_ns: [2_000.0, 4_000.0],
                asymmetry_ns: 300.0,
                window_ns: 200_000_000,
                interval_ns: 8_000_000,
                // Two of them alone are then within what clocks may drift apart.
                drift_max: 20e-6,
                ..World::new(node_count, seed)
            };
            let mut simulation = Simulation::rotating(world);
            for window in 0..60 {
                let is_busy = window / 10 % 2 == 1;
                (simulation.world.queued_share, simulation.world.queue_ns) =
                    if is_busy { (0.97, 300_000.0) } else { (0.3, 3_000.0) };
                blamed += simulation.step().newly_excluded.len();
                windows += 1;
            }
            let covered = simulation.covered(0, |node| node != 0);
            within += covered.0;
            all += covered.1;
        }
    }
    println!("{within} of {all} within their bounds; {blamed} blamed in {windows} windows");
    assert!(all > 60_000 && within * 1_000 >= all * 999, "{within} of {all}");
    assert!(blamed * 1_000 <= 3 * windows, "{blamed} good clocks blamed in {windows} windows");
}

#[test]
fn no_virtual_clock_ever_goes_back() {
    let mut simulation = Simulation::rotating(World { offset_ns_max: 400e6, ..world(24, 4) });
    let mut times = [0; 24];
    let mut seen = 0;
    for _ in 0..12 {
        simulation.step();
        for looks in &simulation.looks[seen..] {
            for look in looks {
                assert!(look.reading.time_ns > times[look.node]);
                times[look.node] = look.reading.time_ns;
            }
        }
        seen = simulation.looks.len();
    }
}

#[test]
fn a_node_that_is_cut_off_stops_stamping_and_starts_again_when_it_is_back() {
    let mut simulation = Simulation::rotating(world(24, 5));
    let mut gate = StampGate::new(StampLimits::new(3_000, 1_500, 2_000_000_000).unwrap());
    let mut statuses = Vec::new();
    let mut seen = 0;
    for window in 0..60 {
        simulation.cut_off = (12..40).contains(&window).then_some(9);
        simulation.step();
        for looks in &simulation.looks[seen..] {
            let look = looks.iter().find(|look| look.node == 9);
            // The virtual clock's own time serves as the host's: all that counts is how long it takes.
            let reading = look.map(|look| look.reading);
            let status = gate.on_reading(reading.map_or(0, |reading| reading.time_ns), reading);
            statuses.push((window, status));
            let inside = look.is_none_or(|look| look.error_ns.abs() <= look.reading.bound_ns as f64);
            assert!(inside || status != ClockStatus::Good, "window {window}: stamps while its bound does not hold");
        }
        seen = simulation.looks.len();
    }
    statuses.dedup_by_key(|(_, status)| *status);
    let order: Vec<_> = statuses.iter().map(|(_, status)| *status).collect();
    assert_eq!(order, [ClockStatus::Wide, ClockStatus::Good, ClockStatus::Wide, ClockStatus::Good], "{statuses:?}");
    assert!((12..40).contains(&statuses[2].0) && statuses[3].0 >= 40, "{statuses:?}");
}
