//! An order with exits, by `POST /v1/orders` or over the WebSocket: the exits are entered first, and where one of the three is refused
//! nothing is left. It runs to its end, also where the client hangs up or has waited for too long.

use axum::http::StatusCode;
use serde_json::{Value, json};
use walras_access::Caller;
use walras_gateway::{Allowance, Permission};
use walras_sequencer::SignedBy;
use walras_types::AccountId;
use walras_wire::{CancelOrder, Command, OrderCommand};

use super::App;
use super::carry::{CameOf, Sent, send, signed_at};
use super::error::ApiError;
use crate::json::brackets::BracketCommands;
use crate::json::outcome::Subject;

/// Enters all of them, or none; the answer to the order itself, with what its exits are called. `held` is dropped once that has ended.
pub(crate) async fn enter_bracket<H: Send + 'static>(
    app: &App,
    caller: &Caller,
    (account, signed): (AccountId, SignedBy),
    commands: BracketCommands,
    held: H,
) -> Result<Value, ApiError> {
    // The request itself paid for the first.
    for _ in &commands.exits {
        app.access.charge(caller, Permission::Trade, Allowance::Requests)?;
    }
    let own = app.clone();
    let whole = async move {
        let answer = enter_each(&own, (account, signed), commands).await;
        drop(held);
        answer
    };
    app.venue.run_whole(Some(account), whole).await?
}

async fn enter_each(
    app: &App,
    (account, signed): (AccountId, SignedBy),
    BracketCommands { exits, entry }: BracketCommands,
) -> Result<Value, ApiError> {
    let (mut entered, mut answers) = (Vec::new(), Vec::new());
    for (place, (what, command, subject)) in (0..).zip(exits) {
        let sent = send(app, account, signed_at(&signed, place), None, (command, Some(subject)));
        match done(app, sent).await {
            Ok(answer) => {
                entered.push(subject);
                answers.push((what, answer));
            }
            Err(error) => {
                take_out(app, account, entered, &error).await;
                return Err(named(what, error));
            }
        }
    }
    let place = u16::try_from(entered.len()).expect("an order has two exits at most");
    let (command, subject) = entry;
    match done(app, send(app, account, signed_at(&signed, place), None, (command, Some(subject)))).await {
        Ok(mut answer) => {
            for (what, exit) in answers {
                answer[what] = json!({"order_id": exit["order_id"], "client_order_id": exit["client_order_id"]});
            }
            Ok(answer)
        }
        Err(error) => {
            take_out(app, account, entered, &error).await;
            Err(error)
        }
    }
}

async fn done(app: &App, sent: Sent) -> Result<Value, ApiError> {
    match sent.came_of(app).await {
        CameOf::Done(answer) => Ok(answer),
        CameOf::Rejected(reason, _) => Err(reason.into()),
        CameOf::Refused(why) => Err(why),
    }
}

/// Says of which exit a refusal is.
fn named(what: &str, mut error: ApiError) -> ApiError {
    error.refusal.detail = Some(match error.refusal.detail.take() {
        Some(detail) => format!("{what}: {detail}"),
        None => what.to_owned(),
    });
    error
}

/// Cancels exits whose entry was refused. Where it may have been carried out they stay: they are what protects it.
async fn take_out(app: &App, account: AccountId, exits: Vec<Subject>, error: &ApiError) {
    if error.status == Some(StatusCode::SERVICE_UNAVAILABLE) {
        return;
    }
    for Subject { instrument, called, .. } in exits {
        let cancel = CancelOrder { account, instrument, client_order_id: called.id };
        // One that is gone was cancelled with the other.
        let sent = send(app, account, SignedBy::NOBODY, None, (Command::Order(OrderCommand::Cancel(cancel)), None));
        sent.came_of(app).await;
    }
}
