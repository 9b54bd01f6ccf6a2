//! Signed orders over REST.

use anyhow::Context;
use walras_siege::wire::request;

use super::order_pairs::{self, PRICE, Place};
use super::processes::{Market, Running, Signing};

/// Of each connection's own order numbers.
const IDS: u64 = 1 << 40;

/// Acknowledged commands a second: a bid that rests, then its cancel, and so on.
pub(super) fn most_per_second(venue: &Running, market: &Market, seconds: u32) -> anyhow::Result<f64> {
    let keys = venue.load_keys(market, Signing::Ed25519)?;
    let instrument = market.instrument.replace('/', "-");
    let requests = move |key: &_, Place { connection, number }| {
        let id = connection * IDS + number;
        let body = format!(
            r#"{{"instrument":"{instrument}","client_order_id":"{id}","side":"buy","type":"limit","size":"0.0001","price":"{PRICE}"}}"#
        );
        [
            request("POST", "/v1/orders", &body, Some(key)),
            request("DELETE", &format!("/v1/orders/{instrument}/{id}"), "", Some(key)),
        ]
    };
    order_pairs::most_per_second(&venue.http, &keys, seconds, requests).context("an order over REST")
}
