//! The experiments of the two SPEEDEX papers (2021 and 2023), run again: prices on this project's solver, blocks on its batch market.
//!
//! *Deliberately absent*: consensus and storage (figures that have them in them say so), the reference implementation itself (its
//! method is rebuilt as [`walras_price_solver::solve::Tatonnement`]; times measured of the original are quoted as such), and
//! anything that asserts a time.
//!
//! *Invariants*
//! - Of prices only a solve is timed: making offers and building the index are not, where not said otherwise. Of blocks all is timed that a
//!   venue would do with one (`walras-batch-venue`).
//! - Every block that is measured is validated on another state, all roots equal, where memory has room for two.
//! - The same seed gives the same offers, and prices and queries of the solver follow from them; times alone differ between runs.
//! - What the solver did not solve is in the result, with what it takes to make it again.
//!
//! *Start reading* at [`variants`] (fig-6, the largest), then [`accuracy`] (fig-1), [`fewest`] (fig-2), [`convex`] (fig-7, fig-8),
//! [`history`] (sec-6.2), [`buy_offers`] (app-H), [`cost`] and [`warm`]; of blocks at [`blocks::chain`] (figures 3 to 6), then
//! [`blocks::payments`], [`blocks::bare_book`] and [`blocks::filter`]. *Sources*: SPEEDEX 2021, sections 6 and 7 and Appendices G to I;
//! 2023, sections 6 and 7 and Appendices F, H and I; Devanur, Garg, Vegh, "A rational convex program for linear Arrow-Debreu markets"
//! (2016).
#![deny(unsafe_code)]

pub mod accuracy;
pub mod blocks;
pub mod buy_offers;
pub mod command_line;
pub mod convex;
pub mod cost;
pub mod fewest;
pub mod history;
pub mod plot;
pub mod published;
pub mod record;
pub mod ruler;
pub mod variants;
pub mod warm;
