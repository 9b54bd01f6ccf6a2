//! The host's disciplined clock, with the bound that its daemon reports (chrony, ClockBound, a PTP hardware clock).

use thiserror::Error;

use super::{ClockReading, Correction, Segment, grown_ns};

/// A daemon's report about the host's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostReport {
    /// The host clock's reading at the time of the report.
    pub local_ns: u64,
    /// Error bound at that time: the remaining offset, the root dispersion and half the root delay together.
    pub bound_ns: u64,
    /// Growth of the bound until the next report: the daemon's frequency error.
    pub bound_growth_ppt: u64,
}

/// Why a report is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum HostReportError {
    /// A daemon on a PTP hardware clock knows nothing of that clock's own error.
    #[error("the clock daemon reports a bound of 0, which leaves out its reference's own error: add the reference's bound")]
    NoBound,
    /// Reports came in the wrong order, or the host's clock was set back.
    #[error("the clock daemon's report is older than the one before: drop it, and check who sets the host's clock")]
    Older,
}

/// A clock that a daemon disciplines. It follows the host's time but never goes back.
#[derive(Clone, Debug, Default)]
pub struct HostClock {
    report: Option<HostReport>,
    time_ns_last: u64,
}

impl HostClock {
    /// A clock without a bound: it cannot be read before the first report.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a report.
    pub fn on_report(&mut self, report: HostReport) -> Result<(), HostReportError> {
        if report.bound_ns == 0 {
            return Err(HostReportError::NoBound);
        }
        if self.report.is_some_and(|last| report.local_ns < last.local_ns) {
            return Err(HostReportError::Older);
        }
        self.report = Some(report);
        Ok(())
    }

    /// The daemon lost its source.
    pub fn on_lost(&mut self) {
        self.report = None;
    }

    /// The time when the host's clock reads `local_ns`. If the host's clock was set back, the time stands still, and its lead is
    /// added to the bound.
    pub fn read(&mut self, local_ns: u64) -> Option<ClockReading> {
        let report = self.report?;
        self.time_ns_last = self.time_ns_last.max(local_ns);
        let age_ns = local_ns.abs_diff(report.local_ns);
        let ahead_ns = self.time_ns_last - local_ns;
        let bound_ns = report.bound_ns.saturating_add(grown_ns(age_ns, report.bound_growth_ppt)).saturating_add(ahead_ns);
        Some(ClockReading { time_ns: self.time_ns_last, bound_ns })
    }

    /// Its current segment, for readers in other threads.
    pub fn segment(&self) -> Option<Segment> {
        let HostReport { local_ns, bound_ns, bound_growth_ppt } = self.report?;
        let line = Correction {
            anchor_local_ns: local_ns,
            offset_ns: 0,
            rate_ppt: 0,
            bound_ns,
            bound_growth_ppt,
            bound_growth_ppt_per_s: 0,
        };
        Some(Segment { line, behind_ns: 0, slew_from_local_ns: local_ns, slew_for_ns: 0 })
    }
}
