//! How long a newcomer waits: `make demo` and `make test` in a fresh clone of the committed state, from nothing built.
//!
//! Libraries that were fetched before are not fetched again: the network's part is not measured.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::report::{Figure, Report, Unit};

const DEMO_S_BAR: f64 = 240.0;
const TEST_S_BAR: f64 = 1_200.0;

/// What is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Only the demo.
    pub demo_only: bool,
    /// Where the clones go.
    pub scratch: PathBuf,
}

/// Measures each once.
///
/// # Errors
/// Either does not get to its end.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(1);
    report.require(&["demo_cold_s", "test_cold_s"]);
    let demo = clone(&config.scratch, "demo")?;
    let begun = Instant::now();
    demo_address(&demo)?;
    report.figure(Figure::new("demo_cold_s", begun.elapsed().as_secs_f64(), Unit::S).bar(DEMO_S_BAR));
    std::fs::remove_dir_all(&demo).with_context(|| format!("removing {}", demo.display()))?;
    if config.demo_only {
        return Ok(());
    }
    let test = clone(&config.scratch, "test")?;
    let begun = Instant::now();
    let log = config.scratch.join("test.log");
    let out = std::fs::File::create(&log)?;
    let status = make(&test, &["test"]).stdout(out.try_clone()?).stderr(out).status().context("make")?;
    ensure!(status.success(), "make test failed: see {}", log.display());
    report.figure(Figure::new("test_cold_s", begun.elapsed().as_secs_f64(), Unit::S).bar(TEST_S_BAR));
    std::fs::remove_dir_all(&test).with_context(|| format!("removing {}", test.display()))?;
    report.check("every test of a fresh clone passed");
    report.note("one run each; libraries had been fetched before");
    Ok(())
}

fn clone(scratch: &Path, name: &str) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(scratch).with_context(|| format!("making {}", scratch.display()))?;
    let dir = std::path::absolute(scratch.join(name))?;
    if dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))?;
    }
    let status = Command::new("git").args(["clone", "--quiet", "."]).arg(&dir).status().context("git")?;
    ensure!(status.success(), "git clone failed; run this in the root of the repository");
    Ok(dir)
}

fn make(dir: &Path, arguments: &[&str]) -> Command {
    let mut make = Command::new("make");
    make.args(arguments).current_dir(dir).env_remove("CARGO_TARGET_DIR").stdin(Stdio::null());
    make
}

/// Until the demo prints the address of its page; then it ends.
fn demo_address(dir: &Path) -> anyhow::Result<()> {
    let log = dir.join("demo.log");
    let mut demo = make(dir, &["demo", "LISTEN=127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log)?)
        .process_group(0)
        .spawn()
        .context("make")?;
    let lines = BufReader::new(demo.stdout.take().context("the output of make demo")?).lines();
    let is_there = lines.map_while(Result::ok).any(|line| line.contains("http://"));
    if let Some(group) = i32::try_from(demo.id()).ok().and_then(Pid::from_raw) {
        // Where it has ended there is nobody to stop.
        let _ = kill_process_group(group, Signal::TERM);
    }
    demo.wait()?;
    if !is_there {
        bail!("make demo ended without an address: see {}", log.display());
    }
    Ok(())
}
