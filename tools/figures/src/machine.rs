//! What a figure was measured on: the machine, the commit, and what else ran meanwhile.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The machine. What it does not tell is "unknown".
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    cpu: String,
    /// As the system says: virtual machines of one name differ.
    cpu_mhz: f64,
    cores: usize,
    memory_gib: f64,
    kernel: String,
    /// Whether the system gives large pages to who asks, see `edge/huge-pages`.
    huge_pages: String,
    compiler: String,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn current() -> Self {
        let memory_kib: f64 = field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0.0);
        Self {
            cpu: field("/proc/cpuinfo", "model name"),
            cpu_mhz: field("/proc/cpuinfo", "cpu MHz").parse::<f64>().map_or(0.0, f64::round),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: (memory_kib / f64::from(1 << 20) * 10.0).round() / 10.0,
            kernel: read("/proc/sys/kernel/osrelease"),
            huge_pages: bracketed(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
            compiler: output("rustc", &["--version"]).unwrap_or_else(unknown),
        }
    }
}

/// What benches and experiments write: all results of a run are of one commit, whichever of them is written first.
const WRITTEN: [&str; 5] = [
    ":(exclude,top)bench/results",
    ":(exclude,top,glob)experiments/*/*/result.json",
    ":(exclude,top,glob)experiments/*/*/iterations.csv",
    ":(exclude,top,glob)experiments/*/*/table.md",
    ":(exclude,top,glob)experiments/*/*/plot.svg",
];

/// The source that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Commit {
    id: String,
    /// Whether anything but what benches and experiments write differs from it.
    dirty: bool,
}

impl Commit {
    /// That of the current folder.
    #[must_use]
    pub fn current() -> Self {
        let id = output("git", &["rev-parse", "HEAD"]).unwrap_or_else(unknown);
        let changes = output("git", &[&["status", "--porcelain", "--", ":/"][..], &WRITTEN].concat());
        Self { id, dirty: changes.is_none_or(|changes| !changes.is_empty()) }
    }
}

/// What the machine did during a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    seconds: f64,
    /// Load average over a minute, before and after; the latter counts this run.
    average_before: f64,
    average_after: f64,
    /// Share of all processors' time that this run and the peers it started took.
    own_cpu_percent: f64,
    /// That other processes took.
    pub others_cpu_percent: f64,
    /// That the host took away.
    stolen_cpu_percent: f64,
    /// Nice value of this session among others; below 0 it comes first.
    autogroup_nice: Option<i32>,
}

/// Watches the machine from its making on.
#[derive(Debug)]
pub struct LoadWatch {
    average: f64,
    times: Times,
    began: std::time::Instant,
}

impl LoadWatch {
    /// Begins to watch.
    #[must_use]
    pub fn begin() -> Self {
        Self { average: load_average(), times: Times::now(), began: std::time::Instant::now() }
    }

    /// What the machine did since.
    #[must_use]
    pub fn end(&self) -> Load {
        let now = Times::now();
        let total = now.total.saturating_sub(self.times.total).max(1) as f64;
        let own = now.own.saturating_sub(self.times.own) as f64;
        let busy = now.busy.saturating_sub(self.times.busy) as f64;
        let stolen = now.stolen.saturating_sub(self.times.stolen) as f64;
        let percent = |ticks: f64| (ticks / total * 1_000.0).round() / 10.0;
        Load {
            seconds: (self.began.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            average_before: self.average,
            average_after: load_average(),
            own_cpu_percent: percent(own),
            others_cpu_percent: percent((busy - own).max(0.0)),
            stolen_cpu_percent: percent(stolen),
            autogroup_nice: read("/proc/self/autogroup").rsplit(' ').next().and_then(|nice| nice.parse().ok()),
        }
    }
}

/// Processor time in clock ticks since the start of the machine, and of this process with its ended children.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    total: u64,
    busy: u64,
    stolen: u64,
    own: u64,
}

impl Times {
    fn now() -> Self {
        let all = numbers(read("/proc/stat").lines().next().unwrap_or_default().trim_start_matches("cpu"));
        // user nice system idle iowait irq softirq steal; what follows is counted in user and nice already.
        let at = |index: usize| all.get(index).copied().unwrap_or(0);
        let idle = at(3) + at(4);
        let total = (0..8).map(at).sum::<u64>();
        // Behind the name in parentheses the state is the first; utime, stime, cutime, cstime are the 12th to the 15th.
        let own_text = read("/proc/self/stat");
        let own = own_text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(4);
        Self { total, busy: total - idle - at(7), stolen: at(7), own: own.filter_map(|word| word.parse::<u64>().ok()).sum() }
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn load_average() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|average| average.parse().ok()).unwrap_or(0.0)
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).map_or_else(|_| unknown(), |text| text.trim().to_owned())
}

/// The value behind `key :` in a file of such lines.
fn field(path: &str, key: &str) -> String {
    let text = read(path);
    let value = text.lines().find_map(|line| Some(line.strip_prefix(key)?.trim_start().strip_prefix(':')?.trim().to_owned()));
    value.unwrap_or_else(unknown)
}

/// Of several words the one in brackets, which the kernel marks so.
fn bracketed(words: &str) -> String {
    let chosen = words.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or_else(|| words.to_owned(), |(chosen, _)| chosen.to_owned())
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The time of day, as in 2026-01-31T23:59:59Z.
#[must_use]
pub fn now_utc() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    utc(seconds)
}

fn utc(seconds: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut days, time) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_798_761_599), "2026-12-31T23:59:59Z");
    }

    #[test]
    fn shares_are_shares() {
        let watch = LoadWatch::begin();
        let load = watch.end();
        for percent in [load.own_cpu_percent, load.others_cpu_percent, load.stolen_cpu_percent] {
            assert!(percent >= 0.0, "{load:?}");
        }
        assert_eq!(bracketed("always [madvise] never"), "madvise");
    }
}
