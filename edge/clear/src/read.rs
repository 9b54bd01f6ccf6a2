//! Files of offers: CSV, JSON (an array, or objects one after the other), Parquet. What a file is, its first bytes say.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use walras_batch_solver::offers::{Column, Offers, OffersError, Row, is_printable};
use walras_terminal::progress::Slow;

use super::parquet_file::parquet_offers;

/// Why a file is no list of offers.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("could not be read: {0}")]
    Io(#[from] std::io::Error),
    /// There is nothing in it.
    #[error("is empty: give offers with the columns {}", columns())]
    Empty,
    /// A text is not UTF-8.
    #[error("line {0}: is not UTF-8 text: save the file as UTF-8")]
    NotUtf8(u64),
    /// A CSV row has a fault of its own.
    #[error(
        "line {line}: {found} cells where the first line names {expected} columns: add or remove separators, or quote the cell"
    )]
    CellCount {
        /// Where.
        line: u64,
        /// Cells in the row.
        found: usize,
        /// Columns.
        expected: usize,
    },
    /// No such column.
    #[error("{}column {name}: there is no such column{}: use {}", place(*line), nearest(name), columns())]
    UnknownColumn {
        /// Where; 0 where no line names columns.
        line: u64,
        /// Its name.
        name: String,
    },
    /// A column comes twice.
    #[error("{}column {name}: comes twice: keep one of them", place(*line))]
    DuplicateColumn {
        /// Where; 0 where no line names columns.
        line: u64,
        /// Its name.
        name: &'static str,
    },
    /// A required column is not there.
    #[error("{}column {name}: is missing: offers need the columns sell, buy and amount", place(*line))]
    MissingColumn {
        /// Where; 0 where no line names columns.
        line: u64,
        /// Its name.
        name: &'static str,
    },
    /// JSON that is none, or no offers.
    #[error("line {line}: {what}")]
    Json {
        /// Where.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A value that is neither text nor number.
    #[error("line {line}, column {name}: {found}: write text or a number")]
    Type {
        /// Where.
        line: u64,
        /// The column.
        name: String,
        /// What it is.
        found: String,
    },
    /// Parquet that is damaged, or written in a way that is not read here.
    #[error(
        "as Parquet: {0}. If the file is damaged, fetch or write it again. Files that are not compressed, or by Snappy, gzip, zstd or LZ4, \
         can be read; others write again, in Python by pandas.read_parquet(\"a\").to_parquet(\"b\", compression=\"zstd\")"
    )]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A cell, or all together.
    #[error(transparent)]
    Offers(#[from] OffersError),
}

fn columns() -> String {
    Column::ALL.map(Column::name).join(", ")
}

/// Parquet names its columns in no line.
fn place(line: u64) -> String {
    if line == 0 { String::new() } else { format!("line {line}, ") }
}

fn nearest(name: &str) -> String {
    let distance = |column: &Column| strsim::damerau_levenshtein(column.name(), &name.to_lowercase());
    let is_near = |column: &Column| distance(column) * 3 <= name.len() || (name.len() > 3 && column.name().contains(name));
    let near = Column::ALL.into_iter().filter(is_near).min_by_key(distance);
    near.map_or_else(String::new, |column| format!(" (did you mean {}?)", column.name()))
}

/// The offers of a file; `-` is standard input.
pub(super) fn read(path: &Path) -> Result<Offers, ReadError> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        let mut file = File::open(path)?;
        let mut magic = [0; 4];
        if file.read_exact(&mut magic).is_ok() && &magic == b"PAR1" {
            return parquet_offers(file);
        }
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
    }
    offers_of_text(&bytes)
}

/// Offers in CSV or JSON.
pub(super) fn offers_of_text(bytes: &[u8]) -> Result<Offers, ReadError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err(ReadError::Empty),
        Some(b'[' | b'{') => json_offers(bytes),
        Some(_) => csv_offers(bytes),
    }
}

/// The separator that the first line uses most.
fn separator(bytes: &[u8]) -> u8 {
    let first = bytes.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    let count = |separator: u8| first.iter().filter(|&&byte| byte == separator).count();
    // The last of equals, so the comma.
    b"\t;,".iter().copied().max_by_key(|&separator| count(separator)).unwrap_or(b',')
}

fn csv_offers(bytes: &[u8]) -> Result<Offers, ReadError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(separator(bytes)).from_reader(bytes);
    let mut progress = Slow::new("reading", Some(bytes.len() as u64));
    let mut offers = Offers::new();
    let mut columns: Option<Vec<Column>> = None;
    let mut record = csv::ByteRecord::new();
    // Reading bytes from memory, with rows of any length, does not fail.
    while reader.read_byte_record(&mut record).map_err(std::io::Error::other)? {
        let (line, byte) = record.position().map_or((0, 0), |position| (position.line(), position.byte()));
        let text = std::str::from_utf8(record.as_slice()).map_err(|_| ReadError::NotUtf8(line))?;
        let cells = record.iter().scan(text, |rest, cell| {
            let (cell, after) = rest.split_at_checked(cell.len())?;
            *rest = after;
            Some(cell)
        });
        let Some(columns) = &columns else {
            columns = Some(header(line, cells)?);
            continue;
        };
        if record.len() != columns.len() {
            if text.trim().is_empty() {
                continue;
            }
            return Err(ReadError::CellCount { line, found: record.len(), expected: columns.len() });
        }
        let mut row = Row::default();
        columns.iter().zip(cells).for_each(|(&column, cell)| row.set(column, cell));
        offers.push(line, &row)?;
        progress.set(byte);
    }
    progress.finish();
    Ok(offers)
}

fn header<'a>(line: u64, names: impl Iterator<Item = &'a str>) -> Result<Vec<Column>, ReadError> {
    let mut columns = Vec::new();
    for name in names.map(str::trim) {
        let column = Column::of_name(name).ok_or_else(|| ReadError::UnknownColumn { line, name: printable(name) })?;
        if columns.contains(&column) {
            return Err(ReadError::DuplicateColumn { line, name: column.name() });
        }
        columns.push(column);
    }
    check_required(line, &columns)?;
    Ok(columns)
}

/// The columns of a Parquet file, without those that are none of ours, which are not read: data frames carry more than offers need. A
/// name that is nearly one of ours is a mistake.
pub(super) fn parquet_header<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<Option<Column>>, ReadError> {
    let mut columns = Vec::new();
    for name in names.map(str::trim) {
        let column = Column::of_name(name);
        match column {
            None if !nearest(name).is_empty() => return Err(ReadError::UnknownColumn { line: 0, name: printable(name) }),
            Some(twice) if columns.contains(&column) => return Err(ReadError::DuplicateColumn { line: 0, name: twice.name() }),
            None | Some(_) => columns.push(column),
        }
    }
    check_required(0, &columns.iter().copied().flatten().collect::<Vec<_>>())?;
    Ok(columns)
}

fn check_required(line: u64, columns: &[Column]) -> Result<(), ReadError> {
    match Column::ALL.into_iter().find(|column| column.is_required() && !columns.contains(column)) {
        Some(column) => Err(ReadError::MissingColumn { line, name: column.name() }),
        None => Ok(()),
    }
}

pub(super) fn printable(text: &str) -> String {
    let text: String = text.chars().take(40).map(|c| if is_printable(c) { c } else { '\u{fffd}' }).collect();
    if text.is_empty() { "(without a name)".to_owned() } else { text }
}

/// The line of a place, counted on from the last.
#[derive(Default)]
struct LineCounter {
    at: usize,
    newlines: u64,
}

impl LineCounter {
    fn line(&mut self, text: &str, at: usize) -> u64 {
        let more = text.as_bytes().get(self.at..at).unwrap_or_default().iter().filter(|&&byte| byte == b'\n').count();
        self.newlines += more as u64;
        self.at = self.at.max(at);
        self.newlines + 1
    }
}

fn json_offers(bytes: &[u8]) -> Result<Offers, ReadError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        ReadError::NotUtf8(1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64)
    })?;
    let json = |line: u64, error: &serde_json::Error| ReadError::Json { line, what: format!("is no JSON: {error}") };
    let mut offers = Offers::new();
    let mut progress = Slow::new("reading", Some(bytes.len() as u64));
    let mut lines = LineCounter::default();
    let mut take = |element: &RawValue| {
        let at = element.get().as_ptr() as usize - text.as_ptr() as usize;
        progress.set(at as u64);
        push_json(&mut offers, lines.line(text, at), element.get())
    };
    if text.trim_start().starts_with('[') {
        let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| json(error.line() as u64, &error))?;
        elements.into_iter().try_for_each(&mut take)?;
    } else {
        for element in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
            take(element.map_err(|error| json(error.line() as u64, &error))?)?;
        }
    }
    progress.finish();
    Ok(offers)
}

/// The fields of an object in their order, a name that comes twice as often as it comes.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Deserialize<'a> for Fields<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject;
        impl<'a> Visitor<'a> for OfObject {
            type Value = Fields<'a>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(OfObject)
    }
}

fn push_json(offers: &mut Offers, line: u64, element: &str) -> Result<(), ReadError> {
    let Fields(object) = serde_json::from_str(element).map_err(|_| ReadError::Json {
        line,
        what: r#"is no object: write each offer as {"sell": "BTC", "buy": "USD", "amount": "1.5", "limit_price": "30000"}"#
            .to_owned(),
    })?;
    let mut columns = Vec::with_capacity(object.len());
    let mut cells: Vec<Cow<'_, str>> = Vec::with_capacity(object.len());
    for (name, value) in &object {
        let column = Column::of_name(name).ok_or_else(|| ReadError::UnknownColumn { line, name: printable(name) })?;
        if columns.contains(&column) {
            return Err(ReadError::DuplicateColumn { line, name: column.name() });
        }
        columns.push(column);
        let value = value.get();
        cells.push(match value.as_bytes().first() {
            Some(b'"') => {
                Cow::Owned(serde_json::from_str(value).map_err(|error| ReadError::Json { line, what: error.to_string() })?)
            }
            Some(b'-' | b'0'..=b'9') => Cow::Borrowed(value),
            Some(b'n') => Cow::Borrowed(""),
            _ => return Err(ReadError::Type { line, name: printable(name), found: format!("is {}", printable(value)) }),
        });
    }
    check_required(line, &columns)?;
    let mut row = Row::default();
    columns.iter().zip(&cells).for_each(|(&column, cell)| row.set(column, cell));
    Ok(offers.push(line, &row)?)
}
