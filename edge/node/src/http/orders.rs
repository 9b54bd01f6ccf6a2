//! What a participant may do.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use serde_json::Value;
use walras_types::ClientOrderId;

use super::market::query;
use super::shards::with_address;
use super::signed::Signed;
use super::{Answer, ApiError, App, ok};
use crate::json::outcome::{self, Subject};
use crate::json::requests::{AmendRequest, CancelRequest, MassCancelRequest, OrderRequest, parse};

/// A name for an order that its owner did not name: random, so that it collides with no open one.
pub(crate) fn fresh_client_order_id() -> ClientOrderId {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    ClientOrderId(u64::from_le_bytes(bytes))
}

async fn one(app: &App, command: walras_wire::Command, subject: Subject) -> Result<Value, ApiError> {
    let outcome = app.venue.command(command).await?;
    let catalog = app.venue.catalog();
    let scale = catalog.instrument(subject.instrument).expect("it was found in an earlier catalog, and none are removed");
    match outcome::order(&outcome, &subject, scale) {
        Ok(answer) => Ok(answer),
        Err(reason) => Err(with_address(app, reason, subject.instrument).await),
    }
}

pub(super) async fn enter(State(app): State<App>, signed: Signed) -> Answer {
    let account = signed.trader()?;
    let request: OrderRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let (command, subject) = request.command(account, &catalog, fresh_client_order_id)?;
    Ok(ok(&one(&app, command, subject).await?))
}

pub(super) async fn cancel(State(app): State<App>, Path(of): Path<(String, String)>, signed: Signed) -> Answer {
    let account = signed.trader()?;
    let request = CancelRequest { instrument: of.0, client_order_id: of.1 };
    let catalog = app.venue.catalog_for_commands()?;
    let (command, subject) = request.command(account, &catalog)?;
    Ok(ok(&one(&app, command, subject).await?))
}

pub(super) async fn amend(State(app): State<App>, Path(of): Path<(String, String)>, signed: Signed) -> Answer {
    let account = signed.trader()?;
    let of = CancelRequest { instrument: of.0, client_order_id: of.1 };
    let request: AmendRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let (command, subject) = request.command(&of, account, &catalog)?;
    Ok(ok(&one(&app, command, subject).await?))
}

pub(super) async fn mass_cancel(
    State(app): State<App>,
    asked: Result<Query<MassCancelRequest>, QueryRejection>,
    signed: Signed,
) -> Answer {
    let account = signed.trader()?;
    let catalog = app.venue.catalog_for_commands()?;
    let command = query(asked)?.command(account, &catalog)?;
    let outcome = app.venue.command(command).await?;
    Ok(ok(&outcome::mass_cancel(&outcome, account, &app.venue.catalog())?))
}
