//! A clearing as columns of plain values.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use walras_batch_solver::offers::NamedMarket;
use walras_batch_solver::{Cleared, Report};
use walras_clearing::{Pair, PoolSide};
use walras_types::Amount;

/// One fill: row, pair, kind, units sold, bought and remaining.
struct Fill {
    row: u64,
    pair: Pair,
    kind: &'static str,
    sold: Amount,
    bought: Amount,
    remaining: Amount,
}

/// What Python gets.
pub(crate) struct Outcome {
    assets: Vec<String>,
    decimals: Vec<u8>,
    /// Worth of a whole of each asset.
    worths: Vec<Option<f64>>,
    fills: Vec<Fill>,
    report: Report,
}

impl Outcome {
    pub(crate) fn new(named: &NamedMarket, cleared: &Cleared<'_>) -> Self {
        let verified = &cleared.verified;
        let mut fills = Vec::with_capacity(cleared.report.fill_count);
        for clearing in verified.pairs() {
            let of_pair = verified.fills(clearing);
            let mut add = |kind, fill: walras_clearing::Fill| {
                let (sold, bought, remaining) = (fill.sold, fill.bought, fill.remaining);
                fills.push(Fill { row: fill.id.0, pair: clearing.pair, kind, sold, bought, remaining });
            };
            of_pair.sells().for_each(|fill| add("sell", fill));
            of_pair.buys().for_each(|fill| add("buy", fill));
        }
        for fill in verified.pools() {
            let (place, pool) = (fill.pool.0 as usize, named.market.pools()[fill.pool.0 as usize]);
            let reserve = match fill.side {
                PoolSide::First => pool.reserves[0],
                PoolSide::Second => pool.reserves[1],
            };
            let remaining = reserve.checked_sub(fill.sold).expect("a pool sells of its reserve");
            let (row, pair) = (named.pool_rows[place], pool.pair(fill.side));
            fills.push(Fill { row, pair, kind: "pool", sold: fill.sold, bought: fill.bought, remaining });
        }
        fills.sort_by_key(|fill| fill.row);
        let worth = |(price, asset): (&Option<walras_types::BatchPrice>, &walras_batch_solver::offers::Asset)| {
            price.map(|price| f64::from_bits(price.bits()) * 10_f64.powi(asset.decimals.into()))
        };
        Self {
            assets: named.assets.iter().map(|asset| asset.name.clone()).collect(),
            decimals: named.assets.iter().map(|asset| asset.decimals).collect(),
            worths: cleared.proposal.prices.iter().zip(&named.assets).map(worth).collect(),
            fills,
            report: cleared.report.clone(),
        }
    }

    pub(crate) fn into_columns(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let columns = PyDict::new(py);
        columns.set_item("fills", self.fills_columns(py)?)?;
        columns.set_item("trades", self.trades_columns(py)?)?;
        columns.set_item("report", self.report_items(py)?)?;
        columns.set_item("components", &self.report.components)?;
        columns.set_item("kept", units(self.report.kept.iter().copied()))?;
        columns.set_item("assets", self.assets)?;
        columns.set_item("decimals", self.decimals.iter().map(|&decimals| u32::from(decimals)).collect::<Vec<_>>())?;
        columns.set_item("worths", self.worths)?;
        Ok(columns)
    }

    fn fills_columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let fills = || self.fills.iter();
        columns.set_item("row", fills().map(|fill| fill.row).collect::<Vec<_>>())?;
        columns.set_item("kind", fills().map(|fill| fill.kind).collect::<Vec<_>>())?;
        columns.set_item("sell", fills().map(|fill| fill.pair.sell.0).collect::<Vec<_>>())?;
        columns.set_item("buy", fills().map(|fill| fill.pair.buy.0).collect::<Vec<_>>())?;
        columns.set_item("sold", units(fills().map(|fill| fill.sold)))?;
        columns.set_item("bought", units(fills().map(|fill| fill.bought)))?;
        columns.set_item("remaining", units(fills().map(|fill| fill.remaining)))?;
        Ok(columns)
    }

    /// Fills by pair, pools included.
    fn trades_columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut trades: BTreeMap<Pair, (u128, u128, usize)> = BTreeMap::new();
        for fill in &self.fills {
            let (sold, bought, fill_count) = trades.entry(fill.pair).or_default();
            *sold += u128::from(fill.sold.get());
            *bought += u128::from(fill.bought.get());
            *fill_count += 1;
        }
        let columns = PyDict::new(py);
        columns.set_item("sell", trades.keys().map(|pair| pair.sell.0).collect::<Vec<_>>())?;
        columns.set_item("buy", trades.keys().map(|pair| pair.buy.0).collect::<Vec<_>>())?;
        columns.set_item("sold", trades.values().map(|trade| trade.0).collect::<Vec<_>>())?;
        columns.set_item("bought", trades.values().map(|trade| trade.1).collect::<Vec<_>>())?;
        columns.set_item("fill_count", trades.values().map(|trade| trade.2).collect::<Vec<_>>())?;
        Ok(columns)
    }

    fn report_items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = &self.report;
        let items = PyDict::new(py);
        items.set_item(
            "outcome",
            match report.outcome {
                walras_batch_solver::Outcome::Cleared => "cleared",
                walras_batch_solver::Outcome::ClearedWithinBounds => "cleared_within_bounds",
                walras_batch_solver::Outcome::Approximate => "approximate",
            },
        )?;
        items.set_item("queries", report.queries)?;
        items.set_item("worst_excess", report.worst_excess)?;
        items.set_item("offer_count", report.offer_count)?;
        items.set_item("in_the_money_count", report.in_the_money_count)?;
        items.set_item("fill_count", report.fill_count)?;
        items.set_item("partial_count", report.partial_count)?;
        items.set_item("pair_count", report.pair_count)?;
        items.set_item("pool_count", report.pool_count)?;
        items.set_item("component_count", report.component_count)?;
        items.set_item("block_count", report.block_count)?;
        items.set_item("pairs_below_count", report.bounds.pairs_below)?;
        items.set_item("mu_achieved", report.mu_achieved)?;
        items.set_item("volume", report.volume)?;
        items.set_item("realised_utility", report.realised_utility)?;
        items.set_item("unrealised_utility", report.unrealised_utility)?;
        items.set_item("buy_realised_utility", report.buy_realised_utility)?;
        items.set_item("buy_unrealised_utility", report.buy_unrealised_utility)?;
        items.set_item("kept_value", report.kept_value)?;
        items.set_item("total_s", report.times.total().as_secs_f64())?;
        Ok(items)
    }
}

fn units(amounts: impl Iterator<Item = Amount>) -> Vec<u64> {
    amounts.map(Amount::get).collect()
}
