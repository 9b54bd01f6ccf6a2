//! What a batch market's state costs beside its blocks: keeping it for a snapshot, pools, what a light client reads.

use std::num::NonZero;
use std::time::Instant;

use anyhow::{Context, ensure};
use walras_batch_venue::{Proposed, Venue};
use walras_batch_workload::{Model, Workload, stands_in};
use walras_types::limits::{POOL_RESERVE_MIN, POOLS_MAX};
use walras_types::{
    AccountId, Amount, AssetId, BatchOperation, BatchPrice, BatchTransaction, CreatePool, PoolRule, TransactionSeq,
};

use crate::beside_blocks::venue;
use crate::blocks::light_bytes;
use crate::memory;
use crate::report::{Figure, Report, Unit};

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Rounds; figures are medians over them.
    pub rounds: usize,
    /// Accounts with something of each asset: those of the blocks. The snapshot is measured with a hundredth of them up to ten times as
    /// many.
    pub accounts: u32,
    /// Transactions of a block.
    pub transactions: usize,
}

const ASSETS: u16 = 50;
const SEED: u64 = 1;
const THREADS: NonZero<usize> = NonZero::new(2).expect("two is not zero");
const WARM_UP: usize = 2;
/// What a light client may have to read of a block.
const LIGHT_BYTES_MAX: f64 = 4_096.0;
/// How long the engine's thread may stop for a snapshot, however many accounts there are.
const PAUSE_MAX_MS: f64 = 5.0;

/// What an account takes at most while the snapshot is measured, in bytes: its balances and their hash tree, what is remembered of its
/// deposits, and two snapshots that are compared. An estimate that leaves much room.
const ACCOUNT_BYTES: f64 = 8_000.0;
/// A state of ten times the accounts is made this often at most.
const LARGE_ROUNDS: usize = 3;

/// How many accounts the snapshot is measured with: of the configured ones a part, or several times as many, and what the metric calls
/// them at full size.
#[derive(Clone, Copy, Debug)]
struct Size {
    part: u32,
    times: u32,
    name: &'static str,
}

const SIZES: [Size; 4] = [
    Size { part: 100, times: 1, name: "1k" },
    Size { part: 10, times: 1, name: "10k" },
    Size { part: 1, times: 1, name: "100k" },
    Size { part: 1, times: 10, name: "1m" },
];

/// Runs all of it.
///
/// # Errors
/// When a block is not what it should be.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let mut most = 0;
    for size in SIZES {
        most = most.max(snapshot_pause(config, size, report)?);
    }
    report.check(format!(
        "what was kept for a snapshot of up to {most} accounts has the bytes of a snapshot of the state, in every round"
    ));
    pool_blocks(config, report)
}

/// How long keeping the state stops the engine's thread, when nothing of it is shared with an earlier one. Returns the accounts; none
/// where there is no memory for them.
fn snapshot_pause(config: &Config, size: Size, report: &mut Report) -> anyhow::Result<u32> {
    let accounts = (config.accounts / size.part).max(2) * size.times;
    let metric = format!("snapshot_pause_{}_accounts_ms", size.name);
    let needed_mib = f64::from(accounts) * ACCOUNT_BYTES / f64::from(1 << 20);
    if let Some(available_mib) = memory::available_mib().filter(|available_mib| *available_mib < needed_mib) {
        report.note(format!(
            "{metric} was NOT RUN: {accounts} accounts take up to {needed_mib:.0} MiB, and {available_mib:.0} are available"
        ));
        return Ok(0);
    }
    eprintln!("the snapshot of {accounts} accounts");
    let model = Model::standard(ASSETS, accounts, accounts as usize);
    let rounds = if size.times > 1 { config.rounds.min(LARGE_ROUNDS) } else { config.rounds };
    let mut times = Vec::new();
    for _ in 0..rounds {
        let mut engine = venue(&model, Workload::new(model.clone(), SEED).endowment())?;
        let begun = Instant::now();
        let kept = engine.freeze();
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        kept.snapshot(&mut bytes);
        engine.snapshot(&mut expected);
        ensure!(bytes == expected, "what was kept is not the state");
    }
    let ms = report.samples(metric.clone(), times);
    report.figure(Figure::new(metric, ms, Unit::Ms).bar(PAUSE_MAX_MS));
    Ok(accounts)
}

/// Blocks beside as many pools as a market may have, of all pairs in turn, whose price is the model's.
fn pool_blocks(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let model = Model { cancel_share: 0.0, ..Model::standard(ASSETS, config.accounts, config.transactions) };
    let mut workload = Workload::new(model.clone(), SEED);
    let venue = || Venue::new(&model, workload.endowment(), THREADS);
    let (mut proposer, mut validator) = (venue()?, venue()?);
    let pools = pools(&model, workload.valuations())?;
    let (mut rates, mut light, mut start) = (Vec::new(), 0, None::<Vec<Option<BatchPrice>>>);
    for round in 0..=WARM_UP + config.rounds {
        let transactions = if round == 0 { pools.clone() } else { workload.block(stands_in(proposer.batch.market())).to_vec() };
        let proposed: Proposed = proposer.propose(&transactions, start.as_deref())?;
        validator.validate(&transactions, &proposed.block)?;
        if round == 0 {
            ensure!(proposer.batch.pools().len() == pools.len(), "{} pools stand", proposer.batch.pools().len());
            workload.go_on_after(|account| proposer.accounts.last(account));
        } else {
            workload.closed(&proposed.closed.batch_hash, proposed.dropped());
        }
        if round > WARM_UP {
            rates.push(transactions.len() as f64 / proposed.times.total());
            light = light_bytes(&proposed, &transactions)?;
        }
        start = Some(proposed.block.proposal.prices);
        std::mem::swap(&mut proposer, &mut validator);
    }
    let ktps = report.samples("pool_blocks_ktps", rates);
    report.figure(Figure::new("pool_blocks_ktps", ktps, Unit::Ktps));
    report.figure(Figure::new("header_bytes_light_client", light as f64, Unit::Bytes).bar(LIGHT_BYTES_MAX));
    report.check(format!("blocks beside {} pools were validated on another state, all roots equal", pools.len()));
    Ok(())
}

/// One pool of each account: as much of one asset as the other is worth.
fn pools(model: &Model, valuations: &[f64]) -> anyhow::Result<Vec<BatchTransaction>> {
    let count = POOLS_MAX.min(model.account_count as usize);
    (0..count)
        .map(|number| {
            let first = number % valuations.len();
            let second = (first + 1 + number / valuations.len()) % valuations.len();
            let worth = 1e9 * valuations[first].max(valuations[second]);
            let units = |asset: usize| {
                let units = (worth / valuations[asset]).clamp(POOL_RESERVE_MIN as f64, 1e12);
                Amount::new(units as u64).context("a pool's reserve is an amount")
            };
            let create = CreatePool {
                market: model.market,
                assets: [first, second].map(|asset| AssetId(asset as u32)),
                rule: PoolRule::ConstantProduct,
                fee_ppm: 3_000,
                amounts: [units(first)?, units(second)?],
            };
            let (account, sequence) = (AccountId(number as u32), TransactionSeq(1));
            Ok(BatchTransaction::new(account, sequence, BatchOperation::CreatePool(create)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_has_all_figures() {
        let mut report = Report::begin("state");
        run(&Config { rounds: 1, accounts: 300, transactions: 400 }, &mut report).unwrap();
        let metrics: Vec<&str> = report.figures().iter().map(|figure| figure.metric.as_str()).collect();
        let pauses = SIZES.map(|size| format!("snapshot_pause_{}_accounts_ms", size.name));
        let expected: Vec<&str> =
            pauses.iter().map(String::as_str).chain(["pool_blocks_ktps", "header_bytes_light_client"]).collect();
        assert_eq!(metrics, expected);
        assert!(report.figures()[..SIZES.len()].iter().all(|figure| figure.value >= 0.0));
    }
}
