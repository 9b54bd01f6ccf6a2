//! Files of commands to drive a book with, 32 bytes each, little endian: `u8` operation (0 limit, 1 immediate-or-cancel, 2 cancel,
//! 3 move, 4 reduce), `u8` side (0 ask, 1 bid; only for 0 and 1), `u16` zero, `u32` user, `i64` order id, `i64` price (0, 1, 3),
//! `i64` size (0, 1, and how much less for 4). What a command does not use is zero.
//!
//! Next to such a file lies what a correct book makes of it ([`WorkloadResult`], `FILE.expect`): so any engine can be driven alike
//! and its answer checked. The layout was made to hold the stream of exchange-core's own test generator.

use std::io::{BufRead, ErrorKind, Write};

use walras_types::Side;

use crate::error::{HistoryError, Position, show};
use crate::event::{HistoryEvent, HistoryInfo, HistoryKind, Lasting, OrderRef, PriceUnits, SizeUnits, TimeOrigin};

const NAME: &str = "32-byte workload file";

/// Bytes of a command.
pub const RECORD_BYTES: usize = 32;

/// What holds for all files of the format.
pub const INFO: HistoryInfo = HistoryInfo { price_scale: 1, size_scale: 1, time_origin: TimeOrigin::Absent };

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadOp {
    /// A limit order; what does not trade at once rests.
    Limit {
        /// Its side.
        side: Side,
        /// Its price in ticks, above zero.
        price_ticks: i64,
        /// Its size in lots, above zero.
        size_lots: i64,
    },
    /// A limit order; what does not trade at once is cancelled.
    Immediate {
        /// Its side.
        side: Side,
        /// Its price in ticks, above zero.
        price_ticks: i64,
        /// Its size in lots, above zero.
        size_lots: i64,
    },
    /// The order leaves.
    Cancel,
    /// The order is removed, and the rest of it submitted again at this price.
    Move {
        /// In ticks, above zero.
        price_ticks: i64,
    },
    /// The order shrinks by this and keeps its place; it leaves if nothing is left.
    Reduce {
        /// In lots, above zero.
        size_lots: i64,
    },
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadCommand {
    /// The user.
    pub user: u32,
    /// The order, above zero.
    pub order_id: u64,
    /// The operation.
    pub op: WorkloadOp,
}

impl WorkloadCommand {
    /// The command in bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let bid = |side| u8::from(side == Side::Buy);
        let (op, side, price, size) = match self.op {
            WorkloadOp::Limit { side, price_ticks, size_lots } => (0, bid(side), price_ticks, size_lots),
            WorkloadOp::Immediate { side, price_ticks, size_lots } => (1, bid(side), price_ticks, size_lots),
            WorkloadOp::Cancel => (2, 0, 0, 0),
            WorkloadOp::Move { price_ticks } => (3, 0, price_ticks, 0),
            WorkloadOp::Reduce { size_lots } => (4, 0, 0, size_lots),
        };
        let mut record = [0; RECORD_BYTES];
        record[0] = op;
        record[1] = side;
        record[4..8].copy_from_slice(&self.user.to_le_bytes());
        record[8..16].copy_from_slice(&self.order_id.to_le_bytes());
        record[16..24].copy_from_slice(&price.to_le_bytes());
        record[24..32].copy_from_slice(&size.to_le_bytes());
        record
    }

    /// The command in `record`, or what was expected instead.
    pub fn decode(record: &[u8; RECORD_BYTES]) -> Result<Self, &'static str> {
        let word = |at: usize| {
            let (_, tail) = record.split_at(at);
            i64::from_le_bytes(*tail.first_chunk().expect("a record has four words of eight bytes"))
        };
        let [op, side, zero_a, zero_b, user @ ..] = *record.first_chunk::<8>().expect("a record has 32 bytes");
        let (order_id, price_ticks, size_lots) = (word(8), word(16), word(24));
        if (zero_a, zero_b) != (0, 0) {
            return Err("zero in bytes 2 and 3");
        }
        if order_id <= 0 {
            return Err("an order id above zero");
        }
        let (needs_price, needs_size) = (matches!(op, 0 | 1 | 3), matches!(op, 0 | 1 | 4));
        if (price_ticks > 0) != needs_price || price_ticks < 0 {
            return Err("a price above zero for operations 0, 1 and 3, and zero for others");
        }
        if (size_lots > 0) != needs_size || size_lots < 0 {
            return Err("a size above zero for operations 0, 1 and 4, and zero for others");
        }
        let side = match (side, op) {
            (0, _) => Side::Sell,
            (1, 0 | 1) => Side::Buy,
            _ => return Err("a side of 0 or 1 for operations 0 and 1, and zero for others"),
        };
        let op = match op {
            0 => WorkloadOp::Limit { side, price_ticks, size_lots },
            1 => WorkloadOp::Immediate { side, price_ticks, size_lots },
            2 => WorkloadOp::Cancel,
            3 => WorkloadOp::Move { price_ticks },
            4 => WorkloadOp::Reduce { size_lots },
            _ => return Err("an operation from 0 to 4"),
        };
        Ok(Self { user: u32::from_le_bytes(user), order_id: order_id.unsigned_abs(), op })
    }

    /// The command as an event.
    #[must_use]
    pub fn event(&self, index: u64) -> HistoryEvent {
        let order_ref = OrderRef(self.order_id);
        let submit = |side, price_ticks, size_lots: i64, lasting| HistoryKind::Submit {
            order_ref,
            side,
            price: PriceUnits(price_ticks),
            size: SizeUnits(size_lots.unsigned_abs()),
            lasting,
        };
        let kind = match self.op {
            WorkloadOp::Limit { side, price_ticks, size_lots } => submit(side, price_ticks, size_lots, Lasting::GoodTillCancel),
            WorkloadOp::Immediate { side, price_ticks, size_lots } => {
                submit(side, price_ticks, size_lots, Lasting::ImmediateOrCancel)
            }
            WorkloadOp::Cancel => HistoryKind::Delete { order_ref, open_size: None, stated: None },
            WorkloadOp::Move { price_ticks } => HistoryKind::Move { order_ref, price: PriceUnits(price_ticks) },
            WorkloadOp::Reduce { size_lots } => {
                HistoryKind::Reduce { order_ref, size: SizeUnits(size_lots.unsigned_abs()), stated: None }
            }
        };
        HistoryEvent { time_ns: 0, index, sequence: None, instrument: 0, kind }
    }
}

/// Reads a file of commands. Ends at the first error.
#[derive(Debug)]
pub struct WorkloadReader<R> {
    source: R,
    index: u64,
    ended: bool,
}

impl<R: BufRead> WorkloadReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self { source, index: 0, ended: false }
    }

    /// The next command with its number, from 1.
    pub fn next_command(&mut self) -> Option<Result<(u64, WorkloadCommand), HistoryError>> {
        if self.ended {
            return None;
        }
        let at = Position::Byte(self.index * RECORD_BYTES as u64);
        let result = self.read_command(at).transpose();
        self.ended = !matches!(result, Some(Ok(_)));
        result
    }

    fn read_command(&mut self, at: Position) -> Result<Option<(u64, WorkloadCommand)>, HistoryError> {
        let mut record = [0u8; RECORD_BYTES];
        let mut filled = 0;
        while filled < RECORD_BYTES {
            match self.source.read(&mut record[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(HistoryError::Read { at, source: ErrorKind::UnexpectedEof.into() }),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(HistoryError::Read { at, source }),
            }
        }
        self.index += 1;
        match WorkloadCommand::decode(&record) {
            Ok(command) => Ok(Some((self.index, command))),
            Err(expected) => Err(HistoryError::Malformed {
                format: NAME,
                at,
                expected,
                found: show(&record),
                advice: "this is no file of 32-byte commands, or it is damaged: make or fetch it again",
            }),
        }
    }
}

impl<R: BufRead> Iterator for WorkloadReader<R> {
    type Item = Result<WorkloadCommand, HistoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_command()?.map(|(_, command)| command))
    }
}

/// Writes commands to `sink`, which should buffer, and flushes it.
pub fn write_commands<W: Write>(commands: impl IntoIterator<Item = WorkloadCommand>, sink: &mut W) -> Result<u64, HistoryError> {
    let mut count = 0;
    for command in commands {
        sink.write_all(&command.encode()).map_err(HistoryError::Write)?;
        count += 1;
    }
    sink.flush().map_err(HistoryError::Write)?;
    Ok(count)
}

/// Reads all of `bytes`, to the first error: the entry for fuzzing.
pub fn parse_all(bytes: &[u8]) -> Result<u64, HistoryError> {
    WorkloadReader::new(bytes).try_fold(0, |count, command| command.map(|_| count + 1))
}

/// How many commands of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadMix {
    /// [`WorkloadOp::Limit`].
    pub limit: u64,
    /// [`WorkloadOp::Immediate`].
    pub immediate: u64,
    /// [`WorkloadOp::Cancel`].
    pub cancel: u64,
    /// [`WorkloadOp::Move`].
    pub moves: u64,
    /// [`WorkloadOp::Reduce`].
    pub reduce: u64,
}

impl WorkloadMix {
    /// Counts a command.
    pub fn count(&mut self, op: &WorkloadOp) {
        match op {
            WorkloadOp::Limit { .. } => self.limit += 1,
            WorkloadOp::Immediate { .. } => self.immediate += 1,
            WorkloadOp::Cancel => self.cancel += 1,
            WorkloadOp::Move { .. } => self.moves += 1,
            WorkloadOp::Reduce { .. } => self.reduce += 1,
        }
    }

    /// All commands.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.limit + self.immediate + self.cancel + self.moves + self.reduce
    }
}

/// Best price and what rests there.
pub type BestLevel = Option<(i64, u64)>;

/// What a right book makes of a file of commands: the content of `FILE.expect`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadResult {
    /// How many of the first commands fill the book, before what is to be timed.
    pub fill_commands: u64,
    /// Commands by kind.
    pub mix: WorkloadMix,
    /// Trades: pairs of an order that takes and one that rests.
    pub trades: u64,
    /// Lots traded.
    pub volume_lots: u64,
    /// Commands that traded at least once.
    pub commands_with_trade: u64,
    /// Ask levels left.
    pub ask_levels: u64,
    /// Bid levels left.
    pub bid_levels: u64,
    /// Asks left.
    pub ask_orders: u64,
    /// Bids left.
    pub bid_orders: u64,
    /// [`level_hash`] of the levels left.
    pub level_hash: u64,
    /// Best ask left.
    pub best_ask: BestLevel,
    /// Best bid left.
    pub best_bid: BestLevel,
    /// Lowest price of a resting order, a moved one included.
    pub price_min_ticks: i64,
    /// Highest.
    pub price_max_ticks: i64,
}

/// Hash of a book's levels (FNV-1a, a 64-bit word at a time): asks from the best to the worst, then bids from the best to the
/// worst, of each level its price and then its lots. It starts from a number of its own, a digit short of FNV's, because the
/// answers that exist do.
#[must_use]
pub fn level_hash(asks: impl Iterator<Item = (i64, u64)>, bids: impl Iterator<Item = (i64, u64)>) -> u64 {
    asks.chain(bids)
        .flat_map(|(price_ticks, size_lots)| [price_ticks.cast_unsigned(), size_lots])
        .fold(1_469_598_103_934_665_603, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3))
}

impl WorkloadResult {
    /// Reads the text of a `.expect` file.
    pub fn parse(text: &str) -> Result<Self, HistoryError> {
        let mut words = Words { text, rest: text };
        let mut result = Self::default();
        let messages = words.number(&["msgs"])?;
        result.fill_commands = words.number(&["fill"])?;
        result.mix.limit = words.number(&["mix", "gtc="])?;
        result.mix.immediate = words.number(&["ioc="])?;
        result.mix.cancel = words.number(&["cancel="])?;
        result.mix.moves = words.number(&["move="])?;
        result.mix.reduce = words.number(&["reduce="])?;
        if messages != result.mix.total() {
            return Err(words.error("msgs equal to the sum of the mix"));
        }
        result.trades = words.number(&["trades"])?;
        result.volume_lots = words.number(&["volume"])?;
        result.commands_with_trade = words.number(&["msgs_with_trade"])?;
        result.ask_levels = words.number(&["levels", "ask"])?;
        result.bid_levels = words.number(&["bid"])?;
        result.ask_orders = words.number(&["orders", "ask"])?;
        result.bid_orders = words.number(&["bid"])?;
        words.word("l2hash")?;
        words.skip_to(')')?;
        result.level_hash = words.number(&[])?;
        result.best_ask = words.best(&["bestask"])?;
        result.best_bid = words.best(&["bestbid"])?;
        result.price_min_ticks = words.price(&["price", "range"])?;
        result.price_max_ticks = words.price(&[".."])?;
        Ok(result)
    }
}

impl std::fmt::Display for WorkloadResult {
    /// Writes the text of a `.expect` file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let WorkloadMix { limit, immediate, cancel, moves, reduce } = self.mix;
        writeln!(
            f,
            "msgs {} fill {} mix gtc={limit} ioc={immediate} cancel={cancel} move={moves} reduce={reduce}",
            self.mix.total(),
            self.fill_commands
        )?;
        writeln!(f, "trades {} volume {} msgs_with_trade {}", self.trades, self.volume_lots, self.commands_with_trade)?;
        writeln!(
            f,
            "levels ask {} bid {} orders ask {} bid {}",
            self.ask_levels, self.bid_levels, self.ask_orders, self.bid_orders
        )?;
        writeln!(f, "l2hash(fnv1a64 over words: ask best->worst price,vol; bid best->worst) {}", self.level_hash)?;
        let (ask_price, ask_size) = self.best_ask.unwrap_or_default();
        let (bid_price, bid_size) = self.best_bid.unwrap_or_default();
        writeln!(f, "bestask {ask_price} {ask_size} bestbid {bid_price} {bid_size}")?;
        writeln!(f, "price range {}..{}", self.price_min_ticks, self.price_max_ticks)
    }
}

/// Words of a `.expect` file.
struct Words<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Words<'_> {
    fn error(&self, expected: &'static str) -> HistoryError {
        let at = self.text.len() - self.rest.len();
        let line = 1 + self.text[..at].matches('\n').count() as u64;
        HistoryError::Malformed {
            format: "workload .expect file",
            at: Position::Line { line, byte: at as u64 },
            expected,
            found: show(self.rest.as_bytes()),
            advice: "give the .expect file that was made with the workload",
        }
    }

    fn word(&mut self, word: &'static str) -> Result<(), HistoryError> {
        self.rest = self.rest.trim_start().strip_prefix(word).ok_or_else(|| self.error(word))?;
        Ok(())
    }

    fn skip_to(&mut self, end: char) -> Result<(), HistoryError> {
        let (_, rest) = self.rest.split_once(end).ok_or_else(|| self.error("the hash behind its description"))?;
        self.rest = rest;
        Ok(())
    }

    fn number(&mut self, words: &[&'static str]) -> Result<u64, HistoryError> {
        for word in words {
            self.word(word)?;
        }
        let start = self.rest.trim_start();
        let end = start.find(|c: char| !c.is_ascii_digit()).unwrap_or(start.len());
        let number = start[..end].parse().map_err(|_| self.error("a number"))?;
        self.rest = &start[end..];
        Ok(number)
    }

    fn price(&mut self, words: &[&'static str]) -> Result<i64, HistoryError> {
        let number = self.number(words)?;
        i64::try_from(number).map_err(|_| self.error("a price below 2^63"))
    }

    fn best(&mut self, words: &[&'static str]) -> Result<BestLevel, HistoryError> {
        let (price, size) = (self.price(words)?, self.number(&[])?);
        Ok((price != 0).then_some((price, size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_documented_bytes() {
        let op = WorkloadOp::Limit { side: Side::Buy, price_ticks: 0x7720, size_lots: 1 };
        let record = WorkloadCommand { user: 0x18c, order_id: 1, op }.encode();
        let mut expected = [0; RECORD_BYTES];
        (expected[1], expected[4], expected[5], expected[8]) = (1, 0x8c, 1, 1);
        (expected[16], expected[17], expected[24]) = (0x20, 0x77, 1);
        assert_eq!(record, expected);
    }

    #[test]
    fn what_a_command_does_not_use_is_zero() {
        let cancel = WorkloadCommand { user: 1, order_id: 9, op: WorkloadOp::Cancel }.encode();
        for (at, expected) in
            [(0, "operation"), (1, "a side"), (2, "zero in"), (15, "an order id"), (16, "a price"), (24, "a size")]
        {
            let mut record = cancel;
            record[at] = if at == 0 { 5 } else { 0x80 };
            let error = parse_all(&record).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("byte 0"), "{error}");
        }
        assert!(parse_all(&cancel[..31]).is_err());
        assert_eq!(parse_all(&[cancel, cancel].concat()).unwrap(), 2);
    }

    #[test]
    fn the_expectation_round_trips() {
        let result = WorkloadResult {
            fill_commands: 10,
            mix: WorkloadMix { limit: 1, immediate: 2, cancel: 3, moves: 4, reduce: 5 },
            trades: 6,
            volume_lots: 7,
            commands_with_trade: 8,
            ask_levels: 9,
            bid_levels: 10,
            ask_orders: 11,
            bid_orders: 12,
            level_hash: u64::MAX,
            best_ask: Some((5, 6)),
            best_bid: None,
            price_min_ticks: 1,
            price_max_ticks: 9,
        };
        let text = result.to_string();
        assert_eq!(WorkloadResult::parse(&text).unwrap(), result);
        let wrong = text.replace("msgs 15", "msgs 16");
        assert!(WorkloadResult::parse(&wrong).unwrap_err().to_string().contains("sum of the mix"));
        assert!(WorkloadResult::parse(&text[..40]).is_err());
    }
}
