//! What became of an account's orders: one order, those that ended, fills, and numbered reports. From the venue's memory, and where that
//! ends from its archive.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_archive::{AccountCursor, AccountQuery, ForwardQuery, RecordKind, RecordPlace};
use walras_gateway::ClientOrder;
use walras_gateway::session::Resend;
use walras_market_data::{AccountRecord, RecordId, Recorded};
use walras_ports::{ForwardRecords, KnownOrder, OrderKey, OrderWait, RecordFilter, RecordsPage, View, known_order};
use walras_types::{AccountId, ClientOrderName, LogIndex, OrderId, RejectReason, TimeNs, TradeId};
use walras_wire::order_entry::{ReportEvent, decode_report_event};
use walras_wire::{Event, OrderEvent};

use super::account::cursor;
use super::market::{Asked, at_most, of_path, query};
use super::signed::Signed;
use super::{Answer, ApiError, App, ok};
use crate::json::reports::{self, ReadReport, ReadReports};
use crate::json::requests::{client_order, instrument, number};
use crate::json::views;

/// Records in one answer.
const RECORDS_MAX: usize = 1_000;
/// Reports in one answer, and in one visit to the state.
const REPORTS_MAX: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordsOf {
    instrument: Option<String>,
    order_id: Option<String>,
    client_order_id: Option<String>,
    since: Option<String>,
    until: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// What is asked for, newest first or oldest first.
enum Listed {
    Backward(AccountQuery),
    /// With the trade that the fills are to come after.
    Forward(ForwardQuery, Option<TradeId>),
}

impl RecordsOf {
    fn parse(&self, app: &App, account: AccountId, kind: RecordKind) -> Result<(Listed, RecordFilter), ApiError> {
        let catalog = app.venue.catalog();
        let only = |symbol: &String| instrument(&catalog, symbol).map(|scale| scale.spec.instrument);
        let time = |name, text: &Option<String>, otherwise| match text {
            Some(text) => number(name, text).map(TimeNs),
            None => Ok(TimeNs(otherwise)),
        };
        let filter = RecordFilter {
            instrument: self.instrument.as_ref().map(only).transpose()?,
            order_id: self.order_id.as_ref().map(|text| number("order_id", text).map(OrderId)).transpose()?,
            client_order_id: self.client_order_id.as_ref().map(|text| client_order(text).map(|called| called.id)).transpose()?,
        };
        let (since, until) = (time("since", &self.since, 0)?, time("until", &self.until, u64::MAX)?);
        let limit = at_most("limit", self.limit, 100, RECORDS_MAX)?.max(1);
        let Some(after) = &self.after else {
            let before = cursor(self.cursor.as_deref())?.unwrap_or(AccountCursor::MAX);
            return Ok((Listed::Backward(AccountQuery { account, kind, since, until, before, limit }), filter));
        };
        let after = number("after", after)?;
        let (begin, trade) = match kind {
            RecordKind::Fill if filter.instrument.is_none() => {
                return Err(Refusal::malformed("after: each instrument numbers its own trades; give `instrument`, too").into());
            }
            RecordKind::Fill => (None, Some(TradeId(after))),
            RecordKind::Ended => {
                let id = RecordId { log_index: LogIndex(after), number: u32::MAX };
                (Some(RecordPlace { time: TimeNs(0), id }), None)
            }
        };
        let next: Option<RecordPlace> = cursor(self.cursor.as_deref())?;
        // A cursor of another list leads to nothing that is not after the number. Of two of one record, the cursor is further.
        let after = begin.into_iter().chain(next).max_by_key(|place| place.id);
        let asked = ForwardQuery { account, kind, since, until, after, before: RecordId::MAX, limit };
        Ok((Listed::Forward(asked, trade), filter))
    }

    /// The records, the next page's cursor, and whether none is beyond reach.
    async fn read(
        &self,
        app: &App,
        account: AccountId,
        kind: RecordKind,
    ) -> Result<(Vec<Recorded>, Option<String>, bool), ApiError> {
        match self.parse(app, account, kind)? {
            (Listed::Backward(asked), filter) => {
                let RecordsPage { records, next, complete } = app.venue.account_records(asked, filter).await?;
                Ok((records, next.map(|next| next.to_string()), complete))
            }
            (Listed::Forward(asked, trade), filter) => {
                let found = app.venue.account_records_forward(asked, filter, trade).await?;
                let ForwardRecords { records, next, complete } = found;
                Ok((records, next.map(|next| next.to_string()), complete))
            }
        }
    }
}

pub(super) async fn fills(State(app): State<App>, asked: Asked<RecordsOf>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let (records, next, complete) = query(asked)?.read(&app, account, RecordKind::Fill).await?;
    let fills = records.iter().filter_map(|recorded| match &recorded.record {
        AccountRecord::Fill(fill) => Some(fill),
        AccountRecord::Ended(_) => None,
    });
    let fills = views::fills(&app.venue.catalog(), fills);
    Ok(ok(&json!({"fills": fills, "next": next, "complete": complete})))
}

pub(super) async fn closed_orders(State(app): State<App>, asked: Asked<RecordsOf>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let (records, next, complete) = query(asked)?.read(&app, account, RecordKind::Ended).await?;
    let catalog = app.venue.catalog();
    let orders: Vec<Value> = records
        .iter()
        .filter_map(|recorded| match &recorded.record {
            AccountRecord::Ended(order) => {
                let mut body = views::ended_order(catalog.instrument(order.instrument)?, order);
                body["log_index"] = recorded.id.log_index.0.to_string().into();
                Some(body)
            }
            AccountRecord::Fill(_) => None,
        })
        .collect();
    Ok(ok(&json!({"orders": orders, "next": next, "complete": complete})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderBy {
    by: Option<String>,
}

/// `GET /v1/orders/{instrument}/{client_order_id}`: open or ended.
pub(super) async fn order(
    State(app): State<App>,
    Path((symbol, id)): Path<(String, String)>,
    asked: Asked<OrderBy>,
    signed: Signed,
) -> Answer {
    let account = signed.reader()?;
    let by = match query(asked)?.by.as_deref() {
        None | Some("client_order_id") => OrderKey::Client(client_order(&id)?.id),
        Some("order_id") => OrderKey::Venue(OrderId(number("order_id", &id)?)),
        Some(other) => {
            return Err(Refusal::malformed(format!("by: {other:?} is none of client_order_id, order_id")).into());
        }
    };
    let catalog = app.venue.catalog();
    let scale = *of_path(&catalog, &symbol)?;
    let instrument = scale.spec.instrument;
    let known = app.venue.read(move |v| {
        let order = known_order(v, account, instrument, by)?;
        let waits = v.waits.of(account, order.order_id());
        Some((order, waits))
    });
    match known.await? {
        Some((KnownOrder::Open(listed), waits)) => return Ok(ok(&with_waits(views::order_state(&scale, &listed), waits))),
        Some((KnownOrder::Ended(order), waits)) => return Ok(ok(&with_waits(views::ended_order(&scale, &order), waits))),
        None => {}
    }
    let (order_id, client_order_id) = match by {
        OrderKey::Client(id) => (None, Some(id)),
        OrderKey::Venue(id) => (Some(id), None),
    };
    let filter = RecordFilter { instrument: Some(instrument), order_id, client_order_id };
    let (since, until) = (TimeNs(0), TimeNs(u64::MAX));
    let asked = AccountQuery { account, kind: RecordKind::Ended, since, until, before: AccountCursor::MAX, limit: 1 };
    let RecordsPage { records, next, complete } = app.venue.account_records(asked, filter).await?;
    if let Some(Recorded { record: AccountRecord::Ended(order), .. }) = records.first() {
        return Ok(ok(&views::ended_order(&scale, order)));
    }
    let detail = match (next, complete) {
        (None, true) => format!("no order of this account in {} has that id", scale.spec.symbol),
        (None, false) => {
            "no open order has that id, and none of the last ones that ended; older ones are not kept, for the venue keeps \
            no archive"
                .to_owned()
        }
        (Some(_), _) => "no open order has that id, and none of the last ones that ended: page through GET /v1/orders/closed with \
            since and until for older ones"
            .to_owned(),
    };
    Err(Refusal::new(RejectReason::NotFound, detail).into())
}

fn with_waits(mut order: Value, waits: Option<OrderWait>) -> Value {
    if let Some(waits) = waits {
        order["waits"] = views::waits(&waits);
    }
    order
}

/// Reads an account's reports after a number, or from now on without one.
pub(crate) async fn read_reports(app: &App, account: AccountId, after: Option<u64>, max: usize) -> Result<ReadReports, Refusal> {
    let read = app.venue.read(move |v| reports_after(v, account, after, max.min(REPORTS_MAX))).await?;
    read.map_err(|first_kept| {
        let detail = format!(
            "after: the reports are kept from {first_kept} on; read GET /v1/orders, /v1/orders/closed and /v1/fills for what happened \
             before, and go on after {}",
            first_kept.saturating_sub(1)
        );
        Refusal::new(RejectReason::NotFound, detail)
    })
}

/// The reports; or the first number that is kept.
fn reports_after(view: &View<'_>, account: AccountId, after: Option<u64>, max: usize) -> Result<ReadReports, u64> {
    let last = view.reports.report_seq(account);
    let found = match view.reports.resend_named(account, after.unwrap_or(last)) {
        Resend::OlderThanKept { first_kept } => return Err(first_kept),
        Resend::Found(found) => found.take(max),
    };
    let mut ended: Option<BTreeMap<OrderId, ClientOrderName>> = None;
    let mut name_of = |order_id: OrderId| match view.histories.get(order_id) {
        Some(history) => history.about.filter(|about| about.account == account)?.name,
        None => {
            let named = || view.ended.newest_first(account).filter_map(|(_, order)| Some((order.order_id, order.name?))).collect();
            ended.get_or_insert_with(named).get(&order_id).copied()
        }
    };
    let reports = found
        .filter_map(|(report, name)| {
            let event = decode_report_event(report.event).ok()?;
            // Reports from before engine version 14 have no texts.
            let name = name.filter(|name| !is_replacement(&event, *name)).or_else(|| order_of(&event).and_then(&mut name_of));
            let waits = match &event {
                ReportEvent::Event(Event::Order(OrderEvent::Accepted(e))) => view.waits.of(account, e.order_id),
                ReportEvent::Event(_) | ReportEvent::Filled(_) => None,
            };
            Some(ReadReport { report_seq: report.report_seq, log_index: report.log_index, time: report.time, event, name, waits })
        })
        .collect();
    Ok(ReadReports { reports, last })
}

/// Whether a report has the text that a replacement by FIX gave the order, and not the one with which it entered.
fn is_replacement(event: &ReportEvent, name: ClientOrderName) -> bool {
    matches!(event, ReportEvent::Event(Event::Order(OrderEvent::Amended(e))) if ClientOrder::from(name).id != e.client_order_id)
}

fn order_of(event: &ReportEvent) -> Option<OrderId> {
    match event {
        ReportEvent::Filled(filled) => Some(filled.order_id),
        ReportEvent::Event(Event::Order(event)) => Some(match event {
            OrderEvent::Accepted(e) => e.order_id,
            OrderEvent::Amended(e) => e.order_id,
            OrderEvent::Cancelled(e) => e.order_id,
            OrderEvent::Reduced(e) => e.order_id,
            OrderEvent::Replenished(e) => e.order_id,
            OrderEvent::Triggered(e) => e.order_id,
            OrderEvent::Traded(_) => return None,
        }),
        ReportEvent::Event(_) => None,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportsOf {
    after: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn reports(State(app): State<App>, asked: Asked<ReportsOf>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let ReportsOf { after, limit } = query(asked)?;
    let after = after.map(|text| number("after", &text)).transpose()?;
    let limit = at_most("limit", limit, 100, REPORTS_MAX)?;
    let read = read_reports(&app, account, after, limit).await?;
    Ok(ok(&reports::reports(&app.venue.catalog(), &read)))
}

#[cfg(test)]
mod tests {
    use walras_types::{ClientOrderId, InstrumentId, Side, SizeLots};
    use walras_wire::{OrderAmended, Priority, Resting};

    use super::*;

    /// FIX calls a replaced order otherwise: here it has the text with which it entered, whatever its report came with.
    #[test]
    fn a_replacement_does_not_rename_an_order_here() {
        let [first, second] = ["bid-7", "bid-8"].map(|text| ClientOrderName::new(text).unwrap());
        let digits = ClientOrderName::of_replacement(b"77").unwrap();
        let amended = |client_order_id| {
            ReportEvent::Event(Event::Order(OrderEvent::Amended(OrderAmended {
                instrument: InstrumentId(0),
                account: AccountId(0),
                client_order_id,
                order_id: OrderId(7),
                side: Side::Buy,
                price: None,
                priority: Priority::Kept,
                resting: Resting { open: SizeLots::new(5), shown: SizeLots::new(5) },
            })))
        };
        let of_text = amended(ClientOrder::from(first).id);
        assert_eq!([first, second, digits].map(|name| is_replacement(&of_text, name)), [false, true, true]);
        assert!(is_replacement(&amended(ClientOrderId(5)), second), "of an order that entered by a number");
    }
}
