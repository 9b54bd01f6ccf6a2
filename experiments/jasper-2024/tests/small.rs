//! The experiments small, on the fitted network, which needs no data: what must hold on any machine.

use std::path::Path;

use walras_experiments_jasper_2024::network::Network;
use walras_experiments_jasper_2024::rows::Findings;
use walras_experiments_jasper_2024::{Extent, bursts, incast, latency, monte_carlo, pacing, shape, simultaneous, spraying};

fn network() -> Network {
    Network::fitted(2_024)
}

/// All rows of these claims are as they have to be.
fn assert_met(findings: &Findings, claims: &[&str]) {
    let missed: Vec<_> = findings.rows.iter().filter(|row| claims.contains(&row.claim) && row.is_met() == Some(false)).collect();
    assert!(missed.is_empty(), "{}: {missed:#?}", findings.name);
    for claim in claims {
        assert!(findings.rows.iter().any(|row| row.claim == *claim && row.is_met().is_some()), "{claim} asks something");
    }
}

#[test]
fn the_tree_is_faster_than_direct_unicasts() {
    let fig_7 = latency::fig_7(&network(), None, Extent::Small);
    assert!(fig_7.figure("sprayed tree over direct unicast: p50") < 0.51, "{}", fig_7.markdown());
    let fig_4 = latency::fig_4(&network(), Extent::Small);
    let slope_us = fig_4.figure("direct unicast: us more for each receiver");
    assert!((2.2..2.6).contains(&slope_us) && fig_4.figure("tree: median receiver") < 125.0, "{}", fig_4.markdown());
}

#[test]
fn a_thousand_receivers_cost_little_more_than_a_hundred() {
    let fig_10 = latency::fig_10(&network(), None, Extent::Small);
    assert!(fig_10.figure("N = 1000 over N = 100, sprayed: p50") < 1.7, "{}", fig_10.markdown());
    assert!(fig_10.figure("N = 10000, sprayed: overall latency, p50") < 450.0, "{}", fig_10.markdown());
}

#[test]
fn each_number_of_receivers_has_its_depth() {
    assert_met(&shape::table_8(&network(), Extent::Small), &["J5"]);
    let table_8 = shape::table_8(&network(), Extent::Small);
    for (receivers, depth) in [(10, 1.0), (100, 2.0), (1_000, 3.0)] {
        assert_eq!(table_8.figure(&format!("N = {receivers}: depth with the least latency")), depth, "{}", table_8.markdown());
    }
    assert_met(&shape::table_2(), &["J10"]);
}

#[test]
fn hedging_cuts_tails() {
    let fig_9 = latency::fig_9(&network(), Extent::Small);
    let p99 = |hedge: u32| fig_9.figure(&format!("H = {hedge}: 95th percentile of receivers' p99"));
    assert!(p99(2) < 0.8 * p99(0), "{}", fig_9.markdown());
    let fig_8 = latency::fig_8(&network(), None, Extent::Small);
    assert!(fig_8.figure("H = 1: overall latency, p50") < fig_8.figure("H = 0: overall latency, p50"), "{}", fig_8.markdown());
    // What the bench takes over is what the figure says.
    let (latency, window) = latency::hedging_ratios(&network(), Extent::Small);
    assert_eq!(latency, fig_8.figure("sprayed, H = 1 over H = 0: overall latency, p99"));
    assert_eq!(window, fig_8.figure("sprayed, H = 1 over H = 0: window, p99"));
}

#[test]
fn spraying_helps_in_bursts() {
    let table_3 = spraying::table_3(&network(), Extent::Small);
    assert!(table_3.figure("AWS, in bursts: latency less, p90") > 20.0, "{}", table_3.markdown());
}

#[test]
fn nothing_is_missing_when_half_of_the_relays_die() {
    let spot = spraying::spot(&network(), Extent::Small);
    assert_met(&spot, &["J27"]);
    assert!(spot.figure("N = 100, H = 0: messages that any receiver misses") > 100.0);
}

#[test]
fn steered_deadlines_deliver_to_all_at_once() {
    let table_6 = simultaneous::table_6(&network(), None, Extent::Small);
    let [(of_100, _), (by_product, _)] = simultaneous::within_1us_percent(&table_6);
    // The product's delay begins at a millisecond, which covers all receivers.
    assert!(of_100 > 90.0 && by_product > 90.0, "{}", table_6.markdown());
    let profit = simultaneous::profit(&network(), Extent::Small);
    for participant in 1..=4 {
        let percent = profit.figure(&format!("ours: participant {participant}"));
        assert!((20.0..30.0).contains(&percent), "{}", profit.markdown());
    }
}

#[test]
fn holding_costs_less_over_the_tree_and_two_receivers_make_it_surer() {
    let fig_11 = simultaneous::fig_11(&network(), None, Extent::Small);
    let ratio = fig_11.figure("H = 2 over CloudEx: overall latency, p50");
    assert!(ratio < 0.5, "{}", fig_11.markdown());
    let [ours, product] = simultaneous::over_cloudex(&network(), Extent::Small);
    for (name, (latency, holding)) in [("ours", ours), ("product's rule", product)] {
        let figure = |of: &str| fig_11.figure(&format!("{name}, H = 1, over CloudEx: {of}, p50"));
        assert_eq!((latency, holding), (figure("overall latency"), figure("holding")));
    }
    let table_4 = simultaneous::table_4(&network(), Extent::Small);
    let p99 = |whose: &str| table_4.figure(&format!("{whose} each: overall latency, p99"));
    assert!(p99("two receivers") < p99("one receiver"), "{}", table_4.markdown());
    assert!(table_4.figure("two receivers each, held: within 1 us") > 99.0, "{}", table_4.markdown());
    assert!(table_4.figure("one receiver each, held: within 1 us") > 80.0, "{}", table_4.markdown());
    let table_7 = latency::table_7(&network(), None, Extent::Small);
    assert!(table_7.figure("model 2, fitted links: jitter") > 5.0, "{}", table_7.markdown());
}

#[test]
fn reports_up_the_tree_lose_nothing() {
    assert_met(&incast::deadlines(&network(), Extent::Small), &["J26"]);
    let orders = incast::orders(&network(), Extent::Small);
    assert!(orders.figure("queue of 52: orders lost, straight") > orders.figure("queue of 52: orders lost, over two relays"));
}

#[test]
fn limit_order_queues_match_more_in_bursts_and_sooner() {
    let fig_12 = bursts::fig_12(&network(), Extent::Small);
    let (rate, wait) = bursts::loq_ratios(&fig_12);
    let input = fig_12.figure("LOQ over SimplePQ: orders that come to the engine in bursts");
    assert!((0.98..1.02).contains(&input), "{}", fig_12.markdown());
    assert!(rate > 1.4 && wait < 0.2, "{rate} {wait}");
    assert_met(&bursts::fig_13(&network(), Extent::Small), &["J22"]);
}

#[test]
fn our_pacing_keeps_orders_from_being_lost() {
    assert_met(&pacing::table_5(&network(), Extent::Small), &["J18"]);
}

#[test]
fn the_analysis_of_hedging_is_exact() {
    assert_met(&monte_carlo::fig_14(Extent::Small), &["J24"]);
}

#[test]
fn measured_links_are_read_where_they_are() {
    assert!(Network::measured(1, Path::new("no/such/folder")).unwrap().is_none());
    let data = walras_cloud_model::network::data_folder();
    let Some(measured) = Network::measured(1, &data).unwrap() else {
        println!("skipped: no measured links at {}", data.display());
        return;
    };
    let fig_8 = latency::fig_8(&network(), Some(&measured), Extent::Small);
    let hedged = fig_8.figure("measured links: sprayed, H = 1 over H = 0: overall latency, p99");
    assert!(hedged < 1.0, "{}", fig_8.markdown());
    let fig_11 = simultaneous::fig_11(&network(), Some(&measured), Extent::Small);
    let over_cloudex = fig_11.figure("measured links: ours, H = 1, over CloudEx: overall latency, p50");
    assert!(over_cloudex < 1.2, "{}", fig_11.markdown());
    let table_6 = simultaneous::table_6(&network(), Some(&measured), Extent::Small);
    let of_100 = table_6.figure("measured links: N = 100, ours: within 1 us");
    assert!(of_100 > 50.0, "{}", table_6.markdown());
    let fig_10 = latency::fig_10(&network(), Some(&measured), Extent::Small);
    assert!(fig_10.figure("measured links: N = 1000 over N = 100, sprayed: p50") < 1.9, "{}", fig_10.markdown());
}
