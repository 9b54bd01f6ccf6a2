//! A history through an engine of its own: accounts, risk, ledger and book, in this process.

use std::path::Path;
use std::time::Instant;

use walras_engine::Engine;
use walras_log_store::{LogOptions, LogWriter, RealDisk};
use walras_market_history::Format;
use walras_market_history::workload_file::level_hash;
use walras_order_book::DepthLevel;
use walras_sequencer::{decode_entry, encode_entry};
use walras_types::{AccountId, AssetId, LogIndex, Side, TimeNs};
use walras_wire::{Command, Event, InstrumentEvent, OrderEvent};

use super::report::{AssetReport, LogReport, UncrossReport, VenueCounts, VenueReport, VenueTiming};
use super::{VenueOptions, commands, setup};
use crate::error::ReplayError;
use crate::load::Loaded;
use crate::options::{Options, Progress, Stage};
use crate::plan::PlanCounts;
use crate::report::WorkloadReport;
use crate::run::{expectation, is_expected};

/// Commands whose application is timed together; so many are in memory at a time.
const CHUNK: usize = 4_096;

/// Reads a file, runs it through a venue and reports. Where a data folder is given, once more through a durable log in it: it must
/// hold none yet. Of `options` the venue takes the format, the scale, the instrument and the rounds.
pub fn run(
    path: &Path,
    options: &Options,
    log: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<VenueReport, ReplayError> {
    let loaded = Loaded::open(path, options, progress)?;
    let mut report = run_loaded(&loaded, &VenueOptions::new(loaded.format), options, log, progress)?;
    report.file = Some(path.to_owned());
    if let Some(workload) = &mut report.workload
        && let Some(expected) = expectation(path)?
    {
        workload.as_expected = Some(is_expected(workload, &expected));
    }
    Ok(report)
}

/// Runs what is loaded through a venue.
pub fn run_loaded(
    loaded: &Loaded,
    venue: &VenueOptions,
    options: &Options,
    log: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<VenueReport, ReplayError> {
    let rounds = options.timing_rounds;
    // One round is run in any case: it is what is counted.
    let mut first: Option<Round> = None;
    let mut rounds_ns = Vec::new();
    for number in 0..rounds.max(1) {
        let round = Round::run(loaded, venue, &mut |done, total| {
            let stage = if number == 0 { Stage::Comparing } else { Stage::Timing };
            progress(Progress { stage, done, total });
        })?;
        rounds_ns.push(round.apply_ns);
        match &first {
            None => first = Some(round),
            Some(first) => assert_eq!(round.engine.state_hash(), first.engine.state_hash(), "the same log gave another state"),
        }
    }
    let round = first.expect("a round was run");
    round.engine.check_invariants();
    rounds_ns.sort_unstable();
    let total_ns = rounds_ns[rounds_ns.len() / 2];
    let (messages, plan) = (round.messages, round.plan);
    let timing = (rounds > 0).then(|| VenueTiming {
        rounds,
        messages,
        commands: round.counts.commands,
        total_ns,
        ns_per_message: total_ns as f64 / messages.max(1) as f64,
        ns_per_command: total_ns as f64 / round.counts.commands.max(1) as f64,
    });
    let log = log.map(|folder| logged(loaded, venue, folder, &round.engine, progress)).transpose()?;
    let mut report = VenueReport {
        format: loaded.format.name(),
        instrument: loaded.instrument,
        symbol: loaded.instrument_name(),
        file_messages: loaded.file_messages,
        out_of_order: loaded.out_of_order,
        messages: plan.messages,
        left_out: plan.left_out,
        orders_presumed_deleted: plan.presumed_deleted,
        orders_set_aside: plan.set_aside,
        units_per_tick: loaded.scale.units_per_tick,
        price_scale: loaded.info.price_scale,
        timing,
        log,
        ..round.report(venue)
    };
    if loaded.format != Format::Workload {
        report.workload = None;
    }
    Ok(report)
}

/// One run of all commands.
struct Round {
    engine: Engine,
    counts: VenueCounts,
    commands_with_trade: u64,
    uncrosses: Vec<UncrossReport>,
    rejects: std::collections::BTreeMap<&'static str, u64>,
    apply_ns: u64,
    /// Messages that the commands stand for, and what the file said.
    messages: u64,
    plan: PlanCounts,
}

impl Round {
    fn run(loaded: &Loaded, options: &VenueOptions, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Self, ReplayError> {
        let mut engine = Engine::new();
        let mut events = Vec::new();
        let mut counts = VenueCounts { accounts: options.accounts, ..VenueCounts::default() };
        for command in setup(loaded, options)? {
            engine.apply(engine.last_applied().next(), options.start, &command, &mut events);
            if let Some(Event::Rejected(rejected)) = events.iter().find(|event| matches!(event, Event::Rejected(_))) {
                return Err(ReplayError::Venue {
                    what: rejected.reason.advice(),
                    advice: "choose another tick, lot or set of ids",
                });
            }
            counts.setup_commands += 1;
            events.clear();
        }
        let mut round = Self {
            engine,
            counts,
            commands_with_trade: 0,
            uncrosses: Vec::new(),
            rejects: Default::default(),
            apply_ns: 0,
            messages: 0,
            plan: PlanCounts::default(),
        };
        let mut source = commands(loaded, options)?;
        let mut chunk: Vec<(TimeNs, Command)> = Vec::with_capacity(CHUNK);
        // Where the events of each command end.
        let mut ends = Vec::with_capacity(CHUNK);
        loop {
            chunk.clear();
            chunk.extend(source.by_ref().take(CHUNK));
            if chunk.is_empty() {
                progress(round.counts.commands, Some(round.counts.commands));
                (round.messages, round.plan) = source.finish()?;
                return Ok(round);
            }
            events.clear();
            ends.clear();
            let mut index = round.engine.last_applied();
            let start = Instant::now();
            for (time, command) in &chunk {
                index = index.next();
                round.engine.apply(index, *time, command, &mut events);
                ends.push(events.len());
            }
            round.apply_ns += elapsed_ns(start);
            let mut from = 0;
            for &end in &ends {
                round.count(&events[from..end]);
                from = end;
            }
            progress(round.counts.commands, None);
        }
    }

    fn count(&mut self, events: &[Event]) {
        self.counts.commands += 1;
        let trades = self.counts.trades;
        for event in events {
            match event {
                Event::Rejected(rejected) => {
                    self.counts.rejected += 1;
                    *self.rejects.entry(rejected.reason.name()).or_default() += 1;
                }
                Event::Order(OrderEvent::Accepted(_)) => self.counts.orders_accepted += 1,
                Event::Order(OrderEvent::Traded(traded)) => {
                    self.counts.trades += 1;
                    self.counts.volume_lots += traded.size.get();
                }
                Event::Instrument(InstrumentEvent::Uncrossed(uncrossed)) => self
                    .uncrosses
                    .push(UncrossReport { price_ticks: uncrossed.price.map(|price| price.get()), lots: uncrossed.volume.get() }),
                Event::Order(OrderEvent::Amended(_) | OrderEvent::Cancelled(_) | OrderEvent::Reduced(_)) => {}
                Event::Order(OrderEvent::Replenished(_) | OrderEvent::Triggered(_)) => {}
                Event::Instrument(InstrumentEvent::Created(_) | InstrumentEvent::PhaseChanged(_)) => {}
                Event::Account(_) | Event::Session(_) | Event::Shard(_) | Event::Venue(_) => {}
                Event::BatchMarket(_) | Event::Batch(_) => {}
            }
        }
        self.commands_with_trade += u64::from(self.counts.trades > trades);
    }

    fn report(self, options: &VenueOptions) -> VenueReport {
        let [asks, bids] = [Side::Sell, Side::Buy].map(|side| {
            let mut levels = Vec::new();
            self.engine.depth(options.instrument, side, usize::MAX, &mut levels);
            levels
        });
        let orders = |levels: &[DepthLevel]| levels.iter().map(|level| u64::from(level.order_count)).sum::<u64>();
        let pairs = |levels: &[DepthLevel]| levels.iter().map(|level| (level.price.get(), level.shown.get())).collect::<Vec<_>>();
        let workload = WorkloadReport {
            trades: self.counts.trades,
            volume_lots: self.counts.volume_lots,
            commands_with_trade: self.commands_with_trade,
            ask_levels: asks.len() as u64,
            bid_levels: bids.len() as u64,
            ask_orders: orders(&asks),
            bid_orders: orders(&bids),
            level_hash: level_hash(pairs(&asks).into_iter(), pairs(&bids).into_iter()),
            as_expected: None,
        };
        VenueReport {
            venue: VenueCounts { resting_orders_end: orders(&asks) + orders(&bids), ..self.counts },
            uncrosses: self.uncrosses,
            rejects: self.rejects,
            workload: Some(workload),
            conservation: conservation(&self.engine),
            state_hash: data_encoding::HEXLOWER.encode(&self.engine.state_hash()),
            ..VenueReport::default()
        }
    }
}

/// Adds up what all accounts have.
///
/// # Panics
/// When it is not what was issued.
fn conservation(engine: &Engine) -> Vec<AssetReport> {
    let of_asset = |(asset, symbol): (AssetId, String)| {
        let (mut available_units, mut reserved_units) = (0, 0);
        for account in (0..engine.account_count()).map(AccountId) {
            let balance = engine.balance(account, asset);
            available_units += balance.available.get();
            reserved_units += balance.reserved.get();
        }
        let (supply_units, fees_units) = (engine.supply(asset).get(), engine.fees(asset).get());
        assert_eq!(supply_units, available_units + reserved_units + fees_units, "units of {symbol} were made or lost");
        AssetReport { symbol, supply_units, available_units, reserved_units, fees_units }
    };
    engine.assets().iter().map(|asset| (asset.asset, asset.symbol.to_string())).map(of_asset).collect()
}

/// Runs the same commands through a log, each durable before it is applied; then reads the log back into a third engine. Both must
/// end where `expected` did.
fn logged(
    loaded: &Loaded,
    options: &VenueOptions,
    folder: &Path,
    expected: &Engine,
    progress: &mut dyn FnMut(Progress),
) -> Result<LogReport, ReplayError> {
    let dir = folder.join("log");
    let (mut log, recovery) = LogWriter::open(RealDisk, &dir, LogOptions::default())?;
    if recovery.entry_count > 0 || log.next_index() != LogIndex(1) {
        return Err(ReplayError::LogInUse(dir));
    }
    let mut report = LogReport { folder: folder.to_owned(), ..LogReport::default() };
    let (mut engine, mut events, mut syncs_ns) = (Engine::new(), Vec::new(), Vec::new());
    let start_of_day = setup(loaded, options)?.into_iter().map(|command| (options.start, command));
    let mut source = start_of_day.chain(commands(loaded, options)?);
    let mut chunk: Vec<(TimeNs, Command)> = Vec::with_capacity(CHUNK);
    let total = expected.last_applied().0;
    loop {
        chunk.clear();
        chunk.extend(source.by_ref().take(CHUNK));
        if chunk.is_empty() {
            break;
        }
        let start = Instant::now();
        for (time, command) in &chunk {
            log.append_with(|buffer| {
                let from = buffer.len();
                encode_entry(*time, None, command, buffer);
                report.payload_bytes += (buffer.len() - from) as u64;
            })?;
        }
        let before_sync = Instant::now();
        log.sync()?;
        syncs_ns.push(elapsed_ns(before_sync));
        for (time, command) in &chunk {
            events.clear();
            engine.apply(engine.last_applied().next(), *time, command, &mut events);
        }
        report.total_ns += elapsed_ns(start);
        report.entries += chunk.len() as u64;
        log.maintain()?;
        progress(Progress { stage: Stage::Logging, done: report.entries, total: Some(total) });
    }
    log.close()?;
    let (mut reader, _lock) = walras_log_store::open_read_only(&RealDisk, &dir, None)?;
    let mut again = Engine::new();
    while let Some(stored) = reader.next()? {
        let entry =
            decode_entry(stored.index, stored.payload).map_err(|source| ReplayError::Entry { index: stored.index, source })?;
        events.clear();
        entry.apply(&mut again, &mut events);
        progress(Progress { stage: Stage::ReadingBack, done: stored.index.0, total: Some(total) });
    }
    assert_eq!(engine.state_hash(), expected.state_hash(), "the same commands through a log gave another state");
    assert_eq!(again.state_hash(), expected.state_hash(), "the log read back gave another state");
    syncs_ns.sort_unstable();
    let at = |permille: usize| syncs_ns.get((syncs_ns.len() * permille / 1_000).min(syncs_ns.len().saturating_sub(1))).copied();
    report.syncs = syncs_ns.len() as u64;
    report.sync_p50_ns = at(500).unwrap_or(0);
    report.sync_p99_ns = at(990).unwrap_or(0);
    Ok(report)
}

fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
