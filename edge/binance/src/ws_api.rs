//! The WebSocket API, `/ws-api/v3`: requests and answers on one connection, one after the other, and accounts' streams.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use walras_access::Caller;
use walras_gateway::{Algorithm, Allowance, KeyId, Permission};
use walras_http_port::{Place, place_of};
use walras_sequencer::SignedBy;
use walras_types::AccountId;

use crate::amendments::Amendment;
use crate::app::App;
use crate::brackets::WantedBracket;
use crate::call::signer;
use crate::error::Error;
use crate::limits::{RECV_WINDOW_MS_MAX, STAMP_UNIT};
use crate::order_lists::{self, WantedList};
use crate::orders::{self, Cancel, Wanted};
use crate::params::Params;
use crate::rest::{account, general, listen_keys, market, trade};
use crate::streams::{End, Heard, Kept, Line, Out, UserStream};
use crate::weights;

/// Accounts' streams of a connection.
const USERS_MAX: usize = 16;

/// `GET /ws-api/v3`.
pub(crate) async fn open(
    State(app): State<App>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    request: Request,
) -> Response {
    let place = place_of(&request);
    match upgrade {
        Ok(upgrade) => {
            let max = app.config.websocket.message_bytes_max;
            let begin = async move |socket| serve(app, place, socket).await;
            upgrade.max_message_size(max).max_frame_size(max).read_buffer_size(4 << 10).on_upgrade(begin)
        }
        Err(_) => Error::new(-1100, "This address takes WebSocket connections.").into_response(),
    }
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow)]
    id: Option<&'m RawValue>,
    method: Option<String>,
    #[serde(borrow, default)]
    params: BTreeMap<String, &'m RawValue>,
}

/// Parameters of a message, each as its text: a signature covers them so.
fn params(of: &BTreeMap<String, &RawValue>) -> Result<Params, Error> {
    let mut params = Params::default();
    for (name, value) in of {
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'"') => {
                let text = serde_json::from_str(text).map_err(|_| Error::new(-1135, "Invalid JSON Request"))?;
                params.add(name.clone(), text)?;
            }
            Some(b'n') => {}
            _ => params.add(name.clone(), text.to_owned())?,
        }
    }
    Ok(params)
}

/// Who has logged on.
#[derive(Clone, Debug)]
struct LoggedOn {
    api_key: String,
    caller: Caller,
    account: AccountId,
    since_ms: u64,
    /// Whether the log has the logon's nonce: only then is this the only connection that it opened.
    may_command: bool,
}

struct Session {
    line: Line,
    logged_on: Option<LoggedOn>,
    connected_ms: u64,
    users: BTreeMap<String, UserStream>,
    next_user: u64,
}

async fn serve(app: App, place: Arc<Place>, socket: WebSocket) {
    let connected_ms = app.now_ms();
    let line = Line::new(app, place, socket);
    let mut session = Session { line, logged_on: None, connected_ms, users: BTreeMap::new(), next_user: 0 };
    let end = session.live().await;
    session.users.clear();
    session.line.end(end).await;
}

/// Who asks, and what the log keeps of it.
struct Asker {
    account: AccountId,
    caller: Caller,
    signed: SignedBy,
    api_key: String,
}

impl Session {
    async fn live(&mut self) -> End {
        loop {
            let done = match self.line.next().await {
                Ok(Heard::Text(text)) => self.on_text(&text).await,
                Ok(Heard::Out(out)) => {
                    let sent = self.line.send_all(out, written).await;
                    sent.map(|ended| ended.iter().for_each(|name| UserStream::forget(&mut self.users, name)))
                }
                Ok(Heard::Nothing) => Ok(()),
                Err(end) => Err(end),
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    async fn on_text(&mut self, text: &str) -> Result<(), End> {
        let mut with_rates = true;
        let (id, answered) = match serde_json::from_str::<Message<'_>>(text) {
            Err(_) => ("null".to_owned(), Err(Error::new(-1135, "Invalid JSON Request"))),
            Ok(message) => {
                with_rates = message.params.get("returnRateLimits").is_none_or(|with_rates| with_rates.get() != "false");
                let id = message.id.map_or("null", |id| id.get()).to_owned();
                let answered = match &message.method {
                    None => Err(Error::missing("method")),
                    Some(method) => self.counted(method, &message.params).await,
                };
                (id, answered)
            }
        };
        let used = self.line.place.counted_source().map(|source| self.line.app.weights().used(self.line.app.now_ms(), source, 0));
        let limit = self.line.app.weights().advertised().weight_per_minute;
        let rates = json!([{
            "rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": limit, "count": used.unwrap_or(0),
        }]);
        let mut answer = match answered {
            Ok(result) => json!({"status": 200, "result": result}),
            Err(error) => json!({"status": error.status.as_u16(), "error": error.body()}),
        };
        if with_rates {
            answer["rateLimits"] = rates;
        }
        answer["id"] = serde_json::from_str(&id).unwrap_or(Value::Null);
        self.line.send(answer.to_string()).await
    }

    async fn counted(&mut self, method: &str, raw: &BTreeMap<String, &RawValue>) -> Result<Value, Error> {
        let is_cancel = matches!(method, "order.cancel" | "openOrders.cancelAll" | "orderList.cancel");
        let from = if is_cancel { Allowance::Cancels } else { Allowance::Requests };
        // Of the parameters as they are read: as they are written, what is much may look like little.
        let params = params(raw);
        self.line.admit(from, params.as_ref().map_or(1, |params| weight(method, params)))?;
        let params = params?;
        params.flag("returnRateLimits")?;
        let later = Instant::now() + STAMP_UNIT;
        let is_alike = params.has("signature")
            && !matches!(
                method,
                "order.place"
                    | "order.cancelReplace"
                    | "orderList.place"
                    | "orderList.place.oco"
                    | "orderList.place.oto"
                    | "orderList.place.otoco"
            );
        let patience = Duration::from_millis(self.line.app.config.http.request_timeout_ms);
        let answered = match tokio::time::timeout(patience, self.answer(method, &params)).await {
            Ok(answered) => answered,
            Err(_) => Err(Error::in_doubt()),
        };
        if is_alike {
            // pause: the next request has another timestamp, and so another text
            tokio::time::sleep_until(later).await;
        }
        answered
    }

    async fn answer(&mut self, method: &str, params: &Params) -> Result<Value, Error> {
        let app = self.line.app.clone();
        if let Some(shown) = market_data(&app, method, params).await {
            // pause: nobody may know it sooner
            tokio::time::sleep(app.venue.public_in()).await;
            return shown;
        }
        match method {
            "ping" => Ok(json!({})),
            "time" => Ok(json!({"serverTime": app.now_ms()})),
            "exchangeInfo" => general::exchange_info_of(&app, params).await,
            "session.logon" => self.log_on(params).await,
            "session.status" => Ok(self.status()),
            "session.logout" => {
                self.logged_on = None;
                Ok(self.status())
            }
            "session.subscriptions" => {
                Ok(self.users.keys().map(|name| json!({"subscriptionId": number(name)})).collect::<Vec<_>>().into())
            }
            "account.status" => account::account_of(&app, params, self.reader(params)?).await,
            "account.commission" => {
                self.reader(params)?;
                account::commission_of(&app, params)
            }
            "account.rateLimits.orders" => account::order_counts_of(&app, params, self.reader(params)?),
            "myFilters" => account::own_filters_of(&app, params, self.reader(params)?).await,
            "myTrades" => account::trades_of(&app, params, self.reader(params)?).await,
            "order.status" => trade::query_of(&app, params, self.reader(params)?).await,
            "openOrders.status" => trade::open_orders_of(&app, params, self.reader(params)?).await,
            "allOrders" => trade::all_orders_of(&app, params, self.reader(params)?).await,
            "orderList.status" => order_lists::query(&app, params, self.reader(params)?).await,
            "openOrderLists.status" => order_lists::open_lists(&app, params, self.reader(params)?).await,
            "allOrderLists" => order_lists::all_lists(&app, params, self.reader(params)?).await,
            "order.test" => {
                self.trader(params)?;
                trade::test_of(&app, params)
            }
            "userDataStream.subscribe" => {
                let of = self.logged_on.as_ref().map(|on| (on.account, on.api_key.clone())).ok_or_else(Error::key)?;
                self.listen(of).await
            }
            "userDataStream.subscribe.signature" => {
                let asker = self.asker(params, Permission::Read, Allowance::Requests)?;
                params.finish()?;
                self.listen((asker.account, asker.api_key)).await
            }
            "userDataStream.unsubscribe" => self.unsubscribe(params),
            "userDataStream.start" | "userDataStream.ping" | "userDataStream.stop" => {
                listen_keys::over_socket(&app, method, params)
            }
            _ => self.command(&app, method, params).await,
        }
    }

    /// What goes into the log.
    async fn command(&mut self, app: &App, method: &str, params: &Params) -> Result<Value, Error> {
        match method {
            "order.place" => {
                let asker = self.trader(params)?;
                let wanted = Wanted::read(&app.names(), params)?;
                params.finish()?;
                count_orders(app, asker.account, 1, wanted.place(app, asker.account, asker.signed).await)
            }
            "order.cancel" => {
                let asker = self.canceller(params)?;
                let names = ("orderId", "origClientOrderId");
                let cancel = Cancel::read(&app.names(), params, names, "newClientOrderId")?;
                params.finish()?;
                cancel.carry_out(app, asker.account, &mut Some(asker.signed)).await
            }
            "order.cancelReplace" => {
                let asker = self.trader(params)?;
                trade::cancel_replace_of(app, params, asker.account, asker.signed).await
            }
            "order.amend.keepPriority" => {
                let asker = self.trader(params)?;
                let amendment = Amendment::read(&app.names(), params)?;
                params.finish()?;
                amendment.carry_out(app, asker.account, asker.signed).await
            }
            "openOrders.cancelAll" => {
                let asker = self.canceller(params)?;
                let names = app.names();
                let (symbol, scale) = orders::instrument(&names, params)?;
                params.finish()?;
                orders::cancel_all(app, asker.account, (&symbol, scale), asker.signed).await
            }
            "orderList.place" | "orderList.place.oco" => {
                let asker = self.trader(params)?;
                let read = if method == "orderList.place" { WantedList::read_old } else { WantedList::read };
                let list = read(&app.names(), params)?;
                params.finish()?;
                count_orders(app, asker.account, 2, list.place(app, asker.account, asker.signed).await)
            }
            "orderList.place.oto" | "orderList.place.otoco" => {
                let asker = self.trader(params)?;
                let read = if method == "orderList.place.oto" { WantedBracket::read_oto } else { WantedBracket::read_otoco };
                let list = read(&app.names(), params)?;
                params.finish()?;
                let count = list.order_count();
                count_orders(app, asker.account, count, list.place(app, asker.account, asker.signed).await)
            }
            "orderList.cancel" => {
                let asker = self.canceller(params)?;
                order_lists::cancel(app, params, asker.account, asker.signed).await
            }
            _ => Err(Error::unsupported()),
        }
    }

    /// The account that asks and may read.
    fn reader(&mut self, params: &Params) -> Result<AccountId, Error> {
        Ok(self.asker(params, Permission::Read, Allowance::Requests)?.account)
    }

    /// Who asks and may trade.
    fn trader(&mut self, params: &Params) -> Result<Asker, Error> {
        self.asker(params, Permission::Trade, Allowance::Requests)
    }

    /// The same for a cancel, which a throttled key may still send.
    fn canceller(&mut self, params: &Params) -> Result<Asker, Error> {
        self.asker(params, Permission::Trade, Allowance::Cancels)
    }

    /// Who asks: whoever signed the request, or has logged on.
    fn asker(&mut self, params: &Params, permission: Permission, from: Allowance) -> Result<Asker, Error> {
        let app = &self.line.app;
        if params.has("signature") {
            let api_key = params.required("apiKey")?;
            if KeyId::new(api_key).is_none() {
                return Err(Error::key_format());
            }
            let signature = params.required("signature")?;
            let covered: Vec<String> = params
                .by_name()
                .iter()
                .filter(|(name, _)| *name != "signature")
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let signed_by = signer(&app.access, app.now(), params, (api_key, &covered.join("&"), signature), (permission, from))?;
            self.line.place.has_shown(&signed_by.caller);
            self.line.is_used = true;
            let signed = signed_by.signed();
            return Ok(Asker { account: signed_by.account, caller: signed_by.caller, signed, api_key: api_key.to_owned() });
        }
        let on = self.logged_on.as_ref().ok_or_else(|| Error::missing("signature"))?;
        for name in ["timestamp", "apiKey"] {
            params.text(name)?;
        }
        let window = params.decimal("recvWindow")?.map(|text| text.split('.').next().unwrap_or_default().parse::<u64>());
        if window.is_some_and(|window| window.unwrap_or(u64::MAX) > RECV_WINDOW_MS_MAX) {
            return Err(Error::new(-1131, "recvWindow must be less than 60000."));
        }
        if permission == Permission::Trade && !on.may_command {
            let text =
                "This replica did not lead, or could not write, when the session was logged on: log on again, or sign the request.";
            return Err(Error::new(-2015, text));
        }
        app.access.charge(&on.caller, permission, from)?;
        Ok(Asker { account: on.account, caller: on.caller, signed: SignedBy::NOBODY, api_key: on.api_key.clone() })
    }

    async fn log_on(&mut self, params: &Params) -> Result<Value, Error> {
        let api_key = params.required("apiKey")?.to_owned();
        let app = self.line.app.clone();
        // As Binance has it.
        match app.access.key(&api_key).map(|(algorithm, ..)| algorithm) {
            Some(Algorithm::HmacSha256) => return Err(Error::new(-4056, "HMAC_SHA256 API key is not supported.")),
            Some(Algorithm::RsaSha256) => return Err(Error::new(-4056, "RSA API key is not supported.")),
            Some(Algorithm::Ed25519) | None => {}
        }
        params.required("signature")?;
        let asker = self.asker(params, Permission::Read, Allowance::Requests)?;
        params.finish()?;
        let Asker { account, caller, .. } = asker;
        let patience = Duration::from_millis(app.config.websocket.write_timeout_ms);
        let may_command = caller.permissions.allow(Permission::Trade) && app.venue.log_nonce(caller.nonce, patience).await?;
        let since_ms = app.now_ms();
        self.logged_on = Some(LoggedOn { api_key, caller, account, since_ms, may_command });
        Ok(self.status())
    }

    fn status(&self) -> Value {
        let on = self.logged_on.as_ref();
        json!({
            "apiKey": on.map(|on| on.api_key.as_str()),
            "authorizedSince": on.map(|on| on.since_ms),
            "connectedSince": self.connected_ms,
            "returnRateLimits": true,
            "serverTime": self.line.app.now_ms(),
            "userDataStream": !self.users.is_empty(),
        })
    }

    async fn listen(&mut self, of: (AccountId, String)) -> Result<Value, Error> {
        if self.users.len() >= USERS_MAX {
            return Err(Error::new(-2042, "Maximum subscription ID reached for this connection."));
        }
        let (id, queue) = (self.next_user, self.line.listener.queue.clone());
        self.next_user += 1;
        self.line.is_used = true;
        let name = id.to_string();
        let user = UserStream::start(self.line.app.clone(), of, Kept::Key, &name, queue).await;
        self.users.insert(name, user);
        Ok(json!({"subscriptionId": id}))
    }

    fn unsubscribe(&mut self, params: &Params) -> Result<Value, Error> {
        match params.number("subscriptionId")? {
            Some(id) => self.users.remove(&id.to_string()).map(|_| ()).ok_or_else(inactive)?,
            None if self.users.is_empty() => return Err(inactive()),
            None => self.users.clear(),
        }
        Ok(json!({}))
    }
}

/// What shows market data; `None` of another method.
async fn market_data(app: &App, method: &str, params: &Params) -> Option<Result<Value, Error>> {
    Some(match method {
        "depth" => market::depth_of(app, params).await,
        "trades.recent" => market::trades_of(app, params).await,
        // Some name their key here, as they had to once.
        "trades.historical" => match params.text("apiKey") {
            Ok(_) => market::historical_trades_of(app, params).await,
            Err(error) => Err(error),
        },
        "trades.aggregate" => market::aggregate_trades_of(app, params).await,
        "klines" | "uiKlines" => market::klines_of(app, params).await,
        "avgPrice" => market::average_price_of(app, params).await,
        "ticker.24hr" => market::ticker_day_of(app, params).await,
        "ticker.tradingDay" => market::ticker_trading_day_of(app, params).await,
        "ticker" => market::ticker_window_of(app, params).await,
        "ticker.price" => market::ticker_price_of(app, params).await,
        "ticker.book" => market::ticker_book_of(app, params).await,
        _ => return None,
    })
}

/// What came of so many orders, which count if they were placed.
fn count_orders(app: &App, account: AccountId, count: u64, placed: Result<Value, Error>) -> Result<Value, Error> {
    app.weights().orders(app.now_ms(), account, count * u64::from(placed.is_ok()));
    placed
}

fn inactive() -> Error {
    Error::new(-2036, "User Data Stream subscription not active.")
}

fn number(name: &str) -> u64 {
    name.parse().unwrap_or_default()
}

/// Weight of a request, as the dialect has it.
fn weight(method: &str, params: &Params) -> u32 {
    let has = |name: &str| params.has(name);
    let symbols = || weights::symbols(has("symbol"), params.sent("symbols"));
    match method {
        "exchangeInfo" | "account.status" | "account.commission" | "allOrders" | "allOrderLists" => 20,
        "account.rateLimits.orders" | "myFilters" => 40,
        "myTrades" => weights::of_own_trades(has("orderId")),
        "depth" => weights::of_depth(params.sent("limit")),
        "trades.recent" | "trades.historical" => 25,
        "trades.aggregate" | "order.status" | "order.amend.keepPriority" | "orderList.status" => 4,
        "ticker.24hr" => weights::of_day(symbols()),
        "ticker" | "ticker.tradingDay" => weights::of_window(symbols()),
        "ticker.price" | "ticker.book" => weights::of_prices(has("symbol")),
        "openOrders.status" if !has("symbol") => 80,
        "openOrders.status" | "openOrderLists.status" => 6,
        "klines" | "uiKlines" | "avgPrice" => 2,
        "session.logon" | "userDataStream.subscribe" | "userDataStream.subscribe.signature" => 2,
        "userDataStream.start" | "userDataStream.ping" | "userDataStream.stop" => 2,
        _ => 1,
    }
}

/// An event of an account's stream.
fn written(out: Out) -> Option<String> {
    match out {
        Out::User(name, text) => Some(format!(r#"{{"subscriptionId":{name},"event":{}}}"#, text.as_str())),
        Out::Market(..) | Out::UserEnded(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_dialect() {
        let of = |method: &str, sent: &str| weight(method, &params(&serde_json::from_str(sent).unwrap()).unwrap());
        assert_eq!((of("ticker", r#"{"symbol": "A"}"#), of("ticker", r#"{"symbols": ["A", "B"]}"#)), (4, 8));
        assert_eq!((of("ticker.24hr", "{}"), of("ticker.24hr", r#"{"symbols": ["A"]}"#), of("ticker.price", "{}")), (80, 2, 4));
        assert_eq!((of("depth", "{}"), of("depth", r#"{"limit": 1000}"#), of("myTrades", r#"{"orderId": 1}"#)), (5, 50, 5));
        assert_eq!((of("openOrders.status", "{}"), of("openOrders.status", r#"{"symbol": "A"}"#)), (80, 6));
        assert_eq!((of("order.amend.keepPriority", "{}"), of("ping", "{}")), (4, 1));
        // However they are written.
        assert_eq!((of("depth", r#"{"limit": "\u0031000"}"#), of("ticker", r#"{"symbols": "[\"A\"\u002c\"B\"]"}"#)), (50, 8));
        assert_eq!((of("ticker.24hr", r#"{"symbol": null}"#), of("openOrders.status", r#"{"symbol": null}"#)), (80, 80));
    }
}
