//! A day's trades, book snapshots and orders of one instrument, and its definition, in Databento's binary encoding, version 3, for the
//! many programs that read that.
//!
//! Written from the public documentation of the encoding: a header (`DBN`, version, length, dataset, schema, times, symbols and
//! what they stand for), then records of one length, little-endian. Prices there are integers of 10^-9, sizes 32 bits: an
//! instrument whose prices or sizes of the day do not fit exactly has no such file, and the manifest says so. Sizes are in lots.
//!
//! The numbers of records (`sequence`, 32 bits) are a function of the log, like all else, and differ within a file: of a trade that is
//! the low half of its `trade_id`, of a book snapshot that of the log entry, which has one snapshot of the instrument; records of
//! orders are counted from 1. Programs that read DBN take them for the names of trades.
//!
//! Orders (schema `mbo`): a trade is a record of its taker's side and then, of each displayed order in it, a fill and what became of the
//! order: a cancel where nothing is left of what it showed, else a modification to what it shows now. A modification leaves an order in
//! its place unless its price is another one: so an order that lost its place at the price that it had is cancelled and added.

use std::io::{Read, Write};
use std::path::PathBuf;

use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use walras_types::{LogIndex, Side, TimeNs};

use crate::day::Day;
use crate::files::OutFile;
use crate::record::{Book, Level, Listing, OrderRecord, OrderStep, Shown, Step, Trade};
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
const MBO_BYTES: usize = 56;
const DEFINITION_BYTES: usize = 520;
/// Where the flags of an order's record are.
const MBO_FLAGS_AT: usize = 36;
const UNDEFINED_PRICE: i64 = i64::MAX;
const LAST_OF_EVENT: u8 = 1 << 7;
const SNAPSHOT: u8 = 1 << 5;
/// Digits behind the point of a price, and 1 in its units.
const PRICE_DECIMALS: u32 = 9;
const ONE: i64 = 1_000_000_000;
/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 18;

/// How DBN files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbnForm {
    /// Whether they are compressed by zstd, as Databento's own are.
    pub is_compressed: bool,
    /// The number of the publisher in all records: Databento gives them. 0 is nobody's.
    pub publisher: u16,
}

impl DbnForm {
    /// The ending of a file's name behind the schema's.
    pub(crate) fn ending(self) -> &'static str {
        if self.is_compressed { "dbn.zst" } else { "dbn" }
    }
}

/// What a file's records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    Mbo = 0,
    Mbp10 = 2,
    Trades = 4,
    Definition = 9,
}

impl Schema {
    fn record_type(self) -> u8 {
        match self {
            Self::Trades => 0x00,
            Self::Mbp10 => 0x0A,
            Self::Definition => 0x13,
            Self::Mbo => 0xA0,
        }
    }

    /// As in a file's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mbo => "mbo",
            Self::Mbp10 => "mbp-10",
            Self::Trades => "trades",
            Self::Definition => "definition",
        }
    }
}

/// The greatest numbers of an instrument's day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) trades: u64,
    pub(crate) books: u64,
    /// Records of its orders.
    pub(crate) orders: u64,
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

    pub(crate) fn order(&mut self, record: &OrderRecord) {
        let (price, sizes) = match &record.step {
            OrderStep::Cleared | OrderStep::Lost => return,
            OrderStep::Traded { price, size, .. } => (*price, [*size; 2]),
            OrderStep::Standing(order) | OrderStep::Added(order) => (order.price, [order.shown; 2]),
            OrderStep::Executed { order, by } => (order.price, [order.shown, *by]),
            OrderStep::Resized { order, from } | OrderStep::Cancelled { order, from } | OrderStep::Replaced { order, from, .. } => {
                (order.price, [order.shown, *from])
            }
        };
        self.orders += 1;
        self.ticks_max = self.ticks_max.max(price.get());
        sizes.iter().for_each(|size| self.lots_max = self.lots_max.max(size.get()));
    }

    /// What a tick is in units of 10^-9, if all prices and sizes fit; why not, if they do not.
    pub(crate) fn dbn_unit(&self, listing: &Listing) -> Result<i64, &'static str> {
        let (tick, _) = listing.steps().ok_or("one tick is no decimal of 38 digits")?;
        if tick.decimals > PRICE_DECIMALS {
            return Err("its prices have more than 9 decimals");
        }
        let unit = billionths(tick);
        let fits = |unit: &i64| unit.checked_mul(self.ticks_max).is_some_and(|price| price < UNDEFINED_PRICE);
        let unit = unit.filter(fits).ok_or("a price of the day is above 9223372036")?;
        if self.lots_max < u64::from(u32::MAX) { Ok(unit) } else { Err("a size of the day is above 4294967294 lots") }
    }
}

/// One such file.
pub(crate) struct DbnFile {
    file: OutFile,
    path: PathBuf,
    form: DbnForm,
    unit: i64,
    instrument: u32,
    buffer: Vec<u8>,
    rows: u64,
    /// The last record of an order: only the next one shows whether it is the last of its entry.
    held: Option<(LogIndex, [u8; MBO_BYTES])>,
    /// The price of the last trade.
    trade_price: i64,
}

/// What a record of trades or books says before its levels.
struct Head {
    schema: Schema,
    bytes: usize,
    time: TimeNs,
    number: u64,
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
        (unit, form): (i64, DbnForm),
    ) -> Result<Self, ArchiveError> {
        let mut dbn = Self {
            file,
            path,
            form,
            unit,
            instrument: listing.instrument,
            buffer: Vec::new(),
            rows: 0,
            held: None,
            trade_price: UNDEFINED_PRICE,
        };
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

    /// What every record begins with.
    fn begin(&self, schema: Schema, bytes: usize, time: TimeNs) -> [u8; 16] {
        let mut begin = [0; 16];
        begin[0] = u8::try_from(bytes / 4).expect("a record is short");
        begin[1] = schema.record_type();
        begin[2..4].copy_from_slice(&self.form.publisher.to_le_bytes());
        begin[4..8].copy_from_slice(&self.instrument.to_le_bytes());
        begin[8..].copy_from_slice(&time.0.to_le_bytes());
        begin
    }

    fn head(&mut self, head: &Head) {
        let begin = self.begin(head.schema, head.bytes, head.time);
        let out = &mut self.buffer;
        out.extend_from_slice(&begin);
        out.extend_from_slice(&head.price.to_le_bytes());
        out.extend_from_slice(&head.size.to_le_bytes());
        // At depth 0.
        out.extend_from_slice(&[head.action, head.side, head.flags, 0]);
        out.extend_from_slice(&head.time.0.to_le_bytes());
        // Received when it happened.
        out.extend_from_slice(&0_i32.to_le_bytes());
        out.extend_from_slice(&sequence(head.number));
        self.rows += 1;
    }

    pub(crate) fn trade(&mut self, trade: &Trade) -> Result<(), ArchiveError> {
        self.head(&Head {
            schema: Schema::Trades,
            bytes: TRADE_BYTES,
            time: trade.time,
            number: trade.trade_id.0,
            price: trade.price.get() * self.unit,
            size: lots(trade.size.get()),
            action: b'T',
            side: side_of(trade.taker_side),
            flags: LAST_OF_EVENT,
        });
        self.write_when_full()
    }

    pub(crate) fn book(&mut self, book: &Book) -> Result<(), ArchiveError> {
        self.head(&Head {
            schema: Schema::Mbp10,
            bytes: MBP10_BYTES,
            time: book.time,
            number: book.log_index.0,
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

    /// What happened to a displayed order, or a trade.
    pub(crate) fn order(&mut self, record: &OrderRecord) -> Result<(), ArchiveError> {
        let unit = self.unit;
        let of = |order: &Shown, action, size| Mbo {
            action,
            order_id: order.order_id.0,
            side: side_of(Some(order.side)),
            price: order.price.get() * unit,
            size: lots(size),
            flags: 0,
        };
        match &record.step {
            OrderStep::Cleared => self.mbo(record, &Mbo { flags: SNAPSHOT, ..Mbo::CLEARED }),
            // What stands is said when it is known again.
            OrderStep::Lost => Ok(()),
            OrderStep::Standing(order) => self.mbo(record, &Mbo { flags: SNAPSHOT, ..of(order, b'A', order.shown.get()) }),
            OrderStep::Added(order) => self.mbo(record, &of(order, b'A', order.shown.get())),
            OrderStep::Traded { price, size, taker_side, .. } => {
                self.trade_price = price.get() * unit;
                let (side, price, size) = (side_of(*taker_side), self.trade_price, lots(size.get()));
                self.mbo(record, &Mbo { action: b'T', order_id: 0, side, price, size, flags: 0 })
            }
            OrderStep::Executed { order, by } => {
                self.mbo(record, &Mbo { price: self.trade_price, ..of(order, b'F', by.get()) })?;
                let left = order.shown;
                let after = if left.is_zero() { of(order, b'C', by.get()) } else { of(order, b'M', left.get()) };
                self.mbo(record, &after)
            }
            OrderStep::Resized { order, .. } | OrderStep::Replaced { order, same_price: false, .. } => {
                self.mbo(record, &of(order, b'M', order.shown.get()))
            }
            OrderStep::Cancelled { order, from } => self.mbo(record, &of(order, b'C', from.get())),
            OrderStep::Replaced { order, from, same_price: true } => {
                self.mbo(record, &of(order, b'C', from.get()))?;
                self.mbo(record, &of(order, b'A', order.shown.get()))
            }
        }
    }

    fn mbo(&mut self, record: &OrderRecord, mbo: &Mbo) -> Result<(), ArchiveError> {
        let Mbo { action, order_id, side, price, size, flags } = *mbo;
        let mut bytes = [0; MBO_BYTES];
        bytes[..16].copy_from_slice(&self.begin(Schema::Mbo, MBO_BYTES, record.time));
        bytes[16..24].copy_from_slice(&order_id.to_le_bytes());
        bytes[24..32].copy_from_slice(&price.to_le_bytes());
        bytes[32..MBO_FLAGS_AT].copy_from_slice(&size.to_le_bytes());
        // Of channel 0.
        bytes[MBO_FLAGS_AT..40].copy_from_slice(&[flags, 0, action, side]);
        // Received when it happened.
        bytes[40..48].copy_from_slice(&record.time.0.to_le_bytes());
        self.rows += 1;
        bytes[52..].copy_from_slice(&sequence(self.rows));
        self.release(Some(record.log_index));
        self.held = Some((record.log_index, bytes));
        self.write_when_full()
    }

    /// Writes the record that is held, before one of this entry.
    fn release(&mut self, next: Option<LogIndex>) {
        if let Some((log_index, mut bytes)) = self.held.take() {
            if next != Some(log_index) {
                bytes[MBO_FLAGS_AT] |= LAST_OF_EVENT;
            }
            self.buffer.extend_from_slice(&bytes);
        }
    }

    /// What the instrument is, from the day's first nanosecond on.
    pub(crate) fn definition(&mut self, listing: &Listing, day: Day) {
        let mut bytes = [0; DEFINITION_BYTES];
        let begin = self.begin(Schema::Definition, DEFINITION_BYTES, day.start());
        bytes[..16].copy_from_slice(&begin);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(16, &day.start().0.to_le_bytes());
        let lot = listing.steps().and_then(|(_, lot)| billionths(lot)).unwrap_or(UNDEFINED_PRICE);
        // Its tick, a display factor of 1, and what it is a contract of: one lot.
        for (at, value) in [(24, self.unit), (32, ONE), (80, lot)] {
            put(at, &value.to_le_bytes());
        }
        // No limits, variation, amount of an increment, ratio, strike, leg's price and delta.
        for at in [56, 64, 72, 88, 96, 104, 120, 128] {
            put(at, &UNDEFINED_PRICE.to_le_bytes());
        }
        // Neither expires nor was activated at a known time.
        for at in [40, 48] {
            put(at, &u64::MAX.to_le_bytes());
        }
        put(112, &u64::from(listing.instrument).to_le_bytes());
        // Attributes, depths, the least size of a block, the multiplier of a contract, decay, original size.
        for at in [136, 144, 148, 164, 176, 180, 184] {
            put(at, &i32::MAX.to_le_bytes());
        }
        // Market segment, greatest and least volume of a trade.
        for at in [152, 156, 172] {
            put(at, &u32::MAX.to_le_bytes());
        }
        // Orders and trades are of whole lots.
        for at in [160, 168] {
            put(at, &1_i32.to_le_bytes());
        }
        put(212, &i16::MAX.to_le_bytes());
        // Year of maturity, date of decay, channel.
        for at in [214, 216, 218] {
            put(at, &u16::MAX.to_le_bytes());
        }
        for (at, room, value) in [
            (224, 4, listing.quote.as_str()),
            (238, SYMBOL_BYTES, listing.symbol.as_str()),
            (335, 11, listing.base.as_str()),
            (360, 31, listing.base.as_str()),
        ] {
            // Each ends with a zero. What does not fit is left out: a currency of four letters.
            if value.len() < room {
                put(at, value.as_bytes());
            }
        }
        // A spot instrument; which rule shares trades among orders is not said.
        put(487, b"X ");
        // Fractions, display format, underlying product.
        put(489, &[u8::MAX; 4]);
        // Added. No maturity. Not defined by a user.
        put(493, &[b'A', u8::MAX, u8::MAX, u8::MAX, b'N']);
        // Units, schedule, rule of ticks, no leg.
        put(498, &[0x7F, 0x7F, u8::MAX, 0, b'N']);
        self.buffer.extend_from_slice(&bytes);
        self.rows += 1;
    }

    fn write_when_full(&mut self) -> Result<(), ArchiveError> {
        if self.buffer.len() >= BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), ArchiveError> {
        let written =
            if self.form.is_compressed { self.file.write_all(&frame(&self.buffer)) } else { self.file.write_all(&self.buffer) };
        written.during("write", &self.path)?;
        self.buffer.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(u64, OutFile), ArchiveError> {
        self.release(None);
        if !self.buffer.is_empty() {
            self.write()?;
        }
        Ok((self.rows, self.file))
    }
}

/// A record of an order or a trade, but for what all records of its entry share.
struct Mbo {
    action: u8,
    order_id: u64,
    side: u8,
    price: i64,
    size: u32,
    flags: u8,
}

impl Mbo {
    /// The book is empty.
    const CLEARED: Self = Self { action: b'R', order_id: 0, side: b'N', price: UNDEFINED_PRICE, size: 0, flags: 0 };
}

/// A record's number: 32 bits of it.
fn sequence(number: u64) -> [u8; 4] {
    let [a, b, c, d, ..] = number.to_le_bytes();
    [a, b, c, d]
}

fn side_of(side: Option<Side>) -> u8 {
    match side {
        None => b'N',
        Some(Side::Buy) => b'B',
        Some(Side::Sell) => b'A',
    }
}

/// A step in units of 10^-9, where it is a whole number of them.
fn billionths(step: Step) -> Option<i64> {
    let missing = PRICE_DECIMALS.checked_sub(step.decimals)?;
    step.mantissa.checked_mul(10_i128.pow(missing)).and_then(|unit| i64::try_from(unit).ok())
}

/// Bytes as one frame of zstd; a file has several. A frame that does not give the bytes back is written as it is, without compression.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let compressed = compress_to_vec(bytes, CompressionLevel::Fastest);
    let mut back = Vec::with_capacity(bytes.len());
    let is_sound = StreamingDecoder::new(compressed.as_slice())
        .is_ok_and(|mut decoder| decoder.read_to_end(&mut back).is_ok() && back == bytes);
    if is_sound { compressed } else { compress_to_vec(bytes, CompressionLevel::Uncompressed) }
}

fn text(out: &mut Vec<u8>, text: &str, bytes: usize) {
    let end = out.len() + bytes;
    out.extend_from_slice(text.as_bytes());
    out.resize(end, 0);
}
