//! The Python package encodes and signs every operation in Python: what its tests expect is made here, by the code that reads them.
//!
//! `WALRAS_WRITE_VECTORS=1 cargo test -p walras-batch-signatures --test batch_signatures python_vector` writes the file
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
    DepositToPool, IssuedAmount, Joined, OfferName, Payment, PoolRule, PublicKey, Rounding, TransactionSeq, TransactionTerms,
    WithdrawFromPool,
};
use walras_wire::batch::{SigningDomain, encode_signed_transaction, encode_transaction};

use crate::vectors::{SEED, compare, hex, place_in_chain};

const DOMAIN: [u8; 32] = [9; 32];

/// Numbers for a transaction: small and different ones, the least ones, the greatest ones.
struct Numbers {
    market: u16,
    account: u32,
    assets: [u32; 2],
    amounts: [u64; 2],
    sequence: u64,
    price: BatchPrice,
    tie: u64,
    key: u8,
    fee_ppm: u32,
    weights: [u16; 2],
    amplification: u32,
    until: u64,
    joined: Joined,
}

impl Numbers {
    fn terms(&self) -> TransactionTerms {
        TransactionTerms { until: NonZero::new(self.until), joined: self.joined }
    }
}

fn numbers() -> [Numbers; 3] {
    [
        Numbers {
            market: 1,
            account: 3,
            assets: [4, 5],
            amounts: [100_000, 7],
            sequence: 17,
            price: BatchPrice::from_decimal("1.0832", Rounding::Up).unwrap(),
            tie: 0x0123_4567_89ab_cdef,
            key: 7,
            fee_ppm: 3_000,
            weights: [80, 20],
            amplification: 200,
            until: 4_112,
            joined: Joined::Middle,
        },
        Numbers {
            market: 0,
            account: 0,
            assets: [0, 1],
            amounts: [0, 0],
            sequence: 0,
            price: BatchPrice::ZERO,
            tie: 0,
            key: 0,
            fee_ppm: 0,
            weights: [1, 1],
            amplification: 1,
            until: 0,
            joined: Joined::No,
        },
        Numbers {
            market: u16::MAX,
            account: ACCOUNTS_MAX - 1,
            assets: [ASSETS_MAX - 1, ASSETS_MAX - 2],
            amounts: [AMOUNT_MAX, AMOUNT_MAX - 1],
            sequence: TRANSACTION_SEQ_END - 1,
            price: BatchPrice::MAX,
            tie: u64::MAX,
            key: u8::MAX,
            fee_ppm: POOL_FEE_PPM_MAX,
            weights: [POOL_WEIGHT_MAX, POOL_WEIGHT_MAX],
            amplification: POOL_AMPLIFICATION_MAX,
            until: UNTIL_BLOCK_END - 1,
            joined: Joined::Next,
        },
    ]
}

/// Every operation with these numbers, its class in Python and that class's fields.
fn operations(n: &Numbers) -> Vec<(BatchOperation, &'static str, Value)> {
    let (market, key, sequence) = (BatchMarketId(n.market), PublicKey([n.key; 32]), TransactionSeq(n.sequence));
    let assets = n.assets.map(AssetId);
    let amounts = n.amounts.map(|amount| Amount::new(amount).unwrap());
    let ([sell, buy], [amount, other]) = (assets, amounts);
    let pool = OfferName { account: AccountId(n.account), sequence };
    let pool_name = json!([n.account, n.sequence]);
    let created = |rule| BatchOperation::CreatePool(CreatePool { market, assets, rule, fee_ppm: n.fee_ppm, amounts });
    let pool_fields = |more: Value| {
        let mut fields = json!({
            "market": n.market, "first": sell.0, "second": buy.0, "first_amount": amount.get(), "second_amount": other.get(),
            "fee_ppm": n.fee_ppm,
        });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    vec![
        (BatchOperation::CreateAccount(key), "CreateAccount", json!({"key": hex(&key.0)})),
        (
            BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit: n.price }),
            "CreateOffer",
            json!({"market": n.market, "sell": sell.0, "buy": buy.0, "amount": amount.get(), "limit": n.price.bits()}),
        ),
        (
            BatchOperation::CancelOffer(CancelOffer { market, sell, buy, limit: n.price, tie: n.tie, sequence }),
            "CancelOffer",
            json!({
                "market": n.market, "sell": sell.0, "buy": buy.0, "limit": n.price.bits(), "tie": n.tie, "sequence": n.sequence,
            }),
        ),
        (
            BatchOperation::Payment(Payment { to: AccountId(n.account), asset: sell, amount }),
            "Payment",
            json!({"to": n.account, "asset": sell.0, "amount": amount.get()}),
        ),
        (BatchOperation::Issue(IssuedAmount { asset: sell, amount }), "Issue", json!({"asset": sell.0, "amount": amount.get()})),
        (BatchOperation::Burn(IssuedAmount { asset: sell, amount }), "Burn", json!({"asset": sell.0, "amount": amount.get()})),
        (created(PoolRule::ConstantProduct), "CreatePool", pool_fields(json!({}))),
        (created(PoolRule::Weighted { weights: n.weights }), "CreatePool", pool_fields(json!({"weights": n.weights}))),
        (
            created(PoolRule::StableSwap { amplification: n.amplification }),
            "CreatePool",
            pool_fields(json!({"amplification": n.amplification})),
        ),
        (
            BatchOperation::DepositToPool(DepositToPool { market, pool, amounts }),
            "DepositToPool",
            json!({"market": n.market, "pool": pool_name, "first_amount": amount.get(), "second_amount": other.get()}),
        ),
        (
            BatchOperation::WithdrawFromPool(WithdrawFromPool { market, pool, shares: amount }),
            "WithdrawFromPool",
            json!({"market": n.market, "pool": pool_name, "shares": amount.get()}),
        ),
        (BatchOperation::SetKey(key), "SetKey", json!({"key": hex(&key.0)})),
    ]
}

fn vector() -> Value {
    let (key, domain) = (SigningKey::from_seed(&SEED), SigningDomain::new(&DOMAIN));
    let row = |n: &Numbers, (operation, class, fields): (BatchOperation, &str, Value)| {
        let transaction = BatchTransaction::new(AccountId(n.account), TransactionSeq(n.sequence), operation).with_terms(n.terms());
        let (mut bytes, mut signed) = (Vec::new(), Vec::new());
        encode_transaction(&transaction, &mut bytes);
        encode_signed_transaction(&key.sign(&domain, &transaction), &mut signed);
        json!({
            "account": n.account, "sequence": n.sequence, "until": n.terms().until.map(NonZero::get),
            "joined": n.joined == Joined::Next, "chain": place_in_chain(n.joined), "class": class, "fields": fields,
            "transaction": hex(&bytes), "signed": hex(&signed),
        })
    };
    let mut rows = Vec::new();
    for n in numbers() {
        rows.extend(operations(&n).into_iter().map(|one| row(&n, one)));
    }
    json!({
        "about": "Made by edge/batch-signatures/tests/batch_signatures/python_vector.rs, which compares it.",
        "seed": hex(&SEED), "public_key": hex(&key.public_key().0), "domain": hex(&DOMAIN),
        "transactions": rows,
    })
}

#[test]
fn python_signs_what_the_venue_reads() {
    compare("sdk/python/tests/transactions.json", &vector());
}
