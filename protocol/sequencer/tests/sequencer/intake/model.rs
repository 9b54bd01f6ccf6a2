//! Random orders of several sessions, copied through several gateways with wild clocks and links, against a list.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A copy on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    arrives_ns: u64,
    gateway: u16,
    stamp_ns: Option<u64>,
    session: u64,
    session_seq: u64,
}

/// Per command: by which gateways it goes, how their clocks are off, how long each copy takes.
type Way = [Option<(i64, u64)>; 3];

fn ways() -> impl Strategy<Value = Vec<(u64, Way)>> {
    let copy = || prop::option::weighted(0.6, (-300_i64..300, 0_u64..2_000));
    let way = (copy(), copy(), copy()).prop_map(|(a, b, c)| [a, b, c]);
    prop::collection::vec((1_u64..4, way), 1..60)
}

/// Session by session numbered; a command without a copy goes through gateway 0.
fn copies(commands: &[(u64, Way)], is_stamped: bool) -> Vec<Sent> {
    let mut numbers = BTreeMap::new();
    let mut sent = Vec::new();
    for (place, (session, way)) in commands.iter().enumerate() {
        let session_seq = *numbers.entry(*session).and_modify(|n| *n += 1).or_insert(1_u64);
        let at_ns = 1_000_000 + place as u64 * 200;
        let way = if way.iter().all(Option::is_none) { [Some((0, 50)), None, None] } else { *way };
        for (gateway, copy) in (0_u16..).zip(way) {
            let Some((off_ns, takes_ns)) = copy else { continue };
            let stamp_ns = is_stamped.then_some(at_ns.saturating_add_signed(off_ns));
            sent.push(Sent { arrives_ns: at_ns + takes_ns, gateway, stamp_ns, session: *session, session_seq });
        }
    }
    sent.sort_unstable();
    sent
}

/// The list: (stamp that counts, gateway, place) of every command, from the copies as they come.
fn list(sent: &[Sent]) -> Vec<(u64, u16, u64, u64)> {
    let mut seen = BTreeSet::new();
    let mut waiting: BTreeMap<u64, BTreeMap<u64, Sent>> = BTreeMap::new();
    let mut last: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut list = Vec::new();
    for copy in sent {
        if !seen.insert((copy.session, copy.session_seq)) {
            continue;
        }
        waiting.entry(copy.session).or_default().insert(copy.session_seq, *copy);
        let (session_seq_last, stamped_last_ns) = last.entry(copy.session).or_default();
        while let Some(next) = waiting.get_mut(&copy.session).and_then(|w| w.remove(&(*session_seq_last + 1))) {
            // Without a stamp it counts from when the hold takes it.
            let stamp_ns = next.stamp_ns.unwrap_or(copy.arrives_ns).max(*stamped_last_ns + 1);
            (*session_seq_last, *stamped_last_ns) = (next.session_seq, stamp_ns);
            list.push((stamp_ns, next.gateway, next.session_seq, next.session));
        }
    }
    list
}

fn run(sent: &[Sent], delay_ns: u64) -> World {
    let mut world = World::new(IntakeSettings { future_max_ns: 1_000_000, ..settings(delay_ns) }, 3);
    for copy in sent {
        world.runs_until(copy.arrives_ns);
        let stamp = copy.stamp_ns.map_or(Stamp::OnArrival, Stamp::Gateway);
        world.comes(copy.arrives_ns, copy.gateway, stamp, ordinal(copy.session, copy.session_seq), copy.session_seq as u8);
    }
    world.runs_until(u64::MAX);
    world
}

proptest! {
    #[test]
    fn with_a_delay_that_covers_every_link_it_is_a_sorted_list(commands in ways(), is_stamped in any::<bool>()) {
        let sent = copies(&commands, is_stamped);
        let mut expected = list(&sent);
        expected.sort_unstable();
        // A session is numbered as it goes on: a command may wait for one that was sent before it, and takes longer.
        let world = run(&sent, 1_000_000);
        let taken: Vec<_> = world.venue.taken.iter().map(|(at_ns, ordinal)| (*at_ns, ordinal.unwrap())).collect();
        let expected: Vec<_> = expected.iter().map(|(stamp_ns, _, n, session)| (stamp_ns + 1_000_000, ordinal(*session, *n))).collect();
        prop_assert_eq!(taken, expected);
        prop_assert_eq!(world.notices, vec![]);
        prop_assert_eq!(world.intake.figures().unfair, 0);
    }

    #[test]
    fn with_any_delay_each_command_leaves_once_in_its_session_and_none_before_an_earlier_one_that_is_held(
        commands in ways(),
        delay_ns in 0_u64..3_000,
    ) {
        let sent = copies(&commands, true);
        let world = run(&sent, delay_ns);
        let stamps: BTreeMap<(u64, u64), u64> = list(&sent).into_iter().map(|(stamp_ns, _, n, session)| ((session, n), stamp_ns)).collect();
        let mut firsts: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for copy in &sent {
            firsts.entry((copy.session, copy.session_seq)).or_insert(copy.arrives_ns);
        }
        // When a command is in the hold: when it and all before it in its session have come.
        let held_from = |(session, n): (u64, u64)| (1..=n).map(|n| firsts[&(session, n)]).max().unwrap();
        let mut next: BTreeMap<u64, u64> = BTreeMap::new();
        let taken: Vec<_> = world.venue.taken.iter().map(|(at_ns, o)| (*at_ns, (o.unwrap().session.0, o.unwrap().session_seq.0))).collect();
        for (place, (at_ns, command)) in taken.iter().enumerate() {
            let expected = next.entry(command.0).or_insert(1);
            prop_assert_eq!(command.1, *expected);
            *expected += 1;
            for (_, later) in &taken[place + 1..] {
                prop_assert!(
                    stamps[later] >= stamps[command] || held_from(*later) >= *at_ns,
                    "{:?} left at {} before {:?}", command, at_ns, later
                );
            }
        }
        prop_assert_eq!(taken.len(), stamps.len());
        let late = world.notices.iter().filter(|notices| matches!(notices, Notice::Late { .. })).count() as u64;
        prop_assert_eq!(late, world.intake.figures().gateways.iter().map(|gateway| gateway.hold.late).sum::<u64>());
        prop_assert_eq!(late as usize, world.notices.len());
    }
}
