//! Under an earlier version of the rules the engine does what the program of that version did.

use std::num::NonZero;

use walras_engine::versions::{NEWEST, OLDEST};
use walras_types::*;
use walras_wire::*;

use crate::batch_market::{self, MARKET, opening_with_batches};
use crate::venue::{BTC, USD, Venue, opening, phase, spec, units};

/// An open batch market, and an account with a key.
fn batch_venue() -> Venue {
    let mut venue = Venue::new();
    venue.take_all(opening_with_batches(PublicKey([7; 32])));
    venue
}

fn submit(venue: &mut Venue, operation: BatchOperation) -> Vec<Event> {
    submit_with_terms(venue, operation, TransactionTerms::NONE)
}

fn submit_with_terms(venue: &mut Venue, operation: BatchOperation, terms: TransactionTerms) -> Vec<Event> {
    let account = AccountId(0);
    let transaction = BatchTransaction::new(account, venue.engine.next_transaction(account), operation).with_terms(terms);
    venue.apply(batch_market::submit(transaction))
}

/// A pool is created, added to and left.
fn of_a_pool(venue: &Venue) -> [BatchOperation; 3] {
    let pool = OfferName { account: AccountId(0), sequence: venue.engine.next_transaction(AccountId(0)) };
    let (market, amounts) = (MARKET, [units(2_000), units(2_000)]);
    [
        BatchOperation::CreatePool(CreatePool {
            market,
            assets: [BTC, USD],
            rule: PoolRule::ConstantProduct,
            fee_ppm: 3_000,
            amounts,
        }),
        BatchOperation::DepositToPool(DepositToPool { market, pool, amounts }),
        BatchOperation::WithdrawFromPool(WithdrawFromPool { market, pool, shares: units(10) }),
    ]
}

#[test]
fn transactions_on_pools_need_version_12() {
    let mut venue = batch_venue();
    assert_eq!(venue.engine.version(), OLDEST);
    let next = venue.engine.next_transaction(AccountId(0));
    for operation in of_a_pool(&venue) {
        let events = submit(&mut venue, operation);
        let [Event::Rejected(Rejected { reason, .. })] = events[..] else { panic!("{operation:?}: {events:?}") };
        assert_eq!((reason, reason.number()), (RejectReason::NeedsLaterVersion, 39), "{operation:?}");
        assert_eq!(venue.engine.next_transaction(AccountId(0)), next, "the number is not used up");
    }
    let offer = CreateOffer { market: MARKET, sell: BTC, buy: USD, amount: units(10), limit: BatchPrice::ZERO };
    let taken = |events: &[Event]| matches!(events, [Event::Batch(BatchEvent::TransactionCollected(_))]);
    assert!(taken(&submit(&mut venue, BatchOperation::CreateOffer(offer))), "what version 11 knows is taken");
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    for operation in of_a_pool(&venue) {
        let events = submit(&mut venue, operation);
        assert!(taken(&events), "{operation:?}: {events:?}");
    }
}

#[test]
fn keys_set_by_their_owners_need_version_13() {
    let mut venue = batch_venue();
    let set = BatchOperation::SetKey(PublicKey([77; 32]));
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(12))));
    let events = submit(&mut venue, set);
    let [Event::Rejected(Rejected { reason: RejectReason::NeedsLaterVersion, .. })] = events[..] else { panic!("{events:?}") };
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    let events = submit(&mut venue, set);
    assert!(matches!(events[..], [Event::Batch(BatchEvent::TransactionCollected(_))]), "{events:?}");
}

#[test]
fn terms_of_transactions_need_version_13_and_end() {
    let mut venue = batch_venue();
    let offer = BatchOperation::CreateOffer(CreateOffer {
        market: MARKET,
        sell: BTC,
        buy: USD,
        amount: units(10),
        limit: BatchPrice::ZERO,
    });
    let until = |block| TransactionTerms { until: NonZero::new(block), ..TransactionTerms::NONE };
    let refused = |events: &[Event]| match events {
        [Event::Rejected(Rejected { reason, .. })] => Some(*reason),
        [Event::Batch(BatchEvent::TransactionCollected(_))] => None,
        _ => panic!("{events:?}"),
    };
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(12))));
    for terms in [until(9), TransactionTerms { joined: Joined::Next, ..TransactionTerms::NONE }] {
        assert_eq!(refused(&submit_with_terms(&mut venue, offer, terms)), Some(RejectReason::NeedsLaterVersion));
    }
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    assert_eq!(refused(&submit_with_terms(&mut venue, offer, until(1))), None);
    venue.apply(Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block: 1 })));
    // Block 2 collects now, whether block 1 is cleared or not.
    assert_eq!(refused(&submit_with_terms(&mut venue, offer, until(1))), Some(RejectReason::AlreadyExpired));
    assert_eq!(refused(&submit_with_terms(&mut venue, offer, until(2))), None);
}

#[test]
fn chains_of_transactions_need_version_14() {
    let mut venue = batch_venue();
    let operation = BatchOperation::CreateOffer(CreateOffer {
        market: MARKET,
        sell: BTC,
        buy: USD,
        amount: units(10),
        limit: BatchPrice::ZERO,
    });
    let terms = |joined| TransactionTerms { until: None, joined };
    let of_chain = [0, 1, 2].map(|place| terms(Joined::of_chain(place, 3)));
    let since = |terms| {
        let transaction = BatchTransaction::new(AccountId(0), TransactionSeq(1), operation).with_terms(terms);
        batch_market::submit(transaction).since().0
    };
    assert_eq!([since(TransactionTerms::NONE), since(terms(Joined::Next))], [0, 13]);
    assert_eq!(of_chain.map(since), [14; 3]);
    let is_taken = |events: &[Event]| match events {
        [Event::Batch(BatchEvent::TransactionCollected(_))] => true,
        [Event::Rejected(Rejected { reason: RejectReason::NeedsLaterVersion, .. })] => false,
        _ => panic!("{events:?}"),
    };
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(13))));
    assert_eq!(of_chain.map(|terms| is_taken(&submit_with_terms(&mut venue, operation, terms))), [false; 3]);
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    assert_eq!(of_chain.map(|terms| is_taken(&submit_with_terms(&mut venue, operation, terms))), [true; 3]);
}

#[test]
fn amendments_that_give_a_text_need_version_14() {
    let mut venue: Venue = Venue::new();
    venue.take_all(opening(1, 1_000_000, &[spec(0)]));
    venue.take_all([phase(0, TradingPhase::Continuous), Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(13)))]);
    let terms = OrderTerms::limit(Side::Buy, PriceTicks::new(100).unwrap(), SizeLots::new(3));
    let (account, instrument, client_order_id) = (AccountId(0), InstrumentId(0), ClientOrderId(5));
    let entered = venue.apply(Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms })));
    let Some(Event::Order(OrderEvent::Accepted(accepted))) = entered.first() else { panic!("{entered:?}") };
    let amend = |size| {
        let amendment = Amendment { client_order_id, price: None, trigger: None, size: Some(SizeLots::new(size)) };
        AmendOrder { account, instrument, amendment }
    };
    let named = |size| {
        let name = ClientOrderName::of_replacement(b"77").unwrap();
        Command::Order(OrderCommand::AmendNamed(NamedAmend { amend: amend(size), name }))
    };
    assert_eq!(named(2).since(), EngineVersion(14));
    let expected = Rejected::of(&named(2), RejectReason::NeedsLaterVersion);
    assert_eq!(venue.apply(named(2)), [Event::Rejected(expected)]);
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(14))));
    // As the same amendment without the text, and the order keeps the number with which it entered.
    let mut done = venue.apply(named(2));
    done.extend(venue.apply(Command::Order(OrderCommand::Amend(amend(1)))));
    let [Event::Order(OrderEvent::Amended(first)), Event::Order(OrderEvent::Amended(second))] = done[..] else {
        panic!("{done:?}")
    };
    let open = |lots| Resting { open: SizeLots::new(lots), shown: SizeLots::new(lots) };
    assert_eq!((first.order_id, first.client_order_id, first.resting), (accepted.order_id, client_order_id, open(2)));
    assert_eq!(OrderAmended { resting: open(1), ..first }, second);
}

#[test]
fn orders_named_by_a_text_and_dead_mans_switches_need_version_13() {
    let mut venue: Venue = Venue::new();
    venue.take_all(opening(1, 1_000_000, &[]));
    let terms = OrderTerms::limit(Side::Buy, PriceTicks::new(100).unwrap(), SizeLots::new(1));
    let (account, instrument, client_order_id) = (AccountId(0), InstrumentId(0), ClientOrderId(1 << 63));
    let order = NewOrder { account, instrument, client_order_id, terms };
    let named = Command::Order(OrderCommand::NewNamed(NamedOrder::new(&order, ClientOrderName::new("abc-1").unwrap())));
    let after = |account| Command::Order(OrderCommand::CancelAfter(CancelAfter { account: AccountId(account), timeout_ms: 5 }));
    let rejected = |events: &[Event]| match events {
        [Event::Rejected(Rejected { reason, .. })] => Some(*reason),
        _ => None,
    };
    for command in [named, after(0)] {
        assert_eq!(rejected(&venue.apply(command)), Some(RejectReason::NeedsLaterVersion), "{command:?}");
        assert_eq!(command.since(), EngineVersion(13));
    }
    venue.apply(Command::Venue(VenueCommand::SetEngineVersion(NEWEST)));
    assert!(venue.apply(after(0)).is_empty());
    assert_eq!(venue.engine.cancels_at(AccountId(0)), Some(TimeNs(venue.now.0 + 5_000_000)));
    assert_eq!(rejected(&venue.apply(after(99))), Some(RejectReason::UnknownAccount));
    // As the same order by its number.
    let mut plain: Venue = Venue::new();
    plain.take_all(opening(1, 1_000_000, &[]));
    let tick = Command::Venue(VenueCommand::Tick);
    plain.take_all([tick, tick, Command::Venue(VenueCommand::SetEngineVersion(NEWEST)), tick, tick]);
    assert_eq!(venue.apply(named), plain.apply(Command::Order(OrderCommand::New(order))));
}
