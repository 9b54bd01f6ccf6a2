//! How well the mesh does in simulation: `cargo run --release -p walras-fair-access --example mesh_accuracy`.

#![allow(clippy::float_arithmetic, clippy::unwrap_used, reason = "a simulation")]

use walras_fair_access::mesh::Schedule;
use walras_mesh_sim::{Simulation, World, quantile};

fn main() {
    println!("pairs of virtual clocks while in use, N=50, K=10, 3 seeds; bound: median and share of looks within");
    println!("{:<48} {:>7} {:>7} {:>7} {:>8} {:>9}", "", "p50 ns", "p90 ns", "p99 ns", "bound", "within");
    let base = World::new(50, 0);
    let still = World { wander: 0.0, ..base };
    let symmetric = World { asymmetry_ns: 0.0, ..base };
    let long = |world: World| World { window_ns: 2_000_000_000, ..world };
    row("asymmetry 0.5 us, one graph, window 3", base, false, 3, 1);
    row("asymmetry 0.5 us, changing graph, windows 21-24", base, true, 20, 4);
    row("asymmetry 2 us, changing graph, windows 21-24", World { asymmetry_ns: 2_000.0, ..base }, true, 20, 4);
    row("symmetric, one graph, window 3", symmetric, false, 3, 1);
    row("symmetric, changing graph, windows 21-24", symmetric, true, 20, 4);
    row("symmetric, no wander, one graph, window 3", World { asymmetry_ns: 0.0, ..still }, false, 3, 1);
    row("symmetric, windows of 2 s, 21-24", long(symmetric), true, 20, 4);
    row("symmetric, stamps 200 ns, windows 21-24", World { stamp_noise_ns: 200.0, ..symmetric }, true, 20, 4);
    row("symmetric, 80 % queued, windows 21-24", World { queued_share: 0.8, ..symmetric }, true, 20, 4);
}

fn row(name: &str, world: World, rotates: bool, warm: usize, count: usize) {
    let (mut errors, mut bounds, mut within, mut all) = (Vec::new(), Vec::new(), 0, 0);
    for seed in 1..=3 {
        let world = World { seed, ..world };
        let schedule = if rotates { Schedule::rotating(50, 10, seed) } else { Schedule::fixed(50, 10, seed) };
        let mut simulation = Simulation::new(world, schedule);
        simulation.steps(warm + count);
        errors.extend(simulation.pair_errors_ns(warm * 4, |_| true));
        let covered = simulation.covered(warm * 4, |node| node > 0);
        within += covered.0;
        all += covered.1;
        bounds.extend(simulation.looks[warm * 4..].iter().flatten().map(|look| look.reading.bound_ns as f64));
    }
    errors.sort_by(f64::total_cmp);
    bounds.sort_by(f64::total_cmp);
    let [p50, p90, p99] = [500, 900, 990].map(|permille| quantile(&errors, permille));
    println!(
        "{name:<48} {p50:>7.1} {p90:>7.1} {p99:>7.1} {:>8.0} {:>8.3}%",
        quantile(&bounds, 500),
        100.0 * within as f64 / all as f64
    );
}
