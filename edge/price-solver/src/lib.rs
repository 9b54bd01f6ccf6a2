//! Finds the prices of a batch: one valuation per asset at which, of every asset, as much is offered as is wanted.
//!
//! Given all standing offers to sell one asset for another at a limit, [`solve::Portfolio`] finds prices such that offers which accept
//! them, with the freedom of a share `mu` about their limits, balance up to a commission `eps`. Its cost depends on the number of
//! offers by a logarithm only: half a million offers among 50 assets take about a millisecond. `docs/price-solver.md` tells how and why.
//!
//! ```
//! use walras_price_solver::demand::DemandIndex;
//! use walras_price_solver::solve::{Accuracy, Outcome, Portfolio, PriceSolver, Problem};
//! use walras_price_solver::synthetic::Offer;
//!
//! let offers = [
//!     Offer { sell: 0, buy: 1, limit: 1.9, amount: 100.0 }, // 100 of asset 0, for at least 1.9 of asset 1 each
//!     Offer { sell: 1, buy: 0, limit: 0.4, amount: 210.0 },
//! ];
//! let index = DemandIndex::from_offers(2, &offers, Vec::new())?;
//! let solution = Portfolio.solve(&Problem::cold(&index, Accuracy::bits(15, 10)));
//! assert_eq!(solution.outcome, Outcome::Cleared);
//! let [Some(first), Some(second)] = solution.prices[..] else { panic!("both can trade") };
//! assert!((first / second - 2.1).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Deliberately absent*: trust. The prices are floats and a proposal; `core/clearing` checks a clearing in integers, whoever proposes it.
//! Also absent: threads (one core suffices), clocks (but for a deadline that the caller gives), accounts, the sizes of single fills.
//!
//! *Invariants*
//! - Any offers whose numbers pass [`demand::IndexError`] end in positive, finite prices; nothing is NaN, nothing loops for ever.
//! - The same index, start, accuracy and query budget give the same prices, at any vector width, in any order of the offers
//!   (on one platform: logarithms may differ in the last bit between mathematics libraries).
//! - A [`solve::Outcome`] better than approximate is checked at the prices returned, not inferred from the way there.
//! - An asset without a price cannot trade: nothing that it buys can ever come back to it, or its price has left the range of floats.
//!
//! *Start reading* at [`demand`], then `block.rs` (the query), [`solve`], and its modules from `portfolio.rs` on.
//!
//! *Sources*: Ramseyer, Goel, Mazieres, "SPEEDEX" (arXiv 2111.02719, 2021, section 4.3, Appendices D, F, G, H; NSDI 2023, sections 4 to 6,
//! Appendices B to E) for the problem, tatonnement, smoothing, bounds, decomposition and data; Devanur, Garg, Vegh 2016 for the
//! convex program behind it; Grassmann, Taksar, Heyman 1985 for the linear solve; Mehrotra 1992 for the interior-point method; Cai,
//! Keyes 2002 for nonlinear elimination; Ramseyer, Goyal, Goel, Mazieres (arXiv 2210.04929) for pools; Tarjan 1972, Hopcroft, Tarjan 1973
//! for the structure.
#![deny(unsafe_code)]

pub mod demand;
pub mod pool;
pub mod solve;

pub mod climb;
pub mod families;
pub mod random;
pub mod real_days;
pub mod synthetic;

mod block;
mod bounds;
mod circulation;
mod layout;
mod node;
mod structure;

pub use block::Demand;
