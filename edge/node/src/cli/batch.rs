//! Batch markets from the command line: looking at them, and transactions, which are signed here.

use std::num::NonZero;

use serde_json::{Value, json};
use walras_api::json::batches::{hex, unhex};
use walras_batch_signatures::{SigningKey, check_key};
use walras_client::{Client, ClientError};
use walras_gateway::ClientKey;
use walras_ports::AssetScale;
use walras_terminal::table::{fields, table};
use walras_types::{
    AccountId, Amount, AssetId, BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, CreateOffer,
    IssuedAmount, Payment, PublicKey, Symbol, TransactionSeq, TransactionTerms,
};
use walras_wire::AssetSpec;
use walras_wire::batch::{SigningDomain, encode_signed_transaction};

use super::admin::public_key;
use super::args::{BatchCommand, IntoBatch, IssueArgs, OfferBuyArgs, OfferCommand, OfferSellArgs, PayArgs};
use super::{CliError, Output, batch_proof};

pub(super) fn rows<'a>(answer: &'a Value, field: &str) -> &'a [Value] {
    answer[field].as_array().map_or(&[], Vec::as_slice)
}

/// An account fee on one line.
fn fee_text(fee: &Value) -> Value {
    match (fee["amount"].as_str(), fee["asset"].as_str()) {
        (Some(amount), Some(asset)) => format!("{amount} {asset}").into(),
        _ => "none".into(),
    }
}

pub(super) fn wrong(what: impl Into<String>) -> CliError {
    CliError::Wrong(what.into())
}

/// `key` reads the key, which only those need who sign.
pub(super) fn batch(
    client: &Client,
    key: impl FnOnce() -> Result<Option<ClientKey>, CliError>,
    command: &BatchCommand,
) -> Result<Output, CliError> {
    match command {
        BatchCommand::List => {
            let json = client.get("/v1/batches")?;
            let columns = [
                ("batch", "name"),
                ("phase", "phase"),
                ("interval ms", "interval_ms"),
                ("collected", "collected"),
                ("standing", "standing_offers"),
                ("idle blocks", "idle_blocks"),
                ("account fee", "account_fee"),
                ("assets", "assets"),
            ];
            let mut shown = rows(&json, "batches").to_vec();
            shown.iter_mut().for_each(|batch| batch["account_fee"] = fee_text(&batch["account_fee"]));
            Ok(Output { human: table(&shown, &columns), json })
        }
        BatchCommand::Blocks { batch, limit } => {
            let json = client.get(&format!("/v1/batches/{batch}/blocks?limit={limit}"))?;
            let columns = [
                ("block", "block"),
                ("time", "time_ns"),
                ("transactions", "transactions"),
                ("dropped", "dropped"),
                ("offers traded", "offers_traded"),
                ("pairs", "pairs_traded"),
                ("gap ppb", "gap_ppb"),
                ("unserved ppb", "unserved_ppb"),
                ("set aside", "set_aside"),
                ("turnover", "turnover"),
            ];
            Ok(Output { human: table(rows(&json, "blocks"), &columns), json })
        }
        BatchCommand::Demand { batch, sell, buy } => {
            let json = client.get(&format!("/v1/batches/{batch}/demand?sell={sell}&buy={buy}"))?;
            let columns = [("price", "price"), ("supply", "supply"), ("demand", "demand")];
            Ok(Output { human: table(rows(&json, "points"), &columns), json })
        }
        BatchCommand::Outcome { sequence } => outcome(client, *sequence),
        BatchCommand::Proof { what, trusted, batch } => batch_proof::proof(client, what, trusted.as_deref(), batch),
        BatchCommand::CreateAccount { key: new, into } => {
            let new = given_key(new)?;
            Desk::open(client, key()?.as_ref(), into)?.send(BatchOperation::CreateAccount(new))
        }
        BatchCommand::SetKey { key: new, into } => {
            let new = given_key(new)?;
            Desk::open(client, key()?.as_ref(), into)?.send(BatchOperation::SetKey(new))
        }
        BatchCommand::Issue(args) => issued(client, key()?.as_ref(), args, BatchOperation::Issue),
        BatchCommand::Burn(args) => issued(client, key()?.as_ref(), args, BatchOperation::Burn),
    }
}

/// A public key, or that of a key file.
fn given_key(key: &str) -> Result<PublicKey, CliError> {
    let bytes = unhex(&public_key(key)?).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let key = PublicKey(bytes.ok_or_else(|| wrong("a public key has 64 hexadecimal digits"))?);
    check_key(&key).map_err(|e| wrong(format!("the new key: {e}")))?;
    Ok(key)
}

/// What came of one transaction, or of the last ones.
fn outcome(client: &Client, sequence: Option<u64>) -> Result<Output, CliError> {
    let json = client.signed("GET", "/v1/transactions", None)?;
    let Some(sequence) = sequence.map(|sequence| sequence.to_string()) else {
        let columns = [
            ("batch", "batch"),
            ("number", "sequence"),
            ("block", "block"),
            ("status", "status"),
            ("reason", "why"),
            ("sell", "sell"),
            ("sold", "sold"),
            ("buy", "buy"),
            ("bought", "bought"),
            ("price", "price"),
            ("standing", "standing"),
        ];
        let mut shown = rows(&json, "transactions").to_vec();
        shown.iter_mut().for_each(|one| one["why"] = one["reason"]["name"].clone());
        return Ok(Output { human: table(&shown, &columns), json });
    };
    let found = rows(&json, "transactions").iter().find(|one| one["sequence"].as_str() == Some(&sequence)).cloned();
    let json = found.ok_or_else(|| {
        wrong(format!("no transaction of yours with the number {sequence} is among the last 64: see `walras batch outcome`"))
    })?;
    Ok(Output { human: fields(&json), json })
}

/// What is needed to sign for an account in a market.
pub(super) struct Desk<'a> {
    client: &'a Client,
    name: String,
    pub(super) market: BatchMarketId,
    domain: SigningDomain,
    account: AccountId,
    next: TransactionSeq,
    terms: TransactionTerms,
    assets: Vec<AssetScale>,
    key: SigningKey,
}

impl<'a> Desk<'a> {
    pub(super) fn open(client: &'a Client, key: Option<&ClientKey>, into: &IntoBatch) -> Result<Self, CliError> {
        let IntoBatch { batch, blocks } = into;
        let key = key.ok_or(ClientError::NoKey)?;
        let seed = key
            .ed25519_seed()
            .ok_or_else(|| wrong("transactions are signed with Ed25519: name the file of an ed_ key with --key-file"))?;
        let batches = client.get("/v1/batches")?;
        let found =
            rows(&batches, "batches").iter().find(|one| one["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case(batch)));
        let found = found.ok_or_else(|| wrong(format!("the venue has no batch market {batch:?}: see `walras batch list`")))?;
        let not_a_venue = || ClientError::NotAVenue { url: client.url().to_owned(), status: 200 };
        let domain = found["domain"].as_str().and_then(unhex).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let terms = match blocks {
            None => TransactionTerms::NONE,
            Some(blocks) => {
                let now = found["collecting_block"].as_str().and_then(|text| text.parse::<NonZero<u64>>().ok());
                let last = now.map(|now| now.saturating_add(u64::from(blocks.get()) - 1));
                TransactionTerms { until: Some(last.ok_or_else(not_a_venue)?), is_joined: false }
            }
        };
        let market = found["market_id"].as_u64().and_then(|id| u16::try_from(id).ok());
        let account = client.signed("GET", "/v1/account", None)?;
        let id = account["account_id"].as_u64().and_then(|id| u32::try_from(id).ok());
        let next = account["next_sequence"].as_str().and_then(|text| text.parse().ok());
        let assets = client.get("/v1/assets")?;
        let scale = |asset: &Value| {
            let id = AssetId(u32::try_from(asset["asset_id"].as_u64()?).ok()?);
            let decimals = u8::try_from(asset["decimals"].as_u64()?).ok()?;
            AssetScale::new(AssetSpec { asset: id, symbol: Symbol::new(asset["symbol"].as_str()?)?, decimals }).ok()
        };
        let assets: Option<Vec<_>> = rows(&assets, "assets").iter().map(scale).collect();
        Ok(Self {
            client,
            name: batch.clone(),
            market: BatchMarketId(market.ok_or_else(not_a_venue)?),
            domain: SigningDomain::new(&domain.ok_or_else(not_a_venue)?),
            account: AccountId(id.ok_or_else(not_a_venue)?),
            next: TransactionSeq(next.ok_or_else(not_a_venue)?),
            terms,
            assets: assets.ok_or_else(not_a_venue)?,
            key: SigningKey::from_seed(&seed),
        })
    }

    pub(super) fn asset(&self, symbol: &str) -> Result<&AssetScale, CliError> {
        let found = self.assets.iter().find(|asset| asset.spec.symbol.as_str() == symbol);
        found.ok_or_else(|| wrong(format!("the venue has no asset {symbol:?}")))
    }

    pub(super) fn send(&self, operation: BatchOperation) -> Result<Output, CliError> {
        let transaction = BatchTransaction::new(self.account, self.next, operation).with_terms(self.terms);
        let mut bytes = Vec::new();
        encode_signed_transaction(&self.key.sign(&self.domain, &transaction), &mut bytes);
        let path = format!("/v1/batches/{}/transactions", self.name);
        let answer = self.client.post(&path, &json!({"transactions": [hex(&bytes)]}))?;
        let json = answer["results"][0].clone();
        match ClientError::of_body(409, &json) {
            Some(refused) => Err(refused.into()),
            None => Ok(Output { human: fields(&json), json }),
        }
    }
}

pub(super) fn offer(client: &Client, key: Option<&ClientKey>, command: &OfferCommand) -> Result<Output, CliError> {
    match command {
        OfferCommand::Sell(args) => sell(&Desk::open(client, key, &args.into)?, args),
        OfferCommand::Buy(args) => buy(&Desk::open(client, key, &args.into)?, args),
        OfferCommand::Cancel { sequence, into } => {
            let desk = Desk::open(client, key, into)?;
            let offers = client.signed_pages("/v1/offers", "offers")?;
            let digits = sequence.to_string();
            let found = rows(&offers, "offers").iter().find(|offer| offer["sequence"].as_str() == Some(&digits));
            let found = found
                .ok_or_else(|| wrong(format!("no offer of yours with the number {sequence} stands: see `walras offer list`")))?;
            let number = |field: &str| found[field].as_str().and_then(|text| text.parse::<u64>().ok());
            let limit = number("limit_bits").and_then(|bits| BatchPrice::from_bits(bits).ok());
            let (Some(limit), Some(tie)) = (limit, number("tie")) else {
                return Err(wrong("the venue's answer has no place of the offer"));
            };
            let asset = |field: &str| Ok::<_, CliError>(desk.asset(found[field].as_str().unwrap_or_default())?.spec.asset);
            let (sell, buy) = (asset("sell")?, asset("buy")?);
            let sequence = TransactionSeq(*sequence);
            desk.send(BatchOperation::CancelOffer(CancelOffer { market: desk.market, sell, buy, limit, tie, sequence }))
        }
        OfferCommand::List => {
            let json = client.signed_pages("/v1/offers", "offers")?;
            let columns = [
                ("batch", "batch"),
                ("number", "sequence"),
                ("sell", "sell"),
                ("amount", "amount"),
                ("buy", "buy"),
                ("price", "stated_price"),
                ("block", "block"),
            ];
            Ok(Output { human: table(rows(&json, "offers"), &columns), json })
        }
    }
}

fn sell(desk: &Desk<'_>, args: &OfferSellArgs) -> Result<Output, CliError> {
    let (sell, buy) = (desk.asset(&args.sell)?, desk.asset(&args.buy)?);
    let amount = sell.parse(&args.amount).map_err(|e| wrong(format!("amount: {e}")))?;
    let limit = match &args.price {
        None => BatchPrice::ZERO,
        Some(price) => {
            let places = i32::from(buy.spec.decimals) - i32::from(sell.spec.decimals);
            let no_price = || wrong(format!("--price {price:?} is no price: give a decimal number above zero, such as 0.92"));
            shifted(price, places).and_then(|units| limit_of(&units, amount)).ok_or_else(no_price)?
        }
    };
    desk.send(BatchOperation::CreateOffer(CreateOffer {
        market: desk.market,
        sell: sell.spec.asset,
        buy: buy.spec.asset,
        amount,
        limit,
    }))
}

/// A sell offer of what the amount costs at most: prices are made of sell offers alone, so nobody can promise who buys that the amount is
/// exact (`docs/adr/0031-buy-offers-in-a-venue.md`).
fn buy(desk: &Desk<'_>, args: &OfferBuyArgs) -> Result<Output, CliError> {
    let (sell, buy) = (desk.asset(&args.sell)?, desk.asset(&args.buy)?);
    let bought = buy.parse(&args.amount).map_err(|e| wrong(format!("amount: {e}")))?;
    let price = &args.price;
    let places = i32::from(sell.spec.decimals) - i32::from(buy.spec.decimals);
    let no_price = || wrong(format!("--price {price:?} is no price: give a decimal number above zero, such as 1.08"));
    let units = shifted(price, places).ok_or_else(no_price)?;
    let (amount, limit) = cost_of(&units, bought)
        .ok_or_else(|| wrong(format!("--price {price:?} makes no offer of this amount: give a price above zero, or buy less")))?;
    desk.send(BatchOperation::CreateOffer(CreateOffer {
        market: desk.market,
        sell: sell.spec.asset,
        buy: buy.spec.asset,
        amount,
        limit,
    }))
}

fn issued(
    client: &Client,
    key: Option<&ClientKey>,
    args: &IssueArgs,
    operation: impl FnOnce(IssuedAmount) -> BatchOperation,
) -> Result<Output, CliError> {
    let desk = Desk::open(client, key, &args.into)?;
    let asset = desk.asset(&args.asset)?;
    let amount = asset.parse(&args.amount).map_err(|e| wrong(format!("amount: {e}")))?;
    desk.send(operation(IssuedAmount { asset: asset.spec.asset, amount }))
}

pub(super) fn pay(client: &Client, key: Option<&ClientKey>, args: &PayArgs) -> Result<Output, CliError> {
    let desk = Desk::open(client, key, &args.into)?;
    let asset = desk.asset(&args.asset)?;
    let amount = asset.parse(&args.amount).map_err(|e| wrong(format!("amount: {e}")))?;
    desk.send(BatchOperation::Payment(Payment { to: AccountId(args.account), asset: asset.spec.asset, amount }))
}

/// The limit of an offer that wants this many smallest units for each one of `amount`.
fn limit_of(units: &str, amount: Amount) -> Option<BatchPrice> {
    let (numerator, denominator) = BatchPrice::ratio_of_decimal(units).ok()?;
    BatchPrice::limit_of_sale(numerator, denominator, amount).ok()
}

/// How much is sold at most for `bought` at this many smallest units for each one, rounded up, and the limit at which all of it brings
/// `bought`.
fn cost_of(units: &str, bought: Amount) -> Option<(Amount, BatchPrice)> {
    let (numerator, denominator) = BatchPrice::ratio_of_decimal(units).ok()?;
    let cost = u128::from(bought.get()).checked_mul(numerator)?.div_ceil(denominator);
    let amount = Amount::from_wide(cost)?;
    let limit = BatchPrice::limit_of_sale(bought.get().into(), amount.get().into(), amount).ok()?;
    Some((amount, limit))
}

/// A decimal number times a power of ten, exactly.
fn shifted(text: &str, places: i32) -> Option<String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let point = i32::try_from(whole.len()).ok()? + places;
    let length = i32::try_from(digits.len()).ok()?;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    Some(if point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else if point >= length {
        format!("{digits}{}", zeros(point - length))
    } else {
        let (whole, fraction) = digits.split_at(usize::try_from(point).ok()?);
        format!("{whole}.{fraction}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an offer of so much must bring at that limit.
    fn brings(units: &str, amount: u64) -> Option<u64> {
        let amount = Amount::new(amount).unwrap();
        limit_of(units, amount)?.bought_at_least(amount).map(Amount::get)
    }

    #[test]
    fn a_limit_asks_for_what_was_typed_and_no_unit_more_where_that_can_be() {
        for (units, amount, least) in [
            // The next price above 0.92 asks for 9,201, and one for 0.3 of 10 for 4.
            ("0.92", 10_000, 9_200),
            ("0.3", 10, 3),
            ("0.3", 11, 4),
            ("1.25", 4, 5),
            ("1.25", 5, 7),
            ("2", 7, 14),
            ("0.0000000000000000000001", 1, 1),
            ("1.00000000000000000000000000000000001", 3, 4),
            // 9,007,199,254,740,995 is what two come to, and no price has that many digits: the one above asks for a unit more.
            ("4503599627370497.5", 2, 9_007_199_254_740_996),
        ] {
            assert_eq!(brings(units, amount), Some(least), "{units} of {amount}");
        }
        for wrong in ["0", "0.000", "1e5", "", "99999999999999999999999999999999999999"] {
            assert!(brings(wrong, 10).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_is_never_worse_for_its_owner() {
        // Every typed number of up to four digits at many amounts, against the product in whole numbers.
        for typed in (1_u64..10_000).step_by(7) {
            let units = format!("{}.{:03}", typed / 1_000, typed % 1_000);
            for amount in [1, 2, 3, 999, 1_000, 10_000, 123_457, 99_999_999, 1 << 40, 900_000_000_000_000_007] {
                let due = u64::try_from((u128::from(typed) * u128::from(amount)).div_ceil(1_000)).unwrap();
                let least = brings(&units, amount).unwrap();
                assert!(least >= due, "{units} of {amount}: {least} for {due}");
                // A price has 53 bits: what has fewer can be asked for as it is.
                assert!(due >= 1 << 52 || least == due, "{units} of {amount}: {least} for {due}");
            }
        }
    }

    #[test]
    fn who_buys_offers_what_it_costs_at_most_and_asks_for_no_unit_less() {
        for (units, bought, sold) in [("1.08", 10_000, 10_800), ("1.0832", 3, 4), ("0.000033", 1, 1), ("150", 7, 1_050)] {
            let (amount, limit) = cost_of(units, Amount::new(bought).unwrap()).unwrap();
            let asked = limit.bought_at_least(amount).map(Amount::get);
            assert_eq!((amount.get(), asked), (sold, Some(bought)), "{units} for each of {bought}");
        }
        for (units, bought) in [("0", 5), ("x", 5), ("2", 1 << 62), ("99999999999999999999999999999999999999", 5)] {
            assert!(cost_of(units, Amount::new(bought).unwrap()).is_none(), "{units} for each of {bought}");
        }
    }

    #[test]
    fn a_price_is_shifted_exactly() {
        for (text, places, shown) in [
            ("1.0832", 0, "1.0832"),
            ("63000.5", -2, "630.005"),
            ("0.5", -2, "0.005"),
            ("1.5", 2, "150"),
            ("7", 3, "7000"),
            (".5", 1, "5"),
        ] {
            assert_eq!(shifted(text, places).as_deref(), Some(shown), "{text} {places}");
        }
        for wrong in ["", ".", "1e5", "-1", "x"] {
            assert_eq!(shifted(wrong, 1), None, "{wrong}");
        }
    }
}
