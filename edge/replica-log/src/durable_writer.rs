//! Writes a replica's log over failures of the disk: what was taken and is not durable is written again.

use crate::error::ReplicaLogError;
use crate::log::{FailedReplicaLog, ReplicaLog};
use crate::upkeep::Upkeep;
use std::collections::VecDeque;
use walras_consensus::{SnapshotMeta, Ticket, Write};
use walras_log_store::{Disk, LogError};

/// The shortest pause after a failed attempt. After one that took longer the pause is as long as that was ...
const PAUSE_NS_MIN: u64 = 100_000_000;
/// ... but no longer than this.
const PAUSE_NS_MAX: u64 = 2_000_000_000;

/// Keeps each write until it is durable, and opens the log again after a failure.
///
/// It has neither thread nor clock: `now_ns` counts from any moment and never goes back. What it owes takes no more memory than the
/// slots that the consensus has in memory anyway: writes that wait are merged into one.
#[derive(Debug)]
pub struct DurableWriter<D: Disk> {
    log: Log<D>,
    /// The open log has taken these, and they are not durable.
    in_log: Vec<Write>,
    /// It has not taken these. While attempts fail they are one.
    behind: VecDeque<Write>,
    /// The last one taken.
    taken: Ticket,
    /// The state at this snapshot is durable, and the log was not let go of before it yet.
    let_go: Option<SnapshotMeta>,
    is_failing: bool,
    /// When the last attempt began, if it failed.
    failed_ns: Option<u64>,
    /// No attempt is made before this.
    attempt_at_ns: u64,
}

#[derive(Debug)]
enum Log<D: Disk> {
    Open(Box<ReplicaLog<D>>),
    /// Until it is opened again.
    Failed(Box<FailedReplicaLog<D>>),
    /// While it changes from one to the other.
    Changing,
}

/// What came of an attempt to write what is owed.
#[derive(Debug)]
#[must_use = "a failure is to be reported"]
pub enum Attempt {
    /// Everything that was taken is there, up to this ticket.
    Done {
        /// Of the last write taken.
        ticket: Ticket,
        /// Whether a failure has ended with it.
        was_failing: bool,
    },
    /// Nothing was tried: the last attempt failed a moment ago. See [`DurableWriter::next_attempt_ns`].
    Paused,
    /// It failed and will be repeated.
    Failed(Failure),
    /// It failed for good: the replica must stop.
    Lost(ReplicaLogError),
}

/// A failure of the disk, perhaps not the first one.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    /// What failed.
    pub error: ReplicaLogError,
    /// Whether the attempt before this one succeeded, so that this is news.
    pub is_first: bool,
}

/// What a failure is about, as far as a participant's answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The disk is full, or failed.
    Disk,
    /// The process has as many files and connections open as it may.
    Descriptors,
}

impl Failure {
    /// What it is about.
    #[must_use]
    pub fn trouble(&self) -> Trouble {
        let store = match &self.error {
            ReplicaLogError::Store(error) => Some(error),
            ReplicaLogError::Open(error) => match &**error {
                crate::error::OpenError::Store(error) => Some(error),
                _ => None,
            },
            _ => None,
        };
        if matches!(store, Some(LogError::OutOfDescriptors { .. })) { Trouble::Descriptors } else { Trouble::Disk }
    }
}

impl<D: Disk> DurableWriter<D> {
    /// Of a log that was opened just now.
    #[must_use]
    pub fn new(log: ReplicaLog<D>) -> Self {
        Self {
            log: Log::Open(Box::new(log)),
            in_log: Vec::new(),
            behind: VecDeque::new(),
            taken: Ticket(0),
            let_go: None,
            is_failing: false,
            failed_ns: None,
            attempt_at_ns: 0,
        }
    }

    /// The log, to look at and read; `None` from a failure until it is open again.
    #[must_use]
    pub fn log(&self) -> Option<&ReplicaLog<D>> {
        match &self.log {
            Log::Open(log) => Some(log),
            Log::Failed(_) | Log::Changing => None,
        }
    }

    /// Takes a write. Costs no I/O: an attempt writes it.
    pub fn take(&mut self, write: Write) {
        self.taken = write.ticket;
        match self.behind.back_mut().filter(|_| self.is_failing) {
            Some(owed) => owed.absorb(write),
            None => self.behind.push_back(write),
        }
    }

    /// The state at this snapshot is durable: the next attempt lets go of the log before it, as [`ReplicaLog::let_go`] does.
    pub fn let_go(&mut self, snapshot: SnapshotMeta) {
        self.let_go = Some(snapshot);
    }

    /// The last write taken.
    #[must_use]
    pub fn taken(&self) -> Ticket {
        self.taken
    }

    /// Whether anything that was taken is not durable.
    #[must_use]
    pub fn is_owing(&self) -> bool {
        !(self.in_log.is_empty() && self.behind.is_empty())
    }

    /// Hands everything that was taken to the operating system. It stays owed until [`sync`](Self::sync), which alone ends a failure.
    /// Say afterwards when it returned: [`attempt_ended`](Self::attempt_ended).
    pub fn flush(&mut self, now_ns: u64) -> Attempt {
        self.attempt(now_ns, ReplicaLog::flush)
    }

    /// Makes everything that was taken durable. Say afterwards when it returned.
    pub fn sync(&mut self, now_ns: u64) -> Attempt {
        let attempt = self.attempt(now_ns, |log| log.sync().map(drop));
        self.end_of_failure(attempt)
    }

    /// For when nothing comes for a while: the same, and later damage to the last writes can be distinguished from a crash.
    pub fn seal(&mut self, now_ns: u64) -> Attempt {
        let attempt = self.attempt(now_ns, |log| log.sync().and_then(|_| log.seal()));
        self.end_of_failure(attempt)
    }

    fn end_of_failure(&mut self, attempt: Attempt) -> Attempt {
        let Attempt::Done { ticket, .. } = attempt else { return attempt };
        self.in_log.clear();
        Attempt::Done { ticket, was_failing: std::mem::take(&mut self.is_failing) }
    }

    /// When the last attempt returned: the pause after a failure is counted from here.
    pub fn attempt_ended(&mut self, now_ns: u64) {
        if let Some(begun_ns) = self.failed_ns.take() {
            let pause_ns = now_ns.saturating_sub(begun_ns).clamp(PAUSE_NS_MIN, PAUSE_NS_MAX);
            self.attempt_at_ns = now_ns.saturating_add(pause_ns);
        }
    }

    /// When the attempt that failed is to be repeated, whether or not anything comes before; `None` while none failed.
    #[must_use]
    pub fn next_attempt_ns(&self) -> Option<u64> {
        self.is_failing.then_some(self.attempt_at_ns)
    }

    /// As [`ReplicaLog::upkeep`], while attempts succeed.
    pub fn upkeep(&mut self, now_ns: u64) -> Option<Upkeep<D>> {
        match &mut self.log {
            Log::Open(log) if !self.is_failing => log.upkeep(now_ns),
            Log::Open(_) | Log::Failed(_) | Log::Changing => None,
        }
    }

    /// Makes everything durable and leaves a mark that the replica stopped in good order. Waits for [`Upkeep`] that is out.
    ///
    /// # Errors
    /// The disk's. Then what is owed may be missing, as after a crash.
    pub fn close(mut self) -> Result<(), ReplicaLogError> {
        self.hand_over()?;
        match self.log {
            Log::Open(log) => log.close(),
            Log::Failed(_) | Log::Changing => Err(ReplicaLogError::Failed),
        }
    }

    fn attempt(&mut self, now_ns: u64, act: impl FnOnce(&mut ReplicaLog<D>) -> Result<(), ReplicaLogError>) -> Attempt {
        if now_ns < self.attempt_at_ns {
            return Attempt::Paused;
        }
        match self.hand_over().and_then(act) {
            Ok(()) => {
                self.attempt_at_ns = 0;
                Attempt::Done { ticket: self.taken, was_failing: false }
            }
            Err(error) => {
                self.failed_ns = Some(now_ns);
                self.keep_owed(error.is_retryable());
                if error.may_pass() {
                    Attempt::Failed(Failure { error, is_first: !std::mem::replace(&mut self.is_failing, true) })
                } else {
                    Attempt::Lost(error)
                }
            }
        }
    }

    /// Gives the log what it has not taken yet; opens it first, after a failure.
    fn hand_over(&mut self) -> Result<&mut ReplicaLog<D>, ReplicaLogError> {
        if let Log::Failed(failed) = &self.log {
            let opened = failed.open().map_err(|error| ReplicaLogError::Open(Box::new(error)))?;
            self.log = Log::Open(Box::new(opened));
        }
        let Log::Open(log) = &mut self.log else { return Err(ReplicaLogError::Failed) };
        // First, since it makes room.
        if let Some(snapshot) = &self.let_go {
            match log.let_go(snapshot) {
                Ok(()) => self.let_go = None,
                // The next attempt asks again.
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error),
            }
        }
        while let Some(write) = self.behind.pop_front() {
            // Whatever fails now, it is owed.
            let taken = log.write(&write);
            self.in_log.push(write);
            taken?;
        }
        Ok(log)
    }

    /// After a failure. What the log has taken stays there if nothing of it was written.
    fn keep_owed(&mut self, is_log_unchanged: bool) {
        if !is_log_unchanged {
            self.log = match std::mem::replace(&mut self.log, Log::Changing) {
                Log::Open(log) => Log::Failed(Box::new(log.into_failed())),
                other => other,
            };
            self.behind = self.in_log.drain(..).chain(self.behind.drain(..)).collect();
        }
        if let Some(mut owed) = self.behind.pop_front() {
            self.behind.drain(..).for_each(|later| owed.absorb(later));
            self.behind.push_back(owed);
        }
    }
}
