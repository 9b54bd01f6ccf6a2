//! Reads are not in the way of orders: how long the longest look at the state takes that a list of 100,000 open orders needs, how long a
//! page of it and the whole list take over REST, and how much longer an order takes while four clients read that list without a pause.
//!
//! The venue runs in this process and its clients on its processors: what a ratio shows beyond the venue's thread is their share.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::json;
use walras_access::operator_key_file;
use walras_client::{Client, read_key};
use walras_config::Config;
use walras_gateway::ClientKey;
use walras_market_data::OrderHistories;
use walras_node::node::Node;
use walras_ports::{ORDERS_PER_VISIT, OrderCursor, VenueHandle, orders_from};
use walras_types::{AccountId, OrderTerms, PriceTicks, Side};
use walras_wire::{Command, Event, VenueCommand};

use super::{BEST, STOPS, TAKER, USERS, apply, lots, offered, order};
use crate::statistics::median;
use crate::venue::{INSTRUMENT, setup};

/// Clients that read at a time, and who sends orders meanwhile.
const READERS: usize = 4;
const READER: AccountId = STOPS;
const GOOD: AccountId = TAKER;

/// Prices below all offers, over which the orders are spread.
const BIDS: u64 = 500;

fn bid(id: u64) -> Command {
    let below = PriceTicks::saturating(BEST - 1 - i64::try_from(id % BIDS).unwrap_or(0));
    order(READER, id, OrderTerms::limit(Side::Buy, below, lots(1)))
}

/// Microseconds of the longest visit among those that read all of an account's orders, in a book that is as large again.
pub(super) fn longest_visit_us(orders: u64) -> anyhow::Result<f64> {
    let (mut engine, mut histories) = (offered(orders)?, OrderHistories::default());
    let (mut events, mut records) = (Vec::new(), Vec::new());
    for id in 0..orders {
        apply(&mut engine, &bid(id), &mut events);
        ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "an order was refused: {events:?}");
        records.clear();
        histories.on_entry(engine.last_applied(), engine.time(), None, &events, &mut records);
    }
    let (mut longest, mut count, mut next) = (0.0_f64, 0, Some(OrderCursor::begin(INSTRUMENT)));
    while let Some(at) = next {
        let begun = Instant::now();
        let (listed, following) = orders_from(&engine, &histories, READER, None, at, ORDERS_PER_VISIT);
        longest = longest.max(begun.elapsed().as_secs_f64() * 1e6);
        ensure!(listed.iter().all(|listed| listed.history.is_some()), "an order without its past");
        count += listed.len() as u64;
        next = following;
    }
    ensure!(count == orders, "{count} orders of {orders}");
    Ok(longest)
}

/// What a venue with such an account does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// Milliseconds of a page.
    pub(super) page_ms: f64,
    /// Milliseconds of all pages, one after the other.
    pub(super) all_ms: f64,
    /// Times the median of an order with readers is that without.
    pub(super) p50_ratio: f64,
}

/// Measures a venue on loopback.
pub(super) fn served(orders: u64, samples: usize, scratch: &Path) -> anyhow::Result<Served> {
    drop(std::fs::remove_dir_all(scratch));
    std::fs::create_dir_all(scratch).with_context(|| format!("making {}", scratch.display()))?;
    let mut config = Config::default();
    config.http.listen = "127.0.0.1:0".into();
    config.order_entry.listen = "127.0.0.1:0".into();
    // Readers are to be as fast as they can be.
    let often = 1_000_000;
    (config.throttle.requests_per_second, config.throttle.burst) = (often, often);
    (config.throttle.source_requests_per_second, config.throttle.source_burst) = (often, often);
    let node = Node::start(scratch, &config).context("starting a venue")?;
    let served = measure(&node, orders, samples, scratch);
    node.stop();
    drop(std::fs::remove_dir_all(scratch));
    served
}

fn measure(node: &Node, orders: u64, samples: usize, data: &Path) -> anyhow::Result<Served> {
    let venue = node.venue();
    for command in setup(USERS).chain((0..orders).map(bid)) {
        venue.send_blocking(command).map_err(|reason| anyhow::anyhow!("not taken: {reason:?}"))?;
    }
    // Behind all of them.
    command(&venue, Command::Venue(VenueCommand::Tick))?;
    let operator = Client::new(&format!("http://{}", node.address()), Some(read_key(&operator_key_file(data))?));
    let [reader, good] = [(READER, "read"), (GOOD, "trade")].map(|(account, permission)| {
        let body = json!({"account_id": account.0, "permissions": [permission]});
        let made = operator.signed("POST", "/v1/admin/keys", Some(&body))?;
        let key = made["key"].as_str().and_then(|token| ClientKey::from_token(token).ok()).context("no key")?;
        anyhow::Ok(operator.with_key(key))
    });
    let (reader, good) = (reader?, good?);
    let begun = Instant::now();
    let page = reader.signed("GET", "/v1/orders", None)?;
    let page_ms = begun.elapsed().as_secs_f64() * 1e3;
    ensure!(page["orders"].as_array().is_some_and(|page| !page.is_empty()), "an empty page");
    let begun = Instant::now();
    ensure!(read_all(&reader)? == orders, "not all orders are listed");
    let all_ms = begun.elapsed().as_secs_f64() * 1e3;
    let quiet = p50_ms(&good, samples)?;
    let done = AtomicBool::new(false);
    let loaded = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        read_all(&reader)?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        let loaded = p50_ms(&good, samples);
        done.store(true, Relaxed);
        for reader in readers {
            reader.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??;
        }
        loaded
    })?;
    Ok(Served { page_ms, all_ms, p50_ratio: loaded / quiet })
}

fn command(venue: &VenueHandle, command: Command) -> anyhow::Result<()> {
    let outcome = venue.command_blocking(command).map_err(|no| anyhow::anyhow!("no outcome: {no:?}"))?;
    ensure!(outcome.rejected().is_none(), "refused: {:?}", outcome.rejected());
    Ok(())
}

/// All pages; how many orders they hold.
fn read_all(reader: &Client) -> anyhow::Result<u64> {
    let all = reader.signed_pages("/v1/orders", "orders")?;
    Ok(all["orders"].as_array().map_or(0, |orders| orders.len() as u64))
}

/// The median of an order that rests and is cancelled again.
fn p50_ms(good: &Client, samples: usize) -> anyhow::Result<f64> {
    let mut taken = Vec::with_capacity(samples);
    for id in 0..samples {
        let body = json!({
            "instrument": "BASE-QUOTE", "client_order_id": id.to_string(), "side": "sell", "type": "limit", "size": "0.000001",
            "price": "310",
        });
        let begun = Instant::now();
        good.signed("POST", "/v1/orders", Some(&body))?;
        taken.push(begun.elapsed().as_secs_f64() * 1e3);
        good.signed("DELETE", &format!("/v1/orders/BASE-QUOTE/{id}"), None)?;
    }
    Ok(median(&taken))
}
