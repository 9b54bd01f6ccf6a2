//! How much of each pair trades in a batch, once there are prices.
//!
//! Prices that nearly clear a market leave open how much of the offers near the limit trades: of each pair an amount between the lower bound
//! (offers clearly in the money) and the upper bound (all offers in the money). This crate chooses the amounts of the greatest value traded of
//! which no asset is short, first in value ([`circulation`]), then in whole units that offers can honour ([`amounts`]), and puts them into a
//! proposal ([`propose`]).
//!
//! *Deliberately absent*: finding prices; trust (the core verifies what is proposed); floats, threads, randomness and clocks: the
//! same question gets the same answer, bit for bit, whatever was asked before. Only the linear program ([`linear_program`]), an
//! oracle for tests and a second opinion, thinks in floats.
//!
//! *Invariants*, each a property test
//! - A circulation carries the proof that none has more value, a refusal the proof that no flow keeps the bounds.
//! - Whatever the market and the prices, [`walras_clearing::verify`] accepts what is proposed; if the report says that no lower bound is
//!   broken, also where lower bounds are required.
//! - It ends: the circulation in fewer rounds than there are assets; rounding in steps proportional to the pairs, after which an asset leaves
//!   the market, at worst until nothing trades.
//!
//! # The commission
//!
//! With a commission eps the problem is no longer a circulation: of each asset the share eps of what is bought may be missing. What *must* be
//! bought (the lower bounds) is known beforehand and is, at the accuracies in use, nearly all that is bought; so eps of that is given to each asset
//! as a fixed allowance, less what rounding to whole units can cost. This keeps the network's speed and integers, and finds 98 % of the
//! volume that the linear program finds beyond the circulation, which is a few thousandths of a percent of all (`examples/speed.rs`).
//!
//! # Lower bounds that cannot hold
//!
//! SPEEDEX drops all lower bounds then. Here those into the assets that cannot pay for them are lowered by what is missing, the largest
//! first, until the rest can hold: few offers clearly in the money suffer instead of any. The report has the proof ([`Cut`]) and how much.
//!
//! *Start reading* at [`propose`], then [`amounts`], then [`circulation`]. *Sources*: SPEEDEX (NSDI 2023),
//! appendices B and D; Ford and Fulkerson's primal-dual method for minimum-cost flow (1957), Dinitz's maximum flow (1970), as in Ahuja,
//! Magnanti and Orlin, "Network Flows" (1993), chapters 7 and 9. `examples/speed.rs` measures, `examples/rounding.rs` shows what whole units cost.
#![deny(clippy::float_arithmetic)]

pub mod amounts;
mod bits;
mod blocks;
pub mod circulation;
pub mod limits;
#[expect(clippy::float_arithmetic, reason = "the oracle is a linear program in floats")]
pub mod linear_program;
mod market;
pub mod network;
mod repair;
#[expect(clippy::float_arithmetic, reason = "made markets, for tests and measurements")]
pub mod synthetic;
pub mod value;

pub use amounts::*;
pub use circulation::*;
pub use linear_program::*;
pub use market::*;
pub use network::*;
pub use value::ValueUnit;
