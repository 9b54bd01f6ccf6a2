//! What runs of table 1 and figure 6b leave behind.

use std::fmt::Write as _;

use plotters::prelude::SeriesLabelPosition;
use serde_json::{Value, json};
use walras_fair_cluster::Measured;
use walras_fair_cluster::rates::Limits;

use crate::network::Source;
use crate::plot::{ByCopies, by_copies};
use crate::processes::{COPIES_OFFERED_PER_S, Copies, GATEWAYS, OUTSTANDING, PUBLISHED_CORES, PUBLISHED_PER_S, RELEASE_US, Shards};
use crate::record::{Record, hundredths, thousandths};
use crate::sharded::{DELAY_NS, PUBLISHED, Row};
use crate::workload::Workload;

/// The least throughput of a shard that the project asks for on two processors that gateways and participants share: twice the published.
const BAR_PER_S: f64 = 2.0 * PUBLISHED_PER_S as f64;
/// The same of the engine's processor time with three copies over one.
const BAR_THREE_OVER_ONE: f64 = 1.18;

/// Of table 1.
#[must_use]
pub fn shards(simulated: &[Row], source: Source, real: &[Shards], workload: &Workload) -> Record {
    let mut table = "Simulated at the published throughput: median latency in us, ours / published.\n\n\
         | shards | orders/s | submission | end to end |\n| --- | --- | --- | --- |\n"
        .to_owned();
    let mut rows = Vec::new();
    for (row, (_, _, submission_us, end_to_end_us)) in simulated.iter().zip(PUBLISHED) {
        let Row { shards, orders_per_s, submission_us: ours_in_us, end_to_end_us: ours_us, orders } = *row;
        let _ = writeln!(
            table,
            "| {shards} | {orders_per_s:.0} | {ours_in_us:.0} / {submission_us:.0} | {ours_us:.0} / {end_to_end_us:.0} |"
        );
        rows.push(json!({
            "shards": shards, "orders_per_s": orders_per_s, "orders": orders,
            "ours_us": { "submission_p50": hundredths(ours_in_us), "end_to_end_p50": hundredths(ours_us) },
            "published_us": { "submission_p50": submission_us, "end_to_end_p50": end_to_end_us },
        }));
    }
    let Limits { answered_min, orders_late_max, market_data_late_max } = Limits::USUAL;
    let _ = write!(
        table,
        "\nReal processes over loopback, a cluster for each shard with {GATEWAYS} gateways and market data held for {} ms, all on this machine's \
         processors. *Held*: the highest rate at which {answered_min} % were answered in time, at most {orders_late_max} % of orders missed d_s and at \
         most {market_data_late_max} % of publications came late to some gateway. *Saturated*: {OUTSTANDING} orders unanswered in each shard.\n\n\
         | shards | published of all, /s | held, of all, /s | over the published | orders late | market data late | processors | d_s, us | p50 / p99 then, us | saturated, of all, /s |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        RELEASE_US / 1_000
    );
    let mut real_rows = Vec::new();
    for shards in real {
        let (count, all) = (shards.count(), shards.held_per_s());
        let published = PUBLISHED.iter().find(|row| row.0 == count).map_or(f64::NAN, |row| row.1);
        let worst = |of: fn(&Measured) -> f64| shards.held.iter().map(of).fold(0.0, f64::max);
        let _ = writeln!(
            table,
            "| {count} | {published:.0} | {all:.0} | {:.1} | {:.2} % | {:.2} % | {:.2} | {:.0} | {:.0} / {:.0} | {:.0} |",
            all / published,
            worst(Measured::orders_late_percent),
            worst(Measured::market_data_late_percent),
            shards.held.iter().map(Measured::processors).fold(0.0, |sum, one| sum + one),
            worst(|of| of.sequenced.delay_ns as f64 / 1e3),
            worst(|of| of.report.latency.p50_ns as f64 / 1e3),
            worst(|of| of.report.latency.p99_ns as f64 / 1e3),
            shards.most_per_s(),
        );
        real_rows.push(json!({
            "shards": count, "orders_per_s": all.round(), "published_orders_per_s": published,
            "over_published": hundredths(all / published),
            "saturated_orders_per_s": shards.most_per_s().round(),
            "held": shards.held.iter().map(measured_json).collect::<Vec<_>>(),
            "saturated": shards.most.iter().map(measured_json).collect::<Vec<_>>(),
            "at_the_published_load": shards.published_load.iter().map(measured_json).collect::<Vec<_>>(),
        }));
    }
    table.push_str("\nProcessor time for an order at the rate that held, in us.\n\n| shards | leader | one gateway | all participants |\n| --- | --- | --- | --- |\n");
    for shards in real {
        for of in &shards.held {
            let us = |ns: u64| ns as f64 / 1e3 / of.answered.max(1) as f64;
            let taken = of.processor;
            let gateway_us = us(taken.gateways_ns) / f64::from(GATEWAYS);
            let _ = writeln!(
                table,
                "| {} | {:.1} | {gateway_us:.1} | {:.1} |",
                shards.count(),
                us(taken.leader_ns),
                us(taken.participants_ns)
            );
        }
    }
    let met = real.first().map(|one| one.held_per_s() >= BAR_PER_S);
    let result = json!({
        "simulated": {
            "network": source.name(), "seed": workload.seed, "seconds": workload.duration_ns / 1_000_000_000, "fitted_delay_ns": DELAY_NS,
            "rows": rows,
        },
        "processes": { "rows": real_rows, "orders_per_s_of_one_shard_at_least": BAR_PER_S, "met": met },
    });
    Record { folder: "table-1", result, table, plot_svg: None }
}

fn measured_json(measured: &Measured) -> Value {
    let Measured { report, late, answered, sequenced, released, processor } = measured;
    let us_per_order = |ns: u64| thousandths(ns as f64 / 1_000.0 / (*answered).max(1) as f64);
    json!({
        "report": report, "late": late, "answered": answered, "sequenced": sequenced, "released": released,
        "orders_late_percent": thousandths(measured.orders_late_percent()),
        "market_data_late_percent": thousandths(measured.market_data_late_percent()), "processors": thousandths(measured.processors()),
        "processor_us_per_order": {
            "leader": us_per_order(processor.leader_ns), "gateways": us_per_order(processor.gateways_ns),
            "participants": us_per_order(processor.participants_ns),
        },
    })
}

/// Microseconds of a role's work for an order.
fn us_per_order(measured: &Measured, of: fn(&Measured) -> u64) -> f64 {
    of(measured) as f64 / 1e3 / measured.answered.max(1) as f64
}

/// Name, our processor time, and what was published.
type Role = (&'static str, fn(&Measured) -> u64, fn(&(f64, f64, f64)) -> f64);

const ROLES: [Role; 3] = [
    ("engine", |of| of.processor.leader_ns, |of| of.0),
    ("gateways", |of| of.processor.gateways_ns, |of| of.1),
    ("participants", |of| of.processor.participants_ns, |of| of.2),
];

/// Of figure 6b.
///
/// # Errors
/// If it cannot be drawn.
pub fn copies(copies: &Copies) -> anyhow::Result<Record> {
    let mut table = format!(
        "Processor time for an order at {COPIES_OFFERED_PER_S} orders/s in us / published processors at {PUBLISHED_PER_S} orders/s; in brackets \
         over one copy.\n\n\
         | copies | engine | gateways | participants | copies dropped per order | all processors | end to end p50, us |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for (at, (measured, published)) in copies.by_copies.iter().zip(&PUBLISHED_CORES).enumerate() {
        let cells: Vec<String> = ROLES
            .iter()
            .map(|(_, ours, theirs)| {
                let one = us_per_order(measured, *ours);
                let first = copies.by_copies.first().map_or(f64::NAN, |one| us_per_order(one, *ours));
                let (theirs, theirs_first) = (theirs(published), theirs(&PUBLISHED_CORES[0]));
                format!("{one:.1} ({:.2}) / {theirs} ({:.2})", one / first, theirs / theirs_first)
            })
            .collect();
        let dropped = measured.sequenced.duplicates_per_order();
        let p50_us = measured.report.latency.p50_ns as f64 / 1_000.0;
        let all = measured.processors();
        let _ = writeln!(table, "| {} | {} | {dropped:.2} | {all:.2} | {p50_us:.0} |", at + 1, cells.join(" | "));
    }
    let death = &copies.with_a_death;
    let _ = writeln!(
        table,
        "\nTwo copies, a gateway killed half way: {} orders answered, 0 lost, 0 doubled, {} connections lost.",
        death.answered, death.report.reconnects
    );
    let ratio = copies.three_over_one();
    let result = json!({
        "offered_per_s": COPIES_OFFERED_PER_S,
        "by_copies": copies.by_copies.iter().map(measured_json).collect::<Vec<_>>(),
        "published_cores": PUBLISHED_CORES,
        "engine_three_copies_over_one": { "ours": thousandths(ratio), "published": 1.18, "at_most": BAR_THREE_OVER_ONE, "met": ratio <= BAR_THREE_OVER_ONE },
        "a_gateway_is_killed": {
            "copies": 2, "report": death.report, "late": death.late, "answered": death.answered, "sequenced": death.sequenced, "lost": 0, "doubled": 0,
        },
    });
    Ok(Record { folder: "fig-6b", result, table, plot_svg: Some(plot(copies)?) })
}

/// Over one copy: the published machines are others.
fn plot(copies: &Copies) -> anyhow::Result<String> {
    let curves = ROLES.map(|(name, ours, theirs)| {
        let first = copies.by_copies.first().map_or(f64::NAN, |one| us_per_order(one, ours));
        ByCopies {
            name,
            ours: copies.by_copies.iter().map(|of| us_per_order(of, ours) / first).collect(),
            published: PUBLISHED_CORES.iter().map(|of| theirs(of) / theirs(&PUBLISHED_CORES[0])).collect(),
        }
    });
    by_copies("Fig. 6b: processor time by number of copies", ("over one copy", 6.0, 1), SeriesLabelPosition::UpperLeft, &curves)
}
