//! Verification of a closed day against its manifest.

use std::path::Path;

use walras_types::{LogIndex, TimeNs};

use crate::ArchiveError;
use crate::accounts::{ACCOUNTS, AccountsJournal};
use crate::close::hashed;
use crate::day::Day;
use crate::journal::{BOOKS, Journal, Kind, Line, TRADES};
use crate::manifest::Manifest;
use crate::orders::{self, ORDERS};

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The day's manifest.
    pub manifest: Manifest,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Checks every byte of a closed day's folder against its manifest, and that its records are intact, in order, of that day, and of
/// the stated number.
pub fn verify_day(dir: &Path) -> Result<Verified, ArchiveError> {
    let manifest = Manifest::read(dir)?;
    let damaged = |what: String| ArchiveError::damaged(dir, what);
    let day = Day::parse(&manifest.day).ok_or_else(|| damaged(format!("{:?} is no day", manifest.day)))?;
    if dir.file_name().is_none_or(|name| name.to_string_lossy() != manifest.day) {
        return Err(damaged(format!("its manifest is that of {day}")));
    }
    for file in manifest.files.iter().chain(&manifest.private) {
        let found = hashed(dir, &file.name, file.rows)?;
        if found != *file {
            return Err(damaged(format!(
                "{} has {} bytes with hash {}, not as its manifest says",
                file.name, found.bytes, found.blake3
            )));
        }
    }
    let trades = Journal::open(&dir.join(TRADES), Kind::Trades)?;
    let before = LogIndex(trades.header().first.0.saturating_sub(1));
    let (mut count, mut last, mut last_time) = (0, before, day.start());
    trades.lines(0, |at, line| {
        let (log_index, time) = match line {
            Line::Trade(trade) => (trade.log_index, trade.time),
            Line::Progress { last, time, .. } => (last, time),
            // It may name the end of the day before, or the beginning of the next.
            Line::Missing { .. } => return Ok(true),
        };
        if log_index < last || time < last_time || Day::of(time) != day {
            return Err(damaged(format!("record {at} of {TRADES} is out of order")));
        }
        (last, last_time) = (log_index, time);
        count += u64::from(matches!(line, Line::Trade(_)));
        Ok(true)
    })?;
    let accounts = match AccountsJournal::open(&dir.join(ACCOUNTS))? {
        Some(accounts) => accounts.each(|_| ()).map(|_| accounts.count)?,
        None => 0,
    };
    let rows = manifest.private.iter().find(|file| file.name == ACCOUNTS).map_or(0, |file| file.rows);
    if accounts != rows {
        return Err(damaged(format!("{ACCOUNTS} has {accounts} records, and its manifest says {rows}")));
    }
    if let Some(file) = manifest.files.iter().find(|file| file.name == ORDERS) {
        let orders = Journal::open(&dir.join(ORDERS), Kind::Orders)?;
        let (mut last, mut last_time) = (before, day.start());
        orders::read(&orders, |at, record| {
            let (log_index, time) = (record.log_index, record.time);
            if log_index < last || time < last_time || Day::of(time) != day {
                return Err(damaged(format!("record {at} of {ORDERS} is out of order")));
            }
            (last, last_time) = (log_index, time);
            Ok(true)
        })?;
        if orders.count() != file.rows {
            let (found, said) = (orders.count(), file.rows);
            return Err(damaged(format!("{ORDERS} has {found} records, and its manifest says {said}")));
        }
    }
    let books = Journal::open(&dir.join(BOOKS), Kind::Books)?;
    let mut book_time = TimeNs(0);
    books.books(0, |at, book| {
        if book.time < book_time || Day::of(book.time) != day {
            return Err(damaged(format!("record {at} of {BOOKS} is out of order")));
        }
        book_time = book.time;
        Ok(true)
    })?;
    if (count, books.count(), last.0) != (manifest.trades, manifest.books, manifest.last_log_index) {
        return Err(damaged(format!(
            "it holds {count} trades and {} book snapshots, up to entry {last}, which its manifest contradicts",
            books.count()
        )));
    }
    let bytes = manifest.files.iter().map(|file| file.bytes).sum();
    Ok(Verified { manifest, bytes })
}
