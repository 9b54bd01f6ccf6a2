//! A venue and its server in one process: what `walras serve` runs, and what tests and the demo start.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::watch;
use tracing::{info, warn};
use walras_access::connections::Doors;
pub use walras_access::operator_key_file;
use walras_access::{Access, AccessError, Clock, OperatorKeyError, Start};
use walras_api::http::{App, AppParts, OPERATOR_PLACES, Server, ServerError};
use walras_api::router;
use walras_clock_sync::{ClockService, Source, StartError};
use walras_config::{Addresses, ClusterOptions, Config, ConfigError};
use walras_gateway::KeyError;
use walras_log_store::{Disk, RealDisk};
use walras_ports::VenueHandle;
use walras_shard_relays::{ShardsError, TransferRelays};

use crate::places;
use crate::runtime::{LogHistory, Recovered, RecoveryError, ReplicaVenue};

/// How long requests of several commands may take to end when the node stops.
const GRACE: Duration = Duration::from_secs(5);

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The venue's state could not be recovered.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The cluster's keys could not be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The clock could not be started.
    #[error(transparent)]
    Clock(#[from] StartError),
    /// The keys could not be read.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The server could not listen.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A key could not be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The operator's key could not be made or kept.
    #[error(transparent)]
    OperatorKey(#[from] OperatorKeyError),
    /// It can not be the shard that it is said to be.
    #[error(transparent)]
    Shards(#[from] ShardsError),
    /// No threads for the server.
    #[error("could not start the server's threads: {0}; raise the limit on threads of this user")]
    Threads(std::io::Error),
}

impl NodeError {
    /// Whether the log or its snapshots are damaged, so that the same start fails again.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Recovery(error) if error.is_damage())
    }
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    venue: ReplicaVenue,
    access: Arc<Access>,
    clock: Option<ClockService>,
    relays: Option<TransferRelays>,
    /// Until it is dropped.
    _history: LogHistory,
    /// With which it started.
    config: Arc<Config>,
    runtime: Runtime,
    readers: Runtime,
    lists: Runtime,
    address: SocketAddr,
    operator_address: Option<SocketAddr>,
    binance_address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    server: tokio::task::JoinHandle<()>,
}

/// Where a client on this machine reaches a port; empty where the port is not of one address.
fn reached_at(address: Option<SocketAddr>) -> String {
    address.filter(|address| !address.ip().is_unspecified()).map_or_else(String::new, |address| address.to_string())
}

/// Readers that have not logged on are served with the processor time that requests and orders leave, and so are long answers. A lower
/// nice value is not enough: the kernel lets a running thread finish its slice, milliseconds, where one of this class stands back at
/// once.
fn yield_to_requests() {
    // Elsewhere than on Linux it would be said of the whole process.
    #[cfg(target_os = "linux")]
    {
        use thread_priority::unix::{
            NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
        };
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        if let Err(e) = set_thread_priority_and_policy(thread_native_id(), thread_priority::ThreadPriority::Min, idle) {
            tracing::debug!("threads that serve readers and make lists keep their priority: {e:?}");
        }
    }
}

impl Node {
    /// Recovers the venue in `data`, or begins one, and serves it.
    pub fn start(data: &Path, config: &Config) -> Result<Self, NodeError> {
        Self::start_on(RealDisk, Clock::system(), data, config)
    }

    /// The same with log and snapshots on any disk, by any clock; keys are always files.
    pub fn start_on<D: Disk>(disk: D, clock: Clock, data: &Path, config: &Config) -> Result<Self, NodeError> {
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let threads = |name: &str, count: usize, on_start: fn()| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let builder = builder.worker_threads(count).thread_name(name).on_thread_start(on_start);
            builder.enable_all().build().map_err(NodeError::Threads)
        };
        let runtime = threads("walras-io", processors.clamp(1, 4), || ())?;
        let readers = threads("walras-readers", (processors / 2).clamp(1, 4), yield_to_requests)?;
        let lists = threads("walras-lists", (processors / 2).clamp(1, 4), yield_to_requests)?;
        // The port first: it fails at once where another venue runs.
        let (server, facade) = {
            let _context = runtime.enter();
            (Server::bind(config)?, walras_binance::bind(config)?)
        };
        let doors = Doors::new(config.places());
        let shard_plan = config.shard_plan();
        let clock_service = config.clock.options()?.map(ClockService::start).transpose()?;
        let clock_source = clock_service.as_ref().map(ClockService::source);
        let options = ClusterOptions { clock_source, doors: doors.clone(), ..config.cluster_options()? };
        let venue = ReplicaVenue::start_on(disk, data, &clock, config, options)?;
        let start = Start { started: venue.handle().status().started(), log_time: venue.recovered().log_time };
        let access = Arc::new(Access::open(data, config.throttle.rates(), venue.handle().clock().clone(), start)?);
        if !access.has_operator() {
            let made = access.create_operator(data)?;
            info!("no operator's key was known: a new one, {}, is in {}", made.key_id, made.file.display());
        }
        venue.open_order_entry(&access);
        let relays = match shard_plan {
            None => None,
            Some(plan) => Some(TransferRelays::start(&venue.handle(), plan)?),
        };
        let log = data.join("replica").join("log");
        let history = LogHistory::start(&log, &config.log, venue.handle().status().clone())?;
        let (stop, stopping) = watch::channel(false);
        let config = Arc::new(config.clone());
        let of_start = Arc::clone(&config);
        let app = App::from(AppParts {
            venue: venue.handle(),
            access: Arc::clone(&access),
            config: Arc::clone(&config),
            clock: clock_service.as_ref().map(ClockService::source),
            shards: relays.as_ref().map(TransferRelays::shards),
            requests: runtime.handle().clone(),
            readers: readers.handle().clone(),
            lists: lists.handle().clone(),
            stopping: stopping.clone(),
        });
        let (address, operator_address) = (server.address(), server.operator_address());
        let binance_address = facade.as_ref().map(Server::address);
        let readers_of = readers.handle().clone();
        let facade_app =
            walras_binance::App::new(venue.handle(), Arc::clone(&access), Arc::clone(&config), readers_of, stopping.clone());
        let own = Addresses { http: reached_at(Some(address)), order_entry: reached_at(venue.order_entry_address()) };
        venue.cluster().set_own_addresses(own);
        let status = venue.handle().status().clone();
        // Places of the operators' own, which strangers may take for some seconds, are files too.
        let of_operators = if config.http.operator_listen.is_empty() { 0 } else { OPERATOR_PLACES };
        let places = places::bounded(config.places(), of_operators);
        doors.set_places(places);
        let facade = walras_binance::serve(facade, facade_app, status.clone(), (doors.clone(), places));
        let server = server.serve(router(app), config, status, (doors, places), stopping);
        let under_way = venue.handle().whole_requests().clone();
        let server = runtime.spawn(async move {
            tokio::join!(server, facade);
            // Nobody asks any more. What was asked and takes several commands is finished, while the venue still takes them.
            if tokio::time::timeout(GRACE, under_way.ended()).await.is_err() {
                warn!("some requests of several commands did not end in time and were cut: look at their accounts' open orders");
            }
        });
        Ok(Self {
            venue,
            access,
            clock: clock_service,
            relays,
            _history: history,
            config: of_start,
            runtime,
            readers,
            lists,
            address,
            operator_address,
            binance_address,
            stop,
            server,
        })
    }

    /// Where it serves.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it serves operators alone, if it does.
    #[must_use]
    pub fn operator_address(&self) -> Option<SocketAddr> {
        self.operator_address
    }

    /// Where it serves the dialect of `docs/binance.md`, if it does.
    #[must_use]
    pub fn binance_address(&self) -> Option<SocketAddr> {
        self.binance_address
    }

    /// The market.
    #[must_use]
    pub fn venue(&self) -> VenueHandle {
        self.venue.handle()
    }

    /// What was found at the start.
    #[must_use]
    pub fn recovered(&self) -> &Recovered {
        self.venue.recovered()
    }

    /// The keys.
    #[must_use]
    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// The venue's time at this node, where it keeps it.
    #[must_use]
    pub fn clock(&self) -> Option<Source> {
        self.clock.as_ref().map(ClockService::source)
    }

    /// Where orders come in binary, if they do.
    #[must_use]
    pub fn order_entry_address(&self) -> Option<SocketAddr> {
        self.venue.order_entry_address()
    }

    /// Where FIX is spoken, if it is.
    #[must_use]
    pub fn fix_address(&self) -> Option<SocketAddr> {
        self.venue.fix_address()
    }

    /// Where FIX market data is read, if it is.
    #[must_use]
    pub fn fix_market_data_address(&self) -> Option<SocketAddr> {
        self.venue.fix_market_data_address()
    }

    /// Runs until SIGINT or SIGTERM, or until the replica stops by itself: [`Node::stop`] then says why. SIGHUP calls `reload`, which may
    /// give a configuration whose cluster section is taken over.
    pub fn wait_for_signal(&self, mut reload: impl FnMut() -> Option<Config>) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        self.runtime.block_on(async {
            let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
            loop {
                tokio::select! {
                    interrupted = tokio::signal::ctrl_c() => return interrupted,
                    _ = terminate.recv() => return Ok(()),
                    () = self.venue.ended() => return Ok(()),
                    _ = hang_up.recv() => if let Some(config) = reload() {
                        self.reload(&config).await;
                    },
                }
            }
        })
    }

    /// Takes over who the other replicas are, where, and the keys of the links; the rest of the configuration counts after a restart.
    /// What became of it is in the log.
    async fn reload(&self, config: &Config) {
        if let Err(why) = self.venue.reload(&self.config, config).await {
            warn!("the configuration was read again and not taken over: {why}");
        }
    }

    /// Takes no more, finishes what was taken, and closes the log: a venue that is alone writes a snapshot first, so that the next start
    /// replays nothing. Why the replica had stopped before.
    pub fn stop(self) -> Option<String> {
        // Nobody listening is as good.
        let _ = self.stop.send(true);
        let _ = self.runtime.block_on(self.server);
        if let Some(relays) = self.relays {
            relays.stop();
        }
        let why = self.venue.stop().map(|halt| halt.to_string());
        self.runtime.shutdown_background();
        self.readers.shutdown_background();
        self.lists.shutdown_background();
        why
    }
}
