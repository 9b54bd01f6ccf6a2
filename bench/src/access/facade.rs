//! Signed orders in the dialect of Binance's Spot API, from many connections that each wait for their answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_access::now;
use walras_client::read_key;
use walras_gateway::ClientKey;
use walras_siege::wire::Asker;
use walras_wait::pause;

use crate::product::processes::Market;

/// Far below the market, and within its collar.
const PRICE: &str = "25000";

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

/// Acknowledged commands a second: a bid that rests, then its cancel, and so on.
pub(super) fn most_per_second(address: &str, market: &Market, seconds: u32) -> anyhow::Result<f64> {
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let symbol: String = market.instrument.chars().filter(char::is_ascii_alphanumeric).collect();
    let threads: Vec<_> = market
        .more_keys
        .iter()
        .enumerate()
        .map(|(connection, key)| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            let (key, mut asker, symbol) = (read_key(key)?, Asker::new(address)?, symbol.clone());
            anyhow::Ok(std::thread::spawn(move || -> anyhow::Result<()> {
                let mut number = 0_u64;
                while !stop.load(SeqCst) {
                    number += 1;
                    let name = format!("bench-{connection}-{number}");
                    let order = format!(
                        "symbol={symbol}&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.0001&price={PRICE}&newClientOrderId={name}"
                    );
                    asker.served(&request(&key, "POST", &order))?;
                    asker.served(&request(&key, "DELETE", &format!("symbol={symbol}&origClientOrderId={name}")))?;
                    answered.fetch_add(2, SeqCst);
                }
                Ok(())
            }))
        })
        .collect::<Result<_, _>>()?;
    pause(Duration::from_secs(1));
    let (begun, before) = (Instant::now(), answered.load(SeqCst));
    pause(Duration::from_secs(seconds.into()));
    let per_second = (answered.load(SeqCst) - before) as f64 / begun.elapsed().as_secs_f64();
    stop.store(true, SeqCst);
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))?.context("an order in Binance's dialect")?;
    }
    ensure!(per_second > 0.0, "no order in Binance's dialect was answered");
    Ok(per_second)
}
