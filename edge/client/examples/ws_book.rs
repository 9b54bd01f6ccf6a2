//! Keeps a book over the WebSocket and prints its best levels: `cargo run -p walras-client --example ws_book ws://HOST:PORT INSTRUMENT`.

use std::{collections::BTreeMap, error::Error};

use serde_json::{Value, json};

/// Calls `show` with the best bid and offer after each message, until it wants no more. All prices have as many decimals.
pub(crate) fn run(url: &str, instrument: &str, mut show: impl FnMut(&Value, &Value) -> bool) -> Result<(), Box<dyn Error>> {
    let (mut socket, _) = tungstenite::connect(format!("{url}/v1/ws"))?;
    socket.send(json!({"op": "subscribe", "channel": "book", "instrument": instrument}).to_string().into())?;
    let int = |text: &Value| text.as_str().unwrap_or_default().replace('.', "").parse::<u64>().unwrap_or(0);
    let (mut bids, mut asks, mut seq, mut goes_on, none) = (BTreeMap::new(), BTreeMap::new(), 0, true, json!("-"));
    while goes_on {
        let message: Value = serde_json::from_str(socket.read()?.to_text()?).unwrap_or_default();
        match message["type"].as_str() {
            Some("book") if int(&message["feed_seq"]) == seq + 1 => seq += 1,
            Some("book" | "error") => return Err(format!("subscribe again: {message}").into()),
            _ => continue,
        }
        for (side, levels) in [("bids", &mut bids), ("asks", &mut asks)] {
            levels.retain(|_, _| message["kind"] != "snapshot");
            levels.extend(message[side].as_array().into_iter().flatten().map(|at| (int(&at[0]), (at[0].clone(), int(&at[1])))));
            levels.retain(|_, (_, size)| *size > 0);
        }
        let best = [bids.values().next_back(), asks.values().next()].map(|level| level.map_or(&none, |(price, _)| price));
        goes_on = show(best[0], best[1]);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    run(&args[1], &args[2], |bid, ask| std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{bid} {ask}\n")).is_ok())
}
