//! Errors of load measurements.

use crate::http::ClientError;

/// Why a load has no figures.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The venue refused a query or could not be reached.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The stream could not be made.
    #[error(transparent)]
    Replay(#[from] walras_replay::ReplayError),
    /// An address that no WebSocket can be opened to.
    #[error("{url} is no address of the kind http://host:port; behind a proxy with TLS, run the bench on the venue's own machine")]
    Url {
        /// The given URL.
        url: String,
    },
    /// The connection could not be opened, or broke.
    #[error("the WebSocket of {url}: {detail}; is the venue running there, and has it room (`http.connections_max`)?")]
    Socket {
        /// The URL.
        url: String,
        /// The failure.
        detail: String,
    },
    /// The instrument does not exist.
    #[error("the venue has no instrument {0}; `walras instruments` lists them")]
    UnknownInstrument(String),
    /// The market is not matching now.
    #[error("{instrument} is in the phase {phase}; open it with `walras admin phase {instrument} continuous`, or choose another")]
    NotOpen {
        /// The instrument.
        instrument: String,
        /// The trading phase.
        phase: String,
    },
    /// There is no suitable price for test orders.
    #[error("{instrument}: {why}; {advice}")]
    NoPrice {
        /// The instrument.
        instrument: String,
        /// The reason.
        why: &'static str,
        /// Advice.
        advice: &'static str,
    },
    /// The venue throttled this key or this address.
    #[error(
        "the venue throttled the load after {acknowledged} answers ({detail}): raise {setting} in its configuration, or lower --rate"
    )]
    Throttled {
        /// Number of acknowledged commands.
        acknowledged: u64,
        /// The venue's message.
        detail: String,
        /// The setting that limits it.
        setting: &'static str,
    },
    /// A cluster could not be measured.
    #[error("{0}")]
    Cluster(String),
    /// None of the commands was accepted.
    #[error("the venue took none of {sent} commands: {refused}; check the account's balances and limits with `walras account`")]
    NothingTaken {
        /// Number of commands sent.
        sent: u64,
        /// The refusal.
        refused: String,
    },
}
