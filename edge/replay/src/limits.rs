//! How much a replay keeps in memory, whatever the file. What else grows is the book, and a few words for each order that the file
//! adds and never closes.

/// Events that may wait for one which the exchange numbered before them and the file has behind them. In the Shanghai day of 600519 it
/// is 2,913 events that stand behind a later one, each by a few.
pub const REORDER_EVENTS_MAX: usize = 1 << 15;

/// Steps that are done to the compared book before the timed ones do them.
pub(crate) const STEPS_TOGETHER: usize = 1 << 14;

/// Instruments that an error names.
pub const INSTRUMENTS_NAMED_MAX: usize = 20;

/// Orders of corrected price levels that wait for the timed books.
pub(crate) const CORRECTED_ORDERS_TOGETHER: usize = 1 << 17;
