//! Signed orders over REST, from many connections that each wait for their answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_client::read_key;
use walras_siege::wire::{Asker, request};
use walras_wait::pause;

use super::processes::Market;

pub(super) const CONNECTIONS: u64 = 32;
/// Of each connection's own order numbers.
const IDS: u64 = 1 << 40;
/// Far below the market, and within its collar.
const PRICE: &str = "25000";

/// Acknowledged commands a second: a bid that rests, then its cancel, and so on.
pub(super) fn most_per_second(http: &str, market: &Market, seconds: u32) -> anyhow::Result<f64> {
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let instrument = market.instrument.replace('/', "-");
    let threads: Vec<_> = (1..=CONNECTIONS)
        .zip(&market.more_keys)
        .map(|(connection, key)| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            let (key, mut asker, instrument) = (read_key(key)?, Asker::new(http)?, instrument.clone());
            anyhow::Ok(std::thread::spawn(move || -> anyhow::Result<()> {
                let mut id = connection * IDS;
                while !stop.load(SeqCst) {
                    id += 1;
                    let body = format!(
                        r#"{{"instrument":"{instrument}","client_order_id":"{id}","side":"buy","type":"limit","size":"0.0001","price":"{PRICE}"}}"#
                    );
                    asker.served(&request("POST", "/v1/orders", &body, Some(&key)))?;
                    asker.served(&request("DELETE", &format!("/v1/orders/{instrument}/{id}"), "", Some(&key)))?;
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
        thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))?.context("an order over REST")?;
    }
    ensure!(per_second > 0.0, "no order over REST was answered");
    Ok(per_second)
}
