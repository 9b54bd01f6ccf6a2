//! Reads one segment from start to end and classifies its end.
//!
//! This is where a torn tail is distinguished from damage; [the crate's page](crate) gives the reasoning.

use crate::cursor::{Cursor, Layout};
use crate::disk::{DiskFile, read_full_at};
use crate::error::{During, LogError};
use crate::format::{
    BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, FORMAT_VERSION, GroupHeader, GroupKind, HeaderDefect, SEGMENT_HEADER_BYTES, SegmentHeader,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use walras_types::LogIndex;

/// Distance in bytes between marks of a segment's groups, so that a reader can start near its first entry.
const MARK_EVERY_BYTES: u64 = 64 << 10;

/// The position of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) first_index: LogIndex,
    pub(crate) offset: u64,
}

/// Adds a mark unless one is near.
pub(crate) fn note(marks: &mut Vec<Mark>, first_index: LogIndex, offset: u64) {
    if marks.last().is_none_or(|last| offset - last.offset >= MARK_EVERY_BYTES) {
        marks.push(Mark { first_index, offset });
    }
}

/// What follows the last whole group of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Zeros: nothing was ever written there.
    Zero,
    /// In a recycled segment: old content, or a torn group whose header did not survive.
    Stale,
    /// A group that was being written when the machine or the process stopped.
    Torn {
        /// Its header, if that survived.
        header: Option<GroupHeader>,
    },
    /// Not explained by a crash.
    Damaged {
        /// What is wrong and how it is known.
        detail: String,
    },
}

/// What was found in one segment.
#[derive(Debug)]
pub(crate) struct SegmentScan<F> {
    pub(crate) id: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<F>,
    pub(crate) file_bytes: u64,
    pub(crate) header: Option<SegmentHeader>,
    pub(crate) layout: Layout,
    /// First index and kind of the first group, when that is whole.
    pub(crate) first: Option<(LogIndex, GroupKind)>,
    /// The position after the last whole group's last record.
    pub(crate) end_index: LogIndex,
    /// Whether the last whole group counts only together with one that is not in this segment.
    pub(crate) is_unfinished: bool,
    /// The last whole group that does not continue a row: first entry and offset.
    pub(crate) row_start: Option<(LogIndex, u64)>,
    /// Entries before this one had been dropped when the last whole group was written.
    pub(crate) floor_index: LogIndex,
    /// The offset after the last whole group.
    pub(crate) end_offset: u64,
    /// Whether the last whole group has no record.
    pub(crate) ends_with_seal: bool,
    pub(crate) group_count: u64,
    pub(crate) entry_count: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) marks: Vec<Mark>,
    pub(crate) tail: Tail,
}

/// Name of a segment's file.
pub(crate) fn segment_name(id: u64) -> String {
    format!("{id:016x}.seg")
}

/// The id in a segment's file name.
pub(crate) fn segment_id(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".seg")?;
    let id = u64::from_str_radix(digits, 16).ok()?;
    (segment_name(id) == name).then_some(id)
}

/// Reads the segment header. A header of another version or log is an error; a damaged one is `None`.
pub(crate) fn read_header<F: DiskFile>(
    file: &F,
    path: &Path,
    id: u64,
    log_id: Option<u64>,
) -> Result<Option<SegmentHeader>, LogError> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    let got = read_full_at(file, &mut bytes, 0).during("read", path)?;
    match SegmentHeader::decode(&bytes[..got]) {
        // A file renamed for its next use, whose header was not yet written, still names its former segment.
        Ok(header) if header.segment_id != id => Ok(None),
        Ok(header) => match log_id {
            Some(expected) if header.log_id != expected => {
                Err(LogError::WrongOwner { path: path.to_path_buf(), found: header.log_id, expected })
            }
            _ => Ok(Some(header)),
        },
        Err(HeaderDefect::Version(found)) => Err(LogError::Version { path: path.to_path_buf(), found, supported: FORMAT_VERSION }),
        Err(HeaderDefect::Invalid) => Ok(None),
    }
}

/// Reads one segment, through the cursor that read the one before it, if there is one.
pub(crate) fn scan<F: DiskFile>(
    file: Arc<F>,
    path: PathBuf,
    id: u64,
    log_id: u64,
    cursor: &mut Option<Cursor<F>>,
) -> Result<SegmentScan<F>, LogError> {
    let file_bytes = file.len().during("read the length of", &path)?;
    let header = read_header(&*file, &path, id, Some(log_id))?;
    let layout = match header {
        Some(header) => Layout::new(log_id, id, header.block_bytes, header.segment_bytes.min(file_bytes)),
        // Without a header any block size is possible; the smallest finds the groups of all.
        None => Layout::new(log_id, id, BLOCK_BYTES_MIN, file_bytes),
    };
    let cursor = match cursor {
        Some(cursor) => {
            cursor.move_to(Arc::clone(&file), layout);
            cursor
        }
        none => none.insert(Cursor::new(Arc::clone(&file), layout)),
    };
    let mut scan = SegmentScan {
        id,
        file,
        file_bytes,
        header,
        layout,
        first: None,
        end_index: LogIndex(0),
        is_unfinished: false,
        row_start: None,
        floor_index: LogIndex(0),
        end_offset: u64::from(layout.block_bytes),
        ends_with_seal: false,
        group_count: 0,
        entry_count: 0,
        payload_bytes: 0,
        marks: Vec::new(),
        tail: Tail::Zero,
        path,
    };
    let broken_group = scan.read_groups(cursor)?;
    scan.tail = scan.judge_tail(cursor, broken_group)?;
    Ok(scan)
}

impl<F: DiskFile> SegmentScan<F> {
    /// Reads complete groups up to the first incomplete one; returns that one's header, if intact.
    fn read_groups(&mut self, cursor: &mut Cursor<F>) -> Result<Option<GroupHeader>, LogError> {
        if self.header.is_none() {
            return Ok(None);
        }
        while let Some(group) = cursor.group(self.end_offset).during("read", &self.path)? {
            if !self.continues(&group) {
                return Ok(Some(group));
            }
            let Some(payload_bytes) = cursor.check_body(&group).during("read", &self.path)? else {
                return Ok(Some(group));
            };
            self.first.get_or_insert((group.first_index, group.kind));
            note(&mut self.marks, group.first_index, group.offset);
            self.is_unfinished = group.writing.more_follows;
            if !group.writing.continues_row {
                self.row_start = Some((group.first_index, group.offset));
            }
            self.end_index = group.end_index();
            self.floor_index = group.floor_index;
            self.end_offset = group.next_offset(self.layout.block_bytes);
            self.ends_with_seal = group.record_count == 0;
            self.group_count += 1;
            self.entry_count += u64::from(group.record_count);
            self.payload_bytes += payload_bytes;
        }
        Ok(None)
    }

    /// Whether a group begins where the one before it ended. Only a segment's first group may cut.
    pub(crate) fn continues(&self, group: &GroupHeader) -> bool {
        self.first.is_none() || (group.first_index == self.end_index && group.kind == GroupKind::Continue)
    }

    fn judge_tail(&self, cursor: &mut Cursor<F>, broken_group: Option<GroupHeader>) -> Result<Tail, LogError> {
        let block = u64::from(self.layout.block_bytes);
        let searched_from = match broken_group {
            Some(group) if !self.continues(&group) => {
                let detail =
                    format!("a group there begins with entry {}, where entry {} must follow", group.first_index, self.end_index);
                return Ok(Tail::Damaged { detail });
            }
            Some(group) => group.next_offset(self.layout.block_bytes),
            None if self.header.is_none() => block,
            None => self.end_offset + block,
        };
        let mut offset = searched_from;
        while offset < self.layout.end {
            let later = cursor.group(offset).during("read", &self.path)?;
            // The header was synced before any group was written. A group may have been written before those in front of it were
            // synced.
            if let Some(later) = later.filter(|later| self.header.is_none() || later.synced_offset() > self.end_offset) {
                let what = if self.header.is_none() { "the segment's header" } else { "the group there" };
                let detail = format!(
                    "{what} is not readable although it was on disk before the group at byte {offset} (entry {}) was written",
                    later.first_index
                );
                return Ok(Tail::Damaged { detail });
            }
            offset += block;
        }
        let recycled = self.header.is_none_or(|header| header.recycled);
        let rest_is_zero = |cursor: &mut Cursor<F>, from: u64| {
            cursor.is_zero(from.min(self.layout.end)..self.layout.end).during("read", &self.path)
        };
        match broken_group {
            Some(group) if !recycled && !group.writing.not_synced && !rest_is_zero(cursor, searched_from)? => {
                Ok(Tail::Damaged { detail: "the group there is not readable although something was written after it".to_owned() })
            }
            Some(group) => Ok(Tail::Torn { header: Some(group) }),
            None if rest_is_zero(cursor, self.end_offset)? => Ok(Tail::Zero),
            None if recycled => Ok(Tail::Stale),
            None => Ok(Tail::Torn { header: None }),
        }
    }

    /// Whether the file still has the length it was prepared with.
    pub(crate) fn is_full_length(&self) -> bool {
        self.header.is_some_and(|header| header.segment_bytes == self.file_bytes)
    }
}

const _: () = assert!(BLOCK_BYTES_MAX as u64 <= MARK_EVERY_BYTES);
