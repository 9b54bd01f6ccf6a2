//! What the reason of a refusal does not say by itself: the bound that a command met, as the state has it now.

use walras_engine::{Balance, Engine, Position};
use walras_ports::InstrumentScale;
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, PriceTicks, RejectReason, RiskLimits, Side};
use walras_wire::{Command, OrderCommand};

use super::App;

/// The bound that the command met; `None` if the reason has none, or it must not be published yet.
pub(crate) async fn bound_met(app: &App, reason: RejectReason, command: &Command) -> Option<String> {
    let bound = match reason {
        // They say what the last trade was, which market data that is held does not say yet.
        RejectReason::PriceOutsideCollar | RejectReason::StopWouldTrigger if !app.venue.public_in().is_zero() => return None,
        RejectReason::PriceOutsideCollar => collar,
        RejectReason::StopWouldTrigger => last_price,
        RejectReason::OrderTooLarge => order_size,
        RejectReason::OrderValueTooLarge => order_value,
        RejectReason::TooManyOpenOrders => open_orders,
        RejectReason::PositionLimit => position,
        RejectReason::InsufficientFunds => available,
        _ => return None,
    };
    let command = *command;
    let met = app.venue.read(move |v| Met::of(v.engine, &command)).await.ok().flatten()?;
    let catalog = app.venue.catalog();
    bound(&met, catalog.instrument(met.instrument)?)
}

/// What a command met.
struct Met {
    instrument: InstrumentId,
    side: Option<Side>,
    collar: (PriceTicks, PriceTicks),
    last_price: Option<PriceTicks>,
    limits: RiskLimits,
    position: Position,
    /// Of base and of quote.
    available: [Balance; 2],
}

impl Met {
    /// Of a command that is about one instrument.
    fn of(engine: &Engine, command: &Command) -> Option<Self> {
        let (account, instrument, side, trigger) = match command {
            Command::Order(order @ (OrderCommand::New(_) | OrderCommand::NewNamed(_) | OrderCommand::NewLinked(_))) => {
                let c = order.entered()?;
                (c.account, c.instrument, Some(c.terms.side), entering_trigger(engine, c.instrument, &c.terms))
            }
            Command::Order(OrderCommand::Amend(c)) => {
                let (side, trigger) = amended(engine, c.account, c.instrument, c.amendment.client_order_id).unzip();
                (c.account, c.instrument, side, c.amendment.trigger.or(trigger.flatten()))
            }
            _ => return None,
        };
        let view = engine.instrument(instrument)?;
        Some(Self {
            instrument,
            side,
            collar: engine.collar(instrument, trigger)?,
            last_price: view.last_price,
            limits: engine.risk_limits(account, instrument)?,
            position: engine.position(account, instrument),
            available: [view.spec.base, view.spec.quote].map(|asset| engine.balance(account, asset)),
        })
    }
}

/// The trigger with which an order comes: a trailing stop's follows from the market.
fn entering_trigger(engine: &Engine, instrument: InstrumentId, terms: &OrderTerms) -> Option<PriceTicks> {
    let view = engine.instrument(instrument)?;
    let best = view.last_price.unwrap_or(view.reference_price);
    terms.order_type.trigger().or_else(|| terms.order_type.trail()?.trigger(terms.side, best))
}

/// The side of an open order, and its trigger if it waits for one.
fn amended(
    engine: &Engine,
    account: AccountId,
    instrument: InstrumentId,
    client_order_id: ClientOrderId,
) -> Option<(Side, Option<PriceTicks>)> {
    let order = engine.open_order(account, instrument, client_order_id)?;
    Some((order.terms.side, order.trigger))
}

fn collar(met: &Met, scale: &InstrumentScale) -> Option<String> {
    let (low, high) = met.collar;
    Some(format!("the collar is now {} to {}", scale.price(low), scale.price(high)))
}

fn last_price(met: &Met, scale: &InstrumentScale) -> Option<String> {
    Some(format!("the last price is {}", scale.price(met.last_price?)))
}

fn order_size(met: &Met, scale: &InstrumentScale) -> Option<String> {
    Some(format!("the largest size is {}", scale.size(met.limits.order_lots_max)))
}

fn order_value(met: &Met, scale: &InstrumentScale) -> Option<String> {
    Some(format!("the largest value is {} {}", scale.quote.amount(met.limits.order_value_max), scale.quote.spec.symbol))
}

fn open_orders(met: &Met, _: &InstrumentScale) -> Option<String> {
    Some(format!("at most {} may be open, and {} are", met.limits.open_orders_max, met.position.open_orders))
}

fn position(met: &Met, scale: &InstrumentScale) -> Option<String> {
    let Position { net_lots, open_buy_lots, open_sell_lots, .. } = met.position;
    Some(format!(
        "the limit is {}; the position is {}, with {} open to buy and {} to sell",
        scale.size(met.limits.position_lots_max),
        scale.position(net_lots),
        scale.size(open_buy_lots),
        scale.size(open_sell_lots)
    ))
}

fn available(met: &Met, scale: &InstrumentScale) -> Option<String> {
    let [base, quote] = &met.available;
    let (asset, balance) = match met.side? {
        Side::Buy => (&scale.quote, quote),
        Side::Sell => (&scale.base, base),
    };
    Some(format!("available is {} {}", asset.amount(balance.available), asset.spec.symbol))
}
