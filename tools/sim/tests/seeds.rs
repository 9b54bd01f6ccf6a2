//! A fixed budget of seeds, the same on every machine; `WALRAS_SIM_SEEDS` asks for more.

use walras_sim::Trace;
use walras_sim::single::{Report, Settings, simulate};

fn seed_count() -> u64 {
    std::env::var("WALRAS_SIM_SEEDS").map_or(120, |count| count.parse().expect("WALRAS_SIM_SEEDS is a number of seeds"))
}

#[test]
fn nothing_is_lost_doubled_or_seen_too_early_whatever_fails() {
    let settings = Settings::default();
    let mut sum = Report::default();
    for seed in 1..=seed_count() {
        match simulate(seed, &settings, &Trace::off()) {
            Ok(report) => sum += report,
            Err(violation) => panic!("seed {seed}: {violation}; see `cargo run -p walras-sim -- --seeds 1 --seed {seed}`"),
        }
    }
    println!("{sum:#?}");
    // A simulation in which little happens shows little.
    for (what, count, least) in [
        ("answers", sum.acknowledged, 150),
        ("refusals because the log could not be written", sum.refused_by_storage, 5),
        ("replayed requests", sum.replayed, 20),
        ("blocks cleared", sum.blocks, 10),
        ("crashes", sum.crashes, 8),
        ("failed starts", sum.failed_starts, 1),
        ("recoveries from a snapshot", sum.from_snapshot, 2),
        ("snapshots", sum.snapshots, 3),
        ("reused segments", sum.reused_segments, 3),
    ] {
        assert!(count >= least * seed_count(), "{count} {what} in {} seeds test little", seed_count());
    }
    assert!(sum.in_doubt * 2 >= seed_count(), "{} answers in doubt test little", sum.in_doubt);
    assert!(sum.torn_tails * 4 >= seed_count(), "{} torn tails test little", sum.torn_tails);
}

#[test]
fn a_seed_does_the_same_again() {
    let run = || {
        let trace = Trace::on();
        (simulate(77, &Settings::default(), &trace), trace.lines())
    };
    assert_eq!(run(), run());
}
