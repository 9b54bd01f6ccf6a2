//! The archive's thread, its status, and its input.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use tracing::{error, info, warn};
use walras_engine::Engine;
use walras_types::LogIndex;

use crate::ArchiveError;
use crate::accounts::OpenChains;
use crate::again::{Again, Refill};
use crate::files::Files;
use crate::history::History;
use crate::keeper::{Keeper, Settings};
use crate::record::Batch;
use crate::recorder::Recorder;

/// Length of the queue of batches; full, it takes some tens of megabytes.
const BATCHES_MAX: usize = 64;
/// Interval of commits.
const COMMIT_EVERY: Duration = Duration::from_secs(1);
/// Number of pending bytes at which a commit starts at once.
const COMMIT_BYTES: usize = 8 << 20;
/// Retry interval after a failure.
const RETRY_EVERY: Duration = Duration::from_secs(1);
const CLOSE_AGAIN_EVERY: Duration = Duration::from_secs(30);

/// The status of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusView {
    /// The last durable entry.
    pub durable: LogIndex,
    /// Entries found missing since the start that the log no longer had.
    pub missing: u64,
    /// Entries that did not fit the queue and were read from the log again.
    pub refilled: u64,
    /// Days closed since the start.
    pub closed: u64,
    /// Why it does not make progress, if it does not.
    pub trouble: Option<String>,
}

/// A shared status.
#[derive(Clone, Debug)]
pub struct Status {
    view: Arc<Mutex<StatusView>>,
    root: PathBuf,
    open: OpenChains,
}

impl Status {
    /// The status of an archive that could not be opened.
    #[must_use]
    pub fn of_trouble(folder: &Path, why: &ArchiveError) -> Self {
        let view = StatusView { trouble: Some(why.to_string()), ..StatusView::default() };
        Self { view: Arc::new(Mutex::new(view)), root: folder.to_path_buf(), open: OpenChains::default() }
    }

    /// The current status.
    #[must_use]
    pub fn view(&self) -> StatusView {
        self.lock().clone()
    }

    /// What it holds.
    #[must_use]
    pub fn history(&self) -> History {
        History::of_running(&self.root, self.open.clone())
    }

    fn lock(&self) -> MutexGuard<'_, StatusView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running archive.
#[derive(Debug)]
pub struct Service {
    batches: Sender<Batch>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
    status: Status,
    durable: LogIndex,
    settings: Settings,
}

impl Service {
    /// Opens the archive and starts its thread, which reads entries that did not fit its queue from the log again.
    pub fn start(settings: Settings, files: Files, refill: Option<Refill>) -> Result<Self, ArchiveError> {
        let keeper = Keeper::open(settings.clone(), files)?;
        let durable = keeper.durable();
        let view = StatusView { durable, ..StatusView::default() };
        let status = Status { view: Arc::new(Mutex::new(view)), root: settings.folder.clone(), open: keeper.open_chains() };
        let ((batches, incoming), (stop, stopped)) = (bounded(BATCHES_MAX), bounded(1));
        let thread = ArchiveThread {
            keeper,
            incoming,
            stopped,
            status: status.clone(),
            close_again: None,
            settings: settings.clone(),
            refill,
            refill_again: None,
        };
        let thread = std::thread::Builder::new().name("walras-archive".into()).spawn(move || thread.run());
        let thread = thread.map_err(ArchiveError::Thread)?;
        Ok(Self { batches, stop, thread, status, durable, settings })
    }

    /// The last durable entry when it was opened. A replay must begin at or before the entry after it; otherwise entries will be
    /// missing.
    #[must_use]
    pub fn durable(&self) -> LogIndex {
        self.durable
    }

    /// A recorder that starts from the state of `engine`.
    #[must_use]
    pub fn recorder(&self, engine: &Engine) -> Recorder {
        self.settings.recorder(self.batches.clone(), self.durable, engine)
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status.clone()
    }

    /// Makes all records durable and ends. Its recorders must have been dropped.
    pub fn stop(self) {
        let Self { batches, stop, thread, .. } = self;
        drop((batches, stop));
        if thread.join().is_err() {
            error!("the archive's thread panicked; what it had is made again from the log");
        }
    }
}

pub(crate) struct ArchiveThread {
    pub(crate) keeper: Keeper,
    incoming: Receiver<Batch>,
    pub(crate) stopped: Receiver<()>,
    status: Status,
    close_again: Option<Instant>,
    pub(crate) settings: Settings,
    refill: Option<Refill>,
    /// After a failure, entries are not read again before this time, so that new batches have priority.
    refill_again: Option<Instant>,
}

impl ArchiveThread {
    /// Runs until its recorders and its service are dropped.
    fn run(mut self) {
        let mut next = Instant::now() + COMMIT_EVERY;
        loop {
            let is_over = match self.incoming.recv_deadline(next) {
                Ok(batch) => {
                    if !self.take(batch) {
                        return;
                    }
                    if self.keeper.waiting_bytes() < COMMIT_BYTES && Instant::now() < next {
                        continue;
                    }
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            if !self.commit_or_wait(is_over) {
                return;
            }
            self.close();
            if is_over {
                return;
            }
            next = Instant::now() + COMMIT_EVERY;
        }
    }

    /// Takes the next batch, after any missing entries before it that the log has. `false` if the archive must end.
    fn take(&mut self, batch: Batch) -> bool {
        let first = batch.spans.first().map_or(LogIndex(0), |span| span.first);
        if first > self.keeper.seen().next() && !self.refill(LogIndex(first.0 - 1)) {
            warn!("the archive ends with entry {}; the rest is made again from the log", self.keeper.durable());
            return false;
        }
        self.keeper.take(batch);
        true
    }

    /// Reads the missing entries up to `until` again. `false` if the archive must end.
    fn refill(&mut self, until: LogIndex) -> bool {
        if self.refill_again.is_some_and(|at| Instant::now() < at) {
            return true;
        }
        let Some(mut refill) = self.refill.take() else { return true };
        let (first, missing) = (self.keeper.seen().next(), self.keeper.missing());
        let begun = Instant::now();
        info!("the archive had no room for entries {first} to {until}: it reads the log again");
        let mut again = Again::new(self, until);
        let read = refill(&mut again);
        let is_over = again.is_over();
        self.refill = Some(refill);
        let lost = self.keeper.missing() - missing;
        let filled = (self.keeper.seen().0 + 1 - first.0).saturating_sub(lost);
        self.status.lock().refilled += filled;
        match read {
            Ok(()) => info!("{filled} entries were read again in {:?}", begun.elapsed()),
            Err(why) => {
                warn!("entries {} to {until} could not be read again: {why}", self.keeper.seen().next());
                self.refill_again = Some(Instant::now() + 10 * begun.elapsed());
            }
        }
        !is_over
    }

    /// Whether its service was dropped.
    pub(crate) fn must_end(&self) -> bool {
        self.stopped.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Commits if much data is pending. `false` if the archive must end.
    pub(crate) fn commit_if_much(&mut self) -> bool {
        self.keeper.waiting_bytes() < COMMIT_BYTES || self.commit_or_wait(false)
    }

    /// Commits, with retries until it succeeds. `false` if the archive must end. Meanwhile new data waits in the queue, then in the
    /// recorder.
    fn commit_or_wait(&mut self, is_over: bool) -> bool {
        while !self.commit() {
            if is_over || self.stopped.recv_timeout(RETRY_EVERY) != Err(RecvTimeoutError::Timeout) {
                warn!("the archive ends with entry {}; the rest is made again from the log", self.keeper.durable());
                return false;
            }
        }
        true
    }

    fn commit(&mut self) -> bool {
        let missing = self.keeper.missing();
        let committed = self.keeper.commit();
        let mut view = self.status.lock();
        if missing > view.missing {
            warn!("{} entries are missing in the archive: its day's manifest will name them", missing - view.missing);
        }
        (view.durable, view.missing) = (self.keeper.durable(), missing);
        match committed {
            Ok(()) => {
                if self.close_again.is_none() && view.trouble.take().is_some() {
                    info!("the archive goes on");
                }
                true
            }
            Err(e) => {
                let why = e.to_string();
                if view.trouble.as_ref() != Some(&why) {
                    error!("the archive waits, and the market goes on: {why}");
                }
                view.trouble = Some(why);
                false
            }
        }
    }

    fn close(&mut self) {
        if self.close_again.is_some_and(|at| Instant::now() < at) {
            return;
        }
        loop {
            match self.keeper.close_one() {
                Ok(None) => {
                    self.close_again = None;
                    return;
                }
                Ok(Some(manifest)) => {
                    info!("the archive closed {}: {} trades, {} book snapshots", manifest.day, manifest.trades, manifest.books);
                    self.status.lock().closed += 1;
                }
                Err(e) => {
                    error!("a day of the archive could not be closed, and the market goes on: {e}");
                    self.status.lock().trouble = Some(e.to_string());
                    self.close_again = Some(Instant::now() + CLOSE_AGAIN_EVERY);
                    return;
                }
            }
        }
    }
}
