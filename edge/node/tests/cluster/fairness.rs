//! Fair access from outside: pairs of orders through two replicas, as `walras bench --cluster --fair` sends them, and through two leaf
//! gateways.

use std::time::Duration;

use walras_client::cluster::{FairOptions, FairReport, ReplicaAddress, measure_fairness, measure_fairness_through, replicas};
use walras_client::local_cluster::FIRST_GATEWAY;
use walras_client::read_key;

use super::{Cluster, PATIENCE, Shape, until};

/// Pairs this near to each other are not judged: on a busy machine the kernel itself puts off a packet's receipt, and so its stamp.
const NEAR_NS: u64 = 200_000;
/// A measurement during which the kernel put off a packet for longer is repeated; stamps that are wrong fail each of them.
const TRIES: usize = 3;

fn cluster_with(gateways: u16) -> Cluster {
    let number = toml::Value::Integer;
    let settings = vec![
        ("fair_access", "sequencing", "1%".into()),
        ("fair_access", "bound_us", number(10)),
        // Nobody's stamps are left out because a processor was away.
        ("fair_access", "outlier_us", number(10_000_000)),
    ];
    let mut cluster = Cluster::of(Shape { gateways, more: settings, ..Shape::default() });
    cluster.local.wait_for_leader(PATIENCE).unwrap();
    (FIRST_GATEWAY..).take(gateways.into()).for_each(|id| cluster.local.start(id).unwrap());
    cluster
}

/// The three replicas, once all are linked.
fn linked(cluster: &Cluster) -> Vec<ReplicaAddress> {
    let all = || replicas(&cluster.operator(1)).ok().filter(|reached| reached.replicas.len() == 3);
    until("the replicas are linked", || all().is_some());
    all().unwrap().replicas
}

/// On a busy machine pairs are inverted; but orders are stamped as they come, so the venue knows of each.
fn assert_reported(measure: impl Fn(FairOptions) -> FairReport) {
    let options = FairOptions { offered: Some(500), time: Duration::from_millis(500) };
    let measure = || {
        let report = measure(options);
        assert_eq!(report.phases.iter().map(|phase| phase.offered_per_second).collect::<Vec<_>>(), [0, 500]);
        assert!(report.phases.iter().flat_map(|phase| &phase.pairs).all(|pairs| pairs.pairs + pairs.stretched > 0), "{report}");
        report
    };
    let is_true = |report: &FairReport| {
        let mut judged = report.phases.iter().flat_map(|phase| &phase.pairs).filter(|pairs| pairs.difference_ns > NEAR_NS);
        judged.all(|pairs| pairs.inverted == pairs.inverted_reported)
    };
    let mut reports = Vec::new();
    while !reports.last().is_some_and(is_true) {
        assert!(
            reports.len() < TRIES,
            "inverted pairs that the venue does not report, each time: {}",
            reports.last().expect("one was made")
        );
        reports.push(measure());
    }
}

#[test]
fn every_inverted_pair_is_one_that_the_venue_reports() {
    let cluster = cluster_with(0);
    let (replicas, key) = (linked(&cluster), read_key(&cluster.local.operator_key()).unwrap());
    assert_reported(|options| measure_fairness(&replicas, &key, options).unwrap());
    for id in 1..=3 {
        let gateway = &cluster.operator(id).get("/v1/fair-access").unwrap()["gateway"];
        // What came before the kernel was asked has no stamp: of each session the logon, at most.
        assert!(gateway["stamped_by_kernel"].as_u64() > Some(20), "{gateway}");
        assert!(gateway["stamped_when_read"].as_u64() < Some(20), "{gateway}");
    }
}

/// Participants who know no replica: their gateways stamp, and the venue knows of each pair that it inverts all the same.
#[test]
fn every_inverted_pair_through_leaf_gateways_is_one_that_the_venue_reports() {
    let cluster = cluster_with(2);
    let (replicas, key) = (linked(&cluster), read_key(&cluster.local.operator_key()).unwrap());
    let gateways: Vec<String> = cluster.local.gateways.iter().map(|gateway| gateway.orders.clone()).collect();
    assert_reported(|options| {
        let report = measure_fairness_through(&replicas, &gateways, &key, options).unwrap();
        assert_eq!(report.gateways, 2);
        report
    });
}
