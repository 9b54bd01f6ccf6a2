//! Pages of other origins: those in `http.cors_origins` may read answers and send signed requests, no others.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::App;

const METHODS: &str = "GET, POST, PATCH, DELETE";
const HEADERS: &str = "content-type, walras-key, walras-timestamp, walras-nonce, walras-signature, walras-consistency";
/// A browser asks again after so many seconds.
const REMEMBERED_S: &str = "600";

/// The origin of a request, if the configuration lists it.
fn listed(origins: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    origins.iter().any(|listed| listed == "*" || listed.as_bytes() == origin.as_bytes()).then(|| origin.clone())
}

pub(super) async fn share(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(origin) = listed(&app.config.http.cors_origins, request.headers()) else { return next.run(request).await };
    let asks_before = request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if asks_before { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: HeaderValue| drop(headers.insert(name, value));
    set(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if asks_before {
        set(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        set(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
        set(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED_S));
    }
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_origins_are_let_in() {
        let from = |origin: &'static str| HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static(origin))]);
        let origins = ["https://desk.example".to_owned()];
        assert_eq!(listed(&origins, &from("https://desk.example")), Some(HeaderValue::from_static("https://desk.example")));
        for other in ["https://desk.example.evil.test", "http://desk.example", "null", "https://desk.example/"] {
            assert_eq!(listed(&origins, &from(other)), None, "{other}");
        }
        assert_eq!(listed(&origins, &HeaderMap::new()), None);
        assert_eq!(listed(&[], &from("https://desk.example")), None);
        assert!(listed(&["*".to_owned()], &from("https://desk.example")).is_some());
    }
}
