//! FIX at a leaf gateway below a cluster of three replicas, without sockets: what its clients hear while links and replicas above are lost.

#[allow(dead_code, reason = "the tests of the other crate need more of it")]
#[path = "../../../../fix-orders/tests/venue/client.rs"]
mod client;
mod sessions;
mod world;

use walras_types::{Allocation, AssetId, FeeSchedule, InstrumentId, InstrumentSpec, PriceTicks, RiskLimits, Symbol};

/// An instrument of asset 0 in another one.
pub(super) fn spec(instrument: u32, symbol: &str, quote: u32) -> InstrumentSpec {
    InstrumentSpec {
        instrument: InstrumentId(instrument),
        symbol: Symbol::new(symbol).unwrap(),
        base: AssetId(0),
        quote: AssetId(quote),
        lot_units: 100_000,
        tick_value_units: 500,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: 0, taker_ppm: 100 },
        collar_ppm: 1_000_000,
        band_ppm: 1_000_000,
        reference_price: PriceTicks::new(60_000).unwrap(),
        default_limits: RiskLimits::NONE,
    }
}
