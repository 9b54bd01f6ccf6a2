//! Requests in Binance's dialect, as attackers and the well-behaved client send them.

use serde_json::{Value, json};
use walras_access::now;
use walras_gateway::ClientKey;

/// Milliseconds since the Unix epoch, in which the dialect stamps.
pub(crate) fn now_ms() -> u64 {
    now().0 / 1_000_000
}

/// A request with its parameters, stamp and signature in the query.
pub(crate) fn signed(key: &ClientKey, method: &str, path: &str, parameters: &str) -> Vec<u8> {
    let separator = if parameters.is_empty() { "" } else { "&" };
    signed_text(key, method, path, &format!("{parameters}{separator}timestamp={}", now_ms()))
}

/// The same with a stamp of the caller's choice among the parameters, or none.
pub(crate) fn signed_text(key: &ClientKey, method: &str, path: &str, text: &str) -> Vec<u8> {
    sent(key.key_id().as_str(), method, &format!("{path}?{text}&signature={}", signature(key, text)))
}

/// The signature of a text, as it stands in a query.
pub(crate) fn signature(key: &ClientKey, text: &str) -> String {
    key.sign_text(text.as_bytes()).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// A request that names a key.
pub(crate) fn sent(key_id: &str, method: &str, path_and_query: &str) -> Vec<u8> {
    format!("{method} {path_and_query} HTTP/1.1\r\nhost: venue\r\nx-mbx-apikey: {key_id}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

/// The parameters of an order that rests far below the market.
pub(crate) fn resting(id: u64) -> String {
    format!("symbol=BTCUSD&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.001&price=29000&newClientOrderId={id}")
}

/// The same for the WebSocket API.
pub(crate) fn resting_parameters(id: u64) -> Value {
    json!({
        "symbol": "BTCUSD", "side": "BUY", "type": "LIMIT", "timeInForce": "GTC", "quantity": "0.001", "price": "29000",
        "newClientOrderId": id.to_string(), "timestamp": now_ms(),
    })
}

/// Adds key, stamp and signature to the parameters of a request of the WebSocket API: what is signed are all of them, by name.
pub(crate) fn sign_parameters(key: &ClientKey, parameters: &mut Value) {
    parameters["apiKey"] = key.key_id().as_str().into();
    parameters["timestamp"] = now_ms().into();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut all: Vec<String> =
        parameters.as_object().into_iter().flatten().map(|(name, value)| format!("{name}={}", text(value))).collect();
    all.sort_unstable();
    parameters["signature"] = key.sign_text(all.join("&").as_bytes()).into();
}
