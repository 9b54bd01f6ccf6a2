//! Errors of the dialect, and which of them each reason of the venue is.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_ports::NoOutcome;
use walras_types::RejectReason;

/// An error on its way to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Error {
    /// The HTTP status.
    pub(crate) status: StatusCode,
    /// The dialect's number.
    pub(crate) code: i32,
    /// Its text.
    pub(crate) text: String,
    /// What else the body holds.
    pub(crate) data: Option<Value>,
    /// Seconds to wait.
    pub(crate) retry_after_s: Option<u64>,
}

/// What was asked: some reasons have another number in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A new order.
    Order,
    /// The end of an order.
    Cancel,
    /// A smaller size of an order.
    Amend,
    /// Anything else.
    Other,
}

impl Error {
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, text: text.into(), data: None, retry_after_s: None }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn missing(name: &str) -> Self {
        Self::new(-1102, format!("Mandatory parameter '{name}' was not sent, was empty/null, or malformed."))
    }

    pub(crate) fn illegal(name: &str, range: &str) -> Self {
        Self::new(-1100, format!("Illegal characters found in parameter '{name}'; legal range is '{range}'."))
    }

    pub(crate) fn invalid(name: &str) -> Self {
        Self::new(-1130, format!("Data sent for parameter '{name}' is not valid."))
    }

    /// It is no request of the dialect here.
    pub(crate) fn unsupported() -> Self {
        Self::new(-1020, "This operation is not supported.")
    }

    pub(crate) fn combination() -> Self {
        Self::new(-1128, "Combination of optional parameters invalid.")
    }

    pub(crate) fn symbol() -> Self {
        Self::new(-1121, "Invalid symbol.")
    }

    pub(crate) fn no_such_order() -> Self {
        Self::new(-2013, "Order does not exist.")
    }

    pub(crate) fn key_format() -> Self {
        Self::new(-2014, "API-key format invalid.").with_status(StatusCode::UNAUTHORIZED)
    }

    pub(crate) fn key() -> Self {
        Self::new(-2015, "Invalid API-key, IP, or permissions for action.").with_status(StatusCode::UNAUTHORIZED)
    }

    pub(crate) fn filter(name: &str) -> Self {
        Self::new(-1013, format!("Filter failure: {name}"))
    }

    pub(crate) fn in_doubt() -> Self {
        let text = "Timeout waiting for response from backend server. Send status unknown; execution status unknown.";
        Self::new(-1007, text).with_status(StatusCode::GATEWAY_TIMEOUT)
    }

    /// Whether what was asked may have been carried out.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.code == Self::in_doubt().code
    }

    pub(crate) fn of(asked: Asked, reason: RejectReason) -> Self {
        of_reason(asked, reason)
    }

    /// As JSON.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({"code": self.code, "msg": self.text});
        if let Some(data) = &self.data {
            body["data"] = data.clone();
        }
        body
    }
}

/// Advice of the venue's own, for what the dialect has no text.
fn unavailable(code: i32, reason: RejectReason) -> Error {
    Error::new(code, reason.advice()).with_status(StatusCode::SERVICE_UNAVAILABLE)
}

fn of_reason(asked: Asked, reason: RejectReason) -> Error {
    use RejectReason as R;
    let rejected = match asked {
        Asked::Order | Asked::Other => -2010,
        Asked::Cancel => -2011,
        Asked::Amend => -2038,
    };
    let said = |text: &str| Error::new(rejected, text);
    match reason {
        R::UnknownInstrument => Error::symbol(),
        R::UnknownOrder => match asked {
            Asked::Order | Asked::Other => Error::no_such_order(),
            Asked::Cancel | Asked::Amend => said("Unknown order sent."),
        },
        R::DuplicateClientOrderId => said("Duplicate order sent."),
        R::AccountSuspended => said("This account may not place or cancel orders."),
        R::PriceOutOfRange | R::PriceNotOnTick => Error::filter("PRICE_FILTER"),
        R::SizeOutOfRange | R::SizeNotOnLot | R::OrderTooLarge => Error::filter("LOT_SIZE"),
        R::ValueOverflow | R::OrderValueTooLarge => Error::filter("NOTIONAL"),
        R::DisplayInvalid => Error::filter("ICEBERG_PARTS"),
        R::PriceOutsideCollar => Error::filter("PERCENT_PRICE"),
        R::TrailInvalid => Error::filter("TRAILING_DELTA"),
        R::TooManyOpenOrders => Error::filter("MAX_NUM_ORDERS"),
        R::BookFull => Error::filter("EXCHANGE_MAX_NUM_ORDERS"),
        R::PositionLimit => Error::filter("MAX_POSITION"),
        // All that an amendment says here is the size.
        R::AmendInvalid => said("The requested action would change no state; rejecting."),
        R::PostOnlyWouldTrade => said("Order would immediately match and take."),
        R::StopWouldTrigger => said("Order would trigger immediately."),
        R::PhaseTakesNoOrders | R::PhaseNoImmediate => said("Market is closed."),
        R::InsufficientFunds => said("Account has insufficient balance for requested action."),
        R::PostOnlyInvalid | R::TimeInForceInvalid => Error::new(-1014, "Unsupported order combination."),
        R::UnknownKey | R::KeyExpired | R::Forbidden => Error::key(),
        R::Unauthenticated => Error::key_format(),
        R::SignatureInvalid => Error::new(-1022, "Signature for this request is not valid."),
        R::TimestampStale => Error::new(-1021, "Timestamp for this request is outside of the recvWindow."),
        R::NonceReused => Error::new(
            -1021,
            "Timestamp for this request was used already: the same text was accepted before, sign it with a new one.",
        ),
        R::Throttled => {
            let text = "Too much request weight used; please use WebSocket Streams for live updates to avoid polling the API.";
            Error { retry_after_s: Some(1), ..Error::new(-1003, text).with_status(StatusCode::TOO_MANY_REQUESTS) }
        }
        R::TooLarge => Error::new(-1013, R::TooLarge.advice()).with_status(StatusCode::PAYLOAD_TOO_LARGE),
        R::Overloaded | R::BookBusy => unavailable(-1008, reason),
        R::VenueNotReady | R::StorageFull | R::NotLeader | R::NeedsLaterVersion => unavailable(-1001, reason),
        R::NotFound => Error::unsupported().with_status(StatusCode::NOT_FOUND),
        _ => said(reason.advice()),
    }
}

impl From<RejectReason> for Error {
    fn from(reason: RejectReason) -> Self {
        Self::of(Asked::Other, reason)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        refusal.reason.into()
    }
}

/// The error of a command without an outcome.
pub(crate) fn without_outcome(asked: Asked, why: NoOutcome) -> Error {
    match why {
        NoOutcome::InDoubt(_) => Error::in_doubt(),
        NoOutcome::Refused(reason) => Error::of(asked, reason),
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")], self.body().to_string()).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Puts a number into a header.
pub(crate) fn put_number(response: &mut Response, name: &'static str, number: u64) {
    response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from(number));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_an_error_of_the_dialect() {
        for &reason in RejectReason::ALL {
            for asked in [Asked::Order, Asked::Cancel, Asked::Amend, Asked::Other] {
                let error = Error::of(asked, reason);
                assert!((-2100..=-1000).contains(&error.code) && !error.text.is_empty(), "{reason:?}: {error:?}");
                assert!(error.status.as_u16() >= 400, "{reason:?}: {error:?}");
            }
        }
        assert_eq!(Error::of(Asked::Cancel, RejectReason::UnknownOrder).code, -2011);
        assert_eq!(Error::of(Asked::Amend, RejectReason::UnknownOrder).code, -2038);
        assert_eq!(Error::of(Asked::Other, RejectReason::UnknownOrder).code, -2013);
    }
}
