//! Reasons, windows, the largest amounts, one thing at a time.

use walras_batch::{CloseError, DropReason, Intake, ProposedClearing};
use walras_clearing::{AssetIndex, Edition, LowerBounds, OfferId, OfferKey, Pair, PairTrade, Proposal, Rules};
use walras_merkle::{Claim, Digest, verify_account, verify_offer};
use walras_types::limits::{AMOUNT_MAX, TRANSACTION_SEQ_END};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, Commission, CreateOffer,
    IssuedAmount, Mu, OfferName, Payment, TransactionSeq,
};

use crate::world::{MARKET, World, amount, key, nothing, price, sent, threads, with_marginal};

fn offer(sell: u32, buy: u32, units: u64, limit: BatchPrice) -> BatchOperation {
    BatchOperation::CreateOffer(CreateOffer {
        market: MARKET,
        sell: AssetId(sell),
        buy: AssetId(buy),
        amount: amount(units),
        limit,
    })
}

fn pay(to: u32, asset: u32, units: u64) -> BatchOperation {
    BatchOperation::Payment(Payment { to: AccountId(to), asset: AssetId(asset), amount: amount(units) })
}

fn issue(asset: u32, units: u64) -> BatchOperation {
    BatchOperation::Issue(IssuedAmount { asset: AssetId(asset), amount: amount(units) })
}

fn burn(asset: u32, units: u64) -> BatchOperation {
    BatchOperation::Burn(IssuedAmount { asset: AssetId(asset), amount: amount(units) })
}

fn pair(sell: u16, buy: u16) -> Pair {
    Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) }
}

fn available(world: &World, account: u32, asset: u32) -> u64 {
    world.ledger.balance(AccountId(account), AssetId(asset)).unwrap().available.get()
}

/// Why these are left out, of a venue in which each of four accounts has 100 of everything.
fn reasons(intake: Intake, transactions: &[BatchTransaction]) -> Vec<(u32, DropReason)> {
    let mut world = World::new(4, 100);
    world.accounts.suspend(AccountId(3));
    world.close(transactions, intake, 2).dropped
}

#[test]
fn each_transaction_that_is_left_out_has_its_reason() {
    use DropReason::*;
    let one = BatchPrice::ONE;
    let cancel = |market, sell, buy, sequence| {
        BatchOperation::CancelOffer(CancelOffer {
            market,
            sell: AssetId(sell),
            buy: AssetId(buy),
            limit: one,
            tie: 0,
            sequence: TransactionSeq(sequence),
        })
    };
    let elsewhere = BatchOperation::CreateOffer(CreateOffer {
        market: BatchMarketId(1),
        sell: AssetId(1),
        buy: AssetId(2),
        amount: amount(1),
        limit: one,
    });
    let alone = [
        (sent(4, 1, pay(0, 0, 1)), UnknownAccount),
        (sent(u32::MAX, 1, pay(0, 0, 1)), UnknownAccount),
        (sent(3, 1, pay(0, 0, 1)), Suspended),
        (sent(2, 0, pay(0, 0, 1)), SequenceOutOfWindow),
        (sent(2, 65, pay(0, 0, 1)), SequenceOutOfWindow),
        (sent(2, TRANSACTION_SEQ_END, pay(0, 0, 1)), SequenceOutOfWindow),
        (sent(2, u64::MAX, pay(0, 0, 1)), SequenceOutOfWindow),
        (sent(2, 1, elsewhere), UnknownMarket),
        (sent(2, 1, cancel(BatchMarketId(0), 1, 2, 1)), UnknownMarket),
        (sent(2, 1, offer(3, 1, 1, one)), UnknownAsset),
        (sent(2, 1, offer(1, 9, 1, one)), UnknownAsset),
        (sent(2, 1, pay(0, 5, 1)), UnknownAsset),
        (sent(2, 1, pay(0, u32::MAX, 1)), UnknownAsset),
        (sent(2, 1, burn(5, 1)), UnknownAsset),
        (sent(2, 1, offer(1, 1, 1, one)), EqualAssets),
        (sent(2, 1, cancel(MARKET, 1, 1, 1)), EqualAssets),
        (sent(2, 1, offer(1, 2, 0, one)), ZeroAmount),
        (sent(2, 1, pay(0, 1, 0)), ZeroAmount),
        (sent(0, 1, issue(1, 0)), ZeroAmount),
        (sent(2, 1, offer(1, 2, 1, BatchPrice::MAX)), Unfillable),
        (sent(2, 1, cancel(MARKET, 1, 2, 1)), UnknownOffer),
        (sent(2, 1, cancel(MARKET, 1, 2, u64::MAX)), UnknownOffer),
        (sent(2, 1, pay(4, 1, 1)), UnknownRecipient),
        (sent(2, 1, pay(2, 1, 1)), PaysItself),
        (sent(2, 1, issue(1, 1)), NotIssuer),
        (sent(2, 1, burn(0, 1)), NotIssuer),
        (sent(0, 1, issue(1, AMOUNT_MAX)), SupplyOverflow),
        (sent(2, 1, BatchOperation::CreateAccount(key(1_000))), KeyTaken),
        (sent(2, 1, pay(0, 1, 101)), Overdraft),
        (sent(2, 1, offer(1, 2, 101, one)), Overdraft),
        (sent(0, 1, burn(1, 101)), Overdraft),
    ];
    for (transaction, reason) in alone {
        for intake in [Intake::Filter, Intake::Reserve] {
            assert_eq!(reasons(intake, &[transaction]), [(0, reason)], "{transaction:?}");
            assert!(!reason.to_string().is_empty());
        }
    }
    // Two of which each alone is right: the filter drops both, one by one the second is left out.
    let one = |account, sequence, operation| sent(account, sequence, operation);
    let together = [
        (one(2, 1, pay(0, 1, 1)), one(2, 1, pay(0, 2, 1)), SequenceTwice),
        (one(2, 1, pay(0, 1, 60)), one(2, 2, pay(1, 1, 41)), Overdraft),
        (one(2, 1, pay(0, 1, 60)), one(2, 9, offer(1, 2, 41, BatchPrice::ONE)), Overdraft),
        (one(0, 1, issue(1, AMOUNT_MAX - 500)), one(0, 2, issue(1, 101)), SupplyOverflow),
        (one(1, 1, BatchOperation::CreateAccount(key(5))), one(2, 1, BatchOperation::CreateAccount(key(5))), KeyTwice),
        (one(2, 1, BatchOperation::CreateAccount(key(5))), one(2, 2, BatchOperation::CreateAccount(key(5))), KeyTwice),
    ];
    for (first, second, reason) in together {
        assert_eq!(reasons(Intake::Filter, &[first, second]), [(0, reason), (1, reason)], "{first:?} {second:?}");
        assert_eq!(reasons(Intake::Filter, &[second, first]), [(0, reason), (1, reason)], "{first:?} {second:?}");
        assert_eq!(reasons(Intake::Reserve, &[first, second]), [(1, reason)], "{first:?} {second:?}");
        assert_eq!(reasons(Intake::Reserve, &[second, first]), [(1, reason)], "{first:?} {second:?}");
    }
    // One that is no good by itself is left out alone, and takes part in nothing: what it would spend is not spent.
    let mixed = [one(1, 1, pay(0, 1, 1)), one(2, 2, pay(0, 1, 100)), one(2, 1, pay(2, 1, 1)), one(2, 66, pay(0, 1, 1))];
    for intake in [Intake::Filter, Intake::Reserve] {
        assert_eq!(reasons(intake, &mixed), [(2, PaysItself), (3, SequenceOutOfWindow)]);
    }
    // Nor does a key for which somebody else asks too cost more than the account that was to have it.
    let create = |account, sequence| one(account, sequence, BatchOperation::CreateAccount(key(5)));
    let beside = [one(2, 1, pay(0, 1, 60)), create(2, 2), create(1, 1), one(2, 3, offer(1, 2, 40, BatchPrice::ONE))];
    assert_eq!(reasons(Intake::Filter, &beside), [(1, KeyTwice), (2, KeyTwice)]);
    assert_eq!(reasons(Intake::Reserve, &beside), [(2, KeyTwice)]);
    // What is too much together takes all of its account with it, and nobody else's.
    let too_much = [&mixed[..], &[one(2, 3, pay(1, 1, 1))]].concat();
    assert_eq!(reasons(Intake::Filter, &too_much), [(1, Overdraft), (2, Overdraft), (3, Overdraft), (4, Overdraft)]);
    // A number counts once, whatever else is wrong with a transaction of it.
    let of_one_number = [one(2, 1, pay(0, 1, 1)), one(2, 1, pay(2, 1, 1))];
    let turned = [of_one_number[1], of_one_number[0]];
    for both in [of_one_number, turned] {
        assert_eq!(reasons(Intake::Filter, &both), [(0, SequenceTwice), (1, SequenceTwice)]);
    }
    // Beyond all numbers, though, nothing counts.
    let beyond = [one(2, TRANSACTION_SEQ_END, pay(0, 1, 1)), one(2, u64::MAX, pay(0, 1, 1)), one(2, 1, pay(0, 1, 1))];
    assert_eq!(reasons(Intake::Filter, &beyond), [(0, SequenceOutOfWindow), (1, SequenceOutOfWindow)]);
    // Exactly all may be spent, and what comes in the block may not.
    let exact = [one(2, 1, pay(0, 1, 60)), one(2, 2, pay(1, 1, 40)), one(0, 1, pay(1, 1, 101))];
    assert_eq!(reasons(Intake::Filter, &exact), [(2, Overdraft)]);
    // Whoever gets the key first is refused for another reason, so the next one gets it.
    assert_eq!(reasons(Intake::Reserve, &[create(1, 99), create(2, 1), create(0, 1)]), [(0, SequenceOutOfWindow), (2, KeyTwice)]);
}

#[test]
fn numbers_may_leave_gaps_and_never_come_again() {
    let mut world = World::new(2, 100);
    let kept = |world: &mut World, sequences: &[u64]| {
        let all: Vec<_> = sequences.iter().map(|&sequence| sent(0, sequence, pay(1, 1, 1))).collect();
        let kept = world.close(&all, Intake::Filter, 1).kept_count;
        world.clear(&nothing(world), 1).unwrap();
        kept
    };
    assert_eq!(kept(&mut world, &[64, 1, 7]), 3);
    assert_eq!(world.accounts.last(AccountId(0)), TransactionSeq(64));
    for passed in [1, 2, 64, 129] {
        assert_eq!(kept(&mut world, &[passed]), 0, "{passed}");
    }
    // Nor after a restart; one beyond the window is left out, the last in it is not.
    world = world.restored();
    let all: Vec<u64> = (65..=129).rev().collect();
    assert_eq!(kept(&mut world.clone(), &[127]), 1);
    assert_eq!(kept(&mut world.clone(), &all), 64);
    assert_eq!(kept(&mut world, &all[1..37]), 36);
    assert_eq!((available(&world, 0, 1), available(&world, 1, 1)), (61, 139));
    // Numbers end.
    world.accounts = {
        let mut bytes = Vec::new();
        world.accounts.snapshot(&mut |piece| bytes.extend_from_slice(piece));
        bytes[4..12].copy_from_slice(&(TRANSACTION_SEQ_END - 2).to_le_bytes());
        walras_batch::Accounts::restore(&bytes).unwrap()
    };
    assert_eq!(kept(&mut world, &[TRANSACTION_SEQ_END]), 0);
    assert_eq!(kept(&mut world, &[TRANSACTION_SEQ_END - 1]), 1);
    assert_eq!(kept(&mut world, &[TRANSACTION_SEQ_END]), 0);
}

#[test]
fn what_a_block_gives_is_spent_in_the_next() {
    let mut world = World::new(3, 100);
    let new = key(77);
    let first = [
        sent(0, 1, issue(1, 50)),
        sent(0, 2, pay(1, 1, 30)),
        sent(1, 1, burn(4, 40)),
        sent(1, 2, BatchOperation::CreateAccount(new)),
        sent(2, 1, offer(1, 2, 20, price(1, 1))),
    ];
    assert_eq!(world.close(&first, Intake::Filter, 2).kept_count, 5);
    assert_eq!((available(&world, 0, 1), available(&world, 1, 1), available(&world, 1, 4)), (70, 100, 60));
    assert_eq!(world.accounts.account_of(&new), None);
    assert_eq!(
        world.batch.close(&mut world.ledger, &mut world.accounts, &[], Intake::Filter, threads(1)),
        Err(CloseError::NotCleared)
    );
    let cleared = world.clear(&nothing(&world), 1).unwrap();
    assert_eq!(cleared.created, [(AccountId(3), new)]);
    assert_eq!(world.accounts.account_of(&new), Some(AccountId(3)));
    assert_eq!((available(&world, 0, 1), available(&world, 1, 1), available(&world, 1, 4)), (120, 130, 60));
    assert_eq!((world.ledger.supply(AssetId(1)), world.ledger.supply(AssetId(4))), (Some(amount(350)), Some(amount(260))));
    world.check();
    // The offer goes by its key, and its amount comes back at the end of that block.
    let standing = world.batch.market().books()[0].sells().as_slice()[0];
    assert_eq!(standing.key().id, OfferId(OfferName { account: AccountId(2), sequence: TransactionSeq(1) }.number()));
    let cancel = BatchOperation::CancelOffer(CancelOffer {
        market: MARKET,
        sell: AssetId(1),
        buy: AssetId(2),
        limit: standing.key().limit,
        tie: standing.key().tie,
        sequence: TransactionSeq(1),
    });
    // It is nobody else's to cancel, and not twice.
    assert_eq!(world.clone().close(&[sent(1, 3, cancel)], Intake::Filter, 1).dropped, [(0, DropReason::UnknownOffer)]);
    let twice = world.clone().close(&[sent(2, 2, cancel), sent(2, 3, cancel)], Intake::Filter, 1);
    assert_eq!(twice.dropped, [(0, DropReason::CancelledTwice), (1, DropReason::CancelledTwice)]);
    assert_eq!(world.close(&[sent(2, 2, cancel), sent(0, 3, pay(3, 0, 5))], Intake::Filter, 1).kept_count, 2);
    assert!(world.batch.market().books().is_empty());
    assert_eq!(available(&world, 2, 1), 80);
    world.clear(&nothing(&world), 1).unwrap();
    assert_eq!((available(&world, 2, 1), available(&world, 3, 0)), (100, 5));
    world.check();
}

/// A cancel is on its way while its offer trades, which is nobody's fault who sent it: the rest of what the account sent is kept.
#[test]
fn an_offer_that_trades_before_its_cancel_costs_the_account_nothing_else() {
    let rules = Rules {
        edition: Edition::NEWEST,
        commission: Commission::NONE,
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::BestEffort,
    };
    let mut world = World::with_rules(2, 1_000, rules);
    let all = [
        sent(0, 1, offer(1, 2, 100, price(1, 1))),
        sent(0, 2, offer(1, 2, 100, price(1, 2))),
        sent(0, 3, offer(1, 2, 100, price(2, 1))),
        sent(1, 1, offer(2, 1, 150, price(1, 1))),
    ];
    world.close(&all, Intake::Filter, 1);
    let cancels: Vec<_> = world
        .batch
        .market()
        .book(pair(0, 1))
        .unwrap()
        .sells()
        .as_slice()
        .iter()
        .zip(4..)
        .map(|(standing, sequence)| {
            let OfferKey { limit, tie, id } = standing.key();
            let cancel = CancelOffer {
                market: MARKET,
                sell: AssetId(1),
                buy: AssetId(2),
                limit,
                tie,
                sequence: OfferName::of_number(id.0).sequence,
            };
            sent(0, sequence, BatchOperation::CancelOffer(cancel))
        })
        .collect();
    let trade = |pair| PairTrade { pair, sold: amount(150), bought_by_buy_offers: Amount::ZERO };
    let prices = vec![Some(BatchPrice::ONE), Some(BatchPrice::ONE), None];
    let block = with_marginal(&world, Proposal { prices, trades: vec![trade(pair(0, 1)), trade(pair(1, 0))], pools: vec![] });
    world.clear(&block, 1).unwrap();
    // The first traded in full; of the second half is left, which stands at the same limit, since that is exact; the third did not trade.
    let and_more = [&cancels[..], &[sent(0, 7, pay(1, 0, 5))]].concat();
    for (intake, thread_count) in [(Intake::Filter, 1), (Intake::Filter, 3), (Intake::Reserve, 1)] {
        let mut world = world.clone();
        let closed = world.close(&and_more, intake, thread_count);
        assert_eq!((closed.kept_count, closed.dropped), (3, vec![(0, DropReason::UnknownOffer)]), "{intake:?}");
        assert!(world.batch.market().books().is_empty());
        world.clear(&nothing(&world), 1).unwrap();
        assert_eq!((available(&world, 0, 1), available(&world, 1, 0)), (850, 1_005));
        world.check();
    }
}

#[test]
fn the_largest_amounts_trade() {
    let rules = Rules {
        edition: Edition::NEWEST,
        commission: Commission::NONE,
        mu: Mu::new(10).unwrap(),
        lower_bounds: LowerBounds::Required,
    };
    let mut world = World::with_rules(2, 0, rules);
    for (account, asset) in [(0, 1), (1, 2)] {
        world.ledger.deposit(AccountId(account), AssetId(asset), Amount::MAX).unwrap();
    }
    let all = [sent(0, 1, offer(1, 2, AMOUNT_MAX, price(1, 1))), sent(1, 1, offer(2, 1, AMOUNT_MAX, price(1, 1)))];
    assert_eq!(world.close(&all, Intake::Filter, 2).kept_count, 2);
    assert_eq!(world.clear(&nothing(&world), 1).unwrap().shortfall.unpriced_pair_count, 2);
    world.close(&[], Intake::Filter, 1);
    let trade = |pair| PairTrade { pair, sold: Amount::MAX, bought_by_buy_offers: Amount::ZERO };
    let proposal = Proposal {
        prices: vec![Some(BatchPrice::ONE), Some(BatchPrice::ONE), None],
        trades: vec![trade(pair(0, 1)), trade(pair(1, 0))],
        pools: vec![],
    };
    let block = with_marginal(&world, proposal);
    let mut undone = world.clone();
    let lie = ProposedClearing { expected: Some(walras_batch::Roots::default()), ..block.clone() };
    assert!(undone.clear(&lie, 2).is_err());
    assert_eq!(undone.bytes(), world.bytes());
    world.clear(&block, 2).unwrap();
    assert_eq!((available(&world, 0, 2), available(&world, 1, 1)), (AMOUNT_MAX, AMOUNT_MAX));
    world.check();
    // Payments of everything in a ring.
    let ring = [sent(0, 2, pay(1, 2, AMOUNT_MAX)), sent(1, 2, pay(0, 1, AMOUNT_MAX))];
    assert_eq!(world.close(&ring, Intake::Filter, 1).kept_count, 2);
    world.clear(&nothing(&world), 2).unwrap();
    assert_eq!((available(&world, 0, 1), available(&world, 1, 2)), (AMOUNT_MAX, AMOUNT_MAX));
    // What two spend together is more than a number holds, and is refused all the same.
    let much = [sent(0, 3, pay(1, 1, AMOUNT_MAX)), sent(0, 4, pay(1, 1, AMOUNT_MAX)), sent(0, 5, pay(1, 1, AMOUNT_MAX))];
    assert_eq!(world.close(&much, Intake::Filter, 1).kept_count, 0);
}

#[test]
fn what_the_continuous_market_does_between_is_hashed_and_changes_no_block() {
    let mut world = World::new(3, 100);
    world.close(&[sent(0, 1, offer(1, 2, 60, price(1, 1)))], Intake::Filter, 1);
    let other = {
        let mut other = world.clone();
        other.clear(&nothing(&other), 1).unwrap().roots
    };
    world.ledger.reserve(AccountId(0), AssetId(1), amount(40)).unwrap();
    assert!(world.ledger.reserve(AccountId(0), AssetId(1), amount(1)).is_err());
    let roots = world.clear(&nothing(&world), 1).unwrap().roots;
    assert_eq!(roots.offers, other.offers);
    assert_ne!(roots.accounts, other.accounts);
    // The next block follows the balances that it did not touch itself, and those of an account made by the operator.
    world.close(&[], Intake::Filter, 1);
    world.ledger.release(AccountId(0), AssetId(1), amount(40)).unwrap();
    world.ledger.create_account().unwrap();
    let roots = world.clear(&nothing(&world), 1).unwrap().roots;
    let mut anew = world.restored();
    anew.close(&[], Intake::Filter, 1);
    assert_eq!(anew.clear(&nothing(&anew), 1).unwrap().roots.accounts, roots.accounts);
}

#[test]
fn light_clients_can_check_an_account_and_an_offer() {
    let mut world = World::new(20, 100);
    let all = [sent(0, 1, offer(1, 2, 60, price(1, 1))), sent(4, 1, offer(1, 2, 10, price(3, 2)))];
    world.close(&all, Intake::Filter, 1);
    assert!(world.batch.prove_offer(pair(0, 1), &world.batch.market().books()[0].sells().as_slice()[0].key()).is_none());
    let roots = world.clear(&nothing(&world), 1).unwrap().roots;
    let content = world.accounts.content(&world.ledger, AccountId(4));
    let proof = world.accounts.prove(AccountId(4)).encode();
    let root = Digest(roots.accounts);
    assert_eq!(verify_account(&root, 4, Claim::Is(&content), &proof), Ok(()));
    assert!(verify_account(&root, 5, Claim::Is(&content), &proof).is_err());
    let standing = world.batch.market().books()[0].sells().as_slice()[1];
    let key = standing.key();
    let number = world.batch.pair_number(pair(0, 1)).unwrap();
    let proof = world.batch.prove_offer(pair(0, 1), &key).unwrap().encode();
    let bytes = walras_merkle::offer_key(key.limit.bits(), key.tie, key.id.0);
    let root = Digest(roots.offers);
    let content = walras_batch::Batch::offer_content(&standing);
    assert_eq!(verify_offer(&root, number, &bytes, Claim::Is(&content), &proof), Ok(()));
    assert!(verify_offer(&root, number, &bytes, Claim::Absent, &proof).is_err());
    let absent = walras_merkle::offer_key(key.limit.bits(), key.tie ^ 1, key.id.0);
    let proof = world.batch.prove_offer(pair(0, 1), &walras_clearing::OfferKey { tie: key.tie ^ 1, ..key }).unwrap().encode();
    assert_eq!(verify_offer(&root, number, &absent, Claim::Absent, &proof), Ok(()));
}
