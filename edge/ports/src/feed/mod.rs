//! Fan-out: which connection listens to what, and what each is sent. What changed is made on the engine's thread at a bounded rate;
//! a thread of its own gives it to the connections ([`hold`]), and each publication is encoded once for all of them
//! ([`publication`]). A reader that cannot keep up is dropped, so that none ever slows the market.
//!
//! With fair access what is public is made at entries of the log that all replicas agree on, and waits for its release time
//! ([`hold`]).

mod books;
mod hold;
mod indicative;
mod instruments;
mod orders;
mod outbox;
mod parts;
mod publication;
#[cfg(test)]
mod trial;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::mpsc;
use walras_engine::{DepthLevel, Engine, Uncross};
use walras_fair_access::publications::ReleaseTime;
use walras_market_data::{
    BatchFeed, BookChanges, BookLevel, Candle, InstrumentFeed, Interval, LevelChange, MarketData, PublicTrade,
};
use walras_replica::Derived;
use walras_types::{
    AccountId, AssetId, BatchMarketId, InstrumentId, LogIndex, PriceTicks, Side, SizeLots, TimeNs, TradeId, TradingPhase,
};
use walras_wire::PhaseCause;

use books::KnownBooks;
use hold::{Gate, Lost};
pub use hold::{HoldStatus, HoldView};
pub use indicative::Indicatives;
use indicative::News;
use instruments::InstrumentList;
pub use instruments::{InstrumentsPush, ListedInstrument};
use orders::OrderBooks;
pub use orders::{OrdersPush, ShownOrders, shown_orders};
use outbox::{Item, Outbox};
use parts::{Rest, account_part, account_snapshot};
pub use publication::{Publication, Shared};

use crate::account::{AccountPush, AccountWatch};
use crate::batches::{BatchPush, DemandCurve, batch_push, demand_curve};
use crate::status::{Progress, Status};

/// Trades in a tape's snapshot, candles in a chart's.
const SNAPSHOT_TRADES: usize = 100;
const SNAPSHOT_CANDLES: usize = 500;
const DAY_NS: u64 = 86_400_000_000_000;

/// How far to either side of the last price the demand curves of a feed go, in parts per million.
const DEMAND_SPAN_PPM: u32 = 20_000;

/// A connection, numbered by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

impl ConnectionId {
    /// One that no other connection of this process has.
    #[must_use]
    pub fn fresh() -> Self {
        Self(CONNECTIONS.fetch_add(1, Relaxed))
    }
}

/// What a connection listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subscription {
    /// An instrument's book.
    Book(InstrumentId),
    /// Its trades.
    Trades(InstrumentId),
    /// Its candles.
    Candles(InstrumentId, Interval),
    /// Its best prices and day.
    Ticker(InstrumentId),
    /// An account's orders, fills and balances.
    Account(AccountId),
    /// A batch market's blocks, and how the next one is doing.
    Batch(BatchMarketId),
    /// Supply and demand of a pair of it: what is sold, and what for.
    Demand(BatchMarketId, AssetId, AssetId),
    /// An instrument's book by order.
    Orders(InstrumentId),
    /// The list of instruments.
    Instruments,
}

/// A book, or its levels that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookPush {
    /// Which.
    pub instrument: InstrumentId,
    /// Whether all levels are here.
    pub snapshot: bool,
    /// The entry after which the book looked so.
    pub log_index: LogIndex,
    /// Bids.
    pub bids: Vec<BookLevel>,
    /// Asks.
    pub asks: Vec<BookLevel>,
    /// The best bids after it, [`TOP_LEVELS`] at most, for readers to compare with their own.
    pub best_bids: Vec<BookLevel>,
    /// The best asks likewise.
    pub best_asks: Vec<BookLevel>,
    /// What an uncross would trade now; `None` in continuous trading, or when nothing crosses.
    pub indicative: Option<Uncross>,
}

/// Levels of each side that a book's checksum covers.
pub const TOP_LEVELS: usize = 10;

impl BookPush {
    /// A snapshot: all levels, best first.
    #[must_use]
    pub fn whole(
        instrument: InstrumentId,
        log_index: LogIndex,
        bids: Vec<BookLevel>,
        asks: Vec<BookLevel>,
        indicative: Option<Uncross>,
    ) -> Self {
        let [best_bids, best_asks] = [&bids, &asks].map(|levels| levels.iter().take(TOP_LEVELS).copied().collect());
        Self { instrument, snapshot: true, log_index, bids, asks, best_bids, best_asks, indicative }
    }
}

/// An instrument at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickerPush {
    /// Which.
    pub instrument: InstrumentId,
    /// Price of the last trade.
    pub last: Option<PriceTicks>,
    /// Since the first trade of the UTC day.
    pub change_ppm: i64,
    /// Price of the first trade of the UTC day; `None` before it.
    pub open: Option<PriceTicks>,
    /// Highest price of the UTC day; `None` before its first trade.
    pub high: Option<PriceTicks>,
    /// Lowest.
    pub low: Option<PriceTicks>,
    /// Price of the last trade before the UTC day; `None` where there was none.
    pub previous_close: Option<PriceTicks>,
    /// Best bid.
    pub best_bid: Option<BookLevel>,
    /// Best ask.
    pub best_ask: Option<BookLevel>,
    /// Traded since the UTC day began.
    pub volume: SizeLots,
    /// What that was worth: price in ticks times size in lots, summed.
    pub tick_lots: u128,
    /// Its phase.
    pub phase: TradingPhase,
    /// Why it is in this phase; `None` where that is not known any more.
    pub phase_cause: Option<PhaseCause>,
}

/// One message to a connection.
#[derive(Clone, Debug)]
pub enum Push {
    /// A book or its changes.
    Book(Arc<BookPush>),
    /// Trades: the last ones in a snapshot (newest first), the new ones in an update (oldest first).
    Trades {
        /// Where.
        instrument: InstrumentId,
        /// Whether this is what came before.
        snapshot: bool,
        /// The trades. A new reader may find some here that its snapshot held.
        trades: Arc<[PublicTrade]>,
    },
    /// Candles: the last ones in a snapshot (oldest first), those that changed in an update.
    Candles {
        /// Where.
        instrument: InstrumentId,
        /// Its length.
        interval: Interval,
        /// Whether this is what came before.
        snapshot: bool,
        /// The candles.
        candles: Arc<[Candle]>,
    },
    /// An instrument at a glance.
    Ticker(TickerPush),
    /// An account.
    Account(Arc<AccountPush>),
    /// A batch market.
    Batch(Arc<BatchPush>),
    /// Supply and demand of a pair of a batch market.
    Demand(BatchMarketId, Arc<DemandCurve>),
    /// A book by order.
    Orders(Arc<OrdersPush>),
    /// The list of instruments.
    Instruments(Arc<InstrumentsPush>),
}

/// What an instrument's readers have been sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    revision: LogIndex,
    trade_id: TradeId,
    day: u64,
}

/// When pushes reach connections.
#[derive(Debug)]
enum Out {
    /// As they are made.
    Now,
    /// At their release time.
    Held(Hold),
}

#[derive(Debug)]
struct Hold {
    /// When the state after the last entry may be known.
    known_from: ReleaseTime,
    held: HoldStatus,
}

/// All connections and what they have been sent.
#[derive(Debug)]
pub struct Feed {
    /// What each listens to.
    connections: HashMap<ConnectionId, Vec<Subscription>>,
    /// The thread that gives pushes to connections.
    gate: Gate,
    out: Out,
    sent: Vec<Sent>,
    /// By batch market: its revision and last block that were sent.
    sent_batches: Vec<(LogIndex, u64)>,
    indicatives: Indicatives,
    orders: OrderBooks,
    list: InstrumentList<Shared>,
    accounts: AccountWatch,
    /// Books whose snapshots the thread that gives pushes out makes by itself.
    known_books: KnownBooks,
    /// Snapshots of accounts that are not whole yet: whose, and where each goes on.
    unfinished: HashMap<ConnectionId, (AccountId, Rest)>,
    changes: Vec<LevelChange>,
    status: Status,
}

impl Feed {
    /// One that holds nothing; `held` stays as it is.
    pub fn new(status: Status, held: HoldStatus) -> std::io::Result<Self> {
        Self::over(Out::Now, held, status)
    }

    /// One that holds what is public until its release time: say [`Self::set_known_from`] before anything else.
    ///
    /// # Errors
    /// No thread to give it out.
    pub fn holding(status: Status, held: HoldStatus) -> std::io::Result<Self> {
        let hold = Hold { known_from: ReleaseTime::default(), held: held.clone() };
        Self::over(Out::Held(hold), held, status)
    }

    fn over(out: Out, held: HoldStatus, status: Status) -> std::io::Result<Self> {
        let known_books = KnownBooks::default();
        let gate = Gate::start(held, Outbox::new(status.clone(), known_books.clone()))?;
        let (connections, sent, sent_batches, accounts) = (HashMap::new(), Vec::new(), Vec::new(), AccountWatch::default());
        let (indicatives, orders, list) = (Indicatives::default(), OrderBooks::default(), InstrumentList::default());
        let (unfinished, changes) = (HashMap::new(), Vec::new());
        Ok(Self {
            connections,
            gate,
            out,
            sent,
            sent_batches,
            indicatives,
            orders,
            list,
            accounts,
            known_books,
            unfinished,
            changes,
            status,
        })
    }

    /// Of all instruments.
    pub fn indicatives(&self) -> &Indicatives {
        &self.indicatives
    }

    /// Whether what is public waits for its release time.
    pub fn is_holding(&self) -> bool {
        matches!(self.out, Out::Held(_))
    }

    /// From when on the state after the last entry may be known, where it is held.
    pub fn set_known_from(&mut self, known_from: ReleaseTime) {
        if let Out::Held(hold) = &mut self.out {
            hold.known_from = known_from;
            hold.held.set_known_from(known_from);
        }
    }

    /// What this process begins with has been applied: from here on it publishes.
    pub fn go_live(&mut self, engine: &Engine, market: &MarketData) {
        if let Out::Held(hold) = &self.out {
            // What may be known by now is not late: nobody could ask before.
            let is_held = !hold.held.public_in().is_zero();
            self.prime(market);
            self.give(is_held, Item::Progress(Progress::of(engine, market)));
        }
    }

    /// Publishes the state after an entry at which all replicas do, where it is held.
    pub fn publish(&mut self, engine: &Engine, market: &mut MarketData) {
        self.flush(engine, market);
        self.give(true, Item::Progress(Progress::of(engine, market)));
    }

    /// Gives an item to who it is for; public ones, which show the state after the last entry, when that may be known.
    fn give(&mut self, is_public: bool, item: Item) {
        let given = match &self.out {
            Out::Held(hold) if is_public => self.gate.publish(hold.known_from, item),
            Out::Now | Out::Held(_) => self.gate.pass(item),
        };
        if let Err(Lost) = given {
            self.disconnect_all();
        }
    }

    /// As [`Self::give`], of what is nobody's secret.
    fn pass(&mut self, item: Item) {
        // What is lost ends all feeds, see `Gate`.
        let _ = self.gate.pass(item);
    }

    /// Counts what is there as sent: nobody listens yet.
    pub fn prime(&mut self, market: &MarketData) {
        self.sent.clear();
        self.sent_batches.clear();
        self.indicatives.clear();
        self.list.prime(market);
        let day = market.time().0 / DAY_NS;
        self.sent.extend(market.instruments().iter().map(|feed| Sent {
            revision: feed.revision(),
            trade_id: feed.tape().last().map_or(TradeId(0), |t| t.trade_id),
            day,
        }));
        let last = |feed: &BatchFeed| feed.blocks().next_back().map_or(0, |block| block.block);
        self.sent_batches.extend(market.batches().iter().map(|feed| (feed.revision(), last(feed))));
    }

    /// The state was replaced by a later one: all readers have to connect again, since what changed is not known.
    pub fn start_over(&mut self, engine: &Engine, market: &MarketData) {
        self.disconnect_all();
        self.pass(Item::ForgetBooks);
        self.prime(market);
        let progress = Progress::of(engine, market);
        match &self.out {
            Out::Now => self.status.show(progress),
            Out::Held(_) => self.give(true, Item::Progress(progress)),
        }
    }

    /// The accounts that somebody listens to.
    pub fn accounts(&mut self) -> &mut AccountWatch {
        &mut self.accounts
    }

    /// A connection's queue.
    pub fn connect(&mut self, id: ConnectionId, queue: mpsc::Sender<Shared>) {
        self.connections.insert(id, Vec::new());
        self.pass(Item::Connect { id, queue });
    }

    /// Forgets a connection.
    pub fn disconnect(&mut self, id: ConnectionId) {
        self.forget_connection(id);
        self.pass(Item::Disconnect(id));
    }

    fn disconnect_all(&mut self) {
        for id in self.connections.keys().copied().collect::<Vec<_>>() {
            self.disconnect(id);
        }
    }

    fn forget_connection(&mut self, id: ConnectionId) {
        self.unfinished.remove(&id);
        for subscription in self.connections.remove(&id).into_iter().flatten() {
            self.forget(subscription);
        }
    }

    fn forget(&mut self, subscription: Subscription) {
        match subscription {
            Subscription::Account(account) => {
                // It may hold very many orders.
                if let Some(watched) = self.accounts.remove_reader(account) {
                    self.pass(Item::Discard(Box::new(watched)));
                }
            }
            Subscription::Orders(instrument) => self.orders.remove_reader(instrument),
            Subscription::Book(_) | Subscription::Trades(_) | Subscription::Candles(..) | Subscription::Ticker(_) => {}
            Subscription::Batch(_) | Subscription::Demand(..) | Subscription::Instruments => {}
        }
    }

    /// Ends a feed.
    pub fn unsubscribe(&mut self, id: ConnectionId, subscription: Subscription) {
        let Some(subscriptions) = self.connections.get_mut(&id) else { return };
        if let Some(at) = subscriptions.iter().position(|s| *s == subscription) {
            subscriptions.swap_remove(at);
            self.forget(subscription);
            // Not before its snapshot, which may be held yet.
            self.give(is_public(subscription), Item::Stop { id, subscription });
        }
    }

    /// Starts a feed: a snapshot now, updates from the next flush on. Subscribing twice gives another snapshot. That of an account may
    /// be its first part, see [`Self::go_on`]; that of a book or a list which others read is as they were sent it.
    pub fn subscribe(&mut self, id: ConnectionId, subscription: Subscription, engine: &Engine, derived: &Derived) {
        let Some(subscriptions) = self.connections.get(&id) else { return };
        let is_new = !subscriptions.contains(&subscription);
        if let Subscription::Book(instrument) = subscription
            && self.known_books.has(instrument)
        {
            if is_new && let Some(subscriptions) = self.connections.get_mut(&id) {
                subscriptions.push(subscription);
            }
            return self.give(true, Item::StartBook { id, instrument });
        }
        let snapshot = match subscription {
            Subscription::Account(account) => {
                if is_new {
                    self.accounts.add_reader(account);
                }
                let snapshot = account_snapshot(account, engine, derived);
                Some(Publication::new(self.part_of_account(id, account, snapshot)))
            }
            Subscription::Orders(instrument) => derived.market.instrument(instrument).map(|feed| {
                let push = self.orders.snapshot(engine, feed);
                if is_new {
                    self.orders.add_reader(instrument);
                }
                Publication::new(Push::Orders(Arc::new(push)))
            }),
            Subscription::Instruments => Some(self.list.snapshot(engine, &derived.market, of_list)),
            public => snapshot(public, engine, &derived.market, &mut self.indicatives).map(Publication::new),
        };
        let Some(snapshot) = snapshot else { return };
        if is_new && let Some(subscriptions) = self.connections.get_mut(&id) {
            subscriptions.push(subscription);
        }
        self.give(is_public(subscription), Item::Start { id, subscription, snapshot });
    }

    /// Sends a connection the next part of its account's snapshot, if it was not sent all.
    pub fn go_on(&mut self, id: ConnectionId, engine: &Engine, derived: &Derived) {
        let Some((account, rest)) = self.unfinished.remove(&id) else { return };
        let part = self.part_of_account(id, account, account_part(account, rest, engine, derived));
        self.give(false, Item::More { id, part: Publication::new(part) });
    }

    /// A part of an account's snapshot: its readers hear what happens to these orders from here on.
    fn part_of_account(&mut self, id: ConnectionId, account: AccountId, (part, rest): (AccountPush, Option<Rest>)) -> Push {
        self.accounts.add_orders(account, &part.orders);
        match rest {
            Some(rest) => drop(self.unfinished.insert(id, (account, rest))),
            None => drop(self.unfinished.remove(&id)),
        }
        Push::Account(Arc::new(part))
    }

    fn drop_reader(&mut self, id: ConnectionId) {
        self.status.add_dropped_readers(1);
        self.forget_connection(id);
    }

    /// Sends everybody what changed since the last flush.
    pub fn flush(&mut self, engine: &Engine, market: &mut MarketData) {
        for id in self.gate.dropped().collect::<Vec<_>>() {
            self.drop_reader(id);
        }
        let time = market.time();
        let mut updates: BTreeMap<Subscription, Shared> = BTreeMap::new();
        for index in 0..market.instruments().len() {
            self.flush_instrument(index, engine, market, time, &mut updates);
        }
        if let Some(changed) = self.list.publish(engine, market) {
            updates.insert(Subscription::Instruments, of_list(changed));
        }
        for index in 0..market.batches().len() {
            self.flush_batch(index, engine, market, &mut updates);
        }
        self.orders.publish(engine, market, |push| {
            updates.insert(Subscription::Orders(push.instrument), Publication::new(Push::Orders(Arc::new(push))));
        });
        if !updates.is_empty() {
            self.give(true, Item::Updates(updates));
        }
        if !self.accounts.is_empty() {
            let mut own = BTreeMap::new();
            self.accounts.flush(engine, |account, push| {
                own.insert(Subscription::Account(account), Publication::new(Push::Account(push)));
            });
            if !own.is_empty() {
                self.give(false, Item::Updates(own));
            }
        }
    }

    fn flush_batch(&mut self, index: usize, engine: &Engine, market: &MarketData, updates: &mut BTreeMap<Subscription, Shared>) {
        let feed = &market.batches()[index];
        if self.sent_batches.len() <= index {
            self.sent_batches.push((LogIndex(0), 0));
        }
        let (revision, block) = self.sent_batches[index];
        if feed.revision() == revision {
            return;
        }
        let last = feed.blocks().next_back().map_or(0, |block| block.block);
        self.sent_batches[index] = (feed.revision(), last);
        let batch = feed.market();
        let wanted = |subscription: &Subscription| self.connections.values().any(|wanted| wanted.contains(subscription));
        if wanted(&Subscription::Batch(batch)) {
            let push = batch_push(engine, feed, Some(block)).map(|push| Publication::new(Push::Batch(Arc::new(push))));
            updates.extend(push.map(|push| (Subscription::Batch(batch), push)));
        }
        if last == block {
            return;
        }
        for subscription in self.connections.values().flatten() {
            if let Subscription::Demand(of, sell, buy) = *subscription
                && of == batch
                && !updates.contains_key(subscription)
                && let Some(curve) = demand_curve(engine, market, batch, (sell, buy), DEMAND_SPAN_PPM)
            {
                updates.insert(*subscription, Publication::new(Push::Demand(batch, Arc::new(curve))));
            }
        }
    }

    fn flush_instrument(
        &mut self,
        index: usize,
        engine: &Engine,
        market: &mut MarketData,
        time: TimeNs,
        updates: &mut BTreeMap<Subscription, Shared>,
    ) {
        let instrument = market.instruments()[index].spec().instrument;
        let day = time.0 / DAY_NS;
        if self.sent.len() <= index {
            self.sent.push(Sent { revision: LogIndex(0), trade_id: TradeId(0), day });
        }
        let sent = self.sent[index];
        let feed = &market.instruments()[index];
        let (indicative, news) = self.indicatives.publish(engine, feed);
        if feed.revision() != sent.revision || day != sent.day {
            self.flush_trades(index, engine, market, time, updates);
        } else if news == News::No {
            return;
        }
        self.flush_book(instrument, (indicative, news), engine, market, updates);
    }

    /// Its trades, what follows from them, and its place in the list.
    fn flush_trades(
        &mut self,
        index: usize,
        engine: &Engine,
        market: &MarketData,
        time: TimeNs,
        updates: &mut BTreeMap<Subscription, Shared>,
    ) {
        let (feed, sent) = (&market.instruments()[index], self.sent[index]);
        let (instrument, day) = (feed.spec().instrument, time.0 / DAY_NS);
        let trade_id = feed.tape().last().map_or(TradeId(0), |t| t.trade_id);
        self.sent[index] = Sent { revision: feed.revision(), trade_id, day };
        self.list.look(feed);
        updates.insert(Subscription::Ticker(instrument), Publication::new(Push::Ticker(ticker(feed, engine, time))));
        if trade_id != sent.trade_id {
            let trades: Arc<[PublicTrade]> = feed.tape().since(sent.trade_id).copied().collect();
            let first_s = trades.first().map_or(0, |t| t.time.0 / 1_000_000_000);
            let push = Push::Trades { instrument, snapshot: false, trades };
            updates.insert(Subscription::Trades(instrument), Publication::new(push));
            for interval in Interval::ALL {
                let candles = feed.candles().since(interval, first_s - first_s % interval.seconds()).copied().collect();
                let push = Push::Candles { instrument, interval, snapshot: false, candles };
                updates.insert(Subscription::Candles(instrument, interval), Publication::new(push));
            }
        }
    }

    fn flush_book(
        &mut self,
        instrument: InstrumentId,
        (indicative, news): (Option<Uncross>, News),
        engine: &Engine,
        market: &mut MarketData,
        updates: &mut BTreeMap<Subscription, Shared>,
    ) {
        self.changes.clear();
        let Some(feed) = market.instrument_mut(instrument) else { return };
        let log_index = feed.revision();
        let now = |side, price| engine.level(instrument, side, price).map(book_level);
        let push = match feed.changed_levels().take(now, &mut self.changes) {
            BookChanges::Levels if self.changes.is_empty() && news == News::No => return,
            BookChanges::Levels => {
                let of = |side| self.changes.iter().filter(move |c| c.side == side).map(|c| c.level).collect();
                let (bids, asks) = (of(Side::Buy), of(Side::Sell));
                let [best_bids, best_asks] = [Side::Buy, Side::Sell].map(|side| depth(engine, instrument, side, TOP_LEVELS));
                BookPush { instrument, snapshot: false, log_index, bids, asks, best_bids, best_asks, indicative }
            }
            BookChanges::TooMany => book(feed, engine, indicative),
        };
        updates.insert(Subscription::Book(instrument), Publication::new(Push::Book(Arc::new(push))));
    }
}

/// Whether it shows what everybody may see, though not before its time.
fn is_public(subscription: Subscription) -> bool {
    !matches!(subscription, Subscription::Account(_))
}

fn book_level(level: DepthLevel) -> BookLevel {
    BookLevel { price: level.price, shown: level.shown, order_count: level.order_count }
}

fn book(feed: &InstrumentFeed, engine: &Engine, indicative: Option<Uncross>) -> BookPush {
    let instrument = feed.spec().instrument;
    let [bids, asks] = [Side::Buy, Side::Sell].map(|side| depth(engine, instrument, side, usize::MAX));
    BookPush::whole(instrument, feed.revision(), bids, asks, indicative)
}

fn depth(engine: &Engine, instrument: InstrumentId, side: Side, levels_max: usize) -> Vec<BookLevel> {
    let mut depth = Vec::new();
    engine.depth(instrument, side, levels_max, &mut depth);
    depth.into_iter().map(book_level).collect()
}

fn of_list(list: InstrumentsPush) -> Shared {
    Publication::new(Push::Instruments(Arc::new(list)))
}

/// An instrument at a glance, at `now`.
#[must_use]
pub fn ticker(feed: &InstrumentFeed, engine: &Engine, now: TimeNs) -> TickerPush {
    let (instrument, ticker) = (feed.spec().instrument, feed.ticker());
    let day = ticker.day(now);
    TickerPush {
        instrument,
        last: ticker.last,
        change_ppm: ticker.change_ppm(now),
        open: day.map(|day| day.open),
        high: day.map(|day| day.high),
        low: day.map(|day| day.low),
        previous_close: feed.previous_close(now),
        best_bid: engine.best_level(instrument, Side::Buy).map(book_level),
        best_ask: engine.best_level(instrument, Side::Sell).map(book_level),
        volume: day.map_or(SizeLots::ZERO, |day| day.volume),
        tick_lots: feed.day_tick_lots(now),
        phase: ticker.phase,
        phase_cause: ticker.phase_cause,
    }
}

/// What there is so far of what everybody may see.
fn snapshot(subscription: Subscription, engine: &Engine, market: &MarketData, indicatives: &mut Indicatives) -> Option<Push> {
    Some(match subscription {
        Subscription::Book(i) => Push::Book(Arc::new(book(market.instrument(i)?, engine, indicatives.begin(engine, i)))),
        Subscription::Trades(instrument) => {
            let trades = market.instrument(instrument)?.tape().newest_first(None).take(SNAPSHOT_TRADES).copied().collect();
            Push::Trades { instrument, snapshot: true, trades }
        }
        Subscription::Candles(instrument, interval) => {
            let all = market.instrument(instrument)?.candles().iter(interval);
            let skip = all.len().saturating_sub(SNAPSHOT_CANDLES);
            Push::Candles { instrument, interval, snapshot: true, candles: all.skip(skip).copied().collect() }
        }
        Subscription::Ticker(i) => Push::Ticker(ticker(market.instrument(i)?, engine, market.time())),
        // Those of an account and by order are made where their readers are counted, and the list where it is kept.
        Subscription::Account(_) | Subscription::Orders(_) | Subscription::Instruments => return None,
        Subscription::Batch(batch) => Push::Batch(Arc::new(batch_push(engine, market.batch(batch)?, None)?)),
        Subscription::Demand(batch, sell, buy) => {
            Push::Demand(batch, Arc::new(demand_curve(engine, market, batch, (sell, buy), DEMAND_SPAN_PPM)?))
        }
    })
}

#[cfg(test)]
mod tests {
    use walras_wire::{AccessDelays, Command, VenueCommand};

    use walras_fair_access::publications::Publications;

    use super::*;
    use walras_access::Clock;

    use crate::release_source::ReleaseSource;
    use crate::stages::Stages;
    use walras_wait::until;

    const MS: u64 = 1_000_000;
    const START_NS: u64 = 1_000_000 * MS;

    struct Replica {
        engine: Engine,
        market: MarketData,
        publications: Publications,
        is_live: bool,
        feed: Feed,
        held: HoldStatus,
        status: Status,
    }

    impl Replica {
        /// One that publishes once in 10 ms, and has a state after entries that it has not seen.
        fn begins_from(engine: Engine) -> Self {
            let source = ReleaseSource::new(Clock::new(|| TimeNs(START_NS + 1_000 * MS)), None);
            let (held, status) = (HoldStatus::new(source, Stages::default()), Status::new("test", TimeNs(0)));
            let mut publications = Publications::new(10 * MS, 30 * MS);
            publications.begin_from(engine.time().0, engine.access_delays().release_ns);
            let mut feed = Feed::holding(status.clone(), held.clone()).unwrap();
            feed.set_known_from(publications.known_from());
            Self { engine, market: MarketData::new(), publications, is_live: false, feed, held, status }
        }

        fn apply(&mut self, after_ms: u64, command: Command) -> bool {
            let time = TimeNs(START_NS + after_ms * MS);
            self.engine.apply(self.engine.last_applied().next(), time, &command, &mut Vec::new());
            let publishes = self.publications.on_entry(time.0, self.engine.access_delays().release_ns, None).is_some();
            self.feed.set_known_from(self.publications.known_from());
            if publishes && self.is_live {
                self.feed.publish(&self.engine, &mut self.market);
            }
            publishes && self.is_live
        }

        fn go_live(&mut self) {
            self.is_live = true;
            self.feed.go_live(&self.engine, &self.market);
        }

        /// From when on the state may be known, in milliseconds after the start, as answers wait for it.
        fn known_from_ms(&self) -> u64 {
            1_000 + u64::try_from(self.held.public_in().as_millis()).unwrap()
        }
    }

    #[test]
    fn what_is_replayed_is_published_to_nobody_and_is_not_late() {
        let mut replica = Replica::begins_from(Engine::new());
        assert!((1..20).all(|entry| !replica.apply(10 * entry, Command::Venue(VenueCommand::Tick))));
        replica.go_live();
        until("what is replayed is shown", || replica.status.progress().log_index == replica.engine.last_applied());
        assert_eq!(replica.held.view().publications, 0);
        assert!(replica.apply(1_000, Command::Venue(VenueCommand::Tick)));
        until("the publication is given out", || replica.held.view().publications == 1);
        assert_eq!(replica.held.view().late, 0);
    }

    #[test]
    fn a_delay_that_shrinks_lets_nobody_know_sooner_also_where_a_replica_begins_between() {
        let delay = |release_ns| Command::Venue(VenueCommand::SetAccessDelays(AccessDelays { sequencing_ns: 0, release_ns }));
        let mut all = Replica::begins_from(Engine::new());
        all.go_live();
        all.apply(995, delay(25 * MS));
        assert!(all.apply(1_001, Command::Venue(VenueCommand::Tick)));
        assert_eq!(all.known_from_ms(), 1_026);
        assert!(!all.apply(1_005, delay(MS)));
        let mut bytes = Vec::new();
        all.engine.snapshot(&mut bytes);
        let mut begun = Replica::begins_from(Engine::restore(&bytes).unwrap());
        begun.go_live();
        // The first entry here, and not the first of its interval.
        for replica in [&mut all, &mut begun] {
            assert!(!replica.apply(1_009, Command::Venue(VenueCommand::Tick)));
            assert!(replica.apply(1_011, Command::Venue(VenueCommand::Tick)));
        }
        assert_eq!(all.known_from_ms(), 1_026, "not before what came first");
        assert_eq!(begun.known_from_ms(), 1_035, "as if all before it had waited for the longest");
    }
}
