//! Slow work outside the log's thread: at most one piece is out at a time, and opening the log again waits for it.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use walras_log_store::{Disk, LogError, Maintenance};

/// Delay until the next piece after a failed one.
const RETRY_NS: u64 = 1_000_000_000;

/// Prepares the next segment and removes spent ones. Run it on any thread while the log is in use, or drop it.
///
/// It holds the log's lock, so that no other process opens the folder meanwhile. [`crate::ReplicaLog::reopen`] and
/// [`crate::ReplicaLog::close`] wait for it: in a program without threads, run or drop it before any other call to the log.
#[derive(Debug)]
#[must_use = "the next write may wait for it"]
pub struct Upkeep<D: Disk> {
    /// Dropped before `done`, because the log may be opened as soon as `done` is signalled.
    work: Maintenance<D>,
    done: Sender<bool>,
}

impl<D: Disk> Upkeep<D> {
    /// Does the work. A failure is not fatal yet: [`LogError::DiskFull`] is an early warning, one segment before the log would
    /// stop.
    pub fn run(self) -> Result<(), LogError> {
        let Self { work, done } = self;
        let result = work.run();
        // If the log was dropped, nobody needs the result.
        let _ = done.send(result.is_ok());
        result
    }
}

/// The piece of work that is out.
#[derive(Debug, Default)]
pub(crate) struct UpkeepOut {
    out: Option<Receiver<bool>>,
    /// When the next piece may be handed out.
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
            // An error means that the piece was dropped.
            let _ = out.recv();
        }
    }
}
