//! A cluster of one replica, in this process.

use serde_json::{Value, json};
use tempfile::TempDir;
use walras_access::Clock;
use walras_client::{Client, ClientError};
use walras_config::Config;
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use walras_node::node::Node;
use walras_types::RejectReason;
use walras_wait::{until, until_ok};

use crate::schema::{check_named, document};
use crate::support::{Market, Raw, config, limit, market, operator, restart};

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
    until("a cluster of one elects itself", || node.venue().cluster().view().is_taking);
}

/// A cluster of one with fair access, which holds each order until its delay is over.
pub(crate) fn one_with_fair_access() -> Config {
    let mut config = one();
    config.fair_access.sequencing = "300us".to_owned();
    config.fair_access.watermark_us = 0;
    config.fair_access.release = "100us".to_owned();
    config.fair_access.bound_us = 20;
    config.check().unwrap();
    config
}

/// A cluster of one that takes commands, its folder, and its market.
pub(crate) fn leading(config: &Config) -> (TempDir, Node, Market) {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), config).unwrap();
    wait_until_it_leads(&node);
    let market = market(&operator(&format!("http://{}", node.address()), dir.path()));
    (dir, node, market)
}

#[test]
fn a_cluster_of_one_is_a_venue_and_goes_on_where_it_stopped() {
    let config = one();
    let (dir, node, market) = leading(&config);
    market.order(&market.bob, &limit(1, "sell", "2", "30000"));
    let view = market.operator.get("/v1/cluster").unwrap();
    check_named(&document(), "ClusterView", &view);
    assert_eq!((view["role"].as_str(), view["replicas"][0]["member"].as_str()), (Some("leader"), Some("voter")));
    let kept = market.operator.signed("POST", "/v1/admin/snapshots", None).unwrap();
    assert_eq!(kept["log_index"], market.operator.get("/v1/status").unwrap()["log_index"]);
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

    // Nothing of it depends on the links.
    let node = restart(walras_log_store::RealDisk, dir.path(), &self::config());
    assert_eq!(node.venue().read_blocking(|view| view.engine.instruments().count()).unwrap(), 1);
    node.stop();
}

#[test]
fn with_fair_access_orders_over_http_are_held_like_the_others_and_the_figures_say_so() {
    let (_dir, node, market) = leading(&one_with_fair_access());
    let orders = 20;
    for id in 1..=orders {
        market.order(&market.bob, &limit(id, "sell", "2", "30000"));
    }
    // They are brought up to date now and then.
    let view = until_ok("all orders have left the hold", || {
        let view = market.operator.get("/v1/fair-access").unwrap();
        // A look may fall between an order's arrival and its leaving.
        let sequencer = &view["sequencer"];
        if sequencer["gateways"][0]["held"] == orders && sequencer["held"] == 0 { Ok(view) } else { Err(view) }
    });
    check_named(&document(), "FairAccessView", &view);
    let sequencer = &view["sequencer"];
    assert_eq!((sequencer["delay_ns"].as_u64(), sequencer["held"].as_u64()), (Some(300_000), Some(0)));
    assert!(sequencer["queueing_p50_ns"].as_u64().unwrap() >= 290_000, "within the histogram's precision: {view}");
    assert_eq!((view["is_sequencing"].as_bool(), view["clock"]["status"].as_str()), (Some(true), Some("good")));
    let release = &view["release"];
    assert_eq!((&sequencer["target_ppm"], &release["target_ppm"]), (&Value::Null, &Value::Null));
    assert_eq!((&view["clock"]["source"], &release["judged"]["outliers"]), (&json!("system"), &json!([])));
    assert_eq!(market.operator.get("/v1/status").unwrap()["fair_access"], true);
    let cluster = market.operator.get("/v1/cluster").unwrap();
    check_named(&document(), "ClusterView", &cluster);
    assert_eq!(cluster["sequencing_delay_ns"], 300_000);
    let url = format!("http://{}", node.address());
    let metrics = Raw { method: "GET", path: "/metrics", body: b"", key: None }.send(&url).text;
    for line in
        ["walras_sequencing_delay_ns 300000", "walras_clock_good 1", "walras_sequencing_gateway_held_total{gateway=\"1\"} 20"]
    {
        assert!(metrics.lines().any(|other| other == line), "{line}: {metrics}");
    }
    // Its owner sees where each order waited, and nobody else does.
    let (document, mut held_ns) = (document(), Vec::new());
    for id in 1..=orders {
        let order = market.bob.signed("GET", &format!("/v1/orders/BTC-USD/{id}"), None).unwrap();
        check_named(&document, "OrderState", &order);
        let of = |stage: &str| order["waits"][stage].as_u64().unwrap_or_else(|| panic!("{stage}: {order}"));
        held_ns.push(of("sequencer_ns"));
        assert_eq!((of("gateway_ns"), of("late_ns")), (0, 0), "it counts from when it is held");
        assert_eq!(of("sequencer_ns") + of("log_ns"), of("decided_ns"));
        assert_eq!(of("decided_ns") + of("report_ns"), of("total_ns"));
        let by_id = format!("/v1/orders/BTC-USD/{}?by=order_id", order["order_id"].as_str().unwrap());
        assert_eq!(market.bob.signed("GET", &by_id, None).unwrap()["waits"], order["waits"]);
        let refused = market.alice.signed("GET", &by_id, None).unwrap_err();
        assert!(refused.is(RejectReason::NotFound), "{refused}");
    }
    // Of d_s, which counts from an order's stamp, a thread that had to wait for a processor has slept a part: on a busy machine most have.
    held_ns.sort_unstable();
    assert!(held_ns[held_ns.len() * 9 / 10] >= 290_000, "they were held for d_s: {held_ns:?}");
    let reports = market.bob.signed("GET", "/v1/reports?after=0&limit=256", None).unwrap();
    check_named(&document, "Reports", &reports);
    let accepted = |report: &&Value| report["event"] == "accepted";
    let all = reports["reports"].as_array().unwrap();
    assert!(all.iter().all(|report| report.get("waits").is_some() == accepted(&report)), "{reports}");
    assert_eq!(all.iter().filter(accepted).count() as u64, orders);
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

/// A replica that is alone waits for its own watermark, which comes with the next round.
#[test]
fn with_watermarks_orders_leave_before_their_delay_is_over() {
    let mut config = one();
    config.fair_access.sequencing = "20ms".to_owned();
    config.fair_access.bound_us = 20;
    config.check().unwrap();
    let (_dir, node, market) = leading(&config);
    for id in 1..=20 {
        market.order(&market.bob, &limit(id, "sell", "2", "30000"));
    }
    until_ok("orders have left by watermarks", || {
        let view = market.operator.get("/v1/fair-access").unwrap();
        if view["sequencer"]["merged"].as_u64() >= Some(10) { Ok(()) } else { Err(view) }
    });
    let left_sooner = (1..=20).filter(|id| {
        let order = market.bob.signed("GET", &format!("/v1/orders/BTC-USD/{id}"), None).unwrap();
        order["waits"]["sequencer_ns"].as_u64().is_some_and(|held_ns| held_ns < 20_000_000)
    });
    assert!(left_sooner.count() >= 10, "their owner sees it too");
    assert_eq!(node.stop(), None);
}

#[test]
fn a_venue_without_a_word_of_clusters_is_one_and_takes_commands_as_soon_as_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let node = restart(walras_log_store::RealDisk, dir.path(), &config());
        assert!(node.venue().takes_commands(), "a start waits for that");
        let orders = node.order_entry_address().expect("it takes binary orders");
        assert!(std::net::TcpStream::connect(orders).is_ok());
        let client = operator(&format!("http://{}", node.address()), dir.path());
        let view = client.get("/v1/cluster").unwrap();
        check_named(&document(), "ClusterView", &view);
        let rows = view["replicas"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["replica"], &rows[0]["member"]), (1, &json!(1), &json!("voter")));
        assert_eq!((&rows[0]["http"], &rows[0]["order_entry"]), (&json!(node.address()), &json!(orders)));
        let refused = client.signed("POST", "/v1/admin/cluster/add", Some(&json!({"replica": 2}))).unwrap_err().to_string();
        assert!(refused.contains("cluster.peers") && refused.contains("reload"), "{refused}");
        assert_eq!(node.stop(), None);
    }
}

#[test]
fn the_founder_of_a_cluster_that_has_grown_does_not_begin_again_on_an_empty_folder() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = one();
    config.cluster.peers.push("2=127.0.0.1:1".to_owned());
    config.cluster.genesis = vec![1];
    config.check().unwrap();
    let refused = Node::start(dir.path(), &config).unwrap_err().to_string();
    assert!(refused.contains("start without cluster.peers") && refused.contains("walras cluster add"), "{refused}");
}

#[test]
fn a_folder_of_an_earlier_version_is_not_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("log")).unwrap();
    let refused = Node::start(dir.path(), &config()).unwrap_err().to_string();
    assert!(refused.contains("walras log import"), "{refused}");
}

/// A replica with a market on a simulated disk, and orders that rest there.
struct OnSimDisk {
    disk: SimDisk,
    dir: TempDir,
    config: Config,
    node: Node,
    market: Market,
}

impl OnSimDisk {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = one();
        config.log.segment_bytes = 64 << 10;
        let disk = SimDisk::new(1, SimDiskConfig::default());
        let node = Node::start_on(disk.clone(), Clock::system(), dir.path(), &config).unwrap();
        wait_until_it_leads(&node);
        let market = market(&operator(&format!("http://{}", node.address()), dir.path()));
        Self { disk, dir, config, node, market }
    }

    /// Places an order; why that was refused, and what more is known of it.
    fn order(&self, id: u64) -> Result<(), (u64, Option<String>)> {
        match self.market.alice.signed("POST", "/v1/orders", Some(&limit(id, "buy", "0.0001", "29000"))) {
            Ok(_) => Ok(()),
            Err(ClientError::Refused { status: 503, code, detail, .. }) => Err((code, detail)),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn storage(&self) -> Value {
        self.market.operator.get("/v1/status").unwrap()["storage"].clone()
    }

    fn wait_for_storage(&self, expected: &str) {
        until(&format!("storage is {expected}"), || self.storage() == expected);
    }

    /// Nothing more fits on the disk than what is there.
    fn fill(&self) {
        let used: u64 = self.disk.paths().iter().map(|path| self.disk.bytes_of(path).map_or(0, |bytes| bytes.len() as u64)).sum();
        self.disk.set_capacity(used);
    }

    /// Places orders from this one on until one is not answered; which.
    fn trade_until_refused(&self, from: u64) -> (u64, (u64, Option<String>)) {
        (from..from + 100_000).find_map(|id| self.order(id).err().map(|why| (id, why))).expect("one is refused at some point")
    }

    fn open_orders(&self) -> Vec<u64> {
        open_orders(&self.market.alice)
    }

    /// The power fails, and it is back. What was acknowledged is there.
    fn survive_a_power_failure(self, expected: &[u64]) {
        let hash = |node: &Node| node.venue().read_blocking(|view| view.engine.state_hash()).unwrap();
        let before = hash(&self.node);
        let after = self.disk.fork();
        after.crash();
        assert_eq!(self.node.stop(), None, "it never stopped by itself");
        let node = restart(after, self.dir.path(), &self.config);
        wait_until_it_leads(&node);
        assert_eq!(hash(&node), before);
        let alice = Client::new(&format!("http://{}", node.address()), Some(self.market.alice_key.clone()));
        assert_eq!(open_orders(&alice), expected);
        node.stop();
    }
}

fn open_orders(client: &Client) -> Vec<u64> {
    let all = client.signed("GET", "/v1/orders", None).unwrap();
    let ids = all["orders"].as_array().unwrap().iter().map(|order| order["client_order_id"].as_str().unwrap().parse().unwrap());
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    ids
}

const STORAGE_FULL: u64 = RejectReason::StorageFull.number() as u64;

#[test]
fn a_full_disk_stops_a_replica_from_promising_and_room_lets_it_go_on_without_a_restart() {
    let venue = OnSimDisk::start();
    venue.fill();
    let (in_doubt, (code, detail)) = venue.trade_until_refused(1);
    // It is with the consensus, which does not let go of it.
    let detail = detail.expect("the answer says that it is none");
    assert!(code == STORAGE_FULL && detail.contains("unknown") && detail.contains("/v1/orders"), "{code} {detail}");
    venue.wait_for_storage("full");
    for id in in_doubt + 1..in_doubt + 10 {
        assert_eq!(venue.order(id), Err((STORAGE_FULL, None)), "what comes later is refused with certainty");
    }
    let cancel_all = venue.market.alice.signed("DELETE", "/v1/orders", None);
    assert_eq!(crate::support::code(cancel_all), STORAGE_FULL);
    let probe = |path| Raw { method: "GET", path, body: b"", key: None }.send(&format!("http://{}", venue.node.address()));
    let unready = probe("/readyz");
    assert!(unready.status == 503 && unready.text.contains("free disk space"), "{}", unready.text);
    assert_eq!(probe("/healthz").status, 200);
    let mut expected: Vec<u64> = (1..in_doubt).collect();
    assert_eq!(venue.open_orders(), expected, "reading goes on, and shows what was acknowledged and no more");

    venue.disk.set_capacity(u64::MAX);
    venue.wait_for_storage("ok");
    assert_eq!(venue.order(999_999), Ok(()));
    assert_eq!(probe("/readyz").status, 200);
    expected.extend([in_doubt, 999_999]);
    assert_eq!(venue.open_orders(), expected, "the one in doubt took effect");
    venue.survive_a_power_failure(&expected);
}

#[test]
fn a_write_or_sync_that_fails_once_is_repeated_and_nobody_notices() {
    let venue = OnSimDisk::start();
    let mut expected = Vec::new();
    let faults = [
        SimFaults { sync_error_in: Some(0), ..SimFaults::default() },
        SimFaults { write_error_in: Some(0), ..SimFaults::default() },
        SimFaults { sync_error_in: Some(1), write_error_in: Some(2), ..SimFaults::default() },
    ];
    for (id, faults) in (1..).zip(faults) {
        // A moment after the answer: until then an order would be refused.
        venue.wait_for_storage("ok");
        venue.disk.set_faults(faults);
        assert_eq!(venue.order(id), Ok(()), "{faults:?}");
        expected.push(id);
    }
    venue.wait_for_storage("ok");
    venue.survive_a_power_failure(&expected);
}

#[test]
fn a_disk_that_is_gone_for_a_while_ends_no_replica() {
    let venue = OnSimDisk::start();
    venue.disk.set_faults(SimFaults { gone_in_ops: Some(0), ..SimFaults::default() });
    let (in_doubt, (code, _)) = venue.trade_until_refused(1);
    assert_eq!((in_doubt, code), (1, STORAGE_FULL));
    venue.wait_for_storage("full");
    assert_eq!(venue.order(2), Err((STORAGE_FULL, None)));
    venue.disk.set_faults(SimFaults::default());
    venue.wait_for_storage("ok");
    assert_eq!(venue.order(3), Ok(()));
    venue.survive_a_power_failure(&[1, 3]);
}

#[test]
fn without_descriptors_for_its_log_a_replica_refuses_as_overloaded() {
    let venue = OnSimDisk::start();
    // Snapshots, keys and sockets have theirs; the log's next segment has none.
    venue.disk.set_more_descriptors(Some(0));
    let (in_doubt, (code, detail)) = venue.trade_until_refused(1);
    let overloaded = u64::from(RejectReason::Overloaded.number());
    assert!(code == overloaded && detail.is_some_and(|detail| detail.contains("unknown")));
    venue.wait_for_storage("no_descriptors");
    assert_eq!(venue.order(in_doubt + 1), Err((overloaded, None)));
    venue.disk.set_more_descriptors(None);
    venue.wait_for_storage("ok");
    assert_eq!(venue.order(999_999), Ok(()));
    let expected: Vec<u64> = (1..=in_doubt).chain([999_999]).collect();
    assert_eq!(venue.open_orders(), expected);
    venue.survive_a_power_failure(&expected);
}
