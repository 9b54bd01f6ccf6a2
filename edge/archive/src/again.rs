//! Entries that the archive lacks, read from the log again while the venue runs.
//!
//! The queue between the engine's thread and this one is bounded: when a disk stands still, a day takes long to close, or a replica applies
//! what it missed faster than it can be written, batches are given up. That is no loss as long as the log has their entries: as soon as the
//! archive's thread sees from the next batch which are missing, it has them read again and applied to a state of its own, and only what the log
//! does not have any more stays missing. Meanwhile the queue may run full once more; then the same is done again, from further on.

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use walras_engine::Engine;
use walras_types::LogIndex;

use crate::record::Batch;
use crate::recorder::Recorder;
use crate::service::ArchiveThread;

/// Reads the log again: it finds a state that is not later than [`Again::seen`] (or the earliest that there is), gives a recorder the entries
/// after it, as many as the log has, and takes after each. Why it could not; what it gave until then stays.
pub type Refill = Box<dyn FnMut(&mut Again<'_>) -> Result<(), String> + Send>;

/// The way in for entries that are read again.
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

    /// The last entry that the archive has.
    #[must_use]
    pub fn seen(&self) -> LogIndex {
        self.thread.keeper.seen()
    }

    /// The last entry that it lacks: what comes after it waits in the queue, and does no harm if it is read again, too.
    #[must_use]
    pub fn until(&self) -> LogIndex {
        self.until
    }

    /// What turns entries into batches, from the state of `engine` on: whatever it is given, the archive takes what it lacks. `None` where
    /// nothing that is missing comes after that state.
    #[must_use]
    pub fn recorder(&self, engine: &Engine) -> Option<Recorder> {
        let is_of_use = engine.last_applied() < self.until;
        is_of_use.then(|| self.thread.settings.recorder(self.sender.clone(), self.seen(), engine))
    }

    /// Takes what recorders have given; false when the archive is to end, and the rest is read at the next start.
    pub fn take(&mut self) -> bool {
        while let Ok(batch) = self.batches.try_recv() {
            self.thread.keeper.take(batch);
            self.is_over |= !self.thread.commit_if_much();
        }
        self.is_over |= self.thread.is_told_to_end();
        !self.is_over
    }

    /// Lets some time pass; false when the archive is to end.
    pub fn wait(&mut self, time: Duration) -> bool {
        self.is_over |= self.thread.stopped.recv_timeout(time) != Err(RecvTimeoutError::Timeout);
        !self.is_over
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}
