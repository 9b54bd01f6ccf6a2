//! Pools of batch markets from the command line.

use serde_json::Value;
use walras_client::Client;
use walras_gateway::ClientKey;
use walras_terminal::table::table;
use walras_types::{
    AccountId, Amount, BatchOperation, CreatePool, DepositToPool, OfferName, PoolRule, TransactionSeq, WithdrawFromPool,
};

use super::args::{PoolCommand, PoolCreateArgs};
use super::batch::{rows, wrong};
use super::batch_signer::BatchSigner;
use super::{CliError, Output};

/// `key` reads the key, which only those need who sign.
pub(super) fn pool(
    client: &Client,
    key: impl FnOnce() -> Result<Option<ClientKey>, CliError>,
    command: &PoolCommand,
) -> Result<Output, CliError> {
    match command {
        PoolCommand::List { batch } => {
            let json = client.get(&format!("/v1/batches/{batch}/pools"))?;
            let columns = [
                ("pool", "name"),
                ("first", "first"),
                ("has", "has_first"),
                ("second", "second"),
                ("has", "has_second"),
                ("rule", "terms"),
                ("fee ppm", "fee_ppm"),
                ("shares", "shares"),
            ];
            let mut shown = rows(&json, "pools").to_vec();
            for pool in &mut shown {
                pool["name"] = name_text(pool);
                pool["terms"] = terms(pool).into();
                (pool["has_first"], pool["has_second"]) = (pool["reserves"][0].clone(), pool["reserves"][1].clone());
            }
            Ok(Output { human: table(&shown, &columns), json })
        }
        PoolCommand::Shares => {
            let json = client.signed("GET", "/v1/shares", None)?;
            let columns = [
                ("batch", "batch"),
                ("pool", "name"),
                ("shares", "shares"),
                ("of", "all_shares"),
                ("first", "first"),
                ("worth", "worth_first"),
                ("second", "second"),
                ("worth", "worth_second"),
            ];
            let mut shown = rows(&json, "shares").to_vec();
            for own in &mut shown {
                own["name"] = name_text(own);
                (own["worth_first"], own["worth_second"]) = (own["worth"][0].clone(), own["worth"][1].clone());
            }
            Ok(Output { human: table(&shown, &columns), json })
        }
        PoolCommand::Create(PoolCreateArgs { into, .. })
        | PoolCommand::Deposit { into, .. }
        | PoolCommand::Withdraw { into, .. } => {
            let key = key()?;
            let signer = BatchSigner::open(client, key.as_ref(), into)?;
            let operation = pool_operation(&signer, command)?;
            signer.send(operation.ok_or_else(|| wrong("it is no transaction"))?)
        }
    }
}

/// What a command of `walras pool` does by a transaction, if it does.
pub(super) fn pool_operation(signer: &BatchSigner<'_>, command: &PoolCommand) -> Result<Option<BatchOperation>, CliError> {
    let market = signer.market;
    Ok(Some(match command {
        PoolCommand::List { .. } | PoolCommand::Shares => return Ok(None),
        PoolCommand::Create(args) => create(signer, args)?,
        PoolCommand::Deposit { pool, first, second, .. } => {
            let name = parse_name(pool)?;
            let found = find(signer.client, &signer.name, name)?;
            let amounts = [amount(signer, &found["first"], first)?, amount(signer, &found["second"], second)?];
            BatchOperation::DepositToPool(DepositToPool { market, pool: name, amounts })
        }
        PoolCommand::Withdraw { pool, shares, .. } => {
            let name = parse_name(pool)?;
            let shares = match shares {
                Some(shares) => *shares,
                None => own_shares(signer.client, &signer.name, name)?,
            };
            let shares = Amount::new(shares).ok_or_else(|| wrong("no pool has so many shares: see `walras pool shares`"))?;
            BatchOperation::WithdrawFromPool(WithdrawFromPool { market, pool: name, shares })
        }
    }))
}

fn create(signer: &BatchSigner<'_>, args: &PoolCreateArgs) -> Result<BatchOperation, CliError> {
    let (first, second) = (signer.asset(&args.first)?, signer.asset(&args.second)?);
    let rule = match (args.weights.as_deref(), args.amplification) {
        (Some(&[first, second]), _) => PoolRule::Weighted { weights: [first, second] },
        (_, Some(amplification)) => PoolRule::StableSwap { amplification },
        _ => PoolRule::ConstantProduct,
    };
    if !rule.is_possible() {
        return Err(wrong("weights are 1 to 1000, and an amplification is 1 to 1000000"));
    }
    let parse = |scale: &walras_ports::AssetScale, text: &str| scale.parse(text).map_err(|e| wrong(format!("{text}: {e}")));
    Ok(BatchOperation::CreatePool(CreatePool {
        market: signer.market,
        assets: [first.spec.asset, second.spec.asset],
        rule,
        fee_ppm: args.fee_ppm,
        amounts: [parse(first, &args.first_amount)?, parse(second, &args.second_amount)?],
    }))
}

fn amount(signer: &BatchSigner<'_>, symbol: &Value, text: &str) -> Result<Amount, CliError> {
    signer.asset(symbol.as_str().unwrap_or_default())?.parse(text).map_err(|e| wrong(format!("{text}: {e}")))
}

/// `7:12` for the pool that transaction 12 of account 7 created.
fn parse_name(text: &str) -> Result<OfferName, CliError> {
    let parts = text.split_once(':').and_then(|(account, sequence)| Some((account.parse().ok()?, sequence.parse().ok()?)));
    let (account, sequence) = parts.ok_or_else(|| {
        wrong(format!("{text:?} is no pool: give the account that created it and the number of its transaction, such as 7:12"))
    })?;
    Ok(OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) })
}

fn name_text(pool: &Value) -> Value {
    format!("{}:{}", pool["account_id"], pool["sequence"].as_str().unwrap_or_default()).into()
}

/// A pool's rule on one line.
fn terms(pool: &Value) -> String {
    let rule = pool["rule"].as_str().unwrap_or_default().replace('_', " ");
    match (pool["weights"].as_array().map(Vec::as_slice), &pool["amplification"]) {
        (Some([first, second]), _) => format!("{rule} {first}:{second}"),
        (_, Value::Null) => rule,
        (_, amplification) => format!("{rule} {amplification}"),
    }
}

fn is_named(row: &Value, name: OfferName) -> bool {
    let is_account = row["account_id"].as_u64() == Some(name.account.0.into());
    is_account && row["sequence"].as_str() == Some(&name.sequence.0.to_string())
}

fn find(client: &Client, batch: &str, name: OfferName) -> Result<Value, CliError> {
    let json = client.get(&format!("/v1/batches/{batch}/pools"))?;
    let found = rows(&json, "pools").iter().find(|pool| is_named(pool, name)).cloned();
    found.ok_or_else(|| wrong(format!("the market has no such pool: see `walras pool list {batch}`")))
}

fn own_shares(client: &Client, batch: &str, name: OfferName) -> Result<u64, CliError> {
    let json = client.signed("GET", "/v1/shares", None)?;
    let is_it = |own: &&Value| is_named(own, name) && own["batch"].as_str().is_some_and(|of| of.eq_ignore_ascii_case(batch));
    let found = rows(&json, "shares").iter().find(is_it).and_then(|own| own["shares"].as_str()?.parse().ok());
    found.ok_or_else(|| wrong("the account has no shares of that pool: see `walras pool shares`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pool_is_named_by_its_creator_and_the_number_of_its_transaction() {
        let name = parse_name("7:12").unwrap();
        assert_eq!((name.account.0, name.sequence.0), (7, 12));
        assert_eq!(name_text(&json!({"account_id": 7, "sequence": "12"})), json!("7:12"));
        assert!(is_named(&json!({"account_id": 7, "sequence": "12"}), name));
        assert!(!is_named(&json!({"account_id": 7, "sequence": "120"}), name));
        for wrong in ["", "7", "7:", ":12", "7:12:1", "-1:2", "7:x"] {
            assert!(parse_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn terms_are_told_on_one_line() {
        assert_eq!(terms(&json!({"rule": "constant_product"})), "constant product");
        assert_eq!(terms(&json!({"rule": "weighted", "weights": [80, 20]})), "weighted 80:20");
        assert_eq!(terms(&json!({"rule": "stable_swap", "amplification": 85})), "stable swap 85");
    }
}
