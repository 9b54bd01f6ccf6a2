//! What a participant may do.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use walras_access::Refusal;
use walras_gateway::{Allowance, Permission};
use walras_types::{AccountId, ClientOrderId, Ordinal};
use walras_wire::{CancelAfter, Command, OrderCommand};

use super::carry::{CameOf, Sent, send, signed_at};
use super::market::{Asked, query};
use super::signed::{Signed, Trader};
use super::{Answer, App, ok, status_of};
use crate::json::commands::{Many, One};
use crate::json::once::{MassCancelQuery, NumberRequest, name_of};
use crate::json::outcome::Subject;
use crate::json::requests::{AmendRequest, CancelRequest, OrderRequest, parse};
use crate::json::strict;

/// A name for an order that its owner did not name: random, so that it collides with no open one.
pub(crate) fn fresh_client_order_id() -> ClientOrderId {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    ClientOrderId(u64::from_le_bytes(bytes))
}

/// The same, or the one that follows from the command's number.
pub(crate) fn fresh_or_numbered(ordinal: Option<Ordinal>) -> ClientOrderId {
    ordinal.map_or_else(fresh_client_order_id, name_of)
}

/// Carries a command out, and answers.
async fn one(
    app: &App,
    (Trader { account, signed }, ordinal): (Trader, Option<Ordinal>),
    (command, subject): (Command, Option<Subject>),
) -> Answer {
    match send(app, account, signed, ordinal, (command, subject)).came_of(app).await {
        CameOf::Done(answer) => Ok(ok(&answer)),
        CameOf::Rejected(reason, body) => {
            Ok((status_of(reason), [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response())
        }
        CameOf::Refused(why) => Err(why),
    }
}

/// With a session, the command's number.
type Numbered = Asked<NumberRequest>;

pub(super) async fn enter(State(app): State<App>, asked: Numbered, signed: Signed) -> Answer {
    let (by, caller) = signed.trader_of_many()?;
    let ordinal = query(asked)?.ordinal()?;
    let request: OrderRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    if request.has_exits() && ordinal.is_none() {
        let commands = request.bracket(by.account, &catalog, fresh_client_order_id)?;
        return Ok(ok(&super::enter_bracket(&app, &caller, (by.account, by.signed), commands, ()).await?));
    }
    let (command, subject) = request.command(by.account, &catalog, || fresh_or_numbered(ordinal))?;
    one(&app, (by, ordinal), (command, Some(subject))).await
}

pub(super) async fn cancel(State(app): State<App>, Path(of): Path<(String, String)>, asked: Numbered, signed: Signed) -> Answer {
    let by = signed.canceller()?;
    let ordinal = query(asked)?.ordinal()?;
    let request = CancelRequest { instrument: of.0, client_order_id: of.1 };
    let catalog = app.venue.catalog_for_commands()?;
    let (command, subject) = request.command(by.account, &catalog)?;
    one(&app, (by, ordinal), (command, Some(subject))).await
}

pub(super) async fn amend(State(app): State<App>, Path(of): Path<(String, String)>, asked: Numbered, signed: Signed) -> Answer {
    let by = signed.trader()?;
    let ordinal = query(asked)?.ordinal()?;
    let of = CancelRequest { instrument: of.0, client_order_id: of.1 };
    let request: AmendRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let (command, subject) = request.command(&of, by.account, &catalog)?;
    one(&app, (by, ordinal), (command, Some(subject))).await
}

pub(super) async fn mass_cancel(State(app): State<App>, asked: Asked<MassCancelQuery>, signed: Signed) -> Answer {
    let by = signed.canceller()?;
    let catalog = app.venue.catalog_for_commands()?;
    let (request, number) = query(asked)?.parts();
    let (command, ordinal) = (request.command(by.account, &catalog)?, number.ordinal()?);
    one(&app, (by, ordinal), (command, None)).await
}

/// `POST /v1/orders/batch`: each command by itself, in their order, under one signature. Where an order has exits, what follows it
/// waits for it.
pub(super) async fn many(State(app): State<App>, asked: Numbered, signed: Signed) -> Answer {
    let (Trader { account, signed: by }, caller) = signed.trader_of_many()?;
    let number = query(asked)?;
    let many = Many::read(strict::object(&signed.body)?)?;
    let is_whole = many.has_exits() && number.ordinal()?.is_none();
    let all = many.numbered(&number)?;
    // Only who leads takes them.
    app.venue.catalog_for_commands()?;
    if is_whole {
        let all = all.map(|(_, one)| one).collect();
        return Ok(ok(&json!({"results": super::carry_out_many(&app, &caller, (account, by), all, ()).await?})));
    }
    let mut sent = Vec::new();
    for (place, (ordinal, one)) in (0..).zip(all) {
        // The request itself paid for the first.
        let charge = |from| if place == 0 { Ok(()) } else { app.access.charge(&caller, Permission::Trade, from) };
        sent.push(send_one(&app, account, ordinal, &one, charge, || signed_at(&by, place)));
    }
    Ok(ok(&json!({"results": results(&app, sent).await})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelAfterRequest {
    timeout_ms: u64,
}

/// Longest time of a dead man's switch: a day.
const TIMEOUT_MS_MAX: u64 = 86_400_000;

/// When the account's orders are cancelled.
async fn switch(app: &App, account: AccountId) -> Answer {
    let due = app.venue.read(move |v| v.engine.cancels_at(account)).await?;
    Ok(ok(&json!({"cancels_at_ns": due.map(|due| due.0.to_string())})))
}

/// `POST /v1/cancel-after`: sets the dead man's switch, or switches it off.
pub(super) async fn cancel_after(State(app): State<App>, asked: Numbered, signed: Signed) -> Answer {
    let by = signed.canceller()?;
    let (account, ordinal) = (by.account, query(asked)?.ordinal()?);
    let CancelAfterRequest { timeout_ms } = parse(&signed.body)?;
    if timeout_ms > TIMEOUT_MS_MAX {
        return Err(Refusal::malformed(format!("timeout_ms: at most {TIMEOUT_MS_MAX}, a day; 0 switches it off")).into());
    }
    app.venue.catalog_for_commands()?;
    let command = Command::Order(OrderCommand::CancelAfter(CancelAfter { account, timeout_ms }));
    match send(&app, account, by.signed, ordinal, (command, None)).came_of(&app).await {
        CameOf::Done(_) => switch(&app, account).await,
        CameOf::Rejected(reason, body) => {
            Ok((status_of(reason), [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response())
        }
        CameOf::Refused(why) => Err(why),
    }
}

/// `GET /v1/cancel-after`.
pub(super) async fn cancel_time(State(app): State<App>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    switch(&app, account).await
}

/// One of several commands that was not sent.
pub(crate) struct NotSent {
    refusal: Refusal,
    /// What was sent in its place, which takes its number.
    takes_number: Option<Sent>,
}

impl NotSent {
    fn without_number(refusal: Refusal) -> Box<Self> {
        Box::new(Self { refusal, takes_number: None })
    }
}

/// Queues one of several commands, unless it cannot be read or its key has no allowance left. Where it has a number, what cannot be read
/// takes it all the same, so that those after it keep theirs.
pub(crate) fn send_one(
    app: &App,
    account: AccountId,
    ordinal: Option<Ordinal>,
    one: &One,
    charge: impl FnOnce(Allowance) -> Result<(), Refusal>,
    signed: impl FnOnce() -> walras_sequencer::SignedBy,
) -> Result<Sent, Box<NotSent>> {
    let is_cancel = one.asked.as_ref().is_ok_and(crate::json::commands::CommandRequest::is_cancel);
    // It keeps its number: the same may be sent under it later. What follows it in the session is refused for the gap.
    charge(if is_cancel { Allowance::Cancels } else { Allowance::Requests }).map_err(NotSent::without_number)?;
    let command = one.asked.clone().and_then(|asked| {
        let catalog = app.venue.catalog_for_commands()?;
        asked.command(account, &catalog, || fresh_or_numbered(ordinal))
    });
    match (command, ordinal) {
        (Ok(command), None) => Ok(send(app, account, signed(), None, command)),
        (Ok(command), Some(_)) => Ok(send(app, account, walras_sequencer::SignedBy::NOBODY, ordinal, command)),
        (Err(refusal), None) => Err(NotSent::without_number(refusal)),
        (Err(refusal), Some(_)) => {
            let invalid = one.invalid(account, refusal.reason);
            let takes_number = send(app, account, walras_sequencer::SignedBy::NOBODY, ordinal, (invalid, None));
            Err(Box::new(NotSent { refusal, takes_number: Some(takes_number) }))
        }
    }
}

/// What came of several commands, in their order.
pub(crate) async fn results(app: &App, sent: Vec<Result<Sent, Box<NotSent>>>) -> Vec<Value> {
    let mut results = Vec::with_capacity(sent.len());
    for sent in sent {
        results.push(match sent.map_err(|not_sent| *not_sent) {
            Ok(sent) => sent.came_of(app).await.of_many(),
            Err(NotSent { refusal, takes_number: None }) => CameOf::Refused(refusal.into()).of_many(),
            Err(NotSent { refusal, takes_number: Some(takes_number) }) => {
                let mut result = takes_number.came_of(app).await.of_many();
                // The log has the reason alone.
                if result.get("log_index").is_some() {
                    result["error"]["detail"] = refusal.detail.map_or(Value::Null, Value::from);
                    if let Value::Object(error) = &mut result["error"] {
                        drop_null(error, "detail");
                    }
                }
                result
            }
        });
    }
    results
}

fn drop_null(object: &mut Map<String, Value>, name: &str) {
    if object.get(name).is_some_and(Value::is_null) {
        object.remove(name);
    }
}
