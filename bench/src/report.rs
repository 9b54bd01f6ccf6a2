//! What a bench found out: a table for people, and `bench/results/NAME.json` for everything else.
//!
//! ```
//! use walras_bench::report::{Figure, PeerFigure, Report, Unit};
//!
//! let mut report = Report::begin("example");
//! let peer = PeerFigure::new("another book", 80.0, Unit::Ns, "same stream, same call, median of 5 rounds");
//! report.figure(Figure::new("book_ns", 20.0, Unit::Ns).against(peer).bar(30.0));
//! assert_eq!(report.figures()[0].ratio, Some(4.0));
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::statistics::median;
use walras_figures::machine::{Commit, Load, LoadWatch, Machine, now_utc};

/// What a figure counts in, and so which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Nanoseconds: less is better.
    #[serde(rename = "ns")]
    Ns,
    /// Microseconds: less is better.
    #[serde(rename = "us")]
    Us,
    /// Milliseconds: less is better.
    #[serde(rename = "ms")]
    Ms,
    /// Seconds: less is better.
    #[serde(rename = "s")]
    S,
    /// Million operations per second: more is better.
    #[serde(rename = "mops")]
    Mops,
    /// Operations per second: more is better.
    #[serde(rename = "per_s")]
    PerS,
    /// Per cent of what there is to get right: more is better.
    #[serde(rename = "percent")]
    Percent,
    /// Per cent of what went wrong: less is better.
    #[serde(rename = "percent_wrong")]
    PercentWrong,
    /// The part of what there is, 1 for all: more is better.
    #[serde(rename = "fraction")]
    Fraction,
    /// How many were got right: more is better.
    #[serde(rename = "count")]
    Count,
    /// How many times faster than the peer: more is better.
    #[serde(rename = "times")]
    TimesFaster,
    /// How many failed: fewer are better.
    #[serde(rename = "failures")]
    Failures,
    /// Questions asked: fewer are better.
    #[serde(rename = "queries")]
    Queries,
    /// Machine instructions: fewer are better.
    #[serde(rename = "instructions")]
    Instructions,
    /// Thousand transactions per second: more is better.
    #[serde(rename = "ktps")]
    Ktps,
    /// Bytes of memory or messages: fewer are better.
    #[serde(rename = "bytes")]
    Bytes,
    /// Mebibytes of memory: fewer are better.
    #[serde(rename = "mib")]
    Mib,
    /// By what share of a target it is missed, 0.01 for a hundredth: less is better.
    #[serde(rename = "share")]
    Share,
    /// How many times what it is without a burden: less is better.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Unit {
    /// Its name in tables and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::TimesFaster => "times",
            Self::Failures => "failures",
            Self::Queries => "queries",
            Self::S => "s",
            Self::Mops => "mops",
            Self::PerS => "per_s",
            Self::Percent => "percent",
            Self::PercentWrong => "percent_wrong",
            Self::Fraction => "fraction",
            Self::Count => "count",
            Self::Instructions => "instructions",
            Self::Ktps => "ktps",
            Self::Bytes => "bytes",
            Self::Mib => "mib",
            Self::Share => "share",
            Self::Ratio => "ratio",
        }
    }

    const fn less_is_better(self) -> bool {
        match self {
            Self::Ns | Self::Us | Self::Ms | Self::S | Self::Failures | Self::Queries | Self::Instructions => true,
            Self::Bytes | Self::Mib | Self::Share | Self::Ratio | Self::PercentWrong => true,
            Self::Mops | Self::PerS | Self::Percent | Self::Fraction | Self::Count | Self::TimesFaster | Self::Ktps => false,
        }
    }

    /// How many times better `ours` is than `theirs`.
    fn ratio(self, ours: f64, theirs: f64) -> f64 {
        if self.less_is_better() { theirs / ours } else { ours / theirs }
    }
}

/// The same measured of somebody else's work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerFigure {
    /// Who.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what; the same as ours.
    pub unit: Unit,
    /// Measured how, by whom, where.
    pub how: String,
}

impl PeerFigure {
    /// A peer's figure.
    #[must_use]
    pub fn new(name: impl Into<String>, value: f64, unit: Unit, how: impl Into<String>) -> Self {
        Self { name: name.into(), value: rounded(value), unit, how: how.into() }
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name, unit last.
    pub metric: String,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: Unit,
    /// The best peer's figure, measured in the same run, else published; `None` if there is none.
    pub peer: Option<PeerFigure>,
    /// How many times better than the peer: above 1 is better, whatever the unit.
    pub ratio: Option<f64>,
    #[serde(skip)]
    bar: Option<f64>,
}

impl Figure {
    /// A figure without a peer.
    #[must_use]
    pub fn new(metric: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { metric: metric.into(), value: rounded(value), unit, peer: None, ratio: None, bar: None }
    }

    /// Compares it with a peer's, in the same unit.
    #[must_use]
    pub fn against(mut self, peer: PeerFigure) -> Self {
        assert_eq!(self.unit, peer.unit, "{}: a peer's figure is compared in the same unit", self.metric);
        self.ratio = Some(rounded(self.unit.ratio(self.value, peer.value)));
        self.peer = Some(peer);
        self
    }

    /// As [`Figure::against`] if there is a peer.
    #[must_use]
    pub fn against_any(self, peer: Option<PeerFigure>) -> Self {
        match peer {
            Some(peer) => self.against(peer),
            None => self,
        }
    }

    /// Sets what it has to reach: at most `bar` where less is better, at least `bar` where more is.
    #[must_use]
    pub fn bar(mut self, bar: f64) -> Self {
        self.bar = Some(bar);
        self
    }
}

/// Three decimals are more than any clock here is good for.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// What a figure has to reach, and whether it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Bar {
    metric: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<f64>,
    met: bool,
}

/// What is written, field by field in this order.
#[derive(Serialize)]
struct File<'a> {
    name: &'a str,
    date: &'a str,
    commit: &'a Commit,
    machine: &'a Machine,
    load: &'a Load,
    rounds: usize,
    checks: &'a [String],
    notes: &'a [String],
    ratio_means: &'static str,
    figures: &'a [Figure],
    bars: Vec<Bar>,
    samples: &'a BTreeMap<String, Vec<f64>>,
}

const RATIO_MEANS: &str = "how many times better than the peer: above 1 is better, whatever the unit";

/// Others' share of the processors from which on a run is not worth publishing.
const QUIET_PERCENT_MAX: f64 = 5.0;

/// Collects figures. Begin it before measuring: it watches what else the machine does meanwhile.
#[derive(Debug)]
pub struct Report {
    name: String,
    date: String,
    watch: LoadWatch,
    rounds: usize,
    required: &'static [&'static str],
    checks: Vec<String>,
    notes: Vec<String>,
    figures: Vec<Figure>,
    samples: BTreeMap<String, Vec<f64>>,
}

impl Report {
    /// A report named after its bench.
    #[must_use]
    pub fn begin(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            date: now_utc(),
            watch: LoadWatch::begin(),
            rounds: 0,
            required: &[],
            checks: Vec::new(),
            notes: Vec::new(),
            figures: Vec::new(),
            samples: BTreeMap::new(),
        }
    }

    /// Says how many rounds the figures are medians of.
    pub fn rounds(&mut self, rounds: usize) {
        self.rounds = rounds;
    }

    /// Says without which metrics nothing may be written.
    pub fn require(&mut self, metrics: &'static [&'static str]) {
        self.required = metrics;
    }

    /// Adds a figure.
    pub fn figure(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Adds what was measured in each round, and gives its median.
    pub fn samples(&mut self, metric: impl Into<String>, samples: Vec<f64>) -> f64 {
        let median = median(&samples);
        self.samples.insert(metric.into(), samples.into_iter().map(rounded).collect());
        median
    }

    /// Adds an answer that was found right. A wrong one is an error: then there is nothing to report.
    pub fn check(&mut self, check: impl Into<String>) {
        let check = check.into();
        eprintln!("  checked: {check}");
        self.checks.push(check);
    }

    /// Adds what a reader of the figures must know, and says it aloud now.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        eprintln!("  NOTE: {note}");
        self.notes.push(note);
    }

    /// Takes over figures of another bench's results, as far as they are there, and says of which run they are.
    ///
    /// # Errors
    /// When the file is not one of results.
    pub fn carry(&mut self, file: &Path, metrics: &[&str]) -> anyhow::Result<()> {
        self.carry_by(file, metrics, |metric, name| metric == name)
    }

    /// As [`Self::carry`], for figures of which a file may have several, of runs with other numbers of accounts: the metrics end in these,
    /// as `accounts_held_1m_accounts` does. Takes over the largest.
    ///
    /// # Errors
    /// As [`Self::carry`].
    pub fn carry_most(&mut self, file: &Path, metrics: &[&str]) -> anyhow::Result<()> {
        let of_accounts = |rest: &str| rest.is_empty() || (rest.starts_with('_') && rest.ends_with("_accounts"));
        self.carry_by(file, metrics, |metric, name| metric.strip_prefix(name).is_some_and(of_accounts))
    }

    /// Of the figures that are each metric's, the largest.
    fn carry_by(&mut self, file: &Path, metrics: &[&str], is_of: impl Fn(&str, &str) -> bool) -> anyhow::Result<()> {
        let Ok(text) = std::fs::read_to_string(file) else {
            self.note(format!("{} is not there: {} are left out", file.display(), metrics.join(", ")));
            return Ok(());
        };
        let results: serde_json::Value = serde_json::from_str(&text).with_context(|| format!("reading {}", file.display()))?;
        let figures = results["figures"].as_array().with_context(|| format!("{} has no figures", file.display()))?;
        let figure = |figure: &serde_json::Value| {
            let unit = [Unit::Ktps, Unit::Count, Unit::Mib].into_iter().find(|unit| figure["unit"] == unit.name())?;
            Some((figure["metric"].as_str()?.to_owned(), figure["value"].as_f64()?, unit))
        };
        let known: Vec<(String, f64, Unit)> = figures.iter().filter_map(figure).collect();
        let (mut carried, mut missing) = (Vec::new(), Vec::new());
        for metric in metrics {
            let of_metric = known.iter().filter(|(name, ..)| is_of(name, metric));
            match of_metric.max_by(|a, b| a.1.total_cmp(&b.1)) {
                Some((name, value, unit)) => {
                    carried.push(if name == metric { name.clone() } else { format!("{metric} ({name} there)") });
                    self.figure(Figure::new(*metric, *value, *unit));
                }
                None => missing.push(*metric),
            }
        }
        let (date, commit) = (&results["date"], &results["commit"]["id"]);
        if !carried.is_empty() {
            self.note(format!("{} are of {}, a run of {date} at {commit}", carried.join(", "), file.display()));
        }
        if !missing.is_empty() {
            self.note(format!("{} has no {}: they are left out", file.display(), missing.join(", ")));
        }
        Ok(())
    }

    /// The figures so far.
    #[must_use]
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Prints the table and, where a folder is given, writes NAME.json into it. Fails where that would lack a required metric.
    pub fn finish(mut self, folder: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
        let load = self.watch.end();
        if load.others_cpu_percent > QUIET_PERCENT_MAX {
            let busy = format!(
                "the machine was busy: others took {:.1} % of its processors; measure again on a quiet one before publishing",
                load.others_cpu_percent
            );
            self.note(busy);
        }
        print!("{}", self.table());
        let Some(folder) = folder else { return Ok(None) };
        let is_there = |metric: &str| self.figures.iter().any(|figure| figure.metric == metric);
        let missing: Vec<&str> = self.required.iter().copied().filter(|metric| !is_there(metric)).collect();
        ensure!(
            missing.is_empty(),
            "{}.json was not written, because it has to hold {}, which this run did not measure; see its notes, mend what they name, and run it again",
            self.name,
            missing.join(", ")
        );
        let bars = self.figures.iter().filter_map(bar_of).collect();
        let file = File {
            name: &self.name,
            date: &self.date,
            commit: &Commit::current(),
            machine: &Machine::current(),
            load: &load,
            rounds: self.rounds,
            checks: &self.checks,
            notes: &self.notes,
            ratio_means: RATIO_MEANS,
            figures: &self.figures,
            bars,
            samples: &self.samples,
        };
        let path = folder.join(format!("{}.json", self.name));
        let text = serde_json::to_string_pretty(&file)? + "\n";
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("writing {}; check that the folder is yours and its disk has space", path.display()))?;
        println!("\nwritten to {}", path.display());
        Ok(Some(path))
    }

    fn table(&self) -> String {
        use std::fmt::Write;
        let mut table = format!("\n{} (median of {} rounds)\n\n", self.name, self.rounds);
        let width = self.figures.iter().map(|figure| figure.metric.len()).max().unwrap_or(0).max(6);
        let mut line = |columns: [&str; 6]| {
            let [metric, value, unit, bar, ratio, peer] = columns;
            let line = format!("{metric:width$}  {value:>10} {unit:<12} {bar:>9}  {ratio:>8}  {peer}");
            writeln!(table, "{}", line.trim_end()).expect("a string takes all");
        };
        line(["metric", "value", "unit", "bar", "ratio", "peer"]);
        for figure in &self.figures {
            let bar = figure.bar.map_or(String::new(), |bar| {
                let sign = if figure.unit.less_is_better() { "<=" } else { ">=" };
                format!("{sign}{bar} {}", if meets(figure, bar) { "y" } else { "N" })
            });
            let peer = figure.peer.as_ref().map_or(String::new(), |peer| format!("{} {}", peer.value, peer.name));
            let ratio = figure.ratio.map_or(String::new(), |ratio| format!("{ratio:.2}x"));
            line([&figure.metric, &format!("{:.2}", figure.value), figure.unit.name(), &bar, &ratio, &peer]);
        }
        table
    }
}

fn meets(figure: &Figure, bar: f64) -> bool {
    if figure.unit.less_is_better() { figure.value <= bar } else { figure.value >= bar }
}

fn bar_of(figure: &Figure) -> Option<Bar> {
    let bar = figure.bar?;
    let less = figure.unit.less_is_better();
    Some(Bar {
        metric: figure.metric.clone(),
        at_most: less.then_some(bar),
        at_least: (!less).then_some(bar),
        met: meets(figure, bar),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_is_above_one_whatever_the_unit() {
        let quick = Figure::new("a_ns", 20.0, Unit::Ns).against(PeerFigure::new("p", 50.0, Unit::Ns, "h"));
        let busy = Figure::new("a_mops", 20.0, Unit::Mops).against(PeerFigure::new("p", 50.0, Unit::Mops, "h"));
        assert_eq!((quick.ratio, busy.ratio), (Some(2.5), Some(0.4)));
        assert_eq!(bar_of(&quick.bar(30.0)).map(|bar| (bar.at_most, bar.at_least, bar.met)), Some((Some(30.0), None, true)));
        assert_eq!(bar_of(&busy.bar(30.0)).map(|bar| (bar.at_most, bar.at_least, bar.met)), Some((None, Some(30.0), false)));
    }

    #[test]
    fn what_is_written_has_the_documented_keys() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("small");
        report.rounds(3);
        assert_eq!(report.samples("x_ns", vec![3.0, 1.0, 2.0]), 2.0);
        report.figure(Figure::new("x_ns", 2.0, Unit::Ns).bar(3.0));
        report.figure(Figure::new("y_us", 2.0, Unit::Us).against(PeerFigure::new("peer", 4.0, Unit::Us, "published")));
        let path = report.finish(Some(folder.path())).unwrap().unwrap();
        let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let [x, y] = &json["figures"].as_array().unwrap()[..] else { panic!("two figures: {json}") };
        let keys = |figure: &serde_json::Value| figure.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(x), ["metric", "peer", "ratio", "unit", "value"]);
        assert_eq!(keys(y), keys(x));
        assert!(x["peer"].is_null() && x["ratio"].is_null());
        assert_eq!((&y["ratio"], &y["peer"]["name"]), (&2.0.into(), &"peer".into()));
        assert_eq!((&json["rounds"], &json["bars"][0]["met"]), (&3.into(), &true.into()));
        for key in ["date", "commit", "machine", "load", "checks", "notes", "samples"] {
            assert!(!json[key].is_null(), "{key} is missing: {json}");
        }
    }

    #[test]
    fn what_several_runs_held_is_carried_as_the_most_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut standing = Report::begin("standing");
        for (metric, value) in [
            ("offers_held", 9_912_233.0),
            ("accounts_held", 117_610.0),
            ("accounts_held_1k_accounts", 2_765.0),
            ("accounts_held_1m_accounts", 1_001_391.0),
            ("accounts_held_memory_mib", 5e9),
        ] {
            standing.figure(Figure::new(metric, value, Unit::Count));
        }
        let path = standing.finish(Some(folder.path())).unwrap().unwrap();
        let mut report = Report::begin("batch");
        report.carry_most(&path, &["offers_held", "accounts_held", "pools_held"]).unwrap();
        report.carry(&path, &["accounts_held"]).unwrap();
        let figures = |report: &Report| -> Vec<(String, f64)> {
            report.figures().iter().map(|figure| (figure.metric.clone(), figure.value)).collect()
        };
        let named = |metric: &str, value| (metric.to_owned(), value);
        let expected = [named("offers_held", 9_912_233.0), named("accounts_held", 1_001_391.0), named("accounts_held", 117_610.0)];
        assert_eq!(figures(&report), expected);
        assert!(report.notes[0].contains("accounts_held (accounts_held_1m_accounts there)"), "{:?}", report.notes);
        assert!(report.notes[1].contains("has no pools_held"), "{:?}", report.notes);
    }

    #[test]
    fn a_file_without_what_it_must_hold_is_not_written() {
        let report = |metric: &str| {
            let mut report = Report::begin("small");
            report.require(&["x_ns", "y_ns"]);
            report.figure(Figure::new("x_ns", 2.0, Unit::Ns));
            report.figure(Figure::new(metric, 2.0, Unit::Ns));
            report
        };
        let folder = tempfile::tempdir().unwrap();
        let refused = report("z_ns").finish(Some(folder.path())).unwrap_err().to_string();
        assert!(refused.contains("has to hold y_ns,"), "{refused}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(report("z_ns").finish(None).unwrap().is_none());
        assert!(report("y_ns").finish(Some(folder.path())).unwrap().is_some());
    }
}
