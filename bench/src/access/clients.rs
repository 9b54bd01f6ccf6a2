//! What other runs found: unmodified clients of Binance's API, and a well-behaved client under attack.

use std::path::Path;

use super::read_json;
use crate::report::{Figure, Report, Unit};

/// Where `make facade-test` writes.
const CLIENTS: &str = "sdk/binance-clients/results.json";

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
    let siege = results.join("siege.json");
    let worst = read_json(&siege).map(|known| {
        let figures = known["figures"].as_array().cloned().unwrap_or_default();
        let is_one = |figure: &&serde_json::Value| {
            figure["metric"].as_str().is_some_and(|metric| metric.starts_with("good_p99_ratio_") && !metric.ends_with("_control"))
        };
        let worst = figures.iter().filter(is_one).filter_map(|figure| figure["value"].as_f64()).reduce(f64::max);
        (worst, known["date"].as_str().unwrap_or("unknown").to_owned())
    });
    match worst {
        Ok((Some(worst), date)) => {
            report.note(format!("good_p99_under_attack_ratio is the worst of the attacks in {} of {date}", siege.display()));
            report.figure(Figure::new("good_p99_under_attack_ratio", worst, Unit::Ratio));
        }
        Ok((None, _)) => report.note(format!("no attack was counted: {} has none; run make bench NAME=siege", siege.display())),
        Err(why) => report.note(format!("no attack was counted: {why}; run make bench NAME=siege")),
    }
}
