//! What a run leaves behind: a result with where it comes from, the same as a table, a plot.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::{Value, json};

/// Where figures come from.
#[derive(Debug, Serialize)]
pub struct Origin {
    processor: String,
    cores: usize,
    compiler: String,
    commit: String,
    /// Whether the code differed from the commit.
    uncommitted_changes: bool,
    date: String,
    #[serde(skip)]
    before: Times,
}

/// Ticks of all processors since start: busy, all, and our own.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    busy: u64,
    all: u64,
    own: u64,
}

impl Origin {
    /// Asks the machine and the repository. Load counts from now on.
    pub fn look() -> anyhow::Result<Self> {
        let code = ["--", "core", "edge", "experiments/speedex-2021/src", "Cargo.toml", "Cargo.lock"];
        let changes = said("git", &[&["status", "--porcelain"], &code[..]].concat())?;
        let cpuinfo = read("/proc/cpuinfo")?;
        let processor = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
        Ok(Self {
            processor: processor.map_or("not told", str::trim).to_owned(),
            cores: std::thread::available_parallelism().context("asking for the number of cores")?.get(),
            compiler: said("rustc", &["--version"])?,
            commit: said("git", &["rev-parse", "HEAD"])?,
            uncommitted_changes: !changes.is_empty(),
            date: said("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])?,
            before: times()?,
        })
    }

    /// As JSON, with the load of the machine since the look.
    fn with_load(&self) -> anyhow::Result<Value> {
        let now = times()?;
        let all = (now.all - self.before.all).max(1) as f64;
        let own = (now.own - self.before.own) as f64;
        let others = ((now.busy - self.before.busy) as f64 - own).max(0.0) / all;
        let percent = |share: f64| (share * 1e3).round() / 10.0;
        let mut origin = serde_json::to_value(self)?;
        origin["own_cpu_percent"] = percent(own / all).into();
        origin["others_cpu_percent"] = percent(others).into();
        origin["machine_was_shared"] = (others > 0.05).into();
        origin["autogroup_nice"] = autogroup_nice().into();
        Ok(origin)
    }
}

/// One figure's folder.
#[derive(Debug)]
pub struct Record {
    /// The folder below `experiments/`.
    pub folder: String,
    /// Ours beside the published.
    pub result: Value,
    /// The same as a table in Markdown.
    pub table: String,
    /// The figure, if there was anything to draw.
    pub plot_svg: Option<String>,
}

impl Record {
    /// Writes `result.json`, `table.md` and `plot.svg` below `experiments`.
    pub fn write(&self, origin: &Origin, experiments: &Path) -> anyhow::Result<()> {
        let folder = experiments.join(&self.folder);
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}: is its parent writable?", folder.display()))?;
        let result = json!({ "figure": self.folder, "origin": origin.with_load()?, "result": self.result });
        let mut files = vec![
            ("result.json", serde_json::to_string_pretty(&result)? + "\n"),
            ("table.md", format!("<!-- written by the experiment; run it again instead of editing -->\n{}", self.table)),
        ];
        files.extend(self.plot_svg.clone().map(|plot| ("plot.svg", plot)));
        for (name, content) in files {
            let path = folder.join(name);
            std::fs::write(&path, content)
                .with_context(|| format!("writing {}: is it writable, and is there room?", path.display()))?;
        }
        Ok(())
    }
}

/// Refuses figures of a slow build.
pub fn ensure_release() -> anyhow::Result<()> {
    ensure!(!cfg!(debug_assertions), "figures of a debug build are worth nothing: run with --release, or with --small");
    Ok(())
}

/// The repository's root.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A table in Markdown.
#[must_use]
pub fn markdown(header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---".to_owned(); header.len()];
    [line(header), line(&rule)].into_iter().chain(rows.iter().map(|row| line(row))).collect()
}

fn times() -> anyhow::Result<Times> {
    let stat = read("/proc/stat")?;
    let ticks: Vec<u64> =
        stat.lines().next().unwrap_or("").split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    ensure!(ticks.len() >= 8, "/proc/stat is not what it was: the experiments describe their machine, and need Linux for it");
    // user nice system idle iowait irq softirq steal; guest time is in user time already.
    let all: u64 = ticks[..8].iter().sum();
    let own_stat = read("/proc/self/stat")?;
    let fields: Vec<&str> = own_stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    // After the name: utime, stime, and those of children that ended, are fields 12 to 15.
    let own = fields.get(11..15).unwrap_or(&[]).iter().filter_map(|word| word.parse::<u64>().ok()).sum();
    Ok(Times { busy: all - ticks[3] - ticks[4], all, own })
}

/// Below zero, this session comes before others.
fn autogroup_nice() -> Option<i64> {
    std::fs::read_to_string("/proc/self/autogroup").ok()?.trim().rsplit(' ').next()?.parse().ok()
}

fn read(path: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .with_context(|| format!("reading {path}: the experiments describe their machine, and need Linux for it"))
}

fn said(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).current_dir(repository()).output();
    let output = output.with_context(|| format!("asking {program}: is it installed?"))?;
    ensure!(output.status.success(), "{program} {arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
