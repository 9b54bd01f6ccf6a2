//! Level and offset: the delay is the median transit of the last samples plus an offset that learns from verdicts.
//!
//! Each unfair verdict raises the offset by `step * (1 - target)`, each fair one lowers it by `step * target`. So the sum of what was
//! added is `step` times (unfair - target * samples): as long as no bound is touched, the share differs from the target by no more than
//! the offset's range over `step` and the number of samples, whatever the network does and without any model of it (Robbins and Monro,
//! 1951; the argument is that of adaptive conformal inference, Gibbs and Candes, 2021). The level only saves the offset the way: when the
//! network becomes slower or faster for all, half a window of samples is enough to follow.

use super::{DelayBounds, Fairness, Ppm, Sliding, checked};

/// Settings of the tracking delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracking {
    /// Bounds and start.
    pub bounds: DelayBounds,
    /// The share of unfairness wanted.
    pub target: Ppm,
    /// What an unfair sample adds and a fair one takes off, together.
    pub step_ns: u64,
    /// Samples whose median is the level.
    pub level_window: usize,
}

/// Fractions of a nanosecond: a fair verdict takes off less than one.
const FRACTION_BITS: u32 = 20;

/// What is added to a level, and learns from verdicts.
#[derive(Debug)]
pub(super) struct Offset {
    settings: Tracking,
    /// In `2^-FRACTION_BITS` ns.
    offset: i64,
    up: i64,
    down: i64,
}

impl Offset {
    pub(super) fn new(settings: Tracking) -> Self {
        assert!(settings.target < Ppm::ONE, "a target of all needs no delay: set a static one of 0");
        assert!(settings.step_ns < 1 << 30, "a step of a second and more: it is in nanoseconds");
        assert!(settings.bounds.max_ns < 1 << 40, "a delay of minutes: it is in nanoseconds");
        let settings = Tracking { bounds: checked(settings.bounds), ..settings };
        let parts = |ppm: u32| (i128::from(settings.step_ns) << FRACTION_BITS) * i128::from(ppm) / 1_000_000;
        let narrow = |parts: i128| i64::try_from(parts).expect("a step is below 2^30 ns");
        let (up, down) = (narrow(parts(Ppm::ONE.0 - settings.target.0)), narrow(parts(settings.target.0)));
        Self { settings, offset: 0, up, down }
    }

    /// Stands for the level until one is known.
    pub(super) fn start_ns(&self) -> i64 {
        i64::try_from(self.settings.bounds.start_ns).unwrap_or(i64::MAX)
    }

    /// A transit as the level counts it: what no allowed delay covers is not the network's level. It still counts as slow.
    pub(super) fn countable(&self, transit_ns: i64) -> i64 {
        let max_ns = i64::try_from(self.settings.bounds.max_ns).unwrap_or(i64::MAX);
        transit_ns.clamp(-max_ns, max_ns)
    }

    fn wanted_ns(&self, level_ns: i64) -> i64 {
        level_ns.saturating_add(self.offset >> FRACTION_BITS)
    }

    pub(super) fn delay_ns(&self, level_ns: i64) -> u64 {
        let DelayBounds { min_ns, max_ns, .. } = self.settings.bounds;
        u64::try_from(self.wanted_ns(level_ns)).unwrap_or(0).clamp(min_ns, max_ns)
    }

    /// The delay stays as it is when another level takes over.
    pub(super) fn keep(&mut self, before_ns: i64, after_ns: i64) {
        self.offset = self.offset.saturating_add(before_ns.saturating_sub(after_ns) << FRACTION_BITS);
    }

    /// The delay is this one from now on, within the bounds.
    pub(super) fn set(&mut self, level_ns: i64, delay_ns: i64) {
        let max_ns = i64::try_from(self.settings.bounds.max_ns).unwrap_or(i64::MAX);
        self.offset = delay_ns.clamp(0, max_ns).saturating_sub(level_ns) << FRACTION_BITS;
    }

    pub(super) fn learn(&mut self, level_ns: i64, fairness: Fairness) {
        let DelayBounds { min_ns, max_ns, .. } = self.settings.bounds;
        let wanted_ns = self.wanted_ns(level_ns);
        // At a bound the offset stays: else it would have to come back all the way.
        match fairness {
            Fairness::Unfair if u64::try_from(wanted_ns).is_ok_and(|wanted_ns| wanted_ns >= max_ns) => {}
            Fairness::Fair if u64::try_from(wanted_ns).map_or(true, |wanted_ns| wanted_ns <= min_ns) => {}
            Fairness::Unfair => self.offset += self.up,
            Fairness::Fair => self.offset -= self.down,
        }
    }
}

#[derive(Debug)]
pub(super) struct TrackControl {
    level: Sliding,
    offset: Offset,
}

impl TrackControl {
    pub(super) fn new(settings: Tracking) -> Self {
        Self { level: Sliding::new(settings.level_window), offset: Offset::new(settings) }
    }

    pub(super) fn delay_ns(&self) -> u64 {
        self.offset.delay_ns(self.level_ns())
    }

    /// The start stands for the level until the window is full.
    fn level_ns(&self) -> i64 {
        let start_ns = self.offset.start_ns();
        if self.level.is_full() { self.level.median().unwrap_or(start_ns) } else { start_ns }
    }

    pub(super) fn on_transit(&mut self, transit_ns: i64) {
        let was_full = self.level.is_full();
        self.level.push(self.offset.countable(transit_ns));
        if !was_full && self.level.is_full() {
            // The delay does not jump when the level takes over from the start.
            self.offset.keep(self.offset.start_ns(), self.level_ns());
        }
    }

    pub(super) fn on_verdict(&mut self, fairness: Fairness) {
        self.offset.learn(self.level_ns(), fairness);
    }
}
