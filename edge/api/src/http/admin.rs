//! What the operator may do.

use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use walras_access::{Grant, Refusal};
use walras_engine::Engine;
use walras_ports::View;
use walras_sequencer::SignedBy;
use walras_types::{AccountId, Amount, AssetId, InstrumentId, RejectReason, RiskLimits, TimeNs};
use walras_wire::{AccountCommand, AccountEvent, AccountStatus, Command, Event, VenueCommand};

use super::account::describe;
use super::market::{Asked, query};
use super::shards::check_place;
use super::signed::Signed;
use super::{Answer, ApiError, App, ok, visits};
use crate::json::requests::{
    AccountRequest, AccountStatusRequest, AssetRequest, FeesRequest, InstrumentRequest, LimitsRequest, PhaseRequest,
    TransferRequest, number, parse,
};
use crate::json::{names, outcome, views};

/// Has an operator's command logged with the key that gave it, and applied.
pub(super) async fn apply(app: &App, by: SignedBy, command: Command, extra: Value) -> Answer {
    Ok(ok(&outcome::operator(&app.venue.command_by(by, command).await?, extra)?))
}

/// The next free id of a kind. Two operators who ask at once get the same; the later command is rejected and tried again by its sender.
async fn next(app: &App, count: impl FnOnce(&Engine) -> usize + Send + 'static) -> Result<u32, ApiError> {
    let count = app.venue.read(move |v| count(v.engine)).await?;
    Ok(u32::try_from(count).map_err(|_| RejectReason::IdNotNext)?)
}

pub(super) async fn create_asset(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: AssetRequest = parse(&signed.body)?;
    let id = next(&app, |e| e.assets().len()).await?;
    apply(&app, by, request.command(AssetId(id))?, json!({"asset_id": id})).await
}

pub(super) async fn create_instrument(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: InstrumentRequest = parse(&signed.body)?;
    check_place(&app).await?;
    let id = next(&app, |e| e.instruments().count()).await?;
    let catalog = app.venue.catalog_for_commands()?;
    let command = request.command(InstrumentId(id), &catalog)?;
    apply(&app, by, command, json!({"instrument_id": id})).await
}

pub(super) async fn create_account(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let AccountRequest {} = if signed.body.is_empty() { AccountRequest {} } else { parse(&signed.body)? };
    let id = next(&app, |e| e.account_count() as usize).await?;
    apply(&app, by, Command::Account(AccountCommand::Create(AccountId(id))), json!({"account_id": id})).await
}

pub(super) async fn account(State(app): State<App>, Path(id): Path<String>, signed: Signed) -> Answer {
    signed.operator_key()?;
    let id =
        id.parse().map_err(|_| Refusal::new(RejectReason::Malformed, format!("account_id: {id:?} is no number below 2^32")))?;
    match describe(&app, AccountId(id)).await? {
        Some(mut body) => {
            let account = AccountId(id);
            let limits_in = move |v: &View<'_>, instrument| Some((instrument, v.engine.risk_limits(account, instrument)));
            let limits = visits::of_instruments(&app, limits_in).await?;
            let last = app.venue.read(move |v| v.engine.last_transfer(account)).await?;
            let catalog = app.venue.catalog();
            let of = |(instrument, limits): &(InstrumentId, Option<RiskLimits>)| {
                let scale = catalog.instrument(*instrument)?;
                Some(json!({"instrument": scale.spec.symbol.as_str(), "limits": views::limits(scale, limits.as_ref()?)}))
            };
            body["limits"] = limits.iter().filter_map(of).collect::<Vec<_>>().into();
            body["last_transfer_id"] = last.map(|id| id.0.to_string()).into();
            Ok(ok(&body))
        }
        None => Err(ApiError::with_status(RejectReason::UnknownAccount, axum::http::StatusCode::NOT_FOUND)),
    }
}

/// Accounts in one answer.
const ACCOUNTS_MAX: u32 = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountsFrom {
    #[serde(default)]
    from: u32,
    limit: Option<u32>,
}

pub(super) async fn accounts(State(app): State<App>, asked: Asked<AccountsFrom>, signed: Signed) -> Answer {
    signed.operator_key()?;
    let AccountsFrom { from, limit } = query(asked)?;
    let limit = limit.unwrap_or(100).min(ACCOUNTS_MAX);
    let (listed, count) = app
        .venue
        .read(move |v| {
            let count = v.engine.account_count();
            let ids = (from..count.min(from.saturating_add(limit))).map(AccountId);
            (ids.filter_map(|id| Some((id, v.engine.account_status(id)?))).collect::<Vec<_>>(), count)
        })
        .await?;
    let next = listed.last().map(|(id, _)| id.0 + 1).filter(|next| *next < count);
    let keys = app.access.list();
    let one = |(id, status): &(AccountId, AccountStatus)| {
        let of_account = keys.iter().filter(|key| key["account_id"] == id.0);
        let keys: Vec<&Value> = of_account.map(|key| if key["name"].is_null() { &key["key_id"] } else { &key["name"] }).collect();
        json!({"account_id": id.0, "status": names::account_status(*status), "keys": keys})
    };
    Ok(ok(&json!({"accounts": listed.iter().map(one).collect::<Vec<_>>(), "count": count, "next": next})))
}

/// What was collected in each asset and not yet moved.
pub(super) async fn fees(State(app): State<App>, signed: Signed) -> Answer {
    signed.operator_key()?;
    let fees = app.venue.read(|v| v.engine.assets().iter().map(|a| (a.asset, v.engine.fees(a.asset))).collect::<Vec<_>>()).await?;
    let catalog = app.venue.catalog();
    let one = |(asset, amount): &(AssetId, Amount)| {
        let scale = catalog.asset(*asset)?;
        Some(json!({"asset": scale.spec.symbol.as_str(), "amount": scale.amount(*amount)}))
    };
    Ok(ok(&json!({"fees": fees.iter().filter_map(one).collect::<Vec<_>>()})))
}

pub(super) async fn set_account_status(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: AccountStatusRequest = parse(&signed.body)?;
    apply(&app, by, request.command()?, json!({})).await
}

pub(super) async fn deposit(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: TransferRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    apply(&app, by, Command::Account(AccountCommand::Deposit(request.transfer(&catalog)?)), json!({})).await
}

pub(super) async fn withdraw(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: TransferRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    apply(&app, by, Command::Account(AccountCommand::Withdraw(request.transfer(&catalog)?)), json!({})).await
}

pub(super) async fn collect_fees(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: FeesRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let outcome = app.venue.command_by(by, request.command(&catalog)?).await?;
    let moved = outcome.events.iter().find_map(|event| match event {
        Event::Account(AccountEvent::FeesCollected(collected)) => Some((catalog.asset(collected.asset)?, collected.amount)),
        _ => None,
    });
    let extra =
        moved.map_or(json!({}), |(scale, amount)| json!({"asset": scale.spec.symbol.as_str(), "amount": scale.amount(amount)}));
    Ok(ok(&outcome::operator(&outcome, extra)?))
}

pub(super) async fn set_limits(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: LimitsRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    apply(&app, by, request.command(&catalog)?, json!({})).await
}

pub(super) async fn set_phase(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: PhaseRequest = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    apply(&app, by, request.command(&catalog)?, json!({})).await
}

/// `POST /v1/admin/keys`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRequest {
    account_id: Option<u32>,
    permissions: Vec<String>,
    algorithm: Option<String>,
    key_id: Option<String>,
    public_key: Option<String>,
    name: Option<String>,
    expire_time_ns: Option<String>,
}

pub(super) async fn create_key(State(app): State<App>, signed: Signed) -> Answer {
    let signed_by = signed.operator()?;
    let by = signed.operator_name()?;
    let by = Some(by.as_str());
    let request: KeyRequest = parse(&signed.body)?;
    let account = request.account_id.map(AccountId);
    if let Some(account) = account {
        let status = app.venue.read(move |v| v.engine.account_status(account)).await?;
        status.ok_or(RejectReason::UnknownAccount)?;
    }
    let expires = request.expire_time_ns.as_deref().map(|text| number("expire_time_ns", text)).transpose()?.map(TimeNs);
    let grant = Grant { account, permissions: &request.permissions, name: request.name.as_deref(), expires };
    let made = match (&request.public_key, &request.key_id) {
        (Some(public_key), Some(key_id)) => app.access.register(by, key_id, public_key, &grant)?,
        (None, None) => {
            // A copy of the request would be answered with a secret of its own.
            app.venue.command_by(signed_by, Command::Venue(VenueCommand::Tick)).await?;
            app.access.create(by, request.algorithm.as_deref().unwrap_or("hmac-sha256"), &grant)?
        }
        _ => return Err(Refusal::new(RejectReason::Malformed, "give key_id and public_key together, or neither").into()),
    };
    Ok(ok(&made))
}

pub(super) async fn keys(State(app): State<App>, signed: Signed) -> Answer {
    signed.operator_key()?;
    Ok(ok(&json!({"keys": app.access.list()})))
}

pub(super) async fn revoke_key(State(app): State<App>, Path(key_id): Path<String>, signed: Signed) -> Answer {
    let by = signed.operator_key()?;
    // Two replicas that were asked at once could otherwise revoke each other's last one.
    if app.access.is_operator(&key_id) && !app.venue.takes_commands() {
        return Err(RejectReason::NotLeader.into());
    }
    app.access.revoke(Some(by.as_str()), &key_id).map_err(|refusal| match refusal.reason {
        // The caller's own key is known: this is about the one in the path.
        RejectReason::UnknownKey => ApiError::with_status(refusal, axum::http::StatusCode::NOT_FOUND),
        _ => refusal.into(),
    })?;
    Ok(ok(&json!({"key_id": key_id})))
}

pub(super) async fn snapshot(State(app): State<App>, signed: Signed) -> Answer {
    signed.operator_key()?;
    let log_index = app.venue.snapshot().await?;
    Ok(ok(&json!({"log_index": log_index.0.to_string()})))
}
