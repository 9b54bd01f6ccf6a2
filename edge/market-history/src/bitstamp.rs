//! Bitstamp's BTC/USD stream of 2015: the log of its websocket (`milliseconds event {json}` a line) and the order events parsed
//! from it by another program (`orders.csv`).
//!
//! Prices are in cents, sizes in satoshi. The stream was not in sequence and says only an order's new open size, so it is a test of
//! readers rather than an oracle of matching. `orders.csv` lacks one satoshi in every twelfth line, where its program cut off a
//! float: the log is the better source. Numbers that the exchange printed from binary floats (those of trades) are rounded to
//! the nearest cent or satoshi, which is the number that it meant; all others must be exact.

use std::io::BufRead;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use walras_types::Side;

use crate::error::HistoryError;
use crate::event::{
    BookSnapshot, HistoryEvent, HistoryInfo, HistoryKind, Level, Levels, OrderRef, PriceUnits, SizeUnits, Stated, TimeOrigin,
};
use crate::text::{Digits, Lines, parse_decimal, parse_u64, split_exactly};

const LOG_NAME: &str = "Bitstamp websocket log";
const ORDERS_NAME: &str = "Bitstamp orders.csv";

/// First line of `orders.csv`.
pub(crate) const ORDERS_HEADER: &[u8] = b"id,timestamp,exchange.timestamp,price,volume,action,direction";

/// What holds for all files of both formats.
pub const INFO: HistoryInfo = HistoryInfo { price_scale: 100, size_scale: 100_000_000, time_origin: TimeOrigin::UnixEpoch };

const PRICE_DECIMALS: u32 = 2;
const SIZE_DECIMALS: u32 = 8;

/// What happened to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitstampAction {
    /// It came.
    Created,
    /// Its open size changed.
    Changed,
    /// It left; its open size is zero if it traded.
    Deleted,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitstampMessage {
    /// Of an order.
    Order {
        /// The event.
        action: BitstampAction,
        /// The order.
        id: u64,
        /// Its side.
        side: Side,
        /// Its price.
        price: PriceUnits,
        /// What is open now.
        size: SizeUnits,
        /// The exchange's time of it, since 1970; whole seconds in the log.
        exchange_time_ns: u64,
    },
    /// A trade; the stream does not say whose.
    Trade {
        /// Its number.
        id: u64,
        /// The price.
        price: PriceUnits,
        /// Size in units.
        size: SizeUnits,
    },
    /// A snapshot; its levels are in the reader.
    OrderBook,
}

/// A message with the time of its receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitstampTimed {
    /// Since 1970, to the millisecond.
    pub time_ns: u64,
    /// The message.
    pub message: BitstampMessage,
}

impl BitstampTimed {
    /// The message as an event; `snapshot` is the reader's.
    #[must_use]
    pub fn event(&self, index: u64, snapshot: &BookSnapshot) -> HistoryEvent {
        let kind = match self.message {
            BitstampMessage::Order { action, id, side, price, size, .. } => {
                let (order_ref, stated) = (OrderRef(id), Some(Stated { side, price }));
                match action {
                    BitstampAction::Created => HistoryKind::Add { order_ref, side, price, size },
                    BitstampAction::Changed => HistoryKind::SetOpenSize { order_ref, size, stated },
                    BitstampAction::Deleted => HistoryKind::Delete { order_ref, open_size: Some(size), stated },
                }
            }
            BitstampMessage::Trade { price, size, .. } => {
                HistoryKind::Trade { price, size, aggressor: None, buy_ref: None, sell_ref: None }
            }
            BitstampMessage::OrderBook => {
                HistoryKind::Snapshot { bid_levels: snapshot.bids.count(), ask_levels: snapshot.asks.count() }
            }
        };
        HistoryEvent { time_ns: self.time_ns, index, sequence: None, instrument: 0, kind }
    }
}

/// Reads the websocket log.
#[derive(Debug)]
pub struct BitstampLogReader<R> {
    lines: Lines<R>,
    snapshot: BookSnapshot,
}

impl<R: BufRead> BitstampLogReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self { lines: Lines::new(source, LOG_NAME), snapshot: BookSnapshot::default() }
    }

    /// What the last [`BitstampMessage::OrderBook`] said.
    pub fn snapshot(&self) -> &BookSnapshot {
        &self.snapshot
    }

    /// The next message with its line number.
    pub fn next_message(&mut self) -> Option<Result<(u64, BitstampTimed), HistoryError>> {
        Some(self.lines.advance()?.and_then(|()| {
            let line = self.lines.current();
            match parse_log_line(line, &mut self.snapshot) {
                Ok(message) => Ok((self.lines.number(), message)),
                Err(expected) => Err(self.lines.malformed(
                    expected,
                    line,
                    "give the log with one event a line: milliseconds, the event's name, its JSON",
                )),
            }
        }))
    }
}

impl<R: BufRead> Iterator for BitstampLogReader<R> {
    type Item = Result<BitstampTimed, HistoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_message()?.map(|(_, message)| message))
    }
}

#[derive(serde::Deserialize)]
struct OrderJson<'a> {
    price: &'a str,
    amount: &'a str,
    datetime: &'a str,
    id: u64,
    order_type: u8,
}

#[derive(serde::Deserialize)]
struct TradeJson<'a> {
    #[serde(borrow)]
    price: &'a RawValue,
    #[serde(borrow)]
    amount: &'a RawValue,
    id: u64,
}

#[derive(serde::Deserialize)]
struct BookJson {
    #[serde(deserialize_with = "levels")]
    bids: Levels,
    #[serde(deserialize_with = "levels")]
    asks: Levels,
}

fn levels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Levels, D::Error> {
    struct LevelsVisitor;
    impl<'de> Visitor<'de> for LevelsVisitor {
        type Value = Levels;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of [price, amount]")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Levels, A::Error> {
            let mut levels = Levels::default();
            while let Some((price, amount)) = list.next_element::<(&str, &str)>()? {
                let level = parse_price(price.as_bytes(), Digits::Exact)
                    .zip(parse_size(amount.as_bytes(), Digits::Exact))
                    .map(|(price, size)| Level { price, size })
                    .ok_or_else(|| A::Error::custom("a price in cents and an amount in satoshi"))?;
                if !levels.push(level) {
                    return Err(A::Error::custom("more levels than a snapshot holds"));
                }
            }
            Ok(levels)
        }
    }
    deserializer.deserialize_seq(LevelsVisitor)
}

fn parse_price(text: &[u8], digits: Digits) -> Option<PriceUnits> {
    parse_decimal(text, PRICE_DECIMALS, digits).and_then(|units| i64::try_from(units).ok()).map(PriceUnits)
}

fn parse_size(text: &[u8], digits: Digits) -> Option<SizeUnits> {
    parse_decimal(text, SIZE_DECIMALS, digits).map(SizeUnits)
}

fn parse_time_ns(text: &[u8], ns_per_unit: u64) -> Option<u64> {
    parse_u64(text).and_then(|units| units.checked_mul(ns_per_unit))
}

/// Time and event name, and the JSON behind them.
pub(crate) fn split_log_line(line: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let time_ns = parse_time_ns(parts.next()?, 1_000_000)?;
    Some((time_ns, parts.next()?, parts.next()?))
}

fn parse_log_line(line: &[u8], snapshot: &mut BookSnapshot) -> Result<BitstampTimed, &'static str> {
    let (time_ns, name, json) = split_log_line(line).ok_or("milliseconds since 1970, an event's name and its JSON")?;
    let message = match name {
        b"order_created" => parse_order_json(json, BitstampAction::Created)?,
        b"order_changed" => parse_order_json(json, BitstampAction::Changed)?,
        b"order_deleted" => parse_order_json(json, BitstampAction::Deleted)?,
        b"trade" => {
            let trade: TradeJson<'_> = serde_json::from_slice(json).map_err(|_| "a trade's JSON with price, amount and id")?;
            BitstampMessage::Trade {
                id: trade.id,
                price: parse_price(trade.price.get().as_bytes(), Digits::Nearest).ok_or("a trade's price as a number")?,
                size: parse_size(trade.amount.get().as_bytes(), Digits::Nearest).ok_or("a trade's amount as a number")?,
            }
        }
        b"order_book" => {
            let book: BookJson =
                serde_json::from_slice(json).map_err(|_| "a snapshot's JSON with at most 32 bids and asks as [price, amount]")?;
            *snapshot = BookSnapshot { bids: book.bids, asks: book.asks, ..BookSnapshot::default() };
            BitstampMessage::OrderBook
        }
        _ => return Err("an event named order_created, order_changed, order_deleted, trade or order_book"),
    };
    Ok(BitstampTimed { time_ns, message })
}

fn parse_order_json(json: &[u8], action: BitstampAction) -> Result<BitstampMessage, &'static str> {
    let order: OrderJson<'_> =
        serde_json::from_slice(json).map_err(|_| "an order's JSON with price, amount, datetime, id and order_type")?;
    Ok(BitstampMessage::Order {
        action,
        id: order.id,
        side: match order.order_type {
            0 => Side::Buy,
            1 => Side::Sell,
            _ => return Err("an order_type of 0 (buy) or 1 (sell)"),
        },
        price: parse_price(order.price.as_bytes(), Digits::Exact).ok_or("a price in whole cents")?,
        size: parse_size(order.amount.as_bytes(), Digits::Exact).ok_or("an amount in whole satoshi")?,
        exchange_time_ns: parse_time_ns(order.datetime.as_bytes(), 1_000_000_000).ok_or("a datetime in seconds since 1970")?,
    })
}

/// Reads `orders.csv`.
#[derive(Debug)]
pub struct BitstampOrdersReader<R> {
    lines: Lines<R>,
}

impl<R: BufRead> BitstampOrdersReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self { lines: Lines::new(source, ORDERS_NAME) }
    }

    /// The next message with its line number; the header is line 1.
    pub fn next_message(&mut self) -> Option<Result<(u64, BitstampTimed), HistoryError>> {
        if self.lines.number() == 0 {
            match self.lines.advance()? {
                Ok(()) if self.lines.current() == ORDERS_HEADER => {}
                Ok(()) => {
                    return Some(Err(self.lines.malformed(
                        "the header id,timestamp,exchange.timestamp,price,volume,action,direction",
                        self.lines.current(),
                        "give the file with its header",
                    )));
                }
                Err(error) => return Some(Err(error)),
            }
        }
        Some(self.lines.advance()?.and_then(|()| {
            let line = self.lines.current();
            match parse_orders_line(line) {
                Ok(message) => Ok((self.lines.number(), message)),
                Err(expected) => {
                    Err(self.lines.malformed(expected, line, "give the file as its program wrote it: seven columns, no quotes"))
                }
            }
        }))
    }
}

impl<R: BufRead> Iterator for BitstampOrdersReader<R> {
    type Item = Result<BitstampTimed, HistoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_message()?.map(|(_, message)| message))
    }
}

fn parse_orders_line(line: &[u8]) -> Result<BitstampTimed, &'static str> {
    let [id, time, exchange_time, price, size, action, side] =
        split_exactly::<7>(line, b',').ok_or("seven columns: id,timestamp,exchange.timestamp,price,volume,action,direction")?;
    let message = BitstampMessage::Order {
        id: parse_u64(id).ok_or("an order id")?,
        exchange_time_ns: parse_time_ns(exchange_time, 1_000_000).ok_or("an exchange time in milliseconds since 1970")?,
        price: parse_price(price, Digits::Exact).ok_or("a price in whole cents")?,
        size: SizeUnits(parse_u64(size).ok_or("a volume in satoshi")?),
        action: match action {
            b"created" => BitstampAction::Created,
            b"changed" => BitstampAction::Changed,
            b"deleted" => BitstampAction::Deleted,
            _ => return Err("an action of created, changed or deleted"),
        },
        side: match side {
            b"bid" => Side::Buy,
            b"ask" => Side::Sell,
            _ => return Err("a direction of bid or ask"),
        },
    };
    Ok(BitstampTimed { time_ns: parse_time_ns(time, 1_000_000).ok_or("a time in milliseconds since 1970")?, message })
}

/// Reads all of `bytes` as a websocket log, to the first error: an entry for fuzzing.
pub fn parse_all_log(bytes: &[u8]) -> Result<u64, HistoryError> {
    BitstampLogReader::new(bytes).try_fold(0, |count, message| message.map(|_| count + 1))
}

/// Reads all of `bytes` as `orders.csv`, to the first error: an entry for fuzzing.
pub fn parse_all_orders(bytes: &[u8]) -> Result<u64, HistoryError> {
    BitstampOrdersReader::new(bytes).try_fold(0, |count, message| message.map(|_| count + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_exactly() {
        let text = concat!(
            "1430438404518 order_created {\"price\": \"236.47\", \"amount\": \"2.00000000\", \"datetime\": \"1430438404\", ",
            "\"id\": 65595247, \"order_type\": 0}\n",
            "1430442721068 trade {\"price\": 236.28999999999999, \"amount\": 9.9999999999999995e-07, \"id\": 8111281}\n",
            "1430438405885 order_book {\"bids\": [[\"236.47\", \"1.78855669\"]], \"asks\": []}\n",
        );
        let mut reader = BitstampLogReader::new(text.as_bytes());
        let (_, first) = reader.next_message().unwrap().unwrap();
        assert_eq!(first.time_ns, 1_430_438_404_518_000_000);
        let expected = BitstampMessage::Order {
            action: BitstampAction::Created,
            id: 65_595_247,
            side: Side::Buy,
            price: PriceUnits(23_647),
            size: SizeUnits(200_000_000),
            exchange_time_ns: 1_430_438_404_000_000_000,
        };
        assert_eq!(first.message, expected);
        let (_, trade) = reader.next_message().unwrap().unwrap();
        assert_eq!(trade.message, BitstampMessage::Trade { id: 8_111_281, price: PriceUnits(23_629), size: SizeUnits(100) });
        let (_, book) = reader.next_message().unwrap().unwrap();
        assert_eq!(book.message, BitstampMessage::OrderBook);
        let best = Level { price: PriceUnits(23_647), size: SizeUnits(178_855_669) };
        assert_eq!((reader.snapshot().bids.as_slice(), reader.snapshot().asks.count()), (&[best][..], 0));
        assert!(reader.next_message().is_none());
    }

    #[test]
    fn the_orders_are_read_and_their_header_asked_for() {
        let text = "id,timestamp,exchange.timestamp,price,volume,action,direction\n\
                    65595187,1430438404637,1430438340000,236.47,0,deleted,ask\n";
        let message = BitstampOrdersReader::new(text.as_bytes()).next().unwrap().unwrap();
        let expected = BitstampMessage::Order {
            action: BitstampAction::Deleted,
            id: 65_595_187,
            side: Side::Sell,
            price: PriceUnits(23_647),
            size: SizeUnits(0),
            exchange_time_ns: 1_430_438_340_000_000_000,
        };
        assert_eq!(message.message, expected);
        assert!(parse_all_orders(b"1,2,3,4,5,created,bid\n").unwrap_err().to_string().contains("with its header"));
    }

    #[test]
    fn bad_json_is_an_error_with_its_line() {
        for (line, expected) in [
            ("1 order_created {}", "an order's JSON"),
            (
                "1 order_created {\"price\": \"1.005\", \"amount\": \"1\", \"datetime\": \"1\", \"id\": 1, \"order_type\": 0}",
                "whole cents",
            ),
            ("1 trade {\"price\": \"1\", \"amount\": 1, \"id\": 1}", "price as a number"),
            ("1 order_book {\"bids\": [[\"1\"]], \"asks\": []}", "a snapshot's JSON"),
            ("1 order_melted {}", "an event named"),
            ("x trade {}", "milliseconds since 1970"),
        ] {
            let error = parse_all_log(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("line 1") && error.contains(expected), "{error}");
        }
    }
}
