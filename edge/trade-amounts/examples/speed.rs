//! Times of the circulation beside a linear program in Rust and beside GLPK:
//! `cargo run --release -p walras-trade-amounts --example speed`.
//!
//! On bounds as 500,000 offers leave them at an equilibrium. `ours` is the circulation with its check of the network, without commission;
//! `ours eps` the same where a commission of 2^-15 may be spent on volume; both medians. `lp` is microlp, once. `glpk` is the peer's
//! median time in glp_simplex with that commission, where `bench/peers/glpk/run.sh` can run. Run nothing beside it.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use walras_clearing::{Edition, LowerBounds, Rules, verify};
use walras_trade_amounts::synthetic::{bounds_near_equilibrium, market_near_equilibrium};
use walras_trade_amounts::{
    AmountsFinder, Answer, CirculationSolver, Network, ValueArc, problem_text, propose, solve_linear_program,
};
use walras_types::{Commission, Mu};

const COMMISSION_EXPONENT: u32 = 15;

fn main() -> std::io::Result<()> {
    println!("  mu    N  pairs   free | ours us  eps us  rounds |   lp ms | glpk ms  times | eps adds  glpk adds");
    for mu_exponent in [10, 15] {
        for node_count in [20, 50, 80, 100, 200] {
            row(node_count, mu_exponent)?;
        }
    }
    println!("   N  eps | whole amounts, from the market's offers: propose us, the core's verify us");
    for node_count in [20, 50, 200] {
        for eps in [0, 15] {
            whole_amounts(node_count, eps);
        }
    }
    Ok(())
}

fn whole_amounts(node_count: u16, eps: u8) {
    let (market, prices) = market_near_equilibrium(node_count, 500_000, 10, -5, 1);
    let commission = Commission::new(eps).unwrap_or(Commission::NONE);
    let rules = Rules {
        edition: Edition::NEWEST,
        commission,
        mu: Mu::new(10).expect("within 1 and 30"),
        lower_bounds: LowerBounds::BestEffort,
    };
    let mut finder = AmountsFinder::new();
    let (mut propose_us, mut verify_us) = (Vec::new(), Vec::new());
    for _ in 0..31 {
        let start = Instant::now();
        let proposed = propose(&mut finder, &market, &prices, &rules);
        propose_us.push(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        let verified = verify(&market, &proposed.proposal, &rules);
        verify_us.push(start.elapsed().as_secs_f64() * 1e6);
        assert!(verified.is_ok(), "the core rejects the proposal");
    }
    propose_us.sort_by(f64::total_cmp);
    verify_us.sort_by(f64::total_cmp);
    println!("{node_count:4} {eps:4} | {:7.0} {:7.0}", propose_us[15], verify_us[15]);
}

fn row(node_count: u32, mu_exponent: u32) -> std::io::Result<()> {
    let arcs = bounds_near_equilibrium(node_count, 500_000, mu_exponent, 1);
    let zeros = vec![0; node_count as usize];
    let mut spendable = vec![0_i64; node_count as usize];
    for arc in &arcs {
        spendable[arc.to as usize] -= arc.lower;
    }
    spendable.iter_mut().for_each(|value| *value = -(-*value >> COMMISSION_EXPONENT));
    let free_count = arcs.iter().filter(|arc| arc.lower < arc.upper).count();
    let (ours_us, value, rounds) = time(&arcs, &zeros);
    let (eps_us, eps_value, _) = time(&arcs, &spendable);
    let network = Network::new(&arcs, &zeros).expect("made bounds are in range");
    let start = Instant::now();
    let lp = solve_linear_program(&network, 0.0).map(|flow| flow.value);
    let lp_ms = start.elapsed().as_secs_f64() * 1e3;
    let (glpk, share) = match glpk(&network, node_count)? {
        Some((ms, objective)) => {
            (format!("{ms:7.2} {:6.0}", ms * 1e3 / ours_us), format!("{:.6} %", (objective / value as f64 - 1.0) * 100.0))
        }
        None => ("not run      -".to_owned(), "-".to_owned()),
    };
    let more = (eps_value as f64 / value as f64 - 1.0) * 100.0;
    println!(
        "2^-{mu_exponent:2} {node_count:4} {:6} {free_count:6} | {ours_us:7.1} {eps_us:7.1} {rounds:7} | {lp_ms:7.2} | {glpk} | {more:.6} %  {share}",
        arcs.len()
    );
    match lp {
        Ok(lp) if (lp - value as f64).abs() <= 1e-9 * lp => {}
        other => println!("     microlp says {other:?} where the circulation has {value}"),
    }
    Ok(())
}

/// Median microseconds, the value and the rounds.
fn time(arcs: &[ValueArc], surplus_min: &[i64]) -> (f64, i128, u32) {
    let mut solver = CirculationSolver::new();
    let mut us = Vec::new();
    let mut last = None;
    for _ in 0..101 {
        let start = Instant::now();
        let network = Network::new(arcs, surplus_min).expect("made bounds are in range");
        let answer = solver.solve(&network);
        us.push(start.elapsed().as_secs_f64() * 1e6);
        let Answer::Best(best) = answer else { panic!("a flow exists by construction") };
        last = Some(best);
    }
    us.sort_by(f64::total_cmp);
    let best = last.expect("solved");
    let network = Network::new(arcs, surplus_min).expect("made bounds are in range");
    assert!(best.check(&network), "the answer does not prove itself");
    (us[us.len() / 2], best.value, best.round_count)
}

/// The peer's median milliseconds and its objective, if it is there.
fn glpk(network: &Network<'_>, node_count: u32) -> std::io::Result<Option<(f64, f64)>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers/glpk/run.sh");
    let file = std::env::temp_dir().join(format!("walras-trade-amounts-{}.txt", std::process::id()));
    std::fs::write(&file, problem_text(network, COMMISSION_EXPONENT))?;
    let rounds = if node_count > 100 { "5" } else { "11" };
    let output = Command::new(script).arg(&file).args(["--rounds", rounds]).output();
    std::fs::remove_file(&file)?;
    let Ok(output) = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()) else { return Ok(None) };
    let field = |name: &str| output.split(&format!("\"{name}\": ")).nth(1)?.split([',', '}']).next()?.parse().ok();
    Ok(field("solve_ms_median").zip(field("objective")))
}
