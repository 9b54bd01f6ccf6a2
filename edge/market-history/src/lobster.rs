//! LOBSTER message files: one line per event, `time,type,order id,size,price,direction`, without a header.
//!
//! Time is in seconds after midnight with up to nine decimals, price in ten-thousandths of a dollar, direction the side of the
//! *resting* order (1 buy, -1 sell), also for executions. Times were printed from floats, and a few show it with more digits than
//! they have (one in the free AAPL hour); these are rounded to the nearest nanosecond, which is the one that was meant. Source: the
//! description of the output at lobsterdata.com.

mod levels;
mod orderbook;

pub use levels::LevelCut;
pub use orderbook::{BookRow, OrderbookReader, named, orderbook_name, write_row};
pub(crate) use orderbook::{instead, is_row};

use std::io::{BufRead, Write};

use walras_types::Side;

use crate::error::HistoryError;
use crate::event::{HistoryEvent, HistoryInfo, HistoryKind, MarketPhase, OrderRef, PriceUnits, SizeUnits, Stated, TimeOrigin};
use crate::text::{Digits, Lines, parse_decimal, parse_i64, parse_u64, split_exactly};

const NAME: &str = "LOBSTER message file";

/// What holds for all files of the format.
pub const INFO: HistoryInfo = HistoryInfo { price_scale: 10_000, size_scale: 1, time_origin: TimeOrigin::Midnight };

/// What an event of the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LobsterType {
    /// A limit order now rests.
    Add = 1,
    /// A part of it was cancelled.
    Reduce = 2,
    /// All of it was cancelled.
    Delete = 3,
    /// A visible order traded.
    Execute = 4,
    /// A hidden order traded; its id is zero.
    ExecuteHidden = 5,
    /// An auction traded.
    Cross = 6,
    /// Trading was halted or resumed, as the price says: -1 halt, 0 quotes only, 1 trading.
    Halt = 7,
}

impl LobsterType {
    fn from_number(number: u64) -> Option<Self> {
        Some(match number {
            1 => Self::Add,
            2 => Self::Reduce,
            3 => Self::Delete,
            4 => Self::Execute,
            5 => Self::ExecuteHidden,
            6 => Self::Cross,
            7 => Self::Halt,
            _ => return None,
        })
    }
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LobsterMessage {
    /// Since midnight.
    pub time_ns: u64,
    /// The kind of message.
    pub message_type: LobsterType,
    /// The order; zero or -1 where there is none.
    pub order_id: i64,
    /// Shares.
    pub size: u64,
    /// Ten-thousandths of a dollar, or the code of a [`LobsterType::Halt`].
    pub price: i64,
    /// Side of the resting order.
    pub side: Side,
}

/// Reads a LOBSTER message file.
#[derive(Debug)]
pub struct LobsterReader<R> {
    lines: Lines<R>,
}

impl<R: BufRead> LobsterReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self { lines: Lines::new(source, NAME) }
    }

    /// The next line's message with its line number.
    pub fn next_message(&mut self) -> Option<Result<(u64, LobsterMessage), HistoryError>> {
        Some(self.lines.advance()?.and_then(|()| {
            let line = self.lines.current();
            match parse_message(line) {
                Ok(message) => Ok((self.lines.number(), message)),
                Err(expected) => Err(self.lines.malformed(
                    expected,
                    line,
                    "give the message file (not the order book file) as LOBSTER delivers it, without a header",
                )),
            }
        }))
    }
}

impl<R: BufRead> Iterator for LobsterReader<R> {
    type Item = Result<LobsterMessage, HistoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_message()?.map(|(_, message)| message))
    }
}

pub(crate) fn parse_message(line: &[u8]) -> Result<LobsterMessage, &'static str> {
    // Some deliveries have a seventh column, the participant; it is empty or a name, and not needed.
    let [time, message_type, order_id, size, price, direction] = split_exactly::<6>(line, b',')
        .or_else(|| split_exactly::<7>(line, b',').map(|[a, b, c, d, e, f, _]| [a, b, c, d, e, f]))
        .ok_or("six fields: time,type,order id,size,price,direction")?;
    let time_ns = parse_decimal(time, 9, Digits::Nearest).ok_or("a time in seconds")?;
    let message_type = parse_u64(message_type).and_then(LobsterType::from_number).ok_or("a type from 1 to 7")?;
    let order_id = parse_i64(order_id).ok_or("an order id")?;
    let size = parse_u64(size).ok_or("a size in whole shares")?;
    let price = parse_i64(price).ok_or("a price in whole ten-thousandths of a dollar")?;
    let side = match direction {
        b"1" => Side::Buy,
        b"-1" => Side::Sell,
        _ => return Err("a direction of 1 or -1"),
    };
    let message = LobsterMessage { time_ns, message_type, order_id, size, price, side };
    match message_type {
        LobsterType::Add | LobsterType::Reduce | LobsterType::Delete | LobsterType::Execute if order_id < 0 => {
            Err("an order id that is not negative")
        }
        LobsterType::Halt if !(-1..=1).contains(&price) => Err("a halt code of -1, 0 or 1 as the price of type 7"),
        _ => Ok(message),
    }
}

impl LobsterMessage {
    /// The message as an event.
    #[must_use]
    pub fn event(&self, index: u64) -> HistoryEvent {
        let order_ref = OrderRef(self.order_id.unsigned_abs());
        let (price, size) = (PriceUnits(self.price), SizeUnits(self.size));
        let stated = Some(Stated { side: self.side, price });
        let kind = match self.message_type {
            LobsterType::Add => HistoryKind::Add { order_ref, side: self.side, price, size },
            LobsterType::Reduce => HistoryKind::Reduce { order_ref, size, stated },
            LobsterType::Delete => HistoryKind::Delete { order_ref, open_size: Some(size), stated },
            LobsterType::Execute => HistoryKind::Execute { order_ref, size, stated },
            LobsterType::ExecuteHidden => {
                HistoryKind::Trade { price, size, aggressor: Some(self.side.opposite()), buy_ref: None, sell_ref: None }
            }
            LobsterType::Cross => HistoryKind::AuctionTrade { price, size, buy_ref: None, sell_ref: None },
            LobsterType::Halt => HistoryKind::Phase(match self.price {
                -1 => MarketPhase::Halt,
                0 => MarketPhase::QuotesOnly,
                _ => MarketPhase::Continuous,
            }),
        };
        HistoryEvent { time_ns: self.time_ns, index, sequence: None, instrument: 0, kind }
    }

    /// The line for an event, or what the format has no room for.
    pub fn from_event(event: &HistoryEvent) -> Result<Self, HistoryError> {
        let refuse = |what, advice| HistoryError::Unwritable { index: event.index, what, format: NAME, advice };
        let nameless = || refuse("an event without the order's side and price", "join it with a book that knows them first");
        let (message_type, order_ref, size, price, side) = match event.kind {
            HistoryKind::Add { order_ref, side, price, size } => (LobsterType::Add, order_ref, size, price, side),
            HistoryKind::Reduce { order_ref, size, stated: Some(Stated { side, price }) } => {
                (LobsterType::Reduce, order_ref, size, price, side)
            }
            HistoryKind::Delete { order_ref, open_size: Some(size), stated: Some(Stated { side, price }) } => {
                (LobsterType::Delete, order_ref, size, price, side)
            }
            HistoryKind::Execute { order_ref, size, stated: Some(Stated { side, price }) } => {
                (LobsterType::Execute, order_ref, size, price, side)
            }
            HistoryKind::Reduce { .. } | HistoryKind::Delete { .. } | HistoryKind::Execute { .. } => return Err(nameless()),
            HistoryKind::Trade { price, size, aggressor: Some(aggressor), buy_ref: None, sell_ref: None } => {
                (LobsterType::ExecuteHidden, OrderRef(0), size, price, aggressor.opposite())
            }
            HistoryKind::AuctionTrade { price, size, .. } => (LobsterType::Cross, OrderRef(0), size, price, Side::Sell),
            HistoryKind::Phase(phase) => {
                let code = match phase {
                    MarketPhase::Halt => -1,
                    MarketPhase::QuotesOnly => 0,
                    MarketPhase::Continuous => 1,
                    MarketPhase::PreOpen | MarketPhase::OpeningAuction | MarketPhase::ClosingAuction | MarketPhase::Closed => {
                        return Err(refuse("a phase that is no halt and no end of one", "leave it out"));
                    }
                };
                (LobsterType::Halt, OrderRef(0), SizeUnits(0), PriceUnits(code), Side::Sell)
            }
            HistoryKind::Trade { .. }
            | HistoryKind::ExecuteAtPrice { .. }
            | HistoryKind::Replace { .. }
            | HistoryKind::SetOpenSize { .. }
            | HistoryKind::Snapshot { .. }
            | HistoryKind::Directory { .. }
            | HistoryKind::Submit { .. }
            | HistoryKind::Move { .. } => {
                return Err(refuse("an event of this kind", "write only what rests, shrinks, leaves or trades"));
            }
        };
        let order_id = i64::try_from(order_ref.0).map_err(|_| refuse("an order number above 2^63", "renumber the orders"))?;
        Ok(Self { time_ns: event.time_ns, message_type, order_id, size: size.0, price: price.0, side })
    }
}

/// Writes a LOBSTER message file.
#[derive(Debug)]
pub struct LobsterWriter<W> {
    sink: W,
}

impl<W: Write> LobsterWriter<W> {
    /// Writes to `sink`, which should buffer.
    pub fn new(sink: W) -> Self {
        Self { sink }
    }

    /// Writes one line, the time with all nine decimals.
    pub fn write(&mut self, message: &LobsterMessage) -> Result<(), HistoryError> {
        let direction = match message.side {
            Side::Buy => 1,
            Side::Sell => -1,
        };
        writeln!(
            self.sink,
            "{}.{:09},{},{},{},{},{direction}",
            message.time_ns / 1_000_000_000,
            message.time_ns % 1_000_000_000,
            message.message_type as u8,
            message.order_id,
            message.size,
            message.price,
        )
        .map_err(HistoryError::Write)
    }

    /// Flushes and gives the sink back.
    pub fn finish(mut self) -> Result<W, HistoryError> {
        self.sink.flush().map_err(HistoryError::Write)?;
        Ok(self.sink)
    }
}

/// Reads all of `bytes`, to the first error: the entry for fuzzing.
pub fn parse_all(bytes: &[u8]) -> Result<u64, HistoryError> {
    LobsterReader::new(bytes).try_fold(0, |count, message| message.map(|_| count + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_to_the_nanosecond() {
        let message = parse_message(b"34200.00426064,1,16113584,18,5853200,1").unwrap();
        assert_eq!(message.time_ns, 34_200_004_260_640);
        assert_eq!((message.order_id, message.size, message.price, message.side), (16_113_584, 18, 5_853_200, Side::Buy));
        // Seen in the AAPL hour: a float's last digits.
        assert_eq!(parse_message(b"35821.088778456004,3,1,1,1,1").unwrap().time_ns, 35_821_088_778_456);
        assert_eq!(parse_message(b"34200.5,4,7,1,10000,-1,NSDQ").unwrap().side, Side::Sell);
    }

    #[test]
    fn a_bad_line_says_where_and_what() {
        for (line, expected) in [
            ("Time,Event Type,Order ID,Size,Price,Direction", "a time in seconds"),
            ("-1.5,1,1,1,1,1", "a time in seconds"),
            ("1,8,1,1,1,1", "a type from 1 to 7"),
            ("1,1,1,1,1.5,1", "whole ten-thousandths"),
            ("1,1,-1,1,1,1", "not negative"),
            ("1,1,1,-1,1,1", "whole shares"),
            ("1,1,1,1,1,0", "a direction"),
            ("1,7,0,0,5,-1", "a halt code"),
            ("1,1,1,1,1", "six fields"),
        ] {
            let text = format!("1,1,1,1,1,1\n{line}\n2,1,1,1,1,1\n");
            let mut reader = LobsterReader::new(text.as_bytes());
            reader.next().unwrap().unwrap();
            let error = reader.next().unwrap().unwrap_err().to_string();
            assert!(error.contains("line 2 (byte 12)") && error.contains(expected), "{error}");
            reader.next().unwrap().unwrap();
            assert!(reader.next().is_none());
        }
    }

    #[test]
    fn halts_are_phases() {
        for (code, phase) in [(-1, MarketPhase::Halt), (0, MarketPhase::QuotesOnly), (1, MarketPhase::Continuous)] {
            let message = parse_message(format!("40000.0,7,0,0,{code},-1").as_bytes()).unwrap();
            assert_eq!(message.event(1).kind, HistoryKind::Phase(phase));
            assert_eq!(LobsterMessage::from_event(&message.event(1)).unwrap(), message);
        }
    }
}
