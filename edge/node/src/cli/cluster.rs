//! `walras cluster`: what an operator does with a cluster.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use walras_client::Client;
use walras_client::local_cluster::{FIRST_GATEWAY, FIRST_RELAY, LocalCluster, LocalError, LocalOptions, LocalReplica};
use walras_config::Config;
use walras_terminal::progress::while_waiting;
use walras_terminal::table::{fields, table};

use super::args::Cli;
use super::cluster_keys::{self, ClusterKeysArgs};
use super::{CliError, Output, print, survivor};
use crate::node::NodeError;
use crate::runtime::{AcceptedLoss, accept_loss};

/// `walras cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Runs a cluster of processes on this machine until SIGINT or SIGTERM, for trying it out.
    Local(LocalArgs),
    /// Makes the certificates and keys with which replicas know each other.
    Keys(ClusterKeysArgs),
    /// Shows what the replica at --url says of its cluster.
    Status,
    /// Hands leadership to another replica, before maintenance of the one that leads.
    Transfer {
        /// To which.
        replica: u64,
    },
    /// Lets a replica in that all list in `cluster.peers`: with --learner it gets the log and does not vote; without, it votes.
    Add {
        /// Which.
        replica: u64,
        /// It shall not vote yet.
        #[arg(long)]
        learner: bool,
    },
    /// Takes a replica out.
    Remove {
        /// Which.
        replica: u64,
    },
    /// Says which replicas may be stopped now, one at a time, without an outage, and whether their versions go together.
    UpgradeCheck,
    /// After an upgrade of all replicas: goes to the newest version of the engine that all of them know. Before it, each can go back to its
    /// former program; after it, none can.
    FinishUpgrade,
    /// When the disks of a majority are lost: makes a cluster of one out of a stopped replica that is left, with all that its disk holds.
    /// What was acknowledged and is on no disk that is left is lost.
    Recover {
        /// The replica's configuration, which names no other replica and a new `cluster.cluster_id`.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// With durability "memory", when a majority died at once: lets a stopped replica go on from what its disk has. Stop all replicas, call
    /// this for each that died, then start all. What was acknowledged and is on no disk is lost.
    AcceptLoss {
        /// The replica's configuration.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

/// `walras cluster local`.
#[derive(Debug, Args)]
pub struct LocalArgs {
    /// How many.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=7))]
    pub replicas: u16,
    /// Leaf gateways below them; of a cluster that is made now.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=64))]
    pub gateways: u16,
    /// Relays that carry market data to the gateways, at most as many as those; of a cluster that is made now.
    #[arg(long, default_value_t = 0, requires = "gateways", value_parser = clap::value_parser!(u16).range(0..=64))]
    pub relays: u16,
    /// The cluster's folder; what is there goes on.
    #[arg(long, default_value = ".walras/cluster", value_name = "DIR")]
    pub dir: PathBuf,
    /// First of their ports, five for each replica and gateway and one for each relay; free ones without it. Of a cluster that is made now.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Acknowledged from memory, instead of disk.
    #[arg(long)]
    pub memory: bool,
    /// Without limits on how often a key may ask: for measurements.
    #[arg(long)]
    pub unthrottled: bool,
    /// Orders in the order of their stamps, market data at the same instant everywhere; 1 % of either may be late. Of a cluster that is made now.
    #[arg(long)]
    pub fair_access: bool,
}

pub(super) fn run(cli: &Cli, command: &ClusterCommand) -> Result<(), CliError> {
    let output = match command {
        ClusterCommand::Local(args) => return local(args),
        ClusterCommand::Keys(args) => cluster_keys::run(args)?,
        ClusterCommand::Status => status(&super::client(cli)?)?,
        ClusterCommand::Transfer { replica } => change(cli, "transfer", &json!({"replica": replica}))?,
        ClusterCommand::Add { replica, learner } => change(cli, "add", &json!({"replica": replica, "learner": learner}))?,
        ClusterCommand::Remove { replica } => change(cli, "remove", &json!({"replica": replica}))?,
        ClusterCommand::UpgradeCheck => upgrade_check(&super::client(cli)?)?,
        ClusterCommand::FinishUpgrade => finish_upgrade(cli)?,
        ClusterCommand::Recover { config } => survivor::run(config)?,
        ClusterCommand::AcceptLoss { config } => accept(config)?,
    };
    print(&if cli.json { format!("{}\n", output.json) } else { output.human })
}

fn change(cli: &Cli, what: &str, body: &Value) -> Result<Output, CliError> {
    let json = super::client(cli)?.signed("POST", &format!("/v1/admin/cluster/{what}"), Some(body))?;
    Ok(Output { human: describe(&json), json })
}

fn status(client: &Client) -> Result<Output, CliError> {
    let mut json = client.get("/v1/cluster")?;
    for row in json["replicas"].as_array_mut().into_iter().flatten() {
        add_clock(row);
    }
    Ok(Output { human: describe(&json), json })
}

/// What a replica says of its clock, where it can be asked and keeps one.
fn add_clock(row: &mut Value) {
    let url = row["http"].as_str().map(|http| format!("http://{http}"));
    if let Some(clock) = url.and_then(|url| Client::new(&url, None).get("/v1/clock").ok()) {
        row["clock"] = clock["status"].clone();
        row["clock_bound_ns"] = clock["bound_ns"].clone();
    }
}

fn describe(json: &Value) -> String {
    let mut own = json.clone();
    let rows = own.as_object_mut().and_then(|own| own.remove("replicas")).unwrap_or_default();
    let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
    let mut columns = vec![
        ("replica", "replica"),
        ("member", "member"),
        ("linked", "is_linked"),
        ("version", "version"),
        ("http", "http"),
        ("order entry", "order_entry"),
    ];
    if rows.iter().any(|row| row.get("clock").is_some()) {
        columns.extend([("clock", "clock"), ("clock bound", "clock_bound_ns")]);
    }
    columns.push(("trouble", "trouble"));
    format!("{}\n{}", fields(&own), table(rows, &columns))
}

fn accept(path: &Path) -> Result<Output, CliError> {
    let config = Config::load(Some(path))?;
    let options = config.cluster_options()?;
    let AcceptedLoss { replica, last_slot, had_crashed } = accept_loss(&config, options).map_err(NodeError::from)?;
    let human = if had_crashed {
        format!(
            "replica {replica} goes on from slot {last_slot}, the last on its disk: do the same for all that died, then start all\n"
        )
    } else {
        format!("replica {replica} has all that it promised: start it\n")
    };
    Ok(Output { human, json: json!({"replica": replica.get(), "last_slot": last_slot.to_string(), "had_crashed": had_crashed}) })
}

/// What each replica says, where it can be asked.
fn ask_each(client: &Client) -> Result<Vec<(u64, bool, Option<Value>)>, CliError> {
    let asked = client.get("/v1/cluster")?;
    let rows = asked["replicas"].as_array().cloned().unwrap_or_default();
    let views = rows.iter().filter_map(|row| {
        let url = row["http"].as_str().map(|http| format!("http://{http}"));
        let view = url.and_then(|url| Client::new(&url, None).get("/v1/cluster").ok());
        Some((row["replica"].as_u64()?, row["member"] == "voter", view))
    });
    Ok(views.collect())
}

fn upgrade_check(client: &Client) -> Result<Output, CliError> {
    let json = verdict(&ask_each(client)?);
    let columns = [
        ("replica", "replica"),
        ("version", "version"),
        ("wire", "wire_version"),
        ("engine", "engine_version"),
        ("engine up to", "engine_newest"),
        ("behind", "behind"),
        ("may stop", "may_stop"),
    ];
    let human = format!(
        "{}{}\n{}\n",
        table(json["replicas"].as_array().map_or(&[], Vec::as_slice), &columns),
        json["says"].as_str().unwrap_or_default(),
        json["engine_says"].as_str().unwrap_or_default()
    );
    Ok(Output { human, json })
}

/// Goes to the newest version of the engine that every replica's program knows.
fn finish_upgrade(cli: &Cli) -> Result<Output, CliError> {
    let client = super::client(cli)?;
    let verdict = verdict(&ask_each(&client)?);
    let Some(version) = verdict["engine_next"].as_u64() else {
        return Err(CliError::Wrong(format!(
            "the venue stays under its engine version: {}",
            verdict["engine_says"].as_str().unwrap_or("")
        )));
    };
    let json = client.signed("POST", "/v1/admin/cluster/engine-version", Some(&json!({"engine_version": version})))?;
    let at = json["log_index"].as_str().unwrap_or("?");
    Ok(Output { human: format!("from log entry {at} on, the venue runs under engine version {version}\n"), json })
}

/// The version in force, the one that the cluster can go to if there is a later one, and what to do about it.
fn engine_verdict(views: &[(u64, bool, Option<Value>)]) -> (Option<u64>, Option<u64>, String) {
    // The leader asks learners, too, that cannot be asked here.
    let asked = || views.iter().filter(|(_, is_voter, view)| *is_voter || view.is_some());
    let known = |field: &'static str| asked().map(move |(_, _, view)| view.as_ref()?[field].as_u64());
    let in_force = known("engine_version").flatten().max();
    let (Some(in_force), Some(newest)) = (in_force, known("engine_newest").flatten().max()) else {
        return (None, None, "no replica says which version of the engine is in force".to_owned());
    };
    let Some(common) = known("engine_newest").collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().min()) else {
        return (Some(in_force), None, "not every replica can be asked which program it runs: start it, or remove it".to_owned());
    };
    if common > in_force {
        let says = format!(
            "engine version {in_force} is in force, and every replica knows {common}: go to it with `walras cluster finish-upgrade`; until \
             then each can go back to its former program"
        );
        return (Some(in_force), Some(common), says);
    }
    let says = if newest > in_force {
        format!("engine version {in_force} is in force, and not every replica knows {newest}: upgrade the others")
    } else {
        format!("engine version {in_force} is in force, the newest that the replicas know")
    };
    (Some(in_force), None, says)
}

/// Entries that a replica may be behind and still count as up to date: it is asked a moment after the others.
const BEHIND_MAX: u64 = 100_000;

fn verdict(views: &[(u64, bool, Option<Value>)]) -> Value {
    let number = |view: &Option<Value>, field: &str| view.as_ref().and_then(|view| view[field].as_str()?.parse::<u64>().ok());
    let index = |view: &Option<Value>| number(view, "log_index");
    let newest = views.iter().filter_map(|(_, _, view)| index(view)).max().unwrap_or(0);
    let behind = |view: &Option<Value>| index(view).map(|at| newest - at);
    let voters = views.iter().filter(|(_, is_voter, _)| *is_voter).count();
    let leader = views.iter().find(|(_, _, view)| view.as_ref().is_some_and(|view| view["takes_commands"] == true)).map(|v| v.0);
    // One that was started again a moment ago answers, and does not count in the cluster before it hears the leader.
    let follows = |view: &Value| view["halted"].is_null() && view["leader"].as_u64() == leader;
    let is_sound =
        |view: &Option<Value>| view.as_ref().is_some_and(follows) && behind(view).is_some_and(|behind| behind <= BEHIND_MAX);
    let sound = views.iter().filter(|(_, is_voter, view)| *is_voter && is_sound(view)).count();
    let may_stop = |(id, is_voter, view): &(u64, bool, Option<Value>)| {
        let left = sound - usize::from(*is_voter && is_sound(view));
        leader.is_some() && Some(*id) != leader && (!is_voter || left > voters / 2)
    };
    let rows: Vec<Value> = views
        .iter()
        .map(|one| {
            let field = |name: &str| one.2.as_ref().map_or(Value::Null, |view| view[name].clone());
            json!({
                "replica": one.0, "version": field("version"), "wire_version": field("wire_version"),
                "engine_version": field("engine_version"), "engine_newest": field("engine_newest"),
                "behind": behind(&one.2), "may_stop": may_stop(one),
            })
        })
        .collect();
    let mut wires: Vec<&Value> = views.iter().filter_map(|(_, _, view)| Some(&view.as_ref()?["wire_version"])).collect();
    wires.dedup();
    let stoppable: Vec<String> = views.iter().filter(|one| may_stop(one)).map(|one| one.0.to_string()).collect();
    let says = match (leader, stoppable.as_slice()) {
        _ if wires.len() > 1 => {
            "the replicas run different wire versions and do not understand each other: run the same on all".to_owned()
        }
        (None, _) => "no replica leads: stop none".to_owned(),
        (Some(_), []) => "stop none: without one more there is no majority; wait until all are there and up to date".to_owned(),
        (Some(leader), ids) => format!(
            "stop, upgrade and start one of {} at a time, asking again in between; replica {leader} leads: move that on first with `walras \
             cluster transfer`",
            ids.join(", ")
        ),
    };
    let (engine, engine_next, engine_says) = engine_verdict(views);
    let is_known =
        |view: &Value| engine.is_none_or(|in_force| view["engine_newest"].as_u64().is_none_or(|newest| newest >= in_force));
    json!({
        "replicas": rows,
        "leader": leader,
        "compatible": wires.len() <= 1 && views.iter().flat_map(|one| &one.2).all(is_known),
        "says": says,
        "engine_version": engine,
        "engine_next": engine_next,
        "engine_says": engine_says,
    })
}

fn local(args: &LocalArgs) -> Result<(), CliError> {
    if args.relays > args.gateways {
        let why = format!("{} relays for {} gateways: give at most as many relays as gateways", args.relays, args.gateways);
        return Err(CliError::Wrong(why));
    }
    let system = |what: &'static str| move |source| CliError::Io { what: what.into(), source };
    let program = std::env::current_exe().map_err(system("could not find this program's file"))?;
    let mut settings = Vec::new();
    if args.memory {
        settings.push(("cluster", "durability", "memory".into()));
    }
    if args.unthrottled {
        for key in ["requests_per_second", "burst", "source_requests_per_second", "source_burst"] {
            settings.push(("throttle", key, toml::Value::Integer(1_000_000_000)));
        }
    }
    if args.fair_access {
        // They share a machine, so their clocks are one.
        settings.extend([
            ("fair_access", "sequencing", "1%".into()),
            ("fair_access", "bound_us", toml::Value::Integer(1)),
            ("fair_access", "release", "1%".into()),
        ]);
    }
    let options = LocalOptions {
        replicas: args.replicas,
        first_port: args.port,
        later: 0,
        gateways: args.gateways,
        relays: args.relays,
        fix: true,
        settings,
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system("could not wait for signals"))?;
    let mut local = LocalCluster::prepare(&program, &args.dir, &options)?;
    let leader = while_waiting("starting the replicas, until one leads", || {
        (1..=u64::from(args.replicas)).try_for_each(|id| local.start(id))?;
        let leader = local.wait_for_leader(std::time::Duration::from_secs(30))?;
        (FIRST_RELAY..).take(args.relays.into()).try_for_each(|id| local.start(id))?;
        (FIRST_GATEWAY..).take(args.gateways.into()).try_for_each(|id| local.start(id))?;
        Ok::<u64, LocalError>(leader)
    })?;
    let lines: String =
        local.replicas.iter().map(|replica| format!("replica {}: {}/  {}\n", replica.id, replica.url(), places(replica))).collect();
    let gateways: String = local.gateways.iter().map(|gateway| format!("gateway {}: {}\n", gateway.id, places(gateway))).collect();
    let relay = |relay: &LocalReplica| format!("relay {}: log in {}{}\n", relay.id, relay.log().display(), process_of(relay));
    let relays: String = local.relays.iter().map(relay).collect();
    print(&format!(
        "{lines}{gateways}{relays}replica {leader} leads; the operator's key is in {}\nCtrl-C stops all; started again they go on.\n",
        local.operator_key().display()
    ))?;
    let watched = runtime.block_on(watch(&mut local)).map_err(system("could not wait for signals"));
    while_waiting("stopping the replicas", || local.stop())?;
    watched
}

/// Where a replica or gateway takes orders and has market data, where its files are, and which process it is.
fn places(process: &LocalReplica) -> String {
    let fix = process.fix.as_ref().map_or(String::new(), |address| format!("  FIX at {address}"));
    let data = process.fix_market_data.as_ref();
    let data = data.map_or(String::new(), |address| format!("  market data by FIX at {address}"));
    format!("orders at {}{fix}{data}  files in {}{}", process.orders, process.dir.display(), process_of(process))
}

/// By this it can be killed, to see what the others do.
fn process_of(process: &LocalReplica) -> String {
    process.process_id().map_or(String::new(), |id| format!("  process {id}"))
}

/// Until SIGINT or SIGTERM; tells of replicas that end.
async fn watch(local: &mut LocalCluster) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut children) = (signal(SignalKind::terminate())?, signal(SignalKind::child())?);
    loop {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => return interrupted,
            _ = terminate.recv() => return Ok(()),
            _ = children.recv() => {
                let replicas = local.replicas.iter_mut().map(|replica| ("replica", replica));
                let processes = replicas.chain(local.gateways.iter_mut().map(|gateway| ("gateway", gateway)));
                let processes = processes.chain(local.relays.iter_mut().map(|relay| ("relay", relay)));
                for (what, replica) in processes {
                    if let Some(status) = replica.has_ended() {
                        let how = status.map_or("was killed by a signal".to_owned(), |status| format!("ended with status {status}"));
                        eprintln!("{what} {} {how}: see {}", replica.id, replica.log().display());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(log_index: u64, leads: bool) -> Option<Value> {
        Some(json!({
            "log_index": log_index.to_string(), "takes_commands": leads, "leader": 1, "halted": null, "version": "1", "wire_version": 3,
            "engine_version": 11, "engine_newest": 12,
        }))
    }

    fn may_stop(views: &[(u64, bool, Option<Value>)]) -> Vec<u64> {
        let verdict = verdict(views);
        let rows = verdict["replicas"].as_array().unwrap();
        rows.iter().filter(|row| row["may_stop"] == true).filter_map(|row| row["replica"].as_u64()).collect()
    }

    #[test]
    fn an_upgrade_is_finished_when_every_replica_knows_the_next_version() {
        let of = |newest: u64| {
            let mut view = view(10, true);
            view.as_mut().unwrap()["engine_newest"] = newest.into();
            view
        };
        let verdict = |third: Option<Value>| verdict(&[(1, true, of(13)), (2, true, of(12)), (3, true, third), (4, false, None)]);
        let (all, one_older, one_away, too_old) = (verdict(of(13)), verdict(of(11)), verdict(None), verdict(of(10)));
        let next = [&all, &one_older, &one_away, &too_old].map(|verdict| verdict["engine_next"].as_u64());
        assert_eq!(next, [Some(12), None, None, None]);
        let compatible = [&all, &one_older, &one_away, &too_old].map(|verdict| verdict["compatible"].as_bool().unwrap());
        assert_eq!(compatible, [true, true, true, false]);
        let says = [&all, &one_older, &one_away].map(|verdict| verdict["engine_says"].as_str().unwrap().to_owned());
        assert!(says[0].contains("finish-upgrade") && says[1].contains("upgrade the others"), "{says:?}");
        assert!(says[2].contains("not every replica can be asked"), "{says:?}");
    }

    #[test]
    fn only_what_leaves_a_majority_may_stop() {
        let all = [(1, true, view(10, true)), (2, true, view(9, false)), (3, true, view(8, false))];
        assert_eq!(may_stop(&all), [2, 3], "the leader moves on first");
        let one_away = [(1, true, view(10, true)), (2, true, view(9, false)), (3, true, None)];
        assert_eq!(may_stop(&one_away), [3], "which is away already");
        let one_behind = [(1, true, view(1_000_000, true)), (2, true, view(9, false)), (3, true, view(1_000_000, false))];
        assert_eq!(may_stop(&one_behind), [2], "the one that counts for nothing");
        let mut started = view(8, false);
        started.as_mut().unwrap()["leader"] = Value::Null;
        let just_started = [(1, true, view(10, true)), (2, true, view(9, false)), (3, true, started)];
        assert_eq!(may_stop(&just_started), [3], "it does not hear the leader yet");
        let learner = [(1, true, view(10, true)), (2, false, view(9, false))];
        assert_eq!(may_stop(&learner), [2]);
        let headless = [(1, true, view(10, false)), (2, true, view(9, false)), (3, true, view(8, false))];
        assert!(may_stop(&headless).is_empty());
        assert!(verdict(&headless)["says"].as_str().unwrap().contains("no replica leads"));
    }
}
