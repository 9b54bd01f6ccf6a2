//! The demo: it trades, it stops, it goes on, and nothing in it grows.

use serde_json::Value;
use walras_config as config;
use walras_config::{Config, Demo as DemoConfig};
use walras_demo::Demo;
use walras_log_store::RealDisk;
use walras_node::node::Node;
use walras_ports::View;
use walras_types::{AccountId, BatchMarketId, BatchPhase, InstrumentId};
use walras_wait::{until, until_ok};
use walras_wire::{BatchMarketCommand, Command, SetBatchPhase};

use crate::support::{config, operator, restart};

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
    let target = status.progress().log_index.0 + commands;
    until("the demo trades", || status.progress().log_index.0 >= target);
}

#[test]
fn it_trades_stops_cleanly_and_goes_on() {
    let (dir, config) = (tempfile::tempdir().unwrap(), demo_config("max"));
    let node = Node::start(dir.path(), &config).unwrap();
    let demo = Demo::start(node.venue(), node.access(), dir.path(), &config.demo).unwrap();
    let key = demo.key().clone();
    run_for(&node, 20_000);
    assert!(node.venue().status().progress().trades_total > 100);
    assert!(node.venue().status().demo().is_some());
    demo.stop();
    let before = node.venue().status().progress().log_index;
    node.stop();

    let node = restart(RealDisk, dir.path(), &config);
    assert!(node.recovered().log_index >= before);
    let demo = Demo::start(node.venue(), node.access(), dir.path(), &config.demo).unwrap();
    assert_eq!(*demo.key(), key, "the page's key still works");
    run_for(&node, 5_000);
    demo.stop();
    node.stop();
}

#[test]
fn bots_stay_within_their_limits_and_funds_are_conserved() {
    let (dir, config) = (tempfile::tempdir().unwrap(), demo_config("max"));
    let node = Node::start(dir.path(), &config).unwrap();
    let demo = Demo::start(node.venue(), node.access(), dir.path(), &config.demo).unwrap();
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
    let demo = Demo::start(node.venue(), node.access(), dir.path(), &config.demo).unwrap();
    assert_eq!(phase(&node), Some((BatchPhase::Open, 10)), "the bots are not let in before");
    demo.stop();
    let close =
        Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market: BatchMarketId(0), phase: BatchPhase::Closed }));
    assert_eq!(node.venue().command_blocking(close).unwrap().rejected(), None);
    assert_eq!(phase(&node), Some((BatchPhase::Closed, 10)));
    let demo = Demo::start(node.venue(), node.access(), dir.path(), &config.demo).unwrap();
    assert_eq!(phase(&node), Some((BatchPhase::Open, 10)));
    demo.stop();
    node.stop();
}

#[test]
fn a_market_of_that_name_with_other_assets_is_not_traded_in() {
    let (dir, mut config) = (tempfile::tempdir().unwrap(), demo_config("1"));
    config.batch[0].assets.truncate(3);
    let node = Node::start(dir.path(), &config).unwrap();
    let refused = Demo::start(node.venue(), node.access(), dir.path(), &config.demo).map(Demo::stop).unwrap_err().to_string();
    assert!(refused.contains("main") && refused.contains("--data"), "{refused}");
    node.stop();
}

/// What each asset of the demo's batch market is worth in dollars, about: where its fair value begins.
const WORTH: [(&str, f64); 10] = [
    ("USD", 1.0),
    ("EUR", 1.08),
    ("GBP", 1.27),
    ("JPY", 0.0067),
    ("CHF", 1.13),
    ("CAD", 0.73),
    ("AUD", 0.66),
    ("BTC", 63_000.0),
    ("ETH", 3_100.0),
    ("XAU", 2_350.0),
];
/// Fair values wander by basis points in the seconds that this takes; nobody's limit is further from them than 35.
const BAND: f64 = 0.03;

#[test]
fn its_batch_market_trades_ten_assets_near_what_they_are_worth() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = demo_config("1");
    config.demo.batch_bots = 10;
    let node = Node::start(dir.path(), &config).unwrap();
    let demo = Demo::start(node.venue(), node.access(), dir.path(), &config.demo).unwrap();
    let client = operator(&format!("http://{}", node.address()), dir.path());
    let blocks = until_ok("three blocks have traded, one of them with all prices", || {
        let blocks = client.get("/v1/batches/main/blocks").unwrap()["blocks"].as_array().unwrap().clone();
        let traded: Vec<Value> = blocks.into_iter().filter(|block| block["offers_traded"] != 0).collect();
        let priced = |block: &Value| WORTH.iter().all(|(symbol, _)| block["prices"][symbol].is_string());
        if traded.len() >= 3 && traded.iter().any(priced) { Ok(traded) } else { Err(format!("{traded:#?}")) }
    });
    for block in &blocks {
        for (symbol, worth) in WORTH {
            let Some(price) = block["prices"][symbol].as_str() else { continue };
            let price: f64 = price.parse().unwrap();
            assert!((price / worth - 1.0).abs() < BAND, "{symbol} at {price}: {block:#}");
        }
        assert!(block["pairs_traded"].as_u64().unwrap() > 0, "{block:#}");
        let volume = |symbol: &str| block["volumes"][symbol].as_str().map_or(0.0, |text| text.parse::<f64>().unwrap());
        assert!(WORTH.iter().map(|(symbol, worth)| volume(symbol) * worth).sum::<f64>() > 0.0, "{block:#}");
    }
    demo.stop();
    node.venue().read_blocking(|view| view.engine.check_invariants()).unwrap();
    node.stop();
}
