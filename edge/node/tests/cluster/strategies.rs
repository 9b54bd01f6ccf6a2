//! Strategies in the process of a leaf gateway: one that trades on what it sees, and not before it may be seen, next to one that never comes
//! back from a call.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use walras_client::Client;
use walras_client::local_cluster::{FIRST_GATEWAY, FIRST_RELAY};
use walras_types::{AccountId, TimeNs};
use walras_wait::until;
use walras_wire::{Command, OrderCommand};

use super::client::{Diary, Participant};
use super::release::figure;
use super::{Cluster, PATIENCE, Shape, check_told, entries, progress, stop_in_order};

/// How long the venue holds market data: far longer than an order takes from a gateway into the log.
const RELEASE: Duration = Duration::from_millis(150);

/// Joins each order of more than one lot: one lot at its side and price. So it does not join its own. The id of its order is the log entry
/// that it saw.
const JOINER: &str = r#"(module
    (import "walras" "limit_order" (func $order (param i64 i32 i32 i64 i64 i32) (result i32)))
    (memory (export "memory") 1)
    (func (export "walras_abi") (result i32) i32.const 1)
    (func (export "walras_buffer") (result i32) i32.const 1024)
    (func (export "walras_market_data") (param $channel i32) (param $number i64) (param $len i32)
        (if (i32.ne (i32.load8_u (i32.const 1025)) (i32.const 10)) (then return))
        (if (i64.le_u (i64.load (i32.const 1060)) (i64.const 1)) (then return))
        (drop (call $order (i64.load (i32.const 1027)) (i32.and (local.get $channel) (i32.const 0xffffff))
            (i32.load8_u (i32.const 1051)) (i64.load (i32.const 1052)) (i64.const 1) (i32.const 0)))))"#;

/// Loops at the first message.
const LOOPER: &str = r#"(module
    (memory (export "memory") 1)
    (func (export "walras_abi") (result i32) i32.const 1)
    (func (export "walras_buffer") (result i32) i32.const 0)
    (func (export "walras_market_data") (param i32 i64 i32) (loop $again (br $again))))"#;

#[test]
fn one_trades_at_its_gateway_and_one_that_loops_stops_alone() {
    trades(false);
}

#[test]
fn one_that_spins_trades_at_its_gateway_and_one_that_loops_stops_alone() {
    trades(true);
}

/// The one that trades spins, or sleeps while nothing comes.
fn trades(spins: bool) {
    let more = vec![
        ("fair_access", "release", format!("{}ms", RELEASE.as_millis()).into()),
        ("fair_access", "release_max_us", toml::Value::Integer(1_000_000)),
        ("feed", "heartbeat_ms", toml::Value::Integer(50)),
    ];
    let mut cluster = Cluster::of(Shape { gateways: 1, relays: 1, checkpoint_every: 200, more, ..Shape::default() });
    cluster.local.start(FIRST_RELAY).unwrap();
    let mut accounts = cluster.market(3);
    let (_, trader) = accounts.pop().unwrap();
    let gateway = cluster.local.gateways[0].dir.clone();
    let config = gateway.join("walras.toml");
    let mut text = std::fs::read_to_string(&config).unwrap();
    for ((name, module), (account, key)) in [("looper", LOOPER), ("joiner", JOINER)].into_iter().zip(&accounts) {
        let (file, key_file) = (gateway.join(format!("{name}.wat")), gateway.join(format!("{name}.key")));
        std::fs::write(&file, module).unwrap();
        std::fs::write(&key_file, key.to_token().as_str()).unwrap();
        let (file, key_file) = (file.display(), key_file.display());
        write!(text, "\n[[strategies]]\nname = \"{name}\"\nfile = \"{file}\"\nkey = \"{key_file}\"\naccount = {}\n", account.0)
            .unwrap();
        let spins = spins && name == "joiner";
        writeln!(text, "channels = [0x01000000]\nfuel_per_call = 100000\nspin = {spins}").unwrap();
    }
    std::fs::write(&config, text).unwrap();
    cluster.local.start(FIRST_GATEWAY).unwrap();
    for id in 1..=3 {
        let is_held = || figure(&cluster, id, "walras_release_delay_ns") == Some(RELEASE.as_nanos().try_into().unwrap());
        until(&format!("replica {id} knows the delay"), is_held);
    }

    let orders = cluster.local.gateways[0].orders.clone();
    let participants = vec![Participant::start(AccountId(2), trader, vec![orders], 0x57a7)];
    progress(&participants, 100);
    let said = || std::fs::read_to_string(gateway.join("replica.log")).unwrap();
    until("the one that loops is stopped", || said().contains("strategy \"looper\" is stopped: out of fuel"));
    // The other one goes on, and so does everybody else.
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let joiner = Client::new(&cluster.local.replicas[leader as usize - 1].url(), Some(accounts[1].1.clone()));
    let count = || {
        let open = joiner.signed("GET", "/v1/orders", None).unwrap()["orders"].as_array().map_or(0, Vec::len);
        open + joiner.signed("GET", "/v1/fills", None).unwrap()["fills"].as_array().map_or(0, Vec::len)
    };
    until("the other one has orders", || count() > 0);
    progress(&participants, 200);
    assert!(!said().contains("strategy \"joiner\" is stopped"), "{}", said());
    assert_eq!(said().contains("strategy \"joiner\" runs; it spins on a core of its own"), spins, "{}", said());
    assert!(!said().contains("strategy \"looper\" runs; it spins"), "{}", said());
    let looper = Client::new(&cluster.local.replicas[leader as usize - 1].url(), Some(accounts[0].1.clone()));
    assert_eq!(looper.signed("GET", "/v1/orders", None).unwrap()["orders"].as_array().map(Vec::len), Some(0));

    // With its gateway the strategy ends, and its orders are cancelled.
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let process = &mut cluster.local.gateways[0];
    process.signal(rustix::process::Signal::TERM).unwrap();
    process.wait().unwrap();
    until("the strategy's orders are cancelled", || {
        joiner.signed("GET", "/v1/orders", None).unwrap()["orders"].as_array().map(Vec::len) == Some(0)
    });
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check_told(&cluster, &[1, 2, 3], &diaries, end);
    acts_on_what_is_released(&cluster, accounts[1].0);
}

/// No order of the joiner is in the log before what it joined was released.
fn acts_on_what_is_released(cluster: &Cluster, joiner: AccountId) {
    let logs = [1, 2, 3].map(|id| entries(&cluster.folder(id)));
    let log = logs.iter().find(|log| log.first().is_some_and(|entry| entry.log_index.0 == 1)).expect("one has all of its log");
    let times: BTreeMap<u64, TimeNs> = log.iter().map(|entry| (entry.log_index.0, entry.time)).collect();
    let waits = log.iter().filter_map(|entry| match entry.content.command() {
        Some(Command::Order(OrderCommand::New(order))) if order.account == joiner => {
            Some(entry.time.0 - times[&order.client_order_id.0].0)
        }
        _ => None,
    });
    let soonest = Duration::from_nanos(waits.min().expect("it ordered"));
    assert!(soonest >= RELEASE, "the strategy's order was in the log {soonest:?} after what it saw");
}
