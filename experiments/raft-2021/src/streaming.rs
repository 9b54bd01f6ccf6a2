//! Section 3.4: calls one at a time against calls in a stream.
//!
//! The dissertation made 1,000 calls with an argument of 16 bytes over the loopback: as unary gRPC calls, each of which waits for its
//! answer, and as a stream. Here the calls are orders and cancels to a venue of one replica and to one of three, over one connection of
//! binary order entry: with one unanswered (unary) and with up to 1,000 unanswered (a stream); and over REST, where a request waits for
//! its answer on a connection that stays open. All of them are durable before they are answered, which the published calls were not.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;
use walras_client::cluster::{ClusterLoad, Offered};
use walras_client::http::Client;
use walras_client::local_cluster::{LocalCluster, LocalOptions};
use walras_client::read_key;

use crate::cluster::{addresses, scratch, unlimited};

/// Calls of one trial over REST; the trials of binary order entry last as long as is set.
const CALLS: u32 = 1_000;
/// Commands unanswered in a stream.
pub const STREAM: usize = 1_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Trials of each kind.
    pub trials: u32,
    /// How long one is.
    pub trial: Duration,
    /// Requests of a trial over REST.
    pub calls: u32,
}

impl Setup {
    /// Published are 1,000 calls.
    pub const FULL: Self = Self { trials: 10, trial: Duration::from_secs(1), calls: CALLS };
    /// For tests.
    pub const SMALL: Self = Self { trials: 2, trial: Duration::from_millis(100), calls: 10 };
}

/// How calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// REST, each request after the answer to the last.
    Rest,
    /// Binary order entry, one unanswered.
    Unary,
    /// Binary order entry, [`STREAM`] unanswered.
    Stream,
}

impl Calls {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rest, Self::Unary, Self::Stream];

    /// As results and plots name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rest => "REST, one at a time",
            Self::Unary => "binary, one at a time",
            Self::Stream => "binary, a stream",
        }
    }
}

/// Answers a second in each trial.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Replicas of the venue.
    pub replicas: u16,
    /// How.
    pub calls: Calls,
    /// One for each trial.
    pub per_second: Vec<f64>,
}

/// Runs all kinds of calls on venues of one replica and of three. `program` is the file of `walras`.
pub fn run(program: &std::path::Path, setup: &Setup, seed: u64) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for replicas in [1, 3] {
        let scratch = scratch()?;
        let options = LocalOptions { replicas, settings: unlimited(), ..LocalOptions::default() };
        let mut local = LocalCluster::prepare(program, &scratch.path().join("cluster"), &options)?;
        for id in 1..=u64::from(replicas) {
            local.start(id)?;
        }
        let leader = local.wait_for_leader(PATIENCE)?;
        let key = read_key(&local.operator_key())?;
        let mut load = ClusterLoad::prepare(&addresses(&local), &key, 1, seed)?;
        let url = local.replicas.iter().find(|replica| replica.id == leader).context("the leader is one of the replicas")?.url();
        let mut rates = Calls::ALL.map(|_| Vec::new());
        for _ in 0..setup.trials {
            for (calls, rates) in Calls::ALL.into_iter().zip(&mut rates) {
                rates.push(match calls {
                    Calls::Rest => requests(&Client::new(&url, Some(key.clone())), setup.calls)?,
                    Calls::Unary => commands(&mut load, 1, setup)?,
                    Calls::Stream => commands(&mut load, STREAM, setup)?,
                });
            }
        }
        for (calls, per_second) in Calls::ALL.into_iter().zip(rates) {
            outcomes.push(Outcome { replicas, calls, per_second });
        }
        local.stop()?;
    }
    Ok(outcomes)
}

fn commands(load: &mut ClusterLoad, unanswered: usize, setup: &Setup) -> anyhow::Result<f64> {
    let report = load.run(Offered::Outstanding(unanswered), setup.trial / 3, setup.trial)?;
    ensure!(report.acknowledged > 0, "a trial of {unanswered} unanswered was not answered at all");
    Ok(report.acknowledged_per_second)
}

/// Accounts are opened: each request is a command of the log.
fn requests(client: &Client, calls: u32) -> anyhow::Result<f64> {
    let begun = Instant::now();
    for _ in 0..calls {
        client.signed("POST", "/v1/admin/accounts", Some(&json!({})))?;
    }
    Ok(f64::from(calls) / begun.elapsed().as_secs_f64())
}
