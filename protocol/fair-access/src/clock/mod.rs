//! The time, its error bound, and whether that is good enough to stamp orders.
//!
//! A [`Clock`] takes its time from one of two sources that are fed from outside: [`HostClock`], the host's disciplined clock with
//! the bound that its daemon reports, or [`VirtualClock`], the host's undisciplined clock corrected by the probe mesh
//! ([`crate::mesh`]). `local_ns` is always what the host's clock reads; `time_ns` is always the venue's time.
//!
//! *Deliberately absent*: reading the daemon or the counter (in `edge/`), UTC (venue time is the reference node's clock).

mod host;
mod stamping;
#[cfg(test)]
mod tests;
mod virtual_clock;

pub use host::{HostClock, HostReport, HostReportError};
pub use stamping::{StampGate, StampLimits, StampLimitsError};
pub use virtual_clock::{Correction, Segment, SlewLimits, SlewLimitsError, VirtualClock};

/// A trillionth; `_ppt` counts them: 1 us of drift in a second is 1,000,000 ppt.
pub const PPT: i128 = 1_000_000_000_000;

/// A time with its error bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockReading {
    /// The venue's time.
    pub time_ns: u64,
    /// Maximum distance of the true venue time from `time_ns`, on either side.
    pub bound_ns: u64,
}

/// Whether a clock is good enough for stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockStatus {
    /// The bound is within the limit.
    Good,
    /// The bound is beyond the limit, or was recently: the clock may be read but not used for stamps.
    Wide,
    /// There is no bound: the clock may not be read.
    Unknown,
}

/// The source of a clock's time.
#[derive(Clone, Debug)]
pub enum ClockSource {
    /// The host's own discipline.
    Host(HostClock),
    /// The probe mesh.
    Mesh(VirtualClock),
}

/// A source with its stamp limits.
#[derive(Clone, Debug)]
pub struct Clock {
    source: ClockSource,
    gate: StampGate,
}

impl Clock {
    /// A clock whose source has not been fed yet.
    pub fn new(source: ClockSource, limits: StampLimits) -> Self {
        Self { source, gate: StampGate::new(limits) }
    }

    /// The source, to be fed.
    pub fn source_mut(&mut self) -> &mut ClockSource {
        &mut self.source
    }

    /// The venue's time when the host's clock reads `local_ns`; none while the status is [`ClockStatus::Unknown`].
    pub fn read(&mut self, local_ns: u64) -> (Option<ClockReading>, ClockStatus) {
        let reading = match &mut self.source {
            ClockSource::Host(host) => host.read(local_ns),
            ClockSource::Mesh(virtual_clock) => virtual_clock.read(local_ns),
        };
        let status = self.gate.on_reading(local_ns, reading);
        (reading, status)
    }

    /// The source's current segment; `None` while it has no bound.
    pub fn segment(&self) -> Option<Segment> {
        match &self.source {
            ClockSource::Host(host) => host.segment(),
            ClockSource::Mesh(virtual_clock) => virtual_clock.segment(),
        }
    }

    /// The time for a stamp; `None` unless the status is [`ClockStatus::Good`].
    pub fn stamp(&mut self, local_ns: u64) -> Option<ClockReading> {
        match self.read(local_ns) {
            (reading, ClockStatus::Good) => reading,
            (_, ClockStatus::Wide | ClockStatus::Unknown) => None,
        }
    }
}

/// `interval_ns * rate_ppt / PPT`, rounded up: a bound is never made smaller by rounding.
fn grown_ns(interval_ns: u64, rate_ppt: u64) -> u64 {
    let product = u128::from(interval_ns) * u128::from(rate_ppt);
    u64::try_from(product.div_ceil(PPT.unsigned_abs())).unwrap_or(u64::MAX)
}
