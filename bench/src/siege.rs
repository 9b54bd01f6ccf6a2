//! The hostile campaign of `tools/siege`: how much longer a well-behaved client waits while the venue is attacked, and what the venue survives.
//! `good_p99_ratio_*` are by kind of attack, `good_p99_under_attack_ratio_*` by the interface that the client uses; each is the worst.

use std::path::PathBuf;
use std::time::Duration;

use walras_siege::campaign::{Campaign, ServiceSeen};
use walras_siege::limits::{NEW_CONNECTION_MS_MAX, P99_RATIO_MAX};
use walras_siege::report::{Figures, line};

use crate::report::{Figure, Report, Unit};

/// What is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Times without and with each attack, in turn.
    pub rounds: usize,
    /// Seconds of each.
    pub seconds: u32,
    /// Of the attacks' full size.
    pub percent: usize,
    /// The program `walras`.
    pub walras: PathBuf,
    /// Folder for the venues' data.
    pub scratch: PathBuf,
}

/// Attacks, and records. What was not survived is a note, and fails nothing: the figure says it.
pub fn run(config: &Config, report: &mut Report) -> anyhow::Result<()> {
    report.rounds(config.rounds);
    report.require(&["good_p99_ratio_idle", "good_p99_ratio_deaf", "good_p99_ratio_malformed", "good_p99_ratio_flood", "survived"]);
    let mut campaign = Campaign::full(&config.walras, &config.scratch);
    campaign.size.rounds = config.rounds;
    campaign.size.block = Duration::from_secs(config.seconds.into());
    campaign.size.percent = config.percent;
    // With few descriptors nothing is timed: `make siege` asks only whether the venue stands.
    campaign.descriptors = vec![None];
    let outcomes = campaign.run(|outcome| eprintln!("  {}", line(outcome)))?;
    for outcome in &outcomes {
        let what = format!("{} of a {}", outcome.attack, outcome.shape.name());
        match &outcome.not_survived {
            None => report.check(format!("{what}: survived")),
            Some(why) => report.note(format!("{what}: NOT survived: {why}")),
        }
        let ratios = outcome.services.iter().map(ServiceSeen::p99_ratio).filter(|ratio| ratio.is_finite());
        let ratios: Vec<f64> = ratios.collect();
        if !ratios.is_empty() {
            report.samples(format!("{}_{}_p99_ratios", outcome.shape.name(), outcome.attack), ratios);
        }
    }
    let Figures { p99_ratios, by_interface, new_connection_max_ms, survived, tried } = Figures::of(&outcomes);
    for (group, ratio) in p99_ratios {
        let figure = Figure::new(format!("good_p99_ratio_{}", group.name()), ratio, Unit::Ratio);
        if ratio.is_finite() {
            report.figure(figure.bar(P99_RATIO_MAX));
        } else {
            report.note(format!("under an attack of the kind {} something was not served at all", group.name()));
        }
    }
    for (interface, ratio) in by_interface {
        if ratio.is_finite() {
            let figure = Figure::new(format!("good_p99_under_attack_ratio_{}", interface.name()), ratio, Unit::Ratio);
            report.figure(figure.bar(P99_RATIO_MAX));
        } else {
            report.note(format!("under some attack something of the interface {} was not served at all", interface.name()));
        }
    }
    if new_connection_max_ms.is_finite() {
        report.figure(Figure::new("new_connection_max_ms", new_connection_max_ms, Unit::Ms).bar(NEW_CONNECTION_MS_MAX));
    } else {
        report.note("some new connections of a well-behaved client were not served".to_owned());
    }
    report.figure(Figure::new("survived", survived as f64, Unit::Count).bar(tried as f64));
    Ok(())
}
