//! The price-computation experiments of the two SPEEDEX papers (2021 and 2023), run again on this project's solver.
//!
//! *Deliberately absent*: the papers' blockchain experiments (throughput, consensus, storage), the reference implementation itself (its
//! method is rebuilt as [`walras_price_solver::solve::Tatonnement`]; times measured of the original are quoted as such), and
//! anything that asserts a time.
//!
//! *Invariants*
//! - Only a solve is timed. Making offers and building the index are not, where not said otherwise.
//! - The same seed gives the same offers, and prices and queries of the solver follow from them; times alone differ between runs.
//! - What the solver did not solve is in the result, with what it takes to make it again.
//!
//! *Start reading* at [`variants`] (fig-6, the largest), then [`accuracy`] (fig-1), [`fewest`] (fig-2), [`convex`] (fig-7, fig-8), [`history`]
//! (sec-6.2), [`cost`] and [`warm`]. *Sources*: SPEEDEX 2021, section 6 and Appendices G to I; 2023, section 6 and Appendix F; Devanur,
//! Garg, Vegh, "A rational convex program for linear Arrow-Debreu markets" (2016).
#![deny(unsafe_code)]

pub mod accuracy;
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
