//! What entries say of batch markets.
//!
//! Prices and limits are the bits of a binary64, as the log has them; amounts are in smallest units.

use serde_json::{Map, Value, json};
use walras_types::{
    BatchMarketId, BatchOperation, BatchPrice, BatchTransaction, CancelOffer, CreateOffer, CreatePool, DepositToPool, IssuedAmount,
    Joined, OfferName, Payment, PoolRule, TransactionTerms, WithdrawFromPool,
};
use walras_wire::batch::{
    BlockProposal, BlockRoots, Certificate, OfferKeyWire, PairTradeWire, PoolSideWire, PoolTradeWire, SignedTransaction,
};
use walras_wire::{BatchMarketSpec, SubmitTransaction};

use super::super::names;
use super::{hex, number, object};

/// A batch market's definition.
pub(super) fn market(spec: &BatchMarketSpec) -> Map<String, Value> {
    let BatchMarketSpec { market, symbol, commission, mu, lower_bounds, quality, intake, interval_ns, transactions_max, domain } =
        spec;
    object([
        ("batch_market_id", Some(market.0.into())),
        ("symbol", Some(symbol.as_str().into())),
        ("commission_exponent", commission.exponent().map(Value::from)),
        ("mu_exponent", Some(mu.exponent().into())),
        ("lower_bounds", Some(names::lower_bounds(*lower_bounds).into())),
        ("gap_ppb_max", Some(quality.gap_ppb.into())),
        ("unserved_ppb_max", Some(quality.unserved_ppb.into())),
        ("intake", Some(names::intake(*intake).into())),
        ("interval_ns", Some(number(*interval_ns))),
        ("transactions_max", Some((*transactions_max).into())),
        ("domain", Some(hex(domain).into())),
    ])
}

/// A transaction on its way into a batch.
pub(super) fn submit(submit: &SubmitTransaction) -> Map<String, Value> {
    let SignedTransaction { transaction, signature } = submit.signed();
    object([
        ("batch_market_id", Some(submit.market().0.into())),
        ("transaction", Some(self::transaction(&transaction))),
        ("signature", Some(hex(&signature).into())),
    ])
}

fn transaction(transaction: &BatchTransaction) -> Value {
    let BatchTransaction { account, sequence, terms, operation } = transaction;
    let (kind, fields) = match operation {
        BatchOperation::CreateAccount(key) => ("create_account", object([("key", Some(hex(&key.0).into()))])),
        BatchOperation::SetKey(key) => ("set_key", object([("key", Some(hex(&key.0).into()))])),
        BatchOperation::CreateOffer(offer) => {
            let CreateOffer { market, sell, buy, amount, limit } = offer;
            let fields = [
                ("batch_market_id", Some(market.0.into())),
                ("sell_asset_id", Some(sell.0.into())),
                ("buy_asset_id", Some(buy.0.into())),
                ("amount_units", Some(number(amount.get()))),
                ("limit_bits", Some(bits(*limit))),
            ];
            ("create_offer", object(fields))
        }
        BatchOperation::CancelOffer(cancel) => {
            let CancelOffer { market, sell, buy, limit, tie, sequence } = cancel;
            let fields = [
                ("batch_market_id", Some(market.0.into())),
                ("sell_asset_id", Some(sell.0.into())),
                ("buy_asset_id", Some(buy.0.into())),
                ("limit_bits", Some(bits(*limit))),
                ("tie", Some(number(*tie))),
                ("offer_sequence", Some(number(sequence.0))),
            ];
            ("cancel_offer", object(fields))
        }
        BatchOperation::Payment(payment) => {
            let Payment { to, asset, amount } = payment;
            let fields = [
                ("to_account_id", Some(to.0.into())),
                ("asset_id", Some(asset.0.into())),
                ("amount_units", Some(number(amount.get()))),
            ];
            ("payment", object(fields))
        }
        BatchOperation::Issue(issued) => ("issue", issued_amount(issued)),
        BatchOperation::Burn(burned) => ("burn", issued_amount(burned)),
        BatchOperation::CreatePool(create) => ("create_pool", create_pool(create)),
        BatchOperation::DepositToPool(deposit) => {
            let DepositToPool { market, pool, amounts } = deposit;
            let mut fields = of_pool(*market, *pool);
            fields.insert("amounts_units".to_owned(), amounts.iter().map(|amount| number(amount.get())).collect());
            ("deposit_to_pool", fields)
        }
        BatchOperation::WithdrawFromPool(withdraw) => {
            let WithdrawFromPool { market, pool, shares } = withdraw;
            let mut fields = of_pool(*market, *pool);
            fields.insert("shares".to_owned(), number(shares.get()));
            ("withdraw_from_pool", fields)
        }
    };
    let mut fields = fields;
    fields.insert("kind".to_owned(), kind.into());
    fields.insert("account_id".to_owned(), account.0.into());
    fields.insert("sequence".to_owned(), number(sequence.0));
    let TransactionTerms { until, joined } = terms;
    if let Some(until) = until {
        fields.insert("until_block".to_owned(), number(until.get()));
    }
    let (key, value): (&str, Value) = match joined {
        Joined::No => return fields.into(),
        Joined::Next => ("joined", true.into()),
        Joined::First => ("chain", "first".into()),
        Joined::Middle => ("chain", "middle".into()),
        Joined::Last => ("chain", "last".into()),
    };
    fields.insert(key.to_owned(), value);
    fields.into()
}

fn create_pool(create: &CreatePool) -> Map<String, Value> {
    let CreatePool { market, assets: [first, second], rule, fee_ppm, amounts } = create;
    let (weights, amplification) = match rule {
        PoolRule::ConstantProduct => (None, None),
        PoolRule::Weighted { weights } => (Some(weights.iter().copied().collect()), None),
        PoolRule::StableSwap { amplification } => (None, Some((*amplification).into())),
    };
    object([
        ("batch_market_id", Some(market.0.into())),
        ("first_asset_id", Some(first.0.into())),
        ("second_asset_id", Some(second.0.into())),
        ("rule", Some(names::pool_rule(rule).into())),
        ("weights", weights),
        ("amplification", amplification),
        ("fee_ppm", Some((*fee_ppm).into())),
        ("amounts_units", Some(amounts.iter().map(|amount| number(amount.get())).collect())),
    ])
}

fn of_pool(market: BatchMarketId, pool: OfferName) -> Map<String, Value> {
    object([
        ("batch_market_id", Some(market.0.into())),
        ("pool_account_id", Some(pool.account.0.into())),
        ("pool_sequence", Some(number(pool.sequence.0))),
    ])
}

fn issued_amount(issued: &IssuedAmount) -> Map<String, Value> {
    let IssuedAmount { asset, amount } = issued;
    object([("asset_id", Some(asset.0.into())), ("amount_units", Some(number(amount.get())))])
}

/// A proposed clearing.
pub(super) fn clearing(block: &BlockProposal) -> Value {
    let BlockProposal { market, number: block_number, parent, batch_hash, prices, trades, pools, certificate, roots } = block;
    let Certificate { gap_ppb, unserved_ppb, potentials } = certificate;
    let potentials: Vec<String> = potentials.iter().map(i64::to_string).collect();
    let evidence = json!({ "gap_ppb": gap_ppb, "unserved_ppb": unserved_ppb, "potentials": potentials });
    let hashes = |BlockRoots { accounts, offers, state }: &BlockRoots| json!({ "accounts": hex(accounts), "offers": hex(offers), "state": hex(state) });
    let fields = object([
        ("batch_market_id", Some(market.0.into())),
        ("block", Some(number(*block_number))),
        ("parent", Some(hex(parent).into())),
        ("batch_hash", Some(hex(batch_hash).into())),
        ("price_bits", Some(prices.iter().map(|price| price.map_or(Value::Null, bits)).collect())),
        ("trades", Some(trades.iter().map(trade).collect())),
        ("pool_trades", (!pools.is_empty()).then(|| pools.iter().map(pool).collect())),
        ("certificate", Some(evidence)),
        ("roots", roots.as_ref().map(hashes)),
    ]);
    fields.into()
}

fn trade(trade: &PairTradeWire) -> Value {
    let PairTradeWire { sell, buy, sold, bought_by_buy_offers, marginal } = trade;
    let key = |OfferKeyWire { limit, tie, id }: &OfferKeyWire| json!({ "limit_bits": bits(*limit), "tie": number(*tie), "offer": number(*id) });
    let fields = object([
        ("sell_index", Some((*sell).into())),
        ("buy_index", Some((*buy).into())),
        ("sold_units", Some(number(sold.get()))),
        ("bought_by_buy_offers_units", Some(number(bought_by_buy_offers.get()))),
        ("marginal", marginal.as_ref().map(key)),
    ]);
    fields.into()
}

fn pool(trade: &PoolTradeWire) -> Value {
    let PoolTradeWire { pool, side, sold } = trade;
    let side = match side {
        PoolSideWire::First => "first",
        PoolSideWire::Second => "second",
    };
    json!({ "pool": pool, "side": side, "sold_units": number(sold.get()) })
}

fn bits(price: BatchPrice) -> Value {
    number(price.bits())
}
