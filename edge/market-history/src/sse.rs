//! The Shanghai exchange's level-2 feed as a text log: one line per message, `//` and then `Name=number` fields padded with spaces,
//! in a fixed order for each message type. 192 is an order, 191 a trade, 111 a snapshot of ten levels.
//!
//! Prices and sizes are in thousandths. What one must know to replay it: an order that trades fully on arrival has no order
//! message; of one that trades in part only the rest is added, *after* its trades. Lines are not in the order in which things
//! happened: sorted by `BizIndex` (the event's [`HistoryEvent::sequence`]) they are, and times never go back; in the known log a
//! line is up to 1,484 places from where it belongs. Snapshots have no such number. Source: the feed's field list in the repository
//! that the log comes from (fpga2u/AXOrderBook, `doc/msgTypes.md`) and the log itself.

use std::io::BufRead;
use std::num::NonZeroU64;

use walras_types::Side;

use crate::error::HistoryError;
use crate::event::{
    BookSnapshot, DayTotals, HistoryEvent, HistoryInfo, HistoryKind, IndicativeUncross, Level, Levels, MarketPhase, OrderRef,
    PriceUnits, SizeUnits, Stated, TimeOrigin,
};
use crate::text::{Lines, parse_u64};

const NAME: &str = "Shanghai level-2 text log";

/// What every line begins with.
pub(crate) const LINE_START: &[u8] = b"//SecurityIDSource=";

/// What holds for all files of the format.
pub const INFO: HistoryInfo = HistoryInfo { price_scale: 1_000, size_scale: 1_000, time_origin: TimeOrigin::Midnight };

/// Levels a side in a snapshot.
const LEVELS: usize = 10;

/// What an order message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseOrderKind {
    /// It (or what its arrival left of it) rests from now on.
    Add,
    /// It left the book.
    Delete,
}

/// What kind of trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseTradeKind {
    /// Of continuous trading, with the side that took liquidity.
    Continuous(Side),
    /// Of an auction.
    Auction,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseMessage {
    /// 192.
    Order {
        /// Number among the channel's orders.
        sequence: u64,
        /// The order.
        order_no: u64,
        /// Its price.
        price: PriceUnits,
        /// What rests, or what it had left.
        size: SizeUnits,
        /// Added or deleted.
        kind: SseOrderKind,
        /// Its side.
        side: Side,
    },
    /// 191.
    Trade {
        /// Number among the channel's trades.
        sequence: u64,
        /// The buying order.
        buy_order_no: u64,
        /// The selling order.
        sell_order_no: u64,
        /// The price.
        price: PriceUnits,
        /// Size in units.
        size: SizeUnits,
        /// Of what kind.
        kind: SseTradeKind,
    },
    /// 111; its content is in [`SseReader::snapshot`].
    Snapshot {
        /// Trading phase as the feed numbers it.
        phase_code: u64,
        /// Price times size of the day so far, in millionths.
        traded_value: u64,
        /// Yesterday's closing price.
        previous_close: PriceUnits,
    },
}

/// A message with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseTimed {
    /// Since midnight in Shanghai; to 10 ms for orders and trades, to 1 s for snapshots.
    pub time_ns: u64,
    /// The instrument.
    pub security_id: u32,
    /// Place in the channel's order of orders and trades (`BizIndex`); snapshots have none.
    pub biz_index: Option<NonZeroU64>,
    /// The message.
    pub message: SseMessage,
}

/// Reads the log.
#[derive(Debug)]
pub struct SseReader<R> {
    lines: Lines<R>,
    snapshot: BookSnapshot,
}

impl<R: BufRead> SseReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self { lines: Lines::new(source, NAME), snapshot: BookSnapshot::default() }
    }

    /// What the last [`SseMessage::Snapshot`] said.
    pub fn snapshot(&self) -> &BookSnapshot {
        &self.snapshot
    }

    /// The next message with its line number.
    pub fn next_message(&mut self) -> Option<Result<(u64, SseTimed), HistoryError>> {
        Some(self.lines.advance()?.and_then(|()| {
            let mut fields = Fields { rest: self.lines.current() };
            match parse_line(&mut fields, &mut self.snapshot) {
                Ok(message) => Ok((self.lines.number(), message)),
                Err(expected) => Err(self.lines.malformed(
                    expected,
                    fields.rest,
                    "give the log as published: every field as Name=number, in the order of the format",
                )),
            }
        }))
    }
}

impl<R: BufRead> Iterator for SseReader<R> {
    type Item = Result<SseTimed, HistoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_message()?.map(|(_, message)| message))
    }
}

/// What is left of a line.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    /// The number behind `name`, which ends in `=`. On failure `rest` stands at the field.
    fn number(&mut self, name: &'static str) -> Result<u64, &'static str> {
        let start = self.rest.trim_ascii_start();
        let value = start.strip_prefix(name.as_bytes()).ok_or(name)?;
        let end = value.iter().position(|&byte| byte == b' ').unwrap_or(value.len());
        let number = parse_u64(&value[..end]).ok_or(name)?;
        self.rest = &value[end..];
        Ok(number)
    }

    fn price(&mut self, name: &'static str) -> Result<PriceUnits, &'static str> {
        i64::try_from(self.number(name)?).map(PriceUnits).map_err(|_| name)
    }

    fn size(&mut self, name: &'static str) -> Result<SizeUnits, &'static str> {
        self.number(name).map(SizeUnits)
    }

    /// A field without a value.
    fn reserved(&mut self) -> Result<(), &'static str> {
        self.rest = self.rest.trim_ascii_start().strip_prefix(b"resv=").ok_or("resv=")?;
        Ok(())
    }

    fn end(&self) -> Result<(), &'static str> {
        if self.rest.trim_ascii().is_empty() { Ok(()) } else { Err("the end of the line") }
    }
}

/// Nanoseconds since midnight of `HHMMSS` followed by `fraction_digits` decimals of the second.
fn time_of_day_ns(digits: u64, fraction_digits: u32) -> Option<u64> {
    let per_second = 10u64.pow(fraction_digits);
    let (clock, fraction) = (digits / per_second, digits % per_second);
    let (hours, minutes, seconds) = (clock / 10_000, clock / 100 % 100, clock % 100);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + fraction * (1_000_000_000 / per_second))
}

fn parse_line(fields: &mut Fields<'_>, snapshot: &mut BookSnapshot) -> Result<SseTimed, &'static str> {
    fields.number("//SecurityIDSource=")?;
    let message_type = fields.number("MsgType=")?;
    fields.number("MsgLen=")?;
    let security_id = u32::try_from(fields.number("SecurityID=")?).map_err(|_| "a SecurityID of at most 32 bits")?;
    fields.number("ChannelNo=")?;
    let sequence = fields.number("ApplSeqNum=")?;
    let phase_code = fields.number("TradingPhase=")?;
    let (time_ns, biz_index, message) = match message_type {
        192 => parse_order(fields, sequence)?,
        191 => parse_trade(fields, sequence)?,
        111 => parse_snapshot(fields, phase_code, snapshot)?,
        _ => return Err("a MsgType of 192 (order), 191 (trade) or 111 (snapshot)"),
    };
    fields.end()?;
    Ok(SseTimed { time_ns, security_id, biz_index, message })
}

fn parse_order(fields: &mut Fields<'_>, sequence: u64) -> Result<(u64, Option<NonZeroU64>, SseMessage), &'static str> {
    let order_no = fields.number("OrderNo=")?;
    let price = fields.price("Price=")?;
    let size = fields.size("OrderQty=")?;
    let kind = match fields.number("OrdType=")? {
        65 => SseOrderKind::Add,
        68 => SseOrderKind::Delete,
        _ => return Err("an OrdType of 65 (add) or 68 (delete)"),
    };
    let side = match fields.number("Side=")? {
        66 => Side::Buy,
        83 => Side::Sell,
        _ => return Err("a Side of 66 (buy) or 83 (sell)"),
    };
    let (time_ns, biz_index) = parse_transact_time(fields)?;
    Ok((time_ns, biz_index, SseMessage::Order { sequence, order_no, price, size, kind, side }))
}

fn parse_trade(fields: &mut Fields<'_>, sequence: u64) -> Result<(u64, Option<NonZeroU64>, SseMessage), &'static str> {
    let buy_order_no = fields.number("BidApplSeqNum=")?;
    let sell_order_no = fields.number("OfferApplSeqNum=")?;
    let price = fields.price("LastPx=")?;
    let size = fields.size("LastQty=")?;
    let kind = match fields.number("ExecType=")? {
        66 => SseTradeKind::Continuous(Side::Buy),
        83 => SseTradeKind::Continuous(Side::Sell),
        78 => SseTradeKind::Auction,
        _ => return Err("an ExecType of 66 (buyer), 83 (seller) or 78 (auction)"),
    };
    let (time_ns, biz_index) = parse_transact_time(fields)?;
    Ok((time_ns, biz_index, SseMessage::Trade { sequence, buy_order_no, sell_order_no, price, size, kind }))
}

/// The end of an order and of a trade.
fn parse_transact_time(fields: &mut Fields<'_>) -> Result<(u64, Option<NonZeroU64>), &'static str> {
    let time_ns = time_of_day_ns(fields.number("TransactTime=")?, 2).ok_or("a TransactTime of HHMMSS and hundredths")?;
    fields.reserved()?;
    let biz_index = NonZeroU64::new(fields.number("BizIndex=")?);
    Ok((time_ns, biz_index))
}

/// The codes seen in a day without a halt.
fn market_phase(code: u64) -> Option<MarketPhase> {
    Some(match code {
        0 => MarketPhase::PreOpen,
        1 => MarketPhase::OpeningAuction,
        2 => MarketPhase::Continuous,
        4 => MarketPhase::ClosingAuction,
        5 => MarketPhase::Closed,
        _ => return None,
    })
}

fn parse_snapshot(
    fields: &mut Fields<'_>,
    phase_code: u64,
    snapshot: &mut BookSnapshot,
) -> Result<(u64, Option<NonZeroU64>, SseMessage), &'static str> {
    let before_first = |price: PriceUnits| (price.0 != 0).then_some(price);
    let phase = market_phase(phase_code);
    let trade_count = fields.number("NumTrades=")?;
    let traded_size = fields.size("TotalVolumeTrade=")?;
    let traded_value = fields.number("TotalValueTrade=")?;
    let previous_close = fields.price("PrevClosePx=")?;
    let last_price = before_first(fields.price("LastPx=")?);
    let open_price = before_first(fields.price("OpenPx=")?);
    let high_price = before_first(fields.price("HighPx=")?);
    let low_price = before_first(fields.price("LowPx=")?);
    fields.number("BidWeightPx=")?;
    let bid_size = fields.size("BidWeightSize=")?;
    fields.number("AskWeightPx=")?;
    let ask_size = fields.size("AskWeightSize=")?;
    let time_ns = time_of_day_ns(fields.number("DataTimeStamp=")?, 0).ok_or("a DataTimeStamp of HHMMSS")?;
    let bids = parse_levels(fields, &BID_NAMES)?;
    let asks = parse_levels(fields, &ASK_NAMES)?;
    fields.number("TradingPhaseCodePack=")?;
    fields.reserved()?;
    // In a call phase both sides' first levels say at what price how much would trade, the second (without a price) what would be
    // left over.
    let call = matches!(phase, Some(MarketPhase::OpeningAuction | MarketPhase::ClosingAuction));
    let indicative = (call && bids[0] == asks[0] && bids[0].price.0 != 0).then(|| IndicativeUncross {
        price: bids[0].price,
        size: bids[0].size,
        buy_surplus: bids[1].size,
        sell_surplus: asks[1].size,
    });
    let day = DayTotals { phase, trade_count, traded_size, last_price, open_price, high_price, low_price, bid_size, ask_size };
    *snapshot = BookSnapshot { day: Some(day), indicative, ..BookSnapshot::default() };
    if indicative.is_none() {
        snapshot.bids = present_levels(&bids);
        snapshot.asks = present_levels(&asks);
    }
    Ok((time_ns, None, SseMessage::Snapshot { phase_code, traded_value, previous_close }))
}

macro_rules! level_names {
    ($side:literal) => {
        [
            [concat!($side, "Level[0].Price="), concat!($side, "Level[0].Qty=")],
            [concat!($side, "Level[1].Price="), concat!($side, "Level[1].Qty=")],
            [concat!($side, "Level[2].Price="), concat!($side, "Level[2].Qty=")],
            [concat!($side, "Level[3].Price="), concat!($side, "Level[3].Qty=")],
            [concat!($side, "Level[4].Price="), concat!($side, "Level[4].Qty=")],
            [concat!($side, "Level[5].Price="), concat!($side, "Level[5].Qty=")],
            [concat!($side, "Level[6].Price="), concat!($side, "Level[6].Qty=")],
            [concat!($side, "Level[7].Price="), concat!($side, "Level[7].Qty=")],
            [concat!($side, "Level[8].Price="), concat!($side, "Level[8].Qty=")],
            [concat!($side, "Level[9].Price="), concat!($side, "Level[9].Qty=")],
        ]
    };
}

const BID_NAMES: [[&str; 2]; LEVELS] = level_names!("Bid");
const ASK_NAMES: [[&str; 2]; LEVELS] = level_names!("Ask");

fn parse_levels(fields: &mut Fields<'_>, names: &'static [[&'static str; 2]; LEVELS]) -> Result<[Level; LEVELS], &'static str> {
    let mut levels = [Level::default(); LEVELS];
    for (level, [price_name, size_name]) in levels.iter_mut().zip(names) {
        *level = Level { price: fields.price(price_name)?, size: fields.size(size_name)? };
    }
    Ok(levels)
}

/// The feed fills missing levels with zeros.
fn present_levels(all: &[Level; LEVELS]) -> Levels {
    let mut levels = Levels::default();
    for &level in all.iter().filter(|level| level.price.0 != 0) {
        assert!(levels.push(level), "a snapshot side has room for ten levels");
    }
    levels
}

impl SseTimed {
    /// The message as an event; `snapshot` is the reader's.
    #[must_use]
    pub fn event(&self, index: u64, snapshot: &BookSnapshot) -> HistoryEvent {
        let kind = match self.message {
            SseMessage::Order { order_no, price, size, kind: SseOrderKind::Add, side, .. } => {
                HistoryKind::Add { order_ref: OrderRef(order_no), side, price, size }
            }
            SseMessage::Order { order_no, price, size, kind: SseOrderKind::Delete, side, .. } => {
                HistoryKind::Delete { order_ref: OrderRef(order_no), open_size: Some(size), stated: Some(Stated { side, price }) }
            }
            SseMessage::Trade { buy_order_no, sell_order_no, price, size, kind, .. } => {
                let (buy_ref, sell_ref) = (Some(OrderRef(buy_order_no)), Some(OrderRef(sell_order_no)));
                match kind {
                    SseTradeKind::Auction => HistoryKind::AuctionTrade { price, size, buy_ref, sell_ref },
                    SseTradeKind::Continuous(side) => HistoryKind::Trade { price, size, aggressor: Some(side), buy_ref, sell_ref },
                }
            }
            SseMessage::Snapshot { .. } => {
                HistoryKind::Snapshot { bid_levels: snapshot.bids.count(), ask_levels: snapshot.asks.count() }
            }
        };
        HistoryEvent { time_ns: self.time_ns, index, sequence: self.biz_index, instrument: self.security_id, kind }
    }
}

/// Reads all of `bytes`, to the first error: the entry for fuzzing.
pub fn parse_all(bytes: &[u8]) -> Result<u64, HistoryError> {
    SseReader::new(bytes).try_fold(0, |count, message| message.map(|_| count + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = "//SecurityIDSource=101 MsgType=192 MsgLen=64 SecurityID=600000           ChannelNo=6 ApplSeqNum=12       \
                         TradingPhase=0 OrderNo=370          Price=1800320 OrderQty=100000          OrdType=65 Side=66 \
                         TransactTime=9242431 resv=              BizIndex=567         \r\n";

    fn snapshot_line(phase: u8, bids: &[(i64, u64)], asks: &[(i64, u64)]) -> String {
        let mut line = format!(
            "//SecurityIDSource=101 MsgType=111 MsgLen=336 SecurityID=600000 ChannelNo=0 ApplSeqNum=0 TradingPhase={phase} \
             NumTrades=3 TotalVolumeTrade=300 TotalValueTrade=9 PrevClosePx=10 LastPx=0 OpenPx=0 HighPx=0 LowPx=0 BidWeightPx=1 \
             BidWeightSize=2 AskWeightPx=3 AskWeightSize=4 DataTimeStamp=91532"
        );
        for (name, levels) in [("Bid", bids), ("Ask", asks)] {
            for at in 0..LEVELS {
                let (price, size) = levels.get(at).copied().unwrap_or_default();
                line += &format!(" {name}Level[{at}].Price={price} {name}Level[{at}].Qty={size}       ");
            }
        }
        line + " TradingPhaseCodePack=69 resv=     \n"
    }

    #[test]
    fn an_order_line_is_read() {
        let (line, timed) = SseReader::new(ORDER.as_bytes()).next_message().unwrap().unwrap();
        assert_eq!((line, timed.security_id, timed.biz_index), (1, 600_000, NonZeroU64::new(567)));
        assert_eq!(timed.time_ns, ((9 * 60 + 24) * 60 + 24) * 1_000_000_000 + 310_000_000);
        let expected = SseMessage::Order {
            sequence: 12,
            order_no: 370,
            price: PriceUnits(1_800_320),
            size: SizeUnits(100_000),
            kind: SseOrderKind::Add,
            side: Side::Buy,
        };
        assert_eq!(timed.message, expected);
    }

    #[test]
    fn a_snapshot_has_levels_or_an_indicative_price() {
        let text = snapshot_line(2, &[(100, 5), (99, 6)], &[(101, 7)]) + &snapshot_line(1, &[(100, 5), (0, 6)], &[(100, 5)]);
        let mut reader = SseReader::new(text.as_bytes());
        let (index, timed) = reader.next_message().unwrap().unwrap();
        assert_eq!(timed.event(index, reader.snapshot()).kind, HistoryKind::Snapshot { bid_levels: 2, ask_levels: 1 });
        assert_eq!(reader.snapshot().bids.as_slice()[1], Level { price: PriceUnits(99), size: SizeUnits(6) });
        assert_eq!(reader.snapshot().indicative, None);
        reader.next_message().unwrap().unwrap();
        assert_eq!((reader.snapshot().bids.count(), reader.snapshot().asks.count()), (0, 0));
        let expected =
            IndicativeUncross { price: PriceUnits(100), size: SizeUnits(5), buy_surplus: SizeUnits(6), sell_surplus: SizeUnits(0) };
        assert_eq!(reader.snapshot().indicative, Some(expected));
        assert_eq!(reader.snapshot().day.unwrap().phase, Some(MarketPhase::OpeningAuction));
    }

    #[test]
    fn a_bad_line_says_which_field() {
        for (from, to, expected) in [
            ("MsgType=192", "MsgType=193", "MsgType of 192"),
            ("OrderNo=370", "OrderNo=x", "OrderNo="),
            ("Side=66", "Side=67", "Side of 66"),
            ("TransactTime=9242431", "TransactTime=9246131", "TransactTime of"),
            ("BizIndex=567", "BizIndex=567 More=1", "the end of the line"),
            ("Price=1800320", "Price=18446744073709551615", "Price="),
        ] {
            let error = parse_all(ORDER.replace(from, to).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(&format!("expected {expected}")) || error.contains(expected), "{error}");
            assert!(error.contains("line 1"), "{error}");
        }
    }
}
