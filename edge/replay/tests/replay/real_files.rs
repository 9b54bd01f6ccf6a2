//! Tests on real files, from `WALRAS_DATA` or from `../shared/data` next to the repository. Missing files are reported and skipped.

use std::path::Path;

use walras_market_history::itch::lobster_to_itch;
use walras_market_history::{Format, open_bytes};
use walras_replay::{Loaded, Options, Report, figures, run, run_loaded};

use crate::find;

const LOBSTER: &str = "lobster/AAPL_2012-06-21_34200000_37800000_message_50.csv";
const SSE: &str = "sse/AX_sbe_sse_600519.zip";
const BITSTAMP_LOG: &str = "bitstamp/2015-05-01.log.xz";
const BITSTAMP_ORDERS: &str = "bitstamp/orders.csv.xz";
const WORKLOAD: &str = "ec-workload/ec_1k_3m.bin.xz";

fn options() -> Options {
    Options { timing_rounds: 1, ..Options::default() }
}

fn replay(path: &Path) -> Report {
    run(path, &options(), &mut |_| {}).unwrap()
}

#[test]
fn the_aapl_hour_is_price_time() {
    let Some(path) = find(LOBSTER) else { return };
    let report = replay(&path);
    let executions = report.executions.unwrap();
    assert_eq!((executions.recorded, executions.of_known_orders, executions.of_made_up_orders), (4_067, 4_055, 12));
    assert_eq!((executions.at_best, executions.at_head), (4_055, 4_031));
    assert!(executions.at_head_percent() >= 99.4);
    assert_eq!((executions.made_up_at_best, executions.made_up_at_head), (12, 12));
    assert_eq!((executions.aggressors, executions.aggressors_matched), (3_290, 3_277));
    assert_eq!((executions.sweeps, executions.sweeps_matched), (567, 562));
    assert_eq!((executions.rests, executions.rests_matched), (23, 23));
    let causes = executions.causes;
    assert_eq!((causes.entered_before_shown_after, causes.passed_over, causes.not_at_best, causes.order_gone), (15, 9, 0, 0));
    assert_eq!(report.book.corrections, executions.aggressors - executions.aggressors_matched);
    // All else is as recorded: no add trades, nothing named is missing, every deletion finds the size it says.
    assert_eq!((report.book.adds_that_traded, report.book.orders_missing, report.book.open_sizes_differing), (0, 0, 0));
    assert_eq!((report.messages.hidden_executions, report.left_out.unknown_order, report.left_out.off_scale), (2_201, 0, 0));
    assert_eq!((report.book.orders_made_up, report.book.resting_orders_max), (80, 416));
    assert_eq!((report.symbol.as_deref(), report.levels, report.book.orders_set_aside), (Some("AAPL"), Some(50), 0));
    assert_eq!(report.book.orders_presumed_deleted, 1);
}

#[test]
fn the_same_hour_as_itch_has_the_same_result() {
    let Some(path) = find(LOBSTER) else { return };
    let mut itch = Vec::new();
    lobster_to_itch(open_bytes(&path).unwrap(), &mut itch, *b"AAPL    ").unwrap();
    let loaded = Loaded::read(&itch[..], Format::Itch, &options(), &mut |_| {}).unwrap();
    let report = run_loaded(&loaded, &options(), &mut |_| {}).unwrap();
    let executions = report.executions.unwrap();
    let as_lobster = replay(&path).executions.unwrap();
    // ITCH does not say side and price of an order it never added, so those 12 cannot be made up.
    assert_eq!((executions.of_unknown_orders, executions.of_made_up_orders), (12, 0));
    assert_eq!(report.left_out.unknown_order, 84);
    assert_eq!((executions.of_known_orders, executions.at_best), (as_lobster.of_known_orders, as_lobster.at_best));
    assert_eq!((executions.at_head, executions.causes), (as_lobster.at_head, as_lobster.causes));
    assert_eq!((executions.rests, executions.rests_matched), (as_lobster.rests, as_lobster.rests_matched));
}

#[test]
fn the_shanghai_day_is_reproduced_whole() {
    let Some(path) = find(SSE) else { return };
    let report = replay(&path);
    let executions = report.executions.unwrap();
    assert_eq!((executions.recorded, executions.of_known_orders), (18_139, 18_139));
    assert_eq!((executions.at_best, executions.at_head, executions.aggressors_matched), (18_139, 18_139, 13_352));
    assert_eq!((executions.rests, executions.rests_matched), (686, 686));

    let [opening, closing] = report.auctions[..] else { panic!("{:?}", report.auctions) };
    assert!(opening.matches() && closing.matches());
    assert_eq!((opening.price_ticks, opening.lots, opening.imbalance_lots), (Some(180_808), 42_718, 82));
    assert_eq!((closing.price_ticks, closing.lots), (Some(179_700), 40_203));
    // Market pressure decides, so the reference does not matter.
    assert_eq!(opening.price_near_close_ticks, Some(180_808));
    assert_eq!((opening.pairs, opening.pairs_matched, closing.pairs, closing.pairs_matched), (334, 334, 212, 212));
    assert_eq!((opening.orders, opening.orders_matched, closing.orders, closing.orders_matched), (350, 350, 217, 217));

    let snapshots = report.snapshots.unwrap();
    assert_eq!((snapshots.total, snapshots.reproduced), (5_146, 5_146));
    assert_eq!((snapshots.with_levels, snapshots.with_indicative, snapshots.empty), (4_927, 186, 33));
    assert_eq!((snapshots.in_own_second, snapshots.in_skew, snapshots.an_interval_late), (5_135, 4, 7));
    assert_eq!(snapshots.earliest_ms, 2_510);
    assert_eq!((report.book.trades, report.book.volume_lots, report.book.corrections), (18_685, 2_432_171, 0));
    assert_eq!((report.book.orders_missing, report.book.open_sizes_differing, report.out_of_order), (0, 0, 2_913));
}

#[test]
fn the_bitstamp_morning_is_matched_as_far_as_it_tells() {
    let Some(path) = find(BITSTAMP_LOG) else { return };
    let report = replay(&path);
    let tape = report.tape.unwrap();
    assert_eq!((tape.trades, tape.trades_matched, tape.trades_unreported), (575, 513, 6));
    assert_eq!(
        (tape.statements, tape.statements_matched, tape.statements_outrun, tape.statements_corrected),
        (1_160, 879, 187, 94)
    );
    let causes = tape.trade_causes;
    assert_eq!(
        causes.taker_not_shown + causes.other_size + causes.no_order_shown + causes.off_tick,
        tape.trades - tape.trades_matched,
        "{causes:?}"
    );
    assert_eq!((causes.taker_not_shown, causes.other_size, causes.no_order_shown, causes.off_tick), (34, 6, 22, 0));
    assert_eq!(tape.statements_corrected_by_trade, causes.taker_not_shown);
    assert_eq!((report.book.orders_made_up, report.left_out.unknown_order), (165, 22));
    assert_eq!(report.snapshots.unwrap().reproduced, 1_654);
}

#[test]
fn the_bitstamp_orders_are_run() {
    let Some(path) = find(BITSTAMP_ORDERS) else { return };
    let report = replay(&path);
    assert_eq!((report.messages.adds, report.messages.reduces, report.messages.deletes), (24_894, 602, 24_918));
    assert_eq!(report.tape.unwrap().trades, 0);
}

#[test]
fn exchange_cores_commands_have_the_expected_result() {
    let Some(path) = find(WORKLOAD) else { return };
    let report = replay(&path);
    let workload = report.workload.unwrap();
    assert_eq!((workload.trades, workload.as_expected), (123_249, Some(true)));
    assert_eq!(report.book.refused, 0);
}

#[test]
fn the_figures_are_those_of_the_reports() {
    let (Some(lobster), Some(sse)) = (find(LOBSTER), find(SSE)) else { return };
    // A folder with these two: the figures of what is absent are left out.
    let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay-figures");
    for (file, from) in [(LOBSTER, lobster), (SSE, sse)] {
        let to = data.join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, std::fs::read(from).unwrap()).unwrap();
    }
    let (figures, reports) = figures(&data, &Options { timing_rounds: 0, ..Options::default() }, &mut |_, _| {}).unwrap();
    let value = |name: &str| figures.iter().find(|figure| figure.metric == name).map(|figure| figure.value);
    assert_eq!(value("aapl_at_best_percent"), Some(100.0));
    assert!(value("aapl_fifo_head_percent").unwrap() >= 99.4);
    assert_eq!(value("sse_snapshots_reproduced"), Some(5_146.0));
    assert_eq!(value("sse_auctions_matched"), Some(2.0));
    assert_eq!((reports.len(), value("aapl_ns_per_message"), value("bitstamp_trades_matched")), (2, None, None));
}
