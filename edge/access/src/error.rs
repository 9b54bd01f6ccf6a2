//! Why keys could not be read, kept or made.

use std::path::PathBuf;

use walras_gateway::KeyError;

use crate::refusal::Refusal;

/// Why the keys could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The operating system failed.
    #[error("could not {action} {path}: {source}; check the folder's permissions and the disk")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not one of keys.
    #[error("{path}: {detail}; restore the file from a backup")]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
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
    /// It could not be kept.
    #[error("a key could not be kept: {reason}{detail}", reason = .0.reason, detail = .0.detail.as_deref().unwrap_or_default())]
    Refused(Refusal),
}
