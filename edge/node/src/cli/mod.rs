//! The command line: `walras serve` and its clients and tools.

mod admin;
mod archive;
mod args;
mod audit;
mod batch;
mod batch_ends;
mod batch_proof;
mod batch_signer;
mod bench;
mod clear;
mod cluster;
mod cluster_keys;
mod gateway;
mod help;
mod keys;
mod log;
mod log_import;
mod log_text;
mod pool;
mod relay;
mod relay_plan;
mod replay;
mod serve;
mod session;
mod strategy;
mod survivor;
mod together;
pub(crate) mod trade;

use std::process::ExitCode;

use clap::FromArgMatches;
use serde_json::Value;
use walras_access::AccessError;
use walras_client::{Client, ClientError, read_key};
use walras_config::{Config, ConfigError};
use walras_terminal::{escaped, printable, table};

use args::Command;
pub use args::{Cli, ReplayArgs};

use crate::node::NodeError;

/// Why a command did not do what was asked; [`CliError::exit_code`] tells scripts which kind it was.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The venue's answer, or none.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The venue did not start.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A key file.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The log can not be read.
    #[error(transparent)]
    Log(#[from] walras_log_store::LogError),
    /// The log, read from outside.
    #[error(transparent)]
    LogReader(#[from] walras_log_reader::LogReadError),
    /// A file is damaged.
    #[error("{0}")]
    Damaged(String),
    /// The archive.
    #[error(transparent)]
    Archive(#[from] walras_archive::ArchiveError),
    /// The demo did not start.
    #[error(transparent)]
    Demo(#[from] walras_demo::DemoError),
    /// A gateway did not start.
    #[error(transparent)]
    Gateway(#[from] crate::runtime::RecoveryError),
    /// The file of a relay tree.
    #[error(transparent)]
    RelayLayout(#[from] walras_relay_link::LayoutError),
    /// A replay failed.
    #[error(transparent)]
    Replay(#[from] replay::ReplayError),
    /// A batch was not cleared.
    #[error(transparent)]
    Clear(#[from] walras_clear::ClearFileError),
    /// A measurement did not come to an end.
    #[error(transparent)]
    Load(#[from] walras_client::LoadError),
    /// `walras bench` of this machine.
    #[error(transparent)]
    Machine(#[from] walras_machine_bench::MachineError),
    /// The keys of a cluster.
    #[error(transparent)]
    ClusterKeys(#[from] walras_peer_link::keys::KeysError),
    /// A cluster on this machine.
    #[error(transparent)]
    LocalCluster(#[from] walras_client::local_cluster::LocalError),
    /// A replica stopped by itself.
    #[error("this replica has stopped: {0}")]
    Halted(String),
    /// What is asked for can not be asked of this venue.
    #[error("{0}")]
    Wrong(String),
    /// A command was sent under a number of a session, and nobody said what came of it.
    #[error(
        "{why}; whether the command took effect is not known: say the same again with --session {session} --seq {seq}, which can not double it"
    )]
    Unanswered {
        /// Which session.
        session: u64,
        /// Which number.
        seq: u64,
        /// What happened last.
        why: Box<ClientError>,
    },
    /// A file, or the terminal.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl CliError {
    /// The process's exit status; 2 is the command line's own.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        use walras_client::LoadError;
        match self {
            Self::Client(ClientError::Refused { .. })
            | Self::Load(
                LoadError::Client(ClientError::Refused { .. })
                | LoadError::UnknownInstrument(_)
                | LoadError::NotOpen { .. }
                | LoadError::NoPrice { .. }
                | LoadError::Throttled { .. }
                | LoadError::NothingTaken { .. },
            ) => 1,
            Self::Client(ClientError::Unreachable { .. } | ClientError::NotAVenue { .. })
            | Self::Unanswered { .. }
            | Self::Load(
                LoadError::Client(ClientError::Unreachable { .. } | ClientError::NotAVenue { .. })
                | LoadError::Url { .. }
                | LoadError::Socket { .. },
            ) => 3,
            Self::Damaged(_)
            | Self::Log(walras_log_store::LogError::Corrupt { .. })
            | Self::Archive(walras_archive::ArchiveError::Damaged { .. }) => 5,
            Self::Node(error) if error.is_damage() => 5,
            Self::LogReader(error) if error.is_damage() => 5,
            Self::Halted(_) => 6,
            Self::Client(ClientError::NoKey | ClientError::KeyFile { .. } | ClientError::TrustFile { .. })
            | Self::Config(_)
            | Self::Node(_)
            | Self::Gateway(_)
            | Self::RelayLayout(_)
            | Self::ClusterKeys(_)
            | Self::LocalCluster(_)
            | Self::Access(_)
            | Self::Log(_)
            | Self::LogReader(_)
            | Self::Archive(_)
            | Self::Demo(_)
            | Self::Replay(_)
            | Self::Clear(_)
            | Self::Load(
                LoadError::Client(ClientError::NoKey | ClientError::KeyFile { .. } | ClientError::TrustFile { .. })
                | LoadError::Replay(_)
                | LoadError::Cluster(_),
            )
            | Self::Machine(_)
            | Self::Wrong(_)
            | Self::Io { .. } => 4,
        }
    }
}

/// What a command prints: JSON, or the same for people.
#[derive(Debug)]
struct Output {
    json: Value,
    human: String,
}

/// What people look for first in a status.
const STATUS_FIRST: &[&str] =
    &["venue", "ready", "storage", "version", "commit", "started_at_ns", "log_index", "time_ns", "instruments", "accounts"];

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let matches = help::command().get_matches();
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    help::check_options(&matches).unwrap_or_else(|e| e.exit());
    match choose_address(&mut cli).and_then(|()| run(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => ExitCode::from(say(&e)),
    }
}

/// Tells why a command failed; the exit status.
fn say(error: &CliError) -> u8 {
    eprintln!("walras: {}", printable(&error.to_string()));
    error.exit_code()
}

/// Longest that an address of several may take to say that a venue is there.
const PROBE: std::time::Duration = std::time::Duration::from_secs(2);

/// The address to ask, where `--url` lists several with commas: the first at which a venue answers.
fn first_that_answers(urls: &str) -> Result<String, ClientError> {
    let mut last = None;
    for url in urls.split(',').map(str::trim).filter(|url| !url.is_empty()) {
        match Client::with_patience(url, None, PROBE).get("/v1/status") {
            Err(e @ (ClientError::Unreachable { .. } | ClientError::NotAVenue { .. })) => last = Some(e),
            // One that is too busy, or not ready, is a venue all the same.
            Ok(_) | Err(_) => return Ok(url.to_owned()),
        }
    }
    last.map_or_else(|| Ok(urls.to_owned()), Err)
}

/// Chooses among several addresses, where the command asks a venue at all.
fn choose_address(cli: &mut Cli) -> Result<(), CliError> {
    let asks = match &cli.command {
        Command::Serve(_)
        | Command::Demo(_)
        | Command::Keys(_)
        | Command::Gateway(_)
        | Command::Relay(_)
        | Command::Strategy(_)
        | Command::Replay(_)
        | Command::Clear(_)
        | Command::Log(_)
        | Command::Archive(_)
        | Command::Config(_) => false,
        Command::Bench(args) => args.cluster || args.instrument.is_some(),
        Command::Order(_)
        | Command::Cancel(_)
        | Command::Amend(_)
        | Command::Book(_)
        | Command::Trades(_)
        | Command::Instruments
        | Command::Status
        | Command::Account(_)
        | Command::Shards
        | Command::Session(_)
        | Command::Offer(_)
        | Command::Pool(_)
        | Command::Pay(_)
        | Command::Batch(_)
        | Command::Admin(_)
        | Command::Cluster(_) => true,
    };
    if asks && cli.url.contains(',') {
        cli.url = first_that_answers(&cli.url)?;
    }
    Ok(())
}

fn run(cli: &Cli) -> Result<(), CliError> {
    let output = match &cli.command {
        Command::Serve(args) => return serve::serve(args),
        Command::Demo(args) => return serve::demo(args),
        Command::Cluster(command) => return cluster::run(cli, command),
        Command::Log(command) => return log::run(command, cli.json),
        Command::Archive(command) => match archive::run(command)? {
            Some(output) => output,
            None => return Ok(()),
        },
        Command::Config(args) => match &args.check {
            None => return print(&walras_config::reference()),
            Some(path) => {
                Config::load(Some(path))?;
                return print(&format!("{} is valid\n", path.display()));
            }
        },
        Command::Gateway(args) => return gateway::run(args),
        Command::Relay(args) => return relay::run(cli, args),
        Command::Replay(args) => {
            let options = replay::options(args)?;
            let (mut human, json) = if args.instruments {
                replay::list(&args.file, &options)?
            } else if args.venue {
                let report = replay::run_venue(&args.file, options, args.venue_log.as_deref())?;
                (report.to_string(), report.to_json())
            } else {
                let report = replay::run(&args.file, &options)?;
                (report.to_string(), report.to_json())
            };
            let mut json: serde_json::Value = serde_json::from_str(&json).expect("a report's JSON is JSON");
            if let (Some(report), Some(kib)) = (json.as_object_mut(), replay::peak_memory_kib()) {
                report.insert("peak_memory_kib".into(), kib.into());
                human.push_str(&format!("memory\n  {:<34} {} MiB\n", "at most", kib.div_ceil(1_024)));
            }
            Output { human, json }
        }
        Command::Clear(args) => clear::run(args, cli.json)?,
        Command::Bench(args) => bench::run(cli, args)?,
        Command::Keys(command) => keys::run(command)?,
        Command::Strategy(command) => strategy::run(command)?,
        Command::Order(args) => trade::order(&client(cli)?, args)?,
        Command::Cancel(args) => trade::cancel(&client(cli)?, args)?,
        Command::Amend(args) => trade::amend(&client(cli)?, args)?,
        Command::Book(args) => trade::book(&client(cli)?, args)?,
        Command::Trades(args) => trade::trades(&client(cli)?, args)?,
        Command::Instruments => trade::instruments(&client(cli)?)?,
        Command::Status => {
            let json = client(cli)?.get("/v1/status")?;
            Output { human: table::fields_from(&json, STATUS_FIRST), json }
        }
        Command::Shards => trade::shards(&client(cli)?)?,
        Command::Account(args) => trade::account(&client(cli)?, args)?,
        Command::Session(command) => session::run(&client(cli)?, command)?,
        Command::Offer(command) => batch::offer(&client(cli)?, transaction_key(cli)?.as_ref(), command)?,
        Command::Pool(command) => pool::pool(&client(cli)?, || transaction_key(cli), command)?,
        Command::Pay(args) => batch::pay(&client(cli)?, transaction_key(cli)?.as_ref(), args)?,
        Command::Batch(command) => batch::batch(&client(cli)?, || transaction_key(cli), command)?,
        Command::Admin(command) => admin::run(&client(cli)?, command)?,
    };
    print(&if cli.json { escaped(&format!("{}\n", output.json)).into_owned() } else { printable(&output.human).into_owned() })
}

fn key(cli: &Cli) -> Result<Option<walras_gateway::ClientKey>, CliError> {
    Ok(cli.key_file.as_deref().map(read_key).transpose()?)
}

/// What signs transactions of batch markets.
fn transaction_key(cli: &Cli) -> Result<Option<walras_gateway::ClientKey>, CliError> {
    let file = cli.transaction_key_file.as_deref().or(cli.key_file.as_deref());
    Ok(file.map(read_key).transpose()?)
}

fn client(cli: &Cli) -> Result<Client, CliError> {
    Ok(Client::new(&cli.url, key(cli)?))
}

fn print(text: &str) -> Result<(), CliError> {
    use std::io::Write;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // The reader has seen enough, as in `walras log dump | head`.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| CliError::Io { what: "could not print".into(), source }),
    }
}
