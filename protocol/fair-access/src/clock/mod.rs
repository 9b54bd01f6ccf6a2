//! What time it is, and how far off that may be.

/// A time with the error that it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockReading {
    /// The venue's time.
    pub time_ns: u64,
    /// How far the venue's true time may lie from `time_ns`, on either side.
    pub bound_ns: u64,
}

/// Whether a clock is good enough to stamp orders with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockStatus {
    /// The bound is within the limit.
    Good,
    /// The bound is beyond the limit, or was a moment ago: the clock may be read, not stamped with.
    Wide,
    /// There is no bound: the clock may not be read.
    Unknown,
}
