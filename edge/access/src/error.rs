//! Errors of reading, storing and making keys.

use std::path::PathBuf;

use walras_gateway::KeyError;

use crate::refusal::Refusal;

/// Why the keys could not be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The operating system failed.
    #[error("could not {action} {path}: {source}; check the folder's permissions and the disk")]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a key file.
    #[error("{path}: {detail}; restore the file from a backup")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The fault.
        detail: String,
    },
}

/// Why an operator's key could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OperatorKeyError {
    /// A file.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The key itself.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key could not be stored.
    #[error("a key could not be kept: {reason}{detail}", reason = .0.reason, detail = .0.detail.as_deref().unwrap_or_default())]
    Refused(Refusal),
}
