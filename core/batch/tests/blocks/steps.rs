//! Blocks in steps come to what blocks at once come to.

use std::collections::BTreeSet;
use std::num::NonZero;

use proptest::prelude::*;
use walras_batch::{
    Accounts, Batch, BlockDone, BlockRejected, Collected, DropReason, Intake, MarketForm, Moved, NextStep, ProposedClearing,
    Stepped, check_restored,
};
use walras_ledger::{AccountSet, Ledger};
use walras_types::{AccountId, AssetId, BatchOperation, BatchTransaction, OfferName};
use walras_wire::batch::encode_block_proposal;

use crate::properties::with_pools;
use crate::world::{Draw, MARKET, World, amount, proposed, threads, transactions};

/// What a venue collects: of accounts that there are, each name once.
fn collect(world: &World, sent: &[BatchTransaction]) -> Collected {
    let mut collected = Collected::default();
    let mut keys = BTreeSet::new();
    for transaction in sent {
        let name = OfferName { account: transaction.account, sequence: transaction.sequence };
        let is_known = transaction.account.0 < world.ledger.account_count() && transaction.sequence.0 < 1 << 38;
        if !is_known || collected.names.contains_key(&name.number()) {
            continue;
        }
        if let BatchOperation::CreateAccount(key) = transaction.operation
            && !keys.insert(key)
        {
            collected.keys_twice.insert(key);
        }
        collected.names.insert(name.number(), collected.transactions.len() as u32);
        collected.transactions.push(*transaction);
    }
    collected
}

fn bytes(world: &World) -> [Vec<u8>; 3] {
    let mut all = world.bytes();
    all[2].clear();
    world.batch.snapshot_as(MarketForm::KeysKept, &mut |piece| all[2].extend_from_slice(piece));
    all
}

fn restored(world: &World) -> World {
    let [ledger, accounts, batch] = bytes(world);
    let (ledger, mut accounts) = (Ledger::restore(&ledger).unwrap(), Accounts::restore(&accounts).unwrap());
    let batch = Batch::restore_as(MarketForm::KeysKept, &batch).unwrap();
    if batch.is_hashing() {
        accounts.resume_hashing();
    }
    World { ledger, accounts, batch, on_pools: world.on_pools }
}

/// Whether ledger and market go together, at any step.
fn check(world: &World) {
    world.ledger.check_invariants();
    world.batch.check_invariants(&world.ledger);
    check_restored([&world.batch].into_iter(), &world.accounts, &world.ledger).unwrap();
    let mut reserved = std::collections::BTreeMap::<(AccountId, AssetId), u64>::new();
    world.batch.for_each_reserved(|account, asset, units| *reserved.entry((account, asset)).or_default() += units.get());
    for account in (0..world.ledger.account_count()).map(AccountId) {
        for (asset, balance) in world.ledger.balances_of(account) {
            let expected = reserved.get(&(account, asset)).copied().unwrap_or(0);
            assert_eq!(balance.reserved.get(), expected, "account {account} has reserved of asset {asset}");
        }
    }
}

/// What steps say.
#[derive(Default)]
struct Said {
    dropped: Vec<(OfferName, DropReason)>,
    closed: Option<([u8; 32], u32)>,
    offers: Vec<(walras_clearing::Pair, walras_clearing::Offer)>,
    moved: Vec<Moved>,
    refused: Option<BlockRejected>,
    block: Option<BlockDone>,
}

/// Takes steps as long as there are any: from bytes now and then, with jobs that run beforehand or when they are needed. `between` is done
/// before each.
fn run(world: &mut World, draw: &mut Draw, intake: Intake, mut between: impl FnMut(&mut World, &mut Draw)) -> Said {
    let mut said = Said::default();
    let mut last = None;
    let units = |draw: &mut Draw| NonZero::new(1 + draw.below(9) as usize).unwrap();
    while let Some(NextStep { number, ready_count }) = world.batch.next_step(&world.accounts, NonZero::<usize>::MIN) {
        if let Some(job) = world.batch.take_job()
            && draw.chance(50)
        {
            job.run(threads(1 + draw.below(3) as usize));
            assert!(job.is_done());
        }
        assert!(last.is_none_or(|last| last + 1 == number), "steps are counted");
        assert!(ready_count < 10_000);
        last = Some(number);
        between(world, draw);
        check(world);
        if draw.chance(25) {
            let again = restored(world);
            assert!(bytes(&again) == bytes(world), "what is restored has the same bytes, at step {number}");
            *world = again;
            if draw.chance(50) {
                world.batch.prepare(&mut world.ledger, &mut world.accounts, threads(2));
            }
        }
        let (ledger, accounts) = (&mut world.ledger, &mut world.accounts);
        match world.batch.step(ledger, accounts, intake, units(draw), threads(1 + draw.below(3) as usize)).unwrap() {
            Stepped::Judged { dropped, closed } => {
                said.dropped.extend(dropped);
                said.closed = closed.or(said.closed);
            }
            Stepped::Opened(offers) => said.offers.extend(offers),
            Stepped::Closed | Stepped::Accepted => {}
            Stepped::Refused(rejected) => said.refused = Some(rejected),
            Stepped::Moved(moved) => said.moved.extend(moved),
            Stepped::Block(block) => said.block = Some(*block),
        }
    }
    check(world);
    said
}

fn begin_to_clear(world: &mut World, block: &ProposedClearing) -> Result<(), BlockRejected> {
    let place = world.batch.place_to_clear().ok_or(BlockRejected::NothingClosed)?;
    let wire = ProposedClearing { place: Some(place), ..block.clone() }.to_wire(MARKET).unwrap();
    let mut bytes = Vec::new();
    encode_block_proposal(&wire, &mut bytes).unwrap();
    world.batch.begin_to_clear(ProposedClearing::from(&wire), bytes)
}

fn aged(draw: &mut Draw) -> World {
    let mut world = World::new(2 + draw.below(12) as u32, 300).with_drawn_currencies(draw);
    if draw.chance(50) {
        world = with_pools(world, draw);
    }
    world.charge(draw);
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// As long as nobody comes in between.
    #[test]
    fn steps_come_to_what_one_entry_comes_to(seed: u64) {
        let draw = &mut Draw(seed);
        let mut once = aged(draw);
        let mut steps = once.clone();
        for _ in 0..3 {
            let wild = draw.below(6);
            let sent = transactions(&once, draw, 50, wild);
            // By the order of arrival alone it is decided who gets a key that several ask for, at once; by account in steps.
            let collected = collect(&once, &sent);
            let intake = if draw.chance(50) || !collected.keys_twice.is_empty() { Intake::Filter } else { Intake::Reserve };
            let closed = once.close(&collected.transactions, intake, 1);
            let opened: BTreeSet<_> = once.batch.opened().map(|(pair, offer)| format!("{:?}", (pair, *offer))).collect();
            let names = |place: u32| {
                let BatchTransaction { account, sequence, .. } = collected.transactions[place as usize];
                OfferName { account, sequence }
            };
            let mut dropped: Vec<_> = closed.dropped.iter().map(|(place, reason)| (names(*place), *reason)).collect();
            dropped.sort_unstable_by_key(|(name, _)| name.number());
            let fee = once.batch.settings().account_fee;
            steps.batch.begin_to_close(collected).unwrap();
            // What accounts cost in the next batch is not for this one.
            steps.batch.set_account_fee(None);
            let mut said = run(&mut steps, draw, intake, |_, _| ());
            steps.batch.set_account_fee(fee);
            said.dropped.sort_unstable_by_key(|(name, _)| name.number());
            prop_assert_eq!((said.closed, &said.dropped), (Some((closed.batch_hash, closed.kept_count)), &dropped));
            prop_assert_eq!(said.offers.iter().map(|o| format!("{o:?}")).collect::<BTreeSet<_>>(), opened);
            prop_assert_eq!(steps.bytes(), once.bytes());

            let block = proposed(&once, draw);
            if draw.chance(30) {
                let mut lie = block.clone();
                lie.certificate.gap_ppb = lie.certificate.gap_ppb.checked_sub(1).unwrap_or(1);
                begin_to_clear(&mut steps, &lie).unwrap();
                let said = run(&mut steps, draw, intake, |_, _| ());
                let refused = once.clear(&lie, 1).unwrap_err();
                prop_assert_eq!((said.refused, said.moved.len()), (Some(refused), 0));
                prop_assert_eq!(steps.bytes(), once.bytes());
            }
            begin_to_clear(&mut steps, &block).unwrap();
            prop_assert!(begin_to_clear(&mut steps, &block).is_err(), "it is being cleared");
            let said = run(&mut steps, draw, intake, |_, _| ());
            let cleared = once.clear(&block, 2).unwrap();
            let done = said.block.unwrap();
            prop_assert_eq!((&done.header, done.roots, done.touched), (&cleared.header, cleared.roots, cleared.touched));
            prop_assert!(done.outcomes.is_none_or(|outcomes| *outcomes == cleared.outcomes));
            let (mut created, mut new_keys, mut keys_kept) = (vec![], vec![], vec![]);
            let (mut effects, mut pools, mut changes) = (vec![], vec![], vec![]);
            for moved in &said.moved {
                match *moved {
                    Moved::Fill(_) => {}
                    Moved::Created(account, key) => created.push((account, key)),
                    Moved::KeySet(account, key) => new_keys.push((account, key)),
                    Moved::KeyKept(name) => keys_kept.push(name),
                    Moved::Effect(effect) => effects.push(effect),
                    Moved::Pool(name, traded) => pools.push((name, traded)),
                    Moved::PoolChange(change) => changes.push(change),
                }
            }
            prop_assert_eq!((&created, &new_keys, &effects), (&cleared.created, &cleared.new_keys, &cleared.effects));
            prop_assert_eq!(&keys_kept, &cleared.keys_kept);
            prop_assert_eq!((&pools, &changes), (&cleared.pools_traded, &cleared.pool_changes));
            let offers_traded: usize = cleared.traded.iter().map(|pair| pair.offers.len()).sum();
            prop_assert_eq!(said.moved.iter().filter(|moved| matches!(moved, Moved::Fill(_))).count(), offers_traded);
            prop_assert_eq!(steps.bytes(), once.bytes());
            once.charge(draw);
            let fee = once.batch.settings().account_fee;
            steps.batch.set_account_fee(fee);
        }
    }

    /// Funds come, go and are set aside between steps, and accounts are created: a block finds what it reserved, and the supply adds up.
    #[test]
    fn others_may_come_between_steps(seed: u64) {
        let draw = &mut Draw(seed);
        let mut world = aged(draw);
        for _ in 0..3 {
            world.charge(draw);
            let wild = draw.below(6);
            let sent = transactions(&world, draw, 50, wild);
            let collected = collect(&world, &sent);
            let intake = if draw.chance(50) { Intake::Filter } else { Intake::Reserve };
            let between = |world: &mut World, draw: &mut Draw| {
                let (account, asset) = (AccountId(draw.below(world.ledger.account_count().into()) as u32), AssetId(draw.below(5) as u32));
                match draw.below(6) {
                    0 => _ = world.ledger.deposit(account, asset, amount(draw.below(100))),
                    1 => _ = world.ledger.withdraw(account, asset, amount(draw.below(300))),
                    2 if world.accounts.room(world.ledger.account_count()) > 0 => _ = world.ledger.create_account(),
                    3 => {
                        let _ = world.accounts.set_key(account, crate::world::key(draw.below(8) + 2_000));
                        world.batch.keep_keys([account]);
                        // A key is hashed with its account.
                        let mut changed = AccountSet::default();
                        changed.insert_anew(account);
                        world.ledger.mark_changed(&changed);
                    }
                    _ => {}
                }
            };
            world.batch.begin_to_close(collected).unwrap();
            run(&mut world, draw, intake, between);
            let block = proposed(&world, draw);
            begin_to_clear(&mut world, &block).unwrap();
            let number = world.batch.number();
            let said = run(&mut world, draw, intake, between);
            prop_assert_eq!((said.block.unwrap().header.number, world.batch.number()), (number, number + 1));
            world.check();
            // What is hashed from nothing comes to the same.
            let mut again = restored(&world);
            again.batch.prepare(&mut again.ledger, &mut again.accounts, threads(1));
            again.close(&[], Intake::Filter, 1);
            let mut other = world.clone();
            other.close(&[], Intake::Filter, 1);
            let nothing = ProposedClearing::of_nothing(again.batch.market());
            prop_assert_eq!(again.clear(&nothing, 1).unwrap().roots, other.clear(&nothing, 1).unwrap().roots);
        }
    }
}
