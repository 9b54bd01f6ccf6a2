//! The entry points of the fuzz targets of `edge/`: what a node reads of strangers (JSON bodies, WebSocket messages, parameters
//! of the Binance dialect, frames of a link), of its operator (configuration, offers to clear) and of its own disk (snapshots, the
//! archive's journals); and how its leader prices the offers of a batch market.
//!
//! *Deliberately absent*: everything below the edge (`walras-testkit`, which does not build a node); TLS, HTTP and Parquet themselves, which
//! are libraries' (`edge/node/tests/clear/damaged.rs` holds what damaged Parquet files end in).
//!
//! *Invariants*
//! - A target ends with a panic where something is wrong, and else says nothing.
//!
//! *Start reading* at [`TARGETS`].

use walras_testkit::fuzz::Target;

pub mod archive;
pub mod batches;
pub mod dialect;
pub mod disk;
pub mod requests;
pub mod settings;
pub mod socket;

/// Every fuzz target of this crate.
pub const TARGETS: &[Target] = &[
    ("json_requests", requests::bodies),
    ("ws_message", requests::messages),
    ("node_snapshot", disk::snapshot),
    ("node_fills", disk::fills),
    ("archive_journals", archive::journals),
    ("link_frames", socket::frames),
    ("node_config", settings::config),
    ("clear_offers", settings::offers),
    ("binance_params", dialect::parameters),
    ("clear_market", batches::market_of_any_offers),
];
