//! Pools of batch markets: what everybody may see, an account's own shares, and proofs of both.

use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::json;
use walras_batch::PoolView;
use walras_types::{AccountId, Amount, AssetId, BatchMarketId, OfferName};

use super::batch_proofs::{light, not_provable, sequence};
use super::batches::of_path;
use super::market::{Asked, query};
use super::signed::Signed;
use super::{Answer, App, ok};
use crate::json::batches::hex;
use crate::json::pools;

pub(super) async fn list(State(app): State<App>, Path(name): Path<String>) -> Answer {
    let catalog = app.venue.catalog();
    let market = of_path(&catalog, &name)?;
    // A market has at most `limits::POOLS_MAX`, each of a few numbers.
    let read = move |v: &walras_ports::View<'_>| {
        let assets = v.engine.batch_market(market).map_or_else(Vec::new, |view| view.assets.to_vec());
        (assets, v.engine.pools(market).collect::<Vec<_>>())
    };
    let (assets, views) = app.venue.read(read).await?;
    let shown = views.iter().filter_map(|view| pools::pool(&catalog, market, &assets, view));
    Ok(ok(&json!({"pools": shown.collect::<Vec<_>>()})))
}

/// What an account has in one market: the market's assets, and of each pool its shares.
type OfMarket = (Vec<AssetId>, Vec<(PoolView, Amount)>);

/// Of the key's own account.
pub(super) async fn shares(State(app): State<App>, signed: Signed) -> Answer {
    let account = signed.reader()?;
    let catalog = app.venue.catalog();
    let mut shown = Vec::new();
    for market in (0..).map(BatchMarketId) {
        let read = move |v: &walras_ports::View<'_>| -> Option<OfMarket> {
            let assets = v.engine.batch_market(market)?.assets.to_vec();
            let of_pool = |view: PoolView| (view, v.engine.pool_shares(market, view.name, account));
            let own = v.engine.pools(market).map(of_pool).filter(|(_, shares)| !shares.is_zero());
            Some((assets, own.collect()))
        };
        let Some((assets, own)) = app.venue.read(read).await? else { break };
        shown.extend(own.iter().filter_map(|(view, shares)| pools::shares(&catalog, market, &assets, view, *shares)));
    }
    Ok(ok(&json!({"shares": shown})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PoolPlace {
    account_id: u32,
    sequence: String,
}

pub(super) async fn pool_proof(State(app): State<App>, Path(name): Path<String>, asked: Asked<PoolPlace>) -> Answer {
    proof(&app, &name, asked, None).await
}

/// Of the key's own account: what others have is private.
pub(super) async fn shares_proof(
    State(app): State<App>,
    Path(name): Path<String>,
    asked: Asked<PoolPlace>,
    signed: Signed,
) -> Answer {
    let account = signed.reader()?;
    proof(&app, &name, asked, Some(account)).await
}

async fn proof(app: &App, name: &str, asked: Asked<PoolPlace>, provider: Option<AccountId>) -> Answer {
    let market = of_path(&app.venue.catalog(), name)?;
    let PoolPlace { account_id, sequence: number } = query(asked)?;
    let pool = OfferName { account: AccountId(account_id), sequence: sequence(&number)? };
    let found = app
        .venue
        .read(move |v| {
            let (last, statement) = v.engine.pool_statement(market, pool, provider)?;
            Some((v.market.batch(market)?.proof(last.header.number)?.clone(), statement))
        })
        .await?;
    let (block, statement) = found.ok_or_else(|| {
        not_provable("a batch is closed and not cleared yet, or there is no block: ask again after the next block")
    })?;
    let mut body = light(market, &block)?;
    if let Some(provider) = provider {
        body["provider_account_id"] = provider.0.into();
    }
    body["statement"] = hex(&statement).into();
    Ok(ok(&body))
}
