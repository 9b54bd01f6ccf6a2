//! What became of an account's orders: one order, those that ended, fills, and numbered reports. From the venue's memory, and where that
//! ends from its archive.

use std::collections::BTreeMap;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_archive::{AccountCursor, AccountQuery, RecordKind};
use walras_gateway::session::Resend;
use walras_market_data::{AccountRecord, EndedOrder, RecordId, Recorded};
use walras_ports::{ListedOrder, View};
use walras_types::{AccountId, ClientOrderId, ClientOrderName, InstrumentId, LogIndex, OrderId, RejectReason, TimeNs};
use walras_wire::order_entry::{ReportEvent, decode_report_event};
use walras_wire::{Event, OrderEvent};

use super::account::cursor;
use super::history::ask;
use super::market::{at_most, of_path, query};
use super::signed::Signed;
use super::{Answer, ApiError, App, ok};
use crate::json::reports::{self, ReadReport, ReadReports};
use crate::json::requests::{client_order, instrument, number};
use crate::json::views;

/// Records in one answer.
const RECORDS_MAX: usize = 1_000;
/// Reports in one answer, and in one visit to the state.
const REPORTS_MAX: usize = 256;

/// Which of an account's records are asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Filter {
    instrument: Option<InstrumentId>,
    order_id: Option<OrderId>,
    client_order_id: Option<ClientOrderId>,
}

impl Filter {
    fn wants(&self, record: &AccountRecord) -> bool {
        let (instrument, order_id, client_order_id) = match record {
            AccountRecord::Fill(fill) => (fill.instrument, fill.order_id, fill.client_order_id),
            AccountRecord::Ended(order) => (order.instrument, order.order_id, order.client_order_id),
        };
        self.instrument.is_none_or(|only| only == instrument)
            && self.order_id.is_none_or(|only| only == order_id)
            && self.client_order_id.is_none_or(|only| only == client_order_id)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordsOf {
    instrument: Option<String>,
    order_id: Option<String>,
    client_order_id: Option<String>,
    since: Option<String>,
    until: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

impl RecordsOf {
    fn parse(&self, app: &App, account: AccountId, kind: RecordKind) -> Result<(AccountQuery, Filter), ApiError> {
        let catalog = app.venue.catalog();
        let only = |symbol: &String| instrument(&catalog, symbol).map(|scale| scale.spec.instrument);
        let time = |name, text: &Option<String>, otherwise| match text {
            Some(text) => number(name, text).map(TimeNs),
            None => Ok(TimeNs(otherwise)),
        };
        let filter = Filter {
            instrument: self.instrument.as_ref().map(only).transpose()?,
            order_id: self.order_id.as_ref().map(|text| number("order_id", text).map(OrderId)).transpose()?,
            client_order_id: self.client_order_id.as_ref().map(|text| client_order(text).map(|called| called.id)).transpose()?,
        };
        let asked = AccountQuery {
            account,
            kind,
            since: time("since", &self.since, 0)?,
            until: time("until", &self.until, u64::MAX)?,
            before: cursor(self.cursor.as_deref())?.unwrap_or(AccountCursor::MAX),
            limit: at_most("limit", self.limit, 100, RECORDS_MAX)?.max(1),
        };
        Ok((asked, filter))
    }
}

/// A page of records, newest first.
struct Page {
    records: Vec<Recorded>,
    next: Option<AccountCursor>,
    /// Whether nothing that the account ever had is beyond reach.
    complete: bool,
}

/// What the venue's memory has of a page.
struct Remembered {
    records: Vec<Recorded>,
    /// The oldest that it looked at.
    oldest: Option<RecordId>,
    /// There are more in memory.
    has_more: bool,
    /// Older ones are not asked for, or there are none.
    is_over: bool,
    is_whole: bool,
}

fn remembered(view: &View<'_>, asked: &AccountQuery, filter: &Filter) -> Remembered {
    let account = asked.account;
    let (fills, ended) = match asked.kind {
        RecordKind::Fill => (Some(view.fills.newest_first(account)), None),
        RecordKind::Ended => (None, Some(view.ended.newest_first(account))),
    };
    let fills = fills.into_iter().flatten().map(|(id, fill)| (*id, fill.time, AccountRecord::Fill(*fill)));
    let ended = ended.into_iter().flatten().map(|(id, order)| (*id, order.ended, AccountRecord::Ended(*order)));
    let is_whole = match asked.kind {
        RecordKind::Fill => view.fills.is_whole(account),
        RecordKind::Ended => view.ended.is_whole(account),
    };
    let mut found = Remembered { records: Vec::new(), oldest: None, has_more: false, is_over: is_whole, is_whole };
    for (id, time, record) in fills.chain(ended) {
        found.oldest = Some(id);
        if time < asked.since {
            found.is_over = true;
            break;
        }
        if id < asked.before.id && time < asked.until && filter.wants(&record) {
            if found.records.len() >= asked.limit {
                found.has_more = true;
                break;
            }
            found.records.push(Recorded { id, account, record });
        }
    }
    found
}

async fn page(app: &App, asked: AccountQuery, filter: Filter) -> Result<Page, ApiError> {
    let Remembered { mut records, oldest, has_more, is_over, is_whole } =
        app.venue.read(move |v| remembered(v, &asked, &filter)).await?;
    let last = |records: &[Recorded]| records.last().map(|last| AccountCursor { id: last.id, number: None });
    let archive = app.venue.archive();
    let complete = is_whole || archive.is_some();
    if has_more {
        return Ok(Page { next: last(&records), records, complete });
    }
    let Some(archive) = archive.filter(|_| !is_over) else { return Ok(Page { records, next: None, complete }) };
    if records.len() >= asked.limit {
        return Ok(Page { next: last(&records), records, complete });
    }
    // What is before the oldest that is in memory, or before the page's own place, if that is older.
    let before = match oldest {
        Some(oldest) if oldest < asked.before.id => AccountCursor { id: oldest, number: None },
        _ => asked.before,
    };
    let durable = archive.view().durable;
    if before.id < RecordId::MAX && durable < LogIndex(before.id.log_index.0.saturating_sub(1)) {
        let detail = "the archive is a moment behind what was asked for: ask again";
        return Err(Refusal::new(RejectReason::VenueNotReady, detail).into());
    }
    let rest = AccountQuery { before, limit: asked.limit - records.len(), ..asked };
    let found = ask(app, move |history| history.account_records(&rest, |record| filter.wants(record))).await?;
    records.extend(found.records);
    Ok(Page { records, next: found.next, complete })
}

pub(super) async fn fills(State(app): State<App>, asked: Result<Query<RecordsOf>, QueryRejection>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let (asked, filter) = query(asked)?.parse(&app, account, RecordKind::Fill)?;
    let Page { records, next, complete } = page(&app, asked, filter).await?;
    let fills = records.iter().filter_map(|recorded| match &recorded.record {
        AccountRecord::Fill(fill) => Some(fill),
        AccountRecord::Ended(_) => None,
    });
    let fills = views::fills(&app.venue.catalog(), fills);
    Ok(ok(&json!({"fills": fills, "next": next.map(|next| next.to_string()), "complete": complete})))
}

pub(super) async fn closed_orders(
    State(app): State<App>,
    asked: Result<Query<RecordsOf>, QueryRejection>,
    signed: Signed,
) -> Answer {
    let account = signed.reader()?;
    let (asked, filter) = query(asked)?.parse(&app, account, RecordKind::Ended)?;
    let Page { records, next, complete } = page(&app, asked, filter).await?;
    let catalog = app.venue.catalog();
    let orders: Vec<Value> = records
        .iter()
        .filter_map(|recorded| match &recorded.record {
            AccountRecord::Ended(order) => Some(views::ended_order(catalog.instrument(order.instrument)?, order)),
            AccountRecord::Fill(_) => None,
        })
        .collect();
    Ok(ok(&json!({"orders": orders, "next": next.map(|next| next.to_string()), "complete": complete})))
}

/// By which name an order is asked for.
#[derive(Clone, Copy)]
enum By {
    Client(ClientOrderId),
    Venue(OrderId),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderBy {
    by: Option<String>,
}

enum Found {
    Open(ListedOrder),
    Ended(EndedOrder),
}

fn state_of(view: &View<'_>, account: AccountId, instrument: InstrumentId, by: By) -> Option<Found> {
    let history = |order_id| view.histories.get(order_id).copied();
    let open = match by {
        By::Client(id) => view.engine.open_order(account, instrument, id),
        By::Venue(id) => {
            let about = history(id).and_then(|history| history.about);
            about
                .filter(|about| (about.account, about.instrument) == (account, instrument))
                .and_then(|about| view.engine.open_order(account, instrument, about.client_order_id))
                .filter(|order| order.order_id == id)
        }
    };
    if let Some(order) = open {
        return Some(Found::Open(ListedOrder { instrument, order, history: history(order.order_id) }));
    }
    let ended = match by {
        By::Client(id) => view.ended.by_client_order_id(account, instrument, id),
        By::Venue(id) => view.ended.by_order_id(account, instrument, id),
    };
    ended.copied().map(Found::Ended)
}

/// `GET /v1/orders/{instrument}/{client_order_id}`: open or ended.
pub(super) async fn order(
    State(app): State<App>,
    Path((symbol, id)): Path<(String, String)>,
    asked: Result<Query<OrderBy>, QueryRejection>,
    signed: Signed,
) -> Answer {
    let account = signed.reader()?;
    let by = match query(asked)?.by.as_deref() {
        None | Some("client_order_id") => By::Client(client_order(&id)?.id),
        Some("order_id") => By::Venue(OrderId(number("order_id", &id)?)),
        Some(other) => {
            return Err(Refusal::malformed(format!("by: {other:?} is none of client_order_id, order_id")).into());
        }
    };
    let catalog = app.venue.catalog();
    let scale = *of_path(&catalog, &symbol)?;
    let instrument = scale.spec.instrument;
    match app.venue.read(move |v| state_of(v, account, instrument, by)).await? {
        Some(Found::Open(listed)) => return Ok(ok(&views::order_state(&scale, &listed))),
        Some(Found::Ended(order)) => return Ok(ok(&views::ended_order(&scale, &order))),
        None => {}
    }
    let (order_id, client_order_id) = match by {
        By::Client(id) => (None, Some(id)),
        By::Venue(id) => (Some(id), None),
    };
    let filter = Filter { instrument: Some(instrument), order_id, client_order_id };
    let (since, until) = (TimeNs(0), TimeNs(u64::MAX));
    let asked = AccountQuery { account, kind: RecordKind::Ended, since, until, before: AccountCursor::MAX, limit: 1 };
    let Page { records, next, complete } = page(&app, asked, filter).await?;
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
    let found = match view.reports.resend(account, after.unwrap_or(last)) {
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
        .filter_map(|report| {
            let event = decode_report_event(report.event).ok()?;
            let name = order_of(&event).and_then(&mut name_of);
            Some(ReadReport { report_seq: report.report_seq, log_index: report.log_index, time: report.time, event, name })
        })
        .collect();
    Ok(ReadReports { reports, last })
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

pub(super) async fn reports(State(app): State<App>, asked: Result<Query<ReportsOf>, QueryRejection>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let ReportsOf { after, limit } = query(asked)?;
    let after = after.map(|text| number("after", &text)).transpose()?;
    let limit = at_most("limit", limit, 100, REPORTS_MAX)?;
    let read = read_reports(&app, account, after, limit).await?;
    Ok(ok(&reports::reports(&app.venue.catalog(), &read)))
}
