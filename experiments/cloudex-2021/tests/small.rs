//! Both figures small, on the synthetic network: what must hold, on any machine.

use std::path::Path;

use walras_client::LatencyReport;
use walras_client::cluster::ClusterReport;
use walras_experiments_cloudex_2021::figure::{Extent, Figure, TARGETS, Way, run};
use walras_experiments_cloudex_2021::network::{Source, data_folder};
use walras_experiments_cloudex_2021::processes::{COPIES_MAX, Copies, Shards};
use walras_experiments_cloudex_2021::record::Record;
use walras_experiments_cloudex_2021::workload::{Disturbance, Workload};
use walras_experiments_cloudex_2021::{engines, record_processes, replicated, sharded};
use walras_fair_cluster::{Measured, ProcessorTime, Sequenced};

fn small(disturbance: Disturbance) -> Figure {
    run(&Workload::SMALL, Path::new("no/such/folder"), disturbance, Extent::Small).expect("the synthetic network needs no data")
}

#[test]
fn clocks_and_the_hold_make_orders_fairer() {
    let figure = small(Disturbance::None);
    let inbound = &figure.panels[0];
    let unfair = |delay_us| inbound.outcome(Way::Static(delay_us)).unwrap().unfair_percent();
    let unordered = figure.without_resequencing.unfair_percent();
    assert!(unordered > 1.5 * unfair(0), "{unordered} {}", unfair(0));
    assert!(unfair(0) > unfair(200) && unfair(200) > unfair(400) && unfair(400) > unfair(1_000));
    for panel in &figure.panels {
        assert!(panel.worst_relative_error(Way::Tracking) < 0.15, "{}", panel.worst_relative_error(Way::Tracking));
        // Nothing moves much: no dynamic delay does much better than the best static one, ours not much worse.
        assert!(panel.worst_ratio_to_static(Way::Tracking) < 1.05, "{}", panel.worst_ratio_to_static(Way::Tracking));
    }
}

#[test]
fn under_the_disturbance_dynamic_is_below_static_at_every_target() {
    let figure = small(Disturbance::Steps);
    for panel in &figure.panels {
        assert!(panel.worst_relative_error(Way::Tracking) < 0.15, "{}", panel.worst_relative_error(Way::Tracking));
        assert!(panel.worst_ratio_to_static(Way::Tracking) < 0.8, "{}", panel.worst_ratio_to_static(Way::Tracking));
    }
    let record = Record::of(&figure, &Workload::SMALL, Extent::Small).unwrap();
    assert_eq!(record.result["panels"][0]["targets"].as_array().unwrap().len(), TARGETS.len());
    assert!(record.plot_svg.unwrap().contains("inbound") && record.table.contains("| 0.5 |"));
}

#[test]
fn measured_links_are_read_where_they_are() {
    let data = data_folder();
    let workload = Workload { duration_ns: 2_000_000_000, ..Workload::FULL };
    let figure = run(&workload, &data, Disturbance::None, Extent::Small).unwrap();
    if figure.source == Source::Synthetic {
        println!("skipped: no measured delays at {}", data.display());
        return;
    }
    let unordered = figure.without_resequencing.unfair_percent();
    assert!((17.0..32.0).contains(&unordered), "{unordered}");
}

#[test]
fn copies_cut_the_tail_and_survive_a_gateway() {
    let workload = Workload { duration_ns: 5_000_000_000, ..Workload::FULL };
    let outcome = replicated::run(&workload, Path::new("no/such/folder")).unwrap();
    let [one, two, three, ..] = &outcome.by_copies[..] else { panic!("five numbers of copies") };
    assert!(two.p50_us < one.p50_us && three.p999_us < 0.8 * one.p999_us, "{outcome:?}");
    assert!(outcome.by_copies.iter().all(|of| of.lost == 0 && of.duplicates == of.first * (of.copies as u64 - 1)), "{outcome:?}");
    let [alone, twice] = &outcome.with_crash;
    assert!(alone.lost > 0, "the gateway passed orders on that nobody else had");
    assert_eq!(twice.lost, 0);
    assert!(Record::of_replicated(&outcome, &workload).unwrap().plot_svg.unwrap().contains("p99.9"));
}

#[test]
fn latencies_of_shards_are_near_those_published() {
    let workload = Workload { duration_ns: 2_000_000_000, ..Workload::FULL };
    let (rows, source) = sharded::run(&workload, Path::new("no/such/folder")).unwrap();
    assert_eq!((rows.len(), source), (sharded::PUBLISHED.len(), Source::Synthetic));
    for (row, (shards, orders_per_s, submission_us, end_to_end_us)) in rows.iter().zip(sharded::PUBLISHED) {
        let sent = orders_per_s * 2.0;
        assert!(row.shards == shards && (row.orders as f64 - sent).abs() < 0.02 * sent, "{row:?}");
        assert!((row.submission_us / submission_us - 1.0).abs() < 0.2, "{row:?}");
        assert!((row.end_to_end_us / end_to_end_us - 1.0).abs() < 0.2, "{row:?}");
    }
    assert!(rows[0].end_to_end_us > rows[4].end_to_end_us, "a shard with less to do answers sooner: {rows:?}");
    let table = record_processes::shards(&rows, source, &[], &workload).table;
    assert!(table.contains("| 16 | 61000 |"), "{table}");
}

fn measured(offered_per_second: Option<u64>, leader_ns: u64) -> Measured {
    let latency = LatencyReport { p50_ns: 400_000, p99_ns: 900_000, ..LatencyReport::default() };
    let report = ClusterReport {
        offered_per_second,
        outstanding: None,
        sessions: 48,
        seconds: 1.0,
        acknowledged: 250_000,
        answered: 250_000,
        rejected: 0,
        acknowledged_per_second: 250_000.0,
        mean_ns: 450_000.0,
        latency,
        reconnects: 0,
    };
    let processor = ProcessorTime { leader_ns, gateways_ns: 5_000_000, ..ProcessorTime::default() };
    let sequenced = Sequenced { delay_ns: 300_000, ..Sequenced::default() };
    Measured { report, late: 0, answered: 1_000, sequenced, released: None, processor }
}

#[test]
fn runs_of_processes_are_compared_with_the_published() {
    let shards = |count: usize| {
        let at = |rate| vec![measured(Some(rate), 1_000_000); count];
        Shards { published_load: at(22_000), held: at(44_000), most: vec![measured(None, 1); count] }
    };
    let record = record_processes::shards(&[], Source::Synthetic, &[shards(1), shards(2)], &Workload::SMALL);
    let row = "| 2 | 40000 | 500000 | 12.5 | 0.00 % | 0.00 % | 0.01 | 300 | 400 / 900 | 500000 |";
    assert!(record.table.contains(row) && record.table.contains("| 2 | 1.0 | 1.2 | 0.0 |"), "{}", record.table);
    assert_eq!(record.result["processes"]["met"], true);

    let leader_ns = |copies: usize| 2_000_000 + 100_000 * copies as u64;
    let by_copies: Vec<Measured> = (1..=COPIES_MAX).map(|copies| measured(Some(22_000), leader_ns(copies))).collect();
    let copies = Copies { by_copies, with_a_death: measured(Some(22_000), 1) };
    let record = record_processes::copies(&copies).unwrap();
    assert!(record.table.contains("| 1 | 2.1 (1.00) / 13 (1.00) |"), "{}", record.table);
    assert_eq!(record.result["engine_three_copies_over_one"]["ours"], 1.095);
    assert!(record.plot_svg.unwrap().contains("over one copy"));
}

#[test]
fn an_engine_is_a_floor_that_a_lighter_one_lowers() {
    let workload = Workload { duration_ns: 4_000_000_000, ..Workload::FULL };
    let (engines, source) = engines::run(&workload, Path::new("no/such/folder"), Extent::Small).unwrap();
    let [fitted, lighter] = &engines[..] else { panic!("two engines in a small run") };
    assert!(lighter.service_ns < fitted.service_ns && lighter.floor().1 < 0.8 * fitted.floor().1);
    for engine in &engines {
        for target in TARGETS {
            assert!(engine.panel.outcome(Way::Tracking(target)).unwrap().delay_us() >= engine.floor().1, "{engine:?}");
        }
    }
    let record = Record::of_engines(&engines, source, &workload);
    assert!(
        record.table.contains("| 38.5 |") && record.table.contains("| published | 8.4 / | 115 | 95 | 85 | 75 |"),
        "{}",
        record.table
    );
}

#[test]
fn over_links_of_their_own_no_common_delay_follows_and_copies_gain() {
    // Nobody has less than the static frontier where some link is always the slowest, and ours has hardly more.
    let figure = small(Disturbance::StepsApart);
    for panel in &figure.panels {
        // Three draws for each link in so short a run.
        assert!(panel.worst_relative_error(Way::Tracking) < 0.3, "{}", panel.worst_relative_error(Way::Tracking));
        assert!(panel.worst_ratio_to_static(Way::Tracking) < 1.1, "{}", panel.worst_ratio_to_static(Way::Tracking));
    }
    assert_eq!(Record::of(&figure, &Workload::SMALL, Extent::Small).unwrap().folder, "fig-5-links");
    let workload = Workload { duration_ns: 12_000_000_000, ..Workload::FULL };
    let outcome = replicated::run(&workload, Path::new("no/such/folder")).unwrap();
    let [one, _, three, ..] = &outcome.apart[..] else { panic!("five numbers of copies") };
    assert!(three.p50_us < 0.8 * one.p50_us && three.p999_us < one.p999_us, "{:?}", outcome.apart);
}
