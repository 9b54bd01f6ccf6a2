//! `walras demo` as its user meets it: a process, what it prints, Ctrl-C, and a second start.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use walras_client::Client;
use walras_gateway::ClientKey;
use walras_wait::until_ok;

use crate::support::spawn;

/// The process; it ends with the test, however that ends.
struct Process {
    child: Child,
    /// Where its log lines go.
    log: PathBuf,
    /// All that it printed.
    printed: String,
    /// Where its page is, without the key.
    url: String,
    /// The key that the page's address carries.
    key: String,
}

impl Process {
    fn start(dir: &Path) -> Self {
        let log = dir.join("demo.log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_walras"));
        command.args(["demo", "--listen", "127.0.0.1:0", "--file", "synthetic", "--data"]).arg(dir.join("venue"));
        let child = spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log).unwrap()));
        let mut process = Self { child, log, printed: String::new(), url: String::new(), key: String::new() };
        let mut lines = BufReader::new(process.child.stdout.take().unwrap());
        while !process.printed.ends_with("goes on.\n") {
            let read = lines.read_line(&mut process.printed).unwrap();
            assert!(read > 0, "it ended after {:?}, and said: {}", process.printed, process.said());
        }
        let address = process.printed.lines().find_map(|line| line.strip_prefix("Open ")).unwrap();
        let (url, key) = address.split_once("/#demo=").unwrap();
        (process.url, process.key) = (url.to_owned(), key.to_owned());
        process
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn client(&self) -> Client {
        Client::new(&self.url, Some(ClientKey::from_token(&self.key).unwrap()))
    }

    /// The words of the command line that it offers for an order.
    fn order_line(&self) -> Vec<String> {
        let line = self.printed.lines().find_map(|line| line.strip_prefix("Or trade from another terminal: ")).unwrap();
        line.split(' ').map(str::to_owned).collect()
    }

    /// Where it says that FIX is spoken: orders, market data.
    fn fix(&self) -> (String, String) {
        let line = self.printed.lines().find_map(|line| line.strip_prefix("Or by FIX: orders at ")).unwrap();
        let (orders, rest) = line.split_once(", market data at ").unwrap();
        (orders.to_owned(), rest.split_once(',').unwrap().0.to_owned())
    }

    fn log_index(&self) -> u64 {
        self.client().get("/v1/status").unwrap()["log_index"].as_str().unwrap().parse().unwrap()
    }

    /// Waits until so many entries more are in the log.
    fn run_for(&self, entries: u64) -> u64 {
        let target = self.log_index() + entries;
        until_ok("the demo trades", || if self.log_index() >= target { Ok(target) } else { Err(self.said()) })
    }

    /// As Ctrl-C does; its exit status, and what it had to say.
    fn interrupt(mut self) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let code = self.child.wait().unwrap().code();
        (code, self.said())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended by itself where the test went well.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// What a newcomer does by FIX, with the key and the addresses of the demo, and programs of the documentation.
fn trade_by_fix(demo: &Process, key_file: &Path) {
    let (line, (orders, market_data)) = (demo.order_line(), demo.fix());
    let symbol = line.iter().skip_while(|word| *word != "buy").nth(1).unwrap();
    // Far enough from the market to rest, and near enough to be taken.
    let price = line.last().unwrap().parse::<u64>().unwrap() * 95 / 100;
    let document = include_str!("../../../../docs/fix.md");
    let example = document.split_once("```python\n").unwrap().1.split_once("```").unwrap().0;
    let mut python = Command::new("timeout");
    python.args(["60", "python3", "-c", example, &orders]).arg(key_file).args([symbol, &price.to_string()]);
    let ran = spawn(python.stdout(Stdio::piped()).stderr(Stdio::piped())).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
    assert_eq!(lines, ["logged on", "report 0", "report 4"], "{ran:?}");
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fix-book.py");
    let mut python = Command::new("timeout");
    python.args(["60", "python3"]).arg(reader).arg(&market_data).arg(key_file).arg(symbol);
    let mut reader = spawn(python.stdout(Stdio::piped()));
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines().map(Result::unwrap);
    let has_both = |line: &str| line.split(' ').all(|price| price.parse::<f64>().is_ok());
    assert!(lines.any(|line| has_both(&line)), "no book with a bid and an offer was read");
    reader.kill().unwrap();
    reader.wait().unwrap();
}

/// The entry that it recovered to, and how many of the log's it replayed for that.
fn recovered(said: &str) -> (u64, u64) {
    let line =
        said.lines().find(|line| line.contains("recovered to log entry")).unwrap_or_else(|| panic!("it does not say: {said}"));
    let number_after = |mark: &str| line.split(mark).nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let replayed = line.split(" entries replayed").next().and_then(|text| text.rsplit(' ').next());
    let parse = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{line}"));
    (parse(number_after("log entry ")), parse(replayed))
}

#[test]
fn it_prints_where_its_page_is_stops_at_ctrl_c_and_recovers_when_it_is_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let demo = Process::start(dir.path());
    assert!(demo.printed.contains("a generated stream (seed") && demo.printed.contains("Ctrl-C stops it"), "{}", demo.printed);
    let key = demo.key.clone();
    let client = demo.client();
    let status = client.get("/v1/status").unwrap();
    assert!(status["demo"]["speed"].is_string(), "{status}");
    let (line, key_file) = (demo.order_line(), dir.path().join("venue/trader.key"));
    assert_eq!(std::fs::read_to_string(&key_file).unwrap().trim_end(), key);
    assert_eq!(key_file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let output =
        spawn(Command::new(&line[0]).args(&line[1..]).stdout(Stdio::piped()).stderr(Stdio::piped())).wait_with_output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && answer.starts_with("order "),
        "{line:?}: {answer}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let human = spawn(Command::new(&line[0]).args(["--url", &demo.url, "status"]).stdout(Stdio::piped()));
    let human = String::from_utf8(human.wait_with_output().unwrap().stdout).unwrap();
    assert!(human.starts_with("venue ") && human.contains(" UTC\n") && !human.contains(['{', '"']), "{human}");
    let mut keyless = Command::new(&line[0]);
    keyless.args(["--url", &demo.url, "order", "buy", "WAL/USD", "5"]).env_remove("WALRAS_KEY_FILE").stderr(Stdio::piped());
    let said = String::from_utf8(spawn(&mut keyless).wait_with_output().unwrap().stderr).unwrap();
    assert!(said.contains("a trading key") && said.contains("trader.key"), "{said}");
    let account = client.signed("GET", "/v1/account", None).unwrap()["account_id"].clone();
    let markets = client.get("/v1/batches").unwrap()["batches"].clone();
    assert_eq!((&markets[0]["name"], &markets[0]["phase"]), (&"main".into(), &"open".into()), "{markets}");
    let fix_key_file = dir.path().join("venue/fix.key");
    let fix_key = std::fs::read_to_string(&fix_key_file).unwrap();
    assert_eq!(fix_key_file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    trade_by_fix(&demo, &fix_key_file);
    assert_eq!(demo.printed.lines().count(), 5, "it prints little: {}", demo.printed);
    let entries = demo.run_for(500);
    let (code, said) = demo.interrupt();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("replica 1 is new") && !said.contains("recovered to"), "there was nothing before: {said}");

    let demo = Process::start(dir.path());
    assert_eq!(demo.key, key, "the page's address goes on working");
    assert_eq!(std::fs::read_to_string(&fix_key_file).unwrap(), fix_key);
    assert_eq!(demo.client().signed("GET", "/v1/account", None).unwrap()["account_id"], account);
    demo.run_for(100);
    let (code, said) = demo.interrupt();
    assert_eq!(code, Some(0), "{said}");
    let (to, replayed) = recovered(&said);
    assert!(to >= entries, "it recovered to entry {to}, and {entries} had been seen");
    assert_eq!(replayed, 0, "the first stop left a snapshot of all");
}
