//! A venue of several shards: a fixed budget of seeds, the same on every machine (`WALRAS_SIM_SEEDS` asks for more), and planted
//! faults, each of which is found by the checkers that are there for it: so they can fail.

use std::ops::RangeInclusive;

use walras_sim::Trace;
use walras_sim::shards::{Mutation, Report, Settings, planted, simulate};

fn seed_count() -> u64 {
    std::env::var("WALRAS_SIM_SEEDS").map_or(8, |count| count.parse().expect("WALRAS_SIM_SEEDS is a number of seeds"))
}

fn run(settings: &Settings, seeds: RangeInclusive<u64>, again: &str) -> Report {
    let mut sum = Report::default();
    for seed in seeds {
        match simulate(seed, settings, &Trace::off()) {
            Ok(report) => sum += report,
            Err(violation) => {
                panic!(
                    "seed {seed}: {violation}; see `cargo run --release -p walras-sim -- --shards{again} --seeds 1 --seed {seed}`"
                )
            }
        }
    }
    println!("{sum:#?}");
    sum
}

#[test]
fn funds_arrive_once_whatever_fails() {
    let sum = run(&Settings::default(), 1..=seed_count(), "");
    // A simulation in which little happens shows little.
    for (what, count, least) in [
        ("answers", sum.answers, 100),
        ("crashes", sum.crashes, 5),
        ("transfers sent", sum.sent, 30),
        ("transfers taken", sum.taken, 20),
        ("transfers that came back", sum.returned, 2),
        ("messages lost or doubled", sum.lost_or_doubled, 10),
        ("relays", sum.relays, 10),
        ("rounds that failed", sum.failed_rounds, 10),
        ("comparisons", sum.comparisons, 4),
    ] {
        assert!(count >= least * seed_count(), "{count} {what} in {} seeds test little", seed_count());
    }
    assert!(sum.delivered_again * 2 >= seed_count(), "{} transfers that came again test little", sum.delivered_again);
}

/// Of a whole shard an old backup is put in place of what it acknowledged: it trades on, loses its leader, is reached, and found by
/// all.
#[test]
fn a_shard_that_was_set_back_is_found_and_nothing_moves_until_it_has_its_state() {
    let seeds = seed_count() / 2;
    let settings = Settings { sets_back: Some(true), ..Settings::default() };
    let sum = run(&settings, 5..=4 + seeds, " --set-back yes");
    assert!(sum.set_back * 2 >= seeds, "{sum:#?}");
    assert!(sum.sent_in_doubt >= 5 * sum.set_back && sum.stopped >= 10 * sum.set_back, "{sum:#?}");
}

#[test]
fn a_seed_does_the_same_again() {
    let run = || {
        let trace = Trace::on();
        (simulate(7, &Settings { safety_ns: 3_000_000_000, ..Settings::default() }, &trace), trace.lines())
    };
    assert_eq!(run(), run());
}

/// Seeds that failed, and why. They are kept: what they found may come back.
const FAILED_ONCE: &[(u64, &str)] =
    &[(175, "a backup from before the shard was configured as one was believed to have moved when it was configured")];

#[test]
fn seeds_that_failed_once_pass() {
    for (seed, cause) in FAILED_ONCE {
        let result = simulate(*seed, &Settings::default(), &Trace::off());
        assert!(result.is_ok(), "seed {seed} fails again ({cause}?): {result:?}");
    }
}

#[test]
fn every_planted_fault_is_found() {
    for &mutation in Mutation::ALL {
        let found = planted(mutation).find().unwrap_or_else(|missed| panic!("{missed}"));
        println!("{mutation:?}: seed {}: {}", found.seed, found.violation);
    }
}
