//! What a run leaves behind: results with where they come from, every iteration's latency, a plot.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use crate::books::Contender;
use crate::large_sell::{self, Met};
use crate::matching_pair;
use crate::measure::Stopwatch;
use crate::peer;
use crate::plot;
use crate::stats::{Summary, quantile_of_sorted, sorted, tenths};

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
    timer_overhead_ns: f64,
    load_average_before: String,
    seed: u64,
    #[serde(skip)]
    processors: Processors,
}

/// What the processors did until now, in the system's ticks.
#[derive(Clone, Copy, Debug)]
struct Processors {
    all: u64,
    busy: u64,
    /// This process and the children that it has waited for.
    own: u64,
}

impl Processors {
    fn look() -> anyhow::Result<Self> {
        let numbers = |text: &str| -> Vec<u64> { text.split_whitespace().filter_map(|word| word.parse().ok()).collect() };
        let stat = read("/proc/stat")?;
        // User, nice, system, idle, waiting for a disk, interrupts, soft interrupts, stolen.
        let all = numbers(stat.lines().next().unwrap_or_default().trim_start_matches("cpu"));
        let own = read("/proc/self/stat")?;
        // The name before it may hold anything. Times are the 14th to the 17th field of the line, the state after the name is the 3rd.
        let after_name = own.rsplit(')').next().unwrap_or_default();
        let times: Vec<u64> = after_name.split_whitespace().skip(11).take(4).filter_map(|word| word.parse().ok()).collect();
        ensure!(
            all.len() >= 8 && times.len() == 4,
            "/proc/stat is not as expected: the experiments describe their machine, and need Linux for it"
        );
        let total: u64 = all[..8].iter().sum();
        Ok(Self { all: total, busy: total - all[3] - all[4], own: times.iter().sum() })
    }

    /// Percent of all processors' time that others took meanwhile, the host included.
    fn others_percent(self, later: Self) -> f64 {
        let busy = (later.busy - self.busy).saturating_sub(later.own - self.own);
        tenths(100.0 * busy as f64 / (later.all - self.all).max(1) as f64)
    }
}

impl Origin {
    /// Asks the machine and the repository.
    pub fn look(stopwatch: &Stopwatch, seed: u64) -> anyhow::Result<Self> {
        let code = ["--", "core", "protocol", "edge", "experiments/raft-2021/src", "Cargo.toml", "Cargo.lock"];
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
            timer_overhead_ns: tenths(stopwatch.overhead_ns),
            load_average_before: load_average()?,
            seed,
            processors: Processors::look()?,
        })
    }
}

/// One figure's folder.
#[derive(Debug)]
pub struct Record {
    /// The folder's name.
    pub figure: &'static str,
    /// Ours beside the published.
    pub result: Value,
    /// A line per iteration and book.
    pub iterations_csv: String,
    /// The figure.
    pub plot_svg: String,
}

impl Record {
    /// Writes `result.json`, `iterations.csv` and `plot.svg`.
    pub fn write(&self, origin: &Origin, experiments: &Path) -> anyhow::Result<()> {
        ensure!(!cfg!(debug_assertions), "figures of a debug build are worth nothing: run with --release, or with --small");
        let folder = experiments.join(self.figure);
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}: is its parent writable?", folder.display()))?;
        let mut result = json!({ "figure": self.figure });
        result["result"] = self.result.clone();
        result["origin"] = serde_json::to_value(origin)?;
        result["origin"]["load_average_after"] = load_average()?.into();
        result["origin"]["others_cpu_percent"] = origin.processors.others_percent(Processors::look()?).into();
        let text = serde_json::to_string_pretty(&result)? + "\n";
        for (name, content) in [("result.json", &text), ("iterations.csv", &self.iterations_csv), ("plot.svg", &self.plot_svg)] {
            let path = folder.join(name);
            std::fs::write(&path, content)
                .with_context(|| format!("writing {}: is it writable, and is there room?", path.display()))?;
        }
        Ok(())
    }
}

/// Fig-4.2.
pub fn matching_pair(setup: &matching_pair::Setup, outcome: &matching_pair::Outcome) -> anyhow::Result<Record> {
    let published = |contender: Contender| match contender {
        Contender::BaselineCheck => json!({ "mean": 8_700, "ci95_low": 8_250, "ci95_high": 9_100 }),
        Contender::Baseline | Contender::Ladder | Contender::Art => Value::Null,
    };
    let mut books = Vec::new();
    let mut csv = "book,iteration,mean_latency_ns,first_latency_ns\n".to_owned();
    for (contender, latencies) in matching_pair::CONTENDERS.into_iter().zip(&outcome.latencies) {
        books.push(json!({
            "book": contender.name(),
            "published_ns": published(contender),
            "ours_ns": Summary::of(&latencies.means_ns).rounded(),
            "ours_first_on_a_new_book_ns": Summary::of(&latencies.first_ns).rounded(),
        }));
        push_lines(&mut csv, &csv_name(contender), &latencies.means_ns, |index| format!(",{:.1}", latencies.first_ns[index]));
    }
    let result = json!({
        "orders_per_side": setup.orders_per_side,
        "iterations": setup.iterations,
        "pairs_per_iteration": setup.pairs_per_iteration,
        "fills_per_pair": outcome.fills,
        "books": books,
        "published_exchange_core_mean_ns": 1_000,
    });
    Ok(Record { figure: "fig-4.2", result, iterations_csv: csv, plot_svg: plot::matching_pair(outcome)? })
}

/// Fig-4.3.
pub fn peer(setup: &matching_pair::Setup, outcome: &peer::Outcome) -> anyhow::Result<Record> {
    let mut books = vec![json!({
        "book": format!("exchange-core {}, its book alone", outcome.peer_version),
        "published_mean_ns": 1_000,
        "here_ns": outcome.peer,
        "timer_overhead_ns": outcome.peer_timer_ns,
    })];
    let mut csv = "book,share,latency_ns\n".to_owned();
    for (contender, latencies) in &outcome.latencies_ns {
        let in_order = sorted(latencies);
        let at = |share| tenths(quantile_of_sorted(&in_order, share));
        let mean = tenths(Summary::of(latencies).mean);
        let (p50, p90, p99, p999, p9999, max) = (at(0.5), at(0.9), at(0.99), at(0.999), at(0.9999), at(1.0));
        let here = peer::Percentiles { mean, p50, p90, p99, p999, p9999, max };
        books.push(json!({ "book": contender.name(), "published_mean_ns": null, "here_ns": here }));
        for percent in 0..=100 {
            let share = f64::from(percent) / 100.0;
            csv.push_str(&format!("{},{share:.2},{:.1}\n", csv_name(*contender), at(share)));
        }
    }
    let result = json!({
        "orders_per_side": setup.orders_per_side,
        "pairs": setup.pairs_per_iteration,
        "books": books,
    });
    Ok(Record { figure: "fig-4.3", result, iterations_csv: csv, plot_svg: plot::peer(outcome)? })
}

/// Fig-4.5.
pub fn sizes(outcomes: &[large_sell::Outcome]) -> anyhow::Result<Record> {
    let mut csv = "book,orders_per_side,iteration,latency_ns,fills\n".to_owned();
    for outcome in outcomes {
        for (contender, latencies) in large_sell::CONTENDERS.into_iter().zip(&outcome.latencies_ns) {
            let name = format!("{},{}", csv_name(contender), outcome.orders_per_side);
            push_lines(&mut csv, &name, latencies, |index| format!(",{}", outcome.met[index].fills));
        }
    }
    let result = json!({
        "iterations": outcomes.first().map_or(0, |outcome| outcome.met.len()),
        "published": published_sell(),
        "ours": outcomes.iter().map(sell).collect::<Vec<_>>(),
    });
    Ok(Record { figure: "fig-4.5", result, iterations_csv: csv, plot_svg: plot::sizes(outcomes)? })
}

/// Fig-4.6.
pub fn detail(outcome: &large_sell::Outcome) -> anyhow::Result<Record> {
    let mut csv = "book,iteration,latency_ns,fills\n".to_owned();
    for (contender, latencies) in large_sell::CONTENDERS.into_iter().zip(&outcome.latencies_ns) {
        push_lines(&mut csv, &csv_name(contender), latencies, |index| format!(",{}", outcome.met[index].fills));
    }
    let result = json!({ "iterations": outcome.met.len(), "published": published_sell(), "ours": sell(outcome) });
    Ok(Record { figure: "fig-4.6", result, iterations_csv: csv, plot_svg: plot::detail(outcome)? })
}

fn published_sell() -> Value {
    json!({ "baseline_ns": { "low": 5_000, "high": 50_000 }, "optimised_ns": { "low": 40, "high": 200 } })
}

/// One size: what the sell met, and each book's latency.
fn sell(outcome: &large_sell::Outcome) -> Value {
    let mean = |of: fn(&Met) -> f64| tenths(outcome.met.iter().map(of).sum::<f64>() / outcome.met.len() as f64);
    let fills = mean(|met| met.fills as f64);
    let baseline = Summary::of(&outcome.latencies_ns[0]);
    let books: Vec<Value> = large_sell::CONTENDERS
        .into_iter()
        .zip(outcome.latencies_ns.iter().zip(&outcome.controls_ns))
        .map(|(contender, (latencies, controls))| {
            let ours = Summary::of(latencies);
            json!({
                "book": contender.name(),
                "ours_ns": ours.rounded(),
                "mean_ns_per_fill": tenths(ours.mean / fills),
                "control_without_fills_ns": Summary::of(controls).rounded(),
                "times_faster_than_baseline": tenths(baseline.mean / ours.mean),
                "times_faster_than_baseline_by_median": tenths(baseline.median / ours.median),
            })
        })
        .collect();
    json!({
        "orders_per_side": outcome.orders_per_side,
        "bids_before_sell_mean": mean(|met| met.bids as f64),
        "asks_before_sell_mean": mean(|met| met.asks as f64),
        "fills_mean": fills,
        "lots_traded_mean": mean(|met| met.lots as f64),
        "books": books,
    })
}

fn csv_name(contender: Contender) -> String {
    contender.name().replace(',', "")
}

fn push_lines(csv: &mut String, name: &str, latencies: &[f64], rest: impl Fn(usize) -> String) {
    for (index, latency_ns) in latencies.iter().enumerate() {
        csv.push_str(&format!("{name},{index},{:.1}{}\n", latency_ns, rest(index)));
    }
}

fn load_average() -> anyhow::Result<String> {
    Ok(read("/proc/loadavg")?.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

fn read(path: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .with_context(|| format!("reading {path}: the experiments describe their machine, and need Linux for it"))
}

fn said(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(program).args(arguments).current_dir(root).output();
    let output = output.with_context(|| format!("starting {program}: install it, results say where they come from"))?;
    ensure!(output.status.success(), "{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
