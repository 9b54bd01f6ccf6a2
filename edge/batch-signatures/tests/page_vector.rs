//! The page encodes and signs transactions in TypeScript, and makes limits of what people type: what its tests expect is made here.
//!
//! `WALRAS_WRITE_VECTORS=1 cargo test -p walras-batch-signatures --test page_vector` writes the file again; without it the test
//! compares.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "this test reads and writes a file of another part of the repository")]

use std::num::NonZero;

use serde_json::{Value, json};
use walras_batch_signatures::SigningKey;
use walras_types::limits::{ACCOUNTS_MAX, AMOUNT_MAX, ASSETS_MAX, TRANSACTION_SEQ_END, UNTIL_BLOCK_END};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, CreateOffer, Rounding,
    TransactionSeq, TransactionTerms,
};
use walras_wire::batch::{SigningDomain, encode_signed_transaction, encode_transaction};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/test/transaction-vector.json");
const SEED: [u8; 32] = [3; 32];
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

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

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
    let until = |block| TransactionTerms { until: NonZero::new(block), is_joined: false };
    let joined = TransactionTerms { until: None, is_joined: true };
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
        ("a cancel that is joined", transaction(3, 21, cancel(0, 1, 0, stated, 7, 17)).with_terms(joined)),
        (
            "a cancel that is joined and has the latest last block",
            transaction(3, 22, cancel(0, 1, 0, stated, 7, 18))
                .with_terms(TransactionTerms { is_joined: true, ..until(UNTIL_BLOCK_END - 1) }),
        ),
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

fn fields(transaction: &BatchTransaction) -> Value {
    let head = |operation: &str, fields: Value| {
        let TransactionTerms { until, is_joined } = transaction.terms;
        json!({
            "account_id": transaction.account.0, "sequence": transaction.sequence.0.to_string(), "operation": operation, "fields": fields,
            "until": until.map(|block| block.to_string()), "joined": is_joined,
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
        _ => panic!("the page makes no such transaction"),
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
        "about": "Made by edge/batch-signatures/tests/page_vector.rs, which compares it; the page's tests read it.",
        "seed": hex(&SEED), "public_key": hex(&key.public_key().0), "domain": hex(&GENESIS),
        "transactions": transactions().iter().map(signed).collect::<Vec<_>>(),
        "limits": LIMITS.iter().map(limit).collect::<Vec<_>>(),
    })
}

#[test]
fn the_page_signs_what_the_venue_reads() {
    let expected = vector();
    if std::env::var_os("WALRAS_WRITE_VECTORS").is_some() {
        std::fs::write(FILE, serde_json::to_string_pretty(&expected).unwrap() + "\n").unwrap();
    }
    match std::fs::read_to_string(FILE) {
        Ok(text) => {
            let written: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                written, expected,
                "web/test/transaction-vector.json is not this test's: write it again (see the head of this file)"
            );
        }
        Err(_) => println!("skipped: there is no web/test/transaction-vector.json"),
    }
}
