//! The watermark merge: orders leave once every gateway has shown a watermark that is past them, and after d_s at the latest.

use proptest::prelude::*;

use super::*;

/// Of a gateway, in the order in which it sends: when it comes, and what.
type Stream = Vec<(u64, Sent)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sent {
    /// An order, of a session of its own.
    Order {
        stamp_ns: u64,
        session: u64,
    },
    Watermark {
        until_ns: u64,
    },
}

/// A gateway's round: its time after the round before, the ages of its orders' stamps at its end, how long the link takes, and whether
/// it shows a watermark.
type Round = (u64, Vec<u64>, u64, bool);

fn rounds() -> impl Strategy<Value = Vec<Vec<Round>>> {
    let round = (1_u64..400, prop::collection::vec(0_u64..400, 0..4), 0_u64..600, prop::bool::weighted(0.8));
    prop::collection::vec(prop::collection::vec(round, 1..20), 3..=3)
}

const BEGIN_NS: u64 = 1_000_000;

/// What gateways that keep their promises send. Links keep the order of messages.
fn streams(rounds: &[Vec<Round>]) -> Vec<Stream> {
    let mut sessions = 1..;
    let mut streams = Vec::new();
    for rounds in rounds {
        let (mut now_ns, mut said_ns, mut arrives_ns) = (BEGIN_NS, 0, 0);
        let mut stream = Vec::new();
        for (after_ns, ages_ns, takes_ns, shows) in rounds {
            now_ns += after_ns;
            arrives_ns = u64::max(arrives_ns, now_ns + takes_ns);
            // Sockets are read in any order.
            for age_ns in ages_ns {
                let stamp_ns = u64::max(now_ns - age_ns, said_ns + 1);
                let session = sessions.next().unwrap();
                stream.push((arrives_ns, Sent::Order { stamp_ns, session }));
            }
            if *shows {
                said_ns = now_ns;
                stream.push((arrives_ns, Sent::Watermark { until_ns: now_ns }));
            }
        }
        streams.push(stream);
    }
    streams
}

/// All messages by when they come.
fn arrivals(streams: &[Stream]) -> Vec<(u64, u16, Sent)> {
    let of = |(gateway, stream): (u16, &Stream)| stream.iter().map(|(at_ns, sent)| (*at_ns, gateway, *sent)).collect::<Vec<_>>();
    let mut all: Vec<_> = (0..).zip(streams).flat_map(of).collect();
    all.sort_by_key(|(at_ns, gateway, _)| (*at_ns, *gateway));
    all
}

fn run(streams: &[Stream], settings: IntakeSettings) -> World {
    let mut world = World::new(settings, 1_000);
    world.intake.await_gateways(0b111);
    for (at_ns, gateway, sent) in arrivals(streams) {
        world.runs_until(at_ns);
        match sent {
            Sent::Order { stamp_ns, session } => world.comes(at_ns, gateway, Stamp::Gateway(stamp_ns), ordinal(session, 1), 1),
            Sent::Watermark { until_ns } => {
                world.intake.on_watermark(GatewayId(gateway), Stamp::Gateway(until_ns));
                world.passes(at_ns);
            }
        }
    }
    world.runs_until(u64::MAX);
    world
}

/// An order: its stamp, its gateway, its session; and when it came.
fn orders(streams: &[Stream]) -> Vec<((u64, u16, u64), u64)> {
    let mut orders: Vec<_> = arrivals(streams)
        .into_iter()
        .filter_map(|(at_ns, gateway, sent)| match sent {
            Sent::Order { stamp_ns, session } => Some(((stamp_ns, gateway, session), at_ns)),
            Sent::Watermark { .. } => None,
        })
        .collect();
    orders.sort_unstable();
    orders
}

fn settings_of(delay_ns: u64) -> IntakeSettings {
    IntakeSettings { outlier_apart_max_ns: 1 << 60, future_max_ns: BEGIN_NS, past_max_ns: BEGIN_NS, ..settings(delay_ns) }
}

proptest! {
    /// The naive model: an order may leave when, of each gateway, a watermark has come that is past its stamp, or its delay is over; and
    /// it does so behind all with earlier stamps.
    #[test]
    fn live_gateways_orders_leave_sorted_and_no_later_than_the_last_watermark(rounds in rounds()) {
        const DELAY_NS: u64 = 1_000_000;
        let streams = streams(&rounds);
        let world = run(&streams, settings_of(DELAY_NS));
        let past_ns = |stream: &Stream, stamp_ns: u64| {
            let is_past = |(_, sent): &&(u64, Sent)| matches!(sent, Sent::Watermark { until_ns } if *until_ns >= stamp_ns);
            stream.iter().find(is_past).map_or(u64::MAX, |(at_ns, _)| *at_ns)
        };
        let mut free_ns = 0;
        let mut expected = Vec::new();
        for ((stamp_ns, _, session), at_ns) in orders(&streams) {
            let shown_ns = streams.iter().map(|stream| past_ns(stream, stamp_ns)).max().unwrap().max(stamp_ns + 1);
            free_ns = u64::max(free_ns, shown_ns.min(stamp_ns + DELAY_NS).max(at_ns));
            expected.push((free_ns, Some(ordinal(session, 1))));
        }
        prop_assert_eq!(&world.venue.taken, &expected);
        let figures = world.intake.figures();
        prop_assert_eq!((world.notices.len(), figures.unfair), (0, 0));
        prop_assert!(figures.gateways.iter().all(|gateway| gateway.hold.out_of_sequence == 0 && gateway.copies.behind_watermark == 0));
        prop_assert!(figures.merged <= expected.len() as u64);
    }

    /// However gateways break their promises, no order is held longer than d_s, and none leaves after one with a later stamp
    /// unless it came after d_s, or after its own gateway's watermark.
    #[test]
    fn a_gateway_that_is_silent_or_lies_delays_nobody_beyond_d_s_and_overtakes_nobody(
        rounds in rounds(),
        delay_ns in 0_u64..1_000,
        silent in prop::option::of(0_usize..3),
        ahead_ns in prop::option::of((0_usize..3, 1_u64..2_000)),
    ) {
        let mut streams = streams(&rounds);
        if let Some(silent) = silent {
            streams[silent].retain(|(_, sent)| matches!(sent, Sent::Order { .. }));
        }
        if let Some((liar, ahead_ns)) = ahead_ns {
            for (_, sent) in &mut streams[liar] {
                if let Sent::Watermark { until_ns } = sent {
                    *until_ns += ahead_ns;
                }
            }
        }
        let world = run(&streams, settings_of(delay_ns));
        let orders = orders(&streams);
        prop_assert_eq!(world.venue.taken.len(), orders.len());
        let of: BTreeMap<u64, ((u64, u16, u64), u64)> = orders.iter().map(|order| (order.0.2, *order)).collect();
        let mut latest = (0, 0, 0);
        for (left_ns, left) in &world.venue.taken {
            let ((stamp_ns, gateway, session), at_ns) = of[&left.unwrap().session.0];
            prop_assert!(*left_ns <= u64::max(at_ns, stamp_ns + delay_ns), "{stamp_ns} came at {at_ns} and left at {left_ns}");
            if (stamp_ns, gateway, session) < latest {
                let stream = &streams[usize::from(gateway)];
                let place = stream.iter().position(|(_, sent)| *sent == Sent::Order { stamp_ns, session }).unwrap();
                let promised = |(_, sent): &(u64, Sent)| matches!(sent, Sent::Watermark { until_ns } if *until_ns >= stamp_ns);
                prop_assert!(at_ns >= stamp_ns + delay_ns || stream[..place].iter().any(promised), "{stamp_ns} by {gateway} at {at_ns}");
            }
            latest = latest.max((stamp_ns, gateway, session));
        }
        let lies = world.figures().gateways.iter().filter(|gateway| gateway.copies.behind_watermark > 0).count();
        prop_assert!(lies <= usize::from(ahead_ns.is_some()), "{lies} are counted");
    }
}

fn world(delay_ns: u64) -> World {
    let mut world = World::new(settings_of(delay_ns), 8);
    world.intake.await_gateways(0b11);
    world
}

fn show(world: &mut World, now_ns: u64, gateway: u16, until: Stamp) {
    world.intake.on_watermark(GatewayId(gateway), until);
    world.passes(now_ns);
}

#[test]
fn a_silent_gateway_is_waited_for_until_d_s_and_named() {
    let mut world = world(5_000);
    world.comes(BEGIN_NS + 50, 0, Stamp::Gateway(BEGIN_NS), ordinal(1, 1), 1);
    show(&mut world, BEGIN_NS + 50, 0, Stamp::Gateway(BEGIN_NS + 10));
    assert_eq!((world.venue.taken.len(), world.intake.next_due_ns()), (0, Some(BEGIN_NS + 5_000)));
    assert_eq!(world.intake.next_but_for(GatewayId(1)), Some(BEGIN_NS + 1), "it waits for the second alone");
    world.runs_until(BEGIN_NS + 5_000);
    assert_eq!(world.venue.taken, [(BEGIN_NS + 5_000, Some(ordinal(1, 1)))]);
    let figures = world.figures();
    assert_eq!((figures.merged, figures.gateways[0].copies.waited_for), (0, 0));
    // The second has sent nothing, and is named all the same.
    assert_eq!((figures.gateways[1].gateway, figures.gateways[1].copies.waited_for), (GatewayId(1), 1));
    // It says something; the next one leaves at once.
    show(&mut world, BEGIN_NS + 6_000, 1, Stamp::Gateway(BEGIN_NS + 6_000));
    show(&mut world, BEGIN_NS + 6_000, 0, Stamp::Gateway(BEGIN_NS + 6_000));
    world.comes(BEGIN_NS + 6_100, 0, Stamp::Gateway(BEGIN_NS + 6_000), ordinal(2, 1), 1);
    assert_eq!((world.venue.taken.len(), world.figures().merged), (2, 1));
    // Its link is lost, and with it what it promised.
    world.intake.forget_watermark(GatewayId(1));
    world.comes(BEGIN_NS + 6_100, 0, Stamp::Gateway(BEGIN_NS + 6_000), ordinal(3, 1), 1);
    assert_eq!(world.venue.taken.len(), 2);
    // It is no member any more.
    world.intake.await_gateways(0b01);
    world.passes(BEGIN_NS + 6_101);
    assert_eq!(world.venue.taken.len(), 3);
}

#[test]
fn a_gateway_that_stamps_nothing_is_not_waited_for() {
    let mut world = world(5_000);
    show(&mut world, BEGIN_NS, 0, Stamp::Gateway(BEGIN_NS + 90));
    show(&mut world, BEGIN_NS, 1, Stamp::OnArrival);
    // Stamped ahead of the leader's clock: orders that nobody stamped may still come with earlier times.
    world.comes(BEGIN_NS + 50, 0, Stamp::Gateway(BEGIN_NS + 80), ordinal(1, 1), 1);
    assert_eq!((world.venue.taken.len(), world.intake.next_due_ns()), (0, Some(BEGIN_NS + 81)));
    world.comes(BEGIN_NS + 60, 1, Stamp::OnArrival, ordinal(2, 1), 1);
    world.runs_until(BEGIN_NS + 90);
    assert_eq!(world.venue.taken(), [Some(ordinal(2, 1)), Some(ordinal(1, 1))]);
    assert_eq!(world.figures().unfair, 0);
}

#[test]
fn an_order_behind_its_gateways_watermark_is_counted_and_steers_nothing() {
    let mut world = world(5_000);
    for gateway in 0..2 {
        show(&mut world, BEGIN_NS + 200, gateway, Stamp::Gateway(BEGIN_NS + 200));
    }
    world.comes(BEGIN_NS + 250, 0, Stamp::Gateway(BEGIN_NS + 190), ordinal(1, 1), 1);
    let judged = world.figures().judged;
    world.comes(BEGIN_NS + 260, 1, Stamp::Gateway(BEGIN_NS + 150), ordinal(2, 1), 1);
    let figures = world.figures();
    assert_eq!(world.venue.taken(), [Some(ordinal(1, 1)), Some(ordinal(2, 1))]);
    assert_eq!(figures.gateways.iter().map(|gateway| gateway.copies.behind_watermark).collect::<Vec<_>>(), [1, 1]);
    assert_eq!((judged, figures.judged, figures.gateways[1].hold.out_of_sequence), (0, 0, 1));
    let late = Notice::Late { gateway: GatewayId(1), ordinal: ordinal(2, 1), late_ns: 40 };
    assert_eq!(world.notices(), [late], "its participant hears of it");
}

#[test]
fn where_it_is_switched_off_watermarks_count_for_nothing() {
    let mut world = World::new(IntakeSettings { merges: false, ..settings_of(5_000) }, 1);
    world.intake.await_gateways(0b1);
    show(&mut world, BEGIN_NS, 0, Stamp::Gateway(BEGIN_NS + 90));
    world.comes(BEGIN_NS + 50, 0, Stamp::Gateway(BEGIN_NS), ordinal(1, 1), 1);
    assert_eq!((world.venue.taken.len(), world.intake.next_due_ns()), (0, Some(BEGIN_NS + 5_000)));
    assert_eq!(world.intake.next_but_for(GatewayId(0)), None);
}
