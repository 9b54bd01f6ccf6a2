//! Market data at a leaf gateway: a thread receives the packets of the venue's tree, another one sends each to the participants when its
//! time has come, and a third one answers those that missed some.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::{info, warn};
use walras_access::Clock;
use walras_clock_sync::Source;
use walras_config::OutletOptions;
use walras_fair_access::release::HoldSettings;
use walras_feed::outlet::{Outlet, OutletSettings};
use walras_feed::sender::Packets;
use walras_relay::packet::TreeKey;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{AskRate, Layout, Leaf, OutletNode, RewindNode};
use walras_strategies::inbox::{self, Inbox};

use super::recovery::{RecoveryError, spawn};

/// How long a socket waits before its thread looks whether the gateway ends.
const WAIT: Duration = Duration::from_millis(100);
/// Before a release the thread does not sleep: a sleep ends up to so much late.
const SPIN: Duration = Duration::from_micros(100);
/// Packets that wait for their time.
const HELD_MAX: usize = 1 << 16;
/// Packets of each channel that are remembered, and channels.
const PACKETS_REMEMBERED: usize = 1 << 12;
const CHANNELS_MAX: usize = 1 << 12;
/// Addresses that may ask.
const SOURCES_MAX: usize = 1 << 12;

/// Which time releases follow.
#[derive(Clone, Debug)]
pub(super) enum ReleaseClock {
    /// The computer's.
    System(Clock),
    /// The venue's, as this machine knows it. While it does not, nothing is released.
    Venue(Source),
}

impl ReleaseClock {
    fn now_ns(&self) -> Option<u64> {
        match self {
            Self::System(clock) => Some(clock.now().0),
            Self::Venue(source) => source.stamp().map(|reading| reading.time_ns),
        }
    }
}

/// What the threads share.
struct Shared {
    outlet: Mutex<Outlet>,
    /// Something came that may be due earlier than all else.
    came: Condvar,
    clock: ReleaseClock,
    is_over: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running threads.
pub(super) struct MarketDataOutlet {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for MarketDataOutlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MarketDataOutlet").finish_non_exhaustive()
    }
}

impl MarketDataOutlet {
    /// Reads both trees' files and starts the threads.
    pub(super) fn start(options: &OutletOptions, clock: ReleaseClock, inboxes: Vec<Inbox>) -> Result<Self, RecoveryError> {
        let refused = |key: &str, error: &dyn std::fmt::Display| RecoveryError::Replica(format!("{key}: {error}"));
        let layouts = Layout::read_all(&options.tree).map_err(|error| refused("gateway.tree", &error))?;
        let layout = &layouts[0];
        let own = options.participants.as_deref().map(Layout::read).transpose();
        let own = own.map_err(|error| refused("gateway.participants", &error))?;
        if own.as_ref().is_some_and(|own| layouts.iter().any(|layout| own.tree_number == layout.tree_number)) {
            let why = "its tree has the number of the venue's: give it another one, and a key of its own";
            return Err(refused("gateway.participants", &why));
        }
        if own.as_ref().is_some_and(|own| own.trees.count() > 1) {
            let why = "participants are the receivers of one tree: leave `parallel` out of its file";
            return Err(refused("gateway.participants", &why));
        }
        // The file's reader has seen that all trees have as many receivers.
        let addresses: Vec<SocketAddr> =
            layouts.iter().filter_map(|layout| layout.layers.last()?.get(options.place as usize).copied()).collect();
        let Some(address) = addresses.first() else {
            let receivers = layout.layers.last().map_or(0, Vec::len);
            let why = format!("{}: the last layer of the tree has {receivers} receivers, numbered from 0", options.place);
            return Err(refused("gateway.place", &why));
        };
        let bind = |key: &str, address, offload| {
            Socket::bind(address, WAIT, offload).map_err(|error| refused(key, &format!("could not use {address}: {error}")))
        };
        let from = addresses.iter().map(|address| bind("gateway.tree", *address, Offload::Segments));
        let from = from.collect::<Result<Vec<_>, _>>()?;
        let to = bind("gateway.source", options.source, Offload::Segments)?;
        // Without participants what is released goes to strategies alone, and nobody checks its seal.
        let alone =
            || (layout.tree_number.wrapping_add(layout.trees.count()), TreeKey::new(walras_access::random_bytes()), Vec::new());
        let (own_tree, key, participants) =
            own.map_or_else(alone, |own| (own.tree_number, own.key, own.layers.into_iter().next().unwrap_or_default()));
        let shared = Arc::new(Shared {
            outlet: Mutex::new(Outlet::new(OutletSettings {
                tree: layout.tree_number,
                trees: layout.trees,
                own_tree,
                key: key.clone(),
                packets_remembered: PACKETS_REMEMBERED,
                channels_max: CHANNELS_MAX,
                hold: HoldSettings { held_max: HELD_MAX, wait_max_ns: options.wait_max_ns },
                rewind_bytes_max: options.kept_bytes,
            })),
            came: Condvar::new(),
            clock,
            is_over: AtomicBool::new(false),
        });
        info!(
            "market data comes to {address}, and goes to {} participants and {} strategies when its time has come",
            participants.len(),
            inboxes.len()
        );
        let node = OutletNode::new(to, &participants);
        let mut threads = Vec::new();
        if let Some(requests) = options.requests {
            let socket = bind("gateway.requests", requests, Offload::None)?;
            let rate = AskRate { per_s: options.requests_per_s, burst: options.requests_per_s, sources_max: SOURCES_MAX };
            let node = RewindNode::new(socket, key, own_tree, rate);
            let shared = Arc::clone(&shared);
            threads.push(spawn("feed-requests", move || answer_requests(node, &shared))?);
        }
        for socket in from {
            let (leaf, receiving) = (Leaf::new(socket, layout.key.clone()), Arc::clone(&shared));
            threads.push(spawn("feed-in", move || receive(leaf, &receiving))?);
        }
        let releasing = Arc::clone(&shared);
        threads.push(spawn("feed-out", move || release(node, inboxes, &releasing))?);
        Ok(Self { shared, threads })
    }
}

impl Drop for MarketDataOutlet {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.came.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Takes packets of the venue's tree, until the gateway ends.
fn receive(mut leaf: Leaf, shared: &Shared) {
    let mut is_refusing = false;
    while !shared.is_over.load(Ordering::Relaxed) {
        // Without the time it is not known how far ahead they are: they wait in the socket, and beyond its room they are lost.
        let Some(now_ns) = shared.clock.now_ns() else {
            std::thread::sleep(Duration::from_millis(1)); // pause: the clock is not good yet
            continue;
        };
        let mut refused = None;
        let received = leaf.receive(|packet| refused = shared.lock().packet(now_ns, packet).err().or(refused));
        shared.came.notify_all();
        if let (Some(why), false) = (refused, is_refusing) {
            warn!("market data is lost: {why}");
        }
        is_refusing = refused.is_some();
        if let Err(error) = received {
            warn!("market data does not come any more: {error}");
            return;
        }
    }
}

/// Sends what is due, until the gateway ends.
fn release(mut node: OutletNode, mut inboxes: Vec<Inbox>, shared: &Shared) {
    let (mut packets, mut is_failing) = (Packets::default(), false);
    while !shared.is_over.load(Ordering::Relaxed) {
        packets.clear();
        let mut outlet = shared.lock();
        let now_ns = shared.clock.now_ns();
        if let Some(now_ns) = now_ns {
            outlet.release(now_ns, &mut packets);
        }
        if packets.count() == 0 {
            let wait_ns = outlet.wake_ns().zip(now_ns).map(|(wake_ns, now_ns)| wake_ns.saturating_sub(now_ns));
            let wait = wait_ns.map_or(WAIT, Duration::from_nanos).min(WAIT);
            match wait.checked_sub(SPIN) {
                Some(sleep) if !sleep.is_zero() => drop(shared.came.wait_timeout(outlet, sleep)),
                Some(_) | None => {
                    drop(outlet);
                    std::hint::spin_loop();
                }
            }
            continue;
        }
        drop(outlet);
        // Those in the process hear of it as the others do: once it may leave.
        inbox::give(&mut inboxes, &packets);
        let sent = node.send(&packets);
        if let (Err(error), false) = (&sent, is_failing) {
            warn!("market data could not be sent to participants: {error}");
        }
        is_failing = sent.is_err();
    }
}

/// Answers participants that missed messages, until the gateway ends.
fn answer_requests(mut node: RewindNode, shared: &Shared) {
    while !shared.is_over.load(Ordering::Relaxed) {
        let now_ns = || shared.clock.now_ns().unwrap_or(0);
        if let Err(error) = node.step(now_ns, |request, answer| shared.lock().answer(request, answer)) {
            warn!("requests for missed market data are not answered any more: {error}");
            return;
        }
    }
}
