//! A recorded day as commands for a venue in the process: `walras_replay`'s, one after the other, among which others' orders may come.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use walras_market_history::{Format, History, open_bytes};
use walras_replay::venue::{VenueCommands, VenueOptions, commands, setup};
use walras_replay::{Loaded, Options, ReplayError};
use walras_types::TimeNs;
use walras_wire::{Command, Event, OrderEvent};

use crate::venue::PyVenue;

/// What happened by a command of the record: its time, trades, the strategy's part in them, its orders that the venue cancelled, and best
/// prices where they changed.
type Advanced = (u64, Vec<Tape>, Vec<Fill>, Vec<u64>, Option<(i64, u64, i64, u64)>);
/// Price, lots, the taker's side, trade id.
type Tape = (i64, u64, u8, u64);
/// Price, lots, side, name of the order, open lots, fee in units, whether it was the maker.
type Fill = (i64, u64, u8, u64, u64, i64, bool);

fn refused(error: &ReplayError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A file of history, surveyed once and read again as it is played.
#[pyclass(module = "walras._native", name = "History", unsendable)]
pub(crate) struct PyHistory {
    /// A file and how it is put into a venue; `None` where rows are played.
    file: Option<(Loaded, VenueOptions)>,
    rows: Vec<u8>,
    source: Option<Source>,
    next: Option<(TimeNs, Command)>,
    best: (i64, u64, i64, u64),
    played: u64,
    rejected: u64,
}

/// What is played.
enum Source {
    File(Box<VenueCommands>),
    Rows(std::vec::IntoIter<(TimeNs, Command)>),
}

impl Iterator for Source {
    type Item = (TimeNs, Command);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::File(commands) => commands.next(),
            Self::Rows(rows) => rows.next(),
        }
    }
}

impl PyHistory {
    fn pull(&mut self) -> PyResult<()> {
        self.next = self.source.as_mut().and_then(Iterator::next);
        if self.next.is_none()
            && let Some(Source::File(commands)) = self.source.take()
        {
            commands.finish().map_err(|error| refused(&error))?;
        }
        Ok(())
    }
}

#[pymethods]
impl PyHistory {
    /// `format`: a name of `walras replay --format`; `None` to recognise it.
    #[new]
    fn new(
        path: PathBuf,
        format: Option<&str>,
        instrument: Option<String>,
        tick: Option<String>,
        accounts: u32,
        fees_ppm: (i32, i32),
    ) -> PyResult<Self> {
        let unknown = |name: &str| {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
            PyValueError::new_err(format!("format: {name:?} is none: give one of {}", names.join(", ")))
        };
        let format = format.map(|name| Format::from_name(name).ok_or_else(|| unknown(name))).transpose()?;
        let options = Options { format, instrument, tick, ..Options::default() };
        let loaded = Loaded::open(&path, &options, &mut |_| ()).map_err(|error| refused(&error))?;
        let first_ns = History::new(open_bytes(&path).map_err(|error| PyValueError::new_err(error.to_string()))?, loaded.format())
            .filter_map(Result::ok)
            .find(|event| event.time_ns > 0)
            .map_or(0, |event| event.time_ns);
        let fees = walras_types::FeeSchedule { maker_ppm: fees_ppm.0, taker_ppm: fees_ppm.1 };
        let options = VenueOptions { accounts, fees, start: TimeNs(first_ns), ..VenueOptions::new(loaded.format()) };
        let file = Some((loaded, options));
        Ok(Self { file, rows: Vec::new(), source: None, next: None, best: (0, 0, 0, 0), played: 0, rejected: 0 })
    }

    /// Rows of orders (`walras.ORDER_DTYPE`) instead of a file, for a venue that is set up already.
    #[staticmethod]
    fn of_rows(rows: Vec<u8>) -> Self {
        Self { file: None, rows, source: None, next: None, best: (0, 0, 0, 0), played: 0, rejected: 0 }
    }

    /// Commands played, and those of them that the venue refused.
    #[getter]
    fn counts(&self) -> (u64, u64) {
        (self.played, self.rejected)
    }

    /// Sets up an empty venue for a file's record, and goes to its first command.
    fn begin(&mut self, venue: &mut PyVenue) -> PyResult<()> {
        self.source = Some(match &self.file {
            None => Source::Rows(venue.parsed(&self.rows)?.into_iter()),
            Some((loaded, options)) => {
                for command in setup(loaded, options).map_err(|error| refused(&error))? {
                    let events = venue.play(options.start, &command);
                    if let Some(Event::Rejected(rejected)) = events.iter().find(|event| matches!(event, Event::Rejected(_))) {
                        let why = format!("the venue cannot be set up for this record: {}", rejected.reason);
                        return Err(PyValueError::new_err(why));
                    }
                }
                venue.named()?;
                Source::File(Box::new(commands(loaded, options).map_err(|error| refused(&error))?))
            }
        });
        (self.best, self.played, self.rejected) = ((0, 0, 0, 0), 0, 0);
        self.pull()
    }

    /// The time of the next command; `None` at the end.
    #[getter]
    fn next_ns(&self) -> Option<u64> {
        self.next.map(|(time, _)| time.0)
    }

    /// Plays commands up to and including `until_ns`, but no further than the first one by which something happens that a strategy
    /// sees: a trade, a fill or a cancelled order of `account`, or, with `watches_best`, another best price or its size. `None` where
    /// nothing did.
    fn advance(&mut self, venue: &mut PyVenue, until_ns: u64, account: u32, watches_best: bool) -> PyResult<Option<Advanced>> {
        let instrument = self.file.as_ref().map_or(0, |(_, options)| options.instrument.0);
        while let Some((time, command)) = self.next.filter(|(time, _)| time.0 <= until_ns) {
            // Others may have come later than the record says.
            let time = time.max(venue.now());
            let (mut tape, mut fills, mut gone) = (Vec::new(), Vec::new(), Vec::new());
            for event in venue.play(time, &command) {
                match event {
                    Event::Order(OrderEvent::Traded(e)) => {
                        let (price, lots, side) = (e.price.get(), e.size.get(), e.taker_side);
                        tape.push((price, lots, side as u8, e.trade_id.0));
                        for (party, side, is_maker) in [(&e.maker, side.opposite(), true), (&e.taker, side, false)] {
                            if party.account.0 == account {
                                fills.push((
                                    price,
                                    lots,
                                    side as u8,
                                    party.client_order_id.0,
                                    party.open.get(),
                                    party.fee,
                                    is_maker,
                                ));
                            }
                        }
                    }
                    Event::Order(OrderEvent::Cancelled(e)) if e.account.0 == account => gone.push(e.client_order_id.0),
                    Event::Rejected(_) => self.rejected += 1,
                    _ => {}
                }
            }
            self.played += 1;
            self.pull()?;
            let mut changed = None;
            if watches_best {
                let best = venue.best_lots(instrument);
                if best != self.best {
                    (self.best, changed) = (best, Some(best));
                }
            }
            if !tape.is_empty() || !gone.is_empty() || changed.is_some() {
                return Ok(Some((time.0, tape, fills, gone, changed)));
            }
        }
        Ok(None)
    }
}
