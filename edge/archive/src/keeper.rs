//! The archive's side: takes batches into memory and makes them durable in the journals of their days.
//!
//! A day's journals are written in this order: book snapshots, records of accounts and of orders, each synced; then trades and a
//! *progress* record with their numbers, synced. After a crash everything behind the last progress record is cut and comes again from the
//! log. After a failed write the data stays in memory and is written again from the last progress record on.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};

use crossbeam_channel::Sender;
use walras_engine::Engine;
use walras_log_store::{Disk, LockKind, RealDisk};
use walras_market_data::Recorded;
use walras_types::{InstrumentId, LogIndex, TimeNs};

use crate::accounts::{self, ACCOUNTS, AccountsJournal, Heads, OpenChains};
use crate::by_order::ByOrder;
use crate::close::close;
use crate::day::Day;
use crate::dbn::DbnForm;
use crate::files::{Files, Readers};
use crate::journal::{BOOKS, Header, Journal, Kind, Line, TRADES, encode_book, holds_any, lines_in};
use crate::manifest::{LISTINGS, MANIFEST, Manifest, encode_listings, read_listings};
use crate::orders::{self, ORDERS};
use crate::record::{Batch, Book, Listing, OrderNote, OrderRecord, OrderSaid, OrderStep, Span};
use crate::recorder::{KEYFRAME_NS, Recorder};
use crate::{ArchiveError, During};

/// Suffix of the folder of a day that grows.
pub(crate) const PARTIAL: &str = ".partial";
/// Suffix of the folder of a day that is being removed.
const REMOVED: &str = ".removed";

/// Settings of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its folder.
    pub folder: PathBuf,
    /// Levels per side in a book snapshot, 1 to 1000.
    pub depth: u32,
    /// Log time between two snapshots of a book, in nanoseconds.
    pub snapshot_every_ns: u64,
    /// Whether a closed day has Parquet files.
    pub parquet: bool,
    /// Whether it has DBN files.
    pub dbn: bool,
    /// How they are written.
    pub dbn_form: DbnForm,
    /// Whether the archive keeps what happens to each displayed order.
    pub orders: bool,
    /// Number of closed days to retain; 0 for all.
    pub keep_days: u32,
}

impl Settings {
    /// A recorder for this archive, which has the entries up to `has`.
    pub(crate) fn recorder(&self, batches: Sender<Batch>, has: LogIndex, engine: &Engine) -> Recorder {
        let recorder = Recorder::new(batches, self.depth as usize, self.snapshot_every_ns, has.next(), engine);
        if self.orders { recorder.with_orders(engine) } else { recorder }
    }
}

/// Everything that is not yet closed.
#[derive(Debug)]
pub struct Keeper {
    settings: Settings,
    files: Files,
    /// Oldest first; all but the last have ended.
    days: VecDeque<OpenDay>,
    /// Ended, durable, to be closed.
    closing: VecDeque<Day>,
    listings: BTreeMap<u32, Listing>,
    seen: LogIndex,
    seen_time: TimeNs,
    durable: LogIndex,
    missing: u64,
    /// The displayed orders after the last entry taken; `None` where they are not kept, or not known.
    by_order: Option<ByOrder>,
    /// For readers.
    open: OpenChains,
    /// Excludes other processes.
    _lock: <RealDisk as Disk>::Lock,
}

/// A day's journals, and the data to be written to them.
#[derive(Debug)]
struct OpenDay {
    day: Day,
    depth: u32,
    first: LogIndex,
    last: LogIndex,
    last_time: TimeNs,
    /// The entry of the last durable progress record.
    progress: LogIndex,
    /// Bytes to be written.
    trades: Vec<u8>,
    books: Vec<u8>,
    accounts: Vec<u8>,
    orders: Vec<u8>,
    /// Durable bytes.
    trades_len: u64,
    books_len: u64,
    accounts_len: u64,
    orders_len: u64,
    /// Number of records of accounts, including those to be written.
    accounts_count: u64,
    /// Number of records of orders, likewise.
    orders_count: u64,
    /// The last record of each account, and those that changed since the last write.
    heads: Heads,
    changed_heads: Heads,
    /// Number of book snapshots, including those to be written.
    books_count: u64,
    /// The last book snapshot of each instrument.
    last_books: BTreeMap<InstrumentId, Book>,
    has_new_listings: bool,
    is_made: bool,
}

/// A day that was recovered, and the displayed orders after its last entry, where they are known.
struct Recovered {
    open: OpenDay,
    by_order: Option<ByOrder>,
}

impl OpenDay {
    fn new(day: Day, depth: u32, first: LogIndex) -> Self {
        let header = |kind| Header { kind, depth, day, first }.encode().to_vec();
        Self {
            day,
            depth,
            first,
            last: LogIndex(first.0.saturating_sub(1)),
            last_time: day.start(),
            progress: LogIndex(0),
            trades: header(Kind::Trades),
            books: header(Kind::Books),
            accounts: accounts::header(day, first).to_vec(),
            orders: Vec::new(),
            trades_len: 0,
            books_len: 0,
            accounts_len: 0,
            orders_len: 0,
            accounts_count: 0,
            orders_count: 0,
            heads: Heads::new(),
            changed_heads: Heads::new(),
            books_count: 0,
            last_books: BTreeMap::new(),
            has_new_listings: true,
            is_made: false,
        }
    }

    /// Recovers a day from its folder; `None` if nothing of it is durable.
    fn recover(dir: &Path, day: Day, keeps_orders: bool) -> Result<Option<Recovered>, ArchiveError> {
        let is_short = |name| std::fs::metadata(dir.join(name)).map_or(true, |file| file.len() < 64);
        if is_short(TRADES) || is_short(BOOKS) {
            return Ok(None);
        }
        let trades = match Journal::open(&dir.join(TRADES), Kind::Trades) {
            // The header never reached the disk. (If there are records after it, it was damaged later.)
            Err(ArchiveError::Damaged { .. }) if !holds_any(&dir.join(TRADES))? => return Ok(None),
            opened => opened?,
        };
        let Some((_, Line::Progress { .. })) = trades.last_progress(|_, _, _| true)? else { return Ok(None) };
        let books = Journal::open(&dir.join(BOOKS), Kind::Books)?;
        let accounts = AccountsJournal::open(&dir.join(ACCOUNTS))?;
        let there = (books.count(), accounts.as_ref().map_or(0, |accounts| accounts.count));
        // Where they are not kept any more, or were not, the rest of the day is kept without them.
        let orders_there = match std::fs::metadata(dir.join(ORDERS)) {
            Ok(file) if keeps_orders => lines_in(file.len()),
            Ok(_) | Err(_) => u64::MAX,
        };
        let is_there = |books, accounts, orders| books <= there.0 && accounts <= there.1 && orders <= orders_there;
        let Some((at, Line::Progress { last, time, books: books_count, accounts: accounts_count, orders: orders_count })) =
            trades.last_progress(is_there)?
        else {
            return Ok(None);
        };
        let accounts_len = if accounts.is_some() { accounts::len_of(accounts_count) } else { 0 };
        let heads = match accounts {
            Some(accounts) => accounts.cut(accounts_count).each(|_| ())?,
            None => Heads::new(),
        };
        // A day that a program began which kept no records of accounts.
        let header = if accounts_len == 0 { accounts::header(day, trades.header().first).to_vec() } else { Vec::new() };
        let (orders_len, orders_count, by_order) = match recover_orders(dir, orders_count, keeps_orders)? {
            Some((journal, by_order)) => (journal.len_of(orders_count), orders_count, by_order),
            None => (0, 0, None),
        };
        let first = trades.header().first;
        let books = books.cut(books_count);
        let slot = TimeNs(time.0 / KEYFRAME_NS * KEYFRAME_NS);
        let mut last_books = BTreeMap::new();
        books.books(books.position(slot)?, |_, book| {
            last_books.insert(book.instrument, book);
            Ok(true)
        })?;
        let open = Self {
            day,
            depth: books.header().depth,
            first,
            last,
            last_time: time,
            progress: last,
            trades: Vec::new(),
            books: Vec::new(),
            accounts: header,
            orders: Vec::new(),
            trades_len: trades.len_of(at + 1),
            books_len: books.len_of(books_count),
            accounts_len,
            orders_len,
            accounts_count,
            orders_count,
            changed_heads: heads.clone(),
            heads,
            books_count,
            last_books,
            has_new_listings: false,
            is_made: true,
        };
        Ok(Some(Recovered { open, by_order }))
    }

    fn take_orders(&mut self, records: &[OrderRecord]) {
        if records.is_empty() {
            return;
        }
        if self.orders_len == 0 && self.orders.is_empty() {
            let header = Header { kind: Kind::Orders, depth: self.depth, day: self.day, first: self.first };
            self.orders.extend_from_slice(&header.encode());
        }
        records.iter().for_each(|record| orders::encode(record, &mut self.orders));
        self.orders_count += records.len() as u64;
    }

    /// These orders stand after an entry, and are known from here on.
    fn take_standing(&mut self, books: &ByOrder, log_index: LogIndex, time: TimeNs) {
        let record = |instrument, step| OrderRecord { log_index, time: time.max(self.day.start()), instrument, step };
        let cleared = record(InstrumentId(0), OrderStep::Cleared);
        let standing = books.all().into_iter().map(|(instrument, shown)| record(instrument, OrderStep::Standing(shown)));
        let records: Vec<OrderRecord> = std::iter::once(cleared).chain(standing).collect();
        self.take_orders(&records);
    }

    fn take_book(&mut self, book: &Book) {
        let slot = |book: &Book| book.time.0 / KEYFRAME_NS;
        let depth = self.depth as usize;
        let mut book = book.clone();
        book.bids.truncate(depth);
        book.asks.truncate(depth);
        if let Some(last) = self.last_books.get(&book.instrument)
            && last.shows_the_same(&book)
            && slot(last) == slot(&book)
        {
            return;
        }
        encode_book(&book, self.depth, &mut self.books);
        self.books_count += 1;
        self.last_books.insert(book.instrument, book);
    }

    fn take_account(&mut self, recorded: &Recorded) {
        accounts::encode(recorded, self.accounts_count, &mut self.heads, &mut self.accounts);
        self.accounts_count += 1;
        let kind = accounts::kind_of(&recorded.record);
        self.changed_heads.insert((recorded.account, kind), self.accounts_count);
    }

    fn has_news(&self) -> bool {
        self.progress < self.last || !self.is_made
    }

    /// Makes the data in memory durable; on failure it stays in memory.
    fn write(&mut self, files: &Files, root: &Path, listings: &BTreeMap<u32, Listing>) -> Result<(), ArchiveError> {
        let dir = root.join(format!("{}{PARTIAL}", self.day));
        if !self.is_made {
            files.create_dir_all(&dir).during("create", &dir)?;
            files.sync_dir(root).during("sync", root)?;
        }
        if self.has_new_listings {
            let path = dir.join(LISTINGS);
            files.put(&path, &encode_listings(listings.values())).during("write", &path)?;
        }
        let trades = dir.join(TRADES);
        append(files, &dir.join(BOOKS), self.books_len, &self.books, Readers::Anybody)?;
        append(files, &dir.join(ACCOUNTS), self.accounts_len, &self.accounts, Readers::Venue)?;
        append(files, &dir.join(ORDERS), self.orders_len, &self.orders, Readers::Anybody)?;
        let before = self.trades.len();
        let (books, accounts, orders) = (self.books_count, self.accounts_count, self.orders_count);
        Line::Progress { last: self.last, time: self.last_time, books, accounts, orders }.encode(&mut self.trades);
        let written = append(files, &trades, self.trades_len, &self.trades, Readers::Anybody)
            .and_then(|()| if self.is_made { Ok(()) } else { files.sync_dir(&dir).during("sync", &dir) });
        if let Err(e) = written {
            self.trades.truncate(before);
            return Err(e);
        }
        self.trades_len += self.trades.len() as u64;
        self.books_len += self.books.len() as u64;
        self.accounts_len += self.accounts.len() as u64;
        self.orders_len += self.orders.len() as u64;
        self.trades.clear();
        self.books.clear();
        self.accounts.clear();
        self.orders.clear();
        self.progress = self.last;
        (self.is_made, self.has_new_listings) = (true, false);
        Ok(())
    }
}

/// The journal of a day's orders with so many records, and the orders that stand after them. `None` where it is not kept, or was not: it is
/// begun with the next orders that are listed.
fn recover_orders(dir: &Path, count: u64, keeps_orders: bool) -> Result<Option<(Journal, Option<ByOrder>)>, ArchiveError> {
    let path = dir.join(ORDERS);
    if !keeps_orders || count == 0 || !path.exists() {
        return Ok(None);
    }
    let journal = Journal::open(&path, Kind::Orders)?.cut(count);
    let by_order = ByOrder::of_journal(&journal)?;
    Ok(Some((journal, by_order)))
}

/// The displayed orders at the end of a closed day, where it has them.
fn orders_of_closed(dir: &Path) -> Result<Option<ByOrder>, ArchiveError> {
    let path = dir.join(ORDERS);
    if path.exists() { ByOrder::of_journal(&Journal::open(&path, Kind::Orders)?) } else { Ok(None) }
}

fn append(files: &Files, path: &Path, at: u64, bytes: &[u8], readers: Readers) -> Result<(), ArchiveError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut file = files.go_on(path, at, readers).during("open", path)?;
    file.write_all(bytes).during("write", path)?;
    file.sync().during("sync", path)
}

impl Keeper {
    /// Opens or creates the archive, and cuts incomplete data after a crash.
    pub fn open(settings: Settings, files: Files) -> Result<Self, ArchiveError> {
        let root = settings.folder.clone();
        files.create_dir_all(&root).during("create", &root)?;
        let lock =
            RealDisk.lock_dir(&root, LockKind::Exclusive).during("lock (no other process may keep the same archive)", &root)?;
        let mut keeper = Self {
            settings,
            files,
            days: VecDeque::new(),
            closing: VecDeque::new(),
            listings: BTreeMap::new(),
            seen: LogIndex(0),
            seen_time: TimeNs(0),
            durable: LogIndex(0),
            missing: 0,
            by_order: None,
            open: OpenChains::default(),
            _lock: lock,
        };
        let keeps_orders = keeper.settings.orders;
        let names = names(&root)?;
        for name in names.iter().filter(|name| name.ends_with(REMOVED)) {
            let path = root.join(name);
            keeper.files.remove_dir_all(&path).during("remove", &path)?;
        }
        if let Some(newest) = names.iter().filter_map(|name| Day::parse(name)).max() {
            let dir = root.join(newest.to_string());
            let manifest = Manifest::read(&dir)?;
            (keeper.seen, keeper.seen_time) = (LogIndex(manifest.last_log_index), TimeNs(manifest.last_time_ns));
            keeper.learn(read_listings(&dir)?);
            keeper.by_order = if keeps_orders { orders_of_closed(&dir)? } else { None };
        }
        let mut partial: Vec<Day> = names.iter().filter_map(|name| Day::parse(name.strip_suffix(PARTIAL)?)).collect();
        partial.sort_unstable();
        for day in partial {
            keeper.recover(day)?;
        }
        // Before the log's first entry there are no orders.
        if keeps_orders && keeper.seen == LogIndex(0) {
            keeper.by_order = Some(ByOrder::default());
        }
        keeper.durable = keeper.seen;
        keeper.show();
        Ok(keeper)
    }

    fn recover(&mut self, day: Day) -> Result<(), ArchiveError> {
        let dir = self.settings.folder.join(format!("{day}{PARTIAL}"));
        match OpenDay::recover(&dir, day, self.settings.orders)? {
            None => self.files.remove_dir_all(&dir).during("remove", &dir),
            Some(Recovered { open, by_order }) => {
                let has_orders = open.orders_len > 0;
                // Files of an interrupted close, and orders that are not kept any more.
                for name in names(&dir)? {
                    let is_kept = [TRADES, BOOKS, ACCOUNTS, LISTINGS].contains(&name.as_str()) || (has_orders && name == ORDERS);
                    if !is_kept {
                        let path = dir.join(name);
                        self.files.remove_file(&path).during("remove", &path)?;
                    }
                }
                for (name, len) in
                    [(TRADES, open.trades_len), (BOOKS, open.books_len), (ACCOUNTS, open.accounts_len), (ORDERS, open.orders_len)]
                {
                    let path = dir.join(name);
                    if len > 0 {
                        self.files.go_on(&path, len, Readers::Venue).and_then(|file| file.sync()).during("cut", &path)?;
                    }
                }
                self.learn(read_listings(&dir)?);
                self.by_order = by_order;
                if open.last > self.seen {
                    (self.seen, self.seen_time) = (open.last, open.last_time);
                }
                self.show();
                self.closing.extend(self.days.drain(..).map(|ended| ended.day));
                self.days.push_back(open);
                Ok(())
            }
        }
    }

    /// Shows readers what is durable of the days that are open.
    fn show(&mut self) {
        let days = self.days.iter_mut();
        self.open.all(days.map(|day| (day.day, day.accounts_count, std::mem::take(&mut day.changed_heads))));
    }

    /// Where the records of accounts begin, of days that are not closed.
    pub(crate) fn open_chains(&self) -> OpenChains {
        self.open.clone()
    }

    fn learn(&mut self, listings: Vec<Listing>) {
        for listing in listings {
            if self.listings.get(&listing.instrument) != Some(&listing) {
                self.listings.insert(listing.instrument, listing);
                if let Some(day) = self.days.back_mut() {
                    day.has_new_listings = true;
                }
            }
        }
    }

    /// The last entry that is durable in the archive.
    #[must_use]
    pub fn durable(&self) -> LogIndex {
        self.durable
    }

    /// The last entry taken.
    #[must_use]
    pub fn seen(&self) -> LogIndex {
        self.seen
    }

    /// Entries found missing since it was opened.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Bytes taken that are not durable.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.days.iter().map(|day| day.trades.len() + day.books.len() + day.accounts.len() + day.orders.len()).sum()
    }

    /// Takes the next entries into memory, except those that it has.
    pub fn take(&mut self, batch: Batch) {
        let Batch { spans, listings, trades, books, accounts, orders } = batch;
        self.learn(listings);
        let (mut trades, mut books) = (trades.into_iter().peekable(), books.into_iter().peekable());
        let (mut accounts, mut orders) = (accounts.into_iter().peekable(), orders.into_iter().peekable());
        for span in spans {
            let seen = self.seen;
            let is_new = span.last > seen;
            if is_new {
                self.begin(&span);
            }
            while let Some(trade) = trades.next_if(|trade| trade.log_index <= span.last) {
                if let Some(day) = self.days.back_mut().filter(|_| is_new && trade.log_index > seen) {
                    Line::Trade(trade).encode(&mut day.trades);
                }
            }
            while let Some(book) = books.next_if(|book| book.log_index <= span.last) {
                if let Some(day) = self.days.back_mut().filter(|_| is_new && book.log_index > seen) {
                    day.take_book(&book);
                }
            }
            while let Some(recorded) = accounts.next_if(|recorded| recorded.id.log_index <= span.last) {
                if let Some(day) = self.days.back_mut().filter(|_| is_new && recorded.id.log_index > seen) {
                    day.take_account(&recorded);
                }
            }
            let mut records = Vec::new();
            while let Some(note) = orders.next_if(|note| note.log_index <= span.last) {
                if is_new {
                    self.take_note(&note, seen, &mut records);
                }
            }
            if is_new {
                self.end_orders(&mut records);
            }
            if is_new && let Some(day) = self.days.back_mut() {
                (day.last, day.last_time) = (span.last, span.last_time);
                (self.seen, self.seen_time) = (span.last, span.last_time);
            }
        }
    }

    /// Takes what an entry says of orders, unless the archive has that entry.
    fn take_note(&mut self, note: &OrderNote, seen: LogIndex, records: &mut Vec<OrderRecord>) {
        if !self.settings.orders {
            return;
        }
        if let Some(books) = &mut self.by_order {
            if note.log_index > seen {
                books.take(note, records);
            }
        } else if let (OrderSaid::Standing(orders), Some(day)) = (&note.said, self.days.back_mut())
            && note.log_index >= seen
        {
            let books = ByOrder::of_standing(orders);
            day.take_standing(&books, note.log_index, note.time);
            self.by_order = Some(books);
        }
    }

    /// The entries of a span have ended.
    fn end_orders(&mut self, records: &mut Vec<OrderRecord>) {
        if let (Some(books), Some(day)) = (&mut self.by_order, self.days.back_mut()) {
            books.end_entry(records);
            day.take_orders(records);
        }
    }

    /// Makes a span's day the current one, and records missing entries before it.
    fn begin(&mut self, span: &Span) {
        let first = span.first.max(self.seen.next());
        let missing = (first > self.seen.next()).then(|| (self.seen.next(), LogIndex(first.0 - 1)));
        let (seen_time, depth) = (self.seen_time, self.settings.depth);
        let note = |day: &mut OpenDay, time: TimeNs| {
            if let Some((first, last)) = missing {
                Line::Missing { first, last, time }.encode(&mut day.trades);
                // After a gap, the last known snapshots are outdated.
                day.last_books.clear();
            }
        };
        self.missing += missing.map_or(0, |(first, last)| last.0 - first.0 + 1);
        // What stood before missing entries may be gone.
        let lost = if missing.is_some() { self.by_order.take() } else { None };
        let (seen, standing) = (self.seen, self.by_order.as_ref());
        match self.days.back_mut() {
            Some(day) if day.day == span.day => {
                note(day, seen_time);
                if lost.is_some() {
                    let (log_index, time) = (seen, seen_time.max(day.day.start()));
                    day.take_orders(&[OrderRecord { log_index, time, instrument: InstrumentId(0), step: OrderStep::Lost }]);
                }
            }
            before => {
                if let Some(day) = before {
                    note(day, seen_time);
                    // The day must be written once more, although no entry of it came.
                    if missing.is_some() {
                        day.progress = LogIndex(0);
                    }
                }
                let mut day = OpenDay::new(span.day, depth, first);
                note(&mut day, span.day.start());
                if let Some(books) = standing {
                    day.take_standing(books, seen, span.day.start());
                }
                self.days.push_back(day);
            }
        }
    }

    /// Makes the data in memory durable. Data that could not be written stays for the next call.
    pub fn commit(&mut self) -> Result<(), ArchiveError> {
        let Self { settings, files, days, listings, closing, open, .. } = self;
        for day in days.iter_mut().filter(|day| day.has_news()) {
            day.write(files, &settings.folder, listings)?;
        }
        open.all(days.iter_mut().map(|day| (day.day, day.accounts_count, std::mem::take(&mut day.changed_heads))));
        while days.len() > 1 {
            closing.extend(days.pop_front().map(|day| day.day));
        }
        self.durable = self.seen;
        Ok(())
    }

    /// Closes the oldest day that has ended, if any; returns its manifest. After a failure the next call tries again.
    pub fn close_one(&mut self) -> Result<Option<Manifest>, ArchiveError> {
        let Some(&day) = self.closing.front() else { return Ok(None) };
        let root = self.settings.folder.clone();
        let (partial, closed) = (root.join(format!("{day}{PARTIAL}")), root.join(day.to_string()));
        if !partial.exists() && closed.exists() {
            // Renamed by an earlier call, which then failed.
            self.files.sync_dir(&root).during("sync", &root)?;
            self.closing.pop_front();
            self.open.closed(day);
            return Manifest::read(&closed).map(Some);
        }
        let manifest = close(&self.files, &partial, day, &self.settings)?;
        let path = partial.join(MANIFEST);
        self.files.put(&path, &manifest.encode()).during("write", &path)?;
        self.files.rename(&partial, &closed).during("rename to", &closed)?;
        self.files.sync_dir(&root).during("sync", &root)?;
        self.closing.pop_front();
        self.open.closed(day);
        self.remove_before(day)?;
        Ok(Some(manifest))
    }

    fn remove_before(&self, day: Day) -> Result<(), ArchiveError> {
        let (root, keep) = (&self.settings.folder, self.settings.keep_days);
        if keep == 0 {
            return Ok(());
        }
        for old in names(root)?.iter().filter_map(|name| Day::parse(name)).filter(|old| *old <= day.before(keep)) {
            let (path, removed) = (root.join(old.to_string()), root.join(format!("{old}{REMOVED}")));
            self.files.rename(&path, &removed).during("rename to", &removed)?;
            self.files.remove_dir_all(&removed).during("remove", &removed)?;
        }
        self.files.sync_dir(root).during("sync", root)
    }
}

/// Names in a folder.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, ArchiveError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).during("list", dir)? {
        names.extend(entry.during("list", dir)?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}
