//! The properties: safety, liveness, and reachability (so that the others are not vacuous).

use stateright::Property;

use crate::replica::{Applied, Content, Entry, Outcome, Role};
use crate::settings::Settings;
use crate::venue::{Phase, Venue};

/// No two replicas lead the same term.
pub const ONE_LEADER: &str = "a term has one leader";
/// No two replicas take different entries as decided at a slot.
pub const DECIDED_STAYS: &str = "what is decided stays";
/// The leader of the latest term has everything that was decided.
pub const LEADER_COMPLETE: &str = "a new leader has everything decided";
/// Each replica has applied what the log says, and nothing else.
pub const SAME_STATE: &str = "replicas apply the same";
/// No command is applied twice.
pub const ONCE: &str = "nothing is applied twice";
/// A client's commands apply in the order in which it gave them.
pub const IN_ORDER: &str = "a session applies in order";
/// An answer names the decided slot in which its command was applied, or reports that another command had its number. Decided slots
/// stay, so nothing acknowledged is lost.
pub const ANSWER_TRUE: &str = "an answer is what was applied";
/// No answer is forgotten while its client waits for it.
pub const REMEMBERED: &str = "a waiting client is remembered";
/// In the calm every command is answered.
pub const ANSWERED: &str = "no client waits for ever";
/// The calm comes to an end, so that what is to be found at its end is found.
pub const CALM_ENDS: &str = "the calm ends";
/// Once it has ended, all replicas have applied all commands, each once.
pub const ALL_APPLIED: &str = "in the end all is applied everywhere";

/// Each property, for the bounds that leave room for it.
pub(crate) fn all(settings: &Settings) -> Vec<Property<Settings>> {
    let mut all = vec![
        Property::always(ONE_LEADER, |_, venue: &Venue| {
            let leaders = || venue.replicas.iter().filter(|replica| replica.role == Role::Leader);
            leaders().all(|one| leaders().filter(|other| one.term == other.term).count() == 1)
        }),
        Property::always(DECIDED_STAYS, |_, venue: &Venue| {
            let agrees = |number| move |slot| venue.truth.slots.get(usize::from(number) - 1) == Some(slot);
            venue.replicas.iter().all(|replica| {
                let in_log = replica.snapshot.slots + 1..=replica.decided;
                replica.slots() >= replica.decided
                    && in_log.into_iter().all(|number| replica.slot(number).is_some_and(agrees(number)))
            })
        }),
        Property::always(LEADER_COMPLETE, |_, venue: &Venue| {
            venue.leader().1.is_none_or(|at| {
                let leader = &venue.replicas[at];
                let mut after_snapshot = (1..).zip(&venue.truth.slots).skip(leader.snapshot.slots.into());
                after_snapshot.all(|(number, slot)| leader.slot(number) == Some(slot))
            })
        }),
        Property::always(SAME_STATE, |_, venue: &Venue| {
            venue.replicas.iter().all(|replica| {
                let until = replica.engine.log_index;
                let expected = venue.truth.history.iter().take_while(|applied| applied.log_index <= until);
                until <= venue.truth.log_index && expected.eq(&replica.engine.history)
            })
        }),
        Property::always(ONCE, |_, venue: &Venue| {
            venue.replicas.iter().all(|replica| {
                let history = &replica.engine.history;
                let same = |one: usize, other: usize| {
                    (history[one].client, history[one].command) == (history[other].client, history[other].command)
                };
                (0..history.len()).all(|one| (0..one).all(|other| !same(one, other)))
            })
        }),
        Property::always(IN_ORDER, |settings: &Settings, venue: &Venue| {
            venue.replicas.iter().all(|replica| {
                (0..settings.clients).all(|client| {
                    let of_client = || replica.engine.history.iter().filter(move |applied| applied.client == client);
                    of_client().zip(of_client().skip(1)).all(|(one, next)| one.command <= next.command)
                })
            })
        }),
        Property::always(ANSWER_TRUE, |_, venue: &Venue| {
            let is_true = |client: usize, command: usize, content: Content, outcome: Outcome| {
                let is_it = |it: &Applied| match outcome {
                    Outcome::Applied(at) => it.content == content && it.log_index == at,
                    Outcome::Reused => it.content != content,
                };
                let of_number = |it: &&Applied| (usize::from(it.client), usize::from(it.command)) == (client, command);
                venue.truth.history.iter().filter(of_number).any(is_it)
            };
            let sent = venue.answers.iter().all(|answer| {
                let client = usize::from(answer.client);
                let command = venue.clients[client].sent[usize::from(answer.seq) - 1];
                is_true(client, command.into(), answer.content, answer.outcome)
            });
            let got = |(number, client): (usize, &crate::venue::Client)| {
                let mut answers = (1..).zip(&client.got);
                answers.all(|(command, got)| got.is_none_or(|outcome| is_true(number, command, Content::Asked, outcome)))
            };
            sent && venue.clients.iter().enumerate().all(got)
        }),
        Property::always(REMEMBERED, |settings: &Settings, venue: &Venue| {
            venue.replicas.iter().all(|replica| {
                let mut sessions = venue.clients.iter().zip(&replica.engine.sessions);
                sessions.all(|(client, session)| {
                    let is_known = |seq| session.answer(seq, Content::Asked, settings).is_some();
                    client.waiting().all(|seq| seq >= session.next || is_known(seq))
                })
            })
        }),
        Property::always(ANSWERED, |_, venue: &Venue| venue.phase != Phase::Stuck),
        Property::always(CALM_ENDS, |settings: &Settings, venue: &Venue| venue.truth.slots.len() <= settings.slots_max()),
        Property::always(ALL_APPLIED, |settings: &Settings, venue: &Venue| {
            let commands = usize::from(settings.clients) * usize::from(settings.commands);
            venue.phase != Phase::Done || venue.replicas.iter().all(|replica| replica.engine.history.len() == commands)
        }),
        Property::sometimes("the calm ends with all answered", |_, venue: &Venue| venue.phase == Phase::Done),
        Property::sometimes("a client has all its answers while there are faults", |_, venue: &Venue| {
            venue.phase == Phase::Faults && venue.clients.iter().any(|client| client.got.iter().all(Option::is_some))
        }),
    ];
    if settings.elections > 0 {
        all.push(Property::sometimes("two replicas believe that they lead", |_, venue: &Venue| {
            venue.replicas.iter().filter(|replica| replica.role == Role::Leader).count() > 1
        }));
        all.push(Property::sometimes("a change of leader loses what was proposed", |_, venue: &Venue| {
            let lost = |slot: u8, term| venue.truth.slots.get(usize::from(slot) - 1).is_some_and(|decided| decided.term != term);
            venue.replicas.iter().flat_map(|replica| &replica.origins).any(|origins| lost(origins.slot, origins.term))
        }));
    }
    if settings.elections > 0 && settings.repeats > 0 {
        all.push(Property::sometimes("a repeat reaches apply", |_, venue: &Venue| repeats(venue).next().is_some()));
    }
    if settings.elections > 0 && settings.repeats > 0 && settings.commands > settings.window {
        all.push(Property::sometimes("a repeat older than the window reaches apply", |settings: &Settings, venue: &Venue| {
            let next = |client: u8| 1 + venue.truth.history.iter().filter(|applied| applied.client == client).count();
            repeats(venue).any(|entry| usize::from(entry.seq + settings.window) < next(entry.client))
        }));
    }
    if settings.altered > 0 {
        all.push(Property::sometimes("another command under a used number is refused", |_, venue: &Venue| {
            venue.answers.iter().any(|answer| (answer.content, answer.outcome) == (Content::Other, Outcome::Reused))
        }));
        all.push(Property::sometimes("another command came first, and the one that was asked is refused", |_, venue: &Venue| {
            venue.clients.iter().any(|client| client.got.contains(&Some(Outcome::Reused)))
        }));
    }
    if settings.snapshots == 1 {
        all.push(Property::sometimes("a replica goes on from another's snapshot", |_, venue: &Venue| {
            venue.replicas.iter().filter(|replica| replica.snapshot.slots > 0).count() > 1
        }));
    }
    all
}

/// Decided entries whose ordinal was decided before.
fn repeats(venue: &Venue) -> impl Iterator<Item = &Entry> {
    let entries = || venue.truth.slots.iter().flat_map(|slot| &slot.pack);
    entries().enumerate().filter(move |(at, entry)| entries().take(*at).any(|before| before == *entry)).map(|(_, entry)| entry)
}
