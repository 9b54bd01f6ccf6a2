//! A replay from file to report.

use std::path::{Path, PathBuf};
use std::time::Instant;

use walras_market_history::Format;
use walras_market_history::workload_file::{WorkloadResult, level_hash};

use crate::apply::{Market, Tally};
use crate::drive::{Compared, compare, ending};
use crate::error::ReplayError;
use crate::load::Loaded;
use crate::options::{Options, Progress, Stage};
use crate::plan::{Action, Plan};
use crate::report::{Report, TimingReport, WorkloadReport};

/// Replays a file through a book and reports. `progress` is told how far it is, often enough for a progress bar.
pub fn run(path: &Path, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Report, ReplayError> {
    let loaded = Loaded::open(path, options, progress)?;
    let mut report = run_loaded(&loaded, options, progress);
    report.file = Some(path.to_owned());
    if let Some(workload) = &mut report.workload
        && let Some(expected) = expectation(path)?
    {
        workload.as_expected = Some(is_expected(workload, &expected));
    }
    Ok(report)
}

/// Replays what is loaded.
#[must_use]
pub fn run_loaded(loaded: &Loaded, options: &Options, progress: &mut dyn FnMut(Progress)) -> Report {
    let plan = Plan::new(loaded, options.reference_price);
    let compared = compare(loaded, &plan, options.mismatches_named_max, progress);
    let timing = (options.timing_rounds > 0).then(|| time(&plan, &compared, options.timing_rounds, progress));
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
    Report {
        file: None,
        format: loaded.format.name(),
        instrument: loaded.instrument,
        file_messages: loaded.file_messages,
        out_of_order: loaded.out_of_order,
        messages: plan.messages,
        left_out: plan.left_out,
        units_per_tick: loaded.scale.units_per_tick,
        price_scale: loaded.info.price_scale,
        book,
        executions: names_makers.then_some(compared.executions),
        auctions: compared.auctions,
        snapshots: (!loaded.snapshots.is_empty()).then_some(compared.snapshots),
        tape: is_bitstamp.then_some(compared.tape),
        workload,
        quality: compared.quality.report(loaded.format != Format::Workload),
        timing,
        mismatches: compared.mismatches,
    }
}

/// Messages that a step stands for.
pub(crate) fn messages_of(action: &Action) -> u64 {
    match action {
        Action::Sweep(aggressor) => aggressor.fills.len() as u64 + u64::from(!aggressor.rest.is_zero()),
        Action::Uncross { pairs, .. } => pairs.len() as u64,
        Action::Rest { .. }
        | Action::Submit { .. }
        | Action::Reduce { .. }
        | Action::Delete { .. }
        | Action::SetOpen { .. }
        | Action::Move { .. }
        | Action::Replace { .. } => 1,
        Action::Tape { .. } | Action::CollectForOpen | Action::CollectForClose => 0,
    }
}

/// Runs the book alone over the same steps, the clock stopped while it is corrected.
fn time(plan: &Plan, compared: &Compared, rounds: u32, progress: &mut dyn FnMut(Progress)) -> TimingReport {
    let messages: u64 = plan.steps.iter().map(|step| messages_of(&step.action)).sum();
    let mut totals_ns: Vec<u64> = (0..rounds)
        .map(|round| {
            progress(Progress { stage: Stage::Timing, done: u64::from(round), total: Some(u64::from(rounds)) });
            let mut market = Market::new(plan.reference);
            market.book.reserve(usize::try_from(compared.book.resting_orders_max).unwrap_or(0));
            let mut tally = Tally::default();
            let mut elapsed_ns = 0;
            let mut from = 0;
            let ends = compared.corrections.iter().map(|(at, queues)| (at + 1, Some(queues)));
            for (end, correction) in ends.chain([(plan.steps.len(), None)]) {
                let start = Instant::now();
                for step in &plan.steps[from..end] {
                    market.apply(step, &mut tally);
                }
                elapsed_ns += u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                from = end;
                if let Some(queues) = correction {
                    market.book = queues.book();
                }
            }
            let compared = Tally { trades: compared.book.trades, volume_lots: compared.book.volume_lots };
            assert_eq!(tally, compared, "the timed run traded otherwise than the compared one");
            elapsed_ns
        })
        .collect();
    progress(Progress { stage: Stage::Timing, done: u64::from(rounds), total: Some(u64::from(rounds)) });
    totals_ns.sort_unstable();
    let total_ns = totals_ns[totals_ns.len() / 2];
    TimingReport { rounds, messages, total_ns, ns_per_message: total_ns as f64 / messages.max(1) as f64 }
}

/// The expected result beside a file of commands: `FILE.expect`, of the file's name without its compression.
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
