//! The operator replaces an account's key while transactions of the account are on their way, one of which sets another.

use std::num::NonZero;

use walras_batch::ProposedClearing;
use walras_types::limits::KEY_REPLACED_NS;
use walras_types::*;
use walras_wire::*;

use crate::batch_market::{MARKET, opening_with_batches, set_key, submit};
use crate::venue::{BTC, Venue, units};

const ACCOUNT: AccountId = AccountId(0);
const STOLEN: PublicKey = PublicKey([1; 32]);
const OF_THIEF: PublicKey = PublicKey([2; 32]);
const OF_OPERATOR: PublicKey = PublicKey([3; 32]);

/// An open batch market under a version, and an account with a key. Blocks go on in steps, each as small as can be, or in one entry.
fn venue(version: u16, in_steps: bool) -> Venue {
    let mut venue = Venue::new();
    go_in_steps(&mut venue, in_steps);
    venue.take_all([Command::Venue(VenueCommand::SetEngineVersion(EngineVersion(version)))]);
    venue.take_all(opening_with_batches(STOLEN));
    venue
}

fn go_in_steps(venue: &mut Venue, in_steps: bool) {
    if in_steps {
        venue.engine.set_block_steps(0, NonZero::<usize>::MIN);
    }
}

fn set_by_operator(key: PublicKey) -> Command {
    set_key(ACCOUNT, key)
}

/// A transaction of the account, under its number so many after the next, comes to the log. Whether it is collected.
fn send(venue: &mut Venue, after: u64, operation: BatchOperation) -> Result<(), RejectReason> {
    let sequence = TransactionSeq(venue.engine.next_transaction(ACCOUNT).0 + after);
    match venue.apply(submit(BatchTransaction::new(ACCOUNT, sequence, operation)))[..] {
        [Event::Batch(BatchEvent::TransactionCollected(_))] => Ok(()),
        [Event::Rejected(Rejected { reason, .. })] => Err(reason),
        ref other => panic!("{other:?}"),
    }
}

/// The account sends a transaction that sets its key.
fn set_by_account(venue: &mut Venue, key: PublicKey) {
    assert_eq!(send(venue, 0, BatchOperation::SetKey(key)), Ok(()));
}

/// All entries of what is collected and under way. Why transactions were dropped.
fn clear(venue: &mut Venue) -> Vec<DropReason> {
    let mut dropped = Vec::new();
    while let Some(events) = go_on(venue) {
        dropped.extend(events.iter().filter_map(|event| match event {
            Event::Batch(BatchEvent::TransactionDropped(dropped)) => Some(dropped.reason),
            _ => None,
        }));
    }
    dropped
}

/// One more entry of the market; `None` where its block is done and nothing is collected.
fn go_on(venue: &mut Venue) -> Option<Vec<Event>> {
    let view = venue.engine.batch_market(MARKET).unwrap();
    let (market, block, collected) = (MARKET, view.next_block, view.collected);
    if let Some(next) = venue.engine.next_block_step(MARKET) {
        return Some(venue.apply(Command::Batch(BatchCommand::Step(StepBlock { market, block, step: next.number }))));
    }
    if let Some((place, offers, ..)) = venue.engine.batch_to_clear(MARKET) {
        let nothing = ProposedClearing { place: Some(place), ..ProposedClearing::of_nothing(&offers) };
        drop(offers);
        let (next, mut events) = (venue.engine.last_applied().next(), Vec::new());
        venue.engine.apply_clearing(next, venue.now, &nothing.to_wire(MARKET).unwrap(), &mut events);
        venue.engine.check_invariants();
        return Some(events);
    }
    (collected > 0).then(|| venue.apply(Command::Batch(BatchCommand::Close(CloseBatch { market, block }))))
}

/// A start from the snapshot of the state as it is, with the same steps.
fn restored(venue: &Venue, in_steps: bool) -> Venue {
    let mut venue = venue.restored();
    go_in_steps(&mut venue, in_steps);
    venue
}

/// The thief sends a key of its own; after so many of the block's entries the operator sets another. How many entries the block took, and
/// what happened.
fn run(version: u16, in_steps: bool, operator_after: usize) -> (usize, Vec<Event>, Venue) {
    let (mut venue, mut events) = (venue(version, in_steps), Vec::new());
    set_by_account(&mut venue, OF_THIEF);
    for entries in 0.. {
        if entries == operator_after {
            let set = venue.apply(set_by_operator(OF_OPERATOR));
            assert!(matches!(set[..], [Event::Account(AccountEvent::KeySet(_))]), "{set:?}");
            venue = restored(&venue, in_steps);
        }
        match go_on(&mut venue) {
            Some(more) => events.extend(more),
            None => return (entries, events, venue),
        }
    }
    unreachable!("a block ends")
}

#[test]
fn a_key_that_the_operator_sets_is_not_undone_by_a_transaction_from_before() {
    for in_steps in [false, true] {
        let (entries, _, venue) = run(14, in_steps, usize::MAX);
        assert_eq!(venue.engine.transaction_key(ACCOUNT), Some(OF_THIEF), "nobody came in between");
        assert!(entries >= if in_steps { 5 } else { 2 }, "{entries} entries");
        for operator_after in 0..=entries {
            let (_, events, mut venue) = run(14, in_steps, operator_after);
            let at = format!("after {operator_after} of {entries} entries");
            assert_eq!(venue.engine.transaction_key(ACCOUNT), Some(OF_OPERATOR), "{at}");
            assert_eq!(venue.engine.account_of_key(&OF_THIEF), None, "{at}");
            // Either the block had set the key by then, or it says that it did not.
            let is_set = events.iter().any(|event| matches!(event, Event::Account(AccountEvent::KeySet(_))));
            let reasons = events.iter().filter_map(|event| match event {
                Event::Batch(BatchEvent::TransactionDropped(TransactionDropped { account: ACCOUNT, reason, .. })) => Some(*reason),
                _ => None,
            });
            let expected = if is_set { vec![] } else { vec![DropReason::KeyReplaced] };
            assert_eq!(reasons.collect::<Vec<_>>(), expected, "{at}");
            assert!(is_set || operator_after < entries, "{at}");
            // After a minute the account's key is set as ever, to this one too.
            venue.now = TimeNs(venue.now.0 + KEY_REPLACED_NS + 1);
            set_by_account(&mut venue, OF_THIEF);
            assert!(clear(&mut venue).is_empty(), "{at}");
            assert_eq!(venue.engine.transaction_key(ACCOUNT), Some(OF_THIEF), "{at}");
        }
        // Logs of version 13 say what they said.
        let (_, events, venue) = run(13, in_steps, 0);
        assert_eq!(venue.engine.transaction_key(ACCOUNT), Some(OF_THIEF));
        assert!(!events.iter().any(|event| matches!(event, Event::Batch(BatchEvent::TransactionDropped(_)))), "{events:?}");
    }
}

/// A key that is set to what it was, or one of an account that had none, leaves what was sent before as it is.
#[test]
fn a_key_that_stays_the_same_replaces_none() {
    let mut venue = venue(14, false);
    set_by_account(&mut venue, OF_THIEF);
    venue.apply(set_by_operator(STOLEN));
    while go_on(&mut venue).is_some() {}
    assert_eq!(venue.engine.transaction_key(ACCOUNT), Some(OF_THIEF));
}

/// A transaction is checked before it comes to the log, so one that the old key signed may come when another key holds already.
#[test]
fn what_was_on_its_way_when_the_operator_replaced_a_key_sets_none_either() {
    for in_steps in [false, true] {
        let mut venue = venue(14, in_steps);
        let replaced = venue.now.0;
        venue.apply(set_by_operator(OF_OPERATOR));
        // In the batch that collects then, in the next one, and as long as it may be on its way.
        for after_ns in [0, 1, KEY_REPLACED_NS] {
            venue = restored(&venue, in_steps);
            venue.now = TimeNs(replaced + after_ns);
            set_by_account(&mut venue, OF_THIEF);
            venue = restored(&venue, in_steps);
            assert_eq!(clear(&mut venue), [DropReason::KeyReplaced]);
            assert_eq!(venue.engine.transaction_key(ACCOUNT), Some(OF_OPERATOR));
        }
        venue = restored(&venue, in_steps);
        venue.now = TimeNs(replaced + KEY_REPLACED_NS + 1);
        set_by_account(&mut venue, OF_THIEF);
        assert!(clear(&mut venue).is_empty());
        assert_eq!(venue.engine.transaction_key(ACCOUNT), Some(OF_THIEF), "by then only the key that holds signs anything");
    }
    // Logs of version 13 say what they said.
    let mut venue = venue(13, false);
    venue.apply(set_by_operator(OF_OPERATOR));
    set_by_account(&mut venue, OF_THIEF);
    assert_eq!((clear(&mut venue), venue.engine.transaction_key(ACCOUNT)), (vec![], Some(OF_THIEF)));
}

/// What the documents say to do about a stolen key: suspend the account, replace its key, let a block clear, activate it. Whatever the thief
/// sent and came to the log by then, and was not in a closed block, does nothing.
#[test]
fn an_account_that_is_suspended_while_its_key_is_replaced_loses_nothing() {
    let set_status = |status| Command::Account(AccountCommand::SetStatus(SetAccountStatus { account: ACCOUNT, status }));
    let payment = BatchOperation::Payment(Payment { to: AccountId(1), asset: BTC, amount: units(5) });
    let stolen = [payment, BatchOperation::SetKey(OF_THIEF)];
    for (version, in_steps) in [(13, false), (13, true), (14, false), (14, true)] {
        let mut venue = venue(version, in_steps);
        venue.apply(Command::Account(AccountCommand::Create(AccountId(1))));
        let had = venue.engine.balance(ACCOUNT, BTC);
        let comes = |venue: &mut Venue| [0, 1].map(|after| send(venue, after, stolen[after as usize]));
        assert_eq!(comes(&mut venue), [Ok(()); 2]);
        venue.apply(set_status(AccountStatus::Suspended));
        assert_eq!(send(&mut venue, 2, payment), Err(RejectReason::AccountSuspended));
        venue.apply(set_by_operator(OF_OPERATOR));
        assert_eq!(send(&mut venue, 3, payment), Err(RejectReason::AccountSuspended));
        assert_eq!(clear(&mut venue), [DropReason::Suspended; 2], "version {version}");
        assert_eq!(comes(&mut venue), [Err(RejectReason::AccountSuspended); 2]);
        venue.apply(set_status(AccountStatus::Active));
        assert!(clear(&mut venue).is_empty());
        assert_eq!(venue.engine.transaction_key(ACCOUNT), Some(OF_OPERATOR));
        assert_eq!(venue.engine.balance(ACCOUNT, BTC), had, "version {version}");
    }
}
