//! A replay from file to report.

use std::path::{Path, PathBuf};

use walras_market_history::Format;
use walras_market_history::workload_file::{WorkloadResult, level_hash};

use crate::drive::{compare, ending};
use crate::error::ReplayError;
use crate::load::Loaded;
use crate::options::{Options, Progress};
use crate::report::{Report, WorkloadReport};

/// Replays a file through a book and reports. `progress` hears how far it is, often enough for a progress bar.
pub fn run(path: &Path, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Report, ReplayError> {
    let loaded = Loaded::open(path, options, progress)?;
    let mut report = run_loaded(&loaded, options, progress)?;
    report.file = Some(path.to_owned());
    if let Some(workload) = &mut report.workload
        && let Some(expected) = expectation(path)?
    {
        workload.as_expected = Some(is_expected(workload, &expected));
    }
    Ok(report)
}

/// Replays what is loaded.
pub fn run_loaded(loaded: &Loaded, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Report, ReplayError> {
    let compared = compare(loaded, options, progress)?;
    let end = ending(&compared.end);
    let level_hash = level_hash(end.levels[0].iter().copied(), end.levels[1].iter().copied());
    let names_makers = matches!(loaded.format, Format::Lobster | Format::Itch | Format::Sse);
    let is_bitstamp = matches!(loaded.format, Format::BitstampLog | Format::BitstampOrders);
    let workload = (loaded.format == Format::Workload).then(|| WorkloadReport {
        trades: compared.book.trades,
        volume_lots: compared.book.volume_lots,
        commands_with_trade: compared.steps_with_trade,
        ask_levels: end.levels[0].len() as u64,
        bid_levels: end.levels[1].len() as u64,
        ask_orders: end.orders[0],
        bid_orders: end.orders[1],
        level_hash,
        as_expected: None,
    });
    let mut book = compared.book;
    book.level_hash = level_hash;
    Ok(Report {
        file: None,
        format: loaded.format.name(),
        instrument: loaded.instrument,
        symbol: loaded.instrument_name(),
        levels: loaded.levels,
        file_messages: loaded.file_messages,
        out_of_order: loaded.out_of_order,
        messages: compared.counts.messages,
        left_out: compared.counts.left_out,
        units_per_tick: loaded.scale.units_per_tick,
        price_scale: loaded.info.price_scale,
        book,
        executions: names_makers.then_some(compared.executions),
        auctions: compared.auctions,
        snapshots: (loaded.snapshot_count > 0).then_some(compared.snapshots),
        orderbook: compared.orderbook,
        tape: is_bitstamp.then_some(compared.tape),
        workload,
        quality: compared.quality.report(loaded.format != Format::Workload),
        timing: compared.timing,
        mismatches: compared.mismatches,
    })
}

/// The expected result next to a file of commands: `FILE.expect`, of the file's name without its compression.
pub(crate) fn expectation(path: &Path) -> Result<Option<WorkloadResult>, ReplayError> {
    let plain = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz" | "gz" | "zip") => path.with_extension(""),
        _ => path.to_owned(),
    };
    let mut name = plain.into_os_string();
    name.push(".expect");
    let path = PathBuf::from(name);
    if !path.is_file() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path).map_err(|source| ReplayError::Read { path, source })?;
    Ok(Some(WorkloadResult::parse(&text)?))
}

pub(crate) fn is_expected(report: &WorkloadReport, expected: &WorkloadResult) -> bool {
    (report.trades, report.volume_lots, report.commands_with_trade, report.level_hash)
        == (expected.trades, expected.volume_lots, expected.commands_with_trade, expected.level_hash)
        && (report.ask_levels, report.bid_levels, report.ask_orders, report.bid_orders)
            == (expected.ask_levels, expected.bid_levels, expected.ask_orders, expected.bid_orders)
}
