//! The Python package, measured by its own programs in the environment that `make python` made.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Config;
use crate::report::{Figure, PeerFigure, Report, Unit};

const PYTHON: &str = "sdk/python/.venv/bin/python";
const ONE_CALL_EACH: &str = "walras, a call each, ids and ticks";
/// All of the same orders and cancels in one array.
const ONE_ARRAY: &str = "walras, one array (first fifth)";
/// The same orders and cancels.
const THEIRS: &str = "hftbacktest, orders and cancels of a strategy, unmatched";
const HOW: &str = "the same orders and cancels of a strategy, in one compiled loop, which it does not match with each other, and without \
                   accounts; in the same run";
/// Ours and ABIDES' order book on the orders and cancels that both treat alike, with the same trades.
const ONE_CALL_EACH_AS_ABIDES: &str = "walras, a call each (the orders of ABIDES)";
const ONE_ARRAY_AS_ABIDES: &str = "walras, one array (the orders of ABIDES)";
const ABIDES: &str = "ABIDES, its order book";
const HOW_ABIDES: &str = "its order book alone, which matches the same orders and cancels into the same trades, a call each, without \
                          accounts, messages and simulation; in the same run";

/// Runs a program of `sdk/python/bench`; the JSON that it prints last, or why there is none.
fn answer_of(program: &str, arguments: &[String]) -> Result<Value, String> {
    if !Path::new(PYTHON).exists() {
        return Err(format!("{PYTHON} is not here; run make python"));
    }
    let ran = Command::new(PYTHON).arg(format!("sdk/python/bench/{program}")).args(arguments).output();
    let ran = ran.map_err(|e| format!("{PYTHON} does not start: {e}"))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        return Err(format!("{program} failed: {}", said.lines().last().unwrap_or("it said nothing")));
    }
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    serde_json::from_str(text.lines().last().unwrap_or_default()).map_err(|e| format!("{program} printed no JSON: {e}"))
}

/// Measures what is installed; the rest is a note.
pub(super) fn run(config: &Config, report: &mut Report) {
    let (orders, rounds) = (config.python_orders.to_string(), config.rounds.to_string());
    let mut asked = vec!["--orders".to_owned(), orders, "--rounds".to_owned(), rounds.clone()];
    if let Some(folder) = &config.abides {
        asked.extend(["--abides".to_owned(), folder.display().to_string()]);
    }
    match answer_of("venue_rates.py", &asked) {
        Err(why) => report.note(format!("the venue in a Python process was NOT MEASURED: {why}")),
        Ok(answer) => {
            let rate = |name: &str| answer["figures"][name]["orders_per_s"].as_f64();
            if let Some(rate) = rate("walras, one array") {
                report.figure(Figure::new("python_venue_orders_per_s", rate, Unit::PerS).bar(1_000_000.0));
            }
            match (rate(ONE_CALL_EACH), rate(ONE_ARRAY), rate(THEIRS)) {
                (Some(calls), Some(array), Some(theirs)) => {
                    let peer = || PeerFigure::new("hftbacktest", theirs, Unit::PerS, HOW);
                    report.figure(Figure::new("python_venue_calls_per_s", calls, Unit::PerS).against(peer()).bar(100_000.0));
                    report.figure(Figure::new("python_venue_array_per_s", array, Unit::PerS).against(peer()));
                    report.figure(Figure::new("python_venue_vs_hftbacktest", calls / theirs, Unit::TimesFaster).bar(1.0));
                    report.figure(Figure::new("python_venue_array_vs_hftbacktest", array / theirs, Unit::TimesFaster).bar(1.0));
                }
                _ => report
                    .note(format!("hftbacktest was NOT RUN: install it beside the package: {PYTHON} -m pip install hftbacktest")),
            }
            match (rate(ONE_CALL_EACH_AS_ABIDES), rate(ONE_ARRAY_AS_ABIDES), rate(ABIDES)) {
                (Some(calls), Some(array), Some(theirs)) => {
                    report.check("ABIDES' order book and the venue in a Python process made the same trades of the same orders");
                    let peer = || PeerFigure::new(answer["abides"].as_str().unwrap_or("ABIDES"), theirs, Unit::PerS, HOW_ABIDES);
                    report.figure(Figure::new("python_venue_calls_next_to_abides_per_s", calls, Unit::PerS).against(peer()));
                    report.figure(Figure::new("python_venue_array_next_to_abides_per_s", array, Unit::PerS).against(peer()));
                    report.figure(Figure::new("python_venue_vs_abides", calls / theirs, Unit::TimesFaster).bar(1.0));
                    report.figure(Figure::new("python_venue_array_vs_abides", array / theirs, Unit::TimesFaster).bar(1.0));
                }
                _ => report.note("ABIDES was NOT RUN: name a checkout of its repository with --abides"),
            }
        }
    }
    let program = config.walras.display().to_string();
    let asked = [
        "--program".to_owned(),
        program,
        "--orders".to_owned(),
        (config.python_orders / 10).to_string(),
        "--rounds".to_owned(),
        rounds,
    ];
    match answer_of("entry_rate.py", &asked).map(|answer| answer["orders_per_s"].as_f64()) {
        Ok(Some(rate)) => report.figure(Figure::new("asyncio_orders_per_s", rate, Unit::PerS).bar(10_000.0)),
        Ok(None) => report.note("orders of an asyncio program were NOT MEASURED: entry_rate.py gave no rate"),
        Err(why) => report.note(format!("orders of an asyncio program were NOT MEASURED: {why}")),
    }
}
