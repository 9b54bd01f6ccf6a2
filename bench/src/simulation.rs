//! Whole venues with faults, from seeds: how much of a venue's life a core simulates, and how much of it had no violation.
//!
//! Each round runs seeds that no other has, one after the other in one thread, for so many seconds of each kind: the cluster as seeds
//! decide (calm or a storm, one to five replicas, what counts on disks or in memory, disks that are lost), calm clusters, clusters in a
//! storm, and clusters of one replica. The seeds of all kinds are the same, from 1 on. A violation fails the bench with the line that
//! shows it again; then no figure is recorded.

use std::time::{Duration, Instant};

use anyhow::bail;
use walras_sim::cluster::{Settings, Tempo};
use walras_sim::{Trace, Violation, cluster};

use crate::report::{Figure, Report, Unit};

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Rounds.
    pub rounds: usize,
    /// Of each kind in a round.
    pub seconds: u32,
}

/// Simulated seconds a second and core that a change has to be tried with in reasonable time.
const SIMULATED_S_PER_S_MIN: f64 = 200.0;

/// What seeds saw.
#[derive(Clone, Copy, Default)]
struct Seen {
    simulated_ns: u64,
    crashes: u64,
    /// All that went wrong.
    faults: u64,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.simulated_ns += other.simulated_ns;
        self.crashes += other.crashes;
        self.faults += other.faults;
    }

    fn hours(self) -> f64 {
        self.simulated_ns as f64 / 3.6e12
    }
}

/// A kind of venue, and what its rounds gave.
struct Kind {
    name: &'static str,
    again: &'static str,
    simulate: fn(u64) -> Result<Seen, Violation>,
    /// Simulated seconds a second and core that it has to reach.
    bar: Option<f64>,
    next_seed: u64,
    seen: Seen,
    speeds: Vec<f64>,
}

impl Kind {
    fn new(name: &'static str, again: &'static str, simulate: fn(u64) -> Result<Seen, Violation>) -> Self {
        Self { name, again, simulate, bar: None, next_seed: 1, seen: Seen::default(), speeds: Vec::new() }
    }

    fn bar(self, bar: f64) -> Self {
        Self { bar: Some(bar), ..self }
    }

    fn round(&mut self, length: Duration) -> anyhow::Result<()> {
        let (begun, mut seen) = (Instant::now(), Seen::default());
        while begun.elapsed() < length {
            let seed = self.next_seed;
            self.next_seed += 1;
            match (self.simulate)(seed) {
                Ok(one) => seen.add(one),
                Err(violation) => bail!("{violation}; again: walras-sim --seeds 1 --seed {seed} {}", self.again),
            }
        }
        self.seen.add(seen);
        self.speeds.push(seen.simulated_ns as f64 / 1e9 / begun.elapsed().as_secs_f64());
        Ok(())
    }

    fn report(self, report: &mut Report) {
        let Self { name, next_seed, seen, speeds, bar, .. } = self;
        let hours = seen.hours();
        report.check(format!("{name}: no violation in {hours:.2} venue-hours of the seeds 1 to {}", next_seed - 1));
        let speed_metric = format!("{name}_simulated_s_per_s_and_core");
        let speed = report.samples(speed_metric.clone(), speeds);
        let figure = Figure::new(speed_metric, speed, Unit::PerS);
        report.figure(match bar {
            Some(bar) => figure.bar(bar),
            None => figure,
        });
        report.figure(Figure::new(format!("{name}_venue_hours_without_a_violation"), hours, Unit::Count));
        report.figure(Figure::new(format!("{name}_seeds"), (next_seed - 1) as f64, Unit::Count));
        let mut per_hour = |what: &str, count: u64| {
            report.figure(Figure::new(format!("{name}_{what}_per_simulated_hour"), count as f64 / hours, Unit::Count));
        };
        per_hour("faults", seen.faults);
        per_hour("crashes", seen.crashes);
    }
}

fn see(seed: u64, settings: &Settings) -> Result<Seen, Violation> {
    let report = cluster::simulate(seed, settings, &Trace::off())?;
    Ok(Seen { simulated_ns: report.simulated_ns, crashes: report.crashes, faults: report.faults })
}

fn of_tempo(seed: u64, tempo: Tempo) -> Result<Seen, Violation> {
    see(seed, &Settings { tempo: Some(tempo), ..Settings::default() })
}

fn alone(seed: u64) -> Result<Seen, Violation> {
    see(seed, &Settings { replicas: Some(1), ..Settings::default() })
}

/// Simulates, and fails on a violation.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    let length = Duration::from_secs(config.seconds.into());
    let mut kinds = [
        Kind::new("cluster", "--cluster", |seed| see(seed, &Settings::default())).bar(SIMULATED_S_PER_S_MIN),
        // Crashes as often as the simulation of raft-rs alone that the bar is held against had (0.7 a simulated second).
        Kind::new("calm_cluster", "--cluster --tempo calm", |seed| of_tempo(seed, Tempo::Calm)).bar(SIMULATED_S_PER_S_MIN),
        Kind::new("storm_cluster", "--cluster --tempo storm", |seed| of_tempo(seed, Tempo::Storm)),
        Kind::new("alone", "--replicas 1", alone),
    ];
    for round in 1..=config.rounds {
        for kind in &mut kinds {
            kind.round(length)?;
            eprintln!(
                "  round {round}: {}: {:.0} simulated s a second",
                kind.name,
                kind.speeds.last().copied().unwrap_or_default()
            );
        }
    }
    kinds.into_iter().for_each(|kind| kind.report(report));
    Ok(())
}
