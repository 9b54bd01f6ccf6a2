//! The log's thread: appends a batch, makes it durable, says so. One batch at a time, because the sequencer gives no more.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tracing::{error, info, warn};
use walras_log_store::{Disk, LogError, LogOptions, LogWriter};
use walras_sequencer::Batch;
use walras_types::LogIndex;

/// How long nothing comes before the log is sealed, which lets a later start tell damage from a torn tail.
const IDLE: Duration = Duration::from_secs(1);

/// An attempt to write that fails after this long is not repeated at once, or a full disk would cost all the time there is.
const DEAR: Duration = Duration::from_millis(100);
/// Longest pause between attempts.
const RETRY_MAX: Duration = Duration::from_secs(1);

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
    Undone(Batch),
    /// Nobody knows: part or all of it may be on the disk until the log has been opened again and it was cut off. A crash before that
    /// brings it back.
    InDoubt(Batch),
}

/// The log and how to open it again: after a failed write it takes no more until it has been read anew.
pub(super) struct LogKeeper<D: Disk> {
    disk: D,
    dir: PathBuf,
    options: LogOptions,
    log: Option<LogWriter<D>>,
    /// Last entry acknowledged, and whether there is one.
    acknowledged: LogIndex,
    is_failing: bool,
    /// Not before this is a failed write tried again: set where an attempt is dear.
    retry_at: Instant,
    /// Whether the last preparation of a segment failed, and not before when it is tried again.
    segment_failed: Arc<AtomicBool>,
    segment_at: Instant,
}

impl<D: Disk> LogKeeper<D> {
    pub(super) fn new(disk: D, dir: PathBuf, options: LogOptions, log: LogWriter<D>) -> Self {
        let acknowledged = LogIndex(log.durable_end().0.saturating_sub(1));
        let now = Instant::now();
        Self {
            disk,
            dir,
            options,
            log: Some(log),
            acknowledged,
            is_failing: false,
            retry_at: now,
            segment_failed: Arc::default(),
            segment_at: now,
        }
    }

    /// Runs until the engine's thread lets go of its end.
    pub(super) fn run(mut self, jobs: &Receiver<LogJob>, done: &Sender<LogDone>) {
        loop {
            let answer = match jobs.recv_timeout(IDLE) {
                Ok(LogJob::Write(batch)) => self.write_or_undo(batch),
                Ok(LogJob::LetGo(up_to)) => {
                    self.let_go(up_to);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.seal();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if done.send(answer).is_err() {
                break;
            }
        }
        if let Some(Err(e)) = self.log.take().map(LogWriter::close) {
            warn!("the log was not sealed: {e}; nothing that was acknowledged is lost");
        }
    }

    fn write_or_undo(&mut self, batch: Batch) -> LogDone {
        let begun = Instant::now();
        if begun < self.retry_at {
            // Nothing of it was written; a batch in doubt before it was answered as such.
            return LogDone::Undone(batch);
        }
        let written = match self.log.is_none().then(|| self.reopen()) {
            // Nothing of this batch was begun.
            Some(Err(e)) => Err((e, false)),
            Some(Ok(())) | None => self.write(&batch).map_err(|e| (e, true)),
        };
        match written {
            Ok(()) => {
                self.acknowledged = batch.last();
                if std::mem::take(&mut self.is_failing) {
                    info!("the log can be written again");
                }
                self.prepare_next_segment();
                LogDone::Durable(batch)
            }
            Err((e, was_begun)) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    error!("the log can not be written, so commands are refused until it can: {e}");
                }
                // Whatever reached the disk of this batch must not be there when somebody reads the log, or its senders can not be
                // told that it was refused. If it can not be undone now it is before the next batch is written.
                self.log = None;
                let in_doubt = was_begun && self.reopen().inspect_err(|e| error!("the log can not be opened again: {e}")).is_err();
                let took = begun.elapsed();
                if took > DEAR {
                    self.retry_at = Instant::now() + (took * 10).min(RETRY_MAX);
                }
                if in_doubt { LogDone::InDoubt(batch) } else { LogDone::Undone(batch) }
            }
        }
    }

    fn write(&mut self, batch: &Batch) -> Result<(), LogError> {
        let log = self.log.as_mut().expect("the caller opened it");
        for entry in batch.entries() {
            log.append(entry)?;
        }
        log.sync()?;
        Ok(())
    }

    /// Opens the log again and cuts off what was never acknowledged.
    fn reopen(&mut self) -> Result<(), LogError> {
        let floor = (self.acknowledged.0 > 0).then_some(self.acknowledged);
        let options = LogOptions { durable_floor: floor, ..self.options.clone() };
        let (mut log, _) = LogWriter::open(self.disk.clone(), &self.dir, options)?;
        if log.next_index() > self.acknowledged.next() {
            log.truncate_suffix(self.acknowledged.next())?;
        }
        self.log = Some(log);
        Ok(())
    }

    fn prepare_next_segment(&mut self) {
        let has_failed = self.segment_failed.load(Relaxed);
        if has_failed && Instant::now() < self.segment_at {
            return;
        }
        let Some(chores) = self.log.as_mut().and_then(LogWriter::maintenance) else { return };
        self.segment_at = Instant::now() + RETRY_MAX;
        let failed = Arc::clone(&self.segment_failed);
        // A thread for each: it is needed once in a segment, and must wait for nothing.
        let spawned = std::thread::Builder::new().name("walras-segment".into()).spawn(move || {
            let prepared = chores.run();
            if let Err(e) = &prepared
                && !has_failed
            {
                warn!("the log's next segment could not be prepared: {e}");
            }
            failed.store(prepared.is_err(), Relaxed);
        });
        if let Err(e) = spawned {
            warn!("no thread to prepare the log's next segment: {e}; the log's own thread will do it");
        }
    }

    fn let_go(&mut self, up_to: LogIndex) {
        let Some(log) = &mut self.log else { return };
        if up_to < log.first_index() {
            return;
        }
        match log.truncate_prefix(up_to) {
            Ok(first) => info!("the log now begins at entry {first}"),
            Err(e) => {
                warn!("log entries up to {up_to} could not be dropped, which costs only space: {e}");
                self.log = None;
            }
        }
    }

    fn seal(&mut self) {
        if let Some(log) = &mut self.log
            && let Err(e) = log.seal()
        {
            warn!("the log was not sealed: {e}; nothing that was acknowledged is lost");
            self.log = None;
        }
    }
}
