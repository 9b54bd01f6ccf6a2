//! When things go wrong, and how disks do.

use walras_log_store::sim_disk::SimFaults;
use walras_testkit::Choices;

/// How long until something goes wrong.
pub(crate) fn pause_ns(c: &mut Choices<'_>) -> u64 {
    if c.one_in(3) { c.within(1_000_000, 20_000_000) } else { c.within(20_000_000, 800_000_000) }
}

/// How long a machine or a process is down.
pub(crate) fn downtime_ns(c: &mut Choices<'_>) -> u64 {
    c.within(1_000_000, 400_000_000)
}

/// Operations of a disk that fail: power fails in one, a write, a sync.
pub(crate) fn draw_for_disk(c: &mut Choices<'_>) -> SimFaults {
    let mut due = |one_in: u64, within: u64| (c.below(one_in) == 0).then(|| c.below(within));
    let (crash_in_ops, sync_error_in, write_error_in) = (due(2, 40), due(3, 10), due(4, 10));
    SimFaults { crash_in_ops, sync_error_in, write_error_in, gone_in_ops: None }
}

/// Faults that strike a recovery, now and then.
pub(crate) fn draw_for_recovery(c: &mut Choices<'_>) -> Option<SimFaults> {
    if !c.one_in(4) {
        return None;
    }
    let crash_in_ops = (c.below(3) > 0).then(|| c.below(12));
    let sync_error_in = (c.below(4) == 0).then(|| c.below(4));
    Some(SimFaults { crash_in_ops, sync_error_in, ..SimFaults::default() })
}
