//! The hold against a naive model: a list that is searched.

use proptest::prelude::*;
use walras_fair_access::GatewayId;
use walras_fair_access::resequence::{Arrival, Refused, Released, Resequencer, ResequencerSettings, Sequence, Stamp};
use walras_types::{SessionId, SessionSeq};

const SETTINGS: ResequencerSettings =
    ResequencerSettings { gateways: 3, future_max_ns: 20, past_max_ns: 100, held_per_gateway_max: 4 };

/// Stamp, gateway, place, session, arrival's number.
type Key = (u64, u16, u64, u64, u64);

#[derive(Default)]
struct Naive {
    delay_ns: u64,
    held: Vec<(Key, u64, u64)>,
    arrivals: u64,
    left: Vec<Key>,
    refused: u64,
}

impl Naive {
    fn push(&mut self, now_ns: u64, gateway: u16, session: u64, seq: u64, stamp: Stamp) -> bool {
        let of_gateway = self.held.iter().filter(|(key, ..)| key.1 == gateway).count();
        if gateway >= SETTINGS.gateways || of_gateway >= SETTINGS.held_per_gateway_max as usize {
            self.refused += 1;
            return false;
        }
        let stamp_ns = match stamp {
            Stamp::OnArrival => now_ns,
            Stamp::Gateway(stamp_ns) => {
                stamp_ns.min(now_ns + SETTINGS.future_max_ns).max(now_ns - SETTINGS.past_max_ns.min(now_ns))
            }
        };
        let late_ns = now_ns.saturating_sub(stamp_ns + self.delay_ns);
        self.held.push(((stamp_ns, gateway, seq, session, self.arrivals), now_ns, late_ns));
        self.arrivals += 1;
        true
    }

    fn due_ns(&self, key: Key, arrived_ns: u64) -> u64 {
        let is_overtaken = self.left.iter().any(|left| *left > key);
        if is_overtaken { arrived_ns } else { arrived_ns.max(key.0 + self.delay_ns) }
    }

    fn pop(&mut self, now_ns: u64) -> Option<(Key, u64, u64, Sequence)> {
        let (at, (key, arrived_ns, late_ns)) = self.held.iter().copied().enumerate().min_by_key(|(_, held)| held.0)?;
        if self.due_ns(key, arrived_ns) > now_ns {
            return None;
        }
        self.held.remove(at);
        let sequence = if self.left.iter().any(|left| *left > key) {
            let latest_ns = self.left.iter().map(|left| left.0).max().unwrap_or(0);
            let previous_ns = self.left.last().map_or(0, |left| left.0);
            Sequence::Broken {
                behind_previous_ns: previous_ns.saturating_sub(key.0),
                behind_latest_ns: latest_ns.saturating_sub(key.0),
            }
        } else {
            Sequence::Kept
        };
        self.left.push(key);
        Some((key, arrived_ns, late_ns, sequence))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push { gateway: u16, session: u64, seq: u64, stamp_back: Option<i64> },
    Delay(u64),
    Wait(u64),
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    // Stamps collide, lie in the future, and lie too far back; gateway 3 does not exist.
    let stamp =
        prop_oneof![1 => Just(None), 6 => (-40_i64..140).prop_map(Some), 1 => Just(Some(i64::MIN)), 1 => Just(Some(i64::MAX))];
    prop_oneof![
        6 => (0_u16..4, 0_u64..3, 1_u64..4, stamp).prop_map(|(gateway, session, seq, stamp_back)| Step::Push { gateway, session, seq, stamp_back }),
        1 => (0_u64..80).prop_map(Step::Delay),
        4 => (0_u64..30).prop_map(Step::Wait),
        6 => Just(Step::Pop),
    ]
}

fn key_of(released: &Released<u64>) -> (u64, u16, u64, u64, u64) {
    (released.stamp_ns, released.gateway.0, released.session_seq.0, released.session.0, released.order)
}

proptest! {
    #[test]
    fn it_is_the_naive_hold(steps in prop::collection::vec(step(), 0..120)) {
        let mut hold = Resequencer::new(SETTINGS, 0);
        let mut naive = Naive::default();
        let mut now_ns = 1_000_u64;
        for step in steps {
            match step {
                Step::Push { gateway, session, seq, stamp_back } => {
                    let stamp = stamp_back.map_or(Stamp::OnArrival, |back| {
                        Stamp::Gateway(match back {
                            i64::MIN => u64::MAX,
                            i64::MAX => 0,
                            back => now_ns.checked_add_signed(-back).unwrap(),
                        })
                    });
                    let number = naive.arrivals;
                    let taken = naive.push(now_ns, gateway, session, seq, stamp);
                    let (session, session_seq) = (SessionId(session), SessionSeq(seq));
                    let arrival = Arrival { gateway: GatewayId(gateway), session, session_seq, stamp, order: number };
                    match hold.push(now_ns, arrival) {
                        Ok(()) => prop_assert!(taken),
                        Err(Refused::UnknownGateway(order)) => prop_assert!(!taken && gateway == 3 && order == number),
                        Err(Refused::Full(order)) => prop_assert!(!taken && gateway < 3 && order == number),
                    }
                }
                Step::Delay(delay_ns) => {
                    hold.set_delay_ns(delay_ns);
                    naive.delay_ns = delay_ns;
                }
                Step::Wait(ns) => now_ns += ns,
                Step::Pop => {
                    let (ours, naives) = (hold.pop_due(now_ns), naive.pop(now_ns));
                    let ours = ours.map(|released| (key_of(&released), released.arrived_ns, released.late_ns, released.sequence));
                    prop_assert_eq!(ours, naives);
                }
            }
            prop_assert_eq!(hold.len(), naive.held.len());
            let first = naive.held.iter().min_by_key(|held| held.0).map(|(key, arrived_ns, _)| naive.due_ns(*key, *arrived_ns));
            prop_assert_eq!(hold.next_due_ns(), first);
        }
        // Everything is counted once.
        let counts: Vec<_> = (0..3).map(|gateway| *hold.counts(GatewayId(gateway)).unwrap()).collect();
        prop_assert_eq!(counts.iter().map(|counts| counts.orders).sum::<u64>(), naive.arrivals);
        let refused = hold.unknown_gateway_count() + counts.iter().map(|counts| counts.refused).sum::<u64>();
        prop_assert_eq!(refused, naive.refused);
    }

    /// Whatever one gateway stamps, the others' orders that arrive in time leave in order and on time.
    #[test]
    fn who_lies_delays_nobody(stamps in prop::collection::vec((0_u64..60, any::<u64>()), 1..60)) {
        const DELAY_NS: u64 = 50;
        let settings = ResequencerSettings { held_per_gateway_max: 1_000, ..SETTINGS };
        let mut hold = Resequencer::new(settings, DELAY_NS);
        let (mut now_ns, mut honest) = (1_000_u64, Vec::new());
        for (number, (gap_ns, lie)) in stamps.into_iter().enumerate() {
            while let Some(due_ns) = hold.next_due_ns().filter(|due_ns| *due_ns <= now_ns + gap_ns) {
                honest.extend(hold.pop_due(due_ns).filter(|released| released.gateway.0 == 0).map(|released| (released, due_ns)));
            }
            now_ns += gap_ns;
            let (session, session_seq) = (SessionId(1), SessionSeq(number as u64));
            let of = |gateway, stamp_ns| Arrival { gateway: GatewayId(gateway), session, session_seq, stamp: Stamp::Gateway(stamp_ns), order: 0_u64 };
            hold.push(now_ns, of(0, now_ns - 10)).unwrap();
            hold.push(now_ns, of(1, lie)).unwrap();
        }
        while let Some(due_ns) = hold.next_due_ns() {
            honest.extend(hold.pop_due(due_ns).filter(|released| released.gateway.0 == 0).map(|released| (released, due_ns)));
        }
        for pair in honest.windows(2) {
            prop_assert!(pair[0].0.stamp_ns <= pair[1].0.stamp_ns);
        }
        for (released, left_ns) in &honest {
            // At most: a stamp that is early, or late by no more than the clamp allows, may make it leave at once, never later.
            prop_assert!(*left_ns <= released.stamp_ns + DELAY_NS, "{released:?} left at {left_ns}");
        }
    }
}

#[test]
fn orders_leave_in_the_order_of_the_edge() {
    let mut hold = Resequencer::new(SETTINGS, 50);
    let of = |gateway, seq, stamp| Arrival {
        gateway: GatewayId(gateway),
        session: SessionId(7),
        session_seq: SessionSeq(seq),
        stamp,
        order: seq,
    };
    // The second order reached the edge first.
    hold.push(1_030, of(0, 1, Stamp::Gateway(1_010))).unwrap();
    hold.push(1_040, of(1, 2, Stamp::Gateway(1_000))).unwrap();
    assert_eq!((hold.next_due_ns(), hold.pop_due(1_049)), (Some(1_050), None));
    let first = hold.pop_due(1_050).unwrap();
    assert_eq!((first.order, first.late_ns, first.sequence), (2, 0, Sequence::Kept));
    assert_eq!(hold.pop_due(1_060).unwrap().order, 1);
    // A late order leaves at once, with its lateness recorded; later orders keep their release times.
    hold.push(1_070, of(2, 3, Stamp::Gateway(1_005))).unwrap();
    let late = hold.pop_due(1_070).unwrap();
    assert_eq!((late.late_ns, late.sequence.is_unfair()), (15, true));
    assert_eq!(late.sequence, Sequence::Broken { behind_previous_ns: 5, behind_latest_ns: 5 });
    // A longer delay does not hold orders that are already overtaken.
    hold.set_delay_ns(90);
    hold.push(1_080, of(2, 4, Stamp::Gateway(1_008))).unwrap();
    assert_eq!(hold.pop_due(1_080).unwrap().order, 4);
    let counts = hold.counts(GatewayId(2)).unwrap();
    assert_eq!((counts.orders, counts.late, counts.late_ns_max, counts.out_of_sequence), (2, 1, 15, 2));
}

#[test]
fn bad_stamps_are_clamped_and_counted() {
    let mut hold = Resequencer::new(SETTINGS, 50);
    let of = |stamp| Arrival { gateway: GatewayId(1), session: SessionId(7), session_seq: SessionSeq(1), stamp, order: () };
    hold.push(1_000, of(Stamp::Gateway(9_999))).unwrap();
    assert_eq!(hold.next_due_ns(), Some(1_070), "the future is 20 away");
    hold.push(1_000, of(Stamp::Gateway(1))).unwrap();
    hold.push(1_000, of(Stamp::OnArrival)).unwrap();
    assert_eq!(hold.pop_due(1_000).unwrap().late_ns, 50, "100 back at most");
    assert_eq!(hold.next_due_ns(), Some(1_050));
    let counts = hold.counts(GatewayId(1)).unwrap();
    let bad = (counts.future_stamps, counts.stale_stamps, counts.stepped_back, counts.unstamped);
    assert_eq!(bad, (1, 1, 1, 1));
}
