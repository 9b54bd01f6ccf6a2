//! Random commands on the engine, with two price indices, and on the naive model: equal after every command.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use walras_engine::{Engine, InstrumentView, OpenOrder, Uncross};
use walras_order_book::Ladder;
use walras_types::*;
use walras_wire::*;

use crate::generate::{Step, steps};
use crate::model::Model;
use crate::venue::{MapIndex, Venue, phase};

fn assert_same(venue: &Venue<Ladder>, model: &Model) {
    let engine = &venue.engine;
    for account in (0..model.accounts.len() as u32).map(AccountId) {
        for asset in (0..model.assets.len() as u32).map(AssetId) {
            let balance = engine.balance(account, asset);
            let has = (i128::from(balance.available.get()), i128::from(balance.reserved.get()));
            assert_eq!(has, (model.available(account, asset), model.reserved(account, asset)), "account {account} asset {asset}");
        }
        assert_eq!(engine.account_status(account), Some(model.accounts[account.0 as usize].0));
        assert_eq!(engine.cancels_at(account), model.switches.get(&account).copied());
    }
    for asset in (0..model.assets.len() as u32).map(AssetId) {
        assert_eq!(i128::from(engine.supply(asset).get()), model.supply(asset));
        assert_eq!(i128::from(engine.fees(asset).get()), model.fees.get(&asset).copied().unwrap_or(0));
    }
    assert_eq!(engine.access_delays(), model.access_delays);
    assert_eq!(engine.version().0, model.version.max(11));
    assert_eq!(engine.instruments().len(), model.markets.len());
    for (view, market) in engine.instruments().zip(&model.markets) {
        let prices = (view.reference_price.get(), view.last_price.map(PriceTicks::get));
        assert_eq!((view.phase, prices), (market.phase, (market.reference, market.last)));
        assert_indicative(venue, &view);
        for account in (0..model.accounts.len() as u32).map(AccountId) {
            let position = engine.position(account, view.spec.instrument);
            assert_eq!(position.net_lots, market.net.get(&account).copied().unwrap_or(0));
            let mut orders = Vec::new();
            engine.open_orders(account, view.spec.instrument, &mut orders);
            assert_pages(engine, account, view.spec.instrument, &orders);
            let mut has: Vec<_> = orders
                .iter()
                .map(|o| {
                    (o.order_id, o.open.get(), o.shown.get(), o.linked, o.trigger.map(PriceTicks::get), (o.exit_of, o.is_held))
                })
                .collect();
            has.sort_unstable();
            let mine = market.orders.iter().filter(|o| o.account == account);
            let shown = |o: &crate::model::Order| market.resting(o.id).shown.get();
            let linked = |id: OrderId| market.pair_of(id).map(|pair| if pair[0] == id { pair[1] } else { pair[0] });
            let exit = |o: &crate::model::Order| (market.exit_of(o.id), o.is_held);
            let mut expected: Vec<_> = mine.map(|o| (o.id, o.open, shown(o), linked(o.id), o.trigger, exit(o))).collect();
            expected.sort_unstable();
            assert_eq!(has, expected, "open orders of account {account}");
            assert_eq!(position.open_orders as usize, expected.len());
        }
    }
}

/// Pages of any length joined are all open orders, each found by its name, by ascending id.
fn assert_pages(engine: &Engine, account: AccountId, instrument: InstrumentId, orders: &[OpenOrder]) {
    assert!(orders.is_sorted_by(|one, next| one.order_id < next.order_id), "{orders:?}");
    for order in orders {
        assert_eq!(engine.open_order(account, instrument, order.client_order_id), Some(*order));
    }
    for looks in [1, 2, 5] {
        let (mut joined, mut next) = (Vec::new(), Some(OrderId(0)));
        while let Some(after) = next {
            let (before, mut left) = (joined.len(), looks);
            next = engine.open_orders_after(account, instrument, after, &mut left, &mut joined);
            assert!(joined.len() - before <= looks - left && (next.is_none() || left == 0));
        }
        assert_eq!(joined, orders, "pages of {looks} joined are the whole");
    }
}

/// What is said of an uncross is what comes of it, had the instrument uncrossed at this instant.
fn assert_indicative(venue: &Venue<Ladder>, view: &InstrumentView) {
    use TradingPhase::{Closed, ClosingAuction, Continuous, Halt, OpeningAuction, PreOpen};
    let path: &[TradingPhase] = match view.phase {
        Continuous => &[],
        PreOpen => &[OpeningAuction, Continuous],
        OpeningAuction | Halt | Closed => &[Continuous],
        ClosingAuction => &[Closed],
    };
    let mut bytes = Vec::new();
    venue.engine.snapshot(&mut bytes);
    let mut copy = Venue { engine: Engine::<Ladder>::restore(&bytes).unwrap(), now: venue.now };
    copy.engine.set_meetings_max(u32::MAX);
    let instrument = view.spec.instrument;
    assert_eq!(copy.engine.indicative(instrument), venue.engine.indicative(instrument), "a restored engine says the same");
    let events = path.iter().flat_map(|next| copy.apply(phase(instrument.0, *next)));
    let uncrossed = events.filter_map(|event| match event {
        Event::Instrument(InstrumentEvent::Uncrossed(Uncrossed { price, volume, imbalance_lots, .. })) => {
            price.map(|price| Uncross { price, volume, imbalance_lots })
        }
        _ => None,
    });
    assert_eq!(venue.engine.indicative(instrument), uncrossed.last(), "in phase {:?}", view.phase);
}

/// The end of a day with its cancels by age. Versions from 13 on cancel in the book's order, which the book's own tests know; of two linked
/// orders of the day, one takes the other with it, the first of that order.
fn by_age(mut events: Vec<Event>) -> Vec<Event> {
    let ended = |event: &Event| match event {
        Event::Order(OrderEvent::Cancelled(e))
            if matches!(e.reason, CancelReason::DayEnded | CancelReason::Linked | CancelReason::Unfunded) =>
        {
            Some((e.order_id, e.reason))
        }
        _ => None,
    };
    for day in events.chunk_by_mut(|one, next| ended(one).is_some() && ended(next).is_some()) {
        if day.iter().any(|event| ended(event).is_some_and(|(_, reason)| reason == CancelReason::DayEnded)) {
            day.sort_by_key(|event| ended(event).map(|(order_id, _)| order_id));
            for event in day {
                if let Event::Order(OrderEvent::Cancelled(e)) = event {
                    e.reason = CancelReason::DayEnded;
                }
            }
        }
    }
    events
}

/// Runs the steps, and counts what happened.
fn run(steps: &[Step]) -> Vec<Event> {
    let (mut venue, mut other, mut model) = (Venue::<Ladder>::new(), Venue::<MapIndex>::new(), Model::default());
    // The model does all at once, under the version too that takes small steps.
    venue.engine.set_meetings_max(u32::MAX);
    other.engine.set_meetings_max(u32::MAX);
    let mut all = Vec::new();
    for &(pause, command) in steps {
        venue.now = TimeNs(venue.now.0 + pause);
        other.now = venue.now;
        let mut expected = Vec::new();
        model.apply(venue.engine.last_applied().next(), venue.now, &command, &mut expected);
        let events = venue.apply(command);
        assert_eq!(by_age(events.clone()), by_age(expected), "{command:?}");
        assert_eq!(events, other.apply(command), "the price index shows");
        assert_same(&venue, &model);
        all.extend(events);
    }
    assert_eq!(venue.engine.state_hash(), other.engine.state_hash());
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_model_after_every_command(mut steps in steps(Just(Allocation::PriceTime), 120), version in 11..=14_u16) {
        if version > 11 {
            steps.insert(0, (0, Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(version)))));
        }
        run(&steps);
    }
}

const REACHED: &str = "
    Order/Accepted Order/Reduced Order/Replenished Order/Traded Order/Triggered
    Order/Amended/Kept Order/Amended/Lost
    Order/Cancelled/AccountSuspended Order/Cancelled/DayEnded Order/Cancelled/Expired Order/Cancelled/MassCancelled
    Order/Cancelled/PriceBand Order/Cancelled/Requested Order/Cancelled/SelfTrade Order/Cancelled/TriggerRefused
    Order/Cancelled/Unfilled Order/Cancelled/Linked Order/Cancelled/Unfunded LinkInvalid LinkedOrderFixed
    Instrument/Created Instrument/PhaseChanged Instrument/Uncrossed Instrument/Uncrossed/AtAPrice
    Account/Created Account/StatusChanged Account/Deposited Account/Withdrawn Account/FeesCollected Account/RiskLimitsChanged
    Session/Opened Venue/AccessDelaysChanged Venue/AssetCreated Venue/EngineVersionSet
    AccessDelayTooLong AccountSuspended AlreadyExpired AmendInvalid AmountOutOfRange DisplayInvalid DuplicateClientOrderId DuplicateTransfer
    EngineVersionInvalid
    FillOrKillUnfillable IdNotNext InsufficientFunds MinSizeInvalid MinSizeUnfillable OrderTooLarge OrderValueTooLarge
    PhaseChangeInvalid PhaseNoImmediate PhaseTakesNoOrders PositionLimit PostOnlyInvalid PostOnlyWouldTrade PriceOutsideCollar
    SizeOutOfRange SupplyOverflow TimeInForceInvalid TooManyOpenOrders TrailInvalid UnknownAccount UnknownAsset UnknownInstrument UnknownOrder
    UnknownSession
";

/// The comparison is worth what the steps reach: every event, every reason of a cancel, every reason of a reject but those that no
/// generated venue can come to.
#[test]
fn the_steps_reach_everything() {
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let some_steps = steps(Just(Allocation::PriceTime), 120);
    let mut seen = BTreeMap::<String, u32>::new();
    for number in 0..180 {
        let mut steps = some_steps.new_tree(&mut runner).unwrap().current();
        if number % 3 > 0 {
            steps.insert(0, (0, Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(14)))));
        }
        for event in run(&steps) {
            let what = match event {
                Event::Rejected(e) => format!("{:?}", e.reason),
                Event::Order(OrderEvent::Cancelled(e)) => format!("Order/Cancelled/{:?}", e.reason),
                Event::Instrument(InstrumentEvent::Uncrossed(Uncrossed { price: Some(_), .. })) => {
                    "Instrument/Uncrossed/AtAPrice".into()
                }
                Event::Order(OrderEvent::Amended(e)) => format!("Order/Amended/{:?}", e.priority),
                other => format!("{other:?}").split('(').take(2).collect::<Vec<_>>().join("/"),
            };
            *seen.entry(what).or_default() += 1;
        }
    }
    let missed: Vec<_> = REACHED.split_whitespace().filter(|what| !seen.contains_key(*what)).collect();
    assert!(missed.is_empty(), "never happened: {missed:?}; it did: {seen:#?}");
}
