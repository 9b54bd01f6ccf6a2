//! The slow work beside the log: at most one piece is out, and who opens the log again waits for it.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use walras_log_store::{Disk, LogError, Maintenance};

/// How long after one piece that was not done comes the next.
const RETRY_NS: u64 = 1_000_000_000;

/// Prepares the next segment and removes spent ones. Run it on any thread, while the log goes on; or drop it.
///
/// As long as it lives it holds the log's lock, so nobody else opens the folder under its hands. [`crate::ReplicaLog::reopen`] and
/// [`crate::ReplicaLog::close`] wait for it: without threads, run or drop it before anything else is asked of the log.
#[derive(Debug)]
#[must_use = "the next write may wait for it"]
pub struct Upkeep<D: Disk> {
    /// Dropped before `done`: who hears of the end may open the log.
    work: Maintenance<D>,
    done: Sender<bool>,
}

impl<D: Disk> Upkeep<D> {
    /// Does the work. A failure costs nothing yet: [`LogError::DiskFull`] is an early warning, one segment before the log would stop.
    pub fn run(self) -> Result<(), LogError> {
        let Self { work, done } = self;
        let result = work.run();
        // A log that is gone needs no result.
        let _ = done.send(result.is_ok());
        result
    }
}

/// The piece that is out.
#[derive(Debug, Default)]
pub(crate) struct UpkeepOut {
    out: Option<Receiver<bool>>,
    /// Not before this is the next one handed out.
    at_ns: u64,
}

impl UpkeepOut {
    pub(crate) fn may_begin(&mut self, now_ns: u64) -> bool {
        match self.out.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return false,
            Some(Ok(true)) => self.at_ns = 0,
            Some(Ok(false) | Err(TryRecvError::Disconnected)) | None => {}
        }
        self.out = None;
        now_ns >= self.at_ns
    }

    pub(crate) fn begin<D: Disk>(&mut self, now_ns: u64, work: Maintenance<D>) -> Upkeep<D> {
        let (done, out) = channel();
        self.out = Some(out);
        self.at_ns = now_ns.saturating_add(RETRY_NS);
        Upkeep { work, done }
    }

    pub(crate) fn wait(&mut self) {
        if let Some(out) = self.out.take() {
            // An error is a piece that was dropped.
            let _ = out.recv();
        }
    }
}
