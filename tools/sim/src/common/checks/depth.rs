//! A reader of the events alone, and one of what market data publishes, hold the engine's books; market data has its phases and last
//! prices.

use walras_engine::Engine;
use walras_testkit::Listener;

use super::{Checked, Violation};

pub(crate) fn check(engine: &Engine, listener: &Listener) -> Checked {
    let told = |detail| Violation::new("depth", format!("after entry {}: {detail}", engine.last_applied()));
    listener.check(engine).map_err(told)
}
