//! One vocabulary for every format: what happened to the orders of a book, or what was asked of it.

use std::num::NonZeroU64;

use walras_types::{PriceTicks, Side, SizeLots};

use crate::text::{Digits, parse_decimal};

/// A price in the file's own units: `price_scale` of [`HistoryInfo`] of them make one unit of currency. Exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PriceUnits(pub i64);

/// A size in the file's own units: `size_scale` of [`HistoryInfo`] of them make one share or coin. Exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeUnits(pub u64);

/// The exchange's number of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderRef(pub u64);

/// What the file says of a resting order when it names one. Not every format does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stated {
    /// Side of the resting order.
    pub side: Side,
    /// Its price.
    pub price: PriceUnits,
}

/// How long a submitted order stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// What does not trade at once rests.
    GoodTillCancel,
    /// What does not trade at once is cancelled.
    ImmediateOrCancel,
}

/// What the market may do from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketPhase {
    /// Before any order is taken, or orders are taken and nothing matches.
    PreOpen,
    /// Orders collect for the opening auction.
    OpeningAuction,
    /// Orders match as they come.
    Continuous,
    /// Trading is suspended.
    Halt,
    /// Quotes are taken again, trading is not: the end of a halt.
    QuotesOnly,
    /// Orders collect for the closing auction.
    ClosingAuction,
    /// The day is over.
    Closed,
}

/// One thing that happened, or was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryKind {
    /// An order (or what its arrival left of it) now rests in the book, visibly. It did not trade by this message.
    Add {
        /// The order.
        order_ref: OrderRef,
        /// Its side.
        side: Side,
        /// Its price.
        price: PriceUnits,
        /// What rests.
        size: SizeUnits,
    },
    /// A part of a resting order was cancelled; the rest keeps its place.
    Reduce {
        /// The order.
        order_ref: OrderRef,
        /// How much less.
        size: SizeUnits,
        /// What else the file says.
        stated: Option<Stated>,
    },
    /// A resting order left the book without trading by this message.
    Delete {
        /// The order.
        order_ref: OrderRef,
        /// What it had left to trade, where the file says; zero where the deletion follows its last execution.
        open_size: Option<SizeUnits>,
        /// What else the file says.
        stated: Option<Stated>,
    },
    /// A resting order traded at its own price.
    Execute {
        /// The order.
        order_ref: OrderRef,
        /// Size in units.
        size: SizeUnits,
        /// What else the file says.
        stated: Option<Stated>,
    },
    /// A resting order traded at another price than its own.
    ExecuteAtPrice {
        /// The order.
        order_ref: OrderRef,
        /// Size in units.
        size: SizeUnits,
        /// The price.
        price: PriceUnits,
        /// Whether it counts in volume (an auction's executions are repeated in bulk by an [`HistoryKind::AuctionTrade`]).
        printable: bool,
    },
    /// A resting order gave way to a new one of the same side at the back of its level.
    Replace {
        /// The order that left.
        old_ref: OrderRef,
        /// The order that came.
        new_ref: OrderRef,
        /// Its price.
        price: PriceUnits,
        /// Its size.
        size: SizeUnits,
    },
    /// A resting order's open size is now this; the file does not say whether by cancel or by trade.
    SetOpenSize {
        /// The order.
        order_ref: OrderRef,
        /// The remaining size.
        size: SizeUnits,
        /// What else the file says.
        stated: Option<Stated>,
    },
    /// A trade. Where an order is named, it (or the order that it was on arrival) traded; where none is, it was a hidden one,
    /// or the file does not say.
    Trade {
        /// The price.
        price: PriceUnits,
        /// Size in units.
        size: SizeUnits,
        /// The side that took liquidity, where known.
        aggressor: Option<Side>,
        /// The buying order, where known.
        buy_ref: Option<OrderRef>,
        /// The selling order, where known.
        sell_ref: Option<OrderRef>,
    },
    /// A trade of an auction: one of its pairs where the orders are named, else all of it.
    AuctionTrade {
        /// The price.
        price: PriceUnits,
        /// Size in units.
        size: SizeUnits,
        /// The buying order, where known.
        buy_ref: Option<OrderRef>,
        /// The selling order, where known.
        sell_ref: Option<OrderRef>,
    },
    /// What the exchange says its book looks like; the levels are in [`crate::History::snapshot`] until the next event.
    Snapshot {
        /// Number of bid levels.
        bid_levels: u8,
        /// Number of ask levels.
        ask_levels: u8,
    },
    /// The phase of the instrument, or of the whole market where the event names none, is now this.
    Phase(MarketPhase),
    /// An instrument is announced by its name (padded with spaces).
    Directory {
        /// Its name.
        symbol: [u8; 8],
    },
    /// An order arrives and matches first. What is asked, not what happened: the book finds out.
    Submit {
        /// The order.
        order_ref: OrderRef,
        /// Its side.
        side: Side,
        /// Its limit.
        price: PriceUnits,
        /// Size in units.
        size: SizeUnits,
        /// What becomes of what does not trade at once.
        lasting: Lasting,
    },
    /// A resting order is removed, and the rest of it submitted again at this price, at the back of the queue.
    Move {
        /// The order.
        order_ref: OrderRef,
        /// Its new price.
        price: PriceUnits,
    },
}

/// One message of history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEvent {
    /// When, since [`HistoryInfo::time_origin`]. Not guaranteed to be in order; [`crate::Tally`] counts where it is not.
    pub time_ns: u64,
    /// Number of the message in its file, from 1; messages that are no event are numbered too.
    pub index: u64,
    /// The exchange's own running number of the message, where the file gives one: the order in which things happened, which is not
    /// always the file's ([`crate::sse`]). [`crate::Tally`] counts where they differ.
    pub sequence: Option<NonZeroU64>,
    /// The exchange's number of the instrument; zero in files that do not say.
    pub instrument: u32,
    /// The kind of event.
    pub kind: HistoryKind,
}

/// What the times of a file count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOrigin {
    /// Midnight of the exchange's local day.
    Midnight,
    /// 1970-01-01 00:00:00 UTC.
    UnixEpoch,
    /// The file has no times; all are zero.
    Absent,
}

/// What holds for a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryInfo {
    /// How many [`PriceUnits`] make one unit of currency.
    pub price_scale: u64,
    /// How many [`SizeUnits`] make one share or coin.
    pub size_scale: u64,
    /// What times count from.
    pub time_origin: TimeOrigin,
}

impl HistoryInfo {
    /// A price that a person wrote in currency, such as `0.0001`; `None` if it is no decimal number or finer than the file's units.
    #[must_use]
    pub fn price(&self, text: &str) -> Option<PriceUnits> {
        let decimals = self.price_scale.checked_ilog10()?;
        let units = parse_decimal(text.as_bytes(), decimals, Digits::Exact)?;
        i64::try_from(units).ok().map(PriceUnits)
    }
}

/// Levels of a snapshot, a side.
pub const SNAPSHOT_LEVELS_MAX: usize = 32;

/// A price level of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Its price.
    pub price: PriceUnits,
    /// The open size of all its visible orders.
    pub size: SizeUnits,
}

/// One side of a snapshot, best level first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    levels: [Level; SNAPSHOT_LEVELS_MAX],
    count: u8,
}

impl Levels {
    /// Appends a level behind the others; `false` if there are [`SNAPSHOT_LEVELS_MAX`] already.
    pub fn push(&mut self, level: Level) -> bool {
        let Some(free) = self.levels.get_mut(usize::from(self.count)) else { return false };
        *free = level;
        self.count += 1;
        true
    }

    /// The levels, best first.
    #[must_use]
    pub fn as_slice(&self) -> &[Level] {
        &self.levels[..usize::from(self.count)]
    }

    /// Number of levels.
    #[must_use]
    pub fn count(&self) -> u8 {
        self.count
    }
}

/// What an exchange says of its book and of the day so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookSnapshot {
    /// Bids, highest first.
    pub bids: Levels,
    /// Asks, lowest first.
    pub asks: Levels,
    /// In an auction's call phase, instead of levels: what would trade if it ended now.
    pub indicative: Option<IndicativeUncross>,
    /// The day so far, where the file says.
    pub day: Option<DayTotals>,
}

/// What an auction would trade if it ended now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndicativeUncross {
    /// The price.
    pub price: PriceUnits,
    /// Size in units.
    pub size: SizeUnits,
    /// What buyers at the price, or better, would be left with.
    pub buy_surplus: SizeUnits,
    /// What sellers at the price, or better, would be left with.
    pub sell_surplus: SizeUnits,
}

/// The day's totals in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayTotals {
    /// The market's phase, where its code is known.
    pub phase: Option<MarketPhase>,
    /// Trades.
    pub trade_count: u64,
    /// Size traded.
    pub traded_size: SizeUnits,
    /// Price of the last trade; `None` before the first.
    pub last_price: Option<PriceUnits>,
    /// Price of the first trade; `None` before it.
    pub open_price: Option<PriceUnits>,
    /// Highest trade; `None` before the first.
    pub high_price: Option<PriceUnits>,
    /// Lowest trade; `None` before the first.
    pub low_price: Option<PriceUnits>,
    /// Open size of all visible bids, not only of the shown levels.
    pub bid_size: SizeUnits,
    /// Open size of all visible asks, not only of the shown levels.
    pub ask_size: SizeUnits,
}

/// How a file's units map to an instrument's ticks and lots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickScale {
    units_per_tick: i64,
    units_per_lot: u64,
}

/// A price or size that is no whole number of ticks or lots, or outside what an instrument can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OffScale {
    /// Between two ticks.
    #[error("price {} is no multiple of {units_per_tick} units, one tick; use a finer tick, or leave this message out and count it", price.0)]
    Price {
        /// The price.
        price: PriceUnits,
        /// The tick.
        units_per_tick: i64,
    },
    /// Between two lots.
    #[error("size {} is no multiple of {units_per_lot} units, one lot; use a finer lot, or leave this message out and count it", size.0)]
    Size {
        /// The size.
        size: SizeUnits,
        /// The lot.
        units_per_lot: u64,
    },
    /// Not above zero, or too large.
    #[error(
        "{units} units are outside what an instrument's prices and sizes can be; use a coarser tick or lot, or leave this message out"
    )]
    Range {
        /// The value.
        units: i128,
    },
}

impl TickScale {
    /// A scale of so many price units to the tick and size units to the lot; `None` if either is below one.
    #[must_use]
    pub fn new(units_per_tick: i64, units_per_lot: u64) -> Option<Self> {
        (units_per_tick >= 1 && units_per_lot >= 1).then_some(Self { units_per_tick, units_per_lot })
    }

    /// A price in ticks, exactly.
    pub fn ticks(&self, price: PriceUnits) -> Result<PriceTicks, OffScale> {
        if price.0 % self.units_per_tick != 0 {
            return Err(OffScale::Price { price, units_per_tick: self.units_per_tick });
        }
        PriceTicks::new(price.0 / self.units_per_tick).ok_or(OffScale::Range { units: i128::from(price.0) })
    }

    /// A size in lots, exactly.
    pub fn lots(&self, size: SizeUnits) -> Result<SizeLots, OffScale> {
        if !size.0.is_multiple_of(self.units_per_lot) {
            return Err(OffScale::Size { size, units_per_lot: self.units_per_lot });
        }
        SizeLots::order_size(size.0 / self.units_per_lot).ok_or(OffScale::Range { units: i128::from(size.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_to_ticks_is_exact_or_says_so() {
        let cents = TickScale::new(100, 1).unwrap();
        assert_eq!(cents.ticks(PriceUnits(5_853_300)).unwrap().get(), 58_533);
        assert!(matches!(cents.ticks(PriceUnits(5_853_350)), Err(OffScale::Price { .. })));
        assert!(matches!(cents.ticks(PriceUnits(0)), Err(OffScale::Range { units: 0 })));
        assert!(matches!(cents.ticks(PriceUnits(-100)), Err(OffScale::Range { .. })));
        assert_eq!(cents.lots(SizeUnits(18)).unwrap().get(), 18);
        let board_lots = TickScale::new(10, 100_000).unwrap();
        assert!(matches!(board_lots.lots(SizeUnits(82_000)), Err(OffScale::Size { .. })));
        assert_eq!(TickScale::new(0, 1), None);
    }

    #[test]
    fn a_written_price_is_exact() {
        let info = HistoryInfo { price_scale: 10_000, size_scale: 1, time_origin: TimeOrigin::Midnight };
        assert_eq!(info.price("0.0001"), Some(PriceUnits(1)));
        assert_eq!((info.price("0.00001"), info.price("-1"), info.price("cheap")), (None, None, None));
    }

    #[test]
    fn a_snapshot_side_takes_only_so_many_levels() {
        let mut levels = Levels::default();
        for _ in 0..SNAPSHOT_LEVELS_MAX {
            assert!(levels.push(Level::default()));
        }
        assert!(!levels.push(Level::default()));
        assert_eq!(levels.as_slice().len(), SNAPSHOT_LEVELS_MAX);
    }

    #[test]
    fn an_event_stays_small() {
        assert!(size_of::<HistoryEvent>() <= 88, "{}", size_of::<HistoryEvent>());
    }
}
