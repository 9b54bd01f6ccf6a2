//! A reader of the events alone, and one of what market data publishes, hold the engine's books; market data has its phases and
//! last prices.

use walras_engine::Engine;
use walras_market_data::MarketData;
use walras_testkit::Readers;

use super::{Checked, Violation};

/// Market data, and its readers where they are known.
pub(crate) type Market<'a> = (&'a MarketData, Option<&'a Readers>);

pub(crate) fn check(engine: &Engine, (market, readers): Market<'_>) -> Checked {
    let violation = |detail| Violation::new("depth", format!("after entry {}: {detail}", engine.last_applied()));
    readers.map_or(Ok(()), |readers| readers.check(engine, market)).map_err(violation)
}
