//! Transactions that say their last block, and transactions that are joined.

use std::num::NonZero;

use walras_batch::{DropReason, Intake, ProposedClearing};
use walras_types::{
    AccountId, AssetId, BatchOperation, BatchPrice, BatchTransaction, CreateOffer, Joined, OfferName, Payment, TransactionSeq,
    TransactionTerms,
};

use crate::world::{Draw, MARKET, World, amount, key};

const BOTH: [Intake; 2] = [Intake::Filter, Intake::Reserve];

fn sent(account: u32, sequence: u64, operation: BatchOperation) -> BatchTransaction {
    BatchTransaction::new(AccountId(account), TransactionSeq(sequence), operation)
}

fn until(transaction: BatchTransaction, block: u64) -> BatchTransaction {
    transaction.with_terms(TransactionTerms { until: NonZero::new(block), ..transaction.terms })
}

fn joined(transaction: BatchTransaction) -> BatchTransaction {
    with(transaction, Joined::Next)
}

fn with(transaction: BatchTransaction, joined: Joined) -> BatchTransaction {
    transaction.with_terms(TransactionTerms { joined, ..transaction.terms })
}

/// Payments of account 0 as one chain, whose first one has this number.
fn chain(first: u64, count: usize) -> Vec<BatchTransaction> {
    (first..).zip(0..count).map(|(number, place)| with(sent(0, number, pay(1, 1)), Joined::of_chain(place, count))).collect()
}

fn pay(to: u32, units: u64) -> BatchOperation {
    BatchOperation::Payment(Payment { to: AccountId(to), asset: AssetId(3), amount: amount(units) })
}

fn offer(units: u64) -> BatchOperation {
    let (sell, buy) = (AssetId(1), AssetId(2));
    BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount: amount(units), limit: BatchPrice::ONE })
}

fn open(number: u64) -> BatchOperation {
    BatchOperation::CreateAccount(key(number))
}

/// What is left out of a batch of these, of a venue in which each of four accounts has 100 of everything.
fn dropped(intake: Intake, transactions: &[BatchTransaction]) -> Vec<(u32, DropReason)> {
    World::new(4, 100).close(transactions, intake, 2).dropped
}

#[test]
fn blocks_after_the_last_one_do_not_have_it() {
    for intake in BOTH {
        let mut world = World::new(4, 100);
        for block in 1..5_u64 {
            assert_eq!(world.batch.number(), block);
            let batch = [
                until(sent(0, 3 * block, pay(1, 1)), block),
                until(sent(0, 3 * block + 1, pay(1, 1)), block - 1),
                until(sent(0, 3 * block + 2, pay(1, 1)), u64::MAX),
            ];
            let late = if block > 1 { vec![(1, DropReason::Expired)] } else { Vec::new() };
            let closed = world.close(&batch, intake, 1);
            assert_eq!(closed.dropped, late, "block {block}: before block 1 there is none, so that one has no end");
            world = world.restored();
            world.clear(&ProposedClearing::of_nothing(world.batch.market()), 1).unwrap();
            world.check();
        }
    }
}

#[test]
fn the_hash_of_a_batch_is_over_terms_too() {
    let hash = |transaction| World::new(4, 100).close(&[transaction, sent(0, 2, pay(1, 1))], Intake::Filter, 1).batch_hash;
    let plain = sent(0, 1, pay(1, 1));
    let all = [plain, until(plain, 1), until(plain, 2), joined(plain), joined(until(plain, 1))].map(hash);
    for (place, one) in all.iter().enumerate() {
        assert!(!all[..place].contains(one), "{place}");
    }
    let of_chain = World::new(4, 100).close(&chain(1, 2), Intake::Filter, 1);
    assert_eq!(of_chain.kept_count, 2);
    assert!(!all.contains(&of_chain.batch_hash), "joined in another way");
}

#[test]
fn joined_transactions_are_kept_together_or_not_at_all() {
    use DropReason::{JoinedDropped, JoinedMissing, PaysItself, UnknownRecipient};
    let good = [joined(sent(0, 5, pay(1, 40))), joined(sent(0, 6, offer(10))), sent(0, 7, pay(2, 60))];
    let alone = sent(0, 9, offer(3));
    for intake in BOTH {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let batch = order.map(|place| good[place]);
            assert_eq!(dropped(intake, &[&batch[..], &[alone]].concat()), [], "{order:?}");
        }
        // One is wrong by itself: all of its chain goes, and nothing else.
        let wrong = [good[0], joined(sent(0, 6, pay(0, 1))), good[2], alone];
        assert_eq!(dropped(intake, &wrong), [(0, JoinedDropped), (1, PaysItself), (2, JoinedDropped)], "{intake:?}");
        let two = [good[0], joined(sent(0, 6, pay(9, 1))), sent(0, 7, pay(0, 60)), alone];
        assert_eq!(dropped(intake, &two), [(0, JoinedDropped), (1, UnknownRecipient), (2, PaysItself)], "{intake:?}");
        // The next one is not there, or is another account's.
        assert_eq!(dropped(intake, &[good[0], good[2], alone]), [(0, JoinedMissing)]);
        assert_eq!(dropped(intake, &[good[0], good[1], alone]), [(0, JoinedDropped), (1, JoinedMissing)]);
        assert_eq!(dropped(intake, &[joined(sent(0, 64, pay(1, 1))), sent(1, 65, pay(0, 1))])[..1], [(0, JoinedMissing)]);
        // No account has a number after the 64.
        let last = [joined(sent(0, 64, pay(1, 1))), sent(0, 65, pay(1, 1))];
        assert_eq!(dropped(intake, &last), [(0, JoinedDropped), (1, DropReason::SequenceOutOfWindow)]);
        // One joined with a late one is as late.
        let late = [joined(sent(0, 1, pay(1, 1))), until(sent(0, 2, pay(1, 1)), 1)];
        let mut world = World::new(4, 100);
        world.close(&[], intake, 1);
        world.clear(&ProposedClearing::of_nothing(world.batch.market()), 1).unwrap();
        assert_eq!(world.close(&late, intake, 1).dropped, [(0, JoinedDropped), (1, DropReason::Expired)]);
    }
}

/// Every part of a chain, in every order, next to transactions that have nothing to do with it: a block keeps all of it or nothing.
#[test]
fn no_part_of_a_chain_is_kept_whatever_became_of_the_rest() {
    let around = [sent(0, 3, pay(1, 1)), sent(0, 9, pay(1, 1)), sent(1, 5, pay(0, 1))];
    let draw = &mut Draw(7);
    let mut parts = 0;
    for (count, intake) in (2..6).flat_map(|count| BOTH.map(|intake| (count, intake))) {
        let whole = chain(4, count);
        for part in 0..1_u32 << count {
            let mut batch: Vec<BatchTransaction> =
                whole.iter().enumerate().filter(|(place, _)| part >> place & 1 == 1).map(|(_, one)| *one).collect();
            let sent_count = batch.len();
            batch.extend(around);
            draw.shuffle(&mut batch);
            let dropped = dropped(intake, &batch);
            let is_whole = sent_count == count;
            assert_eq!(dropped.len(), if is_whole { 0 } else { sent_count }, "{batch:?} {dropped:?}");
            for (place, reason) in dropped {
                assert!(whole.contains(&batch[place as usize]), "{batch:?}");
                assert!([DropReason::JoinedMissing, DropReason::JoinedDropped].contains(&reason), "{reason:?}");
            }
            parts += u32::from(!is_whole && sent_count > 0);
        }
    }
    assert_eq!(parts, 2 * (2 + 6 + 14 + 30));
}

/// After a client lost its memory, others of its transactions may have the numbers of a chain of which a part was sent.
#[test]
fn what_takes_a_number_of_a_chain_does_not_stand_for_the_one_that_is_missing() {
    use DropReason::{JoinedDropped, JoinedMissing};
    let whole = chain(4, 3);
    for intake in BOTH {
        for other in [Joined::No, Joined::First] {
            // The second one is another; where that one begins a chain, its next one is there.
            let rest: Vec<BatchTransaction> = match other {
                Joined::First => chain(5, 2),
                _ => vec![with(sent(0, 5, pay(2, 1)), other)],
            };
            assert_eq!(dropped(intake, &[&whole[..1], &rest].concat()), [(0, JoinedMissing)], "{intake:?} {other:?}");
        }
        let no_first = [sent(0, 4, pay(2, 1)), whole[1], whole[2]];
        assert_eq!(dropped(intake, &no_first), [(1, JoinedMissing), (2, JoinedDropped)], "{intake:?}");
        let no_second = [whole[0], sent(0, 5, pay(2, 1)), whole[2]];
        assert_eq!(dropped(intake, &no_second), [(0, JoinedMissing), (2, JoinedMissing)], "{intake:?}");
        let no_last = [whole[0], whole[1], sent(0, 6, pay(2, 1))];
        assert_eq!(dropped(intake, &no_last), [(0, JoinedDropped), (1, JoinedMissing)], "{intake:?}");
        // One that is joined with what has the next number is joined with a chain, and with no part of one.
        let before = |number| joined(sent(0, number, pay(2, 1)));
        let with_part = [before(4), whole[1], whole[2]];
        assert_eq!(dropped(intake, &with_part), [(0, JoinedMissing), (1, JoinedMissing), (2, JoinedDropped)], "{intake:?}");
        assert_eq!(dropped(intake, &[&[before(3)][..], &whole[..]].concat()), [], "{intake:?}");
        assert_eq!(dropped(intake, &[before(3), whole[0], whole[1]]), [(0, JoinedDropped), (1, JoinedDropped), (2, JoinedMissing)]);
    }
}

/// The last number that was used comes twice, once joined with the next and once alone: what is kept does not depend on which comes first.
#[test]
fn two_of_a_number_that_was_used_join_the_next_whatever_their_order() {
    let twice = [joined(sent(0, 1, pay(1, 1))), sent(0, 1, pay(1, 1))];
    let next = sent(0, 2, pay(1, 1));
    for order in [[0, 1], [1, 0]] {
        let mut world = World::new(4, 100);
        world.close(&[sent(0, 1, pay(1, 1))], Intake::Filter, 1);
        world.clear(&ProposedClearing::of_nothing(world.batch.market()), 1).unwrap();
        let closed = world.close(&[twice[order[0]], twice[order[1]], next], Intake::Filter, 1);
        let late = DropReason::SequenceOutOfWindow;
        assert_eq!(closed.dropped, [(0, late), (1, late), (2, DropReason::JoinedDropped)], "{order:?}");
    }
}

#[test]
fn what_a_chain_would_have_spent_is_not_spent() {
    use DropReason::{JoinedDropped, Overdraft, PaysItself};
    let chain = [joined(sent(0, 1, pay(1, 90))), sent(0, 2, pay(0, 1))];
    for intake in BOTH {
        let batch = [chain[0], chain[1], sent(0, 3, pay(2, 100))];
        assert_eq!(dropped(intake, &batch), [(0, JoinedDropped), (1, PaysItself)], "{intake:?}");
    }
    // Too much together costs all that the account sent, or where they come one by one the chain.
    let batch = [sent(0, 9, pay(1, 20)), joined(sent(0, 1, pay(1, 50))), sent(0, 2, pay(2, 50)), sent(0, 3, pay(3, 80))];
    assert_eq!(dropped(Intake::Filter, &batch), [0, 1, 2, 3].map(|place| (place, Overdraft)));
    assert_eq!(dropped(Intake::Reserve, &batch), [(1, JoinedDropped), (2, Overdraft)]);
}

#[test]
fn a_key_goes_to_a_chain_or_to_who_asks_after_it() {
    use DropReason::{JoinedDropped, KeyTwice, PaysItself};
    let chain = [joined(sent(0, 1, open(5))), sent(0, 2, pay(1, 1))];
    let other = [sent(2, 1, open(5)), sent(2, 2, pay(1, 1))];
    let batch = [chain[0], chain[1], other[0], other[1]];
    assert_eq!(dropped(Intake::Filter, &batch), [(0, KeyTwice), (1, JoinedDropped), (2, KeyTwice)]);
    assert_eq!(dropped(Intake::Reserve, &batch), [(2, KeyTwice)]);
    let torn = [chain[0], sent(0, 2, pay(0, 1)), other[0], other[1]];
    assert_eq!(dropped(Intake::Reserve, &torn), [(0, JoinedDropped), (1, PaysItself)], "the key is free again");
    let twice = [joined(sent(0, 1, open(5))), sent(0, 2, open(5)), other[0]];
    assert_eq!(dropped(Intake::Reserve, &twice), [(0, JoinedDropped), (1, KeyTwice)]);
}

#[test]
fn an_outcome_has_the_operation_without_terms() {
    let mut world = World::new(4, 100);
    let operation = pay(1, 7);
    let batch = [joined(until(sent(0, 1, operation), 9)), sent(0, 2, pay(1, 8))];
    assert_eq!(world.close(&batch, Intake::Filter, 1).kept_count, 2);
    let cleared = world.clear(&ProposedClearing::of_nothing(world.batch.market()), 1).unwrap();
    let name = OfferName { account: AccountId(0), sequence: TransactionSeq(1) };
    let outcome = cleared.outcomes.get(name).unwrap();
    assert_eq!(outcome.operation, Some(operation));
}
