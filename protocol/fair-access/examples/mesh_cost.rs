//! What the mesh costs: fitting an edge's window, and solving a window of all edges. Prints a table; on a quiet machine:
//! `cargo run --release -p walras-fair-access --example mesh_cost`. Each figure is the median of several; a figure is only taken of a
//! result that was checked. Left out: sockets, stamps and the messages to and from the coordinator.

#![allow(clippy::float_arithmetic, clippy::unwrap_used, clippy::disallowed_methods, reason = "a measurement")]

use std::time::Instant;

use walras_fair_access::mesh::{
    CodedFilter, Coordinator, CoordinatorConfig, EdgeEstimate, EdgeReport, Pair, Schedule, WindowSamples,
};
use walras_mesh_sim::{Simulation, World, quantile};

fn main() {
    println!("an edge's window, fitted (probes every 4 ms in both directions):");
    for window_s in [1, 2] {
        let mut random = walras_mesh_sim::Random::new(1);
        let samples = edge(&mut random, window_s * 250);
        let mut times_us: Vec<f64> = (0..301)
            .map(|_| {
                let start = Instant::now();
                let estimate = samples.fit(&CodedFilter::default(), 1_000_000_000 * window_s).unwrap();
                let took_us = start.elapsed().as_nanos() as f64 / 1e3;
                assert!((estimate.offset_ns - 1_000).abs() < 30, "{estimate:?}");
                took_us
            })
            .collect();
        times_us.sort_by(f64::total_cmp);
        println!("  {window_s} s: p50 {:.1} us, p99 {:.1} us", quantile(&times_us, 500), quantile(&times_us, 990));
    }
    println!("a window of all edges, solved with bounds (K=10, asymmetry 0.5 us):");
    for (node_count, windows) in [(50, 12), (200, 8), (1_000, 8)] {
        // Few probes: only the solution is timed.
        let world = World { interval_ns: 20_000_000, ..World::new(node_count, 1) };
        let mut simulation = Simulation::rotating(world);
        simulation.steps(windows);
        let mut times_ms: Vec<f64> = simulation.close_ms[2..].to_vec();
        times_ms.sort_by(f64::total_cmp);
        let errors = simulation.pair_errors_ns(4 * (windows - 1), |_| true);
        let quality = simulation.outcomes.last().unwrap().quality;
        let (within, all) = simulation.covered(4 * (windows - 1), |node| node != 0);
        println!(
            "  N={node_count}: p50 {:.1} ms, first {:.1} ms, {} edges ({} remembered); pairs p90 {:.0} ns, p99 {:.0} ns; within the bound {within} of {all}",
            quantile(&times_ms, 500),
            simulation.close_ms[0],
            quality.edges,
            quality.edges_remembered,
            quantile(&errors, 900),
            quantile(&errors, 990),
        );
    }
    full_memory(1_000);
}

/// Windows of exact estimates with an asymmetry for each pair, until as many are remembered as ever will be.
fn full_memory(node_count: usize) {
    const WINDOW_NS: u64 = 1_000_000_000;
    let schedule = Schedule::rotating(node_count, 10, 1);
    let config = CoordinatorConfig::new(schedule, WINDOW_NS);
    let mut coordinator = Coordinator::new(config, 0);
    let mut times_ms = Vec::new();
    for window in 0..config.memory_windows + 12 {
        for (from, to) in schedule.edges(window) {
            let pair = u64::from(from.0.min(to.0)) << 32 | u64::from(from.0.max(to.0));
            let asymmetry_ns = walras_mesh_sim::Random::new(pair).normal(350.0) as i64;
            let sign = if from < to { 1 } else { -1 };
            let offset_ns = i64::from(to.0) * 1_000 - i64::from(from.0) * 1_000 + sign * asymmetry_ns;
            let anchor_local_ns = window * WINDOW_NS + WINDOW_NS / 2 + u64::from(from.0) * 1_000;
            let estimate = EdgeEstimate { anchor_local_ns, offset_ns, rate_ppt: 0, round_trip_ns: 40_000, noise_ns: 0 };
            coordinator.on_report(&EdgeReport { window, from, to, result: Ok(estimate) }).unwrap();
        }
        let start = Instant::now();
        let outcome = coordinator.close_window(window).unwrap();
        times_ms.push(start.elapsed().as_secs_f64() * 1e3);
        assert!(outcome.newly_excluded.is_empty());
        if window == config.memory_windows + 11 {
            let mut last_ms = times_ms.split_off(times_ms.len() - 12);
            last_ms.sort_by(f64::total_cmp);
            let edges = outcome.quality.edges_remembered;
            println!("  N={node_count} with a full memory: p50 {:.1} ms, {edges} edges remembered", quantile(&last_ms, 500));
        }
    }
}

/// An edge with paths of 20 us, an offset of 1 us, stamps with 30 ns of noise and a third of the probes in queues.
fn edge(random: &mut walras_mesh_sim::Random, count: u64) -> WindowSamples {
    let mut samples = WindowSamples::default();
    for step in 0..count {
        let tx_ns = step * 4_000_000 + 1_000_000;
        samples.forward.push(pair(random, tx_ns, 21_000.0));
        samples.backward.push(pair(random, tx_ns + 100_000, 19_000.0));
    }
    samples
}

fn pair(random: &mut walras_mesh_sim::Random, sent_ns: u64, delay_ns: f64) -> Pair {
    let mut pair = Pair { tx_ns: [0; 2], rx_ns: [0; 2] };
    for index in 0..2 {
        let at_ns = sent_ns + index as u64 * 30_000;
        let queue_ns = if random.unit() < 0.33 { -5_000.0 * random.unit().ln() } else { 0.0 };
        pair.tx_ns[index] = at_ns.wrapping_add_signed(random.normal(30.0) as i64);
        pair.rx_ns[index] = at_ns.wrapping_add_signed((delay_ns + queue_ns + random.normal(30.0)) as i64);
    }
    pair
}
