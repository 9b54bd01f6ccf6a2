//! What writes the log: takes jobs, attempts what is due, reports. The thread that has it may block on the disk.

use std::time::{Duration, Instant};

use tracing::{error, info, warn};
use walras_consensus::{Durability, SnapshotMeta, Ticket, Write};
use walras_log_store::Disk;
use walras_ports::Storage;
use walras_replica_log::{Attempt, DurableWriter, ReplicaLog, Trouble};

/// Asked of the log.
pub(super) enum LogJob {
    /// Make this durable, or with [`Durability::Memory`] hand it to the operating system.
    Write(Write),
    /// What is before this snapshot may go.
    LetGo(SnapshotMeta),
}

/// What it says.
pub(super) enum LogReport {
    /// This write and those before it are as durable as they need to be.
    Persisted(Ticket),
    /// The log can not be written now, or can be again. What could not be written is still to come.
    Storage(Storage),
    /// The log is lost; it takes nothing more.
    Lost(String),
}

/// With nothing to write for this long, the log is sealed.
const IDLE: Duration = Duration::from_millis(200);
/// In memory mode, the longest that something lies unsynced.
const MEMORY_SYNC_EVERY: Duration = Duration::from_millis(20);
/// How long a sealed log may be left alone.
const FOR_LONG: Duration = Duration::from_secs(3600);

/// What an attempt was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// What was taken is as durable as it needs to be.
    Persist,
    /// What lies unsynced in memory mode is on the disk.
    Sync,
    /// The log is idle.
    Seal,
}

/// The log, with what is due.
pub(super) struct LogHost<D: Disk> {
    log: DurableWriter<D>,
    durability: Durability,
    begun: Instant,
    /// The last write that is reported as durable as it needs to be.
    persisted: Ticket,
    taken: Ticket,
    /// As was reported last.
    storage: Storage,
    /// In memory mode: since when something lies unsynced.
    unsynced_since: Option<Instant>,
    /// When something was taken last, where the log is not sealed since.
    unsealed_since: Option<Instant>,
    /// Nothing is attempted any more.
    is_lost: bool,
}

impl<D: Disk> LogHost<D> {
    /// Of a log that was opened just now.
    pub(super) fn new(log: ReplicaLog<D>, durability: Durability) -> Self {
        Self {
            log: DurableWriter::new(log),
            durability,
            begun: Instant::now(),
            persisted: Ticket(0),
            taken: Ticket(0),
            storage: Storage::Ok,
            unsynced_since: None,
            unsealed_since: None,
            is_lost: false,
        }
    }

    /// Takes a job. Costs no I/O.
    pub(super) fn take(&mut self, job: LogJob) {
        match job {
            LogJob::Write(write) => {
                self.taken = write.ticket;
                self.log.take(write);
            }
            LogJob::LetGo(meta) => self.log.let_go(meta),
        }
        self.unsealed_since = Some(Instant::now());
    }

    /// How long nothing is due.
    pub(super) fn wait(&self) -> Duration {
        if self.is_lost {
            return FOR_LONG;
        }
        if let Some(at_ns) = self.log.next_attempt_ns() {
            return Duration::from_nanos(at_ns.saturating_sub(self.now_ns()));
        }
        if self.taken > self.persisted {
            return Duration::ZERO;
        }
        match (self.unsynced_since, self.unsealed_since) {
            (Some(since), _) => MEMORY_SYNC_EVERY.saturating_sub(since.elapsed()),
            (None, Some(since)) => IDLE.saturating_sub(since.elapsed()),
            (None, None) => FOR_LONG,
        }
    }

    /// Attempts what is due now.
    pub(super) fn attempt_due(&mut self, report: &mut impl FnMut(LogReport)) {
        if self.is_lost {
            return;
        }
        if self.taken > self.persisted {
            self.attempt(Step::Persist, report);
        } else if self.unsynced_since.is_none() && self.unsealed_since.is_some_and(|since| since.elapsed() >= IDLE) {
            return self.attempt(Step::Seal, report);
        }
        // After a failure at once: only that says that the disk is back.
        let is_failing = self.log.next_attempt_ns().is_some();
        if self.unsynced_since.is_some_and(|since| is_failing || since.elapsed() >= MEMORY_SYNC_EVERY) {
            self.attempt(Step::Sync, report);
        }
    }

    /// Makes everything durable and closes the log in good order.
    pub(super) fn close(self) {
        if self.is_lost {
            return;
        }
        if let Err(e) = self.log.close() {
            error!("the log could not be closed in good order: {e}");
        }
    }

    fn attempt(&mut self, step: Step, report: &mut impl FnMut(LogReport)) {
        let now_ns = self.now_ns();
        let attempt = match (step, self.durability) {
            (Step::Persist, Durability::Memory) => self.log.flush(now_ns),
            (Step::Persist, Durability::Disk) | (Step::Sync, _) => self.log.sync(now_ns),
            (Step::Seal, _) => self.log.seal(now_ns),
        };
        let ended_ns = self.now_ns();
        self.log.attempt_ended(ended_ns);
        match attempt {
            Attempt::Done { ticket, was_failing } => {
                match (step, self.durability) {
                    (Step::Persist, Durability::Memory) => {
                        self.unsynced_since = self.unsynced_since.or_else(|| Some(Instant::now()));
                    }
                    (Step::Persist, Durability::Disk) | (Step::Sync, _) => self.unsynced_since = None,
                    (Step::Seal, _) => (self.unsynced_since, self.unsealed_since) = (None, None),
                }
                if ticket > self.persisted {
                    self.persisted = ticket;
                    report(LogReport::Persisted(ticket));
                }
                if was_failing {
                    info!("the log can be written again");
                    self.storage = Storage::Ok;
                    report(LogReport::Storage(Storage::Ok));
                }
                self.prepare_ahead(ended_ns);
            }
            Attempt::Paused => {}
            Attempt::Failed(failure) => {
                let storage = match failure.trouble() {
                    Trouble::Disk => Storage::Full,
                    Trouble::Descriptors => Storage::NoDescriptors,
                };
                if failure.is_first {
                    error!("the log can not be written, so commands are refused until it can: {failure}");
                }
                if std::mem::replace(&mut self.storage, storage) != storage {
                    report(LogReport::Storage(storage));
                }
            }
            Attempt::Lost(error) => {
                self.is_lost = true;
                report(LogReport::Lost(error.to_string()));
            }
        }
    }

    /// Has the next segment made by another thread, where it is time.
    fn prepare_ahead(&mut self, now_ns: u64) {
        let Some(upkeep) = self.log.upkeep(now_ns) else { return };
        let spawned = std::thread::Builder::new().name("walras-segment".into()).spawn(move || {
            if let Err(e) = upkeep.run() {
                warn!("the log's next segment could not be prepared: {e}");
            }
        });
        if let Err(e) = spawned {
            warn!("no thread to prepare the log's next segment: {e}; it will be made when it is needed");
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
