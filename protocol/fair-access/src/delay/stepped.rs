//! Up or down by a step: `CloudEx`'s dynamic delay parameter.

use super::{DelayBounds, Ppm, checked};

/// Settings of the stepped delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// Bounds and start.
    pub bounds: DelayBounds,
    /// The share of unfairness wanted.
    pub target: Ppm,
    /// Samples whose share is compared with the target.
    pub window: usize,
    /// By how much the delay moves.
    pub step_ns: u64,
    /// Samples between two moves. 1 looks at each sample: the window answers up to `window` samples later, and the delay swings by as many
    /// steps. `window` looks at each sample once, and follows slowly.
    pub samples_per_step: u32,
}

impl Stepped {
    /// Published.
    pub const CLOUDEX_WINDOW: usize = 1_000;

    /// Published.
    pub const CLOUDEX_STEP_NS: u64 = 5_000;
}

#[derive(Debug)]
pub(super) struct StepControl {
    settings: Stepped,
    delay_ns: u64,
    samples: u32,
}

impl StepControl {
    pub(super) fn new(settings: Stepped) -> Self {
        assert!(settings.samples_per_step > 0, "the delay never moves without samples: set at least 1");
        let settings = Stepped { bounds: checked(settings.bounds), ..settings };
        Self { settings, delay_ns: settings.bounds.start_ns, samples: 0 }
    }

    pub(super) fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    pub(super) fn on_verdict(&mut self, recent: Ppm) {
        self.samples += 1;
        if self.samples < self.settings.samples_per_step {
            return;
        }
        self.samples = 0;
        let Stepped { bounds, step_ns, target, .. } = self.settings;
        let moved_ns = if recent > target { self.delay_ns.saturating_add(step_ns) } else { self.delay_ns.saturating_sub(step_ns) };
        self.delay_ns = moved_ns.clamp(bounds.min_ns, bounds.max_ns);
    }
}
