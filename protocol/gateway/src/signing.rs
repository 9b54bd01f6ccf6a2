//! The bytes that a request's signature covers.

use crate::key::{hex, sha256};

/// The parts of a request that its signature covers, in addition to timestamp and nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The HTTP method in capitals; `WS` for the WebSocket's `auth` message.
    pub method: &'a str,
    /// The path with its query exactly as sent, such as `/v1/orders?instrument=BTC-USD`; `/v1/ws` for the WebSocket.
    pub path: &'a str,
    /// The body exactly as sent; empty where there is none.
    pub body: &'a [u8],
}

impl Request<'static> {
    /// What a WebSocket's `auth` message signs.
    pub const WEB_SOCKET: Self = Self { method: "WS", path: "/v1/ws", body: b"" };
}

/// The four texts that authenticate a request: the headers `Walras-Key`, `Walras-Timestamp`, `Walras-Nonce` and `Walras-Signature`,
/// or the fields of an `auth` message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthFields {
    /// The key's id.
    pub key: String,
    /// Nanoseconds since the Unix epoch, in digits.
    pub timestamp: String,
    /// 1 to 64 visible ASCII characters, new for each request of a key.
    pub nonce: String,
    /// The signature in base64url without padding: 64 bytes (Ed25519) or 32 (HMAC-SHA256).
    pub signature: String,
}

/// The bytes that are signed: a version, then method, path, stamp, nonce and the body's SHA-256 in hexadecimal, separated by line
/// feeds. No part before the last may contain a line feed ([`crate::Gateway`] refuses it), so no two requests have the same bytes.
#[must_use]
pub fn signed_bytes(request: &Request<'_>, timestamp: &str, nonce: &str) -> Vec<u8> {
    let body_hash = hex(&sha256(request.body));
    ["walras-v1", request.method, request.path, timestamp, nonce, &body_hash].join("\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_bytes_are_as_documented() {
        let request = Request { method: "POST", path: "/v1/orders?x=1", body: b"abc" };
        let text = String::from_utf8(signed_bytes(&request, "17", "n-1")).unwrap();
        assert_eq!(
            text,
            "walras-v1\nPOST\n/v1/orders?x=1\n17\nn-1\nba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let empty = String::from_utf8(signed_bytes(&Request::WEB_SOCKET, "0", "n")).unwrap();
        assert_eq!(empty, "walras-v1\nWS\n/v1/ws\n0\nn\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
