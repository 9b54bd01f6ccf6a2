//! Pools of batch markets as JSON.

use serde_json::{Value, json};
use walras_batch::PoolView;
use walras_ports::{AssetScale, Catalog};
use walras_types::{Amount, AssetId, BatchMarketId, PoolRule};

use super::names;

/// A pool of a market with these assets, by their numbers; nothing where the catalog does not know them yet.
#[must_use]
pub fn pool(catalog: &Catalog, market: BatchMarketId, assets: &[AssetId], view: &PoolView) -> Option<Value> {
    let mut shown = named(catalog, market, assets, view)?;
    let (weights, amplification) = match view.pool.rule {
        PoolRule::ConstantProduct => (None, None),
        PoolRule::Weighted { weights } => (Some(weights), None),
        PoolRule::StableSwap { amplification } => (None, Some(amplification)),
    };
    shown["rule"] = names::pool_rule(&view.pool.rule).into();
    if let Some(weights) = weights {
        shown["weights"] = weights.iter().copied().collect();
    }
    if let Some(amplification) = amplification {
        shown["amplification"] = amplification.into();
    }
    shown["fee_ppm"] = view.pool.fee_ppm.into();
    shown["reserves"] = amounts(&scales(catalog, assets, view)?, view.pool.reserves);
    shown["shares"] = view.shares.to_string().into();
    Some(shown)
}

/// An account's shares of a pool.
#[must_use]
pub fn shares(catalog: &Catalog, market: BatchMarketId, assets: &[AssetId], view: &PoolView, shares: Amount) -> Option<Value> {
    let mut shown = named(catalog, market, assets, view)?;
    shown["shares"] = shares.to_string().into();
    shown["all_shares"] = view.shares.to_string().into();
    shown["worth"] = amounts(&scales(catalog, assets, view)?, view.worth(shares));
    Some(shown)
}

fn named(catalog: &Catalog, market: BatchMarketId, assets: &[AssetId], view: &PoolView) -> Option<Value> {
    let [first, second] = scales(catalog, assets, view)?;
    Some(json!({
        "batch": catalog.batch(market)?.name,
        "account_id": view.name.account.0,
        "sequence": view.name.sequence.0.to_string(),
        "first": first.spec.symbol.as_str(),
        "second": second.spec.symbol.as_str(),
    }))
}

fn scales(catalog: &Catalog, assets: &[AssetId], view: &PoolView) -> Option<[AssetScale; 2]> {
    let scale = |place: usize| catalog.asset(*assets.get(view.pool.assets[place].index())?).copied();
    Some([scale(0)?, scale(1)?])
}

fn amounts(scales: &[AssetScale; 2], amounts: [Amount; 2]) -> Value {
    scales.iter().zip(amounts).map(|(scale, amount)| scale.amount(amount)).collect()
}
