//! The records: trades, book snapshots and what happened to displayed orders, of instruments whose units are recorded once.

use serde::{Deserialize, Serialize};
use walras_gateway::InstrumentScale;
use walras_market_data::Recorded;
use walras_types::{InstrumentId, InstrumentSpec, LogIndex, OrderId, PriceTicks, Side, SizeLots, TimeNs, TradeId};
use walras_wire::{AssetSpec, OrderEvent};

use crate::day::Day;

/// A trade as the public sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// The entry that made it.
    pub log_index: LogIndex,
    /// That entry's time.
    pub time: TimeNs,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The trade's number, increasing per instrument.
    pub trade_id: TradeId,
    /// The price.
    pub price: PriceTicks,
    /// Size in lots.
    pub size: SizeLots,
    /// The taker's side; `None` in an uncross.
    pub taker_side: Option<Side>,
}

/// A price level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: PriceTicks,
    /// Lots that are shown there.
    pub size: SizeLots,
    /// Number of displayed orders.
    pub order_count: u32,
}

/// A book snapshot: the best levels after an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Book {
    /// The entry.
    pub log_index: LogIndex,
    /// Its time.
    pub time: TimeNs,
    /// The instrument.
    pub instrument: InstrumentId,
    /// Best first.
    pub bids: Vec<Level>,
    /// Best first.
    pub asks: Vec<Level>,
}

impl Book {
    /// Whether two snapshots have the same levels.
    #[must_use]
    pub fn shows_the_same(&self, other: &Self) -> bool {
        self.bids == other.bids && self.asks == other.asks
    }
}

/// A displayed order, as the public sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The venue's number of it. The next slice of an iceberg order has the same.
    pub order_id: OrderId,
    /// Bid or ask.
    pub side: Side,
    /// Its limit.
    pub price: PriceTicks,
    /// What it shows; nothing where it is displayed no more.
    pub shown: SizeLots,
}

/// What happened to the displayed orders of a book. What is hidden is in none of it but the trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStep {
    /// All books are empty. The orders that stand follow as [`OrderStep::Standing`].
    Cleared,
    /// From here on the orders are not known, up to the next [`OrderStep::Cleared`]: entries are missing.
    Lost,
    /// An order stands behind those of its price that were named before.
    Standing(Shown),
    /// An order came in, or an iceberg shows its next slice: it stands behind all others of its price.
    Added(Shown),
    /// Two orders traded. What displayed ones lost by it follows.
    Traded {
        /// The trade's number.
        trade_id: TradeId,
        /// The price.
        price: PriceTicks,
        /// The size.
        size: SizeLots,
        /// The taker's side; `None` in an uncross.
        taker_side: Option<Side>,
    },
    /// An order lost this by the trade before.
    Executed {
        /// The order after it.
        order: Shown,
        /// How much less it shows.
        by: SizeLots,
    },
    /// An order shows another size without a trade, at its place.
    Resized {
        /// The order after it.
        order: Shown,
        /// What it showed.
        from: SizeLots,
    },
    /// An order is displayed no more.
    Cancelled {
        /// The order after it.
        order: Shown,
        /// What it showed.
        from: SizeLots,
    },
    /// An order has other terms, and stands behind all others of its price.
    Replaced {
        /// The order after it.
        order: Shown,
        /// What it showed.
        from: SizeLots,
        /// Whether its price is what it was.
        same_price: bool,
    },
}

impl OrderStep {
    /// Whether it is of all books.
    pub(crate) fn is_of_all(&self) -> bool {
        matches!(self, Self::Cleared | Self::Lost)
    }
}

/// One step of an instrument's book by order; of [`OrderStep::Cleared`] and [`OrderStep::Lost`] the instrument means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRecord {
    /// The entry that did it.
    pub log_index: LogIndex,
    /// That entry's time; of orders that stood when a day began, the day's first nanosecond.
    pub time: TimeNs,
    /// The instrument.
    pub instrument: InstrumentId,
    /// What happened.
    pub step: OrderStep,
}

/// What an entry says of orders, for an archive that keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderNote {
    /// The entry.
    pub log_index: LogIndex,
    /// Its time.
    pub time: TimeNs,
    /// What it says.
    pub said: OrderSaid,
}

/// See [`OrderNote`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderSaid {
    /// These are all displayed orders after it: of each price the first in the queue first.
    Standing(Vec<(InstrumentId, Shown)>),
    /// Something happened to an order.
    Event(OrderEvent),
    /// An instrument is in another phase, or its auction uncrossed.
    Phase(InstrumentId),
}

/// Consecutive entries of one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The day of them all.
    pub day: Day,
    /// The first.
    pub first: LogIndex,
    /// The last.
    pub last: LogIndex,
    /// The last one's time.
    pub last_time: TimeNs,
}

/// The records of consecutive entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The entries, day by day.
    pub spans: Vec<Span>,
    /// Instruments that may be new to the archive.
    pub listings: Vec<Listing>,
    /// Their trades, in order.
    pub trades: Vec<Trade>,
    /// Their book snapshots, in order.
    pub books: Vec<Book>,
    /// What happened to accounts, in order.
    pub accounts: Vec<Recorded>,
    /// What happened to orders, in order, where the archive keeps them.
    pub orders: Vec<OrderNote>,
}

/// An instrument: its name and its units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Its id.
    pub instrument: u32,
    /// Its name.
    pub symbol: String,
    /// The base asset.
    pub base: String,
    /// The quote asset.
    pub quote: String,
    /// One tick, in quote per base, as a decimal; `None` where that has no end.
    pub tick: Option<String>,
    /// One lot, in base, as a decimal.
    pub lot: Option<String>,
}

impl Listing {
    /// Of an instrument between two assets.
    #[must_use]
    pub fn of(spec: &InstrumentSpec, base: &AssetSpec, quote: &AssetSpec) -> Self {
        let scale = InstrumentScale::of(spec, base.decimals, quote.decimals).ok();
        Self {
            instrument: spec.instrument.0,
            symbol: spec.symbol.as_str().to_owned(),
            base: base.symbol.as_str().to_owned(),
            quote: quote.symbol.as_str().to_owned(),
            tick: scale.map(|scale| scale.tick_size().minimal().to_string()),
            lot: scale.map(|scale| scale.lot_size().minimal().to_string()),
        }
    }

    /// The unique prefix of its files' names.
    #[must_use]
    pub fn file_stem(&self) -> String {
        format!("{}.{}", self.symbol.replace('/', "-"), self.instrument)
    }

    /// What a tick and a lot are worth, where both are decimals that a column of 38 digits holds.
    #[must_use]
    pub fn steps(&self) -> Option<(Step, Step)> {
        Some((Step::parse(self.tick.as_deref()?)?, Step::parse(self.lot.as_deref()?)?))
    }
}

/// A decimal step; numbers are whole multiples of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Without its point.
    pub mantissa: i128,
    /// Digits behind its point.
    pub decimals: u32,
}

impl Step {
    /// Digits of a decimal column.
    pub(crate) const DIGITS: u32 = 38;

    /// As it is written; `None` where a product with a count of the core, which is below 2^63, may have more than 38 digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
        let decimals = u32::try_from(fraction.len()).ok()?;
        let most = mantissa.checked_mul(i128::from(i64::MAX))?;
        (decimals <= Self::DIGITS && most < 10_i128.pow(Self::DIGITS)).then_some(Self { mantissa, decimals })
    }

    /// So many of it, as a decimal with its digits.
    #[must_use]
    pub fn text(self, count: u64) -> String {
        let (value, decimals) = (self.times(count).to_string(), self.decimals as usize);
        let digits = format!("{value:0>width$}", width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
    }

    /// So many of it, without the point.
    #[must_use]
    pub fn times(self, count: u64) -> i128 {
        self.mantissa.saturating_mul(i128::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_as_they_are_written() {
        assert_eq!(Step::parse("0.05"), Some(Step { mantissa: 5, decimals: 2 }));
        assert_eq!(Step::parse("125"), Some(Step { mantissa: 125, decimals: 0 }));
        let step = Step::parse("0.05").unwrap();
        assert_eq!((step.times(30), step.text(30).as_str(), step.text(1).as_str()), (150, "1.50", "0.05"));
        assert_eq!(Step::parse("125").unwrap().text(3), "375");
        assert_eq!(Step::parse("100000000000000000000000000"), None, "a product would have too many digits");
        assert_eq!(Step::parse("x"), None);
    }
}
