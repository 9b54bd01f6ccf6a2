//! Market data at a leaf gateway: a thread receives the packets of the venue's tree, another one sends each to the participants when its
//! time has come, and a third one answers those that missed some. What the gateway itself misses the second thread asks the replicas for,
//! and a fourth one takes their answers. What is read in the process, by strategies and by FIX, is released with it. Where the operator
//! has a core to spare, one thread that never sleeps receives and releases.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::{info, warn};
use walras_access::Clock;
use walras_clock_sync::Source;
use walras_config::OutletOptions;
use walras_fair_access::release::HoldSettings;
use walras_feed::channel::{CHANNELS_MAX, Trees};
use walras_feed::outlet::{Outlet, OutletSettings};
use walras_feed::recall::RecallSettings;
use walras_feed::sender::Packets;
use walras_relay::packet::TreeKey;
use walras_relay::reader::Request;
use walras_relay::relay::Arrival;
use walras_relay::rewinder::Answer;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{AskRate, Layout, Leaf, OutletNode, RecallNode, RewindNode, STALE_REQUESTS};
use walras_replica::PublicationMark;
use walras_strategies::inbox::{self, Inbox};

use super::fix_market_data::FeedSink;
use super::recovery::{RecoveryError, spawn};

/// How long a socket waits before its thread looks whether the gateway ends.
const WAIT: Duration = Duration::from_millis(100);
/// Before a release the thread does not sleep: a sleep ends up to so much late.
const SPIN: Duration = Duration::from_micros(100);
/// Packets that wait for their time.
const HELD_MAX: usize = 1 << 16;
/// Packets of each channel that are remembered, in 512 bytes.
const PACKETS_REMEMBERED: usize = 1 << 12;
/// Addresses that may ask.
const SOURCES_MAX: usize = 1 << 12;
/// Copies of packets that leave between two looks for requests and answers of replicas, some milliseconds; but at least so many packets,
/// since the kernel takes several to one participant at once.
const COPIES_AT_ONCE: usize = 1 << 9;
const PACKETS_AT_ONCE_MIN: usize = 16;
/// Publications that wait for their time: a venue has twenty in a second.
const MARKS_MAX: usize = 1 << 12;

/// How the replicas are asked: a gap that lasts so long is no other order of arrival.
const RECALL_WAIT_NS: u64 = 2_000_000;
const RECALL_RETRY_NS: u64 = 10_000_000;
/// Requests for the same messages until participants hear that they are gone.
const RECALL_TRIES: usize = 4;
/// Gaps at a time, and messages of one.
const RECALL_RUNS_MAX: usize = 1 << 10;
const RECALL_MESSAGES_MAX: u16 = 1 << 12;
/// Bytes of messages that came back.
const RECALL_BYTES_MAX: usize = 4 << 20;

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
    /// Publications whose time has not come, in the order in which they were announced.
    marks: Mutex<VecDeque<PublicationMark>>,
    /// Something came that may be due earlier than all else: for a thread that sleeps, and for one that counts the last microseconds.
    came: Condvar,
    has_come: AtomicBool,
    clock: ReleaseClock,
    is_over: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marks(&self) -> MutexGuard<'_, VecDeque<PublicationMark>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something came that may be due earlier than all else.
    fn say_came(&self) {
        self.has_come.store(true, Ordering::Release);
        self.came.notify_all();
    }

    /// Waits without a sleep and without the outlet, which others may need: until a time, or until something came.
    fn spin_until(&self, wake_ns: u64) {
        let is_early = || self.clock.now_ns().is_some_and(|now_ns| now_ns < wake_ns);
        while !self.has_come.load(Ordering::Acquire) && is_early() {
            std::hint::spin_loop();
        }
    }

    /// Publications whose time has come, in order.
    fn due_marks(&self, now_ns: u64) -> Vec<PublicationMark> {
        let mut marks = self.marks();
        let due = marks.iter().take_while(|mark| mark.release_ns <= now_ns).count();
        marks.drain(..due).collect()
    }

    /// When the next one is due.
    fn next_mark_ns(&self) -> Option<u64> {
        self.marks().front().map(|mark| mark.release_ns)
    }
}

/// Where it is said at which entries the venue publishes.
#[derive(Clone)]
pub(super) struct Publications(Arc<Shared>);

impl Publications {
    /// All replicas publish at this entry.
    pub(super) fn announce(&self, mark: PublicationMark) {
        // A thread that waits looks at them with the outlet in hand.
        let outlet = self.0.lock();
        let mut marks = self.0.marks();
        if marks.len() < MARKS_MAX {
            marks.push_back(mark);
        }
        drop((marks, outlet));
        self.0.say_came();
    }
}

/// How many parallel trees the venue has.
pub(super) fn trees(options: &OutletOptions) -> Result<Trees, RecoveryError> {
    let layouts = Layout::read_all(&options.tree).map_err(|error| RecoveryError::Replica(format!("gateway.tree: {error}")))?;
    Ok(layouts[0].trees)
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
    pub(super) fn start(
        options: &OutletOptions,
        clock: ReleaseClock,
        inboxes: Vec<Inbox>,
        fix: Option<FeedSink>,
    ) -> Result<Self, RecoveryError> {
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
        if let Some(far) = participants.iter().find(|participant| !to.reaches(**participant)) {
            let why = format!("{} does not reach {far}: give participants addresses of its kind, or name `[::]:0`", options.source);
            return Err(refused("gateway.source", &why));
        }
        let shared = Arc::new(Shared {
            outlet: Mutex::new(Outlet::new(OutletSettings {
                tree: layout.tree_number,
                trees: layout.trees,
                own_tree,
                key: key.clone(),
                packets_remembered: PACKETS_REMEMBERED,
                channels_max: CHANNELS_MAX,
                hold: HoldSettings { held_max: HELD_MAX, wait_max_ns: options.wait_max_ns },
                packet_bytes: options.packet_bytes,
                rewind_bytes_max: options.kept_bytes,
                rewind_total_bytes_max: options.kept_total_bytes,
                recall: recall(options),
            })),
            marks: Mutex::new(VecDeque::new()),
            came: Condvar::new(),
            has_come: AtomicBool::new(false),
            clock,
            is_over: AtomicBool::new(false),
        });
        info!(
            "market data comes to {address}, and goes to {} participants{} and {} strategies when its time has come",
            participants.len(),
            if fix.is_some() { ", readers by FIX" } else { "" },
            inboxes.len()
        );
        let node = OutletNode::new(to, &participants);
        let packets_at_once = (COPIES_AT_ONCE / participants.len().max(1)).max(PACKETS_AT_ONCE_MIN);
        let mut threads = Vec::new();
        if let Some(requests) = options.requests {
            let socket = bind("gateway.requests", requests, Offload::None)?;
            let rate = AskRate { per_s: options.requests_per_s, burst: options.requests_per_s, sources_max: SOURCES_MAX };
            let node = RewindNode::new(socket, key, own_tree, rate);
            let shared = Arc::clone(&shared);
            threads.push(spawn("feed-requests", move || answer_requests(node, &shared))?);
        }
        let recalls = (!options.venue_requests.is_empty()).then(|| {
            // A socket of IPv6 reaches addresses of IPv4 too.
            let is_v4 = options.venue_requests.iter().all(SocketAddr::is_ipv4);
            let any: IpAddr = if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let socket = bind("gateway.venue_requests", SocketAddr::new(any, 0), Offload::None)?;
            let (replicas, key) = (options.venue_requests.clone(), layout.key.clone());
            Ok::<_, RecoveryError>(Arc::new(RecallNode::new(socket, key, layout.tree_number, replicas)))
        });
        let recalls = recalls.transpose()?;
        if let Some(node) = recalls.clone() {
            let shared = Arc::clone(&shared);
            threads.push(spawn("feed-recalls", move || take_answers(&node, &shared))?);
        }
        let incoming = from.into_iter().zip(&layouts).map(|(socket, layout)| {
            // A thread that never sleeps asks each socket once, and then the next one.
            let socket = if options.spin { socket.spinning(Duration::ZERO) } else { socket };
            let leaf = Leaf::new(socket, layout.key.clone()).reporting(layout, options.place);
            Incoming { leaf, says_recalls: layout.index == 0, is_refusing: false, has_no_room: false }
        });
        let incoming: Vec<Incoming> = incoming.collect();
        let (packets, requests) = (Packets::default(), Vec::new());
        let leaving = Leaving { node, packets_at_once, inboxes, fix, recalls, packets, requests, is_failing: false };
        let theirs = Arc::clone(&shared);
        if options.spin {
            threads.push(spawn("feed", move || spin(incoming, leaving, &theirs))?);
        } else {
            for of_tree in incoming {
                let receiving = Arc::clone(&shared);
                threads.push(spawn("feed-in", move || receive(of_tree, &receiving))?);
            }
            threads.push(spawn("feed-out", move || release(leaving, &theirs))?);
        }
        Ok(Self { shared, threads })
    }

    /// Where it is to be said at which entries the venue publishes.
    pub(super) fn publications(&self) -> Publications {
        Publications(Arc::clone(&self.shared))
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

/// Where packets of one of the venue's trees come.
struct Incoming {
    leaf: Leaf,
    /// The receiver of the first tree says what was asked of the replicas, for all trees.
    says_recalls: bool,
    /// The last packets that came were refused, which was logged.
    is_refusing: bool,
    /// Some were of more channels than a venue has, which was logged.
    has_no_room: bool,
}

impl Incoming {
    /// Takes what comes, as long as the socket may wait. Whether more may come.
    fn take(&mut self, now_ns: u64, shared: &Shared) -> bool {
        let (mut refused, mut no_room) = (None, 0);
        let clock = || shared.clock.now_ns();
        let received = self.leaf.receive_held(clock, |packet| match shared.lock().packet(now_ns, packet) {
            Ok(arrival) => {
                no_room += u64::from(arrival == Arrival::NoRoom);
                arrival == Arrival::First
            }
            Err(why) => {
                refused = Some(why);
                false
            }
        });
        if let (Some(why), false) = (refused, self.is_refusing) {
            warn!("market data is lost: {why}");
        }
        self.leaf.add_no_room(no_room);
        if no_room > 0 && !std::mem::replace(&mut self.has_no_room, true) {
            warn!("market data is lost: packets of more channels than the {CHANNELS_MAX} of a venue come, which count as refused");
        }
        match received {
            Ok(0) => true,
            Ok(_) => {
                self.is_refusing = refused.is_some();
                if self.says_recalls {
                    self.leaf.set_recalls(shared.lock().recall_counts());
                }
                true
            }
            Err(error) => {
                warn!("market data does not come any more: {error}");
                false
            }
        }
    }
}

/// How the replicas are asked for what the gateway misses, where it knows them.
fn recall(options: &OutletOptions) -> Option<RecallSettings> {
    let replicas = options.venue_requests.len();
    (replicas > 0).then(|| RecallSettings {
        replicas,
        gap_wait_ns: RECALL_WAIT_NS,
        retry_ns: RECALL_RETRY_NS,
        tries_max: u32::try_from(replicas.max(RECALL_TRIES)).unwrap_or(u32::MAX),
        runs_max: RECALL_RUNS_MAX,
        run_messages_max: RECALL_MESSAGES_MAX,
        per_s: options.requests_per_s.max(1),
        burst: options.requests_per_s,
        kept_bytes_max: RECALL_BYTES_MAX,
    })
}

/// Where what is due goes: to participants, strategies and readers by FIX, and requests to the replicas.
struct Leaving {
    node: OutletNode,
    packets_at_once: usize,
    inboxes: Vec<Inbox>,
    fix: Option<FeedSink>,
    recalls: Option<Arc<RecallNode>>,
    /// What was found to be due.
    packets: Packets,
    requests: Vec<(usize, Request)>,
    is_failing: bool,
}

impl Leaving {
    /// Looks for what is due: packets and requests for [`Self::send`], and publications. While the time is not known, nothing is.
    fn look(&mut self, outlet: &mut Outlet, now_ns: Option<u64>, shared: &Shared) -> Vec<PublicationMark> {
        self.packets.clear();
        let Some(now_ns) = now_ns else { return Vec::new() };
        outlet.release_some(now_ns, self.packets_at_once, &mut self.packets);
        self.requests.extend(std::iter::from_fn(|| outlet.request(now_ns)));
        // What a publication stands for leaves before it.
        let left_ns = outlet.wake_ns().map_or(now_ns, |left_ns| now_ns.min(left_ns.saturating_sub(1)));
        shared.due_marks(left_ns)
    }

    /// Whether nothing was found.
    fn is_idle(&self, marks: &[PublicationMark]) -> bool {
        self.packets.count() == 0 && self.requests.is_empty() && marks.is_empty()
    }

    /// Sends what was found.
    fn send(&mut self, marks: Vec<PublicationMark>) {
        let Self { node, inboxes, fix, recalls, packets, requests, is_failing, packets_at_once: _ } = self;
        for (replica, request) in requests.drain(..) {
            if let Some(recalls) = recalls {
                // Where the system does not take it, another replica is asked later.
                let _ = recalls.ask(replica, &request, walras_access::now().0);
            }
        }
        // Those in the process hear of it as the others do: once it may leave. What is published at an entry has left by then.
        inbox::give(inboxes, packets);
        if let Some(fix) = fix {
            fix.give(packets, marks);
        }
        if packets.count() == 0 {
            return;
        }
        let sent = node.send(packets);
        if let (Err(error), false) = (&sent, *is_failing) {
            warn!("market data could not be sent to participants: {error}");
        }
        *is_failing = sent.is_err();
    }
}

/// What time it is. Without it, it is not known how far ahead packets are: they wait in the socket, and beyond its room they are lost.
fn time_for_packets(shared: &Shared) -> Option<u64> {
    let now_ns = shared.clock.now_ns();
    if now_ns.is_none() {
        std::thread::sleep(Duration::from_millis(1)); // pause: the clock is not good yet
    }
    now_ns
}

/// Takes packets of one of the venue's trees, until the gateway ends.
fn receive(mut incoming: Incoming, shared: &Shared) {
    while !shared.is_over.load(Ordering::Relaxed) {
        let Some(now_ns) = time_for_packets(shared) else { continue };
        let goes_on = incoming.take(now_ns, shared);
        shared.say_came();
        if !goes_on {
            return;
        }
    }
}

/// Sends what is due, until the gateway ends.
fn release(mut leaving: Leaving, shared: &Shared) {
    while !shared.is_over.load(Ordering::Relaxed) {
        let mut outlet = shared.lock();
        shared.has_come.store(false, Ordering::Relaxed);
        let now_ns = shared.clock.now_ns();
        let marks = leaving.look(&mut outlet, now_ns, shared);
        if leaving.is_idle(&marks) {
            let wake_ns = [outlet.wake_ns(), outlet.request_ns(), shared.next_mark_ns()].into_iter().flatten().min();
            let wait_ns = wake_ns.zip(now_ns).map(|(wake_ns, now_ns)| wake_ns.saturating_sub(now_ns));
            let wait = wait_ns.map_or(WAIT, Duration::from_nanos).min(WAIT);
            match wait.checked_sub(SPIN) {
                Some(sleep) if !sleep.is_zero() => drop(shared.came.wait_timeout(outlet, sleep)),
                Some(_) | None => {
                    drop(outlet);
                    shared.spin_until(wake_ns.unwrap_or(0));
                }
            }
            continue;
        }
        drop(outlet);
        leaving.send(marks);
    }
}

/// Takes packets of all trees and sends what is due, until the gateway ends, and never sleeps.
fn spin(mut incoming: Vec<Incoming>, mut leaving: Leaving, shared: &Shared) {
    while !shared.is_over.load(Ordering::Relaxed) {
        let Some(now_ns) = time_for_packets(shared) else { continue };
        incoming.retain_mut(|of_tree| of_tree.take(now_ns, shared));
        let mut outlet = shared.lock();
        let marks = leaving.look(&mut outlet, shared.clock.now_ns(), shared);
        drop(outlet);
        if leaving.is_idle(&marks) {
            std::hint::spin_loop();
        } else {
            leaving.send(marks);
        }
    }
}

/// Answers participants that missed messages, until the gateway ends.
fn answer_requests(mut node: RewindNode, shared: &Shared) {
    let mut has_stale = false;
    while !shared.is_over.load(Ordering::Relaxed) {
        let answers = |request: &Request, answer: &mut Vec<Vec<u8>>| {
            let mut outlet = shared.lock();
            let answered = outlet.answer(shared.clock.now_ns().unwrap_or(0), request, answer);
            if answered == Answer::Unknown && outlet.request_ns().is_some() {
                // A replica may have to be asked.
                shared.say_came();
            }
            answered
        };
        // Participants stamp their requests with the time of day, which the venue's need not be.
        if let Err(error) = node.step(|| walras_access::now().0, answers) {
            warn!("requests for missed market data are not answered any more: {error}");
            return;
        }
        if node.counts().stale > 0 && !std::mem::replace(&mut has_stale, true) {
            info!("requests for missed market data come {STALE_REQUESTS}");
        }
    }
}

/// Takes what replicas answer, until the gateway ends.
fn take_answers(node: &RecallNode, shared: &Shared) {
    while !shared.is_over.load(Ordering::Relaxed) {
        let took = node.receive(|packet| {
            if let Some(now_ns) = shared.clock.now_ns() {
                // What is not held is missing, as if no answer had come.
                let _ = shared.lock().packet(now_ns, packet);
            }
        });
        match took {
            Ok(true) => shared.say_came(),
            Ok(false) => {}
            Err(error) => {
                warn!("what market data the gateway missed does not come back any more: {error}");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_relay::packet::{Header, Kind, PACKET_BYTES_MAX, Packet, PacketWriter};
    use walras_types::{LogIndex, TimeNs};

    use super::*;

    /// A gateway that has three packets, which are due at 100, and releases two at once.
    fn with_a_burst() -> (Shared, Leaving) {
        let (key, mut writer) = (TreeKey::new([1; 32]), PacketWriter::default());
        let mut outlet = Outlet::new(OutletSettings {
            tree: 3,
            trees: Trees::ONE,
            own_tree: 9,
            key: key.clone(),
            packets_remembered: 64,
            channels_max: 4,
            hold: HoldSettings { held_max: 8, wait_max_ns: 1_000 },
            packet_bytes: PACKET_BYTES_MAX,
            rewind_bytes_max: 1 << 16,
            rewind_total_bytes_max: 1 << 16,
            recall: None,
        });
        for number in 1..=3 {
            let (kind, sent_ns, release_ns, mut bytes) = (Kind::Data, 1, 100, Vec::new());
            assert!(writer.push(b"one"));
            let header = Header { kind, count: 1, channel: 5, tree: 3, packet: number, first: number, sent_ns, release_ns };
            writer.finish(&header, &key, &mut bytes);
            assert_eq!(outlet.packet(10, &Packet::decode(&bytes, &key).unwrap()), Ok(Arrival::First));
        }
        let shared = Shared {
            outlet: Mutex::new(outlet),
            marks: Mutex::default(),
            came: Condvar::new(),
            has_come: AtomicBool::new(false),
            clock: ReleaseClock::System(Clock::system()),
            is_over: AtomicBool::new(false),
        };
        let socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), WAIT, Offload::None).unwrap();
        let leaving = Leaving {
            node: OutletNode::new(socket, &[]),
            packets_at_once: 2,
            inboxes: Vec::new(),
            fix: None,
            recalls: None,
            packets: Packets::default(),
            requests: Vec::new(),
            is_failing: false,
        };
        (shared, leaving)
    }

    #[test]
    fn a_burst_leaves_in_parts() {
        let (shared, mut leaving) = with_a_burst();
        let parts = [99, 100, 100, 100].map(|now_ns| {
            leaving.look(&mut shared.lock(), Some(now_ns), &shared);
            leaving.packets.count()
        });
        assert_eq!(parts, [0, 2, 1, 0]);
    }

    #[test]
    fn a_publication_waits_for_the_last_part_of_what_it_stands_for() {
        let (shared, mut leaving) = with_a_burst();
        let mark = |release_ns| PublicationMark { log_index: LogIndex(1), time: TimeNs(1), release_ns };
        shared.marks().extend([99, 100, 120, 200].map(mark));
        let parts = [150; 3].map(|now_ns| leaving.look(&mut shared.lock(), Some(now_ns), &shared));
        assert_eq!(parts, [vec![mark(99)], vec![mark(100), mark(120)], Vec::new()]);
    }
}
