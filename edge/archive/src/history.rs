//! Historical queries, answered from the journals of closed days and of the present day, with bounded work per query.

use std::path::{Path, PathBuf};

use walras_market_data::AccountRecord;
use walras_types::{InstrumentId, TimeNs, TradeId};

use crate::ArchiveError;
use crate::accounts::{AccountPage, AccountQuery, Left, OfDay, OpenChains, of_day};
use crate::day::Day;
use crate::forward::{self, ForwardPage, ForwardQuery, Wanted, Work};
use crate::journal::{BOOKS, Journal, Kind, Line, TRADES};
use crate::keeper::{PARTIAL, names};
use crate::manifest::{MANIFEST, Manifest, read_listings};
use crate::record::{Book, Listing, Trade};

/// Maximum number of records that a query reads. A page that ends there has a cursor for the next one.
const SCAN_MAX: u64 = 131_072;
/// The same of an account's records, each of which is a read of its own.
const ACCOUNT_SCAN_MAX: u64 = 16_384;
/// Maximum number of days that a query reads, likewise.
const DAYS_MAX: usize = 32;

/// An archive opened for reading. It may grow meanwhile.
#[derive(Clone, Debug)]
pub struct History {
    root: PathBuf,
    open: OpenChains,
}

/// A day of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayView {
    /// The day.
    pub day: Day,
    /// The manifest of a closed day; `None` for a day that grows or waits to be closed.
    pub manifest: Option<Manifest>,
}

/// Where a page of trades ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// All trades before this time were returned.
    pub time: TimeNs,
    /// At that time, all trades up to this one were returned.
    pub trade_id: TradeId,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.time.0, self.trade_id.0)
    }
}

impl std::str::FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (time, trade_id) = text.split_once('-').ok_or(())?;
        Ok(Self { time: TimeNs(time.parse().map_err(|_| ())?), trade_id: TradeId(trade_id.parse().map_err(|_| ())?) })
    }
}

/// A query for trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TradesQuery {
    /// The instrument.
    pub instrument: InstrumentId,
    /// From this time on.
    pub from: TimeNs,
    /// Before this time.
    pub to: TimeNs,
    /// Maximum number of trades.
    pub limit: usize,
    /// The cursor of the previous page.
    pub after: Option<Cursor>,
}

/// Trades, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The trades.
    pub trades: Vec<Trade>,
    /// Cursor of the next page, if there may be more. A page that is not full may have one too, if the query reached its limit.
    pub next: Option<Cursor>,
}

impl History {
    /// The archive in a folder.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf(), open: OpenChains::default() }
    }

    /// The archive that a service writes.
    pub(crate) fn of_running(root: &Path, open: OpenChains) -> Self {
        Self { root: root.to_path_buf(), open }
    }

    /// Its days with their folders, oldest first.
    fn folders(&self) -> Result<Vec<(Day, PathBuf)>, ArchiveError> {
        let mut folders = Vec::new();
        for name in names(&self.root)? {
            folders.extend(Day::parse(name.strip_suffix(PARTIAL).unwrap_or(&name)).map(|day| (day, self.root.join(name))));
        }
        folders.sort();
        folders.dedup_by_key(|(day, _)| *day);
        Ok(folders)
    }

    /// Its days, oldest first.
    pub fn days(&self) -> Result<Vec<DayView>, ArchiveError> {
        let is_closed = |dir: &Path| !dir.to_string_lossy().ends_with(PARTIAL);
        let view = |(day, dir): (Day, PathBuf)| {
            let manifest = is_closed(&dir).then(|| Manifest::read(&dir)).transpose()?;
            Ok(DayView { day, manifest })
        };
        self.folders()?.into_iter().map(view).collect()
    }

    /// The instruments of the newest day.
    pub fn listings(&self) -> Result<Vec<Listing>, ArchiveError> {
        self.folders()?.last().map_or(Ok(Vec::new()), |(_, dir)| read_listings(dir))
    }

    /// Path and length of a file of a closed day: a file in its manifest, or the manifest itself.
    pub fn file(&self, day: &str, name: &str) -> Result<(PathBuf, u64), ArchiveError> {
        let missing = || ArchiveError::NotFound(format!("{day}/{name}"));
        let dir = self.root.join(Day::parse(day).ok_or_else(missing)?.to_string());
        if !dir.is_dir() {
            return Err(missing());
        }
        let is_there = name == MANIFEST || Manifest::read(&dir)?.files.iter().any(|file| file.name == name);
        let path = dir.join(name);
        let len = std::fs::metadata(&path).map(|file| file.len());
        len.ok().filter(|_| is_there).map(|len| (path, len)).ok_or_else(missing)
    }

    /// Opens a journal of a day. If the day was closed or removed since the folder was listed, it is found under its other name or
    /// not at all.
    fn journal(&self, day: Day, dir: &Path, (name, kind): (&str, Kind)) -> Result<Option<Journal>, ArchiveError> {
        for dir in [dir, &self.root.join(day.to_string())] {
            match Journal::open(&dir.join(name), kind) {
                Err(ArchiveError::Io { source, .. })
                    if matches!(source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::UnexpectedEof) => {}
                opened => return opened.map(Some),
            }
        }
        Ok(None)
    }

    /// A page of trades.
    pub fn trades(&self, query: &TradesQuery) -> Result<Page, ArchiveError> {
        let from = query.after.map_or(query.from, |after| after.time.max(query.from));
        let mut page = Page::default();
        let mut left = SCAN_MAX;
        let days: Vec<_> = self.folders()?.into_iter().filter(|(day, _)| day.end() > from && day.start() < query.to).collect();
        for (count, (day, dir)) in days.iter().enumerate() {
            if count == DAYS_MAX || left == 0 || page.trades.len() >= query.limit {
                page.next = Some(Cursor { time: day.start(), trade_id: TradeId(0) });
                return Ok(page);
            }
            let Some(journal) = self.journal(*day, dir, (TRADES, Kind::Trades))? else { continue };
            let begin = journal.position(from)?;
            left = left.saturating_sub(1);
            journal.lines(begin, |_, line| {
                let Line::Trade(trade) = line else { return Ok(true) };
                if trade.time >= query.to {
                    return Ok(false);
                }
                // All trades at the cursor's time are read, so that each page makes progress.
                let may_end = trade.time > from;
                if page.trades.len() >= query.limit || (left == 0 && may_end) {
                    let trade_id =
                        page.trades.last().filter(|last| last.time == trade.time).map_or(TradeId(0), |last| last.trade_id);
                    page.next = Some(Cursor { time: trade.time, trade_id });
                    return Ok(false);
                }
                left = left.saturating_sub(1);
                let is_read = query.after.is_some_and(|after| after.time == trade.time && trade.trade_id <= after.trade_id);
                if trade.instrument == query.instrument && !is_read {
                    page.trades.push(trade);
                }
                Ok(true)
            })?;
            if page.next.is_some() {
                return Ok(page);
            }
        }
        Ok(page)
    }

    /// A page of an account's records, newest first, of those that are wanted. A day costs no more than the account's own records.
    pub fn account_records(
        &self,
        query: &AccountQuery,
        is_wanted: impl Fn(&AccountRecord) -> bool,
    ) -> Result<AccountPage, ArchiveError> {
        let mut page = AccountPage::default();
        let mut left = Left { records: ACCOUNT_SCAN_MAX, days: DAYS_MAX };
        for (day, dir) in self.folders()?.iter().rev().filter(|(day, _)| day.start() < query.until) {
            if day.end() <= query.since {
                break;
            }
            let closed = self.root.join(day.to_string());
            match of_day(query, &is_wanted, (*day, [dir, &closed]), &self.open, &mut left, &mut page)? {
                OfDay::GoesOn => {}
                OfDay::Over => return Ok(page),
                OfDay::Ends(next) => {
                    page.next = Some(next);
                    return Ok(page);
                }
            }
        }
        Ok(page)
    }

    /// A page of an account's records, oldest first, of those that are wanted. Where the account has more records of a day after the page's
    /// place than a query reads, the journal of all accounts is read from there.
    pub fn account_records_forward(
        &self,
        query: &ForwardQuery,
        wanted: impl Fn(&AccountRecord) -> Wanted,
    ) -> Result<ForwardPage, ArchiveError> {
        let work = Work { chain: ACCOUNT_SCAN_MAX, scan: SCAN_MAX };
        forward::page(query, &wanted, (&self.root, &self.folders()?), &self.open, work)
    }

    /// The last snapshot of an instrument's book that is not after `at`.
    pub fn book_at(&self, instrument: InstrumentId, at: TimeNs) -> Result<Option<Book>, ArchiveError> {
        let mut left = SCAN_MAX;
        for (day, dir) in self.folders()?.iter().rev().filter(|(day, _)| day.start() <= at) {
            let Some(journal) = self.journal(*day, dir, (BOOKS, Kind::Books))? else { continue };
            let end = journal.position(TimeNs(at.0.saturating_add(1)))?;
            if let Some(book) = journal.book_before(end, instrument, left)? {
                return Ok(Some(book));
            }
            if end >= left {
                return Err(ArchiveError::TooFar { scanned: SCAN_MAX });
            }
            left -= end;
        }
        Ok(None)
    }
}
