//! Reading slots from the disk: a range of them, or all decided ones with the log indexes of their entries.

use crate::content::Content;
use crate::error::ReplicaLogError;
use crate::record::{Record, decode};
use std::collections::VecDeque;
use walras_consensus::{Body, Committed, Packed, Slot, SlotEntry, SnapshotMeta};
use walras_log_store::{DiskFile, LogError, LogReader};
use walras_types::LogIndex;

/// Opens a reader of the store at a record.
pub(crate) type ReaderFrom<'a, F> = &'a dyn Fn(LogIndex) -> Result<LogReader<F>, LogError>;

/// Reads slots in order. It is independent of the log and sees it as it was.
#[derive(Debug)]
pub struct SlotReader<F> {
    reader: Option<LogReader<F>>,
    /// Records of the slots still to be read.
    records: VecDeque<LogIndex>,
}

impl<F: DiskFile> SlotReader<F> {
    /// Reads slots that are all held.
    pub(crate) fn new(
        content: &Content,
        slots: std::ops::Range<Slot>,
        reader_from: ReaderFrom<'_, F>,
    ) -> Result<Self, ReplicaLogError> {
        let records = if slots.start < slots.end { content.records(slots) } else { VecDeque::new() };
        let reader = records.front().map(|first| reader_from(*first)).transpose()?;
        Ok(Self { reader, records })
    }

    /// The next slot; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it can fail, like the store's reader")]
    pub fn next(&mut self) -> Result<Option<SlotEntry>, ReplicaLogError> {
        let (Some(record), Some(reader)) = (self.records.pop_front(), &mut self.reader) else { return Ok(None) };
        while let Some(found) = reader.next()? {
            // In between are hard states and replaced slots.
            if found.index == record {
                return match decode(found.payload) {
                    Some(Record::Slot(entry)) => Ok(Some(entry)),
                    _ => Err(ReplicaLogError::Unreadable { record }),
                };
            }
        }
        Err(ReplicaLogError::Unreadable { record })
    }
}

/// Reads decided packs in order, with their log indexes.
#[derive(Debug)]
pub struct DecidedReader<F> {
    slots: SlotReader<F>,
    /// The last entry of the slots read.
    log_index: LogIndex,
    from: LogIndex,
}

impl<F: DiskFile> DecidedReader<F> {
    /// From the pack that holds entry `from`, up to the slot before `end`. Entries are counted from one of `anchors`: places from
    /// which the log goes on, in ascending order.
    pub(crate) fn new(
        content: &Content,
        anchors: &[SnapshotMeta],
        from: LogIndex,
        end: Slot,
        reader_from: ReaderFrom<'_, F>,
    ) -> Result<Self, ReplicaLogError> {
        if let Some(anchor) = anchors.iter().rev().find(|anchor| anchor.log_index < from) {
            let slots = SlotReader::new(content, anchor.slot.next()..end, reader_from)?;
            return Ok(Self { slots, log_index: anchor.log_index, from });
        }
        match Self::from_the_first(content, anchors, end, reader_from)? {
            Some(reader) if from > reader.log_index => Ok(Self { from, ..reader }),
            Some(reader) => Err(ReplicaLogError::EntryNotHeld { first: reader.log_index.next() }),
            None => Err(ReplicaLogError::NotCounted),
        }
    }

    /// From the first pack held; `None` without an anchor.
    pub(crate) fn from_the_first(
        content: &Content,
        anchors: &[SnapshotMeta],
        end: Slot,
        reader_from: ReaderFrom<'_, F>,
    ) -> Result<Option<Self>, ReplicaLogError> {
        let Some(anchor) = anchors.first() else { return Ok(None) };
        let first_slot = content.first_slot().unwrap_or(anchor.slot.next());
        let mut before = SlotReader::new(content, first_slot..anchor.slot.next(), reader_from)?;
        let mut log_index = anchor.log_index;
        while let Some(entry) = before.next()? {
            log_index.0 = log_index.0.saturating_sub(entry_count(&entry));
        }
        let slots = SlotReader::new(content, first_slot..end, reader_from)?;
        Ok(Some(Self { slots, log_index, from: LogIndex(0) }))
    }

    /// The next pack; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it can fail, like the store's reader")]
    pub fn next(&mut self) -> Result<Option<Committed>, ReplicaLogError> {
        while let Some(SlotEntry { slot, term, body }) = self.slots.next()? {
            let Body::Pack(bytes) = body else { continue };
            let first = self.log_index.next();
            let pack = Packed::decode(bytes).ok_or(ReplicaLogError::Unreadable { record: first })?;
            self.log_index.0 += pack.len() as u64;
            if self.log_index >= self.from {
                return Ok(Some(Committed { slot, term, first, pack }));
            }
        }
        Ok(None)
    }
}

fn entry_count(entry: &SlotEntry) -> u64 {
    match &entry.body {
        Body::Pack(bytes) => Packed::decode(bytes.clone()).map_or(0, |pack| pack.len() as u64),
        Body::Empty | Body::Members(_) => 0,
    }
}
