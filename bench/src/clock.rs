//! Timing single operations of some 20 ns: the processor's time-stamp counter, fenced, with its own cost known.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

/// Reads the counter once everything before has been carried out, and lets nothing after begin earlier.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: both instructions are part of every x86-64 processor and touch no memory.
    // Worth it: the clock of the standard library costs as much as what is measured, and does not fence.
    unsafe {
        use core::arch::x86_64::{_mm_lfence, _rdtsc};
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::OnceLock;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// How to read differences of [`ticks`].
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    ns_per_tick: f64,
    /// What two readings with nothing between them differ by.
    overhead_ticks: u64,
}

const CALIBRATION: Duration = Duration::from_millis(50);
const OVERHEAD_SAMPLES: usize = 100_001;

impl Clock {
    /// Compares the counter with the system's clock and measures what reading it costs.
    #[must_use]
    pub fn calibrated() -> Self {
        let (started, from) = (Instant::now(), ticks());
        while started.elapsed() < CALIBRATION {
            std::hint::spin_loop();
        }
        let (to, elapsed) = (ticks(), started.elapsed());
        let mut pairs: Vec<u64> = (0..OVERHEAD_SAMPLES)
            .map(|_| {
                let before = ticks();
                ticks() - before
            })
            .collect();
        pairs.sort_unstable();
        Self { ns_per_tick: elapsed.as_nanos() as f64 / (to - from) as f64, overhead_ticks: pairs[OVERHEAD_SAMPLES / 2] }
    }

    /// Nanoseconds between two readings, the cost of reading removed.
    #[must_use]
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks.saturating_sub(self.overhead_ticks) as f64 * self.ns_per_tick
    }

    /// Nanoseconds between two readings, nothing removed: for a moment rather than for a cost.
    #[must_use]
    pub fn moment_ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick) as u64
    }

    /// What reading costs, which [`Clock::ns`] removes.
    #[must_use]
    pub fn overhead_ns(&self) -> f64 {
        self.overhead_ticks as f64 * self.ns_per_tick
    }
}
