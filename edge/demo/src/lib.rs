//! `walras demo`: a venue with simulated activity. It sends a recorded or generated order stream as commands of many accounts, runs
//! market-making bots, and has an account for the user of the web page, who may also trade by FIX.
//!
//! It uses only what a participant or an operator could: every effect goes through the log. It can run for hours without growing:
//! the stream's accounts trade with each other, get new funds at each end of the stream, and have their orders cancelled there.
//! Bots stop at their limits.

mod batch;
mod bots;
mod scenario;
mod stream;
mod translate;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::error;
use walras_access::{Access, AccessError, Refusal, write_secret};
use walras_config as config;
use walras_config::{Config, ConfigError, Speed};
use walras_ports::{DemoStatus, NoOutcome, VenueHandle};
use walras_terminal::progress::while_waiting;
use walras_types::RejectReason;
use zeroize::Zeroizing;

pub use scenario::Scenario;
pub use stream::Source;

/// MiB of the log's history that a demo keeps, unless its configuration says otherwise: it trades without end.
const KEEP_MIB: u64 = 128;

/// Size of a segment of the demo's log.
const SEGMENT_BYTES: u64 = 8 << 20;

/// Entries between snapshots of the demo. An entry that is logged alone takes 4 KiB, and the log holds up to three such stretches.
const SNAPSHOT_EVERY_ENTRIES: u64 = 25_000;

/// The demo's fair access delay, unless configured otherwise: long enough to be visible in the figures, too short to be noticed.
const SEQUENCING: &str = "200us";
const RELEASE: &str = "2ms";
/// Clock bound, in microseconds: there is only one machine.
const CLOCK_BOUND_US: u64 = 20;

/// The key of the page's user in the data folder, for the command line.
const TRADER_KEY_FILE: &str = "trader.key";
/// The same user's key for FIX engines.
const FIX_KEY_FILE: &str = "fix.key";

/// The ports of FIX that docs/fix.md has in its examples: orders, market data.
const FIX_PORT: u16 = 7_373;
const FIX_MARKET_DATA_PORT: u16 = 7_374;

/// Why the demo did not start.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The stream cannot be read.
    #[error(transparent)]
    History(#[from] walras_market_history::HistoryError),
    /// The stream is empty.
    #[error("{0} holds no order that the demo could send; give another file, or none for a generated stream")]
    Empty(String),
    /// The venue refused a step of the preparation.
    #[error("the venue refused to {step}: {reason}")]
    Refused {
        /// The attempted operation.
        step: &'static str,
        /// The reason.
        reason: RejectReason,
    },
    /// A step of the preparation has no outcome.
    #[error("could not {step}: {why}")]
    NoOutcome {
        /// The attempted operation.
        step: &'static str,
        /// The reason.
        why: NoOutcome,
    },
    /// A key could not be stored.
    #[error("the demo's key could not be kept: {reason}{detail}", reason = .0.reason, detail = .0.detail.as_deref().unwrap_or_default())]
    Key(Refusal),
    /// The batch market was not opened.
    #[error(
        "the batch market {name} is not open after {waited:?}: see what the venue says of it above, or remove the demo's data \
         folder to start again"
    )]
    NoBatchMarket {
        /// Its name.
        name: &'static str,
        /// Time waited.
        waited: Duration,
    },
    /// The existing batch market differs.
    #[error(
        "the batch market {0} of this folder has other assets than the demo's bots trade; give another folder with --data, or remove this one"
    )]
    OtherBatchMarket(&'static str),
    /// The demo's own file cannot be read or written.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The demo's own file is invalid.
    #[error("{path}: {detail}; remove the demo's data folder to start again")]
    File {
        /// The file.
        path: String,
        /// The fault.
        detail: String,
    },
    /// A thread could not be started.
    #[error("could not start a thread: {0}; raise the limit on threads of this user")]
    Thread(std::io::Error),
}

/// Signals the demo's threads to stop, and lets them wait for the signal.
#[derive(Clone, Debug, Default)]
struct StopSignal(Arc<(Mutex<bool>, Condvar)>);

impl StopSignal {
    fn stop(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Waits; returns whether to stop.
    fn wait(&self, at_most: Duration) -> bool {
        let stopped = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if at_most.is_zero() {
            return *stopped;
        }
        *self.0.1.wait_timeout_while(stopped, at_most, |stopped| !*stopped).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A sample order for the user.
#[derive(Debug)]
struct OrderExample {
    symbol: String,
    /// Price in dollars.
    price: i64,
}

/// A running demo.
#[derive(Debug)]
pub struct Demo {
    source: String,
    speed: Speed,
    key: Zeroizing<String>,
    key_file: PathBuf,
    fix_key_file: PathBuf,
    example: OrderExample,
    venue: VenueHandle,
    signal: StopSignal,
    threads: Vec<JoinHandle<()>>,
}

impl Demo {
    /// Adapts the venue's configuration to the demo: a venue of one machine, with fair access and the bots' batch market.
    ///
    /// Its log holds minutes instead of hours, so that its folder stays small: small segments and frequent snapshots, unless
    /// configured otherwise.
    pub fn configure(config: &mut Config) {
        config.cluster = config::Cluster::default();
        if config.order_entry.listen == config::OrderEntry::default().listen {
            // Any free port, because another venue may be running.
            config.order_entry.listen = "127.0.0.1:0".to_owned();
        }
        let fix = [(&mut config.fix.listen, FIX_PORT), (&mut config.fix.market_data_listen, FIX_MARKET_DATA_PORT)];
        for (listen, port) in fix.into_iter().filter(|(listen, _)| listen.is_empty()) {
            *listen = fix_address(port, &config.http.listen);
        }
        let (fair, off) = (&mut config.fair_access, config::FairAccess::default());
        if (&fair.sequencing, &fair.release) == (&off.sequencing, &off.release) {
            (fair.sequencing, fair.release) = (SEQUENCING.to_owned(), RELEASE.to_owned());
            fair.bound_us = fair.bound_us.max(CLOCK_BOUND_US);
        }
        let (log, usual) = (&mut config.log, config::Log::default());
        if log.segment_bytes == usual.segment_bytes {
            log.segment_bytes = SEGMENT_BYTES;
        }
        if log.snapshot_every_entries == usual.snapshot_every_entries {
            log.snapshot_every_entries = SNAPSHOT_EVERY_ENTRIES;
        }
        if log.keep_mib == usual.keep_mib {
            log.keep_mib = KEEP_MIB;
        }
        if config.demo.batch_bots > 0 {
            config.batch.push(batch::section());
        }
    }

    /// Prepares the venue, unless that was done before, and starts the demo. The node must run with the configuration from
    /// [`Demo::configure`].
    pub fn start(venue: VenueHandle, access: &Access, data: &Path, config: &config::Demo) -> Result<Self, DemoError> {
        let speed = config.speed()?;
        let source = Source::find(&config.file, config.seed)?;
        let (scenario, batch) = while_waiting("preparing the demo's markets and accounts", || {
            let bot_counts = (config.bots, config.batch_bots);
            let scenario = Scenario::prepare(&venue, access, data, &source, bot_counts)?;
            let batch = match config.batch_bots {
                0 => None,
                _ => Some(batch::BatchScenario::prepare(&venue, (scenario.user, scenario.user_signs()), scenario.batch_bots())?),
            };
            Ok::<_, DemoError>((scenario, batch))
        })?;
        let key = scenario.key.clone();
        let key_file = data.join(TRADER_KEY_FILE);
        write_secret(&key_file, format!("{}\n", key.as_str()).as_bytes())?;
        let fix_key_file = data.join(FIX_KEY_FILE);
        write_secret(&fix_key_file, format!("{}\n", scenario.fix_key.as_str()).as_bytes())?;
        let symbol = venue.catalog().instrument(scenario.instrument).map_or(String::new(), |scale| scale.spec.symbol.to_string());
        let example = OrderExample { symbol, price: (source.first_price().get() / 100).max(1) };
        let name = source.name().to_owned();
        let status = venue.status().clone();
        let show = |progress_permille| DemoStatus { speed: speed.to_string(), source: name.clone(), progress_permille };
        status.set_demo(Some(show(0)));
        let signal = StopSignal::default();
        let mut threads = Vec::new();
        let bots = bots::Bots::new(&venue, &scenario, config.seed);
        let stop = signal.clone();
        threads.push(spawn("bots", move || bots.run(&stop))?);
        if let Some(batch) = batch {
            let bots = batch::BatchBots::new(batch, config.seed);
            let stop = signal.clone();
            threads.push(spawn("batch-bots", move || bots.run(&stop))?);
        }
        let mut stream = stream::Stream::new(&venue, scenario, source, speed, data);
        let (stop, name, pace) = (signal.clone(), name.clone(), speed.to_string());
        threads.push(spawn("stream", move || {
            stream.run(&stop, |progress_permille| {
                status.set_demo(Some(DemoStatus { speed: pace.clone(), source: name.clone(), progress_permille }));
            });
        })?);
        Ok(Self { source: show(0).source, speed, key, key_file, fix_key_file, example, venue, signal, threads })
    }

    /// Name of the replayed stream.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The speed of the replay.
    #[must_use]
    pub fn speed(&self) -> Speed {
        self.speed
    }

    /// The key of the page's user, `<key id>.<secret>`.
    #[must_use]
    pub fn key(&self) -> &Zeroizing<String> {
        &self.key
    }

    /// A line that enters an order as the page's user.
    #[must_use]
    pub fn order_line(&self, program: &str, url: &str) -> String {
        let OrderExample { symbol, price } = &self.example;
        format!("{program} --url {url} --key {} order buy {symbol} 5 --price {price}", self.key_file.display())
    }

    /// A line that says where the page's user trades and reads market data by FIX, and with which key.
    #[must_use]
    pub fn fix_line(&self, orders: SocketAddr, market_data: SocketAddr) -> String {
        let key_file = self.fix_key_file.display();
        format!("Or by FIX: orders at {orders}, market data at {market_data}, with the key in {key_file} (docs/fix.md)")
    }

    /// Stops the stream and the bots; the venue continues.
    pub fn stop(self) {
        self.signal.stop();
        for thread in self.threads {
            if thread.join().is_err() {
                error!("a thread of the demo panicked; the venue is not affected");
            }
        }
        self.venue.status().set_demo(None);
    }
}

/// This port of the loopback. Any free one, where something listens on it, or where the page is on any free port too.
fn fix_address(port: u16, http: &str) -> String {
    let is_any = http.ends_with(":0") || TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err();
    format!("{}:{}", Ipv4Addr::LOCALHOST, if is_any { 0 } else { port })
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, DemoError> {
    std::thread::Builder::new().name(format!("walras-{name}")).spawn(run).map_err(DemoError::Thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_log_keeps_little_unless_the_configuration_says_otherwise() {
        let mut config = Config::default();
        Demo::configure(&mut config);
        assert_eq!((config.log.segment_bytes, config.log.snapshot_every_entries), (SEGMENT_BYTES, SNAPSHOT_EVERY_ENTRIES));
        // Two snapshots are retained, so the log holds less than three snapshot intervals and two segments.
        let bytes = 3 * SNAPSHOT_EVERY_ENTRIES * 4_096 + 2 * SEGMENT_BYTES;
        assert!(bytes <= 400 << 20, "{bytes} bytes, and the README says that the folder stays below 512 MB");
        let mut own = Config::default();
        (own.log.segment_bytes, own.log.snapshot_every_entries) = (1 << 20, 7);
        Demo::configure(&mut own);
        assert_eq!((own.log.segment_bytes, own.log.snapshot_every_entries), (1 << 20, 7));
    }

    #[test]
    fn it_shows_fair_access_unless_the_configuration_has_its_own() {
        let mut config = Config::default();
        Demo::configure(&mut config);
        config.check().unwrap();
        let options = config.cluster_options().unwrap();
        assert!(options.links.is_none() && options.fair_access.is_some() && options.release.is_some());
        let mut own = Config::default();
        own.fair_access.sequencing = "1%".to_owned();
        Demo::configure(&mut own);
        assert_eq!((own.fair_access.sequencing.as_str(), own.fair_access.release.as_str()), ("1%", "off"));
    }

    #[test]
    fn it_speaks_fix_on_the_loopback_unless_the_configuration_says_where() {
        let configured = |config: &Config| [config.fix.listen.clone(), config.fix.market_data_listen.clone()];
        let mut config = Config::default();
        config.http.listen = "0.0.0.0:0".to_owned();
        Demo::configure(&mut config);
        config.check().unwrap();
        assert_eq!(configured(&config), ["127.0.0.1:0", "127.0.0.1:0"]);
        let mut own = Config::default();
        own.fix.market_data_listen = "127.0.0.1:9999".to_owned();
        Demo::configure(&mut own);
        assert_eq!(own.fix.market_data_listen, "127.0.0.1:9999");
        let orders: SocketAddr = own.fix.listen.parse().unwrap();
        assert!(orders.ip().is_loopback() && [0, FIX_PORT].contains(&orders.port()), "{orders}");
    }

    #[test]
    fn another_venue_on_a_port_of_fix_does_not_stop_it() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = other.local_addr().unwrap();
        assert_eq!(fix_address(address.port(), "127.0.0.1:7070"), "127.0.0.1:0");
        drop(other);
        assert_eq!(fix_address(address.port(), "127.0.0.1:7070"), address.to_string());
    }
}
