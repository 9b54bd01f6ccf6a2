//! Venue time on a host with an undisciplined clock: a line over the host's clock, changed by slewing.

use thiserror::Error;

use super::{ClockReading, PPT, grown_ns};

/// The mesh's estimate of a node's clock: a line with an error bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Correction {
    /// The host clock's reading at the anchor, where `offset_ns` holds.
    pub anchor_local_ns: u64,
    /// Host clock minus venue time, at the anchor.
    pub offset_ns: i64,
    /// Growth of the offset per unit of the host's clock.
    pub rate_ppt: i64,
    /// Error bound of the line at the anchor.
    pub bound_ns: u64,
    /// Growth of the bound with the distance from the anchor.
    pub bound_growth_ppt: u64,
    /// Additional growth per second of that distance, because temperature changes rates.
    pub bound_growth_ppt_per_s: u64,
}

/// How a virtual clock moves to a new line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlewLimits {
    over_ns: u64,
    rate_ppt_max: u64,
    step_forward_ns_min: u64,
}

/// Limits under which a clock would have to stand still or go back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a slew of {rate_ppt_max} ppt over {over_ns} ns is not one: set a time above 0 and a rate from 1 to 100,000,000,000 ppt")]
pub struct SlewLimitsError {
    over_ns: u64,
    rate_ppt_max: u64,
}

impl SlewLimits {
    /// A tenth: even with the steepest line that [`VirtualClock`] accepts, the clock runs at more than half speed.
    const RATE_PPT_MAX: u64 = 100_000_000_000;

    /// Slews over `over_ns`, or longer if that would exceed `rate_ppt_max`. A clock that is at least `step_forward_ns_min` behind
    /// steps forward instead; no clock ever steps back.
    pub fn new(over_ns: u64, rate_ppt_max: u64, step_forward_ns_min: u64) -> Result<Self, SlewLimitsError> {
        if over_ns == 0 || rate_ppt_max == 0 || rate_ppt_max > Self::RATE_PPT_MAX {
            return Err(SlewLimitsError { over_ns, rate_ppt_max });
        }
        Ok(Self { over_ns, rate_ppt_max, step_forward_ns_min })
    }
}

impl Default for SlewLimits {
    /// Slews over 100 ms at up to 500 us/s, as operating systems do, and steps forward by 100 ms or more.
    fn default() -> Self {
        Self { over_ns: 100_000_000, rate_ppt_max: 500_000_000, step_forward_ns_min: 100_000_000 }
    }
}

/// The host's clock, corrected. Its time never goes back; its rate differs from the line's by at most the slew limit.
///
/// Its reading is the line minus the remaining slew, which is known exactly and included in the bound.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    limits: SlewLimits,
    target: Option<Segment>,
    local_ns_last: u64,
    time_ns_last: u64,
}

/// A clock's function until it is fed again: a line and the slew towards it. It depends only on the host's clock, so threads that
/// must not wait can read copies. Its owner ensures that time never goes back from one segment to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The line for venue time.
    pub line: Correction,
    /// How far the clock was behind the line when it got it; negative if ahead.
    pub behind_ns: i64,
    /// The host clock's reading at that time.
    pub slew_from_local_ns: u64,
    /// Duration of the slew; above 0 unless there is nothing to slew.
    pub slew_for_ns: u64,
}

impl VirtualClock {
    /// The widest rate of a line: 1,000 us/s, far beyond any oscillator that works.
    const LINE_RATE_PPT_MAX: u64 = 1_000_000_000;

    /// A clock without a line: it cannot be read before the first correction.
    pub fn new(limits: SlewLimits) -> Self {
        Self { limits, target: None, local_ns_last: 0, time_ns_last: 0 }
    }

    /// Takes a new line when the host's clock reads `local_ns`. A line too steep for a clock counts as none.
    pub fn on_correction(&mut self, local_ns: u64, line: Correction) {
        if line.rate_ppt.unsigned_abs() > Self::LINE_RATE_PPT_MAX {
            self.on_excluded();
            return;
        }
        let goal_ns = line_ns(&line, local_ns);
        let now_ns = match self.target {
            Some(target) => target.time_ns(local_ns).max(i128::from(self.time_ns_last)),
            None => goal_ns.max(i128::from(self.time_ns_last)),
        };
        let behind_ns = i64::try_from(goal_ns - now_ns).unwrap_or(if goal_ns > now_ns { i64::MAX } else { i64::MIN });
        let steps = behind_ns > 0 && behind_ns.unsigned_abs() >= self.limits.step_forward_ns_min;
        let behind_ns = if steps { 0 } else { behind_ns };
        self.target = Some(Segment {
            line,
            behind_ns,
            slew_from_local_ns: local_ns,
            slew_for_ns: self.limits.slew_for_ns(behind_ns.unsigned_abs()),
        });
        self.local_ns_last = local_ns;
    }

    /// The mesh excluded this node's clock: it cannot be read until it is readmitted.
    pub fn on_excluded(&mut self) {
        self.target = None;
    }

    /// Venue time when the host's clock reads `local_ns`. If the host's clock went back, it was set, and the line is dropped.
    pub fn read(&mut self, local_ns: u64) -> Option<ClockReading> {
        if local_ns < self.local_ns_last {
            self.target = None;
            self.local_ns_last = local_ns;
        }
        let target = self.target?;
        self.local_ns_last = local_ns;
        let computed_ns = target.time_ns(local_ns);
        let time_ns = u64::try_from(computed_ns).unwrap_or(0).max(self.time_ns_last);
        self.time_ns_last = time_ns;
        let ahead_ns = u64::try_from(i128::from(time_ns) - computed_ns).unwrap_or(u64::MAX);
        Some(ClockReading { time_ns, bound_ns: target.bound_ns(local_ns).saturating_add(ahead_ns) })
    }
}

impl VirtualClock {
    /// Its current segment, for readers in other threads.
    pub fn segment(&self) -> Option<Segment> {
        self.target
    }
}

impl SlewLimits {
    fn slew_for_ns(&self, distance_ns: u64) -> u64 {
        let at_least_ns = u128::from(distance_ns) * PPT.unsigned_abs() / u128::from(self.rate_ppt_max);
        self.over_ns.max(u64::try_from(at_least_ns).unwrap_or(u64::MAX))
    }
}

/// Venue time according to a line.
fn line_ns(line: &Correction, local_ns: u64) -> i128 {
    let since_ns = i128::from(local_ns) - i128::from(line.anchor_local_ns);
    i128::from(local_ns) - i128::from(line.offset_ns) - (since_ns * i128::from(line.rate_ppt)).div_euclid(PPT)
}

impl Segment {
    /// The reading when the host's clock reads `local_ns`.
    #[must_use]
    pub fn read(&self, local_ns: u64) -> ClockReading {
        let time_ns = u64::try_from(self.time_ns(local_ns)).unwrap_or(0);
        ClockReading { time_ns, bound_ns: self.bound_ns(local_ns) }
    }

    /// The remaining slew, rounded towards zero.
    fn remaining_ns(&self, local_ns: u64) -> i128 {
        if self.behind_ns == 0 || local_ns.saturating_sub(self.slew_from_local_ns) >= self.slew_for_ns {
            return 0;
        }
        let left_ns = self.slew_for_ns.saturating_sub(local_ns.saturating_sub(self.slew_from_local_ns));
        i128::from(self.behind_ns) * i128::from(left_ns) / i128::from(self.slew_for_ns)
    }

    fn time_ns(&self, local_ns: u64) -> i128 {
        line_ns(&self.line, local_ns) - self.remaining_ns(local_ns)
    }

    fn bound_ns(&self, local_ns: u64) -> u64 {
        let age_ns = local_ns.abs_diff(self.line.anchor_local_ns);
        let curve_ppt = self.line.bound_growth_ppt_per_s.saturating_mul(age_ns) / 2_000_000_000;
        let grown = grown_ns(age_ns, self.line.bound_growth_ppt.saturating_add(curve_ppt));
        let slew = u64::try_from(self.remaining_ns(local_ns).unsigned_abs()).unwrap_or(u64::MAX);
        // Plus one for the rounding of the line and of the slew.
        self.line.bound_ns.saturating_add(grown).saturating_add(slew).saturating_add(1)
    }
}
