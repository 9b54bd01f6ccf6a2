//! Fail-over in simulation, a few elections of each kind, and what is recorded of clusters: what must hold, never how long it took.

use std::time::Duration;

use walras_client::cluster::ClusterReport;
use walras_client::failover::Death;
use walras_experiments_raft_2021::SEED;
use walras_experiments_raft_2021::cluster::{Loads, Point};
use walras_experiments_raft_2021::etcd::{EtcdPoint, EtcdRuns};
use walras_experiments_raft_2021::failover::{
    Conditions, GIVEN_UP_MS, PreVote, RANGES, Range, Setup, Timing, setups, simulate, simulate_all,
};
use walras_experiments_raft_2021::record_cluster::{self, RealDeaths};
use walras_figures::peer::Line;

#[test]
fn every_setup_elects_and_serves() {
    for setup in setups() {
        for range in RANGES {
            let outcome = simulate(setup, range, &Timing::LOCAL, 10, SEED).unwrap();
            for (elected, acknowledged) in outcome.elected_ms.iter().zip(&outcome.acknowledged_ms) {
                assert!(elected < acknowledged || *acknowledged == GIVEN_UP_MS, "{setup:?} {range:?}");
                // Nobody can notice earlier than the shortest wait after the last sign of life.
                let earliest = (range.min_ms - range.heartbeat_ns() / 1_000_000 - 1) as f64;
                assert!(*elected >= earliest, "{setup:?} {range:?}: leader after {elected} ms");
            }
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

#[test]
fn every_kind_of_election_is_in_the_record() {
    let simulated = simulate_all(&Timing::LOCAL, 2, SEED).unwrap();
    assert_eq!(simulated.len(), setups().len() * RANGES.len());
    assert!(simulated.iter().zip(&simulated[1..]).all(|(one, next)| (one.setup, one.range) != (next.setup, next.range)));
    let ms = Duration::from_millis;
    let deaths = vec![Death { logged_on: ms(160), acknowledged: ms(170) }, Death { logged_on: ms(180), acknowledged: ms(190) }];
    let real = [RealDeaths { range: RANGES[5], deaths }];
    let record = record_cluster::failover(&simulated, &Timing::LOCAL, &real).unwrap();
    assert_eq!(record.result["failover_p50_ms_150_300"], 180.0);
    assert_eq!(record.iterations_csv.lines().count(), 1 + (simulated.len() + 1) * 51);
    assert!(record.plot_svg.contains("three processes"));
}

#[test]
fn points_are_compared_with_the_published() {
    let trial = |mean_ns, acknowledged_per_second| ClusterReport {
        offered_per_second: None,
        outstanding: Some(4),
        sessions: 4,
        seconds: 1.0,
        acknowledged: 10,
        answered: 10,
        rejected: 1,
        acknowledged_per_second,
        mean_ns,
        latency: Default::default(),
        reconnects: 0,
    };
    let point =
        |replicas, clients, mean_ns, rate| Point { replicas, clients, outstanding: 4, trials: vec![trial(mean_ns, rate); 3] };
    let sizes = [point(3, 4, 1e6, 1_000.0), point(5, 4, 1.5e6, 800.0), point(7, 4, 2e6, 500.0)];
    // Three runs; the second one is the median.
    let run = |per_s, mean_us| Line { peer: "etcd 3".to_owned(), per_s, mean_us, p50_us: mean_us, p99_us: mean_us };
    let etcd = |members, clients| {
        let runs = vec![run(90.0, 4_500.0), run(100.0, 5_000.0), run(110.0, 6_000.0)];
        EtcdRuns::Ran(vec![EtcdPoint { members, clients, outstanding: 4, runs }])
    };
    let record = record_cluster::sizes(&sizes, &etcd(5, 4), &Loads::burst()).unwrap();
    let against = &record.result["ours_against_three_replicas"];
    assert_eq!((&against[0]["latency_percent"], &against[0]["throughput_percent"]), (&50.0.into(), &(-20.0).into()));
    assert_eq!(against[1]["latency_percent"], 100.0);
    let in_result = &record.result["etcd_here"][0];
    assert_eq!((&in_result["members"], &in_result["writes_per_s"]), (&5.into(), &100.0.into()));
    assert_eq!(in_result["ratios"]["throughput_ours_to_etcd"], 8.0);
    assert!(record.plot_svg.contains("etcd, here"));
    let record = record_cluster::clients(&[point(3, 1, 1e6, 1_166.0)], &etcd(3, 1), &Loads::clients()).unwrap();
    let ratios = &record.result["published_etcd"][0]["ratios"];
    assert_eq!((&ratios["throughput_ours_to_etcd"], &ratios["latency_etcd_to_ours"]), (&2.0.into(), &1.6.into()));
    assert!(record.result["published_etcd"][1]["ratios"].is_null());
    assert_eq!(record.result["etcd_here"][0]["ratios"]["latency_etcd_to_ours"], 5.0);
    assert_eq!(record.iterations_csv.lines().count(), 1 + 3 + 3);
    // A missing measurement is reported, and nothing replaces it.
    let nobody = EtcdRuns::NotRun("no Go".to_owned());
    let record = record_cluster::clients(&[point(3, 1, 1e6, 1_166.0)], &nobody, &Loads::clients()).unwrap();
    assert_eq!(record.result["etcd_here"]["not_run"], "no Go");
    assert!(!record.plot_svg.contains("etcd, here"));
}
