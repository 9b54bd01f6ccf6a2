//! Market data, which hears events alone, shows the engine's books, phases and last prices.

use walras_engine::Engine;
use walras_market_data::MarketData;
use walras_types::Side;

use super::{Checked, Violation};

const CHECK: &str = "depth";

pub(crate) fn check(engine: &Engine, market: &MarketData) -> Checked {
    let violation = |detail: String| Err(Violation::new(CHECK, format!("after entry {}: {detail}", engine.last_applied())));
    if market.log_index() != engine.last_applied() {
        return violation(format!("market data is at entry {}", market.log_index()));
    }
    if market.instruments().len() != engine.instruments().len() {
        return violation(format!("market data has {} instruments", market.instruments().len()));
    }
    for (view, feed) in engine.instruments().zip(market.instruments()) {
        let instrument = view.spec.instrument;
        if (feed.ticker().phase, feed.ticker().last) != (view.phase, view.last_price) {
            return violation(format!("of instrument {instrument} market data shows {:?}, the engine {view:?}", feed.ticker()));
        }
        for side in Side::BOTH {
            let mut depth = Vec::new();
            engine.depth(instrument, side, usize::MAX, &mut depth);
            let theirs: Vec<_> = depth.iter().map(|level| (level.price, level.shown, level.order_count)).collect();
            let ours: Vec<_> = feed.book().levels(side).map(|level| (level.price, level.shown, level.order_count)).collect();
            if ours != theirs {
                return violation(format!(
                    "{side:?} of instrument {instrument}: market data shows {ours:?}, the engine {theirs:?}"
                ));
            }
        }
    }
    Ok(())
}
