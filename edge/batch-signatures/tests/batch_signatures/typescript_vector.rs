//! The TypeScript client encodes and signs transactions, and makes limits of what people type: what its tests expect is made here.
//!
//! `WALRAS_WRITE_VECTORS=1 cargo test -p walras-batch-signatures --test batch_signatures typescript_vector` writes the file
//! again; without it the test compares.
#![allow(clippy::disallowed_methods, reason = "this test reads and writes a file of another part of the repository")]

use std::num::NonZero;

use serde_json::{Value, json};
use walras_batch_signatures::SigningKey;
use walras_types::limits::{
    ACCOUNTS_MAX, AMOUNT_MAX, ASSETS_MAX, POOL_AMPLIFICATION_MAX, POOL_FEE_PPM_MAX, POOL_WEIGHT_MAX, TRANSACTION_SEQ_END,
    UNTIL_BLOCK_END,
};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, CreateOffer, CreatePool,
    DepositToPool, IssuedAmount, Joined, OfferName, Payment, PoolRule, Rounding, TransactionSeq, TransactionTerms,
    WithdrawFromPool,
};
use walras_wire::batch::{SigningDomain, encode_signed_transaction, encode_transaction};

use crate::vectors::{SEED, compare, hex, place_in_chain};

const GENESIS: [u8; 32] = [9; 32];

/// Limits as people type them, with the decimals of the asset sold and of the asset bought.
const LIMITS: &[(&str, u32, u32)] = &[
    ("1", 2, 2),
    ("1.0832", 2, 2),
    ("0.1", 0, 0),
    ("0.3", 0, 0),
    (".5", 0, 0),
    ("2.", 0, 0),
    ("007.500", 3, 3),
    ("4503599627370497.5", 0, 0),
    ("9007199254740992", 0, 0),
    ("9007199254740993", 0, 0),
    ("9007199254740991.00000000000000000001", 0, 0),
    ("1.99999999999999999999", 0, 0),
    ("1.0832", 8, 2),
    ("1.0832", 2, 8),
    ("61234.56", 8, 2),
    ("0.00001633", 2, 8),
    ("0.00000000000000000000000000000000000001", 0, 0),
    ("0.00000000000000000000000000000000000002", 0, 0),
    ("85070591730234615865843651857942052863", 0, 0),
    ("85070591730234615865843651857942052864", 0, 0),
    ("85070591730234615865843651857942052865", 0, 0),
    ("0.000000000000000000000000000000000001", 8, 2),
    ("1", 18, 0),
    ("1", 0, 18),
    ("123456789.123456789", 9, 6),
];

/// The limit in smallest units of one asset for a smallest unit of the other, never below what was typed; `null` out of range.
fn limit(&(text, sell_decimals, buy_decimals): &(&str, u32, u32)) -> Value {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().unwrap();
    let numerator = digits.checked_mul(10_u128.pow(buy_decimals)).unwrap();
    let denominator = 10_u128.checked_pow(u32::try_from(fraction.len()).unwrap() + sell_decimals);
    let price = denominator.and_then(|denominator| BatchPrice::from_ratio(numerator, denominator, Rounding::Up).ok());
    if sell_decimals == buy_decimals {
        assert_eq!(price, BatchPrice::from_decimal(text, Rounding::Up).ok(), "{text}: equal decimals make the limit that is typed");
    }
    let bits = price.map(|price| price.bits().to_string());
    let amounts = [1, 3, 99_999, 1_000_000_007, AMOUNT_MAX];
    let bought = |amount| {
        let bought = price.and_then(|price| price.bought_at_least(Amount::new(amount).unwrap()));
        json!([amount.to_string(), bought.map(|bought| bought.get().to_string())])
    };
    json!({
        "text": text, "sell_decimals": sell_decimals, "buy_decimals": buy_decimals, "bits": bits,
        "bought_at_least": if price.is_some() { amounts.map(bought).to_vec() } else { Vec::new() },
    })
}

fn transactions() -> Vec<(&'static str, BatchTransaction)> {
    let transaction = |account, sequence, operation| BatchTransaction::new(AccountId(account), TransactionSeq(sequence), operation);
    let offer = |market, sell, buy, amount, limit| {
        let (sell, buy, amount) = (AssetId(sell), AssetId(buy), Amount::new(amount).unwrap());
        BatchOperation::CreateOffer(CreateOffer { market: BatchMarketId(market), sell, buy, amount, limit })
    };
    let cancel = |market, sell, buy, limit, tie, sequence| {
        let (sell, buy, sequence) = (AssetId(sell), AssetId(buy), TransactionSeq(sequence));
        BatchOperation::CancelOffer(CancelOffer { market: BatchMarketId(market), sell, buy, limit, tie, sequence })
    };
    let stated = BatchPrice::from_decimal("1.0832", Rounding::Up).unwrap();
    let until = |block| TransactionTerms { until: NonZero::new(block), joined: Joined::No };
    let joined = |joined| TransactionTerms { until: None, joined };
    vec![
        ("an offer with a limit", transaction(3, 17, offer(0, 1, 0, 100_000, stated))),
        ("an offer at any price", transaction(3, 18, offer(0, 1, 0, 1, BatchPrice::ZERO))),
        (
            "an offer with everything at its most",
            transaction(
                ACCOUNTS_MAX - 1,
                TRANSACTION_SEQ_END - 1,
                offer(u16::MAX, ASSETS_MAX - 1, ASSETS_MAX - 2, AMOUNT_MAX, BatchPrice::MAX),
            ),
        ),
        ("an offer with a last block", transaction(3, 20, offer(0, 1, 0, 100_000, stated)).with_terms(until(4_112))),
        ("a cancel that is joined", transaction(3, 21, cancel(0, 1, 0, stated, 7, 17)).with_terms(joined(Joined::Next))),
        (
            "a cancel that is joined and has the latest last block",
            transaction(3, 22, cancel(0, 1, 0, stated, 7, 18))
                .with_terms(TransactionTerms { joined: Joined::Next, ..until(UNTIL_BLOCK_END - 1) }),
        ),
        ("the first of a chain", transaction(3, 32, cancel(0, 1, 0, stated, 7, 17)).with_terms(joined(Joined::First))),
        (
            "the middle of a chain, with a last block",
            transaction(3, 33, cancel(0, 1, 0, stated, 7, 18))
                .with_terms(TransactionTerms { joined: Joined::Middle, ..until(4_112) }),
        ),
        ("the last of a chain", transaction(3, 34, offer(0, 1, 0, 100_000, stated)).with_terms(joined(Joined::Last))),
        ("a cancel", transaction(3, 19, cancel(0, 1, 0, stated, 0x0123_4567_89ab_cdef, 17))),
        (
            "a cancel with everything at its most",
            transaction(
                ACCOUNTS_MAX - 1,
                TRANSACTION_SEQ_END - 1,
                cancel(u16::MAX, ASSETS_MAX - 1, ASSETS_MAX - 2, BatchPrice::MIN, u64::MAX, TRANSACTION_SEQ_END - 2),
            ),
        ),
    ]
}

/// The operations that are no offers.
fn other_transactions() -> Vec<(&'static str, BatchTransaction)> {
    let transaction = |account, sequence, operation| BatchTransaction::new(AccountId(account), TransactionSeq(sequence), operation);
    let most = |operation| transaction(ACCOUNTS_MAX - 1, TRANSACTION_SEQ_END - 1, operation);
    let amount = |units| Amount::new(units).unwrap();
    let issued = |asset, units| IssuedAmount { asset: AssetId(asset), amount: amount(units) };
    let pool = |market, assets: [u32; 2], rule, fee_ppm, amounts: [u64; 2]| {
        let (assets, amounts) = (assets.map(AssetId), amounts.map(amount));
        BatchOperation::CreatePool(CreatePool { market: BatchMarketId(market), assets, rule, fee_ppm, amounts })
    };
    let name = |account, sequence| OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) };
    let last_name = name(ACCOUNTS_MAX - 1, TRANSACTION_SEQ_END - 1);
    let deposit = |market, pool, amounts: [u64; 2]| {
        BatchOperation::DepositToPool(DepositToPool { market: BatchMarketId(market), pool, amounts: amounts.map(amount) })
    };
    let withdraw = |market, pool, shares| {
        BatchOperation::WithdrawFromPool(WithdrawFromPool { market: BatchMarketId(market), pool, shares: amount(shares) })
    };
    let until = |block, joined| TransactionTerms { until: NonZero::new(block), joined };
    let key = |seed| SigningKey::from_seed(&[seed; 32]).public_key();
    let weighted = PoolRule::Weighted { weights: [80, 20] };
    let heaviest = PoolRule::Weighted { weights: [POOL_WEIGHT_MAX; 2] };
    let steepest = PoolRule::StableSwap { amplification: POOL_AMPLIFICATION_MAX };
    vec![
        ("an account for another key", transaction(3, 23, BatchOperation::CreateAccount(key(4)))),
        (
            "another key for the account, with a last block",
            transaction(3, 24, BatchOperation::SetKey(key(5))).with_terms(until(9, Joined::No)),
        ),
        (
            "a payment",
            transaction(3, 25, BatchOperation::Payment(Payment { to: AccountId(9), asset: AssetId(1), amount: amount(250) })),
        ),
        (
            "a payment with everything at its most",
            most(BatchOperation::Payment(Payment {
                to: AccountId(ACCOUNTS_MAX - 2),
                asset: AssetId(ASSETS_MAX - 1),
                amount: amount(AMOUNT_MAX),
            })),
        ),
        ("units that are issued", transaction(3, 26, BatchOperation::Issue(issued(4, 1_000_000)))),
        ("units that are burnt", transaction(3, 27, BatchOperation::Burn(issued(ASSETS_MAX - 1, AMOUNT_MAX)))),
        ("a pool of constant product", transaction(3, 28, pool(0, [0, 1], PoolRule::ConstantProduct, 3_000, [1_000, 2_000]))),
        (
            "a weighted pool that is joined",
            transaction(3, 29, pool(0, [1, 2], weighted, 0, [80_000, 20_000])).with_terms(until(0, Joined::Next)),
        ),
        (
            "a weighted pool with everything at its most",
            most(pool(u16::MAX, [ASSETS_MAX - 1, ASSETS_MAX - 2], heaviest, POOL_FEE_PPM_MAX, [AMOUNT_MAX; 2])),
        ),
        ("a stable-swap pool", most(pool(1, [2, 3], steepest, 100, [5_000_000, 5_000_001]))),
        ("a deposit to a pool", transaction(3, 30, deposit(0, name(3, 28), [500, 1_000])).with_terms(until(4_112, Joined::No))),
        ("a deposit with everything at its most", most(deposit(u16::MAX, last_name, [AMOUNT_MAX; 2]))),
        (
            "a withdrawal from a pool",
            transaction(3, 31, withdraw(0, name(3, 28), 10)).with_terms(until(UNTIL_BLOCK_END - 1, Joined::Next)),
        ),
        ("a withdrawal with everything at its most", most(withdraw(u16::MAX, last_name, AMOUNT_MAX))),
    ]
}

fn name(OfferName { account, sequence }: OfferName) -> Value {
    json!({ "account": account.0, "sequence": sequence.0.to_string() })
}

fn fields(transaction: &BatchTransaction) -> Value {
    let head = |operation: &str, fields: Value| {
        let TransactionTerms { until, joined } = transaction.terms;
        json!({
            "account_id": transaction.account.0, "sequence": transaction.sequence.0.to_string(), "operation": operation, "fields": fields,
            "until": until.map(|block| block.to_string()), "joined": joined == Joined::Next, "chain": place_in_chain(joined),
        })
    };
    match transaction.operation {
        BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit }) => head(
            "create_offer",
            json!({
                "market_id": market.0, "sell": sell.0, "buy": buy.0, "amount": amount.get().to_string(),
                "limit_bits": limit.bits().to_string(),
            }),
        ),
        BatchOperation::CancelOffer(CancelOffer { market, sell, buy, limit, tie, sequence }) => head(
            "cancel_offer",
            json!({
                "market_id": market.0, "sell": sell.0, "buy": buy.0, "limit_bits": limit.bits().to_string(), "tie": tie.to_string(),
                "sequence": sequence.0.to_string(),
            }),
        ),
        BatchOperation::CreateAccount(key) => head("create_account", json!({ "key": hex(&key.0) })),
        BatchOperation::SetKey(key) => head("set_key", json!({ "key": hex(&key.0) })),
        BatchOperation::Payment(Payment { to, asset, amount }) => {
            head("payment", json!({ "to": to.0, "asset": asset.0, "amount": amount.get().to_string() }))
        }
        BatchOperation::Issue(IssuedAmount { asset, amount }) => {
            head("issue", json!({ "asset": asset.0, "amount": amount.get().to_string() }))
        }
        BatchOperation::Burn(IssuedAmount { asset, amount }) => {
            head("burn", json!({ "asset": asset.0, "amount": amount.get().to_string() }))
        }
        BatchOperation::CreatePool(CreatePool { market, assets: [first, second], rule, fee_ppm, amounts }) => {
            let mut fields = json!({
                "market_id": market.0, "first": first.0, "second": second.0, "fee_ppm": fee_ppm,
                "amounts": amounts.map(|amount| amount.get().to_string()),
            });
            match rule {
                PoolRule::ConstantProduct => fields["rule"] = json!("constant_product"),
                PoolRule::Weighted { weights } => (fields["rule"], fields["weights"]) = (json!("weighted"), json!(weights)),
                PoolRule::StableSwap { amplification } => {
                    (fields["rule"], fields["amplification"]) = (json!("stable_swap"), json!(amplification));
                }
            }
            head("create_pool", fields)
        }
        BatchOperation::DepositToPool(DepositToPool { market, pool, amounts }) => head(
            "deposit_to_pool",
            json!({ "market_id": market.0, "pool": name(pool), "amounts": amounts.map(|amount| amount.get().to_string()) }),
        ),
        BatchOperation::WithdrawFromPool(WithdrawFromPool { market, pool, shares }) => {
            head("withdraw_from_pool", json!({ "market_id": market.0, "pool": name(pool), "shares": shares.get().to_string() }))
        }
    }
}

fn vector() -> Value {
    let key = SigningKey::from_seed(&SEED);
    let domain = SigningDomain::new(&GENESIS);
    let signed = |(name, transaction): &(&str, BatchTransaction)| {
        let (mut bytes, mut signed) = (Vec::new(), Vec::new());
        encode_transaction(transaction, &mut bytes);
        encode_signed_transaction(&key.sign(&domain, transaction), &mut signed);
        let mut vector = fields(transaction);
        vector["name"] = json!(name);
        vector["transaction"] = json!(hex(&bytes));
        vector["message"] = json!(hex(&domain.message(&bytes)));
        vector["signed"] = json!(hex(&signed));
        vector
    };
    json!({
        "about": "edge/batch-signatures/tests/batch_signatures/typescript_vector.rs makes it; the TypeScript client's tests read it.",
        "seed": hex(&SEED), "public_key": hex(&key.public_key().0), "domain": hex(&GENESIS),
        "transactions": transactions().iter().chain(&other_transactions()).map(signed).collect::<Vec<_>>(),
        "limits": LIMITS.iter().map(limit).collect::<Vec<_>>(),
    })
}

#[test]
fn the_typescript_client_signs_what_the_venue_reads() {
    compare("sdk/typescript/test/transaction-vector.json", &vector());
}
