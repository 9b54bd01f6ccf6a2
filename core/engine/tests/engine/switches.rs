//! Dead man's switches: when they fire, what they cancel, and how they go on with later entries.

use walras_engine::Engine;
use walras_engine::versions::NEWEST;
use walras_order_book::Ladder;
use walras_types::limits::{MEETINGS_PER_ENTRY_MAX, SWITCHES_PER_ENTRY_MAX};
use walras_types::*;
use walras_wire::*;

use crate::venue::{Venue, lots, opening, phase, spec, ticks};

const MS: u64 = 1_000_000;
const TICK: Command = Command::Venue(VenueCommand::Tick);

fn venue(accounts: u32) -> Venue<Ladder> {
    let mut venue = Venue::new();
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    let trading = [0, 1].map(|id| phase(id, TradingPhase::Continuous));
    for command in opening(accounts, 1_000_000, &[spec(0), spec(1)]).into_iter().chain(trading) {
        venue.apply(command);
    }
    venue
}

fn order(account: u32, name: u64) -> Command {
    let terms = OrderTerms::limit(Side::Buy, ticks(90), lots(1));
    let (account, client_order_id) = (AccountId(account), ClientOrderId(name));
    Command::Order(OrderCommand::New(NewOrder { account, instrument: InstrumentId(0), client_order_id, terms }))
}

fn after(account: u32, timeout_ms: u64) -> Command {
    Command::Order(OrderCommand::CancelAfter(CancelAfter { account: AccountId(account), timeout_ms }))
}

fn open(venue: &Venue<Ladder>, account: u32) -> usize {
    let mut orders = Vec::new();
    venue.engine.open_orders(AccountId(account), InstrumentId(0), &mut orders);
    orders.len()
}

/// The accounts whose orders an entry cancelled.
fn cancelled(events: &[Event]) -> Vec<u32> {
    let of = |event: &Event| match event {
        Event::Order(OrderEvent::Cancelled(e)) if e.reason == CancelReason::MassCancelled => Some(e.account.0),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn a_switch_fires_once_with_the_first_entry_that_is_not_before_its_time() {
    let mut venue = venue(2);
    venue.apply(order(0, 1));
    venue.apply(order(1, 1));
    let set = venue.now.0;
    venue.apply(after(0, 5));
    assert_eq!((venue.engine.cancels_at(AccountId(0)), venue.engine.cancels_at(AccountId(1))), (Some(TimeNs(set + 5 * MS)), None));
    venue.now = TimeNs(set + 5 * MS - 1);
    assert!(cancelled(&venue.apply(TICK)).is_empty());
    venue.now = TimeNs(set + 5 * MS);
    // It comes before the entry's command: what that orders stays.
    assert_eq!(cancelled(&venue.apply(order(0, 2))), [0]);
    assert_eq!((open(&venue, 0), open(&venue, 1), venue.engine.cancels_at(AccountId(0))), (1, 1, None));
    venue.now = TimeNs(set + 100 * MS);
    assert!(cancelled(&venue.apply(TICK)).is_empty(), "it fires once");
}

#[test]
fn a_switch_that_is_set_again_or_off_in_time_does_not_fire() {
    let mut venue = venue(2);
    let set = venue.now.0;
    for account in [0, 1] {
        venue.apply(order(account, 1));
        venue.apply(after(account, 5));
    }
    venue.now = TimeNs(set + 5 * MS - 1);
    venue.apply(after(0, 5));
    venue.apply(after(1, 0));
    assert_eq!(venue.engine.next_switch(), Some(TimeNs(set + 10 * MS - 1)));
    venue.now = TimeNs(set + 10 * MS - 2);
    assert!(cancelled(&venue.apply(TICK)).is_empty());
    // Too late: it fires, and is set from then on.
    venue.now = TimeNs(set + 10 * MS - 1);
    assert_eq!(cancelled(&venue.apply(after(0, 5))), [0]);
    assert_eq!(venue.engine.cancels_at(AccountId(0)), Some(TimeNs(set + 15 * MS - 1)));
}

#[test]
fn a_time_beyond_all_is_never() {
    let mut venue = venue(1);
    venue.apply(after(0, u64::MAX));
    assert_eq!(venue.engine.cancels_at(AccountId(0)), Some(TimeNs(u64::MAX)));
}

#[test]
fn a_switch_of_many_orders_goes_on_with_later_entries_and_a_restart_goes_on_alike() {
    let mut venue = venue(2);
    let many = u64::from(MEETINGS_PER_ENTRY_MAX) * 2 + 10;
    (1..=many).for_each(|name| drop(venue.apply(order(0, name))));
    venue.apply(after(0, 5));
    venue.now = TimeNs(venue.now.0 + 5 * MS);
    let (mut entries, mut names) = (0, many);
    while entries == 0 || venue.engine.has_work() {
        let mut bytes = Vec::new();
        venue.engine.snapshot(&mut bytes);
        venue.engine = Engine::restore_with_hash_seed(&bytes, 5).unwrap();
        // What it orders meanwhile stays.
        names += 1;
        assert!(cancelled(&venue.apply(order(0, names))).len() <= MEETINGS_PER_ENTRY_MAX as usize);
        entries += 1;
    }
    assert_eq!((entries, open(&venue, 0) as u64), (3, names - many));
}

#[test]
fn a_switch_takes_the_place_of_a_mass_cancel_that_goes_on() {
    let mut venue = venue(1);
    let many = u64::from(MEETINGS_PER_ENTRY_MAX) + 10;
    (1..=many).for_each(|name| drop(venue.apply(order(0, name))));
    venue.apply(after(0, 5));
    let cancel = MassCancel { account: AccountId(0), instrument: None, side: Some(Side::Buy) };
    venue.apply(Command::Order(OrderCommand::MassCancel(cancel)));
    assert!(venue.engine.has_work());
    venue.now = TimeNs(venue.now.0 + 5 * MS);
    assert_eq!(cancelled(&venue.apply(TICK)).len(), 10);
    assert_eq!((open(&venue, 0), venue.engine.has_work()), (0, false));
}

#[test]
fn of_many_that_are_due_so_many_fire_in_an_entry_the_longest_due_first() {
    let accounts = SWITCHES_PER_ENTRY_MAX as u32 + 8;
    let mut venue = venue(accounts);
    for account in 0..accounts {
        venue.apply(order(account, 1));
        venue.apply(after(account, u64::from(accounts - account)));
    }
    venue.now = TimeNs(venue.now.0 + 1_000 * MS);
    let first = cancelled(&venue.apply(TICK));
    assert_eq!(first, (8..accounts).rev().collect::<Vec<_>>());
    assert!(venue.engine.has_work());
    assert_eq!(cancelled(&venue.apply(TICK)), (0..8).rev().collect::<Vec<_>>());
    assert!(!venue.engine.has_work() && venue.engine.next_switch().is_none());
}

#[test]
fn a_switch_waits_for_a_book_in_which_something_goes_on() {
    let mut venue = venue(2);
    let many = u64::from(MEETINGS_PER_ENTRY_MAX) * 2;
    (1..=many).for_each(|name| drop(venue.apply(order(0, name))));
    venue.apply(after(0, 5));
    venue.now = TimeNs(venue.now.0 + 5 * MS);
    let terms = OrderTerms { self_trade: SelfTrade::Allow, ..OrderTerms::limit(Side::Sell, ticks(90), lots(many)) };
    let (account, client_order_id) = (AccountId(1), ClientOrderId(1));
    venue.now = TimeNs(venue.now.0 - 1);
    venue.apply(Command::Order(OrderCommand::New(NewOrder { account, instrument: InstrumentId(0), client_order_id, terms })));
    assert!(venue.engine.has_work(), "it goes on");
    venue.now = TimeNs(venue.now.0 + 1);
    // What met the order before its turn has traded.
    while venue.engine.has_work() {
        venue.apply(TICK);
    }
    assert_eq!((open(&venue, 0), open(&venue, 1)), (0, 0));
    let mut events = venue.apply(order(0, many + 1));
    events.extend(venue.apply(TICK));
    assert!(cancelled(&events).is_empty(), "what is ordered afterwards stays");
}
