//! The binary feed of a replica: messages of each entry, with numbers that are the same at all replicas. The driver sends what a leader
//! publishes, and keeps what a follower does for readers that will ask it once it leads.

use walras_consensus::Term;
use walras_engine::Engine;
use walras_fair_access::publications::ReleaseTime;
use walras_feed::channel::ChannelId;
use walras_feed::message::AuctionIndicated;
use walras_feed::publisher::{PublishError, Publisher, Run, Views};
pub use walras_feed::station::Part as FeedPart;
use walras_sequencer::Entry;
use walras_types::{InstrumentId, LogIndex, TradingPhase};
use walras_wire::{BatchEvent, Event, InstrumentEvent, OrderEvent};

/// Open orders of a book that collects for an auction for which each entry says what the auction would trade. Of larger books every
/// second, third and so on does: the cost grows with the book.
const INDICATED_ORDERS_MAX: u64 = 1_024;

/// What an entry publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPiece {
    /// The entry.
    pub log_index: LogIndex,
    /// The term in which it is published here.
    pub term: Term,
    /// From when on it may be known, where market data is held.
    pub release: Option<ReleaseTime>,
    /// How long it is held, from the entry's time on.
    pub held_ns: u64,
    /// What to do with it.
    pub part: FeedPart,
    /// The messages of each channel that has any. There are none where only the part changes: a leader sends heartbeats and snapshots from
    /// the beginning, and stops once another one leads.
    pub runs: Vec<FeedRun>,
}

/// Packets of a channel that a leader may number in its term: more than it sends in months.
const PACKETS_OF_A_TERM: u64 = 1 << 40;
/// Below all numbers of leaders. Earlier programs numbered packets and views from the time in ns, which is less until the year 2043: relays
/// and receivers that run on through an upgrade would drop smaller numbers as old.
const BEFORE_ALL_TERMS: u64 = 1 << 61;

impl FeedPiece {
    /// The first number of this term's leader for packets and views. It is greater than all numbers of earlier leaders, and does not depend
    /// on clocks.
    #[must_use]
    pub fn first_number(&self) -> u64 {
        self.term.0.saturating_mul(PACKETS_OF_A_TERM).saturating_add(BEFORE_ALL_TERMS)
    }
}

/// Messages of one channel that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRun {
    /// The channel.
    pub channel: ChannelId,
    /// The number of the first.
    pub first: u64,
    /// Each message after its length.
    pub bytes: Vec<u8>,
}

impl FeedRun {
    /// As a sender takes it.
    #[must_use]
    pub fn as_run(&self) -> Run<'_> {
        Run::new(self.channel, self.first, &self.bytes)
    }
}

/// Gives the publisher an entry that was applied; what it publishes. After an error the feed is not that of the log any more.
pub(crate) fn publish(
    publisher: &mut Publisher,
    engine: &Engine,
    entry: &Entry,
    events: &[Event],
) -> Result<Vec<FeedRun>, PublishError> {
    publisher.begin(entry.log_index, entry.time)?;
    let done = events.iter().try_for_each(|event| on_event(publisher, engine, event));
    let done = done.and_then(|()| indicate(publisher, engine, entry.log_index, events));
    publisher.end();
    let mut runs = Vec::new();
    publisher.take(|run| runs.push(FeedRun { channel: run.channel, first: run.first, bytes: run.bytes().to_vec() }));
    done.map(|()| runs)
}

fn on_event(publisher: &mut Publisher, engine: &Engine, event: &Event) -> Result<(), PublishError> {
    publisher.on_event(event)?;
    // Events do not hold a block's prices.
    if let Event::Batch(BatchEvent::Cleared(cleared)) = event
        && let Some(last) = engine.batch_market(cleared.market).and_then(|market| market.last)
    {
        publisher.on_prices(cleared.market, &last.header.prices)?;
    }
    Ok(())
}

/// What the auctions would trade of the instruments that the entry concerned.
fn indicate(publisher: &mut Publisher, engine: &Engine, log_index: LogIndex, events: &[Event]) -> Result<(), PublishError> {
    let mut concerned: Vec<InstrumentId> = events.iter().filter_map(instrument_of).collect();
    concerned.sort_unstable();
    concerned.dedup();
    for instrument in concerned {
        let collects = engine.instrument(instrument).is_some_and(|view| view.phase != TradingPhase::Continuous);
        let every = 1 + engine.open_order_count(instrument) as u64 / INDICATED_ORDERS_MAX;
        if collects && !log_index.0.is_multiple_of(every) {
            continue;
        }
        let indicated = engine.indicative(instrument).filter(|_| collects).map(|uncross| AuctionIndicated {
            price: Some(uncross.price),
            volume: uncross.volume,
            imbalance_lots: uncross.imbalance_lots,
        });
        publisher.on_indication(instrument, indicated)?;
    }
    Ok(())
}

fn instrument_of(event: &Event) -> Option<InstrumentId> {
    match event {
        Event::Order(event) => Some(match event {
            OrderEvent::Accepted(e) => e.instrument,
            OrderEvent::Amended(e) => e.instrument,
            OrderEvent::Traded(e) => e.instrument,
            OrderEvent::Cancelled(e) => e.instrument,
            OrderEvent::Reduced(e) => e.instrument,
            OrderEvent::Replenished(e) => e.instrument,
            OrderEvent::Triggered(e) => e.instrument,
        }),
        Event::Instrument(event) => Some(match event {
            InstrumentEvent::Created(spec) => spec.instrument,
            InstrumentEvent::PhaseChanged(e) => e.instrument,
            InstrumentEvent::Uncrossed(e) => e.instrument,
        }),
        Event::Rejected(_) | Event::Account(_) | Event::Session(_) | Event::Shard(_) | Event::Venue(_) => None,
        Event::BatchMarket(_) | Event::Batch(_) => None,
    }
}

/// The publisher that goes on from a state: the state's own, or a new one where the log begins. `None` where the feed is off, and where
/// the state does not say which numbers its messages had: the feed begins with the log, or not at all.
pub(crate) fn begin(views: Option<Views>, kept: Option<Publisher>, engine: &Engine) -> Option<Publisher> {
    let (views, last) = (views?, engine.last_applied());
    if last == LogIndex(0) { Some(Publisher::new(views)) } else { kept.filter(|kept| kept.is_at(last)) }
}
