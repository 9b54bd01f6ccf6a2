//! Processor time, as the system counts it.

use anyhow::Context;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

/// Nanoseconds, by who took them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ProcessorTime {
    /// The replica that leads.
    pub leader_ns: u64,
    /// The other voters.
    pub followers_ns: u64,
    /// The learners.
    pub gateways_ns: u64,
    /// The thread of all participants.
    pub participants_ns: u64,
}

impl ProcessorTime {
    /// Of the thread that asks, as the participants'.
    /// # Errors
    /// When the system does not say it.
    pub fn of_this_thread() -> anyhow::Result<Self> {
        Ok(Self { participants_ns: read(ClockId::CLOCK_THREAD_CPUTIME_ID)?, ..Self::default() })
    }

    /// What was taken since then.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        Self {
            leader_ns: self.leader_ns.saturating_sub(before.leader_ns),
            followers_ns: self.followers_ns.saturating_sub(before.followers_ns),
            gateways_ns: self.gateways_ns.saturating_sub(before.gateways_ns),
            participants_ns: self.participants_ns.saturating_sub(before.participants_ns),
        }
    }
}

/// All threads of a process, those that ended too.
/// # Errors
/// When there is no such process any more.
pub fn of_process(process: u32) -> anyhow::Result<u64> {
    let clock = i32::try_from(process)
        .map_err(anyhow::Error::from)
        .and_then(|process| Ok(clock_getcpuclockid(Pid::from_raw(process))?))
        .with_context(|| format!("asking for the processor time of process {process}: does it still run?"))?;
    read(clock)
}

// Not /proc/PID/schedstat: for a thread that runs, it is as old as the last tick of the kernel.
fn read(clock: ClockId) -> anyhow::Result<u64> {
    let time = clock.now().context("reading a clock of processor time")?;
    Ok(u64::try_from(std::time::Duration::from(time).as_nanos())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on() {
        let before = ProcessorTime::of_this_thread().unwrap();
        let sum: u64 = (0..1_000_000_u64).map(std::hint::black_box).sum();
        let taken = ProcessorTime::of_this_thread().unwrap().since(&before);
        assert!(sum > 0 && taken.participants_ns > 0, "{taken:?}");
        assert!(of_process(std::process::id()).unwrap() >= taken.participants_ns);
    }
}
