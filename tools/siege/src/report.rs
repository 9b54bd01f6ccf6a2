//! What a campaign found: a table for people, figures for the record.

use std::fmt::Write;

use crate::attack::Group;
use crate::campaign::Outcome;
use crate::limits::{NEW_CONNECTION_MS_MAX, P99_RATIO_MAX};
use crate::watch::Interface;

/// The head of the table.
pub const HEAD: &str = "venue    files  attack                 survived  p99 quiet -> attacked, ms (ratio)";

/// An attack's line.
#[must_use]
pub fn line(outcome: &Outcome) -> String {
    let files = outcome.descriptors.map_or("-".to_owned(), |files| files.to_string());
    let survived = if outcome.not_survived.is_none() { "yes" } else { "NO" };
    let mut line = format!("{:<8} {files:>5}  {:<22} {survived:<8}", outcome.shape.name(), outcome.attack);
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
        put(format!("\n                                       {why}"));
    }
    line
}

/// The figures of a campaign. Where something was not served at all they are infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Of each kind of attack, how many times the 99th percentile of a well-behaved client's waiting is what it is without the attack: the worst of
    /// all services and attacks that were measured without a limit of descriptors.
    pub p99_ratios: Vec<(Group, f64)>,
    /// The same of each interface: the worst of its services, of all attacks that are one.
    pub by_interface: Vec<(Interface, f64)>,
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
        let attacked = || outcomes.iter().filter(|outcome| outcome.group != Group::Control && outcome.descriptors.is_none());
        let of_interface = |interface: Interface| {
            let measured = attacked().filter_map(|outcome| outcome.worst_ratio_of(interface));
            measured.reduce(f64::max).map(|worst| (interface, worst))
        };
        Self {
            p99_ratios: groups.into_iter().filter_map(ratio).collect(),
            by_interface: Interface::ALL.into_iter().filter_map(of_interface).collect(),
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
        for (interface, ratio) in &self.by_interface {
            writeln!(f, "good_p99_under_attack_ratio_{:<10} {ratio:.2}", interface.name())?;
        }
        writeln!(f, "new_connection_max_ms     {:.1}  (goal: below {NEW_CONNECTION_MS_MAX})", self.new_connection_max_ms)?;
        writeln!(f, "survived                  {} of {}", self.survived, self.tried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::ServiceSeen;
    use crate::crowd::Tally;
    use crate::venue::Shape;
    use crate::watch::{Seen, Service};

    fn outcome(group: Group, descriptors: Option<u32>, services: &[(Service, f64)]) -> Outcome {
        let seen = |p99_ms| Seen { served: 9, p99_ms, ..Seen::default() };
        let services = services.iter().map(|(service, ratio)| ServiceSeen {
            service: *service,
            quiet: seen(2.0),
            attacked: seen(2.0 * ratio),
        });
        Outcome {
            attack: "x",
            group,
            shape: Shape::Single,
            descriptors,
            not_survived: None,
            attackers: Tally::default(),
            services: services.collect(),
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    #[test]
    fn each_interface_has_the_worst_of_its_services_under_attack() {
        let figures = Figures::of(&[
            outcome(Group::Control, None, &[(Service::Fix, 9.0), (Service::Book, 1.5)]),
            outcome(
                Group::Flood,
                None,
                &[(Service::Fix, 1.25), (Service::FixData, 1.5), (Service::Book, 1.0), (Service::Connect, 7.0)],
            ),
            outcome(Group::Idle, None, &[(Service::Fix, 1.75), (Service::Facade, 1.0), (Service::FacadeSocket, 2.0)]),
            outcome(Group::Idle, Some(256), &[(Service::Fix, 8.0), (Service::Operator, 8.0)]),
        ]);
        assert_eq!(figures.by_interface, [(Interface::Rest, 1.0), (Interface::Fix, 1.75), (Interface::Facade, 2.0)]);
        assert_eq!(figures.p99_ratios, [(Group::Control, 9.0), (Group::Idle, 2.0), (Group::Flood, 1.5)]);
        assert!(figures.to_string().contains("good_p99_under_attack_ratio_fix        1.75"), "{figures}");
    }
}
