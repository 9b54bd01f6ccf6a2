//! Replicas that start in the middle of a log, or have different clocks, publish at the same entries and release at the same
//! instants.

use proptest::prelude::*;
use walras_fair_access::publications::{Publications, ReleaseClock, ReleaseTime};

const EVERY_NS: u64 = 50;
const DELAY_NS_MAX: u64 = 200;
const START_NS: u64 = 1_700_000_000_000_000_000;

/// Of a log the entries' times, each at least that of the one before, and the delays in force after them.
fn log() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let entry = (prop_oneof![Just(0), 1_u64..10, 1_u64..150], prop_oneof![3 => Just(None), 1 => (0..=DELAY_NS_MAX).prop_map(Some)]);
    prop::collection::vec(entry, 1..60).prop_map(|steps| {
        let (mut time_ns, mut delay_ns) = (START_NS, 100);
        let entry = |(step_ns, changed): (u64, Option<u64>)| {
            time_ns += step_ns;
            delay_ns = changed.unwrap_or(delay_ns);
            (time_ns, delay_ns)
        };
        steps.into_iter().map(entry).collect()
    })
}

/// Whether each entry publishes and when it may be released, at a replica that starts from the state after `begin` entries.
fn run(entries: &[(u64, u64)], begin: usize, ahead_ns: Option<i64>) -> Vec<(bool, ReleaseTime)> {
    let mut publications = Publications::new(EVERY_NS, DELAY_NS_MAX);
    if let Some((time_ns, delay_ns)) = begin.checked_sub(1).map(|last| entries[last]) {
        publications.begin_from(time_ns, delay_ns);
    }
    let entry = |(time_ns, delay_ns): &(u64, u64)| {
        let held_ns = publications.on_entry(*time_ns, *delay_ns, ahead_ns);
        let known_from = publications.known_from();
        assert!(held_ns.is_none_or(|held_ns| known_from.log_ns == time_ns + held_ns), "{held_ns:?} until {known_from:?}");
        (held_ns.is_some(), known_from)
    };
    entries[begin..].iter().map(entry).collect()
}

proptest! {
    #[test]
    fn a_replica_that_begins_from_a_state_is_never_early_and_publishes_with_the_others(entries in log(), cut in any::<prop::sample::Index>()) {
        let begin = cut.index(entries.len());
        let all = run(&entries, 0, None);
        let mut latest_ns = 0;
        for ((publishes, known_from), (time_ns, delay_ns)) in all.iter().zip(&entries) {
            // The naive result, from all entries so far.
            latest_ns = latest_ns.max(time_ns + delay_ns);
            prop_assert_eq!(known_from.log_ns, latest_ns);
            prop_assert!(!publishes || known_from.log_ns >= time_ns + delay_ns);
        }
        let begun_ns = begin.checked_sub(1).map_or(0, |last| entries[last].0 + DELAY_NS_MAX);
        for ((with, from_state), (without, from_all)) in run(&entries, begin, None).iter().zip(&all[begin..]) {
            prop_assert_eq!(with, without, "they publish at the same entries");
            prop_assert_eq!(from_state.log_ns, from_all.log_ns.max(begun_ns), "later for a while, never earlier");
        }
    }

    /// The replicas' own clocks differ arbitrarily; each knows venue time within its bound.
    #[test]
    fn replicas_that_know_the_venues_time_release_together(
        entries in log(),
        ahead_ns in -5_000_000_i64..5_000_000,
        replicas in prop::collection::vec((-5_000_000_i64..5_000_000, -300_i64..=300, 0_u64..4), 2..5),
    ) {
        // The leader's clock stamped the entries; the venue's time is the true one.
        let all = run(&entries, 0, Some(ahead_ns));
        for (apart_ns, error_ns, blind) in replicas {
            let mut clock = ReleaseClock::default();
            let read = |clock: &mut ReleaseClock, true_ns: u64, is_blind: bool| {
                let venue_ns = (!is_blind).then(|| true_ns.saturating_add_signed(error_ns));
                clock.now_ns(true_ns.saturating_add_signed(apart_ns), venue_ns)
            };
            read(&mut clock, START_NS - 10_000, false);
            for (place, (_, known_from)) in all.iter().enumerate() {
                let due_ns = known_from.log_ns.saturating_add_signed(-ahead_ns);
                // At some readings venue time is unknown: the replica's own clock continues from the last one.
                let is_blind = blind > 0 && (place as u64).is_multiple_of(blind);
                let at_ns = clock.at_ns(*known_from);
                prop_assert!(read(&mut clock, due_ns + 300, is_blind) >= at_ns, "released within the bound");
                prop_assert!(read(&mut clock, due_ns - 301, is_blind) < at_ns, "and not sooner");
            }
        }
    }
}

#[test]
fn without_the_venues_time_a_replica_goes_by_its_own_clock() {
    let mut clock = ReleaseClock::default();
    assert_eq!(clock.now_ns(1_000, None), 1_000);
    for ahead_ns in [None, Some(700)] {
        assert_eq!(clock.at_ns(ReleaseTime { log_ns: 1_400, ahead_ns }), 1_400);
    }
    // Venue time turns out far from the own clock: held data waits for its original duration.
    assert_eq!(clock.now_ns(1_100, Some(900_000)), 1_100);
    assert_eq!(clock.now_ns(7_777, Some(900_050)), 1_150, "the own clock was set");
    assert_eq!(clock.now_ns(7_787, None), 1_160, "on from where it was");
    assert_eq!(clock.at_ns(ReleaseTime { log_ns: 900_060 + 500, ahead_ns: Some(500) }), 1_160);
    assert_eq!(clock.at_ns(ReleaseTime { log_ns: 7_787, ahead_ns: None }), 1_160, "stamped by a clock like its own");
}

#[test]
fn elapsed_time_is_by_the_known_clock() {
    let time = |ahead_ns| ReleaseTime { log_ns: 5_000, ahead_ns };
    assert_eq!(time(None).ago_ns(5_300, Some(2_000)), 300);
    assert_eq!(time(Some(4_000)).ago_ns(5_300, None), 300);
    assert_eq!(time(Some(4_000)).ago_ns(5_300, Some(900)), -100);
}

/// A new leader's clock is 5 ms behind: log time stands still until it has caught up, and data is never released before earlier
/// data.
#[test]
fn another_leaders_clock_breaks_no_order() {
    let mut publications = Publications::new(10, 100);
    publications.on_entry(9_000_000, 100, Some(5_000_000));
    let first = publications.known_from();
    assert_eq!(first.venue_ns(), Some(4_000_100));
    publications.on_entry(9_000_000, 100, Some(0));
    assert_eq!(publications.known_from().venue_ns(), Some(9_000_100), "late, at all replicas alike");
    // A leader whose clock is ahead: release times continue in venue time.
    publications.on_entry(9_000_050, 20, Some(5_000));
    assert_eq!(publications.known_from().venue_ns(), Some(9_000_100));
}
