//! `kill -9` of a venue with an archive, under load, again and again: the archive is what it would be if nobody had been killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use walras_access::{Clock, now};
use walras_archive::{History, TradesQuery, verify_day};
use walras_client::{Client, ClientError};
use walras_gateway::ClientKey;
use walras_log_store::RealDisk;
use walras_node::node::Node;
use walras_types::{InstrumentId, TimeNs};
use walras_wait::until;
use walras_wire::{Event, OrderEvent};

use crate::history::{plain_market, with_archive};
use crate::recovery::Process;
use crate::shards::copy;
use crate::support::{entries_of_log, key, limit, operator, restart};

/// What a trade is known by: its entry, its number, price and size.
type Known = (u64, u64, i64, u64);

/// Sells and buys, each order against the one before, until the venue is gone: the numbers of the trades that were acknowledged.
fn trade_until_killed(url: &str, keys: &[ClientKey; 2], ids: &AtomicU64, count: &AtomicU64) -> Vec<u64> {
    let clients = keys.each_ref().map(|key| Client::new(url, Some(key.clone())));
    let mut acknowledged = Vec::new();
    loop {
        let id = ids.fetch_add(1, Ordering::Relaxed);
        for (client, side) in clients.iter().zip(["sell", "buy"]) {
            match client.signed("POST", "/v1/orders", Some(&limit(id, side, "0.1", "100.5"))) {
                Ok(answer) => {
                    let trades = answer["fills"].as_array().into_iter().flatten();
                    acknowledged.extend(trades.map(|fill| fill["trade_id"].as_str().unwrap().parse::<u64>().unwrap()));
                    count.store(acknowledged.len() as u64, Ordering::Relaxed);
                }
                Err(ClientError::Unreachable { .. }) => return acknowledged,
                Err(e) => panic!("{e}"),
            }
        }
    }
}

/// Every trade of the log, from its beginning.
fn trades_of_log(data: &Path) -> Vec<Known> {
    let (mut engine, mut events, mut trades) = (walras_engine::Engine::new(), Vec::new(), Vec::new());
    for entry in entries_of_log(data) {
        entry.apply(&mut engine, &mut events);
        for event in events.drain(..) {
            if let Event::Order(OrderEvent::Traded(t)) = event {
                trades.push((entry.log_index.0, t.trade_id.0, t.price.get(), t.size.get()));
            }
        }
    }
    trades
}

fn trades_of_archive(archive: &Path) -> Vec<Known> {
    let mut query = TradesQuery { instrument: InstrumentId(0), from: TimeNs(0), to: TimeNs(u64::MAX), limit: 1_000, after: None };
    let mut trades = Vec::new();
    loop {
        let page = History::new(archive).trades(&query).unwrap();
        trades.extend(page.trades.iter().map(|t| (t.log_index.0, t.trade_id.0, t.price.get(), t.size.get())));
        let Some(next) = page.next else { return trades };
        query.after = Some(next);
    }
}

/// Every journal of every day, without the lines that say where it was made durable: those depend on when that was.
fn journals(archive: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for day in std::fs::read_dir(archive).unwrap() {
        let day = day.unwrap();
        for name in ["trades.journal", "books.journal"] {
            let Ok(mut bytes) = std::fs::read(day.path().join(name)) else { continue };
            if name == "trades.journal" {
                let (header, lines) = bytes.split_at(64);
                bytes = header.iter().chain(lines.chunks(64).filter(|line| line[0] != 2).flatten()).copied().collect();
            }
            found.insert(format!("{}/{name}", day.file_name().display()), bytes);
        }
    }
    found
}

fn files(dir: &Path) -> BTreeMap<std::ffi::OsString, Vec<u8>> {
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name(), std::fs::read(entry.path()).unwrap())
    };
    std::fs::read_dir(dir).unwrap().map(file).collect()
}

#[test]
fn kill_9_under_load_leaves_the_archive_as_if_nobody_had_been_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (config, data, archive) = (with_archive(folder.path()), folder.path().join("data"), folder.path().join("archive"));
    // A market, and a day that is over when the venue starts again.
    let yesterday = TimeNs(now().0 - 86_400_000_000_000);
    let node = Node::start_on(RealDisk, Clock::new(move || yesterday), &data, &config).unwrap();
    for command in plain_market() {
        assert_eq!(node.venue().command_blocking(command).unwrap().rejected(), None, "{command:?}");
    }
    node.stop();
    let more = format!(
        "[archive]\nfolder = {:?}\nsnapshot_every_ms = 1\ndbn = true\n[log]\nsegment_bytes = 1048576\n",
        config.archive.folder
    );
    let mut keys = None;
    let mut closed = None;
    let (ids, mut acknowledged) = (AtomicU64::new(1_000), Vec::new());
    for round in 0..4 {
        let process = Process::start_with(&data, &more);
        let keys: &[ClientKey; 2] = keys.get_or_insert_with(|| {
            let operator = operator(&process.url, &data);
            [0, 1].map(|account| key(&operator, account, &["read", "trade"]))
        });
        let (url, count) = (process.url.clone(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let load = scope.spawn(|| trade_until_killed(&url, keys, &ids, &count));
            // Killed in the midst of trading; the first time when the day before is closed.
            let is_closed = || History::new(&archive).days().unwrap().first().is_some_and(|day| day.manifest.is_some());
            until("enough is traded", || {
                assert!(!load.is_finished(), "round {round}");
                count.load(Ordering::Relaxed) >= 20 + 15 * round && (round > 0 || is_closed())
            });
            process.kill();
            acknowledged.extend(load.join().unwrap());
        });
        closed.get_or_insert_with(|| {
            let day = History::new(&archive).days().unwrap()[0].day.to_string();
            (archive.join(&day), files(&archive.join(day)))
        });
    }
    // A stop lets the log go of what it has in snapshots.
    let (traded, copied) = (trades_of_log(&data), folder.path().join("copy"));
    copy(&data, &copied);
    let node = restart(RealDisk, &data, &config);
    let view = node.venue().archive().unwrap().view();
    assert_eq!((view.missing, view.trouble), (0, None));
    node.stop();
    let (dir, before) = closed.unwrap();
    assert!(files(&dir) == before, "a closed day is not touched");
    let manifest = verify_day(&dir).unwrap().manifest;
    assert_eq!((manifest.complete, manifest.trades), (true, 2));

    assert_eq!(trades_of_archive(&archive), traded);
    assert!(acknowledged.iter().all(|id| traded.iter().any(|trade| trade.1 == *id)), "what was acknowledged is there");
    assert!(acknowledged.len() >= 100, "{}", acknowledged.len());
    // As the log makes it from nothing.
    let mut afresh = config.clone();
    afresh.archive.folder = folder.path().join("afresh").to_str().unwrap().to_owned();
    restart(RealDisk, &copied, &afresh).stop();
    let (made, grown) = (journals(&folder.path().join("afresh")), journals(&archive));
    assert!(made.len() >= 4 && made.keys().eq(grown.keys()), "{:?} {:?}", made.keys(), grown.keys());
    for (name, bytes) in made {
        assert!(grown[&name] == bytes, "{name}");
    }
}
