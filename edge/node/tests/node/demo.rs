//! The demo: it trades, it stops, it goes on, and nothing in it grows.

use std::time::Instant;

use walras_log_store::RealDisk;
use walras_node::config::Demo as DemoConfig;
use walras_node::demo::Demo;
use walras_node::node::Node;
use walras_types::{AccountId, InstrumentId};

use crate::support::{PATIENCE, config, restart};

fn demo_config(speed: &str) -> DemoConfig {
    DemoConfig { speed: speed.into(), file: "synthetic".into(), bots: 2, seed: 7, batch_bots: 3 }
}

/// Waits until the venue has applied so many commands more.
fn run_for(node: &Node, commands: u64) {
    let venue = node.venue();
    let status = venue.status();
    let (target, begun) = (status.log_index().0 + commands, Instant::now());
    while status.log_index().0 < target {
        assert!(begun.elapsed() < PATIENCE, "the demo does nothing");
        // A question waits for the engine's thread: this does not spin.
        venue.read_blocking(|_| ()).unwrap();
    }
}

#[test]
fn it_trades_stops_cleanly_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let demo = Demo::start(&node, dir.path(), &demo_config("max")).unwrap();
    let key = demo.key().clone();
    run_for(&node, 20_000);
    assert!(node.venue().status().trades_total() > 100);
    assert!(node.venue().status().demo().is_some());
    demo.stop();
    let before = node.venue().status().log_index();
    node.stop();

    let node = restart(RealDisk, dir.path(), &config());
    assert!(node.recovered().log_index >= before);
    let demo = Demo::start(&node, dir.path(), &demo_config("max")).unwrap();
    assert_eq!(*demo.key(), key, "the page's key still works");
    run_for(&node, 5_000);
    demo.stop();
    node.stop();
}

#[test]
fn bots_stay_within_their_limits_and_funds_are_conserved() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &config()).unwrap();
    let demo = Demo::start(&node, dir.path(), &demo_config("max")).unwrap();
    run_for(&node, 100_000);
    demo.stop();
    let venue = node.venue();
    let ok = venue.read_blocking(|view| {
        view.engine.check_invariants();
        view.market.check_invariants();
        let position = |account| view.engine.position(AccountId(account), InstrumentId(0));
        // Account 0 is the page's user, 1 to 8 the crowd, then the bots.
        let bots: Vec<_> = (9..11).map(position).collect();
        let crowd: i64 = (1..9).map(|account| position(account).net_lots).sum();
        let all: i64 = bots.iter().map(|p| p.net_lots).sum::<i64>() + crowd;
        (bots, all)
    });
    let (bots, all) = ok.unwrap();
    assert_eq!(all, 0, "what one bought another sold");
    for bot in bots {
        assert!(bot.net_lots.abs() <= 2_000 && bot.open_orders <= 8, "{bot:?}");
    }
    node.stop();
}
