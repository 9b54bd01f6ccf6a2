//! A batch offer: `cargo run -p walras-client --example batch_offer URL KEYFILE ACCOUNT SEQUENCE MARKET SELL_ID BUY_ID UNITS LIMIT`.

use serde_json::{Value, json};
use walras_batch_signatures::SigningKey;
use walras_client::{Client, read_key};
use walras_types::{AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice};
use walras_types::{BatchTransaction, CreateOffer, Rounding, TransactionSeq, TransactionTerms};
use walras_wire::batch::{SigningDomain, encode_signed_transaction};

/// Sells smallest units of an asset for those of another, at so many for each at least; the venue's answer.
pub(crate) fn run(args: &[String]) -> Result<Value, Box<dyn std::error::Error>> {
    let [url, key, account, seq, name, sell, buy, units, limit] = args else { return Err("give all nine arguments".into()) };
    let (client, key) = (Client::new(url, None), read_key(key.as_ref())?);
    let batches = client.get("/v1/batches")?;
    let batch = batches["batches"].as_array().into_iter().flatten().find(|batch| batch["name"] == *name).ok_or("no such market")?;
    let digits = |at: usize| batch["domain"].as_str().and_then(|text| text.get(2 * at..2 * at + 2)).unwrap_or_default();
    let domain: Vec<u8> = (0..32).map(|at| u8::from_str_radix(digits(at), 16)).collect::<Result<_, _>>()?;
    let number = |name: &str| batch[name].to_string().trim_matches('"').parse::<u64>();
    let market = BatchMarketId(number("market_id")?.try_into()?);
    let (amount, limit) = (Amount::new(units.parse()?).ok_or("no such amount")?, BatchPrice::from_decimal(limit, Rounding::Up)?);
    let offer = CreateOffer { market, sell: AssetId(sell.parse()?), buy: AssetId(buy.parse()?), amount, limit };
    let until = std::num::NonZero::new(number("collecting_block")? + 120_000 / number("interval_ms")?.max(1)); // in two minutes
    let sent = BatchTransaction::new(AccountId(account.parse()?), TransactionSeq(seq.parse()?), BatchOperation::CreateOffer(offer));
    let sent = sent.with_terms(TransactionTerms { until, ..TransactionTerms::NONE });
    let (key, mut bytes) = (SigningKey::from_seed(&*key.ed25519_seed().ok_or("an Ed25519 key is needed")?), Vec::new());
    encode_signed_transaction(&key.sign(&SigningDomain::new(domain.as_slice().try_into()?), &sent), &mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(client.post(&format!("/v1/batches/{name}/transactions"), &json!({"transactions": [hex]}))?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>()).map(|answer| println!("{answer}"))
}
