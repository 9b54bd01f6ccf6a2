//! The records of a run: results with the published ones, a table, a plot.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use walras_fair_access::delay::Ppm;
use walras_figures::origin::{Origin, write_files};

use crate::engines::OfEngine;
use crate::figure::{CADENCE_DRAWN, CADENCES, Direction, Extent, Figure, LEVEL_WINDOW, Panel, STEP_NS, TARGETS, Way};
use crate::network::Source;
use crate::plot;
use crate::published::published;
use crate::replicated::{Costs, PUBLISHED, Replicated, Submission};
use crate::workload::{Disturbance, Workload};

/// One figure's folder.
#[derive(Debug)]
pub struct Record {
    /// The folder's name.
    pub folder: &'static str,
    /// Our figures with the published ones.
    pub result: Value,
    /// A line per way.
    pub table: String,
    /// The figure; a table has none.
    pub plot_svg: Option<String>,
}

impl Record {
    /// Of a figure.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn of(figure: &Figure, workload: &Workload, extent: Extent) -> anyhow::Result<Self> {
        let folder = match figure.disturbance {
            Disturbance::None => "fig-4",
            Disturbance::Steps => "fig-5",
            Disturbance::StepsApart => "fig-5-links",
        };
        let result = json!({
            "network": figure.source.name(),
            "workload": {
                "seed": workload.seed, "orders_per_s": workload.orders_per_s, "seconds": workload.duration_ns / 1_000_000_000,
                "software_in_ns": workload.software_in_ns, "software_out_ns": workload.software_out_ns,
                "service_ns": workload.service_ns, "clock_error_ns": workload.clock_error_ns,
            },
            "ours": { "step_ns": STEP_NS, "level_window": LEVEL_WINDOW },
            "cloudex": { "step_ns": 5_000, "window": 1_000, "samples_per_step_drawn": CADENCE_DRAWN },
            "unfair_percent_in_order_of_arrival": { "published": 24.6, "ours": hundredths(figure.without_resequencing.unfair_percent()) },
            "unfair_percent_at_static_0": {
                "published": 8.4,
                "ours": figure.panels[0].outcome(Way::Static(0)).map(|outcome| hundredths(outcome.unfair_percent())),
            },
            "panels": figure.panels.iter().map(|panel| panel_json(panel, figure.disturbance, extent)).collect::<Vec<_>>(),
        });
        Ok(Self { folder, result, table: table(figure), plot_svg: Some(plot::figure(figure)?) })
    }

    /// Of figure 4 with lighter engines.
    #[must_use]
    pub fn of_engines(engines: &[OfEngine], source: Source, workload: &Workload) -> Self {
        let from = published(Direction::Inbound, Disturbance::None);
        let targets = &TARGETS[2..];
        let percents: Vec<f64> = targets.iter().map(|target| f64::from(target.0) / 10_000.0).collect();
        let columns: String = percents.iter().map(|percent| format!(" {percent} % |")).collect();
        let mut table = format!(
            "Mean delay in us of inbound orders, ours / the least of static delays at our unfairness, by target and by the engine's time for an order.\n\
             *Floor*: unfair in percent / mean wait for the engine in us where no order is held: no policy has less.\n\n\
             | engine, us | floor |{columns}\n| --- | --- |{}\n",
            " --- |".repeat(targets.len())
        );
        let mut rows = Vec::new();
        for engine in engines {
            let (unfair, floor_us) = engine.floor();
            let _ = write!(table, "| {} | {unfair:.1} / {floor_us:.0} |", engine.service_ns / 1_000.0);
            let mut by_target = Vec::new();
            for (target, percent) in targets.iter().zip(&percents) {
                let Some(ours) = engine.panel.outcome(Way::Tracking(*target)) else { continue };
                let static_us = engine.panel.frontier.delay_us(ours.unfair_percent());
                let _ = write!(table, " {:.0} / {:.0} |", ours.delay_us(), static_us.unwrap_or(f64::NAN));
                by_target.push(json!({
                    "target_percent": percent, "unfair_percent": thousandths(ours.unfair_percent()), "ours_us": hundredths(ours.delay_us()),
                    "least_static_us": static_us.map(hundredths), "published_us": from.dynamic_at(*target).map(|point| point.1),
                }));
            }
            table.push('\n');
            rows.push(json!({
                "service_ns": engine.service_ns, "unfair_percent_without_hold": thousandths(unfair), "floor_us": hundredths(floor_us),
                "by_target": by_target,
            }));
        }
        let theirs: String = targets
            .iter()
            .map(|target| from.dynamic_at(*target).map_or(" |".to_owned(), |(_, us)| format!(" {us:.0} |")))
            .collect();
        let _ = writeln!(table, "| published | 8.4 / |{theirs}");
        let result =
            json!({ "network": source.name(), "seed": workload.seed, "orders_per_s": workload.orders_per_s, "engines": rows });
        Self { folder: "fig-4-engines", result, table, plot_svg: None }
    }

    /// Of figure 6a.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn of_replicated(outcome: &Replicated, workload: &Workload) -> anyhow::Result<Self> {
        let costs = Costs::FITTED;
        const COLUMNS: &str = "| copies | p50 | p99 | p99.9 |\n| --- | --- | --- | --- |\n";
        let mut table = format!("Submission latency in us, ours / published.\n\n{COLUMNS}");
        let mut by_copies = Vec::new();
        for (ours, published) in outcome.by_copies.iter().zip(&PUBLISHED) {
            let Submission { copies, p50_us, p99_us, p999_us, first, duplicates, lost } = *ours;
            let pairs = [(p50_us, published.0), (p99_us, published.1), (p999_us, published.2)];
            let cells: Vec<String> = pairs.iter().map(|(ours, published)| format!("{ours:.0} / {published:.0}")).collect();
            let _ = writeln!(table, "| {copies} | {} |", cells.join(" | "));
            by_copies.push(json!({
                "copies": copies,
                "ours_us": { "p50": hundredths(p50_us), "p99": hundredths(p99_us), "p999": hundredths(p999_us) },
                "published_us": { "p50": published.0, "p99": published.1, "p999": published.2 },
                "orders": first, "duplicates_dropped": duplicates, "orders_lost": lost,
            }));
        }
        table += "\nThe same over independent links: 0, 200 or 400 us injected on each by itself, and nothing that hits all copies alike.\n\n";
        table += COLUMNS;
        for Submission { copies, p50_us, p99_us, p999_us, .. } in &outcome.apart {
            let _ = writeln!(table, "| {copies} | {p50_us:.0} | {p99_us:.0} | {p999_us:.0} |");
        }
        let apart = |ours: &Submission| json!({ "copies": ours.copies, "p50_us": hundredths(ours.p50_us), "p99_us": hundredths(ours.p99_us), "p999_us": hundredths(ours.p999_us) });
        let [one, two] = &outcome.with_crash;
        let crash = |ours: &Submission| json!({ "copies": ours.copies, "orders_taken": ours.first, "orders_lost": ours.lost });
        let ratio = |of: fn(&Submission) -> f64| match (outcome.by_copies.first(), outcome.by_copies.get(2)) {
            (Some(one), Some(three)) => thousandths(of(three) / of(one)),
            _ => f64::NAN,
        };
        let result = json!({
            "network": outcome.source.name(),
            "workload": { "seed": workload.seed, "orders_per_s": workload.orders_per_s, "seconds": workload.duration_ns / 1_000_000_000 },
            "fitted": {
                "software_ns": costs.software_ns, "send_ns": costs.send_ns, "gateway_ns": costs.gateway_ns, "receive_ns": costs.receive_ns,
                "gateway_straggle_share_and_mean_ns": costs.gateway_straggle, "common_straggle_share_and_mean_ns": costs.common_straggle,
            },
            "three_copies_over_one": {
                "ours": { "p50": ratio(|of| of.p50_us), "p99": ratio(|of| of.p99_us), "p999": ratio(|of| of.p999_us) },
                "published": { "p50": 0.85, "p99": 0.71, "p999": 0.60 },
            },
            "by_copies": by_copies,
            "over_independent_links": outcome.apart.iter().map(apart).collect::<Vec<_>>(),
            "a_gateway_dies": [crash(one), crash(two)],
        });
        Ok(Self { folder: "fig-6a", result, table, plot_svg: Some(plot::replicated(outcome)?) })
    }

    /// Writes `result.json`, `table.md` and, of a figure, `plot.svg`.
    ///
    /// # Errors
    /// In a debug build, or if the folder cannot be written.
    pub fn write(&self, origin: &Origin, experiments: &Path) -> anyhow::Result<()> {
        let result = json!({ "figure": self.folder, "origin": origin.to_json()?, "result": self.result });
        let result = serde_json::to_string_pretty(&result)? + "\n";
        let mut files = vec![("result.json", &*result), ("table.md", &*self.table)];
        files.extend(self.plot_svg.as_deref().map(|plot_svg| ("plot.svg", plot_svg)));
        write_files(&experiments.join(self.folder), &files)
    }
}

pub(crate) fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

pub(crate) fn thousandths(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

fn panel_json(panel: &Panel, disturbance: Disturbance, extent: Extent) -> Value {
    let point = |way: Way| {
        let outcome = panel.outcome(way)?;
        let frontier_us = panel.frontier.delay_us(outcome.unfair_percent());
        Some(json!({
            "unfair_percent": thousandths(outcome.unfair_percent()),
            "delay_us": hundredths(outcome.delay_us()),
            "static_frontier_us": frontier_us.map(hundredths),
            "ratio_to_static": frontier_us.map(|us| thousandths(outcome.delay_us() / us)),
            "ours_at_this_unfairness_us": panel.ours_us(outcome.unfair_percent()).map(hundredths),
        }))
    };
    let targets: Vec<Value> = TARGETS
        .iter()
        .map(|target| {
            let cadences: serde_json::Map<String, Value> =
                CADENCES.iter().filter_map(|every| Some((every.to_string(), point(Way::Stepped(*target, *every))?))).collect();
            json!({
                "target_percent": f64::from(target.0) / 10_000.0,
                "ours": point(Way::Tracking(*target)),
                "cloudex_rule_by_samples_per_step": cadences,
                "published": published(panel.direction, disturbance).dynamic_at(*target),
            })
        })
        .collect();
    let statics: Vec<Value> = panel
        .ways
        .iter()
        .filter_map(|(way, outcome)| {
            let Way::Static(delay_us) = *way else { return None };
            Some(json!({
                "static_us": delay_us,
                "unfair_percent": thousandths(outcome.unfair_percent()),
                "delay_us": hundredths(outcome.delay_us()),
                "published": published(panel.direction, disturbance).static_at(delay_us),
            }))
        })
        .collect();
    let stepped = |every: u32| move |target: Ppm| Way::Stepped(target, every);
    let cadences = match extent {
        Extent::Full => &CADENCES[..],
        Extent::Small => &[CADENCE_DRAWN][..],
    };
    let rule: serde_json::Map<String, Value> = cadences
        .iter()
        .map(|every| {
            let error = thousandths(panel.worst_relative_error(stepped(*every)));
            let ratio = thousandths(panel.worst_ratio_to_static(stepped(*every)));
            (every.to_string(), json!({ "worst_relative_error": error, "worst_ratio_to_static": ratio }))
        })
        .collect();
    json!({
        "direction": direction_name(panel.direction),
        "ours_worst_relative_error": thousandths(panel.worst_relative_error(Way::Tracking)),
        "ours_worst_ratio_to_static": thousandths(panel.worst_ratio_to_static(Way::Tracking)),
        "cloudex_rule_by_samples_per_step": rule,
        "targets": targets,
        "statics": statics,
    })
}

/// As results and plots name it.
#[must_use]
pub fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Inbound => "inbound",
        Direction::Outbound => "outbound",
    }
}

fn table(figure: &Figure) -> String {
    let mut text = String::new();
    for panel in &figure.panels {
        let from = published(panel.direction, figure.disturbance);
        let _ = writeln!(text, "## {}\n", direction_name(panel.direction));
        text.push_str("Unfair in percent / mean delay in us. *Static* is the least that static delays need at our unfairness.\n\n");
        text.push_str(
            "| target | ours | static | less | CloudEx's rule, run here | ours at the rule's unfairness | published |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for target in TARGETS {
            let (Some(ours), Some(rule)) =
                (panel.outcome(Way::Tracking(target)), panel.outcome(Way::Stepped(target, CADENCE_DRAWN)))
            else {
                continue;
            };
            let frontier_us = panel.frontier.delay_us(ours.unfair_percent()).unwrap_or(f64::NAN);
            let less = 100.0 * (1.0 - ours.delay_us() / frontier_us);
            let _ = writeln!(
                text,
                "| {} | {:.2} / {:.0} | {frontier_us:.0} | {less:.0} % | {:.2} / {:.0} | {:.0} | {} |",
                f64::from(target.0) / 10_000.0,
                ours.unfair_percent(),
                ours.delay_us(),
                rule.unfair_percent(),
                rule.delay_us(),
                panel.ours_us(rule.unfair_percent()).unwrap_or(f64::NAN),
                from.dynamic_at(target).map_or_else(String::new, |(unfair, us)| format!("{unfair} / {us}")),
            );
        }
        text.push_str("\n| static us | here | published |\n| --- | --- | --- |\n");
        for (way, outcome) in &panel.ways {
            let Way::Static(delay_us) = *way else { continue };
            let Some((unfair, us)) = from.static_at(delay_us) else { continue };
            let _ =
                writeln!(text, "| {delay_us} | {:.2} / {:.0} | {unfair} / {us} |", outcome.unfair_percent(), outcome.delay_us());
        }
        text.push('\n');
    }
    text
}
