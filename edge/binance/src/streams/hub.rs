//! Streams of market data: made once, for all connections that listen. One task reads the venue's feeds, and gives what it makes of them
//! to the connections' queues. One that does not take it in time is dropped, so that none holds up the others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;
use walras_market_data::PublicTrade;
use walras_ports::{ConnectionId, Push, Shared, Subscription};
use walras_types::{InstrumentId, TradeId};

use super::book::Book;
use super::looks::{self, Look, Span, Wanted};
use super::names::{Kind, Pace, Stream};
use crate::app::App;
use crate::klines::KlineInterval;
use crate::report;
use crate::trades::{aggregate, aggregated, is_buyer_maker};
use crate::values::ms;
use crate::windows::Figures;

/// Requests of connections that wait.
const ASKS_MAX: usize = 1_024;

/// What a connection is sent.
#[derive(Clone, Debug)]
pub(crate) enum Out {
    /// Of a stream of market data.
    Market(Stream, Utf8Bytes),
    /// Of an account's stream, by its name on the connection.
    User(Arc<str>, Utf8Bytes),
    /// An account's stream has ended.
    UserEnded(Arc<str>),
}

/// A connection that listens.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) id: ConnectionId,
    pub(crate) queue: mpsc::Sender<Out>,
    /// Notified when its queue was full.
    pub(crate) slow: Arc<Notify>,
}

#[derive(Debug)]
enum Ask {
    Listen(Stream, Listener),
    Stop(Stream, ConnectionId),
    Gone(ConnectionId, Vec<Stream>),
}

/// The way to the task, which begins with the first who asks.
#[derive(Debug, Default)]
pub(crate) struct HubHandle(tokio::sync::OnceCell<mpsc::Sender<Ask>>);

impl HubHandle {
    async fn ask(&self, app: &App, ask: Ask) {
        let begin = || async {
            let (asks_in, asks) = mpsc::channel(ASKS_MAX);
            app.readers.spawn(Hub::new(app.clone()).run(asks));
            asks_in
        };
        // It ends with the process only.
        let _ = self.0.get_or_init(begin).await.send(ask).await;
    }

    pub(crate) async fn listen(&self, app: &App, stream: Stream, listener: Listener) {
        self.ask(app, Ask::Listen(stream, listener)).await;
    }

    pub(crate) async fn stop(&self, app: &App, stream: Stream, id: ConnectionId) {
        self.ask(app, Ask::Stop(stream, id)).await;
    }

    pub(crate) async fn gone(&self, app: &App, id: ConnectionId, streams: Vec<Stream>) {
        if !streams.is_empty() {
            self.ask(app, Ask::Gone(id, streams)).await;
        }
    }
}

#[derive(Debug, Default)]
struct Market {
    book: Book,
    /// The best levels that were sent last.
    best: Option<BestLevels>,
    last_trade: Option<TradeId>,
}

type BestLevels = [Option<(walras_types::PriceTicks, walras_types::SizeLots)>; 2];

struct Hub {
    app: App,
    connection: ConnectionId,
    listeners: HashMap<Stream, Vec<Listener>>,
    /// What the venue sends, and for how many streams.
    feeds: BTreeMap<Subscription, usize>,
    /// Those of them that the venue was too busy to begin.
    missing: BTreeSet<Subscription>,
    markets: HashMap<InstrumentId, Market>,
    /// The candle that was sent last of each stream, by its start.
    candles: HashMap<(InstrumentId, KlineInterval), u64>,
    looks: FuturesUnordered<BoxFuture<'static, Option<Vec<Look>>>>,
    /// Of each instrument the last trade at which its windows were sent to those who listen to all.
    shown: HashMap<(InstrumentId, Span), TradeId>,
}

fn feed(stream: Stream) -> Option<Subscription> {
    match stream {
        Stream::One(instrument, Kind::Trade | Kind::AggTrade) => Some(Subscription::Trades(instrument)),
        Stream::One(instrument, Kind::BookTicker | Kind::Diff(_) | Kind::Partial(..)) => Some(Subscription::Book(instrument)),
        Stream::One(_, Kind::Kline(_) | Kind::MiniTicker | Kind::Ticker | Kind::Window(_) | Kind::AvgPrice) => None,
        Stream::AllMiniTickers | Stream::AllTickers | Stream::AllWindows(_) => None,
    }
}

impl Hub {
    fn new(app: App) -> Self {
        Self {
            app,
            connection: ConnectionId::fresh(),
            listeners: HashMap::new(),
            feeds: BTreeMap::new(),
            missing: BTreeSet::new(),
            markets: HashMap::new(),
            candles: HashMap::new(),
            looks: FuturesUnordered::new(),
            shown: HashMap::new(),
        }
    }

    fn connect(&mut self) -> mpsc::Receiver<Shared> {
        self.connection = ConnectionId::fresh();
        let (queue_in, queue) = mpsc::channel(self.app.config.websocket.queue_messages);
        self.missing = self.feeds.keys().copied().collect();
        match self.app.venue.connect(self.connection, queue_in) {
            Ok(()) => self.begin_missing(),
            // The queue ends, and this is tried again.
            Err(reason) => warn!("streams of the Binance dialect stand still until the venue takes readers: {reason}"),
        }
        queue
    }

    /// Begins feeds at the venue, as far as it takes them. The others begin later: nobody who listens would ask again.
    fn begin_missing(&mut self) {
        while let Some(&feed) = self.missing.first() {
            if self.app.venue.subscribe(self.connection, feed).is_err() {
                return;
            }
            self.missing.remove(&feed);
        }
    }

    async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        let mut queue = self.connect();
        let mut stopping = self.app.stopping.clone();
        let mut fast = interval(Duration::from_millis(100));
        let mut slow = interval(Duration::from_secs(1));
        for due in [&mut fast, &mut slow] {
            due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(ask) => self.on_ask(ask),
                    None => break,
                },
                push = queue.recv() => match push {
                    Some(push) => self.on_push(push.push()),
                    None => {
                        // Too slow, or the state is another: what comes first is a snapshot again. (pause: the venue may be starting)
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        queue = self.connect();
                    }
                },
                _ = fast.tick() => {
                    self.begin_missing();
                    self.on_pace(Pace::Fast);
                }
                _ = slow.tick() => {
                    self.on_pace(Pace::Slow);
                    self.look();
                }
                Some(looks) = self.looks.next(), if !self.looks.is_empty() => self.on_looks(looks),
                () = walras_http_port::stopped(&mut stopping) => break,
            }
        }
        let (venue, connection) = (self.app.venue.clone(), self.connection);
        tokio::task::spawn_blocking(move || venue.disconnect(connection));
    }

    fn on_ask(&mut self, ask: Ask) {
        match ask {
            Ask::Listen(stream, listener) => {
                let listeners = self.listeners.entry(stream).or_default();
                let is_first = listeners.is_empty();
                listeners.retain(|known| known.id != listener.id);
                listeners.push(listener);
                if is_first {
                    self.begin(stream);
                }
            }
            Ask::Stop(stream, id) => self.remove(stream, id),
            Ask::Gone(id, streams) => streams.into_iter().for_each(|stream| self.remove(stream, id)),
        }
    }

    fn begin(&mut self, stream: Stream) {
        if let Stream::One(instrument, kind) = stream {
            let market = self.markets.entry(instrument).or_default();
            match kind {
                Kind::Diff(pace) => market.book.collect(pace, true),
                Kind::Partial(_, pace) => market.book.show_again(pace),
                _ => {}
            }
        }
        let Some(feed) = feed(stream) else { return };
        let count = self.feeds.entry(feed).or_default();
        *count += 1;
        if *count == 1 && self.app.venue.subscribe(self.connection, feed).is_err() {
            self.missing.insert(feed);
            warn!("a stream of the Binance dialect begins when the venue takes readers");
        }
    }

    fn remove(&mut self, stream: Stream, id: ConnectionId) {
        let Some(listeners) = self.listeners.get_mut(&stream) else { return };
        listeners.retain(|known| known.id != id);
        if listeners.is_empty() {
            self.end(stream);
        }
    }

    fn end(&mut self, stream: Stream) {
        self.listeners.remove(&stream);
        if let Stream::One(instrument, kind) = stream {
            match kind {
                Kind::Kline(interval) => drop(self.candles.remove(&(instrument, interval))),
                Kind::Diff(pace) => {
                    if let Some(market) = self.markets.get_mut(&instrument) {
                        market.book.collect(pace, false);
                    }
                }
                _ => {}
            }
        }
        if let Some(feed) = feed(stream)
            && let Some(count) = self.feeds.get_mut(&feed)
        {
            *count -= 1;
            if *count == 0 {
                self.feeds.remove(&feed);
                self.missing.remove(&feed);
                let _ = self.app.venue.unsubscribe(self.connection, feed);
                match feed {
                    // Begins with a snapshot again.
                    Subscription::Book(instrument) => {
                        let market = self.markets.entry(instrument).or_default();
                        (market.book, market.best) = (Book::default(), None);
                    }
                    Subscription::Trades(instrument) => self.markets.entry(instrument).or_default().last_trade = None,
                    _ => {}
                }
            }
        }
    }

    fn is_wanted(&self, stream: Stream) -> bool {
        self.listeners.contains_key(&stream)
    }

    /// Gives a message to all who listen to a stream.
    fn send(&mut self, stream: Stream, message: &Value) {
        let Some(listeners) = self.listeners.get_mut(&stream) else { return };
        let text = Utf8Bytes::from(message.to_string());
        let status = self.app.venue.status();
        status.add_feed_encoded(1);
        status.add_feed_messages(listeners.len() as u64);
        listeners.retain(|listener| match listener.queue.try_send(Out::Market(stream, text.clone())) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                listener.slow.notify_one();
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        });
        if listeners.is_empty() {
            self.end(stream);
        }
    }

    fn on_push(&mut self, push: &Push) {
        match push {
            Push::Book(book) => {
                let market = self.markets.entry(book.instrument).or_default();
                market.book.take(book);
                self.book_ticker(book.instrument);
            }
            Push::Trades { instrument, snapshot, trades } => self.on_trades(*instrument, *snapshot, trades),
            Push::Candles { .. } | Push::Ticker(_) | Push::Account(_) | Push::Orders(_) => {}
            Push::Batch(_) | Push::Demand(..) | Push::Instruments(_) => {}
        }
    }

    fn book_ticker(&mut self, instrument: InstrumentId) {
        let Some(market) = self.markets.get_mut(&instrument) else { return };
        let best = market.book.best();
        if market.best == Some(best) {
            return;
        }
        market.best = Some(best);
        let (update, names) = (market.book.update().unwrap_or_default(), self.app.names());
        let (Some(symbol), Some(scale)) = (names.name(instrument), names.catalog().instrument(instrument)) else { return };
        let [bid, ask] = best.map(|level| match level {
            Some((price, size)) => (scale.price(price), scale.size(size)),
            None => (report::no_price(scale), report::size(scale, walras_types::SizeLots::ZERO)),
        });
        let message = json!({"u": update, "s": symbol, "b": bid.0, "B": bid.1, "a": ask.0, "A": ask.1});
        self.send(Stream::One(instrument, Kind::BookTicker), &message);
    }

    fn on_trades(&mut self, instrument: InstrumentId, is_snapshot: bool, trades: &[PublicTrade]) {
        let market = self.markets.entry(instrument).or_default();
        let newest = trades.iter().map(|trade| trade.trade_id).max();
        let after = match (market.last_trade, is_snapshot) {
            // Who begins to listen hears of what comes.
            (None, true) => newest.unwrap_or_default(),
            (last, _) => last.unwrap_or_default(),
        };
        market.last_trade = Some(newest.unwrap_or(after).max(after));
        let mut fresh: Vec<PublicTrade> = trades.iter().filter(|trade| trade.trade_id > after).copied().collect();
        fresh.sort_unstable_by_key(|trade| trade.trade_id);
        if fresh.is_empty() {
            return;
        }
        let (names, now_ms) = (self.app.names(), self.app.now_ms());
        let (Some(symbol), Some(scale)) = (names.name(instrument), names.catalog().instrument(instrument)) else { return };
        if self.is_wanted(Stream::One(instrument, Kind::Trade)) {
            for trade in &fresh {
                let message = json!({
                    "e": "trade", "E": now_ms, "s": symbol, "t": trade.trade_id.0, "p": scale.price(trade.price),
                    "q": scale.size(trade.size), "T": ms(trade.time), "m": is_buyer_maker(trade.taker_side), "M": true,
                });
                self.send(Stream::One(instrument, Kind::Trade), &message);
            }
        }
        if self.is_wanted(Stream::One(instrument, Kind::AggTrade)) {
            for trade in aggregate(fresh.iter(), fresh.len()) {
                let mut message = json!({"e": "aggTrade", "E": now_ms, "s": symbol});
                crate::values::merge(&mut message, aggregated(scale, &trade));
                self.send(Stream::One(instrument, Kind::AggTrade), &message);
            }
        }
    }

    /// Sends what changed of books, in one of two paces.
    fn on_pace(&mut self, pace: Pace) {
        let (names, now_ms) = (self.app.names(), self.app.now_ms());
        let mut messages = Vec::new();
        for (&instrument, market) in &mut self.markets {
            let (Some(symbol), Some(scale)) = (names.name(instrument), names.catalog().instrument(instrument)) else { continue };
            if let Some(diff) = market.book.diff(pace, (symbol, scale), now_ms) {
                messages.push((Stream::One(instrument, Kind::Diff(pace)), diff));
            }
            let wanted = [5, 10, 20].map(|count| Stream::One(instrument, Kind::Partial(count, pace)));
            if wanted.iter().any(|stream| self.listeners.contains_key(stream)) && market.book.is_new(pace) {
                for (count, stream) in [5, 10, 20].into_iter().zip(wanted) {
                    if self.listeners.contains_key(&stream) {
                        messages.push((stream, market.book.top(count, scale)));
                    }
                }
            }
        }
        for (stream, message) in messages {
            self.send(stream, &message);
        }
    }

    /// Looks at what is sent each second. What is seen may be known when market data may.
    fn look(&mut self) {
        if !self.looks.is_empty() {
            return;
        }
        let sent = |instrument: InstrumentId, interval: KlineInterval| self.candles.get(&(instrument, interval)).copied();
        let wanted = Wanted::by(self.listeners.keys(), sent);
        if !wanted.is_empty() {
            self.looks.push(Box::pin(wanted.look(self.app.clone(), self.app.now_ms())));
        }
    }

    fn on_looks(&mut self, seen: Option<Vec<Look>>) {
        let (names, now_ms) = (self.app.names(), self.app.now_ms());
        let mut of_all: BTreeMap<Stream, Vec<Value>> = BTreeMap::new();
        for Look { instrument, klines, windows, average } in seen.into_iter().flatten() {
            let (Some(symbol), Some(scale)) = (names.name(instrument), names.catalog().instrument(instrument)) else { continue };
            for due in klines {
                self.candles.insert((instrument, due.interval), due.kline.start_s);
                let message = looks::kline(symbol, scale, now_ms, &due);
                self.send(Stream::One(instrument, Kind::Kline(due.interval)), &message);
            }
            for (span, seen) in windows {
                let figures = Figures::of(scale, &seen);
                let last = seen.last.map(|last| last.trade_id);
                let is_news = last.is_some() && self.shown.get(&(instrument, span)).copied() != last;
                self.shown.extend(last.map(|last| ((instrument, span), last)));
                let full = looks::ticker(symbol, scale, (span, &seen), &figures, now_ms);
                let messages = match span {
                    Span::LastDay => {
                        let mini = looks::mini_ticker(symbol, &figures, now_ms);
                        vec![(Kind::MiniTicker, Stream::AllMiniTickers, mini), (Kind::Ticker, Stream::AllTickers, full)]
                    }
                    Span::Rolling(streamed) => vec![(Kind::Window(streamed), Stream::AllWindows(streamed), full)],
                };
                for (kind, all, message) in messages {
                    self.send(Stream::One(instrument, kind), &message);
                    if is_news {
                        of_all.entry(all).or_default().push(message);
                    }
                }
            }
            if let Some(recent) = average {
                let message = looks::average_price(symbol, scale, &recent, now_ms);
                self.send(Stream::One(instrument, Kind::AvgPrice), &message);
            }
        }
        for (stream, messages) in of_all {
            self.send(stream, &messages.into());
        }
    }
}
