//! Orders beside large blocks: how long they take while blocks clear, and without (ADR 24).
//!
//! One thread applies the log as a replica's does: orders at a steady rate, transactions of a batch market, and the entries of its
//! leader. What collects while a group of entries is written goes into the next group, each of which another thread syncs to disk.
//! Prices are found on a third thread and the work of blocks is done on a fourth, as in a venue. An order counts from the moment
//! when it is due until it is applied. Left out are sockets, signatures, and what is made of events.

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
    AccountId, Allocation, Amount, AssetId, BatchPhase, BatchPrice, ClientOrderId, FeeSchedule, InstrumentId, InstrumentSpec,
    Intake, LogIndex, OrderTerms, PriceTicks, PublicKey, QualityMax, RiskLimits, Side, SizeLots, Symbol, TimeNs, TradingPhase,
    TransferId,
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

/// Runs all of it. Fails where a block does not come in time or is not what it should be.
///
/// # Errors
/// When the log cannot be written, or a block is refused.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    let mut longest = Vec::new();
    let mut ratios = Vec::new();
    for round in 0..config.rounds {
        let mut p99 = [0.0; 3];
        for (place, beside) in [Beside::Nothing, Beside::Collecting, Beside::Clearing].into_iter().enumerate() {
            eprintln!("round {} of {}: orders beside {beside:?}", round + 1, config.rounds);
            let ran = Run::new(config, beside)?.run(config)?;
            let found = Percentiles::of(ran.order_us).context("there are orders")?;
            p99[place] = found.p99;
            all[place].push(found.p99);
            if beside == Beside::Clearing {
                longest.push(ran.longest_entry_us);
                ensure!(ran.blocks >= config.blocks, "{} blocks of {} were cleared in time", ran.blocks, config.blocks);
            }
        }
        ratios.push(p99[2] / p99[1]);
    }
    let [alone, collecting, clearing] = all;
    for (metric, samples) in
        [("order_p99_us_alone", alone), ("order_p99_us_collecting", collecting), ("order_p99_us_clearing", clearing)]
    {
        let value = report.samples(metric, samples);
        report.figure(Figure::new(metric, value, Unit::Us));
    }
    report.figure(Figure::new("longest_block_entry_us", median(&longest), Unit::Us));
    let ratio = report.samples("order_p99_ratio_while_clearing", ratios);
    report.figure(Figure::new("order_p99_ratio_while_clearing", ratio, Unit::Ratio).bar(RATIO_MAX));
    report.check(format!(
        "{} orders a second beside blocks of {} transactions, two a second, of {} accounts: with these, and with the same transactions \
         and no blocks; every block was cleared in steps, and none was late",
        config.orders_per_second, config.transactions, config.accounts
    ));
    Ok(())
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
    blocks: usize,
    longest_entry_us: f64,
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
            for transaction in workload.block(stands_in(&nothing)) {
                let signed = SignedTransaction { transaction: *transaction, signature: [0; SIGNATURE_BYTES] };
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
        let mut ran = Ran { order_us: Vec::new(), blocks: 0, longest_entry_us: 0.0 };
        let (mut waiting, mut in_flight): (Vec<Due>, Option<Vec<Due>>) = (Vec::new(), None);
        let (mut events, mut steps) = (Vec::new(), Vec::new());
        let (mut ordered, mut submitted) = (0_u128, 0_usize);
        let begun = Instant::now();
        // The blocks that are under way come to their end.
        while begun.elapsed() < round + INTERVAL * 4 {
            let at = begun.elapsed();
            let is_over = at >= round;
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
                ran.blocks += self.see(&events)?;
                for job in self.engine.take_block_jobs() {
                    self.blocks.give(job)?;
                }
            }
            let is_done = self.beside != Beside::Clearing || ran.blocks >= WARM_UP + config.blocks;
            if is_over && waiting.is_empty() && in_flight.is_none() && is_done {
                break;
            }
        }
        Ok(ran)
    }

    fn see(&mut self, events: &[Event]) -> anyhow::Result<usize> {
        self.driver.on_events(0, events);
        let mut blocks = 0;
        for event in events {
            match event {
                Event::Batch(BatchEvent::Cleared(_)) => blocks += 1,
                Event::Batch(BatchEvent::ClearingRejected(e)) => anyhow::bail!("a clearing was refused: {e:?}"),
                Event::Rejected(e) if self.beside != Beside::Collecting => anyhow::bail!("an entry was refused: {e:?}"),
                _ => {}
            }
        }
        Ok(blocks)
    }
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
pub(crate) fn venue(model: &Model, endowment: Amount) -> anyhow::Result<Engine> {
    let symbol = |text: String| Symbol::new(&text).context("upper case and short");
    let mut engine = Engine::new();
    engine.stop_telling_levels();
    let mut commands = vec![Command::Venue(VenueCommand::SetEngineVersion(NEWEST))];
    for asset in &model.assets {
        let spec = AssetSpec { asset: *asset, symbol: symbol(format!("A{asset}"))?, decimals: 2 };
        commands.push(Command::Venue(VenueCommand::CreateAsset(spec)));
    }
    for account in (0..model.account_count + 2).map(AccountId) {
        commands.push(Command::Account(AccountCommand::Create(account)));
        let mut key = [7; 32];
        key[..4].copy_from_slice(&account.0.to_le_bytes());
        commands.push(Command::Account(AccountCommand::SetKey(SetAccountKey { account, key: PublicKey(key) })));
        for asset in &model.assets {
            let transfer_id = TransferId(u64::from(asset.0) + 1);
            let deposit = Transfer { account, asset: *asset, amount: endowment, transfer_id };
            commands.push(Command::Account(AccountCommand::Deposit(deposit)));
        }
    }
    let most = Amount::new(1 << 50).context("below AMOUNT_MAX")?;
    commands.push(Command::Instrument(InstrumentCommand::Create(InstrumentSpec {
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
    })));
    let phase = SetTradingPhase { instrument: INSTRUMENT, phase: TradingPhase::Continuous };
    commands.push(Command::Instrument(InstrumentCommand::SetPhase(phase)));
    let rules = walras_batch_venue::rules();
    commands.push(Command::BatchMarket(BatchMarketCommand::Create(BatchMarketSpec {
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
    })));
    let market = model.market;
    for asset in &model.assets {
        commands.push(Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market, asset: *asset })));
    }
    commands.push(Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market, phase: BatchPhase::Open })));
    let mut events = Vec::new();
    for command in commands {
        events.clear();
        engine.apply(engine.last_applied().next(), TimeNs(1), &command, &mut events);
        ensure!(!events.iter().any(|event| matches!(event, Event::Rejected(_))), "{command:?}: {events:?}");
    }
    engine.set_threads(NonZero::<usize>::MIN);
    engine.prepare_batches();
    ensure!(engine.last_applied() > LogIndex(0), "the venue is there");
    Ok(engine)
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_comes_to_its_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("beside");
        let scratch = folder.path().to_owned();
        let config = Config { rounds: 1, transactions: 500, accounts: 2_000, blocks: 3, orders_per_second: 1_000, scratch };
        run(&config, &mut report).unwrap();
        let figure = report.figures().iter().find(|figure| figure.metric == "order_p99_ratio_while_clearing").unwrap();
        assert!(figure.value > 0.0);
    }
}
