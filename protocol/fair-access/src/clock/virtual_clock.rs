//! The venue's time on a host whose own clock nobody sets: a line over the host's clock, moved by slewing.

use thiserror::Error;

use super::{ClockReading, PPT, grown_ns};

/// What the mesh found of one node's clock: a line, and how far off it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Correction {
    /// What the host's clock read where `offset_ns` holds.
    pub anchor_local_ns: u64,
    /// The host's clock less the venue's time, at the anchor.
    pub offset_ns: i64,
    /// How much that offset grows per time of the host's clock.
    pub rate_ppt: i64,
    /// How far the line may be off at the anchor.
    pub bound_ns: u64,
    /// How fast the bound grows with the distance from the anchor.
    pub bound_growth_ppt: u64,
    /// How much faster it grows with each second of that distance: temperature moves rates.
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
    /// A tenth: with the widest rate that [`VirtualClock`] believes, the clock still runs at more than half speed.
    const RATE_PPT_MAX: u64 = 100_000_000_000;

    /// Slews over `over_ns`, longer where that would be faster than `rate_ppt_max`. What is at least `step_forward_ns_min` behind
    /// steps forward instead; nothing ever steps back.
    pub fn new(over_ns: u64, rate_ppt_max: u64, step_forward_ns_min: u64) -> Result<Self, SlewLimitsError> {
        if over_ns == 0 || rate_ppt_max == 0 || rate_ppt_max > Self::RATE_PPT_MAX {
            return Err(SlewLimitsError { over_ns, rate_ppt_max });
        }
        Ok(Self { over_ns, rate_ppt_max, step_forward_ns_min })
    }
}

impl Default for SlewLimits {
    /// Over 100 ms, at most 500 us/s as operating systems do, steps of 100 ms and more forward.
    fn default() -> Self {
        Self { over_ns: 100_000_000, rate_ppt_max: 500_000_000, step_forward_ns_min: 100_000_000 }
    }
}

/// The host's clock, corrected. Its time never goes back; its rate differs from the line's by at most the slew limit.
///
/// It is read as the line less what is still to be slewed, which is known exactly and is part of the bound.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    limits: SlewLimits,
    target: Option<Segment>,
    local_ns_last: u64,
    time_ns_last: u64,
}

/// What a clock shows until it is fed again: a line and the slew towards it. A pure function of the host's clock, so that threads
/// that must not wait can each read a copy. Its keeper ensures that time never goes back from one segment to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Where the venue's time is.
    pub line: Correction,
    /// How far behind the line the clock was when it got it; negative: ahead.
    pub behind_ns: i64,
    /// What the host's clock read then.
    pub slew_from_local_ns: u64,
    /// How long it takes to be on the line; above 0 unless there is nothing to slew.
    pub slew_for_ns: u64,
}

impl VirtualClock {
    /// The widest rate of a line: 1,000 us/s, far beyond any oscillator that works.
    const LINE_RATE_PPT_MAX: u64 = 1_000_000_000;

    /// A clock without a line: it cannot be read before the first correction.
    pub fn new(limits: SlewLimits) -> Self {
        Self { limits, target: None, local_ns_last: 0, time_ns_last: 0 }
    }

    /// Takes a new line when the host's clock reads `local_ns`. A line that is too steep to be a clock's counts as none.
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

    /// The mesh does not vouch for this node's clock any more: nothing may be read until it does again.
    pub fn on_excluded(&mut self) {
        self.target = None;
    }

    /// The venue's time when the host's clock reads `local_ns`. A host's clock that went back was set by somebody: the line is
    /// lost.
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
    /// What it shows until the next correction, for those who read without it.
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

/// Where a line puts the venue's time.
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

    /// What is still to be slewed, rounded towards zero.
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
        // One more for the rounding of the line and of the slew.
        self.line.bound_ns.saturating_add(grown).saturating_add(slew).saturating_add(1)
    }
}
