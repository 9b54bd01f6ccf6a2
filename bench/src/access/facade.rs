//! Signed orders in the dialect of Binance's Spot API.

use anyhow::Context;
use walras_access::now;
use walras_gateway::ClientKey;

use super::Open;
use crate::product::order_pairs::{self, PRICE, Place};
use crate::product::processes::Signing;

/// A request with its signature in the query.
fn request(key: &ClientKey, method: &str, text: &str) -> Vec<u8> {
    let text = format!("{text}&timestamp={}", now().0 / 1_000_000);
    let signature = key.sign_text(text.as_bytes()).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let (path, key) = ("/api/v3/order", key.key_id());
    format!(
        "{method} {path}?{text}&signature={signature} HTTP/1.1\r\nhost: venue\r\nx-mbx-apikey: {key}\r\ncontent-length: 0\r\n\r\n"
    )
    .into_bytes()
}

/// Acknowledged commands a second, signed so: a bid that rests, then its cancel, and so on.
pub(super) fn most_per_second(venue: &Open, signing: Signing, seconds: u32) -> anyhow::Result<f64> {
    let keys = venue.running.load_keys(&venue.market, signing)?;
    let symbol: String = venue.market.instrument.chars().filter(char::is_ascii_alphanumeric).collect();
    let requests = move |key: &ClientKey, Place { connection, number }| {
        let name = format!("{}-{connection}-{number}", signing.name());
        let order =
            format!("symbol={symbol}&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.0001&price={PRICE}&newClientOrderId={name}");
        [request(key, "POST", &order), request(key, "DELETE", &format!("symbol={symbol}&origClientOrderId={name}"))]
    };
    order_pairs::most_per_second(&venue.facade, &keys, seconds, requests).context("an order in Binance's dialect")
}
