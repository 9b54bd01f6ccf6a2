//! The market that passed: spread and depth, weighted by how long they stood, while orders match as they come.

use std::collections::BTreeMap;

use walras_order_book::{DepthLevel, OrderBook};
use walras_types::Side;

/// Levels a side that count as depth.
const LEVELS: usize = 5;

/// Spread and depth of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct QualityReport {
    /// Mean distance of the best prices, weighted by time (by message where the file has no times).
    pub spread_mean_ticks: f64,
    /// Median, weighted alike.
    pub spread_median_ticks: u64,
    /// Mean of the lots shown on the five best bid levels, weighted alike.
    pub bid_depth_mean_lots: f64,
    /// Mean of the lots shown on the five best ask levels, weighted alike.
    pub ask_depth_mean_lots: f64,
    /// How long both sides stood and matched, in seconds; zero where the file has no times.
    pub two_sided_s: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Quality {
    weight_by_spread: BTreeMap<u64, u64>,
    lots_by_weight: [u128; 2],
    weight: u64,
    levels: Vec<DepthLevel>,
}

impl Quality {
    /// The book stood like this for `weight`.
    pub(crate) fn observe(&mut self, book: &OrderBook, weight: u64) {
        let (Some(bid), Some(ask)) = (book.best(Side::Buy), book.best(Side::Sell)) else { return };
        if weight == 0 || bid >= ask {
            return;
        }
        *self.weight_by_spread.entry(bid.distance(ask)).or_default() += weight;
        self.weight += weight;
        for side in Side::BOTH {
            self.levels.clear();
            book.depth(side, LEVELS, &mut self.levels);
            let lots: u64 = self.levels.iter().map(|level| level.shown.get()).sum();
            self.lots_by_weight[side as usize] += u128::from(lots) * u128::from(weight);
        }
    }

    pub(crate) fn report(&self, has_times: bool) -> Option<QualityReport> {
        if self.weight == 0 {
            return None;
        }
        let weight = self.weight as f64;
        let total: u128 = self.weight_by_spread.iter().map(|(&spread, &weight)| u128::from(spread) * u128::from(weight)).sum();
        let mut below = 0;
        let median = self.weight_by_spread.iter().find(|(_, weight)| {
            below += **weight;
            2 * u128::from(below) >= u128::from(self.weight)
        });
        Some(QualityReport {
            spread_mean_ticks: total as f64 / weight,
            spread_median_ticks: median.map_or(0, |(&spread, _)| spread),
            bid_depth_mean_lots: self.lots_by_weight[0] as f64 / weight,
            ask_depth_mean_lots: self.lots_by_weight[1] as f64 / weight,
            two_sided_s: if has_times { weight / 1e9 } else { 0.0 },
        })
    }
}
