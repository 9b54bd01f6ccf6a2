//! A request as it came: its parameters, and who signed it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::Method;
use walras_access::{Access, Caller};
use walras_gateway::{Allowance, KeyId, Permission, SignedText};
use walras_http_port::{Place, place_of};
use walras_sequencer::SignedBy;
use walras_types::{AccountId, RejectReason, TimeNs};

use crate::app::App;
use crate::error::Error;
use crate::limits::{FORM_BYTES_MAX, RECV_WINDOW_MS_DEFAULT, RECV_WINDOW_MS_MAX};
use crate::params::{Params, signature, without_signature};

/// Maximum lead of a stamp over the venue's clock, in milliseconds, as the dialect's text says it.
const AHEAD_MS_MAX: u64 = 1_000;
/// From here on a timestamp is in microseconds.
const MICROSECONDS_FROM: u64 = 100_000_000_000_000;

/// Who signed a request.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    /// The account that the key acts for.
    pub(crate) account: AccountId,
    /// The key's permissions and its nonce.
    pub(crate) caller: Caller,
}

impl Signer {
    /// What the log keeps of the signature.
    pub(crate) fn signed(&self) -> SignedBy {
        SignedBy { key: None, nonce: Some(Box::new(self.caller.nonce)) }
    }
}

/// A request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) app: App,
    /// The connection that it came by.
    pub(crate) place: Arc<Place>,
    pub(crate) params: Params,
    key: Option<String>,
    /// What a signature covers.
    text: String,
    signature: Option<String>,
}

impl FromRequest<App> for Call {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        let place = place_of(&request);
        let (parts, body) = request.into_parts();
        let query = parts.uri.query().unwrap_or_default();
        let too_large = || Error::from(RejectReason::TooLarge);
        if query.len() > FORM_BYTES_MAX {
            return Err(too_large());
        }
        // What is asked for by GET is in the query, by which its weight was counted.
        let body = if matches!(parts.method, Method::GET | Method::HEAD) { Body::empty() } else { body };
        let body = axum::body::to_bytes(body, FORM_BYTES_MAX).await.map_err(|_| too_large())?;
        let form = std::str::from_utf8(&body).map_err(|_| Error::new(-1100, "Illegal characters found in a parameter."))?;
        let ((query, in_query), (form, in_form)) = (without_signature(query), without_signature(form));
        let mut params = Params::default();
        params.add_encoded(&query)?;
        params.add_encoded(&form)?;
        let key = parts.headers.get("x-mbx-apikey").and_then(|key| key.to_str().ok()).map(str::to_owned);
        let signature = in_query.or(in_form).map(signature).transpose()?;
        Ok(Self { app: app.clone(), place, params, key, text: query + &form, signature })
    }
}

impl Call {
    /// The account that signed the request and may read.
    pub(crate) fn reader(&self) -> Result<Signer, Error> {
        self.signer(Permission::Read, Allowance::Requests)
    }

    /// The account that signed the request and may trade.
    pub(crate) fn trader(&self) -> Result<Signer, Error> {
        self.signer(Permission::Trade, Allowance::Requests)
    }

    /// The same for a cancel, which a throttled key may still send.
    pub(crate) fn canceller(&self) -> Result<Signer, Error> {
        self.signer(Permission::Trade, Allowance::Cancels)
    }

    /// The key that the request names, whoever sent it.
    pub(crate) fn key(&self) -> Result<&str, Error> {
        self.key.as_deref().filter(|key| KeyId::new(key).is_some()).ok_or_else(Error::key_format)
    }

    fn signer(&self, permission: Permission, from: Allowance) -> Result<Signer, Error> {
        let key = self.key()?;
        let signature = self.signature.as_deref().filter(|signature| !signature.is_empty());
        let signature = signature.ok_or_else(|| Error::missing("signature"))?;
        let signer = signer(&self.app.access, self.app.now(), &self.params, (key, &self.text, signature), (permission, from))?;
        self.place.has_shown(&signer.caller);
        Ok(signer)
    }

    pub(crate) fn is_signed(&self) -> bool {
        self.signature.is_some()
    }
}

/// Who signed a text whose parameters say when.
pub(crate) fn signer(
    access: &Access,
    now: TimeNs,
    params: &Params,
    (key, text, signature): (&str, &str, &str),
    (permission, from): (Permission, Allowance),
) -> Result<Signer, Error> {
    let stamp = params.required("timestamp")?;
    if stamp.len() > 20 || !stamp.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Error::illegal("timestamp", "^[0-9]{1,20}$"));
    }
    let stamp: u64 = stamp.parse().map_err(|_| Error::new(-1108, "Parameter 'timestamp' overflowed."))?;
    let stamp_ns = if stamp >= MICROSECONDS_FROM { stamp.saturating_mul(1_000) } else { stamp.saturating_mul(1_000_000) };
    let window_ms = match params.decimal("recvWindow")? {
        None => RECV_WINDOW_MS_DEFAULT,
        // Parts of a millisecond are below what two clocks agree on.
        Some(text) => text.split('.').next().unwrap_or_default().parse().unwrap_or(u64::MAX),
    };
    if window_ms > RECV_WINDOW_MS_MAX {
        return Err(Error::new(-1131, "recvWindow must be less than 60000."));
    }
    if stamp_ns > now.0.saturating_add(AHEAD_MS_MAX * 1_000_000) {
        return Err(Error::new(-1021, format!("Timestamp for this request was {AHEAD_MS_MAX}ms ahead of the server's time.")));
    }
    let request = SignedText { text: text.as_bytes(), signature, stamp_ns, age_ns_max: window_ms * 1_000_000 };
    let caller = access.authorize_text(key, &request, permission, from)?;
    Ok(Signer { account: caller.account.ok_or_else(Error::key)?, caller })
}
