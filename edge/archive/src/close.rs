//! Closing a day that has ended: its journals are converted into Parquet tables and DBN files per instrument.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use walras_types::InstrumentId;

use crate::accounts::{ACCOUNTS, AccountsJournal, INDEX, encode_index};
use crate::day::Day;
use crate::dbn::{self, DbnFile, Schema};
use crate::files::{Files, OutFile, Readers};
use crate::journal::{BOOKS, Journal, Line, TRADES};
use crate::keeper::Settings;
use crate::manifest::{FileEntry, LISTINGS, Manifest, Missing, read_listings};
use crate::parquet_file::{BooksTable, TradesTable};
use crate::record::{Book, Listing, Trade};
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
}

/// Makes the files of a day next to its journals. Returns its manifest, and does not write it.
pub(crate) fn close(files: &Files, dir: &Path, day: Day, settings: &Settings) -> Result<Manifest, ArchiveError> {
    let (trades, books) = (Journal::open(&dir.join(TRADES), false)?, Journal::open(&dir.join(BOOKS), true)?);
    let found = look(&trades, &books)?;
    let listings = read_listings(dir)?;
    let mut entries = Vec::new();
    for (name, rows) in [(TRADES, trades.count()), (BOOKS, books.count()), (LISTINGS, listings.len() as u64)] {
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

fn look(trades: &Journal, books: &Journal) -> Result<Found, ArchiveError> {
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
struct Export {
    trades: Option<(String, TradesTable)>,
    books: Option<(String, BooksTable)>,
    dbn_trades: Option<(String, DbnFile)>,
    dbn_books: Option<(String, DbnFile)>,
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
        let mut export = Self { trades: None, books: None, dbn_trades: None, dbn_books: None };
        if settings.parquet && extent.trades > 0 {
            let (name, path, file) = create("trades.parquet")?;
            export.trades = Some((name, TradesTable::new(file, path, day, listing)?));
        }
        if settings.parquet && extent.books > 0 {
            let (name, path, file) = create("books.parquet")?;
            export.books = Some((name, BooksTable::new(file, path, day, listing)?));
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
        for (schema, count, ending, place) in [
            (Schema::Trades, extent.trades, "trades.dbn", &mut export.dbn_trades),
            (Schema::Mbp10, extent.books, "mbp-10.dbn", &mut export.dbn_books),
        ] {
            if count > 0 {
                let (name, path, file) = create(ending)?;
                *place = Some((name, DbnFile::new(file, path, schema, day, listing, unit)?));
            }
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

    fn finish(self, entries: &mut Vec<FileEntry>) -> Result<(), ArchiveError> {
        let Self { trades, books, dbn_trades, dbn_books } = self;
        let mut finished = Vec::new();
        if let Some((name, table)) = trades {
            finished.push((name, table.finish()?));
        }
        if let Some((name, table)) = books {
            finished.push((name, table.finish()?));
        }
        for (name, file) in [dbn_trades, dbn_books].into_iter().flatten() {
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
