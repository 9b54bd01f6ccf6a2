//! FIX engines that are compared: an acceptor on each (`bench/peers`) answers the same messages at once.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

use super::fix::{OURS, Seen, Shape, load, round_trip_us};
use super::free_address;
use crate::product::processes;

/// How each was measured.
pub(super) const HOW: &str = "an acceptor that answers the same messages at once, with sessions in memory and neither checks of fields, book, \
                              ledger nor log; the best of three loads, one of them the same, in the same run";
/// Of an engine the best counts, of a quiet session, of a busy one, and of several.
const LOADS: [Shape; 3] = [(1, 16), (1, 256), OURS];

/// An engine, and how its acceptor is built.
struct Kind {
    name: &'static str,
    metric: &'static str,
    folder: &'static str,
    build: &'static [&'static str],
    /// What was built, in its folder.
    program: &'static str,
    needs: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind {
        name: "quickfix-rs 0.2.2",
        metric: "quickfix_rs",
        folder: "quickfix-rs",
        build: &["cargo", "build", "--release", "--locked", "--quiet"],
        program: "target/release/quickfix-acceptor",
        needs: "CMake and a C++ compiler",
    },
    Kind {
        name: "quickfix-go 0.9.10",
        metric: "quickfix_go",
        folder: "quickfix-go",
        build: &["go", "build", "-o", "target/acceptor", "."],
        program: "target/acceptor",
        needs: "Go 1.24 or newer",
    },
];

/// An engine whose acceptor is built.
pub(super) struct Engine {
    pub(super) name: &'static str,
    /// How the metrics of its samples begin.
    pub(super) metric: &'static str,
    program: PathBuf,
}

/// One acceptor that runs, until this is dropped.
struct Acceptor(Child);

impl Drop for Acceptor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Those that can be built here, and a sentence on each that cannot.
pub(super) fn build(peers: &Path) -> (Vec<Engine>, Vec<String>) {
    let (mut engines, mut missing) = (Vec::new(), Vec::new());
    for kind in &KINDS {
        match build_one(kind, &peers.join(kind.folder)) {
            Ok(engine) => engines.push(engine),
            Err(why) => missing.push(format!("{} was NOT RUN: {why}", kind.name)),
        }
    }
    (engines, missing)
}

fn build_one(kind: &Kind, folder: &Path) -> Result<Engine, String> {
    let [program, arguments @ ..] = kind.build else { return Err("nothing builds it".to_owned()) };
    match Command::new(program).args(arguments).current_dir(folder).output() {
        Ok(output) if output.status.success() => {
            Ok(Engine { name: kind.name, metric: kind.metric, program: folder.join(kind.program) })
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("it needs {}; {program} said {}", kind.needs, said.lines().last().unwrap_or("nothing")))
        }
        Err(error) => Err(format!("it needs {}; {program} does not start: {error}", kind.needs)),
    }
}

impl Engine {
    /// The best of several loads, the venue's among them.
    pub(super) fn measure(&self, seconds: u32, scratch: &Path) -> anyhow::Result<Seen> {
        let mut best = Seen { per_second: 0.0, cpu_us: f64::INFINITY };
        for shape in LOADS {
            let seen = self.measure_one(shape, seconds, scratch)?;
            let (name, (sessions, window)) = (self.name, shape);
            eprintln!("  {name}, {sessions} sessions, {window} unanswered: {:.0}/s, {:.1} us", seen.per_second, seen.cpu_us);
            best = Seen { per_second: best.per_second.max(seen.per_second), cpu_us: best.cpu_us.min(seen.cpu_us) };
        }
        Ok(best)
    }

    /// How long one order at a time takes.
    pub(super) fn round_trip_us(&self, scratch: &Path) -> anyhow::Result<f64> {
        let (_acceptor, address) = self.start(1, scratch)?;
        round_trip_us(&address, ("bench", "bench")).with_context(|| format!("single orders into {}", self.name))
    }

    fn measure_one(&self, shape: Shape, seconds: u32, scratch: &Path) -> anyhow::Result<Seen> {
        let (acceptor, address) = self.start(shape.0, scratch)?;
        let id = acceptor.0.id();
        load(&address, &[("bench".to_owned(), "bench".to_owned())], shape, seconds, || processes::cpu_us_of(id))
            .with_context(|| format!("the load of {}", self.name))
    }

    /// An acceptor for so many sessions, and where it listens.
    fn start(&self, sessions: usize, scratch: &Path) -> anyhow::Result<(Acceptor, String)> {
        let address = free_address()?;
        let port = address.rsplit(':').next().unwrap_or_default();
        let mut command = Command::new(&self.program);
        // quickfix-rs ends with its input, so it has one.
        command.arg(port).arg(sessions.to_string()).arg(scratch).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Acceptor(command.spawn().with_context(|| format!("starting the acceptor on {}", self.name))?);
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().context("the output of the acceptor")?).read_line(&mut line)?;
        ensure!(line.trim() == "listening", "the acceptor on {} said {line:?}", self.name);
        Ok((child, address))
    }
}
