//! The venue's public state, rebuilt from its events.

use std::collections::BTreeMap;

use walras_types::{AccountId, InstrumentId, InstrumentSpec, LogIndex, OrderId, SizeLots, Symbol, TimeNs};
use walras_wire::{Event, Priority, Traded};

use crate::book::{Contradiction, PublicBook};
use crate::candles::Candles;
use crate::tape::{PublicTrade, Tape};
use crate::ticker::Ticker;

/// An event that contradicts those before it: events were lost, repeated or reordered on the way here, or the engine broke its word.
/// What could be applied was. Rebuild from a snapshot and the log, and report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Inconsistency {
    /// An entry that is before one already seen. Nothing was applied.
    #[error("log entry {got} came after {last}: feed entries in the order of the log, each once; rebuild market data from the log")]
    OutOfOrder {
        /// The latest entry seen.
        last: LogIndex,
        /// The one that came.
        got: LogIndex,
    },
    /// An instrument that was not announced, or announced twice, or out of order.
    #[error("entry {log_index} names instrument {instrument} out of turn: events are missing, so rebuild market data from the log")]
    UnknownInstrument {
        /// The entry.
        log_index: LogIndex,
        /// The instrument.
        instrument: InstrumentId,
    },
    /// An order that does not stand.
    #[error(
        "entry {log_index} names order {order_id}, which does not stand: events are missing, so rebuild market data from the log"
    )]
    UnknownOrder {
        /// The entry.
        log_index: LogIndex,
        /// The order.
        order_id: OrderId,
    },
    /// A remainder that does not follow from what stood before.
    #[error(
        "entry {log_index} leaves {got} lots of order {order_id} where {expected} should be left: events are missing, so rebuild \
         market data from the log"
    )]
    WrongRemainder {
        /// The entry.
        log_index: LogIndex,
        /// The order.
        order_id: OrderId,
        /// What would be left.
        expected: SizeLots,
        /// What the event says is left.
        got: SizeLots,
    },
}

/// What the public sees of one instrument.
#[derive(Clone, Debug)]
pub struct InstrumentFeed {
    spec: InstrumentSpec,
    pub(crate) book: PublicBook,
    pub(crate) tape: Tape,
    pub(crate) candles: Candles,
    pub(crate) ticker: Ticker,
    pub(crate) revision: LogIndex,
}

impl InstrumentFeed {
    pub(crate) fn new(spec: InstrumentSpec) -> Self {
        Self {
            spec,
            book: PublicBook::default(),
            tape: Tape::default(),
            candles: Candles::default(),
            ticker: Ticker::new(),
            revision: LogIndex(0),
        }
    }

    /// Its definition.
    #[must_use]
    pub fn spec(&self) -> &InstrumentSpec {
        &self.spec
    }

    /// Its book.
    #[must_use]
    pub fn book(&self) -> &PublicBook {
        &self.book
    }

    /// Its book, to take the changes of.
    pub fn book_mut(&mut self) -> &mut PublicBook {
        &mut self.book
    }

    /// Its trades.
    #[must_use]
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    /// Its candles.
    #[must_use]
    pub fn candles(&self) -> &Candles {
        &self.candles
    }

    /// Its phase, last price and day.
    #[must_use]
    pub fn ticker(&self) -> &Ticker {
        &self.ticker
    }

    /// The latest log entry that concerned it: nothing here changed for a reader who saw this number.
    #[must_use]
    pub fn revision(&self) -> LogIndex {
        self.revision
    }
}

/// The public state of a venue, and the way events change it.
#[derive(Clone, Debug, Default)]
pub struct MarketData {
    pub(crate) instruments: Vec<InstrumentFeed>,
    pub(crate) by_symbol: BTreeMap<Symbol, InstrumentId>,
    pub(crate) log_index: LogIndex,
    pub(crate) time: TimeNs,
    pub(crate) trade_count: u64,
    /// The order that the current entry last let in: its own trades are already in what stands of it.
    incoming: Option<OrderId>,
}

impl MarketData {
    /// Nothing, before the first entry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All instruments, by id.
    #[must_use]
    pub fn instruments(&self) -> &[InstrumentFeed] {
        &self.instruments
    }

    /// One instrument.
    #[must_use]
    pub fn instrument(&self, instrument: InstrumentId) -> Option<&InstrumentFeed> {
        self.instruments.get(usize::try_from(instrument.0).ok()?)
    }

    /// One instrument, to take its book's changes.
    pub fn instrument_mut(&mut self, instrument: InstrumentId) -> Option<&mut InstrumentFeed> {
        self.instruments.get_mut(usize::try_from(instrument.0).ok()?)
    }

    /// The instrument of a symbol.
    #[must_use]
    pub fn by_symbol(&self, symbol: &Symbol) -> Option<InstrumentId> {
        self.by_symbol.get(symbol).copied()
    }

    /// The latest entry seen.
    #[must_use]
    pub fn log_index(&self) -> LogIndex {
        self.log_index
    }

    /// The time of the latest entry seen.
    #[must_use]
    pub fn time(&self) -> TimeNs {
        self.time
    }

    /// Trades of all instruments since the log began.
    #[must_use]
    pub fn trade_count(&self) -> u64 {
        self.trade_count
    }

    /// Whose a standing order is. For private channels: an `OrderReplenished` does not say.
    #[must_use]
    pub fn owner(&self, instrument: InstrumentId, order_id: OrderId) -> Option<AccountId> {
        self.instrument(instrument)?.book.owner(order_id)
    }

    pub(crate) fn is_incoming(&self, order_id: OrderId) -> bool {
        self.incoming == Some(order_id)
    }

    /// An entry begins. [`MarketData::on_event`] does this itself; call it for entries without events, so that time goes on.
    pub fn on_entry(&mut self, log_index: LogIndex, time: TimeNs) -> Result<(), Inconsistency> {
        if log_index < self.log_index {
            return Err(Inconsistency::OutOfOrder { last: self.log_index, got: log_index });
        }
        if log_index > self.log_index {
            self.log_index = log_index;
            self.time = self.time.max(time);
            self.incoming = None;
        }
        Ok(())
    }

    /// Takes the next event of an entry.
    pub fn on_event(&mut self, log_index: LogIndex, time: TimeNs, event: &Event) -> Result<(), Inconsistency> {
        self.on_entry(log_index, time)?;
        match event {
            Event::InstrumentCreated(spec) => self.create(*spec),
            // A stop that waits for its trigger has no price yet, and stands in no queue.
            Event::OrderAccepted(e) => self.enter(e.instrument, e.order_id, |book| {
                if let Some(price) = e.price {
                    book.put(e.order_id, e.account, e.side, price, Priority::Lost, e.resting);
                }
            }),
            Event::OrderAmended(e) => self.enter(e.instrument, e.order_id, |book| {
                if let Some(price) = e.price {
                    book.put(e.order_id, e.account, e.side, price, e.priority, e.resting);
                }
            }),
            Event::StopTriggered(e) => self.enter(e.instrument, e.order_id, |book| {
                book.put(e.order_id, e.account, e.side, e.price, Priority::Lost, e.resting);
            }),
            Event::Traded(e) => self.trade(e),
            Event::OrderCancelled(e) => {
                self.touch(e.instrument)?.book.remove(e.order_id);
                Ok(())
            }
            Event::OrderReduced(e) if self.is_incoming(e.order_id) => self.touch(e.instrument).map(|_| ()),
            Event::OrderReduced(e) => {
                let done = self.touch(e.instrument)?.book.reduce(e.order_id, e.resting);
                self.explain(done, e.order_id, e.resting.open)
            }
            Event::OrderReplenished(e) => {
                let done = self.touch(e.instrument)?.book.replenish(e.order_id, e.shown);
                self.explain(done, e.order_id, e.shown)
            }
            Event::PhaseChanged(e) => {
                self.touch(e.instrument)?.ticker.phase = e.phase;
                Ok(())
            }
            Event::Uncrossed(e) => {
                self.touch(e.instrument)?.ticker.last_uncross = Some(*e);
                Ok(())
            }
            Event::Rejected(_)
            | Event::AssetCreated(_)
            | Event::AccountCreated(_)
            | Event::AccountStatusChanged(_)
            | Event::Deposited(_)
            | Event::Withdrawn(_)
            | Event::FeesCollected(_)
            | Event::RiskLimitsChanged(_)
            | Event::SessionOpened(_)
            | Event::SessionClosed(_) => Ok(()),
        }
    }

    fn create(&mut self, spec: InstrumentSpec) -> Result<(), Inconsistency> {
        if usize::try_from(spec.instrument.0) != Ok(self.instruments.len()) {
            return Err(Inconsistency::UnknownInstrument { log_index: self.log_index, instrument: spec.instrument });
        }
        self.by_symbol.insert(spec.symbol, spec.instrument);
        let mut feed = InstrumentFeed::new(spec);
        feed.revision = self.log_index;
        self.instruments.push(feed);
        Ok(())
    }

    /// An order comes in: what `put` leaves standing of it already counts the trades that follow.
    fn enter(
        &mut self,
        instrument: InstrumentId,
        order_id: OrderId,
        put: impl FnOnce(&mut PublicBook),
    ) -> Result<(), Inconsistency> {
        put(&mut self.touch(instrument)?.book);
        self.incoming = Some(order_id);
        Ok(())
    }

    fn trade(&mut self, e: &Traded) -> Result<(), Inconsistency> {
        let time = self.time;
        let uncross = !self.is_incoming(e.taker.order_id);
        let feed = self.touch(e.instrument)?;
        let maker = feed.book.trade(e.maker.order_id, e.size, e.maker.open);
        let taker = if uncross { feed.book.trade(e.taker.order_id, e.size, e.taker.open) } else { Ok(()) };
        let taker_side = (!uncross).then_some(e.taker_side);
        feed.tape.push(PublicTrade { trade_id: e.trade_id, time, price: e.price, size: e.size, taker_side });
        feed.candles.trade(time, e.price, e.size);
        feed.ticker.trade(time, e.price, e.size);
        self.trade_count += 1;
        self.explain(maker, e.maker.order_id, e.maker.open)?;
        self.explain(taker, e.taker.order_id, e.taker.open)
    }

    fn touch(&mut self, instrument: InstrumentId) -> Result<&mut InstrumentFeed, Inconsistency> {
        let log_index = self.log_index;
        let feed = self.instrument_mut(instrument).ok_or(Inconsistency::UnknownInstrument { log_index, instrument })?;
        feed.revision = log_index;
        Ok(feed)
    }

    fn explain(&self, done: Result<(), Contradiction>, order_id: OrderId, got: SizeLots) -> Result<(), Inconsistency> {
        let log_index = self.log_index;
        done.map_err(|contradiction| match contradiction {
            Contradiction::UnknownOrder => Inconsistency::UnknownOrder { log_index, order_id },
            Contradiction::WrongRemainder { expected } => Inconsistency::WrongRemainder { log_index, order_id, expected, got },
        })
    }

    /// Panics unless every book is the sum of its orders and every tape is in order. For tests and simulation.
    pub fn check_invariants(&self) {
        for feed in &self.instruments {
            feed.book.check_invariants();
            assert!(feed.tape.iter().zip(feed.tape.iter().skip(1)).all(|(a, b)| a.trade_id < b.trade_id), "trades out of order");
            assert_eq!(feed.tape.last().map(|t| t.price), feed.ticker.last, "the tape's last price is the ticker's");
        }
    }
}
