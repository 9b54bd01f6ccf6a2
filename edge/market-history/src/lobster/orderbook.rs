//! LOBSTER orderbook files: row `k` shows the best levels of both sides after line `k` of the message file.
//!
//! A row has four fields for each level, best first: ask price, ask size, bid price, bid size. A level that is not there has the
//! size 0 and the price 9999999999 (ask) or -9999999999 (bid).

use std::io::{BufRead, Write};

use walras_types::Side;

use super::NAME;
use crate::error::HistoryError;
use crate::event::{Level, PriceUnits, SizeUnits};
use crate::text::{Lines, parse_i64, parse_u64, split_field};

const BOOK_NAME: &str = "LOBSTER orderbook file";
/// Price of an ask level that is not there; a bid level has its negative.
const NO_LEVEL: i64 = 9_999_999_999;
const ADVICE: &str = "give the orderbook file of the same day and level as the message file, as LOBSTER delivers it";

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookRow {
    /// How many levels a side the file shows at most.
    pub levels: usize,
    /// Levels that are there, best first: bids, asks.
    pub sides: [Vec<Level>; 2],
}

impl BookRow {
    /// The levels of a side, best first.
    #[must_use]
    pub fn side(&self, side: Side) -> &[Level] {
        &self.sides[side as usize]
    }
}

/// Reads a LOBSTER orderbook file.
#[derive(Debug)]
pub struct OrderbookReader<R> {
    lines: Lines<R>,
    row: BookRow,
}

impl<R: BufRead> OrderbookReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self { lines: Lines::new(source, BOOK_NAME), row: BookRow::default() }
    }

    /// The next row, with the number of its line; it lives until the next call.
    pub fn next_row(&mut self) -> Option<Result<(u64, &BookRow), HistoryError>> {
        if let Err(error) = self.lines.advance()? {
            return Some(Err(error));
        }
        if let Err(expected) = parse_row(self.lines.current(), &mut self.row) {
            return Some(Err(self.lines.malformed(expected, self.lines.current(), ADVICE)));
        }
        Some(Ok((self.lines.number(), &self.row)))
    }
}

/// Whether a line can be one of an orderbook file; to say so where a message file was asked for.
#[must_use]
pub(crate) fn is_row(line: &[u8]) -> bool {
    parse_row(line, &mut BookRow::default()).is_ok()
}

fn parse_row(line: &[u8], row: &mut BookRow) -> Result<(), &'static str> {
    row.sides.iter_mut().for_each(Vec::clear);
    row.levels = 0;
    let mut rest = Some(line);
    while rest.is_some() {
        for side in [Side::Sell, Side::Buy] {
            let mut field = || {
                let (field, more) = split_field(rest?, b',');
                rest = more;
                Some(field)
            };
            let (Some(price), Some(size)) = (field(), field()) else { return Err("four fields for each level") };
            let price = parse_i64(price).ok_or("a price in whole ten-thousandths of a dollar")?;
            let size = parse_u64(size).ok_or("a size in whole shares")?;
            if price.abs() == NO_LEVEL || size == 0 {
                continue;
            }
            let levels = &mut row.sides[side as usize];
            let is_worse = |last: &Level| match side {
                Side::Buy => price < last.price.0,
                Side::Sell => price > last.price.0,
            };
            if !levels.last().is_none_or(is_worse) {
                return Err("levels from the best price to worse ones");
            }
            levels.push(Level { price: PriceUnits(price), size: SizeUnits(size) });
        }
        row.levels += 1;
    }
    Ok(())
}

/// Writes a row as LOBSTER does.
pub fn write_row(row: &BookRow, sink: &mut impl Write) -> Result<(), HistoryError> {
    for level in 0..row.levels {
        for side in [Side::Sell, Side::Buy] {
            let absent = Level {
                price: PriceUnits(match side {
                    Side::Sell => NO_LEVEL,
                    Side::Buy => -NO_LEVEL,
                }),
                size: SizeUnits(0),
            };
            let Level { price, size } = row.side(side).get(level).copied().unwrap_or(absent);
            let separator = if level == 0 && side == Side::Sell { "" } else { "," };
            write!(sink, "{separator}{},{}", price.0, size.0).map_err(HistoryError::Write)?;
        }
    }
    writeln!(sink).map_err(HistoryError::Write)
}

/// Name of the orderbook file that LOBSTER delivers with a message file: `..._message_10.csv` comes with `..._orderbook_10.csv`.
#[must_use]
pub fn orderbook_name(message_file: &str) -> Option<String> {
    let (head, tail) = message_file.rsplit_once("_message_")?;
    Some(format!("{head}_orderbook_{tail}"))
}

/// Symbol and levels by the name of a message file, `AAPL_2012-06-21_34200000_57600000_message_10.csv`.
#[must_use]
pub fn named(message_file: &str) -> Option<(&str, Option<u32>)> {
    let (head, tail) = message_file.rsplit_once("_message_")?;
    let (symbol, _) = head.split_once('_')?;
    let digits = tail.find(|at: char| !at.is_ascii_digit()).unwrap_or(tail.len());
    (!symbol.is_empty()).then(|| (symbol, tail[..digits].parse().ok()))
}

/// What an error says where a message file was asked for and this one given.
pub(crate) fn instead() -> String {
    format!("it looks like a {BOOK_NAME}; give the {NAME} instead, whose name has _message_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_and_written_again() {
        let text = "5859400,200,5853300,18,5859800,200,-9999999999,0\n9999999999,0,-9999999999,0,9999999999,0,-9999999999,0\n";
        let mut reader = OrderbookReader::new(text.as_bytes());
        let mut again = Vec::new();
        let mut seen = Vec::new();
        while let Some(row) = reader.next_row() {
            let (line, row) = row.unwrap();
            seen.push((line, row.levels, row.side(Side::Buy).len(), row.side(Side::Sell).len()));
            write_row(row, &mut again).unwrap();
        }
        assert_eq!(seen, [(1, 2, 1, 2), (2, 2, 0, 0)]);
        assert_eq!(String::from_utf8(again).unwrap(), text);
    }

    #[test]
    fn a_bad_row_says_where_and_what() {
        for (row, expected) in [
            ("1,2,3", "four fields"),
            ("1,2,x,4", "whole ten-thousandths"),
            ("1,-2,3,4", "whole shares"),
            ("5,1,3,1,4,1,2,1", "from the best"),
        ] {
            let text = format!("5,1,4,1\n{row}\n");
            let mut reader = OrderbookReader::new(text.as_bytes());
            reader.next_row().unwrap().unwrap();
            let error = reader.next_row().unwrap().unwrap_err().to_string();
            assert!(error.contains("line 2 (byte 8)") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn names_say_symbol_levels_and_the_other_file() {
        let name = "AAPL_2012-06-21_34200000_57600000_message_10.csv";
        assert_eq!(named(name), Some(("AAPL", Some(10))));
        assert_eq!(orderbook_name(name).unwrap(), "AAPL_2012-06-21_34200000_57600000_orderbook_10.csv");
        assert_eq!((named("hour.csv"), orderbook_name("hour.csv")), (None, None));
    }
}
