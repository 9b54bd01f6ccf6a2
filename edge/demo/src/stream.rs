//! The replayed stream: its source, its pace, its end and restart.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tracing::{debug, warn};
use walras_config::Speed;
use walras_market_history::synthetic::{Synthetic, SyntheticConfig, View};
use walras_market_history::{History, HistoryEvent, HistoryKind, TickScale};
use walras_ports::{Answer, NoOutcome, Outcome, Storage, VenueHandle};
use walras_terminal::progress::Slow;
use walras_types::{PriceTicks, RejectReason};
use walras_wire::{CancelOrder, Command, Event, MassCancel, OrderCommand, OrderEvent, VenueCommand};

use super::scenario::{Scenario, cents};
use super::translate::{Sent, Translator};
use super::{DemoError, StopSignal};

/// Length of a generated stream; then another one follows with another seed.
const SYNTHETIC_NS: u64 = 3_600_000_000_000;
/// Maximum number of a recorded file's events in memory.
const EVENTS_MAX: usize = 10_000_000;
/// Maximum number of outstanding answers before the stream waits.
const OUTSTANDING_MAX: usize = 4_096;
/// Minimum interval between updates of the shown progress.
const SHOW_EVERY: Duration = Duration::from_millis(500);
/// Pause before a command is sent again after a full queue.
const FULL_PAUSE: Duration = Duration::from_micros(100);

/// The source of the stream.
#[derive(Debug)]
pub struct Source {
    name: String,
    symbol: String,
    scale: TickScale,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Recorded(Vec<HistoryEvent>),
    Made { seed: u64 },
}

impl Source {
    /// The given file; for an empty name, the recorded sample if it exists, otherwise a generated stream.
    pub fn find(file: &str, seed: u64) -> Result<Self, DemoError> {
        match file {
            "synthetic" => Ok(Self::made(seed)),
            "" => match sample() {
                Some(path) => Self::recorded(&path),
                None => Ok(Self::made(seed)),
            },
            path => Self::recorded(Path::new(path)),
        }
    }

    fn made(seed: u64) -> Self {
        let name = format!("a generated stream (seed {seed})");
        Self { name, symbol: "WAL".into(), scale: scale(10_000, 1), kind: Kind::Made { seed } }
    }

    fn recorded(path: &Path) -> Result<Self, DemoError> {
        let mut history = History::open(path)?;
        let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        let mut progress = Slow::new("reading the stream", None);
        let mut events = Vec::new();
        for event in history.by_ref() {
            events.push(event?);
            progress.set(events.len() as u64);
            if events.len() == EVENTS_MAX {
                break;
            }
        }
        progress.finish();
        let info = history.info();
        let leading: String = name.chars().take_while(char::is_ascii_alphanumeric).take(8).collect::<String>().to_ascii_uppercase();
        let symbol = if leading.is_empty() { "DEMO".to_owned() } else { leading };
        let source = Self { name, symbol, scale: scale(info.price_scale, info.size_scale), kind: Kind::Recorded(events) };
        if source.first_event_price().is_none() {
            return Err(DemoError::Empty(path.display().to_string()));
        }
        Ok(source)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The traded symbol, such as `AAPL`.
    #[must_use]
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    fn first_event_price(&self) -> Option<PriceTicks> {
        let Kind::Recorded(events) = &self.kind else { return None };
        events.iter().find_map(|event| match event.kind {
            HistoryKind::Add { price, .. } | HistoryKind::Submit { price, .. } => self.scale.ticks(price).ok(),
            _ => None,
        })
    }

    /// Its initial price, in cents.
    #[must_use]
    pub fn first_price(&self) -> PriceTicks {
        self.first_event_price().unwrap_or(cents(SyntheticConfig::default().start_price_ticks))
    }

    /// The events of a pass: the same recording again, or a generated stream from another seed.
    fn pass(&self, pass: u64) -> std::borrow::Cow<'_, [HistoryEvent]> {
        match &self.kind {
            Kind::Recorded(events) => events.into(),
            Kind::Made { seed } => {
                let default = SyntheticConfig::default();
                let config =
                    SyntheticConfig { seed: seed.wrapping_add(pass), view: View::Feed, duration_ns: SYNTHETIC_NS, ..default };
                Synthetic::new(config).collect::<Vec<_>>().into()
            }
        }
    }
}

/// Cents and whole shares.
fn scale(price_scale: u64, size_scale: u64) -> TickScale {
    let units_per_tick = i64::try_from((price_scale / 100).max(1)).unwrap_or(i64::MAX);
    TickScale::new(units_per_tick, size_scale.max(1)).expect("both are at least one")
}

/// The recorded sample, under `WALRAS_DATA` or next to the repository.
fn sample() -> Option<PathBuf> {
    let folder = std::env::var_os("WALRAS_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join("lobster")).ok()?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.into_iter().find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("_message_")))
}

/// The position saved at an orderly stop.
#[derive(Debug, Serialize, Deserialize)]
struct Bookmark {
    source: String,
    pass: u64,
    index: usize,
}

/// The thread's state.
pub(super) struct Stream {
    venue: VenueHandle,
    scenario: Scenario,
    source: Source,
    speed: Speed,
    bookmark: PathBuf,
    /// Outstanding answers, each with the order that should be filled by then.
    outstanding: VecDeque<(Answer, CancelOrder)>,
}

impl Stream {
    pub(super) fn new(venue: &VenueHandle, scenario: Scenario, source: Source, speed: Speed, data: &Path) -> Self {
        let bookmark = data.join("demo-position.json");
        Self { venue: venue.clone(), scenario, source, speed, bookmark, outstanding: VecDeque::new() }
    }

    /// Replays the stream repeatedly until it is stopped.
    pub(super) fn run(&mut self, stop: &StopSignal, mut show: impl FnMut(u16)) {
        let (mut pass, mut from) = self.resume();
        if from == 0 {
            self.clear();
        }
        loop {
            match self.one_pass(pass, from, stop, &mut show) {
                Ok(None) => {}
                Ok(Some(index)) => return self.leave_bookmark(pass, index),
                Err(reason) => return warn!("the stream ends: {reason}"),
            }
            debug!("the stream is over; it begins again");
            (pass, from) = (pass + 1, 0);
            self.clear();
            if let Err(e) = self.scenario.top_up(&self.venue) {
                warn!("{e}");
            }
        }
    }

    /// The saved position, if any. It is removed, so that after a run that does not save one the stream starts from its beginning.
    fn resume(&self) -> (u64, usize) {
        let read = std::fs::read(&self.bookmark).ok().and_then(|bytes| serde_json::from_slice::<Bookmark>(&bytes).ok());
        let _ = std::fs::remove_file(&self.bookmark);
        match read {
            Some(mark) if mark.source == self.source.name => (mark.pass, mark.index),
            _ => (0, 0),
        }
    }

    fn leave_bookmark(&self, pass: u64, index: usize) {
        let mark = Bookmark { source: self.source.name.clone(), pass, index };
        let text = serde_json::to_string(&mark).expect("strings and numbers always encode");
        if let Err(e) = std::fs::write(&self.bookmark, text) {
            warn!("the stream's position was not saved ({e}): the next start begins the stream from its beginning");
        }
    }

    /// Cancels all orders of the stream's accounts.
    fn clear(&mut self) {
        self.outstanding.clear();
        for &account in &self.scenario.crowd {
            let all = Command::Order(OrderCommand::MassCancel(MassCancel {
                account,
                instrument: Some(self.scenario.instrument),
                side: None,
            }));
            if let Err(reason) = self.venue.command_blocking(all) {
                warn!("the crowd's orders were not cancelled: {reason}");
            }
        }
    }

    /// Runs one pass from an event on. Returns the position if it was stopped.
    fn one_pass(
        &mut self,
        pass: u64,
        from: usize,
        stop: &StopSignal,
        show: &mut impl FnMut(u16),
    ) -> Result<Option<usize>, RejectReason> {
        let source = std::mem::replace(&mut self.source, Source::made(0));
        let result = self.play(&source.pass(pass), source.scale, pass, from, stop, show);
        self.source = source;
        result
    }

    fn play(
        &mut self,
        events: &[HistoryEvent],
        scale: TickScale,
        pass: u64,
        from: usize,
        stop: &StopSignal,
        show: &mut impl FnMut(u16),
    ) -> Result<Option<usize>, RejectReason> {
        let mut translator = Translator::new(self.scenario.instrument, self.scenario.crowd.clone(), scale, pass);
        let from = from.min(events.len());
        // The orders of a resumed pass are still open: only the translator's state must be rebuilt.
        for event in &events[..from] {
            translator.translate(event);
        }
        let Some(first) = events.get(from) else { return Ok(None) };
        let (mut begun, start_ns) = (Instant::now(), first.time_ns);
        let mut shown: Option<Instant> = None;
        for (index, event) in events.iter().enumerate().skip(from) {
            let due = self.speed.due(event.time_ns.saturating_sub(start_ns));
            if stop.wait(due.saturating_sub(begun.elapsed())) {
                return Ok(Some(index));
            }
            while self.venue.status().storage() != Storage::Ok {
                // Commands are refused for now: the stream waits, so that none is skipped.
                let paused = Instant::now();
                if stop.wait(Duration::from_secs(1)) {
                    return Ok(Some(index));
                }
                self.venue.command_blocking(Command::Venue(VenueCommand::Tick)).ok();
                begun += paused.elapsed();
            }
            for sent in translator.translate(event) {
                self.send(sent)?;
            }
            self.settle(OUTSTANDING_MAX)?;
            if shown.is_none_or(|shown| shown.elapsed() > SHOW_EVERY) {
                shown = Some(Instant::now());
                show(u16::try_from(index * 1000 / events.len()).unwrap_or(1000));
            }
        }
        self.settle(0)?;
        Ok(None)
    }

    fn send(&mut self, sent: Sent) -> Result<(), RejectReason> {
        let Some(order) = sent.should_fill else { return self.venue.send_blocking(sent.command) };
        loop {
            match self.venue.submit(sent.command) {
                Ok(answer) => {
                    self.outstanding.push_back((answer, order));
                    return Ok(());
                }
                Err(RejectReason::Overloaded) => std::thread::sleep(FULL_PAUSE), // pause: the venue works off its queue
                Err(reason) => return Err(reason),
            }
        }
    }

    /// Handles available answers, and waits while more than `most` are outstanding.
    fn settle(&mut self, most: usize) -> Result<(), RejectReason> {
        while let Some((answer, order)) = self.outstanding.front_mut() {
            let order = *order;
            let outcome = match answer.try_recv() {
                Ok(outcome) => outcome,
                Err(oneshot::error::TryRecvError::Closed) => Err(NoOutcome::GONE),
                Err(oneshot::error::TryRecvError::Empty) if self.outstanding.len() > most => {
                    let Some((answer, _)) = self.outstanding.pop_front() else { return Ok(()) };
                    let outcome = answer.blocking_recv().unwrap_or(Err(NoOutcome::GONE));
                    self.cancel_unless_filled(outcome, order)?;
                    continue;
                }
                Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
            };
            self.outstanding.pop_front();
            self.cancel_unless_filled(outcome, order)?;
        }
        Ok(())
    }

    fn cancel_unless_filled(&self, outcome: Result<Outcome, NoOutcome>, order: CancelOrder) -> Result<(), RejectReason> {
        let is_filled = match outcome {
            Ok(outcome) => outcome.events.iter().any(|event| match event {
                Event::Order(OrderEvent::Traded(t)) => {
                    t.maker.account == order.account && t.maker.client_order_id == order.client_order_id && t.maker.open.is_zero()
                }
                _ => false,
            }),
            Err(why) if why.reason() == RejectReason::VenueNotReady => return Err(RejectReason::VenueNotReady),
            Err(_) => false,
        };
        if is_filled { Ok(()) } else { self.venue.send_blocking(Command::Order(OrderCommand::Cancel(order))) }
    }
}
