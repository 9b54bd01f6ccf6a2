//! The node's clock, as people and Prometheus see it.

use serde_json::Value;
use walras_node::node::{Node, NodeError};
use walras_wait::until_ok;

use crate::schema::{check_named, document};
use crate::support::{Raw, Venue, config};

fn get(venue: &Venue, path: &str) -> (u16, String) {
    let answer = Raw { method: "GET", path, body: b"", key: None }.send(&venue.url());
    (answer.status, answer.text)
}

#[test]
fn a_node_shows_its_clock_and_how_far_off_it_may_be() {
    let mut config = config();
    (config.clock.source, config.clock.declared_bound_us, config.clock.bound_max_us) = ("system".into(), 250, 1_000);
    let venue = Venue::with(&config);
    let (status, text) = get(&venue, "/v1/clock");
    assert_eq!(status, 200, "{text}");
    let clock: Value = serde_json::from_str(&text).unwrap();
    check_named(&document(), "Clock", &clock);
    assert_eq!((&clock["source"], &clock["bound_max_ns"]), (&"system".into(), &"1000000".into()));
    let metrics = get(&venue, "/metrics").1;
    assert!(metrics.contains("walras_clock_bound_max_seconds 0.001\n"), "{metrics}");
    assert!(metrics.contains("# TYPE walras_clock_status gauge\nwalras_clock_status "), "{metrics}");
    let source = venue.node().clock().unwrap();
    assert_eq!(source.bound_max_ns(), 1_000_000);
}

#[test]
fn a_node_without_a_clock_says_how_to_have_one() {
    let venue = Venue::start();
    let (status, text) = get(&venue, "/v1/clock");
    assert!(status == 404 && text.contains("clock.source"), "{text}");
    assert!(!get(&venue, "/metrics").1.contains("walras_clock"));
    assert!(venue.node().clock().is_none());
}

#[test]
fn a_mesh_of_two_nodes_shows_its_peers() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("mesh.key");
    std::fs::write(&key, [7; 32]).unwrap();
    // A port that was free a moment ago, and is free again.
    let ports = [0, 1].map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let nodes: Vec<String> = ports.iter().map(|socket| socket.local_addr().unwrap().to_string()).collect();
    drop(ports);
    let venues = [0, 1].map(|node| {
        let mut config = config();
        let clock = &mut config.clock;
        (clock.source, clock.mesh_nodes, clock.mesh_node) = ("mesh".into(), nodes.clone(), node);
        (clock.mesh_key, clock.mesh_window_ms) = (key.display().to_string(), 200);
        Venue::with(&config)
    });
    for venue in &venues {
        until_ok("the mesh has corrected the clocks", || {
            let clock: Value = serde_json::from_str(&get(venue, "/v1/clock").1).unwrap();
            check_named(&document(), "Clock", &clock);
            let is_corrected = clock["bound_ns"].is_string() && clock["mesh"]["peers"][0]["residual_ns"].is_string();
            if is_corrected { Ok(()) } else { Err(format!("{clock:#}")) }
        });
        assert!(get(venue, "/metrics").1.contains("walras_clock_mesh_residual_seconds{peer="));
    }
}

#[test]
fn a_clock_that_can_not_be_started_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config();
    (config.clock.source, config.clock.phc) = ("phc".into(), "/dev/no-such-ptp".into());
    config.clock.declared_bound_us = 1;
    let why = Node::start(folder.path(), &config).map(|_| ()).unwrap_err();
    assert!(matches!(why, NodeError::Clock(_)) && why.to_string().contains("ls /dev/ptp*"), "{why}");
}
