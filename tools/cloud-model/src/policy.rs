//! The compared delay policies, and their outcomes.

use walras_fair_access::delay::{DelayBounds, DelaySettings, Ppm, Stepped, Tracking};

/// Bounds of the delay, for both directions and both dynamic policies.
pub const BOUNDS: DelayBounds = DelayBounds { min_ns: 0, max_ns: 5_000_000, start_ns: 200_000 };

/// `CloudEx`'s policy, at a cadence.
#[must_use]
pub fn stepped(target: Ppm, samples_per_step: u32) -> DelaySettings {
    let (window, step_ns) = (Stepped::CLOUDEX_WINDOW, Stepped::CLOUDEX_STEP_NS);
    DelaySettings::Stepped(Stepped { bounds: BOUNDS, target, window, step_ns, samples_per_step })
}

/// Our policy.
#[must_use]
pub fn tracking(target: Ppm, step_ns: u64, level_window: usize) -> DelaySettings {
    DelaySettings::Tracking(Tracking { bounds: BOUNDS, target, step_ns, level_window })
}

/// The outcome of a policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Orders, or publications.
    pub samples: u64,
    /// Of these unfair.
    pub unfair: u64,
    /// Of these late (inbound).
    pub late: u64,
    delay_sum_ns: f64,
}

impl Outcome {
    /// Counts a sample and its waiting time.
    pub fn add(&mut self, is_unfair: bool, delay_ns: f64) {
        self.samples += 1;
        self.unfair += u64::from(is_unfair);
        self.delay_sum_ns += delay_ns;
    }

    /// In percent.
    #[must_use]
    pub fn unfair_percent(&self) -> f64 {
        100.0 * self.unfair as f64 / self.samples.max(1) as f64
    }

    /// Mean queueing or releasing delay.
    #[must_use]
    pub fn delay_us(&self) -> f64 {
        self.delay_sum_ns / self.samples.max(1) as f64 / 1_000.0
    }
}
