//! Reads the groups and records of one segment through a small window of memory.

use crate::disk::{DiskFile, read_full_at};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, RECORD_HEADER_BYTES, record_is_sound, record_len, seed};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use walras_types::LogIndex;

/// How much is read at once; a longer record makes the window longer.
const WINDOW_BYTES: usize = 256 << 10;

/// What must be known of a segment to read its groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) segment_id: u64,
    pub(crate) seed: u32,
    pub(crate) block_bytes: u32,
    /// No group reaches beyond this offset.
    pub(crate) end: u64,
}

impl Layout {
    pub(crate) fn new(log_id: u64, segment_id: u64, block_bytes: u32, end: u64) -> Self {
        Self { segment_id, seed: seed(log_id, segment_id), block_bytes, end }
    }
}

/// A window over a segment's file.
#[derive(Debug)]
pub(crate) struct Cursor<F> {
    file: Arc<F>,
    pub(crate) layout: Layout,
    /// As long as the longest window so far: bytes beyond `window_len` mean nothing.
    window: Vec<u8>,
    window_len: usize,
    window_offset: u64,
}

impl<F: DiskFile> Cursor<F> {
    pub(crate) fn new(file: Arc<F>, layout: Layout) -> Self {
        Self { file, layout, window: Vec::new(), window_len: 0, window_offset: 0 }
    }

    /// Goes on in another segment with the memory of this one.
    pub(crate) fn move_to(&mut self, file: Arc<F>, layout: Layout) {
        self.file = file;
        self.layout = layout;
        self.window_len = 0;
        self.window_offset = 0;
    }

    /// The `len` bytes at `offset`; `None` when the segment ends before.
    pub(crate) fn bytes(&mut self, offset: u64, len: usize) -> io::Result<Option<&[u8]>> {
        if offset.saturating_add(len as u64) > self.layout.end {
            return Ok(None);
        }
        if self.in_window(offset, len).is_none() {
            self.fill(offset, len)?;
        }
        Ok(self.in_window(offset, len).map(|range| &self.window[range]))
    }

    fn in_window(&self, offset: u64, len: usize) -> Option<Range<usize>> {
        let start = usize::try_from(offset.checked_sub(self.window_offset)?).ok()?;
        let end = start.checked_add(len)?;
        (end <= self.window_len).then_some(start..end)
    }

    /// Moves the window to `offset`, keeping the bytes that both places share.
    fn fill(&mut self, offset: u64, len: usize) -> io::Result<()> {
        let kept = match self.in_window(offset, 0) {
            Some(range) => {
                self.window.copy_within(range.start..self.window_len, 0);
                self.window_len - range.start
            }
            None => 0,
        };
        let room = usize::try_from(self.layout.end - offset).unwrap_or(usize::MAX);
        let wanted = len.max(WINDOW_BYTES).min(room);
        if self.window.len() < wanted {
            self.window.resize(wanted, 0);
        }
        (self.window_len, self.window_offset) = (kept, offset);
        let got = read_full_at(&*self.file, &mut self.window[kept..wanted], offset + kept as u64)?;
        self.window_len += got;
        Ok(())
    }

    /// The header of the group at `offset`; `None` when there is none.
    pub(crate) fn group(&mut self, offset: u64) -> io::Result<Option<GroupHeader>> {
        let Layout { segment_id, seed, .. } = self.layout;
        let bytes = self.bytes(offset, GROUP_HEADER_BYTES)?;
        Ok(bytes.and_then(|bytes| GroupHeader::decode(bytes, seed, segment_id, offset)))
    }

    /// The payload of record `index` at `offset`; `None` when no sound record of that index is there or it reaches beyond `body_end`.
    pub(crate) fn record(&mut self, offset: u64, body_end: u64, index: LogIndex) -> io::Result<Option<&[u8]>> {
        let seed = self.layout.seed;
        let room = body_end.saturating_sub(offset);
        if room < RECORD_HEADER_BYTES as u64 {
            return Ok(None);
        }
        let Some(payload_bytes) = self.bytes(offset, RECORD_HEADER_BYTES)?.and_then(|header| record_len(header, index)) else {
            return Ok(None);
        };
        let record_bytes = RECORD_HEADER_BYTES + payload_bytes;
        if record_bytes as u64 > room {
            return Ok(None);
        }
        let record = self.bytes(offset, record_bytes)?;
        Ok(record.filter(|record| record_is_sound(record, seed)).map(|record| &record[RECORD_HEADER_BYTES..]))
    }

    /// Reads every record of a group; `Some(bytes of payload)` when all are sound and fill the group exactly.
    pub(crate) fn check_body(&mut self, group: &GroupHeader) -> io::Result<Option<u64>> {
        let mut offset = group.body_offset();
        let body_end = offset + u64::from(group.body_bytes);
        let mut payload_bytes = 0;
        for index in group.first_index.0..group.end_index().0 {
            let Some(payload) = self.record(offset, body_end, LogIndex(index))? else { return Ok(None) };
            payload_bytes += payload.len() as u64;
            offset += (RECORD_HEADER_BYTES + payload.len()) as u64;
        }
        Ok((offset == body_end).then_some(payload_bytes))
    }

    /// Whether every byte of `range` is zero.
    pub(crate) fn is_zero(&mut self, range: Range<u64>) -> io::Result<bool> {
        let mut offset = range.start;
        while offset < range.end {
            let piece = usize::try_from(range.end - offset).unwrap_or(usize::MAX).min(WINDOW_BYTES);
            match self.bytes(offset, piece)? {
                Some(bytes) if are_zero(bytes) => offset += piece as u64,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Many at a time: most of a segment that is opened is looked at so.
fn are_zero(bytes: &[u8]) -> bool {
    const AT_ONCE: usize = 64;
    let (chunks, rest) = bytes.as_chunks::<AT_ONCE>();
    let is_zero = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all | byte) == 0;
    chunks.iter().all(|chunk| is_zero(chunk)) && is_zero(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_anywhere_is_not_zero() {
        for len in [0, 1, 63, 64, 65, 200] {
            let mut bytes = vec![0; len];
            assert!(are_zero(&bytes));
            for at in 0..len {
                bytes[at] = 0x80;
                assert!(!are_zero(&bytes), "byte {at} of {len}");
                bytes[at] = 0;
            }
        }
    }
}
