//! Batch markets as JSON. Amounts are exact. Prices are valuations, and only their ratios have a meaning: so they are shown as the
//! worth of a whole unit in whole units of the market's first asset, to eight digits, together with the exact bits.

use std::sync::Arc;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde_json::{Map, Value, json};
use walras_batch::BlockHeader;
use walras_batch::light::roots_bytes;
use walras_market_data::{BatchBlock, BlockProof, OfferChange, OfferFill, OfferOutcome, StandingOffer, TransactionOutcome};
use walras_ports::{
    AssetScale, BatchLook, BatchPush, Catalog, DemandCurve, PRICE_DIGITS, TransactionStage, batch_name, float, significant, whole,
};
use walras_types::{AssetId, BatchMarketId, BatchPhase, DropReason, Intake, TransactionSeq};

use super::account_fee;

/// Significant digits of a stated limit and of a turnover.
const STATED_DIGITS: i32 = 12;

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// The bytes of such digits, of either case.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}

fn scales<'a>(catalog: &'a Catalog, assets: &[AssetId]) -> Vec<&'a AssetScale> {
    assets.iter().filter_map(|asset| catalog.asset(*asset)).collect()
}

/// A block.
#[must_use]
pub fn block(catalog: &Catalog, assets: &[AssetId], block: &BatchBlock) -> Value {
    let scales = scales(catalog, assets);
    let numeraire = scales.first().zip(block.prices.first().copied().flatten());
    let (mut prices, mut price_bits, mut volumes, mut turnover) = (Map::new(), Map::new(), Map::new(), 0.0);
    for (place, scale) in scales.iter().enumerate() {
        let name = scale.spec.symbol.as_str();
        let valuation = block.prices.get(place).copied().flatten();
        let price = valuation.zip(numeraire).map(|(price, (per, unit))| whole(float(price) / float(unit), scale, per));
        let sold = block.sold.get(place).copied().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a turnover is shown to twelve digits")]
        let units = sold.get() as f64;
        turnover += price.unwrap_or(0.0) * units / 10_f64.powi(i32::from(scale.spec.decimals));
        prices.insert(name.to_owned(), price.map(|price| significant(price, PRICE_DIGITS)).into());
        price_bits.insert(name.to_owned(), valuation.map(|price| price.bits().to_string()).into());
        volumes.insert(name.to_owned(), scale.amount(sold).into());
    }
    json!({
        "block": block.block.to_string(),
        "time_ns": block.time.0.to_string(),
        "log_index": block.log_index.0.to_string(),
        "transactions": block.transactions,
        "dropped": block.dropped,
        "offers_traded": block.offers_traded,
        "pairs_traded": block.pairs_traded,
        "gap_ppb": block.gap_ppb,
        "unserved_ppb": block.unserved_ppb,
        "set_aside": block.set_aside,
        "state_root": hex(&block.state_root),
        "prices": prices,
        "price_bits": price_bits,
        "volumes": volumes,
        "turnover": significant(turnover, STATED_DIGITS),
    })
}

/// Blocks, in the order given.
#[must_use]
pub fn blocks<'a>(catalog: &Catalog, assets: &[AssetId], blocks: impl IntoIterator<Item = &'a Arc<BatchBlock>>) -> Value {
    blocks.into_iter().map(|one| block(catalog, assets, one)).collect()
}

/// One of `GET /v1/batches`.
#[must_use]
pub fn batch(catalog: &Catalog, look: &BatchLook) -> Value {
    let names: Vec<_> = scales(catalog, &look.assets).iter().map(|scale| scale.spec.symbol.to_string()).collect();
    let spec = &look.spec;
    json!({
        "market_id": spec.market.0,
        "name": batch_name(spec),
        "numeraire": names.first(),
        "currencies": &names[..look.currencies.min(names.len())],
        "assets": names,
        "interval_ms": spec.interval_ns / 1_000_000,
        "commission_exponent": spec.commission.exponent(),
        "mu_exponent": spec.mu.exponent(),
        "gap_ppb_max": spec.quality.gap_ppb,
        "unserved_ppb_max": spec.quality.unserved_ppb,
        "intake": match spec.intake { Intake::Filter => "filter", Intake::Reserve => "reserve" },
        "transactions_max": spec.transactions_max,
        "account_fee": account_fee::shown(catalog, look.account_fee.now),
        "account_fee_next": account_fee::shown(catalog, look.account_fee.next),
        "phase": phase(look.phase),
        "domain": hex(&spec.domain),
        "collected": look.collected,
        "collecting_block": look.collecting_block.to_string(),
        "closed_block": look.closed_block.map(|block| block.to_string()),
        "standing_offers": look.standing_offers.to_string(),
        "idle_blocks": look.idle_blocks,
        "aside_blocks": look.aside_blocks,
        "last_block": look.last.as_ref().map(|last| block(catalog, &look.assets, last)),
    })
}

/// `open` or `closed`.
#[must_use]
pub fn phase(phase: BatchPhase) -> &'static str {
    match phase {
        BatchPhase::Open => "open",
        BatchPhase::Closed => "closed",
    }
}

/// The full header of a block, and what the state hashed to: what a light client opens that wants all prices and trades.
#[must_use]
pub fn header(market: BatchMarketId, proof: &BlockProof) -> Value {
    let mut body = roots(market, proof);
    body["header"] = hex(&proof.header).into();
    body
}

/// The light header of a block, and what the state hashed to: what a light client opens.
#[must_use]
pub fn light_header(market: BatchMarketId, proof: &BlockProof, header: &BlockHeader) -> Value {
    let mut body = roots(market, proof);
    body["light_header"] = hex(&header.light().bytes()).into();
    body
}

fn roots(market: BatchMarketId, proof: &BlockProof) -> Value {
    json!({
        "block": proof.block.to_string(),
        "roots": {
            "accounts": hex(&proof.roots.accounts),
            "offers": hex(&proof.roots.offers),
            "touched": hex(&proof.touched),
            "state": hex(&proof.roots.state),
        },
        "light_roots": hex(&roots_bytes(market, &proof.roots, &proof.touched)),
    })
}

/// An own standing offer; nothing where the catalog does not know its assets yet.
#[must_use]
pub fn offer(catalog: &Catalog, offer: &StandingOffer) -> Option<Value> {
    let (sell, buy) = (catalog.asset(offer.sell)?, catalog.asset(offer.buy)?);
    Some(json!({
        "batch": catalog.batch(offer.market)?.name,
        "sequence": offer.sequence.0.to_string(),
        "sell": sell.spec.symbol.as_str(),
        "buy": buy.spec.symbol.as_str(),
        "amount": sell.amount(offer.amount),
        "stated_price": significant(whole(float(offer.stated), sell, buy), STATED_DIGITS),
        "stated_bits": offer.stated.bits().to_string(),
        "limit_bits": offer.limit.bits().to_string(),
        "tie": offer.tie.to_string(),
        "block": offer.block.to_string(),
    }))
}

/// A fill of an own offer.
#[must_use]
pub fn offer_fill(catalog: &Catalog, fill: &OfferFill) -> Option<Value> {
    let (sell, buy) = (catalog.asset(fill.sell)?, catalog.asset(fill.buy)?);
    Some(json!({
        "batch": catalog.batch(fill.market)?.name,
        "sequence": fill.sequence.0.to_string(),
        "block": fill.block.to_string(),
        "sell": sell.spec.symbol.as_str(),
        "buy": buy.spec.symbol.as_str(),
        "sold": sell.amount(fill.sold),
        "bought": buy.amount(fill.bought),
        "time_ns": fill.time.0.to_string(),
    }))
}

fn drop_reason(reason: DropReason) -> Value {
    json!({"code": reason.number(), "name": reason.name(), "message": reason.advice()})
}

/// An own transaction, and what came of it so far. One that created an offer says what it traded, and at what.
#[must_use]
pub fn transaction(catalog: &Catalog, stage: TransactionStage, outcome: &TransactionOutcome) -> Option<Value> {
    let mut shown = json!({
        "batch": catalog.batch(outcome.market)?.name,
        "sequence": outcome.sequence.0.to_string(),
        "block": outcome.block.to_string(),
        "status": stage.name(),
    });
    if let TransactionStage::Dropped(reason) = stage {
        shown["reason"] = drop_reason(reason);
    }
    if let Some(OfferOutcome { sell, buy, sold, bought, standing }) = outcome.offer {
        let (sell, buy) = (catalog.asset(sell)?, catalog.asset(buy)?);
        shown["sell"] = sell.spec.symbol.as_str().into();
        shown["buy"] = buy.spec.symbol.as_str().into();
        shown["sold"] = sell.amount(sold).into();
        shown["bought"] = buy.amount(bought).into();
        shown["standing"] = sell.amount(standing.unwrap_or_default()).into();
        #[expect(clippy::cast_precision_loss, reason = "a price is shown to eight digits")]
        let price = (!sold.is_zero()).then(|| whole(bought.get() as f64 / sold.get() as f64, sell, buy));
        shown["price"] = price.map(|price| significant(price, PRICE_DIGITS)).into();
    }
    Some(shown)
}

/// What became of an own offer or transaction. One that opened says all of the offer.
#[must_use]
pub fn offer_update(catalog: &Catalog, change: &OfferChange) -> Option<Value> {
    let of = |market, sequence: TransactionSeq, status| {
        Some(json!({"batch": catalog.batch(market)?.name, "sequence": sequence.0.to_string(), "status": status}))
    };
    match change {
        OfferChange::Opened(standing) => {
            let mut update = offer(catalog, standing)?;
            update["status"] = "open".into();
            Some(update)
        }
        OfferChange::Traded { fill, left, limit } => {
            let (sell, buy) = (catalog.asset(fill.sell)?, catalog.asset(fill.buy)?);
            let mut update = of(fill.market, fill.sequence, "traded")?;
            update["sell"] = sell.spec.symbol.as_str().into();
            update["buy"] = buy.spec.symbol.as_str().into();
            update["sold"] = sell.amount(fill.sold).into();
            update["bought"] = buy.amount(fill.bought).into();
            update["amount"] = sell.amount(*left).into();
            if let Some(limit) = limit {
                update["limit_bits"] = limit.bits().to_string().into();
            }
            Some(update)
        }
        OfferChange::Cancelled { market, sequence, sell, amount } => {
            let mut update = of(*market, *sequence, "cancelled")?;
            update["amount"] = catalog.asset(*sell)?.amount(*amount).into();
            Some(update)
        }
        OfferChange::Dropped { market, sequence, reason } => {
            let mut update = of(*market, *sequence, "dropped")?;
            update["reason"] = drop_reason(*reason);
            Some(update)
        }
    }
}

/// A market's feed.
#[must_use]
pub fn batch_push(catalog: &Catalog, push: &BatchPush) -> Option<Value> {
    Some(json!({
        "type": "batch",
        "kind": if push.snapshot { "snapshot" } else { "update" },
        "batch": catalog.batch(push.market)?.name,
        "phase": phase(push.phase),
        "interval_ms": push.interval_ns / 1_000_000,
        "assets": scales(catalog, &push.assets).iter().map(|scale| scale.spec.symbol.to_string()).collect::<Vec<_>>(),
        "collected": push.collected,
        "closed_block": push.closed_block.map(|block| block.to_string()),
        "blocks": blocks(catalog, &push.assets, &push.blocks),
    }))
}

/// Supply and demand of a pair.
#[must_use]
pub fn demand(catalog: &Catalog, curve: &DemandCurve) -> Option<Value> {
    let (sell, buy) = (catalog.asset(curve.sell)?, catalog.asset(curve.buy)?);
    let price = |price: f64| significant(whole(price, sell, buy), PRICE_DIGITS);
    let points = curve
        .points
        .iter()
        .map(|(at, supply, demand)| json!({"price": price(*at), "supply": sell.amount(*supply), "demand": sell.amount(*demand)}));
    Some(json!({
        "sell": sell.spec.symbol.as_str(),
        "buy": buy.spec.symbol.as_str(),
        "price": curve.price.map(price),
        "points": points.collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_mean_something() {
        for (value, digits, text) in [
            (1.0, 8, "1"),
            (1.0832, 8, "1.0832"),
            (1.083_299_999_6, 8, "1.0833"),
            (63_123.456_78, 8, "63123.457"),
            (0.000_012_345_678_9, 8, "0.000012345679"),
            (123_456_789_012.0, 8, "123456789012"),
            (0.0, 8, "0"),
            (f64::NAN, 8, "0"),
        ] {
            assert_eq!(significant(value, digits), text);
        }
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        assert_eq!(hex(&[0, 0xa5, 0xff]), "00a5ff");
        assert_eq!(unhex("00A5ff"), Some(vec![0, 0xa5, 0xff]));
        for wrong in ["0", "0g", "é0", "+1"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
