//! What an account may see of itself.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use walras_market_data::limits::FILLS_MAX;
use walras_ports::{balances, open_orders, positions};
use walras_types::AccountId;

use super::market::{at_most, query};
use super::signed::Signed;
use super::{Answer, ApiError, App, ok};
use crate::json::batches::hex;
use crate::json::{names, requests, views};

/// An account's status, balances and positions; `None` when there is no such account.
pub(super) async fn describe(app: &App, account: AccountId) -> Result<Option<Value>, ApiError> {
    let found = app
        .venue
        .read(move |v| {
            let status = v.engine.account_status(account)?;
            let next = v.engine.next_transaction(account);
            Some((status, balances(v.engine, account), positions(v.engine, account), v.engine.transaction_key(account), next))
        })
        .await?;
    let catalog = app.venue.catalog();
    Ok(found.map(|(status, balances, positions, key, next)| {
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
}

pub(super) async fn orders(State(app): State<App>, asked: Result<Query<OrdersOf>, QueryRejection>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let catalog = app.venue.catalog();
    let only = match query(asked)?.instrument {
        Some(symbol) => Some(requests::instrument(&catalog, &symbol)?.spec.instrument),
        None => None,
    };
    let orders = app.venue.read(move |v| open_orders(v.engine, account, only)).await?;
    Ok(ok(&json!({"orders": views::orders(&catalog, &orders)})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FillsOf {
    limit: Option<usize>,
}

pub(super) async fn fills(State(app): State<App>, asked: Result<Query<FillsOf>, QueryRejection>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let limit = at_most("limit", query(asked)?.limit, 100, FILLS_MAX)?;
    let fills = app.venue.read(move |v| v.fills.newest_first(account).take(limit).copied().collect::<Vec<_>>()).await?;
    Ok(ok(&json!({"fills": views::fills(&app.venue.catalog(), &fills)})))
}
