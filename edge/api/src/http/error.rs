//! Refusals as HTTP answers.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use walras_access::Refusal;
use walras_ports::NoOutcome;
use walras_types::RejectReason;

use crate::json::views;

/// A refusal on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// Why.
    pub refusal: Refusal,
    /// Where the usual status of the reason does not fit.
    pub status: Option<StatusCode>,
}

impl ApiError {
    /// With a status of its own.
    #[must_use]
    pub fn with_status(refusal: impl Into<Refusal>, status: StatusCode) -> Self {
        Self { refusal: refusal.into(), status: Some(status) }
    }
}

impl From<RejectReason> for ApiError {
    fn from(reason: RejectReason) -> Self {
        Self { refusal: reason.into(), status: None }
    }
}

impl From<NoOutcome> for ApiError {
    fn from(why: NoOutcome) -> Self {
        match why {
            // Not elsewhere: whether it was carried out is not known, so it must not be sent to another replica just so.
            NoOutcome::InDoubt(_) => Self::with_status(why, StatusCode::SERVICE_UNAVAILABLE),
            NoOutcome::Refused(_) => Refusal::from(why).into(),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, status: None }
    }
}

/// The HTTP status of a reason.
#[must_use]
pub fn status_of(reason: RejectReason) -> StatusCode {
    use RejectReason as R;
    match reason {
        R::Malformed | R::PriceNotOnTick | R::SizeNotOnLot | R::AmountNotOnUnit => StatusCode::BAD_REQUEST,
        R::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        R::Unauthenticated | R::UnknownKey | R::KeyExpired | R::SignatureInvalid | R::TimestampStale | R::NonceReused => {
            StatusCode::UNAUTHORIZED
        }
        R::Throttled => StatusCode::TOO_MANY_REQUESTS,
        R::Forbidden => StatusCode::FORBIDDEN,
        R::NotFound => StatusCode::NOT_FOUND,
        R::NotLeader => super::cluster::ELSEWHERE,
        R::VenueNotReady | R::StorageFull | R::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        // The market's own reasons, 1 to 99.
        _ => StatusCode::CONFLICT,
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Refusal { reason, detail } = &self.refusal;
        let status = self.status.unwrap_or_else(|| status_of(*reason));
        let mut error = views::error(*reason, detail.as_deref());
        if status == StatusCode::METHOD_NOT_ALLOWED {
            error["message"] = "This address takes other methods: see which ones in the API's description, /openapi.yaml.".into();
        }
        let body = json!({"error": error}).to_string();
        let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_the_status_of_its_group() {
        for &reason in RejectReason::ALL {
            let status = status_of(reason).as_u16();
            if reason.number() < 100 {
                assert_eq!(status, 409, "{reason:?}");
            } else {
                assert!([400, 401, 403, 404, 409, 413, 421, 429, 503].contains(&status), "{reason:?}");
            }
        }
    }
}
