//! The log's thread: gives batches to the [`LogKeeper`] and says what became of them. One batch at a time, because the sequencer gives
//! no more.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tracing::{error, info, warn};
use walras_log_store::{Disk, Failure, LogError, LogKeeper, LogWriter, Upkeep, Written};
use walras_ports::Storage;
use walras_sequencer::Batch;
use walras_types::{LogIndex, RejectReason};

/// How long nothing comes before the log is sealed, which lets a later start tell damage from a torn tail.
const IDLE: Duration = Duration::from_secs(1);

/// Work for the log's thread.
#[derive(Debug)]
pub(super) enum LogJob {
    /// Make these entries durable.
    Write(Batch),
    /// Entries up to this one are in two snapshots: let go of them.
    LetGo(LogIndex),
}

/// What became of a batch.
#[derive(Debug)]
pub(super) enum LogDone {
    /// It is durable. The batch comes back for its memory.
    Durable(Batch),
    /// It is not in the log, and never will be.
    Undone(Batch, Trouble),
    /// Nobody knows: part or all of it may be on the disk until the log has been opened again and it was cut off. A crash before that
    /// brings it back.
    InDoubt(Batch, Trouble),
}

/// Why a batch is not in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The disk is full, or it failed.
    Disk,
    /// The process has as many files and connections open as it may.
    Descriptors,
}

impl Trouble {
    fn of(error: &LogError) -> Self {
        if error.is_retryable() { Self::Descriptors } else { Self::Disk }
    }

    /// What a client is refused with.
    pub(super) fn reason(self) -> RejectReason {
        match self {
            Self::Disk => RejectReason::StorageFull,
            Self::Descriptors => RejectReason::Overloaded,
        }
    }

    /// What the venue's status says.
    pub(super) fn storage(self) -> Storage {
        match self {
            Self::Disk => Storage::Full,
            Self::Descriptors => Storage::NoDescriptors,
        }
    }
}

pub(super) struct LogThread<D: Disk> {
    keeper: LogKeeper<D>,
    begun: Instant,
    /// Why the last attempt failed.
    trouble: Trouble,
}

impl<D: Disk> LogThread<D> {
    pub(super) fn new(log: LogWriter<D>) -> Self {
        Self { keeper: LogKeeper::new(log), begun: Instant::now(), trouble: Trouble::Disk }
    }

    /// Runs until the engine's thread lets go of its end.
    pub(super) fn run(mut self, jobs: &Receiver<LogJob>, done: &Sender<LogDone>) {
        loop {
            match jobs.recv_timeout(IDLE) {
                Ok(LogJob::Write(batch)) => {
                    let answer = self.write(batch);
                    if done.send(answer).is_err() {
                        break;
                    }
                }
                Ok(LogJob::LetGo(up_to)) => self.let_go(up_to),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(e) = self.keeper.seal() {
                        warn!("the log was not sealed: {e}; nothing that was acknowledged is lost");
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Err(e) = self.keeper.close() {
            warn!("the log was not sealed: {e}; nothing that was acknowledged is lost");
        }
    }

    fn write(&mut self, batch: Batch) -> LogDone {
        let written = self.keeper.write(self.now_ns(), batch.first, batch.entries());
        let now_ns = self.now_ns();
        self.keeper.write_ended(now_ns);
        match written {
            Written::Durable { was_failing } => {
                if was_failing {
                    info!("the log can be written again");
                }
                if let Some(upkeep) = self.keeper.upkeep(now_ns) {
                    run_in_a_thread(upkeep);
                }
                LogDone::Durable(batch)
            }
            Written::Undone(failure) => {
                if let Some(failure) = &failure {
                    self.trouble = Trouble::of(&failure.error);
                    tell(failure);
                }
                LogDone::Undone(batch, self.trouble)
            }
            Written::InDoubt { failure, reopening } => {
                self.trouble = Trouble::of(&reopening);
                tell(&failure);
                error!("the log can not be opened again: {reopening}");
                LogDone::InDoubt(batch, self.trouble)
            }
        }
    }

    fn let_go(&mut self, up_to: LogIndex) {
        match self.keeper.let_go(up_to) {
            Ok(Some(first)) => info!("the log now begins at entry {first}"),
            Ok(None) => {}
            Err(e) => warn!("log entries up to {up_to} could not be dropped, which costs only space: {e}"),
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn tell(Failure { error, is_first }: &Failure) {
    if *is_first {
        error!("the log can not be written, so commands are refused until it can: {error}");
    }
}

/// A thread for each: it is needed once in a segment, and must wait for nothing.
fn run_in_a_thread<D: Disk>(upkeep: Upkeep<D>) {
    let spawned = std::thread::Builder::new().name("walras-segment".into()).spawn(move || {
        if let Err(Failure { error, is_first: true }) = upkeep.run() {
            warn!("the log's next segment could not be prepared: {error}");
        }
    });
    if let Err(e) = spawned {
        warn!("no thread to prepare the log's next segment: {e}; the log's own thread will do it");
    }
}
