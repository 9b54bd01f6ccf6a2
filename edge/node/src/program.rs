//! What this program knows of the engine's versions.

use std::sync::OnceLock;

use walras_engine::versions::{NEWEST, REHEARSAL};
use walras_types::EngineVersion;

static ENGINE_NEWEST: OnceLock<EngineVersion> = OnceLock::new();

/// The newest version of the engine that it says it knows.
pub fn engine_newest() -> EngineVersion {
    *ENGINE_NEWEST.get_or_init(|| NEWEST)
}

/// From now on this process is the next release in a test of upgrades: it knows [`REHEARSAL`]. Say it before anything else.
pub fn rehearse() {
    let _ = ENGINE_NEWEST.set(REHEARSAL);
}
