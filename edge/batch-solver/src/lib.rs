//! Clears a batch: prices, amounts, the core's own check of both, and a report of what the clearing is worth.
//!
//! This is where the two searches meet that know nothing of each other: `walras-price-solver` finds prices in floats, then
//! `walras-trade-amounts` finds whole units at those prices. It is a crate of its own so that neither has to know the other, nor to be built
//! again with it.
//!
//! ```
//! use walras_batch_solver::{Settings, clear};
//! use walras_clearing::{AssetIndex, BatchMarket, Offer, OfferId, Pair};
//! use walras_types::{Amount, BatchPrice, Commission, Mu, Rounding};
//!
//! let offer = |id, units, limit| {
//!     let limit = BatchPrice::from_decimal(limit, Rounding::Up).unwrap();
//!     Offer::new(limit, 0, OfferId(id), Amount::new(units).unwrap()).unwrap()
//! };
//! let [gold, silver] = [AssetIndex(0), AssetIndex(1)];
//! let (sells_gold, sells_silver) = (Pair { sell: gold, buy: silver }, Pair { sell: silver, buy: gold });
//! let offers = [(sells_gold, offer(1, 100, "75")), (sells_silver, offer(2, 8_000, "0.01"))];
//! let market = BatchMarket::build(2, &offers, &[], Vec::new())?;
//!
//! let settings = Settings::new(Commission::new(15).unwrap(), Mu::new(10).unwrap());
//! let cleared = clear(&market, &settings)?;
//! assert_eq!(cleared.report.fill_count, 2);
//! for pair in cleared.verified.pairs() {
//!     for fill in cleared.verified.fills(pair).sells() {
//!         println!("offer {} sells {} and gets {}", fill.id.0, fill.sold, fill.bought);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Offers that come as text, with names and decimals, become a market by [`offers`].
//!
//! *Deliberately absent*: any search of its own; trust ([`walras_clearing::verify`] has the last word, on every clearing); files, accounts,
//! settlement.
//!
//! *Invariants*, each a property test
//! - Whatever stands in the market, [`clear`] returns a clearing that [`walras_clearing::verify`] accepted, or an error. It never panics.
//! - Prices go from the solver to the core without loss: they are scaled by powers of two alone (unless they are further apart than its format has).
//! - Prices from a close-up of a large market clear all of its offers: they count only where single offers were looked at.
//! - The same market and settings give the same clearing, whatever index was kept of the markets before ([`KeptIndex`]), unless a deadline or a cancel flag cuts in. Only the times in the report differ.
//!
//! *Start reading* at [`clear`], then `close_up.rs` (large markets), [`Report`]; what becomes of it in a venue's block is [`ClosedBatch::propose`]. *Sources*: SPEEDEX (NSDI 2023): sections 4 to 6.2 (what quality means), appendices B and D
//! (accuracy and amounts), H (why buy offers do not take part in the search of prices).
#![deny(unsafe_code)]

mod block;
mod clear;
mod close_up;
mod exact;
mod few;
mod index;
mod kept;
mod number;
pub mod offers;
mod pools;
mod quality;

pub use block::ClosedBatch;
pub use clear::{ClearError, Cleared, PriceMakers, Settings, Sight, Solver, clear, clear_with};
pub use index::{batch_prices, demand_index};
pub use kept::KeptIndex;
pub use quality::{Bounds, Report, Times};
pub use walras_price_solver::solve::{Budget, Deadline, Outcome};
