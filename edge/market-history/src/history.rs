//! Any file of history as one stream of events.

use std::io::BufRead;
use std::path::Path;

use crate::bitstamp::{self, BitstampLogReader, BitstampOrdersReader};
use crate::error::HistoryError;
use crate::event::{BookSnapshot, HistoryEvent, HistoryInfo};
use crate::format::Format;
use crate::itch::{self, ItchReader};
use crate::lobster::{self, LobsterReader};
use crate::source::{ByteSource, detect, open_bytes};
use crate::sse::{self, SseReader};
use crate::workload_file::{self, WorkloadReader};

/// The events of a file, in its order. Reads as it goes; holds one message and one snapshot in memory.
#[derive(Debug)]
pub struct History<R> {
    reader: Reader<R>,
    no_snapshot: BookSnapshot,
    skipped: u64,
}

#[derive(Debug)]
enum Reader<R> {
    Lobster(LobsterReader<R>),
    Itch(Box<ItchReader<R>>),
    Sse(Box<SseReader<R>>),
    BitstampLog(Box<BitstampLogReader<R>>),
    BitstampOrders(BitstampOrdersReader<R>),
    Workload(WorkloadReader<R>),
}

impl History<ByteSource> {
    /// Opens a file, compressed or not, as what it is recognised to be.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        Self::open_as(path, detect(path)?)
    }

    /// Opens a file, compressed or not, as this format.
    pub fn open_as(path: &Path, format: Format) -> Result<Self, HistoryError> {
        Ok(Self::new(open_bytes(path)?, format))
    }
}

impl<R: BufRead> History<R> {
    /// Reads `source` as this format.
    pub fn new(source: R, format: Format) -> Self {
        let reader = match format {
            Format::Lobster => Reader::Lobster(LobsterReader::new(source)),
            Format::Itch => Reader::Itch(Box::new(ItchReader::new(source))),
            Format::Sse => Reader::Sse(Box::new(SseReader::new(source))),
            Format::BitstampLog => Reader::BitstampLog(Box::new(BitstampLogReader::new(source))),
            Format::BitstampOrders => Reader::BitstampOrders(BitstampOrdersReader::new(source)),
            Format::Workload => Reader::Workload(WorkloadReader::new(source)),
        };
        Self { reader, no_snapshot: BookSnapshot::default(), skipped: 0 }
    }

    /// What is read.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.reader {
            Reader::Lobster(_) => Format::Lobster,
            Reader::Itch(_) => Format::Itch,
            Reader::Sse(_) => Format::Sse,
            Reader::BitstampLog(_) => Format::BitstampLog,
            Reader::BitstampOrders(_) => Format::BitstampOrders,
            Reader::Workload(_) => Format::Workload,
        }
    }

    /// Units and origin of times.
    #[must_use]
    pub fn info(&self) -> HistoryInfo {
        match self.format() {
            Format::Lobster => lobster::INFO,
            Format::Itch => itch::INFO,
            Format::Sse => sse::INFO,
            Format::BitstampLog | Format::BitstampOrders => bitstamp::INFO,
            Format::Workload => workload_file::INFO,
        }
    }

    /// What the last [`crate::HistoryKind::Snapshot`] said; empty before the first.
    #[must_use]
    pub fn snapshot(&self) -> &BookSnapshot {
        match &self.reader {
            Reader::Sse(reader) => reader.snapshot(),
            Reader::BitstampLog(reader) => reader.snapshot(),
            Reader::Lobster(_) | Reader::Itch(_) | Reader::BitstampOrders(_) | Reader::Workload(_) => &self.no_snapshot,
        }
    }

    /// Messages so far that are no event, those of unknown types included.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        match &self.reader {
            Reader::Itch(reader) => self.skipped + reader.counts().unknown,
            Reader::Lobster(_) | Reader::Sse(_) | Reader::BitstampLog(_) | Reader::BitstampOrders(_) | Reader::Workload(_) => {
                self.skipped
            }
        }
    }
}

impl<R: BufRead> Iterator for History<R> {
    type Item = Result<HistoryEvent, HistoryError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.reader {
            Reader::Lobster(reader) => Some(reader.next_message()?.map(|(index, message)| message.event(index))),
            Reader::Itch(reader) => loop {
                match reader.next_message()? {
                    Err(error) => return Some(Err(error)),
                    Ok((index, message)) => match message.event(index) {
                        Some(event) => return Some(Ok(event)),
                        None => self.skipped += 1,
                    },
                }
            },
            Reader::Sse(reader) => {
                let message = reader.next_message()?;
                Some(message.map(|(index, timed)| timed.event(index, reader.snapshot())))
            }
            Reader::BitstampLog(reader) => {
                let message = reader.next_message()?;
                Some(message.map(|(index, timed)| timed.event(index, reader.snapshot())))
            }
            Reader::BitstampOrders(reader) => {
                Some(reader.next_message()?.map(|(index, timed)| timed.event(index, &self.no_snapshot)))
            }
            Reader::Workload(reader) => Some(reader.next_command()?.map(|(index, command)| command.event(index))),
        }
    }
}

/// Reads all of `bytes` as `format`, to the first error: the entry for fuzzing.
pub fn parse_all(format: Format, bytes: &[u8]) -> Result<crate::Tally, HistoryError> {
    let mut tally = crate::Tally::new(None);
    for event in History::new(bytes, format) {
        tally.count(&event?);
    }
    Ok(tally)
}
