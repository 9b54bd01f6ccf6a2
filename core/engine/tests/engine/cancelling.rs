//! Mass cancels and suspensions that go on with later entries: what was open when they began leaves, and nothing else does,
//! whatever happens in between.

use std::collections::BTreeSet;

use proptest::prelude::*;
use walras_engine::versions::NEWEST;
use walras_engine::{Engine, OpenOrder};
use walras_order_book::Ladder;
use walras_types::*;
use walras_wire::*;

use crate::venue::{Venue, lots, opening, phase, spec, ticks};

const ACCOUNTS: u32 = 3;
const MARKETS: u32 = 3;

#[derive(Clone, Copy, Debug)]
enum Act {
    Order { account: u32, market: u32, side: Side, price: i64 },
    Amend { account: u32, market: u32, name: u64, price: i64 },
    Mass { account: u32, market: Option<u32>, side: Option<Side> },
    Suspend { account: u32 },
    Activate { account: u32 },
    Phase { market: u32, phase: TradingPhase },
    Tick,
}

fn act() -> impl Strategy<Value = Act> {
    let side = || prop::sample::select(vec![Side::Buy, Side::Sell]);
    let (account, market, price) = (|| 0..ACCOUNTS, || 0..MARKETS, || 97..=103_i64);
    let phases = vec![
        TradingPhase::Continuous,
        TradingPhase::Continuous,
        TradingPhase::Halt,
        TradingPhase::OpeningAuction,
        TradingPhase::Closed,
    ];
    prop_oneof![
        60 => (account(), market(), side(), price()).prop_map(|(account, market, side, price)| Act::Order { account, market, side, price }),
        6 => (account(), market(), 0..80_u64, price()).prop_map(|(account, market, name, price)| Act::Amend { account, market, name, price }),
        4 => (account(), prop::option::of(market()), prop::option::of(side()))
            .prop_map(|(account, market, side)| Act::Mass { account, market, side }),
        1 => account().prop_map(|account| Act::Suspend { account }),
        4 => account().prop_map(|account| Act::Activate { account }),
        2 => (market(), prop::sample::select(phases)).prop_map(|(market, phase)| Act::Phase { market, phase }),
        8 => Just(Act::Tick),
    ]
}

fn set_status(account: u32, status: AccountStatus) -> Command {
    Command::Account(AccountCommand::SetStatus(SetAccountStatus { account: AccountId(account), status }))
}

fn mass_cancel(account: u32, market: Option<u32>, side: Option<Side>) -> Command {
    let instrument = market.map(InstrumentId);
    Command::Order(OrderCommand::MassCancel(MassCancel { account: AccountId(account), instrument, side }))
}

fn order(account: u32, market: u32, name: u64, terms: OrderTerms) -> Command {
    let (account, instrument, client_order_id) = (AccountId(account), InstrumentId(market), ClientOrderId(name));
    Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
}

fn command(act: Act, name: u64) -> Command {
    match act {
        Act::Order { account, market, side, price } => order(account, market, name, OrderTerms::limit(side, ticks(price), lots(2))),
        Act::Amend { account, market, name, price } => {
            let amendment =
                Amendment { client_order_id: ClientOrderId(name), price: Some(ticks(price)), size: None, trigger: None };
            Command::Order(OrderCommand::Amend(AmendOrder {
                account: AccountId(account),
                instrument: InstrumentId(market),
                amendment,
            }))
        }
        Act::Mass { account, market, side } => mass_cancel(account, market, side),
        Act::Suspend { account } => set_status(account, AccountStatus::Suspended),
        Act::Activate { account } => set_status(account, AccountStatus::Active),
        Act::Phase { market, phase: to } => phase(market, to),
        Act::Tick => Command::Venue(VenueCommand::Tick),
    }
}

fn venue(version: EngineVersion, meetings_max: u32) -> Venue<Ladder> {
    let mut venue = Venue::new();
    venue.engine.set_meetings_max(meetings_max);
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(version)));
    let specs: Vec<_> = (0..MARKETS).map(spec).collect();
    for command in opening(ACCOUNTS, 1_000_000_000, &specs) {
        venue.apply(command);
    }
    for market in 0..MARKETS {
        venue.apply(phase(market, TradingPhase::Continuous));
    }
    venue
}

fn open_orders(engine: &Engine, account: u32, market: u32) -> Vec<OpenOrder> {
    let mut orders = Vec::new();
    engine.open_orders(AccountId(account), InstrumentId(market), &mut orders);
    orders
}

fn restarted(engine: &Engine, meetings_max: u32) -> Engine {
    let mut bytes = Vec::new();
    engine.snapshot(&mut bytes);
    let mut restored = Engine::restore_with_hash_seed(&bytes, 3).unwrap();
    restored.set_meetings_max(meetings_max);
    restored
}

/// What an accepted mass cancel is to take out.
struct Asked {
    account: u32,
    reason: CancelReason,
    orders: BTreeSet<OrderId>,
}

impl Asked {
    fn by(engine: &Engine, act: Act) -> Option<Self> {
        let (account, market, side, reason) = match act {
            Act::Mass { account, market, side } => (account, market, side, CancelReason::MassCancelled),
            Act::Suspend { account } => (account, None, None, CancelReason::AccountSuspended),
            Act::Order { .. } | Act::Amend { .. } | Act::Activate { .. } | Act::Phase { .. } | Act::Tick => return None,
        };
        let markets = market.map_or(0..MARKETS, |market| market..market + 1);
        let open = markets.flat_map(|market| open_orders(engine, account, market));
        let wanted = open.filter(|order| side.is_none_or(|side| side == order.terms.side));
        Some(Self { account, reason, orders: wanted.map(|order| order.order_id).collect() })
    }
}

fn cancelled(events: &[Event]) -> impl Iterator<Item = &OrderCancelled> {
    events.iter().filter_map(|event| match event {
        Event::Order(OrderEvent::Cancelled(cancelled)) => Some(cancelled),
        _ => None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Other commands come between the steps, and one engine starts from a snapshot before each entry.
    #[test]
    fn what_was_open_leaves_and_nothing_else(acts in prop::collection::vec(act(), 1..160), meetings_max in 1..6_u32) {
        let mut ours = venue(NEWEST, meetings_max);
        let mut other = venue(NEWEST, meetings_max);
        let mut asked: Vec<Asked> = Vec::new();
        let ticks = std::iter::repeat_n(Act::Tick, 2_000);
        for (act, name) in acts.into_iter().chain(ticks).zip(0_u64..) {
            if name > 160 && !ours.engine.has_work() {
                break;
            }
            // An entry goes on with what was left before its own command, so it may be less by then.
            let wanted = Asked::by(&ours.engine, act);
            let events = ours.apply(command(act, name));
            other.engine = restarted(&other.engine, meetings_max);
            prop_assert_eq!(&events, &other.apply(command(act, name)), "{:?}", act);
            prop_assert_eq!(ours.engine.state_hash(), other.engine.state_hash());

            let is_refused = matches!(events.last(), Some(Event::Rejected(_)));
            let wanted = wanted.filter(|_| !is_refused);
            for cancelled in cancelled(&events) {
                if matches!(cancelled.reason, CancelReason::MassCancelled | CancelReason::AccountSuspended) {
                    let is_asked = |asked: &Asked| {
                        AccountId(asked.account) == cancelled.account
                            && asked.reason == cancelled.reason
                            && asked.orders.contains(&cancelled.order_id)
                    };
                    prop_assert!(asked.iter().chain(&wanted).any(is_asked), "{:?} was not to be cancelled", cancelled);
                }
            }
            if let Some(wanted) = wanted {
                // A suspension goes on instead of what went on, and takes all.
                asked.retain(|before| before.account != wanted.account || wanted.reason != CancelReason::AccountSuspended);
                asked.push(wanted);
            }
        }
        prop_assert!(!ours.engine.has_work(), "it never comes to an end");
        for Asked { account, orders, .. } in asked {
            let open: Vec<_> = (0..MARKETS).flat_map(|market| open_orders(&ours.engine, account, market)).collect();
            prop_assert!(open.iter().all(|order| !orders.contains(&order.order_id)), "an order of {account} stayed");
        }
    }
}

/// Account 0 has `count` bids in each market, and as many offers in the last.
fn full(version: EngineVersion, count: u64) -> Venue<Ladder> {
    let mut venue = venue(version, 10);
    for market in 0..MARKETS {
        for name in 0..count {
            venue.apply(order(0, market, name, OrderTerms::limit(Side::Buy, ticks(99), lots(1))));
        }
    }
    for name in 0..count {
        venue.apply(order(0, MARKETS - 1, count + name, OrderTerms::limit(Side::Sell, ticks(101), lots(1))));
    }
    venue
}

#[test]
fn it_costs_as_much_to_begin_however_many_orders_there_are() {
    let state_len = |venue: &Venue<Ladder>| {
        let mut bytes = Vec::new();
        venue.engine.snapshot(&mut bytes);
        bytes.len()
    };
    let suspend = set_status(0, AccountStatus::Suspended);
    for count in [20, 80] {
        let mut venue = full(NEWEST, count);
        let before = state_len(&venue);
        let events = venue.apply(suspend);
        assert_eq!((cancelled(&events).count(), venue.engine.has_work()), (10, true));
        assert!(state_len(&venue) < before, "ten orders are gone, and no list of the others came");
        let mut left = 4 * count - 10;
        while venue.engine.has_work() {
            left -= cancelled(&venue.apply(Command::Venue(VenueCommand::Tick))).count() as u64;
        }
        assert_eq!(left, 0);
    }
    // Before version 13, what is left of it is a list of the others.
    let mut venue = full(EngineVersion(12), 20);
    let before = state_len(&venue);
    venue.apply(suspend);
    assert!(state_len(&venue) > before);
}

/// Of one side alone, an order of the other one that it passes over costs an eighth.
#[test]
fn a_cancel_of_one_side_passes_over_the_other_in_steps() {
    let mut venue = full(NEWEST, 200);
    let mut entries = 0;
    let mut events = venue.apply(mass_cancel(0, None, Some(Side::Sell)));
    while venue.engine.has_work() {
        venue.engine = restarted(&venue.engine, 10);
        events.extend(venue.apply(Command::Venue(VenueCommand::Tick)));
        entries += 1;
    }
    assert_eq!(cancelled(&events).count(), 200);
    assert!(entries >= 20 + 2, "{entries} entries: two hundred offers in tens, behind two hundred bids");
    assert_eq!((0..MARKETS).map(|market| open_orders(&venue.engine, 0, market).len()).sum::<usize>(), 600);
}

/// A cancel that began under version 12 is a list, and goes on as one under version 13.
#[test]
fn a_list_goes_on_after_an_upgrade() {
    let mut venue = full(EngineVersion(12), 20);
    venue.apply(mass_cancel(0, None, None));
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(13))));
    // Account 0 enters an order meanwhile, which stays.
    venue.apply(order(0, 0, 900, OrderTerms::limit(Side::Buy, ticks(98), lots(1))));
    venue.apply(mass_cancel(1, None, None));
    while venue.engine.has_work() {
        venue.engine = restarted(&venue.engine, 10);
        venue.apply(Command::Venue(VenueCommand::Tick));
    }
    let open: Vec<_> = (0..MARKETS).flat_map(|market| open_orders(&venue.engine, 0, market)).collect();
    assert_eq!(open.iter().map(|order| order.client_order_id).collect::<Vec<_>>(), [ClientOrderId(900)]);
}

/// Bytes that no engine writes are refused.
#[test]
fn what_is_left_of_a_cancel_is_checked_when_a_state_is_restored() {
    let mut venue = full(NEWEST, 20);
    venue.apply(mass_cancel(0, None, None));
    let mut bytes = Vec::new();
    venue.engine.state_bytes(&mut bytes);
    // account, reason, kind, side, market, after, markets_end, last
    let left = [&0_u32.to_le_bytes()[..], &[1, 1, 0], &0_u32.to_le_bytes()].concat();
    let at = bytes.windows(left.len()).position(|window| window == left).expect("what is left is in the state") + left.len();
    let cases: [(usize, &[u8]); 3] =
        [(at - 4, &7_u32.to_le_bytes()), (at + 8, &9_u32.to_le_bytes()), (at + 12, &u64::MAX.to_le_bytes())];
    for (place, with) in cases {
        let mut wrong = bytes.clone();
        wrong[place..place + with.len()].copy_from_slice(with);
        let hash = blake3::hash(&wrong);
        wrong.extend_from_slice(hash.as_bytes());
        let error = Engine::<Ladder>::restore_with_hash_seed(&wrong, 0).err();
        assert_eq!(error.map(|error| error.to_string().contains("an account's mass cancel")), Some(true), "{place}");
    }
}
