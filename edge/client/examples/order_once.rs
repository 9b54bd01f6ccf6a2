//! Places an order once and shows it: `cargo run -p walras-client --example order_once URL KEYFILE INSTRUMENT NAME SIDE SIZE PRICE`.

use serde_json::{Value, json};
use walras_client::{Client, read_key};

/// A request that got no answer may be sent again under the same number: it takes effect once.
pub(crate) fn run(args: &[String]) -> Result<Value, Box<dyn std::error::Error>> {
    let [url, key, instrument, name, side, size, price] = args else { return Err("give all seven arguments".into()) };
    let client = Client::new(url, Some(read_key(key.as_ref())?));
    let session = client.signed("POST", "/v1/sessions", Some(&json!({"token": "1"})))?;
    let (id, next) = (session["session"].as_str().unwrap_or_default(), session["next_seq"].as_str().unwrap_or_default());
    let order = json!({
        "instrument": instrument, "client_order_id": name, "side": side, "type": "limit", "size": size, "price": price,
    });
    client.signed("POST", &format!("/v1/orders?session={id}&session_seq={next}"), Some(&order))?;
    Ok(client.signed("GET", &format!("/v1/orders/{instrument}/{name}"), None)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", run(&std::env::args().skip(1).collect::<Vec<_>>())?);
    Ok(())
}
