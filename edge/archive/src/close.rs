//! Closing a day that has ended: its journals are converted into Parquet tables and DBN files per instrument.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use walras_types::InstrumentId;

use crate::accounts::{ACCOUNTS, AccountsJournal, INDEX, encode_index};
use crate::day::Day;
use crate::dbn::{self, DbnFile, Schema};
use crate::files::{Files, OutFile, Readers};
use crate::journal::{BOOKS, Journal, Kind, Line, TRADES};
use crate::keeper::Settings;
use crate::manifest::{FileEntry, LISTINGS, Manifest, Missing, read_listings};
use crate::orders::{self, ORDERS};
use crate::parquet_file::{BooksTable, OrdersTable, TradesTable};
use crate::record::{Book, Listing, OrderRecord, OrderStep, Trade};
use crate::{ArchiveError, During};

/// Number of instruments whose files are written at a time; each holds a group of rows in memory.
const INSTRUMENTS_AT_ONCE: usize = 32;

/// Bytes that are hashed at a time.
const PIECE_BYTES: usize = 1 << 18;

/// The result of a first pass over the journals.
#[derive(Debug, Default)]
struct Found {
    missing: Vec<Missing>,
    trades: u64,
    books: u64,
    last: (u64, u64),
    by_instrument: BTreeMap<u32, dbn::Extent>,
    /// Whether all that happened to orders is known.
    knows_orders: bool,
}

/// Makes the files of a day next to its journals. Returns its manifest, and does not write it.
pub(crate) fn close(files: &Files, dir: &Path, day: Day, settings: &Settings) -> Result<Manifest, ArchiveError> {
    let journals = Journals {
        trades: Journal::open(&dir.join(TRADES), Kind::Trades)?,
        books: Journal::open(&dir.join(BOOKS), Kind::Books)?,
        orders: dir.join(ORDERS).exists().then(|| Journal::open(&dir.join(ORDERS), Kind::Orders)).transpose()?,
    };
    let Journals { trades, books, orders } = &journals;
    let found = look(&journals)?;
    let listings = read_listings(dir)?;
    let mut entries = Vec::new();
    for (name, rows) in [
        (TRADES, trades.count()),
        (BOOKS, books.count()),
        (ORDERS, orders.as_ref().map_or(0, Journal::count)),
        (LISTINGS, listings.len() as u64),
    ] {
        // A day before the first instrument has no listings.
        if dir.join(name).exists() {
            entries.push(hashed(dir, name, rows)?);
        }
    }
    let mut private = Vec::new();
    if let Some(accounts) = AccountsJournal::open(&dir.join(ACCOUNTS))? {
        let index = encode_index(&accounts.each(|_| ())?);
        let path = dir.join(INDEX);
        let mut file = files.go_on(&path, 0, Readers::Venue).during("create", &path)?;
        file.write_all(&index).and_then(|()| file.sync()).during("write", &path)?;
        private = vec![hashed(dir, INDEX, 0)?, hashed(dir, ACCOUNTS, accounts.count)?];
    }
    let mut notes = Vec::new();
    if settings.orders && !found.knows_orders {
        let why = "entries are missing, or the archive did not keep them from the day's beginning on";
        notes.push(format!("orders: not all that happened to them is known: {why}"));
    }
    let known: Vec<&Listing> = listings.iter().filter(|listing| found.by_instrument.contains_key(&listing.instrument)).collect();
    for some in known.chunks(INSTRUMENTS_AT_ONCE) {
        let mut exports = Vec::new();
        for listing in some {
            exports.push(Export::create(
                files,
                dir,
                day,
                listing,
                &found.by_instrument[&listing.instrument],
                settings,
                &mut notes,
            )?);
        }
        let place = |id: InstrumentId| some.iter().position(|listing| listing.instrument == id.0);
        trades.lines(0, |_, line| {
            if let Line::Trade(trade) = line
                && let Some(at) = place(trade.instrument)
            {
                exports[at].trade(&trade)?;
            }
            Ok(true)
        })?;
        books.books(0, |_, book| {
            if let Some(at) = place(book.instrument) {
                exports[at].book(&book)?;
            }
            Ok(true)
        })?;
        if let Some(orders) = orders {
            orders::read(orders, |_, record| {
                if record.step.is_of_all() {
                    exports.iter_mut().try_for_each(|export| export.order(&record))?;
                } else if let Some(at) = place(record.instrument) {
                    exports[at].order(&record)?;
                }
                Ok(true)
            })?;
        }
        for export in exports {
            export.finish(&mut entries)?;
        }
    }
    files.sync_dir(dir).during("sync", dir)?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Manifest {
        version: Manifest::VERSION,
        day: day.to_string(),
        complete: found.missing.is_empty(),
        missing: found.missing,
        first_log_index: trades.header().first.0,
        last_log_index: found.last.0,
        last_time_ns: found.last.1,
        trades: found.trades,
        books: found.books,
        depth: books.header().depth,
        files: entries,
        private,
        notes,
    })
}

/// A day's journals that are made into files.
struct Journals {
    trades: Journal,
    books: Journal,
    orders: Option<Journal>,
}

fn look(Journals { trades, books, orders }: &Journals) -> Result<Found, ArchiveError> {
    let mut found = Found { books: books.count(), ..Found::default() };
    trades.lines(0, |_, line| {
        match line {
            Line::Trade(trade) => {
                found.trades += 1;
                found.by_instrument.entry(trade.instrument.0).or_default().trade(&trade);
            }
            Line::Progress { last, time, .. } => found.last = (last.0, time.0),
            Line::Missing { first, last, .. } => found.missing.push(Missing { first: first.0, last: last.0 }),
        }
        Ok(true)
    })?;
    books.books(0, |_, book| {
        found.by_instrument.entry(book.instrument.0).or_default().book(&book);
        Ok(true)
    })?;
    if let Some(orders) = orders {
        let first = trades.header().first;
        orders::read(orders, |at, record| {
            if at == 0 {
                found.knows_orders = record.step == OrderStep::Cleared && record.log_index.next() == first;
            }
            found.knows_orders &= record.step != OrderStep::Lost;
            if !record.step.is_of_all() {
                found.by_instrument.entry(record.instrument.0).or_default().order(&record);
            }
            Ok(true)
        })?;
    }
    Ok(found)
}

/// Length and hash of a file on the disk.
pub(crate) fn hashed(dir: &Path, name: &str, rows: u64) -> Result<FileEntry, ArchiveError> {
    let path = dir.join(name);
    let mut file = std::fs::File::open(&path).during("open", &path)?;
    let (mut hasher, mut bytes, mut piece) = (blake3::Hasher::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        let count = file.read(&mut piece).during("read", &path)?;
        if count == 0 {
            break;
        }
        hasher.update(&piece[..count]);
        bytes += count as u64;
    }
    Ok(FileEntry { name: name.to_owned(), bytes, rows, blake3: hasher.finalize().to_hex().to_string() })
}

/// The files of one instrument.
#[derive(Default)]
struct Export {
    trades: Option<(String, TradesTable)>,
    books: Option<(String, BooksTable)>,
    orders: Option<(String, OrdersTable)>,
    dbn_trades: Option<(String, DbnFile)>,
    dbn_books: Option<(String, DbnFile)>,
    dbn_orders: Option<(String, DbnFile)>,
    definition: Option<(String, DbnFile)>,
}

impl Export {
    fn create(
        files: &Files,
        dir: &Path,
        day: Day,
        listing: &Listing,
        extent: &dbn::Extent,
        settings: &Settings,
        notes: &mut Vec<String>,
    ) -> Result<Self, ArchiveError> {
        let stem = listing.file_stem();
        let create = |ending: &str| {
            let name = format!("{stem}.{ending}");
            let path = dir.join(&name);
            files.create(&path).during("create", &path).map(|file| (name, path, file))
        };
        let mut export = Self::default();
        if settings.parquet && extent.trades > 0 {
            let (name, path, file) = create("trades.parquet")?;
            export.trades = Some((name, TradesTable::new(file, path, day, listing)?));
        }
        if settings.parquet && extent.books > 0 {
            let (name, path, file) = create("books.parquet")?;
            export.books = Some((name, BooksTable::new(file, path, day, listing)?));
        }
        if settings.parquet && extent.orders > 0 {
            let (name, path, file) = create("orders.parquet")?;
            export.orders = Some((name, OrdersTable::new(file, path, day, listing)?));
        }
        if !settings.dbn {
            return Ok(export);
        }
        let unit = match extent.dbn_unit(listing) {
            Ok(unit) => unit,
            Err(why) => {
                notes.push(format!("{}: no DBN files: {why}", listing.symbol));
                return Ok(export);
            }
        };
        let form = settings.dbn_form;
        for (schema, count, place) in [
            (Schema::Trades, extent.trades, &mut export.dbn_trades),
            (Schema::Mbp10, extent.books, &mut export.dbn_books),
            (Schema::Mbo, extent.orders, &mut export.dbn_orders),
            (Schema::Definition, 1, &mut export.definition),
        ] {
            if count > 0 {
                let (name, path, file) = create(&format!("{}.{}", schema.name(), form.ending()))?;
                *place = Some((name, DbnFile::new(file, path, schema, day, listing, (unit, form))?));
            }
        }
        if let Some((_, file)) = &mut export.definition {
            file.definition(listing, day);
        }
        Ok(export)
    }

    fn trade(&mut self, trade: &Trade) -> Result<(), ArchiveError> {
        if let Some((_, table)) = &mut self.trades {
            table.push(trade)?;
        }
        self.dbn_trades.as_mut().map_or(Ok(()), |(_, file)| file.trade(trade))
    }

    fn book(&mut self, book: &Book) -> Result<(), ArchiveError> {
        if let Some((_, table)) = &mut self.books {
            table.push(book)?;
        }
        self.dbn_books.as_mut().map_or(Ok(()), |(_, file)| file.book(book))
    }

    fn order(&mut self, record: &OrderRecord) -> Result<(), ArchiveError> {
        if let Some((_, table)) = &mut self.orders {
            table.push(record)?;
        }
        self.dbn_orders.as_mut().map_or(Ok(()), |(_, file)| file.order(record))
    }

    fn finish(self, entries: &mut Vec<FileEntry>) -> Result<(), ArchiveError> {
        let Self { trades, books, orders, dbn_trades, dbn_books, dbn_orders, definition } = self;
        let mut finished = Vec::new();
        if let Some((name, table)) = trades {
            finished.push((name, table.finish()?));
        }
        if let Some((name, table)) = books {
            finished.push((name, table.finish()?));
        }
        if let Some((name, table)) = orders {
            finished.push((name, table.finish()?));
        }
        for (name, file) in [dbn_trades, dbn_books, dbn_orders, definition].into_iter().flatten() {
            finished.push((name, file.finish()?));
        }
        for (name, (rows, file)) in finished {
            entries.push(synced(name, rows, file)?);
        }
        Ok(())
    }
}

fn synced(name: String, rows: u64, mut file: OutFile) -> Result<FileEntry, ArchiveError> {
    file.flush().and_then(|()| file.sync()).during("sync", Path::new(&name))?;
    let (bytes, blake3) = file.digest();
    Ok(FileEntry { name, bytes, rows, blake3 })
}
