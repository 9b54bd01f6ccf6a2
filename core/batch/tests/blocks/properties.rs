//! What holds of every block.

use proptest::prelude::*;
use walras_batch::{BlockPlace, DropReason, Intake, PoolChangeKind, Then};
use walras_types::{BatchTransaction, limits::TRANSACTIONS_PER_ACCOUNT_MAX};

use crate::world::{Draw, World, proposed, transactions};

/// The same with more funds, where pools are asked for.
pub(crate) fn with_pools(mut world: World, draw: &mut Draw) -> World {
    for account in (0..world.ledger.account_count()).map(walras_types::AccountId) {
        for asset in (0..3).map(walras_types::AssetId) {
            world.ledger.deposit(account, asset, crate::world::amount(5_000)).unwrap();
        }
    }
    world.on_pools = 10 + draw.below(50);
    world
}

/// A venue after some blocks.
fn aged(draw: &mut Draw) -> World {
    let mut world = World::new(2 + draw.below(12) as u32, 300).with_drawn_currencies(draw);
    if draw.chance(50) {
        world = with_pools(world, draw);
    }
    for _ in 0..draw.below(4) {
        world.charge(draw);
        let sent = transactions(&world, draw, 40, 2);
        world.close(&sent, Intake::Reserve, 1);
        let block = proposed(&world, draw);
        world.clear(&block, 1).unwrap();
    }
    world.charge(draw);
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn neither_order_nor_threads_change_a_block(seed: u64) {
        let draw = &mut Draw(seed);
        let mut first = aged(draw);
        let sent_count = draw.below(60) as usize;
        let wild = draw.below(6);
        let sent = transactions(&first, draw, sent_count, wild);
        let before = first.clone();
        let closed = first.close(&sent, Intake::Filter, 1);
        let after_close = first.bytes();
        let block = proposed(&first, draw);
        let cleared = first.clear(&block, 1).unwrap();
        first.check();
        for thread_count in [1, 2, 8] {
            let mut places: Vec<u32> = (0..sent.len() as u32).collect();
            draw.shuffle(&mut places);
            let shuffled: Vec<BatchTransaction> = places.iter().map(|&place| sent[place as usize]).collect();
            // From bytes: what is hashed anew is hashed alike.
            let mut other = if thread_count == 2 { before.restored() } else { before.clone() };
            let same = other.close(&shuffled, Intake::Filter, thread_count);
            let mut dropped: Vec<(u32, DropReason)> =
                same.dropped.iter().map(|(place, reason)| (places[*place as usize], *reason)).collect();
            dropped.sort_unstable();
            prop_assert_eq!((same.batch_hash, same.kept_count, &dropped), (closed.batch_hash, closed.kept_count, &closed.dropped));
            prop_assert_eq!(&other.bytes(), &after_close);
            if thread_count == 8 {
                other = other.restored();
                other.batch.prepare(&mut other.ledger, &mut other.accounts, crate::world::threads(3));
                prop_assert_eq!(&other.bytes(), &after_close);
            }
            let mut told = block.clone();
            told.expected = Some(cleared.roots);
            told.place = Some(BlockPlace { number: before.batch.number(), parent: *before.batch.parent(), batch_hash: closed.batch_hash });
            let again = other.clear(&told, thread_count).unwrap();
            prop_assert_eq!((again.roots, &again.traded, &again.created), (cleared.roots, &cleared.traded, &cleared.created));
            prop_assert_eq!((&again.header, again.touched), (&cleared.header, cleared.touched));
            prop_assert_eq!((&again.pools_traded, &again.pool_changes), (&cleared.pools_traded, &cleared.pool_changes));
            prop_assert_eq!(&other.bytes(), &first.bytes());
        }
    }

    #[test]
    fn what_is_reserved_one_by_one_the_filter_keeps_whole(seed: u64) {
        let draw = &mut Draw(seed);
        let before = aged(draw);
        let sent = transactions(&before, draw, 60, 12);
        let mut world = before.clone();
        let closed = world.close(&sent, Intake::Reserve, 1);
        let is_dropped = |place: u32| closed.dropped.binary_search_by_key(&place, |(place, _)| *place).is_ok();
        let kept: Vec<BatchTransaction> = (0..).zip(&sent).filter(|(place, _)| !is_dropped(*place)).map(|(_, sent)| *sent).collect();
        prop_assert_eq!(kept.len(), closed.kept_count as usize);
        for (intake, thread_count) in [(Intake::Filter, 2), (Intake::Reserve, 3)] {
            let mut other = before.clone();
            let again = other.close(&kept, intake, thread_count);
            prop_assert_eq!((again.dropped.len(), again.batch_hash), (0, closed.batch_hash));
            prop_assert_eq!(&other.bytes(), &world.bytes());
        }
        let mut other = before.clone();
        prop_assert_eq!(&other.close(&sent, Intake::Reserve, 5), &closed);
        prop_assert_eq!(&other.bytes(), &world.bytes());
    }

    #[test]
    fn funds_are_kept_through_many_blocks(seed: u64) {
        let draw = &mut Draw(seed);
        let mut world = World::new(6, 1_000).with_drawn_currencies(draw);
        if draw.chance(50) {
            world = with_pools(world, draw);
        }
        for round in 0..8 {
            let intake = if draw.chance(50) { Intake::Filter } else { Intake::Reserve };
            world.charge(draw);
            let fee = world.batch.settings().account_fee;
            let collected = fee.map(|fee| world.ledger.fees(fee.asset).unwrap().get());
            let sent = transactions(&world, draw, 40, 3);
            let last: Vec<u64> = (0..6).map(|account| world.accounts.last(walras_types::AccountId(account)).0).collect();
            let closed = world.close(&sent, intake, 1 + round % 3);
            world.check();
            let block = proposed(&world, draw);
            // What is set while a batch waits is not for that one.
            world.charge(draw);
            let cleared = world.clear(&block, 2).unwrap();
            world.check();
            let paid: u64 = cleared.effects.iter().filter(|effect| effect.then == Then::AccountFee).map(|effect| effect.amount.get()).sum();
            let new_pools = cleared.pool_changes.iter().filter(|change| matches!(change.kind, PoolChangeKind::Created { .. })).count();
            prop_assert_eq!(paid, (cleared.created.len() + new_pools) as u64 * fee.map_or(0, |fee| fee.amount.get()));
            // Of what the market has its commission and what is rounded down is collected beside.
            if let Some((fee, before)) = fee.zip(collected).filter(|(fee, _)| !world.batch.settings().assets.contains(&fee.asset)) {
                prop_assert_eq!(world.ledger.fees(fee.asset).unwrap().get(), before + paid);
            }
            for (account, last) in (0..).map(walras_types::AccountId).zip(last) {
                prop_assert!(world.accounts.last(account).0 <= last + TRANSACTIONS_PER_ACCOUNT_MAX);
            }
            // Nothing is taken twice.
            let is_dropped = |place: u32| closed.dropped.binary_search_by_key(&place, |(place, _)| *place).is_ok();
            let kept: Vec<BatchTransaction> =
                (0..).zip(&sent).filter(|(place, _)| !is_dropped(*place)).map(|(_, sent)| *sent).collect();
            let again = world.clone().close(&kept, intake, 2);
            prop_assert!(again.kept_count == 0 && again.dropped.len() == kept.len());
            prop_assert_eq!(cleared.header.number, world.batch.number() - 1);
            prop_assert_eq!(&cleared.roots.state, world.batch.parent());
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_read(seed: u64) {
        let draw = &mut Draw(seed);
        let mut world = aged(draw);
        if draw.chance(50) {
            let sent = transactions(&world, draw, 30, 2);
            world.close(&sent, Intake::Filter, 1);
        }
        let same = world.restored();
        prop_assert_eq!(&same.bytes(), &world.bytes());
        prop_assert_eq!(&same.accounts, &world.accounts);
        let [_, mut accounts, mut batch] = world.bytes();
        for bytes in [&mut accounts, &mut batch] {
            let at = draw.below(bytes.len() as u64) as usize;
            if draw.chance(30) {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << draw.below(8);
            }
        }
        // What is read is written in the same bytes.
        if let Ok(read) = walras_batch::Accounts::restore(&accounts) {
            let mut bytes = Vec::new();
            read.snapshot(&mut |piece| bytes.extend_from_slice(piece));
            prop_assert_eq!(bytes, accounts);
        }
        if let Ok(read) = walras_batch::Batch::restore(&batch) {
            let mut bytes = Vec::new();
            read.snapshot(&mut |piece| bytes.extend_from_slice(piece));
            prop_assert_eq!(bytes, batch);
        }
    }
}
