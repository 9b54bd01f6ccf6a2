//! What a log entry holds: the time it was stamped with, then the command.

use walras_types::{LogIndex, TimeNs};
use walras_wire::{Command, DecodeError, decode_command, encode_command};

/// A command with its place and time in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub log_index: LogIndex,
    /// When the sequencer took it.
    pub time: TimeNs,
    /// What it asks.
    pub command: Command,
}

/// Bytes in the log that are no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Shorter than the time that every entry begins with.
    #[error("an entry of {bytes} bytes is too short to hold a time and a command; the log was not written by this program")]
    Short {
        /// Its length.
        bytes: usize,
    },
    /// The command does not decode.
    #[error("the entry's command does not decode: {0}")]
    Command(#[from] DecodeError),
}

/// Appends the bytes of an entry: the time as eight little-endian bytes, then the command. The log keeps the index itself.
pub fn encode_entry(time: TimeNs, command: &Command, buffer: &mut Vec<u8>) {
    buffer.extend_from_slice(&time.0.to_le_bytes());
    encode_command(command, buffer);
}

/// Reads the entry that stands at `log_index`.
pub fn decode_entry(log_index: LogIndex, bytes: &[u8]) -> Result<Entry, EntryError> {
    let (time, command) = bytes.split_first_chunk::<8>().ok_or(EntryError::Short { bytes: bytes.len() })?;
    Ok(Entry { log_index, time: TimeNs(u64::from_le_bytes(*time)), command: decode_command(command)? })
}
