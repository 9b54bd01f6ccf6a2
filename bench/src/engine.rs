//! The engine with ledger, risk and events: `make bench NAME=engine`.

use std::path::Path;

use anyhow::ensure;
use walras_types::SelfTrade;

use crate::order_book::Config;
use crate::peer::ExchangeCore;
use crate::pipeline;
use crate::report::{Figure, PeerFigure, Report, Unit};
use crate::statistics::Percentiles;
use crate::streams::{self, Scale, Stream};
use crate::venue::{self, Outcome, Session};

/// Commands a second offered, for the latencies.
const RATES: [u64; 3] = [100_000, PUBLISHED_RATE, 5_000_000];

/// The rate for which exchange-core's author publishes latencies.
const PUBLISHED_RATE: u64 = 1_000_000;

/// Runs all of it. Fails at the first wrong answer.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    let stream = stream(config, report)?;
    check(&stream, report)?;
    let session = venue::session(&stream.records, SelfTrade::CancelNewest);
    throughput(config, &stream, &session, report)?;
    latency(config, &session, report)
}

fn stream(config: &Config, report: &mut Report) -> anyhow::Result<Stream> {
    let recorded = match (&config.data, config.scale) {
        (Some(data), Scale::Full) => streams::recorded(data, &config.streams)?,
        _ => None,
    };
    match recorded {
        Some(stream) => Ok(stream),
        None => {
            report.note("the stream is our own generator's: compare it with no published figure");
            streams::churn(config.scale, &config.streams)
        }
    }
}

/// With self-trades allowed the engine must come to the stream's own answer, and otherwise to the plain book's.
fn check(stream: &Stream, report: &mut Report) -> anyhow::Result<()> {
    let solved = stream.solve()?;
    for (self_trade, expected) in [(SelfTrade::Allow, solved.allow.0), (SelfTrade::CancelNewest, solved.cancel_newest.0)] {
        let outcome = venue::session(&stream.records, self_trade).outcome;
        ensure!(
            (outcome.trades, outcome.volume) == (expected.trades, expected.volume),
            "with {self_trade:?} the engine came to {outcome:?}, and should to {expected}"
        );
        report.check(format!(
            "engine, {self_trade:?}: {} trades of {} lots, as the book without accounts",
            outcome.trades, outcome.volume
        ));
    }
    Ok(())
}

/// Serial, over two cores, with a journal; ours and the peer's in turn.
fn throughput(config: &Config, stream: &Stream, session: &Session, report: &mut Report) -> anyhow::Result<()> {
    let directory = config.streams.join("journal");
    let (mut serial, mut memory, mut journal) = (Vec::new(), Vec::new(), Vec::new());
    let (mut peer_memory, mut peer_journal) = (Vec::new(), Vec::new());
    let mut peer_name = String::new();
    for round in 1..=config.rounds {
        eprintln!("round {round} of {}", config.rounds);
        let expect = |(figure, outcome): (f64, Outcome), figures: &mut Vec<f64>| -> anyhow::Result<()> {
            ensure!(outcome == session.outcome, "a run came to {outcome:?}, and the first to {:?}", session.outcome);
            figures.push(figure);
            Ok(())
        };
        expect(venue::serial(session), &mut serial)?;
        expect(pipeline::in_memory(session), &mut memory)?;
        remove(&directory)?;
        expect(pipeline::durable(session, &directory)?, &mut journal)?;
        if let Some(peer) = &config.peer {
            let run = peer.run("pipeline", &stream.file, &[("--warmup", 3), ("--rounds", 1)])?;
            peer_memory.push(run.number(&["median"])?);
            peer_name = run.name();
            peer_journal.push(peer_journal_rate(peer, stream, &directory)?);
        }
    }
    remove(&directory)?;
    let how = |what: &str| format!("{what}, same stream, rounds in turn with ours, median");
    let peer = |rates: Vec<f64>, what: &str, report: &mut Report, metric: &str| {
        (!rates.is_empty()).then(|| PeerFigure::new(peer_name.clone(), report.samples(metric, rates), Unit::Mops, how(what)))
    };
    let ns = report.samples("engine_serial_ns", serial);
    report.figure(Figure::new("engine_serial_ns", ns, Unit::Ns));
    let ours = report.samples("pipeline_mops", memory);
    let theirs = peer(peer_memory, "whole pipeline, margin mode, yielding", report, "pipeline_mops_peer");
    report.figure(Figure::new("pipeline_mops", ours, Unit::Mops).against_any(theirs).bar(14.0));
    let ours = report.samples("journal_mops", journal);
    let theirs = peer(peer_journal, "whole pipeline with its disk journal, first million commands", report, "journal_mops_peer");
    report.figure(Figure::new("journal_mops", ours, Unit::Mops).against_any(theirs).bar(3.0));
    Ok(())
}

fn peer_journal_rate(peer: &ExchangeCore, stream: &Stream, directory: &Path) -> anyhow::Result<f64> {
    remove(directory)?;
    std::fs::create_dir_all(directory)?;
    let run = peer.run_journal(&stream.file, directory, &[("--warmup", 1), ("--rounds", 1)])?;
    run.number(&["median"])
}

fn remove(directory: &Path) -> anyhow::Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(())
}

fn latency(config: &Config, session: &Session, report: &mut Report) -> anyhow::Result<()> {
    for rate in RATES {
        let name = if rate >= 1_000_000 { format!("{}m", rate / 1_000_000) } else { format!("{}k", rate / 1_000) };
        let (mut p50, mut p99, mut p999) = (Vec::new(), Vec::new(), Vec::new());
        let mut echo: [Vec<f64>; 3] = Default::default();
        for _ in 0..config.rounds {
            if rate == PUBLISHED_RATE
                && let Some(found) = Percentiles::of(pipeline::echo_latencies_us(session, rate))
            {
                for (samples, value) in echo.iter_mut().zip([found.p50, found.p99, found.p999]) {
                    samples.push(value);
                }
            }
            let (latencies, outcome) = pipeline::latencies_us(session, rate);
            ensure!(outcome == session.outcome, "at {rate}/s a run came to {outcome:?}, and the first to {:?}", session.outcome);
            let Some(found) = Percentiles::of(latencies) else { continue };
            p50.push(found.p50);
            p99.push(found.p99);
            p999.push(found.p999);
        }
        for (percentile, samples, bar, published) in [("p50", p50, 1.0, 0.5), ("p99", p99, 4.0, 4.0), ("p999", p999, 22.0, 22.0)] {
            let metric = format!("{percentile}_us_at_{name}");
            let figure = Figure::new(metric.clone(), report.samples(metric, samples), Unit::Us);
            report.figure(if rate == PUBLISHED_RATE { figure.against(published_latency(published)).bar(bar) } else { figure });
        }
        for (percentile, samples) in ["p50", "p99", "p999"].into_iter().zip(echo).filter(|(_, samples)| !samples.is_empty()) {
            let metric = format!("echo_{percentile}_us_at_{name}");
            let value = report.samples(metric.clone(), samples);
            report.figure(Figure::new(metric, value, Unit::Us));
        }
    }
    Ok(())
}

/// The peer keeps five threads and its sender busy, so on two processors its own latencies would be the scheduler's.
fn published_latency(us: f64) -> PeerFigure {
    PeerFigure::new("exchange-core (published)", us, Unit::Us, "published by its author, 6 cores, not run here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_has_every_figure_and_right_answers() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::begin("engine");
        run(&Config::small(folder.path()), &mut report).unwrap();
        let metrics: Vec<&str> = report.figures().iter().map(|figure| figure.metric.as_str()).collect();
        for metric in ["pipeline_mops", "journal_mops", "p50_us_at_1m", "p99_us_at_1m", "p999_us_at_1m"] {
            assert!(metrics.contains(&metric), "{metric} is missing from {metrics:?}");
        }
        let peer = |metric: &str| report.figures().iter().find(|figure| figure.metric == metric).and_then(|f| f.peer.clone());
        for (metric, us) in [("p50_us_at_1m", 0.5), ("p99_us_at_1m", 4.0), ("p999_us_at_1m", 22.0)] {
            let peer = peer(metric).expect("its author says");
            assert!(peer.value == us && peer.how.contains("not run here"), "{peer:?}");
        }
        assert!(peer("p50_us_at_100k").is_none(), "nothing is published of that rate");
    }
}
