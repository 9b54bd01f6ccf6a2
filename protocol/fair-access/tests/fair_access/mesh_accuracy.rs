//! How close the virtual clocks of a mesh are to each other while they are in use, with offsets to 10 ms, drifts to 30 us/s, clocks that
//! wander and a third of all probes in queues. `examples/mesh_accuracy.rs` prints more of it.

#![allow(clippy::float_arithmetic, reason = "a simulation")]

use walras_mesh_sim::{Simulation, World, quantile};

fn errors_ns(world: World, seeds: &[u64], warm: usize) -> Vec<f64> {
    let mut errors = Vec::new();
    for &seed in seeds {
        let mut simulation = Simulation::rotating(World { seed, ..world });
        simulation.steps(warm + 3);
        assert!(simulation.outcomes.iter().all(|outcome| outcome.newly_excluded.is_empty()), "all are good");
        errors.extend(simulation.pair_errors_ns(4 * warm, |_| true));
    }
    errors.sort_by(f64::total_cmp);
    errors
}

#[test]
fn paths_with_half_a_microsecond_of_asymmetry() {
    let errors = errors_ns(World::new(50, 0), &[1, 2], 12);
    let (p90, p99) = (quantile(&errors, 900), quantile(&errors, 990));
    assert!(p90 <= 200.0 && p99 <= 300.0, "p90 {p90} p99 {p99}");
    // Not for nothing: the asymmetry is there.
    assert!(p90 > 50.0, "p90 {p90}");
}

#[test]
fn symmetric_paths() {
    let errors = errors_ns(World { asymmetry_ns: 0.0, ..World::new(50, 0) }, &[1, 2], 12);
    let p99 = quantile(&errors, 990);
    assert!(p99 <= 10.0, "p99 {p99}");
}
