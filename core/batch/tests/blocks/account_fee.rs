//! What it costs to open an account.

use walras_batch::{
    Batch, BatchSettings, BlockRejected, DropReason, Effect, Intake, ProposedClearing, RestoreError, Then, check_restored,
};
use walras_types::limits::ACCOUNTS_MAX;
use walras_types::{AccountFee, AccountId, AssetId, BatchOperation, BatchPrice, CreateOffer, Payment, PublicKey};

use crate::world::{MARKET, World, amount, key, nothing, sent};

/// Asset 3 is in no market.
const OUTSIDE: AssetId = AssetId(3);

fn open(number: u64) -> BatchOperation {
    BatchOperation::CreateAccount(key(number))
}

fn pay(to: u32, asset: AssetId, units: u64) -> BatchOperation {
    BatchOperation::Payment(Payment { to: AccountId(to), asset, amount: amount(units) })
}

fn sell(asset: u32, units: u64) -> BatchOperation {
    let (sell, buy, limit) = (AssetId(asset), AssetId((asset + 1) % 3), BatchPrice::ONE);
    BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount: amount(units), limit })
}

/// Each of so many accounts has 100 of everything, and opening one costs this.
fn venue(account_count: u32, asset: AssetId, units: u64) -> World {
    let mut world = World::new(account_count, 100);
    world.batch.set_account_fee(Some(AccountFee { asset, amount: amount(units) }));
    world
}

/// What is available to an account, what it has reserved, and what the venue collected.
fn funds(world: &World, account: u32, asset: AssetId) -> (u64, u64, u64) {
    let balance = world.ledger.balance(AccountId(account), asset).unwrap();
    (balance.available.get(), balance.reserved.get(), world.ledger.fees(asset).unwrap().get())
}

#[test]
fn whoever_opens_accounts_pays_the_venue_when_the_block_ends() {
    for asset in [OUTSIDE, AssetId(1)] {
        let mut world = venue(3, asset, 40);
        let closed = world.close(&[sent(2, 1, open(7)), sent(1, 1, open(8)), sent(2, 2, open(9))], Intake::Filter, 2);
        assert_eq!((closed.kept_count, closed.dropped), (3, Vec::new()));
        assert_eq!((funds(&world, 1, asset), funds(&world, 2, asset)), ((60, 40, 0), (20, 80, 0)), "reserved until then");
        world.check();
        let mut world = world.restored();
        let cleared = world.clear(&nothing(&world), 2).unwrap();
        let paid = |account| Effect { asset, account: AccountId(account), amount: amount(40), then: Then::AccountFee };
        assert_eq!(cleared.effects, [paid(1), paid(2), paid(2)]);
        let created: Vec<(AccountId, PublicKey)> = (3..).map(AccountId).zip([8, 7, 9].map(key)).collect();
        assert_eq!(cleared.created, created);
        assert_eq!((funds(&world, 1, asset), funds(&world, 2, asset)), ((60, 0, 120), (20, 0, 120)));
        assert_eq!(funds(&world, 3, asset), (0, 0, 120));
        world.check();
        assert_eq!(world.ledger.collect_fees(asset, AccountId(0)), Ok(amount(120)));
        assert_eq!(funds(&world, 0, asset), (220, 0, 0));
        world.check();
    }
}

#[test]
fn what_accounts_cost_is_spent_like_anything_else() {
    use DropReason::*;
    // 100 are there: one account and a sale of 40 come to that, and one unit more to too much.
    for (units, kept) in [(40, 2), (41, 0)] {
        let both = [sent(2, 1, open(7)), sent(2, 2, sell(1, units)), sent(1, 1, open(8))];
        let mut world = venue(3, AssetId(1), 60);
        let closed = world.close(&both, Intake::Filter, 1);
        assert_eq!(closed.kept_count, kept + 1, "{units}: the other account has its own");
        let expected = if kept == 0 { vec![(0, Overdraft), (1, Overdraft)] } else { Vec::new() };
        assert_eq!(closed.dropped, expected, "{units}");
        world.check();
        assert_eq!(world.clear(&nothing(&world), 1).unwrap().created.len(), 1 + kept as usize / 2);
        assert_eq!(funds(&world, 1, AssetId(1)).0, 40);
        world.check();
    }
    // One after the other, whichever is first is taken.
    for (first, second) in [(open(7), sell(1, 41)), (sell(1, 41), open(7))] {
        let mut world = venue(3, AssetId(1), 60);
        let closed = world.close(&[sent(2, 5, first), sent(2, 4, second), sent(2, 6, pay(0, AssetId(1), 40))], Intake::Reserve, 1);
        assert_eq!((closed.kept_count, closed.dropped), (2, vec![(1, Overdraft)]), "{first:?}");
        world.clear(&nothing(&world), 1).unwrap();
        world.check();
    }
    // An account that is not opened costs nothing: the rest of what there is can be spent.
    let all = [sent(2, 1, open(1_000)), sent(2, 2, open(7)), sent(1, 1, open(7)), sent(2, 3, pay(0, AssetId(1), 100))];
    let mut world = venue(3, AssetId(1), 60);
    let closed = world.close(&all, Intake::Filter, 1);
    assert_eq!((closed.kept_count, closed.dropped), (1, vec![(0, KeyTaken), (1, KeyTwice), (2, KeyTwice)]));
    // Nobody has an asset that there is not.
    let mut world = venue(3, AssetId(9), 1);
    assert_eq!(world.close(&[sent(2, 1, open(7))], Intake::Filter, 1).dropped, [(0, Overdraft)]);
}

/// Who asks first for a key that two ask for gets it, if it can pay.
#[test]
fn a_key_goes_to_the_first_who_can_pay_for_it() {
    let mut world = venue(3, AssetId(1), 60);
    let all = [sent(2, 1, sell(1, 50)), sent(2, 2, open(7)), sent(1, 1, open(7)), sent(0, 1, open(7))];
    let closed = world.close(&all, Intake::Reserve, 2);
    assert_eq!(closed.dropped, [(1, DropReason::Overdraft), (3, DropReason::KeyTwice)]);
    assert_eq!(world.clear(&nothing(&world), 1).unwrap().created, [(AccountId(3), key(7))]);
    assert_eq!([0, 1, 2].map(|account| funds(&world, account, AssetId(1)).0), [100, 40, 50]);
}

#[test]
fn a_closed_batch_costs_what_it_did_when_it_was_closed() {
    let mut world = World::new(2, 100);
    let fee = AccountFee { asset: OUTSIDE, amount: amount(30) };
    let rules = |world: &World, account_fee| BatchSettings { account_fee, ..world.batch.settings().clone() }.hash();
    world.close(&[sent(0, 1, open(7))], Intake::Filter, 1);
    world.batch.set_account_fee(Some(fee));
    let mut world = world.restored();
    let first = world.clear(&nothing(&world), 1).unwrap();
    assert_eq!((first.header.rules, first.effects), (rules(&world, None), Vec::new()));
    assert_eq!(funds(&world, 0, OUTSIDE), (100, 0, 0));
    world.close(&[sent(0, 2, open(8))], Intake::Filter, 1);
    world.batch.set_account_fee(None);
    let second = world.clear(&nothing(&world), 1).unwrap();
    assert_eq!((second.header.rules, second.effects.len()), (rules(&world, Some(fee)), 1));
    assert_eq!(funds(&world, 0, OUTSIDE), (70, 0, 30));
}

#[test]
fn each_part_of_what_accounts_cost_is_in_the_hash_of_the_rules() {
    let settings = World::new(1, 1).batch.settings().clone();
    let fee = |asset, units| Some(AccountFee { asset: AssetId(asset), amount: amount(units) });
    let hashes = [None, fee(0, 1), fee(1, 1), fee(0, 2), fee(1, 0)]
        .map(|account_fee| BatchSettings { account_fee, ..settings.clone() }.hash());
    for (place, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..place].contains(hash), "{place}");
    }
}

/// Whoever would take another amount for accounts finds another state, whether the block opens any or not, and keeps the one that it has.
#[test]
fn a_validator_where_accounts_cost_something_else_refuses_the_block() {
    let one_open = [sent(0, 1, open(7)), sent(1, 1, sell(1, 5))];
    for (transactions, expected) in [(&one_open[..], BlockRejected::AccountsRoot), (&one_open[1..], BlockRejected::StateRoot)] {
        let mut proposer = venue(2, OUTSIDE, 30);
        let before = proposer.clone();
        proposer.close(transactions, Intake::Filter, 1);
        let block = nothing(&proposer);
        let block = ProposedClearing { expected: Some(proposer.clear(&block, 1).unwrap().roots), ..block };
        for other in [None, Some(AccountFee { asset: OUTSIDE, amount: amount(31) })] {
            let mut validator = before.clone();
            validator.batch.set_account_fee(other);
            validator.close(transactions, Intake::Filter, 1);
            let bytes = validator.bytes();
            assert_eq!(validator.clear(&block, 2).err(), Some(expected), "{other:?}");
            assert_eq!(validator.bytes(), bytes, "nothing is left of it");
            validator.clear(&nothing(&validator), 2).unwrap();
            validator.check();
        }
    }
}

#[test]
fn room_is_kept_for_accounts_that_a_closed_batch_opens() {
    let mut world = venue(2, OUTSIDE, 30);
    assert_eq!(world.accounts.room(ACCOUNTS_MAX - 5), 5);
    world.close(&[sent(0, 1, open(7)), sent(1, 1, open(8))], Intake::Filter, 1);
    assert_eq!([5, 2, 1, 0].map(|below| world.accounts.room(ACCOUNTS_MAX - below)), [3, 0, 0, 0]);
    world.clear(&nothing(&world), 1).unwrap();
    assert_eq!(world.accounts.room(ACCOUNTS_MAX - 5), 5);
}

/// Each bit of a market's bytes turned: where what accounts cost and what was paid for them no longer go together, they are refused.
#[test]
fn bytes_in_which_something_else_was_paid_than_accounts_cost_are_refused() {
    let mut world = venue(2, OUTSIDE, 30);
    world.close(&[sent(0, 1, open(7)), sent(1, 1, open(8))], Intake::Filter, 1);
    let [_, _, bytes] = world.bytes();
    let check = |bytes: &[u8]| check_restored([Batch::restore(bytes)?].iter(), &world.accounts, &world.ledger);
    assert_eq!(check(&bytes), Ok(()));
    let turned = (0..bytes.len() * 8).map(|bit| {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        check(&bytes)
    });
    let found =
        turned.filter(|checked| *checked == Err(RestoreError::Contradiction("what is paid for accounts and pools"))).count();
    // Each bit of the closed batch's fee and of what two accounts paid, but for those that make it no amount or no asset at all.
    assert!(found > 2 * 62, "{found}");
}
