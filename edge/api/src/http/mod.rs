//! The HTTP side: routes, answers, and the server under them.

mod account;
mod admin;
mod batch_admin;
mod batch_proofs;
mod batches;
mod bounds;
mod brackets;
mod carry;
mod clock;
mod cluster;
mod consistency;
mod cors;
mod error;
mod exposition;
mod fair_access;
mod health;
mod history;
mod latency;
mod market;
mod openapi;
mod orders;
mod page;
mod pools;
mod reading;
mod records;
mod sessions;
mod shards;
mod signed;
mod visits;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post};
use serde::Serialize;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tracing::error;
use walras_access::{Access, Refusal};
use walras_clock_sync::Source;
use walras_config::Config;
use walras_gateway::Allowance;
use walras_ports::{Shards, VenueHandle};
use walras_types::RejectReason;

pub(crate) use bounds::bound_met;
pub(crate) use brackets::{carry_out_many, enter_bracket};
pub(crate) use carry::{CameOf, send};
pub use error::{ApiError, status_of};
pub use history::day_view;
pub use openapi::{ASYNC_DOCUMENT as ASYNCAPI_YAML, DOCUMENT as OPENAPI_YAML};
pub(crate) use orders::{fresh_or_numbered, results, send_one};
pub(crate) use records::read_reports;
pub use walras_http_port::{OPERATOR_PLACES, Server, ServerError};
pub(crate) use walras_http_port::{Place, place_of, stopped};

/// What every request needs. Clones share it: a request is given many.
#[derive(Clone, Debug)]
pub struct App(Arc<AppParts>);

impl From<AppParts> for App {
    fn from(parts: AppParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}

/// What an [`App`] gives.
#[derive(Debug)]
pub struct AppParts {
    /// The market.
    pub venue: VenueHandle,
    /// Who may do what.
    pub access: Arc<Access>,
    /// Limits.
    pub config: Arc<Config>,
    /// The venue's time at this node, where it keeps it.
    pub clock: Option<Source>,
    /// The other shards, where there are any.
    pub shards: Option<Shards>,
    /// Where requests are served, and the sessions of those who have logged on.
    pub requests: tokio::runtime::Handle,
    /// Where the sessions of all other readers are served: however many there are and whatever they do, requests do not wait for them.
    pub readers: tokio::runtime::Handle,
    /// Where long answers are made (`reading`): next to those sessions, which may be thousands, and not behind them.
    pub lists: tokio::runtime::Handle,
    /// Tells sessions that the server stops.
    pub stopping: tokio::sync::watch::Receiver<bool>,
}

/// An answer in JSON.
pub type Answer = Result<Response, ApiError>;

/// 200 with a body.
fn ok(body: &impl Serialize) -> Response {
    match serde_json::to_string(body) {
        Ok(text) => (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(e) => {
            error!("an answer has no form in JSON: {e}; please report this with the request that was answered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Where WebSockets are opened.
const SOCKET: &str = "/v1/ws";

macro_rules! routes {
    ($($method:ident $path:literal => $handler:expr;)*) => {
        /// Every route, for the test that compares them with `openapi.yaml`.
        pub const ROUTES: &[(&str, &str)] = &[$((stringify!($method), $path),)* ("get", SOCKET)];

        fn routes(socket: MethodRouter<App>) -> Router<App> {
            Router::new()$(.route($path, route(stringify!($method), $method($handler))))*.route(SOCKET, socket)
        }
    };
}

fn route(_: &str, method: MethodRouter<App>) -> MethodRouter<App> {
    method
}

routes! {
    get "/v1/status" => market::status;
    get "/v1/time" => market::time;
    get "/v1/clock" => clock::clock;
    get "/v1/latency" => latency::latency;
    get "/v1/assets" => market::assets;
    get "/v1/instruments" => market::instruments;
    get "/v1/instruments/{instrument}/book" => market::book;
    get "/v1/instruments/{instrument}/book/orders" => market::book_orders;
    get "/v1/instruments/{instrument}/auction" => market::auction;
    get "/v1/instruments/{instrument}/ticker" => market::ticker;
    get "/v1/instruments/{instrument}/trades" => market::trades;
    get "/v1/instruments/{instrument}/candles" => market::candles;
    get "/v1/history/trades" => history::trades;
    get "/v1/history/books" => history::books;
    get "/v1/history/days" => history::days;
    get "/v1/history/days/{day}/{file}" => history::file;
    get "/v1/batches" => batches::list;
    get "/v1/batches/{batch}/blocks" => batches::blocks;
    get "/v1/batches/{batch}/blocks/{block}/header" => batches::header;
    get "/v1/batches/{batch}/demand" => batches::demand;
    post "/v1/batches/{batch}/transactions" => batches::submit;
    get "/v1/batches/{batch}/proofs/block" => batch_proofs::block_proof;
    get "/v1/batches/{batch}/proofs/transaction/{sequence}" => batch_proofs::transaction_proof;
    get "/v1/batches/{batch}/proofs/account/{account_id}" => batch_proofs::account_proof;
    get "/v1/batches/{batch}/proofs/offer" => batch_proofs::offer_proof;
    get "/v1/batches/{batch}/pools" => pools::list;
    get "/v1/batches/{batch}/proofs/pool" => pools::pool_proof;
    get "/v1/batches/{batch}/proofs/shares" => pools::shares_proof;
    get "/v1/shares" => pools::shares;
    get "/v1/offers" => batches::offers;
    get "/v1/transactions" => batches::transactions;
    get "/v1/account" => account::account;
    get "/v1/account/transfers" => shards::transfers;
    post "/v1/account/transfers" => shards::transfer_out;
    get "/v1/orders" => account::orders;
    get "/v1/orders/closed" => records::closed_orders;
    get "/v1/orders/{instrument}/{client_order_id}" => records::order;
    get "/v1/fills" => records::fills;
    get "/v1/reports" => records::reports;
    post "/v1/orders/batch" => orders::many;
    get "/v1/cancel-after" => orders::cancel_time;
    post "/v1/cancel-after" => orders::cancel_after;
    get "/v1/sessions" => sessions::list;
    post "/v1/sessions" => sessions::open;
    post "/v1/orders" => orders::enter;
    delete "/v1/orders" => orders::mass_cancel;
    delete "/v1/orders/{instrument}/{client_order_id}" => orders::cancel;
    patch "/v1/orders/{instrument}/{client_order_id}" => orders::amend;
    post "/v1/admin/assets" => admin::create_asset;
    post "/v1/admin/instruments" => admin::create_instrument;
    post "/v1/admin/accounts" => admin::create_account;
    get "/v1/admin/accounts" => admin::accounts;
    get "/v1/admin/accounts/{account_id}" => admin::account;
    post "/v1/admin/account-status" => admin::set_account_status;
    post "/v1/admin/deposits" => admin::deposit;
    post "/v1/admin/withdrawals" => admin::withdraw;
    get "/v1/admin/fees" => admin::fees;
    post "/v1/admin/fees" => admin::collect_fees;
    post "/v1/admin/limits" => admin::set_limits;
    post "/v1/admin/phases" => admin::set_phase;
    post "/v1/admin/keys" => admin::create_key;
    get "/v1/admin/keys" => admin::keys;
    delete "/v1/admin/keys/{key_id}" => admin::revoke_key;
    post "/v1/admin/account-keys" => batch_admin::set_account_key;
    post "/v1/admin/issuers" => batch_admin::set_issuer;
    post "/v1/admin/batches" => batch_admin::create_batch;
    post "/v1/admin/batch-phases" => batch_admin::set_batch_phase;
    post "/v1/admin/account-fees" => batch_admin::set_account_fee;
    post "/v1/admin/snapshots" => admin::snapshot;
    post "/v1/admin/instrument-shards" => shards::assign_instrument;
    post "/v1/admin/transfers/in" => shards::transfers_in;
    get "/v1/shards" => shards::directory;
    get "/v1/cluster" => cluster::status;
    get "/v1/fair-access" => fair_access::status;
    post "/v1/admin/cluster/transfer" => cluster::transfer;
    post "/v1/admin/cluster/add" => cluster::add;
    post "/v1/admin/cluster/remove" => cluster::remove;
    post "/v1/admin/cluster/engine-version" => cluster::set_engine_version;
    post "/v1/admin/cluster/faults" => cluster::faults;
    get "/openapi.yaml" => openapi::yaml;
    get "/openapi.json" => openapi::json;
    get "/asyncapi.yaml" => openapi::asyncapi;
    get "/asyncapi.json" => openapi::async_json;
    get "/docs" => openapi::page;
    get "/docs/websocket" => openapi::socket_page;
    get "/docs/reader.js" => openapi::reader;
    get "/docs/websocket.js" => openapi::socket_reader;
    get "/docs/shapes.js" => openapi::shapes;
    get "/docs/style.css" => openapi::style;
    get "/metrics" => market::metrics;
    get "/healthz" => health::live;
    get "/readyz" => health::ready;
}

/// The whole service, with what opens WebSockets.
pub(crate) fn router(app: App, socket: MethodRouter<App>) -> Router {
    let patience = Duration::from_millis(app.config.http.request_timeout_ms);
    let lists = reading::Lists { threads: app.lists.clone(), patience };
    routes(socket)
        .fallback(page::serve)
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            let refusal = Refusal::new(RejectReason::NotFound, format!("{method} {}", uri.path()));
            ApiError::with_status(refusal, StatusCode::METHOD_NOT_ALLOWED)
        })
        .layer(axum::middleware::from_fn_with_state(app.clone(), hold_public))
        .layer(axum::middleware::from_fn_with_state(app.clone(), consistency::of_reads))
        .layer(axum::middleware::from_fn_with_state(app.clone(), cluster::name_leader))
        .layer(axum::middleware::from_fn_with_state(app.clone(), in_time))
        .layer(axum::middleware::from_fn_with_state(app.clone(), cors::share))
        .layer(CompressionLayer::new().compress_when(SizeAbove::new(1024).and(NotForContentType::const_new(history::PARQUET))))
        .layer(axum::middleware::from_fn_with_state(lists, reading::among_lists))
        .layer(axum::middleware::from_fn(security_headers))
        .with_state(app)
}

/// From which allowance of its address a request is paid. The dead man's switch is one for cancels, as for a key: an address from which too
/// much is sent must not have it fire.
fn allowance(request: &Request) -> Allowance {
    let path = request.uri().path();
    let is_cancel = match *request.method() {
        Method::DELETE => path.starts_with("/v1/orders"),
        Method::POST => path == "/v1/cancel-after",
        _ => false,
    };
    if is_cancel { Allowance::Cancels } else { Allowance::Requests }
}

/// Whether it asks for something to read. What answers GET answers HEAD, too, and says how long the answer is.
fn is_read(request: &Request) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

/// Counts a request against its address and ends it when it takes too long.
async fn in_time(State(app): State<App>, request: Request, next: Next) -> Response {
    let place = place_of(&request);
    place.touch();
    // A flood through the address of the venue's probes must not have it restarted.
    if request.uri().path() != health::LIVE
        && let Some(source) = place.counted_source()
        && let Err(refusal) = app.access.admit_source(source, allowance(&request))
    {
        return ApiError::from(refusal).into_response();
    }
    match tokio::time::timeout(Duration::from_millis(app.config.http.request_timeout_ms), next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = "no answer in time; a command may still be applied: send it again if it has a session's number, else look at the open orders first";
            ApiError::from(Refusal::new(RejectReason::Overloaded, detail)).into_response()
        }
    }
}

/// What shows market data, or how much of it there is: books and trades, and figures that count what is applied.
const PUBLIC: [&str; 8] =
    ["/v1/instruments", "/v1/batches", "/v1/history", "/v1/status", "/v1/cluster", "/v1/fair-access", "/v1/latency", "/metrics"];

fn is_public(request: &Request) -> bool {
    is_read(request) && PUBLIC.iter().any(|open| request.uri().path().starts_with(open))
}

/// Where market data is held, an answer that shows it waits as long: what it shows was made by now, and may be known by then.
async fn hold_public(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_public = is_public(&request);
    let response = next.run(request).await;
    let wait = app.venue.public_in();
    if is_public && !wait.is_zero() {
        // pause: nobody may know it sooner
        tokio::time::sleep(wait).await;
    }
    response
}

const SECURITY_HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, "default-src 'self'"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

async fn security_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in SECURITY_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(method: Method, path: &str) -> Request {
        Request::builder().method(method).uri(path).body(Body::empty()).unwrap()
    }

    #[test]
    fn how_long_an_answer_is_says_something_of_it_too() {
        let is_held = |method, path| is_public(&request(method, path));
        assert!(is_held(Method::GET, "/v1/instruments/BTC-USD/trades") && is_held(Method::HEAD, "/v1/instruments/BTC-USD/trades"));
        assert!(!is_held(Method::POST, "/v1/batches/b/transactions") && !is_held(Method::GET, "/v1/orders"));
    }

    #[test]
    fn cancels_and_the_dead_mans_switch_have_an_allowance_of_their_own() {
        for (method, path, from) in [
            (Method::DELETE, "/v1/orders", Allowance::Cancels),
            (Method::DELETE, "/v1/orders/BTC-USD/7", Allowance::Cancels),
            (Method::POST, "/v1/cancel-after", Allowance::Cancels),
            (Method::GET, "/v1/cancel-after", Allowance::Requests),
            (Method::POST, "/v1/orders", Allowance::Requests),
            (Method::DELETE, "/v1/admin/keys/k", Allowance::Requests),
        ] {
            assert_eq!(allowance(&request(method, path)), from, "{path}");
        }
    }
}
