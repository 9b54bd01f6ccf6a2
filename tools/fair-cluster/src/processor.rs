//! Processor time, as the system counts it.

use anyhow::Context;

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
    pub(crate) fn of_this_thread() -> anyhow::Result<Self> {
        Ok(Self { participants_ns: read("/proc/thread-self/schedstat")?, ..Self::default() })
    }

    pub(crate) fn since(self, before: &Self) -> Self {
        Self {
            leader_ns: self.leader_ns.saturating_sub(before.leader_ns),
            followers_ns: self.followers_ns.saturating_sub(before.followers_ns),
            gateways_ns: self.gateways_ns.saturating_sub(before.gateways_ns),
            participants_ns: self.participants_ns.saturating_sub(before.participants_ns),
        }
    }
}

/// All threads of a process. Those of a replica live as long as it does.
pub(crate) fn of_process(process: u32) -> anyhow::Result<u64> {
    let folder = format!("/proc/{process}/task");
    let threads = std::fs::read_dir(&folder).with_context(|| format!("reading {folder}: does the process still run?"))?;
    let mut sum_ns = 0;
    for thread in threads {
        // One that has ended meanwhile is not there.
        sum_ns += read(&thread?.path().join("schedstat").display().to_string()).unwrap_or(0);
    }
    Ok(sum_ns)
}

fn read(path: &str) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {path}, which this kernel may lack"))?;
    text.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .with_context(|| format!("{path} does not begin with a number"))
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
