//! The hold of market data against a naive model: a list that is searched, and queues without bounds that are cut when read.

use std::collections::BTreeMap;

use proptest::prelude::*;
use walras_fair_access::SubscriberId;
use walras_fair_access::release::{
    Delivery, HoldRelease, HoldSettings, Piece, Refused, ReleaseSettings, SubscribeError, Timeliness,
};
use walras_types::InstrumentId;

const SETTINGS: ReleaseSettings = ReleaseSettings {
    hold: HoldSettings { held_max: 6, wait_max_ns: 50 },
    queue_max: 3,
    subscribers_max: 3,
    instruments_per_subscriber_max: 2,
};

#[derive(Default)]
struct Naive {
    held: Vec<(u64, u64, u32)>,
    seq: u64,
    wanted: BTreeMap<u32, Vec<u32>>,
    queues: BTreeMap<u32, (u64, Vec<u64>)>,
}

impl Naive {
    fn release(&mut self, now_ns: u64) -> Option<(u64, u32)> {
        let (at, (release_ns, seq, instrument)) = self.held.iter().copied().enumerate().min_by_key(|(_, held)| (held.0, held.1))?;
        if release_ns > now_ns {
            return None;
        }
        self.held.remove(at);
        let readers: Vec<u32> =
            self.wanted.iter().filter(|(_, wanted)| wanted.contains(&instrument)).map(|(who, _)| *who).collect();
        for reader in &readers {
            let (missed, queue) = self.queues.entry(*reader).or_default();
            if queue.len() == SETTINGS.queue_max {
                *missed += SETTINGS.queue_max as u64;
                queue.clear();
            }
            queue.push(seq);
        }
        Some((seq, u32::try_from(readers.len()).expect("few readers")))
    }

    fn take(&mut self, reader: u32) -> Option<Result<u64, u64>> {
        let (missed, queue) = self.queues.get_mut(&reader)?;
        match std::mem::take(missed) {
            0 => (!queue.is_empty()).then(|| Ok(queue.remove(0))),
            missed => Some(Err(missed)),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push { instrument: u32, ahead_ns: i64 },
    Wait(u64),
    Release,
    Take(u32),
    Subscribe(u32, u32),
    Unsubscribe(u32, u32),
    Disconnect(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u32..3, -20_i64..60).prop_map(|(instrument, ahead_ns)| Step::Push { instrument, ahead_ns }),
        3 => (0_u64..20).prop_map(Step::Wait),
        6 => Just(Step::Release),
        3 => (0_u32..4).prop_map(Step::Take),
        2 => (0_u32..4, 0_u32..3).prop_map(|(reader, instrument)| Step::Subscribe(reader, instrument)),
        1 => (0_u32..4, 0_u32..3).prop_map(|(reader, instrument)| Step::Unsubscribe(reader, instrument)),
        1 => (0_u32..4).prop_map(Step::Disconnect),
    ]
}

proptest! {
    #[test]
    fn it_is_the_naive_hold(steps in prop::collection::vec(step(), 0..200)) {
        let mut hold = HoldRelease::new(SETTINGS);
        let mut naive = Naive::default();
        let mut now_ns = 1_000_u64;
        for step in steps {
            match step {
                Step::Push { instrument, ahead_ns } => {
                    let release_ns = now_ns.checked_add_signed(ahead_ns).unwrap();
                    naive.seq += 1;
                    let expected = if ahead_ns > 50 {
                        Err(Refused::TooFarAhead)
                    } else if naive.held.len() == SETTINGS.hold.held_max {
                        Err(Refused::Full)
                    } else {
                        naive.held.push((release_ns, naive.seq, instrument));
                        Ok(match u64::try_from(ahead_ns) {
                            Ok(margin_ns) => Timeliness::Early { margin_ns },
                            Err(_) => Timeliness::Late { late_ns: ahead_ns.unsigned_abs() },
                        })
                    };
                    let piece = Piece { instrument: InstrumentId(instrument), feed_seq: naive.seq, release_ns, data: naive.seq };
                    prop_assert_eq!(hold.push(now_ns, piece), expected);
                }
                Step::Wait(ns) => now_ns += ns,
                Step::Release => {
                    let released = hold.release_due(now_ns);
                    if let Some(released) = released {
                        prop_assert!(released.release_ns <= now_ns, "before its time");
                    }
                    prop_assert_eq!(released.map(|released| (released.feed_seq, released.subscribers)), naive.release(now_ns));
                }
                Step::Take(reader) => {
                    let taken = hold.take(SubscriberId(reader)).map(|delivery| match delivery {
                        Delivery::Piece { data, .. } => Ok(data),
                        Delivery::Missed { count } => Err(count),
                    });
                    prop_assert_eq!(taken, naive.take(reader));
                }
                Step::Subscribe(reader, instrument) => {
                    let wanted = naive.wanted.get(&reader).cloned().unwrap_or_default();
                    let expected = if !naive.wanted.contains_key(&reader) && naive.wanted.len() == SETTINGS.subscribers_max {
                        Err(SubscribeError::Subscribers)
                    } else if !wanted.contains(&instrument) && wanted.len() == SETTINGS.instruments_per_subscriber_max {
                        Err(SubscribeError::Instruments)
                    } else {
                        naive.wanted.entry(reader).or_default().push(instrument);
                        let wanted = naive.wanted.get_mut(&reader).unwrap();
                        wanted.sort_unstable();
                        wanted.dedup();
                        Ok(())
                    };
                    prop_assert_eq!(hold.subscribe(SubscriberId(reader), InstrumentId(instrument)), expected);
                }
                Step::Unsubscribe(reader, instrument) => {
                    hold.unsubscribe(SubscriberId(reader), InstrumentId(instrument));
                    if let Some(wanted) = naive.wanted.get_mut(&reader) {
                        wanted.retain(|other| *other != instrument);
                    }
                }
                Step::Disconnect(reader) => {
                    hold.disconnect(SubscriberId(reader));
                    naive.wanted.remove(&reader);
                    naive.queues.remove(&reader);
                }
            }
            prop_assert_eq!(hold.hold().len(), naive.held.len());
            prop_assert_eq!(hold.hold().next_release_ns(), naive.held.iter().map(|held| held.0).min());
        }
    }
}

#[test]
fn who_does_not_read_loses_alone() {
    let settings = ReleaseSettings { hold: HoldSettings { held_max: 100, ..SETTINGS.hold }, ..SETTINGS };
    let mut hold = HoldRelease::new(settings);
    let (reads, sleeps, instrument) = (SubscriberId(1), SubscriberId(2), InstrumentId(5));
    hold.subscribe(reads, instrument).unwrap();
    hold.subscribe(sleeps, instrument).unwrap();
    for feed_seq in 1..=100 {
        hold.push(feed_seq, Piece { instrument, feed_seq, release_ns: feed_seq + 10, data: feed_seq }).unwrap();
        assert_eq!(hold.release_due(feed_seq + 9), None);
        assert_eq!(hold.release_due(feed_seq + 10).unwrap().subscribers, 2);
        assert_eq!(hold.take(reads), Some(Delivery::Piece { instrument, feed_seq, data: feed_seq }));
    }
    assert_eq!(hold.take(sleeps), Some(Delivery::Missed { count: 99 }));
    assert_eq!(hold.take(sleeps), Some(Delivery::Piece { instrument, feed_seq: 100, data: 100 }), "the newest");
    assert_eq!(hold.take(sleeps), None);
    assert_eq!((hold.missed(), hold.hold().counts().late), (99, 0));
}

#[test]
fn a_full_hold_refuses_and_never_releases_early() {
    let mut hold = HoldRelease::new(SETTINGS);
    let piece = |feed_seq, release_ns| Piece { instrument: InstrumentId(0), feed_seq, release_ns, data: () };
    for feed_seq in 0..6 {
        hold.push(1_000, piece(feed_seq, 1_040)).unwrap();
    }
    assert_eq!(hold.push(1_000, piece(6, 1_001)), Err(Refused::Full));
    assert_eq!(hold.push(1_000, piece(7, 1_051)), Err(Refused::TooFarAhead));
    assert_eq!(hold.release_due(1_039), None);
    assert_eq!(hold.release_due(1_040).unwrap().feed_seq, 0, "of equal times the first to come");
    assert_eq!(hold.push(1_045, piece(8, 1_041)), Ok(Timeliness::Late { late_ns: 4 }));
    assert_eq!((hold.hold().counts().refused_full, hold.hold().counts().refused_far, hold.hold().counts().late_ns_max), (1, 1, 4));
}
