//! Orders over HTTP that rest until they are cancelled, from many connections that each wait for their answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::ensure;
use walras_client::read_key;
use walras_gateway::ClientKey;
use walras_siege::wire::Asker;
use walras_wait::pause;

use super::processes::Market;

/// Connections, each with a key of its own.
pub(crate) const CONNECTIONS: u64 = 32;
/// A bid so far below the market that it rests, and within its collar.
pub(crate) const PRICE: &str = "25000";

/// Which order it is: the connection, and its number there; both from 1.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) connection: u64,
    pub(crate) number: u64,
}

/// Acknowledged commands a second, by requests that enter an order and that cancel it.
pub(crate) fn most_per_second(
    address: &str,
    market: &Market,
    seconds: u32,
    requests: impl Fn(&ClientKey, Place) -> [Vec<u8>; 2] + Clone + Send + 'static,
) -> anyhow::Result<f64> {
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let threads: Vec<_> = (1..=CONNECTIONS)
        .zip(&market.more_keys)
        .map(|(connection, key)| {
            let (stop, answered, requests) = (Arc::clone(&stop), Arc::clone(&answered), requests.clone());
            let (key, mut asker) = (read_key(key)?, Asker::new(address)?);
            anyhow::Ok(std::thread::spawn(move || -> anyhow::Result<()> {
                for number in 1.. {
                    if stop.load(SeqCst) {
                        break;
                    }
                    for request in requests(&key, Place { connection, number }) {
                        asker.served(&request)?;
                        answered.fetch_add(1, SeqCst);
                    }
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
        thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
    }
    ensure!(per_second > 0.0, "no order was answered");
    Ok(per_second)
}
