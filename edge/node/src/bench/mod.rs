//! `walras bench`: how fast this machine is, and how a running venue answers under load.
//!
//! [`machine`] measures book, engine and log in this process on a made stream whose answer is known; [`load`] sends orders to a venue
//! over its WebSocket on a fixed schedule. Both are for an operator who wants to know what to expect; the figures of the project,
//! measured beside other programs, are those of `make bench`.

pub mod cluster;
pub mod failover;
mod latency;
pub mod load;
pub mod machine;

use std::path::PathBuf;

pub use latency::{Latencies, LatencyReport};

use crate::client::ClientError;

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The venue refused a question, or could not be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The stream could not be run.
    #[error(transparent)]
    Replay(#[from] walras_replay::ReplayError),
    /// The log under the data folder refused, or its disk.
    #[error(transparent)]
    Log(#[from] walras_log_store::LogError),
    /// Something was measured that gave a wrong answer, so its speed means nothing.
    #[error(
        "{0} gave another answer than the stream's: its speed means nothing; please report this with the machine and the version"
    )]
    WrongAnswer(&'static str),
    /// A folder could not be made.
    #[error("could not make {}: {source}; choose another folder with --data", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// An address that a WebSocket can not be opened to.
    #[error("{url} is no address of the kind http://host:port; behind a proxy with TLS, run the bench on the venue's own machine")]
    Url {
        /// What was given.
        url: String,
    },
    /// The connection could not be opened, or broke.
    #[error("the WebSocket of {url}: {detail}; is the venue running there, and has it room (`http.connections_max`)?")]
    Socket {
        /// Where.
        url: String,
        /// What happened.
        detail: String,
    },
    /// The instrument does not exist.
    #[error("the venue has no instrument {0}; `walras instruments` lists them")]
    UnknownInstrument(String),
    /// Nothing matches now.
    #[error("{instrument} is in the phase {phase}; open it with `walras admin phase {instrument} continuous`, or choose another")]
    NotOpen {
        /// Which.
        instrument: String,
        /// In which phase.
        phase: String,
    },
    /// There is no price at which orders could be tried.
    #[error("{instrument}: {why}; {advice}")]
    NoPrice {
        /// Which.
        instrument: String,
        /// Why.
        why: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// The venue lets this key or this address send less.
    #[error(
        "the venue throttled the load after {acknowledged} answers ({detail}): raise {setting} in its configuration, or lower --rate"
    )]
    Throttled {
        /// How far it came.
        acknowledged: u64,
        /// What the venue said.
        detail: String,
        /// Which setting bounds it.
        setting: &'static str,
    },
    /// A cluster could not be measured.
    #[error("{0}")]
    Cluster(String),
    /// Nothing that was sent was taken.
    #[error("the venue took none of {sent} commands: {refused}; check the account's balances and limits with `walras account`")]
    NothingTaken {
        /// How many.
        sent: u64,
        /// Why not.
        refused: String,
    },
}
