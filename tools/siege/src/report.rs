//! What a campaign found: a table for people, figures for the record.

use std::fmt::Write;

use crate::attack::Group;
use crate::campaign::Outcome;
use crate::limits::{NEW_CONNECTION_MS_MAX, P99_RATIO_MAX};

/// The head of the table.
pub const HEAD: &str = "venue    files  attack               survived  p99 quiet -> attacked, ms (ratio)";

/// An attack's line.
#[must_use]
pub fn line(outcome: &Outcome) -> String {
    let files = outcome.descriptors.map_or("-".to_owned(), |files| files.to_string());
    let survived = if outcome.not_survived.is_none() { "yes" } else { "NO" };
    let mut line = format!("{:<8} {files:>5}  {:<20} {survived:<8}", outcome.shape.name(), outcome.attack);
    let mut put = |text: String| line.write_str(&text).expect("a string takes all");
    for seen in &outcome.services {
        let (quiet, attacked) = (seen.quiet.p99_ms, seen.attacked.p99_ms);
        put(format!("  {} {quiet:.1}->{attacked:.1} ({:.2}x)", seen.service.name(), seen.p99_ratio()));
        if seen.attacked.failed > 0 {
            let (failed, why) = (seen.attacked.failed, seen.attacked.why.as_deref().unwrap_or("no reason"));
            put(format!(" {failed} of {} failed ({why})", seen.attacked.served as u64 + failed));
        }
    }
    if let Some(why) = &outcome.not_survived {
        put(format!("\n                                     {why}"));
    }
    line
}

/// The figures of a campaign. Where something was not served at all they are infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Of each kind of attack, how many times the 99th percentile of a well-behaved client's waiting is what it is without the attack: the worst of
    /// all services and attacks that were measured without a limit of descriptors.
    pub p99_ratios: Vec<(Group, f64)>,
    /// The longest that a new connection of a well-behaved client took, under any attack.
    pub new_connection_max_ms: f64,
    /// Attacks that the venue survived.
    pub survived: usize,
    /// Attacks that were tried.
    pub tried: usize,
}

impl Figures {
    /// Those of these attacks.
    #[must_use]
    pub fn of(outcomes: &[Outcome]) -> Self {
        let groups = [Group::Control, Group::Idle, Group::Deaf, Group::Malformed, Group::Flood];
        let ratio = |group: Group| {
            let measured = outcomes.iter().filter(|outcome| outcome.group == group && outcome.descriptors.is_none());
            measured.map(Outcome::worst_ratio).reduce(f64::max).map(|worst| (group, worst))
        };
        Self {
            p99_ratios: groups.into_iter().filter_map(ratio).collect(),
            new_connection_max_ms: outcomes.iter().map(Outcome::connect_max_ms).fold(0.0, f64::max),
            survived: outcomes.iter().filter(|outcome| outcome.not_survived.is_none()).count(),
            tried: outcomes.len(),
        }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (group, ratio) in &self.p99_ratios {
            writeln!(f, "good_p99_ratio_{:<10} {ratio:.2}  (goal: at most {P99_RATIO_MAX})", group.name())?;
        }
        writeln!(f, "new_connection_max_ms     {:.1}  (goal: below {NEW_CONNECTION_MS_MAX})", self.new_connection_max_ms)?;
        writeln!(f, "survived                  {} of {}", self.survived, self.tried)
    }
}
