//! How a client signs its requests.

use std::collections::BTreeMap;

use walras_access::now;
use walras_gateway::{AuthFields, ClientKey, Request};
use walras_types::TimeNs;

/// Signs a request now, with a fresh nonce.
#[must_use]
pub fn sign(key: &ClientKey, request: &Request<'_>) -> AuthFields {
    sign_at(now(), key, request)
}

/// Signs a request with a stamp of the caller's choice and a fresh nonce.
#[must_use]
pub fn sign_at(stamp: TimeNs, key: &ClientKey, request: &Request<'_>) -> AuthFields {
    let mut entropy = [0; 16];
    getrandom::fill(&mut entropy).expect("the operating system gives random bytes");
    key.sign(request, stamp.0, &walras_gateway::generate_nonce(&entropy))
}

/// The headers of a signed request.
#[must_use]
pub fn headers(fields: &AuthFields) -> BTreeMap<&'static str, &str> {
    [
        ("Walras-Key", fields.key.as_str()),
        ("Walras-Timestamp", fields.timestamp.as_str()),
        ("Walras-Nonce", fields.nonce.as_str()),
        ("Walras-Signature", fields.signature.as_str()),
    ]
    .into()
}
