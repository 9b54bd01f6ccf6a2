//! The hold of market data against a naive model: a list that is searched.

use proptest::prelude::*;
use walras_fair_access::release::{Hold, HoldSettings, Refused, Timeliness};

const SETTINGS: HoldSettings = HoldSettings { held_max: 6, wait_max_ns: 50 };

#[derive(Clone, Debug)]
enum Step {
    Push { ahead_ns: i64 },
    Wait(u64),
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (-20_i64..60).prop_map(|ahead_ns| Step::Push { ahead_ns }),
        3 => (0_u64..20).prop_map(Step::Wait),
        6 => Just(Step::Release),
    ]
}

proptest! {
    #[test]
    fn it_is_the_naive_hold(steps in prop::collection::vec(step(), 0..200)) {
        let mut hold = Hold::new(SETTINGS);
        // Release time and number of each publication.
        let mut naive: Vec<(u64, u64)> = Vec::new();
        let (mut number, mut now_ns) = (0_u64, 1_000_u64);
        for step in steps {
            match step {
                Step::Push { ahead_ns } => {
                    let release_ns = now_ns.checked_add_signed(ahead_ns).unwrap();
                    number += 1;
                    let expected = if ahead_ns > 50 {
                        Err(Refused::TooFarAhead)
                    } else if naive.len() == SETTINGS.held_max {
                        Err(Refused::Full)
                    } else {
                        naive.push((release_ns, number));
                        Ok(match u64::try_from(ahead_ns) {
                            Ok(margin_ns) => Timeliness::Early { margin_ns },
                            Err(_) => Timeliness::Late { late_ns: ahead_ns.unsigned_abs() },
                        })
                    };
                    prop_assert_eq!(hold.push(now_ns, release_ns, number), expected);
                }
                Step::Wait(ns) => now_ns += ns,
                Step::Release => {
                    let first = naive.iter().copied().min().filter(|(release_ns, _)| *release_ns <= now_ns);
                    naive.retain(|held| Some(*held) != first);
                    prop_assert_eq!(hold.release_due(now_ns).map(|due| (due.release_ns, due.data)), first);
                }
            }
            prop_assert_eq!(hold.len(), naive.len());
            prop_assert_eq!(hold.is_empty(), naive.is_empty());
            prop_assert_eq!(hold.next_release_ns(), naive.iter().map(|held| held.0).min());
        }
    }
}

#[test]
fn a_full_hold_refuses_and_never_releases_early() {
    let mut hold = Hold::new(SETTINGS);
    for number in 0..6 {
        hold.push(1_000, 1_040, number).unwrap();
    }
    assert_eq!(hold.push(1_000, 1_001, 6), Err(Refused::Full));
    assert_eq!(hold.push(1_000, 1_051, 7), Err(Refused::TooFarAhead));
    assert_eq!(hold.release_due(1_039), None);
    assert_eq!(hold.release_due(1_040).unwrap().data, 0, "of equal times the first to come");
    assert_eq!(hold.push(1_045, 1_041, 8), Ok(Timeliness::Late { late_ns: 4 }));
    assert_eq!((hold.counts().refused_full, hold.counts().refused_far, hold.counts().late_ns_max), (1, 1, 4));
}
