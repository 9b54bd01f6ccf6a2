//! Options of a log.

use crate::error::LogError;
use crate::format::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, FIRST_SEGMENT_ID, GROUP_HEADER_BYTES, RECORD_HEADER_BYTES};
use crate::history::LetGo;
use walras_types::LogIndex;

/// Options of a log. Sizes may change from one opening to the next and apply to segments prepared after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Length of a segment's file, but for the first ones of a log. Default 64 MiB.
    pub segment_bytes: u64,
    /// Length of the first segment of a log, with which it must wait before it can be used; each one after it is twice as long, up
    /// to `segment_bytes`. Where it has no room for the longest group it is as long as it must be. A short one lets a log open
    /// sooner, and has one that is busy from the start wait for its second segment. Default 64 MiB, which is not short.
    pub first_segment_bytes: u64,
    /// Files of segments that were let go of and are kept to become new ones, so that these need not be filled. Default 8.
    pub spent_files_max: usize,
    /// What happens to dropped segments. Default: their files are reused.
    pub let_go: LetGo,
    /// Groups begin at multiples of this, a power of two from 512 to 65,536, so that a sync never writes to a block that holds
    /// acknowledged bytes. No smaller than what the device writes as a unit. Default 4,096.
    pub block_bytes: u32,
    /// Longest group. More is written in several, each with a sync of its own, and counts only as a whole. Default 4 MiB, at most a
    /// segment without its first block.
    pub group_bytes_max: u64,
    /// Whose log it is: a venue's or cluster's number. A log of another owner is refused.
    pub owner_id: u64,
    /// An entry that is known to have been durable, from a snapshot or a peer, say. A log that ends before it is refused.
    pub durable_floor: Option<LogIndex>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            first_segment_bytes: 64 << 20,
            spent_files_max: 8,
            let_go: LetGo::Reuse,
            block_bytes: 4096,
            group_bytes_max: 4 << 20,
            owner_id: 0,
            durable_floor: None,
        }
    }
}

impl LogOptions {
    /// Longest entry that these options allow.
    #[must_use]
    pub fn entry_bytes_max(&self) -> usize {
        let room = self.group_room().saturating_sub((GROUP_HEADER_BYTES + RECORD_HEADER_BYTES) as u64);
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Length of the segment with an id. Used both to prepare the segment and to plan writes to it.
    pub(crate) fn segment_bytes_of(&self, segment_id: u64) -> u64 {
        let block = u64::from(self.block_bytes);
        let smallest = self.group_room().saturating_add(block).next_multiple_of(block);
        let first = self.first_segment_bytes.checked_next_multiple_of(block).unwrap_or(u64::MAX).max(smallest);
        let doublings = u32::try_from(segment_id.saturating_sub(FIRST_SEGMENT_ID)).unwrap_or(u32::MAX);
        let bytes = 1_u64.checked_shl(doublings).map_or(u64::MAX, |factor| first.saturating_mul(factor));
        bytes.min(self.segment_bytes)
    }

    /// Longest group: what is asked for, as far as a segment has room.
    pub(crate) fn group_room(&self) -> u64 {
        self.group_bytes_max.min(self.segment_bytes.saturating_sub(u64::from(self.block_bytes)))
    }

    pub(crate) fn check(&self) -> Result<(), LogError> {
        let block = u64::from(self.block_bytes);
        let refuse = |detail: String| Err(LogError::Options { detail });
        if !self.block_bytes.is_power_of_two() || !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&self.block_bytes) {
            return refuse(format!(
                "`block_bytes` is {}, it must be a power of two from {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX}",
                self.block_bytes
            ));
        }
        if !self.segment_bytes.is_multiple_of(block) || self.segment_bytes < 2 * block {
            return refuse(format!(
                "`segment_bytes` is {}, it must be a multiple of `block_bytes` ({block}) and at least twice as much",
                self.segment_bytes
            ));
        }
        if self.group_bytes_max < block || self.group_bytes_max > 1 << 30 {
            return refuse(format!(
                "`group_bytes_max` is {}, it must be from `block_bytes` ({block}) to {}",
                self.group_bytes_max,
                1 << 30
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_double_from_the_first_one_and_each_has_room_for_the_longest_group() {
        let short = LogOptions { first_segment_bytes: 16 << 20, ..LogOptions::default() };
        let lengths = |options: &LogOptions| (1..7).map(|id| options.segment_bytes_of(id)).collect::<Vec<_>>();
        assert_eq!(lengths(&LogOptions::default()), [64 << 20; 6]);
        assert_eq!(lengths(&short), [16, 32, 64, 64, 64, 64].map(|mib| mib << 20));
        let cramped = LogOptions { first_segment_bytes: 1, ..LogOptions::default() };
        let first = (4 << 20) + 4096;
        assert_eq!(lengths(&cramped), [first, 2 * first, 4 * first, 8 * first, 64 << 20, 64 << 20]);
        let long = LogOptions { first_segment_bytes: u64::MAX, ..LogOptions::default() };
        assert_eq!(lengths(&long), [64 << 20; 6]);
        assert_eq!(LogOptions::default().segment_bytes_of(u64::MAX), 64 << 20);
        let odd = LogOptions { group_bytes_max: 4097, first_segment_bytes: 5000, ..LogOptions::default() };
        assert_eq!(lengths(&odd)[..2], [3 * 4096, 6 * 4096]);
    }
}
