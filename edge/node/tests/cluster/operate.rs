//! What an operator does, from the command line against real processes: looking, handing over, changing members, restarting all of them one by one
//! under load as an upgrade does, and a cluster on one machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use walras_client::Client;
use walras_gateway::ClientKey;

use super::client::{Diary, Participant};
use super::fix_leaf::knows_key;
use super::fix_trading::{Session, is_accepted, log_on_anywhere, reads_bid};
use super::{Cluster, PATIENCE, Shape, check, market, member, participants, progress, stop_in_order, until};

/// The exit status of what the venue refused, and of what can not reach it.
const REFUSED: i32 = 1;
const UNREACHABLE: i32 = 3;

/// `walras cluster ...` at a replica, with the operator's key or without.
pub(super) struct Cli {
    url: String,
    key: Option<PathBuf>,
}

impl Cli {
    pub(super) fn at(cluster: &Cluster, id: u64) -> Self {
        Self { url: cluster.local.replicas[id as usize - 1].url(), key: Some(cluster.local.operator_key()) }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_walras"));
        command.arg("cluster").args(args).args(["--url", &self.url]).env_remove("WALRAS_KEY_FILE").stdin(Stdio::null());
        if let Some(key) = &self.key {
            command.arg("--key-file").arg(key);
        }
        command.output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(super) fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn fails(&self, args: &[&str]) -> (i32, String) {
        let output = self.run(args);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// Asks until it is taken: right after a change another one is refused.
    pub(super) fn done(&self, args: &[&str]) {
        until(&format!("{args:?} is done"), || self.run(args).status.success());
    }
}

fn ids(rows: &Value, is_so: impl Fn(&Value) -> bool) -> Vec<u64> {
    rows.as_array().unwrap().iter().filter(|row| is_so(row)).map(|row| row["replica"].as_u64().unwrap()).collect()
}

#[test]
fn a_replica_is_ready_where_it_follows_a_leader_and_not_without_a_majority() {
    let mut cluster = Cluster::start(0);
    let is_ready = |cluster: &Cluster, id: u64| cluster.operator(id).get("/readyz").is_ok_and(|body| body["ready"] == true);
    until("all are ready", || (1..=3).all(|id| is_ready(&cluster, id)));
    // A replica's log is read while the replica runs.
    cluster.market(1);
    for what in ["verify", "audit", "dump"] {
        let data = cluster.local.replicas[0].data();
        until(&format!("log {what} finds what it reads sound"), || {
            let done = Command::new(env!("CARGO_BIN_EXE_walras")).args(["log", what]).arg(&data).output().unwrap();
            done.status.success() && !done.stdout.is_empty()
        });
    }
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let [left, other] = [leader % 3 + 1, (leader + 1) % 3 + 1];
    cluster.kill(leader);
    cluster.kill(other);
    until("the one that is left is not", || !is_ready(&cluster, left));
    cluster.local.start(other).unwrap();
    until("with another one it is", || is_ready(&cluster, left) && is_ready(&cluster, other));
}

#[test]
fn a_load_is_put_on_a_cluster_of_which_a_replica_is_down() {
    let mut cluster = Cluster::start(0);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    cluster.kill(leader);
    let left = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let url = cluster.local.replicas[left as usize - 1].url();
    let key = cluster.local.operator_key();
    until("a load of a moment is answered", || {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_walras"));
        bench.args(["bench", "--cluster", "--json", "--seconds", "0.2", "--sessions", "2", "--outstanding", "16"]);
        let done = bench.args(["--url", &url, "--key-file"]).arg(&key).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        done.status.success() && said.contains(&format!("replica {leader} is not linked"))
    });
}

#[test]
fn an_operator_looks_hands_over_and_changes_members_from_the_command_line() {
    let mut cluster = Cluster::start(1);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let follower = leader % 3 + 1;
    let cli = Cli::at(&cluster, follower);

    // Whoever is asked: all tell of the same cluster.
    until("a follower names the leader and the voters", || {
        let status = cli.json(&["status"]);
        status["leader"] == leader && ids(&status["replicas"], |row| row["member"] == "voter") == [1, 2, 3]
    });
    assert!(cli.text(&["status"]).contains(&cluster.local.replicas[0].http));
    until("followers may stop, and the leader may not", || {
        let check = cli.json(&["upgrade-check"]);
        check["compatible"] == true
            && check["leader"] == leader
            && ids(&check["replicas"], |row| row["may_stop"] == true && row["replica"] != 4).len() == 2
            && ids(&check["replicas"], |row| row["may_stop"] == true && row["replica"] == leader).is_empty()
    });
    assert!(cli.text(&["upgrade-check"]).contains("walras cluster transfer"));

    // What can not be done says what to do.
    let nobody = Cli { url: cli.url.clone(), key: None };
    assert!(nobody.fails(&["transfer", "1"]).1.contains("--key"));
    let (status, said) = cli.fails(&["add", "9"]);
    assert!(status == REFUSED && said.contains("cluster.peers"), "{status}: {said}");
    let (status, said) = cli.fails(&["transfer", "9"]);
    assert!(status == REFUSED && said.contains('9'), "{status}: {said}");
    let nowhere = Cli { url: "http://127.0.0.1:9".to_owned(), key: None };
    let (status, said) = nowhere.fails(&["status"]);
    assert!(status == UNREACHABLE && said.contains("--url"), "{status}: {said}");

    // A follower is asked to hand over: the command line goes to the leader.
    cli.done(&["transfer", &follower.to_string()]);
    until("the follower leads", || cluster.other_leader(leader) == Some(follower));

    cluster.local.start(4).unwrap();
    cli.done(&["add", "4", "--learner"]);
    until("the fourth learns", || member(&cluster, follower, 4) == "learner");
    cluster.catches_up(4);
    cli.done(&["add", "4"]);
    until("the fourth votes", || member(&cluster, follower, 4) == "voter");
    cli.done(&["remove", &leader.to_string()]);
    until("the former leader has left", || member(&cluster, follower, leader) == "none");

    let key = std::fs::read_to_string(cluster.local.operator_key()).unwrap();
    let key_id = key.split_once('.').unwrap().0;
    let data = cluster.local.replicas[follower as usize - 1].data();
    until("the log says which key asked for each of these", || {
        let dumped = Command::new(env!("CARGO_BIN_EXE_walras")).args(["log", "dump", "--json"]).arg(&data).output().unwrap();
        let text = String::from_utf8(dumped.stdout).unwrap();
        let entries: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        ["transfer_leadership", "add_learner", "add_voter", "remove"]
            .iter()
            .all(|action| entries.iter().any(|entry| entry["command"]["action"] == *action && entry["key_id"] == key_id))
    });

    // With one of three voters away no other one may stop.
    let third = (1..=3).find(|id| *id != leader && *id != follower).unwrap();
    cluster.kill(third);
    until("nobody may stop", || {
        let check = cli.json(&["upgrade-check"]);
        let may_stop = ids(&check["replicas"], |row| row["may_stop"] == true);
        check["leader"] == follower && !may_stop.contains(&4) && !may_stop.contains(&follower)
    });
    cluster.operator(follower).signed("POST", "/v1/admin/accounts", Some(&json!({}))).unwrap();
}

/// One that answers every question with this, as a replica of another version would.
fn another_version(body: &Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut body = body.clone();
    let rows = body["replicas"].as_array_mut().unwrap();
    rows.iter_mut().filter(|row| row["replica"] == 1).for_each(|row| row["http"] = address.clone().into());
    let body = body.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            // A question is short and comes in one piece.
            let _ = stream.read(&mut head).unwrap();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn an_upgrade_restarts_one_replica_after_the_other_under_load() {
    let mut cluster = Cluster::of(Shape { checkpoint_every: 400, ..Shape::default() });
    let participants = participants(&cluster, 2);
    progress(&participants, 200);
    let first = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let may_stop = |cluster: &Cluster, id: u64| {
        let check = Cli::at(cluster, id).json(&["upgrade-check"]);
        ids(&check["replicas"], |row| row["may_stop"] == true)
    };

    // Followers first, then the one that led: it hands over before.
    let mut order: Vec<u64> = (1..=3).filter(|id| *id != first).collect();
    order.push(first);
    for id in order {
        if cluster.local.leader() == Some(id) {
            let to = id % 3 + 1;
            Cli::at(&cluster, to).done(&["transfer", &to.to_string()]);
            until("the other one leads", || cluster.other_leader(id).is_some());
        }
        until("it may stop", || may_stop(&cluster, id).contains(&id));
        let replica = &mut cluster.local.replicas[id as usize - 1];
        replica.signal(Signal::TERM).unwrap();
        assert_eq!(replica.wait().unwrap(), Some(0), "replica {id} stopped in good order");
        // Of the two that are left neither may stop.
        let other = id % 3 + 1;
        until("nobody else may stop", || may_stop(&cluster, other).iter().all(|stoppable| *stoppable == id));
        progress(&participants, 150);
        cluster.local.start(id).unwrap();
        cluster.catches_up(id);
        progress(&participants, 50);
    }

    // One of another version says so: it is asked in the place of the first replica.
    let mut view = Client::new(&cluster.local.replicas[0].url(), None).get("/v1/cluster").unwrap();
    let own = view["wire_version"].as_u64().unwrap();
    view["wire_version"] = json!(own + 1);
    let other_version = Cli { url: format!("http://{}", another_version(&view)), key: None };
    let check = other_version.json(&["upgrade-check"]);
    assert_eq!(check["compatible"], false);
    let wires: Vec<u64> = check["replicas"].as_array().unwrap().iter().filter_map(|row| row["wire_version"].as_u64()).collect();
    assert_eq!(wires, [own + 1, own, own]);
    assert!(other_version.text(&["upgrade-check"]).contains("different wire versions"));

    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let longest = diaries.iter().map(|diary| diary.longest_pause).max().unwrap();
    println!("the longest pause between two answers: {longest:?}");
    // Far above what three handovers take, far below waiting for a replica to come back by itself.
    assert!(longest < Duration::from_secs(20), "{longest:?}");
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check_history(&cluster, &diaries, end);
}

fn check_history(cluster: &Cluster, diaries: &[Diary], end: u64) {
    check(cluster, &[1, 2, 3], diaries, end);
}

/// What stands behind some words in a line that `walras cluster local` prints.
fn address_in(line: &str, words: &str) -> String {
    let (_, rest) = line.split_once(words).unwrap_or_else(|| panic!("{words:?} is not in {line:?}"));
    rest.split_whitespace().next().unwrap().to_owned()
}

/// One account trades by FIX at the replica that takes it, the other one at the gateway. What they bid is read by FIX at all of them.
fn trade_by_fix(processes: &[String], keys: &[ClientKey], sessions: &mut [Session], round: u64) {
    let mut orders: Vec<String> = processes.iter().map(|line| address_in(line, "  FIX at ")).collect();
    let at_gateway = vec![orders.pop().unwrap()];
    let mut price = String::new();
    for ((session, addresses), place) in sessions.iter_mut().zip([orders, at_gateway]).zip(0..) {
        log_on_anywhere(session, &addresses, None);
        let name = format!("bid-{round}");
        price = format!("{}.25", 29_000 + round + place);
        session.order(&name, &price);
        let report = session.hear_of(&["8"]);
        assert!(is_accepted(&report, &name), "{report:?}");
    }
    for line in processes {
        reads_bid(&address_in(line, "market data by FIX at "), &keys[0], None, &price);
    }
}

#[test]
fn a_cluster_on_one_machine_starts_stops_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("cluster");
    let mut last_index = 0;
    let (mut keys, mut sessions): (Vec<ClientKey>, Vec<Session>) = (Vec::new(), Vec::new());
    for round in 0..2_u64 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_walras"))
            .args(["cluster", "local", "--replicas", "3", "--gateways", "1", "--relays", "1", "--dir"])
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: Vec<String> = BufReader::new(child.stdout.take().unwrap()).lines().take(6).map(Result::unwrap).collect();
        let urls: Vec<&str> =
            lines.iter().filter_map(|line| line.split_whitespace().find(|word| word.starts_with("http://"))).collect();
        let urls: Vec<&str> = urls.iter().map(|url| url.trim_end_matches('/')).collect();
        assert_eq!(urls.len(), 3, "{lines:?}");
        assert!(lines[3].starts_with("gateway 101: ") && lines[5].contains(" leads; "), "{lines:?}");
        assert!(lines[4].starts_with("relay 1001: ") && lines[..5].iter().all(|line| line.contains("  process ")), "{lines:?}");
        let cli = Cli { url: urls[0].to_owned(), key: Some(folder.join("operator.key")) };
        let status = cli.json(&["status"]);
        assert_eq!(ids(&status["replicas"], |row| row["member"] == "voter"), [1, 2, 3]);
        let key = walras_client::read_key(&folder.join("operator.key")).unwrap();
        let operators: Vec<Client> = urls.iter().map(|url| Client::new(url, Some(key.clone()))).collect();
        if round == 0 {
            keys = market(&operators, 2).into_iter().map(|(_, key)| key).collect();
            sessions = keys.iter().map(|key| Session::new(key, "WALRAS")).collect();
        }
        let made = operators[0].signed("POST", "/v1/admin/accounts", Some(&json!({}))).unwrap();
        assert_eq!(made["account_id"], 2 + round, "it went on where it stopped");
        let index: u64 = made["log_index"].as_str().unwrap().parse().unwrap();
        assert!(index > last_index);
        last_index = index;
        keys.iter().for_each(|key| knows_key(&folder.join("gateway-101").join("data"), key));
        trade_by_fix(&lines[..4], &keys, &mut sessions, round);

        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success());
        // Its replicas went before it.
        assert!(urls.iter().all(|url| Client::new(url, None).get("/v1/cluster").is_err()), "all have stopped");
    }
}
