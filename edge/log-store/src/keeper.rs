//! Keeps a log going over failed writes: what was not acknowledged is cut off before anything follows it.

use crate::disk::Disk;
use crate::error::LogError;
use crate::maintenance::Maintenance;
use crate::options::LogOptions;
use crate::writer::LogWriter;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use walras_types::LogIndex;

/// An attempt to write that fails after this long is not repeated at once, or a full disk would cost all the time there is.
const DEAR_NS: u64 = 100_000_000;
/// How long it waits then; and how long after one [`Upkeep`] that was not done comes the next.
const RETRY_NS: u64 = 1_000_000_000;

/// A log that outlives its writers: after a failed write it opens the log again and cuts off what nobody was told is durable.
///
/// It has neither thread nor clock. `now_ns` counts from any moment and never goes back. Work that may take long and that nobody
/// should wait for is handed out by [`upkeep`](Self::upkeep).
#[derive(Debug)]
pub struct LogKeeper<D: Disk> {
    disk: D,
    dir: PathBuf,
    options: LogOptions,
    /// None from a failure until the log has been opened again.
    log: Option<LogWriter<D>>,
    /// Every entry before this one was acknowledged, and none from it on.
    acknowledged_end: LogIndex,
    is_failing: bool,
    /// When the last write began, if it failed.
    failed_write_ns: Option<u64>,
    /// Not before this is a failed write tried again.
    write_at_ns: u64,
    /// Where the result of the upkeep that is out will come.
    upkeep_out: Option<Receiver<bool>>,
    upkeep_failed: bool,
    /// Not before this is upkeep that was not done handed out again.
    upkeep_at_ns: u64,
}

/// What became of a group of entries.
#[derive(Debug)]
pub enum Written {
    /// It is durable.
    Durable {
        /// Whether the write before it failed.
        was_failing: bool,
    },
    /// It is not in the log, and never will be. Without a failure nothing was tried, because a dear attempt failed a moment ago.
    Undone(Option<Failure>),
    /// Nobody knows: part or all of it may be on the disk until the log has been opened again and it was cut off, which happens before
    /// anything else is written. A crash before that brings it back.
    InDoubt {
        /// Why it was not written.
        failure: Failure,
        /// Why the log could not be opened again to cut it off.
        reopening: LogError,
    },
}

/// Something that failed, perhaps not for the first time.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    /// What failed.
    pub error: LogError,
    /// Whether the attempt before this one succeeded, so that this is news.
    pub is_first: bool,
}

impl<D: Disk> LogKeeper<D> {
    /// Keeps a log that was opened. What it holds counts as acknowledged.
    #[must_use]
    pub fn new(log: LogWriter<D>) -> Self {
        Self {
            disk: log.disk.clone(),
            dir: log.dir.clone(),
            options: log.options.clone(),
            acknowledged_end: log.durable_end(),
            log: Some(log),
            is_failing: false,
            failed_write_ns: None,
            write_at_ns: 0,
            upkeep_out: None,
            upkeep_failed: false,
            upkeep_at_ns: 0,
        }
    }

    /// The log, to look at and read; `None` from a failure until it has been opened again.
    #[must_use]
    pub fn log(&self) -> Option<&LogWriter<D>> {
        self.log.as_ref()
    }

    /// Every entry before this one was acknowledged, and none from it on.
    #[must_use]
    pub fn acknowledged_end(&self) -> LogIndex {
        self.acknowledged_end
    }

    /// Makes a group of entries durable, the first of which gets index `first`. Then say when it returned:
    /// [`write_ended`](Self::write_ended). May wait for [`Upkeep`] that is out: see there.
    ///
    /// # Panics
    ///
    /// When `first` is not [`acknowledged_end`](Self::acknowledged_end): entries would get other indexes than their senders are told.
    pub fn write<'a>(&mut self, now_ns: u64, first: LogIndex, entries: impl IntoIterator<Item = &'a [u8]>) -> Written {
        assert_eq!(first, self.acknowledged_end, "a group follows what was acknowledged, without a gap");
        self.failed_write_ns = None;
        if now_ns < self.write_at_ns {
            // A group that was in doubt before this one was answered as such.
            return Written::Undone(None);
        }
        if self.log.is_none()
            && let Err(error) = self.reopen()
        {
            // Nothing of this group was begun.
            return Written::Undone(Some(self.failed_write(now_ns, error)));
        }
        match self.append_and_sync(entries) {
            Ok(end) => {
                self.acknowledged_end = end;
                Written::Durable { was_failing: std::mem::take(&mut self.is_failing) }
            }
            Err(error) if error.is_retryable() => {
                // Nothing of it was written, and the log is as it was: to open it again would take more descriptors, not fewer.
                self.log.iter_mut().for_each(LogWriter::discard_pending);
                Written::Undone(Some(self.note_failure(now_ns, error)))
            }
            Err(error) => {
                let failure = self.failed_write(now_ns, error);
                // Whatever of this group reached the disk must not be there when somebody reads the log, or its senders can not be
                // told that it was refused. If it can not be undone now, it is before the next group is written.
                match self.reopen() {
                    Ok(()) => Written::Undone(Some(failure)),
                    Err(reopening) => Written::InDoubt { failure, reopening },
                }
            }
        }
    }

    /// When the last [`write`](Self::write) returned. After one that failed and took long, none is tried for a second.
    pub fn write_ended(&mut self, now_ns: u64) {
        let Some(begun_ns) = self.failed_write_ns.take() else { return };
        if now_ns.saturating_sub(begun_ns) > DEAR_NS {
            self.write_at_ns = now_ns.saturating_add(RETRY_NS);
        }
    }

    /// Lets go of entries up to and including `up_to`, as far as they fill whole segments. Returns the first entry still held, or `None`
    /// where there was nothing to do or the log is not open. A failure costs only space, and the log is opened again before the next
    /// write.
    pub fn let_go(&mut self, up_to: LogIndex) -> Result<Option<LogIndex>, LogError> {
        let Some(log) = &mut self.log else { return Ok(None) };
        if up_to < log.first_index() {
            return Ok(None);
        }
        let let_go = log.truncate_prefix(up_to);
        if log.is_poisoned() {
            self.log = None;
        }
        let_go.map(Some)
    }

    /// For when nothing comes for a while: proves to the next opening that every entry was synced, see [`LogWriter::seal`]. A failure
    /// costs that proof, and the log is opened again before the next write.
    pub fn seal(&mut self) -> Result<(), LogError> {
        let sealed = self.log.as_mut().map_or(Ok(()), LogWriter::seal);
        if self.log.as_ref().is_some_and(LogWriter::is_poisoned) {
            self.log = None;
        }
        sealed
    }

    /// Waits for upkeep that is out, seals and closes. A failure loses nothing that was acknowledged.
    pub fn close(mut self) -> Result<(), LogError> {
        self.wait_for_upkeep();
        self.log.take().map_or(Ok(()), |log| log.close().map(drop))
    }

    /// The slow work that is due, if any: ask after every durable write; it is cheap when nothing is due. Only one piece is out at a
    /// time, and after one that failed or was dropped the next comes no sooner than a second after it.
    pub fn upkeep(&mut self, now_ns: u64) -> Option<Upkeep<D>> {
        if let Some(out) = &self.upkeep_out {
            match out.try_recv() {
                Ok(is_done) => self.upkeep_ended(Some(is_done)),
                Err(TryRecvError::Disconnected) => self.upkeep_ended(None),
                Err(TryRecvError::Empty) => return None,
            }
        }
        if now_ns < self.upkeep_at_ns {
            return None;
        }
        let maintenance = self.log.as_mut()?.maintenance()?;
        self.upkeep_at_ns = now_ns.saturating_add(RETRY_NS);
        let (result, out) = channel();
        self.upkeep_out = Some(out);
        Some(Upkeep { maintenance, is_repeat: self.upkeep_failed, result })
    }

    fn append_and_sync<'a>(&mut self, entries: impl IntoIterator<Item = &'a [u8]>) -> Result<LogIndex, LogError> {
        let log = self.log.as_mut().expect("the caller opened it");
        for entry in entries {
            log.append(entry)?;
        }
        log.sync()
    }

    /// Notes a failure that ends the writer.
    fn failed_write(&mut self, begun_ns: u64, error: LogError) -> Failure {
        self.log = None;
        self.note_failure(begun_ns, error)
    }

    fn note_failure(&mut self, begun_ns: u64, error: LogError) -> Failure {
        self.failed_write_ns = Some(begun_ns);
        Failure { error, is_first: !std::mem::replace(&mut self.is_failing, true) }
    }

    /// Opens the log again and cuts off what was never acknowledged.
    fn reopen(&mut self) -> Result<(), LogError> {
        // It was handed out by the writer before, and holds its lock.
        self.wait_for_upkeep();
        let last = LogIndex(self.acknowledged_end.0.saturating_sub(1));
        let options = LogOptions { durable_floor: (last.0 > 0).then_some(last), ..self.options.clone() };
        let (mut log, _) = LogWriter::open(self.disk.clone(), &self.dir, options)?;
        if log.next_index() > self.acknowledged_end {
            log.truncate_suffix(self.acknowledged_end)?;
        }
        self.log = Some(log);
        Ok(())
    }

    fn wait_for_upkeep(&mut self) {
        self.log.iter().for_each(LogWriter::hurry);
        if let Some(out) = &self.upkeep_out {
            let result = out.recv().ok();
            self.upkeep_ended(result);
        }
    }

    /// Upkeep was done, failed, or was dropped undone.
    fn upkeep_ended(&mut self, result: Option<bool>) {
        self.upkeep_out = None;
        match result {
            Some(true) => (self.upkeep_failed, self.upkeep_at_ns) = (false, 0),
            Some(false) => self.upkeep_failed = true,
            None => {}
        }
    }
}

/// A piece of [`Maintenance`] that tells its [`LogKeeper`] how it ended.
///
/// Run it on a thread of its own: the keeper waits for it where it needs the next segment, or has to open the log again, before it is
/// done. Without threads, run or drop it before anything else is asked of the keeper. Dropping it undone is allowed.
#[derive(Debug)]
#[must_use = "the next write may wait for it"]
pub struct Upkeep<D: Disk> {
    /// Dropped before `result`: who hears of the end may open the log.
    maintenance: Maintenance<D>,
    is_repeat: bool,
    result: Sender<bool>,
}

impl<D: Disk> Upkeep<D> {
    /// Does the work. A failure costs nothing yet: [`LogError::DiskFull`] is an early warning, one segment before the log would stop.
    pub fn run(self) -> Result<(), Failure> {
        let Self { maintenance, is_repeat, result } = self;
        let done = maintenance.run();
        // A keeper that is gone needs no result.
        let _ = result.send(done.is_ok());
        done.map_err(|error| Failure { error, is_first: !is_repeat })
    }
}
