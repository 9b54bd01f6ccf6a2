//! Orders and trades as JSON of the dialect.

use serde_json::{Value, json};
use walras_gateway::{ClientOrder, Decimal};
use walras_market_data::{EndedOrder, OrderEnd};
use walras_ports::{InstrumentScale, KnownOrder, ListedOrder};
use walras_types::{
    Display, OrderId, OrderTerms, OrderType, PostOnly, PriceTicks, SelfTrade, SizeLots, TimeInForce, TimeNs, Trail,
};
use walras_wire::CancelReason;

use crate::kinds;
use crate::limits::PPM_PER_DELTA;
use crate::values::ms;

/// How an order is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    New,
    PartiallyFilled,
    Filled,
    Canceled,
    Expired,
    ExpiredInMatch,
}

impl Status {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::PartiallyFilled => "PARTIALLY_FILLED",
            Self::Filled => "FILLED",
            Self::Canceled => "CANCELED",
            Self::Expired => "EXPIRED",
            Self::ExpiredInMatch => "EXPIRED_IN_MATCH",
        }
    }

    /// Of an order that is open.
    pub(crate) fn open(filled: SizeLots) -> Self {
        if filled.is_zero() { Self::New } else { Self::PartiallyFilled }
    }
}

/// What an order is after it was cancelled for a reason.
pub(crate) fn cancel_status(reason: CancelReason) -> Status {
    match reason {
        CancelReason::Requested | CancelReason::MassCancelled => Status::Canceled,
        CancelReason::SelfTrade => Status::ExpiredInMatch,
        CancelReason::Unfilled
        | CancelReason::Expired
        | CancelReason::DayEnded
        | CancelReason::AccountSuspended
        | CancelReason::TriggerRefused
        | CancelReason::Linked
        | CancelReason::Unfunded
        | CancelReason::PriceBand => Status::Expired,
    }
}

/// An order, open or not.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) order_id: OrderId,
    /// The order with which it is linked, while both are open.
    pub(crate) linked: Option<OrderId>,
    pub(crate) called: ClientOrder,
    pub(crate) terms: OrderTerms,
    /// Whether it stands in the book, or did: a stop that waits does not.
    pub(crate) is_working: bool,
    /// How much was asked, of which `filled` has traded.
    pub(crate) size: SizeLots,
    pub(crate) filled: SizeLots,
    /// The sum over its trades of price in ticks times size in lots.
    pub(crate) filled_tick_lots: u128,
    pub(crate) status: Status,
    pub(crate) entered: Option<TimeNs>,
    pub(crate) updated: Option<TimeNs>,
}

impl Order {
    /// An open one.
    pub(crate) fn listed(listed: &ListedOrder) -> Self {
        let ListedOrder { order, history, .. } = listed;
        let filled = history.map_or(SizeLots::ZERO, |history| history.filled);
        let entered = history.map(|history| history.entered);
        let about = history.and_then(|history| history.about);
        let name = about.and_then(|about| about.name);
        Self {
            order_id: order.order_id,
            linked: order.linked,
            called: ClientOrder::of(order.client_order_id, name),
            terms: order.terms,
            is_working: order.price.is_some(),
            size: SizeLots::new(order.open.get().saturating_add(filled.get())),
            filled,
            filled_tick_lots: history.map_or(0, |history| history.filled_tick_lots),
            status: Status::open(filled),
            entered,
            updated: about.map(|about| about.changed).or(entered),
        }
    }

    /// One that has ended.
    pub(crate) fn ended(order: &EndedOrder) -> Self {
        let EndedOrder { order_id, client_order_id, name, side, price, terms, size, open, filled, filled_tick_lots, .. } = *order;
        let (status, size) = match order.end {
            OrderEnd::Filled => (Status::Filled, filled),
            // Of what was left when it met an order of its own account the record says nothing.
            OrderEnd::Cancelled(reason) if open.is_zero() => (cancel_status(reason), size),
            OrderEnd::Cancelled(reason) => (cancel_status(reason), SizeLots::new(filled.get().saturating_add(open.get()))),
        };
        // One that the venue made itself said nothing: it stood at its price.
        let made = || OrderTerms {
            side,
            size,
            order_type: price.map_or(OrderType::Market, |price| OrderType::Limit { price, post_only: PostOnly::Off }),
            time_in_force: TimeInForce::GoodTillCancel,
            display: Display::Full,
            min_size: None,
            self_trade: SelfTrade::CancelNewest,
        };
        Self {
            order_id,
            linked: None,
            called: ClientOrder::of(client_order_id, name),
            terms: terms.unwrap_or_else(made),
            is_working: price.is_some(),
            size,
            filled,
            filled_tick_lots,
            status,
            entered: Some(order.entered),
            updated: Some(order.ended),
        }
    }

    /// Whether nothing more happens to it.
    pub(crate) fn is_ended(&self) -> bool {
        match self.status {
            Status::New | Status::PartiallyFilled => false,
            Status::Filled | Status::Canceled | Status::Expired | Status::ExpiredInMatch => true,
        }
    }

    /// One or the other.
    pub(crate) fn known(order: &KnownOrder) -> Self {
        match order {
            KnownOrder::Open(listed) => Self::listed(listed),
            KnownOrder::Ended(ended) => Self::ended(ended),
        }
    }
}

/// An amount of quote: a sum of price in ticks times size in lots.
pub(crate) fn quote(scale: &InstrumentScale, tick_lots: u128) -> String {
    scale.value(tick_lots).to_string()
}

pub(crate) fn tick_lots(price: PriceTicks, size: SizeLots) -> u128 {
    u128::from(price.get().unsigned_abs()) * u128::from(size.get())
}

/// Zero in the scale of a price.
pub(crate) fn no_price(scale: &InstrumentScale) -> String {
    Decimal::new(0, scale.tick().decimals()).to_string()
}

/// A size, with all decimals also where it is zero.
pub(crate) fn size(scale: &InstrumentScale, size: SizeLots) -> String {
    if size.is_zero() { Decimal::new(0, scale.lot().decimals()).to_string() } else { scale.size(size) }
}

/// The limit price, or zero where there is none.
pub(crate) fn limit_price(scale: &InstrumentScale, terms: &OrderTerms) -> String {
    terms.order_type.limit().map_or_else(|| no_price(scale), |price| scale.price(price))
}

pub(crate) fn stop_price(scale: &InstrumentScale, terms: &OrderTerms) -> String {
    terms.order_type.trigger().map_or_else(|| no_price(scale), |trigger| scale.price(trigger))
}

/// The distance of a trailing stop, as the dialect has it: one in ticks, or between its steps, is of another way in.
pub(crate) fn trailing_delta(terms: &OrderTerms) -> Option<u64> {
    match terms.order_type.trail()? {
        Trail::Ppm(ppm) => Some(u64::from(ppm).div_ceil(PPM_PER_DELTA)),
        Trail::Ticks(_) => None,
    }
}

/// Adds it, where there is one.
fn with_trailing_delta(mut report: Value, terms: &OrderTerms) -> Value {
    if let Some(delta) = trailing_delta(terms) {
        report["trailingDelta"] = delta.into();
    }
    report
}

pub(crate) fn iceberg_size(scale: &InstrumentScale, terms: &OrderTerms) -> String {
    match terms.display {
        Display::Iceberg { peak } => size(scale, peak),
        Display::Full | Display::Hidden => size(scale, SizeLots::ZERO),
    }
}

/// The number of the list of two orders: that of the later one.
pub(crate) fn list_id(one: OrderId, other: OrderId) -> u64 {
    one.0.max(other.0)
}

/// The number of an order's list, -1 for none.
pub(crate) fn list(order: &Order) -> i64 {
    let id = order.linked.map(|other| list_id(order.order_id, other));
    id.and_then(|id| i64::try_from(id).ok()).unwrap_or(-1)
}

/// An order as a query answers it.
pub(crate) fn order(order: &Order, symbol: &str, scale: &InstrumentScale) -> Value {
    let terms = &order.terms;
    let time = |time: Option<TimeNs>| time.map_or(0, ms);
    let report = json!({
        "symbol": symbol,
        "orderId": order.order_id.0,
        "orderListId": list(order),
        "clientOrderId": order.called.to_string(),
        "price": limit_price(scale, terms),
        "origQty": size(scale, order.size),
        "executedQty": size(scale, order.filled),
        "origQuoteOrderQty": quote(scale, 0),
        "cummulativeQuoteQty": quote(scale, order.filled_tick_lots),
        "status": order.status.name(),
        "timeInForce": kinds::time_in_force(terms),
        "type": kinds::order_type(terms),
        "side": kinds::side(terms.side),
        "stopPrice": stop_price(scale, terms),
        "icebergQty": iceberg_size(scale, terms),
        "time": time(order.entered),
        "updateTime": time(order.updated),
        "isWorking": order.is_working,
        "workingTime": if order.is_working { i64::try_from(time(order.entered)).unwrap_or(i64::MAX) } else { -1 },
        "selfTradePreventionMode": kinds::self_trade(terms.self_trade),
    });
    with_trailing_delta(report, terms)
}

/// An order as the answer to an amendment has it.
pub(crate) fn amended(order: &Order, symbol: &str, scale: &InstrumentScale) -> Value {
    let terms = &order.terms;
    let name = order.called.to_string();
    let mut report = json!({
        "symbol": symbol,
        "orderId": order.order_id.0,
        "orderListId": list(order),
        // It keeps its name.
        "origClientOrderId": name,
        "clientOrderId": name,
        "price": limit_price(scale, terms),
        "qty": size(scale, order.size),
        "executedQty": size(scale, order.filled),
        "preventedQty": size(scale, SizeLots::ZERO),
        "quoteOrderQty": quote(scale, 0),
        "cumulativeQuoteQty": quote(scale, order.filled_tick_lots),
        "status": order.status.name(),
        "timeInForce": kinds::time_in_force(terms),
        "type": kinds::order_type(terms),
        "side": kinds::side(terms.side),
        "selfTradePreventionMode": kinds::self_trade(terms.self_trade),
    });
    if order.is_working {
        report["workingTime"] = order.entered.map_or(0, ms).into();
    }
    if terms.order_type.trigger().is_some() {
        report["stopPrice"] = stop_price(scale, terms).into();
    }
    if let Display::Iceberg { .. } = terms.display {
        report["icebergQty"] = iceberg_size(scale, terms).into();
    }
    with_trailing_delta(report, terms)
}

/// An order as the answer to a cancel has it. `name` is the cancel's own.
pub(crate) fn cancelled(at: TimeNs, order: &Order, symbol: &str, scale: &InstrumentScale, name: &str) -> Value {
    let terms = &order.terms;
    let report = json!({
        "symbol": symbol,
        "origClientOrderId": order.called.to_string(),
        "orderId": order.order_id.0,
        "orderListId": -1,
        "clientOrderId": name,
        "transactTime": ms(at),
        "price": limit_price(scale, terms),
        "origQty": size(scale, order.size),
        "executedQty": size(scale, order.filled),
        "origQuoteOrderQty": quote(scale, 0),
        "cummulativeQuoteQty": quote(scale, order.filled_tick_lots),
        "status": order.status.name(),
        "timeInForce": kinds::time_in_force(terms),
        "type": kinds::order_type(terms),
        "side": kinds::side(terms.side),
        "stopPrice": stop_price(scale, terms),
        "icebergQty": iceberg_size(scale, terms),
        "selfTradePreventionMode": kinds::self_trade(terms.self_trade),
    });
    with_trailing_delta(report, terms)
}
