//! Three or five real replicas under load, killed, cut off, stopped, upgraded; then what everybody was told is held against their logs.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

mod batches;
mod client;
mod damage;
mod fairness;
mod fix_leaf;
mod fix_logons;
mod fix_trading;
mod folders;
mod gateways;
mod growth;
mod hedged;
mod identity;
mod leaf;
mod learner;
#[cfg(target_os = "linux")]
mod local;
mod logons;
mod namespaces;
mod once;
mod operate;
mod paths;
#[cfg(target_os = "linux")]
mod power;
mod proxy;
mod release;
mod signed;
mod stops;
#[cfg(feature = "strategies")]
mod strategies;
mod survivor;
mod tls;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use client::{Diary, Participant};
use rustix::process::Signal;
use serde_json::{Value, json};
use walras_client::cluster::account_key;
use walras_client::local_cluster::{LocalCluster, LocalOptions};
use walras_client::{Client, read_key};
use walras_consensus::{Members, ReplicaId};
use walras_engine::{Engine, Numbered};
use walras_gateway::ClientKey;
use walras_log_store::RealDisk;
use walras_peer_link::PathFaults;
use walras_replica_log::{Dump, Identity, Opened, Options, ReplicaLog, Stop};
use walras_sequencer::{Entry, decode_entry};
use walras_types::{AccountId, Ordinal, RejectReason, SessionSeq};
use walras_wait::{until, until_ok};

/// Longest that is waited for something that should come within a second or two; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

struct Cluster {
    local: LocalCluster,
    /// So many began it.
    voters: u16,
    _dir: tempfile::TempDir,
}

/// What a cluster is to be like.
struct Shape {
    replicas: u16,
    /// Replicas that are configured, and not members when it begins.
    later: u16,
    /// Leaf gateways, and relays of market data above them.
    gateways: u16,
    relays: u16,
    /// Whether all speak FIX.
    fix: bool,
    segment_bytes: i64,
    /// Entries between states that are compared.
    checkpoint_every: i64,
    /// Further keys of the configuration.
    more: Vec<(&'static str, &'static str, toml::Value)>,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            replicas: 3,
            later: 0,
            gateways: 0,
            relays: 0,
            fix: false,
            segment_bytes: 8 << 20,
            checkpoint_every: 2_000,
            more: Vec::new(),
        }
    }
}

impl Shape {
    fn options(self) -> LocalOptions {
        let number = |n: i64| toml::Value::Integer(n);
        let mut settings = vec![
            ("cluster", "test_faults", true.into()),
            // A machine that is busy stands still now and then, and an election that nobody meant may come between a question and its answer.
            ("cluster", "election_timeout_min_ms", number(600)),
            ("cluster", "election_timeout_max_ms", number(1_200)),
            ("log", "snapshot_every_entries", number(self.checkpoint_every)),
            ("log", "segment_bytes", number(self.segment_bytes)),
            ("throttle", "requests_per_second", number(1_000_000)),
            ("throttle", "burst", number(1_000_000)),
            ("throttle", "source_requests_per_second", number(1_000_000)),
            ("throttle", "source_burst", number(1_000_000)),
        ];
        settings.extend(self.more);
        LocalOptions {
            replicas: self.replicas,
            first_port: 0,
            later: self.later,
            gateways: self.gateways,
            relays: self.relays,
            fix: self.fix,
            settings,
        }
    }
}

impl Cluster {
    fn start(later: u16) -> Self {
        Self::of(Shape { later, ..Shape::default() })
    }

    fn of(shape: Shape) -> Self {
        Self::of_program(Path::new(env!("CARGO_BIN_EXE_walras")), shape, |_| ())
    }

    /// Of processes that `program` begins; `prepare` may change the folders that were laid out.
    fn of_program(program: &Path, shape: Shape, prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (voters, options) = (shape.replicas, shape.options());
        let folder = dir.path().join("cluster");
        LocalCluster::prepare(program, &folder, &options).unwrap();
        prepare(&folder);
        let mut local = LocalCluster::prepare(program, &folder, &options).unwrap();
        for id in 1..=u64::from(voters) {
            local.start(id).unwrap();
        }
        local.wait_for_leader(PATIENCE).unwrap();
        Self { local, voters, _dir: dir }
    }

    fn operator(&self, id: u64) -> Client {
        let replica = &self.local.replicas[id as usize - 1];
        Client::new(&replica.url(), Some(read_key(&self.local.operator_key()).unwrap()))
    }

    fn operators(&self) -> Vec<Client> {
        self.local.replicas.iter().filter(|replica| replica.is_running()).map(|replica| self.operator(replica.id)).collect()
    }

    /// A market and so many funded accounts with keys that all replicas know.
    fn market(&self, accounts: u32) -> Vec<(AccountId, ClientKey)> {
        market(&self.operators(), accounts)
    }

    /// Only a replica that leads may say that there is no such name: another one may not have heard of it yet.
    fn only_the_leader_knows_of_no_such_name(&self) {
        let body = json!({"instrument": "NO-SUCH", "phase": "continuous"});
        for replica in &self.local.replicas {
            until(&format!("replica {} says what it must", replica.id), || {
                let refused = self.operator(replica.id).signed_here("POST", "/v1/admin/phases", Some(&body)).unwrap_err();
                let leads = self.local.status(replica.id).is_some_and(|view| view["takes_commands"] == true);
                refused.is(if leads { RejectReason::UnknownInstrument } else { RejectReason::NotLeader })
            });
        }
    }

    /// Where a replica has its log and snapshots.
    fn folder(&self, id: u64) -> PathBuf {
        self.local.replicas[id as usize - 1].data().join("replica")
    }

    /// What a replica has said of itself.
    fn said(&self, id: u64) -> String {
        std::fs::read_to_string(self.local.replicas[id as usize - 1].dir.join("replica.log")).unwrap()
    }

    fn log_index(&self, id: u64) -> u64 {
        self.local.status(id).and_then(|view| view["log_index"].as_str()?.parse().ok()).unwrap_or(0)
    }

    /// A leader other than this one.
    fn other_leader(&self, than: u64) -> Option<u64> {
        let mut others = self.local.replicas.iter().map(|replica| replica.id).filter(|id| *id != than);
        others.find(|id| self.local.status(*id).is_some_and(|view| view["takes_commands"] == true))
    }

    /// Injects faults into all links of a replica: `out` for what it sends, `back` for what it receives.
    fn faults(&self, at: u64, out: PathFaults, back: PathFaults) {
        for peer in self.local.replicas.iter().map(|replica| replica.id).filter(|id| *id != at) {
            self.faults_between(at, peer, out, back);
        }
    }

    fn faults_between(&self, at: u64, peer: u64, out: PathFaults, back: PathFaults) {
        let path = |PathFaults { lost_per_million, delay_ns }| json!({"lost_per_million": lost_per_million, "delay_ns": delay_ns});
        let body = json!({"replica": peer, "out": path(out), "back": path(back)});
        self.operator(at).signed_here("POST", "/v1/admin/cluster/faults", Some(&body)).unwrap();
    }

    /// Whether a replica's log can be written, as it says itself.
    fn storage(&self, id: u64) -> String {
        let status = Client::new(&self.local.replicas[id as usize - 1].url(), None).get("/v1/status").unwrap_or_default();
        status["storage"].as_str().unwrap_or_default().to_owned()
    }

    fn kill(&mut self, id: u64) {
        let replica = &mut self.local.replicas[id as usize - 1];
        replica.signal(Signal::KILL).unwrap();
        assert_eq!(replica.wait().unwrap(), None, "it was killed");
    }

    fn catches_up(&self, id: u64) {
        let leader = self.local.wait_for_leader(PATIENCE).unwrap();
        let goal = self.log_index(leader);
        until(&format!("replica {id} is at entry {goal}"), || self.log_index(id) >= goal);
    }
}

/// A market and so many funded accounts with keys, made by the operator at these replicas, which are all.
fn market(operators: &[Client], accounts: u32) -> Vec<(AccountId, ClientKey)> {
    let post = |path: &str, body: Value| {
        let mut answer = None;
        // Between two leaders there is nobody to take it; then it was not carried out and never will be.
        until(&format!("{path} is taken"), || match operators[0].signed("POST", path, Some(&body)) {
            Err(refused) if refused.is(RejectReason::NotLeader) => false,
            answered => {
                answer = Some(answered.unwrap());
                true
            }
        });
        answer.unwrap()
    };
    post("/v1/admin/assets", json!({"symbol": "BTC", "decimals": 8}));
    post("/v1/admin/assets", json!({"symbol": "USD", "decimals": 6}));
    post(
        "/v1/admin/instruments",
        json!({
            "symbol": "BTC/USD", "base": "BTC", "quote": "USD", "tick_size": "0.25", "lot_size": "0.0001", "reference_price": "30000",
            "maker_fee_ppm": 100, "taker_fee_ppm": 300,
        }),
    );
    post("/v1/admin/phases", json!({"instrument": "BTC-USD", "phase": "continuous"}));
    (0..accounts)
        .map(|account| {
            post("/v1/admin/accounts", json!({}));
            for (asset, amount, transfer) in [("USD", "100000000", "1"), ("BTC", "10000", "2")] {
                let deposit = json!({"account_id": account, "asset": asset, "amount": amount, "transfer_id": transfer});
                post("/v1/admin/deposits", deposit);
            }
            let account = AccountId(account);
            (account, account_key(operators, account).unwrap())
        })
        .collect()
}

/// Nothing comes through.
const BLOCKED: PathFaults = PathFaults::BLOCKED;
/// Everything does, at once.
const FAIR: PathFaults = PathFaults { lost_per_million: 0, delay_ns: 0 };

/// A market, and so many who trade in it. They try the leader last, so that whichever leads they have to look for it.
fn participants(cluster: &Cluster, count: u32) -> Vec<Participant> {
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let (last, first): (Vec<_>, Vec<_>) = cluster.local.replicas.iter().partition(|replica| replica.id == leader);
    let orders: Vec<String> = first.into_iter().chain(last).map(|replica| replica.orders.clone()).collect();
    let accounts = cluster.market(count);
    (0x5eed..).zip(accounts).map(|(seed, (account, key))| Participant::start(account, key, orders.clone(), seed)).collect()
}

fn progress(participants: &[Participant], by: u64) {
    let goals: Vec<u64> = participants.iter().map(|participant| participant.answered_count() + by).collect();
    until("everybody is answered again", || participants.iter().zip(&goals).all(|(p, goal)| p.answered_count() >= *goal));
}

#[test]
fn nothing_is_lost_doubled_or_reordered_while_replicas_die_hang_and_are_cut_off() {
    let mut cluster = Cluster::start(0);
    let accounts = cluster.market(3);
    cluster.only_the_leader_knows_of_no_such_name();
    let orders: Vec<String> = cluster.local.replicas.iter().map(|replica| replica.orders.clone()).collect();
    let participants: Vec<Participant> =
        (0x9e37..).zip(accounts).map(|(seed, (account, key))| Participant::start(account, key, orders.clone(), seed)).collect();
    progress(&participants, 200);

    for _ in 0..3 {
        let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
        let replica = &mut cluster.local.replicas[leader as usize - 1];
        replica.signal(Signal::KILL).unwrap();
        assert_eq!(replica.wait().unwrap(), None, "it was killed");
        progress(&participants, 300);
        cluster.local.start(leader).unwrap();
        cluster.catches_up(leader);
    }

    // The leader is cut off from both others, who elect another one; then it comes back.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    cluster.faults(leader, BLOCKED, BLOCKED);
    until("another one leads", || cluster.other_leader(leader).is_some());
    progress(&participants, 300);
    cluster.faults(leader, FAIR, FAIR);
    cluster.catches_up(leader);

    // A follower hangs.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let hung = leader % 3 + 1;
    cluster.local.replicas[hung as usize - 1].signal(Signal::STOP).unwrap();
    progress(&participants, 1_000);
    cluster.local.replicas[hung as usize - 1].signal(Signal::CONT).unwrap();
    cluster.catches_up(hung);

    // In good order.
    let to = leader % 3 + 1;
    cluster.operator(leader).signed("POST", "/v1/admin/cluster/transfer", Some(&json!({"replica": to}))).unwrap();
    until("the other one leads", || cluster.other_leader(leader).is_some());
    progress(&participants, 300);

    // A leader that is asked to stop hands over first.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let replica = &mut cluster.local.replicas[leader as usize - 1];
    replica.signal(Signal::TERM).unwrap();
    assert_eq!(replica.wait().unwrap(), Some(0));
    let log = std::fs::read_to_string(replica.dir.join("replica.log")).unwrap();
    let (_, end) = log.rsplit_once("handing over to replica").expect("it says so");
    assert!(end.contains("this replica follows"), "another one led before it ended: {end}");
    progress(&participants, 300);
    cluster.local.start(leader).unwrap();
    cluster.catches_up(leader);

    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check(&cluster, &[1, 2, 3], &diaries, end);
}

/// Stops these replicas when all have applied all; an entry up to which all of it stands in their logs.
fn stop_in_order(cluster: &mut Cluster, replicas: &[u64]) -> u64 {
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    // What is decided stands in a replica's log with the write that follows.
    let enter = || {
        let answer = cluster.operator(leader).signed("POST", "/v1/admin/accounts", Some(&json!({}))).unwrap();
        answer["log_index"].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap()
    };
    let (end, _, all) = (enter(), enter(), enter());
    until_ok("all have applied all", || {
        let late = replicas.iter().find(|id| cluster.log_index(**id) < all);
        late.map_or(Ok(()), |id| {
            let said = cluster.said(*id);
            let from = said.char_indices().nth_back(1_500).map_or(0, |(at, _)| at);
            Err(format!(
                "replica {id} is at {} of {all}, led by {leader}, and said last: {}",
                cluster.log_index(*id),
                &said[from..]
            ))
        })
    });
    for id in replicas {
        let replica = &mut cluster.local.replicas[*id as usize - 1];
        replica.signal(Signal::TERM).unwrap();
        assert_eq!(replica.wait().unwrap(), Some(0), "replica {id} stopped in good order: see {}", replica.dir.display());
    }
    end
}

/// What was told against what is in the logs of these replicas, by those who had to find other replicas meanwhile.
fn check(cluster: &Cluster, replicas: &[u64], diaries: &[Diary], end: u64) {
    check_told(cluster, replicas, diaries, end);
    assert!(diaries.iter().all(|diary| !diary.lost.is_empty()), "everybody had to connect again");
}

/// What was told against what is in the logs of these replicas.
fn check_told(cluster: &Cluster, replicas: &[u64], diaries: &[Diary], end: u64) {
    let mut connections = 0;
    for diary in diaries {
        connections += diary.connections;
        let expected = (1..=diary.sent.len() as u64).map(SessionSeq);
        assert!(diary.answers.iter().map(|(seq, ..)| *seq).eq(expected), "each command is answered once, in order");
        assert!(diary.answers.is_sorted_by_key(|(_, log_index, _)| *log_index), "and stands in the log in that order");
        assert_eq!(diary.reports_missing, 0);
        let numbers = diary.reports.iter().map(|(number, _)| *number);
        assert!(numbers.eq(1..=diary.reports.len() as u64), "reports come once, in order, without a gap");
    }

    let logs: Vec<Vec<Entry>> = replicas.iter().map(|id| entries(&cluster.folder(*id))).collect();
    let whole = logs.iter().find(|log| log.first().is_some_and(|entry| entry.log_index.0 == 1)).expect("one has all of its log");
    assert!(whole.len() as u64 >= end);
    for log in &logs {
        let first = log.first().map_or(1, |entry| entry.log_index.0);
        let common = whole.len().min(log.len() + first as usize - 1);
        assert!(log[..common + 1 - first as usize] == whole[first as usize - 1..common], "all logs hold the same");
        assert!(common as u64 >= end);
    }

    // What stands in the log, applied once more.
    let mut engine = Engine::new();
    let mut done: BTreeMap<Ordinal, (u64, Entry)> = BTreeMap::new();
    let mut repeats = 0;
    let mut events = Vec::new();
    for entry in whole {
        events.clear();
        match (entry.ordinal, entry.apply(&mut engine, &mut events)) {
            (Some(ordinal), Some(Numbered::Done(answer))) => {
                assert_eq!(answer.log_index, entry.log_index);
                assert!(done.insert(ordinal, (entry.log_index.0, entry.clone())).is_none(), "{ordinal:?} took effect twice");
            }
            (Some(_), Some(Numbered::Repeated(_))) => repeats += 1,
            (Some(_), Some(Numbered::Refused(_)) | None) | (None, _) => {}
        }
    }
    for diary in diaries {
        let session = diary.session.unwrap();
        for ((session_seq, log_index, _), sent) in diary.answers.iter().zip(&diary.sent) {
            let (at, entry) = &done[&Ordinal { session, session_seq: *session_seq }];
            assert_eq!(
                (*at, entry.content.command()),
                (log_index.0, Some(sent)),
                "the answer names the entry that holds the command"
            );
        }
    }
    let sent: usize = diaries.iter().map(|diary| diary.sent.len()).sum();
    println!("{sent} commands, {connections} connections, {repeats} repeats in a log of {} entries", whole.len());

    // The replicas' own states where they took them: equal to the byte wherever two took one.
    let mut states: BTreeMap<u64, BTreeSet<[u8; 32]>> = BTreeMap::new();
    let mut taken = 0;
    for id in replicas {
        for (log_index, hash) in snapshots(*id, &cluster.folder(*id), cluster.voters) {
            taken += 1;
            states.entry(log_index).or_default().insert(hash);
        }
    }
    assert!(taken > states.len(), "two replicas have a state of the same entry: {states:?}");
    assert!(states.values().all(|hashes| hashes.len() == 1), "they are equal: {states:?}");
}

fn entries(dir: &Path) -> Vec<Entry> {
    let dump = Dump::open(&RealDisk, dir).unwrap();
    assert_eq!(dump.stop, Stop::Orderly);
    let mut decided = dump.decided().unwrap().expect("its log indexes are known");
    let mut entries = Vec::new();
    while let Some(committed) = decided.next().unwrap() {
        for (log_index, bytes) in (committed.first.0..).map(walras_types::LogIndex).zip(committed.pack.entries()) {
            entries.push(decode_entry(log_index, bytes).unwrap());
        }
    }
    entries
}

fn snapshots(id: u64, dir: &Path, voters: u16) -> Vec<(u64, [u8; 32])> {
    let opened = open(id, dir, voters);
    opened.snapshots.list().into_iter().map(|info| (info.meta.log_index.0, info.state_hash)).collect()
}

fn open(id: u64, dir: &Path, voters: u16) -> Opened<RealDisk> {
    let cluster_id = Dump::open(&RealDisk, dir).unwrap().cluster_id;
    let replica = |n| ReplicaId::new(n).unwrap();
    let identity = Identity { cluster_id, replica: replica(id), genesis: Members::of_voters((1..=voters.into()).map(replica)) };
    ReplicaLog::open(RealDisk, dir, identity, Options::default()).unwrap()
}

fn member(cluster: &Cluster, asked: u64, id: u64) -> String {
    let view = cluster.local.status(asked).unwrap_or_default();
    let rows = view["replicas"].as_array().cloned().unwrap_or_default();
    let row = rows.iter().find(|row| row["replica"] == id).cloned().unwrap_or_default();
    row["member"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_fourth_replica_learns_then_votes_and_a_first_one_leaves() {
    let mut cluster = Cluster::start(1);
    cluster.market(1);
    cluster.local.start(4).unwrap();
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    // A follower is asked: it names the leader.
    let operator = cluster.operator(leader % 3 + 1);
    let post = |what: &str, body: Value| operator.signed("POST", &format!("/v1/admin/cluster/{what}"), Some(&body));
    let unknown = post("add", json!({"replica": 9})).unwrap_err().to_string();
    assert!(unknown.contains("cluster.peers"), "{unknown}");
    post("add", json!({"replica": 4, "learner": true})).unwrap();
    until("the fourth learns", || member(&cluster, 4, 4) == "learner");
    cluster.catches_up(4);
    post("add", json!({"replica": 4})).unwrap();
    until("the fourth votes", || member(&cluster, leader, 4) == "voter");

    let gone = leader % 3 + 1;
    post("remove", json!({"replica": gone})).unwrap();
    until("one has left", || member(&cluster, leader, gone) == "none");
    let replica = &mut cluster.local.replicas[gone as usize - 1];
    replica.signal(Signal::TERM).unwrap();
    assert_eq!(replica.wait().unwrap(), Some(0));

    // Of three voters one may be away, the fourth leading.
    let operator = cluster.operator(leader);
    operator.signed("POST", "/v1/admin/cluster/transfer", Some(&json!({"replica": 4}))).unwrap();
    until("the fourth leads", || cluster.other_leader(leader) == Some(4));
    cluster.local.replicas[leader as usize - 1].signal(Signal::KILL).unwrap();
    cluster.local.replicas[leader as usize - 1].wait().unwrap();
    let last = cluster.operator(4).signed("POST", "/v1/admin/accounts", Some(&json!({}))).unwrap();
    assert_eq!(last["account_id"], 1);
}
