//! Offers in a Parquet file. The library that decodes it believes what a file says of its own sizes, so what would cost memory or
//! rows is checked here before it is asked; where damage makes it panic all the same, [`error_of_panic`] makes an error of that.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::panic::PanicHookInfo;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Repetition};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use walras_batch_solver::offers::{Column, Offers, Row};
use walras_terminal::progress::Slow;

use super::compressed::Codec;
use super::read::{ReadError, parquet_header, printable};

thread_local! {
    static IS_IN_LIBRARY: Cell<bool> = const { Cell::new(false) };
}

/// Calls the library.
fn library<T>(call: impl FnOnce() -> T) -> T {
    with_mark(true, call)
}

/// Code of ours that the library calls back.
fn ours<T>(call: impl FnOnce() -> T) -> T {
    with_mark(false, call)
}

fn with_mark<T>(is_in_library: bool, call: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_IN_LIBRARY.set(self.0);
        }
    }
    let _before = Before(IS_IN_LIBRARY.replace(is_in_library));
    call()
}

/// The error that a panic of the library on this thread stands for.
pub(super) fn error_of_panic(panic: &PanicHookInfo<'_>) -> Option<ReadError> {
    if !IS_IN_LIBRARY.get() {
        return None;
    }
    let said = panic.payload().downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.payload().downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given");
    Some(ReadError::Parquet(damaged(format!("its bytes cannot be decoded ({said})"))))
}

fn damaged(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

/// Rows count from 1, as lines.
pub(super) fn parquet_offers(file: File) -> std::result::Result<Offers, ReadError> {
    let file_len = file.metadata()?.len();
    let file = Arc::new(file);
    let reader = library(|| SerializedFileReader::new(file.try_clone()?))?;
    let metadata = reader.metadata();
    let root = metadata.file_metadata().schema_descr().root_schema();
    let fields = root.get_fields();
    let columns = parquet_header(fields.iter().map(|field| field.name()))?;
    let ours: Vec<_> = fields.iter().zip(&columns).filter(|(_, column)| column.is_some()).map(|(field, _)| field).collect();
    if let Some(nested) = ours.iter().find(|field| is_nested(field)) {
        return Err(damaged(format!("the column {} is nested: give one value for each row", printable(nested.name()))).into());
    }
    // Of other columns not a byte is read.
    let schema = Type::group_type_builder(root.name()).with_fields(ours.into_iter().cloned().collect()).build()?;
    let columns: Vec<Column> = columns.into_iter().flatten().collect();
    let row_count = metadata.file_metadata().num_rows();
    if metadata.row_groups().iter().try_fold(0_i64, |sum, group| sum.checked_add(group.num_rows())) != Some(row_count) {
        return Err(damaged("it counts its rows in two ways, and they differ").into());
    }
    let mut progress = Slow::new("reading", u64::try_from(row_count).ok());
    let mut offers = Offers::new();
    let mut line = 0;
    for metadata in metadata.row_groups() {
        let group = CheckedGroup::new(&file, file_len, metadata)?;
        let mut records = library(|| RowIter::from_row_group(Some(schema.clone()), &group))?;
        let mut cells: Vec<Cow<'_, str>> = Vec::with_capacity(columns.len());
        while let Some(record) = library(|| records.next()) {
            let record = record?;
            line += 1;
            cells.clear();
            for (name, field) in record.get_column_iter() {
                cells.push(cell(field).ok_or_else(|| ReadError::Type {
                    line,
                    name: printable(name),
                    found: format!("is {field}"),
                })?);
            }
            let mut row = Row::default();
            columns.iter().zip(&cells).for_each(|(&column, cell)| row.set(column, cell));
            offers.push(line, &row)?;
            progress.set(line);
        }
    }
    progress.finish();
    Ok(offers)
}

fn is_nested(field: &Type) -> bool {
    let info = field.get_basic_info();
    !field.is_primitive() || !info.has_repetition() || info.repetition() == Repetition::REPEATED
}

fn cell(field: &Field) -> Option<Cow<'static, str>> {
    Some(Cow::Owned(match field {
        Field::Null => return Some(Cow::Borrowed("")),
        // A column of numbers where some have none: what data frames call missing.
        Field::Float(value) => value.to_string(),
        Field::Double(value) => value.to_string(),
        Field::Byte(value) => value.to_string(),
        Field::Short(value) => value.to_string(),
        Field::Int(value) => value.to_string(),
        Field::Long(value) => value.to_string(),
        Field::UByte(value) => value.to_string(),
        Field::UShort(value) => value.to_string(),
        Field::UInt(value) => value.to_string(),
        Field::ULong(value) => value.to_string(),
        Field::Str(text) => text.clone(),
        Field::Decimal(_) => field.to_string(),
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).ok()?.to_owned(),
        _ => return None,
    }))
}

/// Whether it is a column of offers. Others may be nested, and are not read.
fn is_ours(column: &ColumnChunkMetaData) -> bool {
    matches!(column.column_path().parts(), [name] if Column::of_name(name.trim()).is_some())
}

/// A row group whose columns of offers lie in the file and have a value for each row, and whose pages are checked as they are read.
struct CheckedGroup<'a> {
    file: Arc<File>,
    metadata: &'a RowGroupMetaData,
    row_count: u64,
}

impl<'a> CheckedGroup<'a> {
    fn new(file: &Arc<File>, file_len: u64, metadata: &'a RowGroupMetaData) -> Result<Self> {
        let row_count = u64::try_from(metadata.num_rows())?;
        for column in metadata.columns().iter().filter(|column| is_ours(column)) {
            let start = u64::try_from(column.dictionary_page_offset().unwrap_or(column.data_page_offset()))?;
            let end = start.checked_add(u64::try_from(column.compressed_size())?);
            if end.is_none_or(|end| end > file_len) {
                return Err(damaged("a column lies beyond the end of the file"));
            }
            if column.num_values() != metadata.num_rows() {
                return Err(damaged("a column has not one value for each row"));
            }
        }
        Ok(Self { file: Arc::clone(file), metadata, row_count })
    }

    fn pages(&self, column: &ColumnChunkMetaData) -> Result<CheckedPages> {
        let codec = Codec::of(column.compression())?;
        // Pages as they lie in the file: the library would take their word for how long they become.
        let as_they_are = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        let row_count = usize::try_from(self.row_count)?;
        let pages = library(|| SerializedPageReader::new(Arc::clone(&self.file), &as_they_are, row_count, None))?;
        Ok(CheckedPages { pages, codec, has_dictionary: false, values_left: self.row_count })
    }
}

impl RowGroupReader for CheckedGroup<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.metadata
    }

    fn num_columns(&self) -> usize {
        self.metadata.num_columns()
    }

    fn get_column_page_reader(&self, column: usize) -> Result<Box<dyn PageReader>> {
        ours(|| Ok(Box::new(self.pages(self.metadata.column(column))?) as Box<dyn PageReader>))
    }

    fn get_column_bloom_filter(&self, _column: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

/// The pages of a column, not longer than their bytes allow, with one value for each row.
struct CheckedPages {
    pages: SerializedPageReader<File>,
    codec: Codec,
    has_dictionary: bool,
    /// Values that data pages are still to bring.
    values_left: u64,
}

impl CheckedPages {
    fn next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = library(|| self.pages.get_next_page())? else {
            return if self.values_left == 0 { Ok(None) } else { Err(damaged("a column ends before its last row")) };
        };
        let page = match page {
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
                let buf = self.plain(buf, 0)?;
                // No value of a type that has dictionaries takes less than a byte.
                if num_values as usize > buf.len() {
                    return Err(damaged("a dictionary counts more values than it has bytes"));
                }
                self.has_dictionary = true;
                return Ok(Some(Page::DictionaryPage { buf, num_values, encoding, is_sorted }));
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics } => {
                let buf = self.plain(buf, 0)?;
                Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            } => {
                let levels_len = def_levels_byte_len as usize + rep_levels_byte_len as usize;
                if levels_len > buf.len() || num_nulls > num_values {
                    return Err(damaged("a page is longer than its bytes"));
                }
                Page::DataPageV2 {
                    buf: if is_compressed { self.plain(buf, levels_len)? } else { buf },
                    num_values,
                    encoding,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed: false,
                    statistics,
                }
            }
        };
        self.check_data(&page)?;
        Ok(Some(page))
    }

    fn check_data(&mut self, page: &Page) -> Result<()> {
        match page.encoding() {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY if !self.has_dictionary => {
                return Err(damaged("a page has no dictionary"));
            }
            // How many lengths they hold stands in places that only decoding finds.
            Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY => {
                return Err(ParquetError::NYI(format!("encoding {}", page.encoding())));
            }
            _ => {}
        }
        let left = self.values_left.checked_sub(page.num_values().into());
        self.values_left = left.ok_or_else(|| damaged("a column has more values than rows"))?;
        Ok(())
    }

    /// Undoes the compression of all but the first bytes.
    fn plain(&self, page: Bytes, plain_len: usize) -> Result<Bytes> {
        let (first, rest) = page.split_at(plain_len);
        if self.codec == Codec::Plain || rest.is_empty() {
            return Ok(page);
        }
        let mut plain = first.to_vec();
        self.codec.decompress(rest, &mut plain)?;
        Ok(plain.into())
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        ours(|| self.next_page())
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.get_next_page().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_panics_of_the_library_count_as_its_own() {
        let is_library = || IS_IN_LIBRARY.get();
        assert_eq!(library(|| (is_library(), ours(is_library), is_library())), (true, false, true));
        let unwound = std::panic::catch_unwind(|| library(|| std::panic::resume_unwind(Box::new(()))));
        assert!(unwound.is_err() && !is_library());
    }
}
