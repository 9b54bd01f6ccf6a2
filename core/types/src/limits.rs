//! Every bound of the core in one place, with the argument that ties them together.

/// Highest price, in ticks. Prices run from 1.
pub const PRICE_TICKS_MAX: i64 = (1 << 40) - 1;

/// Largest order, in lots.
pub const SIZE_LOTS_MAX: u64 = (1 << 36) - 1;

/// Open orders in one book.
pub const ORDERS_PER_BOOK_MAX: usize = 1 << 26;

/// Maximum number of resting orders that the fill check of a fill-or-kill order, or one with a minimum size, examines if its owner
/// has orders on the other side. Each is a cache miss in a large book, so the check takes at most about a tenth of a millisecond.
pub const FILL_CHECK_ORDERS_MAX: u32 = 1_024;

/// Maximum number of price levels that the check examines if its owner has no orders there. A level's total size is one number.
pub const FILL_CHECK_LEVELS_MAX: u32 = 4_096;

/// Maximum number of orders that an incoming order meets in one log entry. Its rest continues with the next entries, before
/// anything else enters the book. Each is a trade with its settlement and event, about half a microsecond in a large book. Where a market
/// has linked orders each counts for several.
pub const MEETINGS_PER_ENTRY_MAX: u32 = 500;

/// Largest distance of a trailing stop in millionths of the price: less than all of it, so that a sell's trigger is a price.
pub const TRAIL_PPM_MAX: u32 = 999_999;

/// The cost of a triggered stop in units of [`MEETINGS_PER_ENTRY_MAX`], in addition to its trades.
pub const STOP_MEETINGS: u32 = 8;

/// Price levels that an auction sets against each other for one unit of [`MEETINGS_PER_ENTRY_MAX`] while it looks for its price.
pub const LEVELS_PER_MEETING: u32 = 4;

/// Orders that the end of a day passes over, because they stay, for one unit of [`MEETINGS_PER_ENTRY_MAX`]. One that it cancels is a unit.
pub const LOOKS_PER_MEETING: u32 = 8;

/// Maximum number of dead man's switches that fire in one log entry. The others that are due fire in the next ones.
pub const SWITCHES_PER_ENTRY_MAX: usize = 32;

/// Maximum number of price levels that an indicative price is computed from. An auction in which more of them cross has none.
pub const INDICATIVE_LEVELS_MAX: u64 = 5_000;

/// Maximum number of orders at a price for a proportional allocation. A longer queue trades first in, first out.
pub const SHARED_LEVEL_ORDERS_MAX: u32 = 512;

/// Maximum number of open orders of an account in an instrument, including pending stops, unless the operator sets another limit.
pub const OPEN_ORDERS_DEFAULT: u32 = 10_000;

/// Largest order in lots, unless the operator sets another limit.
pub const ORDER_LOTS_DEFAULT: u64 = 1_000_000_000;

/// Maximum number of slices of an iceberg: one incoming order may cause a trade with each.
pub const ICEBERG_SLICES_MAX: u64 = 1_000;

/// Largest balance or transfer, in an asset's smallest unit; half of `u64` so that two always add.
pub const AMOUNT_MAX: u64 = (1 << 63) - 1;

/// Decimals an asset may have.
pub const ASSET_DECIMALS_MAX: u8 = 18;

/// Accounts of a venue.
pub const ACCOUNTS_MAX: u32 = 1 << 26;

/// Assets of a venue.
pub const ASSETS_MAX: u32 = 1 << 12;

/// Instruments of a venue.
pub const INSTRUMENTS_MAX: u32 = 1 << 14;

/// Highest fee, and highest rebate, in parts per million of a trade's value (10 %).
pub const FEE_PPM_MAX: i32 = 100_000;

/// Widest price collar or band, in parts per million of the price around which it lies.
pub const BAND_PPM_MAX: u32 = 1_000_000;

/// Most smallest units of base in a lot, and of quote in a tick.
pub const UNITS_MAX: u64 = 1 << 50;

/// Open sessions of one account, and of the operator.
pub const SESSIONS_PER_ACCOUNT_MAX: usize = 16;

/// Open sessions of a venue.
pub const SESSIONS_MAX: usize = 1 << 14;

/// Number of a session's last answers in the replicated state. A command's result can be queried until this number of later
/// commands. A power of two, so that the index in the window is cheap to compute.
pub const SESSION_WINDOW: usize = 1_024;

/// Nonces of signed commands of one API key that the replicated state remembers. As many as a gateway remembers of a key.
pub const NONCES_PER_KEY_MAX: usize = 1 << 14;

/// Nonces of signed commands that the replicated state remembers in all: those of 43,000 commands a second for the six seconds that a
/// stamp is acceptable. A snapshot has 32 bytes of each.
pub const NONCES_MAX: usize = 1 << 18;

/// Nonces of signed commands that stay remembered, outdated or not: two mebibytes of a snapshot.
pub const NONCES_KEPT: usize = 1 << 16;

/// Most outdated nonces that one entry of the log has forgotten. More than one, so that none are left after a while.
pub const NONCES_FORGOTTEN_PER_ENTRY_MAX: usize = 64;

/// Bits of a transaction's number; with those of an account they fill 64.
pub const TRANSACTION_SEQ_BITS: u32 = 38;

/// Numbers that an account can give its transactions end before this.
pub const TRANSACTION_SEQ_END: u64 = 1 << TRANSACTION_SEQ_BITS;

/// Last blocks that transactions say are below this: at a block each millisecond they last for 34 years.
pub const UNTIL_BLOCK_END: u64 = 1 << 40;

/// After the operator replaced an account's key, transactions that were checked against the old one may still come for so long by the log's
/// time: until then the account sets no key itself, and an audit lets the old key count.
pub const KEY_REPLACED_NS: u64 = 60_000_000_000;

/// Transactions of one account in one block, and how far their numbers may lie above the last one before.
pub const TRANSACTIONS_PER_ACCOUNT_MAX: u64 = 64;

/// Transactions of one batch.
pub const BATCH_TRANSACTIONS_MAX: usize = 1 << 24;

/// Assets of one batch market: all that a venue may have.
pub const BATCH_ASSETS_MAX: usize = ASSETS_MAX as usize;

/// Pairs of one batch market: those of 256 assets that all trade with each other.
pub const BATCH_PAIRS_MAX: usize = 256 * 255;

/// Pairs of one batch market of a venue: a clearing in which all of them trade takes at most 47 bytes for each, and fits an entry of the
/// log, which is 1 MiB. So 10 currencies with 1,019 stocks, 5 with 2,046, 2 with 4,094.
pub const BATCH_VENUE_PAIRS_MAX: usize = 20_480;

/// Currencies of one batch market of a venue: assets that all trade with each other.
pub const BATCH_VENUE_CURRENCIES_MAX: usize = 100;

/// Pools of one batch market.
pub const POOLS_MAX: usize = 1 << 8;

/// Highest fee of a pool, in parts per million (10 %).
pub const POOL_FEE_PPM_MAX: u32 = 100_000;

/// Fewest units of each asset with which a pool begins: with fewer, a share of it would be too coarse to be given back in part.
pub const POOL_RESERVE_MIN: u64 = 1_000;

/// Highest weight of an asset in a weighted pool.
pub const POOL_WEIGHT_MAX: u16 = 1_000;

/// Highest amplification of a stable-swap pool.
pub const POOL_AMPLIFICATION_MAX: u32 = 1_000_000;

/// Batch markets of a venue.
pub const BATCH_MARKETS_MAX: usize = 64;

/// Transactions of one batch of a venue.
pub const BATCH_VENUE_TRANSACTIONS_MAX: u32 = 1 << 20;

/// A block is carried out in one entry of the log if its transactions, the market's standing offers and the venue's accounts are at
/// most so many together: it takes a millisecond or two then. Any other goes on in steps.
pub const BLOCK_AT_ONCE_MAX: u64 = 2_000;

/// Transactions or moves of one step of a block, about: some 100 microseconds.
pub const BLOCK_STEP_UNITS: usize = 1_024;

/// Shortest time between two batches, in nanoseconds: a millisecond.
pub const BATCH_INTERVAL_NS_MIN: u64 = 1_000_000;

/// Longest time between two batches, in nanoseconds: a day.
pub const BATCH_INTERVAL_NS_MAX: u64 = 86_400_000_000_000;

/// Maximum delay of orders or market data by fair access, in nanoseconds: ten seconds.
pub const ACCESS_DELAY_NS_MAX: u64 = 10_000_000_000;

/// Shards of a venue.
pub const SHARDS_MAX: u8 = 64;

/// Maximum number of unanswered transfers from one shard to another.
pub const TRANSFERS_IN_TRANSIT_MAX: usize = 1 << 12;

/// Maximum number of these per account, so that one account leaves room for others.
pub const TRANSFERS_PER_ACCOUNT_MAX: usize = 1 << 8;

/// Longest encoded command or event, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 256;

// The lots of a level, and of a whole book, fit 63 bits.
const _: () = assert!((SIZE_LOTS_MAX as u128) * (ORDERS_PER_BOOK_MAX as u128) < 1 << 63);
// Price times size times tick value fits 128 bits, so it can be formed first and checked after.
const _: () = assert!((PRICE_TICKS_MAX as u128) * (SIZE_LOTS_MAX as u128) < u128::MAX / (UNITS_MAX as u128));
// The windows of all sessions together stay below 2^29 bytes of memory.
const _: () = assert!(SESSION_WINDOW.is_power_of_two() && SESSIONS_MAX * SESSION_WINDOW * size_of::<crate::Answer>() <= 1 << 29);
// The number of an offer holds its account and the transaction that created it.
const _: () = assert!(ACCOUNTS_MAX.is_power_of_two() && ACCOUNTS_MAX.trailing_zeros() + TRANSACTION_SEQ_BITS <= 64);
