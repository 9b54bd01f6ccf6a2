//! What a start finds, and why a venue does not start.

use std::thread::JoinHandle;

use walras_config::Config;
use walras_gateway::session::ReportSettings;
use walras_log_store::{LetGo, LogError, LogOptions};
use walras_replica::State;
use walras_replica_log::OpenError;
use walras_types::{LogIndex, TimeNs};

/// Why a venue did not start.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The newest snapshot does not restore.
    #[error("the snapshot of entry {index} does not restore: {detail}; move it away to start from the one before and the log")]
    Snapshot {
        /// Which.
        index: LogIndex,
        /// Why.
        detail: String,
    },
    /// The log, read for the archive.
    #[error(transparent)]
    LogReader(#[from] walras_log_reader::LogReadError),
    /// A replica's log does not open.
    #[error(transparent)]
    Log(#[from] OpenError),
    /// A replica's folder, log or links are not as they must be.
    #[error("{0}")]
    Replica(String),
    /// A thread could not be started.
    #[error("could not start a thread: {0}; raise the limit on threads of this user")]
    Thread(std::io::Error),
}

impl RecoveryError {
    /// Whether a log or its snapshots are damaged, so that the same start fails again.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Snapshot { .. } => true,
            Self::Log(
                OpenError::Store(LogError::Corrupt { .. })
                | OpenError::Misfit { .. }
                | OpenError::LogLost { .. }
                | OpenError::SnapshotMissing { .. },
            ) => true,
            Self::LogReader(error) => error.is_damage(),
            Self::Log(_) | Self::Replica(_) | Self::Thread(_) => false,
        }
    }
}

/// What recovery found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Last entry that the snapshot held; 0 without one.
    pub snapshot_index: LogIndex,
    /// Entries replayed from the log after it.
    pub entries_replayed: u64,
    /// Last entry of all.
    pub log_index: LogIndex,
    /// Its time: the venue was running then, whatever the clock shows now.
    pub log_time: TimeNs,
    /// Hash of the state.
    pub state_hash: [u8; 32],
}

/// Restores a snapshot's state and saves it again. A snapshot that restores gives its own bytes: one state has one encoding.
pub fn snapshot_again(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let State { mut engine, mut derived, mut reports } = State::decode(bytes, ReportSettings::default())?;
    Ok(State::freeze(&mut engine, &mut derived, &mut reports).encode())
}

/// How the log of a venue is laid out.
#[must_use]
pub fn log_options(config: &Config) -> LogOptions {
    let let_go = if config.log.keep_mib > 0 { LetGo::Keep } else { LetGo::Reuse };
    LogOptions { segment_bytes: config.log.segment_bytes, let_go, ..LogOptions::default() }
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, RecoveryError> {
    std::thread::Builder::new().name(format!("walras-{name}")).spawn(run).map_err(RecoveryError::Thread)
}
