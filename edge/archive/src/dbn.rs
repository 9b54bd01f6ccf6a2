//! A day's trades and book snapshots of one instrument in Databento's binary encoding, version 3, for the many programs that read
//! that.
//!
//! Written from the public documentation of the encoding: a header (`DBN`, version, length, dataset, schema, times, symbols and
//! what they stand for), then records of one length, little-endian. Prices there are integers of 10^-9, sizes 32 bits: an
//! instrument whose prices or sizes of the day do not fit exactly has no such file, and the manifest says so. Sizes are in lots.

use std::io::Write;
use std::path::PathBuf;

use walras_types::{LogIndex, Side, TimeNs};

use crate::day::Day;
use crate::files::OutFile;
use crate::record::{Book, Level, Listing, Trade};
use crate::{ArchiveError, During};

const VERSION: u8 = 3;
const DATASET: &str = "WALRAS";
const DATASET_BYTES: usize = 16;
const SYMBOL_BYTES: usize = 71;
const RESERVED_BYTES: usize = 53;
/// Symbols by their name, and by the number in the records.
const RAW_SYMBOL: u8 = 1;
const INSTRUMENT_ID: u8 = 0;

const TRADE_BYTES: usize = 48;
const LEVELS: usize = 10;
const MBP10_BYTES: usize = TRADE_BYTES + LEVELS * 32;
const UNDEFINED_PRICE: i64 = i64::MAX;
const LAST_OF_EVENT: u8 = 1 << 7;
const SNAPSHOT: u8 = 1 << 5;
/// Digits behind the point of a price.
const PRICE_DECIMALS: u32 = 9;
/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 18;

/// What a file's records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    Mbp10 = 2,
    Trades = 4,
}

impl Schema {
    fn record_type(self) -> u8 {
        match self {
            Self::Trades => 0x00,
            Self::Mbp10 => 0x0A,
        }
    }
}

/// The greatest numbers of an instrument's day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) trades: u64,
    pub(crate) books: u64,
    ticks_max: i64,
    lots_max: u64,
}

impl Extent {
    pub(crate) fn trade(&mut self, trade: &Trade) {
        self.trades += 1;
        self.ticks_max = self.ticks_max.max(trade.price.get());
        self.lots_max = self.lots_max.max(trade.size.get());
    }

    pub(crate) fn book(&mut self, book: &Book) {
        self.books += 1;
        for level in book.bids.iter().take(LEVELS).chain(book.asks.iter().take(LEVELS)) {
            self.ticks_max = self.ticks_max.max(level.price.get());
            self.lots_max = self.lots_max.max(level.size.get());
        }
    }

    /// What a tick is in units of 10^-9, if all prices and sizes fit; why not, if they do not.
    pub(crate) fn dbn_unit(&self, listing: &Listing) -> Result<i64, &'static str> {
        let (tick, _) = listing.steps().ok_or("one tick is no decimal of 38 digits")?;
        let missing = PRICE_DECIMALS.checked_sub(tick.decimals).ok_or("its prices have more than 9 decimals")?;
        let unit = tick.mantissa.checked_mul(10_i128.pow(missing)).and_then(|unit| i64::try_from(unit).ok());
        let fits = |unit: &i64| unit.checked_mul(self.ticks_max).is_some_and(|price| price < UNDEFINED_PRICE);
        let unit = unit.filter(fits).ok_or("a price of the day is above 9223372036")?;
        if self.lots_max < u64::from(u32::MAX) { Ok(unit) } else { Err("a size of the day is above 4294967294 lots") }
    }
}

/// One such file.
pub(crate) struct DbnFile {
    file: OutFile,
    path: PathBuf,
    unit: i64,
    instrument: u32,
    buffer: Vec<u8>,
    rows: u64,
}

/// What every record begins with.
struct Head {
    schema: Schema,
    bytes: usize,
    time: TimeNs,
    log_index: LogIndex,
    price: i64,
    size: u32,
    action: u8,
    side: u8,
    flags: u8,
}

fn lots(size: u64) -> u32 {
    u32::try_from(size).expect("the day's extent was checked")
}

impl DbnFile {
    pub(crate) fn new(
        file: OutFile,
        path: PathBuf,
        schema: Schema,
        day: Day,
        listing: &Listing,
        unit: i64,
    ) -> Result<Self, ArchiveError> {
        let mut dbn = Self { file, path, unit, instrument: listing.instrument, buffer: Vec::new(), rows: 0 };
        dbn.header(schema, day, listing);
        dbn.write()?;
        Ok(dbn)
    }

    fn header(&mut self, schema: Schema, day: Day, listing: &Listing) {
        let mut body = Vec::new();
        text(&mut body, DATASET, DATASET_BYTES);
        body.extend_from_slice(&(schema as u16).to_le_bytes());
        body.extend_from_slice(&day.start().0.to_le_bytes());
        body.extend_from_slice(&day.end().0.to_le_bytes());
        // No limit on the number of records.
        body.extend_from_slice(&0_u64.to_le_bytes());
        // The last byte: no times of sending.
        body.extend_from_slice(&[RAW_SYMBOL, INSTRUMENT_ID, 0]);
        body.extend_from_slice(&(SYMBOL_BYTES as u16).to_le_bytes());
        body.resize(body.len() + RESERVED_BYTES, 0);
        let count = |body: &mut Vec<u8>, count: u32| body.extend_from_slice(&count.to_le_bytes());
        // Bytes of a definition of the schema.
        count(&mut body, 0);
        count(&mut body, 1);
        text(&mut body, &listing.symbol, SYMBOL_BYTES);
        // Symbols that were found in part, and not at all.
        count(&mut body, 0);
        count(&mut body, 0);
        // What the symbol stands for, this one day.
        count(&mut body, 1);
        text(&mut body, &listing.symbol, SYMBOL_BYTES);
        count(&mut body, 1);
        for day in [day, day.next()] {
            let (year, month, day) = day.date();
            count(&mut body, year * 10_000 + month * 100 + day);
        }
        text(&mut body, &listing.instrument.to_string(), SYMBOL_BYTES);
        body.resize(body.len().next_multiple_of(8), 0);
        self.buffer.extend_from_slice(b"DBN");
        self.buffer.push(VERSION);
        let len = u32::try_from(body.len()).expect("a header is short");
        self.buffer.extend_from_slice(&len.to_le_bytes());
        self.buffer.extend_from_slice(&body);
    }

    fn head(&mut self, head: &Head) {
        let out = &mut self.buffer;
        out.push(u8::try_from(head.bytes / 4).expect("a record is short"));
        out.push(head.schema.record_type());
        // Of no publisher.
        out.extend_from_slice(&0_u16.to_le_bytes());
        out.extend_from_slice(&self.instrument.to_le_bytes());
        out.extend_from_slice(&head.time.0.to_le_bytes());
        out.extend_from_slice(&head.price.to_le_bytes());
        out.extend_from_slice(&head.size.to_le_bytes());
        // At depth 0.
        out.extend_from_slice(&[head.action, head.side, head.flags, 0]);
        out.extend_from_slice(&head.time.0.to_le_bytes());
        // Received when it happened.
        out.extend_from_slice(&0_i32.to_le_bytes());
        // The low half of its place in the log.
        out.extend_from_slice(&head.log_index.0.to_le_bytes()[..4]);
        self.rows += 1;
    }

    pub(crate) fn trade(&mut self, trade: &Trade) -> Result<(), ArchiveError> {
        let side = match trade.taker_side {
            None => b'N',
            Some(Side::Buy) => b'B',
            Some(Side::Sell) => b'A',
        };
        self.head(&Head {
            schema: Schema::Trades,
            bytes: TRADE_BYTES,
            time: trade.time,
            log_index: trade.log_index,
            price: trade.price.get() * self.unit,
            size: lots(trade.size.get()),
            action: b'T',
            side,
            flags: LAST_OF_EVENT,
        });
        self.write_when_full()
    }

    pub(crate) fn book(&mut self, book: &Book) -> Result<(), ArchiveError> {
        self.head(&Head {
            schema: Schema::Mbp10,
            bytes: MBP10_BYTES,
            time: book.time,
            log_index: book.log_index,
            price: UNDEFINED_PRICE,
            size: 0,
            action: b'N',
            side: b'N',
            flags: LAST_OF_EVENT | SNAPSHOT,
        });
        let unit = self.unit;
        let price = |level: Option<&Level>| level.map_or(UNDEFINED_PRICE, |level| level.price.get() * unit);
        let size = |level: Option<&Level>| level.map_or(0, |level| lots(level.size.get()));
        let count = |level: Option<&Level>| level.map_or(0, |level| level.order_count);
        for at in 0..LEVELS {
            let (bid, ask) = (book.bids.get(at), book.asks.get(at));
            for side in [bid, ask] {
                self.buffer.extend_from_slice(&price(side).to_le_bytes());
            }
            for number in [size(bid), size(ask), count(bid), count(ask)] {
                self.buffer.extend_from_slice(&number.to_le_bytes());
            }
        }
        self.write_when_full()
    }

    fn write_when_full(&mut self) -> Result<(), ArchiveError> {
        if self.buffer.len() >= BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), ArchiveError> {
        self.file.write_all(&self.buffer).during("write", &self.path)?;
        self.buffer.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(u64, OutFile), ArchiveError> {
        self.write()?;
        Ok((self.rows, self.file))
    }
}

fn text(out: &mut Vec<u8>, text: &str, bytes: usize) {
    let end = out.len() + bytes;
    out.extend_from_slice(text.as_bytes());
    out.resize(end, 0);
}
