//! What should not come: each is bounded and counted, and costs nobody else anything.

use super::*;

#[test]
fn copies_that_differ_are_a_breach_and_the_first_counts() {
    let mut world = World::new(settings(100), 1);
    world.comes(1_000, 1, Stamp::Gateway(1_000), ordinal(1, 1), 1);
    world.comes(1_001, 2, Stamp::Gateway(1_000), ordinal(1, 1), 9);
    world.comes(1_002, 2, Stamp::Gateway(1_000), ordinal(1, 1), 8);
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken(), [Some(ordinal(1, 1))]);
    let (gateway, ordinal) = (GatewayId(2), ordinal(1, 1));
    let refused = || Notice::Refused { gateway, ordinal, reason: RejectReason::SessionSeqReused };
    let expected = [Notice::Differs { gateway, ordinal }, refused(), refused()];
    assert_eq!(world.notices(), expected, "the operator once for a session, the sender each time");
    let figures = world.figures();
    // The others are there because orders waited for their watermarks.
    let differing: Vec<_> = figures.gateways.iter().map(|g| (g.gateway.0, g.copies.differing)).collect();
    assert_eq!(differing, [(0, 0), (1, 0), (2, 2), (3, 0)]);
}

#[test]
fn stamps_from_the_future_and_from_long_ago_reach_no_further_than_they_may() {
    let bounds = IntakeSettings { future_max_ns: 50, past_max_ns: 500, ..settings(100) };
    let mut world = World::new(bounds, 3);
    world.comes(10_000, 1, Stamp::Gateway(u64::MAX), ordinal(1, 1), 1);
    world.comes(10_000, 2, Stamp::Gateway(0), ordinal(2, 1), 1);
    assert_eq!(world.venue.taken, [(10_000, Some(ordinal(2, 1)))], "it leaves at once, and is late");
    assert_eq!(world.notices(), [Notice::Late { gateway: GatewayId(2), ordinal: ordinal(2, 1), late_ns: 400 }]);
    // The next order of who stamped the future is behind it; those of others are not.
    world.comes(10_010, 1, Stamp::Gateway(10_010), ordinal(1, 2), 2);
    world.comes(10_010, 3, Stamp::Gateway(10_009), ordinal(3, 1), 1);
    world.runs_until(u64::MAX);
    let ends = [(10_109, Some(ordinal(3, 1))), (10_150, Some(ordinal(1, 1))), (10_151, Some(ordinal(1, 2)))];
    assert_eq!(world.venue.taken[1..], ends);
    let hold = |gateway: u16| world.figures().gateways.iter().find(|g| g.gateway.0 == gateway).unwrap().hold;
    assert_eq!((hold(1).future_stamps, hold(2).stale_stamps), (1, 1));
}

#[test]
fn the_same_clamped_stamp_from_two_gateways_does_not_turn_a_session_round() {
    let mut world = World::new(IntakeSettings { future_max_ns: 50, ..settings(100) }, 1);
    // Both are clamped to the same time, and the second comes by the gateway with the smaller number.
    world.comes(10_000, 3, Stamp::Gateway(u64::MAX), ordinal(1, 1), 1);
    world.comes(10_000, 1, Stamp::Gateway(u64::MAX), ordinal(1, 2), 2);
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken(), [Some(ordinal(1, 1)), Some(ordinal(1, 2))]);
}

#[test]
fn a_gateway_apart_from_the_others_may_not_stamp() {
    let mut world = World::new(IntakeSettings { outlier_apart_max_ns: 1_000, ..settings(100_000) }, 4);
    let mut at_ns = 1_000_000;
    for n in 1..=300 {
        for gateway in 0..GATEWAYS {
            at_ns += 100;
            // All are 500 ns away; the last one stamps 50 us too early.
            let early_ns = if gateway == 3 { 50_000 } else { 0 };
            let stamp = Stamp::Gateway(at_ns - 500 - early_ns);
            world.comes(at_ns, gateway, stamp, ordinal(u64::from(gateway) + 1, n), n as u8);
        }
    }
    let figures = world.figures();
    let outlier_samples: Vec<bool> = figures.gateways.iter().map(|gateway| gateway.outlier_samples > 100).collect();
    assert_eq!(outlier_samples, [false, false, false, true]);
    world.runs_until(at_ns + 99_000);
    let waits = |session: u64| world.venue.expected[&SessionId(session)].0 <= 300;
    assert!(waits(4), "it gains nothing any more: its orders wait from when they came");
}

#[test]
fn a_session_that_is_not_open_is_refused() {
    let mut world = World::new(settings(100), 1);
    world.comes(1_000, 1, Stamp::Gateway(1_000), ordinal(2, 1), 1);
    assert_eq!(world.notices(), [refused(1, ordinal(2, 1), RejectReason::UnknownSession)]);
    // It is closed while its command is held.
    world.comes(1_000, 1, Stamp::Gateway(1_000), ordinal(1, 1), 1);
    world.venue.expected.clear();
    world.intake.forget(SessionId(1));
    world.runs_until(u64::MAX);
    assert_eq!(world.notices(), [refused(1, ordinal(1, 1), RejectReason::UnknownSession)]);
}

#[test]
fn a_gateway_with_too_many_orders_waits_alone() {
    let mut world = World::new(IntakeSettings { held_per_gateway_max: 2, ..settings(1_000) }, 3);
    for n in 1..=3 {
        world.comes(1_000, 1, Stamp::Gateway(1_000), ordinal(1, n), n as u8);
    }
    assert_eq!(world.notices(), [refused(1, ordinal(1, 3), RejectReason::Overloaded)]);
    world.comes(1_000, 2, Stamp::Gateway(1_000), ordinal(2, 1), 1);
    world.runs_until(5_000);
    assert_eq!(world.venue.taken.len(), 3);
    world.comes(6_000, 1, Stamp::Gateway(6_000), ordinal(1, 3), 3);
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken().last(), Some(&Some(ordinal(1, 3))), "sent again it is taken");
}

/// In every round a gateway's participants send far more than the leader holds of it. Cancels are taken where orders are refused, behind
/// what their sessions sent before, so they neither starve nor overtake.
#[test]
fn where_orders_are_refused_cancels_are_taken_and_do_not_overtake_theirs() {
    const SESSIONS: u64 = 40;
    let mut world = World::new(IntakeSettings { held_per_gateway_max: 16, ..settings(1_000) }, SESSIONS + 2);
    let mut refused_orders = 0;
    for round in 0..50_u64 {
        let now_ns = 100_000 + round * 2_000;
        world.runs_until(now_ns);
        // Each session that floods sends its next order.
        for session in 1..=SESSIONS {
            let next = world.venue.expected[&SessionId(session)];
            world.comes(now_ns, 1, Stamp::Gateway(now_ns), Ordinal { session: SessionId(session), session_seq: next }, round as u8);
        }
        // Two sessions that want their orders cancelled.
        for session in [SESSIONS + 1, SESSIONS + 2] {
            world.cancel_comes(now_ns, 1, Stamp::Gateway(now_ns), ordinal(session, round + 1));
        }
        let notices = world.notices();
        let of_flood = |notice: &Notice<Waiter>| match notice {
            Notice::Refused { ordinal, reason: RejectReason::Overloaded, .. } => ordinal.session.0 <= SESSIONS,
            _ => false,
        };
        assert!(notices.iter().all(of_flood), "{notices:?}");
        refused_orders += notices.len() as u64;
        world.runs_until(now_ns + 1_000);
        // Each cancel of this round has left, once, and none before its session's last one.
        let cancels: Vec<Ordinal> = world.venue.taken().into_iter().flatten().filter(|taken| taken.session.0 > SESSIONS).collect();
        let expected: Vec<Ordinal> = (1..=round + 1).flat_map(|n| [ordinal(SESSIONS + 1, n), ordinal(SESSIONS + 2, n)]).collect();
        assert_eq!(cancels, expected);
    }
    assert_eq!(refused_orders, 50 * (SESSIONS - 16), "the venue is overloaded all the time");
    // An order, refused, and the cancel behind it: neither overtakes, and both are taken when they are sent again.
    for session in 1..=16 {
        let next = world.venue.expected[&SessionId(session)];
        world.comes(900_000, 1, Stamp::Gateway(900_000), Ordinal { session: SessionId(session), session_seq: next }, 7);
    }
    let next = world.venue.expected[&SessionId(SESSIONS)];
    let (order, cancel) = (ordinal(SESSIONS, next.0), ordinal(SESSIONS, next.0 + 1));
    world.comes(900_000, 1, Stamp::Gateway(900_000), order, 7);
    world.cancel_comes(900_001, 1, Stamp::Gateway(900_001), cancel);
    world.runs_until(902_000);
    assert!(!world.venue.taken().contains(&Some(cancel)), "its order is not there");
    world.comes(902_000, 1, Stamp::Gateway(902_000), order, 7);
    world.runs_until(u64::MAX);
    let taken = world.venue.taken();
    assert_eq!(taken[taken.len() - 2..], [Some(order), Some(cancel)]);
}

/// Amends of a size have half of the room that is kept for cancels. Nobody can fill it with them so that a cancel finds none.
#[test]
fn where_orders_are_refused_amends_of_a_size_are_taken_and_leave_room_for_cancels() {
    let mut world = World::new(IntakeSettings { held_per_gateway_max: 32, ..settings(1_000) }, 40);
    let (now_ns, stamp) = (10_000, Stamp::Gateway(10_000));
    for session in 1..=32 {
        world.comes(now_ns, 1, stamp, ordinal(session, 1), 1);
    }
    assert_eq!(world.notices(), []);
    // Full: an order is refused, and so is an amend that may trade at another price.
    world.comes(now_ns, 1, stamp, ordinal(33, 1), 1);
    world.amend_comes(now_ns, 1, stamp, ordinal(34, 1), PriceTicks::new(5));
    let overloaded = |session| refused(1, ordinal(session, 1), RejectReason::Overloaded);
    assert_eq!(world.notices(), [overloaded(33), overloaded(34)]);
    // A sixteenth of 32 are two amends, and an eighth are four in all.
    for session in 35..=37 {
        world.amend_comes(now_ns, 1, stamp, ordinal(session, 1), None);
    }
    assert_eq!(world.notices(), [overloaded(37)]);
    for session in 38..=40 {
        world.cancel_comes(now_ns, 1, stamp, ordinal(session, 1));
    }
    assert_eq!(world.notices(), [overloaded(40)]);
    world.runs_until(now_ns + 1_000);
    let taken: Vec<u64> = world.venue.taken().into_iter().flatten().map(|taken| taken.session.0).collect();
    assert_eq!(taken, (1..=32).chain([35, 36, 38, 39]).collect::<Vec<_>>(), "in the order of their stamps and sessions");
}

#[test]
fn an_order_does_not_wait_for_ever_nor_do_many() {
    let mut world = World::new(IntakeSettings { early_per_session_max: 2, early_max_ns: 500, ..settings(10) }, 1);
    for n in 2..=4 {
        world.comes(1_000 + n, 1, Stamp::Gateway(1_000), ordinal(1, n), n as u8);
    }
    assert_eq!(world.notices(), [refused(1, ordinal(1, 4), RejectReason::Overloaded)]);
    world.runs_until(1_502);
    assert_eq!(world.notices(), [refused(1, ordinal(1, 2), RejectReason::VenueNotReady)]);
    world.runs_until(u64::MAX);
    assert_eq!((world.notices(), world.figures().early), (vec![refused(1, ordinal(1, 3), RejectReason::VenueNotReady)], 0));
    for n in 1..=4 {
        world.comes(3_000, 1, Stamp::Gateway(3_000), ordinal(1, n), n as u8);
    }
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken(), [1, 2, 3, 4].map(|n| Some(ordinal(1, n))));
}

#[test]
fn what_the_sequencer_does_not_take_is_taken_when_it_is_sent_again() {
    let mut world = World::new(settings(100), 1);
    for n in 1..=3 {
        world.comes(1_000, 1, Stamp::Gateway(1_000 + n), ordinal(1, n), n as u8);
    }
    world.venue.refuses = Some(RejectReason::Overloaded);
    world.runs_until(1_101);
    assert_eq!(world.notices(), [refused(1, ordinal(1, 1), RejectReason::Overloaded)]);
    world.venue.refuses = None;
    // Those behind it are still held; they are dropped, and those that come again are not taken for their copies.
    for n in 1..=3 {
        world.comes(1_102, 1, Stamp::Gateway(1_102), ordinal(1, n), n as u8);
    }
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken(), [1, 2, 3].map(|n| Some(ordinal(1, n))));
    assert_eq!(world.notices(), []);
}

#[test]
fn what_the_sequencer_took_and_lost_is_taken_when_it_is_sent_again() {
    let mut world = World::new(settings(100), 1);
    for n in 1..=3 {
        world.comes(1_000, 1, Stamp::Gateway(1_000), ordinal(1, n), n as u8);
    }
    world.runs_until(u64::MAX);
    world.venue.expected.insert(SessionId(1), SessionSeq(2));
    world.comes(5_000, 1, Stamp::Gateway(1_000), ordinal(1, 2), 2);
    world.comes(5_000, 1, Stamp::Gateway(1_000), ordinal(1, 3), 3);
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken(), [1, 2, 3, 2, 3].map(|n| Some(ordinal(1, n))));
}

#[test]
fn more_sessions_than_may_be_remembered_push_out_idle_ones_only() {
    let mut world = World::new(IntakeSettings { sessions_max: 2, ..settings(100) }, 4);
    world.comes(1_000, 1, Stamp::Gateway(1_000), ordinal(1, 1), 1);
    world.comes(1_010, 1, Stamp::Gateway(1_010), ordinal(2, 1), 1);
    world.comes(1_020, 1, Stamp::Gateway(1_020), ordinal(3, 1), 1);
    assert_eq!(world.notices(), [refused(1, ordinal(3, 1), RejectReason::Overloaded)], "both have orders in the hold");
    world.runs_until(1_105);
    world.comes(1_106, 1, Stamp::Gateway(1_106), ordinal(3, 1), 1);
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken(), [ordinal(1, 1), ordinal(2, 1), ordinal(3, 1)].map(Some));
    // The one that was pushed out goes on where it was.
    world.comes(2_000, 1, Stamp::Gateway(2_000), ordinal(1, 1), 1);
    world.comes(2_000, 1, Stamp::Gateway(2_000), ordinal(1, 2), 2);
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken().last(), Some(&Some(ordinal(1, 2))));
}

#[test]
fn a_gateway_that_is_not_configured_gets_nowhere() {
    let mut world = World::new(settings(100), 1);
    world.comes(1_000, GATEWAYS, Stamp::Gateway(1_000), ordinal(1, 1), 1);
    world.intake.on_malformed(GatewayId(GATEWAYS));
    world.intake.on_malformed(GatewayId(2));
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken, []);
    let figures = world.figures();
    assert_eq!(figures.gateways.iter().map(|g| (g.gateway.0, g.copies.malformed)).collect::<Vec<_>>(), [(2, 1)]);
}
