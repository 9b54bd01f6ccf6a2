//! A history that can be read again from its beginning, so that none of it has to stay in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Cursor;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use walras_market_history::{BookSnapshot, ByteSource, Format, History, HistoryEvent, HistoryInfo, HistoryKind, open_bytes};

use crate::error::ReplayError;
use crate::limits::REORDER_EVENTS_MAX;

/// Where a history lies.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(PathBuf),
    Bytes(Arc<[u8]>),
    Events(Arc<[HistoryEvent]>),
}

impl Source {
    /// Its bytes from the first on; `None` where it has none.
    pub(crate) fn bytes(&self) -> Result<Option<ByteSource>, ReplayError> {
        Ok(match self {
            Source::File(path) => Some(open_bytes(path)?),
            Source::Bytes(bytes) => Some(Box::new(Cursor::new(bytes.clone()))),
            Source::Events(_) => None,
        })
    }

    /// Its messages from the first on, as the file has them.
    pub(crate) fn messages(&self, format: Format) -> Result<Messages, ReplayError> {
        Ok(match (self, self.bytes()?) {
            (_, Some(bytes)) => Messages::Read(Box::new(History::new(bytes, format))),
            (Source::Events(events), None) => Messages::Made { events: events.clone(), next: 0 },
            (Source::File(_) | Source::Bytes(_), None) => unreachable!("files and bytes have bytes"),
        })
    }
}

/// All messages of a history that are events, snapshots included.
pub(crate) enum Messages {
    Read(Box<History<ByteSource>>),
    Made { events: Arc<[HistoryEvent]>, next: usize },
}

impl Messages {
    /// Units and origin of times; of made events those of their format.
    pub(crate) fn info(&self, format: Format) -> HistoryInfo {
        match self {
            Messages::Read(history) => history.info(),
            Messages::Made { .. } => History::new(std::io::empty(), format).info(),
        }
    }

    /// Messages so far that are no event.
    pub(crate) fn skipped(&self) -> u64 {
        match self {
            Messages::Read(history) => history.skipped(),
            Messages::Made { .. } => 0,
        }
    }

    /// What the last snapshot said.
    pub(crate) fn snapshot(&self) -> BookSnapshot {
        match self {
            Messages::Read(history) => *history.snapshot(),
            Messages::Made { .. } => BookSnapshot::default(),
        }
    }
}

impl Iterator for Messages {
    type Item = Result<HistoryEvent, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Messages::Read(history) => Some(history.next()?.map_err(ReplayError::from)),
            Messages::Made { events, next } => {
                let event = events.get(*next)?;
                *next += 1;
                Some(Ok(*event))
            }
        }
    }
}

/// An event that waits for those before it.
struct Waiting {
    key: (Option<NonZeroU64>, u64),
    event: HistoryEvent,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// Puts events that carry the exchange's running number in its order. Others pass as they come.
#[derive(Default)]
pub(crate) struct Order {
    waiting: BinaryHeap<Reverse<Waiting>>,
    given: Option<NonZeroU64>,
}

impl Order {
    /// Takes the next event of the file; gives one back when so many wait that none before it can come.
    pub(crate) fn take(&mut self, event: HistoryEvent) -> Result<Option<HistoryEvent>, ReplayError> {
        if event.sequence.is_none() {
            return Ok(Some(event));
        }
        if event.sequence < self.given {
            return Err(ReplayError::Disorder { index: event.index });
        }
        self.waiting.push(Reverse(Waiting { key: (event.sequence, event.index), event }));
        Ok(if self.waiting.len() > REORDER_EVENTS_MAX { self.rest() } else { None })
    }

    /// The first of those that wait; after the file's end, until none is left.
    pub(crate) fn rest(&mut self) -> Option<HistoryEvent> {
        let Reverse(first) = self.waiting.pop()?;
        self.given = first.event.sequence;
        Some(first.event)
    }
}

/// The events of one instrument and of the whole market (instrument 0) in the exchange's order, without snapshots.
pub(crate) struct Events {
    messages: Messages,
    instrument: u32,
    order: Order,
}

impl Events {
    pub(crate) fn new(messages: Messages, instrument: u32) -> Self {
        Self { messages, instrument, order: Order::default() }
    }
}

impl Iterator for Events {
    type Item = Result<HistoryEvent, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        for event in self.messages.by_ref() {
            let event = match event {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            if !concerns(&event, self.instrument) || matches!(event.kind, HistoryKind::Snapshot { .. }) {
                continue;
            }
            match self.order.take(event) {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(error) => return Some(Err(error)),
            }
        }
        self.order.rest().map(Ok)
    }
}

/// Whether an event is of this instrument or of the whole market.
pub(crate) fn concerns(event: &HistoryEvent, instrument: u32) -> bool {
    event.instrument == instrument || event.instrument == 0
}

/// A snapshot with its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedSnapshot {
    pub(crate) time_ns: u64,
    pub(crate) index: u64,
    pub(crate) snapshot: BookSnapshot,
}

/// The snapshots of one instrument, read apart from its events: they are looked at before the events of their time are done.
pub(crate) struct Snapshots {
    messages: Option<Messages>,
    instrument: u32,
}

impl Snapshots {
    pub(crate) fn new(messages: Messages, instrument: u32) -> Self {
        Self { messages: Some(messages), instrument }
    }

    /// Of a history that has none: nothing is read.
    pub(crate) fn none() -> Self {
        Self { messages: None, instrument: 0 }
    }
}

impl Iterator for Snapshots {
    type Item = Result<TimedSnapshot, ReplayError>;

    fn next(&mut self) -> Option<Self::Item> {
        let messages = self.messages.as_mut()?;
        while let Some(event) = messages.next() {
            match event {
                Err(error) => return Some(Err(error)),
                Ok(event) => {
                    if event.instrument == self.instrument && matches!(event.kind, HistoryKind::Snapshot { .. }) {
                        let snapshot = messages.snapshot();
                        return Some(Ok(TimedSnapshot { time_ns: event.time_ns, index: event.index, snapshot }));
                    }
                }
            }
        }
        None
    }
}
