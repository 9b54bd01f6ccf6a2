//! The terms of orders. A field's meaning never depends on another field: different meanings are different variants.

use crate::ids::{ClientOrderId, TimeNs};
use crate::quantity::{PriceTicks, SizeLots};

/// The side of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Side {
    /// Buys base for quote; a bid.
    Buy = 0,
    /// Sells base for quote; an ask.
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
    /// Trades at `price` or better; the rest stays in the book.
    Limit {
        /// The limit price.
        price: PriceTicks,
        /// Whether it may take liquidity.
        post_only: PostOnly,
    },
    /// Trades with any orders within the instrument's price collar; the rest is cancelled.
    Market,
    /// Becomes a market order when a trade touches `trigger`. Its time in force says how long it waits; an immediate-or-cancel or
    /// fill-or-kill one waits until cancelled. Once triggered nothing of it rests; fill-or-kill trades in full or not at all.
    Stop {
        /// A buy triggers at or above it, a sell at or below it.
        trigger: PriceTicks,
    },
    /// Becomes a limit order with its time in force when a trade touches `trigger`. Its time in force also says how long it waits;
    /// an immediate-or-cancel or fill-or-kill one waits until cancelled.
    StopLimit {
        /// A buy triggers at or above it, a sell at or below it.
        trigger: PriceTicks,
        /// The limit price once triggered.
        price: PriceTicks,
    },
    /// As [`OrderType::Stop`], on the other side of the market: it waits for a price in its favour.
    TakeProfit {
        /// A buy triggers at or below it, a sell at or above it.
        trigger: PriceTicks,
    },
    /// As [`OrderType::StopLimit`], on the other side of the market.
    TakeProfitLimit {
        /// A buy triggers at or below it, a sell at or above it.
        trigger: PriceTicks,
        /// The limit price once triggered.
        price: PriceTicks,
    },
    /// As [`OrderType::Stop`], with a trigger that follows the market at a distance: a sell's rises with the price and never falls, a buy's
    /// falls and never rises.
    TrailingStop {
        /// The distance from the best price since it entered.
        trail: Trail,
    },
    /// As [`OrderType::StopLimit`], with such a trigger. Its limit stays, but once triggered it is no worse than the end of the
    /// collar around the trigger.
    TrailingStopLimit {
        /// The distance from the best price since it entered.
        trail: Trail,
        /// The limit price once triggered.
        price: PriceTicks,
    },
}

/// How far behind the market the trigger of a trailing stop stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trail {
    /// So many ticks, one at least.
    Ticks(u32),
    /// So many millionths of the price, 1 to [`crate::limits::TRAIL_PPM_MAX`], rounded up to whole ticks.
    Ppm(u32),
}

impl Trail {
    /// Whether an order may have this distance: not zero, and no share of the price that is all of it.
    #[must_use]
    #[inline]
    pub const fn is_possible(self) -> bool {
        match self {
            Self::Ticks(ticks) => ticks >= 1,
            Self::Ppm(ppm) => ppm >= 1 && ppm <= crate::limits::TRAIL_PPM_MAX,
        }
    }

    /// The distance in ticks where the best price is `best`.
    #[must_use]
    #[inline]
    pub const fn ticks_at(self, best: PriceTicks) -> i64 {
        match self {
            Self::Ticks(ticks) => ticks as i64,
            Self::Ppm(ppm) => {
                // A price is below 2^40 and the factor below 2^20.
                let share = best.get().unsigned_abs() * ppm as u64;
                share.div_ceil(1_000_000) as i64
            }
        }
    }

    /// The trigger of an order of `side` where the best price since it entered is `best`: below it for a sell, above it for a buy. `None`
    /// beyond the range of prices.
    #[must_use]
    pub const fn trigger(self, side: Side, best: PriceTicks) -> Option<PriceTicks> {
        let ticks = self.ticks_at(best);
        PriceTicks::new(match side {
            Side::Buy => best.get() + ticks,
            Side::Sell => best.get() - ticks,
        })
    }
}

impl OrderType {
    /// The price that a trade must touch before the order enters, where it is part of the terms; `None` for an order that enters at
    /// once, and for one whose trigger follows the market.
    #[must_use]
    #[inline]
    pub const fn trigger(self) -> Option<PriceTicks> {
        match self {
            Self::Limit { .. } | Self::Market | Self::TrailingStop { .. } | Self::TrailingStopLimit { .. } => None,
            Self::Stop { trigger }
            | Self::StopLimit { trigger, .. }
            | Self::TakeProfit { trigger }
            | Self::TakeProfitLimit { trigger, .. } => Some(trigger),
        }
    }

    /// The limit price; `None` for what is a market order, or becomes one.
    #[must_use]
    #[inline]
    pub const fn limit(self) -> Option<PriceTicks> {
        match self {
            Self::Market | Self::Stop { .. } | Self::TakeProfit { .. } | Self::TrailingStop { .. } => None,
            Self::Limit { price, .. }
            | Self::StopLimit { price, .. }
            | Self::TakeProfitLimit { price, .. }
            | Self::TrailingStopLimit { price, .. } => Some(price),
        }
    }

    /// How far behind the market its trigger stays, if it follows it.
    #[must_use]
    #[inline]
    pub const fn trail(self) -> Option<Trail> {
        match self {
            Self::TrailingStop { trail } | Self::TrailingStopLimit { trail, .. } => Some(trail),
            Self::Limit { .. }
            | Self::Market
            | Self::Stop { .. }
            | Self::StopLimit { .. }
            | Self::TakeProfit { .. }
            | Self::TakeProfitLimit { .. } => None,
        }
    }

    /// Whether it waits for a trade to touch its trigger.
    #[must_use]
    #[inline]
    pub const fn waits(self) -> bool {
        self.trigger().is_some() || self.trail().is_some()
    }
}

/// How long an order stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeInForce {
    /// Until cancelled.
    GoodTillCancel,
    /// Until the trading day's close.
    Day,
    /// Until the first log entry stamped at or after this time.
    GoodTill(TimeNs),
    /// Trades at once as far as possible; the rest is cancelled.
    ImmediateOrCancel,
    /// Trades at once in full, or not at all.
    FillOrKill,
}

/// How much of a resting order is displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Display {
    /// All of it.
    Full,
    /// At most `peak` at a time; each replenishment goes to the back of its price level.
    Iceberg {
        /// Lots displayed at a time: less than the order's size, with at most [`crate::limits::ICEBERG_SLICES_MAX`] slices.
        peak: SizeLots,
    },
    /// Nothing; it trades after all displayed orders of its price.
    Hidden,
}

/// What happens when an order would trade with another of the same account. The incoming order's choice decides.
///
/// It is applied when the other order's turn comes. On a level that is shared (see [`crate::Allocation`]), the turn of all
/// displayed orders comes at once, so prevention comes before sharing. An uncross has no self-trade prevention, because no order is
/// incoming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfTrade {
    /// The incoming order's remainder is cancelled.
    CancelNewest,
    /// The resting order is cancelled, and the incoming one goes on.
    CancelOldest,
    /// Both are cancelled.
    CancelBoth,
    /// Both shrink by the smaller open size, including hidden lots, without a trade; an order that reaches zero is cancelled. A
    /// resting iceberg's hidden part shrinks first.
    Decrement,
    /// They trade (for accounts that clear for several owners).
    Allow,
}

/// The terms of an order, without its account and instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderTerms {
    /// Buy or sell.
    pub side: Side,
    /// Size in lots.
    pub size: SizeLots,
    /// The price.
    pub order_type: OrderType,
    /// How long it stays open.
    pub time_in_force: TimeInForce,
    /// How much of it is displayed.
    pub display: Display,
    /// Minimum size to trade at once on entry (for a stop: once triggered); otherwise the order is cancelled. `None` for any
    /// amount. The resting part has no minimum.
    pub min_size: Option<SizeLots>,
    /// Self-trade prevention.
    pub self_trade: SelfTrade,
}

impl OrderTerms {
    /// The terms after an accepted amendment.
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
            OrderType::TakeProfit { trigger } => OrderType::TakeProfit { trigger: changed(trigger, amendment.trigger) },
            OrderType::TakeProfitLimit { trigger, price } => {
                OrderType::TakeProfitLimit { trigger: changed(trigger, amendment.trigger), price: changed(price, amendment.price) }
            }
            OrderType::TrailingStop { trail } => OrderType::TrailingStop { trail },
            OrderType::TrailingStopLimit { trail, price } => {
                OrderType::TrailingStopLimit { trail, price: changed(price, amendment.price) }
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

/// A change of an open order. A smaller size keeps its queue position; any other change loses it. A pending stop keeps its queue
/// position unless its trigger changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The order.
    pub client_order_id: ClientOrderId,
    /// New limit price; `None` keeps it. A stop without a limit has none to change.
    pub price: Option<PriceTicks>,
    /// New trigger of a pending stop; `None` keeps it. A trigger that the last trade touches is refused, and so is one for a trailing stop.
    pub trigger: Option<PriceTicks>,
    /// New open size (the remaining size, not the original one); `None` keeps it.
    pub size: Option<SizeLots>,
}
