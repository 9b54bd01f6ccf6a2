//! Market data, which hears events alone, shows the engine's books, phases and last prices.

use walras_types::Side;

use super::{Checked, Violation};
use crate::node::Process;

const CHECK: &str = "depth";

pub(super) fn check(process: &Process) -> Checked {
    let (engine, market) = (process.engine(), process.market());
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
