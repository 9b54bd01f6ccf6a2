//! Long answers are made by threads that stand back for those that serve requests and orders: a list of a thousand orders takes
//! milliseconds to write as JSON and to compress, and nobody who trades waits for that. Sessions of readers stand back too, on other
//! threads: a publication for three hundred of them takes milliseconds as well.

use std::panic::resume_unwind;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tracing::error;
use walras_access::Refusal;
use walras_types::RejectReason;

use super::{ApiError, history, is_read};

/// Where answers may hold very many entries.
const LISTS: [&str; 10] = [
    "/v1/orders",
    "/v1/fills",
    "/v1/offers",
    "/v1/transactions",
    "/v1/shares",
    "/v1/account/transfers",
    "/v1/instruments",
    "/v1/history",
    "/v1/batches",
    "/v1/admin/accounts",
];

fn is_list(request: &Request) -> bool {
    let path = request.uri().path();
    is_read(request) && LISTS.iter().any(|list| path.starts_with(list))
}

/// Where such answers are made, and how long one may take.
#[derive(Clone)]
pub(super) struct Lists {
    pub(super) threads: Handle,
    pub(super) patience: Duration,
}

/// Answers such a request, its compression included, on these threads. When its client goes, it ends. Where those threads get no
/// processor in time, it is refused.
pub(super) async fn among_lists(State(lists): State<Lists>, request: Request, next: Next) -> Response {
    if !is_list(&request) {
        return next.run(request).await;
    }
    let mut tasks = JoinSet::new();
    tasks.spawn_on(async move { made(next.run(request).await).await }, &lists.threads);
    let refused = |reason, detail: &str| ApiError::from(Refusal::new(reason, detail)).into_response();
    match tokio::time::timeout(lists.patience, tasks.join_next()).await {
        Ok(Some(Ok(response))) => response,
        Ok(Some(Err(e))) if e.is_panic() => resume_unwind(e.into_panic()),
        Ok(Some(Err(_)) | None) => refused(RejectReason::VenueNotReady, "the venue stops: try again when it is back"),
        Err(_) => refused(RejectReason::Overloaded, "no answer in time, since orders come first: read it again later"),
    }
}

/// The answer with all of its bytes: what writes or compresses them runs here. A file of the archive is sent as it is read.
async fn made(response: Response) -> Response {
    let is_file = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == history::PARQUET);
    if is_file {
        return response;
    }
    let (parts, body) = response.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(bytes) => Response::from_parts(parts, Body::from(bytes)),
        Err(e) => {
            error!("an answer could not be made: {e}; please report this with the request that was answered");
            axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use axum::Router;
    use axum::http::Method;
    use axum::routing::get;
    use tower::ServiceExt;
    use tower_http::compression::CompressionLayer;

    use super::*;

    fn threads(name: &str) -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build().unwrap()
    }

    async fn here() -> String {
        std::thread::current().name().unwrap_or_default().repeat(1_000)
    }

    fn at(lists: &tokio::runtime::Runtime, patience: Duration) -> Lists {
        Lists { threads: lists.handle().clone(), patience }
    }

    #[test]
    fn a_list_for_which_there_is_no_thread_is_refused_in_time() {
        let (requests, lists) = (threads("requests"), threads("lists"));
        let (held, holds) = std::sync::mpsc::channel::<()>();
        // Their only thread waits for as long as the test goes on.
        lists.spawn(async move { holds.recv() });
        let router = Router::new()
            .route("/v1/orders", get(here))
            .layer(axum::middleware::from_fn_with_state(at(&lists, Duration::from_millis(10)), among_lists));
        let request = Request::builder().uri("/v1/orders").body(Body::empty()).unwrap();
        let response = requests.block_on(requests.spawn(router.oneshot(request))).unwrap().unwrap();
        assert_eq!(response.status(), super::super::status_of(RejectReason::Overloaded));
        drop(held);
    }

    /// Where an answer to a request is made.
    fn made_by(method: Method, path: &str) -> String {
        let (requests, lists) = (threads("requests"), threads("lists"));
        let router = Router::new()
            .route("/v1/status", get(here))
            .route("/v1/orders", get(here).post(here))
            .route("/v1/instruments/{instrument}/book", get(here))
            .layer(CompressionLayer::new())
            .layer(axum::middleware::from_fn_with_state(at(&lists, Duration::from_secs(60)), among_lists));
        let request =
            Request::builder().method(method).uri(path).header(header::ACCEPT_ENCODING, "gzip").body(Body::empty()).unwrap();
        let asked = requests.spawn(async move {
            let response = router.oneshot(request).await.unwrap();
            assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
            to_bytes(response.into_body(), usize::MAX).await.unwrap()
        });
        let bytes = requests.block_on(asked).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text.len() % 1_000, 0);
        text[..text.len() / 1_000].to_owned()
    }

    #[test]
    fn lists_are_made_by_their_own_threads_and_nothing_else_is() {
        assert_eq!(made_by(Method::GET, "/v1/orders"), "lists");
        assert_eq!(made_by(Method::GET, "/v1/instruments/BTC-USD/book"), "lists");
        assert_eq!(made_by(Method::POST, "/v1/orders"), "requests");
        assert_eq!(made_by(Method::GET, "/v1/status"), "requests");
        let head = Request::builder().method(Method::HEAD).uri("/v1/orders").body(Body::empty()).unwrap();
        assert!(is_list(&head), "it is made like the answer whose length it says");
    }
}
