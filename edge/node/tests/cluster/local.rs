//! `walras cluster local` as large as the documents say to try it: twenty leaf gateways below three relays, one of which dies under load.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use walras_client::local_cluster::{FIRST_RELAY, LocalCluster};
use walras_client::{Client, read_key};
use walras_types::Side;

use super::client::{Diary, Participant};
use super::leaf::{Listener, levels_of, wait_for_keys};
use super::{Shape, market, progress, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_walras");
const GATEWAYS: u16 = 20;
const RELAYS: u16 = 3;

/// The program, which stops all that it started when it is stopped: a test that fails leaves no process.
struct Running(Child);

impl Running {
    fn start(folder: &Path, said: &Path) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["cluster", "local", "--replicas", "3", "--relays", "3", "--gateways", "20", "--dir"]).arg(folder);
        Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(said).unwrap()).spawn().unwrap())
    }

    fn stop(&mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        self.0.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.stop();
        }
    }
}

/// The word of a line that follows these words.
fn word_after<'l>(line: &'l str, words: &str) -> &'l str {
    line.split_once(words).and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or_else(|| panic!("{line}: no {words}"))
}

#[test]
fn twenty_gateways_below_three_relays_miss_nothing_when_a_relay_dies() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, said) = (dir.path().join("cluster"), dir.path().join("said.log"));
    // Laid out before, with patience for elections: 26 processes share the machine.
    let more = vec![("feed", "heartbeat_ms", toml::Value::Integer(50))];
    let shape = Shape { gateways: GATEWAYS, relays: RELAYS, more, ..Shape::default() };
    LocalCluster::prepare(Path::new(PROGRAM), &folder, &shape.options()).unwrap();
    let mut running = Running::start(&folder, &said);
    let count = 3 + usize::from(GATEWAYS + RELAYS) + 1;
    let lines: Vec<String> = BufReader::new(running.0.stdout.take().unwrap()).lines().take(count).map(Result::unwrap).collect();
    assert_eq!(lines.len(), count, "{lines:?}: {}", std::fs::read_to_string(&said).unwrap());
    let key = read_key(&folder.join("operator.key")).unwrap();
    let replicas = lines[..3].iter().map(|line| word_after(line, ": ").trim_end_matches('/'));
    let operators: Vec<Client> = replicas.map(|url| Client::new(url, Some(key.clone()))).collect();
    // The first and the last of the gateways: where they receive market data, and where they take orders.
    let gateways = [&lines[3], &lines[3 + usize::from(GATEWAYS) - 1]];
    let places = gateways.map(|line| Path::new(word_after(line, "files in ")).to_path_buf());
    let listeners = places.each_ref().map(|place| Listener::start(place));
    let accounts = market(&operators, 2);
    places.iter().for_each(|place| wait_for_keys(place, &accounts));
    let orders = gateways.map(|line| word_after(line, "orders at ").to_owned());
    let participants: Vec<Participant> = (0x7e57..)
        .zip(accounts)
        .zip(orders)
        .map(|((seed, (account, key)), way)| Participant::start(account, key, vec![way], seed))
        .collect();
    progress(&participants, 200);

    let second = &lines[3 + usize::from(GATEWAYS) + 1];
    assert!(second.starts_with(&format!("relay {}: ", FIRST_RELAY + 1)), "{second}");
    let process = word_after(second, "process ").parse().unwrap();
    kill_process(Pid::from_raw(process).unwrap(), Signal::KILL).unwrap();
    progress(&participants, 200);
    let death = format!("relay {} was killed by a signal: see ", FIRST_RELAY + 1);
    let mut text = String::new();
    until("the program says which process died", || {
        text = std::fs::read_to_string(&said).unwrap();
        text.contains(&death)
    });
    assert!(Path::new(word_after(&text, &death)).exists(), "it names a file that is there: {text}");
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    assert!(diaries.iter().all(|diary| diary.answers.len() >= 400));
    until("the participants have the venue's book, and nothing was asked for again", || {
        let book = operators[0].get("/v1/instruments/BTC-USD/book?depth=1000").unwrap();
        let expected = [levels_of(&book, "bids"), levels_of(&book, "asks")];
        listeners.iter().all(|listener| Side::BOTH.map(|side| listener.levels(side)) == expected)
    });
    let view = operators[0].get("/v1/cluster").unwrap();
    assert_eq!(view["tree"]["layers"], json!([RELAYS, GATEWAYS]));
    for listener in listeners {
        assert!(listener.finish() > 400, "it heard of every entry");
    }
    assert!(running.stop().success());
}
