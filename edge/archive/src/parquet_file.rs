//! A day's trades, book snapshots and orders of one instrument as Parquet: the venue's integers, together with decimals.

use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use walras_types::Side;

use crate::ArchiveError;
use crate::day::Day;
use crate::files::OutFile;
use crate::record::{Book, Level, Listing, OrderRecord, OrderStep, Step, Trade};

/// Rows of a group: what a writer holds in memory, and what a reader reads at once.
const GROUP_ROWS: usize = 32_768;

/// Integers that grow, or move little from row to row.
const DELTAS: [&str; 9] =
    ["time_ns", "log_index", "trade_id", "price_ticks", "size_lots", "order_count", "level", "order_id", "shown_lots"];

/// The file under a table.
struct Table {
    writer: SerializedFileWriter<OutFile>,
    path: PathBuf,
    symbol: ByteArray,
    steps: Option<(Step, Step)>,
    rows: u64,
}

impl Table {
    fn new(
        file: OutFile,
        path: PathBuf,
        day: Day,
        listing: &Listing,
        name: &str,
        columns: &str,
    ) -> std::result::Result<Self, ArchiveError> {
        let steps = listing.steps();
        let decimals = steps.map_or(String::new(), |(tick, lot)| {
            let column = |name: &str, step: Step| {
                format!("required fixed_len_byte_array({}) {name} (DECIMAL({},{})); ", DECIMAL_BYTES, Step::DIGITS, step.decimals)
            };
            column("price", tick) + &column("size", lot)
        });
        let text = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
        let mut facts = vec![
            text("walras.day", day.to_string()),
            text("walras.instrument", listing.symbol.clone()),
            text("walras.base", listing.base.clone()),
            text("walras.quote", listing.quote.clone()),
        ];
        facts.extend(listing.tick.clone().map(|tick| text("walras.tick", tick)));
        facts.extend(listing.lot.clone().map(|lot| text("walras.lot", lot)));
        let mut properties = WriterProperties::builder()
            .set_created_by("walras".to_owned())
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(usize::MAX))
            .set_key_value_metadata(Some(facts));
        for name in DELTAS {
            let column = ColumnPath::from(name);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let made = parse_message_type(&format!("message {name} {{ {columns} {decimals} }}"))
            .and_then(|schema| SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build())));
        match made {
            Ok(writer) => Ok(Self { writer, path, symbol: listing.symbol.as_str().into(), steps, rows: 0 }),
            Err(source) => Err(ArchiveError::Parquet { path, source }),
        }
    }

    /// Writes a group: `write` its columns, but for the decimals, which come last.
    fn group(
        &mut self,
        count: usize,
        write: impl FnOnce(&mut SerializedRowGroupWriter<'_, OutFile>, &ByteArray) -> Result<()>,
        decimals: [&[u64]; 2],
    ) -> std::result::Result<(), ArchiveError> {
        let Self { writer, path, symbol, steps, rows } = self;
        let written = || {
            let mut group = writer.next_row_group()?;
            write(&mut group, symbol)?;
            if let Some((tick, lot)) = *steps {
                for (step, counts) in [tick, lot].into_iter().zip(decimals) {
                    let values: Vec<FixedLenByteArray> = counts.iter().map(|&count| decimal(step.times(count))).collect();
                    column::<FixedLenByteArrayType>(&mut group, &values)?;
                }
            }
            group.close().map(|_| ())
        };
        written().map_err(|source| ArchiveError::Parquet { path: path.clone(), source })?;
        *rows += count as u64;
        Ok(())
    }

    fn finish(self) -> std::result::Result<(u64, OutFile), ArchiveError> {
        let Self { writer, path, rows, .. } = self;
        writer.into_inner().map(|file| (rows, file)).map_err(|source| ArchiveError::Parquet { path, source })
    }
}

/// 38 digits need 127 bits.
const DECIMAL_BYTES: usize = 16;

fn decimal(value: i128) -> FixedLenByteArray {
    value.to_be_bytes().to_vec().into()
}

fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, OutFile>, values: &[T::T]) -> Result<()> {
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("the schema has no such column".to_owned()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

fn side_name(side: Option<Side>) -> ByteArray {
    match side {
        None => "none",
        Some(Side::Buy) => "buy",
        Some(Side::Sell) => "sell",
    }
    .into()
}

/// Bits of a number that the schema says is unsigned.
fn bits(value: u64) -> i64 {
    value.cast_signed()
}

/// `SYMBOL.ID.trades.parquet`.
pub(crate) struct TradesTable {
    table: Table,
    trades: Vec<Trade>,
}

impl TradesTable {
    pub(crate) fn new(file: OutFile, path: PathBuf, day: Day, listing: &Listing) -> std::result::Result<Self, ArchiveError> {
        let columns = "required int64 time_ns (TIMESTAMP(NANOS,false)); required int64 log_index (INTEGER(64,false)); \
            required int64 trade_id (INTEGER(64,false)); required binary instrument (STRING); required binary taker_side (STRING); \
            required int64 price_ticks (INTEGER(64,true)); required int64 size_lots (INTEGER(64,false));";
        Ok(Self { table: Table::new(file, path, day, listing, "trades", columns)?, trades: Vec::new() })
    }

    pub(crate) fn push(&mut self, trade: &Trade) -> std::result::Result<(), ArchiveError> {
        self.trades.push(*trade);
        if self.trades.len() >= GROUP_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> std::result::Result<(), ArchiveError> {
        let Self { table, trades } = self;
        if trades.is_empty() {
            return Ok(());
        }
        let of = |get: fn(&Trade) -> u64| trades.iter().map(get).collect::<Vec<u64>>();
        let (prices, sizes) = (of(|t| t.price.get().unsigned_abs()), of(|t| t.size.get()));
        let integers = |values: &[u64]| values.iter().map(|&value| bits(value)).collect::<Vec<i64>>();
        let write = |group: &mut SerializedRowGroupWriter<'_, OutFile>, symbol: &ByteArray| {
            column::<Int64Type>(group, &integers(&of(|t| t.time.0)))?;
            column::<Int64Type>(group, &integers(&of(|t| t.log_index.0)))?;
            column::<Int64Type>(group, &integers(&of(|t| t.trade_id.0)))?;
            column::<ByteArrayType>(group, &vec![symbol.clone(); trades.len()])?;
            column::<ByteArrayType>(group, &trades.iter().map(|t| side_name(t.taker_side)).collect::<Vec<_>>())?;
            column::<Int64Type>(group, &integers(&prices))?;
            column::<Int64Type>(group, &integers(&sizes))
        };
        table.group(trades.len(), write, [&prices, &sizes])?;
        trades.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> std::result::Result<(u64, OutFile), ArchiveError> {
        self.write()?;
        self.table.finish()
    }
}

/// A level of a book snapshot.
struct LevelRow {
    time_ns: u64,
    log_index: u64,
    side: Side,
    level: i32,
    shown: Level,
}

/// `SYMBOL.ID.books.parquet`: a row for each level of a book snapshot; an empty book has none.
pub(crate) struct BooksTable {
    table: Table,
    rows: Vec<LevelRow>,
}

impl BooksTable {
    pub(crate) fn new(file: OutFile, path: PathBuf, day: Day, listing: &Listing) -> std::result::Result<Self, ArchiveError> {
        let columns = "required int64 time_ns (TIMESTAMP(NANOS,false)); required int64 log_index (INTEGER(64,false)); \
            required binary instrument (STRING); required binary side (STRING); required int32 level (INTEGER(32,true)); \
            required int64 price_ticks (INTEGER(64,true)); required int64 size_lots (INTEGER(64,false)); \
            required int32 order_count (INTEGER(32,false));";
        Ok(Self { table: Table::new(file, path, day, listing, "books", columns)?, rows: Vec::new() })
    }

    pub(crate) fn push(&mut self, book: &Book) -> std::result::Result<(), ArchiveError> {
        for (side, levels) in [(Side::Buy, &book.bids), (Side::Sell, &book.asks)] {
            let row = |(level, shown): (i32, &Level)| LevelRow {
                time_ns: book.time.0,
                log_index: book.log_index.0,
                side,
                level,
                shown: *shown,
            };
            self.rows.extend((0..).zip(levels).map(row));
        }
        // A snapshot is not split.
        if self.rows.len() >= GROUP_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> std::result::Result<(), ArchiveError> {
        let Self { table, rows } = self;
        if rows.is_empty() {
            return Ok(());
        }
        let of = |get: fn(&LevelRow) -> u64| rows.iter().map(get).collect::<Vec<u64>>();
        let (prices, sizes) = (of(|r| r.shown.price.get().unsigned_abs()), of(|r| r.shown.size.get()));
        let integers = |values: &[u64]| values.iter().map(|&value| bits(value)).collect::<Vec<i64>>();
        let write = |group: &mut SerializedRowGroupWriter<'_, OutFile>, symbol: &ByteArray| {
            column::<Int64Type>(group, &integers(&of(|r| r.time_ns)))?;
            column::<Int64Type>(group, &integers(&of(|r| r.log_index)))?;
            column::<ByteArrayType>(group, &vec![symbol.clone(); rows.len()])?;
            column::<ByteArrayType>(group, &rows.iter().map(|r| side_name(Some(r.side))).collect::<Vec<_>>())?;
            column::<Int32Type>(group, &rows.iter().map(|r| r.level).collect::<Vec<_>>())?;
            column::<Int64Type>(group, &integers(&prices))?;
            column::<Int64Type>(group, &integers(&sizes))?;
            column::<Int32Type>(group, &rows.iter().map(|r| r.shown.order_count.cast_signed()).collect::<Vec<_>>())
        };
        table.group(rows.len(), write, [&prices, &sizes])?;
        rows.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> std::result::Result<(u64, OutFile), ArchiveError> {
        self.write()?;
        self.table.finish()
    }
}

/// One row of an orders' table.
struct OrderRow {
    time_ns: u64,
    log_index: u64,
    action: &'static str,
    order_id: u64,
    trade_id: u64,
    side: Option<Side>,
    price: u64,
    size: u64,
    shown: u64,
}

impl OrderRow {
    fn of(record: &OrderRecord) -> Self {
        let nothing = |action| Self {
            time_ns: record.time.0,
            log_index: record.log_index.0,
            action,
            order_id: 0,
            trade_id: 0,
            side: None,
            price: 0,
            size: 0,
            shown: 0,
        };
        let (action, order, size) = match &record.step {
            OrderStep::Cleared => return nothing("cleared"),
            OrderStep::Lost => return nothing("lost"),
            OrderStep::Traded { trade_id, price, size, taker_side } => {
                let (trade_id, price, size) = (trade_id.0, price.get().unsigned_abs(), size.get());
                return Self { trade_id, side: *taker_side, price, size, ..nothing("traded") };
            }
            OrderStep::Standing(order) => ("standing", order, order.shown),
            OrderStep::Added(order) => ("added", order, order.shown),
            OrderStep::Executed { order, by } => ("executed", order, *by),
            OrderStep::Resized { order, from } => ("resized", order, *from),
            OrderStep::Cancelled { order, from } => ("cancelled", order, *from),
            OrderStep::Replaced { order, from, .. } => ("replaced", order, *from),
        };
        let (order_id, price) = (order.order_id.0, order.price.get().unsigned_abs());
        Self { order_id, side: Some(order.side), price, size: size.get(), shown: order.shown.get(), ..nothing(action) }
    }
}

/// `SYMBOL.ID.orders.parquet`: a row for each step of the book by order.
pub(crate) struct OrdersTable {
    table: Table,
    rows: Vec<OrderRow>,
}

impl OrdersTable {
    pub(crate) fn new(file: OutFile, path: PathBuf, day: Day, listing: &Listing) -> std::result::Result<Self, ArchiveError> {
        let columns = "required int64 time_ns (TIMESTAMP(NANOS,false)); required int64 log_index (INTEGER(64,false)); \
            required binary instrument (STRING); required binary action (STRING); required int64 order_id (INTEGER(64,false)); \
            required int64 trade_id (INTEGER(64,false)); required binary side (STRING); \
            required int64 price_ticks (INTEGER(64,true)); required int64 size_lots (INTEGER(64,false)); \
            required int64 shown_lots (INTEGER(64,false));";
        Ok(Self { table: Table::new(file, path, day, listing, "orders", columns)?, rows: Vec::new() })
    }

    pub(crate) fn push(&mut self, record: &OrderRecord) -> std::result::Result<(), ArchiveError> {
        self.rows.push(OrderRow::of(record));
        if self.rows.len() >= GROUP_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> std::result::Result<(), ArchiveError> {
        let Self { table, rows } = self;
        if rows.is_empty() {
            return Ok(());
        }
        let of = |get: fn(&OrderRow) -> u64| rows.iter().map(get).collect::<Vec<u64>>();
        let (prices, sizes) = (of(|r| r.price), of(|r| r.size));
        let integers = |values: &[u64]| values.iter().map(|&value| bits(value)).collect::<Vec<i64>>();
        let write = |group: &mut SerializedRowGroupWriter<'_, OutFile>, symbol: &ByteArray| {
            column::<Int64Type>(group, &integers(&of(|r| r.time_ns)))?;
            column::<Int64Type>(group, &integers(&of(|r| r.log_index)))?;
            column::<ByteArrayType>(group, &vec![symbol.clone(); rows.len()])?;
            column::<ByteArrayType>(group, &rows.iter().map(|r| ByteArray::from(r.action)).collect::<Vec<_>>())?;
            column::<Int64Type>(group, &integers(&of(|r| r.order_id)))?;
            column::<Int64Type>(group, &integers(&of(|r| r.trade_id)))?;
            column::<ByteArrayType>(group, &rows.iter().map(|r| side_name(r.side)).collect::<Vec<_>>())?;
            column::<Int64Type>(group, &integers(&prices))?;
            column::<Int64Type>(group, &integers(&sizes))?;
            column::<Int64Type>(group, &integers(&of(|r| r.shown)))
        };
        table.group(rows.len(), write, [&prices, &sizes])?;
        rows.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> std::result::Result<(u64, OutFile), ArchiveError> {
        self.write()?;
        self.table.finish()
    }
}
