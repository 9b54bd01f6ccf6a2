//! The log and how to open it again: after a failed write it takes no more until it has been read anew.

use std::path::PathBuf;

use walras_log_store::{LogError, LogOptions, LogWriter};
use walras_sequencer::Batch;
use walras_types::LogIndex;

use crate::disk::VenueDisk;
use crate::mutation::Mutation;

/// Entries as the disk has them, or why it could not be read.
pub(crate) type LogEntries = Result<Vec<(LogIndex, Vec<u8>)>, LogError>;

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is durable.
    Durable,
    /// It is not in the log, and never will be.
    Undone,
    /// Nobody knows: part or all of it may be on the disk. Its senders can be told nothing until [`Keeper::reopen`] has cut it off.
    InDoubt,
}

#[derive(Debug)]
pub(crate) struct Keeper {
    disk: VenueDisk,
    dir: PathBuf,
    options: LogOptions,
    log: Option<LogWriter<VenueDisk>>,
    /// Last entry known to be durable.
    acknowledged: LogIndex,
    mutation: Option<Mutation>,
}

impl Keeper {
    pub(crate) fn new(
        disk: VenueDisk,
        dir: PathBuf,
        options: LogOptions,
        log: LogWriter<VenueDisk>,
        mutation: Option<Mutation>,
    ) -> Self {
        let acknowledged = LogIndex(log.durable_end().0 - 1);
        Self { disk, dir, options, log: Some(log), acknowledged, mutation }
    }

    pub(crate) fn write(&mut self, batch: &Batch) -> Written {
        if self.log.is_none() && (self.mutation == Some(Mutation::NeverReopen) || self.reopen().is_err()) {
            // Nothing of this batch was begun, and everything before it is settled.
            return Written::Undone;
        }
        match self.append_and_sync(batch) {
            Ok(()) => {
                self.acknowledged = batch.last();
                Written::Durable
            }
            Err(_) if self.mutation == Some(Mutation::IgnoreFailedSync) => {
                self.log = None;
                self.acknowledged = batch.last();
                Written::Durable
            }
            Err(_) => {
                self.log = None;
                let undone = self.mutation == Some(Mutation::RefuseBeforeUndone) || self.reopen().is_ok();
                if undone { Written::Undone } else { Written::InDoubt }
            }
        }
    }

    fn append_and_sync(&mut self, batch: &Batch) -> Result<(), LogError> {
        let log = self.log.as_mut().expect("the caller opened it");
        for entry in batch.entries() {
            log.append(entry)?;
        }
        if self.mutation == Some(Mutation::AcknowledgeBeforeSync) && log.pending_bytes() < 1024 {
            return Ok(());
        }
        log.sync().map(|_| ())
    }

    /// Opens the log again and cuts off what was never acknowledged.
    pub(crate) fn reopen(&mut self) -> Result<(), LogError> {
        self.log = None;
        let durable_floor = (self.acknowledged.0 > 0).then_some(self.acknowledged);
        let options = LogOptions { durable_floor, ..self.options.clone() };
        let (mut log, _) = LogWriter::open(self.disk.clone(), &self.dir, options)?;
        if log.next_index() > self.acknowledged.next() {
            log.truncate_suffix(self.acknowledged.next())?;
        }
        self.log = Some(log);
        Ok(())
    }

    /// Prepares the next segment and removes spent ones. A failure costs nothing yet.
    pub(crate) fn maintain(&mut self) {
        if let Some(log) = &mut self.log {
            let _ = log.maintain();
        }
    }

    /// Lets go of entries that snapshots replace.
    pub(crate) fn let_go(&mut self, up_to: LogIndex) {
        let Some(log) = &mut self.log else { return };
        if up_to >= log.first_index() && log.truncate_prefix(up_to).is_err() {
            self.log = None;
        }
    }

    /// While nothing comes: proves to the next opening that all entries were synced.
    pub(crate) fn seal(&mut self) {
        if self.log.as_mut().is_some_and(|log| log.seal().is_err()) {
            self.log = None;
        }
    }

    /// Durable entries from `from` on, or from the first held, as the disk has them; `None` while the log is not open.
    pub(crate) fn entries_from(&self, from: LogIndex) -> Option<LogEntries> {
        let log = self.log.as_ref()?;
        let from = from.max(log.first_index());
        let read = || {
            let mut entries = Vec::new();
            if from < log.durable_end() {
                let mut reader = log.reader(from)?;
                while let Some(entry) = reader.next()? {
                    entries.push((entry.index, entry.payload.to_vec()));
                }
            }
            Ok(entries)
        };
        Some(read())
    }
}
