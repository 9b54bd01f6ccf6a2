//! Programs to compare with: each is built and run by a script of its own, checks its own answers, and prints a line of JSON last.

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
    /// One of several settings of the peer that are tried under the same load; the best counts.
    pub variant: Option<&'static str>,
    /// For its script.
    pub arguments: Vec<String>,
}

impl Load {
    /// So many clients of a cluster of etcd of so many members, each with one put outstanding, on 100 connections at most.
    #[must_use]
    pub fn of_etcd(name: &'static str, members: u16, clients: u32) -> Self {
        let arguments = ["--members".to_owned(), members.to_string(), "--clients".to_owned(), clients.to_string()];
        Self { name, variant: None, arguments: arguments.into() }
    }

    /// Its name and variant.
    #[must_use]
    pub fn key(&self) -> String {
        self.variant.map_or_else(|| self.name.to_owned(), |variant| format!("{}_{variant}", self.name))
    }
}

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
    /// Builds it. `Err` is a sentence on why it cannot run here.
    pub fn build(peers: &Path, folder: &str, name: &'static str) -> Result<Self, String> {
        let script = peers.join(folder).join("run.sh");
        eprintln!("building {name}, which takes some minutes the first time");
        match Command::new(&script).arg("--build-only").stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => Ok(Self { script, name }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("{} does not start ({error}); run it from the repository", script.display())),
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
        let line = Line::parse("etcd", &format!("chatter\n{LINE}\n")).expect("it is one");
        assert_eq!(line, Line { peer: "etcd 3".to_owned(), per_s: 10.5, mean_us: 4.0, p50_us: 3.0, p99_us: 9.0 });
        let refused = |text: &str| Line::parse("etcd", text).expect_err("it is none").to_string();
        assert!(refused(&LINE.replace("equal", "failed")).contains("did not check"));
        assert!(refused(&LINE.replace("10.5", "0")).contains("no ops_per_s above 0"));
        assert!(refused("etcd: killed").contains("no JSON"));
        assert!(refused("").contains("no JSON"));
    }

    #[test]
    fn a_missing_peer_is_reported() {
        let why = Peer::build(Path::new("no such folder"), "etcd", "etcd").expect_err("there is none");
        assert!(why.contains("does not start"), "{why}");
    }
}
