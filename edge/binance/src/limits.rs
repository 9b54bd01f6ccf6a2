//! Every bound of this crate in one place.

use std::time::Duration;

/// Millionths of a price in a step of `trailingDelta`.
pub const PPM_PER_DELTA: u64 = 100;
/// Parameters of a request.
pub const PARAMS_MAX: usize = 64;
/// Longest form body in bytes, and longest query.
pub const FORM_BYTES_MAX: usize = 16 << 10;
/// Longest time for which a signed request may be acceptable, in milliseconds.
pub const RECV_WINDOW_MS_MAX: u64 = 60_000;
/// The same where the request does not say.
pub const RECV_WINDOW_MS_DEFAULT: u64 = 5_000;
/// Levels of a side in a snapshot of a book.
pub const DEPTH_MAX: usize = 1_000;
/// Trades in an answer.
pub const TRADES_MAX: usize = 1_000;
/// Candles in an answer.
pub const KLINES_MAX: usize = 1_000;
/// Symbols of which windows are asked for at once.
pub const WINDOW_SYMBOLS_MAX: usize = 100;
/// Orders in an answer.
pub const ORDERS_MAX: usize = 1_000;
/// Levels that are looked at for an order by its quote amount.
pub const QUOTE_LEVELS_MAX: usize = 1_000;
/// Addresses whose weight is remembered; of IPv6, networks of 64 bits.
pub const SOURCES_MAX: usize = 1 << 14;
/// Accounts whose orders are counted.
pub const COUNTED_ACCOUNTS_MAX: usize = 1 << 16;
/// From one look for addresses and accounts that may be forgotten to the next, in milliseconds, where the tables are full.
pub const SWEEP_EVERY_MS: u64 = 1_000;
/// Refusals of an address within a minute after which it is banned.
pub const REFUSALS_MAX: u32 = 500;
/// How long a ban lasts, in seconds.
pub const BAN_S: u64 = 120;
/// Longest client order id, in characters.
pub const CLIENT_ORDER_ID_LEN_MAX: usize = 36;
/// Records of an account's past in a visit to the venue's memory, or to its archive.
pub const PAST_PAGE: usize = 1_000;
/// Such visits for a request that reads from the newest record on.
pub const PAGES_MAX: usize = 20;
/// Such visits for a request that reads the pages in which something may be.
pub const READ_PAGES_MAX: usize = 1_000;
/// Pages that a request notes of a past that nobody has looked through.
pub const WALK_PAGES_MAX: usize = 2_000;
/// Pages that are new since the last request of an account, beyond which its notes begin again.
pub const GAP_PAGES_MAX: usize = 500;
/// Notes on pages of an account's records of a kind.
pub const NOTES_PER_CHAIN_MAX: usize = 1 << 14;
/// The same of all accounts.
pub const NOTES_MAX: usize = 1 << 16;
/// Accounts, for each kind of records, that have notes.
pub const CHAINS_MAX: usize = 1 << 12;
/// Longest time between the beginning and the end of what is asked of the past, in milliseconds.
pub const SPAN_MS_MAX: u64 = 86_400_000;
/// What a timestamp counts in. A signed request that may be asked again in the same words is answered no sooner than this after it came:
/// so a program that waits for each answer never has one text twice.
pub const STAMP_UNIT: Duration = Duration::from_millis(1);
