//! Buffered entries, encoded in place into one reused buffer in exactly the form that `sync` writes.
//!
//! A group is bound to its segment and offset when it is begun, because the checksums depend on both. Entries that do not fit go
//! into another group: further on in the same segment, or at the start of the next.

use crate::error::LogError;
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind, RECORD_HEADER_BYTES, Writing, finish_record, round_up, seed};
use crate::options::LogOptions;
use std::ops::Range;
use walras_types::LogIndex;

/// Where the next group goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) segment_id: u64,
    pub(crate) block_bytes: u32,
    /// Length of the segment.
    pub(crate) segment_end: u64,
    pub(crate) offset: u64,
}

#[derive(Clone, Copy, Debug)]
struct OpenGroup {
    header: GroupHeader,
    block_bytes: u32,
    /// Where it begins in the buffer.
    start: usize,
    seed: u32,
    /// No byte of it may be written at or beyond this offset of the file.
    limit: u64,
}

/// A group that takes no more records: its header, and the bytes of the buffer that are to be written at the header's offset.
#[derive(Clone, Debug)]
struct FinishedGroup {
    header: GroupHeader,
    seed: u32,
    bytes: Range<usize>,
}

/// The buffer and the groups in it.
#[derive(Debug)]
pub(crate) struct Pending {
    buffer: Vec<u8>,
    /// Length of the valid part of the buffer; a caller's encoder that panicked may have left more.
    whole_bytes: usize,
    finished: Vec<FinishedGroup>,
    open: Option<OpenGroup>,
    place: Place,
    /// Where groups go when `place` is used up: the first block of the segment of this id.
    next_segment_id: u64,
    next_index: LogIndex,
    floor_index: LogIndex,
    log_id: u64,
    options: LogOptions,
    block_bytes: u32,
    group_bytes_max: u64,
    entry_bytes_max: usize,
}

impl Pending {
    pub(crate) fn new(
        options: &LogOptions,
        log_id: u64,
        place: Place,
        next_segment_id: u64,
        next_index: LogIndex,
        floor_index: LogIndex,
    ) -> Self {
        Self {
            buffer: Vec::with_capacity(1 << 16),
            whole_bytes: 0,
            finished: Vec::new(),
            open: None,
            place,
            next_segment_id,
            next_index,
            floor_index,
            log_id,
            options: options.clone(),
            block_bytes: options.block_bytes,
            group_bytes_max: options.group_room(),
            entry_bytes_max: options.entry_bytes_max(),
        }
    }

    pub(crate) fn next_index(&self) -> LogIndex {
        self.next_index
    }

    pub(crate) fn bytes(&self) -> usize {
        self.whole_bytes
    }

    pub(crate) fn set_floor(&mut self, floor_index: LogIndex) {
        self.floor_index = floor_index;
    }

    /// Adds an entry whose payload `encode` appends to the buffer.
    #[inline]
    pub(crate) fn append_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<LogIndex, LogError> {
        self.buffer.truncate(self.whole_bytes);
        if self.open.is_none() {
            self.begin_group(GroupKind::Continue, self.next_index);
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        encode(&mut self.buffer);
        let payload_bytes = self
            .buffer
            .len()
            .checked_sub(start + RECORD_HEADER_BYTES)
            .expect("the encoder must only append to the buffer that it is given");
        if payload_bytes > self.entry_bytes_max {
            return Err(LogError::EntryTooLong { bytes: payload_bytes, max: self.entry_bytes_max });
        }
        let mut group = self.open.expect("a group was begun above");
        let mut record_start = start;
        if group.header.offset + (self.buffer.len() - group.start) as u64 > group.limit {
            (group, record_start) = self.move_to_new_group(start);
        }
        let index = self.next_index;
        finish_record(&mut self.buffer[record_start..], index, group.seed);
        group.header.record_count += 1;
        self.open = Some(group);
        self.next_index = index.next();
        self.whole_bytes = self.buffer.len();
        Ok(index)
    }

    /// Adds a group without entries, ending the one before it.
    pub(crate) fn append_empty_group(&mut self, kind: GroupKind, first_index: LogIndex) {
        self.buffer.truncate(self.whole_bytes);
        self.finish_group();
        self.begin_group(kind, first_index);
        self.finish_group_even_if_empty();
    }

    /// Ends the open group, so that all groups are ready to be written.
    pub(crate) fn finish(&mut self) -> usize {
        self.buffer.truncate(self.whole_bytes);
        self.finish_group();
        self.finished.len()
    }

    /// The segment and the offset of a finished group.
    pub(crate) fn place_of(&self, at: usize) -> (u64, u64) {
        let header = &self.finished[at].header;
        (header.segment_id, header.offset)
    }

    /// A finished group with its header in place: its bytes can be written now.
    pub(crate) fn group(&mut self, at: usize, writing: Writing) -> (GroupHeader, &[u8]) {
        let FinishedGroup { header, seed, bytes } = self.finished[at].clone();
        let header = GroupHeader { writing, ..header };
        let bytes = &mut self.buffer[bytes];
        bytes[..GROUP_HEADER_BYTES].copy_from_slice(&header.encode(seed));
        (header, bytes)
    }

    /// Forgets the groups: they are on disk.
    pub(crate) fn clear(&mut self) {
        assert!(self.open.is_none(), "only finished groups are on disk");
        self.buffer.clear();
        self.whole_bytes = 0;
        self.finished.clear();
    }

    /// Drops everything and continues with `next_index` at the start of segment `next_segment_id`.
    pub(crate) fn restart(&mut self, next_index: LogIndex, next_segment_id: u64) {
        self.open = None;
        self.clear();
        self.next_index = next_index;
        self.next_segment_id = next_segment_id;
        self.place.offset = self.place.segment_end;
    }

    /// Whether not even an empty group fits where the next one goes, so that it begins a segment.
    pub(crate) fn is_at_end(&self) -> bool {
        self.place.offset + round_up(GROUP_HEADER_BYTES as u64, self.place.block_bytes) > self.place.segment_end
    }

    fn begin_group(&mut self, kind: GroupKind, first_index: LogIndex) {
        if self.is_at_end() {
            self.place = self.take_next_place();
        }
        let Place { segment_id, offset, .. } = self.place;
        let header = GroupHeader {
            segment_id,
            offset,
            first_index,
            record_count: 0,
            body_bytes: 0,
            floor_index: self.floor_index,
            kind,
            writing: Writing::default(),
        };
        self.open = Some(self.open_group(header, self.buffer.len()));
        self.buffer.resize(self.buffer.len() + GROUP_HEADER_BYTES, 0);
        self.whole_bytes = self.buffer.len();
    }

    fn open_group(&self, header: GroupHeader, start: usize) -> OpenGroup {
        let Place { segment_id, block_bytes, segment_end, offset } = self.place;
        let limit = segment_end.min(offset + self.group_bytes_max);
        OpenGroup { header, block_bytes, start, seed: seed(self.log_id, segment_id), limit }
    }

    fn take_next_place(&mut self) -> Place {
        let segment_id = self.next_segment_id;
        self.next_segment_id += 1;
        let segment_end = self.options.segment_bytes_of(segment_id);
        Place { segment_id, block_bytes: self.block_bytes, segment_end, offset: u64::from(self.block_bytes) }
    }

    /// Moves the record at `record_start`, the buffer's last, out of the open group, which it made too long, into a new one.
    #[cold]
    fn move_to_new_group(&mut self, record_start: usize) -> (OpenGroup, usize) {
        let record_bytes = self.buffer.len() - record_start;
        let needed = (GROUP_HEADER_BYTES + record_bytes) as u64;
        let old = self.open.expect("the record was appended to an open group");
        let start = if old.header.record_count == 0 {
            old.start
        } else {
            let padded = round_up((record_start - old.start) as u64, old.block_bytes);
            old.start + usize::try_from(padded).expect("a group fits in memory")
        };
        if start > old.start {
            let moved_to = start + GROUP_HEADER_BYTES;
            self.buffer.resize(moved_to + record_bytes, 0);
            self.buffer.copy_within(record_start..record_start + record_bytes, moved_to);
            self.buffer[record_start..moved_to].fill(0);
            self.end_group(old, record_start, start);
        }
        if self.place.offset + needed > self.place.segment_end {
            self.place = self.take_next_place();
        }
        let header = GroupHeader {
            segment_id: self.place.segment_id,
            offset: self.place.offset,
            first_index: self.next_index,
            ..GroupHeader { record_count: 0, body_bytes: 0, ..old.header }
        };
        let group = self.open_group(header, start);
        assert!(self.place.offset + needed <= group.limit, "an entry of the allowed length fits a fresh group");
        (group, start + GROUP_HEADER_BYTES)
    }

    fn finish_group(&mut self) {
        match self.open {
            Some(group) if group.header.record_count == 0 => {
                self.open = None;
                self.buffer.truncate(group.start);
                self.whole_bytes = self.buffer.len();
            }
            Some(_) => self.finish_group_even_if_empty(),
            None => {}
        }
    }

    fn finish_group_even_if_empty(&mut self) {
        let Some(group) = self.open.take() else { return };
        let body_end = self.buffer.len();
        let padded = round_up((body_end - group.start) as u64, group.block_bytes);
        let end = group.start + usize::try_from(padded).expect("a group fits in memory");
        self.buffer.resize(end, 0);
        self.whole_bytes = end;
        self.end_group(group, body_end, end);
    }

    /// Takes note of a group whose records end at `body_end` and whose padding ends at `end`.
    fn end_group(&mut self, group: OpenGroup, body_end: usize, end: usize) {
        let body_start = group.start + GROUP_HEADER_BYTES;
        let body_bytes = u32::try_from(body_end - body_start).expect("groups are shorter than 1 GiB");
        let header = GroupHeader { body_bytes, ..group.header };
        self.place.offset = header.next_offset(group.block_bytes);
        self.finished.push(FinishedGroup { header, seed: group.seed, bytes: group.start..end });
    }
}
