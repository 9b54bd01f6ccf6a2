//! Why a clock does not start.

use thiserror::Error;

/// Why a clock did not start. A source that is silent later is no error: its status says so.
#[derive(Debug, Error)]
pub enum StartError {
    /// No room between stopping and starting again.
    #[error("a bound of {bound_max_ns} ns leaves no room between stopping to stamp and starting again: set at least 4 ns")]
    Bound {
        /// What was given.
        bound_max_ns: u64,
    },
    /// The operator declared nothing.
    #[error("the system's clock has no bound of its own: declare how far it may be off, or take another source")]
    NoBound,
    /// The device can not be opened.
    #[error("{device}: {source}; check that it exists (ls /dev/ptp*) and that this user may read it")]
    Device {
        /// Its path.
        device: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The mesh's socket can not be opened.
    #[error("could not listen on {address} for probes: {source}; choose another address or port")]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A mesh that can not be.
    #[error("{0}")]
    Mesh(String),
    /// No thread.
    #[error("could not start the clock's thread: {0}; raise the limit on threads of this user")]
    Thread(std::io::Error),
}
