//! What participants do and see.

use serde_json::{Map, Value, json};
use walras_access::now;
use walras_client::Client;
use walras_terminal::table::{fields, table};

use super::args::{AccountArgs, AccountCommand, AccountPart, AmendArgs, BookArgs, CancelArgs, OrderArgs, TradesArgs};
use super::session::send;
use super::{CliError, Output};

/// A symbol in a path.
fn in_path(symbol: &str) -> String {
    symbol.replace('/', "-")
}

fn rows<'a>(answer: &'a Value, field: &str) -> &'a [Value] {
    answer[field].as_array().map_or(&[], Vec::as_slice)
}

fn outcome(json: Value) -> Output {
    let text = |field: &str| json[field].as_str().unwrap_or("-").to_owned();
    if json["repeated"] == true {
        // What became of it then, its owner's open orders and fills tell.
        let human = format!("order {}: carried out before, at log entry {}\n", text("client_order_id"), text("log_index"));
        return Output { json, human };
    }
    let mut human = format!("order {} ({}): {}", text("client_order_id"), text("order_id"), text("status"));
    if json["open"] != "0" {
        human += &format!(", {} open", text("open"));
    }
    if let Some(reason) = json["reason"].as_str() {
        human += &format!(", {reason}");
    }
    human.push('\n');
    let fills = rows(&json, "fills");
    if !fills.is_empty() {
        human += &table(fills, &[("trade", "trade_id"), ("price", "price"), ("size", "size"), ("fee", "fee")]);
    }
    Output { json, human }
}

pub(super) fn order(client: &Client, args: &OrderArgs) -> Result<Output, CliError> {
    let mut body = Map::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value.into());
        }
    };
    let trails = args.trail.is_some() || args.trail_ppm.is_some();
    let order_type = match (&args.price, &args.trigger, &args.take_profit) {
        (None, ..) if trails => "trailing_stop",
        (Some(_), ..) if trails => "trailing_stop_limit",
        (Some(_), None, None) => "limit",
        (None, None, None) => "market",
        (None, Some(_), _) => "stop",
        (Some(_), Some(_), _) => "stop_limit",
        (None, None, Some(_)) => "take_profit",
        (Some(_), None, Some(_)) => "take_profit_limit",
    };
    put("instrument", Some(args.instrument.clone()));
    put("side", Some(args.side.name().to_owned()));
    put("size", Some(args.size.clone()));
    put("type", Some(order_type.to_owned()));
    put("price", args.price.clone());
    put("trigger", args.trigger.clone().or_else(|| args.take_profit.clone()));
    put("trail", args.trail.clone());
    put("client_order_id", args.id.clone());
    put("time_in_force", args.tif.clone());
    put("expire_time_ns", args.expires.map(|ns| ns.to_string()));
    put("post_only", args.post_only.clone());
    put("peak", args.iceberg.clone());
    put("display", args.iceberg.is_some().then(|| "iceberg".to_owned()).or_else(|| args.hidden.then(|| "hidden".to_owned())));
    put("min_size", args.min_size.clone());
    put("self_trade", args.self_trade.clone());
    put("oco_with", args.oco_with.clone());
    put("exit_of", args.exit_of.clone());
    if let Some(ppm) = args.trail_ppm {
        body.insert("trail_ppm".to_owned(), ppm.into());
    }
    Ok(outcome(send(client, &args.once, "POST", "/v1/orders", Some(&body.into()))?))
}

pub(super) fn cancel(client: &Client, args: &CancelArgs) -> Result<Output, CliError> {
    if let (Some(instrument), Some(id)) = (&args.instrument, &args.id) {
        let path = format!("/v1/orders/{}/{}", in_path(instrument), encoded(id));
        return Ok(outcome(send(client, &args.once, "DELETE", &path, None)?));
    }
    let mut query = Vec::new();
    query.extend(args.instrument.as_deref().map(|symbol| format!("instrument={}", in_path(symbol))));
    query.extend(args.side.map(|side| format!("side={}", side.name())));
    let path = if query.is_empty() { "/v1/orders".to_owned() } else { format!("/v1/orders?{}", query.join("&")) };
    let json = send(client, &args.once, "DELETE", &path, None)?;
    let columns = [("instrument", "instrument"), ("order", "order_id"), ("yours", "client_order_id")];
    Ok(Output { human: format!("cancelled:\n{}", table(rows(&json, "cancelled"), &columns)), json })
}

/// A name of an order in a path.
fn encoded(name: &str) -> String {
    let one = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(one).collect()
}

pub(super) fn amend(client: &Client, args: &AmendArgs) -> Result<Output, CliError> {
    let mut body = Map::new();
    body.extend(args.price.clone().map(|price| ("price".to_owned(), price.into())));
    body.extend(args.trigger.clone().map(|trigger| ("trigger".to_owned(), trigger.into())));
    body.extend(args.size.clone().map(|size| ("size".to_owned(), size.into())));
    let path = format!("/v1/orders/{}/{}", in_path(&args.instrument), encoded(&args.id));
    Ok(outcome(send(client, &args.once, "PATCH", &path, Some(&body.into()))?))
}

pub(super) fn book(client: &Client, args: &BookArgs) -> Result<Output, CliError> {
    let json = client.get(&format!("/v1/instruments/{}/book?depth={}", in_path(&args.instrument), args.depth))?;
    let (bids, asks) = (rows(&json, "bids"), rows(&json, "asks"));
    let ladder: Vec<Value> = (asks.iter().rev().map(|level| json!(["ask", level[0], level[1], level[2]])))
        .chain(bids.iter().map(|level| json!(["bid", level[0], level[1], level[2]])))
        .collect();
    let mut human = table(&ladder, &[("", "0"), ("price", "1"), ("size", "2"), ("orders", "3")]);
    human += &indicative(&json["indicative"]);
    Ok(Output { json, human })
}

/// A line on what an uncross would trade; nothing when nothing would.
fn indicative(now: &Value) -> String {
    let text = |field: &str| now[field].as_str().unwrap_or_default().to_owned();
    if now.is_null() {
        return String::new();
    }
    let (volume, price, imbalance) = (text("volume"), text("price"), text("imbalance"));
    let left = match imbalance.strip_prefix('-') {
        Some(offered) => format!("{offered} to sell would be left"),
        None if imbalance == "0" => "nothing would be left".to_owned(),
        None => format!("{imbalance} to buy would be left"),
    };
    format!("indicative: {volume} would trade at {price}, {left}\n")
}

pub(super) fn trades(client: &Client, args: &TradesArgs) -> Result<Output, CliError> {
    let json = client.get(&format!("/v1/instruments/{}/trades?limit={}", in_path(&args.instrument), args.limit))?;
    let columns = [("trade", "trade_id"), ("time", "time_ns"), ("price", "price"), ("size", "size"), ("taker", "taker_side")];
    Ok(Output { human: table(rows(&json, "trades"), &columns), json })
}

pub(super) fn instruments(client: &Client) -> Result<Output, CliError> {
    let json = client.get("/v1/instruments")?;
    let columns = [
        ("instrument", "symbol"),
        ("phase", "phase"),
        ("last", "last_price"),
        ("reference", "reference_price"),
        ("tick", "tick_size"),
        ("lot", "lot_size"),
        ("maker ppm", "maker_fee_ppm"),
        ("taker ppm", "taker_fee_ppm"),
        ("allocation", "allocation"),
    ];
    let with_kind = |row: &Value| {
        let mut row = row.clone();
        row["allocation"] = row["allocation"]["kind"].take();
        row
    };
    let shown: Vec<Value> = rows(&json, "instruments").iter().map(with_kind).collect();
    Ok(Output { human: table(&shown, &columns), json })
}

fn transfer(client: &Client, asset: &str, amount: &str, to_shard: u8, id: Option<u64>) -> Result<Output, CliError> {
    // Named here, so that the same request sent again is the same transfer.
    let id = id.unwrap_or_else(|| now().0).to_string();
    let body = json!({"asset": asset, "amount": amount, "to_shard": to_shard, "client_transfer_id": id});
    let json = client.signed("POST", "/v1/account/transfers", Some(&body))?;
    Ok(Output { human: fields(&json), json })
}

pub(super) fn shards(client: &Client) -> Result<Output, CliError> {
    let json = client.get("/v1/shards")?;
    let joined = |list: &Value| list.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    let row = |shard: &Value| {
        let mut row = shard.clone();
        row["urls"] = joined(&shard["urls"]).into();
        row["instruments"] = joined(&shard["instruments"]).into();
        row["shard"] = format!("{}{}", shard["shard"], if shard["is_own"] == true { " (own)" } else { "" }).into();
        row
    };
    let all: Vec<Value> = rows(&json, "shards").iter().map(row).collect();
    let columns = [
        ("shard", "shard"),
        ("urls", "urls"),
        ("instruments", "instruments"),
        ("in transit", "in_transit"),
        ("oldest sent at", "oldest_sent_at_ns"),
        ("trouble", "trouble"),
    ];
    Ok(Output { human: table(&all, &columns), json })
}

pub(super) fn account(client: &Client, args: &AccountArgs) -> Result<Output, CliError> {
    if let Some(AccountCommand::Transfer { asset, amount, to_shard, id }) = &args.command {
        return transfer(client, asset, amount, *to_shard, *id);
    }
    match args.part {
        AccountPart::Transfers => {
            let json = client.signed("GET", "/v1/account/transfers", None)?;
            let columns = [
                ("to shard", "to_shard"),
                ("yours", "client_transfer_id"),
                ("asset", "asset"),
                ("amount", "amount"),
                ("sent at", "sent_at_ns"),
            ];
            Ok(Output { human: table(rows(&json, "transfers"), &columns), json })
        }
        AccountPart::Balances => Ok(describe(client.signed("GET", "/v1/account", None)?)),
        AccountPart::Orders => {
            let path = match &args.instrument {
                Some(symbol) => format!("/v1/orders?instrument={}", in_path(symbol)),
                None => "/v1/orders".to_owned(),
            };
            let json = client.signed_pages(&path, "orders")?;
            let columns = [
                ("instrument", "instrument"),
                ("yours", "client_order_id"),
                ("side", "side"),
                ("type", "type"),
                ("price", "price"),
                ("trigger", "trigger"),
                ("open", "open"),
                ("shown", "shown"),
                ("of", "original_size"),
                ("filled", "filled"),
                ("average", "average_price"),
                ("entered", "entered_at_ns"),
                ("tif", "time_in_force"),
                ("status", "status"),
            ];
            Ok(Output { human: table(rows(&json, "orders"), &columns), json })
        }
        AccountPart::Closed => {
            let json = client.signed("GET", &last("/v1/orders/closed", args), None)?;
            let columns = [
                ("instrument", "instrument"),
                ("yours", "client_order_id"),
                ("side", "side"),
                ("type", "type"),
                ("price", "price"),
                ("of", "original_size"),
                ("filled", "filled"),
                ("average", "average_price"),
                ("fee", "fee"),
                ("ended", "ended_at_ns"),
                ("status", "status"),
                ("reason", "reason"),
            ];
            Ok(Output { human: table(rows(&json, "orders"), &columns), json })
        }
        AccountPart::Fills => {
            let json = client.signed("GET", &last("/v1/fills", args), None)?;
            let columns = [
                ("instrument", "instrument"),
                ("trade", "trade_id"),
                ("yours", "client_order_id"),
                ("side", "side"),
                ("price", "price"),
                ("size", "size"),
                ("fee", "fee"),
                ("role", "role"),
                ("time", "time_ns"),
            ];
            Ok(Output { human: table(rows(&json, "fills"), &columns), json })
        }
    }
}

/// The question for the last records of a list, of one instrument where one is given.
fn last(path: &str, args: &AccountArgs) -> String {
    let only = args.instrument.as_deref().map_or(String::new(), |symbol| format!("&instrument={}", in_path(symbol)));
    format!("{path}?limit={}{only}", args.limit)
}

/// An account's answer, for its owner and for the operator.
pub(super) fn describe(json: Value) -> Output {
    let balances = [("asset", "asset"), ("available", "available"), ("reserved", "reserved")];
    let positions = [("instrument", "instrument"), ("position", "position"), ("open orders", "open_orders")];
    let head = fields(&json!({"account_id": json["account_id"], "status": json["status"]}));
    let human = format!("{head}\n{}\n{}", table(rows(&json, "balances"), &balances), table(rows(&json, "positions"), &positions));
    Output { json, human }
}
