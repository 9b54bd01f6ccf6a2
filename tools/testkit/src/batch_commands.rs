//! Commands of batch markets, and clearings of their batches, made of choices.

use walras_batch::{Certificate, PoolView, ProposedClearing};
use walras_clearing::{BatchMarket, PairTrade, PoolIndex, PoolSide, PoolTrade, Proposal, Rules, verify};
use walras_engine::{Engine, PriceIndex};
use walras_types::limits::AMOUNT_MAX;
use walras_types::{
    AccountFee, AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPhase, BatchPrice, BatchTransaction, CancelOffer,
    Commission, CreateOffer, CreatePool, DepositToPool, Intake, IssuedAmount, LowerBounds, Mu, NetRate, OfferName, Payment,
    PoolRule, PublicKey, QualityMax, Rounding, Symbol, TransactionSeq, WithdrawFromPool,
};
use walras_wire::batch::{BlockProposal, BlockRoots, PoolSideWire, PoolTradeWire, SignedTransaction};
use walras_wire::{
    AccountCommand, AddBatchAsset, BatchCommand, BatchMarketCommand, BatchMarketSpec, CloseBatch, Command, SetAccountFee,
    SetAccountKey, SetBatchCurrencies, SetBatchInterval, SetBatchPhase, SetIssuer, StepBlock, SubmitTransaction, VenueCommand,
};

use crate::Choices;
use crate::commands::{ACCOUNTS, ASSETS};

fn account(c: &mut Choices<'_>) -> AccountId {
    AccountId(c.below(u64::from(ACCOUNTS) + 2) as u32)
}

fn asset(c: &mut Choices<'_>) -> AssetId {
    let beyond = u32::from(c.one_in(20));
    AssetId(c.below(u64::from(ASSETS + beyond)) as u32)
}

fn market(c: &mut Choices<'_>) -> BatchMarketId {
    BatchMarketId(c.weighted(&[30, 8, 1]) as u16)
}

fn key(c: &mut Choices<'_>) -> PublicKey {
    PublicKey([c.below(12) as u8; 32])
}

/// Seldom one that no account has.
pub(crate) fn amount(c: &mut Choices<'_>) -> Amount {
    let units = match c.weighted(&[20, 2, 1]) {
        0 => c.within(1, 400),
        1 => c.pick(&[0, 1, AMOUNT_MAX / 2, AMOUNT_MAX]),
        _ => c.any() & AMOUNT_MAX,
    };
    Amount::new(units).expect("at most the largest amount")
}

fn limit(c: &mut Choices<'_>) -> BatchPrice {
    let text = c.pick(&["0.5", "0.9", "1", "1", "1.1", "2", "0.0000001", "100000000"]);
    if c.one_in(12) { BatchPrice::ZERO } else { BatchPrice::from_decimal(text, Rounding::Up).expect("a decimal number") }
}

fn spec(c: &mut Choices<'_>, market: BatchMarketId) -> BatchMarketSpec {
    let commission = c.pick(&[Commission::new(15), Commission::new(3), None]).unwrap_or(Commission::NONE);
    BatchMarketSpec {
        market,
        symbol: Symbol::new(c.pick(&["MAIN", "SIDE", "X"])).expect("a symbol"),
        commission,
        mu: Mu::new(c.pick(&[1, 1, 2, 10, 30])).expect("in range"),
        lower_bounds: c.pick(&[LowerBounds::BestEffort, LowerBounds::BestEffort, LowerBounds::Required]),
        quality: c.pick(&[
            QualityMax::NONE,
            QualityMax::NONE,
            QualityMax { gap_ppb: 50_000_000, unserved_ppb: 50_000_000 },
            QualityMax { gap_ppb: 0, unserved_ppb: u32::MAX },
        ]),
        intake: c.pick(&[Intake::Filter, Intake::Reserve]),
        interval_ns: c.pick(&[1_000_000, 500_000_000, 500_000_000, 0, u64::MAX]),
        transactions_max: c.pick(&[100, 100, 3, 1, 0, u32::MAX]),
        domain: [c.byte(); 32],
    }
}

/// What makes two batch markets and opens the first, and gives accounts their keys.
pub fn opening(c: &mut Choices<'_>) -> Vec<Command> {
    let mut all = Vec::new();
    for market in [0, 1].map(BatchMarketId) {
        let mut spec = spec(c, market);
        (spec.commission, spec.mu) = (Commission::new(15).expect("in range"), Mu::new(2).expect("in range"));
        (spec.interval_ns, spec.transactions_max) = (1_000_000, 60);
        spec.quality = QualityMax::NONE;
        spec.symbol = Symbol::new(["MAIN", "SIDE"][usize::from(market.0)]).expect("a symbol");
        all.push(Command::BatchMarket(BatchMarketCommand::Create(spec)));
        if market == BatchMarketId(1) {
            // Its other assets trade with the first only; earlier versions refuse this, and all of them trade with each other.
            let set = SetBatchCurrencies { market, currencies: 1 };
            all.push(Command::BatchMarket(BatchMarketCommand::SetCurrencies(set)));
        }
        all.extend(
            (0..ASSETS)
                .map(|asset| Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market, asset: AssetId(asset) }))),
        );
        all.push(Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market, phase: BatchPhase::Open })));
    }
    let key = |account: u32| PublicKey([account as u8; 32]);
    all.extend(
        (0..ACCOUNTS).map(|a| Command::Account(AccountCommand::SetKey(SetAccountKey { account: AccountId(a), key: key(a) }))),
    );
    all.extend(
        (0..ASSETS).map(|a| Command::Venue(VenueCommand::SetIssuer(SetIssuer { asset: AssetId(a), account: AccountId(a) }))),
    );
    all
}

/// Any command of batch markets; most take effect.
pub fn command<I: PriceIndex>(c: &mut Choices<'_>, engine: &Engine<I>) -> Command {
    let market = market(c);
    if let Some(next) = engine.next_block_step(market)
        && c.below(3) > 0
    {
        let block = engine.batch_market(market).map_or(1, |market| market.next_block);
        let step = if c.one_in(12) { c.any() as u32 } else { next.number };
        return Command::Batch(BatchCommand::Step(StepBlock { market, block, step }));
    }
    match c.weighted(&[40, 8, 2, 1, 1, 1, 1, 1, 1]) {
        0 => submit(c, engine, market),
        1 => {
            let next = engine.batch_market(market).map_or(1, |market| market.next_block);
            Command::Batch(BatchCommand::Close(CloseBatch { market, block: if c.one_in(12) { c.any() } else { next } }))
        }
        2 => {
            let phase = [BatchPhase::Open, BatchPhase::Closed][c.weighted(&[4, 1])];
            Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market, phase }))
        }
        3 => Command::BatchMarket(BatchMarketCommand::Create(spec(c, market))),
        4 => Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market, asset: asset(c) })),
        5 => Command::BatchMarket(BatchMarketCommand::SetInterval(SetBatchInterval {
            market,
            interval_ns: c.pick(&[0, 1_000_000, u64::MAX]),
        })),
        6 => Command::Account(AccountCommand::SetKey(SetAccountKey { account: account(c), key: key(c) })),
        7 => {
            let fee = c.below(3) > 0;
            let fee = fee.then(|| AccountFee { asset: asset(c), amount: amount(c) });
            Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market, fee }))
        }
        _ => Command::Venue(VenueCommand::SetIssuer(SetIssuer { asset: asset(c), account: account(c) })),
    }
}

fn submit<I: PriceIndex>(c: &mut Choices<'_>, engine: &Engine<I>, market: BatchMarketId) -> Command {
    let account = account(c);
    let next = engine.next_transaction(account).0;
    let sequence = match c.weighted(&[20, 2, 1]) {
        0 => next,
        1 => next + c.below(66),
        _ => c.below(4),
    };
    let (sell, buy) = (asset(c), asset(c));
    let named = if c.one_in(20) { BatchMarketId(c.below(3) as u16) } else { market };
    let operation = match c.weighted(&[20, 6, 4, 2, 2, 2, 6, 2]) {
        0 => BatchOperation::CreateOffer(CreateOffer { market: named, sell, buy, amount: amount(c), limit: limit(c) }),
        1 => standing(c, engine, named, account).map_or(BatchOperation::CreateAccount(key(c)), BatchOperation::CancelOffer),
        2 => BatchOperation::Payment(Payment { to: self::account(c), asset: sell, amount: amount(c) }),
        3 => BatchOperation::CreateAccount(PublicKey([c.byte(); 32])),
        4 => BatchOperation::Issue(IssuedAmount { asset: sell, amount: amount(c) }),
        5 => BatchOperation::Burn(IssuedAmount { asset: sell, amount: amount(c) }),
        6 => of_pools(c, engine, named, account, [sell, buy]),
        _ => BatchOperation::SetKey(if c.one_in(4) { PublicKey([c.byte(); 32]) } else { key(c) }),
    };
    let transaction = BatchTransaction::new(account, TransactionSeq(sequence), operation);
    let signed = SignedTransaction { transaction, signature: [c.byte(); 64] };
    SubmitTransaction::new(market, &signed).map_or(Command::Venue(VenueCommand::Tick), |c| Command::Batch(BatchCommand::Submit(c)))
}

/// A pool created, added to or left.
fn of_pools<I: PriceIndex>(
    c: &mut Choices<'_>,
    engine: &Engine<I>,
    market: BatchMarketId,
    account: AccountId,
    assets: [AssetId; 2],
) -> BatchOperation {
    let pools: Vec<PoolView> = engine.pools(market).collect();
    let pool = pools.get(c.below(pools.len() as u64 + 1) as usize);
    let Some(PoolView { name, .. }) = pool.copied() else {
        let rule = match c.below(3) {
            0 => PoolRule::ConstantProduct,
            1 => PoolRule::Weighted { weights: [1 + c.below(9) as u16, 1 + c.below(9) as u16] },
            _ => PoolRule::StableSwap { amplification: 1 + c.below(1_000) as u32 },
        };
        let amounts = [0, 1].map(|_| if c.one_in(8) { amount(c) } else { small(1_000 + c.below(200)) });
        let fee_ppm = c.pick(&[0, 3_000, 3_000, 100_000, u32::MAX]);
        return BatchOperation::CreatePool(CreatePool { market, assets, rule, fee_ppm, amounts });
    };
    let own = engine.pool_shares(market, name, account).get();
    if own > 0 && c.one_in(2) {
        let shares = if c.one_in(2) { own } else { c.below(own + 2) };
        return BatchOperation::WithdrawFromPool(WithdrawFromPool { market, pool: name, shares: small(shares) });
    }
    BatchOperation::DepositToPool(DepositToPool { market, pool: name, amounts: [amount(c), amount(c)] })
}

fn small(units: u64) -> Amount {
    Amount::new(units).expect("far below the largest amount")
}

/// An offer that stands, of the account if it has one.
fn standing<I: PriceIndex>(
    c: &mut Choices<'_>,
    engine: &Engine<I>,
    market: BatchMarketId,
    account: AccountId,
) -> Option<CancelOffer> {
    let view = engine.batch_market(market)?;
    let books = view.market?.books().iter();
    let all = books.flat_map(|book| book.sells().as_slice().iter().map(|offer| (book.pair(), offer.key())));
    let (own, others): (Vec<_>, Vec<_>) = all.partition(|(_, key)| OfferName::of_number(key.id.0).account == account);
    let of = if own.is_empty() || c.one_in(12) { others } else { own };
    let (pair, key) = *of.get(c.below(of.len().max(1) as u64) as usize)?;
    let sequence = OfferName::of_number(key.id.0).sequence;
    let [sell, buy] = [pair.sell, pair.buy].map(|index| view.assets[index.index()]);
    Some(CancelOffer { market, sell, buy, limit: key.limit, tie: key.tie, sequence })
}

/// What pools sell to the first offers that want what they sell.
fn pool_trades(market: &BatchMarket, proposal: &Proposal, rules: &Rules) -> Vec<PoolTrade> {
    let mut trades = Vec::new();
    for (index, pool) in (0..).map(PoolIndex).zip(market.pools()) {
        for side in [PoolSide::First, PoolSide::Second] {
            let pair = pool.pair(side);
            let price = |asset: walras_clearing::AssetIndex| proposal.prices[asset.index()];
            let Some(rate) = price(pair.sell).zip(price(pair.buy)).and_then(|(a, b)| NetRate::new(a, b, rules.commission)) else {
                continue;
            };
            let most = pool.sold_most(side, &rate);
            if !most.is_zero() && trades.last().is_none_or(|last: &PoolTrade| last.pool < index) {
                trades.push(PoolTrade { pool: index, side, sold: most });
            }
        }
    }
    trades
}

/// A clearing for a market's closed batch, if one waits: nothing trades, or what crosses at a random price does; sometimes changed.
pub fn clearing<I: PriceIndex>(c: &mut Choices<'_>, engine: &Engine<I>) -> Option<BlockProposal> {
    let id = market(c);
    let (place, market, rules, _) = engine.batch_to_clear(id)?;
    let price = |c: &mut Choices<'_>| BatchPrice::from_decimal(c.pick(&["1", "1", "0.9", "2"]), Rounding::Up).ok();
    let prices = (0..market.asset_count()).map(|_| price(c)).collect();
    let mut proposal = Proposal { prices, ..Proposal::default() };
    if c.one_in(2) {
        // As much both ways of a pair as the smaller side has.
        for book in market.books() {
            let back = market.book(walras_clearing::Pair { sell: book.pair().buy, buy: book.pair().sell });
            let units =
                |book: &walras_clearing::PairBook| book.sells().as_slice().iter().map(|o| u128::from(o.amount().get())).sum();
            let other: u128 = back.map_or(0, units);
            let sold = Amount::from_wide(other.min(units(book))).filter(|sold| !sold.is_zero());
            let pair = book.pair();
            proposal.trades.extend(sold.map(|sold| PairTrade { pair, sold, bought_by_buy_offers: Amount::ZERO }));
        }
    }
    if c.one_in(2) {
        proposal.pools = pool_trades(&market, &proposal, &rules);
    }
    if verify(&market, &proposal, &rules).is_err() {
        proposal.trades.clear();
    }
    if verify(&market, &proposal, &rules).is_err() {
        proposal.pools.clear();
    }
    let certificate = Certificate::find(&market, &proposal, &rules);
    let proposed = match verify(&market, &proposal, &rules) {
        Ok(verified) => ProposedClearing::new(place, proposal.clone(), &verified, certificate),
        Err(_) => ProposedClearing { place: Some(place), proposal, certificate, ..ProposedClearing::default() },
    };
    let mut wire = proposed.to_wire(id)?;
    match c.below(24) {
        0 => wire.number = c.any(),
        1 => wire.parent[0] ^= 1,
        2 => wire.batch_hash[31] ^= 1,
        3 => wire.prices.truncate(1),
        4 => wire.roots = Some(BlockRoots { accounts: [1; 32], offers: [2; 32], state: [3; 32] }),
        5 => wire.market = BatchMarketId(c.below(4) as u16),
        6 => wire.trades.iter_mut().for_each(|trade| trade.sold = Amount::MAX),
        7 => wire.trades.iter_mut().filter_map(|trade| trade.marginal.as_mut()).for_each(|key| key.tie ^= 1),
        8 => {
            wire.certificate.potentials.iter_mut().for_each(|potential| *potential = c.any() as i64);
            wire.certificate.gap_ppb = 0;
        }
        9 => wire.trades.iter_mut().for_each(|trade| trade.sell = u16::MAX),
        10 => wire.trades.reverse(),
        11 => wire.certificate.unserved_ppb ^= 1,
        12 => wire.pools.iter_mut().for_each(|trade| trade.sold = Amount::MAX),
        13 => wire.pools.push(PoolTradeWire { pool: u32::MAX, side: PoolSideWire::Second, sold: small(1) }),
        _ => {}
    }
    Some(wire)
}
