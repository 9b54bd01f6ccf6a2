//! What a trader would look up: one transcript for each rule.

mod allocation;
mod auctions;
mod holding;
mod leaving;
mod order_types;
mod restoring;
mod self_trades;
mod stops;
