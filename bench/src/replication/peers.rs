//! etcd and Aeron Cluster, run by the scripts in `bench/peers`: programs of their own, each of which checks its own answers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// A peer, built.
#[derive(Debug)]
pub struct Peer {
    script: PathBuf,
    name: &'static str,
}

/// A load of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// What it is, as metrics call it: the peer, whether its log is synced, how much of it.
    pub name: &'static str,
    /// A setting of the peer's that is tried beside others of the same load, of which the best counts.
    pub variant: Option<&'static str>,
    arguments: Vec<&'static str>,
}

impl Load {
    /// Its name and variant.
    #[must_use]
    pub fn key(&self) -> String {
        self.variant.map_or_else(|| self.name.to_owned(), |variant| format!("{}_{variant}", self.name))
    }
}

/// So many clients, each with one put outstanding.
#[must_use]
pub fn etcd_loads() -> Vec<Load> {
    let load = |name, clients| Load { name, variant: None, arguments: vec!["--clients", clients] };
    vec![load("etcd_1", "1"), load("etcd_100", "100"), load("etcd_1000", "1000")]
}

/// So many commands outstanding, and 320,000 a second offered; synced and not; with the idle strategies that are the best at one or the other.
///
/// Synced, `yielding` is left out: on two processors its members' threads spin for as long as a member waits for its disk, so that the cluster comes up after a
/// minute's time-outs or not at all. [`LEFT_OUT`] says so beside the figures.
#[must_use]
pub fn aeron_loads() -> Vec<Load> {
    const SHAPES: [(&str, &str, [&str; 2]); 3] = [
        ("aeron_durable_1", "aeron_memory_1", ["--outstanding", "1"]),
        ("aeron_durable_1000", "aeron_memory_1000", ["--outstanding", "1000"]),
        ("aeron_durable_320k", "aeron_memory_320k", ["--offered", "320000"]),
    ];
    let mut loads = Vec::new();
    for (durable, memory, shape) in SHAPES {
        for (name, sync, idles) in [(durable, "2", &["backoff"][..]), (memory, "0", &["yielding", "backoff"])] {
            for idle in idles.iter().copied() {
                let arguments = [shape.as_slice(), &["--sync", sync, "--idle", idle]].concat();
                loads.push(Load { name, variant: Some(idle), arguments });
            }
        }
    }
    loads
}

/// What is not measured of Aeron Cluster, for readers of its figures.
pub const LEFT_OUT: &str = "Aeron Cluster, synced: only its idle strategy `backoff` is run; with `yielding` three members on two processors come up after a minute's \
                            time-outs or not at all, because their threads spin while one of them waits for the disk";

/// What a run of a peer printed last, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The peer and its version.
    pub peer: String,
    /// Commands acknowledged a second.
    pub per_s: f64,
    /// Microseconds until the acknowledgement.
    pub mean_us: f64,
    /// Half of them took at most this.
    pub p50_us: f64,
    /// 99 of 100 took at most this.
    pub p99_us: f64,
}

impl Peer {
    /// Builds it. `Err` is a sentence on why it can not run here.
    pub fn build(peers: &Path, folder: &str, name: &'static str) -> Result<Self, String> {
        let script = peers.join(folder).join("run.sh");
        eprintln!("building {name}, which takes some minutes the first time");
        match Command::new(&script).arg("--build-only").stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => Ok(Self { script, name }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("{} does not start ({error}); run the bench by bench/run.sh", script.display())),
        }
    }

    /// Runs a load. Fails unless the peer found its own answers right.
    pub fn run(&self, load: &Load, seconds: u32, scratch: &Path) -> anyhow::Result<Line> {
        let seconds = seconds.to_string();
        let mut command = Command::new(&self.script);
        command.arg("--dir").arg(scratch).args(&load.arguments).args(["--seconds", &seconds, "--warmup", &seconds]);
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("starting {}", self.script.display()))?;
        if !output.status.success() {
            bail!("{} ended with {}; what it said is above", self.name, output.status);
        }
        Line::parse(self.name, &String::from_utf8_lossy(&output.stdout))
    }
}

impl Line {
    fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let last = text.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(last).with_context(|| format!("{name}'s last line is no JSON: {last}"))?;
        ensure!(value["check"] == "equal", "{name} did not check its answer: {last}");
        let number = |key: &str| {
            let found = value[key].as_f64().filter(|number| *number > 0.0);
            found.with_context(|| format!("{name}'s report has no {key} above 0: {last}"))
        };
        Ok(Self {
            peer: format!("{name} {}", value["version"].as_str().unwrap_or("of unknown version")),
            per_s: number("ops_per_s")?,
            mean_us: number("mean_us")?,
            p50_us: number("p50_us")?,
            p99_us: number("p99_us")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"peer":"etcd","version":"3","ops_per_s":10.5,"mean_us":4.0,"p50_us":3,"p99_us":9.0,"check":"equal"}"#;

    #[test]
    fn only_a_checked_line_counts() {
        let line = Line::parse("etcd", &format!("chatter\n{LINE}\n")).unwrap();
        assert_eq!(line, Line { peer: "etcd 3".to_owned(), per_s: 10.5, mean_us: 4.0, p50_us: 3.0, p99_us: 9.0 });
        let refused = |text: &str| Line::parse("etcd", text).unwrap_err().to_string();
        assert!(refused(&LINE.replace("equal", "failed")).contains("did not check"));
        assert!(refused(&LINE.replace("10.5", "0")).contains("no ops_per_s above 0"));
        assert!(refused("etcd: killed").contains("no JSON"));
        assert!(refused("").contains("no JSON"));
    }

    #[test]
    fn loads_have_names_of_their_own() {
        let mut keys: Vec<String> = etcd_loads().iter().chain(&aeron_loads()).map(Load::key).collect();
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!((keys.len(), count), (12, 12));
        assert!(keys.contains(&"aeron_memory_320k_backoff".to_owned()), "{keys:?}");
    }

    #[test]
    fn a_peer_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let why = Peer::build(folder.path(), "etcd", "etcd").unwrap_err();
        assert!(why.contains("run the bench by bench/run.sh"), "{why}");
    }
}
