//! Orders with exits, over REST or over the WebSocket, by themselves or among several commands: the exits of each are entered first, and
//! where one of the three is refused nothing is left of it. It runs to its end, also where the client hangs up or has waited for too long.

use axum::http::StatusCode;
use serde_json::{Value, json};
use walras_access::{Caller, Refusal};
use walras_gateway::{Allowance, Permission};
use walras_sequencer::SignedBy;
use walras_types::AccountId;
use walras_wire::{CancelOrder, Command, OrderCommand};

use super::App;
use super::carry::{CameOf, Sent, send, signed_at};
use super::error::ApiError;
use super::orders::{fresh_client_order_id, results, send_one};
use crate::json::brackets::BracketCommands;
use crate::json::commands::One;
use crate::json::outcome::Subject;

/// Enters all of them, or none; the answer to the order itself, with what its exits are called. `held` is dropped once that has ended.
pub(crate) async fn enter_bracket<H: Send + 'static>(
    app: &App,
    caller: &Caller,
    (account, signed): (AccountId, SignedBy),
    commands: BracketCommands,
    held: H,
) -> Result<Value, ApiError> {
    // The request itself paid for the order.
    charge_exits(app, caller, &commands)?;
    let own = app.clone();
    let whole = async move {
        let answer = enter_each(&own, account, (&signed, 0), commands).await;
        drop(held);
        answer
    };
    app.venue.run_whole(Some(account), whole).await?
}

/// Carries out several commands without numbers, of which orders have exits: one after the other, so that they take effect in their order.
/// What came of each, in the same places. `held` is dropped once that has ended.
pub(crate) async fn carry_out_many<H: Send + 'static>(
    app: &App,
    caller: &Caller,
    (account, signed): (AccountId, SignedBy),
    all: Vec<One>,
    held: H,
) -> Result<Vec<Value>, ApiError> {
    let (own, caller) = (app.clone(), *caller);
    let whole = async move {
        let answers = carry_out_each(&own, &caller, (account, &signed), &all).await;
        drop(held);
        answers
    };
    Ok(app.venue.run_whole(Some(account), whole).await?)
}

async fn carry_out_each(app: &App, caller: &Caller, (account, signed): (AccountId, &SignedBy), all: &[One]) -> Vec<Value> {
    let (mut answers, mut sent) = (Vec::new(), Vec::new());
    // It follows from the request alone, not from what came of it: so the commands of a copy have the same nonces.
    let mut place: u16 = 0;
    for one in all {
        // The request itself paid for the first.
        let charge = |from| if place == 0 { Ok(()) } else { app.access.charge(caller, Permission::Trade, from) };
        match one.bracket() {
            None => sent.push(send_one(app, account, None, one, charge, || signed_at(signed, place))),
            Some(order) => {
                answers.extend(results(app, std::mem::take(&mut sent)).await);
                let commands = charge(Allowance::Requests).and_then(|()| {
                    let catalog = app.venue.catalog_for_commands()?;
                    let commands = order.bracket(account, &catalog, fresh_client_order_id)?;
                    charge_exits(app, caller, &commands)?;
                    Ok(commands)
                });
                let came_of = match commands {
                    Ok(commands) => match enter_each(app, account, (signed, place), commands).await {
                        Ok(answer) => CameOf::Done(answer),
                        Err(error) => CameOf::Refused(error),
                    },
                    Err(refusal) => CameOf::Refused(refusal.into()),
                };
                answers.push(came_of.of_many());
            }
        }
        place += one.command_count();
    }
    answers.extend(results(app, sent).await);
    answers
}

/// Counts each exit as the command that it is.
fn charge_exits(app: &App, caller: &Caller, commands: &BracketCommands) -> Result<(), Refusal> {
    for _ in &commands.exits {
        app.access.charge(caller, Permission::Trade, Allowance::Requests)?;
    }
    Ok(())
}

/// Enters the exits and then the order. `first` is the place of the first of them in the request.
async fn enter_each(
    app: &App,
    account: AccountId,
    (signed, first): (&SignedBy, u16),
    BracketCommands { exits, entry }: BracketCommands,
) -> Result<Value, ApiError> {
    let (mut entered, mut answers) = (Vec::new(), Vec::new());
    for (place, (what, command, subject)) in (first..).zip(exits) {
        let sent = send(app, account, signed_at(signed, place), None, (command, Some(subject)));
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
    let place = first + u16::try_from(entered.len()).expect("an order has two exits at most");
    let (command, subject) = entry;
    match done(app, send(app, account, signed_at(signed, place), None, (command, Some(subject)))).await {
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
