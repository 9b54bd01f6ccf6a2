//! A cluster of one replica, in this process.

use serde_json::{Value, json};
use walras_access::Clock;
use walras_client::Client;
use walras_config::Config;
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig};
use walras_node::node::Node;

use crate::schema::{check_named, document};
use crate::support::{PATIENCE, Raw, config, limit, market, operator, restart};

/// A cluster of one, on a port that was free a moment ago.
pub(crate) fn one() -> Config {
    let mut config = config();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    config.cluster.replica = 1;
    config.cluster.insecure_loopback = true;
    config.cluster.peers = vec![format!("1={port}")];
    config.cluster.listen = port.to_string();
    config.order_entry.listen = "127.0.0.1:0".to_owned();
    config.check().unwrap();
    config
}

pub(crate) fn wait_until_it_leads(node: &Node) {
    let begun = std::time::Instant::now();
    while !node.venue().cluster().unwrap().view().is_taking {
        assert!(begun.elapsed() < PATIENCE, "a cluster of one elects itself");
        std::thread::yield_now();
    }
}

#[test]
fn a_cluster_of_one_is_a_venue_and_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let config = one();
    let node = Node::start(dir.path(), &config).unwrap();
    wait_until_it_leads(&node);
    let url = format!("http://{}", node.address());
    let market = market(&operator(&url, dir.path()));
    market.order(&market.bob, &limit(1, "sell", "2", "30000"));
    let view = market.operator.get("/v1/cluster").unwrap();
    check_named(&document(), "ClusterView", &view);
    assert_eq!((view["role"].as_str(), view["replicas"][0]["member"].as_str()), (Some("leader"), Some("voter")));
    let refused = market.operator.signed("POST", "/v1/admin/snapshots", None).unwrap_err();
    assert!(refused.to_string().contains("NotInACluster"), "{refused}");
    for (what, body) in [("transfer", json!({"replica": 7})), ("add", json!({"replica": 7, "learner": true}))] {
        market.operator.signed("POST", &format!("/v1/admin/cluster/{what}"), Some(&body)).unwrap_err();
    }
    assert_eq!(node.stop(), None);

    let node = restart(walras_log_store::RealDisk, dir.path(), &config);
    wait_until_it_leads(&node);
    let url = format!("http://{}", node.address());
    let book = operator(&url, dir.path()).get("/v1/instruments/BTC-USD/book").unwrap();
    assert_eq!(book["asks"], json!([["30000.00", "2.0000", 1]]));
    node.stop();

    let mut alone = config.clone();
    alone.cluster.replica = 0;
    alone.order_entry.listen.clear();
    let refused = Node::start(dir.path(), &alone).unwrap_err().to_string();
    assert!(refused.contains("holds a replica of a cluster"), "{refused}");
}

#[test]
fn with_fair_access_orders_over_http_are_held_like_the_others_and_the_figures_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = one();
    config.fair_access.sequencing = "300us".to_owned();
    config.fair_access.release = "100us".to_owned();
    config.fair_access.bound_us = 20;
    config.check().unwrap();
    let node = Node::start(dir.path(), &config).unwrap();
    wait_until_it_leads(&node);
    let url = format!("http://{}", node.address());
    let market = market(&operator(&url, dir.path()));
    let orders = 20;
    for id in 1..=orders {
        market.order(&market.bob, &limit(id, "sell", "2", "30000"));
    }
    // They are brought up to date now and then.
    let begun = std::time::Instant::now();
    let view = loop {
        let view = market.operator.get("/v1/fair-access").unwrap();
        // A look may fall between an order's arrival and its leaving.
        let sequencer = &view["sequencer"];
        if sequencer["gateways"][0]["held"] == orders && sequencer["held"] == 0 {
            break view;
        }
        assert!(begun.elapsed() < PATIENCE, "{view}");
        std::thread::yield_now();
    };
    check_named(&document(), "FairAccessView", &view);
    let sequencer = &view["sequencer"];
    assert_eq!((sequencer["delay_ns"].as_u64(), sequencer["held"].as_u64()), (Some(300_000), Some(0)));
    assert!(sequencer["queueing_p50_ns"].as_u64().unwrap() >= 290_000, "within the histogram's precision: {view}");
    assert_eq!((view["is_sequencing"].as_bool(), view["clock"]["status"].as_str()), (Some(true), Some("good")));
    let release = &view["release"];
    assert_eq!((&sequencer["target_ppm"], &release["target_ppm"]), (&Value::Null, &Value::Null));
    assert_eq!((&view["clock"]["source"], &release["judged"]["strays"]), (&json!("system"), &json!([])));
    assert_eq!(market.operator.get("/v1/status").unwrap()["fair_access"], true);
    let cluster = market.operator.get("/v1/cluster").unwrap();
    check_named(&document(), "ClusterView", &cluster);
    assert_eq!(cluster["sequencing_delay_ns"], 300_000);
    let metrics = Raw { method: "GET", path: "/metrics", body: b"", key: None }.send(&url).text;
    for line in
        ["walras_sequencing_delay_ns 300000", "walras_clock_good 1", "walras_sequencing_gateway_held_total{gateway=\"1\"} 20"]
    {
        assert!(metrics.lines().any(|other| other == line), "{line}: {metrics}");
    }
    // What is shown is measured: no figure of the view is missing there.
    for (section, prefix) in [("gateway", "walras_gateway"), ("sequencer", "walras_sequencing")] {
        let figures = view[section].as_object().unwrap().iter().filter(|(name, value)| value.is_u64() && *name != "leader");
        let names: Vec<&String> = figures.map(|(name, _)| name).collect();
        assert!(names.len() >= 8, "{names:?}");
        for name in names {
            let is_it = |line: &str| {
                [format!("{prefix}_{name} "), format!("{prefix}_{name}_total ")].iter().any(|metric| line.starts_with(metric))
            };
            assert!(metrics.lines().any(is_it), "{prefix}_{name}: {metrics}");
        }
    }
    assert_eq!(node.stop(), None);
}

#[test]
fn a_venue_of_one_machine_does_not_become_a_replica_by_accident() {
    let dir = tempfile::tempdir().unwrap();
    Node::start(dir.path(), &config()).unwrap().stop();
    let refused = Node::start(dir.path(), &one()).unwrap_err().to_string();
    assert!(refused.contains("holds a venue of one machine"), "{refused}");
}

#[test]
fn a_full_disk_stops_a_replica_and_room_lets_it_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = one();
    config.log.segment_bytes = 64 << 10;
    let disk = SimDisk::new(1, SimDiskConfig::default());
    let node = Node::start_on(disk.clone(), Clock::system(), dir.path(), &config).unwrap();
    wait_until_it_leads(&node);
    let market = market(&operator(&format!("http://{}", node.address()), dir.path()));
    let used: u64 = disk.paths().iter().map(|path| disk.bytes_of(path).map_or(0, |bytes| bytes.len() as u64)).sum();
    disk.set_capacity(used);
    let order = |id| market.alice.signed("POST", "/v1/orders", Some(&limit(id, "buy", "0.0001", "29000")));
    // The one that met the full disk may be there, since nobody could say.
    let in_doubt = (1..100_000).find(|id| order(*id).is_err()).expect("the disk is full at some point");
    let why = node.stop().expect("it had stopped by itself");
    assert!(why.contains("no space left") && why.contains("free space") && why.contains("the other replicas go on"), "{why}");

    disk.kill();
    disk.set_capacity(u64::MAX);
    let node = restart(disk, dir.path(), &config);
    wait_until_it_leads(&node);
    let alice = Client::new(&format!("http://{}", node.address()), Some(market.alice_key.clone()));
    let all = alice.signed("GET", "/v1/orders", None).unwrap();
    let ids = all["orders"].as_array().unwrap().iter().map(|order| order["client_order_id"].as_str().unwrap().parse().unwrap());
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(1..in_doubt) || ids.iter().copied().eq(1..=in_doubt), "{in_doubt}: {ids:?}");
    node.stop();
}
