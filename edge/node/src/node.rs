//! A venue and its server in one process: what `walras serve` runs, and what tests and the demo start.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::sync::watch;
use tracing::info;
use walras_gateway::{Algorithm, KeyError, Permission};
use walras_log_store::{Disk, RealDisk};

use crate::access::{Access, AccessError, Start, generate, write_secret};
use crate::config::Config;
use crate::http::{App, Server, ServerError, router};
use crate::json::Refusal;
use crate::runtime::{Clock, RecoveryError, StartOptions, Venue, VenueHandle};

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The venue's state could not be recovered.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The keys could not be read.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The server could not listen.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A key could not be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A key could not be kept.
    #[error("a key could not be kept: {reason}{detail}", reason = .0.reason, detail = .0.detail.as_deref().unwrap_or_default())]
    KeyRefused(Refusal),
    /// No threads for the server.
    #[error("could not start the server's threads: {0}; raise the limit on threads of this user")]
    Threads(std::io::Error),
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    venue: Venue,
    access: Arc<Access>,
    runtime: Runtime,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    server: tokio::task::JoinHandle<()>,
}

/// Where the operator's first key is written, in the data folder.
#[must_use]
pub fn operator_key_file(data: &Path) -> PathBuf {
    data.join("operator.key")
}

impl Node {
    /// Recovers the venue in `data`, or begins one, and serves it.
    pub fn start(data: &Path, config: &Config) -> Result<Self, NodeError> {
        Self::start_on(RealDisk, Clock::system(), data, config)
    }

    /// The same with log and snapshots on any disk, by any clock; keys are always files.
    pub fn start_on<D: Disk>(disk: D, clock: Clock, data: &Path, config: &Config) -> Result<Self, NodeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(std::thread::available_parallelism().map_or(2, |n| n.get().clamp(1, 4)))
            .thread_name("walras-io")
            .enable_all()
            .build()
            .map_err(NodeError::Threads)?;
        // The port first: it fails at once where another venue runs.
        let server = {
            let _context = runtime.enter();
            Server::bind(config)?
        };
        let venue = Venue::start_on(disk, &StartOptions { data: data.to_path_buf(), clock, config: config.clone() })?;
        let start = Start { started: venue.handle().status().started(), log_time: venue.recovered().log_time };
        let access = Arc::new(Access::open(data, &config.throttle, venue.handle().clock().clone(), start)?);
        if access.is_empty() {
            let key = generate(Algorithm::Ed25519);
            let file = operator_key_file(data);
            write_secret(&file, format!("{}\n", key.to_token().as_str()).as_bytes())?;
            let operator = [Permission::Operator].into_iter().collect();
            access.add(key.record(None, operator)?).map_err(NodeError::KeyRefused)?;
            info!("the operator's key is in {}", file.display());
        }
        let (stop, stopping) = watch::channel(false);
        let config = Arc::new(config.clone());
        let app =
            App { venue: venue.handle(), access: Arc::clone(&access), config: Arc::clone(&config), stopping: stopping.clone() };
        let address = server.address();
        let status = venue.handle().status().clone();
        let server = runtime.spawn(server.serve(router(app), config, status, stopping));
        Ok(Self { venue, access, runtime, address, stop, server })
    }

    /// Where it serves.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The market.
    #[must_use]
    pub fn venue(&self) -> VenueHandle {
        self.venue.handle()
    }

    /// What was found at the start.
    #[must_use]
    pub fn recovered(&self) -> &crate::runtime::Recovered {
        self.venue.recovered()
    }

    /// The keys.
    #[must_use]
    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Runs until SIGINT or SIGTERM.
    pub fn wait_for_signal(&self) -> std::io::Result<()> {
        self.runtime.block_on(async {
            let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
            tokio::select! {
                interrupted = tokio::signal::ctrl_c() => interrupted,
                _ = terminate.recv() => Ok(()),
            }
        })
    }

    /// Takes no more, finishes what was taken, writes a snapshot.
    pub fn stop(self) {
        // Nobody listening is as good.
        let _ = self.stop.send(true);
        let _ = self.runtime.block_on(self.server);
        self.venue.stop();
        self.runtime.shutdown_background();
    }
}
