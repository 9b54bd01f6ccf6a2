//! What an account may see of itself.

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_ports::{OrderCursor, balances};
use walras_types::{AccountId, InstrumentId, RejectReason};

use super::market::{Asked, at_most, query};
use super::signed::Signed;
use super::{Answer, ApiError, App, ok, visits};
use crate::json::batches::hex;
use crate::json::{names, requests, views};

/// An account's status, balances and positions; `None` when there is no such account.
pub(super) async fn describe(app: &App, account: AccountId) -> Result<Option<Value>, ApiError> {
    let found = app
        .venue
        .read(move |v| {
            let status = v.engine.account_status(account)?;
            let next = v.engine.next_transaction(account);
            Some((status, balances(v.engine, account), v.engine.transaction_key(account), next))
        })
        .await?;
    let positions = visits::positions(app, account).await?;
    let catalog = app.venue.catalog();
    Ok(found.map(|(status, balances, key, next)| {
        json!({
            "account_id": account.0,
            "status": names::account_status(status),
            "balances": views::balances(&catalog, &balances),
            "positions": views::positions(&catalog, &positions),
            "transaction_key": key.map(|key| hex(&key.0)),
            "next_sequence": next.0.to_string(),
        })
    }))
}

pub(super) async fn account(State(app): State<App>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    match describe(&app, account).await? {
        Some(body) => Ok(ok(&body)),
        None => Err(walras_types::RejectReason::UnknownAccount.into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrdersOf {
    instrument: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Orders in one answer.
const ORDERS_MAX: usize = 1_000;

/// What a page was asked to begin with, if that is what a page before it said.
pub(super) fn cursor<C: std::str::FromStr>(text: Option<&str>) -> Result<Option<C>, Refusal> {
    let malformed = |_| Refusal::new(RejectReason::Malformed, "cursor: give what `next` of the page before said, as it is");
    text.map(|text| text.parse().map_err(malformed)).transpose()
}

pub(super) async fn orders(State(app): State<App>, asked: Asked<OrdersOf>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let catalog = app.venue.catalog();
    let OrdersOf { instrument, limit, cursor: from } = query(asked)?;
    let limit = at_most("limit", limit, ORDERS_MAX, ORDERS_MAX)?.max(1);
    let only = match instrument {
        Some(symbol) => Some(requests::instrument(&catalog, &symbol)?.spec.instrument),
        None => None,
    };
    let from = cursor(from.as_deref())?.unwrap_or(OrderCursor::begin(only.unwrap_or(InstrumentId(0))));
    if only.is_some_and(|only| only != from.instrument) {
        let detail = "cursor: it is of another instrument; ask for all pages with the same `instrument`";
        return Err(Refusal::new(RejectReason::Malformed, detail).into());
    }
    let (orders, next) = visits::orders(&app, account, only, from, limit).await?;
    // What was created meanwhile is in a later catalog.
    let orders = views::orders(&app.venue.catalog(), &orders);
    Ok(ok(&json!({"orders": orders, "next": next.map(|next| next.to_string())})))
}
