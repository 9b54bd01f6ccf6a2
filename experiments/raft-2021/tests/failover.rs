//! Fail-over in simulation, a few elections of each kind: what must hold of them, never how long it took to run.

use walras_experiments_raft_2021::SEED;
use walras_experiments_raft_2021::failover::{Conditions, GIVEN_UP_MS, PreVote, RANGES, Range, Setup, Timing, simulate};

fn setups() -> impl Iterator<Item = Setup> {
    let conditions = [Conditions::WorstCase, Conditions::UnequalLogs, Conditions::Ordinary];
    let with = move |replicas, pre_vote| conditions.map(|conditions| Setup { replicas, pre_vote, conditions });
    [3, 5].into_iter().flat_map(move |replicas| [PreVote::Off, PreVote::On].into_iter().flat_map(move |p| with(replicas, p)))
}

fn median(values: &[f64]) -> f64 {
    walras_experiments_raft_2021::stats::quantile(values, 0.5)
}

#[test]
fn every_setup_elects_and_serves() {
    for setup in setups() {
        for range in RANGES {
            let outcome = simulate(setup, range, &Timing::LOCAL, 10, SEED).unwrap();
            for (elected, acknowledged) in outcome.elected_ms.iter().zip(&outcome.acknowledged_ms) {
                assert!(elected < acknowledged || *elected == GIVEN_UP_MS, "{setup:?} {range:?}");
                // Nobody can notice earlier than the shortest wait after the last sign of life.
                let earliest = (range.min_ms - range.heartbeat_ns() / 1_000_000 - 1) as f64;
                assert!(*elected >= earliest, "{setup:?} {range:?}: leader after {elected} ms");
            }
            eprintln!("{} {} {} {}: {:?} given up {}", setup.replicas, setup.pre_vote.name(), setup.conditions.name(), range.name(), median(&outcome.acknowledged_ms), outcome.given_up());
        }
    }
}

#[test]
fn the_same_seed_meets_the_same_elections() {
    let setup = Setup { replicas: 3, pre_vote: PreVote::Off, conditions: Conditions::WorstCase };
    let range = Range { min_ms: 150, max_ms: 155 };
    let run = |seed| simulate(setup, range, &Timing::LOCAL, 5, seed).unwrap();
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
