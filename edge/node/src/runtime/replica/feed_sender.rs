//! The binary feed's way out: the replica's thread gives what it publishes to threads that make packets and send them, one to the first
//! layer of each relay tree; another one answers readers that missed messages. The market waits for none of them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use tracing::{info, warn};
use walras_config::FeedOptions;
use walras_feed::channel::{ChannelId, Trees};
use walras_feed::control::RelayFigures;
use walras_feed::publisher::Publisher;
use walras_feed::recall::RecallCounts;
use walras_feed::sender::{Packets, SenderSettings};
use walras_feed::station::Station;
use walras_ports::{NodeFigures, RecallFigures, RelayOut, TreeView};
use walras_relay::keeper::{KeeperSettings, OutBecause};
use walras_relay::keeper_machine::Heard;
use walras_relay::lateness::Pieces;
use walras_relay::live::Live;
use walras_relay::rewinder::Answer;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{AskRate, KeeperNode, Layout, Lookout, RewindNode, STALE_REQUESTS, SenderNode};
use walras_replica::{FeedPart, FeedPiece, FeedRun};
use walras_sequencer::ReceiverSample;

use crate::runtime::recovery::{RecoveryError, spawn};

/// Entries that wait for a thread that sends. Beyond them some are lost, and readers need snapshots.
const QUEUE_MAX: usize = 1 << 14;
/// Entries that one round of the thread takes.
const ROUND_MAX: usize = 256;
/// How long the socket of requests waits before it looks whether the venue ends.
const WAIT: Duration = Duration::from_millis(100);
/// Addresses that may ask.
const SOURCES_MAX: usize = 1 << 12;
/// From one round of questions to the nodes of the tree to the next, and how long they may take to answer.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_PATIENCE: Duration = Duration::from_millis(300);

/// What a thread that sends gets.
enum Job {
    /// The state that later entries follow, and when it may be released.
    Begin { publisher: Box<Publisher>, release_ns: u64 },
    /// Packets go by this view from now on.
    Use(Live),
    /// What an entry says of the markets of its tree, and the numbers and times that go with it.
    Piece { part: FeedPart, times: PieceTimes, runs: Vec<FeedRun> },
}

/// The first number of the leader's packets, when a piece may be released, and how long that is after its entry.
#[derive(Clone, Copy)]
struct PieceTimes {
    first_number: u64,
    release_ns: u64,
    held_ns: u64,
}

/// Reports of receivers that wait for the replica's thread.
const HEARD_MAX: usize = 256;

/// The replica thread's end.
pub(super) struct FeedSender {
    /// One for each tree.
    branches: Vec<Branch>,
    trees: Trees,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// What receivers of all trees reported.
    heard: Receiver<Vec<Heard>>,
    /// A tree that lost entries has room again, and is to have the state.
    has_room_again: bool,
}

/// A tree, from here.
struct Branch {
    queue: Option<Sender<Job>>,
    /// An entry was lost since the last [`Job::Begin`].
    is_behind: bool,
    /// The part of the last entry.
    part: Option<FeedPart>,
    /// When the last entry may be released, whether it was lost or not.
    release_ns: u64,
    shape: TreeView,
    counts: Arc<Counts>,
}

/// What the threads of a tree did.
#[derive(Debug, Default)]
struct Counts {
    packets: AtomicU64,
    not_taken: AtomicU64,
    asked: AtomicU64,
    asked_too_often: AtomicU64,
    /// Whether packets are sent here, and not by another replica.
    is_sending: AtomicBool,
    /// The first number of this leader's packets and views: greater than those of earlier senders.
    first_number: AtomicU64,
    /// By which view, and who is out of it, and why.
    live: Mutex<(u16, Vec<(u32, RelayOut)>)>,
    /// What was sent lately, about which receivers report.
    pieces: Mutex<Pieces>,
    /// What the nodes said last.
    nodes: Mutex<Arc<Vec<Vec<Option<NodeFigures>>>>>,
}

impl FeedSender {
    /// Reads the trees' file and starts the threads.
    pub(super) fn start(options: &FeedOptions) -> Result<Self, RecoveryError> {
        let layouts = Layout::read_all(&options.tree).map_err(|error| RecoveryError::Replica(format!("feed.tree: {error}")))?;
        let bind = |key: &'static str, address, offload| {
            let failed = |error| RecoveryError::Replica(format!("{key}: could not use {address}: {error}"));
            Socket::bind(address, WAIT, offload).map_err(failed)
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let first = &layouts[0];
        let settings = SenderSettings {
            tree: first.tree_number,
            trees: first.trees,
            epoch: 0,
            // A leader takes numbers by its term, which are greater.
            first_number: 1,
            key: first.key.clone(),
            packet_bytes: options.packet_bytes,
            rewind_bytes_max: options.kept_bytes,
            rewind_total_bytes_max: options.kept_total_bytes / first.trees.count() as usize,
            heartbeat_ns: nanoseconds(options.heartbeat),
            snapshot_bytes_per_s: (options.snapshot_bytes_per_s / u64::from(first.trees.count())).max(1),
            rotation_ns_min: nanoseconds(options.rotation),
        };
        let requests = options.requests.map(|address| bind("feed.requests", address, Offload::None)).transpose()?;
        let (mut branches, mut stations, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        let (says, heard) = bounded(HEARD_MAX);
        for layout in &layouts {
            // With a port of its own where the operator names none: two sockets cannot have the same.
            let source = if layout.index == 0 { options.source } else { SocketAddr::new(options.source.ip(), 0) };
            let socket = bind("feed.source", source, Offload::Segments)?;
            layout.check_reach(&socket).map_err(|error| RecoveryError::Replica(format!("feed.source: {error}")))?;
            let node = SenderNode::new(socket, &layout.tree, layout.hedge, &layout.nodes());
            let station = Arc::new(Mutex::new(Station::of_tree(settings.clone(), layout.index)));
            let ((queue, jobs), counts) = (bounded(QUEUE_MAX), Arc::new(Counts::default()));
            let shape = TreeView {
                number: layout.tree_number,
                hedge: layout.hedge,
                layers: layout.layers.iter().map(Vec::len).collect(),
                ..TreeView::default()
            };
            let all: Vec<SocketAddr> = layout.layers.iter().flatten().copied().collect();
            match Lookout::open(&all, layout.tree_number, layout.key.clone(), walras_access::random_u64()) {
                Ok(lookout) => {
                    let (widths, is_over, counts) = (shape.layers.clone(), Arc::clone(&is_over), Arc::clone(&counts));
                    threads.push(spawn("feed-looks", move || look(lookout, &widths, &is_over, &counts))?);
                }
                Err(error) => warn!("relays are not asked for their figures: {error}"),
            }
            let (uses, is_ended, counted) = (queue.clone(), Arc::clone(&is_over), Arc::clone(&counts));
            let (from, kept, says) = (SocketAddr::new(options.source.ip(), 0), layout.clone(), says.clone());
            let (wakes, begins) = bounded(1);
            threads.push(spawn("feed-keeper", move || keep(&kept, from, (&uses, &says), &begins, &is_ended, &counted))?);
            let (sends, counted) = (Arc::clone(&station), Arc::clone(&counts));
            threads.push(spawn("feed", move || send(&jobs, &sends, node, &counted, &wakes))?);
            stations.push(station);
            branches.push(Branch { queue: Some(queue), is_behind: false, part: None, release_ns: 0, shape, counts });
            info!(
                "the binary feed goes to {} nodes of tree {} ({})",
                layout.layers[0].len(),
                layout.tree_number,
                options.tree.display()
            );
        }
        if let Some(socket) = requests {
            let rate = AskRate { per_s: options.requests_per_s, burst: options.requests_per_s, sources_max: SOURCES_MAX };
            let node = RewindNode::new(socket, first.key.clone(), first.tree_number, rate).of_trees(first.trees);
            let (is_over, counts, trees) = (Arc::clone(&is_over), Arc::clone(&branches[0].counts), first.trees);
            threads.push(spawn("feed-requests", move || answer_requests(node, (trees, &stations), &is_over, &counts))?);
        }
        Ok(Self { branches, trees: first.trees, is_over, threads, heard, has_room_again: false })
    }

    /// The trees, and what was sent so far.
    pub(super) fn views(&self) -> Vec<TreeView> {
        self.branches.iter().map(Branch::view).collect()
    }

    /// How late market data came to receivers, as far as they reported it since the last call; `None` where none did.
    pub(super) fn heard(&self) -> Option<Vec<ReceiverSample>> {
        let sample = |Heard { held_ns, late_ns, .. }| ReceiverSample { held_ns, late_ns };
        let mut reports = self.heard.try_iter().peekable();
        reports.peek()?;
        Some(reports.flatten().map(sample).collect())
    }

    /// Later entries follow this state.
    pub(super) fn begin(&mut self, publisher: &Publisher) {
        for branch in &mut self.branches {
            branch.begin(publisher);
        }
    }

    /// Whether [`FeedSender::begin_again`] is to follow, once all entries of the state were taken: some were lost, and there is room again.
    pub(super) fn has_room_again(&self) -> bool {
        self.has_room_again
    }

    /// Later entries of the trees that lost some follow this state.
    pub(super) fn begin_again(&mut self, publisher: &Publisher) {
        self.has_room_again = false;
        for branch in self.branches.iter_mut().filter(|branch| branch.is_behind) {
            branch.begin(publisher);
        }
    }

    /// Takes an entry.
    pub(super) fn take(&mut self, piece: FeedPiece) {
        let release_ns = piece.release.map_or(0, |release| release.venue_ns().unwrap_or(release.log_ns));
        let times = PieceTimes { first_number: piece.first_number(), release_ns, held_ns: piece.held_ns };
        if let [branch] = &mut self.branches[..] {
            self.has_room_again |= branch.take(piece.part, times, piece.runs);
            return;
        }
        let mut of_trees: Vec<Vec<FeedRun>> = self.branches.iter().map(|_| Vec::new()).collect();
        for run in piece.runs {
            of_trees[self.trees.of(run.channel) as usize].push(run);
        }
        for (branch, runs) in self.branches.iter_mut().zip(of_trees) {
            // An entry without messages for a tree tells it only what to do.
            if !runs.is_empty() || branch.part != Some(piece.part) {
                self.has_room_again |= branch.take(piece.part, times, runs);
            }
        }
    }
}

impl Branch {
    fn view(&self) -> TreeView {
        let Counts { packets, not_taken, asked, asked_too_often, live, nodes, .. } = &*self.counts;
        let (epoch, out) = live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TreeView {
            packets: of(packets),
            not_taken: of(not_taken),
            asked: of(asked),
            asked_too_often: of(asked_too_often),
            epoch,
            out,
            nodes: Arc::clone(&nodes.lock().unwrap_or_else(PoisonError::into_inner)),
            ..self.shape.clone()
        }
    }

    fn begin(&mut self, publisher: &Publisher) {
        let Some(queue) = &self.queue else { return };
        let job = Job::Begin { publisher: Box::new(publisher.clone()), release_ns: self.release_ns };
        self.is_behind = queue.try_send(job).is_err();
    }

    /// Whether entries were lost before this one, which was not.
    fn take(&mut self, part: FeedPart, times: PieceTimes, runs: Vec<FeedRun>) -> bool {
        let Some(queue) = &self.queue else { return false };
        self.release_ns = times.release_ns;
        match queue.try_send(Job::Piece { part, times, runs }) {
            Ok(()) => {
                self.part = Some(part);
                self.is_behind
            }
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.is_behind = true;
                false
            }
        }
    }
}

impl Drop for FeedSender {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.branches.iter_mut().for_each(|branch| branch.queue = None);
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanoseconds)
}

fn lock(station: &Mutex<Station>) -> MutexGuard<'_, Station> {
    station.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes packets of what comes, and sends them, until the venue ends. The keeper hears when this replica begins to send.
fn send(jobs: &Receiver<Job>, station: &Mutex<Station>, mut node: SenderNode, counts: &Counts, wakes: &Sender<()>) {
    // Heartbeats and snapshots are due by the elapsed time, which never goes back.
    let (begun, mut packets, mut is_failing) = (Instant::now(), Packets::default(), false);
    let mut taken_apart = 0;
    loop {
        let wake_ns = lock(station).wake_ns();
        let wait_ns = wake_ns.map_or(u64::MAX, |wake_ns| wake_ns.saturating_sub(nanoseconds(begun.elapsed())));
        let first = match jobs.recv_timeout(Duration::from_nanos(wait_ns).min(Duration::from_secs(3_600))) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        packets.clear();
        let mut sent = Ok(());
        let mut guard = lock(station);
        for job in first.into_iter().chain(jobs.try_iter()).take(ROUND_MAX) {
            match job {
                Job::Use(live) => {
                    // What was made before goes by the view that it names.
                    sent = sent.and(node.send(&packets));
                    counts.packets.fetch_add(packets.count() as u64, Ordering::Relaxed);
                    packets.clear();
                    guard.set_epoch(live.epoch());
                    node.set_live(live);
                }
                Job::Piece { part, times: PieceTimes { first_number, release_ns, held_ns }, runs } => {
                    counts.first_number.store(first_number, Ordering::Relaxed);
                    let is_sending = part == FeedPart::Sends;
                    if counts.is_sending.swap(is_sending, Ordering::Release) != is_sending && is_sending {
                        // Where it was woken before, that is enough.
                        let _ = wakes.try_send(());
                    }
                    if part == FeedPart::Sends && !runs.is_empty() {
                        counts.pieces.lock().unwrap_or_else(PoisonError::into_inner).passed(release_ns, held_ns);
                    }
                    take(&mut guard, (part, first_number, release_ns), &runs, &mut packets);
                }
                Job::Begin { publisher, release_ns } => {
                    guard.begin(&publisher);
                    guard.not_before(release_ns);
                }
            }
        }
        guard.on_timer((nanoseconds(begun.elapsed()), now_ns()), &mut packets);
        drop(guard);
        let sent = sent.and(node.send(&packets));
        counts.packets.fetch_add(packets.count() as u64, Ordering::Relaxed);
        counts.not_taken.store(node.lost(), Ordering::Relaxed);
        if let (Err(error), false) = (&sent, is_failing) {
            warn!("the binary feed could not be sent: {error}");
        }
        is_failing = sent.is_err();
        if taken_apart == 0 && node.taken_apart() > 0 {
            warn!(
                "packets are larger than the MTU of a path has room for, so they go one by one, in fragments: set feed.packet_bytes"
            );
        }
        taken_apart = node.taken_apart();
    }
}

fn take(station: &mut Station, (part, first_number, release_ns): (FeedPart, u64, u64), runs: &[FeedRun], packets: &mut Packets) {
    station.set_part(part, first_number);
    station.not_before(release_ns);
    for run in runs {
        station.publish(run.as_run(), part, (now_ns(), release_ns), packets);
    }
}

/// Takes relays out of the tree and in again, while this replica sends, until the venue ends.
fn keep(
    layout: &Layout,
    from: SocketAddr,
    to: (&Sender<Job>, &Sender<Vec<Heard>>),
    begins: &Receiver<()>,
    is_over: &AtomicBool,
    counts: &Counts,
) {
    while !is_over.load(Ordering::Relaxed) {
        if !counts.is_sending.load(Ordering::Acquire) {
            // Another replica sends. Without the thread that sends there is nothing to keep.
            if begins.recv_timeout(WAIT) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            continue;
        }
        // In a later term another replica may have sent in between: its views have greater versions.
        let version = counts.first_number.load(Ordering::Relaxed);
        let is_another_term = || counts.first_number.load(Ordering::Relaxed) != version;
        let ends = || is_over.load(Ordering::Relaxed) || !counts.is_sending.load(Ordering::Relaxed) || is_another_term();
        if let Err(error) = keep_while_sending(layout, from, to, (version, &ends), counts) {
            warn!("relays of tree {} that fail stay in it: {error}", layout.tree_number);
            std::thread::sleep(WAIT); // pause: the system may have what it lacks by then
        }
    }
}

fn keep_while_sending(
    layout: &Layout,
    from: SocketAddr,
    (uses, says): (&Sender<Job>, &Sender<Vec<Heard>>),
    (version, ends): (u64, &impl Fn() -> bool),
    counts: &Counts,
) -> std::io::Result<()> {
    let of = (&layout.tree, layout.tree_number, layout.key.clone());
    let nodes = Arc::clone(&counts.nodes.lock().unwrap_or_else(PoisonError::into_inner));
    let node = KeeperNode::open(from, of, &layout.nodes(), KeeperSettings::default(), version)?;
    // The leader before may have gone without relays that did not answer.
    let answered: Vec<bool> = nodes.iter().flatten().map(Option::is_some).collect();
    let mut node = node.without_silent(&answered);
    let mut next = None;
    while !ends() {
        next = node.step(&counts.pieces)?.or(next);
        if let Some(heard) = node.heard(&counts.pieces) {
            // Where the replica's thread is busy for long, the next report will do.
            let _ = says.try_send(heard);
        }
        let Some(live) = next.take() else { continue };
        let why = |relay: u32| node.out().find(|(out, _)| *out == relay).map_or(RelayOut::Silent, |(_, why)| why_out(why));
        let (epoch, out) = (live.epoch(), live.out().iter().map(|relay| (*relay, why(*relay))).collect::<Vec<_>>());
        match uses.try_send(Job::Use(live)) {
            Ok(()) => {
                let before =
                    std::mem::replace(&mut *counts.live.lock().unwrap_or_else(PoisonError::into_inner), (epoch, out.clone()));
                if before.1 != out {
                    info!("tree {}: relays that are out, by number, and why: {out:?}", layout.tree_number);
                }
            }
            Err(TrySendError::Full(Job::Use(live))) => next = Some(live),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

fn why_out(why: OutBecause) -> RelayOut {
    match why {
        OutBecause::Silent => RelayOut::Silent,
        OutBecause::Unaware => RelayOut::Unaware,
        OutBecause::Mute => RelayOut::Mute,
    }
}

/// Asks the nodes of the tree for their figures, until the venue ends.
fn look(mut lookout: Lookout, widths: &[usize], is_over: &AtomicBool, counts: &Counts) {
    let mut asked: Option<Instant> = None;
    while !is_over.load(Ordering::Relaxed) {
        if asked.is_some_and(|asked| asked.elapsed() < LOOK_EVERY) {
            std::thread::sleep(WAIT); // pause: it is not yet time to ask again
            continue;
        }
        asked = Some(Instant::now());
        let said = match lookout.ask(LOOK_PATIENCE) {
            Ok(said) => said,
            Err(error) => {
                warn!("relays are not asked for their figures any more: {error}");
                return;
            }
        };
        let mut said = said.into_iter().map(|said| said.map(figures));
        let nodes: Vec<Vec<_>> = widths.iter().map(|width| said.by_ref().take(*width).collect()).collect();
        *counts.nodes.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(nodes);
    }
}

fn figures(said: RelayFigures) -> NodeFigures {
    let RecallCounts { asked, answered, back, given_up } = said.recalls;
    NodeFigures {
        packets: said.first,
        by_hedge: said.hedged,
        copies: said.copies,
        lost: said.lost,
        not_taken: said.not_taken,
        refused: said.forged + said.malformed + said.others,
        transit_ns_p50: said.transit_ns_p50,
        transit_ns_p99: said.transit_ns_p99,
        late: said.late,
        recalls: RecallFigures { asked, answered, messages: back, failed: given_up },
    }
}

/// Answers readers, until the venue ends.
fn answer_requests(
    mut node: RewindNode,
    (trees, stations): (Trees, &[Arc<Mutex<Station>>]),
    is_over: &AtomicBool,
    counts: &Counts,
) {
    let mut has_stale = false;
    while !is_over.load(Ordering::Relaxed) {
        let answered = node.step(now_ns, |request, answer| {
            let channel = ChannelId::new(request.channel);
            let station = channel.and_then(|channel| stations.get(trees.of(channel) as usize));
            station.map_or(Answer::Unknown, |station| lock(station).answer(request, answer))
        });
        if let Err(error) = answered {
            warn!("requests for messages of the binary feed are not answered any more: {error}");
            return;
        }
        counts.asked.store(node.counts().answered, Ordering::Relaxed);
        counts.asked_too_often.store(node.counts().too_often, Ordering::Relaxed);
        if node.counts().stale > 0 && !std::mem::replace(&mut has_stale, true) {
            info!("requests for messages of the binary feed come {STALE_REQUESTS}");
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_feed::publisher::Views;

    use super::*;

    /// Snapshots are made of that state: they must not say sooner than their packets would have what lost entries said.
    #[test]
    fn a_state_that_follows_lost_entries_is_released_with_the_last_of_them() {
        let (queue, jobs) = bounded(1);
        let (shape, counts) = (TreeView::default(), Arc::new(Counts::default()));
        let mut branch = Branch { queue: Some(queue), is_behind: false, part: None, release_ns: 0, shape, counts };
        let take = |branch: &mut Branch, release_ns| {
            branch.take(FeedPart::Sends, PieceTimes { first_number: 1, release_ns, held_ns: 0 }, Vec::new())
        };
        assert!(!take(&mut branch, 10) && !take(&mut branch, 30) && branch.is_behind, "there is room for one");
        assert!(matches!(jobs.try_recv(), Ok(Job::Piece { .. })));
        branch.begin(&Publisher::new(Views::ALL));
        assert!(matches!(jobs.try_recv(), Ok(Job::Begin { release_ns: 30, .. })) && !branch.is_behind);
    }
}
