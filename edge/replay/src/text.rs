//! A report for people.

use std::fmt::{Formatter, Result};

use crate::oracle::OrderbookReport;
use crate::plan::{LeftOut, MessageCounts};
use crate::report::{AuctionReport, BookReport, ExecutionReport, Report, TapeReport, WorkloadReport, percent};
use crate::snapshots::SnapshotReport;

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn line(f: &mut Formatter<'_>, name: &str, value: impl std::fmt::Display) -> Result {
    writeln!(f, "  {name:<34} {value}")
}

/// A count of what could not be compared, or did not agree, and why; nothing if there is none.
pub(crate) fn because(f: &mut Formatter<'_>, name: &str, count: u64, why: &str) -> Result {
    if count == 0 {
        return Ok(());
    }
    line(f, name, grouped(count))?;
    writeln!(f, "      {why}")
}

fn of(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "none".to_owned();
    }
    format!("{} of {} ({:.2} %)", grouped(part), grouped(whole), percent(part, whole))
}

pub(crate) fn write(report: &Report, f: &mut Formatter<'_>) -> Result {
    match &report.file {
        Some(path) => writeln!(f, "{} ({})", path.display(), report.format)?,
        None => writeln!(f, "{} history", report.format)?,
    }
    if let Some(symbol) = &report.symbol {
        let levels = report.levels.map_or(String::new(), |levels| format!(", a file of {levels} levels a side"));
        writeln!(f, "  {:<34} {symbol}{levels}", "instrument")?;
    }
    heard(report.file_messages, report.out_of_order, &report.messages, &report.left_out, f)?;
    book(&report.book, f)?;
    if let Some(executions) = &report.executions {
        self::executions(executions, f)?;
    }
    for auction in &report.auctions {
        self::auction(report, auction, f)?;
    }
    if let Some(snapshots) = &report.snapshots {
        self::snapshots(snapshots, f)?;
    }
    if let Some(orderbook) = &report.orderbook {
        self::orderbook(report, orderbook, f)?;
    }
    if let Some(tape) = &report.tape {
        self::tape(tape, f)?;
    }
    if let Some(report) = &report.workload {
        workload(report, f)?;
    }
    if let Some(quality) = &report.quality {
        writeln!(f, "market")?;
        let spread = format!("mean {:.2} ticks, median {} ticks", quality.spread_mean_ticks, quality.spread_median_ticks);
        line(f, "spread", spread)?;
        let depth = format!("{:.0} bid, {:.0} offered lots (mean)", quality.bid_depth_mean_lots, quality.ask_depth_mean_lots);
        line(f, "depth, best 5 levels", depth)?;
    }
    if let Some(timing) = &report.timing {
        writeln!(f, "speed")?;
        let ns = format!(
            "{:.1} ns a message ({} messages, median of {})",
            timing.ns_per_message,
            grouped(timing.messages),
            timing.rounds
        );
        line(f, "book alone", ns)?;
    }
    if !report.mismatches.is_empty() {
        writeln!(f, "mismatches (first {})", report.mismatches.len())?;
        for mismatch in &report.mismatches {
            let instead = mismatch.instead.map_or(String::new(), |order| format!(", the book picks {order}"));
            writeln!(f, "  message {}: order {}{instead} ({:?})", mismatch.index, mismatch.order_ref, mismatch.cause)?;
        }
    }
    Ok(())
}

pub(crate) fn workload(workload: &WorkloadReport, f: &mut Formatter<'_>) -> Result {
    writeln!(f, "commands")?;
    line(f, "commands that traded", grouped(workload.commands_with_trade))?;
    let verdict = match workload.as_expected {
        Some(true) => "equal to the expected one",
        Some(false) => "NOT the expected one",
        None => "not checked: no .expect file next to it",
    };
    line(f, "result", verdict)
}

/// What the file said, and what of it was left out.
pub(crate) fn heard(
    file_messages: u64,
    out_of_order: u64,
    counts: &MessageCounts,
    left_out: &LeftOut,
    f: &mut Formatter<'_>,
) -> Result {
    writeln!(f, "messages")?;
    line(f, "in the file", grouped(file_messages))?;
    if counts.events != file_messages {
        line(f, "of the instrument", grouped(counts.events))?;
    }
    for (name, count) in [
        ("adds", counts.adds),
        ("reductions", counts.reduces),
        ("deletions", counts.deletes),
        ("moves and replacements", counts.replaces),
        ("executions", counts.executions),
        ("executions of hidden orders", counts.hidden_executions),
        ("auction trades", counts.auction_trades),
        ("anonymous trades", counts.tape_trades),
        ("snapshots", counts.snapshots),
        ("out of order", out_of_order),
    ] {
        if count > 0 {
            line(f, name, grouped(count))?;
        }
    }
    because(f, "left out, off tick or lot", left_out.off_scale, "its price or size is no whole number of ticks or lots")?;
    because(
        f,
        "left out, order unknown",
        left_out.unknown_order,
        "the file never added the order, and does not say from what side and price to make it up",
    )
}

fn book(book: &BookReport, f: &mut Formatter<'_>) -> Result {
    writeln!(f, "book")?;
    line(f, "trades", grouped(book.trades))?;
    line(f, "volume, lots", grouped(book.volume_lots))?;
    line(f, "orders resting, most", grouped(book.resting_orders_max))?;
    line(f, "orders resting, at the end", grouped(book.resting_orders_end))?;
    for (name, count, why) in [
        (
            "orders made up",
            book.orders_made_up,
            "the file names them without having added them: they stood before it begins, or beyond what it shows",
        ),
        (
            "orders presumed deleted",
            book.orders_presumed_deleted,
            "beyond the file's levels: they would have met what rested, or been executed before what was",
        ),
        (
            "orders set aside",
            book.orders_set_aside,
            "two lines contradict each other: the order waits until the file names it next",
        ),
        (
            "adds that traded",
            book.adds_that_traded,
            "by the record they rested; in the book they reached an order of the other side",
        ),
        ("orders missing", book.orders_missing, "the record takes off orders more than the book had left of them"),
        ("open sizes differing", book.open_sizes_differing, "a deletion says another size than the book had left"),
        ("orders refused", book.refused, "the book refuses a number that stands already, or a size out of its range"),
        ("book set to the record", book.corrections, "after each disagreement, so that one does not cause the next"),
    ] {
        because(f, name, count, why)?;
    }
    Ok(())
}

fn executions(executions: &ExecutionReport, f: &mut Formatter<'_>) -> Result {
    writeln!(f, "recorded executions against the book's choices")?;
    line(f, "of orders the file added", of(executions.of_known_orders, executions.recorded))?;
    if executions.of_made_up_orders > 0 {
        let made_up = format!("{}, {} as the book picks", executions.of_made_up_orders, executions.made_up_at_head);
        line(f, "of orders made up", made_up)?;
    }
    if executions.of_unknown_orders > 0 {
        line(f, "of orders unknown", grouped(executions.of_unknown_orders))?;
        writeln!(f, "      the file never added the order, and does not say from what side and price to make it up")?;
    }
    line(f, "at the best price", of(executions.at_best, executions.of_known_orders))?;
    line(f, "at the head of the queue", of(executions.at_head, executions.of_known_orders))?;
    line(f, "aggressors filled as recorded", of(executions.aggressors_matched, executions.aggressors))?;
    line(f, "  of several fills", of(executions.sweeps_matched, executions.sweeps))?;
    line(f, "  leaving a rest as recorded", of(executions.rests_matched, executions.rests))?;
    let causes = &executions.causes;
    for (name, count, why) in [
        (
            "mismatch: shown late",
            causes.entered_before_shown_after,
            "all ahead of it have higher numbers: it entered before them and was shown after, as what waits for the opening",
        ),
        (
            "mismatch: order passed over",
            causes.passed_over,
            "one ahead of it was left, and the record does not say why: self-match prevention, a least size, an amendment",
        ),
        (
            "mismatch: not at the best price",
            causes.not_at_best,
            "an order of a better price was left, and the record does not say why",
        ),
        ("mismatch: order gone", causes.order_gone, "the book did not have the order, or not as much of it"),
    ] {
        because(f, name, count, why)?;
    }
    Ok(())
}

/// A price in ticks as a decimal number of currency.
fn currency(report: &Report, ticks: i64) -> String {
    let units = i128::from(ticks) * i128::from(report.units_per_tick);
    let scale = i128::from(report.price_scale.max(1));
    let decimals = usize::try_from(scale.ilog10()).unwrap_or(0);
    format!("{}.{:0decimals$}", units / scale, units % scale)
}

fn orderbook(report: &Report, orderbook: &OrderbookReport, f: &mut Formatter<'_>) -> Result {
    writeln!(f, "orderbook file {} ({} levels a side)", orderbook.file.display(), orderbook.levels)?;
    line(f, "rows as the book", of(orderbook.rows_equal, orderbook.rows))?;
    line(f, "  the best price and size", of(orderbook.best_equal, orderbook.rows))?;
    let why = "they were not in view on the row before, so the book could not know them";
    because(f, "levels learned from the file", orderbook.levels_learned, why)?;
    let why = "rows without a message or messages without a row: the two files are not of the same day and level";
    because(f, "rows astray", orderbook.rows_astray, why)?;
    if let Some(first) = &orderbook.first_difference {
        let (price, line_number) = (currency(report, first.price_ticks), first.line);
        let sizes = format!("file {}, book {} lots", grouped(first.file_lots), grouped(first.book_lots));
        line(f, "first difference", format!("line {line_number}, {} {price}: {sizes}", first.side))?;
    }
    Ok(())
}

fn auction(report: &Report, auction: &AuctionReport, f: &mut Formatter<'_>) -> Result {
    let currency = |ticks| currency(report, ticks);
    let seconds = auction.time_ns / 1_000_000_000;
    writeln!(f, "auction at {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    let recorded = format!("{} lots at {}", grouped(auction.recorded_lots), currency(auction.recorded_price_ticks));
    line(f, "recorded", recorded)?;
    let price = auction.price_ticks.map_or("no price".to_owned(), currency);
    let verdict = if auction.matches() { "equal" } else { "NOT EQUAL" };
    line(f, "by the book", format!("{} lots at {price}: {verdict}", grouped(auction.lots)))?;
    line(f, "orders traded as recorded", of(auction.orders_matched, auction.orders))?;
    line(f, "pairs as recorded", of(auction.pairs_matched, auction.pairs))
}

fn snapshots(snapshots: &SnapshotReport, f: &mut Formatter<'_>) -> Result {
    writeln!(f, "exchange snapshots")?;
    line(f, "reproduced", of(snapshots.reproduced, snapshots.total))?;
    let kinds = format!(
        "{} with levels, {} with an indicative price, {} empty",
        grouped(snapshots.with_levels),
        grouped(snapshots.with_indicative),
        grouped(snapshots.empty)
    );
    line(f, "of which", kinds)?;
    let found = format!(
        "{} in their own second, {} up to 100 ms before, {} an interval late",
        grouped(snapshots.in_own_second),
        grouped(snapshots.in_skew),
        grouped(snapshots.an_interval_late)
    );
    line(f, "found", found)?;
    if snapshots.earliest_ms > 0 {
        line(f, "found before their second", format!("by {} ms at most", grouped(snapshots.earliest_ms)))?;
    }
    for missed in snapshots.missed.iter().take(10) {
        line(f, "missed", format!("line {}", missed.index))?;
    }
    Ok(())
}

fn tape(tape: &TapeReport, f: &mut Formatter<'_>) -> Result {
    writeln!(f, "feed without executions")?;
    line(f, "trades that the book made too", of(tape.trades_matched, tape.trades))?;
    let causes = &tape.trade_causes;
    for (name, count, why) in [
        (
            "not made: taker not shown",
            causes.taker_not_shown,
            "an order lost just that size at just that price, and the feed showed nobody who took it: market orders are not in it",
        ),
        ("not made: of another size", causes.other_size, "the book made one at the price that nobody reported, of another size"),
        (
            "not made: no order shown",
            causes.no_order_shown,
            "nothing that the feed showed lost just that: its orders were not shown, or the book had traded them otherwise before",
        ),
        ("not made: off tick", causes.off_tick, "its price is no whole number of ticks"),
        ("made and not reported", tape.trades_unreported, "orders met in the book that at the exchange did not"),
    ] {
        because(f, name, count, why)?;
    }
    line(f, "statements found true", of(tape.statements_matched, tape.statements))?;
    let by_trade = tape.statements_corrected_by_trade;
    for (name, count, why) in [
        (
            "the book was ahead",
            tape.statements_outrun,
            "it makes all fills of an aggressor when it comes; the feed reports them one by one, so the next statement is behind",
        ),
        ("set to: taker not shown", by_trade, "a trade of just that price and size is reported, and nobody was shown who took it"),
        (
            "set to: no such trade",
            tape.statements_corrected - by_trade,
            "nobody reported a trade of that price and size: the owner changed the order, or the trade is reported in other parts",
        ),
    ] {
        because(f, name, count, why)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"].map(str::to_owned));
    }
}
