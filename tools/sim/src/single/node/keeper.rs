//! The product's [`LogKeeper`], and what mutations plant around it.

use walras_log_store::{LogError, LogKeeper, LogWriter, Upkeep, Written};
use walras_sequencer::Batch;
use walras_types::LogIndex;

use crate::common::disk::VenueDisk;
use crate::single::mutation::Mutation;

/// Entries as the disk has them, or why it could not be read.
pub(crate) type LogEntries = Result<Vec<(LogIndex, Vec<u8>)>, LogError>;

/// A keeper that may be made to err.
#[derive(Debug)]
pub(crate) struct Keeper {
    inner: LogKeeper<VenueDisk>,
    mutation: Option<Mutation>,
    /// Entries that [`Mutation::AcknowledgeBeforeSync`] owes to the log.
    owed: Vec<Vec<u8>>,
    /// A write failed, after which [`Mutation::NeverReopen`] does none.
    has_failed: bool,
}

/// [`Mutation::AcknowledgeBeforeSync`] owes no more than this.
const OWED_BYTES_MAX: usize = 1024;

impl Keeper {
    pub(crate) fn new(log: LogWriter<VenueDisk>, mutation: Option<Mutation>) -> Self {
        Self { inner: LogKeeper::new(log), mutation, owed: Vec::new(), has_failed: false }
    }

    /// Writes a batch, which takes from `begun_ns` to `ended_ns`.
    pub(crate) fn write(&mut self, begun_ns: u64, ended_ns: u64, batch: &Batch) -> Written {
        let written = match self.mutation {
            Some(Mutation::AcknowledgeBeforeSync) => self.owe_or_write(begun_ns, batch),
            Some(Mutation::NeverReopen) if self.has_failed => Written::Undone(None),
            _ => self.inner.write(begun_ns, batch.first, batch.entries()),
        };
        self.inner.write_ended(ended_ns);
        self.has_failed |= !matches!(written, Written::Durable { .. });
        match (self.mutation, written) {
            (Some(Mutation::IgnoreFailedSync), Written::Undone(_) | Written::InDoubt { .. }) => {
                Written::Durable { was_failing: false }
            }
            (Some(Mutation::RefuseBeforeUndone), Written::InDoubt { failure, .. }) => Written::Undone(Some(failure)),
            (_, written) => written,
        }
    }

    fn owe_or_write(&mut self, begun_ns: u64, batch: &Batch) -> Written {
        let owed_bytes: usize = self.owed.iter().map(Vec::len).sum();
        if owed_bytes + batch.bytes.len() < OWED_BYTES_MAX {
            self.owed.extend(batch.entries().map(<[u8]>::to_vec));
            return Written::Durable { was_failing: false };
        }
        let first = self.inner.acknowledged_end();
        let owed = std::mem::take(&mut self.owed);
        self.inner.write(begun_ns, first, owed.iter().map(Vec::as_slice).chain(batch.entries()))
    }

    /// What the log's thread would give to another.
    pub(crate) fn upkeep(&mut self, now_ns: u64) -> Option<Upkeep<VenueDisk>> {
        self.inner.upkeep(now_ns)
    }

    /// Lets go of entries that snapshots replace. A failure costs only space.
    pub(crate) fn let_go(&mut self, up_to: LogIndex) {
        let _ = self.inner.let_go(up_to);
    }

    /// While nothing comes: proves to the next opening that all entries were synced.
    pub(crate) fn seal(&mut self) {
        let _ = self.inner.seal();
    }

    /// Durable entries from `from` on, or from the first held, as the disk has them; `None` while the log is not open.
    pub(crate) fn entries_from(&self, from: LogIndex) -> Option<LogEntries> {
        let log = self.inner.log()?;
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
