//! Processes of the program, and their markets.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use walras_access::now;
use walras_client::{Client, read_key};

use super::{json_of, order_pairs};

const PATIENCE: Duration = Duration::from_secs(60);

/// Where commands are before they are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    Disk,
    Memory,
}

/// A venue that runs.
#[derive(Debug)]
pub(crate) struct Running {
    program: PathBuf,
    dir: PathBuf,
    child: Child,
    /// `host:port` of the first replica.
    pub(crate) http: String,
    operator: PathBuf,
}

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signing {
    Ed25519,
    Hmac,
}

impl Signing {
    /// As the program calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "ed25519",
            Self::Hmac => "hmac-sha256",
        }
    }
}

/// What an API's load needs.
#[derive(Debug)]
pub(crate) struct Market {
    pub(crate) instrument: String,
    /// With funds.
    account: String,
    /// Of its trading key.
    pub(crate) key_file: PathBuf,
}

impl Running {
    /// So many replicas, with an empty folder.
    pub(crate) fn cluster(program: &Path, dir: &Path, replicas: u16, durability: Durability) -> anyhow::Result<Self> {
        fresh(dir)?;
        let mut command = Command::new(program);
        command.args(["cluster", "local", "--unthrottled", "--replicas", &replicas.to_string(), "--dir"]).arg(dir);
        if durability == Durability::Memory {
            command.arg("--memory");
        }
        let operator = dir.join("operator.key");
        Self::start(program, dir, command, operator, " leads;")
    }

    /// The host without a replicated log.
    pub(crate) fn single(program: &Path, dir: &Path) -> anyhow::Result<Self> {
        let limits = ["requests_per_second", "burst", "source_requests_per_second", "source_burst"];
        let throttle: String = limits.iter().map(|limit| format!("{limit} = 1000000000\n")).collect();
        Self::served(program, dir, &format!("[throttle]\n{throttle}"))
    }

    /// One replica of this configuration.
    pub(crate) fn served(program: &Path, dir: &Path, config_text: &str) -> anyhow::Result<Self> {
        fresh(dir)?;
        let config = dir.join("walras.toml");
        std::fs::write(&config, config_text)?;
        let mut command = Command::new(program);
        let data = dir.join("data");
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data).arg("--config").arg(&config);
        Self::start(program, dir, command, data.join("operator.key"), "http://")
    }

    fn start(program: &Path, dir: &Path, mut command: Command, operator: PathBuf, ready: &'static str) -> anyhow::Result<Self> {
        ensure!(program.is_file(), "{} is not built: cargo build --release -p walras-node", program.display());
        let log = dir.join("log");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(std::fs::File::create(&log)?).spawn()?;
        let out = child.stdout.take().context("the output of the venue")?;
        let (sender, lines) = mpsc::channel();
        // Reads on after that: a program that cannot print would stand still.
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut http = None;
        loop {
            let line = lines.recv_timeout(PATIENCE).with_context(|| {
                let _ = child.kill();
                format!("the venue did not start: see {}", log.display())
            })?;
            let address = line.split("http://").nth(1).and_then(|rest| rest.split(['/', ' ']).next());
            http = http.or_else(|| address.map(str::to_owned));
            if line.contains(ready) {
                break;
            }
        }
        let http = http.context("the venue printed no address")?;
        Ok(Self { program: program.to_path_buf(), dir: dir.to_path_buf(), child, http, operator })
    }

    /// A client with the operator's key.
    pub(crate) fn operator(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&format!("http://{}", self.http), Some(read_key(&self.operator)?)))
    }

    /// Memory that it holds, in bytes.
    pub(crate) fn memory_bytes(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the process says no VmRSS")?;
        let kib = line.trim().strip_suffix(" kB").and_then(|kib| kib.parse::<u64>().ok()).context("VmRSS has another form")?;
        Ok(kib << 10)
    }

    /// Runs a command of the program as the operator; its answer.
    pub(crate) fn walras(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        self.walras_as(&self.operator, arguments)
    }

    /// The same with another key.
    pub(crate) fn walras_as(&self, key: &Path, arguments: &[&str]) -> anyhow::Result<Value> {
        let (url, key) = (format!("http://{}", self.http), key.display().to_string());
        json_of(&self.program, &[&["--url", &url, "--key-file", &key], arguments].concat())
    }

    /// An instrument, and a participant with funds.
    pub(crate) fn open_market(&self) -> anyhow::Result<Market> {
        let instrument = "BTC/USD".to_owned();
        self.walras(&["admin", "asset", "BTC", "8"])?;
        self.walras(&["admin", "asset", "USD", "6"])?;
        self.walras(
            &[
                &["admin", "instrument", &instrument, "BTC", "USD"][..],
                &["--tick-size", "0.25", "--lot-size", "0.0001", "--reference-price", "30000"],
            ]
            .concat(),
        )?;
        self.walras(&["admin", "phase", &instrument, "continuous"])?;
        let account = self.walras(&["admin", "account"])?["account_id"].to_string();
        self.walras(&["admin", "deposit", &account, "USD", "1000000000"])?;
        self.walras(&["admin", "deposit", &account, "BTC", "100000"])?;
        let key_file = self.new_key(&account, Signing::Ed25519, "trader.key")?;
        self.wait_for_stamps()?;
        // There has to be a price to be far from.
        let one = |side: &str, price: &str| self.walras_as(&key_file, &["order", side, &instrument, "0.0001", "--price", price]);
        one("buy", "29999")?;
        one("sell", "30001")?;
        Ok(Market { instrument, account, key_file })
    }

    /// A key for each connection of a load, all of the market's account: a key has so many nonces in the window of acceptable stamps.
    pub(crate) fn load_keys(&self, market: &Market, signing: Signing) -> anyhow::Result<Vec<PathBuf>> {
        let name = |number: u64| format!("{}-{number}.key", signing.name());
        (0..order_pairs::CONNECTIONS).map(|number| self.new_key(&market.account, signing, &name(number))).collect()
    }

    /// Makes a trading key; its file.
    fn new_key(&self, account: &str, signing: Signing, name: &str) -> anyhow::Result<PathBuf> {
        let file = self.dir.join(name);
        let out = file.display().to_string();
        self.walras(&["admin", "key", "--account", account, "--algorithm", signing.name(), "--out", &out])?;
        Ok(file)
    }

    /// Waits until a request may be signed now: a gateway that has just started takes no stamp of the time before.
    fn wait_for_stamps(&self) -> anyhow::Result<()> {
        let status = self.walras(&["status"])?;
        let from_ns = status["accepts_timestamps_from_ns"].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        while let Some(left_ns) = from_ns.checked_sub(now().0) {
            walras_wait::pause(Duration::from_nanos(left_ns + 1));
        }
        Ok(())
    }

    /// Processor time of its processes since they began, in microseconds.
    pub(crate) fn cpu_us(&self) -> anyhow::Result<f64> {
        let id = self.child.id();
        let mut all = children(id)?;
        all.push(id);
        all.into_iter().map(cpu_us_of).sum()
    }

    /// Ends it, and removes its data.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process without a number")?;
        kill_process(pid, Signal::TERM).context("stopping the venue")?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the venue ended with {status}");
        std::fs::remove_dir_all(&self.dir).with_context(|| format!("removing {}", self.dir.display()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
            && matches!(self.child.try_wait(), Ok(None))
        {
            // Its own children end with it.
            let _ = kill_process(pid, Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

fn fresh(dir: &Path) -> anyhow::Result<()> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))
}

fn children(id: u32) -> anyhow::Result<Vec<u32>> {
    let mut all = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{id}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("children"))?;
        all.extend(text.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
    }
    Ok(all)
}

/// User and system time of all threads, those that have ended included. The kernel counts it in hundredths of a second.
pub(crate) fn cpu_us_of(id: u32) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).with_context(|| format!("process {id} has ended"))?;
    let fields = text.rsplit(") ").next().unwrap_or_default();
    let ticks: Vec<f64> = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    ensure!(ticks.len() == 2, "/proc/{id}/stat has another form");
    Ok(ticks.iter().sum::<f64>() * 1e6 / rustix::param::clock_ticks_per_second() as f64)
}
