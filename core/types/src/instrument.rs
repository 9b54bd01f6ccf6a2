//! The definition of an instrument: units, allocation, fees, bands, phases, risk limits.

use crate::ids::{AssetId, InstrumentId, Symbol};
use crate::quantity::{Amount, PriceTicks, Rounding, SizeLots, parts_per_million};

/// How an incoming order is shared among the orders of one price level. An order that clears the level fills all of them.
///
/// Only displayed sizes count: an iceberg shares with its slice, and hidden orders trade after all displayed ones, first in, first
/// out. "The incoming size" is the remaining size when the level's turn comes. Uncrosses are always first in, first out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// First in, first out.
    PriceTime,
    /// In proportion to size, rounded down; shares below `min_lots` are dropped; the remainder goes first in, first out.
    ProRata {
        /// Smallest share, at least 1.
        min_lots: SizeLots,
    },
    /// First the order that set the price, up to `top_lots_max`; then as [`Allocation::ProRata`], over what is left of each.
    TopProRata {
        /// Maximum size that the top order gets ahead of the others.
        top_lots_max: SizeLots,
        /// Smallest share, at least 1.
        min_lots: SizeLots,
    },
    /// `fifo_percent` of the incoming size first in, first out, the rest as [`Allocation::ProRata`] over what is left.
    Split {
        /// 0 to 100.
        fifo_percent: u8,
        /// Smallest share, at least 1.
        min_lots: SizeLots,
    },
}

/// The fees of a trade, in parts per million of its quote value. A negative maker fee is a rebate, at most the taker fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeSchedule {
    /// Paid (or, if negative, received) by the maker.
    pub maker_ppm: i32,
    /// Paid by the taker.
    pub taker_ppm: i32,
}

impl FeeSchedule {
    /// The most that either role may owe on `value`, rounded up: what a buy order reserves in addition to its value.
    #[must_use]
    #[inline]
    pub fn reserve_on(&self, value: Amount) -> Amount {
        let worst_ppm = self.maker_ppm.max(self.taker_ppm).max(0).unsigned_abs();
        parts_per_million(value, worst_ppm, Rounding::Up)
    }
}

/// Which commands an instrument accepts, and whether orders match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TradingPhase {
    /// Only cancels. The phase of a new instrument and after the end of a day.
    Closed = 0,
    /// Orders collect, nothing matches; entry, amend and cancel allowed.
    PreOpen = 1,
    /// Orders collect for the opening uncross; leaving it for [`TradingPhase::Continuous`] uncrosses.
    OpeningAuction = 2,
    /// Orders match as they come.
    Continuous = 3,
    /// Nothing matches and only cancels are accepted; leaving it resumes.
    Halt = 4,
    /// Orders collect for the closing uncross; leaving it for [`TradingPhase::Closed`] uncrosses and expires day orders.
    ClosingAuction = 5,
}

impl TradingPhase {
    /// Whether orders may be entered and amended.
    #[must_use]
    pub const fn takes_orders(self) -> bool {
        match self {
            Self::PreOpen | Self::OpeningAuction | Self::Continuous | Self::ClosingAuction => true,
            Self::Closed | Self::Halt => false,
        }
    }

    /// Whether the operator may move an instrument from this phase to `next`.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        use TradingPhase::{Closed, ClosingAuction, Continuous, Halt, OpeningAuction, PreOpen};
        matches!(
            (self, next),
            (Closed, PreOpen | Continuous)
                | (PreOpen, OpeningAuction | Closed)
                | (OpeningAuction, Continuous | Halt | Closed)
                | (Continuous, Halt | ClosingAuction | Closed)
                | (Halt, OpeningAuction | Continuous | ClosingAuction | Closed)
                | (ClosingAuction, Closed | Halt)
        )
    }
}

/// Pre-trade limits of one account in one instrument. Zero is a limit, not "none": use the type's maximum for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RiskLimits {
    /// Largest single order, in lots.
    pub order_lots_max: SizeLots,
    /// Largest single order, in quote units at its limit price.
    pub order_value_max: Amount,
    /// Most open orders at a time.
    pub open_orders_max: u32,
    /// Largest net position, long or short, counting open orders as if filled, in lots.
    pub position_lots_max: SizeLots,
}

impl RiskLimits {
    /// The default: an account can neither fill a book nor slow down others that trade with it.
    pub const STANDARD: Self = Self {
        order_lots_max: SizeLots::new(crate::limits::ORDER_LOTS_DEFAULT),
        open_orders_max: crate::limits::OPEN_ORDERS_DEFAULT,
        ..Self::NONE
    };

    /// As wide as the types allow.
    pub const NONE: Self = Self {
        order_lots_max: SizeLots::new(crate::limits::SIZE_LOTS_MAX),
        order_value_max: Amount::MAX,
        open_orders_max: u32::MAX,
        position_lots_max: SizeLots::new(1 << 62),
    };
}

/// A tradable instrument: `base` priced in `quote`.
///
/// Units: one lot is `lot_units` smallest units of base; one tick on one lot is `tick_value_units` smallest units of quote. So the
/// value of a trade, `price_ticks * size_lots * tick_value_units`, is always a whole number: no trade is ever rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentSpec {
    /// Its id, the next free one.
    pub instrument: InstrumentId,
    /// Its name, such as `BTC/USD`.
    pub symbol: Symbol,
    /// The base asset.
    pub base: AssetId,
    /// The quote asset.
    pub quote: AssetId,
    /// Smallest units of base in a lot.
    pub lot_units: u64,
    /// Smallest units of quote in a tick, per lot.
    pub tick_value_units: u64,
    /// Sharing within a price level.
    pub allocation: Allocation,
    /// Cost of a trade.
    pub fees: FeeSchedule,
    /// How far from the last trade's price a limit may lie, in ppm: beyond it an order is rejected, and a market order stops.
    /// Before any trade it is measured from the reference price, for a stop from its trigger.
    pub collar_ppm: u32,
    /// How far from the reference price a trade may lie, in ppm: an order that would trade beyond it halts the instrument first.
    pub band_ppm: u32,
    /// Reference price until the first trade or uncross.
    pub reference_price: PriceTicks,
    /// Limits of every account that has none of its own.
    pub default_limits: RiskLimits,
}

impl InstrumentSpec {
    /// The quote value of `size` at `price`, or `None` above [`crate::limits::AMOUNT_MAX`].
    #[must_use]
    #[inline]
    pub fn value(&self, price: PriceTicks, size: SizeLots) -> Option<Amount> {
        let per_lot = u128::from(price.get().unsigned_abs()) * u128::from(self.tick_value_units);
        Amount::from_wide(per_lot.checked_mul(u128::from(size.get()))?)
    }

    /// The base amount of `size`, or `None` above [`crate::limits::AMOUNT_MAX`].
    #[must_use]
    #[inline]
    pub fn base_amount(&self, size: SizeLots) -> Option<Amount> {
        Amount::from_wide(u128::from(size.get()) * u128::from(self.lot_units))
    }
}
