//! Who hears a venue's events: market data as a node has it, with a reader of what it publishes, and a reader of the events alone.
//! Both readers must hold the engine's books.

use walras_engine::{DepthLevel, Engine};
use walras_market_data::{BookChanges, BookFeed, BookLevel, FeedBook, Inconsistency, MarketData, PublicBooks};
use walras_types::{InstrumentId, LogIndex, Side, TimeNs};
use walras_wire::Event;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    /// What the venue publishes from.
    pub market: MarketData,
    /// Who reads of it.
    pub readers: Readers,
}

/// Readers of a venue's events and of what it publishes, where somebody else has its market data.
#[derive(Clone, Debug, Default)]
pub struct Readers {
    /// Rebuilt from the events.
    pub books: PublicBooks,
    /// By instrument: rebuilt from the levels that the engine says changed.
    feeds: Vec<(BookFeed, FeedBook)>,
}

impl Listener {
    /// Takes an entry that the engine just applied, all that can be taken of it; the first thing that does not follow from what was
    /// before.
    pub fn on_applied(
        &mut self,
        engine: &Engine,
        log_index: LogIndex,
        time: TimeNs,
        events: &[Event],
    ) -> Result<(), Inconsistency> {
        let Self { market, readers } = self;
        let mut done = market.on_entry(log_index, time);
        for event in events {
            done = done.and(market.on_event(log_index, time, event));
        }
        for level in engine.changed_levels() {
            done = done.and(market.on_changed_level(level.instrument, level.side, level.price));
        }
        done.and(readers.on_applied(engine, market, log_index, events))
    }

    /// What differs from the engine: both readers' books, and market data's phases and last prices.
    pub fn check(&self, engine: &Engine) -> Result<(), String> {
        self.readers.check(engine, &self.market)
    }

    /// Appends what a restart keeps: all but the readers of what is published, who begin again.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0; 8]);
        self.market.snapshot(out);
        let length = (out.len() - at - 8) as u64;
        out[at..at + 8].copy_from_slice(&length.to_le_bytes());
        self.readers.snapshot(out);
    }

    /// What [`Listener::snapshot`] wrote.
    pub fn restore(bytes: &[u8]) -> Result<Self, String> {
        let parts = bytes.split_first_chunk::<8>().and_then(|(length, rest)| {
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            rest.split_at_checked(length)
        });
        let (market, readers) = parts.ok_or("it is cut short")?;
        let market = MarketData::restore(market).map_err(|e| e.to_string())?;
        Ok(Self { market, readers: Readers::restore(readers)? })
    }

    /// Panics if what it holds contradicts itself.
    pub fn check_invariants(&self) {
        self.market.check_invariants();
        self.readers.check_invariants();
    }
}

impl Readers {
    /// Takes an entry that the engine just applied and market data has taken, all that can be taken of it; the first thing that
    /// does not follow from what was before. What changed since the entry before is taken from market data.
    pub fn on_applied(
        &mut self,
        engine: &Engine,
        market: &mut MarketData,
        log_index: LogIndex,
        events: &[Event],
    ) -> Result<(), Inconsistency> {
        let mut done = self.books.on_entry(log_index);
        for event in events {
            done = done.and(self.books.on_event(log_index, event));
        }
        self.publish(engine, market);
        done
    }

    /// Sends each instrument's reader what changed.
    fn publish(&mut self, engine: &Engine, market: &mut MarketData) {
        for (index, instrument) in (0..market.instruments().len()).zip((0..).map(InstrumentId)) {
            let feed = market.instrument_mut(instrument).expect("it is among them");
            if self.feeds.len() <= index {
                self.feeds.push((BookFeed::default(), FeedBook::new(instrument)));
            }
            let (sender, reader) = &mut self.feeds[index];
            let mut changes = Vec::new();
            let now = |side, price| engine.level(instrument, side, price).map(book_level);
            let taken = feed.changed_levels().take(now, &mut changes);
            let message = if taken == BookChanges::TooMany || reader.log_index().is_none() {
                sender.snapshot(feed, Side::BOTH.map(|side| depth(engine, instrument, side)))
            } else if changes.is_empty() {
                continue;
            } else {
                sender.update(feed, &changes)
            };
            reader.apply(&message).expect("none is lost");
        }
    }

    /// The last entry that they read of.
    #[must_use]
    pub fn log_index(&self) -> LogIndex {
        self.books.log_index()
    }

    /// What differs from the engine: both readers' books, and market data's phases and last prices.
    pub fn check(&self, engine: &Engine, market: &MarketData) -> Result<(), String> {
        let Self { books, feeds } = self;
        let at = engine.last_applied();
        if market.log_index() != at || books.log_index() != at {
            return Err(format!("market data is at entry {}, a reader at {}", market.log_index(), books.log_index()));
        }
        let count = engine.instruments().len();
        if market.instruments().len() != count || books.all().len() != count {
            return Err(format!("market data has {} instruments, a reader {}", market.instruments().len(), books.all().len()));
        }
        for ((view, feed), (index, book)) in engine.instruments().zip(market.instruments()).zip(books.all().iter().enumerate()) {
            let instrument = view.spec.instrument;
            if (feed.ticker().phase, feed.ticker().last) != (view.phase, view.last_price) {
                return Err(format!("of instrument {instrument} market data shows {:?}, the engine {view:?}", feed.ticker()));
            }
            for side in Side::BOTH {
                let depth = depth(engine, instrument, side);
                let of_events: Vec<BookLevel> = book.levels(side).collect();
                if of_events != depth {
                    return Err(format!(
                        "{side:?} of instrument {instrument}: events make {of_events:?}, the engine has {depth:?}"
                    ));
                }
                // After a start nothing is sent before the first entry.
                let Some((_, reader)) = feeds.get(index) else { continue };
                let of_feed: Vec<BookLevel> = reader.levels(side).collect();
                if of_feed != depth {
                    return Err(format!("{side:?} of instrument {instrument}: {of_feed:?} was sent, the engine has {depth:?}"));
                }
            }
        }
        Ok(())
    }

    /// Appends what a restart keeps: all but the readers of what is published, who begin again.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        self.books.snapshot(out);
    }

    /// What [`Readers::snapshot`] wrote.
    pub fn restore(bytes: &[u8]) -> Result<Self, String> {
        Ok(Self { books: PublicBooks::restore(bytes).map_err(|e| e.to_string())?, feeds: Vec::new() })
    }

    /// Panics if what they hold contradicts itself.
    pub fn check_invariants(&self) {
        self.books.check_invariants();
    }
}

fn book_level(level: DepthLevel) -> BookLevel {
    BookLevel { price: level.price, shown: level.shown, order_count: level.order_count }
}

fn depth(engine: &Engine, instrument: InstrumentId, side: Side) -> Vec<BookLevel> {
    let mut depth = Vec::new();
    engine.depth(instrument, side, usize::MAX, &mut depth);
    depth.into_iter().map(book_level).collect()
}
