//! Proofs about batch markets for those who keep no state: blocks in short, prices, trades, transactions, accounts, offers.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use walras_access::Refusal;
use walras_batch::BlockHeader;
use walras_clearing::{OfferId, OfferKey};
use walras_market_data::BlockProof;
use walras_types::limits::TRANSACTION_SEQ_END;
use walras_types::{AccountId, BatchMarketId, BatchPrice, OfferName, RejectReason, TransactionSeq};

use super::batches::{asset, digits, gone, of_path};
use super::market::{Asked, query};
use super::signed::Signed;
use super::{Answer, ApiError, App, ok};
use crate::json::batches::{self, hex};

/// What a light client opens of a block that is kept.
pub(super) fn light(market: BatchMarketId, block: &BlockProof) -> Result<Value, ApiError> {
    let header = header_of(block)?;
    Ok(batches::light_header(market, block, &header))
}

fn header_of(block: &BlockProof) -> Result<BlockHeader, ApiError> {
    BlockHeader::decode(&block.header).map_err(|_| not_provable("what is kept of the block is not its header: ask another replica"))
}

pub(super) fn sequence(text: &str) -> Result<TransactionSeq, ApiError> {
    let sequence = digits("sequence", text)?;
    if sequence < TRANSACTION_SEQ_END {
        return Ok(TransactionSeq(sequence));
    }
    Err(Refusal::new(RejectReason::Malformed, "sequence: it is below 2^38").into())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LightBlock {
    block: Option<String>,
    asset: Option<String>,
    sell: Option<String>,
    buy: Option<String>,
}

/// A block in short, with the proof of a price, of a trade, or of both.
pub(super) async fn block_proof(State(app): State<App>, Path(name): Path<String>, asked: Asked<LightBlock>) -> Answer {
    let catalog = app.venue.catalog();
    let market = of_path(&catalog, &name)?;
    let asked = query(asked)?;
    let number = asked.block.as_deref().map(|text| digits("block", text)).transpose()?;
    let priced = asked.asset.as_deref().map(|symbol| asset(&catalog, "asset", symbol)).transpose()?;
    let pair = match (&asked.sell, &asked.buy) {
        (None, None) => None,
        (Some(sell), Some(buy)) => Some((asset(&catalog, "sell", sell)?, asset(&catalog, "buy", buy)?)),
        _ => return Err(Refusal::new(RejectReason::Malformed, "sell, buy: give both, or neither").into()),
    };
    let (found, assets) = app
        .venue
        .read(move |v| {
            let feed = v.market.batch(market);
            let last = feed.and_then(|feed| feed.blocks().next_back()).map(|block| block.block);
            let found = number.or(last).and_then(|number| feed?.proof(number)).cloned();
            (found, feed.map_or_else(Vec::new, |feed| feed.assets().to_vec()))
        })
        .await?;
    let block = match (found, number) {
        (Some(block), _) => block,
        (None, Some(number)) => return Err(gone(number)),
        (None, None) => return Err(not_provable("the market has no block yet: ask again after the first one")),
    };
    let header = header_of(&block)?;
    let mut body = batches::light_header(market, &block, &header);
    let index = |asset| {
        let at = (0..).zip(&assets).find(|(_, known)| **known == asset).map(|(at, _)| walras_clearing::AssetIndex(at));
        at.ok_or_else(|| Refusal::new(RejectReason::UnknownAsset, "the market does not have the asset"))
    };
    if let Some(asset) = priced {
        let index = index(asset)?;
        body["asset_index"] = index.0.into();
        body["price_statement"] = header.price_statement(index).map(|bytes| hex(&bytes)).into();
    }
    if let Some((sell, buy)) = pair {
        let pair = walras_clearing::Pair { sell: index(sell)?, buy: index(buy)? };
        let statement = header.trade_statement(pair);
        let statement = statement.ok_or_else(|| {
            if pair.sell == pair.buy {
                Refusal::new(RejectReason::Malformed, "sell, buy: a pair has two assets")
            } else {
                Refusal::new(RejectReason::NoSuchPair, "sell, buy: neither is a currency of the market")
            }
        })?;
        (body["sell_index"], body["buy_index"]) = (pair.sell.0.into(), pair.buy.0.into());
        body["trade_statement"] = hex(&statement).into();
    }
    Ok(ok(&body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InBlock {
    block: Option<String>,
}

/// Of the key's own account: what others do is private.
pub(super) async fn transaction_proof(
    State(app): State<App>,
    Path((name, number)): Path<(String, String)>,
    asked: Asked<InBlock>,
    signed: Signed,
) -> Answer {
    let account = signed.reader()?;
    let market = of_path(&app.venue.catalog(), &name)?;
    let name = OfferName { account, sequence: sequence(&number)? };
    let block = query(asked)?.block.map(|text| digits("block", &text)).transpose()?;
    let kept = app.venue.read(move |v| v.market.batch(market).map(|feed| feed.outcomes().clone())).await?.unwrap_or_default();
    // Searched here, and not where the venue answers.
    let has: Vec<u64> = kept.iter().filter(|(_, outcomes)| outcomes.get(name).is_some()).map(|(block, _)| *block).collect();
    let chosen = block.or_else(|| has.last().copied()).ok_or_else(|| {
        not_provable(
            "no block whose outcomes are remembered did anything under that number: compare it with GET /v1/transactions, or \
             name a block for a proof that it did nothing",
        )
    })?;
    let outcomes = kept.iter().find(|(block, _)| *block == chosen).map(|(_, outcomes)| outcomes);
    let outcomes = outcomes.ok_or_else(|| {
        not_provable(
            "the block's outcomes are not remembered: they are for the last blocks only, and a start forgets those before its \
             snapshot",
        )
    })?;
    let found = app.venue.read(move |v| v.market.batch(market)?.proof(chosen).cloned()).await?.ok_or_else(|| gone(chosen))?;
    let mut body = light(market, &found)?;
    body["account_id"] = account.0.into();
    body["sequence"] = name.sequence.0.to_string().into();
    body["statement"] = hex(&outcomes.statement(name)).into();
    body["blocks"] = has.iter().map(u64::to_string).collect();
    Ok(ok(&body))
}

pub(super) fn not_provable(why: &str) -> ApiError {
    ApiError::with_status(Refusal::new(RejectReason::NotFound, why), StatusCode::NOT_FOUND)
}

/// Of the key's own account, or of one that there is not: what others have is private.
pub(super) async fn account_proof(State(app): State<App>, Path((name, account)): Path<(String, String)>, signed: Signed) -> Answer {
    let own = signed.reader()?;
    let market = of_path(&app.venue.catalog(), &name)?;
    let account = u32::try_from(digits("account_id", &account)?).map(AccountId).map_err(|_| RejectReason::UnknownAccount)?;
    let found = app
        .venue
        .read(move |v| {
            let proven = || {
                let (last, statement) = v.engine.account_statement(account)?;
                // Another market's block may have changed the accounts since.
                let is_its = last.header.market == market;
                is_its.then(|| Some((v.market.batch(market)?.proof(last.header.number)?.clone(), statement)))?
            };
            (account == own || account.0 >= v.engine.account_count()).then(proven)
        })
        .await?;
    let of_another = || {
        Refusal::new(RejectReason::Forbidden, "the key belongs to another account: ask with that account's, or have its owner ask")
    };
    let (block, statement) = found.ok_or_else(of_another)?.ok_or_else(|| {
        not_provable("the account has changed since the market's last block, or there is none: ask again after the next one")
    })?;
    let mut body = light(market, &block)?;
    body["account_id"] = account.0.into();
    body["statement"] = hex(&statement).into();
    Ok(ok(&body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfferPlace {
    account_id: u32,
    sequence: String,
    sell: String,
    buy: String,
    limit_bits: String,
    tie: String,
}

pub(super) async fn offer_proof(State(app): State<App>, Path(name): Path<String>, asked: Asked<OfferPlace>) -> Answer {
    let catalog = app.venue.catalog();
    let market = of_path(&catalog, &name)?;
    let asked = query(asked)?;
    let (sell, buy) = (asset(&catalog, "sell", &asked.sell)?, asset(&catalog, "buy", &asked.buy)?);
    let malformed = |detail: String| Refusal::new(RejectReason::Malformed, detail);
    let limit = BatchPrice::from_bits(digits("limit_bits", &asked.limit_bits)?).map_err(|e| malformed(e.to_string()))?;
    let id = OfferName { account: AccountId(asked.account_id), sequence: sequence(&asked.sequence)? }.number();
    let key = OfferKey { limit, tie: digits("tie", &asked.tie)?, id: OfferId(id) };
    let found = app
        .venue
        .read(move |v| {
            let pair = v.engine.batch_pair(market, sell, buy)?;
            let (last, statement) = v.engine.offer_statement(market, pair, &key)?;
            Some((v.market.batch(market)?.proof(last.header.number)?.clone(), statement))
        })
        .await?;
    let (block, statement) = found.ok_or_else(|| {
        not_provable("a batch is closed and not cleared yet, or there is no block, or no such pair: ask again after the next block")
    })?;
    let mut body = light(market, &block)?;
    body["statement"] = hex(&statement).into();
    Ok(ok(&body))
}
