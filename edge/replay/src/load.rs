//! A file of history, read once and ready to be replayed. Only the ends of its orders stay in memory.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walras_market_history::{Format, HistoryError, HistoryEvent, HistoryInfo, Position, PriceUnits, TickScale, detect, lobster};

use crate::error::{Ask, ReplayError};
use crate::options::{Options, Progress};
use crate::source::{Events, Snapshots, Source};
use crate::survey::{InstrumentReport, Lives, Survey, Wanted};

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

    /// The requested scale; otherwise the format's, with the tick for stocks below a dollar if the file is of one.
    fn choose(options: &Options, format: Format, info: HistoryInfo, survey: &Survey) -> Result<Self, ReplayError> {
        let known = Self::of_format(format);
        if let Some(text) = &options.tick {
            let tick = info.price(text).filter(|tick| tick.0 > 0).ok_or_else(|| price_refused("tick", text, info))?;
            return Self::new(tick.0, known.units_per_lot);
        }
        match format {
            Format::Lobster | Format::Itch if survey.is_below_a_dollar() => Self::new(1, known.units_per_lot),
            _ => Ok(known),
        }
    }
}

fn price_refused(option: &'static str, given: &str, info: HistoryInfo) -> ReplayError {
    ReplayError::Price { option, given: given.to_owned(), decimals: info.price_scale.checked_ilog10().unwrap_or(0) }
}

/// A history of one instrument. It was read once and is read again as it is replayed.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) format: Format,
    pub(crate) info: HistoryInfo,
    pub(crate) scale: Scale,
    pub(crate) instrument: u32,
    pub(crate) symbol: Option<String>,
    /// Levels a side that the file's name says it shows.
    pub(crate) levels: Option<u32>,
    /// LOBSTER's orderbook file.
    pub(crate) orderbook: Option<PathBuf>,
    pub(crate) source: Source,
    pub(crate) lives: Arc<Lives>,
    /// Messages of the file, those of other instruments and those that are no event included.
    pub(crate) file_messages: u64,
    /// Events of the instrument and of the whole market, without snapshots.
    pub(crate) event_count: u64,
    pub(crate) snapshot_count: u64,
    /// Events that stood in the file before one that happened earlier.
    pub(crate) out_of_order: u64,
    pub(crate) previous_close: Option<PriceUnits>,
    pub(crate) reference_price: Option<PriceUnits>,
}

impl Loaded {
    /// Its format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Surveys a file.
    pub fn open(path: &Path, options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Self, ReplayError> {
        let format = format_of(path, options)?;
        let mut loaded = Self::survey(Source::File(path.to_owned()), format, Some(path), options, progress)?;
        if loaded.event_count == 0 && loaded.snapshot_count == 0 {
            return Err(ReplayError::Empty(path.to_owned()));
        }
        loaded.orderbook = orderbook(path, format, options)?;
        Ok(loaded)
    }

    /// History that is no file, such as a generated market, in the units and by the rules of this format.
    #[must_use]
    pub fn from_events(format: Format, info: HistoryInfo, events: Vec<HistoryEvent>) -> Self {
        let instrument = events.iter().map(|event| event.instrument).max().unwrap_or(0);
        let source = Source::Events(events.into());
        let survey = Survey::read(&source, format, &Wanted::Number(instrument), &mut |_| {})
            .expect("events that are in memory and carry no numbers can be read");
        Self::of(source, format, info, Scale::of_format(format), instrument, survey)
    }

    /// Surveys `source` as this format, and keeps a copy of it.
    pub fn read<R: BufRead>(
        mut source: R,
        format: Format,
        options: &Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ReplayError> {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(|source| HistoryError::Read { at: Position::Byte(0), source })?;
        let mut loaded = Self::survey(Source::Bytes(bytes.into()), format, None, options, progress)?;
        loaded.orderbook = options.orderbook.clone();
        Ok(loaded)
    }

    fn survey(
        source: Source,
        format: Format,
        path: Option<&Path>,
        options: &Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ReplayError> {
        let name = path.and_then(Path::file_name).and_then(|name| name.to_str()).filter(|_| format == Format::Lobster);
        let (named_symbol, levels) = name.and_then(lobster::named).unzip();
        let wanted = match &options.instrument {
            None => Wanted::Only,
            // A LOBSTER file numbers nothing; its name says whose it is.
            Some(name) if named_symbol == Some(name.as_str()) => Wanted::Only,
            Some(name) => name.parse().map_or_else(|_| Wanted::Symbol(name.clone()), Wanted::Number),
        };
        let survey = Survey::read(&source, format, &wanted, progress)?;
        let instrument = chosen(&survey, &options.instrument, &wanted, named_symbol)?;
        let info = source.messages(format)?.info(format);
        let scale = Scale::choose(options, format, info, &survey)?;
        let symbol = survey.symbol(instrument).or(named_symbol).map(str::to_owned);
        let reference_price = match &options.reference_price {
            Some(text) => {
                let price = info.price(text).filter(|price| scale.ticks_and_lots.ticks(*price).is_ok());
                Some(price.ok_or_else(|| price_refused("reference price", text, info))?)
            }
            None => None,
        };
        let loaded = Self::of(source, format, info, scale, instrument, survey);
        Ok(Self { symbol, levels: options.levels.or(levels.flatten()).filter(|levels| *levels > 0), reference_price, ..loaded })
    }

    fn of(source: Source, format: Format, info: HistoryInfo, scale: Scale, instrument: u32, survey: Survey) -> Self {
        Self {
            format,
            info,
            scale,
            instrument,
            symbol: None,
            levels: None,
            orderbook: None,
            source,
            file_messages: survey.messages,
            event_count: survey.events,
            snapshot_count: survey.snapshots,
            out_of_order: survey.out_of_order,
            previous_close: survey.previous_close,
            reference_price: None,
            lives: Arc::new(survey.lives),
        }
    }

    /// The instrument's events in the exchange's order.
    pub(crate) fn events(&self) -> Result<Events, ReplayError> {
        Ok(Events::new(self.source.messages(self.format)?, self.instrument))
    }

    /// The instrument's snapshots.
    pub(crate) fn snapshots(&self) -> Result<Snapshots, ReplayError> {
        if self.snapshot_count == 0 {
            return Ok(Snapshots::none());
        }
        Ok(Snapshots::new(self.source.messages(self.format)?, self.instrument))
    }

    /// What a report calls the instrument; `None` where the file has no name for its only one.
    pub(crate) fn instrument_name(&self) -> Option<String> {
        match &self.symbol {
            Some(symbol) => Some(symbol.clone()),
            None => (self.instrument > 0).then(|| self.instrument.to_string()),
        }
    }
}

/// The instruments of a file, the busiest first.
pub fn instruments(
    path: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<InstrumentReport>, ReplayError> {
    let format = format_of(path, options)?;
    let survey = Survey::read(&Source::File(path.to_owned()), format, &Wanted::Symbol(String::new()), progress)?;
    let mut instruments = survey.instruments();
    let name = path.file_name().and_then(|name| name.to_str()).filter(|_| format == Format::Lobster);
    if let ([only], Some((symbol, _))) = (&mut instruments[..], name.and_then(lobster::named)) {
        only.symbol = Some(symbol.to_owned());
    }
    Ok(instruments)
}

fn format_of(path: &Path, options: &Options) -> Result<Format, ReplayError> {
    Ok(match options.format {
        Some(format) => format,
        None => detect(path)?,
    })
}

/// The orderbook file that was named, or that lies where LOBSTER's file of that name belongs.
fn orderbook(path: &Path, format: Format, options: &Options) -> Result<Option<PathBuf>, ReplayError> {
    if let Some(orderbook) = &options.orderbook {
        return match format {
            Format::Lobster => Ok(Some(orderbook.clone())),
            _ => Err(ReplayError::OrderbookUnknown(format.name())),
        };
    }
    let name = path.file_name().and_then(|name| name.to_str()).and_then(lobster::orderbook_name);
    Ok(name.filter(|_| format == Format::Lobster).map(|name| path.with_file_name(name)).filter(|path| path.is_file()))
}

/// The instrument to replay.
fn chosen(survey: &Survey, asked: &Option<String>, wanted: &Wanted, named: Option<&str>) -> Result<u32, ReplayError> {
    let instruments = survey.instruments();
    match wanted {
        Wanted::Only if instruments.len() > 1 => Err(ReplayError::Instrument { ask: Ask::Several, present: instruments }),
        Wanted::Only => Ok(survey.instrument.unwrap_or(0)),
        Wanted::Number(number) if instruments.iter().any(|present| present.instrument == *number) => Ok(*number),
        Wanted::Symbol(_) if survey.instrument.is_some() => Ok(survey.instrument.unwrap_or(0)),
        Wanted::Number(_) | Wanted::Symbol(_) => {
            let name =
                |present: InstrumentReport| InstrumentReport { symbol: present.symbol.or(named.map(str::to_owned)), ..present };
            let present = instruments.into_iter().map(name).collect();
            Err(ReplayError::Instrument { ask: Ask::Unknown(asked.clone().unwrap_or_default()), present })
        }
    }
}
