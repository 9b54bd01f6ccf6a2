//! Order lists: two orders of which one cancels the other (OCO).
//!
//! The venue links an order with an open one, so a list is two commands. The one that waits for its trigger is entered first, and the
//! other is linked with it as it enters. Where that one is refused the first is cancelled again, and nothing is left of the list.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use walras_gateway::ClientOrder;
use walras_ports::{InstrumentScale, OrderKey};
use walras_sequencer::SignedBy;
use walras_types::{AccountId, InstrumentId, OrderId, OrderType, RejectReason};
use walras_wire::{CancelOrder, Command, OrderCommand};

use crate::app::App;
use crate::client_ids;
use crate::error::{Asked, Error};
use crate::limits::ORDERS_MAX;
use crate::names::Names;
use crate::orders::{self, Wanted, instrument};
use crate::params::Params;
use crate::past;
use crate::report;
use crate::values::ms;

/// What the parameters of one leg are called in a list, and as those of an order.
pub(crate) const OF_A_LEG: [(&str, &str); 7] = [
    ("Type", "type"),
    ("Price", "price"),
    ("StopPrice", "stopPrice"),
    ("TimeInForce", "timeInForce"),
    ("ClientOrderId", "newClientOrderId"),
    ("IcebergQty", "icebergQty"),
    ("TrailingDelta", "trailingDelta"),
];

/// A list that was asked for: the order that waits, and the one that is linked with it.
pub(crate) struct WantedList {
    name: ClientOrder,
    legs: [Wanted; 2],
}

impl WantedList {
    /// Reads the parameters of `orderList/oco`.
    pub(crate) fn read(names: &Names, params: &Params) -> Result<Self, Error> {
        Self::of_legs(names, params, [leg(params, "above")?, leg(params, "below")?])
    }

    /// Reads those of `order/oco`: a limit order and a stop.
    pub(crate) fn read_old(names: &Names, params: &Params) -> Result<Self, Error> {
        let (mut limit, mut stop) = (common(params)?, common(params)?);
        let put = |leg: &mut Params, from: &str, name: &str| match params.text(from)? {
            Some(value) => leg.add(name.to_owned(), value.to_owned()),
            None => Ok(()),
        };
        put(&mut limit, "price", "price")?;
        put(&mut limit, "limitClientOrderId", "newClientOrderId")?;
        put(&mut limit, "limitIcebergQty", "icebergQty")?;
        put(&mut stop, "stopPrice", "stopPrice")?;
        put(&mut stop, "stopLimitPrice", "price")?;
        put(&mut stop, "stopLimitTimeInForce", "timeInForce")?;
        put(&mut stop, "stopClientOrderId", "newClientOrderId")?;
        put(&mut stop, "stopIcebergQty", "icebergQty")?;
        put(&mut stop, "trailingDelta", "trailingDelta")?;
        limit.add("type".to_owned(), "LIMIT_MAKER".to_owned())?;
        let kind = if params.has("stopLimitPrice") { "STOP_LOSS_LIMIT" } else { "STOP_LOSS" };
        stop.add("type".to_owned(), kind.to_owned())?;
        Self::of_legs(names, params, [limit, stop])
    }

    fn of_legs(names: &Names, params: &Params, legs: [Params; 2]) -> Result<Self, Error> {
        let name = params.client_order_id("listClientOrderId")?.unwrap_or_else(client_ids::fresh);
        params.text("newOrderRespType")?;
        let [one, other] = [Wanted::read(names, &legs[0])?, Wanted::read(names, &legs[1])?];
        // The one that stands alone for a moment is the one that protects.
        let is_profit =
            |wanted: &Wanted| matches!(wanted.terms.order_type, OrderType::TakeProfit { .. } | OrderType::TakeProfitLimit { .. });
        let is_stop = |wanted: &Wanted| wanted.terms.order_type.waits() && !is_profit(wanted);
        let waits = |wanted: &Wanted| wanted.terms.order_type.waits();
        let legs = match is_stop(&other) || (waits(&other) && !is_stop(&one)) {
            true => [other, one],
            false => [one, other],
        };
        Ok(Self { name, legs })
    }

    /// Places both, or neither, also where nobody waits for the answer any more.
    pub(crate) async fn place(self, app: &App, account: AccountId, signed: SignedBy) -> Result<Value, Error> {
        let own = app.clone();
        app.run_whole(account, async move { self.place_each(&own, account, signed).await }).await
    }

    async fn place_each(self, app: &App, account: AccountId, signed: SignedBy) -> Result<Value, Error> {
        let Self { name, legs: [first, second] } = self;
        let (symbol, instrument, called) = (first.symbol.clone(), first.scale.spec.instrument, first.called);
        let one = first.place(app, account, signed).await?;
        let other = match second.linked_with(called).place(app, account, SignedBy::NOBODY).await {
            Ok(answer) => answer,
            Err(error) => {
                let cancel = CancelOrder { account, instrument, client_order_id: called.id };
                // One that is gone already traded or triggered: then it is in the account's past.
                let _ = app.venue.command_by(SignedBy::NOBODY, Command::Order(OrderCommand::Cancel(cancel))).await;
                return Err(error);
            }
        };
        let ids = [&one, &other].map(|answer| OrderId(answer["orderId"].as_u64().unwrap_or(0)));
        let id = report::list_id(ids[0], ids[1]);
        let mut reports = [one, other];
        reports.iter_mut().for_each(|answer| answer["orderListId"] = id.into());
        let time = reports[1]["transactTime"].clone();
        let mut list = described(id, "OCO", &name.to_string(), &symbol, time, &reports);
        list["orderReports"] = reports.to_vec().into();
        Ok(list)
    }
}

/// What both legs have.
fn common(params: &Params) -> Result<Params, Error> {
    let mut leg = Params::default();
    for name in ["symbol", "side", "quantity", "selfTradePreventionMode"] {
        if let Some(value) = params.text(name)? {
            leg.add(name.to_owned(), value.to_owned())?;
        }
    }
    leg.add("newOrderRespType".to_owned(), "RESULT".to_owned())?;
    Ok(leg)
}

fn leg(params: &Params, prefix: &str) -> Result<Params, Error> {
    let mut leg = common(params)?;
    params.required(&format!("{prefix}Type"))?;
    for (suffix, name) in OF_A_LEG {
        if let Some(value) = params.text(&format!("{prefix}{suffix}"))? {
            leg.add(name.to_owned(), value.to_owned())?;
        }
    }
    Ok(leg)
}

pub(crate) fn described(id: u64, contingency: &str, name: &str, symbol: &str, time: Value, orders: &[Value]) -> Value {
    let brief = |order: &Value| json!({"symbol": symbol, "orderId": order["orderId"], "clientOrderId": order["clientOrderId"]});
    json!({
        "orderListId": id,
        "contingencyType": contingency,
        "listStatusType": "EXEC_STARTED",
        "listOrderStatus": "EXECUTING",
        "listClientOrderId": name,
        "transactionTime": time,
        "symbol": symbol,
        "orders": orders.iter().map(brief).collect::<Vec<_>>(),
    })
}

/// The open lists of an account: each with its instrument and its two orders, the earlier one first.
async fn open_pairs(app: &App, account: AccountId) -> Result<Vec<(InstrumentId, [report::Order; 2])>, Error> {
    let open = orders::open_orders(app, account, None).await?;
    let by_id: BTreeMap<OrderId, &report::Order> = open.iter().map(|(_, order)| (order.order_id, order)).collect();
    let pair = |(instrument, later): &(InstrumentId, report::Order)| {
        let earlier = by_id.get(&later.linked.filter(|other| *other < later.order_id)?)?;
        Some((*instrument, [(*earlier).clone(), later.clone()]))
    };
    Ok(open.iter().filter_map(pair).collect())
}

fn described_pair(names: &Names, (instrument, pair): &(InstrumentId, [report::Order; 2])) -> Option<Value> {
    let (symbol, scale) = (names.name(*instrument)?, names.catalog().instrument(*instrument)?);
    let reports = pair.each_ref().map(|order| report::order(order, symbol, scale));
    let id = report::list_id(pair[0].order_id, pair[1].order_id);
    // The list's own name is not kept: it goes by its number.
    Some(described(id, "OCO", &id.to_string(), symbol, reports[1]["time"].clone(), &reports))
}

/// `openOrderList`.
pub(crate) async fn open_lists(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    params.finish()?;
    let names = app.names();
    let pairs = open_pairs(app, account).await?;
    Ok(pairs.iter().filter_map(|pair| described_pair(&names, pair)).collect::<Vec<_>>().into())
}

/// `allOrderList`: the open lists by their numbers. The venue keeps none of which an order has ended.
pub(crate) async fn all_lists(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    let (from, limit) = (params.number("fromId")?, params.limit(500, ORDERS_MAX)?);
    let (start_ms, end_ms) = past::span(params)?;
    params.finish()?;
    if from.is_some() && (start_ms.is_some() || end_ms.is_some()) {
        return Err(Error::combination());
    }
    let names = app.names();
    let mut lists = BTreeMap::new();
    for pair in open_pairs(app, account).await? {
        let [earlier, later] = &pair.1;
        let (id, at_ms) = (report::list_id(earlier.order_id, later.order_id), later.entered.map_or(0, ms));
        let is_in = from.is_none_or(|from| id >= from)
            && start_ms.is_none_or(|start| at_ms >= start)
            && end_ms.is_none_or(|end| at_ms <= end);
        if let Some(list) = described_pair(&names, &pair).filter(|_| is_in) {
            lists.insert(id, list);
        }
    }
    Ok(past::cut(lists.into_values().collect(), limit, from.is_some() || start_ms.is_some()).into())
}

/// `orderList`: an open list by its number.
pub(crate) async fn query(app: &App, params: &Params, account: AccountId) -> Result<Value, Error> {
    let id = params.number("orderListId")?.ok_or_else(|| Error::missing("orderListId"))?;
    params.finish()?;
    let names = app.names();
    let pairs = open_pairs(app, account).await?;
    let found = pairs.iter().find(|(_, [one, other])| report::list_id(one.order_id, other.order_id) == id);
    found.and_then(|pair| described_pair(&names, pair)).ok_or_else(|| Error::new(-2018, "Order list does not exist."))
}

/// Cancels an open list by its number, in one command: what is linked goes together.
pub(crate) async fn cancel(app: &App, params: &Params, account: AccountId, signed: SignedBy) -> Result<Value, Error> {
    let names = app.names();
    let (symbol, scale) = instrument(&names, params)?;
    let id = params.number("orderListId")?.ok_or_else(|| Error::missing("orderListId"))?;
    let name = params.client_order_id("newClientOrderId")?.unwrap_or_else(client_ids::fresh).to_string();
    params.finish()?;
    cancel_pair(app, account, (&symbol, scale), id, &name, signed).await
}

async fn cancel_pair(
    app: &App,
    account: AccountId,
    (symbol, scale): (&str, &InstrumentScale),
    id: u64,
    name: &str,
    signed: SignedBy,
) -> Result<Value, Error> {
    app.venue.catalog_for_commands()?;
    let instrument = scale.spec.instrument;
    let unknown = || Error::of(Asked::Cancel, RejectReason::UnknownOrder);
    let found = app
        .venue
        .read(move |v| {
            let later = walras_ports::open_order(v, account, instrument, OrderKey::Venue(OrderId(id)))?;
            let earlier = walras_ports::open_order(
                v,
                account,
                instrument,
                OrderKey::Venue(later.order.linked.filter(|other| other.0 < id)?),
            )?;
            Some([earlier, later])
        })
        .await?;
    let mut pair = found.ok_or_else(unknown)?.each_ref().map(report::Order::listed);
    let command = CancelOrder { account, instrument, client_order_id: pair[1].called.id };
    let outcome = app.venue.command_by(signed, Command::Order(OrderCommand::Cancel(command))).await;
    let outcome = outcome.map_err(|why| crate::error::without_outcome(Asked::Cancel, why))?;
    if let Some(reason) = outcome.rejected() {
        return Err(Error::of(Asked::Cancel, reason));
    }
    let reports = pair.each_mut().map(|order| {
        orders::close(order, &outcome);
        order.status = report::Status::Canceled;
        let mut said = report::cancelled(outcome.time, order, symbol, scale, name);
        said["orderListId"] = id.into();
        said
    });
    let mut list = described(id, "OCO", &id.to_string(), symbol, ms(outcome.time).into(), &reports);
    for (order, said) in pair.iter().zip(list["orders"].as_array_mut().into_iter().flatten()) {
        said["clientOrderId"] = order.called.to_string().into();
    }
    (list["listStatusType"], list["listOrderStatus"]) = ("ALL_DONE".into(), "ALL_DONE".into());
    list["orderReports"] = reports.to_vec().into();
    Ok(list)
}
