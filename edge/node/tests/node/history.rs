//! The archive of a venue: what is traded is found later, whatever was stopped or killed in between.

use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use walras_access::Clock;
use walras_archive::verify_day;
use walras_client::Client;
use walras_config::Config;
use walras_log_store::RealDisk;
use walras_node::node::Node;
use walras_testkit::plain;
use walras_types::{Side, TimeNs};
use walras_wait::until_ok;
use walras_wire::{Command, VenueCommand};

use crate::replica::{one, wait_until_it_leads};
use crate::schema::{check_named, document};
use crate::support::{Market, Raw, Venue, config, limit, market, operator, restart, restart_by, spawn};

pub(crate) fn with_archive(dir: &std::path::Path) -> Config {
    let mut config = config();
    config.archive.folder = dir.join("archive").to_str().unwrap().to_owned();
    config.archive.snapshot_every_ms = 1;
    config.archive.dbn = true;
    // Tests ask again and again, some by a clock that stands.
    (config.throttle.source_requests_per_second, config.throttle.source_burst) = (1_000_000_000, 1_000_000_000);
    config
}

/// Asks until the answer is so: the archive is up to a second behind.
fn wait(client: &Client, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until_ok(path, || {
        let answer = client.get(path).unwrap();
        if is_so(&answer) { Ok(answer) } else { Err(answer) }
    })
}

fn trade(market: &Market, id: u64, price: &str) {
    market.order(&market.bob, &limit(id, "sell", "0.5", price));
    market.order(&market.alice, &limit(id, "buy", "0.5", price));
}

fn trades(client: &Client, query: &str, count: usize) -> Vec<Value> {
    let path = format!("/v1/history/trades?instrument=BTC-USD{query}");
    let answer = wait(client, &path, |answer| answer["trades"].as_array().unwrap().len() == count);
    check_named(&document(), "PastTrades", &answer);
    answer["trades"].as_array().unwrap().clone()
}

/// A market in which two lots of five, and then two more, are bought; a command a millisecond.
pub(crate) fn plain_market() -> Vec<Command> {
    let orders = [(0, 1, Side::Sell, 5), (1, 1, Side::Buy, 2), (1, 2, Side::Buy, 2)];
    let orders = orders.map(|(account, id, side, size)| plain::order(account, id, side, 201, size));
    plain::opening().into_iter().chain(orders).collect()
}

#[test]
fn what_was_traded_is_found_when_its_day_is_over() {
    // The venue's time is the test's: it begins a minute before midnight.
    let begin = 20_778 * 86_400_000_000_000_u64 - 60_000_000_000;
    let now = Arc::new(AtomicU64::new(begin));
    let clock = || {
        let now = Arc::clone(&now);
        Clock::new(move || TimeNs(now.load(Ordering::Relaxed)))
    };
    let folder = tempfile::tempdir().unwrap();
    let config = with_archive(folder.path());
    let data = folder.path().join("data");
    let node = Node::start_on(RealDisk, clock(), &data, &config).unwrap();
    let url = format!("http://{}", node.address());
    // Signed requests go by the venue's clock, so what a participant would send is given to the venue itself.
    let venue = node.venue();
    let commands = plain_market();
    for (at, command) in commands.iter().enumerate() {
        now.store(begin + at as u64 * 1_000_000, Ordering::Relaxed);
        assert_eq!(venue.command_blocking(*command).unwrap().rejected(), None, "{command:?}");
    }
    let client = Client::new(&url, None);
    let first = trades(&client, "", 2);
    assert_eq!((&first[0]["price"], &first[0]["size"], &first[0]["taker_side"]), (&json!("100.5"), &json!("0.002"), &json!("buy")));
    assert_eq!(trades(&client, &format!("&from={}", first[1]["time_ns"].as_str().unwrap()), 1), first[1..]);
    assert!(trades(&client, &format!("&to={}", first[0]["time_ns"].as_str().unwrap()), 0).is_empty());
    let page = client.get("/v1/history/trades?instrument=BTC/USD&limit=1").unwrap();
    let next = page["next"].as_str().unwrap();
    assert_eq!(trades(&client, &format!("&cursor={next}"), 1), first[1..]);
    let book = wait(&client, "/v1/history/books?instrument=BTC-USD", |book| book["asks"] == json!([["100.5", "0.001", 1]]));
    check_named(&document(), "PastBook", &book);
    let at = begin + 10_000_000;
    let before = client.get(&format!("/v1/history/books?instrument=BTC-USD&at={at}")).unwrap();
    assert_eq!((&before["asks"], before["time_ns"].as_str().unwrap().parse()), (&json!([["100.5", "0.005", 1]]), Ok(at)));

    // Midnight passes.
    now.store(begin + 60_000_000_000, Ordering::Relaxed);
    venue.command_blocking(Command::Venue(VenueCommand::Tick)).unwrap();
    let days = wait(&client, "/v1/history/days", |days| days["days"][0]["closed"] == json!(true));
    check_named(&document(), "PastDays", &days);
    let day = &days["days"][0];
    assert_eq!(
        (&day["day"], &day["complete"], &day["trades"], &day["first_log_index"]),
        (&json!("2026-11-20"), &json!(true), &json!(2), &json!("1"))
    );
    assert_eq!(trades(&client, "", 2), first);
    let verified = verify_day(&folder.path().join("archive/2026-11-20")).unwrap();
    for file in &verified.manifest.files {
        let path = format!("/v1/history/days/2026-11-20/{}", file.name);
        let mut answer = ureq::get(format!("{url}{path}")).call().unwrap();
        let on_disk = std::fs::read(folder.path().join("archive/2026-11-20").join(&file.name)).unwrap();
        assert!(answer.body_mut().read_to_vec().unwrap() == on_disk, "{path}");
    }
    for path in ["2026-11-20/lock", "2026-11-20/../lock", "2026-11-20/..%2Flock", "2026-11-21/trades.journal", "x/manifest.json"] {
        let answer = Raw { method: "GET", path: &format!("/v1/history/days/{path}"), body: b"", key: None }.send(&url);
        assert_eq!(answer.status, 404, "{path}");
    }
    let metrics = Raw { method: "GET", path: "/metrics", body: b"", key: None }.send(&url).text;
    assert!(
        metrics.contains("walras_archive_days_closed_total 1\n") && metrics.contains("walras_archive_in_trouble 0\n"),
        "{metrics}"
    );
    assert_eq!(
        client.get("/v1/history/trades?instrument=BTC-USD&cursor=x").map_err(|e| e.to_string().contains("cursor")),
        Err(true)
    );
    // The command line, beside the venue that runs.
    let run = |args: &[&str]| {
        let mut command = Process::new(env!("CARGO_BIN_EXE_walras"));
        command.arg("archive").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = spawn(&mut command).wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let archive = config.archive.folder.as_str();
    let (status, listed, _) = run(&["ls", archive, "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((status, &listed["days"][0], &listed["days"][1]["closed"]), (Some(0), day, &json!(false)));
    let (status, said, _) = run(&["verify", archive]);
    assert!(status == Some(0) && said.starts_with("sound: 1 closed days"), "{said}");
    let (status, csv, _) = run(&["export", archive, "--instrument", "BTC-USD", "--day", "2026-11-20"]);
    assert_eq!((status, csv.lines().count()), (Some(0), 3));
    assert!(csv.lines().nth(1).unwrap().ends_with(",13,1,buy,100.5,0.002,201,2"), "{csv}");
    let damaged = folder.path().join("archive/2026-11-20/trades.journal");
    let whole = std::fs::read(&damaged).unwrap();
    std::fs::write(&damaged, &whole[1..]).unwrap();
    let (status, _, said) = run(&["verify", archive, "--day", "2026-11-20"]);
    assert!(status == Some(5) && said.contains("trades.journal"), "{status:?} {said}");
    std::fs::write(&damaged, whole).unwrap();
    node.stop();

    // Another start goes on with the second day.
    let node = restart_by(clock(), RealDisk, &data, &config);
    let client = Client::new(&format!("http://{}", node.address()), None);
    assert_eq!(trades(&client, "", 2), first);
    node.stop();
}

#[test]
fn a_venue_whose_archive_was_begun_late_or_taken_away_has_what_its_log_has() {
    let mut venue = Venue::start();
    let first = venue.market();
    trade(&first, 1, "30000");
    venue.stop();
    // The stop wrote a snapshot of everything: the archive reads the log from its beginning.
    let config = with_archive(&venue.dir);
    let node = restart(RealDisk, &venue.dir, &config);
    assert_eq!(node.recovered().entries_replayed, 0);
    let url = format!("http://{}", node.address());
    let client = Client::new(&url, None);
    let found = trades(&client, "", 1);
    assert_eq!(found[0]["price"], "30000.00");
    let alice = operator(&url, &venue.dir).with_key(first.alice_key.clone());
    let bob = operator(&url, &venue.dir).with_key(first.bob_key.clone());
    let again =
        Market { operator: first.operator.clone(), alice, bob, alice_key: first.alice_key.clone(), bob_key: first.bob_key.clone() };
    trade(&again, 2, "30001");
    let both = trades(&client, "", 2);
    assert_eq!(both[..1], found);
    node.stop();
    std::fs::remove_dir_all(venue.dir.join("archive")).unwrap();
    let node = restart(RealDisk, &venue.dir, &config);
    let client = Client::new(&format!("http://{}", node.address()), None);
    assert_eq!(trades(&client, "", 2), both);
    let days = client.get("/v1/history/days").unwrap();
    assert_eq!((&days["missing"], &days["trouble"]), (&json!("0"), &json!(false)));
    node.stop();
}

#[test]
fn a_venue_starts_without_an_archive_that_can_not_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let config = with_archive(folder.path());
    std::fs::write(folder.path().join("archive"), b"a file where a folder should be").unwrap();
    let node = Node::start(&folder.path().join("data"), &config).unwrap();
    let url = format!("http://{}", node.address());
    trade(&market(&operator(&url, &folder.path().join("data"))), 1, "30000");
    let answer = Raw { method: "GET", path: "/v1/history/days", body: b"", key: None }.send(&url);
    assert_eq!((answer.status, answer.code()), (503, 110));
    let metrics = Raw { method: "GET", path: "/metrics", body: b"", key: None }.send(&url).text;
    assert!(metrics.contains("walras_archive_in_trouble 1\n"), "{metrics}");
    node.stop();
}

#[test]
fn a_replica_keeps_one_too() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut config = one();
    config.archive = with_archive(folder.path()).archive;
    config.log.snapshot_every_entries = 8;
    let node = Node::start(&data, &config).unwrap();
    wait_until_it_leads(&node);
    let url = format!("http://{}", node.address());
    let first = market(&operator(&url, &data));
    for id in 1..=20 {
        trade(&first, id, "30000");
    }
    let client = Client::new(&url, None);
    let found = trades(&client, "", 20);
    assert_eq!(node.stop(), None);
    // With what was archived, then without: the log still has it.
    for is_gone in [false, true] {
        if is_gone {
            std::fs::remove_dir_all(folder.path().join("archive")).unwrap();
        }
        let node = restart(RealDisk, &data, &config);
        let client = Client::new(&format!("http://{}", node.address()), None);
        assert_eq!(trades(&client, "", 20), found);
        assert_eq!(client.get("/v1/history/days").unwrap()["missing"], "0");
        assert_eq!(node.stop(), None);
    }
}
