//! The demo: it trades, it stops, it goes on, and nothing in it grows.

use std::time::Instant;

use walras_log_store::RealDisk;
use walras_node::config::{self, Config, Demo as DemoConfig};
use walras_node::demo::Demo;
use walras_node::node::Node;
use walras_node::runtime::View;
use walras_types::{AccountId, BatchMarketId, BatchPhase, InstrumentId};
use walras_wire::{Command, SetBatchPhase};

use crate::support::{PATIENCE, config, restart};

fn demo_config(speed: &str) -> Config {
    let mut config = config();
    config.demo = DemoConfig { speed: speed.into(), file: "synthetic".into(), bots: 2, seed: 7, batch_bots: 3 };
    Demo::configure(&mut config);
    config.check().unwrap();
    config
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
    let (dir, config) = (tempfile::tempdir().unwrap(), demo_config("max"));
    let node = Node::start(dir.path(), &config).unwrap();
    let demo = Demo::start(&node, dir.path(), &config.demo).unwrap();
    let key = demo.key().clone();
    run_for(&node, 20_000);
    assert!(node.venue().status().trades_total() > 100);
    assert!(node.venue().status().demo().is_some());
    demo.stop();
    let before = node.venue().status().log_index();
    node.stop();

    let node = restart(RealDisk, dir.path(), &config);
    assert!(node.recovered().log_index >= before);
    let demo = Demo::start(&node, dir.path(), &config.demo).unwrap();
    assert_eq!(*demo.key(), key, "the page's key still works");
    run_for(&node, 5_000);
    demo.stop();
    node.stop();
}

#[test]
fn bots_stay_within_their_limits_and_funds_are_conserved() {
    let (dir, config) = (tempfile::tempdir().unwrap(), demo_config("max"));
    let node = Node::start(dir.path(), &config).unwrap();
    let demo = Demo::start(&node, dir.path(), &config.demo).unwrap();
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

#[test]
fn the_batch_market_is_one_of_the_configuration_and_opens_again_when_the_demo_does() {
    let (dir, config) = (tempfile::tempdir().unwrap(), demo_config("1"));
    let declared: Vec<_> = config.batch.iter().map(|market| (market.name.as_str(), market.assets.len())).collect();
    assert_eq!(declared, [("main", 10)]);
    let mut of_users = config.clone();
    of_users.batch.push(config::Batch {
        name: "main".into(),
        assets: vec!["USD".into(), "EUR".into()],
        ..config::Batch::default()
    });
    assert!(of_users.check().unwrap_err().to_string().contains("rename one"));

    let node = Node::start(dir.path(), &config).unwrap();
    let phase = |node: &Node| {
        let of_first = |view: &View<'_>| view.engine.batch_markets().next().map(|market| (market.phase, market.assets.len()));
        node.venue().read_blocking(of_first).unwrap()
    };
    assert_eq!(phase(&node), None, "its assets are not there yet");
    let demo = Demo::start(&node, dir.path(), &config.demo).unwrap();
    assert_eq!(phase(&node), Some((BatchPhase::Open, 10)), "the bots are not let in before");
    demo.stop();
    let close = Command::SetBatchPhase(SetBatchPhase { market: BatchMarketId(0), phase: BatchPhase::Closed });
    assert_eq!(node.venue().command_blocking(close).unwrap().rejected(), None);
    assert_eq!(phase(&node), Some((BatchPhase::Closed, 10)));
    let demo = Demo::start(&node, dir.path(), &config.demo).unwrap();
    assert_eq!(phase(&node), Some((BatchPhase::Open, 10)));
    demo.stop();
    node.stop();
}

#[test]
fn a_market_of_that_name_with_other_assets_is_not_traded_in() {
    let (dir, mut config) = (tempfile::tempdir().unwrap(), demo_config("1"));
    config.batch[0].assets.truncate(3);
    let node = Node::start(dir.path(), &config).unwrap();
    let refused = Demo::start(&node, dir.path(), &config.demo).map(Demo::stop).unwrap_err().to_string();
    assert!(refused.contains("main") && refused.contains("--data"), "{refused}");
    node.stop();
}
