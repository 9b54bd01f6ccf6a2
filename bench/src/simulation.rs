//! Whole venues with faults, from seeds: how much of a venue's life a core simulates, and how much of it had no violation.
//!
//! Each round runs seeds that no other has, one after the other in one thread, for so many seconds of each kind: the cluster as seeds decide
//! (one to five replicas, what counts on disks or in memory, disks that are lost), and one machine without consensus. A violation fails
//! the bench with the line that shows it again; then no figure is recorded.

use std::time::{Duration, Instant};

use anyhow::bail;
use walras_sim::{Trace, Violation, cluster, single};

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

/// A kind of venue, and what its rounds gave.
struct Kind {
    name: &'static str,
    /// What its faults are.
    faults: &'static str,
    again: &'static str,
    /// Simulated nanoseconds and faults of a seed.
    simulate: fn(u64) -> Result<(u64, u64), Violation>,
    next_seed: u64,
    simulated_ns: u64,
    fault_count: u64,
    speeds: Vec<f64>,
}

impl Kind {
    fn new(
        name: &'static str,
        faults: &'static str,
        again: &'static str,
        simulate: fn(u64) -> Result<(u64, u64), Violation>,
    ) -> Self {
        Self { name, faults, again, simulate, next_seed: 1, simulated_ns: 0, fault_count: 0, speeds: Vec::new() }
    }

    fn round(&mut self, length: Duration) -> anyhow::Result<()> {
        let (begun, mut simulated_ns) = (Instant::now(), 0);
        while begun.elapsed() < length {
            let seed = self.next_seed;
            self.next_seed += 1;
            match (self.simulate)(seed) {
                Ok((ns, faults)) => {
                    simulated_ns += ns;
                    self.fault_count += faults;
                }
                Err(violation) => bail!("{violation}; again: walras-sim --seeds 1 --seed {seed} {}", self.again),
            }
        }
        self.simulated_ns += simulated_ns;
        self.speeds.push(simulated_ns as f64 / 1e9 / begun.elapsed().as_secs_f64());
        Ok(())
    }

    fn report(self, report: &mut Report) {
        let Self { name, faults, next_seed, simulated_ns, fault_count, speeds, .. } = self;
        let hours = simulated_ns as f64 / 3.6e12;
        report.check(format!("{name}: no violation in {hours:.2} venue-hours of the seeds 1 to {}", next_seed - 1));
        let speed_metric = format!("{name}_simulated_s_per_s_and_core");
        let speed = report.samples(speed_metric.clone(), speeds);
        report.figure(Figure::new(speed_metric, speed, Unit::PerS).bar(SIMULATED_S_PER_S_MIN));
        report.figure(Figure::new(format!("{name}_venue_hours_without_a_violation"), hours, Unit::Count));
        report.figure(Figure::new(format!("{name}_seeds"), (next_seed - 1) as f64, Unit::Count));
        report.figure(Figure::new(format!("{name}_{faults}_per_simulated_hour"), fault_count as f64 / hours, Unit::Count));
    }
}

/// Simulates, and fails on a violation.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    let length = Duration::from_secs(config.seconds.into());
    let of_cluster = |seed| {
        let report = cluster::simulate(seed, &cluster::Settings::default(), &Trace::off())?;
        Ok((report.simulated_ns, report.faults))
    };
    let of_single = |seed| {
        let report = single::simulate(seed, &single::Settings::default(), &Trace::off())?;
        Ok((report.simulated_ns, report.crashes))
    };
    let mut kinds =
        [Kind::new("cluster", "faults", "--cluster", of_cluster), Kind::new("single", "crashes", "--single", of_single)];
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
