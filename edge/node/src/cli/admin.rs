//! What the operator does.

use serde_json::{Value, json};

use super::args::{AdminCommand, InstrumentArgs, KeyArgs, LimitsArgs, TransferArgs};
use super::client::Client;
use super::table::{fields, table};
use super::{CliError, Output, trade};
use crate::access::write_secret;
use crate::runtime::now;

pub(super) fn run(client: &Client, command: &AdminCommand) -> Result<Output, CliError> {
    let post = |path: &str, body: Value| -> Result<Output, CliError> {
        let json = client.signed("POST", path, Some(&body))?;
        Ok(Output { human: fields(&json), json })
    };
    match command {
        AdminCommand::Asset { symbol, decimals } => post("/v1/admin/assets", json!({"symbol": symbol, "decimals": decimals})),
        AdminCommand::Instrument(args) => post("/v1/admin/instruments", instrument(args)),
        AdminCommand::Account => post("/v1/admin/accounts", json!({})),
        AdminCommand::Show { account } => {
            Ok(trade::describe(client.signed("GET", &format!("/v1/admin/accounts/{account}"), None)?))
        }
        AdminCommand::Deposit(args) => post("/v1/admin/deposits", transfer(args)),
        AdminCommand::Withdraw(args) => post("/v1/admin/withdrawals", transfer(args)),
        AdminCommand::Fees { account, asset } => post("/v1/admin/fees", json!({"account_id": account, "asset": asset})),
        AdminCommand::Limits(args) => post("/v1/admin/limits", limits(args)),
        AdminCommand::Phase { instrument, phase } => post("/v1/admin/phases", json!({"instrument": instrument, "phase": phase})),
        AdminCommand::Status { account, status } => {
            post("/v1/admin/account-status", json!({"account_id": account, "status": status}))
        }
        AdminCommand::Key(args) => key(client, args),
        AdminCommand::Keys => {
            let json = client.signed("GET", "/v1/admin/keys", None)?;
            let rows = json["keys"].as_array().map_or(&[][..], Vec::as_slice);
            let columns = [("key", "key_id"), ("account", "account_id"), ("permissions", "permissions")];
            Ok(Output { human: table(rows, &columns), json })
        }
        AdminCommand::Revoke { key_id } => {
            let json = client.signed("DELETE", &format!("/v1/admin/keys/{key_id}"), None)?;
            Ok(Output { human: format!("revoked {key_id}\n"), json })
        }
        AdminCommand::Snapshot => post("/v1/admin/snapshots", json!({})),
    }
}

/// An object without its empty fields.
fn without_nulls(mut body: Value) -> Value {
    if let Value::Object(map) = &mut body {
        map.retain(|_, value| !value.is_null());
    }
    body
}

fn instrument(args: &InstrumentArgs) -> Value {
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
    }))
}

fn transfer(args: &TransferArgs) -> Value {
    let id = args.id.unwrap_or_else(|| now().0);
    json!({"account_id": args.account, "asset": args.asset, "amount": args.amount, "transfer_id": id.to_string()})
}

fn limits(args: &LimitsArgs) -> Value {
    let limits = without_nulls(json!({
        "order_size_max": args.order_size_max,
        "order_value_max": args.order_value_max,
        "open_orders_max": args.open_orders_max,
        "position_max": args.position_max,
    }));
    json!({"account_id": args.account, "instrument": args.instrument, "limits": limits})
}

fn key(client: &Client, args: &KeyArgs) -> Result<Output, CliError> {
    let body = without_nulls(json!({
        "account_id": args.account,
        "permissions": args.permissions,
        "algorithm": args.algorithm,
        "key_id": args.key_id,
        "public_key": args.public_key,
    }));
    let mut json = client.signed("POST", "/v1/admin/keys", Some(&body))?;
    if let (Some(path), Some(token)) = (&args.out, json["key"].as_str()) {
        write_secret(path, format!("{token}\n").as_bytes())?;
        json["key"] = Value::Null;
    }
    let json = without_nulls(json);
    Ok(Output { human: fields(&json), json })
}
