//! A file of history, whole in memory and in the order in which things happened.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use walras_market_history::sse::{SseMessage, SseReader};
use walras_market_history::{
    BookSnapshot, Format, History, HistoryEvent, HistoryInfo, HistoryKind, PriceUnits, TickScale, detect, open_bytes,
};

use crate::error::ReplayError;
use crate::options::{Options, Progress, Stage};

/// How a file's units map to ticks and lots.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Price units of a tick.
    pub units_per_tick: i64,
    /// Size units of a lot.
    pub units_per_lot: u64,
    pub(crate) ticks_and_lots: TickScale,
}

impl Scale {
    /// A scale, or an error if either is below one.
    pub fn new(units_per_tick: i64, units_per_lot: u64) -> Result<Self, ReplayError> {
        let ticks_and_lots =
            TickScale::new(units_per_tick, units_per_lot).ok_or(ReplayError::Scale { units_per_tick, units_per_lot })?;
        Ok(Self { units_per_tick, units_per_lot, ticks_and_lots })
    }

    /// The tick and lot of a format's known markets: cents and shares; cents and satoshi; the workloads' own.
    #[must_use]
    pub fn of_format(format: Format) -> Self {
        let (units_per_tick, units_per_lot) = match format {
            Format::Lobster | Format::Itch => (100, 1),
            Format::Sse => (10, 1_000),
            Format::BitstampLog | Format::BitstampOrders | Format::Workload => (1, 1),
        };
        Self::new(units_per_tick, units_per_lot).expect("the formats' scales are at least one")
    }
}

/// A snapshot with its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedSnapshot {
    pub(crate) time_ns: u64,
    pub(crate) index: u64,
    pub(crate) snapshot: BookSnapshot,
}

/// All of a file that concerns one instrument.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) format: Format,
    pub(crate) info: HistoryInfo,
    pub(crate) scale: Scale,
    pub(crate) instrument: u32,
    pub(crate) events: Vec<HistoryEvent>,
    pub(crate) snapshots: Vec<TimedSnapshot>,
    /// Messages of the file, those of other instruments and those that are no event included.
    pub(crate) file_messages: u64,
    /// Events that stood in the file before one that happened earlier.
    pub(crate) out_of_order: u64,
    pub(crate) previous_close: Option<PriceUnits>,
}

/// How often progress is told, in messages.
const PROGRESS_STEP: u64 = 1 << 16;

impl Loaded {
    /// Its format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Reads a file.
    pub fn open(path: &Path, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Self, ReplayError> {
        let format = match options.format {
            Some(format) => format,
            None => detect(path)?,
        };
        let loaded = Self::read(open_bytes(path)?, format, options, progress)?;
        if loaded.events.is_empty() && loaded.snapshots.is_empty() {
            return Err(ReplayError::Empty(path.to_owned()));
        }
        Ok(loaded)
    }

    /// History that is no file, such as a generated market, in the units and by the rules of this format.
    #[must_use]
    pub fn from_events(format: Format, info: HistoryInfo, events: Vec<HistoryEvent>) -> Self {
        let instrument = events.iter().map(|event| event.instrument).max().unwrap_or(0);
        Self {
            format,
            info,
            scale: Scale::of_format(format),
            instrument,
            file_messages: events.len() as u64,
            events,
            snapshots: Vec::new(),
            out_of_order: 0,
            previous_close: None,
        }
    }

    /// Reads `source` as this format.
    pub fn read<R: BufRead>(
        source: R,
        format: Format,
        options: &Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ReplayError> {
        let scale = options.scale.unwrap_or_else(|| Scale::of_format(format));
        let mut reading = Reading { events: Vec::new(), snapshots: Vec::new(), previous_close: None, messages: 0 };
        let info = if format == Format::Sse {
            reading.read_sse(source, progress)?;
            walras_market_history::sse::INFO
        } else {
            let mut history = History::new(source, format);
            while let Some(event) = history.next() {
                reading.take(event?, history.snapshot(), progress);
            }
            reading.messages += history.skipped();
            history.info()
        };
        progress(Progress { stage: Stage::Reading, done: reading.messages, total: Some(reading.messages) });
        let instrument = reading.keep_instrument(options.instrument)?;
        let out_of_order = reading.sort();
        Ok(Self {
            format,
            info,
            scale,
            instrument,
            events: reading.events,
            snapshots: reading.snapshots.into_iter().map(|(_, snapshot)| snapshot).collect(),
            file_messages: reading.messages,
            out_of_order,
            previous_close: reading.previous_close,
        })
    }
}

struct Reading {
    events: Vec<HistoryEvent>,
    snapshots: Vec<(u32, TimedSnapshot)>,
    previous_close: Option<PriceUnits>,
    messages: u64,
}

impl Reading {
    fn take(&mut self, event: HistoryEvent, snapshot: &BookSnapshot, progress: &mut dyn FnMut(Progress)) {
        self.messages += 1;
        if self.messages.is_multiple_of(PROGRESS_STEP) {
            progress(Progress { stage: Stage::Reading, done: self.messages, total: None });
        }
        match event.kind {
            HistoryKind::Snapshot { .. } => {
                let timed = TimedSnapshot { time_ns: event.time_ns, index: event.index, snapshot: *snapshot };
                self.snapshots.push((event.instrument, timed));
            }
            _ => self.events.push(event),
        }
    }

    /// The Shanghai log's snapshots also hold yesterday's closing price, which is no event.
    fn read_sse<R: BufRead>(&mut self, source: R, progress: &mut dyn FnMut(Progress)) -> Result<(), ReplayError> {
        let mut reader = SseReader::new(source);
        while let Some(message) = reader.next_message() {
            let (index, timed) = message?;
            if let SseMessage::Snapshot { previous_close, .. } = timed.message {
                self.previous_close = Some(previous_close).filter(|price| price.0 > 0);
            }
            self.take(timed.event(index, reader.snapshot()), reader.snapshot(), progress);
        }
        Ok(())
    }

    /// Keeps the instrument asked for, or the busiest, and what concerns the whole market (instrument 0).
    fn keep_instrument(&mut self, wanted: Option<u32>) -> Result<u32, ReplayError> {
        let mut counts: HashMap<u32, u64> = HashMap::new();
        for event in &self.events {
            let of_a_book = !matches!(event.kind, HistoryKind::Phase(_) | HistoryKind::Directory { .. });
            *counts.entry(event.instrument).or_default() += u64::from(of_a_book);
        }
        let mut present: Vec<(u64, u32)> =
            counts.into_iter().filter(|&(_, count)| count > 0).map(|(id, count)| (count, id)).collect();
        present.sort_unstable_by_key(|&(count, id)| (std::cmp::Reverse(count), id));
        let chosen = match wanted {
            None => present.first().map_or(0, |&(_, id)| id),
            Some(id) if present.iter().any(|&(_, other)| other == id) => id,
            Some(wanted) => {
                return Err(ReplayError::UnknownInstrument { wanted, present: present.iter().map(|&(_, id)| id).collect() });
            }
        };
        self.events.retain(|event| event.instrument == chosen || event.instrument == 0);
        self.snapshots.retain(|&(instrument, _)| instrument == chosen);
        Ok(chosen)
    }

    /// Puts events that carry the exchange's running number in its order, and counts those that stood out of it.
    fn sort(&mut self) -> u64 {
        let back = |events: &[HistoryEvent]| {
            events.windows(2).filter(|pair| (pair[1].sequence, pair[1].time_ns) < (pair[0].sequence, pair[0].time_ns)).count()
                as u64
        };
        let out_of_order = back(&self.events);
        if self.events.iter().all(|event| event.sequence.is_some()) {
            self.events.sort_by_key(|event| event.sequence);
        }
        out_of_order
    }
}
