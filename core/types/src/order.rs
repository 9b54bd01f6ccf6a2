//! What a participant asks for. A field's meaning never depends on another field: what differs in meaning differs in variant.

use crate::ids::{ClientOrderId, TimeNs};
use crate::quantity::{PriceTicks, SizeLots};

/// The side of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Side {
    /// Buys base for quote; stands among the bids.
    Buy = 0,
    /// Sells base for quote; stands among the asks.
    Sell = 1,
}

impl Side {
    /// Both sides, buy first.
    pub const BOTH: [Side; 2] = [Side::Buy, Side::Sell];

    /// The side that this one trades against.
    #[must_use]
    #[inline]
    pub const fn opposite(self) -> Self {
        match self {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        }
    }

    /// Whether an order of this side with limit `limit` may trade at `price`.
    #[must_use]
    #[inline]
    pub fn accepts(self, limit: PriceTicks, price: PriceTicks) -> bool {
        match self {
            Side::Buy => price <= limit,
            Side::Sell => price >= limit,
        }
    }

    /// Whether, among orders of this side, price `a` has priority over price `b`.
    #[must_use]
    #[inline]
    pub fn is_better(self, a: PriceTicks, b: PriceTicks) -> bool {
        match self {
            Side::Buy => a > b,
            Side::Sell => a < b,
        }
    }
}

/// What a limit order that would trade at once does instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostOnly {
    /// It may take liquidity.
    Off,
    /// It is rejected.
    Reject,
    /// It is repriced to one tick behind the opposite best, shown or hidden.
    Reprice,
}

/// How an order is priced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderType {
    /// Trades at `price` or better; the rest stands in the book.
    Limit {
        /// Worst price.
        price: PriceTicks,
        /// Whether it may take liquidity.
        post_only: PostOnly,
    },
    /// Trades at whatever stands within the instrument's price collar; the rest is cancelled.
    Market,
    /// Becomes a market order when a trade touches `trigger`. Its time in force says how long it waits; an immediate-or-cancel or
    /// fill-or-kill one waits until cancelled. Once triggered nothing of it rests; fill-or-kill trades in full or not at all.
    Stop {
        /// A buy triggers at or above it, a sell at or below it.
        trigger: PriceTicks,
    },
    /// Becomes a limit order of its time in force when a trade touches `trigger`. It waits as long as it would stand; an
    /// immediate-or-cancel or fill-or-kill one until cancelled.
    StopLimit {
        /// A buy triggers at or above it, a sell at or below it.
        trigger: PriceTicks,
        /// Worst price once triggered.
        price: PriceTicks,
    },
}

/// How long an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeInForce {
    /// Until cancelled.
    GoodTillCancel,
    /// Until the trading day's close.
    Day,
    /// Until the first log entry stamped at or after this time.
    GoodTill(TimeNs),
    /// Trades at once what it can; the rest is cancelled.
    ImmediateOrCancel,
    /// Trades at once in full, or not at all.
    FillOrKill,
}

/// What others see of a resting order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Display {
    /// All of it.
    Full,
    /// At most `peak` at a time; each replenishment goes to the back of its price level.
    Iceberg {
        /// Lots shown at a time: below the order's size, and such that it has at most [`crate::limits::ICEBERG_SLICES_MAX`] slices.
        peak: SizeLots,
    },
    /// Nothing; it trades after all displayed orders of its price.
    Hidden,
}

/// What happens when an order would trade with another of the same account. The incoming order's choice decides.
///
/// It is applied when the other's turn comes. Where a level is shared (see [`crate::Allocation`]) every displayed order of it has its
/// turn at once, so prevention comes before sharing. An uncross prevents nothing: nobody chose to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTrade {
    /// The incoming order's remainder is cancelled.
    CancelNewest,
    /// The resting order is cancelled, and the incoming one goes on.
    CancelOldest,
    /// Both are cancelled.
    CancelBoth,
    /// Both shrink by the smaller of the two, hidden lots included, without a trade; what reaches zero is cancelled. A resting iceberg
    /// shrinks from what it hides first.
    Decrement,
    /// They trade (for accounts that clear for several owners).
    Allow,
}

/// Everything an order says, but who sends it and for which instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderTerms {
    /// Buy or sell.
    pub side: Side,
    /// How much.
    pub size: SizeLots,
    /// At what price.
    pub order_type: OrderType,
    /// For how long.
    pub time_in_force: TimeInForce,
    /// How visibly.
    pub display: Display,
    /// Trade at least this much at once on entry (of a stop: once triggered), or be cancelled whole; `None` for any amount. What then
    /// rests has no minimum.
    pub min_size: Option<SizeLots>,
    /// Against oneself.
    pub self_trade: SelfTrade,
}

impl OrderTerms {
    /// The terms after an amendment that was taken.
    #[must_use]
    pub fn amended(self, amendment: &Amendment) -> Self {
        let changed = |old: PriceTicks, new: Option<PriceTicks>| new.unwrap_or(old);
        let order_type = match self.order_type {
            OrderType::Limit { price, post_only } => OrderType::Limit { price: changed(price, amendment.price), post_only },
            OrderType::Market => OrderType::Market,
            OrderType::Stop { trigger } => OrderType::Stop { trigger: changed(trigger, amendment.trigger) },
            OrderType::StopLimit { trigger, price } => {
                OrderType::StopLimit { trigger: changed(trigger, amendment.trigger), price: changed(price, amendment.price) }
            }
        };
        Self { order_type, size: amendment.size.unwrap_or(self.size), ..self }
    }

    /// A plain good-till-cancel limit order that cancels the newest on a self-trade.
    #[must_use]
    pub const fn limit(side: Side, price: PriceTicks, size: SizeLots) -> Self {
        Self {
            side,
            size,
            order_type: OrderType::Limit { price, post_only: PostOnly::Off },
            time_in_force: TimeInForce::GoodTillCancel,
            display: Display::Full,
            min_size: None,
            self_trade: SelfTrade::CancelNewest,
        }
    }
}

/// A change of an open order. Size down keeps its place in the queue; anything else loses it. A stop that waits keeps its turn among
/// those of its trigger whatever changes but the trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The order.
    pub client_order_id: ClientOrderId,
    /// New limit price; `None` keeps it. A stop without a limit has none to change.
    pub price: Option<PriceTicks>,
    /// New trigger of a stop that waits; `None` keeps it. One that the last trade touches is refused.
    pub trigger: Option<PriceTicks>,
    /// New open size (what remains to trade, not what was first asked); `None` keeps it.
    pub size: Option<SizeLots>,
}
