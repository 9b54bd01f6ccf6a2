//! Two shards on loopback: funds that move between them, orders that go to the wrong one, and crashes on the way.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use walras_client::{Client, read_key};
use walras_config::{Config, Shard};
use walras_gateway::ClientKey;
use walras_node::node::Node;
use walras_types::RejectReason;

use crate::recovery::Process;
use crate::schema::{check_named, document};
use crate::support::{Raw, code, config, key, operator, restart, until};

const BTC_USD: &str = "BTC/USD";
const ETH_USD: &str = "ETH/USD";
/// Where transfers are delivered.
const PATH: &str = "/v1/admin/transfers/in";
/// The number of `Forbidden`.
const FORBIDDEN: u64 = RejectReason::Forbidden.number() as u64;

/// Addresses that were free a moment ago.
pub(crate) fn addresses() -> [String; 2] {
    [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string())
}

/// A key that may deliver transfers to the shard of this folder. It is made when the shard runs.
fn relay_key_file(dir: &Path) -> PathBuf {
    dir.join("relay.key")
}

/// What both shards' configurations list.
fn shards(addresses: &[String; 2], dirs: &[PathBuf; 2]) -> Vec<Shard> {
    let shard = |number: u8| Shard {
        number,
        urls: vec![format!("http://{}", addresses[usize::from(number)])],
        key_file: relay_key_file(&dirs[usize::from(number)]).display().to_string(),
        ca_file: String::new(),
    };
    vec![shard(0), shard(1)]
}

/// The same as text.
fn sections(own: usize, addresses: &[String; 2], dirs: &[PathBuf; 2]) -> String {
    let head = format!("[log]\nsegment_bytes = 1048576\n[shards]\nown = {own}\npoll_ms = 5\nretry_ms_max = 40\n");
    let one = |shard: &Shard| {
        format!("[[shard]]\nnumber = {}\nurls = [\"{}\"]\nkey_file = \"{}\"\n", shard.number, shard.urls[0], shard.key_file)
    };
    head + &shards(addresses, dirs).iter().map(one).collect::<String>()
}

fn post(client: &Client, path: &str, body: Value) -> Value {
    client.signed("POST", path, Some(&body)).unwrap()
}

/// The same assets, instruments and accounts at a shard: BTC/USD is shard 0's and ETH/USD is 1's. Accounts 0 (which pays) and 1.
/// And a key for the other's transfer relay.
fn open(operator: &Client, own: usize, dir: &Path) -> [ClientKey; 2] {
    let relay = post(operator, "/v1/admin/keys", json!({"permissions": ["transfer_relay"], "algorithm": "ed25519"}));
    std::fs::write(relay_key_file(dir), relay["key"].as_str().unwrap()).unwrap();
    for asset in ["USD", "BTC", "ETH"] {
        post(operator, "/v1/admin/assets", json!({"symbol": asset, "decimals": 6}));
    }
    for (symbol, base, shard) in [(BTC_USD, "BTC", 0), (ETH_USD, "ETH", 1)] {
        let spec = json!({
            "symbol": symbol, "base": base, "quote": "USD", "tick_size": "1", "lot_size": "0.01", "reference_price": "1000",
        });
        post(operator, "/v1/admin/instruments", spec);
        post(operator, "/v1/admin/instrument-shards", json!({"instrument": symbol, "shard": shard}));
        if own == shard {
            post(operator, "/v1/admin/phases", json!({"instrument": symbol, "phase": "continuous"}));
        }
    }
    [0, 1].map(|account| {
        assert_eq!(post(operator, "/v1/admin/accounts", json!({}))["account_id"], account);
        key(operator, account, &["read", "trade"])
    })
}

fn deposit(operator: &Client, account: u32, asset: &str, amount: &str) {
    let body = json!({"account_id": account, "asset": asset, "amount": amount, "transfer_id": "1"});
    post(operator, "/v1/admin/deposits", body);
}

fn limit(instrument: &str, id: u64, side: &str, size: &str, price: &str) -> Value {
    json!({"instrument": instrument, "client_order_id": id.to_string(), "side": side, "type": "limit", "size": size, "price": price})
}

fn in_transit(client: &Client, to: usize) -> Value {
    client.get("/v1/shards").unwrap()["shards"][to]["in_transit"].clone()
}

/// What an account has of an asset, available and reserved, in millionths.
fn owned(client: &Client, asset: &str) -> u128 {
    let account = client.signed("GET", "/v1/account", None).unwrap();
    let balance = account["balances"].as_array().unwrap().iter().find(|balance| balance["asset"] == asset).cloned();
    let millionths = |text: &Value| -> u128 {
        let (whole, fraction) = text.as_str().unwrap_or("0").split_once('.').unwrap_or((text.as_str().unwrap_or("0"), ""));
        format!("{whole}{fraction:0<6}").parse().unwrap()
    };
    balance.map_or(0, |balance| millionths(&balance["available"]) + millionths(&balance["reserved"]))
}

pub(crate) fn node_config(own: usize, addresses: &[String; 2], dirs: &[PathBuf; 2]) -> Config {
    let mut config = config();
    config.http.listen = addresses[own].clone();
    config.shards.own = u8::try_from(own).unwrap();
    config.shards.poll_ms = 5;
    config.shards.retry_ms_max = 40;
    config.shard = shards(addresses, dirs);
    config.check().unwrap();
    config
}

pub(crate) fn dirs(root: &Path) -> [PathBuf; 2] {
    ["zero", "one"].map(|name| {
        let dir = root.join(name);
        std::fs::create_dir(&dir).unwrap();
        dir
    })
}

#[test]
fn funds_move_to_where_their_account_trades() {
    let root = tempfile::tempdir().unwrap();
    let (addresses, dirs) = (addresses(), dirs(root.path()));
    let configs = [0, 1].map(|own| node_config(own, &addresses, &dirs));
    let zero = Node::start(&dirs[0], &configs[0]).unwrap();
    let one = Node::start(&dirs[1], &configs[1]).unwrap();
    let urls = addresses.each_ref().map(|address| format!("http://{address}"));
    let operators = [0, 1].map(|own| operator(&urls[own], &dirs[own]));
    let keys = [0, 1].map(|own| open(&operators[own], own, &dirs[own]));
    let client = |at: usize, account: usize| operators[at].with_key(keys[at][account].clone());
    deposit(&operators[0], 0, "USD", "1000");
    deposit(&operators[1], 1, "ETH", "5");

    let document = document();
    let view = operators[0].get("/v1/shards").unwrap();
    check_named(&document, "Shards", &view);
    assert_eq!((&view["own"], &view["count"]), (&json!(0), &json!(2)));
    assert_eq!((&view["shards"][1]["instruments"], &view["shards"][1]["urls"]), (&json!([ETH_USD]), &json!([urls[1]])));

    // An order for what is traded elsewhere is sent there.
    let buyer = client(0, 0);
    let order = limit("ETH-USD", 1, "buy", "0.5", "1000");
    let refused = buyer.signed("POST", "/v1/orders", Some(&order)).unwrap_err().to_string();
    assert!(refused.contains("InstrumentElsewhere (54)") && refused.contains(&urls[1]), "{refused}");
    assert_eq!(code(client(1, 0).signed("POST", "/v1/orders", Some(&order))), 60, "there it has no funds yet");

    let transfer = json!({"asset": "USD", "amount": "600", "to_shard": 1, "client_transfer_id": "7"});
    let sent = post(&buyer, "/v1/account/transfers", transfer.clone());
    check_named(&document, "TransferAnswer", &sent);
    assert_eq!((&sent["transfer_seq"], &sent["amount"]), (&json!("1"), &json!("600")));
    assert_eq!(code(buyer.signed("POST", "/v1/account/transfers", Some(&transfer))), 7, "the same again moves nothing");
    until("the transfer arrives", || in_transit(&operators[0], 1) == 0);
    assert_eq!((owned(&buyer, "USD"), owned(&client(1, 0), "USD")), (400_000_000, 600_000_000));

    post(&client(1, 1), "/v1/orders", limit("ETH-USD", 1, "sell", "0.5", "1000"));
    assert_eq!(post(&client(1, 0), "/v1/orders", order)["status"], "filled");
    let back = json!({"asset": "ETH", "amount": "0.5", "to_shard": 0});
    post(&client(1, 0), "/v1/account/transfers", back);
    until("what was bought arrives", || in_transit(&operators[1], 0) == 0);
    assert_eq!(owned(&buyer, "ETH"), 500_000);
    for line in ["walras_transfers_in_transit{shard=\"1\"} 0", "walras_transfers_delivered_total{shard=\"1\"} 1"] {
        let metrics = || Raw { method: "GET", path: "/metrics", body: b"", key: None }.send(&urls[0]).text;
        until(line, || metrics().lines().any(|other| other == line));
    }

    // An account that only shard 0 has: what it sends comes back.
    assert_eq!(post(&operators[0], "/v1/admin/accounts", json!({}))["account_id"], 2);
    deposit(&operators[0], 2, "USD", "30");
    let stranger = operators[0].with_key(key(&operators[0], 2, &["read", "trade"]));
    post(&stranger, "/v1/account/transfers", json!({"asset": "USD", "amount": "20", "to_shard": 1}));
    post(&buyer, "/v1/account/transfers", json!({"asset": "USD", "amount": "1", "to_shard": 1}));
    until("both are settled", || in_transit(&operators[0], 1) == 0);
    assert_eq!((owned(&stranger, "USD"), owned(&buyer, "USD")), (30_000_000, 399_000_000));

    // While shard 1 is down only what goes there waits, and the account sees it.
    one.stop();
    post(&buyer, "/v1/account/transfers", json!({"asset": "USD", "amount": "9", "to_shard": 1}));
    until("the transfer relay says that it gets nowhere", || {
        !operators[0].get("/v1/shards").unwrap()["shards"][1]["trouble"].is_null()
    });
    let waiting = buyer.signed("GET", "/v1/account/transfers", None).unwrap();
    check_named(&document, "Transfers", &waiting);
    assert_eq!((&waiting["transfers"][0]["amount"], waiting["transfers"].as_array().unwrap().len()), (&json!("9"), 1));
    post(&buyer, "/v1/orders", limit("BTC-USD", 1, "buy", "0.1", "900"));
    check_named(&document, "Shards", &operators[0].get("/v1/shards").unwrap());
    let one = restart(walras_log_store::RealDisk, &dirs[1], &configs[1]);
    until("it arrives after all", || in_transit(&operators[0], 1) == 0);
    until("the transfer relay has no trouble", || operators[0].get("/v1/shards").unwrap()["shards"][1]["trouble"].is_null());
    // It is delivered as often as it takes, and taken once.
    let delivered = json!([{"transfer_seq": "1", "account_id": 0, "asset_id": 0, "amount_units": "600000000"}]);
    let again = post(&operator(&urls[1], &dirs[1]), PATH, json!({"from_shard": 0, "to_shard": 1, "transfers": delivered}));
    check_named(&document, "TransfersInAnswer", &again);
    assert_eq!(again["outcomes"], json!([{"transfer_seq": "1", "outcome": "taken"}]));
    assert_eq!(zero.stop(), None);
    one.stop();

    // A folder that holds one shard is not made another by its configuration.
    let mut other = configs[1].clone();
    other.shards.own = 0;
    let refused = Node::start(&dirs[1], &other).map(Node::stop).unwrap_err().to_string();
    assert!(refused.contains("shard 0 of 2") && refused.contains("shards.own"), "{refused}");
}

/// Whoever leads tells the cluster which shard it is, and delivers its transfers.
#[test]
fn a_cluster_is_a_shard_beside_a_single_machine() {
    let root = tempfile::tempdir().unwrap();
    let (addresses, dirs) = (addresses(), dirs(root.path()));
    let mut of_cluster = node_config(0, &addresses, &dirs);
    let replica = crate::replica::one();
    (of_cluster.cluster, of_cluster.order_entry) = (replica.cluster, replica.order_entry);
    of_cluster.check().unwrap();
    let zero = Node::start(&dirs[0], &of_cluster).unwrap();
    let one = Node::start(&dirs[1], &node_config(1, &addresses, &dirs)).unwrap();
    crate::replica::wait_until_it_leads(&zero);
    let urls = addresses.each_ref().map(|address| format!("http://{address}"));
    let operators = [0, 1].map(|own| operator(&urls[own], &dirs[own]));
    until("the cluster knows which shard it is", || operators[0].get("/v1/shards").unwrap()["count"] == 2);
    let keys = [0, 1].map(|own| open(&operators[own], own, &dirs[own]));
    let client = |at: usize, account: usize| operators[at].with_key(keys[at][account].clone());
    deposit(&operators[0], 0, "USD", "1000");
    for (amount, from) in [("600", 0), ("250", 1)] {
        post(&client(from, 0), "/v1/account/transfers", json!({"asset": "USD", "amount": amount, "to_shard": 1 - from}));
        until("it arrives", || in_transit(&operators[from], 1 - from) == 0);
    }
    assert_eq!([0, 1].map(|at| owned(&client(at, 0), "USD")), [650_000_000, 350_000_000]);
    assert_eq!(zero.stop(), None);
    one.stop();
    // From its log alone, without a snapshot.
    let zero = restart(walras_log_store::RealDisk, &dirs[0], &of_cluster);
    crate::replica::wait_until_it_leads(&zero);
    let again = Client::new(&urls[0], Some(keys[0][0].clone()));
    assert_eq!(owned(&again, "USD"), 650_000_000);
    assert_eq!(zero.stop(), None);
}

/// Both shards are killed again and again while two accounts send funds to and fro: nothing is lost, nothing made.
#[test]
fn kill_9_of_either_shard_loses_no_funds_on_their_way_and_doubles_none() {
    let root = tempfile::tempdir().unwrap();
    let (addresses, dirs) = (addresses(), dirs(root.path()));
    let start = |own: usize| Process::start_at(&dirs[own], &addresses[own], &sections(own, &addresses, &dirs));
    let mut processes = [0, 1].map(|own| Some(start(own)));
    let urls = addresses.each_ref().map(|address| format!("http://{address}"));
    let operators = [0, 1].map(|own| operator(&urls[own], &dirs[own]));
    let keys = [0, 1].map(|own| open(&operators[own], own, &dirs[own]));
    // Anew each time: a connection does not outlive the process at its other end.
    let client = |at: usize, account: usize| Client::new(&urls[at], Some(keys[at][account].clone()));
    for account in [0, 1] {
        deposit(&operators[0], account, "USD", "1000");
        deposit(&operators[1], account, "USD", "1000");
    }
    let mut name = 0;
    for round in 0..6 {
        for step in 0..12 {
            name += 1;
            let (from, account) = (step % 2, step / 2 % 2);
            let body = json!({"asset": "USD", "amount": format!("{}", 1 + step), "to_shard": 1 - from, "client_transfer_id": format!("{name}")});
            post(&client(from, account), "/v1/account/transfers", body);
        }
        // Whatever the transfer relays are at just now.
        let victim = round % 2;
        processes[victim].take().unwrap().kill();
        processes[victim] = Some(start(victim));
    }
    for from in [0, 1] {
        let shard = Client::new(&urls[from], None);
        until("all arrives", || in_transit(&shard, 1 - from) == 0);
    }
    let sum: u128 = [(0, 0), (0, 1), (1, 0), (1, 1)].iter().map(|(at, account)| owned(&client(*at, *account), "USD")).sum();
    assert_eq!(sum, 4_000 * 1_000_000);
    // Six of every twelve went each way.
    let views = urls.each_ref().map(|url| Client::new(url, None).get("/v1/shards").unwrap());
    for at in [0, 1] {
        let taken: u64 = views[at]["shards"][1 - at]["next_transfer_in"].as_str().unwrap().parse().unwrap();
        assert_eq!(taken - 1, 36, "{}", views[at]);
    }
    // Account 0 sends 1 + 5 + 9 from shard 0 and 2 + 6 + 10 from shard 1 in each of six rounds.
    assert_eq!(owned(&client(0, 0), "USD"), (1_000 + 6 * (18 - 15)) * 1_000_000);
    assert_eq!(owned(&client(1, 0), "USD"), (1_000 - 6 * (18 - 15)) * 1_000_000);
}

/// A transfer relay's key delivers transfers, and that is all.
#[test]
fn a_relays_key_delivers_transfers_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let (addresses, dirs) = (addresses(), dirs(root.path()));
    let node = Node::start(&dirs[1], &node_config(1, &addresses, &dirs)).unwrap();
    let url = format!("http://{}", addresses[1]);
    let operator = operator(&url, &dirs[1]);
    let keys = open(&operator, 1, &dirs[1]);
    let relay = operator.with_key(read_key(&relay_key_file(&dirs[1])).unwrap());
    let delivered = json!([{"transfer_seq": "1", "account_id": 0, "asset_id": 0, "amount_units": "7000000"}]);
    let body = json!({"from_shard": 0, "to_shard": 1, "transfers": delivered});
    assert_eq!(post(&relay, PATH, body.clone())["outcomes"], json!([{"transfer_seq": "1", "outcome": "taken"}]));
    let owner = operator.with_key(keys[0].clone());
    assert_eq!(owned(&owner, "USD"), 7_000_000);
    assert_eq!(code(owner.signed("POST", PATH, Some(&body))), FORBIDDEN, "who trades delivers nothing");
    for (method, path, body) in [
        ("POST", "/v1/admin/accounts", json!({})),
        ("POST", "/v1/admin/deposits", json!({"account_id": 0, "asset": "USD", "amount": "1", "transfer_id": "9"})),
        ("POST", "/v1/admin/keys", json!({"permissions": ["operator"]})),
        ("POST", "/v1/orders", limit("ETH-USD", 1, "buy", "0.5", "1000")),
        ("POST", "/v1/account/transfers", json!({"asset": "USD", "amount": "1", "to_shard": 0})),
    ] {
        assert_eq!(code(relay.signed(method, path, Some(&body))), FORBIDDEN, "{path}");
    }
    for path in ["/v1/account", "/v1/admin/keys"] {
        assert_eq!(code(relay.signed("GET", path, None)), FORBIDDEN, "{path}");
    }
    node.stop();
}

pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn stop(node: &mut Option<Node>) {
    if let Some(node) = node.take() {
        assert_eq!(node.stop(), None);
    }
}

/// One shard after the other comes back from a copy that is older than what it acknowledged. Both find it, and nothing more moves, so that no
/// number means two transfers; with its own state all goes on.
#[test]
fn a_shard_that_was_set_back_is_found_before_anything_more_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let (addresses, dirs) = (addresses(), dirs(root.path()));
    let configs = [0, 1].map(|own| node_config(own, &addresses, &dirs));
    let start = |own: usize| restart(walras_log_store::RealDisk, &dirs[own], &configs[own]);
    let mut nodes = [0, 1].map(|own| Some(start(own)));
    let urls = addresses.each_ref().map(|address| format!("http://{address}"));
    let operators = [0, 1].map(|own| operator(&urls[own], &dirs[own]));
    let keys = [0, 1].map(|own| open(&operators[own], own, &dirs[own]));
    // Anew each time: a connection does not outlive the node at its other end.
    let client = |at: usize| Client::new(&urls[at], Some(keys[at][0].clone()));
    let send = |from: usize, amount: &str| {
        let body = json!({"asset": "USD", "amount": amount, "to_shard": 1 - from});
        client(from).signed("POST", "/v1/account/transfers", Some(&body))
    };
    let set_back = |at: usize, who: &str| {
        let shards = client(at).get("/v1/shards").unwrap();
        let trouble = &shards["shards"][1 - at]["trouble"];
        trouble.as_str().is_some_and(|trouble| trouble.starts_with(&format!("{who} was set back")))
    };
    let sum = || [0, 1].map(|at| owned(&client(at), "USD")).iter().sum::<u128>();
    deposit(&operators[0], 0, "USD", "1000");
    deposit(&operators[1], 0, "USD", "1000");
    for victim in [0, 1] {
        let [copied, own] = ["copy", "own"].map(|name| root.path().join(format!("{name}-{victim}")));
        stop(&mut nodes[victim]);
        copy(&dirs[victim], &copied);
        nodes[victim] = Some(start(victim));
        for from in [0, 1] {
            until("the shard takes transfers", || send(from, "10").is_ok());
            until("it arrives", || in_transit(&client(from), 1 - from) == 0);
        }
        nodes.iter_mut().for_each(stop);
        std::fs::rename(&dirs[victim], &own).unwrap();
        std::fs::rename(&copied, &dirs[victim]).unwrap();
        nodes = [0, 1].map(|own| Some(start(own)));
        until("the one that was set back says so", || set_back(victim, "this shard"));
        until("the other says so", || set_back(1 - victim, "the other shard"));
        for from in [0, 1] {
            let refused = send(from, "5").unwrap_err().to_string();
            assert!(refused.contains("TransfersStopped") && refused.contains("was set back"), "{refused}");
        }
        // With what it had acknowledged it goes on.
        stop(&mut nodes[victim]);
        std::fs::rename(&dirs[victim], &copied).unwrap();
        std::fs::rename(&own, &dirs[victim]).unwrap();
        nodes[victim] = Some(start(victim));
        for from in [0, 1] {
            until("the shards agree", || send(from, "1").is_ok());
            until("it arrives", || in_transit(&client(from), 1 - from) == 0);
        }
        assert_eq!(sum(), 2_000 * 1_000_000);
    }
    nodes.iter_mut().for_each(stop);
}
