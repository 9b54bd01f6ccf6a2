//! A market that a seed makes, what an archive of it must hold, and the ways to make one.

use std::collections::BTreeMap;
use std::path::Path;

use crossbeam_channel::{Receiver, unbounded};
use walras_archive::{Batch, Book, DbnForm, Files, KEYFRAME_NS, Keeper, Level, Recorder, Settings, Trade};
use walras_engine::Engine;
use walras_market_data::{MarketData, OrderHistories, Recorded};
use walras_testkit::Choices;
use walras_testkit::commands::{self, Range};
use walras_types::{InstrumentId, LogIndex, Side, TimeNs, TradeId, TradingPhase};
use walras_wire::{AccountCommand, Command, InstrumentCommand, SetTradingPhase, VenueCommand};

pub(crate) const EVERY_NS: u64 = 1_000_000_000;
pub(crate) const DEPTH: usize = 3;
/// 2026-11-20 at ten in the evening.
pub(crate) const BEGIN_NS: u64 = 1_795_212_000_000_000_000;

pub(crate) type Entry = (LogIndex, TimeNs, Command);

/// A log, and by another way what its archive holds.
pub(crate) struct Script {
    pub(crate) entries: Vec<Entry>,
    pub(crate) trades: Vec<Trade>,
    pub(crate) books: Vec<Book>,
    pub(crate) accounts: Vec<Recorded>,
}

pub(crate) fn settings(folder: &Path) -> Settings {
    Settings {
        folder: folder.to_path_buf(),
        depth: DEPTH as u32,
        snapshot_every_ns: EVERY_NS,
        parquet: true,
        dbn: true,
        dbn_form: DbnForm::default(),
        orders: true,
        keep_days: 0,
    }
}

impl Script {
    /// Trading in bursts, with pauses of seconds and of hours between them.
    pub(crate) fn of_seed(seed: u64, count: usize) -> Self {
        let c = &mut Choices::of_seed(seed);
        let mut entries = Vec::new();
        let mut time = TimeNs(BEGIN_NS);
        let opening = commands::opening(c, Range::Near);
        for at in 0..count {
            let command = match opening.get(at) {
                Some(command) => *command,
                None => match commands::command(c, Range::Near, time) {
                    // Most of the time is for trading, and some for auctions.
                    Command::Instrument(InstrumentCommand::SetPhase(set)) if c.below(2) == 0 => {
                        Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { phase: TradingPhase::Continuous, ..set }))
                    }
                    Command::Account(AccountCommand::SetStatus(_)) => Command::Venue(VenueCommand::Tick),
                    other => other,
                },
            };
            entries.push((LogIndex(at as u64 + 1), time, command));
            time.0 += match c.weighted(&[40, 40, 40, 4, 1]) {
                0 => 0,
                1 => c.below(1_000_000),
                2 => c.below(400_000_000),
                3 => c.below(20_000_000_000),
                _ => c.below(40_000_000_000_000),
            };
        }
        Self::of(entries)
    }

    pub(crate) fn of(entries: Vec<Entry>) -> Self {
        let (mut engine, mut market) = (Engine::new(), MarketData::new());
        let (mut trades, mut books) = (Vec::new(), Vec::new());
        let (mut histories, mut accounts) = (OrderHistories::default(), Vec::new());
        let mut shown: BTreeMap<u32, Book> = BTreeMap::new();
        let mut last_ids: Vec<TradeId> = Vec::new();
        let mut before: Option<u64> = None;
        for (log_index, time, command) in &entries {
            let (log_index, time) = (*log_index, *time);
            let mut events = Vec::new();
            engine.apply(log_index, time, command, &mut events);
            market.on_entry(log_index, time).unwrap();
            histories.on_entry(log_index, time, Some(command), &events, &mut accounts);
            for event in &events {
                market.on_event(log_index, time, event).unwrap();
                // After each event, so that trades of several instruments come in their order.
                for feed in market.instruments() {
                    let at = feed.spec().instrument.0 as usize;
                    last_ids.resize(last_ids.len().max(at + 1), TradeId(0));
                    for t in feed.tape().since(last_ids[at]) {
                        last_ids[at] = t.trade_id;
                        let (trade_id, price, size, taker_side) = (t.trade_id, t.price, t.size, t.taker_side);
                        let instrument = InstrumentId(at as u32);
                        trades.push(Trade { log_index, time, instrument, trade_id, price, size, taker_side });
                    }
                }
            }
            let is_first_of = |length: u64| before.is_none_or(|before| before / length < time.0 / length);
            if is_first_of(EVERY_NS) {
                for view in engine.instruments() {
                    let instrument = view.spec.instrument;
                    let side = |side| {
                        let mut depth = Vec::new();
                        engine.depth(instrument, side, DEPTH, &mut depth);
                        depth.iter().map(|l| Level { price: l.price, size: l.shown, order_count: l.order_count }).collect()
                    };
                    let book = Book { log_index, time, instrument, bids: side(Side::Buy), asks: side(Side::Sell) };
                    let same = |last: &Book| last.shows_the_same(&book) && last.time.0 / KEYFRAME_NS == time.0 / KEYFRAME_NS;
                    if !shown.get(&instrument.0).is_some_and(same) {
                        books.push(book.clone());
                        shown.insert(instrument.0, book);
                    }
                }
            }
            before = Some(time.0);
        }
        Self { entries, trades, books, accounts }
    }
}

/// The engine's side of a venue that has started with a replay from `engine` on.
pub(crate) struct Venue {
    pub(crate) engine: Engine,
    histories: OrderHistories,
    pub(crate) recorder: Recorder,
    pub(crate) batches: Receiver<Batch>,
}

impl Venue {
    pub(crate) fn new(settings: &Settings, durable: LogIndex, engine: Engine) -> Self {
        let (sender, batches) = unbounded();
        let recorder = Recorder::new(sender, settings.depth as usize, settings.snapshot_every_ns, durable.next(), &engine);
        let recorder = if settings.orders { recorder.with_orders(&engine) } else { recorder };
        Self { engine, histories: OrderHistories::default(), recorder, batches }
    }

    pub(crate) fn apply(&mut self, (log_index, time, command): &Entry) {
        let mut events = Vec::new();
        self.engine.apply(*log_index, *time, command, &mut events);
        let mut records = Vec::new();
        self.histories.on_entry(*log_index, *time, Some(command), &events, &mut records);
        self.recorder.on_entry(*log_index, *time, &events, &records, &self.engine);
    }

    /// The same, recorded by a recorder of its own.
    pub(crate) fn apply_to(&mut self, (log_index, time, command): &Entry, recorder: &mut Recorder) {
        let (mut events, mut records) = (Vec::new(), Vec::new());
        self.engine.apply(*log_index, *time, command, &mut events);
        self.histories.on_entry(*log_index, *time, Some(command), &events, &mut records);
        recorder.on_entry(*log_index, *time, &events, &records, &self.engine);
    }

    /// Everything recorded until now is taken.
    pub(crate) fn hand_over(&mut self, keeper: &mut Keeper) {
        self.recorder.flush();
        self.batches.try_iter().for_each(|batch| keeper.take(batch));
    }
}

/// How often a script's archive is made durable.
pub(crate) const COMMIT_ENTRIES: usize = 250;

/// Archives a script, in an archive that may have been begun; the error of a disk that fails.
pub(crate) fn try_archive(settings: &Settings, files: Files, script: &Script) -> Result<Keeper, walras_archive::ArchiveError> {
    let mut keeper = Keeper::open(settings.clone(), files)?;
    let mut venue = Venue::new(settings, keeper.durable(), Engine::new());
    for some in script.entries.chunks(COMMIT_ENTRIES) {
        some.iter().for_each(|entry| venue.apply(entry));
        venue.hand_over(&mut keeper);
        keeper.commit()?;
        while keeper.close_one()?.is_some() {}
    }
    assert_eq!(keeper.durable(), script.entries.last().unwrap().0);
    Ok(keeper)
}

pub(crate) fn archive(settings: &Settings, script: &Script) -> Keeper {
    try_archive(settings, Files::default(), script).unwrap()
}

/// Every file of a folder.
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for day in std::fs::read_dir(folder).unwrap() {
        let day = day.unwrap().path();
        if !day.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&day).unwrap() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            found.insert(name, std::fs::read(&path).unwrap());
        }
    }
    found
}
