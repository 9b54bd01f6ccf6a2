//! Three voters and two learners as gateways: orders come in by the learners, are stamped there and sequenced by whoever leads; gateways and
//! leaders are killed.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use walras_access::{now, random_bytes};
use walras_client::Client;
use walras_gateway::ClientKey;
use walras_gateway::session::{ClientSettings, CopiedClient, Wish};
use walras_types::AccountId;
use walras_wire::Command;
use walras_wire::order_entry::ReportsWanted;

use super::client::{Diary, Flow, Participant, dial, read};
use super::{Cluster, PATIENCE, Shape, check_told, progress, stop_in_order, until};

const ALL: [u64; 5] = [1, 2, 3, 4, 5];

/// How far the leader has sequenced by gateway.
fn held_by(cluster: &Cluster, gateway: u64) -> u64 {
    let Some(leader) = cluster.local.leader() else { return 0 };
    let view = cluster.operator(leader).get("/v1/fair-access").unwrap();
    let gateways = view["sequencer"]["gateways"].as_array().unwrap();
    gateways.iter().find(|figures| figures["gateway"] == gateway).map_or(0, |figures| figures["held"].as_u64().unwrap())
}

fn cluster_with_gateways() -> Cluster {
    let settings = vec![("fair_access", "sequencing", "500us".into()), ("fair_access", "bound_us", toml::Value::Integer(10))];
    let mut cluster = Cluster::of(Shape { later: 2, more: settings, ..Shape::default() });
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    for id in [4, 5] {
        cluster.local.start(id).unwrap();
        let body = json!({"replica": id, "learner": true});
        until("a gateway is a learner", || cluster.operator(leader).signed("POST", "/v1/admin/cluster/add", Some(&body)).is_ok());
        cluster.catches_up(id);
    }
    cluster
}

fn orders_at(cluster: &Cluster, id: u64) -> String {
    cluster.local.replicas[id as usize - 1].orders.clone()
}

fn kill(cluster: &mut Cluster, id: u64) {
    let replica = &mut cluster.local.replicas[id as usize - 1];
    replica.signal(Signal::KILL).unwrap();
    replica.wait().unwrap();
}

/// Where orders of an account waited, as a replica says in the account's latest reports.
fn waits_at(cluster: &Cluster, id: u64, key: &ClientKey) -> Vec<Value> {
    let owner = Client::new(&cluster.local.replicas[id as usize - 1].url(), Some(key.clone()));
    let last: u64 = owner.signed_here("GET", "/v1/reports", None).unwrap()["last"].as_str().unwrap().parse().unwrap();
    let path = format!("/v1/reports?after={}&limit=256", last.saturating_sub(100));
    let read = owner.signed_here("GET", &path, None).unwrap();
    read["reports"].as_array().unwrap().iter().filter_map(|report| report.get("waits").cloned()).collect()
}

#[test]
fn orders_by_two_gateways_are_sequenced_and_survive_the_leader_without_a_new_connection() {
    let mut cluster = cluster_with_gateways();
    let accounts = cluster.market(3);
    let keys: Vec<ClientKey> = accounts.iter().map(|(_, key)| key.clone()).collect();
    // Two by a gateway each; one at whichever replica comes first, a voter.
    let ways = [vec![orders_at(&cluster, 4)], vec![orders_at(&cluster, 5)], vec![orders_at(&cluster, 1), orders_at(&cluster, 2)]];
    let participants: Vec<Participant> = (0xfa1e..)
        .zip(accounts)
        .zip(ways)
        .map(|((seed, (account, key)), way)| Participant::start(account, key, way, seed))
        .collect();
    progress(&participants, 200);
    for gateway in [4, 5] {
        until(&format!("gateway {gateway} passes on"), || held_by(&cluster, gateway) >= 100);
    }
    // One of sixteen is timed: where it came in, and where it is sequenced.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    for (id, wanted) in [(4, &["receive", "apply", "answer", "order"][..]), (leader, &["transit", "hold", "log", "apply"])] {
        until(&format!("replica {id} tells how long {wanted:?} take"), || {
            let latency = cluster.operator(id).get("/v1/latency").unwrap();
            let stages = latency["stages"].as_array().unwrap();
            let is_told = |name: &&str| stages.iter().any(|stage| stage["stage"] == *name && stage["p999_ns"].as_u64() > Some(0));
            wanted.iter().all(is_told)
        });
    }
    // Of each order its owner sees where it waited, at the gateway that took it.
    for (id, key, elsewhere) in [(4, &keys[0], 5), (5, &keys[1], 4)] {
        until(&format!("gateway {id} tells where an order waited"), || {
            let stages = ["gateway_ns", "sequencer_ns", "log_ns", "report_ns"];
            waits_at(&cluster, id, key).iter().any(|waits| {
                let sum: Option<u64> = stages.iter().map(|stage| waits[stage].as_u64()).sum();
                sum.is_some_and(|sum| sum > 0 && Some(sum) == waits["total_ns"].as_u64())
            })
        });
        assert_eq!(waits_at(&cluster, elsewhere, key), Vec::<Value>::new(), "it did not take them");
        assert_eq!(waits_at(&cluster, leader, key), Vec::<Value>::new(), "nor did the leader");
    }

    // Twice another one leads; the gateways' participants notice a pause.
    for _ in 0..2 {
        let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
        kill(&mut cluster, leader);
        progress(&participants, 200);
        cluster.local.start(leader).unwrap();
        cluster.catches_up(leader);
    }
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    for at_gateway in &diaries[..2] {
        assert_eq!(at_gateway.lost, Vec::<String>::new(), "a participant at a gateway stays there");
    }
    let end = stop_in_order(&mut cluster, &ALL);
    check_told(&cluster, &ALL, &diaries, end);
}

#[test]
fn copies_by_two_gateways_lose_and_double_nothing_when_one_is_killed() {
    let mut cluster = cluster_with_gateways();
    let accounts = cluster.market(2);
    let gateways = vec![orders_at(&cluster, 4), orders_at(&cluster, 5)];
    let copied: Vec<Participant> =
        (0xc0b1..).zip(accounts).map(|(seed, (account, key))| copied(account, &key, &gateways, seed)).collect();
    progress(&copied, 300);
    until("both gateways pass on", || {
        [4, 5].iter().all(|id| {
            let view = cluster.operator(*id).get("/v1/fair-access").unwrap();
            view["gateway"]["orders"].as_u64().unwrap() > 100
        })
    });
    for gateway in [4, 5] {
        kill(&mut cluster, gateway);
        progress(&copied, 500);
        cluster.local.start(gateway).unwrap();
        cluster.catches_up(gateway);
        let served = || {
            let view = cluster.operator(gateway).get("/v1/fair-access").unwrap();
            view["gateway"]["orders"].as_u64().unwrap() > 50
        };
        until("its streams are back", served);
    }
    // The leader goes too.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    kill(&mut cluster, leader);
    progress(&copied, 300);
    cluster.local.start(leader).unwrap();
    cluster.catches_up(leader);

    let diaries: Vec<Diary> = copied.into_iter().map(Participant::finish).collect();
    for diary in &diaries {
        assert_eq!(diary.disconnected, 0, "one stream at least was there all the time");
    }
    let end = stop_in_order(&mut cluster, &ALL);
    check_told(&cluster, &ALL, &diaries, end);
}

#[test]
fn a_later_logon_at_another_gateway_has_the_session() {
    let cluster = cluster_with_gateways();
    let (account, key) = cluster.market(1).remove(0);
    let first = Participant::start(account, key.clone(), vec![orders_at(&cluster, 4)], 7);
    until("it trades", || first.answered_count() > 20);
    // The same token, elsewhere: the first one is told that it is replaced, and ends.
    let second = Participant::start(account, key, vec![orders_at(&cluster, 5)], 8);
    until("the first one has ended", || first.has_ended());
    let said = first.ends_with().expect("it did not end by itself");
    assert!(said.contains("Replaced"), "{said}");
    drop(second.ends_with());
}

/// A participant whose every order goes by several gateways.
fn copied(account: AccountId, key: &ClientKey, gateways: &[String], seed: u64) -> Participant {
    let mut flow = Flow::new(account, seed);
    sharing(key, gateways, Ends::Answered, move || Some(flow.next()))
}

/// One that shares its session with others, and submits by these gateways what `next` gives. It is asked once the session is open.
pub(super) fn sharing(
    key: &ClientKey,
    gateways: &[String],
    ends: Ends,
    next: impl FnMut() -> Option<Command> + Send + 'static,
) -> Participant {
    let settings = ClientSettings {
        reports: ReportsWanted::After(0),
        retry_delay_ns: 20_000_000,
        answer_timeout_ns: 20_000_000_000,
        ..ClientSettings::new(Vec::new(), 1)
    };
    let client = CopiedClient::new(&settings, gateways, key, now().0).unwrap();
    let streams = gateways.iter().map(|_| None).collect();
    let mut program = Program { client, streams, next: Box::new(next), ends, diary: Diary::default() };
    Participant::running(move |answered, stop| program.run(answered, stop))
}

/// When a participant ends that is asked to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// Once all that it submitted is answered.
    Answered,
    /// At once: its gateways are gone.
    AtOnce,
}

struct Program {
    client: CopiedClient,
    streams: Vec<Option<TcpStream>>,
    next: Box<dyn FnMut() -> Option<Command> + Send>,
    ends: Ends,
    diary: Diary,
}

impl Program {
    fn run(&mut self, answered: &AtomicU64, stop: &AtomicBool) -> Diary {
        let mut buffer = vec![0; 64 << 10];
        while !stop.load(SeqCst) || (self.ends == Ends::Answered && self.client.unanswered_count() > 0) {
            let Self { client, diary, .. } = self;
            client.on_timer(now().0, &mut |event| diary.note(event));
            while !stop.load(SeqCst)
                && self.client.is_logged_on()
                && self.client.unanswered_count() < 8
                && let Some(command) = (self.next)()
            {
                self.client.submit(now().0, &command).unwrap();
                self.diary.sent.push(command);
            }
            for stream in 0..self.streams.len() {
                self.connect(stream);
                if self.exchange(stream, &mut buffer).is_err() {
                    self.lose(stream);
                }
            }
            if self.streams.iter().all(Option::is_none) {
                walras_wait::pause(Duration::from_millis(2));
            }
            answered.store(self.diary.answers.len() as u64, SeqCst);
        }
        std::mem::take(&mut self.diary)
    }

    fn connect(&mut self, stream: usize) {
        match self.client.wish(stream, now().0) {
            Wish::Wait => {}
            Wish::Close => self.lose(stream),
            Wish::Connect(address) => {
                let address = address.to_owned();
                self.client.on_connecting(stream);
                match dial(&address, Duration::from_millis(1)) {
                    Ok(socket) => {
                        self.diary.connections += 1;
                        self.client.on_connected(stream, now().0, &random_bytes());
                        self.streams[stream] = Some(socket);
                    }
                    Err(_) => self.client.on_disconnected(stream, now().0),
                }
            }
        }
    }

    fn exchange(&mut self, stream: usize, buffer: &mut [u8]) -> std::io::Result<()> {
        let Self { client, streams, diary, .. } = self;
        let Some(socket) = &mut streams[stream] else { return Ok(()) };
        while !client.output(stream).is_empty() {
            let len = socket.write(client.output(stream))?;
            client.consume(stream, len);
        }
        let bytes = read(socket, buffer)?;
        if !bytes.is_empty() {
            client.on_bytes(stream, now().0, bytes, &mut |event| diary.note(event));
        }
        Ok(())
    }

    fn lose(&mut self, stream: usize) {
        self.streams[stream] = None;
        self.client.on_disconnected(stream, now().0);
    }
}
