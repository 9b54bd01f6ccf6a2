//! `userDataStream`: listen keys, which open an account's stream.
//!
//! The dialect asks for no signature here, only for the name of a key. What follows is private, and a key's name is no secret: so only
//! keys with names that nobody guesses are taken without a signature (`docs/binance.md`).

use axum::extract::State;
use serde_json::json;
use walras_gateway::{Algorithm, Permission};
use walras_types::AccountId;

use super::answer::{Answer, ok};
use crate::app::App;
use crate::call::Call;
use crate::error::Error;

/// The account of a request, and its API key.
fn owner(app: &App, call: &Call) -> Result<(AccountId, String), Error> {
    let api_key = call.key()?.to_owned();
    if call.is_signed() {
        return Ok((call.reader()?.account, api_key));
    }
    let (algorithm, account, permissions) = app.access.key(&api_key).ok_or_else(Error::key)?;
    // The venue draws the names of these; a holder chooses those of the others.
    let is_drawn = algorithm == Algorithm::HmacSha256 && api_key.len() == Algorithm::HmacSha256.prefix().len() + 24;
    let account = account.filter(|_| is_drawn && app.config.binance.listen_keys && permissions.allow(Permission::Read));
    Ok((account.ok_or_else(Error::key)?, api_key))
}

pub(super) async fn open(State(app): State<App>, call: Call) -> Answer {
    let (account, api_key) = owner(&app, &call)?;
    call.params.finish()?;
    let listen_key = app.listen_keys().open(app.now_ms(), account, &api_key);
    let listen_key =
        listen_key.ok_or_else(|| Error::new(-1008, "There are too many listen keys: close one, or try again later."))?;
    Ok(ok(&json!({"listenKey": listen_key})))
}

fn unknown() -> Error {
    Error::new(-1125, "This listenKey does not exist.")
}

pub(super) async fn keep(State(app): State<App>, call: Call) -> Answer {
    let (_, api_key) = owner(&app, &call)?;
    let listen_key = call.params.required("listenKey")?;
    call.params.finish()?;
    if app.listen_keys().keep(app.now_ms(), listen_key, &api_key) { Ok(ok(&json!({}))) } else { Err(unknown()) }
}

pub(super) async fn close(State(app): State<App>, call: Call) -> Answer {
    let (_, api_key) = owner(&app, &call)?;
    let listen_key = call.params.required("listenKey")?;
    call.params.finish()?;
    if app.listen_keys().close(listen_key, &api_key) { Ok(ok(&json!({}))) } else { Err(unknown()) }
}
