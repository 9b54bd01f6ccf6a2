//! `walras bench`.

use std::time::Duration;

use serde_json::Value;
use walras_client::cluster::{FairOptions, Offered, Reached, TransactionLoad};
use walras_client::load::LoadOptions;
use walras_client::{ClientError, EntryTrust, Trust, cluster, load, read_key};
use walras_gateway::ClientKey;
use walras_machine_bench::MachineOptions;

use super::args::{BenchArgs, Cli};
use super::{CliError, Output};
use crate::cli::replay::Bars;

const LOAD_SECONDS: f64 = 10.0;
const DISK_SECONDS: f64 = 4.0;

pub(super) fn run(cli: &Cli, args: &BenchArgs) -> Result<Output, CliError> {
    let time = |default: f64| Duration::from_secs_f64(args.seconds.unwrap_or(default));
    if args.cluster {
        let Reached { mut replicas, left_out } = cluster::replicas(&super::client(cli)?)?;
        for id in left_out {
            eprintln!("walras: replica {id} is not linked to the one that was asked: the load goes on without it");
        }
        if let Some(file) = &args.entry_trust {
            let trust = EntryTrust::new(&Trust::read(file)?)?;
            replicas.iter_mut().for_each(|replica| replica.trust = Some(trust.clone()));
        }
        if args.fair {
            let options = FairOptions { offered: args.offered, time: time(LOAD_SECONDS) };
            return Ok(output(&cluster::measure_fairness(&replicas, &key(cli)?, options)?));
        }
        if let Some(transactions) = args.transactions {
            let signing_threads = std::thread::available_parallelism().map_or(1, usize::from);
            let (connections, interval) = (args.sessions, Duration::from_millis(u64::from(args.interval_ms)));
            let load = TransactionLoad { transactions, connections, interval, signing_threads };
            return Ok(output(&cluster::measure_transactions(&replicas, &key(cli)?, &load)?));
        }
        let mut load = cluster::ClusterLoad::prepare(&replicas, &key(cli)?, args.sessions, 1)?;
        let offered = args.offered.map_or(Offered::Outstanding(args.outstanding), Offered::PerSecond);
        return Ok(output(&load.run(offered, Duration::from_secs(1), time(LOAD_SECONDS))?));
    }
    let Some(instrument) = &args.instrument else {
        let options = MachineOptions {
            commands: args.commands,
            data: args.data.clone(),
            disk_time: time(DISK_SECONDS),
            commit: walras_api::COMMIT,
        };
        let mut bars = Bars::default();
        let report = walras_machine_bench::run(&options, &mut |progress| bars.tell(progress))?;
        return Ok(output(&report));
    };
    let report = load::run(&LoadOptions {
        url: cli.url.clone(),
        key: key(cli)?,
        instrument: instrument.clone(),
        connections: args.connections,
        rate_per_second: args.rate,
        time: time(LOAD_SECONDS),
        mode: args.mode,
    })?;
    Ok(output(&report))
}

fn key(cli: &Cli) -> Result<ClientKey, ClientError> {
    read_key(cli.key_file.as_deref().ok_or(ClientError::NoKey)?)
}

fn output<R: std::fmt::Display + serde::Serialize>(report: &R) -> Output {
    let json: Value = serde_json::to_value(report).expect("a report has only string keys");
    Output { human: report.to_string(), json }
}
