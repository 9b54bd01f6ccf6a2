//! Blocks, accounts and offers checked without a venue's state: `walras_batch::light` for `walras/light.py`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use walras_batch::light::{self, LightBlock, LightError};
use walras_clearing::{AssetIndex, OfferId, OfferKey, Pair};
use walras_types::{AccountId, BatchPrice};

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

/// A block that was checked against its hash.
#[pyclass(frozen)]
pub(crate) struct Block(LightBlock);

type Header<'py> = (u16, u64, Bound<'py, PyBytes>, Bound<'py, PyBytes>, u32);
type Quality<'py> = (Bound<'py, PyBytes>, u32, u32, u16, Bound<'py, PyBytes>);
type Trade = (u16, u16, u64, f64, u64, u64);
type Account<'py> = (Option<Bound<'py, PyBytes>>, u64, Vec<(u32, u64, u64)>);

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

    /// The valuation of each asset.
    fn prices(&self) -> Vec<Option<f64>> {
        self.0.header().prices.iter().map(|price| price.map(float)).collect()
    }

    /// Of each pair that traded: the asset sold, the asset bought, units sold, and the last offer that traded: limit, tie, id.
    fn trades(&self) -> Vec<Trade> {
        let trades = self.0.header().trades.iter();
        trades
            .map(|(trade, key)| (trade.pair.sell.0, trade.pair.buy.0, trade.sold.get(), float(key.limit), key.tie, key.id.0))
            .collect()
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
