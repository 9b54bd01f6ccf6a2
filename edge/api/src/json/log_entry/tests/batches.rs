//! Commands of batch markets and clearings, read back from their lines.

use std::num::NonZero;

use walras_types::{
    AccountFee, BatchMarketId, BatchOperation, BatchPhase, BatchPrice, BatchTransaction, CancelOffer, Commission, CreateOffer,
    CreatePool, DepositToPool, Intake, IssuedAmount, Joined, LowerBounds, Mu, OfferName, PPB_ALL, Payment, PoolRule, PublicKey,
    QualityMax, Rounding, TransactionSeq, TransactionTerms, WithdrawFromPool,
};
use walras_wire::batch::{
    BlockProposal, BlockRoots, Certificate, OfferKeyWire, PairTradeWire, PoolSideWire, PoolTradeWire, SignedTransaction,
};
use walras_wire::{
    AddBatchAsset, BatchMarketSpec, CloseBatch, SetAccountFee, SetAccountKey, SetBatchInterval, SetBatchPhase, SetIssuer,
    StepBlock, SubmitTransaction,
};

use super::*;

const MARKET: BatchMarketId = BatchMarketId(3);

/// One of each kind, and a transaction of each operation.
pub(super) fn commands() -> Vec<Command> {
    let (account, asset, key) = (AccountId(4), AssetId(2), PublicKey(std::array::from_fn(|at| 250 - at as u8)));
    let spec = |commission, intake, lower_bounds| BatchMarketSpec {
        market: MARKET,
        symbol: Symbol::new("MAIN").unwrap(),
        commission,
        mu: Mu::new(10).unwrap(),
        lower_bounds,
        quality: QualityMax { gap_ppb: 50_000_000, unserved_ppb: PPB_ALL },
        intake,
        interval_ns: EXACT_BELOW,
        transactions_max: 100_000,
        domain: [0xab; 32],
    };
    let limit = BatchPrice::from_decimal("1.25", Rounding::Up).unwrap();
    let (sell, buy, amount, sequence) = (AssetId(1), AssetId(0), Amount::MAX, TransactionSeq(9));
    let (pool, amounts) = (OfferName { account: AccountId(5), sequence }, [Amount::MAX, Amount::ZERO]);
    let create =
        |rule| BatchOperation::CreatePool(CreatePool { market: MARKET, assets: [sell, buy], rule, fee_ppm: 3_000, amounts });
    let operations = [
        BatchOperation::CreateAccount(key),
        BatchOperation::CreateOffer(CreateOffer { market: MARKET, sell, buy, amount, limit }),
        BatchOperation::CancelOffer(CancelOffer { market: MARKET, sell, buy, limit, tie: u64::MAX, sequence }),
        BatchOperation::Payment(Payment { to: AccountId(5), asset, amount }),
        BatchOperation::Issue(IssuedAmount { asset, amount }),
        BatchOperation::Burn(IssuedAmount { asset, amount }),
        create(PoolRule::ConstantProduct),
        create(PoolRule::Weighted { weights: [80, 20] }),
        create(PoolRule::StableSwap { amplification: 85 }),
        BatchOperation::DepositToPool(DepositToPool { market: MARKET, pool, amounts }),
        BatchOperation::WithdrawFromPool(WithdrawFromPool { market: MARKET, pool, shares: amount }),
        BatchOperation::SetKey(key),
    ];
    let submit = |operation, terms| {
        let transaction = BatchTransaction::new(account, TransactionSeq(77), operation).with_terms(terms);
        let signed = SignedTransaction { transaction, signature: std::array::from_fn(|at| at as u8) };
        Command::Batch(BatchCommand::Submit(SubmitTransaction::new(MARKET, &signed).unwrap()))
    };
    let mut all = vec![
        Command::BatchMarket(BatchMarketCommand::Create(spec(Commission::NONE, Intake::Filter, LowerBounds::Required))),
        Command::BatchMarket(BatchMarketCommand::Create(spec(
            Commission::new(15).unwrap(),
            Intake::Reserve,
            LowerBounds::BestEffort,
        ))),
        Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market: MARKET, asset })),
        Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market: MARKET, phase: BatchPhase::Open })),
        Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market: MARKET, phase: BatchPhase::Closed })),
        Command::BatchMarket(BatchMarketCommand::SetInterval(SetBatchInterval { market: MARKET, interval_ns: 500_000_000 })),
        Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market: MARKET, fee: None })),
        Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee {
            market: MARKET,
            fee: Some(AccountFee { asset, amount: Amount::MAX }),
        })),
        Command::BatchMarket(BatchMarketCommand::SetCurrencies(SetBatchCurrencies { market: MARKET, currencies: 10 })),
        Command::Account(AccountCommand::SetKey(SetAccountKey { account, key })),
        Command::Venue(VenueCommand::SetIssuer(SetIssuer { asset, account })),
        Command::Batch(BatchCommand::Close(CloseBatch { market: MARKET, block: 12 })),
        Command::Batch(BatchCommand::Step(StepBlock { market: MARKET, block: 12, step: 345 })),
    ];
    let until = NonZero::new(EXACT_BELOW);
    all.push(submit(operations[1], TransactionTerms { until, ..TransactionTerms::NONE }));
    let of_chain = [0, 1, 2].map(|place| Joined::of_chain(place, 3));
    all.extend(of_chain.map(|joined| submit(operations[3], TransactionTerms { until, joined })));
    all.extend(operations.map(|operation| submit(operation, TransactionTerms { until: None, joined: Joined::Next })));
    all.extend(operations.map(|operation| submit(operation, TransactionTerms::NONE)));
    all
}

/// The command of a kind, if it is a batch market's.
pub(super) fn read_command(kind: &str, f: &mut Fields) -> Option<Command> {
    Some(match kind {
        "create_batch_market" => Command::BatchMarket(BatchMarketCommand::Create(BatchMarketSpec {
            market: market(f),
            symbol: Symbol::new(&f.text("symbol")).unwrap(),
            commission: f
                .maybe_number("commission_exponent")
                .map_or(Commission::NONE, |k| Commission::new(u8::try_from(k).unwrap()).unwrap()),
            mu: Mu::new(u8::try_from(f.small("mu_exponent")).unwrap()).unwrap(),
            lower_bounds: names::parse_lower_bounds(&f.text("lower_bounds")).unwrap(),
            quality: QualityMax { gap_ppb: f.small("gap_ppb_max"), unserved_ppb: f.small("unserved_ppb_max") },
            intake: names::parse_intake(&f.text("intake")).unwrap(),
            interval_ns: f.number("interval_ns"),
            transactions_max: f.small("transactions_max"),
            domain: read_hash(&f.text("domain")),
        })),
        "add_batch_asset" => {
            Command::BatchMarket(BatchMarketCommand::AddAsset(AddBatchAsset { market: market(f), asset: asset(f, "asset_id") }))
        }
        "set_batch_phase" => Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase {
            market: market(f),
            phase: names::parse_batch_phase(&f.text("phase")).unwrap(),
        })),
        "set_batch_interval" => Command::BatchMarket(BatchMarketCommand::SetInterval(SetBatchInterval {
            market: market(f),
            interval_ns: f.number("interval_ns"),
        })),
        "set_account_fee" => {
            let market = market(f);
            let fee = f.maybe_number("amount_units").map(|units| Amount::new(units).unwrap());
            let fee = fee.map(|amount| AccountFee { asset: asset(f, "asset_id"), amount });
            Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market, fee }))
        }
        "set_batch_currencies" => Command::BatchMarket(BatchMarketCommand::SetCurrencies(SetBatchCurrencies {
            market: market(f),
            currencies: u16::try_from(f.small("currencies")).unwrap(),
        })),
        "set_account_key" => Command::Account(AccountCommand::SetKey(SetAccountKey {
            account: f.account(),
            key: PublicKey(read_hash(&f.text("key"))),
        })),
        "set_issuer" => Command::Venue(VenueCommand::SetIssuer(SetIssuer { asset: asset(f, "asset_id"), account: f.account() })),
        "submit_transaction" => {
            let market = market(f);
            let transaction = read_transaction(f.object("transaction"));
            let text = f.text("signature");
            let (head, tail) = text.split_at(64);
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(&read_hash(head));
            signature[32..].copy_from_slice(&read_hash(tail));
            Command::Batch(BatchCommand::Submit(
                SubmitTransaction::new(market, &SignedTransaction { transaction, signature }).unwrap(),
            ))
        }
        "close_batch" => Command::Batch(BatchCommand::Close(CloseBatch { market: market(f), block: f.number("block") })),
        "step_block" => Command::Batch(BatchCommand::Step(StepBlock {
            market: market(f),
            block: f.number("block"),
            step: f.number("step").try_into().unwrap(),
        })),
        _ => return None,
    })
}

fn market(f: &mut Fields) -> BatchMarketId {
    BatchMarketId(u16::try_from(f.small("batch_market_id")).unwrap())
}

fn asset(f: &mut Fields, key: &str) -> AssetId {
    AssetId(f.small(key))
}

fn amount(f: &mut Fields, key: &str) -> Amount {
    Amount::new(f.number(key)).unwrap()
}

fn bits(f: &mut Fields, key: &str) -> BatchPrice {
    BatchPrice::from_bits(f.number(key)).unwrap()
}

fn amounts(f: &mut Fields) -> [Amount; 2] {
    let both = f.take("amounts_units");
    [0, 1].map(|place| Amount::new(number_of(&both[place])).unwrap())
}

fn pool(f: &mut Fields) -> OfferName {
    OfferName { account: AccountId(f.small("pool_account_id")), sequence: TransactionSeq(f.number("pool_sequence")) }
}

fn rule(f: &mut Fields) -> PoolRule {
    match f.text("rule").as_str() {
        "constant_product" => PoolRule::ConstantProduct,
        "weighted" => {
            let weights = f.take("weights");
            PoolRule::Weighted { weights: [0, 1].map(|place| u16::try_from(weights[place].as_u64().unwrap()).unwrap()) }
        }
        "stable_swap" => PoolRule::StableSwap { amplification: f.small("amplification") },
        other => panic!("{other}"),
    }
}

fn read_transaction(mut f: Fields) -> BatchTransaction {
    let kind = f.text("kind");
    let (account, sequence) = (f.account(), TransactionSeq(f.number("sequence")));
    let until = f.maybe_number("until_block").map(|block| NonZero::new(block).unwrap());
    let is_with_next = f.maybe("joined").is_some_and(|joined| joined.as_bool().unwrap());
    let joined = match f.maybe("chain") {
        None if is_with_next => Joined::Next,
        None => Joined::No,
        Some(place) => match place.as_str().unwrap() {
            "first" => Joined::First,
            "middle" => Joined::Middle,
            "last" => Joined::Last,
            other => panic!("{other}"),
        },
    };
    let terms = TransactionTerms { until, joined };
    let f = &mut f;
    let operation = match kind.as_str() {
        "create_account" => BatchOperation::CreateAccount(PublicKey(read_hash(&f.text("key")))),
        "set_key" => BatchOperation::SetKey(PublicKey(read_hash(&f.text("key")))),
        "create_offer" => BatchOperation::CreateOffer(CreateOffer {
            market: market(f),
            sell: asset(f, "sell_asset_id"),
            buy: asset(f, "buy_asset_id"),
            amount: amount(f, "amount_units"),
            limit: bits(f, "limit_bits"),
        }),
        "cancel_offer" => BatchOperation::CancelOffer(CancelOffer {
            market: market(f),
            sell: asset(f, "sell_asset_id"),
            buy: asset(f, "buy_asset_id"),
            limit: bits(f, "limit_bits"),
            tie: f.number("tie"),
            sequence: TransactionSeq(f.number("offer_sequence")),
        }),
        "payment" => BatchOperation::Payment(Payment {
            to: AccountId(f.small("to_account_id")),
            asset: asset(f, "asset_id"),
            amount: amount(f, "amount_units"),
        }),
        "issue" => BatchOperation::Issue(IssuedAmount { asset: asset(f, "asset_id"), amount: amount(f, "amount_units") }),
        "burn" => BatchOperation::Burn(IssuedAmount { asset: asset(f, "asset_id"), amount: amount(f, "amount_units") }),
        "create_pool" => BatchOperation::CreatePool(CreatePool {
            market: market(f),
            assets: [asset(f, "first_asset_id"), asset(f, "second_asset_id")],
            rule: rule(f),
            fee_ppm: f.small("fee_ppm"),
            amounts: amounts(f),
        }),
        "deposit_to_pool" => BatchOperation::DepositToPool(DepositToPool { market: market(f), pool: pool(f), amounts: amounts(f) }),
        "withdraw_from_pool" => {
            BatchOperation::WithdrawFromPool(WithdrawFromPool { market: market(f), pool: pool(f), shares: amount(f, "shares") })
        }
        other => panic!("{other}"),
    };
    let left = std::mem::replace(f, Fields(serde_json::Map::new()));
    left.end();
    BatchTransaction::new(account, sequence, operation).with_terms(terms)
}

#[test]
fn a_clearing_says_all_that_the_log_holds() {
    let price = |text| BatchPrice::from_decimal(text, Rounding::Down).ok();
    let marginal = OfferKeyWire { limit: price("0.5").unwrap(), tie: u64::MAX, id: 5 };
    let block = BlockProposal {
        market: MARKET,
        number: 7,
        parent: [1; 32],
        batch_hash: [2; 32],
        prices: vec![price("1"), None, price("1.25")],
        trades: vec![PairTradeWire {
            sell: 0,
            buy: 2,
            sold: Amount::MAX,
            bought_by_buy_offers: Amount::ZERO,
            marginal: Some(marginal),
        }],
        pools: vec![PoolTradeWire { pool: 1, side: PoolSideWire::Second, sold: Amount::new(3).unwrap() }],
        certificate: Certificate { gap_ppb: 120, unserved_ppb: 7, potentials: vec![0, -1, i64::MAX] },
        roots: Some(BlockRoots { accounts: [3; 32], offers: [4; 32], state: [5; 32] }),
    };
    let line = entry(&Entry {
        log_index: LogIndex(9),
        time: TimeNs(8),
        ordinal: None,
        key: None,
        nonce: None,
        content: block.clone().into(),
    });
    let mut read = Fields::of(line);
    assert_eq!((read.number("log_index"), read.number("time_ns")), (9, 8));
    let mut f = read.object("clearing");
    read.end();
    assert_eq!((market(&mut f), f.number("block")), (MARKET, 7));
    assert_eq!((read_hash(&f.text("parent")), read_hash(&f.text("batch_hash"))), ([1; 32], [2; 32]));
    let bits: Vec<_> = block.prices.iter().map(|p| p.map_or(Value::Null, |p| p.bits().to_string().into())).collect();
    assert_eq!(f.take("price_bits"), Value::from(bits));
    let of = |value: &Value| value.as_array().unwrap().iter().cloned().map(Fields::of).collect::<Vec<_>>();
    let mut trade = of(&f.take("trades")).remove(0);
    assert_eq!((trade.small("sell_index"), trade.small("buy_index")), (0, 2));
    assert_eq!((amount(&mut trade, "sold_units"), trade.number("bought_by_buy_offers_units")), (Amount::MAX, 0));
    let mut key = trade.object("marginal");
    trade.end();
    assert_eq!((self::bits(&mut key, "limit_bits"), key.number("tie"), key.number("offer")), (marginal.limit, u64::MAX, 5));
    key.end();
    let mut pool = of(&f.take("pool_trades")).remove(0);
    assert_eq!((pool.small("pool"), pool.text("side"), pool.number("sold_units")), (1, "second".to_owned(), 3));
    pool.end();
    let mut certificate = f.object("certificate");
    assert_eq!((certificate.small("gap_ppb"), certificate.small("unserved_ppb")), (120, 7));
    assert_eq!(certificate.take("potentials"), Value::from(vec!["0".to_owned(), "-1".to_owned(), i64::MAX.to_string()]));
    certificate.end();
    let mut roots = f.object("roots");
    let hashes = ["accounts", "offers", "state"].map(|name| read_hash(&roots.text(name)));
    assert_eq!(hashes, [[3; 32], [4; 32], [5; 32]]);
    roots.end();
    f.end();
}
