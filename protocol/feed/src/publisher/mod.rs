//! The venue's end: events of the engine in, messages by channel out.
//!
//! An entry of the log begins with [`Publisher::begin`], its events come by [`Publisher::on_event`], and [`Publisher::end`] ends it.
//! What is to be sent is then taken by [`Publisher::take`]. The numbers of messages are a function of the log: each replica that has
//! published since the log began gives a message the same number in its channel.

mod batches;
mod instrument;
mod outbox;
mod saved;

use walras_types::{BatchMarketId, BatchPrice, InstrumentId, LogIndex, OrderId, TimeNs};
use walras_wire::{BatchEvent, BatchMarketEvent, Event, InstrumentEvent, OrderEvent, Priority, Traded};

use crate::channel::{ChannelId, View};
use crate::message::{AuctionIndicated, BatchCleared, BatchClosed, Head, Message, Place, SnapshotBegan, SnapshotEnded};

use batches::BatchMarket;
use instrument::{Contradiction, Instrument};
use outbox::Outbox;
pub(crate) use outbox::append;

pub use outbox::{Messages, Run};
pub use saved::RestoreError;

/// Which views are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Views(u8);

impl Views {
    /// All of them.
    pub const ALL: Self = Self(0b1111);

    /// These.
    #[must_use]
    pub fn of(views: &[View]) -> Self {
        Self(views.iter().fold(0, |set, view| set | bit(*view)))
    }

    /// Whether a view is among them.
    #[must_use]
    pub const fn has(self, view: View) -> bool {
        self.0 & bit(view) != 0
    }
}

const fn bit(view: View) -> u8 {
    match view {
        View::Orders => 1,
        View::Levels => 2,
        View::Top => 4,
        View::Batches => 8,
    }
}

/// An event that contradicts earlier ones: events were lost, repeated or reordered, or the engine has a bug. As much as possible was
/// published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// An entry that is not after the one before. Nothing of it is published.
    #[error("log entry {got} came after {last}: feed entries in the order of the log, each once")]
    OutOfOrder {
        /// The last entry.
        last: LogIndex,
        /// The one that came.
        got: LogIndex,
    },
    /// An instrument that was not announced, or announced twice, or out of order.
    #[error("entry {log_index} names instrument {instrument} out of turn: begin to publish where the log begins")]
    UnknownInstrument {
        /// The entry.
        log_index: LogIndex,
        /// The instrument.
        instrument: InstrumentId,
    },
    /// A batch market that was not announced, or announced twice, or out of order.
    #[error("entry {log_index} names batch market {market} out of turn: begin to publish where the log begins")]
    UnknownBatchMarket {
        /// The entry.
        log_index: LogIndex,
        /// The market.
        market: BatchMarketId,
    },
    /// An order that does not stand.
    #[error("entry {log_index} names order {order_id}, which does not stand: events are missing")]
    UnknownOrder {
        /// The entry.
        log_index: LogIndex,
        /// The order.
        order_id: OrderId,
    },
    /// Sizes that do not follow from what stood before.
    #[error("entry {log_index} leaves another size of order {order_id} than follows from what stood: events are missing")]
    WrongSize {
        /// The entry.
        log_index: LogIndex,
        /// The order.
        order_id: OrderId,
    },
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Publisher {
    views: Views,
    instruments: Vec<Instrument>,
    batches: Vec<BatchMarket>,
    head: Head,
    /// The order that the entry let in last: what it trades as it comes in is already in what stands of it.
    incoming: Option<OrderId>,
    /// Markets that the entry concerns.
    touched: Vec<Market>,
    /// Channels that have something to send.
    listed: Vec<ChannelId>,
}

#[derive(Clone, Copy, Debug)]
enum Market {
    Instrument(usize),
    Batches(usize),
}

impl Publisher {
    /// Before the first entry of the log.
    #[must_use]
    pub fn new(views: Views) -> Self {
        let head = Head { place: Place::Inner, log_index: 0, time_ns: 0 };
        let (instruments, batches, touched, listed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { views, instruments, batches, head, incoming: None, touched, listed }
    }

    /// The last entry.
    #[must_use]
    pub fn log_index(&self) -> LogIndex {
        LogIndex(self.head.log_index)
    }

    /// An entry begins.
    pub fn begin(&mut self, log_index: LogIndex, time: TimeNs) -> Result<(), PublishError> {
        let last = self.log_index();
        if log_index <= last {
            return Err(PublishError::OutOfOrder { last, got: log_index });
        }
        self.head = Head { place: Place::Inner, log_index: log_index.0, time_ns: time.0 };
        self.incoming = None;
        Ok(())
    }

    /// Takes the next event of the entry.
    pub fn on_event(&mut self, event: &Event) -> Result<(), PublishError> {
        match event {
            Event::Order(event) => self.on_order(event),
            Event::Instrument(event) => self.on_instrument(event),
            Event::BatchMarket(event) => self.on_batch_market(event),
            Event::Batch(event) => self.on_batch(event),
            Event::Rejected(_) | Event::Account(_) | Event::Session(_) | Event::Shard(_) | Event::Venue(_) => Ok(()),
        }
    }

    /// What an instrument's auction would trade now; `None` where it has none. For as many entries as the host computes it for.
    pub fn on_indication(&mut self, instrument: InstrumentId, indicated: Option<AuctionIndicated>) -> Result<(), PublishError> {
        let head = self.head;
        self.instrument(instrument)?.indicate(&head, indicated);
        Ok(())
    }

    /// The prices of the block that the entry's last event cleared, by the market's assets: events do not hold them.
    pub fn on_prices(&mut self, market: BatchMarketId, prices: &[Option<BatchPrice>]) -> Result<(), PublishError> {
        let head = self.head;
        self.batch_market(market)?.priced(&head, prices);
        Ok(())
    }

    /// The entry has ended.
    pub fn end(&mut self) {
        for market in self.touched.drain(..) {
            match market {
                Market::Instrument(at) => self.instruments[at].end_entry(&self.head, &mut self.listed),
                Market::Batches(at) => self.batches[at].end_entry(&self.head, &mut self.listed),
            }
        }
    }

    /// Gives what is to be sent, by channel, and forgets it. Entries are given whole.
    pub fn take(&mut self, mut with: impl FnMut(Run<'_>)) {
        assert!(self.touched.is_empty(), "the entry has ended");
        let mut listed = std::mem::take(&mut self.listed);
        for channel in listed.drain(..) {
            if let Some(outbox) = self.outbox_mut(channel) {
                outbox.take(&mut with);
            }
        }
        self.listed = listed;
    }

    /// All channels that have begun, by number.
    #[must_use]
    pub fn channels(&self) -> Vec<ChannelId> {
        let books = |view| {
            let count = self.instruments.len() as u32;
            (0..count).map(move |instrument| ChannelId::instrument(view, InstrumentId(instrument)))
        };
        let mut channels: Vec<ChannelId> = View::BOOKS.into_iter().filter(|view| self.views.has(*view)).flat_map(books).collect();
        channels.extend(self.batches.iter().filter(|market| market.outbox().is_some()).map(|market| {
            let market = market.market();
            ChannelId::batches(market)
        }));
        channels
    }

    /// The number of a channel's next message.
    #[must_use]
    pub fn next(&self, channel: ChannelId) -> Option<u64> {
        self.outbox(channel).map(Outbox::next)
    }

    /// Appends the snapshot of a channel as it is now, each message after its length. How many messages that are, or `None` where there
    /// is no such channel. Costs a copy of the book.
    pub fn snapshot(&self, channel: ChannelId, out: &mut Vec<u8>) -> Option<u64> {
        assert!(self.touched.is_empty(), "the entry has ended");
        let next = self.next(channel)?;
        let at = out.len();
        let began = |messages| Message::from(SnapshotBegan { channel: channel.get(), next, messages });
        append(&began(0), &self.head, out);
        let begin_bytes = out.len() - at;
        let (head, messages) = match channel.view() {
            View::Batches => self.batches.get(market_of(channel))?.snapshot(out),
            view => self.instruments.get(market_of(channel))?.snapshot(view, out),
        };
        // The number of messages is known only now.
        let mut begin = Vec::with_capacity(begin_bytes);
        append(&began(messages), &head, &mut begin);
        out[at..at + begin_bytes].copy_from_slice(&begin);
        let last = Head { place: Place::Last, ..head };
        append(&SnapshotEnded { channel: channel.get(), next }.into(), &last, out);
        Some(messages + 2)
    }

    fn on_order(&mut self, event: &OrderEvent) -> Result<(), PublishError> {
        let head = self.head;
        self.incoming = event.comes_in().or(self.incoming);
        let done = match event {
            // A stop that waits for its trigger has no price yet, and stands in no queue.
            OrderEvent::Accepted(e) => {
                let instrument = self.instrument(e.instrument)?;
                e.price.map_or(Ok(()), |price| instrument.enter(&head, e.order_id, (e.side, price), Priority::Lost, e.resting))
            }
            OrderEvent::Amended(e) => {
                let instrument = self.instrument(e.instrument)?;
                e.price.map_or(Ok(()), |price| instrument.enter(&head, e.order_id, (e.side, price), e.priority, e.resting))
            }
            OrderEvent::Triggered(e) => {
                self.instrument(e.instrument)?.enter(&head, e.order_id, (e.side, e.price), Priority::Lost, e.resting)
            }
            OrderEvent::Traded(e) => return self.trade(e),
            OrderEvent::Cancelled(e) => self.instrument(e.instrument)?.cancel(&head, e.order_id),
            // What the incoming order lost is already in what stands of it.
            OrderEvent::Reduced(e) if self.incoming == Some(e.order_id) => Ok(()),
            OrderEvent::Reduced(e) => self.instrument(e.instrument)?.reduce(&head, e.order_id, e.resting),
            OrderEvent::Replenished(e) => self.instrument(e.instrument)?.replenish(&head, e.order_id, e.shown),
        };
        self.explain(done)
    }

    fn trade(&mut self, trade: &Traded) -> Result<(), PublishError> {
        let head = self.head;
        // In an uncross nobody came in.
        let taker_side = (self.incoming == Some(trade.taker.order_id)).then_some(trade.taker_side);
        let done = self.instrument(trade.instrument)?.trade(&head, trade, taker_side);
        self.explain(done)
    }

    fn on_instrument(&mut self, event: &InstrumentEvent) -> Result<(), PublishError> {
        let (head, log_index) = (self.head, self.log_index());
        match event {
            InstrumentEvent::Created(spec) => {
                if usize::try_from(spec.instrument.0) != Ok(self.instruments.len()) {
                    return Err(PublishError::UnknownInstrument { log_index, instrument: spec.instrument });
                }
                self.instruments.push(Instrument::new(spec, self.views, head));
                self.instrument(spec.instrument)?;
            }
            InstrumentEvent::PhaseChanged(e) => self.instrument(e.instrument)?.phase(&head, e),
            InstrumentEvent::Uncrossed(e) => self.instrument(e.instrument)?.uncrossed(&head, e),
        }
        Ok(())
    }

    fn on_batch_market(&mut self, event: &BatchMarketEvent) -> Result<(), PublishError> {
        let (head, log_index) = (self.head, self.log_index());
        match event {
            BatchMarketEvent::Created(spec) => {
                if usize::from(spec.market.0) != self.batches.len() {
                    return Err(PublishError::UnknownBatchMarket { log_index, market: spec.market });
                }
                let outbox = self.views.has(View::Batches).then(|| Outbox::new(ChannelId::batches(spec.market), 1));
                self.batches.push(BatchMarket::new(spec, outbox, head));
                self.batch_market(spec.market)?;
            }
            BatchMarketEvent::AssetAdded(e) => self.batch_market(e.market)?.asset_added(&head, e.asset),
            BatchMarketEvent::PhaseChanged(e) => self.batch_market(e.market)?.phase(&head, e.phase),
            BatchMarketEvent::IntervalChanged(e) => self.batch_market(e.market)?.interval(&head, e.interval_ns),
            // Its messages say what each asset traded, not each pair.
            BatchMarketEvent::AccountFeeChanged(_) | BatchMarketEvent::CurrenciesSet(_) => {}
        }
        Ok(())
    }

    fn on_batch(&mut self, event: &BatchEvent) -> Result<(), PublishError> {
        let head = self.head;
        match event {
            BatchEvent::Closed(e) => {
                let market = self.batch_market(e.market)?;
                market.closed();
                market.say(&head, &BatchClosed { block: e.block, kept: e.kept, dropped: e.dropped }.into());
            }
            BatchEvent::OfferTraded(e) => self.batch_market(e.market)?.sold(e.sell, e.sold.get()),
            BatchEvent::PoolTraded(e) => self.batch_market(e.market)?.sold(e.sell, e.sold.get()),
            BatchEvent::Cleared(e) => {
                let cleared = BatchCleared {
                    block: e.block,
                    transactions: e.transactions,
                    pairs: e.pairs,
                    offers_traded: e.offers_traded,
                    gap_ppb: e.gap_ppb,
                    unserved_ppb: e.unserved_ppb,
                    set_aside: e.set_aside,
                    state_root: e.state_root,
                };
                self.batch_market(e.market)?.cleared(&head, cleared);
            }
            // What concerns one account is no market data.
            BatchEvent::TransactionCollected(_) | BatchEvent::TransactionDropped(_) | BatchEvent::ClearingRejected(_) => {}
            BatchEvent::OfferOpened(_) | BatchEvent::OfferCancelled(_) => {}
            BatchEvent::PoolCreated(_)
            | BatchEvent::PoolDeposited(_)
            | BatchEvent::PoolWithdrawn(_)
            | BatchEvent::PoolClosed(_) => {}
            BatchEvent::Paid(_) | BatchEvent::AccountFeePaid(_) | BatchEvent::Issued(_) | BatchEvent::Burnt(_) => {}
        }
        Ok(())
    }

    /// An instrument, which the entry concerns.
    fn instrument(&mut self, instrument: InstrumentId) -> Result<&mut Instrument, PublishError> {
        let unknown = PublishError::UnknownInstrument { log_index: self.log_index(), instrument };
        let at = usize::try_from(instrument.0).map_err(|_| unknown)?;
        let found = self.instruments.get_mut(at).ok_or(unknown)?;
        if found.list() {
            self.touched.push(Market::Instrument(at));
        }
        Ok(found)
    }

    /// A batch market, which the entry concerns.
    fn batch_market(&mut self, market: BatchMarketId) -> Result<&mut BatchMarket, PublishError> {
        let unknown = PublishError::UnknownBatchMarket { log_index: self.log_index(), market };
        let at = usize::from(market.0);
        let found = self.batches.get_mut(at).ok_or(unknown)?;
        if found.list() {
            self.touched.push(Market::Batches(at));
        }
        Ok(found)
    }

    fn outbox(&self, channel: ChannelId) -> Option<&Outbox> {
        match channel.view() {
            View::Batches => self.batches.get(market_of(channel))?.outbox(),
            view => self.instruments.get(market_of(channel))?.outbox(view),
        }
    }

    fn outbox_mut(&mut self, channel: ChannelId) -> Option<&mut Outbox> {
        match channel.view() {
            View::Batches => self.batches.get_mut(market_of(channel))?.outbox_mut(),
            view => self.instruments.get_mut(market_of(channel))?.outbox_mut(view),
        }
    }

    fn explain(&self, done: Result<(), Contradiction>) -> Result<(), PublishError> {
        let log_index = self.log_index();
        done.map_err(|contradiction| match contradiction {
            Contradiction::UnknownOrder(order_id) => PublishError::UnknownOrder { log_index, order_id },
            Contradiction::WrongSize(order_id) => PublishError::WrongSize { log_index, order_id },
        })
    }
}

/// A channel's market, as an index. That of snapshots is beyond all markets.
fn market_of(channel: ChannelId) -> usize {
    channel.market() as usize
}
