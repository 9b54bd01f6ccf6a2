//! Orders beside large blocks: how long they take while blocks clear, and without (ADR 24).
//!
//! One thread applies the log as a replica's does: orders at a steady rate, transactions of a batch market, and the entries of its
//! leader. What collects while a group of entries is written goes into the next group, each of which another thread syncs to disk.
//! Prices are found on a third thread and the work of blocks is done on a fourth, as in a venue. An order counts from the moment
//! when it is due until it is applied. Left out are sockets, signatures, and what is made of events.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use walras_batch::BlockJob;
use walras_batch_solver::{Budget, ClosedBatch, KeptIndex};
use walras_batch_workload::{Model, Workload, stands_in};
use walras_clearing::BatchMarket;
use walras_engine::Engine;
use walras_engine::versions::NEWEST;
use walras_log_store::{LogOptions, LogWriter, RealDisk};
use walras_sequencer::{BatchDriver, BatchStep, Entry, SolveJob, Solved, decode_entry, encode_clearing, encode_entry};
use walras_types::limits::BATCH_VENUE_TRANSACTIONS_MAX;
use walras_types::{
    AccountId, Allocation, Amount, AssetId, BatchPhase, BatchPrice, BatchTransaction, ClientOrderId, FeeSchedule, InstrumentId,
    InstrumentSpec, Intake, LogIndex, OrderTerms, PriceTicks, PublicKey, QualityMax, RejectReason, RiskLimits, Side, SizeLots,
    Symbol, TimeNs, TradingPhase, TransferId,
};
use walras_wire::batch::{BlockProposal, SIGNATURE_BYTES, SignedTransaction};
use walras_wire::{
    AccountCommand, AddBatchAsset, AssetSpec, BatchCommand, BatchEvent, BatchMarketCommand, BatchMarketSpec, Command, Event,
    InstrumentCommand, NewOrder, OrderCommand, SetAccountKey, SetBatchPhase, SetTradingPhase, SubmitTransaction, Transfer,
    VenueCommand,
};

use crate::report::{Figure, Report, Unit};
use crate::statistics::{Percentiles, median};

/// How to run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rounds; figures are medians over them.
    pub rounds: usize,
    /// Transactions of a block.
    pub transactions: usize,
    /// Accounts that send them.
    pub accounts: u32,
    /// Blocks in a round.
    pub blocks: usize,
    /// Orders a second.
    pub orders_per_second: u64,
    /// Where the log is written.
    pub scratch: PathBuf,
}

/// What the ratio may be.
const RATIO_MAX: f64 = 1.5;
const ASSETS: u16 = 50;
const INTERVAL: Duration = Duration::from_millis(500);
const SEED: u64 = 1;
const INSTRUMENT: InstrumentId = InstrumentId(0);
/// Blocks before the first order that counts.
const WARM_UP: usize = 2;
const QUERIES_MAX: u64 = 10_000;
/// As in the venue.
const SEARCH_MAX: Duration = Duration::from_secs(2);

/// What goes on beside the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// Transactions are collected, and no batch is closed.
    Collecting,
    Clearing,
}

/// Blocks that may be under way when transactions end: one that is closed, and one that is collected. If more are, the machine fell
/// behind.
const UNDER_WAY_MAX: usize = 2;
/// Sizes that are tried in turn if the machine falls behind: eighths of the full size, then eighths of an eighth.
const SIZES: [usize; 6] = [8, 6, 4, 3, 2, 1];
/// Smaller parts of the full size are not tried.
const PARTS_MAX: usize = 64;

/// Runs with blocks of this size. If the machine falls behind, smaller sizes are tried, and the first that it keeps up with is
/// measured. Metrics of smaller blocks have their size in their names.
///
/// # Errors
/// When the log cannot be written, or a block is refused.
pub fn run_where_it_keeps_up(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    for transactions in sizes(config.transactions) {
        let suffix = if transactions == config.transactions { String::new() } else { size_suffix(transactions) };
        if run(&Config { transactions, ..config.clone() }, &suffix, report)? == Kept::Up {
            tell_size(report, transactions, config);
            return Ok(());
        }
        report.note(format!(
            "order_p99_ratio_while_clearing{suffix} was not measured: this machine does not clear blocks of {transactions} twice a second \
             while it takes {} orders a second",
            config.orders_per_second
        ));
    }
    tell_size(report, 0, config);
    Ok(())
}

/// Reports the size that the machine keeps up with, zero for none.
fn tell_size(report: &mut Report, transactions: usize, config: &Config) {
    let figure = Figure::new("clearing_block_transactions", transactions as f64, Unit::Count);
    report.figure(figure.bar(config.transactions as f64));
}

/// The sizes that are tried, from this one down.
fn sizes(most: usize) -> impl Iterator<Item = usize> {
    let parts = [8, PARTS_MAX].into_iter().zip([0, 1]);
    let all = parts.flat_map(move |(parts, skipped)| SIZES.into_iter().skip(skipped).map(move |share| most * share / parts));
    all.filter(|size| *size > 0)
}

/// `_blocks_of_25k`.
fn size_suffix(transactions: usize) -> String {
    if transactions.is_multiple_of(1_000) {
        format!("_blocks_of_{}k", transactions / 1_000)
    } else {
        format!("_blocks_of_{transactions}")
    }
}

/// Whether blocks were cleared as fast as they were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Up,
    Behind,
}

/// Runs all of it. If it falls behind, it stops and reports no figure. Fails if a block is not what it should be.
fn run(config: &Config, suffix: &str, report: &mut Report) -> anyhow::Result<Kept> {
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    let mut longest = Vec::new();
    let mut ratios = Vec::new();
    for round in 0..config.rounds {
        let mut p99 = [0.0; 3];
        // The one that may fall behind comes first.
        for (place, beside) in [Beside::Clearing, Beside::Collecting, Beside::Nothing].into_iter().enumerate() {
            let transactions = config.transactions;
            eprintln!("round {} of {}: orders beside {beside:?}, blocks of {transactions}", round + 1, config.rounds);
            let ran = Run::new(config, beside)?.run(config)?;
            if beside == Beside::Clearing {
                longest.push(ran.longest_entry_us);
                if ran.kept == Kept::Behind {
                    let refused = ran.refused.map_or(String::new(), |refused| format!("; {refused}"));
                    eprintln!("  {} blocks were cleared in time, of {}{refused}", ran.blocks_in_time, WARM_UP + config.blocks);
                    return Ok(Kept::Behind);
                }
            }
            let found = Percentiles::of(ran.order_us).context("there are orders")?;
            p99[place] = found.p99;
            all[place].push(found.p99);
        }
        ratios.push(p99[0] / p99[1]);
    }
    for (name, samples) in ["clearing", "collecting", "alone"].into_iter().zip(all) {
        let metric = format!("order_p99_us_{name}{suffix}");
        let value = report.samples(metric.clone(), samples);
        report.figure(Figure::new(metric, value, Unit::Us));
    }
    report.figure(Figure::new(format!("longest_block_entry_us{suffix}"), median(&longest), Unit::Us));
    let metric = format!("order_p99_ratio_while_clearing{suffix}");
    let ratio = report.samples(metric.clone(), ratios);
    report.figure(Figure::new(metric, ratio, Unit::Ratio).bar(RATIO_MAX));
    report.check(format!(
        "{} orders a second beside blocks of {} transactions, two a second, of {} accounts: with these, and with the same transactions \
         and no blocks; every block was cleared in steps, and at most {UNDER_WAY_MAX} were under way when transactions ended",
        config.orders_per_second, config.transactions, config.accounts
    ));
    Ok(Kept::Up)
}

/// An entry that is to be logged.
struct Due {
    content: Content,
    /// For an order, when it was due.
    due: Option<Instant>,
}

enum Content {
    Command(Command),
    Clearing(Box<BlockProposal>),
}

/// What came of a run.
#[derive(Debug)]
struct Ran {
    order_us: Vec<f64>,
    /// Blocks that were cleared before transactions ended.
    blocks_in_time: usize,
    kept: Kept,
    longest_entry_us: f64,
    /// The first entry that was refused.
    refused: Option<String>,
}

struct Run {
    engine: Engine,
    beside: Beside,
    submits: Vec<Command>,
    driver: BatchDriver,
    disk: Worker<Vec<Vec<u8>>, Vec<Vec<u8>>>,
    solver: Worker<SolveJob, Solved>,
    blocks: Worker<BlockJob, ()>,
}

/// A thread that answers what it is given, in order.
struct Worker<I, O> {
    input: Option<Sender<I>>,
    output: Receiver<O>,
    thread: Option<JoinHandle<()>>,
}

impl<I: Send + 'static, O: Send + 'static> Worker<I, O> {
    fn start(mut act: impl FnMut(I) -> O + Send + 'static) -> Self {
        let ((input, of_thread), (done, output)) = (channel::<I>(), channel::<O>());
        let run = move || {
            for input in of_thread {
                if done.send(act(input)).is_err() {
                    return;
                }
            }
        };
        Self { input: Some(input), output, thread: Some(std::thread::spawn(run)) }
    }

    fn give(&self, input: I) -> anyhow::Result<()> {
        self.input.as_ref().and_then(|to| to.send(input).ok()).context("a thread has ended")
    }

    fn take(&self) -> anyhow::Result<Option<O>> {
        match self.output.try_recv() {
            Ok(output) => Ok(Some(output)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => anyhow::bail!("a thread has ended"),
        }
    }
}

impl<I, O> Drop for Worker<I, O> {
    fn drop(&mut self) {
        self.input = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Run {
    fn new(config: &Config, beside: Beside) -> anyhow::Result<Self> {
        // Nothing is cancelled: a cancel names what only a cleared block draws.
        let model = Model { cancel_share: 0.0, ..Model::standard(ASSETS, config.accounts, config.transactions) };
        let mut workload = Workload::new(model.clone(), SEED);
        let mut engine = venue(&model, workload.endowment())?;
        if config.transactions < 10_000 {
            // Small ones are in one entry else.
            engine.set_block_steps(0, NonZero::new(64).context("a step does something")?);
        }
        let nothing = BatchMarket::build(usize::from(ASSETS), &[], &[], Vec::new())?;
        let mut submits = Vec::new();
        let block_count = if beside == Beside::Nothing { 0 } else { WARM_UP + config.blocks + 1 };
        for _ in 0..block_count {
            for transaction in in_order_of_accounts(workload.block(stands_in(&nothing))) {
                let signed = SignedTransaction { transaction, signature: [0; SIGNATURE_BYTES] };
                submits.push(Command::Batch(BatchCommand::Submit(SubmitTransaction::new(model.market, &signed)?)));
            }
            workload.closed(&[0; 32], []);
        }
        ensure!(submits.len() <= BATCH_VENUE_TRANSACTIONS_MAX as usize, "fewer blocks: those without clearing are one batch");
        let log = config.scratch.join("beside-blocks");
        remove(&log)?;
        let options = LogOptions { segment_bytes: 1 << 30, first_segment_bytes: 1 << 30, ..LogOptions::default() };
        let (mut log, _) = LogWriter::open(RealDisk, &log, options)?;
        log.maintain()?;
        let disk = Worker::start(move |group: Vec<Vec<u8>>| {
            for entry in &group {
                log.append(entry).expect("the log takes what the bench writes");
            }
            log.sync().expect("the log takes what the bench writes");
            group
        });
        let (mut kept, mut last) = (KeptIndex::default(), None::<Vec<Option<BatchPrice>>>);
        let solver = Worker::start(move |job: SolveJob| {
            let SolveJob { market, place, ref offers, rules, quality, .. } = job;
            let batch = ClosedBatch { market, place, offers, rules, quality };
            let proposal = batch.propose_with(&mut kept, last.as_deref(), Budget::queries(QUERIES_MAX).within(SEARCH_MAX)).ok();
            last = proposal.as_ref().map(|proposal| proposal.prices.clone()).or_else(|| last.take());
            Solved { market, block: place.number, proposal: proposal.map(Box::new) }
        });
        let blocks = Worker::start(|job: BlockJob| job.run(NonZero::<usize>::MIN));
        Ok(Self { engine, beside, submits, driver: BatchDriver::new(), disk, solver, blocks })
    }

    fn run(mut self, config: &Config) -> anyhow::Result<Ran> {
        let round = INTERVAL * u32::try_from(WARM_UP + config.blocks)?;
        let order_every = Duration::from_nanos(1_000_000_000 / config.orders_per_second.max(1));
        let order_count = round.as_nanos() / order_every.as_nanos();
        let warm_up = INTERVAL * WARM_UP as u32;
        let submit_every = INTERVAL / config.transactions as u32;
        let mut ran = Ran { order_us: Vec::new(), blocks_in_time: 0, kept: Kept::Up, longest_entry_us: 0.0, refused: None };
        let mut blocks = 0;
        let (mut waiting, mut in_flight): (Vec<Due>, Option<Vec<Due>>) = (Vec::new(), None);
        let (mut events, mut steps) = (Vec::new(), Vec::new());
        let (mut ordered, mut submitted) = (0_u128, 0_usize);
        let begun = Instant::now();
        // The blocks that are under way come to their end.
        while begun.elapsed() < round + INTERVAL * 4 {
            let at = begun.elapsed();
            let is_over = at >= round;
            if is_over && self.beside == Beside::Clearing && ran.blocks_in_time + UNDER_WAY_MAX < WARM_UP + config.blocks {
                ran.kept = Kept::Behind;
                return Ok(ran);
            }
            while !is_over && ordered < order_count && order_every * ordered as u32 <= at {
                let due = Some(begun + order_every * ordered as u32);
                waiting.push(Due { content: Content::Command(order(ordered as u64, config.accounts)), due });
                ordered += 1;
            }
            while !is_over && submitted < self.submits.len() && submit_every * submitted as u32 <= at {
                waiting.push(Due { content: Content::Command(self.submits[submitted]), due: None });
                submitted += 1;
            }
            if self.beside == Beside::Clearing {
                let now_ns = u64::try_from(at.as_nanos())?;
                while let Some(solved) = self.solver.take()? {
                    let block = self.driver.on_solved(now_ns, solved, &self.engine);
                    waiting.extend(block.map(|block| Due { content: Content::Clearing(block), due: None }));
                }
                while self.blocks.take()?.is_some() {}
                self.driver.drive(now_ns, &self.engine, &mut steps);
                for step in steps.drain(..) {
                    match step {
                        BatchStep::Close(close) => waiting.push(Due::command(Command::Batch(BatchCommand::Close(close)))),
                        BatchStep::Step(step) => waiting.push(Due::command(Command::Batch(BatchCommand::Step(step)))),
                        BatchStep::Solve(job) => self.solver.give(job)?,
                    }
                }
            }
            if in_flight.is_none() && !waiting.is_empty() {
                self.disk.give(waiting.iter().map(Due::bytes).collect::<anyhow::Result<_>>()?)?;
                in_flight = Some(std::mem::take(&mut waiting));
            }
            let Some(written) = (if in_flight.is_some() { self.disk.take()? } else { None }) else {
                std::thread::yield_now(); // pause: for the threads that share its processor
                continue;
            };
            for (due, bytes) in in_flight.take().into_iter().flatten().zip(written) {
                let entry: Entry = decode_entry(self.engine.last_applied().next(), &bytes)?;
                events.clear();
                let before = Instant::now();
                entry.apply(&mut self.engine, &mut events);
                let now = Instant::now();
                if let Some(due) = due.due.filter(|due| *due >= begun + warm_up) {
                    ran.order_us.push((now - due).as_secs_f64() * 1e6);
                } else if due.due.is_none() {
                    ran.longest_entry_us = ran.longest_entry_us.max((now - before).as_secs_f64() * 1e6);
                }
                let seen = self.see(&events, &mut ran);
                blocks += seen;
                ran.blocks_in_time += if is_over { 0 } else { seen };
                for job in self.engine.take_block_jobs() {
                    self.blocks.give(job)?;
                }
            }
            let is_done = self.beside != Beside::Clearing || blocks >= WARM_UP + config.blocks;
            if is_over && waiting.is_empty() && in_flight.is_none() && is_done {
                break;
            }
        }
        // An overloaded leader submits again what it takes for lost, and that is refused. If it keeps up, nothing may be refused.
        if let Some(refused) = ran.refused.as_ref().filter(|_| ran.kept == Kept::Up) {
            anyhow::bail!("{refused}");
        }
        Ok(ran)
    }

    /// How many blocks were cleared. Keeps the first refusal.
    fn see(&mut self, events: &[Event], ran: &mut Ran) -> usize {
        self.driver.on_events(0, events);
        let mut blocks = 0;
        for event in events {
            match event {
                Event::Batch(BatchEvent::Cleared(_)) => blocks += 1,
                Event::Batch(BatchEvent::ClearingRejected(e)) => {
                    ran.refused.get_or_insert_with(|| format!("a clearing was refused: {e:?}"));
                }
                Event::Rejected(e) if self.beside != Beside::Collecting => {
                    // The account's transactions before this one are in blocks that should have been cleared.
                    if e.reason == RejectReason::TransactionSeqOutOfWindow {
                        ran.kept = Kept::Behind;
                    }
                    ran.refused.get_or_insert_with(|| format!("an entry was refused: {e:?}"));
                }
                _ => {}
            }
        }
        blocks
    }
}

/// The same, with each account's numbers in order: a batch may close between any two, and then takes no number below its account's last.
fn in_order_of_accounts(block: &[BatchTransaction]) -> Vec<BatchTransaction> {
    let mut of_account: BTreeMap<AccountId, Vec<BatchTransaction>> = BTreeMap::new();
    for transaction in block {
        of_account.entry(transaction.account).or_default().push(*transaction);
    }
    for transactions in of_account.values_mut() {
        transactions.sort_unstable_by_key(|transaction| Reverse(transaction.sequence));
    }
    block.iter().filter_map(|transaction| of_account.get_mut(&transaction.account)?.pop()).collect()
}

impl Due {
    const fn command(command: Command) -> Self {
        Self { content: Content::Command(command), due: None }
    }

    fn bytes(&self) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match &self.content {
            Content::Command(command) => encode_entry(TimeNs(1), None, command, &mut bytes),
            Content::Clearing(block) => encode_clearing(TimeNs(1), block, &mut bytes)?,
        }
        Ok(bytes)
    }
}

/// Sells that rest, and buys that take them, of the two accounts after those of the model.
fn order(number: u64, first: u32) -> Command {
    let side = if number.is_multiple_of(2) { Side::Sell } else { Side::Buy };
    let terms = OrderTerms::limit(side, PriceTicks::saturating(1_000), SizeLots::new(1));
    let account = AccountId(first + (number % 2) as u32);
    Command::Order(OrderCommand::New(NewOrder { account, instrument: INSTRUMENT, client_order_id: ClientOrderId(number), terms }))
}

/// A venue of the newest rules with the accounts, keys and funds of a model, two more accounts, a batch market and an instrument.
fn venue(model: &Model, endowment: Amount) -> anyhow::Result<Engine> {
    let mut engine = Engine::new();
    engine.stop_telling_levels();
    found(&mut engine, model, endowment, |_, _, _| Ok(()))?;
    Ok(engine)
}

/// Makes that venue of an engine that has nothing. `see` gets each command with its events, once it is applied.
pub(crate) fn found(
    engine: &mut Engine,
    model: &Model,
    endowment: Amount,
    mut see: impl FnMut(&Engine, &Command, &[Event]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let symbol = |text: String| Symbol::new(&text).context("upper case and short");
    let mut events = Vec::new();
    // One by one: those of a million accounts together take more memory than the accounts.
    let mut apply = |command: Command| -> anyhow::Result<()> {
        events.clear();
        engine.apply(engine.last_applied().next(), TimeNs(1), &command, &mut events);
        ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "{command:?}: {events:?}");
        see(engine, &command, &events)
    };
    apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)))?;
    for asset in &model.assets {
        let spec = AssetSpec { asset: *asset, symbol: symbol(format!("A{asset}"))?, decimals: 2 };
        apply(Command::Venue(VenueCommand::CreateAsset(spec)))?;
    }
    for account in (0..model.account_count + 2).map(AccountId) {
        apply(Command::Account(AccountCommand::Create(account)))?;
        let mut key = [7; 32];
        key[..4].copy_from_slice(&account.0.to_le_bytes());
        apply(Command::Account(AccountCommand::SetKey(SetAccountKey { account, key: PublicKey(key) })))?;
        for asset in &model.assets {
            let transfer_id = TransferId(u64::from(asset.0) + 1);
            let deposit = Transfer { account, asset: *asset, amount: endowment, transfer_id };
            apply(Command::Account(AccountCommand::Deposit(deposit)))?;
        }
    }
    let most = Amount::new(1 << 50).context("below AMOUNT_MAX")?;
    apply(Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
        instrument: INSTRUMENT,
        symbol: symbol("BASE/QUOTE".to_owned())?,
        base: AssetId(0),
        quote: AssetId(1),
        lot_units: 1,
        tick_value_units: 1,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 0 },
        collar_ppm: 900_000,
        band_ppm: 900_000,
        reference_price: PriceTicks::saturating(1_000),
        default_limits: RiskLimits {
            order_lots_max: SizeLots::new(1 << 20),
            order_value_max: most,
            open_orders_max: 1 << 20,
            position_lots_max: SizeLots::new(1 << 40),
        },
    })))?;
    let phase = SetTradingPhase { instrument: INSTRUMENT, phase: TradingPhase::Continuous };
    apply(Command::Instrument(InstrumentCommand::SetPhase(phase)))?;
    let rules = walras_batch_venue::rules();
    apply(Command::BatchMarket(BatchMarketCommand::Create(BatchMarketSpec {
        market: model.market,
        symbol: symbol("MAIN".to_owned())?,
        commission: rules.commission,
        mu: rules.mu,
        lower_bounds: rules.lower_bounds,
        quality: QualityMax::USUAL,
        intake: Intake::Filter,
        interval_ns: u64::try_from(INTERVAL.as_nanos())?,
        transactions_max: BATCH_VENUE_TRANSACTIONS_MAX,
        domain: [0; 32],
    })))?;
    let market = model.market;
    for asset in &model.assets {
        apply(Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market, asset: *asset })))?;
    }
    apply(Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market, phase: BatchPhase::Open })))?;
    engine.set_threads(NonZero::<usize>::MIN);
    engine.prepare_batches();
    ensure!(engine.last_applied() > LogIndex(0), "the venue is there");
    Ok(())
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use walras_types::{BatchOperation, Payment, TransactionSeq};

    use super::*;

    #[test]
    fn a_small_run_comes_to_its_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("beside");
        let scratch = folder.path().to_owned();
        let config = Config { rounds: 1, transactions: 500, accounts: 2_000, blocks: 3, orders_per_second: 1_000, scratch };
        run_where_it_keeps_up(&config, &mut report).unwrap();
        let value = |name: &str| report.figures().iter().find(|figure| figure.metric == name).unwrap().value;
        let transactions = value("clearing_block_transactions") as usize;
        // A busy machine may get smaller blocks, whose size is in the metric's name.
        let suffix = if transactions == config.transactions { String::new() } else { size_suffix(transactions) };
        assert!(value(&format!("order_p99_ratio_while_clearing{suffix}")) > 0.0);
    }

    #[test]
    fn each_account_sends_its_numbers_in_order() {
        let transaction = |account: u32, sequence: u64| {
            let payment = Payment { to: AccountId(9), asset: AssetId(0), amount: Amount::ZERO };
            BatchTransaction::new(AccountId(account), TransactionSeq(sequence), BatchOperation::Payment(payment))
        };
        let block = [transaction(2, 8), transaction(1, 3), transaction(2, 7), transaction(1, 2), transaction(2, 9)];
        let ordered = [transaction(2, 7), transaction(1, 2), transaction(2, 8), transaction(1, 3), transaction(2, 9)];
        assert_eq!(in_order_of_accounts(&block), ordered);
    }

    #[test]
    fn smaller_sizes_are_tried_in_turn_and_named() {
        let all: Vec<usize> = sizes(100_000).collect();
        assert_eq!(all, [100_000, 75_000, 50_000, 37_500, 25_000, 12_500, 9_375, 6_250, 4_687, 3_125, 1_562]);
        assert_eq!(sizes(5).collect::<Vec<_>>(), [5, 3, 2, 1, 1]);
        assert_eq!((size_suffix(25_000), size_suffix(37_500)), ("_blocks_of_25k".to_owned(), "_blocks_of_37500".to_owned()));
    }
}
