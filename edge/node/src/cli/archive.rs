//! Looking into an archive, of a venue that runs or not.

use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};
use walras_api::http::day_view;
use walras_archive::{ArchiveError, Day, DayView, History, Listing, TradesQuery, verify_day};
use walras_terminal::table;
use walras_types::{InstrumentId, Side, TimeNs};

use super::args::ArchiveCommand;
use super::{CliError, Output};

/// Trades that are read at a time.
const PAGE: usize = 10_000;

pub(super) fn run(command: &ArchiveCommand) -> Result<Option<Output>, CliError> {
    match command {
        ArchiveCommand::Ls { dir } => list(dir).map(Some),
        ArchiveCommand::Verify { dir, day } => verify(dir, day.as_deref()).map(Some),
        ArchiveCommand::Export { dir, instrument, day } => export(dir, instrument, day.as_deref()).map(|()| None),
    }
}

fn list(dir: &Path) -> Result<Output, CliError> {
    let days: Vec<Value> = History::new(dir).days()?.iter().map(day_view).collect();
    let human = table::table(
        &days,
        &[
            ("day", "day"),
            ("closed", "closed"),
            ("complete", "complete"),
            ("first entry", "first_log_index"),
            ("last entry", "last_log_index"),
            ("trades", "trades"),
            ("books", "books"),
        ],
    );
    Ok(Output { human, json: json!({"days": days}) })
}

fn day_of(text: &str) -> Result<Day, CliError> {
    Day::parse(text).ok_or_else(|| CliError::Wrong(format!("{text:?} is no day: write it as 2026-11-21")))
}

/// Checks every closed day, or one, and that each begins with the entry after the one before it.
fn verify(dir: &Path, only: Option<&str>) -> Result<Output, CliError> {
    let only = only.map(day_of).transpose()?;
    let is_asked = |view: &DayView| view.manifest.is_some() && only.is_none_or(|day| view.day == day);
    let days: Vec<DayView> = History::new(dir).days()?.into_iter().filter(is_asked).collect();
    if let Some(day) = only.filter(|_| days.is_empty()) {
        return Err(ArchiveError::NotFound(format!("a closed day {day}")).into());
    }
    let (mut count, mut bytes, mut incomplete, mut next) = (0_u64, 0, Vec::new(), None);
    for view in days {
        let verified = verify_day(&dir.join(view.day.to_string()))?;
        let manifest = verified.manifest;
        if manifest.complete && next.is_some_and(|next| next != manifest.first_log_index) {
            let wrong =
                format!("{} begins with entry {}, and the day before it ends elsewhere", view.day, manifest.first_log_index);
            return Err(CliError::Damaged(format!("{wrong}: a day between them was taken away; restore it from a copy")));
        }
        (count, bytes, next) = (count + 1, bytes + verified.bytes, Some(manifest.last_log_index + 1));
        if !manifest.complete {
            incomplete.push(view.day.to_string());
        }
    }
    let mut human = format!("sound: {count} closed days, {bytes} bytes\n");
    if !incomplete.is_empty() {
        human += &format!("incomplete, as their manifests say: {}\n", incomplete.join(", "));
    }
    Ok(Output { human, json: json!({"sound": true, "days": count, "bytes": bytes, "incomplete": incomplete}) })
}

/// Prints an instrument's trades as CSV.
fn export(dir: &Path, symbol: &str, day: Option<&str>) -> Result<(), CliError> {
    let history = History::new(dir);
    let is_named = |listing: &Listing| listing.symbol == symbol || listing.symbol.replace('/', "-") == symbol;
    let listing = history.listings()?.into_iter().find(is_named);
    let listing = listing.ok_or_else(|| {
        CliError::Wrong(format!("the archive knows no instrument {symbol:?}: instruments.json of its newest day lists them"))
    })?;
    let (from, to) = match day.map(day_of).transpose()? {
        None => (TimeNs(0), TimeNs(u64::MAX)),
        Some(day) => (day.start(), day.end()),
    };
    let mut query = TradesQuery { instrument: InstrumentId(listing.instrument), from, to, limit: PAGE, after: None };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let steps = listing.steps();
    let decimal = |step: Option<walras_archive::Step>, count: u64| step.map_or_else(|| count.to_string(), |step| step.text(count));
    let mut write = |line: String| match writeln!(out, "{line}") {
        // The reader has seen enough.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).map_err(|source| CliError::Io { what: "could not print".into(), source }),
    };
    if !write("time_ns,log_index,trade_id,taker_side,price,size,price_ticks,size_lots".to_owned())? {
        return Ok(());
    }
    loop {
        let page = history.trades(&query)?;
        for t in page.trades {
            let side = match t.taker_side {
                None => "none",
                Some(Side::Buy) => "buy",
                Some(Side::Sell) => "sell",
            };
            let (ticks, lots) = (t.price.get().unsigned_abs(), t.size.get());
            let (price, size) = (decimal(steps.map(|s| s.0), ticks), decimal(steps.map(|s| s.1), lots));
            if !write(format!("{},{},{},{side},{price},{size},{ticks},{lots}", t.time, t.log_index, t.trade_id))? {
                return Ok(());
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    out.flush().map_err(|source| CliError::Io { what: "could not print".into(), source })
}
