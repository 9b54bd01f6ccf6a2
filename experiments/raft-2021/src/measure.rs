//! Timing one operation.

use std::hint::black_box;
use std::time::Instant;

use crate::books::Trade;
use crate::stats::quantile;

/// A clock that knows what reading it costs.
pub struct Stopwatch {
    /// Median time between two readings with nothing in between, in nanoseconds.
    pub overhead_ns: f64,
}

impl Stopwatch {
    /// Measures the overhead: 100,001 empty operations.
    #[must_use]
    pub fn calibrated() -> Self {
        let mut stopwatch = Self { overhead_ns: 0.0 };
        let empty: Vec<f64> = (0..100_001).map(|_| stopwatch.time(|| ())).collect();
        stopwatch.overhead_ns = quantile(&empty, 0.5);
        stopwatch
    }

    /// How long an operation takes, in nanoseconds, less the overhead.
    #[inline]
    pub fn time<T>(&self, operation: impl FnOnce() -> T) -> f64 {
        let start = Instant::now();
        black_box(operation());
        let elapsed = start.elapsed();
        elapsed.as_nanos() as f64 - self.overhead_ns
    }

    /// How long an operation on a book takes. The compiler may assume nothing about the book beforehand.
    pub fn time_on<B>(&self, book: &mut B, trades: &mut Vec<Trade>, operation: impl FnOnce(&mut B, &mut Vec<Trade>)) -> f64 {
        let (book, trades) = (black_box(book), black_box(trades));
        self.time(|| operation(book, trades))
    }
}
