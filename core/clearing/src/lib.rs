//! A batch market: offers by pair and limit with running sums, and the exact check of a proposed clearing.
//!
//! All offers of a batch trade at one vector of prices: a unit of A buys `p_A / p_B` units of B, less the commission. Who finds the prices
//! and the amounts, and how, does not matter here: [`verify`] accepts exactly what keeps the rules, in O(pairs * log offers).
//!
//! *Deliberately absent*: accounts, the ledger and settlement (the engine's); the search for prices and amounts (a heuristic, in floats,
//! outside the core); clocks; threads, but for the fork and join of many pairs ([`fork_join`]).
//!
//! *Invariants* of what [`verify`] accepts, each a property test against a naive check in rationals
//! - No asset is created: of each, fills sell at least what fills buy. Rounding is in the venue's favour, fill by fill.
//! - No offer trades past its stated limit, in whole units, in full or in part; in each pair at most one sell offer and one buy offer
//!   trade in part; all with a lower key trade in full, none with a higher key trades.
//! - A sell offer whose limit is more than the share mu below the rate trades in full, or is counted.
//! - The function of its reserves that a pool keeps never falls, and a pool never trades past its own price.
//! - The order in which offers were given changes nothing, nor do the names of assets, the unit of valuations, nor, where nothing is
//!   rounded, a power of two in the unit of an asset.
//!
//! *Start reading* at [`Offer`], then [`Proposal`], then [`verify`]. Sources: SPEEDEX (NSDI 2023), sections 4 and 5, appendices B (the two
//! approximations), D (bounds and conservation) and H (why buy offers have no lower bound); the choices that differ are in
//! `docs/adr/0005-batch-price.md`.
#![deny(clippy::float_arithmetic)]

pub mod fork_join;
mod honour;
mod lookup;
mod many_pairs;
mod market;
mod offer;
mod pair_offers;
mod pairs;
mod parts;
mod pool;
mod proposal;
mod rejected;
mod tie;
mod verified;
mod verify;

pub use honour::{PartLimit, honourable_bought, honourable_sold};
pub use many_pairs::{PairTraded, PartTraded, SellChange, TradePlan};
pub use market::{BatchMarket, Change, MarketError, PairBook};
pub use offer::*;
pub use pair_offers::{LeastRatio, PairOffers, Split, Stands};
pub use pairs::Pairs;
pub use parts::Parts;
pub use pool::{Curve, MarginalPrice};
pub use proposal::*;
pub use rejected::Rejected;
pub use tie::TieBreak;
pub use verified::{Fill, PairClearing, PairFills, PoolFill, PoolTraded, Shortfall, Verified};
pub use verify::verify;
pub use walras_types::{LowerBounds, PoolRule};
