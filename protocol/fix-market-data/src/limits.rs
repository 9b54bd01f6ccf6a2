//! Bounds of what connections hold.

/// Levels of a side that a reader of a book is sent at most; what MarketDepth(264) 0 stands for.
pub const DEPTH_MAX: usize = 5_000;

/// Requests of a connection that last.
pub const REQUESTS_MAX: usize = 256;

/// Markets that they name, each as often as it is named.
pub const MARKETS_MAX: usize = 4_096;

/// Bytes of an MDReqID(262) and of the ids of other requests.
pub const REQUEST_ID_BYTES_MAX: usize = 64;

/// Trades of a market that are kept for those who read slowly.
pub const TRADES_KEPT: usize = 100;

/// A connection with more output than this to read gets whole books, once it has read it, instead of the changes between.
pub const OUTPUT_CONFLATES_BYTES: usize = 256 << 10;

/// A connection that has had more than [`OUTPUT_CONFLATES_BYTES`] to read for so long does not read.
pub const SLOW_NS_MAX: u64 = 30_000_000_000;

/// Nor does one that has more to read, and of whose output nothing could be written for so long.
pub const STALLED_NS_MAX: u64 = 10_000_000_000;

/// Messages that are kept for readers who get the same ones.
pub const SPOKEN_MAX: usize = 128;

/// Bytes of such messages, but for a single one.
pub const SPOKEN_BYTES_MAX: usize = 16 << 20;

/// Securities in one SecurityList(y).
pub const LISTED_PER_MESSAGE: usize = 100;

/// A client that asks so often beyond its rate, without a request within it, is logged out.
pub const THROTTLED_MAX: u32 = 256;
