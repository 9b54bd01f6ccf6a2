//! `userDataStream`: listen keys, which open an account's stream.
//!
//! The dialect asks for no signature here, only for the name of a key. What follows is private, and a key's name is no secret: so only
//! keys with names that nobody guesses are taken without a signature (`docs/binance.md`).

use axum::extract::State;
use serde_json::{Value, json};
use walras_gateway::{Algorithm, KeyId, Permission};
use walras_types::AccountId;

use super::answer::{Answer, ok};
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use crate::params::Params;

/// The account of a request, and its API key.
fn owner(app: &App, call: &Call) -> Result<(AccountId, String), Error> {
    let api_key = call.key()?.to_owned();
    let account = if call.is_signed() { call.reader()?.account } else { unsigned_owner(app, &api_key)? };
    Ok((account, api_key))
}

/// The account of an API key that is taken without a signature.
fn unsigned_owner(app: &App, api_key: &str) -> Result<AccountId, Error> {
    let (algorithm, account, permissions) = app.access.key(api_key).ok_or_else(Error::key)?;
    // The venue draws the names of these; a holder chooses those of the others.
    let is_drawn = algorithm == Algorithm::HmacSha256 && api_key.len() == Algorithm::HmacSha256.prefix().len() + 24;
    let account = account.filter(|_| is_drawn && app.config.binance.listen_keys && permissions.allow(Permission::Read));
    account.ok_or_else(Error::key)
}

pub(super) async fn open(State(app): State<App>, call: Call) -> Answer {
    let (account, api_key) = owner(&app, &call)?;
    Ok(ok(&opened(&app, &call.params, account, &api_key)?))
}

fn opened(app: &App, params: &Params, account: AccountId, api_key: &str) -> Result<Value, Error> {
    params.finish()?;
    let listen_key = app.listen_keys().open(app.now_ms(), account, api_key);
    let listen_key =
        listen_key.ok_or_else(|| Error::new(-1008, "There are too many listen keys: close one, or try again later."))?;
    Ok(json!({"listenKey": listen_key}))
}

fn unknown() -> Error {
    Error::new(-1125, "This listenKey does not exist.")
}

pub(super) async fn keep(State(app): State<App>, call: Call) -> Answer {
    let (_, api_key) = owner(&app, &call)?;
    Ok(ok(&kept(&app, &call.params, &api_key)?))
}

fn kept(app: &App, params: &Params, api_key: &str) -> Result<Value, Error> {
    let listen_key = params.required("listenKey")?;
    params.finish()?;
    if app.listen_keys().keep(app.now_ms(), listen_key, api_key) { Ok(json!({})) } else { Err(unknown()) }
}

pub(super) async fn close(State(app): State<App>, call: Call) -> Answer {
    let (_, api_key) = owner(&app, &call)?;
    Ok(ok(&closed(&app, &call.params, &api_key)?))
}

fn closed(app: &App, params: &Params, api_key: &str) -> Result<Value, Error> {
    let listen_key = params.required("listenKey")?;
    params.finish()?;
    if app.listen_keys().close(listen_key, api_key) { Ok(json!({})) } else { Err(unknown()) }
}

/// The same over the WebSocket API, where the API key is a parameter: `start`, `ping` and `stop`.
pub(crate) fn over_socket(app: &App, method: &str, params: &Params) -> Result<Value, Error> {
    let api_key = params.required("apiKey")?;
    if KeyId::new(api_key).is_none() {
        return Err(Error::key_format());
    }
    let account = unsigned_owner(app, api_key)?;
    match method {
        "userDataStream.start" => opened(app, params, account, api_key),
        "userDataStream.ping" => kept(app, params, api_key),
        "userDataStream.stop" => closed(app, params, api_key),
        _ => Err(Error::unsupported()),
    }
}
