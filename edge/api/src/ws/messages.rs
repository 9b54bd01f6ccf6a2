//! What clients send and what they are sent.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use walras_access::Refusal;
use walras_gateway::AuthFields;
use walras_market_data::Interval;
use walras_ports::{BookPush, Catalog, InstrumentScale, ListedInstrument, Push, Subscription};
use walras_types::{RejectReason, TradeId};

use crate::json::batches as views_of_batches;
use crate::json::book_orders;
use crate::json::commands::{CommandRequest, Many};
use crate::json::once::NumberRequest;
use crate::json::requests::{instrument, number, parse_object};
use crate::json::{strict, views};

/// What a client asks.
#[derive(Debug)]
pub(super) enum Ask {
    Subscribe(Channel),
    Unsubscribe(Channel),
    Ping,
    Auth(AuthFields),
    Command(CommandRequest, NumberRequest),
    Many(Many, NumberRequest),
    /// Cancels the account's orders when the connection ends; the session that the account opens again when it is back. `None`: not any more.
    CancelOnDisconnect(Option<u64>),
}

/// What it subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Status,
    Feed(Subscription),
    /// The account's reports after this number; the new ones without it.
    Reports(Option<u64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelBody {
    channel: String,
    instrument: Option<String>,
    interval: Option<String>,
    batch: Option<String>,
    sell: Option<String>,
    buy: Option<String>,
    after: Option<String>,
}

impl ChannelBody {
    fn channel(&self, catalog: &Catalog) -> Result<Channel, Refusal> {
        let malformed = |detail: String| Refusal::new(RejectReason::Malformed, detail);
        let instrument = || match &self.instrument {
            Some(symbol) => Ok(instrument(catalog, symbol)?.spec.instrument),
            None => Err(malformed(format!("instrument is missing: the channel {:?} needs one", self.channel))),
        };
        if self.interval.is_some() && self.channel != "candles" {
            return Err(malformed("interval does not go here: only candles have one".into()));
        }
        if self.instrument.is_some() && self.channel == "instruments" {
            return Err(malformed("instrument does not go here: the channel instruments has all of them".into()));
        }
        let is_of_batch = matches!(self.channel.as_str(), "batch" | "demand");
        if !is_of_batch && (self.batch.is_some() || self.sell.is_some() || self.buy.is_some()) {
            return Err(malformed("batch, sell and buy do not go here: only the channels batch and demand have them".into()));
        }
        if self.channel == "batch" && (self.sell.is_some() || self.buy.is_some()) {
            return Err(malformed("sell and buy do not go here: only the channel demand has them".into()));
        }
        if self.after.is_some() && self.channel != "reports" {
            return Err(malformed("after does not go here: only reports are numbered".into()));
        }
        let batch = || match &self.batch {
            Some(name) => {
                let unknown = || Refusal::new(RejectReason::UnknownBatchMarket, format!("batch: {name:?}"));
                Ok(catalog.batch_by_name(name).ok_or_else(unknown)?.market)
            }
            None => Err(malformed(format!("batch is missing: the channel {:?} needs one", self.channel))),
        };
        let asset = |field: &str, symbol: &Option<String>| match symbol {
            Some(symbol) => {
                let unknown = || catalog.unknown_asset(field, symbol);
                Ok(catalog.asset_by_symbol(symbol).ok_or_else(unknown)?.spec.asset)
            }
            None => Err(malformed(format!("{field} is missing: a demand is of two assets, sell and buy"))),
        };
        Ok(match self.channel.as_str() {
            "status" => Channel::Status,
            "instruments" => Channel::Feed(Subscription::Instruments),
            "reports" => Channel::Reports(self.after.as_deref().map(|after| number("after", after)).transpose()?),
            "batch" => Channel::Feed(Subscription::Batch(batch()?)),
            "demand" => {
                let (sell, buy) = (asset("sell", &self.sell)?, asset("buy", &self.buy)?);
                if sell == buy {
                    return Err(malformed("sell and buy: name two assets".into()));
                }
                Channel::Feed(Subscription::Demand(batch()?, sell, buy))
            }
            "book" => Channel::Feed(Subscription::Book(instrument()?)),
            "book_orders" => Channel::Feed(Subscription::Orders(instrument()?)),
            "trades" => Channel::Feed(Subscription::Trades(instrument()?)),
            "ticker" => Channel::Feed(Subscription::Ticker(instrument()?)),
            "candles" => {
                let name = self.interval.as_deref().unwrap_or("1m");
                let unknown = || malformed(format!("interval: {name:?} is none of 1s, 10s, 1m, 5m, 1h"));
                Channel::Feed(Subscription::Candles(instrument()?, Interval::from_name(name).ok_or_else(unknown)?))
            }
            other => {
                let known = "book, book_orders, trades, candles, ticker, instruments, batch, demand, status, reports";
                return Err(malformed(format!("channel: {other:?} is none of {known}")));
            }
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthBody {
    key: String,
    timestamp: String,
    nonce: String,
    signature: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnDisconnect {
    session: Option<String>,
}

/// A message that says no more than what to do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Reads a message: its id, if it has one, and what it asks.
pub(super) fn read(text: &str, catalog: &Catalog) -> (Option<String>, Result<Ask, Refusal>) {
    let malformed = |detail: String| Refusal::new(RejectReason::Malformed, detail);
    let mut body = match strict::object(text.as_bytes()) {
        Ok(body) => body,
        Err(refusal) => return (None, Err(refusal)),
    };
    let id = match body.remove("id") {
        None => None,
        Some(Value::String(id)) if id.len() <= 64 => Some(id),
        Some(_) => return (None, Err(malformed("id: it must be a string of at most 64 bytes".into()))),
    };
    let asked = match body.remove("op") {
        Some(Value::String(op)) => ask(&op, body, catalog),
        Some(_) | None => Err(malformed("op is missing: say what to do".into())),
    };
    (id, asked)
}

fn ask(op: &str, mut body: Map<String, Value>, catalog: &Catalog) -> Result<Ask, Refusal> {
    Ok(match op {
        "subscribe" => Ask::Subscribe(parse_object::<ChannelBody>(body)?.channel(catalog)?),
        "unsubscribe" => Ask::Unsubscribe(parse_object::<ChannelBody>(body)?.channel(catalog)?),
        "ping" => {
            let Nothing {} = parse_object(body)?;
            Ask::Ping
        }
        "auth" => {
            let AuthBody { key, timestamp, nonce, signature } = parse_object(body)?;
            Ask::Auth(AuthFields { key, timestamp, nonce, signature })
        }
        "cancel_on_disconnect" => {
            let OnDisconnect { session } = parse_object(body)?;
            Ask::CancelOnDisconnect(session.as_deref().map(|session| number("session", session)).transpose()?)
        }
        other => {
            let number = number_of(&mut body)?;
            if other == "many" {
                return Ok(Ask::Many(Many::read(body)?, number));
            }
            match CommandRequest::read(other, body) {
                Some(command) => Ask::Command(command?, number),
                None => {
                    let known = "subscribe, unsubscribe, ping, auth, order, cancel, amend, mass_cancel, many, \
                         cancel_on_disconnect";
                    return Err(Refusal::new(RejectReason::Malformed, format!("op: {other:?} is none of {known}")));
                }
            }
        }
    })
}

/// The number under which a command takes effect once, if the message has one.
fn number_of(body: &mut Map<String, Value>) -> Result<NumberRequest, Refusal> {
    let mut number = Map::new();
    for name in ["session", "session_seq"] {
        number.extend(body.remove(name).map(|value| (name.to_owned(), value)));
    }
    parse_object(number)
}

/// A refusal.
pub(super) fn error(id: Option<&str>, refusal: &Refusal) -> Value {
    let mut message = json!({"type": "error", "error": views::error(refusal.reason, refusal.detail.as_deref())});
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message
}

/// `subscribed` or `unsubscribed`.
pub(super) fn subscribed(kind: &str, channel: Channel, catalog: &Catalog) -> Value {
    let symbol = |i| catalog.instrument(i).map(|scale| scale.spec.symbol.to_string());
    let asset = |id| catalog.asset(id).map(|scale| scale.spec.symbol.to_string());
    let (batch, sell, buy) = match channel {
        Channel::Feed(Subscription::Batch(market)) => (catalog.batch(market), None, None),
        Channel::Feed(Subscription::Demand(market, sell, buy)) => (catalog.batch(market), asset(sell), asset(buy)),
        Channel::Feed(_) | Channel::Status | Channel::Reports(_) => (None, None, None),
    };
    let (name, instrument, interval) = match channel {
        Channel::Status => ("status", None, None),
        Channel::Reports(_) => ("reports", None, None),
        Channel::Feed(Subscription::Book(i)) => ("book", symbol(i), None),
        Channel::Feed(Subscription::Orders(i)) => ("book_orders", symbol(i), None),
        Channel::Feed(Subscription::Trades(i)) => ("trades", symbol(i), None),
        Channel::Feed(Subscription::Ticker(i)) => ("ticker", symbol(i), None),
        Channel::Feed(Subscription::Candles(i, interval)) => ("candles", symbol(i), Some(interval.name())),
        Channel::Feed(Subscription::Account(_)) => ("account", None, None),
        Channel::Feed(Subscription::Batch(_)) => ("batch", None, None),
        Channel::Feed(Subscription::Demand(..)) => ("demand", None, None),
        Channel::Feed(Subscription::Instruments) => ("instruments", None, None),
    };
    let mut message = json!({"type": kind, "channel": name});
    if let Some(instrument) = instrument {
        message["instrument"] = instrument.into();
    }
    if let Some(interval) = interval {
        message["interval"] = interval.into();
    }
    for (field, value) in [("batch", batch.map(|batch| batch.name.clone())), ("sell", sell), ("buy", buy)] {
        if let Some(value) = value {
            message[field] = value.into();
        }
    }
    message
}

/// A feed's message, of trades those after this one, without its `feed_seq`, which is each reader's own. `None` when the catalog does not
/// know what it is of.
pub(super) fn push(push: &Push, catalog: &Catalog, after: TradeId) -> Option<Value> {
    let kind = |snapshot: bool| if snapshot { "snapshot" } else { "update" };
    let symbol = |scale: &InstrumentScale| scale.spec.symbol.to_string();
    match push {
        Push::Book(book) => {
            let scale = catalog.instrument(book.instrument)?;
            Some(json!({
                "type": "book",
                "instrument": symbol(scale),
                "kind": kind(book.snapshot),
                "log_index": book.log_index.0.to_string(),
                "bids": views::levels(scale, &book.bids),
                "asks": views::levels(scale, &book.asks),
                "checksum": checksum(scale, book),
                "indicative": views::indicative(scale, book.indicative),
            }))
        }
        Push::Trades { instrument, snapshot, trades } => {
            let scale = catalog.instrument(*instrument)?;
            let trades: Vec<_> = trades.iter().filter(|t| t.trade_id > after).map(|t| views::trade(scale, t)).collect();
            Some(json!({"type": "trades", "instrument": symbol(scale), "kind": kind(*snapshot), "trades": trades}))
        }
        Push::Candles { instrument, interval, snapshot, candles } => {
            let scale = catalog.instrument(*instrument)?;
            let candles: Vec<_> = candles.iter().map(|c| views::candle(scale, c)).collect();
            let interval = interval.name();
            Some(json!({
                "type": "candles", "instrument": symbol(scale), "interval": interval, "kind": kind(*snapshot), "candles": candles,
            }))
        }
        Push::Ticker(ticker) => {
            let mut message = views::ticker(catalog.instrument(ticker.instrument)?, ticker);
            message["type"] = "ticker".into();
            Some(message)
        }
        Push::Orders(orders) => book_orders::push(catalog, orders),
        Push::Instruments(list) => {
            let one = |listed: &ListedInstrument| {
                let scale = catalog.instrument(listed.view.spec.instrument)?;
                Some(views::listed_instrument(scale, listed))
            };
            let instruments: Vec<_> = list.instruments.iter().filter_map(one).collect();
            let log_index = list.log_index.0.to_string();
            Some(json!({
                "type": "instruments", "kind": kind(list.snapshot), "log_index": log_index, "instruments": instruments,
            }))
        }
        Push::Account(account) => Some(views::account_push(catalog, account)),
        Push::Batch(batch) => views_of_batches::batch_push(catalog, batch),
        Push::Demand(market, curve) => {
            let mut message = views_of_batches::demand(catalog, curve)?;
            message["type"] = "demand".into();
            message["batch"] = catalog.batch(*market)?.name.as_str().into();
            Some(message)
        }
    }
}

/// The CRC-32 of the best levels as text: `price:size` of bids and then of asks, best first, a colon between all.
fn checksum(scale: &InstrumentScale, book: &BookPush) -> u32 {
    let mut text = String::new();
    for level in book.best_bids.iter().chain(&book.best_asks) {
        for number in [scale.price(level.price), scale.size(level.shown)] {
            if !text.is_empty() {
                text.push(':');
            }
            text.push_str(&number);
        }
    }
    crc32fast::hash(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sound message of every kind, as far as its fields go.
    const MESSAGES: [&str; 16] = [
        r#"{"op":"ping","id":"1"}"#,
        r#"{"op":"subscribe","channel":"status"}"#,
        r#"{"op":"unsubscribe","channel":"status"}"#,
        r#"{"op":"subscribe","channel":"instruments"}"#,
        r#"{"op":"auth","key":"k","timestamp":"1","nonce":"n","signature":"s"}"#,
        r#"{"op":"order","instrument":"X","client_order_id":"1","side":"buy","size":"1","type":"limit","price":"1"}"#,
        r#"{"op":"order","instrument":"X","side":"sell","size":"1","type":"stop_limit","trigger":"1","price":"1","id":"2"}"#,
        r#"{"op":"order","take_profit":{"trigger":"2"},"instrument":"X","side":"buy","size":"1","type":"limit","price":"1"}"#,
        r#"{"op":"cancel","instrument":"X","client_order_id":"1"}"#,
        r#"{"op":"amend","instrument":"X","client_order_id":"1","price":"1","trigger":"1","size":"1"}"#,
        r#"{"op":"mass_cancel","instrument":"X","side":"buy"}"#,
        r#"{"op":"mass_cancel"}"#,
        r#"{"op":"mass_cancel","session":"4","session_seq":"9"}"#,
        r#"{"op":"many","commands":[{"op":"mass_cancel"}],"session":"4","session_seq":"9"}"#,
        r#"{"op":"subscribe","channel":"reports","after":"7"}"#,
        r#"{"op":"ping"}"#,
    ];

    /// As over REST: there an order with a field twice is refused, so it must be here.
    #[test]
    fn a_field_twice_or_unknown_is_refused_by_its_name() {
        let catalog = Catalog::default();
        let says = |text: &str, expected: &str| {
            let refusal = read(text, &catalog).1.expect_err(text);
            assert_eq!(refusal.reason, RejectReason::Malformed, "{text}");
            assert!(refusal.detail.as_ref().is_some_and(|detail| detail.contains(expected)), "{text}: {refusal:?}");
        };
        for message in MESSAGES {
            assert!(read(message, &catalog).1.is_ok(), "{message}");
            let Value::Object(fields) = serde_json::from_str(message).unwrap() else { panic!("{message} is no object") };
            let rest = &message[1..];
            says(&format!(r#"{{"surprise":1,{rest}"#), "unknown field `surprise`");
            for (name, value) in &fields {
                for value in [value.to_string(), r#""other""#.to_owned(), "null".to_owned()] {
                    says(&format!(r#"{{"{name}":{value},{rest}"#), &format!("duplicate field `{name}`"));
                    says(&format!(r#"{},"{name}":{value}}}"#, message.trim_end_matches('}')), &format!("duplicate field `{name}`"));
                }
            }
        }
    }
}
