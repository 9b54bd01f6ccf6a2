//! Work in steps comes to what it would come to at once: an engine whose entries may meet few orders, against one whose entries meet all.

use std::ops::Range;

use proptest::prelude::*;
use walras_engine::versions::{NEWEST, OLDEST};
use walras_engine::{Engine, Uncross};
use walras_order_book::Ladder;
use walras_types::*;
use walras_wire::*;

use crate::generate::{Step, steps_with};
use crate::venue::{Venue, lots, opening, phase, spec, ticks};

/// The same log applied in steps and at once.
struct Two {
    stepped: Venue<Ladder>,
    whole: Venue<Ladder>,
    meetings_max: u32,
    /// Entries that found a book busy.
    busy_entries: u32,
}

impl Two {
    fn new(meetings_max: u32) -> Self {
        Self::under(NEWEST, meetings_max)
    }

    fn under(version: EngineVersion, meetings_max: u32) -> Self {
        let (mut stepped, mut whole) = (Venue::new(), Venue::new());
        stepped.engine.set_meetings_max(meetings_max);
        whole.engine.set_meetings_max(u32::MAX);
        let mut two = Self { stepped, whole, meetings_max, busy_entries: 0 };
        if version > OLDEST {
            two.apply(0, Command::Venue(VenueCommand::SetEngineVersion(version)));
        }
        two
    }

    /// Applies a command once nothing is left of what came before, and ticks until nothing is left of it. The events of each.
    fn apply(&mut self, pause: u64, command: Command) -> [Vec<Event>; 2] {
        let now = TimeNs(self.stepped.now.0 + pause);
        (self.stepped.now, self.whole.now) = (now, now);
        let mut events = [Vec::new(), Vec::new()];
        self.entry(tick(), &mut events);
        self.settle(&mut events);
        self.entry(command, &mut events);
        self.settle(&mut events);
        assert_eq!(self.stepped.engine.state_hash(), self.whole.engine.state_hash(), "{command:?}");
        events
    }

    fn entry(&mut self, command: Command, [stepped, whole]: &mut [Vec<Event>; 2]) {
        stepped.extend(self.stepped.apply(command));
        whole.extend(self.whole.apply(command));
    }

    fn settle(&mut self, events: &mut [Vec<Event>; 2]) {
        while self.stepped.engine.has_work() {
            self.busy_entries += 1;
            // One that starts from a snapshot in between goes on alike.
            let mut bytes = Vec::new();
            self.stepped.engine.snapshot(&mut bytes);
            let mut restored = Engine::<Ladder>::restore_with_hash_seed(&bytes, 3).unwrap();
            restored.set_meetings_max(self.meetings_max);
            assert!(restored.has_work());
            assert_eq!(restored.state_hash(), self.stepped.engine.state_hash());
            self.stepped.engine = restored;
            self.entry(tick(), events);
        }
        assert!(!self.whole.engine.has_work(), "what meets all leaves nothing");
    }
}

fn tick() -> Command {
    Command::Venue(VenueCommand::Tick)
}

/// What happened by instrument, but for what an order was said to leave: in steps, that is said of each.
fn lasting(events: &[Event]) -> Vec<Event> {
    let says_rest =
        |event: &Event| matches!(event, Event::Order(OrderEvent::Accepted(_) | OrderEvent::Amended(_) | OrderEvent::Triggered(_)));
    let mut events: Vec<_> = events.iter().filter(|event| !says_rest(event)).copied().collect();
    // What is linked with orders that traded is cancelled at the end of each step.
    let linked = |event: &Event| match event {
        Event::Order(OrderEvent::Cancelled(e)) if e.reason == CancelReason::Linked => Some(e.order_id),
        _ => None,
    };
    events.sort_by_key(linked);
    // Mass cancels that begin with one entry go on by turns in steps, one after the other at once.
    let mass_cancelled = |event: &Event| match event {
        Event::Order(OrderEvent::Cancelled(e)) if e.reason == CancelReason::MassCancelled => Some(e.account),
        _ => None,
    };
    events.sort_by_key(mass_cancelled);
    events.sort_by_key(|event| match event {
        Event::Order(OrderEvent::Traded(e)) => Some(e.instrument),
        Event::Order(OrderEvent::Cancelled(e)) => Some(e.instrument),
        Event::Order(OrderEvent::Reduced(e)) => Some(e.instrument),
        Event::Order(OrderEvent::Replenished(e)) => Some(e.instrument),
        Event::Instrument(InstrumentEvent::PhaseChanged(e)) => Some(e.instrument),
        Event::Instrument(InstrumentEvent::Uncrossed(e)) => Some(e.instrument),
        _ => None,
    });
    events
}

fn check(steps: &[Step], version: EngineVersion, meetings_max: u32) -> u32 {
    let mut two = Two::under(version, meetings_max);
    for &(pause, command) in steps {
        let [stepped, whole] = two.apply(pause, command);
        assert_eq!(lasting(&stepped), lasting(&whole), "{command:?}");
    }
    two.busy_entries
}

/// Nobody lacks funds for an exit: an entry that is filled in steps has exits that ask for them in steps, so that what they get may
/// differ.
const RICH: Range<u64> = 1 << 40..1 << 41;

fn allocation() -> impl Strategy<Value = Allocation> + Clone {
    prop_oneof![
        3 => Just(Allocation::PriceTime),
        1 => Just(Allocation::ProRata { min_lots: lots(2) }),
        1 => Just(Allocation::TopProRata { top_lots_max: lots(3), min_lots: lots(1) }),
        1 => Just(Allocation::Split { fifo_percent: 40, min_lots: lots(1) }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn steps_come_to_what_happens_at_once(
        steps in steps_with(RICH, allocation(), 120), version in OLDEST.0..=NEWEST.0, meetings_max in 1..12_u32
    ) {
        check(&steps, EngineVersion(version), meetings_max);
    }
}

fn order(account: u32, id: u64, terms: OrderTerms) -> Command {
    let (account, instrument, client_order_id) = (AccountId(account), InstrumentId(0), ClientOrderId(id));
    Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
}

/// A market in which account 0 offers `count` lots one by one at 101, in an engine whose entries meet ten.
fn deep(count: u64) -> Two {
    let mut two = Two::new(10);
    for command in opening(3, 1_000_000_000, &[spec(0)]) {
        two.apply(0, command);
    }
    two.apply(0, phase(0, TradingPhase::Continuous));
    for id in 0..count {
        two.apply(0, order(0, id, OrderTerms::limit(Side::Sell, ticks(101), lots(1))));
    }
    two
}

#[test]
fn a_busy_book_takes_no_command_and_says_so() {
    let mut two = deep(35);
    let venue = &mut two.stepped;
    let taker = order(1, 1, OrderTerms::limit(Side::Buy, ticks(101), lots(40)));
    let trades = |events: &[Event]| events.iter().filter(|event| matches!(event, Event::Order(OrderEvent::Traded(_)))).count();
    let first = venue.apply(taker);
    assert_eq!((trades(&first), venue.engine.has_work()), (10, true));
    let Event::Order(OrderEvent::Accepted(accepted)) = first[0] else { panic!("{first:?}") };
    assert_eq!((accepted.price, accepted.resting), (Some(ticks(101)), Resting { open: lots(30), shown: SizeLots::ZERO }));

    // A cancel that comes too early goes on with the order that was first, and does nothing itself.
    let (account, instrument) = (AccountId(0), InstrumentId(0));
    let cancel = Command::Order(OrderCommand::Cancel(CancelOrder { account, instrument, client_order_id: ClientOrderId(34) }));
    let all = Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument: None, side: None }));
    for (command, trades_expected) in [(cancel, 10), (all, 10)] {
        let events = venue.apply(command);
        assert_eq!(trades(&events), trades_expected);
        let Some(Event::Rejected(rejected)) = events.last() else { panic!("{events:?}") };
        assert_eq!(rejected.reason, RejectReason::BookBusy);
    }
    let last = venue.apply(tick());
    assert_eq!((trades(&last), venue.engine.has_work()), (5, false));
    let mut open = Vec::new();
    venue.engine.open_orders(AccountId(1), instrument, &mut open);
    assert_eq!((open[0].open, open[0].shown), (lots(5), lots(5)), "the rest stands like any other");
    assert_eq!(venue.apply(cancel).len(), 1, "it was filled: only the refusal");
}

#[test]
fn all_or_nothing_is_all_in_steps() {
    let mut two = deep(35);
    let fill_or_kill =
        |size| OrderTerms { time_in_force: TimeInForce::FillOrKill, ..OrderTerms::limit(Side::Buy, ticks(101), lots(size)) };
    let [refused, _] = two.apply(0, order(1, 1, fill_or_kill(36)));
    assert!(matches!(refused[..], [Event::Rejected(Rejected { reason: RejectReason::FillOrKillUnfillable, .. })]), "{refused:?}");
    let [filled, at_once] = two.apply(0, order(1, 2, fill_or_kill(35)));
    assert_eq!(lasting(&filled), lasting(&at_once));
    assert_eq!(lasting(&filled).len(), 35);
    assert_eq!(two.busy_entries, 3);
}

#[test]
fn stops_that_a_trade_touches_enter_before_anything_else() {
    let mut two = deep(5);
    for id in 0..30 {
        let stop = OrderTerms {
            order_type: OrderType::StopLimit { trigger: ticks(101), price: ticks(100) },
            ..OrderTerms::limit(Side::Buy, ticks(100), lots(1))
        };
        two.apply(0, order(2, id, stop));
    }
    let [stepped, at_once] = two.apply(0, order(1, 1, OrderTerms::limit(Side::Buy, ticks(101), lots(1))));
    let triggered = |events: &[Event]| -> Vec<OrderId> {
        let id = |event: &Event| if let Event::Order(OrderEvent::Triggered(e)) = event { Some(e.order_id) } else { None };
        events.iter().filter_map(id).collect()
    };
    assert_eq!((triggered(&stepped).len(), triggered(&stepped)), (30, triggered(&at_once)));
    assert!(two.busy_entries >= 14, "{} entries: each lets two in", two.busy_entries);
}

#[test]
fn switches_of_two_accounts_fire_by_turns() {
    let mut two = deep(25);
    for id in 0..25 {
        two.apply(0, order(1, id, OrderTerms::limit(Side::Buy, ticks(99), lots(1))));
    }
    for account in [0, 1] {
        two.apply(0, Command::Order(OrderCommand::CancelAfter(CancelAfter { account: AccountId(account), timeout_ms: 1 })));
    }
    let [stepped, whole] = two.apply(2_000_000, tick());
    let accounts = |events: &[Event]| -> Vec<AccountId> {
        let account = |event: &Event| if let Event::Order(OrderEvent::Cancelled(e)) = event { Some(e.account) } else { None };
        let mut accounts: Vec<_> = events.iter().filter_map(account).collect();
        accounts.dedup();
        accounts
    };
    assert_eq!(accounts(&whole), [0, 1].map(AccountId));
    assert!(accounts(&stepped).len() > 2, "neither waits until the other is done");
    assert_eq!(lasting(&stepped), lasting(&whole));
    assert_eq!(lasting(&whole).len(), 50);
}

#[test]
fn a_mass_cancel_takes_out_what_was_there_in_steps_and_holds_nobody_up() {
    let mut two = deep(25);
    let venue = &mut two.stepped;
    let all = Command::Order(OrderCommand::MassCancel(MassCancel { account: AccountId(0), instrument: None, side: None }));
    let cancelled =
        |events: &[Event]| events.iter().filter(|event| matches!(event, Event::Order(OrderEvent::Cancelled(_)))).count();
    assert_eq!((cancelled(&venue.apply(all)), venue.engine.has_work()), (10, true));
    // The next entry goes on, and carries its own command out: an order of the same account that was entered later stays.
    let late = venue.apply(order(0, 100, OrderTerms::limit(Side::Sell, ticks(101), lots(1))));
    assert_eq!((cancelled(&late), late.len()), (10, 11));
    let again = venue.apply(all);
    assert_eq!(cancelled(&again), 5 + 1, "the list is done, and the new one has the late order: {again:?}");
    assert!(!venue.engine.has_work());
}

#[test]
fn what_is_due_at_the_same_time_expires_in_steps_and_trades_no_more() {
    let mut two = deep(1);
    let until = TimeNs(two.stepped.now.0 + 5);
    for id in 0..25 {
        let terms = OrderTerms { time_in_force: TimeInForce::GoodTill(until), ..OrderTerms::limit(Side::Buy, ticks(100), lots(1)) };
        two.apply(0, order(1, id, terms));
    }
    let venue = &mut two.stepped;
    venue.now = until;
    let sell = order(2, 1, OrderTerms::limit(Side::Sell, ticks(100), lots(25)));
    let cancelled =
        |events: &[Event]| events.iter().filter(|event| matches!(event, Event::Order(OrderEvent::Cancelled(_)))).count();
    for _ in 0..2 {
        let events = venue.apply(sell);
        assert_eq!((cancelled(&events), events.len()), (10, 11), "what is due trades no more: {events:?}");
    }
    assert_eq!(cancelled(&venue.apply(sell)), 5);
    assert!(!venue.engine.has_work());
}

fn set_phase(two: &mut Two, to: TradingPhase) -> [Vec<Event>; 2] {
    two.apply(0, phase(0, to))
}

fn trades(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Order(OrderEvent::Traded(_)))).count()
}

/// An opening auction in which account 0 offers `count` lots one by one, each at a price of its own from 101 up, and account 1 wants all
/// of them.
fn auction(count: u64) -> Two {
    let mut two = Two::new(10);
    for command in opening(3, 1_000_000_000, &[spec(0)]) {
        two.apply(0, command);
    }
    for next in [TradingPhase::PreOpen, TradingPhase::OpeningAuction] {
        set_phase(&mut two, next);
    }
    for id in 0..count {
        let price = ticks(101 + id as i64);
        two.apply(0, order(0, id, OrderTerms::limit(Side::Sell, price, lots(1))));
        two.apply(0, order(1, id, OrderTerms::limit(Side::Buy, ticks(190), lots(1))));
    }
    two
}

#[test]
fn an_uncross_looks_for_its_price_and_trades_in_steps() {
    let mut two = auction(45);
    // Entries that may meet ten look at forty levels, then trade ten times each.
    let [stepped, at_once] = set_phase(&mut two, TradingPhase::Continuous);
    assert_eq!((trades(&stepped), lasting(&stepped)), (45, lasting(&at_once)));
    assert!(two.busy_entries >= 5, "{} entries", two.busy_entries);
}

#[test]
fn between_the_steps_of_an_uncross_the_phase_is_the_auction_and_the_book_takes_nothing() {
    let mut two = auction(45);
    let venue = &mut two.stepped;
    let all = venue.engine.indicative(InstrumentId(0)).unwrap();
    let first = venue.apply(phase(0, TradingPhase::Continuous));
    assert_eq!((first.len(), venue.engine.has_work()), (0, true), "it looks for its price: {first:?}");
    assert_eq!(venue.engine.indicative(InstrumentId(0)), Some(all));
    let late = venue.apply(order(2, 1, OrderTerms::limit(Side::Buy, ticks(190), lots(1))));
    assert!((1..=10).contains(&trades(&late)), "{late:?}");
    let Some(Event::Rejected(Rejected { reason: RejectReason::BookBusy, .. })) = late.last() else { panic!("{late:?}") };
    let again = venue.apply(phase(0, TradingPhase::Halt));
    let Some(Event::Rejected(Rejected { reason: RejectReason::BookBusy, .. })) = again.last() else { panic!("{again:?}") };
    let left = SizeLots::new(all.volume.get() - (trades(&late) + trades(&again)) as u64);
    assert_eq!(venue.engine.indicative(InstrumentId(0)), Some(Uncross { volume: left, ..all }), "what is left of it");
    assert_eq!(venue.engine.instrument(InstrumentId(0)).unwrap().phase, TradingPhase::OpeningAuction);

    // Who is suspended meanwhile trades what was settled at the auction's price, and the rest of its orders leaves then.
    let suspend = SetAccountStatus { account: AccountId(1), status: AccountStatus::Suspended };
    let mut events = venue.apply(Command::Account(AccountCommand::SetStatus(suspend)));
    while venue.engine.has_work() {
        events.extend(venue.apply(tick()));
    }
    assert_eq!(trades(&late) + trades(&again) + trades(&events), 45);
    let told = |event: &Event| match event {
        Event::Instrument(InstrumentEvent::Uncrossed(e)) => Some(e.volume),
        _ => None,
    };
    assert_eq!(events.iter().filter_map(told).collect::<Vec<_>>(), [lots(45)], "the whole volume, once");
    assert_eq!(venue.engine.instrument(InstrumentId(0)).unwrap().phase, TradingPhase::Continuous);
}

#[test]
fn who_is_suspended_while_a_day_ends_leaves_after_it() {
    let mut two = deep(35);
    for id in 0..35 {
        let terms = OrderTerms { time_in_force: TimeInForce::Day, ..OrderTerms::limit(Side::Buy, ticks(90), lots(1)) };
        two.apply(0, order(1, id, terms));
    }
    let venue = &mut two.stepped;
    let reasons = |events: &[Event]| -> Vec<_> {
        let reason = |event: &Event| match event {
            Event::Order(OrderEvent::Cancelled(e)) => Some(e.reason),
            _ => None,
        };
        events.iter().filter_map(reason).collect()
    };
    let first = venue.apply(phase(0, TradingPhase::Closed));
    assert_eq!(reasons(&first), [CancelReason::DayEnded; 10]);
    let mut events = Vec::new();
    for account in [0, 1] {
        let suspend = SetAccountStatus { account: AccountId(account), status: AccountStatus::Suspended };
        events.extend(venue.apply(Command::Account(AccountCommand::SetStatus(suspend))));
    }
    while venue.engine.has_work() {
        events.extend(venue.apply(tick()));
    }
    let all = reasons(&events);
    assert_eq!(all, [[CancelReason::DayEnded; 25].as_slice(), &[CancelReason::AccountSuspended; 35]].concat());
    assert_eq!(venue.engine.open_order_count(InstrumentId(0)), 0);
}

#[test]
fn the_end_of_a_day_passes_over_what_stays_in_steps() {
    let mut two = deep(200);
    let terms = OrderTerms { time_in_force: TimeInForce::Day, ..OrderTerms::limit(Side::Sell, ticks(150), lots(1)) };
    for id in 200..215 {
        two.apply(0, order(0, id, terms));
    }
    let [stepped, at_once] = set_phase(&mut two, TradingPhase::Closed);
    assert_eq!((lasting(&stepped), stepped.len()), (lasting(&at_once), 16));
    assert!(two.busy_entries >= 3, "{} entries: each looks at eighty orders", two.busy_entries);
}

/// Before version 13 both are whole.
#[test]
fn earlier_versions_change_the_phase_in_one_entry() {
    let mut two = Two::under(EngineVersion(12), 10);
    for command in opening(3, 1_000_000_000, &[spec(0)]) {
        two.apply(0, command);
    }
    for next in [TradingPhase::PreOpen, TradingPhase::OpeningAuction] {
        set_phase(&mut two, next);
    }
    for id in 0..30 {
        for (account, side) in [(0, Side::Sell), (1, Side::Buy)] {
            two.apply(0, order(account, id, OrderTerms::limit(side, ticks(100), lots(1))));
        }
    }
    let [stepped, _] = set_phase(&mut two, TradingPhase::Continuous);
    assert_eq!((trades(&stepped), two.busy_entries), (30, 0));
}
