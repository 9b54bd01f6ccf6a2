//! Reads entries that the archive lacks from the log again, while the venue runs.
//!
//! The queue between the engine's thread and the archive's is bounded. If a disk stalls, a day takes long to close, or a replica
//! catches up faster than the archive can write, batches are dropped. Nothing is lost while the log still has their entries: the
//! archive's thread sees from the next batch which entries are missing, reads them again and applies them to a separate state. Only
//! entries that the log no longer has stay missing. If the queue overflows again meanwhile, this is repeated from there.

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use walras_engine::Engine;
use walras_types::LogIndex;

use crate::record::Batch;
use crate::recorder::Recorder;
use crate::service::ArchiveThread;

/// Reads the log again: finds a state not later than [`Again::seen`] (or the earliest), passes the later entries that the log has
/// to a recorder, and calls `take` after each. On an error, entries passed so far are kept.
pub type Refill = Box<dyn FnMut(&mut Again<'_>) -> Result<(), String> + Send>;

/// Accepts entries that are read again.
pub struct Again<'a> {
    thread: &'a mut ArchiveThread,
    until: LogIndex,
    sender: Sender<Batch>,
    batches: Receiver<Batch>,
    is_over: bool,
}

impl std::fmt::Debug for Again<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Again").field("seen", &self.seen()).field("until", &self.until).finish_non_exhaustive()
    }
}

impl<'a> Again<'a> {
    pub(crate) fn new(thread: &'a mut ArchiveThread, until: LogIndex) -> Self {
        let (sender, batches) = unbounded();
        Self { thread, until, sender, batches, is_over: false }
    }

    /// The last entry in the archive.
    #[must_use]
    pub fn seen(&self) -> LogIndex {
        self.thread.keeper.seen()
    }

    /// The last missing entry. Later ones wait in the queue; reading them again is harmless.
    #[must_use]
    pub fn until(&self) -> LogIndex {
        self.until
    }

    /// A recorder that starts from the state of `engine`. The archive takes only the entries that it lacks. `None` if no missing
    /// entry comes after that state.
    #[must_use]
    pub fn recorder(&self, engine: &Engine) -> Option<Recorder> {
        let is_of_use = engine.last_applied() < self.until;
        is_of_use.then(|| self.thread.settings.recorder(self.sender.clone(), self.seen(), engine))
    }

    /// Takes the recorders' batches. `false` if the archive must end; the rest is then read at the next start.
    pub fn take(&mut self) -> bool {
        while let Ok(batch) = self.batches.try_recv() {
            self.thread.keeper.take(batch);
            self.is_over |= !self.thread.commit_if_much();
        }
        self.is_over |= self.thread.must_end();
        !self.is_over
    }

    /// Waits; `false` if the archive must end.
    pub fn wait(&mut self, time: Duration) -> bool {
        self.is_over |= self.thread.stopped.recv_timeout(time) != Err(RecvTimeoutError::Timeout);
        !self.is_over
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}
