//! Proofs about batch markets from the command line: asked for, checked here, shown.

use serde_json::{Value, json};
use walras_api::json::batches::unhex;
use walras_batch::LIGHT_HEADER_BYTES;
use walras_batch::light::{LightBlock, LightError};
use walras_clearing::{AssetIndex, Pair};
use walras_client::Client;
use walras_terminal::table::fields;
use walras_types::{AccountId, BatchOperation, BatchPrice, OfferName, TransactionSeq};

use super::args::ProofCommand;
use super::{CliError, Output};

fn wrong(what: impl Into<String>) -> CliError {
    CliError::Wrong(what.into())
}

fn refused(error: LightError) -> CliError {
    wrong(format!("not proven: {error}"))
}

/// The bytes of a field of an answer.
fn bytes(answer: &Value, field: &str) -> Result<Vec<u8>, CliError> {
    answer[field]
        .as_str()
        .and_then(unhex)
        .ok_or_else(|| wrong(format!("the venue's answer has no hexadecimal {field}: check --url")))
}

fn hash(text: &str) -> Result<[u8; 32], CliError> {
    unhex(text).and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| wrong("--trusted: a block's hash has 64 hexadecimal digits"))
}

pub(super) fn proof(client: &Client, what: &ProofCommand, trusted: Option<&str>, batch: &str) -> Result<Output, CliError> {
    let trusted = trusted.map(hash).transpose()?;
    match what {
        ProofCommand::Block { block, price, trade } => {
            of_block(client, trusted, batch, (*block, price.as_deref(), trade.as_deref()))
        }
        ProofCommand::Transaction { sequence, block } => of_transaction(client, trusted, batch, *sequence, *block),
        ProofCommand::Account => of_account(client, trusted, batch),
    }
}

/// The block of an answer, and what is shown of it.
fn opened(answer: &Value, trusted: Option<[u8; 32]>) -> Result<(LightBlock, Value), CliError> {
    let said = answer["roots"]["state"].as_str().unwrap_or_default();
    let believed = if trusted.is_some() { "the hash given" } else { "the venue's own word" };
    let trusted = match trusted {
        Some(trusted) => trusted,
        None => hash(said).map_err(|_| wrong("the venue's answer has no hash of the block: check --url"))?,
    };
    let (header, roots) = (bytes(answer, "light_header")?, bytes(answer, "light_roots")?);
    let block = LightBlock::open(&trusted, &header, &roots).map_err(refused)?;
    let header = block.header();
    let shown = json!({
        "block": header.number.to_string(),
        "hash": walras_api::json::batches::hex(&trusted),
        "trusted": believed,
        "transactions": header.transaction_count,
        "gap_ppb": header.quality.gap_ppb,
        "unserved_ppb": header.quality.unserved_ppb,
        "set_aside": header.quality.set_aside,
        "block_bytes": LIGHT_HEADER_BYTES + roots.len(),
    });
    Ok((block, shown))
}

fn shown(json: Value) -> Output {
    Output { human: fields(&json), json }
}

fn of_block(
    client: &Client,
    trusted: Option<[u8; 32]>,
    batch: &str,
    (number, price, trade): (Option<u64>, Option<&str>, Option<&[String]>),
) -> Result<Output, CliError> {
    let asked = number.map(|number| format!("block={number}")).into_iter();
    let asked = asked.chain(price.map(|asset| format!("asset={asset}")));
    let asked = asked.chain(trade.iter().filter_map(|pair| Some(format!("sell={}&buy={}", pair.first()?, pair.get(1)?))));
    let answer = client.get(&format!("/v1/batches/{batch}/proofs/block?{}", asked.collect::<Vec<_>>().join("&")))?;
    let (block, mut json) = opened(&answer, trusted)?;
    if number.is_some_and(|number| number != block.header().number) {
        return Err(wrong(format!("the hash is that of block {}: name that block", block.header().number)));
    }
    let index = |field: &str| {
        let index = answer[field].as_u64().and_then(|index| u16::try_from(index).ok());
        index.map(AssetIndex).ok_or_else(|| wrong(format!("the venue's answer has no {field}: check --url")))
    };
    if price.is_some() {
        let statement = bytes(&answer, "price_statement")?;
        let price = block.price(index("asset_index")?, &statement).map_err(refused)?;
        json["price"] = price.map_or_else(|| "none".into(), float);
        json["price_bytes"] = statement.len().into();
    }
    if trade.is_some() {
        let statement = bytes(&answer, "trade_statement")?;
        let pair = Pair { sell: index("sell_index")?, buy: index("buy_index")? };
        let found = block.trade(pair, &statement).map_err(refused)?;
        json["sold_units"] = found.map_or(0, |(trade, _)| trade.sold.get()).to_string().into();
        json["trade_bytes"] = statement.len().into();
    }
    Ok(shown(json))
}

fn float(price: BatchPrice) -> Value {
    f64::from_bits(price.bits()).into()
}

fn of_transaction(
    client: &Client,
    trusted: Option<[u8; 32]>,
    batch: &str,
    sequence: u64,
    block: Option<u64>,
) -> Result<Output, CliError> {
    let asked = block.map_or_else(String::new, |block| format!("?block={block}"));
    let answer = client.signed("GET", &format!("/v1/batches/{batch}/proofs/transaction/{sequence}{asked}"), None)?;
    let (block, mut json) = opened(&answer, trusted)?;
    let name = OfferName { account: account_of(&answer)?, sequence: TransactionSeq(sequence) };
    let statement = bytes(&answer, "statement")?;
    json["statement_bytes"] = statement.len().into();
    let Some(outcome) = block.outcome(name, &statement).map_err(refused)? else {
        json["proven"] = "the block did nothing under that number".into();
        return Ok(shown(json));
    };
    json["proven"] = outcome.operation.as_ref().map_or("an offer of an earlier block", operation_name).into();
    if let Some(traded) = outcome.traded {
        json["sell_asset"] = traded.sell.0.into();
        json["sold_units"] = traded.sold.to_string().into();
        json["buy_asset"] = traded.buy.0.into();
        json["bought_units"] = traded.bought.to_string().into();
    }
    if let Some(units) = outcome.returned {
        json["returned_units"] = units.to_string().into();
    }
    if let Some(account) = outcome.created {
        json["created_account"] = account.0.into();
    }
    Ok(shown(json))
}

fn operation_name(operation: &BatchOperation) -> &'static str {
    match operation {
        BatchOperation::CreateAccount(_) => "a new account",
        BatchOperation::CreateOffer(_) => "an offer",
        BatchOperation::CancelOffer(_) => "a cancel",
        BatchOperation::Payment(_) => "a payment",
        BatchOperation::Issue(_) => "units made",
        BatchOperation::Burn(_) => "units destroyed",
        BatchOperation::CreatePool(_) => "a new pool",
        BatchOperation::DepositToPool(_) => "a deposit to a pool",
        BatchOperation::WithdrawFromPool(_) => "a withdrawal from a pool",
        BatchOperation::SetKey(_) => "another key",
    }
}

fn account_of(answer: &Value) -> Result<AccountId, CliError> {
    let account = answer["account_id"].as_u64().and_then(|account| u32::try_from(account).ok());
    account.map(AccountId).ok_or_else(|| wrong("the venue's answer names no account: check --url"))
}

fn of_account(client: &Client, trusted: Option<[u8; 32]>, batch: &str) -> Result<Output, CliError> {
    let account = account_of(&client.signed("GET", "/v1/account", None)?)?;
    let answer = client.signed("GET", &format!("/v1/batches/{batch}/proofs/account/{}", account.0), None)?;
    let (block, mut json) = opened(&answer, trusted)?;
    let statement = bytes(&answer, "statement")?;
    json["account_id"] = account.0.into();
    json["statement_bytes"] = statement.len().into();
    let state = block.account(account, &statement).map_err(refused)?;
    let state = state.ok_or_else(|| wrong("the block has no such account: ask again after the next block"))?;
    json["last_transaction"] = state.last.0.to_string().into();
    let balances = state.balances.iter().map(|(asset, balance)| {
        json!({"asset": asset.0, "available_units": balance.available.to_string(), "reserved_units": balance.reserved.to_string()})
    });
    json["balances"] = balances.collect();
    Ok(shown(json))
}
