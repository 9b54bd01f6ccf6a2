//! Writes a replica's log across failures of the disk: accepted writes that are not durable are written again.

use crate::error::ReplicaLogError;
use crate::log::{FailedReplicaLog, ReplicaLog};
use crate::upkeep::Upkeep;
use std::collections::VecDeque;
use walras_consensus::{SnapshotMeta, Ticket, Write};
use walras_log_store::{Disk, LogError};

/// The shortest pause after a failed attempt. After an attempt that took longer, the pause is as long as the attempt ...
const PAUSE_NS_MIN: u64 = 100_000_000;
/// ... but at most this.
const PAUSE_NS_MAX: u64 = 2_000_000_000;

/// Keeps each write until it is durable, and opens the log again after a failure.
///
/// It has no thread and no clock: `now_ns` counts from any epoch and never goes back. Pending writes are merged into one, so they
/// take no more memory than the slots that the consensus holds in memory anyway.
#[derive(Debug)]
pub struct DurableWriter<D: Disk> {
    log: Log<D>,
    /// Writes that the open log has accepted and that are not durable.
    in_log: Vec<Write>,
    /// Writes that the log has not accepted yet. While attempts fail, they are merged into one.
    behind: VecDeque<Write>,
    /// The last accepted ticket.
    taken: Ticket,
    /// A durable snapshot up to which the log can be dropped but has not been yet.
    let_go: Option<SnapshotMeta>,
    is_failing: bool,
    /// Start of the last attempt, if it failed.
    failed_ns: Option<u64>,
    /// No attempt is made before this time.
    attempt_at_ns: u64,
}

#[derive(Debug)]
enum Log<D: Disk> {
    Open(Box<ReplicaLog<D>>),
    /// After a failure, until the log is open again.
    Failed(Box<FailedReplicaLog<D>>),
    /// During the transition between the two.
    Changing,
}

/// The result of an attempt to write pending data.
#[derive(Debug)]
#[must_use = "a failure must be reported"]
pub enum Attempt {
    /// All accepted writes are written.
    Done {
        /// Ticket of the last accepted write.
        ticket: Ticket,
        /// Whether this ends a failure.
        was_failing: bool,
    },
    /// Nothing was attempted, because the last attempt failed recently. See [`DurableWriter::next_attempt_ns`].
    Paused,
    /// The attempt failed and will be repeated.
    Failed(Failure),
    /// The failure is permanent: the replica must stop.
    Lost(ReplicaLogError),
}

/// A failure of the disk, perhaps not the first one.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    /// The error.
    pub error: ReplicaLogError,
    /// Whether the previous attempt succeeded, so that this failure is new.
    pub is_first: bool,
}

/// The kind of a failure, as far as answers to participants depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The disk is full, or failed.
    Disk,
    /// The process has reached its limit of open files and connections.
    Descriptors,
}

impl Failure {
    /// The kind of this failure.
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
    /// Creates a writer for a log that was just opened.
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

    /// The log, for reading; `None` from a failure until it is open again.
    #[must_use]
    pub fn log(&self) -> Option<&ReplicaLog<D>> {
        match &self.log {
            Log::Open(log) => Some(log),
            Log::Failed(_) | Log::Changing => None,
        }
    }

    /// Accepts a write, without I/O; the next attempt writes it.
    pub fn take(&mut self, write: Write) {
        self.taken = write.ticket;
        match self.behind.back_mut().filter(|_| self.is_failing) {
            Some(owed) => owed.absorb(write),
            None => self.behind.push_back(write),
        }
    }

    /// The state at this snapshot is durable: the next attempt drops the log before it, as [`ReplicaLog::let_go`] does.
    pub fn let_go(&mut self, snapshot: SnapshotMeta) {
        self.let_go = Some(snapshot);
    }

    /// Ticket of the last accepted write.
    #[must_use]
    pub fn taken(&self) -> Ticket {
        self.taken
    }

    /// Whether any accepted write is not durable.
    #[must_use]
    pub fn is_owing(&self) -> bool {
        !(self.in_log.is_empty() && self.behind.is_empty())
    }

    /// Hands all accepted writes to the operating system. They stay pending until [`sync`](Self::sync), and only that ends a
    /// failure. The caller then reports when this returned, with [`attempt_ended`](Self::attempt_ended).
    pub fn flush(&mut self, now_ns: u64) -> Attempt {
        self.attempt(now_ns, ReplicaLog::flush)
    }

    /// Makes all accepted writes durable. The caller then reports when this returned, with [`attempt_ended`](Self::attempt_ended).
    pub fn sync(&mut self, now_ns: u64) -> Attempt {
        let attempt = self.attempt(now_ns, |log| log.sync().map(drop));
        self.end_of_failure(attempt)
    }

    /// For idle times: like [`sync`](Self::sync), and later damage to the last writes can be distinguished from a crash.
    pub fn seal(&mut self, now_ns: u64) -> Attempt {
        let attempt = self.attempt(now_ns, |log| log.sync().and_then(|_| log.seal()));
        self.end_of_failure(attempt)
    }

    fn end_of_failure(&mut self, attempt: Attempt) -> Attempt {
        let Attempt::Done { ticket, .. } = attempt else { return attempt };
        self.in_log.clear();
        Attempt::Done { ticket, was_failing: std::mem::take(&mut self.is_failing) }
    }

    /// Reports when the last attempt returned: the pause after a failure starts here.
    pub fn attempt_ended(&mut self, now_ns: u64) {
        if let Some(begun_ns) = self.failed_ns.take() {
            let pause_ns = now_ns.saturating_sub(begun_ns).clamp(PAUSE_NS_MIN, PAUSE_NS_MAX);
            self.attempt_at_ns = now_ns.saturating_add(pause_ns);
        }
    }

    /// When to repeat the failed attempt, even if there is no new write; `None` if none failed.
    #[must_use]
    pub fn next_attempt_ns(&self) -> Option<u64> {
        self.is_failing.then_some(self.attempt_at_ns)
    }

    /// Like [`ReplicaLog::upkeep`], while attempts succeed.
    pub fn upkeep(&mut self, now_ns: u64) -> Option<Upkeep<D>> {
        match &mut self.log {
            Log::Open(log) if !self.is_failing => log.upkeep(now_ns),
            Log::Open(_) | Log::Failed(_) | Log::Changing => None,
        }
    }

    /// Makes everything durable and marks an orderly stop. Waits for unfinished [`Upkeep`].
    ///
    /// # Errors
    /// The disk's. Pending writes may then be missing, as after a crash.
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

    /// Passes pending writes to the log, after opening it again if it had failed.
    fn hand_over(&mut self) -> Result<&mut ReplicaLog<D>, ReplicaLogError> {
        if let Log::Failed(failed) = &self.log {
            let opened = failed.open().map_err(|error| ReplicaLogError::Open(Box::new(error)))?;
            self.log = Log::Open(Box::new(opened));
        }
        let Log::Open(log) = &mut self.log else { return Err(ReplicaLogError::Failed) };
        // First, because it frees space.
        if let Some(snapshot) = &self.let_go {
            match log.let_go(snapshot) {
                Ok(()) => self.let_go = None,
                // The next attempt repeats it.
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error),
            }
        }
        while let Some(write) = self.behind.pop_front() {
            // The write stays pending, whatever fails now.
            let taken = log.write(&write);
            self.in_log.push(write);
            taken?;
        }
        Ok(log)
    }

    /// After a failure: keeps all writes that are not durable. Those that the log has accepted stay in it if it is unchanged.
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
