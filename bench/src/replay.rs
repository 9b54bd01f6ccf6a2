//! Real history as an oracle: `make bench NAME=replay`.
//!
//! What is measured and how it is judged is `walras_replay`'s; here its figures become a report. Replaying again gives the same
//! counts, so the rounds only serve the timings, whose median is reported; a count that differs between rounds fails the bench.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::ensure;
use walras_replay::{Options, figures};

use crate::report::{Figure, Report, Unit};

/// What the project must at least report, if the data is there.
const PROMISED: [&str; 3] = ["aapl_at_best_percent", "aapl_fifo_head_percent", "sse_snapshots_reproduced"];

/// Replays what is in `data`. A note for what is not.
pub fn run(rounds: usize, data: &Path, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(rounds);
    let mut timings: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut first = Vec::new();
    for round in 1..=rounds {
        let (found, _) = figures(data, &Options::default(), &mut |_, _| {})?;
        eprintln!("  round {round}: {} figures", found.len());
        for figure in found.iter().filter(|figure| unit_of(figure.unit) == Some(Unit::Ns)) {
            timings.entry(figure.metric).or_default().push(figure.value);
        }
        let counts = |figures: &[walras_replay::Figure]| -> Vec<_> {
            figures.iter().filter(|figure| figure.unit != "ns").map(|figure| (figure.metric, figure.value)).collect()
        };
        if round == 1 {
            first = found;
        } else {
            ensure!(
                counts(&first) == counts(&found),
                "round {round} reproduced something else than the first: replay is not deterministic"
            );
        }
    }
    report.check(format!("{rounds} replays of the same files reproduced the same"));
    for promised in PROMISED {
        if !first.iter().any(|figure| figure.metric == promised) {
            report.note(format!(
                "{promised} is missing: its file is not in {}; set WALRAS_DATA to the folder of exchange data",
                data.display()
            ));
        }
    }
    for figure in first {
        let Some(unit) = unit_of(figure.unit) else {
            anyhow::bail!("{} is in {}, a unit that reports do not know; add it to report::Unit", figure.metric, figure.unit);
        };
        let value = match timings.remove(figure.metric) {
            Some(samples) => report.samples(figure.metric, samples),
            None => figure.value,
        };
        let measured = Figure::new(figure.metric, value, unit);
        // What cannot be better than `of` need not reach it: recorded history has gaps. Only what is promised has a bar.
        let is_promised = PROMISED.contains(&figure.metric);
        if let Some(of) = figure.of.filter(|_| !is_promised) {
            report.check(format!("{}: {value} of {of}", figure.metric));
        }
        report.figure(match figure.of {
            Some(of) if is_promised => measured.bar(of),
            _ => measured,
        });
    }
    Ok(())
}

fn unit_of(name: &str) -> Option<Unit> {
    [Unit::Ns, Unit::Us, Unit::Mops, Unit::Percent, Unit::Count].into_iter().find(|unit| unit.name() == name)
}
