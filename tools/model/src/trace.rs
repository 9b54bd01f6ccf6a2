//! Describes a path that the checker found, step by step.

use stateright::{Model, Path};

use crate::replica::{Outcome, Role};
use crate::settings::Settings;
use crate::venue::{Step, Venue};

/// A line for each step to the first state without the property, and what the replicas and clients have there.
///
/// The checker looks on for a moment after it found the first such state, and hands out the last; so the path is cut, and may be
/// some steps longer than the shortest.
pub fn story(settings: &Settings, property: &'static str, path: Path<Venue, Step>) -> String {
    let condition = settings.property(property).condition;
    let mut path = path.into_vec();
    if let Some(first) = path.iter().position(|(venue, _)| !condition(settings, venue)) {
        path.truncate(first + 1);
    }
    let steps = path.iter().take(path.len() - 1);
    let mut lines: Vec<String> = steps.filter_map(|(venue, step)| Some(line(venue, step.as_ref()?))).collect();
    if let Some((end, _)) = path.last() {
        let mut replicas: Vec<_> = end.replicas.iter().collect();
        replicas.sort_by_key(|replica| replica.name.0);
        for replica in replicas {
            let role = match replica.role {
                Role::Lost => "without a leader",
                Role::Follower => "a follower",
                Role::Leader => "a leader",
            };
            let log: Vec<String> = (1..=replica.slots())
                .map(|number| match replica.slot(number) {
                    None => "in the snapshot".into(),
                    Some(slot) => {
                        let entries = slot.pack.iter().map(|entry| format!("{}.{}", entry.client, entry.seq));
                        format!("term {} [{}]", slot.term, entries.collect::<Vec<_>>().join(" "))
                    }
                })
                .collect();
            lines.push(format!(
                "  {}: {role} of term {}, {} slots decided of: {}",
                replica.name.0,
                replica.term,
                replica.decided,
                log.join(", ")
            ));
        }
        for (client, it) in end.clients.iter().enumerate() {
            lines.push(format!("  client {client}: sent commands {:?}, was answered {:?}", it.sent, it.got));
        }
    }
    lines.join("\n")
}

fn line(venue: &Venue, step: &Step) -> String {
    let name = |at: &usize| venue.replicas[*at].name.0;
    match step {
        Step::Issue { client } => {
            format!("client {client} issues its command {}", venue.clients[usize::from(*client)].sent.len() + 1)
        }
        Step::Arrive { client, seq, at } => format!("{client}.{seq} arrives at {}", name(at)),
        Step::ArriveOther { client, seq, at } => format!("another command under the number {client}.{seq} arrives at {}", name(at)),
        Step::Propose { at } => format!("{} proposes what it took as slot {}", name(at), venue.replicas[*at].slots() + 1),
        Step::Replicate { from, to } => format!("{} replicates to {}", name(from), name(to)),
        Step::Decide { at } => format!("{} finds its slots with a majority", name(at)),
        Step::Deliver { answer } => match answer.outcome {
            Outcome::Applied(at) => format!("client {} hears that its {} was applied as entry {at}", answer.client, answer.seq),
            Outcome::Reused => format!("client {} hears that its {} is another command's number", answer.client, answer.seq),
        },
        Step::Elect { candidate, voter } => {
            format!("{} leads term {} with the vote of {}", name(candidate), venue.leader().0 + 1, name(voter))
        }
        Step::Crash { at } => format!("{} crashes and starts again", name(at)),
        Step::Snapshot { at } => format!("{} takes a snapshot", name(at)),
        Step::Calm => "the faults end, answers on their way are lost".into(),
        Step::Retry { client, at } => format!("client {client} tries its oldest command again at {}", name(at)),
        Step::Finish => "nothing is left to do".into(),
        Step::Renumber { client, command } => format!("client {client} gives its command {command} a new number"),
    }
}
