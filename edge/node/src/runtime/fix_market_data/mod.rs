//! Market data by FIX: a thread of its own with its own sockets, which gives out what is released. At a replica that comes from its feeds:
//! the thread that applies commands makes one feed for all of it, as for one more WebSocket, however many read here. At a gateway it comes
//! in packets of the binary feed.

mod gateway;
mod replica;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use tracing::{info, warn};
use walras_access::Clock;
use walras_access::connections::Doors;
use walras_config::{EntryTlsOptions, FixOptions};
use walras_entry_port::{EntryPort, EntrySockets, EntryTls, PortKind, SharedAccess};
use walras_fix_market_data::{BatchListed, BatchPrice, FromFeedSettings, MarketDataServer, MarketDataSettings, Need};
use walras_fix_orders::Secrecy;
use walras_gateway::session::LogonRequest;
use walras_gateway::{Principal, Refusal};
use walras_ports::{AssetScale, BatchName, Catalog, Doorbell, PRICE_DIGITS, SharedCatalog, VenueHandle, float, significant, whole};
use walras_replica::{Charge, ConnectionEnd, EntryConnections, EntryHost, EntryProtocol, Loss, StreamId};
use walras_sequencer::GatewayTime;
use walras_types::{Amount, AssetId, BatchMarketId};
use walras_wire::order_entry::ByeReason;

use super::entry_ports::entry_tls;
use super::recovery::{RecoveryError, spawn};
use super::replica::Times;
use gateway::FromTree;
use replica::FromReplica;

pub(super) use gateway::{FeedSink, catalog_of};

const DOORBELL: Token = Token(0);
const TOKENS: std::ops::Range<usize> = 1..70_000;
/// How long a round gives out what came, before it serves requests and writes: with many readers each publication takes a while.
const TELL: Duration = Duration::from_millis(1);
/// How often connections that are over or silent are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

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

    /// Starts the thread at a replica. `queue_max` is how many publications may wait in the queue of its feeds.
    pub(super) fn serve(self, venue: VenueHandle, queue_max: usize) -> Result<FixMarketData, RecoveryError> {
        let clock = venue.clock().clone();
        let source = Source::Replica(FromReplica::new(venue, queue_max, self.doorbell.clone()));
        self.start(source, clock)
    }

    /// Starts the thread at a gateway, whose market data comes by the sink. `catalog` is what the venue lists.
    pub(super) fn serve_tree(
        self,
        settings: FromFeedSettings,
        catalog: SharedCatalog,
        clock: Clock,
    ) -> Result<(FixMarketData, FeedSink), RecoveryError> {
        let (source, sink) = FromTree::new(settings, catalog, self.doorbell.clone());
        Ok((self.start(Source::Tree(source), clock)?, sink))
    }

    fn start(self, source: Source, clock: Clock) -> Result<FixMarketData, RecoveryError> {
        let Self { poll, sockets, doorbell, address, comp_id, .. } = self;
        let is_over = Arc::new(AtomicBool::new(false));
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
            times: Times { host: clock, fair: None },
            source,
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

/// Where market data comes from.
enum Source {
    /// The feeds of the replica in this process.
    Replica(FromReplica),
    /// The binary feed, at a gateway.
    Tree(FromTree),
}

impl Source {
    /// Whether something came that was not taken.
    fn has_more(&self) -> bool {
        match self {
            Self::Replica(source) => source.has_more(),
            Self::Tree(source) => source.has_more(),
        }
    }

    /// How long nothing is due here, up to this.
    fn wait(&self, now_ns: u64, most: Duration) -> Duration {
        match self {
            Self::Replica(_) => most,
            Self::Tree(source) => source.wait(now_ns).min(most),
        }
    }

    /// What the venue lists; `None` before that is known.
    fn catalog(&self) -> Option<Arc<Catalog>> {
        match self {
            Self::Replica(source) => Some(source.catalog()),
            Self::Tree(source) => source.catalog(),
        }
    }

    /// Its batch markets; their symbols are in what it lists.
    fn batches(&self, catalog: &Catalog) -> Vec<BatchListed> {
        match self {
            Self::Replica(_) => {
                let batches = (0..).map_while(|market| catalog.batch(BatchMarketId(market)));
                batches.map(|batch| batch_listed(catalog, batch)).collect()
            }
            Self::Tree(source) => source.batches().iter().map(|batch| batch_listed(catalog, batch)).collect(),
        }
    }

    /// Whether its batch markets are others than when this was asked before, although the catalog is the same.
    fn has_new_batches(&mut self) -> bool {
        match self {
            Self::Replica(_) => false,
            Self::Tree(source) => source.has_new_batches(),
        }
    }

    /// Gives the server what came.
    fn hear(&mut self, times: (u64, u64), server: &mut MarketDataServer, catalog: &Catalog) {
        match self {
            Self::Replica(source) => source.hear(server, catalog),
            Self::Tree(source) => source.hear(times, server, catalog),
        }
    }

    /// Something is needed from now on, or no more.
    fn ask(&mut self, now_ns: u64, need: Need, is_wanted: bool) {
        match self {
            Self::Replica(source) => source.ask(need, is_wanted),
            Self::Tree(source) => source.ask(now_ns, need, is_wanted),
        }
    }

    /// All that was asked for was said.
    fn settle(&mut self, server: &mut MarketDataServer, catalog: &Catalog) {
        match self {
            Self::Replica(source) => source.pass_on(),
            Self::Tree(source) => source.settle(server, catalog),
        }
    }

    fn stop(self) {
        match self {
            Self::Replica(source) => source.stop(),
            Self::Tree(_) => {}
        }
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
    source: Source,
    /// What the server knows of.
    catalog: Arc<Catalog>,
    is_over: Arc<AtomicBool>,
    begun: Instant,
    looked: Instant,
}

impl Thread {
    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(1_024);
        while !self.is_over.load(Ordering::Relaxed) {
            let has_more = self.sockets.has_unread() || self.source.has_more();
            let wait = if has_more { Duration::ZERO } else { self.source.wait(self.elapsed_ns(), LOOK_EVERY) };
            if let Err(error) = self.poll.poll(&mut events, Some(wait))
                && error.kind() != std::io::ErrorKind::Interrupted
            {
                warn!("waiting for sockets failed: {error}");
            }
            self.doorbell.heard();
            let (now_ns, day_ns) = (self.elapsed_ns(), self.times.host.now().0);
            self.host.server.at(now_ns, day_ns);
            self.follow_catalog();
            self.source.hear((now_ns, day_ns), &mut self.host.server, &self.catalog);
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
                self.source.ask(now_ns, need, is_wanted);
            }
            self.source.settle(&mut self.host.server, &self.catalog);
            let Self { host, times, sockets, .. } = &mut self;
            sockets.flush(&mut EntryPort { replica: host, times, now_ns });
        }
        self.source.stop();
    }

    fn follow_catalog(&mut self) {
        let Some(catalog) = self.source.catalog() else { return };
        let has_new_batches = self.source.has_new_batches();
        if Arc::ptr_eq(&catalog, &self.catalog) && !has_new_batches {
            return;
        }
        let assets: Vec<_> = catalog.assets().iter().map(|asset| asset.spec).collect();
        let instruments = catalog.instruments().iter().map(|instrument| instrument.spec);
        let listed = walras_fix_orders::Catalog::of(instruments, &assets);
        let batches = self.source.batches(&catalog);
        self.host.server.set_catalog(Arc::new(listed), batches);
        self.catalog = catalog;
    }
}

/// A batch market with the symbols of its assets, up to the first one whose symbol is not known yet.
fn batch_listed(catalog: &Catalog, batch: &BatchName) -> BatchListed {
    let symbol = |asset: &AssetId| catalog.asset(*asset).map(|asset| asset.spec.symbol.to_string());
    let assets = batch.assets.iter().map_while(symbol).collect();
    BatchListed { market: batch.market, name: batch.name.clone(), assets }
}

/// Prices of a block in whole units of the market's first asset, and what was sold of each. `assets` are the market's, by place, with their
/// valuations.
fn prices(catalog: &Catalog, assets: &[(AssetId, Option<walras_types::BatchPrice>, Amount)]) -> Vec<BatchPrice> {
    let scales: Option<Vec<_>> = assets.iter().map(|(asset, ..)| catalog.asset(*asset)).collect();
    let scales = scales.unwrap_or_default();
    let Some((per, unit)) = scales.first().copied().zip(assets.first().and_then(|(_, unit, _)| *unit)) else { return Vec::new() };
    let price = |(scale, (_, valuation, sold)): (&&AssetScale, &(AssetId, Option<walras_types::BatchPrice>, Amount))| {
        let valuation = (*valuation)?;
        Some(BatchPrice {
            asset: scale.spec.symbol.as_str().to_owned(),
            price: significant(whole(float(valuation) / float(unit), scale, per), PRICE_DIGITS),
            volume: scale.amount(*sold),
        })
    };
    scales.iter().zip(assets).filter_map(price).collect()
}
