//! `walras gateway`.

use std::path::{Path, PathBuf};

use clap::Args;
use walras_access::Clock;
use walras_access::connections::prepare_descriptors;
use walras_clock_sync::ClockService;
use walras_config::Config;

use super::args::{LogFormat, LogLevel};
use super::serve::log_to_stderr;
use super::{CliError, print};
use crate::runtime::LeafGateway;

/// `walras gateway`.
#[derive(Debug, Args)]
pub struct GatewayArgs {
    /// The configuration file; docs/gateways.md describes it.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Folder of its copy of the venue's keys, instead of the configuration's.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Least important messages that are written to standard error.
    #[arg(long, env = "WALRAS_LOG_LEVEL", value_enum, default_value = "info", value_name = "LEVEL")]
    pub log_level: LogLevel,
    /// How messages are written: for people, or one JSON object a line.
    #[arg(long, env = "WALRAS_LOG_FORMAT", value_enum, default_value = "text", value_name = "FORMAT")]
    pub log_format: LogFormat,
}

pub(super) fn run(args: &GatewayArgs) -> Result<(), CliError> {
    let config = Config::load(Some(&args.config))?;
    let options = config.gateway_options()?;
    log_to_stderr(args.log_level, args.log_format);
    prepare_descriptors();
    let clock_service = config.clock.options()?.map(ClockService::start).transpose();
    let clock_service = clock_service.map_err(|error| CliError::Wrong(error.to_string()))?;
    let source = clock_service.as_ref().map(ClockService::source);
    let data = args.data.as_deref().unwrap_or(Path::new(&config.venue.data));
    let id = options.id;
    let gateway = LeafGateway::start(options, data, (&Clock::system(), source), config.throttle.rates())?;
    let fix = gateway.fix_address().map_or(String::new(), |address| format!(", orders by FIX at {address}"));
    let data = gateway.fix_market_data_address();
    let data = data.map_or(String::new(), |address| format!(", gives out market data by FIX at {address}"));
    print(&format!("gateway {id} takes binary orders at {}{fix}{data}\n", gateway.order_entry_address()))?;
    let waited = wait_for_signal();
    gateway.stop();
    waited.map_err(|source| CliError::Io { what: "could not wait for signals".into(), source })
}

/// Until SIGINT or SIGTERM.
fn wait_for_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    })
}
