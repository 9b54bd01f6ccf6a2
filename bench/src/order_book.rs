//! The book alone: `make bench NAME=order-book`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::ensure;
use walras_order_book::{Art, Ladder, OrderBook, PriceIndex};
use walras_types::SelfTrade;

use crate::clock::Clock;
use crate::driver::{Answer, Ring, answer_of, digest, drive, drive_blind, filled};
use crate::latency::Lowest;
use crate::peer::{ExchangeCore, PeerRun};
use crate::records::{Op, Record};
use crate::report::{Figure, PeerFigure, Report, Unit};
use crate::sharing;
use crate::statistics::{Percentiles, median};
use crate::streams::{self, Scale, Solved, Stream};

/// How to run.
#[derive(Debug)]
pub struct Config {
    /// Rounds; figures are medians over them.
    pub rounds: usize,
    /// How large.
    pub scale: Scale,
    /// Where the streams are put.
    pub streams: PathBuf,
    /// Where exchange data may lie.
    pub data: Option<PathBuf>,
    /// The peer to compare with.
    pub peer: Option<ExchangeCore>,
}

impl Config {
    /// Small, without a peer: to see that it runs and answers right.
    #[must_use]
    pub fn small(streams: &Path) -> Self {
        Self { rounds: 2, scale: Scale::Small, streams: streams.to_owned(), data: None, peer: None }
    }
}

/// Production's rule: what is timed prevents self-trades.
const SELF_TRADE: SelfTrade = SelfTrade::CancelNewest;

/// Rounds that the peer's compiler gets before a measured one.
const PEER_WARMUP: usize = 5;

/// Commands that it gets at least, in more rounds where a stream is short.
const PEER_WARMUP_COMMANDS: usize = 10_000_000;

fn peer_warmup(stream: &Stream) -> usize {
    PEER_WARMUP_COMMANDS.div_ceil(stream.records.len().max(1)).clamp(PEER_WARMUP, 1_000)
}

/// Runs all of it. Fails at the first wrong answer.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    let clock = Clock::calibrated();
    eprintln!("the fenced counter costs {:.1} ns, removed from single times", clock.overhead_ns());
    for make in [small_book, sweeps, growing, million, recorded_hour] {
        make(config, &clock, report)?;
    }
    shares(config, &clock, report)
}

/// W1: throughput of both indexes and the peer, and every command timed alone.
fn small_book(config: &Config, clock: &Clock, report: &mut Report) -> anyhow::Result<()> {
    let recorded = match (&config.data, config.scale) {
        (Some(data), Scale::Full) => streams::recorded(data, &config.streams)?,
        _ => None,
    };
    let stream = match recorded {
        Some(stream) => stream,
        None => {
            report.note(
                "w1 is made by our own generator in the manner of exchange-core's, because ec-workload is in neither WALRAS_DATA \
                 nor ../shared/data: compare it with no published figure",
            );
            streams::churn(config.scale, &config.streams)?
        }
    };
    let times = throughput(config, &stream, 0, true, report)?;
    times.figure("w1_ns", 30.0, report);
    times.art_figure("w1_art_ns", report);
    let peer = peer_latency(config, &stream)?;
    let Some(all) = times.lowest.percentiles(&stream.records, None, clock) else { return Ok(()) };
    let bars = [("p50", None), ("p99", Some(50.0)), ("p999", Some(200.0))];
    for (name, bar) in bars {
        let figure = latency_figure("w1", None, name, &all, peer.as_ref())?;
        report.figure(match bar {
            Some(bar) => figure.bar(bar),
            None => figure,
        });
    }
    for op in Op::ALL {
        let Some(of_kind) = times.lowest.percentiles(&stream.records, Some(op), clock) else { continue };
        for name in ["p50", "p99", "p999"] {
            report.figure(latency_figure("w1", Some(op), name, &of_kind, peer.as_ref())?);
        }
    }
    Ok(())
}

/// W2: throughput, and the cost of a fill in a sweep.
fn sweeps(config: &Config, clock: &Clock, report: &mut Report) -> anyhow::Result<()> {
    let stream = streams::sweeps(config.scale, &config.streams)?;
    let times = throughput(config, &stream, 0, true, report)?;
    times.figure_without_bar("w2_ns", report);
    let (ns, fills) = times.lowest.immediate_ns_and_fills(&stream.records, clock);
    let orders = stream.records.iter().filter(|record| record.op == Op::Ioc).count();
    ensure!(fills > 0, "no sweep of w2 traded, so a fill has no cost; the generator has changed");
    report.check(format!("w2: {orders} immediate orders had {fills} fills, {:.1} each", fills as f64 / orders as f64));
    let peer = match peer_latency(config, &stream)? {
        None => None,
        Some(run) => {
            // The peer allows self-trades, so it has a few more fills: those of the stream's answer.
            let its_fills = times.immediate_fills_allowed as f64;
            let value = run.number(&["lowest_of_rounds_less_timer", "ioc", "mean"])? * orders as f64 / its_fills;
            Some(PeerFigure::new(run.name(), value, Unit::Ns, LATENCY_HOW))
        }
    };
    report.figure(Figure::new("sweep_ns_per_fill", ns / fills as f64, Unit::Ns).against_any(peer).bar(12.0));
    Ok(())
}

/// W3: random cancels in a book that outgrows the second-level cache.
fn growing(config: &Config, _: &Clock, report: &mut Report) -> anyhow::Result<()> {
    let stream = streams::growing(config.scale, &config.streams)?;
    let times = throughput(config, &stream, stream.fill, false, report)?;
    times.figure("w3_ns", 30.0, report);
    times.art_figure("w3_art_ns", report);
    times.blind_figure("w3_blind_ns", report);
    Ok(())
}

/// W4: random cancels in a book that outgrows every cache.
fn million(config: &Config, _: &Clock, report: &mut Report) -> anyhow::Result<()> {
    let stream = streams::million(config.scale, &config.streams)?;
    let times = throughput(config, &stream, stream.fill, false, report)?;
    times.figure("w4_ns", 75.0, report);
    times.art_figure("w4_art_ns", report);
    times.blind_figure("w4_blind_ns", report);
    Ok(())
}

/// AAPL: an hour as it was recorded.
fn recorded_hour(config: &Config, _: &Clock, report: &mut Report) -> anyhow::Result<()> {
    let found = match (&config.data, config.scale) {
        (Some(data), Scale::Full) => streams::recorded_hour(data, &config.streams)?,
        _ => None,
    };
    let Some(stream) = found else {
        report.note("aapl_ns is missing: lobster is in neither WALRAS_DATA nor ../shared/data");
        return Ok(());
    };
    let times = throughput(config, &stream, 0, false, report)?;
    if config.peer.is_some() {
        report.check(format!("aapl: {} came to the same fills, volume and levels as ours", times.peer_name));
        report.samples(format!("aapl_ns, {}", times.peer_name), times.peer_ns.clone());
    }
    times.figure_without_bar("aapl_ns", report);
    times.art_figure("aapl_art_ns", report);
    Ok(())
}

/// A stream's rounds.
struct Times {
    ladder_ns: Vec<f64>,
    art_ns: Vec<f64>,
    /// The ladder's, without look-ahead.
    blind_ns: Vec<f64>,
    peer_ns: Vec<f64>,
    peer_name: String,
    lowest: Lowest,
    /// Fills of the immediate orders where self-trades are allowed.
    immediate_fills_allowed: u64,
}

impl Times {
    fn peer(&self) -> Option<PeerFigure> {
        let how = "same stream, same call, interleaved, its events read, self-trades allowed; median";
        (!self.peer_ns.is_empty()).then(|| PeerFigure::new(&self.peer_name, median(&self.peer_ns), Unit::Ns, how))
    }

    fn figure(&self, metric: &str, bar: f64, report: &mut Report) {
        let value = report.samples(metric, self.ladder_ns.clone());
        report.figure(Figure::new(metric, value, Unit::Ns).against_any(self.peer()).bar(bar));
        if !self.peer_ns.is_empty() {
            report.samples(format!("{metric}, {}", self.peer_name), self.peer_ns.clone());
        }
    }

    fn figure_without_bar(&self, metric: &str, report: &mut Report) {
        self.other_figure(metric, &self.ladder_ns, report);
    }

    fn art_figure(&self, metric: &str, report: &mut Report) {
        self.other_figure(metric, &self.art_ns, report);
    }

    fn blind_figure(&self, metric: &str, report: &mut Report) {
        self.other_figure(metric, &self.blind_ns, report);
    }

    fn other_figure(&self, metric: &str, samples: &[f64], report: &mut Report) {
        let value = report.samples(metric, samples.to_vec());
        report.figure(Figure::new(metric, value, Unit::Ns).against_any(self.peer()));
    }
}

/// Runs a stream on both indexes and the peer, a round of each in turn. The first `untimed` commands are not timed. `alone` adds a
/// pass per round that times every command alone.
fn throughput(config: &Config, stream: &Stream, untimed: usize, alone: bool, report: &mut Report) -> anyhow::Result<Times> {
    eprintln!("{}", stream.origin);
    let solved = stream.solve()?;
    check::<Ladder>("ladder", stream, &solved)?;
    check::<Art>("radix tree", stream, &solved)?;
    report.check(format!(
        "{}: every fill, in order, and the book left equal the plain book's, with self-trades allowed (the stream's own answer: {}) and \
         prevented ({}), with both indexes; every round equal again",
        stream.label, stream.expected, solved.cancel_newest.0
    ));
    let mut times = Times {
        ladder_ns: Vec::new(),
        art_ns: Vec::new(),
        blind_ns: Vec::new(),
        peer_ns: Vec::new(),
        peer_name: String::new(),
        lowest: Lowest::new(if alone { stream.records.len() } else { 0 }),
        immediate_fills_allowed: immediate_fills(stream),
    };
    let right = solved.cancel_newest.0;
    for round in 1..=config.rounds {
        let ladder_ns = timed::<Ladder>(stream, untimed, right, drive)?;
        let art_ns = timed::<Art>(stream, untimed, right, drive)?;
        let blind_ns = timed::<Ladder>(stream, untimed, right, drive_blind)?;
        times.ladder_ns.push(ladder_ns);
        times.art_ns.push(art_ns);
        times.blind_ns.push(blind_ns);
        if alone {
            let answer = times.lowest.pass::<Ladder>(&stream.records, SELF_TRADE);
            ensure_right(stream, "ladder, timed alone", answer, right)?;
        }
        let mut line =
            format!("  round {round}: ladder {ladder_ns:.1} ns, radix tree {art_ns:.1} ns, ladder blind {blind_ns:.1} ns");
        if let Some(peer) = &config.peer {
            let options = [("--warmup", peer_warmup(stream)), ("--rounds", 1), ("--untimed", untimed)];
            let run = peer.run("book-direct", &stream.file, &options)?;
            let peer_ns = run.number(&["median"])?;
            times.peer_ns.push(peer_ns);
            times.peer_name = run.name();
            line += &format!(", {} {peer_ns:.1} ns", times.peer_name);
        }
        eprintln!("{line}");
    }
    Ok(times)
}

/// Compares every fill and the book left with the plain book's.
fn check<I: PriceIndex>(index: &str, stream: &Stream, solved: &Solved) -> anyhow::Result<()> {
    for (self_trade, (right, fills)) in [(SelfTrade::Allow, solved.allow), (SELF_TRADE, solved.cancel_newest)] {
        let (answer, digest) = digest::<I>(&stream.records, self_trade);
        ensure_right(stream, index, answer, right)?;
        ensure!(
            digest == fills,
            "{}, {index}, {self_trade:?}: the totals are right, but a fill has other parties, price or size than the plain book's",
            stream.label
        );
    }
    Ok(())
}

fn ensure_right(stream: &Stream, index: &str, answer: Answer, right: Answer) -> anyhow::Result<()> {
    ensure!(answer == right, "{}, {index}: a wrong answer: {answer}; right is {right}", stream.label);
    Ok(())
}

/// A loop that carries out commands.
type Drive<I> = fn(&mut OrderBook<I>, &mut Ring, &[Record], usize, SelfTrade) -> u64;

/// Nanoseconds per command of one run.
fn timed<I: PriceIndex>(stream: &Stream, untimed: usize, right: Answer, drive: Drive<I>) -> anyhow::Result<f64> {
    let (mut book, mut ring, mut refused) = filled::<I>(&stream.records, untimed, SELF_TRADE);
    let started = Instant::now();
    refused += drive(&mut book, &mut ring, &stream.records, untimed, SELF_TRADE);
    let elapsed = started.elapsed();
    std::hint::black_box(&ring);
    ensure_right(stream, std::any::type_name::<I>(), answer_of(&book, &ring, refused), right)?;
    Ok(elapsed.as_nanos() as f64 / (stream.records.len() - untimed) as f64)
}

/// Fills of the immediate orders when self-trades are allowed.
fn immediate_fills(stream: &Stream) -> u64 {
    let mut fills = Lowest::new(stream.records.len());
    fills.pass::<Ladder>(&stream.records, SelfTrade::Allow);
    fills.immediate_ns_and_fills(&stream.records, &Clock::calibrated()).1
}

const LATENCY_HOW: &str =
    "same stream, same call; each command timed alone, its lowest of five passes, the cost of its clock removed";

fn peer_latency(config: &Config, stream: &Stream) -> anyhow::Result<Option<PeerRun>> {
    let Some(peer) = &config.peer else { return Ok(None) };
    let options = [("--warmup", PEER_WARMUP), ("--rounds", config.rounds)];
    peer.run("book-latency", &stream.file, &options).map(Some)
}

fn latency_figure(stream: &str, op: Option<Op>, name: &str, ours: &Percentiles, peer: Option<&PeerRun>) -> anyhow::Result<Figure> {
    let value = match name {
        "p50" => ours.p50,
        "p99" => ours.p99,
        _ => ours.p999,
    };
    let metric = match op {
        None => format!("{stream}_{name}_ns"),
        Some(op) => format!("{stream}_{}_{name}_ns", op.name()),
    };
    let peer = match peer {
        None => None,
        Some(run) => {
            let value = run.number(&["lowest_of_rounds_less_timer", op.map_or("all", Op::name), name])?;
            Some(PeerFigure::new(run.name(), value, Unit::Ns, LATENCY_HOW))
        }
    };
    Ok(Figure::new(metric, value, Unit::Ns).against_any(peer))
}

/// One order shared among 16.
fn shares(config: &Config, clock: &Clock, report: &mut Report) -> anyhow::Result<()> {
    let repetitions = if config.scale == Scale::Full { 10_000 } else { 100 };
    eprintln!("one order shared among {}: {repetitions} times a round", sharing::ORDERS);
    let mut means: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for _ in 0..config.rounds {
        for (name, allocation) in sharing::allocations() {
            let samples = sharing::round::<Ladder>(allocation, repetitions, clock, SELF_TRADE)?;
            means.entry(name).or_default().push(samples.iter().sum::<f64>() / samples.len() as f64);
        }
    }
    report.check("sharing: every share of every repetition equals the one worked out by 128-bit division");
    for (name, _) in sharing::allocations() {
        let metric = format!("{name}_ns");
        let value = report.samples(&metric, means.remove(name).expect("every allocation was run"));
        let figure = Figure::new(metric, value, Unit::Ns);
        report.figure(match name {
            "pro_rata_16" => figure.against(published_pro_rata()).bar(250.0),
            _ => figure,
        });
    }
    Ok(())
}

/// The only open book found that shares pro rata and says how fast.
fn published_pro_rata() -> PeerFigure {
    let how = "published by its author (1.2 to 1.3 us, Apple M1 and M3), not run here";
    PeerFigure::new("trpleo/matching-engine", 1_200.0, Unit::Ns, how)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_has_every_figure_and_right_answers() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("order-book");
        run(&Config::small(folder.path()), &mut report).unwrap();
        let metrics: Vec<&str> = report.figures().iter().map(|figure| figure.metric.as_str()).collect();
        for metric in ["w1_ns", "w1_p99_ns", "w1_p999_ns", "sweep_ns_per_fill", "w3_ns", "w4_ns", "pro_rata_16_ns"] {
            assert!(metrics.contains(&metric), "{metric} is missing from {metrics:?}");
        }
        assert!(report.figures().iter().all(|figure| figure.value.is_finite() && figure.value >= 0.0));
    }

    #[test]
    fn a_wrong_answer_fails_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = streams::churn(Scale::Small, folder.path()).unwrap();
        let solved = stream.solve().unwrap();
        check::<Ladder>("ladder", &stream, &solved).unwrap();
        let right = solved.cancel_newest.0;
        timed::<Ladder>(&stream, 0, right, drive).unwrap();
        // One lot more in the last order, which rests.
        let at = stream.records.iter().rposition(|record| record.op == Op::Gtc).unwrap();
        stream.records[at] = Record { size: stream.records[at].size + 1, ..stream.records[at] };
        assert!(stream.solve().unwrap_err().to_string().contains("no figure of it counts"));
        assert!(check::<Ladder>("ladder", &stream, &solved).unwrap_err().to_string().contains("a wrong answer"));
        assert!(timed::<Ladder>(&stream, 0, right, drive).is_err());
    }

    #[test]
    fn a_fill_with_another_party_is_found_though_totals_are_right() {
        let folder = tempfile::tempdir().unwrap();
        let stream = streams::sweeps(Scale::Small, folder.path()).unwrap();
        let mut solved = stream.solve().unwrap();
        assert_ne!(solved.allow.1, crate::driver::FillDigest::default());
        solved.allow.1.add(1, 2, 3, 4);
        assert!(check::<Ladder>("ladder", &stream, &solved).unwrap_err().to_string().contains("other parties"));
    }
}
