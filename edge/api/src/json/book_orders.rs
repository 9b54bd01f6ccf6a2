//! Books by order as JSON. An order is its venue's number, its price and what it shows: nothing says whose it is.

use serde_json::{Value, json};
use walras_market_data::{OrderChangeKind, PublicOrder, order_changes};
use walras_ports::{Catalog, InstrumentScale, OrdersPush, ShownOrders};
use walras_types::Side;

use super::names;

/// `GET book/orders`.
#[must_use]
pub fn answer(scale: &InstrumentScale, shown: &ShownOrders) -> Value {
    let orders = |orders: &[PublicOrder]| {
        let one = |order: &PublicOrder| json!([order.order_id.0.to_string(), scale.price(order.price), scale.size(order.shown)]);
        orders.iter().map(one).collect::<Value>()
    };
    json!({
        "instrument": scale.spec.symbol.as_str(),
        "log_index": shown.log_index.0.to_string(),
        "bids": orders(&shown.bids),
        "asks": orders(&shown.asks),
        "has_more_bids": shown.has_more_bids,
        "has_more_asks": shown.has_more_asks,
    })
}

/// Orders of each side that a checksum covers.
const CHECKED_ORDERS: usize = 10;

/// The CRC-32 of the first orders as text: `order_id:price:size` of bids and then of asks, as they stand, a colon between all.
fn checksum(scale: &InstrumentScale, shown: &ShownOrders) -> u32 {
    let [bids, asks] = [&shown.bids, &shown.asks].map(|orders| orders.iter().take(CHECKED_ORDERS));
    let one = |order: &PublicOrder| format!("{}:{}:{}", order.order_id.0, scale.price(order.price), scale.size(order.shown));
    crc32fast::hash(bids.chain(asks).map(one).collect::<Vec<_>>().join(":").as_bytes())
}

/// A feed's message: what changed since the one before. A snapshot has all that is there as added.
#[must_use]
pub fn push(catalog: &Catalog, push: &OrdersPush) -> Option<Value> {
    let OrdersPush { instrument, now, before } = push;
    let scale = catalog.instrument(*instrument)?;
    let (mut removed, mut resized, mut added) = (Vec::new(), Vec::new(), Vec::new());
    let (bids, asks) = before.as_ref().map_or((&[][..], &[][..]), |shown| (&shown.bids[..], &shown.asks[..]));
    let mut changes = Vec::new();
    order_changes(Side::Buy, bids, &now.bids, &mut changes);
    order_changes(Side::Sell, asks, &now.asks, &mut changes);
    for change in &changes {
        let PublicOrder { order_id, side, price, shown } = change.order;
        let (order_id, size) = (order_id.0.to_string(), scale.size(shown));
        match change.kind {
            OrderChangeKind::Removed => removed.push(json!(order_id)),
            OrderChangeKind::Resized => resized.push(json!([order_id, size])),
            OrderChangeKind::Added => added.push(json!([order_id, names::side(side), scale.price(price), size])),
        }
    }
    Some(json!({
        "type": "book_orders",
        "instrument": scale.spec.symbol.as_str(),
        "kind": if before.is_some() { "update" } else { "snapshot" },
        "log_index": now.log_index.0.to_string(),
        "previous_log_index": before.as_ref().map(|shown| shown.log_index.0.to_string()),
        "removed": removed,
        "resized": resized,
        "added": added,
        "checksum": checksum(scale, now),
        "has_more_bids": now.has_more_bids,
        "has_more_asks": now.has_more_asks,
    }))
}
