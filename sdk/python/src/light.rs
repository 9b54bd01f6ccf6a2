//! Blocks, accounts and offers checked without a venue's state: `walras_batch::light` for `walras/light.py`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use walras_batch::light::{self, LightBlock, LightError};
use walras_clearing::{AssetIndex, OfferId, OfferKey, Pair, PairTrade};
use walras_types::{AccountId, BatchPrice, OfferName, TransactionSeq};
use walras_wire::batch::encode_operation;

/// The Python side makes a `LightError` of code and text.
fn refused(error: &LightError) -> PyErr {
    PyValueError::new_err((error.code(), error.to_string()))
}

fn hash(bytes: &[u8]) -> PyResult<[u8; 32]> {
    bytes
        .try_into()
        .map_err(|_| PyValueError::new_err((0, format!("a hash of {} bytes: give the 32 bytes of a block's hash", bytes.len()))))
}

fn float(price: BatchPrice) -> f64 {
    f64::from_bits(price.bits())
}

fn trade_of((trade, key): &(PairTrade, OfferKey)) -> Trade {
    (trade.pair.sell.0, trade.pair.buy.0, trade.sold.get(), float(key.limit), key.tie, key.id.0)
}

/// A block that was checked against its hash.
#[pyclass(frozen)]
pub(crate) struct Block(LightBlock);

type Header<'py> = (u16, u64, Bound<'py, PyBytes>, Bound<'py, PyBytes>, u32);
type Quality<'py> = (Bound<'py, PyBytes>, u32, u32, u16, Bound<'py, PyBytes>);
type Trade = (u16, u16, u64, f64, u64, u64);
type Outcome<'py> = (Option<Bound<'py, PyBytes>>, Option<(u32, u32, u64, u64)>, Option<u64>, Option<u32>, Option<(u64, u64, u64)>);
type Account<'py> = (Option<Bound<'py, PyBytes>>, u64, Vec<(u32, u64, u64)>);
type Pool = ((u16, u16), (u8, u32), u32, (u64, u64), u64);

#[pymethods]
impl Block {
    /// Its hash.
    fn hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.hash())
    }

    /// Market, number, hash of the block before, hash of the batch, count of transactions.
    fn header<'py>(&self, py: Python<'py>) -> Header<'py> {
        let header = self.0.header();
        let (parent, batch_hash) = (PyBytes::new(py, &header.parent), PyBytes::new(py, &header.batch_hash));
        (header.market.0, header.number, parent, batch_hash, header.transaction_count)
    }

    /// Hash of the market's rules, gap, unserved, assets set aside, hash of the evidence.
    fn quality<'py>(&self, py: Python<'py>) -> Quality<'py> {
        let header = self.0.header();
        let (rules, certificate) = (PyBytes::new(py, &header.rules), PyBytes::new(py, &header.certificate));
        let quality = header.quality;
        (rules, quality.gap_ppb, quality.unserved_ppb, quality.set_aside, certificate)
    }

    /// How many assets the market has.
    fn asset_count(&self) -> usize {
        self.0.header().pairs.asset_count()
    }

    /// How many of them are currencies.
    fn currency_count(&self) -> usize {
        self.0.header().pairs.currency_count()
    }

    /// The valuation of each asset; `None` of a light header.
    fn prices(&self) -> Option<Vec<Option<f64>>> {
        self.0.full().map(|header| header.prices.iter().map(|price| price.map(float)).collect())
    }

    /// Of each pair that traded: the asset sold, the asset bought, units sold, and the last offer that traded: limit, tie, id;
    /// `None` of a light header.
    fn trades(&self) -> Option<Vec<Trade>> {
        self.0.full().map(|header| header.trades.iter().map(trade_of).collect())
    }

    /// The price of an asset; `None` when it has none.
    fn price(&self, asset: u16, statement: &[u8]) -> PyResult<Option<f64>> {
        Ok(self.0.price(AssetIndex(asset), statement).map_err(|error| refused(&error))?.map(float))
    }

    /// What a pair traded, as `trades`; `None` when it did not.
    fn trade(&self, pair: (u16, u16), statement: &[u8]) -> PyResult<Option<Trade>> {
        let pair = Pair { sell: AssetIndex(pair.0), buy: AssetIndex(pair.1) };
        Ok(self.0.trade(pair, statement).map_err(|error| refused(&error))?.as_ref().map(trade_of))
    }

    /// Of a transaction or an offer: the operation's bytes, what was traded (sell, buy, sold, bought), what came back, the account
    /// opened, what a pool got or gave (units of both assets, shares);
    /// `None` when the block did nothing under that number.
    fn outcome<'py>(&self, py: Python<'py>, account: u32, sequence: u64, statement: &[u8]) -> PyResult<Option<Outcome<'py>>> {
        let name = OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) };
        let found = self.0.outcome(name, statement).map_err(|error| refused(&error))?;
        Ok(found.map(|outcome| {
            let operation = outcome.operation.map(|operation| {
                let mut bytes = Vec::new();
                encode_operation(&operation, &mut bytes);
                PyBytes::new(py, &bytes)
            });
            let traded = outcome.traded.map(|traded| (traded.sell.0, traded.buy.0, traded.sold.get(), traded.bought.get()));
            let pooled = outcome.pooled.map(|pooled| {
                let [first, second] = pooled.amounts;
                (first.get(), second.get(), pooled.shares.get())
            });
            (operation, traded, outcome.returned.map(|units| units.get()), outcome.created.map(|account| account.0), pooled)
        }))
    }

    /// Key, last number, and available and reserved by asset; `None` when there is no such account.
    fn account<'py>(&self, py: Python<'py>, account: u32, statement: &[u8]) -> PyResult<Option<Account<'py>>> {
        let found = self.0.account(AccountId(account), statement).map_err(|error| refused(&error))?;
        Ok(found.map(|state| {
            let balances = state.balances.iter().map(|(asset, balance)| (asset.0, balance.available.get(), balance.reserved.get()));
            (state.key.map(|key| PyBytes::new(py, &key.0)), state.last.0, balances.collect())
        }))
    }

    /// Amount and stated limit; `None` when no offer stands under that key.
    fn offer(&self, pair: (u16, u16), key: (f64, u64, u64), statement: &[u8]) -> PyResult<Option<(u64, f64)>> {
        let limit = BatchPrice::from_bits(key.0.to_bits()).map_err(|error| PyValueError::new_err((0, error.to_string())))?;
        let pair = Pair { sell: AssetIndex(pair.0), buy: AssetIndex(pair.1) };
        let key = OfferKey { limit, tie: key.1, id: OfferId(key.2) };
        let found = self.0.offer(pair, &key, statement).map_err(|error| refused(&error))?;
        Ok(found.map(|offer| (offer.amount().get(), float(offer.stated()))))
    }

    /// Both assets, the rule and its parameters, fee, what it has of each, and all shares; `None` when there is no such pool.
    fn pool(&self, account: u32, sequence: u64, statement: &[u8]) -> PyResult<Option<Pool>> {
        let name = OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) };
        let found = self.0.pool(name, statement).map_err(|error| refused(&error))?;
        Ok(found.map(|view| {
            let ([first, second], [has, has_other]) = (view.pool.assets, view.pool.reserves);
            let reserves = (has.get(), has_other.get());
            ((first.0, second.0), view.pool.rule.parts(), view.pool.fee_ppm, reserves, view.shares.get())
        }))
    }

    /// An account's shares of a pool; 0 when it has none, or when there is no such pool.
    fn pool_shares(&self, account: u32, sequence: u64, provider: u32, statement: &[u8]) -> PyResult<u64> {
        let name = OfferName { account: AccountId(account), sequence: TransactionSeq(sequence) };
        let shares = self.0.pool_shares(name, AccountId(provider), statement).map_err(|error| refused(&error))?;
        Ok(shares.get())
    }
}

/// See `walras.light.open_block`.
#[pyfunction]
pub(crate) fn open_block(trusted: &[u8], header: &[u8], roots: &[u8]) -> PyResult<Block> {
    LightBlock::open(&hash(trusted)?, header, roots).map(Block).map_err(|error| refused(&error))
}

/// See `walras.light.open_chain`.
#[pyfunction]
pub(crate) fn open_chain(
    newest: &[u8],
    oldest: &[u8],
    blocks: Vec<(Bound<'_, PyBytes>, Bound<'_, PyBytes>)>,
) -> PyResult<Vec<Block>> {
    let blocks: Vec<(&[u8], &[u8])> = blocks.iter().map(|(header, roots)| (header.as_bytes(), roots.as_bytes())).collect();
    let chain = light::open_chain(&hash(newest)?, &hash(oldest)?, &blocks).map_err(|error| refused(&error))?;
    Ok(chain.into_iter().map(Block).collect())
}
