//! What the operator does.

use std::path::Path;

use serde_json::{Value, json};
use walras_access::write_secret;
use walras_api::json::batches::hex;
use walras_batch_signatures::SigningKey;
use walras_client::{Client, ClientError, read_key};
use walras_terminal::table::{fields, table};

use super::args::{AdminCommand, InstrumentArgs, KeyArgs, LimitFlags, LimitsArgs, TransferArgs};
use super::{CliError, Output, trade};

pub(super) fn run(client: &Client, command: &AdminCommand) -> Result<Output, CliError> {
    let post = |path: &str, body: Value| -> Result<Output, CliError> {
        let json = client.signed("POST", path, Some(&body))?;
        Ok(Output { human: fields(&json), json })
    };
    match command {
        AdminCommand::Asset { symbol, decimals } => post("/v1/admin/assets", json!({"symbol": symbol, "decimals": decimals})),
        AdminCommand::Instrument(args) => post("/v1/admin/instruments", instrument(args)),
        AdminCommand::Account { transaction_key: None } => post("/v1/admin/accounts", json!({})),
        AdminCommand::Account { transaction_key: Some(key) } => {
            // Read before the account is there.
            let key = public_key(key)?;
            let made = client.signed("POST", "/v1/admin/accounts", Some(&json!({})))?;
            post("/v1/admin/account-keys", json!({"account_id": made["account_id"], "key": key}))
        }
        AdminCommand::TransactionKey { account, key } => {
            post("/v1/admin/account-keys", json!({"account_id": account, "key": public_key(key)?}))
        }
        AdminCommand::Issuer { asset, account } => post("/v1/admin/issuers", json!({"asset": asset, "account_id": account})),
        AdminCommand::BatchPhase { batch, phase } => post("/v1/admin/batch-phases", json!({"batch": batch, "phase": phase})),
        AdminCommand::AccountFee { batch, fee } => {
            post("/v1/admin/account-fees", json!({"batch": batch, "account_fee": fee.join(" ")}))
        }
        AdminCommand::Accounts { from, limit } => {
            let json = client.signed("GET", &format!("/v1/admin/accounts?from={from}&limit={limit}"), None)?;
            let rows = json["accounts"].as_array().map_or(&[][..], Vec::as_slice);
            Ok(Output { human: table(rows, &[("account", "account_id"), ("status", "status"), ("keys", "keys")]), json })
        }
        AdminCommand::Show { account } => {
            let json = client.signed("GET", &format!("/v1/admin/accounts/{account}"), None)?;
            let limits: Vec<Value> = json["limits"].as_array().into_iter().flatten().map(flat).collect();
            let columns = [
                ("limits in", "instrument"),
                ("order size", "order_size_max"),
                ("order value", "order_value_max"),
                ("open orders", "open_orders_max"),
                ("position", "position_max"),
            ];
            let Output { json, human } = trade::describe(json);
            Ok(Output { human: format!("{human}\n{}", table(&limits, &columns)), json })
        }
        AdminCommand::Deposit(args) => post("/v1/admin/deposits", transfer(client, args)?),
        AdminCommand::Withdraw(args) => post("/v1/admin/withdrawals", transfer(client, args)?),
        AdminCommand::Fees { account: None, .. } => {
            let json = client.signed("GET", "/v1/admin/fees", None)?;
            let rows = json["fees"].as_array().map_or(&[][..], Vec::as_slice);
            Ok(Output { human: table(rows, &[("asset", "asset"), ("collected", "amount")]), json })
        }
        AdminCommand::Fees { account, asset } => post("/v1/admin/fees", json!({"account_id": account, "asset": asset})),
        AdminCommand::Limits(args) => post("/v1/admin/limits", limits(args)),
        AdminCommand::Phase { instrument, phase } => post("/v1/admin/phases", json!({"instrument": instrument, "phase": phase})),
        AdminCommand::InstrumentShard { instrument, shard } => {
            post("/v1/admin/instrument-shards", json!({"instrument": instrument, "shard": shard}))
        }
        AdminCommand::Status { account, status } => {
            post("/v1/admin/account-status", json!({"account_id": account, "status": status}))
        }
        AdminCommand::Key(args) => key(client, args),
        AdminCommand::Keys => {
            let json = client.signed("GET", "/v1/admin/keys", None)?;
            let rows = json["keys"].as_array().map_or(&[][..], Vec::as_slice);
            let columns = [
                ("key", "key_id"),
                ("name", "name"),
                ("account", "account_id"),
                ("permissions", "permissions"),
                ("expires", "expire_time_ns"),
            ];
            Ok(Output { human: table(rows, &columns), json })
        }
        AdminCommand::Revoke { key_id } => {
            let json = client.signed("DELETE", &format!("/v1/admin/keys/{key_id}"), None)?;
            Ok(Output { human: format!("revoked {key_id}\n"), json })
        }
        AdminCommand::Snapshot => post("/v1/admin/snapshots", json!({})),
    }
}

/// The public key of digits, or of an Ed25519 key's file.
pub(super) fn public_key(key: &str) -> Result<String, CliError> {
    if key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(key.to_ascii_lowercase());
    }
    let seed = read_key(Path::new(key))?.ed25519_seed();
    let invalid =
        || ClientError::KeyFile { path: key.to_owned(), detail: "an Ed25519 key is needed: see `walras keys new`".to_owned() };
    Ok(hex(&SigningKey::from_seed(&*seed.ok_or_else(invalid)?).public_key().0))
}

/// An object without its empty fields.
fn without_nulls(mut body: Value) -> Value {
    if let Value::Object(map) = &mut body {
        map.retain(|_, value| !value.is_null());
    }
    body
}

fn instrument(args: &InstrumentArgs) -> Value {
    // What does not go with the kind of allocation is sent as well: the venue says so.
    let allocation = args.allocation.as_ref().map(|kind| {
        without_nulls(json!({
            "kind": kind,
            "min_size": args.allocation_min_size,
            "top_size_max": args.allocation_top_size_max,
            "fifo_percent": args.allocation_fifo_percent,
        }))
    });
    without_nulls(json!({
        "symbol": args.symbol,
        "base": args.base,
        "quote": args.quote,
        "tick_size": args.tick_size,
        "lot_size": args.lot_size,
        "reference_price": args.reference_price,
        "maker_fee_ppm": args.maker_fee_ppm,
        "taker_fee_ppm": args.taker_fee_ppm,
        "collar_ppm": args.collar_ppm,
        "band_ppm": args.band_ppm,
        "allocation": allocation,
        "default_limits": limit_fields(&args.default_limits),
    }))
}

/// A transfer under the number that was given, or under the one that follows the account's last. Where two ask for it at once, one of them is
/// refused as a duplicate.
fn transfer(client: &Client, args: &TransferArgs) -> Result<Value, CliError> {
    let id = match args.id {
        Some(id) => id,
        None => {
            let shown = client.signed("GET", &format!("/v1/admin/accounts/{}", args.account), None)?;
            let last: Option<u64> = shown["last_transfer_id"].as_str().and_then(|id| id.parse().ok());
            last.map_or(1, |last| last.saturating_add(1))
        }
    };
    Ok(json!({"account_id": args.account, "asset": args.asset, "amount": args.amount, "transfer_id": id.to_string()}))
}

/// An object whose field `limits` is an object, as one.
fn flat(row: &Value) -> Value {
    let mut flat = row["limits"].clone();
    flat["instrument"] = row["instrument"].clone();
    flat
}

fn limits(args: &LimitsArgs) -> Value {
    json!({"account_id": args.account, "instrument": args.instrument, "limits": limit_fields(&args.limits)})
}

fn limit_fields(limits: &LimitFlags) -> Value {
    without_nulls(json!({
        "order_size_max": limits.order_size_max,
        "order_value_max": limits.order_value_max,
        "open_orders_max": limits.open_orders_max,
        "position_max": limits.position_max,
    }))
}

fn key(client: &Client, args: &KeyArgs) -> Result<Output, CliError> {
    let body = without_nulls(json!({
        "account_id": args.account,
        "permissions": args.permissions,
        "algorithm": args.algorithm,
        "key_id": args.key_id,
        "public_key": args.public_key,
        "name": args.name,
        "expire_time_ns": args.expires.map(|ns| ns.to_string()),
    }));
    let mut json = client.signed("POST", "/v1/admin/keys", Some(&body))?;
    if let (Some(path), Some(token)) = (&args.out, json["key"].as_str()) {
        write_secret(path, format!("{token}\n").as_bytes())?;
        json["key"] = Value::Null;
    }
    let json = without_nulls(json);
    Ok(Output { human: fields(&json), json })
}
