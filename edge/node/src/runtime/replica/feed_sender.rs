//! The binary feed's way out: the replica's thread gives what it publishes to a thread that makes packets and sends them to the first
//! layer of a relay tree; another one answers readers that missed messages. The market waits for neither.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use tracing::{info, warn};
use walras_config::FeedOptions;
use walras_feed::publisher::Publisher;
use walras_feed::sender::{Packets, SenderSettings};
use walras_feed::station::Station;
use walras_ports::TreeView;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{AskRate, Layout, RewindNode, SenderNode};
use walras_replica::FeedPiece;

use crate::runtime::recovery::{RecoveryError, spawn};

/// Entries that wait for the thread that sends. Beyond them some are lost, and readers need snapshots.
const QUEUE_MAX: usize = 1 << 14;
/// Entries that one round of the thread takes.
const ROUND_MAX: usize = 256;
/// How long the socket of requests waits before it looks whether the venue ends.
const WAIT: Duration = Duration::from_millis(100);
/// Addresses that may ask.
const SOURCES_MAX: usize = 1 << 12;

/// What the thread that sends gets.
enum Job {
    /// The state that later entries follow.
    Begin(Box<Publisher>),
    /// An entry.
    Piece(FeedPiece),
}

/// The replica thread's end.
pub(super) struct FeedSender {
    queue: Option<Sender<Job>>,
    /// An entry was lost since the last [`Job::Begin`].
    is_behind: bool,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    shape: TreeView,
    counts: Arc<Counts>,
}

/// What the threads did.
#[derive(Debug, Default)]
struct Counts {
    packets: AtomicU64,
    not_taken: AtomicU64,
    asked: AtomicU64,
    asked_too_often: AtomicU64,
}

impl FeedSender {
    /// Reads the tree's file and starts the threads.
    pub(super) fn start(options: &FeedOptions) -> Result<Self, RecoveryError> {
        let layout = Layout::read(&options.tree).map_err(|error| RecoveryError::Replica(format!("feed.tree: {error}")))?;
        let bind = |key: &'static str, address, offload| {
            let failed = |error| RecoveryError::Replica(format!("{key}: could not use {address}: {error}"));
            Socket::bind(address, WAIT, offload).map_err(failed)
        };
        let station = Arc::new(Mutex::new(Station::new(SenderSettings {
            tree: layout.tree_number,
            first_number: now_ns().max(1),
            key: layout.key.clone(),
            rewind_bytes_max: options.kept_bytes,
            heartbeat_ns: nanoseconds(options.heartbeat),
            snapshot_bytes_per_s: options.snapshot_bytes_per_s,
            rotation_ns_min: nanoseconds(options.rotation),
        })));
        let node = SenderNode::new(
            bind("feed.source", options.source, Offload::Segments)?,
            layout.tree.clone(),
            layout.hedge,
            &layout.layers[0],
        );
        let (queue, jobs) = bounded(QUEUE_MAX);
        let (is_over, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
        let mut threads = Vec::new();
        if let Some(address) = options.requests {
            let socket = bind("feed.requests", address, Offload::None)?;
            let rate = AskRate { per_s: options.requests_per_s, burst: options.requests_per_s, sources_max: SOURCES_MAX };
            let node = RewindNode::new(socket, layout.key.clone(), layout.tree_number, rate);
            let (station, is_over, counts) = (Arc::clone(&station), Arc::clone(&is_over), Arc::clone(&counts));
            threads.push(spawn("feed-requests", move || answer_requests(node, &station, &is_over, &counts))?);
        }
        let shape = TreeView {
            number: layout.tree_number,
            hedge: layout.hedge,
            layers: layout.layers.iter().map(Vec::len).collect(),
            ..TreeView::default()
        };
        let counted = Arc::clone(&counts);
        threads.push(spawn("feed", move || send(&jobs, &station, node, &counted))?);
        info!(
            "the binary feed goes to {} nodes of tree {} ({})",
            layout.layers[0].len(),
            layout.tree_number,
            options.tree.display()
        );
        Ok(Self { queue: Some(queue), is_behind: false, is_over, threads, shape, counts })
    }

    /// The tree, and what was sent so far.
    pub(super) fn view(&self) -> TreeView {
        let Counts { packets, not_taken, asked, asked_too_often } = &*self.counts;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TreeView {
            packets: of(packets),
            not_taken: of(not_taken),
            asked: of(asked),
            asked_too_often: of(asked_too_often),
            ..self.shape.clone()
        }
    }

    /// Later entries follow this state.
    pub(super) fn begin(&mut self, publisher: &Publisher) {
        let Some(queue) = &self.queue else { return };
        self.is_behind = queue.try_send(Job::Begin(Box::new(publisher.clone()))).is_err();
    }

    /// Takes an entry. Whether [`FeedSender::begin`] is to follow: entries were lost, and there is room again.
    pub(super) fn take(&mut self, piece: FeedPiece) -> bool {
        let Some(queue) = &self.queue else { return false };
        match queue.try_send(Job::Piece(piece)) {
            Ok(()) => self.is_behind,
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
        self.queue = None;
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

/// Makes packets of what comes, and sends them, until the venue ends.
fn send(jobs: &Receiver<Job>, station: &Mutex<Station>, mut node: SenderNode, counts: &Counts) {
    let (mut packets, mut is_failing) = (Packets::default(), false);
    loop {
        let wake_ns = lock(station).wake_ns();
        let wait_ns = wake_ns.map_or(u64::MAX, |wake_ns| wake_ns.saturating_sub(now_ns()));
        let first = match jobs.recv_timeout(Duration::from_nanos(wait_ns).min(Duration::from_secs(3_600))) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        packets.clear();
        let mut guard = lock(station);
        for job in first.into_iter().chain(jobs.try_iter()).take(ROUND_MAX) {
            take(&mut guard, job, &mut packets);
        }
        guard.on_timer(now_ns(), &mut packets);
        drop(guard);
        let sent = node.send(&packets);
        counts.packets.fetch_add(packets.count() as u64, Ordering::Relaxed);
        counts.not_taken.store(node.lost(), Ordering::Relaxed);
        if let (Err(error), false) = (&sent, is_failing) {
            warn!("the binary feed could not be sent: {error}");
        }
        is_failing = sent.is_err();
    }
}

fn take(station: &mut Station, job: Job, packets: &mut Packets) {
    match job {
        Job::Begin(publisher) => station.begin(&publisher),
        Job::Piece(piece) => {
            let release_ns = piece.release.map_or(0, |release| release.venue_ns().unwrap_or(release.log_ns));
            for run in &piece.runs {
                station.publish(run.as_run(), piece.part, (now_ns(), release_ns), packets);
            }
        }
    }
}

/// Answers readers, until the venue ends.
fn answer_requests(mut node: RewindNode, station: &Mutex<Station>, is_over: &AtomicBool, counts: &Counts) {
    while !is_over.load(Ordering::Relaxed) {
        if let Err(error) = node.step(now_ns, |request, answer| lock(station).answer(request, answer)) {
            warn!("requests for messages of the binary feed are not answered any more: {error}");
            return;
        }
        counts.asked.store(node.counts().answered, Ordering::Relaxed);
        counts.asked_too_often.store(node.counts().too_often, Ordering::Relaxed);
    }
}
