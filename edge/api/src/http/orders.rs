//! What a participant may do.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_engine::Engine;
use walras_ports::{NoOutcome, NumberedOutcome, Outcome};
use walras_types::{ClientOrderId, Ordinal, RejectReason};
use walras_wire::Command;

use super::market::query;
use super::shards::with_address;
use super::signed::{Signed, Trader};
use super::{Answer, ApiError, App, bound_met, ok, status_of};
use crate::json::once::{MassCancelQuery, NumberRequest, name_of, with_number};
use crate::json::outcome::{self, Subject};
use crate::json::requests::{AmendRequest, CancelRequest, OrderRequest, parse};
use crate::json::views;

/// A name for an order that its owner did not name: random, so that it collides with no open one.
pub(crate) fn fresh_client_order_id() -> ClientOrderId {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    ClientOrderId(u64::from_le_bytes(bytes))
}

/// Carries a command out, under its number if it has one, else once by its nonce; `describe` makes the answer to what it did, `of` is the order that it is
/// about.
async fn carry_out(
    app: &App,
    (Trader { account, signed }, ordinal): (Trader, Option<Ordinal>),
    command: Command,
    of: Option<&Subject>,
    describe: impl FnOnce(&Outcome) -> Result<Value, RejectReason>,
) -> Answer {
    let Some(ordinal) = ordinal else {
        let outcome = app.venue.command_by(signed, command).await?;
        return match describe(&outcome) {
            Ok(answer) => Ok(ok(&answer)),
            Err(reason) => Err(refusal(app, reason, &command, of).await),
        };
    };
    let came = match app.venue.numbered(account, ordinal, command).await {
        Ok(came) => came,
        Err(why) => return Err(unknown(app, ordinal, why).await),
    };
    let kept = came.answer();
    if let Some(reason) = kept.rejected {
        // It used its number up: the answer says so, which a refusal that is not in the log does not.
        let refusal = refusal(app, reason, &command, of).await.refusal;
        let body = with_number(json!({"error": views::error(reason, refusal.detail.as_deref())}), ordinal, kept).to_string();
        return Ok((status_of(reason), [(header::CONTENT_TYPE, "application/json")], body).into_response());
    }
    let mut body = match &came {
        NumberedOutcome::Done(outcome) => describe(outcome)?,
        NumberedOutcome::Repeated(_) => json!({}),
    };
    body["repeated"] = matches!(came, NumberedOutcome::Repeated(_)).into();
    if let Some(of) = of {
        body["client_order_id"] = of.client_order_id.0.to_string().into();
    }
    Ok(ok(&with_number(body, ordinal, kept)))
}

async fn refusal(app: &App, reason: RejectReason, command: &Command, of: Option<&Subject>) -> ApiError {
    match (bound_met(app, reason, command).await, of) {
        (Some(bound), _) => Refusal::new(reason, bound).into(),
        (None, Some(of)) => with_address(app, reason, of.instrument).await,
        (None, None) => reason.into(),
    }
}

/// The answer to a numbered command whose outcome is unknown: the client can send it again.
async fn unknown(app: &App, ordinal: Ordinal, why: NoOutcome) -> ApiError {
    match why {
        NoOutcome::InDoubt(reason) => {
            ApiError::with_status(Refusal::new(reason, NoOutcome::IN_DOUBT_NUMBERED), StatusCode::SERVICE_UNAVAILABLE)
        }
        NoOutcome::Refused(reason) => match place_known(app, ordinal, reason).await {
            Some(detail) => Refusal::new(reason, detail).into(),
            None => why.into(),
        },
    }
}

/// What the session says of a number that is not its next one.
async fn place_known(app: &App, ordinal: Ordinal, reason: RejectReason) -> Option<String> {
    if !matches!(reason, RejectReason::SessionSeqGap | RejectReason::SessionSeqTooOld | RejectReason::SessionSeqReused) {
        return None;
    }
    let look = move |engine: &Engine| Some((engine.session(ordinal.session)?, engine.answer(ordinal)));
    let (session, answer) = app.venue.read(move |v| look(v.engine)).await.ok().flatten()?;
    Some(match answer {
        Some(answer) => {
            format!("log entry {} holds the command of this number; the next number is {}", answer.log_index, session.next)
        }
        None => format!("the next number is {}, and answers are kept from {} on", session.next, session.remembered_from),
    })
}

async fn one(app: &App, by: (Trader, Option<Ordinal>), command: Command, subject: Subject) -> Answer {
    let describe = |outcome: &Outcome| {
        let catalog = app.venue.catalog();
        let scale = catalog.instrument(subject.instrument).expect("it was found in an earlier catalog, and none are removed");
        outcome::order(outcome, &subject, scale)
    };
    carry_out(app, by, command, Some(&subject), describe).await
}

type Asked = Result<Query<NumberRequest>, QueryRejection>;

pub(super) async fn enter(State(app): State<App>, asked: Asked, signed: Signed) -> Answer {
    let by = signed.trader()?;
    let ordinal = query(asked)?.ordinal()?;
    let request: OrderRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let name = || ordinal.map_or_else(fresh_client_order_id, name_of);
    let (command, subject) = request.command(by.account, &catalog, name)?;
    one(&app, (by, ordinal), command, subject).await
}

pub(super) async fn cancel(State(app): State<App>, Path(of): Path<(String, String)>, asked: Asked, signed: Signed) -> Answer {
    let by = signed.canceller()?;
    let ordinal = query(asked)?.ordinal()?;
    let request = CancelRequest { instrument: of.0, client_order_id: of.1 };
    let catalog = app.venue.catalog_for_commands()?;
    let (command, subject) = request.command(by.account, &catalog)?;
    one(&app, (by, ordinal), command, subject).await
}

pub(super) async fn amend(State(app): State<App>, Path(of): Path<(String, String)>, asked: Asked, signed: Signed) -> Answer {
    let by = signed.trader()?;
    let ordinal = query(asked)?.ordinal()?;
    let of = CancelRequest { instrument: of.0, client_order_id: of.1 };
    let request: AmendRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let (command, subject) = request.command(&of, by.account, &catalog)?;
    one(&app, (by, ordinal), command, subject).await
}

pub(super) async fn mass_cancel(
    State(app): State<App>,
    asked: Result<Query<MassCancelQuery>, QueryRejection>,
    signed: Signed,
) -> Answer {
    let by = signed.canceller()?;
    let account = by.account;
    let catalog = app.venue.catalog_for_commands()?;
    let (request, number) = query(asked)?.parts();
    let (command, ordinal) = (request.command(account, &catalog)?, number.ordinal()?);
    let describe = |outcome: &Outcome| outcome::mass_cancel(outcome, account, &app.venue.catalog());
    carry_out(&app, (by, ordinal), command, None, describe).await
}
