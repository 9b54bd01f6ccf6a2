//! What a client may rely on.

use walras_engine::{Numbered, Standing};
use walras_types::*;
use walras_wire::*;

use super::{close, idle, open, opened, place, venue};
use crate::venue::{lots, ticks};

fn buy(account: u32, name: u64, time_in_force: TimeInForce) -> Command {
    let terms = OrderTerms { time_in_force, ..OrderTerms::limit(Side::Buy, ticks(99), lots(5)) };
    let (account, client_order_id) = (AccountId(account), ClientOrderId(name));
    Command::Order(OrderCommand::New(NewOrder { account, instrument: InstrumentId(0), client_order_id, terms }))
}

fn answer(log_index: u64, rejected: Option<RejectReason>, command: &Command) -> Answer {
    Answer { log_index: LogIndex(log_index), rejected, content: content_digest(command, &mut Vec::new()) }
}

/// Each with what is wrong with it as a repeat of the order: only the same is one.
#[test]
fn another_command_under_a_number_that_was_used_is_refused() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 7);
    let order = buy(0, 11, TimeInForce::GoodTillCancel);
    venue.apply_numbered(place(session, 1), order);
    let at = venue.engine.last_applied().0;
    let Command::Order(OrderCommand::New(sound)) = order else { panic!("an order") };
    let with = |change: fn(&mut NewOrder)| {
        let mut other = sound;
        change(&mut other);
        Command::Order(OrderCommand::New(other))
    };
    for other in [
        with(|o| o.client_order_id = ClientOrderId(22)),
        with(|o| o.terms.side = Side::Sell),
        with(|o| o.terms.size = lots(6)),
        with(|o| o.terms.order_type = OrderType::Limit { price: ticks(98), post_only: PostOnly::Off }),
        with(|o| o.terms.order_type = OrderType::Limit { price: ticks(99), post_only: PostOnly::Reprice }),
        with(|o| o.terms.time_in_force = TimeInForce::Day),
        with(|o| o.terms.display = Display::Hidden),
        with(|o| o.terms.min_size = Some(lots(1))),
        with(|o| o.terms.self_trade = SelfTrade::Allow),
        with(|o| o.instrument = InstrumentId(1)),
        with(|o| o.account = AccountId(1)),
        idle(0),
        close(session),
        Command::Venue(VenueCommand::Tick),
    ] {
        let refused = Numbered::Refused(RejectReason::SessionSeqReused);
        assert_eq!(venue.apply_numbered(place(session, 1), other), (refused, vec![]), "{other:?}");
    }
    assert_eq!(venue.apply_numbered(place(session, 1), order).0, Numbered::Repeated(answer(at, None, &order)), "it is remembered");
    let mut orders = Vec::new();
    venue.engine.open_orders(AccountId(0), InstrumentId(0), &mut orders);
    assert_eq!(orders.len(), 1);
    assert_eq!(
        venue.engine.session(session).map(|view| view.next),
        Some(SessionSeq(2)),
        "a number that was refused is not used up"
    );
}

/// A command that can not be carried out takes its number like any other, and is known from another one that can not.
#[test]
fn an_invalid_command_is_rejected_once_in_its_place() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 7);
    let (account, instrument) = (Some(AccountId(0)), Some(InstrumentId(0)));
    let invalid = |content| {
        let (client_order_id, reason) = (Some(ClientOrderId(3)), RejectReason::PriceOutOfRange);
        let content = ContentDigest(content);
        Command::Invalid(InvalidCommand { account, instrument, client_order_id, reason, content, name: None })
    };
    let (became, events) = venue.apply_numbered(place(session, 1), invalid(1));
    let at = venue.engine.last_applied().0;
    let rejected = answer(at, Some(RejectReason::PriceOutOfRange), &invalid(1));
    let (client_order_id, reason) = (Some(ClientOrderId(3)), RejectReason::PriceOutOfRange);
    assert_eq!(became, Numbered::Done(rejected));
    assert_eq!(events, [Event::Rejected(Rejected { account, instrument, client_order_id, reason })]);
    assert_eq!(venue.apply_numbered(place(session, 1), invalid(1)), (Numbered::Repeated(rejected), vec![]));
    let refused = Numbered::Refused(RejectReason::SessionSeqReused);
    assert_eq!(venue.apply_numbered(place(session, 1), invalid(2)), (refused, vec![]));
    assert!(matches!(venue.apply_numbered(place(session, 2), buy(0, 3, TimeInForce::GoodTillCancel)).0, Numbered::Done(_)));
}

#[test]
fn where_an_ordinal_stands() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 7);
    let window = limits::SESSION_WINDOW as u64;
    for seq in 1..=window + 1 {
        venue.apply_numbered(place(session, seq), idle(0));
    }
    let (engine, next) = (&venue.engine, SessionSeq(window + 2));
    assert_eq!([0, 1].map(|seq| engine.standing(place(session, seq))), [Standing::TooOld; 2]);
    for seq in [2, window + 1] {
        assert_eq!(engine.answer(place(session, seq)).map(Standing::Known), Some(engine.standing(place(session, seq))));
    }
    assert_eq!([window + 2, u64::MAX].map(|seq| engine.standing(place(session, seq))), [Standing::Next { next }; 2]);
    assert_eq!(engine.standing(place(SessionId(session.0 + 1), 1)), Standing::UnknownSession);
}

#[test]
fn an_order_sent_twice_is_taken_once() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 7);
    let order = buy(0, 1, TimeInForce::GoodTillCancel);
    let (became, events) = venue.apply_numbered(place(session, 1), order);
    let at = venue.engine.last_applied().0;
    assert_eq!(became, Numbered::Done(answer(at, None, &order)));
    assert!(matches!(events[..], [Event::Order(OrderEvent::Accepted(OrderAccepted { order_id: OrderId(id), .. }))] if id == at));
    let repeated = Numbered::Repeated(answer(at, None, &order));
    assert_eq!(venue.apply_numbered(place(session, 1), order), (repeated, vec![]));
    let mut orders = Vec::new();
    venue.engine.open_orders(AccountId(0), InstrumentId(0), &mut orders);
    assert_eq!(orders.len(), 1);
}

#[test]
fn a_rejection_is_remembered_like_any_answer() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 7);
    let (became, events) = venue.apply_numbered(place(session, 1), idle(0));
    let at = venue.engine.last_applied();
    let answer = answer(at.0, Some(RejectReason::UnknownOrder), &idle(0));
    assert_eq!(became, Numbered::Done(answer));
    assert_eq!(events.len(), 1);
    assert_eq!(venue.apply_numbered(place(session, 1), idle(0)), (Numbered::Repeated(answer), vec![]));
    assert_eq!(venue.engine.answer(place(session, 1)), Some(answer));
    assert_eq!(venue.engine.answer(place(session, 2)), None);
}

#[test]
fn places_come_in_order_without_gaps() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 7);
    for gap in [2, 3, u64::MAX] {
        let refused = (Numbered::Refused(RejectReason::SessionSeqGap), vec![]);
        assert_eq!(venue.apply_numbered(place(session, gap), idle(0)), refused);
    }
    let too_old = (Numbered::Refused(RejectReason::SessionSeqTooOld), vec![]);
    assert_eq!(venue.apply_numbered(place(session, 0), idle(0)), too_old);
    for unknown in [0, session.0 - 1, session.0 + 1, u64::MAX] {
        let refused = (Numbered::Refused(RejectReason::UnknownSession), vec![]);
        assert_eq!(venue.apply_numbered(place(SessionId(unknown), 1), idle(0)), refused);
    }
    assert!(matches!(venue.apply_numbered(place(session, 1), idle(0)).0, Numbered::Done(_)));
}

#[test]
fn opening_can_be_retried() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 7);
    venue.apply_numbered(place(session, 1), idle(0));
    assert_eq!(opened(&mut venue, Some(0), 7), session);
    assert_eq!(venue.engine.session(session).unwrap().next, SessionSeq(2), "it goes on where it was");
    assert_eq!(venue.engine.session(session).unwrap().last_used, venue.engine.last_applied());
    // Another's session, the operator's, and one of another token are others.
    let others = [(Some(1), 7), (None, 7), (Some(0), 8)].map(|(account, token)| opened(&mut venue, account, token));
    assert!(others.is_sorted_by(|a, b| a < b) && others.iter().all(|other| *other > session));
    // After a close the same token opens a new one, with places from 1.
    let account = Some(AccountId(0));
    assert_eq!(venue.apply(close(session)), [Event::Session(SessionEvent::Closed(SessionClosed { session, account }))]);
    let again = opened(&mut venue, Some(0), 7);
    assert_ne!(again, session);
    assert_eq!(venue.engine.session(again).unwrap().next, SessionSeq(1));
    assert_eq!(venue.apply_numbered(place(session, 2), idle(0)).0, Numbered::Refused(RejectReason::UnknownSession));
    let reason = RejectReason::UnknownSession;
    let rejected = Event::Rejected(Rejected { account: None, instrument: None, client_order_id: None, reason });
    assert_eq!(venue.apply(close(session)), [rejected]);
}

#[test]
fn a_session_sends_what_its_account_may_and_no_more() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 7);
    let other = opened(&mut venue, Some(1), 7);
    let cancel = MassCancel { account: AccountId(1), instrument: None, side: None };
    let strange = [
        buy(1, 5, TimeInForce::GoodTillCancel),
        idle(1),
        Command::Order(OrderCommand::MassCancel(cancel)),
        close(other),
        open(Some(0), 9),
        Command::Venue(VenueCommand::Tick),
        Command::Account(AccountCommand::Create(AccountId(4))),
        Command::Venue(VenueCommand::Checkpoint(Checkpoint { log_index: LogIndex(1), state_hash: [0; 32] })),
    ];
    for (seq, command) in (1..).zip(strange) {
        let (became, events) = venue.apply_numbered(place(session, seq), command);
        let rejected = Some(RejectReason::Forbidden);
        assert_eq!(became, Numbered::Done(answer(venue.engine.last_applied().0, rejected, &command)), "{command:?}");
        // Who sent it is told, not who it names.
        let [Event::Rejected(rejected)] = events[..] else { panic!("{events:?}") };
        assert_eq!((rejected.account, rejected.reason), (Some(AccountId(0)), RejectReason::Forbidden));
        assert_eq!(venue.engine.answer(place(session, seq)).unwrap().rejected, Some(RejectReason::Forbidden));
    }
    assert!(venue.engine.session(other).is_some());
    // The operator's may do all of that.
    let operator = opened(&mut venue, None, 7);
    for (seq, command) in (1..).zip(strange) {
        let became = venue.apply_numbered(place(operator, seq), command).0;
        let expected = if seq == 2 { Some(RejectReason::UnknownOrder) } else { None };
        assert_eq!(became, Numbered::Done(answer(venue.engine.last_applied().0, expected, &command)), "{command:?}");
    }
    // And an account's may close itself: it is gone with all that it remembers.
    let seq = venue.engine.session(session).unwrap().next.0;
    let (became, events) = venue.apply_numbered(place(session, seq), close(session));
    assert_eq!(became, Numbered::Done(answer(venue.engine.last_applied().0, None, &close(session))));
    assert_eq!(events, [Event::Session(SessionEvent::Closed(SessionClosed { session, account: Some(AccountId(0)) }))]);
    assert_eq!(venue.apply_numbered(place(session, seq), close(session)).0, Numbered::Refused(RejectReason::UnknownSession));
}

#[test]
fn a_suspended_account_keeps_its_session() {
    let mut venue = venue();
    let session = opened(&mut venue, Some(0), 7);
    venue.apply_numbered(place(session, 1), buy(0, 1, TimeInForce::GoodTillCancel));
    venue.apply(Command::Account(AccountCommand::SetStatus(SetAccountStatus {
        account: AccountId(0),
        status: AccountStatus::Suspended,
    })));
    let order = buy(0, 2, TimeInForce::GoodTillCancel);
    let (became, _) = venue.apply_numbered(place(session, 2), order);
    let rejected = answer(venue.engine.last_applied().0, Some(RejectReason::AccountSuspended), &order);
    assert_eq!(became, Numbered::Done(rejected));
    assert_eq!(venue.apply_numbered(place(session, 2), order).0, Numbered::Repeated(rejected));
    assert_eq!(opened(&mut venue, Some(0), 7), session);
    assert_ne!(opened(&mut venue, Some(0), 8), session, "and may open more, to cancel through");
}

#[test]
fn orders_expire_first_whatever_becomes_of_the_command() {
    for (session, seq) in [(0, 1), (1, 0), (1, 1), (1, 2), (1, 3)] {
        let mut venue = venue();
        let own = opened(&mut venue, Some(0), 7);
        venue.apply_numbered(place(own, 1), buy(0, 1, TimeInForce::GoodTill(TimeNs(50))));
        venue.now = TimeNs(50);
        let before = venue.engine.last_applied();
        let (_, events) = venue.apply_numbered(place(SessionId(session * own.0), seq), idle(0));
        assert!(
            matches!(events[0], Event::Order(OrderEvent::Cancelled(OrderCancelled { reason: CancelReason::Expired, .. }))),
            "{events:?}"
        );
        assert_eq!((venue.engine.last_applied(), venue.engine.time()), (before.next(), TimeNs(50)));
    }
}

#[test]
fn a_checkpoint_is_to_the_state_as_a_tick() {
    let (mut venue, mut other) = (venue(), self::venue());
    let checkpoint = Command::Venue(VenueCommand::Checkpoint(Checkpoint { log_index: LogIndex(3), state_hash: [9; 32] }));
    assert_eq!(venue.apply(checkpoint), other.apply(Command::Venue(VenueCommand::Tick)));
    assert_eq!(venue.engine.state_hash(), other.engine.state_hash());
}
