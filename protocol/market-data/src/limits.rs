//! Every bound of this crate in one place, and what it costs.
//!
//! Per instrument: a tape of [`TRADES_MAX`] trades (at most 0.7 MB), [`CANDLES_MAX`] candles for each of five intervals (0.5 MB), and up
//! to [`CHANGED_LEVELS_MAX`] changed levels between two takes (2 MB). All grow with use: an instrument in which nobody entered an order
//! costs under a kilobyte. A reader's book has at most [`walras_types::limits::ORDERS_PER_BOOK_MAX`] orders (under 130 bytes each) with
//! at most as many levels (under 50 bytes each).

/// Trades that a tape remembers.
pub const TRADES_MAX: usize = 10_000;

/// Candles remembered per interval.
pub const CANDLES_MAX: usize = 1_000;

/// Distinct price levels that may change between two takes of a book's changes; beyond it the taker must send a snapshot.
pub const CHANGED_LEVELS_MAX: usize = 1 << 16;
