//! `walras-bench`: see the library, and `bench/run.sh`, which builds and calls it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use walras_bench::order_book::Config;
use walras_bench::peer::ExchangeCore;
use walras_bench::report::Report;
use walras_bench::streams::{Scale, data_folder};
use walras_bench::{
    access, batch, batch_peers, batch_state, beside_blocks, blocks, clearing, cold, document, engine, fair_access, instructions,
    order_book, overlay, product, promises, recovery, replay, replay_files, replication, siege, signed_flow, simulation, standing,
};

#[global_allocator]
static ALLOCATOR: walras_huge_pages::HugePages = walras_huge_pages::HugePages;

/// A bench by its name.
struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&Options, &mut Report) -> anyhow::Result<()>,
}

/// In the order in which `all` runs them.
const BENCHES: [Bench; 18] = [
    Bench { name: "order-book", about: "the book alone, compared with exchange-core", run: run_order_book },
    Bench { name: "engine", about: "the engine with ledger, risk and journal, compared with exchange-core", run: run_engine },
    Bench { name: "clearing", about: "prices and amounts of a batch, compared with GLPK", run: run_clearing },
    Bench { name: "batch", about: "prices of hard batch markets: whales, tails, thin and dense ones", run: run_batch },
    Bench { name: "blocks", about: "blocks of a batch market on the ledger, proposed and validated", run: run_blocks },
    Bench { name: "standing", about: "such blocks from 100,000 to millions of standing offers and accounts", run: run_standing },
    Bench { name: "replay", about: "real history as an oracle", run: run_replay },
    Bench { name: "replay_files", about: "recorded files of every shape, each in a process", run: run_replay_files },
    Bench { name: "instructions", about: "machine instructions per command, counted by valgrind", run: run_instructions },
    Bench { name: "fair-access", about: "clocks, copies, holds, release and delays of fair access", run: run_fair_access },
    Bench {
        name: "replication",
        about: "a log replicated on one machine, compared with etcd and Aeron Cluster",
        run: run_replication,
    },
    Bench { name: "venue", about: "the program as it is served: one replica and three, by every interface", run: run_venue },
    Bench {
        name: "promises",
        about: "the longest entry of the log, orders beside large reads, fair access from outside, replays, planted faults",
        run: run_promises,
    },
    Bench { name: "access", about: "FIX, Binance's dialect and Python: what programs written for others find", run: run_access },
    Bench { name: "siege", about: "a hostile campaign, with a well-behaved client's waiting", run: run_siege },
    Bench { name: "simulation", about: "whole venues with faults from seeds, on one core", run: run_simulation },
    Bench {
        name: "overlay",
        about: "a relay next to a plain one, multicast on sockets, the costs of the feed and of a leaf gateway, a simulated thousand",
        run: run_overlay,
    },
    Bench { name: "cold", about: "make demo and make test in a fresh clone, from nothing built", run: run_cold },
];

fn usage() -> String {
    let benches: String = BENCHES.iter().map(|bench| format!("  {:<15} {}\n", bench.name, bench.about)).collect();
    format!(
        "\
usage: walras-bench NAME [options]     (in the root of the repository; bench/run.sh builds it and calls it)

NAME
{benches}  list            print these names

options
  --rounds N      rounds; figures are medians over them [7], at least {ROUNDS_MIN}
  --no-peer       without peers
  --only-peer P   of replication's peers only this one: etcd or aeron
  --seconds N     of each of replication's loads, after as many of warming up; of each kind that simulation runs [5]
  --standing N    standing offers at most that standing measures with [10000000]
  --accounts N    accounts at most that standing measures with [1000000]
  --before FILE   an older program walras, which venue compares with
  --abides DIR    a checkout of ABIDES, whose order book access compares the Python package with
  --small         a thousandth of the commands or a second, two rounds at most, nothing written: does it run?
  --streams DIR   where streams and logs are put; replication measures its disk [target/bench-data]
  --results DIR   where NAME.json is put [bench/results]
"
    )
}

/// Where results are committed.
const RESULTS: &str = "bench/results";

/// Fewer rounds than this are no measurement.
const ROUNDS_MIN: usize = 3;

struct Options {
    name: String,
    rounds: usize,
    peer: bool,
    /// Of several peers, this one alone.
    only_peer: Option<String>,
    /// Seconds of each load.
    seconds: u32,
    /// Most standing offers and accounts.
    standing: usize,
    accounts: u32,
    /// An older program `walras`.
    before: Option<PathBuf>,
    /// A checkout of ABIDES.
    abides: Option<PathBuf>,
    small: bool,
    streams: PathBuf,
    results: PathBuf,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let Some(name) = arguments.next() else { bail!("a name is needed\n{}", usage()) };
        let mut options = Self {
            name,
            rounds: 7,
            peer: true,
            only_peer: None,
            seconds: 5,
            standing: 10_000_000,
            accounts: 1_000_000,
            before: None,
            abides: None,
            small: false,
            streams: "target/bench-data".into(),
            results: RESULTS.into(),
        };
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{option} needs a value after it\n{}", usage()));
            match option.as_str() {
                "--rounds" => options.rounds = value()?.parse().with_context(|| format!("--rounds takes a number\n{}", usage()))?,
                "--no-peer" => options.peer = false,
                "--only-peer" => options.only_peer = Some(value()?),
                "--seconds" => {
                    options.seconds = value()?.parse().with_context(|| format!("--seconds takes a number\n{}", usage()))?
                }
                "--standing" => {
                    options.standing = value()?.parse().with_context(|| format!("--standing takes a number\n{}", usage()))?
                }
                "--accounts" => {
                    options.accounts = value()?.parse().with_context(|| format!("--accounts takes a number\n{}", usage()))?
                }
                "--before" => options.before = Some(value()?.into()),
                "--abides" => options.abides = Some(value()?.into()),
                "--small" => options.small = true,
                "--streams" => options.streams = value()?.into(),
                "--results" => options.results = value()?.into(),
                _ => bail!("there is no option '{option}'\n{}", usage()),
            }
        }
        ensure!(options.rounds >= ROUNDS_MIN, "--rounds must be at least {ROUNDS_MIN}: fewer are no measurement");
        Ok(options)
    }

    fn results(&self) -> Option<&Path> {
        (!self.small).then_some(self.results.as_path())
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [help] if ["--help", "-h"].contains(&help.as_str()) => {
            print!("{}", usage());
            Ok(())
        }
        [list] if list == "list" => {
            BENCHES.iter().for_each(|bench| println!("{}", bench.name));
            Ok(())
        }
        // What `instructions` has valgrind count.
        [counted, stream, index, folder] if counted == "counted" => instructions::counted(stream, index, Path::new(folder)),
        // What `blocks` kills.
        [victim, folder, accounts, blocks] if victim == "victim" => run_victim(folder, accounts, blocks),
        _ => Options::parse(arguments.into_iter()).and_then(|options| run(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("walras-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> anyhow::Result<()> {
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == options.name) else {
        bail!("there is no bench '{}'\n{}", options.name, usage());
    };
    let mut report = Report::begin(bench.name);
    (bench.run)(options, &mut report)?;
    report.finish(options.results())?;
    // Results elsewhere are a trial.
    match options.results() {
        Some(results) if results == Path::new(RESULTS) => document::update(Path::new("docs/performance.md"), results),
        _ => Ok(()),
    }
}

fn run_order_book(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    order_book::run(&config(options, report), report)
}

fn run_engine(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    engine::run(&config(options, report), report)
}

fn config(options: &Options, report: &mut Report) -> Config {
    if options.small {
        return Config::small(&options.streams);
    }
    let peer = if options.peer { ExchangeCore::build(Path::new("bench/peers")) } else { Err("--no-peer was given".to_owned()) };
    let peer = peer.map_err(|why| report.note(format!("exchange-core was NOT RUN, so our figures stand alone: {why}"))).ok();
    Config { rounds: options.rounds, scale: Scale::Full, streams: options.streams.clone(), data: Some(data_folder()), peer }
}

fn run_clearing(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let config = clearing::Config {
        rounds: if options.small { 2 } else { options.rounds },
        is_full: !options.small,
        data: data_folder(),
        peers: options.peer.then(|| "bench/peers".into()),
        scratch: options.streams.clone(),
    };
    clearing::run(&config, report)
}

fn run_batch(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let rounds = if options.small { 2 } else { options.rounds };
    std::fs::create_dir_all(&options.streams).context("making the folder of logs; name another with --streams")?;
    let (is_full, scratch) = (!options.small, options.streams.clone());
    report.require(&batch::REQUIRED);
    batch::run(&batch::Config { rounds, is_full }, report)?;
    let peers = options.peer.then(|| "bench/peers".into());
    batch_peers::run(&batch_peers::Config { rounds, is_full, peers, scratch: scratch.clone() }, report)?;
    let beside = if options.small { (500, 100, 3) } else { (100_000, 100_000, 7) };
    let (transactions, accounts, blocks) = beside;
    batch_state::run(&batch_state::Config { rounds, accounts, transactions }, report)?;
    let orders_per_second = 10_000;
    let beside = beside_blocks::Config { rounds, transactions, accounts, blocks, orders_per_second, scratch: scratch.clone() };
    beside_blocks::run_where_it_keeps_up(&beside, report)?;
    standing::run(&standing::Config::at_three_million(rounds, if is_full { 1 } else { 100 }, scratch.clone()), report)?;
    report.note(standing::NAMES);
    signed_flow::run(&signed_flow::Config { walras: walras()?, scratch, rounds, is_full }, report)?;
    // They take an hour and most of the memory: `standing --standing 70000000 --accounts 10000000` measures them.
    let standing = options.results.join("standing.json");
    report.carry_most(&standing, &["offers_held", "accounts_held"])?;
    report.carry(
        &standing,
        &[
            "propose_ktps_70m_standing",
            "validate_ktps_70m_standing",
            "propose_signed_durable_ktps_70m_standing",
            "validate_signed_durable_ktps_70m_standing",
            "offers_held_memory_mib",
            "accounts_held_memory_mib",
        ],
    )
}

fn run_blocks(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let rounds = if options.small { 2 } else { options.rounds };
    std::fs::create_dir_all(&options.streams).context("making the folder of logs; name another with --streams")?;
    blocks::run(&blocks::Config { rounds, is_full: !options.small, scratch: options.streams.clone() }, report)
}

fn run_standing(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (scale, rounds) = if options.small { (100, 2) } else { (1, options.rounds) };
    let (standing, accounts, transactions) = (options.standing / scale, options.accounts / scale as u32, 100_000 / scale);
    standing::run_all(rounds, standing, accounts, transactions, &options.streams, report)
}

fn run_victim(folder: &str, accounts: &str, blocks: &str) -> anyhow::Result<()> {
    recovery::victim(Path::new(folder), accounts.parse()?, blocks.parse()?)
}

fn run_replay(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    replay::run(options.rounds, &data_folder(), report)
}

fn run_replay_files(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (walras, scratch) = (walras()?, options.streams.join("replay-files"));
    replay_files::run(&replay_files::Config { is_full: !options.small, data: data_folder(), walras, scratch }, report)
}

fn run_fair_access(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let rounds = if options.small { 2 } else { options.rounds };
    let config = fair_access::Config {
        rounds,
        is_full: !options.small,
        data: data_folder(),
        walras: walras()?,
        scratch: options.streams.clone(),
    };
    fair_access::run(&config, report)
}

fn run_instructions(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    instructions::run(&options.streams.join("counted"), report)
}

fn run_replication(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let config = replication::Config {
        rounds: if options.small { 1 } else { options.rounds },
        seconds: if options.small { 1 } else { options.seconds },
        peers: options.peer.then(|| "bench/peers".into()),
        only_peer: options.only_peer.clone(),
        walras: Some(walras()?),
        scratch: options.streams.clone(),
    };
    replication::run(&config, report)
}

/// The program, built in the same folder as this one.
fn walras() -> anyhow::Result<PathBuf> {
    beside("walras")
}

/// A program that was built with this one.
fn beside(name: &str) -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe().context("finding this program's folder")?.with_file_name(name))
}

fn run_promises(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let rounds = if options.small { 2 } else { options.rounds };
    promises::run(
        &promises::Config {
            rounds,
            is_full: !options.small,
            walras: walras()?,
            next: beside("examples/rehearsal")?,
            scratch: options.streams.join("promises"),
        },
        report,
    )
}

fn run_siege(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (rounds, seconds, percent) = if options.small { (1, 1, 5) } else { (options.rounds, options.seconds, 100) };
    siege::run(&siege::Config { rounds, seconds, percent, walras: walras()?, scratch: options.streams.join("siege") }, report)
}

fn run_access(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (rounds, seconds, idle_sessions, python_orders) =
        if options.small { (1, 1, 64, 10_000) } else { (options.rounds, options.seconds, 10_000, 1_000_000) };
    let config = access::Config {
        rounds,
        seconds,
        idle_sessions,
        python_orders,
        walras: walras()?,
        peers: options.peer.then(|| "bench/peers".into()),
        abides: options.abides.clone(),
        data: data_folder(),
        scratch: options.streams.join("access"),
        results: RESULTS.into(),
    };
    access::run(&config, report)
}

fn run_venue(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (rounds, seconds) = if options.small { (1, 1) } else { (options.rounds, options.seconds) };
    let scratch = options.streams.join("venue");
    product::run(&product::Config { rounds, seconds, walras: walras()?, before: options.before.clone(), scratch }, report)
}

fn run_overlay(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (rounds, load_ms, commands) = if options.small { (1, 20, 2_000) } else { (options.rounds, 1_000, 500_000) };
    let config = overlay::Config {
        rounds,
        load_ms,
        commands,
        is_full: !options.small,
        walras: walras()?,
        jasper: beside("jasper-2024")?,
        scratch: options.streams.join("overlay"),
    };
    overlay::run(&config, report)
}

fn run_cold(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    cold::run(&cold::Config { demo_only: options.small, scratch: options.streams.join("cold") }, report)
}

fn run_simulation(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let (rounds, seconds) = if options.small { (1, 1) } else { (options.rounds, options.seconds) };
    simulation::run(&simulation::Config { rounds, seconds }, report)
}
