//! A leaf gateway: the thread that runs one ([`walras_replica::Leaf`]) on the sockets of order entry and the links with the replicas.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use mio::{Events, Poll, Token};
use tracing::{info, warn};
use walras_access::connections::{Doors, log_shortage};
use walras_access::{Access, Clock, Rates, Start};
use walras_clock_sync::Source;
use walras_config::{EntryTlsOptions, FairClockOptions, GatewayOptions};
use walras_entry_port::{EntryClock, EntryPort, EntrySockets, PortKind, SharedAccess};
use walras_fix_market_data::FromFeedSettings;
use walras_fix_orders::FixSettings;
use walras_gateway::session::{ServerSettings, VenueKeys};
use walras_peer_link::{LinkConfig, LinkEvent, Links, Versions};
use walras_ports::{Doorbell, SharedCatalog};
use walras_replica::{Leaf, LeafEffect, LeafSettings, Listing};
use walras_sequencer::ForwardSettings;
use walras_strategies::{EntryAddress, Strategies};
use walras_wire::WIRE_VERSION;

use super::entry_ports::{self, EntryPorts};
use super::fair_clock::FairClock;
use super::fix_market_data::{self, FeedSink, FixMarketData, catalog_of};
use super::gather::Gather;
use super::outlet::{self, MarketDataOutlet, Publications, ReleaseClock};
use super::recovery::{RecoveryError, spawn};
use super::replica::{Alarm, KeyShare, Times};
use crate::places;
use crate::program::engine_newest;

const DOORBELL: Token = Token(0);
const LINK_TOKENS: std::ops::Range<usize> = 1..1_000;
const ENTRY_TOKENS: std::ops::Range<usize> = 1_000..70_000;
/// Only wakes.
const ALARM: Token = Token(ENTRY_TOKENS.end);
/// Longer waits are left to the poll, which counts in milliseconds.
const ALARM_BELOW: Duration = Duration::from_millis(3);
/// How often connections that are over are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A replica sends the keys that it knows in one go.
const NEWS_END: Duration = Duration::from_millis(50);

/// A running gateway.
#[derive(Debug)]
pub struct LeafGateway {
    order_entry: SocketAddr,
    fix: Option<SocketAddr>,
    is_over: Arc<AtomicBool>,
    doorbell: Doorbell,
    threads: Vec<JoinHandle<()>>,
    fix_market_data: Option<FixMarketData>,
    /// Until it is dropped.
    _market_data: Option<MarketDataOutlet>,
    /// Likewise, before the threads end that serve their orders.
    strategies: Strategies,
}

impl LeafGateway {
    /// Starts the threads. `data` is where its copy of the venue's keys is.
    ///
    /// # Errors
    /// An address that cannot be had, or keys that cannot be read.
    pub fn start(
        options: GatewayOptions,
        data: &Path,
        (clock, clock_source): (&Clock, Option<Source>),
        rates: Rates,
    ) -> Result<Self, RecoveryError> {
        let refused = |error: &dyn std::fmt::Display| RecoveryError::Replica(error.to_string());
        let GatewayOptions {
            id,
            cluster_id,
            links,
            order_entry,
            fix,
            fix_market_data,
            publish_every,
            stamps,
            watermark_ns,
            clock: stamp_clock,
            places,
            market_data,
            strategies,
            gather,
            spin_orders,
        } = options;
        std::fs::create_dir_all(data).map_err(|error| refused(&format!("could not make {}: {error}", data.display())))?;
        let now = clock.now();
        let access = Access::open(data, rates, clock.clone(), Start { started: now, log_time: now }).map_err(|e| refused(&e))?;
        let (access, open): (_, SharedAccess) = (Arc::new(access), Arc::new(OnceLock::new()));
        let (doors, poll) = (Doors::new(places), Poll::new().map_err(RecoveryError::Thread)?);
        let doorbell = Doorbell::new(poll.registry(), DOORBELL).map_err(RecoveryError::Thread)?;
        let alarm = Alarm::new(poll.registry(), ALARM).map_err(RecoveryError::Thread)?;
        let replicas: Vec<_> = links.peers.keys().copied().collect();
        let versions = Versions::new(WIRE_VERSION, engine_newest().0, env!("CARGO_PKG_VERSION"));
        let mut config = LinkConfig::new(id, cluster_id, links.listen, links.security, versions);
        (config.peers, config.incarnation, config.seed) = (links.peers, now.0, walras_access::random_u64());
        let links = Links::new(poll.registry(), LINK_TOKENS, config, 0).map_err(|e| refused(&e))?;
        let (tokens, inside) = ((poll.registry(), ENTRY_TOKENS), (doors.clone(), doorbell.clone()));
        let EntryPorts { sockets, sealing, shown } =
            entry_ports::open(tokens, (Some(&order_entry), fix.as_ref()), data, Arc::clone(&open), inside)?;
        let fix_address = sockets.address(PortKind::Fix);
        let address = sockets.address(PortKind::Binary).unwrap_or(order_entry.listen);
        let release_clock = match (&clock_source, stamp_clock) {
            (Some(source), FairClockOptions::Configured) => ReleaseClock::Venue(source.clone()),
            _ => ReleaseClock::System(clock.clone()),
        };
        let entry = EntryAddress { address: reachable(address), has_tls: order_entry.tls != EntryTlsOptions::Off };
        let (strategies, inboxes) = Strategies::start(&strategies, entry).map_err(|error| refused(&error))?;
        let lists = fix.is_some() || fix_market_data.is_some();
        let catalog = SharedCatalog::default();
        let (mut fix_data, mut sink): (_, Option<FeedSink>) = (None, None);
        if let (Some(options), Some(tree)) = (&fix_market_data, &market_data) {
            let port = fix_market_data::Port::open(options, shown.as_ref(), data, (Arc::clone(&open), doors.clone()))?;
            let every_ns = u64::try_from(publish_every.as_nanos()).unwrap_or(u64::MAX);
            let settings = FromFeedSettings { every_ns, trees: outlet::trees(tree)? };
            let (thread, given) = port.serve_tree(settings, catalog.clone(), clock.clone())?;
            (fix_data, sink) = (Some(thread), Some(given));
        }
        let market_data = market_data.map(|options| MarketDataOutlet::start(&options, release_clock, inboxes, sink)).transpose()?;
        let publications = market_data.as_ref().filter(|_| fix_data.is_some()).map(MarketDataOutlet::publications);
        // Now that the links and the ports are open, what is left is the clients'.
        doors.set_places(places::bounded(places, 0));
        let (news_in, news) = unbounded();
        let is_over = Arc::new(AtomicBool::new(false));
        // Which replica a gateway prefers differs, so that they do not all stand below one.
        let place = usize::try_from(id.get()).unwrap_or(0) % replicas.len().max(1);
        let preferred = [&replicas[place..], &replicas[..place]].concat();
        let mut leaf = Leaf::new(LeafSettings {
            entry: ServerSettings { sealing, ..ServerSettings::default() },
            entry_keys: Arc::new(VenueKeys::new(&walras_access::random_bytes())),
            forwards: ForwardSettings { watermark_ns, ..ForwardSettings::default() },
            replicas: preferred,
            lists,
        });
        if let Some(options) = &fix {
            leaf.entry_mut().set_fix(FixSettings::of(&options.comp_id));
        }
        let listing = Arc::clone(leaf.listing());
        let thread = GatewayThread {
            leaf,
            times: Times { host: clock.clone(), fair: stamps.then(|| FairClock::new(stamp_clock, clock_source, clock.clone())) },
            links,
            sockets,
            doors,
            poll,
            alarm,
            doorbell: doorbell.clone(),
            keys: KeyShare::new(Arc::clone(&open), news_in),
            listing,
            catalog,
            publications,
            is_over: Arc::clone(&is_over),
            begun: Instant::now(),
            now_ns: 0,
            looked: Instant::now(),
            link_events: Vec::new(),
            effects: Vec::new(),
            gather: Gather::new(gather),
            spins: spin_orders,
            answers: 0,
        };
        let threads = vec![spawn("keys", move || learn(&access, &open, &news))?, spawn("gateway", move || thread.run())?];
        Ok(Self {
            order_entry: address,
            fix: fix_address,
            is_over,
            doorbell,
            threads,
            _market_data: market_data,
            fix_market_data: fix_data,
            strategies,
        })
    }

    /// Where it takes orders.
    #[must_use]
    pub fn order_entry_address(&self) -> SocketAddr {
        self.order_entry
    }

    /// Where it takes orders by FIX, if it does.
    #[must_use]
    pub fn fix_address(&self) -> Option<SocketAddr> {
        self.fix
    }

    /// Where market data is read by FIX, if it is.
    #[must_use]
    pub fn fix_market_data_address(&self) -> Option<SocketAddr> {
        self.fix_market_data.as_ref().map(FixMarketData::address)
    }

    /// Ends the threads.
    pub fn stop(self) {
        self.strategies.stop();
        if let Some(fix_market_data) = self.fix_market_data {
            fix_market_data.stop();
        }
        self.is_over.store(true, Ordering::Relaxed);
        self.doorbell.ring();
        for thread in self.threads.into_iter().rev() {
            if thread.join().is_err() {
                tracing::error!("a thread of the gateway panicked; what was acknowledged is in the replicas' logs");
            }
        }
    }
}

/// Where the process itself connects to what it listens on.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Learns the venue's keys. Participants are let in once a replica has sent what it knows: before that, keys that the venue knows would
/// be refused as unknown.
fn learn(access: &Arc<Access>, open: &SharedAccess, news: &Receiver<Bytes>) {
    let mut has_heard = false;
    loop {
        let is_waiting = has_heard && open.get().is_none();
        let next = if is_waiting { news.recv_timeout(NEWS_END) } else { news.recv().map_err(RecvTimeoutError::from) };
        match next {
            Ok(bytes) => {
                has_heard = true;
                if let Err(why) = access.take_news(&bytes) {
                    warn!("what a replica sent of API keys was not taken: {why}; compare the versions of the programs");
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                // It is set once.
                let _ = open.set(Arc::clone(access));
                info!("the venue's keys are known: participants are let in");
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

struct GatewayThread {
    leaf: Leaf,
    times: Times,
    links: Links,
    sockets: EntrySockets,
    doors: Doors,
    poll: Poll,
    alarm: Alarm,
    doorbell: Doorbell,
    /// What replicas tell of the venue's keys.
    keys: KeyShare,
    /// What the venue lists, as it was shown to those who give out market data by FIX.
    listing: Arc<Listing>,
    catalog: SharedCatalog,
    /// Where these hear at which entries the venue publishes.
    publications: Option<Publications>,
    is_over: Arc<AtomicBool>,
    begun: Instant,
    /// When this round began.
    now_ns: u64,
    looked: Instant,
    link_events: Vec<LinkEvent>,
    /// Empty.
    effects: Vec<LeafEffect>,
    gather: Gather,
    /// It does not sleep while it waits.
    spins: bool,
    /// Messages that came by the links.
    answers: u64,
}

impl GatewayThread {
    fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        while !self.is_over.load(Ordering::Relaxed) {
            let now_ns = self.elapsed_ns();
            if let Some(pause) = self.gather.pause(now_ns) {
                std::thread::sleep(pause); // pause: more comes meanwhile, which is then passed on together
            }
            let before = self.taken();
            let wait = self.wait();
            let result = self.wait_for(&mut events, wait);
            let has_polled = result.is_ok();
            if let Err(error) = result
                && error.kind() != io::ErrorKind::Interrupted
            {
                warn!("waiting for sockets failed: {error}");
            }
            self.doorbell.heard();
            self.now_ns = self.elapsed_ns();
            let polled = self.times.at(self.now_ns);
            let has_all = has_polled && events.iter().count() < events.capacity();
            for event in events.iter().filter(|event| LINK_TOKENS.contains(&event.token().0)) {
                self.links.on_ready(event, self.now_ns, &mut self.link_events);
            }
            self.on_link_events();
            let Self { leaf, times, sockets, now_ns, .. } = &mut self;
            let port = &mut EntryPort { replica: leaf, times, now_ns: *now_ns };
            sockets.read_on(port);
            for event in events.iter().filter(|event| ENTRY_TOKENS.contains(&event.token().0)) {
                sockets.on_ready(event, port);
            }
            if let Some(until_ns) = has_all.then(|| self.sockets.end_round(polled.time_ns)).flatten() {
                self.leaf.taken_in(polled, until_ns);
            }
            self.settle();
            let messages = self.taken() - before;
            self.gather.took(self.now_ns, messages);
        }
    }

    /// Waits until something comes, as long as it may. A thread that spins asks again and again.
    fn wait_for(&mut self, events: &mut Events, wait: Duration) -> io::Result<()> {
        if !self.spins {
            return self.poll.poll(events, Some(wait));
        }
        let begun = Instant::now();
        loop {
            self.poll.poll(events, Some(Duration::ZERO))?;
            if !events.is_empty() || begun.elapsed() >= wait {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    /// Orders that came from participants, and messages of the replicas.
    fn taken(&self) -> u64 {
        self.leaf.forwarded().orders + self.answers
    }

    /// What follows from what came, and from time.
    fn settle(&mut self) {
        let at = self.times.at(self.now_ns);
        self.leaf.round(at);
        // Orders leave before participants are written to, a system call each: the replica has them meanwhile.
        self.carry_out();
        let now_ns = self.elapsed_ns();
        self.links.flush(now_ns, &mut self.link_events);
        let Self { leaf, times, sockets, .. } = self;
        sockets.flush(&mut EntryPort { replica: leaf, times, now_ns });
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            self.sockets.on_timer(self.now_ns, self.leaf.entry_mut());
            self.doors.say_summaries();
        }
        // What followed from writing.
        self.carry_out();
        if now_ns >= self.links.next_deadline_ns() {
            self.links.on_timer(now_ns, &mut self.link_events);
        }
        self.links.flush(now_ns, &mut self.link_events);
        self.on_link_events();
    }

    fn carry_out(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        self.leaf.take_effects(&mut effects);
        for effect in effects.drain(..) {
            match effect {
                // What cannot be sent is sent again: the link is lost, or nothing comes of it.
                LeafEffect::Send { to, bytes } => drop(self.links.send(to, bytes)),
                LeafEffect::Attached(replica) => info!("orders go to replica {replica}"),
                LeafEffect::Detached(replica) => info!("orders do not go to replica {replica} any more"),
                LeafEffect::Published(mark) => {
                    if let Some(publications) = &self.publications {
                        publications.announce(mark);
                    }
                }
            }
        }
        self.effects = effects;
        if self.publications.is_some() && !Arc::ptr_eq(self.leaf.listing(), &self.listing) {
            self.listing = Arc::clone(self.leaf.listing());
            self.catalog.set(catalog_of(&self.listing));
        }
    }

    fn on_link_events(&mut self) {
        let mut events = std::mem::take(&mut self.link_events);
        self.answers += events.len() as u64;
        for event in events.drain(..) {
            match event {
                LinkEvent::Message { from: _, bytes } if self.keys.take(&bytes) => {}
                LinkEvent::Message { from, bytes } => {
                    let at = self.times.at(self.now_ns);
                    self.leaf.on_message(at, from, &bytes);
                }
                LinkEvent::Connected { id, versions } => {
                    info!("replica {id} is linked, software {}", versions.software);
                    let at = self.times.at(self.now_ns);
                    self.leaf.on_linked(at, id);
                }
                LinkEvent::Lost { id, why } => {
                    warn!("the link to replica {id} is lost: {why}");
                    let at = self.times.at(self.now_ns);
                    self.leaf.on_link_lost(at, id);
                }
                LinkEvent::Refused { remote, why, .. } => {
                    warn!("no link with {}: {why}", remote.map_or_else(|| "a replica".to_owned(), |remote| remote.to_string()));
                }
                LinkEvent::Shortage(news) => log_shortage("links with replicas", news),
                LinkEvent::SnapshotBegin { from, id, .. } => {
                    self.links.answer_snapshot(from, id, Err("a gateway holds no ledger".to_owned()));
                }
                LinkEvent::SnapshotChunk { .. }
                | LinkEvent::SnapshotEnd { .. }
                | LinkEvent::SnapshotBroken { .. }
                | LinkEvent::SnapshotDelivered { .. }
                | LinkEvent::SnapshotFailed { .. } => {}
            }
        }
        self.link_events = events;
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn wait(&mut self) -> Duration {
        if self.sockets.has_unread() || !self.link_events.is_empty() {
            return Duration::ZERO;
        }
        let now_ns = self.elapsed_ns();
        let look_ns = self.sockets.look_at_ns().unwrap_or(u64::MAX);
        let next_ns = self.leaf.deadline_ns().min(self.links.next_deadline_ns()).min(look_ns);
        let wait = Duration::from_nanos(next_ns.saturating_sub(now_ns)).min(LOOK_EVERY);
        if !self.spins && !wait.is_zero() && wait < ALARM_BELOW {
            // Without it the poll wakes a millisecond later.
            let _ = self.alarm.set(wait);
        }
        wait
    }
}
