//! Market data by FIX: a thread of its own with its own sockets, which gives out what the replica's feeds release. The thread that applies
//! commands makes one feed for all of it, as for one more WebSocket, however many read here.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use mio::{Events, Poll, Token};
use tokio::sync::mpsc;
use tracing::{info, warn};
use walras_access::connections::Doors;
use walras_config::{EntryTlsOptions, FixOptions};
use walras_entry_port::{EntryPort, EntrySockets, EntryTls, PortKind, SharedAccess};
use walras_fix_market_data::{Auction, BatchPiece, BatchPrice, BookPiece, Day, MarketDataServer, MarketDataSettings, Need, Piece};
use walras_fix_orders::Secrecy;
use walras_gateway::session::LogonRequest;
use walras_gateway::{Principal, Refusal};
use walras_market_data::BatchBlock;
use walras_ports::{
    Catalog, ConnectionId, Doorbell, PRICE_DIGITS, Push, Shared, Subscription, VenueHandle, float, significant, whole,
};
use walras_replica::{Charge, ConnectionEnd, EntryConnections, EntryHost, EntryProtocol, Loss, StreamId};
use walras_sequencer::GatewayTime;
use walras_types::{AssetId, TimeNs};
use walras_wire::order_entry::ByeReason;

use super::entry_ports::entry_tls;
use super::recovery::{RecoveryError, spawn};
use super::replica::Times;

const DOORBELL: Token = Token(0);
const TOKENS: std::ops::Range<usize> = 1..70_000;
/// How often connections that are over or silent are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Publications that wait for the thread: beyond them the feeds' own queue fills, and beyond that they begin again.
const QUEUE_MAX: usize = 1_024;
/// Publications that a round takes.
const ROUND_MAX: usize = 64;
/// Feeds that ended begin again after this time.
const AGAIN: Duration = Duration::from_millis(100);

/// The port, open.
pub(super) struct Port {
    poll: Poll,
    sockets: EntrySockets,
    doorbell: Doorbell,
    tls: Option<EntryTls>,
    address: SocketAddr,
    comp_id: String,
}

impl Port {
    /// Opens it. `shown` is the certificate of the ports of order entry, where they have one.
    pub(super) fn open(
        options: &FixOptions,
        shown: Option<&EntryTls>,
        data: &Path,
        (access, doors): (SharedAccess, Doors),
    ) -> Result<Self, RecoveryError> {
        let listen = options.port.listen;
        let tls = match (&options.port.tls, shown) {
            (EntryTlsOptions::Off, _) => None,
            (_, Some(shown)) => Some(shown.clone()),
            (tls, None) => entry_tls(tls, data, listen).map_err(|e| RecoveryError::Replica(e.to_string()))?,
        };
        let poll = Poll::new().map_err(RecoveryError::Thread)?;
        let doorbell = Doorbell::new(poll.registry(), DOORBELL).map_err(RecoveryError::Thread)?;
        let inside = (doors, doorbell.clone());
        let mut sockets = EntrySockets::new(poll.registry(), TOKENS, access, inside).map_err(RecoveryError::Thread)?;
        sockets.listen(PortKind::FixMarketData, listen, tls.clone()).map_err(|e| {
            let advice = "choose another address for fix.market_data_listen, or \"\" for none";
            RecoveryError::Replica(format!("market data by FIX can not listen on {listen}: {e}; {advice}"))
        })?;
        let address = sockets.address(PortKind::FixMarketData).unwrap_or(listen);
        Ok(Self { poll, sockets, doorbell, tls, address, comp_id: options.comp_id.clone() })
    }

    /// The certificate that it shows.
    pub(super) fn tls(&self) -> Option<EntryTls> {
        self.tls.clone()
    }

    /// Starts the thread. `queue_max` is how many publications may wait in the queue of its feeds.
    pub(super) fn serve(self, venue: VenueHandle, queue_max: usize) -> Result<FixMarketData, RecoveryError> {
        let Self { poll, sockets, doorbell, address, comp_id, .. } = self;
        let is_over = Arc::new(AtomicBool::new(false));
        let (heard_in, heard) = bounded(QUEUE_MAX);
        let times = Times { host: venue.clock().clone(), fair: None };
        let host = Host {
            server: MarketDataServer::new(MarketDataSettings::of(&comp_id)),
            streams: BTreeMap::new(),
            ends: VecDeque::new(),
        };
        let thread = Thread {
            poll,
            sockets,
            doorbell: doorbell.clone(),
            host,
            times,
            feeds: Feeds {
                venue,
                queue_max,
                connection: None,
                again_at: None,
                asks: VecDeque::new(),
                heard_in,
                doorbell: doorbell.clone(),
            },
            heard,
            catalog: Arc::new(Catalog::default()),
            is_over: Arc::clone(&is_over),
            begun: Instant::now(),
            looked: Instant::now(),
        };
        info!("market data by FIX is read at {address}");
        let thread = spawn("fix-market-data", move || thread.run())?;
        Ok(FixMarketData { address, is_over, doorbell, thread })
    }
}

/// The running thread.
#[derive(Debug)]
pub(super) struct FixMarketData {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    doorbell: Doorbell,
    thread: JoinHandle<()>,
}

impl FixMarketData {
    /// Where it listens.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it.
    pub(super) fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.doorbell.ring();
        if self.thread.join().is_err() {
            tracing::error!("the thread of market data by FIX panicked");
        }
    }
}

/// What the feeds said.
enum Heard {
    /// Something was released.
    Released(Shared),
    /// The feeds of this connection have ended.
    Lost(ConnectionId),
}

/// The way to the replica's feeds: one connection for all readers here.
struct Feeds {
    venue: VenueHandle,
    queue_max: usize,
    connection: Option<ConnectionId>,
    /// Without a connection, when to connect again.
    again_at: Option<Instant>,
    /// What to subscribe to (true), or no more.
    asks: VecDeque<(Subscription, bool)>,
    heard_in: Sender<Heard>,
    doorbell: Doorbell,
}

const fn subscription(need: Need) -> Subscription {
    match need {
        Need::Book(instrument) => Subscription::Book(instrument),
        Need::Trades(instrument) => Subscription::Trades(instrument),
        Need::Day(instrument) => Subscription::Ticker(instrument),
        Need::Batch(market) => Subscription::Batch(market),
    }
}

impl Feeds {
    /// Passes on what is asked for, as far as the replica takes it.
    fn ask(&mut self) {
        if self.connection.is_none() && self.again_at.is_none_or(|at| Instant::now() >= at) && !self.connect() {
            self.again_at = Some(Instant::now() + AGAIN);
        }
        let Some(connection) = self.connection else { return };
        while let Some((subscription, is_wanted)) = self.asks.front().copied() {
            let asked = if is_wanted {
                self.venue.subscribe(connection, subscription)
            } else {
                self.venue.unsubscribe(connection, subscription)
            };
            // A full queue: again in the next round.
            if asked.is_err() {
                return;
            }
            self.asks.pop_front();
        }
    }

    fn connect(&mut self) -> bool {
        let connection = ConnectionId::fresh();
        let (queue_in, mut queue) = mpsc::channel::<Shared>(self.queue_max);
        if self.venue.connect(connection, queue_in).is_err() {
            return false;
        }
        let (heard, doorbell) = (self.heard_in.clone(), self.doorbell.clone());
        // Its queue has no bell for a poll.
        let pass_on = move || {
            while let Some(push) = queue.blocking_recv() {
                if heard.send(Heard::Released(push)).is_err() {
                    return;
                }
                doorbell.ring();
            }
            let _ = heard.send(Heard::Lost(connection));
            doorbell.ring();
        };
        let is_begun = spawn("fix-market-feed", pass_on).is_ok();
        if is_begun {
            self.connection = Some(connection);
        } else {
            self.venue.disconnect(connection);
        }
        is_begun
    }
}

/// The server, as sockets see it.
struct Host {
    server: MarketDataServer,
    /// By serial.
    streams: BTreeMap<u64, StreamId>,
    /// Of connections that are gone.
    ends: VecDeque<ConnectionEnd>,
}

impl Host {
    /// Takes over which connections have ended.
    fn note_ends(&mut self) {
        while let Some(end) = self.server.next_end() {
            let loss = if end.reason.is_some() { Loss::Ended } else { Loss::Lost };
            let stream = self.streams.get(&end.connection);
            self.ends.extend(stream.map(|stream| ConnectionEnd {
                stream: *stream,
                account: end.account,
                reason: end.reason,
                loss,
            }));
        }
    }
}

impl EntryConnections for Host {
    fn next_logon(&mut self) -> Option<(StreamId, LogonRequest)> {
        let (serial, logon) = self.server.next_logon()?;
        self.streams.get(&serial).map(|stream| (*stream, logon))
    }

    fn next_end(&mut self) -> Option<ConnectionEnd> {
        self.note_ends();
        self.ends.pop_front()
    }

    fn mark_dirty(&mut self, stream: StreamId) {
        self.server.mark_dirty(stream.serial);
    }

    fn output(&self, stream: StreamId) -> &[u8] {
        self.server.output(stream.serial)
    }

    fn consume(&mut self, stream: StreamId, len: usize) {
        self.server.consume(stream.serial, len);
    }

    fn is_over(&self, stream: StreamId) -> bool {
        self.server.is_over(stream.serial)
    }

    fn remove(&mut self, stream: StreamId) {
        self.note_ends();
        self.server.remove(stream.serial);
        self.streams.remove(&stream.serial);
    }

    fn bye(&mut self, stream: StreamId, reason: ByeReason, text: &str) {
        self.server.bye(stream.serial, reason, text);
    }
}

impl EntryHost for Host {
    type Connections = Self;

    fn stamps(&self) -> bool {
        false
    }

    fn on_connected(&mut self, at: GatewayTime, stream: StreamId, protocol: EntryProtocol) {
        self.server.at(at.now_ns, at.now.0);
        self.streams.insert(stream.serial, stream);
        let secrecy = match protocol {
            EntryProtocol::Fix(secrecy) => secrecy,
            EntryProtocol::Binary => Secrecy::Open,
        };
        self.server.connect(stream.serial, secrecy);
    }

    fn on_bytes(&mut self, at: GatewayTime, stream: StreamId, bytes: &[u8], charge: &mut Charge<'_>) {
        self.server.at(at.now_ns, at.now.0);
        self.server.on_bytes(stream.serial, bytes, charge);
    }

    fn on_authenticated(&mut self, at: GatewayTime, stream: StreamId, verdict: Result<Principal, Refusal>) {
        self.server.at(at.now_ns, at.now.0);
        self.server.authenticated(stream.serial, verdict);
    }

    fn on_disconnected(&mut self, at: GatewayTime, stream: StreamId) {
        self.server.at(at.now_ns, at.now.0);
        self.server.on_disconnected(stream.serial);
        self.note_ends();
        self.streams.remove(&stream.serial);
    }

    fn next_dirty(&mut self, _: GatewayTime) -> Option<StreamId> {
        loop {
            let serial = self.server.next_dirty()?;
            if let Some(stream) = self.streams.get(&serial) {
                return Some(*stream);
            }
        }
    }

    fn entry(&self) -> &Self {
        self
    }

    fn entry_mut(&mut self) -> &mut Self {
        self
    }
}

struct Thread {
    poll: Poll,
    sockets: EntrySockets,
    doorbell: Doorbell,
    host: Host,
    times: Times,
    feeds: Feeds,
    heard: Receiver<Heard>,
    /// What the server knows of.
    catalog: Arc<Catalog>,
    is_over: Arc<AtomicBool>,
    begun: Instant,
    looked: Instant,
}

impl Thread {
    fn run(mut self) {
        let mut events = Events::with_capacity(1_024);
        while !self.is_over.load(Ordering::Relaxed) {
            let has_more = self.sockets.has_unread() || !self.heard.is_empty();
            let wait = if has_more { Duration::ZERO } else { LOOK_EVERY };
            if let Err(error) = self.poll.poll(&mut events, Some(wait))
                && error.kind() != std::io::ErrorKind::Interrupted
            {
                warn!("waiting for sockets failed: {error}");
            }
            self.doorbell.heard();
            let now_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.host.server.at(now_ns, self.times.host.now().0);
            self.follow_catalog();
            for _ in 0..ROUND_MAX {
                let Ok(heard) = self.heard.try_recv() else { break };
                self.hear(&heard);
            }
            let Self { host, times, sockets, .. } = &mut self;
            let port = &mut EntryPort { replica: host, times, now_ns };
            sockets.read_on(port);
            for event in events.iter().filter(|event| TOKENS.contains(&event.token().0)) {
                sockets.on_ready(event, port);
            }
            if self.looked.elapsed() >= LOOK_EVERY {
                self.looked = Instant::now();
                self.host.server.on_timer();
                self.sockets.on_timer(now_ns, &mut self.host);
            }
            while let Some((need, is_wanted)) = self.host.server.next_ask() {
                self.feeds.asks.push_back((subscription(need), is_wanted));
            }
            self.feeds.ask();
            let Self { host, times, sockets, .. } = &mut self;
            sockets.flush(&mut EntryPort { replica: host, times, now_ns });
        }
        if let Some(connection) = self.feeds.connection {
            self.feeds.venue.disconnect(connection);
        }
    }

    fn follow_catalog(&mut self) {
        let catalog = self.feeds.venue.catalog();
        if Arc::ptr_eq(&catalog, &self.catalog) {
            return;
        }
        let assets: Vec<_> = catalog.assets().iter().map(|asset| asset.spec).collect();
        let instruments = catalog.instruments().iter().map(|instrument| instrument.spec);
        let listed = walras_fix_orders::Catalog::of(instruments, &assets);
        let batches = (0..).map_while(|market| catalog.batch(walras_types::BatchMarketId(market)));
        let batches = batches.map(|batch| (batch.market, batch.name.clone())).collect();
        self.host.server.set_catalog(Arc::new(listed), batches);
        self.catalog = catalog;
    }

    fn hear(&mut self, heard: &Heard) {
        let server = &mut self.host.server;
        match heard {
            Heard::Lost(connection) if self.feeds.connection == Some(*connection) => {
                // The state is another one, or this thread was too slow: what comes first is all of it again.
                self.feeds.connection = None;
                self.feeds.again_at = Some(Instant::now() + AGAIN);
                self.feeds.asks = server.on_feeds_lost().into_iter().map(|need| (subscription(need), true)).collect();
            }
            Heard::Lost(_) => {}
            Heard::Released(published) => release(server, &self.catalog, published.push()),
        }
    }
}

/// Gives the server what was released.
fn release(server: &mut MarketDataServer, catalog: &Catalog, push: &Push) {
    match push {
        Push::Book(book) => server.on_piece(&Piece::Book(BookPiece {
            instrument: book.instrument,
            is_snapshot: book.snapshot,
            log_index: book.log_index.0,
            bids: &book.bids,
            asks: &book.asks,
            auction: book.indicative.map(|uncross| Auction {
                price: uncross.price,
                volume: uncross.volume,
                imbalance_lots: uncross.imbalance_lots,
            }),
        })),
        Push::Trades { instrument, snapshot, trades } => {
            server.on_piece(&Piece::Trades { instrument: *instrument, is_snapshot: *snapshot, trades });
        }
        Push::Ticker(ticker) => server.on_piece(&Piece::Day(Day {
            instrument: ticker.instrument,
            phase: ticker.phase,
            last: ticker.last,
            open: ticker.open,
            high: ticker.high,
            low: ticker.low,
            volume: ticker.volume,
        })),
        Push::Batch(batch) => {
            // Of what came before, the last block.
            let before = if batch.snapshot { batch.blocks.len().saturating_sub(1) } else { 0 };
            let last = &batch.blocks[before..];
            if batch.snapshot && last.is_empty() {
                let none = BatchPiece { market: batch.market, block: 0, time: TimeNs(0), prices: &[] };
                server.on_piece(&Piece::Batch(none));
            }
            for block in last {
                let prices = prices(catalog, &batch.assets, block);
                let (block, time) = (block.block, block.time);
                server.on_piece(&Piece::Batch(BatchPiece { market: batch.market, block, time, prices: &prices }));
            }
        }
        Push::Candles { .. } | Push::Account(_) | Push::Demand(..) => {}
    }
}

/// Prices of a block in whole units of the market's first asset, and what was sold of each.
fn prices(catalog: &Catalog, assets: &[AssetId], block: &BatchBlock) -> Vec<BatchPrice> {
    let scales: Option<Vec<_>> = assets.iter().map(|asset| catalog.asset(*asset)).collect();
    let scales = scales.unwrap_or_default();
    let Some((per, unit)) = scales.first().copied().zip(block.prices.first().copied().flatten()) else { return Vec::new() };
    let price = |(place, scale): (usize, &&walras_ports::AssetScale)| {
        let valuation = block.prices.get(place).copied().flatten()?;
        Some(BatchPrice {
            asset: scale.spec.symbol.as_str().to_owned(),
            price: significant(whole(float(valuation) / float(unit), scale, per), PRICE_DIGITS),
            volume: scale.amount(block.sold.get(place).copied().unwrap_or_default()),
        })
    };
    scales.iter().enumerate().filter_map(price).collect()
}
