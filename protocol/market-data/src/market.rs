//! A venue's market data in addition to the engine's books: trades, candles, tickers, and changed levels.

use std::collections::BTreeMap;
use std::sync::Arc;

use walras_batch::{BlockHeader, Outcomes, Roots};
use walras_types::{
    AccountId, BatchMarketId, InstrumentId, InstrumentSpec, LogIndex, OrderId, PriceTicks, Side, Symbol, TimeNs, effective_limit,
};
use walras_wire::{BatchEvent, BatchMarketEvent, Event, InstrumentEvent, OrderEvent, TradeParty, Traded};

use crate::batches::{BatchBlock, BatchFeed};
use crate::candles::{Candles, Interval};
use crate::entry::{CurrentEntry, Inconsistency};
use crate::levels::ChangedLevels;
use crate::offers::{OfferChange, OfferFill, Offers, StandingOffer};
use crate::tape::{PublicTrade, Tape};
use crate::ticker::{DAY_NS, Ticker};

/// One instrument's market data, in addition to the engine's book.
#[derive(Clone, Debug)]
pub struct InstrumentFeed {
    spec: InstrumentSpec,
    pub(crate) changed: ChangedLevels,
    pub(crate) tape: Tape,
    pub(crate) candles: Candles,
    pub(crate) ticker: Ticker,
    pub(crate) revision: LogIndex,
}

impl InstrumentFeed {
    pub(crate) fn new(spec: InstrumentSpec) -> Self {
        Self {
            spec,
            changed: ChangedLevels::default(),
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

    /// The levels of its book that changed since the last take.
    pub fn changed_levels(&mut self) -> &mut ChangedLevels {
        &mut self.changed
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

    /// Its phase and why it is in it, last price and day.
    #[must_use]
    pub fn ticker(&self) -> &Ticker {
        &self.ticker
    }

    /// What the trades of the UTC day that `now` is in were worth: price in ticks times size in lots, summed. It stays at the largest
    /// number rather than overflow.
    #[must_use]
    pub fn day_tick_lots(&self, now: TimeNs) -> u128 {
        self.candles.since(Interval::Hour, day_start_s(now)).fold(0, |sum, candle| candle.tick_lots.saturating_add(sum))
    }

    /// The price of the last trade before the UTC day that `now` is in; `None` where there was none.
    #[must_use]
    pub fn previous_close(&self, now: TimeNs) -> Option<PriceTicks> {
        self.candles.before(Interval::Hour, day_start_s(now)).map(|candle| candle.close)
    }

    /// The latest log entry that concerned it: nothing here changed for a reader who saw this number.
    #[must_use]
    pub fn revision(&self) -> LogIndex {
        self.revision
    }
}

/// When the UTC day began that `now` is in. It began with an hour, and there are candles of many days' hours.
fn day_start_s(now: TimeNs) -> u64 {
    now.0 / DAY_NS * (DAY_NS / 1_000_000_000)
}

/// A venue's market data. A clone shares large parts (trades, candles, blocks, accounts' offers) until they change.
#[derive(Clone, Debug, Default)]
pub struct MarketData {
    pub(crate) instruments: Vec<InstrumentFeed>,
    pub(crate) by_symbol: BTreeMap<Symbol, InstrumentId>,
    pub(crate) entry: CurrentEntry,
    pub(crate) time: TimeNs,
    pub(crate) trade_count: u64,
    /// The orders that the latest trade or reduction shrank. An iceberg's `Replenished` event follows it and does not name the
    /// owner.
    latest_shrunk: [Option<(OrderId, AccountId)>; 2],
    /// By id.
    pub(crate) batches: Vec<BatchFeed>,
    pub(crate) offers: Offers,
}

impl MarketData {
    /// Nothing, before the first entry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy for a snapshot: a clone that has also the list of accounts' offers in common with this until it changes.
    #[must_use]
    pub fn share(&mut self) -> Self {
        let Self { instruments, by_symbol, entry, time, trade_count, latest_shrunk, batches, offers } = self;
        let (instruments, by_symbol, batches, offers) = (instruments.clone(), by_symbol.clone(), batches.clone(), offers.share());
        let (entry, time, trade_count, latest_shrunk) = (*entry, *time, *trade_count, *latest_shrunk);
        Self { instruments, by_symbol, entry, time, trade_count, latest_shrunk, batches, offers }
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

    /// One instrument, to note and take the levels that changed.
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
        self.entry.log_index
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

    /// All batch markets, by id.
    #[must_use]
    pub fn batches(&self) -> &[BatchFeed] {
        &self.batches
    }

    /// One batch market.
    #[must_use]
    pub fn batch(&self, market: BatchMarketId) -> Option<&BatchFeed> {
        self.batches.get(usize::from(market.0))
    }

    /// Every account's own offers.
    #[must_use]
    pub fn offers(&self) -> &Offers {
        &self.offers
    }

    /// Adds the header and hashes of the block cleared by the latest entry, because the events do not hold prices and hashes.
    pub fn on_block(&mut self, header: &BlockHeader, roots: Roots, touched: [u8; 32], outcomes: Option<&Arc<Outcomes>>) {
        if let Some(feed) = self.batches.get_mut(usize::from(header.market.0)) {
            feed.complete(header, roots, touched);
            if let Some(outcomes) = outcomes {
                feed.outcomes.keep(header.number, outcomes);
            }
        }
    }

    /// The owner of an iceberg that was replenished.
    pub(crate) fn replenished(&self, order_id: OrderId) -> Option<AccountId> {
        self.latest_shrunk.iter().flatten().find_map(|&(order, account)| (order == order_id).then_some(account))
    }

    pub(crate) fn is_incoming(&self, order_id: OrderId) -> bool {
        self.entry.is_incoming(order_id)
    }

    /// An entry begins. [`MarketData::on_event`] does this itself; call it for entries without events, so that time goes on.
    pub fn on_entry(&mut self, log_index: LogIndex, time: TimeNs) -> Result<(), Inconsistency> {
        if self.entry.begin(log_index)? {
            self.time = self.time.max(time);
            self.latest_shrunk = [None; 2];
        }
        Ok(())
    }

    /// Takes the next event of an entry.
    pub fn on_event(&mut self, log_index: LogIndex, time: TimeNs, event: &Event) -> Result<(), Inconsistency> {
        self.on_entry(log_index, time)?;
        match event {
            Event::Order(e) => self.on_order(e),
            Event::Instrument(e) => self.on_instrument(e),
            Event::BatchMarket(e) => self.on_batch_market(e),
            Event::Batch(e) => self.on_batch(log_index, time, e),
            Event::Rejected(_) | Event::Account(_) | Event::Session(_) | Event::Shard(_) | Event::Venue(_) => Ok(()),
        }
    }

    fn on_order(&mut self, event: &OrderEvent) -> Result<(), Inconsistency> {
        self.entry.follow(event);
        match event {
            OrderEvent::Accepted(e) => self.touch(e.instrument).map(|_| ()),
            OrderEvent::Amended(e) => self.touch(e.instrument).map(|_| ()),
            OrderEvent::Triggered(e) => self.touch(e.instrument).map(|_| ()),
            OrderEvent::Traded(e) => self.trade(e),
            OrderEvent::Cancelled(e) => self.touch(e.instrument).map(|_| ()),
            OrderEvent::Reduced(e) => {
                self.latest_shrunk = [Some((e.order_id, e.account)), None];
                self.touch(e.instrument).map(|_| ())
            }
            OrderEvent::Replenished(e) => self.touch(e.instrument).map(|_| ()),
        }
    }

    fn on_instrument(&mut self, event: &InstrumentEvent) -> Result<(), Inconsistency> {
        match event {
            InstrumentEvent::Created(spec) => self.create(*spec),
            InstrumentEvent::PhaseChanged(e) => {
                let ticker = &mut self.touch(e.instrument)?.ticker;
                (ticker.phase, ticker.phase_cause) = (e.phase, Some(e.cause));
                Ok(())
            }
            InstrumentEvent::Uncrossed(e) => {
                self.touch(e.instrument)?.ticker.last_uncross = Some(*e);
                Ok(())
            }
        }
    }

    fn on_batch_market(&mut self, event: &BatchMarketEvent) -> Result<(), Inconsistency> {
        match event {
            BatchMarketEvent::Created(spec) => {
                if usize::from(spec.market.0) != self.batches.len() {
                    return Err(Inconsistency::UnknownBatchMarket { log_index: self.log_index(), market: spec.market });
                }
                self.batches.push(BatchFeed::new(spec.market));
                self.batch_mut(spec.market).map(|_| ())
            }
            BatchMarketEvent::AssetAdded(e) => {
                self.batch_mut(e.market)?.add_asset(e.asset);
                Ok(())
            }
            BatchMarketEvent::PhaseChanged(e) => self.batch_mut(e.market).map(|_| ()),
            BatchMarketEvent::IntervalChanged(e) => self.batch_mut(e.market).map(|_| ()),
            BatchMarketEvent::AccountFeeChanged(e) => self.batch_mut(e.market).map(|_| ()),
            BatchMarketEvent::CurrenciesSet(e) => self.batch_mut(e.market).map(|_| ()),
        }
    }

    fn on_batch(&mut self, log_index: LogIndex, time: TimeNs, event: &BatchEvent) -> Result<(), Inconsistency> {
        match event {
            BatchEvent::TransactionCollected(e) => {
                self.offers.collected(e.account, e.market, e.sequence, e.block);
                self.batch_mut(e.market).map(|_| ())
            }
            BatchEvent::Closed(e) => {
                self.batch_mut(e.market)?.closed(e.block, e.kept, e.dropped);
                Ok(())
            }
            BatchEvent::OfferOpened(e) => self.change_offer(e.market, event),
            BatchEvent::OfferCancelled(e) => self.change_offer(e.market, event),
            BatchEvent::OfferTraded(e) => {
                let stood = self.offers.stood(e.account, e.sequence);
                self.batch_mut(e.market)?.sold((e.sell, e.buy), stood, e.sold);
                self.change_offer(e.market, event)
            }
            BatchEvent::Cleared(e) => {
                self.batch_mut(e.market)?.cleared(BatchBlock {
                    block: e.block,
                    time,
                    log_index,
                    transactions: e.transactions,
                    dropped: 0,
                    offers_traded: e.offers_traded,
                    pairs_traded: e.pairs,
                    gap_ppb: e.gap_ppb,
                    unserved_ppb: e.unserved_ppb,
                    set_aside: e.set_aside,
                    state_root: e.state_root,
                    prices: Vec::new(),
                    sold: Vec::new(),
                });
                Ok(())
            }
            BatchEvent::ClearingRejected(e) => self.batch_mut(e.market).map(|_| ()),
            BatchEvent::TransactionDropped(e) => self.change_offer(e.market, event),
            BatchEvent::PoolTraded(e) => {
                self.batch_mut(e.market)?.sold((e.sell, e.buy), None, e.sold);
                Ok(())
            }
            BatchEvent::PoolCreated(_)
            | BatchEvent::PoolDeposited(_)
            | BatchEvent::PoolWithdrawn(_)
            | BatchEvent::PoolClosed(_)
            | BatchEvent::Paid(_)
            | BatchEvent::AccountFeePaid(_) => Ok(()),
            BatchEvent::Issued(_) | BatchEvent::Burnt(_) => Ok(()),
        }
    }

    /// What an event says of an account's offer or transaction.
    pub(crate) fn offer_change(&self, event: &BatchEvent) -> Option<(AccountId, OfferChange)> {
        let block = |market| self.batch(market).map_or(0, |feed| feed.next_block);
        Some(match event {
            BatchEvent::OfferOpened(e) => {
                let (market, sequence, sell, buy, amount) = (e.market, e.sequence, e.sell, e.buy, e.amount);
                let (stated, limit, tie, block) = (e.stated, e.limit, e.tie, block(e.market));
                (e.account, OfferChange::Opened(StandingOffer { market, sequence, sell, buy, amount, stated, limit, tie, block }))
            }
            BatchEvent::OfferTraded(e) => {
                let (market, sequence, sell, buy) = (e.market, e.sequence, e.sell, e.buy);
                let (sold, bought, time, block) = (e.sold, e.bought, self.time, block(e.market));
                let fill = OfferFill { market, sequence, block, sell, buy, sold, bought, time };
                let stated = self.offers.stood(e.account, e.sequence).filter(|_| !e.left.is_zero());
                let limit = stated.and_then(|(stated, _)| effective_limit(stated, e.left));
                (e.account, OfferChange::Traded { fill, left: e.left, limit })
            }
            BatchEvent::OfferCancelled(e) => {
                (e.account, OfferChange::Cancelled { market: e.market, sequence: e.sequence, sell: e.sell, amount: e.amount })
            }
            BatchEvent::TransactionDropped(e) => {
                (e.account, OfferChange::Dropped { market: e.market, sequence: e.sequence, reason: e.reason })
            }
            BatchEvent::TransactionCollected(_)
            | BatchEvent::Closed(_)
            | BatchEvent::Cleared(_)
            | BatchEvent::ClearingRejected(_) => {
                return None;
            }
            BatchEvent::Paid(_) | BatchEvent::AccountFeePaid(_) | BatchEvent::Issued(_) | BatchEvent::Burnt(_) => return None,
            BatchEvent::PoolCreated(_)
            | BatchEvent::PoolDeposited(_)
            | BatchEvent::PoolWithdrawn(_)
            | BatchEvent::PoolTraded(_)
            | BatchEvent::PoolClosed(_) => return None,
        })
    }

    fn change_offer(&mut self, market: BatchMarketId, event: &BatchEvent) -> Result<(), Inconsistency> {
        let change = self.offer_change(event);
        let more = change.map_or(0, |(account, change)| self.offers.apply(account, &change));
        let feed = self.batch_mut(market)?;
        feed.standing = feed.standing.saturating_add_signed(more);
        Ok(())
    }

    /// A batch market, to change it.
    fn batch_mut(&mut self, market: BatchMarketId) -> Result<&mut BatchFeed, Inconsistency> {
        let log_index = self.log_index();
        let feed = self.batches.get_mut(usize::from(market.0));
        let feed = feed.ok_or(Inconsistency::UnknownBatchMarket { log_index, market })?;
        feed.revision = log_index;
        Ok(feed)
    }

    /// Records a changed price level. The engine reports these for each entry, after its events.
    #[inline]
    pub fn on_changed_level(&mut self, instrument: InstrumentId, side: Side, price: PriceTicks) -> Result<(), Inconsistency> {
        let log_index = self.log_index();
        let feed = self.instrument_mut(instrument).ok_or(Inconsistency::UnknownInstrument { log_index, instrument })?;
        feed.changed.note(side, price);
        Ok(())
    }

    fn create(&mut self, spec: InstrumentSpec) -> Result<(), Inconsistency> {
        if usize::try_from(spec.instrument.0) != Ok(self.instruments.len()) {
            return Err(Inconsistency::UnknownInstrument { log_index: self.log_index(), instrument: spec.instrument });
        }
        self.by_symbol.insert(spec.symbol, spec.instrument);
        let mut feed = InstrumentFeed::new(spec);
        feed.revision = self.log_index();
        self.instruments.push(feed);
        Ok(())
    }

    fn trade(&mut self, e: &Traded) -> Result<(), Inconsistency> {
        let time = self.time;
        // In an uncross nobody came in.
        let taker_side = self.is_incoming(e.taker.order_id).then_some(e.taker_side);
        let feed = self.touch(e.instrument)?;
        feed.tape.push(PublicTrade { trade_id: e.trade_id, time, price: e.price, size: e.size, taker_side });
        feed.candles.trade(time, e.price, e.size, taker_side);
        feed.ticker.trade(time, e.price, e.size);
        self.trade_count += 1;
        let named = |party: &TradeParty| Some((party.order_id, party.account));
        self.latest_shrunk = [named(&e.maker), named(&e.taker)];
        Ok(())
    }

    fn touch(&mut self, instrument: InstrumentId) -> Result<&mut InstrumentFeed, Inconsistency> {
        let log_index = self.log_index();
        let feed = self.instrument_mut(instrument).ok_or(Inconsistency::UnknownInstrument { log_index, instrument })?;
        feed.revision = log_index;
        Ok(feed)
    }

    /// Panics unless every tape is in order. For tests and simulation.
    pub fn check_invariants(&self) {
        for feed in &self.instruments {
            assert!(feed.tape.iter().zip(feed.tape.iter().skip(1)).all(|(a, b)| a.trade_id < b.trade_id), "trades out of order");
            assert_eq!(feed.tape.last().map(|t| t.price), feed.ticker.last, "the tape's last price is the ticker's");
        }
    }
}
