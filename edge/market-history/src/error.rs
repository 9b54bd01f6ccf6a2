//! What can be wrong with a file of history, where, and what its reader can do.

use std::path::PathBuf;

use crate::format::Format;

/// A place in a file, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// In a text file.
    Line {
        /// From 1.
        line: u64,
        /// Offset of the line's first byte, from 0.
        byte: u64,
    },
    /// In a binary file: offset of the message's first byte, from 0.
    Byte(u64),
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Position::Line { line, byte } => write!(f, "line {line} (byte {byte})"),
            Position::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// Why history could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The bytes do not follow the format. Text readers go on with the next line when asked again; binary readers end.
    #[error("{format}, {at}: expected {expected}, found {found}; {advice}")]
    Malformed {
        /// The format that was assumed.
        format: &'static str,
        /// The position in the file.
        at: Position,
        /// What should have stood there.
        expected: &'static str,
        /// What stands there, shortened and escaped.
        found: String,
        /// Advice.
        advice: &'static str,
    },
    /// The stream broke off or its compressed form is damaged.
    #[error(
        "reading after {at}: {source}; check that the file is whole (compare its checksum with the origin's) and fetch it again"
    )]
    Read {
        /// How far the reader had come.
        at: Position,
        /// The operating system's or the decompressor's reason.
        source: std::io::Error,
    },
    /// A file could not be opened.
    #[error("opening {}: {source}; check the path and its permissions", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A zip archive that holds anything but one file of history, or is damaged.
    #[error("{}: {reason}; unpack it and name the file inside", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// Nothing known.
    #[error("{}: not a known format ({reason}). Known are: {}; each also as .xz, .gz or .zip. \
             Name the format if the file is one of these", path.display(), Format::list())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What was seen.
        reason: String,
    },
    /// A value that the format to be written has no room for.
    #[error("message {index}: {what} does not fit {format}; {advice}")]
    Unwritable {
        /// Number of the message, from 1.
        index: u64,
        /// The value.
        what: &'static str,
        /// The format to be written.
        format: &'static str,
        /// Advice.
        advice: &'static str,
    },
    /// Writing failed.
    #[error("writing: {0}; free space or choose another place, then write the file again")]
    Write(#[source] std::io::Error),
}

/// Bytes of a found value that an error repeats.
const FOUND_BYTES_MAX: usize = 48;

/// `bytes` as an error shows them: escaped and shortened.
pub(crate) fn show(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(FOUND_BYTES_MAX)];
    let more = if shown.len() < bytes.len() { "..." } else { "" };
    format!("'{}{more}'", shown.escape_ascii())
}
