//! Every bound of this crate in one place, and what it costs.
//!
//! Per instrument: a tape of [`TRADES_MAX`] trades (at most 0.7 MB), [`CANDLES_MAX`] candles for each of five intervals (0.7 MB),
//! and up to [`CHANGED_LEVELS_MAX`] changed levels between two takes (2 MB). All grow with use: an instrument in which nobody
//! entered an order costs under a kilobyte. A reader's book has at most [`walras_types::limits::ORDERS_PER_BOOK_MAX`] orders (under
//! 130 bytes each) with at most as many levels (under 50 bytes each).
//!
//! Per batch market: [`blocks_max`] blocks (under 3 MB together, whatever the number of assets) and [`HEADER_BYTES_MAX`] of their
//! headers, [`OUTCOME_BYTES_MAX`] of what came to their transactions and offers, and 24 bytes for each offer that traded in the last
//! block, of those that stood before. Per standing offer 40 bytes, and 40 more if it has traded in part and is none of its account's
//! [`OUTCOMES_MAX`] last transactions; per account up to the last that had one 80, [`OFFER_FILLS_MAX`] fills of 40 bytes (1.3 KB) at most,
//! and [`OUTCOMES_MAX`] transactions of 40 bytes (2.6 KB) at most, and as many older ones.
//!
//! Per open order: its history, under 280 bytes. Per account the last [`FILLS_MAX`] fills (150 bytes each) and [`ENDED_ORDERS_MAX`]
//! orders that ended (290 bytes each), and over all accounts [`FILLS_TOTAL_MAX`] (78 MB) and [`ENDED_ORDERS_TOTAL_MAX`] (76 MB).

/// Trades that a tape remembers.
pub const TRADES_MAX: usize = 10_000;

/// Candles remembered per interval.
pub const CANDLES_MAX: usize = 1_000;

/// Distinct price levels that may change between two takes of a book's changes; beyond it the taker must send a snapshot.
pub const CHANGED_LEVELS_MAX: usize = 1 << 16;

/// Displayed orders of a side that a look at a book by order gives. The binary feed has them all.
pub const BOOK_ORDERS_MAX: usize = 500;

/// Blocks of a batch market that are remembered: see [`blocks_max`].
pub const BLOCKS_MAX: usize = 1_000;

/// Prices of a batch market's blocks that are remembered, one for each asset and block: [`BLOCKS_MAX`] blocks of 100 assets.
pub const BLOCK_PRICES_MAX: usize = 100_000;

/// Blocks of a batch market of so many assets that are remembered: 1,000 of up to 100 assets, 100 of 1,000, 24 of 4,096.
#[must_use]
pub const fn blocks_max(asset_count: usize) -> usize {
    if asset_count * BLOCKS_MAX <= BLOCK_PRICES_MAX { BLOCKS_MAX } else { BLOCK_PRICES_MAX / asset_count }
}

/// Bytes of headers of a batch market's blocks that are remembered; always those of the last one.
pub const HEADER_BYTES_MAX: usize = 1 << 24;

/// Bytes of outcomes of a batch market's blocks that are remembered, so that they can be proven; always those of the last one.
pub const OUTCOME_BYTES_MAX: usize = 1 << 26;

/// Standing offers of an account, in all batch markets together, from which on no further one is taken from it: as many as its open orders
/// in an instrument. An offer that never trades stands for as long as its owner likes, takes some hundred bytes of memory at every replica
/// and is looked at by every search for prices.
pub const OFFERS_PER_ACCOUNT_MAX: usize = walras_types::limits::OPEN_ORDERS_DEFAULT as usize;

/// Fills of offers remembered per account.
pub const OFFER_FILLS_MAX: usize = 32;

/// Transactions whose outcome is remembered per account, the last ones: as many as may be in a batch. In addition there are those whose
/// offers stand, and so many of those whose offers stood for longer and have ended.
pub const OUTCOMES_MAX: usize = walras_types::limits::TRANSACTIONS_PER_ACCOUNT_MAX as usize;

/// Fills remembered for each account.
pub const FILLS_MAX: usize = 1_000;

/// Fills remembered over all accounts.
pub const FILLS_TOTAL_MAX: usize = 1 << 19;

/// Orders that have ended, remembered for each account.
pub const ENDED_ORDERS_MAX: usize = 1_000;

/// The same over all accounts.
pub const ENDED_ORDERS_TOTAL_MAX: usize = 1 << 18;
