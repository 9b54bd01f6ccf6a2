//! An order's terms, checked and turned into what the book takes. Nothing here depends on funds or on the book's orders.

use walras_order_book::{Band, Becomes, Condition, Entry, OwnerId, Trigger};
use walras_types::limits::ICEBERG_SLICES_MAX;
use walras_types::{
    Display, OrderId, OrderTerms, OrderType, PostOnly, PriceTicks, RejectReason, Side, SizeLots, TimeInForce, TimeNs, TradingPhase,
    Trail,
};
use walras_wire::NewOrder;

use crate::market::{MarketState, contains, far_end};

/// What the book takes for `order`, or the first reason against it: first its terms among themselves (20 to 39, in the order of
/// [`OrderTerms`]' rules below), then the phase, then that a stop waits, then the collar.
#[inline]
pub(crate) fn entry(
    order: &NewOrder,
    order_id: OrderId,
    time: TimeNs,
    market: &mut MarketState,
    last_price: Option<PriceTicks>,
) -> Result<Entry, RejectReason> {
    let terms = &order.terms;
    check_terms(terms, time)?;
    check_phase(terms, market.phase)?;
    let (price, post_only, trigger) = match terms.order_type {
        OrderType::Limit { price, post_only } => (within(market.collar(last_price), price)?, post_only, None),
        OrderType::Market => (far_end(market.collar(last_price), terms.side), PostOnly::Off, None),
        OrderType::Stop { trigger } => waiting(market, terms.side, trigger, None, Condition::Stop, last_price)?,
        OrderType::StopLimit { trigger, price } => waiting(market, terms.side, trigger, Some(price), Condition::Stop, last_price)?,
        OrderType::TakeProfit { trigger } => waiting(market, terms.side, trigger, None, Condition::TakeProfit, last_price)?,
        OrderType::TakeProfitLimit { trigger, price } => {
            waiting(market, terms.side, trigger, Some(price), Condition::TakeProfit, last_price)?
        }
        OrderType::TrailingStop { trail } => trailing(market, terms.side, trail, None, last_price)?,
        OrderType::TrailingStopLimit { trail, price } => trailing(market, terms.side, trail, Some(price), last_price)?,
    };
    Ok(Entry {
        order_id,
        client_order_id: order.client_order_id,
        owner: OwnerId(order.account.0),
        side: terms.side,
        price,
        size: terms.size,
        time_in_force: terms.time_in_force,
        post_only,
        display: terms.display,
        min_size: terms.min_size,
        self_trade: terms.self_trade,
        trigger,
    })
}

/// What is new of an order that waits: its limit, given or at the end of the collar, and its trigger.
#[cold]
#[inline(never)]
fn waiting(
    market: &MarketState,
    side: Side,
    trigger: PriceTicks,
    price: Option<PriceTicks>,
    condition: Condition,
    last_price: Option<PriceTicks>,
) -> Result<(PriceTicks, PostOnly, Option<Trigger>), RejectReason> {
    if condition == Condition::TakeProfit && !market.has_take_profits {
        return Err(RejectReason::NeedsLaterVersion);
    }
    check_waits(side, condition, trigger, last_price)?;
    let (price, becomes) = limit_at(market, side, trigger, price)?;
    Ok((price, PostOnly::Off, Some(Trigger::fixed(trigger, condition, becomes))))
}

/// Likewise of a trailing stop, which begins to follow at the last trade, or at the reference price before the first.
#[cold]
#[inline(never)]
fn trailing(
    market: &MarketState,
    side: Side,
    trail: Trail,
    price: Option<PriceTicks>,
    last_price: Option<PriceTicks>,
) -> Result<(PriceTicks, PostOnly, Option<Trigger>), RejectReason> {
    if !market.has_trailing_stops {
        return Err(RejectReason::NeedsLaterVersion);
    }
    let best = last_price.unwrap_or(market.reference_price);
    let trigger = Some(trail).filter(|trail| trail.is_possible()).and_then(|trail| trail.trigger(side, best));
    let trigger = trigger.ok_or(RejectReason::TrailInvalid)?;
    let (price, becomes) = limit_at(market, side, trigger, price)?;
    Ok((price, PostOnly::Off, Some(Trigger::trailing(side, trail, best, becomes))))
}

/// The limit of an order that waits, given or at the end of the collar around its trigger, and what it becomes.
fn limit_at(
    market: &MarketState,
    side: Side,
    trigger: PriceTicks,
    price: Option<PriceTicks>,
) -> Result<(PriceTicks, Becomes), RejectReason> {
    let collar = market.trigger_collar(trigger);
    match price {
        Some(price) => Ok((within(collar, price)?, Becomes::Limit)),
        None => Ok((far_end(collar, side), Becomes::Market)),
    }
}

/// Whether an order of this time in force can stand in the book's queue.
#[inline]
pub(crate) fn can_rest(time_in_force: TimeInForce) -> bool {
    match time_in_force {
        TimeInForce::GoodTillCancel | TimeInForce::Day | TimeInForce::GoodTill(_) => true,
        TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill => false,
    }
}

/// Whether an iceberg would replenish so often that a single order against it made the venue wait.
pub(crate) fn has_too_many_slices(display: Display, size: SizeLots) -> bool {
    match display {
        Display::Iceberg { peak } => size.get().div_ceil(peak.get().max(1)) > ICEBERG_SLICES_MAX,
        Display::Full | Display::Hidden => false,
    }
}

#[inline]
fn check_terms(terms: &OrderTerms, time: TimeNs) -> Result<(), RejectReason> {
    if SizeLots::order_size(terms.size.get()).is_none() {
        return Err(RejectReason::SizeOutOfRange);
    }
    let rests = can_rest(terms.time_in_force);
    match terms.display {
        Display::Full => {}
        Display::Iceberg { peak } if peak.is_zero() || peak >= terms.size || has_too_many_slices(terms.display, terms.size) => {
            return Err(RejectReason::DisplayInvalid);
        }
        Display::Iceberg { .. } | Display::Hidden => match terms.order_type {
            OrderType::Limit { .. }
            | OrderType::StopLimit { .. }
            | OrderType::TakeProfitLimit { .. }
            | OrderType::TrailingStopLimit { .. }
                if rests => {}
            _ => return Err(RejectReason::DisplayInvalid),
        },
    }
    let post_only = matches!(terms.order_type, OrderType::Limit { post_only: PostOnly::Reject | PostOnly::Reprice, .. });
    if let Some(min_size) = terms.min_size {
        let fits = !min_size.is_zero() && min_size <= terms.size;
        if !fits || post_only || terms.time_in_force == TimeInForce::FillOrKill {
            return Err(RejectReason::MinSizeInvalid);
        }
    }
    if post_only && !rests {
        return Err(RejectReason::PostOnlyInvalid);
    }
    match (terms.order_type, terms.time_in_force) {
        (OrderType::Market, _) if rests => Err(RejectReason::TimeInForceInvalid),
        (_, TimeInForce::GoodTill(until)) if until <= time => Err(RejectReason::AlreadyExpired),
        _ => Ok(()),
    }
}

/// Orders that must trade on entry need a phase in which something does; those with a trigger wait, so they do not.
#[inline]
fn check_phase(terms: &OrderTerms, phase: TradingPhase) -> Result<(), RejectReason> {
    if phase == TradingPhase::Continuous {
        return Ok(());
    }
    if !phase.takes_orders() {
        return Err(RejectReason::PhaseTakesNoOrders);
    }
    match terms.order_type {
        OrderType::Stop { .. }
        | OrderType::StopLimit { .. }
        | OrderType::TakeProfit { .. }
        | OrderType::TakeProfitLimit { .. }
        | OrderType::TrailingStop { .. }
        | OrderType::TrailingStopLimit { .. } => Ok(()),
        OrderType::Market => Err(RejectReason::PhaseNoImmediate),
        OrderType::Limit { .. } if !can_rest(terms.time_in_force) || terms.min_size.is_some() => {
            Err(RejectReason::PhaseNoImmediate)
        }
        OrderType::Limit { .. } => Ok(()),
    }
}

/// Refuses a trigger that the last trade has touched: such an order would not wait, but take at once whatever price there is. The same in
/// every phase that takes orders: while an auction collects, the last trade is the one before it. Before the first trade every one waits.
pub(crate) fn check_waits(
    side: Side,
    condition: Condition,
    trigger: PriceTicks,
    last_price: Option<PriceTicks>,
) -> Result<(), RejectReason> {
    let is_touched = last_price.is_some_and(|last| condition.is_touched(side, trigger, last));
    if is_touched { Err(RejectReason::StopWouldTrigger) } else { Ok(()) }
}

#[inline]
pub(crate) fn within(collar: Band, price: PriceTicks) -> Result<PriceTicks, RejectReason> {
    if contains(collar, price) { Ok(price) } else { Err(RejectReason::PriceOutsideCollar) }
}
