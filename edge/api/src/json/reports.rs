//! Numbered execution reports as JSON.

use serde_json::{Map, Value, json};
use walras_gateway::ClientOrder;
use walras_ports::{Catalog, InstrumentScale, OrderWait};
use walras_types::{ClientOrderId, ClientOrderName, InstrumentId, LogIndex, OrderId, SizeLots, TimeNs};
use walras_wire::order_entry::{Filled, ReportEvent, TradeRole};
use walras_wire::{AccountEvent, Event, OrderEvent, Rejected, Transferred};

use super::{names, views};

/// A report that was read.
pub(crate) struct ReadReport {
    pub(crate) report_seq: u64,
    pub(crate) log_index: LogIndex,
    pub(crate) time: TimeNs,
    pub(crate) event: ReportEvent,
    /// The text that the account calls the order by.
    pub(crate) name: Option<ClientOrderName>,
    /// Where the order waited that it accepts, where this replica knows.
    pub(crate) waits: Option<OrderWait>,
}

/// Reports after a number.
pub(crate) struct ReadReports {
    pub(crate) reports: Vec<ReadReport>,
    /// The number of the account's last one, which may be in a further answer.
    pub(crate) last: u64,
}

/// An answer, or a message of the channel: reports, oldest first.
pub(crate) fn reports(catalog: &Catalog, read: &ReadReports) -> Value {
    let reports: Vec<Value> = read.reports.iter().map(|one| report(catalog, one)).collect();
    json!({"reports": reports, "last": read.last.to_string()})
}

fn report(catalog: &Catalog, read: &ReadReport) -> Value {
    let (kind, fields) = match &read.event {
        ReportEvent::Filled(filled) => ("filled", fill(catalog, filled, read.name)),
        ReportEvent::Event(Event::Order(event)) => order(catalog, event, read.name),
        ReportEvent::Event(Event::Rejected(rejected)) => ("rejected", refusal(catalog, rejected, read.name)),
        ReportEvent::Event(Event::Account(AccountEvent::Deposited(moved))) => ("deposited", transfer(catalog, moved)),
        ReportEvent::Event(Event::Account(AccountEvent::Withdrawn(moved))) => ("withdrawn", transfer(catalog, moved)),
        ReportEvent::Event(_) => ("other", json!({})),
    };
    let mut report = json!({
        "report_seq": read.report_seq.to_string(),
        "log_index": read.log_index.0.to_string(),
        "time_ns": read.time.0.to_string(),
        "event": kind,
    });
    if let (Value::Object(report), Value::Object(fields)) = (&mut report, fields) {
        report.extend(fields);
    }
    if let Some(waits) = &read.waits {
        report["waits"] = views::waits(waits);
    }
    report
}

/// What names an order.
fn named(
    scale: Option<&InstrumentScale>,
    order_id: OrderId,
    client_order_id: Option<ClientOrderId>,
    name: Option<ClientOrderName>,
) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Some(scale) = scale {
        fields.insert("instrument".to_owned(), scale.spec.symbol.as_str().into());
    }
    fields.insert("order_id".to_owned(), order_id.0.to_string().into());
    if let Some(id) = client_order_id {
        fields.insert("client_order_id".to_owned(), ClientOrder::of(id, name).to_string().into());
    }
    fields
}

fn with(mut fields: Map<String, Value>, more: Value) -> Value {
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    fields.into()
}

fn size(scale: &InstrumentScale, lots: SizeLots) -> Value {
    if lots.is_zero() { "0".into() } else { scale.size(lots).into() }
}

fn fill(catalog: &Catalog, filled: &Filled, name: Option<ClientOrderName>) -> Value {
    let Some(scale) = catalog.instrument(filled.instrument) else { return json!({}) };
    let role = match filled.role {
        TradeRole::Maker => "maker",
        TradeRole::Taker => "taker",
        TradeRole::Auction => "auction",
    };
    let more = json!({
        "trade_id": filled.trade_id.0.to_string(),
        "side": names::side(filled.side),
        "price": scale.price(filled.price),
        "size": scale.size(filled.size),
        "open": size(scale, filled.open),
        "fee": scale.quote.signed(filled.fee),
        "fee_asset": scale.quote.spec.symbol.as_str(),
        "role": role,
    });
    with(named(Some(scale), filled.order_id, Some(filled.client_order_id), name), more)
}

fn order(catalog: &Catalog, event: &OrderEvent, name: Option<ClientOrderName>) -> (&'static str, Value) {
    let of = |instrument: InstrumentId| catalog.instrument(instrument);
    let about = |instrument, order_id, client_order_id, more: &dyn Fn(&InstrumentScale) -> Value| match of(instrument) {
        Some(scale) => with(named(Some(scale), order_id, client_order_id, name), more(scale)),
        None => named(None, order_id, client_order_id, name).into(),
    };
    match event {
        OrderEvent::Accepted(e) => (
            "accepted",
            about(e.instrument, e.order_id, Some(e.client_order_id), &|scale| {
                json!({
                    "side": names::side(e.side),
                    "size": scale.size(e.size),
                    "price": e.price.map(|price| scale.price(price)),
                    "open": size(scale, e.resting.open),
                    "shown": size(scale, e.resting.shown),
                })
            }),
        ),
        OrderEvent::Amended(e) => (
            "amended",
            about(e.instrument, e.order_id, Some(e.client_order_id), &|scale| {
                json!({
                    "side": names::side(e.side),
                    "price": e.price.map(|price| scale.price(price)),
                    "open": size(scale, e.resting.open),
                    "shown": size(scale, e.resting.shown),
                    "priority": names::priority(e.priority),
                })
            }),
        ),
        OrderEvent::Triggered(e) => (
            "triggered",
            about(e.instrument, e.order_id, Some(e.client_order_id), &|scale| {
                json!({
                    "side": names::side(e.side),
                    "price": scale.price(e.price),
                    "open": size(scale, e.resting.open),
                    "shown": size(scale, e.resting.shown),
                })
            }),
        ),
        OrderEvent::Cancelled(e) => (
            "cancelled",
            about(
                e.instrument,
                e.order_id,
                Some(e.client_order_id),
                &|scale| json!({"open": size(scale, e.open), "reason": names::cancel_reason(e.reason)}),
            ),
        ),
        OrderEvent::Reduced(e) => (
            "reduced",
            about(e.instrument, e.order_id, Some(e.client_order_id), &|scale| {
                json!({
                    "by": scale.size(e.by),
                    "open": size(scale, e.resting.open),
                    "shown": size(scale, e.resting.shown),
                })
            }),
        ),
        OrderEvent::Replenished(e) => {
            ("replenished", about(e.instrument, e.order_id, None, &|scale| json!({"shown": size(scale, e.shown)})))
        }
        OrderEvent::Traded(_) => ("other", json!({})),
    }
}

fn refusal(catalog: &Catalog, rejected: &Rejected, name: Option<ClientOrderName>) -> Value {
    let mut fields = json!({"error": views::error(rejected.reason, None)});
    if let Some(scale) = rejected.instrument.and_then(|id| catalog.instrument(id)) {
        fields["instrument"] = scale.spec.symbol.as_str().into();
    }
    if let Some(id) = rejected.client_order_id {
        fields["client_order_id"] = ClientOrder::of(id, name).to_string().into();
    }
    fields
}

fn transfer(catalog: &Catalog, moved: &Transferred) -> Value {
    match catalog.asset(moved.asset) {
        Some(asset) => json!({"asset": asset.spec.symbol.as_str(), "amount": asset.amount(moved.amount)}),
        None => json!({}),
    }
}
