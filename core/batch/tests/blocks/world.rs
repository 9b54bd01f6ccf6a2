//! A small venue, random transactions that collide, and proposals that clear.

use std::collections::BTreeMap;
use std::num::NonZero;

use walras_batch::{
    Accounts, Batch, BatchSettings, Certificate, Cleared, Closed, Intake, PoolView, ProposedClearing, QualityMax, check_restored,
};
use walras_clearing::{
    AssetIndex, BatchMarket, Edition, LowerBounds, OfferKey, Pair, PairTrade, PartLimit, PoolIndex, PoolSide, PoolTrade, Proposal,
    Rules, honourable_sold, verify,
};
use walras_ledger::Ledger;
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, Commission,
    CreateOffer, CreatePool, DepositToPool, IssuedAmount, Mu, NetRate, OfferName, Payment, PoolRule, PublicKey, Rounding,
    TransactionSeq, WithdrawFromPool,
};

/// A multiplicative generator: tests draw what proptest's seed says.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Below the first bound in so many of a hundred cases, else below the second.
    pub(crate) fn below_either(&mut self, percent: u64, rarely: u64, mostly: u64) -> u64 {
        let bound = if self.chance(percent) { rarely } else { mostly };
        self.below(bound)
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

pub(crate) fn threads(count: usize) -> NonZero<usize> {
    NonZero::new(count).unwrap()
}

pub(crate) fn amount(units: u64) -> Amount {
    Amount::new(units).unwrap()
}

pub(crate) fn price(num: u64, den: u64) -> BatchPrice {
    BatchPrice::from_ratio(num.into(), den.into(), Rounding::Down).unwrap()
}

pub(crate) fn key(number: u64) -> PublicKey {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&number.to_le_bytes());
    PublicKey(key)
}

pub(crate) fn sent(account: u32, sequence: u64, operation: BatchOperation) -> BatchTransaction {
    BatchTransaction::new(AccountId(account), TransactionSeq(sequence), operation)
}

/// A clearing in which nothing trades.
pub(crate) fn nothing(world: &World) -> ProposedClearing {
    ProposedClearing::of_nothing(world.batch.market())
}

pub(crate) const MARKET: BatchMarketId = BatchMarketId(7);
pub(crate) const ASSETS: u32 = 5;

/// Everything that a block changes.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) ledger: Ledger,
    pub(crate) accounts: Accounts,
    pub(crate) batch: Batch,
    /// So many of a hundred transactions are on pools.
    pub(crate) on_pools: u64,
}

impl World {
    /// Accounts with something of each asset; assets 0 to 2 are in the market as 1, 2, 0, account 0 issues asset 1 and account 1 asset 4.
    pub(crate) fn new(account_count: u32, units: u64) -> Self {
        let rules = Rules {
            edition: Edition::NEWEST,
            commission: Commission::new(8).unwrap(),
            mu: Mu::new(6).unwrap(),
            lower_bounds: LowerBounds::BestEffort,
        };
        Self::with_rules(account_count, units, rules)
    }

    /// Without limits of what may be left undone: proposals are random.
    pub(crate) fn with_rules(account_count: u32, units: u64, rules: Rules) -> Self {
        Self::with_quality(account_count, units, rules, QualityMax::NONE)
    }

    pub(crate) fn with_quality(account_count: u32, units: u64, rules: Rules, quality: QualityMax) -> Self {
        let mut ledger = Ledger::new();
        for _ in 0..account_count {
            ledger.create_account().unwrap();
        }
        for asset in (0..ASSETS).map(AssetId) {
            ledger.create_asset().unwrap();
            (0..account_count).for_each(|account| ledger.deposit(AccountId(account), asset, amount(units)).unwrap());
        }
        let mut accounts = Accounts::new();
        accounts.set_issuer(AssetId(1), AccountId(0)).unwrap();
        accounts.set_issuer(AssetId(4), AccountId(1)).unwrap();
        accounts.set_key(AccountId(0), key(1_000)).unwrap();
        let assets = vec![AssetId(1), AssetId(2), AssetId(0)];
        let batch =
            Batch::new(BatchSettings { market: MARKET, assets, currencies: None, rules, quality, account_fee: None }).unwrap();
        Self { ledger, accounts, batch, on_pools: 0 }
    }

    /// A third of all markets have one currency, so two of their assets do not trade with each other; a third have two, so all do.
    pub(crate) fn with_drawn_currencies(mut self, draw: &mut Draw) -> Self {
        let currencies = Some(draw.below(3) as u16).filter(|currencies| *currencies > 0);
        self.batch = Batch::new(BatchSettings { currencies, ..self.batch.settings().clone() }).unwrap();
        self
    }

    /// From the next batch on an account costs little of some asset, or much, or nothing.
    pub(crate) fn charge(&mut self, draw: &mut Draw) {
        let asset = AssetId(draw.below(ASSETS.into()) as u32);
        let fee = AccountFee { asset, amount: amount(1 + draw.below_either(30, 300, 20)) };
        self.batch.set_account_fee(draw.chance(70).then_some(fee));
    }

    pub(crate) fn close(&mut self, transactions: &[BatchTransaction], intake: Intake, thread_count: usize) -> Closed {
        self.batch.close(&mut self.ledger, &mut self.accounts, transactions, intake, threads(thread_count)).unwrap()
    }

    pub(crate) fn clear(&mut self, block: &ProposedClearing, thread_count: usize) -> Result<Cleared, walras_batch::BlockRejected> {
        self.batch.clear(&mut self.ledger, &mut self.accounts, block, threads(thread_count))
    }

    /// The bytes of all three.
    pub(crate) fn bytes(&self) -> [Vec<u8>; 3] {
        let mut all = [const { Vec::new() }; 3];
        let [ledger, accounts, batch] = &mut all;
        self.ledger.snapshot(&mut |bytes| ledger.extend_from_slice(bytes));
        self.accounts.snapshot(&mut |bytes| accounts.extend_from_slice(bytes));
        self.batch.snapshot(&mut |bytes| batch.extend_from_slice(bytes));
        all
    }

    pub(crate) fn restored(&self) -> Self {
        let [ledger, accounts, batch] = self.bytes();
        Self {
            ledger: Ledger::restore(&ledger).unwrap(),
            accounts: Accounts::restore(&accounts).unwrap(),
            batch: Batch::restore(&batch).unwrap(),
            on_pools: self.on_pools,
        }
    }

    /// Checks what holds between blocks: no asset made or lost, and reserved is exactly what stands.
    pub(crate) fn check(&self) {
        self.ledger.check_invariants();
        self.batch.check_invariants(&self.ledger);
        check_restored([&self.batch].into_iter(), &self.accounts, &self.ledger).unwrap();
        let mut standing: BTreeMap<(AccountId, AssetId), u64> = BTreeMap::new();
        for book in self.batch.market().books() {
            for offer in book.sells().as_slice() {
                let account = OfferName::of_number(offer.key().id.0).account;
                let asset = self.batch.settings().assets[book.pair().sell.index()];
                *standing.entry((account, asset)).or_default() += offer.amount().get();
            }
        }
        if self.batch.closed().is_none() {
            for account in (0..self.ledger.account_count()).map(AccountId) {
                for asset in (0..ASSETS).map(AssetId) {
                    let reserved = self.ledger.balance(account, asset).unwrap().reserved.get();
                    assert_eq!(reserved, standing.get(&(account, asset)).copied().unwrap_or(0), "{account} {asset}");
                }
            }
        }
    }
}

/// Random transactions; `wild` percent of their parts are wrong.
pub(crate) fn transactions(world: &World, draw: &mut Draw, count: usize, wild: u64) -> Vec<BatchTransaction> {
    let account_count = u64::from(world.ledger.account_count());
    let standing: Vec<(Pair, OfferKey)> = (world.batch.market().books().iter())
        .flat_map(|book| book.sells().as_slice().iter().map(|offer| (book.pair(), offer.key())))
        .collect();
    let mut next: BTreeMap<u32, u64> = BTreeMap::new();
    (0..count)
        .map(|_| {
            let account = AccountId(draw.below(account_count) as u32);
            let number = next.entry(account.0).or_insert(world.accounts.last(account).0);
            *number += 1 + draw.below(3);
            let mut transaction =
                BatchTransaction::new(account, TransactionSeq(*number), operation(world, draw, account, &standing, wild));
            if draw.chance(wild) {
                match draw.below(4) {
                    0 => transaction.sequence.0 = draw.below(80),
                    1 => transaction.sequence.0 += 1 << 38,
                    2 => transaction.account.0 = draw.below(account_count + 2) as u32,
                    _ => transaction.sequence.0 -= 1,
                }
            }
            // Cancels are sent by those who own the offers, mostly.
            if let BatchOperation::CancelOffer(cancel) = &mut transaction.operation
                && let Some((_, key)) = standing.iter().find(|(_, key)| (key.limit, key.tie) == (cancel.limit, cancel.tie))
            {
                let owner = OfferName::of_number(key.id.0).account;
                let number = next.entry(owner.0).or_insert(world.accounts.last(owner).0);
                *number += 1;
                (transaction.account, transaction.sequence) = (owner, TransactionSeq(*number));
            }
            transaction
        })
        .collect()
}

fn operation(world: &World, draw: &mut Draw, account: AccountId, standing: &[(Pair, OfferKey)], wild: u64) -> BatchOperation {
    let asset = |draw: &mut Draw, right: u32| AssetId(draw.below_either(wild, 9, right.into()) as u32);
    let units = |draw: &mut Draw| match draw.below_either(wild, 4, 2) {
        0 => amount(1 + draw.below(50)),
        1 => amount(1 + draw.below(5)),
        2 => amount(draw.below(2_000)),
        _ => amount(u64::MAX / 2 - draw.below(3)),
    };
    let account_count = u64::from(world.ledger.account_count());
    if world.on_pools > 0 && draw.chance(world.on_pools) {
        return pool_operation(world, draw, account, wild);
    }
    match draw.below(20) {
        0 => BatchOperation::CreateAccount(key(draw.below_either(wild, 4, 1 << 40) + 998)),
        1 | 2 => {
            let to = AccountId(draw.below_either(wild, account_count + 1, account_count) as u32);
            let to = if to == account && !draw.chance(wild) { AccountId(u32::from(account.0 == 0)) } else { to };
            BatchOperation::Payment(Payment { to, asset: asset(draw, ASSETS), amount: units(draw) })
        }
        3 if account.0 < 2 || draw.chance(wild) => {
            let own = AssetId(if account.0 == 0 { 1 } else { 4 });
            let moved = IssuedAmount { asset: if draw.chance(wild) { asset(draw, ASSETS) } else { own }, amount: units(draw) };
            if draw.chance(50) { BatchOperation::Issue(moved) } else { BatchOperation::Burn(moved) }
        }
        4..=6 if !standing.is_empty() => {
            let (pair, key) = standing[draw.below(standing.len() as u64) as usize];
            let of = |index: AssetIndex| world.batch.settings().assets[index.index()];
            BatchOperation::CancelOffer(CancelOffer {
                market: BatchMarketId(7 + u16::from(draw.chance(wild / 2))),
                sell: of(pair.sell),
                buy: if draw.chance(wild) { asset(draw, 3) } else { of(pair.buy) },
                limit: key.limit,
                tie: key.tie,
                sequence: OfferName::of_number(key.id.0).sequence,
            })
        }
        _ => {
            let sell = asset(draw, 3);
            let mut buy = asset(draw, 3);
            if buy == sell && !draw.chance(wild) {
                buy = AssetId((sell.0 + 1) % 3);
            }
            let limit = if draw.chance(5) { BatchPrice::ZERO } else { price(80 + draw.below(40), 100) };
            let limit = if draw.chance(wild) { BatchPrice::MAX } else { limit };
            let market = BatchMarketId(7 + u16::from(draw.chance(wild / 2)));
            BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount: units(draw), limit })
        }
    }
}

/// What an account asks of pools, its own often.
fn pool_operation(world: &World, draw: &mut Draw, account: AccountId, wild: u64) -> BatchOperation {
    let market = BatchMarketId(7 + u16::from(draw.chance(wild / 2)));
    let views: Vec<PoolView> = world.batch.pools().collect();
    let units = |draw: &mut Draw| amount(draw.below_either(30, 20, 400));
    let view = (!views.is_empty()).then(|| views[draw.below(views.len() as u64) as usize]);
    let Some(view) = view.filter(|_| !draw.chance(15)) else {
        let first = draw.below_either(wild, 9, 3) as u32;
        let second = if draw.chance(wild) { first } else { (first + 1 + draw.below(2) as u32) % 3 };
        let rule = match draw.below(3) {
            0 => PoolRule::ConstantProduct,
            1 => PoolRule::Weighted { weights: [1 + draw.below(4) as u16, 1 + draw.below(4) as u16] },
            _ => PoolRule::StableSwap { amplification: 1 << draw.below(12) },
        };
        let fee_ppm = if draw.chance(wild) { 100_001 } else { draw.below(3) as u32 * 3_000 };
        // Near a price of one, where the others trade, or anywhere.
        let least = 1_000 - u64::from(draw.chance(wild));
        let both = draw.below(3_000);
        let amounts = [0, 1].map(|_| amount(least + if draw.chance(70) { both + draw.below(100) } else { draw.below(3_000) }));
        return BatchOperation::CreatePool(CreatePool { market, assets: [first, second].map(AssetId), rule, fee_ppm, amounts });
    };
    let pool =
        OfferName { account: view.name.account, sequence: TransactionSeq(view.name.sequence.0 + u64::from(draw.chance(wild))) };
    let own = world.batch.pool_shares(view.name, account).get();
    if own > 0 && draw.chance(60) || draw.chance(wild) {
        let shares = match draw.below(3) {
            0 => own,
            1 => own / 2,
            _ => draw.below(own + 2),
        };
        return BatchOperation::WithdrawFromPool(WithdrawFromPool { market, pool, shares: amount(shares) });
    }
    BatchOperation::DepositToPool(DepositToPool { market, pool, amounts: [units(draw), units(draw)] })
}

/// A clearing that the core accepts, at random prices: all that can trade, then less of what buys assets that are short.
pub(crate) fn proposal(market: &BatchMarket, rules: &Rules, draw: &mut Draw) -> Proposal {
    let parts = market.parts();
    // Parts that are set aside, and what is in none.
    let has_price: Vec<bool> = (0..=parts.count()).map(|_| !draw.chance(8)).collect();
    let mut of_asset = |asset| {
        let has_price = has_price[parts.of(AssetIndex(asset)).unwrap_or(parts.count())];
        has_price.then(|| price(95 + draw.below(11), 100))
    };
    let prices: Vec<Option<BatchPrice>> = (0..market.asset_count() as u16).map(&mut of_asset).collect();
    let mut trades: Vec<(PairTrade, NetRate)> = Vec::new();
    for book in market.books() {
        let pair = book.pair();
        let (Some(sell), Some(buy)) = (prices[pair.sell.index()], prices[pair.buy.index()]) else { continue };
        let rate = NetRate::new(sell, buy, rules.commission).unwrap();
        let most = book.sells().units_holding(&rate, rules.edition, Amount::MAX);
        trades.push((PairTrade { pair, sold: most, bought_by_buy_offers: Amount::ZERO }, rate));
    }
    let mut pools = pool_trades(market, &prices, rules, draw);
    loop {
        let mut left = vec![0_i128; market.asset_count()];
        for (pair, sold, bought) in pools.iter().map(|(_, pair, sold, bought)| (pair, sold, bought)) {
            left[pair.sell.index()] += i128::from(sold.get());
            left[pair.buy.index()] -= i128::from(bought.get());
        }
        for (trade, rate) in &trades {
            left[trade.pair.sell.index()] += i128::from(trade.sold.get());
            left[trade.pair.buy.index()] -= i128::from(rate.bought_down(trade.sold).unwrap().get());
        }
        let Some(short) = left.iter().position(|left| *left < 0) else { break };
        if let Some(at) = pools.iter().position(|(_, pair, ..)| pair.buy.index() == short && draw.chance(50)) {
            let missing = (-left[short]).unsigned_abs() as u64;
            match less_of_pool(market, &prices, rules, pools[at].0, missing) {
                Some(trade) => pools[at] = trade,
                None => _ = pools.remove(at),
            }
            continue;
        }
        let buyers = trades.iter_mut().filter(|(trade, _)| trade.pair.buy.index() == short && !trade.sold.is_zero());
        let Some((trade, rate)) = buyers.max_by_key(|(trade, _)| trade.sold) else {
            pools.retain(|(_, pair, ..)| pair.buy.index() != short);
            continue;
        };
        trade.sold = less(market, trade, rate, rules.edition, (-left[short]).unsigned_abs() as u64);
    }
    let trades = trades.into_iter().map(|(trade, _)| trade).filter(|trade| !trade.sold.is_zero()).collect();
    let pools = pools.into_iter().map(|(trade, ..)| trade).collect();
    Proposal { prices, trades, pools }
}

/// A trade of a pool that buys so much less; nothing where nothing is left.
fn less_of_pool(
    market: &BatchMarket,
    prices: &[Option<BatchPrice>],
    rules: &Rules,
    trade: PoolTrade,
    missing: u64,
) -> Option<(PoolTrade, Pair, Amount, Amount)> {
    let pool = &market.pools()[trade.pool.0 as usize];
    let pair = pool.pair(trade.side);
    let rate = NetRate::new(prices[pair.sell.index()]?, prices[pair.buy.index()]?, rules.commission)?;
    let sold = trade.sold.checked_sub(rate.sold_up(amount(missing))?).filter(|sold| !sold.is_zero())?;
    let bought = rate.bought_up(sold)?;
    pool.accepts(trade.side, &rate, sold, bought).then_some((PoolTrade { sold, ..trade }, pair, sold, bought))
}

/// What each pool may sell at these prices, or a part of it, with what it gets.
fn pool_trades(
    market: &BatchMarket,
    prices: &[Option<BatchPrice>],
    rules: &Rules,
    draw: &mut Draw,
) -> Vec<(PoolTrade, Pair, Amount, Amount)> {
    let mut trades = Vec::new();
    for (index, pool) in (0..).map(PoolIndex).zip(market.pools()) {
        for side in [PoolSide::First, PoolSide::Second] {
            let pair = pool.pair(side);
            let (Some(sell), Some(buy)) = (prices[pair.sell.index()], prices[pair.buy.index()]) else { continue };
            let rate = NetRate::new(sell, buy, rules.commission).unwrap();
            let most = pool.sold_most(side, &rate);
            let sold = if draw.chance(60) { most } else { amount(draw.below(most.get() + 1)) };
            let bought = rate.bought_up(sold).unwrap();
            if !sold.is_zero() && pool.accepts(side, &rate, sold, bought) {
                trades.push((PoolTrade { pool: index, side, sold }, pair, sold, bought));
            }
        }
    }
    trades
}

/// Less of a trade, with a part that whole units can honour.
fn less(market: &BatchMarket, trade: &PairTrade, rate: &NetRate, edition: Edition, by: u64) -> Amount {
    let sells = market.book(trade.pair).unwrap().sells();
    let sold = amount(trade.sold.get().saturating_sub(by.max(1)));
    let split = sells.split(sold).unwrap();
    if split.part.is_zero() {
        return sold;
    }
    let part = honourable_sold(PartLimit::of(&sells.as_slice()[split.full_count], edition), rate, split.part);
    amount(sold.get() - split.part.get() + part.get())
}

/// A venue after a first block, and what is sent for the next.
pub(crate) fn after_a_block(draw: &mut Draw) -> (World, Vec<BatchTransaction>) {
    let mut world = World::new(8, 300);
    let sent = transactions(&world, draw, 60, 1);
    world.close(&sent, Intake::Reserve, 1);
    let block = proposed(&world, draw);
    world.clear(&block, 1).unwrap();
    let sent = transactions(&world, draw, 40, 1);
    (world, sent)
}

/// The proposal with its marginal keys.
pub(crate) fn proposed(world: &World, draw: &mut Draw) -> ProposedClearing {
    let rules = world.batch.settings().rules;
    with_marginal(world, proposal(world.batch.market(), &rules, draw))
}

pub(crate) fn trade(sell: u16, buy: u16, sold: u64) -> PairTrade {
    let pair = Pair { sell: AssetIndex(sell), buy: AssetIndex(buy) };
    PairTrade { pair, sold: amount(sold), bought_by_buy_offers: Amount::ZERO }
}

pub(crate) fn with_marginal(world: &World, proposal: Proposal) -> ProposedClearing {
    let (market, rules) = (world.batch.market(), &world.batch.settings().rules);
    let verified = verify(market, &proposal, rules).unwrap();
    let key_of = |clearing| Some((verified.fills(clearing).marginal_sell()?, clearing.pair));
    let marginal = verified.pairs().iter().filter_map(key_of).map(|(key, pair)| (pair, key)).collect();
    let certificate = Certificate::find(market, &proposal, rules);
    ProposedClearing { marginal, proposal, certificate, ..ProposedClearing::default() }
}
