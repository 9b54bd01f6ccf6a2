//! Both figures small, on the synthetic network: what must hold, on any machine.

use std::path::Path;

use walras_experiments_cloudex_2021::figure::{Extent, Figure, TARGETS, Way, run};
use walras_experiments_cloudex_2021::network::{Source, data_folder};
use walras_experiments_cloudex_2021::record::Record;
use walras_experiments_cloudex_2021::replicated;
use walras_experiments_cloudex_2021::workload::{Disturbance, Workload};

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
    assert!(record.plot_svg.contains("inbound") && record.table.contains("| 0.5 |"));
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
    assert!(Record::of_replicated(&outcome, &workload).unwrap().plot_svg.contains("p99.9"));
}
