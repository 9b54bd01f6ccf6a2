//! What other runs found: unmodified clients of Binance's API, and a well-behaved client under attack.

use std::path::Path;

use walras_siege::limits::P99_RATIO_MAX;

use super::read_json;
use crate::report::{Figure, Report, Unit};

/// Where `make facade-test` writes.
const CLIENTS: &str = "sdk/binance-clients/results.json";

/// How many times the 99th percentile of a well-behaved client's waiting is what it is without an attack; with an interface behind it, of
/// that one alone.
const WORST: &str = "good_p99_under_attack_ratio";

/// Reads their result files.
pub(super) fn run(results: &Path, report: &mut Report) {
    match read_json(Path::new(CLIENTS)) {
        Err(why) => report.note(format!("no client of Binance's API was counted: {why}; run make facade-test")),
        Ok(known) => {
            for (client, name) in [
                ("ccxt", "ccxt"),
                ("cryptofeed", "cryptofeed"),
                ("nautilus_trader", "nautilus"),
                ("python-binance", "python_binance"),
                ("binance-connector", "binance_connector"),
                ("freqtrade", "freqtrade"),
                ("hummingbot", "hummingbot"),
            ] {
                let found = &known[client];
                let (Some(passed), Some(total)) = (found["passed"].as_u64(), found["total"].as_u64()) else {
                    report.note(format!("{client} was not counted: {CLIENTS} does not have it; run make facade-test"));
                    continue;
                };
                let text = |name: &str| found[name].as_str().unwrap_or("unknown").to_owned();
                report.note(format!("{client} {}: steps as of {}, from {CLIENTS}", text("version"), text("date")));
                report.figure(Figure::new(format!("{name}_passed"), passed as f64, Unit::Count).bar(total as f64));
                report.figure(Figure::new(format!("{name}_total"), total as f64, Unit::Count));
            }
        }
    }
    under_attack(&results.join("siege.json"), report);
}

/// The worst of all attacks, and the worst of each interface.
fn under_attack(siege: &Path, report: &mut Report) {
    let known = match read_json(siege) {
        Ok(known) => known,
        Err(why) => return report.note(format!("no attack was counted: {why}; run make bench NAME=siege")),
    };
    let found: Vec<(String, f64)> = known["figures"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|figure| Some((figure["metric"].as_str()?.to_owned(), figure["value"].as_f64()?)))
        .collect();
    let by_kind = found.iter().filter(|(metric, _)| metric.starts_with("good_p99_ratio_") && !metric.ends_with("_control"));
    let Some(worst) = by_kind.map(|(_, value)| *value).reduce(f64::max) else {
        return report.note(format!("no attack was counted: {} has none; run make bench NAME=siege", siege.display()));
    };
    let date = known["date"].as_str().unwrap_or("unknown");
    report.note(format!("{WORST} is the worst of the attacks in {} of {date}", siege.display()));
    report.figure(Figure::new(WORST, worst, Unit::Ratio).bar(P99_RATIO_MAX));
    let of_interfaces = found.iter().filter(|(metric, _)| metric.strip_prefix(WORST).is_some_and(|rest| rest.starts_with('_')));
    let mut count = 0;
    for (metric, value) in of_interfaces {
        count += 1;
        report.figure(Figure::new(metric.clone(), *value, Unit::Ratio).bar(P99_RATIO_MAX));
    }
    if count == 0 {
        report.note(format!("no interface was measured by itself in {}; run make bench NAME=siege", siege.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures that are taken over of a result file with these.
    fn taken(figures: &serde_json::Value) -> Vec<(String, f64)> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("siege.json");
        std::fs::write(&file, serde_json::json!({"date": "2026-01-01T00:00:00Z", "figures": figures}).to_string()).unwrap();
        let mut report = Report::begin("access");
        under_attack(&file, &mut report);
        report.figures().iter().map(|figure| (figure.metric.clone(), figure.value)).collect()
    }

    #[test]
    fn the_worst_attack_and_each_interface_are_taken_over() {
        let figure = |metric: &str, value: f64| serde_json::json!({"metric": metric, "value": value});
        let figures = serde_json::json!([
            figure("good_p99_ratio_control", 9.0),
            figure("good_p99_ratio_idle", 1.25),
            figure("good_p99_ratio_flood", 1.5),
            figure("good_p99_under_attack_ratio_fix", 1.125),
            figure("good_p99_under_attack_ratio_facade", 1.5),
            figure("new_connection_max_ms", 70.0),
        ]);
        let of = |name: &str, value: f64| (format!("{WORST}{name}"), value);
        assert_eq!(taken(&figures), [of("", 1.5), of("_fix", 1.125), of("_facade", 1.5)]);
        assert_eq!(taken(&serde_json::json!([figure("good_p99_ratio_idle", 1.25)])), [of("", 1.25)], "of an earlier campaign");
        assert_eq!(taken(&serde_json::json!([])), []);
    }
}
