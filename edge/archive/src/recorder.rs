//! The engine's side: records what an entry adds to the archive. It never blocks, except during a replay.
//!
//! What happens to orders it only notes, where the archive keeps them; the archive's thread has the books that they make
//! (`by_order.rs`). Before its first note it lists the orders that stand, for an archive that does not know them. That is never done
//! while the venue is live, but where its state is replaced.
//!
//! After the first entry of each interval of the log's time it takes snapshots of the books that changed since the last ones. After
//! the first entry of each quarter of an hour it takes them of all books, so that a search for a book need not go far back.

use std::time::Duration;

use crossbeam_channel::{SendTimeoutError, Sender, TrySendError};
use walras_engine::{DepthLevel, DisplayedOrder, Engine};
use walras_market_data::Recorded;
use walras_types::{InstrumentId, LogIndex, OrderId, Side, TimeNs};
use walras_wire::{Event, InstrumentEvent, OrderEvent};

use crate::day::Day;
use crate::record::{Batch, Book, Level, Listing, OrderNote, OrderSaid, Shown, Span, Trade};

/// After the first entry of each such interval, snapshots of all books are taken.
pub const KEYFRAME_NS: u64 = 900_000_000_000;

/// Number of records at which a batch is sent.
const BATCH_RECORDS: usize = 4_096;
/// Number of records at which a batch is dropped if the queue is full.
const BATCH_RECORDS_MAX: usize = 4 * BATCH_RECORDS;

/// Longest wait of a replay for the archive.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Turns entries into batches.
#[derive(Debug)]
pub struct Recorder {
    batches: Sender<Batch>,
    depth: usize,
    every_ns: u64,
    /// Entries before it are in the archive.
    from: LogIndex,
    /// The first entry from this log time on takes book snapshots.
    next_ns: u64,
    last: TimeNs,
    /// By instrument, whether its book may have changed since its last snapshot.
    changed: Vec<bool>,
    /// Instruments that the archive knows.
    listed: usize,
    batch: Batch,
    levels: Vec<DepthLevel>,
    /// Whether orders are noted.
    notes_orders: bool,
    may_wait: bool,
}

impl Recorder {
    /// A recorder that continues from the state of `engine`, for an archive with the entries before `from`. During a replay it may
    /// wait for the archive, until [`Recorder::go_live`].
    #[must_use]
    pub fn new(batches: Sender<Batch>, depth: usize, every_ns: u64, from: LogIndex, engine: &Engine) -> Self {
        let mut recorder = Self {
            batches,
            depth,
            every_ns: every_ns.max(1),
            from,
            next_ns: 0,
            last: TimeNs(0),
            changed: Vec::new(),
            listed: 0,
            batch: Batch::default(),
            levels: Vec::new(),
            notes_orders: false,
            may_wait: true,
        };
        recorder.start_over(engine);
        recorder
    }

    /// Notes what happens to orders too, from the state of `engine` on, which is the recorder's.
    #[must_use]
    pub fn with_orders(mut self, engine: &Engine) -> Self {
        self.notes_orders = true;
        self.list_orders(engine);
        self
    }

    /// Ends the replay: from now on it never waits, and records that do not fit the queue count as missing.
    pub fn go_live(&mut self) {
        self.flush();
        self.may_wait = false;
    }

    /// The state was replaced by a later one.
    pub fn start_over(&mut self, engine: &Engine) {
        self.last = engine.time();
        self.next_ns = if engine.last_applied() == LogIndex(0) { 0 } else { self.after(engine.time()) };
        self.changed.clear();
        self.changed.resize(engine.instruments().len(), true);
        self.list_orders(engine);
    }

    /// Lists all displayed orders, where the archive has no entry after this state.
    fn list_orders(&mut self, engine: &Engine) {
        let log_index = engine.last_applied();
        // Before the first entry there is none.
        if !self.notes_orders || log_index == LogIndex(0) || log_index.next() < self.from {
            return;
        }
        let (mut orders, mut of_side) = (Vec::new(), Vec::new());
        for view in engine.instruments() {
            let instrument = view.spec.instrument;
            for side in Side::BOTH {
                of_side.clear();
                engine.displayed_orders(instrument, side, usize::MAX, &mut of_side);
                let shown =
                    |order: &DisplayedOrder| Shown { order_id: order.order_id, side, price: order.price, shown: order.shown };
                orders.extend(of_side.iter().map(|order| (instrument, shown(order))));
            }
        }
        self.batch.orders.push(OrderNote { log_index, time: engine.time(), said: OrderSaid::Standing(orders) });
    }

    fn after(&self, time: TimeNs) -> u64 {
        (time.0 / self.every_ns).saturating_add(1).saturating_mul(self.every_ns)
    }

    /// An entry was applied, with these events, and this is what it recorded of accounts: `engine` is the state after it.
    pub fn on_entry(&mut self, log_index: LogIndex, time: TimeNs, events: &[Event], accounts: &[Recorded], engine: &Engine) {
        let is_new = log_index >= self.from;
        if is_new {
            self.cover(log_index, time);
            self.batch.accounts.extend_from_slice(accounts);
        }
        // The latest incoming order; `None` in an uncross.
        let mut incoming = None;
        for event in events {
            if let Event::Order(event) = event {
                incoming = event.comes_in().or(incoming);
            }
            self.on_event(log_index, time, event, incoming, is_new);
            if is_new && self.notes_orders {
                self.note_orders(log_index, time, event);
            }
        }
        // The next entry is the first that the archive does not have.
        if !is_new && log_index.next() == self.from {
            self.list_orders(engine);
        }
        if time.0 >= self.next_ns {
            self.next_ns = self.after(time);
            let is_keyframe = time.0 / KEYFRAME_NS != self.last.0 / KEYFRAME_NS;
            if is_new {
                self.take_pictures(log_index, time, engine, is_keyframe);
            } else if is_keyframe {
                self.changed.fill(true);
            }
        }
        self.last = time;
        if is_new && self.listed < engine.instruments().len() {
            self.list(engine);
        }
        if self.pending() >= BATCH_RECORDS {
            self.flush();
        }
    }

    fn pending(&self) -> usize {
        self.batch.trades.len() + self.batch.books.len() + self.batch.accounts.len() + self.batch.orders.len()
    }

    fn cover(&mut self, log_index: LogIndex, time: TimeNs) {
        let day = Day::of(time);
        match self.batch.spans.last_mut() {
            Some(span) if span.day == day && span.last.next() == log_index => (span.last, span.last_time) = (log_index, time),
            _ => self.batch.spans.push(Span { day, first: log_index, last: log_index, last_time: time }),
        }
    }

    fn on_event(&mut self, log_index: LogIndex, time: TimeNs, event: &Event, incoming: Option<OrderId>, is_new: bool) {
        match event {
            Event::Order(OrderEvent::Accepted(e)) => self.note(e.instrument),
            Event::Order(OrderEvent::Amended(e)) => self.note(e.instrument),
            Event::Order(OrderEvent::Triggered(e)) => self.note(e.instrument),
            Event::Order(OrderEvent::Traded(e)) => {
                self.note(e.instrument);
                if is_new {
                    let taker_side = (incoming == Some(e.taker.order_id)).then_some(e.taker_side);
                    let (instrument, trade_id, price, size) = (e.instrument, e.trade_id, e.price, e.size);
                    self.batch.trades.push(Trade { log_index, time, instrument, trade_id, price, size, taker_side });
                }
            }
            Event::Order(OrderEvent::Cancelled(e)) => self.note(e.instrument),
            Event::Order(OrderEvent::Reduced(e)) => self.note(e.instrument),
            Event::Order(OrderEvent::Replenished(e)) => self.note(e.instrument),
            Event::Instrument(InstrumentEvent::Created(spec)) => self.note(spec.instrument),
            // These change no book, or come with events that do.
            Event::Instrument(InstrumentEvent::PhaseChanged(_) | InstrumentEvent::Uncrossed(_)) => {}
            Event::Rejected(_) | Event::Account(_) | Event::Session(_) | Event::Shard(_) | Event::Venue(_) => {}
            Event::BatchMarket(_) | Event::Batch(_) => {}
        }
    }

    fn note_orders(&mut self, log_index: LogIndex, time: TimeNs, event: &Event) {
        let said = match event {
            Event::Order(event) => OrderSaid::Event(*event),
            Event::Instrument(InstrumentEvent::PhaseChanged(e)) => OrderSaid::Phase(e.instrument),
            Event::Instrument(InstrumentEvent::Uncrossed(e)) => OrderSaid::Phase(e.instrument),
            Event::Instrument(InstrumentEvent::Created(_)) => return,
            Event::Rejected(_) | Event::Account(_) | Event::Session(_) | Event::Shard(_) | Event::Venue(_) => return,
            Event::BatchMarket(_) | Event::Batch(_) => return,
        };
        self.batch.orders.push(OrderNote { log_index, time, said });
    }

    fn note(&mut self, instrument: InstrumentId) {
        let at = instrument.0 as usize;
        if self.changed.len() <= at {
            self.changed.resize(at + 1, true);
        }
        self.changed[at] = true;
    }

    fn take_pictures(&mut self, log_index: LogIndex, time: TimeNs, engine: &Engine, of_all: bool) {
        for (at, instrument) in (0..self.changed.len()).zip((0..).map(InstrumentId)) {
            if !std::mem::take(&mut self.changed[at]) && !of_all {
                continue;
            }
            let (bids, asks) = (self.side(engine, instrument, Side::Buy), self.side(engine, instrument, Side::Sell));
            self.batch.books.push(Book { log_index, time, instrument, bids, asks });
        }
    }

    fn side(&mut self, engine: &Engine, instrument: InstrumentId, side: Side) -> Vec<Level> {
        self.levels.clear();
        engine.depth(instrument, side, self.depth, &mut self.levels);
        self.levels.iter().map(|l| Level { price: l.price, size: l.shown, order_count: l.order_count }).collect()
    }

    fn list(&mut self, engine: &Engine) {
        let assets = engine.assets();
        self.batch.listings.extend(engine.instruments().skip(self.listed).map(|view| {
            let asset = |id: walras_types::AssetId| &assets[id.0 as usize];
            Listing::of(&view.spec, asset(view.spec.base), asset(view.spec.quote))
        }));
        self.listed = engine.instruments().len();
    }

    /// Sends pending records to the archive. If its queue is full, they stay pending; if there are too many, they are dropped.
    pub fn flush(&mut self) {
        if self.batch.spans.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        // What stands in a state that replaced another goes with the first entry after it: the archive takes no note without its entry.
        let covered = batch.spans.last().map_or(LogIndex(0), |span| span.last);
        let of_later = batch.orders.partition_point(|note| note.log_index <= covered);
        self.batch.orders = batch.orders.split_off(of_later);
        let sent = if self.may_wait {
            self.batches.send_timeout(batch, WAIT_MAX).map_err(|e| match e {
                SendTimeoutError::Timeout(batch) => TrySendError::Full(batch),
                SendTimeoutError::Disconnected(batch) => TrySendError::Disconnected(batch),
            })
        } else {
            self.batches.try_send(batch)
        };
        // If the archive has ended, the records are dropped.
        let Err(TrySendError::Full(batch)) = sent else { return };
        // The archive's disk is full or stalled: the start of the venue no longer waits for it.
        self.may_wait = false;
        let of_later = std::mem::replace(&mut self.batch, batch).orders;
        if self.pending() >= BATCH_RECORDS_MAX {
            self.batch = Batch::default();
            // Dropped. The archive sees from the next batch's first entry which entries are missing.
            self.listed = 0;
            self.changed.fill(true);
        }
        self.batch.orders.extend(of_later);
    }
}
