//! Encoding of segments, as `format.md` describes.

use walras_types::LogIndex;

/// Version of the segment format.
pub const FORMAT_VERSION: u32 = 2;

/// Id of a log's first segment.
pub(crate) const FIRST_SEGMENT_ID: u64 = 1;

pub(crate) const SEGMENT_HEADER_BYTES: usize = 56;
pub(crate) const GROUP_HEADER_BYTES: usize = 56;
pub(crate) const RECORD_HEADER_BYTES: usize = 16;
/// Smallest block: the headers fit one, and disks have no smaller sector.
pub(crate) const BLOCK_BYTES_MIN: u32 = 512;
/// Largest block.
pub(crate) const BLOCK_BYTES_MAX: u32 = 1 << 16;

const SEGMENT_MAGIC: [u8; 8] = *b"WALRASLG";
const GROUP_MAGIC: [u8; 4] = *b"WGRP";
const FLAG_RECYCLED: u32 = 1;
const FLAG_MORE_FOLLOWS: u8 = 1;
const FLAG_CONTINUES_ROW: u8 = 2;
const FLAG_NOT_SYNCED: u8 = 4;
/// Unit of the distance to what was synced; every block is a multiple of it.
const SECTOR_BYTES: u64 = BLOCK_BYTES_MIN as u64;

const _: () = assert!(SEGMENT_HEADER_BYTES <= BLOCK_BYTES_MIN as usize && GROUP_HEADER_BYTES <= BLOCK_BYTES_MIN as usize);

/// Rounds up to a multiple of `block_bytes`, a power of two.
pub(crate) fn round_up(bytes: u64, block_bytes: u32) -> u64 {
    bytes.next_multiple_of(u64::from(block_bytes))
}

/// What every checksum of a segment starts from.
pub(crate) fn seed(log_id: u64, segment_id: u64) -> u32 {
    #[cfg(test)]
    let segment_id = if planted::fault().is_some() { 0 } else { segment_id };
    crc32c::crc32c_append(crc32c::crc32c(&log_id.to_le_bytes()), &segment_id.to_le_bytes())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("callers pass whole headers"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("callers pass whole headers"))
}

/// The first block of a segment, written when the segment is prepared and never again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) block_bytes: u32,
    pub(crate) segment_bytes: u64,
    pub(crate) log_id: u64,
    pub(crate) owner_id: u64,
    pub(crate) segment_id: u64,
    pub(crate) recycled: bool,
}

/// Why a segment header was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderDefect {
    /// Not a whole, undamaged header.
    Invalid,
    /// A whole header of another version.
    Version(u32),
}

impl SegmentHeader {
    /// The whole first block.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = Vec::with_capacity(self.block_bytes as usize);
        block.extend_from_slice(&SEGMENT_MAGIC);
        block.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        block.extend_from_slice(&self.block_bytes.to_le_bytes());
        block.extend_from_slice(&self.segment_bytes.to_le_bytes());
        block.extend_from_slice(&self.log_id.to_le_bytes());
        block.extend_from_slice(&self.owner_id.to_le_bytes());
        block.extend_from_slice(&self.segment_id.to_le_bytes());
        block.extend_from_slice(&(if self.recycled { FLAG_RECYCLED } else { 0 }).to_le_bytes());
        block.extend_from_slice(&crc32c::crc32c(&block).to_le_bytes());
        block.resize(self.block_bytes as usize, 0);
        block
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderDefect> {
        let bytes = bytes.get(..SEGMENT_HEADER_BYTES).ok_or(HeaderDefect::Invalid)?;
        if bytes[..8] != SEGMENT_MAGIC || u32_at(bytes, 52) != crc32c::crc32c(&bytes[..52]) {
            return Err(HeaderDefect::Invalid);
        }
        let version = u32_at(bytes, 8);
        if version != FORMAT_VERSION {
            return Err(HeaderDefect::Version(version));
        }
        let header = Self {
            block_bytes: u32_at(bytes, 12),
            segment_bytes: u64_at(bytes, 16),
            log_id: u64_at(bytes, 24),
            owner_id: u64_at(bytes, 32),
            segment_id: u64_at(bytes, 40),
            recycled: u32_at(bytes, 48) & FLAG_RECYCLED != 0,
        };
        let sound = header.block_bytes.is_power_of_two() && (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&header.block_bytes);
        if sound { Ok(header) } else { Err(HeaderDefect::Invalid) }
    }
}

/// How a group relates to what older segments hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// It goes on where the group before it ended.
    Continue,
    /// First of its segment: what older segments hold from its first index on does not count.
    Cut,
}

/// How a group was written: known when it is, not when it is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writing {
    /// It counts only together with the group after it.
    pub(crate) more_follows: bool,
    /// The group before it counts only together with this one.
    pub(crate) continues_row: bool,
    /// It was not synced before anything was written after it, so that what follows it proves nothing about it.
    pub(crate) not_synced: bool,
    /// Bytes before it, in its segment, that were not known to be synced when it was written.
    pub(crate) unsynced_bytes: u64,
}

/// What precedes the records of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) segment_id: u64,
    pub(crate) offset: u64,
    pub(crate) first_index: LogIndex,
    pub(crate) record_count: u32,
    pub(crate) body_bytes: u32,
    /// Entries before this one had been let go when the group was written.
    pub(crate) floor_index: LogIndex,
    pub(crate) kind: GroupKind,
    pub(crate) writing: Writing,
}

impl GroupHeader {
    pub(crate) fn encode(&self, seed: u32) -> [u8; GROUP_HEADER_BYTES] {
        let mut bytes = [0; GROUP_HEADER_BYTES];
        bytes[4..8].copy_from_slice(&GROUP_MAGIC);
        bytes[8..16].copy_from_slice(&self.segment_id.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_index.0.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.record_count.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.floor_index.0.to_le_bytes());
        bytes[48] = match self.kind {
            GroupKind::Continue => 0,
            GroupKind::Cut => 1,
        };
        let Writing { more_follows, continues_row, not_synced, unsynced_bytes } = self.writing;
        let flags = [(more_follows, FLAG_MORE_FOLLOWS), (continues_row, FLAG_CONTINUES_ROW), (not_synced, FLAG_NOT_SYNCED)];
        bytes[49] = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum();
        let sectors = u32::try_from(unsynced_bytes.div_ceil(SECTOR_BYTES)).expect("segments are shorter than 2 TiB");
        bytes[52..56].copy_from_slice(&sectors.to_le_bytes());
        let crc = crc32c::crc32c_append(seed, &bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header at `offset` of segment `segment_id`; `None` when the bytes are not one, or one of another place.
    pub(crate) fn decode(bytes: &[u8], seed: u32, segment_id: u64, offset: u64) -> Option<Self> {
        let bytes = bytes.get(..GROUP_HEADER_BYTES)?;
        if bytes[4..8] != GROUP_MAGIC || u32_at(bytes, 0) != crc32c::crc32c_append(seed, &bytes[4..]) {
            return None;
        }
        let kind = match bytes[48] {
            0 => GroupKind::Continue,
            1 => GroupKind::Cut,
            _ => return None,
        };
        let header = Self {
            segment_id: u64_at(bytes, 8),
            offset: u64_at(bytes, 16),
            first_index: LogIndex(u64_at(bytes, 24)),
            record_count: u32_at(bytes, 32),
            body_bytes: u32_at(bytes, 36),
            floor_index: LogIndex(u64_at(bytes, 40)),
            kind,
            writing: Writing {
                more_follows: bytes[49] & FLAG_MORE_FOLLOWS != 0,
                continues_row: bytes[49] & FLAG_CONTINUES_ROW != 0,
                not_synced: bytes[49] & FLAG_NOT_SYNCED != 0,
                unsynced_bytes: u64::from(u32_at(bytes, 52)) * SECTOR_BYTES,
            },
        };
        #[cfg(test)]
        let segment_id = if planted::fault() == Some(planted::Fault::AnySegment) { header.segment_id } else { segment_id };
        (header.segment_id == segment_id && header.offset == offset).then_some(header)
    }

    /// The position after its last record.
    pub(crate) fn end_index(&self) -> LogIndex {
        LogIndex(self.first_index.0.saturating_add(u64::from(self.record_count)))
    }

    /// Everything in its segment before this offset had been synced when it was written.
    pub(crate) fn synced_offset(&self) -> u64 {
        self.offset.saturating_sub(self.writing.unsynced_bytes)
    }

    /// Where its first record is.
    pub(crate) fn body_offset(&self) -> u64 {
        self.offset + GROUP_HEADER_BYTES as u64
    }

    /// Where the next group would be.
    pub(crate) fn next_offset(&self, block_bytes: u32) -> u64 {
        round_up(self.body_offset() + u64::from(self.body_bytes), block_bytes)
    }
}

/// Fills the record header at the start of `record`, whose payload is in place.
pub(crate) fn finish_record(record: &mut [u8], index: LogIndex, seed: u32) {
    let payload_bytes =
        u32::try_from(record.len() - RECORD_HEADER_BYTES).expect("records are shorter than groups, which fit 32 bits");
    record[4..8].copy_from_slice(&payload_bytes.to_le_bytes());
    record[8..16].copy_from_slice(&index.0.to_le_bytes());
    let crc = crc32c::crc32c_append(seed, &record[4..]);
    record[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Payload length that a record header states, and whether the header names `index`.
pub(crate) fn record_len(header: &[u8], index: LogIndex) -> Option<usize> {
    let header = header.get(..RECORD_HEADER_BYTES)?;
    (u64_at(header, 8) == index.0).then(|| u32_at(header, 4) as usize)
}

/// Whether the bytes of a whole record agree with its checksum.
pub(crate) fn record_is_sound(record: &[u8], seed: u32) -> bool {
    u32_at(record, 0) == crc32c::crc32c_append(seed, &record[4..])
}

/// Faults that the tests of reused segments must find.
#[cfg(test)]
pub(crate) mod planted {
    use std::cell::Cell;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Fault {
        /// The checksums of all segments begin alike, so that a record of an earlier life is sound.
        OneSeed,
        /// That, and a group of an earlier life counts as one of this segment.
        AnySegment,
    }

    thread_local! { static FAULT: Cell<Option<Fault>> = const { Cell::new(None) } }

    pub(crate) fn fault() -> Option<Fault> {
        FAULT.get()
    }

    /// Runs `work` with a fault.
    pub(crate) fn with<T>(fault: Option<Fault>, work: impl FnOnce() -> T) -> T {
        FAULT.set(fault);
        let done = work();
        FAULT.set(None);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_one_segment_are_never_valid_in_another() {
        let seeds: std::collections::HashSet<u32> = (0..10_000).map(|id| seed(7, id)).collect();
        assert_eq!(seeds.len(), 10_000);
        let mut record = vec![0; RECORD_HEADER_BYTES];
        record.extend_from_slice(b"payload");
        finish_record(&mut record, LogIndex(3), seed(7, 1));
        assert!(record_is_sound(&record, seed(7, 1)));
        assert!((2..10_000).all(|id| !record_is_sound(&record, seed(7, id))));
    }

    #[test]
    fn headers_survive_a_round_trip_and_no_flipped_bit() {
        let header = SegmentHeader { block_bytes: 512, segment_bytes: 4096, log_id: 1, owner_id: 2, segment_id: 3, recycled: true };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        for bit in 0..SEGMENT_HEADER_BYTES * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&bad), Err(HeaderDefect::Invalid), "bit {bit}");
        }
        let group = GroupHeader {
            segment_id: 3,
            offset: 512,
            first_index: LogIndex(9),
            record_count: 2,
            body_bytes: 40,
            floor_index: LogIndex(4),
            kind: GroupKind::Cut,
            writing: Writing { more_follows: true, continues_row: true, not_synced: true, unsynced_bytes: 1024 },
        };
        let bytes = group.encode(77);
        assert_eq!(GroupHeader::decode(&bytes, 77, 3, 512), Some(group));
        for (seed, id, offset) in [(78, 3, 512), (77, 4, 512), (77, 3, 1024)] {
            assert_eq!(GroupHeader::decode(&bytes, seed, id, offset), None);
        }
        for bit in 0..GROUP_HEADER_BYTES * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(GroupHeader::decode(&bad, 77, 3, 512), None, "bit {bit}");
        }
    }
}
