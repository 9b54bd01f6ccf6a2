//! Batch markets from the command line: looking at them, and transactions, which are signed here.

use serde_json::Value;
use walras_api::json::batches::unhex;
use walras_batch_signatures::check_key;
use walras_client::Client;
use walras_gateway::ClientKey;
use walras_terminal::table::{fields, table};
use walras_types::{
    AccountId, Amount, BatchOperation, BatchPrice, CancelOffer, CreateOffer, IssuedAmount, Payment, PublicKey, TransactionSeq,
};

use super::admin::public_key;
use super::args::{BatchCommand, IssueArgs, OfferBuyArgs, OfferCommand, OfferSellArgs, PayArgs};
use super::batch_signer::BatchSigner;
use super::{CliError, Output, batch_proof, together};

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

/// So many names are shown of a list for people; JSON has all.
const NAMES_SHOWN_MAX: usize = 20;

fn some_names(names: &Value) -> Value {
    let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match names.len().checked_sub(NAMES_SHOWN_MAX) {
        Some(more @ 1..) => format!("{} and {more} more", names[..NAMES_SHOWN_MAX].join(" ")).into(),
        Some(0) | None => names.join(" ").into(),
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
                ("aside blocks", "aside_blocks"),
                ("account fee", "account_fee"),
                ("currencies", "currencies"),
                ("assets", "assets"),
            ];
            let mut shown = rows(&json, "batches").to_vec();
            for batch in &mut shown {
                batch["account_fee"] = fee_text(&batch["account_fee"]);
                let are_all = batch["currencies"] == batch["assets"];
                batch["currencies"] = if are_all { "all".into() } else { some_names(&batch["currencies"]) };
                batch["assets"] = some_names(&batch["assets"]);
            }
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
            BatchSigner::open(client, key()?.as_ref(), into)?.send(BatchOperation::CreateAccount(new))
        }
        BatchCommand::SetKey { key: new, into } => {
            let new = given_key(new)?;
            BatchSigner::open(client, key()?.as_ref(), into)?.send(BatchOperation::SetKey(new))
        }
        BatchCommand::Issue(args) | BatchCommand::Burn(args) => {
            let signer = BatchSigner::open(client, key()?.as_ref(), &args.into)?;
            signer.send(issue_or_burn(&signer, command, args)?)
        }
        BatchCommand::Together { transactions, into } => {
            let key = key()?;
            together::together(&BatchSigner::open(client, key.as_ref(), into)?, transactions)
        }
    }
}

/// What a command of `walras batch` does by a transaction, if it does.
pub(super) fn operation(signer: &BatchSigner<'_>, command: &BatchCommand) -> Result<Option<BatchOperation>, CliError> {
    Ok(Some(match command {
        BatchCommand::CreateAccount { key, .. } => BatchOperation::CreateAccount(given_key(key)?),
        BatchCommand::SetKey { key, .. } => BatchOperation::SetKey(given_key(key)?),
        BatchCommand::Issue(args) | BatchCommand::Burn(args) => issue_or_burn(signer, command, args)?,
        BatchCommand::List
        | BatchCommand::Blocks { .. }
        | BatchCommand::Demand { .. }
        | BatchCommand::Outcome { .. }
        | BatchCommand::Proof { .. }
        | BatchCommand::Together { .. } => return Ok(None),
    }))
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
    let Some(sequence) = sequence.map(|sequence| sequence.to_string()) else {
        let json = client.signed("GET", "/v1/transactions", None)?;
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
    let json = client.signed("GET", &format!("/v1/transactions?sequence={sequence}"), None)?;
    let found = rows(&json, "transactions").iter().find(|one| one["sequence"].as_str() == Some(&sequence)).cloned();
    let json = found.ok_or_else(|| {
        wrong(format!(
            "no transaction of yours with the number {sequence} is among the last 64, or has an offer that stands or ended late: see \
             `walras batch outcome`"
        ))
    })?;
    Ok(Output { human: fields(&json), json })
}

pub(super) fn offer(client: &Client, key: Option<&ClientKey>, command: &OfferCommand) -> Result<Output, CliError> {
    let into = match command {
        OfferCommand::Sell(OfferSellArgs { into, .. })
        | OfferCommand::Buy(OfferBuyArgs { into, .. })
        | OfferCommand::Cancel { into, .. } => into,
        OfferCommand::List => return list(client),
    };
    let signer = BatchSigner::open(client, key, into)?;
    match offer_operation(&signer, command)? {
        Some(operation) => signer.send(operation),
        None => list(client),
    }
}

/// What a command of `walras offer` does by a transaction, if it does.
pub(super) fn offer_operation(signer: &BatchSigner<'_>, command: &OfferCommand) -> Result<Option<BatchOperation>, CliError> {
    Ok(Some(match command {
        OfferCommand::Sell(args) => sell(signer, args)?,
        OfferCommand::Buy(args) => buy(signer, args)?,
        OfferCommand::Cancel { sequence, .. } => cancel(signer, *sequence)?,
        OfferCommand::List => return Ok(None),
    }))
}

fn list(client: &Client) -> Result<Output, CliError> {
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

fn cancel(signer: &BatchSigner<'_>, sequence: u64) -> Result<BatchOperation, CliError> {
    let offers = signer.client.signed_pages("/v1/offers", "offers")?;
    let digits = sequence.to_string();
    let found = rows(&offers, "offers").iter().find(|offer| offer["sequence"].as_str() == Some(&digits));
    let found =
        found.ok_or_else(|| wrong(format!("no offer of yours with the number {sequence} stands: see `walras offer list`")))?;
    let number = |field: &str| found[field].as_str().and_then(|text| text.parse::<u64>().ok());
    let limit = number("limit_bits").and_then(|bits| BatchPrice::from_bits(bits).ok());
    let (Some(limit), Some(tie)) = (limit, number("tie")) else {
        return Err(wrong("the venue's answer has no place of the offer"));
    };
    let asset = |field: &str| Ok::<_, CliError>(signer.asset(found[field].as_str().unwrap_or_default())?.spec.asset);
    let (sell, buy) = (asset("sell")?, asset("buy")?);
    let sequence = TransactionSeq(sequence);
    Ok(BatchOperation::CancelOffer(CancelOffer { market: signer.market, sell, buy, limit, tie, sequence }))
}

fn sell(signer: &BatchSigner<'_>, args: &OfferSellArgs) -> Result<BatchOperation, CliError> {
    let (sell, buy) = (signer.asset(&args.sell)?, signer.asset(&args.buy)?);
    let amount = sell.parse(&args.amount).map_err(|e| wrong(format!("amount: {e}")))?;
    let limit = match &args.price {
        None => BatchPrice::ZERO,
        Some(price) => {
            let places = i32::from(buy.spec.decimals) - i32::from(sell.spec.decimals);
            let no_price = || wrong(format!("--price {price:?} is no price: give a decimal number above zero, such as 0.92"));
            shifted(price, places).and_then(|units| limit_of(&units, amount)).ok_or_else(no_price)?
        }
    };
    let (market, sell, buy) = (signer.market, sell.spec.asset, buy.spec.asset);
    Ok(BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit }))
}

/// A sell offer of what the amount costs at most: prices are made of sell offers alone, so nobody can promise who buys that the amount is
/// exact (`docs/adr/0031-buy-offers-in-a-venue.md`).
fn buy(signer: &BatchSigner<'_>, args: &OfferBuyArgs) -> Result<BatchOperation, CliError> {
    let (sell, buy) = (signer.asset(&args.sell)?, signer.asset(&args.buy)?);
    let bought = buy.parse(&args.amount).map_err(|e| wrong(format!("amount: {e}")))?;
    let price = &args.price;
    let places = i32::from(sell.spec.decimals) - i32::from(buy.spec.decimals);
    let no_price = || wrong(format!("--price {price:?} is no price: give a decimal number above zero, such as 1.08"));
    let units = shifted(price, places).ok_or_else(no_price)?;
    let (amount, limit) = cost_of(&units, bought)
        .ok_or_else(|| wrong(format!("--price {price:?} makes no offer of this amount: give a price above zero, or buy less")))?;
    let (market, sell, buy) = (signer.market, sell.spec.asset, buy.spec.asset);
    Ok(BatchOperation::CreateOffer(CreateOffer { market, sell, buy, amount, limit }))
}

fn issue_or_burn(signer: &BatchSigner<'_>, command: &BatchCommand, args: &IssueArgs) -> Result<BatchOperation, CliError> {
    let asset = signer.asset(&args.asset)?;
    let amount = asset.parse(&args.amount).map_err(|e| wrong(format!("amount: {e}")))?;
    let units = IssuedAmount { asset: asset.spec.asset, amount };
    Ok(if matches!(command, BatchCommand::Burn(_)) { BatchOperation::Burn(units) } else { BatchOperation::Issue(units) })
}

pub(super) fn pay(client: &Client, key: Option<&ClientKey>, args: &PayArgs) -> Result<Output, CliError> {
    let signer = BatchSigner::open(client, key, &args.into)?;
    signer.send(payment(&signer, args)?)
}

pub(super) fn payment(signer: &BatchSigner<'_>, args: &PayArgs) -> Result<BatchOperation, CliError> {
    let asset = signer.asset(&args.asset)?;
    let amount = asset.parse(&args.amount).map_err(|e| wrong(format!("amount: {e}")))?;
    Ok(BatchOperation::Payment(Payment { to: AccountId(args.account), asset: asset.spec.asset, amount }))
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
