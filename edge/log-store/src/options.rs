//! How a log is laid out.

use crate::error::LogError;
use crate::format::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, GROUP_HEADER_BYTES, RECORD_HEADER_BYTES};
use walras_types::LogIndex;

/// How a log is laid out. Sizes may change between one opening and the next; they hold for segments prepared from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Length of a segment's file. Default 64 MiB.
    pub segment_bytes: u64,
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
        Self { segment_bytes: 64 << 20, block_bytes: 4096, group_bytes_max: 4 << 20, owner_id: 0, durable_floor: None }
    }
}

impl LogOptions {
    /// Longest entry that these options allow.
    #[must_use]
    pub fn entry_bytes_max(&self) -> usize {
        let room = self.group_room().saturating_sub((GROUP_HEADER_BYTES + RECORD_HEADER_BYTES) as u64);
        usize::try_from(room).unwrap_or(usize::MAX)
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
