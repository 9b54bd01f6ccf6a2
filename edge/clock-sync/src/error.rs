//! Errors at the start of a clock.

use thiserror::Error;

/// Why a clock did not start. If a source becomes silent later, that is not an error but shown in its status.
#[derive(Debug, Error)]
pub enum StartError {
    /// The limits for stopping and resuming stamps are too close.
    #[error("a bound of {bound_max_ns} ns leaves no room between stopping to stamp and starting again: set at least 4 ns")]
    Bound {
        /// The given bound.
        bound_max_ns: u64,
    },
    /// The operator declared no bound.
    #[error("the system's clock has no bound of its own: declare how far it may be off, or take another source")]
    NoBound,
    /// The device cannot be opened.
    #[error("{device}: {source}; check that it exists (ls /dev/ptp*) and that this user may read it")]
    Device {
        /// Its path.
        device: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The mesh's socket cannot be opened.
    #[error("could not listen on {address} for probes: {source}; choose another address or port")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The mesh's configuration is invalid.
    #[error("{0}")]
    Mesh(String),
    /// The thread could not be started.
    #[error("could not start the clock's thread: {0}; raise the limit on threads of this user")]
    Thread(std::io::Error),
}
