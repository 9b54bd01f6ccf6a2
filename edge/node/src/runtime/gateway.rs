//! A leaf gateway: the thread that runs one ([`walras_replica::Leaf`]) on the sockets of order entry and the links with the replicas.

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
use walras_access::connections::log_shortage;
use walras_access::{Access, Clock, Rates, Start};
use walras_clock_sync::Source;
use walras_config::{EntryTlsOptions, FairClockOptions, GatewayOptions};
use walras_entry_port::{EntryClock, EntryPort, EntrySockets, PortKind, SharedAccess};
use walras_gateway::session::{ServerSettings, VenueKeys};
use walras_peer_link::{LinkConfig, LinkEvent, Links, Versions};
use walras_ports::Doorbell;
use walras_replica::{Leaf, LeafEffect, LeafSettings};
use walras_sequencer::ForwardSettings;
use walras_strategies::{EntryAddress, Strategies};
use walras_wire::WIRE_VERSION;

use super::entry_ports::{self, EntryPorts};
use super::fair_clock::FairClock;
use super::gather::Gather;
use super::outlet::{MarketDataOutlet, ReleaseClock};
use super::recovery::{RecoveryError, spawn};
use super::replica::{Alarm, KeyShare, Times};
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
    is_over: Arc<AtomicBool>,
    doorbell: Doorbell,
    threads: Vec<JoinHandle<()>>,
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
            stamps,
            clock: stamp_clock,
            doors,
            market_data,
            strategies,
            gather,
        } = options;
        std::fs::create_dir_all(data).map_err(|error| refused(&format!("could not make {}: {error}", data.display())))?;
        let now = clock.now();
        let access = Access::open(data, rates, clock.clone(), Start { started: now, log_time: now }).map_err(|e| refused(&e))?;
        let (access, open): (_, SharedAccess) = (Arc::new(access), Arc::new(OnceLock::new()));
        let poll = Poll::new().map_err(RecoveryError::Thread)?;
        let doorbell = Doorbell::new(poll.registry(), DOORBELL).map_err(RecoveryError::Thread)?;
        let alarm = Alarm::new(poll.registry(), ALARM).map_err(RecoveryError::Thread)?;
        let replicas: Vec<_> = links.peers.keys().copied().collect();
        let versions = Versions::new(WIRE_VERSION, engine_newest().0, env!("CARGO_PKG_VERSION"));
        let mut config = LinkConfig::new(id, cluster_id, links.listen, links.security, versions);
        (config.peers, config.incarnation, config.seed) = (links.peers, now.0, walras_access::random_u64());
        let links = Links::new(poll.registry(), LINK_TOKENS, config, 0).map_err(|e| refused(&e))?;
        let (tokens, inside) = ((poll.registry(), ENTRY_TOKENS), (doors, doorbell.clone()));
        let EntryPorts { sockets, sealing, .. } =
            entry_ports::open(tokens, (Some(&order_entry), None), data, Arc::clone(&open), inside)?;
        let address = sockets.address(PortKind::Binary).unwrap_or(order_entry.listen);
        let release_clock = match (&clock_source, stamp_clock) {
            (Some(source), FairClockOptions::Configured) => ReleaseClock::Venue(source.clone()),
            _ => ReleaseClock::System(clock.clone()),
        };
        let entry = EntryAddress { address: reachable(address), has_tls: order_entry.tls != EntryTlsOptions::Off };
        let (strategies, inboxes) = Strategies::start(&strategies, entry).map_err(|error| refused(&error))?;
        let market_data = market_data.map(|options| MarketDataOutlet::start(&options, release_clock, inboxes)).transpose()?;
        let (news_in, news) = unbounded();
        let is_over = Arc::new(AtomicBool::new(false));
        // Which replica a gateway prefers differs, so that they do not all stand below one.
        let place = usize::try_from(id.get()).unwrap_or(0) % replicas.len().max(1);
        let preferred = [&replicas[place..], &replicas[..place]].concat();
        let thread = GatewayThread {
            leaf: Leaf::new(LeafSettings {
                entry: ServerSettings { sealing, ..ServerSettings::default() },
                entry_keys: Arc::new(VenueKeys::new(&walras_access::random_bytes())),
                forwards: ForwardSettings::default(),
                replicas: preferred,
            }),
            times: Times { host: clock.clone(), fair: stamps.then(|| FairClock::new(stamp_clock, clock_source, clock.clone())) },
            links,
            sockets,
            poll,
            alarm,
            doorbell: doorbell.clone(),
            keys: KeyShare::new(Arc::clone(&open), news_in),
            is_over: Arc::clone(&is_over),
            begun: Instant::now(),
            now_ns: 0,
            looked: Instant::now(),
            link_events: Vec::new(),
            effects: Vec::new(),
            gather: Gather::new(gather),
            answers: 0,
        };
        let threads = vec![spawn("keys", move || learn(&access, &open, &news))?, spawn("gateway", move || thread.run())?];
        Ok(Self { order_entry: address, is_over, doorbell, threads, _market_data: market_data, strategies })
    }

    /// Where it takes orders.
    #[must_use]
    pub fn order_entry_address(&self) -> SocketAddr {
        self.order_entry
    }

    /// Ends the threads.
    pub fn stop(self) {
        self.strategies.stop();
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
    poll: Poll,
    alarm: Alarm,
    doorbell: Doorbell,
    /// What replicas tell of the venue's keys.
    keys: KeyShare,
    is_over: Arc<AtomicBool>,
    begun: Instant,
    /// When this round began.
    now_ns: u64,
    looked: Instant,
    link_events: Vec<LinkEvent>,
    /// Empty.
    effects: Vec<LeafEffect>,
    gather: Gather,
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
            if let Err(error) = self.poll.poll(&mut events, Some(wait))
                && error.kind() != std::io::ErrorKind::Interrupted
            {
                warn!("waiting for sockets failed: {error}");
            }
            self.doorbell.heard();
            self.now_ns = self.elapsed_ns();
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
            self.settle();
            let messages = self.taken() - before;
            self.gather.took(self.now_ns, messages);
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
        let now_ns = self.elapsed_ns();
        let Self { leaf, times, sockets, .. } = self;
        sockets.flush(&mut EntryPort { replica: leaf, times, now_ns });
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            self.sockets.on_timer(self.now_ns, self.leaf.entry_mut());
        }
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
            }
        }
        self.effects = effects;
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
        if !wait.is_zero() && wait < ALARM_BELOW {
            // Without it the poll wakes a millisecond later.
            let _ = self.alarm.set(wait);
        }
        wait
    }
}
