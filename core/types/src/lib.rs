//! The vocabulary of the deterministic core: ids, quantities, order terms, instrument definitions, places in a session,
//! reject reasons, limits.
//!
//! *Deliberately absent*: behaviour. Nothing here matches, reserves or encodes; a type knows its range and its arithmetic.
//!
//! *Invariants*
//! - A [`PriceTicks`] or [`SizeLots`] made by `new` is inside its documented range, so products of the two fit 128 bits and, once
//!   multiplied by an instrument's tick value and checked, 64.
//! - No quantity is ever a float.
//! - Every reject reason has a stable number ([`RejectReason::number`]) and a sentence that says what to do.
//!
//! *Start reading* at [`order`] (what a participant asks for), then [`quantity`].
#![deny(clippy::float_arithmetic)]

#[cfg(test)]
mod advice;
mod asset_places;
pub mod batch;
pub mod batch_price;
mod client_order_name;
pub mod content;
pub mod drop_reason;
pub mod ids;
pub mod instrument;
pub mod limits;
pub mod net_rate;
mod nonce;
pub mod order;
pub mod pool;
mod prefetch;
pub mod quantity;
pub mod reject;
pub mod session;
mod wide;

pub use asset_places::AssetPlaces;
pub use batch::*;
pub use batch_price::*;
pub use client_order_name::ClientOrderName;
pub use content::ContentDigest;
pub use drop_reason::*;
pub use ids::*;
pub use instrument::*;
pub use net_rate::*;
pub use nonce::*;
pub use order::*;
pub use pool::*;
pub use prefetch::prefetch;
pub use quantity::*;
pub use reject::*;
pub use session::*;
pub use wide::U256;
