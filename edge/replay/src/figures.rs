//! What `make bench NAME=replay` records.

use std::path::{Path, PathBuf};

use crate::error::ReplayError;
use crate::options::{Options, Progress};
use crate::report::Report;
use crate::run::run;

/// A figure.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Figure {
    /// Its name.
    pub metric: &'static str,
    /// Its value.
    pub value: f64,
    /// What it counts, or is measured in.
    pub unit: &'static str,
    /// What it is of: the best possible value of a count, the bar of a share. Timings have none here.
    pub of: Option<f64>,
}

/// The AAPL hour, in the folder of data.
pub const LOBSTER_FILE: &str = "lobster/AAPL_2012-06-21_34200000_37800000_message_50.csv";
/// The Shanghai day.
pub(crate) const SSE_FILE: &str = "sse/AX_sbe_sse_600519.zip";
/// The Bitstamp morning.
pub(crate) const BITSTAMP_FILE: &str = "bitstamp/2015-05-01.log.xz";
/// exchange-core's commands.
pub(crate) const WORKLOAD_FILE: &str = "ec-workload/ec_1k_3m.bin.xz";

/// The folder of data: `WALRAS_DATA`, or `shared/data` next to the repository (whose root is given) or one folder up.
#[must_use]
pub fn data_folder(repository: &Path) -> Option<PathBuf> {
    match std::env::var_os("WALRAS_DATA") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => ["../shared/data", "../../shared/data"].into_iter().map(|data| repository.join(data)).find(|data| data.is_dir()),
    }
}

/// Replays the files that are in the folder and returns their figures and reports; what is absent is left out.
pub fn figures(
    data: &Path,
    options: &Options,
    progress: &mut dyn FnMut(&str, Progress),
) -> Result<(Vec<Figure>, Vec<Report>), ReplayError> {
    let mut figures = Vec::new();
    let mut reports = Vec::new();
    for (file, add) in [
        (LOBSTER_FILE, lobster as fn(&Report, &mut Vec<Figure>)),
        (SSE_FILE, shanghai),
        (BITSTAMP_FILE, bitstamp),
        (WORKLOAD_FILE, workload),
    ] {
        let path = data.join(file);
        if path.is_file() {
            let report = run(&path, options, &mut |at| progress(file, at))?;
            add(&report, &mut figures);
            reports.push(report);
        }
    }
    Ok((figures, reports))
}

fn count(metric: &'static str, value: u64, of: u64) -> Figure {
    Figure { metric, value: value as f64, unit: "count", of: Some(of as f64) }
}

fn timing(metric: &'static str, report: &Report, figures: &mut Vec<Figure>) {
    figures.extend(report.timing.map(|timing| Figure { metric, value: timing.ns_per_message, unit: "ns", of: None }));
}

fn lobster(report: &Report, figures: &mut Vec<Figure>) {
    let Some(executions) = &report.executions else { return };
    let percent = |metric, value, bar| Figure { metric, value, unit: "percent", of: Some(bar) };
    figures.push(percent("aapl_at_best_percent", executions.at_best_percent(), 100.0));
    figures.push(percent("aapl_fifo_head_percent", executions.at_head_percent(), 99.4));
    figures.push(count("aapl_executions_at_head", executions.at_head, executions.of_known_orders));
    figures.push(count("aapl_aggressors_matched", executions.aggressors_matched, executions.aggressors));
    let causes = executions.causes;
    let not_at_head = executions.of_known_orders - executions.at_head;
    for (metric, value) in [
        ("aapl_cause_entered_before_shown_after", causes.entered_before_shown_after),
        ("aapl_cause_passed_over", causes.passed_over),
        ("aapl_cause_not_at_best", causes.not_at_best),
        ("aapl_cause_order_gone", causes.order_gone),
    ] {
        figures.push(count(metric, value, not_at_head));
    }
    timing("aapl_ns_per_message", report, figures);
}

fn shanghai(report: &Report, figures: &mut Vec<Figure>) {
    if let Some(snapshots) = &report.snapshots {
        figures.push(count("sse_snapshots_reproduced", snapshots.reproduced, snapshots.total));
    }
    if let Some(executions) = &report.executions {
        figures.push(count("sse_executions_at_head", executions.at_head, executions.of_known_orders));
        figures.push(count("sse_aggressors_matched", executions.aggressors_matched, executions.aggressors));
    }
    let matched = report.auctions.iter().filter(|auction| auction.matches()).count() as u64;
    figures.push(count("sse_auctions_matched", matched, report.auctions.len() as u64));
    let orders: u64 = report.auctions.iter().map(|auction| auction.orders).sum();
    let orders_matched = report.auctions.iter().map(|auction| auction.orders_matched).sum();
    figures.push(count("sse_auction_orders_matched", orders_matched, orders));
    timing("sse_ns_per_message", report, figures);
}

fn bitstamp(report: &Report, figures: &mut Vec<Figure>) {
    if let Some(tape) = &report.tape {
        figures.push(count("bitstamp_trades_matched", tape.trades_matched, tape.trades));
        let (causes, not_made) = (tape.trade_causes, tape.trades - tape.trades_matched);
        for (metric, value) in [
            ("bitstamp_trade_cause_taker_not_shown", causes.taker_not_shown),
            ("bitstamp_trade_cause_other_size", causes.other_size),
            ("bitstamp_trade_cause_no_order_shown", causes.no_order_shown),
            ("bitstamp_trade_cause_off_tick", causes.off_tick),
        ] {
            figures.push(count(metric, value, not_made));
        }
        figures.push(count("bitstamp_statements_matched", tape.statements_matched, tape.statements));
        let not_found = tape.statements - tape.statements_matched;
        let by_trade = tape.statements_corrected_by_trade;
        for (metric, value) in [
            ("bitstamp_statement_cause_outrun", tape.statements_outrun),
            ("bitstamp_statement_cause_taker_not_shown", by_trade),
            ("bitstamp_statement_cause_no_trade_reported", tape.statements_corrected - by_trade),
        ] {
            figures.push(count(metric, value, not_found));
        }
    }
    timing("bitstamp_ns_per_message", report, figures);
}

fn workload(report: &Report, figures: &mut Vec<Figure>) {
    if let Some(as_expected) = report.workload.as_ref().and_then(|workload| workload.as_expected) {
        figures.push(count("exchange_core_result_as_expected", u64::from(as_expected), 1));
    }
    timing("exchange_core_ns_per_message", report, figures);
}
