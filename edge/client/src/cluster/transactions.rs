//! Load on a batch market by binary order entry: signed transactions of many accounts, many in a frame, until a block has cleared each.
//!
//! The market, its assets and its accounts are set up by an operator's session, and all transactions are signed before the first is sent.
//! Each account sends payments and offers around equal prices, under the numbers 1 to 64 of its own. What the venue has no room for is sent
//! again.
//!
//! Check: what was collected is cleared or dropped, by the venue's own count of its blocks.

mod market;
mod sending;

use std::time::{Duration, Instant};

use walras_gateway::ClientKey;
use walras_gateway::session::{AnyClient, ClientSettings};
use walras_types::RejectReason;
use walras_wire::order_entry::{Role, TRANSACTIONS_PER_FRAME_MAX, TRANSACTIONS_UNANSWERED_MAX};

use self::market::Market;
use self::sending::{RETRY_NS, Sending};
use super::market::{account_key, settings};
use super::{ClusterLoad, PATIENCE_NS, ReplicaAddress, TIMERS_EVERY_NS, client};
use crate::error::LoadError;
use crate::http::Client;

/// How many transactions of how many accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionLoad {
    /// Transactions in all. There are as many accounts as it takes for 32 of each.
    pub transactions: u32,
    /// Connections.
    pub connections: u32,
    /// From one batch to the next.
    pub interval: Duration,
    /// Threads that sign before the measurement.
    pub signing_threads: usize,
}

/// What came of them.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct TransactionReport {
    /// Transactions that were sent and signed.
    pub transactions: u64,
    /// Accounts that signed them.
    pub accounts: u32,
    /// Those that were collected.
    pub collected: u64,
    /// Those that were refused for good.
    pub refused: u64,
    /// Why the first of these was.
    pub first_refusal: Option<&'static str>,
    /// Those that were sent more than once, since there was no room.
    pub sent_again: u64,
    /// Those that a block has.
    pub cleared: u64,
    /// Those that a block left out.
    pub dropped: u64,
    /// Blocks that have them.
    pub blocks: u64,
    /// Offers that traded in these blocks.
    pub offers_traded: u64,
    /// From the first one sent to the last one answered.
    pub collected_seconds: f64,
    /// From the first one sent until the last block was cleared.
    pub cleared_seconds: f64,
    /// Transactions that were sent, signed, checked, logged, cleared and dropped a second, end to end.
    pub cleared_per_second: f64,
}

impl std::fmt::Display for TransactionReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} signed transactions of {} accounts", self.transactions, self.accounts)?;
        writeln!(
            f,
            "  collected  {} in {:.2} s ({} refused, {} sent again)",
            self.collected, self.collected_seconds, self.refused, self.sent_again
        )?;
        writeln!(
            f,
            "  cleared    {} in {:.2} s, {} dropped, {} blocks, {} offers traded",
            self.cleared, self.cleared_seconds, self.dropped, self.blocks, self.offers_traded
        )?;
        if let Some(reason) = self.first_refusal {
            writeln!(f, "  the first refusal: {reason}")?;
        }
        writeln!(f, "  end to end {:.0}/s", self.cleared_per_second)
    }
}

/// Sets a market up on the venue of these replicas and sends it the load. `key` is an operator's.
///
/// # Errors
/// The venue cannot be reached or refuses the market, or what came of the transactions does not add up.
pub fn measure_transactions(
    replicas: &[ReplicaAddress],
    key: &ClientKey,
    options: &TransactionLoad,
) -> Result<TransactionReport, LoadError> {
    let clients: Vec<Client> = replicas.iter().map(|replica| Client::new(&replica.url, Some(key.clone()))).collect();
    let http = clients.first().ok_or_else(|| LoadError::Cluster("no replica is named".to_owned()))?;
    let market = Market::plan(http, options)?;
    let orders: Vec<String> = replicas.iter().map(|replica| replica.orders.clone()).collect();
    let mut load = ClusterLoad::idle(replicas);
    let operator = ClientSettings { role: Role::Operator, ..settings(&orders) };
    load.log_on(vec![client(operator, key.clone(), load.now_ns())])?;
    for command in market.setup(options) {
        load.enter(0, load.now_ns(), command);
        // What waits here is bounded too.
        while load.tally.unanswered > 100_000 {
            load.turn(TIMERS_EVERY_NS)?;
        }
    }
    load.drain()?;
    if load.tally.rejected > 0 {
        return Err(LoadError::Cluster(
            "the venue rejected the batch market of the measurement: is another one being set up?".into(),
        ));
    }
    load.lines.clear();
    let trader = account_key(&clients, market.first_account)?;
    let items = market.signed(options);
    let sessions = (0..options.connections.max(1)).map(|_| client(settings(&orders), trader.clone(), load.now_ns())).collect();
    load.log_on(sessions)?;
    let mut sending = Sending::new(&items, market.accounts as usize, load.lines.len(), load.now_ns());
    let begun = Instant::now();
    while sending.answered < u64::from(options.transactions) {
        let now_ns = load.now_ns();
        for (line, flight) in load.lines.iter_mut().zip(0..) {
            let AnyClient::One(client) = &mut line.client else { continue };
            while let Some(outcome) = client.next_transactions() {
                sending.take(flight, now_ns, &outcome);
            }
            while client.unanswered_transactions() + TRANSACTIONS_PER_FRAME_MAX <= TRANSACTIONS_UNANSWERED_MAX
                && let Some((indexes, frame)) = sending.next_frame(flight, now_ns)
            {
                let number = client.submit_transactions(now_ns, market.id, frame);
                let number = number.map_err(|e| LoadError::Cluster(format!("a frame was not taken: {e}")))?;
                sending.flights[flight].frames.insert(number, indexes);
            }
        }
        load.turn(RETRY_NS)?;
        if load.now_ns().saturating_sub(sending.progress_ns) > PATIENCE_NS {
            return Err(LoadError::Cluster(format!(
                "{} transactions have no result",
                u64::from(options.transactions) - sending.answered
            )));
        }
    }
    let collected_seconds = begun.elapsed().as_secs_f64();
    let Sending { collected, refused, first_refusal, sent_again, .. } = sending;
    let totals = market.wait_until_cleared(http, collected)?;
    let cleared_seconds = begun.elapsed().as_secs_f64();
    Ok(TransactionReport {
        transactions: u64::from(options.transactions),
        accounts: market.accounts,
        collected,
        refused,
        first_refusal: first_refusal.map(RejectReason::name),
        sent_again,
        cleared: totals.cleared,
        dropped: totals.dropped,
        blocks: totals.blocks,
        offers_traded: totals.offers_traded,
        collected_seconds,
        cleared_seconds,
        cleared_per_second: collected as f64 / cleared_seconds,
    })
}
