//! The records of a run: results with their provenance, every iteration's latency, a plot.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use walras_figures::origin::{Origin, write_files};

use crate::SEED;
use crate::books::Contender;
use crate::large_sell::{self, Met};
use crate::matching_pair;
use crate::measure::Stopwatch;
use crate::peer;
use crate::profile::{self, Profile};
use crate::stats::{Summary, quantile_of_sorted, sorted, tenths};
use crate::streaming::{self, Calls};
use crate::{plot, plot_cluster, plot_profile};

/// One figure's folder.
#[derive(Debug)]
pub struct Record {
    /// The folder's name.
    pub figure: &'static str,
    /// Our figures with the published ones.
    pub result: Value,
    /// A line per iteration and book.
    pub iterations_csv: String,
    /// The figure.
    pub plot_svg: String,
}

impl Record {
    /// Writes `result.json`, `iterations.csv` and `plot.svg`.
    pub fn write(&self, origin: &Origin, stopwatch: &Stopwatch, experiments: &Path) -> anyhow::Result<()> {
        let mut result = json!({ "figure": self.figure, "origin": origin.to_json()?, "result": self.result });
        result["origin"]["timer_overhead_ns"] = tenths(stopwatch.overhead_ns).into();
        result["origin"]["seed"] = SEED.into();
        let result = serde_json::to_string_pretty(&result)? + "\n";
        let files = [("result.json", &*result), ("iterations.csv", &self.iterations_csv), ("plot.svg", &self.plot_svg)];
        write_files(&experiments.join(self.figure), &files)
    }
}

/// Fig-4.2.
pub fn matching_pair(setup: &matching_pair::Setup, outcome: &matching_pair::Outcome) -> anyhow::Result<Record> {
    let published = |contender: Contender| match contender {
        Contender::BaselineCheck => json!({ "mean": 8_700, "ci95_low": 8_250, "ci95_high": 9_100 }),
        Contender::Baseline | Contender::Ladder | Contender::Art => Value::Null,
    };
    let mut books = Vec::new();
    let mut csv = "book,iteration,mean_latency_ns,first_latency_ns\n".to_owned();
    for (contender, latencies) in matching_pair::CONTENDERS.into_iter().zip(&outcome.latencies) {
        books.push(json!({
            "book": contender.name(),
            "published_ns": published(contender),
            "ours_ns": Summary::of(&latencies.means_ns).rounded(),
            "ours_first_on_a_new_book_ns": Summary::of(&latencies.first_ns).rounded(),
        }));
        push_lines(&mut csv, &csv_name(contender), &latencies.means_ns, |index| format!(",{:.1}", latencies.first_ns[index]));
    }
    let result = json!({
        "orders_per_side": setup.orders_per_side,
        "iterations": setup.iterations,
        "pairs_per_iteration": setup.pairs_per_iteration,
        "fills_per_pair": outcome.fills,
        "books": books,
        "published_exchange_core_mean_ns": 1_000,
    });
    Ok(Record { figure: "fig-4.2", result, iterations_csv: csv, plot_svg: plot::matching_pair(outcome)? })
}

/// Fig-4.3.
pub fn peer(setup: &matching_pair::Setup, outcome: &peer::Outcome) -> anyhow::Result<Record> {
    let mut books = vec![json!({
        "book": format!("exchange-core {}, its book alone", outcome.peer_version),
        "published_mean_ns": 1_000,
        "here_ns": outcome.peer,
        "timer_overhead_ns": outcome.peer_timer_ns,
    })];
    let mut csv = "book,share,latency_ns\n".to_owned();
    for (contender, latencies) in &outcome.latencies_ns {
        let in_order = sorted(latencies);
        let at = |share| tenths(quantile_of_sorted(&in_order, share));
        let mean = tenths(Summary::of(latencies).mean);
        let (p50, p90, p99, p999, p9999, max) = (at(0.5), at(0.9), at(0.99), at(0.999), at(0.9999), at(1.0));
        let here = peer::Percentiles { mean, p50, p90, p99, p999, p9999, max };
        books.push(json!({ "book": contender.name(), "published_mean_ns": null, "here_ns": here }));
        for percent in 0..=100 {
            let share = f64::from(percent) / 100.0;
            csv.push_str(&format!("{},{share:.2},{:.1}\n", csv_name(*contender), at(share)));
        }
    }
    let result = json!({
        "orders_per_side": setup.orders_per_side,
        "pairs": setup.pairs_per_iteration,
        "books": books,
    });
    Ok(Record { figure: "fig-4.3", result, iterations_csv: csv, plot_svg: plot::peer(outcome)? })
}

/// Fig-4.5.
pub fn sizes(outcomes: &[large_sell::Outcome]) -> anyhow::Result<Record> {
    let mut csv = "book,orders_per_side,iteration,latency_ns,fills\n".to_owned();
    for outcome in outcomes {
        for (contender, latencies) in large_sell::CONTENDERS.into_iter().zip(&outcome.latencies_ns) {
            let name = format!("{},{}", csv_name(contender), outcome.orders_per_side);
            push_lines(&mut csv, &name, latencies, |index| format!(",{}", outcome.met[index].fills));
        }
    }
    let result = json!({
        "iterations": outcomes.first().map_or(0, |outcome| outcome.met.len()),
        "published": published_sell(),
        "ours": outcomes.iter().map(sell).collect::<Vec<_>>(),
    });
    Ok(Record { figure: "fig-4.5", result, iterations_csv: csv, plot_svg: plot::sizes(outcomes)? })
}

/// Fig-4.6.
pub fn detail(outcome: &large_sell::Outcome) -> anyhow::Result<Record> {
    let mut csv = "book,iteration,latency_ns,fills\n".to_owned();
    for (contender, latencies) in large_sell::CONTENDERS.into_iter().zip(&outcome.latencies_ns) {
        push_lines(&mut csv, &csv_name(contender), latencies, |index| format!(",{}", outcome.met[index].fills));
    }
    let result = json!({ "iterations": outcome.met.len(), "published": published_sell(), "ours": sell(outcome) });
    Ok(Record { figure: "fig-4.6", result, iterations_csv: csv, plot_svg: plot::detail(outcome)? })
}

fn published_sell() -> Value {
    json!({ "baseline_ns": { "low": 5_000, "high": 50_000 }, "optimised_ns": { "low": 40, "high": 200 } })
}

/// One size: what the sell met, and each book's latency.
fn sell(outcome: &large_sell::Outcome) -> Value {
    let mean = |of: fn(&Met) -> f64| tenths(outcome.met.iter().map(of).sum::<f64>() / outcome.met.len() as f64);
    let fills = mean(|met| met.fills as f64);
    let baseline = Summary::of(&outcome.latencies_ns[0]);
    let books: Vec<Value> = large_sell::CONTENDERS
        .into_iter()
        .zip(outcome.latencies_ns.iter().zip(&outcome.controls_ns))
        .map(|(contender, (latencies, controls))| {
            let ours = Summary::of(latencies);
            json!({
                "book": contender.name(),
                "ours_ns": ours.rounded(),
                "mean_ns_per_fill": tenths(ours.mean / fills),
                "control_without_fills_ns": Summary::of(controls).rounded(),
                "times_faster_than_baseline": tenths(baseline.mean / ours.mean),
                "times_faster_than_baseline_by_median": tenths(baseline.median / ours.median),
            })
        })
        .collect();
    json!({
        "orders_per_side": outcome.orders_per_side,
        "bids_before_sell_mean": mean(|met| met.bids as f64),
        "asks_before_sell_mean": mean(|met| met.asks as f64),
        "fills_mean": fills,
        "lots_traded_mean": mean(|met| met.lots as f64),
        "books": books,
    })
}

fn csv_name(contender: Contender) -> String {
    contender.name().replace(',', "")
}

fn push_lines(csv: &mut String, name: &str, latencies: &[f64], rest: impl Fn(usize) -> String) {
    for (index, latency_ns) in latencies.iter().enumerate() {
        csv.push_str(&format!("{name},{index},{:.1}{}\n", latency_ns, rest(index)));
    }
}

/// Fig-4.4.
pub fn profile(setup: &profile::Setup, profiles: &[Profile]) -> anyhow::Result<Record> {
    let percent = |share: f64| tenths(100.0 * share);
    let mut books = Vec::new();
    let mut csv = "book,function,samples_in_itself\n".to_owned();
    for profile in profiles {
        let all = profile.order.samples as f64;
        let share = |name| percent(profile.order.samples_in(name) as f64 / all);
        let parts = match profile.contender {
            Contender::Baseline => json!({
                "adding_percent": share("apply"),
                "adding_percent_by_the_clock": profile.adding_share.map(percent),
                "published_adding_percent": 65,
            }),
            Contender::BaselineCheck | Contender::Ladder | Contender::Art => Value::Null,
        };
        let busiest = profile.order.busiest();
        books.push(json!({
            "book": profile.contender.name(),
            "samples": profile.order.samples,
            "mean_ns_per_order": tenths(profile.ns_per_order),
            "trades_per_order": (profile.trades_per_order * 1e3).round() / 1e3,
            "parts": parts,
            "busiest_percent": busiest.iter().take(8).map(|(name, samples)| json!([name, percent(*samples as f64 / all)])).collect::<Vec<_>>(),
        }));
        for (name, samples) in &busiest {
            csv.push_str(&format!("{},{name},{samples}\n", csv_name(profile.contender)));
        }
    }
    let result = json!({ "orders_per_iteration": profile::ORDERS, "sampled_s": setup.sampled.as_secs_f64(), "books": books });
    Ok(Record { figure: "fig-4.4", result, iterations_csv: csv, plot_svg: plot_profile::profiles(profiles)? })
}

/// Section 3.4.
pub fn streaming(setup: &streaming::Setup, outcomes: &[streaming::Outcome]) -> anyhow::Result<Record> {
    let mut csv = "replicas,calls,trial,per_second\n".to_owned();
    let mut venues = Vec::new();
    for outcome in outcomes {
        for (trial, per_second) in outcome.per_second.iter().enumerate() {
            csv.push_str(&format!("{},{},{trial},{per_second:.1}\n", outcome.replicas, outcome.calls.name().replace(',', "")));
        }
    }
    for replicas in outcomes.iter().map(|outcome| outcome.replicas).collect::<BTreeSet<_>>() {
        let of = |calls| outcomes.iter().find(|outcome| outcome.replicas == replicas && outcome.calls == calls);
        let median = |calls| of(calls).map_or(0.0, |outcome| quantile_of_sorted(&sorted(&outcome.per_second), 0.5));
        let [rest, unary, stream] = Calls::ALL.map(median);
        venues.push(json!({
            "replicas": replicas,
            "rest_one_at_a_time_per_s": tenths(rest),
            "binary_one_at_a_time_per_s": tenths(unary),
            "binary_stream_per_s": tenths(stream),
            "stream_over_one_at_a_time": tenths(stream / unary),
        }));
    }
    let result = json!({
        "trials": setup.trials,
        "unanswered_in_a_stream": streaming::STREAM,
        "published": { "unary_per_s": 289, "stream_per_s": 14_925, "stream_over_unary": tenths(14_925.0 / 289.0) },
        "venues": venues,
    });
    Ok(Record { figure: "sec-3.4", result, iterations_csv: csv, plot_svg: plot_cluster::streaming(outcomes)? })
}
