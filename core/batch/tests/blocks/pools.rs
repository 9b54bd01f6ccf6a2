//! Pools in blocks: who adds, who gets back, what trades, what is proven; beside the same in fractions.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_rational::Ratio;
use proptest::prelude::*;
use walras_batch::light::{LightBlock, LightError};
use walras_batch::{BlockRejected, Cleared, Intake, PoolChange, PoolChangeKind, PoolMoved, PoolView, ProposedClearing, Roots};
use walras_clearing::{AssetIndex, PoolIndex, PoolSide, PoolTrade, Proposal};
use walras_types::limits::ACCOUNTS_MAX;
use walras_types::{
    AccountId, Amount, AssetId, BatchOperation, BatchTransaction, CreateOffer, CreatePool, DepositToPool, DropReason, OfferName,
    PoolRule, TransactionSeq, WithdrawFromPool,
};

use crate::properties::with_pools;
use crate::world::{Draw, MARKET, World, amount, price, proposed, sent, transactions, with_marginal};

type Fraction = Ratio<BigInt>;

fn whole(units: Amount) -> Fraction {
    Fraction::from_integer(BigInt::from(units.get()))
}

/// A pool as a naive provider sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Naive {
    view: PoolView,
    providers: BTreeMap<AccountId, u64>,
}

fn naive(world: &World) -> BTreeMap<OfferName, Naive> {
    let of_view = |view: PoolView| {
        let providers = world.batch.pool_providers(view.name).map(|(account, shares)| (account, shares.get())).collect();
        (view.name, Naive { view, providers })
    };
    world.batch.pools().map(of_view).collect()
}

/// What a share stands for, to the power that makes it a fraction: only to be compared with the same of the same pool.
fn worth_of_a_share(view: &PoolView) -> Fraction {
    let [x, y] = view.pool.reserves.map(whole);
    let shares = whole(view.shares);
    match view.pool.rule {
        PoolRule::ConstantProduct => x * y / (&shares * &shares),
        PoolRule::Weighted { weights: [first, second] } => {
            let (first, second) = (i32::from(first), i32::from(second));
            x.pow(first) * y.pow(second) / shares.pow(first + second)
        }
        PoolRule::StableSwap { amplification } => {
            // By halving, in units of 2^-96: D of n (x + y) + D = n D + D^3 / (4xy).
            let n = Fraction::from_integer(BigInt::from(4 * u64::from(amplification)));
            let unit = Fraction::new(1.into(), BigInt::from(1) << 96);
            let is_reached = |d: &BigInt| {
                let d = Fraction::from_integer(d.clone()) * &unit;
                &n * (&x + &y) + &d >= &n * &d + &d * &d * &d / (Fraction::from_integer(4.into()) * &x * &y)
            };
            let (mut low, mut high) = (BigInt::from(0), ((&x + &y) / &unit).to_integer());
            while low < high {
                let middle: BigInt = (&low + &high + 1_u32) / 2_u32;
                if is_reached(&middle) { low = middle } else { high = middle - 1_u32 }
            }
            Fraction::from_integer(low) * unit / shares
        }
    }
}

/// Rounding of the naive value of a stable swap.
fn slack(rule: PoolRule) -> Fraction {
    match rule {
        PoolRule::StableSwap { .. } => Fraction::new(1.into(), BigInt::from(1) << 64),
        PoolRule::ConstantProduct | PoolRule::Weighted { .. } => Fraction::from_integer(0.into()),
    }
}

/// Checks what a closed batch did to pools by what the last block left, and lets the naive pools follow.
fn follow_changes(pools: &mut BTreeMap<OfferName, Naive>, changes: &[PoolChange], kept: &[BatchTransaction]) {
    let before = pools.clone();
    for PoolChange { pool, kind, by, assets: _, amounts, shares } in changes {
        let asked = kept.iter().find(|kept| (kept.account, kept.sequence) == (by.account, by.sequence)).map(|kept| kept.operation);
        if *kind == PoolChangeKind::Closed {
            let gone = pools.remove(pool).unwrap();
            assert!(gone.providers.is_empty() && gone.view.pool.reserves == *amounts, "{gone:?}");
            continue;
        }
        if let PoolChangeKind::Created { rule, fee_ppm } = kind {
            let Some(BatchOperation::CreatePool(create)) = asked else { panic!("nobody created {pool:?}") };
            assert_eq!((create.amounts, create.rule, create.fee_ppm), (*amounts, *rule, *fee_ppm));
            assert_eq!((*pool, *shares), (*by, amounts[0].min(amounts[1])));
            // Its assets are looked at where the market has it.
            let assets = [AssetIndex(0), AssetIndex(1)];
            let of_market = walras_clearing::Pool { assets, rule: *rule, reserves: *amounts, fee_ppm: *fee_ppm };
            let view = PoolView { name: *pool, pool: of_market, shares: *shares };
            pools.insert(*pool, Naive { view, providers: [(by.account, shares.get())].into() });
            continue;
        }
        let stood = &before[pool];
        let all = whole(stood.view.shares);
        let part = |reserve: Amount| whole(reserve) * whole(*shares) / &all;
        let now = pools.get_mut(pool).unwrap();
        let provider = now.providers.entry(by.account).or_default();
        for (place, units) in amounts.iter().enumerate() {
            let (part, units) = (part(stood.view.pool.reserves[place]), whole(*units));
            let reserve = &mut now.view.pool.reserves[place];
            match asked {
                Some(BatchOperation::DepositToPool(deposit)) => {
                    assert!(units >= part && units < &part + Fraction::from_integer(1.into()), "who adds pays for its shares");
                    assert!(units <= whole(deposit.amounts[place]), "and no more than it said");
                    *reserve = reserve.checked_add(amounts[place]).unwrap();
                }
                Some(BatchOperation::WithdrawFromPool(withdraw)) => {
                    assert_eq!(withdraw.shares, *shares);
                    assert!(units <= part && units > &part - Fraction::from_integer(1.into()), "who leaves gets its part");
                    *reserve = reserve.checked_sub(amounts[place]).unwrap();
                }
                other => panic!("{other:?} changed a pool"),
            }
        }
        if let Some(BatchOperation::DepositToPool(deposit)) = asked {
            // One share more would cost more than it gave.
            let more = amount(shares.get() + 1);
            let costs = stood.view.pool.reserves.map(|reserve| whole(reserve) * whole(more) / &all);
            assert!(costs.iter().zip(deposit.amounts).any(|(cost, most)| *cost > whole(most)), "no share is withheld");
            (*provider, now.view.shares) = (*provider + shares.get(), now.view.shares.checked_add(*shares).unwrap());
        } else {
            (*provider, now.view.shares) = (*provider - shares.get(), now.view.shares.checked_sub(*shares).unwrap());
        }
        now.providers.retain(|_, shares| *shares > 0);
    }
}

/// Checks that no share is worth less.
fn check_worth(before: &BTreeMap<OfferName, Naive>, after: &BTreeMap<OfferName, Naive>) {
    for (name, now) in after {
        let Some(then) = before.get(name) else { continue };
        let (then, now) = (worth_of_a_share(&then.view), worth_of_a_share(&now.view));
        assert!(now >= &then - slack(before[name].view.pool.rule) * &then, "a share of {name:?} fell from {then} to {now}");
        let view = after[name].view;
        assert!(view.shares <= view.pool.reserves[0].max(view.pool.reserves[1]), "{view:?} has more shares than units");
    }
}

/// Some blocks of a world with pools; how often pools traded.
fn blocks_beside_fractions(seed: u64) -> usize {
    let draw = &mut Draw(seed);
    let mut world = with_pools(World::new(2 + draw.below(6) as u32, 300), draw);
    let mut traded = 0;
    for _ in 0..8 {
        let mut pools = naive(&world);
        let start = pools.clone();
        let sent = transactions(&world, draw, 40, 2);
        let intake = if draw.chance(50) { Intake::Filter } else { Intake::Reserve };
        let pooled = |world: &World| [0, 1, 2].map(|asset| world.ledger.pooled(AssetId(asset)).unwrap().get());
        let (fees, held) = ([0, 1, 2].map(|asset| world.ledger.fees(AssetId(asset)).unwrap()), pooled(&world));
        let closed = world.close(&sent, intake, 2);
        world.check();
        assert_eq!(pooled(&world), held, "nothing moves before the block");
        // Of two transactions with one number the second may be the one that was kept.
        let is_kept = |place: usize| !closed.dropped.iter().any(|(dropped, _)| *dropped as usize == place);
        let kept: Vec<BatchTransaction> = (0..sent.len()).filter(|place| is_kept(*place)).map(|place| sent[place]).collect();
        let stood = naive(&world);
        let block = proposed(&world, draw);
        let Cleared { pools_traded, pool_changes, .. } = world.clear(&block, 2).unwrap();
        world.check();
        follow_changes(&mut pools, &pool_changes, &kept);
        for (name, Naive { view, .. }) in &mut pools {
            // What the naive pools do not know: the numbers of a new pool's assets.
            view.pool.assets = stood[name].view.pool.assets;
        }
        assert_eq!(&pools, &stood);
        check_worth(&start, &stood);
        for (name, pool_traded) in &pools_traded {
            let pool = &mut pools.get_mut(name).unwrap().view.pool;
            let sold = usize::from(pool.assets[1] == pool_traded.pair.sell);
            assert_eq!([pool.assets[sold], pool.assets[1 - sold]], [pool_traded.pair.sell, pool_traded.pair.buy]);
            pool.reserves[sold] = pool.reserves[sold].checked_sub(pool_traded.sold).unwrap();
            pool.reserves[1 - sold] = pool.reserves[1 - sold].checked_add(pool_traded.bought).unwrap();
            traded += 1;
        }
        assert_eq!(&pools, &naive(&world));
        check_worth(&stood, &pools);
        let now = [0, 1, 2].map(|asset| world.ledger.fees(AssetId(asset)).unwrap());
        assert!(fees.iter().zip(now).all(|(before, now)| *before <= now), "the venue pays for nothing");
    }
    traded
}

#[test]
fn pools_trade_in_such_worlds() {
    let traded: usize = (0..20).map(blocks_beside_fractions).sum();
    assert!(traded > 100, "{traded}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pools_are_what_fractions_say(seed: u64) {
        blocks_beside_fractions(seed);
    }

    #[test]
    fn a_block_that_lies_about_its_hashes_leaves_pools_as_they_were(seed: u64) {
        let draw = &mut Draw(seed);
        let mut world = with_pools(World::new(5, 300), draw);
        for round in 0..5 {
            let sent = transactions(&world, draw, 40, 1);
            world.close(&sent, Intake::Filter, 1);
            let block = proposed(&world, draw);
            let before = world.bytes();
            let expected = Some(Roots::default());
            let lied = world.clear(&ProposedClearing { expected, ..block.clone() }, 1 + round % 3).map(|_| ());
            prop_assert_eq!(lied, Err(BlockRejected::AccountsRoot));
            prop_assert_eq!(&world.bytes(), &before);
            // The tries were undone with the rest: a validator that never saw the lie has the same roots.
            let mut other = world.restored();
            let (here, there) = (world.clear(&block, 2).unwrap(), other.clear(&block, 1).unwrap());
            prop_assert_eq!((here.roots, here.outcomes.root()), (there.roots, there.outcomes.root()));
            world.check();
        }
    }

    #[test]
    fn pools_and_shares_are_proven(seed: u64) {
        let draw = &mut Draw(seed);
        let mut world = with_pools(World::new(4, 300), draw);
        let mut before: Option<LightBlock> = None;
        for _ in 0..5 {
            let sent = transactions(&world, draw, 30, 1);
            world.close(&sent, Intake::Reserve, 1);
            let block = proposed(&world, draw);
            prop_assert!(world.batch.pool_statement(name(0, 1), None).is_none(), "the market is ahead of its last block");
            let cleared = world.clear(&block, 1).unwrap();
            let light = LightBlock::open(&cleared.roots.state, &cleared.header.light().bytes(), &cleared.light_roots()).unwrap();
            let mut names: Vec<OfferName> = world.batch.pools().map(|view| view.name).collect();
            names.extend([name(0, 1), name(3, 7), name(1, 1 << 37)]);
            for pool in names {
                let statement = world.batch.pool_statement(pool, None).unwrap();
                prop_assert_eq!(light.pool(pool, &statement), Ok(world.batch.pool(pool)));
                // An account beyond the last is none, though its name would have the same key.
                let beyond = OfferName { account: AccountId(pool.account.0 + ACCOUNTS_MAX), ..pool };
                prop_assert_eq!(light.pool(beyond, &statement), Err(LightError::NotProven));
                for account in (0..5).map(AccountId) {
                    let statement = world.batch.pool_statement(pool, Some(account)).unwrap();
                    prop_assert_eq!(light.pool_shares(pool, account, &statement), Ok(world.batch.pool_shares(pool, account)));
                    prop_assert_eq!(light.pool_shares(beyond, account, &statement), Err(LightError::NotProven));
                    let at = draw.below(statement.len() as u64) as usize;
                    let mut wrong = statement.clone();
                    wrong[at] ^= 1 << draw.below(8);
                    prop_assert!(light.pool_shares(pool, account, &wrong).is_err());
                }
                let mut wrong = statement.clone();
                let at = draw.below(statement.len() as u64) as usize;
                wrong[at] ^= 1 << draw.below(8);
                prop_assert!(light.pool(pool, &wrong).is_err());
                let changed = cleared.pools_traded.iter().any(|(traded, _)| *traded == pool);
                if let Some(before) = before.as_ref().filter(|_| changed) {
                    prop_assert_eq!(before.pool(pool, &statement), Err(LightError::NotProven));
                }
            }
            for (pool, traded) in &cleared.pools_traded {
                let outcome = light.outcome(*pool, &cleared.outcomes.statement(*pool)).unwrap().unwrap();
                let of = outcome.traded.unwrap();
                prop_assert_eq!((of.sold, of.bought), (traded.sold, traded.bought));
            }
            for change in cleared.pool_changes.iter().filter(|change| change.kind != PoolChangeKind::Closed) {
                let outcome = light.outcome(change.by, &cleared.outcomes.statement(change.by)).unwrap().unwrap();
                prop_assert_eq!(outcome.pooled, Some(PoolMoved { amounts: change.amounts, shares: change.shares }));
            }
            before = Some(light);
        }
    }
}

fn name(account: u32, sequence: u64) -> OfferName {
    OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) }
}

fn create(assets: [u32; 2], amounts: [u64; 2]) -> CreatePool {
    let (rule, assets) = (PoolRule::ConstantProduct, assets.map(AssetId));
    CreatePool { market: MARKET, assets, rule, fee_ppm: 3_000, amounts: amounts.map(amount) }
}

fn deposit(pool: OfferName, amounts: [u64; 2]) -> BatchOperation {
    BatchOperation::DepositToPool(DepositToPool { market: MARKET, pool, amounts: amounts.map(amount) })
}

fn withdraw(pool: OfferName, shares: u64) -> BatchOperation {
    BatchOperation::WithdrawFromPool(WithdrawFromPool { market: MARKET, pool, shares: amount(shares) })
}

/// Closes these and clears the block without trades.
fn block(world: &mut World, sent: &[BatchTransaction]) -> (Vec<(u32, DropReason)>, Cleared) {
    let closed = world.close(sent, Intake::Filter, 2);
    let nothing = ProposedClearing::of_nothing(world.batch.market());
    let cleared = world.clear(&nothing, 1).unwrap();
    world.check();
    (closed.dropped, cleared)
}

fn available(world: &World, account: u32, asset: u32) -> u64 {
    world.ledger.balance(AccountId(account), AssetId(asset)).unwrap().available.get()
}

#[test]
fn a_pool_is_shared_and_ends_when_all_leave() {
    let mut world = World::new(3, 10_000);
    let pool = name(0, 1);
    let (dropped, cleared) = block(&mut world, &[sent(0, 1, BatchOperation::CreatePool(create([1, 2], [3_000, 1_500])))]);
    assert_eq!((dropped, cleared.pool_changes.len()), (vec![], 1));
    assert_eq!((available(&world, 0, 1), available(&world, 0, 2)), (7_000, 8_500));
    assert_eq!(world.ledger.pooled(AssetId(1)), Some(amount(3_000)));
    // 700 of 1,500 shares' worth of the first asset, 801 of the second: the first decides.
    let (dropped, _) = block(&mut world, &[sent(1, 1, deposit(pool, [1_401, 801]))]);
    assert_eq!(dropped, []);
    assert_eq!(world.batch.pool_shares(pool, AccountId(1)), amount(700));
    assert_eq!((available(&world, 1, 1), available(&world, 1, 2)), (8_600, 9_300));
    // Both leave at once; and nobody gets back what another has.
    let all = [sent(0, 2, withdraw(pool, 1_500)), sent(1, 2, withdraw(pool, 700)), sent(2, 1, withdraw(pool, 1))];
    let (dropped, cleared) = block(&mut world, &all);
    assert_eq!(dropped, [(2, DropReason::SharesOverdrawn)]);
    assert_eq!(cleared.pool_changes.last().unwrap().kind, PoolChangeKind::Closed);
    assert_eq!((world.batch.pools().len(), world.ledger.pooled(AssetId(1))), (0, Some(Amount::ZERO)));
    assert_eq!([0, 1].map(|account| (available(&world, account, 1), available(&world, account, 2))), [(10_000, 10_000); 2]);
    let (dropped, _) = block(&mut world, &[sent(1, 3, deposit(pool, [5, 5]))]);
    assert_eq!(dropped, [(0, DropReason::UnknownPool)]);
}

#[test]
fn what_rounding_leaves_in_a_pool_is_the_venues() {
    let mut world = World::new(3, 10_000);
    let pool = name(0, 1);
    block(&mut world, &[sent(0, 1, BatchOperation::CreatePool(create([1, 2], [1_000, 1_500])))]);
    // 333 shares cost 500 of the second asset, and 1,000 and 333 of 1,333 are worth 1,500.4 and 499.6 of 2,000.
    block(&mut world, &[sent(1, 1, deposit(pool, [333, 5_000]))]);
    let leave = [sent(0, 2, withdraw(pool, 1_000)), sent(1, 2, withdraw(pool, 333))];
    let (dropped, cleared) = block(&mut world, &leave);
    assert_eq!(dropped, []);
    let closed = cleared.pool_changes.last().unwrap();
    assert_eq!((closed.kind, closed.amounts), (PoolChangeKind::Closed, [amount(0), amount(1)]));
    assert_eq!(world.ledger.fees(AssetId(2)), Some(amount(1)));
}

#[test]
fn what_is_wrong_with_a_pool_is_told() {
    let mut world = World::new(3, 10_000);
    let pool = name(0, 1);
    block(&mut world, &[sent(0, 1, BatchOperation::CreatePool(create([1, 2], [1_000, 2_000])))]);
    let good = create([1, 2], [1_000, 2_000]);
    let other = walras_types::BatchMarketId(9);
    let weights = PoolRule::Weighted { weights: [0, 1] };
    let wrong = [
        (BatchOperation::CreatePool(CreatePool { market: other, ..good }), DropReason::UnknownMarket),
        (BatchOperation::CreatePool(create([1, 1], [1_000, 2_000])), DropReason::EqualAssets),
        (BatchOperation::CreatePool(create([1, 4], [1_000, 2_000])), DropReason::UnknownAsset),
        (BatchOperation::CreatePool(CreatePool { rule: weights, ..good }), DropReason::PoolTerms),
        (BatchOperation::CreatePool(CreatePool { fee_ppm: 100_001, ..good }), DropReason::PoolTerms),
        (BatchOperation::CreatePool(create([1, 2], [999, 2_000])), DropReason::PoolTooSmall),
        (BatchOperation::CreatePool(create([1, 2], [1_000, 10_001])), DropReason::Overdraft),
        (deposit(name(0, 2), [5, 5]), DropReason::UnknownPool),
        (deposit(name(1, 1 << 38), [5, 5]), DropReason::UnknownPool),
        (deposit(pool, [5, 1]), DropReason::DepositTooSmall),
        (deposit(pool, [10_001, 20_002]), DropReason::Overdraft),
        (withdraw(pool, 0), DropReason::ZeroAmount),
        (withdraw(pool, 1), DropReason::SharesOverdrawn),
    ];
    for (number, (operation, reason)) in (1..).zip(wrong) {
        let (dropped, cleared) = block(&mut world, &[sent(1, number, operation)]);
        assert_eq!((dropped, cleared.pool_changes.len()), (vec![(0, reason)], 0), "{operation:?}");
    }
    // Twice what it has, in two transactions.
    let (dropped, _) = block(&mut world, &[sent(0, 2, withdraw(pool, 600)), sent(0, 3, withdraw(pool, 600))]);
    assert_eq!(dropped, [(0, DropReason::SharesOverdrawn), (1, DropReason::SharesOverdrawn)]);
    // One by one, the second alone is too much; and an asset that is short leaves the other as it was.
    let two = [sent(0, 4, withdraw(pool, 600)), sent(0, 5, withdraw(pool, 600))];
    assert_eq!(world.clone().close(&two, Intake::Reserve, 1).dropped, [(1, DropReason::SharesOverdrawn)]);
    let too_much = sent(1, 60, BatchOperation::CreatePool(create([1, 2], [9_000, 10_001])));
    let rest = sent(1, 61, BatchOperation::CreatePool(create([1, 2], [9_500, 9_500])));
    assert_eq!(world.close(&[too_much, rest], Intake::Reserve, 1).dropped, [(0, DropReason::Overdraft)]);
}

#[test]
fn a_pool_trades_with_an_offer_and_its_providers_keep_the_fee() {
    let mut world = World::new(2, 100_000);
    let pool = name(0, 1);
    let offer = CreateOffer { market: MARKET, sell: AssetId(2), buy: AssetId(1), amount: amount(1_000), limit: price(9, 10) };
    let all =
        [sent(0, 1, BatchOperation::CreatePool(create([1, 2], [50_000, 50_000]))), sent(1, 1, BatchOperation::CreateOffer(offer))];
    assert_eq!(world.close(&all, Intake::Filter, 1).dropped, []);
    // Assets 1, 2, 0 are 0, 1, 2 in the market. At 0.95 the pool gives 950 and less for 1,000.
    let prices = vec![Some(price(100, 100)), Some(price(95, 100)), None];
    let mut proposal = Proposal { prices, ..Proposal::default() };
    proposal.trades = vec![crate::world::trade(1, 0, 1_000)];
    proposal.pools = vec![PoolTrade { pool: PoolIndex(0), side: PoolSide::First, sold: amount(947) }];
    let block = with_marginal(&world, proposal);
    let cleared = world.clear(&block, 1).unwrap();
    world.check();
    let (traded_name, traded) = cleared.pools_traded[0];
    assert_eq!((traded_name, traded.sold), (pool, amount(947)));
    let reserves = world.batch.pool(pool).unwrap().pool.reserves.map(Amount::get);
    assert!(reserves[0] == 50_000 - 947 && reserves[1] > 50_900 && reserves[0] * reserves[1] > 50_000 * 50_000, "{reserves:?}");
    assert!(available(&world, 1, 1) >= 100_000 + 900);
    // All of it is the provider's.
    let (_, cleared) = self::block(&mut world, &[sent(0, 2, withdraw(pool, 50_000))]);
    assert_eq!(cleared.pool_changes[0].amounts.map(Amount::get), reserves);
}

#[test]
fn there_is_room_for_so_many_pools() {
    let most = walras_types::limits::POOLS_MAX as u32;
    // So that all but one, each with 64, could have them, and one more that has nothing.
    let (per_account, last) = (64, most / 64 + 1);
    let mut world = World::new(last + 2, 2_000_000);
    let poor = AccountId(3);
    [1, 2].map(AssetId).iter().for_each(|asset| world.ledger.withdraw(poor, *asset, amount(2_000_000)).unwrap());
    let new = BatchOperation::CreatePool(create([1, 2], [1_000, 1_000]));
    let ask = move |account: u32, number: u64| sent(account, number, new);
    let all: Vec<BatchTransaction> =
        (0..=last).flat_map(|account| (1..=per_account).map(move |number| ask(account, number))).collect();
    let mut shuffled = all.clone();
    Draw(1).shuffle(&mut shuffled);
    let closed = world.clone().close(&shuffled, Intake::Filter, 3);
    let dropped_for = |reason: DropReason| -> Vec<AccountId> {
        let dropped = closed.dropped.iter().filter(|(_, why)| *why == reason);
        dropped.map(|(place, _)| shuffled[*place as usize].account).collect()
    };
    assert_eq!(dropped_for(DropReason::TooManyPools), [AccountId(last); 64]);
    assert_eq!((closed.kept_count, dropped_for(DropReason::Overdraft)), (most, vec![poor; 64]));
    let (dropped, _) = block(&mut world, &all);
    assert_eq!((dropped.len() as u32, world.batch.pools().len() as u32), (2 * 64, most));
    let (dropped, _) = block(&mut world, &[ask(last + 1, 1)]);
    assert_eq!(dropped, [(0, DropReason::TooManyPools)]);
    assert_eq!(block(&mut world, &[sent(0, 65, withdraw(name(0, 1), 1_000))]).0, []);
    assert_eq!(block(&mut world, &[ask(last + 1, 2)]).0, []);
}
