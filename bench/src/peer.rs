//! exchange-core, run for comparison: `bench/peers/exchange-core`, a Java program of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

/// The peer, built.
#[derive(Debug)]
pub struct ExchangeCore {
    script: PathBuf,
}

/// What a run of it printed last, checked.
#[derive(Clone, Debug)]
pub struct PeerRun(Value);

impl ExchangeCore {
    /// Builds it. `Err` is a sentence on why it cannot run here.
    pub fn build(peers: &Path) -> Result<Self, String> {
        let script = peers.join("exchange-core/run.sh");
        let built = Command::new(&script).arg("--build-only").output();
        match built {
            Ok(output) if output.status.success() => Ok(Self { script }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("{} does not start ({error}); run the bench by bench/run.sh", script.display())),
        }
    }

    /// Runs a mode on a file. Fails unless the peer came to the expected answer.
    pub fn run(&self, mode: &str, file: &Path, options: &[(&str, usize)]) -> anyhow::Result<PeerRun> {
        self.finish(self.command(mode, file, options), mode, file, "expect-file")
    }

    /// Runs its whole pipeline with its journal in a folder, on the first million commands; the answer is checked with its own
    /// book.
    pub fn run_journal(&self, file: &Path, folder: &Path, options: &[(&str, usize)]) -> anyhow::Result<PeerRun> {
        let mode = "pipeline-journal";
        let mut command = self.command(mode, file, options);
        command.arg("--journal-dir").arg(folder);
        self.finish(command, mode, file, "own-book")
    }

    fn command(&self, mode: &str, file: &Path, options: &[(&str, usize)]) -> Command {
        let mut command = Command::new(&self.script);
        command.arg(mode).arg(file).stdin(Stdio::null()).stderr(Stdio::inherit());
        for (name, value) in options {
            command.arg(name).arg(value.to_string());
        }
        command
    }

    fn finish(&self, mut command: Command, mode: &str, file: &Path, checked_against: &str) -> anyhow::Result<PeerRun> {
        let output = command.output().with_context(|| format!("starting {}", self.script.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or_default();
        if !output.status.success() {
            bail!("exchange-core {mode} on {} ended with {}; its last line: {last}", file.display(), output.status);
        }
        let value: Value = serde_json::from_str(last).with_context(|| format!("exchange-core's last line is no JSON: {last}"))?;
        ensure!(
            value["check"] == "equal" && value["checked_against"] == checked_against,
            "exchange-core did not check its answer on {} against its {checked_against}: {last}",
            file.display()
        );
        Ok(PeerRun(value))
    }
}

impl PeerRun {
    /// Name and version.
    #[must_use]
    pub fn name(&self) -> String {
        format!("exchange-core {}", self.0["version"].as_str().unwrap_or("of unknown version"))
    }

    /// A number of the report, by the names on the way to it.
    pub fn number(&self, path: &[&str]) -> anyhow::Result<f64> {
        let found = path.iter().fold(&self.0, |value, name| &value[*name]);
        found.as_f64().with_context(|| format!("exchange-core's report has no number {}: {}", path.join("."), self.0))
    }
}
