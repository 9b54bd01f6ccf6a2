//! Why a load could not be measured.

use crate::http::ClientError;

/// Why a load has no figures.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The venue refused a question, or could not be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The stream could not be made.
    #[error(transparent)]
    Replay(#[from] walras_replay::ReplayError),
    /// An address that no WebSocket can be opened to.
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
