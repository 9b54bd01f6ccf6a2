//! NASDAQ TotalView-ITCH 5.0, as in the public day files: each message behind its length in two bytes, all integers big endian.
//!
//! Source: the specification "NASDAQ TotalView-ITCH 5.0" (the direct-listing message `O` included). Every message begins with its
//! type, the instrument's number for the day (stock locate), a tracking number, and the time in nanoseconds since midnight.

mod from_lobster;
mod read;
mod write;

pub use from_lobster::{ItchConversion, lobster_to_itch};
pub use read::{ItchCounts, ItchReader, parse_all};
pub use write::ItchWriter;

use walras_types::Side;

use crate::event::{HistoryEvent, HistoryInfo, HistoryKind, MarketPhase, OrderRef, PriceUnits, SizeUnits, TimeOrigin};

pub(crate) const NAME: &str = "ITCH 5.0";

/// What holds for all files of the format.
pub const INFO: HistoryInfo = HistoryInfo { price_scale: 10_000, size_scale: 1, time_origin: TimeOrigin::Midnight };

/// Every message type of the specification with the length of its message, type byte included.
pub const MESSAGE_LENGTHS: [(u8, u16); 23] = [
    (b'S', 12),
    (b'R', 39),
    (b'H', 25),
    (b'Y', 20),
    (b'L', 26),
    (b'V', 35),
    (b'W', 12),
    (b'K', 28),
    (b'J', 35),
    (b'h', 21),
    (b'A', 36),
    (b'F', 40),
    (b'E', 31),
    (b'C', 36),
    (b'X', 23),
    (b'D', 19),
    (b'U', 35),
    (b'P', 44),
    (b'Q', 40),
    (b'B', 19),
    (b'I', 50),
    (b'N', 20),
    (b'O', 48),
];

/// The longest message of the specification.
pub(crate) const MESSAGE_BYTES_MAX: usize = 50;

/// Length of a known type's message.
#[must_use]
#[inline]
pub fn message_length(message_type: u8) -> Option<u16> {
    match LENGTH_BY_TYPE[usize::from(message_type)] {
        0 => None,
        length => Some(length),
    }
}

/// [`MESSAGE_LENGTHS`] by type byte; zero for unknown types.
const LENGTH_BY_TYPE: [u16; 256] = {
    let mut lengths = [0; 256];
    let mut at = 0;
    while at < MESSAGE_LENGTHS.len() {
        let (message_type, length) = MESSAGE_LENGTHS[at];
        lengths[message_type as usize] = length;
        at += 1;
    }
    lengths
};

/// An instrument's name, padded with spaces.
pub type Symbol8 = [u8; 8];

/// What every message begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItchHeader {
    /// The instrument's number for the day; zero for the whole market.
    pub locate: u16,
    /// The exchange's own.
    pub tracking: u16,
    /// Since midnight, under 2^48.
    pub time_ns: u64,
}

/// The body of a message. Prices are in ten-thousandths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItchBody {
    /// `S`: the day's course. O start of messages, S start of system hours, Q start of market hours, M end of market hours,
    /// E end of system hours, C end of messages.
    System {
        /// The code.
        code: u8,
    },
    /// `R`: an instrument.
    Directory {
        /// Its name.
        symbol: Symbol8,
        /// Listing market.
        market_category: u8,
        /// Financial status.
        financial_status: u8,
        /// Shares of a round lot.
        round_lot_size: u32,
        /// Y if only round lots are taken.
        round_lots_only: u8,
        /// Kind of security.
        issue_classification: u8,
        /// Kind within the kind.
        issue_subtype: [u8; 2],
        /// P live, T test.
        authenticity: u8,
        /// Short sale threshold.
        short_sale_threshold: u8,
        /// First day.
        ipo_flag: u8,
        /// Tier of the price bands.
        luld_tier: u8,
        /// Exchange traded product.
        etp_flag: u8,
        /// Its leverage.
        etp_leverage: u32,
        /// Whether it is inverse.
        inverse: u8,
    },
    /// `H`: an instrument's trading state. H halted, P paused, Q quotes only, T trading.
    TradingAction {
        /// The instrument.
        symbol: Symbol8,
        /// The state.
        state: u8,
        /// Reserved.
        reserved: u8,
        /// The reason.
        reason: [u8; 4],
    },
    /// `A` and `F`: an order rests.
    Add {
        /// The order.
        order_ref: u64,
        /// Its side.
        side: Side,
        /// Its size.
        shares: u32,
        /// The instrument.
        symbol: Symbol8,
        /// Its price.
        price: u32,
        /// Who (`F`), or nobody (`A`).
        attribution: Option<[u8; 4]>,
    },
    /// `E`: it traded at its price.
    Execute {
        /// The order.
        order_ref: u64,
        /// Size in shares.
        shares: u32,
        /// Number of the trade.
        match_number: u64,
    },
    /// `C`: it traded at another price.
    ExecuteAtPrice {
        /// The order.
        order_ref: u64,
        /// Size in shares.
        shares: u32,
        /// Number of the trade.
        match_number: u64,
        /// Whether it counts in volume: Y or N.
        printable: bool,
        /// The price.
        price: u32,
    },
    /// `X`: a part of it was cancelled.
    Cancel {
        /// The order.
        order_ref: u64,
        /// How much less.
        shares: u32,
    },
    /// `D`: all of it was cancelled.
    Delete {
        /// The order.
        order_ref: u64,
    },
    /// `U`: it gave way to another.
    Replace {
        /// The order that left.
        old_ref: u64,
        /// The order that came.
        new_ref: u64,
        /// Its size.
        shares: u32,
        /// Its price.
        price: u32,
    },
    /// `P`: a hidden order traded.
    Trade {
        /// Zero since 2010.
        order_ref: u64,
        /// Side of the resting order as the message says; the exchange has written B for all since 2014.
        side: Side,
        /// Size in shares.
        shares: u32,
        /// The instrument.
        symbol: Symbol8,
        /// The price.
        price: u32,
        /// Number of the trade.
        match_number: u64,
    },
    /// `Q`: an auction traded.
    Cross {
        /// How much; zero if nothing.
        shares: u64,
        /// The instrument.
        symbol: Symbol8,
        /// The price.
        price: u32,
        /// Number of the trade.
        match_number: u64,
        /// O opening, C closing, H halt or first day, I intraday.
        cross_type: u8,
    },
    /// A message of the specification that does not change a book: only its type is kept.
    Other {
        /// Its type.
        message_type: u8,
    },
}

impl ItchBody {
    /// An instrument with a known name and nothing else.
    #[must_use]
    pub const fn plain_directory(symbol: Symbol8) -> Self {
        Self::Directory {
            symbol,
            market_category: b'Q',
            financial_status: b' ',
            round_lot_size: 100,
            round_lots_only: b'N',
            issue_classification: b'C',
            issue_subtype: *b"Z ",
            authenticity: b'P',
            short_sale_threshold: b'N',
            ipo_flag: b' ',
            luld_tier: b'1',
            etp_flag: b'N',
            etp_leverage: 0,
            inverse: b'N',
        }
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItchMessage {
    /// What every message begins with.
    pub header: ItchHeader,
    /// The rest.
    pub body: ItchBody,
}

impl ItchMessage {
    /// The message's type byte.
    #[must_use]
    pub fn message_type(&self) -> u8 {
        match self.body {
            ItchBody::System { .. } => b'S',
            ItchBody::Directory { .. } => b'R',
            ItchBody::TradingAction { .. } => b'H',
            ItchBody::Add { attribution: None, .. } => b'A',
            ItchBody::Add { attribution: Some(_), .. } => b'F',
            ItchBody::Execute { .. } => b'E',
            ItchBody::ExecuteAtPrice { .. } => b'C',
            ItchBody::Cancel { .. } => b'X',
            ItchBody::Delete { .. } => b'D',
            ItchBody::Replace { .. } => b'U',
            ItchBody::Trade { .. } => b'P',
            ItchBody::Cross { .. } => b'Q',
            ItchBody::Other { message_type } => message_type,
        }
    }

    /// The message as an event; `None` if it says nothing of orders, trades or phases.
    #[must_use]
    pub fn event(&self, index: u64) -> Option<HistoryEvent> {
        let kind = match self.body {
            ItchBody::System { code } => HistoryKind::Phase(match code {
                b'S' => MarketPhase::PreOpen,
                b'Q' => MarketPhase::Continuous,
                b'M' | b'E' => MarketPhase::Closed,
                _ => return None,
            }),
            ItchBody::Directory { symbol, .. } => HistoryKind::Directory { symbol },
            ItchBody::TradingAction { state, .. } => HistoryKind::Phase(match state {
                b'H' | b'P' => MarketPhase::Halt,
                b'Q' => MarketPhase::QuotesOnly,
                b'T' => MarketPhase::Continuous,
                _ => return None,
            }),
            ItchBody::Add { order_ref, side, shares, price, .. } => {
                HistoryKind::Add { order_ref: OrderRef(order_ref), side, price: units(price), size: size(shares) }
            }
            ItchBody::Execute { order_ref, shares, .. } => {
                HistoryKind::Execute { order_ref: OrderRef(order_ref), size: size(shares), stated: None }
            }
            ItchBody::ExecuteAtPrice { order_ref, shares, printable, price, .. } => {
                HistoryKind::ExecuteAtPrice { order_ref: OrderRef(order_ref), size: size(shares), price: units(price), printable }
            }
            ItchBody::Cancel { order_ref, shares } => {
                HistoryKind::Reduce { order_ref: OrderRef(order_ref), size: size(shares), stated: None }
            }
            ItchBody::Delete { order_ref } => HistoryKind::Delete { order_ref: OrderRef(order_ref), open_size: None, stated: None },
            ItchBody::Replace { old_ref, new_ref, shares, price } => HistoryKind::Replace {
                old_ref: OrderRef(old_ref),
                new_ref: OrderRef(new_ref),
                price: units(price),
                size: size(shares),
            },
            // The side is not to be relied on (see the field), so the aggressor is left unknown.
            ItchBody::Trade { shares, price, .. } => {
                HistoryKind::Trade { price: units(price), size: size(shares), aggressor: None, buy_ref: None, sell_ref: None }
            }
            ItchBody::Cross { shares: 0, .. } | ItchBody::Other { .. } => return None,
            ItchBody::Cross { shares, price, .. } => {
                HistoryKind::AuctionTrade { price: units(price), size: SizeUnits(shares), buy_ref: None, sell_ref: None }
            }
        };
        Some(HistoryEvent { time_ns: self.header.time_ns, index, sequence: None, instrument: u32::from(self.header.locate), kind })
    }
}

fn units(price: u32) -> PriceUnits {
    PriceUnits(i64::from(price))
}

fn size(shares: u32) -> SizeUnits {
    SizeUnits(u64::from(shares))
}
