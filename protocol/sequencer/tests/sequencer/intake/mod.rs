//! The intake: copies, lines of sessions, the hold, and what it does with what it should not get.

mod bad_input;
mod busy_gateways;
mod far_gateway;
mod merge;
mod model;

use std::collections::BTreeMap;

use walras_fair_access::GatewayId;
use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Stepped};
use walras_fair_access::resequence::Stamp;
use walras_sequencer::{Arrives, Intake, IntakeFigures, IntakeSettings, NotTaken, Notice, Place, SignedBy, Timed};
use walras_types::{
    AccountId, Amendment, ClientOrderId, InstrumentId, Ordinal, PriceTicks, RejectReason, SessionId, SessionSeq, SizeLots,
};
use walras_wire::{AmendOrder, Command, MassCancel, OrderCommand, VenueCommand};

/// Who waits here.
type Waiter = u32;

/// What an intake hands its sequencer, and what that says: it takes each session's next command, like the real one.
#[derive(Default)]
struct Venue {
    /// Open sessions, and what is expected of each.
    expected: BTreeMap<SessionId, SessionSeq>,
    /// What it took: when, and which.
    taken: Vec<(u64, Option<Ordinal>)>,
    /// It takes nothing, and says why.
    refuses: Option<RejectReason>,
}

impl Venue {
    fn with_sessions(count: u64) -> Self {
        Self { expected: (1..=count).map(|n| (SessionId(n), SessionSeq(1))).collect(), ..Self::default() }
    }

    fn submit(&mut self, now_ns: u64, ordinal: Option<Ordinal>) -> Result<(), NotTaken> {
        if let Some(reason) = self.refuses {
            return Err(NotTaken::Refused(reason));
        }
        if let Some(Ordinal { session, session_seq }) = ordinal {
            let expected = self.expected.get_mut(&session).ok_or(NotTaken::Refused(RejectReason::UnknownSession))?;
            if session_seq < *expected {
                return Err(NotTaken::OnItsWay);
            }
            if session_seq > *expected {
                return Err(NotTaken::Refused(RejectReason::SessionSeqGap));
            }
            *expected = session_seq.next();
        }
        self.taken.push((now_ns, ordinal));
        Ok(())
    }

    fn taken(&self) -> Vec<Option<Ordinal>> {
        self.taken.iter().map(|(_, ordinal)| *ordinal).collect()
    }
}

/// An intake with its venue.
struct World {
    intake: Intake<Waiter>,
    venue: Venue,
    notices: Vec<Notice<Waiter>>,
}

const GATEWAYS: u16 = 4;

fn settings(delay_ns: u64) -> IntakeSettings {
    IntakeSettings::new(GATEWAYS, DelaySettings::Static { delay_ns }, 7)
}

fn ordinal(session: u64, session_seq: u64) -> Ordinal {
    Ordinal { session: SessionId(session), session_seq: SessionSeq(session_seq) }
}

impl World {
    fn new(settings: IntakeSettings, sessions: u64) -> Self {
        Self { intake: Intake::new(settings), venue: Venue::with_sessions(sessions), notices: Vec::new() }
    }

    /// A copy comes, with that content; what is due leaves.
    fn comes(&mut self, now_ns: u64, gateway: u16, stamp: Stamp, ordinal: Ordinal, content: u8) {
        let expected = self.venue.expected.get(&ordinal.session).copied();
        let place = Place::Ordinal(ordinal);
        let (gateway, command) = (GatewayId(gateway), Command::Venue(VenueCommand::Tick));
        let arrives = Arrives { gateway, stamp, place, command, content: &[content], signed: SignedBy::NOBODY, origin: None };
        self.intake.on_arrival(now_ns, arrives, expected, &mut self.notices);
        self.passes(now_ns);
    }

    /// A cancel comes; what is due leaves.
    fn cancel_comes(&mut self, now_ns: u64, gateway: u16, stamp: Stamp, ordinal: Ordinal) {
        let cancel = MassCancel { account: AccountId(1), instrument: None, side: None };
        self.order_command_comes(now_ns, gateway, stamp, ordinal, OrderCommand::MassCancel(cancel));
    }

    /// An amend comes, of the size alone or of the price too; what is due leaves.
    fn amend_comes(&mut self, now_ns: u64, gateway: u16, stamp: Stamp, ordinal: Ordinal, price: Option<PriceTicks>) {
        let amendment = Amendment { client_order_id: ClientOrderId(1), price, trigger: None, size: Some(SizeLots::new(1)) };
        let amend = AmendOrder { account: AccountId(1), instrument: InstrumentId(1), amendment };
        self.order_command_comes(now_ns, gateway, stamp, ordinal, OrderCommand::Amend(amend));
    }

    fn order_command_comes(&mut self, now_ns: u64, gateway: u16, stamp: Stamp, ordinal: Ordinal, command: OrderCommand) {
        let expected = self.venue.expected.get(&ordinal.session).copied();
        let arrives = Arrives {
            gateway: GatewayId(gateway),
            stamp,
            place: Place::Ordinal(ordinal),
            command: Command::Order(command),
            content: &[0xCC],
            signed: SignedBy::NOBODY,
            origin: None,
        };
        self.intake.on_arrival(now_ns, arrives, expected, &mut self.notices);
        self.passes(now_ns);
    }

    /// One without a number.
    fn comes_alone(&mut self, now_ns: u64, place: Place, stamp: Stamp, waiter: Waiter) {
        let arrives = Arrives {
            gateway: GatewayId(0),
            stamp,
            place,
            command: Command::Venue(VenueCommand::Tick),
            content: &[0],
            signed: SignedBy::NOBODY,
            origin: Some(waiter),
        };
        self.intake.on_arrival(now_ns, arrives, None, &mut self.notices);
        self.passes(now_ns);
    }

    /// What is due now leaves.
    fn passes(&mut self, now_ns: u64) {
        let Self { intake, venue, notices } = self;
        intake.release(now_ns, |ordinal, _, _, origin| venue.submit(now_ns, ordinal).map_err(|why| (why, origin)), notices);
    }

    /// Time goes on until then; everything leaves when it is due.
    fn runs_until(&mut self, until_ns: u64) {
        while let Some(due_ns) = self.intake.next_due_ns().filter(|due_ns| *due_ns <= until_ns) {
            self.passes(due_ns);
        }
    }

    fn figures(&self) -> IntakeFigures {
        self.intake.figures()
    }

    fn notices(&mut self) -> Vec<Notice<Waiter>> {
        std::mem::take(&mut self.notices)
    }
}

#[test]
fn one_of_sixteen_is_timed_from_its_stamp_to_its_leaving() {
    let mut world = World::new(settings(1_000), 1);
    // The last but one comes before its turn: its transit says nothing of the way.
    let places = (1..=30).chain([32, 31, 33]);
    for (at_ns, place) in (10_000..).step_by(100).zip(places) {
        world.runs_until(at_ns);
        world.comes(at_ns, 1, Stamp::Gateway(at_ns - 70), ordinal(1, place), 1);
    }
    world.runs_until(20_000);
    let timed: Vec<Timed> = world.intake.take_timed().collect();
    assert_eq!(timed[0], Timed { ordinal: ordinal(1, 16), transit_ns: Some(70), held_ns: 930 });
    assert_eq!((timed.len(), timed[1].ordinal, timed[1].transit_ns), (2, ordinal(1, 32), None));
    assert_eq!(world.intake.take_timed().count(), 0, "each is reported once");
    // What the sequencer does not take is not timed until it comes again.
    (34..=47).for_each(|place| world.comes(20_000, 1, Stamp::OnArrival, ordinal(1, place), 1));
    world.runs_until(30_000);
    for (at_ns, refuses, timed) in [(30_000, Some(RejectReason::Overloaded), 0), (40_000, None, 1)] {
        world.venue.refuses = refuses;
        world.comes(at_ns, 1, Stamp::OnArrival, ordinal(1, 48), 1);
        world.runs_until(at_ns + 5_000);
        assert_eq!(world.intake.take_timed().count(), timed);
    }
}

fn refused(gateway: u16, ordinal: Ordinal, reason: RejectReason) -> Notice<Waiter> {
    Notice::Refused { gateway: GatewayId(gateway), ordinal, reason }
}

#[test]
fn orders_leave_in_the_order_of_stamps_after_the_delay() {
    let mut world = World::new(settings(1_000), 3);
    world.comes(10_400, 1, Stamp::Gateway(10_300), ordinal(1, 1), 1);
    world.comes(10_500, 2, Stamp::Gateway(10_100), ordinal(2, 1), 1);
    world.comes(10_600, 3, Stamp::Gateway(10_200), ordinal(3, 1), 1);
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken, [(11_100, Some(ordinal(2, 1))), (11_200, Some(ordinal(3, 1))), (11_300, Some(ordinal(1, 1)))]);
    assert_eq!(world.notices(), []);
    let figures = world.figures();
    assert_eq!((figures.judged, figures.unfair, figures.held, figures.queueing_ns_max / 10), (3, 0, 0, 90));
}

#[test]
fn a_late_order_leaves_at_once_and_its_gateway_hears_by_how_much() {
    let mut world = World::new(settings(1_000), 2);
    world.comes(20_000, 1, Stamp::Gateway(19_500), ordinal(1, 1), 1);
    world.runs_until(20_500);
    world.comes(21_000, 2, Stamp::Gateway(19_000), ordinal(2, 1), 1);
    assert_eq!(world.venue.taken, [(20_500, Some(ordinal(1, 1))), (21_000, Some(ordinal(2, 1)))]);
    assert_eq!(world.notices(), [Notice::Late { gateway: GatewayId(2), ordinal: ordinal(2, 1), late_ns: 1_000 }]);
    let figures = world.figures();
    let hold = figures.gateways.iter().find(|gateway| gateway.gateway == GatewayId(2)).unwrap().hold;
    assert_eq!((hold.late, hold.unfair, figures.unfair), (1, 1, 1));
}

/// The delay was shorter a moment ago, and by that a later one has left: by the delay of now this one is on time, and still it is
/// out of sequence.
#[test]
fn an_order_that_was_overtaken_while_the_delay_was_shorter_is_reported_with_by_how_much() {
    let bounds = DelayBounds { min_ns: 100, max_ns: 5_000, start_ns: 100 };
    let stepped = Stepped { bounds, target: Ppm(0), window: 1, step_ns: 1_000, samples_per_step: 1 };
    let mut world = World::new(IntakeSettings::new(GATEWAYS, DelaySettings::Stepped(stepped), 7), 2);
    world.comes(20_000, 1, Stamp::Gateway(20_000), ordinal(1, 1), 1);
    world.runs_until(20_100);
    world.comes(20_150, 2, Stamp::Gateway(19_900), ordinal(2, 1), 1);
    let late = |session_seq, late_ns| Notice::Late { gateway: GatewayId(2), ordinal: ordinal(2, session_seq), late_ns };
    assert_eq!((world.notices(), world.intake.delay_ns()), (vec![late(1, 150)], 1_100));
    world.comes(20_160, 2, Stamp::Gateway(19_950), ordinal(2, 2), 1);
    assert_eq!(world.venue.taken.last(), Some(&(20_160, Some(ordinal(2, 2)))), "waiting would help nobody");
    assert_eq!(world.notices(), [late(2, 50)]);
}

#[test]
fn the_copy_that_comes_first_counts_and_a_session_keeps_its_order_whatever_the_stamps_say() {
    let mut world = World::new(settings(1_000), 1);
    // Gateway 2 is nearer to the participant, gateway 1 to the leader.
    world.comes(10_100, 1, Stamp::Gateway(10_090), ordinal(1, 1), 1);
    world.comes(10_110, 2, Stamp::Gateway(10_050), ordinal(1, 1), 1);
    world.comes(10_120, 2, Stamp::Gateway(10_060), ordinal(1, 2), 2);
    world.comes(10_130, 1, Stamp::Gateway(10_100), ordinal(1, 2), 2);
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken, [(11_090, Some(ordinal(1, 1))), (11_091, Some(ordinal(1, 2)))]);
    let figures = world.figures();
    assert_eq!(figures.gateways.iter().map(|gateway| gateway.copies.duplicates).sum::<u64>(), 2);
}

#[test]
fn an_order_waits_for_the_one_before_it() {
    let mut world = World::new(settings(100), 1);
    world.comes(1_000, 2, Stamp::Gateway(990), ordinal(1, 2), 2);
    world.comes(1_010, 2, Stamp::Gateway(995), ordinal(1, 3), 3);
    world.runs_until(5_000);
    assert_eq!(world.venue.taken, []);
    world.comes(5_000, 1, Stamp::Gateway(4_990), ordinal(1, 1), 1);
    world.runs_until(6_000);
    assert_eq!(world.venue.taken(), [1, 2, 3].map(|n| Some(ordinal(1, n))));
    assert_eq!(world.figures().early, 0);
}

#[test]
fn what_has_no_number_waits_too_and_stays_behind_its_session() {
    let mut world = World::new(settings(1_000), 1);
    world.comes(10_010, 1, Stamp::Gateway(10_000), ordinal(1, 1), 1);
    // Its gateway's clock went back.
    world.comes_alone(10_020, Place::After(SessionId(1)), Stamp::Gateway(9_500), 5);
    world.comes_alone(10_030, Place::Alone, Stamp::OnArrival, 6);
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken, [(11_000, Some(ordinal(1, 1))), (11_001, None), (11_030, None)]);
    world.venue.refuses = Some(RejectReason::Overloaded);
    world.comes_alone(20_000, Place::Alone, Stamp::OnArrival, 7);
    world.runs_until(u64::MAX);
    assert_eq!(world.notices(), [Notice::NotTaken { origin: 7, why: NotTaken::Refused(RejectReason::Overloaded) }]);
}

#[test]
fn another_leader_begins_with_nothing() {
    let mut world = World::new(settings(1_000), 1);
    world.comes(10_000, 1, Stamp::Gateway(10_000), ordinal(1, 1), 1);
    world.comes(10_000, 1, Stamp::Gateway(10_000), ordinal(1, 3), 3);
    world.comes_alone(10_000, Place::Alone, Stamp::OnArrival, 9);
    let mut back = Vec::new();
    world.intake.clear(|waiter| back.push(waiter));
    world.runs_until(u64::MAX);
    assert_eq!((back, world.venue.taken.len(), world.intake.next_due_ns()), (vec![9], 0, None));
    // It leads again: the gateway sends everything again.
    for n in 1..=3 {
        world.comes(20_000, 1, Stamp::Gateway(10_000 + n), ordinal(1, n), n as u8);
    }
    world.runs_until(u64::MAX);
    assert_eq!(world.venue.taken(), [1, 2, 3].map(|n| Some(ordinal(1, n))));
}
