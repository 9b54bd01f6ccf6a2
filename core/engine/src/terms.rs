//! An order's terms, checked and turned into what the book takes. Nothing here depends on funds or on the book's orders.

use walras_order_book::{Band, Becomes, Entry, OwnerId, Trigger};
use walras_types::limits::ICEBERG_SLICES_MAX;
use walras_types::{
    Display, OrderId, OrderTerms, OrderType, PostOnly, PriceTicks, RejectReason, Side, SizeLots, TimeInForce, TimeNs, TradingPhase,
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
    if let OrderType::Stop { trigger } | OrderType::StopLimit { trigger, .. } = terms.order_type {
        check_waits(terms.side, trigger, last_price)?;
    }
    let (price, post_only, trigger) = match terms.order_type {
        OrderType::Limit { price, post_only } => (within(market.collar(last_price), price)?, post_only, None),
        OrderType::Market => (far_end(market.collar(last_price), terms.side), PostOnly::Off, None),
        OrderType::Stop { trigger } => {
            let waits = Trigger { price: trigger, becomes: Becomes::Market };
            (far_end(market.trigger_collar(trigger), terms.side), PostOnly::Off, Some(waits))
        }
        OrderType::StopLimit { trigger, price } => {
            let waits = Trigger { price: trigger, becomes: Becomes::Limit };
            (within(market.trigger_collar(trigger), price)?, PostOnly::Off, Some(waits))
        }
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
            OrderType::Limit { .. } | OrderType::StopLimit { .. } if rests => {}
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

/// Orders that must trade on entry need a phase in which something does; stops wait, so they do not.
#[inline]
fn check_phase(terms: &OrderTerms, phase: TradingPhase) -> Result<(), RejectReason> {
    if phase == TradingPhase::Continuous {
        return Ok(());
    }
    if !phase.takes_orders() {
        return Err(RejectReason::PhaseTakesNoOrders);
    }
    match terms.order_type {
        OrderType::Stop { .. } | OrderType::StopLimit { .. } => Ok(()),
        OrderType::Market => Err(RejectReason::PhaseNoImmediate),
        OrderType::Limit { .. } if !can_rest(terms.time_in_force) || terms.min_size.is_some() => {
            Err(RejectReason::PhaseNoImmediate)
        }
        OrderType::Limit { .. } => Ok(()),
    }
}

/// Refuses a trigger that the last trade has touched: such a stop would not wait, but take at once whatever price there is. The same in every
/// phase that takes orders: while an auction collects, the last trade is the one before it. Before the first trade every stop waits.
pub(crate) fn check_waits(side: Side, trigger: PriceTicks, last_price: Option<PriceTicks>) -> Result<(), RejectReason> {
    let is_touched = last_price.is_some_and(|last| match side {
        Side::Buy => last >= trigger,
        Side::Sell => last <= trigger,
    });
    if is_touched { Err(RejectReason::StopWouldTrigger) } else { Ok(()) }
}

#[inline]
pub(crate) fn within(collar: Band, price: PriceTicks) -> Result<PriceTicks, RejectReason> {
    if contains(collar, price) { Ok(price) } else { Err(RejectReason::PriceOutsideCollar) }
}
