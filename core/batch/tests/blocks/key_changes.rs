//! Accounts that set their own keys.

use walras_batch::{Batch, BlockRejected, DropReason, Intake, MarketForm, ProposedClearing, Roots};
use walras_types::{AccountId, AssetId, BatchOperation, OfferName, Payment, PublicKey, TransactionSeq};

use crate::world::{World, amount, key, nothing, sent};

fn set(number: u64) -> BatchOperation {
    BatchOperation::SetKey(key(number))
}

fn pay(to: u32, units: u64) -> BatchOperation {
    BatchOperation::Payment(Payment { to: AccountId(to), asset: AssetId(3), amount: amount(units) })
}

/// Accounts 0 to 2 have keys 1000 to 1002.
fn world() -> World {
    let mut world = World::new(3, 100);
    (1..3).for_each(|account| world.accounts.set_key(AccountId(account), key(1_000 + u64::from(account))).unwrap());
    world
}

fn keys(world: &World) -> [Option<PublicKey>; 3] {
    [0, 1, 2].map(|account| world.accounts.key(AccountId(account)))
}

#[test]
fn a_key_holds_from_when_its_block_is_cleared() {
    let mut world = world();
    let before = keys(&world);
    // What else the account sent for that block, before or after, is as good as ever.
    let batch = [sent(1, 1, pay(0, 10)), sent(1, 2, set(7)), sent(1, 3, pay(0, 10)), sent(2, 1, set(8))];
    for intake in [Intake::Filter, Intake::Reserve] {
        let mut world = world.clone();
        assert_eq!((world.close(&batch, intake, 2).kept_count, keys(&world)), (4, before), "nothing yet");
        world.check();
        // A snapshot between the two knows of it.
        let mut world = world.restored();
        world.check();
        let cleared = world.clear(&nothing(&world), 2).unwrap();
        assert_eq!(cleared.new_keys, [(AccountId(1), key(7)), (AccountId(2), key(8))]);
        assert_eq!(keys(&world), [before[0], Some(key(7)), Some(key(8))]);
        assert_eq!(world.accounts.account_of(&key(7)), Some(AccountId(1)));
        assert_eq!(world.accounts.account_of(&key(1_001)), None, "the old one is nobody's");
        world.check();
        // Numbers go on where they were, so nothing that was signed before counts twice.
        assert_eq!(world.accounts.last(AccountId(1)), TransactionSeq(3));
        let again = world.close(&batch[..3], intake, 1);
        assert_eq!(again.dropped.iter().map(|(_, reason)| *reason).collect::<Vec<_>>(), [DropReason::SequenceOutOfWindow; 3]);
    }
    // The key that somebody gave up is free, in a later block.
    world.close(&[sent(1, 1, set(7)), sent(2, 1, set(1_001))], Intake::Filter, 1);
    world.clear(&nothing(&world), 1).unwrap();
    assert_eq!(keys(&world), [before[0], Some(key(7)), before[2]], "not in the same");
    assert_eq!(world.close(&[sent(2, 1, set(1_001))], Intake::Filter, 1).kept_count, 1);
    world.clear(&nothing(&world), 1).unwrap();
    assert_eq!(keys(&world), [before[0], Some(key(7)), before[1]]);
}

#[test]
fn nobody_gets_a_key_that_somebody_has_or_asks_for() {
    use DropReason::{KeySetTwice, KeyTaken, KeyTwice};
    let open = |number| BatchOperation::CreateAccount(key(number));
    for (batch, expected) in [
        (vec![sent(1, 1, set(1_000))], vec![(0, KeyTaken)]),
        (vec![sent(1, 1, set(1_001))], vec![(0, KeyTaken)]),
        (vec![sent(1, 1, set(7)), sent(2, 1, set(7)), sent(2, 2, pay(0, 1))], vec![(0, KeyTwice), (1, KeyTwice)]),
        (vec![sent(1, 1, set(7)), sent(2, 1, open(7))], vec![(0, KeyTwice), (1, KeyTwice)]),
        // One account cannot mean both, so it means nothing that it sent.
        (
            vec![sent(1, 1, set(7)), sent(1, 2, set(8)), sent(1, 3, pay(0, 1))],
            vec![(0, KeySetTwice), (1, KeySetTwice), (2, KeySetTwice)],
        ),
    ] {
        assert_eq!(world().close(&batch, Intake::Filter, 1).dropped, expected, "{batch:?}");
        // Where they are taken one by one, the first that is right is kept.
        let of_one = expected.iter().filter(|(at, reason)| *reason == KeyTaken || *at == 1).copied().collect::<Vec<_>>();
        assert_eq!(world().close(&batch, Intake::Reserve, 1).dropped, of_one, "{batch:?}");
    }
    // Nor one that a closed batch gives to somebody.
    let mut world = world();
    world.close(&[sent(1, 1, set(7))], Intake::Filter, 1);
    assert!(world.accounts.set_key(AccountId(0), key(7)).is_err(), "it is promised");
}

/// The market's bytes with the accounts that keep their keys.
fn bytes_with_kept(world: &World) -> Vec<u8> {
    let mut bytes = Vec::new();
    world.batch.snapshot_as(MarketForm::KeysKept, &mut |piece| bytes.extend_from_slice(piece));
    bytes
}

fn replace_key(world: &mut World, account: u32, number: u64) {
    world.accounts.set_key(AccountId(account), key(number)).unwrap();
    world.batch.keep_keys([AccountId(account)]);
}

/// Account 1's key was stolen, and the thief sends another. The operator gives the account a new one before the batch is closed, or before
/// its block is cleared.
#[test]
fn a_key_that_was_replaced_meanwhile_is_not_undone() {
    let batch = [sent(1, 1, pay(0, 10)), sent(1, 2, set(7)), sent(2, 1, set(8))];
    let of_thief = OfferName { account: AccountId(1), sequence: TransactionSeq(2) };
    for intake in [Intake::Filter, Intake::Reserve] {
        let (mut closed, mut collected) = (world(), world());
        assert_eq!(closed.close(&batch, intake, 2).kept_count, 3);
        replace_key(&mut closed, 1, 9);
        replace_key(&mut collected, 1, 9);
        assert_eq!(collected.close(&batch, intake, 2).dropped, [(1, DropReason::KeyReplaced)]);
        for (world, kept) in [(closed, vec![of_thief]), (collected, vec![])] {
            world.check();
            let batch = Batch::restore_as(MarketForm::KeysKept, &bytes_with_kept(&world)).unwrap();
            let mut world = World { batch, ..world.restored() };
            world.check();
            // A block that is rejected in between changes nothing of it.
            let before = bytes_with_kept(&world);
            let wrong = Roots { accounts: [1; 32], offers: [1; 32], state: [1; 32] };
            let block = ProposedClearing { expected: Some(wrong), ..nothing(&world) };
            assert_eq!(world.clear(&block, 1).unwrap_err(), BlockRejected::AccountsRoot);
            assert_eq!(bytes_with_kept(&world), before);
            world.check();
            let cleared = world.clear(&nothing(&world), 2).unwrap();
            assert_eq!((cleared.new_keys, cleared.keys_kept), (vec![(AccountId(2), key(8))], kept));
            assert_eq!(keys(&world)[1..], [Some(key(9)), Some(key(8))]);
            assert_eq!(world.accounts.account_of(&key(7)), None, "it is nobody's");
            world.check();
            // It is as free as any other, and the account sets its key again from the next block on.
            assert_eq!(world.close(&[sent(1, 3, set(7))], intake, 1).kept_count, 1);
            world.clear(&nothing(&world), 1).unwrap();
            assert_eq!(world.accounts.key(AccountId(1)), Some(key(7)));
        }
    }
}

#[test]
fn a_rejected_block_gives_the_keys_back() {
    let mut world = world();
    let accounts_without = world.accounts.clone();
    world.close(&[sent(0, 1, set(6)), sent(1, 1, set(7))], Intake::Filter, 1);
    let bytes = world.bytes();
    let wrong = Roots { accounts: [1; 32], offers: [1; 32], state: [1; 32] };
    let block = ProposedClearing { expected: Some(wrong), ..nothing(&world) };
    assert_eq!(world.clear(&block, 1).unwrap_err(), BlockRejected::AccountsRoot);
    assert_eq!(world.bytes(), bytes, "nothing is left of it");
    assert_eq!(world.accounts.key(AccountId(1)), accounts_without.key(AccountId(1)));
    // The state's hash says who has which key.
    let with = world.clone().clear(&nothing(&world), 1).unwrap().roots;
    let mut other = self::world();
    other.close(&[sent(0, 1, set(6)), sent(1, 1, set(8))], Intake::Filter, 1);
    assert_ne!(other.clear(&nothing(&other), 1).unwrap().roots.accounts, with.accounts);
}
