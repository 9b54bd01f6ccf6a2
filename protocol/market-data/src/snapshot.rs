//! All of [`MarketData`] as bytes, so that a venue that restarts from the engine's snapshot keeps its trades and candles too; and all of
//! [`PublicBooks`], so that a reader need not hear all events again.
//!
//! Taken between two log entries; market data's with the engine's snapshot of the same entry, in which the books are. One encoding per
//! state (orders by id). Which levels changed since the last take is not kept: after a restore every reader needs a snapshot of its book.

use walras_types::{AccountId, EngineVersion, LogIndex, OrderId, PriceTicks, Side, SizeLots, TimeNs, TradingPhase};
use walras_wire::codec::{Reader, Wire, Writer};
use walras_wire::{DecodeError, PhaseCause, Uncrossed};

use crate::batch_snapshot::{put_feeds, put_offers, put_older};
use crate::book::{PublicBook, Standing};
use crate::books::PublicBooks;
use crate::candles::{Candle, Interval};
use crate::levels::ChangedLevels;
use crate::limits::{CANDLES_MAX, TRADES_MAX};
use crate::market::{InstrumentFeed, MarketData};
use crate::tape::PublicTrade;
use crate::ticker::DayStats;

/// First bytes of a snapshot: its kind, then its version in the highest byte. Version 1 held the standing orders too,
/// version 2 no batch markets, version 3 did not say how good their blocks are, version 4 what came of transactions, version 5 (which is
/// read too) not what a candle's trades were worth, version 6 (which is read too) not what came of an account's older transactions, version
/// 7 (which is read too) not why an instrument is in its phase.
const MARKET_DATA: Kind = Kind { name: *b"WLRSMD\0", version: 8 };
/// Versions before that are read.
const WITHOUT_VALUES: u8 = 5;
const WITHOUT_OLDER_OUTCOMES: u8 = 6;
const WITHOUT_PHASE_CAUSES: u8 = 7;
/// From this version of the engine on older outcomes and causes of phases are written: all programs that know it read them.
const WHOLE_SINCE: EngineVersion = EngineVersion(14);
const PUBLIC_BOOKS: Kind = Kind { name: *b"WLRSPB\0", version: 1 };

struct Kind {
    name: [u8; 7],
    version: u8,
}

impl Kind {
    fn put(&self, w: &mut Writer<'_>) {
        self.name.iter().chain([&self.version]).for_each(|byte| w.u8(*byte));
    }

    fn check(&self, bytes: &[u8]) -> Result<(), RestoreError> {
        match bytes.strip_prefix(&self.name).and_then(<[u8]>::first) {
            Some(&got) if got == self.version => Ok(()),
            Some(&got) => Err(RestoreError::Version { got, expected: self.version }),
            None => Err(RestoreError::NotASnapshot),
        }
    }
}

/// Why bytes are no snapshot of market data, or of books.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// Another kind of file.
    #[error("this is not a market-data snapshot: delete it and rebuild market data from the log")]
    NotASnapshot,
    /// Another version's.
    #[error(
        "the market-data snapshot is of version {got}, and this program reads version {expected}: restore it with the program that \
         wrote it, or rebuild market data from the log"
    )]
    Version {
        /// Its version.
        got: u8,
        /// The only one that is read.
        expected: u8,
    },
    /// It does not parse.
    #[error("the market-data snapshot is damaged ({0}): delete it and rebuild market data from the log")]
    Damaged(DecodeError),
}

impl From<DecodeError> for RestoreError {
    fn from(error: DecodeError) -> Self {
        Self::Damaged(error)
    }
}

impl MarketData {
    /// Appends the whole state to `out`.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        self.put(out, MARKET_DATA.version);
    }

    /// As [`MarketData::snapshot`] while this version of the engine is in force: as programs read it that know no later one. Before 14
    /// these know no outcomes of older transactions, and offers of such are restored as if they had not traded yet; nor do they know why
    /// an instrument is halted.
    pub fn snapshot_under(&self, version: EngineVersion, out: &mut Vec<u8>) {
        self.put(out, if version < WHOLE_SINCE { WITHOUT_OLDER_OUTCOMES } else { MARKET_DATA.version });
    }

    fn put(&self, out: &mut Vec<u8>, version: u8) {
        let w = &mut Writer(out);
        Kind { version, ..MARKET_DATA }.put(w);
        w.u64(self.log_index().0);
        self.time.put(w);
        w.u64(self.trade_count);
        put_count(w, self.instruments.len());
        for feed in &self.instruments {
            feed.spec().put(w);
            w.u64(feed.revision.0);
            put_count(w, feed.tape.len());
            for trade in feed.tape.iter() {
                put_trade(w, trade);
            }
            for interval in Interval::ALL {
                put_count(w, feed.candles.iter(interval).len());
                for candle in feed.candles.iter(interval) {
                    put_candle(w, candle);
                }
            }
            feed.ticker.phase.put(w);
            if version > WITHOUT_PHASE_CAUSES {
                feed.ticker.phase_cause.put(w);
            }
            feed.ticker.last.put(w);
            w.u8(u8::from(feed.ticker.latest_day.is_some()));
            if let Some(day) = feed.ticker.latest_day {
                put_day(w, &day);
            }
            feed.ticker.last_uncross.put(w);
        }
        put_feeds(w, &self.batches);
        put_offers(w, &self.offers);
        if version > WITHOUT_OLDER_OUTCOMES {
            put_older(w, &self.offers);
        }
    }

    /// The state that `bytes` are.
    pub fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        let version = match MARKET_DATA.check(bytes) {
            Ok(()) => MARKET_DATA.version,
            Err(RestoreError::Version { got: got @ (WITHOUT_VALUES | WITHOUT_OLDER_OUTCOMES | WITHOUT_PHASE_CAUSES), .. }) => got,
            Err(error) => return Err(error),
        };
        let has_older = version > WITHOUT_OLDER_OUTCOMES;
        let r = &mut Reader::new(bytes);
        r.u64()?;
        let mut data = Self::new();
        data.entry.log_index = LogIndex(r.u64()?);
        data.time = TimeNs::get(r)?;
        data.trade_count = r.u64()?;
        for index in 0..r.u32()? {
            let feed = get_feed(r, version)?;
            r.checked((feed.spec().instrument.0 == index).then_some(()), "instruments by id")?;
            data.by_symbol.insert(feed.spec().symbol, feed.spec().instrument);
            data.instruments.push(feed);
        }
        (data.batches, data.offers) = crate::batch_snapshot::get(r, has_older)?;
        r.clone().finish()?;
        Ok(data)
    }
}

impl PublicBooks {
    /// Appends the whole state to `out`.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        let w = &mut Writer(out);
        PUBLIC_BOOKS.put(w);
        w.u64(self.log_index().0);
        put_count(w, self.books.len());
        self.books.iter().for_each(|book| put_book(w, book));
    }

    /// The state that `bytes` are.
    pub fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        PUBLIC_BOOKS.check(bytes)?;
        let r = &mut Reader::new(bytes);
        r.u64()?;
        let mut all = Self::new();
        all.entry.log_index = LogIndex(r.u64()?);
        for _ in 0..r.u32()? {
            all.books.push(get_book(r)?);
        }
        r.clone().finish()?;
        Ok(all)
    }
}

fn get_feed(r: &mut Reader<'_>, version: u8) -> Result<InstrumentFeed, DecodeError> {
    let mut feed = InstrumentFeed::new(Wire::get(r)?);
    feed.revision = LogIndex(r.u64()?);
    feed.changed = ChangedLevels::unknown();
    for _ in 0..get_count(r, TRADES_MAX)? {
        let trade = get_trade(r)?;
        let in_order = feed.tape.last().is_none_or(|last| last.trade_id < trade.trade_id);
        feed.tape.push(r.checked(in_order.then_some(trade), "trades by id")?);
    }
    for interval in Interval::ALL {
        for _ in 0..get_count(r, CANDLES_MAX)? {
            let candle = if version > WITHOUT_VALUES { get_candle(r)? } else { get_candle_before(r)? };
            let in_order = feed.candles.last(interval).is_none_or(|last| last.start_s < candle.start_s);
            feed.candles.restore(interval, r.checked(in_order.then_some(candle), "candles by time")?);
        }
    }
    feed.ticker.phase = TradingPhase::get(r)?;
    feed.ticker.phase_cause = if version > WITHOUT_PHASE_CAUSES {
        Option::<PhaseCause>::get(r)?
    } else {
        // The price band halts and does nothing else.
        (feed.ticker.phase != TradingPhase::Halt).then_some(PhaseCause::Operator)
    };
    let last: Option<PriceTicks> = Wire::get(r)?;
    let on_tape = feed.tape.last().map(|trade| trade.price);
    feed.ticker.last = r.checked((last == on_tape).then_some(last), "the last trade's price")?;
    feed.ticker.latest_day = match r.u8()? {
        0 => None,
        1 => Some(get_day(r)?),
        _ => return Err(r.expected("0 (absent) or 1 (present)")),
    };
    feed.ticker.last_uncross = Option::<Uncrossed>::get(r)?;
    Ok(feed)
}

pub(crate) fn put_count(w: &mut Writer<'_>, count: usize) {
    w.u32(u32::try_from(count).expect("every collection here is bounded below 2^32"));
}

fn get_count(r: &mut Reader<'_>, max: usize) -> Result<u32, DecodeError> {
    let count = r.u32()?;
    r.checked(usize::try_from(count).ok().filter(|&n| n <= max).map(|_| count), "a count within the limits")
}

fn put_book(w: &mut Writer<'_>, book: &PublicBook) {
    let standing = book.standing();
    put_count(w, standing.len());
    for (order_id, s) in standing {
        order_id.put(w);
        s.account.put(w);
        s.side.put(w);
        s.price.put(w);
        s.open.put(w);
        s.shown.put(w);
        w.u64(s.place);
    }
    w.u64(book.next_place());
}

fn get_book(r: &mut Reader<'_>) -> Result<PublicBook, DecodeError> {
    let mut book = PublicBook::default();
    let mut last_id = None;
    for _ in 0..r.u32()? {
        let (order_id, standing) = get_standing(r)?;
        r.checked((last_id < Some(order_id)).then_some(()), "orders by id, each once")?;
        last_id = Some(order_id);
        book.restore(order_id, standing);
    }
    let next_place = r.u64()?;
    r.checked((next_place >= book.next_place()).then_some(()), "a place behind all orders")?;
    book.restored(next_place);
    Ok(book)
}

fn get_standing(r: &mut Reader<'_>) -> Result<(OrderId, Standing), DecodeError> {
    let order_id = OrderId::get(r)?;
    let standing = Standing {
        account: AccountId::get(r)?,
        side: Side::get(r)?,
        price: Wire::get(r)?,
        open: Wire::get(r)?,
        shown: Wire::get(r)?,
        place: r.u64()?,
    };
    let sane = standing.shown <= standing.open && SizeLots::order_size(standing.open.get()).is_some() && standing.place < u64::MAX;
    Ok((order_id, r.checked(sane.then_some(standing), "an order that can stand")?))
}

fn put_trade(w: &mut Writer<'_>, trade: &PublicTrade) {
    trade.trade_id.put(w);
    trade.time.put(w);
    trade.price.put(w);
    trade.size.put(w);
    trade.taker_side.put(w);
}

fn get_trade(r: &mut Reader<'_>) -> Result<PublicTrade, DecodeError> {
    Ok(PublicTrade {
        trade_id: Wire::get(r)?,
        time: Wire::get(r)?,
        price: Wire::get(r)?,
        size: Wire::get(r)?,
        taker_side: Wire::get(r)?,
    })
}

fn put_candle(w: &mut Writer<'_>, candle: &Candle) {
    w.u64(candle.start_s);
    for price in [candle.open, candle.high, candle.low, candle.close] {
        price.put(w);
    }
    candle.volume.put(w);
    w.u64(candle.trade_count);
    put_wide(w, candle.tick_lots);
    candle.bought.put(w);
    put_wide(w, candle.bought_tick_lots);
}

fn put_wide(w: &mut Writer<'_>, value: u128) {
    w.u64((value >> 64) as u64);
    w.u64(value as u64);
}

fn get_wide(r: &mut Reader<'_>) -> Result<u128, DecodeError> {
    Ok(u128::from(r.u64()?) << 64 | u128::from(r.u64()?))
}

fn get_candle(r: &mut Reader<'_>) -> Result<Candle, DecodeError> {
    let candle = get_candle_before(r)?;
    Ok(Candle { tick_lots: get_wide(r)?, bought: Wire::get(r)?, bought_tick_lots: get_wide(r)?, ..candle })
}

/// As version 5 has it.
fn get_candle_before(r: &mut Reader<'_>) -> Result<Candle, DecodeError> {
    let start_s = r.u64()?;
    let (open, high, low, close): (_, _, _, PriceTicks) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
    let (volume, trade_count): (SizeLots, _) = (Wire::get(r)?, r.u64()?);
    let tick_lots = u128::from(close.get().unsigned_abs()) * u128::from(volume.get());
    let (bought, bought_tick_lots) = (SizeLots::ZERO, 0);
    Ok(Candle { start_s, open, high, low, close, volume, trade_count, tick_lots, bought, bought_tick_lots })
}

fn put_day(w: &mut Writer<'_>, day: &DayStats) {
    w.u64(day.day);
    for price in [day.open, day.high, day.low] {
        price.put(w);
    }
    day.volume.put(w);
    w.u64(day.trade_count);
}

fn get_day(r: &mut Reader<'_>) -> Result<DayStats, DecodeError> {
    Ok(DayStats {
        day: r.u64()?,
        open: Wire::get(r)?,
        high: Wire::get(r)?,
        low: Wire::get(r)?,
        volume: Wire::get(r)?,
        trade_count: r.u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candle_of_the_version_before_is_worth_its_volume_at_its_last_price() {
        let candle = Candle {
            start_s: 60,
            open: PriceTicks::MIN,
            high: PriceTicks::MAX,
            low: PriceTicks::MIN,
            close: PriceTicks::MAX,
            volume: SizeLots::new(7),
            trade_count: 3,
            tick_lots: u128::MAX - 1,
            bought: SizeLots::new(5),
            bought_tick_lots: 9,
        };
        let mut bytes = Vec::new();
        put_candle(&mut Writer(&mut bytes), &candle);
        assert_eq!(get_candle(&mut Reader::new(&bytes)), Ok(candle));
        let tick_lots = 7 * u128::from(PriceTicks::MAX.get().unsigned_abs());
        let before = Candle { tick_lots, bought: SizeLots::ZERO, bought_tick_lots: 0, ..candle };
        assert_eq!(get_candle_before(&mut Reader::new(&bytes)), Ok(before));
    }
}
