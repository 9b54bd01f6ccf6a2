//! The rule for when a clock is good enough for stamps.

use thiserror::Error;

use super::{ClockReading, ClockStatus};

/// A bound beyond `wide_ns` stops stamping at once; one within `good_ns` for `good_for_ns` starts it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StampLimits {
    wide_ns: u64,
    good_ns: u64,
    good_for_ns: u64,
}

/// Why limits are refused: without a gap a gateway would start and stop at every reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "a clock that is good again at {good_ns} ns must be narrower than one that stops stamping at {wide_ns} ns: lower the first"
)]
pub struct StampLimitsError {
    wide_ns: u64,
    good_ns: u64,
}

impl StampLimits {
    /// Limits with a gap between them: `good_ns < wide_ns`.
    pub fn new(wide_ns: u64, good_ns: u64, good_for_ns: u64) -> Result<Self, StampLimitsError> {
        if good_ns >= wide_ns {
            return Err(StampLimitsError { wide_ns, good_ns });
        }
        Ok(Self { wide_ns, good_ns, good_for_ns })
    }
}

/// The state of the rule: hysteresis in the bound and in time, so that a bound near a limit does not switch a gateway on and off.
#[derive(Clone, Debug)]
pub struct StampGate {
    limits: StampLimits,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Good,
    /// Not within `good_ns`.
    Wide,
    /// Within `good_ns` since then, not yet for long enough.
    Narrow {
        since_local_ns: u64,
    },
}

impl StampGate {
    /// A gate that is shut until a bound has been narrow for long enough.
    pub fn new(limits: StampLimits) -> Self {
        Self { limits, state: State::Wide }
    }

    /// The status after a reading. A clock without a reading is treated like one with too wide a bound.
    pub fn on_reading(&mut self, local_ns: u64, reading: Option<ClockReading>) -> ClockStatus {
        let Some(ClockReading { bound_ns, .. }) = reading else {
            self.state = State::Wide;
            return ClockStatus::Unknown;
        };
        self.state = match self.state {
            State::Good if bound_ns <= self.limits.wide_ns => State::Good,
            State::Good => State::Wide,
            State::Wide | State::Narrow { .. } if bound_ns > self.limits.good_ns => State::Wide,
            State::Wide if self.limits.good_for_ns == 0 => State::Good,
            State::Wide => State::Narrow { since_local_ns: local_ns },
            // A host clock that went back starts the wait again.
            State::Narrow { since_local_ns } if local_ns < since_local_ns => State::Narrow { since_local_ns: local_ns },
            State::Narrow { since_local_ns } if local_ns - since_local_ns >= self.limits.good_for_ns => State::Good,
            State::Narrow { since_local_ns } => State::Narrow { since_local_ns },
        };
        match self.state {
            State::Good => ClockStatus::Good,
            State::Wide | State::Narrow { .. } => ClockStatus::Wide,
        }
    }
}
