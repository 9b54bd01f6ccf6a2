//! Batch markets: what everybody may see, transactions, and an account's own offers.

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_batch_signatures::check_key;
use walras_gateway::Allowance;
use walras_market_data::BatchBlock;
use walras_market_data::limits::OUTCOMES_MAX;
use walras_ports::{BatchLook, Catalog, batch_look, batch_name, demand_curve, transaction_outcome, transaction_outcomes};
use walras_types::{
    AssetId, BatchMarketId, BatchOperation, BatchTransaction, DropReason, RejectReason, TransactionSeq, torn_chains,
};
use walras_wire::batch::{SIGNATURE_BYTES, SignedTransaction, TRANSACTION_BYTES_MAX, decode_signed_transaction};

use super::account::cursor;
use super::exposition::{Exposition, Kind};
use super::market::{Asked, Limit, at_most, query};
use super::signed::Signed;
use super::{Answer, ApiError, App, ok, visits};
use crate::json::batches::{self, unhex};
use crate::json::{requests, views};

/// Blocks in one answer.
const BLOCKS_MAX: usize = 1_000;

/// Transactions in one request.
const TRANSACTIONS_MAX: usize = 1_000;

/// Of these, checked in one visit to the state.
const CHECKED_PER_VISIT: usize = 128;

/// Bytes of a request of so many, with room for spaces.
const BODY_BYTES_MAX: usize = 1_024 + TRANSACTIONS_MAX * (2 * (TRANSACTION_BYTES_MAX + SIGNATURE_BYTES) + 8);

/// How far to either side of the last price a demand curve goes, in parts per million.
const SPAN_PPM: u32 = 20_000;
const SPAN_PPM_MAX: u32 = 500_000;

/// A batch market of a path: unknown ones are not found.
pub(super) fn of_path(catalog: &Catalog, name: &str) -> Result<BatchMarketId, ApiError> {
    let refusal = || Refusal::new(RejectReason::UnknownBatchMarket, format!("batch market: {name:?}"));
    let found = catalog.batch_by_name(name).ok_or_else(|| ApiError::with_status(refusal(), StatusCode::NOT_FOUND))?;
    Ok(found.market)
}

/// An asset of a query.
pub(super) fn asset(catalog: &Catalog, field: &str, symbol: &str) -> Result<AssetId, ApiError> {
    let unknown = || catalog.unknown_asset(field, symbol);
    Ok(catalog.asset_by_symbol(symbol).ok_or_else(unknown)?.spec.asset)
}

async fn looks(app: &App) -> Result<Vec<BatchLook>, RejectReason> {
    let mut looks = Vec::new();
    // A look goes through a market's blocks.
    for market in (0..).map(BatchMarketId) {
        let look = app.venue.read(move |v| v.engine.batch_market(market).map(|view| batch_look(&view, v.market))).await?;
        let Some(look) = look else { break };
        looks.push(look);
    }
    Ok(looks)
}

/// Figures of batch markets for Prometheus; none while the state cannot be read.
pub(super) async fn metrics(app: &App, text: &mut Exposition) {
    let looks = looks(app).await.unwrap_or_default();
    let mut all = |name, help, value: &dyn Fn(&BatchLook) -> u64| {
        let mut family = text.family(name, Kind::Gauge, help);
        looks.iter().for_each(|look| family.sample([("market", &batch_name(&look.spec))], value(look)));
    };
    let of_last = |look: &BatchLook, value: fn(&BatchBlock) -> u64| look.last.as_deref().map_or(0, value);
    all("walras_batch_block", "last block cleared", &|look| of_last(look, |block| block.block));
    all("walras_batch_collected", "transactions of the batch that collects", &|look| look.collected as u64);
    all("walras_batch_set_aside_assets", "assets without a price in the last block that could have had one", &|look| {
        of_last(look, |block| block.set_aside.into())
    });
    all("walras_batch_idle_blocks", "last blocks in a row in which nothing traded of what could", &|look| look.idle_blocks as u64);
    all("walras_batch_aside_blocks", "last blocks in a row in which some assets were set aside", &|look| look.aside_blocks as u64);
}

pub(super) async fn list(State(app): State<App>) -> Answer {
    let catalog = app.venue.catalog();
    let looks = looks(&app).await?;
    Ok(ok(&json!({"batches": looks.iter().map(|look| batches::batch(&catalog, look)).collect::<Vec<_>>()})))
}

pub(super) async fn blocks(State(app): State<App>, Path(name): Path<String>, asked: Asked<Limit>) -> Answer {
    let catalog = app.venue.catalog();
    let market = of_path(&catalog, &name)?;
    let limit = at_most("limit", query(asked)?.limit, 100, BLOCKS_MAX)?;
    let (assets, blocks) = app
        .venue
        .read(move |v| {
            let feed = v.market.batch(market);
            let blocks = feed.map(|feed| feed.blocks().rev().take(limit).cloned().collect::<Vec<_>>());
            (feed.map_or_else(Vec::new, |feed| feed.assets().to_vec()), blocks.unwrap_or_default())
        })
        .await?;
    Ok(ok(&json!({"blocks": batches::blocks(&catalog, &assets, &blocks)})))
}

pub(super) fn digits(field: &str, text: &str) -> Result<u64, ApiError> {
    Ok(requests::number(field, text)?)
}

pub(super) async fn header(State(app): State<App>, Path((name, block)): Path<(String, String)>) -> Answer {
    let market = of_path(&app.venue.catalog(), &name)?;
    let block = digits("block", &block)?;
    let found = app.venue.read(move |v| v.market.batch(market)?.proof(block).cloned()).await?;
    Ok(ok(&batches::header(market, &found.ok_or_else(|| gone(block))?)))
}

pub(super) fn gone(block: u64) -> ApiError {
    let detail = format!("block {block}: it is none of those that are remembered, which are the last 1000 or fewer");
    ApiError::with_status(Refusal::new(RejectReason::NotFound, detail), StatusCode::NOT_FOUND)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Demand {
    sell: String,
    buy: String,
    span_ppm: Option<u32>,
}

pub(super) async fn demand(State(app): State<App>, Path(name): Path<String>, asked: Asked<Demand>) -> Answer {
    let catalog = app.venue.catalog();
    let market = of_path(&catalog, &name)?;
    let asked = query(asked)?;
    let (sell, buy) = (asset(&catalog, "sell", &asked.sell)?, asset(&catalog, "buy", &asked.buy)?);
    let span_ppm = asked.span_ppm.unwrap_or(SPAN_PPM);
    if !(1..=SPAN_PPM_MAX).contains(&span_ppm) {
        return Err(Refusal::new(RejectReason::Malformed, format!("span_ppm: give 1 to {SPAN_PPM_MAX}")).into());
    }
    let curve = app.venue.read(move |v| demand_curve(v.engine, v.market, market, (sell, buy), span_ppm)).await?;
    let none = || {
        let detail = format!("{} for {} is no pair of the market", asked.sell, asked.buy);
        Refusal::new(RejectReason::UnknownAsset, detail)
    };
    let curve = curve.ok_or_else(none)?;
    Ok(ok(&batches::demand(&catalog, &curve).ok_or(RejectReason::VenueNotReady)?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Transactions {
    transactions: Vec<String>,
}

/// What a text says, or why it is none.
fn read(place: usize, text: &str) -> Result<SignedTransaction, Refusal> {
    let malformed = |detail: String| Refusal::new(RejectReason::Malformed, format!("transactions[{place}]: {detail}"));
    let bytes = unhex(text).ok_or_else(|| malformed("give an even number of hexadecimal digits".to_owned()))?;
    let signed = decode_signed_transaction(&bytes).map_err(|e| malformed(e.to_string()))?;
    // An account with such a key could never do anything.
    if let BatchOperation::CreateAccount(key) | BatchOperation::SetKey(key) = &signed.transaction.operation {
        check_key(key).map_err(|e| malformed(format!("the new key: {e}")))?;
    }
    Ok(signed)
}

/// Why a transaction is not collected that its batch would leave out in any case.
fn of_drop(place: usize, reason: DropReason) -> Refusal {
    Refusal::new(reason.refusal(), format!("transactions[{place}]: {}", reason.advice()))
}

fn result_of(result: Result<Value, Refusal>) -> Value {
    result.unwrap_or_else(|refusal| json!({"error": views::error(refusal.reason, refusal.detail.as_deref())}))
}

/// Without those that are no good whatever else the batch holds, and those of which the engine's version in force knows nothing.
async fn checked(
    app: &App,
    market: BatchMarketId,
    read: Vec<Result<SignedTransaction, Refusal>>,
) -> Result<Vec<Result<SignedTransaction, Refusal>>, ApiError> {
    let (mut checked, mut rest) = (Vec::with_capacity(read.len()), read);
    while !rest.is_empty() {
        let (some, first) = (rest.drain(..rest.len().min(CHECKED_PER_VISIT)).collect::<Vec<_>>(), checked.len());
        let check = move |v: &walras_ports::View<'_>| {
            let check = |(place, one): (usize, Result<SignedTransaction, Refusal>)| {
                let signed = one?;
                if !v.engine.knows_transaction(&signed.transaction) {
                    return Err(Refusal::from(RejectReason::NeedsLaterVersion));
                }
                v.engine.check_transaction(market, &signed.transaction).map_err(|reason| of_drop(place, reason))?;
                Ok(signed)
            };
            (first..).zip(some).map(check).collect::<Vec<_>>()
        };
        checked.extend(app.venue.read(check).await?);
    }
    Ok(checked)
}

/// Refuses what is joined with a refused one of these.
fn refuse_torn(asked: &[Option<BatchTransaction>], checked: &mut [Result<SignedTransaction, Refusal>]) {
    let known = asked.iter().zip(checked.iter()).enumerate();
    let known = known.filter_map(|(place, (asked, checked))| Some((place, ((*asked)?, checked.is_err()))));
    let (places, known): (Vec<usize>, Vec<(BatchTransaction, bool)>) = known.unzip();
    for (place, is_torn) in places.into_iter().zip(torn_chains(&known)) {
        if is_torn && checked[place].is_ok() {
            checked[place] = Err(of_drop(place, DropReason::JoinedDropped));
        }
    }
}

/// The signature is the authority: no key is needed.
pub(super) async fn submit(State(app): State<App>, Path(name): Path<String>, request: Request<Body>) -> Answer {
    let source = super::place_of(&request).counted_source();
    let catalog = app.venue.catalog_for_commands()?;
    let market = of_path(&catalog, &name)?;
    let too_large = |detail: String| Refusal::new(RejectReason::TooLarge, detail);
    let body = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let body = body.map_err(|e| too_large(format!("{e}; at most {BODY_BYTES_MAX} bytes are read")))?;
    let Transactions { transactions } = requests::parse(&body)?;
    if transactions.len() > TRANSACTIONS_MAX {
        return Err(too_large(format!("{} transactions: send at most {TRANSACTIONS_MAX} at once", transactions.len())).into());
    }
    // Each beyond the first counts as a request of its own.
    if let Some(source) = source {
        app.access.admit_source_times(
            source,
            Allowance::Requests,
            u32::try_from(transactions.len().saturating_sub(1)).unwrap_or(u32::MAX),
        )?;
    }
    let read: Vec<_> = transactions.iter().enumerate().map(|(place, text)| read(place, text)).collect();
    let asked: Vec<_> = read.iter().map(|one| one.as_ref().ok().map(|signed| signed.transaction)).collect();
    let mut read = checked(&app, market, read).await?;
    refuse_torn(&asked, &mut read);
    let outcomes = app.venue.transactions(market, read.iter().filter_map(|one| one.as_ref().ok()).copied().collect()).await;
    let mut outcomes = outcomes.into_iter();
    let results = read.into_iter().map(|one| {
        result_of(one.and_then(|_| {
            let outcome = outcomes.next().unwrap_or(Err(RejectReason::VenueNotReady.into()))?;
            let collected = outcome.collected().map_err(Refusal::from)?;
            Ok(json!({
                "account_id": collected.account.0,
                "sequence": collected.sequence.0.to_string(),
                "block": collected.block.to_string(),
            }))
        }))
    });
    Ok(ok(&json!({"results": results.collect::<Vec<_>>()})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Offers {
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Offers in one answer.
const OFFERS_MAX: usize = 1_000;

pub(super) async fn offers(State(app): State<App>, asked: Asked<Offers>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let Offers { limit, cursor: from } = query(asked)?;
    let limit = at_most("limit", limit, OFFERS_MAX, OFFERS_MAX)?.max(1);
    let from = cursor(from.as_deref())?.map_or(TransactionSeq(0), TransactionSeq);
    let (offers, next) = visits::offers(&app, account, from, limit).await?;
    let catalog = app.venue.catalog();
    let offers: Vec<_> = offers.iter().filter_map(|offer| batches::offer(&catalog, offer)).collect();
    Ok(ok(&json!({"offers": offers, "next": next.map(|next| next.0.to_string())})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outcomes {
    limit: Option<usize>,
    sequence: Option<String>,
}

/// Of the key's own account: the last ones, or the one of a number.
pub(super) async fn transactions(State(app): State<App>, asked: Asked<Outcomes>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let Outcomes { limit, sequence } = query(asked)?;
    let limit = at_most("limit", limit, OUTCOMES_MAX, OUTCOMES_MAX)?;
    let sequence = sequence.as_deref().map(super::batch_proofs::sequence).transpose()?;
    let read = app.venue.read(move |v| match sequence {
        Some(sequence) => Vec::from_iter(transaction_outcome(v.engine, v.market, account, sequence)),
        None => transaction_outcomes(v.engine, v.market, account),
    });
    let found = read.await?;
    let catalog = app.venue.catalog();
    let shown = found.iter().take(limit).filter_map(|(stage, outcome)| batches::transaction(&catalog, *stage, outcome));
    Ok(ok(&json!({"transactions": shown.collect::<Vec<_>>()})))
}
