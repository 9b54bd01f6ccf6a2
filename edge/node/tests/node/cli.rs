//! The command line as people and scripts use it: what it prints and how it exits.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use walras_access::operator_key_file;

use crate::support::{Venue, config, restart, spawn};

pub(crate) struct Cli {
    pub(crate) url: String,
    pub(crate) key_file: std::path::PathBuf,
}

impl Cli {
    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_walras"));
        command.args(args).env("WALRAS_URL", &self.url).env("WALRAS_KEY_FILE", &self.key_file);
        spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())).wait_with_output().unwrap()
    }

    /// Runs what should work; its output as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs what should fail; its exit status and what it said.
    pub(crate) fn fails(&self, args: &[&str]) -> (i32, String) {
        let output = self.run(args);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn a_market_is_made_and_traded_on_from_the_command_line() {
    let mut venue = Venue::start();
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    operator.text(&["admin", "asset", "BTC", "8"]);
    operator.text(&["admin", "asset", "USD", "6"]);
    let instrument = ["admin", "instrument", "BTC/USD", "BTC", "USD", "--tick-size", "0.25", "--lot-size", "0.0001"];
    operator.text(&[&instrument[..], &["--reference-price", "30000", "--maker-fee-ppm", "-10", "--taker-fee-ppm", "20"]].concat());
    operator.text(&["admin", "phase", "BTC/USD", "continuous"]);
    let traders = [0, 1].map(|account| {
        assert_eq!(operator.json(&["admin", "account"])["account_id"], account);
        let id = account.to_string();
        operator.text(&["admin", "deposit", &id, "USD", "100000"]);
        operator.text(&["admin", "deposit", &id, "BTC", "10"]);
        let key_file = venue.dir.join(format!("trader-{account}.key"));
        operator.text(&["admin", "key", "--account", &id, "--out", key_file.to_str().unwrap()]);
        Cli { url: venue.url(), key_file }
    });
    let [alice, bob] = traders;
    let asked = alice.json(&["order", "sell", "BTC/USD", "1", "--price", "30000", "--id", "7", "--iceberg", "0.25"]);
    assert_eq!(asked["status"], "resting");
    assert!(alice.text(&["book", "BTC-USD"]).contains("30000.00"));
    let bought = bob.text(&["order", "buy", "BTC/USD", "0.5"]);
    assert!(bought.contains("filled") && bought.contains("0.2500"), "{bought}");
    assert!(bob.text(&["trades", "BTC/USD"]).lines().count() == 3, "a head and two trades");
    assert_eq!(alice.json(&["amend", "BTC/USD", "7", "--size", "0.1"])["open"], "0.1000");
    assert!(alice.text(&["account", "orders"]).contains("0.1000"));
    assert!(alice.text(&["account", "fills"]).contains("maker"));
    assert_eq!(alice.json(&["account", "fills", "--instrument", "BTC/USD", "--limit", "1"])["fills"].as_array().unwrap().len(), 1);
    assert_eq!(bob.json(&["account", "closed", "--instrument", "BTC-USD"])["orders"].as_array().unwrap().len(), 1);
    let (status, said) = bob.fails(&["account", "closed", "--instrument", "ETH/USD"]);
    assert!(status == 1 && said.contains("UnknownInstrument"), "{said}");
    assert!(alice.text(&["account"]).contains("USD"));
    let shards = alice.text(&["shards"]);
    assert!(shards.contains("0 (own)") && shards.contains("BTC/USD"), "{shards}");
    assert!(alice.text(&["account", "transfers"]).contains("(none)"));
    let (status, said) = alice.fails(&["account", "transfer", "USD", "1", "--to-shard", "1"]);
    assert!(status == 1 && said.contains("UnknownShard"), "{said}");
    assert_eq!(alice.json(&["cancel", "BTC/USD", "7"])["status"], "cancelled");
    assert_eq!(alice.json(&["cancel", "--all"])["cancelled"].as_array().unwrap().len(), 0);
    assert!(operator.text(&["admin", "show", "1"]).contains("0.5000"));
    assert!(operator.text(&["admin", "keys"]).contains("operator"));
    assert!(operator.text(&["instruments"]).contains("BTC/USD"));
    assert!(operator.json(&["admin", "snapshot"])["log_index"].is_string());

    let (status, said) = alice.fails(&["cancel", "BTC/USD", "7"]);
    assert_eq!(status, 1);
    assert!(said.contains("UnknownOrder (4)"), "{said}");
    let (status, said) = alice.fails(&["order", "buy", "BTC/USD", "0.00001"]);
    assert_eq!(status, 1);
    assert!(said.contains("SizeNotOnLot (114)") && said.contains("0.0001"), "{said}");
    venue.stop();
    let (status, said) = alice.fails(&["book", "BTC-USD"]);
    assert_eq!(status, 3);
    assert!(said.contains("--url"), "{said}");
}

#[test]
fn a_key_that_its_holder_made_is_registered_and_signs() {
    let venue = Venue::start();
    let market = venue.market();
    drop(market);
    let operator = Cli { url: venue.url(), key_file: operator_key_file(&venue.dir) };
    let key_file = venue.dir.join("mine.key");
    let made = operator.json(&["keys", "new", "--out", key_file.to_str().unwrap()]);
    let (id, public) = (made["key_id"].as_str().unwrap(), made["public_key"].as_str().unwrap());
    operator.text(&["admin", "key", "--account", "0", "--key-id", id, "--public-key", public]);
    let mine = Cli { url: venue.url(), key_file };
    assert_eq!(mine.json(&["account"])["account_id"], 0);
    operator.text(&["admin", "revoke", id]);
    assert_eq!(mine.fails(&["account"]).0, 1);
}

#[test]
fn of_several_addresses_the_first_that_answers_is_asked() {
    let venue = Venue::start();
    let market = venue.market();
    drop(market);
    // Nobody listens on port 1.
    let at = |url: String| Cli { url, key_file: operator_key_file(&venue.dir) };
    let several = at(format!("http://127.0.0.1:1, {}", venue.url()));
    assert_eq!(several.json(&["instruments"])["instruments"][0]["symbol"], "BTC/USD");
    assert_eq!(several.json(&["admin", "accounts"])["count"], 2);
    assert_eq!(several.json(&["admin", "show", "1"])["limits"][0]["limits"]["position_max"], Value::Null);
    // A number of one's own, and then the next.
    several.text(&["admin", "deposit", "0", "USD", "1", "--id", "77"]);
    several.text(&["admin", "withdraw", "0", "USD", "1"]);
    assert_eq!(several.json(&["admin", "show", "0"])["last_transfer_id"], "78");
    assert!(several.text(&["admin", "fees"]).contains("USD"));
    assert_eq!(several.json(&["admin", "fees", "0", "USD"])["asset"], "USD");
    let (status, said) = at("http://127.0.0.1:1,http://127.0.0.1:2".to_owned()).fails(&["status"]);
    assert!(status == 3 && said.contains("http://127.0.0.1:2"), "{status}: {said}");
}

#[test]
fn the_log_is_dumped_and_verified_while_the_venue_runs_and_afterwards() {
    let mut venue = Venue::start();
    venue.market();
    let dir = venue.dir.clone();
    let cli = Cli { url: venue.url(), key_file: operator_key_file(&dir) };
    assert!(cli.text(&["log", "verify", dir.to_str().unwrap()]).starts_with("sound: "));
    // The market was made with the operator's key, and the log says so.
    let key = walras_client::read_key(&cli.key_file).unwrap().key_id().to_string();
    let dump = cli.text(&["log", "dump", dir.to_str().unwrap(), "--from", "5"]);
    assert!(dump.contains(&format!(" {key} ")) && dump.contains("asset=USD (asset_id 1)"), "{dump}");
    let lines = cli.text(&["log", "dump", dir.to_str().unwrap(), "--json", "--from", "2", "--limit", "1"]);
    assert_eq!(serde_json::from_str::<Value>(&lines).unwrap()["key_id"], key);
    venue.stop();
    assert!(cli.text(&["log", "verify", dir.to_str().unwrap()]).starts_with("sound: "));
    let dump = cli.text(&["log", "dump", dir.to_str().unwrap(), "--limit", "3"]);
    assert_eq!(dump.lines().count(), 3);
    assert!(dump.starts_with("1 ") && dump.contains("set_engine_version") && dump.contains("create_asset"), "{dump}");
    let lines = cli.text(&["log", "dump", dir.to_str().unwrap(), "--json"]);
    let entries: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (place, entry) in (1..).zip(&entries) {
        assert_eq!(entry["log_index"], place);
        assert!(entry["time_ns"].as_str().unwrap().parse::<u64>().unwrap() > 0, "nanoseconds since 1970 are beyond 2^53");
    }
    assert_eq!((&entries[0]["command"]["kind"], &entries[0]["key_id"]), (&"set_engine_version".into(), &Value::Null));
    assert_eq!((&entries[1]["command"]["kind"], &entries[1]["command"]["symbol"]), (&"create_asset".into(), &"BTC".into()));
    assert!(entries.iter().any(|entry| entry["command"]["kind"] == "deposit" && entry["command"]["account_id"] == 1));
    // A bit of an entry in the middle of the log turns over.
    let segment = dir.join("replica/log/0000000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let symbol = bytes.windows(7).position(|window| window == b"BTC/USD").unwrap();
    bytes[symbol] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    assert_eq!(cli.fails(&["log", "verify", dir.to_str().unwrap()]).0, 5);
    let (status, said) = cli.fails(&["serve", "--data", dir.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert_eq!(status, 5, "no venue starts on it, and a service manager does not try again: {said}");
    assert!(said.contains("is damaged at byte") && said.contains("restore it from a backup"), "{said}");
}

/// Memory that any replay may take.
const REPLAY_KIB_MAX: u64 = 256 << 10;

#[test]
fn a_replay_takes_bounded_memory_and_names_the_instruments_of_its_file() {
    use walras_market_history::itch::{ItchBody, ItchHeader, ItchMessage, ItchWriter};
    use walras_market_history::lobster::{LevelCut, LobsterReader, LobsterWriter};
    use walras_market_history::synthetic::{SyntheticConfig, write_lobster};
    use walras_types::Side;
    let cli = Cli { url: "http://127.0.0.1:9".into(), key_file: "no-such.key".into() };
    let dir = tempfile::tempdir().unwrap();
    // A file of one level, whose orders mostly go without a line: a copy of the book for each disagreement took gigabytes.
    let (mut day, mut cut) = (Vec::new(), LevelCut::new(1));
    let config = SyntheticConfig { duration_ns: 900_000_000_000, fundamental_step_milliticks: 6_000, ..SyntheticConfig::default() };
    write_lobster(config, &mut day).unwrap();
    let path = dir.path().join("MADE_2012-06-21_34200000_57600000_message_1.csv");
    let mut writer = LobsterWriter::new(std::fs::File::create(&path).unwrap());
    for message in LobsterReader::new(&day[..]).map(Result::unwrap) {
        if cut.take(&message) {
            writer.write(&message).unwrap();
        }
    }
    drop(writer);
    let file = path.to_str().unwrap();
    for venue in [&[][..], &["--venue"]] {
        let report = cli.json(&[&["replay", file][..], venue].concat());
        assert_eq!(report["symbol"], "MADE");
        assert!(report["peak_memory_kib"].as_u64().unwrap() <= REPLAY_KIB_MAX, "{}", report["peak_memory_kib"]);
    }
    // Two instruments: the file does not say which is wanted.
    let path = dir.path().join("two.itch");
    let mut writer = ItchWriter::new(std::fs::File::create(&path).unwrap());
    for (locate, symbol, orders) in [(1, *b"ONE     ", 2), (2, *b"OTHER   ", 3)] {
        for order in 0..orders {
            let body = ItchBody::Add {
                order_ref: order * 2 + u64::from(locate),
                side: Side::Buy,
                shares: 100,
                symbol,
                price: 12_300,
                attribution: None,
            };
            let header = ItchHeader { locate, tracking: 0, time_ns: 1_000 + order };
            if order == 0 {
                writer.write(&ItchMessage { header, body: ItchBody::plain_directory(symbol) }).unwrap();
            }
            writer.write(&ItchMessage { header, body }).unwrap();
        }
    }
    drop(writer);
    let file = path.to_str().unwrap();
    let (status, said) = cli.fails(&["replay", file]);
    assert!(status == 4 && said.contains("holds 2 instruments") && said.contains("choose it with --instrument"), "{status} {said}");
    assert!(said.contains("OTHER (3 messages), ONE (2 messages)"), "{said}");
    for wanted in ["OTHER", "2"] {
        let report = cli.json(&["replay", file, "--instrument", wanted, "--tick", "0.0001"]);
        assert_eq!((&report["symbol"], &report["messages"]["adds"]), (&"OTHER".into(), &3.into()), "{report}");
    }
    assert!(cli.fails(&["replay", file, "--instrument", "THIRD"]).1.contains("instrument THIRD has no message in the file"));
    assert_eq!(cli.json(&["replay", file, "--instruments"])[1]["symbol"], "ONE");
    assert!(cli.text(&["replay", file, "--instruments"]).contains("OTHER"));
}

#[test]
fn history_goes_through_a_venue_whose_log_a_node_then_serves() {
    let cli = Cli { url: "http://127.0.0.1:9".into(), key_file: "no-such.key".into() };
    let dir = tempfile::tempdir().unwrap();
    let (file, data) = (dir.path().join("small_message_1.csv"), dir.path().join("data"));
    let adds = "1.000000001,1,11,100,100000,1\n1.000000002,1,12,50,100000,1\n1.000000004,1,21,30,100200,-1\n";
    std::fs::write(&file, format!("{adds}2.000000000,4,11,100,100000,1\n2.000000000,4,12,20,100000,1\n")).unwrap();
    let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());
    let report = cli.json(&["replay", file, "--venue", "--venue-log", data]);
    assert_eq!((&report["venue"]["trades"], &report["venue"]["rejected"]), (&2.into(), &0.into()), "{report}");
    assert_eq!(report["timing"]["commands"], report["venue"]["commands"]);
    let said = cli.text(&["replay", file, "--venue"]);
    assert!(said.contains("every unit is accounted for") && said.contains("ns a message"), "{said}");
    assert!(said.contains(report["state_hash"].as_str().unwrap()), "the same history gives the same state: {said}");
    assert!(cli.text(&["log", "verify", data]).starts_with("sound: "));
    let (status, said) = cli.fails(&["replay", file, "--venue", "--venue-log", data]);
    assert!(status == 4 && said.contains("holds a log already"), "{said}");
    assert_eq!(cli.fails(&["replay", file, "--venue-log", data]).0, 2, "a log needs a venue");
    assert!(cli.text(&["log", "import", data]).contains("start it"));
    let node = restart(walras_log_store::RealDisk, std::path::Path::new(data), &config());
    let hash: String = node.recovered().state_hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(report["state_hash"], hash.as_str());
    let client = walras_client::Client::new(&format!("http://{}", node.address()), None);
    let book = client.get("/v1/instruments/SHARE-USD/book").unwrap();
    assert_eq!(book["bids"], serde_json::json!([["10.00", "30", 1]]));
    node.stop();
}

#[test]
fn what_is_wrong_on_this_side_has_its_own_exit_status() {
    let cli = Cli { url: "http://127.0.0.1:9".into(), key_file: "no-such.key".into() };
    assert_eq!(cli.fails(&["order"]).0, 2);
    let (status, said) = cli.fails(&["account"]);
    assert_eq!(status, 4);
    assert!(said.contains("--key-file"), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("walras.toml");
    std::fs::write(&file, "[http]\nlisen = \"127.0.0.1:0\"\n").unwrap();
    let (status, said) = cli.fails(&["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(status, 4);
    assert!(said.contains("did you mean `http.listen`"), "{said}");
    let busy = Venue::with(&config());
    let address = busy.node().address().to_string();
    let (status, said) = cli.fails(&["serve", "--listen", &address, "--data", dir.path().to_str().unwrap()]);
    assert_eq!(status, 4);
    assert!(said.contains("--listen"), "{said}");
}

#[test]
fn keys_of_a_cluster_are_made_once_and_for_one_more() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("keys");
    let nobody = Cli { url: String::new(), key_file: "none".into() };
    let at = folder.to_str().unwrap();
    let told = nobody.text(&["cluster", "keys", "--dir", at, "--replicas", "3", "--cluster-id", "77"]);
    assert!(told.contains("10 years") && told.contains("replica-3.key") && told.contains("Keep "), "{told}");
    assert_eq!(folder.join("replica-3.key").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (status, said) = nobody.fails(&["cluster", "keys", "--dir", at]);
    assert_eq!(status, 4);
    assert!(said.contains("not overwritten"), "{said}");
    let more = nobody.json(&["cluster", "keys", "--dir", at, "--add", "4"]);
    assert_eq!((&more["cluster_id"], &more["replicas"][0]["id"]), (&Value::from(77), &Value::from(4)));
    let (status, _) = nobody.fails(&["cluster", "keys", "--dir", at, "--add", "0"]);
    assert_eq!(status, 2);
    let other = dir.path().join("other");
    assert!(nobody.json(&["cluster", "keys", "--dir", other.to_str().unwrap()])["cluster_id"].as_u64().unwrap() > 0);
}
