//! The journals of a day, from which queries are answered and exports are made. Records have a fixed length, so a time is found by
//! bisection. The records of orders are those of `orders.rs`.
//!
//! ```text
//! trades.journal: 64 bytes each                        books.journal: 32 + 48 * depth bytes each
//!  0 kind u8: 1 trade, 2 progress, 3 missing             0 zeros u32
//!  1 side u8: 0 auction, 1 buy, 2 sell           4 instrument u32
//!  4 instrument u32                                     8 log_index u64
//!  8 log_index u64                                     16 time_ns u64
//! 16 time_ns u64                                       24 bids, then asks: `depth` levels each of price u64, size u64,
//! 24 trade_id u64                                         orders u32, zeros u32; price 0 where there is none
//! 32 price_ticks u64                                   .. zeros u32, CRC32C of all before it
//! 40 size_lots u64
//! 48 zeros, 60 CRC32C of bytes 0..60
//! ```
//!
//! Each begins with a header of 64 bytes: magic, version u32, depth u32, day u32, zeros, the day's first log_index u64 at 24,
//! CRC32C at 60. All numbers are little-endian. A *progress* says that all entries up to `log_index` are in, how many books (in
//! `trade_id`), how many records of accounts (in `price_ticks`, see `accounts.rs`), and how many of orders (in `size_lots`); a *missing*
//! that the entries from `trade_id` to `log_index` are not.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use walras_types::{InstrumentId, LogIndex, PriceTicks, Side, SizeLots, TimeNs, TradeId};

use crate::day::Day;
use crate::record::{Book, Level, Trade};
use crate::{ArchiveError, During};

pub(crate) const TRADES: &str = "trades.journal";
pub(crate) const BOOKS: &str = "books.journal";
/// Levels of a side in a snapshot, at most.
pub(crate) const DEPTH_MAX: u32 = 1_000;

const VERSION: u32 = 1;
pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const LINE_BYTES: usize = 64;
const LEVEL_BYTES: usize = 24;
/// Bytes of one read of a reader.
const WINDOW_BYTES: usize = 1 << 18;

/// One record of the trades' journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Trade(Trade),
    Progress { last: LogIndex, time: TimeNs, books: u64, accounts: u64, orders: u64 },
    Missing { first: LogIndex, last: LogIndex, time: TimeNs },
}

/// What a journal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Trades,
    Books,
    Orders,
}

/// The kind of a journal, and its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) depth: u32,
    pub(crate) day: Day,
    pub(crate) first: LogIndex,
}

impl Header {
    fn magic(self) -> &'static [u8; 8] {
        match self.kind {
            Kind::Trades => b"WALRASTR",
            Kind::Books => b"WALRASBK",
            Kind::Orders => b"WALRASOR",
        }
    }

    pub(crate) fn record_bytes(self) -> usize {
        match self.kind {
            Kind::Books => book_bytes(self.depth),
            Kind::Trades | Kind::Orders => LINE_BYTES,
        }
    }

    pub(crate) fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(self.magic());
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.depth.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.day.number().to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.0.to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES], kind: Kind) -> Result<Self, String> {
        let header =
            Self { kind, depth: half(bytes, 12), day: Day::from_number(half(bytes, 16)), first: LogIndex(word(bytes, 24)) };
        if &bytes[..8] != header.magic() || !is_sealed(bytes) {
            return Err("its header is not one".to_owned());
        }
        if half(bytes, 8) != VERSION {
            return Err(format!("it is of version {}, and this program reads version {VERSION}", half(bytes, 8)));
        }
        if !(1..=DEPTH_MAX).contains(&header.depth) || header.day.number() > 213_503 {
            return Err("its header has impossible values".to_owned());
        }
        Ok(header)
    }
}

/// Whole records in so many bytes of a journal of lines.
pub(crate) fn lines_in(len: u64) -> u64 {
    len.saturating_sub(HEADER_BYTES as u64) / LINE_BYTES as u64
}

pub(crate) fn book_bytes(depth: u32) -> usize {
    32 + 2 * depth as usize * LEVEL_BYTES
}

pub(crate) fn seal(bytes: &mut [u8]) {
    let at = bytes.len() - 4;
    let crc = crc32c::crc32c(&bytes[..at]);
    bytes[at..].copy_from_slice(&crc.to_le_bytes());
}

pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.split_last_chunk::<4>().is_some_and(|(all, crc)| u32::from_le_bytes(*crc) == crc32c::crc32c(all))
}

pub(crate) fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("fields lie inside of a record"))
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("fields lie inside of a record"))
}

pub(crate) fn price(ticks: u64) -> Option<PriceTicks> {
    i64::try_from(ticks).ok().and_then(PriceTicks::new)
}

impl Line {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let mut bytes = [0; LINE_BYTES];
        let words = match self {
            Self::Trade(t) => {
                bytes[0] = 1;
                bytes[1] = match t.taker_side {
                    None => 0,
                    Some(Side::Buy) => 1,
                    Some(Side::Sell) => 2,
                };
                bytes[4..8].copy_from_slice(&t.instrument.0.to_le_bytes());
                [t.log_index.0, t.time.0, t.trade_id.0, t.price.get().unsigned_abs(), t.size.get()]
            }
            Self::Progress { last, time, books, accounts, orders } => {
                bytes[0] = 2;
                [last.0, time.0, books, accounts, orders]
            }
            Self::Missing { first, last, time } => {
                bytes[0] = 3;
                [last.0, time.0, first.0, 0, 0]
            }
        };
        for (place, value) in bytes[8..48].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        seal(&mut bytes);
        out.extend_from_slice(&bytes);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (log_index, time, third) = (LogIndex(word(bytes, 8)), TimeNs(word(bytes, 16)), word(bytes, 24));
        match bytes[0] {
            1 => Some(Self::Trade(Trade {
                log_index,
                time,
                instrument: InstrumentId(half(bytes, 4)),
                trade_id: TradeId(third),
                price: price(word(bytes, 32))?,
                size: SizeLots::new(word(bytes, 40)),
                taker_side: match bytes[1] {
                    0 => None,
                    1 => Some(Side::Buy),
                    2 => Some(Side::Sell),
                    _ => return None,
                },
            })),
            2 => {
                let (accounts, orders) = (word(bytes, 32), word(bytes, 40));
                Some(Self::Progress { last: log_index, time, books: third, accounts, orders })
            }
            3 => Some(Self::Missing { first: LogIndex(third), last: log_index, time }),
            _ => None,
        }
    }
}

pub(crate) fn encode_book(book: &Book, depth: u32, out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + book_bytes(depth), 0);
    let bytes = &mut out[at..];
    bytes[4..8].copy_from_slice(&book.instrument.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&book.log_index.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&book.time.0.to_le_bytes());
    let (bids, asks) = bytes[24..].split_at_mut(depth as usize * LEVEL_BYTES);
    for (side, levels) in [(bids, &book.bids), (asks, &book.asks)] {
        for (place, level) in side.chunks_exact_mut(LEVEL_BYTES).zip(levels.iter().take(depth as usize)) {
            place[..8].copy_from_slice(&level.price.get().to_le_bytes());
            place[8..16].copy_from_slice(&level.size.get().to_le_bytes());
            place[16..20].copy_from_slice(&level.order_count.to_le_bytes());
        }
    }
    seal(bytes);
}

fn decode_book(bytes: &[u8], depth: u32) -> Book {
    let side = |levels: &[u8]| {
        let level = |bytes: &[u8]| {
            Some(Level { price: price(word(bytes, 0))?, size: SizeLots::new(word(bytes, 8)), order_count: half(bytes, 16) })
        };
        levels.chunks_exact(LEVEL_BYTES).map_while(level).collect()
    };
    let (bids, rest) = bytes[24..].split_at(depth as usize * LEVEL_BYTES);
    let asks = &rest[..depth as usize * LEVEL_BYTES];
    Book {
        instrument: InstrumentId(half(bytes, 4)),
        log_index: LogIndex(word(bytes, 8)),
        time: TimeNs(word(bytes, 16)),
        bids: side(bids),
        asks: side(asks),
    }
}

/// A journal opened for reading. Records appended later are not seen.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    header: Header,
    count: u64,
}

impl Journal {
    pub(crate) fn open(path: &Path, kind: Kind) -> Result<Self, ArchiveError> {
        let file = File::open(path).during("open", path)?;
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0).during("read the header of", path)?;
        let header = Header::decode(&bytes, kind).map_err(|what| ArchiveError::damaged(path, what))?;
        let len = file.metadata().during("read the length of", path)?.len();
        let count = len.saturating_sub(HEADER_BYTES as u64) / header.record_bytes() as u64;
        Ok(Self { path: path.to_path_buf(), file, header, count })
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// Number of complete records.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Limits it to this number of records.
    pub(crate) fn cut(mut self, count: u64) -> Self {
        self.count = self.count.min(count);
        self
    }

    /// Length in bytes of this number of records.
    pub(crate) fn len_of(&self, count: u64) -> u64 {
        HEADER_BYTES as u64 + count * self.header.record_bytes() as u64
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<(), ArchiveError> {
        self.file.read_exact_at(buffer, self.len_of(at)).during("read", &self.path)
    }

    fn check<'a>(&self, at: u64, bytes: &'a [u8]) -> Result<&'a [u8], ArchiveError> {
        if is_sealed(bytes) { Ok(bytes) } else { Err(self.damage(at)) }
    }

    pub(crate) fn damage(&self, at: u64) -> ArchiveError {
        ArchiveError::damaged(&self.path, format!("the checksum of record {at} does not match its bytes"))
    }

    fn time(&self, at: u64) -> Result<TimeNs, ArchiveError> {
        let mut bytes = vec![0; self.header.record_bytes()];
        self.read(at, &mut bytes)?;
        Ok(TimeNs(word(self.check(at, &bytes)?, 16)))
    }

    /// The first record that is not before `time`.
    pub(crate) fn position(&self, time: TimeNs) -> Result<u64, ArchiveError> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time(middle)? < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Calls `each` with the records from `from` on, until it returns `false`.
    pub(crate) fn each(
        &self,
        from: u64,
        mut each: impl FnMut(u64, &[u8]) -> Result<bool, ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let record = self.header.record_bytes();
        let window = (WINDOW_BYTES / record).max(1) as u64;
        let (mut at, mut buffer) = (from, Vec::new());
        while at < self.count {
            let count = window.min(self.count - at);
            buffer.resize(usize::try_from(count).expect("a window is small") * record, 0);
            self.read(at, &mut buffer)?;
            for bytes in buffer.chunks_exact(record) {
                if !each(at, self.check(at, bytes)?)? {
                    return Ok(());
                }
                at += 1;
            }
        }
        Ok(())
    }

    /// Reads the trades' journal from `from` on, until `each` returns `false`.
    pub(crate) fn lines(
        &self,
        from: u64,
        mut each: impl FnMut(u64, Line) -> Result<bool, ArchiveError>,
    ) -> Result<(), ArchiveError> {
        self.each(from, |at, bytes| each(at, Line::decode(bytes).ok_or_else(|| self.damage(at))?))
    }

    /// Reads the book snapshots from `from` on, until `each` returns `false`.
    pub(crate) fn books(
        &self,
        from: u64,
        mut each: impl FnMut(u64, Book) -> Result<bool, ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let depth = self.header.depth;
        self.each(from, |at, bytes| each(at, decode_book(bytes, depth)))
    }

    /// The last book snapshot of an instrument among the `max` records before `end`.
    pub(crate) fn book_before(&self, end: u64, instrument: InstrumentId, max: u64) -> Result<Option<Book>, ArchiveError> {
        let record = self.header.record_bytes();
        let window = (WINDOW_BYTES / record).max(1) as u64;
        let (mut end, floor) = (end.min(self.count), end.min(self.count).saturating_sub(max));
        let mut buffer = Vec::new();
        while end > floor {
            let count = window.min(end - floor);
            buffer.resize(usize::try_from(count).expect("a window is small") * record, 0);
            self.read(end - count, &mut buffer)?;
            for (back, bytes) in (1..).zip(buffer.chunks_exact(record).rev()) {
                let at = end - back;
                if half(self.check(at, bytes)?, 4) == instrument.0 {
                    return Ok(Some(decode_book(bytes, self.header.depth)));
                }
            }
            end -= count;
        }
        Ok(None)
    }

    /// Position and content of the last progress record whose book snapshots, records of accounts and records of orders exist, according to
    /// `is_there`. Records after the last sync may be damaged.
    pub(crate) fn last_progress(&self, is_there: impl Fn(u64, u64, u64) -> bool) -> Result<Option<(u64, Line)>, ArchiveError> {
        let mut bytes = [0; LINE_BYTES];
        for at in (0..self.count).rev() {
            self.read(at, &mut bytes)?;
            if is_sealed(&bytes)
                && let Some(line @ Line::Progress { books, accounts, orders, .. }) = Line::decode(&bytes)
                && is_there(books, accounts, orders)
            {
                return Ok(Some((at, line)));
            }
        }
        Ok(None)
    }
}

/// Whether the trades' journal has any intact record, even if its header is damaged.
pub(crate) fn holds_any(path: &Path) -> Result<bool, ArchiveError> {
    let bytes = std::fs::read(path).during("read", path)?;
    let behind = bytes.get(HEADER_BYTES..).unwrap_or_default();
    Ok(behind.chunks_exact(LINE_BYTES).any(|line| is_sealed(line) && Line::decode(line).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(n: i64) -> PriceTicks {
        PriceTicks::new(n).unwrap()
    }

    #[test]
    fn lines_and_books_read_back_and_no_byte_may_change() {
        let trade = |taker_side| {
            Line::Trade(Trade {
                log_index: LogIndex(7),
                time: TimeNs(u64::MAX),
                instrument: InstrumentId(3),
                trade_id: TradeId(9),
                price: PriceTicks::MAX,
                size: SizeLots::new(1),
                taker_side,
            })
        };
        let lines = [
            trade(None),
            trade(Some(Side::Buy)),
            trade(Some(Side::Sell)),
            Line::Progress { last: LogIndex(8), time: TimeNs(3), books: 5, accounts: 6, orders: 7 },
            Line::Missing { first: LogIndex(2), last: LogIndex(8), time: TimeNs(3) },
        ];
        for line in lines {
            let mut bytes = Vec::new();
            line.encode(&mut bytes);
            assert!(is_sealed(&bytes));
            assert_eq!(Line::decode(&bytes), Some(line));
            for at in 0..bytes.len() {
                bytes[at] ^= 1;
                assert!(!is_sealed(&bytes), "{line:?}: byte {at}");
                bytes[at] ^= 1;
            }
        }
        let level = |n: i64| Level { price: ticks(n), size: SizeLots::new(n.unsigned_abs() * 10), order_count: 2 };
        let book = Book {
            log_index: LogIndex(1),
            time: TimeNs(2),
            instrument: InstrumentId(3),
            bids: vec![level(9), level(8), level(7)],
            asks: vec![level(10)],
        };
        let mut bytes = Vec::new();
        encode_book(&book, 2, &mut bytes);
        assert!(bytes.len() == book_bytes(2) && is_sealed(&bytes));
        assert_eq!(decode_book(&bytes, 2), Book { bids: vec![level(9), level(8)], ..book.clone() }, "no deeper than the journal");
        bytes.clear();
        encode_book(&book, 5, &mut bytes);
        assert_eq!(decode_book(&bytes, 5), book);
    }
}
