//! What came of a participant's command, from the events that it caused.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use walras_gateway::ClientOrder;
use walras_ports::{Catalog, InstrumentScale, Outcome};
use walras_types::{AccountId, ClientOrderId, ClientOrderName, InstrumentId, OrderId, RejectReason, SizeLots};
use walras_wire::{Event, OrderEvent};

use super::names;

/// The order that an answer is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Whose.
    pub account: AccountId,
    /// Where.
    pub instrument: InstrumentId,
    /// Which.
    pub called: ClientOrder,
}

/// The answer to an order, an amendment or a cancel.
pub fn order(outcome: &Outcome, subject: &Subject, scale: &InstrumentScale) -> Result<Value, RejectReason> {
    if let Some(reason) = outcome.rejected() {
        return Err(reason);
    }
    let mut order_id = None;
    let mut open = SizeLots::ZERO;
    let mut status = "cancelled";
    let mut reason = None;
    let mut price = None;
    let mut fills = Vec::new();
    let own = |account, client_order_id: ClientOrderId, id: Option<OrderId>, order_id: OrderId| {
        account == subject.account && client_order_id == subject.called.id && id.is_none_or(|id| id == order_id)
    };
    for event in &outcome.events {
        match event {
            Event::Order(OrderEvent::Accepted(e)) if own(e.account, e.client_order_id, order_id, e.order_id) => {
                order_id = Some(e.order_id);
                price = e.price;
                (open, status) = match e.price {
                    None => (e.size, "waiting_trigger"),
                    Some(_) => (e.resting.open, if e.resting.open.is_zero() { "filled" } else { "resting" }),
                };
            }
            Event::Order(OrderEvent::Amended(e)) if own(e.account, e.client_order_id, order_id, e.order_id) => {
                order_id = Some(e.order_id);
                price = e.price;
                (open, status) = match e.price {
                    None => (e.resting.open, "waiting_trigger"),
                    Some(_) => (e.resting.open, if e.resting.open.is_zero() { "filled" } else { "resting" }),
                };
            }
            Event::Order(OrderEvent::Triggered(e)) if own(e.account, e.client_order_id, order_id, e.order_id) => {
                price = Some(e.price);
                (open, status) = (e.resting.open, if e.resting.open.is_zero() { "filled" } else { "resting" });
            }
            Event::Order(OrderEvent::Traded(e)) if e.instrument == subject.instrument => {
                for party in [&e.taker, &e.maker] {
                    if own(party.account, party.client_order_id, order_id, party.order_id) && order_id.is_some() {
                        fills.push(json!({
                            "trade_id": e.trade_id.0.to_string(),
                            "price": scale.price(e.price),
                            "size": scale.size(e.size),
                            "fee": scale.quote.signed(party.fee),
                            "fee_asset": scale.quote.spec.symbol.as_str(),
                        }));
                        if status != "filled" {
                            status = "partially_filled";
                        }
                        if party.open.is_zero() {
                            (open, status) = (SizeLots::ZERO, "filled");
                        } else if std::ptr::eq(party, &e.maker) {
                            open = party.open;
                        }
                    }
                }
            }
            Event::Order(OrderEvent::Reduced(e)) if own(e.account, e.client_order_id, order_id, e.order_id) => {
                open = e.resting.open
            }
            Event::Order(OrderEvent::Cancelled(e)) if own(e.account, e.client_order_id, order_id, e.order_id) => {
                order_id = Some(e.order_id);
                open = SizeLots::ZERO;
                status = "cancelled";
                reason = Some(names::cancel_reason(e.reason));
            }
            _ => {}
        }
    }
    let mut answer = json!({
        "log_index": outcome.log_index.0.to_string(),
        "time_ns": outcome.time.0.to_string(),
        "order_id": order_id.map(|id| id.0.to_string()),
        "client_order_id": called(outcome, order_id, subject.called),
        "status": status,
        "price": price.map(|p| scale.price(p)),
        "open": scale.size(open),
        "fills": fills,
        "events": own_events(outcome, subject.account, scale),
    });
    if let Some(reason) = reason {
        answer["reason"] = reason.into();
    }
    Ok(answer)
}

/// The answer to a mass cancel.
pub fn mass_cancel(outcome: &Outcome, account: AccountId, catalog: &Catalog) -> Result<Value, RejectReason> {
    if let Some(reason) = outcome.rejected() {
        return Err(reason);
    }
    // By id: an account may have very many orders.
    let names: BTreeMap<OrderId, ClientOrderName> = outcome.names.iter().copied().collect();
    let cancelled: Vec<Value> = outcome
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Order(OrderEvent::Cancelled(e)) if e.account == account => Some(json!({
                "instrument": catalog.instrument(e.instrument)?.spec.symbol.as_str(),
                "order_id": e.order_id.0.to_string(),
                "client_order_id": ClientOrder::of(e.client_order_id, names.get(&e.order_id).copied()).to_string(),
            })),
            _ => None,
        })
        .collect();
    Ok(json!({"log_index": outcome.log_index.0.to_string(), "time_ns": outcome.time.0.to_string(), "cancelled": cancelled}))
}

/// What an order's owner calls it.
fn called(outcome: &Outcome, order_id: Option<OrderId>, called: ClientOrder) -> String {
    let name = called.name.or_else(|| outcome.name_of(order_id?));
    ClientOrder { name, ..called }.to_string()
}

/// The answer to an operator's command.
pub fn operator(outcome: &Outcome, extra: Value) -> Result<Value, RejectReason> {
    if let Some(reason) = outcome.rejected() {
        return Err(reason);
    }
    let mut answer = json!({"log_index": outcome.log_index.0.to_string(), "time_ns": outcome.time.0.to_string()});
    if let (Value::Object(answer), Value::Object(extra)) = (&mut answer, extra) {
        answer.extend(extra);
    }
    Ok(answer)
}

/// The events that concern the account's own orders, in the order in which they happened. What they say of others stays private.
fn own_events(outcome: &Outcome, account: AccountId, scale: &InstrumentScale) -> Vec<Value> {
    let one = |kind: &str, order_id: OrderId, client_order_id: ClientOrderId| json!({"event": kind, "order_id": order_id.0.to_string(), "client_order_id": called(outcome, Some(order_id), client_order_id.into())});
    let mut events = Vec::new();
    for event in outcome.events.iter() {
        match event {
            Event::Order(OrderEvent::Accepted(e)) if e.account == account => {
                events.push(one("accepted", e.order_id, e.client_order_id))
            }
            Event::Order(OrderEvent::Amended(e)) if e.account == account => {
                let mut event = one("amended", e.order_id, e.client_order_id);
                event["priority"] = names::priority(e.priority).into();
                events.push(event);
            }
            Event::Order(OrderEvent::Traded(e)) => {
                for party in [&e.maker, &e.taker] {
                    if party.account == account {
                        let mut event = one("traded", party.order_id, party.client_order_id);
                        event["trade_id"] = e.trade_id.0.to_string().into();
                        event["price"] = scale.price(e.price).into();
                        event["size"] = scale.size(e.size).into();
                        events.push(event);
                    }
                }
            }
            Event::Order(OrderEvent::Reduced(e)) if e.account == account => {
                let mut event = one("reduced", e.order_id, e.client_order_id);
                event["by"] = scale.size(e.by).into();
                events.push(event);
            }
            Event::Order(OrderEvent::Triggered(e)) if e.account == account => {
                events.push(one("triggered", e.order_id, e.client_order_id))
            }
            Event::Order(OrderEvent::Cancelled(e)) if e.account == account => {
                let mut event = one("cancelled", e.order_id, e.client_order_id);
                event["reason"] = names::cancel_reason(e.reason).into();
                events.push(event);
            }
            _ => {}
        }
    }
    events
}
