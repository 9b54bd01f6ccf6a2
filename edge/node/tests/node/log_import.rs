//! Folders of an earlier version, in which a venue on one machine had a log of its own kind.

use std::path::Path;

use serde_json::json;
use walras_access::operator_key_file;
use walras_engine::Engine;
use walras_log_store::{LogOptions, LogWriter, RealDisk, SnapshotStore};
use walras_market_data::{Fills, MarketData};
use walras_node::node::Node;
use walras_replica::{Derived, FrozenState};
use walras_sequencer::{decode_entry, encode_entry};
use walras_testkit::plain;
use walras_types::{AccountId, LogIndex, Side, TimeNs};
use walras_wire::Command;

use crate::cli::Cli;
use crate::support::{config, entries_of_log, operator, restart};

/// A market with two accounts, and what trades in it.
fn commands() -> Vec<Command> {
    let sold = |id| [(0, Side::Sell), (1, Side::Buy)].map(|(account, side)| plain::order(account, id, side, 201, id));
    let rests = plain::order(0, 1_000, Side::Sell, 202, 7);
    plain::opening().into_iter().chain((1..=40).flat_map(sold)).chain([rests]).collect()
}

/// Writes such a folder: the log, and with `snapshot_at` a snapshot after that many entries. The state at its end.
fn old_folder(dir: &Path, snapshot_at: Option<usize>) -> Engine {
    let options = LogOptions { segment_bytes: 64 << 10, ..LogOptions::default() };
    let owner = options.owner_id;
    let (mut log, _) = LogWriter::open(RealDisk, &dir.join("log"), options).unwrap();
    let (mut engine, mut derived, mut events) = (Engine::new(), Derived::default(), Vec::new());
    for (place, command) in (1_u64..).zip(commands()) {
        let mut bytes = Vec::new();
        encode_entry(TimeNs(place * 1_000), None, &command, &mut bytes);
        log.append(&bytes).unwrap();
        let entry = decode_entry(LogIndex(place), &bytes).unwrap();
        events.clear();
        entry.apply(&mut engine, &mut events);
        derived.on_entry(&engine, &entry, &events, &mut Vec::new()).unwrap();
        if snapshot_at == Some(place as usize) {
            let mut store = SnapshotStore::open(RealDisk, &dir.join("snapshots"), owner).unwrap();
            let fills = fills_of_then(&engine, &derived.fills);
            let state = FrozenState::new(&mut engine, &mut derived.market, vec![Box::new(move |out| out.extend(fills))]);
            store.write(LogIndex(place), &state.encode()).unwrap();
        }
    }
    log.sync().unwrap();
    log.close().unwrap();
    assert!(derived.market.trade_count() >= 40, "{}", MarketData::trade_count(&derived.market));
    engine
}

/// As the earlier version wrote them: without their places.
fn fills_of_then(engine: &Engine, fills: &Fills) -> Vec<u8> {
    let (mut accounts, mut bytes) = (0_u32, Vec::new());
    for account in (0..engine.account_count()).map(AccountId) {
        let of_account: Vec<_> = fills.newest_first(account).collect();
        if !of_account.is_empty() {
            accounts += 1;
            bytes.extend([account.0.to_le_bytes(), (of_account.len() as u32).to_le_bytes()].concat());
            of_account.iter().rev().for_each(|(_, fill)| fill.encode_without_name(&mut bytes));
        }
    }
    [accounts.to_le_bytes().to_vec(), bytes].concat()
}

fn cli(dir: &Path) -> Cli {
    Cli { url: "http://127.0.0.1:9".into(), key_file: operator_key_file(dir) }
}

#[test]
fn an_old_folder_is_refused_imported_once_and_goes_on_where_it_was() {
    for snapshot_at in [None, Some(30), Some(commands().len())] {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let engine = old_folder(dir, snapshot_at);
        let refused = Node::start(dir, &config()).unwrap_err().to_string();
        assert!(refused.contains("walras log import"), "{refused}");

        let name = dir.to_str().unwrap();
        let done = cli(dir).json(&["log", "import", name]);
        let replayed = commands().len() - snapshot_at.unwrap_or(0);
        assert_eq!((&done["log_index"], &done["entries_replayed"]), (&json!(commands().len().to_string()), &json!(replayed)));
        for kept in ["log.imported", "snapshots.imported"] {
            assert_eq!(dir.join(kept).is_dir(), kept.starts_with("log") || snapshot_at.is_some(), "{kept}");
        }
        assert!(!dir.join("log").exists() && !dir.join("replica.importing").exists());

        let node = restart(RealDisk, dir, &config());
        assert_eq!((node.recovered().state_hash, node.recovered().entries_replayed), (engine.state_hash(), 0));
        let trades = node.venue().status().progress().trades_total;
        assert_eq!(trades, 40, "market data is there too");
        let client = operator(&format!("http://{}", node.address()), dir);
        client.signed("POST", "/v1/admin/accounts", Some(&json!({}))).unwrap();
        assert_eq!(node.stop(), None);
        let next = entries_of_log(dir)[0].log_index;
        assert_eq!(next, engine.last_applied().next(), "the log goes on where the old one ended");
        assert!(cli(dir).text(&["log", "audit", name]).contains("sound"));

        let (status, said) = cli(dir).fails(&["log", "import", name]);
        assert!(status == 4 && said.contains("needs no import"), "{status}: {said}");
    }
}

#[test]
fn what_can_not_be_imported_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, name) = (folder.path(), folder.path().to_str().unwrap());
    let (status, said) = cli(dir).fails(&["log", "import", name]);
    assert!(status == 4 && said.contains("holds no log of an earlier version"), "{status}: {said}");
    old_folder(dir, Some(30));
    let flip = |path: &Path, at: usize| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
    };
    let segment = dir.join("log/0000000000000001.seg");
    let symbol = std::fs::read(&segment).unwrap().windows(7).position(|window| window == b"BTC/USD").unwrap();
    flip(&segment, symbol);
    let (status, said) = cli(dir).fails(&["log", "import", name]);
    assert_eq!(status, 5, "{said}");
    assert!(dir.join("log").is_dir() && dir.join("snapshots").is_dir() && !dir.join("replica").exists());
    flip(&segment, symbol);
    // A damaged snapshot is said, and the log is replayed in its place.
    let mut snapshots = std::fs::read_dir(dir.join("snapshots")).unwrap().map(|file| file.unwrap().path());
    let snapshot = snapshots.find(|path| path.extension().is_some_and(|extension| extension == "snap")).unwrap();
    flip(&snapshot, std::fs::metadata(&snapshot).unwrap().len() as usize / 2);
    assert_eq!(cli(dir).json(&["log", "import", name])["entries_replayed"], commands().len());
}
