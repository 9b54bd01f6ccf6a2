//! A full disk: nothing is acknowledged, nothing acknowledged is lost, and the venue goes on when there is room again.

use serde_json::json;
use walras_access::Clock;
use walras_client::{Client, ClientError};
use walras_log_store::sim_disk::{SimDisk, SimDiskConfig, SimFaults};
use walras_node::node::Node;
use walras_types::RejectReason as R;

use crate::support::{Raw, code, config, limit, market, operator, restart, until};

#[test]
fn a_full_disk_stops_acknowledging_and_room_lets_it_go_on() {
    let mut config = config();
    config.log.segment_bytes = 64 << 10;
    let disk = SimDisk::new(1, SimDiskConfig::default());
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start_on(disk.clone(), Clock::system(), dir.path(), &config).unwrap();
    let url = format!("http://{}", node.address());
    let market = market(&operator(&url, dir.path()));

    // What is there is what fits.
    let used: u64 = disk.paths().iter().map(|path| disk.bytes_of(path).map_or(0, |bytes| bytes.len() as u64)).sum();
    disk.set_capacity(used);
    let mut acknowledged = Vec::new();
    let order = |id| market.alice.signed("POST", "/v1/orders", Some(&limit(id, "buy", "0.0001", "29000")));
    let (in_doubt, why) = (1..100_000)
        .find_map(|id| match order(id) {
            Ok(_) => {
                acknowledged.push(id);
                None
            }
            refusal => Some((id, refusal)),
        })
        .expect("the disk is full at some point");
    // It was handed to the log before that was known; those after it are refused.
    let why = why.unwrap_err();
    assert!(why.is(R::StorageFull) && why.to_string().contains("unknown"), "{why}");
    assert_eq!(code(order(500_000)), u64::from(R::StorageFull.number()));
    let status = market.operator.get("/v1/status").unwrap();
    assert_eq!((&status["storage"], &status["ready"]), (&json!("full"), &json!(true)));
    assert_eq!(code(market.alice.signed("DELETE", "/v1/orders", None)), u64::from(R::StorageFull.number()));
    let probe = |path| Raw { method: "GET", path, body: b"", key: None }.send(&url);
    let unready = probe("/readyz");
    assert!(unready.status == 503 && unready.text.contains("free disk space"), "{}", unready.text);
    assert_eq!((probe("/healthz").status, probe("/healthz").text), (200, "ok\n".to_owned()));
    let orders = |client: &Client| {
        let all = client.signed("GET", "/v1/orders", None).unwrap();
        let ids = all["orders"].as_array().unwrap().iter().map(|o| o["client_order_id"].as_str().unwrap().parse::<u64>().unwrap());
        let mut ids: Vec<u64> = ids.collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(orders(&market.alice), acknowledged, "reading goes on, and shows what was acknowledged and no more");

    disk.set_capacity(u64::MAX);
    until("it takes orders again", || order(999_999).is_ok());
    assert_eq!(market.operator.get("/v1/status").unwrap()["storage"], "ok");
    assert_eq!(probe("/readyz").status, 200);
    // The one without an outcome was not forgotten.
    acknowledged.extend([in_doubt, 999_999]);
    assert_eq!(orders(&market.alice), acknowledged);

    // The power fails; what was acknowledged is there again, and what was refused is not.
    let hash = node.venue().read_blocking(|view| view.engine.state_hash()).unwrap();
    let after_power_cut = disk.fork();
    after_power_cut.crash();
    node.stop();
    let node = restart(after_power_cut, dir.path(), &config);
    assert_eq!(node.recovered().state_hash, hash);
    let url = format!("http://{}", node.address());
    let alice = Client::new(&url, Some(market.alice_key.clone()));
    assert_eq!(orders(&alice), acknowledged);
    node.stop();
}

#[test]
fn a_command_that_a_crash_can_bring_back_is_not_called_refused() {
    let config = config();
    let disk = SimDisk::new(1, SimDiskConfig::default());
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start_on(disk.clone(), Clock::system(), dir.path(), &config).unwrap();
    let market = market(&operator(&format!("http://{}", node.address()), dir.path()));
    market.order(&market.alice, &limit(1, "buy", "0.0001", "29000"));

    // The next batch's bytes are written; the device is gone when they are to be synced, and stays away.
    disk.set_faults(SimFaults { crash_in_ops: Some(1), ..SimFaults::default() });
    let answer = |id| match market.alice.signed("POST", "/v1/orders", Some(&limit(id, "buy", "0.0001", "29000"))) {
        Err(ClientError::Refused { status, code, detail, .. }) => (status, code, detail),
        other => panic!("expected a refusal, got {other:?}"),
    };
    let (status, code, detail) = answer(2);
    assert!(disk.is_off());
    assert_eq!((status, code), (503, u64::from(R::StorageFull.number())));
    let detail = detail.expect("the answer says that it is none");
    assert!(detail.contains("unknown") && detail.contains("/v1/orders") && detail.contains("client_order_id"), "{detail}");
    // What comes later was never written: it is refused with certainty.
    assert_eq!(answer(3), (503, u64::from(R::StorageFull.number()), None));
    assert_eq!(market.operator.get("/v1/status").unwrap()["storage"], "full");

    // The process ends before the log was opened again, and the disk has what it was given.
    let after = disk.fork();
    after.kill();
    node.stop();
    let node = restart(after, dir.path(), &config);
    let alice = Client::new(&format!("http://{}", node.address()), Some(market.alice_key.clone()));
    let open = alice.signed("GET", "/v1/orders", None).unwrap();
    let mut ids: Vec<_> = open["orders"].as_array().unwrap().iter().map(|o| o["client_order_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["1", "2"], "the one in doubt took effect; the one that was refused did not");
    node.stop();
}
