//! What an archive reads of its own disk: the journals of a day.

use std::path::Path;

use walras_archive::{Book, DbnForm, Files, History, Keeper, Settings, Trade, TradesQuery, verify_day};
use walras_types::{InstrumentId, LogIndex, TimeNs};

/// The day of the seeds.
pub const DAY: &str = "2026-11-20";
const NEXT_DAY: &str = "2026-11-21";
/// Its only instrument, as it is listed.
const LISTINGS: &str = r#"[{"instrument": 0, "symbol": "BTC/USD", "base": "BTC", "quote": "USD", "tick": "0.5", "lot": "0.001"}]"#;

const HEADER: usize = 64;
const LINE: usize = 64;

/// Both journals as one input: the length of the first in two bytes, the first, the second.
#[must_use]
pub fn join(trades: &[u8], books: &[u8]) -> Vec<u8> {
    let length = u16::try_from(trades.len()).unwrap_or(u16::MAX);
    [&length.to_le_bytes()[..], &trades[..usize::from(length)], books].concat()
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    Some(rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len())))
}

/// Journals: the bytes as they are, then again with the checksums that make every record whole, so that what lies behind them is
/// reached. Whatever they are, questions are answered or refused; nothing is read that is no whole record; and an archive that
/// opens them goes on, closes their day, or says why it cannot.
pub fn journals(bytes: &[u8]) {
    let Some((trades, books)) = split(bytes) else { return };
    look(trades, books);
    let book = book_bytes(books);
    look(&sealed(trades, LINE), &sealed(books, book));
}

/// The length of a picture, as the header says; that of a line where it says none that can be.
fn book_bytes(books: &[u8]) -> usize {
    let depth = books.get(12..16).and_then(|field| field.first_chunk()).map(|field| u32::from_le_bytes(*field));
    depth.filter(|depth| (1..=1_000).contains(depth)).map_or(LINE, |depth| 32 + 48 * depth as usize)
}

/// Every whole record, and the header, with its checksum.
fn sealed(journal: &[u8], record: usize) -> Vec<u8> {
    let mut journal = journal.to_vec();
    let at = HEADER.min(journal.len());
    let (header, records) = journal.split_at_mut(at);
    for bytes in std::iter::once(header).chain(records.chunks_exact_mut(record)) {
        if let Some((body, seal)) = bytes.split_last_chunk_mut::<4>() {
            *seal = crc32c::crc32c(body).to_le_bytes();
        }
    }
    journal
}

/// Whether a journal has this record, whole: with these fields (by place) and its checksum.
fn holds(journal: &[u8], record: usize, fields: &[(usize, &[u8])]) -> bool {
    let records = journal.get(HEADER..).unwrap_or_default().chunks_exact(record);
    records
        .filter(|bytes| bytes.split_last_chunk::<4>().is_some_and(|(body, seal)| crc32c::crc32c(body) == u32::from_le_bytes(*seal)))
        .any(|bytes| fields.iter().all(|(at, field)| bytes[*at..].starts_with(field)))
}

fn check_trade(trades: &[u8], trade: &Trade) {
    let (price, size) = (trade.price.get().to_le_bytes(), trade.size.get().to_le_bytes());
    let [index, time, id] = [trade.log_index.0, trade.time.0, trade.trade_id.0].map(u64::to_le_bytes);
    let instrument = trade.instrument.0.to_le_bytes();
    let fields: [(usize, &[u8]); 7] = [(0, &[1]), (4, &instrument), (8, &index), (16, &time), (24, &id), (32, &price), (40, &size)];
    assert!(holds(trades, LINE, &fields), "{trade:?} is no whole record");
}

fn check_book(books: &[u8], book: &Book) {
    let [index, time] = [book.log_index.0, book.time.0].map(u64::to_le_bytes);
    let fields: [(usize, &[u8]); 3] = [(4, &book.instrument.0.to_le_bytes()), (8, &index), (16, &time)];
    assert!(holds(books, book_bytes(books), &fields), "{book:?} is no whole record");
}

fn ask(root: &Path, trades: &[u8], books: &[u8]) {
    let history = History::new(root);
    for instrument in [0, 1].map(InstrumentId) {
        for from in [0, 1_795_212_000_000_000_000, u64::MAX - 1].map(TimeNs) {
            let query = TradesQuery { instrument, from, to: TimeNs(u64::MAX), limit: 5, after: None };
            if let Ok(page) = history.trades(&query) {
                assert!(page.trades.len() <= 5);
                page.trades.iter().for_each(|trade| check_trade(trades, trade));
            }
            if let Ok(Some(book)) = history.book_at(instrument, from) {
                check_book(books, &book);
            }
        }
    }
    // An error says why; that is all.
    let _ = (history.days().is_ok(), history.listings().is_ok());
}

fn look(trades: &[u8], books: &[u8]) {
    // In memory where there is such a place: every file is synced.
    let Ok(root) = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()) else { return };
    let root = root.path();
    let dir = root.join(format!("{DAY}.partial"));
    let written = std::fs::create_dir(&dir)
        .and_then(|()| std::fs::write(dir.join("trades.journal"), trades))
        .and_then(|()| std::fs::write(dir.join("books.journal"), books))
        .and_then(|()| std::fs::write(dir.join("instruments.json"), LISTINGS));
    if written.is_err() {
        return;
    }
    ask(root, trades, books);
    let settings = Settings {
        folder: root.to_path_buf(),
        depth: 1,
        snapshot_every_ns: 1,
        parquet: true,
        dbn: true,
        dbn_form: DbnForm::default(),
        orders: false,
        keep_days: 0,
    };
    let Ok(mut keeper) = Keeper::open(settings, Files::default()) else { return };
    // What it kept is what it has for good: it ends with a whole record that says so.
    let kept = std::fs::read(dir.join("trades.journal")).unwrap_or_default();
    if keeper.seen() > LogIndex(0) {
        assert!(kept.len() % LINE == 0 && trades.starts_with(&kept), "it kept what was not there");
        assert!(holds(&kept, LINE, &[(0, &[2]), (8, &keeper.seen().0.to_le_bytes())]), "it has more than its progress says");
    }
    if keeper.seen() > LogIndex(u64::MAX / 2) {
        // No log gets there.
        return;
    }
    // The next day begins, if it can.
    let (first, Some(day)) = (keeper.seen().next(), walras_archive::Day::parse(NEXT_DAY)) else { return };
    let span = walras_archive::Span { day, first, last: first, last_time: day.start() };
    keeper.take(walras_archive::Batch { spans: vec![span], ..walras_archive::Batch::default() });
    if keeper.commit().is_ok() && matches!(keeper.close_one(), Ok(Some(_))) {
        // A reader learns whether its records are in order.
        let _ = verify_day(&root.join(DAY)).is_ok();
        ask(root, trades, books);
    }
}
