//! The books of a venue, rebuilt from its events alone: a reader's side, and the check that the events are complete.

use walras_types::{InstrumentId, LogIndex, OrderId, SizeLots};
use walras_wire::{Event, InstrumentEvent, OrderEvent, Priority, Traded};

use crate::book::{Contradiction, PublicBook};
use crate::entry::{CurrentEntry, Inconsistency};

/// Every instrument's public book, rebuilt from events. The venue itself needs none: its engine has the books.
#[derive(Clone, Debug, Default)]
pub struct PublicBooks {
    pub(crate) books: Vec<PublicBook>,
    pub(crate) entry: CurrentEntry,
}

impl PublicBooks {
    /// Nothing, before the first entry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All books, by instrument.
    #[must_use]
    pub fn all(&self) -> &[PublicBook] {
        &self.books
    }

    /// One instrument's book.
    #[must_use]
    pub fn book(&self, instrument: InstrumentId) -> Option<&PublicBook> {
        self.books.get(usize::try_from(instrument.0).ok()?)
    }

    /// The latest entry seen.
    #[must_use]
    pub fn log_index(&self) -> LogIndex {
        self.entry.log_index
    }

    /// An entry begins. [`PublicBooks::on_event`] does this itself; call it for entries without events.
    pub fn on_entry(&mut self, log_index: LogIndex) -> Result<(), Inconsistency> {
        self.entry.begin(log_index).map(|_| ())
    }

    /// Takes the next event of an entry.
    pub fn on_event(&mut self, log_index: LogIndex, event: &Event) -> Result<(), Inconsistency> {
        self.on_entry(log_index)?;
        match event {
            Event::Order(e) => self.on_order(e),
            Event::Instrument(InstrumentEvent::Created(spec)) if usize::try_from(spec.instrument.0) == Ok(self.books.len()) => {
                self.books.push(PublicBook::default());
                Ok(())
            }
            Event::Instrument(InstrumentEvent::Created(spec)) => {
                Err(Inconsistency::UnknownInstrument { log_index, instrument: spec.instrument })
            }
            Event::Instrument(InstrumentEvent::PhaseChanged(_) | InstrumentEvent::Uncrossed(_)) => Ok(()),
            Event::Rejected(_) | Event::Account(_) | Event::Session(_) | Event::Shard(_) | Event::Venue(_) => Ok(()),
            Event::BatchMarket(_) | Event::Batch(_) => Ok(()),
        }
    }

    fn on_order(&mut self, event: &OrderEvent) -> Result<(), Inconsistency> {
        self.entry.follow(event);
        match event {
            // A stop that waits for its trigger has no price yet, and stands in no queue.
            OrderEvent::Accepted(e) => self.enter(e.instrument, |book| {
                if let Some(price) = e.price {
                    book.put(e.order_id, e.account, e.side, price, Priority::Lost, e.resting);
                }
            }),
            OrderEvent::Amended(e) => self.enter(e.instrument, |book| {
                if let Some(price) = e.price {
                    book.put(e.order_id, e.account, e.side, price, e.priority, e.resting);
                }
            }),
            OrderEvent::Triggered(e) => self.enter(e.instrument, |book| {
                book.put(e.order_id, e.account, e.side, e.price, Priority::Lost, e.resting);
            }),
            OrderEvent::Traded(e) => self.trade(e),
            OrderEvent::Cancelled(e) => {
                self.book_mut(e.instrument)?.remove(e.order_id);
                Ok(())
            }
            OrderEvent::Reduced(e) if self.entry.is_incoming(e.order_id) => self.book_mut(e.instrument).map(|_| ()),
            OrderEvent::Reduced(e) => {
                let done = self.book_mut(e.instrument)?.reduce(e.order_id, e.resting);
                self.explain(done, e.order_id, e.resting.open)
            }
            OrderEvent::Replenished(e) => {
                let done = self.book_mut(e.instrument)?.replenish(e.order_id, e.shown);
                self.explain(done, e.order_id, e.shown)
            }
        }
    }

    /// An order comes in: what `put` leaves standing of it already counts the trades that follow.
    fn enter(&mut self, instrument: InstrumentId, put: impl FnOnce(&mut PublicBook)) -> Result<(), Inconsistency> {
        put(self.book_mut(instrument)?);
        Ok(())
    }

    fn trade(&mut self, e: &Traded) -> Result<(), Inconsistency> {
        let uncross = !self.entry.is_incoming(e.taker.order_id);
        let book = self.book_mut(e.instrument)?;
        let maker = book.trade(e.maker.order_id, e.size, e.maker.open);
        let taker = if uncross { book.trade(e.taker.order_id, e.size, e.taker.open) } else { Ok(()) };
        self.explain(maker, e.maker.order_id, e.maker.open)?;
        self.explain(taker, e.taker.order_id, e.taker.open)
    }

    fn book_mut(&mut self, instrument: InstrumentId) -> Result<&mut PublicBook, Inconsistency> {
        let unknown = Inconsistency::UnknownInstrument { log_index: self.entry.log_index, instrument };
        usize::try_from(instrument.0).ok().and_then(|index| self.books.get_mut(index)).ok_or(unknown)
    }

    fn explain(&self, done: Result<(), Contradiction>, order_id: OrderId, got: SizeLots) -> Result<(), Inconsistency> {
        let log_index = self.entry.log_index;
        done.map_err(|contradiction| match contradiction {
            Contradiction::UnknownOrder => Inconsistency::UnknownOrder { log_index, order_id },
            Contradiction::WrongRemainder { expected } => Inconsistency::WrongRemainder { log_index, order_id, expected, got },
        })
    }

    /// Panics unless every book is the sum of its orders. For tests and simulation.
    pub fn check_invariants(&self) {
        self.books.iter().for_each(PublicBook::check_invariants);
    }
}
