//! What a batch market's state costs in addition to its blocks: keeping it for a snapshot, pools, what a light client reads.

use std::num::NonZero;
use std::time::Instant;

use anyhow::{Context, ensure};
use walras_batch_solver::{Budget, ClosedBatch};
use walras_batch_venue::{Proposed, Venue};
use walras_batch_workload::{Model, Workload, stands_in};
use walras_clearing::BatchMarket;
use walras_gateway::session::ReportSettings;
use walras_replica::{State, split_part};
use walras_sequencer::{Content, Entry};
use walras_types::limits::{POOL_RESERVE_MIN, POOLS_MAX};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CreatePool, LogIndex, PoolRule,
    TimeNs, TransactionSeq,
};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction};
use walras_wire::{BatchCommand, CloseBatch, Command, StepBlock, SubmitTransaction};

use crate::beside_blocks::found;
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
/// Demand queries in the search for the prices of its block.
const QUERIES_MAX: u64 = 10_000;

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

/// How long keeping a replica's state stops its thread, when nothing of it is shared with an earlier one: the engine's and all that is
/// derived from it, after a block. Returns the accounts; none where there is no memory for them.
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
    let model = snapshot_model(accounts, config.transactions);
    let rounds = if size.times > 1 { config.rounds.min(LARGE_ROUNDS) } else { config.rounds };
    let mut times = Vec::new();
    for _ in 0..rounds {
        let mut state = state_after_a_block(&model)?;
        let begun = Instant::now();
        let kept = State::freeze(&mut state.engine, &mut state.derived, &mut state.reports);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let (bytes, mut expected) = (kept.encode(), Vec::new());
        state.engine.snapshot(&mut expected);
        let (of_engine, _) = split_part(&bytes).map_err(anyhow::Error::msg)?;
        ensure!(of_engine == expected, "what was kept is not the state");
    }
    let ms = report.samples(metric.clone(), times);
    report.figure(Figure::new(metric, ms, Unit::Ms).bar(PAUSE_MAX_MS));
    Ok(accounts)
}

/// Accounts of which each sends a transaction, as far as a block has so many. Nothing is cancelled.
fn snapshot_model(accounts: u32, transactions: usize) -> Model {
    Model { cancel_share: 0.0, ..Model::standard(ASSETS, accounts, transactions.min(accounts as usize)) }
}

/// A replica's state: the accounts of a model have funds and keys, and have sent a block, of which some offers traded and others stand.
fn state_after_a_block(model: &Model) -> anyhow::Result<State> {
    let mut workload = Workload::new(model.clone(), SEED);
    let mut state = State::genesis(ReportSettings::default());
    let State { engine, derived, reports } = &mut state;
    let mut deltas = Vec::new();
    found(engine, model, workload.endowment(), |engine, command, events| {
        let entry = entry(engine.last_applied(), Content::Command(*command));
        events.iter().for_each(|event| reports.on_event(entry.log_index, entry.time, event, |_, _| ()));
        // Of what the operator gives to accounts there are reports, and nothing else is derived from it.
        if matches!(command, Command::Account(_)) {
            return Ok(());
        }
        Ok(derived.on_entry(engine, &entry, events, &mut deltas)?)
    })?;
    let nothing = BatchMarket::build(usize::from(ASSETS), &[], &[], Vec::new())?;
    let market = model.market;
    for transaction in workload.block(stands_in(&nothing)) {
        let signed = SignedTransaction { transaction: *transaction, signature: [0; SIGNATURE_BYTES] };
        let submit = SubmitTransaction::new(market, &signed)?;
        apply(&mut state, Content::Command(Command::Batch(BatchCommand::Submit(submit))))?;
    }
    apply(&mut state, Content::Command(Command::Batch(BatchCommand::Close(CloseBatch { market, block: 1 }))))?;
    take_steps(&mut state, market)?;
    let (place, offers, rules, quality) = state.engine.batch_to_clear(market).context("a closed batch waits for its clearing")?;
    let batch = ClosedBatch { market, place, offers: &offers, rules, quality };
    let block = batch.propose(None, Budget::queries(QUERIES_MAX))?;
    drop(offers);
    apply(&mut state, Content::from(block))?;
    take_steps(&mut state, market)?;
    ensure!(state.engine.batch_market(market).is_some_and(|view| view.last.is_some()), "the block was not cleared");
    Ok(state)
}

fn entry(log_index: LogIndex, content: Content) -> Entry {
    Entry { log_index, time: TimeNs(1), ordinal: None, key: None, nonce: None, content }
}

fn apply(state: &mut State, content: Content) -> anyhow::Result<()> {
    Ok(state.apply(&entry(state.engine.last_applied().next(), content))?)
}

fn take_steps(state: &mut State, market: BatchMarketId) -> anyhow::Result<()> {
    while let Some(next) = state.engine.next_block_step(market) {
        let step = StepBlock { market, block: 1, step: next.number };
        apply(state, Content::Command(Command::Batch(BatchCommand::Step(step))))?;
    }
    Ok(())
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

    /// What a replica derives from blocks is kept with the engine's state.
    #[test]
    fn the_state_that_is_kept_is_of_a_venue_in_use() {
        let model = snapshot_model(2_000, 2_000);
        let state = state_after_a_block(&model).unwrap();
        let view = state.engine.batch_market(model.market).unwrap();
        assert!(view.last.is_some_and(|last| last.offers_traded > 0), "something traded");
        let offers = state.derived.market.offers();
        let remembered: usize = (0..2_000).map(|id| offers.outcomes_newest_first(AccountId(id)).count()).sum();
        let standing = offers.bytes().standing;
        assert!(standing > 0 && remembered > 0, "{standing} bytes of offers, {remembered} outcomes");
        assert!((0..2_000).all(|id| state.reports.report_seq(AccountId(id)) > 50), "created, and given each asset");
    }
}
